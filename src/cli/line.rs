//! Command lines: how they are read, and what of them is remembered.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::FromArgMatches;

use crate::cli::COLUMNS;
use crate::cli::Cli;
use crate::cli::carried::CarriedOptions;
use crate::cli::refusals::suggested::without_those_for_good;
use crate::cli::with_negatives;

/// A command line that was read.
pub(super) struct ParsedLine {
    /// What is asked.
    pub cli: Cli,
    /// The verb's words: `gate show`.
    pub path: String,
    /// Options that the next commands need as well.
    pub carried: CarriedOptions,
}

/// What was typed, and the verb's words.
pub(super) fn parse(args: &[OsString]) -> Result<(Cli, String), clap::Error> {
    let parsed = parse_in(args, COLUMNS)?;
    Ok((parsed.cli, parsed.path))
}

/// The same. Help that was asked for fits so many columns.
pub(super) fn parse_in(args: &[OsString], columns: u16) -> Result<ParsedLine, clap::Error> {
    let command = command().term_width(columns.min(COLUMNS).into());
    let matches = command.try_get_matches_from(args);
    let matches = matches.map_err(|error| without_those_for_good(error, args))?;
    let mut path = Vec::new();
    let mut at = &matches;
    while let Some((word, inner)) = at.subcommand() {
        path.push(word);
        at = inner;
    }
    // A guide's next command is one of its steps, as it is written there.
    let carried = match path.as_slice() {
        ["guide"] => CarriedOptions::default(),
        _ => CarriedOptions::of(at),
    };
    Ok(ParsedLine {
        cli: Cli::from_arg_matches(&matches)?,
        path: path.join(" "),
        carried,
    })
}

/// The parser of command lines.
pub(super) fn command() -> clap::Command {
    with_negatives(Cli::command().term_width(COLUMNS.into()))
}

/// As [`command`], with the options of every verb shown: for man pages and completions.
pub(super) fn command_shown() -> clap::Command {
    command().mut_args(|arg| arg.hide(false))
}
