//! `clover at SEQ -- VERB`: a reading verb as of an earlier entry, from the recorded facts alone.

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
use crate::cli::key;
use crate::cli::prompt;
use crate::cli::report;
use crate::cli::ui::Form;
use crate::view::View;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The entry after which things are to be seen
    pub seq: u64,
    /// status, assume, budget, key list|show, access list, experiment list, prompt log|show|diff, deploy status, log, show, estimate, compare, calibrate, audit signers|plans|peeks|decisions|summary
    #[arg(last = true, required = true, value_name = "VERB")]
    pub verb: Vec<OsString>,
}

const NEXT: &str = "clover at SEQ -- status";

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
            | Verb::Estimate(_)
            | Verb::Audit(
                audit::Verb::Signers
                    | audit::Verb::Plans
                    | audit::Verb::Peeks
                    | audit::Verb::Decisions
                    | audit::Verb::Summary
            )
            | Verb::Compare(_)
            | Verb::Campaign(_)
            | Verb::Report(report::Verb::Iteration(_) | report::Verb::List)
    );
    if !reads {
        let message = "only status, assume list|show, budget list|show, key list|show, access list, experiment list, prompt log|show|diff, deploy status, log, show, estimate, compare, calibrate, audit signers|plans|peeks|decisions|summary, campaign and report iteration|list can be asked of the past";
        return Err(CliError::usage(message, NEXT));
    }
    ctx.as_of = Some(args.seq);
    ctx.verb = path;
    cli::dispatch(ctx, verb)
}
