//! How often the dev objective answered under a plan: over every iteration of it, so that an iteration that is closed and
//! opened anew brings no further calls.

use clover_event::id::IterationId;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use crate::decisions::AllDecisions;
use crate::iterations::Iterations;
use crate::manifests::Manifests;

fn calls_in(state: &State, iteration: &IterationId) -> u64 {
    let decided = state.fold::<AllDecisions>().of(iteration);
    decided.map_or(0, |of| of.receipts.len() as u64)
}

/// Dev calls in other iterations on a version of the same manifest; 0 where the rulebook in force does not count them.
pub fn dev_calls_elsewhere(state: &State, iteration: &IterationId) -> u64 {
    if !state.asks(Question::DevCallsOfPlan) {
        return 0;
    }
    let all = &state.fold::<Iterations>().by_id;
    let own = all.get(iteration);
    let Some((_, plan)) = own.and_then(|it| state.fold::<Manifests>().of_digest(it.digest)) else {
        return 0;
    };
    let others = all.iter().filter(|(id, _)| *id != iteration);
    let others = others.filter(|(_, it)| plan.version(it.digest).is_some());
    others.map(|(id, _)| calls_in(state, id)).sum()
}

/// Dev calls that were made under the plan of an iteration.
pub(crate) fn dev_calls_made(state: &State, iteration: &IterationId) -> u64 {
    calls_in(state, iteration).saturating_add(dev_calls_elsewhere(state, iteration))
}
