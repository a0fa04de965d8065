//! Edits in pairs, from which beta is measured: one of a step that is blamed, one of a step that the seed draws, by the same
//! operator of the same optimizer.

use clover_event::id::Text;
use clover_event::payload::repair::WfCandidateAdded;
use clover_event::payload::repair_feedback::EditPairRecorded;
use clover_event::payload::repair_feedback::WfPairArm;
use clover_flow::repair::edit::Edit;
use clover_flow::repair::feedback::Blame;
use clover_flow::repair::propose;
use clover_flow::workflow::Action;
use clover_ground::digest::Digest;
use clover_ledger::Unmet;
use clover_num::Micro;
use clover_projection::wf::WfRun;
use clover_projection::wf::count;
use clover_projection::wf::rules::control_draw;

use crate::wf::course;
use crate::wf::plan::RepairPlan;
use crate::wf::words;

/// One, in millionths.
const ONE: i64 = 1_000_000;

fn arm(step: &str, made: WfCandidateAdded) -> WfPairArm {
    WfPairArm {
        candidate: made.candidate,
        edit: made.edit,
        ir: made.ir,
        locality: made.locality,
        patch: made.patch,
        step: words::text(step),
    }
}

/// The pair of one blame of a candidate; `None` where no other step asks a model, where an edit cannot be made, or where both
/// make the same workflow.
fn of_blame(
    (run, plan): (&WfRun, &RepairPlan),
    parent: Digest,
    blame: &Blame,
) -> Result<Option<EditPairRecorded>, Unmet> {
    let workflow = course::workflow(run, &parent)?;
    let steps = workflow.steps().iter();
    let asking = steps.filter(|step| matches!(step.action, Action::Llm(_)));
    let others = asking.filter(|step| step.id != blame.step);
    let eligible: Vec<&str> = others.map(|step| step.id.as_str()).collect();
    let number = run.pairs.len() as u64;
    let draw = control_draw(run.said.seed, parent, number, eligible.len());
    let drawn = usize::try_from(draw).ok().and_then(|at| eligible.get(at));
    let Some(drawn) = drawn else {
        return Ok(None);
    };
    let control = Blame {
        step: (*drawn).to_owned(),
        ..blame.clone()
    };
    let edit = |of: &Blame| propose::of_blame(&workflow, &plan.rules, of);
    let Some((targeted, control)) = edit(blame).zip(edit(&control)) else {
        return Ok(None);
    };
    let operator = targeted.operator();
    let made = |edit: &Edit| course::made(run, plan, parent, edit);
    let (Some(targeted), Some(control), true) = (
        made(&targeted)?,
        made(&control)?,
        operator == control.operator(),
    ) else {
        return Ok(None);
    };
    let mut known = run.pairs.iter();
    let is_known =
        known.any(|of| of.parent == parent && of.targeted.candidate == targeted.candidate);
    if is_known || targeted.candidate == control.candidate {
        return Ok(None);
    }
    let propensity = ONE / i64::try_from(eligible.len()).unwrap_or(i64::MAX);
    let eligible: Vec<Text> = eligible.iter().map(|of| words::text(of)).collect();
    Ok(Some(EditPairRecorded {
        control: arm(drawn, control),
        draw: count(draw),
        eligible,
        number: count(number),
        operator: words::operator(operator),
        parent,
        propensity_micro: Micro::new(propensity).unwrap_or_default(),
        run: run.said.run.clone(),
        targeted: arm(&blame.step, targeted),
    }))
}

/// The next pair of a run that has ended: of the candidates that were judged and do not pass, in the order in which they came,
/// and of what the verifier blames in each, the surest first; `None` where there is none.
///
/// # Errors
/// [`Unmet`] where the record has no workflow of a candidate, or a document is too long.
pub fn next(run: &WfRun, plan: &RepairPlan) -> Result<Option<EditPairRecorded>, Unmet> {
    for id in &run.order {
        let Some(of) = run.candidate(id) else {
            continue;
        };
        let fails = of.scored.as_ref().is_some_and(|scored| !scored.passes);
        let blames = of.feedback.iter().flat_map(|feedback| &feedback.blame);
        for blame in blames.filter(|_| fails) {
            let found = of_blame((run, plan), *id, &course::blame(blame))?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}
