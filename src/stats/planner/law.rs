//! The square-root law and the integer plans it gives.

use crate::distribution;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use clover_num::math;

/// Plan costs above the target MDE that are still accepted, as a factor.
const MDE_SLACK: f64 = 1.02;
/// Growths of a budget before the last plan is taken as it is.
const GROWTHS_MAX: usize = 50;
/// Sum of the two roots below which the law has no direction.
const FLAT: f64 = 1e-10;
/// Largest count of a plan: counts stay exact.
const COUNT_MAX: f64 = 9_007_199_254_740_991.0;

/// Prices of a judge score and of a label, above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    score: f64,
    label: f64,
}

impl Costs {
    /// Checks prices.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless both are finite and above 0.
    pub fn new(score: f64, label: f64) -> Result<Self, SampleError> {
        let priced = |price: f64| price.is_finite() && price > 0.0;
        if priced(score) && priced(label) {
            return Ok(Self { score, label });
        }
        Err(SampleError::Parameter {
            name: "costs",
            expected: "finite prices above 0",
        })
    }

    /// Price of a judge score.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Price of a label.
    pub fn label(&self) -> f64 {
        self.label
    }
}

/// `Var(n, m) = sigma2_eval / n + sigma2_cal / m`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VarianceModel {
    evaluation: f64,
    calibration: f64,
}

impl VarianceModel {
    /// Checks the two components.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless both are finite, at least 0, and one is above it.
    pub fn new(evaluation: f64, calibration: f64) -> Result<Self, SampleError> {
        let legal = |variance: f64| variance.is_finite() && variance >= 0.0;
        if legal(evaluation) && legal(calibration) && evaluation + calibration > 0.0 {
            return Ok(Self {
                evaluation,
                calibration,
            });
        }
        Err(SampleError::Parameter {
            name: "variance model",
            expected: "two finite components of at least 0, not both 0",
        })
    }

    /// `sigma2_eval`.
    pub fn evaluation(&self) -> f64 {
        self.evaluation
    }

    /// `sigma2_cal`.
    pub fn calibration(&self) -> f64 {
        self.calibration
    }

    /// Variance of n scores and m labels.
    pub fn variance(&self, scores: f64, labels: f64) -> f64 {
        self.evaluation / scores + self.calibration / labels
    }
}

/// Power and two-sided level of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    power: f64,
    alpha: f64,
}

impl Power {
    /// Checks power and level.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless both lie in (0, 1).
    pub fn new(power: f64, alpha: f64) -> Result<Self, SampleError> {
        let inside = |p: f64| p > 0.0 && p < 1.0;
        if inside(power) && inside(alpha) {
            return Ok(Self { power, alpha });
        }
        Err(SampleError::Parameter {
            name: "power or alpha",
            expected: "numbers in (0, 1)",
        })
    }

    /// z of the power plus z of the level.
    fn critical(self) -> f64 {
        distribution::normal_quantile(1.0 - 0.5 * self.alpha)
            + distribution::normal_quantile(self.power)
    }
}

/// Minimum detectable effect between two independent policies of the same standard error:
/// `(z_power + z_{1 - alpha/2}) sqrt(2) SE`.
pub fn mde(standard_error: f64, power: Power) -> f64 {
    power.critical() * std::f64::consts::SQRT_2 * standard_error
}

/// The unconstrained optimum of a budget, real-valued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetOptimum {
    /// `n* = B sqrt(sigma2_eval / cS) / D`, `D = sqrt(cS sigma2_eval) + sqrt(cY sigma2_cal)`.
    pub scores: f64,
    /// `m* = B sqrt(sigma2_cal / cY) / D`.
    pub labels: f64,
    /// `m* / n* = sqrt(cS / cY) sqrt(sigma2_cal / sigma2_eval)`; `None` without evaluation variance.
    pub ratio: Option<f64>,
}

/// The square-root law (the CJE paper, proposition 7).
pub fn square_root_law(budget: f64, model: &VarianceModel, costs: &Costs) -> BudgetOptimum {
    let (evaluation, calibration) = (model.evaluation, model.calibration);
    let roots = (costs.score * evaluation).sqrt() + (costs.label * calibration).sqrt();
    let ratio = (costs.score / costs.label).sqrt() * (calibration / evaluation).sqrt();
    BudgetOptimum {
        scores: budget * (evaluation / costs.score).sqrt() / roots,
        labels: budget * (calibration / costs.label).sqrt() / roots,
        ratio: ratio.is_finite().then_some(ratio),
    }
}

/// An integer plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Rows to score, n.
    pub scores: u64,
    /// Rows to label, m <= n.
    pub labels: u64,
    /// `cS n + cY m`.
    pub cost: f64,
    /// Standard error of one policy's value.
    pub standard_error: f64,
    /// Standard error of a difference of two independent policies.
    pub comparison_error: f64,
    /// Minimum detectable effect of that difference.
    pub mde: f64,
    /// `sigma2_eval / n`.
    pub evaluation_variance: f64,
    /// `sigma2_cal / m`.
    pub calibration_variance: f64,
}

impl Plan {
    /// Labels per score.
    pub fn label_fraction(&self) -> f64 {
        self.labels as f64 / self.scores as f64
    }

    /// Share of the variance that more scores would lower.
    pub fn evaluation_share(&self) -> f64 {
        self.evaluation_variance / (self.evaluation_variance + self.calibration_variance)
    }
}

/// Integer part of a number of rows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to exact counts"
)]
pub(super) fn whole(rows: f64) -> u64 {
    rows.clamp(0.0, COUNT_MAX) as u64
}

/// The integer plan of a budget: the law rounded down, m <= n, m at least `labels_min`, never above the budget.
///
/// # Errors
/// [`SampleError::Parameter`] without a minimum, for a budget that is not finite, cannot pay `labels_min` rows, or
/// buys more rows than can be counted exactly.
pub fn plan_evaluation(
    budget: f64,
    model: &VarianceModel,
    costs: &Costs,
    labels_min: u64,
    power: Power,
) -> Result<Plan, SampleError> {
    let least = labels_min as f64;
    let both = costs.score + costs.label;
    let payable = budget >= least * both && budget.is_finite();
    if labels_min == 0 || !payable || budget / costs.score >= COUNT_MAX {
        return Err(SampleError::Parameter {
            name: "budget",
            expected: "a finite budget that pays for the fewest labels",
        });
    }
    let law = square_root_law(budget, model, costs);
    let roots = (costs.score * model.evaluation).sqrt() + (costs.label * model.calibration).sqrt();
    let even = budget / both;
    let (n, m) = if model.calibration <= 0.0 {
        ((budget - costs.label * least) / costs.score, least)
    } else if model.evaluation <= 0.0 || roots < FLAT || law.labels > law.scores {
        (even, even)
    } else {
        (law.scores, law.labels)
    };
    let mut scores = whole(n.max(1.0));
    let mut labels = whole(m.min(scores as f64).max(1.0));
    if labels < labels_min {
        labels = labels_min;
        scores = whole((budget - costs.label * least) / costs.score).max(labels);
    }
    scores = scores.max(labels);
    let affordable = whole((budget - costs.label * labels as f64) / costs.score);
    if scores > affordable {
        scores = affordable.max(labels);
    }
    Ok(priced(scores, labels, model, costs, power))
}

fn priced(scores: u64, labels: u64, model: &VarianceModel, costs: &Costs, power: Power) -> Plan {
    let (n, m) = (scores as f64, labels as f64);
    let standard_error = model.variance(n, m).sqrt();
    Plan {
        scores,
        labels,
        cost: costs.score * n + costs.label * m,
        standard_error,
        comparison_error: std::f64::consts::SQRT_2 * standard_error,
        mde: mde(standard_error, power),
        evaluation_variance: model.evaluation / n,
        calibration_variance: model.calibration / m,
    }
}

/// The cheapest plan whose MDE is at most 1.02 times the target: the law inverted, then grown until it holds.
///
/// # Errors
/// [`SampleError::Parameter`] for a target that is not finite and above 0, and as [`plan_evaluation`].
pub fn plan_for_mde(
    target: f64,
    model: &VarianceModel,
    costs: &Costs,
    labels_min: u64,
    power: Power,
) -> Result<Plan, SampleError> {
    if !(target.is_finite() && target > 0.0 && labels_min > 0) || power.critical() <= 0.0 {
        return Err(SampleError::Parameter {
            name: "target",
            expected: "a finite effect above 0, and a power above the level",
        });
    }
    let error = target / power.critical() / std::f64::consts::SQRT_2;
    let variance = error * error;
    let roots = (costs.score * model.evaluation).sqrt() + (costs.label * model.calibration).sqrt();
    let least = labels_min as f64;
    let optimum = (model.calibration / costs.label).sqrt() * roots / variance;
    let mut budget = if optimum >= least {
        roots * roots / variance
    } else {
        // The floor binds, so sigma2_cal / m_min is below the variance wanted.
        let rest = variance - model.calibration / least;
        let scores = (model.evaluation / rest).ceil().max(least);
        costs.score * scores + costs.label * least
    };
    budget = budget.max(least * (costs.score + costs.label));
    let mut plan = plan_evaluation(budget, model, costs, labels_min, power)?;
    for _ in 0..GROWTHS_MAX {
        if plan.mde <= target * MDE_SLACK {
            break;
        }
        let scale = (plan.mde / target) * (plan.mde / target);
        budget = budget * scale.max(1.0) + costs.score + costs.label;
        plan = plan_evaluation(budget, model, costs, labels_min, power)?;
    }
    Ok(plan)
}

/// Fits `Var(n, m)` by non-negative least squares on (1/n, 1/m); rows whose variance is not above 0 are left out.
/// Returns the model and R^2 (`None` if the variances are all equal).
///
/// # Errors
/// [`Unfit::InsufficientData`] for fewer than 3 usable measurements; [`Unfit::Invalid`] for sizes below 1, or if no component is
/// above 0.
pub fn fit_variance(
    measurements: &[(f64, f64, f64)],
) -> Result<(VarianceModel, Option<f64>), Unfit> {
    if measurements
        .iter()
        .any(|(n, m, _)| !(*n >= 1.0 && *m >= 1.0))
    {
        return Err(SampleError::Parameter {
            name: "measurements",
            expected: "sizes of at least 1",
        }
        .into());
    }
    let used: Vec<(f64, f64, f64)> = measurements
        .iter()
        .filter(|(_, _, variance)| *variance > 0.0 && variance.is_finite())
        .map(|(n, m, variance)| (1.0 / n, 1.0 / m, *variance))
        .collect();
    InsufficientData::unless("measurements", used.len(), 3)?;
    let (evaluation, calibration) = nonnegative(&used);
    let model = VarianceModel::new(evaluation, calibration)?;
    let variances: Vec<f64> = used.iter().map(|row| row.2).collect();
    let mean = math::mean(&variances);
    let rest: Vec<f64> = used
        .iter()
        .map(|(a, b, y)| y - evaluation * a - calibration * b)
        .collect();
    let spread: Vec<f64> = variances.iter().map(|y| y - mean).collect();
    let total = math::dot(&spread, &spread);
    let floor = 1e-26 * math::dot(&variances, &variances);
    let explained = (total > floor).then(|| 1.0 - math::dot(&rest, &rest) / total);
    Ok((model, explained))
}

/// Non-negative least squares with two columns: the free solution, else the better of the two edges.
fn nonnegative(rows: &[(f64, f64, f64)]) -> (f64, f64) {
    let total =
        |pick: fn(&(f64, f64, f64)) -> f64| math::sum(&rows.iter().map(pick).collect::<Vec<_>>());
    let (aa, bb, ab) = (
        total(|r| r.0 * r.0),
        total(|r| r.1 * r.1),
        total(|r| r.0 * r.1),
    );
    let (ay, by) = (total(|r| r.0 * r.2), total(|r| r.1 * r.2));
    let determinant = aa * bb - ab * ab;
    if determinant > 1e-14 * aa * bb {
        let x = (bb * ay - ab * by) / determinant;
        let y = (aa * by - ab * ay) / determinant;
        if x >= 0.0 && y >= 0.0 {
            return (x, y);
        }
    }
    // Variances are above 0, so each edge's own solution is; it explains (x'y)^2 / x'x.
    if ay * ay / aa >= by * by / bb {
        (ay / aa, 0.0)
    } else {
        (0.0, by / bb)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn power() -> Power {
        Power::new(0.8, 0.05).unwrap()
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        let costs = Costs::new(0.01, 0.16).unwrap();
        let model = VarianceModel::new(0.04, 0.05).unwrap();
        assert!(VarianceModel::new(0.0, 0.0).is_err());
        assert!(VarianceModel::new(f64::NAN, 0.1).is_err());
        assert!(Costs::new(0.0, 1.0).is_err());
        assert!(Power::new(1.0, 0.05).is_err());
        assert!(plan_evaluation(5.0, &model, &costs, 30, power()).is_err());
        assert!(plan_evaluation(f64::NAN, &model, &costs, 30, power()).is_err());
        assert!(plan_for_mde(0.0, &model, &costs, 30, power()).is_err());
        let two = [(10.0, 5.0, 0.1), (20.0, 5.0, 0.1), (20.0, 5.0, 0.0)];
        assert!(matches!(
            fit_variance(&two),
            Err(Unfit::InsufficientData(_))
        ));
        let zero = [(0.0, 5.0, 0.1); 3];
        assert!(matches!(fit_variance(&zero), Err(Unfit::Invalid(_))));
    }

    #[test]
    fn an_edge_of_the_fit_is_found() {
        // Variance that falls with n alone, with noise that pulls the other component below 0.
        let rows = [
            (10.0, 5.0, 0.1),
            (10.0, 10.0, 0.11),
            (20.0, 5.0, 0.05),
            (20.0, 10.0, 0.056),
        ];
        let (model, explained) = fit_variance(&rows).unwrap();
        assert!(model.calibration() <= 0.0 && model.evaluation() > 0.9);
        assert!(explained.unwrap() > 0.9);
        let flat = [(10.0, 5.0, 0.1); 3];
        assert_eq!(fit_variance(&flat).unwrap().1, None);
    }

    proptest! {
        #[test]
        fn a_plan_never_costs_more_than_its_budget(
            budget in 10.0..1e5_f64,
            evaluation in 0.0..1.0_f64,
            calibration in 0.0..1.0_f64,
            score in 0.001..1.0_f64,
            label in 0.01..5.0_f64,
        ) {
            let costs = Costs::new(score, label).unwrap();
            let Ok(model) = VarianceModel::new(evaluation, calibration) else {
                return Ok(());
            };
            let Ok(plan) = plan_evaluation(budget, &model, &costs, 30, power()) else {
                prop_assert!(budget < 30.0 * (score + label));
                return Ok(());
            };
            prop_assert!(plan.cost <= budget * (1.0 + 1e-12));
            prop_assert!(plan.labels >= 30 && plan.labels <= plan.scores);
        }
    }
}
