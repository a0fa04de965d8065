//! The rules `calibrator` and `transport`: an audit is run once, on probes of its design, and a failure marks every estimate
//! of its policy.

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimated::Claim;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::ope::OpeEstimated;
use clover_event::payload::overlap::Admissibility;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::audits::AuditSubject;
use crate::audits::Audits;
use crate::audits::claims;
use crate::audits::environments;
use crate::audits::obstacles;
use crate::audits::probes;
use crate::audits::prompts;
use crate::designs::Designs;
use crate::looks;
use crate::newest;
use crate::said;
use crate::tainted;
use crate::timely;

/// Digest under which a fitted calibrator is known.
fn fitted(experiment: Option<&ExperimentId>, judge: &JudgeId, calibrator: &Digest) -> Digest {
    canon::digest("clover/fitted/v1", &(experiment, judge, calibrator))
}

/// Digest under which it is known that a policy was audited by the probes of a design, over all rows or in one environment.
pub fn audited(
    experiment: &ExperimentId,
    design: &DesignId,
    (policy, environment): (&PolicyId, Option<&EnvironmentScope>),
) -> Digest {
    match environment {
        None => canon::digest("clover/audited/v1", &(experiment, design, policy)),
        Some(scope) => canon::digest("clover/audited/v2", &(experiment, design, policy, scope)),
    }
}

/// The rules `calibrator` and `transport`.
#[derive(Clone, Copy, Debug)]
pub struct Transport;

impl Rule for Transport {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let terms = match &event.event.payload {
            Payload::CalibratorFitted(said) => Some(&said.terms),
            Payload::ContrastRecorded(said) => Some(&said.terms),
            Payload::CoverageChecked(said) => Some(&said.terms),
            Payload::EnvironmentsTested(said) => Some(&said.terms),
            Payload::EstimateRecorded(said) => Some(&said.terms),
            Payload::OpeDiagnosed(said) => Some(&said.terms.estimate),
            Payload::OpeEstimated(said) => Some(&said.terms.estimate),
            Payload::OuaEstimated(said) => Some(&said.terms),
            Payload::PlanRecorded(said) => Some(&said.terms),
            Payload::TransportTested(said) => Some(&said.terms),
            _ => None,
        };
        if let Some(terms) = terms {
            let checked = said::check_terms(state, experiment, terms);
            breaches.take(RuleName::Transport, checked);
            let checked = environments::check_window(state, experiment, terms);
            breaches.take(RuleName::Transport, checked);
            breaches.take(RuleName::Transport, timely::check_terms(state, terms));
        }
        let read = newest::check(state, (event.seq, experiment), &event.event.payload);
        breaches.take(RuleName::Transport, read);
        let checked = match &event.event.payload {
            Payload::CalibratorFitted(fit) => {
                breaches.take(RuleName::Calibrator, environments::check_local(fit));
                breaches.take(RuleName::Transport, check_fitted(state, fit));
                return;
            }
            Payload::EnvironmentsTested(tested) => check_environments(state, experiment, tested),
            Payload::RegimeSelected(said) => environments::check_regime(state, experiment, said),
            Payload::TransportTested(tested) => check_audited(state, experiment, tested),
            Payload::EstimateRecorded(estimate) => check_estimate(state, experiment, estimate),
            Payload::ContrastRecorded(contrast) => check_contrast(state, experiment, contrast),
            Payload::OpeDiagnosed(said) => claims::check_diagnosed(state, experiment, said),
            Payload::OpeEstimated(estimate) => check_off_policy(state, experiment, estimate),
            _ => return,
        };
        breaches.take(RuleName::Transport, checked);
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let mut needs = |judge: &JudgeId, calibrator: &Digest| {
            facts.push(Fact::Needs {
                digest: fitted(experiment, judge, calibrator),
                before: event.seq,
                rule: RuleName::Calibrator,
            });
        };
        match &event.event.payload {
            Payload::CalibratorFitted(fit) => facts.push(Fact::Gives {
                digest: fitted(experiment, &fit.terms.judge, &fit.calibrator),
                once: None,
            }),
            Payload::EstimateRecorded(said) => {
                if let Some(calibrator) = &said.calibrator {
                    needs(&said.terms.judge, calibrator);
                }
            }
            Payload::ContrastRecorded(said) => {
                if let Some(calibrator) = &said.calibrator {
                    needs(&said.terms.judge, calibrator);
                }
            }
            Payload::OuaEstimated(said) => needs(&said.terms.judge, &said.calibrator),
            Payload::CoverageChecked(said) => needs(&said.terms.judge, &said.calibrator),
            Payload::EnvironmentsTested(said) => {
                needs(&said.terms.judge, &said.calibrator);
                if let Some(charge) = &said.charge {
                    facts.push(Fact::Needs {
                        digest: charge.0,
                        before: event.seq,
                        rule: RuleName::Refs,
                    });
                }
            }
            Payload::TransportTested(said) => {
                needs(&said.terms.judge, &said.calibrator);
                if let Some(charge) = &said.charge {
                    facts.push(Fact::Needs {
                        digest: charge.0,
                        before: event.seq,
                        rule: RuleName::Refs,
                    });
                }
                if let Some(experiment) = experiment {
                    let environment = said.terms.environment.as_ref();
                    let digest = audited(experiment, &said.design, (&said.policy, environment));
                    facts.push(Fact::Gives { digest, once: None });
                    facts.push(Fact::Forbids {
                        digest,
                        rule: RuleName::Transport,
                    });
                }
            }
            _ => {}
        }
    }
}

/// A fit says of how many prompts its labels are, by which it answers failed audits.
fn check_fitted(state: &State, said: &CalibratorFitted) -> RuleAnswer {
    if !state.asks(Question::AnsweredPrompts) {
        return Ok(());
    }
    for of in &said.labels_by_policy {
        let wanted = format!("prompts: how many of {} have a label", of.policy);
        let prompts = of.prompts.required(&wanted)?;
        ensure!(
            (1..=of.labels.value()).contains(&prompts.value()),
            format!(
                "1 to {} prompts of {}, as there are labels",
                of.labels, of.policy
            ),
            prompts.to_string()
        );
    }
    Ok(())
}

fn check_audited(state: &State, experiment: &ExperimentId, tested: &TransportTested) -> RuleAnswer {
    let passes = tested.state == TransportState::Pass;
    check_probes(state, experiment, (&tested.design, tested.charge), passes)?;
    claims::check_audit(state, tested)?;
    probes::check_timely(state, experiment, tested)?;
    obstacles::check(state, experiment, tested)
}

/// A family of environments is tested on probes, by a calibrator of all rows.
fn check_environments(
    state: &State,
    experiment: &ExperimentId,
    tested: &EnvironmentsTested,
) -> RuleAnswer {
    let mut verdicts = tested.environments.iter().map(|of| of.verdict);
    let passes = verdicts.any(|verdict| verdict == Verdict::Pass);
    check_probes(state, experiment, (&tested.design, tested.charge), passes)?;
    environments::check_whole(&tested.terms)?;
    probes::check_all_timely(state, experiment, tested)
}

/// Probes belong to a registered audit design; sealed ones were opened all together, under a charge.
fn check_probes(
    state: &State,
    experiment: &ExperimentId,
    (named, charge): (&DesignId, Option<EventId>),
    passes: bool,
) -> RuleAnswer {
    let design = state
        .fold::<Designs>()
        .design(experiment, named)
        .filter(|design| {
            let registered = design.registered.as_ref();
            registered.is_some_and(|of| of.purpose == DesignPurpose::Audit)
        });
    let Some(design) = design else {
        let found = format!("{named}, which is none");
        return unmet("a registered label design for audit", found);
    };
    ensure!(
        design.sealed <= design.revealed,
        format!("all {} sealed labels of {} open", design.sealed, named),
        format!("{} open", design.revealed)
    );
    let has_strata = design
        .registered
        .as_ref()
        .is_some_and(|of| !of.strata.is_empty());
    ensure!(
        !has_strata || !passes || !state.asks(Question::EvenProbes),
        format!(
            "no pass by {named}, which draws by stratum: an audit counts each of its probes alike"
        ),
        "a pass"
    );
    match (design.sealed > 0, charge) {
        (true, None) => unmet("the charge that opened the sealed probes", "none"),
        (false, Some(charge)) => unmet(
            "no charge for probes that were open from the start",
            charge.to_string(),
        ),
        (true, Some(_)) | (false, None) => Ok(()),
    }
}

fn words(standing: Option<TransportStanding>) -> String {
    standing.map_or("no audit".to_owned(), |of| {
        format!("{} at seq {}", of.state, of.seq)
    })
}

/// A difference carries the failed audits that stand against its policies, and tells nothing apart after one.
fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    contrast: &ContrastRecorded,
) -> RuleAnswer {
    let judge = &contrast.terms.judge;
    let audits = state.fold::<Audits>();
    let mut failed = None;
    for (policy, said) in [
        (&contrast.first, contrast.first_transport),
        (&contrast.second, contrast.second_transport),
    ] {
        let subject = AuditSubject {
            experiment,
            judge,
            environment: contrast.terms.environment.as_ref(),
            policy,
        };
        let standing = audits
            .standing(&subject, contrast.calibrator)
            .filter(|of| of.state == TransportState::Fail);
        ensure!(
            said == standing,
            format!(
                "the audit that stands against {policy}: {}",
                words(standing)
            ),
            words(said)
        );
        failed = failed.or(standing.map(|of| (policy, of)));
    }
    if let Some((policy, standing)) = failed {
        ensure!(
            !contrast.told_apart,
            format!(
                "nothing told apart until {policy} is recalibrated with new labels of it: {}",
                words(Some(standing))
            ),
            "told apart"
        );
    }
    claims::check_contrast(state, experiment, contrast)?;
    tainted::check_contrast(state, experiment, contrast)?;
    prompts::check_missing(state, experiment, contrast)?;
    looks::check(state, experiment, contrast)?;
    timely::check_contrast(state, experiment, contrast)
}

/// An estimate from logged responses carries the failed audit that stands against its policy, and is not to be read.
fn check_off_policy(
    state: &State,
    experiment: &ExperimentId,
    estimate: &OpeEstimated,
) -> RuleAnswer {
    environments::check_whole(&estimate.terms.estimate)?;
    let audits = state.fold::<Audits>();
    let subject = AuditSubject {
        experiment,
        judge: &estimate.terms.estimate.judge,
        environment: None,
        policy: &estimate.policy,
    };
    let standing = audits.standing(&subject, None);
    ensure!(
        estimate.transport == standing,
        format!("the audit that stands against it: {}", words(standing)),
        words(estimate.transport)
    );
    ensure!(
        standing.is_none() || estimate.verdict == Admissibility::Refused,
        format!(
            "verdict refused until {} is recalibrated with new labels of it: {}",
            estimate.policy,
            words(standing)
        ),
        format!("verdict {}", estimate.verdict.as_str())
    );
    Ok(())
}

/// An estimate carries the audit that stands for or against it, and claims no level after a failed one.
fn check_estimate(
    state: &State,
    experiment: &ExperimentId,
    estimate: &EstimateRecorded,
) -> RuleAnswer {
    let subject = AuditSubject {
        experiment,
        judge: &estimate.terms.judge,
        environment: estimate.terms.environment.as_ref(),
        policy: &estimate.policy,
    };
    let standing = state
        .fold::<Audits>()
        .standing(&subject, estimate.calibrator);
    ensure!(
        estimate.transport == standing,
        format!("the audit that stands: {}", words(standing)),
        words(estimate.transport)
    );
    let failed = standing.is_some_and(|of| of.state == TransportState::Fail);
    ensure!(
        !failed || estimate.claim == Claim::Refused,
        format!(
            "claim refused until {} is recalibrated with new labels of it: {}",
            estimate.policy,
            words(standing)
        ),
        format!("claim {}", estimate.claim)
    );
    claims::check_estimate(state, experiment, estimate)?;
    tainted::check_estimate(state, experiment, estimate)?;
    timely::check_estimate(state, experiment, estimate)
}
