//! What people said, in the open or sealed until it is paid for.

use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error as _;

use crate::id::Base64Bytes;
use crate::id::Base64Text;
use crate::id::DesignId;
use crate::id::EventId;
use crate::id::ItemId;
use crate::id::PolicyId;
use crate::id::ProtocolId;
use crate::id::RaterId;
use crate::id::RowId;
use crate::id::SealRecipient;
use crate::id::StratumId;
use crate::payload::estimated::ScaleEnds;

/// What an open label is for. Confirm labels are sealed, never open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What the labels of a design are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DesignPurpose {
    /// To audit a calibrated judge; open or sealed.
    Audit,
    /// To fit a calibrator; open.
    Calibrate,
    /// To confirm a decision; sealed.
    Confirm,
}

impl DesignPurpose {
    /// Whether open labels of `purpose` may belong to it.
    pub fn admits(self, purpose: LabelPurpose) -> bool {
        matches!(
            (self, purpose),
            (Self::Audit, LabelPurpose::Audit) | (Self::Calibrate, LabelPurpose::Calibrate)
        )
    }

    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Calibrate => "calibrate",
            Self::Confirm => "confirm",
        }
    }
}

impl std::fmt::Display for DesignPurpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a probability in millionths above 0.
fn inclusion<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Micro, D::Error> {
    let micro = Micro::deserialize(deserializer)?;
    if !(1..=1_000_000).contains(&micro.value()) {
        return Err(D::Error::custom(format_args!(
            "expected a probability from 1 to 1000000 millionths, found {}",
            micro.value()
        )));
    }
    Ok(micro)
}

/// Rows that share a probability of being labelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stratum {
    /// Probability that a row of it is labelled, in millionths.
    #[serde(deserialize_with = "inclusion")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub inclusion_micro: Micro,
    /// Its name.
    pub stratum: StratumId,
}

/// Which rows will be labelled, for what, and with what probability: said before the first label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelDesignRegistered {
    /// Its name.
    pub design: DesignId,
    /// Probability that a row of no named stratum is labelled, in millionths.
    #[serde(deserialize_with = "inclusion")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub inclusion_micro: Micro,
    /// By which protocol people label.
    pub protocol: ProtocolId,
    /// What the labels are for.
    pub purpose: DesignPurpose,
    /// Strata with probabilities of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strata: Option<Vec<Stratum>>,
}

/// The scale of the labels of an experiment, said by whoever records them. One whose ends are not in order says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelScaleDeclared {
    /// The greatest label that there can be, in millionths.
    pub high_micro: Micro,
    /// The least, in millionths.
    pub low_micro: Micro,
}

impl LabelScaleDeclared {
    /// Its ends; `None` where they are not in order.
    pub fn ends(&self) -> Option<ScaleEnds> {
        (self.low_micro < self.high_micro).then_some(ScaleEnds {
            high_micro: self.high_micro,
            low_micro: self.low_micro,
        })
    }
}

/// A label in the open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The row of a draw, `policy/item/draw`, with `%` and `/` of the policy as `%25` and `%2F`. It is longer than
/// an id may be when policy and item are.
pub fn row_of_draw(policy: &PolicyId, item: &ItemId, draw: Count) -> String {
    let policy = policy.as_str().replace('%', "%25").replace('/', "%2F");
    format!("{policy}/{item}/{draw}")
}

/// The draw that a row names; `None` for a row of another form.
pub fn draw_of_row(row: &RowId) -> Option<(PolicyId, ItemId, Count)> {
    let (policy, rest) = row.as_str().split_once('/')?;
    let (item, draw) = rest.rsplit_once('/')?;
    let policy = policy.replace("%2F", "/").replace("%25", "%");
    let (policy, item) = (PolicyId::new(policy).ok()?, ItemId::new(item).ok()?);
    let draw = Count::new(draw.parse().ok()?)?;
    (row_of_draw(&policy, &item, draw) == row.as_str()).then_some((policy, item, draw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_draws_read_back() {
        for (policy, item, draw, text) in [
            ("clone", "arena_22", 0, "clone/arena_22/0"),
            ("a/b", "c/d", 7, "a%2Fb/c/d/7"),
            ("50%2F", "x", 1, "50%252F/x/1"),
        ] {
            let (policy, item) = (policy.parse().unwrap(), item.parse().unwrap());
            let draw = Count::new(draw).unwrap();
            let row = row_of_draw(&policy, &item, draw);
            assert_eq!(row, text);
            assert_eq!(
                draw_of_row(&row.parse().unwrap()),
                Some((policy, item, draw))
            );
        }
        for other in ["row-1", "a/b", "a/b/", "a/b/01", "/b/0", "a//0", "a%2f/b/0"] {
            let found = draw_of_row(&other.parse().unwrap());
            assert!(found.is_none() || other == "a%2f/b/0", "{other}: {found:?}");
        }
    }
}
