//! What a call of a judge is worth: its outcome, its score and its tokens, from the answer alone. A run reads its calls by
//! this, and so does whoever reads them again.

use clover_event::calls::AttemptClass;
use clover_event::calls::CallAttempt;
use clover_event::calls::CallOutcome;
use clover_event::id::JudgeId;
use clover_event::id::RunId;
use clover_event::id::Text;
use clover_event::payload::PrivateRef;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallRecorded;
use clover_event::payload::model_runs::FirstCall;
use clover_event::payload::model_runs::LevelMass;
use clover_event::payload::model_runs::UsageState;
use clover_event::payload::model_terms::PriceRow;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::runs::masses;
use clover_projection::runs::masses::MassFault;
use clover_projection::runs::money;
use clover_projection::runs::money::CallMoney;

use crate::ask::AnswerFormat;
use crate::ask::WireForm;
use crate::ask::judged::JudgePlan;
use crate::ask::reading;
use crate::ask::reading::ReplyReading;
use crate::ask::reading::StopCause;
use crate::ask::sending::EndedCall;

/// Longest text of a provider that is kept, in bytes.
const SAID_BYTES: usize = 300;

/// What a call came to by its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedCall {
    /// What its answer comes to.
    pub answer: JudgedAnswer,
    /// What the answer says of its tokens.
    pub usage: UsageState,
}

/// What an answer of a judge comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedAnswer {
    /// What is wrong, in a word or as the provider says it.
    pub detail: Option<String>,
    /// What it says of each level, where levels are weighed.
    pub masses: Option<Vec<LevelMass>>,
    /// What it came to.
    pub outcome: CallOutcome,
    /// The score, as a share of the levels.
    pub score: Option<Micro>,
}

impl JudgedAnswer {
    /// An answer that gives no score.
    fn none(outcome: CallOutcome, detail: Option<String>) -> Self {
        Self {
            detail,
            masses: None,
            outcome,
            score: None,
        }
    }
}

/// Reads a call that ended. `ticket` is what an answer about its row repeats.
pub fn judged(plan: &JudgePlan, ticket: &str, ended: &EndedCall) -> JudgedCall {
    let reading = ended.reading.as_ref();
    let said = (ended.outcome, ended.detail.clone());
    let answer = match reading {
        None => JudgedAnswer::none(said.0, said.1),
        Some(reading) => answered(plan, reading, said, ticket),
    };
    JudgedCall {
        answer,
        usage: usage(&ended.attempts, reading),
    }
}

/// What an ask came to by an answer of its judge: the score where it has the form, and what is wrong in a word.
pub fn answered(
    plan: &JudgePlan,
    reading: &ReplyReading,
    (outcome, detail): (CallOutcome, Option<String>),
    ticket: &str,
) -> JudgedAnswer {
    if reading.model.as_deref() != Some(&*plan.pin) {
        return JudgedAnswer::none(CallOutcome::Mismatched, detail);
    }
    if outcome != CallOutcome::Answered {
        return JudgedAnswer::none(outcome, detail);
    }
    let unparsed = |wrong: &str| JudgedAnswer::none(CallOutcome::Unparsed, Some(wrong.to_owned()));
    let Some(levels) = plan.weighed_levels() else {
        return match plan.score(&reading.text, ticket) {
            Ok(score) => JudgedAnswer {
                score: Some(score),
                ..JudgedAnswer::none(outcome, detail)
            },
            Err(wrong) => unparsed(wrong),
        };
    };
    let found = match plan.masses(reading, ticket) {
        Ok(found) => found,
        Err(wrong) => return unparsed(wrong),
    };
    let (outcome, score) = match masses::score(&found, levels) {
        Ok(score) => (outcome, Some(score)),
        Err(MassFault::Uncovered) => (CallOutcome::Uncovered, None),
        Err(MassFault::Level | MassFault::Over) => return unparsed("tokens"),
    };
    JudgedAnswer {
        masses: Some(found),
        score,
        ..JudgedAnswer::none(outcome, detail)
    }
}

/// What a call says of its tokens.
pub fn usage(attempts: &[CallAttempt], reading: Option<&ReplyReading>) -> UsageState {
    let last = attempts.last();
    let was_answered = last.is_some_and(|of| of.class == AttemptClass::Ok);
    let reading = reading.filter(|_| was_answered);
    let Some((reading, tokens)) = reading.and_then(|of| Some((of, of.tokens?))) else {
        return UsageState::Absent;
    };
    let parts = [
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.output,
    ];
    let few = parts.iter().all(|part| part.value() <= money::TOKENS_MAX);
    if reading.tokens_fit && few {
        UsageState::Ok
    } else {
        UsageState::Suspect
    }
}

/// A text of a provider, cut to what is kept; none where it is empty or holds controls.
pub fn kept_text(text: Option<&str>) -> Option<Text> {
    let text = text?;
    let mut end = text.len().min(SAID_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Text::new(&text[..end]).filter(|of| !of.as_str().is_empty())
}

/// What is known of a call beside its answer.
#[derive(Clone, Debug)]
pub struct CallFrame {
    /// The ask's key.
    pub ask: Digest,
    /// The most that one attempt may cost.
    pub bound: Count,
    /// How often the run had gone on.
    pub epoch: Count,
    /// The call that gave a score first, where this one asks again.
    pub first: Option<FirstCall>,
    /// The hold.
    pub hold: Option<Text>,
    /// The judge.
    pub judge: JudgeId,
    /// Which call of the ask.
    pub nth: Count,
    /// The body of the answer as it is kept.
    pub response: Option<PrivateRef>,
    /// The run.
    pub run: RunId,
    /// The texts that it was about.
    pub texts: AskedTexts,
}

/// The event of a call; `row` is its price, none where calls are free.
pub fn recorded(
    frame: CallFrame,
    (ended, judged): (&EndedCall, &JudgedCall),
    row: Option<&PriceRow>,
) -> CallRecorded {
    let reading = ended.reading.as_ref();
    let mut said = CallRecorded {
        ask: frame.ask,
        attempts: ended.attempts.clone(),
        bound_usd_micro: frame.bound,
        cost_usd_micro: Count::default(),
        detail: kept_text(judged.answer.detail.as_deref()),
        epoch: frame.epoch,
        fingerprint: kept_text(reading.and_then(|of| of.fingerprint.as_deref())),
        first: frame.first,
        hold: frame.hold,
        judge: frame.judge,
        masses: judged.answer.masses.clone(),
        model_returned: kept_text(reading.and_then(|of| of.model.as_deref())),
        nth: frame.nth,
        outcome: judged.answer.outcome,
        provider_request: kept_text(ended.provider_request.as_deref()),
        response: frame.response,
        run: frame.run,
        score_micro: judged.answer.score,
        texts: frame.texts,
        tokens: reading.and_then(|of| of.tokens),
        usage: judged.usage,
    };
    let cost = row.map_or(0, |row| money::cost(row, &CallMoney::of(&said)));
    said.cost_usd_micro = Count::new(cost).unwrap_or_default();
    said
}

impl EndedCall {
    /// A call as it is read again from what was observed of it: its attempts, and the body of its answer where one was kept. No
    /// attempt at all is a call that was lost.
    pub fn observed(
        (wire, format): (&dyn WireForm, &AnswerFormat),
        attempts: Vec<CallAttempt>,
        body: Option<&[u8]>,
        provider_request: Option<String>,
    ) -> Self {
        let reading = body.and_then(|body| wire.read(body));
        let reading = reading.filter(|of| of.stop != StopCause::Failed);
        let class = attempts.last().map(|of| of.class);
        let (outcome, detail) = match (class, &reading) {
            (None, _) => (CallOutcome::Lost, None),
            (Some(AttemptClass::Ok), Some(read)) => reading::outcome_of(read, format),
            (Some(AttemptClass::Ok), None) if body.is_none() => {
                (CallOutcome::Unparsed, Some("secret"))
            }
            (Some(AttemptClass::Ok), None) => (CallOutcome::Unparsed, Some("json")),
            (Some(AttemptClass::Oversize), _) => (CallOutcome::Unparsed, Some("oversize")),
            (Some(AttemptClass::Rejected), _) => (CallOutcome::Rejected, None),
            (Some(_), _) => (CallOutcome::Exhausted, None),
        };
        Self {
            place: 0,
            outcome,
            detail: detail.map(str::to_owned),
            reading: reading.filter(|_| class == Some(AttemptClass::Ok)),
            body: None,
            attempts,
            provider_request,
        }
    }
}
