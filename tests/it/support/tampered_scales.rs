//! Samples around rulebooks 23 and 24: scales of labels and of scores, and what is said of judges and batteries.

use serde_json::Value;
use serde_json::json;

use super::decided;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_undone::sample;
use super::valued;

/// What was done under a rulebook: the history, and the position of the last event.
type Told = (World, usize);

/// A history under a rulebook, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    /// The name under the rulebook that did not ask, where the history comes twice.
    unasked: Option<&'static str>,
    done: &'static str,
    told: fn(u64) -> Told,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "label-off-its-scale", unasked: Some("label-off-its-scale-unasked"), rule: Some("design"),
           told: |book| labels(book, &[Said::Scale(1, 5), Said::Value(7)]),
           done: "Labels go from 1 to 5 by what their labeler declared, and one of 7 was recorded." },
    Case { name: "label-scale-beside-its-labels", unasked: None, rule: Some("design"),
           told: |book| labels(book, &[Said::Value(7), Said::Scale(1, 5)]),
           done: "A label of 7 was recorded, and then a scale from 1 to 5 was declared." },
    Case { name: "label-scale-of-no-width", unasked: None, rule: Some("design"),
           told: |book| labels(book, &[Said::Scale(5, 5)]),
           done: "A scale of labels was declared whose ends are the same." },
    Case { name: "label-scale-after-sealing", unasked: None, rule: Some("design"),
           told: |book| {
               let mut world = World::of(&good().lines);
               adopt(&mut world, book);
               let at = label_scale(&mut world, ARENA.into(), 0, 5);
               (world, at)
           },
           done: "Labels were sealed, and then their scale was declared: whoever declares it chooses what they mean." },
    Case { name: "score-off-its-scale", unasked: Some("score-off-its-scale-unasked"), rule: Some("judge"),
           told: |book| scores(book, &[Said::Scale(0, 100), Said::Value(250)]),
           done: "Scores of a judge go from 0 to 100 by what was declared, and one of 250 was recorded." },
    Case { name: "score-scale-after-scores", unasked: Some("score-scale-after-scores-unasked"), rule: Some("judge"),
           told: |book| scores(book, &[Said::Value(1), Said::Scale(0, 100)]),
           done: "A judge scored from 0 to 1, and then its scale was declared to go from 0 to 100: two scales are mixed." },
    Case { name: "judges-compared-for-the-worse", unasked: None, rule: Some("judge"),
           told: |book| compared(book, |data| data["better"] = "judge-7".into()),
           done: "A comparison of two judges calls the one better that errs more by its own interval." },
    Case { name: "good-judges-compared-by-a-section", unasked: None, rule: None,
           told: |book| by_section(book, &[("judge-8", "judge-7"), ("judge-7", "judge-9")], |data| data["plan"]["comparisons"] = 2.into()),
           done: "Nothing. A plan of template compare names two pairs of judges, and a comparison of one says so." },
    Case { name: "judges-compared-as-if-alone", unasked: None, rule: Some("judge"),
           told: |book| by_section(book, &[("judge-7", "judge-8"), ("judge-7", "judge-9")], |_| ()),
           done: "A plan of template compare names two pairs of judges, and a comparison of one says that the plan names no other." },
    Case { name: "judges-compared-beside-a-section", unasked: None, rule: Some("judge"),
           told: |book| by_section(book, &[("judge-7", "judge-9")], |_| ()),
           done: "A plan of template compare names a pair of judges, and another pair is compared as if it were that one." },
    Case { name: "judges-planned-twice", unasked: None, rule: Some("manifest"),
           told: |book| section(book, &[("judge-7", "judge-8"), ("judge-8", "judge-7")]),
           done: "A plan of template compare names a pair of judges twice." },
    Case { name: "judges-compared-by-no-plan", unasked: None, rule: Some("judge"),
           told: |book| compared(book, |data| data["plan"] = json!({"comparisons": 1, "manifest": "nowhere"})),
           done: "A comparison of two judges rests on a plan that nobody registered." },
    Case { name: "battery-without-answers", unasked: None, rule: Some("battery"),
           told: attacked,
           done: "A program was attacked by a battery, and what it answered was not kept: nobody can compute its numbers again." },
    Case { name: "good-scales", unasked: None, rule: None,
           told: |book| {
               let mut world = new_experiment(book);
               label_scale(&mut world, EXP.into(), 1, 5);
               label(&mut world, 0, 4);
               score_scale(&mut world, 0, 100);
               let at = score(&mut world, 0, 88);
               (world, at)
           },
           done: "Nothing. Scales of labels and scores were declared, and a label and a score lie on them." },
];

/// An experiment of its own, in which nothing was said before.
const EXP: &str = "scales";

enum Said {
    Scale(i64, i64),
    Value(i64),
}

fn micro(value: i64) -> Value {
    (value * 1_000_000).into()
}

fn new_experiment(rulebook: u64) -> World {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    let data = json!({"purpose": "scales", "title": "Scales"});
    world.say(ADA, "experiment.registered", 1, EXP.into(), data);
    world
}

fn label_scale(world: &mut World, experiment: Value, low: i64, high: i64) -> usize {
    let data = json!({"high_micro": micro(high), "low_micro": micro(low)});
    world.say(LENA, "label.scale_declared", 1, experiment, data)
}

fn label(world: &mut World, draw: usize, value: i64) -> usize {
    let data = json!({
        "design": "by-hand", "draw": draw, "item": "item-1", "policy": "base", "purpose": "calibrate", "rater": "Lena",
        "value_micro": micro(value),
    });
    world.say(LENA, "label.recorded", 1, EXP.into(), data)
}

fn score_scale(world: &mut World, low: i64, high: i64) -> usize {
    let data = json!({"high_micro": micro(high), "judge": "judge-7", "low_micro": micro(low)});
    world.say(RUNNER_3, "score.scale_declared", 1, EXP.into(), data)
}

fn score(world: &mut World, draw: usize, value: i64) -> usize {
    let data = json!({
        "draw": draw, "item": "item-1", "judge": "judge-7", "policy": "base", "score_micro": micro(value),
    });
    world.say(RUNNER_3, "score.recorded", 1, EXP.into(), data)
}

/// Two judges that were compared on rows that both scored, of which the second errs less.
fn compared(rulebook: u64, change: fn(&mut Value)) -> Told {
    let mut world = new_experiment(rulebook);
    for judge in ["judge-7", "judge-8"] {
        let data = json!({
            "draw": 0, "item": "item-1", "judge": judge, "policy": "base", "score_micro": 500_000,
        });
        world.say(RUNNER_3, "score.recorded", 1, EXP.into(), data);
    }
    let mut data = valued::judges_compared();
    data.as_object_mut().unwrap().remove("plan");
    data["first"] = "judge-7".into();
    data["second"] = "judge-8".into();
    data["better"] = "judge-8".into();
    change(&mut data);
    let at = world.say(ARBITER, "judge.compared", 1, EXP.into(), data);
    (world, at)
}

/// Two judges that a plan named before the first label, compared on 100 rows; `late` is scored once a label could be read.
fn planned_pair(rulebook: u64, late: Option<&str>, change: fn(&mut Value)) -> Told {
    let (mut world, newest) = planned_labels(rulebook, late);
    let at = pair(&mut world, newest, change);
    (world, at)
}

/// The same, where the key that labelled was compromised before.
pub fn tainted_pair(rulebook: u64) -> Told {
    let (mut world, newest) = planned_labels(rulebook, None);
    let data = json!({
        "key_id": signer(LENA).id().to_string(), "reason": "somebody else signed", "since_seq": newest,
    });
    world.say(ADA, "key.compromised", 1, Value::Null, data);
    let at = pair(&mut world, newest, |_| ());
    (world, at)
}

/// A plan that names two judges, their scores and a label, with the position of the newest of them.
fn planned_labels(rulebook: u64, late: Option<&str>) -> Told {
    let mut plan = planned::audits(EXP, "judges");
    let digest = "0".repeat(64);
    plan["analysis"] = json!({
        "code_digest": digest, "env_digest": digest, "exploratory_allowed": true,
        "secondary": ["judge compare judge-7 judge-8"],
    });
    labels_under(rulebook, &plan, late)
}

/// A plan of template compare that names these pairs of judges.
fn plan_of_pairs(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs.iter();
    let pairs: Vec<Value> = pairs
        .map(|(first, second)| json!({"first": first, "second": second}))
        .collect();
    json!({
        "compare": {"pairs": pairs}, "experiment": EXP,
        "hypothesis": {"claim": "one judge errs less", "kind": "measure"},
        "manifest": "judges", "template": "compare", "title": "Judges", "version": 1,
    })
}

/// A comparison under a plan with section `compare`.
fn by_section(rulebook: u64, pairs: &[(&str, &str)], change: fn(&mut Value)) -> Told {
    let (mut world, newest) = labels_under(rulebook, &plan_of_pairs(pairs), None);
    let at = pair(&mut world, newest, change);
    (world, at)
}

/// A plan with section `compare` that is registered.
fn section(rulebook: u64, pairs: &[(&str, &str)]) -> Told {
    let mut world = new_experiment(rulebook);
    let said = serde_json::to_value(planned::registered(&plan_of_pairs(pairs))).unwrap();
    let at = world.say(ADA, "manifest.registered", 1, EXP.into(), said);
    (world, at)
}

fn labels_under(rulebook: u64, plan: &Value, late: Option<&str>) -> Told {
    let mut world = new_experiment(rulebook);
    let said = serde_json::to_value(planned::registered(plan)).unwrap();
    world.say(ADA, "manifest.registered", 1, EXP.into(), said);
    let scored = |world: &mut World, judge: &str, draw: usize| {
        let data = json!({
            "draw": draw, "item": "item-1", "judge": judge, "policy": "base", "score_micro": 500_000,
        });
        world.say(RUNNER_3, "score.recorded", 1, EXP.into(), data)
    };
    for judge in ["judge-7", "judge-8"] {
        scored(&mut world, judge, 0);
    }
    let mut newest = label(&mut world, 0, 1);
    if let Some(judge) = late {
        newest = scored(&mut world, judge, 1);
    }
    (world, newest)
}

/// The comparison of these judges.
fn pair(world: &mut World, newest: usize, change: fn(&mut Value)) -> usize {
    let mut data = valued::judges_compared();
    for (field, value) in [
        ("through_seq", newest.into()),
        ("first", "judge-7".into()),
        ("second", "judge-8".into()),
        ("better", "judge-8".into()),
        ("plan", json!({"comparisons": 1, "manifest": "judges"})),
        ("unpaired", 0.into()),
        (
            "doubts",
            json!({"chosen": 0, "late": 0, "unscored": 0, "worst": 0.0}),
        ),
    ] {
        data[field] = value;
    }
    change(&mut data);
    world.say(ARBITER, "judge.compared", 1, EXP.into(), data)
}

/// What a planned comparison of judges may not claim, from rulebook 24 on.
fn doubted() -> Vec<Sample> {
    let unpaired: fn(&mut Value) = |data| {
        data["unpaired"] = 5.into();
        data["doubts"]["worst"] = 0.05.into();
    };
    let sample = |name, done, (world, at): Told| sample(name, done, &world, Some((at, "judge")));
    vec![
        sample(
            "judges-compared-with-scores-missing",
            "Of 105 labelled rows five have a score of one judge alone, and a planned comparison names the better judge though their worst scores would change that.",
            planned_pair(24, None, unpaired),
        ),
        self::sample(
            "judges-compared-with-scores-missing-unasked",
            "The same under an older rulebook, which did not ask: the verdict says so.",
            &planned_pair(23, None, unpaired).0,
            None,
        ),
        sample(
            "judges-compared-with-doubts-made-light",
            "Of 105 labelled rows five have a score of one judge alone, and a planned comparison says that they could change nothing.",
            planned_pair(24, None, |data| data["unpaired"] = 5.into()),
        ),
        sample(
            "judges-compared-with-late-scores-left-unsaid",
            "A judge scored a row once a label could be read, and a comparison says that it scored every row before.",
            planned_pair(24, Some("judge-8"), |_| ()),
        ),
        sample(
            "judges-compared-among-chosen-labels",
            "More rows of a policy are labelled than a design draws, and a planned comparison names the better judge all the same.",
            planned_pair(24, None, |data| data["doubts"]["chosen"] = 1.into()),
        ),
        sample(
            "judges-compared-without-doubts",
            "A planned comparison names the better judge and says nothing of late and missing scores.",
            planned_pair(24, None, |data| {
                data.as_object_mut().unwrap().remove("doubts");
            }),
        ),
    ]
}

/// The battery of a story whose judge is a program.
fn attacked(rulebook: u64) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items[story.at("judge")].body["data"]["port"] = "command".into();
    world.items.truncate(story.at("battery-a"));
    adopt(&mut world, rulebook);
    let at = again(&mut world, &story, "battery-a", |_| ());
    (world, at)
}

/// Labels of an experiment of their own, in the order said.
fn labels(rulebook: u64, all: &[Said]) -> Told {
    let mut world = new_experiment(rulebook);
    let mut at = 0;
    for (draw, said) in all.iter().enumerate() {
        at = match said {
            Said::Scale(low, high) => label_scale(&mut world, EXP.into(), *low, *high),
            Said::Value(value) => label(&mut world, draw, *value),
        };
    }
    (world, at)
}

/// Scores of a judge in an experiment of their own, in the order said.
fn scores(rulebook: u64, all: &[Said]) -> Told {
    let mut world = new_experiment(rulebook);
    let mut at = 0;
    for (draw, said) in all.iter().enumerate() {
        at = match said {
            Said::Scale(low, high) => score_scale(&mut world, *low, *high),
            Said::Value(value) => score(&mut world, draw, *value),
        };
    }
    (world, at)
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = doubted();
    for case in CASES {
        let (world, at) = (case.told)(23);
        let first = case.rule.map(|rule| (at, rule));
        rows.push(sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            rows.push(sample(name, done, &(case.told)(22).0, None));
        }
    }
    rows
}
