//! `clover assume`: what every claim rests on, with what is known of it, and waivers by two keys.
//!
//! Age, staleness and expiry are by ledger time, so that the same answer is given of an earlier entry.

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::wallet;
use crate::event::id::ExperimentId;
use crate::event::payload::Role;
use crate::event::payload::assumption::Assumption;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::assumptions;
use crate::projection::assumptions::Standing;
use crate::projection::assumptions::Status;
use crate::projection::experiments::Experiments;
use crate::session::SessionError;
use crate::session::waivers;
use crate::session::waivers::Agreement;
use crate::session::waivers::WaiverError;
use crate::session::waivers::WaiverTerms;
use crate::view::View;
use crate::view::assume as views;

const LIST: &str = "clover assume list";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Every assumption with its status, evidence, age and expiry
    #[command(after_help = "Example:\n  clover assume list --experiment arena")]
    List(AssumeListArgs),
    /// One assumption: what it says, its parts, its waivers
    #[command(after_help = "Example:\n  clover assume show CLOVER.J2 --experiment arena")]
    Show(AssumeShowArgs),
    /// Propose a waiver, or agree to one as the second key
    #[command(
        override_usage = "clover assume waive CODE --reason TEXT --until TIME [--second KEY]\n       clover assume waive CODE --countersign",
        after_help = "Example:\n  clover assume waive S2 --experiment arena --reason 'one environment only' \\\n    --until 2027-01-31T00:00:00.000000Z --second bea"
    )]
    Waive(WaiveArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AssumeListArgs {
    /// One experiment; all when absent
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct AssumeShowArgs {
    /// Its code
    pub code: String,
    /// One experiment; all when absent
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WaiveArgs {
    /// Its code
    pub code: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", required_unless_present = "countersign")]
    pub reason: Option<String>,
    /// When the waiver ends
    #[arg(long, value_name = "TIME", required_unless_present = "countersign")]
    pub until: Option<String>,
    /// A second approver's key, to agree at once
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "countersign")]
    pub second: Option<String>,
    /// Agree to the waiver that waits
    #[arg(long, conflicts_with_all = ["reason", "until"])]
    pub countersign: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::List(args) => list(ctx, args.experiment.as_deref()),
        Verb::Show(args) => show(ctx, &args),
        Verb::Waive(args) => waive(ctx, &args),
    }
}

fn code(text: &str) -> Result<Assumption, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("code {text:?}: {error}"), LIST))
}

/// The named experiment, or all that are registered.
fn experiments(state: &State, named: Option<&str>) -> Result<Vec<ExperimentId>, CliError> {
    let all = &state.fold::<Experiments>().by_id;
    let Some(named) = named else {
        return Ok(all.keys().cloned().collect());
    };
    let id = record::experiment_id(named)?;
    if all.contains_key(&id) {
        return Ok(vec![id]);
    }
    let message = format!("no experiment {id}");
    Err(CliError::not_found(message, "clover experiment list"))
}

fn list(ctx: &mut Ctx<'_>, named: Option<&str>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    Ok(views::list(state, &experiments(state, named)?))
}

fn show(ctx: &mut Ctx<'_>, args: &AssumeShowArgs) -> Result<View, CliError> {
    let code = code(&args.code)?;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let all = experiments(state, args.experiment.as_deref())?;
    Ok(views::show(state, code, &all))
}

/// The key that proposes a waiver: the one that was named, else an approver's other than the one that is to agree.
fn first(ctx: &Ctx<'_>, state: &State, second: &str) -> Result<Option<String>, CliError> {
    let named = ctx.globals.key.clone();
    if named.is_some() || ctx.variable("CLOVER_KEY").is_some() {
        return Ok(named);
    }
    let agrees = wallet::public_id(&wallet::locate(ctx, second)?);
    let files = wallet::files(ctx)?;
    let may = files.iter().filter_map(|file| {
        let record = state.keyring.keys.get(&file.id)?;
        let may = record.end.is_none() && record.roles.contains(Role::Approver);
        (may && Some(file.id) != agrees).then_some((&file.name, &record.roles))
    });
    let (names, roles): (Vec<_>, Vec<_>) = may.unzip();
    let only = wallet::narrowest(&roles);
    Ok(only.map(|at| names[at].clone()))
}

fn waive(ctx: &mut Ctx<'_>, args: &WaiveArgs) -> Result<View, CliError> {
    let code = code(&args.code)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let experiment = match (code.is_of_ledger(), args.experiment.as_deref()) {
        (true, None) => None,
        (true, Some(_)) => {
            let message = format!("{code} is about the whole ledger: leave --experiment out");
            return Err(CliError::usage(message, LIST));
        }
        (false, named) => Some(current::experiment(ctx, &home, ledger.state(), named)?),
    };
    if args.countersign {
        let intent = submit::intent(args.dry_run);
        let of = (code, experiment.as_ref());
        let agreement = waivers::agree(&mut ctx.ports(), &mut ledger, of, intent)?;
        return Ok(agreed(ctx, &ledger, code, &agreement));
    }
    let (reason, until) = (args.reason.as_deref(), args.until.as_deref());
    let terms = WaiverTerms {
        code,
        experiment: experiment.clone(),
        expires_at: record::time(until.unwrap_or_default())?,
        reason: key::text("reason", reason.unwrap_or_default())?,
    };
    let second = args.second.as_ref();
    if let Some(second) = second {
        ctx.globals.key = first(ctx, ledger.state(), second)?;
    }
    let intent = submit::intent(args.dry_run);
    let mut ports = ctx.ports().with_second(second);
    let done = waivers::propose(&mut ports, &mut ledger, terms, second.is_some(), intent);
    let (submission, agreement) = done.map_err(|error| match (error, second) {
        (SessionError::Waiver(error @ WaiverError::SameKey), Some(second)) => {
            CliError::from(error).at(&format!("--second {second}"))
        }
        (error, _) => error.into(),
    })?;
    let answer = submit::shown(ctx, &ledger, &submission);
    if args.dry_run {
        return Ok(answer);
    }
    let Some(agreement) = agreement else {
        return Ok(views::proposed(answer, code, experiment.as_ref()));
    };
    let second = agreed(ctx, &ledger, code, &agreement);
    Ok(views::agreed_at_once(answer, second, &agreement))
}

fn agreed(ctx: &mut Ctx<'_>, ledger: &Ledger, code: Assumption, agreement: &Agreement) -> View {
    let answer = submit::shown(ctx, ledger, &agreement.submission);
    views::agreed(answer, code, agreement)
}

/// Assumptions that fail, with their experiment, for `status`.
pub(super) fn failing(state: &State) -> Vec<Standing> {
    let all: Vec<_> = state.fold::<Experiments>().by_id.keys().cloned().collect();
    let mut rows = assumptions::rows(state, views::ledger_time(state), &all);
    rows.retain(|row| row.status == Status::Fail);
    rows
}
