//! What the losses of a run ask for: taking a step back, stopping, and which prompt is chosen.

use clover_num::math;

use crate::quantile;

/// Evaluations that a trend is read from.
const WINDOW: usize = 5;
/// Evaluations in a row above the best that trigger a stop.
const ABOVE: usize = 3;
/// Least excess over the best that counts.
const EXCESS_MIN: f64 = 0.01;
/// Standard errors over the best that count for taking back.
const REVERT_ERRORS: f64 = 3.0;

/// What one evaluation of a prompt found; the first is prompt 0's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Loss on train (on the batch of the step).
    pub train: f64,
    /// Loss on val.
    pub val: f64,
    /// Standard error of `val` less the lowest before it, paired by item ([`paired_error`]); 0 where nobody can say.
    pub error: f64,
    /// Rank correlation on val; `None` where a side is constant, which counts as 0.
    pub rank: Option<f64>,
    /// Entropy of the scores on val.
    pub entropy: f64,
    /// Mean variance of repeats on val.
    pub selfvar: f64,
    /// Penalty for contraction on val.
    pub contraction: f64,
}

/// Why a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// Train falls, and val is above its best by more than max(0.01, one standard error) three times in a row.
    Overfit,
    /// Train falls, and val goes up and down at each of five evaluations.
    Oscillation,
    /// The rank correlation is 0.05 or more below its best.
    RankLost,
    /// The entropy is 0.8 of its best or less.
    EntropyLost,
    /// Repeats vary twice as much as under prompt 0, twice in a row.
    Unstable,
    /// The penalty for contraction is above 0.25.
    Contracted,
}

/// What the evaluations up to the newest ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The evaluation with the lowest loss on val, the earliest of equal ones: the checkpoint.
    pub best: usize,
    /// The evaluations after which the prompt goes back to the best before, ascending.
    pub reverts: Vec<usize>,
    /// What triggers a stop, by the evaluation at which it does, ascending.
    pub triggers: Vec<(usize, Trigger)>,
}

impl Course {
    /// Whether the newest of `evaluations` is taken back.
    pub fn takes_back(&self, evaluations: usize) -> bool {
        self.reverts.last().is_some_and(|at| at + 1 == evaluations)
    }

    /// The first evaluation at which a stop is triggered.
    pub fn triggered(&self) -> Option<usize> {
        self.triggers.first().map(|(at, _)| *at)
    }
}

/// Median of the slopes of all pairs of points (Theil 1950, Sen 1968), with places 0, 1, … for x; `None` below two values.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
        }
    }
    (!slopes.is_empty()).then(|| quantile::type_7(&quantile::ascending(&slopes), 0.5))
}

/// Standard error of the mean of differences between items, `sd / sqrt(n)`; 0 below two.
pub fn paired_error(differences: &[f64]) -> f64 {
    if differences.len() < 2 {
        return 0.0;
    }
    let mean = math::mean(differences);
    let squares: Vec<f64> = differences
        .iter()
        .map(|of| (of - mean) * (of - mean))
        .collect();
    let count = differences.len() as f64;
    (math::sum(&squares) / (count - 1.0) / count).sqrt()
}

/// Changes of direction in a row of values; equal neighbours have none.
fn turns(values: &[f64]) -> usize {
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let rises: Vec<bool> = steps
        .filter(|step| step.abs() > 0.0)
        .map(|step| step > 0.0)
        .collect();
    rises.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// What `evaluations` ask for; `v_0` is the mean variance of repeats under prompt 0, at least 0.0001.
pub fn course(evaluations: &[Evaluation], v_0: f64) -> Course {
    let mut found = Course {
        best: 0,
        reverts: Vec::new(),
        triggers: Vec::new(),
    };
    let (mut far, mut above, mut unstable) = (0, 0, 0);
    let (mut best_rank, mut best_entropy) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (at, now) in evaluations.iter().enumerate() {
        let best = evaluations[found.best].val;
        let excess = now.val - best;
        far = if at > 0 && excess > REVERT_ERRORS * now.error {
            far + 1
        } else {
            0
        };
        above = if at > 0 && excess > EXCESS_MIN.max(now.error) {
            above + 1
        } else {
            0
        };
        unstable = if now.selfvar >= 2.0 * v_0 {
            unstable + 1
        } else {
            0
        };
        if far == 2 {
            found.reverts.push(at);
            far = 0;
        }
        let window = &evaluations[(at + 1).saturating_sub(WINDOW)..=at];
        let column = |of: fn(&Evaluation) -> f64| -> Vec<f64> { window.iter().map(of).collect() };
        let falls = window.len() == WINDOW
            && theil_sen(&column(|of| of.train)).is_some_and(|slope| slope < 0.0);
        let rank = now.rank.unwrap_or(0.0);
        let asked = [
            (falls && above >= ABOVE, Trigger::Overfit),
            (
                falls && turns(&column(|of| of.val)) >= ABOVE,
                Trigger::Oscillation,
            ),
            (rank <= best_rank - 0.05, Trigger::RankLost),
            (now.entropy <= 0.8 * best_entropy, Trigger::EntropyLost),
            (unstable >= 2, Trigger::Unstable),
            (now.contraction > 0.25, Trigger::Contracted),
        ];
        let asked = asked.into_iter().filter(|(is, _)| *is);
        found
            .triggers
            .extend(asked.map(|(_, trigger)| (at, trigger)));
        best_rank = best_rank.max(rank);
        best_entropy = best_entropy.max(now.entropy);
        if now.val < best {
            found.best = at;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(train: f64, val: f64) -> Evaluation {
        Evaluation {
            train,
            val,
            error: 0.01,
            rank: Some(0.5),
            entropy: 0.8,
            selfvar: 0.001,
            contraction: 0.0,
        }
    }

    fn triggers(evaluations: &[Evaluation]) -> Vec<(usize, Trigger)> {
        course(evaluations, 0.001).triggers
    }

    #[test]
    fn the_best_is_the_earliest_of_the_lowest() {
        let all = [now(1.0, 1.0), now(0.9, 0.8), now(0.8, 0.8), now(0.7, 0.9)];
        assert_eq!(course(&all, 0.001).best, 1);
    }

    #[test]
    fn two_evaluations_far_above_the_best_are_taken_back_once() {
        let all = [
            now(1.0, 1.0),
            now(1.0, 1.1),
            now(1.0, 1.1),
            now(1.0, 1.1),
            now(1.0, 1.02),
        ];
        let found = course(&all, 0.001);
        assert_eq!(found.reverts, [2]);
        assert!(!found.takes_back(5) && course(&all[..3], 0.001).takes_back(3));
    }

    #[test]
    fn each_trigger_has_its_course() {
        let falling = |vals: &[f64]| -> Vec<Evaluation> {
            (0..)
                .zip(vals)
                .map(|(at, val)| now(1.0 - 0.1 * f64::from(at), *val))
                .collect()
        };
        assert_eq!(
            triggers(&falling(&[1.0, 0.9, 0.93, 0.94, 0.95])),
            [(4, Trigger::Overfit)]
        );
        assert_eq!(
            triggers(&falling(&[1.0, 0.99, 1.0, 0.99, 1.0])),
            [(4, Trigger::Oscillation)]
        );
        let lost = |change: fn(&mut Evaluation)| {
            let mut all = falling(&[1.0, 0.9, 0.8]);
            change(&mut all[2]);
            triggers(&all)
        };
        assert_eq!(lost(|of| of.rank = Some(0.45)), [(2, Trigger::RankLost)]);
        assert_eq!(lost(|of| of.rank = None), [(2, Trigger::RankLost)]);
        assert_eq!(lost(|of| of.entropy = 0.64), [(2, Trigger::EntropyLost)]);
        assert_eq!(lost(|of| of.contraction = 0.26), [(2, Trigger::Contracted)]);
        assert_eq!(lost(|of| of.selfvar = 0.002), []);
        let mut all = falling(&[1.0, 0.9, 0.8]);
        all[1].selfvar = 0.002;
        all[2].selfvar = 0.002;
        assert_eq!(triggers(&all), [(2, Trigger::Unstable)]);
        assert_eq!(triggers(&falling(&[1.0, 0.9, 0.8, 0.7, 0.6, 0.5])), []);
    }

    #[test]
    fn errors_and_slopes_by_hand() {
        assert!((paired_error(&[1.0, 2.0, 3.0]) - (1.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(theil_sen(&[1.0]), None);
        assert!((theil_sen(&[0.0, 1.0, 5.0]).unwrap() - 2.5).abs() < 1e-15);
    }
}
