//! Off-policy estimates under known truth: coverage where policies overlap, refusal where they do not.
//!
//! An action is a number, standard normal under the logger and shifted by `delta` under the target, so that ratios are
//! log-normal with variance `e^(delta^2) - 1`. The judge sees it through noise; the label's mean is a function of the score.

use clover::stats::calibrator;
use clover::stats::calibrator::Algorithm;
use clover::stats::calibrator::Mode;
use clover::stats::distribution;
use clover::stats::folds;
use clover::stats::inference::Interval;
use clover::stats::offpolicy;
use clover::stats::offpolicy::Draws;
use clover::stats::offpolicy::Estimator;
use clover::stats::offpolicy::LoggedRows;
use clover::stats::offpolicy::OffPolicy;
use clover::stats::offpolicy::Outcome;
use clover::stats::offpolicy::OverlapEvidence;
use clover::stats::offpolicy::OverlapVerdict;
use clover::stats::offpolicy::Ranks;
use clover::stats::offpolicy::Rewards;
use clover::stats::offpolicy::Thresholds;
use clover::stats::offpolicy::WeightEvidence;
use clover::stats::overlap;
use clover::stats::overlap::SurprisalThreshold;
use clover::stats::sample::Clusters;
use clover::stats::sample::Values;
use clover::stats::sample::Weights;
use clover::stats::weights;
use clover::stats::weights::LogRatios;
use clover::stats::weights::Objective;
use clover::stats::weights::StabiliserSettings;
use rayon::prelude::*;

use crate::coverage::World;
use crate::coverage::decisions::Rate;
use crate::coverage::worlds;

const ROWS: usize = 500;
const LABELS: usize = 125;
/// Spread of the judge's noise beside the action's.
const BLUR: f64 = 0.5;

fn mean_label(score: f64) -> f64 {
    0.15 + 0.7 * score * score
}

fn score(action: f64, noise: f64) -> f64 {
    distribution::normal_cdf((action + BLUR * noise) / (1.0 + BLUR * BLUR).sqrt())
}

/// E of the mean label under the target, by the midpoint rule over the normal law.
fn truth(delta: f64) -> f64 {
    let steps = 20_000;
    let at = |step: i32| {
        let z = distribution::normal_quantile((f64::from(step) + 0.5) / f64::from(steps));
        mean_label(distribution::normal_cdf(
            z + delta / (1.0 + BLUR * BLUR).sqrt(),
        ))
    };
    (0..steps).map(at).sum::<f64>() / f64::from(steps)
}

struct Answers {
    intervals: Vec<(Estimator, Interval)>,
    guide: Vec<offpolicy::GuideRow>,
}

fn column(values: &[f64]) -> Values<'_> {
    Values::new("column", values).unwrap()
}

fn answers(delta: f64, seed: u8, number: u64) -> Answers {
    let mut world = World::new(seed, number);
    let ids: Vec<String> = (0..ROWS).map(|row| format!("w{number}-{row}")).collect();
    let of_row: Vec<usize> = ids.iter().map(|id| folds::hash_mod(id, 5, 42)).collect();
    let actions: Vec<f64> = (0..ROWS).map(|_| world.normal()).collect();
    let scores: Vec<f64> = actions.iter().map(|a| score(*a, world.normal())).collect();
    let chosen = world.chosen(ROWS, LABELS);
    let labelled: Vec<usize> = (0..ROWS).filter(|&row| chosen[row]).collect();
    let labels: Vec<f64> = labelled
        .iter()
        .map(|&row| mean_label(scores[row]) + 0.2 * (world.uniform() - 0.5))
        .collect();
    let fresh: Vec<f64> = (0..ROWS).map(|_| delta + world.normal()).collect();
    let fresh_scores: Vec<f64> = fresh.iter().map(|a| score(*a, world.normal())).collect();
    let log_density = |a: f64, centre: f64| -0.5 * (a - centre) * (a - centre) - 1.0;
    let base: Vec<f64> = actions.iter().map(|a| log_density(*a, 0.0)).collect();
    let target: Vec<f64> = actions.iter().map(|a| log_density(*a, delta)).collect();
    let surprisals: Vec<f64> = fresh.iter().map(|a| -log_density(*a, delta)).collect();

    let pick = |from: &[f64]| labelled.iter().map(|&row| from[row]).collect::<Vec<f64>>();
    let own: Vec<usize> = labelled.iter().map(|&row| of_row[row]).collect();
    let settings = calibrator::CalibratorSettings {
        algorithm: Algorithm::Peer1,
        mode: Mode::Monotone,
    };
    let fitted = calibrator::fit(&pick(&scores), &labels, &[], &own, 5, None, settings).unwrap();
    let rewards = Rewards::of(&fitted, column(&scores), &[]).unwrap();
    let drawn = Rewards::of(&fitted, column(&fresh_scores), &[]).unwrap();
    let prompts = Clusters::of(ids.iter()).unwrap();
    let logged = LoggedRows::new(&rewards, &of_row, &prompts).unwrap();
    let numbers: Vec<u32> = (0..).take(ROWS).collect();
    let draws = Draws::new(&drawn, &numbers, &logged).unwrap();

    let ratios = LogRatios::new(&target, &base).unwrap();
    let raw = ratios.mean_one();
    let raw = Weights::new("raw", &raw, ROWS).unwrap();
    let objective = Objective::Rewards(logged.out_of_fold());
    let index = column(logged.out_of_fold());
    let stable = weights::cross_fit(
        raw,
        index,
        objective,
        &of_row,
        &of_row,
        &StabiliserSettings::default(),
    )
    .unwrap();
    let guarded = stable.guarded();
    let steady = Weights::new("stable", &stable.weights, ROWS).unwrap();
    let (doubly, parts) = offpolicy::doubly_robust(&logged, &draws, steady).unwrap();
    let ranks = |scores: &[f64]| Ranks::of(&fitted, column(scores), &[]).unwrap();
    let (here, there) = (ranks(&scores), ranks(&fresh_scores));
    let outcome = |weights| Outcome::isotonic(&logged, &draws, &here, &there, weights).unwrap();
    let (moved, _) = offpolicy::targeted(
        &logged,
        &draws,
        steady,
        &outcome(None),
        column(&scores),
        column(&fresh_scores),
    )
    .unwrap();
    let (weighted, _) =
        offpolicy::more_robust(&logged, &draws, steady, &outcome(Some(steady))).unwrap();
    let mut found: Vec<OffPolicy> = vec![
        offpolicy::weighted_mean(Estimator::Snips, &logged, raw).unwrap(),
        offpolicy::weighted_mean(Estimator::CalibratedIps, &logged, steady).unwrap(),
        doubly,
        moved,
        weighted,
    ];
    found.push(offpolicy::stack(&found[2..]).unwrap().estimate);

    let fresh_threshold = SurprisalThreshold::Fresh(column(&surprisals));
    let coverage =
        overlap::coverage(&target, &base, None, fresh_threshold, overlap::TYPICAL_MASS).unwrap();
    let full = column(rewards.full());
    let test = overlap::orthogonality(steady, full, column(&parts.predicted), &prompts, 0.05);
    let affinity = overlap::bhattacharyya(column(&scores), column(&fresh_scores), 20);
    let evidence = OverlapEvidence {
        stabilised: Some(WeightEvidence::of(steady)),
        guarded: Some(guarded),
        affinity: Some(affinity.unwrap()),
        orthogonality: Some(test.unwrap()),
        ..OverlapEvidence::of(&ratios, Some(&coverage), true).unwrap()
    };
    Answers {
        intervals: found
            .iter()
            .map(|one| (one.estimator, one.spread(&prompts, 0.05).unwrap().interval))
            .collect(),
        guide: offpolicy::guide(&evidence, &Thresholds::DEFAULT).unwrap(),
    }
}

fn run(delta: f64, seed: u8, count: u64) -> Vec<Answers> {
    (0..count)
        .into_par_iter()
        .map(|number| answers(delta, seed, number))
        .collect()
}

fn share(all: &[Answers], estimator: Estimator, verdict: OverlapVerdict) -> f64 {
    let says = |one: &&Answers| {
        let row = one.guide.iter().find(|row| row.estimator == estimator);
        row.is_some_and(|row| row.verdict == verdict)
    };
    all.iter().filter(says).count() as f64 / all.len() as f64
}

#[test]
fn intervals_cover_where_policies_overlap() {
    let delta = 0.3;
    let truth = truth(delta);
    let all = run(delta, 61, worlds(150, 2_000));
    println!("| estimator | coverage | error | worlds | width |");
    for at in 0..6 {
        let mut rate = Rate::default();
        let mut width = 0.0;
        for one in &all {
            let (_, interval) = one.intervals[at];
            rate.count(interval.contains(truth));
            width += interval.width();
        }
        let name = all[0].intervals[at].0.name();
        println!("{name}: mean width {:.4}", width / all.len() as f64);
        rate.within(name, 0.93, 0.98);
    }
    for estimator in [Estimator::Snips, Estimator::CalibratedIps] {
        let refused = share(&all, estimator, OverlapVerdict::Refused);
        println!("{}: refused in {refused:.4}", estimator.name());
        assert!(refused <= 0.02);
    }
    let refused = share(&all, Estimator::DrCpo, OverlapVerdict::Refused);
    println!("dr-cpo: refused in {refused:.4}");
}

#[test]
fn weighted_means_are_refused_where_policies_do_not_overlap() {
    let delta = 2.5;
    let truth = truth(delta);
    let all = run(delta, 62, worlds(40, 500));
    for estimator in [Estimator::Snips, Estimator::CalibratedIps] {
        let refused = share(&all, estimator, OverlapVerdict::Refused);
        assert!(
            (refused - 1.0).abs() < 1e-12,
            "{}: {refused}",
            estimator.name()
        );
    }
    // What the gate spares the reader.
    for at in 0..6 {
        let covers = |one: &&Answers| one.intervals[at].1.contains(truth);
        let rate = all.iter().filter(covers).count() as f64 / all.len() as f64;
        println!(
            "{}: would cover in {rate:.3}",
            all[0].intervals[at].0.name()
        );
    }
}
