//! How a family of differences is corrected: by hand on the p-values, computed again, and not chosen after the fact.

use serde_json::Value;

use super::estimate::Sample;
use super::estimate::desk;

/// p of each pair, and the same corrected.
fn family(answer: &Value) -> Vec<(f64, f64)> {
    let pairs = answer["data"]["differences"].as_array().unwrap().iter();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    pairs
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
    desk.refused(&["compare", "--all"], 11, &["contrast.recorded"]);
}
