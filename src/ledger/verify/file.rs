//! What a ledger file holds beside its entries: checkpoints, tiles, read models, index, snapshots, blobs,
//! and what `SQLite` itself says.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use clover_ground::ambient::Ambient;
use clover_ground::digest::Digest;
use clover_ground::merkle::LEAVES_AT_ONCE;
use clover_ground::merkle::Tile;
use clover_ground::note::SignedCheckpoint;
use clover_ground::note::VerifierKey;
use clover_ground::sign::KeyId;
use clover_store::EntryRef;
use clover_store::Reader;
use clover_store::RowCursor;
use clover_store::Store;
use clover_store::StoreError;
use clover_store::StoredCheckpoint;
use clover_store::StoredSnapshot;
use clover_store::Table;
use rayon::prelude::*;

use crate::checkpoint;
use crate::fold::Rulebook;
use crate::fold::VerifiedEvent;
use crate::lines::LeafLines;
use crate::rule_names::RuleName;
use crate::verify::Progress;
use crate::verify::VerifyError;
use crate::verify::VerifyOptions;
use crate::verify::checker::Checker;
use crate::verify::index::IndexWalk;
use crate::verify::integrity::take_integrity;
use crate::verify::kinds::KindsWalk;
use crate::verify::report::Findings;
use crate::verify::report::Report;
use crate::verify::snapshots;
use crate::verify::work;
use crate::verify::work::Raw;

/// Checkpoint signatures checked at a time.
const NOTES: usize = 256;
/// Missing entries that are reported one by one; past a wider gap nothing is read.
const GAP_MAX: u64 = 10_000;

pub(super) fn verify(
    store: &Store,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    ambient: &Arc<Ambient>,
    progress: Progress<'_>,
) -> Result<Report, VerifyError> {
    let (entries, checks) = (store.another()?, store.another()?);
    let own = store.another()?;
    let read = own.read()?;
    let reader = read.reader();
    // From here on every other connection sees at least these entries, and looks at no more.
    let size = reader.entry_count()?;
    std::thread::scope(|scope| {
        let integrity = (!options.tree_only).then(|| scope.spawn(move || checks.integrity()));
        let mut statements = Vec::new();
        for table in Table::ALL {
            statements.push((table, reader.row_statement(table)?));
        }
        let mut rows = Vec::new();
        for (table, statement) in &mut statements {
            rows.push((*table, statement.cursor()?));
        }
        let view = FileView::new(reader, rows, options)?;
        let mut checker = Checker::new(options, rulebook, ambient, Some(view))?;
        if options.tree_only {
            walk_tree(&entries, size, &mut checker, progress)?;
        } else {
            walk_rules(entries, size, &mut checker, (options, rulebook, progress))?;
        }
        progress(checker.position(), size);
        if let Some(integrity) = integrity {
            let failed = || StoreError::Sqlite("integrity_check failed".to_owned());
            take_integrity(
                &mut checker,
                integrity.join().unwrap_or_else(|_| Err(failed())),
            );
        }
        checker.finish()
    })
}

/// Judges the entries in order.
pub(super) fn walk_rules(
    entries: Store,
    size: u64,
    checker: &mut Checker<'_>,
    (options, rulebook, progress): (&VerifyOptions, &'static Rulebook, Progress<'_>),
) -> Result<(), VerifyError> {
    let source = move |give: &mut dyn FnMut(Raw) -> bool| {
        let mut give = |entry: Result<EntryRef<'_>, String>| {
            give(match entry {
                Ok(entry) => Raw::Stored(entry.to_stored()),
                Err(why) => Raw::Unreadable(why),
            })
        };
        read_entries(&entries, size, &mut give);
        Ok(())
    };
    work::run(source, options, rulebook, |digested| {
        checker.take(digested)?;
        if checker.position().is_multiple_of(1024) {
            progress(checker.position(), size);
        }
        Ok(())
    })
}

/// Takes the entries into the tree and does nothing else, where they are read: handing them to other threads
/// would cost more than their hashes.
fn walk_tree(
    store: &Store,
    size: u64,
    checker: &mut Checker<'_>,
    progress: Progress<'_>,
) -> Result<(), VerifyError> {
    let mut lines = LeafLines::default();
    let mut result = Ok(());
    read_entries(store, size, &mut |entry| {
        let fault = match entry {
            Ok(entry) => lines.push(&entry),
            Err(why) => {
                lines.push_unreadable();
                Some(why)
            }
        };
        let seq = checker.position() + lines.len() as u64 - 1;
        if let Some(why) = fault {
            checker
                .findings
                .add(seq, RuleName::LineFormat, "a readable entry", why);
        }
        if lines.len() == LEAVES_AT_ONCE {
            result = take_lines(checker, &mut lines);
        }
        if seq.is_multiple_of(1024) {
            progress(seq, size);
        }
        result.is_ok()
    });
    result?;
    take_lines(checker, &mut lines)
}

fn take_lines(checker: &mut Checker<'_>, lines: &mut LeafLines) -> Result<(), VerifyError> {
    for leaf in lines.leaves() {
        checker.take_leaf(leaf)?;
    }
    Ok(())
}

/// Gives entries in order; a gap or a damaged row is given as what it is.
pub(super) fn read_entries(
    store: &Store,
    size: u64,
    give: &mut dyn FnMut(Result<EntryRef<'_>, String>) -> bool,
) {
    let mut next = 0;
    let result = store.reader().try_entries(0, size, |entry| {
        if let Ok(entry) = &entry {
            if entry.seq.saturating_sub(next) > GAP_MAX {
                let after = entry.seq;
                give(Err(format!("no entry {next}; the next one is {after}")));
                return Err(FileWalkEnd::Done);
            }
            while next < entry.seq {
                next += 1;
                if !give(Err(format!("no entry {}", next - 1))) {
                    return Err(FileWalkEnd::Done);
                }
            }
        }
        next += 1;
        if give(entry.map_err(|error| error.to_string())) {
            Ok(())
        } else {
            Err(FileWalkEnd::Done)
        }
    });
    match result {
        Ok(()) | Err(FileWalkEnd::Done) => {}
        Err(FileWalkEnd::Store(error)) => {
            // SQLite cannot go on: that is a finding at the place where it stopped.
            give(Err(error.to_string()));
        }
    }
}

enum FileWalkEnd {
    Done,
    Store(StoreError),
}

impl From<StoreError> for FileWalkEnd {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Everything in the file but the entries, walked in step with them.
pub(super) struct FileView<'a> {
    reader: Reader<'a>,
    rows: Vec<(Table, RowCursor<'a>)>,
    next_checkpoint: Option<StoredCheckpoint>,
    previous: u64,
    notes: Vec<(u64, SignedCheckpoint, Vec<VerifierKey>)>,
    roots: BTreeMap<u64, Digest>,
    tiles: u64,
    snapshots: BTreeMap<u64, Vec<(String, StoredSnapshot)>>,
    /// Whether one program wrote them together.
    are_snapshots_of_one: bool,
    met: BTreeSet<KeyId>,
    /// The index of kinds, held against each entry.
    pub(super) kinds: KindsWalk<'a>,
    tree_only: bool,
}

impl<'a> FileView<'a> {
    /// The file, as it is walked.
    pub(super) fn reader(&self) -> Reader<'a> {
        self.reader
    }

    fn new(
        reader: Reader<'a>,
        rows: Vec<(Table, RowCursor<'a>)>,
        options: &VerifyOptions,
    ) -> Result<Self, VerifyError> {
        let mut snapshots: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for name in reader.snapshot_names()? {
            if let Some(snapshot) = reader.snapshot(&name)? {
                snapshots
                    .entry(snapshot.size)
                    .or_default()
                    .push((name, snapshot));
            }
        }
        Ok(Self {
            reader,
            rows,
            next_checkpoint: reader.next_checkpoint(0)?,
            previous: 0,
            notes: Vec::new(),
            roots: BTreeMap::new(),
            tiles: 0,
            are_snapshots_of_one: snapshots::are_of_one(&snapshots),
            snapshots,
            met: BTreeSet::new(),
            kinds: KindsWalk::new(reader, reader.kinds_through()?),
            tree_only: options.tree_only,
        })
    }

    /// Compares a completed tile with the stored one.
    pub(super) fn tile(
        &mut self,
        tile: &Tile,
        seq: u64,
        findings: &mut Findings,
    ) -> Result<(), VerifyError> {
        self.tiles += 1;
        let name = format!("tile {}/{}", tile.level, tile.index);
        let Some((root, hashes)) = self.reader.tile_bytes(tile.level, tile.index)? else {
            findings.add(seq, RuleName::Tile, name, "no such tile");
            return Ok(());
        };
        let same = tile
            .hashes
            .iter()
            .map(|hash| &hash.0[..])
            .eq(hashes.chunks(32));
        if root != tile.root.0 || !same {
            findings.add(
                seq,
                RuleName::Tile,
                format!("{name} of these entries"),
                "other hashes",
            );
        }
        Ok(())
    }

    /// Compares what the event adds to the read models with the rows at hand.
    pub(super) fn rows(
        &mut self,
        rulebook: &Rulebook,
        event: &VerifiedEvent<'_>,
        findings: &mut Findings,
    ) -> Result<(), VerifyError> {
        let mut changes = Vec::new();
        rulebook.rows(event, &mut |change| changes.push(change));
        let seq = event.seq();
        let at = i64::try_from(seq).unwrap_or(i64::MAX);
        for change in &changes {
            let Some((_, cursor)) = self
                .rows
                .iter_mut()
                .find(|(table, _)| *table == change.table())
            else {
                continue;
            };
            while let Some(found) = cursor.seq().filter(|found| *found < at) {
                stray(findings, found, cursor);
                cursor.advance()?;
            }
            if cursor.seq() != Some(at) {
                findings.add(seq, RuleName::ReadModel, change.describe(), "no row");
                continue;
            }
            if !cursor.matches(change) {
                findings.add(
                    seq,
                    RuleName::ReadModel,
                    change.describe(),
                    cursor.describe(),
                );
            }
            cursor.advance()?;
        }
        Ok(())
    }

    /// The root of the kept checkpoint of a size, when there is one.
    pub(super) fn kept_root(&mut self, size: u64) -> Result<Option<Digest>, VerifyError> {
        if let Some(root) = self.roots.get(&size) {
            return Ok(Some(*root));
        }
        let Some(stored) = self.reader.checkpoint(size)? else {
            return Ok(None);
        };
        let root = SignedCheckpoint::parse(&stored.note)
            .ok()
            .map(|parsed| parsed.checkpoint().root);
        if let Some(root) = root {
            self.remember(size, root);
        }
        Ok(root)
    }

    fn remember(&mut self, size: u64, root: Digest) {
        if self.roots.len() >= 256 {
            self.roots.pop_first();
        }
        self.roots.insert(size, root);
    }

    /// Whether the file holds a checkpoint or a snapshot of this size.
    pub(super) fn is_due(&self, size: u64) -> bool {
        let checkpoint = self.next_checkpoint.as_ref();
        checkpoint.is_some_and(|stored| stored.size <= size) || self.snapshots.contains_key(&size)
    }

    /// Judges checkpoint and snapshots of the size that the walk has reached.
    pub(super) fn at_size(
        &mut self,
        checker: &mut Checker<'_>,
        size: u64,
    ) -> Result<(), VerifyError> {
        while let Some(stored) = self.next_checkpoint.take_if(|stored| stored.size <= size) {
            self.checkpoint(checker, &stored);
            let next = self.reader.next_checkpoint(stored.size)?;
            // A damaged table may give the same row again; the walk must come to an end.
            self.next_checkpoint = next.filter(|next| next.size > stored.size);
        }
        if self.tree_only {
            return Ok(());
        }
        if let Some(all) = self.snapshots.remove(&size) {
            snapshots::check(checker, size, &all);
        }
        Ok(())
    }

    fn checkpoint(&mut self, checker: &mut Checker<'_>, stored: &StoredCheckpoint) {
        let seq = stored.size.saturating_sub(1);
        let parsed = match SignedCheckpoint::parse(&stored.note) {
            Ok(parsed) => parsed,
            Err(error) => {
                checker.findings.add(
                    seq,
                    RuleName::Checkpoint,
                    "a signed checkpoint",
                    error.to_string(),
                );
                return;
            }
        };
        let (size, root) = (parsed.checkpoint().size, parsed.checkpoint().root);
        if size != stored.size {
            checker.findings.add(
                seq,
                RuleName::Checkpoint,
                format!("size {}", stored.size),
                format!("size {size}"),
            );
        }
        if root != checker.tiler.root() {
            checker.own_root_broken = true;
            let expected = format!("root {} of the checkpoint", root.to_base64());
            checker.findings.add(
                seq,
                RuleName::Root,
                expected,
                checker.tiler.root().to_base64(),
            );
        }
        self.remember(stored.size, root);
        if !self.tree_only {
            let keys =
                checkpoint::required_keys(&checker.state.keyring, self.previous, stored.size);
            self.notes.push((seq, parsed, keys));
            if self.notes.len() >= NOTES {
                self.check_notes(checker);
            }
        }
        self.previous = stored.size;
    }

    fn check_notes(&mut self, checker: &mut Checker<'_>) {
        let origin = checker.state.keyring.origin.clone();
        let found: Vec<_> = self
            .notes
            .par_iter()
            .filter_map(|(seq, note, keys)| {
                checkpoint::check(note, &origin, keys)
                    .err()
                    .map(|found| (*seq, found))
            })
            .collect();
        for (seq, found) in found {
            checker.findings.add(
                seq,
                RuleName::Checkpoint,
                format!("signed by the log key of {origin}"),
                found,
            );
        }
        self.notes.clear();
    }

    /// Judges what is left when the entries are walked.
    pub(super) fn finish(&mut self, checker: &mut Checker<'_>) -> Result<(), VerifyError> {
        self.check_notes(checker);
        let size = checker.position();
        if let Some(stored) = &self.next_checkpoint {
            let expected = format!("{} entries of a kept checkpoint", stored.size);
            checker
                .findings
                .add(size, RuleName::Size, expected, format!("{size} entries"));
        } else if self.previous != size {
            let found = format!("the newest covers {}", self.previous);
            checker.findings.add(
                size,
                RuleName::Checkpoint,
                format!("a checkpoint of {size} entries"),
                found,
            );
        }
        let tiles = self.reader.tile_count()?;
        if tiles != self.tiles {
            checker.findings.add(
                size,
                RuleName::Tile,
                format!("{} full tiles", self.tiles),
                tiles.to_string(),
            );
        }
        if self.tree_only {
            return Ok(());
        }
        for (_, cursor) in &mut self.rows {
            while let Some(seq) = cursor.seq() {
                stray(&mut checker.findings, seq, cursor);
                cursor.advance()?;
            }
        }
        snapshots::check_rest(checker, size, self.are_snapshots_of_one, &self.snapshots);
        self.kinds.finish(&mut checker.findings)?;
        self.authors(checker, size);
        self.numbers(checker, size)?;
        self.blobs(checker)
    }

    /// Judges the counters that the next append would believe.
    fn numbers(&self, checker: &mut Checker<'_>, size: u64) -> Result<(), VerifyError> {
        let (through, stray) = (self.reader.index_through()?, self.reader.stray_cursors()?);
        let findings = &mut checker.findings;
        for through in [through, self.reader.kinds_through()?] {
            if through > size {
                let expected = format!("a cursor of at most {size} entries");
                findings.add(size, RuleName::Index, expected, through.to_string());
            }
        }
        if stray > 0 {
            findings.add(
                size,
                RuleName::Index,
                "a cursor of each index",
                format!("{stray} more"),
            );
        }
        if !self.reader.blobs_are_numbered()? {
            findings.add(size, RuleName::Blob, "blobs numbered from 1", "a gap");
        }
        Ok(())
    }

    /// Takes note of an envelope's key.
    pub(super) fn meet(&mut self, key: KeyId) {
        self.met.insert(key);
    }

    fn authors(&mut self, checker: &mut Checker<'_>, size: u64) {
        match self.reader.authors() {
            Err(error) => {
                checker.findings.add(
                    size,
                    RuleName::Authors,
                    "a readable table",
                    error.to_string(),
                );
            }
            Ok(authors) => {
                let listed: BTreeSet<_> = authors.iter().copied().collect();
                if self.met != listed || listed.len() != authors.len() {
                    let expected = format!("the {} keys that signed", self.met.len());
                    checker.findings.add(
                        size,
                        RuleName::Authors,
                        expected,
                        format!("{} keys", authors.len()),
                    );
                }
            }
        }
    }

    fn blobs(&self, checker: &mut Checker<'_>) -> Result<(), VerifyError> {
        let size = checker.position();
        self.reader.blobs(|digest, bytes| {
            let found = Digest::blake3(bytes);
            if found != digest {
                checker.findings.add(
                    size,
                    RuleName::Blob,
                    format!("bytes of blob {digest}"),
                    format!("bytes of {found}"),
                );
                return Ok(());
            }
            checker.hold_blob(&digest, bytes.len() as u64)
        })
    }

    /// Begins to compare the digest index with what the entries gave.
    pub(super) fn index_walk(&self) -> Result<IndexWalk<'a>, VerifyError> {
        let through = self.reader.index_through()?;
        Ok(IndexWalk::new(self.reader, through))
    }
}

fn stray(findings: &mut Findings, seq: i64, cursor: &RowCursor<'_>) {
    let at = u64::try_from(seq).unwrap_or(0);
    findings.add(
        at,
        RuleName::ReadModel,
        "no row of this entry",
        cursor.describe(),
    );
}
