//! Samples around a sequential confirm test.

use super::sequenced;
use super::tampered::Sample;
use super::tampered_table::Table;

pub fn all() -> Vec<Sample> {
    let mut table = Table::of(sequenced::story());
    table.shown_otherwise();
    table.looked_otherwise();
    table.rows
}

impl Table {
    fn shown_otherwise(&mut self) {
        let world = self.world();
        self.push(
            "good-sequence",
            "Nothing. Confirm labels were shown in order, a test crossed at the second look, and the patch was accepted.",
            &world,
            None,
        );
        let mut world = self.world();
        let (first, second) = (self.story.at("shown-1"), self.story.at("shown-2"));
        let one = world.items[first].body["data"].clone();
        world.items[first].body["data"] = world.items[second].body["data"].clone();
        world.items[second].body["data"] = one;
        self.push(
            "shown-out-of-order",
            "Two confirm labels were shown in another order than the checkpoint draws.",
            &world,
            Some((second, "sealing")),
        );
        let mut world = self.world();
        world.remove(self.story.at("look-1"));
        let at = self.story.at("shown-3") - 1;
        self.push(
            "look-left-out",
            "A third cluster's label was shown, and nobody had looked at the first two.",
            &world,
            Some((at, "sealing")),
        );
        let mut world = self.world();
        let last = self.story.at("c4") - 1;
        world.remove(last);
        self.push(
            "judged-on-a-part",
            "Gates on confirm were evaluated while a label of the block was still sealed.",
            &world,
            Some((last, "predicate")),
        );
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
        let mut world = self.world();
        let look = &mut world.items[self.story.at("look-1")].body["data"];
        look["hypotheses"][0]["test"]["stop"] = "futile".into();
        self.push(
            "shown-after-futility",
            "Every test had stopped as futile, and more labels were shown.",
            &world,
            Some((self.story.at("shown-3"), "sealing")),
        );
        self.edited(
            "crossed-otherwise",
            "P8 says of its test something else than the looks.",
            "c8",
            |data| data["evidence"]["p8"]["sequential"]["p"] = 0.001.into(),
            "predicate",
        );
    }
}
