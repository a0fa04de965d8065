//! Slips of a peer: places where the answers of one vector file rest on the peer's rounding and not on its definition.
//!
//! They belong to that file's numbers and to no other data, so a list stands beside the vectors (`peer.slips`) and names
//! the file by the SHA-256 of its bytes. The list of the vectors that are compiled in is compiled in too.

use clover_ground::digest::Digest;
use serde::Deserialize;

/// Name of the list in a folder of vectors.
pub const FILE: &str = "peer.slips";

/// One slip.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slip {
    /// The vector file, by the SHA-256 of its bytes.
    pub vectors: Digest,
    /// What the peer does there.
    pub what: String,
    /// How that is known.
    pub source: String,
    /// Fold whose model slips.
    pub fold: usize,
    /// Judge score at which it slips: a draw takes the rank of the tie before.
    pub score: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Words.
    #[serde(rename = "note")]
    _note: String,
    slips: Vec<Slip>,
}

/// Reads a list.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str) -> Result<Vec<Slip>, String> {
    let list: List = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match list.slips.iter().find(|slip| !slip.score.is_finite()) {
        Some(slip) => Err(format!("score {}: expected a finite number", slip.score)),
        None => Ok(list.slips),
    }
}

/// The slips of one vector file.
pub fn of(all: &[Slip], text: &str) -> Vec<Slip> {
    let digest = Digest::sha256(text.as_bytes());
    let its = all.iter().filter(|slip| slip.vectors == digest);
    its.cloned().collect()
}
