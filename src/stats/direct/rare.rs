//! Labels of which nearly all are one value. A t interval of such a sample is too short, and has no width where all are
//! equal: how rare the others are has an exact bound, and the scale says how far they can carry the mean.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::inference::Interval;

/// Labelled clusters off the most common label from which a t interval of the mean is taken to hold.
// source: for a Poisson count k of mean m, k ± 1.96 sqrt(k) misses m on the low side in more than 7 % of samples for m
// near 4, 8 and 15, that is for counts up to 9; with Clopper and Pearson below 10 no mean is missed in more than 6 %.
const OFF_MODE_MIN: usize = 10;

/// What is known of the mean of nearly constant labels, on the unit scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rare {
    /// Labelled clusters with a label off the most common one.
    pub off_mode: usize,
    /// Labelled clusters.
    pub clusters: usize,
    /// Where the mean lies, whatever the values off the most common label are.
    pub bound: Interval,
}

/// Labelled clusters by how their labels lie to the most common one.
struct OffMode {
    mode: f64,
    above: BTreeSet<u32>,
    below: BTreeSet<u32>,
    clusters: BTreeSet<u32>,
}

/// A label compared to six decimals.
fn millionths(label: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "labels lie in [0, 1]")]
    let rounded = (label * 1e6).round_ties_even() as i64;
    rounded
}

impl OffMode {
    /// Of labels with their clusters; `None` without labels. The most common label is the one that most clusters hold, the
    /// least of several.
    fn of(labels: &[(f64, u32)]) -> Option<Self> {
        let mut by_label: BTreeMap<i64, (f64, BTreeSet<u32>)> = BTreeMap::new();
        for (label, cluster) in labels {
            let held = by_label.entry(millionths(*label));
            held.or_insert((*label, BTreeSet::new())).1.insert(*cluster);
        }
        let mut modal: Option<(i64, f64, usize)> = None;
        for (&key, (label, held)) in &by_label {
            if modal.is_none_or(|(_, _, most)| held.len() > most) {
                modal = Some((key, *label, held.len()));
            }
        }
        let (modal, mode, _) = modal?;
        let beside = |inside: &dyn Fn(i64) -> bool| -> BTreeSet<u32> {
            let beside = by_label.iter().filter(|(key, _)| inside(**key));
            beside.flat_map(|(_, (_, held))| held).copied().collect()
        };
        Some(Self {
            mode,
            above: beside(&|key| key > modal),
            below: beside(&|key| key < modal),
            clusters: beside(&|_| true),
        })
    }

    /// Clusters with a label off the most common one.
    fn count(&self) -> usize {
        self.above.union(&self.below).count()
    }
}

/// Labelled clusters with another label than the most common one; 0 without labels.
pub fn off_mode(labels: &[(f64, u32)]) -> usize {
    OffMode::of(labels).map_or(0, |found| found.count())
}

/// The bound of labels of which fewer than 10 clusters, and at most half, hold another than the most common one; `None` for
/// all other labels. Labels lie in [0, 1], chosen independently of their values.
///
/// The mean exceeds the most common label m by at most (1 - m) P(above m), and falls below it by at most m P(below m);
/// both shares are bounded by Clopper and Pearson, half of `alpha` for each end.
pub fn rare(labels: &[(f64, u32)], alpha: f64) -> Option<Rare> {
    bound(labels, |count, of| {
        Interval::clopper_pearson(count, of, alpha)
    })
}

/// The same for the labels of one stratum, by Wilson's interval: one of several parts of an interval is not to be
/// conservative by itself.
pub(crate) fn in_stratum(labels: &[(f64, u32)], alpha: f64) -> Option<Rare> {
    bound(labels, |count, of| Interval::wilson(count, of, alpha))
}

fn bound(labels: &[(f64, u32)], share_of: impl Fn(u64, u64) -> Interval) -> Option<Rare> {
    let found = OffMode::of(labels)?;
    let (off_mode, clusters) = (found.count(), found.clusters.len());
    if off_mode >= OFF_MODE_MIN || 2 * off_mode > clusters {
        return None;
    }
    let share = |count: usize| share_of(count as u64, clusters as u64);
    // Clusters that hold nothing but the other end of the scale.
    let whole = |end: i64| {
        let others = labels.iter().filter(|(label, _)| millionths(*label) != end);
        let others: BTreeSet<u32> = others.map(|(_, cluster)| *cluster).collect();
        clusters - others.len()
    };
    let mode = found.mode;
    let bound = Interval {
        low: if mode <= 0.0 {
            share(whole(1_000_000)).low
        } else {
            mode - mode * share(found.below.len()).high
        },
        high: if mode >= 1.0 {
            1.0 - share(whole(0)).low
        } else {
            mode + (1.0 - mode) * share(found.above.len()).high
        },
    };
    Some(Rare {
        off_mode,
        clusters,
        bound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[(f64, u32)]) -> Vec<(f64, u32)> {
        let mut labels = Vec::new();
        for &(label, count) in values {
            for _ in 0..count {
                labels.push((label, u32::try_from(labels.len()).unwrap()));
            }
        }
        labels
    }

    fn bound(values: &[(f64, u32)]) -> [f64; 2] {
        let found = rare(&labels(values), 0.05).unwrap().bound;
        [found.low, found.high]
    }

    fn close(found: [f64; 2], expected: [f64; 2]) {
        let far = found
            .iter()
            .zip(expected)
            .any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(!far, "{found:?} {expected:?}");
    }

    #[test]
    fn labels_of_two_values_have_the_exact_bound() {
        // source: scipy 1.17.1, stats.binomtest(k, n).proportion_ci(method="exact")
        close(bound(&[(0.0, 10)]), [0.0, 0.308_497_107_818_762_94]);
        let one = [0.000_253_146_032_681_892_83, 0.054_459_385_392_080_666];
        close(bound(&[(0.0, 99), (1.0, 1)]), one);
        close(bound(&[(0.0, 1), (1.0, 99)]), [1.0 - one[1], 1.0 - one[0]]);
    }

    #[test]
    fn labels_between_the_ends_are_bounded_on_both_sides() {
        // By hand: 0.5 ± 0.5 of the upper bound of 0 of 10.
        let half = 0.5 * 0.308_497_107_818_762_94;
        close(bound(&[(0.5, 10)]), [0.5 - half, 0.5 + half]);
        // One of 100 above 0, at half of the scale: it may have been at its end.
        close(
            bound(&[(0.0, 99), (0.5, 1)]),
            [0.0, 0.054_459_385_392_080_666],
        );
    }

    #[test]
    fn other_labels_have_none() {
        assert_eq!(rare(&[], 0.05), None);
        assert_eq!(rare(&labels(&[(0.0, 90), (1.0, 10)]), 0.05), None);
        assert_eq!(rare(&labels(&[(0.0, 3), (1.0, 4), (0.5, 3)]), 0.05), None);
        assert_eq!(
            rare(&labels(&[(0.0, 91), (1.0, 9)]), 0.05)
                .unwrap()
                .off_mode,
            9
        );
    }

    #[test]
    fn labels_of_one_prompt_count_once() {
        let of_one = [(0.0, 0), (0.0, 0), (0.0, 0), (0.0, 1), (1.0, 2)];
        let found = rare(&of_one, 0.05).unwrap();
        assert_eq!((found.off_mode, found.clusters), (1, 3));
    }
}
