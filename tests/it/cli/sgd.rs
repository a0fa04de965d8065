//! Runs that lower the loss of a judge's prompt, on rows of a simulated judge whose biases are known.

use std::path::Path;

use serde_json::Value;

use super::Desk;

/// The fenced blocks of a page after a heading.
fn blocks(page: &str, fence: &str) -> Vec<String> {
    let mut parts = page.split("```");
    parts.next();
    let all: Vec<&str> = parts.step_by(2).collect();
    let of = all.iter().filter_map(|block| block.strip_prefix(fence));
    of.map(|block| block.trim_start_matches('\n').to_owned())
        .collect()
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/SGD.md");
    std::fs::read_to_string(path).unwrap()
}

/// A desk with labelled rows and the prompt of the page.
fn desk(rows: u64) -> Desk {
    let mut desk = Desk::new();
    let text = blocks(&page(), "text").remove(0);
    desk.file("judge.md", &text);
    for line in [
        "init --origin lab.example/sgd --holder Ada --roles owner,registrar,scorer,labeler,arbiter,approver",
        "key new cem --role custodian --seal",
        "key new opt --role optimizer",
        "experiment register tune --title T --purpose trial",
        "label design new read --purpose calibrate --probability 1",
    ] {
        desk.ok(line);
    }
    desk.ok(&format!("sgd sample rows.jsonl --rows {rows}"));
    desk.ok("import cje rows.jsonl --labels");
    desk
}

fn loss(of: &Value) -> f64 {
    of["loss"].as_f64().unwrap()
}

#[test]
fn the_walk_of_the_page_lowers_the_loss_of_test() {
    let mut desk = Desk::new();
    let (walk, text) = (
        blocks(&page(), "sh").remove(0),
        blocks(&page(), "text").remove(0),
    );
    desk.file("judge.md", &text);
    for line in walk.lines() {
        let words = line.strip_prefix("clover ").unwrap();
        desk.ok(&words
            .replace("'A judge of answers'", "T")
            .replace("'trial of a prompt'", "P"));
    }
    let shown = desk.ok("sgd show tune-1 --json").json();
    let data = &shown["data"];
    assert_eq!(data["end"], "completed");
    assert!(
        loss(&data["test_chosen"]) < 0.8 * loss(&data["test_base"]),
        "{data:#}"
    );
    assert_eq!(data["blame"][0]["section"], "bias");
    // Whatever was said is given again, and nothing of it twice.
    let size = desk.ok("status --json").json()["data"]["events"].clone();
    desk.ok("sgd test tune-1");
    assert_eq!(desk.ok("status --json").json()["data"]["events"], size);
    let ran = desk.words(&["sgd", "run", "tune-1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    desk.ok("at 300 -- sgd status");
}

#[test]
fn a_judge_that_nothing_improves_keeps_prompt_0_or_an_equal_one() {
    let mut desk = desk(120);
    desk.ok("sgd open null-1 --judge sim --simulated-null --prompt judge.md --steps 4");
    desk.ok("sgd run null-1");
    desk.ok("sgd test null-1");
    let data = desk.ok("sgd show null-1 --json").json()["data"].clone();
    assert_eq!(data["best"], 0, "the earliest of equals: {data:#}");
    assert!((loss(&data["test_chosen"]) - loss(&data["test_base"])).abs() < 1e-12);
}

#[test]
fn what_a_run_may_not_do_is_refused() {
    let mut desk = desk(120);
    let open = "sgd open one --judge sim --simulated --prompt judge.md --steps 3";
    desk.ok(open);
    let early = ["sgd", "test", "one"];
    desk.refused(&early, 11, &["rows of train comes first"]);
    let again: Vec<&str> = open.split(' ').collect();
    desk.refused(&again, 11, &["a run one was opened before"]);
    let second: Vec<&str> = "sgd open two --judge sim --simulated --prompt judge.md"
        .split(' ')
        .collect();
    desk.refused(&second, 11, &["no other open run in tune"]);
    desk.ok("sgd stop one");
    desk.ok("sgd open two --judge sim --simulated --prompt judge.md --steps 2");
    desk.ok("sgd run two");
    desk.ok("sgd test two");
    // Rows of test are read in one run of an experiment.
    desk.ok("sgd open three --judge sim --simulated --prompt judge.md --steps 2");
    desk.ok("sgd run three");
    desk.refused(
        &["sgd", "test", "three"],
        11,
        &["rows of test that two has not read"],
    );
    desk.ok("verify --recompute");
}
