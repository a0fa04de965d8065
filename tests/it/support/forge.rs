//! Writes ledgers around the program: entry lines signed by hand, valid or not, under a signed checkpoint.

use std::collections::BTreeMap;
use std::io::BufReader;

use clover::event::Payload;
use clover::event::entry;
use clover::event::header::PAYLOAD_TYPE;
use clover::event::id::Base64Bytes;
use clover::event::id::EventId;
use clover::event::payload::Role;
use clover::event::payload::Roles;
use clover::event::payload::custody::LedgerCreated;
use clover::event::payload::custody::OwnerKey;
use clover::event::payload::custody::Policy;
use clover::event::payload::custody::Separation;
use clover::ground::ambient::Ambient;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::MemoryTiles;
use clover::ground::note::Checkpoint;
use clover::ground::note::Origin;
use clover::ground::note::SignedCheckpoint;
use clover::ground::note::VerifierKey;
use clover::ground::sign;
use clover::ground::sign::KeyId;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use clover::ledger::SignedEvent;
use clover::ledger::verify;
use clover::ledger::verify::EntryLines;
use clover::ledger::verify::Report;
use clover::ledger::verify::VerifyOptions;
use clover::num::Count;
use clover::workflow::RULEBOOK;
use serde_json::Value;
use serde_json::json;

use super::ORIGIN;
use super::signer;
use super::start;

/// One entry to be written, every part of it free to be wrong.
pub struct Line {
    /// The body, written in canonical form.
    pub body: Value,
    /// Other body bytes instead of `body`'s.
    pub raw: Option<Vec<u8>>,
    /// The envelope's key.
    pub keyid: KeyId,
    /// The envelope's position.
    pub seq: u64,
    pub recorded_at: Timestamp,
    /// Another signature than the signer's.
    pub signature: Option<[u8; 64]>,
    /// Another line than that of all these parts.
    pub text: Option<Vec<u8>>,
}

impl Line {
    pub fn body_bytes(&self) -> Vec<u8> {
        self.raw
            .clone()
            .unwrap_or_else(|| canon::to_bytes(&self.body).unwrap())
    }

    pub fn signed(&self, signer: &Signer) -> SignedEvent {
        let body = self.body_bytes();
        let signature = self
            .signature
            .unwrap_or_else(|| signer.sign(&sign::pae(PAYLOAD_TYPE, &body)));
        SignedEvent::new(body, self.keyid, signature)
    }

    pub fn id(&self) -> EventId {
        EventId(Digest::sha256(&self.body_bytes()))
    }
}

/// A body as its author would write it.
pub fn body(
    at: Timestamp,
    author: KeyId,
    author_seq: u64,
    payload: &Payload,
    experiment: Option<&str>,
    ledger: &str,
    seen: Option<(u64, Digest)>,
) -> Value {
    json!({
        "at": at.to_string(),
        "author": author.to_string(),
        "author_seq": author_seq,
        "data": serde_json::to_value(payload).unwrap(),
        "experiment": experiment,
        "kind": payload.kind().as_str(),
        "ledger": ledger,
        "refs": [],
        "seen": seen.map(|(size, root)| json!({"root": root.to_base64(), "size": size})),
        "v": payload.kind().version(),
    })
}

/// A log written by hand.
pub struct Forge {
    pub lines: Vec<Vec<u8>>,
    /// `recorded_at` of what is written next.
    pub now: Timestamp,
    pub log_key: Signer,
    pub tiles: MemoryTiles,
    /// Roots by size, from size 1.
    pub roots: Vec<Digest>,
    pub counters: BTreeMap<KeyId, u64>,
}

impl Forge {
    /// A log whose owner, `signer(1)`, has these roles.
    pub fn new(separation: Separation, roles: &[Role]) -> Self {
        let mut forge = Self::empty();
        let owner = signer(1);
        let line = forge.genesis(&owner, separation, roles);
        forge.push(&owner, &line);
        forge
    }

    pub fn empty() -> Self {
        Self {
            lines: Vec::new(),
            now: start(),
            log_key: signer(2),
            tiles: MemoryTiles::new(),
            roots: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    pub fn genesis(&self, owner: &Signer, separation: Separation, roles: &[Role]) -> Line {
        let origin: Origin = ORIGIN.parse().unwrap();
        let created = LedgerCreated {
            rulebook: None,
            format: Count::new(2).unwrap(),
            log_vkey: clover::event::id::Vkey::new(self.vkey()).unwrap(),
            origin,
            owner: OwnerKey {
                holder: "Ada".parse().unwrap(),
                human: true,
                public_key: Base64Bytes(owner.public_bytes()),
                roles: Roles::new(roles.iter().copied()).unwrap(),
            },
            policy: Policy { separation },
        };
        let mut line = self.line(owner, &created.into(), None);
        line.body["seen"] = Value::Null;
        line
    }

    pub fn vkey(&self) -> VerifierKey {
        let name: Origin = ORIGIN.parse().unwrap();
        VerifierKey::ed25519(name, self.log_key.public_bytes()).unwrap()
    }

    pub fn size(&self) -> u64 {
        self.tiles.size()
    }

    /// The line that an honest author would write next.
    pub fn line(&self, signer: &Signer, payload: &Payload, experiment: Option<&str>) -> Line {
        let seen = self.roots.last().map(|root| (self.size(), *root));
        let next = self.counters.get(&signer.id()).copied().unwrap_or(0);
        Line {
            body: body(
                self.now,
                signer.id(),
                next,
                payload,
                experiment,
                ORIGIN,
                seen,
            ),
            raw: None,
            keyid: signer.id(),
            seq: self.size(),
            recorded_at: self.now,
            signature: None,
            text: None,
        }
    }

    /// Writes a line whatever it says.
    pub fn push(&mut self, signer: &Signer, line: &Line) -> EventId {
        let signed = line.signed(signer);
        let text = line.text.clone().unwrap_or_else(|| {
            let mut out = Vec::new();
            entry::write_line(
                &mut out,
                line.seq,
                line.recorded_at,
                signed.body(),
                &signed.signer(),
                signed.signature(),
            );
            out
        });
        self.tiles.push(merkle::leaf_hash(&text));
        self.roots.push(self.tiles.root());
        self.lines.push(text);
        *self.counters.entry(signer.id()).or_default() += 1;
        line.id()
    }

    /// Writes an honest event.
    pub fn say(
        &mut self,
        signer: &Signer,
        payload: impl Into<Payload>,
        experiment: Option<&str>,
    ) -> EventId {
        let line = self.line(signer, &payload.into(), experiment);
        self.push(signer, &line)
    }

    pub fn checkpoint(&self) -> SignedCheckpoint {
        self.checkpoint_by(&[(self.vkey(), &self.log_key)])
    }

    pub fn checkpoint_by(&self, keys: &[(VerifierKey, &Signer)]) -> SignedCheckpoint {
        let origin: Origin = ORIGIN.parse().unwrap();
        let checkpoint = Checkpoint::new(origin, self.size(), self.tiles.root());
        let keys: Vec<_> = keys
            .iter()
            .map(|(vkey, signer)| (vkey.clone(), signer.key()))
            .collect();
        SignedCheckpoint::sign(checkpoint, &keys).unwrap()
    }

    pub fn jsonl(&self) -> Vec<u8> {
        let mut out = self.lines.join(&b'\n');
        out.push(b'\n');
        out
    }

    pub fn verify(&self) -> Report {
        self.verify_with(&VerifyOptions::default())
    }

    pub fn verify_with(&self, options: &VerifyOptions) -> Report {
        verify_jsonl(&self.jsonl(), Some(self.checkpoint()), options)
    }
}

/// Verifies entry lines with the program's own verifier.
pub fn verify_jsonl(
    jsonl: &[u8],
    checkpoint: Option<SignedCheckpoint>,
    options: &VerifyOptions,
) -> Report {
    let lines = EntryLines {
        lines: Box::new(BufReader::new(jsonl)),
        checkpoint,
        blobs: None,
    };
    let ambient = std::sync::Arc::new(Ambient::system());
    verify::verify_lines(lines, options, &RULEBOOK, &ambient, &mut |_, _| {}).unwrap()
}
