//! Samples around rulebook 23 and what somebody chooses once results can be seen: rows, a plan that waited, thresholds, a role,
//! an order.

use clover::event::Kind;
use clover::event::payload::Role;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::drifted;
use super::forger::World;
use super::gated;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::tampered_gated;
use super::tampered_stopped;
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
    Case { name: "row-scored-after-labels", unasked: Some("row-scored-after-labels-unasked"), rule: Some("transport"),
           told: |book| estimated(book, &Batch::Later, (3, 0)),
           done: "A policy was labelled, its scorer added a row, and an estimate counts that row." },
    Case { name: "good-row-scored-after-labels", unasked: None, rule: None,
           told: |book| estimated(book, &Batch::Later, (2, 1)),
           done: "Nothing. A policy was labelled, its scorer added a row, and an estimate says that this row does not count." },
    Case { name: "rows-left-out", unasked: None, rule: Some("transport"),
           told: |book| estimated(book, &Batch::Later, (1, 1)),
           done: "An estimate left out a row that was scored before the labels of its policy." },
    Case { name: "rows-of-any-time", unasked: Some("rows-of-any-time-unasked"), rule: Some("transport"),
           told: of_any_time,
           done: "An estimate does not say that it reads only rows that were scored before labels." },
    Case { name: "good-second-batch", unasked: None, rule: None,
           told: |book| estimated(book, &Batch::Drawn("item-n"), (3, 0)),
           done: "Nothing. After labels a row of a new prompt was scored, then a design was registered, and the row was labelled by it." },
    Case { name: "second-batch-of-known-prompts", unasked: None, rule: Some("transport"),
           told: |book| estimated(book, &Batch::Drawn("item-l"), (3, 0)),
           done: "A prompt was labelled, another draw of it was scored and labelled by a new design, and an estimate counts that draw." },
    Case { name: "good-rows-of-another-policy", unasked: None, rule: None,
           told: |book| estimated(book, &Batch::Elsewhere, (2, 0)),
           done: "Nothing. One policy was labelled before another was scored, and an estimate counts every row of the other." },
    Case { name: "comparison-hides-late-rows", unasked: Some("comparison-hides-late-rows-unasked"), rule: Some("transport"),
           told: |book| compared(book, 0),
           done: "A policy was labelled, its scorer added a row, and a comparison says that every row of it counts." },
    Case { name: "good-comparison-with-late-rows", unasked: None, rule: None,
           told: |book| compared(book, 1),
           done: "Nothing. A policy was labelled, its scorer added a row, and a comparison says that one row of it does not count." },
    Case { name: "comparison-by-a-sleeping-plan", unasked: Some("comparison-by-a-sleeping-plan-unasked"), rule: Some("thresholds"),
           told: |book| slept(book, Some("bonferroni")),
           done: "A plan that waits for its custodian took the place of one in force, was countersigned once scores could be seen, and a comparison follows it." },
    Case { name: "good-comparison-by-the-plan-in-force", unasked: None, rule: None,
           told: |book| slept(book, Some("holm")),
           done: "Nothing. A plan that waits for its custodian is to replace one in force, and a comparison follows the one in force." },
    Case { name: "drift-by-a-late-plan", unasked: Some("drift-by-a-late-plan-unasked"), rule: Some("thresholds"),
           told: |book| checked(book, false),
           done: "Anchors were registered, a plan of drift was signed then, and a check was judged by it." },
    Case { name: "good-drift-by-an-early-plan", unasked: None, rule: None,
           told: |book| checked(book, true),
           done: "Nothing. A plan of drift was signed, then anchors were registered, and a check was judged by the plan." },
    Case { name: "overlap-by-a-late-plan", unasked: Some("overlap-by-a-late-plan-unasked"), rule: Some("thresholds"),
           told: |book| overlapped(book, true),
           done: "Scores could be seen, a plan of overlap was signed then, and a diagnosis was judged by it." },
    Case { name: "good-overlap-by-the-usual-numbers", unasked: None, rule: None,
           told: |book| overlapped(book, false),
           done: "Nothing. A plan of overlap was signed once scores could be seen, and a diagnosis was judged by the usual numbers." },
    Case { name: "sealed-after-a-retired-optimizer-read", unasked: Some("sealed-after-a-retired-optimizer-read-unasked"),
           rule: Some("sealing"), told: |book| read(book, "Opal"),
           done: "An optimizer's key was retired, its holder was given labels under another key, and candidates were sealed all the same." },
    Case { name: "good-sealed-after-an-auditor-read", unasked: None, rule: None,
           told: |book| read(book, "Aude"),
           done: "Nothing. An optimizer's key was retired, an auditor was given labels, and candidates were sealed." },
    Case { name: "promotion-by-one-of-two-orders", unasked: Some("promotion-by-one-of-two-orders-unasked"), rule: Some("promotion"),
           told: |book| promoted(book, "certified"),
           done: "Two manifests drew an order of the same units, one of them was opened, and its promotion was called certified." },
    Case { name: "good-promotion-by-one-of-two-orders", unasked: None, rule: None,
           told: |book| promoted(book, "certified_amended"),
           done: "Nothing. Two manifests drew an order of the same units, one of them was opened, and its promotion says so by its grade." },
];

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let (world, at) = knew(24, true);
    let done = "An auditor was given labels once a probe was labelled, became an optimizer, and candidates were sealed all the same.";
    let first = Some((at, "sealing"));
    let mut rows = vec![sample(
        "sealed-after-an-auditor-became-an-optimizer",
        done,
        &world,
        first,
    )];
    let done = "Nothing. An auditor was given labels to fit on, became an optimizer, and candidates were sealed.";
    let name = "good-sealed-after-an-auditor-became-an-optimizer";
    rows.push(sample(name, done, &knew(24, false).0, None));
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

fn arena() -> Value {
    Value::from(ARENA)
}

/// What was scored once a label of the policy could be read.
enum Batch<'a> {
    /// A row, and nothing more.
    Later,
    /// A second draw of a prompt, that is labelled by a design which was registered after its score.
    Drawn(&'a str),
    /// Nothing: the label is of another policy.
    Elsewhere,
}

fn scored(world: &mut World, policy: &str, item: &str, draw: u64) {
    let score = json!({
        "draw": draw, "item": item, "judge": "judge-1", "policy": policy, "score_micro": 500_000,
    });
    world.say(RUNNER_3, "score.recorded", 1, arena(), score);
}

fn labelled(world: &mut World, design: &str, policy: &str, (item, draw): (&str, u64)) {
    let label = json!({
        "design": design, "draw": draw, "item": item, "policy": policy, "purpose": "calibrate", "rater": "Lena",
        "value_micro": 400_000,
    });
    world.say(LENA, "label.recorded", 1, arena(), label);
}

/// Two rows of a new policy, a label, and what was scored after it.
fn batches(rulebook: u64, batch: &Batch<'_>) -> World {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    if matches!(batch, Batch::Elsewhere) {
        labelled(&mut world, "calib", "elder", ("item-l", 0));
    }
    for item in ["item-l", "item-m"] {
        scored(&mut world, "fresh", item, 0);
    }
    if matches!(batch, Batch::Elsewhere) {
        return world;
    }
    labelled(&mut world, "calib", "fresh", ("item-l", 0));
    let (item, draw) = match batch {
        Batch::Drawn(item) => (*item, 1),
        _ => ("item-n", 0),
    };
    scored(&mut world, "fresh", item, draw);
    if matches!(batch, Batch::Drawn(_)) {
        let design = json!({
            "design": "calib-2", "inclusion_micro": 500_000, "protocol": "sdp-1", "purpose": "calibrate",
        });
        world.say(LENA, "label.design_registered", 1, arena(), design);
        labelled(&mut world, "calib-2", "fresh", (item, draw));
    }
    world
}

/// An estimate that counts some rows and says how many it does not.
fn counted((rows, late): (u64, u64)) -> Value {
    let mut data = valued::estimate(5, None);
    data["through_seq"] = 7.into();
    data["policy"] = "fresh".into();
    data["claim"] = "borrowed_unchecked".into();
    data["off_mode"] = 0.into();
    data["rows"] = rows.into();
    data["late"] = late.into();
    data["terms"]["labels"] = "targeted".into();
    data["terms"]["rows"] = "scored_before".into();
    data
}

fn estimated(rulebook: u64, batch: &Batch<'_>, counts: (u64, u64)) -> Told {
    let mut world = batches(rulebook, batch);
    let at = world.say(ARBITER, "estimate.recorded", 1, arena(), counted(counts));
    (world, at)
}

fn of_any_time(rulebook: u64) -> Told {
    let mut world = batches(rulebook, &Batch::Elsewhere);
    let mut data = counted((2, 0));
    data["terms"].as_object_mut().unwrap().remove("rows");
    let at = world.say(ARBITER, "estimate.recorded", 1, arena(), data);
    (world, at)
}

/// A difference of two policies that nobody checked.
fn contrast(prompts: u64, late: u64) -> Value {
    let mut data = valued::contrast(5);
    data["through_seq"] = 7.into();
    data["first"] = "fresh".into();
    data["family"] = json!(["fresh", "tuned"]);
    data["first_claim"] = "borrowed_unchecked".into();
    data["second_claim"] = "borrowed_unchecked".into();
    data["reading"] = "unchecked".into();
    data["told_apart"] = false.into();
    data["prompts"] =
        json!({"both": 0, "first_only": prompts, "second_only": 0, "uneven": 0, "worst": 0.0});
    data["first_late"] = late.into();
    data["second_late"] = 0.into();
    data["terms"]["labels"] = "targeted".into();
    data["terms"]["rows"] = "scored_before".into();
    data
}

fn compared(rulebook: u64, late: u64) -> Told {
    let mut world = batches(rulebook, &Batch::Later);
    let at = world.say(
        ARBITER,
        "contrast.recorded",
        1,
        arena(),
        contrast(3 - late, late),
    );
    (world, at)
}

/// A plan is registered: its digest.
fn registered(world: &mut World, who: u8, value: &Value) -> Value {
    let said = serde_json::to_value(planned::registered(value)).unwrap();
    let digest = said["digest"].clone();
    let experiment = value["experiment"].clone();
    world.say(who, "manifest.registered", 1, experiment, said);
    digest
}

/// A plan in force is to be replaced by one that waits for its custodian; a score can be seen, the custodian signs, and two
/// policies are compared.
fn slept(rulebook: u64, correction: Option<&str>) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    let trial = || Value::from("trial");
    let begun = serde_json::to_value(planned::experiment_registered()).unwrap();
    world.say(ADA, "experiment.registered", 1, trial(), begun);
    let mut first = planned::audits("trial", "compared-0");
    first["estimates"] = json!({"correction": "holm"});
    let digest = registered(&mut world, ADA, &first);
    let mut second = planned::audits("trial", "compared-1");
    second["estimates"] = json!({"correction": "bonferroni"});
    second["supersedes"] = digest;
    second["data"] = json!({"confirm_root": planned::root(), "exposure_cap": 1, "n_units": 1});
    registered(&mut world, ADA, &second);
    let score = json!({
        "draw": 0, "item": "item-l", "judge": "judge-1", "policy": "fresh", "score_micro": 500_000,
    });
    world.say(RUNNER_3, "score.recorded", 1, trial(), score);
    let agreed = serde_json::to_value(planned::countersigned(&second)).unwrap();
    world.say(CLEO, "manifest.countersigned", 1, trial(), agreed);
    let mut data = contrast(1, 0);
    data["first_claim"] = "uncalibrated".into();
    data["second_claim"] = "uncalibrated".into();
    data["terms"]["labels"] = "representative".into();
    data.as_object_mut().unwrap().remove("calibrator");
    if let Some(correction) = correction {
        data["correction"] = correction.into();
    }
    let at = world.say(ARBITER, "contrast.recorded", 1, trial(), data);
    (world, at)
}

/// A judge's drift is checked by the numbers of a plan that was signed before or after its anchors were registered.
fn checked(rulebook: u64, is_early: bool) -> Told {
    let story = gated::story();
    let mut world = World::of(&story.lines);
    let judge = world.items[story.at("m-1-opened")].body["data"]["sources"][0]["judge"].clone();
    world.items.truncate(story.at("m-1-observed-4"));
    adopt(&mut world, rulebook);
    let mut numbers = drifted::plan();
    numbers["q_micro"] = 1.into();
    let mut plan = planned::audits("exp-1", "drift-0");
    plan["diagnostics"] = json!({"drift": numbers});
    let judge = judge.as_str().unwrap();
    let anchors = |world: &mut World| {
        for anchor in drifted::anchored(judge) {
            let kind = anchor.kind();
            let who = if kind == Kind::ScoreRecorded {
                RUNNER
            } else {
                ADA
            };
            let data = serde_json::to_value(&anchor).unwrap();
            world.say(
                who,
                kind.as_str(),
                kind.version().into(),
                "exp-1".into(),
                data,
            );
        }
    };
    if !is_early {
        anchors(&mut world);
    }
    let digest = registered(&mut world, ADA, &plan);
    if is_early {
        anchors(&mut world);
    }
    // It read the log up to here, and its numbers are those of the anchors' scores.
    let (check, _) = drifted::again(judge, &[], world.items.len() as u64 - 1, 0);
    let mut check = serde_json::to_value(&check).unwrap();
    check["terms"] = json!({"manifest": digest, "plan": numbers});
    let at = world.say(LENA, "judge.drift_checked", 1, "exp-1".into(), check);
    (world, at)
}

/// Overlap is diagnosed by a plan that was signed once scores could be seen, or by the usual numbers.
fn overlapped(rulebook: u64, by_plan: bool) -> Told {
    let mut world = World::of(&good().lines);
    adopt(&mut world, rulebook);
    let mut data = valued::diagnosed();
    data["through_seq"] = 7.into();
    data["direct_claim"] = "borrowed_unchecked".into();
    data["guide"] = json!([{"estimator": "direct", "reasons": [], "verdict": "warned"}]);
    data["policy"] = "tuned".into();
    data["terms"]["estimate"]["labels"] = "targeted".into();
    data["terms"]["estimate"]["rows"] = "scored_before".into();
    let mut numbers = data["terms"]["thresholds"].clone();
    numbers["ess_good_micro"] = 100_000.into();
    let mut plan = planned::audits(ARENA, "overlap-0");
    plan["diagnostics"] = json!({"overlap": numbers});
    let digest = registered(&mut world, ADA, &plan);
    if by_plan {
        data["terms"]["thresholds"] = numbers;
        data["terms"]["manifest"] = digest;
    }
    let at = world.say(ARBITER, "ope.diagnosed", 1, arena(), data);
    (world, at)
}

/// Under strict separation an optimizer's key is retired, somebody is given labels under a new key, and candidates are sealed.
fn read(rulebook: u64, holder: &str) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("sealed"));
    let experiment = world.items[story.at("sealed") - 1].body["experiment"].clone();
    adopt(&mut world, rulebook);
    let strict = json!({"reason": "it is time", "separation": "strict"});
    world.say(ADA, "policy.adopted", 1, Value::Null, strict);
    let ended = json!({"key_id": signer(RUNNER).id().to_string(), "reason": "a holiday"});
    world.say(ADA, "key.retired", 1, Value::Null, ended);
    tampered_stopped::joined(&mut world, STRANGER, holder, Role::Auditor);
    let read = json!({
        "class": "label", "outcome": "allowed", "purpose": "to audit", "reader": signer(STRANGER).id().to_string(),
    });
    world.say(CLEO, "data.read", 1, experiment, read);
    let at = again(&mut world, &story, "sealed", |_| ());
    (world, at)
}

/// Under strict separation an auditor is given labels, is an optimizer from then on, and candidates are sealed. Labels of probes
/// are among them, or nothing but labels to fit on.
fn knew(rulebook: u64, is_held_back: bool) -> Told {
    let story = decided::story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("sealed"));
    let experiment = world.items[story.at("sealed") - 1].body["experiment"].clone();
    adopt(&mut world, rulebook);
    let strict = json!({"reason": "it is time", "separation": "strict"});
    world.say(ADA, "policy.adopted", 1, Value::Null, strict);
    tampered_stopped::joined(&mut world, LENA, "Lena", Role::Labeler);
    let purpose = if is_held_back { "audit" } else { "calibrate" };
    let design = json!({
        "design": "early", "inclusion_micro": 1_000_000, "protocol": "sdp-1", "purpose": purpose,
    });
    world.say(
        LENA,
        "label.design_registered",
        1,
        experiment.clone(),
        design,
    );
    let label = json!({
        "design": "early", "draw": 0, "item": "item-k", "policy": "base", "purpose": purpose, "rater": "Lena",
        "value_micro": 400_000,
    });
    world.say(LENA, "label.recorded", 1, experiment.clone(), label);
    tampered_stopped::joined(&mut world, STRANGER, "Ivo", Role::Auditor);
    let read = json!({
        "class": "label", "outcome": "allowed", "purpose": "to audit", "reader": signer(STRANGER).id().to_string(),
    });
    world.say(CLEO, "data.read", 1, experiment, read);
    tampered_stopped::joined(&mut world, PETRA, "Ivo", Role::Optimizer);
    let at = again(&mut world, &story, "sealed", |_| ());
    (world, at)
}

/// Two manifests of one family draw an order of the same units for the same candidate; one is opened, holds, and is promoted.
fn promoted(rulebook: u64, grade: &str) -> Told {
    let (mut world, mut issued) = tampered_gated::one_of_two_orders();
    adopt(&mut world, rulebook);
    issued["grade"] = grade.into();
    let at = world.say(LENA, "promotion.issued", 1, Value::Null, issued);
    (world, at)
}
