//! Signed notes, checkpoints, cosignatures and proof files, as C2SP specifies them.
//!
//! Gives: names and verifier keys; [`Note`] (text and signatures); [`Checkpoint`] and
//! [`SignedCheckpoint`]; witness cosignatures; [`compare`], which tells fork from order;
//! [`ProofFile`]. Leaves: the tree to [`super::merkle`], event signatures (DSSE) and private keys
//! to `sign`, when and over what a checkpoint is signed to `ledger`. Nothing here reads a clock
//! or a file; every parser takes hostile bytes, and what it accepts encodes to the same bytes.
//!
//! ```text
//! note        text, ending in \n || \n || 1 to 64 of "— " name " " base64(key_id[4] || sig) "\n"
//! key_id      SHA-256(name || \n || type || public key)[..4]
//! vkey        name "+" hex(key_id) "+" base64(type || public key)
//! type 0x01   sig = Ed25519 over text
//! type 0x04   sig = u64 big-endian time || Ed25519 over "cosignature/v1\ntime " time "\n" text
//! checkpoint  text = origin \n size \n base64(root) \n (extension \n)*
//! .tlog-proof "c2sp.org/tlog-proof@v1\n" ("extra " base64 "\n")? "index " n "\n"
//!             (base64(hash) "\n")* "\n" checkpoint note
//! ```
//!
//! Sources: C2SP signed-note v1.0.0, tlog-checkpoint v1.0.0, tlog-cosignature v1.0.1, tlog-proof.
//! Narrower than those, on purpose: a note has at most 64 KiB and 64 signatures, a key name at
//! most 200 bytes, base64 is canonical, Ed25519 is strict (canonical points, none of small order,
//! S below the group order, no cofactor).
//!
//! ```
//! use clover_ground::digest::Digest;
//! use clover_ground::note::{Checkpoint, KeyName, SignedCheckpoint, VerifierKey};
//! use ed25519_dalek::SigningKey;
//!
//! let secret = SigningKey::from_bytes(&[7; 32]);
//! let name = KeyName::parse("ledger.example/exp1")?;
//! let key = VerifierKey::ed25519(name.clone(), secret.verifying_key().to_bytes())?;
//! let checkpoint = Checkpoint::new(name, 1, Digest::sha256(b"\0e0"));
//! let signed = SignedCheckpoint::sign(checkpoint, &[(key.clone(), &secret)])?;
//!
//! let read = SignedCheckpoint::parse(&signed.encode())?;
//! assert_eq!(read, signed);
//! assert_eq!(read.verify(&[key])?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod key;
mod proof;
mod signed;
#[cfg(test)]
mod worked;

pub use self::checkpoint::Checkpoint;
pub use self::checkpoint::CheckpointError;
pub use self::checkpoint::Comparison;
pub use self::checkpoint::SignedCheckpoint;
pub use self::checkpoint::compare;
pub use self::key::KeyName;
pub use self::key::MAX_NAME_BYTES;
pub use self::key::NameError;
pub use self::key::Origin;
pub use self::key::SigType;
pub use self::key::VerifierKey;
pub use self::key::VkeyError;
pub use self::proof::MAX_EXTRA_BYTES;
pub use self::proof::MAX_PROOF_HASHES;
pub use self::proof::ProofError;
pub use self::proof::ProofFile;
pub use self::signed::MAX_NOTE_BYTES;
pub use self::signed::MAX_SIGNATURES;
pub use self::signed::Note;
pub use self::signed::NoteError;
pub use self::signed::NoteSignature;
pub use self::signed::VerifiedSignature;
pub use self::signed::cosign_message;
