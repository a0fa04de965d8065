//! Rules of data taken in, as stories: `design`, `purpose`, `split`, `score_once`.

use clover::event::Payload;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::Role;
use clover::event::payload::Verdict;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::intake::ClusterRule;
use clover::event::payload::intake::PartRoot;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::intake::SplitSeparation;
use clover::event::payload::intake::SplitsFormed;
use clover::event::payload::intake::SplitsListed;
use clover::event::payload::judge::ScoreConflict;
use clover::event::payload::label::DesignPurpose;
use clover::event::payload::label::LabelDesignRegistered;
use clover::event::payload::label::LabelPurpose;
use clover::event::payload::label::LabelRecorded;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::Stratum;
use clover::event::payload::scoring::Decoding;
use clover::event::payload::scoring::EvidenceRecorded;
use clover::event::payload::scoring::JudgePort;
use clover::event::payload::scoring::JudgeRegistered;
use clover::event::payload::scoring::ScoreReplayed;
use clover::ground::digest::Digest;
use clover::ground::seal::Identity;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::num::Count;
use clover::num::Micro;
use clover::workflow::split;

use crate::support::TestLedger;
use clover::ledger::Command;

use super::world::SOLO;
use super::world::World;
use super::world::tell;
use crate::support::key_added;
use crate::support::signer;
use crate::support::text;

const EXP: Option<&str> = Some("exp-1");

fn owner() -> Signer {
    signer(1)
}

fn begin(world: &mut dyn World) {
    let registered = ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: text("testing"),
        title: text("Experiment"),
    };
    world.say(&owner(), registered.into(), EXP);
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap()
}

fn design(name: &str, purpose: DesignPurpose) -> Payload {
    LabelDesignRegistered {
        design: name.parse().unwrap(),
        inclusion_micro: micro(480_000),
        protocol: "sdp-1".parse().unwrap(),
        purpose,
        strata: None,
    }
    .into()
}

fn label(design: &str, item: &str, rater: &str, purpose: LabelPurpose) -> Payload {
    LabelRecorded {
        design: design.parse().unwrap(),
        draw: count(0),
        item: item.parse().unwrap(),
        policy: "base".parse().unwrap(),
        purpose,
        rater: rater.parse().unwrap(),
        value_micro: micro(5),
    }
    .into()
}

fn calibrate(item: &str) -> Payload {
    label("calib", item, "lena", LabelPurpose::Calibrate)
}

fn sealed(design: &str, row: &str) -> Payload {
    LabelSealed {
        commitment: Digest([3; 32]),
        design: design.parse().unwrap(),
        envelope: Base64Text(row.as_bytes().to_vec()),
        recipient: SealRecipient(Identity::from_bytes(&[9; 32]).recipient()),
        reveal_by: Timestamp::parse("2027-01-31T00:00:00.000000Z").unwrap(),
        row: row.parse().unwrap(),
    }
    .into()
}

fn ids(items: &[&str]) -> Vec<ItemId> {
    items.iter().map(|id| id.parse().unwrap()).collect()
}

fn listed(split: &str, part: SplitPart, first: u64, items: &[&str]) -> Payload {
    SplitsListed {
        by: None,
        clusters: ids(items),
        first: count(first),
        part,
        split: split.parse().unwrap(),
    }
    .into()
}

fn root(items: &[&str]) -> PartRoot {
    split::root(&ids(items))
}

fn formed(split: &str, confirm: &[&str], fit: &[&str]) -> SplitsFormed {
    SplitsFormed {
        cluster_rule: ClusterRule::Blake2bMod3,
        confirm: root(confirm),
        dev: root(&[]),
        fit: root(fit),
        gap: Verdict::NotChecked,
        gap_seconds: None,
        seed: count(7),
        separation: SplitSeparation::Hashed,
        split: split.parse().unwrap(),
        t1: None,
        t2: None,
    }
}

/// An experiment with designs for everything, and a split with `c` and `d` in confirm.
fn governed(world: &mut dyn World) {
    begin(world);
    world.say(&owner(), design("calib", DesignPurpose::Calibrate), EXP);
    world.say(&owner(), design("probe", DesignPurpose::Audit), EXP);
    world.say(&owner(), design("hold", DesignPurpose::Confirm), EXP);
    world.say(
        &owner(),
        listed("split-1", SplitPart::Confirm, 0, &["c"]),
        EXP,
    );
    world.say(
        &owner(),
        listed("split-1", SplitPart::Confirm, 1, &["d"]),
        EXP,
    );
    world.say(
        &owner(),
        listed("split-1", SplitPart::Fit, 0, &["a", "b"]),
        EXP,
    );
    world.say(
        &owner(),
        formed("split-1", &["c", "d"], &["a", "b"]).into(),
        EXP,
    );
}

type Story<'a> = (&'a str, &'a [&'a str], Payload);

/// Each payload is refused after `before`, by its rule and in these words.
fn each(before: impl Fn(&mut dyn World), stories: Vec<Story<'_>>) {
    for (rule, wording, payload) in stories {
        tell(SOLO, |world| {
            before(world);
            world.refuse_saying(rule, wording, &owner(), payload.clone(), EXP);
        });
    }
}

#[test]
fn design_rule() {
    each(
        governed,
        vec![
            (
                "design",
                &["a registered label design", "pocket, not registered"],
                label("pocket", "a", "lena", LabelPurpose::Calibrate),
            ),
            (
                "design",
                &["policy/item/draw", "row-1"],
                sealed("probe", "row-1"),
            ),
            (
                "design",
                &["policy/item/draw"],
                sealed("probe", "base/a/00"),
            ),
        ],
    );
    // A design is said before its labels.
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), calibrate("a"), EXP);
        let late = design("calib", DesignPurpose::Calibrate);
        world.refuse_saying(
            "design",
            &["before its first label", "since seq 2"],
            &owner(),
            late,
            EXP,
        );
    });
    tell(SOLO, |world| {
        begin(world);
        let stratum = |name: &str| Stratum {
            inclusion_micro: micro(1),
            stratum: name.parse().unwrap(),
        };
        let twice = LabelDesignRegistered {
            design: "calib".parse().unwrap(),
            inclusion_micro: micro(1),
            protocol: "sdp-1".parse().unwrap(),
            purpose: DesignPurpose::Calibrate,
            strata: Some(vec![stratum("b"), stratum("a")]),
        };
        world.refuse_saying("design", &["in order"], &owner(), twice.into(), EXP);
    });
}

#[test]
fn purpose_rule() {
    each(
        governed,
        vec![
            (
                "purpose",
                &["a label for calibrate", "for audit"],
                label("calib", "a", "lena", LabelPurpose::Audit),
            ),
            (
                "purpose",
                &["a label for confirm", "for calibrate"],
                label("hold", "a", "lena", LabelPurpose::Calibrate),
            ),
            (
                "purpose",
                &["for audit or confirm", "calib, for calibrate"],
                sealed("calib", "base/a/0"),
            ),
        ],
    );
    let opened = |world: &mut dyn World| {
        governed(world);
        world.say(&owner(), calibrate("a"), EXP);
        // Another rater of the same draw, for the same purpose.
        world.say(
            &owner(),
            label("calib", "a", "ben", LabelPurpose::Calibrate),
            EXP,
        );
    };
    each(
        opened,
        vec![
            (
                "purpose",
                &["one purpose", "seq 9"],
                label("probe", "a", "lena", LabelPurpose::Audit),
            ),
            (
                "purpose",
                &["one purpose", "seq 9"],
                sealed("probe", "base/a/0"),
            ),
        ],
    );
    let closed = |world: &mut dyn World| {
        governed(world);
        world.say(&owner(), design("probe-2", DesignPurpose::Audit), EXP);
        world.say(&owner(), sealed("probe", "base/a/0"), EXP);
    };
    each(
        closed,
        vec![
            (
                "purpose",
                &["sealed in one design", "seq 10"],
                calibrate("a"),
            ),
            (
                "purpose",
                &["seq 10"],
                label("probe", "a", "lena", LabelPurpose::Audit),
            ),
            ("purpose", &["seq 10"], sealed("probe-2", "base/a/0")),
        ],
    );
    // Where no design is registered, a draw still serves one purpose.
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), calibrate("a"), EXP);
        let audit = label("other", "a", "lena", LabelPurpose::Audit);
        world.refuse_saying("purpose", &["one purpose"], &owner(), audit, EXP);
    });
}

#[test]
fn split_rule_for_labels() {
    each(
        governed,
        vec![
            (
                "split",
                &["no open label of a confirm cluster", "seq 5"],
                calibrate("c"),
            ),
            (
                "split",
                &["splits.listed put into confirm"],
                sealed("hold", "base/a/0"),
            ),
            (
                "split",
                &["splits.listed put into confirm"],
                sealed("hold", "base/unlisted/0"),
            ),
            // Spent: once in confirm, never again.
            (
                "split",
                &["in confirm once", "seq 5"],
                listed("split-2", SplitPart::Confirm, 0, &["c"]),
            ),
        ],
    );
    let designed = |world: &mut dyn World| {
        begin(world);
        world.say(&owner(), design("hold", DesignPurpose::Confirm), EXP);
    };
    each(
        designed,
        vec![(
            "split",
            &["splits.formed before confirm labels", "no splits.formed"],
            sealed("hold", "base/c/0"),
        )],
    );
    // Listed since, and not formed: membership is not committed yet.
    let reopened = |world: &mut dyn World| {
        governed(world);
        world.say(
            &owner(),
            listed("split-2", SplitPart::Confirm, 0, &["x"]),
            EXP,
        );
    };
    each(
        reopened,
        vec![(
            "split",
            &["splits.formed before", "split-2, listed and not formed"],
            sealed("hold", "base/x/0"),
        )],
    );
    // What was open can never be confirm.
    let opened = |world: &mut dyn World| {
        begin(world);
        world.say(&owner(), calibrate("a"), EXP);
    };
    each(
        opened,
        vec![(
            "split",
            &["no open label", "seq 2"],
            listed("split-1", SplitPart::Confirm, 0, &["a"]),
        )],
    );
    // Sealed labels of confirm clusters stand; so do spent clusters in fit.
    tell(SOLO, |world| {
        governed(world);
        world.say(&owner(), sealed("hold", "base/c/0"), EXP);
        world.say(&owner(), listed("split-2", SplitPart::Fit, 0, &["c"]), EXP);
        let again = sealed("hold", "base/d/1");
        world.refuse_saying("split", &["listed and not formed"], &owner(), again, EXP);
    });
}

#[test]
fn split_rule_for_listings() {
    let half = |world: &mut dyn World| {
        begin(world);
        world.say(
            &owner(),
            listed("split-1", SplitPart::Confirm, 0, &["c", "d"]),
            EXP,
        );
        world.say(&owner(), listed("split-1", SplitPart::Fit, 0, &["a"]), EXP);
    };
    let mut other = formed("split-1", &["c", "d"], &["a"]);
    other.confirm.root = Root(Digest([1; 32]));
    let mut early = formed("split-1", &["c", "d"], &["a"]);
    (early.gap, early.separation, early.gap_seconds) =
        (Verdict::Pass, SplitSeparation::Time, Some(count(172_799)));
    let mut timeless = early.clone();
    timeless.gap_seconds = Some(count(172_800));
    let mut hashed = formed("split-1", &["c", "d"], &["a"]);
    hashed.gap = Verdict::Pass;
    each(
        half,
        vec![
            (
                "split",
                &["first 2", "first 1"],
                listed("split-1", SplitPart::Confirm, 1, &["e"]),
            ),
            (
                "split",
                &["ascending"],
                listed("split-1", SplitPart::Confirm, 2, &["b"]),
            ),
            (
                "split",
                &["ascending"],
                listed("split-1", SplitPart::Confirm, 2, &["f", "f"]),
            ),
            (
                "split",
                &["at least one"],
                listed("split-1", SplitPart::Confirm, 2, &[]),
            ),
            (
                "split",
                &["one part", "seq 2"],
                listed("split-1", SplitPart::Fit, 1, &["c"]),
            ),
            (
                "split",
                &["clusters of split-1", "split-2"],
                listed("split-2", SplitPart::Fit, 0, &["z"]),
            ),
            (
                "split",
                &["listed clusters of split-2"],
                formed("split-2", &[], &[]).into(),
            ),
            (
                "split",
                &["2 clusters of confirm", "1 clusters of confirm"],
                formed("split-1", &["c"], &["a"]).into(),
            ),
            ("split", &["2 clusters of confirm"], other.into()),
            ("split", &["at least 172800 s", "172799 s"], early.into()),
            ("split", &["t1 before t2"], timeless.into()),
            ("split", &["not_checked"], hashed.into()),
        ],
    );
    each(
        governed,
        vec![(
            "split",
            &["not formed yet", "formed at seq 8"],
            listed("split-1", SplitPart::Dev, 0, &["z"]),
        )],
    );
}

#[test]
fn judge_rule() {
    let registered = |judge: &str| -> Payload {
        JudgeRegistered {
            asked: None,
            decoding: Decoding {
                temperature_micro: micro(0),
            },
            evidence_schema: text("evidence/1"),
            extractor: text("clover-text/1"),
            judge: judge.parse().unwrap(),
            known: None,
            model: text("builtin-text/1"),
            of: None,
            prompt: None,
            port: JudgePort::Builtin,
            prompt_hash: Digest::sha256(b""),
            repeat: None,
            scale: None,
            tool_snapshot: Digest::sha256(b""),
        }
        .into()
    };
    let found = |judge: &str, records: u64| -> Payload {
        EvidenceRecorded {
            judge: judge.parse().unwrap(),
            records: BlobRef {
                blake3: Digest::blake3(b"{}"),
                bytes: count(2),
                media: MediaType::new("application/x-ndjson").unwrap(),
            },
            records_count: count(records),
            records_root: Root(Digest::sha256(b"")),
        }
        .into()
    };
    let replayed = |judge: &str, keys: u64, mismatches: u64| -> Payload {
        ScoreReplayed {
            judge: judge.parse().unwrap(),
            keys: count(keys),
            keys_root: Root(Digest::sha256(b"")),
            mismatches: count(mismatches),
            seed: count(1),
        }
        .into()
    };
    let refused: [(&[&str], Payload); 3] = [
        (&["an earlier judge.registered"], replayed("judge-2", 30, 0)),
        (&["at least 30 keys", "29"], replayed("judge-1", 29, 0)),
        (
            &["no more mismatches", "31 of 30"],
            replayed("judge-1", 30, 31),
        ),
    ];
    for (words, payload) in refused {
        tell(SOLO, |world| {
            begin(world);
            world.say(&owner(), registered("judge-1"), EXP);
            world.say(&owner(), replayed("judge-1", 30, 30), EXP);
            world.refuse_saying("judge", words, &owner(), payload.clone(), EXP);
        });
    }
    // Records come with their blob, so they are told to one ledger.
    let mut test = TestLedger::new();
    test.register("exp-1");
    let mut say = |payload: Payload| {
        let commands = [Command::new(payload, EXP.map(|id| id.parse().unwrap()))];
        let said = test
            .ledger
            .append_with_blobs(&commands, &owner(), &[b"{}".to_vec()]);
        said.map(|_| ()).map_err(|error| error.to_string())
    };
    say(registered("judge-1")).unwrap();
    let refused = say(found("judge-2", 1)).unwrap_err();
    assert!(refused.contains("an earlier judge.registered"), "{refused}");
    let refused = say(found("judge-1", 0)).unwrap_err();
    assert!(refused.contains("at least one record"), "{refused}");
    say(found("judge-1", 1)).unwrap();
    // One name, one meaning.
    tell(SOLO, |world| {
        begin(world);
        world.say(&owner(), registered("judge-1"), EXP);
        let Payload::JudgeRegistered(mut other) = registered("judge-1") else {
            unreachable!()
        };
        other.model = text("another");
        world.refuse_saying("natural_key", &["seq 2"], &owner(), (*other).into(), EXP);
    });
}

#[test]
fn score_once_rule() {
    let conflict = |recorded: EventId, item: &str, old: i64, new: i64| -> Payload {
        ScoreConflict {
            draw: count(0),
            item: item.parse().unwrap(),
            judge: "judge-1".parse().unwrap(),
            policy: "base".parse().unwrap(),
            recorded,
            recorded_micro: micro(old),
            score_micro: micro(new),
        }
        .into()
    };
    let score = |value: i64| -> Payload {
        clover::event::payload::judge::ScoreRecorded {
            call: None,
            draw: count(0),
            item: "a".parse().unwrap(),
            judge: "judge-1".parse().unwrap(),
            policy: "base".parse().unwrap(),
            prompt: None,
            response: None,
            score_micro: micro(value),
        }
        .into()
    };
    tell(SOLO, |world| {
        begin(world);
        let id = world.say(&owner(), score(5), EXP);
        world.refuse_saying(
            "score_once",
            &["another score"],
            &owner(),
            conflict(id, "a", 5, 5),
            EXP,
        );
    });
    tell(SOLO, |world| {
        begin(world);
        let id = world.say(&owner(), score(5), EXP);
        let ghost = conflict(id, "b", 5, 6);
        world.refuse_saying(
            "score_once",
            &["an earlier score.recorded"],
            &owner(),
            ghost,
            EXP,
        );
    });
    // The second value is refused as a score; as a conflict it is on record, once.
    tell(SOLO, |world| {
        begin(world);
        let id = world.say(&owner(), score(5), EXP);
        world.say(&owner(), conflict(id, "a", 5, 6), EXP);
        world.refuse_saying("natural_key", &["seq 2"], &owner(), score(6), EXP);
    });
}

#[test]
fn each_kind_has_its_signer() {
    each_role(
        &[Role::Labeler],
        &listed("split-1", SplitPart::Fit, 0, &["a"]),
    );
    each_role(&[Role::Scorer], &design("calib", DesignPurpose::Calibrate));
    each_role(&[Role::Labeler], &sealed("probe", "base/a/0"));
}

fn each_role(roles: &[Role], payload: &Payload) {
    tell(SOLO, |world| {
        begin(world);
        let added = key_added(&signer(3), "Bo", roles);
        world.say(&owner(), added.into(), None);
        world.refuse_saying("role", &[], &signer(3), payload.clone(), EXP);
    });
}
