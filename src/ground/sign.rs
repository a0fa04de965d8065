//! Ed25519 keys and DSSE signatures: sign bytes, verify bytes, and know in the type which was done.
//!
//! A signature covers the DSSE 1.0.2 pre-authentication encoding of a payload type and a body. It is
//! valid iff S < L, A and R are canonical encodings and not of small order, and the cofactorless
//! equation holds; [`PublicKey`] has checked A once, [`PublicKey::verify`] checks the rest. Two other
//! readers of the same predicate exist for speed: [`verify_batch`] (equal keys coalesced; weaker against
//! the key's own holder) and nothing else. Key files are `keyfile`'s, what is signed is `event`'s.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::marker::PhantomData;

use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use curve25519_dalek::traits::VartimeMultiscalarMul;
use ed25519_dalek::SigningKey;
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat;
use ed25519_dalek::hazmat::ExpandedSecretKey;
use serde::Deserialize;
use serde::Serialize;
use sha2::Digest as _;
use sha2::Sha512;

use crate::digest::Digest;
use crate::keyfile;

/// SHA-256 of the public key's SPKI DER: what `openssl pkey -pubin -outform DER | sha256sum` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub Digest);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why bytes are not a usable public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Not a canonical encoding of a curve point.
    #[error("not a canonical Ed25519 public key")]
    NotCanonical,
    /// A point of small order, under which signatures prove nothing.
    #[error("an Ed25519 public key of small order")]
    SmallOrder,
}

/// A signature that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Ed25519 signature does not hold under strict verification")]
pub struct SignatureError;

/// A checked Ed25519 public key: canonical and not of small order.
#[derive(Clone, Debug)]
pub struct PublicKey {
    bytes: [u8; 32],
    id: KeyId,
    /// -A, as the verification equation wants it.
    minus: EdwardsPoint,
}

impl PublicKey {
    /// Checks 32 bytes once and for all.
    ///
    /// # Errors
    /// [`PublicKeyError`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, PublicKeyError> {
        let point = CompressedEdwardsY(*bytes)
            .decompress()
            .ok_or(PublicKeyError::NotCanonical)?;
        if point.compress().0 != *bytes {
            return Err(PublicKeyError::NotCanonical);
        }
        if point.is_small_order() {
            return Err(PublicKeyError::SmallOrder);
        }
        Ok(Self {
            bytes: *bytes,
            id: KeyId(keyfile::key_id(bytes)),
            minus: -point,
        })
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Strict verification of a plain Ed25519 signature over `message`: S < L, and
    /// `R = SB - kA` holds on the encoding of R, which is thereby canonical, and is not of small order.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), SignatureError> {
        self.verify_parts(&[message], signature)
    }

    /// As [`PublicKey::verify`], of a message in parts, one after the other.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify_parts(
        &self,
        message: &[&[u8]],
        signature: &[u8; 64],
    ) -> Result<(), SignatureError> {
        let (r, s) = halves(signature)?;
        let challenge = challenge(&r, self.as_bytes(), message);
        let point = EdwardsPoint::vartime_double_scalar_mul_basepoint(&challenge, &self.minus, &s);
        // Comparing encodings spares the square root that decoding R would cost.
        if point.compress().0 == r && !point.is_small_order() {
            Ok(())
        } else {
            Err(SignatureError)
        }
    }
}

/// A private key with its id at hand.
pub struct Signer {
    key: SigningKey,
    /// What every signature derives from the seed, derived once from the same seed as `public`.
    expanded: ExpandedSecretKey,
    public: VerifyingKey,
    id: KeyId,
}

impl Signer {
    /// From the 32-byte seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self::from(SigningKey::from_bytes(seed))
    }

    /// The id of its public key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its public key's 32 bytes.
    pub fn public_bytes(&self) -> [u8; 32] {
        self.public.to_bytes()
    }

    /// The key itself, for formats that sign plain text (notes).
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Ed25519 over `message` (RFC 8032, 5.1.6).
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.sign_parts(&[message])
    }

    /// Ed25519 over the parts, one after the other.
    fn sign_parts(&self, parts: &[&[u8]]) -> [u8; 64] {
        let message = |hash: &mut Sha512| {
            for part in parts {
                hash.update(part);
            }
            Ok(())
        };
        hazmat::raw_sign_byupdate(&self.expanded, message, &self.public)
            .expect("BUG: hashing a message cannot fail")
            .to_bytes()
    }
}

impl From<SigningKey> for Signer {
    fn from(key: SigningKey) -> Self {
        let public = key.verifying_key();
        Self {
            expanded: ExpandedSecretKey::from(key.as_bytes()),
            id: KeyId(keyfile::key_id(public.as_bytes())),
            public,
            key,
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.id)
    }
}

/// DSSE pre-authentication encoding: `"DSSEv1" SP len(type) SP type SP len(body) SP body`.
pub fn pae(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload_type.len() + body.len() + 32);
    write_pae_head(&mut out, payload_type, body.len());
    out.extend_from_slice(body);
    out
}

/// Appends to `out` what stands before a body of that length in its encoding.
pub fn write_pae_head(out: &mut Vec<u8>, payload_type: &str, body_len: usize) {
    let type_len = payload_type.len();
    write!(out, "DSSEv1 {type_len} {payload_type} {body_len} ")
        .expect("BUG: a Vec takes all bytes");
}

/// The state of a [`Signed`] body whose signature nobody has checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unverified {}
/// The state of a [`Signed`] body whose signature holds under the key it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {}

/// Exact body bytes with the one signature over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed<State> {
    body: Vec<u8>,
    signer: KeyId,
    signature: [u8; 64],
    state: PhantomData<State>,
}

impl Signed<Unverified> {
    /// Bytes from anywhere.
    pub fn new(body: Vec<u8>, signer: KeyId, signature: [u8; 64]) -> Self {
        Self {
            body,
            signer,
            signature,
            state: PhantomData,
        }
    }

    /// Checks the signature strictly under `key`.
    ///
    /// # Errors
    /// [`SignatureError`] when it does not hold or `key` is not the signer's.
    pub fn verify(
        self,
        payload_type: &str,
        key: &PublicKey,
    ) -> Result<Signed<Verified>, SignatureError> {
        if key.id() != self.signer {
            return Err(SignatureError);
        }
        key.verify(&pae(payload_type, &self.body), &self.signature)?;
        Ok(Signed {
            body: self.body,
            signer: self.signer,
            signature: self.signature,
            state: PhantomData,
        })
    }
}

impl Signed<Verified> {
    /// Signs `body`; what this process signed itself needs no further check.
    pub fn sign(payload_type: &str, body: Vec<u8>, signer: &Signer) -> Self {
        let mut head = Vec::with_capacity(payload_type.len() + 32);
        write_pae_head(&mut head, payload_type, body.len());
        let signature = signer.sign_parts(&[&head, &body]);
        Self {
            body,
            signer: signer.id(),
            signature,
            state: PhantomData,
        }
    }
}

impl<State> Signed<State> {
    /// The exact bytes that were signed.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
    /// The key that signed, as the envelope names it.
    pub fn signer(&self) -> KeyId {
        self.signer
    }
    /// The 64 signature bytes.
    pub fn signature(&self) -> &[u8; 64] {
        &self.signature
    }
}

/// One signature of a batch.
pub struct BatchItem<'a> {
    /// The signed message in two parts, one after the other (for an event, what stands before the body in its PAE, and the
    /// body).
    pub message: [&'a [u8]; 2],
    /// The signature.
    pub signature: [u8; 64],
    /// The key it must hold under.
    pub key: &'a PublicKey,
}

/// R as bytes and S as a scalar below L.
fn halves(signature: &[u8; 64]) -> Result<([u8; 32], Scalar), SignatureError> {
    let half = |from: usize| std::array::from_fn(|at| signature[from + at]);
    let s = Option::<Scalar>::from(Scalar::from_canonical_bytes(half(32))).ok_or(SignatureError)?;
    Ok((half(0), s))
}

/// `k = SHA-512(R ‖ A ‖ message) mod L` (RFC 8032, 5.1.7).
fn challenge(r: &[u8; 32], key: &[u8; 32], message: &[&[u8]]) -> Scalar {
    let mut hash = Sha512::new().chain_update(r).chain_update(key);
    for part in message {
        hash.update(part);
    }
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

/// Checks a batch with one multi-scalar equation, equal keys coalesced:
/// `(Σ zᵢsᵢ)B = Σ zᵢRᵢ + Σ_keys (Σ zᵢkᵢ)A`, with 128-bit `zᵢ` drawn from a hash of the whole batch.
///
/// A stranger cannot forge what passes here. The *holder* of a key can craft a signature that passes here
/// and fails strictly (its error has small order), so this never decides what is appended.
///
/// # Errors
/// [`SignatureError`] when any of them fails; which one is for [`PublicKey::verify`] to find.
pub fn verify_batch(items: &[BatchItem<'_>]) -> Result<(), SignatureError> {
    let mut transcript = Sha512::new();
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        let (r, s) = halves(&item.signature)?;
        let challenge = challenge(&r, item.key.as_bytes(), &item.message);
        // It stands for R, the key and the message.
        transcript.update(challenge.as_bytes());
        transcript.update(s.as_bytes());
        parts.push((
            CompressedEdwardsY(r).decompress().ok_or(SignatureError)?,
            s,
            challenge,
        ));
    }
    let weights = batch_weights(transcript.finalize().into());
    let mut base = Scalar::ZERO;
    let mut scalars = Vec::with_capacity(items.len() + 8);
    let mut points = Vec::with_capacity(items.len() + 8);
    let mut keys: BTreeMap<[u8; 32], (Scalar, EdwardsPoint)> = BTreeMap::new();
    for ((item, (point, s, challenge)), weight) in items.iter().zip(parts).zip(weights) {
        base += weight * s;
        // Short as it is: its negative would be twice as long to multiply by.
        scalars.push(weight);
        points.push(point);
        let entry = keys
            .entry(*item.key.as_bytes())
            .or_insert_with(|| (Scalar::ZERO, -item.key.minus));
        entry.0 += weight * challenge;
    }
    for (scalar, point) in keys.into_values() {
        scalars.push(scalar);
        points.push(point);
    }
    scalars.push(-base);
    points.push(curve25519_dalek::constants::ED25519_BASEPOINT_POINT);
    let sum = EdwardsPoint::vartime_multiscalar_mul(&scalars, &points);
    if sum.is_identity() {
        Ok(())
    } else {
        Err(SignatureError)
    }
}

/// The 128-bit weights of a batch, fixed by everything in it: four of each hash.
fn batch_weights(seed: [u8; 64]) -> impl Iterator<Item = Scalar> {
    (0_u64..).flat_map(move |at| {
        let hash = Sha512::new()
            .chain_update(seed)
            .chain_update(at.to_be_bytes())
            .finalize();
        let quarter = |of: usize| {
            let byte = |at: usize| if at < 16 { hash[16 * of + at] } else { 0 };
            Scalar::from_bytes_mod_order(std::array::from_fn(byte))
        };
        [0, 1, 2, 3].map(quarter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(seed: u8) -> Signer {
        let mut bytes = [0; 32];
        for (at, byte) in (0..).zip(bytes.iter_mut()) {
            *byte = seed + at;
        }
        Signer::from_seed(&bytes)
    }

    #[test]
    fn dsse_worked_value() {
        // source: computed with Python `cryptography` and accepted by `securesystemslib`
        let body = br#"{"_type":"https://in-toto.io/Statement/v1","predicate":{"budget":1e-7,"decision":"ship","p":0.031,"peeks":1,"seq":2},"predicateType":"https://ledger.example/predicate/gate-decision/v1","subject":[{"digest":{"sha256":"2a00420360d84351968d49a1f850454e0f70452516da5353fe9e3c329cf69603"},"name":"run/7"}]}"#;
        crate::canon::check(body).unwrap();
        assert_eq!(body.len(), 301);
        assert_eq!(
            Digest::sha256(body).to_hex(),
            "f9af5be1f6b82e1cb9ca2c54b5189ee8ca598b4135e8f0d5a674adade89a66f1"
        );
        let pae = pae("application/vnd.in-toto+json", body);
        assert_eq!(pae.len(), 344);
        assert_eq!(
            Digest::sha256(&pae).to_hex(),
            "e721c8b4e51b0d02b3f36b057ca4411b2ae2f89f97a1e44d0f6aba79f85c9693"
        );
        let signed = Signed::sign("application/vnd.in-toto+json", body.to_vec(), &signer(0x40));
        let hex: String = signed
            .signature()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "e71962243f9eee541410c4bd50b4f89b542b00ddec51792f59b79b7dc0b5c4e8d4919c00da4dca0872bb4181d0ecc8063a1c272bb895cc95f26177d08586410b"
        );
    }

    #[test]
    fn key_ids_are_what_openssl_prints() {
        // source: reference ledger, computed with Python `cryptography`
        assert_eq!(
            signer(0x20).id().to_string(),
            "824c89aa8efb95ef93629b4519599129cace4adac9a6180daba31ceed41ecee6"
        );
        assert_eq!(
            signer(0x40).id().to_string(),
            "788de5096f8b530eef97a4015cffb7cfeb260c23795b846bf8112682a93b1101"
        );
    }

    #[test]
    fn weak_and_non_canonical_keys_are_refused() {
        let mut identity = [0; 32];
        identity[0] = 1;
        assert_eq!(
            PublicKey::from_bytes(&identity).unwrap_err(),
            PublicKeyError::SmallOrder
        );
        // y = p + 1 encodes the identity a second way (p = 2^255 - 19).
        let mut again = [0xff; 32];
        (again[0], again[31]) = (0xee, 0x7f);
        assert_eq!(
            PublicKey::from_bytes(&again).unwrap_err(),
            PublicKeyError::NotCanonical
        );
        // y = p + 3 is a non-canonical encoding of y = 3, a point of large order.
        again[0] = 0xf0;
        assert_eq!(
            PublicKey::from_bytes(&again).unwrap_err(),
            PublicKeyError::NotCanonical
        );
    }

    #[test]
    fn signing_agrees_with_its_peer() {
        use ed25519_dalek::Signer as _;
        for seed in 0..8 {
            let peer = SigningKey::from_bytes(&[seed; 32]);
            let own = Signer::from_seed(&[seed; 32]);
            for len in [0, 1, 63, 64, 111, 112, 127, 128, 129, 700, 40_000] {
                let message = vec![seed ^ 0x5a; len];
                let theirs = peer.sign(&message).to_bytes();
                assert_eq!(own.sign(&message), theirs, "{seed}, {len}");
                let (left, right) = message.split_at(len / 3);
                assert_eq!(own.sign_parts(&[left, right]), theirs);
                let theirs = peer.sign(&pae("a/type", &message)).to_bytes();
                let ours = Signed::sign("a/type", message, &own);
                assert_eq!(*ours.signature(), theirs);
            }
        }
    }

    #[test]
    fn strict_verification_agrees_with_its_peer() {
        let signer = signer(9);
        let key = PublicKey::from_bytes(&signer.public_bytes()).unwrap();
        let peer = VerifyingKey::from_bytes(&signer.public_bytes()).unwrap();
        let message = b"the message";
        let good = signer.sign(message);
        let both = |signature: [u8; 64]| {
            let theirs = peer.verify_strict(message, &signature.into()).is_ok();
            assert_eq!(
                key.verify(message, &signature).is_ok(),
                theirs,
                "{signature:?}"
            );
            theirs
        };
        assert!(both(good));
        for bit in 0..512 {
            let mut changed = good;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!both(changed));
        }
        // S + L is congruent to S and must be refused: L = 2^252 + 27742317777372353535851937790883648493.
        let order = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let mut carried = good;
        let mut carry = 0_u16;
        for (byte, add) in carried[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + add;
            *byte = u8::try_from(carry & 0xff).unwrap();
            carry >>= 8;
        }
        assert!(!both(carried));
        // R of small order with the S that satisfies the equation up to it: R = identity, S = 0.
        let mut small = [0; 64];
        small[0] = 1;
        assert!(!both(small));
    }

    #[test]
    fn a_signature_with_a_small_order_part_fails_strictly() {
        // R' = R + T with T of order 8, and S for the challenge over R': the holder can make this; the
        // cofactorless equation SB - kA = R, not R', must refuse it.
        let seed = Sha512::digest(b"nonce");
        let nonce = Scalar::from_bytes_mod_order_wide(&seed.into());
        let secret = Scalar::from_bytes_mod_order_wide(&Sha512::digest(b"secret").into());
        let public = EdwardsPoint::mul_base(&secret).compress().0;
        let key = PublicKey::from_bytes(&public).unwrap();
        let torsion = curve25519_dalek::constants::EIGHT_TORSION[1];
        for (point, holds) in [
            (EdwardsPoint::mul_base(&nonce), true),
            (EdwardsPoint::mul_base(&nonce) + torsion, false),
        ] {
            let r = point.compress().0;
            let s = nonce + challenge(&r, &public, &[b"m"]) * secret;
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&r);
            signature[32..].copy_from_slice(s.as_bytes());
            assert_eq!(key.verify(b"m", &signature).is_ok(), holds);
        }
    }

    #[test]
    fn a_batch_holds_iff_every_signature_does() {
        let signers = [signer(1), signer(2), signer(3)];
        let keys: Vec<_> = signers
            .iter()
            .map(|s| PublicKey::from_bytes(&s.public_bytes()).unwrap())
            .collect();
        let messages: Vec<_> = (0..40).map(|at| vec![at; 50]).collect();
        let items = |bad: Option<usize>| -> Vec<BatchItem<'_>> {
            (0..40_usize)
                .map(|at| {
                    let message = &messages[at];
                    let mut signature = signers[at % 3].sign(message);
                    if bad == Some(at) {
                        signature[33] ^= 1;
                    }
                    BatchItem {
                        message: message.split_at(at).into(),
                        signature,
                        key: &keys[at % 3],
                    }
                })
                .collect()
        };
        assert_eq!(verify_batch(&items(None)), Ok(()));
        assert_eq!(verify_batch(&[]), Ok(()));
        for bad in 0..40 {
            assert_eq!(verify_batch(&items(Some(bad))), Err(SignatureError));
        }
    }
}
