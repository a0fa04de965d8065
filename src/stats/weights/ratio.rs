//! Log-ratios, and the weights that they give.

use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use clover_num::math;

/// Largest power of e that a double holds.
const EXPONENT_MAX: f64 = 709.78;

/// One log-ratio per logged row: finite, or minus infinity where the target cannot write the row; some are finite.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRatios(Vec<f64>);

impl LogRatios {
    /// `target - base`, each in nats: log-probabilities of one row's text under the target and under the logger.
    ///
    /// # Errors
    /// [`SampleError`] for no rows, columns of different lengths, a logger's log-probability that is not finite (it wrote
    /// the row), a target's that is NaN or plus infinity, or either above 0. A missing one is no number: such rows are
    /// filtered and counted before. [`InsufficientData`] if the target can write no row: nothing overlaps.
    pub fn new(target: &[f64], base: &[f64]) -> Result<Self, Unfit> {
        let base = Values::new("logger log-probabilities", base)?;
        align("target log-probabilities", target.len(), base.len())?;
        for (row, (&target, &base)) in target.iter().zip(base.as_slice()).enumerate() {
            if target.is_nan() || target.is_infinite() && target > 0.0 {
                return Err(Unfit::Invalid(SampleError::NotFinite {
                    column: "target log-probabilities",
                    row,
                }));
            }
            if target > 0.0 || base > 0.0 {
                return Err(Unfit::Invalid(SampleError::Parameter {
                    name: "log-probabilities",
                    expected: "numbers of at most 0",
                }));
            }
        }
        let ratios = target.iter().zip(base.as_slice()).map(|(t, b)| t - b);
        Self::of(ratios.collect())
    }

    /// Ratios that were computed elsewhere.
    ///
    /// # Errors
    /// [`SampleError`] for no rows, NaN or plus infinity; [`InsufficientData`] if none is finite.
    pub fn of(ratios: Vec<f64>) -> Result<Self, Unfit> {
        if ratios.is_empty() {
            return Err(Unfit::Invalid(SampleError::Empty {
                column: "log-ratios",
            }));
        }
        let wrong = |ratio: &f64| ratio.is_nan() || ratio.is_infinite() && *ratio > 0.0;
        if let Some(row) = ratios.iter().position(wrong) {
            return Err(Unfit::Invalid(SampleError::NotFinite {
                column: "log-ratios",
                row,
            }));
        }
        let finite = ratios.iter().filter(|ratio| ratio.is_finite()).count();
        InsufficientData::unless("rows that the target can write", finite, 1)?;
        Ok(Self(ratios))
    }

    /// The ratios, in nats.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// Rows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The ratios of some rows.
    ///
    /// # Errors
    /// [`InsufficientData`] or [`SampleError`] as [`LogRatios::of`].
    pub fn select(&self, rows: &[usize]) -> Result<Self, Unfit> {
        Self::of(rows.iter().map(|&row| self.0[row]).collect())
    }

    /// Self-normalised weights (SNIPS, Hajek): `w_i = n exp(l_i - max l) / sum_j exp(l_j - max l)`; their mean is 1 and
    /// the largest exponent is 0, so nothing overflows. A row that the target cannot write has weight 0.
    pub fn mean_one(&self) -> Vec<f64> {
        let largest = self.0.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let scaled: Vec<f64> = self.0.iter().map(|l| math::exp(l - largest)).collect();
        let rows = self.0.len() as f64;
        // One row has e^0: the sum is at least 1.
        let total = math::sum(&scaled);
        scaled.iter().map(|w| rows * w / total).collect()
    }

    /// The ratios themselves, `exp(l_i)`, held at e^709.78 (about 1.8e308), and how many were held. For display and for
    /// shares of small ratios; sums of them may be infinite.
    pub fn raw(&self) -> (Vec<f64>, usize) {
        let held = self.0.iter().filter(|&&l| l > EXPONENT_MAX).count();
        let raw = self.0.iter().map(|&l| math::exp(l.min(EXPONENT_MAX)));
        (raw.collect(), held)
    }

    /// Share of rows whose ratio is below `threshold` (above 0), compared as logarithms.
    pub fn share_below(&self, threshold: f64) -> f64 {
        let edge = math::ln(threshold);
        let below = self.0.iter().filter(|&&l| l < edge).count();
        below as f64 / self.0.len() as f64
    }
}

/// Weights that were capped.
#[derive(Clone, Debug, PartialEq)]
pub struct CappedWeights {
    /// Mean-one weights.
    pub weights: Vec<f64>,
    /// Rows that the cap cut.
    pub cut: usize,
}

/// Caps mean-one weights at `at` and restores their mean: `n min(w_i, at) / sum_j min(w_j, at)` (`cje-eval` 0.3.0,
/// clipping after normalisation). Trades variance for bias towards the logger.
///
/// # Errors
/// [`SampleError::Parameter`] unless `at` is above 0 and finite.
pub fn cap(weights: Weights<'_>, at: f64) -> Result<CappedWeights, SampleError> {
    if !(at.is_finite() && at > 0.0) {
        return Err(SampleError::Parameter {
            name: "cap",
            expected: "a finite number above 0",
        });
    }
    let weights = weights.as_slice();
    let cut = weights.iter().filter(|&&w| w > at).count();
    let held: Vec<f64> = weights.iter().map(|w| w.min(at)).collect();
    Ok(CappedWeights {
        weights: mean_one(&held),
        cut,
    })
}

/// Weights scaled to mean one; the input if it has no positive sum.
pub(super) fn mean_one(weights: &[f64]) -> Vec<f64> {
    let mean = math::mean(weights);
    if mean > 0.0 && mean.is_finite() {
        weights.iter().map(|w| w / mean).collect()
    } else {
        weights.to_vec()
    }
}

/// The self-normalised estimate under one cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapPoint {
    /// The cap, in multiples of the mean weight.
    pub cap: f64,
    /// Rows it cut.
    pub cut: usize,
    /// `sum w R / sum w`.
    pub estimate: f64,
    /// Its standard error from independent rows, `sqrt(sum (w (R - estimate))^2 / (n (n - 1)))` for mean-one w; `None`
    /// for one row.
    pub standard_error: Option<f64>,
}

/// How the self-normalised estimate and its width move with the cap (CJE paper, table 9, row Cap): one point per cap.
///
/// # Errors
/// [`SampleError`] for misaligned rewards or a cap that is not a finite number above 0.
pub fn cap_curve(
    weights: Weights<'_>,
    rewards: Values<'_>,
    caps: &[f64],
) -> Result<Vec<CapPoint>, SampleError> {
    align("rewards", rewards.len(), weights.as_slice().len())?;
    let rows = rewards.len() as f64;
    let point = |at: f64| {
        let capped = cap(weights, at)?;
        let estimate = math::dot(&capped.weights, rewards.as_slice()) / rows;
        let pairs = capped.weights.iter().zip(rewards.as_slice());
        let scores: Vec<f64> = pairs.map(|(w, r)| w * (r - estimate)).collect();
        let variance = math::dot(&scores, &scores) / (rows * (rows - 1.0));
        Ok(CapPoint {
            cap: at,
            cut: capped.cut,
            estimate,
            standard_error: (rows > 1.0).then(|| variance.sqrt()),
        })
    };
    caps.iter().map(|&at| point(at)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(ratios: &[f64]) -> LogRatios {
        LogRatios::of(ratios.to_vec()).unwrap()
    }

    #[test]
    fn equal_ratios_weigh_one_and_one_dominant_weighs_all() {
        assert_eq!(of(&[-3.5; 7]).mean_one(), [1.0; 7]);
        let dominant = of(&[0.0, -800.0, 900.0, f64::NEG_INFINITY]).mean_one();
        assert_eq!(dominant, [0.0, 0.0, 4.0, 0.0]);
        assert_eq!(of(&[f64::NEG_INFINITY, -1e6]).mean_one(), [0.0, 2.0]);
    }

    #[test]
    fn what_overflows_is_held_and_counted() {
        let ratios = of(&[800.0, 1.0, -800.0]);
        let (raw, held) = ratios.raw();
        assert_eq!(held, 1);
        assert!(raw[0].is_finite() && raw[0] > 1e307);
        assert!((ratios.share_below(1e-10) - 1.0 / 3.0).abs() < 1e-15);
        assert!(ratios.mean_one().iter().all(|w| w.is_finite()));
    }

    #[test]
    fn what_is_no_log_probability_is_refused() {
        let new = LogRatios::new;
        assert!(matches!(new(&[-1.0], &[f64::NAN]), Err(Unfit::Invalid(_))));
        assert!(matches!(new(&[f64::NAN], &[-1.0]), Err(Unfit::Invalid(_))));
        assert!(matches!(new(&[0.5], &[-1.0]), Err(Unfit::Invalid(_))));
        assert!(matches!(
            new(&[-1.0, -1.0], &[-1.0]),
            Err(Unfit::Invalid(_))
        ));
        assert!(matches!(
            new(&[-1.0], &[f64::NEG_INFINITY]),
            Err(Unfit::Invalid(_))
        ));
        assert!(matches!(
            new(&[f64::NEG_INFINITY], &[-1.0]),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(LogRatios::of(vec![f64::INFINITY]).is_err());
        assert!(LogRatios::of(Vec::new()).is_err());
        let ratios = new(&[-2.0, f64::NEG_INFINITY], &[-1.0, -1.0]).unwrap();
        assert_eq!(ratios.as_slice()[0].to_bits(), (-1.0_f64).to_bits());
        assert!(matches!(
            ratios.select(&[1]),
            Err(Unfit::InsufficientData(_))
        ));
    }

    #[test]
    fn a_cap_cuts_and_restores_the_mean() {
        let weights = [0.0, 0.0, 4.0, 0.0];
        let capped = cap(Weights::new("w", &weights, 4).unwrap(), 1.0).unwrap();
        assert_eq!((capped.weights, capped.cut), (vec![0.0, 0.0, 4.0, 0.0], 1));
        let weights = [0.5, 0.5, 2.0];
        let curve = cap_curve(
            Weights::new("w", &weights, 3).unwrap(),
            Values::new("r", &[0.0, 0.0, 1.0]).unwrap(),
            &[10.0, 0.5],
        )
        .unwrap();
        assert!((curve[0].estimate - 2.0 / 3.0).abs() < 1e-15 && curve[0].cut == 0);
        assert!((curve[1].estimate - 1.0 / 3.0).abs() < 1e-15 && curve[1].cut == 1);
        assert!(cap(Weights::new("w", &weights, 3).unwrap(), f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn a_common_factor_leaves_the_weights(
            ratios in prop::collection::vec(-300.0..300.0_f64, 1..30), shift in -200.0..200.0_f64,
        ) {
            let plain = of(&ratios).mean_one();
            let moved: Vec<f64> = ratios.iter().map(|l| l + shift).collect();
            for (a, b) in plain.iter().zip(of(&moved).mean_one()) {
                prop_assert!((a - b).abs() <= 1e-9 * a.max(1e-300));
            }
            prop_assert!((math::mean(&plain) - 1.0).abs() < 1e-12);
        }
    }
}
