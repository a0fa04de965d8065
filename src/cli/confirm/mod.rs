//! `clover confirm`: sealed labels as a whole: what waits, what is late, and opening a design in one charged peek.

mod opening;

use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::label;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::payload::budget::Period;
use crate::event::payload::label::LabelSealed;
use crate::event::payload::label::SealAccepted;
use crate::event::registry;
use crate::ground::digest::Digest;
use crate::ground::seal;
use crate::ground::seal::Identity;
use crate::ground::time::Timestamp;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::budgets::Account;
use crate::projection::budgets::Budgets;
use crate::projection::budgets::Purpose;
use crate::projection::splits::Splits;

pub(super) use opening::Opening;
pub(super) use opening::begin;
pub(super) use opening::open;

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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Status => status(ctx),
        Verb::Seal(args) => accept(ctx, &args),
        Verb::Unseal(args) => unseal(ctx, &args),
    }
}

/// A sealed label of a design.
struct Row {
    seq: u64,
    label: LabelSealed,
    is_accepted: bool,
    is_revealed: bool,
}

/// The sealed labels of one design, in the order of their entries, and its last charge.
fn rows(
    ledger: &Ledger,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<Vec<Row>, CliError> {
    let mut found = Vec::new();
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let header = &read.event.header;
        if let Payload::LabelSealed(label) = &read.event.payload
            && header.experiment.as_ref() == Some(experiment)
            && label.design == *design
        {
            found.push((read.stored.seq, label.clone()));
        }
        Ok(())
    })?;
    let given = |kind: Kind, label: &LabelSealed| {
        let fields = [design.as_str(), label.row.as_str()];
        ledger.giver(&registry::natural_key_of(kind, experiment, &fields))
    };
    let mut rows = Vec::with_capacity(found.len());
    for (seq, label) in found {
        rows.push(Row {
            seq,
            is_accepted: given(Kind::SealAccepted, &label)?.is_some(),
            is_revealed: given(Kind::LabelRevealed, &label)?.is_some(),
            label: *label,
        });
    }
    if rows.is_empty() {
        let message = format!("no sealed label of design {design} in {experiment}");
        return Err(CliError::not_found(message, "clover label design list"));
    }
    Ok(rows)
}

struct Place {
    experiment: ExperimentId,
    design: DesignId,
}

fn place(ledger: &Ledger, args: &SealArgs) -> Result<Place, CliError> {
    let design = args.design.parse().map_err(|error| {
        let message = format!("design {:?}: {error}", args.design);
        CliError::usage(message, "clover label design list")
    })?;
    let experiment = intake::experiment(ledger.state(), args.experiment.as_deref())?;
    Ok(Place { experiment, design })
}

/// The identity for a row's envelope; the last one found serves again.
fn identity<'i>(
    ctx: &mut Ctx<'_>,
    state: &State,
    (args, label): (&SealArgs, &LabelSealed),
    known: &'i mut Vec<Identity>,
) -> Result<&'i Identity, CliError> {
    let fits = |identity: &Identity| identity.recipient() == label.recipient.0;
    let at = if let Some(at) = known.iter().position(fits) {
        at
    } else {
        let path = args.identity.as_deref();
        known.push(wallet::identity(ctx, state, path, &label.recipient.0)?);
        known.len() - 1
    };
    Ok(&known[at])
}

fn accept(ctx: &mut Ctx<'_>, args: &SealArgs) -> Result<Answer, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let place = place(&ledger, args)?;
    let rows = rows(&ledger, &place.experiment, &place.design)?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::SealAccepted)?;
    let (mut commands, mut known) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| !row.is_accepted) {
        let identity = identity(ctx, ledger.state(), (args, &row.label), &mut known)?;
        let file = &row.label.envelope.0;
        seal::check_header(file, std::slice::from_ref(identity))
            .map_err(|error| broken(row, &error))?;
        let payload = SealAccepted {
            design: place.design.clone(),
            envelope_sha256: Digest::sha256(file),
            row: row.label.row.clone(),
        };
        commands.push(Command::new(payload, Some(place.experiment.clone())));
    }
    ledger.append(&commands, &signer)?;
    ledger.settle()?;
    submit::warn_of_pin(ctx, &ledger);
    let (new, already) = (commands.len(), rows.len() - commands.len());
    let text = format!(
        "accepted {new} · already {already} · design {}\n",
        place.design
    );
    let mut answer = Answer::new(text, json!({"accepted": new, "already": already}));
    answer.verdict = if new == 0 {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}

fn broken(row: &Row, error: &dyn std::fmt::Display) -> CliError {
    let message = format!("the envelope of row {}: {error}", row.label.row);
    CliError::integrity("seal_broken", message, format!("clover show {}", row.seq))
}

/// The account, with a peek left in it.
fn account<'l>(ledger: &'l Ledger, name: &str, now: Timestamp) -> Result<&'l Account, CliError> {
    let accounts = &ledger.state().fold::<Budgets>().accounts;
    let found = accounts.iter().find(|(id, _)| id.as_str() == name);
    let Some((_, account)) = found else {
        let message =
            format!("account: no account {name}: a peek is charged before a label is opened");
        return Err(CliError::refused(message, budget::peeks_opened(name)));
    };
    if account.purpose() != Purpose::Peeks {
        let message = format!(
            "charge: {name} counts in {}; a label is opened by a charge to an account whose unit is peek",
            account.unit
        );
        return Err(CliError::refused(message, "clover budget list"));
    }
    if account.left(now) == 0 {
        let message = format!(
            "overdraft: {} of {} {} spent in {}",
            account.spent(now),
            account.amount,
            account.unit,
            period(account, now)
        );
        return Err(CliError::refused(message, "clover confirm status"));
    }
    Ok(account)
}

fn period(account: &Account, now: Timestamp) -> String {
    match account.period {
        Period::Once => "all".to_owned(),
        Period::Quarter => now.quarter().to_string(),
    }
}

/// The time that an append would have.
pub(in crate::cli) fn now(ledger: &Ledger) -> Timestamp {
    let clock = ledger.ambient().now();
    clock.max(ledger.state().keyring.recorded_at.unwrap_or(clock))
}

fn unseal(ctx: &mut Ctx<'_>, args: &UnsealArgs) -> Result<Answer, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let opened = open(ctx, &mut ledger, args, None)?;
    let already = opened.already;
    let Some((charge, values, text)) = opened.revealed else {
        let text = format!("every label of {} is revealed already\n", args.seal.design);
        let mut answer = Answer::new(text, json!({"revealed": 0, "already": already}));
        answer.verdict = "already_recorded";
        return Ok(answer);
    };
    let data = json!({
        "charge": charge.to_string(), "revealed": values.len(),
        "already": already, "labels": values,
    });
    let mut answer = Answer::new(text, data);
    answer.verdict = "appended";
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}

/// Deadlines of what is sealed and not revealed.
fn deadlines(
    ledger: &Ledger,
    now: Timestamp,
    size: u64,
) -> Result<Vec<(String, String, Timestamp, bool)>, CliError> {
    let mut waiting = std::collections::BTreeMap::new();
    ledger.entries::<CliError>(0, size, |read| {
        let experiment = read.event.header.experiment.as_ref();
        let experiment = experiment.map(ToString::to_string).unwrap_or_default();
        match &read.event.payload {
            Payload::LabelSealed(label) => {
                let key = (experiment, label.design.to_string(), label.row.to_string());
                waiting.insert(key, label.reveal_by);
            }
            Payload::LabelRevealed(label) => {
                let key = (experiment, label.design.to_string(), label.row.to_string());
                waiting.remove(&key);
            }
            _ => {}
        }
        Ok(())
    })?;
    let rows = waiting.into_iter();
    Ok(rows
        .map(|((experiment, design, _), by)| (experiment, design, by, by < now))
        .collect())
}

fn status(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let head = state.keyring.recorded_at;
    let clock = ledger.ambient().now();
    let now = match ctx.as_of {
        Some(_) => head.unwrap_or(clock),
        None => clock.max(head.unwrap_or(clock)),
    };
    let waiting = deadlines(&ledger, now, state.size)?;
    let (mut rows, mut data, mut breaches) = (Vec::new(), Vec::new(), 0);
    for (experiment, name, design) in label::all(state).filter(|(.., design)| design.sealed > 0) {
        let mine = waiting
            .iter()
            .filter(|(of, by, ..)| of == experiment && by == name);
        let next = mine.clone().map(|(_, _, by, _)| *by).min();
        let late = mine.filter(|(.., late)| *late).count();
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
    if !budget::is_empty(state) {
        text.push('\n');
        text.push_str(&budget::table(state, now));
    }
    let data = json!({
        "designs": data, "breaches": breaches, "splits": splits, "budgets": budget::list_json(state, now),
    });
    let mut answer = Answer::new(text, data);
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
