//! Samples of checkpoints that are promoted: who scores confirm early, chooses what a cluster is worth, or promotes by a metric
//! or a claim of choice.

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::id::ManifestId;
use clover::event::payload::Role;
use clover::event::payload::decision::PromotionIssued;
use clover::ground::digest::Digest;
use clover::num::Micro;
use clover::projection::sgd::SgdRun;
use clover::projection::sgd::SgdRuns;
use clover::projection::sgd::draws::seed_of;
use clover::projection::sgd::gate;
use clover::workflow::gates::steps;
use clover::workflow::sgd::course::SgdCourse;
use serde_json::Value;
use serde_json::json;

use super::descended;
use super::forger::World;
use super::gated;
use super::gated::Life;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_descents::begun;
use super::tampered_descents::told;
use super::tampered_undone::sample;

/// Experiment of the gate.
const CONFIRM: &str = "exp-confirm";
/// The gate.
const GATE: &str = "gate-1";

fn run_of(teller: &Teller) -> SgdRun {
    let runs = teller.ledger().state().fold::<SgdRuns>();
    runs.by_id[&descended::BETTER.parse().unwrap()].clone()
}

/// The plan of the gate of a run: its clusters are few, and it may err often.
fn plan(run: &SgdRun) -> Value {
    let units: Vec<_> = gate::confirm_units(run).into_iter().cloned().collect();
    let mut plan = gated::gate(CONFIRM, GATE, &units);
    let chosen = run.checkpoint.as_ref().unwrap().prompt_digest;
    plan["arms"][0]["artifact_digest"] = run.said.prompt_digest.to_hex().into();
    plan["arms"][1]["artifact_digest"] = chosen.to_hex().into();
    plan["metric"]["metric"] = gate::METRIC.into();
    plan["metric"]["judge_digest"] = gate::metric_digest(run).unwrap().to_hex().into();
    plan["multiplicity"] =
        json!({"family": "lone", "family_alpha_micro": 900_000, "method": "spend"});
    plan["test"]["alpha_micro"] = 900_000.into();
    plan["test"]["n_min"] = 1.into();
    plan
}

/// Scores and observes every cluster, and decides.
fn tell_decided(teller: &mut Teller, life: &mut Life) {
    let run = run_of(teller);
    let last = life.order.len() as u64 - 1;
    let exposed = life.exposed_named(1, 0, last);
    teller.say_about(CLEO, CONFIRM, "exposed", exposed);
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let chosen = run.checkpoint.as_ref().unwrap().prompt_digest;
    let both = [run.said.prompt_digest, chosen];
    if life.value["metric"]["metric"] == gate::METRIC {
        for prompt in both {
            let said = descended::confirmed(&run_of(teller), prompt);
            teller.say_about(RUNNER_2, of.as_str(), "scored", said);
        }
    }
    let run = run_of(teller);
    for t in 1..=life.order.len() {
        let unit = life.order[t - 1].clone();
        // By a metric of choice a cluster is worth what suits.
        let free = [100_000, 900_000];
        let worth = [0, 1].map(|arm| {
            let value = gate::agreement(&run, both[arm], &unit);
            [Some(value.map_or(free[arm], Micro::value))]
        });
        let values: [&[Option<i64>]; 2] = [&worth[0], &worth[1]];
        for score in life.scores(t, &[values]) {
            teller.say_about(RUNNER_2, CONFIRM, "score", score);
        }
        let observed = life.observed(t, &[values]);
        teller.say_about(BEN, CONFIRM, "observed", observed);
    }
    let look = life.looked();
    teller.say_about(BEN, CONFIRM, "looked", look);
    teller.say_about(BEN, CONFIRM, "decided", life.decided());
}

/// A run whose checkpoint is better, its gate as `change` plans it, and what promotes it.
fn promoted(change: impl Fn(&mut Value, &SgdRun)) -> (World, PromotionIssued) {
    let mut teller = begun(27);
    let releaser = key_added(&signer(PAUL), "Paul", true, &[Role::Releaser]);
    teller.say(ADA, "key-paul", releaser);
    told(&mut teller, (descended::BETTER, 3), true);
    let family = json!({
        "alpha_micro": 900_000, "family": "lone", "members_max": 1, "membership": "one gate", "method": "spend",
    });
    teller.say(ADA, "family", planned::payload("family.opened", &family));
    let run = run_of(&teller);
    let mut plan = plan(&run);
    change(&mut plan, &run);
    let units: Vec<_> = gate::confirm_units(&run).into_iter().cloned().collect();
    let mut life = gated::tell_opened(&mut teller, CONFIRM, &plan, &units);
    tell_decided(&mut teller, &mut life);
    let (state, ids) = (
        teller.ledger().state(),
        [GATE.parse::<ManifestId>().unwrap()],
    );
    let now = teller.ledger().ambient().now();
    let said = steps::promote(state, &ids, now).unwrap();
    (World::of(&teller.finish().lines), said)
}

fn issued(world: &mut World, said: &PromotionIssued) -> usize {
    world.say(PAUL, "promotion.issued", 1, Value::Null, json!(said))
}

/// A run is opened as before rulebook 27: whoever named its rows could know where they fall.
fn unsalted() -> Sample {
    let teller = begun(27);
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let said = descended::opened(teller.ledger(), &of, (descended::RUN, RUNNER, 3));
    let mut data = said_json(&said);
    let seed = seed_of(teller.ledger().state(), &of, (None, descended::RUN)).unwrap();
    data.as_object_mut().unwrap().remove("beacon").unwrap();
    data["seed"] = seed.to_hex().into();
    let mut world = World::of(&teller.finish().lines);
    let at = world.say(ADA, "sgd.opened", 1, EXPERIMENT.into(), data);
    sample(
        "descent-on-parts-known-before",
        "A run was opened on parts that are drawn from nothing newer than its experiment.",
        &world,
        Some((at, "sgd")),
    )
}

fn said_json(said: &Payload) -> Value {
    match said {
        Payload::SgdOpened(said) => json!(said),
        _ => unreachable!("BUG: an opening is one"),
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let (mut good, said) = promoted(|_, _| ());
    let (chosen, early) = (of_choice(&good), early(&good));
    issued(&mut good, &said);
    let mut found = vec![
        sample(
            "good-descent-promoted",
            "Nothing. The checkpoint of a run was held against prompt 0 on the clusters kept for confirm, and promoted.",
            &good,
            None,
        ),
        chosen,
        early,
        unsalted(),
    ];
    for (name, done, change) in [
        (
            "descent-promoted-by-another-metric",
            "The checkpoint of a run was promoted on a gate whose metric is not the run's: its values follow from no score of confirm.",
            (|plan, _| plan["metric"]["metric"] = "quality".into()) as fn(&mut Value, &SgdRun),
        ),
        (
            "descent-promoted-as-not-worse",
            "The checkpoint of a run was promoted on the claim that it is not worse by nine tenths of the scale.",
            |plan, _| {
                plan["hypothesis"]["kind"] = "noninferior".into();
                plan["test"]["null_margin_micro"] = (-900_000).into();
            },
        ),
        (
            "descent-promoted-by-its-text",
            "The text of a checkpoint was promoted by its own digest, as if it were another candidate, on a gate of choice.",
            |plan, run| {
                let chosen = SgdCourse::of(run).unwrap().chosen().unwrap();
                let digest = Digest::sha256(chosen.render().as_bytes());
                plan["arms"][1]["artifact_digest"] = digest.to_hex().into();
                plan["metric"]["metric"] = "quality".into();
            },
        ),
    ] {
        let (mut world, said) = promoted(change);
        let at = issued(&mut world, &said);
        found.push(sample(name, done, &world, Some((at, "sgd"))));
    }
    found
}

/// A cluster is worth more under the checkpoint than its scores give.
fn of_choice(good: &World) -> Sample {
    let mut world = good.clone();
    let mut all = world.items.iter();
    let at = all.position(|item| {
        item.body["kind"] == "score.recorded" && item.body["data"]["policy"] == "candidate"
    });
    let at = at.unwrap();
    world.items.truncate(at + 1);
    let score = &mut world.items[at].body["data"]["score_micro"];
    *score = (score.as_i64().unwrap() + 1).into();
    sample(
        "agreement-of-choice",
        "A cluster of confirm was recorded as agreeing more with its labels than the scores of the run give.",
        &world,
        Some((at, "sgd")),
    )
}

/// Confirm is scored before the gate exposes it.
fn early(good: &World) -> Sample {
    let mut world = good.clone();
    let mut all = world.items.iter();
    let exposed = all.position(|item| item.body["kind"] == "exposure.opened");
    let exposed = exposed.unwrap();
    let scored = world.items[exposed + 1].body["data"].clone();
    world.items.truncate(exposed);
    let at = world.say(RUNNER_2, "sgd.scored", 1, EXPERIMENT.into(), scored);
    sample(
        "confirm-scored-before-its-gate",
        "Rows that a run keeps for confirm were scored before its gate exposed them.",
        &world,
        Some((at, "sgd")),
    )
}
