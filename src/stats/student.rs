//! Tests and intervals of a mean by Student's t: one sample, paired, cluster-robust.

use std::cmp::Ordering;

use crate::crv1;
use crate::distribution;
use crate::inference;
use crate::inference::Interval;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use crate::sample::differences;
use crate::sample::finite;
use crate::sample::open_unit;
use clover_num::math;

/// What a test looks for, about a value and the null value (or about two samples).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// It differs.
    TwoSided,
    /// It is below.
    Less,
    /// It is above.
    Greater,
}

/// What a test of a mean came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanTest {
    /// A t statistic and its p.
    Statistic {
        /// (mean - null) / standard error.
        t: f64,
        /// p-value in [0, 1].
        p: f64,
    },
    /// The values do not vary: there is no statistic, only the side of the null on which they all lie.
    NoVariance(Ordering),
}

impl MeanTest {
    /// The p-value; `None` without variance.
    pub fn p(self) -> Option<f64> {
        match self {
            Self::Statistic { p, .. } => Some(p),
            Self::NoVariance(_) => None,
        }
    }
}

/// A mean with the variance of its estimate and the degrees of freedom of that variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// The (weighted) mean, in the units of the values.
    pub mean: f64,
    /// Variance of the mean, in their square; exactly 0 where the values do not vary.
    pub variance: f64,
    /// Degrees of freedom, at least 1.
    pub df: f64,
    /// Independent units: rows, pairs, or clusters with some weight.
    pub units: usize,
}

impl MeanEstimate {
    /// Standard error, the square root of the variance.
    pub fn se(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Tests that the mean is `null`: t = (mean - null) / se on [`MeanEstimate::df`] degrees of freedom.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a null that is not finite.
    pub fn test(&self, null: f64, alternative: Alternative) -> Result<MeanTest, SampleError> {
        if !null.is_finite() {
            return Err(SampleError::Parameter {
                name: "null",
                expected: "a finite number",
            });
        }
        if self.variance <= 0.0 {
            // Adding 0 makes one zero of the two.
            let side = (self.mean + 0.0).total_cmp(&(null + 0.0));
            return Ok(MeanTest::NoVariance(side));
        }
        let t = (self.mean - null) / self.se();
        let p = match alternative {
            Alternative::TwoSided => distribution::t_two_sided(t, self.df),
            Alternative::Less => distribution::t_cdf(t, self.df),
            Alternative::Greater => distribution::t_sf(t, self.df),
        };
        Ok(MeanTest::Statistic { t, p })
    }

    /// The interval of confidence `level` in (0, 1) that matches an alternative: mean ± t se with the quantile at
    /// (1 + level) / 2, or one finite bound with the quantile at `level` (above for `Less`, below for `Greater`).
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for another level.
    pub fn interval(&self, level: f64, alternative: Alternative) -> Result<Interval, SampleError> {
        open_unit("level", level)?;
        let reach = |p: f64| distribution::t_quantile(p, self.df) * self.se();
        let mut interval = Interval {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        match alternative {
            Alternative::TwoSided => {
                interval = Interval::around(self.mean, reach(0.5 * (1.0 + level)));
            }
            Alternative::Less => interval.high = self.mean + reach(level),
            Alternative::Greater => interval.low = self.mean - reach(level),
        }
        Ok(interval)
    }
}

/// One-sample mean: variance s^2 / n with s^2 of n - 1, on n - 1 degrees of freedom (`scipy.stats.ttest_1samp`).
///
/// # Errors
/// [`InsufficientData`] below two rows; [`SampleError::Parameter`] where squares overflow.
pub fn one_sample(values: Values<'_>) -> Result<MeanEstimate, Unfit> {
    let sd = inference::standard_deviation(values.as_slice())?;
    let rows = values.len() as f64;
    let mean = if sd > 0.0 {
        math::mean(values.as_slice())
    } else {
        values.as_slice()[0]
    };
    Ok(MeanEstimate {
        mean,
        variance: finite(sd * sd / rows)?,
        df: rows - 1.0,
        units: values.len(),
    })
}

/// Mean of the differences `after - before` of paired rows (`scipy.stats.ttest_rel`).
///
/// # Errors
/// [`SampleError::Misaligned`], or [`SampleError::NotFinite`] where a difference overflows; [`InsufficientData`] below two pairs.
pub fn paired(after: Values<'_>, before: Values<'_>) -> Result<MeanEstimate, Unfit> {
    let differences = differences(after, before)?;
    one_sample(Values::new("differences", &differences)?)
}

/// Cluster-robust (CRV1) mean on C - 1 degrees of freedom, C the clusters that have some weight; formulas in
/// [`crv1`].
///
/// Without weights every row weighs 1. Totals that are all within the rounding of their rows are no variance.
///
/// # Errors
/// [`SampleError::Misaligned`] for columns of different lengths, [`SampleError::Parameter`] where squares overflow;
/// [`InsufficientData`] below two such clusters.
pub fn cluster_robust(
    values: Values<'_>,
    clusters: &Clusters,
    weights: Option<Weights<'_>>,
) -> Result<MeanEstimate, Unfit> {
    let rows = values.len();
    align("clusters", clusters.of_row().len(), rows)?;
    if let Some(weights) = weights {
        align("weights", weights.as_slice().len(), rows)?;
    }
    let found = crv1::mean(values.as_slice(), clusters, weights.map(Weights::as_slice));
    let variance = found.variance.ok_or(InsufficientData {
        of: "clusters",
        found: found.clusters,
        needed: 2,
    })?;
    Ok(MeanEstimate {
        mean: finite(found.mean)?,
        variance: finite(variance.total())?,
        df: found.df(),
        units: found.clusters,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("x", x).unwrap()
    }

    #[test]
    fn one_row_is_thin_and_equal_rows_have_no_variance() {
        assert!(matches!(
            one_sample(values(&[0.3])),
            Err(Unfit::InsufficientData(_))
        ));
        let huge = [1e200, -1e200, 3e200];
        assert!(matches!(one_sample(values(&huge)), Err(Unfit::Invalid(_))));
        let each = Clusters::singletons(3).unwrap();
        assert!(cluster_robust(values(&huge), &each, None).is_err());
        let equal = one_sample(values(&[0.1; 7])).unwrap();
        assert!(equal.variance.abs() <= 0.0);
        assert_eq!(
            equal.test(0.1, Alternative::Less).unwrap(),
            MeanTest::NoVariance(Ordering::Equal)
        );
        assert_eq!(
            equal.test(0.0, Alternative::Less).unwrap(),
            MeanTest::NoVariance(Ordering::Greater)
        );
        assert!(equal.test(f64::NAN, Alternative::Less).is_err());
        let interval = equal.interval(0.95, Alternative::TwoSided).unwrap();
        assert!((interval.low - 0.1).abs() + (interval.high - 0.1).abs() <= 0.0);
        assert!(equal.interval(1.0, Alternative::TwoSided).is_err());
    }

    #[test]
    fn clusters_that_agree_have_no_variance_and_one_cluster_is_thin() {
        let y = [0.1, 0.7, 0.7, 0.1, 0.1, 0.7];
        let alike = Clusters::of([0, 0, 1, 1, 2, 2]).unwrap();
        let robust = cluster_robust(values(&y), &alike, None).unwrap();
        assert!(robust.test(0.0, Alternative::Less).unwrap().p().is_none());
        let one = Clusters::of([0; 6]).unwrap();
        assert!(matches!(
            cluster_robust(values(&y), &one, None),
            Err(Unfit::InsufficientData(InsufficientData { found: 1, .. }))
        ));
        let weights = Weights::new("w", &[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], 6).unwrap();
        let pairs = Clusters::of([0, 0, 1, 1, 2, 2]).unwrap();
        assert!(cluster_robust(values(&y), &pairs, Some(weights)).is_err());
    }

    #[test]
    fn cluster_robust_matches_its_worked_example() {
        // Two clusters of two and one of one, by hand: mean 3, T = (-3, 1, 2), V = 3/2 * 14 / 25.
        let clusters = Clusters::of(["a", "a", "b", "b", "c"]).unwrap();
        let robust = cluster_robust(values(&[1.0, 2.0, 3.0, 4.0, 5.0]), &clusters, None).unwrap();
        assert!((robust.mean - 3.0).abs() < 1e-15);
        assert!((robust.variance - 0.84).abs() < 1e-15);
        assert!((robust.df - 2.0).abs() <= 0.0);
        // A weight of 2 is the row twice.
        let weights = Weights::new("w", &[1.0, 2.0, 1.0, 1.0, 1.0], 5).unwrap();
        let weighted =
            cluster_robust(values(&[1.0, 2.0, 3.0, 4.0, 5.0]), &clusters, Some(weights)).unwrap();
        let twice = Clusters::of(["a", "a", "a", "b", "b", "c"]).unwrap();
        let rows = values(&[1.0, 2.0, 2.0, 3.0, 4.0, 5.0]);
        let doubled = cluster_robust(rows, &twice, None).unwrap();
        assert!((weighted.variance - doubled.variance).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn singletons_are_the_one_sample_test(x in prop::collection::vec(-5.0..5.0_f64, 2..40)) {
            let clusters = Clusters::singletons(x.len()).unwrap();
            let robust = cluster_robust(values(&x), &clusters, None).unwrap();
            let plain = one_sample(values(&x)).unwrap();
            prop_assert!((robust.mean - plain.mean).abs() < 1e-14);
            prop_assert!((robust.variance - plain.variance).abs() < 1e-13);
        }

        #[test]
        fn one_sided_p_sum_to_one(x in prop::collection::vec(-5.0..5.0_f64, 2..40), null in -3.0..3.0_f64) {
            let estimate = one_sample(values(&x)).unwrap();
            prop_assume!(estimate.variance > 0.0);
            let p = |side| estimate.test(null, side).unwrap().p().unwrap();
            let (less, greater) = (p(Alternative::Less), p(Alternative::Greater));
            prop_assert!((less + greater - 1.0).abs() < 1e-13);
            prop_assert!((p(Alternative::TwoSided) - 2.0 * less.min(greater)).abs() < 1e-13);
        }

        #[test]
        fn t_is_affine_invariant(x in prop::collection::vec(-5.0..5.0_f64, 3..30), scale in 0.1..9.0_f64, shift in -4.0..4.0_f64) {
            let moved: Vec<f64> = x.iter().map(|x| scale * x + shift).collect();
            let before = paired(values(&moved), values(&x)).unwrap();
            let direct: Vec<f64> = moved.iter().zip(&x).map(|(a, b)| a - b).collect();
            prop_assert_eq!(before, one_sample(values(&direct)).unwrap());
            let (a, b) = (one_sample(values(&x)).unwrap(), one_sample(values(&moved)).unwrap());
            prop_assert!((b.se() - scale * a.se()).abs() < 1e-12);
        }
    }
}
