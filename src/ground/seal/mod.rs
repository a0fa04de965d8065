//! Sealing: label commitments, age envelopes, and private blobs under a key per subject.
//!
//! Three things that keep bytes unreadable until someone may read them:
//!
//! 1. **Commitments** to a sealed label, and the 40 bytes that open one
//!    ([`commitment`], [`LabelOpening`]).
//! 2. **age v1 envelopes** with X25519 recipients ([`encrypt`], [`decrypt`], [`check_header`]),
//!    whose byte format stands in the module `age`. The stock `age` tool opens what is written
//!    here and writes what is opened here.
//! 3. **Private blobs** encrypted under a key per subject ([`encrypt_blob`], [`decrypt_blob`]),
//!    their plaintext commitments, and keyed identifiers. Destroying the subject's key
//!    destroys blob, salt and identifier key together.
//!
//! Files, base64 of envelopes and the vault that holds subject keys are the neighbours' work;
//! randomness comes in through [`Entropy`]. Key files of signing keys: [`super::keyfile`].
//!
//! # Byte formats
//!
//! Commitment: `SHA-256("clover/label/v1" ‖ 0x00 ‖ u16be len(origin) ‖ origin ‖ u16be len(design)
//! ‖ design ‖ u16be len(row) ‖ row ‖ salt[32] ‖ i64be value_micro)`.
//! Opening: `salt[32] ‖ i64be value_micro`, always 40 bytes, so that length tells nothing.
//!
//! Blob: `"clover/blob/v1\n" ‖ nonce[24] ‖ XChaCha20-Poly1305(salt[32] ‖ plaintext)`, the magic
//! being the associated data. Plaintext commitment: `SHA-256("clover/private/v1" ‖ 0x00 ‖
//! salt[32] ‖ plaintext)`. Identifier: `HMAC-SHA-256(key, UTF-8 bytes)`. The keys come from the
//! subject key (or the pepper) by HKDF-SHA-256 without salt, `info` being one of
//! `clover/subject/v1/encrypt`, `clover/subject/v1/identify`, `clover/pepper/v1/identify`.

mod age;
mod age_header;
mod age_key;
mod age_passphrase;

use std::fmt;

use chacha20poly1305::KeyInit;
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::Aead;
use chacha20poly1305::aead::Payload;
use hkdf::Hkdf;
use hmac::Hmac;
use hmac::Mac;
use sha2::Sha256;
use zeroize::Zeroize;
use zeroize::ZeroizeOnDrop;
use zeroize::Zeroizing;

pub use self::age::AGE_HEADER_MAX;
pub use self::age::AGE_STANZAS_MAX;
pub use self::age::AgeError;
pub use self::age::check_header;
pub use self::age::decrypt;
pub use self::age::encrypt;
pub use self::age_key::Identity;
pub use self::age_key::Recipient;
pub use self::age_passphrase::decrypt_with_passphrase;
pub use self::age_passphrase::encrypt_with_passphrase;
use crate::ambient::AmbientError;
use crate::ambient::Entropy;
use crate::digest::Digest;

const LABEL_DOMAIN: &[u8] = b"clover/label/v1\0";
const PRIVATE_DOMAIN: &[u8] = b"clover/private/v1\0";

const SUBJECT_ENCRYPT: &[u8] = b"clover/subject/v1/encrypt";
const SUBJECT_IDENTIFY: &[u8] = b"clover/subject/v1/identify";
const PEPPER_IDENTIFY: &[u8] = b"clover/pepper/v1/identify";

const BLOB_MAGIC: &[u8] = b"clover/blob/v1\n";
const BLOB_NONCE_BYTES: usize = 24;
const SALT_BYTES: usize = 32;

/// Length of the plaintext of a sealed label, in bytes.
pub const LABEL_OPENING_BYTES: usize = 40;

/// The least step to which the length of a sealed file is rounded, in bytes.
const PADDING_MIN: usize = 4096;

/// The length to which a file of `len` bytes is padded before it is sealed: a multiple of 4,096, and of a larger power of
/// two for a larger file, so that at most an eighth is added.
pub fn padded_len(len: usize) -> usize {
    let step = (len.next_power_of_two() / 16).max(PADDING_MIN);
    len.max(1).next_multiple_of(step)
}

/// The commitment that `label.sealed` publishes for one row.
///
/// `value_micro` is in millionths. The three texts are taken as their UTF-8 bytes. Ids and
/// origins are far below 65,535 bytes by their own grammar; a longer text would be framed with
/// the length 65,535, which still binds salt and value for given texts.
pub fn commitment(
    origin: &str,
    design: &str,
    row: &str,
    salt: &[u8; 32],
    value_micro: i64,
) -> Digest {
    let mut message = Zeroizing::new(Vec::with_capacity(
        LABEL_DOMAIN.len() + origin.len() + design.len() + row.len() + 6 + LABEL_OPENING_BYTES,
    ));
    message.extend_from_slice(LABEL_DOMAIN);
    for part in [origin, design, row] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(part.as_bytes());
    }
    message.extend_from_slice(salt);
    message.extend_from_slice(&value_micro.to_be_bytes());
    Digest::sha256(&message)
}

/// What opens a label commitment: the plaintext of the envelope in `label.sealed`.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct LabelOpening {
    /// 32 random bytes that hide the value.
    pub salt: [u8; 32],
    /// The label in millionths.
    pub value_micro: i64,
}

impl LabelOpening {
    /// An opening of `value_micro` with a fresh salt.
    ///
    /// # Errors
    /// When no entropy is to be had.
    pub fn draw(value_micro: i64, entropy: &mut dyn Entropy) -> Result<Self, AmbientError> {
        let mut opening = Self {
            salt: [0; 32],
            value_micro,
        };
        entropy.fill(&mut opening.salt)?;
        Ok(opening)
    }

    /// `salt ‖ value_micro` (big-endian), exactly 40 bytes.
    pub fn to_bytes(&self) -> Zeroizing<[u8; LABEL_OPENING_BYTES]> {
        let mut bytes = Zeroizing::new([0; LABEL_OPENING_BYTES]);
        bytes[..SALT_BYTES].copy_from_slice(&self.salt);
        bytes[SALT_BYTES..].copy_from_slice(&self.value_micro.to_be_bytes());
        bytes
    }

    /// Reads what [`LabelOpening::to_bytes`] wrote; `None` unless there are exactly 40 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (salt, value) = bytes.split_first_chunk::<SALT_BYTES>()?;
        let value_micro = i64::from_be_bytes(value.try_into().ok()?);
        Some(Self {
            salt: *salt,
            value_micro,
        })
    }

    /// The commitment that this opens, see [`commitment`].
    pub fn commitment(&self, origin: &str, design: &str, row: &str) -> Digest {
        commitment(origin, design, row, &self.salt, self.value_micro)
    }
}

impl fmt::Debug for LabelOpening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LabelOpening(secret)")
    }
}

/// Why a private blob was not written or not opened.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The source of randomness failed.
    #[error("no randomness for the private blob")]
    Entropy(#[from] AmbientError),
    /// The bytes are not of the form that [`encrypt_blob`] writes.
    #[error("not a private blob: {0}")]
    Form(&'static str),
    /// The bytes were changed, or belong to another subject.
    #[error("the private blob does not open under this subject's key")]
    NotAuthentic,
}

/// The secret of one subject, from which everything private about that subject depends.
/// `Debug` hides it; wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SubjectKey([u8; 32]);

impl SubjectKey {
    /// A new key from 32 random bytes.
    ///
    /// # Errors
    /// When no entropy is to be had.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, AmbientError> {
        let mut key = Self([0; 32]);
        entropy.fill(&mut key.0)?;
        Ok(key)
    }

    /// The key with these bytes, as the vault keeps them.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(*bytes)
    }

    /// The bytes to keep in the vault, and nowhere else.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*derive_key(None, &self.0, SUBJECT_ENCRYPT)).into())
    }
}

impl fmt::Debug for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectKey(secret)")
    }
}

/// An encrypted blob and the commitment to its plaintext, which the event carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedBlob {
    /// The bytes to store.
    pub bytes: Vec<u8>,
    /// [`plaintext_commitment`] under the salt inside the blob.
    pub commitment: Digest,
}

/// What was inside a private blob; wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct OpenedBlob {
    /// The salt of the plaintext commitment.
    pub salt: [u8; 32],
    /// The bytes that were sealed.
    pub plaintext: Vec<u8>,
}

impl OpenedBlob {
    /// The commitment to compare with the event's.
    pub fn commitment(&self) -> Digest {
        plaintext_commitment(&self.salt, &self.plaintext)
    }
}

impl fmt::Debug for OpenedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedBlob({} secret bytes)", self.plaintext.len())
    }
}

/// Encrypts `plaintext` under the subject's key, with a fresh salt and nonce.
///
/// # Errors
/// [`BlobError::Entropy`]; [`BlobError::Form`] beyond 256 GiB, the cipher's limit.
pub fn encrypt_blob(
    subject_key: &SubjectKey,
    plaintext: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<SealedBlob, BlobError> {
    let mut salt = Zeroizing::new([0; SALT_BYTES]);
    entropy.fill(salt.as_mut_slice())?;
    let mut nonce = [0; BLOB_NONCE_BYTES];
    entropy.fill(&mut nonce)?;

    let mut inner = Zeroizing::new(Vec::with_capacity(SALT_BYTES + plaintext.len()));
    inner.extend_from_slice(salt.as_slice());
    inner.extend_from_slice(plaintext);
    let sealed = subject_key
        .cipher()
        .encrypt(
            &nonce.into(),
            Payload {
                msg: &inner,
                aad: BLOB_MAGIC,
            },
        )
        .map_err(|_| BlobError::Form("too long for the cipher"))?;

    let mut bytes = Vec::with_capacity(BLOB_MAGIC.len() + BLOB_NONCE_BYTES + sealed.len());
    bytes.extend_from_slice(BLOB_MAGIC);
    bytes.extend_from_slice(&nonce);
    bytes.extend_from_slice(&sealed);
    Ok(SealedBlob {
        bytes,
        commitment: plaintext_commitment(&salt, plaintext),
    })
}

/// Opens what [`encrypt_blob`] wrote under the same key.
///
/// # Errors
/// [`BlobError::Form`] when the bytes are no such blob, [`BlobError::NotAuthentic`] otherwise.
pub fn decrypt_blob(subject_key: &SubjectKey, bytes: &[u8]) -> Result<OpenedBlob, BlobError> {
    let rest = bytes
        .strip_prefix(BLOB_MAGIC)
        .ok_or(BlobError::Form("other first bytes"))?;
    let (nonce, sealed) = rest
        .split_first_chunk::<BLOB_NONCE_BYTES>()
        .ok_or(BlobError::Form("it ends before its nonce does"))?;
    let inner = subject_key
        .cipher()
        .decrypt(
            &(*nonce).into(),
            Payload {
                msg: sealed,
                aad: BLOB_MAGIC,
            },
        )
        .map_err(|_| BlobError::NotAuthentic)?;
    let inner = Zeroizing::new(inner);
    let (salt, plaintext) = inner
        .split_first_chunk::<SALT_BYTES>()
        .ok_or(BlobError::Form("too short for a salt"))?;
    Ok(OpenedBlob {
        salt: *salt,
        plaintext: plaintext.to_vec(),
    })
}

/// The commitment to a private plaintext; nothing can be guessed against it once the salt,
/// which lives only inside the encrypted blob, is gone.
pub fn plaintext_commitment(salt: &[u8; 32], plaintext: &[u8]) -> Digest {
    let mut message = Zeroizing::new(Vec::with_capacity(
        PRIVATE_DOMAIN.len() + SALT_BYTES + plaintext.len(),
    ));
    message.extend_from_slice(PRIVATE_DOMAIN);
    message.extend_from_slice(salt);
    message.extend_from_slice(plaintext);
    Digest::sha256(&message)
}

/// The pseudonym of `identifier` (its UTF-8 bytes, as given) under the subject's key.
pub fn subject_identifier(subject_key: &SubjectKey, identifier: &str) -> Digest {
    identifier_mac(&subject_key.0, SUBJECT_IDENTIFY, identifier)
}

/// The pseudonym of `identifier` under the ledger's pepper, for rows without a subject.
pub fn peppered_identifier(pepper: &[u8; 32], identifier: &str) -> Digest {
    identifier_mac(pepper, PEPPER_IDENTIFY, identifier)
}

fn identifier_mac(secret: &[u8; 32], label: &[u8], identifier: &str) -> Digest {
    let key = derive_key(None, secret, label);
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_slice()).expect("BUG: HMAC takes keys of any length");
    mac.update(identifier.as_bytes());
    Digest(mac.finalize().into_bytes().into())
}

/// HKDF-SHA-256 to 32 bytes.
fn derive_key(salt: Option<&[u8]>, secret: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(salt, secret)
        .expand(info, key.as_mut_slice())
        .expect("BUG: 32 bytes are within HKDF's limit");
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives 0, 1, 2, … and then fails.
    struct Counting {
        next: u8,
        left: usize,
    }

    impl Entropy for Counting {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), AmbientError> {
            if out.len() > self.left {
                return Err(AmbientError::Entropy("the test's source is spent".into()));
            }
            self.left -= out.len();
            for byte in out {
                *byte = self.next;
                self.next = self.next.wrapping_add(1);
            }
            Ok(())
        }
    }

    fn counting() -> Counting {
        Counting {
            next: 0,
            left: usize::MAX,
        }
    }

    fn ascending(from: u8) -> [u8; 32] {
        std::array::from_fn(|i| from + u8::try_from(i).unwrap())
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn commitments_equal_those_of_python() {
        // source: python3 hashlib.sha256 over the framing of the module's doc, struct ">H", ">q".
        let expect = |parts: [&str; 3], salt: [u8; 32], value_micro: i64, expected: &str| {
            let [origin, design, row] = parts;
            let found = commitment(origin, design, row, &salt, value_micro);
            assert_eq!(hex(&found.0), expected);
            assert_eq!(
                LabelOpening { salt, value_micro }.commitment(origin, design, row),
                found
            );
        };
        expect(
            ["ledger.example/exp1", "audit-2026", "row/17"],
            ascending(0),
            731_000,
            "822d63d4471456e684e74aa34a78dbae366f81b2297c3b1e04ac5c90f79ac3ba",
        );
        expect(
            ["ledger.example/exp1", "audit-2026", "r\u{e9}sum\u{e9}"],
            ascending(0),
            -1,
            "660a88841aab0780cd47f72731ac18d769ec82344475d8a935f588beaa4575a0",
        );
        expect(
            ["", "", ""],
            [255; 32],
            i64::MIN,
            "f7dcaf3a05dba90ff1ac5fdf5a96ad1ec5eb0408fb12cfff46acca97c540dbf6",
        );
    }

    #[test]
    fn commitments_bind_the_borders_of_their_parts() {
        let salt = [7; 32];
        let whole = commitment("a", "bc", "d", &salt, 1);
        assert_ne!(whole, commitment("ab", "c", "d", &salt, 1));
        assert_ne!(whole, commitment("a", "b", "cd", &salt, 1));
        assert_ne!(whole, commitment("a", "bc", "d", &[8; 32], 1));
        assert_ne!(whole, commitment("a", "bc", "d", &salt, 2));
        let long = "x".repeat(70_000);
        assert_ne!(
            commitment(&long, "", "", &salt, 1),
            commitment(&long, "", "", &salt, 2)
        );
    }

    #[test]
    fn sealed_lengths_are_few() {
        for (len, padded) in [
            (0, 4_096),
            (1, 4_096),
            (4_096, 4_096),
            (4_097, 8_192),
            (100_000, 106_496),
            (1_000_001, 1_048_576),
        ] {
            assert_eq!(padded_len(len), padded, "{len}");
        }
        for len in [70_000_usize, 300_001, 5_000_000] {
            let padded = padded_len(len);
            assert!(padded >= len && padded - len <= len / 8, "{len} {padded}");
            assert_eq!(padded_len(padded), padded);
        }
    }

    #[test]
    fn openings_have_forty_bytes() {
        let opening = LabelOpening::draw(-731_000, &mut counting()).unwrap();
        assert_eq!(opening.salt, ascending(0));
        let bytes = opening.to_bytes();
        assert_eq!(hex(&bytes[32..]), "fffffffffff4d888");
        assert_eq!(LabelOpening::from_bytes(bytes.as_slice()).unwrap(), opening);
        for length in [0, 31, 32, 39, 41] {
            assert_eq!(LabelOpening::from_bytes(&vec![1; length]), None, "{length}");
        }
        assert!(LabelOpening::draw(1, &mut Counting { next: 0, left: 31 }).is_err());
        assert_eq!(format!("{opening:?}"), "LabelOpening(secret)");
    }

    #[test]
    fn blobs_and_identifiers_equal_those_of_python() {
        // source: a python3 XChaCha20-Poly1305 over hashlib and hmac, itself held to RFC 8439
        // section 2.8.2 and to draft-irtf-cfrg-xchacha-03 section 2.2.1.
        let key = SubjectKey::from_bytes(&ascending(0x20));
        let blob = encrypt_blob(&key, b"a prompt", &mut counting()).unwrap();
        assert_eq!(
            hex(&blob.bytes),
            "636c6f7665722f626c6f622f76310a202122232425262728292a2b2c2d2e2f30313233343536377842\
             5392f5a7e2493c55efb6bddb75f51e03f5327f0781d5a110de0b5ddc21350f93f6b8ed01ab34afe0dc\
             d2469080679b383b0a21aab1d6"
        );
        let commitment = "56684993339a9b2406a88ec32a310c21f08ef5bd6844db5efdaed1a61b9ae3f7";
        assert_eq!(hex(&blob.commitment.0), commitment);
        assert_eq!(
            hex(&subject_identifier(&key, "worker 12").0),
            "7a92648dd936876d7f2e9d404a3c47ab384e45356704651535fe7e619b49d063"
        );
        assert_eq!(
            hex(&peppered_identifier(&ascending(0x20), "worker 12").0),
            "9f02778fceddac4334f7dce4e83a8a8ebdd9ee6824a6beab7f711d554d14a0d5"
        );
    }

    #[test]
    fn blobs_open_under_their_key_alone() {
        let mut entropy = counting();
        let key = SubjectKey::generate(&mut entropy).unwrap();
        let other = SubjectKey::generate(&mut entropy).unwrap();
        for plaintext in [&b""[..], b"x", &[9; 5_000]] {
            let blob = encrypt_blob(&key, plaintext, &mut entropy).unwrap();
            let opened = decrypt_blob(&key, &blob.bytes).unwrap();
            assert_eq!(opened.plaintext, plaintext);
            assert_eq!(opened.commitment(), blob.commitment);
            assert_ne!(
                opened.commitment(),
                plaintext_commitment(&[0; 32], plaintext)
            );
            let refused = decrypt_blob(&other, &blob.bytes).unwrap_err();
            assert!(matches!(refused, BlobError::NotAuthentic));
        }
        assert_eq!(format!("{key:?}"), "SubjectKey(secret)");
    }

    #[test]
    fn blobs_refuse_every_flipped_bit_and_every_cut() {
        let key = SubjectKey::from_bytes(&[3; 32]);
        let blob = encrypt_blob(&key, b"a prompt", &mut counting())
            .unwrap()
            .bytes;
        for bit in 0..blob.len() * 8 {
            let mut flipped = blob.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decrypt_blob(&key, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..blob.len() {
            assert!(
                decrypt_blob(&key, &blob[..length]).is_err(),
                "cut to {length}"
            );
        }
        assert!(decrypt_blob(&key, &[&blob[..], b"x"].concat()).is_err());
    }

    #[test]
    fn blobs_need_a_salt_inside() {
        let key = SubjectKey::from_bytes(&[3; 32]);
        let nonce = [0; BLOB_NONCE_BYTES];
        let sealed = key
            .cipher()
            .encrypt(
                &nonce.into(),
                Payload {
                    msg: &[1; 31],
                    aad: BLOB_MAGIC,
                },
            )
            .unwrap();
        let bytes = [BLOB_MAGIC, &nonce, &sealed].concat();
        assert!(matches!(
            decrypt_blob(&key, &bytes),
            Err(BlobError::Form(_))
        ));
    }

    #[test]
    fn failing_entropy_writes_nothing() {
        let key = SubjectKey::from_bytes(&[3; 32]);
        for left in [0, 31, 32, 55] {
            let refused = encrypt_blob(&key, b"", &mut Counting { next: 0, left }).unwrap_err();
            assert!(matches!(refused, BlobError::Entropy(_)));
        }
        assert!(SubjectKey::generate(&mut Counting { next: 0, left: 31 }).is_err());
    }

    proptest! {
        #[test]
        fn decrypt_blob_never_panics(bytes: Vec<u8>, magic: bool) {
            let bytes = if magic { [BLOB_MAGIC, &bytes].concat() } else { bytes };
            prop_assert!(decrypt_blob(&SubjectKey::from_bytes(&[1; 32]), &bytes).is_err());
            LabelOpening::from_bytes(&bytes);
        }
    }
}
