//! The index of kinds: kept with every append, and read from the end.
//!
//! It says where to look and never what stands there: an entry that is not of the kind that the index names stops the reading,
//! and no rule asks it. `verify` holds it against the log.

use clover_event::Kind;
use clover_event::header;
use clover_store::KindRun;
use clover_store::Reader;
use clover_store::WriteTxn;

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::past::Past;
use crate::read;
use crate::read::LogEntry;
use crate::under::Under;

/// Runs of the index that are read at a time.
pub(super) const PAGE: u64 = 256;
/// Entries that are read at a time where the index does not reach.
const CHUNK: u64 = 4_096;
/// Runs that are kept in memory while a file is indexed for the first time.
const WAITING: usize = 4_096;

/// Entries as runs of one kind.
#[derive(Debug, Default)]
pub(super) struct KindRuns(Vec<EntryRun>);

#[derive(Debug)]
struct EntryRun {
    kind: Kind,
    first: u64,
    entries: u64,
}

impl KindRuns {
    /// Takes in an entry; its position is above those before it.
    pub(super) fn push(&mut self, seq: u64, kind: Kind) {
        match self.0.last_mut() {
            Some(last) if last.kind == kind && last.first + last.entries == seq => {
                last.entries += 1;
            }
            _ => self.0.push(EntryRun {
                kind,
                first: seq,
                entries: 1,
            }),
        }
    }

    fn write(&mut self, txn: &WriteTxn<'_>, through: u64) -> Result<(), LedgerError> {
        let runs = self.0.drain(..);
        txn.index_kinds(
            runs.collect::<Vec<_>>().iter().map(|run| KindRun {
                kind: run.kind.as_str(),
                first: run.first,
                entries: run.entries,
            }),
            through,
        )?;
        Ok(())
    }
}

/// Takes runs into the index, which then holds the first `size` entries. Where it lags behind the first of the runs, as in a
/// file that was made before there was an index, the entries between are read first.
pub(super) fn index(
    txn: &WriteTxn<'_>,
    (first, size): (u64, u64),
    mut runs: KindRuns,
) -> Result<(), LedgerError> {
    let reader = txn.reader();
    let mut at = reader.kinds_through()?;
    let mut before = KindRuns::default();
    while at < first {
        let to = first.min(at.saturating_add(CHUNK));
        reader.entries::<LedgerError>(at, to, |stored| {
            // What cannot be read has no kind; `verify` names it.
            if let Some(kind) = header::kind_admitted(&stored.body) {
                before.push(stored.seq, kind);
            }
            Ok(())
        })?;
        at = to;
        if before.0.len() >= WAITING {
            before.write(txn, at)?;
        }
    }
    before.write(txn, first)?;
    runs.write(txn, size)
}

/// Entries of a kind, and which of them are wanted.
pub struct KindQuery<'f> {
    /// The kind.
    pub kind: Kind,
    /// Which of its entries are wanted.
    pub takes: &'f dyn Fn(&LogEntry) -> bool,
}

impl Ledger {
    /// Entries that the index of kinds holds and that are under the head.
    fn kinds_through(&self, reader: Reader<'_>) -> Result<u64, LedgerError> {
        Ok(reader.kinds_through()?.min(self.size()))
    }

    /// How many entries of a kind stand under the head by the index; `None` where the index lags behind the log. What another
    /// process appended since this ledger was opened is left out, as in every other reading.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn indexed_of_kind(&self, kind: Kind) -> Result<Option<u64>, LedgerError> {
        let read = self.store.read()?;
        let reader = read.reader();
        let through = reader.kinds_through()?;
        if through < self.size() {
            return Ok(None);
        }
        // An index that reaches no further than the head has no runs above it, or lies.
        let is_ahead = through > self.size();
        let (mut total, mut from) = (0_u64, 0);
        loop {
            let page = reader.kind_runs_from(kind.as_str(), from, PAGE)?;
            total = page.iter().fold(total, |sum, (first, entries)| {
                let under = self.size().saturating_sub(*first);
                sum.saturating_add(if is_ahead {
                    (*entries).min(under)
                } else {
                    *entries
                })
            });
            match page.last() {
                Some((first, _)) if page.len() as u64 == PAGE => from = first + 1,
                _ => return Ok(Some(total)),
            }
        }
    }

    /// The newest `limit` entries below `to` that are wanted, ascending.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] where the index names an entry of another kind.
    pub fn newest_of_kind(
        &self,
        of: &KindQuery<'_>,
        to: u64,
        limit: u64,
    ) -> Result<Vec<LogEntry>, LedgerError> {
        let read = self.store.read()?;
        let (reader, mut end) = (read.reader(), to.min(self.size()));
        let under = self.under(reader);
        let through = self.kinds_through(reader)?;
        let mut found = Vec::new();
        while end > through && (found.len() as u64) < limit {
            let start = through.max(end.saturating_sub(CHUNK));
            let mut chunk = unindexed(under, of, start, end)?;
            chunk.reverse();
            found.append(&mut chunk);
            end = start;
        }
        let mut before = end;
        while before > 0 && (found.len() as u64) < limit {
            let runs = runs_below(reader, of.kind, before)?;
            let Some((first, _)) = runs.last().copied() else {
                break;
            };
            for (first, entries) in runs {
                let mut top = first.saturating_add(entries).min(end);
                while top > first && (found.len() as u64) < limit {
                    let wanted = limit.saturating_sub(found.len() as u64);
                    let wanted = wanted.clamp(PAGE, CHUNK);
                    let start = first.max(top.saturating_sub(wanted));
                    let chunk = indexed(under, of, start, top)?;
                    found.extend(chunk.into_iter().rev());
                    top = start;
                }
            }
            (before, end) = (first, first);
        }
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        found.reverse();
        Ok(found)
    }

    /// Gives the entries `from..to` that are wanted, ascending, until one is not taken.
    ///
    /// # Errors
    /// As [`Ledger::newest_of_kind`], or what `take` returns.
    pub fn each_of_kind<E: From<LedgerError>>(
        &self,
        of: &KindQuery<'_>,
        (from, to): (u64, u64),
        mut take: impl FnMut(LogEntry) -> Result<bool, E>,
    ) -> Result<(), E> {
        let failed = |error: clover_store::StoreError| LedgerError::from(error);
        let read = self.store.read().map_err(failed)?;
        let reader = read.reader();
        let under = self.under(reader);
        let to = to.min(self.size());
        let through = self.kinds_through(reader)?.min(to);
        let (mut at, mut after) = (from, from);
        // A run may begin below and reach over the first entry that is asked for.
        let below = from.saturating_add(1).min(through);
        let mut runs = runs_below(reader, of.kind, below)?;
        runs.truncate(1);
        loop {
            for (first, entries) in std::mem::take(&mut runs) {
                let end = first.saturating_add(entries).min(through);
                at = at.max(first);
                while at < end {
                    let next = end.min(at.saturating_add(CHUNK));
                    if !each(indexed(under, of, at, next)?, &mut take)? {
                        return Ok(());
                    }
                    at = next;
                }
            }
            if after >= through {
                break;
            }
            let page = reader.kind_runs_from(of.kind.as_str(), after + 1, PAGE);
            runs = page.map_err(failed)?;
            match runs.last() {
                Some((first, _)) => after = *first,
                None => break,
            }
        }
        let mut at = through.max(from);
        while at < to {
            let next = to.min(at.saturating_add(CHUNK));
            if !each(unindexed(under, of, at, next)?, &mut take)? {
                return Ok(());
            }
            at = next;
        }
        Ok(())
    }
}

/// Gives entries one after another; whether all were taken.
fn each<E>(
    entries: Vec<LogEntry>,
    take: &mut impl FnMut(LogEntry) -> Result<bool, E>,
) -> Result<bool, E> {
    for read in entries {
        if !take(read)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn runs_below(reader: Reader<'_>, kind: Kind, before: u64) -> Result<Vec<(u64, u64)>, LedgerError> {
    Ok(reader.kind_runs_before(kind.as_str(), before, PAGE)?)
}

/// Entries that the index says are of the kind.
fn indexed(
    under: Under<'_>,
    of: &KindQuery<'_>,
    from: u64,
    to: u64,
) -> Result<Vec<LogEntry>, LedgerError> {
    let mut found = Vec::new();
    under.entries::<LedgerError>(from, to, |stored| {
        let read = read::decode(stored)?;
        if read.event.kind() != of.kind {
            let kind = read.event.kind();
            let found = format!("a {kind} where the index of kinds says {}", of.kind);
            let seq = read.stored.seq;
            return Err(LedgerError::Integrity { seq, found });
        }
        if (of.takes)(&read) {
            found.push(read);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Entries of the kind where the index does not reach.
fn unindexed(
    under: Under<'_>,
    of: &KindQuery<'_>,
    from: u64,
    to: u64,
) -> Result<Vec<LogEntry>, LedgerError> {
    let mut found = Vec::new();
    Past::new(under).entries::<LedgerError>(from, to, |read| {
        if read.event.kind() == of.kind && (of.takes)(&read) {
            found.push(read);
        }
        Ok(())
    })?;
    Ok(found)
}
