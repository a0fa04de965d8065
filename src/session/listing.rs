//! Entries of one kind, listed by the index of kinds and held against what the log is known to hold.

use clover_ledger::KindQuery;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::read::LogEntry;
use clover_projection::tallies::Tallies;

/// Entries of a kind up to which the index must name exactly as many as the log has before any of them is shown.
const FEW: u64 = 4_096;

/// The newest `limit` entries below `to` that are wanted, ascending.
///
/// # Errors
/// [`LedgerError::Integrity`] where the index of kinds is not that of the log.
pub fn newest(
    ledger: &Ledger,
    of: &KindQuery<'_>,
    to: u64,
    limit: u64,
) -> Result<Vec<LogEntry>, LedgerError> {
    complete(ledger, of)?;
    ledger.newest_of_kind(of, to, limit)
}

/// Gives the entries `between` two positions that are wanted, ascending, until one is not taken.
///
/// # Errors
/// As [`newest`], or what `take` returns.
pub fn each<E: From<LedgerError>>(
    ledger: &Ledger,
    of: &KindQuery<'_>,
    between: (u64, u64),
    take: impl FnMut(LogEntry) -> Result<bool, E>,
) -> Result<(), E> {
    complete(ledger, of)?;
    ledger.each_of_kind(of, between, take)
}

/// Refuses an index that leaves out entries of a kind that is rare, or adds some.
fn complete(ledger: &Ledger, of: &KindQuery<'_>) -> Result<(), LedgerError> {
    let kind = of.kind;
    let expected = ledger.state().fold::<Tallies>().of_kind(kind);
    if expected > FEW {
        return Ok(());
    }
    match ledger.indexed_of_kind(kind)? {
        Some(found) if found != expected => Err(LedgerError::Integrity {
            seq: ledger.size().saturating_sub(1),
            found: format!("an index of kinds with {found} {kind} where the log has {expected}"),
        }),
        _ => Ok(()),
    }
}
