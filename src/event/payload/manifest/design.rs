//! What an iteration runs on: rubric, slices with their stakes, environments, anchors, seed, account of peeks.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::AccountId;
use crate::id::AnchorSetId;
use crate::id::EnvironmentId;
use crate::id::FamilyId;
use crate::id::FieldId;
use crate::id::JudgeId;
use crate::id::SliceId;
use crate::id::Text;
use crate::payload::environment::EnvironmentScope;
use crate::payload::environment::TimeWindow;

/// How scores become calibrated rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CalibratorMode {
    /// What cross-validation picks for the baseline binds the candidates.
    Auto,
    /// Isotonic on the score.
    Monotone,
    /// Isotonic on an index of score and covariates.
    TwoStage,
}

/// What a slice that must not regress has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RegressionGuard {
    /// No worse, with an upper bound of .0005.
    Guard,
    /// Significantly better, or untouched.
    Literal,
}

/// One condition on a field of the rows; each bound that stands has to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceCondition {
    /// The value is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_of: Option<Vec<Text>>,
    /// The number is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least_micro: Option<Micro>,
    /// The number is below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_micro: Option<Micro>,
    /// The field.
    pub field: FieldId,
}

/// A cell of a partition of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// All of these hold for its rows.
    pub conditions: Vec<SliceCondition>,
    /// Whether any harm to it is too much.
    pub must_not_regress: bool,
    /// Its name.
    pub slice: SliceId,
    /// What is at stake in it, 0 to 1.
    pub stakes_micro: Micro,
}

/// A partition of the rows into at most twelve cells; what is in none is `other`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceFamily {
    /// Its cells.
    pub cells: Vec<Slice>,
    /// Its name.
    pub family: FamilyId,
}

/// One environment in which the judge has to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationEnvironment {
    /// Its name.
    pub environment: EnvironmentId,
    /// What kind it is: policy, time window, domain.
    pub family: FamilyId,
    /// Whether a patch needs it to pass.
    pub required: bool,
    /// The span of time in which its rows were sampled; absent where the field of its family decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeWindow>,
}

impl IterationEnvironment {
    /// Which rows it is.
    pub fn scope(&self) -> EnvironmentScope {
        EnvironmentScope {
            environment: self.environment.clone(),
            family: self.family.clone(),
            window: self.window,
        }
    }
}

/// What an iteration runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationDesign {
    /// Stored rows that hold the scale; without them gate P5 is inconclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<AnchorSetId>,
    /// How scores become calibrated rewards.
    pub calibrator: CalibratorMode,
    /// Covariates of the calibrator, such as `log_tokens`; never a slice.
    pub covariates: Vec<FieldId>,
    /// Most calls of the dev objective.
    pub dev_calls_max: Count,
    /// Where the judge has to hold.
    pub environments: Vec<IterationEnvironment>,
    /// Paths of the rubric that no patch of the iteration may touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_paths: Option<Vec<Text>>,
    /// Whose scores it is about; absent, the only judge of the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeId>,
    /// What a slice that must not regress has to show.
    pub must_not_regress: RegressionGuard,
    /// Whether the plan claims no environment: P6 is then not checked, and stops nobody. Only without environments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_environment_claimed: Option<bool>,
    /// The account that pays for accepted patches; absent, the account of patches that was opened first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_account: Option<AccountId>,
    /// The account of confirm peeks.
    pub peek_account: AccountId,
    /// Hash of the rubric that it starts from.
    pub rubric_hash: Digest,
    /// Seed of folds, splits, bootstraps and searches.
    pub seed: Digest,
    /// Partitions of the rows, at most twelve.
    pub slices: Vec<SliceFamily>,
    /// Topics that the extractor knows, ascending.
    pub topics: Vec<Text>,
}

impl IterationDesign {
    /// Whether it says that it claims no environment.
    pub fn claims_no_environment(&self) -> bool {
        self.no_environment_claimed == Some(true)
    }
}
