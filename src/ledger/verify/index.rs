//! The digest index held against the sorted facts of all entries.

use clover_ground::digest::Digest;
use clover_store::Reader;

use crate::rule_names::RuleName;
use crate::verify::VerifyError;
use crate::verify::report::Findings;
use crate::verify::sorter::Op;
use crate::verify::sorter::Record;

/// Index rows read at a time.
const INDEX_PAGE: usize = 4_096;

/// The digest index in digest order, in step with the sorted facts.
pub(super) struct IndexWalk<'a> {
    reader: Reader<'a>,
    through: u64,
    page: std::vec::IntoIter<(Digest, u64)>,
    peeked: Option<(Digest, u64)>,
    last: Option<Digest>,
    done: bool,
}

impl<'a> IndexWalk<'a> {
    /// Before the first row of the index, which holds what entries below `through` gave.
    pub(super) fn new(reader: Reader<'a>, through: u64) -> Self {
        Self {
            reader,
            through,
            page: Vec::new().into_iter(),
            peeked: None,
            last: None,
            done: false,
        }
    }

    fn peek(&mut self) -> Result<Option<(Digest, u64)>, VerifyError> {
        if self.peeked.is_some() {
            return Ok(self.peeked);
        }
        self.peeked = self.page.next();
        if self.peeked.is_none() && !self.done {
            let page = self.reader.index_page(self.last, INDEX_PAGE)?;
            let last = page.last().map(|(digest, _)| *digest);
            // A damaged table may give the same rows again; the walk must come to an end.
            self.done = page.len() < INDEX_PAGE || last <= self.last;
            self.last = last.or(self.last);
            self.page = page.into_iter();
            self.peeked = self.page.next();
        }
        Ok(self.peeked)
    }

    fn stray(&mut self, findings: &mut Findings, digest: Digest, seq: u64) {
        self.peeked = None;
        findings.add(
            seq,
            RuleName::Index,
            "no such digest",
            format!("{digest} at seq {seq}"),
        );
    }

    /// Compares the index with one group of facts.
    pub(super) fn step(
        &mut self,
        group: &[Record],
        findings: &mut Findings,
    ) -> Result<(), VerifyError> {
        let digest = group[0].digest;
        let giver = |record: &&Record| matches!(record.op, Op::Id | Op::Gives | Op::GivesOnce);
        let expected = group
            .iter()
            .filter(giver)
            .map(|record| record.seq)
            .min()
            .filter(|seq| *seq < self.through);
        while let Some((found, seq)) = self.peek()?.filter(|(found, _)| *found < digest) {
            self.stray(findings, found, seq);
        }
        let found = self
            .peek()?
            .filter(|(found, _)| *found == digest)
            .map(|(_, seq)| seq);
        if found.is_some() {
            self.peeked = None;
        }
        if found != expected {
            let say = |seq: Option<u64>| {
                seq.map_or("none".to_owned(), |seq| format!("{digest} at seq {seq}"))
            };
            let at = expected.or(found).unwrap_or(0);
            findings.add(at, RuleName::Index, say(expected), say(found));
        }
        Ok(())
    }

    /// What the index holds beyond every fact.
    pub(super) fn finish(mut self, findings: &mut Findings) -> Result<(), VerifyError> {
        while let Some((digest, seq)) = self.peek()? {
            self.stray(findings, digest, seq);
        }
        Ok(())
    }
}
