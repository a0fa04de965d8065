//! Rules of the assumptions ledger and of reads, as stories: `sdp`, `waiver`, `blocked`, `access`, and what a peek
//! is paid from.

use clover::event::Payload;
use clover::event::id::EventId;
use clover::event::payload::Role;
use clover::event::payload::custody::Separation;
use clover::event::registry;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::Start;
use super::world::World;
use super::world::tell;
use crate::support::key_added;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");
const LATER: &str = "2027-06-01T00:00:00.000000Z";

fn owner() -> Signer {
    signer(1)
}

fn second() -> Signer {
    signer(3)
}

fn payload(kind: &str, data: &Value) -> Payload {
    let (payload, _) = registry::decode(kind, 1, &data.to_string())
        .unwrap_or_else(|error| panic!("{error}: {data}"));
    payload
}

/// An experiment, and a second approver.
fn begin(world: &mut dyn World) {
    let data = json!({"purpose": "testing", "title": "Experiment"});
    world.say(&owner(), payload("experiment.registered", &data), EXP);
    let added = key_added(&second(), "Bo", &[Role::Approver, Role::Steward]);
    world.say(&owner(), added.into(), None);
}

fn digest() -> String {
    "ab".repeat(32)
}

fn sdp(version: &str, effective_at: &str) -> Payload {
    let data = json!({
        "document": digest(), "effective_at": effective_at, "sdp_version": version, "target": "Y",
    });
    payload("sdp.version_registered", &data)
}

fn bridge(version: &str, kind: &str, status: &str) -> Value {
    json!({
        "document": digest(), "expires_at": LATER, "kind": kind, "sdp_version": version, "status": status,
    })
}

fn assessed(data: &Value) -> Payload {
    payload("bridge.assessed", data)
}

fn waived(code: &str, until: &str) -> Payload {
    let data = json!({"code": code, "expires_at": until, "reason": "one environment"});
    payload("assumption.waived", &data)
}

fn agreed(waiver: EventId) -> Payload {
    payload(
        "assumption.countersigned",
        &json!({"waiver": waiver.to_string()}),
    )
}

fn design(name: &str, protocol: &str) -> Payload {
    let data = json!({
        "design": name, "inclusion_micro": 500_000, "protocol": protocol, "purpose": "calibrate",
    });
    payload("label.design_registered", &data)
}

fn score(item: &str, micro: i64) -> Payload {
    let data = json!({
        "draw": 0, "item": item, "judge": "judge-1", "policy": "base", "score_micro": micro,
    });
    payload("score.recorded", &data)
}

fn conflict(recorded: EventId, was: i64, now: i64) -> Payload {
    let data = json!({
        "draw": 0, "item": "a", "judge": "judge-1", "policy": "base", "recorded": recorded.to_string(),
        "recorded_micro": was, "score_micro": now,
    });
    payload("score.conflict", &data)
}

/// Each payload is refused after `before`, by its rule and in these words.
fn each(before: impl Fn(&mut dyn World), stories: &[(&str, &[&str], Payload, Option<&str>)]) {
    for (rule, wording, payload, experiment) in stories {
        tell(SOLO, |world| {
            before(world);
            world.refuse_saying(rule, wording, &owner(), payload.clone(), *experiment);
        });
    }
}

#[test]
fn a_bridge_is_of_the_newest_protocol_and_signed_by_a_person() {
    let told = |world: &mut dyn World| {
        begin(world);
        world.say(&owner(), sdp("sdp-1", "2026-01-01T00:00:00.000000Z"), None);
        world.say(&owner(), sdp("sdp-2", "2026-01-01T00:00:00.000000Z"), None);
        world.say(&owner(), assessed(&bridge("sdp-2", "pte", "pass")), None);
    };
    let mut late = bridge("sdp-2", "pte", "pass");
    late["expires_at"] = "2020-01-01T00:00:00.000000Z".into();
    let mut crossed = bridge("sdp-2", "pte", "pass");
    crossed["ci_lo"] = json!(0.75);
    crossed["ci_hi"] = json!(0.5);
    crossed["estimate"] = json!(0.625);
    let mut half = bridge("sdp-2", "pte", "pass");
    half["ci_lo"] = json!(0.5);
    each(
        told,
        &[
            (
                "sdp",
                &["the newest protocol, sdp-2", "sdp-1"],
                assessed(&bridge("sdp-1", "pte", "pass")),
                None,
            ),
            ("sdp", &["an end after"], assessed(&late), None),
            ("sdp", &["ascending order"], assessed(&crossed), None),
            ("sdp", &["ascending order"], assessed(&half), None),
            ("natural_key", &[], sdp("sdp-1", LATER), None),
        ],
    );
    each(
        begin,
        &[(
            "sdp",
            &["a registered protocol", "sdp-1, not registered"],
            assessed(&bridge("sdp-1", "pte", "pass")),
            None,
        )],
    );
    tell(SOLO, |world| {
        told(world);
        let mut machine = key_added(&signer(5), "bot", &[Role::Approver, Role::Steward]);
        machine.human = false;
        world.say(&owner(), machine.into(), None);
        let bridge = assessed(&bridge("sdp-2", "pte", "pass"));
        world.refuse_saying(
            "sdp",
            &["a key that a person holds", "a machine's"],
            &signer(5),
            bridge,
            None,
        );
    });
}

#[test]
pub(super) fn people_label_by_the_protocol_in_force() {
    let told = |world: &mut dyn World| {
        begin(world);
        world.say(&owner(), sdp("sdp-1", "2026-01-01T00:00:00.000000Z"), None);
        world.say(&owner(), design("calib", "sdp-1"), EXP);
    };
    each(
        told,
        &[(
            "sdp",
            &["protocol sdp-1, in force since seq 3", "sdp-0"],
            design("late", "sdp-0"),
            EXP,
        )],
    );
    let label = payload(
        "label.recorded",
        &json!({
            "design": "calib", "draw": 0, "item": "a", "policy": "base", "purpose": "calibrate", "rater": "lena",
            "value_micro": 5,
        }),
    );
    // A protocol that is registered and not effective yet changes nothing; once effective, it does.
    tell(SOLO, |world| {
        told(world);
        world.say(&owner(), sdp("sdp-2", LATER), None);
        world.say(&owner(), label.clone(), EXP);
        world.set_clock(Timestamp::parse(LATER).unwrap());
        let Payload::LabelRecorded(mut other) = label.clone() else {
            unreachable!()
        };
        other.item = "b".parse().unwrap();
        let wording = ["a label of a design by protocol sdp-2", "a design by sdp-1"];
        world.refuse_saying("sdp", &wording, &owner(), (*other).into(), EXP);
    });
}

#[test]
fn two_keys_waive_what_may_be_waived() {
    let until = || LATER;
    each(
        begin,
        &[
            (
                "waiver",
                &["never waived", "H1"],
                waived("H1", until()),
                EXP,
            ),
            (
                "waiver",
                &["S2 of an experiment", "null"],
                waived("S2", until()),
                None,
            ),
            (
                "waiver",
                &["without an experiment", "exp-1"],
                waived("A0", until()),
                EXP,
            ),
            (
                "waiver",
                &["an end after"],
                waived("S2", "2020-01-01T00:00:00.000000Z"),
                EXP,
            ),
            (
                "waiver",
                &["waiting for a second key"],
                agreed(EventId(clover::ground::digest::Digest([1; 32]))),
                EXP,
            ),
        ],
    );
    // One key is not two.
    tell(SOLO, |world| {
        begin(world);
        let waiver = world.say(&owner(), waived("S2", until()), EXP);
        let wording = ["another key than the one that proposed it"];
        world.refuse_saying("waiver", &wording, &owner(), agreed(waiver), EXP);
    });
    // Only the newest proposal can be agreed to.
    tell(SOLO, |world| {
        begin(world);
        let old = world.say(&owner(), waived("S2", until()), EXP);
        world.say(&owner(), waived("S2", "2027-07-01T00:00:00.000000Z"), EXP);
        world.refuse_saying(
            "waiver",
            &["the newest waiver"],
            &second(),
            agreed(old),
            EXP,
        );
    });
    // What has ended cannot be agreed to; what was agreed to is not agreed to again.
    tell(SOLO, |world| {
        begin(world);
        let waiver = world.say(&owner(), waived("S2", until()), EXP);
        world.set_clock(Timestamp::parse(until()).unwrap());
        world.refuse_saying("waiver", &["not ended"], &second(), agreed(waiver), EXP);
    });
    tell(SOLO, |world| {
        begin(world);
        let waiver = world.say(&owner(), waived("S2", until()), EXP);
        world.say(&second(), agreed(waiver), EXP);
        let line = world.line(&second(), agreed(waiver), EXP);
        world.refuse_as("waiver", "natural_key", &["waiting"], &second(), line);
    });
    let strict = Start {
        separation: Separation::Strict,
        roles: &[Role::Owner, Role::Registrar, Role::Approver],
    };
    tell(strict, |world| {
        let data = json!({"purpose": "testing", "title": "Experiment"});
        world.say(&owner(), payload("experiment.registered", &data), EXP);
        let added = key_added(&second(), "Ada", &[Role::Approver]);
        world.say(&owner(), added.into(), None);
        let waiver = world.say(&owner(), waived("S2", until()), EXP);
        let wording = ["another holder", "Ada, who proposed it"];
        world.refuse_saying("waiver", &wording, &second(), agreed(waiver), EXP);
    });
}

#[test]
fn a_failed_bridge_and_a_contradiction_are_never_waived() {
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), sdp("sdp-1", "2026-01-01T00:00:00.000000Z"), None);
        // Stale may be waived; failed may not, not even by a second key that comes later.
        let waiver = world.say(&owner(), waived("A0", LATER), None);
        world.say(
            &owner(),
            assessed(&bridge("sdp-1", "construct", "fail")),
            None,
        );
        world.refuse_saying(
            "waiver",
            &["A0 that does not fail", "since seq 5"],
            &second(),
            agreed(waiver),
            None,
        );
    });
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), sdp("sdp-1", "2026-01-01T00:00:00.000000Z"), None);
        world.say(
            &owner(),
            assessed(&bridge("sdp-1", "construct", "fail")),
            None,
        );
        world.refuse_saying(
            "waiver",
            &["never waived", "since seq 4"],
            &owner(),
            waived("A0", LATER),
            None,
        );
    });
    tell(SOLO, |world| {
        begin(world);
        let scored = world.say(&owner(), score("a", 5), EXP);
        world.say(&owner(), conflict(scored, 5, 6), EXP);
        let wording = ["CLOVER.J2 that does not fail", "since seq 4"];
        world.refuse_saying(
            "waiver",
            &wording,
            &owner(),
            waived("CLOVER.J2", LATER),
            EXP,
        );
    });
}

#[test]
pub(super) fn a_contradicting_judge_blocks_governed_steps_and_nothing_else() {
    let told = |world: &mut dyn World| {
        begin(world);
        let scored = world.say(&owner(), score("a", 5), EXP);
        world.say(&owner(), conflict(scored, 5, 6), EXP);
    };
    let listed = payload(
        "splits.listed",
        &json!({"clusters": ["a"], "first": 0, "part": "fit", "split": "split-1"}),
    );
    let planned =
        crate::support::planned::registered(&crate::support::planned::audits("exp-1", "m-1"));
    let wording: &[&str] = &[
        "close exp-1 and register another",
        "CLOVER.J2 fail since the score.conflict at seq 4",
    ];
    each(
        told,
        &[
            ("blocked", wording, listed, EXP),
            ("blocked", wording, planned, EXP),
        ],
    );
    // What is only recorded goes on, and the experiment can be closed.
    tell(SOLO, |world| {
        told(world);
        world.say(&owner(), score("b", 7), EXP);
        let closed = json!({"outcome": "aborted", "reason": "the judge contradicted itself"});
        world.say(&owner(), payload("experiment.closed", &closed), EXP);
        world.refuse_saying("experiment", &["closed"], &owner(), score("c", 7), EXP);
    });
}

#[test]
fn a_conflict_says_what_the_event_it_names_recorded() {
    tell(SOLO, |world| {
        begin(world);
        let scored = world.say(&owner(), score("a", 5), EXP);
        let wording = ["the recorded number of the event it names", "seq 3"];
        world.refuse_saying(
            "score_once",
            &wording,
            &owner(),
            conflict(scored, 4, 6),
            EXP,
        );
    });
    // An event that is no score recorded none.
    tell(SOLO, |world| {
        begin(world);
        let note = world.say(
            &owner(),
            payload("note.recorded", &json!({"text": "hello"})),
            None,
        );
        world.say(&owner(), score("a", 0), EXP);
        world.refuse_saying(
            "score_once",
            &["another number or none"],
            &owner(),
            conflict(note, 0, 6),
            EXP,
        );
    });
}

#[test]
pub(super) fn a_read_names_a_live_key_and_a_role_that_it_holds() {
    let read = |reader: &Signer, role: Option<&str>| {
        let mut data = json!({
            "class": "label", "outcome": "allowed", "purpose": "to look", "reader": reader.id().to_string(),
        });
        if let Some(role) = role {
            data["role"] = role.into();
        }
        payload("data.read", &data)
    };
    each(
        begin,
        &[
            (
                "access",
                &["a reader with a live key"],
                read(&signer(9), None),
                EXP,
            ),
            (
                "access",
                &["approver, steward", "labeler"],
                read(&second(), Some("labeler")),
                EXP,
            ),
        ],
    );
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), read(&second(), Some("steward")), EXP);
        let retired = json!({"key_id": second().id().to_string(), "reason": "left"});
        world.say(&owner(), payload("key.retired", &retired), None);
        world.refuse_saying(
            "access",
            &["unknown or ended"],
            &owner(),
            read(&second(), None),
            EXP,
        );
    });
}

#[test]
fn clusters_are_listed_where_the_hash_puts_them() {
    // source: int.from_bytes(hashlib.blake2b(f"{id}-{seed}-{m}".encode(), digest_size=8).digest(), "big") % m
    // for seed 231: item-a fit, item-d dev, item-e and item-f confirm.
    let listed = |part: &str, cluster: &str, separation: &str| {
        let by = json!({"cluster_rule": "blake2b-mod3/1", "seed": 231, "separation": separation});
        let data = json!({
            "by": by, "clusters": [cluster], "first": 0, "part": part, "split": "split-1",
        });
        payload("splits.listed", &data)
    };
    let told = |world: &mut dyn World| {
        begin(world);
        world.say(&owner(), listed("fit", "item-a", "hashed"), EXP);
    };
    let mut without =
        json!({"clusters": ["item-d"], "first": 0, "part": "dev", "split": "split-1"});
    let formed = |seed: u64, root: &str| {
        let empty = json!({"count": 0, "root": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="});
        let data = json!({
            "cluster_rule": "blake2b-mod3/1", "confirm": empty, "dev": empty,
            "fit": {"count": 1, "root": root}, "gap": "not_checked", "seed": seed, "separation": "hashed",
            "split": "split-1",
        });
        payload("splits.formed", &data)
    };
    let root = clover::workflow::split::root(&["item-a".parse().unwrap()])
        .root
        .0
        .to_base64();
    each(
        told,
        &[
            (
                "split",
                &["seed 231 puts into dev", "item-e"],
                listed("dev", "item-e", "hashed"),
                EXP,
            ),
            (
                "split",
                &["seed 231 puts into confirm", "item-d"],
                listed("confirm", "item-d", "hashed"),
                EXP,
            ),
            (
                "split",
                &["listings by seed 231"],
                payload("splits.listed", &without),
                EXP,
            ),
            (
                "split",
                &["seed 231, separation hashed, as listed"],
                formed(7, &root),
                EXP,
            ),
        ],
    );
    without["clusters"] = json!(["item-e"]);
    // Without a rule nobody can tell; where confirm is a later block, the hash does not choose it.
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), payload("splits.listed", &without), EXP);
        let wording = ["listings without a rule"];
        world.refuse_saying(
            "split",
            &wording,
            &owner(),
            listed("fit", "item-a", "hashed"),
            EXP,
        );
    });
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), listed("confirm", "item-a", "time"), EXP);
        world.refuse_saying(
            "split",
            &["into fit", "item-d"],
            &owner(),
            listed("fit", "item-d", "time"),
            EXP,
        );
    });
    tell(SOLO, |world| {
        told(world);
        world.say(&owner(), formed(231, &root), EXP);
        let wording = ["formed at seq 4"];
        world.refuse_saying(
            "split",
            &wording,
            &owner(),
            listed("dev", "item-d", "hashed"),
            EXP,
        );
    });
}
