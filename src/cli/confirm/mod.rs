//! `clover confirm`: sealed labels as a whole: what waits, what is late, and opening a design in one charged peek.

mod refusals;

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::label;
use crate::cli::ui;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::splits::Splits;
use crate::session::Home;
use crate::session::confirm as session;
use crate::session::confirm::Acceptance;
use crate::session::confirm::Peek;
use crate::session::confirm::Revealed;
use crate::session::ports::Seat;
use crate::view::View;
use crate::view::budget::accounts;
use crate::view::budget::table;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Sealed labels by design, deadlines, splits and peeks left
    #[command(after_help = "Example:\n  clover confirm status")]
    Status,
    /// Accept, as the custodian, every sealed label of a design
    #[command(after_help = "Example:\n  clover confirm seal probes --experiment arena")]
    Seal(SealArgs),
    /// Charge a peek, then open and reveal every label of a design
    #[command(
        after_help = "Example:\n  clover confirm unseal probes --account confirm-peeks --for 'transport audit' --yes"
    )]
    Unseal(UnsealArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct SealArgs {
    /// The label design
    pub design: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The age identity; default among your keys
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct UnsealArgs {
    #[command(flatten)]
    pub seal: SealArgs,
    /// The account of peeks
    #[arg(long, value_name = "ID", default_value = "confirm-peeks")]
    pub account: String,
    /// What for
    #[arg(long = "for", value_name = "TEXT")]
    pub purpose: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// The command that does it again, where another one asked for it
    #[arg(skip)]
    pub again: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Status => status(ctx),
        Verb::Seal(args) => accept(ctx, &args),
        Verb::Unseal(args) => unseal(ctx, &args),
    }
}

struct Place {
    experiment: ExperimentId,
    design: DesignId,
}

fn place(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &Ledger,
    args: &SealArgs,
) -> Result<Place, CliError> {
    let design = args.design.parse().map_err(|error| {
        let message = format!("design {:?}: {error}", args.design);
        CliError::usage(message, "clover label design list")
    })?;
    let experiment = current::experiment(ctx, home, ledger.state(), args.experiment.as_deref())?;
    Ok(Place { experiment, design })
}

fn accept(ctx: &mut Ctx<'_>, args: &SealArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let Place { experiment, design } = place(ctx, &home, &ledger, args)?;
    let ports = &mut ctx.ports().with_identity(args.identity.as_deref());
    let Acceptance { new, already } = session::accept(ports, &mut ledger, &experiment, &design)?;
    let text = format!("accepted {new} · already {already} · design {design}\n");
    let mut answer = View::untyped(text, json!({"accepted": new, "already": already}));
    answer.verdict = if new == 0 {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}

/// Charges a peek and reveals what waits in a design.
pub(super) fn open(
    ctx: &mut Ctx<'_>,
    home: &Home,
    ledger: &mut Ledger,
    args: &UnsealArgs,
) -> Result<Revealed, CliError> {
    let Place { experiment, design } = place(ctx, home, ledger, &args.seal)?;
    let own = || {
        let purpose = shell::quoted(&args.purpose);
        format!(
            "clover confirm unseal {} --for {purpose}",
            shell::word(&design)
        )
    };
    let again = args.again.clone().unwrap_or_else(own);
    let peek = Peek {
        experiment,
        design,
        account: args.account.clone(),
        purpose: args.purpose.clone(),
        seat: Seat::Runner,
    };
    let ports = ctx.ports().with_identity(args.seal.identity.as_deref());
    let ports = &mut ports.with_consent(args.yes, again);
    Ok(session::open(ports, ledger, &peek, None)?)
}

fn unseal(ctx: &mut Ctx<'_>, args: &UnsealArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let opened = open(ctx, &home, &mut ledger, args)?;
    let (design, already) = (&args.seal.design, opened.already);
    let Some(charge) = opened.charge else {
        let text = format!("every label of {design} is revealed already\n");
        let mut answer = View::untyped(text, json!({"revealed": 0, "already": already}));
        answer.verdict = "already_recorded";
        return Ok(answer);
    };
    let count = opened.labels.len();
    let labels = opened.labels.iter();
    let labels =
        labels.map(|(row, value)| json!({"row": row.as_str(), "value_micro": value.value()}));
    let labels: Vec<Value> = labels.collect();
    let data = json!({
        "charge": charge.to_string(), "revealed": count,
        "already": already, "labels": labels,
    });
    let text = format!("revealed {count} labels of {design} under charge {charge}\n");
    let mut answer = View::untyped(text, data);
    answer.verdict = "appended";
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}

fn status(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = budget::now(ctx, &ledger, state);
    let waiting = session::waiting(&ledger, state.size)?;
    let (mut rows, mut data, mut breaches) = (Vec::new(), Vec::new(), 0);
    for (experiment, name, design) in label::all(state).filter(|(.., design)| design.sealed > 0) {
        let mine = waiting
            .iter()
            .filter(|of| of.experiment == experiment && of.design == name);
        let next = mine.clone().map(|of| of.reveal_by).min();
        let late = mine.filter(|of| of.reveal_by < now).count();
        breaches += late;
        let purpose = design.registered.as_ref().map(|of| of.purpose.as_str());
        let deadline = match (next, late) {
            (None, _) => "all revealed".to_owned(),
            (Some(by), 0) => format!("reveal by {by}"),
            (Some(by), late) => format!("BREACH: {late} not revealed by {by}"),
        };
        rows.push(vec![
            experiment.to_owned(),
            name.to_owned(),
            purpose.unwrap_or("not registered").to_owned(),
            design.sealed.to_string(),
            design.accepted.to_string(),
            design.revealed.to_string(),
            deadline.clone(),
        ]);
        data.push(json!({
            "experiment": experiment, "design": name, "purpose": purpose, "sealed": design.sealed,
            "accepted": design.accepted, "revealed": design.revealed, "late": late,
            "reveal_by": next.map(|by| by.to_string()),
        }));
    }
    let head = [
        "experiment",
        "design",
        "purpose",
        "sealed",
        "accepted",
        "revealed",
        "deadline",
    ];
    let mut text = ui::table(&head, rows);
    let splits = splits(state, &mut text);
    let accounts = accounts(state, now);
    let data = json!({
        "designs": data, "breaches": breaches, "splits": splits, "budgets": accounts,
    });
    let mut answer = View::untyped(text, data);
    if !accounts.is_empty() {
        answer.gap();
        table(&mut answer, &accounts);
    }
    if breaches > 0 {
        answer.verdict = "breach";
    }
    Ok(answer)
}

fn splits(state: &State, text: &mut String) -> Vec<Value> {
    let mut data = Vec::new();
    for (experiment, of) in &state.fold::<Splits>().by_experiment {
        for (split, formed) in &of.formed {
            let [confirm, dev, fit] = formed.counts;
            let gap = formed.gap_seconds.map_or_else(
                || "not_checked: confirm not time-separated, EXPLORATORY".to_owned(),
                |gap| format!("{} h", gap / 3_600),
            );
            let placed = if formed.is_placed {
                ""
            } else {
                " · parts not_checked"
            };
            text.push_str(&format!(
                "split {split} of {experiment}: fit {fit} · dev {dev} · confirm {confirm} · gap {gap}{placed}\n"
            ));
            data.push(json!({
                "experiment": experiment.as_str(), "split": split.as_str(), "fit": fit, "dev": dev,
                "confirm": confirm, "gap_seconds": formed.gap_seconds, "seq": formed.seq,
                "placement": if formed.is_placed { "pass" } else { "not_checked" },
                "grade": if formed.gap_seconds.is_none() { "EXPLORATORY" } else { "time-separated" },
            }));
        }
        if let Some(split) = of.open.as_ref().map(|open| &open.split) {
            let line = format!("split {split} of {experiment}: listed, not formed\n");
            text.push_str(&line);
        }
    }
    data
}
