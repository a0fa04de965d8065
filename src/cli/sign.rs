//! `clover sign KIND` and `clover submit FILE…`: an event is signed where its author is, and appended where the log is
//! written, under all rules.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::record::EventArgs;
use crate::cli::slate;
use crate::cli::submit;
use crate::cli::verify;
use crate::cli::wallet;
use crate::event::SeenCheckpoint;
use crate::event::id::Root;
use crate::ground::ambient;
use crate::ground::note::SignedCheckpoint;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::RuleName;
use crate::ledger::pin::Pin;
use crate::ledger::pin::PinError;
use crate::num::Count;
use crate::session::SessionError;
use crate::session::append;
use crate::session::outbox;
use crate::session::outbox::BatchResult;
use crate::session::outbox::Outbox;
use crate::session::outbox::SignedBatch;
use crate::session::slate::Slate;
use crate::session::unread;
use crate::session::unread::UnreadLog;
use crate::view::View;
use crate::view::signed;
use crate::view::signed::FileTaken;

#[derive(Debug, clap::Args)]
pub(super) struct SignSignArgs {
    #[command(flatten)]
    pub event: EventArgs,
    /// A file whose content the event names as a blob
    #[arg(long, value_name = "FILE")]
    pub blob: Vec<PathBuf>,
    /// A checkpoint, where no copy of the ledger is here: nothing is judged
    #[arg(long, value_name = "NOTE", requires = "log_key")]
    pub seen: Option<PathBuf>,
    /// The log key that signed it
    #[arg(long, value_name = "VKEY", requires = "seen")]
    pub log_key: Option<String>,
    /// Your next number, where this machine does not know it
    #[arg(long, value_name = "N", requires = "seen")]
    pub number: Option<u64>,
    /// The signed event, a new file for whoever writes the log
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Print the canonical unsigned body and sign nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct SubmitArgs {
    /// Files that `clover sign` wrote: envelopes, one a line
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Signs one event and keeps it, in the outbox and in the file.
pub(super) fn sign(ctx: &mut Ctx<'_>, args: &SignSignArgs) -> Result<View, CliError> {
    let command = record::command(ctx, &args.event)?;
    let out = ctx.path(&args.out);
    if ambient::exists(&out)? {
        let message = format!("{} exists already", out.display());
        return Err(CliError::refused(message, "clover sign --help"));
    }
    let blobs = args.blob.iter().map(|file| ctx.read(file));
    let blobs = blobs.collect::<Result<Vec<_>, _>>()?;
    if let (Some(note), Some(log_key)) = (&args.seen, &args.log_key) {
        return unread(ctx, args, command, (note, log_key), blobs);
    }
    let (home, mut ledger, waiting) = slate::open(ctx)?;
    let signer = record::signer(ctx, &ledger, &command.payload)?;
    let commands = std::slice::from_ref(&command);
    if args.dry_run {
        return submit::append(ctx, &mut ledger, commands, &signer, true);
    }
    let seen = ledger.seen();
    let ports = &mut ctx.ports();
    let appended = append::append_with(ports, &mut ledger, commands, &signer, &blobs)?;
    let slate = ctx.slate.take();
    let kept = slate.as_ref().map(Slate::keep).transpose()?;
    let Some(batch) = kept.into_iter().flatten().next() else {
        // The same was said before: it is on record, or it waits.
        return Ok(submit::answer(&ledger, commands, &appended));
    };
    batch.write(&out)?;
    let waits = (waiting + 1, home.is_reader()?);
    Ok(signed::signed(&batch, &out, seen, waits))
}

/// Signs one event without a copy of the ledger, by a checkpoint alone.
fn unread(
    ctx: &mut Ctx<'_>,
    args: &SignSignArgs,
    command: Command,
    (note, log_key): (&Path, &str),
    blobs: Vec<Vec<u8>>,
) -> Result<View, CliError> {
    if args.dry_run {
        let message = "with --seen nothing is judged, so there is nothing to rehearse";
        return Err(CliError::usage(
            message,
            "the same command without --dry-run",
        ));
    }
    let source = note.display().to_string();
    let seen = verify::checkpoint(ctx, note)?;
    let key = verify::log_key(log_key)?;
    let forged = |found: String| {
        let message = format!("{source}: expected a checkpoint that {log_key} signed: {found}");
        CliError::integrity("forged", message, "clover checkpoint show")
    };
    let verified = seen.verify(std::slice::from_ref(&key));
    verified.map_err(|error| forged(error.to_string()))?;
    let origin = seen.checkpoint().origin.as_str().to_owned();
    hold(ctx, &source, &seen, &origin)?;
    let signer = wallet::only(ctx)?;
    let outbox = Outbox::of_person(&slate::outboxes(ctx)?, &origin);
    let known = UnreadLog {
        seen: &seen,
        number: args.number,
    };
    let signed = unread::sign(&ctx.ambient(), &outbox, command, &signer, known, blobs);
    let (batch, waiting) = signed?;
    let out = ctx.path(&args.out);
    batch.write(&out)?;
    ctx.warn("nothing was judged: the rules are asked where the log is written");
    let seen = SeenCheckpoint {
        root: Root(seen.checkpoint().root),
        size: Count::new(seen.checkpoint().size).ok_or_else(|| forged("its size".to_owned()))?,
    };
    Ok(signed::signed(&batch, &out, seen, (waiting, false)))
}

/// Holds a checkpoint against the pin, and moves the pin to it. That one log extends the other cannot be seen without it.
fn hold(
    ctx: &mut Ctx<'_>,
    source: &str,
    seen: &SignedCheckpoint,
    origin: &str,
) -> Result<(), CliError> {
    let Some(pins) = home::pins(ctx) else {
        return Ok(());
    };
    let pin = Pin::new(&pins, origin);
    let failed = |error: PinError| CliError::integrity("pin", error.to_string(), "clover doctor");
    let (here, found) = (pin.load().map_err(failed)?, seen.checkpoint());
    if let Some(here) = here {
        let here = here.checkpoint();
        let word = match here.size {
            size if size > found.size => "rolled_back",
            size if size == found.size && here.root != found.root => "forked",
            _ => "",
        };
        if !word.is_empty() {
            let message = format!(
                "{source}: {} entries, root {}; seen here before: {} entries, root {}",
                found.size,
                found.root.to_base64(),
                here.size,
                here.root.to_base64()
            );
            return Err(CliError::integrity(word, message, "clover checkpoint show"));
        }
    }
    pin.advance(seen).map_err(failed)
}

/// Takes in files of signed events, each as a whole.
pub(super) fn take(ctx: &mut Ctx<'_>, args: &SubmitArgs) -> Result<View, CliError> {
    let mut batches = Vec::with_capacity(args.files.len());
    for file in &args.files {
        let path = ctx.path(file);
        let source = file.display().to_string();
        let read = if file == Path::new("-") {
            SignedBatch::parse(&ctx.read(file)?, |_| Ok(None))
        } else {
            SignedBatch::read(&path)
        };
        let batch = read.map_err(|error| CliError::from(error).at(&source))?;
        batches.push((source, batch));
    }
    if home::find(ctx)?.is_reader()? {
        let message = "submit writes the log, and this copy has no log key: what you signed waits in your outbox";
        return Err(CliError::refused(message, "clover sync"));
    }
    let (_, mut ledger) = home::open_as_writer(ctx)?;
    let taken = outbox::take(&mut ctx.ports(), &mut ledger, &batches)?;
    answer(&ledger, taken)
}

/// Where the events of files stand; an error where a file was refused, with what stands all the same.
pub(super) fn answer(ledger: &Ledger, taken: Vec<BatchResult>) -> Result<View, CliError> {
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    for one in taken {
        match one.outcome {
            Ok(appended) => {
                files.push(FileTaken::new(ledger, one.name, &appended)?);
            }
            Err(error) => refused.push(refusal(&one.name, error)),
        }
    }
    let view = signed::submitted(ledger, files);
    let mut refused = refused.into_iter();
    let Some(mut first) = refused.next() else {
        return Ok(view);
    };
    for other in refused {
        first.message = format!("{}\n{}", first.message, other.message);
    }
    let text = view.text();
    if !text.is_empty() {
        first.message = format!(
            "{}\nstands all the same:\n{}",
            first.message,
            text.trim_end()
        );
    }
    first.data = json!({"refusal": first.data, "taken": view.facts()});
    Err(first)
}

/// Why a file is refused: a number that is taken or too high is said with what to do about it.
pub(super) fn refusal(name: &str, error: SessionError) -> CliError {
    let number = match &error {
        SessionError::Ledger(LedgerError::Refused {
            breach, in_the_way, ..
        }) if breach.rule == RuleName::AuthorSeq => Some((breach.clone(), *in_the_way)),
        _ => None,
    };
    let mut refused = CliError::from(error);
    match number {
        Some((_, Some(seq))) => {
            refused.message = format!(
                "{}: its author signs it again under a free number",
                refused.message
            );
            refused.next = format!("clover show {seq}");
        }
        Some((breach, None)) => {
            refused.message = format!(
                "author_seq: the author's next event is number {}, and this file begins with number {}: what was signed between them comes first",
                breach.expected, breach.found
            );
            let name = shell::word(&name);
            refused.next = format!("clover submit EARLIER-FILE {name}");
        }
        None => {}
    }
    refused.at(name)
}
