//! Patches of an open iteration: proposed, and taken back.

use clover_event::Kind;
use clover_event::id::IterationId;
use clover_event::id::PatchId;
use clover_event::id::Text;
use clover_event::payload::rubric::PatchWithdrawn;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::iterations::Iterations;
use clover_rubric::CheckedPatch;
use clover_rubric::Patch;
use clover_workflow::patches;
use clover_workflow::patches::Authorship;
use clover_workflow::patches::Bench;

use crate::append;
use crate::append::Intent;
use crate::append::Submission;
use crate::error::SessionError;
use crate::iterate::IterationError;
use crate::iterate::rescore;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// A patch that was proposed, or would be.
#[derive(Debug)]
pub struct Proposal {
    /// The patch.
    pub patch: Patch,
    /// What its checks found.
    pub checked: CheckedPatch,
    /// What it was checked against.
    pub bench: Bench,
    /// Where its event stands.
    pub submission: Submission,
}

/// What patches of an iteration are checked against.
///
/// # Errors
/// [`IterationError::Unknown`] and [`IterationError::NoBench`].
pub fn bench(state: &State, iteration: &IterationId) -> Result<Bench, IterationError> {
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let it = it.ok_or_else(|| IterationError::Unknown(iteration.clone()))?;
    let bench = Bench::of(state, &it.experiment, iteration);
    bench.ok_or_else(|| IterationError::NoBench(iteration.clone()))
}

/// Checks a patch, a document in YAML, and proposes it. One that was proposed is recorded already; another under its id is
/// the ledger's to refuse.
///
/// # Errors
/// [`IterationError::Patch`] where a check fails, [`IterationError::OwnPrompt`] where the judge is told a text of its own; else as [`bench()`] and [`append::submit_one`]. Nothing was appended then.
pub fn propose(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    iteration: &IterationId,
    (yaml, by): (&str, Authorship),
    intent: Intent,
) -> Result<Proposal, SessionError> {
    let checked = checked(ledger, iteration, (yaml, by))?;
    let need = KeyNeed::runner(Kind::PatchProposed);
    let signer = ports.signer(ledger.state(), need)?;
    put(ports, ledger, checked, (&signer, intent))
}

/// As [`propose`], by a key that is at hand.
///
/// # Errors
/// As [`propose`].
pub fn propose_by(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    iteration: &IterationId,
    (yaml, by): (&str, Authorship),
    signer: &Signer,
) -> Result<Proposal, SessionError> {
    let checked = checked(ledger, iteration, (yaml, by))?;
    put(ports, ledger, checked, (signer, Intent::Append))
}

/// A patch that passed, and what proposes it.
struct CheckedProposal {
    patch: Patch,
    checked: CheckedPatch,
    bench: Bench,
    command: Command,
}

fn put(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    of: CheckedProposal,
    (signer, intent): (&Signer, Intent),
) -> Result<Proposal, SessionError> {
    let submission = append::submit(ports, ledger, &[of.command], signer, intent)?;
    Ok(Proposal {
        patch: of.patch,
        checked: of.checked,
        bench: of.bench,
        submission,
    })
}

fn checked(
    ledger: &Ledger,
    iteration: &IterationId,
    (yaml, by): (&str, Authorship),
) -> Result<CheckedProposal, SessionError> {
    let state = ledger.state();
    let mut bench = bench(state, iteration)?;
    bench.ids.clear();
    bench.hashes.clear();
    let found = bench
        .check(yaml.as_bytes(), None)
        .map_err(|fault| IterationError::Patch(Box::new(fault)))?;
    let (patch, checked) = rescore::decided(ledger, iteration, (&bench, yaml), found)?;
    rescore::check_retold(ledger, iteration, (&bench, &checked))?;
    let payload = patches::propose(yaml, iteration, (&patch, &checked), by);
    let it = state.fold::<Iterations>().by_id.get(iteration);
    let experiment = it.map(|it| it.experiment.clone());
    let command = Command::new(payload, experiment);
    Ok(CheckedProposal {
        patch,
        checked,
        bench,
        command,
    })
}

/// Takes a proposed patch back.
///
/// # Errors
/// [`IterationError::NoPatch`]; else as [`append::submit_one`].
pub fn withdraw(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    (patch, reason): (PatchId, Text),
    intent: Intent,
) -> Result<Submission, SessionError> {
    let iterations = ledger.state().fold::<Iterations>();
    let Some((iteration, _)) = iterations.patch(&patch) else {
        return Err(IterationError::NoPatch(patch).into());
    };
    let experiment = iterations.by_id[iteration].experiment.clone();
    let payload = PatchWithdrawn {
        iteration: iteration.clone(),
        patch,
        reason,
    };
    let command = Command::new(payload, Some(experiment));
    append::submit_one(ports, ledger, command, intent)
}
