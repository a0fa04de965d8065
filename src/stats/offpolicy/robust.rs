//! Doubly robust estimates: an outcome model over the target's draws, corrected by weighted residuals of the logs.

use std::collections::BTreeMap;

use crate::inference;
use crate::offpolicy::estimate::Estimator;
use crate::offpolicy::estimate::OffPolicy;
use crate::offpolicy::outcome::Outcome;
use crate::offpolicy::rewards::Draws;
use crate::offpolicy::rewards::LoggedRows;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use clover_num::math;

/// How far a prediction stays from 0 and 1 on the logistic scale.
const EDGE: f64 = 1e-7;
/// Newton steps of a fluctuation.
const STEPS: usize = 50;
/// Score over the root of its information at which a fluctuation is solved.
const SOLVED: f64 = 1e-8;
/// Longest step.
const STEP_MAX: f64 = 5.0;
/// Information below which the score equation has no direction.
const SINGULAR: f64 = 1e-12;

/// The columns of a doubly robust estimate that its diagnostics read.
#[derive(Clone, Debug, PartialEq)]
pub struct RobustColumns {
    /// The outcome model's mean over each logged row's draws.
    pub direct: Vec<f64>,
    /// The outcome model's prediction of each logged row.
    pub predicted: Vec<f64>,
}

/// DR-CPO (algorithm 4): `mean(g) + mean(w (R - q))`, with R the full model's reward, q the calibrator without the row's
/// fold, g its mean over the row's draws.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn doubly_robust(
    logged: &LoggedRows<'_>,
    draws: &Draws<'_>,
    weights: Weights<'_>,
) -> Result<(OffPolicy, RobustColumns), SampleError> {
    let outcome = Outcome::calibrator(logged, draws);
    corrected(Estimator::DrCpo, logged, draws, weights, &outcome)
}

/// MRDR: the same with an outcome model fitted under the weights ([`Outcome::isotonic`]).
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn more_robust(
    logged: &LoggedRows<'_>,
    draws: &Draws<'_>,
    weights: Weights<'_>,
    outcome: &Outcome,
) -> Result<(OffPolicy, RobustColumns), SampleError> {
    corrected(Estimator::Mrdr, logged, draws, weights, outcome)
}

fn corrected(
    estimator: Estimator,
    logged: &LoggedRows<'_>,
    draws: &Draws<'_>,
    weights: Weights<'_>,
    outcome: &Outcome,
) -> Result<(OffPolicy, RobustColumns), SampleError> {
    align("predictions", outcome.logged.len(), logged.len())?;
    let direct = draws.means(logged, |fold, draw| outcome.draws[fold][draw]);
    let parts = RobustColumns {
        direct,
        predicted: outcome.logged.clone(),
    };
    let found = assembled(estimator, logged, draws, weights, &parts, &outcome.logged)?;
    Ok((found, parts))
}

/// The estimate of given parts. Its jackknife is that of the draws' mean reward; the held one keeps the predictions `held`
/// and moves rewards and draws with the calibrator.
fn assembled(
    estimator: Estimator,
    logged: &LoggedRows<'_>,
    draws: &Draws<'_>,
    weights: Weights<'_>,
    parts: &RobustColumns,
    held: &[f64],
) -> Result<OffPolicy, SampleError> {
    let weights = weights.as_slice();
    align("weights", weights.len(), logged.len())?;
    let residuals = |rewards: &[f64], predicted: &[f64]| -> Vec<f64> {
        (0..weights.len())
            .map(|row| weights[row] * (rewards[row] - predicted[row]))
            .collect()
    };
    let correction = residuals(logged.rewards().full(), &parts.predicted);
    let value = math::mean(&parts.direct) + math::mean(&correction);
    let rows = parts.direct.iter().zip(&correction);
    let influence = rows.map(|(g, u)| g + u - value).collect();
    let folds = 0..logged.rewards().without_fold().len();
    // Reward and outcome model move alike: what is left of the correction does not.
    let jackknife: Vec<f64> = folds
        .clone()
        .map(|fold| {
            let under = &draws.rewards().without_fold()[fold];
            math::mean(&draws.means(logged, |_, draw| under[draw]))
        })
        .collect();
    let held_jackknife = folds.zip(&jackknife).map(|(fold, direct)| {
        let moved = residuals(&logged.rewards().without_fold()[fold], held);
        direct + math::mean(&moved)
    });
    Ok(OffPolicy {
        estimator,
        value,
        influence,
        held_jackknife: held_jackknife.collect(),
        jackknife,
    })
}

/// The mean weight at each distinct score of a fold, linear between and constant beyond.
struct WeightMap {
    scores: Vec<f64>,
    weights: Vec<f64>,
}

impl WeightMap {
    fn of(rows: &[(f64, f64)]) -> Self {
        let mut at: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
        for &(score, weight) in rows {
            let score = score + 0.0;
            let cell = at.entry(score.to_bits()).or_insert((score, 0.0, 0.0));
            cell.1 += weight;
            cell.2 += 1.0;
        }
        let mut cells: Vec<(f64, f64, f64)> = at.into_values().collect();
        cells.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            scores: cells.iter().map(|cell| cell.0).collect(),
            weights: cells.iter().map(|cell| cell.1 / cell.2).collect(),
        }
    }

    /// 1 where the fold has no row.
    fn at(&self, score: f64) -> f64 {
        let above = self.scores.partition_point(|&known| known < score);
        let (Some(first), Some(last)) = (self.weights.first(), self.weights.last()) else {
            return 1.0;
        };
        if above == 0 {
            return *first;
        }
        if above == self.scores.len() {
            return *last;
        }
        let (left, right) = (self.scores[above - 1], self.scores[above]);
        let (low, high) = (self.weights[above - 1], self.weights[above]);
        (high - low) / (right - left) * (score - left) + low
    }
}

/// TMLE: an outcome model moved along `E[w | S]` on the logistic scale until its weighted residuals on the logs vanish,
/// and moved alike on the draws, then corrected by what is left. `logged_scores` and `draw_scores` are judge scores; the
/// weight map is fitted in each fold.
///
/// # Errors
/// [`SampleError`] for misaligned columns.
pub fn targeted(
    logged: &LoggedRows<'_>,
    draws: &Draws<'_>,
    weights: Weights<'_>,
    outcome: &Outcome,
    logged_scores: Values<'_>,
    draw_scores: Values<'_>,
) -> Result<(OffPolicy, RobustColumns), SampleError> {
    align("predictions", outcome.logged.len(), logged.len())?;
    align("weights", weights.as_slice().len(), logged.len())?;
    align("logged scores", logged_scores.len(), logged.len())?;
    align("draw scores", draw_scores.len(), draws.len())?;
    let (folds, scores) = (logged.folds(), logged_scores.as_slice());
    let maps: Vec<WeightMap> = (0..outcome.draws.len())
        .map(|fold| {
            let inside = (0..logged.len()).filter(|&row| folds[row] == fold);
            let rows = inside.map(|row| (scores[row], weights.as_slice()[row]));
            WeightMap::of(&rows.collect::<Vec<_>>())
        })
        .collect();
    let clever: Vec<f64> = (0..logged.len())
        .map(|row| maps[folds[row]].at(scores[row]))
        .collect();
    let shift = fluctuation(&outcome.logged, logged.rewards().full(), &clever);
    let moved = |q: f64, h: f64| expit(logit(q) + shift * h);
    let parts = RobustColumns {
        direct: draws.means(logged, |fold, draw| {
            let h = maps[fold].at(draw_scores.as_slice()[draw]);
            moved(outcome.draws[fold][draw], h)
        }),
        predicted: outcome
            .logged
            .iter()
            .zip(&clever)
            .map(|(&q, &h)| moved(q, h))
            .collect(),
    };
    let found = assembled(
        Estimator::Tmle,
        logged,
        draws,
        weights,
        &parts,
        &outcome.logged,
    )?;
    Ok((found, parts))
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + math::exp(-x))
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(EDGE, 1.0 - EDGE);
    math::ln(p) - math::ln(1.0 - p)
}

/// The epsilon with `sum h (R - expit(logit q + epsilon h)) = 0` by Newton's method with steps of at most 5; 0 where h is,
/// the last iterate where the information vanishes.
fn fluctuation(predicted: &[f64], rewards: &[f64], clever: &[f64]) -> f64 {
    let offset: Vec<f64> = predicted.iter().map(|&q| logit(q)).collect();
    let mut shift = 0.0;
    if inference::squares(clever) <= 0.0 && clever.iter().all(|h| h.abs() <= 0.0) {
        return shift;
    }
    for _ in 0..STEPS {
        let at: Vec<f64> = offset
            .iter()
            .zip(clever)
            .map(|(x, h)| expit(x + shift * h))
            .collect();
        let away: Vec<f64> = rewards.iter().zip(&at).map(|(r, m)| r - m).collect();
        let score = math::dot(clever, &away);
        let curve: Vec<f64> = clever
            .iter()
            .zip(&at)
            .map(|(h, m)| h * h * m * (1.0 - m))
            .collect();
        let information = math::sum(&curve);
        // What is NaN ends it too.
        let singular = information.is_nan() || information <= SINGULAR;
        if singular || score.abs() / information.sqrt() <= SOLVED {
            break;
        }
        shift += (score / information).clamp(-STEP_MAX, STEP_MAX);
    }
    shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offpolicy::Rewards;
    use crate::sample::Clusters;

    #[test]
    fn a_fluctuation_solves_its_score() {
        let q = [0.2, 0.5, 0.8, 0.4];
        let rewards = [0.4, 0.6, 0.7, 0.9];
        let h = [1.0, 2.0, 0.5, 1.5];
        let shift = fluctuation(&q, &rewards, &h);
        let score: f64 = (0..4)
            .map(|i| h[i] * (rewards[i] - expit(logit(q[i]) + shift * h[i])))
            .sum();
        assert!(shift > 0.0 && score.abs() < 1e-7, "{shift} {score}");
        assert!(fluctuation(&q, &rewards, &[0.0; 4]).abs() <= 0.0);
        assert!(fluctuation(&[0.0; 4], &[1.0; 4], &h).is_finite());
    }

    #[test]
    fn weights_are_read_between_scores() {
        let map = WeightMap::of(&[(0.5, 1.0), (0.5, 3.0), (1.0, 6.0), (-0.0, 0.0)]);
        for (score, want) in [
            (-1.0, 0.0),
            (0.0, 0.0),
            (0.25, 1.0),
            (0.5, 2.0),
            (0.75, 4.0),
            (2.0, 6.0),
        ] {
            assert!((map.at(score) - want).abs() < 1e-15, "{score}");
        }
        assert!((WeightMap::of(&[]).at(0.3) - 1.0).abs() <= 0.0);
    }

    #[test]
    fn a_right_outcome_model_needs_no_correction() {
        let full = vec![0.2, 0.4, 0.6, 0.8];
        let logged_rewards = Rewards::new(full.clone(), vec![full.clone(), full.clone()]).unwrap();
        let draw_rewards = Rewards::new(vec![0.9; 4], vec![vec![0.9; 4]; 2]).unwrap();
        let prompts = Clusters::singletons(4).unwrap();
        let logged = LoggedRows::new(&logged_rewards, &[0, 1, 0, 1], &prompts).unwrap();
        let draws = Draws::new(&draw_rewards, &[0, 1, 2, 3], &logged).unwrap();
        let heavy = Weights::new("w", &[4.0, 0.0, 0.0, 0.0], 4).unwrap();
        let (found, parts) = doubly_robust(&logged, &draws, heavy).unwrap();
        assert!((found.value - 0.9).abs() < 1e-15 && parts.predicted == full);
        let outcome = Outcome::calibrator(&logged, &draws);
        let (again, _) = more_robust(&logged, &draws, heavy, &outcome).unwrap();
        assert!((again.value - 0.9).abs() < 1e-15);
        let scores = [0.1, 0.2, 0.3, 0.4];
        let column = Values::new("scores", &scores).unwrap();
        let (moved, _) = targeted(&logged, &draws, heavy, &outcome, column, column).unwrap();
        assert!((moved.value - 0.9).abs() < 1e-12);
    }
}
