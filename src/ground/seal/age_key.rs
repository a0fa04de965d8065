//! age X25519 keys: recipients that envelopes are written to, identities that open them.

use std::fmt;
use std::str::FromStr;

use bech32::Bech32;
use bech32::Hrp;
use bech32::primitives::decode::CheckedHrpstring;
use x25519_dalek::PublicKey;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::age::AgeError;
use crate::ambient::Entropy;

const AGE_IDENTITY_HRP: &str = "age-secret-key-";
const AGE_RECIPIENT_HRP: &str = "age";
/// Longest bech32 text looked at, in bytes; an identity has 74, a recipient 62.
const AGE_KEY_TEXT_MAX: usize = 128;

/// A public X25519 key that envelopes are written to; shown as `age1…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipient(pub(super) [u8; 32]);

impl Recipient {
    /// The u-coordinate, 32 bytes little-endian.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Recipient {
    type Err = AgeError;

    /// Reads `age1…`. Points of low order are refused: whatever is sealed to one, anyone opens.
    fn from_str(text: &str) -> Result<Self, AgeError> {
        let bytes = bech32_bytes(text, AGE_RECIPIENT_HRP).map_err(AgeError::Recipient)?;
        let recipient = Self(*bytes);
        // A clamped scalar is a multiple of the cofactor, so any one finds every such point.
        let probe = StaticSecret::from([1; 32]);
        if !probe
            .diffie_hellman(&PublicKey::from(recipient.0))
            .was_contributory()
        {
            return Err(AgeError::Recipient("point of low order"));
        }
        // Bech32 readers forgive case and spare bits; one key has one spelling here.
        if recipient.to_string() != text {
            return Err(AgeError::Recipient("not in canonical spelling"));
        }
        Ok(recipient)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hrp = Hrp::parse(AGE_RECIPIENT_HRP).expect("BUG: the prefix is valid bech32");
        bech32::encode_lower_to_fmt::<Bech32, _>(f, hrp, &self.0).map_err(|_| fmt::Error)
    }
}

/// A secret X25519 key that opens envelopes. `Debug` hides it; `Display` **prints the secret**
/// as `AGE-SECRET-KEY-1…`, which is the content of an identity file. Wiped when dropped.
pub struct Identity {
    pub(super) secret: StaticSecret,
    pub(super) recipient: Recipient,
}

impl Identity {
    /// A new identity from 32 random bytes.
    ///
    /// # Errors
    /// [`AgeError::Entropy`] when no entropy is to be had.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, AgeError> {
        let mut secret = Zeroizing::new([0; 32]);
        entropy.fill(secret.as_mut_slice())?;
        Ok(Self::from_bytes(&secret))
    }

    /// The identity with this scalar (clamped on use, as X25519 does).
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        let secret = StaticSecret::from(*secret);
        let recipient = Recipient(PublicKey::from(&secret).to_bytes());
        Self { secret, recipient }
    }

    /// Whom to encrypt to, so that this identity opens it.
    pub fn recipient(&self) -> Recipient {
        self.recipient
    }
}

impl FromStr for Identity {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<Self, AgeError> {
        let bytes = bech32_bytes(text, AGE_IDENTITY_HRP).map_err(AgeError::Identity)?;
        let identity = Self::from_bytes(&bytes);
        if Zeroizing::new(identity.to_string()).as_str() != text {
            return Err(AgeError::Identity("not in canonical spelling"));
        }
        Ok(identity)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hrp = Hrp::parse(AGE_IDENTITY_HRP).expect("BUG: the prefix is valid bech32");
        bech32::encode_upper_to_fmt::<Bech32, _>(f, hrp, self.secret.as_bytes())
            .map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity(secret of {})", self.recipient)
    }
}

/// The 32 bytes of a bech32 text with the prefix `hrp`, in either case.
fn bech32_bytes(text: &str, hrp: &str) -> Result<Zeroizing<[u8; 32]>, &'static str> {
    if text.len() > AGE_KEY_TEXT_MAX {
        return Err("too long");
    }
    let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| "not valid bech32")?;
    if !checked.hrp().as_str().eq_ignore_ascii_case(hrp) {
        return Err("another kind of key");
    }
    let mut bytes = Zeroizing::new([0; 32]);
    let mut given = checked.byte_iter();
    for slot in bytes.iter_mut() {
        *slot = given.next().ok_or("fewer than 32 bytes")?;
    }
    if given.next().is_some() {
        return Err("more than 32 bytes");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::age::encrypt;
    use super::*;
    use crate::ambient::SeededEntropy;

    // source: C2SP CCTV age testkit, files `x25519_grease` and `x25519_low_order`.
    const TESTKIT_IDENTITY: &str =
        "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0";
    // source: age-keygen 1.1.1 `-y`.
    const TESTKIT_RECIPIENT: &str =
        "age1xmwwc06ly3ee5rytxm9mflaz2u56jjj36s0mypdrwsvlul66mv4q47ryef";

    fn entropy() -> SeededEntropy {
        SeededEntropy::new([7; 32])
    }

    #[test]
    fn keys_read_back_and_have_one_spelling() {
        let identity = TESTKIT_IDENTITY.parse::<Identity>().unwrap();
        assert_eq!(identity.to_string(), TESTKIT_IDENTITY);
        assert_eq!(identity.recipient().to_string(), TESTKIT_RECIPIENT);
        assert_eq!(
            TESTKIT_RECIPIENT.parse::<Recipient>().unwrap(),
            identity.recipient()
        );
        assert_eq!(
            format!("{identity:?}"),
            format!("Identity(secret of {TESTKIT_RECIPIENT})")
        );
        assert!(TESTKIT_IDENTITY.to_lowercase().parse::<Identity>().is_err());
        assert!(
            TESTKIT_RECIPIENT
                .to_uppercase()
                .parse::<Recipient>()
                .is_err()
        );
        assert!(TESTKIT_RECIPIENT.parse::<Identity>().is_err());
        assert!(TESTKIT_IDENTITY.parse::<Recipient>().is_err());
        for index in 0..TESTKIT_RECIPIENT.len() {
            let mut text = TESTKIT_RECIPIENT.as_bytes().to_vec();
            text[index] = if text[index] == b'q' { b'p' } else { b'q' };
            assert!(
                String::from_utf8(text)
                    .unwrap()
                    .parse::<Recipient>()
                    .is_err(),
                "{index}"
            );
        }
    }

    #[test]
    fn recipients_of_wrong_length_or_low_order_are_refused() {
        let hrp = Hrp::parse(AGE_RECIPIENT_HRP).unwrap();
        let text = |bytes: &[u8]| bech32::encode::<Bech32>(hrp, bytes).unwrap();
        assert!(text(&[9; 31]).parse::<Recipient>().is_err());
        assert!(text(&[9; 33]).parse::<Recipient>().is_err());
        text(&[9; 32]).parse::<Recipient>().unwrap();
        let mut one = [0; 32];
        one[0] = 1;
        for point in [[0; 32], one] {
            let refused = text(&point).parse::<Recipient>().unwrap_err();
            assert!(refused.to_string().contains("low order"), "{refused}");
            // Even one that came in another way gets nothing.
            let refused = encrypt(b"x", &[Recipient(point)], &mut entropy()).unwrap_err();
            assert!(matches!(refused, AgeError::Recipient(_)));
        }
        let bech32m = bech32::encode::<bech32::Bech32m>(hrp, &[9; 32]).unwrap();
        assert!(bech32m.parse::<Recipient>().is_err());
    }

    proptest! {
        #[test]
        fn reading_keys_never_panics(text in "(age1|AGE-SECRET-KEY-1)?\\PC{0,90}") {
            text.parse::<Recipient>().ok();
            text.parse::<Identity>().ok();
        }
    }
}
