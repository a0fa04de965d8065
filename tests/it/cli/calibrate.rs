//! A new score becomes a calibrated one: by hand on five scores, and never by a calibrator that is not on record.

use std::fmt::Write as _;

use super::Desk;

/// Five scores with 40 labels each around a mean that rises with the score: isotonic regression gives those means.
const MEANS: [(u32, u32); 5] = [(10, 12), (30, 25), (50, 50), (70, 60), (90, 88)];

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("experiment register exp-1 --title Calibration --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let mut rows = "prompt_id,judge_score,oracle_label\n".to_owned();
    for (score, mean) in MEANS {
        for at in 0..40_u32 {
            // Two labels below for two above, so that the mean is exact.
            let label = if at % 2 == 0 { mean - 8 } else { mean + 8 };
            writeln!(rows, "p-{score}-{at},{score},{label}").unwrap();
        }
    }
    desk.file("rows.csv", &rows);
    desk.ok("import csv rows.csv --policy base --labels --scale 0:100");
    desk
}

/// What the newest calibrator says of scores.
fn calibrated(desk: &mut Desk, words: &str) -> Vec<(f64, f64, bool)> {
    let found = desk.ok(&format!("calibrate apply {words} --json")).json();
    let scores = found["data"]["scores"].as_array().unwrap().iter();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    scores
        .map(|of| {
            let beyond = of["beyond_labels"].as_bool().unwrap();
            (number(&of["score"]), number(&of["calibrated"]), beyond)
        })
        .collect()
}

#[test]
fn a_score_becomes_the_mean_label_of_its_like() {
    let mut desk = desk();
    desk.refused(
        &["calibrate", "show"],
        5,
        &["no estimate over all rows was made yet"],
    );
    desk.ok("estimate base --mode monotone --scale 0:100");
    let listed = desk.ok("calibrate list --json").json();
    assert_eq!(listed["data"]["calibrators"][0]["labels"], 200);
    let words = MEANS.map(|(score, _)| format!("--score {score}")).join(" ");
    for ((score, mean), (given, found, beyond)) in MEANS.iter().zip(calibrated(&mut desk, &words)) {
        assert_eq!((given, beyond), (f64::from(*score), false));
        assert!((found - f64::from(*mean)).abs() < 1e-9, "{score}: {found}");
    }
    // Between two knots the curve is a line; beyond the last it is flat, and says that no label backs it.
    let between = calibrated(&mut desk, "--score 40 --score 95 --score 3");
    for ((_, found, beyond), (mean, is_beyond)) in
        between
            .into_iter()
            .zip([(37.5, false), (88.0, true), (12.0, true)])
    {
        assert!(
            (found - mean).abs() < 1e-9 && beyond == is_beyond,
            "{found} {beyond}"
        );
    }
    // Each label lies 8 from its mean.
    let shown = desk.ok("calibrate apply --score 50 --json").json();
    assert!(
        (shown["data"]["error"].as_f64().unwrap() - 8.0).abs() < 0.5,
        "{shown}"
    );
    desk.file("new.jsonl", "{\"score\": 10}\n\n{\"score\": 90}\n");
    let rows = calibrated(&mut desk, "--rows new.jsonl");
    assert_eq!(rows.len(), 2);
    let page = desk.ok("calibrate show").out;
    assert!(
        page.contains("200 labels of 200 prompts") && page.contains('▇'),
        "{page}"
    );
}

/// The slope of labels on what a calibrator predicts of rows that it was not fitted on.
#[test]
fn a_calibrator_is_shown_with_its_slope() {
    let mut desk = desk();
    desk.ok("estimate base --mode monotone --scale 0:100");
    let slope = |desk: &mut Desk| desk.ok("calibrate show --json").json()["data"]["slope"].clone();
    let found = slope(&mut desk);
    let value = found["value"].as_f64().unwrap();
    let ends = [0, 1].map(|end| found["interval"][end].as_f64().unwrap());
    // Labels lie 8 to either side of means 26.8 apart (root mean square): the slope is 1 within 8 / (26.8 sqrt 200) = .021
    // each way, and 1.97 of that is the reach of the interval. Means by fold move it a little.
    assert!((value - 1.0).abs() < 0.06, "{found}");
    assert!((ends[1] - value - 1.97 * 0.021).abs() < 0.01, "{found}");
    assert!(
        ((value - ends[0]) - (ends[1] - value)).abs() < 1e-9,
        "{found}"
    );
    let page = desk.ok("calibrate show").out;
    assert!(
        page.contains("of labels on predictions, out of fold"),
        "{page}"
    );
}

/// Predictions of one value have no slope.
#[test]
fn a_flat_calibrator_has_no_slope() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("experiment register exp-1 --title Calibration --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let mut rows = "prompt_id,judge_score,oracle_label\n".to_owned();
    for at in 0..40_u32 {
        writeln!(rows, "p-{at},{},50", 10 + at).unwrap();
    }
    desk.file("rows.csv", &rows);
    desk.ok("import csv rows.csv --policy base --labels --scale 0:100");
    desk.ok("estimate base --mode monotone --scale 0:100");
    let found = desk.ok("calibrate show --json").json();
    assert!(found["data"]["slope"].is_null(), "{found}");
}

/// Answers half of its scale to everything that begins with an even digit, and all of it else.
const JUDGE: &str = r#"import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    print('{"id":%d,"score":%d}' % (ask["id"], len(ask["response"])), flush=True)
"#;

/// A judge that answers from 0 to 100 has its scores on record as shares: those as it gives them are read with `--scale`.
#[test]
fn scores_are_calibrated_on_the_scale_that_the_judge_answers_on() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("experiment register exp-1 --title Calibration --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let (mut rows, mut labels) = (String::new(), "prompt_id,oracle_label\n".to_owned());
    for (score, mean) in MEANS {
        for at in 0..8_u32 {
            let answer = format!("{at:a<width$}", width = score as usize);
            let row = format!(
                "{{\"prompt_id\":\"p-{score}-{at}\",\"prompt\":\"?\",\"response\":\"{answer}\"}}\n"
            );
            rows.push_str(&row);
            writeln!(labels, "p-{score}-{at},{}", f64::from(mean) / 100.0).unwrap();
        }
    }
    desk.file("rows.jsonl", &rows);
    desk.file("labels.csv", &labels);
    desk.file("judge.py", JUDGE);
    desk.ok("import rows rows.jsonl --policy base");
    let run = desk
        .ok("judge run --judge llm --scale 0:100 --json -- python3 judge.py")
        .json();
    // What it says to type next can be typed.
    let next = run["next"][0].as_str().unwrap();
    assert_eq!(
        next,
        "clover judge rescore-check --judge llm --scale 0:100 -- python3 judge.py"
    );
    desk.ok(next.strip_prefix("clover ").unwrap());
    desk.ok("import labels labels.csv");
    desk.ok("estimate base --judge llm --mode monotone");
    let wrong = ["calibrate", "apply", "--score", "50"];
    desk.refused(
        &wrong,
        2,
        &["reads scores from 0 to 1", "add --scale 0:100"],
    );
    let given = calibrated(&mut desk, "--score 50 --scale 0:100");
    let recorded = calibrated(&mut desk, "--score 0.5");
    assert!(
        (given[0].1 - 0.5).abs() < 1e-9 && given[0].1.to_bits() == recorded[0].1.to_bits(),
        "{given:?}"
    );
    let other = ["calibrate", "apply", "--score", "5", "--scale", "1:5"];
    desk.refused(&other, 2, &["expected 0:100, the scale of this judge"]);
}

/// Four labels are said to be few, and give nothing where no label is as far out.
#[test]
fn a_calibrator_of_few_labels_says_so() {
    let mut desk = Desk::new();
    desk.ok("init --origin ledger.example/cli --holder Ada --roles owner,registrar,scorer,labeler,arbiter");
    desk.ok("experiment register exp-1 --title Calibration --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 1");
    let mut rows = "prompt_id,judge_score,oracle_label\n".to_owned();
    for at in 0..60_u32 {
        let label = if at % 15 == 7 {
            format!("0.{}", at + 10)
        } else {
            String::new()
        };
        writeln!(rows, "p-{at},0.{},{label}", at + 20).unwrap();
    }
    desk.file("rows.csv", &rows);
    desk.ok("import csv rows.csv --policy base --labels");
    desk.ok("estimate base --mode monotone");
    let page = desk.ok("calibrate apply --score 0.4").out;
    assert!(
        page.contains("Only 4 labels were fitted") && !page.contains("to expect"),
        "{page}"
    );
    let beyond = ["calibrate", "apply", "--score", "0.95"];
    desk.refused(
        &beyond,
        11,
        &["4 labels were fitted, and none has a score as far out"],
    );
}

#[test]
fn what_cannot_be_calibrated_says_what_was_expected() {
    let mut desk = desk();
    desk.ok("estimate base --mode monotone --scale 0:100");
    let wrong = ["calibrate", "apply", "--score", "101"];
    desk.refused(&wrong, 2, &["reads scores from 0 to 100"]);
    let wrong = [
        "calibrate",
        "apply",
        "--score",
        "10",
        "--covariate",
        "length=3",
    ];
    desk.refused(&wrong, 2, &["reads no length"]);
    desk.refused(
        &["calibrate", "apply", "--score", "NaN"],
        2,
        &["reads scores from"],
    );
    for (rows, part) in [
        (
            "{\"score\": 10}\nten\n",
            "line 2: line: expected one JSON object",
        ),
        ("{\"scores\": 10}\n", "line 1: score: expected a number"),
        (
            "{\"score\": 1e9}\n",
            "line 1: score: score 1000000000: this calibrator reads",
        ),
    ] {
        desk.file("new.jsonl", rows);
        desk.refused(&["calibrate", "apply", "--rows", "new.jsonl"], 4, &[part]);
    }
    desk.refused(
        &["calibrate", "show", "12345678"],
        5,
        &["is named 12345678"],
    );
    // As of an entry before the fit there is none.
    let listed = desk.ok("calibrate list --json").json();
    let fitted = listed["data"]["calibrators"][0]["seq"].as_u64().unwrap();
    let before = (fitted - 1).to_string();
    let words = ["at", &before, "--", "calibrate", "show"];
    desk.refused(&words, 5, &["no estimate over all rows was made yet"]);
}
