//! Sums over pairs of a high and a low row, in time of n log n.
//!
//! A pair has a row i whose target is in the upper quantile and a row j whose target is in the lower one, with
//! `h_i - h_j >= delta`; its weight is `w = h_i - h_j`. Rows i by ascending target see a growing set of rows j. The hinge
//! needs counts and sums by rank: `w max(0, 1 - (z_i - z_j) / w) = max(0, e_i - e_j)` with `e = h - z`. The logistic form
//! `softplus((z_j - z_i) / T)` is smooth: z is cut into [`CELLS`] cells, and the pairs of two cells are summed by Taylor's
//! series of order [`ORDER`] about the cells' centres. The pole nearest to a difference of real z lies pi T = 0.31 away and
//! the offsets together reach 0.025, so what is left out is below 1e-14 of the sum.

use clover_num::math;

/// Temperature of the logistic form.
const TEMPERATURE: f64 = 0.1;
/// Least gap of the targets of a pair.
pub(super) const GAP_MIN: f64 = 0.1;
/// What rounding may take from a gap.
const GAP_SLACK: f64 = 1e-9;
/// Cells of [0, 1].
const CELLS: usize = 40;
/// Highest power of Taylor's series.
const ORDER: usize = 12;
/// Pairs up to which the logistic form is summed one by one.
const DIRECT_MAX: u64 = 1 << 16;

/// Sums over all pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairSums {
    /// How many there are.
    pub pairs: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Weight of those that the judge orders as people do; ties by half.
    pub ordered: f64,
    /// Weighted logistic loss, in units of ln 2.
    pub logistic: f64,
    /// Weighted hinge of the gap.
    pub hinge: f64,
}

/// softplus(u) = ln(1 + e^u), without overflow.
fn softplus(u: f64) -> f64 {
    u.max(0.0) + math::ln_1p(math::exp(-u.abs()))
}

/// Counts and sums below a rank (a Fenwick tree).
struct RankSums {
    nodes: Vec<(f64, f64)>,
}

impl RankSums {
    fn new(ranks: usize) -> Self {
        Self {
            nodes: vec![(0.0, 0.0); ranks + 1],
        }
    }

    fn add(&mut self, rank: usize, value: f64) {
        let mut at = rank + 1;
        while at < self.nodes.len() {
            self.nodes[at].0 += 1.0;
            self.nodes[at].1 += value;
            at += at & at.wrapping_neg();
        }
    }

    /// Count and sum of the values of rank below `rank`.
    fn below(&self, rank: usize) -> (f64, f64) {
        let (mut at, mut count, mut sum) = (rank, 0.0, 0.0);
        while at > 0 {
            count += self.nodes[at].0;
            sum += self.nodes[at].1;
            at -= at & at.wrapping_neg();
        }
        (count, sum)
    }
}

/// Distinct values, ascending.
fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.map(|value| value + 0.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by(|a, b| *a <= *b);
    values
}

/// Sums of powers of the offsets of rows from the centre of their cell, plain and by target; by power, then by cell.
#[derive(Clone)]
struct CellMoments {
    plain: [[f64; CELLS]; ORDER + 1],
    by_target: [[f64; CELLS]; ORDER + 1],
    filled: [bool; CELLS],
}

fn cell_of(z: f64) -> (usize, f64) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "z lies in [0, 1]"
    )]
    let cell = ((z * CELLS as f64) as usize).min(CELLS - 1);
    (cell, z - (cell as f64 + 0.5) / CELLS as f64)
}

impl CellMoments {
    fn new() -> Self {
        let none = [[0.0; CELLS]; ORDER + 1];
        Self {
            plain: none,
            by_target: none,
            filled: [false; CELLS],
        }
    }

    fn add(&mut self, z: f64, target: f64) {
        let (cell, offset) = cell_of(z);
        self.filled[cell] = true;
        let mut power = 1.0;
        for at in 0..=ORDER {
            self.plain[at][cell] += power;
            self.by_target[at][cell] += power * target;
            power *= offset;
        }
    }

    /// Forgets all rows.
    fn clear(&mut self) {
        for cell in (0..CELLS).filter(|cell| self.filled[*cell]) {
            for at in 0..=ORDER {
                self.plain[at][cell] = 0.0;
                self.by_target[at][cell] = 0.0;
            }
        }
        self.filled = [false; CELLS];
    }
}

/// Differences of two centres.
const STEPS: usize = 2 * CELLS - 1;

/// Taylor's coefficients of `d -> softplus(-d / T)` by binomials: entry (m, n) belongs to `offset_i^m offset_j^n`, and has one
/// value for each difference of two centres, the greatest first, so that cells j ascend beside it.
struct Series(Vec<[f64; STEPS]>);

/// Pairs of powers of which no sum is beyond the order.
fn powers() -> impl Iterator<Item = (usize, usize)> {
    (0..=ORDER).flat_map(|m| (0..=ORDER - m).map(move |n| (m, n)))
}

impl Series {
    fn new() -> Self {
        let mut all = vec![[0.0; STEPS]; powers().count()];
        for at in 0..STEPS {
            let step = STEPS - 1 - at;
            let d = (step as f64 - (CELLS - 1) as f64) / CELLS as f64;
            let taylor = taylor(-d / TEMPERATURE);
            // Binomial of m + n over n.
            let mut binomial = 1.0;
            for ((m, n), row) in powers().zip(&mut all) {
                if n == 0 {
                    binomial = 1.0;
                }
                // The offset of the difference is offset_i - offset_j, and u is its multiple by -1/T.
                let order = m + n;
                let scale = (0..order).fold(1.0, |scale, _| scale * -(1.0 / TEMPERATURE));
                let sign = if n % 2 == 1 { -1.0 } else { 1.0 };
                row[at] = taylor[order] * scale * binomial * sign;
                binomial *= (m + n + 1) as f64 / (n + 1) as f64;
            }
        }
        Self(all)
    }

    /// Sum of `(h_i - h_j) softplus(..)` over all rows of two sets; cells j side by side.
    fn sum(&self, high: &CellMoments, low: &CellMoments) -> f64 {
        let mut sums = Vec::new();
        for i in (0..CELLS).filter(|cell| high.filled[*cell]) {
            let mut found = [0.0; CELLS];
            let from = CELLS - 1 - i;
            for ((m, n), row) in powers().zip(&self.0) {
                let (own, weighted) = (high.plain[m][i], high.by_target[m][i]);
                let series = &row[from..from + CELLS];
                let moments = low.plain[n].iter().zip(&low.by_target[n]);
                for ((sum, of), (plain, target)) in found.iter_mut().zip(series).zip(moments) {
                    *sum += of * (weighted * plain - own * target);
                }
            }
            let filled = (0..CELLS).filter(|cell| low.filled[*cell]);
            sums.extend(filled.map(|cell| found[cell]));
        }
        math::sum(&sums)
    }
}

/// Taylor's coefficients of softplus at u, by powers 0 to [`ORDER`].
fn taylor(u: f64) -> [f64; ORDER + 1] {
    let s = if u >= 0.0 {
        1.0 / (1.0 + math::exp(-u))
    } else {
        math::exp(u) / (1.0 + math::exp(u))
    };
    let mut found = [0.0; ORDER + 1];
    found[0] = softplus(u);
    // The first derivative is s; the derivative of s^k is k (s^k - s^(k+1)).
    let mut polynomial = [0.0; ORDER + 2];
    polynomial[1] = 1.0;
    let mut factorial = 1.0;
    for (order, coefficient) in found.iter_mut().enumerate().skip(1) {
        factorial *= order as f64;
        let value = polynomial
            .iter()
            .rev()
            .fold(0.0, |value, of| value * s + of);
        *coefficient = value / factorial;
        let before = polynomial;
        for k in 1..=ORDER + 1 {
            polynomial[k] = k as f64 * before[k] - (k as f64 - 1.0) * before[k - 1];
        }
    }
    found
}

/// A row of a pair: mean score and target.
pub(super) type ScorePair = (f64, f64);

fn by_target(rows: &mut [ScorePair]) {
    rows.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
}

/// Sums over the pairs of `high` and `low` rows (mean score, target).
pub(super) fn sums(mut high: Vec<ScorePair>, mut low: Vec<ScorePair>) -> PairSums {
    by_target(&mut high);
    by_target(&mut low);
    let scores = distinct(low.iter().map(|row| row.0));
    let gaps = distinct(low.iter().map(|row| row.1 - row.0));
    let rank = |values: &[f64], value: f64| values.partition_point(|of| *of < value);
    let (mut by_score, mut by_gap) = (RankSums::new(scores.len()), RankSums::new(gaps.len()));
    let mut found = PairSums::default();
    let (mut seen, mut seen_targets) = (0_usize, 0.0);
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    let mut starts = Vec::new();
    for (at, &(z, h)) in high.iter().enumerate() {
        let before = seen;
        while let Some(&(other, target)) =
            low.get(seen).filter(|row| h - row.1 >= GAP_MIN - GAP_SLACK)
        {
            by_score.add(rank(&scores, other), target);
            by_gap.add(rank(&gaps, target - other), target - other);
            seen_targets += target;
            seen += 1;
        }
        if seen > before || at == 0 {
            starts.push((at, seen));
        }
        let at_z = rank(&scores, z);
        let (lower, lower_targets) = by_score.below(at_z);
        let ties_end = at_z + usize::from(scores.get(at_z).is_some_and(|of| *of <= z));
        let (upto, upto_targets) = by_score.below(ties_end);
        let ordered = (h * lower - lower_targets) + (h * upto - upto_targets);
        let (under, under_gaps) = by_gap.below(rank(&gaps, h - z));
        found.pairs += seen as u64;
        parts[0].push(h * seen as f64 - seen_targets);
        parts[1].push(0.5 * ordered);
        parts[2].push((h - z) * under - under_gaps);
    }
    [found.weight, found.ordered, found.hinge] = parts.map(|part| math::sum(&part));
    let logistic = if found.pairs <= DIRECT_MAX {
        one_by_one(&high, &low, &starts)
    } else {
        by_cells(&high, &low, &starts)
    };
    found.logistic = logistic / std::f64::consts::LN_2;
    found
}

/// Groups of high rows that see the same low rows: from which row on, and how many low rows.
fn groups<'r>(
    high: &'r [ScorePair],
    starts: &'r [(usize, usize)],
) -> impl Iterator<Item = (&'r [ScorePair], usize)> {
    let ends = starts
        .iter()
        .skip(1)
        .map(|start| start.0)
        .chain([high.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&(from, seen), to)| (&high[from..to], seen))
}

fn one_by_one(high: &[ScorePair], low: &[ScorePair], starts: &[(usize, usize)]) -> f64 {
    let mut terms = Vec::new();
    for (rows, seen) in groups(high, starts) {
        for (z, h) in rows {
            let of =
                |(other, target): &ScorePair| (h - target) * softplus((other - z) / TEMPERATURE);
            terms.extend(low[..seen].iter().map(of));
        }
    }
    math::sum(&terms)
}

fn by_cells(high: &[ScorePair], low: &[ScorePair], starts: &[(usize, usize)]) -> f64 {
    let series = Series::new();
    let (mut lower, mut upper, mut added) = (CellMoments::new(), CellMoments::new(), 0);
    let mut terms = Vec::new();
    for (rows, seen) in groups(high, starts) {
        for &(z, target) in &low[added..seen] {
            lower.add(z, target);
        }
        added = seen;
        upper.clear();
        for &(z, target) in rows {
            upper.add(z, target);
        }
        terms.push(series.sum(&upper, &lower));
    }
    math::sum(&terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    fn rows(seed: u8, count: usize, low: f64, high: f64) -> Vec<ScorePair> {
        let mut draws = Draws::of([seed; 32], 0);
        (0..count)
            .map(|_| (draws.uniform(), low + (high - low) * draws.uniform()))
            .collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn cells_sum_as_pairs_do() {
        for (seed, low, high) in [
            (1, (0.0, 0.3), (0.6, 1.0)),
            (2, (0.2, 0.5), (0.45, 0.7)),
            (3, (0.0, 1.0), (0.0, 1.0)),
        ] {
            let (mut upper, mut lower) = (
                rows(seed, 300, high.0, high.1),
                rows(seed + 10, 200, low.0, low.1),
            );
            if seed == 3 {
                // Perfect order: tiny terms keep their digits.
                for row in &mut upper {
                    row.0 = 0.9 + 0.1 * row.0;
                }
                for row in &mut lower {
                    row.0 *= 0.1;
                }
            }
            by_target(&mut upper);
            by_target(&mut lower);
            let mut starts: Vec<(usize, usize)> = Vec::new();
            for (at, row) in upper.iter().enumerate() {
                let seen = lower.partition_point(|of| row.1 - of.1 >= GAP_MIN - GAP_SLACK);
                if starts.last().is_none_or(|last| last.1 < seen) {
                    starts.push((at, seen));
                }
            }
            let (cells, pairs) = (
                by_cells(&upper, &lower, &starts),
                one_by_one(&upper, &lower, &starts),
            );
            assert!(close(cells, pairs), "{seed}: {cells} {pairs}");
        }
    }

    #[test]
    fn sums_are_those_of_the_pairs() {
        let (upper, lower) = (rows(4, 60, 0.4, 1.0), rows(5, 70, 0.0, 0.6));
        let found = sums(upper.clone(), lower.clone());
        let (mut pairs, mut weight, mut ordered, mut hinge) = (0, 0.0, 0.0, 0.0);
        for (z, h) in &upper {
            for (other, target) in &lower {
                let gap = h - target;
                if gap >= GAP_MIN - GAP_SLACK {
                    pairs += 1;
                    weight += gap;
                    ordered += if z > other { gap } else { 0.0 };
                    hinge += gap * (1.0 - (z - other) / gap).max(0.0);
                }
            }
        }
        assert_eq!(found.pairs, pairs);
        assert!(
            close(found.weight, weight)
                && close(found.ordered, ordered)
                && close(found.hinge, hinge)
        );
    }
}
