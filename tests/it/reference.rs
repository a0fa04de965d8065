//! The four-event reference ledger, made by an independent program: its bytes are beyond argument.

use std::path::Path;

use base64ct::Base64;
use base64ct::Encoding;
use clover::event::Draft;
use clover::event::Header;
use clover::event::Payload;
use clover::event::SeenCheckpoint;
use clover::event::entry;
use clover::event::header::PAYLOAD_TYPE;
use clover::event::id::Base64Bytes;
use clover::event::id::EventId;
use clover::event::id::Root;
use clover::event::id::Vkey;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::Verdict;
use clover::event::payload::custody::KeyAddedV1;
use clover::event::payload::custody::LedgerCreated;
use clover::event::payload::custody::OwnerKey;
use clover::event::payload::custody::Policy;
use clover::event::payload::custody::Separation;
use clover::event::payload::judge::ScoreRecorded;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::Frontier;
use clover::ground::note::Checkpoint;
use clover::ground::note::Origin;
use clover::ground::note::SignedCheckpoint;
use clover::ground::note::VerifierKey;
use clover::ground::sign::Signed;
use clover::ground::sign::Signer;
use clover::ground::sign::Verified;
use clover::ground::time::Timestamp;
use clover::ledger::verify::Signatures;
use clover::ledger::verify::VerifyOptions;
use clover::num::Count;
use clover::num::Micro;
use serde_json::Value;
use serde_json::json;

use crate::support::forge;

const ORIGIN: &str = "ledger.example/exp1";

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reference");
    std::fs::read(folder.join(name)).unwrap()
}

fn expected() -> Value {
    serde_json::from_slice(&fixture("expected.json")).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The signer of a seed in `expected.json`.
fn seed(name: &str) -> Signer {
    let hex = expected()["seeds_hex"][name].as_str().unwrap().to_owned();
    Signer::from_seed(&Digest::from_hex(&hex).unwrap().0)
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The log as it grows: seeds and times in, every byte out.
#[expect(clippy::struct_field_names, reason = "the log key is a key")]
struct Log {
    frontier: Frontier,
    lines: Vec<Vec<u8>>,
    signed: Vec<Signed<Verified>>,
    leaves: Vec<Digest>,
    checkpoints: Vec<SignedCheckpoint>,
    log_key: Signer,
}

impl Log {
    fn new() -> Self {
        Self {
            frontier: Frontier::new(),
            lines: Vec::new(),
            signed: Vec::new(),
            leaves: Vec::new(),
            checkpoints: Vec::new(),
            log_key: seed("log"),
        }
    }

    fn vkey(&self) -> VerifierKey {
        VerifierKey::ed25519(
            ORIGIN.parse::<Origin>().unwrap(),
            self.log_key.public_bytes(),
        )
        .unwrap()
    }

    fn header(&self, signer: &Signer, author_seq: u64, at: Timestamp) -> Header {
        let seen = (self.frontier.size() > 0).then(|| {
            let newest = self.checkpoints.last().unwrap().checkpoint();
            SeenCheckpoint {
                root: Root(newest.root),
                size: Count::new(newest.size).unwrap(),
            }
        });
        Header {
            at,
            author: signer.id(),
            author_seq,
            experiment: None,
            ledger: ORIGIN.into(),
            refs: Vec::new(),
            seen,
        }
    }

    fn append(&mut self, recorded_at: Timestamp, signed: Signed<Verified>) {
        let mut line = Vec::new();
        entry::write_line(
            &mut line,
            self.frontier.size(),
            recorded_at,
            signed.body(),
            &signed.signer(),
            signed.signature(),
        );
        let leaf = merkle::leaf_hash(&line);
        self.frontier.push(leaf);
        self.leaves.push(leaf);
        self.lines.push(line);
        self.signed.push(signed);
    }

    fn checkpoint(&mut self) {
        let origin: Origin = ORIGIN.parse().unwrap();
        let checkpoint = Checkpoint::new(origin, self.frontier.size(), self.frontier.root());
        let keys = [(self.vkey(), self.log_key.key())];
        self.checkpoints
            .push(SignedCheckpoint::sign(checkpoint, &keys).unwrap());
    }
}

fn score(item: &str, micro: i64) -> ScoreRecorded {
    ScoreRecorded {
        call: None,
        draw: Count::new(0).unwrap(),
        item: item.parse().unwrap(),
        judge: "gpt-4.1-nano-2025-04-14".parse().unwrap(),
        policy: "base".parse().unwrap(),
        prompt: None,
        response: None,
        score_micro: Micro::new(micro).unwrap(),
    }
}

/// `key.added` v1 is retired: it is read, never drafted, so its body is put together here.
fn key_added_v1(header: &Header, added: &KeyAddedV1) -> Vec<u8> {
    let body = json!({
        "at": header.at, "author": header.author, "author_seq": header.author_seq, "data": added,
        "experiment": null, "kind": "key.added", "ledger": header.ledger, "refs": [],
        "seen": header.seen, "v": 1,
    });
    canon::to_bytes(&body).unwrap()
}

fn build() -> Log {
    let (owner, scorer) = (seed("owner"), seed("scorer"));
    let mut log = Log::new();
    let payload = Payload::from(LedgerCreated {
        rulebook: None,
        format: Count::new(1).unwrap(),
        log_vkey: Vkey::new(log.vkey()).unwrap(),
        origin: ORIGIN.parse().unwrap(),
        owner: OwnerKey {
            holder: "Ada".parse().unwrap(),
            human: true,
            public_key: Base64Bytes(owner.public_bytes()),
            roles: Roles::new([Role::Owner]).unwrap(),
        },
        policy: Policy {
            separation: Separation::Solo,
        },
    });
    let time = at("2026-11-20T10:00:00.000000Z");
    let header = log.header(&owner, 0, time);
    log.append(
        at("2026-11-20T10:00:00.000100Z"),
        Draft { header, payload }.sign(&owner).unwrap(),
    );
    log.checkpoint();
    let added = KeyAddedV1 {
        holder: "judge runner".parse().unwrap(),
        human: false,
        key_id: scorer.id(),
        public_key: Base64Bytes(scorer.public_bytes()),
        roles: Roles::new([Role::Scorer]).unwrap(),
    };
    let header = log.header(&owner, 1, at("2026-11-20T10:00:01.000000Z"));
    let body = key_added_v1(&header, &added);
    log.append(
        at("2026-11-20T10:00:01.000100Z"),
        Signed::sign(PAYLOAD_TYPE, body, &owner),
    );
    log.checkpoint();
    let mut refs = Vec::new();
    for (n, (item, micro)) in [("arena_22", 850_000), ("arena_23", 450_000)]
        .into_iter()
        .enumerate()
    {
        let offset = i64::try_from(n).unwrap();
        let mut header = log.header(
            &scorer,
            n as u64,
            at("2026-11-20T10:00:02.000000Z") + offset,
        );
        header.experiment = Some("exp-1".parse().unwrap());
        header.refs.clone_from(&refs);
        let payload = score(item, micro).into();
        let signed = Draft { header, payload }.sign(&scorer).unwrap();
        refs = vec![EventId(Digest::sha256(signed.body()))];
        log.append(at("2026-11-20T10:00:02.000100Z"), signed);
    }
    log.checkpoint();
    log
}

#[test]
fn every_byte_is_reproduced_from_seeds_and_times() {
    let (log, expected) = (build(), expected());
    let bodies: Vec<_> = log
        .signed
        .iter()
        .map(|signed| String::from_utf8(signed.body().to_vec()).unwrap())
        .collect();
    assert_eq!(bodies, texts(&expected["bodies"]));
    let ids: Vec<_> = log
        .signed
        .iter()
        .map(|signed| Digest::sha256(signed.body()).to_hex())
        .collect();
    assert_eq!(ids, texts(&expected["event_ids"]));
    let leaves: Vec<_> = log.leaves.iter().map(Digest::to_hex).collect();
    assert_eq!(leaves, texts(&expected["leaf_hashes"]));
    assert_eq!(
        log.frontier.root().to_hex(),
        expected["root"].as_str().unwrap()
    );
    let checkpoints: Vec<_> = log.checkpoints.iter().map(ToString::to_string).collect();
    assert_eq!(checkpoints, texts(&expected["checkpoints"]));
    assert_eq!(
        log.vkey().to_string(),
        expected["log_vkey"].as_str().unwrap()
    );
    assert_eq!(expected["origin"].as_str().unwrap(), ORIGIN);
    for name in ["owner", "scorer"] {
        assert_eq!(
            seed(name).id().to_string(),
            expected["key_ids"][name].as_str().unwrap()
        );
    }
    let mut file = log.lines.join(&b'\n');
    file.push(b'\n');
    assert_eq!(
        String::from_utf8(file).unwrap(),
        String::from_utf8(fixture("ledger.jsonl")).unwrap()
    );
    assert_eq!(
        log.checkpoints[2].encode(),
        fixture("checkpoint"),
        "the head"
    );
}

#[test]
fn the_reference_verifies_against_every_checkpoint() {
    let head = SignedCheckpoint::parse(&fixture("checkpoint")).unwrap();
    let against: Vec<_> = texts(&expected()["checkpoints"])
        .into_iter()
        .map(|text| {
            let parsed = SignedCheckpoint::parse(text.as_bytes()).unwrap();
            (format!("size {}", parsed.checkpoint().size), parsed)
        })
        .collect();
    for signatures in [Signatures::Strict, Signatures::Fast] {
        for (name, one) in &against {
            let options = VerifyOptions {
                against: vec![(name.clone(), one.clone())],
                signatures,
                ..VerifyOptions::default()
            };
            let report =
                forge::verify_jsonl(&fixture("ledger.jsonl"), Some(head.clone()), &options);
            assert_eq!(
                report.verdict,
                Verdict::Pass,
                "{name}: {:?}",
                report.findings
            );
            assert_eq!((report.events, report.signers), (4, 2));
            assert_eq!(
                report.root.to_hex(),
                expected()["root"].as_str().unwrap(),
                "{name}"
            );
            if one.checkpoint().size < 4 {
                assert_eq!(
                    report.not_checked,
                    ["possession and experiment (format 1)", "recompute"],
                    "{name}"
                );
            }
        }
    }
    let options = VerifyOptions {
        against,
        ..VerifyOptions::default()
    };
    let report = forge::verify_jsonl(&fixture("ledger.jsonl"), Some(head), &options);
    assert_eq!(report.verdict, Verdict::Pass);
}

#[test]
fn what_was_not_checked_is_named() {
    let head = || SignedCheckpoint::parse(&fixture("checkpoint")).unwrap();
    let verify = |checkpoint, options: &VerifyOptions| {
        forge::verify_jsonl(&fixture("ledger.jsonl"), checkpoint, options)
    };
    let report = verify(Some(head()), &VerifyOptions::default());
    assert_eq!(
        report.not_checked,
        [
            "possession and experiment (format 1)",
            "identity",
            "recompute"
        ]
    );
    assert!(
        report.notes[0].contains("without proof of possession"),
        "{:?}",
        report.notes
    );
    let report = verify(None, &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(
        report.not_checked,
        [
            "checkpoint",
            "possession and experiment (format 1)",
            "identity",
            "recompute"
        ]
    );
    let known: VerifierKey = expected()["log_vkey"].as_str().unwrap().parse().unwrap();
    let report = verify(
        Some(head()),
        &VerifyOptions {
            log_key: Some(known),
            recompute: true,
            ..VerifyOptions::default()
        },
    );
    assert_eq!(report.not_checked, ["possession and experiment (format 1)"]);
    assert!(
        report
            .verdict_line()
            .ends_with("possession and experiment (format 1) NOT CHECKED")
    );
    let stranger = VerifierKey::ed25519(ORIGIN.parse::<Origin>().unwrap(), [7; 32]);
    if let Ok(stranger) = stranger {
        let options = VerifyOptions {
            log_key: Some(stranger),
            ..VerifyOptions::default()
        };
        assert_eq!(verify(Some(head()), &options).verdict, Verdict::Fail);
    }
}

#[test]
fn the_strict_tools_of_the_envelope_hold() {
    // The envelope's base64 is the body's, as any other reader would decode it.
    for (line, body) in fixture("ledger.jsonl")
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .zip(texts(&expected()["bodies"]))
    {
        let line: Value = serde_json::from_slice(line).unwrap();
        let payload = line["envelope"]["payload"].as_str().unwrap();
        assert_eq!(Base64::decode_vec(payload).unwrap(), body.as_bytes());
    }
}
