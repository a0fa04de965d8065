//! From an accepted patch to the prompt that judges: what people say of it, and the commit.
//! `schema/DEPLOYMENT.md` says what each event must hold to.

use clover_ground::digest::Digest;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::id::EventId;
use crate::id::PatchId;
use crate::id::Text;
use crate::payload::BlobRef;
use crate::payload::rubric::RubricLeaf;

/// What a signature on an approval means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Meaning {
    /// Approval: the only meaning that counts where two keys are needed.
    Approve,
    /// Authorship.
    Author,
    /// Responsibility for what follows.
    Responsibility,
    /// Review.
    Review,
    /// Having seen it done.
    Witness,
}

impl Meaning {
    /// Every meaning.
    pub const ALL: [Self; 5] = [
        Self::Approve,
        Self::Author,
        Self::Responsibility,
        Self::Review,
        Self::Witness,
    ];

    /// The word in events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Author => "author",
            Self::Responsibility => "responsibility",
            Self::Review => "review",
            Self::Witness => "witness",
        }
    }
}

impl std::str::FromStr for Meaning {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|of| of.as_str() == text);
        found.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("expected one of {words}")
        })
    }
}

/// A person stands for an accepted patch, by name and with a meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalGranted {
    /// What the person says about it.
    pub comment: Text,
    /// What the signature means.
    pub meaning: Meaning,
    /// The person's name, as it is printed.
    pub printed_name: Text,
    /// The `patch.accepted`.
    pub subject: EventId,
}

/// A person refuses an accepted patch; while that is the key's newest word, nothing is committed from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRefused {
    /// What the person says about it.
    pub comment: Text,
    /// What the signature means.
    pub meaning: Meaning,
    /// The person's name, as it is printed.
    pub printed_name: Text,
    /// The `patch.accepted`.
    pub subject: EventId,
}

/// Where an entry stands, and in which tree: `prove` writes the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inclusion {
    /// Its position.
    pub index: Count,
    /// Entries of a tree that holds it.
    pub size: Count,
}

/// An accepted patch becomes the next version of the rubric, and of what the judge is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptCommitted {
    /// The `patch.accepted`.
    pub acceptance: EventId,
    /// Approvals that it stands on, in their order; none where none is needed.
    pub approvals: Vec<EventId>,
    /// Gate events of the acceptance.
    pub gates: Vec<EventId>,
    /// Leaves of the rubric that results, by path.
    pub leaves: Vec<RubricLeaf>,
    /// The `prompt.committed` or `rubric.registered` that it follows.
    pub parent: EventId,
    /// The patch.
    pub patch: PatchId,
    /// What the judge is told, as text.
    pub prompt: BlobRef,
    /// Hash of that under its template.
    pub prompt_hash: Digest,
    /// Where the acceptance stands.
    pub proof: Inclusion,
    /// Hash of the leaves.
    pub rubric_hash: Digest,
    /// Version of the rubric that results, MAJOR.MINOR.
    pub version: String,
}
