//! What a patch is truly worth: the change of mean squared error on rows that nobody fitted or chose on.

use clover_num::math;
use clover_rubric::engine::EngineError;
use clover_rubric::engine::Rules;
use clover_stats::calibrator;
use clover_stats::calibrator::Algorithm;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::CalibratorSettings;
use clover_stats::calibrator::Mode;
use clover_stats::sample::Unfit;
use rayon::prelude::*;
use serde::Serialize;

use crate::simulate::world::Kind;
use crate::simulate::world::SimulatedRow;
use crate::simulate::world::World;

/// Rows that a truth is computed on, at least, where a decision is called false or true by it.
pub const FRESH_MIN: u64 = 100_000;
/// Rows of one block: what is held at a time.
const BLOCK: u64 = 20_000;
/// Folds of the calibrators fitted here.
const FOLDS: usize = 5;

/// Why there is no truth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TruthError {
    /// A rubric needs what simulated rows do not have.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Too few rows, or columns that are no sample.
    #[error("{0}")]
    Fit(String),
}

impl From<Unfit> for TruthError {
    fn from(error: Unfit) -> Self {
        Self::Fit(error.to_string())
    }
}

/// The mean of d = (Y - R')^2 - (Y - R)^2 over fresh rows: negative is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worth {
    /// Its mean by slice, in the order of slices.
    pub by_slice: Vec<f64>,
    /// The mean: the true change of mean squared error.
    pub dmse: f64,
    /// Mean squared error of R.
    pub mse_before: f64,
    /// Rows.
    pub rows: u64,
    /// Standard error of the mean.
    pub se: f64,
}

/// Score of a row under rules, on [0, 1].
///
/// # Errors
/// [`EngineError`].
pub fn score(row: &SimulatedRow, rules: &Rules) -> Result<f64, EngineError> {
    Ok(rules.score(row.base, &row.evidence)?.score.value() as f64 / 1e6)
}

/// Calls `see` with blocks of fresh rows `from..to`, in order; `done` is told how many are through.
fn blocks<E>(
    world: &World,
    (from, to): (u64, u64),
    done: &mut dyn FnMut(u64),
    mut see: impl FnMut(&[SimulatedRow]) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = from;
    while at < to {
        let end = to.min(at + BLOCK);
        let rows: Vec<SimulatedRow> = (at..end)
            .into_par_iter()
            .map(|number| world.row(Kind::Fresh, number))
            .collect();
        see(&rows)?;
        done(end);
        at = end;
    }
    Ok(())
}

/// The worth of rewards `after` against `before` (R' and R, as functions of a row) on fresh rows `from..to`. Rows of one world
/// that a calibrator was fitted on are not fresh for it.
///
/// # Errors
/// What the rewards give, and [`TruthError::Fit`] with fewer than two rows.
pub fn worth(
    world: &World,
    (from, to): (u64, u64),
    before: impl Fn(&SimulatedRow) -> Result<f64, TruthError>,
    after: impl Fn(&SimulatedRow) -> Result<f64, TruthError>,
    done: &mut dyn FnMut(u64),
) -> Result<Worth, TruthError> {
    let slices = usize::try_from(world.setting().slices).unwrap_or(0);
    let (mut d, mut losses, mut by_slice) = (Vec::new(), Vec::new(), vec![Vec::new(); slices]);
    blocks(world, (from, to), done, |rows| {
        for row in rows {
            let label = row.label.value() as f64 / 1e6;
            let (old, new) = (label - before(row)?, label - after(row)?);
            let difference = new * new - old * old;
            d.push(difference);
            losses.push(old * old);
            by_slice[row.slice].push(difference);
        }
        Ok::<_, TruthError>(())
    })?;
    if d.len() < 2 {
        return Err(TruthError::Fit("expected two rows or more".to_owned()));
    }
    let (count, mean) = (d.len() as f64, math::mean(&d));
    let squares: Vec<f64> = d.iter().map(|d| (d - mean) * (d - mean)).collect();
    let by_slice = by_slice
        .iter()
        .map(|d| if d.is_empty() { 0.0 } else { math::mean(d) })
        .collect();
    Ok(Worth {
        by_slice,
        dmse: mean,
        mse_before: math::mean(&losses),
        rows: d.len() as u64,
        se: (math::sum(&squares) / (count - 1.0) / count).sqrt(),
    })
}

/// The worth of one set of rules against another when each has the calibrator that plenty of labels give: `centroid-1`,
/// monotone, fitted on fresh rows `0..rows`; the worth is read on the next `rows`.
///
/// # Errors
/// [`TruthError`].
pub fn of_rules(
    world: &World,
    (before, after): (&Rules, &Rules),
    rows: u64,
    done: &mut dyn FnMut(u64),
) -> Result<Worth, TruthError> {
    let (mut old, mut new, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    blocks(world, (0, rows), done, |block| {
        for row in block {
            old.push(score(row, before)?);
            new.push(score(row, after)?);
            labels.push(row.label.value() as f64 / 1e6);
        }
        Ok::<_, TruthError>(())
    })?;
    let (old, new) = (fitted(&old, &labels)?, fitted(&new, &labels)?);
    worth(
        world,
        (rows, 2 * rows),
        |row| Ok(old.predict(score(row, before)?, &[])),
        |row| Ok(new.predict(score(row, after)?, &[])),
        done,
    )
}

/// A calibrator of scores, `centroid-1` and monotone, with folds by row number.
fn fitted(scores: &[f64], labels: &[f64]) -> Result<Calibrator, Unfit> {
    let folds: Vec<usize> = (0..scores.len()).map(|row| row % FOLDS).collect();
    let settings = CalibratorSettings {
        algorithm: Algorithm::Centroid1,
        mode: Mode::Monotone,
    };
    calibrator::fit(scores, labels, &[], &folds, FOLDS, None, settings)
}
