//! What can be done to a judge's drift and to the gates that it makes stale, and what must be found.

use clover::event::Payload;
use clover::event::registry;
use serde_json::Value;
use serde_json::json;

use super::drifted;
use super::forger::World;
use super::gated;
use super::iterated;
use super::samples::*;
use super::tampered::Sample;

/// The judge of the story's first gate.
fn judge(story: &Story) -> String {
    let opened = &World::of(&story.lines).items[story.at("m-1-opened")].body["data"];
    opened["sources"][0]["judge"].as_str().unwrap().to_owned()
}

/// The story of the first gate up to its fourth unit, of which the observation is still to be said.
fn begun(story: &Story) -> (World, Value, String) {
    let mut world = World::of(&story.lines);
    let at = story.at("m-1-observed-4");
    let observed = world.items[at].body["data"].clone();
    let digest = observed["digest"].as_str().unwrap().to_owned();
    world.items.truncate(at);
    (world, observed, digest)
}

fn say(world: &mut World, who: u8, kind: &str, data: &Value) -> usize {
    let text = serde_json::to_string(data).unwrap();
    let payload: Payload = registry::decode(kind, 1, &text).unwrap().0;
    let data = serde_json::to_value(&payload).unwrap();
    world.say(who, kind, 1, "exp-1".into(), data)
}

/// The judge is checked against a registered set, and fails where that is asked for.
fn checked(world: &mut World, check: &Value) -> usize {
    let set = serde_json::to_value(iterated::anchors(200)).unwrap();
    say(world, ADA, "anchor_set.registered", &set);
    say(world, LENA, "judge.drift_checked", check)
}

fn handled(world: &mut World, digest: &str, rule_path: &str) -> usize {
    let deviated = json!({
        "digest": digest, "impact": "the claim is about the first model's scores alone",
        "known_at_seq": world.items.len(), "outcome_seen": false, "rule_path": rule_path,
        "what": "units after the change are scored by the pinned snapshot", "why": "the alias moved",
    });
    say(world, BEN, "manifest.deviated", &deviated)
}

/// How far the judge moved on good answers, in millionths.
const MOVED: i64 = 150_000;

/// A gate whose judge drifts on anchors that it had scored, and goes on after its deviation.
pub fn good() -> World {
    let story = gated::story();
    let judge = judge(&story);
    let (mut world, observed, digest) = begun(&story);
    for anchor in drifted::anchored(&judge) {
        let who = match &anchor {
            Payload::ScoreRecorded(_) => RUNNER,
            _ => ADA,
        };
        let kind = anchor.kind();
        let data = serde_json::to_value(&anchor).unwrap();
        world.say(
            who,
            kind.as_str(),
            kind.version().into(),
            "exp-1".into(),
            data,
        );
    }
    let through = world.items.len() as u64 - 1;
    let (check, _) = drifted::again(&judge, &[], through, MOVED);
    let check = serde_json::to_value(&check).unwrap();
    assert_eq!(check["verdicts"]["residuals"], "fail", "{check}");
    world.say(LENA, "judge.drift_checked", 1, "exp-1".into(), check);
    handled(&mut world, &digest, "metric.judge_digest");
    say(&mut world, BEN, "gate.observed", &observed);
    world
}

/// The deviation that lifts the stop is signed by a key that may not, where the rulebook asks.
fn by_an_arbiter(story: &Story, failing: &Value) -> Sample {
    let (mut world, observed, digest) = begun(story);
    let version = json!({"version": 18});
    world.say(ADA, "rulebook.adopted", 1, Value::Null, version);
    checked(&mut world, failing);
    let at = handled(&mut world, &digest, "metric.judge_digest");
    say(&mut world, BEN, "gate.observed", &observed);
    Sample::forged(
        "deviated-by-an-arbiter",
        "The arbiter's key signed the deviation that lifts the stop of a gate whose judge had drifted.",
        &world,
        Some((at, "role")),
    )
}

/// Every sample of drift.
pub fn all() -> Vec<Sample> {
    let story = gated::story();
    let judge = judge(&story);
    let failing = drifted::written(&judge, "anchors-1", true);
    let mut rows = vec![Sample::forged(
        "good-drift",
        "Nothing. A judge fails its drift check, a deviation says how that is handled, and the gate goes on.",
        &good(),
        None,
    )];
    let (mut world, observed, digest) = begun(&story);
    checked(&mut world, &failing);
    let last = say(&mut world, BEN, "gate.observed", &observed);
    rows.push(Sample::forged(
        "gate-stale",
        "A unit was observed after the gate's judge had failed its drift check.",
        &world,
        Some((last, "drift")),
    ));
    let (mut world, ..) = begun(&story);
    checked(&mut world, &failing);
    handled(&mut world, &digest, "test.n_max");
    let last = say(&mut world, BEN, "gate.observed", &observed);
    rows.push(Sample::forged(
        "gate-stale-by-another-deviation",
        "A unit was observed of a stale gate, after a deviation that is about something else.",
        &world,
        Some((last, "drift")),
    ));
    rows.push(by_an_arbiter(&story, &failing));
    let mut edited = |name, done, rule, edit: &dyn Fn(&mut Value)| {
        let (mut world, ..) = begun(&story);
        let mut check = failing.clone();
        edit(&mut check);
        let at = checked(&mut world, &check);
        rows.push(Sample::forged(name, done, &world, Some((at, rule))));
    };
    edited(
        "drift-said-to-pass",
        "A check of drift says that residuals are in control, beside a chart that left it.",
        "drift",
        &|check| check["verdicts"]["residuals"] = "pass".into(),
    );
    edited(
        "drift-by-own-thresholds",
        "A check of drift was judged by a tau that nobody registered.",
        "thresholds",
        &|check| check["terms"]["plan"]["tau_min_micro"] = 100_000.into(),
    );
    edited(
        "drift-of-no-anchors",
        "A check of drift names anchors that were never registered.",
        "drift",
        &|check| check["anchors"] = "anchors-2".into(),
    );
    rows
}
