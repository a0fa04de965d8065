//! A fitted model: a pure function of score and covariates, made of knots that can be kept and compared.

use crate::isotonic::Curve;
use crate::sample::SampleError;
use crate::spline::Local;
use crate::spline::Spline;

/// Mid-rank empirical distribution function of weighted training values.
///
/// F(z) is the mid-rank of the largest training value that is at most z, 0 below all of them: a step function.
/// Source: `cje-eval` 0.9.3 two-stage calibrator.
#[derive(Clone, Debug, PartialEq)]
pub struct Ecdf {
    values: Vec<f64>,
    ranks: Vec<f64>,
}

impl Ecdf {
    /// From distinct values in increasing order with the weight of each: rank = (weight up to and including it,
    /// less half its own) / all weight. With `top`, less one half: the rank of the last of the tie.
    pub(crate) fn new(values: Vec<f64>, weights: &[f64], top: bool) -> Self {
        let mut below = 0.0;
        let mut ranks: Vec<f64> = weights
            .iter()
            .map(|weight| {
                below += weight;
                below - if top { 0.5 } else { 0.5 * weight }
            })
            .collect();
        for rank in &mut ranks {
            *rank /= below;
        }
        Self { values, ranks }
    }

    /// The mid-rank of z.
    pub fn at(&self, z: f64) -> f64 {
        match self.values.partition_point(|&value| value <= z) {
            0 => 0.0,
            above => self.ranks[above - 1],
        }
    }

    /// Training values in increasing order, and their mid-ranks.
    pub fn knots(&self) -> (&[f64], &[f64]) {
        (&self.values, &self.ranks)
    }
}

/// The smooth index g(score, covariates): a block of spline columns each, and a ridge regression on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub(crate) splines: Vec<Spline>,
    pub(crate) coefficients: Vec<f64>,
    pub(crate) intercept: f64,
    pub(crate) penalty: f64,
}

impl Index {
    /// One spline per column, the score's first.
    pub fn splines(&self) -> &[Spline] {
        &self.splines
    }

    /// One coefficient per spline column.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Intercept, in label units.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// Ridge penalty that leave-one-out error chose.
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// The index at a point. Columns are added in order and the intercept last, so that training and prediction
    /// agree to the last bit and no rank is crossed by rounding.
    pub(crate) fn at(&self, score: f64, covariates: &[f64]) -> f64 {
        let mut total = 0.0;
        let mut offset = 0;
        for (spline, x) in self
            .splines
            .iter()
            .zip(std::iter::once(&score).chain(covariates))
        {
            total = add(total, spline.at(*x), &self.coefficients[offset..]);
            offset += spline.columns();
        }
        total + self.intercept
    }
}

/// Adds the products of one block to a running sum, in order of the columns.
fn add(mut total: f64, local: Local, coefficients: &[f64]) -> f64 {
    for (value, coefficient) in local.values.iter().zip(&coefficients[local.first..]) {
        if *value > 0.0 {
            total += value * coefficient;
        }
    }
    total
}

/// What is kept of an [`Index`].
#[derive(Clone, Debug, PartialEq)]
pub struct IndexParts {
    /// Knots of each spline, the score's first.
    pub knots: Vec<Vec<f64>>,
    /// One coefficient per spline column.
    pub coefficients: Vec<f64>,
    /// Intercept.
    pub intercept: f64,
    /// Ridge penalty.
    pub penalty: f64,
}

/// A fitted calibration model.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Isotonic on the score.
    Monotone(Curve),
    /// Isotonic on the mid-rank of an index; without an index, of the score itself.
    Ranked {
        /// The smooth index; `None` where too few rows could fit one.
        index: Option<Index>,
        /// Mid-ranks of the training rows.
        ecdf: Ecdf,
        /// Isotonic on the rank.
        curve: Curve,
    },
}

impl Model {
    /// The calibrated reward in [0, 1].
    ///
    /// # Panics
    /// If there are fewer covariates than the index uses.
    pub fn predict(&self, score: f64, covariates: &[f64]) -> f64 {
        let rank = self.rank(score, covariates);
        let (Self::Monotone(curve) | Self::Ranked { curve, .. }) = self;
        curve.at(rank).clamp(0.0, 1.0)
    }

    /// Where the isotonic step reads a row: the score, or the rank of its index.
    ///
    /// # Panics
    /// If there are fewer covariates than the index uses.
    pub fn rank(&self, score: f64, covariates: &[f64]) -> f64 {
        match self {
            Self::Monotone(_) => score,
            Self::Ranked { index, ecdf, .. } => {
                let value = match index {
                    Some(index) => {
                        assert!(
                            covariates.len() + 1 >= index.splines.len(),
                            "BUG: a covariate is missing"
                        );
                        index.at(score, covariates)
                    }
                    None => score,
                };
                ecdf.at(value)
            }
        }
    }

    /// Rebuilds a ranked model from what was kept of it.
    ///
    /// # Errors
    /// [`SampleError`] where lengths or orders do not fit together.
    pub fn from_parts(
        index: Option<IndexParts>,
        ecdf: (Vec<f64>, Vec<f64>),
        curve: Curve,
    ) -> Result<Self, SampleError> {
        let wrong = |expected| SampleError::Parameter {
            name: "calibrator",
            expected,
        };
        let index = match index {
            None => None,
            Some(parts) => {
                let IndexParts {
                    knots,
                    coefficients,
                    intercept,
                    penalty,
                } = parts;
                let blocks = knots.len().max(1);
                let columns = coefficients.len() / blocks;
                let splines: Option<Vec<Spline>> = knots
                    .into_iter()
                    .map(|knots| Spline::from_knots(knots, columns))
                    .collect();
                let splines = splines
                    .filter(|splines| splines.len() * columns == coefficients.len())
                    .ok_or_else(|| wrong("as many coefficients as spline columns"))?;
                Some(Index {
                    splines,
                    coefficients,
                    intercept,
                    penalty,
                })
            }
        };
        let (values, ranks) = ecdf;
        let ordered = values.windows(2).all(|pair| pair[0] < pair[1]);
        if values.is_empty() || values.len() != ranks.len() || !ordered {
            return Err(wrong("ranks for strictly increasing values"));
        }
        let ecdf = Ecdf { values, ranks };
        Ok(Self::Ranked { index, ecdf, curve })
    }
}
