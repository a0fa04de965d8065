//! Uncertainty from a calibrator that was itself fitted on few labels: its variance, its share, what to buy next.
//!
//! With K leave-one-fold-out models, `Var_OUA = (K-1)/K sum_k (V^(-k) - Vbar)^2` (sum over folds, not mean), and
//! `share = Var_OUA / (Var_main + Var_OUA)`. Source: the CJE paper, appendix A.7; CLOVER v1.1, section 8.

use crate::crv1;
use crate::inference;
use crate::quantile::Edges;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use clover_num::math;

/// Share from which an iteration pauses for labels.
pub const PAUSE_SHARE: f64 = 0.30;
/// Share up to which cheap scores are the better purchase.
pub const LOW_SHARE: f64 = 0.10;
/// One-sided 95 % normal critical value of the promising gain.
const CRITICAL_ONE_SIDED: f64 = 1.645;
/// Bins of the calibrated reward.
const DECILES: usize = 10;

/// Mean of the jackknife variances of several fold seeds, each a row of K fold values: with five folds one alone has
/// about 4 degrees of freedom, so a gate averages over 20 seeds.
///
/// # Errors
/// [`Unfit::InsufficientData`] without seeds, or for fewer than two folds.
pub fn averaged_variance(seeds: &[Values<'_>]) -> Result<f64, Unfit> {
    InsufficientData::unless("fold seeds", seeds.len(), 1)?;
    let mut variances = Vec::with_capacity(seeds.len());
    for fold_values in seeds {
        variances.push(inference::jackknife_variance(fold_values.as_slice())?);
    }
    Ok(math::mean(&variances))
}

/// Variance of a value and the part of it that comes from the calibrator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Rows.
    pub rows: usize,
    /// Sampling variance of the value.
    pub main: f64,
    /// Calibration variance.
    pub oua: f64,
}

impl Share {
    /// `oua / (main + oua)` in [0, 1]; `None` if both are 0.
    pub fn share(&self) -> Option<f64> {
        let total = self.main + self.oua;
        (total > 0.0).then(|| self.oua / total)
    }
}

/// Sampling variance of a mean: `sum phi^2 / n^2`, phi = value - mean; `C/(C-1) sum_c (sum phi)^2 / n^2` if some
/// cluster has two rows.
///
/// # Errors
/// [`Unfit::Invalid`] for misaligned clusters; [`Unfit::InsufficientData`] for one cluster.
pub fn main_variance(values: Values<'_>, clusters: &Clusters) -> Result<f64, Unfit> {
    align("clusters", clusters.of_row().len(), values.len())?;
    let found = crv1::mean(values.as_slice(), clusters, None);
    InsufficientData::unless("clusters", found.clusters, 2)?;
    let robust = found.variance.map_or(0.0, |variance| variance.total());
    if found.clusters == found.rows {
        return Ok(robust * found.df() / found.clusters as f64);
    }
    Ok(robust)
}

/// Share of a plug-in mean: `rewards` are R of the full model, each of `fold_rewards` those of one fold model on
/// the same rows.
///
/// # Errors
/// As [`main_variance`] and [`inference::jackknife_variance`].
pub fn share(
    rewards: Values<'_>,
    fold_rewards: &[Values<'_>],
    clusters: &Clusters,
) -> Result<Share, Unfit> {
    for fold in fold_rewards {
        align("fold rewards", fold.len(), rewards.len())?;
    }
    let values: Vec<f64> = fold_rewards
        .iter()
        .map(|fold| math::mean(fold.as_slice()))
        .collect();
    InsufficientData::unless("folds", values.len(), 2)?;
    Ok(Share {
        rows: rewards.len(),
        main: main_variance(rewards, clusters)?,
        oua: inference::jackknife_variance(&values)?,
    })
}

/// Shares by decile of the full model's R, lowest first; ties merge deciles, and a decile of one cluster is `None`.
///
/// # Errors
/// As [`share`].
pub fn share_by_decile(
    rewards: Values<'_>,
    fold_rewards: &[Values<'_>],
    clusters: &Clusters,
) -> Result<Vec<Option<Share>>, Unfit> {
    align("clusters", clusters.of_row().len(), rewards.len())?;
    InsufficientData::unless("folds", fold_rewards.len(), 2)?;
    let members = Edges::equal_frequency(rewards, DECILES)?.rows(rewards);
    let mut shares = Vec::with_capacity(members.len());
    for rows in members {
        if rows.is_empty() {
            shares.push(None);
            continue;
        }
        let pick = |values: Values<'_>| -> Vec<f64> {
            rows.iter().map(|&row| values.as_slice()[row]).collect()
        };
        let mut folds = Vec::with_capacity(fold_rewards.len());
        for fold in fold_rewards {
            align("fold rewards", fold.len(), rewards.len())?;
            folds.push(pick(*fold));
        }
        let folds: Vec<Values<'_>> = folds
            .iter()
            .map(|fold| Values::new("fold rewards", fold))
            .collect::<Result<_, SampleError>>()?;
        let picked = pick(rewards);
        let here = clusters.select(&rows)?;
        match share(Values::new("rewards", &picked)?, &folds, &here) {
            Ok(share) => shares.push(Some(share)),
            Err(Unfit::InsufficientData(_)) => shares.push(None),
            Err(invalid) => return Err(invalid),
        }
    }
    Ok(shares)
}

/// A Risk slice as the promising gain needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskSlice {
    /// Exposure w, share of all logs.
    pub exposure: f64,
    /// Shrunk mean residual.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// Lower confidence bound on the fall of the global MSE from correcting the mean of every Risk slice of one family,
/// the largest over families: `max_F sum_g w_g max(0, |mean_g| - 1.645 se_g)^2`; 0 without Risk slices.
pub fn promising_gain(families: &[Vec<RiskSlice>]) -> f64 {
    let gain = |family: &Vec<RiskSlice>| {
        let terms: Vec<f64> = family
            .iter()
            .map(|slice| {
                let sure = (slice.mean.abs() - CRITICAL_ONE_SIDED * slice.standard_error).max(0.0);
                slice.exposure * sure * sure
            })
            .collect();
        math::sum(&terms)
    };
    families.iter().map(gain).fold(0.0, f64::max)
}

/// What the next money buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purchase {
    /// Labels.
    Labels,
    /// Judge scores.
    Scores,
}

/// What the share of the calibrator means for an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Stop and buy labels.
    PauseForLabels,
    /// The share would pause it, but the gain in sight is at least eta.
    ProceedOnPromise,
    /// Go on; the balance rule says what to buy.
    Proceed(Purchase),
}

/// Prices and sizes that the balance rule compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Rows scored.
    pub scores: usize,
    /// Rows labelled.
    pub labels: usize,
    /// Price of a score.
    pub score_cost: f64,
    /// Price of a label.
    pub label_cost: f64,
}

impl Balance {
    /// Share of the spend that went into labels, `cY m / (cS n + cY m)`.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless both prices are above 0 and something was bought.
    pub fn label_spend(&self) -> Result<f64, SampleError> {
        let labels = self.label_cost * self.labels as f64;
        let total = self.score_cost * self.scores as f64 + labels;
        let priced = self.score_cost > 0.0 && self.label_cost > 0.0;
        if !priced || !total.is_finite() || total <= 0.0 {
            return Err(SampleError::Parameter {
                name: "balance",
                expected: "prices above 0 and some rows",
            });
        }
        Ok(labels / total)
    }
}

/// The OUA gate: pauses from a share of 0.30 unless `gain >= eta`; between 0.10 and 0.30 buys labels if the share
/// exceeds the labels' share of the spend; at 0.10 or less buys scores.
///
/// # Errors
/// [`SampleError::Parameter`] for a share outside [0, 1] or what [`Balance::label_spend`] refuses.
pub fn budget(share: f64, gain: f64, eta: f64, balance: &Balance) -> Result<Budget, SampleError> {
    if !(0.0..=1.0).contains(&share) || gain.is_nan() || eta.is_nan() {
        return Err(SampleError::Parameter {
            name: "share",
            expected: "a share in [0, 1] beside a gain and an eta",
        });
    }
    let spend = balance.label_spend()?;
    if share >= PAUSE_SHARE {
        if gain >= eta {
            return Ok(Budget::ProceedOnPromise);
        }
        return Ok(Budget::PauseForLabels);
    }
    if share > LOW_SHARE && share > spend {
        return Ok(Budget::Proceed(Purchase::Labels));
    }
    Ok(Budget::Proceed(Purchase::Scores))
}

/// Gate P10: whether the share is at least 0.30 while the confirmed improvement is below twice eta.
///
/// `delta_mse` is the change on confirm, negative when better. `None` if a number is NaN.
pub fn gain_is_within_calibration_noise(share: f64, delta_mse: f64, eta: f64) -> Option<bool> {
    if share.is_nan() || delta_mse.is_nan() || eta.is_nan() {
        return None;
    }
    Some(share >= PAUSE_SHARE && delta_mse > -2.0 * eta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> Values<'_> {
        Values::new("values", values).unwrap()
    }

    #[test]
    fn the_appendix_is_reproduced() {
        // source: CLOVER v1.1 engineering specification, Appendix C, OUA.
        const FOLDS: [f64; 5] = [0.6095, 0.6080, 0.6088, 0.6101, 0.6051];
        let oua = inference::jackknife_variance(&FOLDS).unwrap();
        assert!((oua - 1.2208e-5).abs() < 5e-10, "{oua}");
        let twice = averaged_variance(&[values(&FOLDS), values(&FOLDS)]).unwrap();
        assert!((twice - oua).abs() < 1e-18);
        assert!(averaged_variance(&[]).is_err());
        // 2000 rows with variance .0625 about their mean.
        let rewards: Vec<f64> = (0..2000).map(|i| f64::from(i % 2) * 0.5).collect();
        let clusters = Clusters::singletons(2000).unwrap();
        let main = main_variance(values(&rewards), &clusters).unwrap();
        assert!((main - 3.125e-5).abs() < 1e-15);
        let share = Share {
            rows: 2000,
            main,
            oua,
        }
        .share()
        .unwrap();
        assert!((share - 0.2809).abs() < 5e-5);
        let balance = Balance {
            scores: 2000,
            labels: 400,
            score_cost: 0.01,
            label_cost: 0.16,
        };
        let decision = budget(share, 0.0, 0.001, &balance).unwrap();
        assert_eq!(decision, Budget::Proceed(Purchase::Scores));
    }

    #[test]
    fn the_gate_pauses_only_without_promise() {
        let balance = Balance {
            scores: 1000,
            labels: 10,
            score_cost: 1.0,
            label_cost: 1.0,
        };
        let risk = RiskSlice {
            exposure: 0.2,
            mean: -0.12,
            standard_error: 0.02,
        };
        let gain = promising_gain(&[vec![], vec![risk]]);
        let want = 0.2 * (0.12 - 1.645 * 0.02) * (0.12 - 1.645 * 0.02);
        assert!((gain - want).abs() < 1e-15);
        assert_eq!(
            budget(0.3, 0.0, 0.001, &balance),
            Ok(Budget::PauseForLabels)
        );
        assert_eq!(
            budget(0.3, gain, 0.001, &balance),
            Ok(Budget::ProceedOnPromise)
        );
        let labels = Ok(Budget::Proceed(Purchase::Labels));
        assert_eq!(budget(0.2, 0.0, 0.001, &balance), labels);
        let scores = Ok(Budget::Proceed(Purchase::Scores));
        assert_eq!(budget(0.1, 0.0, 0.001, &balance), scores);
        assert!(budget(f64::NAN, 0.0, 0.001, &balance).is_err());
        assert_eq!(
            gain_is_within_calibration_noise(0.3, -0.0015, 0.001),
            Some(true)
        );
        assert_eq!(
            gain_is_within_calibration_noise(0.3, -0.002, 0.001),
            Some(false)
        );
        assert_eq!(
            gain_is_within_calibration_noise(f64::NAN, -0.002, 0.001),
            None
        );
    }

    #[test]
    fn deciles_cover_every_row() {
        let rewards: Vec<f64> = (0..97).map(|i| f64::from(i * 37 % 97) / 97.0).collect();
        let shifted: Vec<Vec<f64>> = (0..5)
            .map(|k| {
                rewards
                    .iter()
                    .map(|r| r + 0.001 * f64::from(k) * r)
                    .collect()
            })
            .collect();
        let folds: Vec<Values<'_>> = shifted.iter().map(|fold| values(fold)).collect();
        let clusters = Clusters::of((0..97).map(|i| i / 2)).unwrap();
        let deciles = share_by_decile(values(&rewards), &folds, &clusters).unwrap();
        assert_eq!(deciles.len(), 10);
        let rows: usize = deciles.iter().flatten().map(|share| share.rows).sum();
        assert_eq!(rows, 97);
        let flat = [0.4; 97];
        let merged = share_by_decile(values(&flat), &folds, &clusters).unwrap();
        assert_eq!(merged.len(), 1);
        let one = Clusters::of((0..97).map(|_| 0)).unwrap();
        assert!(matches!(
            share(values(&rewards), &folds, &one),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(matches!(
            share(values(&rewards), &folds[..1], &clusters),
            Err(Unfit::InsufficientData(_))
        ));
    }
}
