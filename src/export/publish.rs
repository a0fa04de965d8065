//! The log as a folder of tiles that grows: what is published already stays as it is, and the checkpoint comes last. So a
//! reader always finds whole what the checkpoint covers, whenever the writer stops.

use std::path::Path;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::merkle;
use clover_ground::merkle::TILE_WIDTH;
use clover_ground::merkle::Tiler;
use clover_ground::note::SignedCheckpoint;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;

use crate::ExportError;
use crate::Progress;
use crate::beside;
use crate::lines;
use crate::source::SourceError;

/// File of the newest checkpoint.
pub const CHECKPOINT: &str = "checkpoint";

/// What a publication added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedRange {
    /// Entries that were published before.
    pub from: u64,
    /// Entries that are published now.
    pub to: u64,
}

/// The checkpoint that a folder was published up to; `None` before the first.
///
/// # Errors
/// When the file cannot be read or is no checkpoint.
pub fn published(folder: &Path) -> Result<Option<SignedCheckpoint>, SourceError> {
    let path = folder.join(CHECKPOINT);
    let bytes = match ambient::read(&path) {
        Ok(bytes) => bytes,
        Err(AmbientError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let note = SignedCheckpoint::parse(&bytes).map_err(|error| SourceError::Line {
        path,
        line: 1,
        found: format!("no signed checkpoint: {error}"),
    })?;
    Ok(Some(note))
}

/// Publishes the log up to its head in a folder that holds a beginning of it, or nothing.
///
/// # Errors
/// [`LedgerError::Diverged`] where the folder holds more, or another log; then it was left as it was.
pub fn publish(
    ledger: &Ledger,
    folder: &Path,
    before: Option<&SignedCheckpoint>,
    progress: Progress<'_>,
) -> Result<PublishedRange, ExportError> {
    let head = ledger.head_checkpoint()?;
    if let Some(before) = before {
        ledger.agree(before)?;
    }
    let from = before.map_or(0, |before| before.checkpoint().size);
    let to = head.checkpoint().size;
    ambient::create_dirs(folder)?;
    // From the bundle on that was not full.
    let start = from - from % u64::from(TILE_WIDTH);
    let mut shelf = Shelf {
        folder,
        from,
        tiler: ledger.edge_at(start)?,
        bundle: Vec::new(),
    };
    lines(ledger, (start, to), progress, |line| shelf.take(line))?;
    shelf.finish()?;
    if shelf.tiler.root() != head.checkpoint().root {
        let found = format!("root {} over the entries", shelf.tiler.root().to_base64());
        let seq = to.saturating_sub(1);
        return Err(LedgerError::Integrity { seq, found }.into());
    }
    beside(ledger, folder, to, true)?;
    let note = head.encode();
    ambient::replace(&folder.join(CHECKPOINT), &note, true)?;
    Ok(PublishedRange { from, to })
}

/// Tiles past what was published.
struct Shelf<'a> {
    folder: &'a Path,
    from: u64,
    tiler: Tiler,
    bundle: Vec<Vec<u8>>,
}

impl Shelf<'_> {
    fn take(&mut self, line: &[u8]) -> Result<(), ExportError> {
        self.bundle.push(line.to_vec());
        let tiles = self.tiler.push(merkle::leaf_hash(line));
        let size = self.tiler.size();
        for tile in tiles {
            let path = merkle::tile_path(tile.level, tile.index, TILE_WIDTH);
            self.file(&path, size, &merkle::encode_tile(&tile.hashes))?;
        }
        if self.bundle.len() == usize::from(TILE_WIDTH) {
            self.entries()?;
        }
        Ok(())
    }

    /// Writes the bundle that is at hand; it ends at the newest entry.
    fn entries(&mut self) -> Result<(), ExportError> {
        let size = self.tiler.size();
        let index = (size - 1) / u64::from(TILE_WIDTH);
        let width = u16::try_from(self.bundle.len()).expect("BUG: a bundle has at most 256");
        let bytes = merkle::encode_bundle(&self.bundle).expect("BUG: a stored line fits a bundle");
        self.bundle.clear();
        self.file(&merkle::entries_path(index, width), size, &bytes)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        if !self.bundle.is_empty() {
            self.entries()?;
        }
        let size = self.tiler.size();
        let partial = self.tiler.partial().to_vec();
        for (level, hashes) in (0_u8..).zip(partial) {
            if hashes.is_empty() {
                continue;
            }
            let width = u16::try_from(hashes.len()).expect("BUG: a partial tile has few hashes");
            let index = merkle::full_tiles(level, size);
            let path = merkle::tile_path(level, index, width);
            self.file(&path, size, &merkle::encode_tile(&hashes))?;
        }
        Ok(())
    }

    /// Writes a file that the first `size` entries fill, unless it was published.
    fn file(&mut self, path: &str, size: u64, bytes: &[u8]) -> Result<(), ExportError> {
        if size <= self.from {
            return Ok(());
        }
        let path = self.folder.join(path);
        if let Some(parent) = path.parent() {
            ambient::create_dirs(parent)?;
        }
        Ok(ambient::replace(&path, bytes, true)?)
    }
}
