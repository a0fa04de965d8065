//! What an entry claims, before any of it is judged.

use crate::event::Event;
use crate::event::Header;
use crate::event::Payload;
use crate::event::header::Decoded;
use crate::event::id::EventId;
use crate::event::registry::PayloadError;
use crate::ground::sign::KeyId;
use crate::ground::time::Timestamp;

/// A body that was read: an event, or a header whose payload is none.
#[derive(Debug)]
pub(super) enum Said {
    Event(Event),
    Broken(Decoded),
}

impl From<Decoded> for Said {
    fn from(decoded: Decoded) -> Self {
        match decoded {
            Decoded {
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

impl Said {
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
    pub(super) fn new(seq: u64, recorded_at: Timestamp, keyid: KeyId, said: &'a Said) -> Self {
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
