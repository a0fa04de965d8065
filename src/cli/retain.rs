//! `clover retain`: how long each class of records is kept, and on which ground.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::event::id::ClassId;
use crate::event::payload::custody::RetentionSet;
use crate::ledger::Command;
use crate::num::Count;
use crate::session::expiry;
use crate::view::View;
use crate::view::retain;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Say how long a class is kept, and on which ground; the newest word of a class holds
    #[command(
        after_help = "Class logs is the log itself: at least 184 days, six months. Other classes are names of your own.\n\
                      Nothing is deleted by it: clover report expiry names what is due, clover erase erases texts.\n\n\
                      Example:\n  clover retain set logs --days 3653 --basis 'AI Act, Art. 18'"
    )]
    Set(RetainSetArgs),
    /// How long each class is kept, until when, and on which ground
    #[command(after_help = "Example:\n  clover retain list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct RetainSetArgs {
    /// The class: logs, or a name of your own
    #[arg(value_name = "CLASS", value_parser = class)]
    pub class: ClassId,
    /// Days from the oldest entry of the log
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub days: u64,
    /// The law, contract or policy that it rests on
    #[arg(long, value_name = "TEXT", value_parser = basis)]
    pub basis: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn class(text: &str) -> Result<ClassId, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !text.chars().all(is_plain) {
        return Err("expected lower-case letters, digits, - and _, such as logs".to_owned());
    }
    text.parse::<ClassId>().map_err(|error| error.to_string())
}

/// A ground that says something.
fn basis(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("expected the law, contract or policy that it rests on".to_owned());
    }
    Ok(text.trim().to_owned())
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Set(args) => set(ctx, args),
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            let (classes, logs) = expiry::retained(&ledger, at.state(&ledger))?;
            Ok(retain::list(at.state(&ledger), &classes, logs))
        }
    }
}

fn set(ctx: &mut Ctx<'_>, args: &RetainSetArgs) -> Result<View, CliError> {
    let days = Count::new(args.days).ok_or_else(|| {
        CliError::usage(
            format!("--days {}: expected a number of days", args.days),
            "clover retain set --help",
        )
    })?;
    let payload = RetentionSet {
        basis: key::text("basis", &args.basis)?,
        class: args.class.clone(),
        days,
    };
    let mut view = record::one(ctx, Command::new(payload, None), args.dry_run)?;
    if args.class.to_string() == expiry::LOGS && args.days < expiry::LOGS_DAYS_MIN {
        view.sentence(format!(
            "class logs is kept for fewer than {} days, six months: clover report expiry names it.",
            expiry::LOGS_DAYS_MIN
        ));
    }
    Ok(view.with_next("clover retain list"))
}
