//! Parts of the labelled rows by cluster, and batches of train by stratum.

use crate::draws::Draws;
use crate::quantile;

/// A part of the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SplitPart {
    /// Half of them: batches come from it.
    Train,
    /// A fifth: checkpoints are chosen on it.
    Val,
    /// 15 %: read once, at the end.
    Test,
    /// 15 %: nobody reads it before a gate.
    Confirm,
}

/// The places 0 to `count - 1` in a random order (Fisher and Yates, from the end).
fn shuffled(count: usize, draws: &mut Draws) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, draws.below(last + 1));
    }
    order
}

/// The part of each of `clusters` clusters, which are in ascending order of their names: they are shuffled by the seed, and
/// the parts end after floor(50 %), floor(70 %), floor(85 %) and all of them.
pub fn split(clusters: usize, seed: [u8; 32]) -> Vec<SplitPart> {
    let mut parts = vec![SplitPart::Confirm; clusters];
    let order = shuffled(clusters, &mut Draws::of(seed, 0));
    for (place, cluster) in order.into_iter().enumerate() {
        parts[cluster] = match place {
            at if at < clusters * 50 / 100 => SplitPart::Train,
            at if at < clusters * 70 / 100 => SplitPart::Val,
            at if at < clusters * 85 / 100 => SplitPart::Test,
            _ => SplitPart::Confirm,
        };
    }
    parts
}

/// Rows of train by their targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetStrata {
    /// Targets of at least the upper quartile.
    pub high: Vec<usize>,
    /// Targets of at most the lower quartile, and not high.
    pub low: Vec<usize>,
    /// All others.
    pub middle: Vec<usize>,
}

impl TargetStrata {
    /// Of targets, by quartiles (type 7).
    pub fn of(targets: &[f64]) -> Self {
        let sorted = quantile::ascending(targets);
        let (lower, upper) = (
            quantile::type_7(&sorted, 0.25),
            quantile::type_7(&sorted, 0.75),
        );
        let mut strata = Self::default();
        for (row, target) in targets.iter().enumerate() {
            match target {
                of if *of >= upper => strata.high.push(row),
                of if *of <= lower => strata.low.push(row),
                _ => strata.middle.push(row),
            }
        }
        strata
    }
}

/// A batch: rows of train by stratum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// High rows.
    pub high: Vec<usize>,
    /// Low rows.
    pub low: Vec<usize>,
    /// Middle rows whose last score was nearest to a cut.
    pub confusable: Vec<usize>,
}

impl Batch {
    /// Its rows, ascending.
    pub fn rows(&self) -> Vec<usize> {
        let mut rows = [self.high.as_slice(), &self.low, &self.confusable].concat();
        rows.sort_unstable();
        rows
    }
}

/// Draws a batch of `size` rows, a third of each stratum. Within a stratum a row comes again only when every other has come
/// as often (`uses`, by row): an epoch without replacement. High and low rows are drawn by the seed. Of the middle those
/// come first whose last mean score is nearest to one of `cuts`, then those whose repeats vary most, then by place; `last`
/// has mean and variance by row, and rows without come after all others. A stratum with fewer rows gives all it has.
pub fn batch(
    strata: &TargetStrata,
    last: &[Option<(f64, f64)>],
    cuts: &[f64],
    uses: &[u32],
    size: usize,
    seed: [u8; 32],
) -> Batch {
    let take = |rows: Vec<usize>| -> Vec<usize> {
        let mut rows = rows;
        // A stable sort keeps the order among rows that came equally often.
        rows.sort_by_key(|row| uses.get(*row).copied().unwrap_or(0));
        rows.truncate(size / 3);
        rows.sort_unstable();
        rows
    };
    let drawn = |rows: &[usize], stream| {
        let order = shuffled(rows.len(), &mut Draws::of(seed, stream));
        take(order.into_iter().map(|at| rows[at]).collect())
    };
    let distance = |row: usize| {
        let of = last.get(row).copied().flatten();
        of.map_or((f64::INFINITY, 0.0), |(mean, variance)| {
            let near = cuts.iter().map(|cut| (mean - cut).abs());
            (near.fold(f64::INFINITY, f64::min), -variance)
        })
    };
    let mut middle = strata.middle.clone();
    middle.sort_by(|a, b| {
        let (a, b) = (distance(*a), distance(*b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    Batch {
        high: drawn(&strata.high, 0),
        low: drawn(&strata.low, 1),
        confusable: take(middle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_shares() {
        let parts = split(200, [7; 32]);
        let count = |part| parts.iter().filter(|of| **of == part).count();
        assert_eq!(
            [
                SplitPart::Train,
                SplitPart::Val,
                SplitPart::Test,
                SplitPart::Confirm
            ]
            .map(count),
            [100, 40, 30, 30]
        );
        assert_ne!(parts, split(200, [8; 32]));
        assert_eq!(parts, split(200, [7; 32]));
        assert_eq!(split(0, [7; 32]), []);
    }

    #[test]
    fn an_epoch_has_each_row_once() {
        let targets: Vec<f64> = (0..96).map(|at| f64::from(at) / 96.0).collect();
        let strata = TargetStrata::of(&targets);
        assert_eq!(
            (strata.high.len(), strata.low.len(), strata.middle.len()),
            (24, 24, 48)
        );
        let last: Vec<_> = targets.iter().map(|target| Some((*target, 0.0))).collect();
        let mut uses = vec![0; 96];
        for step in 0..3 {
            let drawn = batch(&strata, &last, &[0.5], &uses, 24, [step; 32]);
            assert_eq!(drawn.rows().len(), 24);
            for row in drawn.rows() {
                uses[row] += 1;
            }
        }
        for row in strata.high.iter().chain(&strata.low) {
            assert_eq!(uses[*row], 1);
        }
        let first = batch(&strata, &last, &[0.505], &[0; 96], 24, [0; 32]);
        assert_eq!(first.confusable, [45, 46, 47, 48, 49, 50, 51, 52]);
        // More rows than a stratum has.
        assert_eq!(
            batch(&strata, &last, &[0.5], &[0; 96], 600, [0; 32])
                .rows()
                .len(),
            96
        );
    }
}
