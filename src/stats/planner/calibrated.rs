//! Sizes of audits of a calibrator that has an error of its own.
//!
//! An audit adds the calibrator's jackknife variance to the width of its interval, on few degrees of freedom, and the
//! mean residual of a calibrator from few labels is not 0 even where nothing is wrong. Both cost power, and no number of
//! probes buys either back: only labels of the calibrator do.

use crate::distribution;
use crate::inference;
use crate::planner::audit::AuditScenario;
use crate::planner::audit::TAIL;
use crate::planner::audit::quadrature_over;
use crate::sample::SampleError;
use clover_num::math;

/// Deviation of residuals below which they count as equal.
const DEVIATION_MIN: f64 = 1e-9;
/// Steps in which labels are multiplied when some are missing, and how many are tried.
const LABELS_STEP: f64 = 1.25;
const LABELS_STEPS_MAX: i32 = 24;

/// The error of a calibrator, as variances of its mean prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibratorError {
    /// What the audit will add to its interval: the jackknife variance over the calibrator's own folds.
    pub width: f64,
    /// Degrees of freedom of that: folds less one.
    pub df: f64,
    /// Variance of the mean residual around the planned bias, over draws of the calibrator's labels.
    pub bias: f64,
}

impl CalibratorError {
    fn check(&self) -> Result<(), SampleError> {
        let variance = |value: f64| value.is_finite() && value >= 0.0;
        if variance(self.width) && variance(self.bias) && self.df >= 1.0 {
            return Ok(());
        }
        Err(SampleError::Parameter {
            name: "calibrator error",
            expected: "finite variances of at least 0 on at least 1 degree of freedom",
        })
    }

    /// The same from so many times the labels.
    fn with_labels(&self, times: f64) -> Self {
        Self {
            width: self.width / times,
            bias: self.bias / times,
            ..*self
        }
    }
}

/// Probability that the audit of such a calibrator passes: over the mean residual, the chi-squared probability that the
/// deviation of the residuals leaves the interval inside the margin. The degrees of freedom are those of the planned
/// deviation.
///
/// # Errors
/// [`SampleError::Parameter`] for a scenario, a level or an error outside its range.
pub fn calibrated_pass_probability(
    clusters: u64,
    scenario: &AuditScenario,
    alpha: f64,
    error: &CalibratorError,
) -> Result<f64, SampleError> {
    scenario.check()?;
    error.check()?;
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(SampleError::Parameter {
            name: "alpha",
            expected: "a number in (0, 1)",
        });
    }
    if clusters < 2 {
        return Ok(0.0);
    }
    let n = clusters as f64;
    let deviation = scenario.residual_sd.max(DEVIATION_MIN);
    let sampling = deviation * deviation / n;
    let df = n - 1.0;
    let welch = inference::welch(sampling, df, error.width, error.df);
    let critical = distribution::t_quantile(1.0 - 0.5 * alpha, df.min(welch));
    let scale = (sampling + error.bias).sqrt();
    let (bias, margin) = (scenario.bias / scale, scenario.margin / scale);
    let (low, high) = ((-margin - bias).max(-TAIL), (margin - bias).min(TAIL));
    if low >= high {
        return Ok(0.0);
    }
    let density = |z: f64| {
        let reach = scale * (margin - (bias + z).abs()).max(0.0) / critical;
        let largest = (reach * reach - error.width) / sampling;
        if largest <= 0.0 {
            return 0.0;
        }
        distribution::normal_pdf(z) * distribution::chi_squared(df * largest, df).0
    };
    Ok(quadrature_over(&density, (low, high), -bias))
}

/// The smallest size from `clusters_min` to `clusters_max` whose audit passes with the power, and that probability;
/// `None` if none does.
///
/// # Errors
/// As [`calibrated_pass_probability`].
pub fn plan_calibrated_audit(
    scenario: &AuditScenario,
    (alpha, power): (f64, f64),
    (clusters_min, clusters_max): (u64, u64),
    error: &CalibratorError,
) -> Result<Option<(u64, f64)>, SampleError> {
    let passes = |clusters| calibrated_pass_probability(clusters, scenario, alpha, error);
    let least = clusters_min.max(2);
    let (mut low, mut high) = (least - 1, least);
    while passes(high)? < power {
        if high >= clusters_max {
            return Ok(None);
        }
        (low, high) = (high, high.saturating_mul(2).min(clusters_max));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle)? >= power {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(Some((high, passes(high)?)))
}

/// By how much the calibrator's labels must be multiplied before so many clusters pass with the power, to a quarter;
/// `None` beyond two hundred times.
///
/// # Errors
/// As [`calibrated_pass_probability`].
pub fn labels_factor(
    scenario: &AuditScenario,
    (alpha, power): (f64, f64),
    clusters: u64,
    error: &CalibratorError,
) -> Result<Option<f64>, SampleError> {
    let mut times = 1.0;
    for _ in 0..LABELS_STEPS_MAX {
        let better = error.with_labels(times);
        if calibrated_pass_probability(clusters, scenario, alpha, &better)? >= power {
            return Ok(Some(times));
        }
        times *= LABELS_STEP;
    }
    Ok(None)
}

/// Interval at level `1 - alpha` of a variance that was averaged over `seeds` partitions into `folds` folds of `labels`
/// labels: chi-squared on `1 / (1 / (seeds (folds - 1)) + 2 / (labels - 1))` degrees of freedom. The first part is what
/// partitions of the same labels leave open; the second, doubled for residuals that are not normal, what other labels
/// would say.
pub fn variance_interval(
    variance: f64,
    (seeds, folds, labels): (usize, usize, usize),
    alpha: f64,
) -> (f64, f64) {
    let partitions = seeds.max(1) as f64 * (folds as f64 - 1.0).max(1.0);
    let df = 1.0 / (1.0 / partitions + 2.0 / (labels as f64 - 1.0).max(1.0));
    let end = |p: f64| {
        // Wilson and Hilferty 1931.
        let spread = 2.0 / (9.0 * df);
        let root = 1.0 - spread + distribution::normal_quantile(p) * spread.sqrt();
        variance / math::pow(root.max(0.05), 3.0)
    };
    (end(1.0 - 0.5 * alpha), end(0.5 * alpha))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::pass_probability;

    fn scenario(residual_sd: f64, margin: f64) -> AuditScenario {
        AuditScenario {
            residual_sd,
            margin,
            bias: 0.0,
            available: None,
            labels_per_cluster: 1.0,
        }
    }

    #[test]
    fn without_an_error_it_is_the_audit_of_the_peer() {
        let none = CalibratorError {
            width: 0.0,
            df: 4.0,
            bias: 0.0,
        };
        for (n, sd) in [(40, 0.1), (245, 0.2), (20, 0.2)] {
            let of = scenario(sd, 0.05);
            let got = calibrated_pass_probability(n, &of, 0.05, &none).unwrap();
            let want = pass_probability(n, &of, 0.05).unwrap();
            assert!((got - want).abs() < 1e-9, "{n}: {got} is not {want}");
        }
    }

    #[test]
    fn an_error_costs_power_that_probes_do_not_buy_back() {
        let of = scenario(0.2, 0.05);
        let error = |sd: f64| CalibratorError {
            width: sd * sd,
            df: 4.0,
            bias: sd * sd,
        };
        let terms = (0.05, 0.8);
        let plain = plan_calibrated_audit(&of, terms, (20, 100_000), &error(0.0)).unwrap();
        let some = plan_calibrated_audit(&of, terms, (20, 100_000), &error(0.008)).unwrap();
        assert!(some.unwrap().0 > plain.unwrap().0);
        assert!(some.unwrap().1 >= 0.8);
        // 2.776 errors of .02 exceed the margin: no audit passes.
        assert_eq!(
            plan_calibrated_audit(&of, terms, (20, 100_000), &error(0.02)).unwrap(),
            None
        );
        let factor = labels_factor(&of, terms, 100_000, &error(0.02))
            .unwrap()
            .unwrap();
        assert!(factor > 2.0 && factor < 6.0, "{factor}");
        assert!(calibrated_pass_probability(30, &of, 0.05, &error(f64::NAN)).is_err());
    }

    #[test]
    fn an_interval_is_that_of_chi_squared() {
        // source: scipy 1.17.1 chi2.ppf at 30.52 degrees of freedom: 16.92, 47.63.
        let (low, high) = variance_interval(1.0, (20, 5, 100), 0.05);
        let df = 1.0 / (1.0 / 80.0 + 2.0 / 99.0);
        let (below, above) = distribution::chi_squared(df / low, df);
        assert!((above - 0.025).abs() < 1e-3, "{below}");
        assert!((distribution::chi_squared(df / high, df).0 - 0.025).abs() < 1e-3);
    }
}
