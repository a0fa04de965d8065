//! Calibrators of the baseline and of a candidate: same rows, same folds, same mode.

use clover_event::payload::intake::SplitPart;
use clover_num::math;
use clover_stats::calibrator;
use clover_stats::calibrator::Algorithm;
use clover_stats::calibrator::Calibrator;
use clover_stats::calibrator::CalibratorChoice;
use clover_stats::calibrator::Mode;
use clover_stats::folds;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::Unfit;

use crate::iterate::compute::rows::Anchor;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::compute::rows::Table;

/// Abstaining fit rows from which they are calibrated as an atom of their own.
pub const ATOM_ROWS_MIN: usize = 20;

/// How calibrators of an iteration are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which calibrator; `Auto` for the baseline, whose choice binds the candidates.
    pub mode: Mode,
    /// Folds asked for.
    pub folds: usize,
    /// Seed of the folds.
    pub seed: u64,
}

impl Settings {
    /// The same with the mode that a calibrator chose.
    #[must_use]
    pub fn bound_to(self, fitted: &CalibratorFit) -> Self {
        let mode = match fitted.calibrator.selected {
            CalibratorChoice::Monotone => Mode::Monotone,
            CalibratorChoice::TwoStage => Mode::TwoStage,
        };
        Self { mode, ..self }
    }
}

/// The mean label of abstaining rows, in all and without each fold.
#[derive(Clone, Debug, PartialEq)]
pub struct AbstentionAtom {
    /// Abstaining labelled rows of fit.
    pub rows: usize,
    /// Of all of them.
    pub full: f64,
    /// Without those of each fold.
    pub without_fold: Vec<f64>,
}

/// A calibrator fitted on the labelled rows of fit.
#[derive(Clone, Debug)]
pub struct CalibratorFit {
    /// The calibrator of rows that do not abstain, or of all if few do.
    pub calibrator: Calibrator,
    /// Folds in use.
    pub folds: usize,
    /// Labelled rows of fit.
    pub rows: Vec<usize>,
    /// Fold of each of them.
    pub fold_of: Vec<usize>,
    /// Abstaining rows as one, where they are enough.
    pub atom: Option<AbstentionAtom>,
    /// Reward of every row under the model of all labels.
    pub rewards: Vec<f64>,
    /// Reward of each labelled row of fit under the model without its fold.
    pub out_of_fold: Vec<f64>,
}

/// Fold of each labelled row of fit, and how many folds there are.
///
/// # Errors
/// [`InsufficientData`] for too few labelled clusters.
fn folds_of(
    table: &Table,
    rows: &[usize],
    settings: Settings,
) -> Result<(Vec<usize>, usize), InsufficientData> {
    let ids: Vec<&str> = rows
        .iter()
        .map(|&row| table.data().clusters[row].as_str())
        .collect();
    let mut distinct = ids.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let count = folds::resolve_count(settings.folds, distinct.len());
    folds::check_clusters(count, distinct.len())?;
    Ok((
        folds::balanced(&ids, &distinct, count, settings.seed),
        count,
    ))
}

/// Fits `centroid-1` on the labelled rows of fit, scored as given.
///
/// # Errors
/// [`Unfit`] for too few labelled clusters, or a fold without rows.
pub fn fit(
    table: &Table,
    scored: &RubricScores,
    settings: Settings,
) -> Result<CalibratorFit, Unfit> {
    let rows = table.labelled(SplitPart::Fit);
    InsufficientData::unless(
        "labelled fit rows",
        rows.len(),
        folds::LABELLED_CLUSTERS_MIN,
    )?;
    let (fold_of, count) = folds_of(table, &rows, settings)?;
    let atom = atom(table, scored, &rows, &fold_of, count);
    let kept: Vec<usize> = (0..rows.len())
        .filter(|&at| atom.is_none() || !scored.abstains[rows[at]])
        .collect();
    let at = |at: &usize| rows[*at];
    let scores: Vec<f64> = kept.iter().map(|k| scored.scores[at(k)]).collect();
    let labels = table.labels(&kept.iter().map(at).collect::<Vec<_>>());
    let folds: Vec<usize> = kept.iter().map(|&k| fold_of[k]).collect();
    let covariates: Vec<Vec<f64>> = if settings.mode == Mode::Monotone {
        Vec::new()
    } else {
        let columns = table.data().covariates.iter();
        columns
            .map(|column| kept.iter().map(|k| column[at(k)]).collect())
            .collect()
    };
    let columns: Vec<&[f64]> = covariates.iter().map(Vec::as_slice).collect();
    let calibrator = calibrator::fit(
        &scores,
        &labels,
        &columns,
        &folds,
        count,
        None,
        calibrator::CalibratorSettings {
            algorithm: Algorithm::Centroid1,
            mode: settings.mode,
        },
    )?;
    let mut out_of_fold: Vec<f64> = rows
        .iter()
        .zip(&fold_of)
        .map(|(_, &fold)| atom.as_ref().map_or(0.0, |atom| atom.without_fold[fold]))
        .collect();
    for (&k, &value) in kept.iter().zip(&calibrator.out_of_fold) {
        out_of_fold[k] = value;
    }
    let fitted = CalibratorFit {
        calibrator,
        folds: count,
        rows,
        fold_of,
        atom,
        rewards: Vec::new(),
        out_of_fold,
    };
    Ok(fitted.over(table, scored))
}

/// The mean label of abstaining fit rows; `None` below 20 of them, or if a fold holds them all.
fn atom(
    table: &Table,
    scored: &RubricScores,
    rows: &[usize],
    fold_of: &[usize],
    count: usize,
) -> Option<AbstentionAtom> {
    let abstaining: Vec<(f64, usize)> = rows
        .iter()
        .zip(fold_of)
        .filter(|(row, _)| scored.abstains[**row])
        .filter_map(|(&row, &fold)| Some((table.data().labels[row]?, fold)))
        .collect();
    if abstaining.len() < ATOM_ROWS_MIN {
        return None;
    }
    let mean_without = |left_out: Option<usize>| {
        let labels: Vec<f64> = abstaining
            .iter()
            .filter(|(_, fold)| Some(*fold) != left_out)
            .map(|(label, _)| *label)
            .collect();
        (!labels.is_empty()).then(|| math::mean(&labels))
    };
    Some(AbstentionAtom {
        rows: abstaining.len(),
        full: mean_without(None)?,
        without_fold: (0..count)
            .map(|fold| mean_without(Some(fold)))
            .collect::<Option<_>>()?,
    })
}

impl CalibratorFit {
    /// The same calibrator with the rewards of a table that has the same labelled rows of fit, and others beside.
    #[must_use]
    pub fn over(mut self, table: &Table, scored: &RubricScores) -> Self {
        self.rows = table.labelled(SplitPart::Fit);
        self.rewards = (0..table.len())
            .map(|row| self.full(table, scored, row))
            .collect();
        self
    }

    fn full(&self, table: &Table, scored: &RubricScores, row: usize) -> f64 {
        match &self.atom {
            Some(atom) if scored.abstains[row] => atom.full,
            _ => self
                .calibrator
                .predict(scored.scores[row], &table.covariates(row)),
        }
    }

    /// The same calibrator on rows that it was not fitted on: their rewards, and residuals that are plain everywhere.
    #[must_use]
    pub fn on(&self, table: &Table, scored: &RubricScores) -> Self {
        let rewards = (0..table.len()).map(|row| self.full(table, scored, row));
        Self {
            calibrator: self.calibrator.clone(),
            folds: self.folds,
            rows: Vec::new(),
            fold_of: Vec::new(),
            atom: self.atom.clone(),
            rewards: rewards.collect(),
            out_of_fold: Vec::new(),
        }
    }

    /// Rewards of some rows under the model without a fold.
    pub fn without_fold(
        &self,
        table: &Table,
        scored: &RubricScores,
        fold: usize,
        rows: &[usize],
    ) -> Vec<f64> {
        let model = &self.calibrator.without_fold[fold];
        rows.iter()
            .map(|&row| match &self.atom {
                Some(atom) if scored.abstains[row] => atom.without_fold[fold],
                _ => model.predict(scored.scores[row], &table.covariates(row)),
            })
            .collect()
    }

    /// Rewards of anchors under the model of all labels.
    pub fn anchors(&self, anchor: &Anchor, scored: &RubricScores) -> Vec<f64> {
        (0..scored.scores.len())
            .map(|row| match &self.atom {
                Some(atom) if scored.abstains[row] => atom.full,
                _ => {
                    let covariates: Vec<f64> =
                        anchor.covariates.iter().map(|column| column[row]).collect();
                    self.calibrator.predict(scored.scores[row], &covariates)
                }
            })
            .collect()
    }

    /// Residuals, label less reward, of labelled rows: out of fold in fit, plain elsewhere.
    pub fn residuals(&self, table: &Table, rows: &[usize]) -> Vec<f64> {
        rows.iter()
            .filter_map(|&row| {
                let label = table.data().labels[row]?;
                let reward = match self.rows.binary_search(&row) {
                    Ok(at) => self.out_of_fold[at],
                    Err(_) => self.rewards[row],
                };
                Some(label - reward)
            })
            .collect()
    }
}
