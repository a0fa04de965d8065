//! The log as JSON Lines: one entry line per line, which are the leaves of the tree.
//!
//! A folder holds `ledger.jsonl`, `checkpoints.jsonl` (the notes kept), `checkpoint` (the signed note over exactly
//! these lines) and, when asked for, `blobs/<BLAKE3 in hex>`. A stream holds the lines alone.

use std::io::Write;

use clover_ground::ambient;
use clover_ledger::Ledger;

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

/// File of the entry lines.
const LINES: &str = "ledger.jsonl";

/// The format.
pub(super) struct Jsonl;

impl Exporter for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn about(&self) -> &'static str {
        "entry lines with their checkpoint, and blobs on request"
    }

    fn write(
        &self,
        ledger: &Ledger,
        request: Request<'_>,
        progress: Progress<'_>,
    ) -> Result<ExportCounts, ExportError> {
        let size = request.checkpoint.checkpoint().size;
        let folder = match request.target {
            Target::Stream(out) => {
                write_lines(ledger, size, out, progress)?;
                return Ok(ExportCounts {
                    entries: size,
                    ..ExportCounts::default()
                });
            }
            Target::Folder(folder) => folder,
        };
        let blobs = stage::whole(folder, |folder| {
            ambient::create_dirs(folder)?;
            let mut out = ambient::writer(&folder.join(LINES))?;
            write_lines(ledger, size, out.as_mut(), progress)?;
            drop(out);
            let blobs = beside(ledger, folder, size, request.blobs)?;
            let note = request.checkpoint.encode();
            ambient::write_new(&folder.join(CHECKPOINT), &note, 0o644)?;
            Ok(blobs)
        })?;
        Ok(ExportCounts {
            entries: size,
            files: 3 + blobs,
            blobs,
        })
    }
}

fn write_lines(
    ledger: &Ledger,
    size: u64,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<(), ExportError> {
    lines(ledger, (0, size), progress, |line| {
        out.write_all(line)?;
        Ok(out.write_all(b"\n")?)
    })?;
    Ok(out.flush()?)
}
