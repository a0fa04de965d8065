//! The rule `plan`: what will be run is sealed before anybody looks, and is what the manifest binds.

use clover_event::id::ExperimentId;
use clover_event::payload::manifest::plan_commitment;
use clover_event::payload::prereg::PlanRevealed;
use clover_event::payload::prereg::PlanSealed;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

/// Whether a plan may be sealed: before the first look, and as the version in force binds it.
pub(super) fn check_sealing(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    said: &PlanSealed,
) -> RuleAnswer {
    let id = &said.manifest;
    let record = manifests.by_id.get(id);
    let Some(record) = record.filter(|record| record.experiment.as_ref() == experiment) else {
        return unmet("a manifest of this experiment", id.to_string());
    };
    if let Some(look) = &record.first_look {
        return unmet(
            "a plan before the first look",
            format!("a first look at seq {}", look.seq),
        );
    }
    let Some(bound) = record.in_force().and_then(ManifestVersion::plan_commitment) else {
        // A version need not bind a plan. A plan may be sealed before any is in force: units are not exposed on another.
        return Ok(());
    };
    ensure!(
        said.commitment == bound,
        format!("commitment {bound}, as registered"),
        said.commitment.to_string(),
    );
    Ok(())
}

/// Whether what is revealed opens the plan that was sealed.
pub(super) fn check_revealing(
    manifests: &Manifests,
    experiment: Option<&ExperimentId>,
    origin: &str,
    said: &PlanRevealed,
) -> RuleAnswer {
    let id = &said.manifest;
    let record = manifests.by_id.get(id);
    let record = record.filter(|record| record.experiment.as_ref() == experiment);
    let plan = record.and_then(|record| record.plan.as_ref());
    let plan = plan.required("a sealed plan of this manifest")?;
    let opened = plan_commitment(origin, id.as_str(), &said.salt.0, &said.plan.blake3);
    ensure!(
        opened == plan.commitment,
        format!("what opens to {}", plan.commitment),
        opened.to_string(),
    );
    Ok(())
}

/// Units are exposed on the plan that the version in force binds: before that a version may bind another plan than the sealed
/// one, and from then on none may.
pub(super) fn check_exposure(state: &State, digest: Digest) -> RuleAnswer {
    let found = state.fold::<Manifests>().of_digest(digest);
    // The rule `manifest_first` refuses an exposure under no manifest, and `countersign` one under no version in force.
    let record = found.map(|(_, record)| record);
    let bound = record
        .and_then(ManifestRecord::in_force)
        .and_then(ManifestVersion::plan_commitment);
    let (Some(record), Some(bound)) = (record, bound) else {
        return Ok(());
    };
    let is_first = record.exposures == 0;
    if !state.asks(Question::SealedPlan) || !is_first {
        return Ok(());
    }
    let sealed = record.plan.as_ref().map(|plan| plan.commitment);
    ensure!(
        sealed == Some(bound),
        format!("plan.sealed of analysis.plan_commitment {bound} before units are exposed"),
        sealed.map_or("none".to_owned(), |sealed| sealed.to_string()),
    );
    Ok(())
}
