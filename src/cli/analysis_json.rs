//! An analysis as one JSON object.

use serde_json::Value;
use serde_json::json;

use crate::cli::analysis::AnalysisShown;
use crate::cli::analysis::EXPLORATORY;
use crate::cli::analysis::interval;
use crate::cli::analysis::level;
use crate::cli::analysis::se;
use crate::cli::analysis::state;
use crate::stats::inference::Interval;
use crate::workflow::analyze::PolicyResult;
use crate::workflow::analyze::Status;

impl AnalysisShown<'_> {
    /// Everything, for programs.
    pub(super) fn json(&self) -> Value {
        let found = self.analysis;
        let policies: Vec<Value> = found.policies.iter().map(|p| self.policy_json(p)).collect();
        let differences: Vec<Value> = found
            .differences
            .iter()
            .map(|pair| {
                json!({
                    "first": found.policies[pair.first].name,
                    "second": found.policies[pair.second].name,
                    "difference": pair.difference, "se": pair.se, "df": pair.df,
                    "interval": ends(pair.interval), "p": pair.p, "p_adjusted": pair.p_adjusted,
                    "basis": pair.basis.name(),
                    "conservative_interval": pair.widest().map(ends),
                    "reading": self.reading(pair),
                })
            })
            .collect();
        json!({
            "record": EXPLORATORY,
            "source": self.source,
            "alpha": found.alpha,
            "interval": if self.replicates.is_some() { "percentile" } else { "t" },
            "bootstrap": self.replicates.map(|replicates| json!({
                "replicates": replicates, "seed": self.seed, "weights": "exponential", "draws": self.draws,
            })),
            "covariates": self.covariates,
            "scales": {
                "judge": found.judge_scale.map(scale), "label": found.label_scale.map(scale),
                "output": scale(found.output_scale),
            },
            "prompts": found.prompts,
            "calibration": self.calibration_json(),
            "policies": policies,
            "differences": differences,
        })
    }

    fn calibration_json(&self) -> Value {
        match &self.analysis.calibration {
            Err(thin) => json!({"fitted": false, "reason": thin.to_string()}),
            Ok(calibration) => {
                let fitted = &calibration.calibrator;
                let quality = &fitted.quality;
                json!({
                    "fitted": true,
                    "algorithm": fitted.settings.algorithm.name(),
                    "mode": fitted.selected.name(),
                    "labels": calibration.labels, "prompts": calibration.clusters,
                    "folds": calibration.folds,
                    "uses_covariates": fitted.uses_covariates,
                    "folds_without_covariates": fitted.folds_without_covariates,
                    "rmse": quality.rmse, "oof_rmse": quality.oof_rmse,
                    "within_tenth": quality.within_tenth, "oof_within_tenth": quality.oof_within_tenth,
                    "score_range": [calibration.score_range.0, calibration.score_range.1],
                    "slope_low": calibration.slopes.low, "slope_high": calibration.slopes.high,
                })
            }
        }
    }

    fn policy_json(&self, policy: &PolicyResult) -> Value {
        let (low, high) = self.analysis.output_scale.ends();
        let clipped = interval(policy).map(|i| [i.low.clamp(low, high), i.high.clamp(low, high)]);
        json!({
            "policy": policy.name,
            "estimate": policy.estimate,
            "se": se(policy),
            "interval": interval(policy).map(ends),
            "interval_clipped": clipped,
            "df": policy.spread.ok().map(|spread| spread.df),
            "df_method": policy.spread.ok().map(|spread| spread.df_method.name()),
            "no_interval": policy.interval().err(),
            "interval_method": policy.interval().ok().map(|(_, method)| method.name()),
            "off_mode": policy.off_mode,
            "calibration_share": policy.spread.ok().map(|spread| spread.calibration_share),
            "calibration_variance": policy.calibration_variance,
            "route": policy.route.name(),
            "plug_in": policy.plug_in, "correction": policy.correction,
            "weight": policy.weight.map(|(weight, reason)| json!({"value": weight, "reason": reason.name()})),
            "rows": policy.rows, "prompts": policy.clusters, "labels": policy.labelled,
            "labelled_share": policy.labelled_share,
            "labels_only": policy.labels_alone().map(|labels| json!({
                "mean": labels.mean, "interval": labels.interval.map(ends),
            })),
            "status": Status::of(policy).name(),
            "level": level(policy),
            "boundary": policy.card.map(|card| json!({
                "status": card.status.name(), "out_of_range": card.out_of_range,
                "saturation": card.saturation, "partial_id_width": card.partial_id_width,
            })),
            "support": policy.support.map(|support| json!({
                "refuse_level": support.refuse_level, "out_of_range": support.out_of_range,
                "low_tail": tail(&support.low), "high_tail": tail(&support.high),
            })),
            "bounds": policy.bounds.map(|bounds| [bounds.low, bounds.high]),
            "transport": self.transport_json(policy),
        })
    }

    fn transport_json(&self, policy: &PolicyResult) -> Value {
        let Some(result) = &policy.transport else {
            return json!({"state": if policy.borrows() { "NOT_CHECKED" } else { "NOT_NEEDED" }});
        };
        let span = self.analysis.output_scale.span();
        let width = |width: &crate::stats::transport::Width| {
            json!({
                "state": state(width.state),
                "se": width.standard_error.map(|se| span * se), "df": width.df,
                "interval": width.interval.map(|at| [span * at.low, span * at.high]),
                "min_margin_for_pass": width.min_margin_for_pass.map(|margin| span * margin),
                "detectable_bias_80": width.detectable_bias.map(|bias| span * bias),
                "zero_null_p": width.zero_null_p,
            })
        };
        let audit = &result.audit;
        json!({
            "state": state(audit.state), "margin": result.margin,
            "mean_residual": span * audit.mean, "rows": audit.rows, "prompts": audit.clusters,
            "effective_clusters": audit.effective_clusters,
            "wide": width(&audit.wide), "narrow": width(&audit.narrow),
            "zero_null_p_adjusted": result.zero_null_p_adjusted,
        })
    }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

fn scale(scale: crate::stats::direct::Scale) -> [f64; 2] {
    let (low, high) = scale.ends();
    [low, high]
}

fn tail(tail: &crate::stats::boundary::Tail) -> Value {
    json!({"edge": tail.edge, "labels": tail.labels, "mass": tail.mass, "starved": tail.starved})
}
