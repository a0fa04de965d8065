//! Another key that signs checkpoints: its file first, then the event, then its name.

use crate::event::Kind;
use crate::event::id::Text;
use crate::event::id::Vkey;
use crate::event::payload::custody::LogKeyRotated;
use crate::ground::ambient;
use crate::ground::note::KeyName;
use crate::ground::note::VerifierKey;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::session::append;
use crate::session::append::Intent;
use crate::session::append::Submission;
use crate::session::error::SessionError;
use crate::session::home::Home;
use crate::session::keys::files;
use crate::session::ports::KeyNeed;
use crate::session::ports::Ports;

/// Rotates the log key. A rotation that was stopped before its append is taken up with the key that it had drawn.
///
/// # Errors
/// [`SessionError::Port`] without an owner's key, [`SessionError::Keys`] about the files, and [`SessionError::Ledger`].
pub fn rotate(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    reason: Text,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let owner = ports.signer(ledger.state(), KeyNeed::runner(Kind::LogKeyRotated))?;
    let next_path = home.next_log_key();
    let next = if ambient::exists(&next_path)? {
        // A rotation that stopped before its append: its key was never used.
        files::read_log_key(&next_path)?
    } else {
        files::draw(ledger.ambient())?
    };
    let vkey = verifier_key(ledger, &next);
    let command = Command::new(LogKeyRotated { reason, vkey }, None);
    if intent == Intent::Append {
        if !ambient::exists(&next_path)? {
            files::write_log_key(ledger.ambient(), &next_path, &next)?;
        }
        ledger.set_next_log_key(next);
    }
    let submitted = append::submit(ports, ledger, &[command], &owner, intent);
    if intent == Intent::Append {
        if submitted.as_ref().is_err_and(SessionError::is_final) {
            ambient::remove(&next_path)?;
        }
        if submitted.is_ok() {
            ambient::rename(&next_path, &home.log_key())?;
        }
    }
    submitted
}

fn verifier_key(ledger: &Ledger, key: &Signer) -> Vkey {
    KeyName::parse(&ledger.state().keyring.origin)
        .ok()
        .and_then(|name| VerifierKey::ed25519(name, key.public_bytes()).ok())
        .and_then(Vkey::new)
        .expect("BUG: the origin of an open ledger is a key name")
}
