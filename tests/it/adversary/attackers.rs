//! One attacker for each row of `schema/THREATS.md` that a program can play: what it holds, what it tries, what is
//! found first by both verifiers.

use serde_json::Value;
use serde_json::json;

use super::hand::Hand;
use crate::support::gated;
use crate::support::iterated;
use crate::support::planned;
use crate::support::samples::*;
use crate::support::sequenced;
use crate::support::signer;
use crate::support::verifiers;
use crate::support::verifiers::Case;

/// What was tried, and what must be found first: where and by which rule.
struct Attack {
    who: &'static str,
    case: Case,
    found: Option<(usize, &'static str)>,
}

fn attack(who: &'static str, case: Case, at: usize, rule: &'static str) -> Attack {
    Attack {
        who,
        case,
        found: Some((at, rule)),
    }
}

fn exp_1() -> Value {
    EXPERIMENT.into()
}

fn retitle(body: &mut Value) {
    body["data"]["title"] = "Another question".into();
}

/// Whoever holds the file, the log key, the clock, the witness or everything.
fn holders_of_files() -> Vec<Attack> {
    let story = sequenced::story;
    let at = |name: &str| story().at(name);
    // In this story no order is drawn from a root, which a rewritten history would have to draw again.
    let plain = iterated::story;
    let everybody = [ADA, BEN, RUNNER, CLEO];
    let known = Hand::authors(&plain());
    assert!(known.len() <= everybody.len(), "somebody's key is missing");
    let last = story().lines.len() - 1;
    let end = plain().lines.len() - 1;
    let without = Hand::with(story(), &[], false).edit("registered", retitle);
    let log_key = Hand::with(story(), &[], true).edit("registered", retitle);
    let owner = Hand::with(story(), &[ADA], true).edit("registered", retitle);
    let all = Hand::with(plain(), &everybody, true).edit("registered", retitle);
    let cut = Hand::with(story(), &[], true).cut(4);
    let clock = Hand::with(story(), &[], true).stamp("judge", "2026-09-30T22:00:00.000000Z");
    let own_pin = Hand::with(plain(), &everybody, true).edit("registered", retitle);
    vec![
        attack(
            "the file, no key",
            without.rebuilt(),
            at("registered"),
            "signature",
        ),
        attack(
            "the log key",
            log_key.rebuilt(),
            at("registered"),
            "signature",
        ),
        attack(
            "the owner's key and the log key",
            owner.rebuilt(),
            at("judge"),
            "seen",
        ),
        attack(
            "the log key, and yesterday",
            cut.rebuilt_against_the_pin(),
            last - 3,
            "size",
        ),
        attack(
            "the log key and its clock",
            clock.rebuilt(),
            at("judge"),
            "recorded_at",
        ),
        attack(
            "every key, against a pin",
            all.rebuilt_against_the_pin(),
            end,
            "root",
        ),
        Attack {
            who: "every key, and nobody kept a pin",
            case: own_pin.rebuilt(),
            found: None,
        },
    ]
}

/// One role's key, with the file and the log key: what it says reads as if it had always stood there.
fn custodians() -> Vec<Attack> {
    let hand = || Hand::with(iterated::story(), &[CLEO], true);
    let story = iterated::story();
    let other = hand().edit("revealed", |body| {
        body["data"]["value_micro"] = 900_000.into();
    });
    let accepted = hand().id("accepted");
    let unpaid = hand().edit("revealed", |body| body["data"]["charge"] = accepted.into());
    let charge = json!({"account": "confirm-peeks", "amount": 3, "for": "it-2"});
    let spends = hand().say(CLEO, "budget.charged", 1, Value::Null, charge);
    let closed = json!({"iteration": "it-2", "outcome": "stopped", "reason": "it is enough"});
    let closes = hand().say(CLEO, "iteration.closed", 1, exp_1(), closed);
    vec![
        attack(
            "the custodian: another value",
            other.rebuilt(),
            story.at("revealed"),
            "seal",
        ),
        attack(
            "the custodian: unpaid",
            unpaid.rebuilt(),
            story.at("revealed"),
            "charge",
        ),
        attack(
            "the custodian: a fourth peek",
            spends.rebuilt(),
            story.lines.len(),
            "overdraft",
        ),
        attack(
            "the custodian as arbiter",
            closes.rebuilt(),
            story.lines.len(),
            "role",
        ),
    ]
}

fn owners() -> Vec<Attack> {
    let story = iterated::story();
    let end = story.lines.len();
    let hand = || Hand::with(iterated::story(), &[ADA], true);
    let retired = json!({"key_id": signer(ADA).id().to_string(), "reason": "nobody shall govern"});
    let retired = hand().say(ADA, "key.retired", 1, Value::Null, retired);
    let added = serde_json::to_value(key_added(
        &signer(STRANGER),
        "Cleo",
        true,
        &[clover::event::payload::Role::Custodian],
    ));
    let mut added = added.unwrap();
    added["proof"] = serde_json::to_value(clover::event::id::Base64Bytes([7; 64])).unwrap();
    let added = hand().say(ADA, "key.added", 2, Value::Null, added);
    let stranger = Hand::with(iterated::story(), &[STRANGER], true);
    let stranger = stranger.say(
        STRANGER,
        "note.recorded",
        1,
        Value::Null,
        json!({"text": "mine"}),
    );
    vec![
        attack(
            "the owner: the last key",
            retired.rebuilt(),
            end,
            "last_owner",
        ),
        attack(
            "the owner: a key of nobody",
            added.rebuilt(),
            end,
            "possession",
        ),
        attack("a stranger's key", stranger.rebuilt(), end, "key"),
    ]
}

fn others() -> Vec<Attack> {
    let story = gated::story();
    let end = story.lines.len();
    let drawn = Hand::with(gated::story(), &[BEN], true).edit("m-1-drawn", |body| {
        body["data"]["seed"] = signer(BEN).id().to_string().into();
    });
    let issued = Hand::with(gated::story(), &[LENA], true).edit("issued", |body| {
        body["data"]["grade"] = "certified_amended".into();
    });
    let [(first, _), ..] = gated::manifests();
    let mut next = planned::next(&first, &first);
    next["test"]["null_margin_micro"] = 1.into();
    let amended = serde_json::to_value(planned::amended(&next, &first, 3)).unwrap();
    let amended =
        Hand::with(gated::story(), &[ADA], true).say(ADA, "manifest.amended", 1, exp_1(), amended);
    let score = json!({
        "draw": 0, "item": "red-000", "judge": "judge-1", "policy": "base", "score_micro": 1_000_000,
    });
    let score = Hand::with(gated::story(), &[RUNNER], true).say(
        RUNNER,
        "score.recorded",
        1,
        "exp-9".into(),
        score,
    );
    let sequence = sequenced::story();
    let cluster = sequenced_cluster(&sequence);
    let label = json!({
        "design": "open-5", "draw": 0, "item": cluster, "policy": "base", "purpose": "calibrate", "rater": "Lena",
        "value_micro": 900_000,
    });
    let labelled = Hand::with(sequenced::story(), &[LENA], true);
    let end_of_sequence = labelled.len();
    let labelled = labelled.say(LENA, "label.recorded", 1, exp_1(), label);
    let optimizer = Hand::with(sequenced::story(), &[RUNNER], true);
    let closed = json!({"iteration": "it-5", "outcome": "accepted", "reason": "mine is best"});
    let optimizer = optimizer.say(RUNNER, "iteration.closed", 1, exp_1(), closed);
    vec![
        attack(
            "the arbiter: an order",
            drawn.rebuilt(),
            story.at("m-1-drawn"),
            "order",
        ),
        attack(
            "the releaser: a grade",
            issued.rebuilt(),
            story.at("issued"),
            "promotion",
        ),
        attack(
            "the registrar: after the look",
            amended.rebuilt(),
            end,
            "amendment",
        ),
        attack("the scorer: elsewhere", score.rebuilt(), end, "experiment"),
        attack(
            "the labeler: in confirm",
            labelled.rebuilt(),
            end_of_sequence,
            "design",
        ),
        attack(
            "the optimizer as arbiter",
            optimizer.rebuilt(),
            end_of_sequence,
            "role",
        ),
    ]
}

/// A confirm cluster of the story.
fn sequenced_cluster(story: &Story) -> String {
    let hand = clover::event::Entry::parse(&story.lines[story.at("seal-1")]).unwrap();
    let body: Value = serde_json::from_slice(hand.signed.body()).unwrap();
    let row = body["data"]["row"].as_str().unwrap();
    row.split('/').nth(1).unwrap().to_owned()
}

#[test]
fn every_attacker_of_the_table_is_found_by_both_verifiers() {
    let attacks: Vec<Attack> = [holders_of_files(), custodians(), owners(), others()]
        .into_iter()
        .flatten()
        .collect();
    let mut wrong = Vec::new();
    let expected = |attack: &Attack| {
        let found = attack.found.as_ref();
        found.map(|(at, rule)| (*at as u64, (*rule).to_owned()))
    };
    for attack in &attacks {
        let ours = verifiers::ours(&attack.case);
        if ours.first != expected(attack) {
            wrong.push(format!(
                "{}: {:?}, not {:?}",
                attack.who, ours.first, attack.found
            ));
        }
    }
    if verifiers::python() {
        let cases: Vec<Case> = attacks.iter().map(|attack| attack.case.clone()).collect();
        for (attack, theirs) in attacks.iter().zip(verifiers::theirs_of_many(&cases)) {
            let theirs = theirs.unwrap();
            if theirs.first != expected(attack) {
                wrong.push(format!("audits/verify, {}: {:?}", attack.who, theirs.first));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
