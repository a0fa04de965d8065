//! The order of policies: the places that are left to each, and the command that asks for it.

use crate::event::id::PolicyId;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::Claim;
use crate::ground::shell;
use crate::stats::ranking::RankInterval;
use crate::view::answer::BestPolicy;
use crate::view::estimate::Estimates;
use crate::view::estimate::doubts::Asked;
use crate::view::values;

/// Places that each policy may take: as many above it as are told apart to be better, and so below. A policy that nobody
/// checked, or whose level is withheld, has none, and stands in nobody's way. None has one where no order is claimed.
pub(super) fn ranks(asked: &Asked<'_>, answer: &BestPolicy) -> Vec<Option<RankInterval>> {
    let found = asked.found;
    let standing = |policy: usize| found.standing(asked.experiment, policy);
    let is_ranked = |policy: &usize| found.claim(*policy, standing(*policy)).is_checked();
    let place = |id: &PolicyId| found.gathered.policy(id.as_str());
    let apart = asked.contrasts.iter().filter(|pair| pair.told_apart);
    let apart = apart.filter_map(|pair| {
        let (first, second) = (place(&pair.first)?, place(&pair.second)?);
        Some(values::ordered((first, second), pair.difference.value()))
    });
    values::ranks(asked.places, answer.is_ordered, is_ranked, apart)
}

impl Estimates<'_> {
    /// What to type after an estimate: what checks a value first, then what asks for the order.
    pub(super) fn next(&self, is_recorded: bool) -> Vec<String> {
        let unchecked = |row: &EstimateRecorded| {
            row.claim == Claim::BorrowedUnchecked && row.transport.is_none()
        };
        let is_open = self.rows.iter().any(|(_, row)| unchecked(row));
        let judge = &self.found.terms.judge;
        let audit = is_open.then(|| self.basis.next_audit(judge));
        let is_whole = self.found.terms.environment.is_none();
        let compare =
            (is_recorded && is_whole && self.asked(&self.places()).awaits_order()).then(|| {
                match judge.as_str() {
                    "judge" => "clover compare --all".to_owned(),
                    name => format!("clover compare --all --judge {}", shell::word(name)),
                }
            });
        audit.into_iter().chain(compare).collect()
    }
}
