//! Scores as the entries say them: how many draws each item has, and every score of one item.

use std::collections::BTreeMap;

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Micro;

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

/// How many draws a judge scored of a policy's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrawCounts {
    /// Items.
    pub items: u64,
    /// Scores, one for each draw.
    pub scores: u64,
    /// Items with more than one draw.
    pub redrawn: u64,
    /// Draws of the item that has the most.
    pub draws_max: u64,
}

/// How many draws there are of each item, by experiment, judge and policy.
///
/// # Errors
/// When the ledger cannot be read.
pub fn draws(ledger: &Ledger) -> Result<BTreeMap<ScoreKey, DrawCounts>, LedgerError> {
    let mut all: BTreeMap<ScoreKey, BTreeMap<ItemId, u64>> = BTreeMap::new();
    ledger.entries::<LedgerError>(0, ledger.size(), |read| {
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
pub fn of_item(ledger: &Ledger, item: &str) -> Result<Vec<ItemScore>, LedgerError> {
    let (mut recorded, mut conflicts) = (Vec::new(), Vec::new());
    ledger.entries::<LedgerError>(0, ledger.size(), |read| {
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
