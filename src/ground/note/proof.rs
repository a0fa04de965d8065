//! A file that proves one entry to be in a log, offline. Bytes: see [`super`].

use std::fmt;

use thiserror::Error;

use crate::base64;

use super::checkpoint::CheckpointError;
use super::checkpoint::SignedCheckpoint;
use super::key::VerifierKey;
use super::key::decode_base64;
use super::key::parse_decimal;
use super::signed::MAX_NOTE_BYTES;
use super::signed::VerifiedSignature;
use crate::digest::Digest;
use crate::merkle;

/// The first line.
const MAGIC: &str = "c2sp.org/tlog-proof@v1";

/// The most hashes a proof may have: more than a tree of 2^62 leaves needs.
pub const MAX_PROOF_HASHES: usize = 63;

/// The most bytes the unauthenticated extra data may have.
pub const MAX_EXTRA_BYTES: usize = 32_768;

/// The most bytes a proof file may have: the longest checkpoint, and room for the longest head.
const MAX_FILE_BYTES: usize = 2 * MAX_NOTE_BYTES;

/// What is wrong with a proof file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofError {
    /// It is over 128 KiB.
    #[error("expected a proof file of at most {MAX_FILE_BYTES} bytes, found {bytes}")]
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
    /// Nothing divides the proof from the checkpoint.
    #[error("expected an empty line between the proof and its checkpoint")]
    NoBlankLine,
    /// It is of another format or version.
    #[error("expected the first line \"{MAGIC}\"")]
    Magic,
    /// The extra data is not base64, or over [`MAX_EXTRA_BYTES`].
    #[error("expected \"extra \" and base64 of at most {MAX_EXTRA_BYTES} bytes")]
    Extra,
    /// The index is missing or no number.
    #[error("expected \"index \" and a decimal number without leading zeros")]
    Index,
    /// A hash is not base64 of 32 bytes.
    #[error("expected 32 bytes in base64 as hash {hash} of the proof")]
    Hash {
        /// Its place in the proof, from 0.
        hash: usize,
    },
    /// The proof is longer than any tree needs.
    #[error("expected at most {MAX_PROOF_HASHES} hashes, found {found}")]
    TooManyHashes {
        /// How many there are.
        found: usize,
    },
    /// The checkpoint is not sound, or its signatures do not verify.
    #[error("checkpoint of the proof: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The hashes do not lead from the leaf to the root of the checkpoint.
    #[error(
        "expected the leaf {leaf} at index {index} of a tree of {size}, the proof leads to another root"
    )]
    NotIncluded {
        /// The leaf hash.
        leaf: Digest,
        /// Where the proof puts it.
        index: u64,
        /// The size in the checkpoint.
        size: u64,
    },
}

/// An inclusion proof with the checkpoint it leads to. Not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFile {
    extra: Option<Vec<u8>>,
    index: u64,
    hashes: Vec<Digest>,
    checkpoint: SignedCheckpoint,
}

impl ProofFile {
    /// A proof file from its parts: `hashes` from the leaf's sibling upwards, and `extra` for
    /// whatever the reader is to have beside it, which nothing vouches for.
    ///
    /// # Errors
    /// When there are over 63 hashes, or over 32 KiB of extra data.
    pub fn new(
        extra: Option<Vec<u8>>,
        index: u64,
        hashes: Vec<Digest>,
        checkpoint: SignedCheckpoint,
    ) -> Result<Self, ProofError> {
        if extra
            .as_ref()
            .is_some_and(|extra| extra.len() > MAX_EXTRA_BYTES)
        {
            return Err(ProofError::Extra);
        }
        if hashes.len() > MAX_PROOF_HASHES {
            return Err(ProofError::TooManyHashes {
                found: hashes.len(),
            });
        }
        Ok(Self {
            extra,
            index,
            hashes,
            checkpoint,
        })
    }

    /// Reads a proof file. Says nothing on whether it proves anything.
    ///
    /// # Errors
    /// When the bytes are no proof file.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProofError> {
        if bytes.len() > MAX_FILE_BYTES {
            return Err(ProofError::TooLong { bytes: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| ProofError::Utf8 {
            offset: error.valid_up_to(),
        })?;
        let (head, checkpoint) = text.split_once("\n\n").ok_or(ProofError::NoBlankLine)?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(MAGIC) {
            return Err(ProofError::Magic);
        }
        let extra = lines
            .next_if(|line| line.starts_with("extra "))
            .map(|line| decode_base64(&line["extra ".len()..]).ok_or(ProofError::Extra))
            .transpose()?;
        let index = lines
            .next()
            .and_then(|line| line.strip_prefix("index "))
            .and_then(parse_decimal)
            .ok_or(ProofError::Index)?;
        let hashes = lines
            .enumerate()
            .map(|(hash, line)| {
                Digest::from_base64(line)
                    .filter(|digest| digest.to_base64() == line)
                    .ok_or(ProofError::Hash { hash })
            })
            .collect::<Result<_, _>>()?;
        Self::new(
            extra,
            index,
            hashes,
            SignedCheckpoint::parse(checkpoint.as_bytes())?,
        )
    }

    /// The bytes that [`Self::parse`] reads.
    pub fn encode(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    /// The extra data, which nothing vouches for.
    pub fn extra(&self) -> Option<&[u8]> {
        self.extra.as_deref()
    }

    /// The number of the leaf, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The proof, sibling of the leaf first.
    pub fn hashes(&self) -> &[Digest] {
        &self.hashes
    }

    /// The checkpoint that the proof leads to.
    pub fn checkpoint(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }

    /// Checks the checkpoint's signatures as [`SignedCheckpoint::verify`] does, and that the leaf
    /// is in the tree it names. `leaf` is the leaf hash, not the hash of the entry.
    ///
    /// # Errors
    /// When either does not hold.
    pub fn verify(
        &self,
        leaf: &Digest,
        keys: &[VerifierKey],
    ) -> Result<Vec<VerifiedSignature>, ProofError> {
        let verified = self.checkpoint.verify(keys)?;
        let (size, root) = (
            self.checkpoint.checkpoint().size,
            self.checkpoint.checkpoint().root,
        );
        if merkle::verify_inclusion(self.index, size, leaf, &self.hashes, &root) {
            Ok(verified)
        } else {
            Err(ProofError::NotIncluded {
                leaf: *leaf,
                index: self.index,
                size,
            })
        }
    }
}

impl fmt::Display for ProofFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", base64::encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        for hash in &self.hashes {
            writeln!(f, "{}", hash.to_base64())?;
        }
        write!(f, "\n{}", self.checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::signed::NoteError;
    use super::super::worked;
    use super::*;

    fn hash(hex: &str) -> Digest {
        Digest::from_hex(hex).unwrap()
    }

    fn leaf() -> Digest {
        hash("1a94c52185af5e03889183ec23dc393e3a0a2be46ea089b890c5d9e39e114d97")
    }

    fn example(extra: Option<Vec<u8>>) -> ProofFile {
        let hashes = vec![
            hash("d5bdb58a19173a6a0111df3f1f62dbaa00e44221e0f09b47489812a010cd5314"),
            hash("718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d"),
            hash("8e1f887cfc7c7a5e43f202daf67d99ae8f8fd4b33a6b251bcf9f5d83476303ea"),
        ];
        let checkpoint = SignedCheckpoint::parse(worked::NOTE.as_bytes()).unwrap();
        ProofFile::new(extra, 2, hashes, checkpoint).unwrap()
    }

    #[test]
    fn the_worked_proof_file_is_reproduced_to_the_byte_and_verifies() {
        let proof = example(None);
        let bytes = proof.encode();
        assert_eq!(bytes.len(), 480);
        assert_eq!(
            Digest::sha256(&bytes),
            hash("c239dcdc9b322530420fff5a356929efada4eabc1fa48ab3ddf717adaa262e1b"),
        );
        assert_eq!(ProofFile::parse(&bytes), Ok(proof.clone()));
        let keys = [worked::log().0, worked::witness().0];
        assert_eq!(proof.verify(&leaf(), &keys).unwrap().len(), 2);
        let leaf = merkle::leaf_hash(b"e2");
        let (index, size) = (2, 5);
        assert_eq!(
            proof.verify(&leaf, &keys),
            Err(ProofError::NotIncluded { leaf, index, size }),
        );
        assert_eq!(
            proof.verify(&leaf, &[]),
            Err(ProofError::Checkpoint(NoteError::NoneKnown.into())),
        );
    }

    #[test]
    fn extra_data_is_kept_and_not_part_of_what_is_proven() {
        let longest = vec![7; MAX_EXTRA_BYTES];
        for extra in [&b""[..], b"\0\xff", &longest] {
            let proof = example(Some(extra.to_vec()));
            let read = ProofFile::parse(&proof.encode()).unwrap();
            assert_eq!(read, proof);
            assert_eq!(read.extra(), Some(extra));
            assert!(read.verify(&leaf(), &[worked::log().0]).is_ok());
        }
    }

    #[test]
    fn any_changed_bit_is_refused_or_changes_what_is_not_signed() {
        let good = example(None).encode();
        let keys = [worked::log().0, worked::witness().0];
        for place in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[place] ^= 1 << bit;
                let Ok(proof) = ProofFile::parse(&bytes) else {
                    continue;
                };
                assert_eq!(proof.encode(), bytes);
                let accepted = proof.verify(&leaf(), &keys).map_or(0, |found| found.len());
                assert!(accepted < 2, "bit {bit} of byte {place}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_proof_file() {
        let good = String::from_utf8(example(None).encode()).unwrap();
        let refused = |from: &str, to: &str| {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            ProofFile::parse(bad.as_bytes()).unwrap_err()
        };
        let bytes = MAX_FILE_BYTES + 1;
        assert_eq!(
            ProofFile::parse(&vec![0; bytes]),
            Err(ProofError::TooLong { bytes })
        );
        assert_eq!(
            ProofFile::parse(b"\xff"),
            Err(ProofError::Utf8 { offset: 0 })
        );
        assert_eq!(ProofFile::parse(b""), Err(ProofError::NoBlankLine));
        assert_eq!(refused("@v1", "@v2"), ProofError::Magic);
        assert_eq!(refused("@v1\n", "@v1\n\n"), ProofError::Index);
        assert_eq!(refused("index 2", "extra A\nindex 2"), ProofError::Extra);
        for bad in [
            "index 02",
            "index",
            "index -1",
            "Index 2",
            "extra AA==\nextra AA==\nindex 2",
        ] {
            assert_eq!(refused("index 2", bad), ProofError::Index, "{bad}");
        }
        assert_eq!(
            refused("index 2\n", "index 2\nAA==\n"),
            ProofError::Hash { hash: 0 }
        );
        let line = format!("{}\n", leaf().to_base64());
        assert_eq!(
            refused("index 2\n", &format!("index 2\n{}", line.repeat(61))),
            ProofError::TooManyHashes { found: 64 },
        );
        assert!(matches!(
            refused("\n5\n", "\n05\n"),
            ProofError::Checkpoint(_)
        ));
        let checkpoint = example(None).checkpoint().clone();
        let extra = Some(vec![0; MAX_EXTRA_BYTES + 1]);
        let long = ProofFile::new(extra, 0, vec![], checkpoint);
        assert_eq!(long, Err(ProofError::Extra));
    }
}
