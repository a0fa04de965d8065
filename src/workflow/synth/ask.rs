//! What a model behind HTTP is asked for in a run of an optimizer: fixed instructions and the view, in the form `propose/1`. An
//! ask follows from the run, the round and the bytes of the view, so it is made again from the log.

use clover_event::calls::CallOutcome;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::model_calls::AskedModel;
use clover_event::payload::model_calls::BODY_MAX;
use clover_event::payload::model_calls::CallPurpose;
use clover_event::payload::model_calls::ModelCallRecorded;
use clover_event::payload::model_runs::UsageState;
use clover_event::payload::model_terms::PriceRow;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::runs::money;
use clover_projection::runs::money::CallMoney;

use crate::ask::AnswerFormat;
use crate::ask::AskDecoding;
use crate::ask::Message;
use crate::ask::ModelAsk;
use crate::ask::Speaker;
use crate::ask::called;
use crate::ask::reading::OVERSIZE;
use crate::ask::reading::ReplyReading;
use crate::ask::sending::EndedCall;
use crate::iterate::steps::BUILD;
use crate::synth::answer;

/// The name of the form of asks.
pub const FORM: &str = "propose/1";
/// The name of the form of answers.
const CANDIDATES: &str = "candidates/1";

/// The instructions of `propose/1`: they never change, another text is another form.
const INSTRUCTIONS: &str = include_str!("propose_1.txt");

/// The ask of a round; `view` is the view byte for byte.
///
/// # Errors
/// In words, where this program does not know the form of the run, or the view is no text.
pub fn of(
    asked: &AskedModel,
    (run, round): (&RunId, u64),
    view: &[u8],
) -> Result<ModelAsk, String> {
    if asked.form.as_str() != FORM {
        return Err(format!(
            "asks of the form {}, which this program does not know",
            asked.form.as_str()
        ));
    }
    let view = std::str::from_utf8(view).map_err(|_| "the view is no text".to_owned())?;
    let format = AnswerFormat::Candidates {
        form: CANDIDATES.into(),
    };
    let place = (CallPurpose::Propose, run, round);
    Ok(ask_of(asked, place, ([INSTRUCTIONS, view], format)))
}

/// The ask at a place of a run: instructions, and what is shown.
pub(crate) fn ask_of(
    asked: &AskedModel,
    (purpose, run, place): (CallPurpose, &RunId, u64),
    ([instructions, shown], format): ([&str; 2], AnswerFormat),
) -> ModelAsk {
    let say = |role, text: &str| Message {
        role,
        text: text.to_owned(),
    };
    let said = vec![
        say(Speaker::System, instructions),
        say(Speaker::User, shown),
    ];
    let decoding = AskDecoding {
        max_output_tokens: asked.max_output_tokens.value(),
        seed: None,
        temperature_micro: asked.temperature_micro.map(Count::value),
    };
    let to = (asked.endpoint.clone(), asked.model.as_str().to_owned());
    let series = format!("{purpose}-{run}");
    let mut ask = ModelAsk::new(to, (said, format), decoding, series);
    ask.pin = Some(asked.pin.as_str().to_owned());
    ask.repeat = place;
    if asked.seeded {
        ask.decoding.seed = Some(ask.derived_seed());
    }
    ask
}

/// What a call is about, and under what it was sent.
#[derive(Clone, Debug)]
pub struct ModelCallFrame {
    /// The ask's key.
    pub ask: Digest,
    /// The most that one attempt may cost, in millionths of a dollar.
    pub bound: Count,
    /// The hold; none at a free endpoint.
    pub hold: Option<Text>,
    /// Which call of the ask, from 0.
    pub nth: Count,
    /// Which ask of the run, from 0.
    pub place: Count,
    /// What is asked for.
    pub purpose: CallPurpose,
    /// The run.
    pub run: RunId,
    /// SHA-256 of what was shown.
    pub shown: Digest,
}

/// What a call came to by its answer.
struct ReadModelCall<'a> {
    detail: Option<String>,
    outcome: CallOutcome,
    text: Option<&'a str>,
}

/// What a call came to: the pinned model answers, and its body is kept, or it is no answer.
fn outcome<'a>(asked: &AskedModel, ended: &'a EndedCall) -> ReadModelCall<'a> {
    let other = |outcome, detail: Option<String>| ReadModelCall {
        detail,
        outcome,
        text: None,
    };
    let Some(reading) = &ended.reading else {
        return other(ended.outcome, ended.detail.clone());
    };
    if reading.model.as_deref() != Some(asked.pin.as_str()) {
        return other(CallOutcome::Mismatched, ended.detail.clone());
    }
    if ended.outcome != CallOutcome::Answered {
        return other(ended.outcome, ended.detail.clone());
    }
    if kept_body(ended).is_none() {
        return other(CallOutcome::Unparsed, Some(OVERSIZE.to_owned()));
    }
    ReadModelCall {
        detail: ended.detail.clone(),
        outcome: CallOutcome::Answered,
        text: Some(&reading.text),
    }
}

/// The body of an answer, where it is kept.
fn kept_body(ended: &EndedCall) -> Option<&Vec<u8>> {
    ended.body.as_ref().filter(|body| body.len() <= BODY_MAX)
}

/// The event of a call, and the blobs that it names; `row` is its price, none where calls are free.
pub fn recorded(
    asked: &AskedModel,
    frame: ModelCallFrame,
    ended: &EndedCall,
    row: Option<&PriceRow>,
) -> (ModelCallRecorded, Vec<Vec<u8>>) {
    let read = outcome(asked, ended);
    let reading: Option<&ReplyReading> = ended.reading.as_ref();
    let body = kept_body(ended).cloned();
    let text = read.text.map(|text| text.as_bytes().to_vec());
    let reference = |bytes: &Option<Vec<u8>>| -> Option<BlobRef> {
        bytes.as_ref().map(|bytes| answer::reference(bytes))
    };
    let mut said = ModelCallRecorded {
        attempts: ended.attempts.clone(),
        detail: called::kept_text(read.detail.as_deref()),
        fingerprint: called::kept_text(reading.and_then(|of| of.fingerprint.as_deref())),
        model_returned: called::kept_text(reading.and_then(|of| of.model.as_deref())),
        outcome: read.outcome,
        provider_request: called::kept_text(ended.provider_request.as_deref()),
        response: reference(&body),
        text: reference(&text),
        tokens: reading.and_then(|of| of.tokens),
        usage: called::usage(&ended.attempts, reading),
        ..lost(frame)
    };
    let cost = row.map_or(0, |row| money::cost(row, &CallMoney::of_model(&said)));
    said.cost_usd_micro = Count::new(cost).unwrap_or_default();
    (said, body.into_iter().chain(text).collect())
}

/// A call of an ask that was held for when its process ended: nobody knows whether it was sent.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn lost(frame: ModelCallFrame) -> ModelCallRecorded {
    ModelCallRecorded {
        ask: frame.ask,
        attempts: Vec::new(),
        bound_usd_micro: frame.bound,
        build: Text::new(BUILD).expect("BUG: a build is a text"),
        cost_usd_micro: frame.bound,
        detail: None,
        fingerprint: None,
        hold: frame.hold,
        model_returned: None,
        nth: frame.nth,
        outcome: CallOutcome::Lost,
        place: frame.place,
        provider_request: None,
        purpose: frame.purpose,
        response: None,
        run: frame.run,
        shown: frame.shown,
        text: None,
        tokens: None,
        usage: UsageState::Absent,
    }
}
