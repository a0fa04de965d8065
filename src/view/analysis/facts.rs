//! The facts of an analysis of files.

use serde::Serialize;

use crate::stats::boundary;
use crate::stats::boundary::Card;
use crate::stats::direct::Scale;
use crate::stats::ranking::RankInterval;
use crate::stats::transport::Width;
use crate::view::analysis::AnalysisShown;
use crate::view::analysis::EXPLORATORY;
use crate::view::analysis::interval;
use crate::view::analysis::is_withheld;
use crate::view::analysis::level;
use crate::view::analysis::se;
use crate::view::analysis::state;
use crate::view::answer::BestPolicy;
use crate::view::values::Ends;
use crate::view::values::LabelsAlone;
use crate::view::values::Pair;
use crate::view::values::PairNumbers;
use crate::view::values::WeightFacts;
use crate::view::values::ends;
use crate::view::values::rank_ends;
use crate::workflow::analyze::Calibration;
use crate::workflow::analyze::PolicyResult;
use crate::workflow::analyze::Status;

/// Policy values from files of judge-scored responses. Nothing of it is on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnalysisFacts {
    /// Which policy is best.
    pub answer: BestPolicy,
    /// What stands on record of it: nothing, in words.
    pub record: &'static str,
    /// Where the responses are.
    pub source: String,
    /// One less the level of intervals.
    pub alpha: f64,
    /// How intervals were made: `t` or `percentile`.
    pub interval: &'static str,
    /// The bootstrap; `null` for t intervals.
    pub bootstrap: Option<Bootstrap>,
    /// Covariates that were asked for beside the score.
    pub covariates: Vec<String>,
    /// The scales.
    pub scales: Scales,
    /// Prompts over all policies.
    pub prompts: u64,
    /// The calibrator, or why there is none.
    pub calibration: CalibrationFacts,
    /// Policies in order of their names.
    pub policies: Vec<PolicyAnalysis>,
    /// Every pair of policies that has an interval.
    pub differences: Vec<Pair>,
}

/// How a bootstrap was drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bootstrap {
    /// Refits.
    pub replicates: u64,
    /// Their seed.
    pub seed: u64,
    /// How prompts are weighted.
    pub weights: &'static str,
    /// Whose random numbers: `chacha` or `numpy`.
    pub draws: String,
}

/// Ends of scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scales {
    /// Of judge scores; `null` for scores that are all one value outside [0, 1].
    pub judge: Option<Ends>,
    /// Of labels; `null` likewise.
    pub label: Option<Ends>,
    /// Of everything that is reported.
    pub output: Ends,
}

/// The calibrator, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum CalibrationFacts {
    /// There is one.
    Fitted(FittedFacts),
    /// There is none.
    Unfitted(UnfittedFacts),
}

/// Why there is no calibrator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnfittedFacts {
    /// False.
    pub fitted: bool,
    /// Why.
    pub reason: String,
}

/// A calibrator. Errors are in label units from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FittedFacts {
    /// True.
    pub fitted: bool,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// Which kind was fitted.
    pub mode: &'static str,
    /// Labelled rows that it was fitted on.
    pub labels: u64,
    /// Their prompts.
    pub prompts: u64,
    /// Folds.
    pub folds: u64,
    /// Whether the covariates entered the fit.
    pub uses_covariates: bool,
    /// Folds that were fitted without them.
    pub folds_without_covariates: u64,
    /// Root mean squared error on its own labels.
    pub rmse: f64,
    /// The same out of fold.
    pub oof_rmse: f64,
    /// Share of predictions within 0.1 of the label.
    pub within_tenth: f64,
    /// The same out of fold.
    pub oof_within_tenth: f64,
    /// Least and largest labelled score, as recorded.
    pub score_range: Ends,
    /// Slope at the low end of the labelled scores; `null` where it has no width.
    pub slope_low: Option<f64>,
    /// Slope at the high end.
    pub slope_high: Option<f64>,
}

/// One policy. Values are in label units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyAnalysis {
    /// Its name.
    pub policy: String,
    /// Best and worst place that it may take, from 1; `null` where it has no rank.
    pub rank: Option<[u64; 2]>,
    /// Its level; nothing of it stands here where it is withheld.
    #[serde(flatten)]
    pub level_numbers: Option<LevelNumbers>,
    /// The level that is withheld: for whoever computes it again, and no result.
    pub withheld: Option<LevelNumbers>,
    /// Why there is no interval, in a word.
    pub no_interval: Option<&'static str>,
    /// How the interval came about: `t`, `percentile` or `bounded`.
    pub interval_method: Option<&'static str>,
    /// Labelled prompts of its own with another label than the most common one.
    pub off_mode: u64,
    /// Share of the variance that is the calibrator's, from 0 to 1.
    pub calibration_share: Option<f64>,
    /// Variance of the calibrator.
    pub calibration_variance: Option<f64>,
    /// How labels and calibrator make the value.
    pub route: &'static str,
    /// Weight on the prediction inside the correction.
    pub weight: Option<WeightFacts>,
    /// Responses.
    pub rows: u64,
    /// Prompts.
    pub prompts: u64,
    /// Responses with a label.
    pub labels: u64,
    /// Weighted share of responses with a label, from 0 to 1.
    pub labelled_share: f64,
    /// What its own labels say without a judge.
    pub labels_only: Option<LabelsAlone>,
    /// `GOOD`, `WARNING` or `CRITICAL`.
    pub status: &'static str,
    /// What may be said of its level, in words.
    pub level: &'static str,
    /// How far scores reach past the labelled ones.
    pub boundary: Option<BoundaryFacts>,
    /// Whether a level may be claimed.
    pub support: Option<SupportFacts>,
    /// What monotonicity alone says, where a level is refused.
    pub bounds: Option<Ends>,
    /// Whether calibration holds for it on held-out labels.
    pub transport: TransportFacts,
}

/// A level. Values are in label units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LevelNumbers {
    /// Its value.
    pub estimate: f64,
    /// Standard error; `null` where there is none.
    pub se: Option<f64>,
    /// The interval in force, not clipped to the scale; `null` where there is none.
    pub interval: Option<Ends>,
    /// The same, clipped.
    pub interval_clipped: Option<Ends>,
    /// Degrees of freedom.
    pub df: Option<f64>,
    /// Where they come from.
    pub df_method: Option<&'static str>,
    /// Mean calibrated reward.
    pub plug_in: f64,
    /// Value less mean calibrated reward.
    pub correction: f64,
}

/// How far scores reach past the labelled ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BoundaryFacts {
    /// In a word.
    pub status: &'static str,
    /// Share of scores outside the labelled ones, from 0 to 1.
    pub out_of_range: f64,
    /// Share of rewards at the ends of the calibrated ones, from 0 to 1.
    pub saturation: f64,
    /// Width that monotonicity leaves open; `null` where it is not known.
    pub partial_id_width: Option<f64>,
}

/// Whether labels support a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SupportFacts {
    /// Whether the level is refused.
    pub refuse_level: bool,
    /// Share of scores outside the labelled ones, from 0 to 1.
    pub out_of_range: f64,
    /// Scores at the low end.
    pub low_tail: TailFacts,
    /// Scores at the high end.
    pub high_tail: TailFacts,
}

/// Scores at one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TailFacts {
    /// Where it begins, on the unit scale.
    pub edge: f64,
    /// Labels in it.
    pub labels: u64,
    /// Share of scores in it, from 0 to 1.
    pub mass: f64,
    /// Whether labels are too few for its scores.
    pub starved: bool,
}

/// An audit of transport, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TransportFacts {
    /// There is one.
    Audited(Box<AuditedFacts>),
    /// There is none.
    Unaudited(UnauditedFacts),
}

/// No audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnauditedFacts {
    /// `NOT CHECKED`, or `NOT NEEDED` where it has labels of its own.
    pub state: &'static str,
}

/// An audit of transport. Residuals are in label units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditedFacts {
    /// `PASS`, `FAIL`, `INCONCLUSIVE`, `NOT GRADED` or `NOT CHECKED`.
    pub state: &'static str,
    /// Largest acceptable absolute mean residual; `null` where none was given.
    pub margin: Option<f64>,
    /// Mean residual.
    pub mean_residual: f64,
    /// Probes.
    pub rows: u64,
    /// Their prompts.
    pub prompts: u64,
    /// Kish-effective prompts.
    pub effective_clusters: f64,
    /// With the calibrator's own variance.
    pub wide: WidthFacts,
    /// With the variance of the residuals alone.
    pub narrow: WidthFacts,
    /// p that the mean residual is 0 within the family of probes, from 0 to 1.
    pub zero_null_p_adjusted: Option<f64>,
}

/// One width of an audit. Residuals are in label units; what cannot be computed is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WidthFacts {
    /// The state that it gives.
    pub state: &'static str,
    /// Standard error.
    pub se: Option<f64>,
    /// Degrees of freedom.
    pub df: f64,
    /// The interval.
    pub interval: Option<Ends>,
    /// Smallest margin under which it would pass.
    pub min_margin_for_pass: Option<f64>,
    /// Bias that is seen with probability 0.80.
    pub detectable_bias_80: Option<f64>,
    /// Two-sided p that the mean residual is 0, from 0 to 1.
    pub zero_null_p: Option<f64>,
}

impl AnalysisShown<'_> {
    /// Everything, for programs.
    pub(super) fn facts(&self) -> AnalysisFacts {
        let found = self.analysis;
        let policies = found.policies.iter().zip(self.ranks());
        let policies = policies.map(|(of, rank)| self.policy_facts(of, rank));
        AnalysisFacts {
            answer: self.answer(),
            record: EXPLORATORY,
            source: self.source.clone(),
            alpha: found.alpha,
            interval: match self.replicates {
                Some(_) => "percentile",
                None => "t",
            },
            bootstrap: self.replicates.map(|replicates| Bootstrap {
                replicates: replicates as u64,
                seed: self.seed,
                weights: "exponential",
                draws: self.draws.to_owned(),
            }),
            covariates: self.covariates.to_vec(),
            scales: Scales {
                judge: found.judge_scale.map(scale),
                label: found.label_scale.map(scale),
                output: scale(found.output_scale),
            },
            prompts: found.prompts as u64,
            calibration: match &found.calibration {
                Ok(of) => CalibrationFacts::Fitted(fitted(of)),
                Err(thin) => CalibrationFacts::Unfitted(UnfittedFacts {
                    fitted: false,
                    reason: thin.to_string(),
                }),
            },
            policies: policies.collect(),
            differences: self.pair_facts(),
        }
    }

    fn pair_facts(&self) -> Vec<Pair> {
        let found = self.analysis;
        let pairs = found.differences.iter().map(|pair| {
            let withheld = self.gives_away(pair);
            let numbers = PairNumbers {
                difference: pair.difference,
                se: pair.se,
                df: pair.df,
                interval: ends(pair.interval),
                p: pair.p,
                p_adjusted: pair.p_adjusted,
                conservative_interval: pair.widest().map(ends),
            };
            Pair {
                first: found.policies[pair.first].name.clone(),
                second: found.policies[pair.second].name.clone(),
                numbers: (!withheld).then(|| numbers.clone()),
                withheld: withheld.then_some(numbers),
                basis: pair.basis.name().to_owned(),
                reading: self.reading(pair),
            }
        });
        pairs.collect()
    }

    fn policy_facts(&self, policy: &PolicyResult, rank: Option<RankInterval>) -> PolicyAnalysis {
        let (low, high) = self.analysis.output_scale.ends();
        let spread = policy.spread.ok();
        let alone = policy.labels_alone();
        let withheld = is_withheld(policy);
        let numbers = LevelNumbers {
            estimate: policy.estimate,
            se: se(policy),
            interval: interval(policy).map(ends),
            interval_clipped: interval(policy)
                .map(|of| Ends([of.low.clamp(low, high), of.high.clamp(low, high)])),
            df: spread.map(|spread| spread.df),
            df_method: spread.map(|spread| spread.df_method.name()),
            plug_in: policy.plug_in,
            correction: policy.correction,
        };
        PolicyAnalysis {
            policy: policy.name.clone(),
            rank: rank_ends(rank),
            level_numbers: (!withheld).then(|| numbers.clone()),
            withheld: withheld.then_some(numbers),
            no_interval: policy.interval().err(),
            interval_method: policy.interval().ok().map(|(_, method)| method.name()),
            off_mode: policy.off_mode as u64,
            calibration_share: spread.map(|spread| spread.calibration_share),
            calibration_variance: policy.calibration_variance,
            route: policy.route.name(),
            weight: policy.weight.map(WeightFacts::from),
            rows: policy.rows as u64,
            prompts: policy.clusters as u64,
            labels: policy.labelled as u64,
            labelled_share: policy.labelled_share,
            labels_only: alone.map(|labels| LabelsAlone {
                mean: labels.mean,
                interval: labels.interval.map(ends),
            }),
            status: Status::of(policy).name(),
            level: level(policy),
            boundary: policy.card.map(boundary),
            support: policy.support.map(|support| SupportFacts {
                refuse_level: support.refuse_level,
                out_of_range: support.out_of_range,
                low_tail: tail(&support.low),
                high_tail: tail(&support.high),
            }),
            bounds: policy.bounds.map(ends),
            transport: self.transport_facts(policy),
        }
    }

    fn transport_facts(&self, policy: &PolicyResult) -> TransportFacts {
        let Some(result) = &policy.transport else {
            let borrows = policy.borrows();
            let state = if borrows { "NOT CHECKED" } else { "NOT NEEDED" };
            return TransportFacts::Unaudited(UnauditedFacts { state });
        };
        let span = self.analysis.output_scale.span();
        let width = |of: &Width| WidthFacts {
            state: state(of.state),
            se: of.standard_error.map(|se| span * se),
            df: of.df,
            interval: of.interval.map(|at| Ends([span * at.low, span * at.high])),
            min_margin_for_pass: of.min_margin_for_pass.map(|margin| span * margin),
            detectable_bias_80: of.detectable_bias.map(|bias| span * bias),
            zero_null_p: of.zero_null_p,
        };
        let audit = &result.audit;
        TransportFacts::Audited(Box::new(AuditedFacts {
            state: state(audit.state),
            margin: result.margin,
            mean_residual: span * audit.mean,
            rows: audit.rows as u64,
            prompts: audit.clusters as u64,
            effective_clusters: audit.effective_clusters,
            wide: width(&audit.wide),
            narrow: width(&audit.narrow),
            zero_null_p_adjusted: result.zero_null_p_adjusted,
        }))
    }
}

fn fitted(of: &Calibration) -> FittedFacts {
    let fitted = &of.calibrator;
    let quality = &fitted.quality;
    FittedFacts {
        fitted: true,
        algorithm: fitted.settings.algorithm.name(),
        mode: fitted.selected.name(),
        labels: of.labels as u64,
        prompts: of.clusters as u64,
        folds: of.folds as u64,
        uses_covariates: fitted.uses_covariates,
        folds_without_covariates: fitted.folds_without_covariates as u64,
        rmse: quality.rmse,
        oof_rmse: quality.oof_rmse,
        within_tenth: quality.within_tenth,
        oof_within_tenth: quality.oof_within_tenth,
        score_range: Ends([of.score_range.0, of.score_range.1]),
        slope_low: of.slopes.low,
        slope_high: of.slopes.high,
    }
}

fn scale(scale: Scale) -> Ends {
    let (low, high) = scale.ends();
    Ends([low, high])
}

fn boundary(card: Card) -> BoundaryFacts {
    BoundaryFacts {
        status: card.status.name(),
        out_of_range: card.out_of_range,
        saturation: card.saturation,
        partial_id_width: card.partial_id_width,
    }
}

fn tail(tail: &boundary::TailCoverage) -> TailFacts {
    TailFacts {
        edge: tail.edge,
        labels: tail.labels as u64,
        mass: tail.mass,
        starved: tail.starved,
    }
}
