//! What can be done to the story of three gates, and what must be found.

use clover::event::Payload;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::gated;
use super::gated::Life;
use super::planned;
use super::samples::*;
use super::tampered::First;
use super::tampered::Sample;

struct Gates {
    story: Story,
    rows: Vec<Sample>,
}

/// Every sample of gates.
pub fn all() -> Vec<Sample> {
    let story = gated::story();
    let rows = Vec::new();
    let mut table = Gates { story, rows };
    table.good();
    table.orders();
    table.observations();
    table.claims();
    table.used_again();
    table.rows
}

impl Gates {
    fn push(&mut self, name: &'static str, done: &'static str, world: &World, first: First) {
        self.rows.push(Sample::forged(name, done, world, first));
    }

    fn good(&mut self) {
        let world = World::of(&self.story.lines);
        self.push(
            "good-gates",
            "Nothing. Three gates of one family under strict separation: one promotes, one ends undecided, one goes \
             on from it; the family is closed, and a promotion is issued and revoked.",
            &world,
            None,
        );
    }

    /// One event says something else.
    fn edited(
        &mut self,
        (name, done): (&'static str, &'static str),
        at: &str,
        rule: &'static str,
        edit: impl FnOnce(&mut Value),
    ) {
        let mut world = World::of(&self.story.lines);
        let at = self.story.at(at);
        edit(&mut world.items[at].body["data"]);
        self.push(name, done, &world, Some((at, rule)));
    }

    fn orders(&mut self) {
        self.edited(
            (
                "gate-other-alpha",
                "A gate was opened with a larger alpha than was registered, and signed.",
            ),
            "m-1-opened",
            "gate",
            |data| data["test"]["alpha_micro"] = 100_000.into(),
        );
        self.edited(
            (
                "gate-order-swapped",
                "Two units changed their places in the order drawn.",
            ),
            "m-1-listed",
            "order",
            |data| data["units"].as_array_mut().unwrap().swap(2, 6),
        );
        self.edited(
            (
                "gate-other-beacon",
                "An order was said to be drawn from a later checkpoint.",
            ),
            "m-1-drawn",
            "order",
            |data| data["beacon"]["size"] = (data["beacon"]["size"].as_u64().unwrap() + 1).into(),
        );
        self.edited(
            (
                "gate-unit-left-out",
                "One unit of the confirm set was left out of the order.",
            ),
            "m-1-drawn",
            "order",
            |data| data["n_units"] = 9.into(),
        );
    }

    fn observations(&mut self) {
        let unit = |story: &Story, name: &str| {
            let world = World::of(&story.lines);
            world.items[story.at(name)].body["data"]["unit"].clone()
        };
        let (fourth, sixth) = (
            unit(&self.story, "m-2-observed-4"),
            unit(&self.story, "m-1-observed-6"),
        );
        self.edited(
            (
                "gate-out-of-order",
                "The unit at the sixth place was observed as the fifth.",
            ),
            "m-1-observed-5",
            "observation",
            |data| data["unit"] = sixth,
        );
        self.edited(
            ("gate-unit-twice", "A unit was observed twice."),
            "m-2-observed-5",
            "observation",
            |data| data["unit"] = fourth,
        );
        self.edited(
            (
                "gate-wrong-delta",
                "A difference is not that of the values beside it.",
            ),
            "m-1-observed-2",
            "observation",
            |data| data["readings"][0]["delta_micro"] = 1_900_000.into(),
        );
        self.edited(
            (
                "gate-other-value",
                "A value is not the recorded score; the difference follows from it.",
            ),
            "m-2-observed-2",
            "observation",
            |data| {
                data["readings"][0]["candidate"] = json!([1_000_000]);
                data["readings"][0]["delta_micro"] = 500_000.into();
            },
        );
        self.edited(
            (
                "gate-pretended-missing",
                "A recorded score of the candidate was said to be missing.",
            ),
            "m-3-observed-2",
            "observation",
            |data| {
                data["readings"][0]["candidate"] = json!([0]);
                data["readings"][0]["candidate_missing"] = json!([0]);
                data["readings"][0]["delta_micro"] = 0.into();
            },
        );
        self.edited(
            (
                "gate-kinder-missing",
                "A draw that failed was counted as a good one.",
            ),
            "m-1-observed-3",
            "observation",
            |data| {
                data["readings"][0]["candidate"] = json!([1_000_000, 1_000_000]);
                data["readings"][0]["delta_micro"] = 1_900_000.into();
            },
        );
        self.after_the_end();
    }

    /// One more unit after the gate was decided.
    fn after_the_end(&mut self) {
        let mut world = World::of(&self.story.lines);
        let at = self.story.at("m-1-decided") + 1;
        let mut item = world.items[self.story.at("m-1-observed-10")].clone();
        item.body["data"]["t"] = 11.into();
        item.recorded_at = world.items[at - 1].recorded_at;
        item.body["at"] = item.recorded_at.to_string().into();
        item.body["seen"]["size"] = at.into();
        world.items.insert(at, item);
        for item in &mut world.items[at + 1..] {
            if let Some(size) = item.body["seen"]["size"].as_u64()
                && size >= at as u64
            {
                item.body["seen"]["size"] = (size + 1).into();
            }
        }
        self.push(
            "gate-after-the-end",
            "A unit was observed after the gate had been decided.",
            &world,
            Some((at, "observation")),
        );
    }

    fn claims(&mut self) {
        self.edited(
            (
                "gate-forged-wealth",
                "A look says more evidence than the observations give.",
            ),
            "m-1-looked-10",
            "look",
            |data| {
                let log_e = data["log_e"].as_f64().unwrap();
                data["log_e"] = (log_e * 1.001 + 0.001).into();
            },
        );
        self.edited(
            (
                "gate-forged-standing",
                "A look that decides nothing says promote.",
            ),
            "m-1-looked-4",
            "look",
            |data| data["standing"] = "promote".into(),
        );
        self.edited(
            (
                "gate-forged-state",
                "The digest of the observations behind a look is another's.",
            ),
            "m-2-looked-3",
            "look",
            |data| data["state_digest"] = "00".repeat(32).into(),
        );
        self.edited(
            (
                "gate-forged-interval",
                "A confidence interval was made narrower.",
            ),
            "m-2-looked-8",
            "look",
            |data| data["cs_lo_micro"] = (data["cs_lo_micro"].as_i64().unwrap() + 10).into(),
        );
        self.edited(
            (
                "gate-forged-decision",
                "A gate that ended undecided was decided to promote.",
            ),
            "m-2-decided",
            "decision",
            |data| data["outcome"] = "promote".into(),
        );
        self.edited(
            (
                "gate-forged-carry",
                "A gate went on with more wealth than its parent had.",
            ),
            "m-3-continued",
            "gate",
            |data| data["carried"]["claim"] = 3.5.into(),
        );
        self.edited(
            (
                "family-closed-otherwise",
                "The closing of a family names a claim that did not hold.",
            ),
            "closed",
            "family",
            |data| data["rejected"] = json!(["m-1", "m-2"]),
        );
        self.edited(
            (
                "promotion-without-decision",
                "A candidate was promoted on a gate that ended undecided.",
            ),
            "issued",
            "promotion",
            |data| data["gates"] = json!(["m-2"]),
        );
        self.edited(
            (
                "promotion-of-another-grade",
                "A promotion states a grade that does not follow.",
            ),
            "issued",
            "promotion",
            |data| data["grade"] = "certified_amended".into(),
        );
    }

    /// A candidate registered after units were seen is tested on one of them, among others.
    fn used_again(&mut self) {
        let mut world = World::of(&self.story.lines);
        let say = |world: &mut World, who: u8, payload: Payload, experiment: Value| {
            let (kind, v) = (payload.kind().as_str(), payload.kind().version());
            let data = serde_json::to_value(&payload).unwrap();
            world.say(who, kind, u64::from(v), experiment, data);
        };
        let exp: Value = "exp-4".into();
        let mut units = gated::units("new", 9);
        units.push(gated::manifests()[0].1[0].clone());
        units.sort();
        let family = json!({
            "alpha_micro": 50_000, "family": "later", "members_max": 1, "membership": "one gate",
            "method": "spend",
        });
        let mut gate = gated::gate("exp-4", "m-4", &units);
        gate["multiplicity"] =
            json!({"family": "later", "family_alpha_micro": 50_000, "method": "spend"});
        let opened = planned::payload("family.opened", &family);
        say(&mut world, ADA, opened, Value::Null);
        say(
            &mut world,
            ADA,
            planned::experiment_registered(),
            exp.clone(),
        );
        say(&mut world, ADA, planned::registered(&gate), exp.clone());
        say(&mut world, CLEO, planned::countersigned(&gate), exp.clone());
        let size = world.items.len();
        let root = world.seal().roots[size];
        let mut life = Life::new(&gate, &units);
        for payload in life.listed() {
            say(&mut world, CLEO, payload, exp.clone());
        }
        let (listed, _) = life.drawn(root, size as u64);
        say(&mut world, BEN, listed.into(), exp);
        let last = world.items.len() - 1;
        self.push(
            "gate-units-used-again",
            "A confirm set holds a unit that had stood in the order of another gate before the manifest was \
             registered.",
            &world,
            Some((last, "order")),
        );
        let mut world = World::of(&self.story.lines);
        let mut late = gated::gate("exp-1", "m-5", &gated::units("late", 40));
        late["multiplicity"] =
            json!({"family": "quarter", "family_alpha_micro": 100_000, "method": "spend"});
        late["test"]["alpha_micro"] = 1.into();
        late["experiment"] = "exp-5".into();
        say(
            &mut world,
            ADA,
            planned::experiment_registered(),
            "exp-5".into(),
        );
        say(&mut world, ADA, planned::registered(&late), "exp-5".into());
        let last = world.items.len() - 1;
        self.push(
            "family-joined-late",
            "A manifest joined a family that had been closed.",
            &world,
            Some((last, "family")),
        );
    }
}
