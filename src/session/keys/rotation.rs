//! Another key that signs checkpoints: its file first, then the event, then its name.

use clover_event::Kind;
use clover_event::id::Text;
use clover_event::id::Vkey;
use clover_event::payload::custody::LogKeyRotated;
use clover_ground::ambient;
use clover_ground::note::KeyName;
use clover_ground::note::VerifierKey;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::home::Home;
use crate::keys::KeyError;
use crate::keys::files;
use crate::ports::KeyNeed;
use crate::ports::Ports;

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
    if ledger.is_slate() {
        return Err(KeyError::NotTheWriter.into());
    }
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
