//! Fitting: what does not depend on weights is prepared once, so that a bootstrap refits cheaply.

use crate::calibrator::Algorithm;
use crate::calibrator::Calibrator;
use crate::calibrator::CalibratorChoice;
use crate::calibrator::CalibratorSettings;
use crate::calibrator::Frame;
use crate::calibrator::INDEX_ROWS_MIN;
use crate::calibrator::LabelledRows;
use crate::calibrator::Mode;
use crate::calibrator::Quality;
use crate::calibrator::model::Ecdf;
use crate::calibrator::model::Index;
use crate::calibrator::model::Model;
use crate::isotonic;
use crate::isotonic::ClipBounds;
use crate::isotonic::Point;
use crate::ridge;
use crate::sample::SampleError;
use crate::spline;
use crate::spline::Spline;
use clover_num::math;

/// Labelled rows with all that a fit needs besides weights.
#[derive(Debug)]
pub struct Problem<'a> {
    frame: &'a Frame,
    labelled: LabelledRows,
    settings: CalibratorSettings,
    /// What is fitted: the mode after small samples and covariates had their say.
    mode: Mode,
    /// One part per fold, then the one of all rows.
    parts: Vec<TrainingRows>,
    /// Labelled rows in order of score, for the thirds that choose a mode.
    by_score: Vec<u32>,
}

/// The training rows of one model.
#[derive(Debug)]
struct TrainingRows {
    /// Labelled rows it is fitted on.
    rows: Vec<u32>,
    /// Their points.
    points: Vec<u32>,
    /// Their labels.
    labels: Vec<f64>,
    /// Distinct points that it predicts out of fold.
    held_out: Vec<u32>,
    /// Its smooth index, where one is fitted.
    index: Option<IndexDesign>,
}

/// Spline columns of one part.
#[derive(Debug)]
struct IndexDesign {
    splines: Vec<Spline>,
    /// Nonzero columns at each point of the frame that the part needs; empty at the others.
    basis: Vec<Vec<(usize, f64)>>,
}

/// Models fitted with one set of weights.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was fitted.
    pub selected: CalibratorChoice,
    /// The model of all labels.
    pub full: Model,
    /// The model without each fold.
    pub without_fold: Vec<Model>,
    /// Out-of-fold prediction of each labelled row.
    pub out_of_fold: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// Prepares labelled rows of a frame.
    ///
    /// # Errors
    /// [`SampleError`] for covariates with [`Mode::Monotone`] or a point outside the frame.
    pub fn new(
        frame: &'a Frame,
        labelled: LabelledRows,
        settings: CalibratorSettings,
    ) -> Result<Self, SampleError> {
        let inside = |&point: &u32| (point as usize) < frame.len();
        if !labelled.points.iter().all(inside) {
            return Err(SampleError::Parameter {
                name: "points",
                expected: "points of the frame",
            });
        }
        let mode = match (settings.mode, frame.covariates()) {
            (mode, 0) => mode,
            (Mode::Monotone, _) => {
                return Err(SampleError::Parameter {
                    name: "mode",
                    expected: "auto or two_stage with covariates",
                });
            }
            _ => Mode::TwoStage,
        };
        let mut by_score: Vec<u32> = (0..labelled.len())
            .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect();
        let score = |row: &u32| frame.score(labelled.points[*row as usize] as usize);
        by_score.sort_by(|a, b| score(a).total_cmp(&score(b)));
        let parts = (0..=labelled.fold_count)
            .map(|fold| TrainingRows::new(frame, &labelled, fold, mode))
            .collect();
        Ok(Self {
            frame,
            labelled,
            settings,
            mode,
            parts,
            by_score,
        })
    }

    /// The labelled rows.
    pub fn labelled(&self) -> &LabelledRows {
        &self.labelled
    }

    /// Fits all models with row weights (above 0), or without.
    ///
    /// # Panics
    /// If there are weights, and not one per labelled row.
    pub fn fit(&self, weights: Option<&[f64]>) -> Fit {
        let ones;
        let row_weights = if let Some(weights) = weights {
            assert_eq!(
                weights.len(),
                self.labelled.len(),
                "BUG: one weight per labelled row"
            );
            weights
        } else {
            ones = vec![1.0; self.labelled.len()];
            &ones
        };
        match self.mode {
            Mode::Monotone => self.fit_as(CalibratorChoice::Monotone, row_weights, None),
            Mode::TwoStage => self.fit_as(CalibratorChoice::TwoStage, row_weights, None),
            Mode::Auto => {
                let monotone = self.fit_folds(CalibratorChoice::Monotone, row_weights);
                let two_stage = self.fit_folds(CalibratorChoice::TwoStage, row_weights);
                let chosen = self.choose(&monotone.1, &two_stage.1, weights);
                let folds = match chosen {
                    CalibratorChoice::Monotone => monotone,
                    CalibratorChoice::TwoStage => two_stage,
                };
                self.fit_as(chosen, row_weights, Some(folds))
            }
        }
    }

    /// Fits and measures.
    pub fn calibrator(&self, weights: Option<&[f64]>) -> Calibrator {
        let fit = self.fit(weights);
        let all: Vec<f64> = self.at_points(&fit.full);
        let at_rows: Vec<f64> = self
            .labelled
            .points
            .iter()
            .map(|&point| all[point as usize])
            .collect();
        let covariates = self.frame.covariates() > 0;
        let without = |model: &&Model| !matches!(model, Model::Ranked { index: Some(_), .. });
        Calibrator {
            settings: self.settings,
            selected: fit.selected,
            uses_covariates: covariates && !without(&&fit.full),
            folds_without_covariates: if covariates {
                fit.without_fold.iter().filter(without).count()
            } else {
                0
            },
            quality: self.quality(&at_rows, &fit.out_of_fold, weights),
            full: fit.full,
            without_fold: fit.without_fold,
            out_of_fold: fit.out_of_fold,
            folds: self.labelled.folds.clone(),
        }
    }

    /// Predictions of a full model at every point of the frame.
    pub fn at_points(&self, model: &Model) -> Vec<f64> {
        let part = &self.parts[self.labelled.fold_count];
        (0..self.frame.len())
            .map(|point| self.at(part, model, point))
            .collect()
    }

    /// A prediction through the prepared columns of a part.
    fn at(&self, part: &TrainingRows, model: &Model, point: usize) -> f64 {
        if let (
            Model::Ranked {
                index: Some(index),
                ecdf,
                curve,
            },
            Some(design),
        ) = (model, &part.index)
        {
            let value = along(&design.basis[point], &index.coefficients) + index.intercept;
            return curve.at(ecdf.at(value)).clamp(0.0, 1.0);
        }
        let row = self.frame.point(point);
        model.predict(row[0], &row[1..])
    }

    fn fit_as(
        &self,
        selected: CalibratorChoice,
        weights: &[f64],
        folds: Option<(Vec<Model>, Vec<f64>)>,
    ) -> Fit {
        let (without_fold, out_of_fold) =
            folds.unwrap_or_else(|| self.fit_folds(selected, weights));
        let full = self.fit_part(self.labelled.fold_count, selected, weights);
        // Too few rows for covariates: the full model is isotonic on the score, and reported as such.
        let dropped = self.frame.covariates() > 0 && matches!(full, Model::Monotone(_));
        Fit {
            selected: if dropped {
                CalibratorChoice::Monotone
            } else {
                selected
            },
            full,
            without_fold,
            out_of_fold,
        }
    }

    /// Fold models, and the out-of-fold prediction of each labelled row.
    fn fit_folds(&self, selected: CalibratorChoice, weights: &[f64]) -> (Vec<Model>, Vec<f64>) {
        let count = self.labelled.fold_count;
        let models: Vec<Model> = (0..count)
            .map(|fold| self.fit_part(fold, selected, weights))
            .collect();
        let mut at_point = vec![0.0; self.frame.len()];
        let mut out_of_fold = vec![0.0; self.labelled.len()];
        for (fold, model) in models.iter().enumerate() {
            let part = &self.parts[fold];
            for &point in &part.held_out {
                at_point[point as usize] = self.at(part, model, point as usize);
            }
            for (row, value) in out_of_fold.iter_mut().enumerate() {
                if self.labelled.folds[row] == fold {
                    *value = at_point[self.labelled.points[row] as usize];
                }
            }
        }
        (models, out_of_fold)
    }

    fn fit_part(&self, fold: usize, selected: CalibratorChoice, weights: &[f64]) -> Model {
        let part = &self.parts[fold];
        let row_weights: Vec<f64> = part.rows.iter().map(|&row| weights[row as usize]).collect();
        let (mass, total) = self.sums(part, &row_weights);
        let full = fold == self.labelled.fold_count;
        if selected == CalibratorChoice::Monotone || full && part.index.is_none() {
            let points = (0..self.frame.len())
                .filter(|&point| mass[point] > 0.0)
                .map(|point| Point {
                    x: self.frame.score(point),
                    weight: mass[point],
                    total: total[point],
                })
                .collect::<Vec<_>>();
            return Model::Monotone(self.curve(&points));
        }
        let index = part
            .index
            .as_ref()
            .map(|design| fit_index(design, part, &row_weights));
        let mut ranked: Vec<(f64, usize)> = (0..self.frame.len())
            .filter(|&point| mass[point] > 0.0)
            .map(|point| {
                let value = match (&index, &part.index) {
                    (Some(index), Some(design)) => {
                        along(&design.basis[point], &index.coefficients) + index.intercept
                    }
                    _ => self.frame.score(point),
                };
                (value, point)
            })
            .collect();
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut values: Vec<f64> = Vec::with_capacity(ranked.len());
        let (mut masses, mut totals) = (Vec::new(), Vec::new());
        for (value, point) in ranked {
            if values.last().is_none_or(|&last: &f64| last < value) {
                values.push(value);
                masses.push(0.0);
                totals.push(0.0);
            }
            let at = values.len() - 1;
            masses[at] += mass[point];
            totals[at] += total[point];
        }
        let top = self.settings.algorithm == Algorithm::Peer0;
        let ecdf = Ecdf::new(values, &masses, top);
        let points: Vec<Point> = ecdf
            .knots()
            .1
            .iter()
            .zip(masses.iter().zip(&totals))
            .map(|(&x, (&weight, &total))| Point { x, weight, total })
            .collect();
        let curve = self.curve(&points);
        Model::Ranked { index, ecdf, curve }
    }

    /// Weight, and weight times label, at each point of the frame.
    fn sums(&self, part: &TrainingRows, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut mass = vec![0.0; self.frame.len()];
        let mut total = vec![0.0; self.frame.len()];
        for ((&point, &label), &weight) in part.points.iter().zip(&part.labels).zip(weights) {
            mass[point as usize] += weight;
            total[point as usize] += weight * label;
        }
        (mass, total)
    }

    fn curve(&self, points: &[Point]) -> isotonic::Curve {
        match self.settings.algorithm {
            Algorithm::Peer0 | Algorithm::Peer1 => isotonic::curve(points, ClipBounds::UNIT),
            Algorithm::Centroid1 => isotonic::centroid_curve(points),
        }
    }

    /// The automatic choice: two-stage if its out-of-fold error is lower by more than one standard error, or lower
    /// in at least two of the thirds of the rows in order of score.
    fn choose(
        &self,
        monotone: &[f64],
        two_stage: &[f64],
        weights: Option<&[f64]>,
    ) -> CalibratorChoice {
        let rows = self.labelled.len();
        let squared = |predicted: &[f64]| -> Vec<f64> {
            let errors = self.labelled.labels.iter().zip(predicted);
            errors
                .map(|(label, fit)| (label - fit) * (label - fit))
                .collect()
        };
        let (first, second) = (squared(monotone), squared(two_stage));
        let rmse = |errors: &[f64], rows: &mut dyn Iterator<Item = usize>| {
            let (mut total, mut mass) = (0.0, 0.0);
            for row in rows {
                let weight = weights.map_or(1.0, |weights| weights[row]);
                total += weight * errors[row];
                mass += weight;
            }
            (total / mass).sqrt()
        };
        let third = rows / 3;
        let thirds = [
            &self.by_score[..third],
            &self.by_score[third..2 * third],
            &self.by_score[2 * third..],
        ];
        let better = thirds
            .iter()
            .filter(|rows| {
                let of = |errors: &[f64]| rmse(errors, &mut rows.iter().map(|&row| row as usize));
                of(&second) < of(&first)
            })
            .count();
        let rmse_first = rmse(&first, &mut (0..rows));
        let rmse_second = rmse(&second, &mut (0..rows));
        let se = mean_se(&first, weights) / (2.0 * rmse_first.max(1e-12));
        if rmse_second < rmse_first - se || better >= 2 {
            CalibratorChoice::TwoStage
        } else {
            CalibratorChoice::Monotone
        }
    }

    fn quality(&self, full: &[f64], out_of_fold: &[f64], weights: Option<&[f64]>) -> Quality {
        let labels = &self.labelled.labels;
        let average = |value: &dyn Fn(usize) -> f64| {
            let (mut total, mut mass) = (0.0, 0.0);
            for row in 0..labels.len() {
                let weight = weights.map_or(1.0, |weights| weights[row]);
                total += weight * value(row);
                mass += weight;
            }
            total / mass
        };
        let rmse = |fit: &[f64]| {
            average(&|row| (fit[row] - labels[row]) * (fit[row] - labels[row])).sqrt()
        };
        let within = |fit: &[f64]| average(&|row| f64::from((fit[row] - labels[row]).abs() <= 0.1));
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let points = &self.labelled.points;
        Quality {
            rmse: rmse(full),
            oof_rmse: rmse(out_of_fold),
            within_tenth: within(full),
            oof_within_tenth: within(out_of_fold),
            score_range: range(&mut points.iter().map(|&point| self.frame.score(point as usize))),
            reward_range: range(&mut full.iter().copied()),
        }
    }
}

impl TrainingRows {
    /// The rows outside `fold`; all rows for the part after the last fold.
    fn new(frame: &Frame, labelled: &LabelledRows, fold: usize, mode: Mode) -> Self {
        let full = fold == labelled.fold_count;
        let rows: Vec<u32> = (0_u32..)
            .zip(&labelled.folds)
            .filter(|(_, of)| **of != fold)
            .map(|(row, _)| row)
            .collect();
        let points: Vec<u32> = rows
            .iter()
            .map(|&row| labelled.points[row as usize])
            .collect();
        let labels = rows
            .iter()
            .map(|&row| labelled.labels[row as usize])
            .collect();
        let mut held_out: Vec<u32> = (0..labelled.len())
            .filter(|&row| labelled.folds[row] == fold)
            .map(|row| labelled.points[row])
            .collect();
        held_out.sort_unstable();
        held_out.dedup();
        let fits_index = mode != Mode::Monotone && rows.len() >= INDEX_ROWS_MIN;
        let index = fits_index.then(|| {
            let mut needed = vec![full; frame.len()];
            for &point in points.iter().chain(&held_out) {
                needed[point as usize] = true;
            }
            IndexDesign::new(frame, &points, rows.len(), &needed)
        });
        Self {
            rows,
            points,
            labels,
            held_out,
            index,
        }
    }
}

impl IndexDesign {
    fn new(frame: &Frame, training: &[u32], rows: usize, needed: &[bool]) -> Self {
        let base = spline::base_knots(rows);
        let width = frame.covariates() + 1;
        let splines: Vec<Spline> = (0..width)
            .map(|column| {
                let values = training
                    .iter()
                    .map(|&point| frame.point(point as usize)[column]);
                let (low, high) = values
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                        (low.min(value), high.max(value))
                    });
                Spline::new(low, high, base)
            })
            .collect();
        let basis = needed
            .iter()
            .enumerate()
            .map(|(point, needed)| {
                if *needed {
                    columns(&splines, frame.point(point))
                } else {
                    Vec::new()
                }
            })
            .collect();
        Self { splines, basis }
    }
}

/// Nonzero spline columns of a point, in order.
fn columns(splines: &[Spline], row: &[f64]) -> Vec<(usize, f64)> {
    let mut columns = Vec::with_capacity(4 * splines.len());
    let mut offset = 0;
    for (spline, &x) in splines.iter().zip(row) {
        let local = spline.at(x);
        for (place, &value) in local.values.iter().enumerate() {
            if value > 0.0 {
                columns.push((offset + local.first + place, value));
            }
        }
        offset += spline.columns();
    }
    columns
}

/// The sum of columns times coefficients, in order of the columns.
fn along(columns: &[(usize, f64)], coefficients: &[f64]) -> f64 {
    columns.iter().fold(0.0, |total, &(column, value)| {
        total + value * coefficients[column]
    })
}

fn fit_index(design: &IndexDesign, part: &TrainingRows, weights: &[f64]) -> Index {
    let fitted = ridge::fit(&ridge::DesignRows {
        distinct: &design.basis,
        of_row: &part.points,
        label: &part.labels,
        weight: weights,
        columns: design.splines.iter().map(Spline::columns).sum(),
    });
    Index {
        splines: design.splines.clone(),
        coefficients: fitted.coefficients,
        intercept: fitted.intercept,
        penalty: fitted.penalty,
    }
}

/// Standard error of a mean: sd (ddof 1) / sqrt n; weighted, the root of the weighted variance over the effective n.
fn mean_se(values: &[f64], weights: Option<&[f64]>) -> f64 {
    let rows = values.len() as f64;
    let Some(weights) = weights else {
        let mean = math::mean(values);
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        return (squares / (rows - 1.0).max(1.0)).sqrt() / rows.sqrt();
    };
    let mass = math::sum(weights);
    let mean = math::dot(values, weights) / mass;
    let (mut variance, mut squares) = (0.0, 0.0);
    for (value, weight) in values.iter().zip(weights) {
        let share = weight / mass;
        variance += share * (value - mean) * (value - mean);
        squares += share * share;
    }
    (variance / (1.0 / squares).max(1.0)).sqrt()
}
