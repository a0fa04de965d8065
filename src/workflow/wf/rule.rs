//! The rule `repair` where workflows are read: what an edit makes, what the built-in optimizer proposes, pairs of edits, and the
//! gates of an update are what the record gives.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta::MetaUpdated;
use clover_event::payload::meta::MetaValidated;
use clover_event::payload::meta_plan::MetaConcluded;
use clover_event::payload::repair::WfCandidateAdded;
use clover_event::payload::repair::WfDocument;
use clover_event::payload::repair::WfEdits;
use clover_event::payload::repair::WfOptimizer;
use clover_event::payload::repair::WfRunStarted;
use clover_event::payload::repair::WfStrength;
use clover_event::payload::repair_feedback::EditPairRecorded;
use clover_event::payload::repair_feedback::WfPairArm;
use clover_flow::Workflow;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::charter::Verifier;
use clover_flow::repair::edit::Edit;
use clover_flow::repair::edit::Operator;
use clover_flow::repair::edit_text;
use clover_flow::workflow::Action;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_projection::wf::run_of;

use crate::recompute::Recomputation;
use crate::recompute::compare;
use crate::wf::cells;
use crate::wf::course;
use crate::wf::measure;
use crate::wf::plan;
use crate::wf::plan::RepairPlan;

/// The rule of repairs, computed again.
#[derive(Clone, Copy, Debug)]
pub struct RepairRecomputation;

/// What is said is what the record gives.
fn same(said: &Payload, again: impl Into<Payload>) -> RuleAnswer {
    let again = again.into();
    let expected = format!("{} first", again.kind());
    ensure!(
        said.kind() == again.kind(),
        expected,
        said.kind().to_string()
    );
    match compare(said, &again) {
        Recomputation::Differs(all) => match all.first() {
            Some(first) => unmet(
                format!("{} {}", first.path, first.recomputed),
                first.recorded.to_string(),
            ),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A workflow in its canonical form, under its digest.
fn check_workflow(text: &WfDocument, digest: Digest) -> Result<Workflow, Unmet> {
    let workflow = plan::workflow(text.as_str())?;
    let is_canonical = workflow.document().canonical() == text.as_str();
    if is_canonical && workflow.digest() == digest {
        return Ok(workflow);
    }
    Err(Unmet {
        expected: format!("a workflow as canonical JSON, {}", workflow.digest()),
        found: "another form".to_owned(),
    })
}

/// The documents of a run are what they are called.
fn check_started(said: &WfRunStarted) -> RuleAnswer {
    check_workflow(&said.program, said.program_digest)?;
    let plan = RepairPlan::of(said)?;
    let digests = [
        ("context", plan.set.context, said.context_digest),
        ("meta prompt", plan.meta.digest(), said.meta_digest),
        ("verifier", plan.verifier.digest(), said.verifier_digest),
    ];
    for (what, digest, found) in digests {
        let expected = format!("a {what} as canonical JSON, {digest}");
        ensure!(digest == found, expected, found.to_string());
    }
    let is_prompt = said.cell.edits == WfEdits::Prompt;
    let only = plan.meta.operators.iter();
    let only = only.copied().all(|of| of == Operator::EditPrompt);
    let expected = "a cell of prompts exactly where the meta prompt allows nothing else";
    ensure!(is_prompt == only, expected, said.cell.edits.to_string());
    let first = said.optimizer_model.as_str().split_whitespace().next();
    let own = first.unwrap_or_default();
    let is_own = own == course::TEMPLATES || own == course::TEMPLATES_WEAK;
    let is_built_in = said.optimizer == WfOptimizer::Templates;
    let expected = "the name of the built-in optimizer exactly where it proposes";
    ensure!(
        is_own == is_built_in,
        expected,
        said.optimizer_model.as_str()
    );
    let is_weak = said.cell.optimizer == WfStrength::Weak;
    let expected = "the name of the weak optimizer exactly where the weak one proposes";
    let is_named = !is_built_in || is_weak == (own == course::TEMPLATES_WEAK);
    ensure!(is_named, expected, said.optimizer_model.as_str());
    Ok(())
}

fn read_edit(text: &WfDocument) -> Result<Edit, Unmet> {
    edit_text::parse(text.as_str()).map_err(|fault| Unmet {
        expected: "an edit".to_owned(),
        found: format!("{}: {}", fault.path, fault.kind),
    })
}

/// A proposal is what the built-in optimizer says next; of another one, what its edit makes.
fn check_proposal(run: &WfRun, said: &Payload) -> RuleAnswer {
    let plan = RepairPlan::of(&run.said)?;
    if run.said.optimizer == WfOptimizer::Templates {
        return same(said, course::proposal(run, &plan)?);
    }
    let (parent, edit) = match said {
        Payload::WfCandidateAdded(said) => (said.parent, &said.edit),
        Payload::WfEditRejected(said) => (said.parent, &said.edit),
        _ => return Ok(()),
    };
    let edit = read_edit(edit)?;
    same(said, course::of_edit(run, &plan, parent, &edit)?)
}

/// One edit of a pair makes what it says, by the operator of both.
fn check_arm(
    (run, plan): (&WfRun, &RepairPlan),
    said: &EditPairRecorded,
    arm: &WfPairArm,
) -> RuleAnswer {
    let edit = read_edit(&arm.edit)?;
    let step = arm.step.as_str();
    let expected = format!("an edit of {step}");
    ensure!(edit.step() == step, expected, edit.step());
    let again = course::made(run, plan, said.parent, &edit)?;
    let again = again.required("an edit within the bounds of the run")?;
    let found = WfCandidateAdded {
        candidate: arm.candidate,
        edit: arm.edit.clone(),
        ir: arm.ir.clone(),
        locality: arm.locality,
        operator: said.operator,
        patch: arm.patch.clone(),
        ..again.clone()
    };
    same(&found.into(), again)
}

/// A pair has the same operator on both sides, and the control is drawn among all other steps that ask a model.
fn check_pair(run: &WfRun, said: &EditPairRecorded) -> RuleAnswer {
    let plan = RepairPlan::of(&run.said)?;
    let parent = course::workflow(run, &said.parent)?;
    let blamed = said.targeted.step.as_str();
    let steps = parent.steps().iter();
    let llm = steps.filter(|step| matches!(step.action, Action::Llm(_)));
    let others: Vec<&str> = llm
        .map(|of| of.id.as_str())
        .filter(|id| *id != blamed)
        .collect();
    let found: Vec<&str> = said
        .eligible
        .iter()
        .map(clover_event::id::Text::as_str)
        .collect();
    let expected = format!("the other steps that ask a model: {}", others.join(", "));
    ensure!(found == others, expected, found.join(", "));
    check_arm((run, &plan), said, &said.targeted)?;
    check_arm((run, &plan), said, &said.control)
}

/// The document of an update is one of its kind.
fn check_updated(said: &MetaUpdated) -> RuleAnswer {
    let text = said.document.as_str();
    let unread = |fault: clover_flow::Fault| Unmet {
        expected: format!("a document of {}", said.target),
        found: format!("{}: {}", fault.path, fault.kind),
    };
    let digest = match said.target {
        MetaTarget::Verifier => Verifier::parse(text).map_err(unread)?.digest(),
        MetaTarget::Meta => MetaPrompt::parse(text).map_err(unread)?.digest(),
        MetaTarget::Program | MetaTarget::Library => {
            check_workflow(&said.document, said.new_digest)?.digest()
        }
    };
    let expected = format!("a document as canonical JSON, {digest}");
    let found = said.new_digest;
    ensure!(found == digest, expected, found.to_string());
    Ok(())
}

/// The gates of an update are what its pairs give, in their order.
fn check_validated(runs: &WfRuns, said: &MetaValidated) -> RuleAnswer {
    let update = runs.updates.get(&said.update);
    let update = update.required(&format!("meta.updated of {}", said.update))?;
    let again = measure::validated(runs, &update.said)?;
    same(&said.clone().into(), again)
}

/// The claims of a plan are what its runs give, task by task.
fn check_concluded(runs: &WfRuns, said: &MetaConcluded) -> RuleAnswer {
    let plan = runs.plans.get(&said.plan);
    let plan = plan.required(&format!("meta.planned of {}", said.plan))?;
    let again = cells::concluded(runs, plan)?;
    same(&said.clone().into(), again)
}

fn check(state: &State, event: &ProposedEvent<'_>) -> RuleAnswer {
    let payload = &event.event.payload;
    let runs = state.fold::<WfRuns>();
    let run = run_of(payload).and_then(|name| runs.by_id.get(name));
    match payload {
        Payload::WfRunStarted(said) => check_started(said),
        Payload::MetaUpdated(said) => check_updated(said),
        Payload::MetaValidated(said) => check_validated(runs, said),
        Payload::MetaConcluded(said) => check_concluded(runs, said),
        Payload::WfCandidateAdded(_)
        | Payload::WfEditRejected(_)
        | Payload::WfIterationClosed(_) => {
            check_proposal(run.required(Kind::WfRunStarted.as_str())?, payload)
        }
        Payload::EditPairRecorded(said) => {
            check_pair(run.required(Kind::WfRunStarted.as_str())?, said)
        }
        _ => Ok(()),
    }
}

impl Rule for RepairRecomputation {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // What recorded facts refuse already needs no second finding of the same rule.
        if breaches.iter().any(|of| of.rule == RuleName::Repair) {
            return;
        }
        breaches.take(RuleName::Repair, check(state, event));
    }
}
