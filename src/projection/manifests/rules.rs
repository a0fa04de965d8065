//! The rules of pre-registration: what is said before anybody looks binds.

use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::payload::custody::Separation;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Template;
use crate::event::payload::manifest::plan_commitment;
use crate::event::payload::prereg::ExposureOpened;
use crate::event::payload::prereg::ManifestAmended;
use crate::event::payload::prereg::ManifestRegistered;
use crate::event::payload::prereg::PlanRevealed;
use crate::event::payload::prereg::PlanSealed;
use crate::ground::digest::Digest;
use crate::ground::sign::KeyId;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::projection::manifests::amend;
use crate::projection::manifests::check;
use crate::projection::manifests::family;

/// The rules `manifest`, `manifest_first`, `amendment`, `stale_version`, `countersign`, `family`, `exposure` and
/// `plan`.
#[derive(Clone, Copy, Debug)]
pub struct Prereg;

impl Rule for Prereg {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let manifests = state.fold::<Manifests>();
        let header = &event.event.header;
        let experiment = header.experiment.as_ref();
        let mut judge = |rule, judged: Judged| {
            if let Some((expected, found)) = judged {
                breaches.push(Breach::new(rule, expected, found));
            }
        };
        match &event.event.payload {
            Payload::ScoreRecorded(_) | Payload::LabelRecorded(_) => {
                judge(RuleName::ManifestFirst, outcome(manifests, experiment));
            }
            Payload::FamilyOpened(opened) => judge(RuleName::Family, family::opened(opened)),
            Payload::ManifestRegistered(said) => {
                let by = header.author;
                let judged = registered(manifests, experiment, by, said);
                judge(
                    RuleName::Manifest,
                    judged.or_else(|| noisy(state, &said.manifest)),
                );
                judge(
                    RuleName::ManifestFirst,
                    first(manifests, experiment, &said.manifest),
                );
                judge(RuleName::Family, family::join(manifests, &said.manifest));
            }
            Payload::ManifestAmended(said) => {
                let digests = [said.digest, said.h0_digest];
                let by = header.author;
                let judged = whole(experiment, by, &said.manifest, digests);
                judge(
                    RuleName::Manifest,
                    judged.or_else(|| noisy(state, &said.manifest)),
                );
                let judged = amended(manifests, said).or_else(|| ordered(state, manifests, said));
                let anew = judged.is_none() && matches!(said.class.value(), 1 | 3);
                judge(RuleName::Amendment, judged);
                judge(
                    RuleName::ManifestFirst,
                    again(manifests, experiment, &said.manifest, anew),
                );
                let record = manifests.by_id.get(&said.manifest.manifest);
                judge(RuleName::StaleVersion, record.and_then(superseded));
                judge(RuleName::Family, family::amended(manifests, &said.manifest));
            }
            Payload::ManifestCountersigned(said) => {
                let digest = said.digest;
                judge(RuleName::ManifestFirst, waited(manifests, digest));
                judge(
                    RuleName::StaleVersion,
                    countersigned_newest(manifests, digest),
                );
                judge(
                    RuleName::Countersign,
                    countersigned(state, header.author, digest),
                );
            }
            Payload::ManifestDeviated(said) => {
                judge(
                    RuleName::Manifest,
                    known(manifests, experiment, said.digest),
                );
                judge(RuleName::StaleVersion, current(manifests, said.digest));
            }
            Payload::PlanSealed(said) => judge(RuleName::Plan, sealed(manifests, experiment, said)),
            Payload::PlanRevealed(said) => {
                judge(
                    RuleName::Plan,
                    revealed(manifests, experiment, &header.ledger, said),
                );
            }
            Payload::ExposureOpened(said) => {
                judge(
                    RuleName::ManifestFirst,
                    registered_before(manifests, experiment, said),
                );
                judge(RuleName::StaleVersion, current(manifests, said.digest));
                judge(RuleName::Countersign, in_force(manifests, said.digest));
                judge(RuleName::Exposure, exposed(manifests, event, said));
            }
            _ => {}
        }
    }
}

/// A manifest by itself: its experiment, its digests, its contents, its registrar.
fn whole(
    experiment: Option<&ExperimentId>,
    author: KeyId,
    manifest: &Manifest,
    [digest, h0_digest]: [Digest; 2],
) -> Judged {
    if experiment != Some(&manifest.experiment) {
        let found = experiment.map_or("null", ExperimentId::as_str);
        return no(
            format!("an event of experiment {}", manifest.experiment),
            found,
        );
    }
    if manifest.digest() != digest {
        return no(format!("digest {}", manifest.digest()), digest.to_string());
    }
    if manifest.h0_digest() != h0_digest {
        let found = h0_digest.to_string();
        return no(format!("h0_digest {}", manifest.h0_digest()), found);
    }
    if let Some(fault) = check::fault_of(manifest) {
        let expected = format!("{}: {}", fault.path, fault.expected);
        return no(expected, fault.found);
    }
    let registrar = manifest.roles.as_ref().and_then(|roles| roles.registrar);
    signer("registrar", registrar, author)
}

/// A claim about exactly its own units is one about scores without noise. The mean of noisy ones is not what was judged: two
/// arms that are the same differ in it, and a test of all units would find that.
fn noisy(state: &State, manifest: &Manifest) -> Judged {
    let test = manifest.test.as_ref()?;
    let noise = manifest.metric.as_ref().and_then(|metric| metric.noise);
    if !state.asks(Question::FiniteClaims) || !test.without_replacement || noise.is_some() {
        return None;
    }
    no(
        "metric.noise none, where scoring a unit again gives the same score; or test.without_replacement false and estimand.population superpopulation",
        "a claim about exactly its own units, of scores that may be noisy (E_UNIT)",
    )
}

/// A key that the manifest names signs, and no other.
pub(in crate::projection) fn signer(role: &str, named: Option<KeyId>, author: KeyId) -> Judged {
    let named = named.filter(|named| *named != author)?;
    no(
        format!("signed by roles.{role} {named}"),
        format!("{author} (E_SIGNER_ROLE)"),
    )
}

fn registered(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    author: KeyId,
    said: &ManifestRegistered,
) -> Judged {
    let manifest = &said.manifest;
    let digests = [said.digest, said.h0_digest];
    if let Some(judged) = whole(experiment, author, manifest, digests) {
        return Some(judged);
    }
    if manifest.version.value() != 1 || manifest.parent_digest.is_some() {
        let found = format!("version {}", manifest.version);
        return no("version 1 without parent_digest", found);
    }
    if let Some(record) = manifests.by_id.get(&manifest.manifest) {
        let seq = record.versions.first().map_or(0, |version| version.seq);
        let found = format!("{}, registered at seq {seq}", manifest.manifest);
        return no("a manifest id that is not used yet", found);
    }
    let old = manifest.supersedes?;
    match manifests.of_digest(old) {
        None => no(
            "supersedes: the digest of a registered version",
            old.to_string(),
        ),
        Some((id, record)) => record.superseded_by.as_ref().and_then(|by| {
            let found = format!("{id}, superseded by {by}");
            no("a manifest that is not superseded yet", found)
        }),
    }
}

/// Nobody has looked before a manifest is registered.
fn first(manifests: &Manifests, experiment: Option<&ExperimentId>, manifest: &Manifest) -> Judged {
    if manifest.template == Template::Gate
        && let Some(seq) = experiment.and_then(|id| manifests.first_outcome.get(id))
    {
        return no(
            "a gate's manifest before any score or readable label of its experiment",
            format!("one at seq {seq} (E_ADAPTIVE_REUSE)"),
        );
    }
    let root = manifest.data.as_ref()?.confirm_root.0;
    let seq = manifests.exposed.get(&root.to_hex())?;
    no(
        "a confirm root whose units nobody has seen",
        format!(
            "{}, exposed at seq {seq} (E_ADAPTIVE_REUSE)",
            root.to_base64()
        ),
    )
}

/// A version that waits for its countersignature comes into force before anybody has looked too: its order is drawn from what
/// the log is then.
fn waited(manifests: &Manifests, digest: Digest) -> Judged {
    let (_, record) = manifests.of_digest(digest)?;
    let version = record.version(digest)?;
    let waits = version.needs_countersignature() && version.countersigned_seq.is_none();
    waits
        .then(|| first(manifests, record.experiment.as_ref(), &version.manifest))
        .flatten()
}

/// What is tested, on what, with whom and at which level is registered anew: nobody has looked before that either.
fn again(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    manifest: &Manifest,
    anew: bool,
) -> Judged {
    anew.then(|| first(manifests, experiment, manifest))
        .flatten()
}

/// In an experiment with a gate nothing is scored before units are exposed under one.
fn outcome(manifests: &Manifests, experiment: Option<&ExperimentId>) -> Judged {
    let mut gates = manifests.gates(experiment?);
    let (id, record) = gates.next()?;
    if record.exposures > 0 || gates.any(|(_, record)| record.exposures > 0) {
        return None;
    }
    no(
        format!("exposure.opened under gate manifest {id} before any score or open label"),
        "none (E_EXPOSURE)",
    )
}

fn amended(manifests: &Manifests, said: &ManifestAmended) -> Judged {
    let id = &said.manifest.manifest;
    let Some(record) = manifests.by_id.get(id) else {
        return no("a registered manifest", format!("{id}, not registered"));
    };
    let parent = record.in_force();
    let newest = record.versions.len() as u64;
    let Some(parent) = parent.filter(|parent| {
        said.parent_digest == parent.digest && said.manifest.parent_digest == Some(parent.digest)
    }) else {
        let expected = parent.map_or("a version in force".to_owned(), |parent| {
            format!("parent_digest {}, in force", parent.digest)
        });
        return no(expected, said.parent_digest.to_string());
    };
    if said.manifest.version.value() != newest + 1 {
        let found = format!("version {}", said.manifest.version);
        return no(format!("version {}", newest + 1), found);
    }
    let changes = amend::changes(&parent.manifest, &said.manifest);
    let fixed = ["experiment", "manifest", "supersedes", "template"];
    if let Some(change) = changes
        .iter()
        .find(|change| fixed.contains(&change.path.as_str()))
    {
        let found = change.to.as_deref().unwrap_or("none");
        let from = change.from.as_deref().unwrap_or("none");
        return no(
            format!("{} {from}, which no amendment changes", change.path),
            found,
        );
    }
    let class = amend::class(&parent.manifest, &said.manifest);
    if said.class.value() != class {
        return no(format!("class {class}"), format!("class {}", said.class));
    }
    let look = record
        .first_look
        .as_ref()
        .filter(|_| class == 1 || class == 3)?;
    // One of a lower class may be of this one by its value, as a smaller n_max.
    let of_class = changes.iter().any(|change| change.class() == class);
    let codes = changes
        .iter()
        .filter(|change| !of_class || change.class() == class);
    let codes: Vec<_> = codes
        .map(|change| format!("{} ({})", change.path, change.code()))
        .collect();
    let expected = if class == 3 {
        format!(
            "no change of what is tested after the first look at seq {}; a new manifest with supersedes {} would be accepted",
            look.seq, parent.digest
        )
    } else {
        format!(
            "an amendment of class 0 or 2 after the first look at seq {}",
            look.seq
        )
    };
    no(expected, format!("class {class}: {}", codes.join(", ")))
}

/// What is tested binds from its first countersignature on: the checkpoint above that draws the order, and an amendment
/// would draw another.
fn ordered(state: &State, manifests: &Manifests, said: &ManifestAmended) -> Judged {
    if !state.asks(Question::OneOrder) || said.class.value() < 3 {
        return None;
    }
    let record = manifests.by_id.get(&said.manifest.manifest)?;
    let mut versions = record.versions.iter();
    let seq = versions.find_map(|version| version.countersigned_seq)?;
    no(
        format!(
            "no change of what is tested after the countersignature at seq {seq}; a new manifest that supersedes this one would be accepted"
        ),
        "class 3 (E_ORDER)",
    )
}

fn superseded(record: &Record) -> Judged {
    let by = record.superseded_by.as_ref()?;
    no(
        "a manifest in force",
        format!("one that {by} superseded (E_STALE_VERSION)"),
    )
}

/// The digest of a version in force, where the manifest is known and any is.
pub(in crate::projection) fn current(manifests: &Manifests, digest: Digest) -> Judged {
    let (_, record) = manifests.of_digest(digest)?;
    if let Some(judged) = superseded(record) {
        return Some(judged);
    }
    let current = record
        .in_force()
        .filter(|current| current.digest != digest)?;
    no(
        format!(
            "version {} in force, {}",
            current.manifest.version, current.digest
        ),
        format!("{digest} (E_STALE_VERSION)"),
    )
}

fn known(manifests: &Manifests, experiment: Option<&ExperimentId>, digest: Digest) -> Judged {
    let found = manifests.of_digest(digest);
    if found.is_some_and(|(_, record)| record.experiment.as_ref() == experiment) {
        return None;
    }
    no(
        "the digest of a manifest of this experiment",
        digest.to_string(),
    )
}

fn registered_before(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    said: &ExposureOpened,
) -> Judged {
    let (_, found) = known(manifests, experiment, said.digest)?;
    no(
        "a manifest of this experiment, registered before its exposure",
        found,
    )
}

fn in_force(manifests: &Manifests, digest: Digest) -> Judged {
    let (id, record) = manifests.of_digest(digest)?;
    if record.in_force().is_some() {
        return None;
    }
    no(
        "a manifest that its custodian has countersigned",
        format!("{id}, not countersigned"),
    )
}

fn countersigned_newest(manifests: &Manifests, digest: Digest) -> Judged {
    let (_, record) = manifests.of_digest(digest)?;
    if let Some(judged) = superseded(record) {
        return Some(judged);
    }
    let newest = record
        .versions
        .last()
        .filter(|newest| newest.digest != digest)?;
    no(
        format!("the newest version, {}", newest.digest),
        format!("{digest} (E_STALE_VERSION)"),
    )
}

fn countersigned(state: &State, author: KeyId, digest: Digest) -> Judged {
    let manifests = state.fold::<Manifests>();
    let found = manifests.of_digest(digest);
    let Some(version) = found.and_then(|(_, record)| record.version(digest)) else {
        return no("the digest of a registered version", digest.to_string());
    };
    if !version.needs_countersignature() {
        let found = "one that needs no countersignature";
        return no("a version that binds confirm data", found);
    }
    let roles = version.manifest.roles.as_ref();
    if let Some(judged) = signer("custodian", roles.and_then(|roles| roles.custodian), author) {
        return Some(judged);
    }
    if author == version.author {
        return no("another key than the registrar's", author.to_string());
    }
    // An amendment that could wait for outcomes would be chosen by them.
    if let Some((_, record)) = found
        && let (Some(class), Some(look)) = (version.class, &record.first_look)
    {
        return no(
            format!(
                "an amendment that comes into force before the first look at seq {}",
                look.seq
            ),
            format!("one of class {class} (E_STALE_VERSION)"),
        );
    }
    let keyring = &state.keyring;
    let holder = |key: &KeyId| keyring.keys.get(key).map(|record| &record.holder);
    if keyring.separation() == Some(Separation::Strict)
        && let Some(custodian) = holder(&author)
        && Some(custodian) == holder(&version.author)
    {
        let found = format!("{custodian}, who registered it");
        return no("another holder than the registrar's, under strict", found);
    }
    None
}

fn sealed(manifests: &Manifests, experiment: Option<&ExperimentId>, said: &PlanSealed) -> Judged {
    let id = &said.manifest;
    let record = manifests.by_id.get(id);
    let Some(record) = record.filter(|record| record.experiment.as_ref() == experiment) else {
        return no("a manifest of this experiment", id.to_string());
    };
    if let Some(look) = &record.first_look {
        return no(
            "a plan before the first look",
            format!("a first look at seq {}", look.seq),
        );
    }
    let analysis = record
        .in_force()
        .and_then(|version| version.manifest.analysis.as_ref());
    let bound = analysis.and_then(|analysis| analysis.plan_commitment);
    let bound = bound.filter(|bound| *bound != said.commitment)?;
    no(
        format!("commitment {bound}, as registered"),
        said.commitment.to_string(),
    )
}

fn revealed(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    origin: &str,
    said: &PlanRevealed,
) -> Judged {
    let id = &said.manifest;
    let record = manifests.by_id.get(id);
    let record = record.filter(|record| record.experiment.as_ref() == experiment);
    let Some(plan) = record.and_then(|record| record.plan.as_ref()) else {
        return no("a sealed plan of this manifest", "none");
    };
    let opened = plan_commitment(origin, id.as_str(), &said.salt.0, &said.plan.blake3);
    if opened == plan.commitment {
        return None;
    }
    no(
        format!("what opens to {}", plan.commitment),
        opened.to_string(),
    )
}

fn exposed(manifests: &Manifests, event: &Candidate<'_>, said: &ExposureOpened) -> Judged {
    let (_, record) = manifests.of_digest(said.digest)?;
    let manifest = &record.in_force()?.manifest;
    let Some(data) = &manifest.data else {
        return no("a manifest that binds confirm data", "none (E_DATA_ROOT)");
    };
    if said.confirm_root != data.confirm_root {
        let found = format!("{} (E_DATA_ROOT)", said.confirm_root.0.to_base64());
        return no(
            format!("confirm_root {}", data.confirm_root.0.to_base64()),
            found,
        );
    }
    let cap = data.exposure_cap.value();
    if said.exposure.value() != record.exposures + 1 || said.exposure.value() > cap {
        let expected = format!("exposure {} of at most {cap}", record.exposures + 1);
        return no(expected, format!("exposure {} (E_EXPOSURE)", said.exposure));
    }
    let (from, to) = (said.first_unit.value(), said.last_unit.value());
    if from != record.units || to < from || to >= data.n_units.value() {
        let last = data.n_units.value().saturating_sub(1);
        let expected = format!("units from {} to at most {last}", record.units);
        return no(expected, format!("units {from} to {to} (E_EXPOSURE)"));
    }
    let custodian = manifest.roles.as_ref().and_then(|roles| roles.custodian);
    if let Some(judged) = signer("custodian", custodian, event.event.header.author) {
        return Some(judged);
    }
    let expiry = manifest.expiry.as_ref()?;
    let now = event.recorded_at;
    if let Some(until) = expiry.embargo_until.filter(|until| now < *until) {
        return no(
            format!("not before the embargo ends at {until}"),
            now.to_string(),
        );
    }
    if record.exposures > 0 {
        return None;
    }
    if let Some(before) = expiry.must_start_before.filter(|before| now >= *before) {
        return no(format!("a start before {before}"), now.to_string());
    }
    let before = expiry
        .must_start_before_seq
        .filter(|before| event.seq >= before.value())?;
    no(
        format!("a start below seq {before}"),
        format!("seq {}", event.seq),
    )
}
