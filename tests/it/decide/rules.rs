//! One story for each way to break a rule.

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::SealRecipient;
use clover::event::id::Vkey;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::budget::BudgetCharged;
use clover::event::payload::budget::BudgetOpened;
use clover::event::payload::budget::Period;
use clover::event::payload::custody::KeyAdded;
use clover::event::payload::custody::KeyCompromised;
use clover::event::payload::custody::KeyRetired;
use clover::event::payload::custody::LogKeyRotated;
use clover::event::payload::custody::PolicyAdopted;
use clover::event::payload::custody::Separation;
use clover::event::payload::experiment::ExperimentClosed;
use clover::event::payload::experiment::ExperimentOutcome;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::record::NoteRecorded;
use clover::ground::digest::Digest;
use clover::ground::note::Origin;
use clover::ground::note::VerifierKey;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::sign::KeyId;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::RuleName;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use super::world::SOLO;
use super::world::Start;
use super::world::World;
use super::world::note;
use super::world::tell;
use super::world::tell_forged;
use crate::support::ORIGIN;
use crate::support::key_added;
use crate::support::score;
use crate::support::signer;
use crate::support::text;

const EXP: Option<&str> = Some("exp-1");
const STRICT: Start = Start {
    separation: Separation::Strict,
    roles: &[Role::Owner, Role::Registrar],
};

fn owner() -> Signer {
    signer(1)
}

fn add(world: &mut dyn World, signer: &Signer, holder: &str, roles: &[Role]) {
    world.say(&owner(), key_added(signer, holder, roles).into(), None);
}

fn register(world: &mut dyn World, id: &str) {
    world.say(&owner(), registered(), Some(id));
}

fn registered() -> Payload {
    ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: text("to test"),
        title: text("a test"),
    }
    .into()
}

fn closed() -> Payload {
    ExperimentClosed {
        outcome: ExperimentOutcome::Completed,
        reason: text("done"),
    }
    .into()
}

fn retired(key: KeyId) -> Payload {
    KeyRetired {
        key_id: key,
        reason: text("left"),
    }
    .into()
}

fn compromised(key: KeyId, since: u64) -> Payload {
    KeyCompromised {
        key_id: key,
        reason: text("stolen"),
        since_seq: Count::new(since).unwrap(),
    }
    .into()
}

fn opened(account: &str, amount: u64, period: Period) -> Payload {
    BudgetOpened {
        account: account.parse().unwrap(),
        amount: Count::new(amount).unwrap(),
        period,
        purpose: text("peeks"),
        spenders: Roles::new([Role::Custodian]).unwrap(),
        unit: "peek".parse().unwrap(),
    }
    .into()
}

fn charged(account: &str, amount: u64) -> Payload {
    BudgetCharged {
        account: account.parse().unwrap(),
        amount: Count::new(amount).unwrap(),
        purpose: text("a peek"),
    }
    .into()
}

fn item(n: u64) -> Payload {
    score(n).payload
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The envelope has one fixed form, so its bytes are as good as any.
fn envelope() -> Vec<u8> {
    b"age-encryption.org/v1\nsealed".to_vec()
}

fn sealed(row: &str, value: i64) -> Payload {
    LabelSealed {
        commitment: seal::commitment(ORIGIN, "design-1", row, &[9; 32], value),
        design: "design-1".parse().unwrap(),
        envelope: Base64Text(envelope()),
        recipient: SealRecipient(Identity::from_bytes(&[5; 32]).recipient()),
        reveal_by: at("2027-01-01T00:00:00.000000Z"),
        row: row.parse().unwrap(),
    }
    .into()
}

fn accepted(row: &str, envelope: &[u8]) -> Payload {
    SealAccepted {
        design: "design-1".parse().unwrap(),
        envelope_sha256: Digest::sha256(envelope),
        row: row.parse().unwrap(),
    }
    .into()
}

pub(super) fn revealed(row: &str, charge: EventId, value: i64) -> Payload {
    LabelRevealed {
        charge,
        design: "design-1".parse().unwrap(),
        row: row.parse().unwrap(),
        salt: Base64Bytes([9; 32]),
        value_micro: Micro::new(value).unwrap(),
    }
    .into()
}

// line_format, seq, recorded_at: the program writes these itself.

#[test]
fn line_format() {
    for (from, to) in [
        (&b"\"seq\":1}"[..], &b"\"seq\":01}"[..]),
        (b"\"seq\":1}", b"\"seq\":1} "),
        (b"{\"envelope\"", b"{ \"envelope\""),
        (b"\"payloadType\"", b"\"payloadtype\""),
        (b"clover.event+json", b"clover.other+json"),
        (b"\"sig\":\"", b"\"sig\":\"="),
        (b"Z\",\"seq\"", b"\",\"seq\""),
    ] {
        tell_forged(SOLO, |world| {
            let mut line = world.line(&owner(), note(), None);
            let honest = {
                let mut other = crate::support::forge::Forge::empty();
                other.now = world.now();
                other.push(&owner(), &line);
                other.lines.remove(0)
            };
            let place = honest
                .windows(from.len())
                .position(|part| part == from)
                .unwrap();
            let changed = [&honest[..place], to, &honest[place + from.len()..]].concat();
            line.text = Some(changed);
            world.refuse("line_format", &["canonical entry line"], &owner(), line);
        });
    }
}

#[test]
fn a_line_that_is_too_long() {
    tell_forged(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.raw = Some(vec![b'x'; 60_000]);
        world.refuse("line_format", &["65535"], &owner(), line);
    });
}

#[test]
fn seq() {
    for seq in [0, 2, 7] {
        tell_forged(SOLO, |world| {
            let mut line = world.line(&owner(), note(), None);
            line.seq = seq;
            world.refuse(
                "seq",
                &["expected 1", &format!("found {seq}")],
                &owner(),
                line,
            );
        });
    }
}

#[test]
fn recorded_at() {
    tell_forged(SOLO, |world| {
        world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        line.recorded_at = world.now() + -1;
        world.refuse("recorded_at", &["not before"], &owner(), line);
    });
}

#[test]
fn body_format() {
    let broken: [fn(&str) -> String; 8] = [
        |body| body.replacen(",\"author\"", ", \"author\"", 1),
        |body| body.replacen("\"v\":1}", "\"v\":1,\"w\":1}", 1),
        |body| body.replacen("\"refs\":[],", "", 1),
        |body| body.replacen("\"v\":1}", "\"v\":1,\"v\":1}", 1),
        |body| body.replacen("\"v\":1}", "\"v\":1.0}", 1),
        |body| body.replacen("\"text\":\"a note\"", "\"text\":\"\\u0061 note\"", 1),
        |body| body.replacen("\"author_seq\":1", "\"author_seq\":9007199254740992", 1),
        |body| body[..body.len() - 1].to_owned(),
    ];
    for change in broken {
        tell(SOLO, |world| {
            let mut line = world.line(&owner(), note(), None);
            let honest = String::from_utf8(line.body_bytes()).unwrap();
            let changed = change(&honest);
            assert_ne!(changed, honest);
            line.raw = Some(changed.into_bytes());
            world.refuse("body_format", &["canonical form"], &owner(), line);
        });
    }
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.body["data"]["text"] = Value::from("x".repeat(40 * 1024));
        world.refuse("body_format", &["at most 32768"], &owner(), line);
    });
}

#[test]
fn ledger() {
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.body["ledger"] = Value::from("ledger.example/other");
        world.refuse("ledger", &[ORIGIN, "ledger.example/other"], &owner(), line);
    });
}

#[test]
fn kind_unknown_and_retired() {
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.body["kind"] = Value::from("note.scribbled");
        world.refuse("kind", &["note.scribbled v1"], &owner(), line);
    });
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.body["v"] = Value::from(2);
        world.refuse("kind", &["note.recorded v2"], &owner(), line);
    });
    tell(SOLO, |world| {
        let payload = key_added(&signer(3), "Bo", &[Role::Scorer]);
        let mut line = world.line(&owner(), payload.into(), None);
        line.body["v"] = Value::from(1);
        line.body["data"].as_object_mut().unwrap().remove("proof");
        world.refuse("kind", &["key.added v2", "v1, retired"], &owner(), line);
    });
}

#[test]
fn schema() {
    let broken: [(&str, Value, &str); 5] = [
        ("score_micro", Value::from("1"), "invalid type"),
        (
            "score_micro",
            Value::from(1_000_000_000_001_i64),
            "1000000000000",
        ),
        ("draw", Value::from(-1), "invalid value"),
        ("item", Value::from("Zu\u{308}rich"), "normalisation"),
        ("extra", Value::from(1), "unknown field"),
    ];
    for (field, value, word) in broken {
        tell(SOLO, |world| {
            register(world, "exp-1");
            let mut line = world.line(&owner(), item(1), EXP);
            line.body["data"][field] = value.clone();
            world.refuse("schema", &["score.recorded v1", word], &owner(), line);
        });
    }
    tell(SOLO, |world| {
        let payload = key_added(&signer(3), "Bo", &[Role::Scorer, Role::Auditor]);
        let mut line = world.line(&owner(), payload.into(), None);
        line.body["data"]["roles"] = json!(["scorer", "auditor"]);
        world.refuse("schema", &["alphabetical"], &owner(), line);
    });
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), opened("a", 1, Period::Once), None);
        line.body["data"]["amount"] = Value::from(0);
        world.refuse("schema", &["found 0"], &owner(), line);
    });
}

#[test]
fn keyid() {
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        let mut line = world.line(&owner(), note(), None);
        line.keyid = signer(3).id();
        let (own, other) = (owner().id().to_string(), signer(3).id().to_string());
        world.refuse("keyid", &[&own, &other], &owner(), line);
    });
}

#[test]
fn key_unknown_retired_compromised() {
    tell(SOLO, |world| {
        world.refuse_saying("key", &["unknown key"], &signer(9), note(), None);
    });
    // A key whose addition stands later in the log was unknown before it.
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        world.say(&owner(), retired(signer(3).id()), None);
        world.refuse_saying("key", &["retired at seq 2"], &signer(3), note(), None);
    });
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        world.say(&signer(3), note(), None);
        world.say(&owner(), compromised(signer(3).id(), 2), None);
        world.refuse_saying("key", &["compromised at seq 3"], &signer(3), note(), None);
    });
}

#[test]
pub(super) fn signature() {
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.signature = Some([0; 64]);
        world.refuse("signature", &["strict Ed25519"], &owner(), line);
    });
    // Another key's signature, and a signature over other bytes.
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.signature = Some(*line.signed(&signer(3)).signature());
        world.refuse("signature", &["strict Ed25519"], &owner(), line);
    });
    // S + L: the malleable twin of a good signature.
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        let mut signature = *line.signed(&owner()).signature();
        // source: RFC 8032 5.1, L = 2^252 + 27742317777372353535851937790883648493, little-endian
        let order = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10_u8,
        ];
        let mut carry = 0_u16;
        for (byte, add) in signature[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + u16::from(add);
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        line.signature = Some(signature);
        world.refuse("signature", &["strict Ed25519"], &owner(), line);
    });
}

#[test]
fn author_seq() {
    // Higher than next: a gap. A lower one is a retry or a conflict: see `idempotency`.
    tell(SOLO, |world| {
        world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        line.body["author_seq"] = Value::from(5);
        world.refuse("author_seq", &["expected 2", "found 5"], &owner(), line);
    });
    tell(SOLO, |world| {
        world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        line.body["author_seq"] = Value::from(1);
        line.body["data"]["text"] = Value::from("other words");
        world.refuse("author_seq", &["found"], &owner(), line);
    });
}

#[test]
fn seen() {
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        line.body["seen"] = Value::Null;
        world.refuse("seen", &["null"], &owner(), line);
    });
    for size in [0, 2, 1_000] {
        tell(SOLO, |world| {
            let mut line = world.line(&owner(), note(), None);
            line.body["seen"]["size"] = Value::from(size);
            world.refuse("seen", &["a size from 1 to 1"], &owner(), line);
        });
    }
    tell(SOLO, |world| {
        world.say(&owner(), note(), None);
        world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        line.body["seen"] = json!({"root": world.root_at(1).to_base64(), "size": 1});
        world.refuse("seen", &["at least 2"], &owner(), line);
    });
    // The root of another size, and of no size, old and newest.
    for (size, of) in [(2, Some(1)), (3, Some(2)), (3, None), (2, None)] {
        tell(SOLO, |world| {
            add(world, &signer(3), "Bo", &[Role::Scorer]);
            world.say(&owner(), note(), None);
            let root = of.map_or(Digest::sha256(b"another log"), |of| world.root_at(of));
            let mut line = world.line(&signer(3), note(), None);
            line.body["seen"] = json!({"root": root.to_base64(), "size": size});
            world.refuse("seen", &["root"], &signer(3), line);
        });
    }
}

#[test]
fn backdated_both_ways() {
    tell(SOLO, |world| {
        let mut line = world.line(&owner(), note(), None);
        let late = world.now().plus_seconds(300) + 1;
        line.body["at"] = Value::from(late.to_string());
        world.refuse(
            "backdated",
            &["no later than", &late.to_string()],
            &owner(),
            line,
        );
    });
    tell(SOLO, |world| {
        world.set_clock(world.now().plus_seconds(86_400));
        world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        let early = world.now().plus_seconds(-300) + -1;
        line.body["at"] = Value::from(early.to_string());
        world.refuse(
            "backdated",
            &["no earlier than", &early.to_string()],
            &owner(),
            line,
        );
    });
    // Within 300 s both ways stands, and an author who has seen little may be late.
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        let (seen, written) = (world.root_at(2), world.now());
        let mut line = world.line(&owner(), note(), None);
        line.body["at"] = Value::from(world.now().plus_seconds(300).to_string());
        world.accept(&owner(), line);
        let mut line = world.line(&owner(), note(), None);
        line.body["at"] = Value::from(world.now().plus_seconds(-300).to_string());
        world.accept(&owner(), line);
        world.set_clock(world.now().plus_seconds(86_400));
        world.say(&owner(), note(), None);
        let mut line = world.line(&signer(3), note(), None);
        line.body["seen"] = json!({"root": seen.to_base64(), "size": 2});
        line.body["at"] = Value::from(written.to_string());
        world.accept(&signer(3), line);
        world.refuse_saying("key", &["unknown"], &signer(9), note(), None);
    });
}

#[test]
pub(super) fn role() {
    tell(SOLO, |world| {
        register(world, "exp-1");
        add(world, &signer(3), "Bo", &[Role::Auditor]);
        world.refuse_saying(
            "role",
            &["role scorer for score.recorded", "Bo with roles auditor"],
            &signer(3),
            item(1),
            EXP,
        );
    });
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Registrar]);
        let added = key_added(&signer(4), "Cy", &[Role::Owner]);
        world.refuse_saying("role", &["role owner"], &signer(3), added.into(), None);
    });
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 3, Period::Once), None);
        add(world, &signer(3), "Bo", &[Role::Scorer, Role::Registrar]);
        world.refuse_saying(
            "role",
            &["one of the roles custodian"],
            &signer(3),
            charged("peeks", 1),
            None,
        );
    });
}

#[test]
fn separation() {
    tell(STRICT, |world| {
        add(world, &signer(3), "Bo", &[Role::Optimizer]);
        let added = key_added(&signer(4), "Bo", &[Role::Labeler]);
        world.refuse_saying(
            "separation",
            &["Bo would hold both optimizer and labeler"],
            &owner(),
            added.into(),
            None,
        );
    });
    tell(STRICT, |world| {
        let added = key_added(&signer(4), "Bo", &[Role::Custodian, Role::MetaOptimizer]);
        world.refuse_saying(
            "separation",
            &["custodian and meta_optimizer"],
            &owner(),
            added.into(),
            None,
        );
    });
    // A retired key's roles do not count; another holder's neither.
    tell(STRICT, |world| {
        add(world, &signer(3), "Bo", &[Role::Optimizer]);
        add(world, &signer(4), "Cy", &[Role::Labeler]);
        world.say(&owner(), retired(signer(3).id()), None);
        add(world, &signer(5), "Bo", &[Role::Releaser]);
        let added = key_added(&signer(6), "Cy", &[Role::Optimizer]);
        world.refuse_saying(
            "separation",
            &["Cy would hold"],
            &owner(),
            added.into(),
            None,
        );
    });
    // The owner of a solo ledger holds every role: it cannot become strict.
    tell(SOLO, |world| {
        let adopted = PolicyAdopted {
            reason: text("growing up"),
            separation: Separation::Strict,
        };
        world.refuse_saying(
            "separation",
            &["Ada holds both"],
            &owner(),
            adopted.into(),
            None,
        );
    });
}

#[test]
fn possession() {
    tell(SOLO, |world| {
        let mut added = key_added(&signer(3), "Bo", &[Role::Scorer]);
        added.proof = key_added(&signer(4), "Bo", &[Role::Scorer]).proof;
        world.refuse_saying(
            "possession",
            &["no such signature"],
            &owner(),
            added.into(),
            None,
        );
    });
    tell(SOLO, |world| {
        let mut added = key_added(&signer(3), "Bo", &[Role::Scorer]);
        added.key_id = signer(4).id();
        world.refuse_saying("possession", &["key_id"], &owner(), added.into(), None);
    });
    tell(SOLO, |world| {
        // The point of order 1: nothing signed under it proves anything.
        let mut added: KeyAdded = key_added(&signer(3), "Bo", &[Role::Scorer]);
        let mut point = [0; 32];
        point[0] = 1;
        added.public_key = Base64Bytes(point);
        added.key_id = KeyId(clover::ground::keyfile::key_id(&point));
        world.refuse_saying("possession", &["small order"], &owner(), added.into(), None);
    });
    tell(SOLO, |world| {
        let payload = key_added(&signer(3), "Bo", &[Role::Scorer]);
        let mut line = world.line(&owner(), payload.into(), None);
        line.body["data"].as_object_mut().unwrap().remove("proof");
        world.refuse("schema", &["missing field `proof`"], &owner(), line);
    });
}

#[test]
fn last_owner() {
    tell(SOLO, |world| {
        world.refuse_saying(
            "last_owner",
            &["would be retired and is the last"],
            &owner(),
            retired(owner().id()),
            None,
        );
    });
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Owner]);
        world.say(&owner(), retired(signer(3).id()), None);
        let payload = compromised(owner().id(), 0);
        world.refuse_saying("last_owner", &["compromised"], &owner(), payload, None);
    });
    // With a second owner the first may leave.
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Owner]);
        world.say(&signer(3), retired(owner().id()), None);
        let payload = retired(signer(3).id());
        world.refuse_saying("last_owner", &["the last"], &signer(3), payload, None);
    });
}

#[test]
fn experiment() {
    tell(SOLO, |world| {
        world.refuse_saying(
            "experiment",
            &["exp-1, not registered"],
            &owner(),
            item(1),
            EXP,
        );
    });
    tell(SOLO, |world| {
        register(world, "exp-1");
        world.say(&owner(), closed(), EXP);
        world.refuse_saying("experiment", &["closed at seq 2"], &owner(), item(1), EXP);
    });
    tell(SOLO, |world| {
        world.refuse_saying(
            "experiment",
            &["an experiment for score.recorded", "null"],
            &owner(),
            item(1),
            None,
        );
    });
    // A kind that needs none may name one, but not one that was never registered.
    tell(SOLO, |world| {
        world.refuse_saying("experiment", &["ghost"], &owner(), note(), Some("ghost"));
    });
    tell(SOLO, |world| {
        world.refuse_saying("experiment", &["null"], &owner(), registered(), None);
    });
}

#[test]
fn account() {
    tell(SOLO, |world| {
        world.refuse_saying(
            "account",
            &["peeks, never opened"],
            &owner(),
            charged("peeks", 1),
            None,
        );
    });
}

#[test]
fn overdraft_once() {
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 3, Period::Once), None);
        world.say(&owner(), charged("peeks", 2), None);
        world.set_clock(world.now().plus_seconds(390 * 86_400));
        world.refuse_saying(
            "overdraft",
            &["at most 1 peek left in peeks", "found 2"],
            &owner(),
            charged("peeks", 2),
            None,
        );
    });
}

#[test]
fn overdraft_by_the_quarter_of_recorded_at() {
    // The last microsecond of a quarter spends the old one, the next fills it again, whatever `at` says.
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 2, Period::Quarter), None);
        world.set_clock(at("2026-12-31T23:59:59.999999Z"));
        world.say(&owner(), charged("peeks", 2), None);
        world.set_clock(at("2027-01-01T00:00:00.000000Z"));
        let mut line = world.line(&owner(), charged("peeks", 2), None);
        line.body["at"] = Value::from("2026-12-31T23:59:00.000000Z");
        world.accept(&owner(), line);
        world.refuse_saying(
            "overdraft",
            &["at most 0 peek left in peeks in 2027Q1"],
            &owner(),
            charged("peeks", 1),
            None,
        );
    });
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 2, Period::Quarter), None);
        world.set_clock(at("2026-12-31T23:59:59.999999Z"));
        world.say(&owner(), charged("peeks", 1), None);
        let mut line = world.line(&owner(), charged("peeks", 2), None);
        line.body["at"] = Value::from("2027-01-01T00:00:00.000000Z");
        world.refuse(
            "overdraft",
            &["at most 1 peek left in peeks in 2026Q4"],
            &owner(),
            line,
        );
    });
}

#[test]
fn refs() {
    let ghost = Digest::sha256(b"nothing").to_hex();
    tell(SOLO, |world| {
        let first = world.say(&owner(), note(), None);
        let mut line = world.line(&owner(), note(), None);
        line.body["refs"] = json!([first.to_string(), ghost]);
        world.refuse("refs", &[&ghost, "found none"], &owner(), line);
    });
    // An event that comes later in the same ledger.
    tell_forged(SOLO, |world| {
        let later = world.line(&owner(), item(1), None).id();
        let mut line = world.line(&owner(), note(), None);
        line.body["refs"] = json!([later.to_string()]);
        world.refuse("refs", &[&later.to_string()], &owner(), line);
    });
    // A natural key or a charge digest is no event.
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 2, Period::Once), None);
        let digest = opened("peeks", 2, Period::Once).natural_key(None).unwrap();
        let mut line = world.line(&owner(), note(), None);
        line.body["refs"] = json!([digest.to_hex()]);
        world.refuse("refs", &[&digest.to_hex()], &owner(), line);
    });
}

#[test]
pub(super) fn natural_key() {
    tell(SOLO, |world| {
        register(world, "exp-1");
        world.say(&owner(), item(1), EXP);
        world.say(&owner(), item(2), EXP);
        let mut line = world.line(&owner(), item(1), EXP);
        line.body["data"]["score_micro"] = Value::from(77);
        world.refuse("natural_key", &["seq 2 has it"], &owner(), line);
    });
    // By another author too; and under another experiment it is another score.
    tell(SOLO, |world| {
        register(world, "exp-1");
        register(world, "exp-2");
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        world.say(&owner(), item(1), EXP);
        world.say(&owner(), item(1), Some("exp-2"));
        world.refuse_saying("natural_key", &["seq 4 has it"], &signer(3), item(1), EXP);
    });
    tell(SOLO, |world| {
        world.say(&owner(), opened("peeks", 2, Period::Once), None);
        let again = opened("peeks", 200, Period::Once);
        world.refuse_saying("natural_key", &["seq 1 has it"], &owner(), again, None);
    });
    tell(SOLO, |world| {
        register(world, "exp-1");
        world.refuse_saying("natural_key", &["seq 1"], &owner(), registered(), EXP);
    });
}

/// An experiment with a budget, a sealed label, and a charge that was checkpointed.
pub(super) fn charged_seal(world: &mut dyn World) -> EventId {
    register(world, "exp-1");
    world.say(&owner(), opened("peeks", 2, Period::Once), None);
    world.say(&owner(), sealed("row-1", 500_000), EXP);
    world.say(&owner(), accepted("row-1", &envelope()), EXP);
    world.say(&owner(), charged("peeks", 1), None)
}

#[test]
fn seal() {
    tell(SOLO, |world| {
        let charge = charged_seal(world);
        let forged = revealed("row-1", charge, 600_000);
        world.refuse_saying("seal", &["label.sealed"], &owner(), forged, EXP);
    });
    tell(SOLO, |world| {
        let charge = charged_seal(world);
        let ghost = revealed("row-2", charge, 500_000);
        world.refuse_saying("seal", &["label.sealed"], &owner(), ghost, EXP);
    });
    // Sealed in one experiment, revealed in another.
    tell(SOLO, |world| {
        let charge = charged_seal(world);
        register(world, "exp-2");
        let moved = revealed("row-1", charge, 500_000);
        world.refuse_saying("seal", &["label.sealed"], &owner(), moved, Some("exp-2"));
    });
    tell(SOLO, |world| {
        register(world, "exp-1");
        world.say(&owner(), sealed("row-1", 500_000), EXP);
        let other = accepted("row-1", b"another envelope");
        world.refuse_saying("seal", &["label.sealed"], &owner(), other, EXP);
    });
    // Paid for, and never accepted by the custodian.
    tell(SOLO, |world| {
        register(world, "exp-1");
        world.say(&owner(), opened("peeks", 2, Period::Once), None);
        world.say(&owner(), sealed("row-1", 500_000), EXP);
        let charge = world.say(&owner(), charged("peeks", 1), None);
        let reveal = revealed("row-1", charge, 500_000);
        world.refuse_saying("seal", &["seal.accepted"], &owner(), reveal, EXP);
    });
    // The honest reveal stands, once.
    tell(SOLO, |world| {
        let charge = charged_seal(world);
        world.say(&owner(), revealed("row-1", charge, 500_000), EXP);
        let again = revealed("row-1", charge, 500_000);
        world.refuse_saying("natural_key", &["seq 6"], &owner(), again, EXP);
    });
}

#[test]
pub(super) fn charge() {
    // Not a charge.
    tell(SOLO, |world| {
        charged_seal(world);
        let other = world.say(&owner(), note(), None);
        let reveal = revealed("row-1", other, 500_000);
        world.refuse_saying("charge", &["budget.charged"], &owner(), reveal, EXP);
    });
    // Charged, but not under the checkpoint that the custodian had seen.
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Custodian]);
        let charge = charged_seal(world);
        let size = world.size() - 1;
        let mut line = world.line(&signer(3), revealed("row-1", charge, 500_000), EXP);
        line.body["seen"] = json!({"root": world.root_at(size).to_base64(), "size": size});
        world.refuse("charge", &["under the checkpoint"], &signer(3), line);
    });
    // Charged to an account that pays for something else.
    tell(SOLO, |world| {
        charged_seal(world);
        let Payload::BudgetOpened(mut cents) = opened("cents", 9, Period::Once) else {
            unreachable!()
        };
        cents.unit = "cent".parse().unwrap();
        world.say(&owner(), (*cents).into(), None);
        let other = world.say(&owner(), charged("cents", 1), None);
        let reveal = revealed("row-1", other, 500_000);
        let wording = ["an account of peeks, whose unit is peek"];
        world.refuse_saying("charge", &wording, &owner(), reveal, EXP);
    });
    // No such event at all: the reference is what breaks first.
    tell(SOLO, |world| {
        charged_seal(world);
        let ghost = EventId(Digest::sha256(b"nothing"));
        let line = world.line(&owner(), revealed("row-1", ghost, 500_000), EXP);
        world.refuse("refs", &["found none"], &owner(), line);
    });
}

#[test]
fn target() {
    tell(SOLO, |world| {
        let unknown = retired(signer(9).id());
        world.refuse_saying("target", &["unknown key"], &owner(), unknown, None);
    });
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        world.say(&owner(), compromised(signer(3).id(), 1), None);
        let later = retired(signer(3).id());
        world.refuse_saying("target", &["ended at seq 2"], &owner(), later, None);
    });
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        let future = compromised(signer(3).id(), 9);
        world.refuse_saying(
            "target",
            &["since_seq of at most 2"],
            &owner(),
            future,
            None,
        );
    });
    // Retired twice is the same natural key twice as well.
    tell(SOLO, |world| {
        add(world, &signer(3), "Bo", &[Role::Scorer]);
        world.say(&owner(), retired(signer(3).id()), None);
        let line = world.line(&owner(), retired(signer(3).id()), None);
        world.refuse_as("target", "natural_key", &["ended at seq 2"], &owner(), line);
    });
    // The log key of another log, and the one in use.
    tell(SOLO, |world| {
        let vkey = VerifierKey::ed25519(
            "ledger.example/other".parse::<Origin>().unwrap(),
            signer(8).public_bytes(),
        );
        let rotated = LogKeyRotated {
            reason: text("yearly"),
            vkey: Vkey::new(vkey.unwrap()).unwrap(),
        };
        world.refuse_saying("target", &["a key named"], &owner(), rotated.into(), None);
    });
    tell(SOLO, |world| {
        let vkey =
            VerifierKey::ed25519(ORIGIN.parse::<Origin>().unwrap(), signer(2).public_bytes());
        let rotated = LogKeyRotated {
            reason: text("yearly"),
            vkey: Vkey::new(vkey.unwrap()).unwrap(),
        };
        world.refuse_saying(
            "target",
            &["not used before"],
            &owner(),
            rotated.into(),
            None,
        );
    });
}

#[test]
fn genesis_again() {
    tell(SOLO, |world| {
        let forge = crate::support::forge::Forge::empty();
        let mut line = forge.genesis(&owner(), Separation::Solo, &Role::ALL);
        let honest = world.line(&owner(), note(), None);
        line.body["author_seq"] = honest.body["author_seq"].clone();
        line.body["seen"] = honest.body["seen"].clone();
        line.body["at"] = honest.body["at"].clone();
        (line.seq, line.recorded_at) = (honest.seq, honest.recorded_at);
        world.refuse_as(
            "genesis",
            "natural_key",
            &["at seq 0 only", "at seq 1"],
            &owner(),
            line,
        );
    });
}

#[test]
fn genesis_of_a_forged_ledger() {
    use crate::support::forge::Forge;
    use clover::ledger::verify::First;
    let first = |forge: &Forge| forge.verify().first.unwrap();
    // Nothing at all, and no ledger.created.
    let found = crate::support::forge::verify_jsonl(
        b"",
        None,
        &clover::ledger::verify::VerifyOptions::default(),
    );
    assert_eq!(
        found.first,
        Some(First {
            seq: 0,
            rule: RuleName::Genesis
        })
    );
    let mut forge = Forge::empty();
    let mut line = forge.line(&owner(), &note(), None);
    line.body["seen"] = Value::Null;
    forge.push(&owner(), &line);
    let report = forge.verify();
    assert!(
        report
            .findings
            .iter()
            .any(|found| (found.seq, found.rule) == (0, RuleName::Genesis)),
        "{:#?}",
        report.findings
    );
    // Signed by another key than the owner it names.
    let mut forge = Forge::empty();
    let mut line = forge.genesis(&owner(), Separation::Solo, &Role::ALL);
    line.body["author"] = Value::from(signer(3).id().to_string());
    line.keyid = signer(3).id();
    forge.push(&signer(3), &line);
    let report = forge.verify();
    assert!(
        report
            .findings
            .iter()
            .any(|found| found.rule == RuleName::Genesis)
    );
    // An owner without the role, an unknown format, a log key of another name, conflicting roles.
    let mut forge = Forge::empty();
    let line = forge.genesis(&owner(), Separation::Solo, &[Role::Scorer]);
    forge.push(&owner(), &line);
    assert_eq!(
        first(&forge),
        First {
            seq: 0,
            rule: RuleName::Genesis
        }
    );
    let mut forge = Forge::empty();
    let mut line = forge.genesis(&owner(), Separation::Solo, &Role::ALL);
    line.body["data"]["format"] = Value::from(3);
    forge.push(&owner(), &line);
    assert_eq!(
        first(&forge),
        First {
            seq: 0,
            rule: RuleName::Genesis
        }
    );
    let mut forge = Forge::empty();
    let line = forge.genesis(&owner(), Separation::Strict, &Role::ALL);
    forge.push(&owner(), &line);
    assert_eq!(
        first(&forge),
        First {
            seq: 0,
            rule: RuleName::Separation
        }
    );
}

#[test]
fn blob() {
    let named = |bytes: &[u8]| -> Payload {
        NoteRecorded {
            blob: Some(BlobRef {
                blake3: Digest::blake3(bytes),
                bytes: Count::new(bytes.len() as u64).unwrap(),
                media: MediaType::new("text/plain").unwrap(),
            }),
            text: text("see the blob"),
        }
        .into()
    };
    let mut test = crate::support::TestLedger::new();
    let commands = [clover::ledger::Command::new(named(b"content"), None)];
    let error = test.append(&commands).unwrap_err().to_string();
    assert!(
        error.contains("blob") && error.contains("no such blob"),
        "{error}"
    );
    let owner = owner();
    let wrong = [b"other content".to_vec()];
    let error = test.ledger.append_with_blobs(&commands, &owner, &wrong);
    assert!(error.unwrap_err().to_string().contains("no such blob"));
    assert_eq!(test.ledger.store().reader().blob_count().unwrap(), 0);
    let right = [b"content".to_vec()];
    test.ledger
        .append_with_blobs(&commands, &owner, &right)
        .unwrap();
    // The right digest with another length.
    let mut longer = named(b"content");
    if let Payload::NoteRecorded(note) = &mut longer {
        note.blob.as_mut().unwrap().bytes = Count::new(8).unwrap();
    }
    let error = test.append(&[clover::ledger::Command::new(longer, None)]);
    assert!(error.unwrap_err().to_string().contains("7 bytes"));
    test.check_all();

    // From lines: missing, changed, and right.
    let mut forge = crate::support::forge::Forge::new(Separation::Solo, &Role::ALL);
    forge.say(&owner, named(b"content"), None);
    for (held, passes) in [
        (None, false),
        (Some(b"content".to_vec()), true),
        (Some(b"contenT".to_vec()), false),
        (Some(b"content ".to_vec()), false),
    ] {
        let source = |_: &Digest| Ok(held.clone());
        let jsonl = forge.jsonl();
        let lines = clover::ledger::verify::EntryLines {
            lines: Box::new(std::io::BufReader::new(&jsonl[..])),
            checkpoint: Some(forge.checkpoint()),
            blobs: Some(&source),
        };
        let report = clover::ledger::verify::verify_lines(
            lines,
            &clover::ledger::verify::VerifyOptions::default(),
            &clover::workflow::RULEBOOK,
            &crate::support::ambient(world_now()),
            &mut |_, _| {},
        )
        .unwrap();
        let first = (!passes).then_some(clover::ledger::verify::First {
            seq: 1,
            rule: RuleName::Blob,
        });
        assert_eq!(report.first, first);
    }
}

fn world_now() -> Timestamp {
    crate::support::start()
}

#[test]
fn tainted_events_are_listed_and_are_no_finding() {
    let mut test = crate::support::TestLedger::new();
    test.add_key(&signer(3), "Bo", &[Role::Scorer]).unwrap();
    let thief = signer(3);
    for _ in 0..3 {
        let commands = [clover::ledger::Command::new(note(), None)];
        test.ledger.append(&commands, &thief).unwrap();
    }
    test.append(&[clover::ledger::Command::new(
        compromised(thief.id(), 3),
        None,
    )])
    .unwrap();
    let report = test.check_all();
    assert_eq!(report.tainted.len(), 1);
    assert_eq!(
        (report.tainted[0].since_seq, report.tainted[0].declared_seq),
        (3, 5)
    );
    assert!(report.verdict_line().contains("1 tainted keys"));
}

#[test]
fn a_root_that_was_never_a_checkpoint_is_not_seen() {
    use clover::ledger::Command;
    use clover::ledger::verify::First;
    use clover::store::EntryRef;
    use clover::store::StoredCheckpoint;
    let mut test = crate::support::TestLedger::new();
    let notes: Vec<_> = (0..3).map(|_| Command::new(note(), None)).collect();
    test.append(&notes).unwrap();
    // Size 2 lies inside the batch: its root is this tree's, and nobody ever signed it.
    let mut mirror = crate::support::forge::Forge::empty();
    test.ledger
        .entries(0, 4, |read| {
            let it = read.stored;
            let mut line = Vec::new();
            clover::event::entry::write_line(
                &mut line,
                it.seq,
                it.recorded_at,
                &it.body,
                &it.author,
                &it.signature,
            );
            mirror.tiles.push(clover::ground::merkle::leaf_hash(&line));
            mirror.roots.push(mirror.tiles.root());
            Ok::<_, clover::ledger::LedgerError>(())
        })
        .unwrap();
    assert_eq!(mirror.tiles.root(), test.ledger.root());
    mirror.counters.insert(owner().id(), 4);
    mirror.now = test.ledger.state().keyring.recorded_at.unwrap();
    let mut line = mirror.line(&owner(), &note(), None);
    // The author has named size 1 before, so 2 is no step back.
    line.body["seen"] = json!({"root": mirror.roots[1].to_base64(), "size": 2});
    let signed = line.signed(&owner());
    let refused = test.ledger.submit(vec![signed.clone()]).unwrap_err();
    assert!(
        refused.to_string().contains("a kept checkpoint of size 2"),
        "{refused}"
    );
    // From lines alone the root is good: any size is a checkpoint there. In the file it is a finding.
    mirror.push(&owner(), &line);
    let store = test.ledger.store();
    let txn = store.begin().unwrap();
    let entry = EntryRef {
        seq: 4,
        author: signed.signer(),
        author_seq: 4,
        recorded_at: line.recorded_at,
        body: signed.body(),
        signature: signed.signature(),
    };
    txn.rows(1).unwrap().append_entries([entry]).unwrap();
    let checkpoint = StoredCheckpoint {
        size: 5,
        note: mirror.checkpoint().encode(),
    };
    txn.put_checkpoint(&checkpoint).unwrap();
    txn.commit().unwrap();
    let report = test.verify(&clover::ledger::verify::VerifyOptions::default());
    assert_eq!(
        report.first,
        Some(First {
            seq: 4,
            rule: RuleName::Seen
        }),
        "{:#?}",
        report.findings
    );
    assert_eq!(report.findings_total, 1);
}
