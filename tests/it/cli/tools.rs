//! Files of other tools, as those tools write them: taken in whole or not at all, and nothing of them is lost in silence.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::says;

/// A person who holds every role but the custodian's, with an experiment and a design for labels.
pub(super) fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register arena --title Arena --purpose testing --key owner");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk
}

/// Puts a fixture into the working folder.
fn put(desk: &Desk, name: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/imports");
    std::fs::copy(from.join(name), desk.at.join(name)).unwrap();
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let answer = desk
        .ok(&format!("log --kind {kind} --limit 1000 --json"))
        .json();
    let entries = answer["data"]["entries"].as_array().unwrap().clone();
    entries
        .into_iter()
        .map(|entry| entry["body"]["data"].clone())
        .collect()
}

/// Scores in millionths, by policy, item and draw.
fn scores(desk: &mut Desk) -> BTreeMap<(String, String, u64), i64> {
    let all = entries(desk, "score.recorded").into_iter().map(|data| {
        let text = |name: &str| data[name].as_str().unwrap().to_owned();
        let key = (text("policy"), text("item"), data["draw"].as_u64().unwrap());
        (key, data["score_micro"].as_i64().unwrap())
    });
    all.collect()
}

fn by_item(scores: &BTreeMap<(String, String, u64), i64>, item: &str, draw: u64) -> Option<i64> {
    let mut found = scores
        .iter()
        .filter(|((_, of, at), _)| of == item && *at == draw);
    found.next().map(|(_, score)| *score)
}

/// What was said of rows, opened from the private blob that a note names.
fn remarks(desk: &mut Desk) -> Vec<Value> {
    let notes = entries(desk, "note.recorded");
    let notes = notes.iter().filter_map(|data| {
        let text = data["text"].as_str()?;
        let subject = text.rsplit_once("subject ")?.1;
        Some((
            data["blob"]["blake3"].as_str()?.to_owned(),
            subject.to_owned(),
        ))
    });
    let notes: Vec<_> = notes.collect();
    let mut all = Vec::new();
    for (blob, subject) in notes {
        let opened = desk.ok(&format!("blob get {blob} --subject {subject} --key cem"));
        all.extend(
            opened
                .out
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    all
}

#[test]
fn an_archive_of_inspect_and_its_dump_are_the_same_rows() {
    let mut desk = desk();
    put(&desk, "inspect.eval");
    put(&desk, "inspect.json");
    let before = desk.head();
    let dry = desk
        .ok("import inspect inspect.eval --score judge --field domain --dry-run --json")
        .json();
    assert_eq!(dry["verdict"], "dry_run");
    let file = &dry["data"]["files"][0];
    assert_eq!(
        (
            &file["policies"],
            &file["score_range"],
            &file["mapping"]["judge_score"]
        ),
        (
            &json!(["mockllm/model"]),
            &json!([0.15, 0.35]),
            &"scores.judge.value".into()
        )
    );
    let warned = dry["warnings"].to_string();
    for part in [
        "declined: 2 rows have no score",
        "edited: 1 scores were changed by people",
        "other scores are left out: match, parts",
        "not read: ",
    ] {
        assert!(warned.contains(part), "{part}: {warned}");
    }
    assert_eq!(desk.head(), before);
    desk.ok("import inspect inspect.eval --score judge --field domain");
    // The scorer gave a tenth of the number of the sample and a twentieth of the epoch; a person changed item_3 later.
    let found = scores(&mut desk);
    let of = |item: &str, draw| by_item(&found, item, draw);
    assert_eq!(
        [
            of("item_1", 0),
            of("item_1", 1),
            of("item_2", 0),
            of("item_3", 0)
        ],
        [Some(150_000), Some(200_000), Some(250_000), Some(350_000)]
    );
    assert_eq!(
        (of("item_2", 1), of("item_3", 1), found.len()),
        (None, None, 4)
    );
    let ingested = &entries(&mut desk, "data.ingested")[0];
    assert_eq!(
        (
            &ingested["format"],
            &ingested["rows_in"],
            &ingested["rows_out"]
        ),
        (&"inspect".into(), &6.into(), &4.into())
    );
    assert_eq!(
        ingested["source"]["private"]["blob"]["media"],
        "application/zip"
    );
    let said = remarks(&mut desk);
    let of = |item: &str, draw: u64| {
        let mut found = said
            .iter()
            .filter(|line| line["item"] == item && line["draw"] == draw);
        found.next().unwrap().clone()
    };
    assert_eq!(
        (&of("item_2", 1)["declined"], &of("item_2", 1)["reason"]),
        (&true.into(), &"ValueError('the tool broke')".into())
    );
    assert_eq!(
        (&of("item_3", 1)["declined"], &of("item_3", 1)["reason"]),
        (&true.into(), &"the judge gave no number".into())
    );
    let edited = of("item_3", 0);
    assert_eq!(
        (&edited["declined"], &edited["reason"]),
        (&false.into(), &"reason 3.1".into())
    );
    assert_eq!(
        (&edited["edits"][0]["author"], &edited["edits"][0]["value"]),
        (&"ada".into(), &"0.9".into())
    );
    // The dump is the same log: the same rows, and no second file.
    let again = desk
        .ok("import inspect inspect.json --score judge --field domain --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    desk.ok("verify");
}

#[test]
fn a_score_of_inspect_is_named_where_there_are_several() {
    let mut desk = desk();
    put(&desk, "inspect.eval");
    desk.refused(
        &["import", "inspect", "inspect.eval"],
        4,
        &[
            "expected the name of one score, as there are judge, match, parts",
            "--score NAME",
        ],
    );
    desk.refused(
        &["import", "inspect", "inspect.eval", "--score", "parts"],
        4,
        &[
            "holds clear, true",
            "next: the same command with --scorer-key NAME",
        ],
    );
    desk.refused(
        &["import", "inspect", "inspect.eval", "--score", "none"],
        4,
        &["expected one of judge, match, parts, found \"none\""],
    );
    desk.ok("import inspect inspect.eval --score parts --scorer-key clear --judge parts");
    desk.ok("import inspect inspect.eval --score match --judge match");
    let found = entries(&mut desk, "score.recorded");
    let of = |judge: &str| -> Vec<i64> {
        let of = found.iter().filter(|data| data["judge"] == judge);
        of.map(|data| data["score_micro"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(of("parts"), [500_000; 5]);
    assert_eq!(of("match"), [1_000_000; 5]);
}

#[test]
fn the_quick_way_takes_no_texts_and_hides_no_edit_for_long() {
    let mut desk = desk();
    put(&desk, "inspect.eval");
    let quick = desk.ok("import inspect inspect.eval --score judge --scores-only");
    assert!(
        quick.err.contains("do not say which scores people edited"),
        "{}",
        quick.err
    );
    assert!(
        entries(&mut desk, "score.recorded")
            .iter()
            .all(|data| data.get("prompt").is_none())
    );
    // The summaries have the edited value alone. The whole log says what the judge gave, and the ledger holds both against
    // each other.
    let ran = desk.run("import inspect inspect.eval --score judge --yes");
    assert_eq!(ran.code, 11, "{}", ran.err);
    says(
        &ran,
        &[
            "score_once: 1 scores differ",
            "0.9 recorded, 0.35 in the file",
        ],
    );
}

#[test]
fn texts_of_a_log_wait_for_another_judge() {
    let mut desk = desk();
    put(&desk, "inspect.eval");
    put(&desk, "promptfoo-export.json");
    let taken = desk.ok("import inspect inspect.eval --texts-only");
    assert!(
        taken
            .err
            .contains("1 rows have no response and are left out"),
        "{}",
        taken.err
    );
    desk.ok("import promptfoo promptfoo-export.json --texts-only");
    assert!(entries(&mut desk, "score.recorded").is_empty());
    desk.ok("judge run --judge own --builtin");
    assert_eq!(entries(&mut desk, "score.recorded").len(), 5 + 3);
}

#[test]
fn three_shapes_of_promptfoo_are_the_same_rows() {
    for name in [
        "promptfoo-export.json",
        "promptfoo-summary.json",
        "promptfoo-outputs.json",
    ] {
        let mut desk = desk();
        put(&desk, name);
        let ran = desk.ok(&format!("import promptfoo {name}"));
        // An error is no score of zero; a failed assertion is.
        assert!(
            ran.err.contains("declined: 1 rows have no score"),
            "{name}: {}",
            ran.err
        );
        let found = scores(&mut desk);
        // source: SHA-256 of {"prompt":"say","vars":{"q":"hello"}} by Python's hashlib, 16 digits, as CJE's bridge.
        let (hello, bye) = ("9b544bce1f28b5d2", "3dfcf371bdb3b1db");
        let echo = if name == "promptfoo-outputs.json" {
            "echo"
        } else {
            "echo-one"
        };
        let key = |policy: &str, item: &str| (policy.to_owned(), item.to_owned(), 0);
        let expected = BTreeMap::from([
            (key(echo, hello), 800_000),
            (key(echo, bye), 0),
            (key("bad", hello), 300_000),
        ]);
        assert_eq!(found, expected, "{name}");
        let said = remarks(&mut desk);
        let declined: Vec<_> = said
            .iter()
            .filter(|line| line["declined"] == true)
            .collect();
        assert_eq!(declined.len(), 1, "{said:?}");
        assert_eq!(
            (&declined[0]["policy"], &declined[0]["reason"]),
            (&"bad".into(), &"Error: no answer".into())
        );
        let ingested = &entries(&mut desk, "data.ingested")[0];
        assert_eq!(ingested["format"], "promptfoo");
    }
}

#[test]
fn what_judges_said_is_private() {
    let mut desk = desk();
    put(&desk, "promptfoo-export.json");
    desk.ok("import promptfoo promptfoo-export.json");
    assert!(
        remarks(&mut desk)
            .iter()
            .any(|line| line["reason"] == "All assertions passed")
    );
    desk.ok("export jsonl -o out --blobs");
    let mut pending = vec![desk.at.join("out")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|of| of.unwrap().path()),
            );
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["All assertions passed", "no answer", "Say hello"] {
            assert!(!text.contains(secret), "{}", path.display());
        }
    }
}

#[test]
fn scores_of_langfuse_are_what_their_sources_say() {
    let mut desk = desk();
    put(&desk, "langfuse-page.json");
    put(&desk, "langfuse-export.csv");
    put(&desk, "langfuse-scores.jsonl");
    desk.refused(
        &[
            "import",
            "langfuse",
            "langfuse-page.json",
            "--score",
            "helpful",
        ],
        4,
        &[
            "expected the name of a policy, found none",
            "next: the same command with --policy ID",
        ],
    );
    let ran =
        desk.ok("import langfuse langfuse-page.json --score helpful --policy base --field domain");
    for part in [
        "a page that follows it",
        "1 scores are left out: they are of whole experiments",
        "1 scores are left out: they are texts",
        "1 annotations by people are left out: --as label",
        "other scores are left out: safe",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let found = scores(&mut desk);
    assert_eq!(
        (by_item(&found, "t1", 0), by_item(&found, "o2", 0)),
        (Some(900_000), Some(400_000))
    );
    assert_eq!(found.len(), 2);
    // Annotations that were not opened stand in the file: it is for the custodian alone.
    let ingested = &entries(&mut desk, "data.ingested")[0];
    assert!(ingested["source"].get("envelope").is_some(), "{ingested}");
    // The table is the same scores.
    let again = desk
        .ok("import langfuse langfuse-export.csv --score helpful --policy base --field domain --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    // Who sent what came by the API, only the person knows who imports it.
    desk.refused(
        &[
            "import",
            "langfuse",
            "langfuse-scores.jsonl",
            "--policy",
            "base",
        ],
        4,
        &["2 scores came by the API", "--as label"],
    );
    let again = desk
        .ok("import langfuse langfuse-scores.jsonl --policy base --as judge --json")
        .json();
    assert_eq!(
        again["data"]["recorded"]["scores"],
        json!({"new": 0, "already": 2})
    );
    // A person's score is a label, by its author.
    desk.ok("import langfuse langfuse-page.json --score helpful --policy base --as label --design calib");
    let labels = entries(&mut desk, "label.recorded");
    assert_eq!(labels.len(), 1);
    assert_eq!(
        (
            &labels[0]["item"],
            &labels[0]["rater"],
            &labels[0]["value_micro"]
        ),
        (&"t1".into(), &"bea".into(), &1_000_000.into())
    );
}

#[test]
fn records_of_openai_evals_are_scores() {
    let mut desk = desk();
    put(&desk, "openai-evals.jsonl");
    desk.refused(
        &["import", "openai-evals", "openai-evals.jsonl"],
        4,
        &["as there are closeness, correct", "--score NAME"],
    );
    let ran = desk.ok("import openai-evals openai-evals.jsonl --score correct");
    assert!(
        ran.err.contains("1 events of type cond_logp hold no score"),
        "{}",
        ran.err
    );
    let found = scores(&mut desk);
    assert_eq!(
        (by_item(&found, "m.dev.3", 0), by_item(&found, "m.dev.4", 0)),
        (Some(1_000_000), Some(0))
    );
    assert!(
        found.keys().all(|(policy, ..)| policy == "gpt-4o-mini"),
        "{found:?}"
    );
    assert!(
        entries(&mut desk, "score.recorded")
            .iter()
            .all(|data| data.get("response").is_some())
    );
    desk.ok("import openai-evals openai-evals.jsonl --score closeness --judge closeness");
}

#[test]
fn events_of_opentelemetry_are_scores() {
    let mut desk = desk();
    put(&desk, "otel.json");
    put(&desk, "otel-collector.jsonl");
    let ran = desk.ok("import otel otel.json --field domain");
    for part in ["1 records are no event", "declined: 1 rows have no score"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let found = scores(&mut desk);
    let span = "5b8efff798038103d269b633813fc60d-eee19b7ec3c1b175";
    assert_eq!(
        (by_item(&found, "chatcmpl-1", 0), by_item(&found, span, 0)),
        (Some(850_000), Some(1_000_000))
    );
    assert!(
        found.keys().all(|(policy, ..)| policy == "gpt-4o"),
        "{found:?}"
    );
    let again = desk
        .ok("import otel otel-collector.jsonl --field domain --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
}

#[test]
fn files_of_tools_are_taken_in_together_or_not_at_all() {
    let mut desk = desk();
    put(&desk, "otel.json");
    desk.file("cut.json", "{\"resourceLogs\":[{\"scopeLogs\":");
    desk.refused(
        &["import", "otel", "otel.json", "cut.json"],
        4,
        &["cut.json:1: expected JSON"],
    );
    put(&desk, "promptfoo-export.json");
    desk.refused(
        &["import", "otel", "otel.json", "promptfoo-export.json"],
        4,
        &[
            "found results of promptfoo",
            "next: clover import promptfoo promptfoo-export.json",
        ],
    );
    // A value that is none is refused with the path to it.
    let text = std::fs::read_to_string(desk.at.join("otel.json")).unwrap();
    desk.file("nan.json", &text.replace("0.85", "NaN"));
    desk.refused(
        &["import", "otel", "nan.json"],
        4,
        &["logRecords[0].attributes[1].value.doubleValue: expected a number, found NaN"],
    );
    desk.file("high.json", &text.replace("0.85", "85"));
    desk.refused(
        &["import", "otel", "high.json"],
        4,
        &["judge_score: expected 0 to 1, found \"85\", in resourceLogs[0]"],
    );
}

/// What is read of a file needs no ledger.
#[test]
fn a_file_of_a_tool_is_analyzed_as_it_is() {
    let mut desk = Desk::new();
    put(&desk, "otel.json");
    let ran = desk.run("analyze otel.json");
    assert!(!ran.err.contains("jq"), "{}", ran.err);
    put(&desk, "inspect.json");
    let ran = desk.run("analyze inspect.json");
    assert_eq!(ran.code, 4);
    says(
        &ran,
        &[
            "as there are judge, match, parts",
            "next: clover import inspect",
        ],
    );
}

/// `inspect score` reads what is exported for it, and the log that it writes comes back as the same scores.
#[test]
fn what_is_exported_for_inspect_comes_back() {
    let Some(program) = std::env::var_os("CLOVER_INSPECT") else {
        println!("skipped: CLOVER_INSPECT names no program inspect");
        return;
    };
    let mut desk = desk();
    put(&desk, "inspect.eval");
    desk.ok("import inspect inspect.eval --score judge");
    desk.ok("export inspect -o ratings");
    let ratings = desk.at.join("ratings/arena/judge/mockllm%2Fmodel.jsonl");
    let rated = Command::new(program)
        .current_dir(&desk.at)
        .args(["score", "inspect.eval", "--scorer", "precomputed_scores"])
        .args(["--action", "append", "--output-file", "rated.eval", "-S"])
        .arg(format!("scores={}", ratings.display()))
        .output()
        .unwrap();
    assert!(rated.status.success(), "{rated:?}");
    let again = desk
        .ok("import inspect rated.eval --score precomputed_scores --json")
        .json();
    assert_eq!(
        again["data"]["recorded"]["scores"],
        json!({"new": 0, "already": 4})
    );
}

#[test]
fn the_guide_names_the_verb_of_a_file() {
    let mut desk = Desk::new();
    put(&desk, "otel.json");
    put(&desk, "inspect.json");
    let ran = desk.ok(
        "guide --want value --have scores,labels,texts --judges one --with alone --scores otel.json --texts inspect.json",
    );
    assert!(
        ran.out.contains("clover import otel otel.json"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("jq"), "{}", ran.out);
    let ran = desk.ok(
        "guide --want value --have labels,texts --judges one --with alone --texts inspect.json",
    );
    assert!(
        ran.out
            .contains("clover import inspect inspect.json --texts-only"),
        "{}",
        ran.out
    );
}
