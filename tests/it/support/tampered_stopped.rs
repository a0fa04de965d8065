//! Samples around what stops: an iteration whose protocol was replaced, and an experiment whose judge contradicted itself. Each
//! step is told as its story tells it, after that had happened.

use clover::event::payload::Role;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::calibrated;
use super::decided;
use super::deployed;
use super::forger::World;
use super::gated;
use super::iterated;
use super::samples::*;
use super::sequenced;
use super::signer;
use super::tampered::First;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_gated;
use super::tuned;

/// What happens before the step.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Another protocol takes the place of the iteration's.
    Protocol,
    /// The judge of this experiment contradicts itself.
    Conflict(&'static str),
}

/// A step of a story that is told too late.
struct Late {
    name: &'static str,
    done: &'static str,
    story: usize,
    step: &'static str,
    before: Before,
}

const DECIDED: usize = 0;
const CALIBRATED: usize = 1;
const SEQUENCED: usize = 2;
const GOVERNED: usize = 3;
const GATED: usize = 4;
const DEPLOYED: usize = 5;
const TUNED: usize = 6;

/// The stories, in the order of the constants above.
fn stories() -> [Story; 7] {
    [
        decided::story(),
        calibrated::story(),
        sequenced::story(),
        tampered_gated::governed(),
        gated::story(),
        deployed::story(),
        tuned::story(),
    ]
}

#[rustfmt::skip]
const LATE: &[Late] = &[
    Late { name: "asked-under-another-protocol", story: DECIDED, step: "asked", before: Before::Protocol,
           done: "People label by a new protocol, and the dev objective of an iteration under the old one answered." },
    Late { name: "attacked-under-another-protocol", story: DECIDED, step: "battery", before: Before::Protocol,
           done: "People label by a new protocol, and a battery of an iteration under the old one was run." },
    Late { name: "fitted-under-another-protocol", story: CALIBRATED, step: "fitted-a", before: Before::Protocol,
           done: "People label by a new protocol, and an iteration under the old one fitted its calibrator." },
    Late { name: "looked-under-another-protocol", story: SEQUENCED, step: "look-1", before: Before::Protocol,
           done: "People label by a new protocol, and an iteration under the old one looked at its confirm labels." },
    Late { name: "confirm-looked-after-conflict", story: SEQUENCED, step: "look-1", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and its iteration looked at confirm labels." },
    Late { name: "gate-opened-after-conflict", story: GOVERNED, step: "m-1-opened", before: Before::Conflict("exp-1"),
           done: "A judge had contradicted itself, and a gate on its scores was opened." },
    Late { name: "gate-observed-after-conflict", story: GOVERNED, step: "m-1-observed-8", before: Before::Conflict("exp-1"),
           done: "A judge had contradicted itself, and its gate took in one more unit." },
    Late { name: "gate-looked-after-conflict", story: GOVERNED, step: "m-1-looked-8", before: Before::Conflict("exp-1"),
           done: "A judge had contradicted itself, and its gate was looked at." },
    Late { name: "gate-decided-after-conflict", story: GOVERNED, step: "m-1-decided", before: Before::Conflict("exp-1"),
           done: "A judge had contradicted itself, and its gate was decided: the claim holds." },
    Late { name: "gate-continued-after-conflict", story: GATED, step: "m-3-continued", before: Before::Conflict("exp-3"),
           done: "A judge had contradicted itself, and a gate on its scores went on from an earlier one." },
    Late { name: "promoted-after-conflict", story: GOVERNED, step: "issued", before: Before::Conflict("exp-1"),
           done: "A judge had contradicted itself after its gate was decided, and the candidate was promoted." },
    Late { name: "committed-after-conflict", story: DEPLOYED, step: "committed", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and a patch that rests on its scores was committed." },
    Late { name: "deployed-after-conflict", story: DEPLOYED, step: "runs", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and a rubric that it was to read was activated." },
    Late { name: "tuned-after-conflict", story: TUNED, step: "tune-1", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and a generator was to be tuned under it." },
    Late { name: "generator-asked-after-conflict", story: TUNED, step: "asked", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and a generator asked it." },
    Late { name: "generator-validated-after-conflict", story: TUNED, step: "better", before: Before::Conflict(EXPERIMENT),
           done: "A judge had contradicted itself, and a generator that was tuned under it was validated." },
];

/// The steps that come a second time, under the rulebook that did not ask.
const UNASKED: [(&str, &str); 2] = [
    (
        "asked-under-another-protocol",
        "asked-under-another-protocol-unasked",
    ),
    (
        "gate-decided-after-conflict",
        "gate-decided-after-conflict-unasked",
    ),
];

impl Before {
    fn rule(self) -> &'static str {
        match self {
            Self::Protocol => "sdp",
            Self::Conflict(_) => "blocked",
        }
    }

    /// Says what happened.
    fn say(self, world: &mut World) {
        match self {
            Self::Protocol => replaced(world),
            Self::Conflict(experiment) => contradicted(world, experiment),
        }
    }
}

/// A key that was not there before.
pub fn joined(world: &mut World, who: u8, holder: &str, role: Role) {
    let key = key_added(&signer(who), holder, true, &[role]);
    let data = serde_json::to_value(&key).unwrap();
    world.say(ADA, "key.added", 2, Value::Null, data);
}

/// Another protocol is registered and in force.
pub fn replaced(world: &mut World) {
    joined(world, STELLA, "Stella", Role::Steward);
    let other = json!({
        "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z", "sdp_version": "v2",
        "target": "Y",
    });
    world.say(STELLA, "sdp.version_registered", 1, Value::Null, other);
}

/// A judge is asked again, and answers otherwise.
pub fn contradicted(world: &mut World, experiment: &str) {
    joined(world, STRANGER, "Scott", Role::Scorer);
    let judge = serde_json::to_value(decided::judge()).unwrap();
    let is_known = world.items.iter().any(|item| {
        let body = &item.body;
        body["kind"] == "judge.registered" && body["experiment"] == experiment
    });
    if !is_known {
        world.say(
            STRANGER,
            "judge.registered",
            1,
            experiment.into(),
            judge.clone(),
        );
    }
    let replayed = json!({
        "judge": judge["judge"], "keys": 30, "keys_root": Digest::sha256(b"keys").to_base64(), "mismatches": 1,
        "seed": 7,
    });
    world.say(STRANGER, "score.replayed", 1, experiment.into(), replayed);
}

/// A history that had told this before its step, under the rulebook that it adopts then: the position of the step.
fn told(late: &Late, story: &Story, rulebook: Option<u64>) -> (World, usize) {
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at(late.step));
    late.before.say(&mut world);
    if let Some(version) = rulebook {
        adopt(&mut world, version);
    }
    let at = again(&mut world, story, late.step, |_| ());
    (world, at)
}

/// Every late step under the rulebook that its story names, which asks of none.
pub fn unasked() -> Vec<Sample> {
    let stories = stories();
    let all = LATE.iter().map(|late| {
        let (world, _) = told(late, &stories[late.story], None);
        Sample::forged(late.name, late.done, &world, None)
    });
    all.collect()
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let stories = stories();
    let mut rows = Vec::new();
    for late in LATE {
        let story = &stories[late.story];
        let (world, at) = told(late, story, Some(19));
        let first: First = Some((at, late.before.rule()));
        rows.push(Sample::forged(late.name, late.done, &world, first));
        if let Some((_, name)) = UNASKED.iter().find(|(of, _)| *of == late.name) {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            let (world, _) = told(late, story, None);
            rows.push(Sample::forged(name, done, &world, None));
        }
    }
    rows.push(closed(&stories[DECIDED]));
    rows.push(ended(&stories[GATED]));
    rows.push(rolled_back(&stories[DEPLOYED]));
    rows
}

/// What is left to say of an iteration whose protocol was replaced.
fn closed(story: &Story) -> Sample {
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("patch-b"));
    replaced(&mut world);
    adopt(&mut world, 19);
    let at = story.at("patch-a");
    let patch = world.items[at].body["data"].clone();
    let (id, yaml) = (patch["patch"].as_str(), patch["yaml"].as_str().unwrap());
    let rejected = iterated::rejected(decided::IT, "dev", "sdp", id, yaml);
    let data = serde_json::to_value(&rejected).unwrap();
    world.say(BEN, "patch.rejected", 1, EXPERIMENT.into(), data);
    let closed = iterated::closed(decided::IT, "sdp_changed");
    let data = serde_json::to_value(&closed).unwrap();
    world.say(BEN, "iteration.closed", 1, EXPERIMENT.into(), data);
    Sample::forged(
        "good-protocol-replaced",
        "Nothing. People label by a new protocol; a patch of an open iteration was rejected, and the iteration closed.",
        &world,
        None,
    )
}

/// A gate whose judge contradicted itself ends without a claim.
fn ended(story: &Story) -> Sample {
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("m-2-decided"));
    contradicted(&mut world, "exp-2");
    adopt(&mut world, 19);
    again(&mut world, story, "m-2-decided", |_| ());
    Sample::forged(
        "good-gate-ended-after-conflict",
        "Nothing. A judge had contradicted itself, and its gate was decided: nothing is claimed.",
        &world,
        None,
    )
}

/// What runs while a judge contradicts itself is checked and rolled back.
fn rolled_back(story: &Story) -> Sample {
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("breach"));
    contradicted(&mut world, EXPERIMENT);
    adopt(&mut world, 19);
    let breach = again(&mut world, story, "breach", |_| ());
    let was = world.items[breach].was.clone();
    again(&mut world, story, "back", |data| {
        data["breach"] = was.into();
    });
    Sample::forged(
        "good-rolled-back-after-conflict",
        "Nothing. A judge had contradicted itself; a guardrail broke, and what ran was rolled back.",
        &world,
        None,
    )
}
