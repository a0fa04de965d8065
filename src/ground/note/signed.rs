//! A text with signatures. Bytes: see [`super`].

use std::fmt;

use ed25519_dalek::Signer;
use ed25519_dalek::SigningKey;
use thiserror::Error;

use crate::base64;

use super::key::KeyName;
use super::key::NameError;
use super::key::SigType;
use super::key::VerifierKey;
use super::key::decode_base64;

/// The most bytes a note may have.
pub const MAX_NOTE_BYTES: usize = 65_536;

/// The most signatures a note may have.
pub const MAX_SIGNATURES: usize = 64;

/// What stands before the name in a signature line: an em dash and a space.
const SIGNATURE_MARK: &str = "\u{2014} ";

/// What is wrong with the bytes or the signatures of a note.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoteError {
    /// It is over [`MAX_NOTE_BYTES`].
    #[error("expected a note of at most {MAX_NOTE_BYTES} bytes, found {bytes}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is no UTF-8.
    #[error("expected UTF-8, the bytes from {offset} on are none")]
    Utf8 {
        /// Where the first bad byte stands.
        offset: usize,
    },
    /// It holds a control character.
    #[error("expected no control character but the newline, found 0x{byte:02x} at {offset}")]
    Control {
        /// The character, below 0x20.
        byte: u8,
        /// Where it stands.
        offset: usize,
    },
    /// Nothing divides text and signatures.
    #[error("expected a text ending in a newline, then an empty line, then signatures")]
    NoBlankLine,
    /// The last line is cut.
    #[error("expected a newline at the end of the last line")]
    NoFinalNewline,
    /// A signature line is not as it should be.
    #[error("expected \"\u{2014} name base64\" in signature line {line}")]
    SignatureLine {
        /// Which line, from 1.
        line: usize,
    },
    /// A signature line names no possible signer.
    #[error("signature line {line}: {source}")]
    SignatureName {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with the name.
        source: NameError,
    },
    /// A signature holds no more than a key id.
    #[error("expected a key id of 4 bytes and a signature in signature line {line}")]
    SignatureLength {
        /// Which line, from 1.
        line: usize,
    },
    /// There are none, or over [`MAX_SIGNATURES`].
    #[error("expected 1 to {MAX_SIGNATURES} signatures, found {found}")]
    SignatureCount {
        /// How many there are.
        found: usize,
    },
    /// A signature that names a known key is not of that key.
    #[error("expected a valid signature of the known key {name}+{key_id:08x}, it does not verify")]
    BadSignature {
        /// Whose key.
        name: KeyName,
        /// Its id.
        key_id: u32,
    },
    /// No signature is of a known key.
    #[error("expected a signature of a known key, found none")]
    NoneKnown,
    /// A private key was given that is not the one of the public key beside it, or that makes
    /// another kind of signature.
    #[error("expected the private key of {vkey}, able to make this kind of signature")]
    WrongSigner {
        /// The public key beside it.
        vkey: String,
    },
}

/// One signature of a note, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    name: KeyName,
    key_id: [u8; 4],
    signature: Vec<u8>,
}

impl NoteSignature {
    /// Whose key it names.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// The id of the key it names.
    pub fn key_id(&self) -> [u8; 4] {
        self.key_id
    }

    /// The bytes after the key id: 64 for Ed25519; 72 for a cosignature, whose first eight are
    /// the time.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// Signs a text with an Ed25519 key of kind 0x01.
    ///
    /// # Errors
    /// When `secret` is not the private key of `key`, or `key` is of another kind.
    pub fn sign(text: &str, key: &VerifierKey, secret: &SigningKey) -> Result<Self, NoteError> {
        check_signer(key, SigType::Ed25519, secret)?;
        Ok(Self::by(
            key,
            secret.sign(text.as_bytes()).to_bytes().to_vec(),
        ))
    }

    /// Cosigns the text of a checkpoint with a key of kind 0x04. `time` is in Unix seconds.
    ///
    /// # Errors
    /// When `secret` is not the private key of `key`, or `key` is of another kind.
    pub fn cosign(
        text: &str,
        time: u64,
        key: &VerifierKey,
        secret: &SigningKey,
    ) -> Result<Self, NoteError> {
        check_signer(key, SigType::Cosignature, secret)?;
        let signature = secret.sign(&cosign_message(time, text)).to_bytes();
        Ok(Self::by(
            key,
            [&time.to_be_bytes()[..], &signature].concat(),
        ))
    }

    fn by(key: &VerifierKey, signature: Vec<u8>) -> Self {
        Self {
            name: key.name().clone(),
            key_id: key.key_id(),
            signature,
        }
    }

    /// Reads signature lines: the end of a note, or what a witness answers.
    ///
    /// # Errors
    /// When there are not 1 to 64 of them, or one is not as it should be.
    pub fn parse_lines(lines: &str) -> Result<Vec<Self>, NoteError> {
        if lines.is_empty() {
            return Err(NoteError::SignatureCount { found: 0 });
        }
        let lines = lines.strip_suffix('\n').ok_or(NoteError::NoFinalNewline)?;
        let found = lines.split('\n').count();
        if found > MAX_SIGNATURES {
            return Err(NoteError::SignatureCount { found });
        }
        lines
            .split('\n')
            .zip(1..)
            .map(|(text, line)| Self::parse_line(text, line))
            .collect()
    }

    fn parse_line(text: &str, line: usize) -> Result<Self, NoteError> {
        let (name, blob) = text
            .strip_prefix(SIGNATURE_MARK)
            .and_then(|rest| rest.split_once(' '))
            .ok_or(NoteError::SignatureLine { line })?;
        let name =
            KeyName::parse(name).map_err(|source| NoteError::SignatureName { line, source })?;
        let blob = decode_base64(blob).ok_or(NoteError::SignatureLine { line })?;
        match blob.split_first_chunk::<4>() {
            Some((key_id, signature)) if !signature.is_empty() => Ok(Self {
                name,
                key_id: *key_id,
                signature: signature.to_vec(),
            }),
            _ => Err(NoteError::SignatureLength { line }),
        }
    }
}

impl fmt::Display for NoteSignature {
    /// The signature line without its newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blob = [&self.key_id[..], &self.signature].concat();
        write!(f, "{SIGNATURE_MARK}{} {}", self.name, base64::encode(&blob))
    }
}

/// A private key must be that of the public key beside it, or notes would be signed that nobody
/// can verify.
fn check_signer(key: &VerifierKey, kind: SigType, secret: &SigningKey) -> Result<(), NoteError> {
    if key.kind() == kind && key.public_key() == secret.verifying_key().as_bytes() {
        Ok(())
    } else {
        Err(NoteError::WrongSigner {
            vkey: key.to_string(),
        })
    }
}

/// The bytes that a witness signs: the time in Unix seconds and the checkpoint's text.
pub fn cosign_message(time: u64, text: &str) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}

/// A signature of a known key that verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedSignature {
    /// Its place among the note's signatures, from 0.
    pub signature: usize,
    /// The place of its key among the keys that were given, from 0.
    pub key: usize,
    /// When a witness says it signed, in Unix seconds; none for other signatures.
    pub time: Option<u64>,
}

/// A text and the signatures under it. What stands in a value of this type parses again from its
/// own bytes, but is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl Note {
    /// A note from its parts.
    ///
    /// # Errors
    /// When the text does not end in a newline or holds another control character, there are not
    /// 1 to 64 signatures, or the whole is over 64 KiB.
    pub fn new(text: String, signatures: Vec<NoteSignature>) -> Result<Self, NoteError> {
        check_text(&text)?;
        if !text.ends_with('\n') {
            return Err(NoteError::NoBlankLine);
        }
        let found = signatures.len();
        if !(1..=MAX_SIGNATURES).contains(&found) {
            return Err(NoteError::SignatureCount { found });
        }
        let note = Self { text, signatures };
        let bytes = note.to_string().len();
        if bytes > MAX_NOTE_BYTES {
            return Err(NoteError::TooLong { bytes });
        }
        Ok(note)
    }

    /// Reads a note. Says nothing on whether its signatures are good.
    ///
    /// # Errors
    /// When the bytes are no note.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(NoteError::TooLong { bytes: bytes.len() });
        }
        let note = std::str::from_utf8(bytes).map_err(|error| NoteError::Utf8 {
            offset: error.valid_up_to(),
        })?;
        check_text(note)?;
        let (text, lines) = note
            .rfind("\n\n")
            .map(|end| (&note[..=end], &note[end + 2..]))
            .ok_or(NoteError::NoBlankLine)?;
        let signatures = NoteSignature::parse_lines(lines)?;
        Ok(Self {
            text: text.to_owned(),
            signatures,
        })
    }

    /// The signed text, ending in a newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, 1 to 64.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// The bytes that [`Self::parse`] reads.
    pub fn encode(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    /// The same text with one more signature; the same note when it has that signature already.
    ///
    /// # Errors
    /// When the note would grow over 64 signatures or 64 KiB.
    pub fn with_signature(mut self, signature: NoteSignature) -> Result<Self, NoteError> {
        if !self.signatures.contains(&signature) {
            self.signatures.push(signature);
        }
        Self::new(self.text, self.signatures)
    }

    /// Checks the signatures of known keys; those of unknown keys, and of keys of a kind that is
    /// not checked here, are passed over. Each key is answered for once: when it signed several
    /// times, with its latest time.
    ///
    /// # Errors
    /// When a signature that names a known key is not of that key, or none names a known key.
    pub fn verify(&self, keys: &[VerifierKey]) -> Result<Vec<VerifiedSignature>, NoteError> {
        let mut verified: Vec<VerifiedSignature> = Vec::new();
        for (place, signature) in self.signatures.iter().enumerate() {
            let Some((key, time)) = self.check(signature, keys)? else {
                continue;
            };
            let new = VerifiedSignature {
                signature: place,
                key,
                time,
            };
            match verified.iter_mut().find(|old| old.key == key) {
                None => verified.push(new),
                Some(old) if old.time < time => *old = new,
                Some(_) => (),
            }
        }
        if verified.is_empty() {
            return Err(NoteError::NoneKnown);
        }
        Ok(verified)
    }

    /// The known key that made a signature, by its place, and the time; none when it names no
    /// known key. Key ids are short, so several keys may share one: any of them may have signed.
    fn check(
        &self,
        signature: &NoteSignature,
        keys: &[VerifierKey],
    ) -> Result<Option<(usize, Option<u64>)>, NoteError> {
        let mut named = false;
        for (place, key) in keys.iter().enumerate() {
            if key.is_checkable()
                && key.key_id() == signature.key_id
                && *key.name() == signature.name
            {
                named = true;
                if let Ok(time) = key.check(&self.text, &signature.signature) {
                    return Ok(Some((place, time)));
                }
            }
        }
        if named {
            return Err(NoteError::BadSignature {
                name: signature.name.clone(),
                key_id: u32::from_be_bytes(signature.key_id),
            });
        }
        Ok(None)
    }
}

/// Refuses control characters, save the newline.
fn check_text(text: &str) -> Result<(), NoteError> {
    match text
        .bytes()
        .enumerate()
        .find(|(_, byte)| *byte < 0x20 && *byte != b'\n')
    {
        Some((offset, byte)) => Err(NoteError::Control { byte, offset }),
        None => Ok(()),
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures
            .iter()
            .try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::super::worked;
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn the_worked_note_is_reproduced_to_the_byte() {
        // source: length and SHA-256 of the file that Python wrote
        let hash = "d0b54256bd4aaeacfb82c49dae98c32db126bfcfd583ebb39469e0431510dc1c";
        assert_eq!(worked::NOTE.len(), 313);
        assert_eq!(Digest::sha256(worked::NOTE.as_bytes()).to_string(), hash);

        let (log, secret) = worked::log();
        let signature = NoteSignature::sign(worked::TEXT, &log, &secret).unwrap();
        let note = Note::new(worked::TEXT.to_owned(), vec![signature]).unwrap();
        let (witness, secret) = worked::witness();
        let cosignature =
            NoteSignature::cosign(worked::TEXT, worked::TIME, &witness, &secret).unwrap();
        let note = note.with_signature(cosignature.clone()).unwrap();
        assert_eq!(note.encode(), worked::NOTE.as_bytes());
        assert_eq!(Note::parse(worked::NOTE.as_bytes()), Ok(note.clone()));
        // A signature that is there already is not added again.
        assert_eq!(note.clone().with_signature(cosignature), Ok(note.clone()));

        let verified = note.verify(&[witness, log]).unwrap();
        let time = Some(worked::TIME);
        assert_eq!(
            verified,
            [
                VerifiedSignature {
                    signature: 0,
                    key: 1,
                    time: None
                },
                VerifiedSignature {
                    signature: 1,
                    key: 0,
                    time
                },
            ],
        );
    }

    #[test]
    fn unknown_keys_are_passed_over_and_known_ones_must_hold() {
        let note = Note::parse(worked::NOTE.as_bytes()).unwrap();
        let (log, log_secret) = worked::log();
        let (witness, _) = worked::witness();
        assert_eq!(note.verify(&[]), Err(NoteError::NoneKnown));
        assert_eq!(note.verify(from_ref(&log)).unwrap().len(), 1);

        let other = Note::new("other\n".to_owned(), note.signatures().to_vec()).unwrap();
        let bad = |key: &VerifierKey| {
            Err(NoteError::BadSignature {
                name: key.name().clone(),
                key_id: u32::from_be_bytes(key.key_id()),
            })
        };
        assert_eq!(other.verify(from_ref(&log)), bad(&log));
        assert_eq!(other.verify(from_ref(&witness)), bad(&witness));

        // One good signature does not outweigh a bad one of the same or another known key.
        let good = NoteSignature::sign(other.text(), &log, &log_secret).unwrap();
        let mixed = other.with_signature(good).unwrap();
        assert_eq!(mixed.verify(&[log.clone(), witness]), bad(&log));

        // A key of a kind that is not checked here is as good as unknown.
        let opaque = log.to_string().replace("+AQ", "+eQ");
        let opaque = VerifierKey::parse(&opaque).unwrap();
        assert_eq!(opaque.key_id(), log.key_id());
        assert_eq!(note.verify(from_ref(&opaque)), Err(NoteError::NoneKnown));
        assert_eq!(note.verify(&[opaque, log]).unwrap()[0].key, 1);
    }

    #[test]
    fn a_key_that_signed_twice_counts_once_with_its_latest_time() {
        let (witness, secret) = worked::witness();
        let cosign = |time| NoteSignature::cosign(worked::TEXT, time, &witness, &secret).unwrap();
        let signatures = vec![cosign(5), cosign(9), cosign(7)];
        let note = Note::new(worked::TEXT.to_owned(), signatures).unwrap();
        let keys = [witness.clone(), witness.clone()];
        let time = Some(9);
        let expected = VerifiedSignature {
            signature: 1,
            key: 0,
            time,
        };
        assert_eq!(note.verify(&keys), Ok(vec![expected]));
    }

    #[test]
    fn any_changed_bit_of_the_text_or_a_signature_is_refused() {
        let (log, _) = worked::log();
        let (witness, _) = worked::witness();
        let keys = [log, witness];
        for place in 0..worked::NOTE.len() {
            for bit in 0..8 {
                let mut bytes = worked::NOTE.as_bytes().to_vec();
                bytes[place] ^= 1 << bit;
                // A change that makes a key unknown leaves the other signature, which holds.
                let Ok(note) = Note::parse(&bytes) else {
                    continue;
                };
                assert_eq!(note.encode(), bytes);
                let accepted = note.verify(&keys).map_or(0, |verified| verified.len());
                assert!(accepted < 2, "bit {bit} of byte {place}");
                assert!(accepted == 0 || note.text() == worked::TEXT);
            }
        }
    }

    #[test]
    fn a_private_key_must_fit_its_public_key() {
        let (log, log_secret) = worked::log();
        let (witness, witness_secret) = worked::witness();
        let refused = |result: Result<NoteSignature, NoteError>| {
            assert!(matches!(result, Err(NoteError::WrongSigner { .. })));
        };
        refused(NoteSignature::sign("a\n", &log, &witness_secret));
        refused(NoteSignature::sign("a\n", &witness, &witness_secret));
        refused(NoteSignature::cosign("a\n", 1, &log, &log_secret));
    }

    #[test]
    fn bytes_that_are_no_note() {
        let parse = |text: &str| Note::parse(text.as_bytes()).unwrap_err();
        let line = "\u{2014} a AAAAAAA=\n";
        assert!(Note::parse(format!("t\n\n{line}").as_bytes()).is_ok());
        // The text may hold empty lines; the last one ends it.
        let note = Note::parse(format!("t\n\n\u{2014} x\n\n\n{line}").as_bytes()).unwrap();
        assert_eq!(note.text(), "t\n\n\u{2014} x\n\n");
        assert_eq!(note.signatures().len(), 1);

        let bytes = MAX_NOTE_BYTES + 1;
        assert_eq!(parse(&"t".repeat(bytes)), NoteError::TooLong { bytes });
        assert_eq!(Note::parse(b"t\n\xff"), Err(NoteError::Utf8 { offset: 2 }));
        assert_eq!(
            parse("t\r\n\n"),
            NoteError::Control {
                byte: 13,
                offset: 1
            }
        );
        assert_eq!(parse(""), NoteError::NoBlankLine);
        assert_eq!(parse(&format!("t\n{line}")), NoteError::NoBlankLine);
        assert_eq!(parse("t\n\n"), NoteError::SignatureCount { found: 0 });
        let found = MAX_SIGNATURES + 1;
        assert!(Note::parse(format!("t\n\n{}", line.repeat(found - 1)).as_bytes()).is_ok());
        assert_eq!(
            parse(&format!("t\n\n{}", line.repeat(found))),
            NoteError::SignatureCount { found }
        );
        assert_eq!(
            parse(&format!("t\n\n{}", line.trim_end())),
            NoteError::NoFinalNewline
        );
        for bad in [
            "- a AAAAAAA=",
            "\u{2013} a AAAAAAA=",
            "\u{2014}a AAAAAAA=",
            "\u{2014} a",
            "\u{2014} a  AAAAAAA=",
            "\u{2014} a AAAAAAA= ",
            "\u{2014} a AAAAAAA",
            "\u{2014} a AAAAAAB=",
            "\u{2014} a AAAA_AA=",
        ] {
            let error = NoteError::SignatureLine { line: 2 };
            assert_eq!(parse(&format!("t\n\n{line}{bad}\n")), error, "{bad}");
        }
        assert_eq!(
            parse("t\n\n\u{2014}  AAAAAAA=\n"),
            NoteError::SignatureName {
                line: 1,
                source: NameError::Empty
            },
        );
        assert_eq!(
            parse("t\n\n\u{2014} a AAAAAA==\n"),
            NoteError::SignatureLength { line: 1 },
        );
    }

    #[test]
    fn parts_that_make_no_note() {
        let signature = Note::parse(worked::NOTE.as_bytes()).unwrap().signatures()[0].clone();
        let new = |text: &str, count| Note::new(text.to_owned(), vec![signature.clone(); count]);
        assert_eq!(new("t", 1), Err(NoteError::NoBlankLine));
        assert_eq!(
            new("\t\n", 1),
            Err(NoteError::Control { byte: 9, offset: 0 })
        );
        assert_eq!(new("t\n", 0), Err(NoteError::SignatureCount { found: 0 }));
        assert_eq!(new("t\n", 65), Err(NoteError::SignatureCount { found: 65 }));
        let long = format!("{}\n", "t".repeat(MAX_NOTE_BYTES));
        assert!(matches!(new(&long, 1), Err(NoteError::TooLong { .. })));
    }
}
