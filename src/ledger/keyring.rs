//! The custody fold: origin, keys with their roles and counters, policy and log keys.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Event;
use clover_event::Header;
use clover_event::Payload;
use clover_event::id::Base64Bytes;
use clover_event::id::HolderId;
use clover_event::id::SealRecipient;
use clover_event::id::Vkey;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::custody::Separation;
use clover_ground::keyfile;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

use crate::names;
use crate::rulebooks;
use crate::rulebooks::Question;
use crate::rulebooks::RulebookAdoption;

/// How a key ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEnd {
    /// The entry that ended it.
    pub seq: u64,
    /// First tainted entry, when it was compromised rather than retired.
    pub tainted_since: Option<u64>,
}

/// A key and what it may sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The entry that added it.
    pub added_seq: u64,
    /// How it ended, if it did.
    pub end: Option<KeyEnd>,
    /// Who holds it.
    pub holder: HolderId,
    /// Whether a human holds it.
    pub human: bool,
    /// Number of the key's next event.
    pub next_author_seq: u64,
    /// Ed25519 public key.
    pub public_key: Base64Bytes<32>,
    /// What it may sign.
    pub roles: Roles,
    /// age recipient to which labels may be sealed.
    pub seal_recipient: Option<SealRecipient>,
    /// Largest `seen.size` it has named.
    pub seen_size: u64,
}

/// Keys, policy and log keys at a position of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keyring {
    /// Format of the ledger; 0 before `ledger.created`.
    pub format: u64,
    /// Keys by id.
    pub keys: BTreeMap<KeyId, KeyRecord>,
    /// Log keys with the entry from which each holds, in order.
    pub log_keys: Vec<(u64, Vkey)>,
    /// Origin of the log; empty before `ledger.created`.
    pub origin: String,
    /// `recorded_at` of the newest entry.
    pub recorded_at: Option<Timestamp>,
    /// Rulebooks with the entry that names each, in order; each judges the entries after it.
    pub rulebooks: Vec<RulebookAdoption>,
    /// Policies with the entry from which each holds, in order.
    pub separations: Vec<(u64, Separation)>,
}

/// Role pairs that one holder may not combine under `strict`.
pub const CONFLICTS: [(Role, Role); 5] = [
    (Role::Optimizer, Role::Arbiter),
    (Role::Optimizer, Role::Custodian),
    (Role::Optimizer, Role::Labeler),
    (Role::Optimizer, Role::Releaser),
    (Role::Custodian, Role::MetaOptimizer),
];

impl Keyring {
    /// The policy in force.
    pub fn separation(&self) -> Option<Separation> {
        self.separations.last().map(|(_, separation)| *separation)
    }

    /// The rulebook that judges the next entry.
    pub fn rulebook(&self) -> u32 {
        let newest = self.rulebooks.last();
        newest.map_or(rulebooks::UNNAMED, |adopted| adopted.version)
    }

    /// Whether the rulebook in force asks `question` of the next entry.
    pub fn asks(&self, question: Question) -> bool {
        self.rulebook() >= question.since()
    }

    /// Whether the policy was ever loosened from strict to solo.
    pub fn was_loosened(&self) -> bool {
        self.separations
            .windows(2)
            .any(|pair| pair[0].1 == Separation::Strict && pair[1].1 == Separation::Solo)
    }

    /// The key that signs checkpoints now.
    pub fn log_key(&self) -> Option<&Vkey> {
        self.log_keys.last().map(|(_, key)| key)
    }

    /// Keys that may still sign.
    pub fn live(&self) -> impl Iterator<Item = (&KeyId, &KeyRecord)> {
        self.keys.iter().filter(|(_, key)| key.end.is_none())
    }

    /// Live keys that hold `role`.
    pub fn live_with(&self, role: Role) -> impl Iterator<Item = (&KeyId, &KeyRecord)> {
        self.live().filter(move |(_, key)| key.roles.contains(role))
    }

    /// Whether `strict` was ever in force.
    pub fn was_strict(&self) -> bool {
        let mut all = self.separations.iter();
        all.any(|(_, separation)| *separation == Separation::Strict)
    }

    /// Roles of each holder that count against conflicts, by the name that stands for them: those of live keys, and with `ever`
    /// those of keys that ended too.
    pub fn roles_by_holder(&self, ever: bool) -> BTreeMap<String, BTreeSet<Role>> {
        let mut holders: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let keys = self.keys.values();
        for key in keys.filter(|key| ever || key.end.is_none()) {
            holders
                .entry(names::person(self, &key.holder))
                .or_default()
                .extend(key.roles.as_slice());
        }
        holders
    }

    /// Roles of one holder that count against those of a new key, when there are any: from rulebook 20 on those of keys that
    /// ended too.
    pub fn roles_held_by(&self, holder: &HolderId) -> Option<BTreeSet<Role>> {
        let ever = self.asks(Question::RolesEverHeld);
        self.roles_by_holder(ever)
            .remove(&names::person(self, holder))
    }

    /// The first conflict of a set of roles.
    pub fn conflict(roles: &BTreeSet<Role>) -> Option<(Role, Role)> {
        CONFLICTS
            .into_iter()
            .find(|(a, b)| roles.contains(a) && roles.contains(b))
    }

    /// Takes in the header of an entry: counters and time. After a breach, the next number is one more than
    /// this one, and a size that the tree had not reached is not remembered.
    pub(super) fn apply_header(&mut self, seq: u64, recorded_at: Timestamp, header: &Header) {
        self.recorded_at = Some(recorded_at);
        let seen_size = header.seen.map_or(0, |seen| seen.size.value());
        if let Some(key) = self.keys.get_mut(&header.author) {
            key.next_author_seq = header.author_seq + 1;
            if seen_size <= seq {
                key.seen_size = key.seen_size.max(seen_size);
            }
        }
    }

    /// Takes in an event's payload.
    pub(super) fn apply_payload(&mut self, seq: u64, event: &Event) {
        match &event.payload {
            Payload::LedgerCreated(created) if seq == 0 => {
                self.format = created.format.value();
                self.origin = created.origin.to_string();
                self.log_keys.push((0, created.log_vkey.clone()));
                self.separations.push((0, created.policy.separation));
                self.adopt(seq, created.rulebook);
                let owner = &created.owner;
                let record = KeyRecord {
                    added_seq: 0,
                    end: None,
                    holder: owner.holder.clone(),
                    human: owner.human,
                    next_author_seq: 0,
                    public_key: owner.public_key,
                    roles: owner.roles.clone(),
                    seal_recipient: None,
                    seen_size: 0,
                };
                let id = KeyId(keyfile::key_id(&owner.public_key.0));
                self.keys.insert(id, record);
            }
            Payload::KeyAdded(added) => {
                let record = KeyRecord {
                    added_seq: seq,
                    end: None,
                    holder: added.holder.clone(),
                    human: added.human,
                    next_author_seq: 0,
                    public_key: added.public_key,
                    roles: added.roles.clone(),
                    seal_recipient: added.seal_recipient.clone(),
                    seen_size: 0,
                };
                self.keys.entry(added.key_id).or_insert(record);
            }
            Payload::KeyRetired(retired) => self.end(
                retired.key_id,
                KeyEnd {
                    seq,
                    tainted_since: None,
                },
            ),
            Payload::KeyCompromised(compromised) => {
                let since = compromised.since_seq.value();
                self.end(
                    compromised.key_id,
                    KeyEnd {
                        seq,
                        tainted_since: Some(since),
                    },
                );
            }
            Payload::PolicyAdopted(adopted) => self.separations.push((seq, adopted.separation)),
            Payload::RulebookAdopted(adopted) => self.adopt(seq, Some(adopted.version)),
            Payload::LogKeyRotated(rotated) => self.log_keys.push((seq, rotated.vkey.clone())),
            _ => {}
        }
    }

    /// Takes in a rulebook. One that goes back, or that nobody here knows, changes nothing: it is a finding.
    fn adopt(&mut self, seq: u64, version: Option<Count>) {
        let version = version.map_or(u64::from(rulebooks::UNNAMED), Count::value);
        let newest = u64::from(rulebooks::NEWEST);
        let version = u32::try_from(version.min(newest)).unwrap_or(rulebooks::NEWEST);
        if self.rulebooks.is_empty() || version > self.rulebook() {
            self.rulebooks.push(RulebookAdoption { seq, version });
        }
    }

    /// Ends a key; a later compromise of a retired key adds the taint and keeps the earlier end.
    fn end(&mut self, key: KeyId, end: KeyEnd) {
        let Some(record) = self.keys.get_mut(&key) else {
            return;
        };
        match &mut record.end {
            None => record.end = Some(end),
            Some(earlier) => {
                earlier.tainted_since = match (earlier.tainted_since, end.tainted_since) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }
}
