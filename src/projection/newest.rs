//! The newest entries of each kind that estimates read, and who signed them: an arbiter that reads through an older one chooses
//! what it finds.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::RowId;
use clover_event::payload::Verdict;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::label::draw_of_row;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::reader::LogReader;
use crate::said::RESPONSE_LENGTH;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::DataIngested,
    Kind::EnvironmentsTested,
    Kind::JudgeDriftChecked,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LabelSealed,
    Kind::LogprobRecorded,
    Kind::LogprobsChecked,
    Kind::RegimeSelected,
    Kind::ScoreRecorded,
    Kind::TransportTested,
];

/// The newest entry of each key.
pub type NewestSigners = BTreeMap<KeyId, u64>;

/// An audit that passed, or a test of a family of environments in which one did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassedAudit {
    /// Who signed it.
    pub author: KeyId,
    /// The design of its probes.
    pub design: DesignId,
    /// The family that was tested; of an audit of a policy none.
    pub family: Option<FamilyId>,
    /// The policy that was audited; of a family none.
    pub policy: Option<PolicyId>,
    /// By how many prompts, or probes of a family.
    pub prompts: u64,
    /// The key of the environment whose rows alone were read; empty for all.
    pub scope: String,
    /// Its entry.
    pub seq: u64,
}

impl PassedAudit {
    /// Whether it bears on what is said of a policy over these rows.
    pub fn is_about(&self, policy: &PolicyId, environment: Option<&EnvironmentScope>) -> bool {
        match &self.policy {
            Some(of) => of == policy && self.scope == scope_key(environment),
            None => true,
        }
    }

    /// Whether it audits the same as another.
    pub fn is_again(&self, other: &Self) -> bool {
        let of = |audit: &Self| {
            let (policy, family) = (audit.policy.clone(), audit.family.clone());
            (policy, family, audit.scope.clone())
        };
        of(self) == of(other)
    }
}

/// The key of a scope; empty for all rows.
fn scope_key(environment: Option<&EnvironmentScope>) -> String {
    environment.map_or_else(String::new, EnvironmentScope::key)
}

/// The newest entries of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentEntries {
    /// Audits, tests of environments and regimes, by judge.
    pub audits: BTreeMap<JudgeId, u64>,
    /// Checks of drift, by judge.
    pub drifts: BTreeMap<JudgeId, u64>,
    /// Who fitted each calibrator.
    pub fits: BTreeMap<Digest, NewestSigners>,
    /// The newest import.
    pub imports: u64,
    /// Labels for calibration by policy, with who signed them.
    pub labels: BTreeMap<PolicyId, NewestSigners>,
    /// Logged responses, by the policy that gave them.
    pub logged: BTreeMap<PolicyId, u64>,
    /// Audits that passed, by judge.
    pub passed: BTreeMap<JudgeId, Vec<PassedAudit>>,
    /// Who gave, sealed or revealed labels of draws, by design, then policy; of those for calibration only sealed ones.
    pub probes: BTreeMap<DesignId, BTreeMap<PolicyId, NewestSigners>>,
    /// Scores by judge, then policy, with who signed them.
    pub scores: BTreeMap<JudgeId, BTreeMap<PolicyId, NewestSigners>>,
}

/// The newest entries, by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NewestEntries {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentEntries>,
}

/// The value under a key, made where there is none.
fn under<'m, K: Ord + Clone, V: Default>(map: &'m mut BTreeMap<K, V>, key: &K) -> &'m mut V {
    if !map.contains_key(key) {
        map.insert(key.clone(), V::default());
    }
    map.get_mut(key).expect("BUG: it was just put in")
}

impl ExperimentEntries {
    fn take(&mut self, seq: u64, author: KeyId, payload: &Payload) {
        match payload {
            Payload::CalibratorFitted(said) => {
                under(&mut self.fits, &said.calibrator).insert(author, seq);
            }
            Payload::DataIngested(_) => self.imports = seq,
            Payload::EnvironmentsTested(said) => {
                *under(&mut self.audits, &said.terms.judge) = seq;
                let mut verdicts = said.environments.iter().map(|of| of.verdict);
                if verdicts.any(|verdict| verdict == Verdict::Pass) {
                    let passed = PassedAudit {
                        author,
                        design: said.design.clone(),
                        family: Some(said.family.clone()),
                        policy: None,
                        prompts: said.probes.value(),
                        scope: String::new(),
                        seq,
                    };
                    under(&mut self.passed, &said.terms.judge).push(passed);
                }
            }
            Payload::JudgeDriftChecked(said) => *under(&mut self.drifts, &said.judge) = seq,
            Payload::LabelRecorded(said) if said.purpose == LabelPurpose::Calibrate => {
                under(&mut self.labels, &said.policy).insert(author, seq);
            }
            Payload::LabelRecorded(said) => {
                let policies = under(&mut self.probes, &said.design);
                under(policies, &said.policy).insert(author, seq);
            }
            Payload::LabelRevealed(said) => self.handled(author, seq, (&said.design, &said.row)),
            Payload::LabelSealed(said) => self.handled(author, seq, (&said.design, &said.row)),
            Payload::LogprobRecorded(said) => *under(&mut self.logged, &said.policy) = seq,
            Payload::LogprobsChecked(said) => *under(&mut self.logged, &said.policy) = seq,
            Payload::RegimeSelected(said) => *under(&mut self.audits, &said.judge) = seq,
            Payload::ScoreRecorded(said) => {
                let policies = under(&mut self.scores, &said.judge);
                under(policies, &said.policy).insert(author, seq);
            }
            Payload::TransportTested(said) => {
                *under(&mut self.audits, &said.terms.judge) = seq;
                if said.state == TransportState::Pass {
                    let passed = PassedAudit {
                        author,
                        design: said.design.clone(),
                        family: None,
                        policy: Some(said.policy.clone()),
                        prompts: said.clusters.value(),
                        scope: scope_key(said.terms.environment.as_ref()),
                        seq,
                    };
                    under(&mut self.passed, &said.terms.judge).push(passed);
                }
            }
            _ => {}
        }
    }

    /// Somebody sealed or revealed a label; a row of another form is no draw.
    fn handled(&mut self, author: KeyId, seq: u64, (design, row): (&DesignId, &RowId)) {
        if let Some((policy, ..)) = draw_of_row(row) {
            let policies = under(&mut self.probes, design);
            under(policies, &policy).insert(author, seq);
        }
    }

    fn newest_label(&self) -> u64 {
        newest(self.labels.values())
    }

    pub(super) fn newest_score(&self, judge: &JudgeId) -> u64 {
        let of = self.scores.get(judge);
        newest(of.into_iter().flat_map(BTreeMap::values))
    }
}

fn newest<'a>(signers: impl Iterator<Item = &'a NewestSigners>) -> u64 {
    signers
        .flat_map(BTreeMap::values)
        .copied()
        .max()
        .unwrap_or(0)
}

impl Fold for NewestEntries {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        if let Some(id) = &event.header.experiment {
            let of = under(&mut self.by_experiment, id);
            of.take(seq, event.header.author, &event.payload);
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// What a computation reads, and through which entry.
struct ReadEntries<'a> {
    /// The judge whose earlier checks of drift it goes on from; then it reads nothing else here.
    drift: Option<&'a JudgeId>,
    judges: Vec<&'a JudgeId>,
    /// Fields that imports kept part its rows, or are covariates.
    has_fields: bool,
    /// Audits stand for or against it.
    is_audited: bool,
    /// The policy whose logged responses it weights.
    logger: Option<&'a PolicyId>,
    through: Count,
}

impl<'a> ReadEntries<'a> {
    /// On terms of an estimate; of an iteration nothing, whose first step says what all the others read.
    fn new(terms: &'a EstimateTerms, through: Count) -> Option<Self> {
        let is_kept = |of: &&clover_event::id::FieldId| of.as_str() != RESPONSE_LENGTH;
        let has_fields =
            terms.environment.is_some() || terms.covariates.iter().any(|of| is_kept(&of));
        terms.iteration.is_none().then(|| Self {
            drift: None,
            judges: vec![&terms.judge],
            has_fields,
            is_audited: false,
            logger: None,
            through,
        })
    }
}

/// Kinds that say through which entry their rows were read.
pub const COMPUTED: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::ContrastRecorded,
    Kind::CoverageChecked,
    Kind::EnvironmentsTested,
    Kind::EstimateRecorded,
    Kind::JudgeCompared,
    Kind::JudgeDriftChecked,
    Kind::OpeDiagnosed,
    Kind::OpeEstimated,
    Kind::OuaEstimated,
    Kind::PlanRecorded,
    Kind::TransportTested,
];

/// What each of [`COMPUTED`] reads.
fn read(payload: &Payload) -> Option<ReadEntries<'_>> {
    match payload {
        Payload::CalibratorFitted(said) => ReadEntries::new(&said.terms, said.through_seq),
        Payload::ContrastRecorded(said) => {
            // An audit moves the question only where it marks the answer.
            let is_audited = said.first_transport.is_some() || said.second_transport.is_some();
            let read = ReadEntries::new(&said.terms, said.through_seq)?;
            Some(ReadEntries { is_audited, ..read })
        }
        Payload::CoverageChecked(said) => ReadEntries::new(&said.terms, said.through_seq),
        Payload::EnvironmentsTested(said) => {
            let read = ReadEntries::new(&said.terms, said.through_seq)?;
            let has_fields = true;
            Some(ReadEntries { has_fields, ..read })
        }
        Payload::EstimateRecorded(said) => {
            let read = ReadEntries::new(&said.terms, said.through_seq)?;
            let is_audited = true;
            Some(ReadEntries { is_audited, ..read })
        }
        Payload::JudgeDriftChecked(said) => Some(ReadEntries {
            drift: Some(&said.judge),
            judges: Vec::new(),
            has_fields: false,
            is_audited: false,
            logger: None,
            through: said.through_seq,
        }),
        Payload::JudgeCompared(said) => Some(ReadEntries {
            drift: None,
            judges: vec![&said.first, &said.second],
            has_fields: false,
            is_audited: false,
            logger: None,
            through: said.through_seq,
        }),
        Payload::OpeDiagnosed(said) => {
            let read = ReadEntries::new(&said.terms.estimate, said.through_seq)?;
            let logger = Some(&said.terms.logger);
            Some(ReadEntries { logger, ..read })
        }
        Payload::OpeEstimated(said) => {
            let read = ReadEntries::new(&said.terms.estimate, said.through_seq)?;
            let logger = Some(&said.terms.logger);
            Some(ReadEntries { logger, ..read })
        }
        Payload::OuaEstimated(said) => ReadEntries::new(&said.terms, said.through_seq),
        Payload::PlanRecorded(said) => ReadEntries::new(&said.terms, said.through_seq),
        Payload::TransportTested(said) => ReadEntries::new(&said.terms, said.through_seq),
        _ => None,
    }
}

/// What an arbiter computes reads every entry of its kinds that stands before it, and none that does not.
pub(super) fn check(
    state: &State,
    (seq, experiment): (u64, &ExperimentId),
    payload: &Payload,
) -> RuleAnswer {
    let Some(read) = read(payload).filter(|_| state.asks(Question::NewestRead)) else {
        return Ok(());
    };
    let through = read.through.value();
    ensure!(
        through < seq,
        format!("through_seq below {seq}, its own entry"),
        format!("through_seq {through}")
    );
    let Some(of) = state.fold::<NewestEntries>().by_experiment.get(experiment) else {
        return Ok(());
    };
    let scores = read.judges.iter().map(|judge| of.newest_score(judge)).max();
    let audits = read.judges.iter().filter_map(|judge| of.audits.get(*judge));
    let drifts = read.drift.and_then(|judge| of.drifts.get(judge)).copied();
    let labels = Some(of.newest_label()).filter(|_| read.drift.is_none());
    let logged = read.logger.and_then(|logger| of.logged.get(logger));
    let all = [
        ("score", scores),
        ("label for calibration", labels),
        ("check of drift", drifts),
        ("import", Some(of.imports).filter(|_| read.has_fields)),
        ("audit", audits.copied().max().filter(|_| read.is_audited)),
        ("logged response", logged.copied()),
    ];
    for (what, newest) in all {
        let newest = newest.unwrap_or(0);
        ensure!(
            newest <= through,
            format!(
                "through_seq {newest} or later, where the newest {what} stands: compute it anew"
            ),
            format!("through_seq {through}")
        );
    }
    Ok(())
}

/// The first entry of an experiment, up to one, that its key signed from its compromise on: what was decided by then rests on it.
///
/// # Errors
/// [`LedgerError`].
pub fn tainted_through(
    history: &dyn History,
    state: &State,
    experiment: &ExperimentId,
    through: u64,
) -> Result<Option<(u64, KeyId)>, LedgerError> {
    let keys = state.keyring.keys.iter();
    let keys = keys.filter_map(|(key, of)| Some((*key, of.end.as_ref()?.tainted_since?)));
    let since: BTreeMap<KeyId, u64> = keys.collect();
    let mut found = None;
    if since.is_empty() {
        return Ok(found);
    }
    let entries = LogReader::through(history, through).of(experiment);
    entries.each(|seq, event| {
        let author = event.header.author;
        if since.get(&author).is_some_and(|since| *since <= seq) {
            found = Some((seq, author));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind whose natural key names the entry that it was read through is held to the newest one.
    #[test]
    fn every_kind_that_is_known_by_what_it_read_is_held_to_the_newest() {
        for kind in Kind::ALL {
            let parts = kind.natural_key_parts().unwrap_or_default();
            if parts.contains(&"through_seq") {
                assert!(
                    COMPUTED.contains(kind),
                    "{kind} may be read through any entry"
                );
            }
        }
    }
}
