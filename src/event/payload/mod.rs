//! Payload structs by family. The doc comment of a struct is the description in its JSON Schema.
//!
//! Fields stand in alphabetical order (the canonical encoder then writes them in one pass), are closed
//! (`deny_unknown_fields`), and optional ones are absent when there is nothing to say.

pub mod assumption;
pub mod audit;
pub mod battery;
pub mod budget;
pub mod card;
pub mod custody;
pub mod decision;
pub mod deployment;
pub mod diagnosis;
pub mod drift;
pub mod endpoint;
pub mod environment;
pub mod estimate;
pub mod estimated;
pub mod experiment;
pub mod gate;
pub mod generator;
pub mod intake;
pub mod iteration;
pub mod judge;
pub mod label;
pub mod manifest;
pub mod meta;
pub mod meta_plan;
pub mod model_calls;
pub mod model_runs;
pub mod model_terms;
pub mod ope;
pub mod overlap;
pub mod planning;
pub mod predicate;
pub mod prereg;
pub mod record;
pub mod release;
pub mod repair;
pub mod repair_feedback;
pub mod report;
pub mod rubric;
pub mod scoring;
pub mod sgd;
pub mod sgd_steps;
pub mod slices;
pub mod synth_runs;
pub mod synthesis;

use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

/// What was found when something was judged. The same four words everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    /// It fails.
    Fail,
    /// The evidence does not decide.
    Inconclusive,
    /// Nobody looked.
    NotChecked,
    /// It holds.
    Pass,
}

/// What a key may sign. Alphabetical, as in a role list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Role {
    /// Attack batteries and exploits.
    Adversary,
    /// Human approvals and waivers.
    Approver,
    /// What the deterministic outer loop computed.
    Arbiter,
    /// Attestations; reads all, changes nothing.
    Auditor,
    /// Seals, exposures, unsealing, erasure.
    Custodian,
    /// Labels and label designs.
    Labeler,
    /// Outer-loop workflow updates.
    MetaOptimizer,
    /// Patches and edits; never sees rows or labels.
    Optimizer,
    /// Keys, roles, policies.
    Owner,
    /// Experiments, pre-registrations, budgets.
    Registrar,
    /// Commits, deployments, rollbacks.
    Releaser,
    /// Rows, judge scores, executions.
    Scorer,
    /// The deliberation protocol.
    Steward,
    /// Workflow feedback without ground truth.
    Verifier,
}

impl Role {
    /// Every role, alphabetical.
    pub const ALL: [Self; 14] = [
        Self::Adversary,
        Self::Approver,
        Self::Arbiter,
        Self::Auditor,
        Self::Custodian,
        Self::Labeler,
        Self::MetaOptimizer,
        Self::Optimizer,
        Self::Owner,
        Self::Registrar,
        Self::Releaser,
        Self::Scorer,
        Self::Steward,
        Self::Verifier,
    ];

    /// The word in events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adversary => "adversary",
            Self::Approver => "approver",
            Self::Arbiter => "arbiter",
            Self::Auditor => "auditor",
            Self::Custodian => "custodian",
            Self::Labeler => "labeler",
            Self::MetaOptimizer => "meta_optimizer",
            Self::Optimizer => "optimizer",
            Self::Owner => "owner",
            Self::Registrar => "registrar",
            Self::Releaser => "releaser",
            Self::Scorer => "scorer",
            Self::Steward => "steward",
            Self::Verifier => "verifier",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("expected one of {}", names()))
    }
}

/// A non-empty list of roles, sorted and without repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("minItems" = 1, "uniqueItems" = true)))]
pub struct Roles(Vec<Role>);

impl Roles {
    /// Sorts `roles`; `None` when there are none.
    pub fn new(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let set: std::collections::BTreeSet<_> = roles.into_iter().collect();
        (!set.is_empty()).then(|| Self(set.into_iter().collect()))
    }

    /// The roles.
    pub fn as_slice(&self) -> &[Role] {
        &self.0
    }

    /// Whether `role` is among them.
    pub fn contains(&self, role: Role) -> bool {
        self.0.binary_search(&role).is_ok()
    }
}

impl std::fmt::Display for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            &self
                .0
                .iter()
                .map(|role| role.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        )
    }
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let roles = Vec::<Role>::deserialize(deserializer)?;
        if roles.is_empty() || !roles.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(D::Error::custom(
                "expected a non-empty list of roles in alphabetical order, each once",
            ));
        }
        Ok(Self(roles))
    }
}

/// A blob by its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlobRef {
    /// BLAKE3-256 of the stored bytes.
    pub blake3: Digest,
    /// How many bytes are stored.
    pub bytes: Count,
    /// Media type of the content.
    pub media: MediaType,
}

/// A private blob: stored encrypted under a subject's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrivateRef {
    /// The ciphertext.
    pub blob: BlobRef,
    /// Salted commitment to the plaintext.
    pub commitment: Digest,
    /// The subject under whose key it is encrypted.
    pub subject: Digest,
}

/// A media type such as `text/plain`: printable ASCII with one slash, at most 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[!-~]+/[!-~]+$", "maxLength" = 100)))]
pub struct MediaType(String);

impl MediaType {
    /// `None` when it has another form.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let (top, sub) = text.split_once('/')?;
        let plain = text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_graphic());
        (plain && !top.is_empty() && !sub.is_empty()).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for MediaType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected a media type such as text/plain"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_words_and_order_agree_with_their_wire_form() {
        assert!(
            Role::ALL
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str())
        );
        for role in Role::ALL {
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!(serde_json::from_str::<Roles>(r#"["scorer","owner"]"#).is_err());
        assert!(serde_json::from_str::<Roles>("[]").is_err());
    }
}
