//! Green slices: has a patch made a protected slice worse?

use crate::crv1::ClusteredMean;
use crate::distribution;
use crate::predicate::losses::Losses;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;
use clover_num::math;

/// Labelled rows below which a green slice is inconclusive.
pub const GREEN_ROWS_MIN: usize = 40;
/// Difference below which a row counts as untouched.
const UNTOUCHED: f64 = 1e-12;
/// Upper bound of DMSE under the guard for slices that must not regress.
const GUARD_MAX: f64 = 0.0005;
/// One-sided level of that bound.
const GUARD_LEVEL: f64 = 0.90;
/// Rows of the largest differences that a report lists.
const WORST: usize = 5;

/// What a green slice is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GreenRule {
    /// H0: `E[d|g] >= tau` is rejected at level q; tau = 0 demands an improvement, or an untouched slice.
    NonInferior {
        /// Tolerance, at least 0.
        tau: f64,
        /// Level q in (0, 1).
        level: f64,
    },
    /// DMSE at most 0 and its one-sided 90 % upper bound at most 0.0005.
    Guard,
}

/// The numbers that decide a green slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreenNumbers {
    /// Labelled rows.
    pub rows: usize,
    /// Whether no row's loss changed.
    pub untouched: bool,
    /// DMSE.
    pub mean: f64,
    /// p of the non-inferiority test under the rule's tolerance, if it has one.
    pub p: Option<f64>,
    /// One-sided 90 % upper bound of DMSE, if it has one.
    pub upper: Option<f64>,
}

impl GreenRule {
    /// The outcome under this rule; NaN never passes.
    pub fn outcome(self, numbers: &GreenNumbers) -> GreenOutcome {
        if numbers.rows < GREEN_ROWS_MIN {
            return GreenOutcome::Inconclusive;
        }
        if numbers.untouched {
            return GreenOutcome::Untouched;
        }
        let pass = match self {
            Self::NonInferior { level, .. } => numbers.p.map(|p| p <= level),
            Self::Guard => numbers
                .upper
                .map(|upper| numbers.mean <= 0.0 && upper <= GUARD_MAX),
        };
        match pass {
            Some(true) => GreenOutcome::Pass,
            Some(false) => GreenOutcome::Fail,
            None => GreenOutcome::Inconclusive,
        }
    }
}

/// What a green slice came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreenOutcome {
    /// Not worse.
    Pass,
    /// No row's loss changed.
    Untouched,
    /// Not shown to be no worse.
    Fail,
    /// Fewer than 40 rows, one cluster, or no spread: not a pass.
    Inconclusive,
}

impl GreenOutcome {
    /// Whether the gate passes for this slice.
    pub fn passes(self) -> bool {
        matches!(self, Self::Pass | Self::Untouched)
    }
}

/// A green slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Green {
    /// DMSE of the slice.
    pub mean: ClusteredMean,
    /// p of the non-inferiority test; `None` under the guard, or where it has no value.
    pub p: Option<f64>,
    /// One-sided 90 % upper bound of DMSE; `None` for one cluster.
    pub upper: Option<f64>,
    /// The five largest differences, (row of the slice, d): the test sees little of harm to fewer than 3 in n rows.
    pub worst: Vec<(usize, f64)>,
    /// The outcome.
    pub outcome: GreenOutcome,
}

/// p of H0: E d >= tau against E d < tau: P(T <= (DMSE - tau) / SE) with clusters - 1 df.
///
/// Untouched rows (all |d| < 1e-12) give 0 if tau is above 0; `None` for tau = 0, one cluster or no spread otherwise.
pub fn not_worse_p(losses: &Losses, tau: f64) -> Option<f64> {
    if untouched(losses) {
        return (tau > 0.0).then_some(0.0);
    }
    let mean = losses.mean();
    Some(distribution::t_cdf(mean.t(tau)?, mean.df()))
}

/// Whether no row's loss changed: all |d| < 1e-12.
pub fn untouched(losses: &Losses) -> bool {
    losses.differences().iter().all(|d| d.abs() < UNTOUCHED)
}

/// Holds a green slice to its rule. All slices of a gate must pass, which is an intersection-union test: the largest p
/// decides, and Benjamini-Hochberg at q rejects all exactly when it is at most q.
///
/// # Errors
/// [`SampleError::Parameter`] for a tolerance or level outside its range.
pub fn green(losses: &Losses, rule: GreenRule) -> Result<Green, SampleError> {
    if let GreenRule::NonInferior { tau, level } = rule
        && !(tau >= 0.0 && tau.is_finite() && level > 0.0 && level < 1.0)
    {
        return Err(SampleError::Parameter {
            name: "green rule",
            expected: "a tolerance of at least 0 and a level in (0, 1)",
        });
    }
    let mean = losses.mean();
    let upper = mean
        .standard_error()
        .map(|error| mean.mean + distribution::t_quantile(GUARD_LEVEL, mean.df()) * error);
    let p = match rule {
        GreenRule::NonInferior { tau, .. } => not_worse_p(losses, tau),
        GreenRule::Guard => None,
    };
    let outcome = rule.outcome(&GreenNumbers {
        rows: mean.rows,
        untouched: untouched(losses),
        mean: mean.mean,
        p,
        upper,
    });
    Ok(Green {
        mean,
        p,
        upper,
        worst: losses.worst(WORST),
        outcome,
    })
}

/// `RiskImprove = sum_{g in Risk} w_g u_g DMSE_g`, negative when better; a tie-break, never a gate.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn risk_improve(
    exposures: Values<'_>,
    stakes: Values<'_>,
    means: Values<'_>,
) -> Result<f64, SampleError> {
    align("stakes", stakes.len(), exposures.len())?;
    align("means", means.len(), exposures.len())?;
    let weights: Vec<f64> = exposures
        .as_slice()
        .iter()
        .zip(stakes.as_slice())
        .map(|(w, u)| w * u)
        .collect();
    Ok(math::dot(&weights, means.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Clusters;

    fn losses(y: &[f64], r: &[f64], s: &[f64]) -> Losses {
        let values = |values| Values::new("values", values).unwrap();
        let clusters = Clusters::singletons(y.len()).unwrap();
        Losses::new(values(y), values(r), values(s), &clusters).unwrap()
    }

    fn outcome(losses: &Losses, tau: f64) -> GreenOutcome {
        let rule = GreenRule::NonInferior { tau, level: 0.10 };
        green(losses, rule).unwrap().outcome
    }

    /// Rows whose labels lie at a distance from R that alternates about `gap`.
    fn moved(rows: usize, gap: f64, step: f64) -> Losses {
        let y = vec![0.5; rows];
        let r: Vec<f64> = (0..rows)
            .map(|row| 0.5 + gap * if row % 2 == 0 { 1.0 } else { 0.9 })
            .collect();
        let s: Vec<f64> = r.iter().map(|r| r + step).collect();
        losses(&y, &r, &s)
    }

    #[test]
    fn untouched_slices_pass_under_any_tolerance() {
        let still = moved(50, 0.1, 0.0);
        assert_eq!(outcome(&still, 0.0015), GreenOutcome::Untouched);
        assert_eq!(outcome(&still, 0.0), GreenOutcome::Untouched);
        assert_eq!(
            green(&still, GreenRule::Guard).unwrap().outcome,
            GreenOutcome::Untouched
        );
        assert_eq!(not_worse_p(&still, 0.0015), Some(0.0));
        assert_eq!(not_worse_p(&still, 0.0), None);
        // Too few rows are never a pass, not even untouched ones.
        assert_eq!(
            outcome(&moved(39, 0.1, 0.0), 0.0015),
            GreenOutcome::Inconclusive
        );
    }

    #[test]
    fn better_worse_and_flat_slices() {
        assert_eq!(outcome(&moved(50, 0.1, -0.02), 0.0), GreenOutcome::Pass);
        assert_eq!(outcome(&moved(50, 0.1, 0.02), 0.0015), GreenOutcome::Fail);
        let guard = green(&moved(50, 0.1, -0.02), GreenRule::Guard).unwrap();
        assert_eq!(guard.outcome, GreenOutcome::Pass);
        assert_eq!(guard.p, None);
        assert_eq!(guard.worst.len(), 5);
        // The same difference on every row has no error: not a pass.
        let flat = losses(&[0.5; 50], &[0.6; 50], &[0.61; 50]);
        assert_eq!(outcome(&flat, 0.0015), GreenOutcome::Inconclusive);
        let rule = GreenRule::NonInferior {
            tau: f64::NAN,
            level: 0.1,
        };
        assert!(green(&flat, rule).is_err());
    }

    #[test]
    fn one_cluster_is_inconclusive() {
        let values = |values| Values::new("values", values).unwrap();
        let y: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
        let clusters = Clusters::of((0..50).map(|_| 0)).unwrap();
        let (r, s) = ([0.5; 50], [0.4; 50]);
        let found = Losses::new(values(&y), values(&r), values(&s), &clusters).unwrap();
        assert_eq!(outcome(&found, 0.0015), GreenOutcome::Inconclusive);
    }
}
