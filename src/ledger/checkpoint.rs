//! Signing and judging checkpoints with the log's keys.

use clover_event::id::Vkey;
use clover_ground::digest::Digest;
use clover_ground::note::Checkpoint;
use clover_ground::note::CheckpointError;
use clover_ground::note::KeyName;
use clover_ground::note::NoteError;
use clover_ground::note::SignedCheckpoint;
use clover_ground::note::VerifierKey;
use clover_ground::sign::Signer;

use crate::keyring::Keyring;

/// Signs the checkpoint of `size` entries with the log key, and with the next one too where the tree's
/// newest entries rotate it.
///
/// # Errors
/// [`CheckpointError`] when a key is not the one its vkey names.
pub fn sign(
    origin: &KeyName,
    size: u64,
    root: Digest,
    keys: &[(&Vkey, &Signer)],
) -> Result<SignedCheckpoint, CheckpointError> {
    let checkpoint = Checkpoint::new(origin.clone(), size, root);
    let keys: Vec<_> = keys
        .iter()
        .map(|(vkey, signer)| (vkey.key().clone(), signer.key()))
        .collect();
    SignedCheckpoint::sign(checkpoint, &keys)
}

/// The log keys that must all have signed the checkpoint of `size` entries, when the checkpoint before it
/// had `previous` entries: those rotated in since, preceded by the one in force before.
pub fn required_keys(keyring: &Keyring, previous: u64, size: u64) -> Vec<VerifierKey> {
    let mut keys = Vec::new();
    for (seq, key) in &keyring.log_keys {
        if *seq < previous {
            keys.clear();
        }
        if *seq < size {
            keys.push(key.key().clone());
        }
    }
    keys
}

/// Checks that `checkpoint` is of this origin and bears no bad signature under one of `known`: all that can
/// be asked where the log key in force is not known.
///
/// # Errors
/// What is wrong, as text for a finding.
pub fn check_known(
    checkpoint: &SignedCheckpoint,
    origin: &str,
    known: &[VerifierKey],
) -> Result<(), String> {
    let found = &checkpoint.checkpoint().origin;
    if found.as_str() != origin {
        return Err(format!("a checkpoint of origin {found}"));
    }
    match checkpoint.note().verify(known) {
        Ok(_) | Err(NoteError::NoneKnown) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks that `checkpoint` is of this origin and signed by every one of `keys`.
///
/// # Errors
/// What is wrong, as text for a finding.
pub fn check(
    checkpoint: &SignedCheckpoint,
    origin: &str,
    keys: &[VerifierKey],
) -> Result<(), String> {
    let found = &checkpoint.checkpoint().origin;
    if found.as_str() != origin {
        return Err(format!("a checkpoint of origin {found}"));
    }
    if keys.is_empty() {
        return Err("no log key is known at this size".to_owned());
    }
    for key in keys {
        checkpoint
            .verify(std::slice::from_ref(key))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Checks a checkpoint from outside (a pin, a file): it must be signed by some log key of this ledger.
pub fn is_own(checkpoint: &SignedCheckpoint, keyring: &Keyring) -> bool {
    let own = |key: &VerifierKey| checkpoint.verify(std::slice::from_ref(key)).is_ok();
    checkpoint.checkpoint().origin.as_str() == keyring.origin
        && keyring.log_keys.iter().any(|(_, key)| own(key.key()))
}
