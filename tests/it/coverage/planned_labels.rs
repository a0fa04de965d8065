//! A plan of labels against simulated truth: what it promises to detect is told apart as often as it says.

use std::fmt::Write as _;

use clover::event::payload::estimated::Reading;
use clover::stats::direct::Scale;
use clover::workflow::analyze;
use clover::workflow::analyze::Request;
use clover::workflow::analyze::dataset::Dataset;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::dataset::Prompts;
use rayon::prelude::*;

use crate::cli::Desk;
use crate::coverage::World;
use crate::coverage::worlds;

/// Monte Carlo errors that a rate may lie beyond its promise.
const ERRORS: f64 = 3.0;
/// The difference that is planned for, and is true.
const EFFECT: f64 = 0.04;
/// The power that is planned.
const POWER: f64 = 0.8;

/// Two policies on the same prompts, the second better by `effect`: a score is the label with noise, and of each policy
/// `labels` rows have theirs.
fn world(number: u64, (prompts, labels): (usize, usize), effect: f64) -> Vec<Policy> {
    let mut random = World::new(91, number);
    let mut policies = ["base", "tuned"].map(|name| Policy {
        name: name.to_owned(),
        ..Policy::default()
    });
    let [base, tuned] = [labels; 2].map(|labels| random.chosen(prompts, labels));
    for (prompt, marks) in base.into_iter().zip(tuned).enumerate() {
        let marks = [marks.0, marks.1];
        let quality = 0.2 + 0.25 * (random.uniform() + random.uniform());
        for (at, policy) in policies.iter_mut().enumerate() {
            let better = if at == 1 { effect } else { 0.0 };
            let label = (quality + better + 0.1 * random.normal()).clamp(0.0, 1.0);
            policy.prompts.push(u32::try_from(prompt).unwrap());
            policy
                .scores
                .push((label + 0.15 * random.normal()).clamp(0.0, 1.0));
            policy.labels.push(marks[at].then_some(label));
        }
    }
    policies.into()
}

/// Scores and labels of each policy, as `plan labels` asks for them after a pilot of the same world.
fn planned() -> (usize, usize) {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all");
    desk.ok("experiment register exp-1 --title Plan --purpose testing");
    desk.ok("label design new calib --purpose calibrate --probability 0.2");
    let mut rows = "prompt_id,target_policy,judge_score,oracle_label\n".to_owned();
    for policy in world(0, (600, 120), 0.0) {
        let labels = policy
            .labels
            .iter()
            .map(|label| label.map_or_else(String::new, |label| format!("{label:.6}")));
        for ((prompt, score), label) in policy.prompts.iter().zip(&policy.scores).zip(labels) {
            writeln!(rows, "p-{prompt},{},{score:.6},{label}", policy.name).unwrap();
        }
    }
    desk.file("pilot.csv", &rows);
    desk.ok("import csv pilot.csv --labels");
    let line =
        format!("plan labels {EFFECT} --power {POWER} --score-price 0.01 --label-price 0.16");
    let plan = desk.ok(&format!("{line} --json")).json()["data"]["plan"].clone();
    let of = |name: &str| usize::try_from(plan["evaluation"][name].as_u64().unwrap()).unwrap();
    // Labels of each policy, and of both.
    assert_eq!(of("labels"), 2 * of("labels_each"), "{plan}");
    desk.ok("verify --recompute");
    (of("scores"), of("labels_each"))
}

/// How often the true difference is told apart.
fn told_apart(sizes: (usize, usize), count: u64) -> f64 {
    let mut prompts = Prompts::default();
    for prompt in 0..sizes.0 {
        prompts.number(&format!("p{prompt}"));
    }
    let told = (1..=count).into_par_iter().filter(|number| {
        let dataset = Dataset {
            policies: world(*number, sizes, EFFECT),
            covariates: Vec::new(),
        };
        let request = Request {
            judge_scale: Some(Scale::UNIT),
            label_scale: Some(Scale::UNIT),
            ..Request::default()
        };
        let found = analyze::analyze(&dataset, &prompts, &request).unwrap();
        found.reading(&found.differences[0]) == Reading::ToldApart
    });
    told.count() as f64 / count as f64
}

#[test]
fn a_plan_of_labels_has_the_power_that_it_promises() {
    let (scores, labels) = planned();
    let count = worlds(120, 2_000);
    let error = (POWER * (1.0 - POWER) / count as f64).sqrt();
    let rate = told_apart((scores, labels), count);
    println!("{scores} scores, {labels} labels of each: told apart {rate:.3} of {count}");
    assert!(rate > POWER - ERRORS * error, "{rate}");
    // Labels that both policies share are half as many of each: they do not do it.
    let shared = told_apart((scores, labels / 2), count);
    println!(
        "{scores} scores, {} labels of each: told apart {shared:.3} of {count}",
        labels / 2
    );
    assert!(shared < rate, "{shared} {rate}");
}
