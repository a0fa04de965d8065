//! What differences of two numbers of each row say, by whole numbers alone, so that every program that verifies gets the same.

use serde::Deserialize;
use serde::Serialize;

use crate::Micro;

/// Squares of millionths are kept as so many of these, and a rest.
const SQUARE: u64 = 1_000_000_000_000;
/// Millionths of the normal quantile at .975, and of the terms in 1/v, 1/v^2 and 1/v^3 of Student's quantile at v degrees of
/// freedom (Cornish and Fisher, 1938; Abramowitz and Stegun, 26.7.5). From 29 on their sum is right to 3 10^-6.
const QUANTILE: [u128; 4] = [1_959_964, 2_372_271, 2_822_499, 2_555_850];

/// Sums over rows, of differences in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedSums {
    /// Rows.
    pub pairs: u64,
    /// Rows whose numbers differ.
    pub differing: u64,
    /// Sum of differences, in millionths.
    sum: i64,
    /// Sum of their squares: whole squares of 1, and the rest in squares of a millionth.
    squares: (u64, u64),
}

/// The mean of differences and half the width of its interval of .95, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanShift {
    /// The mean, rounded to the nearest, half to even.
    pub mean: i64,
    /// Half of the width, rounded up.
    pub half: u64,
}

impl MeanShift {
    /// Whether the interval holds 0.
    pub fn holds_zero(&self) -> bool {
        self.mean.unsigned_abs() <= self.half
    }
}

/// The least whole number whose square is not below another.
fn root_above(of: u128) -> u64 {
    let below = of.isqrt();
    let root = below + u128::from(below * below < of);
    u64::try_from(root).unwrap_or(u64::MAX)
}

/// Student's quantile at .975 in millionths, rounded up.
fn quantile(freedom: u128) -> u128 {
    let cube = freedom * freedom * freedom;
    let [z, first, second, third] = QUANTILE;
    (z * cube + first * freedom * freedom + second * freedom + third).div_ceil(cube)
}

impl PairedSums {
    /// Takes in one row.
    pub fn take(&mut self, first: Micro, again: Micro) {
        let difference = again.value().saturating_sub(first.value());
        self.pairs += 1;
        self.differing += u64::from(difference != 0);
        self.sum = self.sum.saturating_add(difference);
        let square = u128::from(difference.unsigned_abs()).pow(2);
        let rest = u128::from(self.squares.1) + square;
        let whole = u64::try_from(rest / u128::from(SQUARE)).unwrap_or(u64::MAX);
        self.squares.0 = self.squares.0.saturating_add(whole);
        self.squares.1 = u64::try_from(rest % u128::from(SQUARE)).unwrap_or_default();
    }

    /// Takes in other rows.
    pub fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.differing += other.differing;
        self.sum = self.sum.saturating_add(other.sum);
        let rest = self.squares.1 + other.squares.1;
        let whole = self.squares.0.saturating_add(other.squares.0);
        self.squares = (whole.saturating_add(rest / SQUARE), rest % SQUARE);
    }

    /// n times the sum of squares, less the square of the sum.
    fn spread(&self) -> u128 {
        let squares = u128::from(self.squares.0) * u128::from(SQUARE) + u128::from(self.squares.1);
        let all = squares.saturating_mul(u128::from(self.pairs));
        all.saturating_sub(u128::from(self.sum.unsigned_abs()).pow(2))
    }

    /// The standard deviation of one number about what it would be on average, in millionths, rounded up: that of the
    /// differences over the root of 2, as both numbers of a row waver. `None` below two rows.
    pub fn sd(&self) -> Option<u64> {
        let pairs = u128::from(self.pairs);
        if pairs < 2 {
            return None;
        }
        Some(root_above(self.spread().div_ceil(2 * pairs * (pairs - 1))))
    }

    /// The mean difference with its interval of .95 by Student's quantile; `None` below two rows.
    pub fn shift(&self) -> Option<MeanShift> {
        let pairs = u128::from(self.pairs);
        if pairs < 2 {
            return None;
        }
        let wide = quantile(pairs - 1);
        let scale = pairs * pairs * (pairs - 1) * u128::from(SQUARE);
        let square = wide.pow(2).saturating_mul(self.spread());
        Some(MeanShift {
            mean: self.mean(),
            half: root_above(square.div_ceil(scale)),
        })
    }

    fn mean(&self) -> i64 {
        let (sum, pairs) = (self.sum, i64::try_from(self.pairs).unwrap_or(i64::MAX));
        let (down, rest) = (sum.div_euclid(pairs), sum.rem_euclid(pairs));
        let twice = rest.saturating_mul(2);
        let is_up = twice > pairs || (twice == pairs && down % 2 != 0);
        down + i64::from(is_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(differences: &[i64]) -> PairedSums {
        let mut sums = PairedSums::default();
        for difference in differences {
            let again = Micro::new(500_000 + difference).unwrap();
            sums.take(Micro::new(500_000).unwrap(), again);
        }
        sums
    }

    /// source: R 4.3, `qt(.975, c(29, 59, 99, 999))`.
    #[test]
    fn quantiles_are_those_of_student() {
        for (freedom, known) in [
            (29, 2_045_230),
            (59, 2_000_995),
            (99, 1_984_217),
            (999, 1_962_341),
        ] {
            let found = quantile(freedom);
            assert!(found.abs_diff(known) <= 3, "{freedom}: {found}");
        }
    }

    /// source: by hand: differences 0, 0, 250000, -250000, 500000 have mean 100000 and variance 7.5e10.
    #[test]
    fn sums_give_mean_sd_and_interval() {
        let of = sums(&[0, 0, 250_000, -250_000, 500_000]);
        assert_eq!((of.pairs, of.differing), (5, 3));
        // sqrt(8.125e10 / 2), as the sum of squares is 3.75e11 and that of squares about the mean 3.25e11.
        assert_eq!(of.sd(), Some(201_557));
        let shift = of.shift().unwrap();
        assert_eq!(shift.mean, 100_000);
        assert!(shift.holds_zero());
        let mut twice = of;
        twice.add(&sums(&[0, 0, 250_000, -250_000, 500_000]));
        let again = sums(&[
            0, 0, 250_000, -250_000, 500_000, 0, 0, 250_000, -250_000, 500_000,
        ]);
        assert_eq!(twice, again);
    }

    #[test]
    fn what_never_differs_has_no_width() {
        let of = sums(&[0; 30]);
        assert_eq!((of.sd(), of.shift().unwrap().half), (Some(0), 0));
        assert!(of.shift().unwrap().holds_zero());
        let moved = sums(&[1; 30]);
        assert!(!moved.shift().unwrap().holds_zero());
        assert_eq!(sums(&[5]).sd(), None);
    }
}
