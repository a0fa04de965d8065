//! What stands in a ledger, and how strictly roles are kept apart.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::payload::custody::Separation;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::projection::asked::AskedRun;
use crate::projection::asked::AskedRuns;
use crate::projection::assumptions::Standing;
use crate::projection::runs::ModelRun;
use crate::projection::runs::ModelRuns;
use crate::projection::synths::SynthRun;
use crate::projection::synths::Synths;
use crate::session::expiry::DatedThing;
use crate::session::expiry::ExpiryList;
use crate::view::View;
use crate::view::access;
use crate::view::access::TaintRow;
use crate::view::budget;
use crate::view::budget::AccountRow;
use crate::view::experiment;
use crate::view::experiment::ExperimentRow;
use crate::view::judge_ask::dollars;
use crate::view::text::thousands;
use crate::workflow::judge::command;

/// Keys by whether they may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyCounts {
    /// Keys that may sign.
    pub live: u64,
    /// Keys that were retired or compromised.
    pub ended: u64,
}

/// Rows of a table of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableRows {
    /// The table.
    pub table: String,
    /// How many.
    pub rows: u64,
}

/// An assumption that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailingRow {
    /// Its code, such as `J1`.
    pub code: String,
    /// The experiment in which it fails; `null` where it fails for all.
    pub experiment: Option<ExperimentId>,
}

/// What stands in a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// The origin of the log.
    pub origin: String,
    /// Entries.
    pub size: u64,
    /// The root of their tree, in base64.
    pub root: String,
    /// When the newest entry was recorded.
    pub head: String,
    /// `strict` or `solo`; `null` before the first entry.
    pub separation: Option<String>,
    /// The verifier key of the log.
    pub log_key: Option<String>,
    /// Its keys.
    pub keys: KeyCounts,
    /// Entries under the pin that is kept beside the ledger; `null` without one.
    pub pin_size: Option<u64>,
    /// Rows of the database; empty as of an earlier entry.
    pub rows: Vec<TableRows>,
    /// Experiments.
    pub experiments: Vec<ExperimentRow>,
    /// Accounts.
    pub budgets: Vec<AccountRow>,
    /// Runs of models that were opened and not closed.
    pub open_runs: Vec<OpenRunRow>,
    /// Runs of optimizers that were opened and not ended: nothing is sealed in their iterations.
    pub open_synths: Vec<OpenSynthRow>,
    /// Assumptions that fail.
    pub failing: Vec<FailingRow>,
    /// Experiments that a read has tainted.
    pub tainted: Vec<TaintRow>,
    /// What is past its date, the earliest first.
    pub overdue: Vec<OverdueRow>,
}

/// A run of a model that was opened and not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenRunRow {
    /// Its name.
    pub run: String,
    /// The judge.
    pub judge: String,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// How many asks it has.
    pub asks: u64,
    /// How many came to nothing yet.
    pub left: u64,
    /// What it holds, in millionths of a dollar.
    pub held: u64,
    /// What it was charged, in millionths of a dollar.
    pub charged: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
}

impl OpenRunRow {
    fn of(run: &ModelRun) -> Self {
        Self {
            run: run.said.run.to_string(),
            judge: run.said.judge.to_string(),
            experiment: run.experiment.clone(),
            asks: run.said.asks.value(),
            left: run.left(),
            held: run.hold.as_ref().map_or(0, |of| of.amount),
            charged: run.settled,
            opened_seq: run.seq,
        }
    }
}

/// A run of an optimizer that was opened and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenSynthRow {
    /// Its name.
    pub run: String,
    /// Its iteration.
    pub iteration: IterationId,
    /// What writes candidates.
    pub optimizer: String,
    /// Rounds that were answered.
    pub rounds: u64,
    /// The entry that opened it.
    pub opened_seq: u64,
    /// What it holds of an account, in millionths of a dollar.
    pub held_usd_micro: u64,
    /// What it was charged, in millionths of a dollar.
    pub settled_usd_micro: u64,
}

impl OpenSynthRow {
    fn of(run: &SynthRun, asked: Option<&AskedRun>) -> Self {
        let hold = asked.and_then(|of| of.hold.as_ref());
        Self {
            held_usd_micro: hold.map_or(0, |hold| hold.amount),
            settled_usd_micro: asked.map_or(0, |of| of.settled),
            run: run.said.run.to_string(),
            iteration: run.said.iteration.clone(),
            optimizer: run.said.model.as_str().to_owned(),
            rounds: run.returned,
            opened_seq: run.seq,
        }
    }
}

/// Something that is past its date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverdueRow {
    /// Its date.
    pub at: Timestamp,
    /// What it is, such as `waiver` or `sealed labels`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its experiment; `null` where it is of the whole ledger.
    pub experiment: Option<ExperimentId>,
    /// The entry that says so.
    pub seq: Option<u64>,
}

impl OverdueRow {
    fn of(thing: &DatedThing) -> Self {
        Self {
            at: thing.at,
            kind: thing.kind.as_str(),
            name: thing.name.clone(),
            experiment: thing.experiment.clone(),
            seq: thing.events.first().copied(),
        }
    }
}

/// What only the caller knows: files, and the ledger beside its state.
#[derive(Debug)]
pub struct Surroundings {
    /// The database.
    pub database: String,
    /// The root of the tree, in base64.
    pub root: String,
    /// When the newest entry was recorded, to the second.
    pub head: String,
    /// The pin in words.
    pub pin: String,
    /// Entries under it.
    pub pin_size: Option<u64>,
    /// Rows of the database.
    pub rows: Vec<TableRows>,
    /// What has a date.
    pub dates: ExpiryList,
}

/// What stands in a ledger; `now` says which quarter counts.
pub fn status(state: &State, beside: Surroundings, failing: &[Standing], now: Timestamp) -> View {
    let keyring = &state.keyring;
    let live = keyring.live().count() as u64;
    let facts = Status {
        origin: keyring.origin.clone(),
        size: state.size,
        root: beside.root,
        head: beside.head,
        separation: keyring
            .separation()
            .map(|separation| separation.to_string()),
        log_key: keyring.log_key().map(ToString::to_string),
        keys: KeyCounts {
            live,
            ended: keyring.keys.len() as u64 - live,
        },
        pin_size: beside.pin_size,
        rows: beside.rows,
        experiments: experiment::rows(state),
        budgets: budget::accounts(state, now),
        open_runs: {
            let runs = state.fold::<ModelRuns>().by_id.values();
            let open = runs.filter(|of| of.end.is_none());
            open.map(OpenRunRow::of).collect()
        },
        open_synths: {
            let runs = state.fold::<Synths>().by_id.values();
            let open = runs.filter(|of| of.end.is_none());
            let asked = &state.fold::<AskedRuns>().by_id;
            open.map(|of| OpenSynthRow::of(of, asked.get(&of.said.run)))
                .collect()
        },
        failing: {
            let failing = failing.iter().map(|of| FailingRow {
                code: of.code.to_string(),
                experiment: of.experiment.clone(),
            });
            failing.collect()
        },
        tainted: access::taints(state),
        overdue: beside.dates.overdue(now).map(OverdueRow::of).collect(),
    };
    let mut view = View::of(&facts);
    let KeyCounts { live, ended } = facts.keys;
    let mut pairs = vec![
        ("ledger", beside.database),
        ("origin", facts.origin.clone()),
        ("entries", thousands(facts.size)),
        ("root", facts.root.clone()),
        ("head", facts.head.clone()),
        ("roles", separation(state)),
        ("keys", format!("{live} live, {ended} ended")),
        ("pin", beside.pin),
    ];
    if !facts.rows.is_empty() {
        let rows = facts.rows.iter();
        let rows = rows.map(|of| format!("{} {}", of.table, thousands(of.rows)));
        pairs.push(("rows", rows.collect::<Vec<_>>().join(" · ")));
    }
    pairs.extend(doubts(&facts, state));
    view.pairs(pairs);
    if !facts.experiments.is_empty() {
        view.gap();
        experiment::table(&mut view, &facts.experiments);
    }
    if !facts.budgets.is_empty() {
        view.gap();
        budget::table(&mut view, &facts.budgets);
    }
    view.checkpoint = Some((facts.size, facts.root));
    view
}

/// What stands against what is recorded: assumptions that fail, tainted reads, dates that have passed.
fn doubts(facts: &Status, state: &State) -> Vec<(&'static str, String)> {
    let failing = facts.failing.iter().map(|of| match &of.experiment {
        Some(experiment) => format!("{} fail in {experiment}", of.code),
        None => format!("{} fail", of.code),
    });
    let failing: Vec<_> = failing.collect();
    let overdue = facts.overdue.iter();
    let overdue = overdue.map(|of| {
        let day: String = of.at.to_string().chars().take("2026-11-20".len()).collect();
        format!("{} {} since {day}", of.kind, of.name)
    });
    let runs = facts.open_runs.iter();
    let runs = runs.map(|of| {
        let (left, asks) = (thousands(of.left), thousands(of.asks));
        format!(
            "{} of {} is open, {left} of {asks} asks left",
            of.run, of.judge
        )
    });
    let synths = facts.open_synths.iter();
    let synths = synths.map(|of| {
        let optimizer = command::name(&of.optimizer);
        let held = if of.held_usd_micro > 0 {
            format!(" and holds {}", dollars(of.held_usd_micro))
        } else {
            String::new()
        };
        format!(
            "{} of {optimizer} is open in {}{held}",
            of.run, of.iteration
        )
    });
    let lines = [
        ("runs", runs.collect()),
        ("optimizers", synths.collect()),
        ("assumed", failing),
        ("access", access::taint_lines(state)),
        ("overdue", overdue.collect()),
    ];
    let found = lines.into_iter().filter(|(_, lines)| !lines.is_empty());
    found
        .map(|(name, lines): (_, Vec<String>)| (name, lines.join(" · ")))
        .collect()
}

/// The policy in words.
fn separation(state: &State) -> String {
    let loosened = if state.keyring.was_loosened() {
        "; loosened from strict before"
    } else {
        ""
    };
    match state.keyring.separation() {
        Some(Separation::Strict) => "strict: conflicting roles are refused, per holder".to_owned(),
        Some(Separation::Solo) => {
            format!("solo: one person may hold all roles, claims are self-governed{loosened}")
        }
        None => "unknown".to_owned(),
    }
}
