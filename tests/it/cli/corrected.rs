//! How a family of differences is corrected: by hand on the p-values, computed again, and not chosen after the fact.

use serde_json::Value;
use serde_json::json;

use super::Desk;
use super::Ran;
use super::doubts;
use super::estimate::Sample;
use super::estimate::desk;
use super::estimate::policy;

/// The page says these, wherever its lines break.
fn prints(ran: &Ran, parts: &[&str]) {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = one_line(&ran.out);
    for part in parts {
        assert!(
            text.contains(&one_line(part)),
            "{part:?} is not in:\n{}",
            ran.out
        );
    }
}

/// p of each pair, and the same corrected.
fn family(answer: &Value) -> Vec<(f64, f64)> {
    let pairs = answer["data"]["differences"].as_array().unwrap().iter();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    // Numbers of a withheld difference stand apart.
    pairs
        .map(|of| of.get("withheld").unwrap_or(of))
        .map(|of| (number(of, "p"), number(of, "p_adjusted")))
        .collect()
}

#[test]
fn a_family_is_corrected_as_asked() {
    let mut desk = desk(&Sample::kept());
    let compare = |how: &str| format!("compare --all --dry-run --json --correction {how}");
    let bonferroni = family(&desk.ok(&compare("bonferroni")).json());
    assert_eq!(bonferroni.len(), 6);
    for (p, adjusted) in &bonferroni {
        assert!((adjusted - (6.0 * p).min(1.0)).abs() < 1e-12);
    }
    // Holm (1979): the k-th smallest times what is left, and never below the one before it.
    let holm = family(&desk.ok(&compare("holm")).json());
    let mut sorted = holm.clone();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut least = 0.0_f64;
    for (at, (p, adjusted)) in sorted.iter().enumerate() {
        least = least.max(((6 - at) as f64 * p).min(1.0));
        assert!((adjusted - least).abs() < 1e-12, "{at}: {p} {adjusted}");
    }
    // Benjamini and Yekutieli (2001): the usual correction times 1 + 1/2 + … + 1/6.
    let usual = family(&desk.ok("compare --all --dry-run --json").json());
    assert_eq!(usual, family(&desk.ok(&compare("bh")).json()));
    let any = family(&desk.ok(&compare("by")).json());
    for ((_, usual), (_, any)) in usual.iter().zip(&any) {
        assert!(
            (any - (2.45 * usual).min(1.0)).abs() < 1e-12,
            "{usual} {any}"
        );
    }
    let text = desk.ok("compare --all --dry-run --correction holm").out;
    assert!(
        text.contains("p (Holm)") && text.contains("holds the chance of any false finding"),
        "{text}"
    );
    desk.refused(&["compare", "--all", "--correction", "none"], 2, &["holm"]);
}

/// What was compared under one correction is not compared again under another, whichever suits.
#[test]
fn the_correction_is_not_chosen_after_the_fact() {
    let mut desk = desk(&Sample::kept());
    desk.ok("compare --all --correction holm");
    let data = desk.replayed("");
    let found = data["outcomes"].to_string();
    assert!(!found.contains("differ"), "{found}");
    desk.refused(
        &["compare", "--all"],
        11,
        &["on the same rows and by another correction"],
    );
}

/// A plan that says how policies are compared and estimated.
fn plan(estimates: &str) -> String {
    format!(
        "template: transport\nversion: 1\nmanifest: m-compare\nexperiment: arena\ntitle: Comparison\nhypothesis:\n  \
         claim: one of them is best\n  kind: measure\nestimates:\n{estimates}transport:\n  margin_micro: 50000\n  \
         alpha_micro: 50000\n  family_size: 1\n  power_micro: 800000\n  residual_sd_micro: 200000\n  bias_micro: 0\n  \
         clusters_min: 20\n  labels_per_cluster: 1\n  environments:\n    - environment: clone\n      clusters: 200\n      \
         required: true\n"
    )
}

/// The sample under such a plan.
fn planned(estimates: &str) -> Desk {
    let mut desk = desk(&Sample::kept());
    desk.file("plan.yaml", &plan(estimates));
    desk.ok("prereg sign plan.yaml --key owner");
    desk
}

/// A plan chooses the correction; nobody does once numbers are there.
#[test]
fn a_comparison_follows_its_plan() {
    let mut desk = planned("  correction: holm\n");
    for other in ["bh", "by", "bonferroni"] {
        let words = ["compare", "--all", "--dry-run", "--correction", other];
        desk.refused(&words, 11, &["m-compare binds holm", "--correction"]);
    }
    let before = desk.ok("log --kind contrast.recorded --json").json();
    assert_eq!(before["data"]["entries"].as_array().unwrap().len(), 0);
    let found = desk.ok("compare --all --json").json();
    assert_eq!(found["data"]["correction"], "Holm");
    let mut sorted = family(&found);
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!((sorted[0].1 - (6.0 * sorted[0].0).min(1.0)).abs() < 1e-12);
    let page = desk.ok("compare --all --correction holm");
    // Only base was checked: no order is claimed, and nothing has a rank.
    prints(&page, &["p (Holm)", "6 pairs; marks by p (Holm)"]);
    for of in found["data"]["ranking"].as_array().unwrap() {
        assert_eq!(of["rank"], json!(null), "{of}");
    }
    let outcomes = desk.replayed("")["outcomes"].to_string();
    assert!(!outcomes.contains("differ"), "{outcomes}");
}

/// Given a comparison on record; when the same rows are compared by another correction; then nothing is recorded, and the refusal
/// says in words that the first stands and how the other is seen.
#[test]
fn another_correction_of_the_same_rows_is_exploratory() {
    let policies = [("a", 0..80, 0.44), ("b", 0..80, 0.5), ("c", 0..80, 0.6)];
    let mut desk = doubts::desk("1", &policies);
    desk.ok("compare --all");
    let words = ["compare", "--all", "--correction", "bonferroni"];
    desk.refused(
        &words,
        11,
        &[
            "compared on record at seq",
            "by another correction: what was recorded first stands",
            "next: the same command with --dry-run",
        ],
    );
    desk.ok("compare --all --correction bonferroni --dry-run");
}

/// Four policies with labels of their own: three in an order, and one of other prompts, which is told apart from none.
#[test]
fn ranks_are_what_told_apart_pairs_leave() {
    let policies = [
        ("a", 0..80, 0.44),
        ("b", 0..80, 0.5),
        ("c", 80..160, 0.5),
        ("d", 0..80, 0.56),
    ];
    let mut desk = doubts::desk("1", &policies);
    desk.file("plan.yaml", &plan("  correction: bonferroni\n"));
    desk.ok("prereg sign plan.yaml");
    let expected = [("a", [3, 4]), ("b", [2, 3]), ("c", [1, 4]), ("d", [1, 2])];
    let found = desk.ok("compare --all --json").json();
    assert_eq!(found["data"]["correction"], "Bonferroni");
    let ranking = found["data"]["ranking"].as_array().unwrap();
    for (of, (name, rank)) in ranking.iter().zip(expected) {
        assert_eq!((&of["policy"], &of["rank"]), (&json!(name), &json!(rank)));
    }
    let page = desk.ok("compare --all");
    prints(
        &page,
        &["2-3", "all of them hold together with 95 % confidence"],
    );
    // Values have the same ranks.
    let values = desk.ok("estimate --json").json();
    let lines: String = policies
        .iter()
        .map(|(name, ..)| {
            let rows = desk.at.join(format!("{name}_responses.jsonl"));
            std::fs::read_to_string(rows)
                .unwrap()
                .replace('{', &format!("{{\"target_policy\":\"{name}\","))
        })
        .collect();
    desk.file("all.jsonl", &lines);
    let of_file = desk.ok("analyze all.jsonl --json").json();
    for (name, rank) in expected {
        assert_eq!(policy(&values["data"], name)["rank"], json!(rank));
    }
    // An analysis of a file claims nothing; it tells policies without a common prompt apart as little.
    for (name, rank) in expected {
        assert_eq!(policy(&of_file["data"], name)["rank"], json!(rank));
    }
    prints(
        &desk.ok("analyze all.jsonl"),
        &["ranks  a 3-4, b 2-3, c 1-4, d 1-2"],
    );
}

/// The weight is the slope of labels on out-of-fold predictions: the same by ledger and by file, recorded and replayed.
#[test]
fn a_tuned_weight_is_asked_for_recorded_and_replayed() {
    let mut desk = desk(&Sample::kept());
    let one = desk.ok("estimate --dry-run --json").json();
    let tuned = desk.ok("estimate --weight tuned --json").json();
    assert_eq!(one["data"]["terms"]["weight"], Value::Null);
    assert_eq!(tuned["data"]["terms"]["weight"], "tuned");
    let folder = Sample::kept().path("fresh_draws");
    let of_file = desk
        .ok(&format!("analyze {folder} --weight tuned --json"))
        .json();
    let mut moved = 0;
    for of in tuned["data"]["policies"].as_array().unwrap() {
        let name = of["policy"].as_str().unwrap();
        let (file, whole) = (policy(&of_file["data"], name), policy(&one["data"], name));
        assert_eq!(of["weight"], file["weight"], "{name}");
        if of["weight"].is_null() {
            continue;
        }
        assert_eq!(whole["weight"]["reason"], "rule_one");
        assert_eq!(of["weight"]["reason"], "tuned");
        let value = |of: &Value| of["level"]["estimate"].as_f64().unwrap();
        let weight = of["weight"]["value"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&weight), "{name}: {weight}");
        assert!((value(of) - file["estimate"].as_f64().unwrap()).abs() < 1e-12);
        // The estimate is a line in the weight, through the mean label at 0 and the usual estimate at 1.
        let alone = of["labels_only"]["mean"].as_f64().unwrap();
        let line = alone + weight * (value(whole) - alone);
        assert!(
            (value(of) - line).abs() < 1e-9,
            "{name}: {} {line}",
            value(of)
        );
        moved += u32::from(weight < 1.0);
    }
    assert!(moved > 0, "{tuned}");
    prints(
        &desk.ok("estimate --weight tuned --dry-run"),
        &["by the slope of its labels"],
    );
    let outcomes = desk.replayed("")["outcomes"].to_string();
    assert!(!outcomes.contains("differ"), "{outcomes}");
}

/// A plan chooses the weight too.
#[test]
fn an_estimate_follows_its_plan() {
    let mut desk = planned("  weight: tuned\n");
    desk.refused(
        &["estimate", "--weight", "one"],
        11,
        &["m-compare binds tuned", "found one"],
    );
    let found = desk.ok("estimate --json").json();
    assert_eq!(found["data"]["terms"]["weight"], "tuned");
    let found = desk.ok("compare --all --json").json();
    assert_eq!(found["data"]["terms"]["weight"], "tuned");
}
