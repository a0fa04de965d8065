//! The part of the rule `exposure` that a manifest decides: which units, how often, by whom and when.

use clover_event::payload::manifest::Manifest;
use clover_event::payload::prereg::ExposureOpened;
use clover_ledger::Code;
use clover_ledger::ProposedEvent;
use clover_ledger::RuleAnswer;
use clover_ledger::ensure;
use clover_ledger::unmet;

use crate::manifests::ManifestRecord;
use crate::manifests::Manifests;
use crate::manifests::check_signer;

/// Whether these units may be exposed now, under this manifest and by this key.
pub(super) fn check(
    manifests: &Manifests,
    event: &ProposedEvent<'_>,
    said: &ExposureOpened,
) -> RuleAnswer {
    let Some((_, record)) = manifests.of_digest(said.digest) else {
        // The rule `manifest_first` refuses it.
        return Ok(());
    };
    let Some(version) = record.in_force() else {
        // The rule `countersign` refuses it.
        return Ok(());
    };
    let manifest = &version.manifest;
    let Some(data) = &manifest.data else {
        return unmet(
            "a manifest that binds confirm data",
            Code::DataRoot.of("none"),
        );
    };
    ensure!(
        said.confirm_root == data.confirm_root,
        format!("confirm_root {}", data.confirm_root.0.to_base64()),
        Code::DataRoot.of(said.confirm_root.0.to_base64()),
    );
    let cap = data.exposure_cap.value();
    let number = record.exposures + 1;
    ensure!(
        said.exposure.value() == number && number <= cap,
        format!("exposure {number} of at most {cap}"),
        Code::Exposure.of(format_args!("exposure {}", said.exposure)),
    );
    let (from, to) = (said.first_unit.value(), said.last_unit.value());
    if from != record.units || to < from || to >= data.n_units.value() {
        let last = data.n_units.value().saturating_sub(1);
        let expected = format!("units from {} to at most {last}", record.units);
        return unmet(
            expected,
            Code::Exposure.of(format_args!("units {from} to {to}")),
        );
    }
    let custodian = manifest.roles.as_ref().and_then(|roles| roles.custodian);
    check_signer("custodian", custodian, event.event.header.author)?;
    check_dates(record, manifest, event)
}

/// Whether units may be exposed now, as far as a manifest limits when.
fn check_dates(
    record: &ManifestRecord,
    manifest: &Manifest,
    event: &ProposedEvent<'_>,
) -> RuleAnswer {
    let Some(expiry) = &manifest.expiry else {
        return Ok(());
    };
    let now = event.recorded_at;
    if let Some(until) = expiry.embargo_until {
        ensure!(
            now >= until,
            format!("not before the embargo ends at {until}"),
            now.to_string(),
        );
    }
    let has_started = record.exposures > 0;
    if has_started {
        return Ok(());
    }
    if let Some(before) = expiry.must_start_before {
        ensure!(
            now < before,
            format!("a start before {before}"),
            now.to_string()
        );
    }
    if let Some(before) = expiry.must_start_before_seq {
        ensure!(
            event.seq < before.value(),
            format!("a start below seq {before}"),
            format!("seq {}", event.seq),
        );
    }
    Ok(())
}
