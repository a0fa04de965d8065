//! Exact set rules over a history of any size: records sorted by digest, spilled in runs to an unnamed
//! scratch file, and checked in one merge.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::mpsc;

use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::Scratch;
use clover_ground::digest::Digest;
use rayon::prelude::*;

use crate::rule_names::RuleName;

/// Records held in memory before they are spilled (about 38 MB).
const RUN_LEN: usize = 600_000;
const RECORD_LEN: usize = 58;
/// Records read from a run at a time.
const READ_LEN: usize = 4_096;
/// Times as many records that are merged before anybody takes them.
const QUEUE: usize = 4;

/// What a record says of its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Op {
    /// The id of an entry's event, kept in the digest index.
    Id,
    /// Given by an entry, and kept in the digest index.
    Gives,
    /// Given by an entry, and forbidden to a second one.
    GivesOnce,
    /// Given by something that the digest index does not hold.
    Holds,
    /// Needed below a bound.
    Needs,
    /// Must not be given below a bound.
    Forbids,
    /// What the entry that gave it says.
    Says,
    /// Must be given from one bound on and below another by an entry that says so.
    Reads,
    /// The event of this id must have recorded a number.
    Recorded,
    /// Whoever gave it before says the same.
    Agrees,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub digest: Digest,
    pub seq: u64,
    pub op: Op,
    pub rule: u8,
    /// For `Needs` and `Forbids`: exclusive bound on the giver. For `Reads`: inclusive bound from below.
    /// For `Id` and `Recorded`: the number that was recorded.
    pub bound: u64,
    /// For `Says`, `Agrees` and `Reads`: the value.
    pub value: i64,
}

impl Record {
    pub(super) fn new(digest: Digest, seq: u64, op: Op, rule: RuleName, bound: u64) -> Self {
        // What is given or said asks nothing, and its rule is never looked at.
        let asks = !matches!(op, Op::Id | Op::Gives | Op::Holds | Op::Says);
        Self {
            digest,
            seq,
            op,
            rule: if asks { rule as u8 } else { u8::MAX },
            bound,
            value: 0,
        }
    }

    pub(super) fn with_value(self, value: i64) -> Self {
        Self { value, ..self }
    }

    pub(super) fn rule(&self) -> RuleName {
        RuleName::at(self.rule).unwrap_or(RuleName::Refs)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.digest.0);
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.push(match self.op {
            Op::Id => 0,
            Op::Gives => 1,
            Op::GivesOnce => 2,
            Op::Holds => 3,
            Op::Needs => 4,
            Op::Forbids => 5,
            Op::Says => 6,
            Op::Reads => 7,
            Op::Recorded => 8,
            Op::Agrees => 9,
        });
        out.push(self.rule);
        out.extend_from_slice(&self.bound.to_be_bytes());
        out.extend_from_slice(&self.value.to_be_bytes());
    }

    fn decode(bytes: &[u8; RECORD_LEN]) -> Self {
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let op = match bytes[40] {
            0 => Op::Id,
            1 => Op::Gives,
            2 => Op::GivesOnce,
            3 => Op::Holds,
            4 => Op::Needs,
            5 => Op::Forbids,
            6 => Op::Says,
            7 => Op::Reads,
            8 => Op::Recorded,
            _ => Op::Agrees,
        };
        Self {
            digest: Digest(std::array::from_fn(|i| bytes[i])),
            seq: word(32),
            op,
            rule: bytes[41],
            bound: word(42),
            value: word(50).cast_signed(),
        }
    }
}

/// A sorted run in the scratch file.
struct Run {
    offset: u64,
    end: u64,
    buffer: std::vec::IntoIter<Record>,
}

/// Takes records in any order and gives them back sorted.
pub(super) struct Sorter {
    ambient: Arc<Ambient>,
    memory: Vec<Record>,
    scratch: Option<Scratch>,
    written: u64,
    runs: Vec<(u64, u64)>,
}

impl Sorter {
    pub(super) fn new(ambient: Arc<Ambient>) -> Self {
        Self {
            ambient,
            memory: Vec::new(),
            scratch: None,
            written: 0,
            runs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, record: Record) -> Result<(), AmbientError> {
        self.memory.push(record);
        if self.memory.len() >= RUN_LEN {
            self.spill()
        } else {
            Ok(())
        }
    }

    /// Sorts what is in memory. Digests are as good as random: their first bytes almost always decide.
    fn sort(&mut self) {
        let head = |record: &Record| {
            record
                .digest
                .0
                .first_chunk()
                .map(|head| u64::from_be_bytes(*head))
        };
        self.memory
            .par_sort_unstable_by(|a, b| head(a).cmp(&head(b)).then_with(|| a.cmp(b)));
    }

    fn spill(&mut self) -> Result<(), AmbientError> {
        self.sort();
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            none => none.insert(Scratch::new(&self.ambient)?),
        };
        let start = self.written;
        let mut bytes = Vec::with_capacity(1 << 20);
        for part in self.memory.chunks((1 << 20) / RECORD_LEN) {
            bytes.clear();
            for record in part {
                record.encode(&mut bytes);
            }
            scratch.append(&bytes)?;
            self.written += bytes.len() as u64;
        }
        self.runs.push((start, self.written));
        self.memory.clear();
        Ok(())
    }

    /// Hands every group of records with one digest to `take`, in digest order.
    pub(super) fn finish<E: From<AmbientError>>(
        mut self,
        mut take: impl FnMut(&[Record]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        let memory = std::mem::take(&mut self.memory).into_iter();
        let mut runs: Vec<Run> = self
            .runs
            .iter()
            .map(|&(offset, end)| Run {
                offset,
                end,
                buffer: Vec::new().into_iter(),
            })
            .collect();
        runs.push(Run {
            offset: 0,
            end: 0,
            buffer: memory,
        });
        let mut heap = BinaryHeap::new();
        for (at, run) in runs.iter_mut().enumerate() {
            if let Some(record) = next(run, self.scratch.as_mut())? {
                heap.push(Smallest { record, at });
            }
        }
        let mut group: Vec<Record> = Vec::new();
        while let Some(Smallest { record, at }) = heap.pop() {
            if group
                .first()
                .is_some_and(|first| first.digest != record.digest)
            {
                take(&group)?;
                group.clear();
            }
            group.push(record);
            if let Some(record) = next(&mut runs[at], self.scratch.as_mut())? {
                heap.push(Smallest { record, at });
            }
        }
        if group.is_empty() {
            Ok(())
        } else {
            take(&group)
        }
    }

    /// The same, merged on another thread while `take` looks at what was merged before.
    pub(super) fn finish_ahead<E: From<AmbientError>>(
        self,
        mut take: impl FnMut(&[Record]) -> Result<(), E>,
    ) -> Result<(), E> {
        std::thread::scope(|scope| {
            let (to_take, merged) = mpsc::sync_channel::<Vec<Record>>(QUEUE);
            let merge = scope.spawn(move || {
                let mut groups = Vec::with_capacity(READ_LEN);
                // None where nobody takes any more: then that error counts.
                let merged = self.finish(|group| {
                    groups.extend_from_slice(group);
                    if groups.len() < READ_LEN {
                        return Ok(());
                    }
                    let full = std::mem::replace(&mut groups, Vec::with_capacity(READ_LEN));
                    to_take.send(full).map_err(|_| None)
                });
                match merged {
                    Ok(()) => to_take.send(groups).map_err(|_| None),
                    Err(error) => Err(error),
                }
            });
            for groups in merged {
                for group in groups.chunk_by(|one, next| one.digest == next.digest) {
                    take(group)?;
                }
            }
            match merge.join() {
                Ok(Err(Some(error))) => Err(AmbientError::into(error)),
                Ok(_) => Ok(()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

fn next(run: &mut Run, scratch: Option<&mut Scratch>) -> Result<Option<Record>, AmbientError> {
    if let Some(record) = run.buffer.next() {
        return Ok(Some(record));
    }
    let left = usize::try_from(run.end - run.offset).unwrap_or(usize::MAX);
    let (Some(scratch), true) = (scratch, left > 0) else {
        return Ok(None);
    };
    let mut bytes = vec![0; left.min(READ_LEN * RECORD_LEN)];
    let read = scratch.read_at(run.offset, &mut bytes)?;
    run.offset += read as u64;
    let records: Vec<_> = bytes[..read]
        .as_chunks::<RECORD_LEN>()
        .0
        .iter()
        .map(Record::decode)
        .collect();
    run.buffer = records.into_iter();
    Ok(run.buffer.next())
}

/// Orders the heap smallest first.
struct Smallest {
    record: Record,
    at: usize,
}

impl PartialEq for Smallest {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Smallest {}
impl PartialOrd for Smallest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Smallest {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.record, other.at).cmp(&(self.record, self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_runs_come_back_in_order_and_complete() {
        let mut sorter = Sorter::new(Arc::new(Ambient::system()));
        let count = 10_000_u64;
        for seq in 0..count {
            // Every digest three times, in scattered order.
            let digest = Digest::sha256(&(seq % (count / 3 + 1)).to_be_bytes());
            sorter
                .push(Record::new(digest, seq, Op::Gives, RuleName::Refs, 0))
                .unwrap();
            if seq % 1_700 == 0 {
                sorter.spill().unwrap();
            }
        }
        let (mut seen, mut last) = (0, None);
        sorter
            .finish_ahead(|group| {
                assert!(last < Some(group[0].digest));
                assert!(group.is_sorted());
                last = Some(group[0].digest);
                seen += group.len() as u64;
                Ok::<_, AmbientError>(())
            })
            .unwrap();
        assert_eq!(seen, count);
    }
}
