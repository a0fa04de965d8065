//! The labelled tree of seeds: every draw names where its randomness comes from.

use sha2::Digest as _;
use sha2::Sha256;

/// A node: 32 bytes that seed a generator, or label further nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedTree([u8; 32]);

impl SeedTree {
    /// The root of a number that a person chose: SHA-256 of its decimal digits.
    pub fn of_number(seed: u64) -> Self {
        Self(Sha256::digest(seed.to_string()).into())
    }

    /// A child: SHA-256(parent ‖ 0x00 ‖ label).
    #[must_use]
    pub fn child(&self, label: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([0]);
        hash.update(label);
        Self(hash.finalize().into())
    }

    /// The seed itself.
    pub fn seed(&self) -> [u8; 32] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_the_hash_of_its_path() {
        let root = SeedTree::of_number(42);
        // source: printf 42 | sha256sum
        assert_eq!(root.seed()[..4], [0x73, 0x47, 0x5c, 0xb4]);
        let child = root.child("calibrate/bootstrap");
        let mut bytes = root.seed().to_vec();
        bytes.push(0);
        bytes.extend(b"calibrate/bootstrap");
        let expected: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(child.seed(), expected);
        assert_ne!(child, root.child("calibrate/other"));
    }
}
