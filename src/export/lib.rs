//! Exports: the log in formats that need none of this program.
//!
//! A format is one file here with an [`Exporter`], and one line in [`FORMATS`]. An export shows what events
//! say and adds no number of its own; which checkpoint it ends at is the caller's choice.

pub mod bundle;
pub mod extract;
pub mod file_name;
pub mod git;
mod jsonl;
pub mod publish;
pub mod source;
mod stage;
mod tiles;

use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::NewFiles;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use serde::Deserialize;
use serde::Serialize;

/// Every format. The next one goes here.
pub static FORMATS: &[&dyn Exporter] = &[&jsonl::Jsonl, &tiles::Tiles];

/// Where an export goes.
pub enum Target<'a> {
    /// A new folder.
    Folder(&'a Path),
    /// A stream; only formats of one file can go there.
    Stream(&'a mut dyn Write),
}

/// What to export.
pub struct Request<'a> {
    /// The checkpoint that the export ends at.
    pub checkpoint: SignedCheckpoint,
    /// Where it goes.
    pub target: Target<'a>,
    /// Whether stored blobs go along.
    pub blobs: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Entries.
    pub entries: u64,
    /// Files.
    pub files: u64,
    /// Blobs.
    pub blobs: u64,
}

/// Why an export failed; what was written so far is not complete.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something of that name stands in the target already.
    #[error("{} exists already; an export goes into a new file or folder, or into an empty folder", .0.display())]
    Occupied(PathBuf),
    /// An archive could not be written.
    #[error("cannot write the archive: {0}")]
    Archive(#[from] zip::result::ZipError),
    /// Writing failed.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
    /// The format has several files.
    #[error("{0} is a folder of files and cannot go to a stream")]
    Stream(&'static str),
}

/// Called with entries done and entries in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// A format.
pub trait Exporter: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What it is, in one line.
    fn about(&self) -> &'static str;
    /// Writes it.
    ///
    /// # Errors
    /// [`ExportError`].
    fn write(
        &self,
        ledger: &Ledger,
        request: Request<'_>,
        progress: Progress<'_>,
    ) -> Result<ExportCounts, ExportError>;
}

/// Streams the lines of the entries `from..size`, without newline.
fn lines(
    ledger: &Ledger,
    (from, size): (u64, u64),
    progress: Progress<'_>,
    mut take: impl FnMut(&[u8]) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut line = Vec::new();
    let result = ledger.stored(from, size, |stored| {
        line.clear();
        clover_ledger::write_stored(&mut line, &stored.as_ref());
        take(&line).map_err(Stop)?;
        let next = stored.seq + 1;
        if next.is_multiple_of(1024) {
            progress(next, size);
        }
        Ok(())
    });
    result.map_err(|Stop(error)| error)
}

/// One kept checkpoint: a line of `checkpoints.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptCheckpoint {
    /// The signed note.
    note: String,
}

/// The lines of `checkpoints.jsonl`: the checkpoints kept up to `size`.
fn kept_checkpoints(ledger: &Ledger, size: u64) -> Result<Vec<u8>, ExportError> {
    let mut out = Vec::new();
    let result = ledger.store().reader().checkpoints(0, |stored| {
        if stored.size > size {
            return Ok(());
        }
        let note = String::from_utf8(stored.note);
        let note = note.map_err(|_| Stop(io::Error::other("a note that is no text").into()))?;
        let line = serde_json::to_vec(&KeptCheckpoint { note })
            .map_err(|error| Stop(io::Error::from(error).into()))?;
        out.extend_from_slice(&line);
        out.push(b'\n');
        Ok(())
    });
    result.map_err(|Stop(error)| error)?;
    Ok(out)
}

/// Writes what stands beside the entries of a folder: the checkpoints kept up to `size`, and blobs on request. Answers
/// with the number of blobs.
fn beside(ledger: &Ledger, folder: &Path, size: u64, blobs: bool) -> Result<u64, ExportError> {
    let notes = kept_checkpoints(ledger, size)?;
    ambient::replace(&folder.join(source::CHECKPOINTS), &notes, true)?;
    if !blobs {
        return Ok(0);
    }
    let folder = folder.join(source::BLOBS);
    ambient::create_dirs(&folder)?;
    let mut count = 0;
    let mut files = NewFiles::in_folder(&folder, 0o644);
    let write = |digest: Digest, bytes: &[u8]| -> Result<(), Stop> {
        if Digest::blake3(bytes) != digest {
            let found = format!("blob {digest} has bytes of another digest");
            return Err(LedgerError::Integrity { seq: 0, found }.into());
        }
        let name = digest.to_hex();
        if !ambient::exists(&folder.join(&name)).map_err(|error| Stop(error.into()))? {
            files
                .add(&name, bytes)
                .map_err(|error| Stop(error.into()))?;
        }
        count += 1;
        Ok(())
    };
    let result = ledger.store().reader().blobs(write);
    result.map_err(|Stop(error)| error)?;
    files.finish()?;
    Ok(count)
}

/// Carries an export's error through a stream of entries.
struct Stop(ExportError);

impl<E: Into<LedgerError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self(ExportError::Ledger(error.into()))
    }
}
