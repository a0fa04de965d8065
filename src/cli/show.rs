//! `clover show SEQ|ID`: one entry, readable, or its exact bytes.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::log;
use crate::event::id::EventId;
use crate::ground::digest::Digest;
use crate::ledger::Ledger;
use crate::ledger::read::LogEntry;
use crate::view::View;
use crate::view::entry;
use crate::view::entry::EntryForm;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Position or event id
    pub entry: String,
    /// Print the entry line: the leaf of the tree
    #[arg(long, conflicts_with = "body")]
    pub line: bool,
    /// Print the exact signed body
    #[arg(long)]
    pub body: bool,
}

/// An entry by position or id.
pub(super) fn find(ctx: &Ctx<'_>, ledger: &Ledger, text: &str) -> Result<LogEntry, CliError> {
    let head = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let seq = match (text.parse::<u64>(), Digest::from_hex(text)) {
        (_, Some(id)) => ledger.find(EventId(id))?,
        (Ok(seq), None) => Some(seq),
        (Err(_), None) => {
            let message =
                format!("{text:?} is neither a position nor an event id of 64 hex digits");
            return Err(CliError::usage(message, "clover log"));
        }
    };
    let missing = || {
        let message = format!("no entry {text} in a log of {head} entries");
        CliError::not_found(message, "clover log")
    };
    let seq = seq.filter(|seq| *seq < head).ok_or_else(missing)?;
    ledger.entry(seq)?.ok_or_else(missing)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let read = find(ctx, &ledger, &args.entry)?;
    let form = match (args.line, args.body) {
        (true, _) => EntryForm::Line,
        (false, true) => EntryForm::Body,
        (false, false) => EntryForm::Readable,
    };
    entry::show(at.state(&ledger), &read, form).map_err(log::damaged)
}
