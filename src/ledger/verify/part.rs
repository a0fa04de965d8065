//! A part of a log: some entries, and of every other one its leaf and its id. The tree over all leaves is whole, so each entry
//! that is shown is proved to stand at its place under the checkpoint. Rules need the whole history and are not asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use crate::claim::Body;
use crate::claim::Claim;
use crate::fold::Breach;
use crate::fold::Fact;
use crate::fold::ProposedEvent;
use crate::fold::Rulebook;
use crate::rule_names::RuleName;
use crate::rules;
use crate::signers;
use crate::verify::EntryLines;
use crate::verify::Progress;
use crate::verify::VerifyError;
use crate::verify::VerifyOptions;
use crate::verify::checker::Checker;
use crate::verify::report::Report;
use crate::verify::walk_lines;
use crate::verify::work::EntryDigest;
use crate::verify::work::Raw;

/// What a line that begins so says is of an entry that is withheld; no entry line does.
const WITHHELD_OPEN: &[u8] = b"{\"withheld\":";

/// Kinds that say who may sign what, by which rules, and whose checkpoints count: no entry shown could be judged without them.
pub const CUSTODY: [Kind; 7] = [
    Kind::LedgerCreated,
    Kind::KeyAdded,
    Kind::KeyRetired,
    Kind::KeyCompromised,
    Kind::PolicyAdopted,
    Kind::LogKeyRotated,
    Kind::RulebookAdopted,
];

/// What is shown of an entry that is withheld: `{"withheld":{"id":"…","leaf":"…","seq":7}}`, digests in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithheldEntry {
    /// The id of its event, where an entry shown names it: whoever guesses a body can try it against the id. The leaf proves it
    /// only to whoever has the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// Its leaf hash.
    pub leaf: Digest,
    /// Its position.
    pub seq: u64,
}

/// A line of a part of a log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WithheldLine {
    withheld: WithheldEntry,
}

impl WithheldEntry {
    /// Adds its line, without newline.
    ///
    /// # Errors
    /// Never, as far as JSON of numbers and digests goes.
    pub fn write_line(self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, &WithheldLine { withheld: self })
    }

    /// What a line says is withheld; `None` of any other line, and of another spelling of it.
    fn parse(line: &[u8]) -> Option<Self> {
        if !line.starts_with(WITHHELD_OPEN) {
            return None;
        }
        let said: WithheldLine = serde_json::from_slice(line).ok()?;
        let mut own = Vec::with_capacity(line.len());
        said.withheld.write_line(&mut own).ok()?;
        (own == line).then_some(said.withheld)
    }
}

/// What the walk over a part has met.
#[derive(Default)]
pub(super) struct PartWalk {
    /// Positions of the entries that are withheld.
    pub(super) positions: BTreeSet<u64>,
    /// Experiments of the entries that are shown.
    pub(super) experiments: BTreeSet<ExperimentId>,
    /// Kinds of the entries that are shown.
    pub(super) kinds: BTreeSet<String>,
}

impl PartWalk {
    /// Entries that are withheld.
    pub(super) fn withheld(&self) -> u64 {
        self.positions.len() as u64
    }
}

/// Verifies a part of a log: lines of entries, and lines of what is withheld, one for each position.
///
/// Checked are the tree over all leaves against the checkpoint; of each entry shown its form, its signature, the roots it has
/// seen, and its references. Not checked is what takes the whole history: budgets, roles, seals and every other rule.
///
/// # Errors
/// [`VerifyError`] when the lines cannot be read.
pub fn verify_part(
    lines: EntryLines<'_>,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    ambient: &Arc<Ambient>,
    progress: Progress<'_>,
) -> Result<Report, VerifyError> {
    let mut checker = Checker::new(options, rulebook, ambient, None)?;
    checker.part = Some(PartWalk::default());
    let raw = |line: Vec<u8>| match WithheldEntry::parse(&line) {
        Some(withheld) => Raw::Withheld(withheld),
        None => Raw::Line(line),
    };
    walk_lines(lines, checker, (options, rulebook), raw, progress)
}

/// An event has one place: an id that is said of an entry withheld is that of no other entry.
fn one_place(id: Digest) -> Fact {
    Fact::Gives {
        digest: Digest::labelled("clover/part-place", id.as_bytes()),
        once: Some(RuleName::NaturalKey),
    }
}

impl Checker<'_> {
    /// Counts an entry of a part of which nothing but the leaf is asked.
    pub(super) fn count_part(&mut self, entry: &EntryDigest) {
        if let (Some(part), Some(_)) = (&mut self.part, entry.withheld) {
            part.positions.insert(self.position);
        }
    }

    /// Takes what is said of an entry that is withheld.
    fn check_withheld(&mut self, seq: u64, withheld: WithheldEntry) -> Result<(), VerifyError> {
        if withheld.seq != seq {
            let (expected, found) = (seq.to_string(), withheld.seq.to_string());
            self.findings.add(seq, RuleName::Seq, expected, found);
        }
        if seq == 0 {
            let expected = "ledger.created at seq 0";
            self.findings.add(
                seq,
                RuleName::Genesis,
                expected,
                "an entry that is withheld",
            );
        }
        match withheld.id {
            Some(EventId(digest)) => {
                self.give(seq, &[Fact::Id { digest, said: 0 }, one_place(digest)])
            }
            None => Ok(()),
        }
    }

    /// Checks an entry of a part by itself, and takes what it says of keys.
    pub(super) fn check_part(&mut self, seq: u64, entry: EntryDigest) -> Result<(), VerifyError> {
        self.count_part(&entry);
        if let Some(withheld) = entry.withheld {
            return self.check_withheld(seq, withheld);
        }
        let envelope = match entry.envelope {
            Ok(envelope) => envelope,
            Err(why) => {
                let expected = "a canonical entry line, or what is said of one withheld";
                self.findings.add(seq, RuleName::LineFormat, expected, why);
                return Ok(());
            }
        };
        if envelope.seq != seq {
            let (expected, found) = (seq.to_string(), envelope.seq.to_string());
            self.findings.add(seq, RuleName::Seq, expected, found);
        }
        let said = match entry.body.unwrap_or_else(|| Err("not read".to_owned())) {
            Ok(said) => said,
            Err(why) => {
                self.unreadable_body(seq, envelope.recorded_at, why);
                return Ok(());
            }
        };
        self.signers.insert(said.header().author);
        if let Some(part) = &mut self.part {
            part.experiments.extend(said.header().experiment.clone());
            if !part.kinds.contains(said.kind()) {
                part.kinds.insert(said.kind().to_owned());
            }
        }
        let claim = Claim::new(seq, envelope.recorded_at, envelope.keyid, &said);
        let mut breaches = Vec::new();
        rules::stated(&self.state, &claim, &mut breaches);
        self.check_signature(&claim, entry.signature, &mut breaches);
        match claim.header.seen {
            None if seq == 0 => {}
            Some(seen) if (1..=seq).contains(&seen.size.value()) => {
                self.check_seen_root(seq, seen, &mut breaches)?;
            }
            _ => breaches.push(Breach::new(
                RuleName::Seen,
                "a checkpoint before this entry",
                "another, or none",
            )),
        }
        self.judge_shown(seq, envelope.recorded_at, &said, &mut breaches);
        let is_signed = breaches.is_empty();
        for breach in breaches {
            self.findings.breach(seq, breach);
        }
        let mut facts = Vec::new();
        rules::header_facts(seq, said.id(), 0, said.header(), &mut facts);
        facts.push(one_place(said.id().0));
        self.give(seq, &facts)?;
        self.name_blobs(seq, &entry.blobs)?;
        if let Body::Event(event) = &said {
            self.take_published(event);
        }
        if let (Body::Event(event), true) = (&said, is_signed) {
            self.state.apply_custody(seq, event);
        }
        self.state
            .apply_counters(seq, envelope.recorded_at, said.header());
        Ok(())
    }

    /// What can be asked of an entry that is shown: roles, of those that move keys and policy their effect too, and its place.
    fn judge_shown(
        &self,
        seq: u64,
        recorded_at: Timestamp,
        said: &Body,
        breaches: &mut Vec<Breach>,
    ) {
        let Body::Event(event) = said else {
            breaches.extend(rules::opening(seq, said.kind()));
            return;
        };
        let proposed = ProposedEvent {
            seq,
            recorded_at,
            event,
        };
        if CUSTODY.contains(&event.kind()) {
            rules::custody(&self.state, &proposed, breaches);
        } else {
            signers::judge(&self.state, &proposed, breaches);
            breaches.extend(rules::opening(seq, said.kind()));
        }
    }
}
