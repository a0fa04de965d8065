//! Registration of a manifest, and its countersignature by the custodian of the data that it binds.

use clover_event::Kind;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::prereg::ManifestCountersigned;
use clover_event::payload::prereg::ManifestRegistered;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
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
