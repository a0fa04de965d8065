//! What was estimated, audited and planned, as an author may write it.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::registry;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

/// Curves and rows of the fit.
pub const MODEL: &[u8] = b"{\"curve\":{\"x\":[0.1],\"y\":[0.5]}}";
/// The rows of the fit, a line each.
pub const ROWS: &[u8] = b"{\"draw\":0,\"fold\":0,\"item\":\"item-a\"}\n";

pub fn payload(kind: Kind, data: &Value) -> Payload {
    let text = serde_json::to_string(data).unwrap();
    let (payload, _) = registry::decode(kind.as_str(), kind.version(), &text).unwrap();
    payload
}

fn blob(bytes: &[u8], media: &str) -> Value {
    json!({"blake3": Digest::blake3(bytes).to_hex(), "bytes": bytes.len(), "media": media})
}

pub fn digest(byte: u8) -> Value {
    Digest([byte; 32]).to_hex().into()
}

fn root(byte: u8) -> Value {
    Digest([byte; 32]).to_base64().into()
}

fn ends(low: f64, high: f64) -> Value {
    json!({"high": high, "low": low})
}

pub fn terms() -> Value {
    json!({
        "alpha_micro": 50_000, "covariates": ["response_length"], "fold_seed": 42, "folds": 5,
        "judge": "judge-1", "labels": "representative", "mode": "auto",
        "judge_scale": {"high_micro": 1_000_000, "low_micro": 0},
    })
}

/// A fit of the calibrator of this byte, with one label of `base` at an entry.
pub fn fitted(calibrator: u8, newest_seq: u64) -> Value {
    json!({
        "algorithm": "calibrator/peer-1", "build": "clover 0.1.0", "calibrator": digest(calibrator),
        "clusters": 20, "folds": 5, "labels": 20,
        "labels_by_policy": [{"labels": 20, "newest_seq": newest_seq, "policy": "base"}],
        "model": blob(MODEL, "application/json"), "oof_rmse": 0.21, "oof_within_tenth": 0.4,
        "reward_range": ends(0.2, 0.9), "rmse": 0.2, "rows": blob(ROWS, "application/x-ndjson"),
        "rows_root": root(1), "score_range": ends(0.1, 1.0), "selected": "two_stage", "slope_high": 0.7,
        "terms": terms(), "through_seq": newest_seq, "uses_covariates": false,
    })
}

pub fn estimate(calibrator: u8, transport: Option<(&str, u64)>) -> Value {
    let mut data = json!({
        "build": "clover 0.1.0", "calibrator": digest(calibrator), "claim": "own_labels", "correction": 0.01,
        "df": 17.5, "df_method": "welch", "estimate": 0.75,
        "filter": {
            "audit_labels": 0, "conflicts": 0, "labels_without_score": 0, "other_judges": 0,
            "repeated_labels": 0, "rows": 40, "sealed": 0,
        },
        "interval": ends(0.7, 0.8), "interval_clipped": ends(0.7, 0.8), "interval_method": "t",
        "labels": 20, "labels_only": {"interval": ends(0.69, 0.82), "mean": 0.76}, "plug_in": 0.74,
        "policy": "base", "prompts": 40, "raw_mean": 0.84, "route": "augmented", "rows": 40,
        "rows_root": root(2), "se": 0.025, "share": 0.2, "terms": terms(), "through_seq": 3,
    });
    if let Some((state, seq)) = transport {
        data["transport"] = json!({"seq": seq, "state": state});
    }
    data
}

pub fn contrast(calibrator: u8) -> Value {
    json!({
        "basis": "cluster_robust", "build": "clover 0.1.0", "calibrator": digest(calibrator),
        "conservative": ends(-0.2, 0.3), "df": 30.0, "difference": 0.05, "family": ["base", "tuned"],
        "first": "base", "first_root": root(2), "interval": ends(-0.01, 0.11), "p": 0.1, "p_adjusted": 0.1,
        "se": 0.03, "second": "tuned", "second_root": root(3), "terms": terms(), "through_seq": 3,
        "told_apart": false,
    })
}

pub fn oua(calibrator: u8) -> Value {
    json!({
        "build": "clover 0.1.0", "calibrator": digest(calibrator), "policy": "base", "rows_root": root(2),
        "share": 0.2, "share_by_decile": [{"rows": 20, "share": 0.1}, {"rows": 20}], "terms": terms(),
        "through_seq": 3, "var_main": 0.0005, "var_oua": 0.000_125,
    })
}

pub fn coverage(calibrator: u8) -> Value {
    let tail = |edge: f64| json!({"edge": edge, "labels": 2, "mass": 0.1, "starved": false});
    json!({
        "build": "clover 0.1.0", "calibrator": digest(calibrator), "decile_counts": [2, 18],
        "flat_high": false, "flat_low": true, "high_tail": tail(0.9), "low_tail": tail(0.2),
        "out_of_range": 0.01, "policy": "base", "refuse_level": false, "rows_root": root(2),
        "saturation": 0.0, "terms": terms(), "through_seq": 3,
    })
}

/// An audit of `base` by the probes of a design.
pub fn tested(calibrator: u8, design: &str, state: &str) -> Value {
    let width = json!({
        "detectable_bias": 0.1, "df": 49.0, "interval": ends(-0.42, -0.24), "min_margin_for_pass": 0.42,
        "se": 0.036, "state": state, "zero_null_p": 0.001,
    });
    json!({
        "algorithm": "transport/1",
        "audit": {"alpha_micro": 50_000, "clusters_min": 20, "family_size": 3, "margin_micro": 50_000},
        "build": "clover 0.1.0", "calibrator": digest(calibrator), "clusters": 50, "design": design,
        "effective_clusters": 50.0, "mean_residual": -0.33, "narrow": width, "policy": "base",
        "probes_root": root(4), "rows": 50, "state": state, "terms": terms(), "through_seq": 4,
        "wide": width, "zero_null_p_adjusted": 0.003,
    })
}

/// Two judges that were held against the same labels.
pub fn judges_compared() -> Value {
    json!({
        "better": "judge-2", "build": "clover 0.1.0", "difference": 0.02, "first": "judge-1", "first_error": 0.05,
        "folds": 5, "high": 0.03, "items": 90, "low": 0.01, "plan": {"comparisons": 2, "manifest": "m-it"},
        "rows": 100, "second": "judge-2", "second_error": 0.03, "through_seq": 3, "unpaired": 1,
    })
}

/// The rows of one value of a field.
pub fn scope(family: &str, environment: &str) -> Value {
    json!({"environment": environment, "family": family})
}

/// A test of a family of environments by the probes of a design; each with its verdict.
pub fn environments(
    calibrator: u8,
    (design, manifest): (&str, &Value),
    family: &str,
    found: &[(&str, &str)],
) -> Value {
    let outcomes = found.iter().map(|(environment, verdict)| {
        json!({
            "clusters": 130, "detectable_bias": 0.048, "interval": ends(-0.16, -0.09), "mean": -0.125,
            "required": true, "rows": 130, "scope": scope(family, environment), "standard_error": 0.017,
            "verdict": verdict,
        })
    });
    json!({
        "algorithm": "environments/1", "build": "clover 0.1.0", "calibrator": digest(calibrator),
        "design": design, "environments": outcomes.collect::<Vec<Value>>(), "family": family, "late": 0,
        "manifest": manifest, "probes": 2, "probes_root": root(4), "q_micro": 100_000, "terms": terms(), "through_seq": 4,
        "without": 3,
    })
}

/// A regime for an environment.
pub fn regime(of: &str, scope: &Value, tested_seq: u64, calibrator: Option<u8>) -> Value {
    let mut data = json!({
        "judge": "judge-1", "reason": "no patch is in sight", "regime": of, "scope": scope,
        "tested_seq": tested_seq,
    });
    if let Some(calibrator) = calibrator {
        data["calibrator"] = digest(calibrator);
    }
    data
}

pub fn planned() -> Value {
    json!({
        "asked_micro": 100_000_000, "build": "clover 0.1.0",
        "evaluation": {"cost": 99.5, "labels": 100, "mde": 0.05, "scores": 900, "se": 0.012},
        "policies": 2, "power_micro": 800_000, "prices": {"label_micro": 160_000, "score_micro": 10_000}, "purpose": "budget",
        "split": {
            "calibration": 0.04, "evaluation": 0.05, "labels": 480, "policies": ["base", "tuned"], "rows": 1000,
        },
        "terms": terms(), "through_seq": 3,
    })
}

fn ope_terms() -> Value {
    json!({
        "estimate": terms(), "logger": "base", "outer_seed": 1042,
        "thresholds": {
            "affinity_good_micro": 850_000, "affinity_warn_micro": 500_000, "cv_max_micro": 2_000_000,
            "ess_good_micro": 300_000, "ess_warn_micro": 100_000, "guarded_max_micro": 500_000,
            "hill_good_micro": 2_000_000, "hill_warn_micro": 1_000_000, "near_zero_max_micro": 850_000,
            "top_mass_max_micro": 300_000, "ttc_good_micro": 700_000, "ttc_warn_micro": 300_000,
        },
    })
}

fn figures() -> Value {
    json!({
        "cv_squared": 9.0, "ess_fraction": 0.1, "hill": 1.2, "hill_band": {"high": 1.4, "low": 1.0, "median": 1.1},
        "max_over_median": 40.0, "max_share": 0.2, "percentile_99_5": 12.0, "top_5_percent": 0.4,
    })
}

pub fn diagnosed() -> Value {
    json!({
        "affinity": 0.9, "answer": "calibrated-ips", "build": "clover 0.1.0",
        "caps": [{"cap": 1.5, "cut": 3, "estimate": 0.7, "se": 0.02}], "cle_factor": 20.5, "draws": true,
        "filter": {"checked": [4], "kept": 18, "rows": 20, "without_logprob": 1, "without_target": 1},
        "groups": [{"ess_fraction": 0.2, "group": "cohort w1", "lift": 1.5, "rows": 9}, {"group": "cohort w2", "lift": 0.5, "rows": 9}],
        "guarded": 0.25, "guide": [{"estimator": "snips", "reasons": ["ess 0.100 against 0.30"], "verdict": "refused"}],
        "near_zero": 0.5, "overlap": "warn", "policy": "tuned", "raw": figures(),
        "residuals": {"correlation": 0.1, "direct": 0.7, "high": 0.02, "low": -0.01, "mean": 0.005, "p": 0.5, "se": 0.01},
        "rows_root": root(6), "stabilised": figures(), "tail": "critical", "terms": ope_terms(), "through_seq": 3,
        "ttc": 0.4, "ttc_by_total": 0.45,
    })
}

pub fn weighted(calibrator: u8) -> Value {
    json!({
        "build": "clover 0.1.0", "calibrator": digest(calibrator), "df": 17.5, "estimate": 0.71, "estimator": "stacked-dr",
        "interval": ends(0.6, 0.8), "jackknife": [0.7, 0.72], "policy": "tuned", "rows": 18, "rows_root": root(6),
        "se": 0.05, "share": 0.1, "stack": [{"estimator": "dr-cpo", "share": 0.5}], "terms": ope_terms(),
        "through_seq": 3, "verdict": "warned",
    })
}

/// Log-probabilities that were held against their contract.
pub fn checked() -> Value {
    json!({
        "additivity_micro": 1, "broken": [{"clause": "sign", "rows": 1}], "determinism_pico": 100_000,
        "judge_configs": [digest(7)], "kept": 18, "missing": 1, "not_checked": [{"clause": "masking", "rows": 18}],
        "policy": "base", "rows": blob(ROWS, "application/x-ndjson"), "rows_in": 20, "rows_root": root(7),
        "run_configs": [digest(8)], "template": "sha256:t", "tokenizer": "sha256:k",
    })
}

/// One of every kind, in an order in which they may be said where nothing was audited.
pub fn every(calibrator: u8, design: &str) -> Vec<(&'static str, Payload)> {
    let all = [
        ("fitted", Kind::CalibratorFitted, fitted(calibrator, 2)),
        (
            "estimated",
            Kind::EstimateRecorded,
            estimate(calibrator, None),
        ),
        ("contrasted", Kind::ContrastRecorded, contrast(calibrator)),
        ("shared", Kind::OuaEstimated, oua(calibrator)),
        ("covered", Kind::CoverageChecked, coverage(calibrator)),
        (
            "tested",
            Kind::TransportTested,
            tested(calibrator, design, "fail"),
        ),
        ("planned", Kind::PlanRecorded, planned()),
        ("diagnosed", Kind::OpeDiagnosed, diagnosed()),
        ("weighted", Kind::OpeEstimated, weighted(calibrator)),
    ];
    let all = all.into_iter();
    all.map(|(name, kind, data)| (name, payload(kind, &data)))
        .collect()
}
