//! What is exact over the whole history only: facts and blobs go to the sorter as they are met, and are checked
//! together at the end.

use std::sync::Arc;

use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;

use crate::append;
use crate::fold::Fact;
use crate::rule_names::RuleName;
use crate::verify::VerifyError;
use crate::verify::checker::Checker;
use crate::verify::report::Findings;
use crate::verify::sorter::Op;
use crate::verify::sorter::Record;
use crate::verify::sorter::Sorter;

impl Checker<'_> {
    pub(super) fn give_judged(
        &mut self,
        seq: u64,
        checked: bool,
        facts: &[Fact],
    ) -> Result<(), VerifyError> {
        if checked {
            return self.give(seq, facts);
        }
        let givers: Vec<_> = facts
            .iter()
            .filter_map(|fact| match fact {
                // What entries that are not checked say is still read by later ones.
                Fact::Id { .. } | Fact::Says { .. } => Some(*fact),
                Fact::Gives { digest, .. } => Some(Fact::Gives {
                    digest: *digest,
                    once: None,
                }),
                Fact::Needs { .. }
                | Fact::Forbids { .. }
                | Fact::ForbidsBelow { .. }
                | Fact::Agrees { .. }
                | Fact::Reads { .. }
                | Fact::Recorded { .. } => None,
            })
            .collect();
        self.give(seq, &givers)
    }

    pub(super) fn give(&mut self, seq: u64, facts: &[Fact]) -> Result<(), VerifyError> {
        for fact in facts {
            self.sorter.push(match *fact {
                Fact::Id { digest, said } => Record::new(digest, seq, Op::Id, RuleName::Refs, said),
                Fact::Recorded { digest, rule, said } => {
                    Record::new(digest, seq, Op::Recorded, rule, said)
                }
                Fact::Gives { digest, once: None } => {
                    Record::new(digest, seq, Op::Gives, RuleName::Refs, 0)
                }
                Fact::Gives {
                    digest,
                    once: Some(rule),
                } => Record::new(digest, seq, Op::GivesOnce, rule, 0),
                Fact::Needs {
                    digest,
                    before,
                    rule,
                } => Record::new(digest, seq, Op::Needs, rule, before),
                Fact::Forbids { digest, rule } => Record::new(digest, seq, Op::Forbids, rule, seq),
                Fact::ForbidsBelow {
                    digest,
                    before,
                    rule,
                } => Record::new(digest, seq, Op::Forbids, rule, before.min(seq)),
                Fact::Says { digest, value } => {
                    Record::new(digest, seq, Op::Says, RuleName::Refs, 0).with_value(value)
                }
                Fact::Agrees {
                    digest,
                    value,
                    rule,
                } => Record::new(digest, seq, Op::Agrees, rule, seq).with_value(value),
                Fact::Reads {
                    digest,
                    value,
                    after,
                    rule,
                } => Record::new(digest, seq, Op::Reads, rule, after).with_value(value),
            })?;
        }
        Ok(())
    }

    /// Blobs that an entry names: read at once where there is a source, joined with the table where the
    /// entries came from a file.
    pub(super) fn name_blobs(
        &mut self,
        seq: u64,
        blobs: &[(Digest, u64)],
    ) -> Result<(), VerifyError> {
        for (digest, bytes) in blobs {
            self.blobs_named = true;
            if self.file.is_some() {
                self.sorter.push(Record::new(
                    blob_digest(digest, *bytes),
                    seq,
                    Op::Needs,
                    RuleName::Blob,
                    u64::MAX,
                ))?;
                continue;
            }
            let Some(source) = self.blobs else {
                continue;
            };
            self.named.insert(*digest);
            let expected = format!("blob {digest} of {bytes} bytes");
            match source(digest) {
                // What stands in the place of a blob is a finding; a disk that cannot be read is none.
                Err(error @ AmbientError::NotAFile { .. }) => {
                    let found = error.to_string();
                    self.findings.add(seq, RuleName::Blob, expected, found);
                }
                Err(error) => return Err(error.into()),
                Ok(None) => self
                    .findings
                    .add(seq, RuleName::Blob, expected, "no such blob"),
                Ok(Some(found))
                    if Digest::blake3(&found) != *digest || found.len() as u64 != *bytes =>
                {
                    let found = format!(
                        "{} bytes with digest {}",
                        found.len(),
                        Digest::blake3(&found)
                    );
                    self.findings.add(seq, RuleName::Blob, expected, found);
                }
                Ok(Some(_)) => {}
            }
        }
        Ok(())
    }

    /// Names a blob that the file holds.
    pub(super) fn hold_blob(&mut self, digest: &Digest, bytes: u64) -> Result<(), VerifyError> {
        Ok(self.sorter.push(Record::new(
            blob_digest(digest, bytes),
            0,
            Op::Holds,
            RuleName::Blob,
            0,
        ))?)
    }

    pub(super) fn check_sets(&mut self) -> Result<(), VerifyError> {
        let (ambient_sorter, findings, file) =
            (&mut self.sorter, &mut self.findings, &mut self.file);
        let sorter = std::mem::replace(ambient_sorter, Sorter::new(Arc::new(Ambient::system())));
        let mut index = match file {
            Some(file) if !self.options.tree_only => Some(file.index_walk()?),
            _ => None,
        };
        sorter.finish_ahead(|group| {
            check_group(group, findings);
            match &mut index {
                Some(index) => index.step(group, findings),
                None => Ok(()),
            }
        })?;
        match index {
            Some(index) => index.finish(findings),
            None => Ok(()),
        }
    }
}

/// What the entry at a position says under the digest of a group.
fn said(group: &[Record], seq: u64) -> Option<i64> {
    let says = |of: &&Record| of.op == Op::Says && of.seq == seq;
    group.iter().find(says).map(|of| of.value)
}

/// Judges every record of one digest.
fn check_group(group: &[Record], findings: &mut Findings) {
    let givers = || {
        let asks = |record: &&Record| {
            matches!(
                record.op,
                Op::Needs | Op::Forbids | Op::Says | Op::Agrees | Op::Reads | Op::Recorded
            )
        };
        group.iter().filter(move |record| !asks(record))
    };
    let first = givers().map(|record| record.seq).min();
    let event = group.iter().filter(|record| record.op == Op::Id);
    let event = event.min_by_key(|record| record.seq);
    let held = group.iter().any(|record| record.op == Op::Holds);
    for record in group {
        match record.op {
            Op::GivesOnce => {
                if let Some(first) = first.filter(|first| *first < record.seq) {
                    let found = format!("seq {first} has it");
                    findings.add(
                        record.seq,
                        record.rule(),
                        "one event per natural key",
                        found,
                    );
                }
            }
            Op::Needs => {
                let first = if record.rule() == RuleName::Refs {
                    event.map(|record| record.seq)
                } else {
                    first
                };
                if !held && first.is_none_or(|first| first >= record.bound) {
                    let breach =
                        append::need_breach(record.rule(), &record.digest, record.bound, first);
                    findings.breach(record.seq, breach);
                }
            }
            Op::Forbids => {
                if let Some(first) = first.filter(|first| *first < record.bound) {
                    findings.breach(record.seq, append::forbid_breach(record.rule(), first));
                }
            }
            Op::Recorded => {
                // What stands only later is no event that could be named: that is another rule's.
                let other = |event: &&Record| event.seq < record.seq && event.bound != record.bound;
                if let Some(event) = event.filter(other) {
                    let breach = append::says_breach(record.rule(), event.seq);
                    findings.breach(record.seq, breach);
                }
            }
            Op::Agrees => {
                let first = first.filter(|first| *first < record.seq);
                let found = first.and_then(|first| Some((first, said(group, first)?)));
                let breach = append::agree_breach(record.rule(), record.value, found);
                if let Some(breach) = breach {
                    findings.breach(record.seq, breach);
                }
            }
            Op::Reads => {
                let first = first.filter(|first| *first < record.seq);
                let found = first.map(|first| (first, said(group, first)));
                let breach = append::read_breach(record.rule(), record.value, record.bound, found);
                if let Some(breach) = breach {
                    findings.breach(record.seq, breach);
                }
            }
            Op::Id | Op::Gives | Op::Holds | Op::Says => {}
        }
    }
}

/// Digest under which the root of a size is known.
pub(super) fn root_digest(size: u64, root: &Digest) -> Digest {
    let mut bytes = size.to_be_bytes().to_vec();
    bytes.extend_from_slice(&root.0);
    Digest::labelled("clover/root/v1", &bytes)
}

/// Digest under which a blob of a length is known.
fn blob_digest(digest: &Digest, bytes: u64) -> Digest {
    let mut text = digest.0.to_vec();
    text.extend_from_slice(&bytes.to_be_bytes());
    Digest::labelled("clover/blob-ref/v1", &text)
}
