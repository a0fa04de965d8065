//! Weights as monotone functions of a score, stacked to the least variance (algorithm 2 of the CJE paper).
//!
//! Any weight measurable in the score has no more variance than the ratios it projects; its mean stays one. Candidates
//! are the isotonic projections upwards and downwards; their mixture minimises the variance of the estimate's influence
//! out of fold; a blend with 1 holds the variance under the caps.

use crate::inference;
use crate::isotonic;
use crate::isotonic::ClipBounds;
use crate::isotonic::Curve;
use crate::isotonic::Monotonicity;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use crate::weights::ratio;
use crate::weights::simplex;
use crate::weights::simplex::Square;
use clover_num::math;

/// Shares above minus this count as 0.
const SLACK: f64 = 1e-10;
/// Rows outside a fold below which the fold keeps its unstabilised weights.
const TRAIN_MIN: usize = 10;
/// Rows in a fold below which it keeps its unstabilised weights.
const TEST_MIN: usize = 2;

/// How weights are stabilised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabiliserSettings {
    /// Least effective sample size as a share of rows, in (0, 1]: variance at most `1 / floor - 1`.
    pub ess_floor: Option<f64>,
    /// Largest variance of the mean-one weights, above 0.
    pub variance_cap: Option<f64>,
    /// Whether the unprojected weights are a candidate too.
    pub baseline: bool,
    /// Added to the covariance's diagonal, as a share of its mean.
    pub ridge: f64,
    /// Least weight of a candidate before it is scaled to mean one.
    pub floor: f64,
}

impl Default for StabiliserSettings {
    /// `cje-eval` 0.3.0: floor 0.2, cap 1, no baseline, ridge 1e-8, least weight 1e-9.
    fn default() -> Self {
        Self {
            ess_floor: Some(0.2),
            variance_cap: Some(1.0),
            baseline: false,
            ridge: 1e-8,
            floor: 1e-9,
        }
    }
}

impl StabiliserSettings {
    fn check(&self) -> Result<(), SampleError> {
        let floor = self
            .ess_floor
            .is_none_or(|floor| floor > 0.0 && floor <= 1.0);
        let cap = self.variance_cap.is_none_or(|cap| cap > 0.0);
        let small = self.ridge >= 0.0 && self.floor > 0.0 && self.ridge.is_finite();
        if floor && cap && small && self.floor.is_finite() {
            return Ok(());
        }
        Err(SampleError::Parameter {
            name: "stabilisation",
            expected: "a floor in (0, 1], a cap above 0, a ridge of at least 0 and a least weight above 0",
        })
    }

    /// How far to blend towards 1 so that a variance meets the caps: `max over caps of 1 - sqrt(cap / variance)`, 0 below
    /// them. A floor of 1 asks for variance 0 and gives 1.
    fn blend(&self, variance: f64) -> f64 {
        let caps = [
            self.ess_floor.map(|floor| 1.0 / floor - 1.0),
            self.variance_cap,
        ];
        let over = caps.into_iter().flatten().filter(|cap| variance > *cap);
        over.map(|cap| 1.0 - (cap / variance).sqrt())
            .fold(0.0, f64::max)
            .clamp(0.0, 1.0)
    }
}

/// What the mixture makes precise.
#[derive(Clone, Copy, Debug)]
pub enum Objective<'a> {
    /// The self-normalised mean of these rewards.
    Rewards(&'a [f64]),
    /// The correction of a doubly robust estimate: reward less outcome model, both out of fold.
    Residuals(&'a [f64]),
}

impl<'a> Objective<'a> {
    fn values(self) -> &'a [f64] {
        match self {
            Self::Rewards(values) | Self::Residuals(values) => values,
        }
    }
}

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The weights as they are.
    Baseline,
    /// Their projection on nondecreasing functions of the score.
    Increasing,
    /// Their projection on nonincreasing functions of the score.
    Decreasing,
}

impl Shape {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Increasing => "increasing",
            Self::Decreasing => "decreasing",
        }
    }
}

/// A fitted map from score to weight.
#[derive(Clone, Debug)]
pub struct Stabiliser {
    /// The candidates, each with its share; shares are at least 0 and sum to 1.
    pub mixture: Vec<(Shape, f64)>,
    /// Blend towards 1 that the caps asked for, 0 where they were slack.
    pub blend: f64,
    increasing: Curve,
    decreasing: Curve,
    floor: f64,
}

impl Stabiliser {
    /// Fits on rows: mean-one or unscaled `weights`, the ordering `index` (out-of-fold rewards where there are any, else
    /// scores), what to make precise, and the fold of each row, used out of fold to choose the mixture only.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns or settings out of range; [`InsufficientData`] below two rows.
    pub fn fit(
        weights: Weights<'_>,
        index: Values<'_>,
        objective: Objective<'_>,
        folds: &[usize],
        settings: &StabiliserSettings,
    ) -> Result<Self, Unfit> {
        settings.check()?;
        let rows = index.len();
        align("weights", weights.as_slice().len(), rows)?;
        align("folds", folds.len(), rows)?;
        Values::aligned("objective", objective.values(), rows)?;
        InsufficientData::unless("rows", rows, 2)?;
        let scaled = ratio::mean_one(weights.as_slice());
        let curve = |direction| {
            let scaled = Values::new("weights", &scaled)?;
            isotonic::fit(index, scaled, None, ClipBounds::default(), direction)
        };
        let mut fitted = Self {
            mixture: Vec::new(),
            blend: 0.0,
            increasing: curve(Monotonicity::Increasing)?,
            decreasing: curve(Monotonicity::Decreasing)?,
            floor: settings.floor,
        };
        let mut shapes = vec![Shape::Increasing, Shape::Decreasing];
        if settings.baseline {
            shapes.insert(0, Shape::Baseline);
        }
        let candidates: Vec<Vec<f64>> = shapes
            .iter()
            .map(|&shape| fitted.candidate(shape, &scaled, index.as_slice()))
            .collect();
        let influence: Vec<Vec<f64>> = candidates
            .iter()
            .map(|candidate| influence(candidate, objective, folds))
            .collect();
        let covariance = Square::covariance(&influence);
        let ridge = settings.ridge * covariance.trace() / shapes.len() as f64;
        let shares = simplex::least_variance(&covariance.plus_diagonal(ridge), SLACK);
        fitted.mixture = shapes.into_iter().zip(shares).collect();
        let stacked = mixed(&fitted.mixture, &candidates);
        fitted.blend = settings.blend(inference::squares(&stacked) / rows as f64);
        Ok(fitted)
    }

    /// A candidate's weights, at least the floor, scaled to mean one over these rows.
    fn candidate(&self, shape: Shape, scaled: &[f64], index: &[f64]) -> Vec<f64> {
        let curve = match shape {
            Shape::Baseline => return scaled.to_vec(),
            Shape::Increasing => &self.increasing,
            Shape::Decreasing => &self.decreasing,
        };
        let at = index.iter().map(|&x| curve.at(x).max(self.floor));
        ratio::mean_one(&at.collect::<Vec<f64>>())
    }

    /// Stabilised weights of rows, mean one over them; an index outside the fitted range counts as its end.
    ///
    /// # Errors
    /// [`SampleError`] for misaligned columns.
    pub fn weights(
        &self,
        weights: Weights<'_>,
        index: Values<'_>,
    ) -> Result<Vec<f64>, SampleError> {
        align("weights", weights.as_slice().len(), index.len())?;
        let scaled = ratio::mean_one(weights.as_slice());
        let candidates: Vec<Vec<f64>> = self
            .mixture
            .iter()
            .map(|(shape, _)| self.candidate(*shape, &scaled, index.as_slice()))
            .collect();
        let stacked = mixed(&self.mixture, &candidates);
        if self.blend <= 0.0 {
            return Ok(stacked);
        }
        let blended = stacked.iter().map(|w| 1.0 + (1.0 - self.blend) * (w - 1.0));
        let held: Vec<f64> = blended.map(|w| w.max(self.floor)).collect();
        Ok(ratio::mean_one(&held))
    }
}

fn mixed(mixture: &[(Shape, f64)], candidates: &[Vec<f64>]) -> Vec<f64> {
    let rows = candidates.first().map_or(0, Vec::len);
    (0..rows)
        .map(|row| {
            mixture
                .iter()
                .zip(candidates)
                .fold(0.0, |sum, ((_, share), of)| sum + share * of[row])
        })
        .collect()
}

/// Influence of each row, the mean weight and the estimate taken from the other folds (`cje-eval` 0.3.0): rewards
/// `[w (R - psi) - psi (w - m)] / m`, residuals `w e / m`. A fold that holds all rows but one has influence 0.
fn influence(weights: &[f64], objective: Objective<'_>, folds: &[usize]) -> Vec<f64> {
    let values = objective.values();
    let count = folds.iter().max().map_or(0, |most| most + 1);
    let mut rows_of = vec![Vec::new(); count];
    for (row, &fold) in folds.iter().enumerate() {
        rows_of[fold].push(row);
    }
    let mut influence = vec![0.0; weights.len()];
    for (fold, inside) in rows_of.iter().enumerate() {
        let outside: Vec<usize> = (0..weights.len())
            .filter(|&row| folds[row] != fold)
            .collect();
        if outside.len() < 2 {
            continue;
        }
        let train: Vec<f64> = outside.iter().map(|&row| weights[row]).collect();
        let total = math::sum(&train);
        let mean = (total / train.len() as f64).max(1e-12);
        let psi = match objective {
            Objective::Residuals(_) => 0.0,
            Objective::Rewards(_) => {
                let of: Vec<f64> = outside.iter().map(|&row| values[row]).collect();
                math::dot(&train, &of) / total.max(1e-12)
            }
        };
        for &row in inside {
            let w = weights[row];
            influence[row] = (w * (values[row] - psi) - psi * (w - mean)) / mean;
        }
    }
    influence
}

/// What one outer fold of [`cross_fit`] learned.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldFit {
    /// The mixture, empty where the fold kept its unstabilised weights.
    pub mixture: Vec<(Shape, f64)>,
    /// The blend towards 1.
    pub blend: f64,
    /// Self-normalised mean of the rewards outside the fold, under the unstabilised weights.
    pub estimate_outside: f64,
    /// Mean unstabilised weight outside the fold.
    pub mean_outside: f64,
}

/// Weights that were stabilised out of fold.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossFitted {
    /// Mean-one weights in row order.
    pub weights: Vec<f64>,
    /// What each outer fold learned.
    pub folds: Vec<FoldFit>,
}

impl CrossFitted {
    /// Share of folds whose caps bound (CJE paper, table 9, row Cap).
    pub fn guarded(&self) -> f64 {
        let bound = self.folds.iter().filter(|fold| fold.blend > 0.0).count();
        bound as f64 / self.folds.len().max(1) as f64
    }
}

/// Stabilises the weights of each outer fold by a map fitted on the others (algorithm 2), then scales all to mean one.
/// A fold of fewer than 2 rows, or with fewer than 10 outside it or no weight among them, keeps its own weights.
///
/// `outer` and `inner` number folds from 0, whole prompts in one fold; they may be the same map.
///
/// # Errors
/// [`SampleError`] for misaligned columns or settings out of range.
pub fn cross_fit(
    weights: Weights<'_>,
    index: Values<'_>,
    objective: Objective<'_>,
    outer: &[usize],
    inner: &[usize],
    settings: &StabiliserSettings,
) -> Result<CrossFitted, SampleError> {
    settings.check()?;
    let rows = index.len();
    for (column, found) in [
        ("weights", weights.as_slice().len()),
        ("outer folds", outer.len()),
        ("inner folds", inner.len()),
    ] {
        align(column, found, rows)?;
    }
    Values::aligned("objective", objective.values(), rows)?;
    let raw = weights.as_slice();
    let count = outer.iter().max().map_or(0, |most| most + 1);
    let mut found = raw.to_vec();
    let mut fits = Vec::with_capacity(count);
    for fold in 0..count {
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..rows).partition(|&row| outer[row] == fold);
        let part = FoldComplement::of(raw, index.as_slice(), objective, inner, &outside);
        let mut fit = part.outside();
        if inside.len() >= TEST_MIN
            && outside.len() >= TRAIN_MIN
            && let Some((stabiliser, stable)) = part.stabilise(raw, index, &inside, settings)?
        {
            for (&row, weight) in inside.iter().zip(&stable) {
                found[row] = *weight;
            }
            fit.mixture = stabiliser.mixture;
            fit.blend = stabiliser.blend;
        }
        fits.push(fit);
    }
    Ok(CrossFitted {
        weights: ratio::mean_one(&found),
        folds: fits,
    })
}

/// The rows outside one fold.
struct FoldComplement {
    weights: Vec<f64>,
    index: Vec<f64>,
    values: Vec<f64>,
    residuals: bool,
    inner: Vec<usize>,
}

impl FoldComplement {
    fn of(
        weights: &[f64],
        index: &[f64],
        objective: Objective<'_>,
        inner: &[usize],
        rows: &[usize],
    ) -> Self {
        let values = objective.values();
        Self {
            weights: rows.iter().map(|&row| weights[row]).collect(),
            index: rows.iter().map(|&row| index[row]).collect(),
            values: rows.iter().map(|&row| values[row]).collect(),
            residuals: matches!(objective, Objective::Residuals(_)),
            inner: rows.iter().map(|&row| inner[row]).collect(),
        }
    }

    fn outside(&self) -> FoldFit {
        let total = math::sum(&self.weights);
        let estimate = if total > 0.0 {
            math::dot(&self.weights, &self.values) / total
        } else {
            math::mean(&self.values)
        };
        FoldFit {
            mixture: Vec::new(),
            blend: 0.0,
            estimate_outside: estimate,
            mean_outside: total / self.weights.len() as f64,
        }
    }

    /// The map of these rows and what it says of those `inside`; `None` where either has no weight.
    fn stabilise(
        &self,
        raw: &[f64],
        index: Values<'_>,
        inside: &[usize],
        settings: &StabiliserSettings,
    ) -> Result<Option<(Stabiliser, Vec<f64>)>, SampleError> {
        let own: Vec<f64> = inside.iter().map(|&row| raw[row]).collect();
        let at: Vec<f64> = inside.iter().map(|&row| index.as_slice()[row]).collect();
        let Ok(train) = Weights::new("weights", &self.weights, self.weights.len()) else {
            return Ok(None);
        };
        let Ok(own) = Weights::new("weights", &own, own.len()) else {
            return Ok(None);
        };
        let objective = if self.residuals {
            Objective::Residuals(&self.values)
        } else {
            Objective::Rewards(&self.values)
        };
        let order = Values::new("index", &self.index)?;
        match Stabiliser::fit(train, order, objective, &self.inner, settings) {
            Ok(fitted) => {
                let stable = fitted.weights(own, Values::new("index", &at)?)?;
                Ok(Some((fitted, stable)))
            }
            Err(Unfit::InsufficientData(_)) => Ok(None),
            Err(Unfit::Invalid(error)) => Err(error),
        }
    }
}

/// The projection of weights on nondecreasing functions of the index, mean one: pool-adjacent-violators of the scaled
/// weights, which keeps their mean, so that no shift has to be searched for (CJE paper, appendix A.3).
///
/// # Errors
/// [`SampleError`] for misaligned columns.
pub fn project(weights: Weights<'_>, index: Values<'_>) -> Result<Vec<f64>, SampleError> {
    align("weights", weights.as_slice().len(), index.len())?;
    let scaled = ratio::mean_one(weights.as_slice());
    let curve = isotonic::fit(
        index,
        Values::new("weights", &scaled)?,
        None,
        ClipBounds::default(),
        Monotonicity::Increasing,
    )?;
    let at = index.as_slice().iter().map(|&x| curve.at(x));
    Ok(ratio::mean_one(&at.collect::<Vec<f64>>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn column(values: &[f64]) -> Values<'_> {
        Values::new("values", values).unwrap()
    }

    fn weigh(values: &[f64]) -> Weights<'_> {
        Weights::new("weights", values, values.len()).unwrap()
    }

    fn folds(rows: usize) -> Vec<usize> {
        (0..rows).map(|row| row % 5).collect()
    }

    fn variance(weights: &[f64]) -> f64 {
        inference::squares(weights) / weights.len() as f64
    }

    #[test]
    fn equal_weights_stay_and_one_dominant_is_spread() {
        let index: Vec<f64> = (0..40).map(|i| f64::from(i % 8) / 8.0).collect();
        let rewards: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 11) / 11.0).collect();
        let fit = |weights: &[f64]| {
            cross_fit(
                weigh(weights),
                column(&index),
                Objective::Rewards(&rewards),
                &folds(40),
                &folds(40),
                &StabiliserSettings::default(),
            )
            .unwrap()
        };
        for weight in fit(&[1.0; 40]).weights {
            assert!((weight - 1.0).abs() < 1e-12);
        }
        let mut dominant = vec![1e-300; 40];
        dominant[3] = 40.0;
        let found = fit(&dominant);
        assert!(found.weights.iter().all(|w| w.is_finite() && *w >= 0.0));
        assert!(variance(&found.weights) < variance(&dominant));
        // Without weight outside its fold, the fold of the dominant row keeps its own weights.
        let mut alone = vec![0.0; 40];
        alone[3] = 40.0;
        let found = fit(&alone);
        assert!(found.folds[3].mixture.is_empty());
        assert!((math::mean(&found.weights) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn caps_bind_and_wrong_settings_are_refused() {
        let index: Vec<f64> = (0..60).map(|i| f64::from(i) / 60.0).collect();
        let weights: Vec<f64> = index.iter().map(|x| math::exp(6.0 * x)).collect();
        // Noise where the target seldom goes: rising weights are part of the least variance.
        let reward = |i: i32| if i < 30 { f64::from(i % 4) / 3.0 } else { 0.5 };
        let rewards: Vec<f64> = (0..60).map(reward).collect();
        let fit = |settings: StabiliserSettings| {
            Stabiliser::fit(
                weigh(&weights),
                column(&index),
                Objective::Rewards(&rewards),
                &folds(60),
                &settings,
            )
        };
        let tight = StabiliserSettings {
            variance_cap: Some(0.01),
            ..StabiliserSettings::default()
        };
        let fitted = fit(tight).unwrap();
        let stable = fitted.weights(weigh(&weights), column(&index)).unwrap();
        assert!(fitted.blend > 0.0 && variance(&stable) <= 0.01 + 1e-9);
        for wrong in [Some(0.0), Some(f64::NAN), Some(1.5)] {
            let settings = StabiliserSettings {
                ess_floor: wrong,
                ..StabiliserSettings::default()
            };
            assert!(fit(settings).is_err());
        }
        let short = Stabiliser::fit(
            weigh(&[1.0]),
            column(&[0.5]),
            Objective::Rewards(&[0.5]),
            &[0],
            &StabiliserSettings::default(),
        );
        assert!(matches!(short, Err(Unfit::InsufficientData(_))));
    }

    proptest! {
        #[test]
        fn a_projection_keeps_the_mean_and_loses_variance(
            rows in prop::collection::vec((0..6u8, 0.0..50.0_f64), 2..40),
        ) {
            let index: Vec<f64> = rows.iter().map(|row| f64::from(row.0)).collect();
            let mut weights: Vec<f64> = rows.iter().map(|row| row.1).collect();
            weights[0] += 1.0;
            let scaled = ratio::mean_one(&weights);
            let projected = project(weigh(&weights), column(&index)).unwrap();
            prop_assert!((math::mean(&projected) - 1.0).abs() < 1e-12);
            prop_assert!(variance(&projected) <= variance(&scaled) + 1e-9);
            for (a, b) in index.iter().zip(&projected) {
                for (c, d) in index.iter().zip(&projected) {
                    prop_assert!(a >= c || b <= &(d + 1e-12));
                }
            }
        }

        #[test]
        fn the_order_of_rows_leaves_no_trace(
            rows in prop::collection::vec((0.0..1.0_f64, 0.01..20.0_f64, 0.0..1.0_f64), 10..40),
        ) {
            let fit = |rows: &[(f64, f64, f64, usize)]| {
                let index: Vec<f64> = rows.iter().map(|row| row.0).collect();
                let weights: Vec<f64> = rows.iter().map(|row| row.1).collect();
                let rewards: Vec<f64> = rows.iter().map(|row| row.2).collect();
                let of: Vec<usize> = rows.iter().map(|row| row.3).collect();
                let fitted = Stabiliser::fit(
                    weigh(&weights), column(&index), Objective::Rewards(&rewards), &of,
                    &StabiliserSettings::default(),
                ).unwrap();
                fitted.weights(weigh(&weights), column(&index)).unwrap()
            };
            let rows: Vec<(f64, f64, f64, usize)> =
                rows.iter().enumerate().map(|(at, row)| (row.0, row.1, row.2, at % 5)).collect();
            let plain = fit(&rows);
            let back: Vec<_> = rows.iter().rev().copied().collect();
            for (a, b) in plain.iter().zip(fit(&back).iter().rev()) {
                prop_assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
        }
    }
}
