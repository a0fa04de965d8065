//! Which audits stand for or against what was estimated.

use std::collections::BTreeSet;

use clover_event::id::ExperimentId;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::estimated::TransportState;
use clover_projection::audits::AnswerKind;
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
                let fit = FitLabels {
                    labels: of.labels.len() as u64,
                    newest: of.newest_label?,
                    prompts: Some(self.labelled_prompts(at) as u64),
                };
                Some((self.name(at), fit))
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

    /// Distinct prompts of a policy with a label in the fit.
    pub(super) fn labelled_prompts(&self, policy: usize) -> usize {
        let prompts = &self.gathered.dataset.policies[policy].prompts;
        let labelled = self.gathered.sources[policy].labels.keys();
        let labelled: BTreeSet<u32> = labelled.map(|&row| prompts[row]).collect();
        labelled.len()
    }

    /// How many more new labels of a policy answer its failed audit, where one stands against it.
    pub fn answers(&self, experiment: &ExperimentId, policy: usize) -> Option<u64> {
        let (audits, name) = (self.audits(experiment), self.name(policy));
        let of = audits.of_policy(&scope::subject(&self.terms, experiment, &name))?;
        let failed = of.failed?;
        let (before, labels) = match audits.answers.at(u64::MAX) {
            AnswerKind::One => return Some(1),
            AnswerKind::Labels => {
                let labels = self.gathered.sources[policy].labels.len() as u64;
                (failed.labels, labels)
            }
            AnswerKind::Prompts => (failed.labelled, self.labelled_prompts(policy) as u64),
        };
        let wanted = before.saturating_add(failed.prompts);
        Some(wanted.saturating_sub(labels).max(1))
    }

    /// The failed audit that stands against a policy, whatever the calibrator.
    pub fn failed(&self, experiment: &ExperimentId, policy: usize) -> Option<TransportStanding> {
        self.standing(experiment, policy)
            .filter(|of| of.state == TransportState::Fail)
    }
}
