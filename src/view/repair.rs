//! Repairs of workflows: how a run stands, its candidates and turns, and every run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::RunId;
use crate::event::payload::repair::WfEnd;
use crate::event::payload::repair::WfOperator;
use crate::event::payload::repair::WfPart;
use crate::event::payload::repair::WfRunStarted;
use crate::event::payload::repair::WfUsage;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::wf::WfCandidate;
use crate::projection::wf::WfRun;
use crate::projection::wf::WfRuns;
use crate::report::steps::StepArrow;
use crate::report::steps::StepBox;
use crate::report::steps::StepsDrawing;
use crate::view::View;
use crate::workflow::wf::measures;
use crate::workflow::wf::truth;

/// A run as it would be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairPlanned {
    /// The run.
    pub run: RunId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Digest of the first program.
    pub program: Digest,
    /// Digest of the context: family, rules, weights.
    pub context: Digest,
    /// Items that it adapts to.
    pub items: u64,
    /// Executions of each item.
    pub executions: u64,
    /// Most calls of models; the last call may pass it.
    pub calls_max: u64,
    /// Most tokens.
    pub tokens_max: u64,
    /// Most dollars, in millionths.
    pub usd_micro_max: u64,
    /// Most turns.
    pub turns_max: u64,
}

/// A candidate of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairCandidate {
    /// Its id: the digest of its workflow.
    pub candidate: Digest,
    /// The candidate that it was made of; `null` for what the run begins from.
    pub parent: Option<Digest>,
    /// The operator that made it; `null` for what the run begins from.
    pub operator: Option<WfOperator>,
    /// The step that the edit is about.
    pub step: Option<String>,
    /// The turn that judges it, from 1; 0 for an arm of a pair.
    pub turn: u64,
    /// Its score; `null` where it has none.
    pub score_micro: Option<Micro>,
    /// Whether it passes; `null` before it was scored.
    pub passes: Option<bool>,
    /// Rules that it breaks on some item.
    pub broken: Vec<String>,
    /// Items on which it crashed.
    pub crashed: u64,
    /// What it is worth by what is right, in millionths; `null` until that is opened.
    pub worth_micro: Option<i64>,
    /// Steps that its edit touches.
    pub steps_touched: u64,
    /// JSON values that its edit touches.
    pub ast_nodes: u64,
    /// Calls that its executions took.
    pub calls: u64,
}

/// A run that repairs a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairRunShown {
    /// The run.
    pub run: RunId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// What it is for.
    pub part: WfPart,
    /// The family of its tasks.
    pub family: String,
    /// Items that it adapts to.
    pub items: u64,
    /// What answers for the model.
    pub executor: String,
    /// What proposes edits.
    pub optimizer: String,
    /// What is due, in words; once it has ended, what its candidates are worth.
    pub due: String,
    /// Turns that were pruned.
    pub turns: u64,
    /// Most turns.
    pub turns_max: u64,
    /// Candidates in the order in which they came.
    pub candidates: Vec<RepairCandidate>,
    /// Edits that were rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Edits in pairs that were tried after its end.
    pub pairs: u64,
    /// How it ended; `null` while it goes on.
    pub end: Option<WfEnd>,
    /// Whether its winner passes.
    pub passed: bool,
    /// The winner; `null` while it goes on, or where none was judged.
    pub winner: Option<Digest>,
    /// Worth of the first program, in millionths; `null` until what is right is opened.
    pub worth_before_micro: Option<i64>,
    /// Worth of the winner, in millionths; `null` until what is right is opened.
    pub worth_after_micro: Option<i64>,
    /// What it spent.
    pub spent: WfUsage,
}

/// One of all runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairListed {
    /// The run.
    pub run: RunId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The family of its tasks.
    pub family: String,
    /// Candidates that it knows.
    pub candidates: u64,
    /// Calls that it spent.
    pub calls: u64,
    /// What is due, in words.
    pub due: String,
    /// How it ended; `null` while it goes on.
    pub end: Option<WfEnd>,
}

/// Every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairList {
    /// By name.
    pub runs: Vec<RepairListed>,
}

/// A run as it would be opened.
pub fn planned(said: &WfRunStarted, experiment: &ExperimentId) -> View {
    let terms = &said.terms;
    let facts = RepairPlanned {
        run: said.run.clone(),
        experiment: experiment.clone(),
        program: said.program_digest,
        context: said.context_digest,
        items: said.items.len() as u64,
        executions: terms.reruns.value() + 1,
        calls_max: terms.budget.calls.value(),
        tokens_max: terms.budget.tokens.value(),
        usd_micro_max: terms.budget.usd_micro.value(),
        turns_max: terms.iterations.value(),
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("program", facts.program.to_string()),
        ("items", facts.items.to_string()),
        ("executions of each", facts.executions.to_string()),
        ("turns", format!("at most {}", facts.turns_max)),
        ("calls", format!("at most {}", facts.calls_max)),
        ("tokens", format!("at most {}", facts.tokens_max)),
        (
            "dollars",
            format!("at most {} millionths", facts.usd_micro_max),
        ),
    ]);
    view.sentence("Nothing is on record yet.");
    view
}

/// The step that an edit is about.
fn step_of(of: &WfCandidate) -> Option<String> {
    let edit: serde_json::Value = serde_json::from_str(of.edit.as_ref()?.as_str()).ok()?;
    let args = edit.get("args")?;
    let step = args.get("step").or_else(|| args.get("after"))?;
    Some(step.as_str()?.to_owned())
}

/// Rules that a candidate breaks on some item.
pub(super) fn broken(of: &WfCandidate) -> Vec<String> {
    let flags = of.feedback.iter().flat_map(|feedback| &feedback.flags);
    let broken = flags.filter(|flag| flag.kept.as_str().contains('0'));
    broken.map(|flag| flag.id.as_str().to_owned()).collect()
}

pub(super) fn candidate(id: Digest, of: &WfCandidate) -> RepairCandidate {
    RepairCandidate {
        candidate: id,
        parent: of.parent,
        operator: of.operator,
        step: step_of(of),
        turn: of.iteration,
        score_micro: of.scored.as_ref().and_then(|said| said.score_micro),
        passes: of.scored.as_ref().map(|said| said.passes),
        broken: broken(of),
        crashed: of.feedback.as_ref().map_or(0, |said| said.crashed.value()),
        worth_micro: of.utilities.as_deref().and_then(truth::mean),
        steps_touched: of.locality.steps_touched.value(),
        ast_nodes: of.locality.ast_nodes.value(),
        calls: of.cost().calls.value(),
    }
}

/// Millionths as a decimal.
pub(super) fn decimal(millionths: i64) -> String {
    format!("{:.3}", millionths as f64 / 1e6)
}

/// A run in facts.
pub(super) fn facts(run: &WfRun) -> RepairRunShown {
    let said = &run.said;
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    for of in &run.rejected {
        *rejected.entry(of.reason.as_str().to_owned()).or_default() += 1;
    }
    let all = run.order.iter();
    let all = all.filter_map(|id| Some(candidate(*id, run.candidate(id)?)));
    let worth = |id: &Digest| truth::mean(run.candidate(id)?.utilities.as_ref()?);
    let winner = run.end.as_ref().and_then(|end| end.winner);
    RepairRunShown {
        run: said.run.clone(),
        experiment: run.experiment.clone(),
        part: said.part,
        family: measures::family(run),
        items: said.items.len() as u64,
        executor: said.executor_model.as_str().to_owned(),
        optimizer: said.optimizer_model.as_str().to_owned(),
        due: run.due().to_string(),
        turns: run.turns.len() as u64,
        turns_max: said.terms.iterations.value(),
        candidates: all.collect(),
        rejected,
        pairs: run.pairs.len() as u64,
        end: run.end.as_ref().map(|end| end.reason),
        passed: run.end.as_ref().is_some_and(|end| end.passed),
        winner,
        worth_before_micro: worth(&said.program_digest),
        worth_after_micro: winner.as_ref().and_then(worth),
        spent: run.spent,
    }
}

/// Candidates as a tree: each below the one that it was made of.
fn tree(facts: &RepairRunShown) -> Vec<String> {
    fn below(facts: &RepairRunShown, of: Option<Digest>, depth: usize, out: &mut Vec<String>) {
        for one in facts.candidates.iter().filter(|one| one.parent == of) {
            let made = one.operator.map_or("begins", WfOperator::as_str);
            let step = one.step.as_deref().unwrap_or_default();
            let score = one
                .score_micro
                .map_or_else(|| "no score".to_owned(), |score| decimal(score.value()));
            let worth = one
                .worth_micro
                .map_or_else(String::new, |worth| format!("  worth {}", decimal(worth)));
            let mark = match (facts.winner == Some(one.candidate), one.passes) {
                (true, Some(true)) => "  winner, passes",
                (true, _) => "  winner",
                (false, Some(true)) => "  passes",
                _ => "",
            };
            out.push(format!(
                "{}{}  {made} {step}  {score}{worth}{mark}",
                "  ".repeat(depth),
                one.candidate.short()
            ));
            below(facts, Some(one.candidate), depth + 1, out);
        }
    }
    let mut out = Vec::new();
    below(facts, None, 0, &mut out);
    out
}

/// Candidates as a drawing: an arrow leads from each to what was made of it.
fn drawing(facts: &RepairRunShown) -> StepsDrawing {
    let boxes = facts.candidates.iter().map(|of| StepBox {
        label: of.candidate.short().to_string(),
        kind: of.operator.map_or("begins", WfOperator::as_str).to_owned(),
        note: match (of.score_micro, of.passes) {
            (Some(score), Some(true)) => format!("{}, passes", decimal(score.value())),
            (Some(score), _) => decimal(score.value()),
            (None, _) => "no score".to_owned(),
        },
    });
    let place = |id: Digest| facts.candidates.iter().position(|of| of.candidate == id);
    let arrows = facts.candidates.iter().enumerate().filter_map(|(to, of)| {
        Some(StepArrow {
            from: place(of.parent?)?,
            to,
            is_again: false,
        })
    });
    StepsDrawing {
        title: format!("Candidates of {}", facts.run),
        boxes: boxes.collect(),
        arrows: arrows.collect(),
    }
}

fn answer(facts: &RepairRunShown) -> String {
    let run = &facts.run;
    let worth = facts.worth_before_micro.zip(facts.worth_after_micro);
    let worth = worth.map_or_else(String::new, |(before, after)| {
        format!(
            " By what is right, it is worth {} of 1; the first program {}.",
            decimal(after),
            decimal(before)
        )
    });
    match facts.end {
        None => format!("{run} goes on: {} is due.", facts.due),
        Some(_) if facts.passed => {
            format!("{run} ended: its winner keeps every hard rule and passes.{worth}")
        }
        Some(reason) => format!("{run} ended by {reason}: no candidate passes.{worth}"),
    }
}

/// A run.
pub fn run(of: &WfRun) -> View {
    let facts = facts(of);
    let mut view = View::of(&facts);
    view.answer(answer(&facts));
    view.pairs([
        ("experiment", facts.experiment.to_string()),
        (
            "tasks",
            format!("{} items of {}", facts.items, facts.family),
        ),
        ("executor", facts.executor.clone()),
        ("optimizer", facts.optimizer.clone()),
        ("turns", format!("{} of {}", facts.turns, facts.turns_max)),
        (
            "spent",
            format!(
                "{} calls, {} tokens",
                facts.spent.calls.value(),
                facts.spent.tokens_in.value() + facts.spent.tokens_out.value()
            ),
        ),
    ]);
    view.gap();
    view.chart(tree(&facts), Some(drawing(&facts).svg()));
    if !facts.rejected.is_empty() {
        let words = facts
            .rejected
            .iter()
            .map(|(why, count)| format!("{count} {why}"));
        let words: Vec<_> = words.collect();
        view.gap();
        view.line(format!("edits that were rejected: {}", words.join(", ")));
    }
    if facts.pairs > 0 {
        view.line(format!("edits in pairs: {}", facts.pairs));
    }
    let name = shell::word(&facts.run);
    if facts.end.is_none() {
        return view.with_next(format!("clover repair run {name}"));
    }
    let shown = if facts.winner.is_some() {
        "winner"
    } else {
        "first"
    };
    view = view.with_next(format!("clover repair show {name} --candidate {shown}"));
    if of.unworthed().is_empty() {
        return view;
    }
    view.with_next(format!("clover repair score {name}"))
}

/// Every run.
pub fn list(state: &State) -> View {
    let runs = state
        .fold::<WfRuns>()
        .by_id
        .values()
        .map(|run| RepairListed {
            run: run.said.run.clone(),
            experiment: run.experiment.clone(),
            family: measures::family(run),
            candidates: run.candidates.len() as u64,
            calls: run.spent.calls.value(),
            due: run.due().to_string(),
            end: run.end.as_ref().map(|end| end.reason),
        });
    let facts = RepairList {
        runs: runs.collect(),
    };
    let mut view = View::of(&facts);
    if facts.runs.is_empty() {
        view.sentence("No repair was opened yet.");
        return view.with_next("clover repair open --help");
    }
    let rows = facts.runs.iter().map(|of| {
        vec![
            of.run.to_string(),
            of.family.clone(),
            of.candidates.to_string(),
            of.calls.to_string(),
            of.end
                .map_or_else(|| of.due.clone(), |end| format!("ended by {end}")),
        ]
    });
    view.table(&["run", "tasks", "candidates", "calls", "due"], rows);
    view.with_next("clover repair show RUN")
}
