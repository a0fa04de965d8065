//! Environments under a calibrator: how often one in which the judge is biased is found, a fair one is said to fail, and an
//! interval holds the true mean residual.

use clover::event::payload::Verdict;
use clover::event::payload::environment::EnvironmentOutcome;
use clover::event::payload::environment::EnvironmentScope;
use clover::event::payload::estimate::FamilyCorrection;
use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::workflow::analyze::dataset::Policy;
use clover::workflow::estimate::environments;
use clover::workflow::estimate::environments::EnvironmentAsk;
use clover::workflow::estimate::rows::Gathered;
use clover::workflow::estimate::rows::Probes;
use clover::workflow::estimate::rows::Source;
use clover::workflow::estimate::terms;

use crate::coverage::World;
use crate::coverage::decisions::Rate;
use crate::coverage::worlds;

/// Labels that the calibrator is fitted on, in each environment in which the judge is fair.
const LABELS: u32 = 130;
/// The standard deviation of a label around its mean.
const SD: f64 = 0.17;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A label at a score, `gap` below what the judge's score means elsewhere.
fn label(score: f64, gap: f64, noise: f64) -> f64 {
    (0.25 + 0.5 * score - gap + SD * noise).clamp(0.0, 1.0)
}

/// Rows of four environments; in the last, labels lie `gap` below what the calibrator learns from the other three.
fn world(world: &mut World, gap: f64, count: u32) -> Gathered {
    let mut gathered = Gathered::default();
    let design: clover::event::id::DesignId = "probes".parse().unwrap();
    for (at, name) in NAMES.iter().enumerate() {
        let is_last = at + 1 == NAMES.len();
        let (mut policy, mut source, mut probes) =
            (Policy::default(), Source::default(), Probes::default());
        policy.name = (*name).to_owned();
        for row in 0..(LABELS + count) {
            let score = world.uniform();
            let label = label(score, if is_last { gap } else { 0.0 }, world.normal());
            let micro: i64 = format!("{:.0}", label * 1e6).parse().unwrap();
            policy
                .prompts
                .push(gathered.prompts.number(&format!("{name}{row}")));
            policy.scores.push(score);
            let place = row as usize;
            let is_fitted = row < LABELS && !is_last;
            policy.labels.push(is_fitted.then_some(micro as f64 / 1e6));
            source.draws.push(0);
            source
                .scores
                .push(format!("{:.0}", (score * 1e6).trunc()).parse().unwrap());
            source.scored.push(1);
            if is_fitted {
                source.labels.insert(place, vec![micro]);
            } else if row >= LABELS {
                probes.labels.insert(place, vec![micro]);
                probes.first.insert(place, 2);
            }
        }
        gathered.dataset.policies.push(policy);
        gathered.sources.push(source);
        let held = gathered.probes.entry(design.clone()).or_default();
        held.insert(at, probes);
    }
    gathered
}

fn tested(
    gathered: Gathered,
    corrections: &[Option<FamilyCorrection>],
) -> Vec<Vec<EnvironmentOutcome>> {
    let of = terms::usual("judge".parse().unwrap(), Vec::new());
    let (design, family) = ("probes".parse().unwrap(), "policy".parse().unwrap());
    let scopes = NAMES.map(|name| {
        let environment = name.parse().unwrap();
        let scope = EnvironmentScope {
            environment,
            family: "policy".parse().unwrap(),
            window: None,
        };
        (scope, true)
    });
    let found = environments::fitted(gathered, &of, &design).unwrap();
    let each = corrections.iter().map(|&correction| {
        let ask = EnvironmentAsk {
            correction,
            design: &design,
            environments: &scopes,
            family: &family,
            inside: false,
            manifest: Digest([0; 32]),
            obstacles: &[],
            q: Micro::new(100_000).unwrap(),
        };
        let tested = environments::test(&found, &ask).unwrap().unwrap();
        assert_eq!(tested.late.value(), 0);
        tested.environments
    });
    each.collect()
}

/// The true mean residual of the last environment: what its labels lie below those at the same scores elsewhere.
fn truth(gap: f64) -> f64 {
    let mut stream = World::new(90, 0);
    let rows = 200_000;
    let total: f64 = (0..rows)
        .map(|_| {
            let (score, noise) = (stream.uniform(), stream.normal());
            label(score, gap, noise) - label(score, 0.0, noise)
        })
        .sum();
    total / f64::from(rows)
}

fn fails(of: &EnvironmentOutcome) -> bool {
    of.verdict == Verdict::Fail
}

fn covers(of: &EnvironmentOutcome, truth: f64) -> bool {
    let ends = of.interval.unwrap();
    ends.low.value() <= truth && truth <= ends.high.value()
}

/// Given a judge that is fair everywhere, when four environments of 200 probes are tested at .10, then any fails in at most that
/// share of worlds under each correction, and intervals hold zero.
#[test]
fn fair_environments_rarely_fail_under_any_correction() {
    let corrections = [
        (None, "Benjamini-Hochberg"),
        (Some(FamilyCorrection::Holm), "Holm"),
        (Some(FamilyCorrection::Bonferroni), "Bonferroni"),
        (
            Some(FamilyCorrection::BenjaminiYekutieli),
            "Benjamini-Yekutieli",
        ),
    ];
    let asked = corrections.map(|(correction, _)| correction);
    let mut any = [Rate::default(); 4];
    let (mut held, mut covered) = (Rate::default(), Rate::default());
    for number in 0..worlds(300, 4_000) {
        let found = tested(world(&mut World::new(92, number), 0.0, 200), &asked);
        for (any, outcomes) in any.iter_mut().zip(&found) {
            any.count(outcomes.iter().any(fails));
        }
        for of in &found[0] {
            held.count(of.verdict == Verdict::Pass);
            covered.count(covers(of, 0.0));
        }
    }
    for (any, (_, name)) in any.into_iter().zip(corrections) {
        any.within(
            &format!("any of four fair environments fails, {name}"),
            0.0,
            0.1,
        );
    }
    covered.within("an interval of a fair environment holds 0", 0.93, 0.98);
    held.within("a fair environment passes", 0.8, 1.0);
}

/// Given a judge that overrates one of four environments, when 200 probes of each are tested at .10, then a bias of .06 is
/// found with probability .9 or more, and the interval holds the true mean residual.
#[test]
fn a_bias_in_one_environment_is_found_and_its_size_covered() {
    for (gap, least) in [(0.03, 0.3), (0.06, 0.9), (0.1, 0.999)] {
        let truth = truth(gap);
        let (mut power, mut covered, mut passed) =
            (Rate::default(), Rate::default(), Rate::default());
        for number in 0..worlds(120, 4_000) {
            let found = tested(world(&mut World::new(91, number), gap, 200), &[None]);
            let last = &found[0][3];
            power.count(fails(last));
            passed.count(last.verdict == Verdict::Pass);
            covered.count(covers(last, truth));
        }
        power.within(&format!("a bias of {gap} fails"), least, 1.0);
        covered.within(&format!("the interval holds a bias of {gap}"), 0.93, 0.98);
        // What passes may hide a bias of .05 with probability .20, and a larger one more rarely.
        let most = if gap > 0.05 { 0.2 } else { 1.0 };
        passed.within(&format!("a bias of {gap} passes"), 0.0, most);
    }
}

/// Given 60 probes of each environment, by which no bias of .05 would be seen, when they are tested, then none passes.
#[test]
fn an_environment_of_few_probes_passes_nothing() {
    let (mut passed, mut failed) = (Rate::default(), Rate::default());
    for number in 0..worlds(60, 2_000) {
        let found = tested(world(&mut World::new(93, number), 0.0, 60), &[None]);
        passed.count(found[0].iter().any(|of| of.verdict == Verdict::Pass));
        failed.count(found[0].iter().any(fails));
    }
    passed.within("any of four environments of 60 probes passes", 0.0, 0.1);
    failed.within("any of four fair environments of 60 probes fails", 0.0, 0.1);
}
