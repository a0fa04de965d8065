//! Where the files of a bundle go: a folder, or one archive (ZIP). Either lists their digests in the end.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::digest::Digest;
use clover_ground::digest::HashingWriter;
use zip::CompressionMethod;
use zip::DateTime;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;
use zip::write::StreamWriter;

use super::SUMS;
use super::open::RATIO_FROM;
use super::open::RATIO_MAX;
use crate::ExportError;

/// The mode of a file, and that of a program.
const MODES: [u32; 2] = [0o644, 0o755];
/// How hard archives are pressed: entry lines are base64 for the most part, and gain little from more.
const PRESSING: i64 = 3;

enum SinkTarget {
    Folder(PathBuf),
    Archive(Box<ZipWriter<StreamWriter<Box<dyn Write + Send>>>>),
}

/// Takes files one after the other.
pub(super) struct Sink {
    place: SinkTarget,
    sums: BTreeMap<String, Digest>,
}

impl Sink {
    /// A new folder, or a new archive.
    pub(super) fn new(path: &Path, is_archive: bool) -> Result<Self, ExportError> {
        let place = if is_archive {
            let out = ambient::writer(path)?;
            SinkTarget::Archive(Box::new(ZipWriter::new_stream(out)))
        } else {
            ambient::create_dirs(path)?;
            SinkTarget::Folder(path.to_owned())
        };
        let sums = BTreeMap::new();
        Ok(Self { place, sums })
    }

    /// A file that `fill` writes; answers with what it says.
    pub(super) fn file<T>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<T, ExportError>,
    ) -> Result<T, ExportError> {
        self.entry(name, (MODES[0], CompressionMethod::Deflated), fill)
    }

    /// A file of these bytes. An archive holds them as they are, where pressed they would swell without measure.
    pub(super) fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let is_archive = matches!(self.place, SinkTarget::Archive(_));
        let method = if is_archive && swells(bytes)? {
            CompressionMethod::Stored
        } else {
            CompressionMethod::Deflated
        };
        self.entry(name, (MODES[0], method), |out| Ok(out.write_all(bytes)?))
    }

    /// A program of these bytes.
    pub(super) fn program(&mut self, name: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let form = (MODES[1], CompressionMethod::Deflated);
        self.entry(name, form, |out| Ok(out.write_all(bytes)?))
    }

    fn entry<T>(
        &mut self,
        name: &str,
        (mode, method): (u32, CompressionMethod),
        fill: impl FnOnce(&mut dyn Write) -> Result<T, ExportError>,
    ) -> Result<T, ExportError> {
        // Python runs programs of an archive whose sizes stand in 32 bits alone; only entries may be more.
        let is_large = [super::LINES, super::PART].contains(&name);
        let (said, digest) = match &mut self.place {
            SinkTarget::Folder(folder) => {
                let path = folder.join(name);
                if let Some(parent) = path.parent() {
                    ambient::create_dirs(parent)?;
                }
                let mut out = HashingWriter::new(ambient::writer(&path)?);
                let said = fill(&mut out)?;
                out.flush()?;
                ambient::set_mode(&path, mode)?;
                (said, out.finish().0)
            }
            SinkTarget::Archive(archive) => {
                let options = options(method).large_file(is_large).unix_permissions(mode);
                archive.start_file(name, options)?;
                let mut out = HashingWriter::new(archive);
                let said = fill(&mut out)?;
                (said, out.finish().0)
            }
        };
        self.sums.insert(name.to_owned(), digest);
        Ok(said)
    }

    /// Lists the digests, and ends; answers with how many files there are.
    pub(super) fn finish(mut self) -> Result<u64, ExportError> {
        let sums = std::mem::take(&mut self.sums);
        self.file(SUMS, |out| {
            for (name, digest) in &sums {
                writeln!(out, "{digest}  {name}")?;
            }
            Ok(())
        })?;
        if let SinkTarget::Archive(archive) = self.place {
            archive.finish()?.into_inner().flush()?;
        }
        Ok(sums.len() as u64 + 1)
    }
}

/// How a member is written. One date for all: the same ledger gives the same bytes.
fn options(method: CompressionMethod) -> SimpleFileOptions {
    let pressed = (method == CompressionMethod::Deflated).then_some(PRESSING);
    SimpleFileOptions::default()
        .compression_method(method)
        .compression_level(pressed)
        .last_modified_time(DateTime::default())
}

/// Whether bytes, pressed, would swell so much when they are read that verifiers would not read them.
fn swells(bytes: &[u8]) -> Result<bool, ExportError> {
    let size = bytes.len() as u64;
    if size <= RATIO_FROM {
        return Ok(false);
    }
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("pressed", options(CompressionMethod::Deflated))?;
    archive.write_all(bytes)?;
    // Its heads count too; what is near the limit is stored.
    let pressed = archive.finish()?.into_inner().len() as u64;
    Ok(size / pressed.max(1) >= RATIO_MAX / 2)
}
