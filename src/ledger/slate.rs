//! A slate: a copy of a ledger file on which somebody without the log key writes what the writer of the log is to take in.
//!
//! Every rule judges there as it would at the head that was copied, so a use case runs on a slate as on a ledger. What is
//! signed there names as seen the checkpoint of that head, which the log keeps. Checkpoints of a slate are signed by a key
//! that is drawn for it and that no ledger knows: a slate passes for the log nowhere.

use std::path::Path;
use std::sync::Arc;

use clover_event::SeenCheckpoint;
use clover_event::id::Root;
use clover_event::id::Vkey;
use clover_ground::ambient::Ambient;
use clover_ground::note::Origin;
use clover_ground::sign::Signer;
use clover_num::Count;
use clover_store::OpenOptions;

use crate::error::LedgerError;
use crate::fold::Rulebook;
use crate::open;
use crate::open::Head;
use crate::open::Ledger;
use crate::open::LedgerOptions;

/// What the log had where its file was copied, and the key that signs beyond.
#[derive(Clone, Debug)]
pub(super) struct Slate {
    seen: SeenCheckpoint,
    key: Vkey,
}

impl Slate {
    /// Whether the checkpoint of so many entries is the slate's own.
    pub(super) fn signs(&self, size: u64) -> bool {
        size > self.seen.size.value()
    }

    /// The key of its checkpoints.
    pub(super) fn key(&self) -> &Vkey {
        &self.key
    }
}

/// The checkpoint that events signed at this head have seen.
pub(super) fn seen(head: &Head) -> SeenCheckpoint {
    head.slate.as_ref().map_or_else(
        || SeenCheckpoint {
            root: Root(head.root()),
            size: Count::new(head.size()).expect("BUG: a log is below 2^53"),
        },
        |slate| slate.seen,
    )
}

impl Ledger {
    /// Opens a copy of a ledger file as a slate.
    ///
    /// # Errors
    /// As [`Ledger::open_anew`].
    ///
    /// # Panics
    /// Never: an open ledger has an origin.
    pub fn open_slate(
        path: &Path,
        ambient: Arc<Ambient>,
        rulebook: &'static Rulebook,
        store: OpenOptions,
    ) -> Result<Self, LedgerError> {
        let own = Signer::from_seed(&ambient.random()?);
        let options = LedgerOptions {
            store,
            log_key: None,
            pins: None,
        };
        let mut ledger = Self::open_anew(path, ambient, rulebook, options)?;
        let origin = &ledger.state().keyring.origin;
        let origin = Origin::parse(origin).expect("BUG: an open ledger has an origin");
        let key = open::vkey(&origin, &own)?;
        let seen = ledger.seen();
        ledger.head.slate = Some(Slate { seen, key });
        ledger.log_key = Some(own);
        Ok(ledger)
    }

    /// The checkpoint that an event signed now has seen: the head, or on a slate the head that was copied.
    pub fn seen(&self) -> SeenCheckpoint {
        seen(&self.head)
    }

    /// Whether this is a slate.
    pub fn is_slate(&self) -> bool {
        self.head.slate.is_some()
    }
}
