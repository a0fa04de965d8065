//! One estimate with its influence and jackknife, its interval, and the weighted means.

use crate::crv1;
use crate::direct::DfMethod;
use crate::direct::Spread;
use crate::inference;
use crate::inference::Interval;
use crate::offpolicy::rewards::LoggedRows;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Weights;
use crate::sample::align;
use crate::sample::open_unit;
use crate::weights::CrossFitted;
use clover_num::math;

/// A way to value a target policy (CJE paper, table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Estimator {
    /// Mean of calibrated rewards over the target's own draws.
    Direct,
    /// Self-normalised mean under the unstabilised ratios.
    Snips,
    /// The same under weights stabilised in the score.
    CalibratedIps,
    /// Outcome model over draws, corrected by weighted residuals.
    DrCpo,
    /// The same with an outcome model fluctuated until its weighted residuals vanish.
    Tmle,
    /// The same with an outcome model fitted under the weights.
    Mrdr,
    /// The mixture of doubly robust estimates of least variance.
    StackedDr,
}

impl Estimator {
    /// All, from the default to the ensemble.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::Snips,
        Self::CalibratedIps,
        Self::DrCpo,
        Self::Tmle,
        Self::Mrdr,
        Self::StackedDr,
    ];

    /// Its name, as the paper and the peer write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Snips => "snips",
            Self::CalibratedIps => "calibrated-ips",
            Self::DrCpo => "dr-cpo",
            Self::Tmle => "tmle",
            Self::Mrdr => "mrdr",
            Self::StackedDr => "stacked-dr",
        }
    }
}

/// An off-policy estimate on the unit scale.
#[derive(Clone, Debug, PartialEq)]
pub struct OffPolicy {
    /// How it was made.
    pub estimator: Estimator,
    /// The estimate.
    pub value: f64,
    /// The influence of each logged row, mean 0.
    pub influence: Vec<f64>,
    /// The estimate with the calibrator without each fold, what is built on it moving along (algorithm 6).
    pub jackknife: Vec<f64>,
    /// The same with the outcome model held, as the peer does: the calibrator's error then counts twice in a doubly
    /// robust estimate, once over the draws and once over the logs. For [`OffPolicy::legacy`] only.
    pub held_jackknife: Vec<f64>,
}

impl OffPolicy {
    /// Variance, degrees of freedom and t interval: CRV1 of the influence by prompt, plus the calibrator's jackknife
    /// (sum form), combined by Welch and Satterthwaite on prompts less one and folds less one. The calibration part's
    /// share is the OUA share.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned prompts or an alpha outside (0, 1); [`InsufficientData`] below two prompts or two folds.
    pub fn spread(&self, prompts: &Clusters, alpha: f64) -> Result<Spread, Unfit> {
        open_unit("alpha", alpha)?;
        let rows = self.influence.len();
        align("prompts", prompts.of_row().len(), rows)?;
        let split = crv1::variance(&self.influence, prompts, &vec![false; rows])?;
        let calibration = inference::jackknife_variance(&self.jackknife)?;
        let sampling = split.total();
        let df = inference::welch(
            sampling,
            split.clusters as f64 - 1.0,
            calibration,
            self.jackknife.len() as f64 - 1.0,
        );
        let se = (sampling + calibration).sqrt();
        Ok(Spread {
            sampling,
            calibration,
            se,
            df,
            df_method: if calibration > 0.0 {
                DfMethod::WelchSatterthwaite
            } else {
                DfMethod::Cluster
            },
            interval: Interval::student(self.value, se, df, alpha),
        })
    }

    /// The interval that the peer reports.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned folds; [`InsufficientData`] below two rows, clusters or jackknife values.
    pub fn legacy(&self, folds: Option<&[usize]>) -> Result<Legacy, Unfit> {
        let rows = self.influence.len();
        let calibration = inference::jackknife_variance(&self.held_jackknife)?;
        let freedom = self.held_jackknife.len() - 1;
        let (sampling, df) = if let Some(folds) = folds {
            align("folds", folds.len(), rows)?;
            let clusters = Clusters::of(folds.iter().copied())?;
            let split = crv1::variance(&self.influence, &clusters, &vec![false; rows])?;
            (split.total(), freedom.min(split.clusters - 1))
        } else {
            InsufficientData::unless("rows", rows, 2)?;
            let squares = inference::squares(&self.influence);
            let n = rows as f64;
            (squares / (n - 1.0) / n, freedom)
        };
        Ok(Legacy {
            sampling,
            calibration,
            se: (sampling + calibration).sqrt(),
            df,
        })
    }
}

/// The standard error of `cje-eval` 0.3.0: the influence clustered on the few folds (or on nothing, for single-pass
/// weights), plus the jackknife; its degrees of freedom are the fewer of both. Wide and noisy on five folds: kept to
/// compare, not to decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Legacy {
    /// Sampling variance.
    pub sampling: f64,
    /// Jackknife variance of the calibrator.
    pub calibration: f64,
    /// Standard error of both.
    pub se: f64,
    /// Degrees of freedom.
    pub df: usize,
}

/// Values less their mean.
pub(super) fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = math::mean(&values);
    for value in &mut values {
        *value -= mean;
    }
    values
}

/// The self-normalised mean `sum w R / sum w` of the full model's rewards (algorithm 3), with the Hajek influence
/// `w (R_oof - psi) / mean w` on out-of-fold rewards. With unstabilised weights it is SNIPS, with stabilised ones
/// calibrated IPS; `estimator` says which.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn weighted_mean(
    estimator: Estimator,
    logged: &LoggedRows<'_>,
    weights: Weights<'_>,
) -> Result<OffPolicy, SampleError> {
    let weights = weights.as_slice();
    align("weights", weights.len(), logged.len())?;
    let total = math::sum(weights);
    let mean = total / weights.len() as f64;
    let under = |rewards: &[f64]| math::dot(weights, rewards) / total;
    let value = under(logged.rewards().full());
    let rows = weights.iter().zip(logged.out_of_fold());
    let influence = rows.map(|(w, r)| w * (r - value) / mean).collect();
    let folds = logged.rewards().without_fold();
    let jackknife: Vec<f64> = folds.iter().map(|fold| under(fold)).collect();
    Ok(OffPolicy {
        estimator,
        value,
        influence: centred(influence),
        held_jackknife: jackknife.clone(),
        jackknife,
    })
}

/// The peer's influence for cross-fitted weights: estimate and mean weight of each outer fold come from the unstabilised
/// weights outside it. For [`OffPolicy::legacy`] only.
///
/// # Errors
/// [`SampleError`] for misaligned columns or an outer fold that was not fitted.
pub fn legacy_honest(
    logged: &LoggedRows<'_>,
    stabilised: &CrossFitted,
    outer: &[usize],
) -> Result<OffPolicy, SampleError> {
    align("outer folds", outer.len(), logged.len())?;
    if outer.iter().any(|&fold| fold >= stabilised.folds.len()) {
        return Err(SampleError::Parameter {
            name: "outer folds",
            expected: "folds of the stabilised weights",
        });
    }
    let weights = Weights::new("weights", &stabilised.weights, logged.len())?;
    let mut estimate = weighted_mean(Estimator::CalibratedIps, logged, weights)?;
    let influence = (0..logged.len()).map(|row| {
        let fold = &stabilised.folds[outer[row]];
        let mean = if fold.mean_outside > 0.0 {
            fold.mean_outside
        } else {
            1.0
        };
        stabilised.weights[row] * (logged.out_of_fold()[row] - fold.estimate_outside) / mean
    });
    estimate.influence = centred(influence.collect());
    Ok(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offpolicy::Rewards;

    #[test]
    fn equal_weights_give_the_mean_and_its_error() {
        let rewards = vec![0.2, 0.4, 0.9, 0.5];
        let columns =
            Rewards::new(rewards.clone(), vec![rewards.clone(), rewards.clone()]).unwrap();
        let prompts = Clusters::singletons(4).unwrap();
        let logged = LoggedRows::new(&columns, &[0, 1, 0, 1], &prompts).unwrap();
        let ones = Weights::new("w", &[2.0; 4], 4).unwrap();
        let found = weighted_mean(Estimator::Snips, &logged, ones).unwrap();
        assert!((found.value - 0.5).abs() < 1e-15);
        let spread = found.spread(&prompts, 0.05).unwrap();
        let error = inference::standard_deviation(&rewards).unwrap() / 2.0;
        assert!((spread.se - error).abs() < 1e-15 && (spread.df - 3.0).abs() < 1e-12);
        let legacy = found.legacy(None).unwrap();
        assert!((legacy.se - error).abs() < 1e-15 && legacy.df == 1);
        let one = Clusters::of([0; 4]).unwrap();
        assert!(matches!(
            found.spread(&one, 0.05),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(found.spread(&prompts, f64::NAN).is_err());
    }

    #[test]
    fn one_dominant_row_is_the_estimate() {
        let columns = Rewards::new(vec![0.2, 0.9], vec![vec![0.3, 0.8], vec![0.1, 1.0]]).unwrap();
        let prompts = Clusters::singletons(2).unwrap();
        let logged = LoggedRows::new(&columns, &[0, 1], &prompts).unwrap();
        let alone = Weights::new("w", &[0.0, 2.0], 2).unwrap();
        let found = weighted_mean(Estimator::Snips, &logged, alone).unwrap();
        assert!((found.value - 0.9).abs() < 1e-15);
        assert_eq!(found.jackknife, [0.8, 1.0]);
    }
}
