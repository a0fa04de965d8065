//! Verification: everything checked again in one pass over a stream, with bounded memory and every core.
//!
//! A source gives the entries; workers hash, decode and check signatures; one thread walks them in order
//! through tree, rules, folds and read models; what is exact only over the whole history is sorted
//! externally. The rules are those that checked the append. Nothing stops at the first finding.

mod again;
mod beside;
mod checker;
mod ending;
mod entries;
mod file;
mod index;
mod integrity;
mod kinds;
mod outside;
mod part;
mod report;
mod sets;
mod snapshots;
mod sorter;
mod times;
mod work;

use std::io::BufRead;
use std::sync::Arc;

use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;
use clover_ground::note::VerifierKey;
use clover_store::Store;
use clover_store::StoreError;

use crate::fold::Rulebook;

pub use again::UNREAD;
pub use beside::FilesBeside;
pub use part::CUSTODY;
pub use part::WithheldEntry;
pub use part::verify_part;
pub use report::Divergent;
pub use report::Finding;
pub use report::First;
pub use report::Report;
pub use report::Taint;
pub(crate) use work::read_lines;

/// How signatures are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// In batches with equal keys coalesced: faster, and a key holder can craft what passes here and fails
    /// strictly.
    Fast,
    /// One by one, strictly.
    #[default]
    Strict,
}

/// What to verify and against what.
#[derive(Debug, Default)]
pub struct VerifyOptions {
    /// Checkpoints from outside that the log must extend or equal; named in findings.
    pub against: Vec<(String, SignedCheckpoint)>,
    /// The pin, held against a copy of the log: where the copy ends before it, it is an older one, and not rolled back.
    pub pin: Option<SignedCheckpoint>,
    /// Checkpoints that could not be read, by name, with what is wrong: findings, whatever else is found.
    pub unreadable: Vec<(String, String)>,
    /// Checkpoints that came beside the lines of a bundle, by name, in the order of their sizes.
    pub kept: Vec<(String, SignedCheckpoint)>,
    /// The log key that the ledger must have, or have had.
    pub log_key: Option<VerifierKey>,
    /// Re-run recomputing rules too.
    pub recompute: bool,
    /// How signatures are checked.
    pub signatures: Signatures,
    /// Take entries below this checkpoint as verified before: only their bytes under its root are checked.
    pub since: Option<SignedCheckpoint>,
    /// Hash the entries and compare roots; nothing else.
    pub tree_only: bool,
}

impl VerifyOptions {
    /// Entries taken as verified before.
    fn since_size(&self) -> u64 {
        self.since
            .as_ref()
            .map_or(0, |since| since.checkpoint().size)
    }
}

/// Reads a blob by its BLAKE3 digest; `None` when it is not there.
pub type BlobSource<'a> = &'a dyn Fn(&Digest) -> Result<Option<Vec<u8>>, AmbientError>;

/// Entry lines and what came with them.
pub struct EntryLines<'a> {
    /// One entry line per line.
    pub lines: Box<dyn BufRead + Send + 'a>,
    /// The signed checkpoint over them, when there is one.
    pub checkpoint: Option<SignedCheckpoint>,
    /// Where blobs are, when they came too.
    pub blobs: Option<BlobSource<'a>>,
}

/// Why verification could not be carried out at all. Anything found *in* a ledger is a finding instead.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Clock, entropy or a file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// Reading the lines failed.
    #[error("cannot read the entries: {0}")]
    Read(String),
    /// The file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Called with entries done and entries known.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Verifies a ledger file.
///
/// # Errors
/// [`VerifyError`] when the file cannot be read at all.
pub fn verify_store(
    store: &Store,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    ambient: &Arc<Ambient>,
    progress: Progress<'_>,
) -> Result<Report, VerifyError> {
    match file::verify(store, options, rulebook, ambient, &mut *progress) {
        Err(VerifyError::Store(
            broken @ (StoreError::Corrupt(_) | StoreError::Damaged(_) | StoreError::Sqlite(_)),
        )) => {
            let of = (progress, &broken);
            entries::verify_entries(store, options, rulebook, ambient, of)
        }
        done => done,
    }
}

/// Verifies entry lines; needs no store.
///
/// # Errors
/// [`VerifyError`] when the lines cannot be read.
pub fn verify_lines(
    lines: EntryLines<'_>,
    options: &VerifyOptions,
    rulebook: &'static Rulebook,
    ambient: &Arc<Ambient>,
    progress: Progress<'_>,
) -> Result<Report, VerifyError> {
    let checker = checker::Checker::new(options, rulebook, ambient, None)?;
    walk_lines(
        lines,
        checker,
        (options, rulebook),
        work::Raw::Line,
        progress,
    )
}

/// Walks lines, each as `raw` reads it, and ends with what was found.
fn walk_lines<'a>(
    lines: EntryLines<'a>,
    mut checker: checker::Checker<'a>,
    (options, rulebook): (&VerifyOptions, &'static Rulebook),
    raw: fn(Vec<u8>) -> work::Raw,
    progress: Progress<'_>,
) -> Result<Report, VerifyError> {
    let EntryLines {
        lines,
        checkpoint,
        blobs,
    } = lines;
    checker.blobs = blobs;
    checker.expect_head(checkpoint);
    let source = move |give: &mut dyn FnMut(work::Raw) -> bool| {
        read_lines(lines, &mut |line| give(raw(line)))
    };
    work::run(source, options, rulebook, |digested| {
        checker.take(digested)?;
        if checker.position().is_multiple_of(1024) {
            progress(checker.position(), 0);
        }
        Ok(())
    })?;
    progress(checker.position(), checker.position());
    checker.finish()
}
