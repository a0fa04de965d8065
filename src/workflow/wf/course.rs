//! What a run says next, from its record: proposals of the built-in optimizer, what a turn keeps, how it ends.

use clover_event::Payload;
use clover_event::payload::repair::WfCandidateAdded;
use clover_event::payload::repair::WfEditRejected;
use clover_event::payload::repair::WfRejection;
use clover_event::payload::repair::WfStrength;
use clover_event::payload::repair_feedback::WfBlame;
use clover_event::payload::repair_feedback::WfBlameKind;
use clover_event::payload::repair_feedback::WfPruned;
use clover_flow::Workflow;
use clover_flow::repair::edit::Edit;
use clover_flow::repair::edit::EditResult;
use clover_flow::repair::edit::Operator;
use clover_flow::repair::feedback::Blame;
use clover_flow::repair::feedback::BlameKind;
use clover_flow::repair::propose;
use clover_flow::value::Data;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact as _;
use clover_ledger::Unmet;
use clover_projection::wf::WfRun;
use clover_projection::wf::count;

use crate::wf::plan;
use crate::wf::plan::RepairPlan;
use crate::wf::words;

/// The name of the optimizer that needs no model.
pub const TEMPLATES: &str = "templates/1";
/// The name of its weak form: it takes what is blamed in reverse, the least sure first.
pub const TEMPLATES_WEAK: &str = "templates-weak/1";

/// The workflow of a candidate.
///
/// # Errors
/// [`Unmet`] where the run has none of this id.
pub fn workflow(run: &WfRun, id: &Digest) -> Result<Workflow, Unmet> {
    let of = run.candidate(id).and_then(|of| of.ir.as_ref());
    plan::workflow(of.required("a candidate of the run")?.as_str())
}

/// A blame as the optimizer reads it.
pub(super) fn blame(of: &WfBlame) -> Blame {
    Blame {
        confidence: u64::try_from(of.confidence_micro.value()).unwrap_or(0),
        kind: match of.kind {
            WfBlameKind::Io => BlameKind::Io,
            WfBlameKind::Prompt => BlameKind::Prompt,
            WfBlameKind::Structure => BlameKind::Structure,
        },
        operator: Operator::EditPrompt,
        rule: of.rule.as_str().to_owned(),
        step: of.step.as_str().to_owned(),
    }
}

/// Edits that the built-in optimizer proposes for a candidate.
fn proposed(run: &WfRun, plan: &RepairPlan, id: &Digest) -> Result<Vec<Edit>, Unmet> {
    let of = run.candidate(id).and_then(|of| of.feedback.as_ref());
    let mut blames: Vec<Blame> = of
        .required("feedback on what a turn keeps")?
        .blame
        .iter()
        .map(blame)
        .collect();
    if run.said.cell.optimizer == WfStrength::Weak {
        blames.reverse();
    }
    let most = usize::try_from(run.said.terms.proposals.value()).unwrap_or(usize::MAX);
    let parent = workflow(run, id)?;
    Ok(propose::propose(&parent, &plan.rules, &blames, most))
}

/// An edit as a document.
pub fn edit_document(edit: &Edit) -> Data {
    let operator = clover_flow::repair::charter::operator_word(edit.operator());
    Data::object([("operator", operator.into()), ("args", edit.document())])
}

/// What is said of an edit of a candidate: what it makes, or why it makes nothing.
///
/// # Errors
/// [`Unmet`] where a document is too long.
pub fn of_edit(
    run: &WfRun,
    plan: &RepairPlan,
    parent: Digest,
    edit: &Edit,
) -> Result<Payload, Unmet> {
    let from = workflow(run, &parent)?;
    let document = words::document(&edit_document(edit))?;
    let (iteration, number) = (count(run.turn()), count(run.proposals));
    let operator = words::operator(edit.operator());
    let rejected = |reason: WfRejection, detail: &str| WfEditRejected {
        detail: words::text(detail),
        edit: document.clone(),
        iteration,
        number,
        operator,
        parent,
        reason,
        run: run.said.run.clone(),
    };
    let made = edit.apply(&from, &plan.meta.operators, &plan.edits);
    let made: EditResult = match made {
        Ok(made) => made,
        Err(why) => return Ok(rejected(words::rejection(&why), &why.to_string()).into()),
    };
    let candidate = made.workflow.digest();
    if run.candidates.contains_key(&candidate) {
        let known = rejected(WfRejection::Known, "the run has this candidate already");
        return Ok(known.into());
    }
    Ok(added(run, parent, edit, &made)?.into())
}

/// The next proposal of a turn that was pruned; the end of the turn where all were made.
///
/// # Errors
/// [`Unmet`] where the record gives none.
pub fn proposal(run: &WfRun, plan: &RepairPlan) -> Result<Payload, Unmet> {
    let kept = run.turns.last().map_or(&[][..], |of| &of.kept);
    for id in kept {
        let tried = run.tries.iter().filter(|(of, _)| of == id);
        let tried: u64 = tried.map(|(_, count)| *count).sum();
        let edits = proposed(run, plan, id)?;
        let next = usize::try_from(tried).ok().and_then(|at| edits.get(at));
        if let Some(edit) = next {
            return of_edit(run, plan, *id, edit);
        }
    }
    Ok(run.closing().into())
}

/// What a turn keeps.
pub fn pruned(run: &WfRun) -> WfPruned {
    let (kept, dropped) = run.pruned();
    WfPruned {
        dropped,
        iteration: count(run.turn()),
        kept,
        run: run.said.run.clone(),
    }
}

/// What an edit of a candidate makes, whether the run has it or not; `None` where it is rejected.
///
/// # Errors
/// [`Unmet`] where a document is too long, or the run has no such candidate.
pub fn made(
    run: &WfRun,
    plan: &RepairPlan,
    parent: Digest,
    edit: &Edit,
) -> Result<Option<WfCandidateAdded>, Unmet> {
    let from = workflow(run, &parent)?;
    let made = edit.apply(&from, &plan.meta.operators, &plan.edits);
    made.ok()
        .map(|made| added(run, parent, edit, &made))
        .transpose()
}

fn added(
    run: &WfRun,
    parent: Digest,
    edit: &Edit,
    made: &EditResult,
) -> Result<WfCandidateAdded, Unmet> {
    Ok(WfCandidateAdded {
        candidate: made.workflow.digest(),
        edit: words::document(&edit_document(edit))?,
        ir: words::document(made.workflow.document())?,
        iteration: count(run.turn()),
        locality: words::locality(&made.locality),
        number: count(run.proposals),
        operator: words::operator(edit.operator()),
        parent,
        patch: words::document(&made.patch.document())?,
        run: run.said.run.clone(),
    })
}
