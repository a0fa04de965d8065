//! Private content: encrypted under a subject's key, and opened by a custodian whose read is on record first.

use clover_event::Kind;
use clover_event::id::Text;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::PrivateRef;
use clover_event::payload::Role;
use clover_event::payload::record::ReadOutcome;
use clover_ground::ambient::Entropy;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::SealedBlob;
use clover_ground::seal::SubjectKey;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use zeroize::Zeroizing;

use crate::append;
use crate::append::Intent;
use crate::custody::CustodyError;
use crate::custody::reads;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::KeyNeed;
use crate::ports::Notice;
use crate::ports::Ports;

/// Whose content it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's: it is stored as it is.
    Nobody,
    /// A subject's, for whom a handle and a key are drawn.
    NewSubject,
    /// A subject's of whom the vault has the key.
    Subject(Digest),
}

/// Stores content and gives the reference to it, as canonical JSON; a rehearsal stores nothing.
///
/// # Errors
/// [`CustodyError::NoKey`], [`CustodyError::Encryption`], [`SessionError::Store`] and [`SessionError::Ledger`].
pub fn put(
    home: &Home,
    ledger: &mut Ledger,
    (content, media): (&[u8], MediaType),
    owner: Owner,
    intent: Intent,
) -> Result<Vec<u8>, SessionError> {
    let of_subject = match owner {
        Owner::Nobody => None,
        Owner::NewSubject => Some(new_subject(home, ledger, intent)?),
        Owner::Subject(subject) => Some((subject, subject_key(home, ledger, &subject)?)),
    };
    let (bytes, text) = match of_subject {
        None => {
            let text = canon::to_bytes(&reference(content, media));
            (content.to_vec(), text)
        }
        Some((subject, key)) => {
            let sealed = encrypted(ledger, &key, content)?;
            let private = PrivateRef {
                blob: reference(&sealed.bytes, media),
                commitment: sealed.commitment,
                subject,
            };
            (sealed.bytes, canon::to_bytes(&private))
        }
    };
    let text = text.map_err(CustodyError::Reference)?;
    if intent == Intent::Append {
        ledger.put_blobs(&[bytes])?;
    }
    Ok(text)
}

fn reference(bytes: &[u8], media: MediaType) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: Count::new(bytes.len() as u64).expect("BUG: no file has 2^53 bytes"),
        media,
    }
}

/// A subject that was not known before; its key goes into the vault first.
fn new_subject(
    home: &Home,
    ledger: &Ledger,
    intent: Intent,
) -> Result<(Digest, SubjectKey), SessionError> {
    let ambient = ledger.ambient();
    let subject = Digest(ambient.random()?);
    let key = ambient.with_entropy(SubjectKey::generate)?;
    if intent == Intent::Append {
        home.vault(ambient)?.add_subject(&subject, key.as_bytes())?;
    }
    Ok((subject, key))
}

fn encrypted(
    ledger: &Ledger,
    key: &SubjectKey,
    content: &[u8],
) -> Result<SealedBlob, CustodyError> {
    let encrypt = |entropy: &mut dyn Entropy| seal::encrypt_blob(key, content, entropy);
    let sealed = ledger.ambient().with_entropy(encrypt);
    sealed.map_err(CustodyError::Encryption)
}

/// A subject's key from the vault.
///
/// # Errors
/// [`CustodyError::NoKey`], and [`SessionError::Store`] when the vault cannot be read.
pub fn subject_key(
    home: &Home,
    ledger: &Ledger,
    subject: &Digest,
) -> Result<SubjectKey, SessionError> {
    let known = match home.known_vault(ledger.ambient())? {
        Some(vault) => vault.subject_key(subject)?.map(Zeroizing::new),
        None => None,
    };
    let key = known.ok_or(CustodyError::NoKey(*subject))?;
    Ok(SubjectKey::from_bytes(&key))
}

/// A blob as it is stored.
///
/// # Errors
/// [`CustodyError::NoBlob`], [`CustodyError::Tampered`], and [`SessionError::Store`].
pub fn stored(ledger: &Ledger, digest: Digest) -> Result<Vec<u8>, SessionError> {
    let stored = ledger.store().reader().blob(&digest)?;
    let stored = stored.ok_or(CustodyError::NoBlob(digest))?;
    if Digest::blake3(&stored) == digest {
        Ok(stored)
    } else {
        Err(CustodyError::Tampered(digest).into())
    }
}

/// Opens a subject's content; the read is on record before it is given.
///
/// # Errors
/// As [`stored`] and [`subject_key`]; [`CustodyError::Opening`], [`SessionError::Port`] without a custodian's key, and
/// [`SessionError::Ledger`].
pub fn open(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    (digest, subject): (Digest, Digest),
    purpose: Text,
) -> Result<Zeroizing<Vec<u8>>, SessionError> {
    let bytes = stored(ledger, digest)?;
    let key = subject_key(home, ledger, &subject)?;
    let opened = seal::decrypt_blob(&key, &bytes).map_err(CustodyError::Opening)?;
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::DataRead))?;
    let reader = (signer.id(), Some(Role::Custodian));
    let read = reads::read(reads::PRIVATE, ReadOutcome::Allowed, purpose, reader, None);
    let appended = append::append(ports, ledger, &[Command::new(read, None)], &signer)?;
    ports.notice(Notice::ReadRecorded(appended[0].seq));
    Ok(Zeroizing::new(opened.plaintext.clone()))
}
