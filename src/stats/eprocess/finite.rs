//! A finite set: exactly N units drawn in random order without replacement; the mean is that of these N.
//!
//! Before draw t the null allows the units that are left at most the mean `m_t = (N m - S_(t-1)) / (N - t + 1)`, which
//! takes the place of m in the factor. With `R = N m - S` in exact integers: R below 0 makes H0 impossible; at R = 0
//! everything left must be 0; `m_t` above 1 is an ordinary step of a one-sided null, whose factor is at most 1.
//! What strata add to values (`strata`) is added to what the null leaves too; what is impossible is said by x alone.
//! The claim is about this set and says nothing of other units. Source: Waudby-Smith and Ramdas 2020, 2024.

use crate::eprocess::bettor::Logs;
use crate::eprocess::bettor::ln_factors;
use crate::eprocess::strata::Offsets;
use crate::eprocess::ticks::Null;

/// Wealth against one null.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FiniteWealth {
    null: Null,
    units: i128,
    drawn: i128,
    /// Sum of the oriented values so far.
    sum: i128,
    offsets: Offsets,
    /// Offsets of the units that are left.
    added: i128,
    logs: Logs,
    impossible: bool,
    row: Vec<f64>,
}

impl FiniteWealth {
    pub(super) fn new(null: Null, units: u64, offsets: Offsets, fractions: usize) -> Self {
        Self {
            added: offsets.total(),
            offsets,
            null,
            units: i128::from(units),
            drawn: 0,
            sum: 0,
            logs: Logs::zero(fractions),
            impossible: false,
            row: vec![0.0; fractions],
        }
    }

    /// `N m - S`, in ticks: what the null leaves for the units to come.
    fn allowed(&self) -> i128 {
        self.units * i128::from(self.null.stake()) - self.sum
    }

    pub(super) fn push(&mut self, tick: i64, stratum: usize) {
        let value = i128::from(self.null.oriented(tick));
        let offset = i128::from(self.offsets.of(stratum));
        let (allowed, left) = (self.allowed() + self.added, self.units - self.drawn);
        if allowed > 0 && !self.impossible {
            ln_factors((value + offset) * left, allowed, &mut self.row);
            self.logs.add(1.0, &self.row);
        }
        self.sum += value;
        self.added -= offset;
        self.drawn += 1;
        self.impossible |= self.allowed() < 0;
    }

    /// Logarithm of the wealth; infinite once no set of N values could both satisfy H0 and hold what was drawn.
    pub(super) fn ln_wealth(&self) -> f64 {
        if self.impossible {
            return f64::INFINITY;
        }
        self.logs.ln_wealth()
    }

    /// Logarithms of the products, which depend on the order.
    pub(super) fn ordered(&self) -> Vec<f64> {
        self.logs.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eprocess::design::Side;

    fn wealth(side: Side, mean: i64, units: u64, ticks: &[i64]) -> f64 {
        let null = Null {
            side,
            mean,
            span: 2,
        };
        let mut remaining = FiniteWealth::new(null, units, Offsets::none(), 20);
        for tick in ticks {
            remaining.push(*tick, 0);
        }
        remaining.ln_wealth()
    }

    #[test]
    fn what_the_null_leaves_is_exact() {
        // Four units of mean at most 1/2 (ticks of 2) sum to at most 4.
        let upper = |ticks: &[i64]| wealth(Side::Upper, 1, 4, ticks);
        // Nothing is left, and nothing comes: possible.
        assert!(upper(&[2, 2]).is_finite());
        assert!((upper(&[2, 2]) - upper(&[2, 2, 0, 0])).abs() <= 0.0);
        // Nothing is left, and something comes.
        assert!(upper(&[2, 2, 1]).is_infinite());
        assert!(upper(&[2, 1, 2]).is_infinite());
        // After two zeros the null allows a mean of 1: the steps are ordinary.
        assert!(upper(&[0, 0, 2, 2]).is_finite());
        // After three zeros it allows more than 1, and the wealth falls.
        assert!(upper(&[0, 0, 0, 2]) < upper(&[0, 0, 0]));
        // The lower side mirrors it.
        let lower = wealth(Side::Lower, 1, 4, &[0, 1, 0]);
        assert!(lower.is_infinite());
    }

    #[test]
    fn a_set_of_the_null_mean_never_makes_it_impossible() {
        let mut worst = f64::NEG_INFINITY;
        // All orders of three 2s and three 0s.
        for mask in 0_u32..64 {
            if mask.count_ones() != 3 {
                continue;
            }
            let ticks: Vec<i64> = (0..6).map(|at| i64::from(mask >> at & 1) * 2).collect();
            worst = worst.max(wealth(Side::Upper, 1, 6, &ticks));
        }
        assert!(worst.is_finite());
    }
}
