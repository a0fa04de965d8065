//! One candidate of a repair: what the verifier says of it, how it differs from the first program, its steps on an item.

use std::path::Path;

use serde::Serialize;

use crate::event::id::RunId;
use crate::event::payload::repair_feedback::WfFeedbackGiven;
use crate::flow::RunOutcome;
use crate::flow::Workflow;
use crate::flow::difference;
use crate::flow::task::TaskSet;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::projection::wf::WfCandidate;
use crate::projection::wf::WfRun;
use crate::view::View;
use crate::view::repair;
use crate::view::repair::RepairCandidate;
use crate::view::workflow;
use crate::view::workflow::WorkflowItemRun;
use crate::view::workflow_run;
use crate::workflow::wf::plan::RepairPlan;

/// A candidate of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairCandidateShown {
    /// The run.
    pub run: RunId,
    /// The candidate.
    pub of: RepairCandidate,
    /// What the verifier says; `null` before it was asked.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub feedback: Option<WfFeedbackGiven>,
    /// Its workflow in the fixed form.
    pub text: String,
}

/// The steps of a candidate on an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairTraceShown {
    /// The run.
    pub run: RunId,
    /// The candidate.
    pub candidate: Digest,
    /// What it did, step by step.
    pub execution: WorkflowItemRun,
    /// Steps that the verifier blames, with the rule, kind and operator of each.
    pub blame: Vec<RepairBlame>,
}

/// A step that the verifier blames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairBlame {
    /// The step.
    pub step: String,
    /// The rule that is broken.
    pub rule: String,
    /// `prompt`, `io` or `structure`.
    pub kind: String,
    /// The operator that would change it.
    pub operator: String,
    /// Share of items that break the rule, in millionths.
    pub confidence_micro: i64,
}

fn blame(of: &WfCandidate) -> Vec<RepairBlame> {
    let all = of.feedback.iter().flat_map(|said| &said.blame);
    let all = all.map(|of| RepairBlame {
        step: of.step.as_str().to_owned(),
        rule: of.rule.as_str().to_owned(),
        kind: of.kind.as_str().to_owned(),
        operator: of.operator.as_str().to_owned(),
        confidence_micro: of.confidence_micro.value(),
    });
    all.collect()
}

fn blamed(view: &mut View, all: &[RepairBlame]) {
    if all.is_empty() {
        return;
    }
    let rows = all.iter().map(|of| {
        vec![
            of.step.clone(),
            of.rule.clone(),
            of.kind.clone(),
            of.operator.clone(),
            repair::decimal(of.confidence_micro),
        ]
    });
    view.gap();
    view.table(&["blamed", "rule", "kind", "operator", "confidence"], rows);
}

/// What the feedback suggests to edit next.
fn suggested(view: &mut View, feedback: Option<&WfFeedbackGiven>) {
    let Some(said) = feedback.and_then(|of| of.suggestion.as_ref()) else {
        return;
    };
    view.gap();
    view.line(format!(
        "suggested: {} of {}: {}",
        said.operator,
        said.step.as_str(),
        said.rationale.as_str()
    ));
}

/// A candidate, with what it changes of the first program.
pub fn candidate(
    run: &WfRun,
    id: &Digest,
    (first, workflow): (&Workflow, &Workflow),
    out: Option<&Path>,
) -> View {
    let Some(of) = run.candidate(id) else {
        return repair::run(run);
    };
    let facts = RepairCandidateShown {
        run: run.said.run.clone(),
        of: repair::candidate(*id, of),
        feedback: of.feedback.clone(),
        text: workflow.print(),
    };
    let mut view = View::of(&facts);
    let score = facts
        .of
        .score_micro
        .map(|score| repair::decimal(score.value()));
    let worth = facts.of.worth_micro.map(repair::decimal);
    let none = || "none".to_owned();
    view.pairs([
        ("candidate", id.to_string()),
        (
            "made by",
            facts
                .of
                .operator
                .map_or_else(|| "the opening".to_owned(), |of| of.to_string()),
        ),
        ("score", score.unwrap_or_else(none)),
        (
            "passes",
            facts
                .of
                .passes
                .map_or_else(none, |passes| passes.to_string()),
        ),
        ("worth", worth.unwrap_or_else(|| "not opened".to_owned())),
        ("calls", facts.of.calls.to_string()),
    ]);
    if let Some(said) = &facts.feedback {
        let rows = said.flags.iter().map(|flag| {
            let kept = flag.kept.as_str();
            let count = kept.chars().filter(|of| *of == '1').count();
            vec![
                flag.id.as_str().to_owned(),
                if flag.hard { "hard" } else { "soft" }.to_owned(),
                format!("{count} of {}", kept.len()),
                kept.to_owned(),
            ]
        });
        view.gap();
        view.table(&["rule", "kind", "kept", "item by item"], rows);
    }
    blamed(&mut view, &blame(of));
    suggested(&mut view, facts.feedback.as_ref());
    view.gap();
    workflow::changed(&mut view, &difference::between(first, workflow));
    if let Some(out) = out {
        view.line(format!("written to {}", out.display()));
    }
    let first_item = run.said.items.first().map(|item| item.id.to_string());
    view.with_next(format!(
        "clover repair show {} --candidate {} --item {}",
        shell::word(&run.said.run),
        id.short(),
        shell::word(&first_item.unwrap_or_default())
    ))
}

/// The steps of a candidate on an item, with the flags and what is blamed.
pub fn traced(
    run: &WfRun,
    id: &Digest,
    plan: &RepairPlan,
    at: usize,
    outcome: &RunOutcome,
) -> View {
    let set = TaskSet {
        rules: plan.rules.clone(),
        ..plan.set.clone()
    };
    let item = &plan.set.items[at].id;
    let facts = RepairTraceShown {
        run: run.said.run.clone(),
        candidate: *id,
        execution: workflow_run::item_run(item, outcome, &set),
        blame: run.candidate(id).map_or_else(Vec::new, blame),
    };
    let mut view = View::of(&facts);
    workflow_run::one(&mut view, &facts.execution);
    blamed(&mut view, &facts.blame);
    view
}
