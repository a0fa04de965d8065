//! Environments under a calibrator: how often one in which the judge is biased is found, and a fair one is said to fail.

use clover::event::payload::Verdict;
use clover::event::payload::environment::EnvironmentScope;
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

/// Probes of each environment.
const PROBES: u32 = 200;
/// Labels that the calibrator is fitted on, in each environment in which the judge is fair.
const LABELS: u32 = 130;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Rows of four environments; in the last, labels lie `gap` below what the calibrator learns from the other three.
fn world(world: &mut World, gap: f64) -> Gathered {
    let mut gathered = Gathered::default();
    let design: clover::event::id::DesignId = "probes".parse().unwrap();
    for (at, name) in NAMES.iter().enumerate() {
        let is_last = at + 1 == NAMES.len();
        let (mut policy, mut source, mut probes) =
            (Policy::default(), Source::default(), Probes::default());
        policy.name = (*name).to_owned();
        for row in 0..(LABELS + PROBES) {
            let score = world.uniform();
            let off = if is_last { gap } else { 0.0 };
            let label = (0.25 + 0.5 * score - off + 0.17 * world.normal()).clamp(0.0, 1.0);
            let micro = (label * 1e6).round() as i64;
            policy
                .prompts
                .push(gathered.prompts.number(&format!("{name}{row}")));
            policy.scores.push(score);
            let place = row as usize;
            let is_fitted = row < LABELS && !is_last;
            policy.labels.push(is_fitted.then_some(micro as f64 / 1e6));
            source.draws.push(0);
            source.scores.push((score * 1e6) as i64);
            if is_fitted {
                source.labels.insert(place, vec![micro]);
            } else if row >= LABELS {
                probes.labels.insert(place, vec![micro]);
            }
        }
        gathered.dataset.policies.push(policy);
        gathered.sources.push(source);
        let held = gathered.probes.entry(design.clone()).or_default();
        held.insert(at, probes);
    }
    gathered
}

fn verdicts(stream: &mut World, gap: f64) -> Vec<Verdict> {
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
    let ask = EnvironmentAsk {
        correction: None,
        design: &design,
        environments: &scopes,
        family: &family,
        manifest: Digest([0; 32]),
        q: Micro::new(100_000).unwrap(),
    };
    let found = environments::fitted(world(stream, gap), &of, &design).unwrap();
    let tested = environments::test(&found, &ask).unwrap().unwrap();
    tested.environments.iter().map(|of| of.verdict).collect()
}

/// At 200 probes and a residual standard deviation of .17, a bias of .06 is found with probability .9 or more under a level
/// of .10 for the family of four; where the judge is fair everywhere, any fails in at most that share of worlds.
#[test]
fn a_bias_in_one_environment_is_found_and_fair_ones_rarely_fail() {
    let (mut power, mut any, mut held) = (Rate::default(), Rate::default(), Rate::default());
    for number in 0..worlds(120, 2_000) {
        let biased = verdicts(&mut World::new(91, number), 0.06);
        power.count(biased[3] == Verdict::Fail);
        let fair = verdicts(&mut World::new(92, number), 0.0);
        any.count(fair.contains(&Verdict::Fail));
        for verdict in fair {
            held.count(verdict == Verdict::Pass);
        }
    }
    power.within("a bias of .06 is found", 0.9, 1.0);
    any.within("any of four fair environments fails", 0.0, 0.1);
    held.within("a fair environment passes", 0.8, 1.0);
}
