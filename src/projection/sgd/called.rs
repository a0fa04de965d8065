//! The rule `sgd` of a run whose gradients and patches a model behind HTTP writes: each is the text of a call on record, and is
//! taken where the model said something else.

use clover_event::id::EventId;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::sgd::SgdAgents;
use clover_event::payload::sgd::SgdDocument;
use clover_event::payload::sgd::SgdOpened;
use clover_ground::digest::Digest;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;

use super::SgdRun;
use crate::asked::AskedRuns;

/// The gradient that stands for an answer which is none: it has no items.
pub fn no_gradient(step: u64) -> String {
    format!("{{\"anchors\":[],\"items\":[],\"step\":{step}}}")
}

/// What a run says of a model that is asked: its name is the pinned model and the endpoint.
pub(super) fn check_model(said: &SgdOpened) -> RuleAnswer {
    let is_endpoint = said.agents == SgdAgents::Endpoint;
    let expected = "a model that is asked, exactly where one behind HTTP writes patches";
    ensure!(
        is_endpoint == said.asked.is_some(),
        expected,
        said.agents.as_str()
    );
    if let Some(asked) = &said.asked {
        let name = format!("{} at {}", asked.pin.as_str(), asked.endpoint);
        let expected = format!("the model and its endpoint, {name}");
        ensure!(said.model.as_str() == name, expected, said.model.as_str());
    }
    Ok(())
}

/// A gradient or a proposal of a model names its call, and is the text of it; of anybody else it names none.
pub(super) fn check_called(
    (state, event): (&State, &ProposedEvent<'_>),
    run: &SgdRun,
    (call, document, nothing): (Option<EventId>, &SgdDocument, Option<&str>),
) -> RuleAnswer {
    if run.said.asked.is_none() {
        let expected = "no call in a run that asks no model";
        ensure!(call.is_none(), expected, "one");
        return Ok(());
    }
    let runs = state.fold::<AskedRuns>();
    let asked = runs.of(&run.said.run, CallPurpose::Descend);
    let due = asked.zip(run.awaited());
    let (asked, (place, _)) = due.required("an ask of the run that waits for its answer")?;
    let last = asked.last_of(place).filter(|last| last.is_final());
    let last = last.required(&format!("a call of ask {place} that came to its end"))?;
    let call = call.required("the call that gave it")?;
    let expected = format!("the call of ask {place}, {}", last.call);
    ensure!(call == last.call, expected, call.to_string());
    let refs = event.event.header.refs.contains(&call);
    let expected = format!("the call {call} among its references");
    ensure!(refs, expected, "none");
    if nothing == Some(document.as_str()) {
        return Ok(());
    }
    let text = last.text.as_ref();
    let text = text.required("an answer of its call, or a gradient without items")?;
    let is_text = Digest::blake3(document.as_str().as_bytes()) == text.blake3;
    let expected = "the text of its call, byte for byte";
    ensure!(is_text, expected, "another");
    Ok(())
}
