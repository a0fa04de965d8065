//! Which audits stand for or against what was estimated.

use clover_event::id::ExperimentId;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::estimated::TransportState;
use clover_projection::audits::AnsweredAudit;
use clover_projection::audits::Audits;
use clover_projection::audits::FitLabels;

use crate::estimate::compute::Found;
use crate::estimate::scope;

impl Found {
    /// Audits as they stand once the calibrator is on record.
    fn audits(&self, experiment: &ExperimentId) -> Audits {
        let mut audits = self.gathered.audits.clone();
        if self.calibrator.is_some() {
            let sources = self.gathered.sources.iter().enumerate();
            let labels = sources.filter_map(|(at, of)| {
                let (labels, newest) = (of.labels.len() as u64, of.newest_label?);
                Some((self.name(at), FitLabels { labels, newest }))
            });
            let of = (&self.terms.judge, self.terms.environment.as_ref());
            audits.answer((experiment, u64::MAX), of, labels);
        }
        audits
    }

    /// The audit that stands for or against a policy once its calibrator is on record.
    pub fn standing(&self, experiment: &ExperimentId, policy: usize) -> Option<TransportStanding> {
        let (audits, name) = (self.audits(experiment), self.name(policy));
        audits.standing(
            &scope::subject(&self.terms, experiment, &name),
            self.digest(),
        )
    }

    /// The failed audit of a policy that a fit answered, and that none passed since.
    pub fn answered(&self, experiment: &ExperimentId, policy: usize) -> Option<AnsweredAudit> {
        let (audits, name) = (self.audits(experiment), self.name(policy));
        let of = audits.of_policy(&scope::subject(&self.terms, experiment, &name))?;
        of.answered
    }

    /// How many more new labels of a policy answer its failed audit, where one stands against it.
    pub fn answers(&self, experiment: &ExperimentId, policy: usize) -> Option<u64> {
        let (audits, name) = (self.audits(experiment), self.name(policy));
        let of = audits.of_policy(&scope::subject(&self.terms, experiment, &name))?;
        let failed = of.failed?;
        if audits.all_since.is_none() {
            return Some(1);
        }
        let labels = self.gathered.sources[policy].labels.len() as u64;
        let wanted = failed.labels.saturating_add(failed.prompts);
        Some(wanted.saturating_sub(labels).max(1))
    }

    /// The failed audit that stands against a policy, whatever the calibrator.
    pub fn failed(&self, experiment: &ExperimentId, policy: usize) -> Option<TransportStanding> {
        self.standing(experiment, policy)
            .filter(|of| of.state == TransportState::Fail)
    }
}
