//! What a custodian and an owner do with a ledger: private content, reads on record, erasure, the rulebook.

pub mod blobs;
pub mod erased;
pub mod erasure;
pub mod reads;
pub mod release;
mod remains;
pub mod rulebook;

use clover_event::id::ExperimentId;
use clover_event::id::IterationId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_ground::canon::CanonError;
use clover_ground::digest::Digest;
use clover_ground::seal::BlobError;
use clover_store::StoreError;

use crate::custody::release::Class;

/// Why nothing was stored, shown, erased or adopted.
#[derive(Debug, thiserror::Error)]
pub enum CustodyError {
    /// The newest rulebook is in force.
    #[error("rulebook {0} is in force, the newest that this program knows")]
    Adopted(u32),
    /// A role may not read a class; the denial stands.
    #[error(
        "access: {class} is not for role {role}; on record as denied at seq {seq}, and nothing was released"
    )]
    Barred {
        /// The class.
        class: Class,
        /// The role.
        role: Role,
        /// Where the denial stands.
        seq: u64,
    },
    /// A card that is computed again is another than the recorded one.
    #[error("card {card} at seq {seq}: computed again it is not the one on record")]
    CardDiffers {
        /// The card.
        card: String,
        /// Where it stands.
        seq: u64,
    },
    /// What is to be released has no canonical form.
    #[error(transparent)]
    Canon(CanonError),
    /// Ingested rows are not what the ledger names.
    #[error("the rows {blob}: {what}")]
    DamagedRows {
        /// Their blob.
        blob: Digest,
        /// What was found.
        what: String,
    },
    /// Nothing is there to release.
    #[error("nothing of class {class} in {experiment}")]
    Empty {
        /// The class.
        class: Class,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// Content cannot be encrypted.
    #[error(transparent)]
    Encryption(BlobError),
    /// An erasure is on record, and the vault still has the key: nothing was erased yet.
    #[error(
        "subject {subject} is not erased: subject.erased stands at seq {seq}, and the vault still has its key"
    )]
    KeyStands {
        /// The subject.
        subject: Digest,
        /// Where the erasure stands.
        seq: u64,
        /// Its basis.
        basis: Text,
    },
    /// No erasure is on record.
    #[error("{}", not_erased(*subject, *event))]
    NotErased {
        /// The subject or event that was named.
        subject: Option<Digest>,
        /// The position that was named.
        event: Option<u64>,
    },
    /// An erasure stands, and the key could not be destroyed.
    #[error(transparent)]
    KeyRemains(StoreError),
    /// No blob under a digest.
    #[error("no blob {0}")]
    NoBlob(Digest),
    /// No iteration of a name.
    #[error("no iteration {0}")]
    NoIteration(IterationId),
    /// The vault has no key of a subject.
    #[error("no key of subject {0} in the vault: unknown or erased")]
    NoKey(Digest),
    /// An iteration was named for a class that is not of cards.
    #[error("an iteration has cards, and {0} is of an experiment")]
    NotOfCards(Class),
    /// Private content does not open.
    #[error(transparent)]
    Opening(BlobError),
    /// An iteration is of another experiment.
    #[error("iteration {iteration} is of {found}, not of {experiment}")]
    OtherExperiment {
        /// The iteration.
        iteration: IterationId,
        /// The experiment that it is of.
        found: ExperimentId,
        /// The one that was named.
        experiment: ExperimentId,
    },
    /// A reference to content has no canonical form.
    #[error(transparent)]
    Reference(CanonError),
    /// A blob is not what its digest says.
    #[error("the bytes of blob {0} do not match their digest")]
    Tampered(Digest),
    /// Neither the vault nor the log knows a subject.
    #[error("no key of subject {0} in the vault: unknown here")]
    Unknown(Digest),
}

/// That there is no erasure of a name.
fn not_erased(subject: Option<Digest>, event: Option<u64>) -> String {
    match (subject, event) {
        (Some(subject), _) => format!("no erasure of {subject} is on record"),
        (None, Some(seq)) => format!("entry {seq} is no erasure"),
        (None, None) => "no erasure is on record".to_owned(),
    }
}
