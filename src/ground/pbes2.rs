//! Private keys under a passphrase: PBES2 with scrypt and AES-256-CBC written, PBKDF2 read too, costs within limits.
//!
//! Source: RFC 8018, RFC 7914.

use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::PrivateKeyInfoRef;
use pkcs8::SecretDocument;
use pkcs8::der::Decode;
use pkcs8::der::ErrorKind;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::Error as Pkcs5Error;
use pkcs8::pkcs5::pbes2::EncryptionScheme as Cipher;
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::pkcs5::pbes2::Parameters;
use pkcs8::pkcs5::pbes2::Salt;
use pkcs8::pkcs5::pbes2::ScryptParams;
use zeroize::Zeroizing;

use super::keyfile::KeyFileError;
use crate::ambient::AmbientError;
use crate::ambient::Entropy;

/// Cost written. `openssl` refuses scrypt beyond 32 MiB by default, which N = 2^15, r = 8 exceeds
/// by a few hundred bytes; p = 5 makes up for the smaller N (source: the OWASP password storage
/// recommendation lists N = 2^14, r = 8, p = 5 as equal to N = 2^17, p = 1).
const SCRYPT_N: u64 = 1 << 14;
const SCRYPT_R: u16 = 8;
const SCRYPT_P: u16 = 5;

/// Costs accepted on reading, so that a planted file cannot stall the program or exhaust memory:
/// 128 · N · r bytes is at most 256 MiB.
const SCRYPT_NR_MAX: u64 = 1 << 21;
const SCRYPT_P_MAX: u16 = 16;
const PBKDF2_ITERATIONS_MAX: u32 = 10_000_000;
const AES_BLOCK_BYTES: usize = 16;

/// The `EncryptedPrivateKeyInfo` around a PKCS#8 key.
pub(super) fn encrypt_pkcs8(
    der: &[u8],
    passphrase: &str,
    parameters: Parameters,
) -> SecretDocument {
    PrivateKeyInfoRef::from_der(der)
        .map(|info| info.encrypt_with_params(parameters, passphrase))
        .expect("BUG: prefix and seed are a PKCS#8 key")
        .expect("BUG: the fixed parameters encrypt any key")
}

/// The bytes inside an `EncryptedPrivateKeyInfo`.
pub(super) fn decrypt_pkcs8(
    der: &[u8],
    passphrase: &str,
) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let sealed = EncryptedPrivateKeyInfoRef::from_der(der).map_err(|error| match error.kind() {
        ErrorKind::OidUnknown { .. } => {
            KeyFileError::UnsupportedEncryption("an unknown cipher or key derivation")
        }
        _ => KeyFileError::Damaged("not an EncryptedPrivateKeyInfo"),
    })?;
    let EncryptionScheme::Pbes2(parameters) = &sealed.encryption_algorithm else {
        return Err(KeyFileError::UnsupportedEncryption("not PBES2"));
    };
    check_cost(&parameters.kdf)?;
    let bytes = sealed.encrypted_data.as_bytes();
    let cbc = matches!(
        parameters.encryption,
        Cipher::Aes128Cbc { .. } | Cipher::Aes192Cbc { .. } | Cipher::Aes256Cbc { .. }
    );
    if !cbc {
        return Err(KeyFileError::UnsupportedEncryption(
            "a cipher other than AES-CBC",
        ));
    }
    if bytes.is_empty() || !bytes.len().is_multiple_of(AES_BLOCK_BYTES) {
        return Err(KeyFileError::Damaged(
            "its encrypted bytes are not whole blocks",
        ));
    }
    let opened = parameters
        .decrypt(passphrase, bytes)
        .map_err(|error| match error {
            Pkcs5Error::UnsupportedAlgorithm { .. } => {
                KeyFileError::UnsupportedEncryption("an unknown key derivation")
            }
            Pkcs5Error::AlgorithmParametersInvalid { .. } => {
                KeyFileError::Damaged("its encryption parameters do not fit together")
            }
            _ => KeyFileError::PassphraseWrong,
        })?;
    Ok(Zeroizing::new(opened))
}

/// Refuses costs beyond the limits, and those that the derivation itself cannot take.
fn check_cost(kdf: &Kdf) -> Result<(), KeyFileError> {
    let fits = match kdf {
        Kdf::Pbkdf2(params) => (1..=PBKDF2_ITERATIONS_MAX).contains(&params.iteration_count),
        Kdf::Scrypt(params) => {
            let block = u64::from(params.block_size);
            params.cost_parameter >= 2
                && params.cost_parameter.is_power_of_two()
                && (1..=SCRYPT_P_MAX).contains(&params.parallelization)
                && block >= 1
                && params.cost_parameter.saturating_mul(block) <= SCRYPT_NR_MAX
        }
        _ => {
            return Err(KeyFileError::UnsupportedEncryption(
                "an unknown key derivation",
            ));
        }
    };
    if fits {
        Ok(())
    } else {
        Err(KeyFileError::UnsupportedEncryption(
            "a key derivation cost outside the limits",
        ))
    }
}

/// scrypt and AES-256-CBC with a fresh salt and initialisation vector.
pub(super) fn draw_parameters(entropy: &mut dyn Entropy) -> Result<Parameters, AmbientError> {
    let mut salt = [0; 16];
    entropy.fill(&mut salt)?;
    let mut iv = [0; AES_BLOCK_BYTES];
    entropy.fill(&mut iv)?;
    Ok(Parameters {
        kdf: Kdf::Scrypt(ScryptParams {
            salt: Salt::new(salt).expect("BUG: 16 bytes are a valid salt"),
            cost_parameter: SCRYPT_N,
            block_size: SCRYPT_R,
            parallelization: SCRYPT_P,
            key_length: None,
        }),
        encryption: Cipher::Aes256Cbc { iv },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_beyond_the_limits_are_refused_before_any_work() {
        let scrypt = |cost_parameter, block_size, parallelization| {
            let salt = Salt::new([0; 16]).unwrap();
            let key_length = None;
            check_cost(&Kdf::Scrypt(ScryptParams {
                salt,
                cost_parameter,
                block_size,
                parallelization,
                key_length,
            }))
        };
        scrypt(SCRYPT_N, SCRYPT_R, SCRYPT_P).unwrap();
        scrypt(1 << 18, 8, 1).unwrap();
        for (n, r, p) in [
            (0, 8, 1),
            (1, 8, 1),
            (1_000, 8, 1),
            (1 << 19, 8, 1),
            (1 << 63, u16::MAX, 1),
            (1 << 14, 0, 1),
            (1 << 14, 8, 0),
            (1 << 14, 8, 17),
        ] {
            let refused = scrypt(n, r, p).unwrap_err();
            assert!(
                matches!(refused, KeyFileError::UnsupportedEncryption(_)),
                "{n} {r} {p}"
            );
        }
        let pbkdf2 = |iterations| {
            let parameters =
                Parameters::generate_pbkdf2_sha256_aes256cbc(iterations, &[0; 16], [0; 16]);
            check_cost(&parameters.unwrap().kdf)
        };
        pbkdf2(2_048).unwrap();
        assert!(pbkdf2(0).is_err());
        assert!(pbkdf2(PBKDF2_ITERATIONS_MAX + 1).is_err());
    }
}
