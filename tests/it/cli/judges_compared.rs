//! Two judges on the same labelled rows: what is said, what is read, and when a plan had said so before.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::claims;
use crate::support::iterated;

const ROWS: usize = 60;
/// The first rows have a label for calibration.
const LABELS: usize = 50;

/// Rows with the score that a judge gave.
fn rows(score: impl Fn(usize) -> f64) -> String {
    let line = |at: usize| {
        let row = json!({"prompt_id": format!("p{at}"), "judge_score": score(at),
                         "prompt": format!("Why {at}?"), "response": format!("So {at}.")});
        row.to_string() + "\n"
    };
    (0..ROWS).map(line).collect()
}

/// A desk with the scores of a judge that orders rows as people do, and of one that says nothing; no label yet.
fn desk() -> Desk {
    let mut desk = bare("0.8");
    scored(&mut desk, "good", |at| at as f64 / 100.0, ROWS);
    scored(&mut desk, "flat", |_| 0.5, ROWS);
    desk
}

/// A judge scores the first rows.
fn scored(desk: &mut Desk, judge: &str, score: impl Fn(usize) -> f64, count: usize) {
    let text = rows(score);
    let text: String = text
        .lines()
        .take(count)
        .map(|of| of.to_owned() + "\n")
        .collect();
    desk.file("base_responses.jsonl", &text);
    desk.ok(&format!("import cje base_responses.jsonl --judge {judge}"));
}

/// A desk without a score, whose design labels rows at a rate.
fn bare(rate: &str) -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("experiment register arena --title Arena --purpose testing");
    desk.ok(&format!(
        "label design new calib --purpose calibrate --probability {rate}"
    ));
    desk.ok("label design new probes --purpose audit --probability 0.1");
    desk
}

/// The label that people gave to the first rows: the place of the row.
fn labelled(desk: &mut Desk) {
    labels(desk);
    desk.ok("import labels labels.csv");
}

/// These labels in a file.
fn labels(desk: &mut Desk) {
    let lines: String = (0..LABELS)
        .map(|at| format!("p{at},base,{}\n", at as f64 / 100.0))
        .collect();
    desk.file("labels.csv", &("item,policy,label\n".to_owned() + &lines));
}

fn compared(desk: &mut Desk) -> Value {
    let before = desk.head();
    let answer = desk.ok("judge compare flat good --dry-run --json").json();
    assert_eq!(desk.head(), before, "nothing is recorded");
    answer
}

fn on_record(desk: &mut Desk) -> usize {
    let list = desk.ok("log --kind judge.compared --json").json();
    list["data"]["entries"].as_array().unwrap().len()
}

/// A plan whose secondary analyses are these.
fn plan(desk: &mut Desk, secondary: &[&str]) {
    let mut plan = iterated::plan("arena", "m-it");
    let digest = "0".repeat(64);
    plan["analysis"] = json!({"code_digest": digest, "env_digest": digest, "exploratory_allowed": true,
                              "secondary": secondary});
    let file = desk.file("plan.yaml", &plan.to_string());
    desk.ok(&format!("prereg sign {file}"));
}

#[test]
fn the_judge_that_orders_rows_as_people_do_agrees_better() {
    let mut desk = desk();
    desk.refused(
        &["judge", "compare", "flat", "good"],
        11,
        &["no labelled row"],
    );
    desk.refused(&["judge", "compare", "flat", "flat"], 2, &["with itself"]);
    desk.refused(
        &["judge", "compare", "flat", "none"],
        5,
        &["no score by none"],
    );
    desk.file("few.csv", "item,policy,label\np1,base,0.01\np2,base,0.02\n");
    desk.ok("import labels few.csv");
    desk.refused(
        &["judge", "compare", "flat", "good"],
        11,
        &["too little to go on"],
    );
    labelled(&mut desk);
    let answer = compared(&mut desk);
    let data = &answer["data"];
    assert_eq!(
        (&answer["verdict"], &data["better"]),
        (&"exploratory".into(), &"good".into())
    );
    assert_eq!(
        (&data["rows"], &data["plan"]),
        (&LABELS.into(), &Value::Null)
    );
    // A judge that says nothing leaves the variance of the labels, (50² - 1) / 12 / 100², and what a mean of other folds is off.
    let left = data["judges"][0]["squared_error"].as_f64().unwrap();
    assert!((0.0208..0.0416).contains(&left), "{data:#}");
    assert!(
        data["judges"][1]["squared_error"].as_f64().unwrap() < 0.001,
        "{data:#}"
    );
    let said = desk.ok("judge compare good flat");
    let words: Vec<_> = said.out.split_whitespace().collect();
    let words = words.join(" ");
    for part in [
        "good agrees better with the labels than flat: error of good less error of flat is -0.0",
        "No plan named it before the first label",
        "Nothing of this is on record, so nothing of it may be claimed.",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
    assert!(said.err.contains("--exploratory"), "{}", said.err);
    assert_eq!(on_record(&mut desk), 0);
    // Probes of audits are not read, whatever they say.
    let probes: String = (LABELS..ROWS).map(|at| format!("p{at},base,0\n")).collect();
    desk.file("probes.csv", &("item,policy,label\n".to_owned() + &probes));
    desk.ok("import labels probes.csv --purpose audit");
    assert_eq!(compared(&mut desk)["data"], *data);
    // A labelled row that one judge alone scored is counted, and compares nobody.
    let more = rows(|_| 0.5).lines().next().unwrap().replace("p0", "p99");
    desk.file("base_responses.jsonl", &(more + "\n"));
    desk.ok("import cje base_responses.jsonl --judge good");
    desk.file("more.csv", "item,policy,label\np99,base,1\n");
    desk.ok("import labels more.csv");
    let with = compared(&mut desk);
    let with = &with["data"];
    for field in ["judges", "difference", "low", "high", "better", "rows"] {
        assert_eq!(with[field], data[field], "{field}");
    }
    // It came once labels could be read, which counts twice, and has no score of the other.
    assert_eq!((&with["unpaired"], &with["late"]), (&1.into(), &1.into()));
    assert_eq!(with["worst"], 3.0 / LABELS as f64);
    // Marked exploratory it goes on record once, may not be claimed, and is computed again from there.
    let marked = desk
        .ok("judge compare flat good --exploratory --json")
        .json();
    assert_eq!(
        marked["data"]["answer"]["may_be_claimed"], false,
        "{marked:#}"
    );
    let seq = marked["data"]["seq"].clone();
    assert!(seq.is_u64(), "{marked:#}");
    let again = desk
        .ok("judge compare good flat --exploratory --json")
        .json();
    assert_eq!(again["data"]["seq"], seq, "{again:#}");
    assert_eq!(on_record(&mut desk), 1);
    desk.replayed("");
}

#[test]
fn a_comparison_is_planned_where_a_plan_named_it_before_the_first_label() {
    let mut early = desk();
    plan(
        &mut early,
        &[
            "judge compare good flat",
            "judge compare good third",
            "by domain",
        ],
    );
    labelled(&mut early);
    let answer = compared(&mut early);
    let data = &answer["data"];
    assert_eq!(
        (&answer["verdict"], &data["plan"]),
        (&"planned".into(), &"m-it".into())
    );
    // Two comparisons share the error rate.
    assert_eq!(data["level"], 0.975, "{data:#}");
    assert_eq!(data["answer"]["may_be_claimed"], false, "{data:#}");
    // Without --dry-run it goes on record, once, and may be claimed.
    let said = early.ok("judge compare flat good --json").json();
    let answer = &said["data"]["answer"];
    assert_eq!(answer["may_be_claimed"], true, "{said:#}");
    let text = answer["text"].as_str().unwrap();
    assert!(
        text.ends_with("This may be claimed. Plan m-it named it before the first label."),
        "{text}"
    );
    let seq = &said["data"]["seq"];
    assert_eq!(
        &early.ok("judge compare good flat --json").json()["data"]["seq"],
        seq
    );
    assert_eq!(on_record(&mut early), 1);
    early.replayed("");
    // Whoever asks again with more labels has seen the first numbers.
    early.file("more.csv", "item,policy,label\np55,base,0.9\n");
    early.ok("import labels more.csv");
    let later = early.ok("judge compare flat good --json").json();
    assert_eq!(
        (&later["verdict"], &later["data"]["seq"]),
        (&"exploratory".into(), &Value::Null)
    );
    let text = later["data"]["answer"]["text"].as_str().unwrap();
    assert!(
        text.contains(&format!("recorded before with other numbers, at seq {seq}")),
        "{text}"
    );
    early.ok("verify");
    let mut late = desk();
    labelled(&mut late);
    plan(&mut late, &["judge compare good flat"]);
    assert_eq!(compared(&mut late)["verdict"], "exploratory");
    let mut other = desk();
    plan(&mut other, &["judge compare good third"]);
    labelled(&mut other);
    assert_eq!(compared(&mut other)["verdict"], "exploratory");
}

/// What a planned comparison says, with its text.
fn planned(desk: &mut Desk) -> (Value, String) {
    let said = desk.ok("judge compare flat good --json").json();
    assert_eq!(said["data"]["plan"], "m-it", "{said:#}");
    let text = said["data"]["answer"]["text"].as_str().unwrap().to_owned();
    (said["data"].clone(), text)
}

fn refuted(data: &Value, text: &str, why: &str) {
    assert!(text.contains("good agrees better"), "{text}");
    assert!(text.contains(why), "{text}");
    // The claim stands right after what was found.
    assert!(
        text.contains("]). Nothing of it may be claimed. "),
        "{text}"
    );
    assert_eq!(data["answer"]["may_be_claimed"], false, "{data:#}");
    assert_eq!(data["better"], Value::Null, "{data:#}");
}

/// Whoever scores once labels can be read, leaves rows out, or labels more than is drawn chooses who is better.
#[test]
fn a_planned_comparison_claims_nothing_that_scores_or_labels_could_have_chosen() {
    let plan = |desk: &mut Desk| plan(desk, &["judge compare flat good"]);
    // The better judge answers once labels are open.
    let mut late = bare("0.8");
    plan(&mut late);
    scored(&mut late, "flat", |_| 0.5, ROWS);
    labelled(&mut late);
    scored(&mut late, "good", |at| at as f64 / 100.0, ROWS);
    let (data, text) = planned(&mut late);
    assert_eq!(data["late"], LABELS);
    refuted(
        &data,
        &text,
        "once labels could be read: 50. Their worst scores could move",
    );
    late.ok("verify --recompute");
    late.replayed("");
    // It has scores of the rows that suit it.
    let mut few = bare("0.8");
    plan(&mut few);
    scored(&mut few, "flat", |_| 0.5, ROWS);
    scored(&mut few, "good", |at| at as f64 / 100.0, 25);
    labelled(&mut few);
    let (data, text) = planned(&mut few);
    assert_eq!((&data["rows"], &data["unpaired"]), (&25.into(), &25.into()));
    assert_eq!(data["worst"], 1.0);
    refuted(&data, &text, "a score of one of them alone: 25.");
    few.ok("verify --recompute");
    // Somebody chose which rows are labelled.
    let mut chosen = bare("0.2");
    plan(&mut chosen);
    scored(&mut chosen, "flat", |_| 0.5, ROWS);
    scored(&mut chosen, "good", |at| at as f64 / 100.0, ROWS);
    labelled(&mut chosen);
    let (data, text) = planned(&mut chosen);
    assert_eq!(data["worst"], 0.0);
    refuted(
        &data,
        &text,
        "which draws about 12: somebody chose among them.",
    );
    chosen.ok("verify --recompute");
}

/// Numbers that the rows do not give are refused, whoever signs them.
#[test]
fn a_comparison_is_what_its_rows_give() {
    let mut desk = desk();
    plan(&mut desk, &["judge compare flat good"]);
    labelled(&mut desk);
    let honest = desk.ok("judge compare flat good --json").json();
    assert_eq!(
        honest["data"]["answer"]["may_be_claimed"], true,
        "{honest:#}"
    );
    desk.ok("verify --recompute");
    let seq = honest["data"]["seq"].as_u64().unwrap();
    let said = desk.ok(&format!("show {seq} --json")).json();
    let mut data = said["data"]["body"]["data"].clone();
    assert!(data.is_object(), "{said:#}");
    data.as_object_mut().unwrap().remove("plan");
    data["first_error"] = (data["first_error"].as_f64().unwrap() + 0.5).into();
    data["difference"] = (data["difference"].as_f64().unwrap() + 0.5).into();
    data["high"] = (data["high"].as_f64().unwrap() + 0.5).into();
    data["through_seq"] = seq.into();
    let text = data.to_string();
    let words = [
        "record",
        "judge.compared",
        "--experiment",
        "arena",
        "--data",
        &text,
    ];
    desk.refused(&words, 11, &["recompute"]);
}

/// Given a planned comparison by labels of a key that was compromised before, then no better judge is named and nothing recorded.
#[test]
fn labels_of_a_compromised_key_name_no_better_judge() {
    let mut desk = desk();
    plan(&mut desk, &["judge compare flat good"]);
    desk.ok("key new lab --role labeler --holder Lab");
    labels(&mut desk);
    desk.ok("import labels labels.csv --key lab");
    let before = compared(&mut desk);
    assert_eq!(before["data"]["better"], "good", "{before:#}");
    desk.ok("key compromise lab --since-seq 1 --reason stolen --yes");
    let (data, text) = planned(&mut desk);
    assert_eq!(data["better"], Value::Null, "{data:#}");
    assert_eq!(data["answer"]["may_be_claimed"], false, "{data:#}");
    assert_eq!(data["seq"], Value::Null, "{data:#}");
    assert!(text.contains("from its compromise on"), "{text}");
    assert_eq!(on_record(&mut desk), 0);
    desk.ok("verify --recompute");
}

/// The template of a comparison needs nothing else: no digest, no other plan.
#[test]
fn a_plan_of_its_own_names_a_comparison() {
    let mut desk = desk();
    let text = desk.ok("prereg new --template compare").out;
    let fill = |line: &str| {
        let Some((field, _)) = line.split_once("# FILL:") else {
            return line.to_owned();
        };
        let value = match field.trim().trim_start_matches("- ").trim_end_matches(':') {
            "manifest" => "cmp",
            "experiment" => "arena",
            "first" => "flat",
            "second" => "good",
            _ => "one judge agrees better",
        };
        format!("{}: {value}", field.trim_end().trim_end_matches(':'))
    };
    let text: String = text.lines().map(|line| fill(line) + "\n").collect();
    desk.file("cmp.yaml", &text);
    for (from, to, said) in [
        ("second: good", "second: flat", "two judges"),
        (
            "    - first: flat\n      second: good",
            "    []",
            "at least one pair",
        ),
    ] {
        desk.file("wrong.yaml", &text.replace(from, to));
        let ran = desk.run("prereg check wrong.yaml");
        assert!(
            ran.code != 0 && (ran.out.clone() + &ran.err).contains(said),
            "{}{}",
            ran.out,
            ran.err
        );
    }
    desk.ok("prereg sign cmp.yaml");
    desk.ok("report experiment arena -o open.md");
    let plain = |name: &str, desk: &Desk| {
        let text = std::fs::read_to_string(desk.at.join(name)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let open = plain("open.md", &desk);
    assert!(
        open.contains("comparisons of judges; without an end: 1"),
        "{open}"
    );
    labelled(&mut desk);
    let said = desk.ok("judge compare good flat --json").json();
    assert_eq!(said["data"]["plan"], "cmp", "{said:#}");
    assert_eq!(said["data"]["answer"]["may_be_claimed"], true, "{said:#}");
    desk.ok("report experiment arena -o report.md");
    let report = plain("report.md", &desk);
    for part in [
        "comparisons of judges; without an end: 0",
        "Comparisons of judges",
        "was named by plans",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    desk.ok("verify");
    claims::holds(&mut desk);
}
