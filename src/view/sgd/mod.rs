//! Runs that lower the loss of a judge's prompt: how one stands, its curves, what was rejected, and every run.

pub mod planned;
pub mod promotion;
pub mod prompts;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::RunId;
use crate::event::payload::sgd::SgdLoss;
use crate::event::payload::sgd::SgdSplit;
use crate::event::payload::sgd_steps::SgdEnd;
use crate::event::payload::sgd_steps::SgdMeasured;
use crate::event::payload::sgd_steps::SgdTrigger;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::sgd::SgdRun;
use crate::projection::sgd::SgdRuns;
use crate::report::spark;
use crate::session::sgd::promote;
use crate::session::sgd::promote::PromotionDue;
use crate::session::sgd::running::SgdPause;
use crate::view::View;
use crate::view::synth_asked;
use crate::view::synth_asked::SynthCalls;
use crate::workflow::sgd::verdict;

/// Rows of a part, how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdCounts {
    /// Nobody reads them before a gate.
    pub confirm: u64,
    /// Read once, at the end.
    pub test: u64,
    /// Gradients come from them.
    pub train: u64,
    /// Checkpoints are chosen on them.
    pub val: u64,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdStepShown {
    /// The step, from 0.
    pub step: u64,
    /// The learning rate, in millionths.
    pub lr_micro: Micro,
    /// What the patch changes; `null` where none was applied.
    pub measured: Option<SgdMeasured>,
    /// The section that it edits; `null` where none was applied.
    pub section: Option<String>,
    /// Proposals that were rejected.
    pub rejected: u64,
    /// Loss of the batch before it.
    pub train: SgdLoss,
    /// Loss of val after it.
    pub val: SgdLoss,
    /// Whether the prompt went back after it.
    pub reverted: bool,
    /// Of the gradient, in a few words.
    pub summary: String,
    /// The prompt after it.
    pub prompt_digest: Digest,
}

/// What each section's edits did to the loss of val.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SectionBlame {
    /// The section.
    pub section: String,
    /// Steps that edited it.
    pub steps: u64,
    /// Sum of the changes of the loss of val, negative where it fell.
    pub change: Finite,
}

/// How often a rule rejected a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleCount {
    /// The rule.
    pub rule: String,
    /// Proposals that it rejected.
    pub proposals: u64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdRunShown {
    /// The run.
    pub run: RunId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// What writes gradients and patches.
    pub agents: String,
    /// Calls of the model that writes them; `null` where none behind HTTP does.
    pub asked: Option<SynthCalls>,
    /// Its rows.
    pub rows: SgdCounts,
    /// What is due, in words; `null` after the end.
    pub due: Option<String>,
    /// Most steps.
    pub steps_max: u64,
    /// Loss of train under prompt 0; `null` before it was computed.
    pub base: Option<SgdLoss>,
    /// Loss of val under prompt 0; `null` before it was computed.
    pub val: Option<SgdLoss>,
    /// Its steps.
    pub steps: Vec<SgdStepShown>,
    /// Place of the best prompt: 0 is prompt 0, and step t stands at t + 1.
    pub best: u64,
    /// Rejections by rule.
    pub rejected: Vec<RuleCount>,
    /// What each section's edits did.
    pub blame: Vec<SectionBlame>,
    /// Why it looks for its end; empty before.
    pub triggers: Vec<SgdTrigger>,
    /// The checkpoint; `null` before it was chosen.
    pub checkpoint: Option<Digest>,
    /// Loss of test under prompt 0; `null` before test was read.
    pub test_base: Option<SgdLoss>,
    /// Loss of test under the checkpoint; `null` before test was read.
    pub test_chosen: Option<SgdLoss>,
    /// How it ended; `null` while it is open.
    pub end: Option<SgdEnd>,
}

/// A run among others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdListed {
    /// The run.
    pub run: RunId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// The judge.
    pub judge: JudgeId,
    /// Steps that it took.
    pub steps: u64,
    /// Most steps.
    pub steps_max: u64,
    /// Lowest loss of val; `null` before it was computed.
    pub val_best: Option<Finite>,
    /// What is due, in words; `null` after the end.
    pub due: Option<String>,
    /// How it ended; `null` while it is open.
    pub end: Option<SgdEnd>,
}

/// Every run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdList {
    /// By name.
    pub runs: Vec<SgdListed>,
}

/// The prompt of a run at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdPromptShown {
    /// The run.
    pub run: RunId,
    /// The place: 0 is prompt 0, and step t stands at t + 1.
    pub place: u64,
    /// Its digest.
    pub prompt_digest: Digest,
    /// What the judge is told.
    pub text: String,
}

/// Rows that were written for trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SgdSample {
    /// The file.
    pub file: String,
    /// How many rows.
    pub rows: u64,
}

/// Rows that were written for trials.
pub fn sampled(file: &str, rows: u64) -> View {
    let facts = SgdSample {
        file: file.to_owned(),
        rows,
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("file", facts.file.clone()),
        ("rows", facts.rows.to_string()),
    ]);
    view.with_next(format!(
        "clover import cje {} --labels",
        shell::word(&facts.file)
    ))
}

fn counts(of: impl Fn(SgdSplit) -> u64) -> SgdCounts {
    SgdCounts {
        confirm: of(SgdSplit::Confirm),
        test: of(SgdSplit::Test),
        train: of(SgdSplit::Train),
        val: of(SgdSplit::Val),
    }
}

fn in_words(of: SgdCounts) -> String {
    let SgdCounts {
        confirm,
        test,
        train,
        val,
    } = of;
    format!("{train} train, {val} val, {test} test, {confirm} confirm")
}

/// Another run of an experiment whose scores of test stand: no run after it may read test.
fn other_reader<'s>(
    state: &'s State,
    (experiment, run): (&ExperimentId, &RunId),
) -> Option<&'s RunId> {
    let read = state.fold::<SgdRuns>().tested_in(experiment);
    read.map(|of| &of.said.run).filter(|other| *other != run)
}

/// Says before any score is spent that test of a run can no longer be read.
fn spent(view: &mut View, experiment: &ExperimentId, other: &RunId) {
    view.sentence(format!(
        "Run {other} has read test of {experiment}, the same rows: this run cannot read it, and its checkpoint cannot be promoted."
    ));
    view.sentence(
        "Import rows that no run has read into another experiment, and open the run there.",
    );
}

pub(in crate::view) fn facts(state: &State, run: &SgdRun) -> SgdRunShown {
    let said = &run.said;
    let mut rules: BTreeMap<String, u64> = BTreeMap::new();
    let mut blame: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    let mut steps = Vec::new();
    let mut before = run.val_loss.map(|of| of.loss.value());
    for step in &run.steps {
        for rejected in &step.rejected {
            for violation in &rejected.violations {
                *rules.entry(violation.rule.as_str().to_owned()).or_default() += 1;
            }
        }
        let Some(committed) = &step.committed else {
            continue;
        };
        let section = verdict::section_of(step);
        let after = committed.val.loss.value();
        if let Some((section, before)) = section.as_ref().zip(before) {
            let of = blame.entry(section.clone()).or_default();
            *of = (of.0 + 1, of.1 + after - before);
        }
        before = match &step.reverted {
            Some(reverted) => Some(reverted.best_loss.value()),
            None => Some(after),
        };
        steps.push(SgdStepShown {
            step: committed.step.value(),
            lr_micro: committed.lr_micro,
            measured: committed.measured,
            section,
            rejected: step.rejected.len() as u64,
            train: committed.train,
            val: committed.val,
            reverted: step.reverted.is_some(),
            summary: committed.summary.as_str().to_owned(),
            prompt_digest: committed.new_digest,
        });
    }
    let stop = run.stop.as_ref();
    SgdRunShown {
        run: said.run.clone(),
        experiment: run.experiment.clone(),
        judge: said.judge.clone(),
        agents: said.model.as_str().to_owned(),
        asked: synth_asked::calls(state, &said.run).filter(|_| said.asked.is_some()),
        rows: counts(|split| said.splits.of(split).count.value()),
        due: run.due().map(|due| due.to_string()),
        steps_max: said.terms.steps.value(),
        base: run.base_loss,
        val: run.val_loss,
        steps,
        best: run.best(),
        rejected: rules
            .into_iter()
            .map(|(rule, proposals)| RuleCount { rule, proposals })
            .collect(),
        blame: blame
            .into_iter()
            .map(|(section, (steps, change))| SectionBlame {
                section,
                steps,
                change: Finite::new(change).unwrap_or_default(),
            })
            .collect(),
        triggers: stop.map_or_else(Vec::new, |of| of.triggers.clone()),
        checkpoint: run.checkpoint.as_ref().map(|of| of.prompt_digest),
        test_base: run.test_read.as_ref().map(|of| of.base),
        test_chosen: run.test_read.as_ref().map(|of| of.chosen),
        end: run.end,
    }
}

/// Whether the checkpoint is prompt 0: there is nothing to promote.
fn is_unchanged(run: &SgdRun) -> bool {
    let chosen = run.checkpoint.as_ref();
    chosen.is_some_and(|of| of.prompt_digest == run.said.prompt_digest)
}

/// How many answers of the judge could not be read, where any could not: they stand in every loss.
fn missed(facts: &SgdRunShown) -> Option<String> {
    let steps = facts.steps.iter().flat_map(|step| [step.train, step.val]);
    let others = [facts.base, facts.val, facts.test_base, facts.test_chosen];
    let all = steps.chain(others.into_iter().flatten());
    let most = all.map(|of| of.failures.value()).fold(0.0, f64::max);
    (most > 0.0).then(|| {
        format!(
            "Up to {:.1} % of the answers of a part could not be read, and count against its prompt: look at the judge before test is read.",
            100.0 * most
        )
    })
}

/// A curve as one line, with its ends.
fn curve(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match (values.first(), values.last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} {first:.3} to {last:.3}",
                spark::line(values, (least, most))
            )
        }
        _ => "none yet".to_owned(),
    }
}

fn next(state: &State, facts: &SgdRunShown, run: &SgdRun, is_spent: bool) -> Vec<String> {
    let name = shell::word(&facts.run);
    if facts.end.is_some() {
        let show = format!("clover sgd show {name} --prompt {}", facts.best);
        let due = promote::due(state, run);
        let is_open = due.is_ok_and(|due| !matches!(due, PromotionDue::Promotion(..)));
        let promote = is_open.then(|| format!("clover sgd promote {name}"));
        return [Some(show), promote].into_iter().flatten().collect();
    }
    if run.checkpoint.is_some() {
        let verb = if is_spent || is_unchanged(run) {
            "stop"
        } else {
            "test"
        };
        return vec![format!("clover sgd {verb} {name}")];
    }
    if crate::session::sgd::running::waiting(run).is_some() {
        return vec![format!("clover sgd approve {name}")];
    }
    vec![format!("clover sgd run {name}")]
}

/// One run: curves, steps, sections and rejections.
pub fn run(state: &State, run: &SgdRun) -> View {
    let facts = facts(state, run);
    let other = other_reader(state, (&facts.experiment, &facts.run));
    let other = other.filter(|_| facts.end.is_none());
    let mut view = View::of(&facts);
    curves(&mut view, &facts);
    tables(&mut view, &facts);
    if let (Some(base), Some(chosen)) = (facts.test_base, facts.test_chosen) {
        view.sentence(format!(
            "On test, read once in this experiment, the loss is {:.4} under prompt 0 and {:.4} under the checkpoint.",
            base.loss.value(),
            chosen.loss.value()
        ));
    }
    if let Some(calls) = &facts.asked {
        view.pairs(synth_asked::pairs(calls));
    }
    if let Some(missed) = missed(&facts) {
        view.sentence(missed);
    }
    if facts.checkpoint.is_some() {
        view.sentence("Numbers of val chose the checkpoint: they are exploratory.");
    } else if run.end.is_none() {
        view.sentence("Numbers of val choose the checkpoint: they are exploratory.");
    }
    if let Some(other) = other {
        spent(&mut view, &facts.experiment, other);
    }
    view.next = next(state, &facts, run, other.is_some());
    view
}

/// What a run is, where it stands, and its curves over steps.
fn curves(view: &mut View, facts: &SgdRunShown) {
    let val = facts.val.iter().chain(facts.steps.iter().map(|of| &of.val));
    let val: Vec<SgdLoss> = val.copied().collect();
    let series = |of: fn(&SgdLoss) -> Option<f64>| -> String {
        let values: Vec<f64> = val.iter().filter_map(of).collect();
        curve(&values)
    };
    let train: Vec<f64> = facts.steps.iter().map(|of| of.train.loss.value()).collect();
    let rates = facts
        .steps
        .iter()
        .map(|of| of.lr_micro.value() as f64 / 1e6);
    let steps = facts.steps.iter().map(|of| {
        let effective = of.measured.map_or(0, |of| of.effective_micro.value());
        effective as f64 / 1e6
    });
    view.pairs([
        ("run", facts.run.to_string()),
        ("judge", facts.judge.to_string()),
        ("agents", facts.agents.clone()),
        ("rows", in_words(facts.rows)),
        (
            "steps",
            format!("{} of {}", facts.steps.len(), facts.steps_max),
        ),
        (
            "due",
            facts
                .due
                .clone()
                .unwrap_or_else(|| "nothing: it ended".to_owned()),
        ),
        ("loss of val", series(|of| Some(of.loss.value()))),
        ("  distance", series(|of| Some(of.abs.value()))),
        ("  ranking", series(|of| of.rank.map(Finite::value))),
        ("  contraction", series(|of| Some(of.contraction.value()))),
        ("loss of batches", curve(&train)),
        ("tau-b of val", series(|of| of.tau_b.map(Finite::value))),
        ("entropy of val", series(|of| Some(of.entropy.value()))),
        ("variance of repeats", series(|of| Some(of.selfvar.value()))),
        ("learning rate", curve(&rates.collect::<Vec<_>>())),
        ("effective step", curve(&steps.collect::<Vec<_>>())),
    ]);
}

/// Its steps, the sections that they changed, and why proposals were rejected.
fn tables(view: &mut View, facts: &SgdRunShown) {
    if !facts.steps.is_empty() {
        let rows = facts.steps.iter().map(|of| {
            let chars = of
                .measured
                .map_or_else(String::new, |of| of.chars.to_string());
            let mark = if of.reverted { "taken back" } else { "" };
            vec![
                of.step.to_string(),
                format!("{:.3}", of.lr_micro.value() as f64 / 1e6),
                of.section.clone().unwrap_or_else(|| "no change".to_owned()),
                chars,
                of.rejected.to_string(),
                format!("{:.4}", of.train.loss.value()),
                format!("{:.4}", of.val.loss.value()),
                mark.to_owned(),
            ]
        });
        let head = [
            "step", "rate", "section", "chars", "rejected", "train", "val", "",
        ];
        view.table(&head, rows);
    }
    if !facts.blame.is_empty() {
        let rows = facts.blame.iter().map(|of| {
            let change = format!("{:+.4}", of.change.value());
            vec![of.section.clone(), of.steps.to_string(), change]
        });
        view.table(&["section", "steps", "change of val"], rows);
    }
    if !facts.rejected.is_empty() {
        let rows = facts.rejected.iter();
        let rows = rows.map(|of| vec![of.rule.clone(), of.proposals.to_string()]);
        view.table(&["rejected by", "proposals"], rows);
    }
}

/// A run that went on.
pub fn ran(state: &State, of: &SgdRun, pause: &SgdPause) -> View {
    let mut view = run(state, of);
    let is_spent = other_reader(state, (&of.experiment, &of.said.run)).is_some();
    match pause {
        SgdPause::Ask(stop) => synth_asked::stopped(&mut view, stop),
        SgdPause::AtTest if is_spent => view.sentence("The checkpoint is chosen."),
        SgdPause::AtTest => view.sentence("The checkpoint is chosen; test can be read, once."),
        SgdPause::Cut => view.sentence("It was cut; the same command goes on where it stopped."),
        SgdPause::Ended => view.sentence("It had ended before."),
        SgdPause::Steps => view.sentence("As many steps were taken as were asked for."),
        SgdPause::Waits => {
            view.sentence("A proposal raises a sentence to always, never or only: a person approves or refuses it.");
            if let Some(standing) = crate::session::sgd::running::waiting(of) {
                proposal(&mut view, standing.patch.as_str());
            }
        }
    }
    view
}

/// The diff of a proposal alone.
pub fn diff_of(patch: &str) -> String {
    let members: serde_json::Value = serde_json::from_str(patch).unwrap_or_default();
    let diff = members["patch"]["diff"].as_str();
    diff.unwrap_or_default().to_owned()
}

/// The diff of a proposal, and why it is proposed; whoever approves reads it first.
pub fn proposal(view: &mut View, patch: &str) {
    let members: serde_json::Value = serde_json::from_str(patch).unwrap_or_default();
    let text = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_owned();
    view.gap();
    view.sentence(format!(
        "Why it is proposed: {}",
        text(&members["rationale"])
    ));
    view.source(diff_of(patch));
}

/// The prompt of a run at a place.
pub fn prompt(of: &SgdRun, place: u64, digest: Digest, text: String) -> View {
    let facts = SgdPromptShown {
        run: of.said.run.clone(),
        place,
        prompt_digest: digest,
        text,
    };
    let mut view = View::of(&facts);
    view.pairs([
        ("run", facts.run.to_string()),
        ("place", facts.place.to_string()),
        ("digest", facts.prompt_digest.to_hex()),
    ]);
    view.source(facts.text.clone());
    view
}

/// Every run.
pub fn list(state: &State) -> View {
    let runs = state.fold::<SgdRuns>().by_id.values().map(|run| SgdListed {
        run: run.said.run.clone(),
        experiment: run.experiment.clone(),
        judge: run.said.judge.clone(),
        steps: run.taken(),
        steps_max: run.said.terms.steps.value(),
        val_best: run.val_at(run.best()).map(|of| of.loss),
        due: run.due().map(|due| due.to_string()),
        end: run.end,
    });
    let facts = SgdList {
        runs: runs.collect(),
    };
    let mut view = View::of(&facts);
    if facts.runs.is_empty() {
        view.sentence("No run was opened yet.");
        return view.with_next("clover sgd open --help");
    }
    let rows = facts.runs.iter().map(|of| {
        let val = of
            .val_best
            .map_or_else(String::new, |of| format!("{:.4}", of.value()));
        vec![
            of.run.to_string(),
            of.judge.to_string(),
            format!("{} of {}", of.steps, of.steps_max),
            val,
            of.due.clone().unwrap_or_else(|| "ended".to_owned()),
        ]
    });
    view.table(&["run", "judge", "steps", "best val", "due"], rows);
    view.with_next("clover sgd show RUN")
}
