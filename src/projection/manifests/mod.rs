//! Manifests: every version, the one in force, the one in force at the first look, deviations, families.
//!
//! The fold keeps what was said even where a rule was broken; of two claims to one name the first counts.

mod amend;
mod check;
mod design;
pub mod estimated;
mod exposed;
mod family;
mod plan;
mod replaced;
mod rules;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

pub use amend::Change;
pub use amend::changes;
pub use amend::class;
pub use check::Fault;
pub use check::Sound;
pub use check::check;
pub use family::FAMILY_MAX;
pub use rules::Prereg;
pub(super) use rules::check_current;
pub(super) use rules::check_signer;
pub use rules::unseen;

use clover_event::Event;
use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::manifest::Arm;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Count;

use crate::gates;

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::AnchorSetRegistered,
    Kind::ExposureOpened,
    Kind::FamilyClosed,
    Kind::FamilyOpened,
    Kind::GateDecided,
    Kind::LabelDesignRegistered,
    Kind::LabelRecorded,
    Kind::LabelRevealed,
    Kind::LedgerCreated,
    Kind::ManifestAmended,
    Kind::ManifestCountersigned,
    Kind::ManifestDeviated,
    Kind::ManifestRegistered,
    Kind::PlanRevealed,
    Kind::PlanSealed,
    Kind::RulebookAdopted,
    Kind::ScoreRecorded,
    Kind::EnvironmentsTested,
    Kind::TransportTested,
];

/// One version of a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestVersion {
    /// Who registered it.
    pub author: KeyId,
    /// Class of the amendment; `None` for the first version.
    pub class: Option<u64>,
    /// The key that countersigned it.
    pub countersigned_by: Option<KeyId>,
    /// The entry of its countersignature.
    pub countersigned_seq: Option<u64>,
    /// Its digest.
    pub digest: Digest,
    /// Digest of its null hypothesis.
    pub h0_digest: Digest,
    /// What it says.
    pub manifest: Manifest,
    /// Its entry.
    pub seq: u64,
}

impl ManifestVersion {
    /// Whether it needs the custodian: it binds confirm data, and is new or touches more than words and what may
    /// change in flight.
    pub fn needs_countersignature(&self) -> bool {
        self.manifest.data.is_some() && self.class.is_none_or(|class| class == 1 || class >= 3)
    }

    /// The commitment of the plan that it binds itself to.
    pub fn plan_commitment(&self) -> Option<Digest> {
        let analysis = self.manifest.analysis.as_ref()?;
        analysis.plan_commitment
    }

    /// The entry from which it stands: its countersignature where it needs one; `None` while it waits for it.
    pub fn since(&self) -> Option<u64> {
        if self.needs_countersignature() {
            self.countersigned_seq
        } else {
            Some(self.seq)
        }
    }

    /// Whether it is in force unless a later one is.
    pub fn stands(&self) -> bool {
        self.countersigned_seq.is_some() || !self.needs_countersignature()
    }
}

/// Something that was done otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// Entries that stood when it became known.
    pub known_at_seq: u64,
    /// Whether an outcome had been seen.
    pub outcome_seen: bool,
    /// The part of the manifest.
    pub rule_path: String,
    /// Its entry.
    pub seq: u64,
    /// What was done.
    pub what: String,
}

/// The first time that an outcome could be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstLook {
    /// Digest of the version that was in force.
    pub digest: Option<Digest>,
    /// The entry.
    pub seq: u64,
}

/// A plan that was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its commitment.
    pub commitment: Digest,
    /// By when it is revealed.
    pub reveal_by: Timestamp,
    /// When it was revealed: past its day it stays late.
    pub revealed_at: Option<Timestamp>,
    /// The entry that revealed it.
    pub revealed_seq: Option<u64>,
    /// The entry that sealed it.
    pub sealed_seq: u64,
}

/// One manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestRecord {
    /// What was done otherwise.
    pub deviations: Vec<Deviation>,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// For each exposure, the units exposed by then and its entry.
    pub exposed: Vec<(u64, u64)>,
    /// Exposures opened.
    pub exposures: u64,
    /// The first look.
    pub first_look: Option<FirstLook>,
    /// Of a plan of audits: the first probe that could be seen and no audit had used before it was registered, or since.
    pub first_probe: Option<u64>,
    /// Its sealed plan.
    pub plan: Option<Plan>,
    /// The manifest that replaced it.
    pub superseded_by: Option<ManifestId>,
    /// Name of the last unit exposed, where the exposure says it.
    pub through: Option<ItemId>,
    /// Units exposed.
    pub units: u64,
    /// Its versions, oldest first.
    pub versions: Vec<ManifestVersion>,
}

impl ManifestRecord {
    /// The version in force: the newest that stands.
    pub fn in_force(&self) -> Option<&ManifestVersion> {
        self.versions.iter().rev().find(|version| version.stands())
    }

    /// The version that last set what is tested, on what and with whom: the newest that stands and is the first or
    /// of class 3.
    pub fn bound(&self) -> Option<&ManifestVersion> {
        let sets = |version: &&ManifestVersion| version.class.is_none_or(|class| class >= 3);
        let standing = self.versions.iter().rev().filter(|one| one.stands());
        standing.into_iter().find(sets)
    }

    /// Whether its plan of audits was in force before the first probe of a design was open; `opened` is that entry.
    pub fn plans_audits_before(&self, opened: Option<u64>) -> bool {
        let Some(opened) = opened else {
            return true;
        };
        self.before(opened)
            .zip(self.in_force())
            .is_some_and(|(then, now)| then.manifest.transport == now.manifest.transport)
    }

    /// The version in force before an entry.
    pub fn before(&self, seq: u64) -> Option<&ManifestVersion> {
        let stood = |version: &&ManifestVersion| version.since().is_some_and(|since| since < seq);
        self.versions.iter().rev().find(stood)
    }

    /// A version by its digest.
    pub fn version(&self, digest: Digest) -> Option<&ManifestVersion> {
        self.versions
            .iter()
            .find(|version| version.digest == digest)
    }

    /// The entry that exposed the unit at a place, from 1.
    pub fn exposed_seq(&self, t: u64) -> Option<u64> {
        let mut exposed = self.exposed.iter();
        exposed.find(|(units, _)| t <= *units).map(|(_, seq)| *seq)
    }

    fn look(&mut self, seq: u64) {
        let digest = self.in_force().map(|version| version.digest);
        self.first_look.get_or_insert(FirstLook { digest, seq });
    }
}

/// Whether two manifests test one candidate: by its name or by what it is.
pub fn is_candidate_shared(one: &Manifest, other: &Manifest) -> bool {
    candidates(one).any(|arm| {
        let mut others = candidates(other);
        others.any(|other| other.id == arm.id || other.artifact_digest == arm.artifact_digest)
    })
}

fn candidates(manifest: &Manifest) -> impl Iterator<Item = &Arm> {
    let arms = manifest.arms.iter().flatten();
    arms.filter(|arm| arm.role == ArmRole::Candidate)
}

/// One family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its error rate, in millionths.
    pub alpha: i64,
    /// The entry that closed it.
    pub closed_seq: Option<u64>,
    /// Shares of its members, for elond.
    pub gamma: Vec<i64>,
    /// Members in order of registration, with the largest alpha that each had.
    pub joined: Vec<(ManifestId, i64)>,
    /// Who alone may join.
    pub members: Option<Vec<ManifestId>>,
    /// Most members.
    pub members_max: u64,
    /// How it keeps its error rate.
    pub method: FamilyMethod,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// Members whose claim was decided to hold.
    pub rejected: Vec<ManifestId>,
}

impl Family {
    /// Alpha of its members together.
    pub fn spent(&self) -> i64 {
        let alphas = self.joined.iter().map(|(_, alpha)| *alpha);
        alphas.fold(0, i64::saturating_add)
    }

    fn join(&mut self, id: &ManifestId, alpha: i64) {
        match self.joined.iter_mut().find(|(member, _)| member == id) {
            Some((_, most)) => *most = alpha.max(*most),
            None => self.joined.push((id.clone(), alpha)),
        }
    }
}

/// Every manifest and family.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifests {
    /// Manifests by name.
    pub by_id: BTreeMap<ManifestId, ManifestRecord>,
    /// The first exposure of each confirm root.
    pub exposed: BTreeMap<String, u64>,
    /// Families by name.
    pub families: BTreeMap<FamilyId, Family>,
    /// The first score, open label or revealed label of each experiment.
    pub first_outcome: BTreeMap<ExperimentId, u64>,
    /// The first anchor set of each experiment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub first_anchors: BTreeMap<ExperimentId, u64>,
    /// Whether the rulebook in force has a manifest take the place of another only once it is in force itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_force: bool,
    /// Designs of probes that no audit used yet, with the first of them that was open.
    pub probes: BTreeMap<ExperimentId, BTreeMap<DesignId, Option<u64>>>,
}

impl Manifests {
    /// The manifest that has a version with this digest.
    pub fn of_digest(&self, digest: Digest) -> Option<(&ManifestId, &ManifestRecord)> {
        let mut records = self.by_id.iter();
        records.find(|(_, record)| record.version(digest).is_some())
    }

    fn of_digest_mut(&mut self, digest: Digest) -> Option<&mut ManifestRecord> {
        let mut records = self.by_id.values_mut();
        records.find(|record| record.version(digest).is_some())
    }

    /// Gates of an experiment: those whose template is `gate`.
    pub(crate) fn gates<'a>(
        &'a self,
        experiment: &'a ExperimentId,
    ) -> impl Iterator<Item = (&'a ManifestId, &'a ManifestRecord)> {
        self.by_id.iter().filter(move |(_, record)| {
            let gate = |version: &ManifestVersion| version.manifest.template == Template::Gate;
            record.experiment.as_ref() == Some(experiment)
                && record.versions.first().is_some_and(gate)
        })
    }

    fn registered(&mut self, seq: u64, event: &Event, manifest: &Manifest, digests: [Digest; 2]) {
        let id = manifest.manifest.clone();
        if self.by_id.contains_key(&id) {
            return;
        }
        if let Some(old) = manifest.supersedes
            && let Some(old) = self.of_digest_mut(old)
        {
            old.superseded_by.get_or_insert(id.clone());
        }
        let version = version(seq, event, manifest, digests, None);
        let record = ManifestRecord {
            deviations: Vec::new(),
            experiment: event.header.experiment.clone(),
            exposed: Vec::new(),
            exposures: 0,
            first_look: None,
            first_probe: self.open_probe(manifest),
            plan: None,
            superseded_by: None,
            through: None,
            units: 0,
            versions: vec![version],
        };
        self.by_id.insert(id, record);
        self.joined(manifest);
    }

    /// The first open probe that a plan of audits comes after, of designs that no audit used yet.
    fn open_probe(&self, manifest: &Manifest) -> Option<u64> {
        manifest.transport.as_ref()?;
        let designs = self.probes.get(&manifest.experiment)?;
        designs.values().flatten().min().copied()
    }

    /// A label of a design could be seen.
    fn probed(&mut self, seq: u64, experiment: Option<&ExperimentId>, design: &DesignId) {
        let Some(experiment) = experiment else {
            return;
        };
        let designs = self.probes.get_mut(experiment);
        let Some(first) = designs.and_then(|designs| designs.get_mut(design)) else {
            return;
        };
        first.get_or_insert(seq);
        for record in self.by_id.values_mut() {
            let plans = record
                .versions
                .iter()
                .any(|of| of.manifest.transport.is_some());
            if plans && record.experiment.as_ref() == Some(experiment) {
                record.first_probe.get_or_insert(seq);
            }
        }
    }

    /// Probes of a design were used: no later plan grades them.
    fn used(&mut self, experiment: Option<&ExperimentId>, design: &DesignId) {
        if let Some(designs) = experiment.and_then(|id| self.probes.get_mut(id)) {
            designs.remove(design);
        }
    }

    fn joined(&mut self, manifest: &Manifest) {
        if let Some(multiplicity) = &manifest.multiplicity
            && let Some(family) = self.families.get_mut(&multiplicity.family)
        {
            family.join(&manifest.manifest, manifest.alpha().unwrap_or(0));
        }
    }

    /// An outcome was recorded or revealed in an experiment.
    fn outcome(&mut self, seq: u64, experiment: Option<&ExperimentId>) {
        if let Some(experiment) = experiment
            && !self.first_outcome.contains_key(experiment)
        {
            self.first_outcome.insert(experiment.clone(), seq);
        }
    }

    /// An outcome could be seen under every manifest of an experiment.
    fn revealed(&mut self, seq: u64, experiment: Option<&ExperimentId>) {
        let of = |record: &&mut ManifestRecord| record.experiment.as_ref() == experiment;
        for record in self.by_id.values_mut().filter(of) {
            record.look(seq);
        }
    }

    /// What is done under a manifest.
    fn acted(&mut self, seq: u64, at: Timestamp, payload: &Payload) {
        match payload {
            Payload::ManifestDeviated(said) => {
                if let Some(record) = self.of_digest_mut(said.digest) {
                    record.deviations.push(Deviation {
                        known_at_seq: said.known_at_seq.value(),
                        outcome_seen: said.outcome_seen,
                        rule_path: said.rule_path.as_str().to_owned(),
                        seq,
                        what: said.what.as_str().to_owned(),
                    });
                }
            }
            Payload::FamilyClosed(said) => {
                if let Some(family) = self.families.get_mut(&said.family) {
                    family.closed_seq.get_or_insert(seq);
                }
            }
            Payload::GateDecided(said) if gates::holds(said.outcome) => {
                let mut families = self.families.values_mut();
                let of = |family: &&mut Family| {
                    family.joined.iter().any(|(member, _)| *member == said.gate)
                };
                if let Some(family) = families.find(of)
                    && !family.rejected.contains(&said.gate)
                {
                    family.rejected.push(said.gate.clone());
                }
            }
            Payload::PlanSealed(said) => {
                if let Some(record) = self.by_id.get_mut(&said.manifest) {
                    record.plan.get_or_insert(Plan {
                        commitment: said.commitment,
                        reveal_by: said.reveal_by,
                        revealed_at: None,
                        revealed_seq: None,
                        sealed_seq: seq,
                    });
                }
            }
            Payload::PlanRevealed(said) => {
                let record = self.by_id.get_mut(&said.manifest);
                if let Some(plan) = record.and_then(|record| record.plan.as_mut()) {
                    plan.revealed_at.get_or_insert(at);
                    plan.revealed_seq.get_or_insert(seq);
                }
            }
            Payload::ExposureOpened(said) => {
                self.exposed
                    .entry(said.confirm_root.0.to_hex())
                    .or_insert(seq);
                if let Some(record) = self.of_digest_mut(said.digest) {
                    record.exposures += 1;
                    record.units = record.units.max(after(said.last_unit));
                    record.exposed.push((record.units, seq));
                    record.through.clone_from(&said.through);
                    record.look(seq);
                }
            }
            _ => {}
        }
    }
}

fn version(
    seq: u64,
    event: &Event,
    manifest: &Manifest,
    [digest, h0_digest]: [Digest; 2],
    class: Option<u64>,
) -> ManifestVersion {
    ManifestVersion {
        author: event.header.author,
        class,
        countersigned_by: None,
        countersigned_seq: None,
        digest,
        h0_digest,
        manifest: manifest.clone(),
        seq,
    }
}

impl Fold for Manifests {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, at, event) = (event.seq(), event.recorded_at(), event.event());
        let experiment = event.experiment();
        match &event.payload {
            Payload::LedgerCreated(of) => self.adopt(of.rulebook),
            Payload::RulebookAdopted(of) => self.adopt(Some(of.version)),
            Payload::AnchorSetRegistered(_) => self.anchored(seq, experiment),
            Payload::ScoreRecorded(_) => self.outcome(seq, experiment),
            Payload::LabelRecorded(label) => {
                self.outcome(seq, experiment);
                self.probed(seq, experiment, &label.design);
            }
            Payload::LabelRevealed(label) => {
                self.outcome(seq, experiment);
                self.revealed(seq, experiment);
                self.probed(seq, experiment, &label.design);
            }
            Payload::LabelDesignRegistered(new) => {
                if let (DesignPurpose::Audit, Some(experiment)) = (new.purpose, experiment) {
                    let designs = self.probes.entry(experiment.clone()).or_default();
                    designs.entry(new.design.clone()).or_default();
                }
            }
            Payload::EnvironmentsTested(said) => self.used(experiment, &said.design),
            Payload::TransportTested(said) => self.used(experiment, &said.design),
            Payload::FamilyOpened(opened) => {
                let gamma = opened.gamma_micro.iter().flatten();
                let family = Family {
                    alpha: opened.alpha_micro.value(),
                    closed_seq: None,
                    gamma: gamma.map(|share| share.value()).collect(),
                    joined: Vec::new(),
                    members: opened.members.clone(),
                    members_max: opened.members_max.value(),
                    method: opened.method,
                    opened_seq: seq,
                    rejected: Vec::new(),
                };
                self.families.entry(opened.family.clone()).or_insert(family);
            }
            Payload::ManifestRegistered(said) => {
                self.registered(seq, event, &said.manifest, [said.digest, said.h0_digest]);
            }
            Payload::ManifestAmended(said) => {
                let digests = [said.digest, said.h0_digest];
                if let Some(record) = self.by_id.get_mut(&said.manifest.manifest) {
                    let class = Some(said.class.value());
                    let version = version(seq, event, &said.manifest, digests, class);
                    record.versions.push(version);
                    self.joined(&said.manifest);
                }
            }
            Payload::ManifestCountersigned(said) => {
                let versions = self
                    .by_id
                    .values_mut()
                    .flat_map(|record| &mut record.versions);
                if let Some(version) = versions.into_iter().find(|of| of.digest == said.digest) {
                    version.countersigned_seq.get_or_insert(seq);
                    version.countersigned_by.get_or_insert(event.header.author);
                }
            }
            payload => self.acted(seq, at, payload),
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Units up to and with this one.
fn after(unit: Count) -> u64 {
    // Below 2^53, so that snapshots hold it exactly.
    (unit.value() + 1).min(clover_num::INTEGER_MAX)
}
