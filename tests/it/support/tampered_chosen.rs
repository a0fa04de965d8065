//! Samples around rulebooks, and around evidence that somebody could choose: what rulebook 18 asks and 17 did not.

use clover::event::Payload;
use clover::ground::digest::Digest;
use clover::ground::time::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::planned;
use super::samples::ADA;
use super::samples::CLEO;
use super::samples::EXPERIMENT;
use super::samples::Story;
use super::samples::Teller;
use super::sequenced;
use super::tampered::Sample;

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = rulebooks();
    rows.extend(confirm());
    rows.extend(order());
    rows.extend(plan());
    rows
}

/// Says that this rulebook judges from here on.
pub fn adopt(world: &mut World, version: u64) -> usize {
    let data = json!({ "version": version });
    world.say(ADA, "rulebook.adopted", 1, Value::Null, data)
}

/// A ledger that was made by this rulebook.
pub fn made_by(lines: &[Vec<u8>], version: u64) -> World {
    let mut world = World::of(lines);
    world.items[0].body["data"]["rulebook"] = version.into();
    world
}

fn rulebooks() -> Vec<Sample> {
    let story = planned::story();
    let mut adopted = World::of(&story.lines);
    adopt(&mut adopted, 18);
    let mut back = adopted.clone();
    let at_back = adopt(&mut back, 17);
    let mut ahead = World::of(&story.lines);
    let at_ahead = adopt(&mut ahead, 1_000);
    let unknown = made_by(&story.lines, 17);
    vec![
        Sample::forged(
            "good-adopted",
            "Nothing. A ledger that named no rulebook adopted the eighteenth at its end.",
            &adopted,
            None,
        ),
        Sample::forged(
            "rulebook-taken-back",
            "After rulebook 18 was adopted, the owner adopted the seventeenth again.",
            &back,
            Some((at_back, "rulebook")),
        ),
        Sample::forged(
            "rulebook-of-nobody",
            "The owner adopted a rulebook that no verifier knows.",
            &ahead,
            Some((at_ahead, "rulebook")),
        ),
        Sample::forged(
            "rulebook-named-needlessly",
            "The first entry names rulebook 17, which judges where none is named.",
            &unknown,
            Some((0, "rulebook")),
        ),
    ]
}

/// A history before a named event, under a rulebook.
fn before(story: &Story, name: &str, rulebook: u64) -> World {
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at(name));
    if rulebook > 17 {
        world.items[0].body["data"]["rulebook"] = rulebook.into();
    }
    world
}

/// Says again, at the end of a history, what a story said under a name; `change` may alter it.
pub fn again(
    world: &mut World,
    story: &Story,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> usize {
    let of = World::of(&story.lines);
    let body = &of.items[story.at(name)].body;
    let (kind, v) = (body["kind"].as_str().unwrap(), body["v"].as_u64().unwrap());
    let mut data = body["data"].clone();
    change(&mut data);
    let at = world.say(CLEO, kind, v, body["experiment"].clone(), data);
    world.items[at].body["author"] = body["author"].clone();
    at
}

/// A block of which one label was kept back, and an iteration that its arbiter stops at a time: its position.
pub fn stopped_at(time: &str) -> (World, usize) {
    ended_at("stopped", time)
}

/// The same, with an end of any kind.
fn ended_at(outcome: &str, time: &str) -> (World, usize) {
    let story = sequenced::story();
    let mut world = before(&story, "c4", 17);
    again(&mut world, &story, "seal-1", |data| {
        let row = data["row"].as_str().unwrap().replace("/0", "/1");
        data["row"] = row.into();
    });
    adopt(&mut world, 18);
    let at = again(&mut world, &story, "closed", |data| {
        data["outcome"] = outcome.into();
    });
    world.items[at].recorded_at = Timestamp::parse(time).unwrap();
    world.items[at].body["at"] = time.into();
    (world, at)
}

/// A history in which as many confirm blocks were said to be unsealed in one quarter, and then one more, rightly paid:
/// its position.
pub fn unsealed_after(others: usize) -> (World, usize) {
    let story = sequenced::story();
    let mut world = before(&story, "unsealed", 18);
    for other in 0..others {
        again(&mut world, &story, "unsealed", |data| {
            data["iteration"] = format!("another-{other}").into();
            data["confirm_root"] = Digest::sha256(&other.to_be_bytes()).to_base64().into();
            data["charge"] = Digest::sha256(b"another").to_hex().into();
        });
    }
    let of = World::of(&story.lines);
    let charge = of.items[story.at("charge")].was.clone();
    let at = again(&mut world, &story, "unsealed", |data| {
        data["charge"] = charge.into();
    });
    (world, at)
}

/// What a custodian alone could do to a confirm block, under the rulebook that asks and under the one that did not.
fn confirm() -> Vec<Sample> {
    let story = sequenced::story();
    let chosen = |rulebook| {
        let mut world = before(&story, "opened", rulebook);
        let charge = again(&mut world, &story, "charge", |_| ());
        let was = world.items[charge].was.clone();
        let at = again(&mut world, &story, "shown-1", |data| {
            data["charge"] = was.into();
        });
        (world, at)
    };
    let late = |rulebook: u64| {
        let mut world = World::of(&story.lines);
        for name in ["takes-1", "seal-1"] {
            world.remove(story.at(name));
        }
        world.items.truncate(story.at("charge") - 2);
        if rulebook > 17 {
            world.items[0].body["data"]["rulebook"] = rulebook.into();
        }
        let at = again(&mut world, &story, "seal-1", |_| ());
        (world, at)
    };
    let elsewhere = |rulebook| {
        let mut world = before(&story, "charge", rulebook);
        let side = json!({
            "account": "side", "amount": 3, "period": "quarter", "purpose": "more looks",
            "spenders": ["custodian", "optimizer"], "unit": "peek",
        });
        world.say(ADA, "budget.opened", 1, Value::Null, side);
        let charge = again(&mut world, &story, "charge", |data| {
            data["account"] = "side".into();
        });
        let was = world.items[charge].was.clone();
        let at = again(&mut world, &story, "unsealed", |data| {
            data["charge"] = was.into();
        });
        (world, at)
    };
    let left_out = || {
        let mut world = before(&story, "c4", 17);
        again(&mut world, &story, "seal-1", |data| {
            let row = data["row"].as_str().unwrap().replace("/0", "/1");
            data["row"] = row.into();
        });
        adopt(&mut world, 18);
        let at = again(&mut world, &story, "c4", |_| ());
        (world, at)
    };
    let sealing = |at| Some((at, "sealing"));
    let (part, part_at) = left_out();
    let (rows, rows_at) = chosen(18);
    let (seal, seal_at) = late(18);
    let (peek, peek_at) = elsewhere(18);
    let (failed, failed_at) = ended_at("transport_failed", "2026-12-31T00:00:00.000000Z");
    let good = sequenced::told(Teller::begin_under(18));
    vec![
        Sample::forged(
            "good-confirm",
            "Nothing. A confirm block that rulebook 18 judges: sealed, opened, paid for and read as a whole.",
            &World::of(&good.lines),
            None,
        ),
        Sample::forged(
            "confirm-rows-chosen",
            "The custodian paid a peek and revealed one confirm label before the iteration opened.",
            &rows,
            sealing(rows_at),
        ),
        Sample::forged(
            "confirm-rows-chosen-unasked",
            "The same under rulebook 17, which did not ask: the verdict says so.",
            &chosen(17).0,
            None,
        ),
        Sample::forged(
            "ended-early-after-peek",
            "After the peek, with gates still to be evaluated, an iteration was ended as transport_failed.",
            &failed,
            Some((failed_at, "acceptance")),
        ),
        Sample::forged(
            "confirm-label-left-out",
            "A gate on confirm was evaluated while a label of its block was still sealed.",
            &part,
            Some((part_at, "predicate")),
        ),
        Sample::forged(
            "sealed-after-opening",
            "A confirm label was sealed when the candidates were on the table.",
            &seal,
            sealing(seal_at),
        ),
        Sample::forged(
            "sealed-after-opening-unasked",
            "The same under rulebook 17, which did not ask: the verdict says so.",
            &late(17).0,
            None,
        ),
        Sample::forged(
            "peek-from-another-account",
            "An unsealing was paid from a second account of peeks, which an optimizer may spend from.",
            &peek,
            sealing(peek_at),
        ),
        Sample::forged(
            "peek-from-another-account-unasked",
            "The same under rulebook 17, which did not ask: the verdict says so.",
            &elsewhere(17).0,
            None,
        ),
    ]
}

/// An amendment that draws the order of a gate again.
fn order() -> Vec<Sample> {
    let story = planned::story();
    let [first, ..] = planned::versions();
    let redrawn = |rulebook| {
        let mut world = before(&story, "plan-sealed", 17);
        if rulebook > 17 {
            adopt(&mut world, rulebook);
        }
        let mut second = planned::next(&first, &first);
        second["estimand"]["unit_key"] = "question".into();
        second["metric"]["noise"] = "none".into();
        let said = planned::amended(&second, &first, 3);
        let data = serde_json::to_value(&said).unwrap();
        let at = world.say(ADA, "manifest.amended", 1, EXPERIMENT.into(), data);
        (world, at)
    };
    let (world, at) = redrawn(18);
    vec![
        Sample::forged(
            "order-drawn-again",
            "After the custodian had agreed, what is tested was amended, so that the order would be drawn again.",
            &world,
            Some((at, "amendment")),
        ),
        Sample::forged(
            "order-drawn-again-unasked",
            "The same under rulebook 17, which did not ask: the verdict says so.",
            &redrawn(17).0,
            None,
        ),
    ]
}

/// A plan that was sealed, and a version that binds another one: whoever reads the manifest takes that for what was run.
fn plan() -> Vec<Sample> {
    let story = planned::story();
    let [first, ..] = planned::versions();
    let bound = |rulebook| {
        let mut world = before(&story, "amended-2", 17);
        let mut second = planned::next(&first, &first);
        let digest = Digest::sha256(b"another plan").to_hex();
        second["analysis"] = json!({
            "code_digest": digest, "env_digest": digest, "exploratory_allowed": false, "plan_commitment": digest,
        });
        let mut say = |who, payload: Payload| {
            let kind = payload.kind();
            let (kind, v) = (kind.as_str(), kind.version());
            let mut data = serde_json::to_value(&payload).unwrap();
            if rulebook > 17 && kind == "exposure.opened" {
                data["through"] = "item-1".into();
                adopt(&mut world, rulebook);
            }
            world.say(who, kind, v.into(), EXPERIMENT.into(), data)
        };
        say(ADA, planned::amended(&second, &first, 1));
        say(CLEO, planned::countersigned(&second));
        let at = say(CLEO, planned::exposed(&second, 1, 0, 49));
        (world, at)
    };
    let (world, at) = bound(18);
    vec![
        Sample::forged(
            "plan-other-than-bound",
            "After a plan was sealed, the manifest was amended to bind another one, and units were exposed.",
            &world,
            Some((at, "plan")),
        ),
        Sample::forged(
            "plan-other-than-bound-unasked",
            "The same under rulebook 17, which did not ask: the verdict says so.",
            &bound(17).0,
            None,
        ),
    ]
}
