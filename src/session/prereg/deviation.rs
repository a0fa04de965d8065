//! A deviation: something was done otherwise than registered.

use clover_event::id::ManifestId;
use clover_event::id::Text;
use clover_event::payload::prereg::ManifestDeviated;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::ports::Ports;
use crate::prereg::PreregError;
use crate::prereg::found;

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
