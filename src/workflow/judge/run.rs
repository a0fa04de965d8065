//! From rows and a judge to raw records: what was found, under which key, with which base score. Line format:
//! `schema/SCORING.md`.

use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::model_runs::AskedTexts;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::Frontier;
use clover_ground::seal;
use clover_ground::seed::SeedTree;
use clover_num::Count;
use clover_num::Micro;
use clover_num::draws::Draws;
use clover_rubric::evidence::Evidence;
use clover_rubric::extract;
use clover_rubric::extract::recorded::Citations;
use clover_rubric::extract::recorded::Facts;
use clover_rubric::extract::recorded::Traces;
use serde::Deserialize;
use serde::Serialize;

use crate::import::ImportRow;
use crate::judge::Answer;
use crate::judge::Judge;
use crate::judge::JudgeError;
use crate::judge::JudgeQuery;
use crate::judge::fields;
use crate::judge::fields::EvidenceFields;
use crate::judge::key;

/// What was recorded of sources, tool calls and facts before a judge scores.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeEvidence {
    /// Sources; absent when nothing is known of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations: Option<Citations>,
    /// Fields of evidence that the judge returns; absent when it returns none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceFields>,
    /// Statements that are true; absent when none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Vec<String>>,
    /// Tool calls that were made, by item; absent when none was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<BTreeMap<String, Traces>>,
}

/// What every row of a run shares.
#[derive(Debug)]
pub struct Frame {
    registered: JudgeRegistered,
    citations: Option<Citations>,
    traces: Option<BTreeMap<String, Traces>>,
    facts: Option<Facts>,
    fields: Option<EvidenceFields>,
    pepper: [u8; 32],
}

/// One row, read: all but its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What the extractor found.
    pub evidence: Evidence,
    /// Its key.
    pub raw_key: Digest,
    a_hash: Digest,
    x_hash: Digest,
}

/// One raw record, as a line of `evidence.recorded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRecord {
    /// The response, as a keyed digest.
    pub a_hash: Digest,
    /// b, the base score in millionths.
    pub b_micro: Micro,
    /// Which draw, from 0.
    pub draw: Count,
    /// What was found.
    pub evidence: Evidence,
    /// What was answered.
    pub item: ItemId,
    /// Who answered.
    pub policy: PolicyId,
    /// The key.
    pub raw_key: Digest,
    /// The prompt, as a keyed digest.
    pub x_hash: Digest,
}

/// The root that records or keys are committed to, over these leaves in order.
pub fn root<'a>(leaves: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut tree = Frontier::new();
    for leaf in leaves {
        tree.push(merkle::leaf_hash(leaf));
    }
    tree.root()
}

/// The keyed digest of a text: HMAC under the ledger's pepper, so that it tells nothing of a text that can be guessed.
pub fn text_hash(pepper: &[u8; 32], what: &str, text: &str) -> Digest {
    seal::peppered_identifier(pepper, &format!("{what} text\n{text}"))
}

impl Frame {
    /// From a registration, what it says is known, and the ledger's pepper.
    pub fn new(registered: JudgeRegistered, known: ProbeEvidence, pepper: [u8; 32]) -> Self {
        let facts = known
            .facts
            .map(|facts| Facts::of(facts.iter().map(String::as_str)));
        Self {
            registered,
            citations: known.citations,
            traces: known.traces,
            facts,
            fields: known.evidence,
            pepper,
        }
    }

    /// Fields of evidence that the judge returns.
    pub fn fields(&self) -> Option<&EvidenceFields> {
        self.fields.as_ref()
    }

    /// The same for another registration.
    #[must_use]
    pub fn under(self, registered: JudgeRegistered) -> Self {
        Self { registered, ..self }
    }

    /// Reads a row; `None` when it lacks a text.
    pub fn read(&self, row: &ImportRow) -> Option<Reading> {
        let (prompt, response) = (row.prompt.as_deref()?, row.response.as_deref()?);
        let none = Traces::default();
        let traces = self.traces.as_ref();
        let traces = traces.map(|by_item| by_item.get(row.item.as_str()).unwrap_or(&none));
        let evidence = extract::extract(&extract::Source {
            prompt,
            response,
            citations: self.citations.as_ref(),
            traces,
            facts: self.facts.as_ref(),
        });
        let a_hash = text_hash(&self.pepper, "response", response);
        let x_hash = text_hash(&self.pepper, "prompt", prompt);
        let raw_key = key::raw_key(&self.registered, a_hash, x_hash);
        Some(Reading {
            evidence,
            raw_key,
            a_hash,
            x_hash,
        })
    }
}

impl Reading {
    /// Its texts, as keyed digests.
    pub fn texts(&self) -> AskedTexts {
        AskedTexts {
            a_hash: self.a_hash,
            x_hash: self.x_hash,
        }
    }

    /// Asks a judge for the row's base score, and what it says beside it.
    ///
    /// # Errors
    /// [`JudgeError`].
    pub fn answer(&self, row: &ImportRow, judge: &mut dyn Judge) -> Result<Answer, JudgeError> {
        judge.answer(&self.ask(row))
    }

    fn ask<'a>(&'a self, row: &'a ImportRow) -> JudgeQuery<'a> {
        JudgeQuery {
            item: &row.item,
            policy: &row.policy,
            draw: row.draw,
            prompt: row.prompt.as_deref().unwrap_or_default(),
            response: row.response.as_deref().unwrap_or_default(),
            evidence: &self.evidence,
        }
    }

    /// The row with what a judge found in it.
    #[must_use]
    pub fn with(self, answer: &Answer) -> Self {
        match &answer.evidence {
            None => self,
            Some(said) => Self {
                evidence: fields::merged(self.evidence, said),
                ..self
            },
        }
    }

    /// The row with what a judge found in another one of the same text.
    #[must_use]
    pub fn like(self, fields: Option<&EvidenceFields>, found: &Evidence) -> Self {
        match fields {
            None => self,
            Some(fields) => Self {
                evidence: fields.copied(self.evidence, found),
                ..self
            },
        }
    }

    /// The record of the row with its base score.
    pub fn record(self, row: &ImportRow, base: Micro) -> RawRecord {
        RawRecord {
            a_hash: self.a_hash,
            b_micro: base,
            draw: row.draw,
            evidence: self.evidence,
            item: row.item.clone(),
            policy: row.policy.clone(),
            raw_key: self.raw_key,
            x_hash: self.x_hash,
        }
    }
}

/// Canonical lines of records, each with its newline, and the root over them without.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn lines(records: &[RawRecord]) -> (Vec<u8>, Digest) {
    let lines: Vec<Vec<u8>> = records
        .iter()
        .map(|record| {
            canon::to_bytes(record).expect("BUG: ids, counts and flags have a canonical form")
        })
        .collect();
    let root = root(lines.iter().map(Vec::as_slice));
    let bytes = lines
        .iter()
        .flat_map(|line| line.iter().copied().chain([b'\n']))
        .collect();
    (bytes, root)
}

/// Reads lines back, and compares them with the root that was recorded.
///
/// # Errors
/// What is wrong, with its line.
pub fn parse(bytes: &[u8], expected: &Digest) -> Result<Vec<RawRecord>, String> {
    let mut records = Vec::new();
    let mut leaves = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let record: RawRecord =
            serde_json::from_slice(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        record
            .evidence
            .check()
            .map_err(|error| format!("line {}: {error}", at + 1))?;
        records.push(record);
        leaves.push(line);
    }
    if root(leaves) == *expected {
        Ok(records)
    } else {
        Err("records that are not under the recorded root".to_owned())
    }
}

/// A sample of keys for a re-score: one in a hundred, at least 30, drawn without replacement from the keys in ascending
/// order; `None` when there are fewer than 30.
pub fn sample(keys: &[Digest], seed: u64) -> Option<Vec<Digest>> {
    const LEAST: usize = 30;
    let mut keys = keys.to_vec();
    keys.sort();
    keys.dedup();
    if keys.len() < LEAST {
        return None;
    }
    let count = LEAST.max(keys.len().div_ceil(100));
    let mut draws = Draws::of(
        SeedTree::of_number(seed)
            .child("judge/rescore-check")
            .seed(),
        0,
    );
    for at in 0..count {
        let other = at + draws.below(keys.len() - at);
        keys.swap(at, other);
    }
    keys.truncate(count);
    keys.sort();
    Some(keys)
}

#[cfg(test)]
mod tests {
    use clover_event::id::Text;
    use clover_event::payload::scoring::Decoding;
    use clover_event::payload::scoring::JudgePort;

    use super::*;
    use crate::judge::builtin::Builtin;
    use crate::judge::key::RawKey;
    use crate::judge::key::score_key;

    fn frame() -> Frame {
        let text = |text: &str| Text::new(text).unwrap();
        let registered = JudgeRegistered {
            asked: None,
            decoding: Decoding {
                temperature_micro: Micro::new(0).unwrap(),
            },
            evidence_schema: text("evidence/1"),
            extractor: text(extract::VERSION),
            judge: "judge-1".parse().unwrap(),
            known: None,
            model: text("builtin-text/1"),
            of: None,
            prompt: None,
            port: JudgePort::Builtin,
            prompt_hash: Digest::sha256(b""),
            repeat: None,
            scale: None,
            tool_snapshot: Digest::sha256(b""),
        };
        Frame::new(registered, ProbeEvidence::default(), [7; 32])
    }

    fn row(response: &str) -> ImportRow {
        ImportRow {
            line: 1,
            item: "item-1".parse().unwrap(),
            policy: "base".parse().unwrap(),
            draw: Count::new(0).unwrap(),
            score: Micro::new(0).unwrap(),
            label: None,
            prompt: Some("Explain granite.".to_owned()),
            response: Some(response.to_owned()),
            sampled_at: None,
            logprobs: None,
            fields: BTreeMap::new(),
        }
    }

    #[test]
    fn records_are_read_back_and_bound_to_their_root() {
        let frame = frame();
        let records: Vec<RawRecord> = ["Granite is 3.", "No."]
            .map(|text| {
                let row = row(text);
                let reading = frame.read(&row).unwrap();
                let base = reading.answer(&row, &mut Builtin).unwrap().score;
                reading.record(&row, base)
            })
            .into();
        assert_eq!(records[0].b_micro.value(), 520_000);
        assert_eq!(records[0].x_hash, records[1].x_hash);
        assert_ne!(records[0].raw_key, records[1].raw_key);
        let (bytes, root) = lines(&records);
        assert_eq!(parse(&bytes, &root).unwrap(), records);
        let changed = String::from_utf8(bytes)
            .unwrap()
            .replace("520000", "520001");
        assert!(
            parse(changed.as_bytes(), &root)
                .unwrap_err()
                .contains("root")
        );
        assert!(parse(b"{}\n", &root).unwrap_err().starts_with("line 1"));
        let mut bare = row("x");
        bare.prompt = None;
        assert!(frame.read(&bare).is_none());
    }

    /// The vectors of `schema/SCORING.md`.
    #[test]
    fn keys_are_as_the_format_page_says() {
        let key = RawKey {
            a_hash: Digest([1; 32]),
            decoding: Decoding {
                temperature_micro: Micro::new(0).unwrap(),
            },
            evidence_schema_version: "evidence/1",
            extractor_version: "clover-text/1",
            judge_model_id: "builtin-text/1",
            prompt_hash: Digest([2; 32]),
            tool_snapshot_id: Digest([3; 32]),
            x_hash: Digest([4; 32]),
        };
        // source: Python 3 hashlib over the bytes that the page prints
        assert_eq!(
            key.digest().to_hex(),
            "f4d6d9e6f969a2da212a6b6baf7bcd9b1702367341ed04ee97f2989cbce65133"
        );
        assert_eq!(
            score_key(&key.digest(), &Digest([5; 32])).to_hex(),
            "4680cf362f8084bb059e3aa88e68e631d7a5a8eb71569f83f114da5239809f9e"
        );
        assert_eq!(
            text_hash(&[7; 32], "prompt", "Why?").to_hex(),
            "ae76ecee4f3ff87fb493f769971b477bdd48670fded27e1dbb8c13ada249a717"
        );
        let keys: Vec<Digest> = (0..3).map(|byte| Digest([byte; 32])).collect();
        assert_eq!(
            root(keys.iter().map(|key| key.as_bytes().as_slice())).to_hex(),
            "ba8d94b7fbcecae7b81c4c80574fe24734a6917bf9c1ecd66ff3e0c34ead4620"
        );
    }

    #[test]
    fn samples_are_one_in_a_hundred_and_thirty_at_least() {
        let keys: Vec<Digest> = (0..5000_u32)
            .map(|at| Digest::sha256(&at.to_be_bytes()))
            .collect();
        let drawn = sample(&keys, 1).unwrap();
        assert_eq!(drawn.len(), 50);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        assert_ne!(drawn, sample(&keys, 2).unwrap());
        assert_eq!(sample(&keys[..30], 1).unwrap().len(), 30);
        assert_eq!(sample(&keys[..29], 1), None);
    }
}
