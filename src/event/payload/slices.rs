//! The residual audit of an iteration, and the classification that all its gates cite.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use serde::Deserialize;
use serde::Serialize;

use crate::id::FamilyId;
use crate::id::IterationId;
use crate::id::SliceId;
use crate::id::Text;
use crate::payload::card::SliceClass;
use crate::payload::predicate::RowsRead;

/// A slice mean after partial pooling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledMean {
    /// High end of the 95 % interval.
    pub high: Finite,
    /// Low end of it.
    pub low: Finite,
    /// Shrunk mean.
    pub mean: Finite,
    /// Standard error.
    pub standard_error: Finite,
    /// Weight of the common mean.
    pub weight: Finite,
}

/// A slice read by itself, with at least 40 labelled rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RawMean {
    /// Mean residual.
    pub mean: Finite,
    /// Two-sided p; absent for one cluster or without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// p adjusted within the family.
    pub p_adjusted: Probability,
    /// Whether it is rejected.
    pub rejected: bool,
    /// Cluster-robust standard error; absent for one cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Finite>,
}

/// One slice of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedSlice {
    /// Clusters with a labelled row.
    pub clusters: Count,
    /// Share of all logs.
    pub exposure: Probability,
    /// Mean squared residual; absent without labelled rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mse: Option<Finite>,
    /// Partially pooled; absent without labelled rows or spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooled: Option<PooledMean>,
    /// By itself; absent below 40 rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawMean>,
    /// Labelled rows.
    pub rows: Count,
    /// The slice; the last of a family is `other`.
    pub slice: SliceId,
    /// Stakes.
    pub stakes: Probability,
}

/// One family of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedFamily {
    /// Variance between slices; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Finite>,
    /// The family.
    pub family: FamilyId,
    /// Mean of the slices' distribution; absent without spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<Finite>,
    /// Its slices.
    pub slices: Vec<AuditedSlice>,
}

/// Residuals of the judge in force were audited on dev, slice by slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidualsAudited {
    /// Algorithm with its version.
    pub algorithm: Text,
    /// The program that computed it.
    pub build: Text,
    /// Digest of the calibrator.
    pub calibrator: Digest,
    /// Families in order of registration.
    pub families: Vec<AuditedFamily>,
    /// What was read.
    pub inputs: RowsRead,
    /// The iteration.
    pub iteration: IterationId,
}

/// A classified slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassifiedSlice {
    /// Its class.
    pub class: SliceClass,
    /// Share of all logs.
    pub exposure: Probability,
    /// Its family.
    pub family: FamilyId,
    /// Whether it must not regress.
    pub must_not_regress: bool,
    /// The slice.
    pub slice: SliceId,
    /// Stakes.
    pub stakes: Probability,
}

/// Slices are classified, once, and frozen for every later gate of the iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlicesClassified {
    /// Digest of `slices`.
    pub classification_hash: Digest,
    /// The iteration.
    pub iteration: IterationId,
    /// Families and slices in order.
    pub slices: Vec<ClassifiedSlice>,
}
