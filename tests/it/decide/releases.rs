//! Approvals and prompt commits: one story for each way to break a rule.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::custody::Separation;
use clover::ground::sign::Signer;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::Start;
use super::world::World;
use super::world::tell;
use crate::support::decided;
use crate::support::iterated;
use crate::support::key_added;
use crate::support::planned;
use crate::support::released;
use crate::support::released::committed;
use crate::support::released::granted;
use crate::support::released::reviewed;
use crate::support::signer;

const EXP: Option<&str> = Some("exp-1");
pub const PETRA: u8 = 21;
const PAUL: u8 = 22;
const OPAL: u8 = 23;
const ROBOT: u8 = 24;
const AUDE: u8 = 26;

fn owner() -> Signer {
    signer(1)
}

pub fn said(world: &mut dyn World, payload: Payload) -> String {
    world.say(&owner(), payload, EXP).0.to_hex()
}

fn by(world: &mut dyn World, who: u8, payload: Payload) -> String {
    world.say(&signer(who), payload, EXP).0.to_hex()
}

fn key(world: &mut dyn World, who: u8, holder: &str, human: bool, roles: &[Role]) {
    let mut added = key_added(&signer(who), holder, roles);
    added.human = human;
    world.say(&owner(), added.into(), None);
}

pub fn edited(payload: &Payload, edit: impl FnOnce(&mut Value)) -> Payload {
    let mut data = serde_json::to_value(payload).unwrap();
    edit(&mut data);
    planned::payload(payload.kind().as_str(), &data)
}

/// What a story goes on from.
pub struct Stage {
    pub acceptance: String,
    pub index: u64,
    pub gates: Vec<String>,
    pub rubric: String,
}

/// Given: a patch passed on dev, in a plan whose slices have these stakes; it was proposed at the last number.
fn passed(world: &mut dyn World, stakes: u64) -> (Value, Vec<String>, String, u64) {
    let mut plan = iterated::plan("exp-1", "m-it");
    let cells = plan["iteration"]["design"]["slices"][0]["cells"].as_array_mut();
    for cell in cells.unwrap() {
        cell["stakes_micro"] = stakes.into();
    }
    key(world, PETRA, "Petra", true, &[Role::Approver]);
    key(world, PAUL, "Paul", true, &[Role::Approver]);
    key(
        world,
        OPAL,
        "Opal",
        true,
        &[Role::Approver, Role::Auditor, Role::Optimizer],
    );
    let both = [Role::Approver, Role::Auditor];
    key(world, ROBOT, "Robot", false, &both);
    said(world, planned::experiment_registered());
    world.say(&owner(), iterated::peek_account(), None);
    let rubric = said(world, iterated::rubric_registered(iterated::RUBRIC));
    said(world, iterated::anchors(200));
    said(world, planned::registered(&plan));
    for payload in decided::split_events() {
        said(world, payload);
    }
    let quarter = world.now().quarter().to_string();
    said(world, iterated::opened(&plan, decided::IT, &quarter));
    said(world, decided::audited());
    said(world, decided::classified());
    let proposal = world.size();
    by(world, OPAL, released::patch());
    let hash = decided::patch_of(&released::patch()).0;
    let mut gates: Vec<String> = Vec::new();
    for gate in decided::gates(&plan, hash, "dev") {
        gates.push(said(world, gate));
    }
    (plan, gates, rubric, proposal)
}

/// Given: a patch was accepted, in a plan whose slices have these stakes, after whatever review it needed.
pub fn accepted(world: &mut dyn World, stakes: u64) -> Stage {
    let (plan, mut gates, rubric, proposal) = passed(world, stakes);
    if stakes >= 700_000 {
        said(world, reviewed("accepted", proposal));
    }
    let hash = decided::patch_of(&released::patch()).0;
    let sealing = said(world, decided::sealed(&[hash]));
    let charge = world.say(&owner(), decided::charge(), None).0.to_hex();
    said(world, decided::unsealed(&charge, &sealing));
    for gate in decided::gates(&plan, hash, "confirm") {
        gates.push(said(world, gate));
    }
    let index = world.size();
    let acceptance = said(world, decided::accepted(&released::patch(), 1, &gates));
    Stage {
        acceptance,
        index,
        gates,
        rubric,
    }
}

impl Stage {
    pub fn commit(&self, version: &str, approvals: &[String]) -> Payload {
        let subject = (self.acceptance.as_str(), self.index);
        let after = (self.rubric.as_str(), version);
        committed(&released::patch(), subject, after, &self.gates, approvals)
    }

    /// Given: two people approved it.
    pub fn approved(&self, world: &mut dyn World) -> [String; 2] {
        [(PETRA, "Petra Weiss"), (PAUL, "Paul Okafor")]
            .map(|(who, name)| by(world, who, granted(name, &self.acceptance)))
    }
}

#[test]
pub(super) fn two_people_approve_an_accepted_patch_by_name() {
    let cases: [(u8, &str, &[&str]); 3] = [
        (PETRA, "author", &["another meaning", "author"]),
        (
            ROBOT,
            "approve",
            &["a key that a person holds", "a machine's"],
        ),
        (PETRA, "nothing", &["a patch.accepted of exp-1", "7777"]),
    ];
    for (who, meaning, wording) in cases {
        tell(SOLO, |world| {
            let stage = accepted(world, 100_000);
            let word = match meaning {
                "nothing" => granted("Petra Weiss", &"7".repeat(64)),
                meaning => released::word("approval.granted", meaning, "X", &stage.acceptance),
            };
            world.refuse_saying("approval", wording, &signer(who), word, EXP);
        });
    }
    tell(SOLO, |world| {
        let stage = accepted(world, 100_000);
        // Under solo the author's other keys may; this very key may not.
        let own = granted("Opal", &stage.acceptance);
        let wording = ["another key than the author's of concise-3"];
        world.refuse_saying("approval", &wording, &signer(OPAL), own, EXP);
    });
}

/// What keys say of a patch, one after the other.
type Words = &'static [(u8, &'static str)];

/// Then: a second sealing is refused.
fn twice(world: &mut dyn World, sealing: Payload) {
    let line = world.line(&owner(), sealing, EXP);
    world.refuse_as("sealing", "natural_key", &["one sealing"], &owner(), line);
}

#[test]
pub(super) fn where_stakes_are_high_nothing_is_sealed_unreviewed() {
    let sealing = || decided::sealed(&[decided::patch_of(&released::patch()).0]);
    let none = [
        "a review that accepts concise-3, because of slice domain-length short",
        "none",
    ];
    let against = [
        "no dispute of concise-3 that stands, because of slice domain-length short",
        "one at seq ",
    ];
    // What keys say, one after the other, and what stops the sealing.
    let cases: [(Words, &[&str]); 6] = [
        (&[], &none),
        (&[(1, "noted")], &none),
        (&[(1, "accepted"), (AUDE, "disputed")], &against),
        (&[(1, "accepted"), (1, "noted")], &none),
        (&[(1, "accepted"), (1, "disputed")], &against),
        (
            &[(1, "disputed"), (AUDE, "accepted"), (1, "noted")],
            &["one sealing"],
        ),
    ];
    for (words, stopped) in cases {
        tell(SOLO, |world| {
            key(world, AUDE, "Aude", true, &[Role::Auditor]);
            let (.., proposal) = passed(world, 700_000);
            for (who, outcome) in words {
                by(world, *who, reviewed(outcome, proposal));
            }
            if stopped == ["one sealing"] {
                said(world, sealing());
                twice(world, sealing());
            } else {
                world.refuse_saying("sealing", stopped, &owner(), sealing(), EXP);
            }
        });
    }
    tell(SOLO, |world| {
        passed(world, 699_999);
        said(world, sealing());
        twice(world, sealing());
    });
}

#[test]
pub(super) fn a_patch_is_reviewed_by_a_person_who_did_not_write_it_and_read_it() {
    type Edit = fn(&mut Value);
    let cases: &[(u8, Edit, &[&str])] = &[
        (
            OPAL,
            |_| {},
            &["another key than the author's of concise-3"],
        ),
        (ROBOT, |_| {}, &["a key that a person holds", "a machine's"]),
        (
            AUDE,
            |data| data["patch"] = "concise-9".into(),
            &["a patch that was proposed in exp-1", "concise-9"],
        ),
        (
            AUDE,
            |data| data["from_seq"] = (data["from_seq"].as_u64().unwrap() + 1).into(),
            &["entries with seq ", " among them, below this one"],
        ),
        (
            AUDE,
            |data| data["through_seq"] = 999.into(),
            &["entries with seq ", "to 999"],
        ),
    ];
    for (who, edit, wording) in cases {
        tell(SOLO, |world| {
            key(world, AUDE, "Aude", true, &[Role::Auditor]);
            let (.., proposal) = passed(world, 700_000);
            let review = edited(&reviewed("accepted", proposal), edit);
            world.refuse_saying("approval", wording, &signer(*who), review, EXP);
        });
    }
    tell(SOLO, |world| {
        let (.., proposal) = passed(world, 700_000);
        let wording = ["the experiment of concise-3", "none"];
        let review = reviewed("accepted", proposal);
        world.refuse_saying("approval", &wording, &owner(), review, None);
    });
    tell(STRICT, |world| {
        key(world, AUDE, "Opal", true, &[Role::Auditor]);
        let (.., proposal) = passed(world, 700_000);
        let wording = [
            "another holder than the author of concise-3, under strict",
            "Opal",
        ];
        let review = reviewed("accepted", proposal);
        world.refuse_saying("approval", &wording, &signer(AUDE), review, EXP);
    });
}

/// Who holds what under strict separation.
const STRICT: Start = Start {
    separation: Separation::Strict,
    roles: &[Role::Owner, Role::Registrar, Role::Arbiter, Role::Custodian],
};

#[test]
pub(super) fn under_strict_author_and_approvers_are_different_people() {
    for (holder, wording) in [
        (
            "Opal",
            "another holder than the author of concise-3, under strict",
        ),
        ("Petra", "one key of each holder, under strict"),
    ] {
        tell(STRICT, |world| {
            let stage = accepted(world, 100_000);
            by(world, PETRA, granted("Petra Weiss", &stage.acceptance));
            key(world, 25, holder, true, &[Role::Approver]);
            let word = granted("Somebody", &stage.acceptance);
            world.refuse_saying("approval", &[wording], &signer(25), word, EXP);
        });
    }
}

#[test]
pub(super) fn what_needs_two_approvals_is_not_committed_with_fewer() {
    for given in 0..2 {
        tell(SOLO, |world| {
            let stage = accepted(world, 700_000);
            let mut approvals = Vec::new();
            if given == 1 {
                approvals.push(by(world, PETRA, granted("Petra Weiss", &stage.acceptance)));
            }
            let wording = ["two approvals of concise-3, because of slice domain-length short"];
            let commit = stage.commit("1.1", &approvals);
            world.refuse_saying("commit", &wording, &owner(), commit, EXP);
        });
    }
    tell(SOLO, |world| {
        let stage = accepted(world, 700_000);
        let approvals = stage.approved(world);
        let no = released::refused("Paul Okafor", &stage.acceptance);
        by(world, PAUL, no);
        let wording = ["no refusal of concise-3 that stands", "one at seq"];
        let commit = stage.commit("1.1", &approvals);
        world.refuse_saying("commit", &wording, &owner(), commit, EXP);
    });
}

#[test]
fn a_commit_is_what_the_patch_makes_of_the_head() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |data| data["parent"] = "7".repeat(64).into(),
            &["parent ", "7777"],
        ),
        (
            |data| data["patch"] = "other-1".into(),
            &["patch concise-3", "other-1"],
        ),
        (
            |data| data["gates"] = json!([]),
            &[
                "the gates of its acceptance, 13 of them",
                "others, 0 of them",
            ],
        ),
        (
            |data| data["approvals"] = json!(["7".repeat(64)]),
            &["the approvals of its acceptance, 0 of them", "others, 1"],
        ),
        (
            |data| data["leaves"] = json!([]),
            &["the leaves of ", " with the patch", "others"],
        ),
        (
            |data| data["rubric_hash"] = "7".repeat(64).into(),
            &["rubric_hash ", "7777"],
        ),
        (
            |data| data["prompt_hash"] = "7".repeat(64).into(),
            &["prompt_hash ", "7777"],
        ),
        (
            |data| data["prompt"]["bytes"] = 1.into(),
            &["prompt ", "of 1 bytes"],
        ),
        (
            |data| data["proof"]["size"] = 1.into(),
            &["proof of index ", "in a size from", "in 1"],
        ),
        (
            |data| data["acceptance"] = "7".repeat(64).into(),
            &["a patch.accepted of exp-1", "7777"],
        ),
    ];
    for (edit, wording) in cases {
        tell(SOLO, |world| {
            world.put_blobs(&[&released::told()]);
            let stage = accepted(world, 100_000);
            let commit = edited(&stage.commit("1.1", &[]), edit);
            world.refuse_saying("commit", wording, &owner(), commit, EXP);
        });
    }
    tell(SOLO, |world| {
        world.put_blobs(&[&released::told()]);
        let stage = accepted(world, 100_000);
        let wording = ["a version above 1.0", "1.0"];
        world.refuse_saying("commit", &wording, &owner(), stage.commit("1.0", &[]), EXP);
    });
}

#[test]
fn the_next_iteration_starts_from_the_committed_rubric() {
    tell(SOLO, |world| {
        world.put_blobs(&[&released::told()]);
        let stage = accepted(world, 100_000);
        said(world, iterated::closed(decided::IT, "accepted"));
        said(world, stage.commit("1.1", &[]));
        let plan = iterated::plan("exp-1", "m-next");
        said(world, planned::registered(&plan));
        let quarter = world.now().quarter().to_string();
        let open = iterated::opened(&plan, "it-4", &quarter);
        let wording = ["the rubric in force, "];
        world.refuse_saying("iteration", &wording, &owner(), open, EXP);
    });
}
