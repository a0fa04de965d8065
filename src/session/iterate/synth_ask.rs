//! A round that is answered by a model behind HTTP.

use clover_event::Kind;
use clover_event::id::RunId;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::synth_runs::SynthAsked;
use clover_ground::digest::Digest;
use clover_ground::sign::Signer;
use clover_ledger::Ledger;
use clover_projection::reader::LogStatement;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::synth::ask;

use crate::append;
use crate::asking;
use crate::asking::AskSubject;
use crate::asking::ModelSender;
use crate::asking::RoundEnd;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;
use crate::tariff::Tariff;

/// What a run holds is charged as a whole before a person ends it: nobody knows what was sent.
pub(super) fn freed(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    run: &RunId,
) -> Result<(), SessionError> {
    let _alone = asking::alone(&bench.home, run)?;
    let Some(settled) = asking::freed(&bench.ledger, ports, run)? else {
        return Ok(());
    };
    let need = KeyNeed::of(Seat::Optimizer, Kind::SynthReturned);
    let signer = ports.signer(bench.ledger.state(), need)?;
    append::append(ports, &mut bench.ledger, &[settled], &signer)?;
    bench.again()
}

/// The bytes of a view that is on record.
pub(super) fn view_of(ledger: &Ledger, asked: &SynthAsked) -> Result<Vec<u8>, SessionError> {
    let gone = || IterationError::Optimizer("the view on record cannot be read".to_owned());
    let blob = ledger.store().reader().blob(&asked.view.blake3)?;
    let bytes = blob.ok_or_else(gone)?;
    if Digest::sha256(&bytes) == asked.view_digest {
        return Ok(bytes);
    }
    Err(gone().into())
}

/// The request of a round, and the most that one attempt of it may cost.
pub(super) fn request(
    model: &AskedModel,
    (run, round): (&RunId, u64),
    (view, wire): (&[u8], &dyn WireForm),
    tariff: Option<&Tariff>,
) -> Result<(AskRequest, u64), IterationError> {
    let ask = ask::of(model, (run, round), view).map_err(IterationError::Optimizer)?;
    Ok(asking::request_of(model, (ask, wire), tariff))
}

/// Asks the model of a run about a view that is on record, unless it answered before.
pub(super) fn asked(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    (signer, statement): (&Signer, LogStatement<SynthAsked>),
    sender: &mut ModelSender<'_>,
) -> Result<RoundEnd, SessionError> {
    let (run, round) = (statement.said.run.clone(), statement.said.round.value());
    if let Some(last) = asking::ended_call(&bench.ledger, (&run, round))? {
        return Ok(RoundEnd::Called(last));
    }
    let view = view_of(&bench.ledger, &statement.said)?;
    let model = asking::model_of(&bench.ledger, &run)?;
    let ask = ask::of(&model, (&run, round), &view).map_err(IterationError::Optimizer)?;
    let subject = AskSubject {
        experiment: bench.record.experiment.clone(),
        place: round,
        purpose: CallPurpose::Propose,
        run,
        shown: statement.said.view_digest,
        shown_by: Some(statement.id),
    };
    asking::put((&mut bench.ledger, signer), ports, (subject, ask), sender)
}
