//! Exports as they are read again: a folder of entry lines or of tiles, with what stands beside them.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::merkle::TILE_WIDTH;
use clover_ground::merkle::Tiler;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::LedgerError;

use crate::KeptCheckpoint;

/// File of the checkpoints kept, one JSON object a line: `{"note":"…"}`, ascending in size.
pub const CHECKPOINTS: &str = "checkpoints.jsonl";
/// Folder of blobs, each named by its BLAKE3 digest in hex.
pub const BLOBS: &str = "blobs";

/// Why an export cannot be read again.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// A file holds something else.
    #[error("{}: line {line}: {found}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        found: String,
    },
    /// A file cannot be read to its end.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Whether a folder is one of tiles: it has no `ledger.jsonl`, and has `tile/entries`.
pub fn is_tiles(folder: &Path) -> bool {
    ambient::is_dir(&folder.join("tile/entries"))
        && !ambient::exists(&folder.join("ledger.jsonl")).unwrap_or(true)
}

/// The entry lines that a folder of tiles holds under a checkpoint of `size`, one a line.
pub fn tiles(folder: &Path, size: u64) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::new(Bundles {
        folder: folder.to_owned(),
        size,
        next: 0,
        line: io::Cursor::new(Vec::new()),
    }))
}

/// As [`tiles`], from an entry on.
///
/// # Errors
/// [`SourceError`] when the bundle of that entry cannot be read.
pub fn tiles_from(
    folder: &Path,
    from: u64,
    size: u64,
) -> Result<Box<dyn BufRead + Send>, SourceError> {
    let width = u64::from(TILE_WIDTH);
    let mut lines = BufReader::new(Bundles {
        folder: folder.to_owned(),
        size,
        next: from / width,
        line: io::Cursor::new(Vec::new()),
    });
    for _ in 0..from % width {
        let skipped = lines.skip_until(b'\n');
        skipped.map_err(|source| SourceError::Read {
            path: folder.to_owned(),
            source,
        })?;
    }
    Ok(Box::new(lines))
}

/// Reads entry bundles one after the other as lines.
struct Bundles {
    folder: PathBuf,
    size: u64,
    next: u64,
    line: io::Cursor<Vec<u8>>,
}

impl Read for Bundles {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.line.read(out)?;
            let width = u64::from(TILE_WIDTH);
            let first = self.next.saturating_mul(width);
            if read > 0 || out.is_empty() || first >= self.size {
                return Ok(read);
            }
            let wide = u16::try_from((self.size - first).min(width)).unwrap_or(TILE_WIDTH);
            let path = self.folder.join(merkle::entries_path(self.next, wide));
            let wrong = |found: String| io::Error::other(format!("{}: {found}", path.display()));
            let bytes = ambient::read(&path).map_err(|error| wrong(error.to_string()))?;
            let entries =
                merkle::decode_bundle(&bytes).map_err(|error| wrong(error.to_string()))?;
            if entries.len() != usize::from(wide) {
                return Err(wrong(format!("{} entries, expected {wide}", entries.len())));
            }
            let mut lines = Vec::with_capacity(bytes.len() + entries.len());
            for entry in entries {
                lines.extend_from_slice(entry);
                lines.push(b'\n');
            }
            self.line = io::Cursor::new(lines);
            self.next += 1;
        }
    }
}

/// The first tile of hashes that is not the one of the folder's own entries; `None` when all are.
///
/// # Errors
/// [`SourceError`] when the entries cannot be read.
pub fn broken_tile(folder: &Path, size: u64) -> Result<Option<String>, SourceError> {
    let mut tiler = Tiler::new();
    let holds = |level, index, width, hashes: &[Digest]| {
        let path = merkle::tile_path(level, index, width);
        let stored = ambient::read(&folder.join(&path));
        let same = stored.is_ok_and(|bytes| bytes == merkle::encode_tile(hashes));
        (!same).then_some(path)
    };
    for line in tiles(folder, size).split(b'\n') {
        let line = line.map_err(|source| SourceError::Read {
            path: folder.to_owned(),
            source,
        })?;
        for tile in tiler.push(merkle::leaf_hash(&line)) {
            let broken = holds(tile.level, tile.index, TILE_WIDTH, &tile.hashes);
            if broken.is_some() {
                return Ok(broken);
            }
        }
    }
    let partial = (0_u8..).zip(tiler.partial());
    let mut partial = partial.filter(|(_, hashes)| !hashes.is_empty());
    Ok(partial.find_map(|(level, hashes)| {
        let index = merkle::full_tiles(level, tiler.size());
        holds(level, index, u16::try_from(hashes.len()).ok()?, hashes)
    }))
}

/// The checkpoints that stand beside the entries; none where an export was made without them.
///
/// # Errors
/// [`SourceError`] names the line.
pub fn checkpoints(folder: &Path) -> Result<Vec<SignedCheckpoint>, SourceError> {
    let path = folder.join(CHECKPOINTS);
    if !ambient::exists(&path)? {
        return Ok(Vec::new());
    }
    let mut found: Vec<SignedCheckpoint> = Vec::new();
    for (number, line) in (1..).zip(ambient::reader(&path)?.lines()) {
        let wrong = |found: String| SourceError::Line {
            path: path.clone(),
            line: number,
            found,
        };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let kept: KeptCheckpoint =
            serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let note = SignedCheckpoint::parse(kept.note.as_bytes())
            .map_err(|error| wrong(format!("no signed checkpoint: {error}")))?;
        let size = note.checkpoint().size;
        if found
            .last()
            .is_some_and(|last| last.checkpoint().size >= size)
        {
            return Err(wrong(format!("a checkpoint of size {size} out of order")));
        }
        found.push(note);
    }
    Ok(found)
}

/// The first blob of a folder whose bytes do not have the digest that its name says.
///
/// # Errors
/// [`SourceError`].
pub fn broken_blob(folder: &Path) -> Result<Option<PathBuf>, SourceError> {
    for path in ambient::list(folder)? {
        let named = path
            .file_name()
            .and_then(|name| Digest::from_hex(name.to_str()?));
        if named != Some(Digest::blake3(&ambient::read(&path)?)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The contents of the blobs in a folder, by name.
///
/// # Errors
/// [`SourceError`] when the folder cannot be listed.
pub fn blobs(
    folder: &Path,
) -> Result<impl Iterator<Item = Result<Vec<u8>, LedgerError>> + use<>, SourceError> {
    let paths = ambient::list(folder)?;
    Ok(paths.into_iter().map(|path| Ok(ambient::read(&path)?)))
}
