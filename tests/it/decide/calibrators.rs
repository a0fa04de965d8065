//! Calibrators of an iteration: one of the rubric in force, then one of each candidate, and every gate compares these.

use clover::event::Payload;
use clover::ground::digest::Digest;
use serde_json::Value;

use super::decisions::attacked;
use super::decisions::begun;
use super::decisions::refused;
use super::decisions::said;
use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::calibrated::fitted;
use crate::support::calibrated::gate;
use crate::support::calibrated::patch;
use crate::support::decided;
use crate::support::iterated;
use crate::support::planned;
use crate::support::valued;

fn base() -> Digest {
    iterated::rubric().hash()
}

fn edited(payload: &Payload, edit: impl FnOnce(&mut Value)) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    edit(&mut data);
    planned::payload(payload.kind().as_str(), &data)
}

/// Given: an open iteration, and the blobs that fits name.
fn opened(world: &mut dyn World) -> Value {
    let plan = begun(world);
    world.put_blobs(&[valued::MODEL, valued::ROWS]);
    plan
}

/// Given: both calibrators of a patch were fitted, and its battery was run.
fn compared(world: &mut dyn World) -> (Value, Digest) {
    let plan = opened(world);
    said(world, fitted(7, None, base()));
    said(world, decided::audited());
    said(world, decided::classified());
    said(world, patch());
    let (hash, result, _) = decided::patch_of(&patch());
    said(world, fitted(8, Some(hash), result));
    attacked(world, &[hash], &[patch()]);
    (plan, hash)
}

#[test]
fn each_calibrator_of_an_iteration_is_fitted_once_and_in_its_place() {
    let later = |payload: &Payload| edited(payload, |data| data["through_seq"] = 10.into());
    tell(SOLO, |world| {
        opened(world);
        said(world, fitted(7, None, base()));
        let wording = ["one calibrator of each candidate", "0707"];
        refused(
            world,
            "predicate",
            &wording,
            later(&fitted(9, None, base())),
        );
    });
    tell(SOLO, |world| {
        opened(world);
        let wording = ["rubric_hash ", "0303"];
        refused(
            world,
            "predicate",
            &wording,
            fitted(7, None, Digest([3; 32])),
        );
    });
    tell(SOLO, |world| {
        opened(world);
        said(world, decided::audited());
        said(world, decided::classified());
        let wording = [
            "an audit before slices were classified",
            "classified and frozen",
        ];
        refused(world, "predicate", &wording, fitted(7, None, base()));
    });
    tell(SOLO, |world| {
        opened(world);
        let wording = ["the calibrator of the rubric in force first", "none"];
        let early = fitted(8, Some(Digest([4; 32])), Digest([3; 32]));
        refused(world, "predicate", &wording, early);
    });
    tell(SOLO, |world| {
        compared(world);
        let stranger = fitted(9, Some(Digest([4; 32])), Digest([3; 32]));
        let wording = ["a patch that stands, or a composite of two", "0404"];
        refused(world, "predicate", &wording, stranger);
    });
    tell(SOLO, |world| {
        let (_, hash) = compared(world);
        let again = later(&fitted(9, Some(hash), Digest([3; 32])));
        let wording = ["one calibrator of each candidate", "0808"];
        refused(world, "predicate", &wording, again);
    });
    tell(SOLO, |world| {
        let (_, hash) = compared(world);
        let late = decided::recomputed(hash, Digest([3; 32]));
        let wording = [
            "scores before the calibrator that is fitted on them",
            "0808",
        ];
        refused(world, "predicate", &wording, late);
    });
}

#[test]
fn a_gate_names_the_calibrators_that_it_compares_and_p7_its_battery() {
    type Edit = fn(&mut Value);
    let cases: &[(&str, Edit, &str, &[&str])] = &[
        (
            "p1",
            |data| data["calibrators"]["candidate"] = valued::digest(7),
            "predicate",
            &["calibrators 0707", "and 0808", "as fitted"],
        ),
        (
            "p1",
            |data| drop(data.as_object_mut().unwrap().remove("calibrators")),
            "predicate",
            &["calibrators 0707", "as fitted", "none"],
        ),
        (
            "p1",
            |data| data["battery"] = "5".repeat(64).into(),
            "battery",
            &["no battery behind p1"],
        ),
        (
            "p7",
            |data| drop(data.as_object_mut().unwrap().remove("battery")),
            "battery",
            &["battery ", "as recorded for the candidate", "none"],
        ),
        (
            "p7",
            |data| data["battery"] = "5".repeat(64).into(),
            "battery",
            &["as recorded for the candidate", "5555"],
        ),
    ];
    for (id, edit, rule, wording) in cases {
        tell(SOLO, |world| {
            let plan = opened(world);
            said(world, fitted(7, None, base()));
            said(world, decided::audited());
            said(world, decided::classified());
            said(world, patch());
            let (hash, result, _) = decided::patch_of(&patch());
            said(world, fitted(8, Some(hash), result));
            said(world, decided::judge());
            let battery = said(world, decided::battery(Some(hash), result, &[]));
            let good = gate(&plan, (hash, "dev", id), Some(&battery));
            refused(world, rule, wording, edited(&good, edit));
        });
    }
    // Where nobody attacked the candidate, p7 cannot say that somebody did.
    tell(SOLO, |world| {
        let plan = opened(world);
        said(world, fitted(7, None, base()));
        said(world, decided::audited());
        said(world, decided::classified());
        said(world, patch());
        let (hash, result, _) = decided::patch_of(&patch());
        said(world, fitted(8, Some(hash), result));
        let wording = ["battery.evaluated of the candidate before its p7", "none"];
        refused(
            world,
            "battery",
            &wording,
            gate(&plan, (hash, "dev", "p7"), None),
        );
    });
}
