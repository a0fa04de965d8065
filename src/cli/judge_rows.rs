//! What a judge's verbs take: the judge as it was asked for, its rows, and the ledger.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::cli::intake_files;
use crate::cli::intake_files::KeptFields;
use crate::cli::intake_files::Scores;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::judge::JudgeArgs;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::id::Text;
use crate::event::payload::estimated::ScaleEnds;
use crate::event::payload::intake::ImportFormat;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::intake::held;
use crate::session::intake::responses;
use crate::session::judge::Assignment;
use crate::session::judge::assignment::JudgeSpec;
use crate::session::judge::assignment::Model;
use crate::workflow::import::ImportRow;
use crate::workflow::import::ImportRows;
use crate::workflow::judge::kinship;
use crate::workflow::judge::kinship::Kinship;
use crate::workflow::judge::run::ProbeEvidence;

const HELP: &str = "clover judge run --help";

/// What a judge's verb works on.
pub(super) struct Desk {
    pub home: Home,
    pub ledger: Ledger,
    pub assignment: Assignment,
    pub program: Program,
}

/// What was read of `--known`, checked.
fn known(
    ctx: &mut Ctx<'_>,
    common: &JudgeArgs,
) -> Result<Option<(Vec<u8>, ProbeEvidence)>, CliError> {
    let Some(path) = &common.known else {
        return Ok(None);
    };
    let bytes = ctx.read(path)?;
    let known = serde_json::from_slice(&bytes)
        .map_err(|error| CliError::input(format!("{}: {error}", path.display()), HELP))?;
    Ok(Some((bytes, known)))
}

/// What a program is told in every ask.
pub(super) fn told(ctx: &mut Ctx<'_>, file: Option<&Path>) -> Result<String, CliError> {
    let Some(path) = file else {
        return Ok(String::new());
    };
    let text = String::from_utf8(ctx.read(path)?).ok();
    text.filter(|text| !text.is_empty()).ok_or_else(|| {
        let message = format!("{}: expected a text in UTF-8", path.display());
        CliError::input(message, HELP)
    })
}

/// What answers as the judge.
fn model(ctx: &mut Ctx<'_>, common: &JudgeArgs, scores: Scores) -> Result<Model, CliError> {
    if common.recorded {
        return Ok(Model::Recorded);
    }
    if common.command.is_empty() {
        // Rows that bring their scores along ask nobody.
        let is_builtin = common.builtin || common.judge == BUILTIN || scores == Scores::Given;
        return is_builtin.then_some(Model::Builtin).ok_or_else(|| {
            let judge = shell::word(&common.judge);
            CliError::usage(
                format!("judge {judge}: expected a program after --, or --builtin for the built-in judge, a stand-in for trials"),
                format!("clover judge run --judge {judge} --model NAME -- COMMAND"),
            )
        });
    }
    let name = Text::new(common.model.as_str());
    let name = name.ok_or_else(|| CliError::usage("--model: expected a text", HELP))?;
    Ok(Model::Program(
        name,
        program::digest(ctx, "judge", &common.command)?,
    ))
}

/// The name that stands for the built-in judge.
const BUILTIN: &str = "builtin";

/// The scale that a program answers on; none where that is 0 to 1.
fn scale(common: &JudgeArgs) -> Result<Option<ScaleEnds>, CliError> {
    let Some(text) = common.scale.as_deref() else {
        return Ok(None);
    };
    let (low_micro, high_micro) = intake::scale("scale", text)?;
    if common.command.is_empty() {
        let message = "--scale: expected a program after --, whose answers are on that scale";
        return Err(CliError::usage(message, HELP));
    }
    let ends = ScaleEnds {
        high_micro,
        low_micro,
    };
    Ok(Some(ends).filter(|_| text != "0:1"))
}

/// The judge as the command line names it.
fn spec(ctx: &mut Ctx<'_>, common: &JudgeArgs, scores: Scores) -> Result<JudgeSpec, CliError> {
    let judge = JudgeId::new(common.judge.as_str())
        .map_err(|error| CliError::usage(format!("--judge {:?}: {error}", common.judge), HELP))?;
    let prompt = told(ctx, common.prompt.as_deref())?;
    let known = known(ctx, common)?;
    let model = model(ctx, common, scores)?;
    Ok(JudgeSpec {
        judge,
        model,
        prompt,
        known,
        scale: scale(common)?,
    })
}

/// Rows that `clover import rows` took in.
pub(super) fn held(
    ctx: &mut Ctx<'_>,
    (home, ledger): (&Home, &Ledger),
    experiment: &ExperimentId,
    policy: Option<&str>,
) -> Result<Vec<ImportRow>, CliError> {
    let mut found = held::rows(home, ledger, experiment)?;
    for (seq, why) in &found.silent {
        ctx.warn(format!("the rows of seq {seq} are not judged: {why}"));
    }
    let is_wanted = |row: &ImportRow| policy.is_none_or(|policy| row.policy.as_str() == policy);
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
        common: &JudgeArgs,
        scores: Scores,
    ) -> Result<Self, CliError> {
        Self::open_with(ctx, common, scores, KeptFields::default())
    }

    /// What the judge has in common with the policies that it judges, and with other judges.
    pub(super) fn kinship(&self) -> Vec<Kinship> {
        let of = &self.assignment;
        let policies: BTreeSet<&PolicyId> = of.rows.iter().map(|row| &row.policy).collect();
        let policies: Vec<&PolicyId> = policies.into_iter().collect();
        kinship::of(
            self.ledger.state(),
            &of.experiment,
            &of.registration,
            &policies,
        )
    }

    /// Takes the rows in before they are judged, as `clover import rows` does: with their times and fields.
    pub(super) fn take_in(
        &mut self,
        ctx: &mut Ctx<'_>,
        scorer: Option<&String>,
    ) -> Result<(), CliError> {
        let rows = ImportRows {
            file: "--rows".to_owned(),
            read: self.assignment.rows.len() as u64,
            rows: self.assignment.rows.clone(),
            ..ImportRows::default()
        };
        let experiment = &self.assignment.experiment;
        let plan = responses::plan(&self.home, &self.ledger, experiment, rows)?;
        let of = (experiment, ImportFormat::Cje);
        let ports = &mut ctx.ports().with_scorer(scorer);
        responses::import(ports, &self.home, &mut self.ledger, of, &plan)?;
        Ok(())
    }

    /// As [`open`](Self::open), with fields of the rows.
    pub(super) fn open_with(
        ctx: &mut Ctx<'_>,
        common: &JudgeArgs,
        scores: Scores,
        kept: KeptFields<'_>,
    ) -> Result<Self, CliError> {
        let mut spec = spec(ctx, common, scores)?;
        let (home, ledger) = home::open_to_write(ctx)?;
        let named = common.experiment.as_deref();
        let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
        spec.as_registered(&ledger, &experiment)?;
        let pepper = home.vault(&ctx.ambient())?.pepper()?;
        let policy = common.policy.as_deref();
        let rows = if common.rows.is_empty() && scores == Scores::Asked {
            held(ctx, (&home, &ledger), &experiment, policy)?
        } else if common.rows.is_empty() {
            return Err(CliError::usage("--rows PATH is missing", HELP));
        } else {
            intake_files::rows(ctx, &pepper, &common.rows, policy, (scores, kept))?
        };
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
