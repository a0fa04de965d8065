//! Scores that were imported: a judge that cannot be asked anew.

use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_num::Count;
use clover_num::Micro;

use crate::judge::Answer;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;

/// Scores by policy, item and draw. It answers for these draws and no other text: an edited response has no recorded score,
/// which is why the battery cannot run on it.
#[derive(Clone, Debug, Default)]
pub struct RecordedScores {
    scores: BTreeMap<(PolicyId, ItemId, Count), Micro>,
}

impl RecordedScores {
    /// Takes a score; the first of a draw stands.
    pub fn take(&mut self, policy: PolicyId, item: ItemId, draw: Count, score: Micro) {
        self.scores.entry((policy, item, draw)).or_insert(score);
    }
}

impl Judge for RecordedScores {
    fn answer(&mut self, ask: &JudgeQuery<'_>) -> Result<Answer, JudgeError> {
        let key = (ask.policy.clone(), ask.item.clone(), ask.draw);
        let found = self.scores.get(&key).copied();
        found.map(Answer::of).ok_or(JudgeError::Missing)
    }
}
