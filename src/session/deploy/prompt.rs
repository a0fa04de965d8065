//! The commit of an accepted patch: the rubric that results, and what the judge is told by it.

use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::release::PromptCommitted;
use clover_ledger::Breach;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RuleName;
use clover_num::Count;
use clover_projection::releases::Commit;
use clover_projection::releases::Releases;
use clover_projection::rubrics::Rubrics;
use clover_rubric::leaf;
use clover_workflow::prompts;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::deploy::DeployError;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// What a commit came to.
#[derive(Clone, Debug)]
pub enum PromptCommit {
    /// The acceptance was committed before.
    Already(Box<Commit>),
    /// It is committed now.
    Submitted {
        /// The event's data.
        said: Box<PromptCommitted>,
        /// The event.
        submission: Submission,
    },
}

/// Commits an acceptance under a version, the next minor one where none is named; what the judge is told is stored first.
///
/// # Errors
/// [`DeployError::Uncommitted`], [`SessionError::Port`] without a releaser's key, and [`SessionError::Ledger`].
pub fn commit(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (experiment, acceptance): (&ExperimentId, EventId),
    version: Option<&str>,
    intent: Intent,
) -> Result<PromptCommit, SessionError> {
    let state = ledger.state();
    if let Some(old) = state.fold::<Releases>().committed(experiment, acceptance) {
        return Ok(PromptCommit::Already(Box::new(old.clone())));
    }
    let version = version.map_or_else(
        || {
            let all = state.fold::<Rubrics>().by_experiment.get(experiment);
            let newest = all.into_iter().flatten().map(|of| of.version.as_str());
            let newest = newest.max_by_key(|of| leaf::version(of));
            prompts::version_after(newest.unwrap_or("0.0"))
        },
        str::to_owned,
    );
    let size = Count::new(ledger.size()).unwrap_or_default();
    let found = prompts::commit(state, experiment, acceptance, (&version, size));
    let (said, text) = found.map_err(|unmet| {
        let breach = Breach::new(RuleName::Commit, unmet.expected, unmet.found);
        DeployError::Uncommitted(Box::new(breach))
    })?;
    let command = Command::new(said.clone(), Some(experiment.clone()));
    let need = KeyNeed::runner(command.payload.kind());
    let signer = ports.signer(state, need)?;
    if intent == Intent::Append {
        ledger.put_blobs(&[text.into_bytes()])?;
    }
    let submission = append::submit(ports, ledger, &[command], &signer, intent)?;
    Ok(PromptCommit::Submitted {
        said: Box::new(said),
        submission,
    })
}
