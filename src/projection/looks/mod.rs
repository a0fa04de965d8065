//! Looks at an order of policies: who compares them once it was seen, through other rows, labels, judges or experiments, chooses
//! what to claim. So a comparison names the entry that makes it exploratory.

mod awaited;
mod scope;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimate::FamilyCorrection;
use clover_event::payload::estimated::Reading;
use clover_event::payload::label::LabelPurpose;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

pub use scope::LookScope;
pub use scope::SharedRows;

use awaited::AwaitedRows;
use scope::CountedLooks;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::ContrastRecorded,
    Kind::EstimateRecorded,
    Kind::LabelRecorded,
    Kind::LedgerCreated,
    Kind::ManifestAmended,
    Kind::ManifestRegistered,
    Kind::RulebookAdopted,
    Kind::ScoreRecorded,
];

/// What a value or a difference was computed through, beside its rows.
fn basis(terms: &EstimateTerms, calibrator: Option<&Digest>) -> Digest {
    // The level and the bootstrap move intervals alone.
    let terms = EstimateTerms {
        alpha_micro: Micro::new(0).unwrap_or_default(),
        bootstrap: None,
        ..terms.clone()
    };
    canon::digest("clover/look/v1", &(terms, calibrator))
}

/// The same with the level and the bootstrap.
fn whole(terms: &EstimateTerms, calibrator: Option<&Digest>) -> Digest {
    canon::digest("clover/look/v2", &(terms, calibrator))
}

/// Differences of one family that were recorded on the same terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContrastLook {
    /// How the family is corrected.
    pub correction: Option<FamilyCorrection>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The policies.
    pub family: BTreeSet<PolicyId>,
    /// Whether a difference of it named no earlier look, so that it could be claimed.
    pub is_claimed: bool,
    /// Whether a rulebook judged it that asks for it.
    pub is_counted: bool,
    /// Whose scores.
    pub judge: JudgeId,
    /// Labels for calibration of the experiment by then.
    pub labels: u64,
    /// Roots of the rows of its policies, as far as pairs named them.
    pub roots: BTreeMap<PolicyId, Root>,
    /// Its first entry.
    pub seq: u64,
    /// Digest of terms and calibrator.
    pub terms: Digest,
}

/// A checked value that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueLook {
    /// Digest of calibrator and terms, level and bootstrap aside.
    pub basis: Digest,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Labels for calibration of the experiment by then.
    pub labels: u64,
    /// The policy.
    pub policy: PolicyId,
    /// Root of its rows.
    pub root: Root,
    /// Its entry.
    pub seq: u64,
}

/// Every look at an order that is on record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLooks {
    /// Labelled rows of orders that plans name.
    pub awaited: AwaitedRows,
    /// Differences between checked policies, in the order of their first entries.
    pub contrasts: Vec<ContrastLook>,
    /// Whether the rulebook in force counts values, other judges and other experiments.
    pub is_counted: bool,
    /// Labels for calibration, by experiment.
    pub labels: BTreeMap<ExperimentId, u64>,
    /// Checked values, in the order of their entries, under a rulebook that counts them.
    pub values: Vec<ValueLook>,
}

/// How an order was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookKind {
    /// Differences of the same experiment.
    Differences,
    /// The same rows, in another experiment.
    Elsewhere,
    /// None: a plan names another order, or more labels.
    Planned,
    /// Values of the same experiment.
    Values,
}

/// What makes an order exploratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EarlierLook {
    /// Its entry.
    pub seq: u64,
    /// What it is.
    pub kind: LookKind,
}

impl ContrastLook {
    /// Whether a difference may stand beside it: one of as large a family or a larger one, of the same rows on the same terms.
    fn is_within(&self, of: &ContrastRecorded, terms: Digest, family: &BTreeSet<PolicyId>) -> bool {
        let has_root = |policy, root| self.roots.get(policy).is_none_or(|of| of == root);
        (self.terms, self.correction) == (terms, of.correction)
            && self.family.is_subset(family)
            && has_root(&of.first, &of.first_root)
            && has_root(&of.second, &of.second_root)
    }
}

impl OrderLooks {
    /// Takes one entry in.
    fn take(&mut self, seq: u64, experiment: Option<&ExperimentId>, payload: &Payload) {
        if let Some(experiment) = experiment {
            self.awaited.take(seq, experiment, payload);
        }
        let asks = |of: Count| of.value() >= u64::from(Question::EarlierLooks.since());
        match (payload, experiment) {
            (Payload::LedgerCreated(of), _) => self.is_counted |= of.rulebook.is_some_and(asks),
            (Payload::RulebookAdopted(of), _) => self.is_counted |= asks(of.version),
            (Payload::LabelRecorded(of), Some(experiment))
                if of.purpose == LabelPurpose::Calibrate =>
            {
                *self.labels.entry(experiment.clone()).or_default() += 1;
            }
            (Payload::ContrastRecorded(of), Some(experiment)) => {
                self.compared(seq, experiment, of);
            }
            (Payload::EstimateRecorded(of), Some(experiment)) => {
                self.estimated(seq, experiment, of);
            }
            _ => {}
        }
    }

    fn compared(&mut self, seq: u64, experiment: &ExperimentId, of: &ContrastRecorded) {
        if !matches!(of.reading, Some(Reading::ToldApart | Reading::NotToldApart)) {
            return;
        }
        let terms = whole(&of.terms, of.calibrator.as_ref());
        let family: BTreeSet<PolicyId> = of.family.iter().cloned().collect();
        let mut same = self.contrasts.iter_mut().rev();
        let same = same.find(|look| {
            look.experiment == *experiment
                && look.family == family
                && look.is_within(of, terms, &family)
        });
        let roots = [
            (of.first.clone(), of.first_root),
            (of.second.clone(), of.second_root),
        ];
        match same {
            Some(look) => {
                look.roots.extend(roots);
                look.is_claimed |= of.exploratory_since.is_none();
            }
            None => self.contrasts.push(ContrastLook {
                correction: of.correction,
                experiment: experiment.clone(),
                family,
                is_claimed: of.exploratory_since.is_none(),
                is_counted: self.is_counted,
                judge: of.terms.judge.clone(),
                labels: self.labelled(experiment),
                roots: roots.into(),
                seq,
                terms,
            }),
        }
    }

    fn estimated(&mut self, seq: u64, experiment: &ExperimentId, of: &EstimateRecorded) {
        if !self.is_counted || !of.claim.is_checked() {
            return;
        }
        let look = ValueLook {
            basis: basis(&of.terms, of.calibrator.as_ref()),
            experiment: experiment.clone(),
            labels: self.labelled(experiment),
            policy: of.policy.clone(),
            root: of.rows_root,
            seq,
        };
        let is_same = |other: &ValueLook| {
            (&other.experiment, &other.policy) == (&look.experiment, &look.policy)
                && (other.basis, other.root) == (look.basis, look.root)
        };
        if !self.values.iter().any(is_same) {
            self.values.push(look);
        }
    }

    fn labelled(&self, experiment: &ExperimentId) -> u64 {
        self.labels.get(experiment).copied().unwrap_or(0)
    }

    /// Experiments of which something was seen that counts in others.
    fn experiments(&self) -> impl Iterator<Item = &ExperimentId> {
        let contrasts = self.contrasts.iter().filter(|look| look.is_counted);
        let contrasts = contrasts.map(|look| &look.experiment);
        let values = self.values.iter().map(|look| &look.experiment);
        contrasts.chain(values).collect::<BTreeSet<_>>().into_iter()
    }

    /// The entry since which the same family was compared on the same terms, and whether it counted then.
    fn same(&self, scope: &LookScope, of: &ContrastRecorded) -> Option<&ContrastLook> {
        let terms = whole(&of.terms, of.calibrator.as_ref());
        let family: BTreeSet<PolicyId> = of.family.iter().cloned().collect();
        self.contrasts.iter().find(|look| {
            look.experiment == scope.experiment
                && look.family == family
                && look.is_within(of, terms, &family)
        })
    }

    /// Whether a comparison of the same family on the same terms is on record.
    pub fn is_recorded(&self, scope: &LookScope, of: &ContrastRecorded) -> bool {
        let same = self.same(scope, of);
        same.is_some_and(|look| look.seq < scope.below)
    }

    /// Whether any differences of an experiment are on record.
    pub fn is_compared(&self, scope: &LookScope) -> bool {
        let mut all = self.contrasts.iter();
        all.any(|look| look.experiment == scope.experiment && look.seq < scope.below)
    }

    /// The first entry of an experiment that shows an order: a difference, or the value of a second policy, or of the first one
    /// where that is enough.
    pub fn seen(&self, scope: &LookScope) -> Option<u64> {
        let experiment = &scope.experiment;
        let enough = if scope.is_value_enough { 1 } else { 2 };
        let mut contrasts = self.contrasts.iter();
        let contrast = contrasts.find(|look| look.experiment == *experiment);
        let mut policies = BTreeSet::new();
        let mut values = self.values.iter();
        let value = values.find(|look| {
            if look.experiment == *experiment {
                policies.insert(&look.policy);
            }
            policies.len() >= enough
        });
        let first = [contrast.map(|look| look.seq), value.map(|look| look.seq)];
        first.into_iter().flatten().min()
    }

    /// What makes a difference exploratory: the first look before it that saw its order otherwise.
    pub fn earlier(&self, scope: &LookScope, of: &ContrastRecorded) -> Option<EarlierLook> {
        // What came after the same comparison was recorded stands against others.
        let same = self.same(scope, of).map_or(u64::MAX, |look| look.seq);
        let below = scope.below.min(same);
        let other = scope.plan.as_ref().map(|plan| EarlierLook {
            seq: plan.since,
            kind: LookKind::Planned,
        });
        let (counted, other) = match scope.counted(of) {
            Some(counted) => (counted, None),
            None => (CountedLooks { scope, plan: None }, other),
        };
        let found = [
            self.earlier_differences(&counted, of),
            self.earlier_values(&counted, of),
            self.earlier_elsewhere(&counted, of),
            other,
        ];
        let found = found.into_iter().flatten();
        found.filter(|look| look.seq < below).min()
    }

    /// Differences of the experiment: by any judge, of a family that this one does not hold, or on other terms.
    fn earlier_differences(
        &self,
        counted: &CountedLooks<'_>,
        of: &ContrastRecorded,
    ) -> Option<EarlierLook> {
        let terms = whole(&of.terms, of.calibrator.as_ref());
        let family: BTreeSet<PolicyId> = of.family.iter().cloned().collect();
        let mut all = self.contrasts.iter();
        let look = all.find(|look| {
            look.experiment == counted.scope.experiment
                && counted.has(&look.experiment, look.seq, look.labels)
                && (look.is_counted || look.judge == of.terms.judge)
                && !look.is_within(of, terms, &family)
        })?;
        let (seq, kind) = (look.seq, LookKind::Differences);
        Some(EarlierLook { seq, kind })
    }

    /// Values of two policies of the experiment, of which one is none of the family, or was computed through something else;
    /// where that is asked, one value of the family through something else.
    fn earlier_values(
        &self,
        counted: &CountedLooks<'_>,
        of: &ContrastRecorded,
    ) -> Option<EarlierLook> {
        let own = basis(&of.terms, of.calibrator.as_ref());
        let (mut policies, mut is_other) = (BTreeSet::new(), false);
        let mut all = self.values.iter();
        let look = all.find(|look| {
            let is_counted = counted.has(&look.experiment, look.seq, look.labels);
            if look.experiment != counted.scope.experiment || !is_counted {
                return false;
            }
            policies.insert(&look.policy);
            let is_of_root = |policy: &PolicyId, root| look.policy != *policy || look.root == root;
            let is_within = look.basis == own
                && of.family.contains(&look.policy)
                && is_of_root(&of.first, of.first_root)
                && is_of_root(&of.second, of.second_root);
            is_other |= !is_within;
            let is_own = counted.scope.is_value_enough && of.family.contains(&look.policy);
            is_other && policies.len() > 1 || is_own && !is_within
        })?;
        let (seq, kind) = (look.seq, LookKind::Values);
        Some(EarlierLook { seq, kind })
    }

    /// Two of its policies compared, or values of them, in another experiment that has rows of theirs: of two policies, or of one
    /// where that is enough.
    fn earlier_elsewhere(
        &self,
        counted: &CountedLooks<'_>,
        of: &ContrastRecorded,
    ) -> Option<EarlierLook> {
        let is_shared = |experiment: &ExperimentId, policy: &PolicyId| {
            let shared = counted.scope.shared.get(experiment);
            of.family.contains(policy) && shared.is_some_and(|shared| shared.contains(policy))
        };
        let all = self.contrasts.iter().filter(|look| look.is_counted);
        let all = all.filter(|look| {
            counted.has(&look.experiment, look.seq, look.labels)
                || counted.is_claim_elsewhere(&look.experiment, look.is_claimed)
        });
        let mut compared = all.filter(|look| {
            let policies = look.family.iter();
            let shared = policies.filter(|policy| is_shared(&look.experiment, policy));
            shared.count() > 1
        });
        let is_enough = counted.scope.is_value_enough_elsewhere;
        let enough = if is_enough { 1 } else { 2 };
        let mut seen: BTreeMap<&ExperimentId, BTreeSet<&PolicyId>> = BTreeMap::new();
        let mut valued = self.values.iter().filter(|look| {
            let is_counted = counted.has(&look.experiment, look.seq, look.labels)
                || counted.is_claim_elsewhere(&look.experiment, false);
            if !is_counted || !is_shared(&look.experiment, &look.policy) {
                return false;
            }
            let policies = seen.entry(&look.experiment).or_default();
            policies.insert(&look.policy);
            policies.len() >= enough
        });
        let first = [
            compared.next().map(|look| look.seq),
            valued.next().map(|look| look.seq),
        ];
        let (seq, kind) = (first.into_iter().flatten().min()?, LookKind::Elsewhere);
        Some(EarlierLook { seq, kind })
    }

    /// What a comparison that is recorded now says of earlier looks. One whose like is on record since before they were counted
    /// says what that did: nothing.
    pub fn to_say(&self, scope: &LookScope, of: &ContrastRecorded) -> Option<u64> {
        if self.same(scope, of).is_some_and(|look| !look.is_counted) {
            return None;
        }
        self.earlier(scope, of).map(|look| look.seq)
    }
}

impl Fold for OrderLooks {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        self.take(seq, event.experiment(), &event.payload);
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// What a comparison of the experiment says of earlier looks, by the rulebook in force.
pub fn said(state: &State, experiment: &ExperimentId, of: &ContrastRecorded) -> Option<Count> {
    if !state.asks(Question::EarlierLooks) {
        return None;
    }
    let scope = LookScope::of(state, experiment);
    let found = state.fold::<OrderLooks>().to_say(&scope, of);
    found.and_then(Count::new)
}

/// A comparison names the first look that makes its order exploratory.
pub(super) fn check(state: &State, experiment: &ExperimentId, of: &ContrastRecorded) -> RuleAnswer {
    if !state.asks(Question::EarlierLooks) {
        return Ok(());
    }
    let wanted = said(state, experiment, of);
    let words = |seq: Option<Count>| seq.map_or("none".to_owned(), |seq| format!("seq {seq}"));
    ensure!(
        of.exploratory_since == wanted,
        format!(
            "exploratory_since, the first look at this order before: {}",
            words(wanted)
        ),
        words(of.exploratory_since)
    );
    Ok(())
}
