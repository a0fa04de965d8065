//! Many tests at once: adjusted p-values and rejections.

use crate::sample::SampleError;
use crate::sample::open_unit;
use crate::sample::unit;

/// How a family of tests is corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplicityCorrection {
    /// False discovery rate under independence or positive dependence (Benjamini and Hochberg 1995).
    BenjaminiHochberg,
    /// False discovery rate under any dependence (Benjamini and Yekutieli 2001).
    BenjaminiYekutieli,
    /// Familywise error, stepping down (Holm 1979).
    Holm,
    /// Familywise error, one step.
    Bonferroni,
}

/// p-values, each in [0, 1], at least one.
#[derive(Clone, Copy, Debug)]
pub struct PValues<'a>(&'a [f64]);

impl<'a> PValues<'a> {
    /// Checks a family of p-values.
    ///
    /// # Errors
    /// [`SampleError::Empty`], or [`SampleError::OutOfRange`] for NaN and what lies outside [0, 1].
    pub fn new(p: &'a [f64]) -> Result<Self, SampleError> {
        if p.is_empty() {
            return Err(SampleError::Empty { column: "p" });
        }
        unit("p", p)?;
        Ok(Self(p))
    }

    /// The p-values.
    pub fn as_slice(self) -> &'a [f64] {
        self.0
    }
}

/// A corrected family, in the order of its p-values.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyCorrection {
    /// Adjusted p-values, at most 1.
    pub adjusted: Vec<f64>,
    /// Which hypotheses are rejected at the level.
    pub reject: Vec<bool>,
}

/// Corrects a family at `level` in (0, 1), as `statsmodels` 0.15 does.
///
/// With p sorted ascending, k = 1..m and c = 1 (for Benjamini-Yekutieli 1 + 1/2 + … + 1/m):
/// false discovery rate `min over j >= k of p_j m c / j`, Holm `max over j <= k of (m - j + 1) p_j`, Bonferroni `m p`,
/// each at most 1. Rejections compare p with the threshold of its rank (`k level / (m c)`, `level / (m - k + 1)`,
/// `level / m`), a p on the threshold is rejected; equal p-values share their fate.
///
/// # Errors
/// [`SampleError::Parameter`] for another level.
pub fn correct(
    p: PValues<'_>,
    correction: MultiplicityCorrection,
    level: f64,
) -> Result<FamilyCorrection, SampleError> {
    open_unit("level", level)?;
    let (order, sorted) = ranked(p.as_slice());
    let tests = sorted.len() as f64;
    let left = |rank: usize| (sorted.len() - rank) as f64;
    let rejected = match correction {
        MultiplicityCorrection::BenjaminiHochberg | MultiplicityCorrection::BenjaminiYekutieli => {
            // All up to the last on or below its threshold.
            let share = shares(sorted.len(), correction);
            let last = (0..sorted.len()).rfind(|&rank| sorted[rank] <= share(rank) * level);
            last.map_or(0, |rank| rank + 1)
        }
        // All before the first above its threshold.
        MultiplicityCorrection::Holm => (0..sorted.len())
            .find(|&rank| sorted[rank] > level / left(rank))
            .unwrap_or(sorted.len()),
        MultiplicityCorrection::Bonferroni => sorted.partition_point(|p| *p <= level / tests),
    };
    let mut reject = vec![false; sorted.len()];
    for &row in &order[..rejected] {
        reject[row] = true;
    }
    Ok(FamilyCorrection {
        adjusted: in_order(&order, &adjusted_sorted(&sorted, correction)),
        reject,
    })
}

/// Adjusted p-values alone, as in [`correct`], in the order given; none for an empty family.
///
/// # Errors
/// [`SampleError::OutOfRange`] for NaN and what lies outside [0, 1].
pub fn adjusted(p: &[f64], correction: MultiplicityCorrection) -> Result<Vec<f64>, SampleError> {
    unit("p", p)?;
    let (order, sorted) = ranked(p);
    Ok(in_order(&order, &adjusted_sorted(&sorted, correction)))
}

/// Rows by p, and their p.
fn ranked(p: &[f64]) -> (Vec<usize>, Vec<f64>) {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let sorted = order.iter().map(|&row| p[row]).collect();
    (order, sorted)
}

/// Values of ranks in the order of their rows.
fn in_order(order: &[usize], of_rank: &[f64]) -> Vec<f64> {
    let mut of_row = vec![0.0; order.len()];
    for (&row, value) in order.iter().zip(of_rank) {
        of_row[row] = *value;
    }
    of_row
}

/// k / (m c) by rank from 0, of a step-up correction.
fn shares(tests: usize, correction: MultiplicityCorrection) -> impl Fn(usize) -> f64 {
    let penalty = if correction == MultiplicityCorrection::BenjaminiYekutieli {
        (1..=tests).map(|k| 1.0 / k as f64).sum()
    } else {
        1.0
    };
    // The last rank of Benjamini and Hochberg divides by exactly 1: all are rejected exactly when the largest p is
    // at most the level.
    move |rank| (rank + 1) as f64 / tests as f64 / penalty
}

fn adjusted_sorted(sorted: &[f64], correction: MultiplicityCorrection) -> Vec<f64> {
    let tests = sorted.len() as f64;
    let mut adjusted = vec![1.0; sorted.len()];
    match correction {
        MultiplicityCorrection::BenjaminiHochberg | MultiplicityCorrection::BenjaminiYekutieli => {
            let share = shares(sorted.len(), correction);
            let mut least = 1.0_f64;
            for (rank, p) in sorted.iter().enumerate().rev() {
                least = least.min(p / share(rank));
                adjusted[rank] = least;
            }
        }
        MultiplicityCorrection::Holm => {
            let mut most = 0.0_f64;
            for (rank, p) in sorted.iter().enumerate() {
                most = most.max(p * (tests - rank as f64));
                adjusted[rank] = most.min(1.0);
            }
        }
        MultiplicityCorrection::Bonferroni => {
            for (slot, p) in adjusted.iter_mut().zip(sorted) {
                *slot = (p * tests).min(1.0);
            }
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [MultiplicityCorrection; 4] = [
        MultiplicityCorrection::BenjaminiHochberg,
        MultiplicityCorrection::BenjaminiYekutieli,
        MultiplicityCorrection::Holm,
        MultiplicityCorrection::Bonferroni,
    ];

    #[test]
    fn p_values_alone_agree_with_statsmodels_and_may_be_none() {
        // source: statsmodels 0.15.0 multipletests, fdr_bh, holm, bonferroni.
        const WANT: [(MultiplicityCorrection, [f64; 5]); 3] = [
            (
                MultiplicityCorrection::BenjaminiHochberg,
                [0.025, 0.05, 0.05, 0.025, 0.7],
            ),
            (MultiplicityCorrection::Holm, [0.04, 0.09, 0.09, 0.025, 0.7]),
            (
                MultiplicityCorrection::Bonferroni,
                [0.05, 0.2, 0.15, 0.025, 1.0],
            ),
        ];
        let p = [0.01, 0.04, 0.03, 0.005, 0.7];
        for (correction, want) in WANT {
            for (got, want) in adjusted(&p, correction).unwrap().iter().zip(want) {
                assert!((got - want).abs() < 1e-15, "{got} is not {want}");
            }
        }
        for correction in ALL {
            assert!(adjusted(&[], correction).unwrap().is_empty());
            assert!(adjusted(&[0.5, f64::NAN], correction).is_err());
        }
    }

    #[test]
    fn what_is_not_a_family_is_refused() {
        assert!(PValues::new(&[]).is_err());
        for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let refused = PValues::new(&[0.2, bad]).unwrap_err();
            assert_eq!(refused.to_string(), "p row 1: expected a value in [0, 1]");
        }
        let p = PValues::new(&[0.2]).unwrap();
        assert!(correct(p, MultiplicityCorrection::Holm, 0.0).is_err());
        assert!(correct(p, MultiplicityCorrection::Holm, f64::NAN).is_err());
    }

    #[test]
    fn the_first_worked_example_rejects_four() {
        // source: Benjamini and Hochberg (1995), section 3.2: 15 p-values, four rejected at q = 0.05.
        let p: [f64; 15] = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let rejections = |correction| {
            let family = PValues::new(&p).unwrap();
            let corrected = correct(family, correction, 0.05).unwrap();
            corrected.reject.iter().filter(|reject| **reject).count()
        };
        assert_eq!(rejections(MultiplicityCorrection::BenjaminiHochberg), 4);
        assert_eq!(rejections(MultiplicityCorrection::Bonferroni), 3);
    }

    proptest! {
        #[test]
        fn adjusted_p_are_monotone_bounded_and_agree_with_rejections(
            p in prop::collection::vec(0.0..=1.0_f64, 1..30), level in 0.01..0.5_f64,
        ) {
            for correction in ALL {
                let corrected = correct(PValues::new(&p).unwrap(), correction, level).unwrap();
                for (i, &one) in p.iter().enumerate() {
                    prop_assert!(corrected.adjusted[i] >= one * (1.0 - 1e-15));
                    prop_assert!(corrected.adjusted[i] <= 1.0);
                    let clear = (corrected.adjusted[i] - level).abs() > 1e-12;
                    prop_assert!(!clear || corrected.reject[i] == (corrected.adjusted[i] < level));
                    for (j, &other) in p.iter().enumerate() {
                        prop_assert!(one > other || corrected.adjusted[i] <= corrected.adjusted[j]);
                    }
                }
            }
        }

        #[test]
        fn order_changes_nothing(p in prop::collection::vec(0_u32..20, 1..20), turn in 0_usize..20) {
            let p: Vec<f64> = p.iter().map(|p| f64::from(*p) / 19.0).collect();
            let mut turned = p.clone();
            turned.rotate_left(turn % p.len());
            for correction in ALL {
                let mut expected = correct(PValues::new(&p).unwrap(), correction, 0.1).unwrap();
                let got = correct(PValues::new(&turned).unwrap(), correction, 0.1).unwrap();
                expected.adjusted.rotate_left(turn % p.len());
                expected.reject.rotate_left(turn % p.len());
                prop_assert_eq!(got, expected);
            }
        }

        #[test]
        fn a_smaller_p_never_loses_a_rejection(p in prop::collection::vec(0.0..=1.0_f64, 2..20), at in 0_usize..20, by in 0.0..1.0_f64) {
            let at = at % p.len();
            let mut less = p.clone();
            less[at] *= by;
            for correction in ALL {
                let before = correct(PValues::new(&p).unwrap(), correction, 0.1).unwrap();
                let after = correct(PValues::new(&less).unwrap(), correction, 0.1).unwrap();
                for (b, a) in before.adjusted.iter().zip(&after.adjusted) {
                    prop_assert!(*a <= b * (1.0 + 1e-12));
                }
                prop_assert!(!before.reject[at] || after.reject[at]);
            }
        }
    }
}
