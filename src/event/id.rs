//! Typed ids and bounded texts: what is not one of these does not become an event.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use clover_ground::base64;
use clover_ground::digest::Digest;
use clover_ground::note::SigType;
use clover_ground::note::VerifierKey;
use clover_ground::seal::AgeError;
use clover_ground::seal::Recipient;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de::Error as _;
use smol_str::SmolStr;
use unicode_normalization::IsNormalized;
use unicode_normalization::is_nfc_quick;

use crate::ids::ID;

/// Longest id, in bytes of UTF-8.
pub const ID_LEN_MAX: usize = 200;
/// Longest free text, in bytes of UTF-8.
pub const TEXT_LEN_MAX: usize = 4_000;

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing, or more than 200 bytes.
    #[error("expected 1 to 200 bytes")]
    Length,
    /// A control character.
    #[error("expected no control characters")]
    Control,
    /// Not Unicode normalisation form C.
    #[error("expected Unicode normalisation form C")]
    NotNfc,
}

fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() || text.len() > ID_LEN_MAX {
        return Err(IdError::Length);
    }
    if text.is_ascii() {
        let control = text.bytes().any(|byte| byte.is_ascii_control());
        return if control {
            Err(IdError::Control)
        } else {
            Ok(())
        };
    }
    if text.chars().any(char::is_control) {
        return Err(IdError::Control);
    }
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Ok(()),
        IsNormalized::Maybe if unicode_normalization::is_nfc(text) => Ok(()),
        _ => Err(IdError::NotNfc),
    }
}

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(transparent, extend("minLength" = 1, "maxLength" = 200)))]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] SmolStr);

        impl $name {
            /// Checks `text` once.
            ///
            /// # Errors
            /// [`IdError`].
            pub fn new(text: impl Into<SmolStr>) -> Result<Self, IdError> {
                let text = text.into();
                check_id(&text)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_newtype_struct(ID, self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = SmolStr::deserialize(deserializer)?;
                check_id(&text).map_err(D::Error::custom)?;
                Ok(Self(text))
            }
        }
    )*};
}

// Alphabetical, one line each. The next id kind goes in its place here.
text_ids! {
    /// A budget account.
    AccountId;
    /// Two sets of stored rows that hold the scale in place.
    AnchorSetId;
    /// One of the things that a manifest compares.
    ArmId;
    /// An attack of the battery.
    AttackId;
    /// A residual card of an iteration.
    CardId;
    /// A class of data, for reading and retention.
    ClassId;
    /// A label design.
    DesignId;
    /// A model endpoint: where models are asked, and what may be sent there.
    EndpointId;
    /// An environment: a policy, a time window, a domain.
    EnvironmentId;
    /// An experiment.
    ExperimentId;
    /// A family of tests with one error rate.
    FamilyId;
    /// A field of the data.
    FieldId;
    /// Who holds a key.
    HolderId;
    /// What was judged: a prompt or a task item.
    ItemId;
    /// An iteration of a rubric.
    IterationId;
    /// A judge, with its version.
    JudgeId;
    /// A manifest.
    ManifestId;
    /// A plan of repairs in sixteen cells.
    MetaPlanId;
    /// A metric.
    MetricId;
    /// A family of rubric patches.
    PatchFamilyId;
    /// A rubric patch.
    PatchId;
    /// A policy (a model or system whose outputs are judged).
    PolicyId;
    /// A table of prices of calls.
    PriceTableId;
    /// A protocol by which people label, with its version.
    ProtocolId;
    /// Who gave a label.
    RaterId;
    /// A row of a label design.
    RowId;
    /// A run of a generator under a frozen judge.
    RunId;
    /// A slice of the rows.
    SliceId;
    /// A split of clusters into fit, dev and confirm.
    SplitId;
    /// A stratum: of a label design, or of a confirm set.
    StratumId;
    /// What calls for an update of the outer loop.
    TriggerId;
    /// What an account counts.
    UnitId;
    /// An update of the outer loop.
    UpdateId;
}

/// Free text: at most 4,000 bytes, no control characters but newline and tab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("maxLength" = 4000)))]
pub struct Text(String);

impl Text {
    /// `None` when too long or when it holds other control characters.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let control = |c: char| c.is_control() && c != '\n' && c != '\t';
        (text.len() <= TEXT_LEN_MAX && !text.chars().any(control)).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).ok_or_else(|| {
            D::Error::custom("expected text of at most 4000 bytes without control characters")
        })
    }
}

/// The SHA-256 of an event's body: what `sha256sum body.json` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub Digest);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tree root: 32 bytes in standard padded base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root(pub Digest);

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_base64())
    }
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Digest::from_base64(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected 32 bytes in padded base64, found {text:?}"
            ))
        })
    }
}

/// A fixed number of bytes in standard padded base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base64Bytes<const N: usize>(pub [u8; N]);

impl<const N: usize> Serialize for Base64Bytes<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::encode(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Base64Bytes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = base64::decode(text.as_bytes()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| {
            D::Error::custom(format_args!(
                "expected {N} bytes in padded base64, found {text:?}"
            ))
        })
    }
}

/// Any number of bytes in standard padded base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64Text(pub Vec<u8>);

impl Serialize for Base64Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = base64::decode(text.as_bytes()).map(Self);
        bytes.ok_or_else(|| D::Error::custom("expected padded base64"))
    }
}

/// A C2SP verifier key in its text form, Ed25519 only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vkey(VerifierKey);

impl Vkey {
    /// `None` unless `key` is an Ed25519 note key.
    pub fn new(key: VerifierKey) -> Option<Self> {
        (key.kind() == SigType::Ed25519).then_some(Self(key))
    }

    /// The key.
    pub fn key(&self) -> &VerifierKey {
        &self.0
    }
}

impl fmt::Display for Vkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Vkey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Vkey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let key: VerifierKey = text.parse().map_err(D::Error::custom)?;
        Self::new(key).ok_or_else(|| D::Error::custom("expected an Ed25519 verifier key"))
    }
}

/// An age X25519 recipient, `age1…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealRecipient(pub Recipient);

impl Serialize for SealRecipient {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SealRecipient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        recipient(&text).map(Self).map_err(D::Error::custom)
    }
}

/// Reads a recipient. Its check multiplies on the curve, and labels are sealed to one recipient by the thousand: the last
/// that was read is known again by its text.
fn recipient(text: &str) -> Result<Recipient, AgeError> {
    thread_local! {
        static LAST: RefCell<Option<(String, Recipient)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, recipient)) if known == text => Ok(*recipient),
        _ => {
            let recipient: Recipient = text.parse()?;
            *last = Some((text.to_owned(), recipient));
            Ok(recipient)
        }
    })
}

#[cfg(feature = "schema")]
mod schemas {
    //! JSON Schema forms of the hand-written encodings.
    use schemars::JsonSchema;
    use schemars::Schema;
    use schemars::SchemaGenerator;
    use schemars::json_schema;

    use super::Base64Bytes;
    use super::Base64Text;
    use super::EventId;
    use super::Root;

    clover_num::schema! {
        EventId, "EventId" => {"type": "string", "pattern": "^[0-9a-f]{64}$"};
        Root, "Root" => {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"};
        Base64Text, "Base64" => {"type": "string", "contentEncoding": "base64"};
        super::Vkey, "Vkey" => {"type": "string", "pattern": "^[^+ ]+\\+[0-9a-f]{8}\\+[A-Za-z0-9+/]{44}$"};
        super::SealRecipient, "SealRecipient" => {"type": "string", "pattern": "^age1[02-9ac-hj-np-z]{58}$"};
    }

    impl<const N: usize> JsonSchema for Base64Bytes<N> {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            format!("Base64Bytes{N}").into()
        }
        fn inline_schema() -> bool {
            true
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            let characters = N.div_ceil(3) * 4;
            json_schema!({
                "type": "string", "contentEncoding": "base64", "minLength": characters, "maxLength": characters
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_checked_however_often_it_comes() {
        let good = "\"age1xmwwc06ly3ee5rytxm9mflaz2u56jjj36s0mypdrwsvlul66mv4q47ryef\"";
        let read = |text: &str| serde_json::from_str::<SealRecipient>(text);
        for _ in 0..2 {
            let found = read(good).unwrap();
            assert_eq!(serde_json::to_string(&found).unwrap(), good);
            assert!(read("\"age1no\"").is_err());
            assert!(read(&good.to_uppercase()).is_err());
        }
    }

    #[test]
    fn ids_are_checked() {
        assert!(ItemId::new("arena_22").is_ok());
        assert!(ItemId::new("Zürich").is_ok());
        assert_eq!(ItemId::new("Zu\u{308}rich"), Err(IdError::NotNfc));
        assert_eq!(ItemId::new(""), Err(IdError::Length));
        assert_eq!(ItemId::new("x".repeat(201)), Err(IdError::Length));
        assert_eq!(ItemId::new("a\nb"), Err(IdError::Control));
        assert_eq!(ItemId::new("a\u{85}b"), Err(IdError::Control));
    }
}
