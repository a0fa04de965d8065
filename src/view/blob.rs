//! Content beside the log: stored, read, listed, and erased with its subject's key.

use serde::Serialize;
use serde_json::Value;

use crate::ground::digest::Digest;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::Stands;
use crate::view::text::thousands;

/// Content that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlobStored {
    /// What an event says to name it, as free JSON: `blake3`, `bytes` and `media`. Of private content these stand under
    /// `blob`, beside `commitment` and `subject`.
    pub reference: Value,
}

/// Content that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlobRead {
    /// Its length in bytes.
    pub bytes: u64,
}

/// Content on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlobRow {
    /// BLAKE3 of the stored bytes, in hex.
    pub blake3: String,
    /// Their length.
    pub bytes: u64,
}

/// All content on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlobList {
    /// In the order of their digests.
    pub blobs: Vec<BlobRow>,
}

/// What became of a subject's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErasureFacts {
    /// Whether this run destroyed the key; else it was gone before.
    pub destroyed: bool,
}

/// The reference to content, or what it would be; `reference` is canonical JSON.
///
/// # Panics
/// Where `reference` is no JSON.
pub fn stored(reference: &[u8], is_dry: bool) -> View {
    let facts = BlobStored {
        reference: serde_json::from_slice(reference).expect("BUG: a reference is JSON"),
    };
    let mut view = View::of(&facts);
    view.source(String::from_utf8_lossy(reference));
    view.with_verdict(if is_dry { "dry_run" } else { "stored" })
}

/// Content that was written to `file`, or else to standard output.
pub fn read(bytes: u64, file: Option<String>) -> View {
    let mut view = View::of(&BlobRead { bytes });
    if let Some(file) = file {
        view.line(format!("{file}: {bytes} bytes"));
    }
    view
}

/// All content on record: digests with lengths in bytes.
pub fn list(blobs: &[(Digest, u64)]) -> View {
    let blobs = blobs.iter().map(|(digest, bytes)| BlobRow {
        blake3: digest.to_hex(),
        bytes: *bytes,
    });
    let facts = BlobList {
        blobs: blobs.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.blobs.iter();
    let rows = rows.map(|of| vec![of.blake3.clone(), thousands(of.bytes)]);
    view.table(&["blake3", "bytes"], rows);
    view
}

/// An erasure that stood at `seq` before.
pub fn erased_before(seq: u64) -> View {
    let stands = Stands {
        appended: 0,
        already: 1,
        seqs: vec![seq],
    };
    let mut view = View::of(&stands).with_verdict("already_recorded");
    view.line(format!("seq {seq}  subject.erased  already recorded"));
    view
}

/// Adds to the view of an erasure what became of the subject's key.
///
/// # Panics
/// Where the view is none of an append, which the first test of the verb finds.
pub fn erased(mut view: View, subject: &Digest, destroyed: bool) -> View {
    let fate = if destroyed {
        "destroyed"
    } else {
        "gone before"
    };
    view.line(format!("key of subject {subject}: {fate}"));
    appended::and(view, &ErasureFacts { destroyed })
}
