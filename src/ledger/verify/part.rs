//! A part of a log: some entries, and of every other one its leaf and its id. The tree over all leaves is whole, so each entry
//! that is shown is proved to stand at its place under the checkpoint. Rules need the whole history and are not asked.

use std::sync::Arc;

use clover_event::id::EventId;
use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use serde::Deserialize;
use serde::Serialize;

use crate::claim::Body;
use crate::claim::Claim;
use crate::fold::Fact;
use crate::fold::Rulebook;
use crate::rule_names::RuleName;
use crate::rules;
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

/// What is shown of an entry that is withheld: `{"withheld":{"id":"…","leaf":"…","seq":7}}`, digests in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithheldEntry {
    /// The id of its event. The leaf proves it only to whoever has the line.
    pub id: EventId,
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

    /// What a line says is withheld; `None` of any other line.
    fn parse(line: &[u8]) -> Option<Self> {
        if !line.starts_with(WITHHELD_OPEN) {
            return None;
        }
        let line: WithheldLine = serde_json::from_slice(line).ok()?;
        Some(line.withheld)
    }
}

/// What the walk over a part has met.
#[derive(Default)]
pub(super) struct PartWalk {
    withheld: u64,
}

impl PartWalk {
    /// Entries that are withheld.
    pub(super) fn withheld(&self) -> u64 {
        self.withheld
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

impl Checker<'_> {
    /// Checks an entry of a part by itself, and takes what it says of keys.
    pub(super) fn check_part(&mut self, seq: u64, entry: EntryDigest) -> Result<(), VerifyError> {
        if let Some(withheld) = entry.withheld {
            if withheld.seq != seq {
                let (expected, found) = (seq.to_string(), withheld.seq.to_string());
                self.findings.add(seq, RuleName::Seq, expected, found);
            }
            if let Some(part) = &mut self.part {
                part.withheld += 1;
            }
            let (digest, said) = (withheld.id.0, 0);
            return self.give(seq, &[Fact::Id { digest, said }]);
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
        let claim = Claim::new(seq, envelope.recorded_at, envelope.keyid, &said);
        let mut breaches = Vec::new();
        rules::stated(&self.state, &claim, &mut breaches);
        self.check_signature(&claim, entry.signature, &mut breaches);
        if let Some(seen) = claim.header.seen
            && (1..=seq).contains(&seen.size.value())
        {
            self.check_seen_root(seq, seen, &mut breaches)?;
        }
        let is_signed = breaches.is_empty();
        for breach in breaches {
            self.findings.breach(seq, breach);
        }
        let mut facts = Vec::new();
        rules::header_facts(seq, said.id(), 0, said.header(), &mut facts);
        self.give(seq, &facts)?;
        self.name_blobs(seq, &entry.blobs)?;
        if let (Body::Event(event), true) = (&said, is_signed) {
            self.state.apply_custody(seq, event);
        }
        self.state
            .apply_counters(seq, envelope.recorded_at, said.header());
        Ok(())
    }
}
