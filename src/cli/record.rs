//! `clover record KIND`: one event, typed, signed, appended.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::input;
use crate::cli::submit;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::payload::custody::SubjectErased;
use crate::event::registry::Signers;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ground::time::Timestamp;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::projection::budgets::Budgets;
use crate::session::SessionError;
use crate::session::charges;
use crate::session::kept;
use crate::view::Exit;
use crate::view::View;
use crate::view::appended;
use crate::view::appended::KeptIn;

/// One event, as a person says it.
#[derive(Debug, clap::Args)]
pub(super) struct EventArgs {
    /// Kind of the event; `clover schema` lists them
    pub kind: String,
    /// Its data: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub data: String,
    /// The experiment it belongs to
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Id of an event it stands on
    #[arg(long = "ref", value_name = "ID")]
    pub refs: Vec<String>,
    /// When it was said, as 2026-11-20T10:00:00.000000Z
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub event: EventArgs,
    /// Keep the signed event in a new file first, so that `import events FILE` repeats it safely
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn event_id(text: &str) -> Result<EventId, CliError> {
    Digest::from_hex(text).map(EventId).ok_or_else(|| {
        let message = format!("{text:?} is no event id: expected 64 lower-case hex digits");
        CliError::usage(message, "clover log")
    })
}

pub(super) fn time(text: &str) -> Result<Timestamp, CliError> {
    Timestamp::parse_written(text).ok_or_else(|| {
        if let Some(day) = Timestamp::dotted_day(text) {
            let message = format!("{text:?} is no time: this day is written {day}");
            return CliError::usage(message, format!("the same command with {day}"));
        }
        let message = format!(
            "{text:?} is no time: expected a day such as 2026-11-20, in UTC, or 2026-11-20T10:00:00Z"
        );
        CliError::usage(message, "date -u +%Y-%m-%dT%H:%M:%SZ")
    })
}

/// A time until which something has to be shown; one that has passed is refused, since it would be a breach at once.
pub(super) fn deadline(now: Timestamp, text: &str) -> Result<Timestamp, CliError> {
    let by = time(text)?;
    if by > now {
        return Ok(by);
    }
    let message = format!("--reveal-by {text}: expected a time to come, it is {now} now");
    Err(CliError::usage(
        message,
        "the same command with a later --reveal-by",
    ))
}

pub(super) fn experiment_id(text: &str) -> Result<ExperimentId, CliError> {
    text.parse().map_err(|error| {
        CliError::usage(
            format!("experiment {text:?}: {error}"),
            "clover experiment list",
        )
    })
}

/// The event that was said.
pub(super) fn command(ctx: &mut Ctx<'_>, args: &EventArgs) -> Result<Command, CliError> {
    let kind = input::kind(&args.kind)
        .map_err(|message| CliError::input(format!("kind: {message}"), "clover schema"))?;
    let payload = payload(ctx, kind, &args.data)?;
    if let Payload::SubjectErased(said) = &payload {
        return Err(without_its_key(said));
    }
    Ok(Command {
        payload,
        experiment: args.experiment.as_deref().map(experiment_id).transpose()?,
        refs: args
            .refs
            .iter()
            .map(|id| event_id(id))
            .collect::<Result<_, _>>()?,
        at: args.at.as_deref().map(time).transpose()?,
    })
}

/// The event of an erasure alone leaves the key, and with it the texts.
fn without_its_key(said: &SubjectErased) -> CliError {
    let (subject, basis) = (
        shell::word(&said.subject),
        shell::quoted(said.basis.as_str()),
    );
    CliError::refused(
        input::ERASED,
        format!("clover erase {subject} --basis {basis}"),
    )
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let command = command(ctx, &args.event)?;
    match &args.out {
        Some(out) => append_kept(ctx, &command, out, args.dry_run),
        None if args.dry_run || !charges::is_label(&command) => one(ctx, command, args.dry_run),
        None => {
            let (_, mut ledger) = home::open_to_write(ctx)?;
            let signer = signer(ctx, &ledger, &command.payload)?;
            let appended = charges::append_label(&mut ctx.ports(), &mut ledger, &command, &signer)?;
            Ok(submit::answer(&ledger, &[command], &appended))
        }
    }
}

/// Signs and appends one command with the key that may.
pub(super) fn one(ctx: &mut Ctx<'_>, command: Command, dry_run: bool) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = signer(ctx, &ledger, &command.payload)?;
    submit::append(ctx, &mut ledger, &[command], &signer, dry_run)
}

/// As [`one`], of a command that cannot be undone: somebody agrees first.
pub(super) fn asked(
    ctx: &mut Ctx<'_>,
    command: Command,
    dry_run: bool,
    of: &submit::StepConsent<'_>,
) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = signer(ctx, &ledger, &command.payload)?;
    let commands = [command];
    if !dry_run {
        submit::ask(ctx, &ledger, &commands, &signer, of)?;
    }
    submit::append(ctx, &mut ledger, &commands, &signer, dry_run)
}

/// The key that may sign a payload.
pub(super) fn signer(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    payload: &Payload,
) -> Result<Signer, CliError> {
    let state = ledger.state();
    match (payload, payload.kind().signers()) {
        (Payload::BudgetCharged(charged), Signers::Spenders) => {
            let account = state.fold::<Budgets>().accounts.get(&charged.account);
            wallet::spender(ctx, state, account.map(|account| &account.spenders))
        }
        (payload, Signers::Any) => {
            // Any key may; where several could, the owner's is the one meant.
            match wallet::signer(ctx, state, payload.kind()) {
                Err(error) if error.exit == Exit::Usage => {
                    wallet::signer(ctx, state, Kind::RetentionSet).map_err(|_| error)
                }
                other => other,
            }
        }
        (payload, _) => wallet::signer(ctx, state, payload.kind()),
    }
}

fn payload(ctx: &mut Ctx<'_>, kind: Kind, data: &str) -> Result<Payload, CliError> {
    let next = format!("clover schema {kind}", kind = shell::word(&kind));
    let (source, text) = match data.strip_prefix('@') {
        Some(file) => (file.to_owned(), ctx.read(Path::new(file))?),
        None if data == "-" => ("standard input".to_owned(), ctx.read(Path::new("-"))?),
        None => ("--data".to_owned(), data.as_bytes().to_vec()),
    };
    input::payload(kind, &text).map_err(|fault| fault.into_error(&source, 1, &next))
}

/// Writes the signed event to a new file, then appends it.
fn append_kept(
    ctx: &mut Ctx<'_>,
    command: &Command,
    out: &Path,
    dry_run: bool,
) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let signer = signer(ctx, &ledger, &command.payload)?;
    if dry_run {
        return submit::append(
            ctx,
            &mut ledger,
            std::slice::from_ref(command),
            &signer,
            true,
        );
    }
    let path = ctx.path(out);
    if charges::is_label(command) {
        charges::charge_label(&mut ctx.ports(), &mut ledger, command, &signer)?;
    }
    let submission = kept::append(&mut ctx.ports(), &mut ledger, command, &signer, &path);
    let submission = submission.map_err(|error| {
        let is_kept = matches!(error, SessionError::Unsent(_));
        let mut error = CliError::from(error);
        if is_kept {
            error.next = format!("clover import events {}", shell::word(&path.display()));
        }
        error
    })?;
    let answer = submit::shown(ctx, &ledger, &submission);
    let file = path.display().to_string();
    Ok(appended::and(answer, &KeptIn { file }))
}
