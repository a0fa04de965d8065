//! Repairs of the same tasks in sixteen cells, as one registered plan: it is on record with its claims before any of its runs is
//! opened, all runs are opened before one is executed, and its claims are closed together. The same call goes on after a stop.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::MetaPlanId;
use clover_event::id::RunId;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta_plan::MetaClaim;
use clover_event::payload::meta_plan::MetaPlanned;
use clover_event::payload::meta_plan::PLAN_TASKS_MAX;
use clover_event::payload::repair::WfEdits;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::edit::Operator;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::RequiredFact as _;
use clover_projection::wf::CrossedPlan;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_projection::wf::cells::CELLS;
use clover_projection::wf::cells::PlanPlace;
use clover_projection::wf::count;
use clover_workflow::wf::cells;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Ports;
use crate::wf::RepairError;
use crate::wf::many;
use crate::wf::meta_plan;
use crate::wf::meta_plan::MetaRequest;
use crate::wf::meta_plan::update_of;
use crate::wf::meta_plan::wrong;
use crate::wf::need;
use crate::wf::open::RepairRequest;
use crate::wf::running::RepairPause;

/// Every kind that a plan says by itself, and every kind of the runs that it opens.
const KINDS: [Kind; 6] = [
    Kind::MetaPlanned,
    Kind::MetaConcluded,
    Kind::WfRunStarted,
    Kind::WfCandidateAdded,
    Kind::WfFeedbackGiven,
    Kind::UtilityRecorded,
];

/// What a plan is asked for: its update and tasks, as of a trial of as many pairs.
#[derive(Clone, Debug)]
pub struct CrossedRequest {
    /// Name of the plan.
    pub plan: MetaPlanId,
    /// The update, the task set and the levels; `pairs` is the count of tasks, and the margin is not used.
    pub trial: MetaRequest,
}

/// What a plan would cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossedPrice {
    /// Runs that it opens.
    pub runs: u64,
    /// Most calls, by the budgets of its runs; the last call of a run may pass its budget of tokens or dollars.
    pub calls_most: u64,
    /// Runs of the context that ended, of which the numbers below are means.
    pub known: u64,
    /// Calls, where its runs spend as those did.
    pub calls: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub usd_micro: u64,
}

/// A plan on the table.
pub struct CrossedBench {
    /// The ledger's folder.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// What it is asked for.
    pub request: CrossedRequest,
}

impl std::fmt::Debug for CrossedBench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CrossedBench({})", self.request.plan)
    }
}

/// A plan by its name.
///
/// # Errors
/// [`RepairError::NoPlan`].
pub fn plan_of<'r>(runs: &'r WfRuns, id: &MetaPlanId) -> Result<&'r CrossedPlan, RepairError> {
    let found = runs.plans.get(id);
    found.ok_or_else(|| RepairError::NoPlan(id.clone()))
}

/// What would be registered, and what that would cost.
///
/// # Errors
/// [`RepairError::NoUpdate`]; [`RepairError::Request`] for items, executors and updates that no plan can have.
pub fn planned(
    ledger: &Ledger,
    request: &CrossedRequest,
) -> Result<(MetaPlanned, CrossedPrice), SessionError> {
    let runs = ledger.state().fold::<WfRuns>();
    let trial = &request.trial;
    let update = update_of(runs, &trial.update)?;
    let base = meta_plan::base_of(runs, trial, update)?;
    meta_plan::executor(base)?;
    meta_plan::free_items(runs, trial, &|_| false, (trial.pairs, "tasks"))?;
    let tasks = trial.pairs as u64;
    if tasks > PLAN_TASKS_MAX {
        return Err(wrong("at most 500 tasks", tasks.to_string()).into());
    }
    if update.said.target == MetaTarget::Meta {
        let expected =
            "an update of verifier, program or library: cells choose the meta prompt themselves";
        return Err(wrong(expected, "one of the meta prompt").into());
    }
    let said = MetaPlanned {
        alpha_micro: trial.alpha,
        claims: MetaClaim::ALL.to_vec(),
        plan: request.plan.clone(),
        tasks: count(tasks),
        update: trial.update.clone(),
        useful_micro: trial.useful,
    };
    Ok((said, price(runs, (base, tasks))))
}

fn price(runs: &WfRuns, (base, tasks): (&WfRun, u64)) -> CrossedPrice {
    let all = runs.by_id.values();
    let known: Vec<&WfRun> = all
        .filter(|run| run.end.is_some() && run.said.context_digest == base.said.context_digest)
        .collect();
    let wanted = tasks.saturating_mul(CELLS);
    let mean = |of: &dyn Fn(&WfRun) -> u64| {
        let sum = known.iter().map(|run| of(run)).fold(0, u64::saturating_add);
        let whole = u128::from(sum) * u128::from(wanted) / (known.len() as u128).max(1);
        u64::try_from(whole).unwrap_or(u64::MAX)
    };
    CrossedPrice {
        runs: wanted,
        calls_most: base.said.terms.budget.calls.value().saturating_mul(wanted),
        known: known.len() as u64,
        calls: mean(&|run| run.spent.calls.value()),
        tokens: mean(&|run| run.spent.tokens()),
        usd_micro: mean(&|run| run.spent.usd_micro.value()),
    }
}

/// The meta prompt of a cell: that of the runs before it, where it allows what the cell says, else with prompts alone or the
/// standard operators.
fn meta_of(base: &MetaPrompt, edits: WfEdits) -> MetaPrompt {
    let only = |of: &MetaPrompt| of.operators.iter().all(|one| *one == Operator::EditPrompt);
    let operators = match edits {
        WfEdits::Prompt => vec![Operator::EditPrompt],
        WfEdits::Structure if only(base) => Operator::STANDARD.to_vec(),
        WfEdits::Structure => base.operators.clone(),
    };
    MetaPrompt {
        operators,
        rules: base.rules.clone(),
    }
}

/// The runs of a plan that are not open yet, in their order: all cells of a task have the same items, each task its own.
///
/// # Errors
/// [`RepairError::NoPlan`]; [`RepairError::Request`] where the tasks are not those of the runs that are open.
pub fn arms(ledger: &Ledger, request: &CrossedRequest) -> Result<Vec<RepairRequest>, SessionError> {
    let runs = ledger.state().fold::<WfRuns>();
    let plan = plan_of(runs, &request.plan)?;
    let update = update_of(runs, &plan.said.update)?;
    let trial = &request.trial;
    let base = meta_plan::base_of(runs, trial, update)?;
    let names: Vec<(PlanPlace, RunId)> = plan.runs().collect();
    let mut all = Vec::new();
    if names.iter().all(|(_, name)| runs.by_id.contains_key(name)) {
        return Ok(all);
    }
    let is_own = |id: &RunId| {
        let found = runs.plan_of(id);
        found.is_some_and(|(of, _)| of.said.plan == plan.said.plan)
    };
    let tasks = usize::try_from(plan.said.tasks.value()).unwrap_or(usize::MAX);
    let free = meta_plan::free_items(runs, trial, &is_own, (tasks, "tasks"))?;
    let batches: Vec<&[usize]> = free.chunks(trial.items).collect();
    for (place, name) in &names {
        let at = usize::try_from(place.task).unwrap_or(usize::MAX);
        let places = batches.get(at).required("items of each task");
        let (set, lines) = meta_plan::batch(trial, places.map_err(RepairError::from)?);
        if let Some(open) = runs.by_id.get(name) {
            meta_plan::check_batch(open, &set)?;
            continue;
        }
        let wanted = place.wanted();
        let is_new = (name, wanted.outer);
        let mut cell = meta_plan::arm((base, update), trial, is_new, (set, lines))?;
        cell.meta = meta_of(&cell.meta, wanted.edits);
        cell.cell = wanted;
        all.push(cell);
    }
    Ok(all)
}

impl CrossedBench {
    fn say(&mut self, ports: &mut dyn Ports, said: Payload) -> Result<(), SessionError> {
        let signer = ports.signer(self.ledger.state(), need(said.kind()))?;
        let command = Command::new(said, Some(self.request.trial.experiment.clone()));
        append::append_with(ports, &mut self.ledger, &[command], &signer, &[])?;
        Ok(())
    }

    fn plan(&self) -> Result<&CrossedPlan, RepairError> {
        let runs = self.ledger.state().fold::<WfRuns>();
        plan_of(runs, &self.request.plan)
    }

    /// Refuses other numbers than those that are on record.
    fn check_same(&self) -> Result<(), RepairError> {
        let (said, trial) = (&self.plan()?.said, &self.request.trial);
        let same = [
            ("the update of the plan", said.update == trial.update),
            (
                "the count of tasks of the plan",
                said.tasks.value() == trial.pairs as u64,
            ),
            ("the level of the plan", said.alpha_micro == trial.alpha),
            (
                "the least worth of use of the plan",
                said.useful_micro == trial.useful,
            ),
        ];
        let mut all = same.into_iter();
        all.find(|(_, is_same)| !is_same)
            .map_or(Ok(()), |(expected, _)| Err(wrong(expected, "another")))
    }

    /// Goes on until the plan is concluded: registers it where it is not on record, opens all its runs before any of them is
    /// executed, executes all before any truth is opened, and closes its claims.
    ///
    /// # Errors
    /// [`RepairError`]; no key, before anything is said; what the ledger says. What was said stands, and the same call goes on.
    pub fn go(mut self, ports: &mut dyn Ports) -> Result<(Self, RepairPause), SessionError> {
        let runs = self.ledger.state().fold::<WfRuns>();
        if !runs.plans.contains_key(&self.request.plan) {
            // Everything that the whole plan needs is looked for first.
            ports.check(self.ledger.state(), &KINDS.map(need))?;
            let (said, _) = planned(&self.ledger, &self.request)?;
            self.say(ports, said.into())?;
        }
        self.check_same()?;
        if self.plan()?.concluded.is_some() {
            return Ok((self, RepairPause::Ended));
        }
        let requests = arms(&self.ledger, &self.request)?;
        let names: Vec<RunId> = self.plan()?.runs().map(|(_, name)| name).collect();
        let Self {
            home,
            ledger,
            request,
        } = self;
        let ((home, ledger), pause) =
            many::gone_through(ports, (home, ledger), (&requests, &names))?;
        self = Self {
            home,
            ledger,
            request,
        };
        if pause == RepairPause::Cut {
            return Ok((self, pause));
        }
        let runs = self.ledger.state().fold::<WfRuns>();
        let said = cells::concluded(runs, self.plan()?).map_err(RepairError::from)?;
        self.say(ports, said.into())?;
        Ok((self, RepairPause::Ended))
    }
}
