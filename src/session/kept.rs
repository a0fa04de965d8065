//! A signed event that is kept in a file before it is appended: an append whose fate nobody knows is repeated from there.

use std::path::Path;

use clover_event::entry;
use clover_ground::ambient;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;

use crate::append;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::Watcher;

/// Signs a command, writes the event to a new file, then appends it. The file goes again where a rule refused the event:
/// it will not be accepted later either.
///
/// # Errors
/// [`SessionError::Unsent`] while the file stays, [`SessionError::Ledger`] where it went, [`SessionError::Body`], and
/// [`SessionError::Ambient`] about the file.
pub fn append(
    watcher: &mut dyn Watcher,
    ledger: &mut Ledger,
    command: &Command,
    signer: &Signer,
    path: &Path,
) -> Result<Submission, SessionError> {
    let number = append::next_author_seq(ledger, signer);
    let signed = append::draft(ledger, command, signer, number).sign(signer)?;
    let mut envelope = Vec::new();
    let (body, id, signature) = (signed.body(), signed.signer(), signed.signature());
    entry::write_envelope(&mut envelope, body, &id, signature);
    envelope.push(b'\n');
    ambient::write_new(path, &envelope, 0o644)?;
    let event = Signed::new(body.to_vec(), id, *signature);
    match ledger.submit(vec![event]) {
        Ok(appended) => {
            append::tell_of_pin(watcher, ledger);
            Ok(Submission::of(std::slice::from_ref(command), appended))
        }
        Err(error) => {
            let error = SessionError::Ledger(error);
            if error.is_final() {
                ambient::remove(path)?;
                return Err(error);
            }
            Err(SessionError::Unsent(Box::new(error)))
        }
    }
}
