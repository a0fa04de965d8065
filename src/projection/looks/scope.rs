//! Where a comparison stands: which plan names its order, and which looks on record count against it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::FamilyCorrection;
use clover_event::payload::estimated::PredictionWeight;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::manifest::OrderPlan;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use super::OrderLooks;
use crate::audits::obstacles;
use crate::audits::probes::Probes;
use crate::designs::Designs;
use crate::manifests::estimated;
use crate::newest::NewestEntries;

/// Policies of other experiments whose rows an experiment has too.
pub type SharedRows = BTreeMap<ExperimentId, BTreeSet<PolicyId>>;

/// An order that a plan names, which was in force before the first score or label.
#[derive(Clone, Debug)]
pub(super) struct NamedOrder {
    /// How its family is corrected.
    correction: Option<FamilyCorrection>,
    /// The scale of labels that is declared.
    declared: Option<ScaleEnds>,
    /// The entry of the label by which it was due.
    due: Option<u64>,
    /// Labels for calibration that count towards it now.
    counted: u64,
    /// Labels for calibration of the experiment now.
    labels: u64,
    /// The newest score of its judge.
    newest_score: u64,
    /// What is asked for.
    order: OrderPlan,
    /// The entry since which the plan stands.
    pub(super) since: u64,
    /// How far predictions are trusted.
    weight: PredictionWeight,
}

/// Where a comparison stands: what else was seen of its rows.
#[derive(Clone, Debug)]
pub struct LookScope {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Whether an order of the same rows is claimed once, whichever experiment a plan names it in.
    is_claimed_once: bool,
    /// Whether one value of the family through something else is a look.
    pub(super) is_value_enough: bool,
    /// Whether one value of the family in another experiment is a look.
    pub(super) is_value_enough_elsewhere: bool,
    /// Other experiments in which a plan names an order.
    ordering: BTreeSet<ExperimentId>,
    /// The order that a plan names.
    pub(super) plan: Option<NamedOrder>,
    /// Policies whose rows other experiments have too.
    pub shared: SharedRows,
    /// Looks below this entry count.
    pub below: u64,
}

impl LookScope {
    /// As the folds have it, with all looks on record.
    pub fn of(state: &State, experiment: &ExperimentId) -> Self {
        let probes = &state.fold::<Probes>().by_experiment;
        let looks: &OrderLooks = state.fold();
        let (mut shared, mut ordering) = (SharedRows::new(), BTreeSet::new());
        if let Some(here) = probes.get(experiment) {
            for other in looks.experiments().filter(|other| *other != experiment) {
                let Some(there) = probes.get(other) else {
                    continue;
                };
                if estimated::order(state.fold(), other).is_some() {
                    ordering.insert(other.clone());
                }
                let policies = here.scores.keys();
                let policies = policies.filter(|policy| here.shares_rows(there, policy));
                shared.insert(other.clone(), policies.cloned().collect());
            }
        }
        Self {
            experiment: experiment.clone(),
            is_claimed_once: state.asks(Question::OrderOnce),
            is_value_enough: state.asks(Question::OneValue),
            is_value_enough_elsewhere: state.asks(Question::ValueElsewhere),
            ordering,
            plan: NamedOrder::of(state, experiment),
            shared,
            below: u64::MAX,
        }
    }

    /// Which looks stand against a comparison. A planned one was fixed before: against it stand looks before its plan, and those
    /// by as many labels as it asks for, but not by the same rows. `None` where a plan names another order, or more labels.
    pub(super) fn counted(&self, of: &ContrastRecorded) -> Option<CountedLooks<'_>> {
        let plan = match &self.plan {
            Some(plan) if !plan.names(of) => return None,
            plan => plan.as_ref(),
        };
        Some(CountedLooks { scope: self, plan })
    }

    /// The plan whose order is not yet due, with the labels that it asks for and those that there are.
    pub fn awaited(&self) -> Option<(u64, u64, u64)> {
        let plan = self.plan.as_ref()?;
        let wanted = plan.order.labels.value();
        (plan.counted < wanted).then_some((plan.since, wanted, plan.counted))
    }
}

impl NamedOrder {
    fn of(state: &State, experiment: &ExperimentId) -> Option<Self> {
        let plan = estimated::order(state.fold(), experiment)?;
        let (order, estimates) = plan.said;
        let looks: &OrderLooks = state.fold();
        let entries = state.fold::<NewestEntries>().by_experiment.get(experiment);
        let labels = looks.labelled(experiment);
        let (due, counted) = if state.asks(Question::OwnLabels) {
            own_labels(looks, experiment, order)
        } else {
            (None, labels)
        };
        Some(Self {
            correction: estimates.correction.and_then(FamilyCorrection::of),
            declared: state.fold::<Designs>().scale(experiment),
            due,
            counted,
            labels,
            newest_score: entries.map_or(0, |of| of.newest_score(&order.judge)),
            order: order.clone(),
            since: plan.since,
            weight: estimates.weight.unwrap_or(PredictionWeight::One),
        })
    }

    /// Whether a comparison is the one that is asked for, on the usual terms, once there are as many labels.
    fn names(&self, of: &ContrastRecorded) -> bool {
        let (named, family): (BTreeSet<&PolicyId>, BTreeSet<&PolicyId>) = (
            self.order.policies.iter().collect(),
            of.family.iter().collect(),
        );
        let is_usual = of.terms.alpha_micro.value() == USUAL_ALPHA
            && of.terms.bootstrap.is_none()
            && of.terms.environment.is_none()
            && obstacles::are_usual(&of.terms, self.declared);
        let weight = of.terms.weight.unwrap_or(PredictionWeight::One);
        is_usual
            && (of.terms.judge == self.order.judge && named == family)
            && (of.correction, weight) == (self.correction, self.weight)
            && self.counted >= self.order.labels.value()
    }

    /// Whether a look came when there were as many labels as are asked for.
    fn is_due(&self, seq: u64, labels: u64) -> bool {
        match self.due {
            Some(due) => seq > due,
            None => labels >= self.order.labels.value(),
        }
    }
}

/// By which entry as many rows of an order were scored and then labelled as it asks for, and how many are by now.
fn own_labels(
    looks: &OrderLooks,
    experiment: &ExperimentId,
    order: &OrderPlan,
) -> (Option<u64>, u64) {
    let of = (experiment, &order.judge);
    let rows = looks.awaited.labelled_at(of, &order.policies);
    let last = order.labels.value().checked_sub(1);
    let due = last.and_then(|last| rows.get(usize::try_from(last).ok()?));
    (due.copied(), rows.len() as u64)
}

/// One less the level of a planned order, in millionths.
const USUAL_ALPHA: i64 = 50_000;

/// Which looks stand against a comparison.
pub(super) struct CountedLooks<'s> {
    pub(super) scope: &'s LookScope,
    /// The plan that names it.
    pub(super) plan: Option<&'s NamedOrder>,
}

impl CountedLooks<'_> {
    pub(super) fn has(&self, experiment: &ExperimentId, seq: u64, labels: u64) -> bool {
        let Some(plan) = self.plan else {
            return true;
        };
        let is_late = *experiment == self.scope.experiment
            && plan.is_due(seq, labels)
            && (labels != plan.labels || seq < plan.newest_score);
        seq < plan.since || is_late
    }
    /// Whether a look in another experiment could be claimed there: a comparison that named no earlier look, or anything where
    /// a plan names an order. Who has several such plans for the same rows chooses among them.
    pub(super) fn is_claim_elsewhere(&self, experiment: &ExperimentId, is_claimed: bool) -> bool {
        self.scope.is_claimed_once && (is_claimed || self.scope.ordering.contains(experiment))
    }
}
