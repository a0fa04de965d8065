//! The rows that are evaluated: policies, prompts, points and labels.

use std::ops::Range;

use crate::direct::strata::Strata;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::align;

/// How the labels of evaluation rows came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelDesign {
    /// Chosen independently of score and label: residuals of labelled rows stand for all.
    Representative,
    /// Chosen with known probabilities.
    KnownPropensity,
    /// Chosen with known probabilities that many rows share.
    Stratified,
    /// Targeted in an unknown way: no residual correction is possible.
    TargetedUnknown,
}

/// Evaluation rows, those of one policy after those of another.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) points: Vec<u32>,
    pub(crate) policies: Vec<Range<usize>>,
    pub(crate) prompts: Clusters,
    pub(crate) labels: Vec<Option<f64>>,
    pub(crate) fit_rows: Vec<Option<u32>>,
    pub(crate) propensities: Option<Vec<f64>>,
    pub(crate) strata: Option<Strata>,
}

/// One evaluation row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its point in the calibrator's frame.
    pub point: u32,
    /// Its prompt, numbered over all policies.
    pub prompt: u32,
    /// Its label in [0, 1], if it has one.
    pub label: Option<f64>,
    /// Which labelled row of the calibrator it is, if it is one.
    pub fit_row: Option<u32>,
}

impl Table {
    /// Collects the rows of each policy. `prompts` is the count of prompt numbers.
    ///
    /// # Errors
    /// [`SampleError`] for a policy without rows, a label outside [0, 1], or a prompt number of `prompts` or more.
    pub fn new(policies: &[Vec<Row>], prompts: usize) -> Result<Self, SampleError> {
        let mut ranges = Vec::with_capacity(policies.len());
        let total: usize = policies.iter().map(Vec::len).sum();
        let mut points = Vec::with_capacity(total);
        let mut labels = Vec::with_capacity(total);
        let mut fit_rows = Vec::with_capacity(total);
        let mut of_row = Vec::with_capacity(total);
        for rows in policies {
            if rows.is_empty() {
                return Err(SampleError::Empty { column: "policy" });
            }
            ranges.push(points.len()..points.len() + rows.len());
            for row in rows {
                let inside = row.label.is_none_or(|label| (0.0..=1.0).contains(&label));
                if !inside {
                    return Err(SampleError::OutOfRange {
                        column: "labels",
                        row: points.len(),
                        low: 0,
                        high: 1,
                    });
                }
                points.push(row.point);
                labels.push(row.label);
                fit_rows.push(row.fit_row);
                of_row.push(row.prompt);
            }
        }
        Ok(Self {
            points,
            policies: ranges,
            prompts: Clusters::numbered(of_row, prompts)?,
            labels,
            fit_rows,
            propensities: None,
            strata: None,
        })
    }

    /// With the probability that each row was labelled, in (0, 1] on labelled rows.
    ///
    /// # Errors
    /// [`SampleError`] for another count of rows, or a labelled row without such a probability.
    pub fn with_propensities(mut self, propensities: Vec<f64>) -> Result<Self, SampleError> {
        align("propensities", propensities.len(), self.points.len())?;
        let wrong = |(label, propensity): (&Option<f64>, &f64)| {
            label.is_some() && !(*propensity > 0.0 && *propensity <= 1.0)
        };
        if self.labels.iter().zip(&propensities).any(wrong) {
            return Err(SampleError::Parameter {
                name: "propensities",
                expected: "a probability above 0 for each labelled row",
            });
        }
        self.propensities = Some(propensities);
        Ok(self)
    }

    /// With the stratum of each row: rows of one number had one probability of being labelled.
    ///
    /// # Errors
    /// [`SampleError`] for another count of rows.
    pub fn with_strata(mut self, of_row: Vec<u32>) -> Result<Self, SampleError> {
        align("strata", of_row.len(), self.points.len())?;
        self.strata = Some(Strata::new(&self, of_row));
        Ok(self)
    }

    /// Policies.
    pub fn policies(&self) -> usize {
        self.policies.len()
    }

    /// Rows of a policy.
    pub fn rows(&self, policy: usize) -> usize {
        self.policies[policy].len()
    }

    /// Prompt numbers over all policies.
    pub fn prompts(&self) -> usize {
        self.prompts.count()
    }

    /// The label of a row, on [0, 1].
    pub fn label(&self, row: usize) -> Option<f64> {
        self.labels[row]
    }

    /// The prompts of one policy's rows.
    pub(crate) fn prompts_of(&self, policy: usize) -> &[u32] {
        &self.prompts.of_row()[self.policies[policy].clone()]
    }
}
