//! What people said, in the open or sealed until it is paid for.

use serde::Deserialize;
use serde::Serialize;

use crate::event::id::Base64Bytes;
use crate::event::id::Base64Text;
use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ItemId;
use crate::event::id::PolicyId;
use crate::event::id::RaterId;
use crate::event::id::RowId;
use crate::event::id::SealRecipient;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::num::Count;
use crate::num::Micro;

/// What an open label is for. Confirm labels are sealed, never open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LabelPurpose {
    /// To audit a calibrated judge.
    Audit,
    /// To fit a calibrator.
    Calibrate,
}

impl LabelPurpose {
    /// The text in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Calibrate => "calibrate",
        }
    }
}

impl std::fmt::Display for LabelPurpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A label in the open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelRecorded {
    /// The design that drew the row.
    pub design: DesignId,
    /// Which draw of the policy on this item, from 0.
    pub draw: Count,
    /// What was labelled.
    pub item: ItemId,
    /// Whose output it was.
    pub policy: PolicyId,
    /// What the label is for.
    pub purpose: LabelPurpose,
    /// Who labelled.
    pub rater: RaterId,
    /// The label in millionths.
    pub value_micro: Micro,
}

/// A confirm label, committed and encrypted to the custodian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelSealed {
    /// Salted commitment to the label.
    pub commitment: Digest,
    /// The design that drew the row.
    pub design: DesignId,
    /// age v1 file with salt and value.
    pub envelope: Base64Text,
    /// To whom it is encrypted.
    pub recipient: SealRecipient,
    /// By when it is to be revealed; later, it shows as a breach.
    pub reveal_by: Timestamp,
    /// The row of the design.
    pub row: RowId,
}

/// The custodian opened the envelope's header and found it to be for its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SealAccepted {
    /// The design that drew the row.
    pub design: DesignId,
    /// SHA-256 of the age file.
    pub envelope_sha256: Digest,
    /// The row of the design.
    pub row: RowId,
}

/// A sealed label is opened, after its peek was charged and checkpointed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelRevealed {
    /// The `budget.charged` event that paid for it.
    pub charge: EventId,
    /// The design that drew the row.
    pub design: DesignId,
    /// The row of the design.
    pub row: RowId,
    /// The commitment's salt.
    pub salt: Base64Bytes<32>,
    /// The label in millionths.
    pub value_micro: Micro,
}
