//! Runs of optimizers that see only cards: what each was shown, what it returned, and what came of it. The rule `synth`
//! reads it.

pub mod rules;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::id::RunId;
use clover_event::payload::Verdict;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::record::ReadOutcome;
use clover_event::payload::synth_runs::SynthEnd;
use clover_event::payload::synth_runs::SynthOpened;
use clover_event::payload::synthesis::GateAnswer;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::DataRead,
    Kind::DevObjectiveQueried,
    Kind::LabelRecorded,
    Kind::LabelSealed,
    Kind::PatchProposed,
    Kind::ScoreRecorded,
    Kind::SynthAsked,
    Kind::SynthOpened,
    Kind::SynthReturned,
    Kind::SynthStopped,
];

/// Whether answers of the dev objective let a candidate be proposed: P1 to P5 pass, and P6 and P7 do where somebody looked.
/// The gates of the iteration decide about both again.
pub fn is_passing(answers: &[GateAnswer]) -> bool {
    let lets = |of: &GateAnswer| match of.gate {
        Criterion::P6 | Criterion::P7 => {
            matches!(of.verdict, Verdict::Pass | Verdict::NotChecked)
        }
        Criterion::P1 | Criterion::P2 | Criterion::P3 | Criterion::P4 | Criterion::P5 => {
            of.verdict == Verdict::Pass
        }
        _ => true,
    };
    answers.iter().all(lets)
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthRun {
    /// Rounds in which it was asked.
    pub asked: u64,
    /// Dev calls since it was opened.
    pub dev_calls: u64,
    /// How it ended.
    pub end: Option<SynthEnd>,
    /// The experiment.
    pub experiment: ExperimentId,
    /// What the last view held.
    pub inputs: Vec<Digest>,
    /// Patches that came of it, by family.
    pub proposed: BTreeMap<String, PatchId>,
    /// Classes that were released to its key since it was last asked.
    pub released: BTreeSet<String>,
    /// Rounds that were answered.
    pub returned: u64,
    /// As it was opened.
    pub said: SynthOpened,
    /// Where.
    pub seq: u64,
    /// Candidates that passed every check of patches.
    pub valid: BTreeSet<Digest>,
    /// The digest of its last view.
    pub view: Option<Digest>,
    /// Digests of its views.
    pub views: BTreeSet<Digest>,
}

impl SynthRun {
    /// The round that was shown a view and is not answered yet, with the digest of that view.
    pub fn awaited(&self) -> Option<(u64, Digest)> {
        let view = self.view.filter(|_| self.asked > self.returned);
        view.map(|view| (self.returned, view))
    }
}

/// Every run, and who scored or labelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synths {
    /// By name.
    pub by_id: BTreeMap<RunId, SynthRun>,
    /// Keys that signed a score or a label.
    pub judged: BTreeSet<KeyId>,
    /// Candidates that may be proposed by what the dev objective said of them, by iteration.
    pub passing: BTreeMap<IterationId, BTreeSet<Digest>>,
}

impl Synths {
    /// The run of an iteration that is open.
    pub fn open_in(&self, iteration: &IterationId) -> Option<&SynthRun> {
        let mut all = self.by_id.values();
        all.find(|run| run.end.is_none() && run.said.iteration == *iteration)
    }

    /// Whether a key is that of an optimizer in a run.
    pub fn is_optimizer(&self, key: &KeyId) -> bool {
        self.by_id.values().any(|run| run.said.key == *key)
    }

    fn judged(&mut self, author: &KeyId) {
        if !self.judged.contains(author) {
            self.judged.insert(*author);
        }
    }

    fn opened(&mut self, (experiment, seq): (&ExperimentId, u64), said: &SynthOpened) {
        let known = self.by_id.entry(said.run.clone());
        known.or_insert_with(|| SynthRun {
            asked: 0,
            dev_calls: 0,
            end: None,
            experiment: experiment.clone(),
            inputs: Vec::new(),
            proposed: BTreeMap::new(),
            released: BTreeSet::new(),
            returned: 0,
            said: said.clone(),
            seq,
            valid: BTreeSet::new(),
            view: None,
            views: BTreeSet::new(),
        });
    }

    fn open_run(&mut self, iteration: &IterationId) -> Option<&mut SynthRun> {
        let mut all = self.by_id.values_mut();
        all.find(|run| run.end.is_none() && run.said.iteration == *iteration)
    }
}

impl Fold for Synths {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let experiment = event.header.experiment.as_ref();
        match &event.payload {
            Payload::ScoreRecorded(_) | Payload::LabelRecorded(_) | Payload::LabelSealed(_) => {
                self.judged(&event.header.author);
            }
            Payload::DataRead(said) if said.outcome == ReadOutcome::Allowed => {
                let runs = self.by_id.values_mut();
                let to_it = |run: &&mut SynthRun| {
                    run.end.is_none()
                        && run.said.key == said.reader
                        && Some(&run.experiment) == experiment
                };
                for run in runs.filter(to_it) {
                    run.released.insert(said.class.to_string());
                }
            }
            Payload::SynthOpened(said) => {
                if let Some(experiment) = experiment {
                    self.opened((experiment, seq), said);
                }
            }
            Payload::SynthAsked(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.asked += 1;
                    run.inputs.clone_from(&said.inputs);
                    run.released.clear();
                    run.view = Some(said.view_digest);
                    run.views.insert(said.view_digest);
                }
            }
            Payload::SynthReturned(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.returned += 1;
                    let valid = said.candidates.iter().filter(|of| of.code.is_none());
                    run.valid.extend(valid.filter_map(|of| of.patch_hash));
                }
            }
            Payload::SynthStopped(said) => {
                if let Some(run) = self.by_id.get_mut(&said.run) {
                    run.end.get_or_insert(said.reason);
                }
            }
            Payload::DevObjectiveQueried(said) => {
                if is_passing(&said.answers) {
                    let of = self.passing.entry(said.iteration.clone()).or_default();
                    of.insert(said.candidate);
                }
                if let Some(run) = self.open_run(&said.iteration) {
                    run.dev_calls += 1;
                }
            }
            Payload::PatchProposed(said) => {
                let run = said.run.as_ref().and_then(|run| self.by_id.get_mut(run));
                if let Some(run) = run {
                    let of = run.proposed.entry(said.family.to_string());
                    of.or_insert_with(|| said.patch.clone());
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
