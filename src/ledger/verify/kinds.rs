//! The index of kinds held against the entries, in step with their walk.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use clover_event::Kind;
use clover_store::Reader;

use crate::kinds::PAGE;
use crate::rule_names::RuleName;
use crate::verify::VerifyError;
use crate::verify::report::Findings;

/// The runs of every kind, each walked once.
pub(super) struct KindsWalk<'a> {
    reader: Reader<'a>,
    through: u64,
    kinds: BTreeMap<Kind, KindCursor>,
}

/// The runs of one kind that were not walked yet.
#[derive(Default)]
struct KindCursor {
    waiting: VecDeque<(u64, u64)>,
    /// From where on the next page is read; `None` past the last.
    next: Option<u64>,
    begun: bool,
    /// Entries of the run at hand that were met.
    met: u64,
}

impl KindCursor {
    fn front(&mut self, reader: Reader<'_>, kind: Kind) -> Result<Option<(u64, u64)>, VerifyError> {
        if !self.begun {
            (self.begun, self.next) = (true, Some(0));
        }
        if let (true, Some(from)) = (self.waiting.is_empty(), self.next) {
            let page = reader.kind_runs_from(kind.as_str(), from, PAGE)?;
            let last = page.last().filter(|_| page.len() as u64 == PAGE);
            self.next = last.map(|(first, _)| first + 1);
            self.waiting = page.into();
        }
        Ok(self.waiting.front().copied())
    }
}

fn run(kind: &str, first: u64, entries: u64) -> String {
    format!("a run of {entries} {kind} from entry {first}")
}

impl<'a> KindsWalk<'a> {
    /// Before the first entry of an index that holds those below `through`.
    pub(super) fn new(reader: Reader<'a>, through: u64) -> Self {
        let kinds = BTreeMap::new();
        Self {
            reader,
            through,
            kinds,
        }
    }

    /// Holds the index against the next entry.
    pub(super) fn step(
        &mut self,
        seq: u64,
        kind: Kind,
        findings: &mut Findings,
    ) -> Result<(), VerifyError> {
        if seq >= self.through {
            return Ok(());
        }
        let of = self.kinds.entry(kind).or_default();
        while let Some((first, entries)) = of.front(self.reader, kind)? {
            if first > seq {
                break;
            }
            if seq - first < entries {
                of.met += 1;
                return Ok(());
            }
            leave(of, kind, findings);
        }
        let expected = format!("entry {seq} in a run of {kind}");
        findings.add(seq, RuleName::Index, expected, "no such run");
        Ok(())
    }

    /// What the index holds beyond the entries.
    pub(super) fn finish(&mut self, findings: &mut Findings) -> Result<(), VerifyError> {
        for text in self.reader.indexed_kinds()? {
            let Ok(kind) = text.parse::<Kind>() else {
                let found = format!("runs of {text:?}");
                findings.add(0, RuleName::Index, "runs of kinds", found);
                continue;
            };
            let of = self.kinds.entry(kind).or_default();
            while of.front(self.reader, kind)?.is_some() {
                leave(of, kind, findings);
            }
        }
        Ok(())
    }
}

/// Takes leave of a run, each of whose entries should have been met.
fn leave(of: &mut KindCursor, kind: Kind, findings: &mut Findings) {
    let Some((first, entries)) = of.waiting.pop_front() else {
        return;
    };
    let met = std::mem::take(&mut of.met);
    if met != entries || entries == 0 {
        let found = run(kind.as_str(), first, entries);
        let expected = format!("a run of {kind} alone, of which {met} stand there");
        findings.add(first, RuleName::Index, expected, found);
    }
}
