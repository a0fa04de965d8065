//! The worked example that the tests of this folder share: a log of five entries, its checkpoint
//! signed by the log (Ed25519 seed 00..1f) and cosigned by a witness (seed 20..3f).
//!
//! Source: computed with Python `cryptography`, accepted by the crates `signed_note` and
//! `tlog_tiles` and by `openssl pkeyutl`.

use ed25519_dalek::SigningKey;

use super::key::KeyName;
use super::key::VerifierKey;

pub(super) const LOG: &str = "ledger.example/exp1";
pub(super) const LOG_VKEY: &str =
    "ledger.example/exp1+4fdfa565+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
pub(super) const WITNESS_VKEY: &str =
    "witness.example/w1+20324abe+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X";
/// When the witness signed, in Unix seconds.
pub(super) const TIME: u64 = 1_790_000_000;
pub(super) const TEXT: &str =
    "ledger.example/exp1\n5\njEpME+FjJ2LYRTLHEbKxt6q8HBzJuMU/gwBgSdNeZUc=\n";
pub(super) const NOTE: &str = "\
ledger.example/exp1
5
jEpME+FjJ2LYRTLHEbKxt6q8HBzJuMU/gwBgSdNeZUc=

— ledger.example/exp1 T9+lZVL+9b4rO6IHEzud4EFYKyUUxeYCjp1IicovhZYNRnY15S+J6NuHDaQG9/IGgvDHUKWJSVjzEUnhLnuwaWUtAw8=
— witness.example/w1 IDJKvgAAAABqsTuAfylBa/rJ2HikQCc61Pmx9Usslk6G7QEwNK2zwHxG2esDG0oFAYqP4Z6sZlxW4lHmEQbeJzdKMC0KIYh12kdnDg==
";

fn secret(first: u8) -> SigningKey {
    SigningKey::from_bytes(&std::array::from_fn(|n| first + u8::try_from(n).unwrap()))
}

pub(super) fn log() -> (VerifierKey, SigningKey) {
    let secret = secret(0);
    let name = KeyName::parse(LOG).unwrap();
    let key = VerifierKey::ed25519(name, secret.verifying_key().to_bytes()).unwrap();
    (key, secret)
}

pub(super) fn witness() -> (VerifierKey, SigningKey) {
    let secret = secret(0x20);
    let name = KeyName::parse("witness.example/w1").unwrap();
    let key = VerifierKey::cosignature(name, secret.verifying_key().to_bytes()).unwrap();
    (key, secret)
}
