//! Distances between two distributions: Kolmogorov-Smirnov as an exact count, with its tests, and Wasserstein-1.

use std::cmp::Ordering;

use crate::distribution::ln_beta;
use crate::kolmogorov;
use crate::quantile::ascending;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use crate::student::Alternative;
use clover_num::Micro;
use clover_num::math;

/// Largest sample for which a test is exact by default.
const EXACT_ROWS_MAX: usize = 10_000;
/// ln of the largest double.
const LN_MAX: f64 = 709.782_712_893_384;

/// Where one empirical distribution function is furthest above the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The difference in units of 1 / [`KsCounts::scale`], at least 0.
    pub count: i128,
    /// A value where it is: of several, the peer's choice (largest as a double, then first in a, then first in b).
    pub location: f64,
}

/// Largest differences of two empirical distribution functions, exactly: integers over a common denominator.
///
/// For equally many rows the denominator is the number of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KsCounts {
    /// Where `F_a - F_b` is largest.
    pub above: Gap,
    /// Where `F_b - F_a` is largest.
    pub below: Gap,
    /// Least common multiple of the numbers of rows.
    pub scale: i128,
    rows: (usize, usize),
}

/// A direction of the two-sample statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `F_a` is above `F_b` there.
    Above,
    /// `F_a` is below `F_b` there.
    Below,
}

/// How a p-value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// [`Method::Exact`] up to 10,000 rows on either side, else [`Method::Asymptotic`].
    Auto,
    /// From all orders of the pooled rows, in time of the product of the numbers of rows. Asymptotic all the same, as
    /// in the peer, where lcm(rows) reaches 2^31 - 1, and one-sided with unequal rows where C(a + b, a) is no double.
    Exact,
    /// From the limit of many rows.
    Asymptotic,
}

/// What a Kolmogorov-Smirnov test came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KsTest {
    /// Largest difference in the direction of the alternative, in [0, 1].
    pub statistic: f64,
    /// p-value in [0, 1], of equal continuous distributions; with ties it is conservative.
    pub p: f64,
    /// Where the difference is.
    pub location: f64,
    /// Its direction.
    pub sign: Sign,
    /// Whether p is exact.
    pub exact: bool,
}

/// Differences of two empirical distribution functions (CLOVER v1.1, section 4). Ties count as they should:
/// functions are compared at values, never between equal ones.
pub fn ks_counts(a: Values<'_>, b: Values<'_>) -> KsCounts {
    let (a, b) = (ascending(a.as_slice()), ascending(b.as_slice()));
    let divisor = kolmogorov::gcd(a.len(), b.len());
    let (per_a, per_b) = ((b.len() / divisor) as i128, (a.len() / divisor) as i128);
    let start = Gap {
        count: i128::MIN,
        location: a[0],
    };
    let (mut above, mut below) = ((start, 0.0), (start, 0.0));
    let up_to = |column: &[f64], value: f64| column.partition_point(|x| *x <= value);
    for &location in a.iter().chain(&b) {
        let (of_a, of_b) = (up_to(&a, location), up_to(&b, location));
        let count = of_a as i128 * per_a - of_b as i128 * per_b;
        // Equal counts may differ in their last bit as doubles, by which the peer chooses among them.
        let double = of_a as f64 / a.len() as f64 - of_b as f64 / b.len() as f64;
        let further = |(gap, last): (Gap, f64), count: i128, double: f64| {
            if count > gap.count || count == gap.count && double > last {
                (Gap { count, location }, double)
            } else {
                (gap, last)
            }
        };
        above = further(above, count, double);
        below = further(below, -count, -double);
    }
    let (above, mut below) = (above.0, below.0);
    below.count = below.count.max(0);
    KsCounts {
        above,
        below,
        scale: per_a * a.len() as i128,
        rows: (a.len(), b.len()),
    }
}

impl KsCounts {
    /// The two-sided count: the larger of both directions.
    pub fn count(&self) -> i128 {
        self.above.count.max(self.below.count)
    }

    /// What counts are out of: the least common multiple of both numbers of rows.
    pub fn scale(&self) -> i128 {
        self.scale
    }

    /// The two-sided statistic, sup |`F_a` - `F_b`|.
    pub fn statistic(&self) -> f64 {
        self.count() as f64 / self.scale as f64
    }

    /// Whether the two-sided statistic is at most a cap, without rounding: count <= cap * n (CLOVER v1.1, section 4).
    pub fn at_most(&self, cap: Micro) -> bool {
        self.count() * 1_000_000 <= i128::from(cap.value()) * self.scale
    }

    /// The two-sample test of equal distributions (`scipy.stats.ks_2samp` 1.17.1).
    ///
    /// `Greater` looks for `F_a` above `F_b` (smaller values in a), `Less` for the other. Two-sided ties between the
    /// directions report [`Sign::Above`]. Asymptotically: two-sided the law of the one-sample statistic of
    /// ab / (a + b) rows, rounded half to even; one-sided Hodges' (1958) approximation 5.3.
    pub fn test(&self, alternative: Alternative, method: Method) -> KsTest {
        let (gap, sign) = match alternative {
            Alternative::Less => (self.below, Sign::Below),
            Alternative::TwoSided if self.below.count > self.above.count => {
                (self.below, Sign::Below)
            }
            _ => (self.above, Sign::Above),
        };
        let both = alternative == Alternative::TwoSided;
        let exact = match method {
            Method::Asymptotic => false,
            Method::Exact => self.countable(both),
            Method::Auto => self.rows.0.max(self.rows.1) <= EXACT_ROWS_MAX && self.countable(both),
        };
        let statistic = gap.count as f64 / self.scale as f64;
        let p = if gap.count <= 0 {
            1.0
        } else if exact {
            kolmogorov::two_sample_sf(self.rows.0, self.rows.1, gap.count, both)
        } else {
            self.asymptotic(statistic, both)
        };
        KsTest {
            statistic,
            p,
            location: gap.location,
            sign,
            exact,
        }
    }

    /// Whether the peer counts orders for these sizes.
    fn countable(&self, both: bool) -> bool {
        let (a, b) = self.rows;
        if self.scale >= i128::from(i32::MAX) {
            return false;
        }
        // ln C(a + b, a) = -ln(a + b + 1) - ln B(a + 1, b + 1).
        let (x, y) = (a as f64, b as f64);
        both || a == b || -math::ln(x + y + 1.0) - ln_beta(x + 1.0, y + 1.0) < LN_MAX
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of rows"
    )]
    fn asymptotic(&self, statistic: f64, both: bool) -> f64 {
        let (m, n) = (
            self.rows.0.max(self.rows.1) as f64,
            self.rows.0.min(self.rows.1) as f64,
        );
        let effective = m * n / (m + n);
        if both {
            // No row (one in a, one in b) has the law that reaches everything: p is 1.
            return kolmogorov::kolmogorov_sf(statistic, effective.round_ties_even() as usize);
        }
        let z = effective.sqrt() * statistic;
        let skew = 2.0 * z * (m + 2.0 * n) / (m * n * (m + n)).sqrt() / 3.0;
        math::exp(-2.0 * z * z - skew).clamp(0.0, 1.0)
    }
}

/// A step of the pooled sample: up to the next value both distribution functions are constant.
struct DistanceStep {
    value: f64,
    difference: f64,
}

/// `F_a - F_b` at each pooled value, with weights; sums do not depend on the order of rows.
fn steps(a: Values<'_>, wa: &[f64], b: Values<'_>, wb: &[f64]) -> Vec<DistanceStep> {
    let ordered = |x: Values<'_>, w: &[f64]| {
        let mut rows: Vec<(f64, f64)> = x
            .as_slice()
            .iter()
            .map(|x| x + 0.0)
            .zip(w.iter().copied())
            .collect();
        rows.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)));
        let mut running = 0.0;
        for row in &mut rows {
            running += row.1;
            row.1 = running;
        }
        rows
    };
    let (a, b) = (ordered(a, wa), ordered(b, wb));
    let share = |rows: &[(f64, f64)], passed: usize| {
        if passed == 0 {
            0.0
        } else {
            rows[passed - 1].1 / rows[rows.len() - 1].1
        }
    };
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::with_capacity(a.len() + b.len());
    while i < a.len() || j < b.len() {
        let from_a =
            j >= b.len() || (i < a.len() && a[i].0.total_cmp(&b[j].0) != Ordering::Greater);
        let value = if from_a { a[i].0 } else { b[j].0 };
        while i < a.len() && a[i].0 <= value {
            i += 1;
        }
        while j < b.len() && b[j].0 <= value {
            j += 1;
        }
        let difference = share(&a, i) - share(&b, j);
        steps.push(DistanceStep { value, difference });
    }
    steps
}

fn weighted_steps(
    a: Values<'_>,
    wa: Weights<'_>,
    b: Values<'_>,
    wb: Weights<'_>,
) -> Result<Vec<DistanceStep>, SampleError> {
    align("weights of a", wa.as_slice().len(), a.len())?;
    align("weights of b", wb.as_slice().len(), b.len())?;
    Ok(steps(a, wa.as_slice(), b, wb.as_slice()))
}

fn area(steps: &[DistanceStep]) -> f64 {
    let terms: Vec<f64> = steps
        .windows(2)
        .map(|pair| pair[0].difference.abs() * (pair[1].value - pair[0].value))
        .collect();
    math::sum(&terms)
}

/// Wasserstein-1 distance, the integral of |`F_a` - `F_b`|, in the units of the values.
pub fn wasserstein(a: Values<'_>, b: Values<'_>) -> f64 {
    area(&steps(a, &vec![1.0; a.len()], b, &vec![1.0; b.len()]))
}

/// Wasserstein-1 distance of weighted samples; weights need not sum to 1.
///
/// # Errors
/// [`SampleError::Misaligned`] for weights of another length than their values.
pub fn weighted_wasserstein(
    a: Values<'_>,
    wa: Weights<'_>,
    b: Values<'_>,
    wb: Weights<'_>,
) -> Result<f64, SampleError> {
    Ok(area(&weighted_steps(a, wa, b, wb)?))
}

/// sup |`F_a` - `F_b`| of weighted samples, in [0, 1]. It has no p-value here.
///
/// # Errors
/// [`SampleError::Misaligned`] for weights of another length than their values.
pub fn weighted_ks(
    a: Values<'_>,
    wa: Weights<'_>,
    b: Values<'_>,
    wb: Weights<'_>,
) -> Result<f64, SampleError> {
    Ok(weighted_steps(a, wa, b, wb)?
        .iter()
        .fold(0.0, |most, step| step.difference.abs().max(most)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("x", x).unwrap()
    }

    #[test]
    fn a_cap_is_compared_without_rounding() {
        let a: Vec<f64> = (0..100).map(f64::from).collect();
        let mut b = a.clone();
        for value in &mut b[..29] {
            *value += 1000.0;
        }
        let counts = ks_counts(values(&a), values(&b));
        assert_eq!((counts.count(), counts.scale), (29, 100));
        // In doubles 0.29 * 100 is below 29.
        assert!(counts.at_most(Micro::new(290_000).unwrap()));
        assert!(!counts.at_most(Micro::new(289_999).unwrap()));
    }

    #[test]
    fn single_rows_have_distances() {
        let counts = ks_counts(values(&[1.0]), values(&[3.0]));
        let test = counts.test(Alternative::TwoSided, Method::Auto);
        assert!((test.statistic - 1.0).abs() + (test.p - 1.0).abs() <= 0.0);
        assert!((wasserstein(values(&[1.0]), values(&[3.0])) - 2.0).abs() <= 0.0);
        let rough = counts.test(Alternative::TwoSided, Method::Asymptotic);
        assert!((rough.p - 1.0).abs() <= 0.0);
        for method in [Method::Exact, Method::Asymptotic] {
            let same = ks_counts(values(&[0.0]), values(&[-0.0])).test(Alternative::Less, method);
            assert!(same.statistic.abs() + (same.p - 1.0).abs() <= 0.0);
        }
    }

    #[test]
    fn no_weight_is_no_row() {
        let weights = Weights::new("w", &[1.0, 1.0, 0.0], 3).unwrap();
        let ones = Weights::new("w", &[1.0, 1.0], 2).unwrap();
        let (a, b) = ([0.0, 1.0, 9.0], [0.5, 1.5]);
        let w1 = weighted_wasserstein(values(&a), weights, values(&b), ones).unwrap();
        assert!((w1 - wasserstein(values(&a[..2]), values(&b))).abs() < 1e-15);
        let ks = weighted_ks(values(&a), weights, values(&b), ones).unwrap();
        assert!((ks - 0.5).abs() <= 0.0);
        assert!(weighted_ks(values(&a), ones, values(&b), ones).is_err());
    }

    /// Few distinct values, so that ties are common.
    fn column() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((0_u32..12).prop_map(|x| f64::from(x) / 8.0), 1..25)
    }

    proptest! {
        #[test]
        fn distances_are_symmetric_and_blind_to_row_order(a in column(), b in column(), turn in 0_usize..25) {
            let mut turned = a.clone();
            turned.rotate_left(turn % a.len());
            let (one, other) = (ks_counts(values(&a), values(&b)), ks_counts(values(&b), values(&turned)));
            prop_assert_eq!(one.count(), other.count());
            prop_assert_eq!(one.above.count, other.below.count);
            let same = ks_counts(values(&turned), values(&b));
            prop_assert_eq!(one, same);
            let w1 = wasserstein(values(&a), values(&b));
            prop_assert!((w1 - wasserstein(values(&b), values(&turned))).abs() <= 0.0);
            for side in [Alternative::TwoSided, Alternative::Less, Alternative::Greater] {
                let test = one.test(side, Method::Exact);
                prop_assert!((0.0..=1.0).contains(&test.p) && (0.0..=1.0).contains(&test.statistic));
            }
            let opposite = other.test(Alternative::Less, Method::Exact).p;
            prop_assert!((one.test(Alternative::Greater, Method::Exact).p - opposite).abs() < 1e-13);
        }

        #[test]
        fn wasserstein_is_affine_equivariant_and_ks_invariant(a in column(), b in column(), scale in -3.0..3.0_f64, shift in -5.0..5.0_f64) {
            let moved = |x: &[f64]| x.iter().map(|x| scale * x + shift).collect::<Vec<_>>();
            let (c, d) = (moved(&a), moved(&b));
            let (before, after) = (wasserstein(values(&a), values(&b)), wasserstein(values(&c), values(&d)));
            prop_assert!((after - scale.abs() * before).abs() < 1e-12);
            prop_assume!(scale.abs() > 0.01);
            prop_assert_eq!(
                ks_counts(values(&a), values(&b)).count(),
                ks_counts(values(&c), values(&d)).count()
            );
        }

        #[test]
        fn equal_weights_are_no_weights(a in column(), b in column()) {
            let (wa, wb) = (vec![0.3; a.len()], vec![7.0; b.len()]);
            let (wa, wb) = (Weights::new("wa", &wa, a.len()).unwrap(), Weights::new("wb", &wb, b.len()).unwrap());
            let ks = weighted_ks(values(&a), wa, values(&b), wb).unwrap();
            prop_assert!((ks - ks_counts(values(&a), values(&b)).statistic()).abs() < 1e-14);
            let w1 = weighted_wasserstein(values(&a), wa, values(&b), wb).unwrap();
            prop_assert!((w1 - wasserstein(values(&a), values(&b))).abs() < 1e-14);
        }
    }
}
