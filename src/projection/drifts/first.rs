//! Thresholds of drift and overlap that nobody chooses once a result can be seen: of several plans the one that was in force
//! first judges, if it was before that; else the usual numbers do.

use clover_event::id::ExperimentId;
use clover_event::id::ManifestId;
use clover_event::payload::drift::DriftPlan;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::overlap::OverlapThresholds;
use clover_ground::digest::Digest;
use clover_ledger::ensure;

use crate::drifts::drift_plan;
use crate::drifts::overlap_plan;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

/// The plan that registers some numbers and was in force first, with the digest of its version then: before an entry by which
/// a result could be seen, where one is. One that came later plans nothing, and none that changes later changes them.
pub fn first_planned<'a, T>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
    of: impl Fn(&Manifest) -> Option<T>,
    look: Option<u64>,
) -> Option<(&'a ManifestId, Digest, T)> {
    let look = look.unwrap_or(u64::MAX);
    let records = manifests.by_id.iter();
    let then = records.filter_map(|(id, record)| {
        let is_of = record.experiment.as_ref() == Some(experiment);
        let replaced = manifests.replaced_seq(record);
        if !is_of || replaced.is_some_and(|seq| seq < look) {
            return None;
        }
        let version = record.before(look)?;
        let numbers = of(&version.manifest)?;
        let plans = record
            .versions
            .iter()
            .filter(|one| of(&one.manifest).is_some());
        let since = plans.filter_map(ManifestVersion::since).min()?;
        Some((since, (id, version.digest, numbers)))
    });
    then.min_by_key(|(since, _)| *since).map(|(_, found)| found)
}

/// The plan of drift that binds: in force before the first anchor set of the experiment was registered.
pub fn first_drift<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
) -> Option<(&'a ManifestId, Digest, DriftPlan)> {
    let look = manifests.first_anchors.get(experiment).copied();
    first_planned(manifests, experiment, drift_plan, look)
}

/// The plan of overlap that binds: in force before the first score or label of the experiment.
pub fn first_overlap<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
) -> Option<(&'a ManifestId, Digest, OverlapThresholds)> {
    let look = manifests.first_outcome.get(experiment).copied();
    first_planned(manifests, experiment, overlap_plan, look)
}

/// A result is judged by the plan that binds, else by the usual numbers.
pub(super) fn check_first<T: PartialEq>(
    plan: Option<(&ManifestId, Digest, T)>,
    usual: &T,
    (found, manifest): (T, Option<Digest>),
) -> clover_ledger::RuleAnswer {
    let named = |of: Option<Digest>| of.map_or("none".to_owned(), |of| of.to_string());
    let Some((id, digest, numbers)) = plan else {
        ensure!(
            manifest.is_none() && found == *usual,
            "the usual thresholds: no plan was in force before the result could be seen",
            format!("others, by manifest {}", named(manifest))
        );
        return Ok(());
    };
    ensure!(
        manifest == Some(digest) && found == numbers,
        format!(
            "the thresholds of {id}, in force before the result could be seen, and its digest {digest}"
        ),
        format!("others, by manifest {}", named(manifest))
    );
    Ok(())
}

/// Which plan grades an audit by the probes of a design.
#[derive(Clone, Copy, Debug)]
pub enum AuditPlan<'a> {
    /// Of the plans in force before the first probe was open, the one that was in force first.
    Graded(&'a ManifestVersion),
    /// It graded, and was withdrawn or changed after a probe was open.
    Withdrawn(&'a ManifestId),
    /// No plan was in force before a probe was open.
    Unplanned,
}

/// The plan that grades audits of a design whose first probe was open at an entry.
pub fn audit_plan<'a>(
    manifests: &'a Manifests,
    experiment: &ExperimentId,
    opened: u64,
) -> AuditPlan<'a> {
    let of_experiment = |record: &&ManifestRecord| record.experiment.as_ref() == Some(experiment);
    let records = manifests.by_id.values().filter(of_experiment);
    // A record that was superseded before the first probe plans nothing of it; one that was superseded later did.
    let then = records.filter_map(|record| {
        let version = record.before(opened)?;
        let replaced = manifests.replaced_seq(record);
        let stood = replaced.is_none_or(|seq| seq > opened);
        let plans = record
            .versions
            .iter()
            .filter(|of| of.manifest.transport.is_some());
        let since = plans.filter_map(ManifestVersion::since).min()?;
        (stood && version.manifest.transport.is_some()).then_some((since, record))
    });
    let Some((_, record)) = then.min_by_key(|(since, _)| *since) else {
        return AuditPlan::Unplanned;
    };
    let is_replaced = if manifests.is_by_force {
        manifests.replaced_seq(record).is_some()
    } else {
        record.superseded_by.is_some()
    };
    match record.in_force() {
        Some(now) if !is_replaced && record.plans_audits_before(Some(opened)) => {
            AuditPlan::Graded(now)
        }
        Some(now) => AuditPlan::Withdrawn(&now.manifest.manifest),
        None => AuditPlan::Unplanned,
    }
}
