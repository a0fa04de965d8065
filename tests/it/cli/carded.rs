//! Residual cards against what else is on record: each statistic from the audit, each name from where it was given, and
//! nothing in them from which a row could be told.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Desk;

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
    let rows: BTreeSet<String> = said(desk, "label.recorded")
        .iter()
        .map(|label| label["item"].as_str().unwrap().to_owned())
        .collect();
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
