//! The entry line: one leaf of the log.
//!
//! `{"envelope":{"payload":"<base64 body>","payloadType":"application/vnd.clover.event+json",
//! "signatures":[{"keyid":"<64 hex>","sig":"<base64>"}]},"recorded_at":"<UTC micros>","seq":N}`,
//! one line of JCS JSON of at most 65,535 bytes without its newline. The form is fixed, so it is written
//! and read as a template: what differs from its own re-encoding is not a line.

use clover_ground::base64;
use clover_ground::digest::Digest;
use clover_ground::merkle;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signed;
use clover_ground::sign::Unverified;
use clover_ground::time::TEXT_LEN;
use clover_ground::time::Timestamp;
use clover_num::INTEGER_MAX;

use crate::header::PAYLOAD_TYPE;

/// Longest entry line in bytes, newline excluded (C2SP tlog-tiles holds lengths in 16 bits).
pub const LINE_LEN_MAX: usize = 65_535;

const OPEN: &[u8] = br#"{"envelope":{"payload":""#;
const KEYID: &[u8] =
    br#"","payloadType":"application/vnd.clover.event+json","signatures":[{"keyid":""#;
const SIG: &[u8] = br#"","sig":""#;
const RECORDED: &[u8] = br#""}]},"recorded_at":""#;
const SEQ: &[u8] = br#"","seq":"#;
const SIG_LEN: usize = 88;
const ENVELOPE_HEAD: &[u8] = br#"{"envelope":"#;
/// Bytes of `,"recorded_at":"…","seq":0}`.
const ENVELOPE_TAIL_LEN: usize = 16 + TEXT_LEN + 10;

/// A line of the log, with nothing about it believed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position in the log, from 0.
    pub seq: u64,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// The signed body as its envelope holds it.
    pub signed: Signed<Unverified>,
}

/// Why bytes are not an entry line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than 65,535 bytes.
    #[error("{0} bytes, at most 65535")]
    TooLong(usize),
    /// Not the fixed form.
    #[error("not an entry line at {at}: expected {expected}")]
    Form {
        /// The part of the line.
        at: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// Not the envelope of a signed event in its fixed form.
    #[error("not a signed event as clover sign writes it: other bytes at {at}")]
    Envelope {
        /// The part of the envelope.
        at: &'static str,
    },
}

/// Writes the entry line (no newline) of these parts into `out`.
pub fn write_line(
    out: &mut Vec<u8>,
    seq: u64,
    recorded_at: Timestamp,
    body: &[u8],
    signer: &KeyId,
    signature: &[u8; 64],
) {
    debug_assert!(
        KEYID
            .windows(PAYLOAD_TYPE.len())
            .any(|part| part == PAYLOAD_TYPE.as_bytes())
    );
    out.reserve(body.len() * 4 / 3 + 400);
    out.extend_from_slice(OPEN);
    write_base64(out, body);
    out.extend_from_slice(KEYID);
    let at = out.len();
    out.resize(at + 64, 0);
    signer.0.write_hex(&mut out[at..]);
    out.extend_from_slice(SIG);
    write_base64(out, signature);
    out.extend_from_slice(RECORDED);
    out.extend_from_slice(&recorded_at.to_text());
    out.extend_from_slice(SEQ);
    out.extend_from_slice(seq.to_string().as_bytes());
    out.push(b'}');
}

/// Writes the DSSE envelope of a signed body, the `envelope` of its entry line, into `out`.
pub fn write_envelope(out: &mut Vec<u8>, body: &[u8], signer: &KeyId, signature: &[u8; 64]) {
    let mut line = Vec::new();
    write_line(&mut line, 0, Timestamp::EPOCH, body, signer, signature);
    line.truncate(line.len() - ENVELOPE_TAIL_LEN);
    out.extend_from_slice(&line[ENVELOPE_HEAD.len()..]);
}

/// Reads a DSSE envelope in the exact form of an entry line.
///
/// # Errors
/// [`LineError`] for anything but the canonical form.
pub fn parse_envelope(envelope: &[u8]) -> Result<Signed<Unverified>, LineError> {
    let mut line = Vec::with_capacity(envelope.len() + 80);
    line.extend_from_slice(ENVELOPE_HEAD);
    line.extend_from_slice(envelope);
    line.extend_from_slice(br#","recorded_at":"1970-01-01T00:00:00.000000Z","seq":0}"#);
    let parsed = Entry::parse(&line).map(|entry| entry.signed);
    parsed.map_err(|error| match error {
        LineError::Form { at, .. } => LineError::Envelope { at },
        other => other,
    })
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    base64::encode_append(out, bytes);
}

impl Entry {
    /// The line without its newline.
    pub fn to_line(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let signed = &self.signed;
        write_line(
            &mut out,
            self.seq,
            self.recorded_at,
            signed.body(),
            &signed.signer(),
            signed.signature(),
        );
        out
    }

    /// Reads a line (no newline).
    ///
    /// # Errors
    /// [`LineError`] for anything but the canonical form.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        let form = |at, expected| LineError::Form { at, expected };
        if line.len() > LINE_LEN_MAX {
            return Err(LineError::TooLong(line.len()));
        }
        let rest = line
            .strip_prefix(OPEN)
            .ok_or(form("envelope", "{\"envelope\":{\"payload\":\""))?;
        let end = rest
            .iter()
            .position(|&c| c == b'"')
            .ok_or(form("payload", "base64 text"))?;
        let body =
            base64::decode(&rest[..end]).ok_or(form("payload", "canonical padded base64"))?;
        let rest = rest[end..]
            .strip_prefix(KEYID)
            .ok_or(form("payloadType", PAYLOAD_TYPE))?;
        let (keyid, rest) = rest
            .split_at_checked(64)
            .ok_or(form("keyid", "64 hex digits"))?;
        let keyid = text(keyid)
            .and_then(Digest::from_hex)
            .ok_or(form("keyid", "64 lower-case hex digits"))?;
        let rest = rest.strip_prefix(SIG).ok_or(form("sig", "\",\"sig\":\""))?;
        let (sig, rest) = rest
            .split_at_checked(SIG_LEN)
            .ok_or(form("sig", "64 bytes in base64"))?;
        let sig = base64::decode(sig).and_then(|sig| <[u8; 64]>::try_from(sig).ok());
        let sig = sig.ok_or(form("sig", "64 bytes in canonical padded base64"))?;
        let rest = rest
            .strip_prefix(RECORDED)
            .ok_or(form("signatures", "exactly one signature"))?;
        let (at, rest) = rest
            .split_at_checked(TEXT_LEN)
            .ok_or(form("recorded_at", "a UTC time"))?;
        let recorded_at = text(at).and_then(Timestamp::parse);
        let recorded_at = recorded_at.ok_or(form("recorded_at", "a UTC time with six decimals"))?;
        let rest = rest.strip_prefix(SEQ).ok_or(form("seq", "\",\"seq\":"))?;
        let digits = rest.strip_suffix(b"}").ok_or(form("end", "}"))?;
        let seq = text(digits).and_then(|digits| {
            let seq: u64 = digits.parse().ok()?;
            (seq <= INTEGER_MAX && seq.to_string() == digits).then_some(seq)
        });
        let seq = seq.ok_or(form(
            "seq",
            "an integer from 0 to 2^53-1 without leading zeros",
        ))?;
        Ok(Self {
            seq,
            recorded_at,
            signed: Signed::new(body, KeyId(keyid), sig),
        })
    }

    /// RFC 6962 leaf hash of the line.
    pub fn leaf(&self) -> Digest {
        merkle::leaf_hash(&self.to_line())
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Vec<u8> {
        let signed = Signed::new(b"{}".to_vec(), KeyId(Digest([7; 32])), [9; 64]);
        Entry {
            seq: 12,
            recorded_at: Timestamp::EPOCH,
            signed,
        }
        .to_line()
    }

    #[test]
    fn a_line_reads_back_and_is_canonical() {
        let line = line();
        clover_ground::canon::check(&line).unwrap();
        assert_eq!(Entry::parse(&line).unwrap().to_line(), line);
    }

    #[test]
    fn an_envelope_is_the_envelope_of_its_line() {
        let entry = Entry::parse(&line()).unwrap();
        let mut envelope = Vec::new();
        let signed = &entry.signed;
        write_envelope(
            &mut envelope,
            signed.body(),
            &signed.signer(),
            signed.signature(),
        );
        let line = line();
        let end = line
            .windows(15)
            .position(|part| part == b",\"recorded_at\":")
            .unwrap();
        assert_eq!(envelope, line[ENVELOPE_HEAD.len()..end]);
        assert_eq!(parse_envelope(&envelope).unwrap(), entry.signed);
    }

    #[test]
    fn no_changed_byte_reads_back_as_the_same_line() {
        let line = line();
        for at in 0..line.len() {
            for flip in [1, 2, 0x20, 0xff] {
                let mut changed = line.clone();
                changed[at] ^= flip;
                if let Ok(entry) = Entry::parse(&changed) {
                    assert_eq!(entry.to_line(), changed, "byte {at} flipped by {flip}");
                }
            }
            assert!(Entry::parse(&line[..at]).is_err());
        }
    }
}
