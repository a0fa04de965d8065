//! Prevalence from an imperfect classifier: the correction of Rogan and Gladen (1978).

use crate::inference::Interval;
use crate::sample::SampleError;
use crate::sample::Thin;
use crate::sample::Unfit;
use crate::sample::open_unit;
use crate::sample::unit;

/// A corrected prevalence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoganGladen {
    /// (p + specificity - 1) / J, not clipped: outside [0, 1] the three rates contradict each other.
    pub theta: f64,
    /// Youden's J = sensitivity + specificity - 1, above 0.
    pub youden: f64,
    rates: [f64; 3],
}

/// Rows behind the three rates, drawn independently of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRows {
    /// Rows whose share of positive classifications is p.
    pub classified: usize,
    /// Truly positive rows behind the sensitivity.
    pub positive: usize,
    /// Truly negative rows behind the specificity.
    pub negative: usize,
}

/// Corrects the share `p` of positive classifications for `sensitivity` and `specificity`, all in [0, 1].
///
/// # Errors
/// [`SampleError::OutOfRange`] for a rate outside [0, 1] (rows 0, 1, 2 in the order of the arguments);
/// [`SampleError::Parameter`] at J <= 0, where classifications do not rise with the truth.
pub fn rogan_gladen(
    p: f64,
    sensitivity: f64,
    specificity: f64,
) -> Result<RoganGladen, SampleError> {
    let rates = [p, sensitivity, specificity];
    unit("p, sensitivity, specificity", &rates)?;
    let youden = sensitivity + specificity - 1.0;
    if youden <= 0.0 {
        return Err(SampleError::Parameter {
            name: "sensitivity + specificity",
            expected: "more than 1",
        });
    }
    Ok(RoganGladen {
        theta: (p + specificity - 1.0) / youden,
        youden,
        rates,
    })
}

impl RoganGladen {
    /// Delta-method variance: `(p (1 - p) / n + theta^2 Se (1 - Se) / n1 + (1 - theta)^2 Sp (1 - Sp) / n0) / J^2`.
    ///
    /// # Errors
    /// [`Thin`] without rows behind a rate.
    pub fn variance(&self, rows: RateRows) -> Result<f64, Thin> {
        Thin::unless("classified rows", rows.classified, 1)?;
        Thin::unless("positive rows", rows.positive, 1)?;
        Thin::unless("negative rows", rows.negative, 1)?;
        let binomial = |rate: f64, rows: usize| rate * (1.0 - rate) / rows as f64;
        let [p, sensitivity, specificity] = self.rates;
        let (theta, rest) = (self.theta, 1.0 - self.theta);
        let sum = binomial(p, rows.classified)
            + theta * theta * binomial(sensitivity, rows.positive)
            + rest * rest * binomial(specificity, rows.negative);
        Ok(sum / (self.youden * self.youden))
    }

    /// Normal interval of confidence `level` in (0, 1), not clipped; `None` where the variance is 0 because all three
    /// rates are 0 or 1, which says nothing of their error.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for another level; [`Thin`] without rows behind a rate.
    pub fn interval(&self, rows: RateRows, level: f64) -> Result<Option<Interval>, Unfit> {
        open_unit("level", level)?;
        let variance = self.variance(rows)?;
        let interval = Interval::normal(self.theta, variance.sqrt(), 1.0 - level);
        Ok((variance > 0.0).then_some(interval))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn useless_classifiers_and_impossible_rates_are_refused() {
        assert!(rogan_gladen(0.5, 0.5, 0.5).is_err());
        assert!(rogan_gladen(0.5, 0.2, 0.3).is_err());
        assert!(rogan_gladen(f64::NAN, 0.9, 0.9).is_err());
        assert!(rogan_gladen(0.5, 1.1, 0.9).is_err());
        assert!(rogan_gladen(0.5, 0.9, -0.1).is_err());
    }

    #[test]
    fn a_perfect_classifier_needs_no_correction() {
        let perfect = rogan_gladen(0.3, 1.0, 1.0).unwrap();
        let rows = RateRows {
            classified: 100,
            positive: 10,
            negative: 10,
        };
        assert!((perfect.theta - 0.3).abs() < 1e-15);
        assert!((perfect.variance(rows).unwrap() - 0.0021).abs() < 1e-15);
        let sure = rogan_gladen(1.0, 1.0, 1.0).unwrap();
        assert_eq!(sure.interval(rows, 0.95).unwrap(), None);
        let none = RateRows {
            negative: 0,
            ..rows
        };
        assert!(matches!(sure.interval(none, 0.95), Err(Unfit::Thin(_))));
        assert!(sure.interval(rows, 1.5).is_err());
    }

    proptest! {
        #[test]
        fn the_delta_method_follows_numerical_derivatives(p in 0.1..0.9_f64, se in 0.6..0.95_f64, sp in 0.6..0.95_f64) {
            let theta = |p, se, sp| rogan_gladen(p, se, sp).unwrap().theta;
            let step = 1e-6;
            let slopes = [
                (theta(p + step, se, sp) - theta(p - step, se, sp)) / (2.0 * step),
                (theta(p, se + step, sp) - theta(p, se - step, sp)) / (2.0 * step),
                (theta(p, se, sp + step) - theta(p, se, sp - step)) / (2.0 * step),
            ];
            let rows = RateRows { classified: 200, positive: 40, negative: 60 };
            let variances = [p * (1.0 - p) / 200.0, se * (1.0 - se) / 40.0, sp * (1.0 - sp) / 60.0];
            let want: f64 = slopes.iter().zip(variances).map(|(s, v)| s * s * v).sum();
            let got = rogan_gladen(p, se, sp).unwrap().variance(rows).unwrap();
            prop_assert!((got / want - 1.0).abs() < 1e-6);
        }
    }
}
