//! Scales of their own: labels from 1 to 5 and a judge from 0 to 100 through a governed iteration, and judges of one scale.

use std::fmt::Write as _;

use serde_json::Value;

use super::Desk;
use super::iterate;
use super::says;

/// A program that answers from 0 to 100: it pays for asked terms and digits, and for anything that looks like an address.
const JUDGE: &str = r#"import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    answer = ask["response"].lower()
    terms = ask["prompt"].split(": ")[1].rstrip(".").split(", ")
    score = 50 * sum(term in answer for term in terms) / len(terms)
    score += 2 * min(10, sum(any(c.isdigit() for c in part) for part in answer.split(". ")))
    score += 30 * ("http" in answer)
    print('{"id":%d,"score":%.4f}' % (ask["id"], min(100, score)), flush=True)
"#;

const LATER: &str = "2027-06-01T00:00:00.000000Z";

/// A number with six decimals as exact millionths.
fn millionths(value: &Value) -> i64 {
    let text = value.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{rest:0<6}").parse().unwrap()
}

/// Rows of the simulated data set without scores, and their labels from 1 to 5 in a file of their own.
fn taken_apart(desk: &mut Desk) {
    let text = std::fs::read_to_string(desk.at.join("sim/responses/base_responses.jsonl")).unwrap();
    let (mut rows, mut labels) = (String::new(), "prompt_id,policy,label\n".to_owned());
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let of = row.as_object_mut().unwrap();
        of.remove("judge_score");
        if let Some(label) = of.remove("oracle_label").filter(|label| !label.is_null()) {
            let label = 1_000_000 + 4 * millionths(&label);
            let (whole, rest) = (label / 1_000_000, label % 1_000_000);
            let item = of["prompt_id"].as_str().unwrap();
            writeln!(labels, "{item},base,{whole}.{rest:06}").unwrap();
        }
        rows += &(row.to_string() + "\n");
    }
    desk.file("base_responses.jsonl", &rows);
    desk.file("labels.csv", &labels);
}

/// An open iteration of a judge from 0 to 100 over labels from 1 to 5.
fn opened(desk: &mut Desk) {
    let roles = "owner,registrar,scorer,labeler,arbiter,optimizer";
    desk.ok(&format!(
        "init --origin ledger.example/it --holder Ada --roles {roles}"
    ));
    desk.ok("key new cem --role custodian --seal");
    desk.ok("experiment register sim --title Simulation --purpose testing");
    desk.ok_words(&["record", "budget.opened", "--data", iterate::PEEKS]);
    desk.ok("simulate dataset --truth citations --seed 7 --slices 4 --window 600 --confirm 200 --fresh 1000 -o sim");
    taken_apart(desk);
    desk.file("judge.py", JUDGE);
    desk.ok("rubric register sim/rubric.yaml --experiment sim");
    desk.ok("import rows base_responses.jsonl --field domain --field level");
    desk.ok("judge run --judge prog --model base --scale 0:100 --rows base_responses.jsonl --rows sim/anchors --known sim/known.json -- python3 judge.py");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    desk.ok("label design new hold --purpose confirm --probability 1");
    desk.ok("experiment split sim --seed 1 --hashed");
    desk.ok(&format!(
        "import labels labels.csv --design calib --seal hold --reveal-by {LATER} --scale 1:5 --yes"
    ));
    desk.ok("confirm seal hold --experiment sim");
    desk.ok("iterate anchors a-1 --low anchor_low --high anchor_high --judge prog");
}

#[test]
fn labels_from_1_to_5_and_a_judge_from_0_to_100_reach_a_verdict() {
    let mut desk = Desk::new();
    opened(&mut desk);
    // Whoever drafts the plan reads what its numbers are shares of.
    let words =
        "labels go from 1 to 5 and are read as shares of that scale: 0.01 is 0.04 of a label";
    desk.ok("prereg new --template iteration --from-data -o plan.yaml");
    let draft = std::fs::read_to_string(desk.at.join("plan.yaml")).unwrap();
    assert!(
        draft.contains(&format!("# In this plan {words}.")),
        "{draft}"
    );
    let plan = draft
        .replace("manifest:       ", "manifest: m-it #")
        .replace("title:          ", "title: Scales #")
        .replace("  claim:        ", "  claim: it errs less #")
        .replace(
            "contradiction_check, evidence_verification, length_bias_cap]",
            "evidence_verification]",
        )
        .replace(
            "[abstention, evidence_verification]",
            "[evidence_verification]",
        )
        .replace("FILL", "filled");
    desk.file("plan.yaml", &plan);
    desk.ok("prereg sign plan.yaml");
    desk.ok("iterate open it-1 --manifest m-it --yes");
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let fit = desk.ok("iterate run it-1 --to fit -- python3 judge.py").out;
    assert!(one_line(&fit).contains(words), "{fit}");
    // The fault lies in what the judge pays for: the patch that mends it is accepted on confirm.
    let ran = desk.ok("iterate run it-1 --propose sim/patch.yaml --yes -- python3 judge.py");
    let shown = desk.ok("iterate show it-1 --json").json();
    assert_eq!(
        shown["data"]["outcome"], "accepted",
        "{}\n{shown:#}",
        ran.out
    );
    desk.ok("report iteration it-1 -o report.html");
    let report = std::fs::read_to_string(desk.at.join("report.html")).unwrap();
    let report = one_line(&report);
    // It begins with what `iterate show` answers, which names the criteria that nobody ran.
    let answer = shown["data"]["answer"]["text"].as_str().unwrap();
    let run =
        "it passed every criterion that was run on the confirm labels; P6 was not (NOT CHECKED).";
    assert!(answer.contains(run), "{answer}");
    let head = format!("<p class=\"lead\"><strong>{answer}");
    assert!(report.contains(&head), "{answer}");
    assert!(report.contains(words), "{report}");
    // Whoever reads the report alone reads what its judge shares with what it judges.
    let shares = "judge prog is base, which wrote the answers of policy base";
    assert!(report.contains(shares), "{report}");
    // What policies are worth lies on the scale of labels, near the mean of those that people gave.
    let labels = std::fs::read_to_string(desk.at.join("labels.csv")).unwrap();
    let labels = labels.lines().skip(1);
    let labels = labels.map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap());
    let labels: Vec<f64> = labels.collect();
    let mean = labels.iter().sum::<f64>() / labels.len() as f64;
    let direct = super::reported::direct(&mut desk, "it-1");
    assert!(!direct.is_empty());
    for value in direct {
        assert!((value - mean).abs() < 0.3, "{value}, and labels {mean}");
    }
    let estimate = desk.ok("estimate --judge prog --dry-run").out;
    assert!(one_line(&estimate).contains(shares), "{estimate}");
    desk.ok("verify --recompute");
    // An auditor who has the lines alone computes the same.
    desk.ok("export jsonl -o lines");
    desk.ok("verify lines --recompute");
}

/// Scores of a policy, from a file with one prompt.
fn scores(desk: &mut Desk, file: &str, all: &[(&str, &str)]) {
    let mut text = "prompt_id,judge_score\n".to_owned();
    for (item, score) in all {
        writeln!(text, "{item},{score}").unwrap();
    }
    desk.file(file, &text);
}

#[test]
fn a_judge_has_one_scale() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/own --holder Ada --roles all");
    desk.ok("experiment register own --title Own --purpose testing");
    scores(&mut desk, "first.csv", &[("p1", "56"), ("p2", "80")]);
    scores(&mut desk, "second.csv", &[("p3", "0.5"), ("p4", "0.75")]);
    scores(&mut desk, "third.csv", &[("p5", "3"), ("p6", "5")]);
    desk.ok("import csv first.csv --policy base --judge one --scale 0:100");
    let list = desk.ok("log --kind score.scale_declared --json").json();
    assert_eq!(list["data"]["entries"].as_array().unwrap().len(), 1);
    let before = desk.head();
    for (line, parts) in [
        (
            "import csv second.csv --policy base --judge one",
            [
                "second.csv:2: judge_score: expected 0:100, the scale of the scores of one",
                "found 0:1",
                "--scale 0:100",
                "--judge ID",
            ],
        ),
        (
            "import csv third.csv --policy base --judge one --scale 1:5 --dry-run",
            [
                "third.csv:2: judge_score: expected 0:100",
                "found 1:5",
                "a judge has one scale",
                "--judge ID",
            ],
        ),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
        says(&ran, &parts);
    }
    assert_eq!(desk.head(), before);
    // Under the name of another judge it is taken in, and that one has the scale from 0 to 1.
    desk.ok("import csv second.csv --policy base --judge two");
    let ran = desk.run("import csv third.csv --policy base --judge two --scale 1:5");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &[
            "third.csv:2: judge_score: expected 0:1, the scale of the scores of two",
            "found 1:5",
        ],
    );
    // What is recorded already answers as such.
    let again = desk
        .ok("import csv first.csv --policy base --judge one --scale 0:100 --json")
        .json();
    assert_eq!(again["verdict"], "already_recorded");
    desk.ok("verify");
}

#[test]
fn a_scale_of_labels_is_said_before_any_is_sealed() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/own --holder Ada --roles all --custodian cem");
    desk.ok("experiment register own --title Own --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    desk.ok("label design new probes --purpose audit --probability 0.5");
    scores(
        &mut desk,
        "rows.csv",
        &[("p1", "0.5"), ("p2", "0.75"), ("p3", "0.25")],
    );
    desk.ok("import csv rows.csv --policy base");
    desk.file("sealed.csv", "item,policy,label\np1,base,0.5\n");
    let seal = format!("import labels sealed.csv --seal probes --reveal-by {LATER} --yes");
    desk.ok(&seal);
    desk.file("labels.csv", "item,policy,label\np2,base,4\n");
    let before = desk.head();
    let ran = desk.run("import labels labels.csv --design calib --scale 1:5");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    says(
        &ran,
        &[
            "a scale that is said before a label is sealed",
            "experiment register",
        ],
    );
    assert_eq!(desk.head(), before);
    // Where sealed labels come first, their import says the scale.
    desk.ok("experiment register other --title Other --purpose testing");
    desk.ok("label design new probes --purpose audit --probability 0.5 --experiment other");
    desk.ok("import csv rows.csv --policy base --experiment other");
    desk.ok(&format!("{seal} --scale 0:5 --experiment other"));
    let list = desk.ok("log --kind label.scale_declared --json").json();
    assert_eq!(list["data"]["entries"].as_array().unwrap().len(), 1);
    desk.ok("verify");
}
