//! A plan of repairs in sixteen cells: what it predicts, what each cell came to, and which claims hold.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::MetaPlanId;
use crate::event::id::UpdateId;
use crate::event::payload::meta_plan::MetaClaim;
use crate::event::payload::meta_plan::MetaClaimResult;
use crate::event::payload::meta_plan::MetaPlanned;
use crate::event::payload::repair::WfEdits;
use crate::event::payload::repair::WfStrength;
use crate::ground::shell;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::wf::CrossedPlan;
use crate::projection::wf::WfRuns;
use crate::projection::wf::cells::CELLS;
use crate::projection::wf::cells::PlanPlace;
use crate::session::wf::crossed::CrossedPrice;
use crate::stats::concordance::RunMeasure;
use crate::view::View;
use crate::view::repair::decimal;
use crate::workflow::wf::cells;
use crate::workflow::wf::cells::CellWorth;

/// Level of the intervals of means over tasks.
const LEVEL: f64 = 0.95;

/// A mean over tasks with Student's interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaCellMean {
    /// The mean; `null` where no task says anything of it.
    pub mean: Option<Finite>,
    /// Lower end of the interval; `null` below two tasks.
    pub low: Option<Finite>,
    /// Upper end.
    pub high: Option<Finite>,
    /// Tasks that say something of it.
    pub tasks: u64,
}

/// One cell of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaCellShown {
    /// The cell, 1 to 16.
    pub cell: u64,
    /// What an edit may change.
    pub edits: WfEdits,
    /// How capable the executor is.
    pub executor: WfStrength,
    /// How capable the optimizer is.
    pub optimizer: WfStrength,
    /// Whether its runs begin from the update.
    pub outer: bool,
    /// Runs whose truth is known.
    pub runs: u64,
    /// Those whose winner is of use.
    pub of_use: u64,
    /// Whether scores put candidates in the order of their worth.
    pub gamma: MetaCellMean,
    /// Probability that one proposal gains.
    pub kappa: MetaCellMean,
}

/// A claim of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaClaimShown {
    /// The claim.
    pub claim: MetaClaim,
    /// The difference that it says is above 0, over tasks.
    pub difference: MetaCellMean,
    /// Logarithm of the wealth of its gate after the last task; `null` until the plan is concluded.
    pub log_wealth: Option<Finite>,
    /// Logarithm of its e-value, closed with those of the other claims.
    pub log_closed: Option<Finite>,
    /// Whether it holds at the level of the family.
    pub holds: Option<bool>,
}

/// What a plan would cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaPlanPrice {
    /// Most calls, by the budgets of its runs.
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

/// A plan with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaPlanShown {
    /// Its name.
    pub plan: MetaPlanId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// Whether it is on record.
    pub is_recorded: bool,
    /// Whether its claims are closed.
    pub is_concluded: bool,
    /// The update that half of the cells begin from.
    pub update: UpdateId,
    /// Tasks: the unit of every claim.
    pub tasks: u64,
    /// Runs, sixteen a task.
    pub runs: u64,
    /// Runs that are open or ended.
    pub opened: u64,
    /// Runs that ended.
    pub ended: u64,
    /// Runs whose truth is known.
    pub known: u64,
    /// Level of the whole family of claims.
    pub alpha_micro: Micro,
    /// Least worth of a workflow that is of use.
    pub useful_micro: Micro,
    /// What it would cost; `null` once it is on record.
    pub price: Option<MetaPlanPrice>,
    /// The claims, in their order.
    pub claims: Vec<MetaClaimShown>,
    /// The cells, in their order.
    pub cells: Vec<MetaCellShown>,
}

/// One of all plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetaPlanListed {
    /// Its name.
    pub plan: MetaPlanId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The update that half of the cells begin from.
    pub update: UpdateId,
    /// Tasks.
    pub tasks: u64,
    /// Claims that hold; `null` until the plan is concluded.
    pub holds: Option<u64>,
}

fn finite(of: f64) -> Option<Finite> {
    Finite::new(of)
}

fn mean(all: Vec<Option<f64>>) -> MetaCellMean {
    let tasks = all.iter().flatten().count() as u64;
    let found = RunMeasure::over(all, LEVEL).ok();
    let interval = found.as_ref().and_then(|of| of.interval);
    MetaCellMean {
        mean: found.and_then(|of| of.mean).and_then(finite),
        low: interval.and_then(|of| finite(of.low)),
        high: interval.and_then(|of| finite(of.high)),
        tasks,
    }
}

/// What the runs of a cell came to that are known.
fn cell(runs: &WfRuns, plan: &MetaPlanned, number: u64) -> MetaCellShown {
    let useful = plan.useful_micro.value();
    let places = (0..plan.tasks.value()).map(|task| PlanPlace { cell: number, task });
    let known = places.filter_map(|place| {
        let run = runs.by_id.get(&place.run(&plan.plan)?)?;
        cells::worth(run, useful).ok().filter(|_| run.is_known())
    });
    let known: Vec<CellWorth> = known.collect();
    let wanted = PlanPlace {
        cell: number,
        task: 0,
    }
    .wanted();
    MetaCellShown {
        cell: number + 1,
        edits: wanted.edits,
        executor: wanted.executor,
        optimizer: wanted.optimizer,
        outer: wanted.outer,
        runs: known.len() as u64,
        of_use: known.iter().filter(|of| of.succeeds).count() as u64,
        gamma: mean(known.iter().map(|of| of.gamma).collect()),
        kappa: mean(known.iter().map(|of| of.kappa).collect()),
    }
}

fn claim(of: MetaClaim, differences: Vec<f64>, result: Option<&MetaClaimResult>) -> MetaClaimShown {
    MetaClaimShown {
        claim: of,
        difference: mean(differences.into_iter().map(Some).collect()),
        log_wealth: result.map(|of| of.gate.log_wealth),
        log_closed: result.map(|of| of.log_closed),
        holds: result.map(|of| of.holds),
    }
}

/// A plan in facts, before anything became of it.
fn facts(experiment: &ExperimentId, said: &MetaPlanned) -> MetaPlanShown {
    let claims = MetaClaim::ALL.iter();
    MetaPlanShown {
        plan: said.plan.clone(),
        experiment: experiment.clone(),
        is_recorded: false,
        is_concluded: false,
        update: said.update.clone(),
        tasks: said.tasks.value(),
        runs: said.tasks.value() * CELLS,
        opened: 0,
        ended: 0,
        known: 0,
        alpha_micro: said.alpha_micro,
        useful_micro: said.useful_micro,
        price: None,
        claims: claims.map(|of| claim(*of, Vec::new(), None)).collect(),
        cells: Vec::new(),
    }
}

/// A number, or a dash where there is none.
fn shown(of: Option<Finite>) -> String {
    of.map_or_else(|| "–".to_owned(), |of| format!("{:.3}", of.value()))
}

fn words(of: MetaClaim) -> &'static str {
    match of {
        MetaClaim::OuterGamma => "the update raises gamma",
        MetaClaim::OuterKappa => "the update raises kappa",
        MetaClaim::StructureKappa => "structure raises kappa more if weak",
    }
}

fn answer(facts: &MetaPlanShown) -> String {
    let name = &facts.plan;
    let (runs, known) = (facts.runs, facts.known);
    if !facts.is_recorded {
        return format!("{name} would open {runs} runs. Nothing is on record yet.");
    }
    if !facts.is_concluded {
        return format!("{name} is registered: of {runs} runs the truth of {known} is known.");
    }
    let holds = facts.claims.iter().filter(|of| of.holds == Some(true));
    format!(
        "{name} is concluded: {} of {} claims hold together.",
        holds.count(),
        facts.claims.len()
    )
}

fn view(facts: &MetaPlanShown) -> View {
    let mut view = View::of(facts);
    view.answer(answer(facts));
    view.pairs([
        ("experiment", facts.experiment.to_string()),
        ("update", facts.update.to_string()),
        ("tasks", facts.tasks.to_string()),
        (
            "runs",
            format!(
                "{}; opened {}, ended {}, known {}",
                facts.runs, facts.opened, facts.ended, facts.known
            ),
        ),
        ("level of the family", decimal(facts.alpha_micro.value())),
        ("of use from", decimal(facts.useful_micro.value())),
    ]);
    if let Some(price) = &facts.price {
        view.gap();
        view.line(format!(
            "about {} calls, {} tokens and {} dollars, as {} earlier runs; at most {} calls by budget",
            price.calls,
            price.tokens,
            decimal(i64::try_from(price.usd_micro).unwrap_or(i64::MAX)),
            price.known,
            price.calls_most
        ));
    }
    tables(&mut view, facts);
    view
}

/// Claims of a plan, and its cells once the truth of one is known.
fn tables(view: &mut View, facts: &MetaPlanShown) {
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    let rows = facts.claims.iter().map(|of| {
        vec![
            words(of.claim).to_owned(),
            shown(of.difference.mean),
            shown(of.difference.low),
            shown(of.difference.high),
            of.difference.tasks.to_string(),
            shown(of.log_closed),
            of.holds.map_or("open", yes).to_owned(),
        ]
    });
    view.gap();
    view.table(
        &[
            "claim",
            "difference",
            "low",
            "high",
            "tasks",
            "log closed",
            "holds",
        ],
        rows,
    );
    if facts.known == 0 {
        return;
    }
    let rows = facts.cells.iter().map(|of| {
        vec![
            of.cell.to_string(),
            of.edits.to_string(),
            of.executor.to_string(),
            of.optimizer.to_string(),
            yes(of.outer).to_owned(),
            format!("{} of {}", of.of_use, of.runs),
            shown(of.gamma.mean),
            shown(of.kappa.mean),
        ]
    });
    view.gap();
    view.table(
        &[
            "cell",
            "edits",
            "executor",
            "optimizer",
            "update",
            "of use",
            "gamma",
            "kappa",
        ],
        rows,
    );
}

/// A plan that is not on record, with its price.
pub fn planned(experiment: &ExperimentId, said: &MetaPlanned, price: CrossedPrice) -> View {
    let mut facts = facts(experiment, said);
    facts.price = Some(MetaPlanPrice {
        calls_most: price.calls_most,
        known: price.known,
        calls: price.calls,
        tokens: price.tokens,
        usd_micro: price.usd_micro,
    });
    view(&facts)
}

/// A plan.
pub fn plan(runs: &WfRuns, of: &CrossedPlan) -> View {
    let mut facts = facts(&of.experiment, &of.said);
    facts.is_recorded = true;
    facts.is_concluded = of.concluded.is_some();
    for (_, name) in of.runs() {
        let Some(run) = runs.by_id.get(&name) else {
            continue;
        };
        facts.opened += 1;
        facts.ended += u64::from(run.end.is_some());
        facts.known += u64::from(run.is_known());
    }
    facts.cells = (0..CELLS).map(|at| cell(runs, &of.said, at)).collect();
    if let (Some(concluded), Ok(tasks)) = (&of.concluded, cells::worths(runs, of)) {
        let results = concluded.claims.iter();
        let results =
            results.map(|of| claim(of.claim, cells::differences(of.claim, &tasks), Some(of)));
        facts.claims = results.collect();
    }
    let name = shell::word(&facts.plan);
    let update = shell::word(&facts.update);
    let shown = view(&facts);
    if facts.is_concluded {
        return shown.with_next("clover verify --recompute");
    }
    shown.with_next(format!(
        "clover meta experiment {name} --update {update} --tasks FILE"
    ))
}

/// The plans of a list, where there are some.
pub(super) fn list(view: &mut View, plans: &[MetaPlanListed]) {
    if plans.is_empty() {
        return;
    }
    let rows = plans.iter().map(|of| {
        let holds = of.holds;
        vec![
            of.plan.to_string(),
            of.update.to_string(),
            of.tasks.to_string(),
            holds.map_or_else(|| "open".to_owned(), |count| count.to_string()),
        ]
    });
    view.gap();
    view.table(&["plan", "update", "tasks", "claims that hold"], rows);
}

/// Every plan, in the order in which they came.
pub fn listed(runs: &WfRuns) -> Vec<MetaPlanListed> {
    let mut all: Vec<&CrossedPlan> = runs.plans.values().collect();
    all.sort_by_key(|of| of.seq);
    let holds = |of: &CrossedPlan| {
        let claims = &of.concluded.as_ref()?.claims;
        Some(claims.iter().filter(|of| of.holds).count() as u64)
    };
    all.into_iter()
        .map(|of| MetaPlanListed {
            plan: of.said.plan.clone(),
            experiment: of.experiment.clone(),
            update: of.said.update.clone(),
            tasks: of.said.tasks.value(),
            holds: holds(of),
        })
        .collect()
}
