//! Runs of workflows: guards, bounds, crashes, and traces that recorded answers repeat.

use super::*;
use crate::executor::table::Recorder;
use crate::executor::table::Recording;
use crate::executor::table::Table;

/// The workflow of the page: an invoice is read, checked, and read again.
const INVOICE: &str = r#"{"ir":"wf/1","inputs":["x","c"],
        "defaults":{"model":"@exec","temperature":0,"max_tokens":512,"seed":7},
        "steps":[
          {"id":"draft","kind":"llm","prompt":{"system":"You read invoices.","user":"Task: {{x.text}}\nLimit: {{c.limit}}"},
           "out":{"as":"json","schema":{"type":"object","required":["total"]}},"reads":["x.text","c.limit"],"writes":"draft"},
          {"id":"k1","kind":"check","expr":{"op":"le","a":{"path":"draft.total"},"b":{"path":"c.limit"}},"hard":true,"flag":"limit_ok"},
          {"id":"g1","kind":"guard","target":"draft","when":{"op":"not","of":{"op":"flag","id":"limit_ok"}},"max_tries":2,"note":"Fix: {{flags}}"},
          {"id":"t1","kind":"map","fn":"select","args":{"path":"draft.total"},"writes":"y"}],
        "return":"y"}"#;

/// Answers in turn.
struct Script(Vec<StepAnswer>);

impl Executor for Script {
    fn ask(&mut self, _: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        Ok(self.0.remove(0))
    }
}

fn script(texts: &[&str]) -> Script {
    let answer = |text: &&str| StepAnswer::Text((*text).to_owned(), Usage::default());
    Script(texts.iter().map(answer).collect())
}

fn inputs(text: &str) -> BTreeMap<String, Data> {
    match Data::parse(text, 1 << 20).unwrap() {
        Data::Object(members) => members,
        _ => BTreeMap::new(),
    }
}

fn over(workflow: &str, given: &str, executor: &mut dyn Executor) -> RunOutcome {
    let workflow = Workflow::parse(workflow).unwrap();
    run(&workflow, &inputs(given), executor, Bounds::default(), 0).unwrap()
}

const GIVEN: &str = r#"{"x":{"text":"12 + 30 EUR"},"c":{"limit":40}}"#;

#[test]
fn a_guard_runs_its_target_again_with_its_note() {
    let mut inner = script(&["{\"total\":42}", "{\"total\":41}", "{\"total\":40}"]);
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut inner, &mut recording);
    let first = over(INVOICE, GIVEN, &mut recorder);
    assert_eq!(first.output.clone().unwrap().to_string(), "40");
    assert_eq!(first.violations().count(), 0);
    let steps: Vec<_> = first
        .trace
        .steps
        .iter()
        .map(|of| (of.step.as_str(), of.attempt))
        .collect();
    let expected = [
        ("draft", 0),
        ("k1", 0),
        ("draft", 1),
        ("k1", 1),
        ("draft", 2),
        ("k1", 2),
        ("g1", 0),
        ("t1", 0),
    ];
    assert_eq!(steps, expected);
    assert_eq!(
        first.trace.steps[6].guard,
        Some(TraceGuard {
            still: false,
            tries: 2
        })
    );
    // The note makes another request, and the second and third are alike.
    let requests: Vec<_> = first
        .trace
        .steps
        .iter()
        .filter_map(|of| of.call.as_ref())
        .collect();
    assert_ne!(requests[0].request, requests[1].request);
    assert_eq!(requests[1].request, requests[2].request);
    // What was recorded gives the same trace, bit for bit.
    let mut table = Table::default();
    for line in &recording.lines {
        table.add_line(line).unwrap();
    }
    assert_eq!(table.len(), 3);
    let again = over(INVOICE, GIVEN, &mut table);
    assert_eq!(again.trace.digest(), first.trace.digest());
    let workflow = Workflow::parse(INVOICE).unwrap();
    let more = run(&workflow, &inputs(GIVEN), &mut table, Bounds::default(), 0).unwrap_err();
    assert!(
        matches!(more, ExecutorFault::NotRecorded { nth: 1, .. }),
        "{more}"
    );
}

#[test]
fn a_constraint_that_stays_broken_is_no_crash() {
    let outcome = over(INVOICE, GIVEN, &mut script(&["{\"total\":99}"; 3]));
    assert_eq!(outcome.crash(), None);
    assert_eq!(outcome.violations().collect::<Vec<_>>(), ["limit_ok"]);
    assert_eq!(outcome.output.unwrap().to_string(), "99");
}

#[test]
fn crashes_have_a_reason_and_a_step() {
    let crash = |answer: StepAnswer| {
        let outcome = over(INVOICE, GIVEN, &mut Script(vec![answer]));
        let crash = outcome.crash().unwrap().clone();
        assert_eq!(crash.step, "draft");
        // The call that failed is in the trace.
        assert!(outcome.trace.steps[0].call.is_some());
        (crash.reason, crash.detail)
    };
    let text = |text: &str| StepAnswer::Text(text.to_owned(), Usage::default());
    let (reason, detail) = crash(text("{\"total\":"));
    assert_eq!(reason, CrashReason::Parse);
    assert!(detail.contains("1:10"), "{detail}");
    let (reason, detail) = crash(text("{\"sum\":1}"));
    assert_eq!(reason, CrashReason::Type);
    assert!(detail.ends_with("\"total\""), "{detail}");
    assert_eq!(
        crash(StepAnswer::Timeout(Usage::default())).0,
        CrashReason::Timeout
    );
    let failed = StepAnswer::Failed("status 500".to_owned(), Usage::default());
    assert_eq!(crash(failed).0, CrashReason::Endpoint);
    let outcome = over(INVOICE, "{\"x\":{},\"c\":{\"limit\":1}}", &mut script(&[]));
    assert_eq!(outcome.crash().unwrap().detail, "nothing stands at x.text");
    let outcome = over(INVOICE, "{\"x\":{}}", &mut script(&[]));
    assert_eq!(outcome.crash().unwrap().detail, "the input c is not given");
}

#[test]
fn the_detail_of_a_crash_holds_nothing_of_an_answer() {
    let closed = INVOICE.replace(
        r#""required":["total"]"#,
        r#""additionalProperties":false,"properties":{"lines":{"items":{"type":"object","additionalProperties":false}}}"#,
    );
    let detail = |answer: &str| {
        let outcome = over(&closed, GIVEN, &mut script(&[answer]));
        outcome.crash().unwrap().detail.clone()
    };
    let misfit = "the answer does not fit its schema: ";
    let none = "the answer is no JSON: ";
    for (answer, expected) in [
        (
            r#"{"Jane Roe 555-1234":"k"}"#,
            format!("{misfit}\"as a whole\""),
        ),
        (
            r#"{"lines":[{},{"Jane":1}]}"#,
            format!("{misfit}\"lines.1\""),
        ),
        (
            r#"{"Jane":1,"Jane":2}"#,
            format!("{none}1:11: a name stands twice"),
        ),
        (
            "{\"lines\":\n 99988877766655544433}",
            format!("{none}2:2: expected a number: whole up to 2^53 - 1, or decimal below 10^9"),
        ),
        ("Jane", format!("{none}1:1: expected a JSON value")),
    ] {
        assert_eq!(detail(answer), expected, "{answer}");
    }
    let step = r#"{"id":"m","kind":"map","fn":"parse_json","args":{"path":"x"},"writes":"y"}"#;
    let text = format!(r#"{{"ir":"wf/1","inputs":["x"],"steps":[{step}],"return":"y"}}"#);
    let given = r#"{"x":"{\"Jane\":1,\"Jane\":2}"}"#;
    let outcome = over(&text, given, &mut script(&[]));
    let detail = &outcome.crash().unwrap().detail;
    assert_eq!(detail, "x holds no JSON: 1:11: a name stands twice");
    let failed = StepAnswer::Failed("Jane: status 500".to_owned(), Usage::default());
    let outcome = over(INVOICE, GIVEN, &mut Script(vec![failed]));
    assert_eq!(outcome.crash().unwrap().detail, "the endpoint failed");
}

fn maps(steps: &str, given: &str) -> Result<String, CrashReason> {
    let text = format!(r#"{{"ir":"wf/1","inputs":["x"],"steps":[{steps}],"return":"y"}}"#);
    let outcome = over(&text, given, &mut script(&[]));
    match outcome.crash() {
        Some(crash) => Err(crash.reason),
        None => Ok(outcome.output.unwrap().to_string()),
    }
}

fn map_of(function: &str, args: &str, given: &str) -> Result<String, CrashReason> {
    let step = format!(r#"{{"id":"m","kind":"map","fn":"{function}","args":{args},"writes":"y"}}"#);
    maps(&step, given)
}

fn ok(function: &str, args: &str, given: &str, value: &str) {
    assert_eq!(
        map_of(function, args, given).as_deref(),
        Ok(value),
        "{function} {args}"
    );
}

fn bad(function: &str, args: &str, given: &str, reason: CrashReason) {
    assert_eq!(
        map_of(function, args, given),
        Err(reason),
        "{function} {args}"
    );
}

#[test]
fn every_function_has_a_value_or_a_reason() {
    ok(
        "select",
        r#"{"path":"x.1"}"#,
        r#"{"x":[1,{"b":2,"a":1}]}"#,
        r#"{"a":1,"b":2}"#,
    );
    bad(
        "select",
        r#"{"path":"x.2"}"#,
        r#"{"x":[]}"#,
        CrashReason::Type,
    );
    ok(
        "merge",
        r#"{"paths":["x.a","x.b"]}"#,
        r#"{"x":{"a":{"k":1,"l":1},"b":{"k":2}}}"#,
        r#"{"k":2,"l":1}"#,
    );
    bad(
        "merge",
        r#"{"paths":["x"]}"#,
        r#"{"x":[]}"#,
        CrashReason::Type,
    );
    ok(
        "parse_json",
        r#"{"path":"x"}"#,
        r#"{"x":" [1.50] "}"#,
        "[1.5]",
    );
    bad(
        "parse_json",
        r#"{"path":"x"}"#,
        r#"{"x":"[1"}"#,
        CrashReason::Parse,
    );
    ok(
        "regex",
        r#"{"path":"x","pattern":"a(\\d+)","group":1}"#,
        r#"{"x":"a12"}"#,
        "\"12\"",
    );
    ok(
        "regex",
        r#"{"path":"x","pattern":"b","else":null}"#,
        r#"{"x":"a"}"#,
        "null",
    );
    bad(
        "regex",
        r#"{"path":"x","pattern":"b"}"#,
        r#"{"x":"a"}"#,
        CrashReason::Parse,
    );
}

#[test]
fn so_have_those_of_numbers_and_tables() {
    ok("lower", r#"{"path":"x"}"#, r#"{"x":"ÀB"}"#, "\"Àb\"");
    ok(
        "round",
        r#"{"path":"x","decimals":1}"#,
        r#"{"x":0.25}"#,
        "0.2",
    );
    ok(
        "round",
        r#"{"path":"x","decimals":1,"ties":"away"}"#,
        r#"{"x":0.25}"#,
        "0.3",
    );
    bad(
        "round",
        r#"{"path":"x","decimals":1}"#,
        r#"{"x":"1"}"#,
        CrashReason::Type,
    );
    ok(
        "lookup",
        r#"{"path":"x","table":{"1.5":"b"}}"#,
        r#"{"x":1.50}"#,
        "\"b\"",
    );
    ok(
        "lookup",
        r#"{"path":"x","table":{},"else":0}"#,
        r#"{"x":"q"}"#,
        "0",
    );
    bad(
        "lookup",
        r#"{"path":"x","table":{}}"#,
        r#"{"x":"q"}"#,
        CrashReason::Type,
    );
    ok(
        "concat",
        r#"{"template":"{{x.a}}-{{x.n}}"}"#,
        r#"{"x":{"a":"k","n":[1]}}"#,
        "\"k-[1]\"",
    );
    bad(
        "concat",
        r#"{"template":"{{x.b}}"}"#,
        r#"{"x":{}}"#,
        CrashReason::Type,
    );
    ok("const", r#"{"value":[true]}"#, r#"{"x":1}"#, "[true]");
}

#[test]
fn what_grows_without_end_is_bound() {
    let mut steps = vec![
        r#"{"id":"a0","kind":"map","fn":"select","args":{"path":"x"},"writes":"v0"}"#.to_owned(),
    ];
    for at in 1..11 {
        let before = at - 1;
        let holes = format!("{{{{v{before}}}}}").repeat(40);
        steps.push(format!(r#"{{"id":"a{at}","kind":"map","fn":"concat","args":{{"template":"{holes}"}},"writes":"v{at}"}}"#));
    }
    steps.push(
        r#"{"id":"z","kind":"map","fn":"select","args":{"path":"v10"},"writes":"y"}"#.to_owned(),
    );
    assert_eq!(
        maps(&steps.join(","), r#"{"x":"0123456789"}"#),
        Err(CrashReason::Bound)
    );
    // Guards within guards multiply: the count of executions ends them.
    let mut steps =
        vec![r#"{"id":"m","kind":"llm","prompt":{"user":"u"},"reads":[],"writes":"m"}"#.to_owned()];
    for at in 0..11 {
        steps.push(format!(r#"{{"id":"g{at}","kind":"guard","target":"m","when":{{"op":"exists","path":"m"}},"max_tries":3}}"#));
    }
    let text = format!(
        r#"{{"ir":"wf/1","inputs":[],"steps":[{}],"return":"m"}}"#,
        steps.join(",")
    );
    let workflow = Workflow::parse(&text).unwrap();
    let mut executor = script(&["a"; 1000]);
    let bounds = Bounds {
        calls: 1000,
        ..Bounds::default()
    };
    let outcome = run(&workflow, &BTreeMap::new(), &mut executor, bounds, 0).unwrap();
    assert_eq!(outcome.crash().unwrap().reason, CrashReason::Bound);
    assert!(outcome.trace.steps.len() <= bounds.steps);
    let mut executor = script(&["a"; 1000]);
    let outcome = run(
        &workflow,
        &BTreeMap::new(),
        &mut executor,
        Bounds::default(),
        0,
    )
    .unwrap();
    assert_eq!(outcome.crash().unwrap().detail, "more than 60 calls");
    assert_eq!(executor.0.len(), 940, "a bound holds to the call");
    // So does the work of patterns over long texts.
    let long = format!(r#"{{"x":"{}"}}"#, "a".repeat(60_000));
    let check = r#"{"op":"regex","path":"x","pattern":"(a|b|ab)*c"}"#;
    let of = vec![check; 16].join(",");
    let checks = format!(
        r#"{{"id":"k","kind":"check","hard":true,"expr":{{"op":"or","of":[{of}]}}}},
            {{"id":"m","kind":"map","fn":"const","args":{{"value":1}},"writes":"y"}}"#
    );
    let start = std::time::Instant::now();
    assert_eq!(maps(&checks, &long), Err(CrashReason::Bound));
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn a_return_step_ends_a_run() {
    let steps = r#"{"id":"m","kind":"map","fn":"const","args":{"value":1},"writes":"y"},
            {"id":"r","kind":"return","path":"x","when":{"op":"exists","path":"x.a"}}"#;
    assert_eq!(maps(steps, r#"{"x":{"a":2}}"#).as_deref(), Ok(r#"{"a":2}"#));
    assert_eq!(maps(steps, r#"{"x":{}}"#).as_deref(), Ok("1"));
}
