//! `clover judge`: ask a judge for scores that are kept once, list judges, and see whether one says the same again.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::judge_drift;
use crate::cli::judge_refusals;
use crate::cli::judge_rows;
use crate::cli::judge_rows::Desk;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::Root;
use crate::event::payload::judge::ScoreConflict;
use crate::event::payload::scoring::ScoreReplayed;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::Appended;
use crate::ledger::Command;
use crate::num::Count;
use crate::num::Micro;
use crate::session::judge::ask;
use crate::workflow::import::Row;
use crate::workflow::judge::run;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Score rows that have no score of this judge yet, and record what was found in them
    #[command(
        after_help = "Example:\n  clover judge run --judge llm --rows sim/responses --known sim/known.json -- python3 judge.py"
    )]
    Run(RunArgs),
    /// Judges that are registered
    #[command(after_help = "Example:\n  clover judge list")]
    List,
    /// Score a sample of recorded rows again and record whether anything differs
    #[command(
        after_help = "Example:\n  clover judge rescore-check --judge builtin --rows sim/responses --known sim/known.json"
    )]
    RescoreCheck(CheckArgs),
    /// Score the anchors again and record whether the judge still ranks and scores them as it did
    #[command(
        override_usage = "clover judge drift --judge <ID> --rows <PATH> [OPTIONS] [-- COMMAND...]",
        mut_arg("command", |arg| arg.hide(true)),
        mut_arg("recorded", |arg| arg.hide(true)),
        after_help = "Recorded however it ends; exit 0 where it passes, 10 where it fails, 12 where it is inconclusive.\n\n\
                      Example:\n  clover judge drift --judge llm --anchors anchors-1 --rows anchors -- python3 judge.py"
    )]
    Drift(judge_drift::Args),
}

/// Who judges what.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// The judge's name
    #[arg(long, value_name = "ID")]
    pub judge: String,
    /// Rows with prompts and responses
    #[arg(
        long,
        value_name = "PATH",
        help = "JSON Lines with prompts and responses, or folders of them"
    )]
    pub rows: Vec<PathBuf>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from file name or `target_policy`
    #[arg(
        long,
        value_name = "ID",
        help = "Whose responses; default from file name or target_policy"
    )]
    pub policy: Option<String>,
    /// What is known of sources, facts and tool calls
    #[arg(
        long,
        value_name = "FILE",
        help = "JSON of known sources, facts and tool calls"
    )]
    pub known: Option<PathBuf>,
    /// The judge's template with the rubric fields that it shows
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// Name of the model behind a command
    #[arg(long, value_name = "TEXT", default_value = "command")]
    pub model: String,
    /// Take the scores that were imported
    #[arg(long, conflicts_with = "command")]
    pub recorded: bool,
    /// Seconds for one answer of a command
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// Children that are asked side by side
    #[arg(short = 'j', value_name = "N", default_value_t = 1)]
    pub children: u16,
    /// A command that scores; without one the built-in judge does
    #[arg(
        last = true,
        value_name = "COMMAND",
        help = "A program that scores; default the built-in judge"
    )]
    pub command: Vec<String>,
}

impl Common {
    /// How long an answer of a command may take.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub common: Common,
    /// What the sample is drawn with
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<Answer, CliError> {
    match verb {
        Verb::Run(args) => score(ctx, &args.common),
        Verb::List => list(ctx),
        Verb::RescoreCheck(args) => check(ctx, args),
        Verb::Drift(args) => judge_drift::run(ctx, args),
    }
}

/// Rows that are judged and recorded together.
const BATCH: usize = 1_024;

fn count(value: usize) -> Count {
    Count::new(value as u64).expect("BUG: no file has 2^53 rows")
}

fn score(ctx: &mut Ctx<'_>, common: &Common) -> Result<Answer, CliError> {
    let mut desk = Desk::open(ctx, common)?;
    let registered = desk.register(ctx)?;
    let done = desk.recorded()?;
    let (mut already, mut fresh) = (0, Vec::new());
    for row in std::mem::take(&mut desk.rows) {
        let reading = desk.read(&row)?;
        if done.contains_key(&reading.raw_key) {
            already += 1;
        } else {
            fresh.push((row, reading));
        }
    }
    let all = fresh.len();
    let mut judges = desk.judges(ctx, common, fresh.iter().map(|(row, _)| row))?;
    let (mut scored, mut conflicts) = (0, 0);
    let mut failed = None;
    let mut rest = fresh.into_iter();
    while failed.is_none() {
        let batch: Vec<_> = rest.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let answers = ask::ask(&mut judges, &batch);
        let mut good = Vec::with_capacity(batch.len());
        for ((row, reading), answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok(base) => good.push((row, reading, base)),
                Err(error) if failed.is_none() => failed = Some((row.item.clone(), error)),
                Err(_) => {}
            }
        }
        let counts = desk.record(ctx, &registered, good)?;
        scored += counts.recorded;
        conflicts += counts.differing;
        ctx.progress("rows judged").at(scored as u64, all as u64);
    }
    desk.settle(ctx)?;
    if let Some((item, error)) = failed {
        return Err(judge_refusals::stopped(
            &format!("{item}: {error}"),
            scored,
            &error,
        ));
    }
    for judge in &mut judges {
        judge
            .finish()
            .map_err(|error| judge_refusals::stopped(&error.to_string(), scored, &error))?;
    }
    finished(&desk, (scored, already, conflicts))
}

/// The answer of a run.
fn finished(
    desk: &Desk,
    (scored, already, conflicts): (usize, usize, usize),
) -> Result<Answer, CliError> {
    let data = json!({
        "judge": desk.judge.as_str(), "scored": scored, "already": already, "conflicts": conflicts,
    });
    if conflicts > 0 {
        let message = format!(
            "score_once: {conflicts} scores differ from what is recorded; each is on record as score.conflict, and the first stands"
        );
        let mut error = CliError::refused(message, "clover log --kind score.conflict");
        error.data = data;
        return Err(error);
    }
    let size = ui::thousands(desk.ledger.size());
    let root = desk.ledger.root().to_base64();
    let text = ui::pairs(&[
        ("judge", desk.judge.to_string()),
        ("scored", ui::thousands(scored as u64)),
        ("already", ui::thousands(already as u64)),
        ("log", format!("{size} entries · root {root}")),
    ]);
    let mut answer = Answer::new(text, data);
    answer.verdict = if scored == 0 {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((desk.ledger.size(), root));
    Ok(answer.with_next(format!(
        "clover judge rescore-check --judge {} --rows …",
        shell::word(&desk.judge)
    )))
}

fn check(ctx: &mut Ctx<'_>, args: &CheckArgs) -> Result<Answer, CliError> {
    let mut desk = Desk::open(ctx, &args.common)?;
    let registered = desk.registered()?;
    let recorded = desk.recorded()?;
    let mut here = Vec::new();
    for row in std::mem::take(&mut desk.rows) {
        let reading = desk.read(&row)?;
        if recorded.contains_key(&reading.raw_key) {
            here.push((row, reading));
        }
    }
    let keys: Vec<Digest> = here.iter().map(|(_, reading)| reading.raw_key).collect();
    let found = keys.len();
    let sample = run::sample(&keys, args.seed).ok_or_else(|| {
        let message = format!("judge: expected at least 30 rows that are on record, found {found}");
        CliError::refused(message, "clover judge run --judge ID --rows PATH")
    })?;
    here.retain(|(_, reading)| sample.binary_search(&reading.raw_key).is_ok());
    let mut judges = desk.judges(ctx, &args.common, here.iter().map(|(row, _)| row))?;
    let answers = ask::ask(&mut judges, &here);
    let (mut mismatches, mut conflicts) = (0_usize, Vec::new());
    for ((row, reading), answer) in here.iter().zip(answers) {
        let base = answer.map_err(|error| {
            judge_refusals::stopped(&format!("{}: {error}", row.item), 0, &error)
        })?;
        let old = &recorded[&reading.raw_key];
        mismatches += usize::from(old.b_micro != base || old.evidence != reading.evidence);
        if old.b_micro != base {
            conflicts.push((row.clone(), base));
        }
    }
    for judge in &mut judges {
        judge
            .finish()
            .map_err(|error| judge_refusals::stopped(&error.to_string(), 0, &error))?;
    }
    let payload = ScoreReplayed {
        judge: desk.judge.clone(),
        keys: count(sample.len()),
        keys_root: Root(run::root(
            sample.iter().map(|key| key.as_bytes().as_slice()),
        )),
        mismatches: count(mismatches),
        seed: Count::new(args.seed).ok_or_else(|| {
            CliError::usage(
                "--seed: expected below 2^53",
                "clover judge rescore-check --help",
            )
        })?,
    };
    let appended = replayed(ctx, &mut desk, &registered, payload.clone(), conflicts)?;
    told(&payload, &appended)
}

/// Appends a re-score and the conflicts that it found.
fn replayed(
    ctx: &mut Ctx<'_>,
    desk: &mut Desk,
    registered: &judge_rows::Registered,
    payload: ScoreReplayed,
    conflicts: Vec<(Row, Micro)>,
) -> Result<Vec<Appended>, CliError> {
    let differing: Vec<ScoreConflict> = desk.conflicts(conflicts)?;
    let experiment = Some(desk.experiment.clone());
    let mut commands = vec![Command::new(payload, experiment.clone())];
    commands.extend(
        differing
            .into_iter()
            .map(|conflict| Command::new(conflict, experiment.clone())),
    );
    for command in &mut commands {
        command.refs = vec![registered.id];
    }
    let signer = wallet::signer(ctx, desk.ledger.state(), Kind::ScoreReplayed)?;
    let appended = desk.ledger.append(&commands, &signer)?;
    desk.settle(ctx)?;
    Ok(appended)
}

/// The answer of a re-score.
fn told(payload: &ScoreReplayed, appended: &[Appended]) -> Result<Answer, CliError> {
    let (keys, mismatches) = (payload.keys.value(), payload.mismatches.value());
    let data = json!({
        "judge": payload.judge.as_str(), "keys": keys, "mismatches": mismatches,
        "keys_root": payload.keys_root.0.to_base64(),
    });
    if mismatches > 0 {
        let message = format!(
            "{mismatches} of {keys} rows were scored differently this time; it is on record as score.replayed"
        );
        let mut error = CliError::refused(message, format!("clover show {}", appended[0].seq));
        error.data = data;
        return Err(error);
    }
    let text = ui::pairs(&[
        ("judge", payload.judge.to_string()),
        ("scored again", ui::thousands(keys)),
        ("mismatches", "0".to_owned()),
    ]);
    let mut answer = Answer::new(text, data).with_events(appended);
    answer.verdict = "pass";
    Ok(answer)
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger, _) = home::view(ctx)?;
    let end = ctx.as_of.map_or(ledger.size(), |seq| seq + 1);
    let mut judges: Vec<(String, judge_rows::Standing)> = Vec::new();
    ledger.entries(0, end, |read| {
        let experiment = read
            .event
            .header
            .experiment
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let of = |judges: &mut Vec<(String, judge_rows::Standing)>, judge: &str| {
            judges.iter().position(|(within, standing)| {
                *within == experiment && standing.registered.judge.as_str() == judge
            })
        };
        match read.event.payload {
            Payload::JudgeRegistered(registered) => {
                judges.push((
                    experiment,
                    judge_rows::Standing::new(*registered, read.stored.seq),
                ));
            }
            Payload::EvidenceRecorded(said) => {
                if let Some(at) = of(&mut judges, said.judge.as_str()) {
                    judges[at].1.records += said.records_count.value();
                }
            }
            Payload::ScoreReplayed(replayed) => {
                if let Some(at) = of(&mut judges, replayed.judge.as_str()) {
                    judges[at].1.replayed =
                        Some((replayed.keys.value(), replayed.mismatches.value()));
                }
            }
            _ => {}
        }
        Ok::<_, CliError>(())
    })?;
    let rows = judges.iter().map(|(experiment, standing)| {
        let mut row = vec![experiment.clone()];
        row.extend(standing.cells());
        row
    });
    let head = [
        "experiment",
        "judge",
        "port",
        "model",
        "rows",
        "re-score",
        "registered",
    ];
    let data = judges
        .iter()
        .map(|(experiment, standing)| standing.json(experiment))
        .collect::<Vec<_>>();
    Ok(Answer::new(
        ui::table(&head, rows.collect()),
        json!({"judges": data}),
    ))
}
