//! The loss of a judge's scores against people's (`schema/SGD.md`).

use clover_num::math;

use super::pairs;
use super::rows::ScoredRows;
use crate::quantile;
use crate::rank;
use crate::rank::PairCounts;
use crate::rank::RowOrder;
use crate::sample::InsufficientData;
use crate::sample::Unfit;
use crate::sample::Values;

/// Bins of the entropy.
const BINS: usize = 10;
/// Where Huber's loss turns from square to linear.
const HUBER_BEND: f64 = 0.1;
/// Share of the rows in the upper and in the lower quantile.
const QUANTILE: f64 = 0.25;
/// Least variance of repeats that instability is measured by.
const SELFVAR_MIN: f64 = 1e-4;
/// Share of the targets' deviation that scores should have at least.
const SPREAD_SHARE: f64 = 0.8;
/// Share of the targets' entropy that scores should have at least.
const ENTROPY_SHARE: f64 = 0.7;

/// How far a score is from its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// |r|.
    Absolute,
    /// r^2 / 2 up to 0.1, then 0.1 (|r| - 0.05).
    Huber,
}

impl Deviation {
    /// The deviation of a residual.
    pub fn of(self, residual: f64) -> f64 {
        let size = residual.abs();
        match self {
            Self::Absolute => size,
            Self::Huber if size <= HUBER_BEND => size * size / 2.0,
            Self::Huber => HUBER_BEND * (size - HUBER_BEND / 2.0),
        }
    }
}

/// How pairs of a high and a low row count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// softplus of the gap at a temperature of 0.1, in units of ln 2: 1 is no separation, 0 a perfect one.
    Logistic,
    /// The share of the human gap that the judge does not reproduce.
    Hinge,
}

/// Weights and forms of the loss; registered before step 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossTerms {
    /// Weight of the deviation.
    pub alpha: f64,
    /// Weight of the ranking.
    pub beta: f64,
    /// Weight of the contraction.
    pub gamma: f64,
    /// Weight of instability.
    pub eta: f64,
    /// Weight of scores that could not be read.
    pub zeta: f64,
    /// The form of the deviation.
    pub deviation: Deviation,
    /// The form of the ranking.
    pub ranking: Ranking,
}

impl Default for LossTerms {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            beta: 0.5,
            gamma: 1.0,
            eta: 0.1,
            zeta: 2.0,
            deviation: Deviation::Absolute,
            ranking: Ranking::Logistic,
        }
    }
}

/// What the terms are divided by, fixed on train before step 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Mean deviation of the targets from their median: a judge that always says the median has an absolute term of 1.
    pub c_abs: f64,
    /// Mean variance of repeats under prompt 0, at least 0.0001.
    pub v_0: f64,
}

impl Constants {
    /// Of the targets of train, and of the mean variance of repeats under prompt 0.
    ///
    /// # Errors
    /// [`InsufficientData`] without targets, or where all of them are equal.
    pub fn of(
        targets: &[f64],
        selfvar: f64,
        deviation: Deviation,
    ) -> Result<Self, InsufficientData> {
        InsufficientData::unless("targets", targets.len(), 2)?;
        let sorted = quantile::ascending(targets);
        let median = quantile::type_7(&sorted, 0.5);
        let all: Vec<f64> = targets
            .iter()
            .map(|target| deviation.of(target - median))
            .collect();
        let c_abs = math::mean(&all);
        let several = if c_abs > 0.0 { 2 } else { 1 };
        InsufficientData::unless("distinct targets", several, 2)?;
        Ok(Self {
            c_abs,
            v_0: selfvar.max(SELFVAR_MIN),
        })
    }
}

/// A loss with its terms, each without its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Mean deviation in units of the constant judge's.
    pub abs: f64,
    /// The rank loss; `None` without a pair.
    pub rank: Option<f64>,
    /// Pairs of a high and a low row.
    pub pairs: u64,
    /// Penalty for contraction, D.
    pub contraction: f64,
    /// `max(0, V / V_0 - 1)`.
    pub instability: f64,
    /// Share of scores that could not be read, phi.
    pub failures: f64,
    /// The weighted sum.
    pub loss: f64,
    /// Mean variance of repeats, V.
    pub selfvar: f64,
    /// Entropy of the mean scores over ten bins, 0 to 1.
    pub entropy: f64,
    /// Standard deviation of the mean scores over that of the targets; `None` where all targets are equal.
    pub sd_ratio: Option<f64>,
    /// Share of the pairs' weight that the judge orders as people do; `None` without a pair.
    pub concordance: Option<f64>,
    /// Kendall's tau-b over all rows; `None` where a side is constant.
    pub tau_b: Option<f64>,
    /// Spearman's rho over all rows; `None` where a side is constant.
    pub spearman: Option<f64>,
}

/// Entropy of values over ten equal bins of [0, 1], in units of ln 10; a value v is in bin floor(10 v), 1 in the last.
pub fn entropy(values: &[f64]) -> f64 {
    let mut counts = [0_u32; BINS];
    for value in values {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "values lie in [0, 1]"
        )]
        let bin = ((value * BINS as f64) as usize).min(BINS - 1);
        counts[bin] += 1;
    }
    let rows = values.len() as f64;
    let filled = counts.into_iter().filter(|count| *count > 0);
    let terms: Vec<f64> = filled
        .map(|count| f64::from(count) / rows)
        .map(|share| -share * math::ln(share))
        .collect();
    // Adding 0 makes one zero of the two.
    math::sum(&terms) / math::ln(BINS as f64) + 0.0
}

/// Standard deviation (n - 1); `None` below two values or where all are equal.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = math::mean(values);
    let squares: Vec<f64> = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .collect();
    let equal = values
        .windows(2)
        .all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0]);
    (!equal && values.len() > 1).then(|| (math::sum(&squares) / (values.len() as f64 - 1.0)).sqrt())
}

/// The loss of rows.
///
/// # Errors
/// [`Unfit::InsufficientData`] below two readable rows.
pub fn loss(rows: &ScoredRows, terms: &LossTerms, constants: &Constants) -> Result<Loss, Unfit> {
    InsufficientData::unless("rows with scores", rows.len(), 2)?;
    let (means, targets) = (rows.means.as_slice(), rows.targets.as_slice());
    let deviations: Vec<f64> = rows
        .residuals()
        .into_iter()
        .map(|of| terms.deviation.of(of))
        .collect();
    let abs = math::mean(&deviations) / constants.c_abs;
    let y = RowOrder::of(Values::new("targets", targets)?);
    let x = Values::new("scores", means)?;
    let sorted = y.ascending(targets);
    let (low, high) = (
        quantile::type_7(&sorted, QUANTILE),
        quantile::type_7(&sorted, 1.0 - QUANTILE),
    );
    let row = || means.iter().copied().zip(targets.iter().copied());
    // Ranks and pairs know nothing of each other.
    let ((counts, spearman), sums) = rayon::join(
        || {
            let x = RowOrder::of(x);
            (PairCounts::of_orders(&x, &y), rank::spearman_of(&x, &y))
        },
        || {
            pairs::sums(
                row().filter(|(_, target)| *target >= high).collect(),
                row().filter(|(_, target)| *target <= low).collect(),
            )
        },
    );
    let share = |sum: f64| (sums.pairs > 0).then(|| sum / sums.weight);
    let rank = share(match terms.ranking {
        Ranking::Logistic => sums.logistic,
        Ranking::Hinge => sums.hinge,
    });
    let sd_ratio = deviation(targets).map(|of| deviation(means).unwrap_or(0.0) / of);
    let (entropy, reference) = (entropy(means), entropy(targets));
    let narrow = sd_ratio.map_or(0.0, |ratio| (1.0 - ratio / SPREAD_SHARE).max(0.0));
    let poor = if reference > 0.0 {
        (ENTROPY_SHARE - entropy / reference).max(0.0)
    } else {
        0.0
    };
    let contraction = narrow * narrow + poor * poor;
    let (selfvar, failures) = (rows.selfvar(), rows.failures());
    let instability = (selfvar / constants.v_0 - 1.0).max(0.0);
    let weighted = [
        terms.alpha * abs,
        terms.beta * rank.unwrap_or(0.0),
        terms.gamma * contraction,
        terms.eta * instability,
        terms.zeta * failures,
    ];
    Ok(Loss {
        abs,
        rank,
        pairs: sums.pairs,
        contraction,
        instability,
        failures,
        loss: weighted.into_iter().sum(),
        selfvar,
        entropy,
        sd_ratio,
        concordance: share(sums.ordered),
        tau_b: counts.tau_b(),
        spearman: spearman.map(|of| of.rho),
    })
}
