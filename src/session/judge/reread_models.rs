//! Calls for another purpose than judging, read again: their texts stand in the open, so whoever has the blobs of the ledger sees
//! whether each ask follows from what was shown, and each call from the body of its answer.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::AttemptClass;
use clover_event::id::RunId;
use clover_event::payload::BlobRef;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_event::payload::model_terms::PriceMode;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_projection::asked::AskedRun;
use clover_projection::asked::AskedRuns;
use clover_projection::endpoints::Endpoints;
use clover_projection::tallies::Tallies;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::synth::ask;
use clover_workflow::synth::ask::ModelCallFrame;

use crate::error::SessionError;
use crate::judge::reread::AnswerFinding;
use crate::judge::reread::RereadAnswers;
use crate::judge::reread::WireOf;

/// A view that was shown, by its run and its round.
type Shown = BTreeMap<(RunId, u64), BlobRef>;

/// Reads every such call again.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn all(
    ledger: &Ledger,
    wire: WireOf<'_>,
    out: &mut RereadAnswers,
) -> Result<(), SessionError> {
    let tallies = ledger.state().fold::<Tallies>();
    if tallies.of_kind(Kind::ModelCallRecorded) == 0 {
        return Ok(());
    }
    let mut shown = Shown::new();
    ledger.entries(0, ledger.size(), |read| {
        match &read.event.payload {
            Payload::SynthAsked(said) => {
                let place = (said.run.clone(), said.round.value());
                shown.insert(place, said.view.clone());
            }
            Payload::ModelCallRecorded(said) => {
                let found = again(ledger, wire, (said, &shown));
                let name = read.event.id.0.short().to_string();
                take(out, (read.stored.seq, &name), found);
            }
            _ => {}
        }
        Ok::<_, SessionError>(())
    })
}

/// What a call would say that is made and read again, beside what it says; `None` for what nobody can make again.
struct AgainCall {
    ask: (String, String),
    bound: Option<(String, String)>,
    answer: Vec<(&'static str, String, String)>,
    has_answer: bool,
}

fn take(out: &mut RereadAnswers, (seq, name): (u64, &str), found: Result<AgainCall, String>) {
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            out.unread += 1;
            out.why.get_or_insert(why);
            return;
        }
    };
    out.asks += 1;
    out.answers += u64::from(found.has_answer);
    let ask = std::iter::once(("ask", found.ask.0, found.ask.1));
    let bound = found.bound.map(|(again, said)| ("bound", again, said));
    let mut all = ask.chain(bound).chain(found.answer);
    if let Some((member, again, said)) = all.find(|(_, again, said)| again != said) {
        out.findings.push(AnswerFinding {
            seq,
            expected: format!(
                "{member} {again} of call {name}, as its view and its answer give it"
            ),
            found: said,
        });
    }
}

fn blob(ledger: &Ledger, of: &BlobRef) -> Result<Vec<u8>, String> {
    let found = History::blob(ledger, &of.blake3).map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("the blob {} is not here", of.blake3))
}

fn run_of<'a>(ledger: &'a Ledger, run: &RunId) -> Result<&'a AskedRun, String> {
    let of = ledger.state().fold::<AskedRuns>().by_id.get(run);
    of.ok_or_else(|| "its run was not opened".to_owned())
}

fn again(
    ledger: &Ledger,
    wire: WireOf<'_>,
    (said, shown): (&ModelCallRecorded, &Shown),
) -> Result<AgainCall, String> {
    let run = run_of(ledger, &said.run)?;
    let asked = &run.asked;
    let endpoints = ledger.state().fold::<Endpoints>();
    let place = endpoints.by_id.get(&asked.endpoint);
    let place = place.ok_or("its endpoint is not registered")?;
    let wire: &dyn WireForm = wire(place.said.dialect);
    let view = shown.get(&(said.run.clone(), said.place.value()));
    let view = blob(ledger, view.ok_or("its view is not on record")?)?;
    let ask = ask::of(asked, (&said.run, said.place.value()), &view)?;
    let request = AskRequest::of(wire, ask);
    let table = asked.prices.as_ref();
    let table = table.and_then(|table| endpoints.prices.get(table));
    let row = table.and_then(|table| {
        table.row(
            place.said.provider.as_str(),
            asked.pin.as_str(),
            PriceMode::Live,
        )
    });
    let output = asked.max_output_tokens.value();
    let bound = row.map(|row| row.bound(request.body.len(), output));
    // Another program may have written the request otherwise.
    let is_own = said.build.as_str() == BUILD;
    let bound = bound.filter(|_| is_own);
    let was_answered = said.attempts.last().map(|of| of.class) == Some(AttemptClass::Ok);
    let body = said.response.as_ref().filter(|_| was_answered);
    let answer = match body {
        None => Vec::new(),
        Some(body) => {
            let body = blob(ledger, body)?;
            compared(said, (run, wire, &request), body, row)
        }
    };
    Ok(AgainCall {
        ask: (
            request.ask.plain_key().short().to_string(),
            said.ask.short().to_string(),
        ),
        bound: bound.map(|bound| (bound.to_string(), said.bound_usd_micro.to_string())),
        has_answer: !answer.is_empty(),
        answer,
    })
}

/// What follows from a body, beside what is said.
fn compared(
    said: &ModelCallRecorded,
    (run, wire, request): (&AskedRun, &dyn WireForm, &AskRequest),
    body: Vec<u8>,
    row: Option<&clover_event::payload::model_terms::PriceRow>,
) -> Vec<(&'static str, String, String)> {
    let named = said.provider_request.as_ref();
    let mut ended = EndedCall::observed(
        (wire, &request.ask.format),
        said.attempts.clone(),
        Some(&body),
        named.map(|named| named.as_str().to_owned()),
    );
    ended.body = Some(body);
    let frame = ModelCallFrame {
        ask: said.ask,
        bound: said.bound_usd_micro,
        hold: said.hold.clone(),
        nth: said.nth,
        place: said.place,
        run: said.run.clone(),
        shown: said.shown,
    };
    let (made, _) = ask::recorded(&run.asked, frame, &ended, row);
    let members = |of: &ModelCallRecorded| {
        [
            ("outcome", of.outcome.to_string()),
            ("model_returned", format!("{:?}", of.model_returned)),
            ("text", format!("{:?}", of.text)),
            ("tokens", format!("{:?}", of.tokens)),
            ("usage", of.usage.to_string()),
            ("fingerprint", format!("{:?}", of.fingerprint)),
            ("detail", format!("{:?}", of.detail)),
            ("cost_usd_micro", of.cost_usd_micro.to_string()),
        ]
    };
    let pairs = members(&made).into_iter().zip(members(said));
    pairs
        .map(|((name, made), (_, said))| (name, made, said))
        .collect()
}
