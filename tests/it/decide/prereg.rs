//! Pre-registration: one story for each way to break a rule.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::custody::Separation;
use clover::event::payload::prereg::FamilyOpened;
use clover::event::payload::prereg::ManifestRegistered;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::rules::charged_seal;
use super::rules::revealed;
use super::world::SOLO;
use super::world::Start;
use super::world::World;
use super::world::tell;
use crate::support::ORIGIN;
use crate::support::key_added;
use crate::support::planned;
use crate::support::planned::amended;
use crate::support::planned::countersigned;
use crate::support::planned::exposed;
use crate::support::planned::next;
use crate::support::planned::registered;
use crate::support::score;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");
const STRICT: Start = Start {
    separation: Separation::Strict,
    roles: &[Role::Owner, Role::Registrar],
};

fn owner() -> Signer {
    signer(1)
}

fn custodian() -> Signer {
    signer(5)
}

/// Given: an experiment, a family and a custodian.
fn begin(world: &mut dyn World) {
    let key = key_added(&custodian(), "Cem", &[Role::Custodian]);
    world.say(&owner(), key.into(), None);
    world.say(&owner(), planned::experiment_registered(), EXP);
    world.say(&owner(), planned::family(), None);
}

/// Given: a gate's manifest in force.
fn in_force(world: &mut dyn World) -> Value {
    begin(world);
    let gate = planned::gate("exp-1", "m-1");
    world.say(&owner(), registered(&gate), EXP);
    world.say(&custodian(), countersigned(&gate), EXP);
    gate
}

/// Given: the same, and a first look.
fn looked(world: &mut dyn World) -> Value {
    let gate = in_force(world);
    world.say(&custodian(), exposed(&gate, 1, 0, 49), EXP);
    gate
}

/// Then: an owner's event in the experiment is refused.
fn refused(world: &mut dyn World, rule: &str, wording: &[&str], payload: Payload) {
    world.refuse_saying(rule, wording, &owner(), payload, EXP);
}

#[test]
fn manifest_by_itself() {
    let cases: &[(&str, Value, &str)] = &[
        (
            "/test/n_min",
            json!(90),
            "test.n_min: at most test.n_max 80",
        ),
        (
            "/test/n_max",
            json!(101),
            "test.n_max: at most data.n_units 100",
        ),
        (
            "/test/alpha_micro",
            json!(0),
            "test.alpha_micro: 1 to 999999",
        ),
        (
            "/test/look_at",
            json!([30, 30]),
            "looks from 20 to 80, ascending",
        ),
        ("/metric/scale_lo_micro", json!(1_000_000), "E_SCALE"),
        ("/estimand/population", json!("superpopulation"), "E_UNIT"),
        ("/test/without_replacement", json!(false), "E_UNIT"),
        (
            "/arms/1/role",
            json!("baseline"),
            "one baseline and at least one candidate",
        ),
        (
            "/template",
            json!("transport"),
            "section transport for template transport",
        ),
        ("/version", json!(2), "version 1 without parent_digest"),
        (
            "/experiment",
            json!("exp-2"),
            "an event of experiment exp-2",
        ),
        (
            "/supersedes",
            json!(Digest([1; 32]).to_hex()),
            "the digest of a registered version",
        ),
        (
            "/roles",
            json!({"registrar": custodian().id().to_string()}),
            "E_SIGNER_ROLE",
        ),
    ];
    for (path, value, wording) in cases {
        tell(SOLO, |world| {
            begin(world);
            let mut gate = planned::gate("exp-1", "m-1");
            let (parent, name) = path.rsplit_once('/').unwrap();
            let parent = gate.pointer_mut(parent).unwrap();
            match name.parse::<usize>() {
                Ok(at) => parent[at] = value.clone(),
                Err(_) => parent[name] = value.clone(),
            }
            refused(world, "manifest", &[wording], registered(&gate));
        });
    }
}

#[test]
fn manifest_sections_of_another_template() {
    tell(SOLO, |world| {
        begin(world);
        let mut audits = planned::audits("exp-1", "m-1");
        audits["test"] = planned::gate("exp-1", "m-1")["test"].clone();
        refused(
            world,
            "manifest",
            &["no section of template gate", "E_UNREGISTERED_RULE"],
            registered(&audits),
        );
    });
}

#[test]
fn manifest_digests() {
    for h0 in [false, true] {
        tell(SOLO, |world| {
            begin(world);
            let manifest = planned::manifest(&planned::gate("exp-1", "m-1"));
            let wrong = Digest([1; 32]);
            let payload = ManifestRegistered {
                digest: if h0 { manifest.digest() } else { wrong },
                h0_digest: if h0 { wrong } else { manifest.h0_digest() },
                manifest: Box::new(manifest),
            };
            let name = if h0 { "h0_digest" } else { "expected digest" };
            refused(world, "manifest", &[name], payload.into());
        });
    }
}

#[test]
fn manifest_names_are_used_once() {
    tell(SOLO, |world| {
        in_force(world);
        let other = planned::audits("exp-1", "m-1");
        refused(
            world,
            "manifest",
            &["not used yet", "m-1, registered at seq 4"],
            registered(&other),
        );
    });
}

/// A label that was sealed tells as much as another one once it is revealed.
#[test]
fn manifest_first_before_reveals() {
    for is_revealed in [false, true] {
        let told = |world: &mut dyn World| {
            let charge = charged_seal(world);
            if is_revealed {
                world.say(&owner(), revealed("row-1", charge, 500_000), EXP);
            }
            world.say(&owner(), planned::family(), None);
            let gate = planned::gate("exp-1", "m-1");
            if is_revealed {
                let words = ["readable label", "one at seq 6", "E_ADAPTIVE_REUSE"];
                refused(world, "manifest_first", &words, registered(&gate));
            } else {
                world.say(&owner(), registered(&gate), EXP);
                let mut other = gate.clone();
                other["title"] = "other words".into();
                refused(world, "manifest", &["not used yet"], registered(&other));
            }
        };
        tell(SOLO, told);
    }
}

#[test]
fn manifest_first_before_scores() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), score(1).payload, EXP);
        let gate = planned::gate("exp-1", "m-1");
        let words = [
            "before any score or readable label",
            "one at seq 4",
            "E_ADAPTIVE_REUSE",
        ];
        refused(world, "manifest_first", &words, registered(&gate));
    });
    // What is no gate may be registered after scores.
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), score(1).payload, EXP);
        world.say(&owner(), registered(&planned::audits("exp-1", "m-0")), EXP);
        refused(
            world,
            "manifest_first",
            &["one at seq 4"],
            registered(&planned::gate("exp-1", "m-1")),
        );
    });
}

#[test]
fn manifest_first_exposure_before_scores() {
    tell(SOLO, |world| {
        in_force(world);
        refused(
            world,
            "manifest_first",
            &["exposure.opened under gate manifest m-1", "E_EXPOSURE"],
            score(1).payload,
        );
    });
}

/// Another gate of the experiment was exposed, and its scores may be of these units too.
#[test]
fn manifest_first_before_what_is_tested_changes() {
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut other = planned::gate("exp-1", "m-2");
        other["data"]["confirm_root"] = json!(Digest::sha256(b"others").to_base64());
        world.say(&owner(), registered(&other), EXP);
        world.say(&custodian(), countersigned(&other), EXP);
        world.say(&custodian(), exposed(&first, 1, 0, 9), EXP);
        world.say(&owner(), score(1).payload, EXP);
        let mut second = next(&other, &other);
        second["title"] = "other words".into();
        world.say(&owner(), amended(&second, &other, 0), EXP);
        let mut third = next(&second, &second);
        third["arms"][1]["artifact_digest"] = Digest([9; 32]).to_hex().into();
        let words = ["before any score or readable label", "E_ADAPTIVE_REUSE"];
        let said = amended(&third, &second, 3);
        refused(world, "manifest_first", &words, said);
    });
}

#[test]
fn manifest_first_before_exposure() {
    tell(SOLO, |world| {
        begin(world);
        let gate = planned::gate("exp-1", "m-1");
        refused(
            world,
            "manifest_first",
            &["registered before its exposure"],
            exposed(&gate, 1, 0, 9),
        );
    });
}

#[test]
fn manifest_first_on_units_that_nobody_has_seen() {
    tell(SOLO, |world| {
        let gate = looked(world);
        let mut audits = planned::audits("exp-1", "m-2");
        audits["data"] = gate["data"].clone();
        refused(
            world,
            "manifest_first",
            &["nobody has seen", "E_ADAPTIVE_REUSE"],
            registered(&audits),
        );
    });
}

#[test]
fn amendment_parent_is_in_force_and_versions_follow_each_other() {
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut second = next(&first, &first);
        second["title"] = "other".into();
        world.say(&owner(), amended(&second, &first, 0), EXP);
        let mut third = next(&first, &first);
        third["version"] = 3.into();
        third["title"] = "third".into();
        refused(
            world,
            "amendment",
            &["parent_digest", "in force"],
            amended(&third, &first, 0),
        );
    });
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut third = next(&first, &first);
        third["version"] = 3.into();
        third["title"] = "third".into();
        refused(
            world,
            "amendment",
            &["version 2", "version 3"],
            amended(&third, &first, 0),
        );
    });
    tell(SOLO, |world| {
        begin(world);
        let first = planned::audits("exp-1", "m-9");
        let second = next(&first, &first);
        refused(
            world,
            "amendment",
            &["a registered manifest", "m-9, not registered"],
            amended(&second, &first, 0),
        );
    });
}

#[test]
fn amendment_class_is_recomputed() {
    for (path, value, class) in [
        ("/title", json!("other"), 0),
        ("/test/n_min", json!(10), 1),
        ("/test/alpha_micro", json!(20_000), 1),
        ("/test/n_max", json!(70), 1),
        ("/test/n_max", json!(90), 2),
        ("/test/bettor/grid", json!(30), 2),
        ("/metric/judge_digest", json!(Digest([1; 32]).to_hex()), 3),
        ("/data/n_units", json!(200), 3),
    ] {
        for claimed in (0..=4).filter(|claimed| *claimed != class) {
            tell(SOLO, |world| {
                let first = in_force(world);
                let mut second = next(&first, &first);
                *second.pointer_mut(path).unwrap() = value.clone();
                let words = [
                    format!("expected class {class}"),
                    format!("found class {claimed}"),
                ];
                let words = [words[0].as_str(), words[1].as_str()];
                refused(
                    world,
                    "amendment",
                    &words,
                    amended(&second, &first, claimed),
                );
            });
        }
    }
}

#[test]
fn amendment_after_the_first_look() {
    tell(SOLO, |world| {
        let first = looked(world);
        let mut second = next(&first, &first);
        second["test"]["alpha_micro"] = 50_000.into();
        let words = [
            "class 0 or 2 after the first look at seq 6",
            "test.alpha_micro (E_ALPHA)",
        ];
        refused(world, "amendment", &words, amended(&second, &first, 1));
    });
    tell(SOLO, |world| {
        let first = looked(world);
        let mut second = next(&first, &first);
        second["test"]["n_max"] = 90.into();
        world.say(&owner(), amended(&second, &first, 2), EXP);
        let mut third = next(&second, &second);
        third["metric"]["direction"] = "decrease".into();
        let words = [
            "after the first look",
            "a new manifest with supersedes",
            "metric.direction (E_DIRECTION)",
        ];
        refused(world, "amendment", &words, amended(&third, &second, 3));
    });
}

#[test]
fn amendment_keeps_names() {
    tell(SOLO, |world| {
        let first = planned::audits("exp-1", "m-1");
        begin(world);
        world.say(&owner(), registered(&first), EXP);
        let mut second = next(&first, &first);
        second["supersedes"] = Digest([1; 32]).to_hex().into();
        refused(
            world,
            "amendment",
            &["supersedes none, which no amendment changes"],
            amended(&second, &first, 3),
        );
    });
}

#[test]
fn stale_version() {
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut second = next(&first, &first);
        second["title"] = "other".into();
        world.say(&owner(), amended(&second, &first, 0), EXP);
        let words = ["version 2 in force", "E_STALE_VERSION"];
        world.refuse_saying(
            "stale_version",
            &words,
            &custodian(),
            exposed(&first, 1, 0, 9),
            EXP,
        );
    });
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut second = next(&first, &first);
        second["title"] = "other".into();
        world.say(&owner(), amended(&second, &first, 0), EXP);
        refused(
            world,
            "stale_version",
            &["E_STALE_VERSION"],
            planned::deviated(&first),
        );
    });
    // A superseded manifest is over.
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut other = planned::gate("exp-1", "m-2");
        other["supersedes"] = planned::manifest(&first).digest().to_hex().into();
        world.say(&owner(), registered(&other), EXP);
        let words = ["a manifest in force", "m-2 superseded"];
        world.refuse_saying(
            "stale_version",
            &words,
            &custodian(),
            exposed(&first, 1, 0, 9),
            EXP,
        );
    });
}

#[test]
fn countersign() {
    tell(SOLO, |world| {
        begin(world);
        let gate = planned::gate("exp-1", "m-1");
        world.say(&owner(), registered(&gate), EXP);
        let words = ["countersigned", "m-1, not countersigned"];
        world.refuse_saying(
            "countersign",
            &words,
            &custodian(),
            exposed(&gate, 1, 0, 9),
            EXP,
        );
    });
    // Two keys, even where one person may hold both.
    tell(SOLO, |world| {
        begin(world);
        let gate = planned::gate("exp-1", "m-1");
        world.say(&owner(), registered(&gate), EXP);
        refused(
            world,
            "countersign",
            &["another key than the registrar's"],
            countersigned(&gate),
        );
    });
    tell(SOLO, |world| {
        begin(world);
        let audits = planned::audits("exp-1", "m-1");
        world.say(&owner(), registered(&audits), EXP);
        refused(
            world,
            "countersign",
            &["binds confirm data"],
            countersigned(&audits),
        );
    });
    tell(STRICT, |world| {
        let second = signer(6);
        let key = key_added(&second, "Ada", &[Role::Custodian]);
        world.say(&owner(), key.into(), None);
        begin(world);
        let gate = planned::gate("exp-1", "m-1");
        world.say(&owner(), registered(&gate), EXP);
        let words = ["another holder", "Ada, who registered it"];
        world.refuse_saying("countersign", &words, &second, countersigned(&gate), EXP);
    });
}

#[test]
fn family() {
    let begun = |world: &mut dyn World| {
        in_force(world);
        let mut second = planned::gate("exp-1", "m-2");
        second["data"]["confirm_root"] = Digest([2; 32]).to_base64().into();
        second
    };
    tell(SOLO, |world| {
        let mut second = begun(world);
        second["test"]["alpha_micro"] = 25_001.into();
        let words = [
            "at most alpha_micro 25000 left in primary",
            "25001 (E_FAMILY_BUDGET)",
        ];
        refused(world, "family", &words, registered(&second));
    });
    tell(SOLO, |world| {
        let mut second = begun(world);
        second["multiplicity"]["family"] = "other".into();
        refused(
            world,
            "family",
            &["an open family", "other, never opened"],
            registered(&second),
        );
    });
    tell(SOLO, |world| {
        let mut second = begun(world);
        second["multiplicity"]["family_alpha_micro"] = 60_000.into();
        refused(
            world,
            "family",
            &["spend at 50000, as primary was opened"],
            registered(&second),
        );
    });
    tell(SOLO, |world| {
        let mut second = begun(world);
        for name in ["m-2", "m-3"] {
            second["manifest"] = name.into();
            second["test"]["alpha_micro"] = 1.into();
            world.say(&owner(), registered(&second), EXP);
        }
        second["manifest"] = "m-4".into();
        refused(
            world,
            "family",
            &["at most 3 members of primary"],
            registered(&second),
        );
    });
    // Membership is fixed at registration.
    tell(SOLO, |world| {
        let first = in_force(world);
        let mut second = next(&first, &first);
        second["multiplicity"]["family"] = "other".into();
        refused(
            world,
            "family",
            &["membership is fixed at registration"],
            amended(&second, &first, 3),
        );
    });
}

#[test]
fn family_opened() {
    let opened = || {
        let Payload::FamilyOpened(opened) = planned::family() else {
            panic!("a family");
        };
        FamilyOpened {
            family: "second".parse().unwrap(),
            ..*opened
        }
    };
    let micro = |value| Micro::new(value).unwrap();
    let elond = clover::event::payload::manifest::FamilyMethod::Elond;
    let cases: [(FamilyOpened, &str); 4] = [
        (
            FamilyOpened {
                alpha_micro: micro(0),
                ..opened()
            },
            "alpha_micro 1 to 999999",
        ),
        (
            FamilyOpened {
                members_max: Count::new(0).unwrap(),
                ..opened()
            },
            "members_max of at least 1",
        ),
        (
            FamilyOpened {
                method: elond,
                ..opened()
            },
            "gamma_micro for elond",
        ),
        (
            FamilyOpened {
                gamma_micro: Some(vec![micro(600_000), micro(600_000)]),
                method: elond,
                ..opened()
            },
            "together at most 1000000",
        ),
    ];
    for (opened, wording) in cases {
        tell(SOLO, |world| {
            world.refuse_saying("family", &[wording], &owner(), opened.clone().into(), None);
        });
    }
}

#[test]
fn exposure() {
    let cases: &[(u64, u64, u64, &str)] = &[
        (2, 50, 100, "units from 50 to at most 99"),
        (2, 51, 60, "units from 50 to at most 99"),
        (2, 40, 60, "units from 50 to at most 99"),
        (2, 60, 50, "units from 50 to at most 99"),
        (3, 50, 60, "exposure 2 of at most 2"),
    ];
    for (number, from, to, wording) in cases {
        tell(SOLO, |world| {
            let gate = looked(world);
            let payload = exposed(&gate, *number, *from, *to);
            world.refuse_saying(
                "exposure",
                &[wording, "E_EXPOSURE"],
                &custodian(),
                payload,
                EXP,
            );
        });
    }
    tell(SOLO, |world| {
        let gate = looked(world);
        world.say(&custodian(), exposed(&gate, 2, 50, 60), EXP);
        let words = ["exposure 3 of at most 2"];
        world.refuse_saying(
            "exposure",
            &words,
            &custodian(),
            exposed(&gate, 3, 61, 62),
            EXP,
        );
    });
    tell(SOLO, |world| {
        let mut gate = in_force(world);
        let mut other = exposed(&gate, 1, 0, 9);
        gate["data"]["confirm_root"] = Digest([3; 32]).to_base64().into();
        if let (Payload::ExposureOpened(other), Payload::ExposureOpened(wrong)) =
            (&mut other, exposed(&gate, 1, 0, 9))
        {
            other.confirm_root = wrong.confirm_root;
        }
        world.refuse_saying(
            "exposure",
            &["confirm_root", "E_DATA_ROOT"],
            &custodian(),
            other,
            EXP,
        );
    });
    for (field, value, wording) in [
        (
            "embargo_until",
            json!("2027-01-01T00:00:00.000000Z"),
            "embargo",
        ),
        (
            "must_start_before",
            json!("2026-01-01T00:00:00.000000Z"),
            "a start before 2026",
        ),
        ("must_start_before_seq", json!(3), "a start below seq 3"),
    ] {
        tell(SOLO, |world| {
            begin(world);
            let mut gate = planned::gate("exp-1", "m-1");
            gate["expiry"] = json!({field: value});
            world.say(&owner(), registered(&gate), EXP);
            world.say(&custodian(), countersigned(&gate), EXP);
            world.refuse_saying(
                "exposure",
                &[wording],
                &custodian(),
                exposed(&gate, 1, 0, 9),
                EXP,
            );
        });
    }
}

#[test]
fn plan() {
    let salt = [9; 32];
    tell(SOLO, |world| {
        looked(world);
        let sealed = planned::plan_sealed(ORIGIN, "m-1", salt, planned::PLAN);
        refused(world, "plan", &["before the first look", "seq 6"], sealed);
    });
    tell(SOLO, |world| {
        in_force(world);
        world.say(
            &owner(),
            planned::plan_sealed(ORIGIN, "m-1", [8; 32], planned::PLAN),
            EXP,
        );
        // The blob is not there for the forged ledger only, so the salt is wrong in place of the plan.
        let revealed = planned::plan_revealed("m-1", salt, planned::PLAN);
        world.refuse_as(
            "plan",
            "plan",
            &["what opens to"],
            &owner(),
            world.line(&owner(), revealed, EXP),
        );
    });
    tell(SOLO, |world| {
        in_force(world);
        refused(
            world,
            "plan",
            &["a manifest of this experiment"],
            planned::plan_sealed(ORIGIN, "m-7", salt, b"x"),
        );
    });
}

#[test]
fn deviations_name_a_manifest_of_their_experiment() {
    tell(SOLO, |world| {
        begin(world);
        let gate = planned::gate("exp-1", "m-1");
        refused(
            world,
            "manifest",
            &["the digest of a manifest of this experiment"],
            planned::deviated(&gate),
        );
    });
}
