//! An analysis plan that is committed to now and shown later.

use std::path::Path;

use clover_event::Kind;
use clover_event::id::Base64Bytes;
use clover_event::id::ManifestId;
use clover_event::payload::BlobRef;
use clover_event::payload::MediaType;
use clover_event::payload::manifest::plan_commitment;
use clover_event::payload::prereg::PlanRevealed;
use clover_event::payload::prereg::PlanSealed;
use clover_ground::ambient;
use clover_ground::digest::Digest;
use clover_ground::time::Timestamp;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::prereg::found;

/// A plan of a manifest, and where its salt is kept.
#[derive(Clone, Copy, Debug)]
pub struct SealTerms<'a> {
    /// The manifest.
    pub manifest: &'a ManifestId,
    /// The plan.
    pub plan: &'a [u8],
    /// By when it is revealed.
    pub reveal_by: Timestamp,
    /// A new file for the salt: without it nobody can reveal the plan.
    pub salt_file: &'a Path,
}

/// Commits to a plan. The salt is on disk before the commitment is in the log: a commitment that nobody can open is
/// worth nothing. A rehearsal keeps its salt nowhere.
///
/// # Errors
/// [`PreregError::NoManifest`](crate::prereg::PreregError::NoManifest), [`SessionError::Ambient`] about the
/// file, [`SessionError::Port`] without a key, and [`SessionError::Ledger`]; then the file is gone again.
pub fn seal(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: SealTerms<'_>,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let id = terms.manifest;
    let experiment = found(ledger.state(), id)?.experiment.clone();
    let mut salt = [0; 32];
    ledger
        .ambient()
        .with_entropy(|entropy| entropy.fill(&mut salt))?;
    let state = ledger.state();
    let origin = &state.keyring.origin;
    let payload = PlanSealed {
        commitment: plan_commitment(origin, id.as_str(), &salt, &Digest::blake3(terms.plan)),
        manifest: id.clone(),
        reveal_by: terms.reveal_by,
    };
    let signer = ports.signer(state, KeyNeed::runner(Kind::PlanSealed))?;
    let commands = [Command::new(payload, experiment)];
    if intent == Intent::Append {
        let text = format!("{}\n", Digest(salt).to_hex());
        ambient::write_new(terms.salt_file, text.as_bytes(), 0o600)?;
    }
    let submitted = append::submit(ports, ledger, &commands, &signer, intent);
    if submitted.is_err() && intent == Intent::Append {
        ambient::remove(terms.salt_file)?;
    }
    submitted
}

/// Reveals the plan that was sealed; its bytes are stored with the event.
///
/// # Errors
/// [`PreregError::NoManifest`](crate::prereg::PreregError::NoManifest), [`SessionError::Port`] without a key, and
/// [`SessionError::Ledger`].
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn reveal(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    id: &ManifestId,
    (plan, salt): (Vec<u8>, Digest),
    intent: Intent,
) -> Result<Submission, SessionError> {
    let experiment = found(ledger.state(), id)?.experiment.clone();
    let payload = PlanRevealed {
        manifest: id.clone(),
        plan: BlobRef {
            blake3: Digest::blake3(&plan),
            bytes: Count::new(plan.len() as u64).unwrap_or_default(),
            media: MediaType::new("text/plain").expect("BUG: a media type"),
        },
        salt: Base64Bytes(salt.0),
    };
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::PlanRevealed))?;
    let commands = [Command::new(payload, experiment)];
    append::submit_with(ports, ledger, &commands, &signer, (&[plan], intent))
}
