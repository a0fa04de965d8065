//! Rows from which an iteration is really decided: few, and told apart so clearly that few are enough.
//!
//! An answer is of one of six sorts. Two are judged rightly. Of the other four the rubric in force scores two and two
//! alike, though people tell them apart: an answer that cites a source of another name as one that cites none, and one
//! that is too long as one that is short. The patches of the stories tell the same apart.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover::event::Payload;
use clover::event::id::Base64Bytes;
use clover::event::id::Base64Text;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::Root;
use clover::event::id::SealRecipient;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::judge::ScoreRecorded;
use clover::event::payload::label::LabelRevealed;
use clover::event::payload::label::LabelSealed;
use clover::event::payload::label::SealAccepted;
use clover::event::payload::label::row_of_draw;
use clover::event::payload::scoring::EvidenceRecorded;
use clover::event::payload::scoring::JudgeRegistered;
use clover::event::payload::scoring::ScoreReplayed;
use clover::ground::digest::Digest;
use clover::ground::seal;
use clover::ground::time::Timestamp;
use clover::num::Count;
use clover::num::Micro;
use clover::rubric::evidence::Citation;
use clover::rubric::evidence::Evidence;
use clover::workflow::iterate::rows::anchor_root;
use clover::workflow::judge::key;
use clover::workflow::judge::run;
use clover::workflow::judge::run::RawRecord;
use clover::workflow::split;
use clover::workflow::split::Apart;
use clover::workflow::split::PartMembers;
use serde_json::json;

use super::planned::payload;
use super::samples::ORIGIN;

/// The design of open labels, and that of sealed ones.
pub const OPEN: &str = "calib";
pub const SEALED: &str = "hold";
/// Rows of each anchor policy: as few as criterion P5 takes.
const ANCHORS: u64 = 200;
/// Answers of each part that are judged rightly.
const PLAIN: usize = 8;
const SALT: [u8; 32] = [9; 32];

/// What an answer is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Bad, and scored so.
    Bad,
    /// Good, and cites a source that the rubric in force does not know.
    Cites,
    /// Scored like [`Sort::Cites`], and not as good.
    CitesNone,
    /// Too long, and bad.
    Wordy,
    /// Scored like [`Sort::Wordy`], and better.
    Short,
    /// Good, and scored so.
    Good,
}

/// Which mistakes of the rubric the rows show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Sources and length: two patches and their composite mend them.
    Both,
    /// Length alone, and more of it.
    Length,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub policy: &'static str,
    pub item: ItemId,
    pub part: Option<SplitPart>,
    score: i64,
    /// What the judge says of it that is told to mind length.
    told: i64,
    pub label: i64,
    evidence: Evidence,
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap()
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

impl Faults {
    /// How many clusters of each part.
    fn sizes(self) -> BTreeMap<SplitPart, usize> {
        let sizes = match self {
            Self::Both => [56, 48, 72],
            Self::Length => [40, 48, 48],
        };
        [SplitPart::Fit, SplitPart::Dev, SplitPart::Confirm]
            .into_iter()
            .zip(sizes)
            .collect()
    }

    fn sort(self, rank: usize) -> Sort {
        let faulty = match self {
            Self::Both => &[Sort::Cites, Sort::CitesNone, Sort::Wordy, Sort::Short][..],
            Self::Length => &[Sort::Wordy, Sort::Short][..],
        };
        match rank.checked_sub(PLAIN) {
            Some(rank) => faulty[rank % faulty.len()],
            None if rank.is_multiple_of(2) => Sort::Bad,
            None => Sort::Good,
        }
    }

    fn label(self, sort: Sort) -> i64 {
        match (sort, self) {
            (Sort::Bad, _) => 20_000,
            (Sort::Wordy, Self::Length) => 60_000,
            (Sort::Wordy, Self::Both) => 250_000,
            (Sort::Short, Self::Both) => 430_000,
            (Sort::CitesNone, _) => 570_000,
            (Sort::Cites, _) => 750_000,
            (Sort::Short, Self::Length) => 940_000,
            (Sort::Good, _) => 980_000,
        }
    }
}

/// Base score and record of an answer: the rubric in force takes .35 from one that cites what it does not know, and .05
/// from one that is not concise.
fn judged(sort: Sort, rank: u64) -> (i64, Evidence) {
    let cited = Citation {
        domain: "bmj.com".to_owned(),
        resolved: Some(true),
        supports: Some(true),
    };
    let (score, tokens) = match sort {
        Sort::Bad => (50_000, 220),
        Sort::Good => (990_000, 420),
        Sort::Cites => (850_000, 420),
        Sort::CitesNone => (500_000, 220),
        Sort::Wordy => (250_000, 220),
        Sort::Short => (200_000, 420),
    };
    let evidence = Evidence {
        citations: (sort == Sort::Cites).then_some(cited).into_iter().collect(),
        concise: sort != Sort::Wordy,
        counter_position: true,
        factual_error: Some(false),
        stakeholders: true,
        tokens: count(tokens + rank * 7 % 60),
        ..Evidence::default()
    };
    (score, evidence)
}

/// Answers to prompts of each part, and the parts.
pub fn answers(faults: Faults, seed: u64) -> (Vec<Answer>, PartMembers) {
    let mut wanted = faults.sizes();
    let mut chosen = BTreeMap::new();
    for number in 0.. {
        if wanted.values().all(|left| *left == 0) {
            break;
        }
        let item: ItemId = format!("p{number:03}").parse().unwrap();
        let Some(part) = part_of(&item, seed) else {
            continue;
        };
        let left = wanted.get_mut(&part).unwrap();
        if *left > 0 {
            *left -= 1;
            chosen.insert(item, None);
        }
    }
    let parts = split::parts(&chosen, seed, Apart::Hashed).unwrap();
    let mut all = Vec::new();
    for (part, items) in &parts.members {
        for (rank, item) in items.iter().enumerate() {
            let sort = faults.sort(rank);
            let (score, evidence) = judged(sort, rank as u64);
            let off = [-8_000, 4_000, 8_000, -4_000, 0][rank / 4 % 5];
            all.push(Answer {
                policy: "base",
                item: item.clone(),
                part: Some(*part),
                score,
                told: if sort == Sort::Wordy { 200_000 } else { score },
                label: faults.label(sort) + off,
                evidence,
            });
        }
    }
    (all, parts)
}

/// The part that a prompt falls into.
fn part_of(item: &ItemId, seed: u64) -> Option<SplitPart> {
    // A split has no empty part, so the prompt is split with three others that are known to fall apart.
    let mut others = Vec::new();
    for number in 0..64 {
        others.push(format!("other-{number}").parse::<ItemId>().unwrap());
    }
    others.push(item.clone());
    let clusters = others.into_iter().map(|item| (item, None)).collect();
    let parts = split::parts(&clusters, seed, Apart::Hashed).unwrap();
    let mut members = parts.members.iter();
    members
        .find(|(_, items)| items.contains(item))
        .map(|(part, _)| *part)
}

/// Labelled outputs of each policy of a generator.
const OUTPUTS: usize = 40;

/// Whether an output of a design is good: of the old policy every other one, of the new one as many where nothing was
/// gained, and three in four where something was.
fn is_good(design: &str, policy: &str, number: usize) -> bool {
    if policy == "tuned" && design == "ab-2" {
        !number.is_multiple_of(4)
    } else {
        number % 2 == 1
    }
}

/// Outputs of both policies of a generator, under a design.
pub fn outputs(design: &str) -> Vec<Answer> {
    let of = |policy: &'static str| {
        (0..OUTPUTS).map(move |number| {
            let sort = if is_good(design, policy, number) {
                Sort::Good
            } else {
                Sort::Bad
            };
            let (score, evidence) = judged(sort, number as u64);
            let off = [-8_000, 4_000, 8_000, -4_000, 0][number / 4 % 5];
            Answer {
                policy,
                item: format!("{design}-{number:03}").parse().unwrap(),
                part: None,
                score,
                told: if sort == Sort::Wordy { 200_000 } else { score },
                label: Faults::Length.label(sort) + off,
                evidence,
            }
        })
    };
    of("base").chain(of("tuned")).collect()
}

/// Bad and good anchors, which no patch of the stories moves.
pub fn anchors() -> Vec<Answer> {
    let of = |policy: &'static str, sort: Sort| {
        (0..ANCHORS).map(move |number| {
            let (score, evidence) = judged(sort, 0);
            Answer {
                policy,
                item: format!("a{number:03}").parse().unwrap(),
                part: None,
                score,
                told: if sort == Sort::Wordy { 200_000 } else { score },
                label: 0,
                evidence,
            }
        })
    };
    of("bad", Sort::Bad).chain(of("good", Sort::Good)).collect()
}

/// The set of them.
pub fn anchor_set() -> Payload {
    let of = |policy: &str| {
        let all = anchors().into_iter().filter(|of| of.policy == policy);
        let ids: BTreeSet<String> = all.map(|of| of.row()).collect();
        json!({"count": ids.len(), "policy": policy, "rows_root": anchor_root(&ids)})
    };
    let data = json!({"anchors": "anchors-1", "high": of("good"), "low": of("bad")});
    payload("anchor_set.registered", &data)
}

impl Answer {
    /// The same as a judge scores it that was told more.
    pub fn told(&self) -> Self {
        Self {
            score: self.told,
            ..self.clone()
        }
    }

    /// `policy/item/draw`.
    pub fn row(&self) -> String {
        row_of_draw(&self.policy.parse().unwrap(), &self.item, Count::default())
    }

    /// What the judge said.
    pub fn score(&self, judge: &JudgeRegistered) -> Payload {
        ScoreRecorded {
            call: None,
            draw: Count::default(),
            item: self.item.clone(),
            judge: judge.judge.clone(),
            policy: self.policy.parse().unwrap(),
            prompt: None,
            response: None,
            score_micro: micro(self.score),
        }
        .into()
    }

    fn record(&self, judge: &JudgeRegistered) -> RawRecord {
        let text = |what: &str| Digest::sha256(format!("{what} of {}", self.row()).as_bytes());
        let (a_hash, x_hash) = (text("the answer"), text("the prompt"));
        RawRecord {
            a_hash,
            b_micro: micro(self.score),
            draw: Count::default(),
            evidence: self.evidence.clone(),
            item: self.item.clone(),
            policy: self.policy.parse().unwrap(),
            raw_key: key::raw_key(judge, a_hash, x_hash),
            x_hash,
        }
    }

    /// Its label in the open.
    pub fn label(&self) -> Payload {
        let data = json!({
            "design": OPEN, "draw": 0, "item": self.item, "policy": self.policy, "purpose": "calibrate",
            "rater": "Lena", "value_micro": self.label,
        });
        payload("label.recorded", &data)
    }

    /// Its label sealed, and taken in.
    pub fn sealed(&self, recipient: &SealRecipient) -> [Payload; 2] {
        let row = self.row();
        let envelope = format!("age-encryption.org/v1\nan envelope of {}", self.item).into_bytes();
        let sealed = LabelSealed {
            commitment: seal::commitment(ORIGIN, SEALED, &row, &SALT, self.label),
            design: SEALED.parse().unwrap(),
            envelope: Base64Text(envelope.clone()),
            recipient: recipient.clone(),
            reveal_by: Timestamp::parse("2027-01-01T00:00:00.000000Z").unwrap(),
            row: row.parse().unwrap(),
        };
        let accepted = SealAccepted {
            design: SEALED.parse().unwrap(),
            envelope_sha256: Digest::sha256(&envelope),
            row: row.parse().unwrap(),
        };
        [sealed.into(), accepted.into()]
    }

    /// The same shown for a charge.
    pub fn shown(&self, charge: EventId) -> Payload {
        LabelRevealed {
            charge,
            design: SEALED.parse().unwrap(),
            row: self.row().parse().unwrap(),
            salt: Base64Bytes(SALT),
            value_micro: micro(self.label),
        }
        .into()
    }
}

/// The records of some answers, with the blob that holds them, and a sample that was scored again and repeated itself.
pub fn recorded(all: &[Answer], judge: &JudgeRegistered) -> ([Payload; 2], Vec<u8>) {
    let records: Vec<RawRecord> = all.iter().map(|answer| answer.record(judge)).collect();
    let (bytes, root) = run::lines(&records);
    let evidence = EvidenceRecorded {
        judge: judge.judge.clone(),
        records: BlobRef {
            blake3: Digest::blake3(&bytes),
            bytes: count(bytes.len() as u64),
            media: MediaType::new("application/x-ndjson").unwrap(),
        },
        records_count: count(records.len() as u64),
        records_root: Root(root),
    };
    let keys: Vec<Digest> = records.iter().map(|record| record.raw_key).collect();
    let mut drawn = run::sample(&keys, 7).unwrap();
    drawn.sort();
    let replayed = ScoreReplayed {
        judge: judge.judge.clone(),
        keys: count(drawn.len() as u64),
        keys_root: Root(run::root(drawn.iter().map(|key| &key.as_bytes()[..]))),
        mismatches: Count::default(),
        seed: count(7),
    };
    ([evidence.into(), replayed.into()], bytes)
}

/// The designs of both kinds of labels.
pub fn designs() -> [Payload; 2] {
    [(OPEN, "calibrate"), (SEALED, "confirm")].map(|(design, purpose)| {
        let data = json!({
            "design": design, "inclusion_micro": 1_000_000, "protocol": "v1.0_2025-11-11", "purpose": purpose,
        });
        payload("label.design_registered", &data)
    })
}
