//! Whether a score without ground truth can be believed: gamma, kappa and beta of repaired workflows, each with an
//! interval over runs.
//!
//! Source: the methodology of CLOVER, context-conditioned workflow repair, "Theory": selection alignment, proposal
//! quality, blame accuracy. The unit is a run: pairs and expansions within one are never taken for independent.

use crate::inference::Interval;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::open_unit;
use crate::student;
use crate::student::Alternative;
use clover_num::math;

/// A candidate with the score that selected it and its true utility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredCandidate {
    /// Its score; `None` where it crashed.
    pub score: Option<f64>,
    /// Its utility.
    pub utility: f64,
}

/// Candidates that were compared at once, and all groups of one run.
pub type CandidateGroups = Vec<Vec<ScoredCandidate>>;

/// Children of one parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// Utility of the parent.
    pub parent: f64,
    /// Utilities of its children.
    pub children: Vec<f64>,
}

/// Gains of an edit where the blame points, and of a control edit elsewhere by the same operator and proposer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EditPair {
    /// Gain of the targeted edit, in utility.
    pub targeted: f64,
    /// Gain of the control, drawn without regard to the verifier.
    pub control: f64,
}

/// A measure over runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMeasure {
    /// Mean over the runs that have a value; `None` where none has.
    pub mean: Option<f64>,
    /// Student's t interval over those runs; `None` below two.
    pub interval: Option<Interval>,
    /// Value of each run, in order; `None` where nothing in it can be compared.
    pub runs: Vec<Option<f64>>,
}

/// What gamma says.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// Share of pairs of unequal utility that the score puts in order, ties half; crashes are left out. 1/2 is chance.
    pub gamma: RunMeasure,
    /// The same with a crash below every score, two crashes as a tie.
    pub gamma_all: RunMeasure,
    /// Utility lost by taking the best score: the group's largest utility less the mean over those that tie for it.
    pub regret: RunMeasure,
}

/// What beta says.
#[derive(Clone, Debug, PartialEq)]
pub struct BlameAccuracy {
    /// Share of pairs in which the targeted edit gains more, ties half. 1/2 is chance.
    pub beta: RunMeasure,
    /// Mean of the targeted gain less the control's.
    pub effect: RunMeasure,
}

impl RunMeasure {
    /// Over the values of runs.
    ///
    /// # Errors
    /// [`SampleError`] for a value that is not finite, or a level outside (0, 1).
    pub fn over(runs: Vec<Option<f64>>, level: f64) -> Result<Self, SampleError> {
        open_unit("level", level)?;
        let known: Vec<f64> = runs.iter().copied().flatten().collect();
        if known.is_empty() {
            return Ok(Self {
                mean: None,
                interval: None,
                runs,
            });
        }
        // Below two runs, or where squares overflow, there is a mean and no interval.
        let estimate = student::one_sample(Values::new("runs", &known)?).ok();
        let interval = estimate.map(|of| of.interval(level, Alternative::TwoSided));
        Ok(Self {
            mean: Some(estimate.map_or_else(|| math::mean(&known), |of| of.mean)),
            interval: interval.transpose()?,
            runs,
        })
    }
}

/// Mean of some values, `None` of none.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| math::mean(values))
}

/// Concordance of a group over its pairs whose utilities differ by more than `epsilon`.
fn group_gamma(group: &[(f64, f64)], epsilon: f64) -> Option<f64> {
    let mut pairs = Vec::new();
    for (at, a) in group.iter().enumerate() {
        for b in &group[at + 1..] {
            let gap = a.1 - b.1;
            if gap.abs() <= epsilon {
                continue;
            }
            pairs.push(match a.0.total_cmp(&b.0) {
                std::cmp::Ordering::Equal => 0.5,
                order => f64::from(u8::from(
                    (order == std::cmp::Ordering::Greater) == (gap > 0.0),
                )),
            });
        }
    }
    mean(&pairs)
}

/// What is lost in a group by taking the best score.
fn group_regret(group: &[(f64, f64)]) -> Option<f64> {
    let best = group.iter().map(|of| of.0).max_by(f64::total_cmp)?;
    let most = group.iter().map(|of| of.1).max_by(f64::total_cmp)?;
    let taken = group.iter().filter(|of| of.0.total_cmp(&best).is_eq());
    let taken: Vec<f64> = taken.map(|of| of.1).collect();
    Some(most - mean(&taken)?)
}

/// Score and utility of a candidate that takes part.
type ReadCandidate<'a> = &'a dyn Fn(&ScoredCandidate) -> Option<(f64, f64)>;
/// The value of a group of scores and utilities.
type GroupValue<'a> = &'a dyn Fn(&[(f64, f64)]) -> Option<f64>;

/// Selection alignment. Utilities within `epsilon` of one another are no pair.
///
/// # Errors
/// [`SampleError`] for a number that is not finite, a negative `epsilon`, or a level outside (0, 1).
pub fn alignment(
    runs: &[CandidateGroups],
    epsilon: f64,
    level: f64,
) -> Result<Alignment, SampleError> {
    not_negative("epsilon", epsilon)?;
    for candidate in runs.iter().flatten().flatten() {
        finite("utility", candidate.utility)?;
        finite("score", candidate.score.unwrap_or(0.0))?;
    }
    // Adding 0 makes one zero of the two.
    let sound = |of: &ScoredCandidate| Some((of.score? + 0.0, of.utility));
    let all = |of: &ScoredCandidate| {
        let score = of.score.map_or(f64::NEG_INFINITY, |score| score + 0.0);
        Some((score, of.utility))
    };
    let over = |read: ReadCandidate<'_>, of: GroupValue<'_>| {
        let run = |groups: &CandidateGroups| {
            let values = groups.iter().filter_map(|group| {
                let group: Vec<_> = group.iter().filter_map(read).collect();
                of(&group)
            });
            mean(&values.collect::<Vec<_>>())
        };
        RunMeasure::over(runs.iter().map(run).collect(), level)
    };
    let gamma = |group: &[(f64, f64)]| group_gamma(group, epsilon);
    Ok(Alignment {
        gamma: over(&sound, &gamma)?,
        gamma_all: over(&all, &gamma)?,
        regret: over(&sound, &group_regret)?,
    })
}

/// Proposal quality: the probability that at least one of `proposals` edits gains `least_gain` or more.
///
/// An expansion with n children of which c gain so much counts as 1 - C(n - c, k) / C(n, k); one with fewer than k
/// children does not count.
///
/// # Errors
/// [`SampleError`] for a number that is not finite, no proposals, or a level outside (0, 1).
pub fn proposal_quality(
    runs: &[Vec<Expansion>],
    proposals: usize,
    least_gain: f64,
    level: f64,
) -> Result<RunMeasure, SampleError> {
    finite("least gain", least_gain)?;
    if proposals == 0 {
        return Err(SampleError::Parameter {
            name: "proposals",
            expected: "at least 1",
        });
    }
    for expansion in runs.iter().flatten() {
        finite("utility", expansion.parent)?;
        for child in &expansion.children {
            finite("utility", *child)?;
        }
    }
    let one = |of: &Expansion| {
        let count = of.children.len();
        if count < proposals {
            return None;
        }
        let gains = |child: &&f64| **child >= of.parent + least_gain;
        let others = count - of.children.iter().filter(gains).count();
        if others < proposals {
            return Some(1.0);
        }
        let none = (0..proposals).map(|at| (others - at) as f64 / (count - at) as f64);
        Some(1.0 - none.product::<f64>())
    };
    let run = |of: &Vec<Expansion>| mean(&of.iter().filter_map(one).collect::<Vec<_>>());
    RunMeasure::over(runs.iter().map(run).collect(), level)
}

/// Blame accuracy, from targeted edits against controls that a draw has chosen.
///
/// # Errors
/// [`SampleError`] for a number that is not finite, or a level outside (0, 1).
pub fn blame_accuracy(runs: &[Vec<EditPair>], level: f64) -> Result<BlameAccuracy, SampleError> {
    for pair in runs.iter().flatten() {
        finite("gain", pair.targeted)?;
        finite("gain", pair.control)?;
    }
    let over = |of: fn(&EditPair) -> f64| {
        let run = |pairs: &Vec<EditPair>| mean(&pairs.iter().map(of).collect::<Vec<_>>());
        RunMeasure::over(runs.iter().map(run).collect(), level)
    };
    let wins = |pair: &EditPair| match pair.targeted.partial_cmp(&pair.control) {
        Some(std::cmp::Ordering::Greater) => 1.0,
        Some(std::cmp::Ordering::Equal) => 0.5,
        _ => 0.0,
    };
    Ok(BlameAccuracy {
        beta: over(wins)?,
        effect: over(|pair| pair.targeted - pair.control)?,
    })
}

fn finite(name: &'static str, value: f64) -> Result<(), SampleError> {
    let expected = "a finite number";
    value
        .is_finite()
        .then_some(())
        .ok_or(SampleError::Parameter { name, expected })
}

fn not_negative(name: &'static str, value: f64) -> Result<(), SampleError> {
    let expected = "a finite number from 0";
    (value.is_finite() && value >= 0.0)
        .then_some(())
        .ok_or(SampleError::Parameter { name, expected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clover_num::draws::Draws;

    fn numbers(value: &serde_json::Value) -> Vec<f64> {
        let items = value.as_array().unwrap().iter();
        items.map(|item| item.as_f64().unwrap()).collect()
    }

    fn same(name: &str, measure: &RunMeasure, expected: &serde_json::Value) {
        let close = |ours: f64, theirs: &serde_json::Value| {
            let theirs = theirs.as_f64().unwrap();
            assert!((ours - theirs).abs() <= 1e-12, "{name}: {ours} {theirs}");
        };
        close(measure.mean.unwrap(), &expected["mean"]);
        let interval = measure.interval.unwrap();
        close(interval.low, &expected["low"]);
        close(interval.high, &expected["high"]);
    }

    #[test]
    fn an_independent_program_has_the_same_numbers() {
        // source: fixtures/reference/concordance/make.py
        let text = include_str!("../../fixtures/reference/concordance/cases.json");
        let cases: serde_json::Value = serde_json::from_str(text).unwrap();
        let cases = cases["cases"].as_array().unwrap();
        assert!(cases.len() >= 20);
        for case in cases {
            let name = case["name"].as_str().unwrap();
            let runs = case["groups"].as_array().unwrap().iter().map(|run| {
                let groups = run.as_array().unwrap().iter().map(|group| {
                    let candidates = group.as_array().unwrap().iter().map(|of| ScoredCandidate {
                        score: of[0].as_f64(),
                        utility: of[1].as_f64().unwrap(),
                    });
                    candidates.collect()
                });
                groups.collect()
            });
            let runs: Vec<CandidateGroups> = runs.collect();
            let level = case["level"].as_f64().unwrap();
            let found = alignment(&runs, case["epsilon"].as_f64().unwrap(), level).unwrap();
            same(name, &found.gamma, &case["gamma"]);
            same(name, &found.gamma_all, &case["gamma_all"]);
            same(name, &found.regret, &case["regret"]);
            let expansions = case["expansions"].as_array().unwrap().iter().map(|run| {
                let all = run.as_array().unwrap().iter().map(|of| Expansion {
                    parent: of[0].as_f64().unwrap(),
                    children: numbers(&of[1]),
                });
                all.collect()
            });
            let expansions: Vec<Vec<Expansion>> = expansions.collect();
            for k in 1..=3_usize {
                let found =
                    proposal_quality(&expansions, k, case["least_gain"].as_f64().unwrap(), level);
                same(name, &found.unwrap(), &case["kappa"][k - 1]);
            }
            let pairs = case["pairs"].as_array().unwrap().iter().map(|run| {
                let all = run.as_array().unwrap().iter().map(|of| EditPair {
                    targeted: of[0].as_f64().unwrap(),
                    control: of[1].as_f64().unwrap(),
                });
                all.collect()
            });
            let found = blame_accuracy(&pairs.collect::<Vec<_>>(), level).unwrap();
            same(name, &found.beta, &case["beta"]);
            same(name, &found.effect, &case["effect"]);
        }
    }

    /// A world: 40 runs of 6 trials each. A run has a rate of its own at which a trial comes out right; their mean is `rate`.
    fn world(seed: usize, rate: f64) -> Vec<Vec<bool>> {
        let mut draws = Draws::of([5; 32], seed);
        let mut run = || {
            let own = rate + 0.3 * (draws.uniform() - 0.5);
            (0..6).map(|_| draws.uniform() < own).collect()
        };
        (0..40).map(|_| run()).collect()
    }

    /// What each trial of a world is to a measure.
    fn told<T>(world: &[Vec<bool>], of: impl Fn(f64) -> T) -> Vec<Vec<T>> {
        let sign = |right: &bool| if *right { 1.0 } else { -1.0 };
        let run = |run: &Vec<bool>| run.iter().map(|right| of(sign(right))).collect();
        world.iter().map(run).collect()
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let pair = |sign: f64| {
            let one = |score, utility| ScoredCandidate {
                score: Some(score),
                utility,
            };
            vec![one(sign, 1.0), one(0.0, 0.0)]
        };
        let grown = |sign: f64| Expansion {
            parent: 0.0,
            children: vec![sign],
        };
        let edits = |sign: f64| EditPair {
            targeted: sign,
            control: 0.0,
        };
        for rate in [0.5, 0.7] {
            let mut held = [0; 3];
            for seed in 0..400 {
                let world = world(seed, rate);
                let gamma = alignment(&told(&world, pair), 0.0, 0.95).unwrap().gamma;
                let kappa = proposal_quality(&told(&world, grown), 1, 0.5, 0.95).unwrap();
                let beta = blame_accuracy(&told(&world, edits), 0.95).unwrap().beta;
                for (held, of) in held.iter_mut().zip([gamma, kappa, beta]) {
                    let interval = of.interval.unwrap();
                    *held += u32::from(interval.low <= rate && rate <= interval.high);
                }
            }
            let within = |held: &u32| (372..=388).contains(held);
            assert!(held.iter().all(within), "{rate}: {held:?} of 400");
        }
    }

    #[test]
    fn chance_is_one_half_and_an_oracle_is_one() {
        let mut draws = Draws::of([9; 32], 0);
        let mut candidates = |is_oracle: bool| -> Vec<CandidateGroups> {
            let mut one = || {
                let utility = draws.uniform();
                let score = if is_oracle { utility } else { draws.uniform() };
                ScoredCandidate {
                    score: Some(score),
                    utility,
                }
            };
            let mut group = || (0..4).map(|_| one()).collect::<Vec<_>>();
            let mut run = || (0..3).map(|_| group()).collect::<Vec<_>>();
            (0..60).map(|_| run()).collect()
        };
        let blind = alignment(&candidates(false), 0.0, 0.95)
            .unwrap()
            .gamma
            .interval
            .unwrap();
        assert!(blind.low < 0.5 && 0.5 < blind.high, "{blind:?}");
        let oracle = alignment(&candidates(true), 0.0, 0.95).unwrap();
        assert_eq!(
            oracle.gamma.interval.unwrap(),
            Interval {
                low: 1.0,
                high: 1.0
            }
        );
        assert_eq!(oracle.regret.mean, Some(0.0));
    }

    #[test]
    fn what_cannot_be_compared_has_no_value() {
        let crash = ScoredCandidate {
            score: None,
            utility: 0.0,
        };
        let good = ScoredCandidate {
            score: Some(0.5),
            utility: 1.0,
        };
        let runs = vec![vec![vec![crash, good]], vec![vec![good, good]]];
        let found = alignment(&runs, 0.0, 0.95).unwrap();
        assert_eq!(found.gamma.runs, [None, None]);
        assert_eq!(found.gamma_all.runs, [Some(1.0), None]);
        assert_eq!(
            (found.gamma_all.mean, found.gamma_all.interval),
            (Some(1.0), None)
        );
        let thin = vec![vec![Expansion {
            parent: 0.0,
            children: vec![1.0],
        }]];
        assert_eq!(proposal_quality(&thin, 2, 0.1, 0.95).unwrap().mean, None);
        assert!(proposal_quality(&thin, 0, 0.1, 0.95).is_err());
        assert!(alignment(&runs, -1.0, 0.95).is_err() && alignment(&runs, 0.0, 1.0).is_err());
    }
}
