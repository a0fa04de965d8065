//! Key files: Ed25519 keys as the PEM text that `openssl pkey` reads and writes.
//!
//! Gives the text of private keys (author keys, with or without a passphrase, and log keys,
//! without), of public keys, and the key id. Reading and writing the files, their permissions
//! and asking for passphrases are the neighbours' work; signing is `ground::sign`.
//!
//! # Formats
//!
//! | PEM label | content | source |
//! |---|---|---|
//! | `PRIVATE KEY` | PKCS#8 v1 of the 32-byte seed; v2 (with the public key) is read too | RFC 8410 section 7, RFC 5958 |
//! | `ENCRYPTED PRIVATE KEY` | the same under PBES2: scrypt N=16384 r=8 p=5, AES-256-CBC | RFC 8018, RFC 7914 |
//! | `PUBLIC KEY` | `SubjectPublicKeyInfo`, 44 bytes | RFC 8410 section 4 |
//!
//! The key id is the SHA-256 of those 44 bytes, so that
//! `openssl pkey -pubin -in FILE -outform DER | sha256sum` prints it.

use ed25519_dalek::SigningKey;
use ed25519_dalek::VerifyingKey;
use pkcs8::ObjectIdentifier;
use pkcs8::PrivateKeyInfoRef;
use pkcs8::SecretDocument;
use pkcs8::SubjectPublicKeyInfoRef;
use pkcs8::der::Decode;
use pkcs8::der::pem;
use pkcs8::der::pem::LineEnding;
use zeroize::Zeroizing;

use super::pbes2::decrypt_pkcs8;
use super::pbes2::draw_parameters;
use super::pbes2::encrypt_pkcs8;
use crate::ambient::AmbientError;
use crate::ambient::Entropy;
use crate::digest::Digest;

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

/// id-Ed25519 (source: RFC 8410 section 3).
const ED25519_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// `SubjectPublicKeyInfo` of an Ed25519 key up to the key itself (source: RFC 8410 section 4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0,
];
/// PKCS#8 v1 of an Ed25519 seed up to the seed itself (source: RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// Tag and length of the octet string around the seed, inside the PKCS#8 octet string.
const SEED_PREFIX: [u8; 2] = [0x04, 0x20];

/// Largest key file looked at, in bytes; the largest written here has about 400.
const FILE_MAX: usize = 64 * 1024;
/// Longest part of a foreign label that an error repeats, in characters.
const LABEL_SHOWN_MAX: usize = 40;

/// Why a key file was not written or not read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The source of randomness failed.
    #[error("no randomness for the key file")]
    Entropy(#[from] AmbientError),
    /// There is no PEM block in the text.
    #[error("not a PEM file (no `-----BEGIN …-----` line)")]
    NotPem,
    /// A PEM file of something else, such as an OpenSSH key or a certificate.
    #[error("the PEM file holds `{found}`, wanted `{wanted}`")]
    WrongLabel {
        /// The label or labels that would be accepted.
        wanted: &'static str,
        /// The label in the file, printable and cut to 40 characters.
        found: String,
    },
    /// A key, but not an Ed25519 key.
    #[error("the key is not an Ed25519 key (algorithm {found})")]
    WrongAlgorithm {
        /// The algorithm's object identifier in dotted form.
        found: String,
    },
    /// The key is encrypted and no passphrase was given.
    #[error("the key file is encrypted and no passphrase was given")]
    PassphraseMissing,
    /// The passphrase is wrong. Damage inside the encrypted bytes cannot be told from this.
    #[error("wrong passphrase for the key file (or its encrypted bytes are damaged)")]
    PassphraseWrong,
    /// An empty passphrase was given for writing.
    #[error("an empty passphrase protects nothing; give none to write an unencrypted file")]
    PassphraseEmpty,
    /// Encrypted in a way that is not supported, or at a cost beyond the limits.
    #[error("unsupported encryption of the key file: {0}; rewrite it with `openssl pkey -aes256`")]
    UnsupportedEncryption(&'static str),
    /// A PEM file of the right kind whose content is broken.
    #[error("damaged key file: {0}")]
    Damaged(&'static str),
    /// The 32 bytes are not a usable public key.
    #[error("not a usable Ed25519 public key: {0}")]
    BadPoint(&'static str),
}

/// The 44 bytes of DER `SubjectPublicKeyInfo` of an Ed25519 public key.
pub fn spki_der(public_key: &[u8; 32]) -> [u8; 44] {
    let mut der = [0; 44];
    der[..12].copy_from_slice(&SPKI_PREFIX);
    der[12..].copy_from_slice(public_key);
    der
}

/// The key id: SHA-256 of [`spki_der`].
pub fn key_id(public_key: &[u8; 32]) -> Digest {
    Digest::sha256(&spki_der(public_key))
}

/// The `PUBLIC KEY` file of an Ed25519 public key.
pub fn write_public(public_key: &[u8; 32]) -> String {
    pem_text(PUBLIC_LABEL, &spki_der(public_key))
}

/// Reads a `PUBLIC KEY` file.
///
/// # Errors
/// See [`KeyFileError`]; points that are not canonical or of small order are refused, since no
/// signature under them would ever be accepted.
pub fn read_public(file: &[u8]) -> Result<[u8; 32], KeyFileError> {
    let (label, der) = read_pem(file)?;
    if label != PUBLIC_LABEL {
        return Err(wrong_label(PUBLIC_LABEL, label));
    }
    let info = SubjectPublicKeyInfoRef::from_der(der.as_bytes())
        .map_err(|_| KeyFileError::Damaged("not a SubjectPublicKeyInfo"))?;
    check_algorithm(info.algorithm.oid, info.algorithm.parameters.is_some())?;
    let public_key = info
        .subject_public_key
        .as_bytes()
        .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
        .ok_or(KeyFileError::Damaged("the public key is not of 32 bytes"))?;
    let point = VerifyingKey::from_bytes(&public_key)
        .map_err(|_| KeyFileError::BadPoint("not a point of the curve"))?;
    if point.is_weak() {
        return Err(KeyFileError::BadPoint("a point of small order"));
    }
    if point.to_edwards().compress().to_bytes() != public_key {
        return Err(KeyFileError::BadPoint("not in canonical form"));
    }
    Ok(public_key)
}

/// The file of a private key: `PRIVATE KEY` without passphrase, else `ENCRYPTED PRIVATE KEY`.
///
/// `entropy` is drawn from only with a passphrase (32 bytes: salt, then initialisation vector).
///
/// # Errors
/// [`KeyFileError::PassphraseEmpty`], [`KeyFileError::Entropy`].
pub fn write_private(
    key: &SigningKey,
    passphrase: Option<&str>,
    entropy: &mut dyn Entropy,
) -> Result<Zeroizing<String>, KeyFileError> {
    let mut der = Zeroizing::new([0; 48]);
    der[..16].copy_from_slice(&PKCS8_PREFIX);
    der[16..].copy_from_slice(key.as_bytes());
    match passphrase {
        None => Ok(Zeroizing::new(pem_text(PRIVATE_LABEL, der.as_slice()))),
        Some("") => Err(KeyFileError::PassphraseEmpty),
        Some(passphrase) => {
            let sealed = encrypt_pkcs8(der.as_slice(), passphrase, draw_parameters(entropy)?);
            Ok(Zeroizing::new(pem_text(ENCRYPTED_LABEL, sealed.as_bytes())))
        }
    }
}

/// Whether a private key file needs a passphrase, judged by its label alone.
///
/// # Errors
/// [`KeyFileError::NotPem`], [`KeyFileError::WrongLabel`], [`KeyFileError::Damaged`].
pub fn is_encrypted(file: &[u8]) -> Result<bool, KeyFileError> {
    match read_pem(file)?.0 {
        PRIVATE_LABEL => Ok(false),
        ENCRYPTED_LABEL => Ok(true),
        other => Err(wrong_label("PRIVATE KEY` or `ENCRYPTED PRIVATE KEY", other)),
    }
}

/// Reads a private key file, ours or one of `openssl`. A passphrase for a file that needs none
/// is ignored.
///
/// # Errors
/// See [`KeyFileError`].
pub fn read_private(file: &[u8], passphrase: Option<&str>) -> Result<SigningKey, KeyFileError> {
    let encrypted = is_encrypted(file)?;
    let (_, der) = read_pem(file)?;
    if !encrypted {
        let info = PrivateKeyInfoRef::from_der(der.as_bytes())
            .map_err(|_| KeyFileError::Damaged("not a PKCS#8 key"))?;
        return signing_key(&info);
    }
    let passphrase = passphrase.ok_or(KeyFileError::PassphraseMissing)?;
    let opened = decrypt_pkcs8(der.as_bytes(), passphrase)?;
    // Under a wrong key the padding fits by chance about once in 256 times, the structure never.
    let info = PrivateKeyInfoRef::from_der(&opened).map_err(|_| KeyFileError::PassphraseWrong)?;
    signing_key(&info)
}

/// The Ed25519 key in a PKCS#8 structure; a public key beside the seed must belong to it.
fn signing_key(info: &PrivateKeyInfoRef<'_>) -> Result<SigningKey, KeyFileError> {
    check_algorithm(info.algorithm.oid, info.algorithm.parameters.is_some())?;
    let seed = info
        .private_key
        .as_bytes()
        .strip_prefix(&SEED_PREFIX)
        .and_then(|seed| <&[u8; 32]>::try_from(seed).ok())
        .ok_or(KeyFileError::Damaged(
            "the private key is not a seed of 32 bytes",
        ))?;
    let key = SigningKey::from_bytes(seed);
    if let Some(public_key) = &info.public_key
        && public_key.as_bytes() != Some(key.verifying_key().as_bytes().as_slice())
    {
        return Err(KeyFileError::Damaged(
            "the public key beside the seed is another key's",
        ));
    }
    Ok(key)
}

fn check_algorithm(oid: ObjectIdentifier, parameters: bool) -> Result<(), KeyFileError> {
    if oid != ED25519_OID {
        return Err(KeyFileError::WrongAlgorithm {
            found: oid.to_string(),
        });
    }
    if parameters {
        return Err(KeyFileError::Damaged("Ed25519 has no algorithm parameters"));
    }
    Ok(())
}

/// Label and DER bytes of the one PEM block in a file. Text before the block is allowed, as
/// RFC 7468 section 2 has it; after it only white space.
fn read_pem(file: &[u8]) -> Result<(&str, SecretDocument), KeyFileError> {
    if file.len() > FILE_MAX {
        return Err(KeyFileError::Damaged("larger than any key file"));
    }
    let text = std::str::from_utf8(file)
        .map_err(|_| KeyFileError::NotPem)?
        .trim_ascii_end();
    if !text.contains("-----BEGIN ") {
        return Err(KeyFileError::NotPem);
    }
    let label = pem::decode_label(text.as_bytes())
        .map_err(|_| KeyFileError::Damaged("its BEGIN and END lines do not fit"))?;
    if ![PRIVATE_LABEL, ENCRYPTED_LABEL, PUBLIC_LABEL].contains(&label) {
        return Err(wrong_label(
            "PRIVATE KEY`, `ENCRYPTED PRIVATE KEY` or `PUBLIC KEY",
            label,
        ));
    }
    SecretDocument::from_pem(text)
        .map_err(|_| KeyFileError::Damaged("its base64 is broken, cut or not one DER value"))
}

fn pem_text(label: &'static str, der: &[u8]) -> String {
    pem::encode_string(label, LineEnding::LF, der)
        .expect("BUG: a short DER value and a valid label are always PEM")
}

fn wrong_label(wanted: &'static str, found: &str) -> KeyFileError {
    let found = found.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    KeyFileError::WrongLabel {
        wanted,
        found: found.take(LABEL_SHOWN_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_types,
        reason = "openssl is asked as a stranger would"
    )]

    use std::io::Write as _;
    use std::process::Command;
    use std::process::Stdio;

    use pkcs8::pkcs5::pbes2::Parameters;
    use proptest::prelude::*;

    use super::*;
    use crate::ambient::SeededEntropy;

    const PASSPHRASE: &str = "correct horse — battery";

    fn entropy() -> SeededEntropy {
        SeededEntropy::new([7; 32])
    }

    fn key(from: u8) -> SigningKey {
        SigningKey::from_bytes(&std::array::from_fn(|i| from + u8::try_from(i).unwrap()))
    }

    fn public(key: &SigningKey) -> [u8; 32] {
        key.verifying_key().to_bytes()
    }

    fn plain(key: &SigningKey) -> String {
        write_private(key, None, &mut entropy())
            .unwrap()
            .to_string()
    }

    /// What `openssl` prints, or `None` (after saying so) where there is no such command.
    fn openssl(arguments: &[&str], input: &[u8]) -> Option<(bool, Vec<u8>)> {
        let started = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = started else {
            println!("skipped: openssl not found");
            return None;
        };
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        Some((output.status.success(), output.stdout))
    }

    fn pass(passphrase: &str) -> String {
        format!("pass:{passphrase}")
    }

    #[test]
    fn key_ids_equal_the_reference() {
        // source: the reference ledger; seeds 20..3f and 40..5f.
        for (from, expected) in [
            (
                0x20,
                "824c89aa8efb95ef93629b4519599129cace4adac9a6180daba31ceed41ecee6",
            ),
            (
                0x40,
                "788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101",
            ),
        ] {
            assert_eq!(key_id(&public(&key(from))).to_string(), expected);
        }
    }

    #[test]
    fn the_plain_file_is_that_of_rfc_8410() {
        // source: RFC 8410 section 10.3, first private key, and section 10.1, its public key.
        let private = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
            -----END PRIVATE KEY-----\n";
        let public_file = "-----BEGIN PUBLIC KEY-----\n\
            MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
            -----END PUBLIC KEY-----\n";
        // source: RFC 8410 section 10.3, second key: version 2 with attributes and public key.
        let second = "-----BEGIN PRIVATE KEY-----\n\
            MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
            oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\n\
            Z9w7lshQhqowtrbLDFw4rXAxZuE=\n\
            -----END PRIVATE KEY-----\n";
        let key = read_private(private.as_bytes(), None).unwrap();
        assert_eq!(plain(&key), private);
        assert_eq!(write_public(&public(&key)), public_file);
        assert_eq!(read_public(public_file.as_bytes()).unwrap(), public(&key));
        assert_eq!(read_private(second.as_bytes(), None).unwrap(), key);
        let moved = second.replace("Z9w7", "Z9w6");
        assert!(matches!(
            read_private(moved.as_bytes(), None),
            Err(KeyFileError::Damaged(_))
        ));
    }

    #[test]
    fn files_read_back_with_line_ends_and_text_around() {
        let key = key(0x20);
        let file = plain(&key);
        assert!(!is_encrypted(file.as_bytes()).unwrap());
        for text in [
            file.clone(),
            file.replace('\n', "\r\n"),
            file.trim_end().to_owned(),
            format!("{file}\n \n"),
            format!("the registrar's key\n{file}"),
        ] {
            assert_eq!(
                read_private(text.as_bytes(), None).unwrap(),
                key,
                "{text:?}"
            );
            assert_eq!(read_private(text.as_bytes(), Some("unused")).unwrap(), key);
        }
    }

    #[test]
    fn the_encrypted_file_tells_its_troubles_apart() {
        let key = key(0x20);
        let file = write_private(&key, Some(PASSPHRASE), &mut entropy()).unwrap();
        assert!(is_encrypted(file.as_bytes()).unwrap());
        assert_eq!(
            read_private(file.as_bytes(), Some(PASSPHRASE)).unwrap(),
            key
        );
        let read = |text: &str, passphrase| read_private(text.as_bytes(), passphrase).unwrap_err();
        assert!(matches!(read(&file, None), KeyFileError::PassphraseMissing));
        assert!(matches!(
            read(&file, Some("wrong")),
            KeyFileError::PassphraseWrong
        ));
        assert!(matches!(
            read(&file, Some("")),
            KeyFileError::PassphraseWrong
        ));
        let cut = format!("{}\n-----END ENCRYPTED PRIVATE KEY-----\n", &file[..150]);
        assert!(matches!(
            read(&cut, Some(PASSPHRASE)),
            KeyFileError::Damaged(_)
        ));
        let empty = write_private(&key, Some(""), &mut entropy()).unwrap_err();
        assert!(matches!(empty, KeyFileError::PassphraseEmpty));
        let again = write_private(&key, Some(PASSPHRASE), &mut SeededEntropy::new([8; 32]));
        assert_ne!(*again.unwrap(), *file);
    }

    #[test]
    fn other_files_are_named_for_what_they_are() {
        let read = |text: &str| read_private(text.as_bytes(), None).unwrap_err();
        assert!(matches!(read(""), KeyFileError::NotPem));
        assert!(matches!(read("AGE-SECRET-KEY-1"), KeyFileError::NotPem));
        assert!(matches!(
            read_private(&[0xff, 0], None),
            Err(KeyFileError::NotPem)
        ));
        assert!(matches!(
            read("-----BEGIN PRIVATE KEY-----"),
            KeyFileError::Damaged(_)
        ));
        let file = plain(&key(0x20));
        let damaged = file.replace("MC4C", "MC5C");
        assert!(matches!(read(&damaged), KeyFileError::Damaged(_)));
        let cut = file.replace("MC4C", "");
        assert!(matches!(read(&cut), KeyFileError::Damaged(_)));
        let spki = write_public(&public(&key(0x20)));
        assert!(
            matches!(read(&spki), KeyFileError::WrongLabel { found, .. } if found == "PUBLIC KEY")
        );
        assert!(matches!(
            read_public(file.as_bytes()),
            Err(KeyFileError::WrongLabel { .. })
        ));
        let ssh = file.replace("PRIVATE", "OPENSSH PRIVATE");
        assert!(matches!(read(&ssh), KeyFileError::WrongLabel { .. }));
        let huge = format!("{}{file}", "x".repeat(FILE_MAX));
        assert!(matches!(read(&huge), KeyFileError::Damaged(_)));
        // X25519 has the neighbouring object identifier 1.3.101.110.
        let mut der = spki_der(&public(&key(0x20)));
        der[8] = 0x6e;
        let other = pem_text(PUBLIC_LABEL, &der);
        let refused = read_public(other.as_bytes()).unwrap_err();
        assert!(
            matches!(&refused, KeyFileError::WrongAlgorithm { found } if found == "1.3.101.110")
        );
    }

    #[test]
    fn public_keys_that_no_signature_can_satisfy_are_refused() {
        let mut identity = [0; 32];
        identity[0] = 1;
        let mut off_curve = [0; 32];
        off_curve[0] = 2;
        for bytes in [identity, [0; 32], off_curve] {
            let refused = read_public(write_public(&bytes).as_bytes()).unwrap_err();
            assert!(matches!(refused, KeyFileError::BadPoint(_)), "{refused}");
        }
        // The y-coordinates p to 2^255 - 1, each a second spelling of 0 to 18.
        let refusals = (0xed..=0xff).map(|lowest| {
            let mut bytes = [0xff; 32];
            bytes[0] = lowest;
            bytes[31] = 0x7f;
            read_public(write_public(&bytes).as_bytes())
                .unwrap_err()
                .to_string()
        });
        assert!(
            refusals
                .into_iter()
                .any(|refused| refused.contains("canonical"))
        );
    }

    #[test]
    fn openssl_reads_what_is_written() {
        let key = key(0x20);
        let Some((_, version)) = openssl(&["version"], b"") else {
            return;
        };
        let spki = spki_der(&public(&key));
        let public_file = write_public(&public(&key));
        let arguments = ["pkey", "-pubin", "-pubout", "-outform", "DER"];
        assert_eq!(
            openssl(&arguments, public_file.as_bytes()).unwrap(),
            (true, spki.to_vec())
        );
        let (_, digest) = openssl(&["dgst", "-sha256", "-binary"], &spki).unwrap();
        assert_eq!(key_id(&public(&key)).0.as_slice(), digest);

        let arguments = ["pkey", "-pubout", "-outform", "DER"];
        assert_eq!(
            openssl(&arguments, plain(&key).as_bytes()).unwrap(),
            (true, spki.to_vec())
        );
        let file = write_private(&key, Some(PASSPHRASE), &mut entropy()).unwrap();
        let version = String::from_utf8_lossy(&version).into_owned();
        for (passphrase, opens) in [(PASSPHRASE, true), ("wrong", false)] {
            let pass = pass(passphrase);
            let arguments = ["pkey", "-passin", &pass, "-pubout", "-outform", "DER"];
            let (opened, der) = openssl(&arguments, file.as_bytes()).unwrap();
            assert_eq!(opened, opens, "{version}");
            assert_eq!(der == spki, opens);
        }
    }

    #[test]
    fn what_openssl_writes_is_read() {
        let Some((true, file)) = openssl(&["genpkey", "-algorithm", "ed25519"], b"") else {
            return;
        };
        let key = read_private(&file, None).unwrap();
        assert_eq!(plain(&key).as_bytes(), file);
        let (_, public_file) = openssl(&["pkey", "-pubout"], &file).unwrap();
        assert_eq!(read_public(&public_file).unwrap(), public(&key));

        let pass = pass(PASSPHRASE);
        for arguments in [
            &["pkey", "-aes256", "-passout", &pass][..],
            &["pkey", "-aes128", "-passout", &pass],
            &["pkcs8", "-topk8", "-scrypt", "-passout", &pass],
            &[
                "pkcs8",
                "-topk8",
                "-v2",
                "aes-256-cbc",
                "-iter",
                "100000",
                "-passout",
                &pass,
            ],
        ] {
            let (written, sealed) = openssl(arguments, &file).unwrap();
            assert!(written, "{arguments:?}");
            assert!(is_encrypted(&sealed).unwrap());
            assert_eq!(
                read_private(&sealed, Some(PASSPHRASE)).unwrap(),
                key,
                "{arguments:?}"
            );
            let refused = read_private(&sealed, Some("wrong")).unwrap_err();
            assert!(matches!(refused, KeyFileError::PassphraseWrong));
        }
        let (_, sealed) = openssl(&["pkey", "-des3", "-passout", &pass], &file).unwrap();
        let refused = read_private(&sealed, Some(PASSPHRASE)).unwrap_err();
        assert!(
            matches!(refused, KeyFileError::UnsupportedEncryption(_)),
            "{refused}"
        );
        let p256 = [
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ];
        let (_, file) = openssl(&p256, b"").unwrap();
        let refused = read_private(&file, None).unwrap_err();
        assert!(
            matches!(&refused, KeyFileError::WrongAlgorithm { found } if found == "1.2.840.10045.2.1")
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            prop_assert!(read_private(&bytes, Some("x")).is_err());
            prop_assert!(read_public(&bytes).is_err());
        }

        #[test]
        fn reading_changed_files_never_panics(at in 0usize..400, byte: u8, which in 0usize..3) {
            let key = key(0x20);
            let label = [PRIVATE_LABEL, ENCRYPTED_LABEL, PUBLIC_LABEL][which];
            // PBES2 with PBKDF2 at one iteration keeps the cases cheap.
            let parameters =
                Parameters::generate_pbkdf2_sha256_aes256cbc(1, &[0; 16], [0; 16]).unwrap();
            let mut der = match which {
                0 => [PKCS8_PREFIX.as_slice(), key.as_bytes()].concat(),
                1 => {
                    let der = [PKCS8_PREFIX.as_slice(), key.as_bytes()].concat();
                    encrypt_pkcs8(&der, "x", parameters).as_bytes().to_vec()
                }
                _ => spki_der(&public(&key)).to_vec(),
            };
            let at = at % der.len();
            der[at] = byte;
            let file = pem_text(label, &der);
            read_private(file.as_bytes(), Some("x")).ok();
            read_public(file.as_bytes()).ok();
        }
    }
}
