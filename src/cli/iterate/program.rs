//! The judge of an iteration, ready to be asked.

use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::judge_refusals;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::JudgeRegistered;
use crate::num::Micro;
use crate::workflow::judge::Ask;
use crate::workflow::judge::Judge;
use crate::workflow::judge::JudgeError;
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

/// A judge that is asked no more once it failed: what it did not answer is not to be taken for what cannot be scored.
pub(in crate::cli) struct Watched {
    judge: Box<dyn Judge + Send>,
    failed: Option<JudgeError>,
}

impl Judge for Watched {
    fn score(&mut self, ask: &Ask<'_>) -> Result<Micro, JudgeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let answer = self.judge.score(ask);
        if let Err(error) = &answer
            && !matches!(error, JudgeError::Declined(_))
        {
            self.failed = Some(error.clone());
        }
        answer
    }
}

impl Watched {
    /// As [`port`].
    pub(in crate::cli) fn open(
        ctx: &Ctx<'_>,
        judge: &JudgeRegistered,
        program: &Program,
    ) -> Result<Self, CliError> {
        let judge = port(ctx, judge, program)?;
        let failed = None;
        Ok(Self { judge, failed })
    }

    /// Refuses to go on where it failed; what it was asked for is not on record.
    pub(in crate::cli) fn answered(&self, what: &str) -> Result<(), CliError> {
        match &self.failed {
            None => Ok(()),
            Some(error) => {
                let message = format!("{what}: {error}; nothing of it was recorded");
                Err(judge_refusals::silent(message, error))
            }
        }
    }
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
