//! Samples around rulebook 20 and what somebody would undo, redo or stretch once they know: a level, a peek, a word against a
//! judge, a role, a charge, a plan of audits.

use clover::event::payload::Role;
use clover::ground::time::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::planned;
use super::samples::*;
use super::sequenced;
use super::signer;
use super::tampered::First;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_gated;
use super::tampered_names;
use super::tampered_stopped;
use super::valued;

/// What was done under a rulebook: the history, and the position of the last event.
type Told = (World, usize);

/// A history under a rulebook, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "family-member-above-alpha", told: |book| second_member(book, 50_100), rule: Some("family"),
           done: "A claim had held, and the next member of the family took more than the family's own alpha." },
    Case { name: "good-family-member-at-alpha", told: |book| second_member(book, 50_000), rule: None,
           done: "Nothing. A claim had held, and the next member of the family took all of the family's alpha." },
    Case { name: "peek-left-unjudged", told: peek_left, rule: Some("acceptance"),
           done: "Confirm labels were shown, people label by a new protocol, and the iteration closed without a gate on confirm." },
    Case { name: "good-peek-judged", told: peek_judged, rule: None,
           done: "Nothing. People label by a new protocol; every gate on confirm was evaluated, and then the iteration closed." },
    Case { name: "protocol-in-force-before", told: |book| protocol(book, "2026-01-01T00:00:00.000000Z"), rule: Some("sdp"),
           done: "A protocol that takes the place of another is said to have been in force before it was recorded." },
    Case { name: "good-protocol-announced", told: |book| protocol(book, "2027-01-01T00:00:00.000000Z"), rule: None,
           done: "Nothing. A protocol that takes the place of another was recorded before it is in force." },
    Case { name: "contradiction-taken-back", told: |book| replayed(book, true), rule: Some("blocked"),
           done: "A judge contradicted itself, a re-score without a mismatch was recorded after it, and its gate was opened." },
    Case { name: "good-judge-replayed", told: |book| replayed(book, false), rule: None,
           done: "Nothing. A judge was asked again and said the same, and its gate was opened." },
    Case { name: "role-changed-after-retiring", told: |book| hats(book, "key.retired", Role::Optimizer), rule: Some("separation"),
           done: "Under strict separation a custodian's key was retired, and its holder got another one as optimizer." },
    Case { name: "role-changed-after-compromise", told: |book| hats(book, "key.compromised", Role::Optimizer), rule: Some("separation"),
           done: "Under strict separation a custodian's key was compromised, and its holder got another one as optimizer." },
    Case { name: "strict-adopted-again", told: strict_again, rule: Some("separation"),
           done: "Strict separation was put aside while a custodian became an optimizer, and adopted again." },
    Case { name: "good-role-changed", told: |book| hats(book, "key.retired", Role::Arbiter), rule: None,
           done: "Nothing. Under strict separation a custodian's key was retired, and its holder got another one as arbiter." },
    Case { name: "revealed-by-an-older-charge", told: |book| revealed(book, false), rule: Some("seal"),
           done: "A label was sealed after a peek was charged, and opened under that charge." },
    Case { name: "good-revealed-by-a-later-charge", told: |book| revealed(book, true), rule: None,
           done: "Nothing. A label was sealed after a peek was charged, and opened under the next charge." },
    Case { name: "audit-planned-after-its-probes", told: |book| audited(book, Plan::After, true), rule: Some("thresholds"),
           done: "Probes were open, a plan of audits was registered, and their audit was said to be graded by it." },
    Case { name: "good-audit-before-its-plan", told: |book| audited(book, Plan::After, false), rule: None,
           done: "Nothing. Probes were open, a plan of audits was registered, and their audit names no plan." },
    Case { name: "good-audit-as-planned", told: |book| audited(book, Plan::Before, true), rule: None,
           done: "Nothing. A plan of audits was registered, a probe was labelled, and its audit is graded by the plan." },
    Case { name: "audit-beside-its-plan", told: |book| audited(book, Plan::Before, false), rule: Some("thresholds"),
           done: "A plan of audits was in force before its probes were open, and their audit names no plan." },
];

/// Cases that come a second time, under the rulebook that did not ask.
const UNASKED: [(&str, &str); 6] = [
    (
        "family-member-above-alpha",
        "family-member-above-alpha-unasked",
    ),
    ("peek-left-unjudged", "peek-left-unjudged-unasked"),
    (
        "contradiction-taken-back",
        "contradiction-taken-back-unasked",
    ),
    (
        "role-changed-after-retiring",
        "role-changed-after-retiring-unasked",
    ),
    (
        "revealed-by-an-older-charge",
        "revealed-by-an-older-charge-unasked",
    ),
    (
        "audit-planned-after-its-probes",
        "audit-planned-after-its-probes-unasked",
    ),
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(20);
        let first: First = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some((_, name)) = UNASKED.iter().find(|(of, _)| *of == case.name) {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(19).0, None));
        }
    }
    rows
}

/// A history, whichever log key it ends under.
pub(super) fn sample(
    name: &'static str,
    done: &'static str,
    world: &World,
    first: First,
) -> Sample {
    let mut items = world.items.iter();
    if items.any(|item| item.body["kind"] == "log_key.rotated") {
        return tampered_names::sample(name, done, world, first);
    }
    Sample::forged(name, done, world, first)
}

/// The second member of an e-LOND family, of which a claim holds.
fn second_member(rulebook: u64, alpha_micro: u64) -> Told {
    let mut world = World::of(&tampered_gated::online().lines);
    adopt(&mut world, rulebook);
    let value = tampered_gated::second_online(alpha_micro);
    let said = planned::registered(&value);
    let data = serde_json::to_value(&said).unwrap();
    let at = world.say(ADA, "manifest.registered", 1, "exp-2".into(), data);
    (world, at)
}

/// Some labels of confirm were shown, and people label by a new protocol.
fn shown(rulebook: u64) -> (Story, World) {
    let story = sequenced::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("look-1"));
    tampered_stopped::replaced(&mut world);
    adopt(&mut world, rulebook);
    (story, world)
}

/// Closes the iteration because people label by a new protocol.
fn closed(world: &mut World, story: &Story) -> usize {
    again(world, story, "closed", |data| {
        data["outcome"] = "sdp_changed".into();
    })
}

fn peek_left(rulebook: u64) -> Told {
    let (story, mut world) = shown(rulebook);
    let at = closed(&mut world, &story);
    (world, at)
}

fn peek_judged(rulebook: u64) -> Told {
    let (story, mut world) = shown(rulebook);
    let owed = story.at("look-1")..story.at("accepted");
    let mut names: Vec<_> = story.names.iter().collect();
    names.retain(|(_, at)| owed.contains(at));
    names.sort_by_key(|(_, at)| **at);
    for (name, _) in names {
        again(&mut world, &story, name, |_| ());
    }
    let at = closed(&mut world, &story);
    (world, at)
}

/// Another protocol takes the place of one that is in force.
fn protocol(rulebook: u64, effective_at: &str) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    let other = json!({
        "document": "7".repeat(64), "effective_at": effective_at, "sdp_version": "sdp-2", "target": "Y",
    });
    let at = world.say(STELLA, "sdp.version_registered", 1, Value::Null, other);
    (world, at)
}

/// A judge is asked again, and says otherwise if it `contradicts` itself; then it is asked once more, and a gate is opened.
fn replayed(rulebook: u64, contradicts: bool) -> Told {
    let story = tampered_gated::governed();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("m-1-opened"));
    tampered_stopped::contradicted(&mut world, "exp-1");
    let first = world.items.len() - 1;
    adopt(&mut world, rulebook);
    let again_said = world.repeat(first);
    world.items[again_said].body["data"]["mismatches"] = 0.into();
    if !contradicts {
        world.items[first].body["data"]["mismatches"] = 0.into();
        world.items[first].body["data"]["seed"] = 8.into();
    }
    let at = again(&mut world, &story, "m-1-opened", |_| ());
    (world, at)
}

/// A ledger of Ada's whose separation is strict and whose custodian is Ben.
fn separated() -> World {
    let mut teller = Teller::begin();
    let added = key_added(&signer(BEN), "Ben", true, &[Role::Custodian]);
    teller.say(ADA, "key-ben", added);
    let mut world = World::of(&teller.finish().lines);
    separation(&mut world, "strict");
    world
}

fn separation(world: &mut World, word: &str) -> usize {
    let adopted = json!({"reason": "it is time", "separation": word});
    world.say(ADA, "policy.adopted", 1, Value::Null, adopted)
}

/// A key of Ben's ends.
fn ended(world: &mut World, kind: &str) {
    let mut data = json!({ "key_id": signer(BEN).id().to_string(), "reason": "it is time" });
    if kind == "key.compromised" {
        data["since_seq"] = 1.into();
    }
    world.say(ADA, kind, 1, Value::Null, data);
}

/// Ben gets another key, in another role.
fn another(world: &mut World, role: Role) -> usize {
    tampered_stopped::joined(world, RUNNER, "Ben", role);
    world.items.len() - 1
}

fn hats(rulebook: u64, kind: &str, role: Role) -> Told {
    let mut world = separated();
    adopt(&mut world, rulebook);
    ended(&mut world, kind);
    let at = another(&mut world, role);
    (world, at)
}

fn strict_again(rulebook: u64) -> Told {
    let mut world = separated();
    adopt(&mut world, rulebook);
    ended(&mut world, "key.retired");
    separation(&mut world, "solo");
    another(&mut world, Role::Optimizer);
    let at = separation(&mut world, "strict");
    (world, at)
}

/// The second row of a design is sealed after the peek at the first was charged, and opened by that charge or the `next`.
fn revealed(rulebook: u64, next: bool) -> Told {
    let story = good();
    let mut world = World::of(&story.lines);
    let late = ["sealed-2", "accepted-2"].map(|name| story.at(name));
    world.items.truncate(story.at("charge-1") + 1);
    for at in late.into_iter().rev() {
        world.remove(at);
    }
    adopt(&mut world, rulebook);
    for name in ["sealed-2", "accepted-2"] {
        again(&mut world, &story, name, |_| ());
    }
    let mut charge = story_id(&story, "charge-1");
    if next {
        let said = again(&mut world, &story, "charge-2", |_| ());
        // A new quarter has begun: the account of peeks is full again.
        later(&mut world, said, &story, "charge-2");
        charge = world.items[said].was.clone();
    }
    let at = again(&mut world, &story, "revealed-2", |data| {
        data["charge"] = charge.into();
    });
    (world, at)
}

/// An event is said when a story said another one.
fn later(world: &mut World, at: usize, story: &Story, name: &str) {
    let of = World::of(&story.lines);
    let when: Timestamp = of.items[story.at(name)].recorded_at;
    world.items[at].recorded_at = when;
    world.items[at].body["at"] = when.to_string().into();
}

fn story_id(story: &Story, name: &str) -> String {
    World::of(&story.lines).items[story.at(name)].was.clone()
}

/// When a plan of audits is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Before,
    After,
}

/// A label of a new audit design, a plan of audits before or after it, and an audit by the design that names the plan or none.
fn audited(rulebook: u64, plan: Plan, names_it: bool) -> Told {
    let mut world = World::of(&good().lines);
    let arena = || Value::from(ARENA);
    adopt(&mut world, rulebook);
    let say_plan = |world: &mut World| {
        let value = planned::audits(ARENA, "audits-1");
        let said = serde_json::to_value(planned::registered(&value)).unwrap();
        let digest = said["digest"].clone();
        world.say(ADA, "manifest.registered", 1, arena(), said);
        digest
    };
    let design = json!({
        "design": "probe-2", "inclusion_micro": 50_000, "protocol": "sdp-1", "purpose": "audit",
    });
    world.say(LENA, "label.design_registered", 1, arena(), design);
    let mut digest = Value::Null;
    if plan == Plan::Before {
        digest = say_plan(&mut world);
    }
    let label = json!({
        "design": "probe-2", "draw": 0, "item": "item-z", "policy": "tuned", "purpose": "audit", "rater": "Lena",
        "value_micro": 0,
    });
    world.say(LENA, "label.recorded", 1, arena(), label);
    if plan == Plan::After {
        digest = say_plan(&mut world);
    }
    let mut tested = valued::tested(5, "probe-2", "pass");
    tested["algorithm"] = "transport/2".into();
    tested["policy"] = "tuned".into();
    tested["through_seq"] = 7.into();
    tested["audit"]["family_size"] = 2.into();
    if names_it {
        tested["audit"]["manifest"] = digest;
    }
    let at = world.say(ARBITER, "transport.tested", 1, arena(), tested);
    (world, at)
}
