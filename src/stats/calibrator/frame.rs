//! Rows as references to few distinct points: judge scores are heavily tied.

use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;

/// The distinct combinations of score and covariates among some rows, in lexicographic order.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Points by rows of `width` values, the score first.
    points: Vec<f64>,
    width: usize,
    of_row: Vec<u32>,
}

impl Frame {
    /// Collects the distinct points of columns, the score's first.
    ///
    /// # Errors
    /// [`SampleError`] for columns that are not finite, aligned and non-empty.
    pub fn new(columns: &[&[f64]]) -> Result<Self, SampleError> {
        let Some((score, covariates)) = columns.split_first() else {
            return Err(SampleError::Empty { column: "scores" });
        };
        let rows = Values::new("scores", score)?.len();
        for covariate in covariates {
            Values::aligned("covariates", covariate, rows)?;
        }
        let mut order: Vec<u32> = (0..rows)
            .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect();
        let value = |row: u32, column: &[f64]| column[row as usize] + 0.0;
        let compare = |a: u32, b: u32| {
            columns
                .iter()
                .map(|column| value(a, column).total_cmp(&value(b, column)))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        order.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
        let (mut points, mut of_row) = (Vec::new(), vec![0; rows]);
        let mut count = 0_u32;
        for (at, &row) in order.iter().enumerate() {
            if at == 0 || compare(order[at - 1], row).is_ne() {
                points.extend(columns.iter().map(|column| value(row, column)));
                count += 1;
            }
            of_row[row as usize] = count - 1;
        }
        Ok(Self {
            points,
            width: columns.len(),
            of_row,
        })
    }

    /// Points.
    pub fn len(&self) -> usize {
        self.points.len() / self.width
    }

    /// Never: a frame has a point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The point of each row.
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// Covariates beside the score.
    pub fn covariates(&self) -> usize {
        self.width - 1
    }

    /// Score and covariates of a point.
    pub fn point(&self, point: usize) -> &[f64] {
        &self.points[point * self.width..(point + 1) * self.width]
    }

    /// Score of a point.
    pub fn score(&self, point: usize) -> f64 {
        self.points[point * self.width]
    }
}

/// The labelled rows that a calibrator is fitted on.
#[derive(Clone, Debug)]
pub struct LabelledRows {
    /// The point of each row in the frame.
    pub(crate) points: Vec<u32>,
    /// Its label, in [0, 1].
    pub(crate) labels: Vec<f64>,
    /// Its fold.
    pub(crate) folds: Vec<usize>,
    /// Folds in all.
    pub(crate) fold_count: usize,
}

impl LabelledRows {
    /// Checks the columns: labels in [0, 1], at least two folds, none empty.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn new(
        points: Vec<u32>,
        labels: Vec<f64>,
        folds: Vec<usize>,
        fold_count: usize,
    ) -> Result<Self, SampleError> {
        let rows = Values::new("labels", &labels)?.len();
        align("points", points.len(), rows)?;
        align("folds", folds.len(), rows)?;
        let outside = |label: &f64| !(0.0..=1.0).contains(label);
        if let Some(row) = labels.iter().position(outside) {
            return Err(SampleError::OutOfRange {
                column: "labels",
                row,
                low: 0,
                high: 1,
            });
        }
        let mut sizes = vec![0_usize; fold_count];
        for &fold in &folds {
            if let Some(size) = sizes.get_mut(fold) {
                *size += 1;
            }
        }
        if fold_count < 2 || sizes.contains(&0) || sizes.iter().sum::<usize>() != rows {
            return Err(SampleError::Parameter {
                name: "folds",
                expected: "at least two folds, numbered from 0, none of them empty",
            });
        }
        Ok(Self {
            points,
            labels,
            folds,
            fold_count,
        })
    }

    /// Labelled rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Never: there is a labelled row.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}
