//! Runs of judges behind HTTP as cassettes: exported, replayed bit for bit, and answered from.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clover::model::simulate::Double;
use clover::model::simulate::DoubleOptions;
use clover::model::simulate::Tape;
use clover::workflow::ask::cassette;
use clover::workflow::ask::cassette::CassetteCall;
use clover::workflow::ask::cassette::CassetteError;
use serde_json::Value;
use serde_json::json;

use super::copy_tree;
use super::endpoints::double;
use super::killed::Home;
use super::live_runs::ask;
use super::live_runs::prepare;
use super::live_runs::said;
use super::live_runs::words;

/// Limits, failures, an answer without a form and one without tokens.
const FAULTS: &str = r#"{"when":{"nth":"1..2"},"do":{"status":429,"headers":{"retry-after-ms":"20"}}}
{"when":{"nth":"4..5"},"do":{"status":500}}
{"when":{"nth":"7..8"},"do":{"cut_at":60}}
{"when":{"nth":"9..10"},"do":{"status":422}}
{"when":{"contains":"Why 11?"},"do":{"ignore":["json_schema"]}}
{"when":{"contains":"Why 12?"},"do":{"usage":"absent"}}
"#;

impl Home<'_> {
    /// Exit code and data of a command, with what it said beside it.
    fn data(&self, line: &str) -> (i32, Value, String) {
        let line = [words(line), vec!["--json"]].concat();
        let output = self.command(&line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_str::<Value>(&text).unwrap_or(Value::Null);
        let code = output.status.code().unwrap();
        (code, json["data"].clone(), text + &said)
    }

    fn run_name(&self) -> String {
        let opened = said(self, "judge_run.opened");
        opened.last().unwrap()["run"].as_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join("work").join(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join("work").join(name), text).unwrap();
    }
}

/// A cassette with one line changed in the body of its answer.
fn changed(cassette: &str, at: usize, change: impl Fn(&str) -> String) -> String {
    let each = cassette.lines().enumerate().map(|(n, line)| {
        if n != at {
            return format!("{line}\n");
        }
        let mut line: Value = serde_json::from_str(line).unwrap();
        let body = change(line["body"].as_str().unwrap());
        line["body"] = json!(body);
        let text = clover::ground::canon::to_bytes(&line).unwrap();
        String::from_utf8(text).unwrap() + "\n"
    });
    each.collect()
}

/// Events of a replay that differ, by kind and member.
fn differing(data: &Value) -> Vec<(String, String)> {
    let events = data["events"].as_array().unwrap().iter();
    let all = events.flat_map(|of| {
        let kind = of["kind"].as_str().unwrap().to_owned();
        let differences = of["differences"].as_array().unwrap().iter();
        differences.map(move |one| (kind.clone(), one["path"].as_str().unwrap().to_owned()))
    });
    all.collect()
}

fn kinds_of(found: &[(String, String)]) -> Vec<&str> {
    let mut kinds: Vec<_> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Given a run with faults; when it is exported and replayed, here and where only the ledger was imported; then every event is the
/// same. When one byte of one answer is changed, then the call is named and all that follows from it.
#[test]
fn a_run_is_the_same_again_from_its_cassette_and_one_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let faulty = double(FAULTS, None);
    prepare(&home, &faulty, (24, 100_000_000), "none");
    let (code, asked, text) = home.data(&ask(1));
    assert_eq!(code, 12, "some are missed: {text}");
    assert!(asked["by_outcome"]["unparsed"].is_u64(), "{asked}");
    let run = home.run_name();
    // Rows that were missed stand in the file alone: without it nothing is written.
    let (code, data, text) = home.data(&format!("cassette export {run} -o c.jsonl"));
    let missed = said(&home, "score.missed").len();
    assert_eq!(code, 12, "{text}");
    assert_eq!(data["missing"].as_array().unwrap().len(), missed);
    assert!(text.contains("--rows"), "{text}");
    assert!(!home.0.join("work/c.jsonl").exists());
    let export = format!("cassette export {run} -o c.jsonl --rows base_responses.jsonl");
    let (code, data, text) = home.data(&export);
    assert_eq!((code, &data["ordered"]), (0, &json!(true)), "{text}");
    let mode = std::fs::metadata(home.0.join("work/c.jsonl"));
    assert_eq!(mode.unwrap().permissions().mode() & 0o777, 0o600);
    let (code, ..) = home.data(&export);
    assert_eq!(code, 11, "a file that stands is not written over");
    let checked = home.ok(&words("cassette check c.jsonl"));
    assert_eq!(checked["data"]["asks"], 24);
    let replay = format!("replay {run} --cassette c.jsonl");
    let (code, data, text) = home.data(&replay);
    assert_eq!((code, &data["differ"]), (0, &json!(0)), "{text}");
    assert_eq!(
        (&data["texts_checked"], &data["order_known"]),
        (&json!(true), &json!(true))
    );
    let events = data["events"].as_array().unwrap().len() as u64;
    assert_eq!(data["same"], events);
    assert!(events > 48, "calls, scores and money: {events}");
    imported(&home, &run);
    one_byte(&home, &run);
}

/// A copy without vault and keys: all but keyed digests is computed again from the cassette, and nothing without it.
fn imported(home: &Home<'_>, run: &str) {
    home.ok(&words("export jsonl -o whole"));
    home.ok(&words("import ledger whole --into elsewhere"));
    let there = format!("--ledger elsewhere replay {run}");
    let (code, data, text) = home.data(&format!("{there} --cassette c.jsonl"));
    assert_eq!((code, &data["differ"]), (0, &json!(0)), "{text}");
    assert_eq!(data["texts_checked"], json!(false));
    let (code, data, text) = home.data(&there);
    assert_eq!((code, &data["differ"]), (12, &json!(0)), "{text}");
    assert!(
        text.contains("the vault of this ledger is not here"),
        "{text}"
    );
}

fn one_byte(home: &Home<'_>, run: &str) {
    let cassette = home.read("c.jsonl");
    let scored = |line: &str| line.contains(r#"\\\"score\\\":"#);
    let at = cassette.lines().position(scored).unwrap();
    let differ = |text: &str, ledger: &str| {
        home.write("changed.jsonl", text);
        let line = format!("{ledger}replay {run} --cassette changed.jsonl");
        let (code, data, text) = home.data(&line);
        assert_eq!(code, 3, "{text}");
        (data, text)
    };
    // A byte that no number hangs on: the commitment tells it, here and elsewhere.
    for ledger in ["", "--ledger elsewhere "] {
        let text = changed(&cassette, at, |body| {
            body.replacen("\"id\":\"", "\"id\":\"_", 1)
        });
        assert_ne!(text, cassette);
        let (data, said) = differ(&text, ledger);
        let found = differing(&data);
        let expected = ("call.recorded".to_owned(), "response.commitment".to_owned());
        assert_eq!(found, [expected], "{said}");
        let events = data["events"].as_array().unwrap();
        let follows: Vec<_> = events
            .iter()
            .filter(|of| !of["follows"].is_null())
            .collect();
        assert_eq!(
            (follows.len(), &follows[0]["kind"]),
            (1, &json!("score.recorded"))
        );
    }
    // The score: its row follows.
    let text = changed(&cassette, at, |body| {
        let at = body.find(r#"\"score\":"#).unwrap() + 10;
        let other = if body[at..].starts_with('1') {
            "2"
        } else {
            "1"
        };
        format!("{}{other}{}", &body[..at], &body[at + 1..])
    });
    let (data, said) = differ(&text, "");
    let found = differing(&data);
    assert_eq!(
        kinds_of(&found),
        ["call.recorded", "score.recorded"],
        "{said}"
    );
    // The tokens: what the run cost follows, to its end.
    let text = changed(&cassette, at, |body| {
        let mut body: Value = serde_json::from_str(body).unwrap();
        let more = body["usage"]["prompt_tokens"].as_u64().unwrap() + 100_000;
        body["usage"]["prompt_tokens"] = json!(more);
        body["usage"]["total_tokens"] =
            json!(more + body["usage"]["completion_tokens"].as_u64().unwrap());
        body.to_string()
    });
    let (data, said) = differ(&text, "");
    let expected = ["budget.settled", "call.recorded", "judge_run.closed"];
    assert_eq!(kinds_of(&differing(&data)), expected, "{said}");
    // Another ask is named by its member.
    let line = cassette.lines().nth(at).unwrap();
    let mut other: Value = serde_json::from_str(line).unwrap();
    other["ask"]["decoding"]["max_output_tokens"] = json!(601);
    let ask = clover::ground::canon::to_bytes(&other["ask"]).unwrap();
    let key = clover::ground::digest::Digest::sha256(&ask).to_hex();
    other["key"] = json!(key);
    let other = clover::ground::canon::to_bytes(&other).unwrap();
    let mut lines: Vec<_> = cassette.lines().map(str::to_owned).collect();
    lines[at] = String::from_utf8(other).unwrap();
    lines.sort_by_key(|line| serde_json::from_str::<Value>(line).unwrap()["key"].to_string());
    let (_, said) = differ(&(lines.join("\n") + "\n"), "");
    assert!(said.contains("ask.decoding.max_output_tokens"), "{said}");
    lines_that_are_none(home, run, &cassette);
}

/// A call without a line is not checked; a line that is none is bad input; a line twice is refused with its number.
fn lines_that_are_none(home: &Home<'_>, run: &str, cassette: &str) {
    let rest: String = cassette
        .lines()
        .skip(1)
        .map(|of| format!("{of}\n"))
        .collect();
    home.write("short.jsonl", &rest);
    let (code, data, text) = home.data(&format!("replay {run} --cassette short.jsonl"));
    assert_eq!((code, &data["differ"]), (12, &json!(0)), "{text}");
    assert!(data["gone"].as_u64() > Some(0), "{text}");
    let first = cassette.lines().next().unwrap();
    for (text, expected) in [
        (
            format!("{first}\n{first}\n"),
            "line 2: expected lines sorted",
        ),
        (format!("{first}\n{{}}\n"), "expected the field ask"),
        (first.to_owned(), "line 1: expected a line feed"),
    ] {
        home.write("wrong.jsonl", &text);
        for line in [
            format!("replay {run} --cassette wrong.jsonl"),
            "cassette check wrong.jsonl".to_owned(),
            "endpoint simulate --cassette wrong.jsonl --calls 0".to_owned(),
        ] {
            let (code, _, said) = home.data(&line);
            assert!(code == 4 && said.contains(expected), "{line} {code} {said}");
        }
    }
    let (code, ..) = home.data("replay run-99 --cassette c.jsonl");
    assert_eq!(code, 5);
}

/// Given a run that was killed and went on; then it is the same again from the vault alone, lost asks and their holds included.
/// Once a row is erased, its call cannot be exported, and replay says so.
#[test]
fn a_run_that_was_killed_is_the_same_again_until_a_text_is_erased() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder.path());
    let slow = double(r#"{"do":{"delay_ms":40}}"#, None);
    prepare(&home, &slow, (60, 100_000_000), "none");
    let line = ask(1);
    let mut child = home.command(&words(&line));
    let child = child.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    while slow.billed().len() < 30 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let run = home.run_name();
    let (code, data, text) = home.data(&format!("replay {run}"));
    assert_eq!((code, &data["differ"]), (0, &json!(0)), "cut: {text}");
    home.ok(&words(&line));
    let (code, data, text) = home.data(&format!("replay {run}"));
    assert_eq!((code, &data["differ"]), (0, &json!(0)), "{text}");
    let calls = said(&home, "call.recorded");
    assert!(calls.iter().any(|of| of["outcome"] == "lost"));
    home.ok(&words(&format!("cassette export {run} -o c.jsonl")));
    let (code, data, text) = home.data(&format!("replay {run} --cassette c.jsonl"));
    assert_eq!((code, &data["order_known"]), (0, &json!(true)), "{text}");
    let scores = said(&home, "score.recorded");
    let subject = scores[3]["response"]["subject"].as_str().unwrap();
    home.ok(&["erase", subject, "--basis", "they asked", "--yes"]);
    let (code, data, text) = home.data(&format!("cassette export {run} -o gone.jsonl"));
    assert_eq!(code, 12, "{text}");
    assert!(!data["missing"].as_array().unwrap().is_empty());
    assert!(text.contains("withheld under erasure"), "{text}");
    assert!(!home.0.join("work/gone.jsonl").exists());
    let (code, data, text) = home.data(&format!("replay {run}"));
    assert_eq!((code, &data["differ"]), (12, &json!(0)), "{text}");
}

/// Given a copy of a ledger from before its run, and a double that answers from the cassette of that run; then the run gives the
/// same scores at the same costs. An ask that is not on it is refused, and the member that differs is named.
#[test]
fn a_double_answers_from_a_cassette_and_from_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    std::fs::create_dir_all(&first).unwrap();
    let home = Home(&first);
    let live = double(r#"{"when":{"nth":"2..3"},"do":{"status":503}}"#, None);
    prepare(&home, &live, (12, 100_000_000), "none");
    // The vault is drawn with the first use of a text.
    home.ok(&words(&format!("{} --dry-run", ask(1))));
    copy_tree(&first, &second);
    home.ok(&words(&ask(1)));
    let run = home.run_name();
    home.ok(&words(&format!("cassette export {run} -o c.jsonl")));
    let address = live.address();
    drop(live);
    let bytes = home.read("c.jsonl").into_bytes();
    let mut calls: Vec<CassetteCall> = Vec::new();
    let read = cassette::each(&bytes[..], |_, call| {
        calls.push(call);
        Ok::<_, CassetteError>(())
    });
    read.unwrap();
    let tape = Arc::new(Tape::new(calls));
    let options = DoubleOptions {
        judge: None,
        listen: Some(address),
        tape: Some(Arc::clone(&tape)),
        ..DoubleOptions::default()
    };
    let taped = Double::start(options).unwrap();
    let again = Home(&second);
    again.ok(&words(&ask(1)));
    let scores = |home: &Home<'_>| {
        let scores = said(home, "score.recorded").into_iter();
        let mut scores: Vec<_> = scores
            .map(|of| (of["item"].to_string(), of["score_micro"].clone()))
            .collect();
        scores.sort_by(|a, b| a.0.cmp(&b.0));
        scores
    };
    assert_eq!(scores(&home), scores(&again));
    let cost = |home: &Home<'_>| said(home, "judge_run.closed")[0]["cost_usd_micro"].clone();
    assert_eq!(cost(&home), cost(&again));
    let named = |home: &Home<'_>| {
        let calls = said(home, "call.recorded").into_iter();
        let mut names: Vec<_> = calls.map(|of| of["provider_request"].to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(named(&home), named(&again));
    assert_eq!(tape.missed(), None);
    let other = ask(1).replace("base_responses", "other_responses");
    let (code, _, text) = again.data(&other);
    assert_ne!(code, 0, "{text}");
    let missed = tape.missed().unwrap();
    assert!(missed.contains("differs from the nearest"), "{missed}");
    assert!(missed.contains("messages.1.content"), "{missed}");
    drop(taped);
    served_by_the_program(&home, address);
}

/// The program itself ends with exit 3 at the first ask that is not on the cassette.
fn served_by_the_program(home: &Home<'_>, address: std::net::SocketAddr) {
    let line = format!("endpoint simulate --cassette c.jsonl --listen {address}");
    let mut serve = home.command(&words(&line));
    let serve = serve.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = serve.spawn().unwrap();
    let probe = format!("endpoint probe --url http://{address} --model m-1");
    // It listens a moment later.
    for _ in 0..100 {
        if std::net::TcpStream::connect(address).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    home.data(&probe);
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{text}");
    assert!(text.contains("differs from the nearest"), "{text}");
}

/// Runs that end in other ways are the same again too: at a free endpoint, under a cap, by another model, and by somebody's word
/// after a kill. Their rows were taken in, so the ledger has the texts of those that were missed.
#[test]
fn runs_that_end_in_other_ways_are_the_same_again() {
    let other = r#"{"when":{"nth":"5.."},"do":{"model":"m-9"}}"#;
    let cases: [(&str, &str, &str, &str, i32); 4] = [
        ("", "free", "", "completed", 0),
        ("", "paid", " --cap-usd 0.002", "capped", 11),
        (other, "paid", "", "stopped", 11),
        (
            r#"{"do":{"delay_ms":100}}"#,
            "paid",
            " killed",
            "stopped",
            0,
        ),
    ];
    for (script, place, more, end, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let home = Home(folder.path());
        let live = double(script, None);
        prepare(&home, &live, (40, 100_000_000), "none");
        home.ok(&words("import rows base_responses.jsonl"));
        let mut line = "judge ask --plan plan-1.yaml --account judges -j 4 --yes".to_owned();
        if place == "free" {
            home.ok(&words(&format!(
                "endpoint add own --url http://{} --provider here --texts rows --terms kept-here --auth none --free",
                live.address()
            )));
            let plan = home
                .read("plan-1.yaml")
                .replace("endpoint: sim", "endpoint: own");
            home.write("plan-1.yaml", &plan);
            line = line.replace(" --account judges", "");
        }
        if more == " killed" {
            let mut child = home.command(&words(&line));
            let child = child.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = child.spawn().unwrap();
            while live.billed().len() < 28 {
                std::thread::sleep(Duration::from_millis(5));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            home.ok(&words(&format!("judge stop {} --yes", home.run_name())));
        } else {
            let (code, _, text) = home.data(&format!("{line}{more}"));
            assert_eq!(code, expected, "{text}");
        }
        let closed = said(&home, "judge_run.closed");
        assert_eq!(closed[0]["end"], end, "{place}{more}");
        let run = home.run_name();
        let (code, data, text) = home.data(&format!("replay {run}"));
        assert_eq!(
            (code, &data["differ"]),
            (0, &json!(0)),
            "{place}{more} {text}"
        );
        home.ok(&words(&format!("cassette export {run} -o c.jsonl")));
        let (code, data, text) = home.data(&format!("replay {run} --cassette c.jsonl"));
        assert_eq!(
            (code, &data["differ"]),
            (0, &json!(0)),
            "{place}{more} {text}"
        );
        assert_eq!(data["texts_checked"], json!(true), "{place}{more}");
    }
}
