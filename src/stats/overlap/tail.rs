//! Hill's estimate of how heavy the upper tail of weights is.

use crate::quantile;
use crate::sample::Weights;
use clover_num::math;

/// Rows below which no tail is estimated.
const ROWS_MIN: usize = 10;
/// Sums of log-ratios below which a tail is level.
const LEVEL: f64 = 1e-10;
/// Shares of rows of the stability sweep.
// source: cje-eval 0.3.0, `hill_tail_index_stable`.
const SWEEP: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// A tail index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// alpha with P(W > w) about w^-alpha: below 2 the variance is infinite, below 1 the mean.
    Index(f64),
    /// All weights of the tail are equal: lighter than any power.
    Level,
    /// Too few rows, or weights of 0 in the tail. Never to be read as light.
    Unknown,
}

impl Tail {
    /// The index; infinity for a level tail.
    pub fn index(self) -> Option<f64> {
        match self {
            Self::Index(alpha) => Some(alpha),
            Self::Level => Some(f64::INFINITY),
            Self::Unknown => None,
        }
    }
}

/// Weights in decreasing order.
fn descending(weights: Weights<'_>) -> Vec<f64> {
    let mut sorted = quantile::ascending(weights.as_slice());
    sorted.reverse();
    sorted
}

/// `k / sum_{j <= k} ln(W_j / edge)` over decreasing weights.
fn index(sorted: &[f64], k: usize, edge: f64) -> Tail {
    if edge <= 0.0 {
        return Tail::Unknown;
    }
    let logs: Vec<f64> = sorted[..k]
        .iter()
        .map(|w| math::ln(*w) - math::ln(edge))
        .collect();
    let total = math::sum(&logs);
    if total.abs() < LEVEL {
        Tail::Level
    } else if total.is_finite() {
        Tail::Index(k as f64 / total)
    } else {
        Tail::Unknown
    }
}

/// The peer's index over the top `share` of rows: `k = max(10, floor(n share))`, at most a tenth of the rows, measured
/// from the weight after the k-th (`cje-eval` 0.3.0).
pub fn hill(weights: Weights<'_>, share: f64) -> Tail {
    hill_sorted(&descending(weights), share)
}

fn hill_sorted(sorted: &[f64], share: f64) -> Tail {
    let rows = sorted.len();
    if rows < ROWS_MIN {
        return Tail::Unknown;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the rows"
    )]
    let of = |share: f64| (rows as f64 * share.clamp(0.0, 1.0)) as usize;
    let k = of(share).max(ROWS_MIN).min(of(0.1));
    sorted
        .get(k)
        .map_or(Tail::Unknown, |&edge| index(sorted, k, edge))
}

/// The paper's index of the top k: measured from the k-th weight itself (CJE paper, appendix D.1). Unknown unless
/// 1 <= k <= rows.
pub fn hill_at(weights: Weights<'_>, k: usize) -> Tail {
    let sorted = descending(weights);
    match k.checked_sub(1).and_then(|last| sorted.get(last)) {
        Some(&edge) => index(&sorted, k, edge),
        None => Tail::Unknown,
    }
}

/// The median of the peer's index over the top 1, 2, 5 and 10 %, of those that are finite; the verdict of table 9 reads
/// this. Level where some are level and none is finite.
pub fn hill_stable(weights: Weights<'_>) -> Tail {
    let sorted = descending(weights);
    let found = SWEEP.map(|share| hill_sorted(&sorted, share));
    let finite = found.iter().filter_map(|tail| match tail {
        Tail::Index(alpha) => Some(*alpha),
        Tail::Level | Tail::Unknown => None,
    });
    let finite = quantile::ascending(&finite.collect::<Vec<f64>>());
    if !finite.is_empty() {
        Tail::Index(quantile::type_7(&finite, 0.5))
    } else if found.contains(&Tail::Level) {
        Tail::Level
    } else {
        Tail::Unknown
    }
}

/// The paper's index over a plateau of k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HillBand {
    /// Least and largest k.
    pub k: (usize, usize),
    /// Lower quartile over k (type 7).
    pub low: f64,
    /// Median over k.
    pub median: f64,
    /// Upper quartile over k.
    pub high: f64,
}

/// Median and quartiles of [`hill_at`] over every k from 1 to 5 % of the rows, at least 2 (CJE paper, appendix D.1).
/// `None` below 40 rows, or where no k of the plateau has an index.
pub fn hill_band(weights: Weights<'_>) -> Option<HillBand> {
    let sorted = descending(weights);
    let rows = sorted.len();
    let (first, last) = ((rows / 100).max(2), rows / 20);
    if last < first {
        return None;
    }
    let found = (first..=last).filter_map(|k| match index(&sorted, k, sorted[k - 1]) {
        Tail::Index(alpha) => Some(alpha),
        Tail::Level | Tail::Unknown => None,
    });
    let found = quantile::ascending(&found.collect::<Vec<f64>>());
    (!found.is_empty()).then(|| HillBand {
        k: (first, last),
        low: quantile::type_7(&found, 0.25),
        median: quantile::type_7(&found, 0.5),
        high: quantile::type_7(&found, 0.75),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(values: &[f64]) -> Weights<'_> {
        Weights::new("w", values, values.len()).unwrap()
    }

    /// Quantiles of a Pareto law: exactly power-tailed.
    fn pareto(alpha: f64, rows: u32) -> Vec<f64> {
        (1..=rows)
            .map(|i| math::pow(f64::from(i) / f64::from(rows + 1), -1.0 / alpha))
            .collect()
    }

    #[test]
    fn a_power_tail_has_its_index() {
        for alpha in [0.7, 1.5, 3.0] {
            let weights = pareto(alpha, 20_000);
            let Tail::Index(found) = hill(weigh(&weights), 0.05) else {
                panic!("{alpha}");
            };
            assert!((found / alpha - 1.0).abs() < 0.02, "{found} {alpha}");
            let band = hill_band(weigh(&weights)).unwrap();
            assert!(band.low <= band.median && band.median <= band.high);
            assert!((band.median / alpha - 1.0).abs() < 0.05, "{band:?}");
            assert!(hill_stable(weigh(&weights)).index().unwrap() > 0.9 * alpha);
        }
    }

    #[test]
    fn level_and_empty_tails_are_not_numbers() {
        assert_eq!(hill(weigh(&[1.0; 100]), 0.05), Tail::Level);
        assert_eq!(hill_stable(weigh(&[1.0; 100])), Tail::Level);
        assert_eq!(hill(weigh(&[1.0; 5]), 0.05), Tail::Unknown);
        let mut sparse = vec![0.0; 100];
        sparse[0] = 1.0;
        assert_eq!(hill(weigh(&sparse), 0.05), Tail::Unknown);
        assert_eq!(hill_stable(weigh(&sparse)), Tail::Unknown);
        assert_eq!(hill_band(weigh(&sparse)), None);
        assert_eq!(hill_at(weigh(&sparse), 0), Tail::Unknown);
        assert_eq!(hill_at(weigh(&sparse), 101), Tail::Unknown);
        assert_eq!(Tail::Unknown.index(), None);
    }
}
