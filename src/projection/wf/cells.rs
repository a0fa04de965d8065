//! Plans of runs in sixteen cells against the record: their runs are opened in one order, before any of them is executed, on
//! the same tasks in every cell; a plan is concluded over all of them.

use std::collections::BTreeSet;

use clover_event::id::MetaPlanId;
use clover_event::id::RunId;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta_plan::MetaClaim;
use clover_event::payload::meta_plan::MetaConcluded;
use clover_event::payload::meta_plan::MetaPlanned;
use clover_event::payload::meta_plan::PLAN_TASKS_MAX;
use clover_event::payload::repair::WfCell;
use clover_event::payload::repair::WfEdits;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfRunStarted;
use clover_event::payload::repair::WfStrength;
use clover_ground::digest::Digest;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::ensure;

use super::CrossedPlan;
use super::MetaUpdate;
use super::WfRun;
use super::WfRuns;
use super::learnt::check_useful;

/// Cells of a plan.
pub const CELLS: u64 = 16;
/// Bit of a cell in which edits may change structure.
const STRUCTURE: u64 = 1;
/// Bit of a cell with the strong executor.
const EXECUTOR: u64 = 2;
/// Bit of a cell with the strong optimizer.
const OPTIMIZER: u64 = 4;
/// Bit of a cell that begins from the update.
const OUTER: u64 = 8;

/// Where a run stands in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPlace {
    /// The cell, 0 to 15: the sum of 1 for edits of structure, 2 for the strong executor, 4 for the strong optimizer and 8 for the
    /// update.
    pub cell: u64,
    /// The task, from 0.
    pub task: u64,
}

fn strength(is_strong: bool) -> WfStrength {
    if is_strong {
        WfStrength::Strong
    } else {
        WfStrength::Weak
    }
}

impl PlanPlace {
    /// The place of the run that is opened after so many others of its plan.
    pub fn after(number: u64) -> Self {
        Self {
            cell: number % CELLS,
            task: number / CELLS,
        }
    }

    /// How many runs of the plan are opened before it.
    fn number(self) -> u64 {
        self.task * CELLS + self.cell
    }

    /// The name of its run; `None` where the name of the plan is too long for one.
    pub fn run(self, plan: &MetaPlanId) -> Option<RunId> {
        let name = format!("{plan}-t{}-c{}", self.task + 1, self.cell + 1);
        name.parse().ok()
    }

    /// What a run of its cell says of itself.
    pub fn wanted(self) -> WfCell {
        let edits = if self.cell & STRUCTURE > 0 {
            WfEdits::Structure
        } else {
            WfEdits::Prompt
        };
        WfCell {
            edits,
            executor: strength(self.cell & EXECUTOR > 0),
            optimizer: strength(self.cell & OPTIMIZER > 0),
            outer: self.cell & OUTER > 0,
        }
    }

    /// The cell of the first task that has this one's value of a factor, and is least in all others.
    fn of_factor(self, bit: u64) -> Self {
        Self {
            cell: self.cell & bit,
            task: 0,
        }
    }

    /// The first cell of its task.
    fn first_of_task(self) -> Self {
        Self {
            cell: 0,
            task: self.task,
        }
    }

    /// The plan and the place that a name says; `None` where it says none.
    fn said(run: &RunId) -> Option<(MetaPlanId, Self)> {
        let (rest, cell) = run.as_str().rsplit_once("-c")?;
        let (plan, task) = rest.rsplit_once("-t")?;
        let number = |text: &str, most: u64| {
            let found = text.parse::<u64>().ok()?;
            let is_it = (1..=most).contains(&found) && found.to_string() == text;
            is_it.then(|| found - 1)
        };
        let place = Self {
            cell: number(cell, CELLS)?,
            task: number(task, PLAN_TASKS_MAX)?,
        };
        Some((plan.parse().ok()?, place))
    }
}

impl CrossedPlan {
    /// Its runs, in the order in which they are opened.
    pub fn runs(&self) -> impl Iterator<Item = (PlanPlace, RunId)> + '_ {
        let places = (0..self.said.tasks.value() * CELLS).map(PlanPlace::after);
        places.filter_map(|place| Some((place, place.run(&self.said.plan)?)))
    }
}

impl WfRuns {
    /// The plan that a run is of, with its place.
    pub fn plan_of(&self, run: &RunId) -> Option<(&CrossedPlan, PlanPlace)> {
        let (name, place) = PlanPlace::said(run)?;
        let plan = self.plans.get(&name)?;
        (place.task < plan.said.tasks.value()).then_some((plan, place))
    }

    /// The update that a run of a plan begins from or stands against, and whether it begins from it.
    pub(super) fn crossed_arm(&self, run: &RunId) -> Option<(&MetaUpdate, bool)> {
        let (plan, place) = self.plan_of(run)?;
        Some((self.updates.get(&plan.said.update)?, place.wanted().outer))
    }
}

/// A plan names its update, its tasks and its claims before any of its runs is opened.
pub(super) fn check_planned(
    runs: &WfRuns,
    event: &ProposedEvent<'_>,
    said: &MetaPlanned,
) -> RuleAnswer {
    let experiment = event.event.header.experiment.as_ref();
    let experiment = experiment.required("an experiment")?;
    let alpha = said.alpha_micro.value();
    let expected = "a level above 0 and at most 0.05";
    ensure!((1..=50_000).contains(&alpha), expected, alpha.to_string());
    check_useful(said.useful_micro)?;
    let tasks = said.tasks.value();
    let expected = format!("1 to {PLAN_TASKS_MAX} tasks");
    let is_some = (1..=PLAN_TASKS_MAX).contains(&tasks);
    ensure!(is_some, expected, tasks.to_string());
    let is_whole = said.claims.as_slice() == MetaClaim::ALL;
    ensure!(is_whole, "every claim, each once, in order", "others");
    let update = runs.updates.get(&said.update);
    let update = update.required(&format!("meta.updated of {}", said.update))?;
    let expected = format!("the experiment of {}", said.update);
    let is_own = update.experiment == *experiment;
    ensure!(is_own, expected, experiment.to_string());
    let target = update.said.target;
    let expected = "an update of verifier, program or library: cells choose the meta prompt";
    ensure!(target != MetaTarget::Meta, expected, target.to_string());
    let mut known = runs.updates.values();
    let parent = update.said.parent_digest;
    let before = known.find(|of| of.said.new_digest == parent);
    let expected = "an update of what no update brought";
    let found = before.map(|of| of.said.update.to_string());
    ensure!(found.is_none(), expected, found.unwrap_or_default());
    let last = PlanPlace::after(tasks * CELLS - 1).run(&said.plan);
    let expected = "a shorter name of a plan";
    ensure!(last.is_some(), expected, said.plan.to_string());
    let pairs = runs.updates.values().flat_map(|of| &of.said.pairs);
    let pairs = pairs.flat_map(|of| [&of.new, &of.old]);
    let mut names = runs.by_id.keys().chain(pairs);
    let taken = names.find(|name| {
        PlanPlace::said(name).is_some_and(|(plan, of)| plan == said.plan && of.task < tasks)
    });
    let expected = "runs that are opened after it";
    let found = taken.map(ToString::to_string);
    ensure!(found.is_none(), expected, found.unwrap_or_default());
    Ok(())
}

/// A run of a plan is that of its place, and differs from the runs before it in nothing but what the cells cross.
pub(super) fn check_started(
    runs: &WfRuns,
    (plan, place): (&CrossedPlan, PlanPlace),
    said: &WfRunStarted,
) -> RuleAnswer {
    let opened = |place: PlanPlace| runs.by_id.get(&place.run(&plan.said.plan)?);
    let wanted = place.wanted();
    let words = |of: &WfCell| {
        format!(
            "edits {}, executor {}, optimizer {}, outer {}",
            of.edits, of.executor, of.optimizer, of.outer
        )
    };
    ensure!(said.cell == wanted, words(&wanted), words(&said.cell));
    let Some(before) = place.number().checked_sub(1) else {
        return Ok(());
    };
    let before = PlanPlace::after(before);
    let expected = format!(
        "run {} of {} opened before",
        before.number() + 1,
        plan.said.plan
    );
    opened(before).required(&expected)?;
    check_alike(runs, (plan, place), said)?;
    if place.cell > 0 {
        let first = opened(place.first_of_task());
        let expected = format!("the items of cell 1 of task {}", place.task + 1);
        let is_same = first.is_some_and(|of| of.said.items == said.items);
        ensure!(is_same, expected, "others");
        return Ok(());
    }
    let own: BTreeSet<Digest> = said.items.iter().map(|of| of.input).collect();
    for task in 0..place.task {
        let Some(other) = opened(PlanPlace { cell: 0, task }) else {
            continue;
        };
        let is_shared = other.said.items.iter().any(|of| own.contains(&of.input));
        let expected = "items that no other task of the plan has";
        ensure!(!is_shared, expected, format!("those of {}", other.said.run));
    }
    Ok(())
}

/// What cells do not cross is the same in all runs; what one factor says follows from its value.
fn check_alike(
    runs: &WfRuns,
    (plan, place): (&CrossedPlan, PlanPlace),
    said: &WfRunStarted,
) -> RuleAnswer {
    let update = runs.updates.get(&plan.said.update);
    let update = update.required(&format!("meta.updated of {}", plan.said.update))?;
    let (target, new) = (update.said.target, update.said.new_digest);
    let templates = |of: &WfRunStarted| -> Vec<Digest> {
        let all = of.templates.iter().copied();
        all.filter(|of| target != MetaTarget::Library || *of != new)
            .collect()
    };
    let same = |factor: u64, parts: &dyn Fn(&WfRunStarted) -> Vec<(&'static str, bool)>| {
        let first = place.of_factor(factor);
        if first == place {
            // The first run with a value of a factor is what later ones are held to.
            return Ok(());
        }
        let name = first.run(&plan.said.plan);
        let other = name.and_then(|name| runs.by_id.get(&name));
        let other = other.required("the first runs of the plan")?;
        for (what, is_same) in parts(&other.said) {
            let expected = format!("the {what} of {}", other.said.run);
            ensure!(is_same, expected, "another");
        }
        Ok(())
    };
    same(0, &|of| {
        let verifier = of.verifier_digest == said.verifier_digest;
        let program = of.program_digest == said.program_digest;
        vec![
            ("terms", of.terms == said.terms),
            ("context", of.context_digest == said.context_digest),
            ("executor", of.executor == said.executor),
            ("optimizer", of.optimizer == said.optimizer),
            ("verifier", target == MetaTarget::Verifier || verifier),
            ("program", target == MetaTarget::Program || program),
            ("templates", templates(of) == templates(said)),
        ]
    })?;
    same(STRUCTURE, &|of| {
        vec![("meta prompt", of.meta_digest == said.meta_digest)]
    })?;
    same(EXECUTOR, &|of| {
        let is_same = of.executor_model == said.executor_model;
        vec![("model that answers", is_same)]
    })?;
    same(OPTIMIZER, &|of| {
        let is_same = of.optimizer_model == said.optimizer_model;
        vec![("model that proposes", is_same)]
    })
}

/// No run of a plan is executed before all of them are opened: whoever holds the key would choose the items of those that are
/// left.
pub(super) fn check_begun(runs: &WfRuns, run: &WfRun) -> RuleAnswer {
    let Some((plan, _)) = runs.plan_of(&run.said.run) else {
        return Ok(());
    };
    let of = &plan.said;
    let last = PlanPlace::after(of.tasks.value() * CELLS - 1).run(&of.plan);
    let is_open = last
        .as_ref()
        .is_some_and(|name| runs.by_id.contains_key(name));
    let expected = format!("all runs of {} opened before one is executed", of.plan);
    let found = last.map_or_else(|| "none".to_owned(), |name| format!("{name} is not opened"));
    ensure!(is_open, expected, found);
    Ok(())
}

/// A conclusion reads every run of its plan, once their truth is known: the same in all cells of a task, and none cut short.
pub(super) fn check_concluded(runs: &WfRuns, said: &MetaConcluded) -> RuleAnswer {
    let plan = runs.plans.get(&said.plan);
    let plan = plan.required(&format!("meta.planned of {}", said.plan))?;
    let claims: Vec<MetaClaim> = said.claims.iter().map(|of| of.claim).collect();
    let is_whole = claims.as_slice() == MetaClaim::ALL;
    ensure!(is_whole, "every claim, each once, in order", "others");
    let mut first: Option<&WfRun> = None;
    for (place, name) in plan.runs() {
        let run = runs.by_id.get(&name).filter(|run| run.is_known());
        let run = run.required(&format!("{name} with its truth known"))?;
        let end = run.end.as_ref();
        let is_whole = end.is_some_and(|end| end.reason != WfEnd::Person);
        let expected = format!("{name} ended by its record");
        ensure!(is_whole, expected, "a person's word");
        let right = |run: &WfRun| run.truth.as_ref().map(|of| of.truth.blake3);
        let of_task = first.filter(|_| place.cell > 0).unwrap_or(run);
        let expected = format!("the same truth in {} and {name}", of_task.said.run);
        ensure!(right(of_task) == right(run), expected, "another");
        first = Some(of_task);
    }
    Ok(())
}
