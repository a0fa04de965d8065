//! Coverage of policy values and of their differences, through the whole analysis, in worlds with known truth.
//!
//! Four policies answer the same prompts. A response has a judge score S and a label with mean f(S), f monotone, the
//! same for all policies. Two policies have labels of their own (augmented route), two borrow the calibrator (plug-in
//! route); the pairs (0, 1) and (2, 3) have the same true value, so that their differences show the level.

use clover::stats::direct::Correction;
use clover::stats::direct::Exponential;
use clover::stats::direct::Route;
use clover::stats::direct::Scale;
use clover::stats::direct::WeightReason;
use clover::stats::distribution;
use clover::stats::inference::Interval;
use clover::workflow::analyze;
use clover::workflow::analyze::Analysis;
use clover::workflow::analyze::Replicates;
use clover::workflow::analyze::Request;
use clover::workflow::analyze::dataset::Dataset;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::dataset::Prompts;
use rayon::prelude::*;

use crate::coverage::World;
use crate::coverage::worlds;

/// What label noise looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// Uniform, part of it shared by all responses to a prompt.
    Shared,
    /// Labels are 0 or 1.
    Binary,
}

/// A kind of world.
#[derive(Clone, Copy, Debug)]
struct Design {
    name: &'static str,
    seed: u8,
    prompts: usize,
    draws: usize,
    /// Labels of each of the two policies that have any.
    labels: usize,
    /// Width of a tie of scores; 0 for none.
    tie: f64,
    noise: Noise,
    /// Whether labels also depend on a recorded covariate.
    covariate: bool,
    /// How far a prediction is trusted where labels correct it.
    correction: Correction,
}

const PLAIN: Design = Design {
    name: "smooth",
    seed: 40,
    prompts: 1000,
    draws: 1,
    labels: 120,
    tie: 0.0,
    noise: Noise::Shared,
    covariate: false,
    correction: Correction::One,
};

/// Where the scores of a policy start, and how far they reach: within those of the labelled policies, which overlap.
const SCORES: [(f64, f64); 4] = [(0.05, 0.90), (0.05, 0.90), (0.15, 0.75), (0.15, 0.75)];
/// Share of the prompt in a score; the rest is the response's own.
const PROMPT: f64 = 0.6;
/// Mean label, less at both ends by what noise needs.
const LOW: f64 = 0.15;
const RISE: f64 = 0.70;
/// Half the width of uniform noise, of the prompt and of the response.
const PROMPT_NOISE: f64 = 0.05;
const OWN_NOISE: f64 = 0.10;
/// What the covariate adds at most: labels stay in [0, 1].
const COVARIATE: f64 = 0.15;

impl Design {
    fn tied(&self, score: f64) -> f64 {
        if self.tie > 0.0 {
            (score / self.tie).round() * self.tie
        } else {
            score
        }
    }

    /// Mean label at a score as the judge gives it.
    fn mean(&self, score: f64) -> f64 {
        let rise = if self.covariate {
            RISE - COVARIATE
        } else {
            RISE
        };
        LOW + rise * score * score + if self.covariate { 0.5 * COVARIATE } else { 0.0 }
    }

    /// E f(S) of a policy: S = start + reach (0.6 U + 0.4 V), with the trapezoidal density of 0.6 U + 0.4 V.
    fn truth(&self, policy: usize) -> f64 {
        let (start, reach) = SCORES[policy];
        let steps = 20_000;
        let (mut total, mut mass) = (0.0, 0.0);
        for step in 0..steps {
            let t = (f64::from(step) + 0.5) / f64::from(steps);
            let density = (t / (1.0 - PROMPT))
                .min(1.0)
                .min((1.0 - t) / (1.0 - PROMPT));
            total += density * self.mean(self.tied(start + reach * t));
            mass += density;
        }
        total / mass
    }

    fn world(&self, number: u64) -> (Dataset, Prompts) {
        let mut random = World::new(self.seed, number);
        let mut prompts = Prompts::default();
        for prompt in 0..self.prompts {
            prompts.number(&format!("p{prompt}"));
        }
        let shared: Vec<(f64, f64)> = (0..self.prompts)
            .map(|_| (random.uniform(), random.uniform()))
            .collect();
        let policies = SCORES.iter().enumerate().map(|(at, &(start, reach))| {
            let mut policy = Policy {
                name: format!("policy-{at}"),
                covariates: vec![Vec::new(); usize::from(self.covariate)],
                ..Policy::default()
            };
            let rows = self.prompts * self.draws;
            let labelled = if at < 2 {
                random.chosen(rows, self.labels)
            } else {
                vec![false; rows]
            };
            for (row, labelled) in labelled.into_iter().enumerate() {
                let prompt = row / self.draws;
                let (quality, luck) = shared[prompt];
                let own = random.uniform();
                let score = self.tied(start + reach * (PROMPT * quality + (1.0 - PROMPT) * own));
                let length = random.uniform();
                let mut mean = self.mean(score);
                if self.covariate {
                    mean += COVARIATE * (length - 0.5);
                    policy.covariates[0].push(length);
                }
                let noise = random.uniform();
                let label = match self.noise {
                    Noise::Binary => f64::from(noise < mean),
                    Noise::Shared => {
                        mean + PROMPT_NOISE * (2.0 * luck - 1.0) + OWN_NOISE * (2.0 * noise - 1.0)
                    }
                };
                policy.prompts.push(u32::try_from(prompt).unwrap());
                policy.scores.push(score);
                policy.labels.push(labelled.then_some(label));
            }
            policy
        });
        let dataset = Dataset {
            policies: policies.collect(),
            covariates: if self.covariate {
                vec!["length".to_owned()]
            } else {
                Vec::new()
            },
        };
        (dataset, prompts)
    }

    fn analysis(&self, number: u64, replicates: Option<usize>) -> Analysis {
        let (dataset, prompts) = self.world(number);
        let mut seed = [self.seed; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let weights = replicates.map(|replicates| Exponential { seed, replicates });
        let mut request = Request {
            judge_scale: Some(Scale::UNIT),
            label_scale: Some(Scale::UNIT),
            replicates: weights.as_ref().map(|weights| Replicates {
                weights,
                fold_seed: 42,
            }),
            ..Request::default()
        };
        request.options.correction = self.correction;
        analyze::analyze(&dataset, &prompts, &request).unwrap()
    }
}

impl World {
    /// `count` of `rows` at random, by Knuth's selection sampling.
    pub(super) fn chosen(&mut self, rows: usize, count: usize) -> Vec<bool> {
        let mut left = count;
        (0..rows)
            .map(|row| {
                let take = self.uniform() * ((rows - row) as f64) < left as f64;
                left -= usize::from(take);
                take
            })
            .collect()
    }
}

/// How often an interval covers, how wide it is, and how its centre scatters.
#[derive(Clone, Default)]
struct Cover {
    hits: u64,
    widths: f64,
    errors: Vec<f64>,
}

impl Cover {
    fn count(&mut self, interval: Interval, centre: f64, truth: f64) {
        self.hits += u64::from(interval.contains(truth));
        self.widths += interval.width();
        self.errors.push(centre - truth);
    }

    fn rate(&self) -> f64 {
        self.hits as f64 / self.errors.len() as f64
    }

    fn monte_carlo_error(&self, rate: f64) -> f64 {
        (rate * (1.0 - rate) / self.errors.len() as f64).sqrt()
    }

    /// Bias of the centre and its standard deviation over worlds.
    fn scatter(&self) -> (f64, f64) {
        let of = self.errors.len() as f64;
        let bias = self.errors.iter().sum::<f64>() / of;
        let squares: f64 = self.errors.iter().map(|e| (e - bias) * (e - bias)).sum();
        (bias, (squares / of).sqrt())
    }

    fn row(&self, design: &Design, what: &str) {
        if self.errors.is_empty() {
            return;
        }
        let rate = self.rate();
        let (bias, sd) = self.scatter();
        println!(
            "| {} | {what} | {rate:.4} | {:.4} | {bias:+.5} | {sd:.5} | {:.4} | {} |",
            design.name,
            self.monte_carlo_error(rate.clamp(0.005, 0.995)),
            self.widths / self.errors.len() as f64,
            self.errors.len()
        );
    }

    /// Within the claim, widened by three Monte Carlo errors.
    fn within(&self, design: &Design, what: &str, low: f64, high: f64) {
        let rate = self.rate();
        let wrong = rate < low - 3.0 * self.monte_carlo_error(low)
            || rate > high + 3.0 * self.monte_carlo_error(high);
        assert!(
            !wrong,
            "{}, {what}: {rate} is not in [{low}, {high}]",
            design.name
        );
    }
}

/// What is counted in each kind of world.
const AUGMENTED: usize = 0;
const PLUG_IN: usize = 1;
const LABELS_ALONE: usize = 2;
const NULL_AUGMENTED: usize = 3;
const NULL_PLUG_IN: usize = 4;
const MIXED: usize = 5;
const NAMES: [&str; 6] = [
    "value, augmented",
    "value, plug-in",
    "value, labels alone",
    "difference 0, augmented",
    "difference 0, plug-in",
    "difference, augmented less plug-in",
];

fn head(what: &str) {
    println!("| {what} | 95 % interval of | covers | error | bias | sd | width | worlds |");
}

fn covered(design: &Design, count: u64, replicates: Option<usize>) -> [Cover; 6] {
    let truths: Vec<f64> = (0..SCORES.len())
        .map(|policy| design.truth(policy))
        .collect();
    let found: Vec<Analysis> = (0..count)
        .into_par_iter()
        .map(|number| design.analysis(number, replicates))
        .collect();
    let mut covers: [Cover; 6] = Default::default();
    for analysis in &found {
        for (at, policy) in analysis.policies.iter().enumerate() {
            let (kind, route) = if at < 2 {
                (AUGMENTED, Route::Augmented)
            } else {
                (PLUG_IN, Route::PlugIn)
            };
            assert_eq!(policy.route, route);
            let interval = match policy.resampled {
                Some(resampled) => resampled.interval,
                None => policy.spread.unwrap().interval,
            };
            // Policies of one world share its calibrator: one of each kind keeps worlds independent.
            if at % 2 == 0 {
                covers[kind].count(interval, policy.estimate, truths[at]);
            }
            if at == 0 {
                let alone = policy.labels_only.unwrap();
                covers[LABELS_ALONE].count(alone.interval.unwrap(), alone.mean, truths[at]);
            }
        }
        for pair in &analysis.differences {
            let kind = match (pair.first, pair.second) {
                (0, 1) => NULL_AUGMENTED,
                (2, 3) => NULL_PLUG_IN,
                (0, 2) => MIXED,
                _ => continue,
            };
            covers[kind].count(
                pair.interval,
                pair.difference,
                truths[pair.first] - truths[pair.second],
            );
        }
    }
    for (cover, name) in covers.iter().zip(NAMES) {
        cover.row(design, name);
    }
    covers
}

fn designs() -> Vec<Design> {
    vec![
        PLAIN,
        Design {
            name: "smooth, 60 + 60 labels",
            seed: 41,
            labels: 60,
            ..PLAIN
        },
        Design {
            name: "smooth, 400 + 400 labels",
            seed: 42,
            labels: 400,
            prompts: 2000,
            ..PLAIN
        },
        Design {
            name: "scores tied to 0.1",
            seed: 43,
            tie: 0.1,
            ..PLAIN
        },
        Design {
            name: "3 draws a prompt",
            seed: 44,
            prompts: 400,
            draws: 3,
            ..PLAIN
        },
        Design {
            name: "labels 0 or 1",
            seed: 45,
            labels: 200,
            noise: Noise::Binary,
            ..PLAIN
        },
        Design {
            name: "covariate",
            seed: 46,
            covariate: true,
            ..PLAIN
        },
    ]
}

#[test]
fn analytic_intervals_cover() {
    head("world");
    let found: Vec<(Design, [Cover; 6])> = designs()
        .into_iter()
        .map(|design| (design, covered(&design, worlds(8, 4_000), None)))
        .collect();
    for (design, covers) in found {
        for (kind, cover) in covers.iter().enumerate() {
            // Values hold both bounds. Differences may be cautious, as the peer's are: an augmented value errs with the
            // noise of its labels, and so does the calibrator that another policy borrows, which the method adds as
            // if independent; and a jackknife variance errs upwards (Efron and Stein 1981), most for labels 0 or 1.
            let most = if kind >= NULL_AUGMENTED { 1.0 } else { 0.97 };
            cover.within(&design, NAMES[kind], 0.93, most);
        }
    }
}

/// The weight is fitted on the labels that it then weighs: intervals by it hold the truth as often as those of weight one.
#[test]
fn intervals_by_tuned_weights_cover() {
    let tuned = |design: Design, name, seed| Design {
        name,
        seed,
        correction: Correction::Tuned,
        ..design
    };
    let few = Design {
        labels: 60,
        ..PLAIN
    };
    let binary = Design {
        noise: Noise::Binary,
        ..few
    };
    head("world, tuned weights");
    for design in [
        tuned(PLAIN, "smooth, tuned", 48),
        tuned(few, "smooth, 60 + 60 labels, tuned", 49),
        tuned(binary, "labels 0 or 1, 60 + 60 labels, tuned", 50),
    ] {
        let (_, fitted) = design.analysis(0, None).policies[0].weight.unwrap();
        assert_eq!(fitted, WeightReason::Tuned, "{}", design.name);
        let covers = covered(&design, worlds(8, 4_000), None);
        covers[AUGMENTED].within(&design, NAMES[AUGMENTED], 0.93, 0.97);
        covers[NULL_AUGMENTED].within(&design, NAMES[NULL_AUGMENTED], 0.93, 1.0);
    }
}

#[test]
fn bootstrap_intervals_are_tabled() {
    head("world, B = 200");
    let [plain, .., tied, draws, binary, _] = &designs()[..] else {
        unreachable!("BUG: there are seven designs");
    };
    for design in [plain, tied, draws, binary] {
        let small = Design {
            prompts: design.prompts / 2,
            ..*design
        };
        let covers = covered(&small, worlds(1, 200), Some(200));
        for cover in covers {
            assert!(cover.errors.iter().all(|error| error.is_finite()));
        }
    }
}

#[test]
fn the_truth_is_the_mean_over_many_responses() {
    for design in designs() {
        let mut random = World::new(47, 0);
        let rows = 50_000;
        let (start, reach) = SCORES[0];
        let values: Vec<f64> = (0..rows)
            .map(|_| {
                let mix = PROMPT * random.uniform() + (1.0 - PROMPT) * random.uniform();
                design.mean(design.tied(start + reach * mix))
            })
            .collect();
        let mean = values.iter().sum::<f64>() / f64::from(rows);
        let square: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let error = (square / f64::from(rows) / f64::from(rows)).sqrt();
        let gap = (mean - design.truth(0)).abs();
        let limit = distribution::normal_quantile(0.9999) * error;
        assert!(gap < limit, "{}: {gap} over {limit}", design.name);
    }
}
