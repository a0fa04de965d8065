//! `clover campaign`: iterations of one experiment together, and whether another is worth opening.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::ui;
use crate::event::id::ExperimentId;
use crate::event::payload::Verdict;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::budgets::Budgets;
use crate::projection::budgets::Purpose;
use crate::projection::iterations::Iterations;
use crate::projection::iterations::campaign;
use crate::projection::iterations::campaign::Campaign;
use crate::projection::iterations::campaign::PATIENCE;
use crate::projection::iterations::campaign::Turn;
use crate::projection::manifests::Manifests;
use crate::report::shown;
use crate::view::View;
use crate::view::word;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// What each iteration found, peeks left, and whether two quiet ones in a row say stop
    #[command(after_help = "Example:\n  clover campaign status arena")]
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// The experiment; else the one whose iteration opened last
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Status(args) => status(ctx, args),
    }
}

fn named(state: &State, name: Option<&str>) -> Result<ExperimentId, CliError> {
    let all = &state.fold::<Iterations>().by_id;
    let found = match name {
        Some(name) => {
            let id = record::experiment_id(name)?;
            all.values().find(|it| it.experiment == id)
        }
        None => all.values().max_by_key(|it| it.opened_seq),
    };
    let found = found.map(|it| it.experiment.clone());
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no iteration of experiment {name}"),
            None => "no iteration was opened yet".to_owned(),
        };
        CliError::not_found(message, "clover iterate list")
    })
}

/// Peeks left now in the account of the newest iteration.
struct Peeks {
    account: String,
    amount: u64,
    left: u64,
    quarter: String,
}

fn peeks(state: &State, experiment: &ExperimentId) -> Option<Peeks> {
    let iterations = state.fold::<Iterations>().by_id.values();
    let of = iterations.filter(|it| it.experiment == *experiment);
    let newest = of.max_by_key(|it| it.opened_seq)?;
    let (_, record) = state.fold::<Manifests>().of_digest(newest.digest)?;
    let plan = record.version(newest.digest)?.manifest.iteration.as_ref()?;
    let name = &plan.design.as_ref()?.peek_account;
    let account = state.fold::<Budgets>().accounts.get(name)?;
    let now = state.keyring.recorded_at?;
    (account.purpose() == Purpose::Peeks).then(|| Peeks {
        account: name.to_string(),
        amount: account.amount,
        left: account.left(now),
        quarter: now.quarter().to_string(),
    })
}

/// What to do next, in words and as a command.
fn advice(campaign: &Campaign, peeks: Option<&Peeks>) -> (String, String) {
    if let Some(open) = campaign.open() {
        return (
            format!("{} is open since seq {}", open.iteration, open.opened_seq),
            format!("clover report iteration {}", shell::word(&open.iteration)),
        );
    }
    if campaign.has_stopped() {
        let words = format!(
            "stop: {PATIENCE} iterations in a row found no significant slice, every shrunk interval covers 0, and \
             transport passes"
        );
        return (words, "clover report iteration -o report.html".to_owned());
    }
    if peeks.is_some_and(|peeks| peeks.left == 0) {
        let words = "no peek is left this quarter: an iteration opens in the next".to_owned();
        return (words, "clover budget list".to_owned());
    }
    let number = campaign.turns.len() + 1;
    let quiet = campaign.quiet_in_a_row();
    let words =
        format!("go on: iteration {number} is next ({quiet} of {PATIENCE} quiet ones in a row)");
    (words, "clover iterate open ID --manifest ID".to_owned())
}

fn status(ctx: &mut Ctx<'_>, args: &StatusArgs) -> Result<View, CliError> {
    let as_of = ctx.as_of;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let experiment = named(state, args.experiment.as_deref())?;
    let through = as_of.unwrap_or(ledger.size().saturating_sub(1));
    let campaign = campaign::read(&ledger, &experiment, through)?;
    let peeks = peeks(state, &experiment);
    let mut text = format!("experiment {}\n\n", ui::escape(experiment.as_str()));
    text.push_str(&table(&campaign));
    text.push('\n');
    if let Some(peeks) = &peeks {
        text.push_str(&format!(
            "peeks  {} of {} left in {} ({})\n",
            peeks.left,
            peeks.amount,
            ui::escape(&peeks.account),
            peeks.quarter
        ));
    }
    for (seq, words) in &campaign.deviations {
        text.push_str(&ui::wrapped(&ui::escape(&format!(
            "deviation at seq {seq}: {words}"
        ))));
    }
    let (words, next) = advice(&campaign, peeks.as_ref());
    text.push_str(&ui::wrapped(&words));
    let data = json!({
        "experiment": experiment.as_str(),
        "iterations": campaign.turns.iter().map(turn_json).collect::<Vec<_>>(),
        "patience": PATIENCE, "quiet_in_a_row": campaign.quiet_in_a_row(), "stop": campaign.has_stopped(),
        "open": campaign.open().map(|turn| turn.iteration.as_str()),
        "peeks": peeks.as_ref().map(|of| json!({
            "account": of.account, "amount": of.amount, "left": of.left, "quarter": of.quarter,
        })),
        "deviations": campaign.deviations.iter().map(|(seq, words)| json!({"seq": seq, "what": words}))
            .collect::<Vec<_>>(),
        "advice": words,
    });
    Ok(View::untyped(text, data).with_next(next))
}

fn table(campaign: &Campaign) -> String {
    let rows = campaign.turns.iter().map(|turn| {
        let audited = |pick: fn(&campaign::Audited) -> usize| {
            let found = turn.audited.as_ref();
            found.map_or("-".to_owned(), |of| format!("{}/{}", pick(of), of.slices))
        };
        vec![
            turn.iteration.to_string(),
            turn.closed
                .map_or("open".to_owned(), |(outcome, _)| word(&outcome)),
            audited(|of| of.significant),
            audited(|of| of.off_zero),
            shown::word(turn.transport).to_owned(),
            turn.accepted.to_string(),
            if turn.is_quiet() { "yes" } else { "no" }.to_owned(),
        ]
    });
    let head = [
        "iteration",
        "outcome",
        "significant",
        "off zero",
        "transport",
        "accepted",
        "quiet",
    ];
    ui::table(&head, rows.collect())
}

fn turn_json(turn: &Turn) -> Value {
    let audited = turn.audited.map(|of| {
        json!({"seq": of.seq, "slices": of.slices, "significant": of.significant, "off_zero": of.off_zero})
    });
    let transport: Verdict = turn.transport;
    json!({
        "iteration": turn.iteration.as_str(), "opened_seq": turn.opened_seq,
        "outcome": turn.closed.map(|(outcome, _)| word(&outcome)),
        "closed_seq": turn.closed.map(|(_, seq)| seq), "audited": audited, "transport": transport,
        "accepted": turn.accepted, "quiet": turn.is_quiet(),
    })
}
