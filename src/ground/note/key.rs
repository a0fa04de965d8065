//! Names of logs and witnesses, and their public keys as C2SP verifier keys. Bytes: see [`super`].

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ed25519_dalek::Signature;
use ed25519_dalek::VerifyingKey;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use sha2::Digest as _;
use sha2::Sha256;
use thiserror::Error;

use crate::base64;

use super::signed::cosign_message;

/// The most bytes an origin or key name may have.
pub const MAX_NAME_BYTES: usize = 200;

/// Standard padded base64, only in the one form that encodes back to itself.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    base64::decode(text.as_bytes())
}

/// A decimal `u64` without sign or leading zeros.
pub(super) fn parse_decimal(text: &str) -> Option<u64> {
    let value = text.parse::<u64>().ok()?;
    (value.to_string() == text).then_some(value)
}

/// A text that is no key name or no origin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// It is empty.
    #[error("expected a name, found nothing")]
    Empty,
    /// It is over [`MAX_NAME_BYTES`].
    #[error("expected a name of at most {MAX_NAME_BYTES} bytes, found {bytes}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It holds a space, a plus or a control character.
    #[error("expected a name without spaces, plus signs and control characters, found {found:?}")]
    Forbidden {
        /// The first such character.
        found: char,
    },
    /// An origin holds something else than printable lower-case ASCII.
    #[error("expected an origin of lower-case ASCII, found {found:?}")]
    NotLowerAscii {
        /// The first such character.
        found: char,
    },
    /// An origin is a URL with a schema.
    #[error("expected an origin without a schema, found \"://\"")]
    Schema,
}

/// The name of any signer of notes: not empty, at most 200 bytes, no Unicode space, no plus, no
/// control character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

impl KeyName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is none of what the type describes.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong { bytes: text.len() });
        }
        match text
            .chars()
            .find(|c| c.is_whitespace() || c.is_control() || *c == '+')
        {
            Some(found) => Err(NameError::Forbidden { found }),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of one of our own logs: a [`KeyName`] of lower-case ASCII without a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(KeyName);

impl Origin {
    /// Checks an origin.
    ///
    /// # Errors
    /// When it is none of what the type describes.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let name = KeyName::parse(text)?;
        if let Some(found) = text
            .chars()
            .find(|c| !c.is_ascii() || c.is_ascii_uppercase())
        {
            return Err(NameError::NotLowerAscii { found });
        }
        if text.contains("://") {
            return Err(NameError::Schema);
        }
        Ok(Self(name))
    }

    /// The origin.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The origin as the name of the log's key.
    pub fn key_name(&self) -> &KeyName {
        &self.0
    }
}

impl From<Origin> for KeyName {
    fn from(origin: Origin) -> Self {
        origin.0
    }
}

impl FromStr for KeyName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl FromStr for Origin {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What kind of signature a key makes: the byte before the public key in a verifier key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SigType {
    /// 0x01: Ed25519 over the text. Checked here.
    Ed25519,
    /// 0x02: ECDSA. Opaque here.
    Ecdsa,
    /// 0x04: timestamped Ed25519 cosignature of a checkpoint. Checked here.
    Cosignature,
    /// 0x05: RFC 6962 tree head. Opaque here.
    TreeHead,
    /// 0x06: ML-DSA-44 cosignature of a (sub)tree. Opaque here.
    MlDsa44,
    /// Any other byte. Opaque here.
    Other(u8),
}

impl SigType {
    /// The kind that a byte stands for.
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            0x01 => Self::Ed25519,
            0x02 => Self::Ecdsa,
            0x04 => Self::Cosignature,
            0x05 => Self::TreeHead,
            0x06 => Self::MlDsa44,
            other => Self::Other(other),
        }
    }

    /// The byte that stands for the kind.
    pub fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Ecdsa => 0x02,
            Self::Cosignature => 0x04,
            Self::TreeHead => 0x05,
            Self::MlDsa44 => 0x06,
            Self::Other(byte) => byte,
        }
    }
}

/// A text that is no verifier key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VkeyError {
    /// It does not have three parts, or one is not written as it should be.
    #[error("expected name+8 lower-case hex digits+base64 of a type byte and a public key")]
    Form,
    /// The name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The key id is not the one of this name and key.
    #[error("expected key id {expected:08x}, found {found:08x}")]
    KeyId {
        /// The id that name, type and public key give.
        expected: u32,
        /// The id in the text.
        found: u32,
    },
    /// The public key is no canonical Ed25519 point, or is of small order.
    #[error("expected a canonical Ed25519 public key of 32 bytes, not of small order")]
    PublicKey,
}

/// The public key of a signer of notes, with its name. Text form: a C2SP vkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    key_id: [u8; 4],
    kind: SigType,
    public_key: Vec<u8>,
    /// For the kinds that are checked here.
    ed25519: Option<VerifyingKey>,
}

impl VerifierKey {
    /// The Ed25519 key (0x01) of a log.
    ///
    /// # Errors
    /// When the bytes are no canonical point, or one of small order.
    pub fn ed25519(name: impl Into<KeyName>, public_key: [u8; 32]) -> Result<Self, VkeyError> {
        Self::checked(name.into(), SigType::Ed25519, public_key.to_vec())
    }

    /// The Ed25519 cosignature key (0x04) of a witness.
    ///
    /// # Errors
    /// When the bytes are no canonical point, or one of small order.
    pub fn cosignature(name: impl Into<KeyName>, public_key: [u8; 32]) -> Result<Self, VkeyError> {
        Self::checked(name.into(), SigType::Cosignature, public_key.to_vec())
    }

    fn checked(name: KeyName, kind: SigType, public_key: Vec<u8>) -> Result<Self, VkeyError> {
        let ed25519 = match kind {
            SigType::Ed25519 | SigType::Cosignature => Some(strict_point(&public_key)?),
            _ => None,
        };
        let key_id = derive_key_id(&name, kind, &public_key);
        Ok(Self {
            name,
            key_id,
            kind,
            public_key,
            ed25519,
        })
    }

    /// Reads a vkey. The key id must be the one that name and key give, save for kinds whose ids
    /// are made in other ways (0x02, 0x05, unknown ones), where it stands as it is.
    ///
    /// # Errors
    /// When the text is no vkey, its id is not that of the key, or an Ed25519 key is not sound.
    pub fn parse(text: &str) -> Result<Self, VkeyError> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VkeyError::Form);
        };
        let name = KeyName::parse(name)?;
        let found = parse_key_id(id).ok_or(VkeyError::Form)?;
        let key = decode_base64(key).ok_or(VkeyError::Form)?;
        let (kind, public_key) = key.split_first().ok_or(VkeyError::Form)?;
        let kind = SigType::from_byte(*kind);
        let mut vkey = Self::checked(name, kind, public_key.to_vec())?;
        match kind {
            SigType::Ecdsa | SigType::TreeHead | SigType::Other(_) => vkey.key_id = found,
            _ if vkey.key_id == found => (),
            _ => {
                return Err(VkeyError::KeyId {
                    expected: u32::from_be_bytes(vkey.key_id),
                    found: u32::from_be_bytes(found),
                });
            }
        }
        Ok(vkey)
    }

    /// Whose key it is.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// The id by which a signature names the key.
    pub fn key_id(&self) -> [u8; 4] {
        self.key_id
    }

    /// What kind of signature it makes.
    pub fn kind(&self) -> SigType {
        self.kind
    }

    /// The public key, 32 bytes for the kinds that are checked here.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Whether signatures of this key can be checked here (0x01 and 0x04).
    pub fn is_checkable(&self) -> bool {
        self.ed25519.is_some()
    }

    /// Whether `signature` (without key id) is this key's over `text`. Gives the time of a
    /// cosignature, in Unix seconds.
    pub(super) fn check(&self, text: &str, signature: &[u8]) -> Result<Option<u64>, BadSignature> {
        let key = self.ed25519.as_ref().ok_or(BadSignature)?;
        let (time, signature) = match self.kind {
            SigType::Cosignature => {
                let (time, rest) = signature.split_first_chunk::<8>().ok_or(BadSignature)?;
                (Some(u64::from_be_bytes(*time)), rest)
            }
            _ => (None, signature),
        };
        let signature = Signature::from_slice(signature).map_err(|_| BadSignature)?;
        let verdict = match time {
            Some(time) => key.verify_strict(&cosign_message(time, text), &signature),
            None => key.verify_strict(text.as_bytes(), &signature),
        };
        verdict.map_err(|_| BadSignature)?;
        Ok(time)
    }
}

/// A signature that is not of the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadSignature;

/// A point in its canonical encoding and not of small order; the rest of strictness is in
/// `verify_strict`.
fn strict_point(bytes: &[u8]) -> Result<VerifyingKey, VkeyError> {
    let key = VerifyingKey::try_from(bytes).map_err(|_| VkeyError::PublicKey)?;
    if key.is_weak() || key.to_edwards().compress().as_bytes() != bytes {
        return Err(VkeyError::PublicKey);
    }
    Ok(key)
}

fn derive_key_id(name: &KeyName, kind: SigType, public_key: &[u8]) -> [u8; 4] {
    let hash = Sha256::new()
        .chain_update(name.as_str())
        .chain_update([b'\n', kind.byte()])
        .chain_update(public_key)
        .finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

fn parse_key_id(text: &str) -> Option<[u8; 4]> {
    let id = u32::from_str_radix(text, 16).ok()?;
    (format!("{id:08x}") == text).then_some(id.to_be_bytes())
}

impl FromStr for VerifierKey {
    type Err = VkeyError;

    fn from_str(text: &str) -> Result<Self, VkeyError> {
        Self::parse(text)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![self.kind.byte()];
        key.extend_from_slice(&self.public_key);
        let id = u32::from_be_bytes(self.key_id);
        write!(f, "{}+{id:08x}+{}", self.name, base64::encode(&key))
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::worked;
    use super::*;

    #[test]
    fn names_and_origins() {
        for good in ["a", "ledger.example/exp1", &"x".repeat(200)] {
            assert_eq!(Origin::parse(good).unwrap().as_str(), good);
            assert_eq!(KeyName::parse(good).unwrap().to_string(), good);
        }
        assert_eq!(KeyName::parse("Ünï://X").unwrap().as_str(), "Ünï://X");
        assert_eq!(KeyName::parse(""), Err(NameError::Empty));
        assert_eq!(Origin::parse(""), Err(NameError::Empty));
        let bytes = 201;
        assert_eq!(
            KeyName::parse(&"x".repeat(bytes)),
            Err(NameError::TooLong { bytes })
        );
        for found in [
            ' ', '+', '\n', '\0', '\u{7f}', '\u{85}', '\u{a0}', '\u{2003}',
        ] {
            let name = format!("a{found}b");
            assert_eq!(KeyName::parse(&name), Err(NameError::Forbidden { found }));
            assert_eq!(Origin::parse(&name), Err(NameError::Forbidden { found }));
        }
        for found in ['A', 'ü'] {
            let name = format!("a{found}");
            assert_eq!(
                Origin::parse(&name),
                Err(NameError::NotLowerAscii { found })
            );
        }
        assert_eq!(Origin::parse("https://a"), Err(NameError::Schema));
    }

    #[test]
    fn vkeys_of_the_worked_example() {
        let (log, _) = worked::log();
        let (witness, _) = worked::witness();
        assert_eq!(log.to_string(), worked::LOG_VKEY);
        assert_eq!(witness.to_string(), worked::WITNESS_VKEY);
        assert_eq!(worked::LOG_VKEY.parse(), Ok(log));
        assert_eq!(worked::WITNESS_VKEY.parse(), Ok(witness));
    }

    #[test]
    fn other_kinds_are_kept_as_they_are() {
        for kind in [0x02, 0x05, 0x7b, 0xff] {
            let text = format!("a+0badcafe+{}", base64::encode(&[kind, 1, 2, 3]));
            let key = VerifierKey::parse(&text).unwrap();
            assert_eq!(key.to_string(), text);
            assert_eq!(key.kind(), SigType::from_byte(kind));
            assert_eq!(key.kind().byte(), kind);
            assert!(!key.is_checkable());
            assert!(key.check("", &[0; 64]).is_err());
        }
    }

    #[test]
    fn vkeys_that_are_none() {
        let good = worked::LOG_VKEY;
        for bad in [
            "",
            "a",
            "a+4fdfa565",
            "a+4fdfa565+",
            "a+4fdfa565+AQ=",
            "a+4FDFA565+AQ==",
            "a++4fdfa56+AQ==",
            &good[..good.len() - 1],
            &format!("{good} "),
        ] {
            assert!(VerifierKey::parse(bad).is_err(), "{bad}");
        }
        let bad = good.replace("4fdfa565", "4fdfa566");
        assert_eq!(
            VerifierKey::parse(&bad),
            Err(VkeyError::KeyId {
                expected: 0x4fdf_a565,
                found: 0x4fdf_a566
            }),
        );
        let bad = good.replace(worked::LOG, "");
        assert_eq!(
            VerifierKey::parse(&bad),
            Err(VkeyError::Name(NameError::Empty))
        );
    }

    #[test]
    fn weak_and_non_canonical_points_are_no_keys() {
        let refused = |bytes| {
            let name = KeyName::parse("a").unwrap();
            VerifierKey::ed25519(name, bytes) == Err(VkeyError::PublicKey)
        };
        // The identity, y = 1, is of small order.
        let mut bytes = [0; 32];
        bytes[0] = 1;
        assert!(refused(bytes));
        // y = p + 3 and its like encode points a second time: p = 2^255 - 19 ends in 0xed.
        let mut decoded = 0;
        for low in 0xed..=0xff {
            for sign in [0x7f, 0xff] {
                let mut bytes = [0xff; 32];
                (bytes[0], bytes[31]) = (low, sign);
                decoded += u8::from(VerifyingKey::from_bytes(&bytes).is_ok());
                assert!(refused(bytes));
            }
        }
        assert!(decoded > 0, "the check of canonical form has work to do");
    }
}
