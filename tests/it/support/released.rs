//! A ledger in which an accepted patch was approved by two people and committed; and what can be done to it.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::predicate::Criterion;
use clover::num::Count;
use clover::projection::decisions::CONFIRM_CRITERIA;
use clover::projection::decisions::DEV_CRITERIA;
use clover::workflow::prompts;
use serde_json::Value;
use serde_json::json;

use super::calibrated;
use super::decided;
use super::decided::IT;
use super::iterated;
use super::planned;
use super::planned::payload;
use super::samples::*;
use super::signer;

/// Topics of the plan.
pub const TOPICS: [&str; 3] = ["legal advice", "medical dosing", "tax"];

/// The one patch of the story: it edits no safety rule, and the plan has a slice with stakes of 0.8.
pub fn patch() -> Payload {
    let yaml = iterated::patch("concise-3", "length_bias_cap", iterated::CONCISE);
    iterated::proposed(IT, &yaml)
}

/// A word about an acceptance.
pub fn word(kind: &str, meaning: &str, name: &str, subject: &str) -> Payload {
    let data = json!({
        "comment": "read on forty rows", "meaning": meaning, "printed_name": name, "subject": subject,
    });
    payload(kind, &data)
}

pub fn granted(name: &str, subject: &str) -> Payload {
    word("approval.granted", "approve", name, subject)
}

pub fn refused(name: &str, subject: &str) -> Payload {
    word("approval.refused", "review", name, subject)
}

/// What somebody who knows the field thinks of the patch, which was proposed at `seq`.
pub fn reviewed(outcome: &str, seq: u64) -> Payload {
    let data = json!({
        "findings": "long answers are padded in this field too", "from_seq": seq, "outcome": outcome,
        "patch": "concise-3", "through_seq": seq,
    });
    payload("review.recorded", &data)
}

/// The commit of a patch of [`iterated::RUBRIC`] that was accepted at `index`.
pub fn committed(
    proposed: &Payload,
    (acceptance, index): (&str, u64),
    (parent, version): (&str, &str),
    gates: &[String],
    approvals: &[String],
) -> Payload {
    let Payload::PatchProposed(said) = proposed else {
        unreachable!("a proposal");
    };
    let rubric = prompts::patched(&iterated::rubric(), &said.diff, version).unwrap();
    let topics = TOPICS.map(str::to_owned).into();
    let text = clover::rubric::prompt::render(&rubric, &topics);
    let data = json!({
        "acceptance": acceptance, "approvals": approvals, "gates": gates,
        "leaves": clover::workflow::patches::leaves_of(&rubric), "parent": parent, "patch": said.patch,
        "prompt": prompts::reference(&text),
        "prompt_hash": clover::rubric::prompt::hash(&rubric, &topics).to_hex(),
        "proof": {"index": Count::new(index).unwrap(), "size": index + 1},
        "rubric_hash": rubric.hash().to_hex(), "version": version,
    });
    payload("prompt.committed", &data)
}

/// What the judge is told after the patch of the story.
pub fn told() -> Vec<u8> {
    let topics = TOPICS.map(str::to_owned).into();
    clover::rubric::prompt::render(&iterated::rubric(), &topics).into_bytes()
}

/// Names of the thirteen gates.
const GATES: [&str; 13] = decided::GATES[0];

/// Tells everything up to the acceptance of the patch.
pub fn accepted(teller: &mut Teller) -> Vec<String> {
    accepted_on(teller, false)
}

/// The same; `fits` puts the calibrators of the iteration on record.
pub fn accepted_on(teller: &mut Teller, fits: bool) -> Vec<String> {
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-rhea", RUNNER_2, "Rhea", Role::Releaser),
        ("key-petra", PETRA, "Petra", Role::Approver),
        ("key-paul", PAUL, "Paul", Role::Approver),
        ("key-aude", AUDE, "Aude", Role::Auditor),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say(ADA, "peeks", iterated::peek_account());
    teller.say_in(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    teller.say_in(ADA, "anchors", iterated::anchors(200));
    let plan = plan();
    teller.say_in(ADA, "m-it", planned::registered(&plan));
    let names = ["split-1", "split-2", "split-3", "split-4"];
    for (name, event) in names.into_iter().zip(decided::split_events()) {
        teller.say_in(BEN, name, event);
    }
    teller.say_in(BEN, "opened", iterated::opened(&plan, IT, "2026Q3"));
    let (hash, result, _) = decided::patch_of(&patch());
    let base = calibrated::fitted(7, None, iterated::rubric().hash());
    if fits {
        teller.say_in(BEN, "fitted-base", base);
    }
    teller.say_in(BEN, "audited", decided::audited());
    teller.say_in(BEN, "classified", decided::classified());
    teller.say_in(RUNNER, "patch", patch());
    let proposal = teller.at("patch");
    teller.say_in(AUDE, "noted", reviewed("noted", proposal));
    teller.say_in(AUDE, "reviewed", reviewed("accepted", proposal));
    if fits {
        let tried = calibrated::fitted(8, Some(hash), result);
        teller.say_in(BEN, "fitted-patch", tried);
    }
    let gate = |split, id: &Criterion| {
        let of = (hash, split, id.as_str());
        let passing = decided::passing(id.as_str());
        if fits {
            calibrated::gate(&plan, of, None)
        } else {
            decided::gate(&plan, hash, split, &passing)
        }
    };
    for (name, id) in GATES.iter().zip(&DEV_CRITERIA) {
        teller.say_in(BEN, name, gate("dev", id));
    }
    teller.say_in(BEN, "sealed", decided::sealed(&[hash]));
    teller.say(CLEO, "charge", decided::charge());
    let (charge, sealing) = (teller.id("charge"), teller.id("sealed"));
    let unsealing = decided::unsealed(&charge.0.to_hex(), &sealing.0.to_hex());
    teller.say_in(CLEO, "unsealed", unsealing);
    for (name, id) in GATES[8..].iter().zip(&CONFIRM_CRITERIA) {
        teller.say_in(BEN, name, gate("confirm", id));
    }
    let gates: Vec<String> = GATES.map(|gate| teller.id(gate).0.to_hex()).into();
    teller.say_in(BEN, "accepted", decided::accepted(&patch(), 1, &gates));
    teller.say_in(BEN, "closed", iterated::closed(IT, "accepted"));
    gates
}

/// The plan of the story: stakes are high.
pub fn plan() -> Value {
    let mut plan = iterated::plan(EXPERIMENT, "m-it");
    plan["iteration"]["design"]["slices"][0]["cells"][1]["stakes_micro"] = 800_000.into();
    plan
}

/// The story, told through the real ledger.
pub fn story() -> Story {
    let mut teller = Teller::begin();
    let gates = accepted(&mut teller);
    told_commit(&mut teller, &gates);
    teller.finish()
}

/// Tells how it was approved and committed; gives the hash of the rubric that results.
pub fn told_commit(teller: &mut Teller, gates: &[String]) -> String {
    let subject = teller.id("accepted").0.to_hex();
    teller.say_in(PETRA, "no-petra", refused("Petra Weiss", &subject));
    teller.say_in(PETRA, "yes-petra", granted("Petra Weiss", &subject));
    teller.say_in(PAUL, "yes-paul", granted("Paul Okafor", &subject));
    teller.blob(told(), "text/plain");
    let approvals = ["yes-petra", "yes-paul"].map(|name| teller.id(name).0.to_hex());
    let parent = teller.id("rubric").0.to_hex();
    let index = teller.at("accepted");
    let commit = committed(
        &patch(),
        (&subject, index),
        (&parent, "1.1"),
        gates,
        &approvals,
    );
    let Payload::PromptCommitted(said) = &commit else {
        unreachable!("a commit");
    };
    let hash = said.rubric_hash.to_hex();
    teller.say_in(RUNNER_2, "committed", commit);
    hash
}
