//! age v1 files under a passphrase: how an identity is kept beside an encrypted signing key.
//!
//! The header holds one stanza, `-> scrypt <base64 of a 16-byte salt> <log2 N>`, whose body is the file key under
//! ChaCha20-Poly1305 with nonce 0 and the key
//! `scrypt(passphrase, "age-encryption.org/v1/scrypt" ‖ salt, N, r = 8, p = 1)`. Source: <https://age-encryption.org/v1>.

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::KeyInit;
use chacha20poly1305::aead::Aead;
use zeroize::Zeroizing;

use crate::base64;

use super::age::AGE_VERSION_LINE;
use super::age::AgeError;
use super::age::FILE_KEY_BYTES;
use super::age::FileKey;
use super::age::finish;
use super::age::open_payload;
use super::age_header::Header;
use super::age_header::base64_bytes;
use crate::ambient::Entropy;

const SCRYPT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
const SALT_BYTES: usize = 16;
/// log2 of the cost written: 64 MiB, about what the signing key beside it costs to guess at.
const LOG_N: u8 = 16;
/// Largest log2 of a cost accepted on reading, 256 MiB: what the stock `age` writes, and no planted file can ask for more.
const LOG_N_MAX: u8 = 18;

/// Encrypts `plaintext` under a passphrase.
///
/// # Errors
/// No entropy.
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn encrypt_with_passphrase(
    plaintext: &[u8],
    passphrase: &str,
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, AgeError> {
    let mut file_key: FileKey = Zeroizing::new([0; FILE_KEY_BYTES]);
    entropy.fill(file_key.as_mut_slice())?;
    let mut salt = [0; SALT_BYTES];
    entropy.fill(&mut salt)?;
    let wrapped = cipher(passphrase, &salt, LOG_N)?
        .encrypt(&[0; 12].into(), file_key.as_slice())
        .expect("BUG: 16 bytes are within the cipher's limit");
    let mut file = AGE_VERSION_LINE.to_vec();
    let stanza = format!(
        "\n-> scrypt {} {LOG_N}\n{}\n",
        base64::encode_unpadded(&salt),
        base64::encode_unpadded(&wrapped)
    );
    file.extend_from_slice(stanza.as_bytes());
    finish(file, &file_key, plaintext, entropy)
}

/// Opens what [`encrypt_with_passphrase`] or the stock `age --passphrase` wrote.
///
/// # Errors
/// [`AgeError::NoMatch`] under a wrong passphrase, and as [`super::decrypt`].
pub fn decrypt_with_passphrase(
    file: &[u8],
    passphrase: &str,
) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let header = Header::parse(file)?;
    let [stanza] = header.stanzas.as_slice() else {
        return Err(AgeError::Header("expected one scrypt stanza"));
    };
    let (b"scrypt", [salt, cost]) = (stanza.kind, stanza.arguments.as_slice()) else {
        return Err(AgeError::Header(
            "expected one scrypt stanza of two arguments",
        ));
    };
    let salt: [u8; SALT_BYTES] = base64_bytes(salt)?
        .try_into()
        .map_err(|_| AgeError::Header("a scrypt salt is not of 16 bytes"))?;
    let cost = std::str::from_utf8(cost).ok();
    let cost = cost.filter(|text| !text.starts_with(['0', '+']));
    let log_n = cost
        .and_then(|text| text.parse::<u8>().ok())
        .filter(|log_n| (1..=LOG_N_MAX).contains(log_n))
        .ok_or(AgeError::Header("a scrypt cost beyond 2^18"))?;
    let wrapped: [u8; 2 * FILE_KEY_BYTES] = stanza
        .body
        .as_slice()
        .try_into()
        .map_err(|_| AgeError::Header("a scrypt body is not of 32 bytes"))?;
    let opened = cipher(passphrase, &salt, log_n)?
        .decrypt(&[0; 12].into(), wrapped.as_slice())
        .map_err(|_| AgeError::NoMatch)?;
    let opened = Zeroizing::new(opened);
    let mut file_key: FileKey = Zeroizing::new([0; FILE_KEY_BYTES]);
    file_key.copy_from_slice(&opened);
    header.authentic(&file_key)?;
    open_payload(&file_key, header.payload).map(Zeroizing::new)
}

/// The cipher around the file key.
fn cipher(
    passphrase: &str,
    salt: &[u8; SALT_BYTES],
    log_n: u8,
) -> Result<ChaCha20Poly1305, AgeError> {
    const COST: AgeError = AgeError::Header("a scrypt cost that cannot be paid");
    let params = scrypt::Params::new(log_n, 8, 1).map_err(|_| COST)?;
    let salted = [SCRYPT_LABEL, salt].concat();
    let mut key = Zeroizing::new([0; 32]);
    scrypt::scrypt(passphrase.as_bytes(), &salted, &params, key.as_mut_slice())
        .map_err(|_| COST)?;
    Ok(ChaCha20Poly1305::new((&*key).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SeededEntropy;

    #[test]
    fn the_passphrase_opens_it_and_no_other_does() {
        let mut entropy = SeededEntropy::new([5; 32]);
        let file = encrypt_with_passphrase(b"AGE-SECRET-KEY-1", "right", &mut entropy).unwrap();
        let opened = decrypt_with_passphrase(&file, "right").unwrap();
        assert_eq!(opened.as_slice(), b"AGE-SECRET-KEY-1");
        let refused = decrypt_with_passphrase(&file, "wrong");
        assert!(matches!(refused, Err(AgeError::NoMatch)), "{refused:?}");
        let mut flipped = file.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let refused = decrypt_with_passphrase(&flipped, "right");
        assert!(matches!(refused, Err(AgeError::Payload(_))), "{refused:?}");
        // A cost that would take hours is refused before any work.
        let text = file.iter().map(|byte| char::from(*byte));
        let dear = text.collect::<String>().replacen(" 16\n", " 40\n", 1);
        let dear: Vec<u8> = dear
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        let refused = decrypt_with_passphrase(&dear, "right");
        assert!(matches!(refused, Err(AgeError::Header(_))), "{refused:?}");
    }
}
