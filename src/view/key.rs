//! Keys: who holds them, what they may sign, how they stand.

use std::path::Path;

use serde::Serialize;

use crate::event::payload::Role;
use crate::ground::keyfile;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::ledger::keyring::KeyRecord;
use crate::session::keys::request::Admission;
use crate::session::keys::request::KeyRequest;
use crate::view::View;
use crate::view::appended;

/// Hex digits that a table shows of an id.
const SHORT: usize = 16;

/// A key of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyRow {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// The name of its file here; empty where no file of it is here.
    pub file: String,
    /// Who holds it.
    pub holder: String,
    /// Whether a person holds it, and no machine.
    pub human: bool,
    /// What it may sign.
    pub roles: Vec<Role>,
    /// Events that it signed.
    pub events: u64,
    /// The entry that added it.
    pub added_seq: u64,
    /// `live`, or how it ended and at which entry.
    pub standing: String,
}

/// Every key of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyList {
    /// In the order in which they were added.
    pub keys: Vec<KeyRow>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyShown {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// Who holds it.
    pub holder: String,
    /// Whether a person holds it, and no machine.
    pub human: bool,
    /// What it may sign.
    pub roles: Vec<Role>,
    /// The entry that added it.
    pub added_seq: u64,
    /// Events that it signed.
    pub events: u64,
    /// `live`, or how it ended and at which entry.
    pub standing: String,
    /// The age recipient that labels may be sealed to; `null` where there is none.
    pub seal_recipient: Option<String>,
    /// The Ed25519 public key in base64.
    pub public_key: String,
}

/// A public key in a file's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyExport {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// The key as PEM.
    pub public_key: String,
}

/// A key that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyMade {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// The file that holds it.
    pub file: String,
}

/// The key that signs checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogKey {
    /// Its verifier key, `NAME+HASH+BASE64`.
    pub log_key: String,
}

/// A request for a key that was made here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestedKey {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// Who will hold it.
    pub holder: String,
    /// What is asked for.
    pub roles: Vec<Role>,
    /// Origin of the ledger.
    pub ledger: String,
    /// The private key's file, which stays here.
    pub key_file: String,
    /// The request's file, which goes to the owner.
    pub request: String,
}

/// A key that was asked for, as it is admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskedFor {
    /// Its id: SHA-256 of its public key, in hex.
    pub key_id: String,
    /// Who holds it.
    pub holder: String,
    /// What was asked for.
    pub asked: Vec<Role>,
    /// What it may sign; empty where nothing was appended.
    pub granted: Vec<Role>,
}

/// A key id in groups of four, to be read out and compared.
pub fn fingerprint(id: &KeyId) -> String {
    let digits: Vec<char> = id.to_string().chars().collect();
    let groups: Vec<String> = digits.chunks(4).map(|four| four.iter().collect()).collect();
    groups.join(" ")
}

/// The request that was made of a key here.
pub fn requested(request: &KeyRequest, key_file: &Path, out: &Path) -> View {
    let facts = RequestedKey {
        key_id: request.key_id.to_string(),
        holder: request.holder.to_string(),
        roles: request.roles.as_slice().to_vec(),
        ledger: request.ledger.to_string(),
        key_file: key_file.display().to_string(),
        request: out.display().to_string(),
    };
    let mut view = View::of(&facts).with_verdict("requested");
    view.pairs([
        ("holder", facts.holder),
        ("asks for", request.roles.to_string()),
        ("in", facts.ledger),
        ("key", format!("{}, which stays here", facts.key_file)),
        (
            "request",
            format!("{}, to send to the owner", facts.request),
        ),
        ("fingerprint", fingerprint(&request.key_id)),
    ]);
    view.sentence(
        "Read the fingerprint to the owner by voice: the file alone does not say who sent it.",
    );
    // The owner has the file by its name, in a folder of their own.
    let name = out.file_name().map_or(out.as_os_str(), |name| name);
    view.with_next(format!(
        "clover key admit {}",
        shell::word(&name.to_string_lossy())
    ))
}

/// Who asks for what, for the owner to read before the answer.
pub fn asked(admission: &Admission) -> View {
    let request = &admission.request;
    let mut view = View::of(&());
    view.pairs([
        ("holder", request.holder.to_string()),
        ("held by", held_by(request.human)),
        ("asks for", request.roles.to_string()),
        ("granted", admission.granted.to_string()),
        ("made", request.asked_at.to_string()),
        ("fingerprint", fingerprint(&request.key_id)),
    ]);
    if !admission.others.is_empty() {
        let keys = admission.others.iter().map(ToString::to_string);
        let keys = keys.collect::<Vec<_>>().join(" ");
        view.sentence(format!(
            "{} holds keys here already: {keys}. This one would count as the same person's.",
            request.holder
        ));
    }
    view
}

/// What was asked for, and what stands of it in the ledger.
pub fn admitted_facts(request: &KeyRequest, ledger: &Ledger) -> AskedFor {
    let record = ledger.state().keyring.keys.get(&request.key_id);
    AskedFor {
        key_id: request.key_id.to_string(),
        holder: request.holder.to_string(),
        asked: request.roles.as_slice().to_vec(),
        granted: record.map_or_else(Vec::new, |of| of.roles.as_slice().to_vec()),
    }
}

/// How a key stands.
pub fn standing(record: &KeyRecord) -> String {
    match &record.end {
        None => "live".to_owned(),
        Some(end) => match end.tainted_since {
            Some(since) => format!("compromised at seq {}, tainted from {since}", end.seq),
            None => format!("retired at seq {}", end.seq),
        },
    }
}

fn held_by(human: bool) -> String {
    if human { "person" } else { "machine" }.to_owned()
}

/// Every key; `file` names the file of a key, where one is here.
pub fn list(state: &State, file: impl Fn(&KeyId) -> String) -> View {
    let mut keys: Vec<_> = state.keyring.keys.iter().collect();
    keys.sort_by_key(|(_, record)| record.added_seq);
    let rows = keys.iter().map(|(id, record)| KeyRow {
        key_id: id.to_string(),
        file: file(id),
        holder: record.holder.to_string(),
        human: record.human,
        roles: record.roles.as_slice().to_vec(),
        events: record.next_author_seq,
        added_seq: record.added_seq,
        standing: standing(record),
    });
    let facts = KeyList {
        keys: rows.collect(),
    };
    let mut view = View::of(&facts);
    let rows = facts.keys.iter().zip(&keys).map(|(of, (_, record))| {
        vec![
            of.file.clone(),
            of.key_id.chars().take(SHORT).collect(),
            of.holder.clone(),
            held_by(of.human),
            record.roles.to_string(),
            of.events.to_string(),
            of.standing.clone(),
        ]
    });
    let head = [
        "file", "key id", "holder", "held by", "roles", "events", "standing",
    ];
    view.table(&head, rows);
    view
}

/// One key, with its public half.
pub fn show(id: &KeyId, record: &KeyRecord) -> View {
    let recipient = record.seal_recipient.as_ref();
    let facts = KeyShown {
        key_id: id.to_string(),
        holder: record.holder.to_string(),
        human: record.human,
        roles: record.roles.as_slice().to_vec(),
        added_seq: record.added_seq,
        events: record.next_author_seq,
        standing: standing(record),
        seal_recipient: recipient.map(|recipient| recipient.0.to_string()),
        public_key: crate::ground::base64::encode(&record.public_key.0),
    };
    let mut view = View::of(&facts);
    let seals_to = facts.seal_recipient.clone();
    view.pairs([
        ("key id", facts.key_id.clone()),
        ("holder", facts.holder.clone()),
        ("held by", held_by(facts.human)),
        ("roles", record.roles.to_string()),
        ("added", format!("seq {}", facts.added_seq)),
        ("events", facts.events.to_string()),
        ("standing", facts.standing.clone()),
        ("seals to", seals_to.unwrap_or_else(|| "none".to_owned())),
    ]);
    view.source(keyfile::write_public(&record.public_key.0));
    view
}

/// A public key in a file's form.
pub fn export(id: &KeyId, record: &KeyRecord) -> View {
    let facts = KeyExport {
        key_id: id.to_string(),
        public_key: keyfile::write_public(&record.public_key.0),
    };
    let mut view = View::of(&facts);
    view.source(facts.public_key);
    view
}

/// The key that signs checkpoints.
pub fn log_key(state: &State) -> View {
    let vkey = state.keyring.log_key().map(ToString::to_string);
    let facts = LogKey {
        log_key: vkey.unwrap_or_default(),
    };
    let mut view = View::of(&facts);
    view.line(facts.log_key);
    view
}

/// Adds to the view of an addition which key was made, and where it is kept.
pub fn made(view: View, id: &KeyId, file: String) -> View {
    let more = KeyMade {
        key_id: id.to_string(),
        file,
    };
    let mut view = appended::and(view, &more);
    view.line(format!("key {} in {}", more.key_id, more.file));
    view
}

/// Adds to the view of a rotation which key signs checkpoints from now on.
pub fn rotated(view: View, state: &State) -> View {
    let vkey = state.keyring.log_key().map(ToString::to_string);
    let more = LogKey {
        log_key: vkey.unwrap_or_default(),
    };
    let mut view = appended::and(view, &more);
    view.line(format!("log key {}", more.log_key));
    view
}
