//! Reads on record: who was given what, what was denied, and which experiments a read has tainted. The rule
//! `access`.
//!
//! A release that a role may not have is not refused once it was made: it goes on record and taints the
//! experiment, or every open one where it names none. It proves what was released, not what anyone saw.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ClassId;
use clover_event::id::ExperimentId;
use clover_event::id::HolderId;
use clover_event::payload::Role;
use clover_event::payload::Roles;
use clover_event::payload::custody::Separation;
use clover_event::payload::label::LabelPurpose;
use clover_event::payload::record::DataRead;
use clover_event::payload::record::ReadOutcome;
use clover_ground::keyfile;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use serde::Deserialize;
use serde::Serialize;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::DataRead,
    Kind::ExperimentClosed,
    Kind::ExperimentRegistered,
    Kind::KeyAdded,
    Kind::KeyCompromised,
    Kind::KeyRetired,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LedgerCreated,
    Kind::PolicyAdopted,
    Kind::RulebookAdopted,
];

/// What an optimizer may read; there is nothing else. CLOVER v1.1, section 10.5.
pub const OPTIMIZER_CLASSES: [&str; 4] = ["card.public", "dev_receipt", "rubric", "schema"];

/// Whether a class holds labels.
fn is_label(class: &str) -> bool {
    class == "label" || class.starts_with("label.")
}

/// Whether a role may read a class.
pub fn may_read(role: Role, class: &str) -> bool {
    match role {
        Role::Optimizer => OPTIMIZER_CLASSES.contains(&class),
        Role::Adversary | Role::Verifier => !is_label(class),
        _ => true,
    }
}

/// Reads of one class by one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Given.
    pub allowed: u64,
    /// Refused.
    pub denied: u64,
    /// The last of them.
    pub last_seq: u64,
}

/// A key as reads see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// Who holds it.
    pub holder: HolderId,
    /// Whether it may still act.
    pub is_live: bool,
    /// Its roles.
    pub roles: Roles,
}

/// The first read that tainted an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Ledger time of it.
    pub at: Timestamp,
    /// What was read.
    pub class: ClassId,
    /// By which key.
    pub reader: KeyId,
    /// In which role.
    pub role: Role,
    /// The entry.
    pub seq: u64,
}

impl Taint {
    /// In words.
    pub fn line(&self, experiment: &ExperimentId) -> String {
        let Self {
            class, role, seq, ..
        } = self;
        format!(
            "{experiment} is tainted: at seq {seq} {class} was released to a key in role {role}"
        )
    }
}

/// Reads and taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Whether the rulebook in force asks what a holder was given who becomes an optimizer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_before: bool,
    /// Experiments in which a probe was labelled, or a sealed label was opened: labels of which whoever proposes knows none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held_back: BTreeSet<ExperimentId>,
    /// The first release of labels to each holder there, by holder and experiment: as a taint, should the holder optimize.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<HolderId, BTreeMap<ExperimentId, Taint>>,
    /// Whether the rulebook in force asks for every role that a holder ever held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lasting: bool,
    /// Whether roles are kept apart by holder.
    pub is_strict: bool,
    /// Experiments that are open.
    pub open: BTreeSet<ExperimentId>,
    /// Reads by key and class.
    pub reads: BTreeMap<KeyId, BTreeMap<ClassId, Tally>>,
    /// Keys.
    pub readers: BTreeMap<KeyId, Reader>,
    /// By experiment.
    pub taints: BTreeMap<ExperimentId, Taint>,
}

impl Access {
    /// The role in which a key may not read a class: its stated one, else any of its roles; and under
    /// strict the optimizer's, where its holder is one under any key, or from rulebook 23 on ever was.
    pub fn barred(&self, reader: &KeyId, role: Option<Role>, class: &str) -> Option<Role> {
        let key = self.readers.get(reader)?;
        let stated = role.map(|role| vec![role]);
        let mut roles = stated.unwrap_or_else(|| key.roles.as_slice().to_vec());
        let optimizes = |other: &Reader| {
            let counts = other.is_live || self.is_lasting;
            counts && other.holder == key.holder && other.roles.contains(Role::Optimizer)
        };
        if self.is_strict && self.readers.values().any(optimizes) {
            roles.push(Role::Optimizer);
        }
        roles.sort_unstable();
        roles.into_iter().find(|role| !may_read(*role, class))
    }

    fn read(&mut self, event: &VerifiedEvent<'_>, read: &DataRead) {
        let of = self.reads.entry(read.reader).or_default();
        let tally = of.entry(read.class.clone()).or_default();
        tally.last_seq = event.seq();
        match read.outcome {
            ReadOutcome::Allowed => tally.allowed += 1,
            ReadOutcome::Denied => tally.denied += 1,
        }
        if read.outcome == ReadOutcome::Denied {
            return;
        }
        let of: Vec<_> = match &event.event().header.experiment {
            Some(experiment) => vec![experiment.clone()],
            None => self.open.iter().cloned().collect(),
        };
        let taint = |role| Taint {
            at: event.recorded_at(),
            class: read.class.clone(),
            reader: read.reader,
            role,
            seq: event.seq(),
        };
        if is_label(read.class.as_str())
            && let Some(reader) = self.readers.get(&read.reader)
        {
            let known = self.known.entry(reader.holder.clone()).or_default();
            for experiment in of.iter().filter(|of| self.held_back.contains(*of)) {
                let first = known.entry(experiment.clone());
                first.or_insert_with(|| taint(Role::Optimizer));
            }
        }
        let Some(role) = self.barred(&read.reader, read.role, read.class.as_str()) else {
            return;
        };
        let taint = taint(role);
        for experiment in of {
            self.taints
                .entry(experiment)
                .or_insert_with(|| taint.clone());
        }
    }

    /// What its holder was given before taints, where the key is an optimizer's.
    fn became(&mut self, holder: &HolderId, roles: &Roles) {
        if !self.asks_before || !self.is_strict || !roles.contains(Role::Optimizer) {
            return;
        }
        for (experiment, taint) in self.known.get(holder).into_iter().flatten() {
            let first = self.taints.entry(experiment.clone());
            first.or_insert_with(|| taint.clone());
        }
    }

    fn added(&mut self, id: KeyId, holder: &HolderId, roles: &Roles) {
        self.readers.entry(id).or_insert_with(|| Reader {
            holder: holder.clone(),
            is_live: true,
            roles: roles.clone(),
        });
    }

    /// Labels of an experiment are on record that whoever proposes may not know.
    fn hold_back(&mut self, experiment: Option<&ExperimentId>) {
        let new = experiment.filter(|id| !self.held_back.contains(*id));
        self.held_back.extend(new.cloned());
    }

    /// A rulebook is in force.
    fn adopt(&mut self, version: Option<Count>) {
        let version = version.map_or(u64::from(rulebooks::UNNAMED), Count::value);
        self.is_lasting |= version >= u64::from(Question::ReadsEverHeld.since());
        self.asks_before |= version >= u64::from(Question::ReadsBefore.since());
    }

    fn ended(&mut self, id: &KeyId) {
        if let Some(reader) = self.readers.get_mut(id) {
            reader.is_live = false;
        }
    }
}

impl Fold for Access {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let experiment = event.event().experiment();
        match &event.event().payload {
            Payload::DataRead(read) => self.read(event, read),
            Payload::ExperimentClosed(_) => {
                experiment.map(|id| self.open.remove(id));
            }
            Payload::ExperimentRegistered(_) => self.open.extend(experiment.cloned()),
            Payload::KeyAdded(key) => {
                self.added(key.key_id, &key.holder, &key.roles);
                self.became(&key.holder, &key.roles);
            }
            Payload::LabelRecorded(label) if label.purpose == LabelPurpose::Audit => {
                self.hold_back(experiment);
            }
            Payload::LabelRevealed(_) => self.hold_back(experiment),
            Payload::KeyCompromised(key) => self.ended(&key.key_id),
            Payload::KeyRetired(key) => self.ended(&key.key_id),
            Payload::LedgerCreated(created) if event.seq() == 0 => {
                let owner = &created.owner;
                let id = KeyId(keyfile::key_id(&owner.public_key.0));
                self.added(id, &owner.holder, &owner.roles);
                self.is_strict = created.policy.separation == Separation::Strict;
                self.adopt(created.rulebook);
            }
            Payload::RulebookAdopted(of) => self.adopt(Some(of.version)),
            Payload::PolicyAdopted(adopted) => {
                self.is_strict = adopted.separation == Separation::Strict;
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// A line for each experiment that a read has tainted.
pub fn notes(state: &State, notes: &mut Vec<String>) {
    for (experiment, taint) in &state.fold::<Access>().taints {
        notes.push(taint.line(experiment));
    }
}

/// The rule `access`: a read names a live key of the ledger, and a role that it holds.
#[derive(Clone, Copy, Debug)]
pub struct Gateway;

impl Rule for Gateway {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let Payload::DataRead(read) = &event.event.payload else {
            return;
        };
        let key = state.keyring.keys.get(&read.reader);
        let Some(key) = key.filter(|key| key.end.is_none()) else {
            let found = format!("{}, unknown or ended", read.reader);
            breaches.push(Breach::new(
                RuleName::Access,
                "a reader with a live key of this ledger",
                found,
            ));
            return;
        };
        if let Some(role) = read.role
            && !key.roles.contains(role)
        {
            let expected = format!("a role that the reader's key holds: {}", key.roles);
            breaches.push(Breach::new(RuleName::Access, expected, role.as_str()));
        }
    }
}
