//! A new version of a manifest: its number, its parent and its class are computed.

use crate::event::id::Text;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::prereg::ManifestAmended;
use crate::ground::digest::Digest;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::projection::manifests;
use crate::session::append;
use crate::session::append::Intent;
use crate::session::append::Submission;
use crate::session::error::SessionError;
use crate::session::ports::Ports;
use crate::session::prereg::PreregError;
use crate::session::prereg::found;

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
