//! What can go wrong on this floor. A rule that says no is [`LedgerError::Refused`]; it left the ledger as
//! it was.

use clover_event::header::BodyError;
use clover_ground::ambient::AmbientError;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_store::StoreError;

use crate::fold::Breach;

/// A failed operation on a ledger. Nothing was half-written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Clock, entropy or a file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// An event cannot be written as a body.
    #[error("event {index}: {source}")]
    Body {
        /// Which event of the batch, from 0.
        index: usize,
        /// Why.
        source: BodyError,
    },
    /// The clock stands far ahead of the newest entry, and nobody said that it is right.
    #[error(
        "the clock says {now}, more than 400 days after the newest entry of {head}; recorded_at never goes back, so one entry under a wrong clock would close the ledger until then"
    )]
    ClockAhead {
        /// The clock.
        now: Timestamp,
        /// `recorded_at` of the newest entry.
        head: Timestamp,
    },
    /// The clock stands too far behind the newest entry.
    #[error("the clock says {now}, more than 300 s before the newest entry of {head}")]
    ClockBehind {
        /// The clock.
        now: Timestamp,
        /// `recorded_at` of the newest entry.
        head: Timestamp,
    },
    /// The log and what is known of it from outside disagree.
    #[error("{0}")]
    Diverged(#[from] Divergence),
    /// Bytes in the file are not what the ledger wrote.
    #[error("the ledger file is damaged at seq {seq}: {found}")]
    Integrity {
        /// Where.
        seq: u64,
        /// What stands there.
        found: String,
    },
    /// The log's signing key is missing or another's.
    #[error("the log key {0}")]
    LogKey(String),
    /// An older format is read, and nothing is added to it.
    #[error(
        "this ledger has format {found}: this program reads it and appends to format {writes} only"
    )]
    OldFormat {
        /// The ledger's.
        found: u64,
        /// The one that is written.
        writes: u64,
    },
    /// A rule said no.
    #[error("event {index} refused, {breach}")]
    Refused {
        /// Which event of the batch, from 0.
        index: usize,
        /// The rule, what it wanted and what it found.
        breach: Breach,
        /// The entry that stands in the way, when there is one.
        in_the_way: Option<u64>,
    },
    /// The file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a log disagrees with a checkpoint that was kept outside of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Divergence {
    /// Another root at a size both know: two histories under one name.
    #[error("forked: at {size} entries the pinned root is {pinned}, this log has {found}")]
    Forked {
        /// The size.
        size: u64,
        /// The root outside.
        pinned: Root64,
        /// The root here.
        found: Root64,
    },
    /// The pin was signed by a key that this log never had.
    #[error(
        "forged: the pinned checkpoint of {size} entries is not signed by a log key of this ledger"
    )]
    ForeignKey {
        /// The pinned size.
        size: u64,
    },
    /// The file at a known path is another ledger than it was.
    #[error("replaced: the ledger here was {known}, this file is {found}")]
    Replaced {
        /// Origin of the ledger that was last pinned from this path.
        known: String,
        /// Origin that stands there.
        found: String,
    },
    /// The log is shorter than it once was.
    #[error("rolled_back: {pinned} entries were seen before, this log has {found}")]
    RolledBack {
        /// Entries known outside.
        pinned: u64,
        /// Entries here.
        found: u64,
    },
}

/// A root shown in base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Root64(pub Digest);

impl std::fmt::Display for Root64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_base64())
    }
}

impl std::fmt::Debug for Root64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_base64())
    }
}
