//! The Merkle tree of RFC 6962 / RFC 9162 over SHA-256, its proofs, and its C2SP tiles.
//!
//! Gives: leaf, node and root hashes; [`Frontier`] (the right edge, enough to append and to know
//! the root); [`Tiler`] (the same, also cutting finished tiles); inclusion and consistency proofs
//! read from tiles and their verification; the paths and byte forms of tiles and entry bundles.
//! Leaves: what an entry is to `event`, where tiles are kept to `store`, signed roots to
//! [`super::note`]. Nothing here reads or writes anything.
//!
//! ```text
//! leaf(d)   = SHA-256(0x00 || d)              node(l, r) = SHA-256(0x01 || l || r)
//! root([])  = SHA-256("")                     root(D[n]) = node(root(D[..k]), root(D[k..])),
//!                                             k = the largest power of two below n
//! tile L/N  = the hashes of the subtrees over 256^L leaves, numbers 256 N to 256 N + 255, 32 bytes
//!             each; the last tile of a level is partial, floor(size / 256^L) mod 256 wide
//! tile/entries/N = for each of 256 entries: u16 big-endian length || entry
//! ```
//!
//! A *binary level* counts tree levels from the leaves (0); a *tile level* is eight of those.
//!
//! ```
//! use clover_ground::merkle::{self, MemoryTiles};
//!
//! let mut tiles = MemoryTiles::new();
//! for entry in ["e0", "e1", "e2"] {
//!     tiles.push(merkle::leaf_hash(entry.as_bytes()));
//! }
//! let proof = merkle::inclusion_proof(&tiles, 1, 3)?;
//! let leaf = merkle::leaf_hash(b"e1");
//! assert!(merkle::verify_inclusion(1, 3, &leaf, &proof, &tiles.root()));
//! # Ok::<(), merkle::ReadError<merkle::MissingTile>>(())
//! ```

mod proof;
mod tile;
mod tree;

pub use self::proof::MemoryTiles;
pub use self::proof::MissingTile;
pub use self::proof::NodeSource;
pub use self::proof::ReadError;
pub use self::proof::TileNodes;
pub use self::proof::TileSource;
pub use self::proof::consistency_proof;
pub use self::proof::inclusion_proof;
pub use self::proof::root_at;
pub use self::proof::verify_consistency;
pub use self::proof::verify_inclusion;
pub use self::tile::BundleError;
pub use self::tile::MAX_ENTRY_BYTES;
pub use self::tile::TILE_WIDTH;
pub use self::tile::Tile;
pub use self::tile::Tiler;
pub use self::tile::decode_bundle;
pub use self::tile::decode_tile;
pub use self::tile::encode_bundle;
pub use self::tile::encode_tile;
pub use self::tile::entries_path;
pub use self::tile::full_tiles;
pub use self::tile::partial_width;
pub use self::tile::tile_path;
pub use self::tile::tile_width;
pub use self::tree::Frontier;
pub use self::tree::LEAVES_AT_ONCE;
pub use self::tree::MAX_SIZE;
pub use self::tree::StateError;
pub use self::tree::empty_root;
pub use self::tree::leaf_hash;
pub use self::tree::leaf_hashes;
pub use self::tree::node_hash;
