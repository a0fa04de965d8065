//! Samples around a sequential confirm test.

use serde_json::Value;

use super::forger::World;
use super::samples::*;
use super::sequenced;
use super::tampered::Sample;

struct Table {
    story: Story,
    rows: Vec<Sample>,
}

pub fn all() -> Vec<Sample> {
    let mut table = Table {
        story: sequenced::story(),
        rows: Vec::new(),
    };
    table.shown_otherwise();
    table.looked_otherwise();
    table.rows
}

impl Table {
    fn edited(
        &mut self,
        name: &'static str,
        done: &'static str,
        at: &str,
        edit: impl FnOnce(&mut Value),
        rule: &'static str,
    ) {
        let mut world = World::of(&self.story.lines);
        let at = self.story.at(at);
        edit(&mut world.items[at].body["data"]);
        let sample = Sample::forged(name, done, &world, Some((at, rule)));
        self.rows.push(sample);
    }

    fn shown_otherwise(&mut self) {
        let world = World::of(&self.story.lines);
        self.rows.push(Sample::forged(
            "good-sequence",
            "Nothing. Confirm labels were shown in order, a test crossed at the second look, and the patch was accepted.",
            &world,
            None,
        ));
        let mut world = World::of(&self.story.lines);
        let (first, second) = (self.story.at("shown-1"), self.story.at("shown-2"));
        let one = world.items[first].body["data"].clone();
        world.items[first].body["data"] = world.items[second].body["data"].clone();
        world.items[second].body["data"] = one;
        self.rows.push(Sample::forged(
            "shown-out-of-order",
            "Two confirm labels were shown in another order than the checkpoint draws.",
            &world,
            Some((second, "sealing")),
        ));
        let mut world = World::of(&self.story.lines);
        world.remove(self.story.at("look-1"));
        let at = self.story.at("shown-3") - 1;
        self.rows.push(Sample::forged(
            "look-left-out",
            "A third cluster's label was shown, and nobody had looked at the first two.",
            &world,
            Some((at, "sealing")),
        ));
        let mut world = World::of(&self.story.lines);
        let last = self.story.at("c4") - 1;
        world.remove(last);
        self.rows.push(Sample::forged(
            "judged-on-a-part",
            "Gates on confirm were evaluated while a label of the block was still sealed.",
            &world,
            Some((last, "predicate")),
        ));
    }

    fn looked_otherwise(&mut self) {
        self.edited(
            "look-by-another-order",
            "A look names another seed than the first checkpoint after the sealing gives.",
            "look-1",
            |data| data["seed"] = "0".repeat(64).into(),
            "sealing",
        );
        self.edited(
            "look-at-fewer",
            "A look says that fewer clusters were shown.",
            "look-2",
            |data| data["units"] = 3.into(),
            "sealing",
        );
        self.edited(
            "look-with-another-bound",
            "The bound that was known before the first label changed between two looks.",
            "look-2",
            |data| data["hypotheses"][0]["test"]["bound"] = 0.125.into(),
            "sealing",
        );
        let mut world = World::of(&self.story.lines);
        let look = &mut world.items[self.story.at("look-1")].body["data"];
        look["hypotheses"][0]["test"]["stop"] = "futile".into();
        self.rows.push(Sample::forged(
            "shown-after-futility",
            "Every test had stopped as futile, and more labels were shown.",
            &world,
            Some((self.story.at("shown-3"), "sealing")),
        ));
        self.edited(
            "crossed-otherwise",
            "P8 says of its test something else than the looks.",
            "c8",
            |data| data["evidence"]["p8"]["sequential"]["p"] = 0.001.into(),
            "predicate",
        );
    }
}
