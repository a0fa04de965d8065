//! The real sample as a population: how often a level is refused, and how often an interval covers the mean of its labels.

use std::path::Path;

use clover::stats::boundary;
use clover::stats::direct::Route;
use clover::stats::direct::Scale;
use clover::stats::sample::Values;
use clover::workflow::analyze;
use clover::workflow::analyze::Request;
use clover::workflow::analyze::dataset::Dataset;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::analyze::dataset::Prompts;
use rayon::prelude::*;
use serde_json::Value;

use crate::coverage::World;
use crate::coverage::decisions::Rate;
use crate::coverage::is_slow;
use crate::coverage::worlds;

const POLICIES: [&str; 4] = ["base", "clone", "parallel_universe_prompt", "unhelpful"];

/// Scores and labels of a policy's responses.
fn responses(policy: &str) -> Vec<(f64, Option<f64>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference/arena/fresh_draws");
    let text = std::fs::read_to_string(folder.join(format!("{policy}_responses.jsonl"))).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        (number("judge_score").unwrap(), number("oracle_label"))
    };
    text.lines().map(row).collect()
}

/// The labelled rows of `base`: score and label.
fn labelled() -> Vec<(f64, f64)> {
    let rows = responses("base").into_iter();
    rows.filter_map(|(score, label)| Some((score, label?)))
        .collect()
}

/// How often the support rule and the peer's range rule refuse each policy's level over draws of `kept` labels.
fn refusals(kept: usize, draws: u64) -> [[f64; 2]; 4] {
    let scores: Vec<f64> = labelled().iter().map(|row| row.0).collect();
    let targets: Vec<Vec<f64>> = POLICIES
        .iter()
        .map(|policy| responses(policy).iter().map(|row| row.0).collect())
        .collect();
    let mut counts = [[0.0; 2]; 4];
    for number in 0..draws {
        let mut world = World::new(u8::try_from(kept % 251).unwrap(), number);
        let chosen = world.chosen(scores.len(), kept);
        let own: Vec<f64> = scores
            .iter()
            .zip(chosen)
            .filter_map(|(score, chosen)| chosen.then_some(*score))
            .collect();
        let own = Values::new("labelled", &own).unwrap();
        for (count, target) in counts.iter_mut().zip(&targets) {
            let found = boundary::support(Values::new("target", target).unwrap(), own);
            count[0] += f64::from(found.refuse_level);
            count[1] += f64::from(found.out_of_range >= boundary::OUT_OF_RANGE_MAX);
        }
    }
    counts.map(|count| count.map(|hits| hits / draws as f64))
}

/// The rule flags the adversarial policy at every label count and hardly ever the honest ones; the range rule alone lets
/// it pass. Twelve counts by default, every one of them with `RUN_SLOW_TESTS=1`.
#[test]
fn a_level_is_refused_for_the_adversarial_policy_at_every_label_count() {
    println!(
        "labels | share of 200 draws refused: base clone parallel unhelpful | by range alone: the same"
    );
    let counts: Vec<usize> = if is_slow() {
        (24..=480).collect()
    } else {
        vec![24, 30, 48, 72, 96, 120, 168, 240, 312, 384, 432, 480]
    };
    let found: Vec<[[f64; 2]; 4]> = counts
        .par_iter()
        .map(|&kept| refusals(kept, if kept == 480 { 1 } else { 200 }))
        .collect();
    for (kept, found) in counts.into_iter().zip(found) {
        let [ours, range] = [0, 1].map(|rule| found.map(|policy| policy[rule]));
        println!("{kept:4} | {ours:.3?} | {range:.3?}");
        assert!((ours[3] - 1.0).abs() < 1e-12, "{kept} labels: {ours:?}");
        // The claim is about 24 labels and about 96 and more; in between, 0.10 widened by three Monte Carlo errors.
        let most = match kept {
            24 => 0.10,
            25..96 => 0.164,
            _ => 0.05,
        };
        for rate in &ours[..3] {
            assert!(*rate <= most, "{kept} labels: {ours:?}");
        }
        if kept >= 240 {
            assert!(range[3] < 0.5, "{kept} labels: {range:?}");
        }
    }
}

/// 480 rows drawn with replacement from the labelled ones, each a prompt of its own, 100 of them labelled; the truth is the
/// mean label of the 480.
#[test]
fn own_label_intervals_cover_the_mean_of_the_sample() {
    let rows = labelled();
    let truth = rows.iter().map(|row| row.1).sum::<f64>() / rows.len() as f64;
    let one = |number: u64| {
        let mut world = World::new(63, number);
        let mut prompts = Prompts::default();
        let mut policy = Policy {
            name: "base".to_owned(),
            ..Policy::default()
        };
        let chosen = world.chosen(rows.len(), 100);
        for (at, chosen) in chosen.into_iter().enumerate() {
            let place = world.uniform() * rows.len() as f64;
            let drawn = (1..rows.len())
                .take_while(|&row| row as f64 <= place)
                .count();
            let (score, label) = rows[drawn];
            policy
                .prompts
                .push(prompts.number(&format!("d{number}-{at}")));
            policy.scores.push(score);
            policy.labels.push(chosen.then_some(label));
        }
        let dataset = Dataset {
            policies: vec![policy],
            covariates: Vec::new(),
        };
        let request = Request {
            judge_scale: Some(Scale::UNIT),
            label_scale: Some(Scale::UNIT),
            ..Request::default()
        };
        let analysis = analyze::analyze(&dataset, &prompts, &request).unwrap();
        let estimate = &analysis.policies[0];
        assert_eq!(estimate.route, Route::Augmented);
        let interval = estimate.spread.unwrap().interval;
        (interval.contains(truth), interval.width())
    };
    let found: Vec<(bool, f64)> = (0..worlds(200, 1_000)).into_par_iter().map(one).collect();
    let mut rate = Rate::default();
    for (covers, _) in &found {
        rate.count(*covers);
    }
    let width = found.iter().map(|one| one.1).sum::<f64>() / found.len() as f64;
    println!("mean width {width:.4}");
    rate.within("own labels, 100 of 480", 0.93, 0.98);
}
