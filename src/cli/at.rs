//! `clover at SEQ|HASH|TIME -- VERB`: a reading verb as of an earlier entry, from the recorded facts alone.

use std::ffi::OsString;

use crate::cli;
use crate::cli::Verb;
use crate::cli::access;
use crate::cli::assume;
use crate::cli::audit;
use crate::cli::budget;
use crate::cli::ctx::Ctx;
use crate::cli::deploy;
use crate::cli::error::CliError;
use crate::cli::experiment;
use crate::cli::home;
use crate::cli::key;
use crate::cli::prompt;
use crate::cli::regime;
use crate::cli::report;
use crate::cli::ui::Form;
use crate::event::id::EventId;
use crate::ground::digest::Digest;
use crate::ground::time::Timestamp;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The entry after which things are to be seen: its position, its event id, or a time at which it was the newest
    #[arg(value_name = "SEQ|HASH|TIME")]
    pub entry: String,
    /// status, assume, budget, key list|show, access list, experiment list, prompt log|show|diff, deploy status, log, show, estimate, compare, calibrate, regime list, audit signers|plans|peeks|decisions|summary
    #[arg(last = true, required = true, value_name = "VERB")]
    pub verb: Vec<OsString>,
}

const NEXT: &str = "clover at SEQ -- status";

/// The position of an entry that is named by it, by its event id or by a time.
fn position(ctx: &mut Ctx<'_>, text: &str) -> Result<u64, CliError> {
    if let Ok(seq) = text.parse() {
        return Ok(seq);
    }
    let by_id = Digest::from_hex(text).map(EventId);
    let by_time = Timestamp::parse_written(text);
    let (_, ledger) = home::open_to_read(ctx)?;
    let found = match (by_id, by_time) {
        (Some(id), _) => ledger.find(id)?,
        (None, Some(time)) => ledger.newest_by(time)?,
        (None, None) => {
            let message = format!(
                "{text:?} is no entry: expected a position, an event id of 64 hex digits, or a time such as 2026-11-20"
            );
            return Err(CliError::usage(message, NEXT));
        }
    };
    found.ok_or_else(|| {
        let message = match by_time {
            Some(_) => format!("no entry was recorded by {text}"),
            None => format!("no entry {text}"),
        };
        CliError::not_found(message, "clover log")
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: Args) -> Result<View, CliError> {
    let words = std::iter::once(OsString::from("clover")).chain(args.verb);
    let words: Vec<OsString> = words.collect();
    let (cli, path) = cli::parse(&words).map_err(|error| cli::usage(&error).with_next(NEXT))?;
    ctx.globals.json |= cli.globals.json;
    if cli.globals.form != Form::Text {
        ctx.globals.form = cli.globals.form;
    }
    let verb = cli.verb;
    let reads = matches!(
        verb,
        Verb::Status
            | Verb::Log(_)
            | Verb::Show(_)
            | Verb::Key(key::Verb::List | key::Verb::Show(_))
            | Verb::Access(access::Verb::List)
            | Verb::Assume(assume::Verb::List(_) | assume::Verb::Show(_))
            | Verb::Budget(budget::Verb::List | budget::Verb::Show(_))
            | Verb::Experiment(experiment::Verb::List)
            | Verb::Prompt(prompt::Verb::Log(_) | prompt::Verb::Show(_) | prompt::Verb::Diff(_))
            | Verb::Deploy(deploy::Verb::Status(_))
            | Verb::Calibrate(_)
            | Verb::Regime(regime::Verb::List(_))
            | Verb::Estimate(_)
            | Verb::Audit(
                audit::Verb::Signers
                    | audit::Verb::Plans
                    | audit::Verb::Peeks
                    | audit::Verb::Decisions
                    | audit::Verb::Summary(_)
            )
            | Verb::Compare(_)
            | Verb::Campaign(_)
            | Verb::Report(report::Verb::Iteration(_) | report::Verb::List)
    );
    if !reads {
        let message = "only status, assume list|show, budget list|show, key list|show, access list, experiment list, prompt log|show|diff, deploy status, log, show, estimate, compare, calibrate, regime list, audit signers|plans|peeks|decisions|summary, campaign and report iteration|list can be asked of the past";
        return Err(CliError::usage(message, NEXT));
    }
    ctx.as_of = Some(position(ctx, &args.entry)?);
    ctx.verb = path;
    cli::dispatch(ctx, verb)
}
