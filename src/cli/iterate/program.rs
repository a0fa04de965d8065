//! The judge of an iteration, ready to be asked.

use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::JudgeRegistered;
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

/// The judge, ready to be asked.
pub(in crate::cli) fn port(
    ctx: &Ctx<'_>,
    judge: &JudgeRegistered,
    program: &Program,
) -> Result<Box<dyn Judge + Send>, CliError> {
    match judge.port {
        JudgePort::Builtin => Ok(Box::new(builtin::Builtin)),
        JudgePort::Command | JudgePort::Recorded => {
            let plan = command::Plan {
                command: program.command.clone(),
                folder: ctx.folder().to_owned(),
                limit: Duration::from_secs(program.timeout),
                restarts_max: RESTARTS_MAX,
            };
            let found = command::Command::new(plan);
            let found = found.map(|judge| Box::new(judge) as Box<dyn Judge + Send>);
            found.ok_or_else(|| {
                let message = format!("judge {} is a program: say how it is started", judge.judge);
                CliError::usage(message, "the same command with -- COMMAND")
            })
        }
    }
}
