//! The rule `source`: a score of a judge behind HTTP is what a call on record answered about the same texts, and a row that it
//! missed names the call that came to nothing.

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::model_runs::CallOf;
use clover_event::payload::model_runs::ScoreMissed;
use clover_event::payload::model_terms::TextClass;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::fold;

use super::ModelRuns;
use super::row_key;
use crate::endpoints::Endpoints;
use crate::judges::Judges;

/// Label of the digest that says what a call came to, and about which texts.
const LABEL: &str = "clover/call/v1";

/// What a call came to, about which texts, for which judge.
pub(super) fn call_digest(
    (experiment, judge): (&ExperimentId, &JudgeId),
    call: EventId,
    (outcome, texts): (CallOutcome, &AskedTexts),
) -> Digest {
    let said = (experiment, judge, call, outcome, texts);
    canon::digest(LABEL, &said)
}

/// A judge is asked at an endpoint exactly where its port says so; rows may go there.
fn check_judge(state: &State, said: &JudgeRegistered) -> RuleAnswer {
    let is_endpoint = said.port == JudgePort::Endpoint;
    ensure!(
        is_endpoint == said.asked.is_some(),
        "an endpoint and a plan of a judge behind HTTP, and of no other",
        said.port.as_str()
    );
    let Some(asked) = &said.asked else {
        return Ok(());
    };
    let of = state.fold::<Endpoints>().by_id.get(&asked.endpoint);
    let of = of.required(&format!("endpoint {}, registered before", asked.endpoint))?;
    ensure!(
        of.said.classes.contains(&TextClass::Rows),
        format!(
            "an endpoint where rows may go, as {} is not",
            asked.endpoint
        ),
        "none of its classes"
    );
    let is_allowed = of
        .said
        .model
        .as_ref()
        .is_none_or(|only| *only == said.model);
    ensure!(
        is_allowed,
        format!("the model that {} is registered for", asked.endpoint),
        said.model.as_str()
    );
    Ok(())
}

fn is_behind_http(state: &State, experiment: &ExperimentId, judge: &JudgeId) -> bool {
    let of = state.fold::<Judges>().of(experiment);
    let of = of.and_then(|of| of.judges.get(judge));
    of.is_some_and(|of| of.said.port == JudgePort::Endpoint)
}

fn names(event: &ProposedEvent<'_>, of: &CallOf) -> RuleAnswer {
    ensure!(
        event.event.header.refs.contains(&of.call),
        format!("the call {} among its references", of.call),
        "none"
    );
    Ok(())
}

fn check_score(
    state: &State,
    event: &ProposedEvent<'_>,
    (experiment, said): (&ExperimentId, &ScoreRecorded),
) -> RuleAnswer {
    let is_called = is_behind_http(state, experiment, &said.judge);
    ensure!(
        is_called == said.call.is_some(),
        "a call of a score by a judge behind HTTP, and of no other",
        if said.call.is_some() { "one" } else { "none" }
    );
    said.call.as_ref().map_or(Ok(()), |of| names(event, of))
}

fn check_missed(
    state: &State,
    event: &ProposedEvent<'_>,
    (experiment, said): (&ExperimentId, &ScoreMissed),
) -> RuleAnswer {
    ensure!(
        is_behind_http(state, experiment, &said.judge),
        "a judge behind HTTP",
        said.judge.to_string()
    );
    ensure!(
        !matches!(said.reason, CallOutcome::Answered | CallOutcome::Lost),
        "an outcome that is no answer, and after which nobody asks at once",
        said.reason.as_str()
    );
    let row = (said.policy.as_str(), said.item.as_str(), said.draw);
    let key = row_key(experiment, &said.judge, row);
    let before = state.fold::<ModelRuns>().missed.get(&key);
    let before = before.copied().unwrap_or_default();
    ensure!(
        said.nth.value() == before,
        format!("miss {before} of the row"),
        said.nth.to_string()
    );
    names(event, &said.call)
}

/// Holds what stands on calls against the judges that they are of.
pub(super) fn check(state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
    let Some(experiment) = &event.event.header.experiment else {
        return;
    };
    let answer = match &event.event.payload {
        Payload::JudgeRegistered(said) => check_judge(state, said),
        Payload::ScoreRecorded(said) => check_score(state, event, (experiment, said)),
        Payload::ScoreMissed(said) => check_missed(state, event, (experiment, said)),
        _ => return,
    };
    breaches.take(RuleName::Source, answer);
}

/// What calls give, and what scores and misses need of them.
pub(super) fn provides(event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
    let Some(experiment) = &event.event.header.experiment else {
        return;
    };
    let mut needs = |judge: &JudgeId, of: &CallOf, outcome: CallOutcome| {
        facts.push(Fact::Needs {
            digest: call_digest((experiment, judge), of.call, (outcome, &of.texts)),
            before: event.seq,
            rule: RuleName::Source,
        });
    };
    match &event.event.payload {
        Payload::ScoreMissed(said) => needs(&said.judge, &said.call, said.reason),
        Payload::ScoreRecorded(said) => {
            if let Some(of) = &said.call {
                needs(&said.judge, of, CallOutcome::Answered);
                facts.push(Fact::Recorded {
                    digest: of.call.0,
                    rule: RuleName::Source,
                    said: fold::said(said.score_micro.value()),
                });
            }
        }
        // What was asked again gives no score: the first answer stays.
        Payload::CallRecorded(said) if said.first.is_none() => {
            let whose = (experiment, &said.judge);
            facts.push(Fact::Gives {
                digest: call_digest(whose, event.event.id, (said.outcome, &said.texts)),
                once: None,
            });
        }
        _ => {}
    }
}
