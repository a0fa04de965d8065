//! Values that may be claimed, for those who show no others.

use crate::event::payload::estimate::EstimateRecorded;
use crate::view::estimate::Estimates;
use crate::view::values::Ends;

impl Estimates<'_> {
    /// The sentence that answers, of what is on record; and each value that may be claimed, with the interval in force.
    pub fn claimed(&self) -> (String, Vec<(&EstimateRecorded, Option<Ends>)>) {
        let answer = self.facts(true).answer;
        let is_claimed = |row: &EstimateRecorded| {
            let mut named = answer.claimable.iter();
            named.any(|name| name == row.policy.as_str())
        };
        let rows = self.rows.iter().filter(|(_, row)| is_claimed(row));
        let rows = rows.map(|(policy, row)| (row, self.decisive(*policy, row)));
        (answer.answer.text.clone(), rows.collect())
    }
}
