//! Hashes of leaves and nodes, and the right edge of a tree. Bytes: see [`super`].

use sha2::Digest as _;
use sha2::Sha256;
use thiserror::Error;

use crate::digest::Digest;

/// The largest tree that [`Frontier::from_parts`] and [`super::Tiler::resume`] accept, 2^62 leaves. No
/// log comes near it, and arithmetic on sizes below it never overflows.
pub const MAX_SIZE: u64 = 1 << 62;

/// The hash of a leaf with the given bytes: SHA-256(0x00 || data).
pub fn leaf_hash(data: &[u8]) -> Digest {
    Digest(
        Sha256::new()
            .chain_update([0])
            .chain_update(data)
            .finalize()
            .into(),
    )
}

/// The hash of an inner node: SHA-256(0x01 || left || right).
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    let mut bytes = [1; 65];
    bytes[1..33].copy_from_slice(&left.0);
    bytes[33..].copy_from_slice(&right.0);
    Digest(Sha256::digest(bytes).into())
}

/// Lines that one thread hashes in one go; more of them leave the nearest cache.
pub const LEAVES_AT_ONCE: usize = 64;

/// [`leaf_hash`] of each of `data`, in their order.
pub fn leaf_hashes(data: &[&[u8]]) -> Vec<Digest> {
    data.iter().map(|data| leaf_hash(data)).collect()
}

/// [`node_hash`] of each two neighbours, in their order: a level from the one below, of even length.
pub(super) fn level_above(below: &[Digest]) -> Vec<Digest> {
    let (pairs, rest) = below.as_chunks::<2>();
    debug_assert!(rest.is_empty());
    pairs
        .iter()
        .map(|[left, right]| node_hash(left, right))
        .collect()
}

/// The root of the tree without leaves: SHA-256 of nothing.
pub fn empty_root() -> Digest {
    Digest::sha256(&[])
}

/// A stored tree state whose parts do not fit its size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// The size is over [`MAX_SIZE`].
    #[error("expected a tree of at most {MAX_SIZE} leaves, found {size}")]
    Size {
        /// The size given.
        size: u64,
    },
    /// A frontier holds one hash for each set bit of its size.
    #[error("expected {expected} frontier hashes for a tree of {size} leaves, found {found}")]
    Frontier {
        /// The size given.
        size: u64,
        /// Set bits of the size.
        expected: usize,
        /// Hashes given.
        found: usize,
    },
    /// A partial tile is not as wide as the size demands.
    #[error("expected {expected} hashes in the partial tile of level {level}, found {found}")]
    Partial {
        /// Tile level.
        level: usize,
        /// floor(size / 256^level) mod 256.
        expected: usize,
        /// Hashes given.
        found: usize,
    },
}

/// The right edge of a tree: the roots of its perfect subtrees, largest first. One hash for each
/// set bit of the size, so appending needs nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    nodes: Vec<Digest>,
}

impl Frontier {
    /// The edge of the empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The edge from its stored parts, as [`Self::parts`] gave them.
    ///
    /// # Errors
    /// When the size is over [`MAX_SIZE`], or the number of hashes is not its number of set bits.
    pub fn from_parts(size: u64, nodes: Vec<Digest>) -> Result<Self, StateError> {
        if size > MAX_SIZE {
            return Err(StateError::Size { size });
        }
        let expected = size.count_ones() as usize;
        if nodes.len() != expected {
            return Err(StateError::Frontier {
                size,
                expected,
                found: nodes.len(),
            });
        }
        Ok(Self { size, nodes })
    }

    /// The number of leaves and the hashes of the perfect subtrees, largest first.
    pub fn parts(&self) -> (u64, &[Digest]) {
        (self.size, &self.nodes)
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf hash. One node hash on average.
    pub fn push(&mut self, leaf: Digest) {
        self.push_with(leaf, |_, _| ());
    }

    /// Appends a leaf hash and shows every perfect subtree that it completes, by binary level.
    pub(super) fn push_with(&mut self, leaf: Digest, completed: impl FnMut(u8, Digest)) {
        self.push_subtree(0, leaf, completed);
    }

    /// Appends the root of a perfect subtree of 2^`start` leaves where one begins, and shows it and every larger one
    /// that it completes, by binary level.
    pub(super) fn push_subtree(
        &mut self,
        start: u8,
        root: Digest,
        mut completed: impl FnMut(u8, Digest),
    ) {
        debug_assert!(self.size.is_multiple_of(1 << start));
        let mut hash = root;
        let mut level = start;
        completed(level, hash);
        while (self.size >> level) & 1 == 1 {
            let left = self
                .nodes
                .pop()
                .expect("BUG: one hash for each set bit of the size");
            hash = node_hash(&left, &hash);
            level += 1;
            completed(level, hash);
        }
        self.nodes.push(hash);
        self.size += 1 << start;
    }

    /// The root of the tree. At most one node hash for each set bit of the size.
    pub fn root(&self) -> Digest {
        fold_right(&self.nodes)
    }
}

/// The root over perfect subtrees, largest first.
pub(super) fn fold_right(nodes: &[Digest]) -> Digest {
    match nodes.split_last() {
        None => empty_root(),
        Some((last, rest)) => rest
            .iter()
            .rev()
            .fold(*last, |right, left| node_hash(left, &right)),
    }
}

/// The root over hashes of one level, as many as a tile has at most.
pub(super) fn root_of(hashes: &[Digest]) -> Digest {
    let mut frontier = Frontier::new();
    for hash in hashes {
        frontier.push(*hash);
    }
    frontier.root()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Digest {
        Digest::from_hex(text).unwrap()
    }

    #[test]
    fn hashes_are_those_of_rfc_6962() {
        // source: Python hashlib, checked against the `ct-merkle` crate; leaf 4 and others there
        let leaf3 = hex("d5bdb58a19173a6a0111df3f1f62dbaa00e44221e0f09b47489812a010cd5314");
        let leaf4 = hex("8e1f887cfc7c7a5e43f202daf67d99ae8f8fd4b33a6b251bcf9f5d83476303ea");
        assert_eq!(leaf_hash(b"e3"), leaf3);
        assert_eq!(leaf_hash(b"e4"), leaf4);
        assert_eq!(
            node_hash(&leaf_hash(b"e0"), &leaf_hash(b"e1")),
            hex("718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d"),
        );
        assert_eq!(
            empty_root(),
            hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        );
        assert_eq!(Frontier::new().root(), empty_root());
    }

    #[test]
    fn a_frontier_continues_from_its_parts() {
        let mut whole = Frontier::new();
        for n in 0..300_u64 {
            let (size, nodes) = whole.parts();
            assert_eq!(size, n);
            let again = Frontier::from_parts(size, nodes.to_vec()).unwrap();
            assert_eq!(again, whole);
            whole.push(leaf_hash(&n.to_be_bytes()));
        }
    }

    #[test]
    fn a_frontier_of_the_wrong_parts_is_refused() {
        let hash = empty_root();
        assert_eq!(
            Frontier::from_parts(3, vec![hash]),
            Err(StateError::Frontier {
                size: 3,
                expected: 2,
                found: 1
            }),
        );
        let size = MAX_SIZE + 1;
        assert_eq!(
            Frontier::from_parts(size, vec![hash; 2]),
            Err(StateError::Size { size }),
        );
        let mut largest = Frontier::from_parts(MAX_SIZE, vec![hash]).unwrap();
        largest.push(hash);
        assert_eq!(largest.size(), MAX_SIZE + 1);
    }
}
