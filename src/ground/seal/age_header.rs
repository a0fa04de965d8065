//! The header of an age envelope: its grammar, and the file key that an identity unwraps from it.

use chacha20poly1305::aead::Aead;
use hmac::Mac;
use x25519_dalek::PublicKey;
use zeroize::Zeroizing;

use crate::base64;

use super::age::AGE_HEADER_MAX;
use super::age::AGE_STANZAS_MAX;
use super::age::AGE_VERSION_LINE;
use super::age::AgeError;
use super::age::BODY_LINE_CHARS;
use super::age::FILE_KEY_BYTES;
use super::age::FileKey;
use super::age::header_mac;
use super::age::wrap_cipher;
use super::age_key::Identity;

pub(super) struct Stanza<'a> {
    pub(super) kind: &'a [u8],
    pub(super) arguments: Vec<&'a [u8]>,
    pub(super) body: Vec<u8>,
}

pub(super) struct Header<'a> {
    pub(super) stanzas: Vec<Stanza<'a>>,
    mac: Vec<u8>,
    /// Everything up to and including `---`.
    authenticated: &'a [u8],
    /// Everything after the header's last newline.
    pub(super) payload: &'a [u8],
}

/// The lines of a header, within its size limit.
struct HeaderLines<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> HeaderLines<'a> {
    /// The next line without its newline.
    fn next(&mut self) -> Result<&'a [u8], AgeError> {
        let rest = &self.file[self.at..self.file.len().min(AGE_HEADER_MAX)];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(if self.file.len() >= AGE_HEADER_MAX {
                AgeError::HeaderTooLarge
            } else {
                AgeError::Header("the file ends inside the header")
            });
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }
}

impl<'a> Header<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, AgeError> {
        if file.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----") {
            return Err(AgeError::Header("armored text; the binary form is needed"));
        }
        let mut lines = HeaderLines { file, at: 0 };
        if !file.starts_with(AGE_VERSION_LINE) || lines.next()? != AGE_VERSION_LINE {
            return Err(AgeError::Header(
                "the first line is not age-encryption.org/v1",
            ));
        }
        let mut stanzas = Vec::new();
        loop {
            let start = lines.at;
            let line = lines.next()?;
            if let Some(words) = line.strip_prefix(b"-> ") {
                if stanzas.len() == AGE_STANZAS_MAX {
                    return Err(AgeError::TooManyStanzas);
                }
                stanzas.push(read_stanza(words, &mut lines)?);
            } else if let Some(mac) = line.strip_prefix(b"--- ") {
                if stanzas.is_empty() {
                    return Err(AgeError::Header("no recipient stanza"));
                }
                let mac = base64_bytes(mac)?;
                if mac.len() != 32 {
                    return Err(AgeError::Header(
                        "its authentication code is not of 32 bytes",
                    ));
                }
                let authenticated = &file[..start + 3];
                return Ok(Self {
                    stanzas,
                    mac,
                    authenticated,
                    payload: &file[lines.at..],
                });
            } else {
                return Err(AgeError::Header("a line is neither stanza nor end"));
            }
        }
    }

    /// The file key, after the header proved authentic under it.
    pub(super) fn open(&self, identities: &[Identity]) -> Result<FileKey, AgeError> {
        // A passphrase stanza must stand alone, or its holder could forge for the others.
        if self.stanzas.len() > 1 && self.stanzas.iter().any(|s| s.kind == b"scrypt") {
            return Err(AgeError::Header("a scrypt stanza beside others"));
        }
        // Every X25519 stanza is read before any is tried, so that the verdict on a malformed
        // header is the same for every identity.
        let mut wraps = Vec::new();
        for stanza in self.stanzas.iter().filter(|s| s.kind == b"X25519") {
            wraps.push(read_x25519(stanza)?);
        }
        let file_key = unwrap_any(&wraps, identities)?.ok_or(AgeError::NoMatch)?;
        self.authentic(&file_key)?;
        Ok(file_key)
    }

    /// Proves the header authentic under a file key.
    pub(super) fn authentic(&self, file_key: &FileKey) -> Result<(), AgeError> {
        header_mac(file_key, self.authenticated)
            .verify_slice(&self.mac)
            .map_err(|_| AgeError::HeaderMac)
    }
}

/// Reads a stanza whose first line, after the arrow, is `words`.
fn read_stanza<'a>(words: &'a [u8], lines: &mut HeaderLines<'a>) -> Result<Stanza<'a>, AgeError> {
    let mut arguments: Vec<&[u8]> = words.split(|byte| *byte == b' ').collect();
    let graphic = |word: &&[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
    if !arguments.iter().all(graphic) {
        return Err(AgeError::Header(
            "a stanza's arguments are not printable words",
        ));
    }
    let kind = arguments.remove(0);
    let mut text = Vec::new();
    loop {
        let line = lines.next()?;
        if line.len() > BODY_LINE_CHARS {
            return Err(AgeError::Header("a body line is longer than 64 characters"));
        }
        text.extend_from_slice(line);
        if line.len() < BODY_LINE_CHARS {
            return Ok(Stanza {
                kind,
                arguments,
                body: base64_bytes(&text)?,
            });
        }
    }
}

/// The ephemeral share and the wrapped file key of an X25519 stanza.
fn read_x25519(stanza: &Stanza<'_>) -> Result<([u8; 32], [u8; 32]), AgeError> {
    let [share] = stanza.arguments.as_slice() else {
        return Err(AgeError::Header("an X25519 stanza has not one argument"));
    };
    let share = base64_bytes(share)?
        .try_into()
        .map_err(|_| AgeError::Header("an X25519 share is not of 32 bytes"))?;
    // Checked before decryption: a longer body could be made to open under several keys.
    let wrapped = stanza
        .body
        .as_slice()
        .try_into()
        .map_err(|_| AgeError::Header("an X25519 body is not of 32 bytes"))?;
    Ok((share, wrapped))
}

/// The file key from the first wrap that one of `identities` opens.
fn unwrap_any(
    wraps: &[([u8; 32], [u8; 32])],
    identities: &[Identity],
) -> Result<Option<FileKey>, AgeError> {
    for (share, wrapped) in wraps {
        for identity in identities {
            let shared = identity.secret.diffie_hellman(&PublicKey::from(*share));
            if !shared.was_contributory() {
                return Err(AgeError::Header("an X25519 share is a point of low order"));
            }
            let cipher = wrap_cipher(shared.as_bytes(), share, &identity.recipient);
            let Ok(opened) = cipher.decrypt(&[0; 12].into(), wrapped.as_slice()) else {
                continue;
            };
            let opened = Zeroizing::new(opened);
            let mut file_key: FileKey = Zeroizing::new([0; FILE_KEY_BYTES]);
            file_key.copy_from_slice(&opened);
            return Ok(Some(file_key));
        }
    }
    Ok(None)
}

/// Decodes base64 without padding and refuses every spelling but the canonical one.
pub(super) fn base64_bytes(text: &[u8]) -> Result<Vec<u8>, AgeError> {
    const REFUSED: AgeError = AgeError::Header("not canonical base64 without padding");
    base64::decode_unpadded(text).ok_or(REFUSED)
}
