//! Samples around looks at an order: who compares policies once their order was seen, and says that nobody saw it.

use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::computed_telling;
use super::forger::World;
use super::planned;
use super::samples::ADA;
use super::samples::ARBITER;
use super::samples::ARENA;
use super::samples::LENA;
use super::samples::RUNNER_3;
use super::samples::good;
use super::tampered::Sample;
use super::tampered_chosen;
use super::tampered_names;
use super::tampered_prompts;
use super::valued;

/// Prompts that each policy has scores of.
const PROMPTS: u64 = 10;
/// Prompts that each policy of a plan has scores of, as few as a calibrator of its labels takes.
const PLANNED_PROMPTS: u64 = 24;
/// Labels of a planned order before the first look at it, fewer by one than the plan asks for.
const LABELS_BEFORE: u64 = 20;
/// Another experiment, with the same rows.
const TRIAL: &str = "trial";
/// An experiment whose plan names an order from 21 labels on.
const PLANNED: &str = "planned";
/// Another with such a plan, and the same rows.
const PLANNED_TOO: &str = "planned-too";

/// A history under a rulebook, with its last comparison and what that says of earlier looks: the entry that it names.
type Told = (World, usize);

fn scored(world: &mut World, experiment: &str, judge: &str, policies: &[&str]) {
    for policy in policies {
        for at in 0..PROMPTS {
            let score = json!({
                "draw": 0, "item": format!("seen-{at}"), "judge": judge, "policy": policy, "score_micro": 500_000,
            });
            world.say(RUNNER_3, "score.recorded", 1, experiment.into(), score);
        }
    }
}

fn begun(rulebook: u64) -> World {
    let mut world = World::of(&good().lines);
    tampered_chosen::adopt(&mut world, rulebook);
    scored(&mut world, ARENA, "judge-1", &["other", "third", "tuned"]);
    world
}

/// The newest score or label of an experiment.
fn newest(world: &World, experiment: &str) -> usize {
    let is_read = |kind: &Value| kind == "score.recorded" || kind == "label.recorded";
    let newest = world
        .items
        .iter()
        .rposition(|item| is_read(&item.body["kind"]) && item.body["experiment"] == experiment);
    newest.unwrap()
}

/// A comparison of two policies with labels of their own, by all that is on record.
fn compared(
    world: &mut World,
    (experiment, judge): (&str, &str),
    family: &[&str],
    since: Option<usize>,
) -> usize {
    let mut data = tampered_prompts::apart();
    data["through_seq"] = newest(world, experiment).into();
    data["terms"]["judge"] = judge.into();
    data["prompts"]["both"] = PROMPTS.into();
    data["family"] = json!(family);
    if let Some(since) = since {
        data["exploratory_since"] = since.into();
    }
    if !matches!(experiment, PLANNED | PLANNED_TOO) {
        return world.say(ARBITER, "contrast.recorded", 1, experiment.into(), data);
    }
    data["terms"]["covariates"] = json!([]);
    data["terms"]["labels"] = "representative".into();
    data["terms"].as_object_mut().unwrap().remove("label_scale");
    let mut fitted = valued::fitted(5, 0);
    fitted["labels_by_policy"][0]["prompts"] = 1.into();
    for field in ["terms", "through_seq"] {
        fitted[field] = data[field].clone();
    }
    computed(world, experiment, "calibrator.fitted", fitted);
    computed(world, experiment, "contrast.recorded", data)
}

/// An event with the numbers that follow from the events before it.
fn computed(world: &mut World, experiment: &str, kind: &str, data: Value) -> usize {
    let at = world.say(ARBITER, kind, 1, experiment.into(), data);
    world.items[at].body["data"] = computed_telling::recomputed(world, at);
    at
}

/// A value of a policy with labels of its own, of the rows of this root.
fn estimated(world: &mut World, policy: &str, root: &Value) -> usize {
    estimated_in(world, (ARENA, "judge-1"), policy, root)
}

/// The same in any experiment, by any judge.
fn estimated_in(
    world: &mut World,
    (experiment, judge): (&str, &str),
    policy: &str,
    root: &Value,
) -> usize {
    let mut data = valued::estimate(5, None);
    let newest = newest(world, experiment);
    data.as_object_mut().unwrap().remove("calibrator");
    for (field, value) in [
        ("policy", policy.into()),
        ("through_seq", newest.into()),
        ("late", 0.into()),
        ("off_mode", 10.into()),
        ("rows", PROMPTS.into()),
        ("rows_root", root.clone()),
    ] {
        data[field] = value;
    }
    data["terms"] = tampered_prompts::apart()["terms"].clone();
    data["terms"]["judge"] = judge.into();
    world.say(ARBITER, "estimate.recorded", 1, experiment.into(), data)
}

const PAIR: [&str; 2] = ["other", "tuned"];

/// Compared by one judge, then by another.
fn by_two_judges(rulebook: u64, says: bool) -> Told {
    let mut world = begun(rulebook);
    let first = compared(&mut world, (ARENA, "judge-1"), &PAIR, None);
    scored(&mut world, ARENA, "judge-2", &PAIR);
    let since = says.then_some(first);
    let at = compared(&mut world, (ARENA, "judge-2"), &PAIR, since);
    (world, at)
}

/// Two that ran at once: each was computed before the other was on record.
fn at_once(rulebook: u64, says: bool) -> Told {
    let mut world = begun(rulebook);
    let first = compared(
        &mut world,
        (ARENA, "judge-1"),
        &["other", "third", "tuned"],
        None,
    );
    scored(&mut world, ARENA, "judge-2", &["third"]);
    let since = says.then_some(first);
    let at = compared(&mut world, (ARENA, "judge-1"), &PAIR, since);
    (world, at)
}

/// Values were seen, of other rows or labels, then an order was compared.
fn after_values(rulebook: u64, says: bool) -> Told {
    let mut world = begun(rulebook);
    let said = tampered_prompts::apart();
    estimated(&mut world, "other", &said["second_root"]);
    let second = estimated(&mut world, "tuned", &said["second_root"]);
    let since = says.then_some(second);
    let at = compared(&mut world, (ARENA, "judge-1"), &PAIR, since);
    (world, at)
}

/// Values were seen of the same rows and labels, of a part of the family; and a part of it was compared first.
fn after_its_own_values(rulebook: u64, since: Option<usize>) -> Told {
    let mut world = begun(rulebook);
    let said = tampered_prompts::apart();
    estimated(&mut world, "other", &said["first_root"]);
    estimated(&mut world, "tuned", &said["second_root"]);
    compared(&mut world, (ARENA, "judge-1"), &PAIR, None);
    scored(&mut world, ARENA, "judge-2", &["third"]);
    let at = compared(
        &mut world,
        (ARENA, "judge-1"),
        &["other", "third", "tuned"],
        since,
    );
    (world, at)
}

/// Compared in another experiment with the same rows, or with others.
fn elsewhere(rulebook: u64, policies: &[&str], says: bool) -> Told {
    let mut world = begun(rulebook);
    let registered = serde_json::to_value(planned::experiment_registered()).unwrap();
    world.say(ADA, "experiment.registered", 1, TRIAL.into(), registered);
    scored(&mut world, TRIAL, "judge-3", policies);
    let first = compared(&mut world, (TRIAL, "judge-3"), &PAIR, None);
    let since = says.then_some(first);
    let at = compared(&mut world, (ARENA, "judge-1"), &PAIR, since);
    (world, at)
}

/// A value of one policy was seen in another experiment with the same rows, then an order was compared.
fn after_a_value_elsewhere(rulebook: u64, says: bool) -> Told {
    let mut world = begun(rulebook);
    let registered = serde_json::to_value(planned::experiment_registered()).unwrap();
    world.say(ADA, "experiment.registered", 1, TRIAL.into(), registered);
    scored(&mut world, TRIAL, "judge-3", &["other"]);
    let root = tampered_prompts::apart()["first_root"].clone();
    let look = estimated_in(&mut world, (TRIAL, "judge-3"), "other", &root);
    let at = compared(&mut world, (ARENA, "judge-1"), &PAIR, says.then_some(look));
    (world, at)
}

/// A label for calibration in the experiment with a plan.
fn labelled(world: &mut World, at: u64) {
    labelled_by(world, (PLANNED, at), "other", "Lena");
}

fn labelled_by(world: &mut World, (experiment, at): (&str, u64), policy: &str, rater: &str) {
    let data = json!({
        "design": "by-hand", "draw": 0, "item": format!("seen-{at}"), "policy": policy, "purpose": "calibrate",
        "rater": rater, "value_micro": value(policy, "a person", at),
    });
    world.say(LENA, "label.recorded", 1, experiment.into(), data);
}

/// What somebody makes of a row of an experiment with a plan, from 0 to 1 in millionths: rows differ, and people and judges
/// differ little about a row.
fn value(policy: &str, who: &str, at: u64) -> u64 {
    let row = 38_000 * (at % PLANNED_PROMPTS);
    let better = if policy == "tuned" { 50_000 } else { 0 };
    let own = Digest::labelled(who, format!("{policy} {at}").as_bytes());
    row + better + 200 * u64::from(own.0[0])
}

/// Scores by a judge of an experiment with a plan.
fn scored_by_plan(world: &mut World, experiment: &str, judge: &str) {
    for policy in PAIR {
        for at in 0..PLANNED_PROMPTS {
            let score = json!({
                "draw": 0, "item": format!("seen-{at}"), "judge": judge, "policy": policy,
                "score_micro": value(policy, judge, at),
            });
            world.say(RUNNER_3, "score.recorded", 1, experiment.into(), score);
        }
    }
}

/// An experiment with a plan that names an order, its scores by two judges, and a label; with the entry of the plan.
fn planned(rulebook: u64) -> Told {
    let mut world = World::of(&good().lines);
    tampered_chosen::adopt(&mut world, rulebook);
    let at = plan_in(&mut world, PLANNED);
    (world, at)
}

/// Such an experiment more.
fn plan_in(world: &mut World, experiment: &str) -> usize {
    let registered = serde_json::to_value(planned::experiment_registered()).unwrap();
    world.say(
        ADA,
        "experiment.registered",
        1,
        experiment.into(),
        registered,
    );
    let name = if experiment == PLANNED {
        "an-order"
    } else {
        "an-order-too"
    };
    let mut plan = planned::audits(experiment, name);
    plan["estimates"] = json!({"order": {
        "judge": "judge-3", "labels": LABELS_BEFORE + 1, "policies": ["tuned", "other"],
    }});
    let said = serde_json::to_value(planned::registered(&plan)).unwrap();
    let at = world.say(ADA, "manifest.registered", 1, experiment.into(), said);
    for judge in ["judge-3", "judge-4"] {
        scored_by_plan(world, experiment, judge);
    }
    labelled_by(world, (experiment, 0), "other", "Lena");
    for before in 1..LABELS_BEFORE {
        let policy = PAIR[usize::from(before % 2 == 0)];
        labelled_by(world, (experiment, 2 + before), policy, "Lena");
    }
    at
}

/// An order that a plan names was seen by another judge, by fewer labels, or by as many and then more.
fn by_plan(rulebook: u64, looked: &[(&str, u64)]) -> Told {
    let (mut world, plan) = planned(rulebook);
    let mut labels = 1;
    for (judge, at) in looked {
        while labels < *at {
            labelled(&mut world, labels);
            labels += 1;
        }
        compared(&mut world, (PLANNED, judge), &PAIR, Some(plan));
    }
    while labels < 3 {
        labelled(&mut world, labels);
        labels += 1;
    }
    let at = compared(&mut world, (PLANNED, "judge-3"), &PAIR, None);
    (world, at)
}

/// The order was seen by one label, another label came in that is none of its own, and it is compared as planned; or first one
/// of its own came in too.
fn padded(rulebook: u64, (policy, at, rater): (&str, u64, &str), is_due: bool) -> Told {
    let (mut world, plan) = planned(rulebook);
    compared(&mut world, (PLANNED, "judge-3"), &PAIR, Some(plan));
    labelled_by(&mut world, (PLANNED, at), policy, rater);
    if is_due {
        compared(&mut world, (PLANNED, "judge-4"), &PAIR, Some(plan));
        labelled(&mut world, 2);
    }
    let at = compared(&mut world, (PLANNED, "judge-3"), &PAIR, None);
    (world, at)
}

/// A value of one policy was seen, of other rows, then an order was compared.
fn after_one_value(rulebook: u64, says: bool) -> Told {
    let mut world = begun(rulebook);
    let said = tampered_prompts::apart();
    let look = estimated(&mut world, "other", &said["second_root"]);
    let at = compared(&mut world, (ARENA, "judge-1"), &PAIR, says.then_some(look));
    (world, at)
}

/// Two experiments with the same rows, of which each has a plan for the order: it is compared in one, then in the other.
fn planned_twice(rulebook: u64, says: bool) -> Told {
    let (mut world, _) = planned(rulebook);
    plan_in(&mut world, PLANNED_TOO);
    labelled(&mut world, 1);
    let first = compared(&mut world, (PLANNED, "judge-3"), &PAIR, None);
    labelled_by(&mut world, (PLANNED_TOO, 1), "other", "Lena");
    let since = says.then_some(first);
    let at = compared(&mut world, (PLANNED_TOO, "judge-3"), &PAIR, since);
    (world, at)
}

/// A planned order, after values of the same rows in an experiment without a plan.
fn planned_beside_values(rulebook: u64) -> Told {
    let (mut world, _) = planned(rulebook);
    scored(&mut world, ARENA, "judge-1", &PAIR);
    let said = tampered_prompts::apart();
    estimated(&mut world, "other", &said["first_root"]);
    estimated(&mut world, "tuned", &said["second_root"]);
    labelled(&mut world, 1);
    let at = compared(&mut world, (PLANNED, "judge-3"), &PAIR, None);
    (world, at)
}

/// A comparison that no plan names, and that does not say so.
fn beside_plan(rulebook: u64) -> Told {
    let (mut world, _) = planned(rulebook);
    labelled(&mut world, 1);
    let at = compared(&mut world, (PLANNED, "judge-4"), &PAIR, None);
    (world, at)
}

struct Case {
    name: &'static str,
    /// The same under the rulebook before, which did not ask.
    unasked: Option<&'static str>,
    /// The rulebook that asks.
    rulebook: u64,
    told: fn(u64) -> Told,
    is_broken: bool,
    done: &'static str,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "order-seen-by-another-judge", unasked: Some("order-seen-by-another-judge-unasked"), is_broken: true, rulebook: 27,
           told: |book| by_two_judges(book, false),
           done: "Two policies were compared by one judge, then by another, and the second comparison names no earlier look." },
    Case { name: "good-order-by-another-judge", unasked: None, is_broken: false, rulebook: 27, told: |book| by_two_judges(book, true),
           done: "Nothing. Two policies were compared by one judge, then by another, and the second comparison names the first." },
    Case { name: "orders-compared-at-once", unasked: Some("orders-compared-at-once-unasked"), is_broken: true, rulebook: 27,
           told: |book| at_once(book, false),
           done: "Three policies were compared, then two of them as a smaller family, and the second comparison names no earlier look." },
    Case { name: "good-orders-compared-at-once", unasked: None, is_broken: false, rulebook: 27, told: |book| at_once(book, true),
           done: "Nothing. Three policies were compared, then two of them as a smaller family that names the first comparison." },
    Case { name: "order-seen-by-its-values", unasked: Some("order-seen-by-its-values-unasked"), is_broken: true, rulebook: 27,
           told: |book| after_values(book, false),
           done: "Two policies were estimated, their rows changed, they were compared, and the comparison names no earlier look." },
    Case { name: "good-order-after-other-values", unasked: None, is_broken: false, rulebook: 27, told: |book| after_values(book, true),
           done: "Nothing. Two policies were estimated, their rows changed, and a comparison names the look by values." },
    Case { name: "good-order-of-a-larger-family", unasked: None, is_broken: false, rulebook: 27, told: |book| after_its_own_values(book, None),
           done: "Nothing. Two policies were estimated and compared, then with a third one of the same rows: no look stands against that." },
    Case { name: "order-marked-for-nothing", unasked: None, is_broken: true, rulebook: 27, told: |book| after_its_own_values(book, Some(7)),
           done: "A comparison names an earlier look where there is none." },
    Case { name: "order-seen-in-another-experiment", unasked: Some("order-seen-in-another-experiment-unasked"), is_broken: true, rulebook: 27,
           told: |book| elsewhere(book, &PAIR, false),
           done: "Two policies were compared in one experiment, then by the same rows in another, which names no earlier look." },
    Case { name: "good-order-in-another-experiment", unasked: None, is_broken: false, rulebook: 27, told: |book| elsewhere(book, &PAIR, true),
           done: "Nothing. Two policies were compared in one experiment, then by the same rows in another, which names the first." },
    Case { name: "good-order-as-planned", unasked: None, is_broken: false, rulebook: 27,
           told: |book| by_plan(book, &[("judge-3", 1), ("judge-4", 1), ("judge-4", 3)]),
           done: "Nothing. A plan names an order from 21 labels on; it was seen by fewer, and by another judge, and is compared as planned." },
    Case { name: "planned-order-with-labels-added", unasked: None, is_broken: true, rulebook: 27,
           told: |book| by_plan(book, &[("judge-4", 2)]),
           done: "A plan names an order from 21 labels on; it was seen by another judge at 21, one more came in, and a comparison names no look." },
    Case { name: "planned-order-padded-by-another-policy", unasked: Some("planned-order-padded-by-another-policy-unasked"),
           is_broken: true, rulebook: 28, told: |book| padded(book, ("third", 1, "Lena"), false),
           done: "A plan names an order from 21 labels on; it was seen by 20, a row of another policy got a label, and it is compared." },
    Case { name: "planned-order-padded-by-the-same-row", unasked: Some("planned-order-padded-by-the-same-row-unasked"),
           is_broken: true, rulebook: 28, told: |book| padded(book, ("other", 0, "Bo"), false),
           done: "A plan names an order from 21 labels on; it was seen by 20, somebody else labelled that row too, and it is compared." },
    Case { name: "planned-order-padded-by-an-unscored-row", unasked: Some("planned-order-padded-by-an-unscored-row-unasked"),
           is_broken: true, rulebook: 28, told: |book| padded(book, ("other", 2 * PLANNED_PROMPTS, "Lena"), false),
           done: "A plan names an order from 21 labels on; it was seen by 20, a row without a score got a label, and it is compared." },
    Case { name: "good-planned-order-beside-other-labels", unasked: None, is_broken: false, rulebook: 28,
           told: |book| padded(book, ("third", 1, "Lena"), true),
           done: "Nothing. A plan names an order from 21 labels on; it was seen by 20 and one of another policy, then one more came in." },
    Case { name: "order-beside-its-plan", unasked: None, is_broken: true, rulebook: 27, told: beside_plan,
           done: "A plan names an order by one judge, and a comparison by another names nothing that makes it exploratory." },
    Case { name: "order-of-one-policy-planned", unasked: None, is_broken: true, rulebook: 27, told: planned_alone,
           done: "A plan names an order of one policy." },
    Case { name: "order-seen-by-one-value", unasked: Some("order-seen-by-one-value-unasked"), is_broken: true, rulebook: 28,
           told: |book| after_one_value(book, false),
           done: "One of two policies was estimated, its rows changed, both were compared, and the comparison names no earlier look." },
    Case { name: "good-order-after-one-value", unasked: None, is_broken: false, rulebook: 28,
           told: |book| after_one_value(book, true),
           done: "Nothing. One of two policies was estimated, its rows changed, and the comparison of both names that value." },
    Case { name: "order-seen-by-a-value-elsewhere", unasked: Some("order-seen-by-a-value-elsewhere-unasked"), is_broken: true,
           rulebook: 29, told: |book| after_a_value_elsewhere(book, false),
           done: "One of two policies was estimated in another experiment with its rows, and a comparison names no earlier look." },
    Case { name: "good-order-after-a-value-elsewhere", unasked: None, is_broken: false, rulebook: 29,
           told: |book| after_a_value_elsewhere(book, true),
           done: "Nothing. One of two policies was estimated in another experiment with its rows, and a comparison of both names that." },
    Case { name: "order-planned-twice", unasked: Some("order-planned-twice-unasked"), is_broken: true, rulebook: 28,
           told: |book| planned_twice(book, false),
           done: "Plans of two experiments name one order of the same rows, and it is claimed in both." },
    Case { name: "good-order-planned-twice", unasked: None, is_broken: false, rulebook: 28, told: |book| planned_twice(book, true),
           done: "Nothing. Plans of two experiments name one order of the same rows, and the second comparison names the first." },
    Case { name: "good-planned-order-beside-values", unasked: None, is_broken: false, rulebook: 28, told: planned_beside_values,
           done: "Nothing. A planned order is compared after values of the same rows in an experiment without a plan." },
];

/// A plan that names an order of one policy.
fn planned_alone(rulebook: u64) -> Told {
    let mut world = begun(rulebook);
    let mut plan = planned::audits(ARENA, "an-order");
    plan["estimates"] = json!({"order": {"judge": "judge-1", "labels": 2, "policies": ["tuned"]}});
    let said = serde_json::to_value(planned::registered(&plan)).unwrap();
    let at = world.say(ADA, "manifest.registered", 1, ARENA.into(), said);
    (world, at)
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = Vec::new();
    for case in CASES {
        let (world, at) = (case.told)(case.rulebook);
        let rule = match world.items[at].body["kind"].as_str() {
            Some("manifest.registered") => "manifest",
            _ => "transport",
        };
        let first = case.is_broken.then_some((at, rule));
        rows.push(tampered_names::sample(case.name, case.done, &world, first));
        if let Some(name) = case.unasked {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            let (world, _) = (case.told)(case.rulebook - 1);
            rows.push(tampered_names::sample(name, done, &world, None));
        }
    }
    rows
}
