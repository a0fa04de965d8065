//! Opening a head: from snapshots that this machine knows, else from the entries.

use clover_store::Reader;
use clover_store::StoredSnapshot;

use crate::catch_up;
use crate::error::LedgerError;
use crate::fold::Rulebook;
use crate::mark;
use crate::mark::CheckMark;
use crate::open;
use crate::open::Head;
use crate::state::State;

/// The snapshots of all folds, of one size and this rulebook.
type Snapshots = Vec<(&'static str, StoredSnapshot)>;

/// A head that is somewhere below the newest checkpoint; its signatures are checked or marked.
///
/// # Errors
/// [`LedgerError::Integrity`] where a snapshot is not what the entries give.
pub(super) fn restore(
    reader: Reader<'_>,
    rulebook: &'static Rulebook,
    marked: Option<&CheckMark>,
) -> Result<Head, LedgerError> {
    let size = reader.head()?.map_or(0, |head| head.size);
    let snapshots = snapshots(reader, rulebook)?;
    if let Some(marked) = marked.filter(|marked| marked.size <= size)
        && let Some(head) = by_mark(reader, rulebook, marked, snapshots.as_ref())?
    {
        return Ok(head);
    }
    let mut head = empty(reader, rulebook)?;
    compare(&mut head, reader, snapshots.as_ref(), size)?;
    Ok(head)
}

fn empty(reader: Reader<'_>, rulebook: &'static Rulebook) -> Result<Head, LedgerError> {
    let mut head = Head::empty(rulebook);
    head.indexed = reader.index_through()?;
    head.known = head.indexed;
    Ok(head)
}

/// As the mark says; `None` where it is of another tree.
fn by_mark(
    reader: Reader<'_>,
    rulebook: &'static Rulebook,
    marked: &CheckMark,
    snapshots: Option<&Snapshots>,
) -> Result<Option<Head>, LedgerError> {
    let mut head = empty(reader, rulebook)?;
    head.verified = marked.size;
    let known = snapshots.filter(|all| marked.snapshots == Some(mark::digest(all)));
    let is_known = known.is_some_and(|all| take(&mut head, reader, all));
    if !is_known {
        compare(&mut head, reader, snapshots, marked.size)?;
    }
    // A tree of these tiles that differs from the marked one is another log, of which nothing was checked.
    let folded = catch_up::fold_to(&mut head, reader, marked.size);
    let same = folded.is_ok() && head.size() == marked.size && head.root() == marked.root;
    if !same {
        return Ok(None);
    }
    if !is_known {
        let size = reader.head()?.map_or(0, |head| head.size);
        compare(&mut head, reader, snapshots, size)?;
    }
    Ok(Some(head))
}

/// Takes snapshots in. False where they do not fit the tiles.
fn take(head: &mut Head, reader: Reader<'_>, all: &Snapshots) -> bool {
    let Some((_, first)) = all.first() else {
        return false;
    };
    let mut state = State::new(head.state.rulebook());
    let tree = open::resume(reader, first.size);
    let tree = tree.ok().filter(|tree| tree.root() == first.root);
    let restored = all
        .iter()
        .all(|(name, snapshot)| state.restore(name, &snapshot.state));
    let Some(tree) = tree.filter(|_| restored) else {
        return false;
    };
    state.size = first.size;
    (head.state, head.tiler, head.snapshot) = (state, tree, first.size);
    head.snapshots = Some(mark::digest(all));
    true
}

/// Folds up to where the snapshots stand, if that is ahead and at most at `end`, and compares them.
fn compare(
    head: &mut Head,
    reader: Reader<'_>,
    snapshots: Option<&Snapshots>,
    end: u64,
) -> Result<(), LedgerError> {
    let Some(all) = snapshots else {
        return Ok(());
    };
    let Some((_, first)) = all.first() else {
        return Ok(());
    };
    if first.size < head.size() || first.size > end {
        return Ok(());
    }
    catch_up::fold_to(head, reader, first.size)?;
    let seq = first.size.saturating_sub(1);
    if head.root() != first.root {
        let found = "entries that are not those of the snapshot under the signed head".to_owned();
        return Err(LedgerError::Integrity { seq, found });
    }
    let again = head.state.snapshots().into_iter();
    let mut both = again.zip(all);
    let differs = both.find(|((_, again), (_, stored))| *again != stored.state);
    if let Some(((name, _), _)) = differs {
        let found = format!("a snapshot of {name} that is not what the entries give");
        return Err(LedgerError::Integrity { seq, found });
    }
    (head.snapshot, head.snapshots) = (first.size, Some(mark::digest(all)));
    Ok(())
}

/// The stored snapshots, where there is one of every fold and they belong together.
fn snapshots(
    reader: Reader<'_>,
    rulebook: &'static Rulebook,
) -> Result<Option<Snapshots>, LedgerError> {
    let mut all = Snapshots::new();
    for name in State::new(rulebook).snapshot_names() {
        let Some(snapshot) = reader.snapshot(name)? else {
            return Ok(None);
        };
        let together = all
            .first()
            .is_none_or(|(_, first)| (first.size, first.root) == (snapshot.size, snapshot.root));
        if snapshot.rulebook != rulebook.version || !together {
            return Ok(None);
        }
        all.push((name, snapshot));
    }
    Ok(Some(all))
}
