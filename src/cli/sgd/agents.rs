//! Gradients and patches by a program of people's own: one line of JSON in, one out, started anew for each ask.

use std::time::Duration;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::key;
use crate::event::id::Text;
use crate::event::payload::sgd::SgdAgents;
use crate::event::payload::sgd::SgdOpened;
use crate::ground::process::Child;
use crate::ground::process::Heard;
use crate::workflow::judge::command;
use crate::workflow::sgd::agents::Agents;
use crate::workflow::sgd::agents::PatchAsk;

/// Seconds that an answer may take at least.
const PATIENCE: u64 = 300;
/// How long a program whose output ended may take to end itself.
const END_WAIT: Duration = Duration::from_secs(2);

/// A program.
pub(super) struct AgentsProgram {
    command: Vec<String>,
    folder: std::path::PathBuf,
    limit: Duration,
    /// Its name with the digest of its files.
    pub model: Text,
}

/// The program of `--agents`.
pub(super) fn program(
    ctx: &mut Ctx<'_>,
    text: Option<&str>,
    judge: &Program,
) -> Result<Option<AgentsProgram>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let files = program::digest(ctx, "agents", &words)?;
    let name = key::text("agents", text)?;
    Ok(Some(AgentsProgram {
        command: words,
        folder: ctx.folder().to_owned(),
        limit: Duration::from_secs(judge.timeout.max(PATIENCE)),
        model: command::model(&name, files.as_ref()),
    }))
}

/// Refuses to go on with other agents than a run was opened for.
pub(super) fn check_same(
    said: &SgdOpened,
    program: Option<&AgentsProgram>,
) -> Result<(), CliError> {
    let found = program.map(|of| &of.model);
    let is_same = match said.agents {
        SgdAgents::Aggregate | SgdAgents::Endpoint => found.is_none(),
        SgdAgents::Command => found == Some(&said.model),
    };
    if is_same {
        return Ok(());
    }
    let found = found.map_or("none", Text::as_str);
    Err(CliError::refused(
        format!(
            "run {}: expected {}, found {found}",
            said.run,
            said.model.as_str()
        ),
        "the same command with --agents as it was opened",
    ))
}

impl AgentsProgram {
    pub(super) fn as_agents(&mut self) -> &mut dyn Agents {
        self
    }

    fn ask(&self, line: &str) -> Result<String, String> {
        let (program, args) = self.command.split_first().ok_or("no command")?;
        let child = Child::start(program, args, &self.folder);
        let mut child = child.map_err(|error| format!("{program}: {error}"))?;
        child.say(line);
        match child.hear(self.limit) {
            Heard::Line(line) => Ok(line),
            Heard::Late => Err(format!("none within {} s", self.limit.as_secs())),
            Heard::Ended => {
                let end = child.finish(END_WAIT);
                let end = end.map_or(String::new(), |words| format!(": {words}"));
                Err(format!("{program} ended without a line of JSON{end}"))
            }
        }
    }
}

impl Agents for AgentsProgram {
    fn gradient(&mut self, request: &str) -> Result<String, String> {
        self.ask(&format!("{{\"gradient\":{request}}}"))
    }

    fn propose(&mut self, ask: &PatchAsk) -> Result<Option<String>, String> {
        let answer = self.ask(&format!("{{\"patch\":{}}}", ask.to_json()))?;
        Ok((answer.trim() != "null").then_some(answer))
    }
}
