//! Rankings: Kendall's tau, Spearman's rho, pair accuracy, and a permutation test of rank drift.

use rayon::prelude::*;

use crate::distribution;
use crate::draws::Draws;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use clover_num::math;

/// Most rows for which a p of tau is exact by default.
const EXACT_ROWS_MAX: usize = 33;

/// How a p of tau is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TauMethod {
    /// [`TauMethod::Exact`] without ties and with at most 33 rows, or one pair or less in (or out of) order; else
    /// [`TauMethod::Asymptotic`].
    Auto,
    /// By the number of permutations of each number of inversions, in time of rows times inversions; only without ties.
    Exact,
    /// Normal, with the variance corrected for ties (Kendall 1970).
    Asymptotic,
}

/// Ties of one column: over its groups of t equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ties {
    /// Distinct values.
    distinct: i128,
    /// Sum of t (t - 1) / 2.
    pairs: i128,
    /// Sum of t (t - 1) (t - 2).
    triples: i128,
    /// Sum of t (t - 1) (2 t + 5).
    variance: i128,
}

impl Ties {
    /// Of runs of equal values.
    fn of(runs: impl IntoIterator<Item = usize>) -> Self {
        runs.into_iter().fold(Self::default(), |ties, run| {
            if run == 1 {
                let distinct = ties.distinct + 1;
                return Self { distinct, ..ties };
            }
            let t = run as i128;
            Self {
                distinct: ties.distinct + 1,
                pairs: ties.pairs + t * (t - 1) / 2,
                triples: ties.triples + t * (t - 1) * (t - 2),
                variance: ties.variance + t * (t - 1) * (2 * t + 5),
            }
        })
    }
}

/// Pairs of rows by whether two columns order them alike, exactly; in O(n log n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCounts {
    rows: i128,
    x: Ties,
    y: Ties,
    both: i128,
    discordant: i128,
}

/// Lengths of runs of equal neighbours.
fn runs<T>(rows: &[T], equal: impl Fn(&T, &T) -> bool) -> Vec<usize> {
    rows.chunk_by(|a, b| equal(a, b)).map(<[T]>::len).collect()
}

/// Places up to which insertion sorts.
const INSERTION_MAX: usize = 16;

/// Sorts, and counts the pairs that were out of order (equal ones are not); `buffer` has as many places.
fn inversions(values: &mut [u32], buffer: &mut [u32]) -> i128 {
    if values.len() <= INSERTION_MAX {
        let mut count = 0;
        for at in 1..values.len() {
            let mut place = at;
            while place > 0 && values[place - 1] > values[place] {
                values.swap(place - 1, place);
                place -= 1;
            }
            count += (at - place) as i128;
        }
        return count;
    }
    let middle = values.len() / 2;
    let (first, second) = buffer.split_at_mut(middle);
    let (left, right) = values.split_at_mut(middle);
    let mut count = inversions(left, first) + inversions(right, second);
    let (mut i, mut j, mut passed) = (0, 0, 0_u64);
    // Which side comes next nobody can guess: both are read, and none is branched on.
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        let is_out = b < a;
        buffer[i + j] = if is_out { b } else { a };
        passed += if is_out { (left.len() - i) as u64 } else { 0 };
        i += usize::from(!is_out);
        j += usize::from(is_out);
    }
    count += i128::from(passed);
    let rest = left.len() - i;
    buffer[i + j..i + j + rest].copy_from_slice(&left[i..]);
    buffer[left.len() + j..].copy_from_slice(&right[j..]);
    values.copy_from_slice(buffer);
    count
}

/// Rows of a column in ascending order, sorted once for every statistic of ranks.
#[derive(Clone, Debug)]
pub(crate) struct RowOrder {
    /// Rows by ascending value.
    rows: Vec<u32>,
    /// How many rows of `rows` each distinct value has, ascending.
    ties: Vec<usize>,
    /// The place of each row's value among the distinct ones.
    places: Vec<u32>,
}

impl RowOrder {
    /// Of a column of at most 2^32 - 1 rows.
    pub(crate) fn of(values: Values<'_>) -> Self {
        let values = values.as_slice();
        // Adding 0 makes one zero of the two; bits as integers then ascend as the values do.
        let key = |value: &f64| {
            let bits = (value + 0.0).to_bits();
            if bits >> 63 == 1 {
                !bits
            } else {
                bits | 1 << 63
            }
        };
        let keys = values.iter().map(key);
        let mut order: Vec<(u64, u32)> = keys.zip(0..).collect();
        order.sort_unstable_by_key(|of| of.0);
        let ties = runs(&order, |a, b| a.0 == b.0);
        let rows: Vec<u32> = order.into_iter().map(|of| of.1).collect();
        let mut places = vec![0; rows.len()];
        let mut rest = rows.as_slice();
        for (place, tie) in (0..).zip(&ties) {
            let (same, after) = rest.split_at(*tie);
            for &row in same {
                places[row as usize] = place;
            }
            rest = after;
        }
        Self { rows, ties, places }
    }

    /// The column in ascending order.
    pub(crate) fn ascending(&self, values: &[f64]) -> Vec<f64> {
        let rows = self.rows.iter();
        rows.map(|&row| values[row as usize] + 0.0).collect()
    }

    /// Twice the mean rank of each row, less n + 1: an integer, centred at 0.
    fn centred(&self) -> Vec<i64> {
        let whole = |of: usize| i64::try_from(of).unwrap_or(i64::MAX);
        let count = whole(self.rows.len());
        let mut before = 0;
        let ranks = self.ties.iter().map(|&tie| {
            // Ranks before + 1 to before + t have twice the mean 2 before + t + 1.
            let tie = whole(tie);
            let rank = 2 * before + tie - count;
            before += tie;
            rank
        });
        let ranks: Vec<i64> = ranks.collect();
        let places = self.places.iter();
        places.map(|&place| ranks[place as usize]).collect()
    }
}

impl PairCounts {
    /// Counts the pairs of at least two rows.
    ///
    /// # Errors
    /// [`SampleError::Misaligned`]; [`InsufficientData`] below two rows.
    pub fn of(x: Values<'_>, y: Values<'_>) -> Result<Self, Unfit> {
        align("y", y.len(), x.len())?;
        InsufficientData::unless("rows", x.len(), 2)?;
        Ok(Self::of_orders(&RowOrder::of(x), &RowOrder::of(y)))
    }

    /// Of as many rows in both orders, two or more.
    pub(crate) fn of_orders(x: &RowOrder, y: &RowOrder) -> Self {
        let mut ys: Vec<u32> = x.rows.iter().map(|&row| y.places[row as usize]).collect();
        let mut both = 0;
        let mut rest = ys.as_mut_slice();
        for &tie in &x.ties {
            let (same, after) = rest.split_at_mut(tie);
            if tie > 1 {
                same.sort_unstable();
                both += Ties::of(runs(same, |a, b| a == b)).pairs;
            }
            rest = after;
        }
        let discordant = inversions(&mut ys, &mut vec![0; x.rows.len()]);
        Self {
            rows: x.rows.len() as i128,
            x: Ties::of(x.ties.iter().copied()),
            y: Ties::of(y.ties.iter().copied()),
            both,
            discordant,
        }
    }

    /// All pairs.
    pub fn pairs(&self) -> i128 {
        self.rows * (self.rows - 1) / 2
    }

    /// Pairs ordered oppositely.
    pub fn discordant(&self) -> i128 {
        self.discordant
    }

    /// Pairs ordered alike, tied in neither column.
    pub fn concordant(&self) -> i128 {
        self.pairs() - self.x.pairs - self.y.pairs + self.both - self.discordant
    }

    fn constant(&self) -> bool {
        self.x.pairs == self.pairs() || self.y.pairs == self.pairs()
    }

    /// tau-b = (C - D) / sqrt((N - ties in x) (N - ties in y)) in [-1, 1]; `None` where a column is constant.
    pub fn tau_b(&self) -> Option<f64> {
        if self.constant() {
            return None;
        }
        let difference = (self.concordant() - self.discordant) as f64;
        let x = ((self.pairs() - self.x.pairs) as f64).sqrt();
        let y = ((self.pairs() - self.y.pairs) as f64).sqrt();
        Some((difference / (x * y)).clamp(-1.0, 1.0))
    }

    /// Stuart's tau-c = 2 (C - D) / (n^2 (m - 1) / m), m the fewer distinct values; `None` where a column is constant.
    pub fn tau_c(&self) -> Option<f64> {
        if self.constant() {
            return None;
        }
        let difference = (self.concordant() - self.discordant) as f64;
        let classes = self.x.distinct.min(self.y.distinct) as f64;
        let rows = self.rows as f64;
        let tau = 2.0 * difference / (rows * rows * (classes - 1.0) / classes);
        Some(tau.clamp(-1.0, 1.0))
    }

    /// Two-sided p of tau = 0 (not of an unchanged ranking), the same for b and c (`scipy.stats.kendalltau` 1.17.1);
    /// `None` where a column is constant.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for [`TauMethod::Exact`] with ties.
    pub fn p(&self, method: TauMethod) -> Result<Option<f64>, SampleError> {
        if self.constant() {
            return Ok(None);
        }
        let tied = self.x.pairs > 0 || self.y.pairs > 0;
        if tied && method == TauMethod::Exact {
            return Err(SampleError::Parameter {
                name: "method",
                expected: "auto or asymptotic where values are tied",
            });
        }
        let fewest = self.discordant.min(self.pairs() - self.discordant);
        let few = self.rows <= EXACT_ROWS_MAX as i128 || fewest <= 1;
        let exact = method == TauMethod::Exact || method == TauMethod::Auto && !tied && few;
        Ok(Some(if exact {
            exact_tau_p(self.rows, fewest)
        } else {
            self.asymptotic_p()
        }))
    }

    fn asymptotic_p(&self) -> f64 {
        let n = self.rows as f64;
        let m = n * (n - 1.0);
        let both = 2.0 * self.x.pairs as f64 * self.y.pairs as f64 / m;
        let triples = self.x.triples as f64 * self.y.triples as f64;
        // Two rows have no triples.
        let triples = if self.rows > 2 {
            triples / (9.0 * m * (n - 2.0))
        } else {
            0.0
        };
        let untied = m * (2.0 * n + 5.0);
        let variance =
            (untied - self.x.variance as f64 - self.y.variance as f64) / 18.0 + both + triples;
        let z = (self.concordant() - self.discordant) as f64 / variance.sqrt();
        (2.0 * distribution::normal_sf(z.abs())).min(1.0)
    }

    /// Share of pairs ordered alike, ties counted wrong (CJE paper).
    pub fn pair_accuracy(&self) -> f64 {
        self.concordant() as f64 / self.pairs() as f64
    }
}

/// min(1, 2 P(inversions <= fewest)) over all permutations of `rows`.
fn exact_tau_p(rows: i128, fewest: i128) -> f64 {
    let most = usize::try_from(fewest).unwrap_or(usize::MAX);
    if 4 * fewest >= rows * (rows - 1) {
        return 1.0;
    }
    // Share of the permutations of j items by inversions, up to `fewest`: that of j is the mean of the last j of j - 1.
    let mut share = vec![0.0; most + 1];
    share[0] = 1.0;
    for items in 2..=usize::try_from(rows).unwrap_or(usize::MAX) {
        let mut window = 0.0;
        let before = share.clone();
        for at in 0..=most {
            window += before[at];
            if at >= items {
                window -= before[at - items];
            }
            share[at] = window / items as f64;
        }
    }
    (2.0 * math::sum(&share)).min(1.0)
}

/// Share of pairs i < j with `(x_i > x_j) == (y_i > y_j)`: the convention of the CJE experiments, in which some ties
/// count right, depending on the order of rows. In O(n^2).
///
/// # Errors
/// [`SampleError::Misaligned`]; [`InsufficientData`] below two rows.
pub fn pair_accuracy_experiments(x: Values<'_>, y: Values<'_>) -> Result<f64, Unfit> {
    align("y", y.len(), x.len())?;
    InsufficientData::unless("rows", x.len(), 2)?;
    let (x, y) = (x.as_slice(), y.as_slice());
    let mut right = 0_u64;
    let mut pairs = 0_u64;
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            pairs += 1;
            right += u64::from((x[i] > x[j]) == (y[i] > y[j]));
        }
    }
    Ok(right as f64 / pairs as f64)
}

/// The first row with the largest value.
pub fn top(x: Values<'_>) -> usize {
    let x = x.as_slice();
    (1..x.len()).fold(0, |best, row| if x[row] > x[best] { row } else { best })
}

/// Whether two columns name the same row as best, the first where several share the largest value.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn top1(x: Values<'_>, y: Values<'_>) -> Result<bool, SampleError> {
    align("y", y.len(), x.len())?;
    Ok(top(x) == top(y))
}

/// Spearman's rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spearman {
    /// In [-1, 1].
    pub rho: f64,
    /// Two-sided p of no correlation by t = rho sqrt((n - 2) / (1 - rho^2)); `None` for two rows.
    pub p: Option<f64>,
}

/// Spearman's rho: the correlation of mean ranks (`scipy.stats.spearmanr`); `None` where a column is constant.
///
/// # Errors
/// [`SampleError::Misaligned`]; [`InsufficientData`] below two rows.
pub fn spearman(x: Values<'_>, y: Values<'_>) -> Result<Option<Spearman>, Unfit> {
    align("y", y.len(), x.len())?;
    InsufficientData::unless("rows", x.len(), 2)?;
    Ok(spearman_of(&RowOrder::of(x), &RowOrder::of(y)))
}

/// Of as many rows in both orders, two or more.
pub(crate) fn spearman_of(x: &RowOrder, y: &RowOrder) -> Option<Spearman> {
    let (x, y) = (x.centred(), y.centred());
    let product = |a: &[i64], b: &[i64]| {
        let all = a.iter().zip(b);
        all.map(|(a, b)| i128::from(*a) * i128::from(*b))
            .sum::<i128>()
    };
    let (xx, yy) = (product(&x, &x), product(&y, &y));
    if xx == 0 || yy == 0 {
        return None;
    }
    // The root of an exact square is exact: a perfect correlation is exactly 1.
    let scale = (xx as f64 * yy as f64).sqrt();
    let rho = (product(&x, &y) as f64 / scale).clamp(-1.0, 1.0);
    let df = x.len() as f64 - 2.0;
    let p = (df > 0.0).then(|| {
        let t = rho * (df / ((1.0 - rho) * (1.0 + rho))).sqrt();
        distribution::t_two_sided(t, df)
    });
    Some(Spearman { rho, p })
}

/// What a test of rank drift came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankDrift {
    /// tau-b of the groups' mean scores before and after.
    pub tau_b: f64,
    /// P under exchange, (1 + replicates with tau-b at most the observed) / (replicates + 1).
    pub p: f64,
    /// Replicates.
    pub replicates: usize,
}

/// Tests whether a ranking of groups (policies) changed beyond the noise of their rows.
///
/// Each row (an anchor) is scored before and after; groups rank by mean score. H0: a row's change is a shift that all
/// rows share plus symmetric noise of mean 0, independent between clusters. Replicates keep each group's mean m over
/// both periods, centre the changes c within groups (times sqrt(n / (n - 1))), flip their signs on one fair coin per
/// cluster, and rank m - mean(±c) / 2 against m + mean(±c) / 2. A small observed tau-b is evidence of drift. Unlike the
/// p of [`PairCounts::p`], whose H0 is an unrelated ranking, this one is small only when the ranking moved.
/// A replicate whose groups all tie counts as unlike. `None` where the means of one period are all equal.
///
/// # Errors
/// [`SampleError::Misaligned`]; [`SampleError::Parameter`] for no replicates; [`InsufficientData`] below two groups, two rows in a
/// group, or two clusters.
pub fn rank_drift(
    before: Values<'_>,
    after: Values<'_>,
    groups: &Clusters,
    clusters: &Clusters,
    seed: [u8; 32],
    replicates: usize,
) -> Result<Option<RankDrift>, Unfit> {
    align("after", after.len(), before.len())?;
    align("groups", groups.of_row().len(), before.len())?;
    align("clusters", clusters.of_row().len(), before.len())?;
    InsufficientData::unless("groups", groups.count(), 2)?;
    InsufficientData::unless("clusters", clusters.count(), 2)?;
    if replicates == 0 {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "replicates",
            expected: "a count of at least 1",
        }));
    }
    let sizes = group_sizes(groups)?;
    let means = |rows: &[f64]| -> Vec<f64> {
        let totals = groups.totals(rows).into_iter().zip(&sizes);
        totals.map(|(total, &size)| total / size as f64).collect()
    };
    let tau = |before: &[f64], after: &[f64]| {
        let before = Values::new("before", before)?;
        let counts = PairCounts::of(before, Values::new("after", after)?)?;
        Ok::<_, Unfit>(counts.tau_b())
    };
    let (start, end) = (means(before.as_slice()), means(after.as_slice()));
    let Some(observed) = tau(&start, &end)? else {
        return Ok(None);
    };
    let middle: Vec<f64> = start.iter().zip(&end).map(|(s, e)| 0.5 * (s + e)).collect();
    let centred: Vec<f64> = (0..before.len())
        .map(|row| {
            let group = groups.of_row()[row] as usize;
            let change = after.as_slice()[row] - before.as_slice()[row];
            let size = sizes[group] as f64;
            (change - (end[group] - start[group])) * (size / (size - 1.0)).sqrt()
        })
        .collect();
    let unlike = |replicate: usize| {
        let mut draws = Draws::of(seed, replicate);
        let coins: Vec<bool> = (0..clusters.count()).map(|_| draws.coin()).collect();
        let flipped: Vec<f64> = clusters
            .of_row()
            .iter()
            .zip(&centred)
            .map(|(&cluster, change)| {
                if coins[cluster as usize] {
                    *change
                } else {
                    -change
                }
            })
            .collect();
        let half = means(&flipped);
        let moved = |side: f64| -> Vec<f64> {
            let pairs = middle.iter().zip(&half);
            pairs.map(|(middle, half)| middle + side * half).collect()
        };
        tau(&moved(-0.5), &moved(0.5)).map(|tau| tau.is_none_or(|tau| tau <= observed + 1e-12))
    };
    let hits: Vec<bool> = (0..replicates)
        .into_par_iter()
        .map(unlike)
        .collect::<Result<_, _>>()?;
    let count = hits.iter().filter(|hit| **hit).count();
    Ok(Some(RankDrift {
        tau_b: observed,
        p: (1.0 + count as f64) / (replicates as f64 + 1.0),
        replicates,
    }))
}

/// Rows of each group, at least two.
fn group_sizes(groups: &Clusters) -> Result<Vec<usize>, InsufficientData> {
    let mut sizes = vec![0; groups.count()];
    for &group in groups.of_row() {
        sizes[group as usize] += 1;
    }
    for &size in &sizes {
        InsufficientData::unless("rows of a group", size, 2)?;
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("x", x).unwrap()
    }

    fn counts(x: &[f64], y: &[f64]) -> PairCounts {
        PairCounts::of(values(x), values(y)).unwrap()
    }

    #[test]
    fn degenerate_rankings_have_no_tau() {
        assert!(PairCounts::of(values(&[1.0]), values(&[1.0])).is_err());
        let flat = counts(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]);
        assert_eq!((flat.tau_b(), flat.tau_c()), (None, None));
        assert_eq!(flat.p(TauMethod::Auto).unwrap(), None);
        assert_eq!(flat.p(TauMethod::Exact).unwrap(), None);
        let tied = counts(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0]);
        assert!(tied.p(TauMethod::Exact).is_err());
        assert_eq!(
            spearman(values(&[1.0, 1.0]), values(&[1.0, 2.0])).unwrap(),
            None
        );
        let two = counts(&[1.0, 2.0], &[5.0, 3.0]);
        assert_eq!(two.tau_b(), Some(-1.0));
        assert_eq!(two.p(TauMethod::Auto).unwrap(), Some(1.0));
        assert!(two.p(TauMethod::Asymptotic).unwrap().unwrap() < 1.0);
        let rho = spearman(values(&[1.0, 2.0]), values(&[5.0, 3.0])).unwrap();
        assert_eq!(rho.unwrap().p, None);
    }

    #[test]
    fn exact_p_matches_all_permutations() {
        fn permutations(left: &mut Vec<f64>, taken: &mut Vec<f64>, seen: &mut dyn FnMut(&[f64])) {
            if left.is_empty() {
                return seen(taken);
            }
            for at in 0..left.len() {
                let value = left.remove(at);
                taken.push(value);
                permutations(left, taken, seen);
                taken.pop();
                left.insert(at, value);
            }
        }
        let x: Vec<f64> = (0..6).map(f64::from).collect();
        let mut differences = Vec::new();
        permutations(&mut x.clone(), &mut Vec::new(), &mut |y| {
            let pairs = counts(&x, y);
            let difference = (pairs.concordant() - pairs.discordant()).abs();
            differences.push((difference, pairs.p(TauMethod::Exact).unwrap().unwrap()));
        });
        assert_eq!(differences.len(), 720);
        for (difference, p) in &differences {
            let as_far = differences.iter().filter(|other| other.0 >= *difference);
            assert!((as_far.count() as f64 / 720.0 - p).abs() < 1e-14);
        }
    }

    #[test]
    fn long_rankings_match_the_peer() {
        let x: Vec<f64> = (0..200).map(f64::from).collect();
        let y: Vec<f64> = (0..200).map(|i| f64::from((i * 7) % 200)).collect();
        let pairs = counts(&x, &y);
        // source: scipy 1.17.1, stats.kendalltau(range(200), [7 * i % 200 for i in range(200)], method=…).
        let (tau, exact, asymptotic) = (
            0.134_371_859_296_482_4,
            0.004_639_373_416_751_377,
            0.004_717_497_664_156_815,
        );
        assert!((pairs.tau_b().unwrap() - tau).abs() < 1e-12);
        let p = |method| pairs.p(method).unwrap().unwrap();
        assert!((p(TauMethod::Exact) / exact - 1.0).abs() < 1e-9);
        assert!((p(TauMethod::Asymptotic) / asymptotic - 1.0).abs() < 1e-9);
    }

    fn scores(shift: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>, Clusters) {
        let (mut before, mut after, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let mut draws = Draws::of([3; 32], 0);
        for group in 0..8 {
            for _ in 0..25 {
                let level = 0.05 * group as f64;
                before.push(level + 0.2 * draws.uniform());
                after.push(level + shift(group) + 0.2 * draws.uniform());
                groups.push(group);
            }
        }
        (before, after, Clusters::of(groups).unwrap())
    }

    #[test]
    fn rank_drift_tells_noise_from_change() {
        let run = |shift: &dyn Fn(usize) -> f64| {
            let (before, after, groups) = scores(shift);
            let each = Clusters::singletons(before.len()).unwrap();
            rank_drift(
                values(&before),
                values(&after),
                &groups,
                &each,
                [7; 32],
                999,
            )
            .unwrap()
            .unwrap()
        };
        assert!(run(&|_| 0.3).p > 0.2, "a shift of all is no drift of ranks");
        let reversed = run(&|group| -0.1 * group as f64);
        assert!(reversed.p <= 0.002 && reversed.tau_b < 0.0);
        let threads = |count| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
            pool.unwrap().install(|| run(&|_| 0.0))
        };
        assert_eq!(threads(1), threads(2));
    }

    #[test]
    fn rank_drift_refuses_what_it_cannot_test() {
        let (x, y) = ([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.4, 0.3]);
        let each = Clusters::singletons(4).unwrap();
        let run = |groups: [u32; 4], replicates| {
            let groups = Clusters::of(groups).unwrap();
            rank_drift(values(&x), values(&y), &groups, &each, [0; 32], replicates)
        };
        assert!(matches!(run([0; 4], 9), Err(Unfit::InsufficientData(_))));
        assert!(matches!(
            run([0, 1, 1, 1], 9),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(matches!(run([0, 0, 1, 1], 0), Err(Unfit::Invalid(_))));
        assert!(run([0, 0, 1, 1], 9).unwrap().is_some());
    }

    /// Few distinct values, so that ties are common.
    fn rows() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let value = || (0_u32..8).prop_map(f64::from);
        prop::collection::vec((value(), value()), 2..30)
    }

    proptest! {
        #[test]
        fn tau_is_bounded_antisymmetric_and_blind_to_row_order(rows in rows(), turn in 0_usize..30) {
            let split = |rows: &[(f64, f64)]| rows.iter().copied().unzip::<f64, f64, Vec<_>, Vec<_>>();
            let (x, y) = split(&rows);
            let pairs = counts(&x, &y);
            let negative: Vec<f64> = y.iter().map(|y| -y).collect();
            let opposite = counts(&x, &negative);
            prop_assert_eq!(pairs.concordant(), opposite.discordant());
            prop_assert_eq!(pairs.tau_b(), opposite.tau_b().map(|tau| 0.0 - tau));
            prop_assert_eq!(pairs.tau_c(), opposite.tau_c().map(|tau| 0.0 - tau));
            let rho = spearman(values(&x), values(&y)).unwrap().map(|s| s.rho);
            let back = spearman(values(&x), values(&negative)).unwrap().map(|s| 0.0 - s.rho);
            prop_assert_eq!(rho, back);
            prop_assert!(pairs.tau_b().is_none_or(|tau| (-1.0..=1.0).contains(&tau)));
            prop_assert_eq!(pairs.tau_b(), counts(&y, &x).tau_b());
            let mut turned = rows.clone();
            turned.rotate_left(turn % rows.len());
            let (x, y) = split(&turned);
            prop_assert_eq!(pairs, counts(&x, &y));
        }

        #[test]
        fn merging_counts_what_comparing_counts(rows in rows()) {
            let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
            let pairs = counts(&x, &y);
            let (mut concordant, mut discordant) = (0, 0);
            for i in 0..x.len() {
                for j in 0..i {
                    let product = (x[i] - x[j]) * (y[i] - y[j]);
                    concordant += i128::from(product > 0.0);
                    discordant += i128::from(product < 0.0);
                }
            }
            prop_assert_eq!((pairs.concordant(), pairs.discordant()), (concordant, discordant));
        }
    }
}
