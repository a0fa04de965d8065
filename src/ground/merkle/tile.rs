//! Cutting a tree into tiles; paths and byte forms of tiles and entry bundles. Bytes: see
//! [`super`].

use std::cmp::Ordering;

use thiserror::Error;

use super::tree::Frontier;
use super::tree::MAX_SIZE;
use super::tree::StateError;
use super::tree::level_above;
use super::tree::root_of;
use crate::digest::Digest;

/// Hashes in a full tile, and entries in a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// The most bytes one entry of a bundle may have, because its length is a `u16`.
pub const MAX_ENTRY_BYTES: usize = 65_535;

/// Binary levels in one tile level.
pub(super) const TILE_HEIGHT: u8 = 8;

/// A full tile, cut by [`Tiler::push`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Tile level; 0 holds leaf hashes.
    pub level: u8,
    /// Number of the tile in its level, from 0.
    pub index: u64,
    /// Its 256 hashes.
    pub hashes: Vec<Digest>,
    /// The root over them, which is a hash of a tile of the next level.
    pub root: Digest,
}

/// A [`Frontier`] that also keeps the partial tiles and cuts each tile when it is full. The root
/// of a tile costs nothing: the frontier computes it anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiler {
    frontier: Frontier,
    partial: Vec<Vec<Digest>>,
}

impl Tiler {
    /// The empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues a tree of `size` leaves from its partial tiles, `partial[l]` being that of tile
    /// level `l`. Empty levels at the end may be left out.
    ///
    /// # Errors
    /// When the size is over [`MAX_SIZE`], or `partial[l]` does not hold
    /// floor(size / 256^l) mod 256 hashes.
    pub fn resume(size: u64, mut partial: Vec<Vec<Digest>>) -> Result<Self, StateError> {
        if size > MAX_SIZE {
            return Err(StateError::Size { size });
        }
        let levels = levels_of(size).max(partial.len());
        partial.resize(levels, Vec::new());
        let mut nodes = Vec::with_capacity(size.count_ones() as usize);
        for (level, hashes) in partial.iter().enumerate().rev() {
            let expected = u8::try_from(level).map_or(0, |l| usize::from(partial_width(l, size)));
            if hashes.len() != expected {
                return Err(StateError::Partial {
                    level,
                    expected,
                    found: hashes.len(),
                });
            }
            // Inside a tile the perfect subtrees stand largest first too, one for each set bit.
            let mut rest = hashes.as_slice();
            while !rest.is_empty() {
                let (subtree, after) = rest.split_at(1 << rest.len().ilog2());
                nodes.push(root_of(subtree));
                rest = after;
            }
        }
        partial.truncate(levels_of(size));
        Ok(Self {
            frontier: Frontier::from_parts(size, nodes)?,
            partial,
        })
    }

    /// Appends a leaf hash and returns the tiles that it fills, lowest level first: none in 255 of
    /// 256 calls, and then nothing is allocated for the answer.
    pub fn push(&mut self, leaf: Digest) -> Vec<Tile> {
        self.push_subtree(0, leaf)
    }

    /// Appends leaf hashes and returns the tiles that they fill, in the order in which [`Self::push`] would have
    /// returned them. Whole tiles cost less here than leaf by leaf.
    pub fn extend(&mut self, leaves: &[Digest]) -> Vec<Tile> {
        let width = usize::from(TILE_WIDTH);
        let begun = usize::from(partial_width(0, self.size()));
        let to_edge = (width - begun) % width;
        let (first, rest) = leaves.split_at(to_edge.min(leaves.len()));
        let mut tiles = Vec::new();
        for leaf in first {
            tiles.append(&mut self.push(*leaf));
        }
        let mut blocks = rest.chunks_exact(width);
        for block in &mut blocks {
            let mut level = level_above(block);
            while level.len() > 1 {
                level = level_above(&level);
            }
            if self.partial.is_empty() {
                self.partial.push(Vec::new());
            }
            self.partial[0] = block.to_vec();
            tiles.append(&mut self.push_subtree(TILE_HEIGHT, level[0]));
        }
        for leaf in blocks.remainder() {
            tiles.append(&mut self.push(*leaf));
        }
        tiles
    }

    /// Appends the root of a perfect subtree of 2^`start` leaves where one begins. Below its level the partial tiles
    /// hold its hashes already.
    fn push_subtree(&mut self, start: u8, root: Digest) -> Vec<Tile> {
        let Self { frontier, partial } = self;
        let position = frontier.size();
        let mut tiles = Vec::new();
        frontier.push_subtree(start, root, |binary, hash| {
            if !binary.is_multiple_of(TILE_HEIGHT) {
                return;
            }
            let level = binary / TILE_HEIGHT;
            if let Some(below) = level.checked_sub(1) {
                let empty = Vec::with_capacity(usize::from(TILE_WIDTH));
                tiles.push(Tile {
                    level: below,
                    index: position >> binary,
                    hashes: std::mem::replace(&mut partial[usize::from(below)], empty),
                    root: hash,
                });
            }
            let level = usize::from(level);
            if partial.len() == level {
                partial.push(Vec::with_capacity(usize::from(TILE_WIDTH)));
            }
            partial[level].push(hash);
        });
        tiles
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The root of the tree.
    pub fn root(&self) -> Digest {
        self.frontier.root()
    }

    /// The right edge.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The partial tile of each level, 0 to 255 hashes each: what [`Self::resume`] takes.
    pub fn partial(&self) -> &[Vec<Digest>] {
        &self.partial
    }
}

/// Tile levels of a tree that hold any hash.
fn levels_of(size: u64) -> usize {
    size.checked_ilog2()
        .map_or(0, |log| (log / u32::from(TILE_HEIGHT)) as usize + 1)
}

/// Hashes at a tile level: floor(size / 256^level).
fn hashes_at(level: u8, size: u64) -> u64 {
    size.checked_shr(u32::from(TILE_HEIGHT) * u32::from(level))
        .unwrap_or(0)
}

/// The number of full tiles at a tile level.
pub fn full_tiles(level: u8, size: u64) -> u64 {
    hashes_at(level, size) / u64::from(TILE_WIDTH)
}

/// The width of the partial tile at a tile level, 0 when there is none:
/// floor(size / 256^level) mod 256. Level 0 also gives the width of the partial entry bundle.
pub fn partial_width(level: u8, size: u64) -> u16 {
    u16::from(hashes_at(level, size).to_le_bytes()[0])
}

/// The width that a tile has in a tree of `size` leaves: 256, less at the right edge, 0 beyond it.
pub fn tile_width(level: u8, index: u64, size: u64) -> u16 {
    let full = full_tiles(level, size);
    match index.cmp(&full) {
        Ordering::Less => TILE_WIDTH,
        Ordering::Equal => partial_width(level, size),
        Ordering::Greater => 0,
    }
}

/// The path of a hash tile under the log's prefix: `tile/0/x001/x234/067`, with `.p/112` behind it
/// for a width of 112. `width` is 1 to 256.
pub fn tile_path(level: u8, index: u64, width: u16) -> String {
    format!("tile/{level}/{}", tile_number(index, width))
}

/// The path of an entry bundle under the log's prefix: `tile/entries/273.p/112`.
pub fn entries_path(index: u64, width: u16) -> String {
    format!("tile/entries/{}", tile_number(index, width))
}

/// Groups of three digits, all but the last led by `x`, then the width of a partial tile.
fn tile_number(index: u64, width: u16) -> String {
    let mut path = format!("{:03}", index % 1000);
    let mut rest = index / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    if width < TILE_WIDTH {
        path = format!("{path}.p/{width}");
    }
    path
}

/// Bytes that are no tile or no entry bundle, or an entry that fits into none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// An entry is over [`MAX_ENTRY_BYTES`].
    #[error("expected entries of at most 65,535 bytes, entry {entry} has {bytes}")]
    TooLong {
        /// Its place in the bundle, from 0.
        entry: usize,
        /// Its length.
        bytes: usize,
    },
    /// The bytes end inside an entry.
    #[error("expected entry {entry} to be complete, the bundle ends inside it")]
    CutShort {
        /// Its place in the bundle, from 0.
        entry: usize,
    },
    /// There are no entries or hashes, or more than 256.
    #[error("expected 1 to 256 entries or hashes, found {found}")]
    Width {
        /// How many there are.
        found: usize,
    },
    /// The length of a tile is no multiple of 32.
    #[error("expected whole hashes of 32 bytes, found {bytes} bytes")]
    Ragged {
        /// The length.
        bytes: usize,
    },
}

fn check_width(found: usize) -> Result<(), BundleError> {
    if (1..=usize::from(TILE_WIDTH)).contains(&found) {
        Ok(())
    } else {
        Err(BundleError::Width { found })
    }
}

/// The bytes of an entry bundle.
///
/// # Errors
/// When there are not 1 to 256 entries, or one is over [`MAX_ENTRY_BYTES`].
pub fn encode_bundle<E: AsRef<[u8]>>(entries: &[E]) -> Result<Vec<u8>, BundleError> {
    check_width(entries.len())?;
    let mut bytes = Vec::new();
    for (entry, data) in entries.iter().map(AsRef::as_ref).enumerate() {
        let length = u16::try_from(data.len()).map_err(|_| BundleError::TooLong {
            entry,
            bytes: data.len(),
        })?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// The entries of a bundle.
///
/// # Errors
/// When the bytes end inside an entry, or there are not 1 to 256 of them.
pub fn decode_bundle(mut bytes: &[u8]) -> Result<Vec<&[u8]>, BundleError> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let cut = BundleError::CutShort {
            entry: entries.len(),
        };
        let (length, rest) = bytes.split_first_chunk::<2>().ok_or_else(|| cut.clone())?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (entry, rest) = rest.split_at_checked(length).ok_or(cut)?;
        entries.push(entry);
        bytes = rest;
    }
    check_width(entries.len())?;
    Ok(entries)
}

/// The bytes of a tile: its hashes one after the other.
pub fn encode_tile(hashes: &[Digest]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The hashes of a tile.
///
/// # Errors
/// When the bytes are not 1 to 256 whole hashes.
pub fn decode_tile(bytes: &[u8]) -> Result<Vec<Digest>, BundleError> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(BundleError::Ragged { bytes: bytes.len() });
    }
    check_width(hashes.len())?;
    Ok(hashes.iter().map(|hash| Digest(*hash)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tree::leaf_hash;
    use super::super::tree::leaf_hashes;
    use super::*;

    #[test]
    fn widths_of_a_tree_of_70_000() {
        // source: C2SP tlog-tiles, the example of section "Merkle Tree"
        let size = 70_000;
        assert_eq!((full_tiles(0, size), partial_width(0, size)), (273, 112));
        assert_eq!((full_tiles(1, size), partial_width(1, size)), (1, 17));
        assert_eq!((full_tiles(2, size), partial_width(2, size)), (0, 1));
        assert_eq!((full_tiles(3, size), partial_width(3, size)), (0, 0));
        assert_eq!((full_tiles(255, size), partial_width(255, size)), (0, 0));
        assert_eq!(tile_width(0, 272, size), 256);
        assert_eq!(tile_width(0, 273, size), 112);
        assert_eq!(tile_width(0, 274, size), 0);
    }

    #[test]
    fn paths_group_digits_by_three() {
        // source: C2SP tlog-tiles
        assert_eq!(tile_path(0, 1_234_067, 256), "tile/0/x001/x234/067");
        assert_eq!(tile_path(0, 273, 112), "tile/0/273.p/112");
        assert_eq!(tile_path(1, 0, 256), "tile/1/000");
        assert_eq!(tile_path(2, 1000, 1), "tile/2/x001/000.p/1");
        assert_eq!(entries_path(0, 5), "tile/entries/000.p/5");
        assert_eq!(
            tile_path(0, u64::MAX, 256),
            "tile/0/x018/x446/x744/x073/x709/x551/615",
        );
    }

    #[test]
    fn bundles_and_tiles_read_back() {
        let longest = vec![7; MAX_ENTRY_BYTES];
        let entries: [&[u8]; 3] = [b"e0", b"", &longest];
        let bytes = encode_bundle(&entries).unwrap();
        assert_eq!(&bytes[..6], b"\0\x02e0\0\0");
        assert_eq!(decode_bundle(&bytes).unwrap(), entries);
        assert_eq!(
            decode_bundle(&bytes[..bytes.len() - 1]),
            Err(BundleError::CutShort { entry: 2 })
        );
        assert_eq!(
            decode_bundle(&bytes[..5]),
            Err(BundleError::CutShort { entry: 1 })
        );
        assert_eq!(decode_bundle(&[]), Err(BundleError::Width { found: 0 }));
        assert_eq!(
            decode_bundle(&[0; 514]),
            Err(BundleError::Width { found: 257 })
        );
        let long = vec![0; MAX_ENTRY_BYTES + 1];
        assert_eq!(
            encode_bundle(&[long]),
            Err(BundleError::TooLong {
                entry: 0,
                bytes: 65_536
            }),
        );
        assert_eq!(
            encode_bundle::<&[u8]>(&[]),
            Err(BundleError::Width { found: 0 })
        );

        let hashes = vec![leaf_hash(b"a"), leaf_hash(b"b")];
        assert_eq!(decode_tile(&encode_tile(&hashes)).unwrap(), hashes);
        assert_eq!(
            decode_tile(&[0; 33]),
            Err(BundleError::Ragged { bytes: 33 })
        );
        assert_eq!(
            decode_tile(&[0; 257 * 32]),
            Err(BundleError::Width { found: 257 })
        );
    }

    #[test]
    fn full_tiles_feed_the_level_above_and_state_resumes() {
        let mut tiler = Tiler::new();
        let mut cut = vec![Vec::new(); 3];
        for n in 0..70_000_u64 {
            for tile in tiler.push(leaf_hash(&n.to_be_bytes())) {
                assert_eq!(tile.hashes.len(), 256);
                assert_eq!(tile.root, root_of(&tile.hashes));
                let level: &mut Vec<Tile> = &mut cut[usize::from(tile.level)];
                assert_eq!(tile.index, level.len() as u64);
                level.push(tile);
            }
            if n % 997 == 0 || n > 65_530 && n < 65_540 {
                let again = Tiler::resume(tiler.size(), tiler.partial().to_vec()).unwrap();
                assert_eq!(again, tiler);
                assert_eq!(again.root(), tiler.root());
            }
        }
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [273, 1, 0]);
        let widths: Vec<_> = tiler.partial().iter().map(Vec::len).collect();
        assert_eq!(widths, [112, 17, 1]);
        let roots: Vec<_> = cut[0].iter().map(|tile| tile.root).collect();
        assert_eq!(cut[1][0].hashes, roots[..256]);
        assert_eq!(tiler.partial()[1], roots[256..]);
        assert_eq!(tiler.partial()[2], [cut[1][0].root]);
    }

    #[test]
    fn many_leaves_at_once_are_those_one_by_one() {
        let lines: Vec<Vec<u8>> = (0..1_300_u16)
            .map(|n| vec![n.to_be_bytes()[1]; usize::from(n % 700)])
            .collect();
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        let leaves: Vec<Digest> = lines.iter().map(|line| leaf_hash(line)).collect();
        assert_eq!(leaf_hashes(&lines), leaves);
        for begun in [0, 1, 255, 256, 257, 700] {
            for more in [0, 1, 2, 254, 255, 256, 257, 600] {
                let mut one = Tiler::new();
                for leaf in &leaves[..begun] {
                    one.push(*leaf);
                }
                let mut many = one.clone();
                let more = &leaves[begun..begun + more];
                let tiles: Vec<Tile> = more.iter().flat_map(|leaf| one.push(*leaf)).collect();
                assert_eq!(many.extend(more), tiles);
                assert_eq!(many, one);
            }
        }
        // Past 256 tiles the level above fills too.
        let many = |tiler: &mut Tiler| tiler.extend(&leaves[..1_024]);
        let (mut one, mut bulk) = (Tiler::new(), Tiler::new());
        for _ in 0..65 {
            let tiles: Vec<Tile> = leaves[..1_024]
                .iter()
                .flat_map(|leaf| one.push(*leaf))
                .collect();
            assert_eq!(many(&mut bulk), tiles);
        }
        assert_eq!(bulk, one);
    }

    #[test]
    fn a_state_of_the_wrong_widths_is_refused() {
        let hash = leaf_hash(b"");
        assert_eq!(Tiler::resume(0, vec![]), Ok(Tiler::new()));
        assert_eq!(Tiler::resume(0, vec![vec![], vec![]]), Ok(Tiler::new()));
        assert!(Tiler::resume(256, vec![vec![], vec![hash]]).is_ok());
        let wrong = |level, expected, found| {
            Err(StateError::Partial {
                level,
                expected,
                found,
            })
        };
        assert_eq!(Tiler::resume(256, vec![]), wrong(1, 1, 0));
        assert_eq!(Tiler::resume(1, vec![vec![hash; 2]]), wrong(0, 1, 2));
        assert_eq!(
            Tiler::resume(1, vec![vec![hash], vec![hash]]),
            wrong(1, 0, 1)
        );
        let size = u64::MAX;
        assert_eq!(Tiler::resume(size, vec![]), Err(StateError::Size { size }));
    }
}
