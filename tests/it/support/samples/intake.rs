//! The last part of the story: a file is taken in, designs are registered, clusters split, labels given and sealed.

use clover::event::Payload;
use clover::event::id::Base64Text;
use clover::event::id::ItemId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::payload::Role;
use clover::event::payload::Verdict;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::intake::ClusterRule;
use clover::event::payload::intake::DataIngested;
use clover::event::payload::intake::ImportFormat;
use clover::event::payload::intake::ListedBy;
use clover::event::payload::intake::PartRoot;
use clover::event::payload::intake::Source;
use clover::event::payload::intake::SourceEnvelope;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::intake::SplitSeparation;
use clover::event::payload::intake::SplitsFormed;
use clover::event::payload::intake::SplitsListed;
use clover::event::payload::judge::LogprobRecorded;
use clover::event::payload::judge::TargetLogprob;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelPurpose;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::label::Stratum;
use clover::event::payload::scoring::Decoding;
use clover::event::payload::scoring::EvidenceRecorded;
use clover::event::payload::scoring::JudgePort;
use clover::event::payload::scoring::JudgeRegistered;
use clover::event::payload::scoring::ScoreReplayed;
use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::Frontier;
use clover::ground::seal;
use clover::ground::seal::Identity;
use clover::ground::seal::LabelOpening;
use clover::ground::time::Timestamp;
use clover::ledger::Command;
use clover::num::Finite;
use clover::num::Micro;
use clover::workflow::split;

use super::*;
use crate::support::valued;

/// The experiment that this part belongs to; it stays open.
pub const ARENA: &str = "arena";
/// The seed that puts the clusters where they are.
const SEED: u64 = 231;
/// Clusters by part.
const CLUSTERS: [(SplitPart, &[&str]); 3] = [
    (SplitPart::Confirm, &["item-e", "item-f"]),
    (SplitPart::Dev, &["item-d"]),
    (SplitPart::Fit, &["item-a", "item-b", "item-c"]),
];

/// What the sealed label of `base/item-f/0` opens to.
pub fn held() -> LabelOpening {
    LabelOpening {
        salt: [7; 32],
        value_micro: 640_000,
    }
}

fn arena(payload: impl Into<Payload>) -> Command {
    Command::new(payload, Some(ARENA.parse().unwrap()))
}

pub(super) fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

pub(super) fn tell(teller: &mut Teller, identity: &Identity) {
    let added = key_added(&signer(ARBITER), "arbiter", false, &[Role::Arbiter]);
    teller.say(ADA, "key-arbiter", added);
    let registered = ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: text("compare policies on imported rows"),
        title: text("Arena"),
    };
    teller.say_all(ADA, vec![("arena", arena(registered))]);
    designs(teller);
    files(teller, identity);
    split(teller);
    let open = LabelRecorded {
        design: "calib".parse().unwrap(),
        ..label("item-a", LabelPurpose::Calibrate, 710_000)
    };
    teller.say_all(LENA, vec![("label-a", arena(open))]);
    seal(teller, identity);
    estimates(teller);
}

/// A fit, what it gives, and an audit that failed.
fn estimates(teller: &mut Teller) {
    let model = teller.blob(valued::MODEL.to_vec(), "application/json");
    let rows = teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    assert_eq!(model.bytes.value() + rows.bytes.value(), blob_bytes());
    let held = valued::payload(clover::event::Kind::LogprobsChecked, &valued::checked());
    teller.say_all(RUNNER_3, vec![("logged", arena(held))]);
    let said = valued::every(5, "probe").into_iter();
    let said = said.map(|(name, payload)| (name, arena(payload)));
    teller.say_all(ARBITER, said.collect());
}

fn blob_bytes() -> u64 {
    (valued::MODEL.len() + valued::ROWS.len()) as u64
}

fn designs(teller: &mut Teller) {
    let design = |name: &str, purpose, inclusion, strata| LabelDesignRegistered {
        design: name.parse().unwrap(),
        inclusion_micro: micro(inclusion),
        protocol: "sdp-1".parse().unwrap(),
        purpose,
        strata,
    };
    let rare = Stratum {
        inclusion_micro: micro(1_000_000),
        stratum: "rare".parse().unwrap(),
    };
    let said = vec![
        (
            "calib",
            arena(design(
                "calib",
                DesignPurpose::Calibrate,
                480_000,
                Some(vec![rare]),
            )),
        ),
        (
            "probe",
            arena(design("probe", DesignPurpose::Audit, 50_000, None)),
        ),
        (
            "hold",
            arena(design("hold", DesignPurpose::Confirm, 1_000_000, None)),
        ),
    ];
    teller.say_all(LENA, said);
}

/// Two files, one kept privately, one for the custodian alone; a score and log-probabilities of the first.
fn files(teller: &mut Teller, identity: &Identity) {
    let items = CLUSTERS.iter().flat_map(|(_, items)| items.iter());
    let line = |item: &&str| {
        format!(
            r#"{{"draw":0,"item":"{item}","judge":"judge-1","labelled":true,"policy":"base","score_micro":500000}}"#
        )
    };
    let lines: Vec<_> = items.map(line).collect();
    let ingested = |teller: &mut Teller, lines: &[String], source| {
        let mut tree = Frontier::new();
        for line in lines {
            tree.push(merkle::leaf_hash(line.as_bytes()));
        }
        DataIngested {
            fields: None,
            format: ImportFormat::Cje,
            labelled: count(lines.len() as u64),
            rounded: count(0),
            rows: teller.blob(
                (lines.join("\n") + "\n").into_bytes(),
                "application/x-ndjson",
            ),
            rows_in: count(lines.len() as u64),
            rows_out: count(lines.len() as u64),
            rows_root: Root(tree.root()),
            sampled_from: None,
            sampled_to: None,
            source,
        }
    };
    let source = Source::Private(teller.private("the original lines"));
    let first = ingested(teller, &lines, source);
    teller.say_all(RUNNER_3, vec![("ingested-1", arena(first))]);
    let recipient = identity.recipient();
    let file = teller.entropy(|entropy| seal::encrypt(b"the second file", &[recipient], entropy));
    let source = Source::Envelope(SourceEnvelope {
        blob: teller.blob(file.unwrap(), "application/octet-stream"),
        recipient: SealRecipient(recipient),
    });
    let mut second = ingested(teller, &lines[..1], source);
    second.sampled_from = Timestamp::parse("2026-09-01T00:00:00.000000Z");
    second.sampled_to = second.sampled_from;
    teller.say_all(RUNNER_3, vec![("ingested-2", arena(second))]);
    let mut scored = arena(score("item-a", 0, 500_000));
    scored.refs = vec![teller.id("ingested-1")];
    let logprob = LogprobRecorded {
        base: Finite::new(-14.726_269_679_999_916).unwrap(),
        draw: count(0),
        item: "item-a".parse().unwrap(),
        policy: "base".parse().unwrap(),
        targets: vec![TargetLogprob {
            logprob: Finite::new(-1e-7).unwrap(),
            policy: "tuned".parse().unwrap(),
        }],
    };
    let said = vec![("scored-a", scored), ("logprob-a", arena(logprob))];
    teller.say_all(RUNNER_3, said);
    scoring(teller);
}

/// A judge by its name, what was found in what it scored, and a re-score.
fn scoring(teller: &mut Teller) {
    let known = br#"{"citations":{"complete":true,"known":{}},"facts":[],"traces":{}}"#;
    let registered = JudgeRegistered {
        asked: None,
        decoding: Decoding {
            temperature_micro: micro(0),
        },
        evidence_schema: text("evidence/1"),
        extractor: text("clover-text/1"),
        judge: "judge-1".parse().unwrap(),
        known: Some(teller.blob(known.to_vec(), "application/json")),
        model: text("builtin-text/1"),
        of: None,
        prompt: None,
        port: JudgePort::Builtin,
        prompt_hash: Digest::sha256(b""),
        repeat: None,
        scale: None,
        tool_snapshot: Digest::sha256(known),
    };
    teller.say_all(RUNNER_3, vec![("judge-1", arena(registered))]);
    let line = br#"{"a_hash":"00","b_micro":500000}"#;
    let found = EvidenceRecorded {
        judge: "judge-1".parse().unwrap(),
        records: teller.blob([&line[..], b"\n"].concat(), "application/x-ndjson"),
        records_count: count(1),
        records_root: Root(merkle::leaf_hash(line)),
    };
    let replayed = ScoreReplayed {
        judge: "judge-1".parse().unwrap(),
        keys: count(30),
        keys_root: Root(Digest::sha256(b"keys")),
        mismatches: count(0),
        seed: count(1),
    };
    let said = vec![("found-1", arena(found)), ("replayed-1", arena(replayed))];
    teller.say_all(RUNNER_3, said);
}

fn split(teller: &mut Teller) {
    let names = ["listed-confirm", "listed-dev", "listed-fit"];
    let ids = |items: &[&str]| {
        items
            .iter()
            .map(|id| id.parse().unwrap())
            .collect::<Vec<ItemId>>()
    };
    let mut said: Vec<(&'static str, Command)> = Vec::new();
    for (name, (part, items)) in names.into_iter().zip(CLUSTERS) {
        let listed = SplitsListed {
            by: Some(ListedBy {
                cluster_rule: ClusterRule::Blake2bMod3,
                seed: count(SEED),
                separation: SplitSeparation::Hashed,
            }),
            clusters: ids(items),
            first: count(0),
            part,
            split: "split-1".parse().unwrap(),
        };
        said.push((name, arena(listed)));
    }
    let root = |at: usize| -> PartRoot { split::root(&ids(CLUSTERS[at].1)) };
    let formed = SplitsFormed {
        cluster_rule: ClusterRule::Blake2bMod3,
        confirm: root(0),
        dev: root(1),
        fit: root(2),
        gap: Verdict::NotChecked,
        gap_seconds: None,
        seed: count(SEED),
        separation: SplitSeparation::Hashed,
        split: "split-1".parse().unwrap(),
        t1: None,
        t2: None,
    };
    said.push(("formed", arena(formed)));
    teller.say_all(ARBITER, said);
}

fn seal(teller: &mut Teller, identity: &Identity) {
    let (design, row, opening) = ("hold", "base/item-f/0", held());
    let recipient = identity.recipient();
    let plain = opening.to_bytes();
    let file = teller
        .entropy(|entropy| seal::encrypt(&plain[..], &[recipient], entropy))
        .unwrap();
    let sealed = LabelSealed {
        commitment: opening.commitment(ORIGIN, design, row),
        design: design.parse().unwrap(),
        envelope: Base64Text(file.clone()),
        recipient: SealRecipient(recipient),
        reveal_by: Timestamp::parse("2026-12-31T23:59:59.999999Z").unwrap(),
        row: row.parse().unwrap(),
    };
    teller.say_all(CLEO, vec![("held", arena(sealed))]);
    let accepted = SealAccepted {
        design: design.parse().unwrap(),
        envelope_sha256: Digest::sha256(&file),
        row: row.parse().unwrap(),
    };
    teller.say_all(CLEO, vec![("held-accepted", arena(accepted))]);
}
