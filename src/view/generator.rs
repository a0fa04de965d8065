//! Policies that are tuned under a frozen judge: what a run was told, what fresh labels say of it, and every run.

use serde::Serialize;

use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::id::PolicyId;
use crate::event::id::RunId;
use crate::event::payload::Verdict;
use crate::event::payload::generator::ArmsCompared;
use crate::event::payload::generator::GeneratorRunOpened;
use crate::event::payload::generator::GeneratorValidated;
use crate::event::payload::generator::GeneratorVerdicts;
use crate::event::payload::predicate::Gaming;
use crate::event::payload::predicate::TestedEnvironment;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::State;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::generators::GeneratorRun;
use crate::projection::generators::Generators;
use crate::projection::generators::RunState;
use crate::report::shown;
use crate::session::deploy::generator::Objective;
use crate::session::deploy::generator::RunRollback;
use crate::view::Exit;
use crate::view::View;
use crate::view::appended;
use crate::view::values;

/// What one output is surely worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OutputBound {
    /// What was answered.
    pub item: ItemId,
    /// Which draw.
    pub draw: Count,
    /// Who answered.
    pub policy: PolicyId,
    /// Lower bound of what it is worth, in millionths.
    pub lower_micro: Micro,
}

/// What a step of a run was told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepAnswered {
    /// A bound for each output, in the order of the log.
    pub bounds: Vec<OutputBound>,
    /// Mean of the bounds, on the scale of labels from 0 to 1.
    pub lower_mean: Finite,
    /// Which step, from 1.
    pub step: Count,
    /// Steps that the run may take.
    pub steps: u64,
}

/// What came of a run on labels that nothing was fitted on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Validation {
    /// The run.
    pub run: RunId,
    /// The design of the labels.
    pub design: DesignId,
    /// Digest of the frozen calibrator.
    pub frozen: Digest,
    /// Steps that the run took.
    pub steps: Count,
    /// Rows that were read.
    pub rows: Count,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Fresh labels of both policies, in label units from 0 to 1.
    pub compared: ArmsCompared,
    /// Mean lower bound on labelled outputs of the new policy less that of the old, from -1 to 1.
    pub lcb_gain: Finite,
    /// Residuals of the frozen judge, by environment.
    pub environments: Vec<TestedEnvironment>,
    /// The battery on outputs of the new policy; `null` where the judge cannot be asked anew.
    pub battery: Option<Gaming>,
    /// What each check says.
    pub verdicts: GeneratorVerdicts,
    /// What all of it comes to.
    pub verdict: Verdict,
}

/// A run that was validated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunValidated {
    /// What was found.
    pub validation: Validation,
}

/// How a run was validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValidatedAt {
    /// The entry that says it.
    pub seq: u64,
    /// What it came to.
    pub verdict: Verdict,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRow {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its name.
    pub run: RunId,
    /// How it stands: `open`, `rollback due`, `rolled back` or `validated`.
    pub state: &'static str,
    /// The entry that opened it.
    pub seq: u64,
    /// The policy that is tuned.
    pub new: PolicyId,
    /// The policy that it is to be better than.
    pub old: PolicyId,
    /// Steps that it may take.
    pub steps: u64,
    /// Steps that it took.
    pub used: u64,
    /// Digest of the frozen calibrator.
    pub frozen: Digest,
    /// The `deployment.activated` whose judge is frozen.
    pub deployment: EventId,
    /// Its validation; `null` before it.
    pub validated: Option<ValidatedAt>,
    /// The entry that rolled it back; `null` where none did.
    pub rolled_back: Option<u64>,
}

/// Runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunList {
    /// By experiment, oldest first.
    pub runs: Vec<RunRow>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunShown {
    /// How it stands.
    pub run: RunRow,
    /// Hash of the rubric that is frozen with the judge.
    pub rubric_hash: Digest,
    /// What is at stake, in millionths of 1.
    pub stakes_micro: Micro,
    /// What came of it; `null` before.
    pub validation: Option<Validation>,
}

/// Adds to the view of a step what it was told.
pub fn objective(view: View, done: &Objective) -> View {
    let (run, said) = (&done.run, &done.said);
    let bounds = done.bounds.iter().map(|of| OutputBound {
        item: of.item.clone(),
        draw: of.draw,
        policy: of.policy.clone(),
        lower_micro: of.lower_micro,
    });
    let more = StepAnswered {
        bounds: bounds.collect(),
        lower_mean: said.lower_mean,
        step: said.step,
        steps: run.steps,
    };
    let mut view = appended::and(view, &more);
    let rows = more.bounds.iter().map(|of| {
        vec![
            of.item.to_string(),
            of.draw.to_string(),
            of.lower_micro.to_string(),
        ]
    });
    view.table(&["item", "draw", "lower bound"], rows);
    view.pairs([
        ("mean", format!("{:+.4}", more.lower_mean.value())),
        ("step", format!("{} of {}", more.step, more.steps)),
    ]);
    view.with_next(format!("clover generator show {}", shell::word(&run.run)))
}

fn validation(said: &GeneratorValidated) -> Validation {
    Validation {
        run: said.run.clone(),
        design: said.design.clone(),
        frozen: said.frozen,
        steps: said.steps,
        rows: said.inputs.rows,
        through_seq: said.inputs.through_seq,
        compared: said.compared,
        lcb_gain: said.lcb_gain,
        environments: said.transport.environments.clone(),
        battery: said.battery.clone(),
        verdicts: said.verdicts,
        verdict: said.verdict,
    }
}

/// Adds to the view of a validation, or of its dry run, what was found.
pub fn validated(view: View, said: &GeneratorValidated) -> View {
    let validation = validation(said);
    let mut view = appended::and(view, &RunValidated { validation });
    found(&mut view, said);
    view.exit = match said.verdict {
        Verdict::Pass => Exit::Done,
        Verdict::Fail => Exit::Fail,
        Verdict::Inconclusive | Verdict::NotChecked => Exit::Inconclusive,
    };
    let run = shell::word(&said.run);
    view.with_next(match said.verdict {
        Verdict::Pass => format!("clover generator show {run}"),
        _ => format!("clover generator rollback {run} --reason WHY"),
    })
}

fn number(value: Option<Finite>) -> String {
    value.map_or("-".to_owned(), |value| format!("{:+.4}", value.value()))
}

/// Adds what a validation found.
fn found(view: &mut View, said: &GeneratorValidated) {
    let compared = &said.compared;
    let labels = format!(
        "{} new, {} old, {} prompts shared",
        compared.new.rows, compared.old.rows, compared.shared
    );
    view.pairs([
        ("labels", labels),
        ("gain on labels", number(Some(compared.difference))),
        ("lower bound", number(compared.lower)),
        ("gain of the bound", number(Some(said.lcb_gain))),
    ]);
    for of in &said.transport.environments {
        let p = of.p.map_or("-".to_owned(), |p| values::p(p.value()));
        view.line(format!(
            "{:<18}mean residual {} on {} labels, p {p}",
            of.environment.as_str(),
            number(of.mean),
            of.rows
        ));
    }
    for (name, verdict) in said.verdicts.each() {
        view.line(format!("{name:<18}{}", shown::word(verdict)));
    }
    view.line(format!("{:<18}{}", "verdict", shown::word(said.verdict)));
}

/// Adds to the view of a rollback what becomes of the outputs.
pub fn rolled_back(mut view: View, done: &RunRollback) -> View {
    view.line(format!(
        "outputs of {} stay on record: labelled under a new design for calibration and put into a split, their residuals \
         are what the next iteration's cards show",
        done.new
    ));
    view.with_next(format!(
        "clover label design new ID --experiment {} --purpose calibrate --probability 1",
        shell::word(&done.experiment)
    ))
}

fn row(experiment: &ExperimentId, run: &GeneratorRun) -> RunRow {
    let validated = run.validated.map(|of| ValidatedAt {
        seq: of.seq,
        verdict: of.verdict,
    });
    RunRow {
        experiment: experiment.clone(),
        run: run.run.clone(),
        state: run.state().as_str(),
        seq: run.seq,
        new: run.new.clone(),
        old: run.old.clone(),
        steps: run.steps,
        used: run.used,
        frozen: run.frozen,
        deployment: run.deployment,
        validated,
        rolled_back: run.rolled_back,
    }
}

/// One run: what was frozen, and what came of it.
pub fn show(
    (experiment, run): (&ExperimentId, &GeneratorRun),
    opened: &GeneratorRunOpened,
    said: Option<&GeneratorValidated>,
) -> View {
    let facts = RunShown {
        run: row(experiment, run),
        rubric_hash: opened.rubric_hash,
        stakes_micro: opened.stakes_micro,
        validation: said.map(validation),
    };
    let mut view = View::of(&facts);
    view.pairs([
        (
            "run",
            format!("{} of {experiment}, seq {}", run.run, run.seq),
        ),
        ("state", facts.run.state.to_owned()),
        ("policies", format!("{} against {}", run.new, run.old)),
        ("frozen rubric", opened.rubric_hash.to_hex()),
        ("frozen f", opened.frozen.to_hex()),
        ("deployment", run.deployment.to_string()),
        ("steps", format!("{} of {}", run.used, run.steps)),
        ("stakes", opened.stakes_micro.to_string()),
    ]);
    if let Some(said) = said {
        found(&mut view, said);
    }
    let name = shell::word(&run.run);
    view.with_next(match run.state() {
        RunState::Open => format!("clover generator objective {name}"),
        RunState::Due => format!("clover generator rollback {name} --reason WHY"),
        RunState::RolledBack | RunState::Validated => "clover generator list".to_owned(),
    })
}

/// Every run, of one experiment where it is named.
pub fn list(state: &State, wanted: Option<&ExperimentId>) -> View {
    let all = state.fold::<Generators>().by_experiment.iter();
    let all = all.filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id));
    let runs = all.flat_map(|(id, runs)| runs.iter().map(move |run| row(id, run)));
    let facts = RunList {
        runs: runs.collect(),
    };
    let rows = facts.runs.iter().map(|of| {
        vec![
            of.run.to_string(),
            of.experiment.to_string(),
            of.state.to_owned(),
            format!("{} against {}", of.new, of.old),
            format!("{} of {}", of.used, of.steps),
            format!("seq {}", of.seq),
        ]
    });
    let head = ["run", "experiment", "state", "policies", "steps", "since"];
    let mut view = View::of(&facts);
    view.table(&head, rows);
    view
}
