//! Somebody with some of the keys who rewrites a history by hand: own canonical JSON, signatures, tree and checkpoint,
//! none of them this program's. What it holds no key for it leaves as it stands.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use base64ct::Base64;
use base64ct::Encoding;
use ed25519_dalek::Signer;
use ed25519_dalek::SigningKey;
use serde_json::Value;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;

use crate::support::samples::LOG;
use crate::support::samples::ORIGIN;
use crate::support::samples::Story;
use crate::support::signer;
use crate::support::verifiers::Case;

const TYPE: &str = "application/vnd.clover.event+json";

/// An entry as it stands, or as it is to be written.
struct Item {
    body: Value,
    bytes: Vec<u8>,
    recorded_at: String,
    signature: String,
    is_edited: bool,
}

/// A history in the hands of somebody.
pub struct Hand {
    items: Vec<Item>,
    keys: BTreeMap<String, SigningKey>,
    log_key: Option<SigningKey>,
    story: Story,
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The root of RFC 6962 over leaf hashes.
fn root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => sha256(&[]),
        [only] => *only,
        _ => {
            let left = leaves.len().next_power_of_two() / 2;
            let (one, other) = leaves.split_at(left);
            sha256(&[&[1], &root(one), &root(other)])
        }
    }
}

fn line_of(seq: usize, item: &(Vec<u8>, String, String), recorded_at: &str) -> String {
    let (bytes, author, signature) = item;
    let payload = Base64::encode_string(bytes);
    format!(
        "{{\"envelope\":{{\"payload\":\"{payload}\",\"payloadType\":\"{TYPE}\",\"signatures\":[{{\"keyid\":\"{author}\",\
         \"sig\":\"{signature}\"}}]}},\"recorded_at\":\"{recorded_at}\",\"seq\":{seq}}}"
    )
}

impl Hand {
    /// Holds the keys of these people, and perhaps the log key.
    pub fn with(story: Story, people: &[u8], has_log_key: bool) -> Self {
        let items = story.lines.iter().map(|line| {
            let line: Value = serde_json::from_slice(line).unwrap();
            let envelope = &line["envelope"];
            let bytes = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
            Item {
                body: serde_json::from_slice(&bytes).unwrap(),
                bytes,
                recorded_at: line["recorded_at"].as_str().unwrap().to_owned(),
                signature: envelope["signatures"][0]["sig"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
                is_edited: false,
            }
        });
        let items = items.collect();
        let keys = people.iter().map(|byte| {
            let key = SigningKey::from_bytes(&[*byte; 32]);
            (signer(*byte).id().to_string(), key)
        });
        Self {
            items,
            keys: keys.collect(),
            log_key: has_log_key.then(|| SigningKey::from_bytes(&[LOG; 32])),
            story,
        }
    }

    pub fn at(&self, name: &str) -> usize {
        self.story.at(name)
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The id of a named event.
    pub fn id(&self, name: &str) -> String {
        hex(&sha256(&[&self.items[self.at(name)].bytes]))
    }

    /// Changes the body of a named event.
    pub fn edit(mut self, name: &str, edit: impl FnOnce(&mut Value)) -> Self {
        let at = self.at(name);
        edit(&mut self.items[at].body);
        self.items[at].is_edited = true;
        self
    }

    /// Sets the ledger's time of a named event, which no author signs.
    pub fn stamp(mut self, name: &str, recorded_at: &str) -> Self {
        let at = self.at(name);
        self.items[at].recorded_at = recorded_at.to_owned();
        self
    }

    /// Cuts the newest entries off.
    pub fn cut(mut self, entries: usize) -> Self {
        self.items.truncate(self.items.len() - entries);
        self
    }

    /// Appends what this person says, in the newest version of the kind.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are written where they are said"
    )]
    pub fn say(mut self, who: u8, kind: &str, v: u64, experiment: Value, data: Value) -> Self {
        let author = signer(who).id().to_string();
        let own = self
            .items
            .iter()
            .filter(|item| item.body["author"] == author.as_str());
        let last = self.items.last().unwrap();
        let recorded_at = last.recorded_at.clone();
        let body = json!({
            "at": recorded_at, "author": author, "author_seq": own.count(), "data": data, "experiment": experiment,
            "kind": kind, "ledger": ORIGIN, "refs": [], "seen": {"root": "", "size": self.items.len()}, "v": v,
        });
        self.items.push(Item {
            body,
            bytes: Vec::new(),
            recorded_at,
            signature: String::new(),
            is_edited: true,
        });
        self
    }

    /// Rebuilds everything as consistently as the keys at hand allow.
    pub fn rebuilt(self) -> Case {
        let mut leaves = Vec::new();
        let (mut lines, mut renamed, mut moved) = (Vec::new(), BTreeMap::new(), false);
        for (seq, item) in self.items.iter().enumerate() {
            let was = hex(&sha256(&[&item.bytes]));
            let author = item.body["author"].as_str().unwrap().to_owned();
            let key = self.keys.get(&author);
            let mut bytes = item.bytes.clone();
            let mut signature = item.signature.clone();
            if item.is_edited || (moved && key.is_some()) {
                bytes = rebound(&item.body, &leaves, &renamed);
                let length = bytes.len();
                let message = format!("DSSEv1 {} {TYPE} {length} ", TYPE.len());
                let message = [message.as_bytes(), &bytes].concat();
                if let Some(key) = key {
                    signature = Base64::encode_string(&key.sign(&message).to_bytes());
                }
                renamed.insert(was, hex(&sha256(&[&bytes])));
            }
            let line = line_of(seq, &(bytes, author, signature), &item.recorded_at);
            moved |= self.story.lines.get(seq).map(Vec::as_slice) != Some(line.as_bytes());
            leaves.push(sha256(&[&[0], line.as_bytes()]));
            lines.push(line);
        }
        let checkpoint = match &self.log_key {
            Some(key) => checkpoint(lines.len(), &root(&leaves), key),
            None => self.story.head(),
        };
        Case {
            ledger: lines
                .iter()
                .flat_map(|line| [line.as_bytes(), b"\n"].concat())
                .collect(),
            checkpoint: Some(checkpoint),
            blobs: Some(self.story.blobs.clone()),
            ..Case::default()
        }
    }

    /// The same, held against the checkpoint that somebody kept of the true history.
    pub fn rebuilt_against_the_pin(self) -> Case {
        let pin = Some(self.story.head());
        Case {
            pin,
            ..self.rebuilt()
        }
    }

    /// Everybody who signed.
    pub fn authors(story: &Story) -> BTreeSet<String> {
        let authors = story.lines.iter().map(|line| {
            let line: Value = serde_json::from_slice(line).unwrap();
            line["envelope"]["signatures"][0]["keyid"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        authors.collect()
    }
}

/// A body that names the roots of the rebuilt tree and the ids of rewritten events.
fn rebound(body: &Value, leaves: &[[u8; 32]], renamed: &BTreeMap<String, String>) -> Vec<u8> {
    let mut body = body.clone();
    let size = body["seen"]["size"].as_u64();
    if let Some(seen) = size.and_then(|size| leaves.get(..usize::try_from(size).ok()?)) {
        body["seen"]["root"] = Base64::encode_string(&root(seen)).into();
    }
    let mut text = serde_json_canonicalizer::to_string(&body).unwrap();
    for (was, is) in renamed {
        text = text.replace(was, is);
    }
    text.into_bytes()
}

fn checkpoint(size: usize, root: &[u8; 32], key: &SigningKey) -> Vec<u8> {
    let text = format!("{ORIGIN}\n{size}\n{}\n", Base64::encode_string(root));
    let public = key.verifying_key().to_bytes();
    let hash = sha256(&[ORIGIN.as_bytes(), b"\n\x01", &public]);
    let signature = key.sign(text.as_bytes()).to_bytes();
    let signed = Base64::encode_string(&[&hash[..4], &signature].concat());
    format!("{text}\n\u{2014} {ORIGIN} {signed}\n").into_bytes()
}
