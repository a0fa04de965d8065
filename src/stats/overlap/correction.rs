//! How much of a doubly robust estimate comes from its outcome model, and whether the rest is noise about 0.

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
use crate::sample::open_unit;
use clover_num::math;

/// Contributions whose total is this small have no shares.
const NO_TOTAL: f64 = 1e-10;

/// The score `U = w (R - q)` of a doubly robust estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orthogonality {
    /// Its mean.
    pub mean: f64,
    /// `sd / sqrt n`, denominator n.
    pub standard_error: f64,
    /// mean / standard error; 0 where the latter is.
    pub z: f64,
    /// Two-sided p of mean 0, normal; 1 where all are equal to 0, and where they have no spread.
    pub p: f64,
    /// Normal interval.
    pub interval: Interval,
    /// Cluster-robust standard error of the mean (CRV1); `None` for one cluster.
    pub clustered_error: Option<f64>,
}

impl Orthogonality {
    /// Whether the interval holds 0.
    pub fn holds(&self) -> bool {
        self.interval.contains(0.0)
    }
}

/// Tests that the weighted residuals have mean 0 (CJE paper, appendix D.3): weights, rewards and the outcome model's
/// out-of-fold predictions of the logged rows, their prompts, and the interval's `alpha`.
///
/// # Errors
/// [`SampleError`] for misaligned columns or an alpha outside (0, 1).
pub fn orthogonality(
    weights: Weights<'_>,
    rewards: Values<'_>,
    predicted: Values<'_>,
    prompts: &Clusters,
    alpha: f64,
) -> Result<Orthogonality, SampleError> {
    open_unit("alpha", alpha)?;
    let scores = weighted_residuals(weights, rewards, predicted)?;
    align("prompts", prompts.of_row().len(), scores.len())?;
    let rows = scores.len() as f64;
    let mean = math::mean(&scores);
    let deviation = (inference::squares(&scores) / rows).sqrt();
    let standard_error = deviation / rows.sqrt();
    let z = if standard_error > 0.0 {
        mean / standard_error
    } else {
        0.0
    };
    Ok(Orthogonality {
        mean,
        standard_error,
        z,
        p: (2.0 * distribution::normal_sf(z.abs())).min(1.0),
        interval: Interval::normal(mean, standard_error, alpha),
        clustered_error: crv1::mean(&scores, prompts, None).standard_error(),
    })
}

fn weighted_residuals(
    weights: Weights<'_>,
    rewards: Values<'_>,
    predicted: Values<'_>,
) -> Result<Vec<f64>, SampleError> {
    align("weights", weights.as_slice().len(), rewards.len())?;
    align("predictions", predicted.len(), rewards.len())?;
    let rows = rewards.as_slice().iter().zip(predicted.as_slice());
    let weighted = weights.as_slice().iter().zip(rows);
    Ok(weighted.map(|(w, (r, q))| w * (r - q)).collect())
}

/// The direct and the weighted part of a doubly robust estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobustSplit {
    /// Mean of the outcome model over the target's draws.
    pub direct: f64,
    /// Mean of the weighted residuals.
    pub weighted: f64,
    /// Standard error of the former (denominator n).
    pub direct_error: f64,
    /// Standard error of the latter (denominator n).
    pub weighted_error: f64,
    /// Share of the direct part in the sum of magnitudes; one half where the estimate is 0.
    pub direct_share: f64,
    /// Correlation of the two parts over rows; `None` where either is constant.
    pub correlation: Option<f64>,
}

impl RobustSplit {
    /// The estimate: the sum of both.
    pub fn total(&self) -> f64 {
        self.direct + self.weighted
    }
}

/// Splits a doubly robust estimate (CJE paper, appendix D.3): `direct`, the outcome model's mean over each row's fresh
/// draws; the rest as in [`orthogonality`].
///
/// # Errors
/// [`SampleError`] for misaligned columns; [`InsufficientData`] below two rows.
pub fn split(
    direct: Values<'_>,
    weights: Weights<'_>,
    rewards: Values<'_>,
    predicted: Values<'_>,
) -> Result<RobustSplit, Unfit> {
    let weighted = weighted_residuals(weights, rewards, predicted)?;
    align("direct part", direct.len(), weighted.len())?;
    InsufficientData::unless("rows", weighted.len(), 2)?;
    let direct = direct.as_slice();
    let rows = weighted.len() as f64;
    let (mean, correction) = (math::mean(direct), math::mean(&weighted));
    let squares = [inference::squares(direct), inference::squares(&weighted)];
    let [direct_error, weighted_error] = squares.map(|s| (s / rows).sqrt() / rows.sqrt());
    let away =
        |values: &[f64], mean: f64| -> Vec<f64> { values.iter().map(|x| x - mean).collect() };
    let cross = math::dot(&away(direct, mean), &away(&weighted, correction));
    let scale = squares[0].sqrt() * squares[1].sqrt();
    let direct_share = if (mean + correction).abs() > NO_TOTAL {
        mean.abs() / (mean.abs() + correction.abs())
    } else {
        0.5
    };
    Ok(RobustSplit {
        direct: mean,
        weighted: correction,
        direct_error,
        weighted_error,
        direct_share,
        correlation: (scale > 0.0).then(|| (cross / scale).clamp(-1.0, 1.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Values<'_> {
        Values::new("column", values).unwrap()
    }

    #[test]
    fn residuals_about_zero_pass_and_shifted_ones_do_not() {
        let weights = [1.0; 8];
        let weights = Weights::new("w", &weights, 8).unwrap();
        let prompts = Clusters::singletons(8).unwrap();
        let rewards = [0.1, 0.3, 0.1, 0.3, 0.1, 0.3, 0.1, 0.3];
        let near =
            orthogonality(weights, column(&rewards), column(&[0.2; 8]), &prompts, 0.05).unwrap();
        // By hand: deviation 0.1 over sqrt 8.
        assert!(near.holds() && (near.standard_error - 0.1 / 8.0_f64.sqrt()).abs() < 1e-15);
        // CRV1 of singletons has denominator n - 1.
        let robust = near.clustered_error.unwrap();
        assert!((robust / near.standard_error - (8.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        let far =
            orthogonality(weights, column(&rewards), column(&[0.7; 8]), &prompts, 0.05).unwrap();
        assert!(!far.holds() && far.p < 1e-6);
        let none =
            orthogonality(weights, column(&rewards), column(&rewards), &prompts, 0.05).unwrap();
        assert!(none.holds() && none.z.abs() <= 0.0 && (none.p - 1.0).abs() < 1e-15);
        assert!(orthogonality(weights, column(&rewards), column(&rewards), &prompts, 1.0).is_err());
    }

    #[test]
    fn the_parts_add_up() {
        let weights = [2.0, 0.0];
        let weights = Weights::new("w", &weights, 2).unwrap();
        let found = split(
            column(&[0.4, 0.6]),
            weights,
            column(&[0.5, 0.9]),
            column(&[0.4, 0.2]),
        )
        .unwrap();
        assert!(
            (found.total() - 0.6).abs() < 1e-15 && (found.direct_share - 5.0 / 6.0).abs() < 1e-14
        );
        assert!((found.correlation.unwrap() + 1.0).abs() < 1e-12);
        let one = Weights::new("w", &[1.0], 1).unwrap();
        let thin = split(column(&[0.4]), one, column(&[0.5]), column(&[0.4]));
        assert!(matches!(thin, Err(Unfit::InsufficientData(_))));
    }
}
