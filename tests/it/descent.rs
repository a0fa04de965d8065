//! The loss of a judge's prompt, and what goes with it, against numpy, scipy and plain loops.

use clover::prompt::myers;
use clover::stats::descent::Constants;
use clover::stats::descent::Deviation;
use clover::stats::descent::LossTerms;
use clover::stats::descent::Ranking;
use clover::stats::descent::ScoredRows;
use clover::stats::descent::loss;
use clover::stats::descent::paired_error;
use clover::stats::descent::theil_sen;
use clover::stats::quantile;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    losses: Vec<LossCase>,
    edits: Vec<Edit>,
    slopes: Vec<Slope>,
    quantiles: Vec<Quantiles>,
    paired_errors: Vec<PairedError>,
}

#[derive(Deserialize)]
struct LossCase {
    name: String,
    huber: bool,
    hinge: bool,
    repeats: u32,
    targets: Vec<f64>,
    rows: Vec<Vec<f64>>,
    v_0: f64,
    c_abs: f64,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    abs: f64,
    rank: Option<f64>,
    pairs: u64,
    contraction: f64,
    instability: f64,
    failures: f64,
    selfvar: f64,
    entropy: f64,
    sd_ratio: Option<f64>,
    concordance: Option<f64>,
    tau_b: Option<f64>,
    spearman: Option<f64>,
    loss: f64,
}

#[derive(Deserialize)]
struct Edit {
    a: String,
    b: String,
    length: usize,
}

#[derive(Deserialize)]
struct Slope {
    values: Vec<f64>,
    slope: f64,
}

#[derive(Deserialize)]
struct Quantiles {
    values: Vec<f64>,
    p: Vec<f64>,
    expected: Vec<f64>,
}

#[derive(Deserialize)]
struct PairedError {
    values: Vec<f64>,
    error: f64,
}

fn vectors() -> Vectors {
    let text = include_str!("../../fixtures/reference/sgd/descent.json");
    serde_json::from_str(text).unwrap()
}

/// Within 1e-12 of the reference; sums that cancel to about 0 within 1e-15.
fn close(name: &str, field: &str, ours: f64, theirs: f64) {
    let within = (ours - theirs).abs() <= 1e-12 * theirs.abs() + 1e-15;
    assert!(within, "{name}: {field}: {ours} and {theirs}");
}

fn both(name: &str, field: &str, ours: Option<f64>, theirs: Option<f64>) {
    assert_eq!(ours.is_some(), theirs.is_some(), "{name}: {field}");
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        close(name, field, ours, theirs);
    }
}

#[test]
fn losses_are_those_of_numpy_and_scipy() {
    for case in vectors().losses {
        let (name, theirs) = (case.name.as_str(), &case.expected);
        let rows = case.rows.iter().map(Vec::as_slice);
        let rows = ScoredRows::new(&case.targets, rows, case.repeats).unwrap();
        let deviation = if case.huber {
            Deviation::Huber
        } else {
            Deviation::Absolute
        };
        let ranking = if case.hinge {
            Ranking::Hinge
        } else {
            Ranking::Logistic
        };
        let terms = LossTerms {
            deviation,
            ranking,
            ..LossTerms::default()
        };
        let constants = Constants::of(&case.targets, case.v_0, deviation).unwrap();
        close(name, "c_abs", constants.c_abs, case.c_abs);
        let ours = loss(&rows, &terms, &constants).unwrap();
        assert_eq!(ours.pairs, theirs.pairs, "{name}");
        close(name, "abs", ours.abs, theirs.abs);
        both(name, "rank", ours.rank, theirs.rank);
        close(name, "contraction", ours.contraction, theirs.contraction);
        close(name, "instability", ours.instability, theirs.instability);
        close(name, "failures", ours.failures, theirs.failures);
        close(name, "selfvar", ours.selfvar, theirs.selfvar);
        close(name, "entropy", ours.entropy, theirs.entropy);
        both(name, "sd_ratio", ours.sd_ratio, theirs.sd_ratio);
        both(name, "concordance", ours.concordance, theirs.concordance);
        both(name, "tau_b", ours.tau_b, theirs.tau_b);
        both(name, "spearman", ours.spearman, theirs.spearman);
        close(name, "loss", ours.loss, theirs.loss);
    }
}

#[test]
fn slopes_quantiles_and_errors_are_those_of_numpy_and_scipy() {
    let vectors = vectors();
    for case in vectors.slopes {
        close(
            "slope",
            "slope",
            theil_sen(&case.values).unwrap(),
            case.slope,
        );
    }
    for case in vectors.quantiles {
        let sorted = quantile::ascending(&case.values);
        for (p, expected) in case.p.iter().zip(case.expected) {
            close("quantile", "p", quantile::type_7(&sorted, *p), expected);
        }
    }
    for case in vectors.paired_errors {
        close("error", "error", paired_error(&case.values), case.error);
    }
}

#[test]
fn edits_are_as_long_as_the_table_says() {
    for Edit { a, b, length } in vectors().edits {
        assert_eq!(
            myers::scalars(&a, &b, usize::MAX >> 4),
            Some(length),
            "{a:?} {b:?}"
        );
    }
}
