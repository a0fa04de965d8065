//! `clover calibrate`: calibrators on record, and new scores that become calibrated ones.

use std::io::BufRead;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake;
use crate::event::payload::estimated::ScaleEnds;
use crate::num::Micro;
use crate::projection::judges::Judges;
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
                      again from the rows that it names, and refused where it is not the one on record. That of an\n\
                      iteration is read from its curves; it takes scores as its rubric computes them, 0 to 1.\n\n\
                      Example:\n  clover calibrate apply --score 0.8\n  clover calibrate apply --score 80 --scale 0:100\n  clover calibrate apply 4127 --rows new.jsonl --json"
    )]
    Apply(Apply),
}

#[derive(Debug, clap::Args)]
pub(super) struct CalibratorArgs {
    /// Its position, event id or digest; else the newest of an estimate over all rows
    #[arg(value_name = "SEQ|ID|DIGEST")]
    pub calibrator: Option<String>,
    /// The newest of one environment, such as domain=law
    #[arg(long, value_name = "FAMILY=NAME", conflicts_with = "calibrator")]
    pub environment: Option<String>,
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
    /// The scale that these scores are on, where it is the judge's own and not the recorded one
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub scale: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            let size = at.state(&ledger).size;
            Ok(calibrate::list(&calibrators::list(&ledger, size)?))
        }
        Verb::Show(named) => Ok(calibrate::show(&loaded(ctx, named)?.0)),
        Verb::Apply(args) => apply(ctx, args),
    }
}

/// A calibrator, with the scale that its judge answers on where its scores are recorded as shares of it.
fn loaded(
    ctx: &mut Ctx<'_>,
    named: &CalibratorArgs,
) -> Result<(RefittedCalibrator, Option<ScaleEnds>), CliError> {
    let (home, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let fit = match &named.environment {
        Some(environment) => calibrators::local(&ledger, state.size, environment)?,
        None => calibrators::find(&ledger, state.size, named.calibrator.as_deref())?,
    };
    let judges = state.fold::<Judges>().of(&fit.experiment);
    let judge = judges.and_then(|of| of.judges.get(&fit.said.terms.judge));
    // The scores of an iteration are computed by its rubric: they are on no scale of the judge.
    let is_of_judge = fit.said.terms.iteration.is_none();
    let own = judge.and_then(|of| of.said.scale).filter(|_| is_of_judge);
    Ok((calibrators::load(&home, &ledger, fit)?, own))
}

/// Scores as they are given become those that the calibrator reads.
struct Reading {
    loaded: RefittedCalibrator,
    /// The scale that the judge answers on, where scores on record are shares of it.
    own: Option<ScaleEnds>,
    /// Ends of the scale that scores are given on, where it is another than the recorded one.
    given: Option<(f64, f64)>,
}

impl Reading {
    /// Of a calibrator, for scores on the scale that was named.
    fn new(
        (loaded, own): (RefittedCalibrator, Option<ScaleEnds>),
        named: Option<&str>,
    ) -> Result<Self, CliError> {
        let Some(text) = named else {
            let given = None;
            return Ok(Self { loaded, own, given });
        };
        let (low, high) = intake::scale("scale", text)?;
        let micro = |micro: Micro| micro.value() as f64 / 1e6;
        let said = (micro(low), micro(high));
        let answers = own.map(|own| (micro(own.low_micro), micro(own.high_micro)));
        let given = match answers {
            Some(answers) if answers == said => Some(said),
            _ if loaded.scores() == said => None,
            _ => {
                let (low, high) = answers.unwrap_or(loaded.scores());
                let message =
                    format!("--scale {text}: expected {low}:{high}, the scale of this judge");
                let next = format!("the same command with --scale {low}:{high}");
                return Err(CliError::usage(message, next));
            }
        };
        Ok(Self { loaded, own, given })
    }

    /// A score as the ledger would have recorded it.
    fn recorded(&self, score: f64) -> f64 {
        self.given
            .map_or(score, |(low, high)| (score - low) / (high - low))
    }

    /// What is said of a score that the calibrator does not read.
    fn off_scale(&self, score: f64) -> String {
        let (low, high) = self.given.unwrap_or(self.loaded.scores());
        let message = format!("score {score}: this calibrator reads scores from {low} to {high}");
        match (self.own, self.given) {
            (Some(own), None) => format!(
                "{message}, as they are recorded; for scores as the judge gives them add --scale {}:{}",
                own.low_micro, own.high_micro
            ),
            _ => message,
        }
    }
}

fn apply(ctx: &mut Ctx<'_>, args: &Apply) -> Result<View, CliError> {
    let reading = Reading::new(loaded(ctx, &args.named)?, args.scale.as_deref())?;
    let loaded = &reading.loaded;
    let scores = if let Some(path) = &args.rows {
        let reader = ctx.reader(path)?;
        of_rows(&reading, path, reader)?
    } else {
        let covariates = given(loaded, &args.covariate)?;
        let one = |score: &f64| calibrated(&reading, *score, &covariates).map_err(usage);
        args.score.iter().map(one).collect::<Result<_, _>>()?
    };
    if loaded.is_thin()
        && let Some(beyond) = scores.iter().find(|of| of.beyond_labels)
    {
        let message = format!(
            "score {}: {} labels were fitted, and none has a score as far out: no value is given where estimate would withhold it",
            beyond.score,
            loaded.fit.said.labels.value()
        );
        return Err(CliError::refused(message, "clover import labels FILE"));
    }
    Ok(calibrate::applied(loaded, scores))
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
    reading: &Reading,
    score: f64,
    covariates: &[f64],
) -> Result<CalibratedScore, String> {
    let found = reading.loaded.apply(reading.recorded(score), covariates);
    let found = found.ok_or_else(|| reading.off_scale(score))?;
    Ok(CalibratedScore {
        score,
        calibrated: found.value,
        beyond_labels: found.is_beyond,
    })
}

/// The scores of a file, each line held to what the calibrator reads.
fn of_rows(
    reading: &Reading,
    path: &Path,
    reader: impl BufRead,
) -> Result<Vec<CalibratedScore>, CliError> {
    let loaded = &reading.loaded;
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
        let one = calibrated(reading, number("score")?, &covariates);
        scores.push(one.map_err(|what| wrong("score", &what))?);
    }
    Ok(scores)
}
