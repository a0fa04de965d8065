//! Calls for another purpose than judging, read again: their texts stand in the open, so whoever has the blobs of the ledger sees
//! whether each ask follows from what was shown, and each call from the body of its answer.

use std::collections::BTreeMap;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::calls::AttemptClass;
use clover_event::id::RunId;
use clover_event::payload::BlobRef;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_event::payload::model_terms::PriceMode;
use clover_ledger::History;
use clover_ledger::Ledger;
use clover_projection::asked::AskedRun;
use clover_projection::asked::AskedRuns;
use clover_projection::endpoints::Endpoints;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::run_of as run_of_prompt;
use clover_projection::tallies::Tallies;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::sgd::ask as descent;
use clover_workflow::synth::ask;
use clover_workflow::synth::ask::ModelCallFrame;

use crate::error::SessionError;
use crate::judge::reread::AnswerFinding;
use crate::judge::reread::RereadAnswers;
use crate::judge::reread::WireOf;

/// What was shown before a call.
#[derive(Default)]
struct Shown {
    /// Runs of prompts whose model is asked, as far as the log was read.
    descents: BTreeMap<RunId, SgdRun>,
    /// Texts of answers, by run and place.
    texts: BTreeMap<(RunId, u64), BlobRef>,
    /// Views, by run and round.
    views: BTreeMap<(RunId, u64), BlobRef>,
}

impl Shown {
    /// Takes in what an event of a run of a prompt says.
    fn descended(&mut self, event: &Event, seq: u64) {
        let payload = &event.payload;
        if let (Payload::SgdOpened(said), Some(experiment)) = (payload, &event.header.experiment)
            && said.asked.is_some()
        {
            let run = self.descents.entry(said.run.clone());
            run.or_insert_with(|| SgdRun::opened(experiment.clone(), seq, said));
        } else if let Some(run) = run_of_prompt(payload).and_then(|run| self.descents.get_mut(run))
        {
            run.take(payload);
        }
    }
}

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
    let mut shown = Shown::default();
    ledger.entries(0, ledger.size(), |read| {
        match &read.event.payload {
            Payload::SynthAsked(said) => {
                let place = (said.run.clone(), said.round.value());
                shown.views.insert(place, said.view.clone());
            }
            Payload::ModelCallRecorded(said) => {
                let found = again(ledger, wire, (said, &shown));
                let name = read.event.id.0.short().to_string();
                let place = (said.run.clone(), said.place.value());
                take(out, (read.stored.seq, &name), found);
                if let Some(text) = &said.text {
                    shown.texts.insert(place, text.clone());
                }
            }
            Payload::SgdGradientReturned(said) => {
                let found = gradient(ledger, (&said.run, said.gradient.as_str()), &shown);
                took_gradient(out, (read.stored.seq, &said.run), found);
            }
            _ => {}
        }
        shown.descended(&read.event, read.stored.seq);
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

/// Takes in a gradient that was read again from the text of its call.
fn took_gradient(
    out: &mut RereadAnswers,
    (seq, run): (u64, &RunId),
    found: Result<Option<(String, String)>, String>,
) {
    match found {
        Ok(Some((again, said))) if again != said => out.findings.push(AnswerFinding {
            seq,
            expected: format!("the gradient of {run} as the text of its call gives it, {again}"),
            found: said,
        }),
        Ok(_) => {}
        Err(why) => {
            out.unread += 1;
            out.why.get_or_insert(why);
        }
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

/// The ask of a call, made again from what was shown.
fn ask_again(
    ledger: &Ledger,
    (said, asked): (&ModelCallRecorded, &AskedModel),
    shown: &Shown,
) -> Result<ModelAsk, String> {
    if said.purpose == CallPurpose::Descend {
        let run = shown.descents.get(&said.run);
        let ask = descent::due(run.ok_or("its run was not opened")?);
        return ask.map_err(|unmet| format!("expected {}, found {}", unmet.expected, unmet.found));
    }
    let view = shown.views.get(&(said.run.clone(), said.place.value()));
    let view = blob(ledger, view.ok_or("its view is not on record")?)?;
    ask::of(asked, (&said.run, said.place.value()), &view)
}

/// The gradient that a call gives, beside the one that is told; `None` where no model was asked.
fn gradient(
    ledger: &Ledger,
    (name, told): (&RunId, &str),
    shown: &Shown,
) -> Result<Option<(String, String)>, String> {
    let Some(run) = shown.descents.get(name) else {
        return Ok(None);
    };
    let Some((place, _)) = run.awaited() else {
        return Ok(None);
    };
    let Some(text) = shown.texts.get(&(name.clone(), place)) else {
        return Ok(None);
    };
    let text = blob(ledger, text)?;
    let text = String::from_utf8_lossy(&text);
    let again = descent::gradient_of(run, Some(&text));
    let again =
        again.map_err(|unmet| format!("expected {}, found {}", unmet.expected, unmet.found))?;
    Ok(Some((again, told.to_owned())))
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
    let ask = ask_again(ledger, (said, asked), shown)?;
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
        purpose: said.purpose,
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
