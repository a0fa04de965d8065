//! The assumptions ledger: what every claim rests on, with what is known of it. Rows never disappear.
//!
//! `updates` says which kinds move which rows: a new kind is a line there. `standing` gives the rows as of a
//! ledger time. The rules `sdp`, `waiver` and `blocked` read this state. CLOVER v1.1, section 12.

mod catalogue;
mod rules;
mod standing;
mod updates;
#[cfg(test)]
mod updates_tests;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

pub use catalogue::CatalogueEntry;
pub use catalogue::entry;
pub use rules::Bridge;
pub use rules::GOVERNED;
pub use standing::Standing;
pub use standing::rows;
pub use standing::standing;
pub use updates::READS;

use updates::Update;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ProtocolId;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::assumption::SdpVersionRegistered;
use clover_event::payload::predicate::Evidence as GateEvidence;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::Fold;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;

/// What is known of an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every part of it was looked at and holds.
    Pass,
    /// Nobody looked, or not at every part.
    Untested,
    /// It holds with reservations.
    Warn,
    /// The evidence does not decide.
    Inconclusive,
    /// What was found is too old, or about something else by now.
    Stale,
    /// It does not hold.
    Fail,
    /// It does not hold or was not tested, and two people answer for going on.
    Waived,
}

impl Status {
    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Untested => "untested",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
            Self::Stale => "stale",
            Self::Fail => "fail",
            Self::Waived => "waived",
        }
    }
}

/// What an event showed of one part of an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Ledger time of the event.
    pub at: Timestamp,
    /// Until when it holds.
    pub expires_at: Option<Timestamp>,
    /// The event.
    pub seq: u64,
    /// What it showed.
    pub status: Status,
}

/// The agreement of a second key to a waiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Who agreed.
    pub author: KeyId,
    /// The event.
    pub seq: u64,
}

/// A waiver; it holds from its second key on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The second key's agreement.
    pub agreed: Option<Agreement>,
    /// Who proposed it.
    pub author: KeyId,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The event that proposed it.
    pub id: EventId,
    /// Why.
    pub reason: String,
    /// Its position.
    pub seq: u64,
}

/// One assumption, of the ledger or of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssumptionRow {
    /// The newest waiver that two keys agreed to.
    pub granted: Option<Waiver>,
    /// What was found, by part, and within it by what it is about: policies, iterations, what runs. Rulebook 21 on reads it.
    pub found_of: BTreeMap<String, BTreeMap<String, Evidence>>,
    /// What was found, by part: the newest.
    pub parts: BTreeMap<String, Evidence>,
    /// The newest waiver that waits for a second key.
    pub proposed: Option<Waiver>,
}

/// Rows that anything was said of; all others are untested.
pub type AssumptionRows = BTreeMap<Assumption, AssumptionRow>;

/// The part of CLOVER.J2 that asking again speaks of.
const REPLAY: &str = "replay";

/// What says that a judge contradicted itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// Answers of a judge that has to say the same again, and did not.
    NoiseMeasured,
    /// A score that differs from the recorded one.
    ScoreConflict,
    /// A re-score with a mismatch.
    ScoreReplayed,
}

impl Witness {
    /// Its kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::NoiseMeasured => Kind::NoiseMeasured,
            Self::ScoreConflict => Kind::ScoreConflict,
            Self::ScoreReplayed => Kind::ScoreReplayed,
        }
    }
}

/// The first time that a judge contradicted itself. Nothing that is recorded later takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// The entry.
    pub seq: u64,
    /// What it is.
    pub witness: Witness,
}

/// What is known of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentAssumptions {
    /// The first time that a judge of it contradicted itself.
    pub contradicted: Option<Contradiction>,
    /// The same by judge.
    pub contradicted_by: BTreeMap<JudgeId, Contradiction>,
    /// Whether a label design is registered in it.
    pub is_governed: bool,
    /// Of patches that add to obligations and were judged on dev: those that lowered the squared error, and all.
    pub obligations: (u64, u64),
    /// Patches that add to obligations, by hash, until they are judged.
    pub obliging: BTreeSet<String>,
    /// Its rows.
    pub rows: AssumptionRows,
}

/// A registered version of the label protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdpVersion {
    /// From when it is in force.
    pub effective_at: Timestamp,
    /// The event.
    pub seq: u64,
    /// Its name.
    pub version: ProtocolId,
}

/// Every assumption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumptions {
    /// Rows of experiments.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentAssumptions>,
    /// Rows of the whole ledger.
    pub of_ledger: AssumptionRows,
    /// Versions of the label protocol, in the order of their registration.
    pub sdp: Vec<SdpVersion>,
}

impl AssumptionRow {
    /// What was found of a part: the worst of what it is about, each by its newest finding; else the newest finding. Before
    /// rulebook 21 always the newest, of iterations alone.
    pub fn found(&self, part: &str, state: &State) -> Option<Evidence> {
        let of = self.found_of.get(part);
        let of = of.filter(|_| state.asks(Question::FoundOfEach));
        let each = of.into_iter().flat_map(BTreeMap::values);
        let worst = each.max_by_key(|evidence| (evidence.status, evidence.seq));
        let whole = self.parts.get(part);
        // Judges that are no models behind HTTP stand beside what was found of each that is one.
        let both = worst.into_iter().chain(whole.filter(|_| part == REPLAY));
        let both = both.max_by_key(|evidence| (evidence.status, evidence.seq));
        both.or(whole).copied()
    }

    /// Takes in what was found of a part.
    fn take(&mut self, update: &Update, evidence: Evidence) {
        let part = update.part.to_owned();
        match &update.of {
            Some(of) => {
                let each = self.found_of.entry(part).or_default();
                each.insert(of.key().to_owned(), evidence);
            }
            None => {
                self.parts.insert(part, evidence);
            }
        }
    }
}

impl Assumptions {
    /// A row, when anything was said of it.
    pub fn row(
        &self,
        code: Assumption,
        experiment: Option<&ExperimentId>,
    ) -> Option<&AssumptionRow> {
        if code.is_of_ledger() {
            return self.of_ledger.get(&code);
        }
        self.by_experiment.get(experiment?)?.rows.get(&code)
    }

    fn row_mut(
        &mut self,
        code: Assumption,
        experiment: Option<&ExperimentId>,
    ) -> Option<&mut AssumptionRow> {
        let rows = if code.is_of_ledger() {
            &mut self.of_ledger
        } else {
            &mut self
                .by_experiment
                .entry(experiment?.clone())
                .or_default()
                .rows
        };
        Some(rows.entry(code).or_default())
    }

    /// The version of the label protocol in force: the newest that is effective.
    pub fn sdp_in_force(&self, now: Timestamp) -> Option<&SdpVersion> {
        let mut versions = self.sdp.iter().rev();
        versions.find(|version| version.effective_at <= now)
    }

    /// The entry by which an assumption fails, if it does.
    pub fn failed(&self, code: Assumption, experiment: Option<&ExperimentId>) -> Option<u64> {
        let parts = self.row(code, experiment)?.parts.values();
        let failed = parts.filter(|evidence| evidence.status == Status::Fail);
        failed.map(|evidence| evidence.seq).min()
    }

    /// By which entry the judge of an experiment contradicts itself, if it does. From rulebook 20 on that lasts; before, the
    /// newest re-score counts.
    pub fn contradicted(&self, state: &State, experiment: &ExperimentId) -> Option<Contradiction> {
        let of = self.by_experiment.get(experiment)?;
        if state.asks(Question::LastingContradiction) {
            return of.contradicted;
        }
        let parts = of.rows.get(&Assumption::CloverJ2)?.parts.iter();
        let failed = parts.filter(|(_, evidence)| evidence.status == Status::Fail);
        let (part, evidence) = failed.min_by_key(|(_, evidence)| evidence.seq)?;
        Some(Contradiction {
            seq: evidence.seq,
            witness: match part.as_str() {
                "replay" => Witness::ScoreReplayed,
                _ => Witness::ScoreConflict,
            },
        })
    }

    /// By which entry one judge of an experiment contradicts itself, if it does: the others may be claimed on.
    pub fn contradicted_by(
        &self,
        state: &State,
        experiment: &ExperimentId,
        judge: &JudgeId,
    ) -> Option<Contradiction> {
        let of_judge = self.by_experiment.get(experiment)?;
        let of_judge = of_judge.contradicted_by.get(judge).copied();
        if state.asks(Question::LastingContradiction) {
            return of_judge;
        }
        self.contradicted(state, experiment)
            .filter(|_| of_judge.is_some())
    }

    /// Remembers that a judge contradicted itself.
    fn contradict(&mut self, event: &VerifiedEvent<'_>) {
        let (judge, witness) = match &event.event().payload {
            Payload::ScoreConflict(conflict) => (&conflict.judge, Witness::ScoreConflict),
            Payload::ScoreReplayed(replayed) if replayed.mismatches.value() > 0 => {
                (&replayed.judge, Witness::ScoreReplayed)
            }
            Payload::NoiseMeasured(of)
                if of.sd_max_micro.is_none() && of.figures.differing.value() > 0 =>
            {
                (&of.judge, Witness::NoiseMeasured)
            }
            _ => return,
        };
        if let Some(experiment) = event.event().experiment() {
            let of = self.by_experiment.entry(experiment.clone()).or_default();
            let seq = event.seq();
            let found = Contradiction { seq, witness };
            of.contradicted.get_or_insert(found);
            let known = of.contradicted_by.entry(judge.clone());
            known.or_insert(found);
        }
    }

    fn registered(&mut self, event: &VerifiedEvent<'_>, new: &SdpVersionRegistered) {
        if self.sdp.iter().any(|old| old.version == new.sdp_version) {
            return;
        }
        self.sdp.push(SdpVersion {
            effective_at: new.effective_at,
            seq: event.seq(),
            version: new.sdp_version.clone(),
        });
        let stale = Evidence {
            at: event.recorded_at(),
            expires_at: None,
            seq: event.seq(),
            status: Status::Stale,
        };
        for part in entry(Assumption::A0).parts {
            let row = self.of_ledger.entry(Assumption::A0).or_default();
            row.parts.insert(part.name.to_owned(), stale);
        }
        // What nobody attested yet stays untested.
        if let Some(row) = self.of_ledger.get_mut(&Assumption::A1A3) {
            row.parts.values_mut().for_each(|part| *part = stale);
        }
    }

    /// Remembers patches that add to obligations, and counts those that P1 judged.
    fn obliged(&mut self, experiment: Option<&ExperimentId>, payload: &Payload) {
        let Some(experiment) = experiment else {
            return;
        };
        match payload {
            Payload::PatchProposed(said) if updates::adds_obligation(&said.diff) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                of.obliging.insert(said.patch_hash.to_hex());
            }
            Payload::GateEvaluated(said) => {
                let of = self.by_experiment.get_mut(experiment);
                if let (Some(of), GateEvidence::P1(loss)) = (of, &said.evidence)
                    && of.obliging.remove(&said.candidate.to_hex())
                {
                    of.obligations = updates::with_one_more(of.obligations, loss);
                }
            }
            _ => {}
        }
    }

    fn found(&mut self, event: &VerifiedEvent<'_>) {
        let experiment = event.event().experiment();
        let mut found = Vec::new();
        {
            let of = experiment.and_then(|id| self.by_experiment.get(id));
            updates::found(&event.event().payload, of, &mut |update| found.push(update));
        }
        for update in found {
            let Some(row) = self.row_mut(update.code, experiment) else {
                continue;
            };
            let is_sticky = entry(update.code).part(update.part).is_sticky;
            let old = row.parts.get(update.part);
            if is_sticky && old.is_some_and(|old| old.status == Status::Fail) {
                continue;
            }
            let evidence = Evidence {
                at: event.recorded_at(),
                expires_at: update.expires_at,
                seq: event.seq(),
                status: update.status,
            };
            row.take(&update, evidence);
        }
    }
}

impl Fold for Assumptions {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let header = &event.event().header;
        let experiment = header.experiment.as_ref();
        match &event.event().payload {
            Payload::SdpVersionRegistered(new) => self.registered(event, new),
            Payload::AssumptionWaived(new) => {
                if let Some(row) = self.row_mut(new.code, experiment) {
                    row.proposed = Some(Waiver {
                        agreed: None,
                        author: header.author,
                        expires_at: new.expires_at,
                        id: event.event().id,
                        reason: new.reason.as_str().to_owned(),
                        seq: event.seq(),
                    });
                }
            }
            Payload::AssumptionCountersigned(new) => {
                let of = self
                    .by_experiment
                    .values_mut()
                    .flat_map(|of| of.rows.values_mut());
                let mut rows = self.of_ledger.values_mut().chain(of);
                let waits = |row: &&mut AssumptionRow| {
                    row.proposed.as_ref().is_some_and(|of| of.id == new.waiver)
                };
                if let Some(row) = rows.find(waits) {
                    row.granted = row.proposed.take().map(|waiver| Waiver {
                        agreed: Some(Agreement {
                            author: header.author,
                            seq: event.seq(),
                        }),
                        ..waiver
                    });
                }
            }
            payload => {
                self.found(event);
                self.contradict(event);
                self.obliged(experiment, payload);
                if let (Payload::LabelDesignRegistered(_), Some(id)) = (payload, experiment) {
                    self.by_experiment
                        .entry(id.clone())
                        .or_default()
                        .is_governed = true;
                }
            }
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
