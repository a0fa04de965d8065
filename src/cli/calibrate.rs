//! `clover calibrate`: calibrators on record, and new scores that become calibrated ones.

use std::io::BufRead;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::session::calibrators;
use crate::session::calibrators::RefittedCalibrator;
use crate::view::View;
use crate::view::calibrate;
use crate::view::calibrate::CalibratedScore;

const HELP: &str = "clover calibrate apply --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Every calibrator on record
    #[command(after_help = "Example:\n  clover calibrate list")]
    List,
    /// One calibrator and its curve
    #[command(after_help = "Example:\n  clover calibrate show 4127")]
    Show(CalibratorArgs),
    /// What new scores become
    #[command(
        after_help = "Lines of --rows: {\"score\": 0.8}, with each covariate by its name beside it. The calibrator is fitted\n\
                      again from the rows that it names, and refused where it is not the one on record.\n\n\
                      Example:\n  clover calibrate apply --score 0.8\n  clover calibrate apply 4127 --rows new.jsonl --json"
    )]
    Apply(Apply),
}

#[derive(Debug, clap::Args)]
pub(super) struct CalibratorArgs {
    /// Its position, event id or digest; else the newest of an estimate
    #[arg(value_name = "SEQ|ID|DIGEST")]
    pub calibrator: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Apply {
    #[command(flatten)]
    pub named: CalibratorArgs,
    /// A score, as the judge gives it
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with = "rows",
        required_unless_present = "rows"
    )]
    pub score: Vec<f64>,
    /// A covariate of it
    #[arg(long, value_name = "NAME=NUMBER", conflicts_with = "rows")]
    pub covariate: Vec<String>,
    /// JSON Lines of scores, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            let size = at.state(&ledger).size;
            Ok(calibrate::list(&calibrators::list(&ledger, size)?))
        }
        Verb::Show(named) => Ok(calibrate::show(&loaded(ctx, named)?)),
        Verb::Apply(args) => apply(ctx, args),
    }
}

fn loaded(ctx: &mut Ctx<'_>, named: &CalibratorArgs) -> Result<RefittedCalibrator, CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let size = at.state(&ledger).size;
    let fit = calibrators::find(&ledger, size, named.calibrator.as_deref())?;
    Ok(calibrators::load(&home, &ledger, fit)?)
}

fn apply(ctx: &mut Ctx<'_>, args: &Apply) -> Result<View, CliError> {
    let loaded = loaded(ctx, &args.named)?;
    let scores = if let Some(path) = &args.rows {
        let reader = ctx.reader(path)?;
        of_rows(&loaded, path, reader)?
    } else {
        let covariates = given(&loaded, &args.covariate)?;
        let one = |score: &f64| calibrated(&loaded, *score, &covariates).map_err(usage);
        args.score.iter().map(one).collect::<Result<_, _>>()?
    };
    Ok(calibrate::applied(&loaded, scores))
}

fn usage(message: String) -> CliError {
    CliError::usage(message, HELP)
}

/// The covariates of one score, in the calibrator's order.
fn given(loaded: &RefittedCalibrator, words: &[String]) -> Result<Vec<f64>, CliError> {
    let mut named = Vec::with_capacity(words.len());
    for word in words {
        let pair = word.split_once('=');
        let value = pair.and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        let wrong = || usage(format!("--covariate {word:?}: expected NAME=NUMBER"));
        named.push(
            value
                .filter(|(_, value)| value.is_finite())
                .ok_or_else(wrong)?,
        );
    }
    if let Some((name, _)) = named
        .iter()
        .find(|(name, _)| loaded.covariates().all(|known| known != *name))
    {
        return Err(usage(format!(
            "--covariate {name}: this calibrator reads no {name}"
        )));
    }
    let value = |name: &str| {
        let found = named.iter().find(|(known, _)| *known == name);
        let missing = || {
            usage(format!(
                "this calibrator reads {name}: give --covariate {name}=NUMBER"
            ))
        };
        found.map(|(_, value)| *value).ok_or_else(missing)
    };
    loaded.covariates().map(value).collect()
}

fn calibrated(
    loaded: &RefittedCalibrator,
    score: f64,
    covariates: &[f64],
) -> Result<CalibratedScore, String> {
    let found = loaded.apply(score, covariates).ok_or_else(|| {
        let (low, high) = loaded.scores();
        format!("score {score}: this calibrator reads scores from {low} to {high}")
    })?;
    Ok(CalibratedScore {
        score,
        calibrated: found.value,
        beyond_labels: found.is_beyond,
    })
}

/// The scores of a file, each line held to what the calibrator reads.
fn of_rows(
    loaded: &RefittedCalibrator,
    path: &Path,
    reader: impl BufRead,
) -> Result<Vec<CalibratedScore>, CliError> {
    let mut scores = Vec::new();
    for (at, line) in reader.lines().enumerate() {
        let wrong = |field: &str, what: &str| {
            let message = format!("{}: line {}: {field}: {what}", path.display(), at + 1);
            CliError::input(message, HELP)
        };
        let line = line.map_err(|error| wrong("line", &error.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_str(&line)
            .map_err(|_| wrong("line", "expected one JSON object, such as {\"score\": 0.8}"))?;
        let number = |field: &str| {
            let value = row.get(field).and_then(Value::as_f64);
            value.ok_or_else(|| wrong(field, "expected a number"))
        };
        let covariates: Vec<_> = loaded.covariates().map(number).collect::<Result<_, _>>()?;
        let one = calibrated(loaded, number("score")?, &covariates);
        scores.push(one.map_err(|what| wrong("score", &what))?);
    }
    Ok(scores)
}
