//! Command lines that cannot be parsed.

use std::ffi::OsString;

use crate::cli::command;
use crate::cli::error::CliError;
use crate::cli::refusals::reader_words::plain;
use crate::cli::ui;
use crate::cli::world::World;
use crate::view::Exit;
use crate::view::fit;

/// A wrong command line inside of another.
pub(in crate::cli) fn usage(error: &clap::Error) -> CliError {
    let text = error.render().to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    // What is missing is listed below, up to an empty line.
    let listed = lines.map(str::trim).take_while(|line| !line.is_empty());
    let listed: Vec<&str> = listed.filter(|_| first.ends_with(':')).collect();
    let message = format!("{first} {}", listed.join(", "));
    CliError::usage(message.trim_end(), "clover --help")
}

/// The words of the verb that a wrong command line begins with.
pub(in crate::cli) fn verb_before(args: &[OsString]) -> Vec<String> {
    let whole = command();
    let mut at = &whole;
    let mut words = Vec::new();
    for arg in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        let Some(inner) = at.find_subcommand(arg) else {
            // An option of every verb may stand before the verb.
            if arg.starts_with('-') && words.is_empty() {
                continue;
            }
            break;
        };
        words.push(inner.get_name().to_owned());
        at = inner;
    }
    words
}

/// The help of the verb that a wrong command line begins with.
fn help_of(args: &[OsString]) -> String {
    let words = std::iter::once("clover".to_owned()).chain(verb_before(args));
    format!("{} --help", words.collect::<Vec<_>>().join(" "))
}

/// Says what is wrong with a command line, and ends; or shows the help that was asked for.
pub(in crate::cli) fn parse_failure(
    world: &mut World,
    (error, args): (&clap::Error, &[OsString]),
    json: bool,
) -> Exit {
    use std::io::Write as _;
    let text = plain(&error.render().to_string());
    let shown = if error.use_stderr() { 2 } else { 1 };
    let columns = world.columns.filter(|_| world.terminals[shown]);
    let text = match columns {
        Some(columns) => fit::help(&text, columns.into()),
        None => text,
    };
    // There is nowhere left to complain.
    if error.use_stderr() {
        if json {
            let wrong = usage(error).with_next(help_of(args));
            let text = ui::error_json(&wrong, &[]);
            world.stdout.write_all(text.as_bytes()).ok();
        }
        let text = text.trim_end();
        writeln!(world.stderr, "{text}\nnext: {}", help_of(args)).ok();
        return Exit::Usage;
    }
    world.stdout.write_all(text.as_bytes()).ok();
    if !text.ends_with('\n') {
        world.stdout.write_all(b"\n").ok();
    }
    Exit::Done
}
