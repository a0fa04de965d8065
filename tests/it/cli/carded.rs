//! Residual cards against what else is on record: each statistic from the audit, each name from where it was given, and
//! nothing in them from which a row could be told.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use clover::ground::digest::Digest;
use serde_json::Value;

use super::Desk;
use super::says;

/// Payloads of a kind, in order.
fn said(desk: &mut Desk, kind: &str) -> Vec<Value> {
    let log = desk.ok(&format!("log --kind {kind} --json")).json();
    let mut seqs: Vec<u64> = log["data"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    seqs.sort_unstable();
    seqs.iter()
        .map(|seq| {
            let shown = desk.ok(&format!("show {seq} --json")).json();
            shown["data"]["body"]["data"].clone()
        })
        .collect()
}

/// The values of a JSON Lines file.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn real(micro: &Value) -> f64 {
    micro.as_i64().unwrap() as f64 / 1e6
}

/// Four decimals.
#[track_caller]
fn near(micro: &Value, expected: f64) {
    assert!(
        (real(micro) - expected).abs() <= 0.5001e-4,
        "{micro} for {expected}"
    );
}

/// Student's 97.5 % point, from the normal one: Abramowitz and Stegun, 26.7.5. Beyond 30 df exact to 1e-6.
fn student_975(df: f64) -> f64 {
    let z: f64 = 1.959_963_984_540_054;
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + g1 / df + g2 / (df * df) + g3 / (df * df * df)
}

/// Every text in a value, and every name of a member.
fn words<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                found.insert(name);
                words(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::String(text) => drop(found.insert(text)),
        _ => {}
    }
}

fn is_audited(card: &Value, audited: &Value) {
    let families = audited["families"].as_array().unwrap().iter();
    let mut slices = families
        .filter(|family| family["family"] == card["family"])
        .flat_map(|family| family["slices"].as_array().unwrap());
    let slice = slices
        .find(|slice| slice["slice"] == card["slice"])
        .unwrap();
    assert_eq!(card["rows"], slice["rows"]);
    assert_eq!(card["clusters"], slice["clusters"]);
    near(&card["mse_micro"], slice["mse"].as_f64().unwrap());
    let (raw, pooled) = (&slice["raw"], &slice["pooled"]);
    let of = |value: &Value| value.as_f64().unwrap();
    near(&card["mean_raw_micro"], of(&raw["mean"]));
    near(&card["p_raw_micro"], of(&raw["p"]));
    near(&card["p_adjusted_micro"], of(&raw["p_adjusted"]));
    near(&card["shrink_micro"], of(&pooled["weight"]));
    near(&card["mean_shrunk"]["mean_micro"], of(&pooled["mean"]));
    near(&card["mean_shrunk"]["low_micro"], of(&pooled["low"]));
    near(&card["mean_shrunk"]["high_micro"], of(&pooled["high"]));
    let df = slice["clusters"].as_f64().unwrap() - 1.0;
    let half = student_975(df) * of(&raw["standard_error"]);
    near(&card["interval_raw"]["low_micro"], of(&raw["mean"]) - half);
    near(&card["interval_raw"]["high_micro"], of(&raw["mean"]) + half);
}

/// The cards of an iteration that has some, and no other iteration in its ledger.
pub(super) fn cards_say_what_they_are_computed_on(desk: &mut Desk, plan: &Value) {
    let cards = said(desk, "card.published");
    assert!(!cards.is_empty());
    let audited = said(desk, "residuals.audited").remove(0);
    let fitted = said(desk, "calibrator.fitted").into_iter();
    let mut of_rubric = fitted.filter(|of| of["terms"]["iteration"]["candidate"].is_null());
    let (calibrator, build) = of_rubric
        .next()
        .map(|of| (of["calibrator"].clone(), of["build"].clone()))
        .unwrap();
    let opened = said(desk, "iteration.opened").remove(0);
    let cells = plan["iteration"]["design"]["slices"][0]["cells"]
        .as_array()
        .unwrap();
    let mut rows = BTreeSet::new();
    for file in std::fs::read_dir(desk.at.join("sim/responses")).unwrap() {
        let named = lines(&file.unwrap().path());
        let names = named.iter().map(|row| row["prompt_id"].as_str().unwrap());
        rows.extend(names.map(str::to_owned));
    }
    assert!(rows.len() > 1000, "{}", rows.len());
    // Of the shipped rubric, what can fire: its penalty for bad sources is none.
    let active = [
        "guards.length_bias_cap.max_raw_score",
        "guards.tool_trace_consistency",
    ];
    for event in &cards {
        let card = &event["card"];
        let basis = &card["basis"];
        assert_eq!(
            (&event["build"], &basis["calibrator"]),
            (&build, &calibrator)
        );
        assert_eq!(basis["iteration"], event["iteration"]);
        assert_eq!(basis["rubric_hash"], opened["rubric_hash"]);
        assert_eq!(basis["split"], "dev");
        let cell = cells.iter().find(|cell| cell["slice"] == card["slice"]);
        let none = Value::Array(Vec::new());
        assert_eq!(
            &basis["selector"],
            cell.map_or(&none, |cell| &cell["conditions"])
        );
        is_audited(card, &audited);
        let redacted = ["exemplars", "counterexamples"].map(|name| card[name].as_array().unwrap());
        for row in redacted.into_iter().flatten() {
            let names: Vec<&String> = row.as_object().unwrap().keys().collect();
            assert_eq!(names, ["features", "fired"], "{row}");
            let fired = row["fired"].as_array().unwrap().iter();
            let mut fired = fired.map(|path| path.as_str().unwrap());
            assert!(fired.all(|path| active.contains(&path)), "{row}");
        }
        // No row of the iteration is named anywhere.
        let mut found = BTreeSet::new();
        words(event, &mut found);
        let named: Vec<_> = found.iter().filter(|word| rows.contains(**word)).collect();
        assert!(named.is_empty(), "{named:?}");
    }
}

/// Whoever may see labels is handed the full cards, which are those whose digests are on record; nobody else is.
pub(super) fn full_cards_are_handed_to_who_may_see_labels(desk: &mut Desk, iteration: &str) {
    let cards = said(desk, "card.published");
    desk.ok("key new aude --role auditor");
    desk.ok("key new olga --role optimizer --machine");
    desk.ok("key new adam --role adversary --machine");
    desk.ok("access release label --to aude --for review -o labels.jsonl");
    let labels: BTreeMap<String, f64> = lines(&desk.at.join("labels.jsonl"))
        .iter()
        .map(|label| {
            let row = label["row"].as_str().unwrap().to_owned();
            (row, real(&label["value_micro"]))
        })
        .collect();
    let release = |desk: &mut Desk, class: &str, to: &str| {
        let words = format!(
            "access release {class} --iteration {iteration} --to {to} --for review -o {to}.jsonl --json"
        );
        desk.run(&words)
    };
    let ran = release(desk, "label.card", "aude");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (answer, mut rows) = (ran.json(), BTreeSet::new());
    let full = lines(&desk.at.join("aude.jsonl"));
    assert_eq!(full.len(), cards.len());
    for (line, event) in full.iter().zip(&cards) {
        assert_eq!(line["full"]["public"], event["card"]);
        assert_eq!(line["public_digest"], event["public_digest"]);
        // SHA-256 over the label, a zero and the canonical form, as anyone computes it.
        let full = serde_json_canonicalizer::to_vec(&line["full"]).unwrap();
        let digest = Digest::sha256(&[b"clover/card-full/v1\0", &full[..]].concat());
        assert_eq!(digest.to_hex(), event["full_digest"]);
        let named = ["exemplars", "counterexamples"].map(|name| &line["full"][name]);
        for row in named.into_iter().flat_map(|rows| rows.as_array().unwrap()) {
            let name = row["row"].as_str().unwrap();
            let [label, reward, residual] =
                ["label", "reward", "residual"].map(|name| row[name].as_f64().unwrap());
            assert!((label - labels[name]).abs() < 1e-9, "{row}");
            assert!((label - reward - residual).abs() < 1e-9, "{row}");
            rows.insert(name.to_owned());
        }
    }
    assert!(!rows.is_empty());
    assert_eq!(answer["data"]["rows"], rows.len());
    assert!(answer["data"]["rows_root"].is_string(), "{answer:#}");
    for who in ["olga", "adam"] {
        let ran = release(desk, "label.card", who);
        assert_eq!(ran.code, 11, "{}", ran.err);
        says(&ran, &["label.card is not for role", "on record as denied"]);
        assert!(!desk.at.join(format!("{who}.jsonl")).exists());
    }
    // What patches are written from names no row.
    let ran = release(desk, "card.public", "olga").json();
    assert_eq!(
        (&ran["data"]["rows_root"], &ran["data"]["count"]),
        (&Value::Null, &cards.len().into())
    );
    assert_eq!(lines(&desk.at.join("olga.jsonl")), cards);
    for (words, part) in [
        (
            "access release label.card --to aude --for x -o x",
            "--iteration",
        ),
        (
            "access release row --iteration it-1 --to aude --for x -o x",
            "is of cards",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        desk.refused(&words, 2, &[part]);
    }
}
