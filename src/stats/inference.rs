//! Intervals, and how variances and their degrees of freedom combine.

use crate::distribution;
use crate::quantile;
use crate::sample::InsufficientData;
use crate::sample::constant;
use clover_num::math;

/// Delete-one-fold jackknife variance of the values that K fold models give: `(K - 1) / K x sum (psi_k - mean
/// psi)^2`, the sum over folds, not their mean (CJE paper, appendix A.7).
///
/// # Errors
/// [`InsufficientData`] below two folds.
pub fn jackknife_variance(estimates: &[f64]) -> Result<f64, InsufficientData> {
    let folds = estimates.len();
    InsufficientData::unless("folds", folds, 2)?;
    Ok((folds as f64 - 1.0) / folds as f64 * squares(estimates))
}

/// Standard deviation with n - 1 in the denominator, from two passes; exactly 0 for values that are all equal,
/// infinite where squares overflow.
///
/// # Errors
/// [`InsufficientData`] below two rows.
pub fn standard_deviation(values: &[f64]) -> Result<f64, InsufficientData> {
    InsufficientData::unless("rows", values.len(), 2)?;
    Ok((squares(values) / (values.len() as f64 - 1.0)).sqrt())
}

/// Sum of squares around the mean; exactly 0 for values that are all equal.
pub(super) fn squares(values: &[f64]) -> f64 {
    if constant(values) {
        return 0.0;
    }
    let mean = math::mean(values);
    let away: Vec<f64> = values.iter().map(|x| x - mean).collect();
    math::dot(&away, &away)
}

/// Welch-Satterthwaite degrees of freedom of a sum of two independent variance estimates, v on `df_v` and o on `df_o`:
/// (v + o)^2 / (v^2 / `df_v` + o^2 / `df_o`), at least 1; `df_v` (at least 1) where o is 0.
///
/// All are at least 0, `df_o` above 0 where o is. What is NaN gives 1, the widest.
pub fn welch(v: f64, df_v: f64, o: f64, df_o: f64) -> f64 {
    if o <= 0.0 {
        return df_v.max(1.0);
    }
    // Shares of the larger: neither squares nor the sum can overflow or vanish.
    let larger = v.max(o);
    let (v, o) = (v / larger, o / larger);
    let df = (v + o) * (v + o) / (v * v / df_v + o * o / df_o);
    df.max(1.0)
}

/// A two-sided interval; an end of a one-sided one is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, minus infinity for an interval that is only bounded above.
    pub low: f64,
    /// Upper end, infinity for an interval that is only bounded below.
    pub high: f64,
}

impl Interval {
    /// `centre` ± `reach`.
    pub fn around(centre: f64, reach: f64) -> Self {
        Self {
            low: centre - reach,
            high: centre + reach,
        }
    }

    /// As much wider on both sides.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        Self {
            low: self.low - by,
            high: self.high + by,
        }
    }

    /// `centre` ± the t quantile of `df` degrees at 1 - `alpha` / 2, times `se`.
    pub fn student(centre: f64, se: f64, df: f64, alpha: f64) -> Self {
        let critical = distribution::t_quantile(1.0 - 0.5 * alpha, df);
        Self::around(centre, critical * se)
    }

    /// `centre` ± the normal quantile at 1 - `alpha` / 2, times `se`.
    pub fn normal(centre: f64, se: f64, alpha: f64) -> Self {
        let critical = distribution::normal_quantile(1.0 - 0.5 * alpha);
        Self::around(centre, critical * se)
    }

    /// Percentiles `alpha` / 2 and 1 - `alpha` / 2 of replicates, linearly interpolated (type 7).
    ///
    /// # Errors
    /// [`InsufficientData`] without replicates.
    pub fn percentile(replicates: &[f64], alpha: f64) -> Result<Self, InsufficientData> {
        InsufficientData::unless("replicates", replicates.len(), 1)?;
        let sorted = quantile::ascending(replicates);
        Ok(Self {
            low: quantile::type_7(&sorted, 0.5 * alpha),
            high: quantile::type_7(&sorted, 1.0 - 0.5 * alpha),
        })
    }

    /// Wilson's score interval of a share: the shares p with `|count / of - p| <= z sqrt(p (1 - p) / of)`, z the normal
    /// quantile at 1 - `alpha` / 2; \[0, 1\] of none. `count` is at most `of`. Source: Wilson 1927.
    pub fn wilson(count: u64, of: u64, alpha: f64) -> Self {
        if of == 0 {
            return Self {
                low: 0.0,
                high: 1.0,
            };
        }
        let (n, share) = (of as f64, count as f64 / of as f64);
        let z = distribution::normal_quantile(1.0 - 0.5 * alpha);
        let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let spread = share * (1.0 - share) / n + z * z / (4.0 * n * n);
        let interval = Self::around(centre, z / (1.0 + z * z / n) * spread.sqrt());
        // With none, or all, one end is that of the scale but for rounding.
        Self {
            low: if count == 0 { 0.0 } else { interval.low },
            high: if count >= of { 1.0 } else { interval.high },
        }
    }

    /// Clopper and Pearson's interval of a share: exact, so that it covers at least as often as it says, whatever the
    /// share; \[0, 1\] of none. `count` is at most `of`. Source: Clopper and Pearson 1934.
    pub fn clopper_pearson(count: u64, of: u64, alpha: f64) -> Self {
        let tail = 0.5 * alpha;
        let (hits, misses) = (count as f64, of.saturating_sub(count) as f64);
        Self {
            low: if count == 0 {
                0.0
            } else {
                distribution::beta_quantile(tail, hits, misses + 1.0)
            },
            high: if count >= of {
                1.0
            } else {
                distribution::beta_quantile(1.0 - tail, hits + 1.0, misses)
            },
        }
    }

    /// The interval of a difference of two paired shares, after less before: of `of` pairs `gained` have it only after and
    /// `lost` only before; `gained + lost` is at most `of`. Of both shares Clopper and Pearson's interval at `alpha` / 2 is
    /// taken, so that it covers at least as often as it says, however both shares hang together. From -1 to 1; \[-1, 1\] of none.
    /// Source: Bonferroni over Clopper and Pearson 1934.
    pub fn paired_difference(gained: u64, lost: u64, of: u64, alpha: f64) -> Self {
        let half = 0.5 * alpha;
        let up = Self::clopper_pearson(gained, of, half);
        let down = Self::clopper_pearson(lost, of, half);
        Self {
            low: up.low - down.high,
            high: up.high - down.low,
        }
    }

    /// The shortest interval that holds this one and another.
    #[must_use]
    pub fn hull(&self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Whether a value lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Its length.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_has_a_floor_and_needs_no_second_variance() {
        assert!((welch(2.0, 9.0, 0.0, 0.0) - 9.0).abs() <= 0.0);
        assert!((welch(1.0, 4.0, 1.0, 4.0) - 8.0).abs() < 1e-14);
        assert!((welch(0.0, 4.0, 1.0, 0.5) - 1.0).abs() <= 0.0);
        assert!((welch(0.0, 4.0, 1.0, 3.0) - 3.0).abs() <= 0.0);
        assert!((welch(1e-200, 4.0, 1e-200, 4.0) - 8.0).abs() < 1e-14);
        assert!((welch(f64::NAN, 4.0, 1.0, 4.0) - 1.0).abs() <= 0.0);
        assert!((welch(1.0, f64::NAN, 1.0, 4.0) - 1.0).abs() <= 0.0);
    }

    #[test]
    fn equal_values_have_no_deviation_and_one_has_none() {
        assert_eq!(standard_deviation(&[0.1; 7]), Ok(0.0));
        assert!(standard_deviation(&[0.1]).is_err());
        assert!(standard_deviation(&[1e200, -1e200]).unwrap().is_infinite());
        assert!(jackknife_variance(&[0.1]).is_err());
        // By hand: 3 folds around 2, 2 / 3 of 1 + 0 + 1.
        assert!((jackknife_variance(&[1.0, 2.0, 3.0]).unwrap() - 4.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn wilson_is_that_of_the_peer() {
        // source: scipy 1.17.1, stats.binomtest(k, n).proportion_ci(method="wilson")
        let expected = [
            (0, 10, 0.0, 0.277_532_799_862_889_26),
            (3, 10, 0.107_791_267_406_301_02, 0.603_221_852_538_854_6),
            (200, 200, 0.981_154_673_622_733_5, 1.0),
        ];
        for (count, of, low, high) in expected {
            let found = Interval::wilson(count, of, 0.05);
            assert!((found.low - low).abs() < 1e-13 && (found.high - high).abs() < 1e-13);
        }
        assert!((Interval::wilson(0, 0, 0.05).width() - 1.0).abs() <= 0.0);
    }

    /// Of every trinomial law on a grid, the probability that the interval holds the true difference, by enumeration.
    #[test]
    fn a_paired_difference_covers_at_least_as_often_as_it_says() {
        let (of, alpha) = (24_u64, 0.05);
        let mut logs = vec![0.0];
        for k in 1..=of {
            logs.push(logs[logs.len() - 1] + math::ln(k as f64));
        }
        let at = |k: u64| logs[usize::try_from(k).unwrap()];
        let power = |p: f64, k: u64| if k == 0 { 0.0 } else { k as f64 * math::ln(p) };
        let (mut least, mut most) = (1.0_f64, 0.0_f64);
        for up in 0..=10_u32 {
            for down in 0..=10 - up {
                let (p, q) = (f64::from(up) / 10.0, f64::from(down) / 10.0);
                let mut held = 0.0;
                for gained in 0..=of {
                    for lost in 0..=of - gained {
                        let rest = of - gained - lost;
                        let ways = at(of) - at(gained) - at(lost) - at(rest);
                        let law = power(p, gained)
                            + power(q, lost)
                            + power(f64::from(10 - up - down) / 10.0, rest);
                        let interval = Interval::paired_difference(gained, lost, of, alpha);
                        let holds = interval.low <= p - q + 1e-12 && p - q <= interval.high + 1e-12;
                        held += if holds { math::exp(ways + law) } else { 0.0 };
                    }
                }
                (least, most) = (least.min(held), most.max(held));
            }
        }
        println!("coverage over the grid from {least:.4} to {most:.4}");
        assert!(least >= 1.0 - alpha, "{least}");
        let none = Interval::paired_difference(0, 0, 0, alpha);
        assert!((none.low + 1.0).abs() <= 0.0 && (none.high - 1.0).abs() <= 0.0);
    }

    #[test]
    fn clopper_and_pearson_is_that_of_the_peer() {
        // source: scipy 1.17.1, stats.binomtest(k, n).proportion_ci(method="exact")
        let expected = [
            (0, 10, 0.0, 0.308_497_107_818_762_94),
            (3, 10, 0.066_739_511_177_734_47, 0.652_452_850_060_008),
            (200, 200, 0.981_724_659_644_851_2, 1.0),
            (9, 400, 0.010_338_850_958_676_976, 0.042_281_030_036_644_324),
            (0, 1_000_000, 0.0, 3.688_872_650_897_376e-6),
        ];
        for (count, of, low, high) in expected {
            let found = Interval::clopper_pearson(count, of, 0.05);
            assert!((found.low - low).abs() < 1e-12 && (found.high - high).abs() < 1e-12);
        }
        assert!((Interval::clopper_pearson(0, 0, 0.05).width() - 1.0).abs() <= 0.0);
    }

    #[test]
    fn intervals_hold_their_ends() {
        let interval = Interval::around(1.0, 0.5);
        assert!(interval.contains(0.5) && interval.contains(1.5) && !interval.contains(1.6));
        assert!((interval.width() - 1.0).abs() <= 0.0);
        assert!(Interval::percentile(&[], 0.05).is_err());
    }
}
