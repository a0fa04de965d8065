//! Signing without a copy of the ledger: whoever may not read the log knows its name, a checkpoint that its key signed, and
//! their own numbers. Nothing is judged here; the rules judge where the log is written.

use clover_event::Draft;
use clover_event::Header;
use clover_event::SeenCheckpoint;
use clover_event::id::Root;
use clover_ground::ambient::Ambient;
use clover_ground::note::SignedCheckpoint;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_num::Count;

use crate::error::SessionError;
use crate::outbox::Outbox;
use crate::outbox::OutboxError;
use crate::outbox::SignedBatch;
use crate::stage::Stage;

/// What is known of a log that is not read.
#[derive(Clone, Copy, Debug)]
pub struct UnreadLog<'a> {
    /// A checkpoint whose signature was checked.
    pub seen: &'a SignedCheckpoint,
    /// The author's next number, where somebody says it.
    pub number: Option<u64>,
}

/// Signs one event and keeps it in the outbox; answers too with how many files wait there. The number goes on from what the
/// outbox holds: nothing leaves it, as nobody here can tell what is recorded.
///
/// # Errors
/// [`OutboxError::Given`] where the number was given before, and what files say.
///
/// # Panics
/// Never: a log is below 2^53 entries.
pub fn sign(
    ambient: &Ambient,
    outbox: &Outbox,
    command: Command,
    signer: &Signer,
    known: UnreadLog<'_>,
    blobs: Vec<Vec<u8>>,
) -> Result<(SignedBatch, usize), SessionError> {
    let _held = Stage::new(outbox.folder(), "slate")?;
    let (mut next, mut waiting) = (0, 0);
    let mut given = Vec::new();
    for (path, read) in outbox.all()? {
        let (author, first) = read?.first();
        waiting += 1;
        if author == signer.id() {
            next = next.max(first + 1);
            given.push((first, path));
        }
    }
    let number = known.number.unwrap_or(next);
    if let Some((_, path)) = given.into_iter().find(|(first, _)| *first == number) {
        return Err(OutboxError::Given { number, path }.into());
    }
    let checkpoint = known.seen.checkpoint();
    let header = Header {
        at: command.at.unwrap_or_else(|| ambient.now()),
        author: signer.id(),
        author_seq: number,
        experiment: command.experiment,
        ledger: checkpoint.origin.as_str().into(),
        refs: command.refs,
        seen: Some(SeenCheckpoint {
            root: Root(checkpoint.root),
            size: Count::new(checkpoint.size).expect("BUG: a log is below 2^53"),
        }),
    };
    let payload = command.payload;
    let event = Draft { header, payload }.sign(signer)?;
    let event = Signed::new(event.body().to_vec(), event.signer(), *event.signature());
    let batch = SignedBatch::new(vec![event], blobs)?;
    outbox.put(&batch)?;
    Ok((batch, waiting + 1))
}
