//! Events that were signed where the log is not written: files that hand them to its writer, and the folder that keeps
//! them until the log has them.
//!
//! A file holds one DSSE envelope a line, as `POST /v1/events` takes them. All of its events are recorded, or none. A
//! number is given to one event alone, so the file is kept before it goes anywhere.

use std::path::Path;
use std::path::PathBuf;

use clover_event::entry;
use clover_event::header;
use clover_event::id::EventId;
use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::RuleName;
use clover_ledger::SignedEvent;
use clover_ledger::append::named_blobs;

use crate::append;
use crate::error::SessionError;
use crate::ports::Watcher;

/// Events of one file, at most.
pub const EVENTS_MAX: usize = 4_096;
/// Bytes of one file, at most.
pub const BYTES_MAX: usize = 16 << 20;
/// Bytes of a blob beside such a file, at most.
const BLOB_BYTES_MAX: u64 = 64 << 20;
/// Ends the name of a file of signed events.
const END: &str = "jsonl";
/// Folder of blobs beside such files, each named by its BLAKE3 digest in hex.
const BLOBS: &str = "blobs";
/// Folder of files that a rule refused.
const REFUSED: &str = "refused";

/// Why a file of signed events cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// A blob that an event names is not beside the file.
    #[error("it names the blob {0}, which is not beside it")]
    Blob(Digest),
    /// It holds no event.
    #[error("it holds no event")]
    Empty,
    /// The author gave that number to another event.
    #[error("number {number} was given before, in {}", path.display())]
    Given {
        /// The number.
        number: u64,
        /// The file of that event.
        path: PathBuf,
    },
    /// A file of that name holds other bytes.
    #[error("{} holds other events", .0.display())]
    Taken(PathBuf),
    /// It is larger than one submission may be.
    #[error("it has {bytes} bytes; one file takes {BYTES_MAX}")]
    Large {
        /// Its bytes.
        bytes: u64,
    },
    /// A line is no event.
    #[error("line {line}: {found}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        found: String,
    },
    /// It holds too much for one submission.
    #[error(
        "it holds {events} events in {bytes} bytes; one file takes {EVENTS_MAX} events in {BYTES_MAX} bytes"
    )]
    TooLarge {
        /// Its events.
        events: usize,
        /// Its bytes.
        bytes: usize,
    },
}

/// Events that go to the writer together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBatch {
    /// At least one, in the order in which they were signed.
    events: Vec<SignedEvent>,
    /// Contents of blobs that they name.
    blobs: Vec<Vec<u8>>,
    /// When the first was signed.
    at: Timestamp,
    /// Its author and the author's number.
    first: (KeyId, u64),
}

impl SignedBatch {
    /// Of events in the order in which they were signed.
    ///
    /// # Errors
    /// [`OutboxError`] where they are no such batch.
    pub fn new(events: Vec<SignedEvent>, blobs: Vec<Vec<u8>>) -> Result<Self, OutboxError> {
        let Some(first) = events.first() else {
            return Err(OutboxError::Empty);
        };
        let header = header::decode(first.body()).map_err(|error| OutboxError::Line {
            line: 1,
            found: error.to_string(),
        })?;
        let (at, first) = (
            header.header.at,
            (header.header.author, header.header.author_seq),
        );
        let batch = Self {
            events,
            blobs,
            at,
            first,
        };
        let (events, bytes) = (batch.events.len(), batch.to_bytes().len());
        if events > EVENTS_MAX || bytes > BYTES_MAX {
            return Err(OutboxError::TooLarge { events, bytes });
        }
        Ok(batch)
    }

    /// Of the bytes of a file; `blob` finds what events name.
    ///
    /// # Errors
    /// [`OutboxError`], and what finding a blob says.
    pub fn parse(
        bytes: &[u8],
        mut blob: impl FnMut(&Digest) -> Result<Option<Vec<u8>>, AmbientError>,
    ) -> Result<Self, SessionError> {
        let (mut events, mut blobs) = (Vec::new(), Vec::new());
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let event = entry::parse_envelope(line).map_err(|error| OutboxError::Line {
                line: at + 1,
                found: error.to_string(),
            })?;
            events.push(event);
        }
        for event in &events {
            for (digest, _) in named_blobs(event.body()) {
                blobs.extend(blob(&digest)?.filter(|bytes| Digest::blake3(bytes) == digest));
            }
        }
        Ok(Self::new(events, blobs)?)
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for event in &self.events {
            entry::write_envelope(&mut bytes, event.body(), &event.signer(), event.signature());
            bytes.push(b'\n');
        }
        bytes
    }

    /// Its file's name: by the first event's author, number and id.
    pub fn name(&self) -> String {
        let (author, number) = self.first;
        let author = author.to_string();
        let id = Digest::sha256(self.events[0].body()).to_hex();
        format!("{}-{number:012}-{}.{END}", &author[..16], &id[..16])
    }

    /// Its events.
    pub fn events(&self) -> &[SignedEvent] {
        &self.events
    }

    /// The ids of its events.
    pub fn ids(&self) -> Vec<EventId> {
        let ids = self.events.iter();
        ids.map(|event| EventId(Digest::sha256(event.body())))
            .collect()
    }

    /// The first event's author and number.
    pub fn first(&self) -> (KeyId, u64) {
        self.first
    }

    /// Contents of blobs that its events name, as far as they are here.
    pub fn blobs(&self) -> &[Vec<u8>] {
        &self.blobs
    }

    /// Writes it into a new file, and its blobs into the folder beside.
    ///
    /// # Errors
    /// When the file stands, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SessionError> {
        if ambient::exists(path)? {
            return Err(AmbientError::Exists(path.to_owned()).into());
        }
        write_blobs(&beside(path), &self.blobs)?;
        Ok(ambient::write_new(path, &self.to_bytes(), 0o644)?)
    }

    /// Reads a file that [`SignedBatch::write`] wrote.
    ///
    /// # Errors
    /// [`OutboxError`], and what files say.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        let blobs = beside(path);
        Self::parse(&read(path)?, |digest| blob_in(&blobs, digest))
    }
}

/// The bytes of a file of signed events. Others may have put it there: what is too large is not read.
fn read(path: &Path) -> Result<Vec<u8>, SessionError> {
    let bytes = ambient::size(path)?;
    if bytes > BYTES_MAX as u64 {
        return Err(OutboxError::Large { bytes }.into());
    }
    Ok(ambient::read(path)?)
}

/// The folder of blobs beside a file of signed events.
fn beside(path: &Path) -> PathBuf {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".blobs");
    folder.into()
}

fn blob_in(folder: &Path, digest: &Digest) -> Result<Option<Vec<u8>>, AmbientError> {
    let path = folder.join(digest.to_hex());
    if ambient::exists(&path)? && ambient::size(&path)? > BLOB_BYTES_MAX {
        return Ok(None);
    }
    match ambient::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(AmbientError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_blobs(folder: &Path, blobs: &[Vec<u8>]) -> Result<(), AmbientError> {
    for blob in blobs {
        ambient::create_dirs(folder)?;
        let path = folder.join(Digest::blake3(blob).to_hex());
        if !ambient::exists(&path)? {
            ambient::write_new(&path, blob, 0o644)?;
        }
    }
    Ok(())
}

/// A file with what it holds, or why that cannot be read.
pub type FileRead = (PathBuf, Result<SignedBatch, SessionError>);

/// A folder of such files.
#[derive(Clone, Debug)]
pub struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// In a folder, which is made when something is put there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Of one person, for the ledger of an origin.
    pub fn of_person(outboxes: &Path, origin: &str) -> Self {
        Self::new(outboxes.join(Digest::sha256(origin.as_bytes()).to_hex()))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files, with what they hold or why that cannot be read: in the order of their first event's time.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn all(&self) -> Result<Vec<FileRead>, AmbientError> {
        let mut all = Vec::new();
        for path in ambient::list(&self.folder)? {
            if path.extension().is_none_or(|end| end != END) {
                continue;
            }
            match self.read(&path) {
                // Its author took it back meanwhile.
                Err(SessionError::Ambient(AmbientError::NotFound(_))) => {}
                read => all.push((path, read)),
            }
        }
        let at = |read: &FileRead| read.1.as_ref().ok().map(|batch| batch.at);
        all.sort_by(|one, two| (at(one), &one.0).cmp(&(at(two), &two.0)));
        Ok(all)
    }

    fn read(&self, path: &Path) -> Result<SignedBatch, SessionError> {
        let blobs = self.folder.join(BLOBS);
        SignedBatch::parse(&read(path)?, |digest| blob_in(&blobs, digest))
    }

    /// Puts a batch there; the same one twice is one.
    ///
    /// # Errors
    /// [`OutboxError::Taken`], and what files say.
    pub fn put(&self, batch: &SignedBatch) -> Result<PathBuf, SessionError> {
        ambient::create_dirs(&self.folder)?;
        write_blobs(&self.folder.join(BLOBS), &batch.blobs)?;
        let (path, bytes) = (self.folder.join(batch.name()), batch.to_bytes());
        match ambient::exists(&path)? {
            false => ambient::write_new(&path, &bytes, 0o644)?,
            true if ambient::read(&path)? == bytes => {}
            true => return Err(OutboxError::Taken(path).into()),
        }
        Ok(path)
    }

    /// Removes a batch, and blobs that no other names.
    ///
    /// # Errors
    /// What files say.
    pub fn remove(&self, batch: &SignedBatch) -> Result<(), SessionError> {
        match ambient::remove(&self.folder.join(batch.name())) {
            Ok(()) | Err(AmbientError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let blobs = ambient::list(&self.folder.join(BLOBS))?;
        if blobs.is_empty() {
            return Ok(());
        }
        let left = self.all()?;
        let named = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let left = left.iter().filter_map(|(_, read)| read.as_ref().ok());
            let mut left = left.flat_map(|batch| &batch.blobs);
            left.any(|blob| name == Some(Digest::blake3(blob).to_hex().as_str()))
        };
        for path in blobs.iter().filter(|path| !named(path)) {
            ambient::remove(path)?;
        }
        Ok(())
    }

    /// Moves a batch that a rule refused out of the way; answers with its new place.
    ///
    /// # Errors
    /// What files say.
    pub fn set_aside(&self, batch: &SignedBatch) -> Result<PathBuf, SessionError> {
        let folder = self.folder.join(REFUSED);
        ambient::create_private_dirs(&folder)?;
        let to = folder.join(batch.name());
        ambient::rename(&self.folder.join(batch.name()), &to)?;
        Ok(to)
    }
}

/// What became of one batch.
#[derive(Debug)]
pub struct BatchResult {
    /// What the caller calls it.
    pub name: String,
    /// The batch.
    pub batch: SignedBatch,
    /// Where its events stand, or why none of them does.
    pub outcome: Result<Vec<AppendedEvent>, SessionError>,
}

impl BatchResult {
    /// Whether trying again would end the same: it stands, or its own bytes are refused.
    fn is_settled(&self) -> bool {
        match &self.outcome {
            Ok(_) | Err(SessionError::Ledger(LedgerError::Body { .. })) => true,
            Err(SessionError::Ledger(LedgerError::Refused { breach, .. })) => matches!(
                breach.rule,
                RuleName::BodyFormat | RuleName::Keyid | RuleName::Schema | RuleName::Signature
            ),
            Err(_) => false,
        }
    }

    /// Whether every event stood before.
    pub fn is_known(&self) -> bool {
        let appended = self.outcome.as_ref();
        appended.is_ok_and(|all| all.iter().all(|one| one.already))
    }
}

/// Takes batches in, each as a whole. One that a rule refuses harms no other, and is tried again after those that it may
/// build on.
///
/// # Errors
/// A fault of the ledger or the system; what was taken before it stands, and is known again next time.
pub fn take(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    batches: &[(String, SignedBatch)],
) -> Result<Vec<BatchResult>, SessionError> {
    let mut taken: Vec<Option<BatchResult>> = batches.iter().map(|_| None).collect();
    loop {
        let mut is_further = false;
        for (slot, (name, batch)) in taken.iter_mut().zip(batches) {
            if slot.as_ref().is_some_and(BatchResult::is_settled) {
                continue;
            }
            let outcome = ledger.submit_with_blobs(batch.events.clone(), &batch.blobs);
            let outcome = outcome.map_err(SessionError::from);
            match &outcome {
                Ok(_) => is_further = true,
                Err(error) if !error.is_final() => return outcome.map(|_| Vec::new()),
                Err(_) => {}
            }
            *slot = Some(BatchResult {
                name: name.clone(),
                batch: batch.clone(),
                outcome,
            });
        }
        let is_left = taken.iter().flatten().any(|of| of.outcome.is_err());
        if !is_further || !is_left {
            break;
        }
    }
    append::tell_of_pin(watcher, ledger);
    Ok(taken.into_iter().flatten().collect())
}
