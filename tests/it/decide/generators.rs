//! Runs of generators: one story for each way to break the rule.

use clover::event::Payload;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::releases::accepted;
use super::releases::edited;
use super::releases::said;
use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::deployed;
use crate::support::iterated;
use crate::support::planned;
use crate::support::signer;
use crate::support::tuned;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn refused(world: &mut dyn World, wording: &[&str], payload: Payload) {
    world.refuse_saying("generator", wording, &owner(), payload, EXP);
}

fn plan() -> Value {
    let mut plan = iterated::plan("exp-1", "m-it");
    let cells = plan["iteration"]["design"]["slices"][0]["cells"].as_array_mut();
    for cell in cells.unwrap() {
        cell["stakes_micro"] = 100_000.into();
    }
    plan
}

/// Given: the first rubric runs; gives its deployment.
fn running(world: &mut dyn World) -> String {
    let [model, rows] = deployed::blobs();
    world.put_blobs(&[model, rows]);
    let stage = accepted(world, 100_000);
    said(world, deployed::fitted());
    let base = (stage.rubric.as_str(), "1.0");
    said(
        world,
        deployed::activated(base, &deployed::base_hash(), None),
    )
}

fn open(run: &str, runs: &str) -> Payload {
    tuned::opened(run, runs, &deployed::base_hash())
}

fn labelled(world: &mut dyn World, design: &str) {
    said(world, tuned::design(design));
    for label in tuned::labels(design) {
        said(world, label);
    }
}

type Edit = fn(&mut Value);

#[test]
fn a_run_freezes_what_runs() {
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["deployment"] = "7".repeat(64).into(),
            &["the running deployment of exp-1", "7777"],
        ),
        (
            |data| data["rubric_hash"] = "7".repeat(64).into(),
            &["rubric_hash ", "7777"],
        ),
        (
            |data| data["calibrator"] = "8".repeat(64).into(),
            &["calibrator ", "8888"],
        ),
        (
            |data| data["frozen"] = "8".repeat(64).into(),
            &["frozen 0707", "8888"],
        ),
        (
            |data| data["new"] = "base".into(),
            &["two policies", "base twice"],
        ),
        (|data| data["steps"] = 0.into(), &["1 to 10000 steps", "0"]),
        (
            |data| data["stakes_micro"] = 1_000_001.into(),
            &["stakes from 0 to 1", "1.000001"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let runs = running(world);
            refused(world, wording, edited(&open("tune-1", &runs), edit));
        });
    }
    tell(SOLO, |world| {
        let runs = running(world);
        said(world, open("tune-1", &runs));
        let wording = [
            "every run before to be validated or rolled back",
            "tune-1, open",
        ];
        let second = open("tune-2", &runs);
        refused(world, &wording, second);
    });
}

#[test]
fn a_run_asks_no_more_than_it_registered() {
    tell(SOLO, |world| {
        running(world);
        let wording = ["a generator.run_opened of exp-1", "tune-1"];
        refused(world, &wording, tuned::asked("tune-1", 1));
    });
    let cases: &[(Edit, &[&str])] = &[
        (|data| data["step"] = 2.into(), &["step 1", "2"]),
        (
            |data| data["frozen"] = "8".repeat(64).into(),
            &["frozen 0707", "8888"],
        ),
        (
            |data| data["policy"] = "base".into(),
            &["outputs of another policy than the old", "base"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let runs = running(world);
            said(world, open("tune-1", &runs));
            refused(world, wording, edited(&tuned::asked("tune-1", 1), edit));
        });
    }
    tell(SOLO, |world| {
        let runs = running(world);
        said(world, open("tune-1", &runs));
        said(world, tuned::asked("tune-1", 1));
        let wording = ["a step left of tune-1", "1 of 1 asked"];
        refused(world, &wording, tuned::asked("tune-1", 2));
    });
}

#[test]
fn a_validation_stands_on_labels_younger_than_the_run_and_on_its_numbers() {
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["design"] = "early".into(),
            &[
                "80 open labels of early, for audits and registered after seq",
                "0",
            ],
        ),
        (
            |data| data["compared"]["new"]["rows"] = 41.into(),
            &["81 open labels of ab-1", "80"],
        ),
        (
            |data| data["compared"]["lower"] = json!(-0.001),
            &["gain fail", "pass"],
        ),
        (
            |data| {
                data["compared"].as_object_mut().unwrap().remove("lower");
            },
            &["gain inconclusive", "pass"],
        ),
        (
            |data| data["transport"]["environments"][0]["p"] = json!(0.01),
            &["transport fail", "pass"],
        ),
        (
            |data| {
                data.as_object_mut().unwrap().remove("battery");
            },
            &["battery not_checked", "pass"],
        ),
        (
            |data| {
                data.as_object_mut().unwrap().remove("battery");
                data["verdicts"]["battery"] = "not_checked".into();
            },
            &["verdict not_checked", "pass"],
        ),
        (|data| data["steps"] = 1.into(), &["steps 0", "1"]),
        (
            |data| data["thresholds"]["q_micro"] = 10_000.into(),
            &["the thresholds of the plan", "others"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            let runs = running(world);
            labelled(world, "early");
            said(world, open("tune-1", &runs));
            labelled(world, "ab-1");
            let better = tuned::validated(&plan(), ("tune-1", "ab-1"), 0, 0.01);
            refused(world, wording, edited(&better, edit));
        });
    }
}

#[test]
fn what_does_not_pass_is_rolled_back_before_another_run() {
    let failed = |world: &mut dyn World| {
        let runs = running(world);
        said(world, open("tune-1", &runs));
        labelled(world, "ab-1");
        let none = tuned::validated(&plan(), ("tune-1", "ab-1"), 0, -0.01);
        (runs, said(world, none))
    };
    tell(SOLO, |world| {
        let (runs, _) = failed(world);
        let wording = [
            "every run before to be validated or rolled back",
            "tune-1, rollback due",
        ];
        let second = open("tune-2", &runs);
        refused(world, &wording, second);
    });
    tell(SOLO, |world| {
        failed(world);
        let wording = ["validation ", "none"];
        refused(world, &wording, tuned::back("tune-1", None));
    });
    tell(SOLO, |world| {
        let (_, none) = failed(world);
        let other = edited(&tuned::back("tune-1", Some(&none)), |data| {
            data["restored"] = "tuned".into();
        });
        refused(world, &["restored base", "tuned"], other);
    });
    tell(SOLO, |world| {
        let (runs, none) = failed(world);
        said(world, tuned::back("tune-1", Some(&none)));
        said(world, open("tune-2", &runs));
        let wording = ["a run that is open", "tune-1, rolled back"];
        refused(world, &wording, tuned::asked("tune-1", 1));
    });
}

#[test]
fn a_new_protocol_ends_what_was_frozen() {
    let replaced = |world: &mut dyn World| {
        let data = json!({
            "document": "7".repeat(64), "effective_at": "2026-01-01T00:00:00.000000Z",
            "sdp_version": "v2", "target": "Y",
        });
        let new = planned::payload("sdp.version_registered", &data);
        world.say(&owner(), new, None);
    };
    let wording = ["a deployment by protocol v2", "v1.0_2025-11-11"];
    tell(SOLO, |world| {
        let runs = running(world);
        replaced(world);
        refused(world, &wording, open("tune-1", &runs));
    });
    tell(SOLO, |world| {
        let runs = running(world);
        said(world, open("tune-1", &runs));
        replaced(world);
        refused(world, &wording, tuned::asked("tune-1", 1));
    });
}
