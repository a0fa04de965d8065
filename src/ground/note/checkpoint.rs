//! Signed statements on the size and root of a log. Bytes: see [`super`].

use std::fmt;

use ed25519_dalek::SigningKey;
use thiserror::Error;

use super::key::KeyName;
use super::key::NameError;
use super::key::SigType;
use super::key::VerifierKey;
use super::key::parse_decimal;
use super::signed::Note;
use super::signed::NoteError;
use super::signed::NoteSignature;
use super::signed::VerifiedSignature;
use crate::digest::Digest;
use crate::merkle;

/// What is wrong with the text or the signatures of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// It is no sound note.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// Its last line is cut, or it has fewer than three.
    #[error("expected origin, size and root, each ending in a newline")]
    Lines,
    /// Its first line names no log.
    #[error("checkpoint line 1: {0}")]
    Origin(#[from] NameError),
    /// Its second line is no size.
    #[error("expected a decimal size without leading zeros in checkpoint line 2, found {found:?}")]
    Size {
        /// The line.
        found: String,
    },
    /// Its third line is no root.
    #[error("expected a root of 32 bytes in base64 in checkpoint line 3, found {found:?}")]
    Root {
        /// The line.
        found: String,
    },
    /// An extension line is empty or holds a control character.
    #[error("expected a non-empty extension without control characters in checkpoint line {line}")]
    Extension {
        /// Which line of the checkpoint, from 1; 0 for one that was to be added.
        line: usize,
    },
    /// It bears known signatures, but none by its own log.
    #[error("expected a signature of the log {origin} itself among those of known keys")]
    NotByLog {
        /// The log.
        origin: KeyName,
    },
    /// A log key is named other than the log.
    #[error("expected a signing key of the name {origin}, found {found}")]
    SignerName {
        /// The log.
        origin: KeyName,
        /// The name of the key.
        found: KeyName,
    },
}

/// The size and root of a log at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log.
    pub origin: KeyName,
    /// Its number of leaves.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// A checkpoint without extensions.
    pub fn new(origin: impl Into<KeyName>, size: u64, root: Digest) -> Self {
        Self {
            origin: origin.into(),
            size,
            root,
            extensions: Vec::new(),
        }
    }

    /// The same with one more extension line. C2SP advises against them.
    ///
    /// # Errors
    /// When the line is empty or holds a control character (newlines too).
    pub fn with_extension(mut self, line: String) -> Result<Self, CheckpointError> {
        if !is_extension(&line) {
            return Err(CheckpointError::Extension { line: 0 });
        }
        self.extensions.push(line);
        Ok(self)
    }

    /// The extension lines.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Reads the text of a checkpoint: the text of its note, without the signatures.
    ///
    /// # Errors
    /// When the text is no checkpoint.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let mut lines = text
            .strip_suffix('\n')
            .ok_or(CheckpointError::Lines)?
            .split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(CheckpointError::Lines);
        };
        let origin = KeyName::parse(origin)?;
        let size = parse_decimal(size).ok_or_else(|| CheckpointError::Size {
            found: size.to_owned(),
        })?;
        let root = Digest::from_base64(root)
            .filter(|digest| digest.to_base64() == root)
            .ok_or_else(|| CheckpointError::Root {
                found: root.to_owned(),
            })?;
        let mut extensions = Vec::new();
        for (text, line) in lines.zip(4..) {
            if !is_extension(text) {
                return Err(CheckpointError::Extension { line });
            }
            extensions.push(text.to_owned());
        }
        Ok(Self {
            origin,
            size,
            root,
            extensions,
        })
    }

    /// The text that is signed.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}\n{}\n{}\n",
            self.origin,
            self.size,
            self.root.to_base64()
        );
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Whether this log state extends an older one of the same log, by a consistency proof.
    pub fn extends(&self, older: &Self, proof: &[Digest]) -> bool {
        self.origin == older.origin
            && merkle::verify_consistency(older.size, self.size, &older.root, &self.root, proof)
    }
}

fn is_extension(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|byte| byte >= 0x20)
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// What two checkpoints say about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison<'a> {
    /// They name the same size and root.
    Agree,
    /// They differ in size. Whether the newer extends the older shows a consistency proof only:
    /// [`Checkpoint::extends`].
    Order {
        /// The one of smaller size.
        older: &'a Checkpoint,
        /// The one of larger size.
        newer: &'a Checkpoint,
    },
    /// They name different roots for one size. If the log signed both, they prove that it showed
    /// two histories.
    Fork,
    /// They are of different logs and say nothing about each other.
    DifferentOrigins,
}

/// Sets two checkpoints against each other. The answer is worth what their signatures are: verify
/// both first.
pub fn compare<'a>(a: &'a Checkpoint, b: &'a Checkpoint) -> Comparison<'a> {
    if a.origin != b.origin {
        return Comparison::DifferentOrigins;
    }
    match a.size.cmp(&b.size) {
        std::cmp::Ordering::Less => Comparison::Order { older: a, newer: b },
        std::cmp::Ordering::Greater => Comparison::Order { older: b, newer: a },
        std::cmp::Ordering::Equal if a.root == b.root => Comparison::Agree,
        std::cmp::Ordering::Equal => Comparison::Fork,
    }
}

/// A checkpoint and the note that bears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    note: Note,
    checkpoint: Checkpoint,
}

impl SignedCheckpoint {
    /// Reads a signed checkpoint. Says nothing on whether its signatures are good.
    ///
    /// # Errors
    /// When the bytes are no note, or its text is no checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let note = Note::parse(bytes)?;
        let checkpoint = Checkpoint::parse(note.text())?;
        Ok(Self { note, checkpoint })
    }

    /// Signs a checkpoint as the log, with each of the keys in this order: two while a log key is
    /// being rotated, otherwise one.
    ///
    /// # Errors
    /// When no key is given, one has another name than the log or is not of kind 0x01, or a
    /// private key is not that of the public key beside it.
    pub fn sign(
        checkpoint: Checkpoint,
        signers: &[(VerifierKey, &SigningKey)],
    ) -> Result<Self, CheckpointError> {
        let text = checkpoint.to_text();
        let mut signatures = Vec::with_capacity(signers.len());
        for (key, secret) in signers {
            if *key.name() != checkpoint.origin {
                return Err(CheckpointError::SignerName {
                    origin: checkpoint.origin,
                    found: key.name().clone(),
                });
            }
            signatures.push(NoteSignature::sign(&text, key, secret)?);
        }
        let note = Note::new(text, signatures)?;
        Ok(Self { note, checkpoint })
    }

    /// The note.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// What the note says.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The bytes that [`Self::parse`] reads.
    pub fn encode(&self) -> Vec<u8> {
        self.note.encode()
    }

    /// The same checkpoint with one more signature, such as a witness sends. The text stays as
    /// it is; the signature is not verified here.
    ///
    /// # Errors
    /// When the note would grow over 64 signatures or 64 KiB.
    pub fn with_signature(self, signature: NoteSignature) -> Result<Self, CheckpointError> {
        let note = self.note.with_signature(signature)?;
        Ok(Self {
            note,
            checkpoint: self.checkpoint,
        })
    }

    /// Checks the signatures of known keys as [`Note::verify`] does, and that one of them is by
    /// the log itself: of kind 0x01, under the origin's name. Cosignatures alone do not make a
    /// checkpoint.
    ///
    /// # Errors
    /// When a known key's signature is bad, none is of a known key, or none is by the log.
    pub fn verify(&self, keys: &[VerifierKey]) -> Result<Vec<VerifiedSignature>, CheckpointError> {
        let verified = self.note.verify(keys)?;
        let origin = &self.checkpoint.origin;
        let by_log = |found: &VerifiedSignature| {
            keys[found.key].kind() == SigType::Ed25519 && keys[found.key].name() == origin
        };
        if verified.iter().any(by_log) {
            Ok(verified)
        } else {
            Err(CheckpointError::NotByLog {
                origin: origin.clone(),
            })
        }
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.note, f)
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::super::worked;
    use super::*;

    fn example() -> Checkpoint {
        Checkpoint::parse(worked::TEXT).unwrap()
    }

    #[test]
    fn the_worked_checkpoint_is_signed_and_cosigned_to_the_byte() {
        let checkpoint = example();
        let root = "8c4a4c13e1632762d84532c711b2b1b7aabc1c1cc9b8c53f83006049d35e6547";
        assert_eq!(checkpoint.origin.as_str(), worked::LOG);
        assert_eq!(
            (checkpoint.size, checkpoint.root.to_string()),
            (5, root.to_owned())
        );
        assert_eq!(checkpoint.to_text(), worked::TEXT);
        let again = Checkpoint::new(checkpoint.origin.clone(), 5, checkpoint.root);
        assert_eq!(again, checkpoint);

        let (log, log_secret) = worked::log();
        let (witness, witness_secret) = worked::witness();
        let signed = SignedCheckpoint::sign(checkpoint, &[(log.clone(), &log_secret)]).unwrap();
        let text = signed.note().text();
        let cosignature =
            NoteSignature::cosign(text, worked::TIME, &witness, &witness_secret).unwrap();
        // What a witness answers is the signature lines alone.
        let lines = NoteSignature::parse_lines(&format!("{cosignature}\n")).unwrap();
        assert_eq!(lines, from_ref(&cosignature));
        let signed = signed.with_signature(cosignature).unwrap();
        assert_eq!(signed.encode(), worked::NOTE.as_bytes());
        assert_eq!(
            SignedCheckpoint::parse(&signed.encode()),
            Ok(signed.clone())
        );

        assert_eq!(signed.verify(from_ref(&log)).unwrap().len(), 1);
        assert_eq!(signed.verify(&[log, witness.clone()]).unwrap().len(), 2);
        assert_eq!(
            signed.verify(&[witness]),
            Err(CheckpointError::NotByLog {
                origin: example().origin
            }),
        );
    }

    #[test]
    fn a_key_of_another_name_does_not_sign_for_the_log() {
        let (_, secret) = worked::log();
        let name = KeyName::parse("other.example").unwrap();
        let other = VerifierKey::ed25519(name, secret.verifying_key().to_bytes()).unwrap();
        let signed = SignedCheckpoint::sign(example(), &[(other.clone(), &secret)]);
        assert!(matches!(signed, Err(CheckpointError::SignerName { .. })));
        let unsigned = SignedCheckpoint::sign(example(), &[]);
        let found = 0;
        assert_eq!(unsigned, Err(NoteError::SignatureCount { found }.into()));

        let signature = NoteSignature::sign(worked::TEXT, &other, &secret).unwrap();
        let note = Note::new(worked::TEXT.to_owned(), vec![signature]).unwrap();
        let forged = SignedCheckpoint::parse(&note.encode()).unwrap();
        assert!(matches!(
            forged.verify(&[other]),
            Err(CheckpointError::NotByLog { .. })
        ));
    }

    #[test]
    fn a_rotation_is_signed_by_both_keys() {
        let (old, old_secret) = worked::log();
        let new_secret = SigningKey::from_bytes(&[9; 32]);
        let public_key = new_secret.verifying_key().to_bytes();
        let new = VerifierKey::ed25519(old.name().clone(), public_key).unwrap();
        let signers = [(old.clone(), &old_secret), (new.clone(), &new_secret)];
        let signed = SignedCheckpoint::sign(example(), &signers).unwrap();
        for keys in [vec![old.clone()], vec![new.clone()]] {
            assert_eq!(signed.verify(&keys).unwrap().len(), 1);
        }
        assert_eq!(signed.verify(&[old, new]).unwrap().len(), 2);
    }

    #[test]
    fn texts_that_are_no_checkpoint() {
        let root = "jEpME+FjJ2LYRTLHEbKxt6q8HBzJuMU/gwBgSdNeZUc=";
        for bad in ["", "\n", "a", "a\n5\n", &format!("a\n5\n{root}")] {
            assert_eq!(Checkpoint::parse(bad), Err(CheckpointError::Lines), "{bad}");
        }
        let parse = |origin, size, root| Checkpoint::parse(&format!("{origin}\n{size}\n{root}\n"));
        assert!(parse("a", "0", root).is_ok());
        assert!(parse("a", "18446744073709551615", root).is_ok());
        let origin = Err(CheckpointError::Origin(NameError::Forbidden { found: ' ' }));
        assert_eq!(parse("a b", "5", root), origin);
        for size in ["", "05", "+5", "-5", "5 ", "0x5", "18446744073709551616"] {
            let found = size.to_owned();
            assert_eq!(parse("a", size, root), Err(CheckpointError::Size { found }));
        }
        let short = &root[..43];
        let bits = root.replace("c=", "d=");
        for root in ["", short, &bits, "jEpM", &format!("{root}AAAA")] {
            let found = root.to_owned();
            assert_eq!(parse("a", "5", root), Err(CheckpointError::Root { found }));
        }
        for (extension, line) in [("\n", 4), ("x\n\n", 5), ("x\ty\n", 4)] {
            let text = format!("a\n5\n{root}\n{extension}");
            assert_eq!(
                Checkpoint::parse(&text),
                Err(CheckpointError::Extension { line })
            );
        }
    }

    #[test]
    fn extensions_are_kept() {
        let checkpoint = example().with_extension("x y".to_owned()).unwrap();
        let text = format!("{}x y\n", worked::TEXT);
        assert_eq!(checkpoint.to_text(), text);
        assert_eq!(Checkpoint::parse(&text), Ok(checkpoint.clone()));
        assert_eq!(checkpoint.extensions(), ["x y"]);
        for bad in ["", "a\nb"] {
            let error = Err(CheckpointError::Extension { line: 0 });
            assert_eq!(example().with_extension(bad.to_owned()), error);
        }
    }

    #[test]
    fn two_checkpoints_agree_are_in_order_or_prove_a_fork() {
        let newer = example();
        let agreeing = newer.clone().with_extension("x".to_owned()).unwrap();
        assert_eq!(compare(&newer, &agreeing), Comparison::Agree);
        let fork = Checkpoint {
            root: merkle::empty_root(),
            ..newer.clone()
        };
        assert_eq!(compare(&newer, &fork), Comparison::Fork);
        let foreign = Checkpoint {
            origin: KeyName::parse("b").unwrap(),
            ..newer.clone()
        };
        assert_eq!(compare(&newer, &foreign), Comparison::DifferentOrigins);
        let hex = "b9cddfcea5720dfb26b8e6edb387067d6e56562c774683c5a61e837dabfa54e9";
        let root = Digest::from_hex(hex).unwrap();
        let older = Checkpoint {
            size: 3,
            root,
            ..newer.clone()
        };
        let expected = Comparison::Order {
            older: &older,
            newer: &newer,
        };
        assert_eq!(compare(&older, &newer), expected);
        assert_eq!(compare(&newer, &older), expected);

        // source: PROOF(3, 5) of the worked example
        let proof = [
            "GpTFIYWvXgOIkYPsI9w5PjoKK+RuoIm4kMXZ454RTZc=",
            "1b21ihkXOmoBEd8/H2LbqgDkQiHg8JtHSJgSoBDNUxQ=",
            "cY+gNp10dQmbxstDJ+OCOklyKF+SvUmXGlg8nwj/to0=",
            "jh+IfPx8el5D8gLa9n2Zro+P1LM6ayUbz59dg0djA+o=",
        ]
        .map(|hash| Digest::from_base64(hash).unwrap());
        assert!(newer.extends(&older, &proof));
        assert!(!newer.extends(&older, &proof[1..]));
        assert!(!older.extends(&newer, &proof));
        assert!(!foreign.extends(&older, &proof));
    }
}
