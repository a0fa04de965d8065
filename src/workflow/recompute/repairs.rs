//! Executions, feedback and worth of a run that repairs a workflow, from the answers of models and what is right.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::payload::BlobRef;
use clover_event::payload::repair::WfExecuted;
use clover_event::payload::repair_feedback::UtilityRecorded;
use clover_event::payload::repair_feedback::WfFeedbackGiven;
use clover_flow::RunOutcome;
use clover_ground::digest::Digest;
use clover_ledger::Unmet;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;

use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::iterations::gone;
use crate::recompute::said_in;
use crate::wf::course;
use crate::wf::execution;
use crate::wf::execution::ExecutionPlace;
use crate::wf::plan::RepairPlan;
use crate::wf::truth;
use crate::wf::verifier;

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn uncalled(unmet: Unmet) -> RecomputeError {
    RecomputeError::Uncalled(format!(
        "expected {}, found {}",
        unmet.expected, unmet.found
    ))
}

fn bytes(context: &Context<'_>, blob: &BlobRef) -> Result<Vec<u8>, RecomputeError> {
    let found = context.history.blob(&blob.blake3)?;
    found.ok_or_else(|| RecomputeError::Absent(format!("the blob {} is not here", blob.blake3)))
}

/// The run of an event as it stood before it.
fn run_of(context: &mut Context<'_>, seq: u64, name: &RunId) -> Result<WfRun, RecomputeError> {
    let state = match context.state {
        Some(state) => state,
        None => context.state_at(seq)?,
    };
    let run = state.fold::<WfRuns>().by_id.get(name).cloned();
    run.ok_or_else(|| gone("its run was not opened before it"))
}

fn plan_of(context: &Context<'_>, run: &WfRun) -> Result<RepairPlan, RecomputeError> {
    let lines = bytes(context, &run.said.inputs)?;
    RepairPlan::with_items(&run.said, &lines).map_err(uncalled)
}

/// One execution again, from its answers.
fn outcome(
    context: &Context<'_>,
    (run, plan): (&WfRun, &RepairPlan),
    place: ExecutionPlace,
    answers: Option<&BlobRef>,
) -> Result<(RunOutcome, Vec<u8>), RecomputeError> {
    let answers = answers.map_or(Ok(Vec::new()), |blob| bytes(context, blob))?;
    let workflow = course::workflow(run, &place.candidate).map_err(uncalled)?;
    let item = usize::try_from(place.item).ok();
    let item = item.and_then(|at| plan.set.items.get(at));
    let item = item.ok_or_else(|| gone("its item is none of the run"))?;
    let again = execution::again((&workflow, item), place.rerun, &answers);
    Ok((again.map_err(uncalled)?, answers))
}

/// An execution from what models answered.
pub(super) fn executed(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &WfExecuted = said_in(event)?;
    let run = run_of(context, seq, &said.run)?;
    let plan = plan_of(context, &run)?;
    let place = ExecutionPlace {
        candidate: said.candidate,
        item: said.item.value(),
        rerun: said.rerun.value(),
    };
    let found = outcome(context, (&run, &plan), place, said.answers.as_ref())?;
    let again = execution::executed(&said.run, place, &found.0, &found.1);
    Ok(again.map_err(uncalled)?.into())
}

/// Every execution of a candidate again: of each item the one that counts, then its reruns.
fn outcomes(
    context: &Context<'_>,
    (run, plan): (&WfRun, &RepairPlan),
    candidate: Digest,
) -> Result<Vec<Vec<RunOutcome>>, RecomputeError> {
    let of = run.candidate(&candidate);
    let of = of.ok_or_else(|| gone("its candidate is none of the run"))?;
    let each = run.said.terms.reruns.value() + 1;
    let mut all: Vec<Vec<RunOutcome>> = Vec::new();
    for (at, execution) in (0u64..).zip(&of.executions) {
        let place = ExecutionPlace {
            candidate,
            item: at / each,
            rerun: at % each,
        };
        let answers = execution.answers.as_ref();
        let found = outcome(context, (run, plan), place, answers)?.0;
        match all.last_mut().filter(|_| place.rerun > 0) {
            Some(item) => item.push(found),
            None => all.push(vec![found]),
        }
    }
    Ok(all)
}

/// What the verifier says, from outputs, rules and what its critic said. That alone is taken as said: all else follows.
pub(super) fn feedback(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &WfFeedbackGiven = said_in(event)?;
    let run = run_of(context, seq, &said.run)?;
    let plan = plan_of(context, &run)?;
    let outcomes = outcomes(context, (&run, &plan), said.candidate)?;
    let workflow = course::workflow(&run, &said.candidate).map_err(uncalled)?;
    let found = verifier::judged(&plan, &workflow, &outcomes, &said.critic);
    let whose = (&said.run, run.said.verifier_digest);
    let of = (&outcomes[..], &said.critic[..]);
    Ok(verifier::given(whose, said.candidate, &plan, &found, of).into())
}

/// What a candidate is worth, from its outputs and what is right, which the run committed to.
pub(super) fn utility(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &UtilityRecorded = said_in(event)?;
    let run = run_of(context, seq, &said.run)?;
    let plan = plan_of(context, &run)?;
    let lines = bytes(context, &said.truth)?;
    let outcomes = outcomes(context, (&run, &plan), said.candidate)?;
    let set = truth::told(plan.set, &lines).map_err(uncalled)?;
    let scorer = crate::wf::words::text(truth::SCORER);
    Ok(UtilityRecorded {
        scorer,
        utilities_micro: truth::worth(&set, &outcomes),
        ..said.clone()
    }
    .into())
}
