//! Plans from the ledger's own variance: what scores and labels would show, what audits and an iteration need.

use crate::event::payload::estimated::PlanPurpose;
use crate::event::payload::planning::AuditPlan;
use crate::event::payload::planning::EvaluationPlan;
use crate::event::payload::planning::IterationRows;
use crate::event::payload::planning::PlanRecorded;
use crate::event::payload::planning::Prices;
use crate::event::payload::planning::VarianceSplit;
use crate::num::Micro;
use crate::num::math;
use crate::stats::inference;
use crate::stats::oua::Share;
use crate::stats::planner;
use crate::stats::planner::AuditScenario;
use crate::stats::planner::AuditTerms;
use crate::stats::planner::Costs;
use crate::stats::planner::Power;
use crate::stats::planner::VarianceModel;
use crate::stats::sample::SampleError;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::terms;
use crate::workflow::estimate::terms::BUILD;
use crate::workflow::estimate::terms::count;
use crate::workflow::estimate::terms::finite;
use crate::workflow::estimate::terms::size;
use crate::workflow::estimate::terms::text;

/// Fewest labels of a plan (CJE paper, appendix F).
pub const LABELS_MIN: u64 = 30;
/// Level of a green slice, and its tolerance as a share of the effect, where no manifest says so.
const GREEN_LEVEL: f64 = 0.10;
/// Largest count of a plan.
const COUNT_MAX: f64 = 9_007_199_254_740_991.0;

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There is no calibrator, or no policy whose level may be claimed, to learn the variance from.
    #[error("no policy gives a variance to plan from: {0}")]
    NoVariance(String),
    /// Scores and labels have no price.
    #[error("a plan of scores and labels needs the price of each")]
    NoPrice,
    /// No number of clusters gives the audit its power.
    #[error("no number of probes up to 100000 gives every audit that power")]
    NoSize,
    /// A number outside its range.
    #[error(transparent)]
    Refused(#[from] SampleError),
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// What the plan is for.
    pub purpose: PlanPurpose,
    /// An effect, money, a margin, or an improvement of the mean squared error.
    pub asked: Micro,
    /// Power.
    pub power: Micro,
    /// Prices.
    pub prices: Option<Prices>,
    /// Policies that share the labels, or that are audited.
    pub policies: u64,
}

/// The variance of one score and one label: means over policies whose level is not refused. A policy's sampling variance
/// of its mean reward times its rows, and its calibration variance times all labels, on the unit scale.
fn split(found: &Found) -> Result<VarianceSplit, PlanError> {
    let labels = match &found.analysis.calibration {
        Ok(of) => of.labels,
        Err(thin) => return Err(PlanError::NoVariance(thin.to_string())),
    };
    let policies = found.analysis.policies.iter().enumerate();
    let usable: Vec<(usize, Share)> = policies
        .filter(|(_, of)| of.support.is_some_and(|support| !support.refuse_level))
        .filter_map(|(at, of)| Some((at, of.detail.as_ref()?.share?)))
        .collect();
    if usable.is_empty() {
        let why = "every level is refused".to_owned();
        return Err(PlanError::NoVariance(why));
    }
    let mean = |of: &dyn Fn(&Share) -> f64| {
        let values: Vec<f64> = usable.iter().map(|(_, share)| of(share)).collect();
        math::mean(&values)
    };
    Ok(VarianceSplit {
        calibration: finite(mean(&|share| share.oua * labels as f64)),
        evaluation: finite(mean(&|share| share.main * share.rows as f64)),
        labels: size(labels),
        policies: usable.iter().map(|(at, _)| found.name(*at)).collect(),
        rows: size(usable.iter().map(|(_, share)| share.rows).sum()),
    })
}

/// Out-of-fold residuals of the labelled rows, on the unit scale.
fn residuals(found: &Found) -> Vec<f64> {
    let Ok(of) = &found.analysis.calibration else {
        return Vec::new();
    };
    let labels = found.gathered.dataset.policies.iter();
    let labels = labels.flat_map(|policy| policy.labels.iter().flatten());
    let unit = |label: f64| {
        let scale = found.analysis.label_scale;
        scale.map_or(label, |scale| (label - scale.ends().0) / scale.span())
    };
    let pairs = labels.zip(&of.calibrator.out_of_fold);
    pairs.map(|(label, seen)| unit(*label) - seen).collect()
}

/// Plans.
///
/// # Errors
/// [`PlanError`].
pub fn plan(found: &Found, ask: &Ask) -> Result<PlanRecorded, PlanError> {
    let split = split(found)?;
    let mut planned = PlanRecorded {
        audit: None,
        asked_micro: ask.asked,
        build: text(BUILD),
        evaluation: None,
        iteration: None,
        policies: count(ask.policies),
        power_micro: ask.power,
        prices: ask.prices,
        purpose: ask.purpose,
        split,
        terms: found.terms.clone(),
        through_seq: count(found.gathered.newest),
    };
    match ask.purpose {
        PlanPurpose::Labels | PlanPurpose::Budget => {
            planned.evaluation = Some(evaluation(found, ask, &planned.split)?);
        }
        PlanPurpose::Audit => planned.audit = Some(audits(found, ask)?),
        PlanPurpose::Iteration => planned.iteration = Some(iteration(found, ask)?),
    }
    Ok(planned)
}

/// The square-root law: labels are bought once for all policies, scores for each.
fn evaluation(
    found: &Found,
    ask: &Ask,
    split: &VarianceSplit,
) -> Result<EvaluationPlan, PlanError> {
    let prices = ask.prices.ok_or(PlanError::NoPrice)?;
    let policies = ask.policies.max(1) as f64;
    let score = policies * terms::unit(prices.score_micro);
    let costs = Costs::new(score, terms::unit(prices.label_micro))?;
    let model = VarianceModel::new(split.evaluation.value(), split.calibration.value())?;
    let power = Power::new(terms::unit(ask.power), terms::unit(found.terms.alpha_micro))?;
    let span = found.analysis.output_scale.span();
    let asked = terms::unit(ask.asked);
    let plan = if ask.purpose == PlanPurpose::Budget {
        planner::plan_evaluation(asked, &model, &costs, LABELS_MIN, power)?
    } else {
        planner::plan_for_mde(asked / span, &model, &costs, LABELS_MIN, power)?
    };
    Ok(EvaluationPlan {
        cost: finite(plan.cost),
        labels: count(plan.labels),
        mde: finite(span * plan.mde),
        scores: count(plan.scores),
        se: finite(span * plan.standard_error),
    })
}

/// Probes with which every audit passes when nothing is wrong.
fn audits(found: &Found, ask: &Ask) -> Result<AuditPlan, PlanError> {
    let residual_sd = inference::standard_deviation(&residuals(found)).unwrap_or(0.0);
    let span = found.analysis.output_scale.span();
    let scenario = AuditScenario {
        residual_sd,
        margin: terms::unit(ask.asked) / span,
        bias: 0.0,
        available: None,
        labels_per_cluster: 1.0,
    };
    let price = ask
        .prices
        .map_or(1.0, |prices| terms::unit(prices.label_micro));
    let mut audit = AuditTerms::new(price, 0);
    audit.alpha = terms::unit(found.terms.alpha_micro);
    audit.power = terms::unit(ask.power);
    let policies = usize::try_from(ask.policies.clamp(1, 1_000)).unwrap_or(1);
    let plan = planner::plan_transport_audits(&vec![scenario; policies], &audit)?;
    let first = plan.plans.first().and_then(|of| of.clusters.zip(of.power));
    let (clusters, power) = first.ok_or(PlanError::NoSize)?;
    Ok(AuditPlan {
        clusters: count(clusters),
        pass_probability: finite(power),
        residual_sd: finite(span * residual_sd),
    })
}

/// Rows with which an improvement of the mean squared error is confirmed. The standard deviation of the paired
/// difference is taken to be that of the squared out-of-fold errors: no difference of two calibrators of the same rows
/// varies much more.
fn iteration(found: &Found, ask: &Ask) -> Result<IterationRows, PlanError> {
    let squared: Vec<f64> = residuals(found).iter().map(|r| r * r).collect();
    let sd = inference::standard_deviation(&squared).unwrap_or(0.0);
    let (effect, power) = (terms::unit(ask.asked), terms::unit(ask.power));
    let alpha = terms::unit(found.terms.alpha_micro);
    let confirm = planner::confirm_rows(sd, effect, alpha, power)?;
    let green = planner::green_rows(sd, effect, GREEN_LEVEL, power, 1)?;
    Ok(IterationRows {
        confirm_rows: rows(confirm),
        difference_sd: finite(sd),
        effect: finite(effect),
        green_rows: rows(green),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to exact counts"
)]
fn rows(value: f64) -> crate::num::Count {
    count(value.clamp(0.0, COUNT_MAX) as u64)
}
