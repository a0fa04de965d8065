//! What a judge's verbs take: the judge as it was asked for, its rows, and the ledger.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::intake_files;
use crate::cli::intake_files::Scores;
use crate::cli::iterate::program::Program;
use crate::cli::judge::Common;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::Text;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::intake::held;
use crate::session::judge::Assignment;
use crate::session::judge::assignment::JudgeSpec;
use crate::session::judge::assignment::Model;
use crate::workflow::import::Row;
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

/// Rows that `clover import rows` took in.
fn held(
    ctx: &mut Ctx<'_>,
    (home, ledger): (&Home, &Ledger),
    experiment: &ExperimentId,
    policy: Option<&str>,
) -> Result<Vec<Row>, CliError> {
    let mut found = held::rows(home, ledger, experiment)?;
    for (seq, why) in &found.silent {
        ctx.warn(format!("the rows of seq {seq} are not judged: {why}"));
    }
    let is_wanted = |row: &Row| policy.is_none_or(|policy| row.policy.as_str() == policy);
    found.rows.retain(is_wanted);
    if found.rows.is_empty() {
        let of = policy.map_or_else(String::new, |policy| format!(" of {policy}"));
        let message = format!("{experiment} holds no rows{of} that were taken in to be judged");
        return Err(CliError::not_found(
            message,
            "clover import rows FILE, or the same command with --rows PATH",
        ));
    }
    Ok(found.rows)
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
        let rows = if common.rows.is_empty() && scores == Scores::Asked {
            held(ctx, (&home, &ledger), &experiment, policy)?
        } else if common.rows.is_empty() {
            return Err(CliError::usage("--rows PATH is missing", HELP));
        } else {
            intake_files::rows(ctx, &pepper, &common.rows, policy, scores)?
        };
        let program = Program {
            timeout: common.timeout,
            command: common.command.clone(),
        };
        Ok(Self {
            home,
            ledger,
            assignment: Assignment::new(experiment, spec, pepper, rows, common.children),
            program,
        })
    }
}
