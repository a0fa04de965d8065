//! Reviews by people who know the field, without which nothing is sealed where stakes are high.
//! Source: CLOVER v1.1, section 10.4.

use clover_event::id::IterationId;
use clover_event::payload::manifest::Slice;
use clover_event::payload::record::ReviewOutcome;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::unmet;

use crate::decisions::rules::plan_of;
use crate::iterations::Iteration;
use crate::iterations::Iterations;
use crate::releases::STAKES_MICRO;

/// The first slice of an iteration with high stakes, in words; `None` where none has.
fn high_stakes(state: &State, it: &Iteration) -> Result<Option<String>, Unmet> {
    let design = plan_of(state, it).and_then(|plan| plan.design.as_ref());
    let design = design.required("a manifest that says what is at stake")?;
    let is_high = |cell: &&Slice| cell.stakes_micro.value() >= STAKES_MICRO;
    Ok(design.slices.iter().find_map(|family| {
        let high = family.cells.iter().find(is_high)?;
        Some(format!("slice {} {}", family.family, high.slice))
    }))
}

/// Each of some patches of an iteration with high stakes has a review that accepts it and none that disputes it; of one key
/// the newest counts.
pub(super) fn check(state: &State, it: &Iteration, patches: &[Digest]) -> RuleAnswer {
    let Some(because) = high_stakes(state, it)? else {
        return Ok(());
    };
    for (id, patch) in &it.candidates {
        if !patches.contains(&patch.patch_hash) {
            continue;
        }
        let mut reviews = patch.reviews.values();
        if let Some(against) = reviews.find(|of| of.outcome == ReviewOutcome::Disputed) {
            let expected = format!("no dispute of {id} that stands, because of {because}");
            return unmet(expected, format!("one at seq {}", against.seq));
        }
        ensure!(
            patch.reviewed(ReviewOutcome::Accepted) > 0,
            format!("a review that accepts {id}, because of {because}"),
            "none"
        );
    }
    Ok(())
}

/// Whether each of some patches has the review that lets it be sealed, where stakes are high.
///
/// # Errors
/// [`Unmet`](clover_ledger::Unmet): which review was expected, and what was found.
pub fn check_reviewed(state: &State, iteration: &IterationId, patches: &[Digest]) -> RuleAnswer {
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let it = it.required(&format!("an iteration {iteration}"))?;
    check(state, it, patches)
}
