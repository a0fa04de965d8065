//! A bundle that is read again: a folder, or an archive of which nothing is unpacked.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::ReadPlaces;
use clover_ground::digest;
use clover_ground::digest::Digest;
use zip::ZipArchive;
use zip::result::ZipError;

use super::BundleContents;
use super::CONTENTS;
use super::LINES;
use super::PART;
use super::SUMS;
use crate::source::BLOBS;

/// How an archive begins.
const ARCHIVE_OPEN: &[u8] = b"PK\x03\x04";
/// How an entry of an archive's directory begins, and its bytes before the name (APPNOTE 4.3.12).
const HEAD_OPEN: &[u8] = b"PK\x01\x02";
const HEAD_LEN: usize = 46;
/// Bytes that a list of digests, a checkpoint or a description may have.
const SMALL_MAX: u64 = 64 << 20;
/// Bytes of a file of an archive that one byte of the archive may become; deflate gives 1,032 at most, entries and pages 10.
const RATIO_MAX: u64 = 200;
/// Bytes of a file below which its ratio says nothing.
const RATIO_FROM: u64 = 1 << 20;
/// Bytes of a blob that is read.
const BLOB_MAX: u64 = 1 << 30;

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// The archive is none, or breaks off.
    #[error("{}: {source}", .path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        source: ZipError,
    },
    /// A file of it cannot be used.
    #[error("{} in {}: {found}", .name, .path.display())]
    File {
        /// The bundle.
        path: PathBuf,
        /// The file.
        name: String,
        /// What is wrong with it.
        found: String,
    },
}

enum BundleForm {
    Folder,
    Archive(ZipArchive<Box<dyn ReadPlaces>>),
}

/// A bundle.
pub struct OpenBundle {
    path: PathBuf,
    place: BundleForm,
}

impl OpenBundle {
    /// The bundle at a path; `None` where there is something else.
    ///
    /// # Errors
    /// [`BundleError`] where it is one that cannot be read.
    pub fn open(path: &Path) -> Result<Option<Self>, BundleError> {
        let place = if ambient::is_dir(path) {
            if !ambient::exists(&path.join(CONTENTS))? {
                return Ok(None);
            }
            BundleForm::Folder
        } else {
            let mut head = Vec::new();
            let read = ambient::reader(path)?.take(4).read_to_end(&mut head);
            read.map_err(|error| Self::wrong(path, "", &error))?;
            if head != ARCHIVE_OPEN {
                return Ok(None);
            }
            let archive = ZipArchive::new(ambient::places(path)?);
            BundleForm::Archive(archive.map_err(|source| BundleError::Archive {
                path: path.to_owned(),
                source,
            })?)
        };
        Ok(Some(Self {
            path: path.to_owned(),
            place,
        }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrong(path: &Path, name: &str, found: &impl ToString) -> BundleError {
        BundleError::File {
            path: path.to_owned(),
            name: name.to_owned(),
            found: found.to_string(),
        }
    }

    /// Names of its files, without folders.
    fn names(&self) -> Result<BTreeSet<String>, BundleError> {
        match &self.place {
            BundleForm::Archive(archive) => {
                let mut found = BTreeSet::new();
                for name in archive.file_names() {
                    let name = name.map_err(|error| Self::wrong(&self.path, "", &error))?;
                    if !name.ends_with('/') {
                        found.insert(name.into_owned());
                    }
                }
                Ok(found)
            }
            BundleForm::Folder => {
                let (mut found, mut folders) = (BTreeSet::new(), vec![self.path.clone()]);
                while let Some(folder) = folders.pop() {
                    for path in ambient::list(&folder)? {
                        if ambient::is_dir(&path) {
                            folders.push(path);
                        } else if let Ok(name) = path.strip_prefix(&self.path) {
                            found.insert(name.to_string_lossy().into_owned());
                        }
                    }
                }
                Ok(found)
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        match &self.place {
            BundleForm::Archive(archive) => archive.index_for_name(name).is_some(),
            BundleForm::Folder => ambient::is_file(&self.path.join(name)),
        }
    }

    /// Opens a file of it; of an archive no more is read than the archive says, and none that swells without measure.
    fn reader(&mut self, name: &str) -> Result<Box<dyn BufRead + Send + '_>, BundleError> {
        let is_inside = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            return Err(Self::wrong(
                &self.path,
                name,
                &"a name outside of the bundle",
            ));
        }
        match &mut self.place {
            BundleForm::Folder => Ok(ambient::reader(&self.path.join(name))?),
            BundleForm::Archive(archive) => {
                let file = archive.by_name(name);
                let file = file.map_err(|error| Self::wrong(&self.path, name, &error))?;
                let (size, pressed) = (file.size(), file.compressed_size());
                if size > RATIO_FROM && size / pressed.max(1) > RATIO_MAX {
                    let found = format!("{size} bytes out of {pressed}: not read");
                    return Err(Self::wrong(&self.path, name, &found));
                }
                Ok(Box::new(BufReader::with_capacity(1 << 16, file.take(size))))
            }
        }
    }

    fn small(&mut self, name: &str, max: u64) -> Result<Vec<u8>, BundleError> {
        let mut bytes = Vec::new();
        let read = self.reader(name)?.take(max + 1).read_to_end(&mut bytes);
        read.map_err(|error| Self::wrong(&self.path, name, &error))?;
        if bytes.len() as u64 > max {
            let found = format!("more than {max} bytes");
            return Err(Self::wrong(&self.path, name, &found));
        }
        Ok(bytes)
    }

    /// What it says that it holds.
    ///
    /// # Errors
    /// [`BundleError::File`] where that cannot be read.
    pub fn contents(&mut self) -> Result<BundleContents, BundleError> {
        let bytes = self.small(CONTENTS, SMALL_MAX)?;
        let said: BundleContents = serde_json::from_slice(&bytes)
            .map_err(|error| Self::wrong(&self.path, CONTENTS, &error))?;
        if said.bundle != 1 {
            let found = format!("bundle format {}, expected 1", said.bundle);
            return Err(Self::wrong(&self.path, CONTENTS, &found));
        }
        Ok(said)
    }

    /// Whether it holds a part of a log.
    ///
    /// # Errors
    /// [`BundleError::File`] where it holds neither or both.
    pub fn is_part(&self) -> Result<bool, BundleError> {
        match (self.has(PART), self.has(LINES)) {
            (true, false) => Ok(true),
            (false, true) => Ok(false),
            _ => {
                let found = format!("expected one of {LINES} and {PART}");
                Err(Self::wrong(&self.path, PART, &found))
            }
        }
    }

    /// The lines of its entries.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn lines(&mut self) -> Result<Box<dyn BufRead + Send + '_>, BundleError> {
        let name = if self.is_part()? { PART } else { LINES };
        self.reader(name)
    }

    /// Its checkpoint.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn checkpoint(&mut self) -> Result<Vec<u8>, BundleError> {
        self.small("checkpoint", SMALL_MAX)
    }

    /// A blob; `None` where it is not there.
    ///
    /// # Errors
    /// [`AmbientError`] where it cannot be read.
    pub fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, AmbientError> {
        let name = format!("{BLOBS}/{digest}");
        if !self.has(&name) {
            return Ok(None);
        }
        match self.small(&name, BLOB_MAX) {
            Ok(blob) => Ok(Some(blob)),
            Err(BundleError::Ambient(error)) => Err(error),
            Err(other) => Err(AmbientError::Io {
                action: "read",
                path: self.path.clone(),
                source: io::Error::other(other.to_string()),
            }),
        }
    }

    /// Files that are not as the list of digests says, as (expected, found), in the order of their names.
    ///
    /// # Errors
    /// [`BundleError`] where the list itself cannot be read.
    pub fn broken_files(&mut self) -> Result<Vec<(String, String)>, BundleError> {
        let listed = self.sums()?;
        let mut broken = Vec::new();
        for name in self.twins()? {
            broken.push(("one file of each name".to_owned(), name));
        }
        for name in self.names()? {
            if name != SUMS && !listed.contains_key(&name) {
                let expected = format!("only files that {SUMS} names");
                broken.push((expected, name));
            }
        }
        for (name, digest) in listed {
            let expected = format!("{name} with SHA-256 {digest}");
            let found = if self.has(&name) {
                let hashed = self.reader(&name).map(digest::sha256_stream);
                match hashed {
                    Ok(Ok((found, _))) if found == digest => continue,
                    Ok(Ok((found, _))) => found.to_hex(),
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                }
            } else {
                "no such file".to_owned()
            };
            broken.push((expected, found));
        }
        Ok(broken)
    }

    /// Names that an archive gives to more than one file: programs differ in which of them they read.
    fn twins(&self) -> Result<Vec<String>, BundleError> {
        let BundleForm::Archive(archive) = &self.place else {
            return Ok(Vec::new());
        };
        let wrong = |error: io::Error| Self::wrong(&self.path, "", &error);
        let mut file = ambient::places(&self.path)?;
        let start = SeekFrom::Start(archive.central_directory_start());
        file.seek(start).map_err(wrong)?;
        let mut file = BufReader::new(file);
        let (mut met, mut twins) = (BTreeSet::new(), Vec::new());
        loop {
            let mut head = [0; HEAD_LEN];
            let read = file.by_ref().take(HEAD_LEN as u64).read_exact(&mut head);
            if read.is_err() || !head.starts_with(HEAD_OPEN) {
                return Ok(twins);
            }
            let length = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
            let mut name = Vec::new();
            let read = file.by_ref().take(length(28)).read_to_end(&mut name);
            read.map_err(wrong)?;
            let mut rest = file.by_ref().take(length(30) + length(32));
            io::copy(&mut rest, &mut io::sink()).map_err(wrong)?;
            let name = String::from_utf8_lossy(&name).into_owned();
            if !met.insert(name.clone()) {
                twins.push(name);
            }
        }
    }

    fn sums(&mut self) -> Result<BTreeMap<String, Digest>, BundleError> {
        let bytes = self.small(SUMS, SMALL_MAX)?;
        let mut listed = BTreeMap::new();
        for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let parts = line.split_once("  ");
            let parsed = parts.and_then(|(hex, name)| Some((name, Digest::from_hex(hex)?)));
            let Some((name, digest)) = parsed else {
                let found = format!("line {number}: expected a digest, two spaces, a name");
                return Err(Self::wrong(&self.path, SUMS, &found));
            };
            listed.insert(name.to_owned(), digest);
        }
        Ok(listed)
    }
}
