//! A bundle: one file, or one folder, with all that an auditor takes away. It holds the entries of the log (or some of them, and
//! the leaves of the others), checkpoints, keys, blobs, reports, the pages of the formats, a verifier, and what it proves.
//!
//! The same ledger and the same request give the same bytes.

mod agreed;
mod archive;
mod material;
mod open;
mod readme;
mod sink;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_ground::ambient;
use clover_ground::digest::Digest;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign::PublicKey;
use clover_ledger::Ledger;
use clover_ledger::LedgerError;
use clover_ledger::verify::WithheldEntry;
use serde::Deserialize;
use serde::Serialize;

use crate::ExportError;
use crate::Progress;
use crate::Stop;
use crate::stage;

use sink::Sink;

pub use agreed::PUBLISHED;
pub use agreed::not_checked;
pub use open::BundleError;
pub use open::OpenBundle;

/// File of the entry lines of a whole log.
pub const LINES: &str = "ledger.jsonl";
/// File of the entry lines of a part of a log, with lines of what is withheld.
pub const PART: &str = "entries.jsonl";
/// File of what the bundle is of.
pub const CONTENTS: &str = "bundle.json";
/// File of the digests of all others, as `sha256sum` writes it.
pub const SUMS: &str = "SHA256SUMS";

/// What is left out of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// All entries of a kind.
    Kind(Kind),
    /// The entry at a position.
    Entry(u64),
    /// All blobs.
    Blobs,
}

impl Redaction {
    /// Whether the entry may be withheld: nothing can be checked without the keys of the log and of its authors, without what
    /// ended them, and without the policy and rulebook that judged them.
    pub fn may_withhold(kind: Kind) -> bool {
        !clover_ledger::verify::CUSTODY.contains(&kind)
    }
}

/// What a bundle is made of.
pub struct BundleRequest<'a> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The checkpoint that it ends at.
    pub checkpoint: &'a SignedCheckpoint,
    /// The experiment whose entries are shown, beside those of no experiment; all of them without one.
    pub experiment: Option<&'a ExperimentId>,
    /// What is left out.
    pub redactions: &'a [Redaction],
    /// Reports: name in the folder `reports`, and bytes.
    pub reports: &'a [(String, Vec<u8>)],
}

/// What a bundle holds: the file `bundle.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleContents {
    /// Blobs in it.
    pub blobs: u64,
    /// The format of bundles: 1.
    pub bundle: u32,
    /// The experiment that it is of; `null` where it is of the whole log.
    pub experiment: Option<String>,
    /// The name of the log.
    pub origin: String,
    /// What was left out on request, as it was asked for.
    pub redacted: Vec<String>,
    /// Names of the reports in it.
    pub reports: Vec<String>,
    /// The root over all entries, in base64.
    pub root: String,
    /// Entries of the log.
    pub size: u64,
    /// Blobs that entries name and that the ledger does not have.
    pub without: Vec<String>,
    /// Entries that are withheld.
    pub withheld: u64,
}

impl BundleContents {
    /// Its one spelling.
    fn to_bytes(&self) -> Result<Vec<u8>, std::io::Error> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }
}

impl BundleRequest<'_> {
    fn is_part(&self) -> bool {
        let of_entries = |redaction: &Redaction| *redaction != Redaction::Blobs;
        self.experiment.is_some() || self.redactions.iter().any(of_entries)
    }

    fn is_shown(&self, seq: u64, kind: Kind, experiment: Option<&ExperimentId>) -> bool {
        if !Redaction::may_withhold(kind) {
            return true;
        }
        let is_redacted = self.redactions.iter().any(|redaction| match redaction {
            Redaction::Kind(withheld) => *withheld == kind,
            Redaction::Entry(withheld) => *withheld == seq,
            Redaction::Blobs => false,
        });
        let is_other = experiment.is_some() && experiment != self.experiment;
        !(is_redacted || self.experiment.is_some() && is_other)
    }

    /// Writes it as one file where the name ends in `.clover` or `.zip`, else as a folder. It stands under its name only when
    /// it is whole. Answers with what is in it, and in how many files.
    ///
    /// # Errors
    /// [`ExportError::Occupied`] where something stands there, and others.
    pub fn write(
        &self,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<(BundleContents, u64), ExportError> {
        let is_file = is_archive_name(path);
        if is_file && ambient::is_dir(path) {
            // An empty folder takes the files of a bundle, not one file.
            return Err(ExportError::Occupied(path.to_owned()));
        }
        stage::whole(path, |stage| {
            self.fill(Sink::new(stage, is_file)?, progress)
        })
    }

    fn fill(
        &self,
        mut sink: Sink,
        progress: Progress<'_>,
    ) -> Result<(BundleContents, u64), ExportError> {
        let head = self.checkpoint.checkpoint();
        let mut shown = ShownEntries::default();
        let name = if self.is_part() { PART } else { LINES };
        shown.named = self.named()?;
        sink.file(name, |out| self.entries(out, &mut shown, progress))?;
        sink.bytes("checkpoint", &self.checkpoint.encode())?;
        let notes = crate::kept_checkpoints(self.ledger, head.size)?;
        sink.bytes(crate::source::CHECKPOINTS, &notes)?;
        for (id, pem) in &shown.keys {
            sink.bytes(&format!("keys/{id}.pem"), pem.as_bytes())?;
        }
        let (blobs, without) = self.blobs(&mut sink, &shown.blobs)?;
        for (name, bytes) in self.reports {
            sink.bytes(&format!("reports/{name}"), bytes)?;
        }
        let contents = BundleContents {
            blobs,
            bundle: 1,
            experiment: self.experiment.map(ToString::to_string),
            origin: head.origin.to_string(),
            redacted: self.redactions.iter().map(Redaction::words).collect(),
            reports: self.reports.iter().map(|(name, _)| name.clone()).collect(),
            root: head.root.to_base64(),
            size: head.size,
            without,
            withheld: shown.withheld,
        };
        for (name, bytes) in material::CARRIED {
            sink.bytes(name, bytes)?;
        }
        sink.bytes("verify.py", material::VERIFY_PY.as_bytes())?;
        sink.bytes("__main__.py", material::VERIFY_PY.as_bytes())?;
        sink.program("verify.sh", material::VERIFY_SH.as_bytes())?;
        sink.bytes(
            "README.md",
            readme::text(&contents, &shown.kinds).as_bytes(),
        )?;
        sink.bytes(CONTENTS, &contents.to_bytes()?)?;
        let files = sink.finish()?;
        Ok((contents, files))
    }

    /// Ids that entries shown refer to, where some are withheld.
    fn named(&self) -> Result<BTreeSet<EventId>, ExportError> {
        let mut named = BTreeSet::new();
        if self.is_part() {
            let size = self.checkpoint.checkpoint().size;
            let read = self.ledger.entries(0, size, |read| {
                let event = &read.event;
                if self.is_shown(read.stored.seq, event.kind(), event.experiment()) {
                    named.extend(event.header.refs.iter().copied());
                }
                Ok(())
            });
            read.map_err(|Stop(error)| error)?;
        }
        Ok(named)
    }

    fn entries(
        &self,
        out: &mut dyn Write,
        shown: &mut ShownEntries,
        progress: Progress<'_>,
    ) -> Result<(), ExportError> {
        let size = self.checkpoint.checkpoint().size;
        let mut line = Vec::new();
        let result = self.ledger.entries(0, size, |read| {
            let (stored, event) = (&read.stored, &read.event);
            line.clear();
            clover_ledger::write_stored(&mut line, &stored.as_ref());
            if self.is_shown(stored.seq, event.kind(), event.experiment()) {
                shown.take(event.kind(), &event.payload, &stored.body);
            } else {
                let withheld = WithheldEntry {
                    id: Some(event.id).filter(|id| shown.named.contains(id)),
                    leaf: clover_ground::merkle::leaf_hash(&line),
                    seq: stored.seq,
                };
                line.clear();
                let written = withheld.write_line(&mut line);
                written.map_err(|error| Stop(std::io::Error::from(error).into()))?;
                shown.withheld += 1;
            }
            line.push(b'\n');
            out.write_all(&line).map_err(|error| Stop(error.into()))?;
            let next = stored.seq + 1;
            if next.is_multiple_of(1024) {
                progress(next, size);
            }
            Ok(())
        });
        result.map_err(|Stop(error)| error)
    }

    /// Writes the blobs that entries shown name; answers with how many there are and which the ledger does not have.
    fn blobs(
        &self,
        sink: &mut Sink,
        named: &BTreeSet<Digest>,
    ) -> Result<(u64, Vec<String>), ExportError> {
        if self.redactions.contains(&Redaction::Blobs) {
            return Ok((0, Vec::new()));
        }
        let (mut count, mut without) = (0, Vec::new());
        let reader = self.ledger.store().reader();
        for digest in named {
            let Some(bytes) = reader.blob(digest).map_err(LedgerError::from)? else {
                without.push(digest.to_hex());
                continue;
            };
            if Digest::blake3(&bytes) != *digest {
                let found = format!("blob {digest} has bytes of another digest");
                return Err(LedgerError::Integrity { seq: 0, found }.into());
            }
            let name = format!("{}/{}", crate::source::BLOBS, digest.to_hex());
            sink.bytes(&name, &bytes)?;
            count += 1;
        }
        Ok((count, without))
    }
}

impl Redaction {
    fn words(&self) -> String {
        match self {
            Self::Kind(kind) => kind.to_string(),
            Self::Entry(seq) => seq.to_string(),
            Self::Blobs => "blobs".to_owned(),
        }
    }
}

/// Whether a bundle of this name is one file.
pub fn is_archive_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| {
        ["clover", "zip"]
            .iter()
            .any(|one| ending.eq_ignore_ascii_case(one))
    })
}

/// What the entries shown say of the rest of a bundle.
#[derive(Default)]
struct ShownEntries {
    /// Public keys in PEM, by key id; that of the log is `log`, the newest one.
    keys: BTreeMap<String, String>,
    blobs: BTreeSet<Digest>,
    /// Ids that they refer to.
    named: BTreeSet<EventId>,
    kinds: BTreeMap<&'static str, u64>,
    withheld: u64,
}

impl ShownEntries {
    fn take(&mut self, kind: Kind, payload: &Payload, body: &[u8]) {
        *self.kinds.entry(kind.as_str()).or_default() += 1;
        let named = clover_ledger::named_blobs(body);
        self.blobs
            .extend(named.into_iter().map(|(digest, _)| digest));
        match payload {
            Payload::LedgerCreated(created) => {
                self.key(&created.owner.public_key.0);
                self.log_key(created.log_vkey.key().public_key());
            }
            Payload::LogKeyRotated(rotated) => self.log_key(rotated.vkey.key().public_key()),
            Payload::KeyAdded(added) => self.key(&added.public_key.0),
            _ => {}
        }
    }

    fn key(&mut self, bytes: &[u8; 32]) {
        if let Ok(key) = PublicKey::from_bytes(bytes) {
            self.keys.insert(key.id().to_string(), material::pem(bytes));
        }
    }

    fn log_key(&mut self, bytes: &[u8]) {
        self.keys.insert("log".to_owned(), material::pem(bytes));
    }
}
