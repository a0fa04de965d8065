//! Samples around one gate under rulebook 18: whose order was waited for, whose units were scored early or off the scale, whose
//! claim was of noisy scores alone, whose candidate had a second family, whose grade says more than was held.

use clover::event::payload::Role;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::gated;
use super::gated::Life;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::First;
use super::tampered::Sample;

/// A gate of eight units whose order Cleo fixed, before it is opened to anybody: custodian, and whatever else `roles` say.
fn told(cleo: &[Role]) -> (Teller, Life) {
    let mut teller = begun(cleo);
    let units = gated::units("red", 8);
    let value = manifest("exp-1", "m-1", "quarter", "red");
    let life = gated::tell_opened(&mut teller, "exp-1", &value, &units);
    (teller, life)
}

/// Who works there, and two families.
fn begun(cleo: &[Role]) -> Teller {
    begun_with(cleo, &json!({"method": "spend"}))
}

/// The same, with families that keep their error rate in some way.
fn begun_with(cleo: &[Role], way: &Value) -> Teller {
    let mut teller = Teller::begin_under(18);
    for (name, who, holder, roles) in [
        ("key-cleo", CLEO, "Cleo", cleo),
        ("key-ben", BEN, "Ben", &[Role::Arbiter]),
        ("key-runner", RUNNER, "runner", &[Role::Scorer]),
        ("key-lena", LENA, "Lena", &[Role::Releaser]),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, roles));
    }
    for family in ["quarter", "second"] {
        let mut opened = json!({
            "alpha_micro": 50_000, "family": family, "members_max": 3, "membership": "gates of this quarter",
        });
        for (name, value) in way.as_object().unwrap() {
            opened[name] = value.clone();
        }
        teller.say(ADA, family, planned::payload("family.opened", &opened));
    }
    teller
}

fn manifest(experiment: &str, id: &str, family: &str, prefix: &str) -> Value {
    let mut value = gated::gate(experiment, id, &gated::units(prefix, 8));
    value["multiplicity"]["family"] = family.into();
    value["multiplicity"]["family_alpha_micro"] = 50_000.into();
    value
}

/// The same, observed until its claim holds and decided.
fn decided(cleo: &[Role]) -> (Teller, Life) {
    let (mut teller, mut life) = told(cleo);
    claimed(&mut teller, &mut life);
    (teller, life)
}

/// Its units are observed, and its claim is decided to hold.
fn claimed(teller: &mut Teller, life: &mut Life) {
    teller.say_about(CLEO, "exp-1", "m-1-exposed-1", life.exposed_named(1, 0, 7));
    for t in 1..=8 {
        gated::tell_unit(teller, life, t, &[[&[Some(0)], &[Some(1_000_000)]]]);
    }
    gated::tell_look(teller, life);
    teller.say_about(BEN, "exp-1", "m-1-decided", life.decided());
}

/// A gate of an e-LOND family whose second share is larger than what is left of alpha: a claim of its first member holds.
pub fn online() -> Story {
    let mut teller = begun_with(
        &[Role::Custodian],
        &json!({"gamma_micro": [499_000, 501_000], "method": "elond"}),
    );
    let mut value = manifest("exp-1", "m-1", "quarter", "red");
    value["multiplicity"]["method"] = "elond".into();
    value["test"]["alpha_micro"] = 24_950.into();
    let units = gated::units("red", 8);
    let mut life = gated::tell_opened(&mut teller, "exp-1", &value, &units);
    claimed(&mut teller, &mut life);
    let begun = planned::experiment_registered();
    teller.say_about(ADA, "exp-2", "second-experiment", begun);
    teller.finish()
}

/// The second member of that family, at a level.
pub fn second_online(alpha_micro: u64) -> Value {
    let mut value = manifest("exp-2", "m-2", "quarter", "blue");
    value["multiplicity"]["method"] = "elond".into();
    value["test"]["alpha_micro"] = alpha_micro.into();
    value
}

/// What a promotion of the gate's candidate says that is certified and was in so many tests.
fn issued(life: &Life, tests: u64) -> Value {
    let arms = life.manifest.arms.as_ref().unwrap();
    json!({
        "candidate_digest": arms[1].artifact_digest, "gates": ["m-1"], "grade": "certified", "tests": tests,
    })
}

/// Says it: its position.
fn promoted(world: &mut World, life: &Life, tests: u64) -> usize {
    let issued = issued(life, tests);
    world.say(LENA, "promotion.issued", 1, Value::Null, issued)
}

/// The story of a gate under rulebook 18 whose candidate is promoted, as `issued`.
pub fn governed() -> Story {
    let (mut teller, life) = decided(&[Role::Custodian]);
    let issued = planned::payload("promotion.issued", &issued(&life, 1));
    teller.say(LENA, "issued", issued);
    teller.finish()
}

/// A gate whose claim holds, opened when another manifest had drawn an order of its units after it was registered; and what
/// its promotion says.
pub fn one_of_two_orders() -> (World, Value) {
    let mut teller = begun(&[Role::Custodian]);
    let units = gated::units("red", 16);
    let of = |experiment: &str, id: &str, alpha: u64| {
        let mut value = gated::gate(experiment, id, &units);
        value["multiplicity"]["family"] = "quarter".into();
        value["multiplicity"]["family_alpha_micro"] = 50_000.into();
        value["test"]["alpha_micro"] = alpha.into();
        value
    };
    let mut life = gated::tell_drawn(&mut teller, "exp-1", &of("exp-1", "m-1", 49_000), &units);
    let other = of("exp-2", "m-2", 1_000);
    let begun = planned::experiment_registered();
    teller.say_about(ADA, "exp-2", "m-2-experiment", begun);
    teller.say_about(ADA, "exp-2", "m-2-registered", planned::registered(&other));
    teller.say_about(CLEO, "exp-2", "m-2-agreed", planned::countersigned(&other));
    teller.say_about(BEN, "exp-1", "m-1-opened", life.opened());
    claimed(&mut teller, &mut life);
    (World::of(&teller.finish().lines), issued(&life, 2))
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    let mut push = |name, done, world: &World, first: First| {
        rows.push(Sample::forged(name, done, world, first));
    };
    let (teller, life) = decided(&[Role::Custodian]);
    let story = teller.finish();
    let mut good = World::of(&story.lines);
    promoted(&mut good, &life, 1);
    push(
        "good-gate-governed",
        "Nothing. One gate under rulebook 18, whose order somebody else than its registrar fixed, promotes its candidate.",
        &good,
        None,
    );
    let mut uncounted = World::of(&story.lines);
    let at = promoted(&mut uncounted, &life, 0);
    push(
        "promotion-without-its-tests",
        "A promotion says that its candidate was in no test.",
        &uncounted,
        Some((at, "promotion")),
    );
    let (teller, life) = decided(&[Role::Custodian, Role::Scorer]);
    let mut raised = World::of(&teller.finish().lines);
    let at = promoted(&mut raised, &life, 1);
    push(
        "promotion-grade-raised",
        "Who fixed the order of a gate scores too, and its promotion was called certified.",
        &raised,
        Some((at, "promotion")),
    );
    let (teller, life) = decided(&[Role::Custodian]);
    let since = teller.at("m-1-score-1-0");
    let mut tainted = World::of(&teller.finish().lines);
    let lost = json!({
        "key_id": signer(RUNNER).id().to_string(), "reason": "the laptop was stolen", "since_seq": since,
    });
    tainted.say(ADA, "key.compromised", 1, Value::Null, lost);
    let at = promoted(&mut tainted, &life, 1);
    push(
        "promotion-on-tainted-scores",
        "The scorer's key was compromised before it scored, and the gate's claim was called certified.",
        &tainted,
        Some((at, "promotion")),
    );
    rows.extend(orders(&story));
    rows.extend(scores());
    rows.extend(claims(&story));
    rows
}

/// An order that its drawers waited for.
fn orders(story: &Story) -> Vec<Sample> {
    let mut waited = World::of(&story.lines);
    waited.items.truncate(story.at("m-1-countersigned") + 1);
    let older = waited.items.len() - 1;
    let data = json!({"text": "the newest checkpoint did not suit"});
    let at = waited.say(RUNNER, "note.recorded", 1, Value::Null, data);
    waited.items[at].body["seen"]["size"] = older.into();
    vec![Sample::forged(
        "order-waited-for",
        "After a countersignature an entry named an older checkpoint, so that the order could be drawn from a later one.",
        &waited,
        Some((at, "order")),
    )]
}

/// Scores that no observation could take.
fn scores() -> Vec<Sample> {
    let (mut teller, life) = told(&[Role::Custodian]);
    teller.say_about(CLEO, "exp-1", "m-1-exposed-1", life.exposed_named(1, 0, 3));
    let story = teller.finish();
    let score = |unit: &str, micro: i64| {
        let mut world = World::of(&story.lines);
        let data = json!({
            "draw": 0, "item": unit, "judge": "judge-of-quality", "policy": "candidate", "score_micro": micro,
        });
        let at = world.say(RUNNER, "score.recorded", 1, "exp-1".into(), data);
        (world, Some((at, "exposure")))
    };
    let (early, at_early) = score(life.order[5].as_str(), 900_000);
    let (off, at_off) = score(life.order[2].as_str(), 1_900_000);
    let mut unnamed = World::of(&story.lines);
    let at = story.at("m-1-exposed-1");
    unnamed.items[at].body["data"]
        .as_object_mut()
        .unwrap()
        .remove("through");
    vec![
        Sample::forged(
            "score-before-exposure",
            "A unit of a gate was scored before it was exposed.",
            &early,
            at_early,
        ),
        Sample::forged(
            "score-off-the-scale",
            "A score that a gate reads is beyond the scale that was registered.",
            &off,
            at_off,
        ),
        Sample::forged(
            "exposure-unnamed",
            "An exposure does not name the last unit that it exposes.",
            &unnamed,
            Some((at, "exposure")),
        ),
    ]
}

/// Claims that no plan may make.
fn claims(story: &Story) -> Vec<Sample> {
    let mut census = World::of(&story.lines);
    census.items.truncate(story.at("m-1-registered"));
    let mut value = manifest("exp-1", "m-1", "quarter", "red");
    value["test"]["without_replacement"] = true.into();
    value["estimand"]["population"] = "finite".into();
    let said = serde_json::to_value(planned::registered(&value)).unwrap();
    let at = census.say(ADA, "manifest.registered", 1, "exp-1".into(), said);
    let mut rows = vec![Sample::forged(
        "claim-of-noisy-scores",
        "A claim about exactly its own units was registered, without a word on the noise of their scores.",
        &census,
        Some((at, "manifest")),
    )];
    let (mut teller, _) = told(&[Role::Custodian]);
    let units = gated::units("blue", 8);
    let value = manifest("exp-2", "m-2", "second", "blue");
    let second = gated::tell_drawn(&mut teller, "exp-2", &value, &units);
    let mut twice = World::of(&teller.finish().lines);
    let said = serde_json::to_value(second.opened()).unwrap();
    let at = twice.say(BEN, "gate.opened", 1, "exp-2".into(), said);
    let mut teller = begun(&[Role::Custodian]);
    let first = gated::tell_drawn(
        &mut teller,
        "exp-1",
        &manifest("exp-1", "m-1", "quarter", "red"),
        &gated::units("red", 8),
    );
    gated::tell_drawn(&mut teller, "exp-2", &value, &units);
    let mut shopped = World::of(&teller.finish().lines);
    let said = serde_json::to_value(first.opened()).unwrap();
    let opened = shopped.say(BEN, "gate.opened", 1, "exp-1".into(), said);
    rows.push(Sample::forged(
        "order-chosen-among-families",
        "Two orders of one candidate's tests were known, in two families, and the gate of the one that suits was opened.",
        &shopped,
        Some((opened, "gate")),
    ));
    rows.push(Sample::forged(
        "tested-in-two-families",
        "A candidate was tested again in another experiment, on fresh units, at the level of another family.",
        &twice,
        Some((at, "gate")),
    ));
    rows
}
