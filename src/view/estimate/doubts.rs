//! Whether the answer of estimates and comparisons may be claimed: what stands against it in the record, in the labels and
//! in the scores that lack.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalMethod;
use crate::event::payload::estimated::LabelUse;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::ledger::State;
use crate::ledger::rulebooks;
use crate::ledger::rulebooks::Question as Asks;
use crate::ledger::rulebooks::RulebookAdoption;
use crate::num::Micro;
use crate::projection::assumptions::Assumptions;
use crate::projection::audits::AuditSubject;
use crate::projection::drifts;
use crate::projection::judges::Judges;
use crate::projection::looks::EarlierLook;
use crate::projection::looks::LookKind;
use crate::projection::looks::LookScope;
use crate::projection::looks::OrderLooks;
use crate::projection::manifests::Manifests;
use crate::view::answer;
use crate::view::answer::BestPolicy;
use crate::view::answer::OrderStanding;
use crate::view::answer::Question;
use crate::view::answer::Standing;
use crate::view::estimate::digits;
use crate::view::estimate::ends;
use crate::view::estimate::registered;
use crate::view::estimate::standing;
use crate::view::estimate::width::decisive;
use crate::view::text::thousands;
use crate::view::values;
use crate::view::values::bracket;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::drawn::Undrawn;
use crate::workflow::estimate::form::Form;
use crate::workflow::estimate::shape;
use crate::workflow::estimate::shares::LabelRates;
use crate::workflow::import::kept::UnscoredRows;
use crate::workflow::judge::kinship;

/// What the record says against a claim about an experiment, whatever its numbers are.
#[derive(Clone, Debug)]
pub struct ClaimBasis {
    /// Assumptions that fail and that no label mends, a sentence each.
    failing: Vec<String>,
    /// What the judge shares with policies and with other judges, and how much its scores waver, a sentence each.
    kinship: Vec<String>,
    /// Other judges that scored rows of the experiment, and stand for themselves.
    others: Vec<JudgeId>,
    /// The entry since which labels depend on more than this score, where an audit found that.
    insufficient: Option<u64>,
    /// What each registered design for calibration draws, as shares of rows from 0 to 1.
    label_rates: LabelRates,
    /// Every look at an order.
    pub(super) looks: OrderLooks,
    /// Margins of audits that plans register, each with the entry since which.
    margins: Vec<(u64, Micro)>,
    /// Designs for audits, with whether any of their labels is on record.
    probes: Vec<(DesignId, bool)>,
    /// Which rulebook judges from which entry on.
    rulebooks: Vec<RulebookAdoption>,
    /// What else was seen of the rows of the experiment.
    pub(super) scope: LookScope,
}

/// What a rulebook asks of an audit of transport.
const OF_AUDITS: [Asks; 6] = [
    Asks::PlannedProbes,
    Asks::FirstPlan,
    Asks::UsualAudit,
    Asks::OneProbe,
    Asks::EvenProbes,
    Asks::TimelyProbes,
];

impl ClaimBasis {
    /// As the folds have it.
    pub fn of(state: &State, experiment: &ExperimentId, judge: &JudgeId) -> Self {
        let records = state.fold::<Manifests>().by_id.values();
        let records = records.filter(|of| of.experiment.as_ref() == Some(experiment));
        let versions = records.flat_map(|of| &of.versions);
        let margins = versions
            .filter_map(|of| Some((of.since()?, of.manifest.transport.as_ref()?.margin_micro)));
        Self {
            failing: registered::assumptions(state, experiment, judge),
            kinship: kinship::of_registered(state, experiment, judge)
                .iter()
                .map(ToString::to_string)
                .chain(registered::noise(state, experiment, judge))
                .collect(),
            others: state.fold::<Judges>().beside(experiment, judge),
            insufficient: state
                .fold::<Assumptions>()
                .failed(Assumption::S1, Some(experiment)),
            label_rates: LabelRates::of(state, experiment),
            looks: state.fold::<OrderLooks>().clone(),
            margins: margins.collect(),
            probes: registered::probes(state, experiment),
            rulebooks: state.keyring.rulebooks.clone(),
            scope: LookScope::of(state, experiment),
        }
    }

    /// The rulebook that judged an entry.
    fn rulebook(&self, seq: u64) -> u32 {
        let before = self.rulebooks.iter().rev().find(|of| of.seq < seq);
        before.map_or(rulebooks::UNNAMED, |of| of.version)
    }

    /// What the rulebook in force asks of audits, and the one that judged an entry did not.
    fn unasked(&self, seq: u64) -> Vec<&'static str> {
        let (then, now) = (self.rulebook(seq), self.rulebook(u64::MAX));
        let unasked = OF_AUDITS
            .iter()
            .filter(|of| (then + 1..=now).contains(&of.since()));
        unasked.map(|of| of.as_str()).collect()
    }

    /// Whether an audit of this margin could pass where nobody had planned it: it is wider than is usual, the rulebook of its
    /// entry did not ask, and no plan that was in force before registers it.
    fn is_unplanned(&self, seq: u64, margin: Micro) -> bool {
        let is_asked = self.rulebook(seq) >= Asks::UsualAudit.since();
        let is_planned = |of: &(u64, Micro)| of.0 < seq && of.1 == margin;
        !is_asked
            && margin.value() > drifts::usual::USUAL_MARGIN
            && !self.margins.iter().any(is_planned)
    }

    /// The command that has values audited which nobody checked yet, whose scores are a judge's.
    pub(super) fn next_audit(&self, judge: &JudgeId) -> String {
        let labelled = self.probes.iter().filter(|(_, is_labelled)| *is_labelled);
        let labelled: Vec<&DesignId> = labelled.map(|(design, _)| design).collect();
        let mut next = match (labelled.as_slice(), self.probes.first()) {
            ([], None) => {
                return "clover label design new probes --purpose audit --probability 0.1"
                    .to_owned();
            }
            ([], Some((design, _))) => {
                let design = shell::word(design);
                return format!("clover import labels FILE --design {design}");
            }
            ([_], _) => "clover audit transport".to_owned(),
            ([design, ..], _) => {
                format!("clover audit transport --design {}", shell::word(*design))
            }
        };
        if judge.as_str() != "judge" {
            next += &format!(" --judge {}", shell::word(judge));
        }
        next
    }

    /// What the judge shares with policies and with other judges, a sentence each.
    pub fn kinship(&self) -> &[String] {
        &self.kinship
    }

    /// Assumptions that fail and that no label mends, a sentence each.
    pub fn failing(&self) -> &[String] {
        &self.failing
    }
}

/// Policies of which values or an order are asked.
pub(super) struct Asked<'a> {
    /// What was computed.
    pub found: &'a Found,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// What the record says against it.
    pub basis: &'a ClaimBasis,
    /// Positions of the policies.
    pub places: &'a [usize],
    /// Their differences.
    pub contrasts: &'a [ContrastRecorded],
}

impl Asked<'_> {
    /// The answer where values were asked for.
    pub(super) fn values(&self, on_record: bool) -> BestPolicy {
        self.answer(on_record, self.standing_of_values())
    }

    /// Whether their order is still to be asked for.
    pub(super) fn awaits_order(&self) -> bool {
        self.places.len() > 1 && self.standing_of_values() == OrderStanding::Unrecorded
    }

    /// How their order stands where values were asked for.
    fn standing_of_values(&self) -> OrderStanding {
        let looks = &self.basis.looks;
        let mut pairs = self.contrasts.iter();
        let is_recorded = pairs.any(|of| looks.is_recorded(&self.scope(), of));
        match self.order_standing() {
            OrderStanding::Asked if !is_recorded && !self.shares_nothing() => {
                OrderStanding::Unrecorded
            }
            other => other,
        }
    }

    /// The answer where an order was asked for.
    pub(super) fn order(&self, on_record: bool) -> BestPolicy {
        self.answer(on_record, self.order_standing())
    }

    /// Whether no two of the policies have scores of a common prompt: then no comparison could order them.
    fn shares_nothing(&self) -> bool {
        let (gaps, count) = (
            self.found.gathered.dataset.gaps(self.places),
            self.places.len(),
        );
        count > 1 && gaps.disjoint().count() == count * (count - 1) / 2
    }

    /// What else was seen of these rows, as far as it was read.
    fn scope(&self) -> LookScope {
        let mut scope = self.basis.scope.clone();
        scope.below = self.found.gathered.below;
        scope
    }

    /// What makes the order of these differences exploratory.
    pub(super) fn earlier(&self) -> Option<EarlierLook> {
        let scope = self.scope();
        let pairs = self.contrasts.iter();
        let looks = pairs.filter_map(|of| self.basis.looks.earlier(&scope, of));
        looks.min()
    }

    /// Whether nobody saw their order before.
    fn order_standing(&self) -> OrderStanding {
        let Some(look) = self.earlier() else {
            return OrderStanding::Asked;
        };
        match self.basis.scope.awaited() {
            Some((since, wanted, labels)) if look.kind == LookKind::Planned => {
                OrderStanding::Awaited {
                    since,
                    wanted,
                    labels,
                }
            }
            _ => OrderStanding::Exploratory(look),
        }
    }

    fn answer(&self, on_record: bool, order_standing: OrderStanding) -> BestPolicy {
        let rows = self.rows();
        let policies = self.places.iter().zip(&rows);
        let policies = policies.map(|(&policy, row)| answer::Policy {
            name: row.policy.to_string(),
            value: row.estimate.value(),
            interval: decisive((self.found, self.experiment), policy, row),
            standing: self.standing(policy, row),
        });
        let policies: Vec<answer::Policy> = policies.collect();
        let gaps = self.found.gathered.dataset.gaps(self.places);
        let order = |first: usize, second: usize| self.told_apart(first, second);
        let mut obstacles = self.basis.failing.clone();
        obstacles.extend(self.unscored());
        obstacles.extend(self.labels(&rows));
        let mut remarks = self.answered();
        remarks.extend(values::lacking_prompts(&gaps, |policy| {
            &self.found.analysis.policies[policy].name
        }));
        for row in &rows {
            self.older_audit(row, &mut obstacles, &mut remarks);
        }
        remarks.extend(self.whose());
        remarks.extend(self.insufficient(&rows));
        remarks.extend(self.scored_late());
        remarks.extend(self.never_scored());
        remarks.extend(self.undrawn());
        let mut found = Question {
            policies: &policies,
            order: &order,
            percent: values::percent(self.found.analysis.alpha),
            digits: digits(self.found),
            on_record,
            obstacles: &obstacles,
            remarks: &remarks,
            void: &self.void(),
            order_standing,
        }
        .answer();
        let scope = self.found.terms.environment.as_ref();
        found.answer.text = answer::within(scope, found.answer.text);
        found
    }

    /// How a value stands; one that an environment withholds failed no audit of its own.
    fn standing(&self, policy: usize, row: &EstimateRecorded) -> Standing {
        if self.found.tainted.contains_key(&policy) {
            return Standing::Void;
        }
        let found = standing(row);
        let audits = &self.found.gathered.audits;
        let mut records = audits.environments(self.experiment, &row.terms.judge);
        let is_of_environment = row
            .transport
            .is_some_and(|of| records.any(|record| record.failed_seq == Some(of.seq.value())));
        match found {
            Standing::Failed if is_of_environment => Standing::Environment,
            other => other,
        }
    }

    fn rows(&self) -> Vec<EstimateRecorded> {
        let of = |&policy: &usize| self.found.estimate(self.experiment, policy, Form::NEWEST);
        self.places.iter().map(of).collect()
    }

    /// How the first of two policies stands to the second, where they are told apart.
    fn told_apart(&self, first: usize, second: usize) -> Option<Ordering> {
        let name = |at: usize| &self.found.analysis.policies[self.places[at]].name;
        let is = |of: &ContrastRecorded, a: usize, b: usize| {
            of.told_apart && of.first.as_str() == name(a) && of.second.as_str() == name(b)
        };
        let (of, reversed) = self.contrasts.iter().find_map(|of| {
            let forth = is(of, first, second).then_some((of, false));
            forth.or_else(|| is(of, second, first).then_some((of, true)))
        })?;
        let sign = of.difference.value().total_cmp(&0.0);
        Some(if reversed { sign.reverse() } else { sign })
    }

    /// Whose scores these are, where other judges scored rows too.
    fn whose(&self) -> Option<String> {
        let others = &self.basis.others;
        if others.is_empty() {
            return None;
        }
        let names = answer::names(others.iter().map(JudgeId::as_str));
        Some(format!(
            "The judge of these values is {}; {names} scored rows of this experiment too.",
            self.found.terms.judge
        ))
    }

    /// An audit found that labels depend on more than the score, and a value borrows labels of other policies.
    fn insufficient(&self, rows: &[EstimateRecorded]) -> Option<String> {
        let seq = self.basis.insufficient?;
        let borrowing = rows.iter().filter(|row| row.claim != Claim::OwnLabels);
        let names: Vec<&str> = borrowing.map(|row| row.policy.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "Labels depend on more than the score (S1 fails since seq {seq}), and {} borrowed the labels of others.",
                answer::names(names.iter().copied())
            )
        })
    }

    /// Audits that failed and that a fit answered since.
    fn answered(&self) -> Vec<String> {
        let of = self.places.iter().filter_map(|&policy| {
            let answered = self.found.answered(self.experiment, policy)?;
            let name = &self.found.analysis.policies[policy].name;
            Some(answer::answered(name, answered.seq, answered.labels))
        });
        of.collect()
    }

    /// Policies that rest on entries of a compromised key, a sentence for each key.
    fn void(&self) -> Vec<String> {
        let mut by_key: BTreeMap<KeyId, Vec<PolicyId>> = BTreeMap::new();
        for (&policy, key) in &self.found.tainted {
            if self.places.contains(&policy) {
                by_key
                    .entry(*key)
                    .or_default()
                    .push(self.found.name(policy));
            }
        }
        let sentence = by_key.iter().map(|(key, policies)| {
            let names = answer::names(policies.iter().map(PolicyId::as_str));
            let (are, rest, them) = match policies.len() {
                1 => ("is", "rests", "it"),
                _ => ("are", "rest", "them"),
            };
            format!(
                "{names} {are} VOID: nothing may be claimed of {them}. Labels, scores, a fit or a passed audit that {names} {rest} on are \
                 signed by key {key} from its compromise on."
            )
        });
        sentence.collect()
    }

    /// Rows on record that the judge has no score of: which ones it has may have been chosen, or have come first.
    fn unscored(&self) -> Vec<String> {
        let mut found = Vec::new();
        for &policy in self.places {
            let name = self.found.name(policy);
            let Some(of) = self.found.gathered.unscored.get(&name) else {
                continue;
            };
            found.push(format!(
                "{} of {} rows of {name} on record are scored by this judge: the others may be worth more or less.",
                of.rows - of.unscored,
                of.rows
            ));
        }
        found
    }

    /// Policies with rows on record and no score of this judge: no value and no comparison is of them.
    fn never_scored(&self) -> Vec<String> {
        let all = self.found.gathered.unscored.iter();
        let never = all.filter(|(_, of)| of.unscored == of.rows);
        let sentence = |(name, of): (&PolicyId, &UnscoredRows)| {
            format!(
                "{name} has {} rows on record and no score by this judge: it stands in no value here.",
                thousands(of.rows)
            )
        };
        never.map(sentence).collect()
    }

    /// What was not asked of the audit that a value rests on, since an older rulebook judged it.
    fn older_audit(
        &self,
        row: &EstimateRecorded,
        obstacles: &mut Vec<String>,
        remarks: &mut Vec<String>,
    ) {
        let rests = row.claim == Claim::BorrowedChecked;
        let Some(audit) = row.transport.filter(|_| rests) else {
            return;
        };
        let seq = audit.seq.value();
        let (unasked, then) = (self.basis.unasked(seq), self.basis.rulebook(seq));
        if unasked.is_empty() {
            return;
        }
        let subject = AuditSubject {
            experiment: self.experiment,
            judge: &row.terms.judge,
            environment: row.terms.environment.as_ref(),
            policy: &row.policy,
        };
        let margin = self.found.gathered.audits.margin(&subject);
        if let Some(margin) = margin.filter(|margin| self.basis.is_unplanned(seq, *margin)) {
            obstacles.push(format!(
                "No plan names the margin {} of the audit of {} at seq {seq}, and rulebook {then} did not ask for one.",
                margin.value() as f64 / 1e6,
                row.policy
            ));
        }
        remarks.push(format!(
            "The audit of {} at seq {seq} passed under rulebook {then}, which did not ask: {}.",
            row.policy,
            unasked.join(", ")
        ));
    }

    /// Rows that do not count: of the policies that are asked for, and of those that have no others.
    fn scored_late(&self) -> Vec<String> {
        let gathered = &self.found.gathered;
        let late = gathered.late.iter().filter(|(name, _)| {
            let place = gathered.policy(name.as_str());
            place.is_none_or(|place| self.places.contains(&place))
        });
        late.map(|(name, rows)| values::scored_late(name.as_str(), *rows))
            .collect()
    }

    /// What the labels themselves say against a claim.
    fn labels(&self, rows: &[EstimateRecorded]) -> Vec<String> {
        let mut found = Vec::new();
        for (&policy, row) in self.places.iter().zip(rows) {
            let of = &self.found.gathered.dataset.policies[policy];
            let labels: Vec<f64> = of.labels.iter().flatten().copied().collect();
            let strata = self.strata(policy);
            if strata.is_empty() {
                let beyond = self
                    .basis
                    .label_rates
                    .beyond_the_draw(&self.found.gathered, policy);
                found.extend(beyond.iter().map(values::beyond_the_draw));
            }
            for (&inclusion, (rows, labels)) in &strata {
                found.extend(beyond_its_draw(&of.name, inclusion, labels.len(), *rows));
            }
            if row.claim != Claim::OwnLabels {
                continue;
            }
            // An exact bound asks nothing of the shape of its labels.
            if row.interval_method != IntervalMethod::Bounded {
                found.extend(self.is_skewed(&of.name, &labels, &strata));
            }
            let alone = row.labels_only.and_then(|of| of.interval);
            if let Some((alone, value)) = alone.zip(row.interval) {
                let ([low, high], [from, to]) = (ends(alone).0, ends(value).0);
                if low > to || high < from {
                    let digits = digits(self.found);
                    found.push(format!(
                        "The labels of {} alone say {}, and corrected scores say {}: one of them is wrong.",
                        of.name,
                        bracket(ends(alone), digits),
                        bracket(ends(value), digits)
                    ));
                }
            }
        }
        found
    }

    /// Rows of a policy whose labels could be opened, with their labels, by the probability in millionths that its design
    /// labels them with; none where labels are not weighted.
    fn strata(&self, policy: usize) -> Strata {
        let mut strata = Strata::new();
        let is_weighted = self.found.terms.labels == LabelUse::Weighted;
        let known = self.found.gathered.inclusion();
        let Some(known) = known.ok().filter(|_| is_weighted) else {
            return strata;
        };
        let of = &self.found.gathered.dataset.policies[policy];
        let rows = known[policy].iter().zip(&of.labels).enumerate();
        let is_open = |row: &usize| !self.found.gathered.is_kept(policy, *row);
        for (_, (inclusion, label)) in rows.filter(|(row, _)| is_open(row)) {
            let (rows, labels) = strata.entry(*inclusion).or_default();
            *rows += 1;
            labels.extend(label);
        }
        strata
    }

    /// Why labels that were drawn by stratum are not weighted.
    fn undrawn(&self) -> Option<String> {
        let is_unused = self.found.terms.labels == LabelUse::Targeted;
        let why = self.found.gathered.inclusion().err().filter(|_| is_unused);
        why.map(|why| match why {
            Undrawn::NotRead => {
                "Labels that were drawn by stratum are weighted from rulebook 21 on: clover rulebook adopt."
                    .to_owned()
            }
            why => format!("Labels are not weighted: {why}."),
        })
    }

    /// Labels whose mean is not close to normal yet.
    fn is_skewed(&self, name: &str, labels: &[f64], strata: &Strata) -> Option<String> {
        let n = labels.len();
        let span = self.found.analysis.output_scale.span();
        if shape::is_nearly_constant(labels, span) {
            return Some(format!(
                "The {n} labels of {name} are nearly all the same: one unlike them would move its value beyond the interval."
            ));
        }
        let wanted = if strata.is_empty() {
            shape::labels_wanted(labels)?
        } else {
            let all: usize = strata.values().map(|(rows, _)| rows).sum();
            let shares = strata.values();
            let shares = shares.map(|(rows, labels)| (*rows as f64 / all as f64, labels.clone()));
            shape::labels_wanted_by_stratum(&shares.collect::<Vec<_>>())?
        };
        Some(format!(
            "The {n} labels of {name} are too skewed for its interval: about {wanted} would do."
        ))
    }
}

/// Rows and labels by the probability of a label in millionths.
type Strata = BTreeMap<u32, (usize, Vec<f64>)>;

/// More or fewer rows of one probability are labelled than the design can have drawn.
fn beyond_its_draw(name: &str, inclusion: u32, labels: usize, rows: usize) -> Option<String> {
    let rate = f64::from(inclusion) / 1e6;
    let is_below = shape::is_below_draw(rows, labels, rate);
    let why = if is_below {
        "labels are missing, or somebody chose among them"
    } else {
        "somebody chose among them"
    };
    (is_below || shape::is_above_draw(rows, labels, rate)).then(|| {
        format!(
            "{labels} of the {rows} rows of {name} with the probability {rate} are labelled, and their design draws about \
             {:.0}: {why}.",
            rows as f64 * rate
        )
    })
}
