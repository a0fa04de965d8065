//! A gate with an estimate of the asymptotic class beside its verdict: a judge that flatters the candidate, and labels of a
//! sample of its units. Sample and interval are computed here by themselves.

use clover::event::Payload;
use clover::event::id::ItemId;
use clover::event::id::Root;
use clover::event::payload::Role;
use clover::event::payload::decision::EvidenceClass;
use clover::event::payload::decision::GateEstimated;
use clover::event::payload::decision::Grade;
use clover::event::payload::gate::DrawnFrom;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::num::Count;
use clover::num::Micro;
use clover::num::math;
use serde_json::Value;
use serde_json::json;

use super::gated;
use super::gated::Life;
use super::planned;
use super::samples::*;
use super::signer;

/// Units of the gate, all observed before anything is concluded.
pub const N: usize = 36;
const ALPHA: f64 = 0.05;
const PI: f64 = 0.95;

/// The gate's manifest, and its units.
pub fn manifest(experiment: &str, id: &str) -> (Value, Vec<ItemId>) {
    let units = gated::units(&format!("beside-{id}"), N);
    let mut gate = gated::gate(experiment, id, &units);
    gate["data"]["label_policy"] = json!({"pi_min_micro": 950_000, "rule": "each unit by itself"});
    gate["test"]["n_min"] = N.into();
    (gate, units)
}

/// What the judge says of the unit at a place of the order, from 1.
pub fn judged(t: usize) -> [i64; 2] {
    let candidate = [600_000, 620_000, 640_000, 660_000, 680_000];
    [500_000, candidate[t % 5]]
}

fn labelled(t: usize) -> [i64; 2] {
    [
        [350_000, 400_000][t % 2],
        [700_000, 760_000, 820_000][t % 3],
    ]
}

/// The design of the labels.
pub fn design() -> Payload {
    let data = json!({
        "design": "beside", "inclusion_micro": 950_000, "protocol": "protocol-1", "purpose": "audit",
    });
    planned::payload("label.design_registered", &data)
}

fn is_drawn(seed: Digest, unit: &ItemId) -> bool {
    let bytes = [&seed.0[..], &[1], unit.as_str().as_bytes()].concat();
    let place = Digest::sha256(&bytes).0;
    let place = place[..8]
        .iter()
        .fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
    place / 2.0_f64.powi(64) < PI
}

/// The sample's seed, from the checkpoint after the decision.
fn seed(life: &Life, root: Digest) -> Digest {
    Digest::sha256(&[life.seed.0, root.0].concat())
}

/// Labels of every unit that the checkpoint draws.
pub fn labels(life: &Life, root: Digest) -> Vec<Payload> {
    let seed = seed(life, root);
    let drawn = (1..)
        .zip(&life.order)
        .filter(|(_, unit)| is_drawn(seed, unit));
    let of_unit = |(t, unit): (usize, &ItemId)| {
        let arms = ["baseline", "candidate"].into_iter().zip(labelled(t));
        let label = |(policy, value)| {
            let data = json!({
                "design": "beside", "draw": 0, "item": unit, "policy": policy, "purpose": "audit", "rater": "Lena",
                "value_micro": value,
            });
            planned::payload("label.recorded", &data)
        };
        arms.map(label).collect::<Vec<_>>()
    };
    drawn.flat_map(of_unit).collect()
}

/// Ends of the two-sided asymptotic confidence sequence at these values, in whole millionths outward.
///
/// source: Waudby-Smith et al. 2024, with rho from `y - ln y = 1 - 2 ln alpha` by bisection and two passes for the
/// deviation.
fn interval(values: &[f64]) -> [i64; 2] {
    let t = values.len() as f64;
    let mean = values.iter().sum::<f64>() / t;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (t - 1.0)).sqrt();
    let (mut low, mut high) = (1.0, 100.0);
    for _ in 0..200 {
        let y = f64::midpoint(low, high);
        if y - math::ln(y) < 1.0 - 2.0 * math::ln(ALPHA) {
            low = y;
        } else {
            high = y;
        }
    }
    let spread = t * ((low - 1.0) / N as f64);
    let width = 2.0 * (spread + 1.0) / (t * spread) * math::ln((spread + 1.0).sqrt() / ALPHA);
    let half = deviation * width.sqrt();
    let millionths = |value: f64| format!("{value}").parse::<i64>().unwrap();
    [
        millionths(((mean - half) * 1e6).floor()),
        millionths(((mean + half) * 1e6).ceil()),
    ]
}

/// The estimate beside the gate, by the checkpoint after its decision.
pub fn estimated(life: &Life, root: Digest, size: u64) -> GateEstimated {
    let seed = seed(life, root);
    let (mut values, mut labels) = (Vec::new(), 0);
    for (t, unit) in (1..).zip(&life.order) {
        let improvement = |[baseline, candidate]: [i64; 2]| (candidate - baseline) as f64 / 1e6;
        let mut value = improvement(judged(t));
        if is_drawn(seed, unit) {
            value += (improvement(labelled(t)) - value) / PI;
            labels += 1;
        }
        values.push(value);
    }
    let [low, high] = interval(&values);
    let micro = |value| Micro::new(value).unwrap();
    let count = |n| Count::new(n).unwrap();
    GateEstimated {
        alpha_micro: micro(50_000),
        beacon: DrawnFrom {
            root: Root(root),
            size: count(size),
        },
        class: EvidenceClass::Asymptotic,
        cs_hi_micro: micro(high),
        cs_lo_micro: micro(low),
        design: "beside".parse().unwrap(),
        digest: life.manifest.digest(),
        gate: life.manifest.manifest.clone(),
        grade: Grade::Asymptotic,
        labels: count(labels),
        n: count(N as u64),
        pi_micro: micro(950_000),
        seed,
        shows: low > 0,
    }
}

/// One gate, decided, with an estimate beside it.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    for (name, who, holder, role) in [
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-runner", RUNNER, "runner", Role::Scorer),
        ("key-lena", LENA, "Lena", Role::Labeler),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    teller.say(ADA, "family", planned::family());
    let (value, units) = manifest("exp-1", "m-1");
    let mut life = gated::tell_opened(&mut teller, "exp-1", &value, &units);
    teller.say_about(CLEO, "exp-1", "exposed", life.exposed(1, 0, N as u64 - 1));
    for t in 1..=N {
        let [baseline, candidate] = judged(t).map(Some);
        gated::tell_unit(&mut teller, &mut life, t, &[[&[baseline], &[candidate]]]);
    }
    gated::tell_look(&mut teller, &mut life);
    teller.say_about(BEN, "exp-1", "decided", life.decided());
    let (size, root) = (teller.ledger().size(), teller.ledger().root());
    teller.say_about(LENA, "exp-1", "design", design());
    let named = |(at, label): (usize, Payload)| {
        let name: &'static str = format!("label-{at}").leak();
        (name, Command::new(label, Some("exp-1".parse().unwrap())))
    };
    let labels = labels(&life, root).into_iter().enumerate().map(named);
    teller.say_all(LENA, labels.collect());
    teller.say_about(BEN, "exp-1", "estimated", estimated(&life, root, size));
    teller.finish()
}
