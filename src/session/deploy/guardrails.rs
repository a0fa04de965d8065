//! The guardrails of what runs. A breach rolls back in the same append.

use clover_event::id::ExperimentId;
use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::deployment::DeploymentRolledBack;
use clover_event::payload::deployment::GuardrailChecked;
use clover_event::payload::deployment::LiveEvidence;
use clover_event::payload::deployment::Window;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_projection::deployments::rollouts::Rollouts;
use clover_projection::rubrics::Rubrics;
use clover_workflow::guardrails;
use clover_workflow::live;
use clover_workflow::live::guardrails::DeploymentPair;
use clover_workflow::prompts;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::deploy::DeployError;
use crate::deploy::activation;
use crate::deploy::running;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What is checked.
#[derive(Clone, Debug)]
pub struct CheckTerms {
    /// Whose running prompt.
    pub experiment: ExperimentId,
    /// Evidence by hand, and why it is not computed from rows.
    pub by_hand: Option<(LiveEvidence, Text)>,
    /// Only rows and labels since the last check; else all since the activation.
    pub since_last: bool,
}

/// What a check said.
#[derive(Clone, Debug)]
pub struct Check {
    /// The event's data.
    pub said: GuardrailChecked,
    /// The check and, of a breach, the rollback.
    pub submission: Submission,
}

/// Checks what runs; of a breach the check and the rollback stand together, or neither.
///
/// # Errors
/// [`DeployError`], [`SessionError::Course`], [`SessionError::Port`] without a releaser's key, and
/// [`SessionError::Ledger`].
#[expect(clippy::missing_panics_doc, reason = "a `BUG:` states what cannot be")]
pub fn check(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    terms: CheckTerms,
    intent: Intent,
) -> Result<Check, SessionError> {
    let experiment = terms.experiment.clone();
    let said = checked(ledger, terms)?;
    let command = Command::new(said.clone(), Some(experiment.clone()));
    let need = KeyNeed::runner(command.payload.kind());
    let signer = ports.signer(ledger.state(), need)?;
    if !said.verdicts.is_breach() || intent == Intent::Rehearse {
        let submission = append::submit(ports, ledger, &[command], &signer, intent)?;
        return Ok(Check { said, submission });
    }
    let failed = said.verdicts.each().into_iter();
    let failed: Vec<_> = failed
        .filter(|(_, said)| *said == Verdict::Fail)
        .map(|(name, _)| name)
        .collect();
    let reason = Text::new(format!("breach of {}", failed.join(", ")));
    let reason = reason.expect("BUG: guardrails are few and their names short");
    let (of, running) = running(ledger.state(), &experiment)?;
    let undo = activation::back(of, running, None, reason);
    let undone = |breach| {
        let back = DeploymentRolledBack {
            breach: Some(breach),
            ..undo
        };
        Command::new(back, Some(experiment))
    };
    let (second, appended) = append::append_pair(ports, ledger, &command, undone, &signer)?;
    let submission = Submission::of(&[command, second], appended);
    Ok(Check { said, submission })
}

/// The check of what runs: as given, else from the rows since its activation or its last check.
fn checked(ledger: &Ledger, terms: CheckTerms) -> Result<GuardrailChecked, SessionError> {
    let (state, experiment) = (ledger.state(), &terms.experiment);
    let (of, running) = running(state, experiment)?;
    let registered = state.fold::<Rubrics>().of_id(experiment, running.commit);
    let plan = registered.and_then(|of| prompts::plan_told(state, experiment, of));
    let thresholds = guardrails::thresholds(plan.ok_or(DeployError::NoPlanRuns)?);
    let count = |value: u64| Count::new(value).unwrap_or_default();
    let last = of.checked.filter(|_| terms.since_last);
    let last = last.map(|of| of.seq + 1);
    let window = Window {
        from_seq: count(last.unwrap_or(running.seq + 1)),
        through_seq: count(ledger.size().saturating_sub(1)),
    };
    if window.from_seq > window.through_seq {
        let through_seq = window.through_seq;
        return Err(DeployError::NothingSince { through_seq }.into());
    }
    let (evidence, by_hand, inputs) = if let Some((evidence, why)) = terms.by_hand {
        (evidence, Some(why), None)
    } else {
        let releases = Rollouts::below(ledger, experiment, ledger.size())?;
        let watched = DeploymentPair::of(ledger, &releases, running.id, ledger.size())?;
        let found = live::guardrails::shown(ledger, &watched, experiment, &thresholds, window);
        let (evidence, inputs) = found?;
        (evidence, None, Some(inputs))
    };
    Ok(GuardrailChecked {
        by_hand,
        deployment: running.id,
        inputs,
        verdicts: guardrails::verdicts(&evidence, &thresholds),
        evidence,
        thresholds,
        window,
    })
}
