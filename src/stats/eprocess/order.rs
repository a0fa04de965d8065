//! The order in which units are observed: nobody's choice.
//!
//! Units stand in ascending order of their keys `SHA-256(seed || 0x00 || unit)`, whose seed binds the manifest, the
//! confirm root and the first checkpoint after registration; hashing is done elsewhere, comparing here. Units that are
//! registered later form a later block with its own seed, so that what was observed stays a prefix.

use std::cmp::Ordering;

/// A unit's key.
pub type Key = [u8; 32];

/// The order of two units: by key, equal keys (the same unit in the same block, or a collision) by name.
pub fn compare(left: (&Key, &str), right: (&Key, &str)) -> Ordering {
    left.0.cmp(right.0).then_with(|| left.1.cmp(right.1))
}

/// Places of a block's units in the order of observation.
pub fn permutation(units: &[(Key, &str)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..units.len()).collect();
    places.sort_by(|&a, &b| compare((&units[a].0, units[a].1), (&units[b].0, units[b].1)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_and_names_settle_ties() {
        let key = |byte| [byte; 32];
        let units = [(key(9), "a"), (key(1), "c"), (key(1), "b"), (key(200), "d")];
        assert_eq!(permutation(&units), [2, 1, 0, 3]);
    }
}
