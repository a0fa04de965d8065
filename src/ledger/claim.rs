//! What an entry claims, before any of it is judged.

use std::sync::LazyLock;

use clover_event::Event;
use clover_event::Header;
use clover_event::Payload;
use clover_event::header::DecodedBody;
use clover_event::id::EventId;
use clover_event::registry::PayloadError;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use memchr::memmem::Finder;

/// A body that was read: an event, or a header whose payload is none.
#[derive(Debug)]
pub(super) enum Body {
    Event(Event),
    Broken(DecodedBody),
}

impl From<DecodedBody> for Body {
    fn from(decoded: DecodedBody) -> Self {
        match decoded {
            DecodedBody {
                id,
                header,
                v,
                payload: Ok(payload),
            } => Self::Event(Event {
                id,
                header,
                payload,
                v,
            }),
            broken => Self::Broken(broken),
        }
    }
}

impl Body {
    pub(super) fn id(&self) -> EventId {
        match self {
            Self::Event(event) => event.id,
            Self::Broken(broken) => broken.id,
        }
    }

    pub(super) fn header(&self) -> &Header {
        match self {
            Self::Event(event) => &event.header,
            Self::Broken(broken) => &broken.header,
        }
    }

    /// The text of its kind, known or not.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Event(event) => event.kind().as_str(),
            Self::Broken(broken) => broken.kind(),
        }
    }

    fn v(&self) -> u32 {
        match self {
            Self::Event(event) => event.v,
            Self::Broken(broken) => broken.v,
        }
    }

    fn payload(&self) -> Result<&Payload, &PayloadError> {
        match self {
            Self::Event(event) => Ok(&event.payload),
            Self::Broken(broken) => broken.payload.as_ref(),
        }
    }
}

/// What an entry claims about itself, before any of it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    /// Position.
    pub seq: u64,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// The envelope's key.
    pub keyid: KeyId,
    /// The body's header.
    pub header: &'a Header,
    /// Payload version as it stands.
    pub v: u32,
    /// The payload, or why it does not decode.
    pub payload: Result<&'a Payload, &'a PayloadError>,
}

impl<'a> Claim<'a> {
    pub(super) fn new(seq: u64, recorded_at: Timestamp, keyid: KeyId, said: &'a Body) -> Self {
        Self {
            seq,
            recorded_at,
            keyid,
            header: said.header(),
            v: said.v(),
            payload: said.payload(),
        }
    }
}

const BLOB_OPEN: &[u8] = b"{\"blake3\":\"";
static BLOB_FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(BLOB_OPEN));

/// Blobs that a canonical body names, as (BLAKE3, length). A body is canonical and its payload closed, so
/// the text `{"blake3":"` opens a blob reference and nothing else: inside a string its quotes are escaped.
pub fn blobs(body: &[u8]) -> Vec<(Digest, u64)> {
    const MIDDLE: &[u8] = b"\",\"bytes\":";
    let mut found = Vec::new();
    for at in BLOB_FINDER.find_iter(body) {
        let Some((hex, rest)) = body[at..]
            .strip_prefix(BLOB_OPEN)
            .and_then(|rest| rest.split_at_checked(64))
        else {
            continue;
        };
        let digest = std::str::from_utf8(hex).ok().and_then(Digest::from_hex);
        let digits: Vec<u8> = match rest.strip_prefix(MIDDLE) {
            Some(rest) => rest
                .iter()
                .copied()
                .take_while(u8::is_ascii_digit)
                .collect(),
            None => continue,
        };
        let length = std::str::from_utf8(&digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        if let (Some(digest), Some(length)) = (digest, length) {
            found.push((digest, length));
        }
    }
    found
}
