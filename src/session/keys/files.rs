//! Files of keys: a private half under a passphrase or none, its public half, and an age identity beside them.

use std::path::Path;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::keyfile;
use clover_ground::seal;
use clover_ground::seal::Identity;
use clover_ground::sign::Signer;
use zeroize::Zeroizing;

use crate::error::SessionError;
use crate::keys::KeyError;

/// Draws a new key.
///
/// # Errors
/// [`SessionError::Ambient`] without randomness.
pub fn draw(ambient: &Ambient) -> Result<Signer, SessionError> {
    let seed = Zeroizing::new(ambient.random::<32>()?);
    Ok(Signer::from_seed(&seed))
}

/// Where the files of an author key go, and under which passphrase.
#[derive(Clone, Copy)]
pub struct KeyFiles<'a> {
    /// The private file; the others lie beside it.
    pub path: &'a Path,
    /// The passphrase, where one is wanted.
    pub passphrase: Option<&'a str>,
}

impl KeyFiles<'_> {
    /// Writes a new key: private file and public half.
    ///
    /// # Errors
    /// [`KeyError::Unwritable`], and [`SessionError::Ambient`] when a file cannot be made.
    pub fn write(&self, ambient: &Ambient, signer: &Signer) -> Result<(), SessionError> {
        let text = ambient
            .with_entropy(|entropy| keyfile::write_private(signer.key(), self.passphrase, entropy))
            .map_err(KeyError::Unwritable)?;
        if let Some(parent) = self.path.parent() {
            ambient::create_private_dirs(parent)?;
        }
        ambient::write_new(self.path, text.as_bytes(), 0o600)?;
        write_public(self.path, signer)
    }

    /// Writes the age identity beside the key file, as `age-keygen` does; under the key's passphrase as
    /// `age --passphrase` does.
    ///
    /// # Errors
    /// [`SessionError::Seal`], and [`SessionError::Ambient`] when the file cannot be made.
    pub fn write_identity(
        &self,
        ambient: &Ambient,
        identity: &Identity,
    ) -> Result<(), SessionError> {
        let text = format!("# public key: {}\n{identity}\n", identity.recipient());
        let text = Zeroizing::new(text);
        let path = self.path.with_extension("age");
        let Some(passphrase) = self.passphrase else {
            return Ok(ambient::write_new(&path, text.as_bytes(), 0o600)?);
        };
        let sealed = ambient.with_entropy(|entropy| {
            seal::encrypt_with_passphrase(text.as_bytes(), passphrase, entropy)
        })?;
        Ok(ambient::write_new(&path, &sealed, 0o600)?)
    }
}

/// Writes the public half beside a private file.
///
/// # Errors
/// [`SessionError::Ambient`] when the file cannot be made.
pub fn write_public(path: &Path, signer: &Signer) -> Result<(), SessionError> {
    let text = keyfile::write_public(&signer.public_bytes());
    Ok(ambient::replace(
        &path.with_extension("pub"),
        text.as_bytes(),
        true,
    )?)
}

/// Removes the files of a key that came to nothing.
pub fn discard(path: &Path) {
    for end in ["pem", "pub", "age"] {
        // What was never written need not be removed.
        ambient::remove(&path.with_extension(end)).ok();
    }
}

/// Reads a log key: a private file without passphrase.
///
/// # Errors
/// [`KeyError::LogKeyMissing`], [`KeyError::LogKeyUnreadable`], and [`SessionError::Ambient`].
pub fn read_log_key(path: &Path) -> Result<Signer, SessionError> {
    let bytes = match ambient::read_secret(path) {
        Err(AmbientError::NotFound(_)) => {
            return Err(KeyError::LogKeyMissing(path.to_owned()).into());
        }
        other => other?,
    };
    match keyfile::read_private(&bytes, None) {
        Ok(key) => Ok(key.into()),
        Err(source) => Err(KeyError::LogKeyUnreadable {
            path: path.to_owned(),
            source,
        }
        .into()),
    }
}

/// Writes a log key, which has no passphrase: whoever appends needs it.
///
/// # Errors
/// [`KeyError::LogKeyUnwritable`], and [`SessionError::Ambient`] when the file cannot be made.
pub fn write_log_key(ambient: &Ambient, path: &Path, key: &Signer) -> Result<(), SessionError> {
    let text = ambient
        .with_entropy(|entropy| keyfile::write_private(key.key(), None, entropy))
        .map_err(KeyError::LogKeyUnwritable)?;
    Ok(ambient::write_new(path, text.as_bytes(), 0o600)?)
}
