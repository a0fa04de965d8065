//! The judge of an iteration, ready to be asked.

use std::path::Path;
use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::JudgeRegistered;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::process;
use crate::workflow::judge::Judge;
use crate::workflow::judge::builtin;
use crate::workflow::judge::command;

/// Times that a child is started anew for one ask.
const RESTARTS_MAX: u32 = 2;

/// How a judge is asked that is a program.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct Program {
    /// Seconds for one answer of the judge's program
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help = "For one answer of the judge's program"
    )]
    pub timeout: u64,
    /// The judge's program, where it is one: the battery asks it too
    #[arg(
        last = true,
        value_name = "COMMAND",
        help = "The judge's program, where it is one"
    )]
    pub command: Vec<String>,
}

/// Ends of names by which a word of a command is a file that the program consists of.
const SCRIPTS: &[&str] = &[
    "bash", "jar", "jl", "js", "lua", "mjs", "php", "pl", "py", "r", "rb", "sh", "ts",
];

/// A word that names a file of the program, and no file is there.
fn missing(ctx: &Ctx<'_>, command: &[String]) -> Option<String> {
    let is_script = |word: &str| {
        let end = Path::new(word).extension().and_then(|end| end.to_str());
        !word.starts_with('-')
            && end.is_some_and(|end| SCRIPTS.contains(&end.to_lowercase().as_str()))
    };
    let is_path = |at: usize, word: &str| at == 0 && word.contains('/') || is_script(word);
    let mut words = command.iter().enumerate();
    let found = words.find(|(at, word)| is_path(*at, word) && !ambient::is_file(&ctx.path(word)));
    found.map(|(_, word)| word.clone())
}

/// Programs that run others: what they are told says who the judge is, and another version of one is the same judge.
const RUNNERS: &[&str] = &[
    "awk", "bash", "bun", "conda", "curl", "dash", "deno", "docker", "env", "java", "julia", "lua",
    "nice", "node", "npx", "octave", "perl", "php", "podman", "poetry", "python", "r", "rscript",
    "ruby", "sed", "sh", "ssh", "sudo", "timeout", "uv", "uvx", "zsh",
];

/// Whether a word names a program that runs others, whatever its version: `python3.12` too.
fn is_runner(program: &str) -> bool {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    RUNNERS.contains(&name.to_lowercase().as_str())
}

/// The digest of the files among the words of a command, in their order: the program as it is now. Where no word is a file,
/// it is that of the file which `PATH` has for the program, unless that one runs others. `None` where there is none. `whose` names it in refusals: `judge` or `optimizer`.
///
/// # Errors
/// A program or a script that is not there: a judge must not be known by a program that nobody has.
pub(in crate::cli) fn digest(
    ctx: &mut Ctx<'_>,
    whose: &str,
    command: &[String],
) -> Result<Option<Digest>, CliError> {
    if let Some(word) = missing(ctx, command) {
        let message = format!("the {whose}'s program: no file {word}");
        return Err(CliError::not_found(
            message,
            "the same command with the file's right name",
        ));
    }
    let named = command.first().filter(|program| !program.contains('/'));
    if let Some(program) = named.filter(|program| !process::is_there(program, ctx.folder())) {
        let message = format!("the {whose}'s program: no {program} in any folder of PATH");
        return Err(CliError::not_found(
            message,
            "the same command with the program's path",
        ));
    }
    let mut files = Vec::new();
    for word in command {
        let path = ctx.path(word);
        if ambient::is_file(&path) {
            files.extend_from_slice(Digest::sha256(&ambient::read(&path)?).as_bytes());
        }
    }
    let program = command
        .first()
        .filter(|of| files.is_empty() && !is_runner(of));
    if let Some(path) = program.and_then(|of| process::found(of, ctx.folder())) {
        files.extend_from_slice(Digest::sha256(&ambient::read(&path)?).as_bytes());
    }
    Ok((!files.is_empty()).then(|| Digest::sha256(&files)))
}

/// Refuses a program whose files are not those that the judge was registered with.
pub(in crate::cli) fn same_files(
    ctx: &mut Ctx<'_>,
    judge: &JudgeRegistered,
    program: &Program,
) -> Result<(), CliError> {
    let Some(registered) = command::files(judge.model.as_str()) else {
        return Ok(());
    };
    let found = digest(ctx, "judge", &program.command)?.map(|files| files.to_hex());
    if found.as_deref() == Some(registered) {
        return Ok(());
    }
    let found = found.unwrap_or_else(|| "no file".to_owned());
    Err(CliError::refused(
        format!(
            "judge {}: expected the program that it was registered with, files {registered}, found {found}",
            judge.judge
        ),
        "the same command with that program, or a judge of another name",
    ))
}

/// The judge, ready to be asked.
pub(in crate::cli) fn port(
    ctx: &mut Ctx<'_>,
    judge: &JudgeRegistered,
    program: &Program,
) -> Result<Box<dyn Judge + Send>, CliError> {
    match judge.port {
        JudgePort::Builtin => Ok(Box::new(builtin::Builtin)),
        JudgePort::Command | JudgePort::Endpoint | JudgePort::Recorded => {
            if !program.command.is_empty() {
                same_files(ctx, judge, program)?;
            }
            let plan = command::ChildPlan {
                command: program.command.clone(),
                folder: ctx.folder().to_owned(),
                limit: Duration::from_secs(program.timeout),
                restarts_max: RESTARTS_MAX,
            };
            let found = command::Command::new(plan);
            let found =
                found.map(|program| Box::new(program.on(judge.scale)) as Box<dyn Judge + Send>);
            found.ok_or_else(|| {
                let message = format!("judge {} is a program: say how it is started", judge.judge);
                CliError::usage(message, "the same command with -- COMMAND")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_run_others_are_known_in_any_version() {
        for program in [
            "python",
            "python3",
            "python3.12",
            "node",
            "Rscript",
            "bash",
            "perl5.38",
        ] {
            assert!(is_runner(program), "{program}");
        }
        for program in ["myjudge", "judge2", "pythonic", "score.py"] {
            assert!(!is_runner(program), "{program}");
        }
    }
}
