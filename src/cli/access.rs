//! `clover access`: rows and labels released to a role, each release on record before anything leaves.
//!
//! The log itself is readable to whoever has the file; what is kept from a role is what it is not handed. A release
//! that its role may not have is recorded as denied and gives nothing.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::bench;
use crate::cli::key;
use crate::cli::wallet;
use crate::event::payload::Role;
use crate::ground::ambient;
use crate::session::custody::release;
use crate::session::custody::release::Class;
use crate::session::custody::release::ReleaseRequest;
use crate::view::View;
use crate::view::access;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Reads on record by key and class, and tainted experiments
    #[command(after_help = "Example:\n  clover access list")]
    List,
    /// Record a read, then write what is read to a file
    #[command(
        after_help = "Example:\n  clover access release row --to opal --as optimizer --for synthesis -o rows.jsonl"
    )]
    Release(ReleaseArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ReleaseArgs {
    /// row: ingested rows without texts and labels; label: open and revealed labels; card.public:
    /// cards as patches are written from them; label.card: full cards, which name rows
    #[arg(value_parser = ["card.public", "label", "label.card", "row"])]
    pub class: String,
    /// The reader's key: a name, an id or a holder
    #[arg(long, value_name = "KEY")]
    pub to: String,
    /// The role in which it reads; all that it holds when absent
    #[arg(long = "as", value_name = "ROLE")]
    pub role: Option<String>,
    /// What for
    #[arg(long = "for", value_name = "TEXT")]
    pub purpose: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The iteration whose cards they are
    #[arg(long, value_name = "ID")]
    #[arg(required_if_eq_any([("class", "card.public"), ("class", "label.card")]))]
    pub iteration: Option<String>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::List => list(ctx),
        Verb::Release(args) => release(ctx, args),
    }
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    Ok(access::list(at.state(&ledger)))
}

fn release(ctx: &mut Ctx<'_>, args: &ReleaseArgs) -> Result<View, CliError> {
    let role = args.role.as_deref().map(|text| {
        text.parse::<Role>().map_err(|error| {
            CliError::usage(
                format!("--as {text:?}: {error}"),
                "clover access release --help",
            )
        })
    });
    let role = role.transpose()?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let reader = wallet::resolve(ctx, ledger.state(), &args.to)?;
    let mut classes = Class::ALL.into_iter();
    let class = classes.find(|class| class.as_str() == args.class);
    let iteration = args.iteration.as_deref().map(bench::named).transpose()?;
    let request = ReleaseRequest {
        class: class.expect("BUG: the parser takes these alone"),
        experiment,
        iteration,
        reader,
        role,
        purpose: key::text("for", &args.purpose)?,
    };
    // On record first: what cannot be recorded is not released.
    let released = release::release(&mut ctx.ports(), &mut ledger, &request)?;
    let path = ctx.path(&args.output);
    ambient::replace_private(&path, &released.lines, true)?;
    let file = path.display().to_string();
    Ok(access::released(&ledger, request.class, &released, file))
}
