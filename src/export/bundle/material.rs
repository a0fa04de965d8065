//! What every bundle carries whatever its ledger says: the independent verifier, the pages of the formats, and two programs.

use clover_ground::base64;

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// Starts the independent verifier on the bundle that it stands in; also what Python runs of an archive.
pub(super) const VERIFY_PY: &str = include_str!("verify.py");
/// Checks tree, checkpoint and signatures with a shell, `sha256sum` and `openssl`.
pub(super) const VERIFY_SH: &str = include_str!("verify.sh");

/// What stands before the 32 bytes of an Ed25519 key in its `SubjectPublicKeyInfo` (RFC 8410).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A public key as PEM (RFC 7468).
pub(super) fn pem(key: &[u8]) -> String {
    let der = base64::encode(&[&SPKI, key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n")
}
