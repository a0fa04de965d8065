//! When one manifest takes the place of another, and which are in force.

use clover_event::id::ExperimentId;
use clover_event::id::ManifestId;
use clover_ledger::rulebooks;
use clover_ledger::rulebooks::Question;
use clover_num::Count;

use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

impl Manifests {
    /// The entry from which another manifest has the place of this one; `None` while none has.
    pub fn replaced_seq(&self, record: &ManifestRecord) -> Option<u64> {
        let by = self.by_id.get(record.superseded_by.as_ref()?)?;
        if self.is_by_force {
            by.versions.iter().filter_map(ManifestVersion::since).min()
        } else {
            by.versions.first().map(|first| first.seq)
        }
    }

    /// Anchors of an experiment are registered.
    pub(super) fn anchored(&mut self, seq: u64, experiment: Option<&ExperimentId>) {
        if let Some(experiment) = experiment {
            let first = self.first_anchors.entry(experiment.clone());
            first.or_insert(seq);
        }
    }

    /// A rulebook is in force.
    pub(super) fn adopt(&mut self, version: Option<Count>) {
        let version = version.map_or(u64::from(rulebooks::UNNAMED), Count::value);
        self.is_by_force |= version >= u64::from(Question::PlanInForce.since());
    }

    /// Versions in force of an experiment's manifests that no other superseded.
    pub fn in_force_of<'a>(
        &'a self,
        experiment: &'a ExperimentId,
    ) -> impl Iterator<Item = (&'a ManifestId, &'a ManifestVersion)> {
        self.by_id.iter().filter_map(move |(id, record)| {
            let own = record.experiment.as_ref() == Some(experiment);
            let is_replaced = if self.is_by_force {
                self.replaced_seq(record).is_some()
            } else {
                record.superseded_by.is_some()
            };
            let stands = own && !is_replaced;
            Some((id, record.in_force().filter(|_| stands)?))
        })
    }
}
