//! Off-policy diagnoses and estimates, computed again.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::payload::ope::OpeDiagnosed;
use clover_event::payload::ope::OpeEstimated;
use clover_event::payload::ope::OpeTerms;

use crate::ope;
use crate::ope::TargetDiagnosis;
use crate::ope::logs;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::estimates;
use crate::recompute::said_in;

/// A computation with what it was computed from.
#[derive(Debug)]
pub(super) struct OffPolicy {
    experiment: ExperimentId,
    through: u64,
    terms: OpeTerms,
    target: TargetDiagnosis,
}

impl Context<'_> {
    fn off_policy(
        &mut self,
        seq: u64,
        event: &Event,
        (terms, policy): (&OpeTerms, &PolicyId),
        through: u64,
    ) -> Result<&TargetDiagnosis, RecomputeError> {
        let experiment = estimates::experiment(event)?.clone();
        let kept = self.shared.off_policy.take().filter(|last| {
            let of = &last.target.diagnosed;
            last.experiment == experiment
                && last.through == through
                && last.terms == *terms
                && of.policy == *policy
        });
        let last = if let Some(kept) = kept {
            kept
        } else {
            // What rests on private texts is found first, and kept.
            self.found(seq, event, &terms.estimate, through)?;
            let mut all = logs::read(self.history, &experiment, through.saturating_add(1))?;
            let own = all.remove(&terms.logger);
            let own = own.ok_or_else(|| {
                RecomputeError::Missing(format!(
                    "its rows have no logged response of {}",
                    terms.logger
                ))
            })?;
            let found = self.found(seq, event, &terms.estimate, through)?;
            OffPolicy {
                target: ope::target(found, &own, terms, policy)?,
                experiment,
                through,
                terms: terms.clone(),
            }
        };
        Ok(&self.shared.off_policy.insert(last).target)
    }
}

pub(super) fn diagnosed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &OpeDiagnosed = said_in(event)?;
    let of = (&said.terms, &said.policy);
    let through = said.through_seq.value();
    let target = context.off_policy(seq, event, of, through)?;
    let diagnosed = target.diagnosed.clone();
    if said.direct_claim.is_none() {
        return Ok(diagnosed.into());
    }
    // Audits are as they stood before this very event.
    let found = context.found(seq, event, &said.terms.estimate, through)?;
    let experiment = estimates::experiment(event)?;
    Ok(ope::claimed(diagnosed, found, experiment).into())
}

pub(super) fn estimated(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &OpeEstimated = said_in(event)?;
    let of = (&said.terms, &said.policy);
    let through = said.through_seq.value();
    let target = context.off_policy(seq, event, of, through)?;
    let mut estimates = target.estimates.iter();
    let again = estimates.find(|of| of.estimator == said.estimator).cloned();
    let none = || RecomputeError::Missing(format!("its rows give no {}", said.estimator.as_str()));
    let again = again.ok_or_else(none)?;
    // Audits are as they stood before this very event.
    let found = context.found(seq, event, &said.terms.estimate, through)?;
    let place = found.gathered.policy(said.policy.as_str());
    let experiment = estimates::experiment(event)?;
    let failed = place.and_then(|place| found.failed(experiment, place));
    Ok(ope::marked(again, failed).into())
}
