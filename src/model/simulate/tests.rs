//! Every fault of the double, heard through the real desk.

use std::time::Duration;

use clover_event::calls::AttemptClass;
use clover_event::calls::CallOutcome;
use clover_event::id::EndpointId;
use clover_event::payload::endpoint::AuthForm;
use clover_event::payload::endpoint::BaseUrl;
use clover_event::payload::endpoint::Dialect;
use clover_ground::seed::SeedTree;
use clover_ground::time::Timestamp;
use clover_workflow::ask::AnswerFormat;
use clover_workflow::ask::AskDecoding;
use clover_workflow::ask::Message;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::Speaker;
use clover_workflow::ask::dispatch::DispatchRules;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::EndedCall;
use clover_workflow::ask::sending::Sending;
use clover_workflow::ask::sending::SendingTurn;

use super::*;
use crate::client::Connection;
use crate::client::Timeouts;
use crate::desk::HttpDesk;
use crate::dialect;

const CANARY: &str = "sk-canary-0123456789";

fn double(script: &str) -> Double {
    let options = DoubleOptions {
        judge: None,
        seed: 7,
        script: Script::parse(script).unwrap(),
        key: Some(Secret::new(CANARY.to_owned())),
        listen: None,
        tape: None,
    };
    Double::start(options).unwrap()
}

fn ask(text: &str) -> ModelAsk {
    let message = Message {
        role: Speaker::User,
        text: text.to_owned(),
    };
    let decoding = AskDecoding {
        max_output_tokens: 100,
        seed: None,
        temperature_micro: Some(0),
    };
    let to = (EndpointId::new("sim").unwrap(), "m-1".to_owned());
    let format = AnswerFormat::Text;
    ModelAsk::new(to, (vec![message], format), decoding, "probe-0".to_owned())
}

fn desk(of: &Double, dialect: Dialect, key: &str) -> HttpDesk {
    let quick = Duration::from_millis(400);
    let connection = Connection {
        auth: AuthForm::Bearer,
        key: Some(Secret::new(key.to_owned())),
        proxy: Some("http://127.0.0.1:1".to_owned()),
        timeouts: Timeouts {
            connect: quick,
            first_byte: quick,
            idle: quick,
            total: quick * 4,
        },
        url: BaseUrl::new(format!("http://{}", of.address())).unwrap(),
        headers: dialect::headers(dialect),
    };
    HttpDesk::open(&connection).unwrap()
}

/// Sends asks until each has come to something, or the run stops.
fn sent(
    desk: &mut HttpDesk,
    dialect: Dialect,
    asks: &[&str],
) -> (Vec<EndedCall>, Option<StopReason>) {
    let wire = dialect::wire(dialect);
    let requests = asks.iter().map(|text| AskRequest::of(wire, ask(text)));
    let requests: Vec<_> = requests.collect();
    let rules = DispatchRules {
        attempts_max: 3,
        ..DispatchRules::default()
    };
    let jitter = SeedTree::of_number(1);
    let mut sending = Sending::new(desk, wire, &requests, (rules, jitter));
    let (mut all, now) = (Vec::new(), Timestamp::from_micros(0).unwrap());
    loop {
        match sending.next(now) {
            SendingTurn::Beat => {}
            SendingTurn::Done => return (all, None),
            SendingTurn::Ended(of) => all.push(*of),
            SendingTurn::Hold => sending.held(),
            SendingTurn::Stopped(reason) => {
                all.extend(sending.leave().0);
                return (all, Some(reason));
            }
        }
    }
}

fn one(script: &str) -> (EndedCall, Double) {
    let double = double(script);
    let mut desk = desk(&double, Dialect::OpenaiChat, CANARY);
    let (mut all, _) = sent(&mut desk, Dialect::OpenaiChat, &["Hi"]);
    assert_eq!(all.len(), 1, "one ask comes to one thing");
    (all.remove(0), double)
}

fn classes(of: &EndedCall) -> Vec<AttemptClass> {
    of.attempts.iter().map(|attempt| attempt.class).collect()
}

#[test]
fn each_dialect_is_answered_and_its_tokens_are_those_of_the_journal() {
    for dialect in Dialect::ALL {
        let double = double("");
        let mut desk = desk(&double, *dialect, CANARY);
        let (all, stopped) = sent(&mut desk, *dialect, &["Hi"]);
        assert_eq!((all.len(), stopped), (1, None), "{dialect}");
        assert_eq!(all[0].outcome, CallOutcome::Answered, "{dialect}");
        let reading = all[0].reading.as_ref().unwrap();
        assert_eq!(reading.model.as_deref(), Some("m-1-2026-01-15"));
        let (tokens, billed) = (reading.tokens.unwrap(), double.billed());
        assert_eq!(billed.len(), 1);
        assert_eq!(tokens.input.value(), billed[0].input, "{dialect}");
        assert_eq!(tokens.output.value(), billed[0].output, "{dialect}");
    }
}

#[test]
fn the_same_seed_and_ask_give_the_same_answer() {
    let text = || one("").0.reading.unwrap().text;
    assert_eq!(text(), text());
}

#[test]
fn a_limit_is_waited_out() {
    let (of, double) =
        one(r#"{"when":{"nth":0},"do":{"status":429,"headers":{"retry-after-ms":"50"}}}"#);
    assert_eq!(of.outcome, CallOutcome::Answered);
    assert_eq!(classes(&of), [AttemptClass::Limited, AttemptClass::Ok]);
    assert_eq!(double.billed().len(), 2, "two requests, and no hidden one");
}

#[test]
fn what_breaks_off_has_its_class_and_is_sent_again() {
    for (fault, class) in [
        (r#"{"status":500}"#, AttemptClass::Failed),
        (r#"{"status":503}"#, AttemptClass::Overloaded),
        (r#"{"cut_at":20}"#, AttemptClass::Cut),
        (r#"{"reset_at":0}"#, AttemptClass::Cut),
        (r#"{"reset_at":40}"#, AttemptClass::Cut),
        (r#"{"stall_at":10}"#, AttemptClass::Late),
        (r#"{"delay_ms":3000}"#, AttemptClass::Late),
        (r#"{"body":"<html>sign in</html>"}"#, AttemptClass::Foreign),
        (r#"{"body":"{\"choices\":["}"#, AttemptClass::Foreign),
        (r#"{"body":""}"#, AttemptClass::Foreign),
    ] {
        let (of, double) = one(&format!(r#"{{"when":{{"nth":0}},"do":{fault}}}"#));
        assert_eq!(classes(&of), [class, AttemptClass::Ok], "{fault}");
        assert_eq!(of.outcome, CallOutcome::Answered, "{fault}");
        assert_eq!(double.billed().len(), 2, "{fault}");
    }
}

#[test]
fn what_no_attempt_mends_ends_once() {
    let (of, double) = one(r#"{"do":{"status":400}}"#);
    assert_eq!(of.outcome, CallOutcome::Rejected);
    assert_eq!(
        of.detail.as_deref(),
        Some("api_error: Status 400 by script.")
    );
    assert_eq!(double.billed().len(), 1);
    let (of, double) = one(r#"{"do":{"status":500}}"#);
    assert_eq!(of.outcome, CallOutcome::Exhausted);
    assert_eq!((of.attempts.len(), double.billed().len()), (3, 3));
    let long = "a".repeat(5 << 20);
    let (of, _) = one(&format!(r#"{{"do":{{"body":"{long}"}}}}"#));
    assert_eq!(of.outcome, CallOutcome::Unparsed);
    assert_eq!(of.detail.as_deref(), Some("oversize"));
}

#[test]
fn a_redirect_is_not_followed_and_a_wrong_key_stops_the_run() {
    let elsewhere = double("");
    let to = format!("http://{}/v1", elsewhere.address());
    let script = format!(r#"{{"do":{{"status":307,"headers":{{"location":"{to}"}}}}}}"#);
    let first = double(&script);
    let mut at = desk(&first, Dialect::OpenaiChat, CANARY);
    let (_, stopped) = sent(&mut at, Dialect::OpenaiChat, &["Hi", "Ho"]);
    assert_eq!(stopped, Some(StopReason::Redirected));
    assert_eq!(elsewhere.billed(), [], "no key goes elsewhere");
    let other = double("");
    let mut at = desk(&other, Dialect::OpenaiChat, "sk-wrong-0123456789");
    let (all, stopped) = sent(&mut at, Dialect::OpenaiChat, &["Hi"]);
    assert_eq!(stopped, Some(StopReason::Denied));
    assert_eq!(classes(&all[0]), [AttemptClass::Denied]);
}

#[test]
fn nothing_is_sent_where_nobody_listens() {
    let gone = double("");
    let mut at = desk(&gone, Dialect::OpenaiChat, CANARY);
    drop(gone);
    let (all, _) = sent(&mut at, Dialect::OpenaiChat, &["Hi"]);
    assert_eq!(all[0].outcome, CallOutcome::Exhausted);
    assert_eq!(classes(&all[0]), [AttemptClass::Unreachable; 3]);
}

#[test]
fn a_key_that_comes_back_is_neither_kept_nor_shown() {
    let said = format!(r#"{{"do":{{"status":400,"body":"wrong key {CANARY}"}}}}"#);
    let (of, _) = one(&said);
    assert_eq!(of.detail.as_deref(), Some("wrong key ***"));
    let body = serde_json::json!({"choices": [{"finish_reason": "stop",
        "message": {"content": CANARY}}]});
    let said = serde_json::json!({"do": {"body": body.to_string()}});
    let (of, _) = one(&said.to_string());
    assert_eq!(of.outcome, CallOutcome::Unparsed);
    assert_eq!((of.body, of.reading), (None, None));
    assert_eq!(of.detail.as_deref(), Some("secret"));
}

#[test]
fn usage_and_model_are_what_the_script_says() {
    let (of, _) = one(r#"{"do":{"usage":"absent","model":"m-2"}}"#);
    let reading = of.reading.unwrap();
    assert_eq!(
        (reading.tokens, reading.model.as_deref()),
        (None, Some("m-2"))
    );
}

#[test]
fn a_double_listens_on_loopback_alone_and_a_script_names_its_wrong_line() {
    let options = DoubleOptions {
        judge: None,
        listen: Some(([0, 0, 0, 0], 0).into()),
        ..DoubleOptions::default()
    };
    assert!(Double::start(options).is_err());
    let wrong = Script::parse("{\"do\":{}}\n{\"do\":{\"statis\":1}}").unwrap_err();
    assert_eq!(wrong.line, 2);
}
