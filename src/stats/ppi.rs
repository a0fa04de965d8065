//! Prediction-powered inference of a mean: few labels with predictions, many predictions without labels
//! (PPI++: Angelopoulos, Duchi and Zrnic 2023).

use crate::inference::Interval;
use crate::inference::squares;
use crate::sample::SampleError;
use crate::sample::Thin;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use crate::sample::finite;
use crate::sample::open_unit;
use clover_num::math;

/// How far predictions are trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trust {
    /// This weight; 1 is prediction-powered inference, 0 the labels alone.
    Fixed(f64),
    /// The weight that minimises the estimated variance, clipped to [0, 1]:
    /// `cov(y, f) / ((1 + n / N) var(f))`, the covariance over n, the variance pooled over n + N - 1.
    Tuned,
}

/// A mean of labels helped by predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PpiMean {
    /// `lambda mean(f unlabelled) + mean(y - lambda f)`, in the units of the labels.
    pub mean: f64,
    /// `var(lambda f unlabelled) / N + var(y - lambda f) / n`, variances over N and n as in the peer.
    pub variance: f64,
    /// The weight in force.
    pub lambda: f64,
}

impl PpiMean {
    /// Normal interval of confidence `level` in (0, 1); `None` without variance.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for another level.
    pub fn interval(&self, level: f64) -> Result<Option<Interval>, SampleError> {
        open_unit("level", level)?;
        let interval = Interval::normal(self.mean, self.variance.sqrt(), 1.0 - level);
        Ok((self.variance > 0.0).then_some(interval))
    }
}

/// Estimates the mean label of a population from `labels` with their `predictions` and from `unlabelled` predictions of
/// other rows of the same population (`ppi-python` 0.2.3). Labelled and unlabelled rows are independent draws; rows of
/// one cluster are not.
///
/// A tuned weight is 0 where predictions do not vary.
///
/// # Errors
/// [`SampleError::Misaligned`], [`SampleError::Parameter`] for a weight that is not finite or squares that overflow; [`Thin`] below two labels
/// or two unlabelled rows.
pub fn ppi_mean(
    labels: Values<'_>,
    predictions: Values<'_>,
    unlabelled: Values<'_>,
    trust: Trust,
) -> Result<PpiMean, Unfit> {
    align("predictions", predictions.len(), labels.len())?;
    Thin::unless("labels", labels.len(), 2)?;
    Thin::unless("unlabelled rows", unlabelled.len(), 2)?;
    let (y, f, u) = (
        labels.as_slice(),
        predictions.as_slice(),
        unlabelled.as_slice(),
    );
    let (n, many) = (y.len() as f64, u.len() as f64);
    let lambda = match trust {
        Trust::Fixed(lambda) if lambda.is_finite() => lambda,
        Trust::Fixed(_) => {
            return Err(Unfit::Invalid(SampleError::Parameter {
                name: "lambda",
                expected: "a finite number",
            }));
        }
        Trust::Tuned => tuned(y, f, u),
    };
    let residuals: Vec<f64> = y.iter().zip(f).map(|(y, f)| y - lambda * f).collect();
    let mean = lambda * math::mean(u) + math::mean(&residuals);
    let variance = lambda * lambda * squares(u) / (many * many) + squares(&residuals) / (n * n);
    Ok(PpiMean {
        mean: finite(mean)?,
        variance: finite(variance)?,
        lambda,
    })
}

fn tuned(y: &[f64], f: &[f64], u: &[f64]) -> f64 {
    let (n, many) = (y.len() as f64, u.len() as f64);
    let pooled: Vec<f64> = f.iter().chain(u).copied().collect();
    let variance = squares(&pooled) / (n + many - 1.0);
    if variance <= 0.0 {
        return 0.0;
    }
    let (mean_y, mean_f) = (math::mean(y), math::mean(f));
    let products: Vec<f64> = y
        .iter()
        .zip(f)
        .map(|(y, f)| (y - mean_y) * (f - mean_f))
        .collect();
    let covariance = math::sum(&products) / n;
    (covariance / ((1.0 + n / many) * variance)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("x", x).unwrap()
    }

    #[test]
    fn constant_predictions_earn_no_trust() {
        let (y, f, u) = ([0.1, 0.5, 0.9], [0.4; 3], [0.4; 5]);
        let tuned = ppi_mean(values(&y), values(&f), values(&u), Trust::Tuned).unwrap();
        let classical = ppi_mean(values(&y), values(&f), values(&u), Trust::Fixed(0.0)).unwrap();
        assert_eq!(tuned, classical);
        assert!((tuned.mean - 0.5).abs() < 1e-15);
        let flat = ppi_mean(values(&f), values(&f), values(&u), Trust::Fixed(1.0)).unwrap();
        assert_eq!(flat.interval(0.95).unwrap(), None);
        assert!(flat.interval(0.0).is_err());
    }

    #[test]
    fn thin_and_misaligned_columns_are_refused() {
        let run = |y: &[f64], f: &[f64], u: &[f64], lambda| {
            ppi_mean(values(y), values(f), values(u), Trust::Fixed(lambda))
        };
        assert!(matches!(
            run(&[0.1], &[0.1], &[0.1, 0.2], 1.0),
            Err(Unfit::Thin(_))
        ));
        assert!(matches!(
            run(&[0.1, 0.2], &[0.1, 0.2], &[0.1], 1.0),
            Err(Unfit::Thin(_))
        ));
        assert!(run(&[0.1, 0.2], &[0.1], &[0.1, 0.2], 1.0).is_err());
        assert!(run(&[0.1, 0.2], &[0.1, 0.2], &[0.1, 0.2], f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn estimates_are_affine_equivariant(
            rows in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 3..30),
            u in prop::collection::vec(0.0..1.0_f64, 3..40), scale in 0.2..4.0_f64, shift in -3.0..3.0_f64,
        ) {
            let (y, f): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
            let moved = |x: &[f64]| x.iter().map(|x| scale * x + shift).collect::<Vec<_>>();
            let (my, mf, mu) = (moved(&y), moved(&f), moved(&u));
            for trust in [Trust::Fixed(1.0), Trust::Fixed(0.0), Trust::Tuned] {
                let plain = ppi_mean(values(&y), values(&f), values(&u), trust).unwrap();
                let other = ppi_mean(values(&my), values(&mf), values(&mu), trust).unwrap();
                prop_assert!((0.0..=1.0).contains(&plain.lambda));
                prop_assert!((other.mean - (scale * plain.mean + shift)).abs() < 1e-10);
                prop_assert!((other.variance - scale * scale * plain.variance).abs() < 1e-10);
            }
        }
    }
}
