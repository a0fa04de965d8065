//! How far a run of an optimizer is, when it ends, and what comes of it: from the log alone.

use clover_event::payload::synth_runs::AnswerState;
use clover_event::payload::synth_runs::CandidateCode;
use clover_event::payload::synth_runs::SynthCandidate;
use clover_event::payload::synth_runs::SynthEnd;
use clover_event::payload::synth_runs::SynthReturned;
use clover_event::payload::synthesis::DevObjectiveQueried;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::SynthRecord;
use clover_projection::reader::LogStatement;
use clover_projection::synths::is_passing;

use crate::iterate::selection;
use crate::iterate::selection::Rival;
use crate::patches::Bench;
use crate::synth::view::ViewLeft;

/// Rounds that a run may go on with nothing new.
const PATIENCE: usize = 2;

/// A run as it stands after an entry.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    record: &'a IterationRecord,
    run: &'a SynthRecord,
    through: u64,
}

/// A candidate that is proposed at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// Its family.
    pub family: String,
    /// The hash of its diff.
    pub hash: Digest,
    /// Its name.
    pub id: String,
    /// The round that returned it.
    pub round: usize,
    /// Its document.
    pub yaml: String,
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

impl<'a> Progress<'a> {
    /// Of a run, from what the log says through a position.
    pub fn of(record: &'a IterationRecord, run: &'a SynthRecord, through: u64) -> Self {
        Self {
            record,
            run,
            through,
        }
    }

    fn receipts(&self) -> impl Iterator<Item = &'a LogStatement<DevObjectiveQueried>> {
        let through = self.through;
        let all = self.record.receipts.iter();
        all.filter(move |of| of.seq <= through)
    }

    fn answers(&self) -> impl Iterator<Item = &'a SynthReturned> {
        let through = self.through;
        let all = self.run.returned.iter();
        all.filter(move |of| of.seq <= through).map(|of| &of.said)
    }

    /// What the dev objective said of a candidate.
    pub fn receipt(&self, candidate: Digest) -> Option<&'a DevObjectiveQueried> {
        let mut all = self.receipts();
        let found = all.find(|of| of.said.candidate == candidate)?;
        Some(&found.said)
    }

    /// Dev calls since it was opened, as long as it is open.
    pub fn dev_calls(&self) -> u64 {
        let end = self.run.stopped.as_ref().map_or(u64::MAX, |of| of.seq);
        let mine = self.receipts();
        let mine = mine.filter(|of| of.seq > self.run.opened.seq && of.seq < end);
        mine.count() as u64
    }

    /// Dev calls that are left to it: within its own number, and that of the plan.
    pub fn dev_calls_left(&self) -> u64 {
        let own = self.run.opened.said.dev_calls.value();
        let design = self.record.opened.said.params.design.as_ref();
        let most = design.map_or(0, |design| design.dev_calls_max.value());
        let all = self.receipts().count() as u64;
        let all = all.saturating_add(self.record.dev_calls_elsewhere);
        let left = own.saturating_sub(self.dev_calls());
        left.min(most.saturating_sub(all))
    }

    /// What is left to it.
    pub fn left(&self) -> ViewLeft {
        let asked = self.run.asked.iter().filter(|of| of.seq <= self.through);
        let rounds = self.run.opened.said.rounds.value();
        ViewLeft {
            dev_calls: count(self.dev_calls_left()),
            rounds: count(rounds.saturating_sub(asked.count() as u64)),
        }
    }

    /// Candidates of the last answer that passed every check and have no receipt.
    pub fn unscored(&self) -> Vec<&'a SynthCandidate> {
        let last = self.answers().last();
        let all = last.into_iter().flat_map(|of| &of.candidates);
        let is_new = |of: &&SynthCandidate| {
            of.patch_hash
                .is_some_and(|hash| self.receipt(hash).is_none())
        };
        all.filter(|of| of.code.is_none()).filter(is_new).collect()
    }

    /// Whether each round brought a passing candidate that is better than any before, or, as long as none has passed, one
    /// that is.
    fn improving(&self) -> Vec<bool> {
        let (mut passing, mut any) = (None::<f64>, None::<f64>);
        let is_below = |best: Option<f64>, worth: f64| best.is_none_or(|best| worth < best);
        let round = |answer: &SynthReturned| {
            let mut improves = false;
            let hashes = answer.candidates.iter().filter_map(|of| of.patch_hash);
            for receipt in hashes.filter_map(|hash| self.receipt(hash)) {
                let worth = receipt.risk_improve.value();
                if is_passing(&receipt.answers) {
                    improves |= is_below(passing, worth);
                    passing = Some(passing.map_or(worth, |best| best.min(worth)));
                } else if passing.is_none() {
                    improves |= is_below(any, worth);
                }
                any = Some(any.map_or(worth, |best| best.min(worth)));
            }
            improves
        };
        self.answers().map(round).collect()
    }

    /// Why it ends, once every candidate of the last answer has its receipt or can have none; `None` where it goes on.
    pub fn due(&self) -> Option<SynthEnd> {
        let answers: Vec<&SynthReturned> = self.answers().collect();
        let last = answers.last()?;
        if last.state == AnswerState::Read && last.candidates.is_empty() {
            return Some(SynthEnd::Empty);
        }
        if self.dev_calls_left() == 0 {
            return Some(SynthEnd::DevCalls);
        }
        if answers.len() as u64 >= self.run.opened.said.rounds.value() {
            return Some(SynthEnd::Rounds);
        }
        let newest = &answers[answers.len().checked_sub(PATIENCE)?..];
        let codes = newest.iter().flat_map(|of| &of.candidates);
        let codes: Vec<Option<CandidateCode>> = codes.map(|of| of.code).collect();
        let lost = newest.iter().filter(|of| of.state != AnswerState::Read);
        let lost = lost.count();
        let of = |wanted: &[CandidateCode]| {
            let is = |code: &&Option<CandidateCode>| code.is_some_and(|of| wanted.contains(&of));
            codes.iter().filter(is).count()
        };
        let unread = lost
            + of(&[
                CandidateCode::Parse,
                CandidateCode::Keys,
                CandidateCode::Oversize,
            ]);
        if unread > 0 && unread * 2 >= codes.len() + lost {
            return Some(SynthEnd::Unreadable);
        }
        let again = of(&[CandidateCode::DuplicateDiff, CandidateCode::DuplicateId]);
        if again > 0 && again * 5 >= codes.len() * 4 {
            return Some(SynthEnd::Duplicates);
        }
        let stalls = self.improving().iter().rev().take(PATIENCE).all(|of| !of);
        stalls.then_some(SynthEnd::Stalled)
    }

    /// Whether somebody else proposed an edit.
    fn is_put_forward(&self, hash: Digest) -> bool {
        let run = &self.run.opened.said.run;
        let mut all = self.record.proposed.iter();
        all.any(|of| of.said.patch_hash == hash && of.said.run.as_ref() != Some(run))
    }

    /// Candidates that passed, the best of each family; of two of one name the better.
    pub fn winners(&self, bench: &Bench) -> Vec<Winner> {
        let loose = Bench {
            ids: std::collections::BTreeSet::new(),
            hashes: std::collections::BTreeSet::new(),
            ..bench.clone()
        };
        let mut found: Vec<(Winner, f64, bool)> = Vec::new();
        for (round, answer) in self.answers().enumerate() {
            for of in answer.candidates.iter().filter(|of| of.code.is_none()) {
                let Some((hash, yaml)) = of.patch_hash.zip(of.yaml.as_ref()) else {
                    continue;
                };
                if self.is_put_forward(hash) {
                    continue;
                }
                let receipt = self.receipt(hash).filter(|of| is_passing(&of.answers));
                let Some(receipt) = receipt else {
                    continue;
                };
                let Ok((patch, checked)) = loose.check(yaml.as_str().as_bytes(), None) else {
                    continue;
                };
                let mut paths = checked.diff.iter();
                let obliges = paths.any(|change| change.path.starts_with("obligations."));
                let winner = Winner {
                    family: patch.family.as_str().to_owned(),
                    hash,
                    id: patch.id,
                    round,
                    yaml: yaml.as_str().to_owned(),
                };
                found.push((winner, receipt.risk_improve.value(), obliges));
            }
        }
        let rivals = found.iter().map(|(winner, improve, obliges)| Rival {
            family: &winner.family,
            hash: winner.hash,
            improve: *improve,
            obliges: *obliges,
        });
        let rivals: Vec<Rival<'_>> = rivals.collect();
        let mut winners: Vec<Winner> = Vec::new();
        for place in selection::best_of_families(&rivals) {
            let winner = &found[place].0;
            if winners.iter().all(|of| of.id != winner.id) {
                winners.push(winner.clone());
            }
        }
        winners
    }
}
