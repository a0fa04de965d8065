//! The manifest: everything that a claim rests on, said before anybody looks. Exact integers, typed and closed;
//! `schema/MANIFEST.md` gives the digests.

mod claim;
mod design;
mod plan;
mod terms;
mod test;

use serde::Deserialize;
use serde::Serialize;

pub use claim::Aggregation;
pub use claim::Arm;
pub use claim::ArmRole;
pub use claim::Comparison;
pub use claim::DataBinding;
pub use claim::Estimand;
pub use claim::Exclusion;
pub use claim::Guardrail;
pub use claim::Hypothesis;
pub use claim::HypothesisKind;
pub use claim::LabelPolicy;
pub use claim::Metric;
pub use claim::MetricDirection;
pub use claim::MissingRule;
pub use claim::Noise;
pub use claim::Population;
pub use claim::RepRule;
pub use design::CalibratorMode;
pub use design::IterationDesign;
pub use design::IterationEnvironment;
pub use design::RegressionGuard;
pub use design::Slice;
pub use design::SliceCondition;
pub use design::SliceFamily;
pub use plan::AuditedEnvironment;
pub use plan::ComparePlan;
pub use plan::ConfirmSeparation;
pub use plan::ConfirmTest;
pub use plan::EditAxis;
pub use plan::IterationPlan;
pub use plan::JudgePair;
pub use plan::LossWeights;
pub use plan::Profile;
pub use plan::SequentialPlan;
pub use plan::SgdPlan;
pub use plan::ShiftMetric;
pub use plan::TransportPlan;
pub use plan::WorkflowPlan;
pub use terms::Analysis;
pub use terms::DiagnosticsPlan;
pub use terms::EstimatePlan;
pub use terms::Expiry;
pub use terms::OrderPlan;
pub use terms::RoleBinding;
pub use test::Beacon;
pub use test::Bettor;
pub use test::BettorName;
pub use test::FamilyMethod;
pub use test::Multiplicity;
pub use test::Prediction;
pub use test::Preflight;
pub use test::STRATA_MAX;
pub use test::Side;
pub use test::Test;

use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_num::Micro;

use crate::id::ExperimentId;
use crate::id::ManifestId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::budget::at_least_one;

/// Domain label of a manifest's digest.
pub const MANIFEST_LABEL: &str = "clover/manifest/v1";
/// Domain label of the digest of a null hypothesis.
pub const H0_LABEL: &str = "clover/h0/v1";
/// Domain label of the digest of an iteration's parameters.
pub const PARAMS_LABEL: &str = "clover/iteration/v1";
/// Domain label of the commitment to a plan.
pub const PLAN_LABEL: &str = "clover/plan/v1";

/// What a manifest is for; each template needs its own sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Template {
    /// Two judges on the same labels.
    Compare,
    /// How policies are estimated and compared, and in which order.
    Estimates,
    /// A sequential test of a candidate.
    Gate,
    /// An iteration of a rubric.
    Iteration,
    /// Descent on a judge prompt.
    Sgd,
    /// Audits of a judge in other environments.
    Transport,
    /// A search over workflows.
    Workflow,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 7] = [
        Self::Compare,
        Self::Estimates,
        Self::Gate,
        Self::Iteration,
        Self::Sgd,
        Self::Transport,
        Self::Workflow,
    ];

    /// The word in manifests and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compare => "compare",
            Self::Estimates => "estimates",
            Self::Gate => "gate",
            Self::Iteration => "iteration",
            Self::Sgd => "sgd",
            Self::Transport => "transport",
            Self::Workflow => "workflow",
        }
    }

    /// Sections that it needs beyond those that every manifest has.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Compare => &["compare"],
            Self::Estimates => &["estimates"],
            Self::Gate => &["arms", "data", "estimand", "metric", "multiplicity", "test"],
            Self::Iteration => &["iteration"],
            Self::Sgd => &["sgd"],
            Self::Transport => &["transport"],
            Self::Workflow => &["workflow"],
        }
    }
}

/// Sections that belong to one template alone.
pub const OWNED: [(&str, Template); 6] = [
    ("compare", Template::Compare),
    ("iteration", Template::Iteration),
    ("sgd", Template::Sgd),
    ("test", Template::Gate),
    ("transport", Template::Transport),
    ("workflow", Template::Workflow),
];

/// A plan that binds: every number that a gate, an audit or an iteration uses comes from here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// What will be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// What is too long to stand here, such as a protocol for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annex: Option<BlobRef>,
    /// What is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arms: Option<Vec<Arm>>,
    /// Comparisons of judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<ComparePlan>,
    /// The confirm set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataBinding>,
    /// Where diagnostics of the whole experiment change their verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticsPlan>,
    /// What is estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimand: Option<Estimand>,
    /// How policies are estimated and compared, for the whole experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimates: Option<EstimatePlan>,
    /// The experiment that it belongs to.
    pub experiment: ExperimentId,
    /// When the work may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// What is put at risk.
    pub hypothesis: Hypothesis,
    /// Parameters of an iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationPlan>,
    /// Its name, one in the whole ledger.
    pub manifest: ManifestId,
    /// What is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// The family that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplicity: Option<Multiplicity>,
    /// Digest of the version that this one amends; absent in version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_digest: Option<Digest>,
    /// What a simulation showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
    /// Keys that alone may act under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<RoleBinding>,
    /// Descent on a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sgd: Option<SgdPlan>,
    /// Digest of a version of another manifest that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Digest>,
    /// What it is for.
    pub template: Template,
    /// The test of a gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,
    /// Its name for people.
    pub title: Text,
    /// Audits in other environments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportPlan>,
    /// 1, 2, 3 and so on.
    #[serde(deserialize_with = "at_least_one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub version: Count,
    /// A search over workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowPlan>,
}

impl IterationPlan {
    /// SHA-256 of `"clover/iteration/v1" 0x00` and its canonical bytes.
    pub fn params_hash(&self) -> Digest {
        canon::digest(PARAMS_LABEL, self)
    }
}

/// What the digest of a null hypothesis covers.
#[derive(Serialize)]
struct Null<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    estimand: &'a Option<Estimand>,
    kind: HypothesisKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin_micro: Option<Micro>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: &'a Option<Metric>,
    template: Template,
}

impl Manifest {
    /// SHA-256 of `"clover/manifest/v1" 0x00` and its canonical bytes.
    pub fn digest(&self) -> Digest {
        canon::digest(MANIFEST_LABEL, self)
    }

    /// SHA-256 of `"clover/h0/v1" 0x00` and the canonical bytes of what the null hypothesis says.
    pub fn h0_digest(&self) -> Digest {
        let margin = self.test.as_ref().map(|test| test.null_margin_micro);
        let audit = self.transport.as_ref().map(|plan| plan.margin_micro);
        let null = Null {
            estimand: &self.estimand,
            kind: self.hypothesis.kind,
            margin_micro: margin.or(audit),
            metric: &self.metric,
            template: self.template,
        };
        canon::digest(H0_LABEL, &null)
    }

    /// The error rate that it takes from its family.
    pub fn alpha(&self) -> Option<i64> {
        let test = self.test.as_ref().map(|test| test.alpha_micro);
        let audit = self.transport.as_ref().map(|plan| plan.alpha_micro);
        let iteration = self.iteration.as_ref().map(|plan| plan.alpha_micro);
        test.or(audit).or(iteration).map(Micro::value)
    }

    /// Whether a section is there.
    pub fn has(&self, section: &str) -> bool {
        match section {
            "arms" => self.arms.is_some(),
            "compare" => self.compare.is_some(),
            "data" => self.data.is_some(),
            "estimand" => self.estimand.is_some(),
            "estimates" => self.estimates.is_some(),
            "iteration" => self.iteration.is_some(),
            "metric" => self.metric.is_some(),
            "multiplicity" => self.multiplicity.is_some(),
            "sgd" => self.sgd.is_some(),
            "test" => self.test.is_some(),
            "transport" => self.transport.is_some(),
            "workflow" => self.workflow.is_some(),
            _ => false,
        }
    }
}

/// Commitment to a plan: SHA-256 of `"clover/plan/v1" 0x00`, origin and manifest id, each after its length as u16
/// big-endian, the salt, and the plan's BLAKE3 digest.
pub fn plan_commitment(origin: &str, manifest: &str, salt: &[u8; 32], plan: &Digest) -> Digest {
    let mut bytes = Vec::with_capacity(origin.len() + manifest.len() + 68);
    for text in [origin, manifest] {
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(salt);
    bytes.extend_from_slice(plan.as_bytes());
    Digest::labelled(PLAN_LABEL, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_the_format_page_hold() {
        let text = concat!(
            r#"{"experiment":"exp-1","hypothesis":{"claim":"the judge is unbiased elsewhere","#,
            r#""kind":"measure"},"manifest":"m-audits","template":"transport","title":"Audits","#,
            r#""transport":{"alpha_micro":50000,"bias_micro":0,"clusters_min":20,"environments":["#,
            r#"{"clusters":400,"environment":"clone","required":true},"#,
            r#"{"clusters":400,"environment":"premium","required":true}],"family_size":2,"#,
            r#""labels_per_cluster":1,"margin_micro":50000,"power_micro":800000,"#,
            r#""residual_sd_micro":200000},"version":1}"#
        );
        let manifest: Manifest = serde_json::from_str(text).unwrap();
        assert_eq!(canon::to_bytes(&manifest).unwrap(), text.as_bytes());
        assert_eq!(
            manifest.digest().to_hex(),
            "977776b842d1ba82d090b8f05b9b2fa3918fc3705964f0c6d493f2010abd7f2b"
        );
        assert_eq!(
            manifest.h0_digest().to_hex(),
            "83df9021772f74b01ce951bc5b5c48fdc21f6d2e62bcb2868e6a6cc54d948ac6"
        );
        let commitment = plan_commitment(
            "ledger.example/audits",
            "m-1",
            &[9; 32],
            &Digest([0x11; 32]),
        );
        assert_eq!(
            commitment.to_hex(),
            "fb168ed7bc4cdad6c6907ed5170f40306c638508341875fa548e67a0b3df0319"
        );
    }
}
