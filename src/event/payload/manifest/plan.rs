//! Plans of the templates that are no gate: transport audits, iterations, prompt descent, workflow search.

use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::EnvironmentId;
use crate::id::FamilyId;
use crate::id::JudgeId;
use crate::id::PatchFamilyId;
use crate::id::Root;
use crate::payload::environment::EnvironmentScope;
use crate::payload::environment::TimeWindow;
use crate::payload::estimate::FamilyCorrection;
use crate::payload::manifest::design::IterationDesign;

/// One environment that is audited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedEnvironment {
    /// Clusters that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Count>,
    /// Clusters that will be labelled.
    pub clusters: Count,
    /// The environment: a policy, the value of a field, or the name of a window.
    pub environment: EnvironmentId,
    /// The field whose value it is, or any name for windows; absent for a policy that is audited by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<FamilyId>,
    /// Whether a claim needs it to pass.
    pub required: bool,
    /// The span of time in which its rows were sampled; only with a family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeWindow>,
}

impl AuditedEnvironment {
    /// Which rows it is, where it is not a policy that is audited by itself.
    pub fn scope(&self) -> Option<EnvironmentScope> {
        Some(EnvironmentScope {
            environment: self.environment.clone(),
            family: self.family.clone()?,
            window: self.window,
        })
    }
}

/// Two judges that are held against the same labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgePair {
    /// One judge.
    pub first: JudgeId,
    /// The other.
    pub second: JudgeId,
}

/// Comparisons of judges, named before the first label for calibration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparePlan {
    /// Pairs of judges, each once; at least one.
    pub pairs: Vec<JudgePair>,
}

/// Audits of a calibrated judge in other environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportPlan {
    /// Error rate of the family of audits.
    pub alpha_micro: Micro,
    /// True mean residual that the power is planned for.
    pub bias_micro: Micro,
    /// Clusters below which nothing passes.
    pub clusters_min: Count,
    /// How a family of environments is corrected; absent for Benjamini-Hochberg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<FamilyCorrection>,
    /// What is audited.
    pub environments: Vec<AuditedEnvironment>,
    /// Audits that share the error rate.
    pub family_size: Count,
    /// Labels of each cluster.
    pub labels_per_cluster: Count,
    /// Mean residual that is still no harm.
    pub margin_micro: Micro,
    /// Probability that all planned audits pass when nothing is wrong.
    pub power_micro: Micro,
    /// Level of each family of environments; absent for 0.10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q_micro: Option<Micro>,
    /// Assumed standard deviation of cluster residuals.
    pub residual_sd_micro: Micro,
}

/// The test of the confirm block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConfirmTest {
    /// Exact, by betting.
    Betting,
    /// Centred paired cluster bootstrap.
    Bootstrap,
    /// Exact, by betting on one cluster after the other, with looks.
    Sequential,
    /// Cluster-robust t test.
    T,
}

impl ConfirmTest {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Betting => "betting",
            Self::Bootstrap => "bootstrap",
            Self::Sequential => "sequential",
            Self::T => "t",
        }
    }
}

/// Looks at the confirm block, and what stops them early; for `confirm_test: sequential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequentialPlan {
    /// Bound on the probability to stop a candidate as harmful that is not worse.
    pub alpha_harm_micro: Micro,
    /// Bound on the probability to stop a candidate as futile that improves by `effect_micro`.
    pub beta_futile_micro: Micro,
    /// Clusters whose labels are shown between two looks.
    pub look_every: Count,
}

/// How the confirm block is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConfirmSeparation {
    /// By the hash of the cluster.
    Hashed,
    /// It was sampled later, after a gap.
    Time,
}

/// Which thresholds bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Profile {
    /// As the paper prints them.
    Literal,
    /// As Clover recommends them.
    Recommended,
}

/// Which distance bounds the blast radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ShiftMetric {
    /// Each of the two.
    Both,
    /// One of the two.
    Either,
    /// Kolmogorov-Smirnov.
    Ks,
    /// Wasserstein.
    W1,
}

/// Parameters of a CLOVER iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationPlan {
    /// Error rate of the confirm tests together.
    pub alpha_micro: Micro,
    /// Rows of the confirm block.
    pub confirm_rows: Count,
    /// How the confirm block is kept apart.
    pub confirm_separation: ConfirmSeparation,
    /// The test of the confirm block.
    pub confirm_test: ConfirmTest,
    /// What it runs on; an iteration opens only under a plan that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<IterationDesign>,
    /// Rows for development.
    pub dev_rows: Count,
    /// Assumed standard deviation of the paired loss difference.
    pub difference_sd_micro: Micro,
    /// Largest mean shift of an anchor set.
    pub drift_max_micro: Micro,
    /// By how much the calibration error may grow.
    pub ece_slack_micro: Micro,
    /// Improvement of the mean squared error that the confirm block is planned for.
    pub effect_micro: Micro,
    /// Improvement that is demanded.
    pub eta_micro: Micro,
    /// Rows for fitting.
    pub fit_rows: Count,
    /// Gap before the confirm block.
    pub gap_seconds: Count,
    /// Assumed standard deviation of the difference in a green slice.
    pub green_sd_micro: Micro,
    /// Green slices.
    pub green_slices: Count,
    /// Most hypotheses sealed: the divisor of alpha.
    pub hypotheses_max: Count,
    /// Largest Kolmogorov-Smirnov distance.
    pub ks_max_micro: Micro,
    /// Families of patches that may be proposed.
    pub patch_families: Vec<PatchFamilyId>,
    /// Power that the sizes are planned for.
    pub power_micro: Micro,
    /// Which thresholds bind.
    pub profile: Profile,
    /// Level of a green slice and of transport.
    pub q_micro: Micro,
    /// Looks at the confirm block; only under `confirm_test: sequential`, which needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<SequentialPlan>,
    /// Which distance bounds the blast radius.
    pub shift_metric: ShiftMetric,
    /// Rows of the smallest green slice in each of dev and confirm.
    pub slice_rows_min: Count,
    /// Tolerance of a green slice.
    pub tau_micro: Micro,
    /// Largest uplift of an attack.
    pub uplift_max_micro: Micro,
    /// Largest Wasserstein distance.
    pub w1_max_micro: Micro,
}

/// Weights of the prompt loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossWeights {
    /// Distance from the labels.
    pub absolute_micro: Micro,
    /// Variance of repeated scores.
    pub instability_micro: Micro,
    /// Answers that cannot be read.
    pub parse_micro: Micro,
    /// Order of high and low items.
    pub rank_micro: Micro,
    /// Contraction of the scale.
    pub spread_micro: Micro,
}

/// Descent on a judge prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SgdPlan {
    /// Items of a batch.
    pub batch: Count,
    /// SHA-256 of the modal lexicon.
    pub lexicon_digest: Digest,
    /// Weights of the loss.
    pub loss: LossWeights,
    /// Largest step size.
    pub lr_max_micro: Micro,
    /// Smallest step size.
    pub lr_min_micro: Micro,
    /// SHA-256 of the first prompt.
    pub prompt_digest: Digest,
    /// Scores of each item.
    pub repeats: Count,
    /// Seed of the batches.
    pub seed: Digest,
    /// Steps.
    pub steps: Count,
    /// Step size from which sections may be added or removed.
    pub structure_lr_micro: Micro,
    /// Merkle root of the test items, read once.
    pub test_root: Root,
    /// Merkle root of the training items.
    pub train_root: Root,
    /// Merkle root of the validation items.
    pub validation_root: Root,
    /// Steps before the largest step size.
    pub warmup: Count,
}

/// What a search may edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EditAxis {
    /// Prompts only.
    Prompt,
    /// Prompts and structure.
    Structure,
}

/// A search over workflows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowPlan {
    /// Candidates kept.
    pub beam: Count,
    /// Most model calls.
    pub calls_max: Count,
    /// SHA-256 of the local context.
    pub context_digest: Digest,
    /// What may be edited.
    pub edits: EditAxis,
    /// SHA-256 of the evaluation program.
    pub evaluation_digest: Digest,
    /// Merkle root of the templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_root: Option<Root>,
    /// SHA-256 of the meta prompt.
    pub meta_digest: Digest,
    /// Whether the outer loop may act on the results.
    pub outer_loop: bool,
    /// Proposals for each candidate kept.
    pub proposals: Count,
    /// Rounds.
    pub rounds: Count,
    /// Seed of the search.
    pub seed: Digest,
    /// SHA-256 of the first workflow.
    pub start_digest: Digest,
    /// Score at which the search stops.
    pub theta_micro: Micro,
}
