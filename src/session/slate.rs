//! Signing where the log is not written: a use case runs on a slate, and what it signed waits in the outbox for the writer.

use std::path::PathBuf;
use std::sync::Arc;

use clover_ground::ambient::Ambient;
use clover_ground::sign::Signed;
use clover_ledger::Ledger;
use clover_ledger::append::named_blobs;
use clover_store::OpenOptions;
use clover_store::Store;
use clover_workflow::GOVERNED;

use crate::error::SessionError;
use crate::home::DATABASE;
use crate::outbox;
use crate::outbox::BYTES_MAX;
use crate::outbox::BatchResult;
use crate::outbox::EVENTS_MAX;
use crate::outbox::Outbox;
use crate::outbox::SignedBatch;
use crate::ports::Watcher;
use crate::ports::Work;
use crate::stage::Stage;

/// What an envelope adds to its body, at most.
const ENVELOPE_LEN: usize = 512;

/// A slate while a use case runs on it. Dropped, it is gone with its file; the outbox stays.
#[derive(Debug)]
pub struct Slate {
    stage: Stage,
    outbox: Outbox,
    options: OpenOptions,
    /// The file that was copied.
    copied: PathBuf,
    /// Entries before the use case: those of the log, and those that wait.
    from: u64,
}

/// A slate that was opened, with what waits written on it.
#[derive(Debug)]
pub struct OpenSlate {
    /// The slate.
    pub slate: Slate,
    /// The ledger on it.
    pub ledger: Ledger,
    /// What no longer waits: it is recorded, or a rule refuses it at the head that is here.
    pub ended: Vec<BatchResult>,
    /// How many files still wait.
    pub waiting: usize,
}

/// Opens a slate of the ledger here. What waits in the outbox is written on it first: recorded batches leave the outbox,
/// and those that a rule now refuses are set aside.
///
/// # Errors
/// What files say, and what the ledger says.
pub fn open(
    watcher: &mut dyn Watcher,
    ambient: &Arc<Ambient>,
    ledger: &Ledger,
    outbox: Outbox,
    options: OpenOptions,
) -> Result<OpenSlate, SessionError> {
    let stage = Stage::new(outbox.folder(), "slate")?;
    let path = stage.folder().join(DATABASE);
    let mut slate = Slate {
        stage,
        outbox,
        options,
        copied: ledger.store().path().to_owned(),
        from: 0,
    };
    ledger.store().backup(&path, |done, all| {
        watcher.progress(Work::Copying, done, all);
    })?;
    let mut copy = Ledger::open_slate(&path, ambient.clone(), &GOVERNED, options)?;
    let mut named = Vec::new();
    for (path, batch) in slate.outbox.all()? {
        named.push((path.display().to_string(), batch?));
    }
    let taken = outbox::take(watcher, &mut copy, &named)?;
    let (mut ended, mut waiting) = (Vec::new(), 0);
    for mut one in taken {
        match &one.outcome {
            Ok(_) if one.is_known() => slate.outbox.remove(&one.batch)?,
            Ok(_) => {
                waiting += 1;
                continue;
            }
            Err(_) => one.name = slate.outbox.set_aside(&one.batch)?.display().to_string(),
        }
        ended.push(one);
    }
    slate.from = copy.size();
    Ok(OpenSlate {
        slate,
        ledger: copy,
        ended,
        waiting,
    })
}

impl Slate {
    /// Keeps what a use case signed in the outbox: one batch, or as many as its size asks for; none when it signed nothing.
    ///
    /// # Errors
    /// When it cannot be read or kept.
    pub fn keep(&self) -> Result<Vec<SignedBatch>, SessionError> {
        let reading = OpenOptions {
            read_only: true,
            ..self.options
        };
        let store = Store::open(&self.stage.folder().join(DATABASE), reading)?;
        let known = Store::open(&self.copied, reading)?;
        let size = store.reader().head()?.map_or(0, |head| head.size);
        let mut kept = Vec::new();
        let (mut events, mut blobs, mut bytes) = (Vec::new(), Vec::new(), 0);
        store
            .reader()
            .entries::<SessionError>(self.from, size, |stored| {
                let len = ENVELOPE_LEN + stored.body.len() * 4 / 3;
                if events.len() == EVENTS_MAX || bytes + len > BYTES_MAX {
                    let full = (std::mem::take(&mut events), std::mem::take(&mut blobs));
                    kept.push(SignedBatch::new(full.0, full.1)?);
                    bytes = 0;
                }
                bytes += len;
                for (digest, _) in named_blobs(&stored.body) {
                    if known.reader().blob_len(&digest)?.is_none() {
                        blobs.extend(store.reader().blob(&digest)?);
                    }
                }
                events.push(Signed::new(stored.body, stored.author, stored.signature));
                Ok(())
            })?;
        if !events.is_empty() {
            kept.push(SignedBatch::new(events, blobs)?);
        }
        for batch in &kept {
            self.outbox.put(batch)?;
        }
        Ok(kept)
    }

    /// Where it is kept.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}
