//! A new version of a manifest: its number, its parent and its class are computed.

use clover_event::id::Text;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::prereg::ManifestAmended;
use clover_ground::digest::Digest;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::manifests;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::Ports;
use crate::prereg::PreregError;
use crate::prereg::found;

/// What was signed of an amendment.
#[derive(Clone, Debug)]
pub struct Amendment {
    /// The new version.
    pub manifest: Manifest,
    /// Its digest.
    pub digest: Digest,
    /// How deep the change goes.
    pub class: u64,
    /// The event.
    pub submission: Submission,
}

/// Amends the version in force.
///
/// # Errors
/// [`PreregError`] where there is nothing to amend or nothing changes, [`SessionError::Port`] without a registrar's key,
/// and [`SessionError::Ledger`].
pub fn amend(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    mut manifest: Manifest,
    reason: Text,
    intent: Intent,
) -> Result<Amendment, SessionError> {
    let id = &manifest.manifest;
    let record = found(ledger.state(), id)?;
    let parent = record.in_force();
    let parent = parent.ok_or_else(|| PreregError::NotInForce(id.clone()))?;
    if let Some(stated) = manifest.parent_digest
        && stated != parent.digest
    {
        let expected = parent.digest;
        return Err(PreregError::OtherParent { expected, stated }.into());
    }
    manifest.parent_digest = Some(parent.digest);
    manifest.version = Count::new(record.versions.len() as u64 + 1).unwrap_or(manifest.version);
    let class = manifests::class(&parent.manifest, &manifest);
    if manifests::changes(&parent.manifest, &manifest).is_empty() {
        return Err(PreregError::Unchanged(manifest.manifest).into());
    }
    let digest = manifest.digest();
    let payload = ManifestAmended {
        class: Count::new(class).unwrap_or_default(),
        digest,
        h0_digest: manifest.h0_digest(),
        manifest: Box::new(manifest.clone()),
        parent_digest: parent.digest,
        reason,
    };
    let command = Command::new(payload, Some(manifest.experiment.clone()));
    let submission = append::submit_one(ports, ledger, command, intent)?;
    Ok(Amendment {
        manifest,
        digest,
        class,
        submission,
    })
}
