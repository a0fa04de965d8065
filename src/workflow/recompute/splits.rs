//! Splits, computed again from the rows that were taken in before them.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::SplitId;
use clover_event::payload::intake::SplitSeparation;
use clover_event::payload::intake::SplitsFormed;
use clover_event::payload::intake::SplitsListed;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_projection::reader::LogReader;

use crate::estimate::rows::RowsError;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::estimates;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;
use crate::split;
use crate::split::Apart;
use crate::split::PartMembers;

/// A split's clusters by part, and the event that formed it.
#[derive(Debug)]
pub(super) struct CachedSplit {
    experiment: ExperimentId,
    split: SplitId,
    formed: SplitsFormed,
    parts: PartMembers,
}

/// Where the listing of a split begins, and the event that forms it.
fn span(
    history: &dyn History,
    experiment: &ExperimentId,
    split: &SplitId,
) -> Result<(Option<u64>, Option<SplitsFormed>), LedgerError> {
    let entries = LogReader::below(history, u64::MAX).of(experiment);
    let formed = entries.first::<SplitsFormed>(|said| said.split == *split)?;
    let listed = entries.first::<SplitsListed>(|said| said.split == *split)?;
    let both = [listed.map(|of| of.seq), formed.as_ref().map(|of| of.seq)];
    Ok((both.into_iter().flatten().min(), formed.map(|of| of.said)))
}

/// How confirm is kept apart, as a formed split says.
fn apart(said: &SplitsFormed) -> Option<Apart> {
    Some(match said.separation {
        SplitSeparation::Hashed => Apart::Hashed,
        SplitSeparation::Time => Apart::Time {
            t1: said.t1?,
            t2: said.t2?,
            gap_seconds: said.gap_seconds?.value(),
        },
    })
}

fn kept<'c>(
    context: &'c mut Context<'_>,
    event: &Event,
    split: &SplitId,
) -> Result<&'c CachedSplit, RecomputeError> {
    let experiment = estimates::experiment(event)?;
    let history = context.history;
    let place = &mut context.shared.split;
    let fits = |of: &CachedSplit| of.experiment == *experiment && of.split == *split;
    if !place.as_ref().is_some_and(fits) {
        *place = None;
        let (begins, formed) = span(history, experiment, split)?;
        let formed = formed.ok_or_else(|| gone("its split was never formed"))?;
        let clusters = split::clusters(history, experiment, begins.unwrap_or_default());
        let clusters = clusters.map_err(RowsError::Kept)?;
        let apart =
            apart(&formed).ok_or_else(|| gone("it does not say how confirm is kept apart"))?;
        let parts = split::parts(&clusters, formed.seed.value(), apart);
        *place = Some(CachedSplit {
            experiment: experiment.clone(),
            split: split.clone(),
            parts: parts.map_err(|error| RecomputeError::Missing(error.to_string()))?,
            formed,
        });
    }
    place
        .as_ref()
        .ok_or_else(|| gone("its split was never formed"))
}

/// The clusters of one part in their order, as many as an event lists.
pub(super) fn listed(
    context: &mut Context<'_>,
    _: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SplitsListed = said_in(event)?;
    let of = kept(context, event, &said.split)?;
    let members = of
        .parts
        .members
        .get(&said.part)
        .map_or(&[][..], Vec::as_slice);
    let first = usize::try_from(said.first.value()).unwrap_or(usize::MAX);
    let end = members.len().min(first.saturating_add(said.clusters.len()));
    Ok(Payload::from(SplitsListed {
        by: said
            .by
            .map(|_| split::listed_by(of.formed.seed, of.formed.separation)),
        clusters: members.get(first..end).unwrap_or_default().to_vec(),
        first: said.first,
        part: said.part,
        split: said.split.clone(),
    }))
}

/// The parts' counts and roots.
pub(super) fn formed(
    context: &mut Context<'_>,
    _: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &SplitsFormed = said_in(event)?;
    let of = kept(context, event, &said.split)?;
    let apart = apart(said).ok_or_else(|| gone("it does not say how confirm is kept apart"))?;
    let again = split::events(&said.split, said.seed, apart, &of.parts).pop();
    again.ok_or_else(|| gone("its split was never formed"))
}
