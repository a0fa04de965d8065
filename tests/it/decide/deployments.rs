//! Deployments, guardrails, rollbacks and recalibrations: one story for each way to break a rule.

use clover::event::Payload;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::releases::Stage;
use super::releases::accepted;
use super::releases::edited;
use super::releases::said;
use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::deployed;
use crate::support::deployed::activated;
use crate::support::deployed::back;
use crate::support::deployed::base_hash;
use crate::support::deployed::checked;
use crate::support::iterated;
use crate::support::planned;
use crate::support::released;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn refused(world: &mut dyn World, rule: &str, wording: &[&str], payload: Payload) {
    world.refuse_saying(rule, wording, &owner(), payload, EXP);
}

/// What runs, with what ran before.
struct Running {
    base: String,
    commit: String,
    hash: String,
    runs: String,
    since: u64,
}

fn hash_of(commit: &Payload) -> String {
    let data = serde_json::to_value(commit).unwrap();
    data["rubric_hash"].as_str().unwrap().to_owned()
}

/// Given: a calibrator was fitted, and the first rubric runs.
fn begun(world: &mut dyn World) -> (Stage, String) {
    let [model, rows] = deployed::blobs();
    world.put_blobs(&[model, rows, &released::told()]);
    let stage = accepted(world, 100_000);
    said(world, deployed::fitted());
    let base = said(world, activated((&stage.rubric, "1.0"), &base_hash(), None));
    (stage, base)
}

/// Given: the patch was committed and runs.
fn running(world: &mut dyn World) -> Running {
    let (stage, base) = begun(world);
    let payload = stage.commit("1.1", &[]);
    let hash = hash_of(&payload);
    let commit = said(world, payload);
    let since = world.size();
    let runs = said(world, activated((&commit, "1.1"), &hash, Some(&base)));
    world.say(&owner(), note(), None);
    Running {
        base,
        commit,
        hash,
        runs,
        since,
    }
}

fn note() -> Payload {
    planned::payload("note.recorded", &json!({"text": "live since noon"}))
}

fn plan() -> Value {
    let mut plan = iterated::plan("exp-1", "m-it");
    let cells = plan["iteration"]["design"]["slices"][0]["cells"].as_array_mut();
    for cell in cells.unwrap() {
        cell["stakes_micro"] = 100_000.into();
    }
    plan
}

#[test]
fn what_runs_was_committed_and_is_the_head() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["commit"] = "7".repeat(64).into(),
            &["a prompt.committed or rubric.registered of exp-1", "7777"],
        ),
        (
            |data| data["rubric_hash"] = "7".repeat(64).into(),
            &["rubric_hash ", "7777"],
        ),
        (
            |data| data["versions"]["prompt_hash"] = "7".repeat(64).into(),
            &["prompt_hash ", "7777"],
        ),
        (
            |data| data["versions"]["rubric_version"] = "1.0".into(),
            &["rubric_version 1.1", "1.0"],
        ),
        (
            |data| data["versions"]["sdp_version"] = "v2".into(),
            &["sdp_version v1.0_2025-11-11, as in the rubric", "v2"],
        ),
        (
            |data| data["versions"]["calibrator"] = "8".repeat(64).into(),
            &["a calibrator that was fitted for judge-1", "8888"],
        ),
        (
            |data| data["versions"]["model"] = "m-2".into(),
            &["a recalibration, because the model was m-1", "none"],
        ),
        (
            |data| data["recalibration"] = "8".repeat(64).into(),
            &[
                "a recalibration.completed of this commit, judge and calibrator",
                "8888",
            ],
        ),
        (
            |data| data["previous"] = "8".repeat(64).into(),
            &["previous ", "8888"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let (stage, base) = begun(world);
            let payload = stage.commit("1.1", &[]);
            let hash = hash_of(&payload);
            let commit = said(world, payload);
            let run = activated((&commit, "1.1"), &hash, Some(&base));
            refused(world, "deployment", wording, edited(&run, edit));
        });
    }
    tell(SOLO, |world| {
        let (stage, base) = begun(world);
        said(world, stage.commit("1.1", &[]));
        let run = activated((&stage.rubric, "1.0"), &base_hash(), Some(&base));
        refused(world, "deployment", &["the head, 1.1", "1.0"], run);
    });
    tell(SOLO, |world| {
        let (stage, base) = begun(world);
        let run = activated((&stage.rubric, "1.0"), &base_hash(), Some(&base));
        let wording = ["a committed prompt; the first rubric is deployed first or never"];
        refused(world, "deployment", &wording, run);
    });
}

#[test]
fn a_refusal_after_the_commit_stops_the_deployment() {
    tell(SOLO, |world| {
        let (stage, base) = begun(world);
        let payload = stage.commit("1.1", &[]);
        let hash = hash_of(&payload);
        let commit = said(world, payload);
        let no = released::refused("Petra Weiss", &stage.acceptance);
        world.say(&signer(super::releases::PETRA), no, EXP);
        let run = activated((&commit, "1.1"), &hash, Some(&base));
        let wording = ["no refusal of concise-3 that stands", "one at seq"];
        refused(world, "deployment", &wording, run);
    });
}

#[test]
fn a_new_protocol_voids_calibrators() {
    tell(SOLO, |world| {
        let (stage, base) = begun(world);
        let payload = stage.commit("1.1", &[]);
        let hash = hash_of(&payload);
        let commit = said(world, payload);
        let sdp = |version: &str| {
            let data = json!({
                "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z",
                "sdp_version": version, "target": "Y",
            });
            planned::payload("sdp.version_registered", &data)
        };
        world.say(&owner(), sdp("v1.0_2025-11-11"), None);
        let run = activated((&commit, "1.1"), &hash, Some(&base));
        let wording = [
            "a calibrator fitted after v1.0_2025-11-11",
            "one fitted at seq",
        ];
        refused(world, "deployment", &wording, run);
    });
    tell(SOLO, |world| {
        let (stage, base) = begun(world);
        let payload = stage.commit("1.1", &[]);
        let hash = hash_of(&payload);
        let commit = said(world, payload);
        let data = json!({
            "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z",
            "sdp_version": "v2", "target": "Y",
        });
        world.say(
            &owner(),
            planned::payload("sdp.version_registered", &data),
            None,
        );
        let run = activated((&commit, "1.1"), &hash, Some(&base));
        let wording = [
            "a rubric by protocol v2, in force since seq",
            "v1.0_2025-11-11",
        ];
        refused(world, "deployment", &wording, run);
    });
}

#[test]
pub(super) fn an_iteration_whose_protocol_was_replaced_only_closes_and_says_so() {
    let replaced = |world: &mut dyn World| {
        accepted(world, 100_000);
        let data = json!({
            "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z",
            "sdp_version": "v2", "target": "Y",
        });
        world.say(
            &owner(),
            planned::payload("sdp.version_registered", &data),
            None,
        );
    };
    tell(SOLO, |world| {
        replaced(world);
        let wording = [
            "no step of it-3 under another protocol: close it as sdp_changed",
            "v2 in force",
        ];
        refused(world, "sdp", &wording, crate::support::decided::prentice());
    });
    tell(SOLO, |world| {
        replaced(world);
        let wording = ["an end as sdp_changed", "v2 in force since seq"];
        refused(world, "sdp", &wording, iterated::closed("it-3", "accepted"));
    });
    tell(SOLO, |world| {
        replaced(world);
        said(world, iterated::closed("it-3", "sdp_changed"));
        let wording = ["an open iteration of exp-1", "it-3, closed at seq"];
        let late = crate::support::decided::prentice();
        refused(world, "predicate", &wording, late);
    });
    tell(SOLO, |world| {
        accepted(world, 100_000);
        let wording = ["a protocol that was replaced, or A0 that fails", "neither"];
        refused(
            world,
            "sdp",
            &wording,
            iterated::closed("it-3", "sdp_changed"),
        );
    });
}

#[test]
fn guardrails_are_computed_again() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["deployment"] = "7".repeat(64).into(),
            &["the running deployment, ", "7777"],
        ),
        (
            |data| data["thresholds"]["drift_max_micro"] = 20_000.into(),
            &["the thresholds of the plan", "others"],
        ),
        (
            |data| data["window"]["from_seq"] = 0.into(),
            &["a window from above seq ", "0 to"],
        ),
        (
            |data| data["verdicts"]["anchors"] = "pass".into(),
            &["anchors fail", "pass"],
        ),
        (
            |data| data["verdicts"]["shift"] = "not_checked".into(),
            &["shift pass", "not_checked"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let now = running(world);
            let window = (now.since + 1, now.since + 1);
            let check = checked(&plan(), &now.runs, &deployed::moved(), window);
            refused(world, "guardrail", wording, edited(&check, edit));
        });
    }
}

#[test]
pub(super) fn a_breach_is_rolled_back_next_and_to_what_ran_before() {
    let breach = |world: &mut dyn World| {
        let now = running(world);
        let window = (now.since + 1, now.since + 1);
        let check = checked(&plan(), &now.runs, &deployed::moved(), window);
        let breach = said(world, check);
        (now, breach)
    };
    tell(SOLO, |world| {
        breach(world);
        let wording = [
            "deployment.rolled_back of exp-1 next, after the breach at seq",
            "note.recorded",
        ];
        refused(world, "rollback", &wording, note());
    });
    tell(SOLO, |world| {
        let (now, _) = breach(world);
        let by_hand = back(&now.runs, None, Some((&now.base, &base_hash())));
        let wording = ["deployment.rolled_back of exp-1 next, after the breach at seq"];
        refused(world, "rollback", &wording, by_hand);
    });
    for (restored, hash, wording) in [
        (false, "", ["restored ", "which ran before"]),
        (true, "7", ["rubric_hash ", "7777"]),
    ] {
        tell(SOLO, |world| {
            let (now, breach) = breach(world);
            let hash = hash.repeat(64);
            let to = restored.then_some((now.base.as_str(), hash.as_str()));
            let undone = back(&now.runs, Some(&breach), to);
            refused(world, "rollback", &wording, undone);
        });
    }
    // What was rolled back never runs again: the head is the first rubric.
    tell(SOLO, |world| {
        let (now, breach) = breach(world);
        let undone = back(&now.runs, Some(&breach), Some((&now.base, &base_hash())));
        said(world, undone);
        let again = activated((&now.commit, "1.1"), &now.hash, Some(&now.base));
        let wording = [
            "a commit that was not rolled back; accept the patch anew",
            "1.1, rolled back at seq",
        ];
        refused(world, "deployment", &wording, again);
    });
}

#[test]
fn a_recalibration_stands_on_fresh_labels_an_audit_and_still_anchors() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["labels"] = 99.into(),
            &["at least 100 fresh labels", "99"],
        ),
        (
            |data| data["labels"] = 101.into(),
            &["101 open labels of probes, registered after seq", "100"],
        ),
        (
            |data| data["design"] = "other".into(),
            &["100 open labels of other, registered after seq", "0"],
        ),
        (
            |data| data["calibrator"] = "8".repeat(64).into(),
            &["a calibrator that was fitted for judge-1", "8888"],
        ),
        (
            |data| data["transport"] = "8".repeat(64).into(),
            &["a transport.tested of this calibrator after seq", "none"],
        ),
        (
            |data| data["anchors"]["anchors"][0]["drift"] = json!(0.011),
            &["a drift of at most 0.01 on 200 rows of bad", "0.011 on 200"],
        ),
        (
            |data| data["anchors"]["anchors"] = json!([]),
            &["2 anchor policies", "0"],
        ),
        (
            |data| data["commit"] = "8".repeat(64).into(),
            &["a prompt.committed or rubric.registered of exp-1", "8888"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let [model, rows] = deployed::blobs();
            world.put_blobs(&[model, rows]);
            said(world, planned::experiment_registered());
            let rubric = said(world, iterated::rubric_registered(iterated::RUBRIC));
            said(world, deployed::fitted());
            said(world, deployed::probes());
            for number in 0..100 {
                said(world, deployed::label(number));
            }
            let tested = said(world, deployed::tested());
            let done = edited(&deployed::recalibrated(&rubric, &tested), edit);
            refused(world, "recalibration", wording, done);
        });
    }
}
