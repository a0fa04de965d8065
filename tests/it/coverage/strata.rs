//! Labels that were drawn by stratum: what their weighted values hold, in worlds whose truth is known.
//!
//! Two policies answer the same prompts, each of one of three strata. A stratum moves the labels at every score, and the
//! design draws the strata with the probabilities .05, .2 and .6: without weights the labels of the most drawn speak for all.

use clover::stats::direct::LabelDesign;
use clover::stats::direct::Route;
use clover::stats::direct::Scale;
use clover::stats::inference::Interval;
use clover::workflow::analyze;
use clover::workflow::analyze::Analysis;
use clover::workflow::analyze::Request;
use clover::workflow::analyze::dataset::Dataset;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::dataset::Prompts;
use rayon::prelude::*;

use crate::coverage::World;
use crate::coverage::is_slow;
use crate::coverage::worlds;

/// Share of the prompts, mean label of each policy, and probability of a label in millionths, by stratum.
// source: worlds made up so that the true value is .36, with the probabilities .05, .2 and .6.
const SHARES: [f64; 3] = [0.5, 0.3, 0.2];
const MEANS: [[f64; 3]; 2] = [[0.2, 0.4, 0.7], [0.14, 0.34, 0.64]];
const INCLUSION: [u32; 3] = [50_000, 200_000, 600_000];
/// By hand: .5 x .2 + .3 x .4 + .2 x .7, and .06 less.
// source: the sum of shares times means.
const TRUTHS: [f64; 2] = [0.36, 0.30];
/// How much of a label the score tells, about the mean of its stratum.
const SLOPE: f64 = 0.3;
/// Half the width of the noise of a prompt and of a response, where labels are no verdicts.
const PROMPT_NOISE: f64 = 0.05;
const OWN_NOISE: f64 = 0.08;
/// Monte Carlo errors that a rate may lie beyond its promise.
const ERRORS: f64 = 3.0;

/// How labels are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Draw {
    /// Each row by itself.
    Each,
    /// So many rows of each stratum.
    Fixed,
}

/// A kind of world.
#[derive(Clone, Copy, Debug)]
struct Kind {
    seed: u8,
    prompts: usize,
    draw: Draw,
    /// Whether labels are 0 or 1.
    verdicts: bool,
}

impl Kind {
    fn labelled(self, random: &mut World, strata: &[usize]) -> Vec<bool> {
        let mut labelled = vec![false; strata.len()];
        for (stratum, &inclusion) in INCLUSION.iter().enumerate() {
            let rows = (0..strata.len()).filter(|row| strata[*row] == stratum);
            let rows: Vec<usize> = rows.collect();
            let rate = f64::from(inclusion) / 1e6;
            let chosen = match self.draw {
                Draw::Each => rows.iter().map(|_| random.uniform() < rate).collect(),
                Draw::Fixed => {
                    let count = (rows.len() * inclusion as usize).div_ceil(1_000_000);
                    random.chosen(rows.len(), count)
                }
            };
            for (row, chosen) in rows.into_iter().zip(chosen) {
                labelled[row] = chosen;
            }
        }
        labelled
    }

    /// The policies of a world with the stratum of each prompt.
    fn world(self, number: u64) -> (Dataset, Vec<usize>) {
        let mut random = World::new(self.seed, number);
        let place = |at: f64| match at {
            at if at < SHARES[0] => 0,
            at if at < SHARES[0] + SHARES[1] => 1,
            _ => 2,
        };
        let strata: Vec<usize> = (0..self.prompts).map(|_| place(random.uniform())).collect();
        let luck: Vec<f64> = strata.iter().map(|_| random.uniform()).collect();
        let policies = MEANS.iter().enumerate().map(|(at, means)| {
            let labelled = self.labelled(&mut random, &strata);
            let mut policy = Policy {
                name: format!("policy-{at}"),
                ..Policy::default()
            };
            for (prompt, &stratum) in strata.iter().enumerate() {
                let (score, noise) = (random.uniform(), random.uniform());
                let mean = means[stratum] + SLOPE * (score - 0.5);
                let label = if self.verdicts {
                    f64::from(noise < mean)
                } else {
                    let shared = PROMPT_NOISE * (2.0 * luck[prompt] - 1.0);
                    (mean + shared + OWN_NOISE * (2.0 * noise - 1.0)).clamp(0.0, 1.0)
                };
                policy.prompts.push(u32::try_from(prompt).unwrap());
                policy.scores.push(score);
                policy.labels.push(labelled[prompt].then_some(label));
            }
            policy
        });
        let dataset = Dataset {
            policies: policies.collect(),
            covariates: Vec::new(),
        };
        (dataset, strata)
    }

    /// The analysis of a world, with weights and without.
    fn analyses(self, number: u64) -> [Analysis; 2] {
        let (dataset, strata) = self.world(number);
        let mut prompts = Prompts::default();
        for prompt in 0..self.prompts {
            prompts.number(&format!("p{prompt}"));
        }
        let inclusion: Vec<u32> = strata.iter().map(|stratum| INCLUSION[*stratum]).collect();
        [LabelDesign::Stratified, LabelDesign::Representative].map(|design| {
            let mut request = Request {
                judge_scale: Some(Scale::UNIT),
                label_scale: Some(Scale::UNIT),
                strata: Some(vec![inclusion.clone(), inclusion.clone()]),
                ..Request::default()
            };
            request.options.design = design;
            analyze::analyze(&dataset, &prompts, &request).unwrap()
        })
    }
}

/// How often intervals hold the truth, and where their centres lie.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    held: u64,
    of: u64,
    errors: f64,
    widths: f64,
}

impl Rate {
    fn count(&mut self, interval: Interval, centre: f64, truth: f64) {
        self.held += u64::from(interval.contains(truth));
        self.of += 1;
        self.errors += centre - truth;
        self.widths += interval.width();
    }

    fn rate(self) -> f64 {
        self.held as f64 / self.of as f64
    }

    /// Within 93 to 97 %, widened by `errors` Monte Carlo errors.
    fn is_within(self, errors: f64) -> bool {
        let error = |rate: f64| errors * (rate * (1.0 - rate) / self.of as f64).sqrt();
        (0.93 - error(0.93)..=0.97 + error(0.97)).contains(&self.rate())
    }
}

const NAMES: [&str; 4] = ["value", "labels alone", "difference", "without weights"];

fn rates(kind: Kind, count: u64) -> [Rate; 4] {
    let found: Vec<[Analysis; 2]> = (0..count)
        .into_par_iter()
        .map(|number| kind.analyses(number))
        .collect();
    let mut rates = [Rate::default(); 4];
    for [weighted, plain] in &found {
        let policy = &weighted.policies[0];
        if policy.route != Route::Augmented {
            continue;
        }
        let (interval, _) = policy.interval().unwrap();
        rates[0].count(interval, policy.estimate, TRUTHS[0]);
        let alone = policy.labels_alone().unwrap();
        rates[1].count(alone.interval.unwrap(), alone.mean, TRUTHS[0]);
        for pair in &weighted.differences {
            let truth = TRUTHS[0] - TRUTHS[1];
            rates[2].count(pair.interval, pair.difference, truth);
        }
        let alone = plain.policies[0].labels_alone().unwrap();
        rates[3].count(alone.interval.unwrap(), alone.mean, TRUTHS[0]);
    }
    for (rate, name) in rates.iter().zip(NAMES) {
        let of = rate.of as f64;
        println!(
            "{kind:?} {name}: {:.4} of {}, bias {:+.4}, width {:.4}",
            rate.rate(),
            rate.of,
            rate.errors / of,
            rate.widths / of
        );
    }
    rates
}

const KINDS: [Kind; 4] = [
    Kind {
        seed: 60,
        prompts: 2_000,
        draw: Draw::Each,
        verdicts: false,
    },
    Kind {
        seed: 61,
        prompts: 2_000,
        draw: Draw::Each,
        verdicts: true,
    },
    Kind {
        seed: 62,
        prompts: 2_000,
        draw: Draw::Fixed,
        verdicts: false,
    },
    Kind {
        seed: 63,
        prompts: 1_000,
        draw: Draw::Each,
        verdicts: true,
    },
];

/// Claim: of labels that were drawn by stratum, values, labels alone and differences hold the truth in 93 to 97 % of worlds.
/// Labels without weights do so in hardly any.
#[test]
fn labels_that_were_drawn_by_stratum_hold_the_truth_as_often_as_they_say() {
    let kinds = if is_slow() { &KINDS[..] } else { &KINDS[..2] };
    for (at, kind) in kinds.iter().enumerate() {
        let [value, alone, difference, plain] = rates(*kind, worlds(60, 1_000));
        // The first kind lies within the band as it is in 1,000 worlds.
        let errors = if at == 0 && is_slow() { 0.0 } else { ERRORS };
        for (rate, name) in [value, alone, difference].into_iter().zip(NAMES) {
            assert!(rate.is_within(errors), "{kind:?} {name}: {}", rate.rate());
        }
        assert!(plain.rate() < 0.1, "{kind:?}: {}", plain.rate());
    }
}

/// The value is the mean prediction and, by stratum, its share of the rows times the mean residual out of fold: AIPW with
/// 1 / pi, normalised within strata.
#[test]
fn the_value_is_that_of_its_formula() {
    let kind = KINDS[0];
    let (dataset, strata) = kind.world(7);
    let [weighted, plain] = kind.analyses(7);
    let calibrator = &weighted.calibration.as_ref().unwrap().calibrator;
    let policy = &dataset.policies[0];
    let predicted: Vec<f64> = policy
        .scores
        .iter()
        .map(|score| calibrator.predict(*score, &[]))
        .collect();
    let mut value = predicted.iter().sum::<f64>() / predicted.len() as f64;
    // Labelled rows of the fit come in the order of the policies' rows.
    let mut out_of_fold = calibrator.out_of_fold.iter();
    let mut residuals: [Vec<f64>; 3] = Default::default();
    for (row, label) in policy.labels.iter().enumerate() {
        if let Some(label) = label {
            residuals[strata[row]].push(label - out_of_fold.next().unwrap());
        }
    }
    for (stratum, residuals) in residuals.iter().enumerate() {
        let rows = strata.iter().filter(|of| **of == stratum).count() as f64;
        let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
        value += rows / strata.len() as f64 * mean;
    }
    let found = weighted.policies[0].estimate;
    assert!((found - value).abs() < 1e-12, "{found} {value}");
    // The fit is the same: labels are weighted where they correct it.
    assert_eq!(
        calibrator.out_of_fold,
        plain.calibration.unwrap().calibrator.out_of_fold
    );
}

/// Labels that had one probability all through are counted as those of a design without strata.
#[test]
fn one_probability_for_all_is_a_design_without_strata() {
    let kind = KINDS[0];
    let (dataset, strata) = kind.world(3);
    let mut prompts = Prompts::default();
    for prompt in 0..kind.prompts {
        prompts.number(&format!("p{prompt}"));
    }
    let one = vec![INCLUSION[1]; strata.len()];
    let [weighted, plain] = [LabelDesign::Stratified, LabelDesign::Representative].map(|design| {
        let mut request = Request {
            strata: Some(vec![one.clone(), one.clone()]),
            ..Request::default()
        };
        request.options.design = design;
        analyze::analyze(&dataset, &prompts, &request).unwrap()
    });
    let [of, as_plain] = [&weighted.policies[0], &plain.policies[0]];
    assert!((of.estimate - as_plain.estimate).abs() < 1e-12);
    let [se, plain_se] = [of, as_plain].map(|of| of.spread.unwrap().se);
    assert!((se / plain_se - 1.0).abs() < 0.01, "{se} {plain_se}");
}

/// Without the strata of its rows, or with too few labels in one, nothing is weighted and nothing corrects.
#[test]
fn nothing_is_weighted_where_strata_are_unknown_or_thin() {
    let kind = KINDS[0];
    let (mut dataset, strata) = kind.world(5);
    let mut prompts = Prompts::default();
    for prompt in 0..kind.prompts {
        prompts.number(&format!("p{prompt}"));
    }
    let route = |dataset: &Dataset, strata: Option<Vec<Vec<u32>>>| {
        let mut request = Request {
            strata,
            ..Request::default()
        };
        request.options.design = LabelDesign::Stratified;
        let found = analyze::analyze(dataset, &prompts, &request).unwrap();
        let policy = &found.policies[0];
        (policy.route, policy.labels_alone())
    };
    let refused = (Route::PlugInTargetedUnknown, None);
    assert_eq!(route(&dataset, None), refused);
    let inclusion: Vec<u32> = strata.iter().map(|stratum| INCLUSION[*stratum]).collect();
    let known = Some(vec![inclusion.clone(), inclusion]);
    assert_eq!(route(&dataset, known.clone()).0, Route::Augmented);
    let mut labels = 0;
    for (label, stratum) in dataset.policies[0].labels.iter_mut().zip(&strata) {
        if *stratum == 0 && label.is_some() {
            labels += 1;
            if labels > 4 {
                *label = None;
            }
        }
    }
    assert_eq!(route(&dataset, known), refused);
}
