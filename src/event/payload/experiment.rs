//! Experiments: what data belongs to, from registration to a recorded end.

use serde::Deserialize;
use serde::Serialize;

use crate::id::JudgeId;
use crate::id::PolicyId;
use crate::id::Text;

/// An experiment begins; the header's `experiment` is its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentRegistered {
    /// Judges that will score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judges: Option<Vec<JudgeId>>,
    /// Policies that will be scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<PolicyId>>,
    /// What it is to find out.
    pub purpose: Text,
    /// Its name for people.
    pub title: Text,
}

/// How an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ExperimentOutcome {
    /// It was given up.
    Aborted,
    /// It ran to its end.
    Completed,
}

/// An experiment ends; nothing more belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentClosed {
    /// How.
    pub outcome: ExperimentOutcome,
    /// Why.
    pub reason: Text,
}
