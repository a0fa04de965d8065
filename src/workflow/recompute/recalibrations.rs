//! A recalibration, computed again from the fresh labels that were read.

use crate::event::Event;
use crate::event::Payload;
use crate::event::payload::deployment::RecalibrationMode;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::LedgerError;
use crate::ledger::Memo;
use crate::ledger::Recount;
use crate::ledger::past::Past;
use crate::workflow::live;
use crate::workflow::live::recalibration;
use crate::workflow::live::recalibration::Ask;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Gone;
use crate::workflow::recompute::differs;

fn gone(what: &str) -> Gone {
    Gone::Missing(what.to_owned())
}

/// The payload again.
fn again(past: &Past<'_>, seq: u64, event: &Event) -> Result<Payload, Gone> {
    let Payload::RecalibrationCompleted(said) = &event.payload else {
        return Err(gone("another kind"));
    };
    let Some(computed) = &said.computed else {
        return Err(gone(
            "it rests on a transport.tested, which is replayed itself",
        ));
    };
    let experiment = event.header.experiment.as_ref();
    let ask = Ask {
        design: &said.design,
        experiment: experiment.ok_or_else(|| gone("it names no experiment"))?,
        judge: &said.judge,
        refit: computed.mode == RecalibrationMode::Refitted,
        through: computed.inputs.through_seq.value(),
    };
    let releases = live::releases(past, ask.experiment, seq)?;
    let of = (said.commit, seq);
    let found = recalibration::recalibrate(past, &releases, of, &ask, &computed.thresholds)?;
    let mut again = said.clone();
    again.anchors = found.anchors;
    again.calibrator = found.calibrator;
    again.computed = Some(found.computed);
    again.labels = found.labels;
    Ok(again.into())
}

/// A recalibration, for replay.
pub(super) fn completed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, Gone> {
    let past = context.ledger()?.past();
    again(&past, seq, event)
}

/// What a recalibration says is what its rows give, through everything that its author had seen.
#[derive(Clone, Copy, Debug)]
pub struct Recalibrations;

impl Recount for Recalibrations {
    fn judge(
        &self,
        past: &Past<'_>,
        event: &Candidate<'_>,
        _: &mut Memo,
    ) -> Result<Option<Breach>, LedgerError> {
        let Payload::RecalibrationCompleted(said) = &event.event.payload else {
            return Ok(None);
        };
        let Some(computed) = &said.computed else {
            return Ok(None);
        };
        let through = computed.inputs.through_seq.value();
        differs(event, "recalibration", Some(through), || {
            again(past, event.seq, event.event)
        })
    }
}
