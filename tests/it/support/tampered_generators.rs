//! Samples around generators that are tuned under a frozen judge.

use serde_json::Value;

use super::forger::World;
use super::tampered::Sample;
use super::tuned;

pub fn all() -> Vec<Sample> {
    let story = tuned::story();
    let good = Sample::forged(
        "good-generator",
        "Nothing. A policy was tuned under the judge that runs: once without a gain, and rolled back; once with one.",
        &World::of(&story.lines),
        None,
    );
    let mut rows = vec![good];
    let mut edited = |name, done, at: &str, edit: &dyn Fn(&mut Value)| {
        let mut world = World::of(&story.lines);
        edit(&mut world.items[story.at(at)].body);
        let first = Some((story.at(at), "generator"));
        rows.push(Sample::forged(name, done, &world, first));
    };
    edited(
        "generator-froze-another",
        "A run froze a judge that does not run.",
        "tune-1",
        &|body| body["data"]["deployment"] = "7".repeat(64).into(),
    );
    edited(
        "generator-asked-too-often",
        "A run asked more than it said it would.",
        "asked",
        &|body| body["data"]["step"] = 2.into(),
    );
    edited(
        "generator-on-old-labels",
        "A run was validated on labels that were there before it.",
        "better",
        &|body| body["data"]["design"] = "early".into(),
    );
    edited(
        "generator-said-to-gain",
        "A run is said to have gained where its lower bound says nothing of the kind.",
        "no-gain",
        &|body| {
            body["data"]["verdicts"]["gain"] = "pass".into();
            body["data"]["verdict"] = "pass".into();
        },
    );
    edited(
        "generator-restored-another",
        "A rollback restores another policy than the one that answered before.",
        "back",
        &|body| body["data"]["restored"] = "tuned".into(),
    );
    rows
}
