//! Samples around what a ledger enforces of an iteration: one step said by another key, too late, or once too often.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::forger::World;
use super::iterated;
use super::planned;
use super::released;
use super::samples::*;
use super::signer;
use super::tampered::First;
use super::tampered::Sample;

struct Table {
    decided: Story,
    rows: Vec<Sample>,
}

pub fn all() -> Vec<Sample> {
    let mut table = Table {
        decided: decided::story(),
        rows: Vec::new(),
    };
    table.by_another();
    table.after_sealing();
    table.more_than_allowed();
    table.under_another_protocol();
    table.rows
}

fn data(payload: &Payload) -> Value {
    serde_json::to_value(payload).unwrap()
}

/// Says what a key would have said next; gives its position.
fn say(world: &mut World, who: u8, payload: &Payload, experiment: bool) -> usize {
    let (kind, v) = (payload.kind().as_str(), u64::from(payload.kind().version()));
    let of = if experiment {
        EXPERIMENT.into()
    } else {
        Value::Null
    };
    world.say(who, kind, v, of, data(payload))
}

impl Table {
    fn push(&mut self, name: &'static str, done: &'static str, world: &World, first: First) {
        self.rows.push(Sample::forged(name, done, world, first));
    }

    /// The history before a named event.
    fn before(&self, name: &str) -> World {
        let mut world = World::of(&self.decided.lines);
        world.items.truncate(self.decided.at(name));
        world
    }

    /// What was said under a name.
    fn said(&self, name: &str) -> (u64, Value) {
        let world = World::of(&self.decided.lines);
        let body = &world.items[self.decided.at(name)].body;
        (body["v"].as_u64().unwrap(), body["data"].clone())
    }

    fn by_another(&mut self) {
        let mut world = World::of(&self.decided.lines);
        let at = self.decided.at("a-p1");
        world.items[at].body["author"] = signer(RUNNER).id().to_string().into();
        self.push(
            "judged-by-the-optimizer",
            "The key that writes patches evaluated a gate of its own patch.",
            &world,
            Some((at, "role")),
        );
        let mut world = self.before("sealed");
        let read = json!({
            "class": "label", "outcome": "allowed", "purpose": "to look", "reader": signer(RUNNER).id().to_string(),
        });
        world.say(CLEO, "data.read", 1, EXPERIMENT.into(), read);
        let (v, sealing) = self.said("sealed");
        let at = world.say(BEN, "candidates.sealed", v, EXPERIMENT.into(), sealing);
        self.push(
            "sealed-though-tainted",
            "The key that wrote the patches was shown labels, and its patches were sealed all the same.",
            &world,
            Some((at, "sealing")),
        );
        let story = released::story();
        let mut world = World::of(&story.lines);
        let key = &mut world.items[story.at("key-opal")].body["data"]["roles"];
        *key = json!(["approver", "optimizer"]);
        let at = story.at("yes-paul");
        world.items[at].body["author"] = signer(RUNNER).id().to_string().into();
        self.push(
            "approved-by-its-author",
            "The second approval of a patch was signed by the key that had proposed it.",
            &world,
            Some((at, "approval")),
        );
    }

    fn after_sealing(&mut self) {
        let asked = |candidate: u8| {
            let digest = Digest([candidate; 32]);
            decided::asked(digest, signer(RUNNER).id())
        };
        let mut world = self.before("charge");
        let at = say(&mut world, BEN, &asked(5), true);
        self.push(
            "asked-after-sealing",
            "The dev objective answered when the candidates had been sealed.",
            &world,
            Some((at, "predicate")),
        );
        let mut world = self.before("a-c4");
        let mut late = self.said("a-p1");
        late.1["candidate"] = "9".repeat(64).into();
        let at = world.say(BEN, "gate.evaluated", late.0, EXPERIMENT.into(), late.1);
        self.push(
            "dev-gate-after-unsealing",
            "A gate on dev was evaluated when the confirm labels had been seen.",
            &world,
            Some((at, "predicate")),
        );
        let mut world = self.before("a-c4");
        let (v, frozen) = self.said("classified");
        let at = world.say(BEN, "slices.classified", v, EXPERIMENT.into(), frozen);
        self.push(
            "classified-after-unsealing",
            "Slices were classified a second time when the confirm labels had been seen.",
            &world,
            Some((at, "natural_key")),
        );
        let mut world = World::of(&self.decided.lines);
        let split = decided::split_in_time();
        let names = ["split-1", "split-2", "split-3", "split-4"];
        for (name, payload) in names.into_iter().zip(&split) {
            world.items[self.decided.at(name)].body["data"] = data(payload);
        }
        let root = decided::confirm_root_of(&split);
        let unsealing = &mut world.items[self.decided.at("unsealed")].body["data"];
        unsealing["confirm_root"] = root.into();
        let at = self.decided.at("unsealed");
        self.push(
            "unsealed-before-its-window-ended",
            "Confirm was unsealed while rows of its window were still to come.",
            &world,
            Some((at, "sealing")),
        );
        let mut world = self.before("a-c4");
        let charge = world.repeat(self.decided.at("charge"));
        let id = world.items[charge].was.clone();
        let (v, mut again) = self.said("unsealed");
        again["charge"] = id.into();
        let at = world.say(CLEO, "confirm.unsealed", v, EXPERIMENT.into(), again);
        self.push(
            "unsealed-twice",
            "The same confirm block was unsealed a second time, for a second charge.",
            &world,
            Some((at, "natural_key")),
        );
    }

    fn more_than_allowed(&mut self) {
        let changes = "{guards.length_bias_cap.if_tokens_gt: 400}";
        let third = iterated::patch("cap-3", "length_bias_cap", changes);
        let third = iterated::proposed(decided::IT, &third);
        let both = decided::patches();
        let concise = both
            .iter()
            .find(|patch| data(patch)["family"] == "length_bias_cap")
            .unwrap();
        let hashes = [&third, concise].map(|patch| decided::patch_of(patch).0);
        let mut world = self.before("sealed");
        say(&mut world, RUNNER, &third, true);
        let mut sealing = data(&decided::sealed(&hashes));
        let singles = sealing["hypotheses"].as_array_mut().unwrap();
        singles.retain(|one| one["patches"].as_array().unwrap().len() == 1);
        let at = world.say(BEN, "candidates.sealed", 1, EXPERIMENT.into(), sealing);
        self.push(
            "two-of-a-family-sealed",
            "Two patches of one family were sealed for the same look at confirm.",
            &world,
            Some((at, "sealing")),
        );
        let mut world = World::of(&self.decided.lines);
        let at = self.decided.at("accepted-a");
        world.items[at].body["data"]["gates"]
            .as_array_mut()
            .unwrap()
            .pop();
        self.push(
            "accepted-on-twelve-gates",
            "An acceptance names twelve of the thirteen gates that it stands on.",
            &world,
            Some((at, "acceptance")),
        );
        self.third_accepted();
    }

    /// A third patch of a third family passes everything too.
    fn third_accepted(&mut self) {
        let (all, hashes) = decided::three();
        let plan = iterated::plan(EXPERIMENT, "m-it");
        let mut world = self.before("battery-a");
        for patch in &all {
            let again = decided::patches().contains(patch);
            if !again {
                say(&mut world, RUNNER, patch, true);
            }
        }
        let mut gates = vec![Vec::new(); hashes.len()];
        let results = all.iter().map(|patch| decided::patch_of(patch).1);
        let results: Vec<_> = results.chain([Digest([3; 32])]).collect();
        for (hash, result) in hashes.iter().zip(results) {
            let battery = decided::battery(Some(*hash), result, &[20_000]);
            say(&mut world, RUNNER_3, &battery, true);
        }
        let mut judge = |world: &mut World, split: &str| {
            for (hash, own) in hashes.iter().zip(&mut gates) {
                for gate in decided::gates(&plan, *hash, split) {
                    let at = say(world, BEN, &gate, true);
                    own.push(world.items[at].was.clone());
                }
            }
        };
        judge(&mut world, "dev");
        let at = say(&mut world, BEN, &decided::sealed_three(&hashes), true);
        let sealed = world.items[at].was.clone();
        let at = say(&mut world, CLEO, &decided::charge(), false);
        let unsealing = decided::unsealed(&world.items[at].was.clone(), &sealed);
        say(&mut world, CLEO, &unsealing, true);
        judge(&mut world, "confirm");
        let mut at = 0;
        for (rank, (patch, own)) in (1..).zip(all.iter().zip(&gates)) {
            at = say(&mut world, BEN, &decided::accepted(patch, rank, own), true);
        }
        self.push(
            "third-accepted",
            "A third patch that had passed every gate was accepted in one iteration.",
            &world,
            Some((at, "acceptance")),
        );
    }

    fn under_another_protocol(&mut self) {
        let mut world = self.before("card");
        let stella = key_added(&signer(STELLA), "Stella", true, &[Role::Steward]);
        say(&mut world, ADA, &stella.into(), false);
        let other = json!({
            "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z", "sdp_version": "v2",
            "target": "Y",
        });
        let other = planned::payload("sdp.version_registered", &other);
        say(&mut world, STELLA, &other, false);
        let (v, card) = self.said("card");
        let at = world.say(BEN, "card.published", v, EXPERIMENT.into(), card);
        self.push(
            "gone-on-under-another-protocol",
            "People label by a new protocol, and an iteration that began under the old one went on.",
            &world,
            Some((at, "sdp")),
        );
    }
}
