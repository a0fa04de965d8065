//! Residual audit: where a judge over- or under-scores, by pre-registered slices.
//!
//! Residual eps = label - calibrated reward. A family of slices is a partition of all rows; what lies in no cell is
//! the slice *other*. Each slice with at least 40 labelled rows is tested, `t = mean eps / SE` with SE cluster-robust
//! and clusters - 1 df, adjusted within the family; every slice with a labelled row is partially pooled, and a slice
//! below 40 rows is read only through its pooled mean. Source: CLOVER v1.1, section 3.

use crate::crv1;
use crate::distribution;
use crate::inference::Interval;
use crate::multiplicity;
use crate::multiplicity::MultiplicityCorrection;
use crate::pooling;
use crate::pooling::Group;
use crate::pooling::Iteration;
use crate::pooling::Shrunk;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use crate::sample::open_unit;
use crate::sample::unit;
use clover_num::math;

/// Labelled rows from which a slice is read by itself.
pub const ROWS_MIN: usize = 40;
/// Slices of one family, *other* not counted.
pub const SLICES_MAX: usize = 12;
/// Smallest absolute shrunk mean of a Risk slice.
pub const RISK_EFFECT: f64 = 0.03;
/// Exposure from which a slice that is not Risk is protected.
pub const GREEN_EXPOSURE: f64 = 0.05;
/// Stakes from which a slice that is not Risk is protected.
pub const GREEN_STAKES: f64 = 0.7;

/// Which slice each row is in: 0 to `count - 1`, or none of them.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    of_row: &'a [Option<usize>],
    count: usize,
}

impl<'a> Slices<'a> {
    /// Checks a family's slices.
    ///
    /// # Errors
    /// [`SampleError::Empty`] without rows; [`SampleError::Parameter`] for a slice of `count` or more, or more than
    /// 12 slices.
    pub fn new(of_row: &'a [Option<usize>], count: usize) -> Result<Self, SampleError> {
        if of_row.is_empty() {
            return Err(SampleError::Empty { column: "slices" });
        }
        let beyond = |slice: &Option<usize>| slice.is_some_and(|slice| slice >= count);
        if count > SLICES_MAX || of_row.iter().any(beyond) {
            return Err(SampleError::Parameter {
                name: "slices",
                expected: "at most 12 slices, numbered from 0",
            });
        }
        Ok(Self { of_row, count })
    }

    /// Slices, *other* not counted.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Rows of each slice in order, those of *other* last; length `count + 1`.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.count + 1];
        for (row, slice) in self.of_row.iter().enumerate() {
            members[slice.unwrap_or(self.count)].push(row);
        }
        members
    }

    /// Exposure weights: the share of rows in each slice, *other* last. Taken over all logs, not over labels.
    pub fn exposures(&self) -> Vec<f64> {
        let rows = self.of_row.len() as f64;
        self.members()
            .iter()
            .map(|members| members.len() as f64 / rows)
            .collect()
    }
}

/// A family as the audit reads it.
#[derive(Clone, Copy, Debug)]
pub struct SliceFamily<'a> {
    /// Residuals of labelled rows.
    pub residuals: Values<'a>,
    /// Clusters of the same rows.
    pub clusters: &'a Clusters,
    /// Slices of the same rows.
    pub slices: Slices<'a>,
    /// Exposure weight of each slice over all logs, *other* last: what [`Slices::exposures`] gives for the logs.
    pub exposures: &'a [f64],
    /// Stakes of each slice in [0, 1]; those of *other* are 0.
    pub stakes: &'a [f64],
}

/// How slices are tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceTerms {
    /// Correction within the family.
    pub correction: MultiplicityCorrection,
    /// Level of the adjusted p, in (0, 1).
    pub level: f64,
    /// Labelled rows from which a slice is read by itself.
    pub rows_min: usize,
}

impl Default for SliceTerms {
    fn default() -> Self {
        Self {
            correction: MultiplicityCorrection::BenjaminiHochberg,
            level: 0.10,
            rows_min: ROWS_MIN,
        }
    }
}

/// What a slice is for the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Its shrunk 95 % interval excludes 0 and its shrunk mean is at least 0.03 away from it.
    Risk,
    /// Not Risk, and exposed (w >= 0.05) or of high stakes (u >= 0.7): it must not get worse.
    Green,
    /// The rest.
    Neutral,
}

/// A slice read by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Raw {
    /// Mean residual.
    pub mean: f64,
    /// Cluster-robust standard error; `None` for one cluster.
    pub standard_error: Option<f64>,
    /// t with clusters - 1 df; `None` for one cluster or without spread.
    pub t: Option<f64>,
    /// Student's 95 % interval.
    pub interval: Option<Interval>,
    /// Two-sided p.
    pub p: Option<f64>,
    /// p adjusted within the family; what has no p counts as 1.
    pub p_adjusted: f64,
    /// Whether it is rejected.
    pub rejected: bool,
}

/// A slice of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Labelled rows.
    pub rows: usize,
    /// Clusters with a labelled row.
    pub clusters: usize,
    /// Exposure w.
    pub exposure: f64,
    /// Stakes u.
    pub stakes: f64,
    /// By itself; `None` below the minimum of rows.
    pub raw: Option<Raw>,
    /// Partially pooled; `None` without a labelled row, or if nothing in the family varies.
    pub pooled: Option<Shrunk>,
    /// Its class.
    pub class: Class,
}

/// The audit of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceAudit {
    /// Slices in order, *other* last.
    pub slices: Vec<Slice>,
    /// Mean of the slices' distribution; `None` if nothing in the family varies.
    pub mu: Option<f64>,
    /// Variance between slices.
    pub between: Option<f64>,
    /// How the estimate of it ended.
    pub iteration: Option<Iteration>,
}

/// Reads one column of rows by itself: mean, cluster-robust t, 95 % interval; p not yet adjusted.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn raw(residuals: Values<'_>, clusters: &Clusters) -> Result<Raw, SampleError> {
    align("clusters", clusters.of_row().len(), residuals.len())?;
    let found = crv1::mean(residuals.as_slice(), clusters, None);
    let t = found.t(0.0);
    Ok(Raw {
        mean: found.mean,
        standard_error: found.standard_error(),
        t,
        interval: found
            .standard_error()
            .map(|error| Interval::student(found.mean, error, found.df(), 0.05)),
        p: t.map(|t| distribution::t_two_sided(t, found.df())),
        p_adjusted: 1.0,
        rejected: false,
    })
}

/// Adjusts the p-values of slices tested together and marks what is rejected; a slice without p stays unrejected
/// and counts as p = 1.
///
/// # Errors
/// [`SampleError::Parameter`] for a level outside (0, 1).
pub fn adjust<'a>(
    slices: impl IntoIterator<Item = &'a mut Raw>,
    correction: MultiplicityCorrection,
    level: f64,
) -> Result<(), SampleError> {
    open_unit("level", level)?;
    let slices: Vec<&mut Raw> = slices.into_iter().collect();
    let p: Vec<f64> = slices.iter().map(|raw| raw.p.unwrap_or(1.0)).collect();
    let adjusted = multiplicity::adjusted(&p, correction)?;
    for (raw, p_adjusted) in slices.into_iter().zip(adjusted) {
        raw.p_adjusted = p_adjusted;
        raw.rejected = raw.p.is_some() && p_adjusted <= level;
    }
    Ok(())
}

/// The class of a slice from its pooled mean, exposure and stakes.
pub fn classify(pooled: Option<&Shrunk>, exposure: f64, stakes: f64) -> Class {
    let risk = pooled.is_some_and(|pooled| {
        let Interval { low, high } = pooled.interval;
        (low > 0.0 || high < 0.0) && pooled.mean.abs() >= RISK_EFFECT
    });
    if risk {
        return Class::Risk;
    }
    if exposure >= GREEN_EXPOSURE || stakes >= GREEN_STAKES {
        return Class::Green;
    }
    Class::Neutral
}

/// Audits one family of slices.
///
/// # Errors
/// [`Unfit::Invalid`] for misaligned columns, exposures or stakes outside [0, 1], or a level outside (0, 1).
pub fn audit(family: &SliceFamily<'_>, terms: &SliceTerms) -> Result<SliceAudit, Unfit> {
    let rows = family.residuals.len();
    align("clusters", family.clusters.of_row().len(), rows)?;
    align("slices", family.slices.of_row.len(), rows)?;
    align("exposures", family.exposures.len(), family.slices.count + 1)?;
    align("stakes", family.stakes.len(), family.slices.count)?;
    unit("exposures", family.exposures)?;
    unit("stakes", family.stakes)?;
    let members = family.slices.members();
    let mut slices = Vec::with_capacity(members.len());
    let (mut groups, mut grouped) = (Vec::new(), Vec::new());
    for (number, rows) in members.iter().enumerate() {
        slices.push(slice(family, terms, number, rows)?);
        if !rows.is_empty() {
            groups.push(Group::of(Values::new("residuals", &picked(family, rows))?));
            grouped.push(number);
        }
    }
    let tested = slices.iter_mut().filter_map(|slice| slice.raw.as_mut());
    adjust(tested, terms.correction, terms.level)?;
    let pooled = pooling::partial(&groups)?;
    if let Some(pooled) = &pooled {
        for (&number, shrunk) in grouped.iter().zip(&pooled.groups) {
            slices[number].pooled = Some(*shrunk);
        }
    }
    for slice in &mut slices {
        slice.class = classify(slice.pooled.as_ref(), slice.exposure, slice.stakes);
    }
    Ok(SliceAudit {
        slices,
        mu: pooled.as_ref().map(|pooled| pooled.mu),
        between: pooled.as_ref().map(|pooled| pooled.between),
        iteration: pooled.as_ref().map(|pooled| pooled.iteration),
    })
}

fn picked(family: &SliceFamily<'_>, rows: &[usize]) -> Vec<f64> {
    rows.iter()
        .map(|&row| family.residuals.as_slice()[row])
        .collect()
}

fn slice(
    family: &SliceFamily<'_>,
    terms: &SliceTerms,
    number: usize,
    rows: &[usize],
) -> Result<Slice, SampleError> {
    let mut found = Slice {
        rows: rows.len(),
        clusters: 0,
        exposure: family.exposures[number],
        stakes: family.stakes.get(number).copied().unwrap_or(0.0),
        raw: None,
        pooled: None,
        class: Class::Neutral,
    };
    if rows.is_empty() {
        return Ok(found);
    }
    let clusters = family.clusters.select(rows)?;
    found.clusters = clusters.count();
    if rows.len() >= terms.rows_min.max(1) {
        let residuals = picked(family, rows);
        found.raw = Some(raw(Values::new("residuals", &residuals)?, &clusters)?);
    }
    Ok(found)
}

/// The slices that the loss leans on most, by `w u MSE` descending: (slice, value), ties by slice.
///
/// `mse` is the mean squared residual of each slice, `None` where it has none. Source: CLOVER v1.1, minimum reporting bundle.
pub fn heaviest(
    exposures: &[f64],
    stakes: &[f64],
    mse: &[Option<f64>],
    top: usize,
) -> Vec<(usize, f64)> {
    let mut found: Vec<(usize, f64)> = mse
        .iter()
        .enumerate()
        .filter_map(|(number, mse)| {
            let weight = exposures.get(number)? * stakes.get(number)?;
            Some((number, weight * (*mse)?))
        })
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(top);
    found
}

/// Mean squared residual.
pub fn mean_square(residuals: Values<'_>) -> f64 {
    math::dot(residuals.as_slice(), residuals.as_slice()) / residuals.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of a slice with a given mean and alternating deviation.
    fn rows(count: usize, mean: f64, sd: f64) -> Vec<f64> {
        (0..count)
            .map(|row| mean + if row % 2 == 0 { sd } else { -sd })
            .collect()
    }

    struct Stage {
        residuals: Vec<f64>,
        slices: Vec<Option<usize>>,
    }

    fn stage(parts: &[(Option<usize>, usize, f64, f64)]) -> Stage {
        let mut stage = Stage {
            residuals: Vec::new(),
            slices: Vec::new(),
        };
        for &(slice, count, mean, sd) in parts {
            stage.residuals.extend(rows(count, mean, sd));
            stage.slices.extend(vec![slice; count]);
        }
        stage
    }

    fn audited(stage: &Stage, count: usize, exposures: &[f64], stakes: &[f64]) -> SliceAudit {
        let clusters = Clusters::singletons(stage.residuals.len()).unwrap();
        let family = SliceFamily {
            residuals: Values::new("eps", &stage.residuals).unwrap(),
            clusters: &clusters,
            slices: Slices::new(&stage.slices, count).unwrap(),
            exposures,
            stakes,
        };
        audit(&family, &SliceTerms::default()).unwrap()
    }

    #[test]
    fn slices_are_tested_pooled_and_classified() {
        let stage = stage(&[
            (Some(0), 100, -0.15, 0.2),
            (Some(1), 100, 0.001, 0.2),
            (Some(2), 20, 0.02, 0.2),
            (None, 60, 0.0, 0.2),
        ]);
        let found = audited(
            &stage,
            4,
            &[0.3, 0.3, 0.1, 0.04, 0.26],
            &[0.5, 0.5, 0.2, 0.9],
        );
        let classes: Vec<Class> = found.slices.iter().map(|slice| slice.class).collect();
        let green = Class::Green;
        assert_eq!(classes, [Class::Risk, green, green, green, green]);
        let tested: Vec<bool> = found
            .slices
            .iter()
            .map(|slice| slice.raw.is_some())
            .collect();
        assert_eq!(tested, [true, true, false, false, true]);
        assert!(found.slices[0].raw.unwrap().rejected);
        assert!(!found.slices[1].raw.unwrap().rejected);
        // Below 40 rows only the pooled mean; without rows nothing.
        assert!(found.slices[2].pooled.is_some());
        assert_eq!(found.slices[3].pooled, None);
        assert_eq!(found.slices[4].rows, 60);
        let shrunk = found.slices[0].pooled.unwrap();
        assert!(shrunk.mean > -0.15 && shrunk.mean < -0.1);
    }

    #[test]
    fn residuals_that_do_not_vary_are_never_risk() {
        let stage = stage(&[(Some(0), 50, -0.3, 0.0), (Some(1), 50, 0.0, 0.0)]);
        let found = audited(&stage, 2, &[0.5, 0.5, 0.0], &[1.0, 0.0]);
        assert_eq!(found.mu, None);
        assert_eq!(found.slices[0].raw.unwrap().p, None);
        assert!(!found.slices[0].raw.unwrap().rejected);
        assert_eq!(found.slices[0].class, Class::Green);
    }

    #[test]
    fn wrong_families_are_refused() {
        let slices = [Some(0), Some(3)];
        assert!(Slices::new(&slices, 3).is_err());
        assert!(Slices::new(&slices, 13).is_err());
        assert!(Slices::new(&[], 3).is_err());
        let exposures = Slices::new(&[Some(0), None, Some(0), Some(1)], 2)
            .unwrap()
            .exposures();
        assert_eq!(exposures, [0.5, 0.25, 0.25]);
    }

    #[test]
    fn the_appendix_rejects_its_first_slice_alone() {
        // source: CLOVER v1.1 engineering specification, Appendix C, BH (raw s): t tests of the pooling vector.
        let summary: [(f64, f64, f64); 8] = [
            (60.0, -0.120, 0.22),
            (80.0, -0.045, 0.20),
            (150.0, 0.010, 0.18),
            (120.0, 0.025, 0.19),
            (90.0, -0.015, 0.21),
            (200.0, 0.000, 0.17),
            (45.0, 0.060, 0.24),
            (75.0, -0.030, 0.20),
        ];
        let mut slices: Vec<Raw> = summary
            .iter()
            .map(|&(n, mean, sd)| {
                let t = mean / (sd / n.sqrt());
                Raw {
                    mean,
                    standard_error: Some(sd / n.sqrt()),
                    t: Some(t),
                    interval: None,
                    p: Some(distribution::t_two_sided(t, n - 1.0)),
                    p_adjusted: 1.0,
                    rejected: false,
                }
            })
            .collect();
        adjust(&mut slices, MultiplicityCorrection::BenjaminiHochberg, 0.10).unwrap();
        assert!((slices[0].p.unwrap() - 0.000_08).abs() < 5e-6);
        assert!((slices[0].p_adjusted - 0.000_67).abs() < 5e-6);
        assert!((slices[1].p.unwrap() - 0.047_58).abs() < 5e-6);
        assert!((slices[1].p_adjusted - 0.190_32).abs() < 5e-6);
        let rejected: Vec<bool> = slices.iter().map(|raw| raw.rejected).collect();
        assert_eq!(rejected.iter().filter(|&&hit| hit).count(), 1);
        assert!(rejected[0]);
    }

    #[test]
    fn the_heaviest_slices_come_first() {
        let mse = [Some(0.04), None, Some(0.09), Some(0.02)];
        let found = heaviest(&[0.5, 0.2, 0.2, 0.1], &[0.5, 1.0, 1.0, 1.0], &mse, 2);
        assert_eq!(found[0].0, 2);
        assert_eq!(found[1].0, 0);
    }

    proptest! {
        #[test]
        fn bh_rejects_all_exactly_when_the_largest_p_is_at_most_q(
            p in prop::collection::vec(0.0..0.2_f64, 1..13),
        ) {
            let adjusted = multiplicity::adjusted(&p, MultiplicityCorrection::BenjaminiHochberg).unwrap();
            let all = adjusted.iter().all(|p| *p <= 0.10);
            let largest = p.iter().fold(0.0_f64, |a, b| a.max(*b));
            prop_assert_eq!(all, largest <= 0.10);
        }

        #[test]
        fn order_of_rows_does_not_matter(
            rows in prop::collection::vec((0_usize..4, -1.0..1.0_f64), 90..200),
        ) {
            let build = |rows: &[(usize, f64)]| Stage {
                residuals: rows.iter().map(|row| row.1).collect(),
                slices: rows.iter().map(|row| (row.0 < 3).then_some(row.0)).collect(),
            };
            let mut turned = rows.clone();
            turned.reverse();
            let (w, u) = ([0.3, 0.3, 0.3, 0.1], [0.1, 0.5, 0.9]);
            let a = audited(&build(&rows), 3, &w, &u);
            let b = audited(&build(&turned), 3, &w, &u);
            for (a, b) in a.slices.iter().zip(&b.slices) {
                prop_assert_eq!(a.class, b.class);
                if let (Some(a), Some(b)) = (a.raw, b.raw) {
                    prop_assert!((a.p_adjusted - b.p_adjusted).abs() < 1e-9);
                }
            }
        }
    }
}
