//! Registration of a manifest, and its countersignature by the custodian of the data that it binds.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
use clover_event::payload::prereg::ManifestCountersigned;
use clover_event::payload::prereg::ManifestRegistered;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_projection::manifests;
use clover_projection::manifests::Manifests;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;
use crate::prereg::PreregError;

/// What was signed of a manifest.
#[derive(Clone, Debug)]
pub struct ManifestRegistration {
    /// The manifest, numbered as the ledger has it.
    pub manifest: Manifest,
    /// Its digest.
    pub digest: Digest,
    /// Its registration; without one only the countersignature was asked for.
    pub registered: Option<Submission>,
    /// Its countersignature, where one was asked for.
    pub countersigned: Option<Submission>,
}

/// The newest version that says what a file says: the number and the parent of an amendment are the ledger's
/// to give, and stand in no file.
fn recorded_as(state: &State, file: Manifest) -> Manifest {
    let record = state.fold::<Manifests>().by_id.get(&file.manifest);
    let newest = record.and_then(|record| record.versions.last());
    let numbered = newest.map(|newest| Manifest {
        parent_digest: newest.manifest.parent_digest,
        version: newest.manifest.version,
        ..file.clone()
    });
    let same = |numbered: &Manifest| newest.is_some_and(|newest| newest.manifest == *numbered);
    numbered.filter(same).unwrap_or(file)
}

/// Whether a ledger would still take a plan: one that it knows already, or one that binds nothing which was seen.
///
/// # Errors
/// [`SessionError::Breach`], as registration would refuse it.
pub fn in_time(state: &State, manifest: &Manifest) -> Result<(), SessionError> {
    let manifests = state.fold::<Manifests>();
    let recorded = recorded_as(state, manifest.clone());
    if manifests.of_digest(recorded.digest()).is_some() {
        return Ok(());
    }
    let root = manifest.data.as_ref().map(|data| data.confirm_root.0);
    unseen(state, &manifest.experiment, (manifest.template, root))
}

/// Whether what a new plan is to bind was seen by nobody.
///
/// # Errors
/// [`SessionError::Breach`], as registration would refuse it.
pub fn unseen(
    state: &State,
    experiment: &ExperimentId,
    binds: (Template, Option<Digest>),
) -> Result<(), SessionError> {
    let manifests = state.fold::<Manifests>();
    let checked = manifests::unseen(manifests, Some(experiment), binds);
    checked
        .map_err(|unmet| Breach::new(RuleName::ManifestFirst, unmet.expected, unmet.found).into())
}

/// Registers a manifest with the bytes of what it rests on, where they are at hand, and with `countersign` countersigns it;
/// whoever only countersigns needs no registrar's key.
/// A rehearsal shows the first of the two.
///
/// # Errors
/// [`PreregError::SameKey`], [`SessionError::Port`] without a key, and [`SessionError::Ledger`].
pub fn sign(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (file, basis): (Manifest, &[Vec<u8>]),
    countersign: bool,
    intent: Intent,
) -> Result<ManifestRegistration, SessionError> {
    let state = ledger.state();
    let manifest = recorded_as(state, file);
    let (digest, experiment) = (manifest.digest(), manifest.experiment.clone());
    let is_known = state.fold::<Manifests>().of_digest(digest).is_some();
    let countersigner = if countersign && (is_known || intent == Intent::Append) {
        let need = KeyNeed::of(Seat::Countersigner, Kind::ManifestCountersigned);
        Some(ports.signer(state, need)?)
    } else {
        None
    };
    let mut registered = None;
    if !(is_known && countersign) {
        let payload = ManifestRegistered {
            digest,
            h0_digest: manifest.h0_digest(),
            manifest: Box::new(manifest.clone()),
        };
        let signer = ports.signer(state, KeyNeed::runner(Kind::ManifestRegistered))?;
        let id = signer.id();
        if countersigner.as_ref().is_some_and(|other| other.id() == id) {
            return Err(PreregError::SameKey.into());
        }
        let commands = [Command::new(payload, Some(experiment.clone()))];
        let with = (basis, intent);
        let submission = append::submit_with(ports, ledger, &commands, &signer, with)?;
        registered = Some(submission);
    }
    let countersigned = match countersigner {
        None => None,
        Some(signer) => {
            let command = Command::new(ManifestCountersigned { digest }, Some(experiment));
            Some(append::submit(ports, ledger, &[command], &signer, intent)?)
        }
    };
    Ok(ManifestRegistration {
        manifest,
        digest,
        registered,
        countersigned,
    })
}
