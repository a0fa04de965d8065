//! Residual audit of the baseline on dev, and the classification that all later gates cite.

use clover_event::id::FamilyId;
use clover_event::id::SliceId;
use clover_event::payload::intake::SplitPart;
use clover_num::math;
use clover_stats::prentice;
use clover_stats::residuals;
use clover_stats::residuals::Class;
use clover_stats::residuals::Slice;
use clover_stats::residuals::SliceAudit;
use clover_stats::residuals::SliceFamily;
use clover_stats::residuals::SliceTerms;
use clover_stats::residuals::Slices;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::Table;

/// Name of the slice of rows that lie in no cell.
pub const OTHER: &str = "other";

/// The audit of one slice family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyAudit {
    /// The family.
    pub family: FamilyId,
    /// Names of its slices, `other` last.
    pub names: Vec<SliceId>,
    /// Whether each must not regress.
    pub must_not_regress: Vec<bool>,
    /// Labelled rows of each slice, on the split that was read.
    pub members: Vec<Vec<usize>>,
    /// Mean squared residual of each slice; `None` without labelled rows.
    pub mse: Vec<Option<f64>>,
    /// What was found.
    pub audit: SliceAudit,
}

impl FamilyAudit {
    /// Slices of a class, with their places.
    pub fn of_class(&self, class: Class) -> impl Iterator<Item = (usize, &Slice)> {
        let slices = self.audit.slices.iter().enumerate();
        slices.filter(move |(_, slice)| slice.class == class)
    }

    /// Risk slices.
    pub fn risk(&self) -> impl Iterator<Item = &Slice> {
        self.of_class(Class::Risk).map(|(_, slice)| slice)
    }
}

/// Audits every slice family on the labelled rows of dev: exposures from all logs, tests adjusted within each family.
///
/// # Errors
/// [`Unfit`] without labelled dev rows.
pub fn audit(
    table: &Table,
    baseline: &CalibratorFit,
    terms: &SliceTerms,
) -> Result<Vec<FamilyAudit>, Unfit> {
    audit_on(table, baseline, SplitPart::Dev, terms)
}

/// The same under any calibrator, on the labelled rows of a part.
///
/// # Errors
/// [`Unfit`] without labelled rows there.
///
/// # Panics
/// Never: the id of what lies outside of every slice is one.
pub fn audit_on(
    table: &Table,
    fitted: &CalibratorFit,
    part: SplitPart,
    terms: &SliceTerms,
) -> Result<Vec<FamilyAudit>, Unfit> {
    let labelled = table.labelled(part);
    let which = match part {
        SplitPart::Confirm => "labelled confirm rows",
        SplitPart::Dev => "labelled dev rows",
        SplitPart::Fit => "labelled fit rows",
    };
    InsufficientData::unless(which, labelled.len(), 1)?;
    let residuals = fitted.residuals(table, &labelled);
    let clusters = table.clusters(&labelled)?;
    let other: SliceId = OTHER.parse().expect("BUG: a constant id");
    let mut audited = Vec::with_capacity(table.data().slices.len());
    for family in &table.data().slices {
        let count = family.slices.len();
        let of = |rows: &[usize]| {
            rows.iter()
                .map(|&row| family.of_row[row])
                .collect::<Vec<_>>()
        };
        let (of_logs, of_labelled) = (of(table.logs()), of(&labelled));
        let slices = Slices::new(&of_labelled, count)?;
        let exposures = Slices::new(&of_logs, count)?.exposures();
        let audit = residuals::audit(
            &SliceFamily {
                residuals: Values::new("residuals", &residuals)?,
                clusters: &clusters,
                slices,
                exposures: &exposures,
                stakes: &family.stakes,
            },
            terms,
        )?;
        let places = slices.members();
        let mse = places.iter().map(|places| {
            let squares: Vec<f64> = places
                .iter()
                .map(|&at| residuals[at] * residuals[at])
                .collect();
            (!squares.is_empty()).then(|| math::mean(&squares))
        });
        audited.push(FamilyAudit {
            family: family.id.clone(),
            names: family
                .slices
                .iter()
                .cloned()
                .chain([other.clone()])
                .collect(),
            must_not_regress: family
                .must_not_regress
                .iter()
                .copied()
                .chain([false])
                .collect(),
            mse: mse.collect(),
            members: places
                .iter()
                .map(|places| places.iter().map(|&at| labelled[at]).collect())
                .collect(),
            audit,
        });
    }
    Ok(audited)
}

/// A slice as the gates know it: classified once, under the rubric in force, and frozen.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSlice {
    /// Place of its family among the registered ones.
    pub family: usize,
    /// Its place in the family; one beyond the cells is `other`.
    pub place: usize,
    /// Its class.
    pub class: Class,
    /// Exposure w.
    pub exposure: f64,
    /// Stakes u.
    pub stakes: f64,
    /// Whether it must not regress.
    pub must_not_regress: bool,
}

impl GateSlice {
    /// Its name.
    ///
    /// # Panics
    /// Never: the id of what lies outside of every slice is one.
    pub fn name(&self, table: &Table) -> SliceId {
        let family = &table.data().slices[self.family];
        let other = || OTHER.parse().expect("BUG: a constant id");
        family.slices.get(self.place).cloned().unwrap_or_else(other)
    }
}

/// The classification of audited families, in order.
pub fn classified(audited: &[FamilyAudit]) -> Vec<GateSlice> {
    let slices = audited.iter().enumerate().flat_map(|(family, audited)| {
        let slices = audited.audit.slices.iter().enumerate();
        slices.map(move |(place, slice)| GateSlice {
            family,
            place,
            class: slice.class,
            exposure: slice.exposure,
            stakes: slice.stakes,
            must_not_regress: audited.must_not_regress[place],
        })
    });
    slices.collect()
}

/// A term of the Prentice-style check, by what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Surrogacy {
    /// Names of the terms: the squared reward first, then in order.
    pub names: Vec<String>,
    /// The check.
    pub check: prentice::Check,
}

/// Does anything but the reward predict the residual on dev? Terms: the squared reward, covariates, all but one cell of
/// every slice family, and all but one environment of every family.
///
/// # Errors
/// [`Unfit`] for too few rows, or no term.
pub fn surrogacy(table: &Table, baseline: &CalibratorFit) -> Result<Surrogacy, Unfit> {
    let dev = table.labelled(SplitPart::Dev);
    let residuals = baseline.residuals(table, &dev);
    let rewards: Vec<f64> = dev.iter().map(|&row| baseline.rewards[row]).collect();
    let mut names = vec!["reward squared".to_owned()];
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (number, covariate) in table.data().covariates.iter().enumerate() {
        names.push(format!("covariate {number}"));
        columns.push(dev.iter().map(|&row| covariate[row]).collect());
    }
    let dummy = |of_row: &[Option<usize>], cell: usize| -> Vec<f64> {
        dev.iter()
            .map(|&row| f64::from(of_row[row] == Some(cell)))
            .collect()
    };
    for family in &table.data().slices {
        for (cell, slice) in family.slices.iter().enumerate().skip(1) {
            names.push(format!("{} {slice}", family.id));
            columns.push(dummy(&family.of_row, cell));
        }
    }
    for family in &table.data().environments {
        for (cell, environment) in family.environments.iter().enumerate().skip(1) {
            names.push(format!("{} {environment}", family.id));
            columns.push(dummy(&family.of_row, cell));
        }
    }
    let terms: Vec<Values<'_>> = columns
        .iter()
        .map(|column| Values::new("terms", column))
        .collect::<Result<_, _>>()?;
    let check = prentice::check(
        Values::new("residuals", &residuals)?,
        Values::new("rewards", &rewards)?,
        &terms,
    )?;
    Ok(Surrogacy { names, check })
}
