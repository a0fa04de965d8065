//! Samples around rulebook 26: what the holder of one key could say of runs of optimizers and of models, and no rule held.

use serde_json::Value;

use super::decided;
use super::forger::World;
use super::iterated;
use super::planned;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_runs;
use super::tampered_synths;
use super::tampered_synths::CITES;
use super::tampered_synths::CONCISE;
use super::tampered_undone::sample;

/// What was done under a rulebook: the history, and the position of the event that is in doubt.
type Told = (World, usize);

/// A history under rulebook 26, by the rule that it breaks.
struct Case {
    name: &'static str,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: &'static str,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "dev-calls-of-a-plan-had-twice", rule: "predicate",
           told: |book| { let mut tale = reopened(book); let at = tale.call(CITES); again(&mut tale.world, at) },
           done: "The dev calls of a plan were made, and its iteration was closed and opened anew to make as many again." },
    Case { name: "run-with-dev-calls-of-a-plan-had-twice", rule: "synth",
           told: |book| {
               let mut tale = reopened(book);
               tale.world.say(BEN, "card.published", 1, EXPERIMENT.into(), card());
               let at = tale.opened(|data| { data["dev_calls"] = 1.into(); data["iteration"] = "it-5".into(); });
               (tale.world, at)
           },
           done: "The dev calls of a plan were made, and an optimizer was run with as many again in another iteration of it." },
    Case { name: "sealed-beside-an-open-run", rule: "sealing", told: sealed,
           done: "Candidates were sealed while a run of an optimizer was open, so that nobody could say how it ended." },
    Case { name: "patch-of-a-run-by-another-model", rule: "synth",
           told: |book| {
               let mut tale = told(book);
               tale.tried();
               let at = tale.proposed(CONCISE, |data| data["model"] = "m-9".into());
               (tale.world, at)
           },
           done: "A patch came of a run, and is said to be by another model than the run's." },
    Case { name: "program-under-the-name-of-the-search", rule: "synth",
           told: |book| { let mut tale = told(book); let at = tale.opened(|data| data["model"] = "Cards/1 ".into()); (tale.world, at) },
           done: "A program of somebody's own was run under the name of the search that this program has." },
];

/// Histories of runs of judges behind HTTP.
#[rustfmt::skip]
const RUNS: &[Case] = &[
    Case { name: "texts-under-a-second-key", rule: "ask",
           told: |book| {
               let mut tale = asked(book);
               let first = tale.call(1, "unparsed", |_| ());
               tale.missed(first);
               let at = tale.call(2, "answered", |data| data["texts"]["a_hash"] = "3d".repeat(32).into());
               (tale.world, at)
           },
           done: "An answer could not be read, and the same texts were asked about again under another key." },
    Case { name: "key-of-other-texts", rule: "ask",
           told: |book| {
               let mut tale = asked(book);
               tale.resumed();
               tale.held("run-1/1/0", 3_000, 3);
               let at = tale.call(1, "answered", |data| {
                   data["epoch"] = 1.into();
                   data["hold"] = "run-1/1/0".into();
                   data["nth"] = 1.into();
                   data["texts"]["a_hash"] = "09".repeat(32).into();
               });
               (tale.world, at)
           },
           done: "An ask was lost, and another text was asked about under its key." },
    Case { name: "hold-below-its-bounds", rule: "hold",
           told: |book| {
               let mut tale = ready(book);
               tale.opened("run-1", |_| ());
               tale.held("run-1/0/0", 1, 3);
               let at = tale.call(1, "answered", |_| ());
               (tale.world, at)
           },
           done: "One millionth of a dollar was held for three asks, of which one alone may cost a thousand." },
    Case { name: "scored-with-another-text", rule: "source",
           told: |book| {
               let mut tale = asked(book);
               let first = tale.call(1, "unparsed", |_| ());
               let missed = tale.missed(first);
               let second = tale.call(2, "answered", |_| ());
               let at = tale.score(second, |_| ());
               same_row(&mut tale.world, missed, at);
               (tale.world, at)
           },
           done: "A row was missed, and then scored with another text." },
    Case { name: "missed-with-another-text", rule: "source",
           told: |book| {
               let mut tale = asked(book);
               let first = tale.call(1, "exhausted", |_| ());
               let missed = tale.missed(first);
               let second = tale.call(2, "exhausted", |_| ());
               let at = tale.missed(second);
               same_row(&mut tale.world, missed, at);
               tale.world.items[at].body["data"]["nth"] = 1.into();
               (tale.world, at)
           },
           done: "A row was missed, and missed again with another text." },
];

/// A judge behind HTTP under a rulebook, of which each ask is about a response of its own.
fn ready(rulebook: u64) -> tampered_runs::Tale {
    let mut tale = tampered_runs::Tale::new();
    adopt(&mut tale.world, rulebook);
    tale.is_apart = true;
    tale
}

/// A run of it is open, and holds for three asks.
fn asked(rulebook: u64) -> tampered_runs::Tale {
    let mut tale = ready(rulebook);
    tale.begun();
    tale
}

/// What stands at the second place is about the row of the first.
fn same_row(world: &mut World, first: usize, second: usize) {
    for name in ["draw", "item", "policy"] {
        world.items[second].body["data"][name] = world.items[first].body["data"][name].clone();
    }
}

/// What is fine under rulebook 26: two asks that were lost and asked again, and a row that was missed and is scored later.
fn good(rulebook: u64) -> World {
    let mut tale = asked(rulebook);
    tale.resumed();
    tale.held("run-1/1/0", 3_000, 3);
    let again: fn(&mut Value) = |data| {
        data["epoch"] = 1.into();
        data["hold"] = "run-1/1/0".into();
        data["nth"] = 1.into();
    };
    let first = tale.call(1, "answered", again);
    tale.score(first, |_| ());
    let second = tale.call(2, "exhausted", again);
    let missed = tale.missed(second);
    let third = tale.call(3, "unparsed", again);
    tale.missed(third);
    tale.settled("run-1/1/0", 780, 0);
    let outcomes = [
        ("answered", 1),
        ("exhausted", 1),
        ("lost", 3),
        ("unparsed", 1),
    ];
    let closed = tale.closed("completed", &outcomes, 3_780, 0);
    tale.world.items[closed].body["data"]["settled_usd_micro"] = 3_780.into();
    tale.opened("run-2", |data| data["asks"] = 1.into());
    let held = tale.held("run-2/0/0", 1_000, 1);
    tale.world.items[held].body["data"]["run"] = "run-2".into();
    let fourth = tale.call(2, "answered", |data| {
        data["hold"] = "run-2/0/0".into();
        data["nth"] = 2.into();
        data["run"] = "run-2".into();
    });
    let at = tale.score(fourth, |_| ());
    same_row(&mut tale.world, missed, at);
    tale.world
}

/// An iteration with cards, under a rulebook.
fn told(rulebook: u64) -> tampered_synths::Tale {
    let mut tale = tampered_synths::Tale::new();
    adopt(&mut tale.world, rulebook);
    tale
}

fn inside(iteration: &str, payload: &clover::event::Payload) -> Value {
    serde_json::to_value(decided::of(payload, iteration)).unwrap()
}

/// The card of the story, in the iteration that was opened anew.
fn card() -> Value {
    let mut data = inside("it-5", &decided::card_under(&serde_json::json!([])));
    data["card"]["basis"]["iteration"] = "it-5".into();
    data["public_digest"] = decided::public_digest(&data["card"]).to_hex().into();
    data
}

/// The plan has one dev call, which was made; then the iteration was closed, and another is open under the plan.
fn reopened(rulebook: u64) -> tampered_synths::Tale {
    let mut tale = told(rulebook);
    let mut plan = iterated::plan(EXPERIMENT, "m-it");
    plan["iteration"]["design"]["dev_calls_max"] = 1.into();
    for item in &mut tale.world.items {
        let payload = match item.body["kind"].as_str() {
            Some("manifest.registered") => planned::registered(&plan),
            Some("iteration.opened") => iterated::opened(&plan, decided::IT, "2026Q3"),
            _ => continue,
        };
        item.body["data"] = serde_json::to_value(payload).unwrap();
    }
    tale.call(CONCISE);
    let closed = iterated::closed(decided::IT, "stopped");
    tale.world.say(
        BEN,
        "iteration.closed",
        1,
        EXPERIMENT.into(),
        serde_json::to_value(closed).unwrap(),
    );
    let opened = iterated::opened(&plan, "it-5", "2026Q3");
    tale.world.say(
        BEN,
        "iteration.opened",
        1,
        EXPERIMENT.into(),
        serde_json::to_value(opened).unwrap(),
    );
    for of in [decided::audited(), decided::classified()] {
        let data = inside("it-5", &of);
        tale.world
            .say(BEN, of.kind().as_str(), 1, EXPERIMENT.into(), data);
    }
    tale
}

/// The last step, in the iteration that was opened anew.
fn again(world: &mut World, at: usize) -> Told {
    world.items[at].body["data"]["iteration"] = "it-5".into();
    (world.clone(), at)
}

/// A run is open where patches are sealed that passed on dev.
fn sealed(rulebook: u64) -> Told {
    let story = decided::story();
    let mut tale = tampered_synths::Tale {
        world: World::of(&story.lines[..story.at("sealed")]),
    };
    adopt(&mut tale.world, rulebook);
    tale.opened(|_| ());
    let at = story.at("sealed");
    let sealing = World::of(&story.lines[at..=at]).items.remove(0).body["data"].clone();
    let at = tale
        .world
        .say(BEN, "candidates.sealed", 1, EXPERIMENT.into(), sealing);
    (tale.world, at)
}

/// The same under an older rulebook, which did not ask.
pub fn unasked() -> Vec<Sample> {
    let all = CASES.iter().chain(RUNS);
    let all = all.map(|case| sample(case.name, case.done, &(case.told)(25).0, None));
    all.collect()
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let all = CASES.iter().chain(RUNS).map(|case| {
        let (world, at) = (case.told)(26);
        sample(case.name, case.done, &world, Some((at, case.rule)))
    });
    let mut rows: Vec<Sample> = all.collect();
    let done = "Nothing. Asks of a judge behind HTTP were lost and asked again under their keys, and a row that was missed has a score since.";
    rows.push(sample("good-run-asked-once", done, &good(26), None));
    rows
}
