//! What a battery attacks, as the log says it: scores of one judge, which keep the texts, and exploits that were known.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::battery::ExploitDiscovered;
use clover_event::payload::judge::ScoreRecorded;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;

use crate::reader::LogReader;
use crate::reader::Model;

/// Scores of one judge and exploits of its experiment, in order.
#[derive(Debug, Default)]
pub struct AttackedRows {
    scores: BTreeMap<(PolicyId, ItemId, u64), ScoreRecorded>,
    /// Exploits.
    pub exploits: Vec<ExploitDiscovered>,
}

/// The same while it is read.
struct AttackedReader<'a> {
    judge: &'a JudgeId,
    rows: AttackedRows,
}

impl Model for AttackedReader<'_> {
    fn take(&mut self, _: u64, event: &Event) {
        match &event.payload {
            Payload::ScoreRecorded(said) if said.judge == *self.judge => {
                let key = (said.policy.clone(), said.item.clone(), said.draw.value());
                let of = self.rows.scores.entry(key);
                of.or_insert_with(|| (**said).clone());
            }
            Payload::ExploitDiscovered(said) => self.rows.exploits.push((**said).clone()),
            _ => {}
        }
    }
}

impl AttackedRows {
    /// Reads the entries of an experiment below a position.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn below(
        history: &dyn History,
        experiment: &ExperimentId,
        judge: &JudgeId,
        below: u64,
    ) -> Result<Self, LedgerError> {
        let rows = Self::default();
        let entries = LogReader::below(history, below).of(experiment);
        Ok(entries.into_model(AttackedReader { judge, rows })?.rows)
    }

    /// The score of a draw; of several, the first.
    pub fn score(&self, policy: &PolicyId, item: &ItemId, draw: Count) -> Option<&ScoreRecorded> {
        let key = (policy.clone(), item.clone(), draw.value());
        self.scores.get(&key)
    }
}
