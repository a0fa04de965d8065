//! The event body: the bytes an author signs.
//!
//! One JSON object in RFC 8785 form with the fields `at author author_seq data experiment kind ledger
//! refs seen v`. [`Draft::to_body`] writes it, [`decode`] reads it back and accepts only the exact
//! canonical bytes. Signing and the envelope are `ground::sign`'s and [`crate::entry`]'s.

use std::borrow::Cow;

use clover_ground::canon;
use clover_ground::canon::CanonError;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signed;
use clover_ground::sign::Signer;
use clover_ground::sign::Verified;
use clover_ground::time::Timestamp;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::field::Statement;
use crate::id::EventId;
use crate::id::ExperimentId;
use crate::id::Root;
use crate::registry;
use crate::registry::Kind;
use crate::registry::Payload;
use crate::registry::PayloadError;
use crate::template;

/// DSSE payload type of an event body.
pub const PAYLOAD_TYPE: &str = "application/vnd.clover.event+json";
/// Longest body in bytes.
pub const BODY_LEN_MAX: usize = 32 * 1024;
/// Most events that one event may stand on; more are named by a blob.
pub const REFS_MAX: usize = 256;

/// A kept checkpoint that the author had verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Seen"))]
pub struct SeenCheckpoint {
    /// The root of the tree at `size`.
    pub root: Root,
    /// Entries in that tree: 1 up to the event's own seq.
    pub size: Count,
}

/// Everything an event says besides its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// When the author signed.
    pub at: Timestamp,
    /// The signing key.
    pub author: KeyId,
    /// The author's own counter, from 0 without gaps.
    pub author_seq: u64,
    /// What the event belongs to.
    pub experiment: Option<ExperimentId>,
    /// Origin of the log.
    pub ledger: SmolStr,
    /// Events it stands on.
    pub refs: Vec<EventId>,
    /// The checkpoint the author had verified; `None` only in seq 0.
    pub seen: Option<SeenCheckpoint>,
}

/// An event that is not signed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: Payload,
}

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// SHA-256 of the body bytes.
    pub id: EventId,
    /// Its header.
    pub header: Header,
    /// Its payload, upcast to the newest version.
    pub payload: Payload,
    /// The payload version that stands in the body.
    pub v: u32,
}

/// A body whose header was read; its payload may still be unknown or broken.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedBody {
    /// SHA-256 of the body bytes.
    pub id: EventId,
    /// The header.
    pub header: Header,
    /// Payload version as it stands.
    pub v: u32,
    /// The payload, or why it does not decode.
    pub payload: Result<Payload, PayloadError>,
}

/// Why bytes are not an event body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The value has no canonical form.
    #[error("{0}")]
    Canon(#[from] CanonError),
    /// Not the closed header, or not in canonical form.
    #[error("{0}")]
    Form(String),
    /// Longer than 32 KiB.
    #[error("the body has {0} bytes, at most 32768; put large content in a blob")]
    TooLong(usize),
    /// More than 256 references.
    #[error("{0} refs, at most 256")]
    TooManyRefs(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    at: Timestamp,
    author: KeyId,
    author_seq: Count,
    #[serde(borrow)]
    data: &'a RawValue,
    experiment: Option<ExperimentId>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    ledger: Cow<'a, str>,
    refs: Vec<EventId>,
    seen: Option<SeenCheckpoint>,
    v: u32,
}

/// The one template of a body; `data` is already canonical.
fn write_body(
    out: &mut Vec<u8>,
    header: &Header,
    kind: &str,
    v: u32,
    data: &[u8],
) -> Result<(), CanonError> {
    out.reserve(data.len() + 512);
    out.extend_from_slice(b"{\"at\":");
    canon::write(out, &header.at)?;
    out.extend_from_slice(b",\"author\":");
    canon::write(out, &header.author)?;
    out.extend_from_slice(b",\"author_seq\":");
    canon::write(out, &header.author_seq)?;
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data);
    out.extend_from_slice(b",\"experiment\":");
    canon::write(out, &header.experiment)?;
    out.extend_from_slice(b",\"kind\":");
    canon::write(out, kind)?;
    out.extend_from_slice(b",\"ledger\":");
    canon::write(out, &header.ledger)?;
    out.extend_from_slice(b",\"refs\":");
    canon::write(out, &header.refs)?;
    out.extend_from_slice(b",\"seen\":");
    canon::write(out, &header.seen)?;
    out.extend_from_slice(b",\"v\":");
    canon::write(out, &v)?;
    out.push(b'}');
    Ok(())
}

impl Draft {
    /// The canonical body bytes.
    ///
    /// # Errors
    /// [`BodyError`] when it is too long or holds what JSON cannot.
    pub fn to_body(&self) -> Result<Vec<u8>, BodyError> {
        let kind = self.payload.kind();
        let data = canon::to_bytes(&self.payload)?;
        let mut out = Vec::with_capacity(data.len() + 512);
        write_body(&mut out, &self.header, kind.as_str(), kind.version(), &data)?;
        if out.len() > BODY_LEN_MAX {
            return Err(BodyError::TooLong(out.len()));
        }
        if self.header.refs.len() > REFS_MAX {
            return Err(BodyError::TooManyRefs(self.header.refs.len()));
        }
        Ok(out)
    }

    /// Signs the body.
    ///
    /// # Errors
    /// As [`Draft::to_body`].
    pub fn sign(&self, signer: &Signer) -> Result<Signed<Verified>, BodyError> {
        Ok(Signed::sign(PAYLOAD_TYPE, self.to_body()?, signer))
    }
}

impl DecodedBody {
    /// The text of its kind, known or not.
    pub fn kind(&self) -> &str {
        match &self.payload {
            Ok(payload) => payload.kind().as_str(),
            Err(PayloadError::Kind { kind, .. }) => kind,
            Err(PayloadError::Schema { kind, .. }) => kind,
        }
    }

    /// The event, when its payload decoded.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn into_event(self) -> Result<Event, PayloadError> {
        Ok(Event {
            id: self.id,
            header: self.header,
            payload: self.payload?,
            v: self.v,
        })
    }
}

/// Reads a body. What is returned re-encodes to exactly `body`.
///
/// # Errors
/// [`BodyError`] when the body is not canonical or its header not the closed form; a payload that is unknown
/// or broken is reported inside [`DecodedBody`], so that the header can still be judged.
pub fn decode(body: &[u8]) -> Result<DecodedBody, BodyError> {
    if body.len() <= BODY_LEN_MAX
        && let Some(wire) = template::read(body)
        && let Ok((payload, typed)) = registry::decode(&wire.kind, wire.v, wire.data)
        && typed == wire.data.as_bytes()
    {
        return Ok(DecodedBody {
            id: EventId(Digest::sha256(body)),
            header: wire.header,
            v: wire.v,
            payload: Ok(payload),
        });
    }
    decode_any(body)
}

/// As [`decode`], whatever the form.
fn decode_any(body: &[u8]) -> Result<DecodedBody, BodyError> {
    let Wire {
        header,
        kind,
        v,
        data,
    } = read_wire(body)?;
    let text = data.as_bytes();
    let mut again = Vec::new();
    write_body(&mut again, &header, &kind, v, text)?;
    if again != body || !text.starts_with(b"{") {
        canon::check(body)?;
        return Err(BodyError::Form(
            "not the closed header in canonical form".to_owned(),
        ));
    }
    let payload = match registry::decode(&kind, v, data) {
        Ok((payload, typed)) if typed == text => Ok(payload),
        other => {
            canon::check(body)?;
            // Canonical, and read as something that would be written otherwise: an absent field as null, an
            // object as a list.
            Err(other.err().unwrap_or_else(|| PayloadError::Schema {
                kind: known_text(&kind),
                error: "expected each field in its one form".to_owned(),
            }))
        }
    };
    Ok(DecodedBody {
        id: EventId(Digest::sha256(body)),
        header,
        v,
        payload,
    })
}

/// Reads a body that was found canonical when it was admitted, and whose bytes a checked root covers:
/// everything of [`decode`] but the re-encoding.
///
/// # Errors
/// As [`decode`].
pub fn decode_admitted(body: &[u8]) -> Result<DecodedBody, BodyError> {
    let Wire {
        header,
        kind,
        v,
        data,
    } = admitted(body)?;
    let payload = registry::decode_admitted(&kind, v, data);
    Ok(DecodedBody {
        id: EventId(Digest::sha256(body)),
        header,
        v,
        payload,
    })
}

fn admitted(body: &[u8]) -> Result<Wire<'_>, BodyError> {
    match template::read(body) {
        Some(wire) if body.len() <= BODY_LEN_MAX => Ok(wire),
        _ => read_wire(body),
    }
}

/// What an event measured, under its natural key, of a body as for [`decode_admitted`]; `None` where it measured nothing.
///
/// # Errors
/// As [`decode_admitted`], and of a payload that is unknown or broken, in words.
pub fn measured_admitted(body: &[u8]) -> Result<Option<(Digest, i64)>, String> {
    if let Some(said) = template::scored(body).filter(|_| body.len() <= BODY_LEN_MAX) {
        let drawn = (said.item, said.draw);
        let key = registry::score_key(said.experiment, said.judge, said.policy, drawn);
        return Ok(Some((key, said.score.value())));
    }
    measured_any(body)
}

/// As [`measured_admitted`], whatever was measured.
fn measured_any(body: &[u8]) -> Result<Option<(Digest, i64)>, String> {
    let said = template::said(body).filter(|_| body.len() <= BODY_LEN_MAX);
    let (experiment, kind, v, data) = if let Some(said) = said {
        said
    } else {
        let wire = read_wire(body).map_err(|error| error.to_string())?;
        (wire.header.experiment, wire.kind, wire.v, wire.data)
    };
    let payload = registry::decode_admitted(&kind, v, data).map_err(|error| error.to_string())?;
    let natural_key = payload.natural_key(experiment.as_ref());
    Ok(natural_key.zip(payload.measured()))
}

/// The kind of a body as for [`decode_admitted`]; `None` where there is none in the registry.
pub fn kind_admitted(body: &[u8]) -> Option<Kind> {
    admitted(body).ok()?.kind.parse().ok()
}

/// The registry's text of a kind that decoded.
fn known_text(kind: &str) -> &'static str {
    kind.parse().map_or("unknown", Kind::as_str)
}

/// The header of a body, its payload still text.
pub(super) struct Wire<'a> {
    pub(super) header: Header,
    pub(super) kind: Cow<'a, str>,
    pub(super) v: u32,
    pub(super) data: &'a str,
}

fn read_wire(body: &[u8]) -> Result<Wire<'_>, BodyError> {
    if body.len() > BODY_LEN_MAX {
        return Err(BodyError::TooLong(body.len()));
    }
    let fields: Fields<'_> =
        serde_json::from_slice(body).map_err(|error| BodyError::Form(error.to_string()))?;
    if fields.refs.len() > REFS_MAX {
        return Err(BodyError::TooManyRefs(fields.refs.len()));
    }
    let header = Header {
        at: fields.at,
        author: fields.author,
        author_seq: fields.author_seq.value(),
        experiment: fields.experiment,
        ledger: fields.ledger.into(),
        refs: fields.refs,
        seen: fields.seen,
    };
    Ok(Wire {
        header,
        kind: fields.kind,
        v: fields.v,
        data: fields.data.get(),
    })
}

impl Event {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.payload.kind()
    }

    /// The experiment that it belongs to.
    pub fn experiment(&self) -> Option<&ExperimentId> {
        self.header.experiment.as_ref()
    }

    /// What it says, where it is of this kind.
    pub fn said<T: Statement>(&self) -> Option<&T> {
        self.payload.said()
    }

    /// The digest under which a second event of the same natural key would be found, or `None` for kinds
    /// that may repeat.
    pub fn natural_key(&self) -> Option<Digest> {
        self.payload.natural_key(self.experiment())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::record::NoteRecorded;

    fn bodies() -> Vec<Vec<u8>> {
        let digest = |n: u8| Digest::sha256(&[n]);
        let header = |experiment: Option<&str>, refs: u8, seen| Header {
            at: Timestamp::EPOCH,
            author: KeyId(digest(0)),
            author_seq: u64::from(refs) * 10,
            experiment: experiment.map(|id| id.parse().unwrap()),
            ledger: "ledger.example/test".into(),
            refs: (0..refs).map(|n| EventId(digest(n))).collect(),
            seen,
        };
        let seen = SeenCheckpoint {
            root: Root(digest(7)),
            size: Count::new(12).unwrap(),
        };
        let headers = [
            header(None, 0, None),
            header(Some("exp-1"), 1, Some(seen)),
            header(Some("Zürich"), 3, Some(seen)),
            header(Some("a\"b\\c"), 2, Some(seen)),
        ];
        let texts = ["plain", "\",\"experiment\":null,\"kind\":\"", "{[}\n\\"];
        let mut bodies = Vec::new();
        for header in headers {
            for text in texts {
                let payload = Payload::from(NoteRecorded {
                    blob: None,
                    text: crate::id::Text::new(text).unwrap(),
                });
                let header = header.clone();
                bodies.push(Draft { header, payload }.to_body().unwrap());
            }
        }
        bodies
    }

    #[test]
    fn the_template_reads_what_the_general_reader_reads() {
        for body in bodies() {
            let quoted = body.windows(4).any(|part| part == b"a\\\"b");
            assert_eq!(template::read(&body).is_some(), !quoted);
            let wire = template::read(&body);
            let said = wire.map(|of| (of.header.experiment, of.kind, of.v, of.data));
            assert_eq!(template::said(&body), said);
            assert_eq!(decode(&body), decode_any(&body));
            assert!(decode(&body).unwrap().payload.is_ok());
            assert_eq!(decode_admitted(&body), decode(&body));
        }
    }

    #[test]
    fn what_was_measured_is_read_without_the_rest() {
        use crate::payload::BlobRef;
        use crate::payload::MediaType;
        use crate::payload::PrivateRef;
        use crate::payload::judge::ScoreRecorded;
        for body in bodies() {
            assert_eq!(measured_admitted(&body), Ok(None));
            let Ok(DecodedBody { mut header, .. }) = decode(&body) else {
                unreachable!()
            };
            header.experiment = header.experiment.or(Some("exp-1".parse().unwrap()));
            for item in [
                "unit 1",
                "Zürich",
                "a \"unit\",\"experiment\":null,\"kind\":",
            ] {
                for (score_micro, private) in [(-250_000, 0), (0, 1), (1_000_000, 0)] {
                    let private = (private > 0).then(|| PrivateRef {
                        blob: BlobRef {
                            blake3: Digest([1; 32]),
                            bytes: Count::new(9).unwrap(),
                            media: MediaType::new("text/plain").unwrap(),
                        },
                        commitment: Digest([2; 32]),
                        subject: Digest([3; 32]),
                    });
                    let score = ScoreRecorded {
                        call: None,
                        draw: Count::new(3).unwrap(),
                        item: item.parse().unwrap(),
                        judge: "judge-1".parse().unwrap(),
                        policy: "policy-1".parse().unwrap(),
                        prompt: private.clone(),
                        response: private,
                        score_micro: clover_num::Micro::new(score_micro).unwrap(),
                    };
                    let header = header.clone();
                    let payload = Payload::from(score);
                    let body = Draft { header, payload }.to_body().unwrap();
                    let event = decode(&body).unwrap().into_event();
                    let key = event.unwrap().natural_key().unwrap();
                    let found = measured_admitted(&body);
                    assert_eq!(found, Ok(Some((key, score_micro))));
                    changed_is_measured_as_by_the_general_reader(&body);
                }
            }
        }
        assert!(measured_admitted(b"{}").is_err());
    }

    /// What the template does not take is left to the general reader; what it takes is read as there.
    fn changed_is_measured_as_by_the_general_reader(body: &[u8]) {
        let same = |changed: &[u8]| assert_eq!(measured_admitted(changed), measured_any(changed));
        for at in 0..body.len() {
            for flip in [1, 2, 0x10, 0x20, 0x80] {
                let mut changed = body.to_vec();
                changed[at] ^= flip;
                same(&changed);
            }
            for byte in [b' ', b'0', b'-', b'"', b'}', b',', 0x7f] {
                let mut changed = body.to_vec();
                changed.insert(at, byte);
                same(&changed);
            }
            let mut changed = body.to_vec();
            changed.remove(at);
            same(&changed);
        }
    }

    #[test]
    fn no_changed_body_is_read_otherwise_by_the_template() {
        for body in bodies() {
            for at in 0..body.len() {
                for flip in [1, 2, 0x10, 0x20, 0x80] {
                    let mut changed = body.clone();
                    changed[at] ^= flip;
                    assert_eq!(decode(&changed), decode_any(&changed), "byte {at}, {flip}");
                }
                for byte in [b' ', b'0', b'"', b'}', b','] {
                    let mut changed = body.clone();
                    changed.insert(at, byte);
                    assert_eq!(decode(&changed), decode_any(&changed), "{byte} at {at}");
                }
                let mut changed = body.clone();
                changed.remove(at);
                assert_eq!(decode(&changed), decode_any(&changed), "without byte {at}");
            }
        }
    }
}
