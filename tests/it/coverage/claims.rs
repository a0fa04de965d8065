//! What "told apart" promises, and what an interval of labels that nearly all are one value promises, in worlds whose truth
//! is known.

use clover::event::payload::estimated::Reading;
use clover::stats::direct::Route;
use clover::stats::direct::Scale;
use clover::workflow::analyze;
use clover::workflow::analyze::Analysis;
use clover::workflow::analyze::Probe;
use clover::workflow::analyze::Request;
use clover::workflow::analyze::dataset::Dataset;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::dataset::Prompts;
use rayon::prelude::*;

use crate::coverage::World;
use crate::coverage::worlds;

const PROMPTS: usize = 1000;
/// Monte Carlo errors that a rate may lie beyond its promise.
const ERRORS: f64 = 3.0;

fn numbered(prompts: usize) -> Prompts {
    let mut all = Prompts::default();
    for prompt in 0..prompts {
        all.number(&format!("p{prompt}"));
    }
    all
}

fn add(policy: &mut Policy, prompt: usize, score: f64, label: Option<f64>) {
    policy.prompts.push(u32::try_from(prompt).unwrap());
    policy.scores.push(score);
    policy.labels.push(label);
}

fn named(name: &str) -> Policy {
    Policy {
        name: name.to_owned(),
        ..Policy::default()
    }
}

fn analysis(policies: Vec<Policy>, probes: &[Probe]) -> Analysis {
    let dataset = Dataset {
        policies,
        covariates: Vec::new(),
    };
    let request = Request {
        judge_scale: Some(Scale::UNIT),
        label_scale: Some(Scale::UNIT),
        probes,
        ..Request::default()
    };
    analyze::analyze(&dataset, &numbered(PROMPTS), &request).unwrap()
}

/// What the second policy of a pair rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rest {
    OwnLabels,
    /// 200 probes with a margin of .08.
    Audit,
    /// 150 probes with a margin of .05, of a judge whose favour they cannot miss.
    FailedAudit,
    /// Scores beyond those that were ever labelled.
    OutOfRange,
    Nothing,
}

/// Two policies of the same true value: labels are 0.2 + 0.6 quality + noise. The judge sees quality, and adds its favour
/// to the scores of the second.
fn pair(number: u64, rest: Rest, favour: f64) -> Analysis {
    let mut random = World::new(90, number);
    let mut policies = vec![named("base"), named("tuned")];
    let mut probe = named("tuned");
    let seen = [200, 200].map(|labels| random.chosen(PROMPTS, labels));
    let [first, second] = &seen;
    let seen = first.iter().zip(second).map(|(one, two)| [*one, *two]);
    for (prompt, seen) in seen.enumerate() {
        for (at, policy) in policies.iter_mut().enumerate() {
            let quality = random.uniform();
            let label = 0.2 + 0.6 * quality + 0.2 * (random.uniform() - 0.5);
            let beyond = if at == 1 { favour } else { 0.0 };
            let score = (0.1 + 0.5 * quality + 0.1 * random.uniform() + beyond).min(1.0);
            let own = at == 0 || rest == Rest::OwnLabels;
            let shown = (own && seen[at]).then_some(label);
            add(policy, prompt, score, shown);
            let is_audited = matches!(rest, Rest::Audit | Rest::FailedAudit);
            if at == 1 && is_audited && seen[at] {
                add(&mut probe, prompt, score, Some(label));
            }
        }
    }
    let margin = if rest == Rest::Audit { 0.08 } else { 0.05 };
    let probes = [Probe {
        responses: probe,
        margin: Some(margin),
    }];
    let is_audited = matches!(rest, Rest::Audit | Rest::FailedAudit);
    analysis(policies, if is_audited { &probes } else { &[] })
}

/// How often the pair is told apart, by p alone and as it is read; and how often it is unchecked.
fn told(rest: Rest, favour: f64, count: u64) -> [f64; 3] {
    let found: Vec<(bool, Reading)> = (0..count)
        .into_par_iter()
        .map(|number| {
            let found = pair(number, rest, favour);
            let pair = &found.differences[0];
            (pair.p < found.alpha, found.reading(pair))
        })
        .collect();
    let share = |is: &dyn Fn(&(bool, Reading)) -> bool| {
        found.iter().filter(|of| is(of)).count() as f64 / found.len() as f64
    };
    let rates = [
        share(&|of| of.0),
        share(&|of| of.1 == Reading::ToldApart),
        share(&|of| of.1 == Reading::Unchecked),
    ];
    println!(
        "| {rest:?}, judge's favour {favour:.2} | p < .05 {:.3} | told apart {:.3} | unchecked {:.3} | {count} |",
        rates[0], rates[1], rates[2]
    );
    rates
}

#[test]
fn what_is_told_apart_at_no_difference_is_no_more_than_alpha() {
    let count = worlds(24, 1_000);
    let most = 0.05 + ERRORS * (0.05 * 0.95 / count as f64).sqrt();
    for (rest, favour) in [
        (Rest::OwnLabels, 0.0),
        (Rest::OwnLabels, 0.15),
        (Rest::Audit, 0.0),
        // Small enough for half of the audits to pass, and seen by every comparison.
        (Rest::Audit, 0.06),
    ] {
        let [_, told, unchecked] = told(rest, favour, count);
        assert!(told <= most, "{rest:?} {favour}: {told}");
        assert!(unchecked < 1.0, "{rest:?} {favour}: {unchecked}");
    }
    for (rest, favour) in [
        (Rest::Nothing, 0.15),
        (Rest::FailedAudit, 0.15),
        (Rest::OutOfRange, 0.45),
    ] {
        let [by_p, told, unchecked] = told(rest, favour, count);
        // A judge's favour looks like a difference, and nothing may be said of it.
        assert!(by_p > 0.9, "{rest:?}: {by_p}");
        assert!(
            told <= 0.0 && unchecked >= 1.0,
            "{rest:?}: {told} {unchecked}"
        );
    }
}

/// Labels of which few are not 0.
#[derive(Clone, Copy, Debug)]
struct Rare {
    labels: usize,
    /// Probability of a label of 1, and of one half.
    ones: f64,
    halves: f64,
    /// Whether the judge sees which ones they are.
    sees: bool,
}

impl Rare {
    fn truth(self) -> f64 {
        self.ones + 0.5 * self.halves
    }

    fn world(self, number: u64) -> Analysis {
        let mut random = World::new(91, number);
        let mut policy = named("base");
        let seen = random.chosen(PROMPTS, self.labels);
        for (prompt, seen) in seen.into_iter().enumerate() {
            let draw = random.uniform();
            let label = match draw {
                draw if draw < self.ones => 1.0,
                draw if draw < self.ones + self.halves => 0.5,
                _ => 0.0,
            };
            let noise = random.uniform();
            let score = if self.sees {
                0.5 * (noise + label)
            } else {
                noise
            };
            add(&mut policy, prompt, score, seen.then_some(label));
        }
        analysis(vec![policy], &[])
    }
}

/// How often the t interval, the interval in force and that of labels alone cover, with the mean width of the second.
fn covers(world: Rare, count: u64) -> [f64; 4] {
    let truth = world.truth();
    let found: Vec<[f64; 4]> = (0..count)
        .into_par_iter()
        .map(|number| {
            let found = world.world(number);
            let policy = &found.policies[0];
            assert_eq!(policy.route, Route::Augmented);
            let (sound, _) = policy.interval().unwrap();
            assert!(sound.width() > 0.0);
            let alone = policy.labels_alone().unwrap().interval.unwrap();
            let plain = policy.spread.unwrap().interval;
            let hit = |hit: bool| f64::from(u8::from(hit));
            [
                hit(plain.contains(truth)),
                hit(sound.contains(truth)),
                hit(alone.contains(truth)),
                sound.width(),
            ]
        })
        .collect();
    let mean = |at: usize| found.iter().map(|of| of[at]).sum::<f64>() / found.len() as f64;
    let rates = [mean(0), mean(1), mean(2), mean(3)];
    println!(
        "| {} labels, {:.4} of 1, {:.4} of one half, judge {} | t {:.3} | in force {:.3} | labels alone {:.3} | width {:.4} | {count} |",
        world.labels,
        world.ones,
        world.halves,
        if world.sees { "sees" } else { "blind" },
        rates[0],
        rates[1],
        rates[2],
        rates[3]
    );
    rates
}

#[test]
fn intervals_of_rare_labels_cover() {
    let count = worlds(40, 1_000);
    let least = 0.93 - ERRORS * (0.93 * 0.07 / count as f64).sqrt();
    for labels in [50, 100, 200, 400] {
        for (ones, halves) in [(0.01, 0.0), (0.005, 0.005)] {
            for sees in [false, true] {
                let world = Rare {
                    labels,
                    ones,
                    halves,
                    sees,
                };
                let [_, sound, alone, _] = covers(world, count);
                assert!(
                    sound >= least && alone >= least,
                    "{world:?}: {sound} {alone}"
                );
            }
        }
    }
    // Around the count of 10 above which a t interval stands alone.
    for ones in [0.02, 0.03, 0.04, 0.05, 0.06] {
        let world = Rare {
            labels: 400,
            ones,
            halves: 0.0,
            sees: false,
        };
        let [_, sound, alone, _] = covers(world, count);
        assert!(
            sound >= least && alone >= least,
            "{world:?}: {sound} {alone}"
        );
    }
}
