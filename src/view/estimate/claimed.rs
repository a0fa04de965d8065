//! Values that may be claimed, for those who show no others.

use crate::event::payload::estimate::EstimateRecorded;
use crate::view::estimate::Estimates;
use crate::view::estimate::digits;
use crate::view::estimate::ends;
use crate::view::estimate::width::on_scale;
use crate::view::values::Ends;
use crate::view::values::bracket;

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

    /// Where the margin of a passed audit widens an interval.
    pub(super) fn widened(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter_map(|(policy, row)| {
            let margin = self.found.margin(self.experiment, *policy, row.claim);
            let interval = row.interval.filter(|_| margin > 0.0)?;
            Some(format!(
                "{}  the interval is widened by the margin {margin} of its audit; without it {}",
                row.policy,
                bracket(ends(on_scale(row, interval)), digits(self.found))
            ))
        })
    }
}
