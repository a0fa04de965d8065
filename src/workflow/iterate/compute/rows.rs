//! The rows of an iteration, checked once.

use clover_event::id::EnvironmentId;
use clover_event::id::FamilyId;
use clover_event::id::PolicyId;
use clover_event::id::SliceId;
use clover_event::payload::intake::SplitPart;
use clover_ground::digest::Digest;
use clover_num::math;
use clover_stats::residuals::Slices;
use clover_stats::sample::Clusters;
use clover_stats::sample::SampleError;
use clover_stats::sample::Values;
use clover_stats::sample::align;

/// Scores of one set of rows under one rubric, one entry per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RubricScores {
    /// Judge score in [0, 1].
    pub scores: Vec<f64>,
    /// Whether the rubric abstains.
    pub abstains: Vec<bool>,
}

impl RubricScores {
    /// Scores of a rubric that abstains nowhere.
    pub fn of(scores: Vec<f64>) -> Self {
        let abstains = vec![false; scores.len()];
        Self { scores, abstains }
    }
}

/// A registered partition of all rows into slices; what lies in no cell is `other`.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceFamily {
    /// Its name.
    pub id: FamilyId,
    /// Its cells in order.
    pub slices: Vec<SliceId>,
    /// Stakes of each cell in [0, 1].
    pub stakes: Vec<f64>,
    /// Whether each cell must not regress.
    pub must_not_regress: Vec<bool>,
    /// The cell of each row.
    pub of_row: Vec<Option<usize>>,
}

/// A registered partition of rows into environments.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentFamily {
    /// Its name.
    pub id: FamilyId,
    /// Its environments in order.
    pub environments: Vec<EnvironmentId>,
    /// Whether each must pass.
    pub required: Vec<bool>,
    /// The environment of each row.
    pub of_row: Vec<Option<usize>>,
}

/// A frozen set of stored answers of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// The policy.
    pub policy: PolicyId,
    /// Its rows under the rubric in force.
    pub scored: RubricScores,
    /// Covariates of the same rows, one column each.
    pub covariates: Vec<Vec<f64>>,
}

/// A column of the evidence record, for cards and for tests of missing evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Its name in the record.
    pub name: String,
    /// Its value in each row; flags are 0 and 1.
    pub values: Vec<f64>,
}

/// All rows of an iteration, column by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IterationRows {
    /// Name of each row.
    pub rows: Vec<String>,
    /// Its cluster: the prompt.
    pub clusters: Vec<String>,
    /// Its part; `None` is a log row in no part.
    pub parts: Vec<Option<SplitPart>>,
    /// Its scores under the rubric in force.
    pub scored: RubricScores,
    /// Covariates of the calibrator, one column each.
    pub covariates: Vec<Vec<f64>>,
    /// Its label in [0, 1], if it is known.
    pub labels: Vec<Option<f64>>,
    /// Probability with which it was chosen for a label; `None` where no design says.
    pub inclusion: Vec<Option<f64>>,
    /// Evidence.
    pub features: Vec<Feature>,
    /// Slice families.
    pub slices: Vec<SliceFamily>,
    /// Environment families.
    pub environments: Vec<EnvironmentFamily>,
    /// Anchor sets.
    pub anchors: Vec<Anchor>,
}

/// A candidate as the gates see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredRubric {
    /// Hash of the patch.
    pub patch: Digest,
    /// Code length.
    pub kappa: u64,
    /// The same rows under the patched rubric.
    pub scored: RubricScores,
    /// The same anchors under it.
    pub anchors: Vec<RubricScores>,
}

/// Rows that were checked, with the sets of them that the steps read.
#[derive(Clone, Debug)]
pub struct Table {
    data: IterationRows,
    clusters: Clusters,
    logs: Vec<usize>,
    confirm_logs: Vec<usize>,
}

fn scored(column: &'static str, scored: &RubricScores, rows: usize) -> Result<(), SampleError> {
    let scores = Values::aligned(column, &scored.scores, rows)?;
    in_unit(column, scores.as_slice().iter().copied())?;
    align("abstains", scored.abstains.len(), rows)
}

/// `Err` unless every value lies in [0, 1]; NaN does not.
fn in_unit(column: &'static str, values: impl Iterator<Item = f64>) -> Result<(), SampleError> {
    for (row, value) in values.enumerate() {
        if !(0.0..=1.0).contains(&value) {
            return Err(SampleError::OutOfRange {
                column,
                row,
                low: 0,
                high: 1,
            });
        }
    }
    Ok(())
}

impl Table {
    /// Checks rows: aligned columns, scores, labels and stakes in [0, 1], slices and environments that exist, and no
    /// cluster in two parts.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn new(data: IterationRows) -> Result<Self, SampleError> {
        let rows = data.rows.len();
        scored("scores", &data.scored, rows)?;
        align("parts", data.parts.len(), rows)?;
        align("labels", data.labels.len(), rows)?;
        align("inclusion", data.inclusion.len(), rows)?;
        in_unit(
            "labels",
            data.labels.iter().map(|label| label.unwrap_or(0.0)),
        )?;
        for covariate in &data.covariates {
            Values::aligned("covariates", covariate, rows)?;
        }
        for feature in &data.features {
            Values::aligned("features", &feature.values, rows)?;
        }
        families(&data, rows)?;
        for anchor in &data.anchors {
            let of = anchor.scored.scores.len();
            scored("anchors", &anchor.scored, of)?;
            align(
                "anchor covariates",
                anchor.covariates.len(),
                data.covariates.len(),
            )?;
            for covariate in &anchor.covariates {
                Values::aligned("anchor covariates", covariate, of)?;
            }
        }
        align("clusters", data.clusters.len(), rows)?;
        let clusters = Clusters::of(data.clusters.iter())?;
        let mut part_of = vec![None; clusters.count()];
        for (&cluster, part) in clusters.of_row().iter().zip(&data.parts) {
            let known = part_of[cluster as usize].get_or_insert(*part);
            if known != part {
                return Err(SampleError::Parameter {
                    name: "parts",
                    expected: "every cluster in one part",
                });
            }
        }
        let confirm = |row: &usize| data.parts[*row] == Some(SplitPart::Confirm);
        let logs = (0..rows).filter(|row| !confirm(row)).collect();
        let confirm_logs = (0..rows).filter(confirm).collect();
        Ok(Self {
            data,
            clusters,
            logs,
            confirm_logs,
        })
    }

    /// The columns.
    pub fn data(&self) -> &IterationRows {
        &self.data
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.data.rows.len()
    }

    /// Never: there is a row.
    pub fn is_empty(&self) -> bool {
        self.data.rows.is_empty()
    }

    /// Rows before the confirm window: logs, fit and dev.
    pub fn logs(&self) -> &[usize] {
        &self.logs
    }

    /// Rows of the confirm window.
    pub fn confirm_logs(&self) -> &[usize] {
        &self.confirm_logs
    }

    /// Labelled rows of a part.
    pub fn labelled(&self, part: SplitPart) -> Vec<usize> {
        (0..self.len())
            .filter(|&row| self.data.parts[row] == Some(part) && self.data.labels[row].is_some())
            .collect()
    }

    /// Labels of rows that have one.
    pub fn labels(&self, rows: &[usize]) -> Vec<f64> {
        rows.iter()
            .filter_map(|&row| self.data.labels[row])
            .collect()
    }

    /// Clusters of some rows.
    ///
    /// # Errors
    /// [`SampleError::Empty`].
    pub fn clusters(&self, rows: &[usize]) -> Result<Clusters, SampleError> {
        self.clusters.select(rows)
    }

    /// Covariates of a row.
    pub fn covariates(&self, row: usize) -> Vec<f64> {
        self.data
            .covariates
            .iter()
            .map(|column| column[row])
            .collect()
    }

    /// Checks that a candidate is about these rows.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn check(&self, candidate: &ScoredRubric) -> Result<(), SampleError> {
        scored("patched scores", &candidate.scored, self.len())?;
        align(
            "patched anchors",
            candidate.anchors.len(),
            self.data.anchors.len(),
        )?;
        for (patched, anchor) in candidate.anchors.iter().zip(&self.data.anchors) {
            scored("patched anchors", patched, anchor.scored.scores.len())?;
        }
        Ok(())
    }
}

fn families(data: &IterationRows, rows: usize) -> Result<(), SampleError> {
    for family in &data.slices {
        align("slices", family.of_row.len(), rows)?;
        Slices::new(&family.of_row, family.slices.len())?;
        align("stakes", family.stakes.len(), family.slices.len())?;
        align(
            "must_not_regress",
            family.must_not_regress.len(),
            family.slices.len(),
        )?;
        in_unit("stakes", family.stakes.iter().copied())?;
    }
    for family in &data.environments {
        align("environments", family.of_row.len(), rows)?;
        align("required", family.required.len(), family.environments.len())?;
        let beyond = |of: &Option<usize>| of.is_some_and(|of| of >= family.environments.len());
        if family.of_row.iter().any(beyond) {
            return Err(SampleError::Parameter {
                name: "environments",
                expected: "numbers of registered environments",
            });
        }
    }
    Ok(())
}

/// A column at some rows.
pub fn pick(column: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&row| column[row]).collect()
}

/// Mean of a column at some rows; NaN without rows.
pub fn mean_at(column: &[f64], rows: &[usize]) -> f64 {
    math::mean(&pick(column, rows))
}
