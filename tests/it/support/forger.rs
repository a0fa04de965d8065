//! Someone who holds every key of the samples and writes around the ledger: histories are edited as JSON,
//! then numbered, bound to their own tree and signed again, so that only the intended breach is left.

use std::collections::BTreeMap;

use clover::event::Entry;
use clover::event::PAYLOAD_TYPE;
use clover::event::entry;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ground::merkle;
use clover::ground::merkle::Tiler;
use clover::ground::note::Checkpoint;
use clover::ground::note::KeyName;
use clover::ground::note::SignedCheckpoint;
use clover::ground::sign::KeyId;
use clover::ground::sign::Signed;
use clover::ground::sign::Signer;
use clover::ground::time::Timestamp;
use serde_json::Value;
use serde_json::json;

use super::samples::AUTHORS;
use super::samples::ORIGIN;
use super::samples::log_vkey;
use super::signer;

/// One event of a history that is being written.
#[derive(Clone, Debug)]
pub struct Item {
    /// The body as JSON.
    pub body: Value,
    /// When the ledger took it in.
    pub recorded_at: Timestamp,
    /// Id under which later events of the edited history name it.
    pub was: String,
    /// `author_seq` stands as it is.
    pub numbered: bool,
    /// `seen` stands as it is.
    pub bound: bool,
    /// Body bytes to sign in place of the canonical ones.
    pub raw: Option<Vec<u8>>,
    /// Who signs, where it is not the author.
    pub signer: Option<u8>,
    /// The envelope's key id, where it is not the author.
    pub keyid: Option<KeyId>,
    /// The signature, where nobody signs again.
    pub signature: Option<[u8; 64]>,
    /// The number in the line, where it is not the position.
    pub seq: Option<u64>,
}

/// A history that is being written.
#[derive(Clone, Debug)]
pub struct World {
    /// Its events.
    pub items: Vec<Item>,
    made_up: u64,
}

/// Entry lines with the root at every size.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// Lines without newlines.
    pub lines: Vec<Vec<u8>>,
    /// Roots, from size 0.
    pub roots: Vec<Digest>,
}

/// The key of every author, by its id.
pub fn keys() -> BTreeMap<String, Signer> {
    let keys = AUTHORS.iter().map(|seed| signer(*seed));
    keys.map(|key| (key.id().to_string(), key)).collect()
}

impl Item {
    /// An event that nobody has seen yet.
    pub fn new(body: Value, recorded_at: Timestamp, was: String) -> Self {
        Self {
            body,
            recorded_at,
            was,
            numbered: false,
            bound: false,
            raw: None,
            signer: None,
            keyid: None,
            signature: None,
            seq: None,
        }
    }
}

impl World {
    /// The history of these lines.
    pub fn of(lines: &[Vec<u8>]) -> Self {
        let items = lines.iter().map(|line| {
            let entry = Entry::parse(line).unwrap();
            let body = entry.signed.body();
            let said = serde_json::from_slice(body).unwrap();
            let was = Digest::sha256(body).to_hex();
            Item::new(said, entry.recorded_at, was)
        });
        Self {
            items: items.collect(),
            made_up: 0,
        }
    }

    /// Writes one more event a minute after the last, which its author has seen.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are written where they are said"
    )]
    pub fn say(&mut self, who: u8, kind: &str, v: u64, experiment: Value, data: Value) -> usize {
        let recorded_at = self.items.last().unwrap().recorded_at.plus_seconds(60);
        self.made_up += 1;
        let body = json!({
            "at": recorded_at.to_string(), "author": signer(who).id().to_string(), "author_seq": 0, "data": data,
            "experiment": experiment, "kind": kind, "ledger": ORIGIN, "refs": [],
            "seen": {"root": Digest([0; 32]).to_base64(), "size": self.items.len()}, "v": v,
        });
        let was = Digest::sha256(&self.made_up.to_be_bytes()).to_hex();
        self.items.push(Item::new(body, recorded_at, was));
        self.items.len() - 1
    }

    /// Says again what stands at a position, by the same author.
    pub fn repeat(&mut self, at: usize) -> usize {
        let body = self.items[at].body.clone();
        let author = body["author"].as_str().unwrap().to_owned();
        let (kind, v) = (body["kind"].as_str().unwrap(), body["v"].as_u64().unwrap());
        let new = self.say(
            AUTHORS[0],
            kind,
            v,
            body["experiment"].clone(),
            body["data"].clone(),
        );
        self.items[new].body["author"] = author.into();
        self.items[new].body["refs"] = body["refs"].clone();
        new
    }

    /// Takes an event out, so that nobody misses it.
    pub fn remove(&mut self, at: usize) {
        self.items.remove(at);
        for item in &mut self.items[at..] {
            if let Some(size) = item.body["seen"]["size"].as_u64()
                && size > at as u64
            {
                item.body["seen"]["size"] = (size - 1).into();
            }
        }
    }

    /// Numbers, binds and signs everything.
    pub fn seal(&self) -> Sealed {
        self.seal_with(&keys())
    }

    /// The same with these keys, by their ids.
    pub fn seal_with(&self, keys: &BTreeMap<String, Signer>) -> Sealed {
        let mut sealing = Sealer::new(keys);
        for item in &self.items {
            sealing.push(item);
        }
        sealing.sealed
    }
}

/// A history that is numbered, bound and signed, one event after the other.
pub struct Sealer<'k> {
    keys: &'k BTreeMap<String, Signer>,
    tiler: Tiler,
    next: BTreeMap<String, u64>,
    ids: BTreeMap<String, String>,
    /// What is sealed so far.
    pub sealed: Sealed,
}

impl<'k> Sealer<'k> {
    pub fn new(keys: &'k BTreeMap<String, Signer>) -> Self {
        Self {
            keys,
            tiler: Tiler::new(),
            next: BTreeMap::new(),
            ids: BTreeMap::new(),
            sealed: Sealed {
                lines: Vec::new(),
                roots: vec![merkle::empty_root()],
            },
        }
    }

    /// The body of an event, if it came next.
    pub fn body(&self, item: &Item) -> Value {
        let mut body = item.body.clone();
        if !item.numbered {
            let author = body.get("author").and_then(Value::as_str);
            let number = self.next.get(author.unwrap_or_default());
            body["author_seq"] = number.copied().unwrap_or_default().into();
        }
        if !item.bound {
            bind(&mut body, &self.sealed.roots);
        }
        rename(&mut body, &self.ids);
        body
    }

    /// Signs the next event; its body bytes.
    pub fn push(&mut self, item: &Item) -> Vec<u8> {
        let body = self.body(item);
        let author = body.get("author").and_then(Value::as_str);
        let author = author.unwrap_or_default().to_owned();
        let number = self.next.entry(author.clone()).or_default();
        if let Some(at) = body.get("author_seq").and_then(Value::as_u64) {
            *number = at + 1;
        }
        // What has no canonical form, such as 2^53, is signed in the plain one.
        let plain = |_| serde_json::to_vec(&body).unwrap();
        let canonical = || canon::to_bytes(&body).unwrap_or_else(plain);
        let bytes = item.raw.clone().unwrap_or_else(canonical);
        self.ids
            .insert(item.was.clone(), Digest::sha256(&bytes).to_hex());
        let other = item.signer.map(signer);
        let first = signer(AUTHORS[0]);
        let key = other.as_ref().or_else(|| self.keys.get(&author));
        let signed = Signed::sign(PAYLOAD_TYPE, bytes.clone(), key.unwrap_or(&first));
        let keyid = Digest::from_hex(&author).map_or(signed.signer(), KeyId);
        let mut line = Vec::new();
        entry::write_line(
            &mut line,
            item.seq.unwrap_or(self.sealed.lines.len() as u64),
            item.recorded_at,
            signed.body(),
            &item.keyid.unwrap_or(keyid),
            &item.signature.unwrap_or(*signed.signature()),
        );
        self.tiler.push(merkle::leaf_hash(&line));
        self.sealed.lines.push(line);
        self.sealed.roots.push(self.tiler.root());
        bytes
    }
}

/// Names the roots of the tree that is being built.
fn bind(body: &mut Value, roots: &[Digest]) {
    let size = body["seen"]["size"]
        .as_u64()
        .and_then(|size| usize::try_from(size).ok());
    if let Some(root) = size.and_then(|size| roots.get(size)) {
        body["seen"]["root"] = root.to_base64().into();
    }
}

/// Members of a body that name one other entry.
const NAMING: [&str; 16] = [
    "acceptance",
    "battery",
    "breach",
    "call",
    "charge",
    "commit",
    "deployment",
    "parent",
    "previous",
    "promotion",
    "recorded",
    "restored",
    "sealed",
    "subject",
    "transport",
    "waiver",
];

/// Lets references follow the events that they name.
fn rename(body: &mut Value, ids: &BTreeMap<String, String>) {
    let new = |value: &Value| ids.get(value.as_str()?).cloned();
    if let Some(refs) = body.get_mut("refs").and_then(Value::as_array_mut) {
        for value in refs {
            if let Some(id) = new(value) {
                *value = id.into();
            }
        }
    }
    for list in ["approvals", "gates"] {
        let ids = body["data"].get_mut(list).and_then(Value::as_array_mut);
        for value in ids.into_iter().flatten() {
            if let Some(id) = new(value) {
                *value = id.into();
            }
        }
    }
    for member in ["call", "first"] {
        let call = body
            .get("data")
            .and_then(|data| data.get(member)?.get("call"));
        if let Some(id) = call.and_then(new) {
            body["data"][member]["call"] = id.into();
        }
    }
    for field in NAMING {
        if let Some(id) = body.get("data").and_then(|data| new(data.get(field)?)) {
            body["data"][field] = id.into();
        }
    }
}

impl Sealed {
    /// The tree over any lines.
    pub fn over(lines: Vec<Vec<u8>>) -> Self {
        let mut tiler = Tiler::new();
        let mut roots = vec![merkle::empty_root()];
        for line in &lines {
            tiler.push(merkle::leaf_hash(line));
            roots.push(tiler.root());
        }
        Self { lines, roots }
    }

    /// Root over everything.
    pub fn root(&self) -> Digest {
        *self.roots.last().unwrap()
    }

    /// The checkpoint over everything, signed by these log keys.
    pub fn checkpoint(&self, keys: &[u8]) -> Vec<u8> {
        checkpoint(self.lines.len() as u64, self.root(), keys)
    }
}

/// A checkpoint of anything, signed by these log keys.
pub fn checkpoint(size: u64, root: Digest, keys: &[u8]) -> Vec<u8> {
    let keys: Vec<_> = keys
        .iter()
        .map(|seed| (log_vkey(*seed), signer(*seed)))
        .collect();
    let keys: Vec<_> = keys
        .iter()
        .map(|(vkey, signer)| (vkey.clone(), signer.key()))
        .collect();
    let checkpoint = Checkpoint::new(KeyName::parse(ORIGIN).unwrap(), size, root);
    SignedCheckpoint::sign(checkpoint, &keys).unwrap().encode()
}

/// Lines as a file.
pub fn file(lines: &[Vec<u8>]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line.as_slice(), b"\n"].concat())
        .collect()
}
