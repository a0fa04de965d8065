//! Judges at work: simulated rows are scored once, labels come beside them, a re-score finds nothing, and a judge that
//! changes its mind is found out.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::says;

/// A person with every role, an experiment, and a small simulated data set.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/judge --holder Ada --roles all");
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok("simulate dataset --truth citations --seed 7 --slices 4 --window 60 --confirm 20 --fresh 1000 -o sim");
    desk
}

fn fails(desk: &mut Desk, code: u8, line: &str) -> Ran {
    let ran = desk.run(line);
    assert_eq!(ran.code, code, "{line}\n{}{}", ran.out, ran.err);
    ran
}

fn entries(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let answer = desk
        .ok(&format!("log --kind {kind} --limit 10000 --json"))
        .json();
    answer["data"]["entries"].as_array().unwrap().clone()
}

const RUN: &str = "judge run --judge builtin --rows sim/responses --rows sim/anchors --known sim/known.json --json";

#[test]
fn rows_are_scored_once_and_labels_come_beside() {
    let mut desk = desk();
    let first = desk.ok(RUN).json();
    assert_eq!(first["data"]["scored"], 1080);
    assert_eq!(entries(&mut desk, "score.recorded").len(), 1080);
    let head = desk.head();
    let second = desk.ok(RUN).json();
    assert_eq!(
        (&second["verdict"], &second["data"]["already"]),
        (&"already_recorded".into(), &1080.into())
    );
    assert_eq!(desk.head(), head);
    // The file says the same scores, so that its labels are all that an import adds.
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let labels = desk
        .ok("import cje sim/responses --judge builtin --labels --json")
        .json();
    assert_eq!(labels["data"]["recorded"]["scores"]["already"], 80);
    assert_eq!(labels["data"]["recorded"]["labels"]["new"], 80);
    let check = desk.ok("judge rescore-check --judge builtin --rows sim/responses --known sim/known.json --json").json();
    assert_eq!(
        (&check["data"]["keys"], &check["data"]["mismatches"]),
        (&30.into(), &0.into())
    );
    let list = desk.ok("judge list --json").json();
    let judge = &list["data"]["judges"][0];
    assert_eq!(
        (&judge["rows"], &judge["port"], &judge["replayed"]["keys"]),
        (&1080.into(), &"builtin".into(), &30.into())
    );
    assert!(desk.ok("judge list").out.contains("0 of 30 differ"));
    desk.ok("verify");
    // What is known is as it was registered where nobody says it again.
    let silent = desk.ok("judge run --judge builtin --rows sim/responses --json");
    assert_eq!(silent.json()["verdict"], "already_recorded");
    // One name, one meaning.
    let known = desk.database().with_file_name("../sim/known.json");
    let mut known: Value = serde_json::from_slice(&std::fs::read(known).unwrap()).unwrap();
    known["citations"]["known"] = json!({});
    desk.file("other.json", &known.to_string());
    let other = "judge run --judge builtin --rows sim/responses --known other.json";
    says(&fails(&mut desk, 11, other), &["is registered at seq"]);
}

/// A judge that gives every response the same score, and ends after `$1` answers.
const FLAT: &str = r#"n=0
while read -r line; do
  n=$((n+1)); id=${line#*\"id\":}
  echo "{\"id\":${id%%,*},\"score\":$1}"
done
"#;

#[test]
fn a_command_judges_resumes_and_is_found_out() {
    let mut desk = desk();
    desk.file("flat.sh", FLAT);
    let run = |score: &str| {
        format!(
            "judge run --judge flat --model flat-1 --rows sim/responses -j 2 --json -- sh flat.sh {score}"
        )
    };
    // A judge that never gets to an answer: nothing is recorded, and the way on is named.
    desk.file("dead.sh", "exit 3\n");
    let dead = fails(
        &mut desk,
        75,
        "judge run --judge dead --model flat-1 --rows sim/responses -- sh dead.sh",
    );
    says(&dead, &["exit status: 3", "0 rows were recorded"]);
    says(
        &fails(&mut desk, 4, &run("7")),
        &["expected a score from 0 to 1"],
    );
    let scored = desk.ok(&run("0.25")).json();
    assert_eq!(scored["data"]["scored"], 80);
    assert_eq!(desk.ok(&run("0.25")).json()["verdict"], "already_recorded");
    let again =
        "judge rescore-check --judge flat --model flat-1 --rows sim/responses --json -- sh flat.sh";
    assert_eq!(desk.ok(&format!("{again} 0.25")).json()["verdict"], "pass");
    says(
        &fails(&mut desk, 10, &format!("{again} 0.26")),
        &["30 of 30 rows were scored differently"],
    );
    assert_eq!(entries(&mut desk, "score.conflict").len(), 30);
    assert_eq!(entries(&mut desk, "score.replayed").len(), 2);
    desk.ok("verify");
}

#[test]
fn imported_scores_and_conflicting_ones() {
    let mut desk = desk();
    desk.ok("import cje sim/responses --judge human-like");
    let recorded = "judge run --judge human-like --recorded --rows sim/responses --known sim/known.json --json";
    assert_eq!(desk.ok(recorded).json()["data"]["scored"], 80);
    // Rows that nobody imported have no recorded score.
    says(
        &fails(
            &mut desk,
            4,
            &recorded.replace("sim/responses", "sim/anchors"),
        ),
        &["no score of this draw"],
    );
    desk.ok("import cje sim/responses --judge other");
    desk.file("flat.sh", FLAT);
    let differs = fails(
        &mut desk,
        11,
        "judge run --judge other --rows sim/responses -- sh flat.sh 0.123456",
    );
    says(&differs, &["score_once", "the first stands"]);
    assert_eq!(entries(&mut desk, "score.conflict").len(), 80);
    desk.ok("verify");
}

/// A judge that scores by the digits of the item's name, shifted by `$1` millionths.
const SHIFTED: &str = r#"shift=$1
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  item=${line#*\"item\":\"}; item=${item%%\"*}
  digits=$(printf %s "$item" | tr -cd 0-9)
  n=$(( (10#${digits:-0} * 7919) % 700000 + 100000 + shift ))
  printf '{"id":%s,"score":0.%06d}\n' "$id" "$n"
done
"#;

#[test]
fn a_judge_that_moved_is_found_on_its_anchors() {
    let mut desk = desk();
    desk.file("shifted.sh", SHIFTED);
    let ask = |verb: &str, shift: &str, more: &str| {
        format!(
            "judge {verb} --judge llm --model m-1 --rows sim/anchors --json {more} -- bash shifted.sh {shift}"
        )
    };
    says(
        &fails(&mut desk, 5, &ask("drift", "0", "")),
        &["no anchor set"],
    );
    assert_eq!(desk.ok(&ask("run", "0", "")).json()["data"]["scored"], 1000);
    desk.ok("iterate anchors a-1 --low anchor_low --high anchor_high --judge llm");
    // The same judge says the same: every row in control, every pair ranked alike.
    let same = desk.ok(&ask("drift", "0", "")).json();
    assert_eq!(
        (&same["verdict"], &same["data"]["rows"]["changed"]),
        (&"pass".into(), &0.into())
    );
    let tau = same["data"]["kendall_tau"].as_f64().unwrap();
    assert!((tau - 1.0).abs() < 1e-12, "{tau}");
    assert_eq!(same["data"]["verdicts"]["version"], "pass");
    let dry = desk.ok(&ask("drift", "20000", "--dry-run")).json();
    assert_eq!(
        (&dry["verdict"], &dry["data"]["verdict"]),
        (&"dry_run".into(), &"fail".into())
    );
    assert_eq!(entries(&mut desk, "judge.drift_checked").len(), 1);
    // A shift of 0.02 in every row keeps the ranks and leaves control.
    let moved = fails(&mut desk, 10, &ask("drift", "20000", "")).json();
    let verdicts = &moved["data"]["verdicts"];
    assert_eq!(
        (&verdicts["ranks"], &verdicts["residuals"]),
        (&"pass".into(), &"fail".into())
    );
    let low = &moved["data"]["policies"][1];
    assert!(
        (low["mean_change"].as_f64().unwrap() - 0.02).abs() < 1e-12,
        "{low}"
    );
    assert_eq!(
        (&low["charted"]["check"], &low["charted"]["side"]),
        (&2.into(), &"up".into())
    );
    // Another model under the same name is not asked unless that is what is to be recorded.
    let other = ask("drift", "0", "").replace("m-1", "m-2");
    says(
        &fails(&mut desk, 11, &other),
        &["is registered at seq", "another judge"],
    );
    let changed = other.replace(" --json", " --json --changed");
    let tripped = fails(&mut desk, 10, &changed).json();
    assert_eq!(tripped["data"]["verdicts"]["version"], "fail");
    // Rows that are not all of the anchors are no check.
    desk.ok("experiment list");
    let few = ask("drift", "0", "").replace("sim/anchors", "sim/responses");
    says(&fails(&mut desk, 4, &few), &["all 1000 anchor rows"]);
    let shown = desk.ok("assume show CJE.D1-R3 --json").json();
    assert!(shown.to_string().contains("fail"), "{shown}");
    assert_eq!(entries(&mut desk, "judge.drift_checked").len(), 3);
    // Scores that are all alike have no ranks: nobody can say whether that judge drifts.
    desk.file("flat.sh", FLAT);
    let flat = |verb: &str| {
        format!("judge {verb} --judge flat --model f-1 --rows sim/anchors --json -- sh flat.sh 0.5")
    };
    desk.ok(&flat("run"));
    desk.ok("iterate anchors a-2 --low anchor_low --high anchor_high --judge flat");
    let alike = fails(&mut desk, 12, &flat("drift --anchors a-2")).json();
    assert_eq!(
        (&alike["verdict"], &alike["data"]["verdicts"]["ranks"]),
        (&"inconclusive".into(), &"inconclusive".into())
    );
    desk.ok("verify --recompute");
    desk.replayed("");
}

/// A judge that writes down each ask, declines what says "secret", and scores the rest by length of the line.
const NOTING: &str = r#"while read -r line; do
  echo "$line" >> asked.log
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *secret*) echo "{\"id\":$id,\"error\":\"I do not score secrets\"}" ;;
    *) echo "{\"id\":$id,\"score\":0.${#line}}" ;;
  esac
done
"#;

fn response(item: &str, response: &str) -> String {
    format!(r#"{{"prompt_id":"{item}","prompt":"Why {item}?","response":"{response}"}}"#) + "\n"
}

fn noting(desk: &mut Desk, rows: &str) -> Value {
    let line = format!("judge run --judge llm --model m-1 --rows {rows} --json -- sh noting.sh");
    desk.ok(&line).json()
}

fn asked(desk: &Desk) -> usize {
    let text = std::fs::read_to_string(desk.at.join("asked.log")).unwrap();
    text.lines().count()
}

fn scores_of(desk: &mut Desk, policy: &str) -> Vec<(String, i64)> {
    let answer = desk.ok("score show q1 --json").json();
    let scores = answer["data"]["scores"].as_array().unwrap();
    let mine = scores.iter().filter(|score| score["policy"] == policy);
    mine.map(|score| {
        let value = score["score_micro"].as_i64().unwrap();
        (score["item"].as_str().unwrap_or("q1").to_owned(), value)
    })
    .collect()
}

#[test]
fn the_same_text_of_another_policy_gets_a_score_of_its_own() {
    // Given a judge that scored two responses of one policy.
    let mut desk = desk();
    desk.file("noting.sh", NOTING);
    let both = response("q1", "Granite.") + &response("q2", "Chalk.");
    desk.file("base_responses.jsonl", &both);
    assert_eq!(
        noting(&mut desk, "base_responses.jsonl")["data"]["scored"],
        2
    );
    assert_eq!(asked(&desk), 2);
    // When another policy gave one of them word for word, twice.
    let twin = both.clone().replace("Chalk.", "Marble.");
    desk.file("twin_responses.jsonl", &twin);
    let again =
        response("q1", "Granite.").replace("{\"prompt_id\"", "{\"draw_idx\":1,\"prompt_id\"");
    desk.file(
        "more_responses.jsonl",
        &(twin + &again).replace("\"prompt_id\"", "\"target_policy\":\"twin\",\"prompt_id\""),
    );
    let scored = noting(&mut desk, "twin_responses.jsonl");
    // Then its row has a score of its own, and the judge was asked about the new text alone.
    assert_eq!(
        (&scored["data"]["scored"], &scored["data"]["already"]),
        (&2.into(), &0.into())
    );
    assert_eq!(asked(&desk), 3);
    let named = desk.run("judge run --judge llm --model m-1 --rows more_responses.jsonl --policy twin --json -- sh noting.sh");
    assert_eq!(named.json()["data"]["scored"], 1, "{}", named.err);
    assert_eq!(asked(&desk), 3);
    let (base, other) = (scores_of(&mut desk, "base"), scores_of(&mut desk, "twin"));
    assert_eq!((base.len(), other.len()), (1, 2));
    assert!(other.iter().all(|score| *score == base[0]), "{other:?}");
    let list = desk.ok("judge list --json").json();
    assert_eq!(list["data"]["judges"][0]["rows"], 5);
    let head = desk.head();
    assert_eq!(
        noting(&mut desk, "twin_responses.jsonl")["data"]["already"],
        2
    );
    assert_eq!(desk.head(), head);
    desk.ok("verify");
}

#[test]
fn a_declined_row_is_named_and_the_run_goes_on() {
    let mut desk = desk();
    desk.file("noting.sh", NOTING);
    let rows: String = [("q1", "Granite."), ("q2", "A secret."), ("q3", "Chalk.")]
        .map(|(item, text)| response(item, text))
        .concat();
    desk.file("base_responses.jsonl", &rows);
    let ran = noting(&mut desk, "base_responses.jsonl");
    assert_eq!(
        (&ran["verdict"], &ran["data"]["scored"]),
        (&"appended".into(), &2.into())
    );
    assert_eq!(
        ran["data"]["declined"],
        serde_json::json!([
            {"policy": "base", "item": "q2", "draw": 0, "reason": "I do not score secrets"}
        ])
    );
    assert_eq!(entries(&mut desk, "score.recorded").len(), 2);
    // The next run asks about that row alone.
    assert_eq!(
        noting(&mut desk, "base_responses.jsonl")["data"]["already"],
        2
    );
    assert_eq!(asked(&desk), 4);
    desk.ok("verify");
}

#[test]
fn a_row_without_texts_is_found_before_the_judge_is_registered() {
    let mut desk = desk();
    desk.file("noting.sh", NOTING);
    desk.file(
        "base_responses.jsonl",
        "{\"prompt_id\":\"q1\",\"prompt\":\"Why?\"}\n",
    );
    let before = desk.head();
    let line = "judge run --judge llm --model m-1 --rows base_responses.jsonl -- sh noting.sh";
    says(
        &fails(&mut desk, 4, line),
        &["line 1: q1 has no prompt, or no response"],
    );
    assert_eq!(desk.head(), before);
}

/// A judge that says why.
const WHY: &str = r#"while read -r line; do
  id=${line#*\"id\":}
  echo "{\"id\":${id%%,*},\"score\":0.5,\"reason\":\"short and clear\"}"
done
"#;

#[test]
fn what_a_judge_says_beside_a_score_is_private_and_can_be_erased() {
    let mut desk = desk();
    desk.file("why.sh", WHY);
    desk.file("base_responses.jsonl", &response("q1", "Granite."));
    desk.ok("judge run --judge why --model m-1 --rows base_responses.jsonl -- sh why.sh");
    let notes = entries(&mut desk, "note.recorded");
    assert_eq!(notes.len(), 1);
    let shown = desk.ok(&format!("show {} --json", notes[0]["seq"]));
    let shown = shown.json().to_string();
    let after = |name: &str| {
        let (_, rest) = shown.split_once(name).unwrap();
        rest.chars().take(64).collect::<String>()
    };
    let (subject, blob) = (after("private, subject "), after("\"blake3\":\""));
    let database = std::fs::read(desk.database()).unwrap();
    assert!(
        !database
            .windows(15)
            .any(|window| window == b"short and clear")
    );
    let get = format!("blob get {blob} --subject {subject} --key owner");
    let opened = desk.ok(&get).out;
    assert!(
        opened.contains("\"reason\":\"short and clear\"") && opened.contains("\"item\":\"q1\""),
        "{opened}"
    );
    desk.ok(&format!("erase {subject} --basis request --yes --key cem"));
    assert_eq!(desk.run(&get).code, 5);
    desk.ok("verify");
}

#[test]
fn a_changed_program_is_another_judge() {
    let mut desk = desk();
    desk.file("flat.sh", FLAT);
    let run = |verb: &str| {
        format!("judge {verb} --judge flat --model m-1 --rows sim/responses -- sh flat.sh 0.5")
    };
    desk.ok(&run("run"));
    desk.ok(&run("run"));
    let before = desk.head();
    desk.file("flat.sh", &FLAT.replace("n=0", "n=7"));
    for verb in ["run", "rescore-check"] {
        says(
            &fails(&mut desk, 11, &run(verb)),
            &["is registered at seq", "program", "differ"],
        );
    }
    assert_eq!(desk.head(), before);
    desk.file("flat.sh", FLAT);
    desk.ok(&run("rescore-check"));
}

/// Given a judge that is told a text; when it is run with another text; then the refusal says that the prompt differs, and
/// nothing else.
#[test]
fn another_prompt_is_named_as_what_differs() {
    let mut desk = desk();
    desk.file("flat.sh", FLAT);
    desk.file("told.txt", "Judge by the sources.");
    let run = "judge run --judge told --rows sim/responses --prompt told.txt -- sh flat.sh 0.5";
    desk.ok(run);
    desk.file("told.txt", "Judge by the length.");
    let ran = fails(&mut desk, 11, run);
    says(&ran, &["and this is another judge: its prompt differs"]);
}

/// Given rows in a file that `--rows` does not read; when a judge is to score them; then the command that takes them in is named.
#[test]
fn rows_of_another_form_are_taken_in_first() {
    let mut desk = desk();
    desk.file("rows.csv", "prompt_id,prompt,response\nq1,Why?,So.\n");
    desk.file(
        "inspect.json",
        r#"{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"input":"Why?","output":{"completion":"So."},"scores":{"acc":{"value":1}}}]}"#,
    );
    for (file, found, next) in [
        (
            "rows.csv",
            "comma-separated values",
            "clover import rows rows.csv",
        ),
        (
            "inspect.json",
            "a log of Inspect",
            "clover import inspect inspect.json --texts-only",
        ),
    ] {
        let line = format!("judge run --judge j --rows {file} --policy base -- cat");
        let ran = fails(&mut desk, 4, &line);
        says(
            &ran,
            &["expected JSON Lines, as `--rows` reads", found, next],
        );
    }
    let analyzed = fails(&mut desk, 4, "analyze rows.csv");
    says(
        &analyzed,
        &["expected JSON Lines, as `analyze` reads", "clover import"],
    );
    // What a file says beside texts is left out, whatever its scale.
    desk.file(
        "marked.csv",
        "prompt_id,prompt,response,judge_score,oracle_label\nm1,Why?,So.,80,4\n",
    );
    let taken = desk.ok("import rows marked.csv --policy base");
    assert!(
        taken.err.contains("judge_score is left out"),
        "{}",
        taken.err
    );
}

#[test]
fn the_built_in_judge_is_asked_by_name_only() {
    let mut desk = desk();
    let line = "judge run --judge llm --rows sim/responses";
    let words: Vec<_> = line.split(' ').collect();
    desk.refused(
        &words,
        2,
        &[
            "expected a program after --, or --builtin",
            "next: clover judge run --judge llm",
        ],
    );
    desk.ok("judge run --judge trial --builtin --rows sim/responses");
}

#[test]
fn fields_and_times_of_judged_rows_are_kept_where_they_are_asked_for() {
    let mut desk = desk();
    desk.file("flat.sh", FLAT);
    let rows = response("q1", "Granite.").replace(
        "\"prompt\"",
        "\"sampled_at\":\"2026-01-02T00:00:00Z\",\"metadata\":{\"domain\":\"law\"},\"prompt\"",
    );
    desk.file("base_responses.jsonl", &rows);
    let run = |more: &str| {
        format!(
            "judge run --judge llm --model m-1 --rows base_responses.jsonl {more} -- sh flat.sh 0.5"
        )
    };
    says(
        &fails(&mut desk, 4, &run("--field domian")),
        &["domian", "there are domain"],
    );
    desk.ok(&run("--field domain --times"));
    assert_eq!(entries(&mut desk, "score.recorded").len(), 1);
    let ingested = entries(&mut desk, "data.ingested");
    assert_eq!(ingested.len(), 1);
    let shown = desk
        .ok(&format!("show {} --json", ingested[0]["seq"]))
        .json();
    let shown = shown.to_string();
    assert!(
        shown.contains("\"sampled_from\":\"2026-01-02T00:00:00.000000Z\""),
        "{shown}"
    );
    let (_, rest) = shown.split_once("\"rows\":{\"blake3\":\"").unwrap();
    let kept = desk.ok(&format!("blob get {}", &rest[..64])).out;
    assert!(kept.contains("\"fields\":{\"domain\":\"law\"}"), "{kept}");
    let head = desk.head();
    desk.ok(&run("--field domain --times"));
    assert_eq!(desk.head(), head);
}
