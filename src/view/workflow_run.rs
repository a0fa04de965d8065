//! What runs of a workflow did: how each ended, which rules it keeps, and the steps of one.

use serde_json::Value;

use crate::flow::RunOutcome;
use crate::flow::Workflow;
use crate::flow::executor::Usage;
use crate::flow::task::ContextRule;
use crate::flow::task::TaskSet;
use crate::flow::trace::TraceStep;
use crate::ground::digest::Digest;
use crate::num::Micro;
use crate::view::Exit;
use crate::view::View;
use crate::view::workflow::WorkflowCrash;
use crate::view::workflow::WorkflowFlag;
use crate::view::workflow::WorkflowItemRun;
use crate::view::workflow::WorkflowRan;
use crate::view::workflow::WorkflowStepRun;
use crate::view::workflow::json;
use crate::view::workflow::short;

/// A run that ended.
pub(super) fn item_run(item: &str, outcome: &RunOutcome, set: &TaskSet) -> WorkflowItemRun {
    let of_set = set.items.iter().find(|of| of.id == item);
    let output = outcome.output.as_ref();
    let holds = |rule: &ContextRule| {
        let both = of_set.zip(output);
        both.is_some_and(|(item, output)| rule.holds(item, output))
    };
    let broken = |is_hard: bool| {
        let rules = set.rules.iter().filter(|rule| rule.is_hard == is_hard);
        let broken = rules.filter(|rule| !holds(rule));
        broken.map(|rule| rule.id.clone()).collect()
    };
    let step = |step: &TraceStep| WorkflowStepRun {
        step: step.step.clone(),
        attempt: step.attempt as u64,
        request: step.call.as_ref().map(|call| call.request),
        wrote: step.writes.as_ref().map(|wrote| wrote.digest),
        ok: step.flag.as_ref().map(|flag| flag.ok),
        tries: step.guard.as_ref().map(|guard| guard.tries),
    };
    let flags = outcome.flags.iter().map(|flag| WorkflowFlag {
        flag: flag.id.clone(),
        hard: flag.hard,
        ok: flag.ok,
    });
    WorkflowItemRun {
        item: item.to_owned(),
        output: outcome.output.as_ref().map_or(Value::Null, json),
        crash: outcome.crash().map(|crash| WorkflowCrash {
            reason: crash.reason.as_str(),
            step: crash.step.clone(),
            detail: crash.detail.clone(),
        }),
        flags: flags.collect(),
        unchecked: outcome.unchecked.clone(),
        trace: outcome.trace.digest(),
        steps: outcome.trace.steps.iter().map(step).collect(),
        calls: outcome.usage.calls,
        broken: broken(true),
        broken_soft: broken(false),
        utility_micro: of_set.and_then(|item| set.utility(item, output)),
    }
}

/// How a run ended, in a few words.
pub(super) fn ended(run: &WorkflowItemRun) -> String {
    if let Some(crash) = &run.crash {
        return format!("crashed: {}", crash.reason);
    }
    let broken = |hard: bool| {
        let flags = run
            .flags
            .iter()
            .filter(|flag| !flag.ok && flag.hard == hard);
        let names: Vec<_> = flags.map(|flag| flag.flag.as_str()).collect();
        names.join(", ")
    };
    let mut words = "returned".to_owned();
    for (what, names) in [
        ("not", broken(true)),
        ("softly not", broken(false)),
        ("NOT CHECKED", run.unchecked.join(", ")),
        ("breaks", run.broken.join(", ")),
        ("softly breaks", run.broken_soft.join(", ")),
    ] {
        if !names.is_empty() {
            words.push_str(&format!(", {what} {names}"));
        }
    }
    words
}

/// What runs of a workflow did.
pub fn ran(
    workflow: &Workflow,
    executor: &'static str,
    runs: &[(String, RunOutcome)],
    set: &TaskSet,
) -> View {
    let items = runs.iter().map(|(item, of)| item_run(item, of, set));
    let items: Vec<_> = items.collect();
    let usage = runs.iter().map(|(_, of)| of.usage);
    let usage = usage.fold(Usage::default(), Usage::plus);
    let violated = runs
        .iter()
        .filter(|(_, of)| of.violations().next().is_some());
    let facts = WorkflowRan {
        workflow: workflow.digest(),
        executor,
        crashed: items.iter().filter(|of| of.crash.is_some()).count() as u64,
        violated: violated.count() as u64,
        broken: items.iter().filter(|of| !of.broken.is_empty()).count() as u64,
        utility_micro: mean(items.iter().map(|of| of.utility_micro)),
        calls: usage.calls,
        tokens_in: usage.tokens_in,
        tokens_out: usage.tokens_out,
        items,
    };
    let mut view = View::of(&facts);
    if facts.crashed + facts.violated > 0 {
        view.exit = Exit::Fail;
        view.verdict = "fail";
    }
    view.answer(format!(
        "Of {} runs, {} crashed and {} ended with a hard flag false or not checked.",
        facts.items.len(),
        facts.crashed,
        facts.violated
    ));
    if !set.rules.is_empty() {
        view.sentence(worth(&facts, set));
    }
    if let [run] = facts.items.as_slice() {
        one(&mut view, run);
    } else {
        let rows = facts.items.iter().map(|run| {
            let output = match &run.crash {
                Some(crash) => crash.detail.clone(),
                None => run.output.to_string(),
            };
            let trace = run.trace.short().to_string();
            vec![
                run.item.clone(),
                ended(run),
                run.calls.to_string(),
                trace,
                short(&output),
            ]
        });
        view.table(&["item", "ended", "calls", "trace", "output"], rows);
    }
    view.gap();
    view.line(format!(
        "{} calls  {} tokens in  {} tokens out",
        facts.calls, facts.tokens_in, facts.tokens_out
    ));
    view
}

/// The mean of numbers, rounded down; none where one is not known.
fn mean(of: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let all: Vec<u64> = of.collect::<Option<_>>()?;
    all.iter().sum::<u64>().checked_div(all.len() as u64)
}

/// What the task set says of the outputs.
fn worth(facts: &WorkflowRan, set: &TaskSet) -> String {
    let all = facts.items.len() as u64;
    let kept = format!(
        "{} of {all} outputs keep every hard rule of the set {}",
        all - facts.broken,
        set.family
    );
    match facts.utility_micro {
        Some(utility) => format!(
            "{kept}; by what is right, they are worth {} of 1 on average.",
            Micro::new(i64::try_from(utility).unwrap_or_default()).unwrap_or_default()
        ),
        None => format!("{kept}."),
    }
}

/// The steps of the one run that there is.
pub(super) fn one(view: &mut View, run: &WorkflowItemRun) {
    let rows = run.steps.iter().map(|step| {
        let did = match (step.ok, step.tries) {
            (Some(true), _) => "true".to_owned(),
            (Some(false), _) => "false".to_owned(),
            (None, Some(tries)) => format!("{tries} tries"),
            (None, None) => String::new(),
        };
        let digest = |of: Option<Digest>| of.map_or(String::new(), |of| of.short().to_string());
        vec![
            step.step.clone(),
            step.attempt.to_string(),
            digest(step.request),
            digest(step.wrote),
            did,
        ]
    });
    view.table(&["step", "attempt", "request", "wrote", "found"], rows);
    view.gap();
    let output = match &run.crash {
        Some(crash) if crash.step.is_empty() => crash.detail.clone(),
        Some(crash) => format!("{}: {}", crash.step, crash.detail),
        None => run.output.to_string(),
    };
    view.pairs([
        ("item", run.item.clone()),
        ("ended", ended(run)),
        ("output", output),
        ("trace", run.trace.to_string()),
    ]);
}
