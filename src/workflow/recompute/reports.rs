//! Published reports, written again from the entries that they read.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::report::ReportPublished;
use clover_projection::iterations::Iterations;
use clover_projection::iterations::story;

use crate::bundle;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::said_in;

/// The bundle as of the entry that it was read to.
pub(super) fn published(
    context: &mut Context<'_>,
    _: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &ReportPublished = said_in(event)?;
    let (ledger, through) = (context.ledger()?, said.through_seq.value());
    let state = ledger.state_at(through.saturating_add(1))?;
    let it = state.fold::<Iterations>().by_id.get(&said.iteration);
    let it =
        it.ok_or_else(|| RecomputeError::Missing(format!("{} was never opened", said.iteration)))?;
    let asked = (through, said.layout);
    let story = story::read(ledger, &it.experiment, &said.iteration, asked)?;
    let again = bundle::bundle(ledger, &story, &state)?;
    // Rows that were there and are not any more, erased ones for one, make no other report: they make none.
    if let Some(why) = again.unread
        && !said.gaps.iter().any(|gap| gap.why.as_str() == why)
    {
        return Err(RecomputeError::Missing(why));
    }
    Ok(bundle::published(&again.bundle, said.layout).into())
}
