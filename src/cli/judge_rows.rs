//! What a judge's verbs take: the judge as it was asked for, its rows, and the ledger.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::intake_files;
use crate::cli::intake_files::Scores;
use crate::cli::iterate::program::Program;
use crate::cli::judge::Common;
use crate::event::id::JudgeId;
use crate::event::id::Text;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::judge::Assignment;
use crate::session::judge::assignment::JudgeSpec;
use crate::session::judge::assignment::Model;
use crate::workflow::judge::run::Known;

const HELP: &str = "clover judge run --help";

/// What a judge's verb works on.
pub(super) struct Desk {
    pub home: Home,
    pub ledger: Ledger,
    pub assignment: Assignment,
    pub program: Program,
}

/// What was read of `--known`, checked.
fn known(ctx: &mut Ctx<'_>, common: &Common) -> Result<Option<(Vec<u8>, Known)>, CliError> {
    let Some(path) = &common.known else {
        return Ok(None);
    };
    let bytes = ctx.read(path)?;
    let known = serde_json::from_slice(&bytes)
        .map_err(|error| CliError::input(format!("{}: {error}", path.display()), HELP))?;
    Ok(Some((bytes, known)))
}

/// The judge as the command line names it.
fn spec(ctx: &mut Ctx<'_>, common: &Common) -> Result<JudgeSpec, CliError> {
    let judge = JudgeId::new(common.judge.as_str())
        .map_err(|error| CliError::usage(format!("--judge {:?}: {error}", common.judge), HELP))?;
    if common.rows.is_empty() {
        return Err(CliError::usage("--rows PATH is missing", HELP));
    }
    let prompt = match &common.prompt {
        Some(path) => ctx.read(path)?,
        None => Vec::new(),
    };
    let known = known(ctx, common)?;
    let model = match (common.recorded, common.command.is_empty()) {
        (true, _) => Model::Recorded,
        (false, true) => Model::Builtin,
        (false, false) => {
            let name = Text::new(common.model.as_str());
            let wrong = || CliError::usage("--model: expected a text", HELP);
            Model::Program(name.ok_or_else(wrong)?)
        }
    };
    Ok(JudgeSpec {
        judge,
        model,
        prompt,
        known,
    })
}

impl Desk {
    /// Reads what was asked for, and the rows.
    pub(super) fn open(
        ctx: &mut Ctx<'_>,
        common: &Common,
        scores: Scores,
    ) -> Result<Self, CliError> {
        let spec = spec(ctx, common)?;
        let (home, ledger) = home::open_to_write(ctx)?;
        let experiment = intake::experiment(ledger.state(), common.experiment.as_deref())?;
        let pepper = home.vault(&ctx.ambient())?.pepper()?;
        let policy = common.policy.as_deref();
        let rows = intake_files::rows(ctx, &pepper, &common.rows, policy, scores)?;
        let program = Program {
            timeout: common.timeout,
            command: common.command.clone(),
        };
        let assignment = Assignment::new(experiment, spec, pepper, rows, common.children);
        Ok(Self {
            home,
            assignment: assignment.as_registered(&ledger)?,
            ledger,
            program,
        })
    }
}
