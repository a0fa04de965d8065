//! Gates on the peer's own streams: what they promote, when they stop, and where the peer's rule fails.
//!
//! The generators are those of `agent-eval` 0.170.0 to the digit; deltas are rounded to whole millionths, as recorded.

use clover::event::id::ItemId;
use clover::event::id::ManifestId;
use clover::event::id::Root;
use clover::event::payload::gate::DrawnFrom;
use clover::event::payload::manifest::FamilyMethod;
use clover::event::payload::manifest::Metric;
use clover::ground::digest::Digest;
use clover::num::Count;
use clover::num::Micro;
use clover::projection::manifests::Family;
use clover::projection::orders;
use clover::stats::eprocess::Claim;
use clover::stats::eprocess::Design;
use clover::stats::eprocess::EvalueThreshold;
use clover::stats::eprocess::Gate;
use clover::stats::eprocess::GateTerms;
use clover::stats::eprocess::Look;
use clover::stats::eprocess::Looks;
use clover::stats::eprocess::Verdict;
use clover::stats::eprocess::bettor;
use clover::stats::eprocess::compat::Decision;
use clover::stats::eprocess::compat::PairedGate;
use clover::stats::eprocess::compat::PairedGateOptions;
use clover::stats::eprocess::mulberry::Mulberry32;
use clover::workflow::gates::steps;
use rayon::prelude::*;
use serde_json::json;

use crate::coverage::is_slow;
use crate::coverage::worlds;

const UNIT: i64 = 1_000_000;

#[expect(clippy::cast_possible_truncation, reason = "rounded and small")]
fn micro(delta: f64) -> i64 {
    (delta * 1e6).round() as i64
}

/// Mean-zero streams of the headline.
fn null(seed: i64) -> impl Iterator<Item = f64> {
    let mut generator = Mulberry32::new(7919 * seed);
    std::iter::repeat_with(move || (generator.uniform() * 2.0 - 1.0) * 0.9)
}

/// Streams of effect .2.
fn effect(seed: i64) -> impl Iterator<Item = f64> {
    let mut generator = Mulberry32::new(104_729 * seed);
    std::iter::repeat_with(move || 0.2 + (generator.uniform() * 2.0 - 1.0) * 0.6)
}

/// Runs a gate to its verdict.
fn run(terms: &GateTerms, deltas: impl Iterator<Item = f64>) -> (Verdict, u64) {
    let mut gate = Gate::verdicts_only(Design::new(terms.clone()).unwrap());
    for delta in deltas {
        if gate.push(micro(delta)).unwrap().verdict.is_terminal() {
            break;
        }
    }
    (gate.verdict(), gate.n())
}

/// Four Monte Carlo errors above alpha.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small count"
)]
fn most(runs: u64) -> u64 {
    let runs = runs as f64;
    (runs * 0.05 + 4.0 * (runs * 0.05 * 0.95).sqrt()) as u64
}

#[test]
fn the_default_stops_early_on_the_headline_streams() {
    let terms = GateTerms::new(UNIT, 400);
    let mut stops: Vec<u64> = (1..=200)
        .map(|seed| {
            let (verdict, n) = run(&terms, effect(seed));
            assert_eq!(verdict, Verdict::Promote);
            n
        })
        .collect();
    stops.sort_unstable();
    // source: an independent run of this bettor in numpy, 30, 48 and 65; the peer has 68, 88 and 121.
    assert!(
        stops[100] <= 32 && stops[179] <= 50,
        "{} {}",
        stops[100],
        stops[179]
    );
    assert_eq!((stops[100], stops[179], stops[199]), (30, 48, 65));
    let promoted = (1..=200).filter(|seed| run(&terms, null(*seed)).0 == Verdict::Promote);
    // source: the same run, 9 of the 200 null streams (the peer promotes 5).
    assert_eq!(promoted.count(), 9);
}

#[test]
fn null_streams_promote_at_most_alpha() {
    let terms = GateTerms::new(UNIT, 400);
    let runs = worlds(1_000, 20_000);
    let promoted = (1..=i64::try_from(runs).unwrap())
        .into_par_iter()
        .filter(|seed| run(&terms, null(*seed)).0 == Verdict::Promote)
        .count() as u64;
    println!("{promoted} of {runs} null streams promoted");
    // source: the same run, .0336 of all 20,000, which must stay below alpha itself.
    let bound = if is_slow() { runs / 20 } else { most(runs) };
    assert!(promoted <= bound, "{promoted} of {runs}");
}

/// A metric of scores from -1 to 1 whose differences are at most 1, so many draws of each arm.
fn metric(repeats: u32) -> Metric {
    let terms = json!({
        "difference_max_micro": UNIT, "direction": "increase", "judge_digest": Digest([1; 32]).to_hex(),
        "metric": "quality", "repeats": repeats, "scale_hi_micro": UNIT, "scale_lo_micro": -UNIT,
    });
    serde_json::from_value(terms).unwrap()
}

/// Scenarios with an effect of their own, and so many repeats of each around it.
fn scenarios(seed: i64, [count, repeats]: [u32; 2], shift: f64, is_null: bool) -> Vec<Vec<f64>> {
    let mut generator = Mulberry32::new(97 * seed + 11);
    let one = |_| {
        let up = generator.uniform() < 0.5;
        let shift = if up || !is_null { shift } else { -shift };
        let noise = |u: f64| shift + (u * 2.0 - 1.0) * 0.2;
        (0..repeats).map(|_| noise(generator.uniform())).collect()
    };
    (0..count).map(one).collect()
}

/// Whether the gate of a manifest promotes on them: one unit a scenario, its draws summed as `gate.observed` sums them.
fn promotes(scenarios: &[Vec<f64>]) -> bool {
    let (units, repeats) = (
        scenarios.len() as u64,
        u32::try_from(scenarios[0].len()).unwrap(),
    );
    let metric = metric(repeats);
    let mut terms = GateTerms::new(UNIT, units);
    terms.repeats = repeats;
    let mut gate = Gate::verdicts_only(Design::new(terms).unwrap());
    for scenario in scenarios {
        let draws: Vec<_> = scenario
            .iter()
            .map(|delta| Micro::new(micro(*delta)))
            .collect();
        let zero = vec![Micro::new(0); scenario.len()];
        let reading = steps::reading(&metric, &zero, &draws).unwrap();
        if gate
            .push(reading.delta_micro.value())
            .unwrap()
            .verdict
            .is_terminal()
        {
            break;
        }
    }
    gate.verdict() == Verdict::Promote
}

/// Whether the peer does, which takes each repeat for an observation.
fn peer_promotes(scenarios: &[Vec<f64>]) -> bool {
    let mut cells: Vec<f64> = scenarios.concat();
    Mulberry32::new(1337).shuffle(&mut cells);
    let options = PairedGateOptions {
        max_n: Some(cells.len() as u64),
        ..PairedGateOptions::default()
    };
    let mut pooled = PairedGate::new(&options).unwrap();
    for delta in cells {
        if pooled.push(delta).unwrap() != Decision::Continue {
            break;
        }
    }
    pooled.decision() == Decision::Promote
}

#[test]
fn clustered_repeats_are_one_observation() {
    let runs = worlds(300, 1_000);
    let rate = |of: &dyn Fn(i64) -> bool| {
        let seeds = 0..i64::try_from(runs).unwrap();
        seeds.filter(|seed| of(*seed)).count() as u64
    };
    let peer = rate(&|seed| peer_promotes(&scenarios(seed, [5, 20], 0.3, true)));
    // source: README of the vectors, .176 of 1,000 runs for the peer.
    assert!(peer as f64 / runs as f64 > 0.1, "{peer} of {runs}");
    // Five units could never promote, and the horizon says so.
    let five = GateTerms {
        repeats: 20,
        ..GateTerms::new(UNIT, 5)
    };
    assert!(Design::new(five).is_err());
    // Forms in which the gate promotes a true effect of the same size, so that it could be wrong.
    for (form, shift, finds) in [
        ([10, 10], 0.8, 0.9),
        ([40, 5], 0.3, 0.9),
        ([40, 5], 0.8, 0.9),
    ] {
        let peer = rate(&|seed| peer_promotes(&scenarios(seed, form, shift, true)));
        let null = rate(&|seed| promotes(&scenarios(seed, form, shift, true)));
        let true_effect = rate(&|seed| promotes(&scenarios(seed, form, shift, false)));
        println!(
            "{form:?} at {shift}, {runs} runs: peer {peer}, ours {null}, a true effect {true_effect}"
        );
        assert!(null <= most(runs), "{null} of {runs}");
        assert!(
            true_effect as f64 > finds * runs as f64,
            "{true_effect} of {runs}"
        );
    }
}

/// Candidates of one generation on some scenarios: the scores of each.
fn scores(generator: &mut Mulberry32, scenarios: usize) -> Vec<f64> {
    let score = |u: f64| 0.5 + (u * 2.0 - 1.0) * 0.3;
    (0..scenarios).map(|_| score(generator.uniform())).collect()
}

fn best(generator: &mut Mulberry32, candidates: usize, scenarios: usize) -> Vec<f64> {
    let all: Vec<Vec<f64>> = (0..candidates)
        .map(|_| scores(generator, scenarios))
        .collect();
    let total = |scores: &[f64]| scores.iter().sum::<f64>();
    let top = all.into_iter().max_by(|a, b| total(a).total_cmp(&total(b)));
    top.unwrap()
}

#[test]
fn a_null_loop_stops_at_most_at_alpha() {
    let runs = worlds(200, 1_000);
    let (mut peer, mut improved, mut promoted, mut chosen) = (0, 0, 0, 0);
    for seed in 0..i64::try_from(runs).unwrap() {
        let mut generator = Mulberry32::new(131 * seed + 3);
        // The peer's rule: the top of five on the same scenarios against the first generation, pooled.
        let options = PairedGateOptions {
            max_n: Some(400),
            ..PairedGateOptions::default()
        };
        let mut pooled = PairedGate::new(&options).unwrap();
        let baseline = scores(&mut generator, 20);
        'peer: for _ in 0..20 {
            for (score, base) in best(&mut generator, 5, 20).iter().zip(&baseline) {
                if pooled.push(score - base).unwrap() != Decision::Continue {
                    break 'peer;
                }
            }
        }
        peer += u64::from(pooled.decision() == Decision::Promote);
        // Ours: each candidate is picked on other units than those that it is tested on.
        let found = generations(&mut generator, 0.0, Tested::Fresh);
        improved += u64::from(found.improved);
        promoted += u64::from(found.promoted);
        let found = generations(&mut generator, 0.0, Tested::Chosen);
        chosen += u64::from(found.improved || found.promoted);
    }
    println!(
        "null loops, {runs} runs: peer {peer}, improved {improved}, promoted {promoted}, on units that chose {chosen}"
    );
    // source: README of the vectors, .566 for the peer at G = 20, K = 5.
    assert!(peer as f64 / runs as f64 > 0.4, "{peer} of {runs}");
    assert!(improved <= most(runs), "{improved} of {runs}");
    assert!(promoted <= most(runs), "{promoted} of {runs}");
    // The gates could be wrong: units that chose the candidates fool them.
    assert!(chosen > runs / 2, "{chosen} of {runs}");
}

/// Units that the winners of a generation are tested on.
#[derive(Clone, Copy, PartialEq)]
enum Tested {
    /// Those that chose them.
    Chosen,
    /// Others, which no selection saw.
    Fresh,
}

/// What a loop of twenty generations showed.
struct Found {
    /// By the product of the e-values of its gates, as `family show` multiplies them.
    improved: bool,
    /// By a gate of its own.
    promoted: bool,
}

/// One gate a generation in a family by e-LOND, each at the level that the family leaves it, of the best of five candidates on
/// a hundred units; they are better than the baseline by `gain` more a generation. Either way of ending a loop is followed to
/// its own end.
fn generations(generator: &mut Mulberry32, gain: f64, on: Tested) -> Found {
    const UNITS: usize = 100;
    let mut family = Family {
        alpha: 50_000,
        closed_seq: None,
        gamma: (1..=20).map(|t| UNIT / (t * (t + 1))).collect(),
        joined: Vec::new(),
        members: None,
        members_max: 20,
        method: FamilyMethod::Elond,
        opened_seq: 0,
        rejected: Vec::new(),
    };
    let bar = EvalueThreshold::of_level(50_000).ln();
    let (mut log_e, mut n) = (0.0, 0);
    let (mut improved, mut promoted) = (false, false);
    for generation in 0..20 {
        let gain = gain * f64::from(generation);
        let chosen = best(generator, 5, UNITS);
        let tested = if on == Tested::Fresh {
            scores(generator, UNITS)
        } else {
            chosen
        };
        let id: ManifestId = format!("g-{generation}").parse().unwrap();
        let alpha = family.share_of(None).min(family.alpha);
        family.joined.push((id.clone(), alpha));
        let terms = GateTerms::new(UNIT, UNITS as u64).at_level(u32::try_from(alpha).unwrap());
        let mut gate = Gate::verdicts_only(Design::new(terms).unwrap());
        for (score, base) in tested.iter().zip(scores(generator, UNITS)) {
            let step = gate.push(micro(score + gain - base)).unwrap();
            if step.verdict.is_terminal() {
                break;
            }
        }
        log_e += gate.look().claim.unwrap().ln_wealth;
        n += gate.n();
        improved |= bettor::is_past(n, bettor::FRACTIONS_MAX, log_e, bar);
        if gate.verdict() == Verdict::Promote {
            promoted = true;
            family.rejected.push(id);
        }
    }
    Found { improved, promoted }
}

#[test]
fn a_loop_that_improves_is_seen_both_ways() {
    let (mut improved, mut promoted) = (0, 0);
    for seed in 0..50 {
        let mut generator = Mulberry32::new(131 * seed + 3);
        let found = generations(&mut generator, 0.01, Tested::Fresh);
        improved += u32::from(found.improved);
        promoted += u32::from(found.promoted);
    }
    println!("loops with gains, 50: improved {improved}, promoted {promoted}");
    assert!(improved >= 45 && promoted >= 45, "{improved} {promoted}");
}

/// The order is a function of the manifest, its units and a checkpoint. Whoever has twenty orders to choose from promotes far
/// more often than alpha, which is why a candidate's values are evidence in one family (rule `gate`, `E_FAMILY_BUDGET`); twenty
/// gates of one family share its level.
#[test]
fn no_seed_is_left_to_choose() {
    let runs = worlds(200, 1_000);
    let names: Vec<ItemId> = (0..200)
        .map(|unit| format!("unit-{unit}").parse().unwrap())
        .collect();
    // Of the manifest numbered so: its units in the order that a checkpoint of the run gives.
    let order = |run: i64, manifest: u8| -> Vec<usize> {
        let root = Root(Digest::sha256(&run.to_le_bytes()));
        let size = Count::new(7).unwrap();
        let seed = orders::seed(
            Digest([manifest; 32]),
            Root(Digest([1; 32])),
            &DrawnFrom { root, size },
        );
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_cached_key(|at| orders::key(seed, &names[*at]));
        order
    };
    let (mut peer, mut one, mut any, mut shared) = (0, 0, 0, 0);
    for seed in 0..i64::try_from(runs).unwrap() {
        let mut generator = Mulberry32::new(7919 * seed + 5);
        let deltas: Vec<f64> = (0..200)
            .map(|_| 0.9 * (generator.uniform() * 2.0 - 1.0))
            .collect();
        let options = PairedGateOptions {
            max_n: Some(200),
            ..PairedGateOptions::default()
        };
        let peer_promotes = |shuffle: i64| {
            let mut order = deltas.clone();
            Mulberry32::new(shuffle).shuffle(&mut order);
            let mut gate = PairedGate::new(&options).unwrap();
            for delta in order {
                if gate.push(delta).unwrap() != Decision::Continue {
                    break;
                }
            }
            gate.decision() == Decision::Promote
        };
        peer += u64::from((0..20).any(peer_promotes));
        let promotes = |manifest: u8, alpha: u32| {
            let terms = GateTerms::new(UNIT, 200).at_level(alpha);
            let order = order(seed, manifest);
            run(&terms, order.iter().map(|at| deltas[*at])).0 == Verdict::Promote
        };
        one += u64::from(promotes(0, 50_000));
        any += u64::from((0..20).any(|manifest| promotes(manifest, 50_000)));
        shared += u64::from((0..20).any(|manifest| promotes(manifest, 2_500)));
    }
    println!(
        "{runs} runs: the peer's best of 20 {peer}, one order {one}, any of 20 orders {any}, of one family {shared}"
    );
    assert!(one <= most(runs), "{one} of {runs}");
    assert!(shared <= most(runs), "{shared} of {runs}");
    assert!(any > 2 * most(runs), "{any} of {runs}");
}

#[test]
fn the_final_evidence_has_no_order_to_choose() {
    let mut terms = GateTerms::new(UNIT, 200);
    terms.looks = Looks::At(vec![200]);
    let deltas: Vec<i64> = null(3).take(200).map(micro).collect();
    let look = |shuffle: i64| -> Look {
        let mut order = deltas.clone();
        Mulberry32::new(shuffle).shuffle(&mut order);
        let mut gate = Gate::open(Design::new(terms.clone()).unwrap());
        for delta in order {
            gate.push(delta).unwrap();
        }
        gate.look()
    };
    let first = look(0);
    assert!((1..20).all(|shuffle| look(shuffle) == first));
}

#[test]
fn the_confidence_sequence_covers_at_every_look() {
    let runs = worlds(60, 2_000);
    let mut missed = 0;
    for seed in 1..=i64::try_from(runs).unwrap() {
        let mut terms = GateTerms::new(UNIT, 300);
        terms.claim = Claim::Measure;
        terms.looks = Looks::At((10..=300).step_by(10).collect());
        let mut gate = Gate::open(Design::new(terms).unwrap());
        for delta in effect(seed).take(300) {
            gate.push(micro(delta)).unwrap();
        }
        let bounds = gate.look().interval.unwrap();
        missed += u64::from(!(bounds.low..=bounds.high).contains(&200_000));
    }
    println!("the sequence missed in {missed} of {runs}");
    assert!(missed <= most(runs), "{missed} of {runs}");
}
