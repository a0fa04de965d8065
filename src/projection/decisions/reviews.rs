//! Reviews by people who know the field, without which nothing is sealed where stakes are high.
//! Source: CLOVER v1.1, section 10.4.

use crate::event::id::IterationId;
use crate::event::payload::record::ReviewOutcome;
use crate::ground::digest::Digest;
use crate::ledger::Judged;
use crate::ledger::State;
use crate::ledger::no;
use crate::projection::decisions::rules::plan_of;
use crate::projection::iterations::Iteration;
use crate::projection::iterations::Iterations;
use crate::projection::releases::STAKES_MICRO;

/// The first slice of an iteration with high stakes, in words.
fn high_stakes(state: &State, it: &Iteration) -> Option<String> {
    let design = plan_of(state, it)?.design.as_ref()?;
    design.slices.iter().find_map(|family| {
        let mut cells = family.cells.iter();
        let high = cells.find(|cell| cell.stakes_micro.value() >= STAKES_MICRO)?;
        Some(format!("slice {} {}", family.family, high.slice))
    })
}

/// Which of some patches still lacks a review that lets it be sealed: what was expected, and what was found. Each needs
/// one that accepts it and none that disputes it; of one key the newest counts.
pub(super) fn lacking(state: &State, it: &Iteration, patches: &[Digest]) -> Judged {
    let because = high_stakes(state, it)?;
    let mut of = it.candidates.iter();
    of.find_map(|(id, patch)| {
        if !patches.contains(&patch.patch_hash) {
            return None;
        }
        let mut reviews = patch.reviews.values();
        if let Some(against) = reviews.find(|of| of.outcome == ReviewOutcome::Disputed) {
            let expected = format!("no dispute of {id} that stands, because of {because}");
            return no(expected, format!("one at seq {}", against.seq));
        }
        if patch.reviewed(ReviewOutcome::Accepted) > 0 {
            return None;
        }
        no(
            format!("a review that accepts {id}, because of {because}"),
            "none",
        )
    })
}

/// The same of patches of an iteration by its name: `None` where nothing is lacking, or stakes are not high.
pub fn unreviewed(state: &State, iteration: &IterationId, patches: &[Digest]) -> Judged {
    let it = state.fold::<Iterations>().by_id.get(iteration)?;
    lacking(state, it, patches)
}
