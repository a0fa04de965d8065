//! A bundle that is read again: a folder, or an archive of which nothing is unpacked.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::ReadPlaces;
use clover_ground::digest;
use clover_ground::digest::Digest;
use clover_ledger::LedgerError;
use zip::ZipArchive;
use zip::result::ZipError;

use super::BundleContents;
use super::CONTENTS;
use super::LINES;
use super::PART;
use super::SUMS;
use super::archive;
use super::archive::ExactReader;
use crate::source::BLOBS;

/// How an archive begins.
const ARCHIVE_OPEN: &[u8] = b"PK\x03\x04";
/// Bytes that a list of digests, a checkpoint or a description may have.
pub(super) const SMALL_MAX: u64 = 64 << 20;
/// Bytes that the list of earlier checkpoints may have: one stands in it for each append.
pub(super) const CHECKPOINTS_MAX: u64 = 1 << 30;
/// Bytes that the file of a key may have.
pub(super) const PEM_MAX: u64 = 1 << 12;
/// Bytes of a file of an archive that one byte of the archive may become; deflate gives 1,032 at most, entries and pages 10.
pub(super) const RATIO_MAX: u64 = 200;
/// Bytes of a file below which its ratio says nothing.
pub(super) const RATIO_FROM: u64 = 1 << 20;
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
    /// The archive has another form than the one that is read.
    #[error("{}: {source}", .path.display())]
    Form {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
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
    /// An archive, with the places of its files.
    Archive(
        Box<ZipArchive<Box<dyn ReadPlaces>>>,
        BTreeMap<String, usize>,
    ),
}

/// Reads through, and keeps the last byte.
struct EndReader<'a, R> {
    inner: R,
    last: &'a mut Option<u8>,
}

impl<R: Read> Read for EndReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        *self.last = buffer[..read].last().copied().or(*self.last);
        Ok(read)
    }
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
            let contents = path.join(CONTENTS);
            if !ambient::is_link(&contents) && !ambient::exists(&contents)? {
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
            let names = archive::names(ambient::places(path)?.as_mut());
            let names = names.map_err(|source| BundleError::Form {
                path: path.to_owned(),
                source,
            })?;
            let archive = ZipArchive::new(ambient::places(path)?);
            let archive = archive.map_err(|source| BundleError::Archive {
                path: path.to_owned(),
                source,
            })?;
            BundleForm::Archive(Box::new(archive), names.into_iter().zip(0..).collect())
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

    /// Names of its files, without folders; and of what is in a folder and is neither file nor folder.
    pub(super) fn names(&self) -> Result<(BTreeSet<String>, Vec<String>), BundleError> {
        let (mut found, mut others) = (BTreeSet::new(), Vec::new());
        match &self.place {
            BundleForm::Archive(_, names) => found.extend(names.keys().cloned()),
            BundleForm::Folder => {
                let mut folders = vec![self.path.clone()];
                while let Some(folder) = folders.pop() {
                    for path in ambient::list(&folder)? {
                        let Ok(name) = path.strip_prefix(&self.path) else {
                            continue;
                        };
                        let name = name.to_string_lossy().into_owned();
                        if ambient::is_link(&path) {
                            others.push(name);
                        } else if ambient::is_dir(&path) {
                            folders.push(path);
                        } else if ambient::is_file(&path) {
                            found.insert(name);
                        } else {
                            others.push(name);
                        }
                    }
                }
            }
        }
        others.sort();
        Ok((found, others))
    }

    /// Whether it has a file of this name; a link is none, wherever it leads.
    pub(super) fn has(&self, name: &str) -> bool {
        match &self.place {
            BundleForm::Archive(_, names) => names.contains_key(name),
            BundleForm::Folder => {
                let inside = Path::new(name).ancestors();
                let is_linked = inside
                    .filter(|part| !part.as_os_str().is_empty())
                    .any(|part| ambient::is_link(&self.path.join(part)));
                !is_linked && ambient::is_file(&self.path.join(name))
            }
        }
    }

    /// Opens a file of it; of an archive no more is read than the archive says, and none that swells without measure.
    fn reader(&mut self, name: &str) -> Result<Box<dyn BufRead + Send + '_>, BundleError> {
        if !archive::is_plain(name) {
            let found = "a name outside of the bundle";
            return Err(Self::wrong(&self.path, name, &found));
        }
        if !self.has(name) {
            let found = "no such file, or a link or a pipe in its place";
            return Err(Self::wrong(&self.path, name, &found));
        }
        match &mut self.place {
            BundleForm::Folder => Ok(ambient::reader(&self.path.join(name))?),
            BundleForm::Archive(archive, names) => {
                let file = archive.by_index(names.get(name).copied().unwrap_or(usize::MAX));
                let file = file.map_err(|error| Self::wrong(&self.path, name, &error))?;
                let (left, pressed) = (file.size(), file.compressed_size());
                if left > RATIO_FROM && left / pressed.max(1) > RATIO_MAX {
                    let found = format!("{left} bytes out of {pressed}: not read");
                    return Err(Self::wrong(&self.path, name, &found));
                }
                let file = ExactReader { inner: file, left };
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
        }
    }

    pub(super) fn small(&mut self, name: &str, max: u64) -> Result<Vec<u8>, BundleError> {
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
        // Of one object there is one spelling, so that no two programs read it differently.
        if said.to_bytes().ok().as_ref() != Some(&bytes) {
            let found = "another spelling than that of clover";
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

    /// The contents of its blobs, by name.
    ///
    /// # Errors
    /// [`BundleError`] where its files cannot be listed.
    pub fn into_blobs(
        mut self,
    ) -> Result<impl Iterator<Item = Result<Vec<u8>, LedgerError>>, BundleError> {
        let (names, _) = self.names()?;
        let names = names.into_iter();
        let blobs = names.filter_map(|name| {
            let digest = name.strip_prefix(BLOBS)?.strip_prefix('/')?;
            Digest::from_hex(digest)
        });
        let blobs: Vec<Digest> = blobs.collect();
        Ok(blobs
            .into_iter()
            .filter_map(move |digest| self.blob(&digest).map_err(LedgerError::from).transpose()))
    }

    /// Files that are not as the list of digests says, as (expected, found), in the order of their names.
    ///
    /// # Errors
    /// [`BundleError`] where the list itself cannot be read.
    pub fn broken_files(&mut self) -> Result<Vec<(String, String)>, BundleError> {
        let listed = self.sums()?;
        let mut broken = Vec::new();
        let (names, others) = self.names()?;
        for name in others {
            broken.push((
                "files and folders alone, no links or pipes".to_owned(),
                name,
            ));
        }
        for name in names {
            if name != SUMS && !listed.contains_key(&name) {
                let expected = format!("only files that {SUMS} names");
                broken.push((expected, name));
            }
        }
        for (name, digest) in listed {
            let expected = format!("{name} with SHA-256 {digest}");
            let found = if self.has(&name) {
                let hashed = self.hash(&name);
                if (name == LINES || name == PART) && hashed.as_ref().is_ok_and(|of| !of.1) {
                    let expected = format!("{name}: a newline at its end");
                    broken.push((expected, "none".to_owned()));
                }
                match hashed.map(|(hashed, _)| hashed) {
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

    /// The digest of a file and its length, and whether it ends in a newline.
    fn hash(&mut self, name: &str) -> Result<(io::Result<(Digest, u64)>, bool), BundleError> {
        let (mut reader, mut last) = (self.reader(name)?, None);
        let ends = EndReader {
            inner: &mut reader,
            last: &mut last,
        };
        let hashed = digest::sha256_stream(ends);
        Ok((hashed, last == Some(b'\n')))
    }

    /// The list of digests: one line of each file, in the order of their names.
    fn sums(&mut self) -> Result<BTreeMap<String, Digest>, BundleError> {
        let bytes = self.small(SUMS, SMALL_MAX)?;
        let wrong = |found: &str| Self::wrong(&self.path, SUMS, &found);
        let text = String::from_utf8(bytes).map_err(|_| wrong("other bytes than UTF-8"))?;
        let lines = text
            .strip_suffix('\n')
            .ok_or_else(|| wrong("no newline at its end"))?;
        let mut listed: BTreeMap<String, Digest> = BTreeMap::new();
        for (number, line) in (1..).zip(lines.split('\n')) {
            let parts = line.split_once("  ");
            let parsed = parts.and_then(|(hex, name)| Some((name, Digest::from_hex(hex)?)));
            let Some((name, digest)) = parsed.filter(|(name, _)| archive::is_plain(name)) else {
                let found = format!("line {number}: expected a digest, two spaces, a name");
                return Err(wrong(&found));
            };
            if listed
                .last_key_value()
                .is_some_and(|(last, _)| last.as_str() >= name)
            {
                let found = format!("line {number}: expected each name once, in order");
                return Err(wrong(&found));
            }
            listed.insert(name.to_owned(), digest);
        }
        Ok(listed)
    }
}
