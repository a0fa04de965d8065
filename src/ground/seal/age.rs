//! age v1 envelopes with X25519 recipients: keys, writing, reading.
//!
//! Source: <https://age-encryption.org/v1>. Binary form only (no armor); stanzas of other types are
//! parsed by the format's grammar and skipped. Files under a passphrase: `age_passphrase`.
//!
//! ```text
//! age-encryption.org/v1
//! -> X25519 <base64 ephemeral share>
//! <base64 of the wrapped 16-byte file key>
//! --- <base64 HMAC-SHA-256 of all header bytes up to and including "---">
//! nonce[16] ‖ ChaCha20-Poly1305 chunks of 64 KiB (STREAM)
//! ```
//!
//! Base64 is standard, without padding, canonical. What an envelope means, and where it is kept,
//! is the neighbours' business; randomness comes in through [`Entropy`].

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::KeyInit;
use chacha20poly1305::aead::Aead;
use hmac::Hmac;
use hmac::Mac;
use sha2::Sha256;
use x25519_dalek::PublicKey;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use crate::base64;

use super::age_header::Header;
use super::age_key::Identity;
use super::age_key::Recipient;
use super::derive_key;
use crate::ambient::AmbientError;
use crate::ambient::Entropy;

pub(super) const AGE_VERSION_LINE: &[u8] = b"age-encryption.org/v1";
const AGE_X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
pub(super) const FILE_KEY_BYTES: usize = 16;
const PAYLOAD_NONCE_BYTES: usize = 16;
/// Length of a Poly1305 tag, in bytes.
const TAG_BYTES: usize = 16;
/// Plaintext bytes of every chunk but the last.
const CHUNK_BYTES: usize = 64 * 1024;
/// Characters of every body line of a stanza but the last, which has fewer.
pub(super) const BODY_LINE_CHARS: usize = 64;

/// Largest accepted header of an envelope, in bytes.
pub const AGE_HEADER_MAX: usize = 64 * 1024;
/// Most stanzas (recipients of any type) accepted or written in one envelope.
pub const AGE_STANZAS_MAX: usize = 256;

/// Why an age key, envelope or encryption was refused.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    /// The source of randomness failed.
    #[error("no randomness for the envelope")]
    Entropy(#[from] AmbientError),
    /// The text is not an `age1…` recipient.
    #[error("not an age X25519 recipient (`age1…`, lower case): {0}")]
    Recipient(&'static str),
    /// The text is not an `AGE-SECRET-KEY-1…` identity.
    #[error("not an age X25519 identity (`AGE-SECRET-KEY-1…`, upper case): {0}")]
    Identity(&'static str),
    /// Encryption to nobody.
    #[error("an envelope needs at least one recipient")]
    NoRecipient,
    /// More stanzas than [`AGE_STANZAS_MAX`], on writing or on reading.
    #[error("more than {AGE_STANZAS_MAX} recipients in one envelope")]
    TooManyStanzas,
    /// The header does not end within [`AGE_HEADER_MAX`] bytes.
    #[error("the envelope's header is longer than {AGE_HEADER_MAX} bytes")]
    HeaderTooLarge,
    /// The header breaks the format's grammar.
    #[error("malformed age header: {0}")]
    Header(&'static str),
    /// None of the identities is among the recipients.
    #[error("none of the given identities opens this envelope")]
    NoMatch,
    /// The header was changed after it was written.
    #[error("the envelope's header does not match its authentication code")]
    HeaderMac,
    /// The payload is cut, extended or changed.
    #[error("damaged age payload: {0}")]
    Payload(&'static str),
}

pub(super) type FileKey = Zeroizing<[u8; FILE_KEY_BYTES]>;

/// Seals `plaintext` so that the identity of any of `recipients` opens it.
///
/// # Errors
/// No recipient or more than [`AGE_STANZAS_MAX`], no entropy.
pub fn encrypt(
    plaintext: &[u8],
    recipients: &[Recipient],
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, AgeError> {
    if recipients.is_empty() {
        return Err(AgeError::NoRecipient);
    }
    if recipients.len() > AGE_STANZAS_MAX {
        return Err(AgeError::TooManyStanzas);
    }
    let mut file_key: FileKey = Zeroizing::new([0; FILE_KEY_BYTES]);
    entropy.fill(file_key.as_mut_slice())?;

    let mut file = Vec::new();
    file.extend_from_slice(AGE_VERSION_LINE);
    file.push(b'\n');
    for recipient in recipients {
        let mut ephemeral = Zeroizing::new([0; 32]);
        entropy.fill(ephemeral.as_mut_slice())?;
        write_stanza(
            &mut file,
            &file_key,
            recipient,
            &StaticSecret::from(*ephemeral),
        )?;
    }
    finish(file, &file_key, plaintext, entropy)
}

/// Completes a file whose version line and stanzas are written: authentication code and payload.
pub(super) fn finish(
    mut file: Vec<u8>,
    file_key: &FileKey,
    plaintext: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, AgeError> {
    file.extend_from_slice(b"---");
    let mac = header_mac(file_key, &file).finalize().into_bytes();
    file.push(b' ');
    file.extend_from_slice(base64::encode_unpadded(&mac).as_bytes());
    file.push(b'\n');

    let mut nonce = [0; PAYLOAD_NONCE_BYTES];
    entropy.fill(&mut nonce)?;
    file.extend_from_slice(&nonce);
    seal_payload(&mut file, &payload_cipher(file_key, &nonce), plaintext);
    Ok(file)
}

/// Opens an envelope with the first of `identities` that fits.
///
/// # Errors
/// See [`AgeError`]; nothing of the plaintext is returned unless all of it is authentic.
pub fn decrypt(file: &[u8], identities: &[Identity]) -> Result<Vec<u8>, AgeError> {
    let header = Header::parse(file)?;
    let file_key = header.open(identities)?;
    open_payload(&file_key, header.payload)
}

/// Whether one of `identities` could open the envelope: unwraps the file key and checks the
/// header's authentication code, and leaves the payload untouched (it may even be absent).
///
/// # Errors
/// See [`AgeError`]; never [`AgeError::Payload`].
pub fn check_header(file: &[u8], identities: &[Identity]) -> Result<(), AgeError> {
    Header::parse(file)?.open(identities).map(drop)
}

/// Appends the stanza that wraps `file_key` for `recipient` under a fresh ephemeral key.
fn write_stanza(
    file: &mut Vec<u8>,
    file_key: &FileKey,
    recipient: &Recipient,
    ephemeral: &StaticSecret,
) -> Result<(), AgeError> {
    let share = PublicKey::from(ephemeral).to_bytes();
    let shared = ephemeral.diffie_hellman(&PublicKey::from(recipient.0));
    if !shared.was_contributory() {
        return Err(AgeError::Recipient("point of low order"));
    }
    let wrapped = wrap_cipher(shared.as_bytes(), &share, recipient)
        .encrypt(&[0; 12].into(), file_key.as_slice())
        .expect("BUG: 16 bytes are within the cipher's limit");
    file.extend_from_slice(b"-> X25519 ");
    file.extend_from_slice(base64::encode_unpadded(&share).as_bytes());
    file.push(b'\n');
    // 32 bytes are 43 characters: one short line, which also ends the body.
    file.extend_from_slice(base64::encode_unpadded(&wrapped).as_bytes());
    file.push(b'\n');
    Ok(())
}

/// The cipher around the file key; its key is used for one message, so the nonce is zero.
pub(super) fn wrap_cipher(
    shared: &[u8; 32],
    share: &[u8; 32],
    recipient: &Recipient,
) -> ChaCha20Poly1305 {
    let mut salt = [0; 64];
    salt[..32].copy_from_slice(share);
    salt[32..].copy_from_slice(&recipient.0);
    ChaCha20Poly1305::new((&*derive_key(Some(&salt), shared, AGE_X25519_LABEL)).into())
}

pub(super) fn header_mac(file_key: &FileKey, authenticated: &[u8]) -> Hmac<Sha256> {
    let key = derive_key(None, file_key.as_slice(), b"header");
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_slice()).expect("BUG: HMAC takes keys of any length");
    mac.update(authenticated);
    mac
}

fn payload_cipher(file_key: &FileKey, nonce: &[u8; PAYLOAD_NONCE_BYTES]) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new((&*derive_key(Some(nonce), file_key.as_slice(), b"payload")).into())
}

/// STREAM nonce: 11 bytes counter, big-endian, then 1 for the last chunk and 0 before it.
fn chunk_nonce(counter: u64, last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&counter.to_be_bytes());
    nonce[11] = u8::from(last);
    nonce
}

fn seal_payload(file: &mut Vec<u8>, cipher: &ChaCha20Poly1305, plaintext: &[u8]) {
    let mut rest = plaintext;
    for counter in 0u64.. {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK_BYTES));
        let last = after.is_empty();
        let sealed = cipher
            .encrypt(&chunk_nonce(counter, last).into(), chunk)
            .expect("BUG: a chunk is within the cipher's limit");
        file.extend_from_slice(&sealed);
        if last {
            return;
        }
        rest = after;
    }
}

pub(super) fn open_payload(file_key: &FileKey, payload: &[u8]) -> Result<Vec<u8>, AgeError> {
    let (nonce, mut rest) = payload
        .split_first_chunk::<PAYLOAD_NONCE_BYTES>()
        .ok_or(AgeError::Payload("it ends before its nonce does"))?;
    let cipher = payload_cipher(file_key, nonce);
    // Sized once: growing would leave plaintext behind in freed memory.
    let mut plaintext = Zeroizing::new(Vec::with_capacity(rest.len()));
    for counter in 0u64.. {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK_BYTES + TAG_BYTES));
        let last = after.is_empty();
        if chunk.len() < TAG_BYTES {
            return Err(AgeError::Payload("its last chunk is cut"));
        }
        if counter > 0 && chunk.len() == TAG_BYTES {
            return Err(AgeError::Payload("its last chunk is empty"));
        }
        // A missing, further or moved chunk fails here too: place and lastness are in the nonce.
        let opened = cipher
            .decrypt(&chunk_nonce(counter, last).into(), chunk)
            .map_err(|_| AgeError::Payload("a chunk is not authentic"))?;
        plaintext.extend_from_slice(&Zeroizing::new(opened));
        if last {
            break;
        }
        rest = after;
    }
    Ok(std::mem::take(&mut *plaintext))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ambient::SeededEntropy;

    // source: C2SP CCTV age testkit, files `x25519_grease` and `x25519_low_order`.
    const TESTKIT_IDENTITY: &str =
        "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0";
    const GREASE_HEADER: &str = "age-encryption.org/v1\n-> grease\n\n\
        -> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\n\
        hjabGXwSLQ9c3S6Lw2i+S2Tu2fiwQHHslbBN6B41FLE\n-> grease\n\n\
        --- QIfAOEMt1fGOf2FP2m3+TwFQtfy2H3sX3YqUAQRApkM\n";
    const GREASE_PAYLOAD: [u8; 35] = [
        0xee, 0xcf, 0x62, 0xc7, 0xce, 0x91, 0xb4, 0x33, 0x27, 0x4e, 0x68, 0xd4, 0xf2, 0xf9, 0x13,
        0x4c, 0xb7, 0x4c, 0x5b, 0xfe, 0xf7, 0xbe, 0xaa, 0x52, 0xc8, 0xf0, 0xbc, 0x0e, 0x99, 0x2c,
        0x1e, 0x83, 0x31, 0xfb, 0x66,
    ];
    const LOW_ORDER_HEADER: &str = "age-encryption.org/v1\n\
        -> X25519 X5yVvKNQjCSx0LFVnIPvWwREXMRYHI6G2CJO3dCfEdc\n\
        3E0NpFans/m0WLWF7+54ZBdNj3iqQqpraGDFiaRkvBA\n\
        --- sXw327YMT1/ULXe+ZyRMbMY0Z2jnWHGgI9j1we6yQ8A\n";

    fn entropy() -> SeededEntropy {
        SeededEntropy::new([7; 32])
    }

    fn pair() -> (Identity, Identity) {
        let mut entropy = entropy();
        (
            Identity::generate(&mut entropy).unwrap(),
            Identity::generate(&mut entropy).unwrap(),
        )
    }

    const FILE_KEY: [u8; FILE_KEY_BYTES] = [5; FILE_KEY_BYTES];

    /// An X25519 stanza that wraps [`FILE_KEY`] for `identity`.
    fn stanza(identity: &Identity) -> String {
        let mut bytes = Vec::new();
        let ephemeral = StaticSecret::from([9; 32]);
        let file_key = Zeroizing::new(FILE_KEY);
        write_stanza(&mut bytes, &file_key, &identity.recipient, &ephemeral).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// A file with these stanzas and chunks (each with its lastness) and a fitting MAC.
    fn forge(stanzas: &str, chunks: &[(&[u8], bool)]) -> Vec<u8> {
        let file_key = Zeroizing::new(FILE_KEY);
        let mut file = format!("age-encryption.org/v1\n{stanzas}---").into_bytes();
        let mac = header_mac(&file_key, &file).finalize().into_bytes();
        file.extend(format!(" {}\n", base64::encode_unpadded(&mac)).bytes());
        let nonce = [1; PAYLOAD_NONCE_BYTES];
        file.extend(nonce);
        let cipher = payload_cipher(&file_key, &nonce);
        for (counter, (chunk, last)) in (0..).zip(chunks) {
            file.extend(
                cipher
                    .encrypt(&chunk_nonce(counter, *last).into(), *chunk)
                    .unwrap(),
            );
        }
        file
    }

    #[test]
    fn every_length_around_the_chunks_comes_back() {
        let (identity, other) = pair();
        for length in [
            0,
            1,
            40,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            2 * CHUNK_BYTES,
        ] {
            let plaintext: Vec<u8> = (0..=250).cycle().take(length).collect();
            let recipients = [other.recipient(), identity.recipient()];
            let file = encrypt(&plaintext, &recipients, &mut entropy()).unwrap();
            for identity in [&identity, &other] {
                let identities = std::slice::from_ref(identity);
                check_header(&file, identities).unwrap();
                assert!(decrypt(&file, identities).unwrap() == plaintext, "{length}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let (identity, _) = pair();
        let identities = [identity];
        let file = encrypt(&[4; 40], &[identities[0].recipient()], &mut entropy()).unwrap();
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decrypt(&flipped, &identities).is_err(), "bit {bit}");
        }
        for length in 0..file.len() {
            assert!(
                decrypt(&file[..length], &identities).is_err(),
                "cut to {length}"
            );
        }
        assert!(decrypt(&[&file[..], b"\0"].concat(), &identities).is_err());
    }

    #[test]
    fn check_header_leaves_the_payload_alone() {
        let (identity, other) = pair();
        let file = encrypt(&[4; 40], &[identity.recipient()], &mut entropy()).unwrap();
        let header = &file[..file.len() - PAYLOAD_NONCE_BYTES - 40 - TAG_BYTES];
        let identities = [identity];
        check_header(header, &identities).unwrap();
        check_header(&[header, b"anything"].concat(), &identities).unwrap();
        assert!(matches!(
            decrypt(header, &identities),
            Err(AgeError::Payload(_))
        ));
        assert!(matches!(
            check_header(&file, &[other]),
            Err(AgeError::NoMatch)
        ));
        assert!(matches!(check_header(&file, &[]), Err(AgeError::NoMatch)));
        assert!(check_header(&header[..header.len() - 1], &identities).is_err());
    }

    #[test]
    fn a_changed_but_well_formed_header_fails_its_mac() {
        let (identity, _) = pair();
        let file = forge(&stanza(&identity), &[(b"x", true)]);
        let text = b"age-encryption.org/v1\n".len();
        let more = [&file[..text], b"-> other word\n\n", &file[text..]].concat();
        assert!(matches!(
            decrypt(&more, &[identity]),
            Err(AgeError::HeaderMac)
        ));
    }

    #[test]
    fn testkit_files_are_judged_as_the_kit_says() {
        let identities = [TESTKIT_IDENTITY.parse::<Identity>().unwrap()];
        let file = [GREASE_HEADER.as_bytes(), &GREASE_PAYLOAD].concat();
        assert_eq!(decrypt(&file, &identities).unwrap(), b"age");
        let refused = check_header(LOW_ORDER_HEADER.as_bytes(), &identities).unwrap_err();
        assert!(refused.to_string().contains("low order"), "{refused}");
    }

    #[test]
    fn unknown_stanzas_are_skipped_and_malformed_ones_refused() {
        let (identity, _) = pair();
        let own = stanza(&identity);
        let identities = [identity];
        let line = "A".repeat(64);
        for fine in [
            String::new(),
            "-> grease\n\n".into(),
            "-> x25519 !~\"# word\nAAAA\n".into(),
            format!("-> long\n{line}\n\n"),
            format!("-> long\n{line}\n{line}\nAAAA\n"),
        ] {
            let file = forge(&format!("{fine}{own}{fine}"), &[(b"x", true)]);
            assert_eq!(decrypt(&file, &identities).unwrap(), b"x", "{fine}");
        }
        for bad in [
            "->\n\n",
            "-> \n\n",
            "->  two\n\n",
            "-> trailing \n\n",
            "-> caf\u{e9}\n\n",
            "-> cr\r\n\n",
            "-> padded\nAA==\n",
            "-> spare bits\nAB\n",
            "-> five\nAAAAA\n",
            "-> missing body\n",
            "text\n",
            "\n",
            "-> scrypt beside others\n\n",
            "-> X25519\n\n",
            "-> X25519 AAAA\n\n",
        ] {
            let file = forge(&format!("{own}{bad}"), &[(b"x", true)]);
            let refused = decrypt(&file, &identities).unwrap_err();
            assert!(matches!(refused, AgeError::Header(_)), "{bad:?}: {refused}");
        }
        let long = forge(&format!("{own}-> long\n{line}A\n\n"), &[(b"x", true)]);
        assert!(matches!(
            decrypt(&long, &identities),
            Err(AgeError::Header(_))
        ));
        let extra = own.replacen('\n', " word\n", 1);
        let file = forge(&extra, &[(b"x", true)]);
        assert!(matches!(
            decrypt(&file, &identities),
            Err(AgeError::Header(_))
        ));
        let file = forge("", &[(b"x", true)]);
        assert!(matches!(
            decrypt(&file, &identities),
            Err(AgeError::Header(_))
        ));
        let file = forge("-> scrypt AAAA 18\n\n", &[(b"x", true)]);
        assert!(matches!(
            decrypt(&file, &identities),
            Err(AgeError::NoMatch)
        ));
    }

    #[test]
    fn authentic_chunks_in_a_wrong_shape_are_refused() {
        let (identity, _) = pair();
        let own = stanza(&identity);
        let identities = [identity];
        let full = vec![1; CHUNK_BYTES];
        let fine: [&[(&[u8], bool)]; 3] = [
            &[(b"", true)],
            &[(&full, true)],
            &[(&full, false), (b"x", true)],
        ];
        for chunks in fine {
            decrypt(&forge(&own, chunks), &identities).unwrap();
        }
        let bad: [&[(&[u8], bool)]; 7] = [
            &[],
            &[(b"x", false)],
            &[(&full, false)],
            &[(&full, false), (b"", true)],
            &[(&full, true), (b"x", true)],
            &[(b"short", false), (b"x", true)],
            &[(b"x", true), (b"", true)],
        ];
        for chunks in bad {
            let refused = decrypt(&forge(&own, chunks), &identities).unwrap_err();
            assert!(matches!(refused, AgeError::Payload(_)), "{refused}");
        }
    }

    #[test]
    fn limits_hold() {
        let (identity, _) = pair();
        let own = stanza(&identity);
        let recipient = identity.recipient();
        let identities = [identity];
        let most = [recipient; AGE_STANZAS_MAX];
        let file = encrypt(b"x", &most, &mut entropy()).unwrap();
        assert_eq!(decrypt(&file, &identities).unwrap(), b"x");
        let more = [recipient; AGE_STANZAS_MAX + 1];
        let refused = encrypt(b"x", &more, &mut entropy()).unwrap_err();
        assert!(matches!(refused, AgeError::TooManyStanzas));
        assert!(matches!(
            encrypt(b"x", &[], &mut entropy()),
            Err(AgeError::NoRecipient)
        ));

        let file = forge(&own.repeat(AGE_STANZAS_MAX + 1), &[(b"x", true)]);
        assert!(matches!(
            decrypt(&file, &identities),
            Err(AgeError::TooManyStanzas)
        ));
        let line = format!("{}\n", "A".repeat(64));
        let file = forge(
            &format!("-> long\n{}\n{own}", line.repeat(1_100)),
            &[(b"x", true)],
        );
        assert!(matches!(
            decrypt(&file, &identities),
            Err(AgeError::HeaderTooLarge)
        ));
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            prop_assert!(decrypt(&bytes, &[Identity::from_bytes(&[1; 32])]).is_err());
        }

        #[test]
        fn reading_what_looks_like_a_header_never_panics(
            lines in "(-> (X25519|scrypt|grease)( [!-~]{0,44})?\n([A-Za-z0-9+/]{64}\n){0,2}[A-Za-z0-9+/]{0,44}\n|[ -~]{0,70}\n){0,4}",
            mac in "[A-Za-z0-9+/]{42,44}",
            tail: Vec<u8>,
        ) {
            let head = format!("age-encryption.org/v1\n{lines}--- {mac}\n");
            let file = [head.as_bytes(), &tail].concat();
            prop_assert!(decrypt(&file, &[Identity::from_bytes(&[1; 32])]).is_err());
        }

    }
}
