//! Options that were typed, and that the commands named next need as well: whose scores, which experiment, which ledger.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::cli;
use crate::cli::error::CliError;
use crate::ground::shell;
use crate::view::View;

/// Options that say what a command is about.
const CARRIED: [&str; 3] = ["judge", "experiment", "ledger"];

/// Verbs that are about no ledger, or make one.
const ELSEWHERE: [&str; 8] = [
    "analyze",
    "completions",
    "demo",
    "init",
    "man",
    "qualify",
    "restore",
    "simulate",
];

/// What was typed of [`CARRIED`], each with its value.
#[derive(Clone, Debug, Default)]
pub(super) struct CarriedOptions {
    typed: Vec<(&'static str, String)>,
}

impl CarriedOptions {
    /// The options of a command line, by the matches of its verb. Defaults and variables hold for the next command anyway.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let typed = CARRIED.into_iter().filter_map(|name| {
            let is_known = matches.try_contains_id(name).unwrap_or(false);
            if !is_known || matches.value_source(name) != Some(ValueSource::CommandLine) {
                return None;
            }
            let mut values = matches.get_raw(name)?;
            let value = values.next()?.to_str()?;
            Some((name, value.to_owned()))
        });
        Self {
            typed: typed.collect(),
        }
    }

    /// An answer, or a refusal, whose next commands are about the same.
    pub(super) fn on_answer(&self, answer: Result<View, CliError>) -> Result<View, CliError> {
        if self.typed.is_empty() {
            return answer;
        }
        let command = cli::command();
        match answer {
            Ok(mut view) => {
                for line in &mut view.next {
                    *line = self.on(&command, line);
                }
                Ok(view)
            }
            Err(error) => {
                let next = self.on(&command, &error.next);
                Err(error.with_next(next))
            }
        }
    }

    /// A command with the options that it takes and does not name. Words that are no single command stay as they are.
    pub(super) fn on(&self, command: &clap::Command, line: &str) -> String {
        let is_single = !["; ", " && ", " | ", " > "]
            .iter()
            .any(|of| line.contains(of));
        let words = line.strip_prefix("clover ").filter(|_| is_single);
        let (Some(words), false) = (words, self.typed.is_empty()) else {
            return line.to_owned();
        };
        let (mut verb, mut path) = (command, Vec::new());
        for word in words.split(' ') {
            let Some(inner) = verb.find_subcommand(word) else {
                break;
            };
            path.push(inner.get_name());
            verb = inner;
        }
        // A noun alone, or a line that begins with an option, is asked for help.
        if path.is_empty() || verb.has_subcommands() || line.contains("--help") {
            return line.to_owned();
        }
        let mut more = String::new();
        for (name, value) in &self.typed {
            let takes = if *name == "ledger" {
                !path.iter().any(|of| ELSEWHERE.contains(of)) && path != ["import", "ledger"]
            } else {
                let mut arguments = verb.get_arguments();
                arguments.any(|of| of.get_long() == Some(name))
            };
            let is_there = words.split(' ').any(|word| {
                let option = word.strip_prefix("--");
                option.is_some_and(|of| of.split('=').next() == Some(name))
            });
            if takes && !is_there {
                more.push_str(&format!(" --{name} {}", shell::word(value)));
            }
        }
        match line.split_once(" -- ") {
            Some((before, program)) => format!("{before}{more} -- {program}"),
            None => format!("{line}{more}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::command;
    use crate::cli::parse_in;

    fn next(typed: &str, line: &str) -> String {
        let args: Vec<_> = typed.split(' ').map(Into::into).collect();
        let parsed = parse_in(&args, 100).unwrap();
        parsed.carried.on(&command(), line)
    }

    #[test]
    fn a_next_command_is_about_what_the_last_was_about() {
        let typed = "clover estimate --judge llm --experiment arena --ledger lab";
        for (line, expected) in [
            (
                "clover audit transport",
                "clover audit transport --judge llm --experiment arena --ledger lab",
            ),
            (
                "clover audit transport --judge other",
                "clover audit transport --judge other --experiment arena --ledger lab",
            ),
            ("clover verify", "clover verify --ledger lab"),
            ("clover init", "clover init"),
            ("clover estimate --help", "clover estimate --help"),
            ("the same command with --yes", "the same command with --yes"),
            (
                "clover judge run --judge ID --rows PATH -- python3 judge.py",
                "clover judge run --judge ID --rows PATH --experiment arena --ledger lab -- python3 judge.py",
            ),
            ("mv a b; clover status", "mv a b; clover status"),
        ] {
            assert_eq!(next(typed, line), expected);
        }
        // What was not typed is not repeated.
        assert_eq!(
            next("clover estimate", "clover compare --all"),
            "clover compare --all"
        );
    }
}
