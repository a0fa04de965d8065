//! Iterations, rubrics and patches: one story for each way to break a rule.

use clover::event::Payload;
use clover::event::payload::rubric::AuthorKind;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::iterated;
use crate::support::iterated::closed;
use crate::support::iterated::opened;
use crate::support::iterated::patch;
use crate::support::iterated::proposed;
use crate::support::iterated::withdrawn;
use crate::support::planned;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn quarter(world: &dyn World) -> String {
    world.now().quarter().to_string()
}

/// Given: a rubric, anchors, an account of peeks and the plan of an iteration.
fn planned_out(world: &mut dyn World) -> Value {
    let plan = iterated::plan("exp-1", "m-it");
    world.say(&owner(), planned::experiment_registered(), EXP);
    world.say(&owner(), iterated::peek_account(), None);
    world.say(&owner(), iterated::rubric_registered(iterated::RUBRIC), EXP);
    world.say(&owner(), iterated::anchors(200), EXP);
    world.say(&owner(), planned::registered(&plan), EXP);
    plan
}

/// Given: the same, and an open iteration.
fn begun(world: &mut dyn World) -> Value {
    let plan = planned_out(world);
    let said = opened(&plan, "it-1", &quarter(world));
    world.say(&owner(), said, EXP);
    plan
}

/// Then: an owner's event in the experiment is refused.
fn refused(world: &mut dyn World, rule: &str, wording: &[&str], payload: Payload) {
    world.refuse_saying(rule, wording, &owner(), payload, EXP);
}

/// A payload with its data edited.
fn edited(payload: &Payload, edit: impl FnOnce(&mut Value)) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    edit(&mut data);
    planned::payload(payload.kind().as_str(), &data)
}

#[test]
fn anchors_have_rows_and_two_policies() {
    tell(SOLO, |world| {
        world.say(&owner(), planned::experiment_registered(), EXP);
        refused(
            world,
            "iteration",
            &["at least 200 rows of bad", "199"],
            iterated::anchors(199),
        );
    });
    tell(SOLO, |world| {
        world.say(&owner(), planned::experiment_registered(), EXP);
        let same = edited(&iterated::anchors(200), |data| {
            data["low"]["policy"] = "good".into();
        });
        refused(world, "iteration", &["two policies", "good twice"], same);
    });
}

#[test]
pub(super) fn every_number_comes_from_the_manifest() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| {
                data["params"]["eta_micro"] = 500.into();
                iterated::rehash(data);
            },
            &["params as m-it registered them", "E_UNREGISTERED_RULE"],
        ),
        (
            |data| data["params_hash"] = "0".repeat(64).into(),
            &["params_hash ", "0000"],
        ),
        (
            |data| data["rubric_hash"] = "0".repeat(64).into(),
            &["rubric_hash ", "as registered"],
        ),
        (
            |data| data["digest"] = "0".repeat(64).into(),
            &["the digest of a manifest of this experiment"],
        ),
        (
            |data| data["quarter"] = "2020Q1".into(),
            &["quarter 2026Q4", "2020Q1"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let plan = planned_out(world);
            let said = opened(&plan, "it-1", &quarter(world));
            refused(world, "iteration", wording, edited(&said, edit));
        });
    }
}

#[test]
pub(super) fn an_iteration_needs_what_its_plan_names() {
    type Skip = &'static str;
    let cases: &[(Skip, &[&str])] = &[
        ("rubric", &["a registered rubric", "none"]),
        ("anchors", &["a registered anchor set", "anchors-1"]),
        ("peeks", &["an account confirm-peeks", "none"]),
    ];
    for (skip, wording) in cases {
        tell(SOLO, |world| {
            let plan = iterated::plan("exp-1", "m-it");
            world.say(&owner(), planned::experiment_registered(), EXP);
            for (name, payload, experiment) in [
                ("peeks", iterated::peek_account(), None),
                ("rubric", iterated::rubric_registered(iterated::RUBRIC), EXP),
                ("anchors", iterated::anchors(200), EXP),
                ("plan", planned::registered(&plan), EXP),
            ] {
                if name != *skip {
                    world.say(&owner(), payload, experiment);
                }
            }
            let said = opened(&plan, "it-1", &quarter(world));
            refused(world, "iteration", wording, said);
        });
    }
    tell(SOLO, |world| {
        let plan = planned_out(world);
        for _ in 0..3 {
            let charge = json!({"account": "confirm-peeks", "amount": 1, "for": "a look"});
            world.say(&owner(), planned::payload("budget.charged", &charge), None);
        }
        let said = opened(&plan, "it-1", &quarter(world));
        let wording = ["a peek left in confirm-peeks", "3 of 3 spent"];
        refused(world, "iteration", &wording, said);
    });
}

#[test]
pub(super) fn one_iteration_is_open_at_a_time_and_its_parameters_stand() {
    tell(SOLO, |world| {
        let plan = begun(world);
        let said = opened(&plan, "it-2", &quarter(world));
        let wording = ["no open iteration", "it-1, opened at seq"];
        refused(world, "iteration", &wording, said);
    });
    tell(SOLO, |world| {
        let plan = begun(world);
        world.say(&owner(), closed("it-1", "stopped"), EXP);
        let said = opened(&plan, "it-2", &quarter(world));
        world.say(&owner(), said, EXP);
        // It ended once: its natural key stands too, and the rule about history is the first in `verify`.
        let late = world.line(&owner(), closed("it-1", "no_candidate"), EXP);
        let wording = ["an open iteration of exp-1", "it-1, closed at seq"];
        world.refuse_as("iteration", "natural_key", &wording, &owner(), late);
    });
    tell(SOLO, |world| {
        let plan = begun(world);
        let mut next = planned::next(&plan, &plan);
        next["iteration"]["tau_micro"] = 2_000.into();
        let wording = ["the parameters of it-1", "E_UNREGISTERED_RULE"];
        let said = planned::amended(&next, &plan, 1);
        refused(world, "iteration", &wording, said);
    });
    for (outcome, rule, wording) in [
        ("accepted", "acceptance", ["an accepted patch", "none"]),
        (
            "none_accepted",
            "iteration",
            ["labels unsealed before", "none"],
        ),
    ] {
        tell(SOLO, |world| {
            begun(world);
            refused(world, rule, &wording, closed("it-1", outcome));
        });
    }
}

#[test]
pub(super) fn patches_belong_to_an_open_iteration() {
    tell(SOLO, |world| {
        planned_out(world);
        let wording = ["an open iteration of exp-1", "it-1, never opened"];
        refused(
            world,
            "iteration",
            &wording,
            proposed("it-1", iterated::PATCH),
        );
    });
    tell(SOLO, |world| {
        begun(world);
        world.say(&owner(), closed("it-1", "no_candidate"), EXP);
        let wording = ["an open iteration of exp-1", "it-1, closed at seq"];
        refused(
            world,
            "iteration",
            &wording,
            proposed("it-1", iterated::PATCH),
        );
    });
    tell(SOLO, |world| {
        begun(world);
        let wording = ["a candidate of it-1 that stands", "never proposed"];
        refused(
            world,
            "iteration",
            &wording,
            withdrawn("it-1", "len-cite-guard-001"),
        );
    });
    tell(SOLO, |world| {
        begun(world);
        world.say(&owner(), proposed("it-1", iterated::PATCH), EXP);
        world.say(&owner(), withdrawn("it-1", "len-cite-guard-001"), EXP);
        let said = iterated::rejected("it-1", "dev", "P1", Some("len-cite-guard-001"), "");
        let wording = ["a candidate of it-1 that stands", "withdrawn"];
        refused(world, "iteration", &wording, said);
    });
}

#[test]
fn the_first_rubric_is_what_its_document_says() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["yaml"] = "rubric: {version: '1.0'}".into(),
            &["a rubric", "rubric.target: expected it in every rubric"],
        ),
        (
            |data| data["leaves"][0]["value"] = json!({"text": "never"}),
            &["the leaves of the document"],
        ),
        (
            |data| data["version"] = "1.1".into(),
            &["version", "as the document says"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            world.say(&owner(), planned::experiment_registered(), EXP);
            let said = iterated::rubric_registered(iterated::RUBRIC);
            refused(world, "rubric", wording, edited(&said, edit));
        });
    }
    tell(SOLO, |world| {
        world.say(&owner(), planned::experiment_registered(), EXP);
        let next = iterated::RUBRIC.replace("\"1.0\"", "\"1.1\"");
        world.say(&owner(), iterated::rubric_registered(&next), EXP);
        let old = iterated::rubric_registered(iterated::RUBRIC);
        refused(world, "rubric", &["a version above 1.1", "1.0"], old);
    });
    tell(SOLO, |world| {
        begun(world);
        let next = iterated::RUBRIC.replace("\"1.0\"", "\"1.1\"");
        let wording = ["a rubric before the first iteration", "it-1, opened at seq"];
        refused(
            world,
            "rubric",
            &wording,
            iterated::rubric_registered(&next),
        );
    });
}

#[test]
pub(super) fn a_patch_is_what_its_document_says_and_passes_every_check() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["yaml"] = "patch: [".into(),
            &["a patch of this rubric", "parse"],
        ),
        (
            |data| data["yaml"] = iterated::PATCH.replace("bmj.com", "nih.gov").into(),
            &["a patch of this rubric", "noop"],
        ),
        (
            |data| data["yaml"] = iterated::PATCH.replace(": 500", ": 400").into(),
            &["a patch of this rubric", "cross_family"],
        ),
        (
            |data| data["yaml"] = iterated::PATCH.replace("bmj.com", "bmj.org").into(),
            &["diff", "bmj.org", "bmj.com"],
        ),
        (
            |data| data["patch_hash"] = "0".repeat(64).into(),
            &["patch_hash", "as the document says"],
        ),
        (
            |data| data["length"]["kappa"] = 2.into(),
            &["length", "as the document says"],
        ),
        (
            |data| data["result_hash"] = "0".repeat(64).into(),
            &["result_hash", "as the document says"],
        ),
        (
            |data| data["family"] = "abstention".into(),
            &["family", "as the document says"],
        ),
        (
            |data| data["model"] = "some model".into(),
            &["model and prompt_digest for author_kind llm"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            begun(world);
            let said = proposed("it-1", iterated::PATCH);
            refused(world, "patch", wording, edited(&said, edit));
        });
    }
}

#[test]
fn a_frozen_leaf_an_old_id_and_an_old_edit_are_refused() {
    tell(SOLO, |world| {
        begun(world);
        let changes = "{guards.confident_but_wrong_max: 0.3}";
        let said = proposed("it-1", &patch("wrong-1", "contradiction_check", changes));
        let wording = [
            "frozen",
            "no patch may touch guards.confident_but_wrong_max",
        ];
        refused(world, "patch", &wording, said);
    });
    tell(SOLO, |world| {
        begun(world);
        world.say(&owner(), proposed("it-1", iterated::PATCH), EXP);
        let again = iterated::PATCH.replace("guard-001", "guard-002");
        refused(
            world,
            "patch",
            &["duplicate_diff"],
            proposed("it-1", &again),
        );
    });
    // An id is one for all time, in every experiment of the ledger.
    tell(SOLO, |world| {
        begun(world);
        world.say(&owner(), proposed("it-1", iterated::PATCH), EXP);
        let other = Some("exp-2");
        let plan = iterated::plan("exp-2", "m-other");
        let quarter = quarter(world);
        for payload in [
            planned::experiment_registered(),
            iterated::rubric_registered(iterated::RUBRIC),
            iterated::anchors(200),
            planned::registered(&plan),
            opened(&plan, "it-2", &quarter),
        ] {
            world.say(&owner(), payload, other);
        }
        let said = proposed("it-2", iterated::PATCH);
        world.refuse_saying("patch", &[], &owner(), said, other);
    });
}

#[test]
fn an_id_of_a_patch_is_used_once_in_a_whole_ledger() {
    tell(SOLO, |world| {
        begun(world);
        world.say(&owner(), proposed("it-1", iterated::PATCH), EXP);
        let other = Some("exp-2");
        let plan = iterated::plan("exp-2", "m-2");
        world.say(&owner(), planned::experiment_registered(), other);
        world.say(
            &owner(),
            iterated::rubric_registered(iterated::RUBRIC),
            other,
        );
        world.say(&owner(), iterated::anchors(200), other);
        world.say(&owner(), planned::registered(&plan), other);
        let said = opened(&plan, "it-2", &quarter(world));
        world.say(&owner(), said, other);
        let again = proposed("it-2", iterated::PATCH);
        let wording = ["one event per natural key", "has it"];
        world.refuse_saying("patch", &wording, &owner(), again, other);
    });
}

#[test]
fn a_rejection_names_its_candidate_or_the_check_of_a_document() {
    tell(SOLO, |world| {
        begun(world);
        let said = iterated::rejected("it-1", "schema", "ugly", None, "patch: {}");
        refused(
            world,
            "patch",
            &["the code of a check of patches", "ugly"],
            said,
        );
    });
    tell(SOLO, |world| {
        begun(world);
        let said = iterated::rejected("it-1", "dev", "P1", None, "patch: {}");
        refused(
            world,
            "patch",
            &["a candidate at every stage but schema"],
            said,
        );
    });
}

#[test]
fn a_program_names_its_model_and_prompt() {
    tell(SOLO, |world| {
        begun(world);
        let Payload::PatchProposed(mut said) = proposed("it-1", iterated::PATCH) else {
            panic!("it is a proposal");
        };
        said.author_kind = AuthorKind::Llm;
        let wording = ["model and prompt_digest for author_kind llm"];
        refused(world, "patch", &wording, (*said).into());
    });
}
