//! `Digest`: 32 bytes, never cut.
//!
//! Gives SHA-256 and BLAKE3-256 results one type, with hex (ids, keys) and base64 (tree roots) forms.
//! There is no truncation: short forms exist only where something is shown to a person
//! ([`Digest::short`]), so no identity can rest on a prefix.

use std::fmt;
use std::io;
use std::io::Read;
use std::io::Write;

use base64_simd::Out;
use base64_simd::STANDARD;
use blake2::Blake2b;
use blake2::digest::consts::U8;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use sha2::Digest as _;
use sha2::Sha256;

/// A 32-byte digest. Text form: 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

const HEX: &[u8; 16] = b"0123456789abcdef";

impl Digest {
    /// SHA-256 of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// BLAKE3-256 of `bytes`.
    pub fn blake3(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// SHA-256 of `label ‖ 0x00 ‖ bytes`: the domain-separated form that every hash outside a public
    /// format uses.
    pub fn labelled(label: &str, bytes: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(label.as_bytes());
        hasher.update([0]);
        hasher.update(bytes);
        Self(hasher.finalize().into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Exactly 64 lower-case hex digits, or `None`.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut out = [0; 32];
        from_hex_into(text.as_bytes(), &mut out).then_some(Self(out))
    }

    /// 64 lower-case hex digits.
    #[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
    pub fn to_hex(&self) -> String {
        let mut out = vec![0; 64];
        self.write_hex(&mut out);
        String::from_utf8(out).expect("BUG: hex is ASCII")
    }

    /// Writes 64 hex digits into the first 64 bytes of `out`.
    ///
    /// # Panics
    /// When `out` is shorter than 64 bytes.
    pub fn write_hex(&self, out: &mut [u8]) {
        for (pair, byte) in out[..64].as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        }
    }

    /// Standard padded base64 (44 characters), the form of tree roots.
    pub fn to_base64(&self) -> String {
        STANDARD.encode_to_string(self.0)
    }

    /// Canonical standard padded base64 of exactly 32 bytes, or `None`.
    pub fn from_base64(text: &str) -> Option<Self> {
        if text.len() != 44 {
            return None;
        }
        let mut bytes = [0; 33];
        let found = STANDARD.decode(text.as_bytes(), Out::from_slice(&mut bytes));
        let found = Self(<[u8; 32]>::try_from(&*found.ok()?).ok()?);
        // Of all texts that might be read as a digest only its own is one.
        let mut own = [0; 44];
        let own = STANDARD.encode_as_str(&found.0, Out::from_slice(&mut own));
        (own == text).then_some(found)
    }

    /// The first 12 hex digits, for people only.
    pub fn short(&self) -> impl fmt::Display {
        let mut hex = self.to_hex();
        hex.truncate(12);
        hex
    }
}

/// Hashes by SHA-256 what goes through it.
pub struct HashingWriter<W> {
    out: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Before the first byte.
    pub fn new(out: W) -> Self {
        Self {
            out,
            hasher: Sha256::new(),
            bytes: 0,
        }
    }

    /// The digest of what was written, and its length in bytes.
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.hasher.finalize().into()), self.bytes)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// SHA-256 of all that a reader still gives, and how many bytes those were.
///
/// # Errors
/// What the reader says.
pub fn sha256_stream(mut reader: impl Read) -> io::Result<(Digest, u64)> {
    let mut hashing = HashingWriter::new(io::sink());
    io::copy(&mut reader, &mut hashing)?;
    Ok(hashing.finish())
}

/// `BLAKE2b` with a digest of 8 bytes (RFC 7693, not a cut of the 64-byte one), as a big-endian integer: a hash
/// that puts things into parts, and no identity.
pub fn blake2b_64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(Blake2b::<U8>::digest(bytes).into())
}

/// Decodes lower-case hex into `out`; false when `text` is not exactly that.
pub fn from_hex_into(text: &[u8], out: &mut [u8]) -> bool {
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != out.len() {
        return false;
    }
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    for (byte, [high, low]) in out.iter_mut().zip(pairs) {
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            return false;
        };
        *byte = high << 4 | low;
    }
    true
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hex = [0; 64];
        self.write_hex(&mut hex);
        serializer.serialize_str(std::str::from_utf8(&hex).expect("BUG: hex is ASCII"))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected 64 lower-case hex digits, found {text:?}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_exact_both_ways() {
        let digest = Digest::sha256(b"");
        // source: FIPS 180-4, SHA-256 of the empty string
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_hex(), hex);
        assert_eq!(Digest::from_hex(hex), Some(digest));
        assert_eq!(Digest::from_hex(&hex.to_uppercase()), None);
        assert_eq!(Digest::from_hex(&hex[1..]), None);
        // source: RFC 4648, section 4, of the same 32 bytes
        let text = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(digest.to_base64(), text);
        assert_eq!(Digest::from_base64(text), Some(digest));
        // The last letter has two bits of nothing, which are 0.
        let others = ["V=", "W=", "X=", "U", "U==", "U=\n", "-=", " ="];
        for end in others {
            let other = text.replace("U=", end);
            assert_eq!(Digest::from_base64(&other), None, "{other:?}");
        }
        assert_eq!(Digest::from_base64(&text.replace('+', "-")), None);
        assert_eq!(Digest::from_base64(&text.replace('=', "A")), None);
    }
}
