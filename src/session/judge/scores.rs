//! Scores as the entries say them: how many draws each item has, and every score of one item.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::State;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::tallies::DrawCounts;
use clover_projection::tallies::Tallies;

/// Whose scores, and of whose responses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScoreKey {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// The policy that answered.
    pub policy: PolicyId,
}

/// How many draws there are of each item, by experiment, judge and policy. The entries are read only where some items have
/// other draws than the rest.
///
/// # Errors
/// When the ledger cannot be read.
pub fn draws(
    ledger: &Ledger,
    state: &State,
) -> Result<BTreeMap<ScoreKey, DrawCounts>, LedgerError> {
    match counted(state.fold::<Tallies>()) {
        Some(counts) => Ok(counts),
        None => draws_of_entries(ledger, state.size),
    }
}

fn counted(tallies: &Tallies) -> Option<BTreeMap<ScoreKey, DrawCounts>> {
    let mut counts = BTreeMap::new();
    for (experiment, judges) in &tallies.scores {
        for (judge, policies) in judges {
            for (policy, draws) in policies {
                let key = ScoreKey {
                    experiment: experiment.clone(),
                    judge: judge.clone(),
                    policy: policy.clone(),
                };
                counts.insert(key, draws.counts()?);
            }
        }
    }
    Some(counts)
}

fn draws_of_entries(
    ledger: &Ledger,
    size: u64,
) -> Result<BTreeMap<ScoreKey, DrawCounts>, LedgerError> {
    let mut all: BTreeMap<ScoreKey, BTreeMap<ItemId, u64>> = BTreeMap::new();
    ledger.entries::<LedgerError>(0, size, |read| {
        let experiment = read.event.header.experiment;
        if let (Payload::ScoreRecorded(said), Some(experiment)) = (read.event.payload, experiment) {
            let key = ScoreKey {
                experiment,
                judge: said.judge,
                policy: said.policy,
            };
            *all.entry(key).or_default().entry(said.item).or_default() += 1;
        }
        Ok(())
    })?;
    let counts = all.into_iter().map(|(key, items)| {
        let counts = DrawCounts {
            items: items.len() as u64,
            scores: items.values().sum(),
            redrawn: items.values().filter(|draws| **draws > 1).count() as u64,
            draws_max: items.values().max().copied().unwrap_or(0),
        };
        (key, counts)
    });
    Ok(counts.collect())
}

/// A score of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemScore {
    /// Where it stands.
    pub seq: u64,
    /// Whose it is.
    pub key: ScoreKey,
    /// Which draw of the item.
    pub draw: Count,
    /// The score.
    pub score: Micro,
    /// Whether it differs from the recorded one, which stands.
    pub is_conflict: bool,
}

/// Every score of an item: those recorded by experiment, judge, policy and draw, then conflicts in order.
///
/// # Errors
/// When the ledger cannot be read.
pub fn of_item(ledger: &Ledger, size: u64, item: &str) -> Result<Vec<ItemScore>, LedgerError> {
    let (mut recorded, mut conflicts) = (Vec::new(), Vec::new());
    ledger.entries::<LedgerError>(0, size, |read| {
        let Some(experiment) = read.event.header.experiment else {
            return Ok(());
        };
        let seq = read.stored.seq;
        let score = |judge, policy, draw, score, is_conflict| ItemScore {
            seq,
            key: ScoreKey {
                experiment,
                judge,
                policy,
            },
            draw,
            score,
            is_conflict,
        };
        match read.event.payload {
            Payload::ScoreRecorded(of) if of.item.as_str() == item => {
                recorded.push(score(of.judge, of.policy, of.draw, of.score_micro, false));
            }
            Payload::ScoreConflict(of) if of.item.as_str() == item => {
                conflicts.push(score(of.judge, of.policy, of.draw, of.score_micro, true));
            }
            _ => {}
        }
        Ok(())
    })?;
    recorded.sort_by(|a: &ItemScore, b| (&a.key, a.draw, a.seq).cmp(&(&b.key, b.draw, b.seq)));
    recorded.append(&mut conflicts);
    Ok(recorded)
}
