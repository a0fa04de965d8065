//! Rows of runs that lower the loss of a prompt, from the labels before.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::sgd::SgdOpened;
use clover_event::payload::sgd::SgdRowsListed;
use clover_projection::reader::LogReader;
use clover_projection::sgd::SgdRuns;

use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;
use crate::sgd::course;
use crate::sgd::rows;

/// The rows of a part from a place on, by the labels through the entry that the run names.
pub(super) fn listed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SgdRowsListed = said_in(event)?;
    let entries = LogReader::below(context.history, seq);
    let opened = entries.first::<SgdOpened>(|of| of.run == said.run)?;
    let opened = opened.ok_or_else(|| gone("its run was not opened before it"))?;
    let experiment = event.header.experiment.as_ref();
    let experiment = experiment.ok_or_else(|| gone("it names no experiment"))?;
    let through = opened.said.through_seq.value();
    let target = opened.said.terms.target;
    let all = rows::labelled(context.history, (experiment, through), target)?;
    let state = match context.state {
        Some(state) => state,
        None => context.state_at(seq)?,
    };
    let run = state.fold::<SgdRuns>().by_id.get(&said.run);
    let run = run.ok_or_else(|| gone("its run was not opened before it"))?;
    let seed = course::splits_seed(state, run);
    let seed = seed.map_err(|unmet| RecomputeError::Uncalled(unmet.found))?;
    let parts = rows::parts(all, seed);
    let first = usize::try_from(said.first.value()).unwrap_or(usize::MAX);
    let rows = parts.get(&said.split).into_iter().flatten().skip(first);
    Ok(SgdRowsListed {
        rows: rows.take(said.rows.len()).cloned().collect(),
        ..said.clone()
    }
    .into())
}
