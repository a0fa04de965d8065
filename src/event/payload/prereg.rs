//! Pre-registration: what was said before, how it was changed, and when anybody looked.

use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::id::Base64Bytes;
use crate::id::FamilyId;
use crate::id::ItemId;
use crate::id::ManifestId;
use crate::id::Root;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::manifest::FamilyMethod;
use crate::payload::manifest::Manifest;

/// A manifest is registered: from here on its numbers are the only ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManifestRegistered {
    /// Digest of the manifest.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// The manifest.
    pub manifest: Box<Manifest>,
}

/// The custodian of the confirm data agrees to a version that binds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManifestCountersigned {
    /// Digest of that version.
    pub digest: Digest,
}

/// A manifest gets a new version; the old ones are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManifestAmended {
    /// 0 words, 1 before the first look, 2 without harm in flight, 3 what is tested.
    pub class: Count,
    /// Digest of the new version.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// The new version, whole.
    pub manifest: Box<Manifest>,
    /// Digest of the version in force.
    pub parent_digest: Digest,
    /// Why.
    pub reason: Text,
}

/// Something was done otherwise than registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManifestDeviated {
    /// Digest of the version in force.
    pub digest: Digest,
    /// What it does to the claim.
    pub impact: Text,
    /// Entries that stood when it became known.
    pub known_at_seq: Count,
    /// Whether an outcome had been seen by then.
    pub outcome_seen: bool,
    /// The part of the manifest, such as `test.n_max`.
    pub rule_path: Text,
    /// What was done.
    pub what: Text,
    /// Why.
    pub why: Text,
}

/// An analysis plan is committed to, to be revealed later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanSealed {
    /// Salted commitment to the plan.
    pub commitment: Digest,
    /// The manifest that it belongs to.
    pub manifest: ManifestId,
    /// By when it is revealed; later, claims that rest on it are void.
    pub reveal_by: Timestamp,
}

/// A sealed plan is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRevealed {
    /// The manifest that it belongs to.
    pub manifest: ManifestId,
    /// The plan.
    pub plan: BlobRef,
    /// The commitment's salt.
    pub salt: Base64Bytes<32>,
}

/// A family of tests with one error rate is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FamilyOpened {
    /// Its error rate.
    pub alpha_micro: Micro,
    /// Its name.
    pub family: FamilyId,
    /// For elond: each member's share of alpha, in order of registration, together at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma_micro: Option<Vec<Micro>>,
    /// Who alone may join; anyone up to the maximum when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<ManifestId>>,
    /// Most members.
    pub members_max: Count,
    /// Who belongs to it, in words.
    pub membership: Text,
    /// How it keeps its error rate.
    pub method: FamilyMethod,
}

/// Units of a confirm set become readable to those who score them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExposureOpened {
    /// Merkle root of the confirm set.
    pub confirm_root: Root,
    /// Digest of the manifest version in force.
    pub digest: Digest,
    /// Which exposure under the manifest, from 1.
    pub exposure: Count,
    /// First unit in the order drawn, from 0.
    pub first_unit: Count,
    /// Last unit.
    pub last_unit: Count,
    /// Name of the last unit, in an order that was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<ItemId>,
}
