//! The log as static files in the layout of C2SP tlog-tiles v0.1.0: `checkpoint`, `tile/<L>/<N>` with 256
//! hashes each, `tile/entries/<N>` with 256 length-prefixed entry lines, partial ones at the right edge. Beside them
//! stand `checkpoints.jsonl` (the notes kept) and, when asked for, `blobs/<BLAKE3 in hex>`.

use std::path::Path;

use clover_ground::ambient;
use clover_ground::merkle;
use clover_ground::merkle::Tiler;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;

use crate::ExportCounts;
use crate::ExportError;
use crate::Exporter;
use crate::Progress;
use crate::Request;
use crate::Target;
use crate::beside;
use crate::lines;
use crate::publish::CHECKPOINT;
use crate::stage;

/// The format.
pub(super) struct Tiles;

impl Exporter for Tiles {
    fn name(&self) -> &'static str {
        "tiles"
    }

    fn about(&self) -> &'static str {
        "a static transparency log (C2SP tlog-tiles)"
    }

    fn write(
        &self,
        ledger: &Ledger,
        request: Request<'_>,
        progress: Progress<'_>,
    ) -> Result<ExportCounts, ExportError> {
        let Target::Folder(folder) = &request.target else {
            return Err(ExportError::Stream("tiles"));
        };
        stage::whole(folder, |folder| fill(folder, ledger, &request, progress))
    }
}

fn fill(
    folder: &Path,
    ledger: &Ledger,
    request: &Request<'_>,
    progress: Progress<'_>,
) -> Result<ExportCounts, ExportError> {
    ambient::create_dirs(folder)?;
    let size = request.checkpoint.checkpoint().size;
    let mut out = Folder {
        path: folder,
        tiler: Tiler::new(),
        bundle: Vec::with_capacity(256),
        files: 0,
    };
    lines(ledger, (0, size), progress, |line| out.take(line))?;
    out.finish()?;
    let root = out.tiler.root();
    if root != request.checkpoint.checkpoint().root {
        let found = format!("root {} over the entries", root.to_base64());
        let seq = size.saturating_sub(1);
        return Err(LedgerError::Integrity { seq, found }.into());
    }
    let blobs = beside(ledger, folder, size, request.blobs)?;
    let note = request.checkpoint.encode();
    ambient::write_new(&folder.join(CHECKPOINT), &note, 0o644)?;
    Ok(ExportCounts {
        entries: size,
        files: out.files + 2 + blobs,
        blobs,
    })
}

struct Folder<'a> {
    path: &'a Path,
    tiler: Tiler,
    bundle: Vec<Vec<u8>>,
    files: u64,
}

impl Folder<'_> {
    fn take(&mut self, line: &[u8]) -> Result<(), ExportError> {
        self.bundle.push(line.to_vec());
        for tile in self.tiler.push(merkle::leaf_hash(line)) {
            let path = merkle::tile_path(tile.level, tile.index, merkle::TILE_WIDTH);
            self.file(&path, &merkle::encode_tile(&tile.hashes))?;
        }
        if self.bundle.len() == usize::from(merkle::TILE_WIDTH) {
            self.entries()?;
        }
        Ok(())
    }

    /// Writes the bundle that is at hand; it ends at the newest entry.
    fn entries(&mut self) -> Result<(), ExportError> {
        let index = (self.tiler.size() - 1) / u64::from(merkle::TILE_WIDTH);
        let width =
            u16::try_from(self.bundle.len()).expect("BUG: a bundle has at most 256 entries");
        let bytes = merkle::encode_bundle(&self.bundle)
            .expect("BUG: a stored line fits a bundle of at most 256");
        self.bundle.clear();
        self.file(&merkle::entries_path(index, width), &bytes)
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        if !self.bundle.is_empty() {
            self.entries()?;
        }
        let partial = self.tiler.partial().to_vec();
        for (level, hashes) in (0_u8..).zip(partial) {
            if hashes.is_empty() {
                continue;
            }
            let width = u16::try_from(hashes.len()).expect("BUG: a partial tile has few hashes");
            let index = merkle::full_tiles(level, self.tiler.size());
            let path = merkle::tile_path(level, index, width);
            self.file(&path, &merkle::encode_tile(&hashes))?;
        }
        Ok(())
    }

    fn file(&mut self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let path = self.path.join(path);
        if let Some(parent) = path.parent() {
            ambient::create_dirs(parent)?;
        }
        let mut out = ambient::writer(&path)?;
        out.write_all(bytes)?;
        out.flush()?;
        self.files += 1;
        Ok(())
    }
}
