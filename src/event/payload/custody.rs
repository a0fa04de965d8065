//! Who holds the ledger: its creation, keys, policy, erasure and retention.

use clover_ground::digest::Digest;
use clover_ground::note::Origin;
use clover_ground::sign::KeyId;
use clover_num::Count;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

use crate::id::Base64Bytes;
use crate::id::ClassId;
use crate::id::HolderId;
use crate::id::SealRecipient;
use crate::id::Text;
use crate::id::Vkey;
use crate::payload::Roles;

/// How strictly roles are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Separation {
    /// One person may hold every role; derived claims are graded self-governed.
    Solo,
    /// Conflicting roles are refused, judged per holder.
    Strict,
}

impl std::fmt::Display for Separation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Solo => "solo",
            Self::Strict => "strict",
        })
    }
}

/// The rules a ledger is held under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policy {
    /// How strictly roles are kept apart.
    pub separation: Separation,
}

/// The first key of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerKey {
    /// Who holds the key.
    pub holder: HolderId,
    /// Whether a human holds it.
    pub human: bool,
    /// Ed25519 public key.
    pub public_key: Base64Bytes<32>,
    /// What it may sign; holds `owner`.
    pub roles: Roles,
}

/// A ledger begins: seq 0, signed by the owner whose key it names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedgerCreated {
    /// Format of the ledger: 2 today. Format 1 knew neither proofs of possession nor registered experiments.
    pub format: Count,
    /// The key that signs checkpoints.
    pub log_vkey: Vkey,
    /// Origin of the log.
    pub origin: Origin,
    /// The first owner.
    pub owner: OwnerKey,
    /// The policy in force from here on.
    pub policy: Policy,
    /// The rulebook that judges the entries after this one, 18 or more; where it is absent, 17 does.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub rulebook: Option<Count>,
}

/// Reads a member that is there or absent, and never null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A key joins, with the roles it holds until it is retired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyAdded {
    /// Who holds the key.
    pub holder: HolderId,
    /// Whether a human holds it.
    pub human: bool,
    /// SHA-256 of the key's SPKI DER.
    pub key_id: KeyId,
    /// Proof of possession: the new key's own signature. Absent only where a format 1 event was upcast.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub proof: Option<Base64Bytes<64>>,
    /// Ed25519 public key.
    pub public_key: Base64Bytes<32>,
    /// What it may sign.
    pub roles: Roles,
    /// age recipient to which labels may be sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal_recipient: Option<SealRecipient>,
}

/// A key joins (version 1, of format 1 ledgers: no proof of possession).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyAddedV1 {
    /// Who holds the key.
    pub holder: HolderId,
    /// Whether a human holds it.
    pub human: bool,
    /// SHA-256 of the key's SPKI DER.
    pub key_id: KeyId,
    /// Ed25519 public key.
    pub public_key: Base64Bytes<32>,
    /// What it may sign.
    pub roles: Roles,
}

impl From<KeyAddedV1> for KeyAdded {
    fn from(old: KeyAddedV1) -> Self {
        Self {
            holder: old.holder,
            human: old.human,
            key_id: old.key_id,
            proof: None,
            public_key: old.public_key,
            roles: old.roles,
            seal_recipient: None,
        }
    }
}

/// A key leaves: from here on it signs nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyRetired {
    /// The key.
    pub key_id: KeyId,
    /// Why.
    pub reason: Text,
}

/// A key was in other hands: it signs nothing more, and its events from `since_seq` on are tainted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyCompromised {
    /// The key.
    pub key_id: KeyId,
    /// What is known of it.
    pub reason: Text,
    /// First entry from which its events are not to be relied on.
    pub since_seq: Count,
}

/// Another policy holds from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyAdopted {
    /// Why.
    pub reason: Text,
    /// How strictly roles are kept apart.
    pub separation: Separation,
}

/// A newer rulebook judges the entries after this one. Entries before it keep the verdict of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RulebookAdopted {
    /// The rulebook's version: above the one in force, at most the newest that the program knows.
    pub version: Count,
}

/// The log key changes: the checkpoint over this event is signed by both keys, later ones by the new one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogKeyRotated {
    /// Why.
    pub reason: Text,
    /// The new key.
    pub vkey: Vkey,
}

/// A subject's key was destroyed, and with it the content of that subject's private blobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubjectErased {
    /// On which ground.
    pub basis: Text,
    /// Who asked for it, by a handle that names no person: an entry is never erased.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Text"))]
    pub requester: Option<Text>,
    /// The subject.
    pub subject: Digest,
}

/// How long a class of data is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetentionSet {
    /// On which ground.
    pub basis: Text,
    /// The class.
    pub class: ClassId,
    /// For how many days, at least 1.
    #[serde(deserialize_with = "super::budget::at_least_one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub days: Count,
}
