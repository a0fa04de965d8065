//! L1: do the labelled rows look like all rows? Weighted standardised mean differences, and labels of no design.

use clover_num::math;
use clover_stats::inference;
use clover_stats::sample::InsufficientData;

use crate::iterate::compute::rows::Table;

/// Magnitude of a standardised mean difference above which labelled rows do not look like all rows.
pub const SMD_MAX: f64 = 0.1;

/// One column compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// What it is: `score`, `covariate 0`, or a slice.
    pub name: String,
    /// `(mean of labelled rows weighted by 1 / inclusion - mean of all rows) / sd of all rows`; 0 without spread.
    pub smd: f64,
}

/// The audit of how rows came to be labelled.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelProcess {
    /// Labelled rows before the confirm window.
    pub labelled: usize,
    /// Labels that no design explains.
    pub orphans: usize,
    /// Columns in order: the score, covariates, cells of slice families.
    pub balance: Vec<Balance>,
}

impl LabelProcess {
    /// The largest magnitude.
    pub fn smd_largest(&self) -> f64 {
        self.balance
            .iter()
            .map(|column| column.smd.abs())
            .fold(0.0, f64::max)
    }

    /// No orphan, and every difference at most 0.1.
    pub fn holds(&self) -> bool {
        self.orphans == 0 && self.smd_largest() <= SMD_MAX
    }
}

/// Compares labelled rows of fit and dev with all logs. A label without an inclusion probability is an orphan, and
/// weighs 1.
///
/// # Errors
/// [`InsufficientData`] below two labelled rows.
pub fn label_process(table: &Table) -> Result<LabelProcess, InsufficientData> {
    let data = table.data();
    let labelled: Vec<usize> = table
        .logs()
        .iter()
        .copied()
        .filter(|&row| data.labels[row].is_some() && data.parts[row].is_some())
        .collect();
    InsufficientData::unless("labelled rows", labelled.len(), 2)?;
    let weight = |row: usize| match data.inclusion[row] {
        Some(chance) if chance > 0.0 => 1.0 / chance,
        _ => 1.0,
    };
    let weights: Vec<f64> = labelled.iter().map(|&row| weight(row)).collect();
    let mass = math::sum(&weights);
    let compare =
        |name: String, value: &dyn Fn(usize) -> f64| -> Result<Balance, InsufficientData> {
            let all: Vec<f64> = table.logs().iter().map(|&row| value(row)).collect();
            let chosen: Vec<f64> = labelled.iter().map(|&row| value(row)).collect();
            let spread = inference::standard_deviation(&all)?;
            let difference = math::dot(&weights, &chosen) / mass - math::mean(&all);
            let smd = if spread > 0.0 {
                difference / spread
            } else {
                0.0
            };
            Ok(Balance { name, smd })
        };
    let mut balance = vec![compare("score".to_owned(), &|row| data.scored.scores[row])?];
    for (number, covariate) in data.covariates.iter().enumerate() {
        balance.push(compare(format!("covariate {number}"), &|row| {
            covariate[row]
        })?);
    }
    for family in &data.slices {
        for (cell, slice) in family.slices.iter().enumerate() {
            let name = format!("{} {slice}", family.id);
            balance.push(compare(name, &|row| {
                f64::from(family.of_row[row] == Some(cell))
            })?);
        }
    }
    let orphan = |row: &&usize| data.inclusion[**row].is_none();
    Ok(LabelProcess {
        labelled: labelled.len(),
        orphans: labelled.iter().filter(orphan).count(),
        balance,
    })
}
