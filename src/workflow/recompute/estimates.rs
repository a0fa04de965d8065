//! Fits, estimates, contrasts, shares, coverage and audits, computed again.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::FieldId;
use clover_event::id::PolicyId;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::LabelUse;
use clover_event::payload::planning::PlanRecorded;
use clover_ledger::rulebooks::Question;
use clover_projection::audits::BOUNDED_AUDIT;

use crate::estimate;
use crate::estimate::audit;
use crate::estimate::audit::Ask;
use crate::estimate::compute;
use crate::estimate::compute::Found;
use crate::estimate::compute::without_prompts;
use crate::estimate::environments::EnvironmentAsk;
use crate::estimate::form::Form;
use crate::estimate::planning;
use crate::estimate::rows;
use crate::estimate::rows::Gathered;
use crate::estimate::rows::Which;
use crate::estimate::scope;
use crate::recompute::Context;
use crate::recompute::KEPT;
use crate::recompute::RecomputeError;
use crate::recompute::iterations;
use crate::recompute::said_in;

/// A computation with what it was computed from.
#[derive(Debug)]
pub struct CachedEstimate {
    experiment: ExperimentId,
    through: u64,
    found: Found,
}

impl Context<'_> {
    fn gather(
        &mut self,
        experiment: &ExperimentId,
        terms: &EstimateTerms,
        places: &[FieldId],
        through: u64,
    ) -> Result<Gathered, RecomputeError> {
        let which = Which {
            experiment,
            judge: &terms.judge,
            environment: terms.environment.as_ref(),
            covariates: &terms.covariates,
            fields: &[],
            places,
            strata: terms.labels == LabelUse::Weighted,
            use_of_rows: terms.rows,
            rows_below: through.saturating_add(1),
            audits_below: 0,
        };
        Ok(rows::gather(self.history, &which, self.covariates)?)
    }

    /// The estimates behind an event, from the rows through a position; audits as they stood before the event.
    pub(super) fn found(
        &mut self,
        seq: u64,
        event: &Event,
        terms: &EstimateTerms,
        through: u64,
    ) -> Result<&Found, RecomputeError> {
        let experiment = experiment(event)?;
        let kept = self.shared.last.iter().position(|last| {
            last.experiment == *experiment && last.through == through && last.found.terms == *terms
        });
        let mut computed = match kept {
            Some(place) => self.shared.last.remove(place),
            None => CachedEstimate {
                experiment: experiment.clone(),
                through,
                found: {
                    let gathered = self.gather(experiment, terms, &[], through)?;
                    compute::compute(gathered, terms.clone(), &[], None, None)?
                },
            },
        };
        let audits = self.audits(experiment, seq);
        let governed = self.shared.governed.iter();
        let of_judge = governed.filter_map(|(at, of, payload)| {
            let is_mine = of == experiment && scope::audited(payload) == Some(&terms.judge);
            (is_mine && *at < seq).then_some(*at)
        });
        computed.found.gathered.newest_audit = of_judge.max().unwrap_or(0);
        computed.found.gathered.audits = audits;
        self.shared.last.truncate(KEPT - 1);
        self.shared.last.insert(0, computed);
        Ok(&self.shared.last[0].found)
    }
}

pub(super) fn experiment(event: &Event) -> Result<&ExperimentId, RecomputeError> {
    let named = event.experiment();
    named.ok_or_else(|| RecomputeError::Missing("it names no experiment".to_owned()))
}

fn place(found: &Found, policy: &PolicyId) -> Result<usize, RecomputeError> {
    let place = found.gathered.policy(policy.as_str());
    place.ok_or_else(|| RecomputeError::Missing(format!("its rows have no policy {policy}")))
}

/// The form that an event has by what it says; whether it must have the newer is for the rule `transport`.
fn form(is_claimed: bool) -> Form {
    if is_claimed {
        Form::Claimed
    } else {
        Form::Bare
    }
}

fn without(what: &str) -> RecomputeError {
    RecomputeError::Missing(format!("its rows give no {what}"))
}

pub(super) fn fitted(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &CalibratorFitted = said_in(event)?;
    if said.terms.iteration.is_some() {
        return iterations::before(context, seq, event);
    }
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let mut fitted = found.fitted().ok_or_else(|| without("calibrator"))?;
    // Whether it must say of how many prompts its labels are is for the rule `transport`.
    if said.labels_by_policy.iter().all(|of| of.prompts.is_none()) {
        fitted.event = without_prompts(fitted.event);
    }
    Ok(fitted.event.into())
}

pub(super) fn estimate(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &EstimateRecorded = said_in(event)?;
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let policy = place(found, &said.policy)?;
    let form = form(said.off_mode.is_some());
    Ok(found.estimate(experiment(event)?, policy, form).into())
}

pub(super) fn contrast(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &ContrastRecorded = said_in(event)?;
    let form = match &said.prompts {
        Some(of) if of.both.value() == 0 && !context.asks(seq, Question::CommonPrompts)? => {
            Form::Compared
        }
        Some(_) => Form::Shared,
        None => form(said.reading.is_some()),
    };
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let family = said.family.iter().map(|policy| place(found, policy));
    let family = family.collect::<Result<Vec<_>, _>>()?;
    let contrasts = found.contrasts(experiment(event)?, &family, said.correction, form)?;
    let mut pairs = contrasts.into_iter();
    let found = pairs.find(|pair| pair.first == said.first && pair.second == said.second);
    let found = found.ok_or_else(|| without("such pair"))?;
    // What was seen before is for the rule `transport`.
    let exploratory_since = said.exploratory_since;
    Ok(ContrastRecorded {
        exploratory_since,
        ..found
    }
    .into())
}

pub(super) fn oua(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &OuaEstimated = said_in(event)?;
    if said.terms.iteration.is_some() {
        return iterations::before(context, seq, event);
    }
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let policy = place(
        found,
        said.policy.as_ref().ok_or_else(|| without("policy"))?,
    )?;
    Ok(found
        .oua(policy)
        .ok_or_else(|| without("calibrator"))?
        .into())
}

pub(super) fn coverage(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &CoverageChecked = said_in(event)?;
    if said.terms.iteration.is_some() {
        return iterations::before(context, seq, event);
    }
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let policy = place(
        found,
        said.policy.as_ref().ok_or_else(|| without("policy"))?,
    )?;
    Ok(found
        .coverage(policy)
        .ok_or_else(|| without("calibrator"))?
        .into())
}

pub(super) fn transport(
    context: &mut Context<'_>,
    _: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &TransportTested = said_in(event)?;
    let through = said.through_seq.value();
    let gathered = context.gather(experiment(event)?, &said.terms, &[], through)?;
    let policy = gathered.policy(said.policy.as_str());
    let policy = policy.ok_or_else(|| without("such policy"))?;
    let ask = Ask {
        design: &said.design,
        policies: &[policy],
        terms: &said.audit,
        form: form(said.algorithm.as_str() == BOUNDED_AUDIT),
        timely: said.late.is_some(),
        // Whether these stand in the way is asked of the log alone, by the rule `transport`.
        obstacles: &|_, _, _| said.obstacles.clone(),
        inside: said.drawn.is_some(),
    };
    let (_, events) = audit::audit(gathered, &said.terms, &ask)?;
    let event = events.into_iter().next();
    Ok(event.ok_or_else(|| without("probes"))?.into())
}

pub(super) fn environments(
    context: &mut Context<'_>,
    _: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &EnvironmentsTested = said_in(event)?;
    let scopes: Vec<(EnvironmentScope, bool)> = said
        .environments
        .iter()
        .map(|of| (of.scope.clone(), of.required))
        .collect();
    let ask = EnvironmentAsk {
        correction: said.correction,
        design: &said.design,
        environments: &scopes,
        family: &said.family,
        inside: said.environments.iter().any(|of| of.drawn.is_some()),
        manifest: said.manifest,
        // Whether these stand in the way is asked of the log alone, by the rule `transport`.
        obstacles: &said.obstacles,
        q: said.q_micro,
    };
    let through = said.through_seq.value();
    let gathered = context.gather(experiment(event)?, &said.terms, &ask.fields(), through)?;
    let found = estimate::environments::fitted(gathered, &said.terms, &said.design)?;
    let tested = estimate::environments::test(&found, &ask)?;
    Ok(tested
        .ok_or_else(|| without("calibrator or probes"))?
        .into())
}

pub(super) fn plan(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &PlanRecorded = said_in(event)?;
    let found = context.found(seq, event, &said.terms, said.through_seq.value())?;
    let asked = planning::Ask {
        purpose: said.purpose,
        asked: said.asked_micro,
        power: said.power_micro,
        prices: said.prices,
        policies: said.policies.value(),
        sturdy: said.split.fold_seeds.is_some(),
        each: said.evaluation.is_none_or(|of| of.labels_each.is_some()),
    };
    Ok(planning::plan(found, &asked)?.into())
}
