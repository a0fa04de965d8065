//! Fields that imports kept: covariates of estimates, slices of residuals; and the drawings of what was estimated.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::estimate::Sample;
use super::estimate::desk;
use super::says;

/// Rows of two policies with a domain and a number of tokens each; every other row of `a` and every fourth of `b` has a
/// label, which is higher in law by 0.2.
fn rows(every: usize) -> String {
    let row = |at: usize| {
        let (domain, tokens) = (["law", "med", "code"][at % 3], 10 + at * 5 % 37);
        let score = 0.1 + 0.08 * ((at * 7) % 10) as f64;
        let shift = if domain == "law" { 0.2 } else { 0.0 };
        let label = at.is_multiple_of(every).then(|| {
            let label = 0.05 + 0.6 * score + shift + 0.002 * tokens as f64;
            format!(",\"oracle_label\":{label:.6}")
        });
        format!(
            "{{\"prompt_id\":\"p{at}\",\"judge_score\":{score:.6},\"domain\":\"{domain}\",\"tokens\":{tokens}{}}}\n",
            label.unwrap_or_default()
        )
    };
    (0..360).map(row).collect()
}

fn imported(fields: &str) -> Desk {
    let mut desk = Desk::with_ledger();
    for role in ["arbiter", "labeler"] {
        desk.ok(&format!("key new {role} --role {role}"));
    }
    desk.ok("label design new calib --purpose calibrate --probability 0.5");
    std::fs::create_dir(desk.at.join("both")).unwrap();
    for (policy, every) in [("a", 2), ("b", 4)] {
        desk.file(&format!("both/{policy}_responses.jsonl"), &rows(every));
    }
    // One command: the rows of both files stand before the first label.
    desk.ok(&format!("import cje both --labels {fields}"));
    desk
}

/// The value of a curve at x, straight between its knots.
fn at(curve: &Value, x: f64) -> f64 {
    let knots = |name: &str| -> Vec<f64> {
        let values = curve[name].as_array().unwrap().iter();
        values.map(|value| value.as_f64().unwrap()).collect()
    };
    let (xs, ys) = (knots("x"), knots("y"));
    let x = x.clamp(xs[0], xs[xs.len() - 1]);
    let right = (1..xs.len())
        .find(|&right| x <= xs[right])
        .unwrap_or(xs.len() - 1);
    if xs.len() == 1 {
        return ys[0];
    }
    let slope = (ys[right] - ys[right - 1]) / (xs[right] - xs[right - 1]);
    ys[right - 1] + slope * (x - xs[right - 1])
}

/// Mean residuals by domain and by policy, from the rows and curves that the fit on record names.
fn by_hand(desk: &mut Desk) -> BTreeMap<String, (f64, usize)> {
    let log = desk.ok("log --kind calibrator.fitted --json").json();
    let seq = log["data"]["entries"][0]["seq"].clone();
    let said = desk.ok(&format!("show {seq} --json")).json();
    let said = &said["data"]["body"]["data"];
    let mut blob = |name: &str| {
        let digest = said[name]["blake3"].as_str().unwrap();
        desk.ok(&format!("blob get {digest}")).out
    };
    let model: Value = serde_json::from_str(&blob("model")).unwrap();
    assert_eq!(model["selected"], "monotone");
    let mut found: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for line in blob("rows").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let fold = usize::try_from(row["fold"].as_u64().unwrap()).unwrap();
        let unit = |name: &Value| name.as_f64().unwrap() / 1e6;
        let predicted = at(
            &model["without_fold"][fold]["curve"],
            unit(&row["score_micro"]),
        );
        let residual = unit(&row["labels_micro"][0]) - predicted;
        let item: usize = row["item"].as_str().unwrap()[1..].parse().unwrap();
        let domain = ["law", "med", "code"][item % 3];
        for name in [domain, row["policy"].as_str().unwrap()] {
            let (sum, count) = found.entry(name.to_owned()).or_default();
            *sum += residual;
            *count += 1;
        }
    }
    let mean = |(sum, count): (f64, usize)| (sum / count as f64, count);
    found
        .into_iter()
        .map(|(name, of)| (name, mean(of)))
        .collect()
}

#[test]
fn residuals_are_parted_by_what_imports_kept_and_by_policy() {
    let mut desk = imported("--field domain --field tokens");
    desk.ok("estimate --mode monotone");
    let expected = by_hand(&mut desk);
    for (field, names) in [
        ("domain", &["code", "law", "med"][..]),
        ("policy", &["a", "b"]),
    ] {
        let line = format!(
            "estimate --mode monotone --dry-run --chart residuals:{field} --plot {field}.svg"
        );
        let ran = desk.ok(&format!("{line} --json")).json();
        let found = &ran["data"]["residuals"];
        assert_eq!(found["field"], field);
        let slices = found["slices"].as_array().unwrap();
        let found: Vec<&Value> = slices.iter().map(|of| &of["slice"]).collect();
        assert_eq!(found, names);
        for slice in slices {
            let (mean, count) = expected[slice["slice"].as_str().unwrap()];
            assert_eq!(slice["labels"], count);
            let gap = (slice["mean"].as_f64().unwrap() - mean).abs();
            assert!(gap < 1e-9, "{slice}: {mean}");
            assert!(slice["interval"][0].as_f64().unwrap() < mean);
        }
        let svg = std::fs::read_to_string(desk.at.join(format!("{field}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for name in names {
            assert!(svg.contains(&format!(">{name}</text>")), "{svg}");
        }
        let text = desk.ok(&line).out;
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(
            text.contains(&format!("Mean residual out of fold by {field}")),
            "{text}"
        );
    }
    // What was built in is found: law is under-scored, and told from 0.
    let ran = desk
        .ok("estimate --mode monotone --dry-run --chart residuals:domain --json")
        .json();
    let law = &ran["data"]["residuals"]["slices"][1];
    assert!(
        law["mean"].as_f64().unwrap() > 0.05 && law["rejected"] == true,
        "{law}"
    );
    let wrong = desk.run("estimate --chart residuals:colour --dry-run");
    assert_eq!(wrong.code, 4);
    says(
        &wrong,
        &["no import kept colour of a row of this experiment"],
    );
    let wrong = desk.run("estimate --chart calibration --dry-run");
    assert_eq!(wrong.code, 2);
    says(&wrong, &["expected a file to draw it in"]);
    let wrong = desk.run("estimate --chart pie --plot pie.svg --dry-run");
    assert_eq!(wrong.code, 2);
    says(
        &wrong,
        &["expected forest, calibration, residuals, residuals:FIELD or uncertainty"],
    );
}

#[test]
fn numbers_that_imports_kept_are_covariates_that_the_log_alone_confirms() {
    let mut desk = imported("--field domain --field tokens");
    let plain = desk.ok("estimate --json").json();
    let found = desk.ok("estimate --covariate tokens --json").json();
    assert_eq!(found["verdict"], "appended");
    assert_eq!(found["data"]["terms"]["covariates"], json!(["tokens"]));
    // Some scores lie where no label is, so that the level is withheld; it is computed all the same.
    let value = |answer: &Value| {
        let of = &answer["data"]["policies"][0]["withheld"];
        of["estimate"].as_f64().unwrap()
    };
    assert!((value(&plain) - value(&found)).abs() > 1e-6);
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    // No text is needed, so nothing is left to whoever holds its key.
    std::fs::remove_file(desk.at.join(".clover/vault.db")).unwrap();
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    let verified = desk.ok("verify --recompute --json").json();
    assert_eq!(verified["verdict"], "verified");
    assert!(!verified.to_string().contains("private"), "{verified}");
    // One changed number is refused by the same words.
    let log = desk.ok("log --kind estimate.recorded --json").json();
    let entries = log["data"]["entries"].as_array().unwrap().iter();
    let newest = entries.map(|of| of["seq"].as_u64().unwrap()).max().unwrap();
    let said = desk.ok(&format!("show {newest} --json")).json();
    let mut said = said["data"]["body"]["data"].clone();
    said["estimate"] = json!(said["estimate"].as_f64().unwrap() + 1e-5);
    // Another build says it, so that it is not the same question.
    said["build"] = json!("clover 9.9.9");
    let said = said.to_string();
    let words = [
        "record",
        "estimate.recorded",
        "--experiment",
        "exp-1",
        "--data",
        &said,
    ];
    desk.refused(&words, 11, &["recompute: expected estimate"]);
    // A word is no number, and what nobody kept is none either.
    for (field, found) in [("domain", "found \"law\""), ("colour", "found none")] {
        let ran = desk.run(&format!("estimate --covariate {field} --dry-run"));
        assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
        says(
            &ran,
            &[&format!(
                "covariate {field} of a/p0/0: expected a number that an import kept, {found}"
            )],
        );
    }
}

#[test]
fn fields_that_come_later_are_read_from_then_on() {
    let mut desk = imported("");
    let ran = desk.run("estimate --covariate tokens --dry-run");
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    let size = desk.head()["size"].as_u64().unwrap();
    desk.ok("import cje both --labels --field tokens");
    // Labels could be read by then: the field parts rows, and is no covariate.
    let ran = desk.run("estimate --covariate tokens --dry-run");
    assert_eq!(ran.code, 11, "{}{}", ran.out, ran.err);
    desk.ok("estimate --dry-run --chart residuals:tokens --plot tokens.svg");
    desk.ok("estimate");
    assert_eq!(
        desk.ok("replay --all --json").json()["verdict"],
        "reproduced"
    );
    let then = desk.run(&format!("at {} -- estimate --covariate tokens", size - 1));
    assert_eq!(then.code, 4, "{}{}", then.out, then.err);
}

/// Numbers of an attribute, in the order of a drawing.
fn numbers(svg: &str, from: &str) -> Vec<f64> {
    let parts = svg.split(from).skip(1);
    let numbers = parts.map(|part| part.split(['"', ' ', '<']).next().unwrap());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn every_chart_of_the_sample_is_drawn_from_its_numbers() {
    let mut desk = desk(&Sample::kept());
    let mut drawn = |line: &str| {
        desk.ok(&format!("{line} --dry-run --plot drawn.svg"));
        let svg = std::fs::read_to_string(desk.at.join("drawn.svg")).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("<script"), "{svg}");
        svg
    };
    // Twelve scores have labels, 293 of the 480 at 0.85.
    let svg = drawn("estimate --chart calibration");
    assert_eq!(svg.matches("<circle ").count(), 12);
    let most = numbers(&svg, "<title>").into_iter().fold(0.0, f64::max);
    assert!(
        (most - 293.0).abs() < 1e-12 && svg.contains("<title>293 at 0.85</title>"),
        "{svg}"
    );
    // Circles grow with their labels: the area of a circle less its least radius is as its share.
    let radii = numbers(&svg, " r=\"");
    let largest = radii.iter().copied().fold(0.0, f64::max);
    assert!((largest - 12.0).abs() < 0.06, "{radii:?}");
    let svg = drawn("estimate --chart residuals");
    let bars = svg.matches("<rect x=").count();
    assert!((2..=10).contains(&bars), "{bars} tenths");
    let svg = drawn("estimate --chart uncertainty");
    let shares: Vec<f64> = svg
        .split(" %</text>")
        .filter_map(|part| part.rsplit(' ').next()?.parse().ok())
        .collect();
    assert_eq!(shares.len(), 2);
    assert!(
        (shares.iter().sum::<f64>() - 100.0).abs() <= 1.0,
        "{shares:?}"
    );
    // Withheld levels are not drawn unless that is asked for.
    assert_eq!(drawn("estimate").matches("<circle ").count(), 3);
    assert_eq!(drawn("estimate --raw").matches("<circle ").count(), 4);
    // Three of the six differences would give a withheld level away.
    assert_eq!(drawn("compare --all").matches("<circle ").count(), 3);
    let svg = drawn("plan budget 200 --score-price 0.01 --label-price 0.16");
    assert_eq!(
        svg.matches("<path ").count(),
        5,
        "a line for each number of labels"
    );
    let compared = desk.ok("compare --all --json").json();
    let pairs = compared["data"]["differences"].as_array().unwrap();
    let withheld = pairs.iter().filter(|of| of["withheld"].is_object());
    assert_eq!(withheld.count(), 3, "{compared}");
    let is_one = |of: &Value| of["withheld"].is_object() != of["difference"].is_f64();
    assert!(pairs.iter().all(is_one), "{compared}");
}
