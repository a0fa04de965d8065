//! Fold membership: balanced over labelled clusters for calibrators, by hash where it must never move.
//!
//! Both rules hash with `BLAKE2b` whose *digest length is a parameter* (RFC 7693), which is not a truncation
//! of the 64-byte digest. Source: `cje-eval` 0.9.3 `resolve_n_folds` and its fold hashes.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Display;

use blake2::Blake2b;
use blake2::Digest as _;
use blake2::digest::consts::U8;
use blake2::digest::consts::U16;

use crate::sample::InsufficientData;

/// Folds that a calibrator asks for.
pub const FOLDS_DEFAULT: usize = 5;
/// Labelled clusters below which there is no cross-fitting.
pub const LABELLED_CLUSTERS_MIN: usize = 4;

/// Folds used for `clusters` labelled clusters when `requested` are asked for: all of them from two clusters
/// a fold on, else half the clusters and at least 2; below [`LABELLED_CLUSTERS_MIN`] the request stands, and
/// [`check_clusters`] refuses.
pub fn resolve_count(requested: usize, clusters: usize) -> usize {
    if clusters >= 2 * requested || clusters < LABELLED_CLUSTERS_MIN {
        requested
    } else {
        (clusters / 2).max(2)
    }
}

/// Refuses too few labelled clusters for cross-fitting.
///
/// # Errors
/// [`InsufficientData`] below [`LABELLED_CLUSTERS_MIN`], or below two clusters a fold.
pub fn check_clusters(folds: usize, clusters: usize) -> Result<(), InsufficientData> {
    let of = "labelled prompt clusters";
    InsufficientData::unless(of, clusters, LABELLED_CLUSTERS_MIN)?;
    InsufficientData::unless(of, clusters, 2 * folds)
}

/// BLAKE2b-128 of `"{id}-{seed}"`.
fn balanced_key(id: &str, seed: &impl Display) -> [u8; 16] {
    let mut hash = Blake2b::<U16>::new();
    hash.update(format!("{id}-{seed}"));
    hash.finalize().into()
}

/// A big-endian integer modulo `folds`.
fn modulo(bytes: &[u8], folds: usize) -> usize {
    bytes
        .iter()
        .fold(0, |rest, &byte| (rest * 256 + usize::from(byte)) % folds)
}

/// Balanced folds: the distinct `labelled` clusters sorted by (BLAKE2b-128 of `"{id}-{seed}"`, id), fold = rank
/// mod `folds`; clusters without labels go by hash. Sizes differ by at most one labelled cluster.
/// Returns one fold per id of `ids`, 0 to `folds - 1`.
pub fn balanced(ids: &[&str], labelled: &[&str], folds: usize, seed: impl Display) -> Vec<usize> {
    let distinct: BTreeSet<&str> = labelled.iter().copied().collect();
    let mut ordered: Vec<_> = distinct
        .into_iter()
        .map(|id| (balanced_key(id, &seed), id))
        .collect();
    ordered.sort_unstable();
    let ranks: BTreeMap<&str, usize> = ordered
        .into_iter()
        .enumerate()
        .map(|(rank, (_, id))| (id, rank % folds))
        .collect();
    let fold = |id: &&str| match ranks.get(*id) {
        Some(&fold) => fold,
        None => modulo(&balanced_key(id, &seed), folds),
    };
    ids.iter().map(fold).collect()
}

/// Fold of a cluster that never moves when labels arrive: BLAKE2b-64 of `"{id}-{seed}-{folds}"`, big-endian,
/// mod `folds`.
pub fn hash_mod(id: &str, folds: usize, seed: impl Display) -> usize {
    let mut hash = Blake2b::<U8>::new();
    hash.update(format!("{id}-{seed}-{folds}"));
    let digest: [u8; 8] = hash.finalize().into();
    modulo(&digest, folds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn balanced_sizes_differ_by_at_most_one(count in 4usize..60, folds in 2usize..7, seed: u64) {
            let ids: Vec<String> = (0..count).map(|i| format!("p{i}")).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let of = balanced(&ids, &ids, folds, seed);
            let mut sizes = vec![0usize; folds];
            for fold in of {
                sizes[fold] += 1;
            }
            let (low, high) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(high - low <= 1);
        }
    }

    #[test]
    fn counts_shrink_with_the_labels() {
        assert_eq!(resolve_count(5, 10), 5);
        assert_eq!(resolve_count(5, 9), 4);
        assert_eq!(resolve_count(5, 4), 2);
        assert_eq!(resolve_count(5, 3), 5);
        assert!(check_clusters(5, 3).is_err());
        assert!(check_clusters(4, 9).is_ok());
    }
}
