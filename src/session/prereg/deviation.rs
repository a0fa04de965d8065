//! A deviation: something was done otherwise than registered.

use crate::event::id::ManifestId;
use crate::event::id::Text;
use crate::event::payload::prereg::ManifestDeviated;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::session::append;
use crate::session::append::Intent;
use crate::session::append::Submission;
use crate::session::error::SessionError;
use crate::session::ports::Ports;
use crate::session::prereg::PreregError;
use crate::session::prereg::found;

/// What is said of a deviation.
#[derive(Clone, Debug)]
pub struct DeviationTerms {
    /// The manifest.
    pub manifest: ManifestId,
    /// Entries that stood when it became known; all of them without a number.
    pub known_at_seq: Option<u64>,
    /// The part of the manifest, as a path of its fields.
    pub rule_path: Text,
    /// What was done.
    pub what: Text,
    /// Why.
    pub why: Text,
    /// What it does to the claim.
    pub impact: Text,
    /// Whether an outcome had been seen by then.
    pub outcome_seen: bool,
}

/// Records a deviation from the version in force.
///
/// # Errors
/// [`PreregError`], [`SessionError::Port`] without a key, and [`SessionError::Ledger`].
pub fn deviate(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: DeviationTerms,
    intent: Intent,
) -> Result<Submission, SessionError> {
    let version = found(ledger.state(), &terms.manifest)?.in_force();
    let version = version.ok_or_else(|| PreregError::NotInForce(terms.manifest.clone()))?;
    let size = ledger.size();
    let known = Count::new(terms.known_at_seq.unwrap_or(size));
    let known = known.filter(|known| known.value() <= size);
    let payload = ManifestDeviated {
        digest: version.digest,
        impact: terms.impact,
        known_at_seq: known.ok_or(PreregError::Ahead { size })?,
        outcome_seen: terms.outcome_seen,
        rule_path: terms.rule_path,
        what: terms.what,
        why: terms.why,
    };
    let experiment = version.manifest.experiment.clone();
    let command = Command::new(payload, Some(experiment));
    append::submit_one(ports, ledger, command, intent)
}
