//! Workflows: what was checked, their steps, what differs between two, and what their runs did.

use std::path::Path as FilePath;

use serde::Serialize;
use serde_json::Value;

use crate::flow::Data;
use crate::flow::Workflow;
use crate::flow::difference::Difference;
use crate::flow::task::Family;
use crate::flow::workflow::Action;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::report::steps::StepArrow;
use crate::report::steps::StepBox;
use crate::report::steps::StepsDrawing;
use crate::view::View;

/// Characters of a value in a table.
const VALUE_MAX: usize = 60;

/// A workflow that the checker takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowChecked {
    /// Digest of the workflow.
    pub workflow: Digest,
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// How many steps it has.
    pub steps: u64,
    /// How many of them ask a model.
    pub llm_steps: u64,
    /// Steps of the longest chain in which each needs the one before.
    pub chain: u64,
}

/// A step of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowStep {
    /// Its id.
    pub step: String,
    /// `llm`, `check`, `guard`, `map` or `return`.
    pub kind: &'static str,
    /// Paths that it reads.
    pub reads: Vec<String>,
    /// The name that it writes; `null` where it writes nothing.
    pub writes: Option<String>,
    /// What it does, in a few words.
    pub does: String,
}

/// A workflow, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowShown {
    /// Digest of the workflow.
    pub workflow: Digest,
    /// Its steps, in the order of a run.
    pub steps: Vec<WorkflowStep>,
    /// The path of what it returns.
    pub returns: String,
    /// The document in its fixed form.
    pub text: String,
}

/// A value that differs between two workflows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowChange {
    /// Where: a step stands by its id.
    pub path: String,
    /// What the first has there; `null` also where it has nothing.
    pub from: Value,
    /// What the second has there; `null` also where it has nothing.
    pub to: Value,
}

/// How much of a workflow a change touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowLocality {
    /// Steps that are added, removed or changed.
    pub steps_touched: u64,
    /// JSON values that are added, removed or replaced.
    pub ast_nodes: u64,
    /// Characters of prompts and notes that are added or removed.
    pub prompt_chars: u64,
    /// Steps that ask a model and were not there.
    pub new_llm_calls: u64,
}

/// What one workflow has and another has not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowDiff {
    /// Values that differ; empty where both are the same.
    pub changes: Vec<WorkflowChange>,
    /// The JSON Patch (RFC 6902) that makes the second of the first.
    pub patch: Value,
    /// How much of the workflow the change touches.
    pub locality: WorkflowLocality,
}

/// One execution of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowStepRun {
    /// The step.
    pub step: String,
    /// How often it was executed before in this run.
    pub attempt: u64,
    /// Digest of the request that it sent; `null` where it asked nothing.
    pub request: Option<Digest>,
    /// Digest of the value that it wrote; `null` where it wrote nothing.
    pub wrote: Option<Digest>,
    /// What its flag was set to; `null` where it set none.
    pub ok: Option<bool>,
    /// As a guard: how often it ran its target again; `null` for other steps.
    pub tries: Option<u64>,
}

/// A flag at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowFlag {
    /// The flag.
    pub flag: String,
    /// Whether an output is of no use where it is false.
    pub hard: bool,
    /// Whether the check was true.
    pub ok: bool,
}

/// How a run crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowCrash {
    /// `parse`, `timeout`, `endpoint`, `type` or `bound`.
    pub reason: &'static str,
    /// The step; empty for what the workflow returns at its end.
    pub step: String,
    /// What was wrong.
    pub detail: String,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowItemRun {
    /// The item.
    pub item: String,
    /// What the run returned; `null` also where it crashed.
    pub output: Value,
    /// How it crashed; `null` where it did not.
    pub crash: Option<WorkflowCrash>,
    /// Flags at its end.
    pub flags: Vec<WorkflowFlag>,
    /// Hard flags whose check never ran, though the run returned.
    pub unchecked: Vec<String>,
    /// Digest of its trace: the same answers give the same digest.
    pub trace: Digest,
    /// Executions of steps, in order.
    pub steps: Vec<WorkflowStepRun>,
    /// Calls of models.
    pub calls: u64,
    /// Hard rules of the task set that the output breaks; a run that crashed breaks all.
    pub broken: Vec<String>,
    /// Soft rules of the task set that it breaks.
    pub broken_soft: Vec<String>,
    /// What the output is worth by what is right, in millionths; `null` where the set does not say it.
    pub utility_micro: Option<u64>,
}

/// Runs of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowRan {
    /// Digest of the workflow.
    pub workflow: Digest,
    /// What answered for the model: `sim` or `table`.
    pub executor: &'static str,
    /// The runs, in the order of their items.
    pub items: Vec<WorkflowItemRun>,
    /// Runs that crashed.
    pub crashed: u64,
    /// Runs that ended with a hard flag false, or without its check.
    pub violated: u64,
    /// Runs whose output breaks a hard rule of the task set; a run that crashed does.
    pub broken: u64,
    /// Mean of what outputs are worth by what is right, in millionths; `null` where the set does not say it.
    pub utility_micro: Option<u64>,
    /// Calls of models.
    pub calls: u64,
    /// Tokens of requests.
    pub tokens_in: u64,
    /// Tokens of answers.
    pub tokens_out: u64,
}

/// Files to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkflowBegun {
    /// The family of tasks.
    pub family: &'static str,
    /// The files that were written.
    pub files: Vec<String>,
    /// Items of each set.
    pub items: u64,
}

/// A value of a workflow as a JSON value.
pub(super) fn json(of: &Data) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// A value in a table.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What the checker says of a workflow that it takes.
pub fn checked(workflow: &Workflow, file: &str) -> View {
    let facts = WorkflowChecked {
        workflow: workflow.digest(),
        inputs: workflow.inputs().to_vec(),
        steps: workflow.steps().len() as u64,
        llm_steps: workflow.llm_steps() as u64,
        chain: workflow.chain() as u64,
    };
    let mut view = View::of(&facts);
    view.answer(format!("{file} is a workflow of the language wf/1."));
    view.pairs([
        ("steps", facts.steps.to_string()),
        ("ask a model", facts.llm_steps.to_string()),
        ("longest chain", facts.chain.to_string()),
        ("inputs", facts.inputs.join(", ")),
        ("digest", facts.workflow.to_string()),
    ]);
    view.with_next(format!("clover workflow show {}", shell::word(&file)))
}

/// What a step does, in a few words.
fn does(workflow: &Workflow, action: &Action) -> String {
    match action {
        Action::Llm(step) => match (&step.shape, step.is_json) {
            (Some(_), _) => "asks a model for JSON under a schema".to_owned(),
            (None, true) => "asks a model for JSON".to_owned(),
            (None, false) => "asks a model for text".to_owned(),
        },
        Action::Check(step) => {
            let hard = if step.is_hard { "hard" } else { "soft" };
            format!("sets the {hard} flag {}", step.flag)
        }
        Action::Guard(step) => format!(
            "runs {} again, at most {} times",
            workflow.steps()[step.target].id,
            step.max_tries
        ),
        Action::Map(step) => format!("computes {}", step.function.word()),
        Action::Return(step) => format!("returns {}", step.path),
    }
}

fn steps_of(workflow: &Workflow) -> Vec<WorkflowStep> {
    let steps = workflow.steps().iter().map(|step| WorkflowStep {
        step: step.id.clone(),
        kind: step.kind(),
        reads: step.reads().iter().map(ToString::to_string).collect(),
        writes: step.writes().map(str::to_owned),
        does: does(workflow, &step.action),
    });
    steps.collect()
}

/// A workflow as a drawing.
pub fn drawing(workflow: &Workflow, title: &str) -> StepsDrawing {
    let steps = steps_of(workflow);
    let boxes = steps.iter().map(|step| StepBox {
        label: step.step.clone(),
        kind: step.kind.to_owned(),
        note: step.does.clone(),
    });
    let mut arrows = Vec::new();
    for (to, step) in workflow.steps().iter().enumerate() {
        let roots = step.reads();
        let flags = step.flags();
        for (from, other) in workflow.steps()[..to].iter().enumerate() {
            let sets = match &other.action {
                Action::Check(check) => flags.contains(&check.flag.as_str()),
                _ => false,
            };
            let writes = other.writes();
            if sets || roots.iter().any(|path| Some(path.root()) == writes) {
                let is_again = false;
                arrows.push(StepArrow { from, to, is_again });
            }
        }
        if let Action::Guard(guard) = &step.action {
            arrows.push(StepArrow {
                from: to,
                to: guard.target,
                is_again: true,
            });
        }
    }
    StepsDrawing {
        title: title.to_owned(),
        boxes: boxes.collect(),
        arrows,
    }
}

/// A workflow, step by step; its document in the fixed form where `is_source`.
pub fn show(workflow: &Workflow, file: &str, is_source: bool, drawn: Option<&FilePath>) -> View {
    let facts = WorkflowShown {
        workflow: workflow.digest(),
        steps: steps_of(workflow),
        returns: workflow.returns().to_string(),
        text: workflow.print(),
    };
    let mut view = View::of(&facts);
    if is_source {
        view.source(facts.text);
        return view;
    }
    let rows = facts.steps.iter().map(|step| {
        vec![
            step.step.clone(),
            step.kind.to_owned(),
            short(&step.reads.join(", ")),
            step.writes.clone().unwrap_or_default(),
            step.does.clone(),
        ]
    });
    view.table(&["step", "kind", "reads", "writes", "what it does"], rows);
    view.gap();
    view.pairs([
        ("returns", facts.returns.clone()),
        ("digest", facts.workflow.to_string()),
    ]);
    match drawn {
        Some(path) => view.line(format!("drawn in {}", path.display())),
        None => view.chart(Vec::new(), Some(drawing(workflow, file).svg())),
    }
    view
}

/// Values that differ between two workflows, a line each.
pub(super) fn changed(view: &mut View, difference: &Difference) {
    for change in &difference.changes {
        view.line(match (&change.from, &change.to) {
            (None, Some(to)) => format!("{}: added {to}", change.path),
            (Some(from), None) => format!("{}: removed {from}", change.path),
            (from, to) => {
                let of =
                    |value: &Option<Data>| value.as_ref().map_or(String::new(), Data::canonical);
                format!("{}: {} -> {}", change.path, of(from), of(to))
            }
        });
    }
}

/// What one workflow has and another has not; the patch alone where `is_patch`.
pub fn diff(difference: &Difference, is_patch: bool) -> View {
    let of = |value: &Option<Data>| value.as_ref().map_or(Value::Null, json);
    let changes = difference.changes.iter().map(|change| WorkflowChange {
        path: change.path.clone(),
        from: of(&change.from),
        to: of(&change.to),
    });
    let locality = difference.locality;
    let facts = WorkflowDiff {
        changes: changes.collect(),
        patch: json(&difference.patch.document()),
        locality: WorkflowLocality {
            steps_touched: locality.steps_touched as u64,
            ast_nodes: locality.ast_nodes as u64,
            prompt_chars: locality.prompt_chars as u64,
            new_llm_calls: locality.new_llm_calls as u64,
        },
    };
    let mut view = View::of(&facts);
    if is_patch {
        view.source(crate::flow::workflow::print(&difference.patch.document()));
        return view;
    }
    if difference.changes.is_empty() {
        view.line("the same");
        return view;
    }
    changed(&mut view, difference);
    view.gap();
    let WorkflowLocality {
        steps_touched,
        ast_nodes,
        prompt_chars,
        new_llm_calls,
    } = facts.locality;
    view.sentence(format!(
        "It touches {steps_touched} steps and {ast_nodes} JSON values, {prompt_chars} characters of prompts, and \
         adds {new_llm_calls} calls."
    ));
    view
}

/// Files to begin with.
pub fn begun(family: Family, folder: &FilePath, files: Vec<String>, items: usize) -> View {
    let facts = WorkflowBegun {
        family: family.as_str(),
        files,
        items: items as u64,
    };
    let mut view = View::of(&facts);
    for file in &facts.files {
        view.line(file.clone());
    }
    let shown = |name: &str| shell::word(&folder.join(name).display());
    view.with_next(format!("clover workflow check {}", shown("workflow.json")))
        .with_next(format!(
            "clover workflow run {} --input {} --executor sim",
            shown("workflow.json"),
            shown("local.jsonl")
        ))
}
