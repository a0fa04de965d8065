//! Runs that lower the loss of a judge's prompt, on rows of a simulated judge whose biases are known.

use std::path::Path;

use serde_json::Value;

use super::Desk;
use super::killed;
use super::killed::Home;
use super::live_runs::said;
use super::says;
use crate::support::child;

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
pub(super) fn desk(rows: u64, seed: u64) -> Desk {
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
    desk.ok(&format!(
        "sgd sample rows.jsonl --rows {rows} --seed {seed}"
    ));
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
    let replayed = desk.ok("replay tune-1").out;
    assert!(replayed.contains(" 0 differ · 0 cannot"), "{replayed}");
}

#[test]
fn a_judge_that_nothing_improves_keeps_prompt_0_or_an_equal_one() {
    let mut desk = desk(120, 1);
    desk.ok("sgd open null-1 --judge sim --simulated-null --prompt judge.md --steps 4");
    desk.ok("sgd run null-1");
    desk.ok("sgd test null-1");
    let data = desk.ok("sgd show null-1 --json").json()["data"].clone();
    assert_eq!(data["best"], 0, "the earliest of equals: {data:#}");
    assert!((loss(&data["test_chosen"]) - loss(&data["test_base"])).abs() < 1e-12);
}

#[test]
fn what_a_run_may_not_do_is_refused() {
    let mut desk = desk(120, 1);
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
    let stop = ["sgd", "stop", "one"];
    desk.refused(&stop, 2, &["end one for good", "clover sgd stop one --yes"]);
    desk.ok("sgd stop one --yes");
    desk.ok("sgd open two --judge sim --simulated --prompt judge.md --steps 2");
    desk.ok("sgd run two");
    desk.ok("sgd test two");
    // Rows of test are read in one run of an experiment.
    let open = "sgd open three --judge sim --simulated --prompt judge.md --steps 2";
    let opened = desk.ok(open).out;
    assert!(opened.contains("has read test of tune"), "{opened}");
    let ran = desk.ok("sgd run three --json").json();
    assert_eq!(ran["next"][0], "clover sgd stop three", "{ran:#}");
    desk.refused(
        &["sgd", "test", "three"],
        11,
        &["rows of test that two has not read"],
    );
    desk.ok("verify --recompute");
}

/// Everything that a run said, but for its texts.
fn came_of(home: &Home<'_>) -> Vec<Vec<Value>> {
    let kinds = [
        "sgd.batch_drawn",
        "sgd.loss_computed",
        "sgd.patch_proposed",
        "sgd.scored",
        "sgd.step_committed",
        "sgd.checkpoint_selected",
    ];
    kinds.map(|kind| said(home, kind)).into()
}

/// Given an open run; when it is killed at random moments and started again until its test is due; then it said what a run says
/// that nobody cut, each step once.
#[test]
fn a_run_that_is_killed_comes_to_the_same() {
    const RUN: [&str; 3] = ["sgd", "run", "one"];
    let mut desk = desk(100, 1);
    desk.ok("sgd open one --judge sim --simulated --prompt judge.md --steps 4 --repeats 1");
    killed::comes_to_the_same(desk.folder.path(), &RUN, came_of);
}

/// The share of seeded runs in which the offline pair lowers the loss of test.
#[test]
fn the_offline_pair_lowers_the_loss_of_test() {
    let seeds: u64 = if child::slow() { 50 } else { 1 };
    let mut lowered = 0;
    for seed in 0..seeds {
        let mut desk = desk(120, seed + 100);
        desk.ok("sgd open r --judge sim --simulated --prompt judge.md --steps 4 --repeats 2");
        desk.ok("sgd run r");
        desk.ok("sgd test r");
        let data = desk.ok("sgd show r --json").json()["data"].clone();
        lowered += u64::from(loss(&data["test_chosen"]) < loss(&data["test_base"]));
    }
    println!("{lowered} of {seeds} runs lower the loss of test");
    assert!(lowered * 10 >= seeds * 8);
}

/// A judge that scores by the length of what it is told, and declines everything while a file `down` stands.
const JUDGE: &str = r#"while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  if [ -e down ]; then echo "{\"id\":$id,\"error\":\"down\"}"; else echo "{\"id\":$id,\"score\":0.${#line}}"; fi
done
"#;

/// An outage of the judge is no answer: nothing of it is recorded, and test can still be read once.
#[test]
fn an_outage_of_the_judge_burns_nothing() {
    let mut desk = desk(60, 3);
    desk.file("judge.sh", JUDGE);
    let row = r#"{"prompt_id":"first","prompt":"Why?","response":"Because."}"#;
    desk.file("one_responses.jsonl", &format!("{row}\n"));
    let program = "-- sh judge.sh";
    desk.ok(&format!(
        "judge run --judge llm --model m-1 --rows one_responses.jsonl {program}"
    ));
    desk.ok("sgd open one --judge llm --prompt judge.md --steps 1 --repeats 1");
    let silent = |desk: &mut Desk, verb: &str| {
        desk.file("down", "");
        let line = format!("sgd {verb} one {program}");
        let scored = |desk: &mut Desk| {
            let log = desk.ok("log --kind sgd.scored --json").json();
            log["data"]["entries"].clone()
        };
        let before = scored(desk);
        let ran = desk.run(&line);
        assert_eq!(ran.code, 75, "{}{}", ran.out, ran.err);
        says(&ran, &["none of", "nothing was recorded"]);
        assert_eq!(scored(desk), before);
        std::fs::remove_file(desk.at.join("down")).unwrap();
    };
    silent(&mut desk, "run");
    desk.ok(&format!("sgd run one {program}"));
    silent(&mut desk, "test");
    let read = desk.ok(&format!("sgd test one {program}")).out;
    assert!(read.contains("read once in this experiment"), "{read}");
    desk.ok("verify --recompute");
}

/// Whoever may not say what test is worth does not see it scored; a program is not asked where the judge is simulated.
#[test]
fn test_is_scored_only_for_its_custodian() {
    let mut desk = desk(60, 3);
    desk.ok("sgd open one --judge sim --simulated --prompt judge.md --steps 1 --repeats 1");
    let words: Vec<_> = "sgd run one -- sh judge.sh".split(' ').collect();
    desk.refused(&words, 2, &["its judge is the simulated one"]);
    desk.ok("sgd run one");
    let key = desk.key_file("cem");
    let away = key.with_extension("away");
    std::fs::rename(&key, &away).unwrap();
    let before = desk.ok("log --kind sgd.scored --json").json();
    let ran = desk.run("sgd test one");
    assert_ne!(ran.code, 0, "{}{}", ran.out, ran.err);
    let after = desk.ok("log --kind sgd.scored --json").json();
    assert_eq!(before["data"], after["data"]);
    std::fs::rename(&away, &key).unwrap();
    desk.ok("sgd test one");
}

/// Labels that are all equal are refused before anything is scored.
#[test]
fn equal_labels_open_no_run() {
    let mut desk = Desk::new();
    desk.file("judge.md", &blocks(&page(), "text").remove(0));
    desk.ok("init --holder Ada --roles all");
    desk.ok("key new opt --role optimizer");
    desk.ok("experiment register tune --title T --purpose trial");
    desk.ok("label design new read --purpose calibrate --probability 1");
    let rows: String = (0..40)
        .map(|n| {
            format!(
                r#"{{"prompt_id":"q{n}","prompt":"Why {n}?","response":"Because of {n}.","judge_score":0.5,"oracle_label":0.5}}"#
            ) + "\n"
        })
        .collect();
    desk.file("base_responses.jsonl", &rows);
    desk.ok("import cje base_responses.jsonl --labels");
    let line = "sgd open one --judge sim --simulated --prompt judge.md";
    let words: Vec<_> = line.split(' ').collect();
    desk.refused(&words, 11, &["the labels of train are all equal"]);
}

/// Agents that raise a sentence to level 4.
const AGENTS: &str = r#"read -r line
case "$line" in
  '{"gradient"'*) printf '%s\n' '{"anchors":[],"items":[{"attribution":"Errors of one class.","class":"A","confidence":500000,"direction":"tighten","target_section":"bias"}],"step":0}' ;;
  *) d=${line#*\"prompt_digest\":\"}; d=${d%%\"*}
    printf '%s\n' "{\"addresses\":[0],\"patch\":{\"diff\":\"--- a/sections/bias.md\\n+++ b/sections/bias.md\\n@@ -1 +1 @@\\n-You must treat every answer alike, whoever wrote it.\\n+You must always treat every answer alike, whoever wrote it.\\n\",\"parent\":\"$d\",\"section\":\"bias\"},\"rationale\":\"Say it for good.\"}" ;;
esac
"#;

/// A patch that says always waits for a person, who is shown it; without agents' sense it is no fault of the ledger.
#[test]
fn a_person_sees_the_patch_that_waits() {
    let mut desk = desk(60, 3);
    let text = std::fs::read_to_string(desk.at.join("judge.md")).unwrap();
    let mild = "Treat every answer alike, whoever wrote it.";
    assert!(text.contains(mild));
    let text = text.replace(mild, "You must treat every answer alike, whoever wrote it.");
    desk.file("judge.md", &text);
    desk.file("agents.sh", AGENTS);
    let with = ["--agents", "sh agents.sh"];
    let open = "sgd open one --judge sim --simulated --prompt judge.md --steps 1 --repeats 1";
    let words: Vec<&str> = open.split(' ').chain(with).collect();
    let ran = desk.words(&words);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let run: Vec<&str> = ["sgd", "run", "one"].into_iter().chain(with).collect();
    let ran = desk.words(&run);
    assert_eq!(ran.code, 12, "{}{}", ran.out, ran.err);
    for part in [
        "Say it for good.",
        "+You must always treat every answer alike",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    // Nobody is there to answer, and nothing was said.
    desk.refused(
        &["sgd", "approve", "one"],
        2,
        &["+You must always", "--yes"],
    );
    let approved = desk.ok("sgd approve one --yes").out;
    assert!(approved.contains("+You must always"), "{approved}");
    let ran = desk.words(&run);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    desk.ok("sgd test one");
    desk.ok("verify --recompute");
}

#[test]
fn agents_that_make_no_sense_are_named() {
    let mut desk = desk(60, 3);
    desk.file("agents.sh", "read -r line; echo '{\"nothing\":1}'\n");
    let with = ["--agents", "sh agents.sh"];
    let open = "sgd open one --judge sim --simulated --prompt judge.md --steps 1 --repeats 1";
    let words: Vec<&str> = open.split(' ').chain(with).collect();
    assert_eq!(desk.words(&words).code, 0);
    let run: Vec<&str> = ["sgd", "run", "one"].into_iter().chain(with).collect();
    let ran = desk.words(&run);
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(&ran, &["the agents: expected"]);
}

/// A judge whose scores collapse once its prompt has grown: val gets worse, and a stop is due.
const COLLAPSING: &str = r#"import json, os, sys
for line in sys.stdin:
    ask = json.loads(line)
    told = len(ask.get("judge_prompt", ""))
    if told and not os.path.exists("first"):
        open("first", "w").write(str(told))
    score = min(1.0, 0.1 + len(ask["response"]) / 1200)
    if told and told > int(open("first").read()) + 5:
        score = 0.5 + score / 100
    print(json.dumps({"id": ask["id"], "score": round(score, 6)}), flush=True)
"#;

/// Given a run that looks for its end; when somebody asks what is left; then the further steps that it may take are counted.
#[test]
fn a_dry_run_counts_the_steps_that_follow_a_stop() {
    if !crate::support::verifiers::python() {
        return;
    }
    let mut desk = desk(60, 1);
    desk.file("judge.py", COLLAPSING);
    desk.ok("judge run --judge mine --rows rows.jsonl --policy base -- python3 judge.py");
    desk.ok("sgd open one --judge mine --prompt judge.md --steps 12 --repeats 1");
    let taken = |desk: &mut Desk| {
        let left = desk.ok("sgd run one --dry-run --json").json()["data"].clone();
        let of = |name: &str| left[name].as_u64().unwrap();
        (of("steps_taken"), of("steps_left"), of("asks_max"))
    };
    let stops = |desk: &mut Desk| {
        let log = desk.ok("log --kind sgd.stop_triggered --json").json();
        log["data"]["entries"].as_array().map_or(0, Vec::len)
    };
    let mut before = taken(&mut desk);
    assert_eq!((before.0, before.1), (0, 12));
    while stops(&mut desk) == 0 {
        desk.ok("sgd run one --steps 1 -- python3 judge.py");
        let now = taken(&mut desk);
        assert!(
            now.0 == before.0 + 1 && now.2 < before.2,
            "{now:?} after {before:?}"
        );
        before = now;
    }
    assert!(before.1 > 0, "{before:?}");
    desk.ok("sgd run one -- python3 judge.py");
    let (steps, left, asks) = taken(&mut desk);
    assert_eq!((steps, left), (before.0 + before.1, 0));
    assert!(asks < before.2);
}
