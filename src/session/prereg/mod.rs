//! Preregistration: plans that bind, their countersignatures, amendments and deviations, and plans that are sealed.

pub mod amendment;
pub mod deviation;
pub mod draft;
pub mod registration;
pub mod sealed;

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_projection::manifests::ManifestRecord;
use clover_projection::manifests::Manifests;

/// Why nothing of a plan was recorded.
#[derive(Debug, thiserror::Error)]
pub enum PreregError {
    /// A deviation was known at an entry that is not there yet.
    #[error("known at an entry that is not there: expected at most {size}")]
    Ahead {
        /// Entries of the ledger.
        size: u64,
    },
    /// No manifest of a name.
    #[error("no manifest {0}")]
    NoManifest(ManifestId),
    /// No rubric of an experiment.
    #[error("no rubric of {0}: a plan of an iteration starts from one")]
    NoRubric(ExperimentId),
    /// No version of a manifest is in force.
    #[error("{0} has no version in force yet")]
    NotInForce(ManifestId),
    /// An amendment states another parent than the version in force.
    #[error("expected the version in force, {expected}, found {stated}")]
    OtherParent {
        /// The version in force.
        expected: Digest,
        /// The one that it states.
        stated: Digest,
    },
    /// Registrar and custodian sign with one key.
    #[error(
        "countersign: the custodian's key is another than the registrar's; nothing was recorded"
    )]
    SameKey,
    /// Several judges have scores, and a draft reads those of one.
    #[error(
        "several judges have scores, {first} and {second} among them: a plan reads those of one"
    )]
    SeveralJudges {
        /// One of them.
        first: JudgeId,
        /// Another one.
        second: JudgeId,
    },
    /// An amendment changes nothing.
    #[error("it says what the version in force says")]
    Unchanged(ManifestId),
}

fn found<'a>(state: &'a State, id: &ManifestId) -> Result<&'a ManifestRecord, PreregError> {
    let record = state.fold::<Manifests>().by_id.get(id);
    record.ok_or_else(|| PreregError::NoManifest(id.clone()))
}
