//! Where logged data can answer at all: overlap weights, and restriction to rows or cohorts that both policies visit.
//!
//! Each changes the question: it is no longer the target's value, but its value where logger and target overlap, and
//! a report must say so.

use std::collections::BTreeMap;

use crate::overlap;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Weights;
use crate::sample::align;
use crate::weights::LogRatios;
use crate::weights::ratio;
use clover_num::math;

/// Overlap weights, mean one: proportional to `e_i = pi' / (pi' + pi_0) = 1 / (1 + exp(-l_i))`, at most 1 before scaling.
/// The estimand is the target's mean over rows drawn in proportion to `pi' pi_0 / (pi' + pi_0)`
/// (Li, Morgan and Zaslavsky 2018).
pub fn overlap(ratios: &LogRatios) -> Vec<f64> {
    ratio::mean_one(&propensities(ratios))
}

/// `1 / (1 + exp(-l))`, without overflow on either side.
fn propensities(ratios: &LogRatios) -> Vec<f64> {
    let share = |l: f64| {
        if l >= 0.0 {
            1.0 / (1.0 + math::exp(-l))
        } else {
            let odds = math::exp(l);
            odds / (1.0 + odds)
        }
    };
    ratios.as_slice().iter().map(|&l| share(l)).collect()
}

/// Rows that were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// Their numbers, in order.
    pub kept: Vec<usize>,
    /// Rows in all.
    pub rows: usize,
}

impl Restriction {
    /// Share of rows kept.
    pub fn share(&self) -> f64 {
        self.kept.len() as f64 / self.rows as f64
    }
}

/// Keeps rows whose `e = pi' / (pi' + pi_0)` lies in [`margin`, 1 - `margin`], 0.1 by custom (Crump, Hotz, Imbens and
/// Mitnik 2009).
///
/// # Errors
/// [`SampleError::Parameter`] unless 0 <= margin < 0.5; [`InsufficientData`] if no row is kept.
pub fn to_band(ratios: &LogRatios, margin: f64) -> Result<Restriction, Unfit> {
    if !(0.0..0.5).contains(&margin) {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "margin",
            expected: "a number of at least 0 and below 0.5",
        }));
    }
    let inside = |e: &f64| *e >= margin && *e <= 1.0 - margin;
    let kept: Vec<usize> = (0..)
        .zip(propensities(ratios))
        .filter(|(_, e)| inside(e))
        .map(|(row, _)| row)
        .collect();
    InsufficientData::unless("rows in the band", kept.len(), 1)?;
    Ok(Restriction {
        kept,
        rows: ratios.len(),
    })
}

/// One cohort's overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort<K> {
    /// Its name.
    pub name: K,
    /// Its rows.
    pub rows: usize,
    /// Effective sample size over its rows; 0 where the target can write none of them.
    pub ess_fraction: f64,
    /// Whether it was kept.
    pub kept: bool,
}

/// Cohorts kept and dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortRestriction<K> {
    /// Every cohort, by name.
    pub cohorts: Vec<Cohort<K>>,
    /// The rows of the kept ones.
    pub rows: Restriction,
}

/// Keeps whole cohorts (time windows, traffic sources) whose effective sample size is at least `least` of their rows, 0.30
/// by the gate of the CJE paper, table 9. Cohorts, not rows, so that what is left can be named.
///
/// # Errors
/// [`SampleError`] for misaligned cohorts or a `least` outside [0, 1]; [`InsufficientData`] if no cohort is kept.
pub fn to_cohorts<K: Ord + Clone>(
    weights: Weights<'_>,
    cohorts: &[K],
    least: f64,
) -> Result<CohortRestriction<K>, Unfit> {
    let weights = weights.as_slice();
    align("cohorts", cohorts.len(), weights.len())?;
    if !(0.0..=1.0).contains(&least) {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "least effective share",
            expected: "a number in [0, 1]",
        }));
    }
    let mut members: BTreeMap<&K, Vec<f64>> = BTreeMap::new();
    for (cohort, &weight) in cohorts.iter().zip(weights) {
        members.entry(cohort).or_default().push(weight);
    }
    let judged: Vec<Cohort<K>> = members
        .into_iter()
        .map(|(name, own)| {
            let ess = Weights::new("weights", &own, own.len());
            let ess_fraction = ess.map_or(0.0, |own| overlap::ess(own).fraction);
            Cohort {
                name: name.clone(),
                rows: own.len(),
                ess_fraction,
                kept: ess_fraction >= least,
            }
        })
        .collect();
    let keeps = |name: &K| {
        judged
            .iter()
            .any(|cohort| cohort.kept && cohort.name == *name)
    };
    let kept: Vec<usize> = (0..weights.len())
        .filter(|&row| keeps(&cohorts[row]))
        .collect();
    InsufficientData::unless("rows in cohorts with overlap", kept.len(), 1)?;
    Ok(CohortRestriction {
        cohorts: judged,
        rows: Restriction {
            kept,
            rows: weights.len(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_weights_are_bounded() {
        let ratios = LogRatios::of(vec![0.0, 900.0, -900.0, f64::NEG_INFINITY]).unwrap();
        // By hand: shares 1/2, 1, 0, 0 of mean 3/8.
        let found = overlap(&ratios);
        assert!((found[0] - 4.0 / 3.0).abs() < 1e-15 && (found[1] - 8.0 / 3.0).abs() < 1e-15);
        assert_eq!(&found[2..], [0.0, 0.0]);
        let band = to_band(&ratios, 0.1).unwrap();
        assert_eq!((band.kept.as_slice(), band.rows), (&[0][..], 4));
        assert!((band.share() - 0.25).abs() < 1e-15);
        assert!(matches!(to_band(&ratios, 0.5), Err(Unfit::Invalid(_))));
        assert!(matches!(to_band(&ratios, f64::NAN), Err(Unfit::Invalid(_))));
        let far = LogRatios::of(vec![50.0, -50.0]).unwrap();
        assert!(matches!(
            to_band(&far, 0.1),
            Err(Unfit::InsufficientData(_))
        ));
    }

    #[test]
    fn cohorts_are_kept_whole() {
        let weights = [1.0, 1.2, 0.8, 9.0, 0.0, 0.0, 0.0, 0.0];
        let of = ["a", "a", "a", "b", "b", "b", "b", "c"];
        let weights = Weights::new("w", &weights, 8).unwrap();
        let found = to_cohorts(weights, &of, 0.3).unwrap();
        assert_eq!(found.rows.kept, [0, 1, 2]);
        let kept: Vec<bool> = found.cohorts.iter().map(|cohort| cohort.kept).collect();
        assert_eq!(kept, [true, false, false]);
        assert!((found.cohorts[1].ess_fraction - 0.25).abs() < 1e-15);
        assert!(matches!(
            to_cohorts(weights, &of, 1.0),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(to_cohorts(weights, &of[..3], 0.3).is_err());
    }
}
