//! Roots and proofs read from tiles, and their verification. Bytes: see [`super`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use super::tile::TILE_HEIGHT;
use super::tile::TILE_WIDTH;
use super::tile::tile_width;
use super::tree::Frontier;
use super::tree::empty_root;
use super::tree::fold_right;
use super::tree::node_hash;
use super::tree::root_of;
use crate::digest::Digest;

/// The largest power of two below `size`, where the RFCs split a tree. `size` is at least 2.
fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// Where the hashes of perfect subtrees come from.
pub trait NodeSource {
    /// Why a hash could not be had.
    type Error;

    /// The hash of the perfect subtree over the leaves `index * 2^level` to
    /// `(index + 1) * 2^level - 1`.
    ///
    /// # Errors
    /// When the source cannot give it.
    fn node(&self, level: u32, index: u64) -> Result<Digest, Self::Error>;
}

/// Where tiles come from: a table, a folder, a server.
pub trait TileSource {
    /// Why a tile could not be read.
    type Error;

    /// The hashes of a tile, at least the first `width` (1 to 256) of them.
    ///
    /// # Errors
    /// When the source cannot give them.
    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Arc<[Digest]>, Self::Error>;
}

/// Why a root or proof could not be computed from tiles.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError<E> {
    /// The source failed.
    #[error(transparent)]
    Source(E),
    /// The source gave fewer hashes than it was asked for.
    #[error("expected {expected} hashes in tile {index} of level {level}, found {found}")]
    Short {
        /// Tile level.
        level: u8,
        /// Number of the tile in its level.
        index: u64,
        /// Hashes asked for.
        expected: usize,
        /// Hashes given.
        found: usize,
    },
    /// The leaf or node is not in a tree of that size.
    #[error("expected a position below the tree size {size}, found {index}")]
    Position {
        /// The position asked for.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// A tree is consistent with larger ones only.
    #[error("expected a first size of at most {second}, found {first}")]
    Order {
        /// The size that should be the smaller.
        first: u64,
        /// The size that should be the larger.
        second: u64,
    },
}

/// Tiles by level and index.
type TilesRead = BTreeMap<(u8, u64), Arc<[Digest]>>;

/// Answers for every perfect subtree of a tree of a fixed size by reading tiles, each once.
pub struct TileNodes<'a, S: TileSource + ?Sized> {
    source: &'a S,
    size: u64,
    read: RefCell<TilesRead>,
}

impl<'a, S: TileSource + ?Sized> TileNodes<'a, S> {
    /// The subtrees of the first `size` leaves of the log behind `source`.
    pub fn new(source: &'a S, size: u64) -> Self {
        Self {
            source,
            size,
            read: RefCell::default(),
        }
    }

    fn tile(&self, level: u8, index: u64) -> Result<Arc<[Digest]>, ReadError<S::Error>> {
        if let Some(tile) = self.read.borrow().get(&(level, index)) {
            return Ok(Arc::clone(tile));
        }
        let width = tile_width(level, index, self.size);
        let tile = self
            .source
            .tile(level, index, width)
            .map_err(ReadError::Source)?;
        let (expected, found) = (usize::from(width), tile.len());
        if found < expected {
            return Err(ReadError::Short {
                level,
                index,
                expected,
                found,
            });
        }
        self.read
            .borrow_mut()
            .insert((level, index), Arc::clone(&tile));
        Ok(tile)
    }
}

impl<S: TileSource + ?Sized> NodeSource for TileNodes<'_, S> {
    type Error = ReadError<S::Error>;

    fn node(&self, level: u32, index: u64) -> Result<Digest, Self::Error> {
        let size = self.size;
        if index >= size.checked_shr(level).unwrap_or(0) {
            return Err(ReadError::Position { index, size });
        }
        let height = u32::from(TILE_HEIGHT);
        let tile_level = u8::try_from(level / height).expect("BUG: the level is below 64");
        let inside = level % height;
        let first = index << inside;
        let tile = self.tile(tile_level, first / u64::from(TILE_WIDTH))?;
        let offset = usize::from(first.to_le_bytes()[0]);
        Ok(root_of(&tile[offset..offset + (1 << inside)]))
    }
}

/// The root over the leaves `from..to`, which the RFC recursion cut out: `from` is a multiple of
/// the smallest power of two that is at least `to - from`, so the set bits of the length, high to
/// low, are its perfect subtrees from left to right.
fn range_root<N: NodeSource>(nodes: &N, from: u64, to: u64) -> Result<Digest, N::Error> {
    let mut subtrees = Vec::new();
    let mut position = from;
    while position < to {
        let level = (to - position).ilog2();
        subtrees.push(nodes.node(level, position >> level)?);
        position += 1 << level;
    }
    Ok(fold_right(&subtrees))
}

/// The root of the first `size` leaves.
///
/// # Errors
/// When the source fails, or gives too few hashes.
pub fn root_at<S: TileSource + ?Sized>(
    source: &S,
    size: u64,
) -> Result<Digest, ReadError<S::Error>> {
    range_root(&TileNodes::new(source, size), 0, size)
}

/// The inclusion proof of leaf `index` in the tree of the first `size` leaves, sibling of the leaf
/// first (RFC 6962 2.1.1). Reads at most two tiles of each level.
///
/// # Errors
/// When `index` is not below `size`, the source fails, or gives too few hashes.
pub fn inclusion_proof<S: TileSource + ?Sized>(
    source: &S,
    index: u64,
    size: u64,
) -> Result<Vec<Digest>, ReadError<S::Error>> {
    if index >= size {
        return Err(ReadError::Position { index, size });
    }
    let nodes = TileNodes::new(source, size);
    let (mut from, mut to) = (0, size);
    let mut proof = Vec::new();
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            proof.push(range_root(&nodes, middle, to)?);
            to = middle;
        } else {
            proof.push(range_root(&nodes, from, middle)?);
            from = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// The proof that the tree of the first `second` leaves extends that of the first `first`
/// (RFC 6962 2.1.2). Empty when `first` is 0 or `second`. Reads at most two tiles of each level.
///
/// # Errors
/// When `first` is over `second`, the source fails, or gives too few hashes.
pub fn consistency_proof<S: TileSource + ?Sized>(
    source: &S,
    first: u64,
    second: u64,
) -> Result<Vec<Digest>, ReadError<S::Error>> {
    if first > second {
        return Err(ReadError::Order { first, second });
    }
    let mut proof = Vec::new();
    if first == 0 {
        return Ok(proof);
    }
    let nodes = TileNodes::new(source, second);
    let (mut from, mut to) = (0, second);
    while first != to {
        let middle = from + split(to - from);
        if first <= middle {
            proof.push(range_root(&nodes, middle, to)?);
            to = middle;
        } else {
            proof.push(range_root(&nodes, from, middle)?);
            from = middle;
        }
    }
    // The verifier knows the root of the whole first tree, but of no part of it.
    if from > 0 {
        proof.push(range_root(&nodes, from, to)?);
    }
    proof.reverse();
    Ok(proof)
}

/// Climbs as the verification algorithms of RFC 9162 do after a right child: past the levels at
/// which the node has no sibling.
fn skip_lone_levels(node: &mut u64, last: &mut u64) {
    while *node & 1 == 0 && *node != 0 {
        *node >>= 1;
        *last >>= 1;
    }
}

/// Whether `proof` shows that `leaf` is the leaf hash at `index` in the tree of `size` leaves with
/// this root (RFC 9162 2.1.3.2).
pub fn verify_inclusion(
    index: u64,
    size: u64,
    leaf: &Digest,
    proof: &[Digest],
    root: &Digest,
) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(sibling, &hash);
            skip_lone_levels(&mut node, &mut last);
        } else {
            hash = node_hash(&hash, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Whether `proof` shows that the tree of `second` leaves with `root2` extends the tree of `first`
/// leaves with `root1` (RFC 9162 2.1.4.2). Every tree extends the empty one, by an empty proof.
pub fn verify_consistency(
    first: u64,
    second: u64,
    root1: &Digest,
    root2: &Digest,
    proof: &[Digest],
) -> bool {
    if first > second {
        return false;
    }
    if first == second {
        return proof.is_empty() && root1 == root2;
    }
    if first == 0 {
        return proof.is_empty() && *root1 == empty_root();
    }
    let (start, rest) = match proof.split_first() {
        None => return false,
        Some(_) if first.is_power_of_two() => (root1, proof),
        Some(parts) => parts,
    };
    let (mut node, mut last) = (first - 1, second - 1);
    while node & 1 == 1 {
        node >>= 1;
        last >>= 1;
    }
    let (mut older, mut newer) = (*start, *start);
    for hash in rest {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            older = node_hash(hash, &older);
            newer = node_hash(hash, &newer);
            skip_lone_levels(&mut node, &mut last);
        } else {
            newer = node_hash(&newer, hash);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && older == *root1 && newer == *root2
}

/// A tile that [`MemoryTiles`] does not hold in that width.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected tile {index} of level {level} to be {width} wide, the tree is too small for it")]
pub struct MissingTile {
    /// Tile level.
    pub level: u8,
    /// Number of the tile in its level.
    pub index: u64,
    /// Hashes asked for.
    pub width: u16,
}

/// All tiles of a tree in memory, about 32 bytes a leaf: for logs read from a file, and for tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTiles {
    frontier: Frontier,
    levels: Vec<Vec<Digest>>,
}

impl MemoryTiles {
    /// The empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a leaf hash.
    pub fn push(&mut self, leaf: Digest) {
        let Self { frontier, levels } = self;
        frontier.push_with(leaf, |binary, hash| {
            if binary.is_multiple_of(TILE_HEIGHT) {
                let level = usize::from(binary / TILE_HEIGHT);
                if levels.len() == level {
                    levels.push(Vec::new());
                }
                levels[level].push(hash);
            }
        });
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The root of the tree.
    pub fn root(&self) -> Digest {
        self.frontier.root()
    }
}

impl TileSource for MemoryTiles {
    type Error = MissingTile;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Arc<[Digest]>, MissingTile> {
        self.levels
            .get(usize::from(level))
            .and_then(|hashes| {
                let from = usize::try_from(index)
                    .ok()?
                    .checked_mul(usize::from(TILE_WIDTH))?;
                hashes.get(from..from.checked_add(usize::from(width))?)
            })
            .map(Arc::from)
            .ok_or(MissingTile {
                level,
                index,
                width,
            })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::tree::leaf_hash;
    use super::*;

    /// The definitions of RFC 6962 2.1, word by word.
    mod naive {
        use super::super::*;

        pub(super) fn root(leaves: &[Digest]) -> Digest {
            match leaves {
                [] => empty_root(),
                [leaf] => *leaf,
                _ => {
                    let (left, right) = leaves.split_at(k(leaves));
                    node_hash(&root(left), &root(right))
                }
            }
        }

        fn k(leaves: &[Digest]) -> usize {
            let mut k = 1;
            while 2 * k < leaves.len() {
                k *= 2;
            }
            k
        }

        pub(super) fn path(m: usize, leaves: &[Digest]) -> Vec<Digest> {
            if leaves.len() == 1 {
                return Vec::new();
            }
            let k = k(leaves);
            let (left, right) = leaves.split_at(k);
            let (mut proof, sibling) = if m < k {
                (path(m, left), root(right))
            } else {
                (path(m - k, right), root(left))
            };
            proof.push(sibling);
            proof
        }

        pub(super) fn subproof(m: usize, leaves: &[Digest], whole: bool) -> Vec<Digest> {
            if m == leaves.len() {
                return if whole {
                    Vec::new()
                } else {
                    vec![root(leaves)]
                };
            }
            let k = k(leaves);
            let (left, right) = leaves.split_at(k);
            let (mut proof, sibling) = if m <= k {
                (subproof(m, left, whole), root(right))
            } else {
                (subproof(m - k, right, false), root(left))
            };
            proof.push(sibling);
            proof
        }
    }

    fn at(position: u64) -> usize {
        usize::try_from(position).unwrap()
    }

    fn leaves(count: u64) -> Vec<Digest> {
        (0..count).map(|n| leaf_hash(&n.to_be_bytes())).collect()
    }

    fn tiles(leaves: &[Digest]) -> MemoryTiles {
        let mut tiles = MemoryTiles::new();
        for leaf in leaves {
            tiles.push(*leaf);
        }
        tiles
    }

    /// Every way to change a proof that a careless verifier might let pass.
    fn broken(proof: &[Digest]) -> Vec<Vec<Digest>> {
        let mut all = Vec::new();
        for place in 0..proof.len() {
            for byte in 0..32 {
                let mut changed = proof.to_vec();
                changed[place].0[byte] ^= 1 << (byte % 8);
                all.push(changed);
            }
            let mut without = proof.to_vec();
            without.remove(place);
            all.push(without);
        }
        for place in 0..=proof.len() {
            let mut longer = proof.to_vec();
            longer.insert(place, empty_root());
            all.push(longer);
        }
        all
    }

    #[test]
    fn inclusion_of_every_leaf_in_every_tree_below_70() {
        let all = leaves(70);
        let source = tiles(&all);
        for size in 0..70 {
            let tree = &all[..at(size)];
            let root = naive::root(tree);
            assert_eq!(root_at(&source, size), Ok(root));
            for index in 0..size {
                let leaf = &all[at(index)];
                let proof = inclusion_proof(&source, index, size).unwrap();
                assert_eq!(proof, naive::path(at(index), tree));
                assert!(verify_inclusion(index, size, leaf, &proof, &root));
                for other in (0..70).filter(|other| *other != index) {
                    assert!(!verify_inclusion(other, size, leaf, &proof, &root));
                }
                assert!(!verify_inclusion(index, size, &empty_root(), &proof, &root));
                assert!(!verify_inclusion(index, size, leaf, &proof, &empty_root()));
            }
            assert_eq!(
                inclusion_proof(&source, size, size),
                Err(ReadError::Position { index: size, size }),
            );
        }
    }

    #[test]
    fn consistency_of_every_pair_of_trees_below_70() {
        let all = leaves(70);
        let source = tiles(&all);
        let all_roots: Vec<_> = (0..70).map(|n| naive::root(&all[..n])).collect();
        for second in 0..70_u64 {
            for first in 0..=second {
                let (root1, root2) = (&all_roots[at(first)], &all_roots[at(second)]);
                let proof = consistency_proof(&source, first, second).unwrap();
                if first > 0 {
                    let tree = &all[..at(second)];
                    assert_eq!(proof, naive::subproof(at(first), tree, true));
                }
                assert!(verify_consistency(first, second, root1, root2, &proof));
                let wrong = &leaf_hash(b"wrong");
                assert!(!verify_consistency(first, second, wrong, root2, &proof));
                if first > 0 {
                    assert!(!verify_consistency(first, second, root1, wrong, &proof));
                }
                if first < second {
                    assert!(!verify_consistency(second, first, root2, root1, &proof));
                    assert_eq!(
                        consistency_proof(&source, second, first),
                        Err(ReadError::Order {
                            first: second,
                            second: first
                        }),
                    );
                }
            }
        }
    }

    #[test]
    fn a_changed_proof_is_refused() {
        let all = leaves(23);
        let source = tiles(&all);
        for size in [1, 2, 3, 8, 13, 23] {
            let root = root_at(&source, size).unwrap();
            for index in 0..size {
                let leaf = &all[at(index)];
                for proof in broken(&inclusion_proof(&source, index, size).unwrap()) {
                    assert!(!verify_inclusion(index, size, leaf, &proof, &root));
                }
            }
            for first in 0..=size {
                let older = root_at(&source, first).unwrap();
                for proof in broken(&consistency_proof(&source, first, size).unwrap()) {
                    assert!(!verify_consistency(first, size, &older, &root, &proof));
                }
            }
        }
    }

    #[test]
    fn proofs_of_the_worked_example() {
        // source: Python, accepted by the crates `tlog_tiles` and `ct-merkle`
        let hex = |text| Digest::from_hex(text).unwrap();
        let all = [
            hex("956ae51bd3e285ccb826298dd523dd08824ce5579749994f2e0021737b9dd4b8"),
            hex("d38b823b070424fc9303ff6f20f4ddeef6dc32aa02c75d9c8c3ae46062c78f6b"),
            hex("1a94c52185af5e03889183ec23dc393e3a0a2be46ea089b890c5d9e39e114d97"),
            hex("d5bdb58a19173a6a0111df3f1f62dbaa00e44221e0f09b47489812a010cd5314"),
            hex("8e1f887cfc7c7a5e43f202daf67d99ae8f8fd4b33a6b251bcf9f5d83476303ea"),
        ];
        let node01 = hex("718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d");
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "956ae51bd3e285ccb826298dd523dd08824ce5579749994f2e0021737b9dd4b8",
            "718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d",
            "b9cddfcea5720dfb26b8e6edb387067d6e56562c774683c5a61e837dabfa54e9",
            "e5bb8fd393a382a2c0f5782b4d0e302b6b3ac03d61066e89d0794921477fdea9",
            "8c4a4c13e1632762d84532c711b2b1b7aabc1c1cc9b8c53f83006049d35e6547",
        ];
        let source = tiles(&all);
        for (size, root) in (0..).zip(roots) {
            assert_eq!(root_at(&source, size), Ok(hex(root)));
        }
        assert_eq!(source.root(), hex(roots[5]));
        assert_eq!(
            inclusion_proof(&source, 2, 5).unwrap(),
            [all[3], node01, all[4]]
        );
        assert_eq!(
            consistency_proof(&source, 3, 5).unwrap(),
            [all[2], all[3], node01, all[4]],
        );
    }

    /// Counts reads, and refuses to read a tile twice.
    struct Once<'a> {
        tiles: &'a MemoryTiles,
        reads: Cell<usize>,
        seen: RefCell<Vec<(u8, u64)>>,
    }

    impl TileSource for Once<'_> {
        type Error = MissingTile;

        fn tile(&self, level: u8, index: u64, width: u16) -> Result<Arc<[Digest]>, MissingTile> {
            assert!(!self.seen.borrow().contains(&(level, index)), "read twice");
            self.seen.borrow_mut().push((level, index));
            self.reads.set(self.reads.get() + 1);
            self.tiles.tile(level, index, width)
        }
    }

    #[test]
    fn proofs_of_large_trees_equal_the_definition_and_read_few_tiles() {
        let all = leaves(70_000);
        let source = tiles(&all);
        let sizes = [70_000, 65_536, 65_537, 40_961, 257, 256, 255];
        for (turn, size) in (0_u64..).zip(sizes) {
            let tree = &all[..at(size)];
            let random =
                u64::from_be_bytes(*leaf_hash(&turn.to_be_bytes()).0.first_chunk().unwrap());
            let once = || Once {
                tiles: &source,
                reads: Cell::new(0),
                seen: RefCell::default(),
            };
            let index = random % size;
            let reader = once();
            let proof = inclusion_proof(&reader, index, size).unwrap();
            assert_eq!(proof, naive::path(at(index), tree));
            assert!(reader.reads.get() <= 6, "{} tiles", reader.reads.get());
            let first = 1 + (random >> 20) % size;
            let reader = once();
            let proof = consistency_proof(&reader, first, size).unwrap();
            assert_eq!(proof, naive::subproof(at(first), tree, true));
            assert!(reader.reads.get() <= 6, "{} tiles", reader.reads.get());
            assert_eq!(root_at(&once(), size), Ok(naive::root(tree)));
        }
    }

    #[test]
    fn a_source_that_fails_or_gives_too_little_is_reported() {
        struct Short;
        impl TileSource for Short {
            type Error = MissingTile;
            fn tile(&self, _: u8, _: u64, _: u16) -> Result<Arc<[Digest]>, MissingTile> {
                Ok(Arc::from([empty_root()]))
            }
        }
        assert_eq!(
            root_at(&Short, 5),
            Err(ReadError::Short {
                level: 0,
                index: 0,
                expected: 5,
                found: 1
            }),
        );
        let missing = MissingTile {
            level: 0,
            index: 0,
            width: 3,
        };
        let source = tiles(&leaves(2));
        assert_eq!(root_at(&source, 3), Err(ReadError::Source(missing)));
        let huge = inclusion_proof(&source, u64::MAX - 1, u64::MAX);
        assert!(matches!(huge, Err(ReadError::Source(_))));
        let nodes = TileNodes::new(&source, 2);
        assert!(nodes.node(1, 1).is_err());
        assert!(nodes.node(64, 0).is_err());
        assert!(nodes.node(u32::MAX, 0).is_err());
    }
}
