//! The rules of pre-registration: what is said before anybody looks binds.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::payload::custody::Separation;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
use clover_event::payload::prereg::ExposureOpened;
use clover_event::payload::prereg::ManifestAmended;
use clover_event::payload::prereg::ManifestRegistered;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Code;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::manifests::Change;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;
use crate::manifests::amend;
use crate::manifests::check;
use crate::manifests::exposed;
use crate::manifests::family;
use crate::manifests::plan;

/// The rules `manifest`, `manifest_first`, `amendment`, `stale_version`, `countersign`, `family`, `exposure` and
/// `plan`.
#[derive(Clone, Copy, Debug)]
pub struct Prereg;

impl Rule for Prereg {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        let manifests = state.fold::<Manifests>();
        let header = &event.event.header;
        let experiment = header.experiment.as_ref();
        match &event.event.payload {
            Payload::ScoreRecorded(_) | Payload::LabelRecorded(_) => {
                let checked = check_outcome(manifests, experiment);
                breaches.take(RuleName::ManifestFirst, checked);
            }
            Payload::FamilyOpened(opened) => {
                breaches.take(RuleName::Family, family::check_opening(opened));
            }
            Payload::ManifestRegistered(said) => check_registering(state, event, said, breaches),
            Payload::ManifestAmended(said) => check_amending(state, event, said, breaches),
            Payload::ManifestCountersigned(said) => {
                let digest = said.digest;
                breaches.take(RuleName::ManifestFirst, check_waited(manifests, digest));
                breaches.take(RuleName::StaleVersion, check_newest(manifests, digest));
                let checked = check_countersignature(state, header.author, digest);
                breaches.take(RuleName::Countersign, checked);
            }
            Payload::ManifestDeviated(said) => {
                let checked = check_known(manifests, experiment, said.digest);
                breaches.take(RuleName::Manifest, checked);
                let checked = check_current(manifests, said.digest);
                breaches.take(RuleName::StaleVersion, checked);
            }
            Payload::PlanSealed(said) => {
                breaches.take(
                    RuleName::Plan,
                    plan::check_sealing(manifests, experiment, said),
                );
            }
            Payload::PlanRevealed(said) => {
                let checked = plan::check_revealing(manifests, experiment, &header.ledger, said);
                breaches.take(RuleName::Plan, checked);
            }
            Payload::ExposureOpened(said) => {
                let checked = check_registered_before(manifests, experiment, said);
                breaches.take(RuleName::ManifestFirst, checked);
                let checked = check_current(manifests, said.digest);
                breaches.take(RuleName::StaleVersion, checked);
                breaches.take(
                    RuleName::Countersign,
                    check_in_force(manifests, said.digest),
                );
                breaches.take(RuleName::Exposure, exposed::check(manifests, event, said));
                breaches.take(RuleName::Plan, plan::check_exposure(state, said.digest));
            }
            _ => {}
        }
    }
}

/// What is asked of a manifest that is registered.
fn check_registering(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &ManifestRegistered,
    breaches: &mut Vec<Breach>,
) {
    let manifests = state.fold::<Manifests>();
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let whole = check_registration(manifests, experiment, header.author, said);
    let checked = whole.and_then(|()| check_noise(state, &said.manifest));
    breaches.take(RuleName::Manifest, checked);
    let checked = check_first(manifests, experiment, &said.manifest);
    breaches.take(RuleName::ManifestFirst, checked);
    let checked = family::check_joining(state, &said.manifest);
    breaches.take(RuleName::Family, checked);
}

/// What is asked of a new version of a manifest.
fn check_amending(
    state: &State,
    event: &ProposedEvent<'_>,
    said: &ManifestAmended,
    breaches: &mut Vec<Breach>,
) {
    let manifests = state.fold::<Manifests>();
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let digests = [said.digest, said.h0_digest];
    let whole = check_whole(experiment, header.author, &said.manifest, digests);
    let checked = whole.and_then(|()| check_noise(state, &said.manifest));
    breaches.take(RuleName::Manifest, checked);
    let follows = check_amendment(manifests, said);
    let checked = follows.and_then(|()| check_one_order(state, manifests, said));
    // What is tested, on what, with whom and at which level is registered anew: nobody has looked before that either.
    let is_anew = checked.is_ok() && matches!(said.class.value(), 1 | 3);
    breaches.take(RuleName::Amendment, checked);
    if is_anew {
        let checked = check_first(manifests, experiment, &said.manifest);
        breaches.take(RuleName::ManifestFirst, checked);
    }
    // The rule `amendment` refuses a version of a manifest that is not registered.
    if let Some(record) = manifests.by_id.get(&said.manifest.manifest) {
        breaches.take(RuleName::StaleVersion, check_superseded(record));
    }
    let checked = family::check_amendment(state, &said.manifest);
    breaches.take(RuleName::Family, checked);
}

/// A manifest by itself: its experiment, its digests, its contents, its registrar.
fn check_whole(
    experiment: Option<&ExperimentId>,
    author: KeyId,
    manifest: &Manifest,
    [digest, h0_digest]: [Digest; 2],
) -> RuleAnswer {
    if experiment != Some(&manifest.experiment) {
        let found = experiment.map_or("null", ExperimentId::as_str);
        return unmet(
            format!("an event of experiment {}", manifest.experiment),
            found,
        );
    }
    if manifest.digest() != digest {
        return unmet(format!("digest {}", manifest.digest()), digest.to_string());
    }
    if manifest.h0_digest() != h0_digest {
        let found = h0_digest.to_string();
        return unmet(format!("h0_digest {}", manifest.h0_digest()), found);
    }
    check(manifest).map_err(|fault| Unmet {
        expected: format!("{}: {}", fault.path, fault.expected),
        found: fault.found,
    })?;
    let registrar = manifest.roles.as_ref().and_then(|roles| roles.registrar);
    check_signer("registrar", registrar, author)
}

/// A claim about exactly its own units is one about scores without noise. The mean of noisy ones is not what was judged: two
/// arms that are the same differ in it, and a test of all units would find that.
fn check_noise(state: &State, manifest: &Manifest) -> RuleAnswer {
    let test = manifest.test.as_ref();
    let is_finite = test.is_some_and(|test| test.without_replacement);
    if !state.asks(Question::FiniteClaims) || !is_finite {
        return Ok(());
    }
    let noise = manifest.metric.as_ref().and_then(|metric| metric.noise);
    ensure!(
        noise.is_some(),
        "metric.noise none, where scoring a unit again gives the same score; or test.without_replacement false and estimand.population superpopulation",
        Code::Unit.of("a claim about exactly its own units, of scores that may be noisy"),
    );
    Ok(())
}

/// A key that the manifest names signs, and no other; where it names none, the key's role is enough.
pub(crate) fn check_signer(role: &str, named: Option<KeyId>, author: KeyId) -> RuleAnswer {
    let Some(named) = named else {
        return Ok(());
    };
    ensure!(
        named == author,
        format!("signed by roles.{role} {named}"),
        Code::SignerRole.of(author),
    );
    Ok(())
}

fn check_registration(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    author: KeyId,
    said: &ManifestRegistered,
) -> RuleAnswer {
    let manifest = &said.manifest;
    let digests = [said.digest, said.h0_digest];
    check_whole(experiment, author, manifest, digests)?;
    ensure!(
        manifest.version.value() == 1 && manifest.parent_digest.is_none(),
        "version 1 without parent_digest",
        format!("version {}", manifest.version),
    );
    if let Some(record) = manifests.by_id.get(&manifest.manifest) {
        let seq = record.versions.first().map_or(0, |version| version.seq);
        let found = format!("{}, registered at seq {seq}", manifest.manifest);
        return unmet("a manifest id that is not used yet", found);
    }
    let Some(old) = manifest.supersedes else {
        // It replaces none.
        return Ok(());
    };
    let Some((id, record)) = manifests.of_digest(old) else {
        let expected = "supersedes: the digest of a registered version";
        return unmet(expected, old.to_string());
    };
    match &record.superseded_by {
        None => Ok(()),
        Some(by) => unmet(
            "a manifest that is not superseded yet",
            format!("{id}, superseded by {by}"),
        ),
    }
}

/// Nobody has looked before a manifest is registered.
fn check_first(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    manifest: &Manifest,
) -> RuleAnswer {
    // A manifest without data binds no confirm set; the rule `manifest` refuses a gate without one.
    let root = manifest.data.as_ref().map(|data| data.confirm_root.0);
    unseen(manifests, experiment, (manifest.template, root))
}

/// Whether nobody has looked at what a new plan is to bind: a gate binds its experiment's scores and labels, every plan its
/// confirm set.
///
/// # Errors
/// [`Unmet`](clover_ledger::Unmet), with `E_ADAPTIVE_REUSE` and where it was seen.
pub fn unseen(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    (template, confirm_root): (Template, Option<Digest>),
) -> RuleAnswer {
    // The rule `manifest` refuses one of another experiment, or of none.
    if template == Template::Gate
        && let Some(seq) = experiment.and_then(|id| manifests.first_outcome.get(id))
    {
        return unmet(
            "a gate's manifest before any score or readable label of its experiment",
            Code::AdaptiveReuse.of(format_args!("one at seq {seq}")),
        );
    }
    let Some(root) = confirm_root else {
        return Ok(());
    };
    match manifests.exposed.get(&root.to_hex()) {
        None => Ok(()),
        Some(seq) => unmet(
            "a confirm root whose units nobody has seen",
            Code::AdaptiveReuse.of(format_args!("{}, exposed at seq {seq}", root.to_base64())),
        ),
    }
}

/// A registered version by its digest, with its manifest.
fn version_of(
    manifests: &Manifests,
    digest: Digest,
) -> Option<(&ManifestRecord, &ManifestVersion)> {
    let (_, record) = manifests.of_digest(digest)?;
    Some((record, record.version(digest)?))
}

/// A version that waits for its countersignature comes into force before anybody has looked too: its order is drawn from what
/// the log is then.
fn check_waited(manifests: &Manifests, digest: Digest) -> RuleAnswer {
    let Some((record, version)) = version_of(manifests, digest) else {
        // The rule `countersign` refuses it.
        return Ok(());
    };
    let waits = version.needs_countersignature() && version.countersigned_seq.is_none();
    if !waits {
        return Ok(());
    }
    check_first(manifests, record.experiment.as_ref(), &version.manifest)
}

/// In an experiment with a gate nothing is scored before units are exposed under one.
fn check_outcome(manifests: &Manifests, experiment: Option<&ExperimentId>) -> RuleAnswer {
    let Some(experiment) = experiment else {
        // The rule `experiment` refuses it.
        return Ok(());
    };
    let mut gates = manifests.gates(experiment);
    let Some((id, record)) = gates.next() else {
        // An experiment without a gate exposes nothing.
        return Ok(());
    };
    let is_exposed = record.exposures > 0 || gates.any(|(_, record)| record.exposures > 0);
    ensure!(
        is_exposed,
        format!("exposure.opened under gate manifest {id} before any score or open label"),
        Code::Exposure.of("none"),
    );
    Ok(())
}

/// Whether a version follows the one in force, with the class that its changes have.
fn check_amendment(manifests: &Manifests, said: &ManifestAmended) -> RuleAnswer {
    let id = &said.manifest.manifest;
    let Some(record) = manifests.by_id.get(id) else {
        return unmet("a registered manifest", format!("{id}, not registered"));
    };
    let parent = record.in_force();
    let newest = record.versions.len() as u64;
    let Some(parent) = parent.filter(|parent| {
        said.parent_digest == parent.digest && said.manifest.parent_digest == Some(parent.digest)
    }) else {
        let expected = parent.map_or("a version in force".to_owned(), |parent| {
            format!("parent_digest {}, in force", parent.digest)
        });
        return unmet(expected, said.parent_digest.to_string());
    };
    ensure!(
        said.manifest.version.value() == newest + 1,
        format!("version {}", newest + 1),
        format!("version {}", said.manifest.version),
    );
    let changes = amend::changes(&parent.manifest, &said.manifest);
    let fixed = ["experiment", "manifest", "supersedes", "template"];
    if let Some(change) = changes
        .iter()
        .find(|change| fixed.contains(&change.path.as_str()))
    {
        let found = change.to.as_deref().unwrap_or("none");
        let from = change.from.as_deref().unwrap_or("none");
        return unmet(
            format!("{} {from}, which no amendment changes", change.path),
            found,
        );
    }
    let class = amend::class(&parent.manifest, &said.manifest);
    ensure!(
        said.class.value() == class,
        format!("class {class}"),
        format!("class {}", said.class),
    );
    match &record.first_look {
        Some(look) if class == 1 || class == 3 => unmet_after(look.seq, parent, class, &changes),
        // Before the first look anything may change; words and what is predictable may later.
        _ => Ok(()),
    }
}

/// The refusal of an amendment of a class that no version has after the first look.
fn unmet_after(look: u64, parent: &ManifestVersion, class: u64, changes: &[Change]) -> RuleAnswer {
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
            "no change of what is tested after the first look at seq {look}; a new manifest with supersedes {} would be accepted",
            parent.digest
        )
    } else {
        format!("an amendment of class 0 or 2 after the first look at seq {look}")
    };
    unmet(expected, format!("class {class}: {}", codes.join(", ")))
}

/// What is tested binds from its first countersignature on: the checkpoint above that draws the order, and an amendment
/// would draw another.
fn check_one_order(state: &State, manifests: &Manifests, said: &ManifestAmended) -> RuleAnswer {
    if !state.asks(Question::OneOrder) || said.class.value() < 3 {
        return Ok(());
    }
    let record = manifests.by_id.get(&said.manifest.manifest);
    let record = record.required("a registered manifest")?;
    let mut versions = record.versions.iter();
    match versions.find_map(|version| version.countersigned_seq) {
        // Nobody has agreed to any version yet.
        None => Ok(()),
        Some(seq) => unmet(
            format!(
                "no change of what is tested after the countersignature at seq {seq}; a new manifest that supersedes this one would be accepted"
            ),
            Code::Order.of("class 3"),
        ),
    }
}

fn check_superseded(record: &ManifestRecord) -> RuleAnswer {
    match &record.superseded_by {
        None => Ok(()),
        Some(by) => unmet(
            "a manifest in force",
            Code::StaleVersion.of(format_args!("one that {by} superseded")),
        ),
    }
}

/// The digest of a version in force, where the manifest is known and any is. Of an unknown manifest, or of one that no version
/// brought into force, nothing is stale: the rules `manifest`, `manifest_first`, `countersign` and `gate` refuse it where it
/// must be there.
pub(crate) fn check_current(manifests: &Manifests, digest: Digest) -> RuleAnswer {
    let Some((_, record)) = manifests.of_digest(digest) else {
        return Ok(());
    };
    check_superseded(record)?;
    let Some(current) = record.in_force() else {
        return Ok(());
    };
    ensure!(
        current.digest == digest,
        format!(
            "version {} in force, {}",
            current.manifest.version, current.digest
        ),
        Code::StaleVersion.of(digest),
    );
    Ok(())
}

/// Whether a manifest of this experiment has a version of this digest.
fn is_known(manifests: &Manifests, experiment: Option<&ExperimentId>, digest: Digest) -> bool {
    let found = manifests.of_digest(digest);
    found.is_some_and(|(_, record)| record.experiment.as_ref() == experiment)
}

fn check_known(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    digest: Digest,
) -> RuleAnswer {
    ensure!(
        is_known(manifests, experiment, digest),
        "the digest of a manifest of this experiment",
        digest.to_string(),
    );
    Ok(())
}

fn check_registered_before(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    said: &ExposureOpened,
) -> RuleAnswer {
    ensure!(
        is_known(manifests, experiment, said.digest),
        "a manifest of this experiment, registered before its exposure",
        said.digest.to_string(),
    );
    Ok(())
}

fn check_in_force(manifests: &Manifests, digest: Digest) -> RuleAnswer {
    let Some((id, record)) = manifests.of_digest(digest) else {
        // The rule `manifest_first` refuses it.
        return Ok(());
    };
    ensure!(
        record.in_force().is_some(),
        "a manifest that its custodian has countersigned",
        format!("{id}, not countersigned"),
    );
    Ok(())
}

fn check_newest(manifests: &Manifests, digest: Digest) -> RuleAnswer {
    let Some((_, record)) = manifests.of_digest(digest) else {
        // The rule `countersign` refuses it.
        return Ok(());
    };
    check_superseded(record)?;
    let newest = record.versions.last().required("a registered version")?;
    ensure!(
        newest.digest == digest,
        format!("the newest version, {}", newest.digest),
        Code::StaleVersion.of(digest),
    );
    Ok(())
}

fn check_countersignature(state: &State, author: KeyId, digest: Digest) -> RuleAnswer {
    let Some((record, version)) = version_of(state.fold::<Manifests>(), digest) else {
        return unmet("the digest of a registered version", digest.to_string());
    };
    ensure!(
        version.needs_countersignature(),
        "a version that binds confirm data",
        "one that needs no countersignature",
    );
    let roles = version.manifest.roles.as_ref();
    check_signer("custodian", roles.and_then(|roles| roles.custodian), author)?;
    ensure!(
        author != version.author,
        "another key than the registrar's",
        author.to_string(),
    );
    // An amendment that could wait for outcomes would be chosen by them.
    if let (Some(class), Some(look)) = (version.class, &record.first_look) {
        return unmet(
            format!(
                "an amendment that comes into force before the first look at seq {}",
                look.seq
            ),
            Code::StaleVersion.of(format_args!("one of class {class}")),
        );
    }
    let keyring = &state.keyring;
    let is_strict = keyring.separation() == Some(Separation::Strict);
    // The rule `key` refuses an author whom nobody knows.
    let holder = |key: &KeyId| keyring.keys.get(key).map(|record| &record.holder);
    if is_strict
        && let Some(custodian) = holder(&author)
        && Some(custodian) == holder(&version.author)
    {
        let found = format!("{custodian}, who registered it");
        return unmet("another holder than the registrar's, under strict", found);
    }
    Ok(())
}
