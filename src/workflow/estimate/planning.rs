//! Plans from the ledger's own variance: what scores and labels would show, what audits and an iteration need.

use std::collections::BTreeMap;

use clover_event::id::PolicyId;
use clover_event::payload::audit::AuditTerms;
use clover_event::payload::estimated::PlanPurpose;
use clover_event::payload::planning::AuditPlan;
use clover_event::payload::planning::EvaluationPlan;
use clover_event::payload::planning::IterationRows;
use clover_event::payload::planning::PlanRecorded;
use clover_event::payload::planning::Prices;
use clover_event::payload::planning::VarianceSplit;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Micro;
use clover_num::math;
use clover_projection::drifts::usual::USUAL_MARGIN;
use clover_stats::calibrator::CalibratorChoice;
use clover_stats::calibrator::Mode;
use clover_stats::inference;
use clover_stats::oua::Share;
use clover_stats::planner;
use clover_stats::planner::AuditScenario;
use clover_stats::planner::CalibratorError;
use clover_stats::planner::ConfirmTerms;
use clover_stats::planner::Costs;
use clover_stats::planner::PlannedTest;
use clover_stats::planner::Power;
use clover_stats::planner::VarianceModel;
use clover_stats::sample::SampleError;

use crate::analyze;
use crate::estimate::compute::Found;
use crate::estimate::terms;
use crate::estimate::terms::BUILD;
use crate::estimate::terms::count;
use crate::estimate::terms::finite;
use crate::estimate::terms::size;
use crate::estimate::terms::text;

/// Fewest labels of a plan (CJE paper, appendix F).
pub const LABELS_MIN: u64 = 30;
/// Probes of a policy beyond which labels of the calibrator are the better purchase.
const PROBES_MANY: u64 = 2_000;
/// Fold seeds over which the calibrator's variance is averaged: one partition into five folds has four degrees of freedom.
const FOLD_SEEDS: u64 = 20;
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
    #[error("no number of probes up to 100000 gives every audit that power: {0}")]
    NoSize(String),
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
    /// Whether the calibrator's variance is averaged over fold seeds and counts in every size. A plan without it, of an
    /// older program, is computed as that program did.
    pub sturdy: bool,
    /// Whether labels are counted of each policy, whose own ones correct it. A plan without it, of an older program, shares them
    /// among all, as that program did.
    pub each: bool,
}

/// A policy's share of variances, and its calibration variance averaged over fold seeds where that is asked for.
struct Usable {
    policy: usize,
    share: Share,
    calibration: f64,
}

/// Policies whose level is not refused.
fn usable(found: &Found, sturdy: bool) -> Result<Vec<Usable>, PlanError> {
    let of = match &found.analysis.calibration {
        Ok(of) => of,
        Err(thin) => return Err(PlanError::NoVariance(thin.to_string())),
    };
    let policies = found.analysis.policies.iter().enumerate();
    let mut usable: Vec<Usable> = policies
        .filter(|(_, of)| of.support.is_some_and(|support| !support.refuse_level))
        .filter_map(|(policy, of)| {
            let share = of.detail.as_ref()?.share?;
            Some(Usable {
                policy,
                share,
                calibration: share.oua,
            })
        })
        .collect();
    if usable.is_empty() {
        let why = "every level is refused".to_owned();
        return Err(PlanError::NoVariance(why));
    }
    if !sturdy {
        return Ok(usable);
    }
    let mode = match of.calibrator.selected {
        CalibratorChoice::Monotone => Mode::Monotone,
        CalibratorChoice::TwoStage => Mode::TwoStage,
    };
    let mut variances = vec![Vec::new(); usable.len()];
    for further in 1..FOLD_SEEDS {
        let mut request = terms::request(&found.terms);
        request.settings.mode = mode;
        request.fold_seed = request.fold_seed.saturating_add(further);
        let dataset = &found.gathered.dataset;
        let Ok(again) = analyze::analyze(dataset, &found.gathered.prompts, &request) else {
            continue;
        };
        for (variances, of) in variances.iter_mut().zip(&usable) {
            let detail = again.policies[of.policy].detail.as_ref();
            variances.extend(
                detail
                    .and_then(|detail| detail.share)
                    .map(|share| share.oua),
            );
        }
    }
    for (of, mut variances) in usable.iter_mut().zip(variances) {
        variances.push(of.share.oua);
        of.calibration = math::mean(&variances);
    }
    Ok(usable)
}

/// The variance of one score and one label: means over policies whose level is not refused. A policy's sampling variance
/// of its mean reward times its rows, and its calibration variance times all labels, on the unit scale.
fn split(found: &Found, usable: &[Usable], sturdy: bool) -> VarianceSplit {
    let calibration = found.analysis.calibration.as_ref().ok();
    let labels = calibration.map_or(0, |of| of.labels);
    let mean = |of: &dyn Fn(&Usable) -> f64| {
        let values: Vec<f64> = usable.iter().map(of).collect();
        math::mean(&values)
    };
    let per_label = mean(&|of| of.calibration * labels as f64);
    let seeds = usize::try_from(FOLD_SEEDS).unwrap_or(1);
    let (low, high) = planner::variance_interval(per_label, (seeds, folds(found), labels), 0.05);
    let within = |end: f64| sturdy.then(|| finite(end));
    VarianceSplit {
        calibration: finite(per_label),
        calibration_high: within(high),
        calibration_low: within(low),
        evaluation: finite(mean(&|of| of.share.main * of.share.rows as f64)),
        fold_seeds: sturdy.then(|| count(FOLD_SEEDS)),
        labels: size(labels),
        policies: usable.iter().map(|of| found.name(of.policy)).collect(),
        rows: size(usable.iter().map(|of| of.share.rows).sum()),
    }
}

fn folds(found: &Found) -> usize {
    let calibration = found.analysis.calibration.as_ref().ok();
    calibration.map_or(1, |of| of.calibrator.without_fold.len())
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
    let usable = usable(found, ask.sturdy)?;
    let split = split(found, &usable, ask.sturdy);
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
        PlanPurpose::Audit if ask.sturdy => {
            planned.audit = Some(calibrated_audits(found, ask, &usable)?);
        }
        PlanPurpose::Audit => planned.audit = Some(audits(found, ask)?),
        PlanPurpose::Iteration => planned.iteration = Some(iteration(found, ask)?),
    }
    Ok(planned)
}

/// The square-root law. A policy's value is corrected by its own labels, so that scores and labels are bought of each; a plan
/// of an older program buys labels once for all.
fn evaluation(
    found: &Found,
    ask: &Ask,
    split: &VarianceSplit,
) -> Result<EvaluationPlan, PlanError> {
    let prices = ask.prices.ok_or(PlanError::NoPrice)?;
    let policies = ask.policies.max(1) as f64;
    let score = policies * terms::unit(prices.score_micro);
    let sets = if ask.each { policies } else { 1.0 };
    let costs = Costs::new(score, sets * terms::unit(prices.label_micro))?;
    let in_all = |labels: u64| {
        let sets = if ask.each { ask.policies.max(1) } else { 1 };
        count(labels.saturating_mul(sets))
    };
    let model = VarianceModel::new(split.evaluation.value(), split.calibration.value())?;
    let power = Power::new(terms::unit(ask.power), terms::unit(found.terms.alpha_micro))?;
    let span = found.analysis.output_scale.span();
    let asked = terms::unit(ask.asked);
    let planned = |model: &VarianceModel| {
        if ask.purpose == PlanPurpose::Budget {
            planner::plan_evaluation(asked, model, &costs, LABELS_MIN, power)
        } else {
            planner::plan_for_mde(asked / span, model, &costs, LABELS_MIN, power)
        }
    };
    let plan = planned(&model)?;
    let at = |end: Option<Finite>| -> Result<Option<VarianceModel>, SampleError> {
        let model = |end: Finite| VarianceModel::new(split.evaluation.value(), end.value());
        end.map(model).transpose()
    };
    let (low, high) = (at(split.calibration_low)?, at(split.calibration_high)?);
    let labels = |model: Option<VarianceModel>| -> Result<Option<Count>, SampleError> {
        let plan = model.map(|model| planned(&model)).transpose()?;
        Ok(plan.map(|plan| in_all(plan.labels)))
    };
    let worst = |model: VarianceModel| {
        let error = model
            .variance(plan.scores as f64, plan.labels as f64)
            .sqrt();
        finite(span * planner::mde(error, power))
    };
    Ok(EvaluationPlan {
        cost: finite(plan.cost),
        labels: in_all(plan.labels),
        labels_each: ask.each.then(|| count(plan.labels)),
        labels_high: labels(high)?,
        labels_low: labels(low)?,
        mde: finite(span * plan.mde),
        mde_high: high.map(worst),
        scores: count(plan.scores),
        se: finite(span * plan.standard_error),
    })
}

/// What scores and labels at hand detect, and how many more labels the planned effect takes beside these scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtHand {
    /// Scores of each policy, on average.
    pub scores: u64,
    /// Labels of each policy that has any, on average; of all where a plan shares them.
    pub labels: u64,
    /// The effect that is planned for, in label units.
    pub effect: f64,
    /// The smallest difference of two policies that they detect with the plan's power, in label units.
    pub detects: f64,
    /// Labels beyond those at hand that detect the planned effect; 0 where these do, `None` where no number does beside so few
    /// scores.
    pub more: Option<u64>,
    /// Share of the variance of one policy's mean that comes of its labels, from 0 to 1.
    pub label_share: f64,
}

/// What is at hand, by the variance of a plan.
///
/// # Errors
/// [`PlanError::Refused`] for a variance or a power that no plan has.
pub fn at_hand(found: &Found, planned: &PlanRecorded) -> Result<AtHand, PlanError> {
    let split = &planned.split;
    let is_each = planned
        .evaluation
        .is_some_and(|of| of.labels_each.is_some());
    let policies = split.policies.len().max(1) as u64;
    let scores = split.rows.value() / policies;
    let labelled = found.gathered.dataset.policies.iter();
    let labelled = labelled.filter(|of| of.labels.iter().any(Option::is_some));
    let sets = if is_each {
        labelled.count().max(1) as u64
    } else {
        1
    };
    let labels = split.labels.value() / sets;
    let (of_scores, of_labels) = (
        split.evaluation.value() / scores.max(1) as f64,
        split.calibration.value() / labels.max(1) as f64,
    );
    let power = Power::new(
        terms::unit(planned.power_micro),
        terms::unit(planned.terms.alpha_micro),
    )?;
    let span = found.analysis.output_scale.span();
    let wanted = match planned.purpose {
        PlanPurpose::Labels => terms::unit(planned.asked_micro),
        _ => planned.evaluation.map_or(0.0, |of| of.mde.value()),
    };
    // The effect is as many standard errors as that of an error of 1.
    let error = wanted / span / planner::mde(1.0, power);
    let left = error * error - of_scores;
    let needed = (left > 0.0).then(|| (split.calibration.value() / left).ceil());
    let more = needed.map(|needed| rows(needed).value().saturating_sub(labels));
    Ok(AtHand {
        scores,
        labels,
        effect: wanted,
        detects: span * planner::mde((of_scores + of_labels).sqrt(), power),
        more,
        label_share: of_labels / (of_scores + of_labels),
    })
}

/// Probes with which every audit passes when nothing is wrong, of the policy whose calibrator errs most: its error widens
/// the interval and moves the mean residual.
fn calibrated_audits(found: &Found, ask: &Ask, usable: &[Usable]) -> Result<AuditPlan, PlanError> {
    let (scenario, error) = foreseen(found, usable, ask.asked);
    let (residual_sd, span) = (scenario.residual_sd, found.analysis.output_scale.span());
    let audits = ask.policies.clamp(1, 1_000) as f64;
    let usual = planner::AuditTerms::new(1.0, 0);
    // Power of all audits together, by a union bound.
    let terms = (
        terms::unit(found.terms.alpha_micro) / audits,
        1.0 - (1.0 - terms::unit(ask.power)) / audits,
    );
    let searched = (usual.clusters_min, usual.clusters_max);
    let Some((clusters, power)) =
        planner::plan_calibrated_audit(&scenario, terms, searched, &error)?
    else {
        let factor = planner::labels_factor(&scenario, terms, PROBES_MANY, &error)?;
        return Err(PlanError::NoSize(missing(found, &error, span, factor)));
    };
    Ok(AuditPlan {
        calibration_sd: Some(finite(span * error.bias.sqrt())),
        clusters: count(clusters),
        pass_probability: finite(power),
        residual_sd: finite(span * residual_sd),
        width_se: Some(finite(span * error.width.sqrt())),
    })
}

/// An audit of a calibrator that holds, and how far that calibrator errs for the policy that it errs most for.
fn foreseen(found: &Found, usable: &[Usable], margin: Micro) -> (AuditScenario, CalibratorError) {
    let most = |of: &dyn Fn(&Usable) -> f64| usable.iter().map(of).fold(0.0, f64::max);
    let error = CalibratorError {
        width: most(&|of| of.share.oua),
        df: (folds(found) as f64 - 1.0).max(1.0),
        bias: most(&|of| of.calibration),
    };
    let scenario = AuditScenario {
        residual_sd: inference::standard_deviation(&residuals(found)).unwrap_or(0.0),
        margin: terms::unit(margin) / found.analysis.output_scale.span(),
        bias: 0.0,
        available: None,
        labels_per_cluster: 1.0,
    };
    (scenario, error)
}

/// Probability with which each audit passes where nothing is wrong, of policies with so many probes, one a cluster: by the
/// computation that plans audits.
///
/// # Errors
/// [`PlanError::NoVariance`] without a calibrator or a policy to learn from.
pub fn audits_pass(
    found: &Found,
    of: &AuditTerms,
    probes: &BTreeMap<PolicyId, u64>,
) -> Result<BTreeMap<PolicyId, f64>, PlanError> {
    let usable = usable(found, true)?;
    let usual = || Micro::new(USUAL_MARGIN).unwrap_or_default();
    let margin = of.margin_micro.unwrap_or_else(usual);
    let (scenario, error) = foreseen(found, &usable, margin);
    let alpha = terms::unit(of.alpha_micro) / of.family_size.value().max(1) as f64;
    let each = probes.iter().map(|(policy, clusters)| {
        let passes = if *clusters < of.clusters_min.value() {
            0.0
        } else {
            planner::calibrated_pass_probability(*clusters, &scenario, alpha, &error)?
        };
        Ok((policy.clone(), passes))
    });
    each.collect()
}

/// What would help where no number of probes does.
fn missing(found: &Found, error: &CalibratorError, span: f64, factor: Option<f64>) -> String {
    let calibration = found.analysis.calibration.as_ref().ok();
    let labels = calibration.map_or(0, |of| of.labels);
    let (bias, width) = (span * error.bias.sqrt(), span * error.width.sqrt());
    let cause = format!(
        "from {labels} labels the calibrator itself is off by {bias:.4} and adds {width:.4} to the error of the audit"
    );
    match factor {
        Some(times) if times > 1.0 => format!(
            "{cause}; calibrate on about {:.0} labels first, or ask for a wider margin",
            times * labels as f64
        ),
        _ => format!("{cause}; ask for a wider margin"),
    }
}

/// The same of a calibrator without error, as programs that knew no other planned it.
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
    let mut audit = planner::AuditTerms::new(price, 0);
    audit.alpha = terms::unit(found.terms.alpha_micro);
    audit.power = terms::unit(ask.power);
    let policies = usize::try_from(ask.policies.clamp(1, 1_000)).unwrap_or(1);
    let plan = planner::plan_transport_audits(&vec![scenario; policies], &audit)?;
    let first = plan.plans.first().and_then(|of| of.clusters.zip(of.power));
    let none = || PlanError::NoSize("ask for a wider margin".to_owned());
    let (clusters, power) = first.ok_or_else(none)?;
    Ok(AuditPlan {
        calibration_sd: None,
        clusters: count(clusters),
        pass_probability: finite(power),
        residual_sd: finite(span * residual_sd),
        width_se: None,
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
    let betting = ConfirmTerms {
        test: PlannedTest::Betting,
        effect,
        deviation: sd,
        eta: 0.0,
        level: alpha,
    };
    let betting = ask.sturdy.then(|| betting.rows(power).ok().flatten());
    Ok(IterationRows {
        betting_rows: betting.flatten().map(count),
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
fn rows(value: f64) -> Count {
    count(value.clamp(0.0, COUNT_MAX) as u64)
}
