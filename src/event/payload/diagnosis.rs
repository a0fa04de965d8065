//! What an iteration finds out about labels and scores before any patch.

use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::IterationId;
use crate::id::Text;
use crate::payload::Verdict;
use crate::payload::predicate::RowsRead;

/// One column of labelled rows against all rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnBalance {
    /// What it is.
    pub column: Text,
    /// Weighted standardised mean difference.
    pub smd: Finite,
}

/// How rows came to be labelled was audited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelProcessAudited {
    /// Columns in order.
    pub balance: Vec<ColumnBalance>,
    /// The program that computed it.
    pub build: Text,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// Labelled rows.
    pub labelled: Count,
    /// Labels that no design explains.
    pub orphans: Count,
    /// Whether labels look missing at random.
    pub verdict: Verdict,
}

/// Whether anything but the reward predicts the residual was checked on dev.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrenticeChecked {
    /// The program that computed it.
    pub build: Text,
    /// Rows less fitted columns.
    pub df_rows: Count,
    /// Terms that were tested.
    pub df_terms: Count,
    /// Wald F.
    pub f: Finite,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// P of a larger F.
    pub p: Probability,
    /// The term of the largest standardised coefficient.
    pub top_term: Text,
    /// `fail` below .05.
    pub verdict: Verdict,
}

/// The calibrator causes so much of the variance that labels are what is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationPausedForLabels {
    /// The program that computed it.
    pub build: Text,
    /// Lower bound on the gain in sight.
    pub gain: Finite,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
    /// Labels that would bring the share to .30.
    pub labels_requested: Count,
    /// Share of the variance that the calibrator causes.
    pub share: Probability,
}
