//! Samples around rulebooks, and around evidence that somebody could choose: what rulebook 18 asks and 17 did not.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::ADA;
use super::samples::good;
use super::tampered::Sample;

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    rulebooks()
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
    let story = good();
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
