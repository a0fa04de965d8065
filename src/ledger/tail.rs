//! The tail: digests that entries past the index cursor gave, held in memory until the index takes them.
//!
//! Kept as sorted runs, one a batch, oldest first: adding a batch is one sort, looking up is one binary
//! search a run, and the first run that knows a digest names its first giver.

use clover_ground::digest::Digest;
use rayon::prelude::*;

/// Runs before they are merged into one.
const RUNS_MAX: usize = 16;

/// Digests with the entry that first gave each.
#[derive(Debug, Default)]
pub(super) struct Tail {
    runs: Vec<Vec<(Digest, u64)>>,
}

impl Tail {
    /// The entry that first gave `digest`.
    pub(super) fn get(&self, digest: &Digest) -> Option<u64> {
        self.runs.iter().find_map(|run| {
            let at = run.binary_search_by(|(found, _)| found.cmp(digest)).ok()?;
            Some(run[at].1)
        })
    }

    /// The entries that first gave these digests, which are sorted: each run is walked once, in steps that
    /// double until they pass what is sought.
    pub(super) fn find(&self, sorted: &[Digest]) -> Vec<Option<u64>> {
        let mut found = vec![None; sorted.len()];
        for run in &self.runs {
            let mut rest = &run[..];
            for (digest, found) in sorted.iter().zip(&mut found) {
                let mut step = 1;
                while rest.get(step).is_some_and(|(given, _)| given < digest) {
                    step *= 2;
                }
                let near = &rest[..rest.len().min(step + 1)];
                rest = &rest[near.partition_point(|(given, _)| given < digest)..];
                if let Some((_, seq)) = rest.first().filter(|(given, _)| given == digest) {
                    found.get_or_insert(*seq);
                }
            }
        }
        found
    }

    /// Adds what later entries gave.
    pub(super) fn add(&mut self, digests: Vec<(Digest, u64)>) {
        if digests.is_empty() {
            return;
        }
        self.runs.push(sorted(digests));
        if self.runs.len() > RUNS_MAX {
            let all = self.take();
            self.runs.push(all);
        }
    }

    /// Forgets what entries below `seq` gave.
    pub(super) fn forget_below(&mut self, seq: u64) {
        for run in &mut self.runs {
            run.retain(|(_, giver)| *giver >= seq);
        }
        self.runs.retain(|run| !run.is_empty());
    }

    /// Digests held; one that several runs hold counts in each.
    pub(super) fn len(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// Empties the tail into one sorted run.
    pub(super) fn take(&mut self) -> Vec<(Digest, u64)> {
        match self.runs.len() {
            1 => self.runs.remove(0),
            _ => sorted(std::mem::take(&mut self.runs).concat()),
        }
    }
}

/// Sorts by digest and keeps the first giver of each.
fn sorted(mut digests: Vec<(Digest, u64)>) -> Vec<(Digest, u64)> {
    if digests.len() < 4_096 {
        digests.sort_unstable();
    } else {
        digests.par_sort_unstable();
    }
    digests.dedup_by_key(|(digest, _)| *digest);
    digests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_giver_is_found_before_and_after_merging() {
        let mut tail = Tail::default();
        let digest = |n: u64| Digest::sha256(&(n % 500).to_be_bytes());
        for batch in 0..40 {
            tail.add(
                (batch * 50..batch * 50 + 50)
                    .map(|seq| (digest(seq), seq))
                    .collect(),
            );
            let newest = batch * 50 + 49;
            assert_eq!(tail.get(&digest(newest)), Some(newest % 500));
            let mut sought: Vec<_> = (0..600)
                .map(|n| Digest::sha256(&u64::to_be_bytes(n)))
                .collect();
            sought.sort_unstable();
            let one_by_one: Vec<_> = sought.iter().map(|digest| tail.get(digest)).collect();
            assert_eq!(tail.find(&sought), one_by_one);
        }
        assert_eq!(tail.get(&Digest::sha256(b"other")), None);
        tail.forget_below(100);
        assert_eq!(tail.get(&digest(7)), tail.get(&digest(507)));
        assert!(tail.get(&digest(7)).is_none_or(|seq| seq >= 100));
        let all = tail.take();
        assert!(all.is_sorted() && tail.len() == 0);
    }
}
