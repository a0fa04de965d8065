//! Scoring again: a sample of recorded rows is judged anew from the texts that the ledger keeps.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::ground::Done;
use crate::cli::judge_rows;
use crate::cli::texts::Texts;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::Root;
use crate::event::payload::judge::ScoreConflict;
use crate::event::payload::judge::ScoreRecorded;
use crate::event::payload::scoring::JudgePort;
use crate::event::payload::scoring::JudgeRegistered;
use crate::event::payload::scoring::ScoreReplayed;
use crate::ground::digest::Digest;
use crate::ledger::History;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::num::Micro;
use crate::workflow::import::Row;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::record::Step;
use crate::workflow::iterate::rows;
use crate::workflow::iterate::rows::Named;
use crate::workflow::judge::Judge;
use crate::workflow::judge::builtin;
use crate::workflow::judge::command;
use crate::workflow::judge::run;
use crate::workflow::judge::run::Frame;
use crate::workflow::judge::run::Known;
use crate::workflow::judge::run::Record;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    /// The judge's command, where it is one
    #[arg(
        last = true,
        value_name = "COMMAND",
        help = "The judge's program, where it is one"
    )]
    pub command: Vec<String>,
}

/// Seconds for one answer of a command.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
/// Times that a child is started anew for one ask.
const RESTARTS_MAX: u32 = 2;

pub(super) fn score(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, &args.id)?;
    if !bench.record.is_callable() && bench.record.closed.is_none() {
        let (text, data) = unasked();
        return Ok(bench.answer(text, data, &[]));
    }
    bench.only(Step::Score)?;
    let (text, data, appended) = score_on(ctx, &mut bench, &args.command)?;
    Ok(bench.answer(text, data, &appended))
}

/// What is said where nobody can be asked.
fn unasked() -> (String, Value) {
    let text = "not_checked: these scores were imported, and nobody can be asked for them again.\nA waiver of CLOVER.J2 by two keys before the splits lets gate p0 pass all the same: clover assume waive\n";
    (text.to_owned(), json!({"verdict": "not_checked"}))
}

/// What is known of sources, facts and tool calls, as a judge registered it.
pub(super) fn known(ledger: &Ledger, judge: &JudgeRegistered) -> Result<Known, CliError> {
    let Some(blob) = &judge.known else {
        return Ok(Known::default());
    };
    let damaged = |what: String| {
        let message = format!("what judge {} knew: {what}", judge.judge);
        CliError::integrity("damaged", message, "clover verify")
    };
    let bytes = History::blob(ledger, &blob.blake3)?;
    let bytes = bytes.ok_or_else(|| damaged("its blob is not there".to_owned()))?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
}

/// The judge, ready to be asked.
pub(super) fn port(
    ctx: &Ctx<'_>,
    judge: &JudgeRegistered,
    words: &[String],
) -> Result<Box<dyn Judge + Send>, CliError> {
    match judge.port {
        JudgePort::Builtin => Ok(Box::new(builtin::Builtin)),
        JudgePort::Command | JudgePort::Recorded => {
            let plan = command::Plan {
                command: words.to_vec(),
                folder: ctx.folder().to_owned(),
                limit: LIMIT,
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

/// Prompt and response of a row; `None` where they were not taken in or their key is not here.
pub(super) fn texts_of(
    ledger: &Ledger,
    texts: &mut Texts<'_>,
    experiment: &ExperimentId,
    judge: &JudgeId,
    name: &Named,
) -> Result<Option<(String, String)>, CliError> {
    let like = Payload::from(ScoreRecorded {
        draw: name.draw,
        item: name.item.clone(),
        judge: judge.clone(),
        policy: name.policy.clone(),
        prompt: None,
        response: None,
        score_micro: Micro::default(),
    });
    let Some(key) = like.natural_key(Some(experiment)) else {
        return Ok(None);
    };
    let Some(seq) = ledger.giver(&key)? else {
        return Ok(None);
    };
    let read = ledger.entry(seq)?;
    let Some(Payload::ScoreRecorded(score)) = read.map(|read| read.event.payload) else {
        return Ok(None);
    };
    let (Some(prompt), Some(response)) = (&score.prompt, &score.response) else {
        return Ok(None);
    };
    Ok(texts.text(prompt).ok().zip(texts.text(response).ok()))
}

/// Rows of a record as a judge reads them.
fn row_of(record: &Record, (prompt, response): (String, String)) -> Row {
    Row {
        line: 0,
        item: record.item.clone(),
        policy: record.policy.clone(),
        draw: record.draw,
        score: record.b_micro,
        label: None,
        prompt: Some(prompt),
        response: Some(response),
        sampled_at: None,
        logprobs: None,
        fields: BTreeMap::new(),
    }
}

type Drawn = (BTreeMap<Digest, Record>, Vec<Digest>, u64);

/// Records of a judge, a sample of their keys, and its seed.
fn drawn(bench: &Bench, judge: &JudgeRegistered) -> Result<Drawn, CliError> {
    let experiment = &bench.record.experiment;
    let records = rows::records(&bench.ledger, experiment, &judge.judge, bench.ledger.size());
    let records = records.map_err(|error| failed(CourseError::Rows(error)))?;
    let keys: Vec<Digest> = records.keys().copied().collect();
    let seed = rows::number(&bench.record.opened.said.params, &bench.id, "rescore");
    let sample = run::sample(&keys, seed).ok_or_else(|| {
        let message = format!(
            "expected at least 30 rows with a record, found {}",
            keys.len()
        );
        CliError::refused(message, "clover judge run --judge ID --rows PATH")
    })?;
    Ok((records, sample, seed))
}

/// What a re-score found; that something differs is on record, and refused.
fn told(
    judge: &JudgeRegistered,
    sampled: usize,
    mismatches: u64,
) -> Result<(String, Value), CliError> {
    let text = ui::pairs(&[
        ("judge", judge.judge.to_string()),
        ("scored again", ui::thousands(sampled as u64)),
        ("mismatches", mismatches.to_string()),
    ]);
    let data = json!({"judge": judge.judge.as_str(), "keys": sampled, "mismatches": mismatches});
    if mismatches > 0 {
        let message = format!(
            "{mismatches} of {sampled} rows were scored differently this time; it is on record, and gate p0 fails"
        );
        return Err(CliError::refused(
            message,
            "clover log --kind score.replayed",
        ));
    }
    Ok((text, data))
}

/// Draws a sample of records, scores it again, and records what differs.
pub(super) fn score_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    words: &[String],
) -> Result<Done, CliError> {
    let judge = bench.record.judge().cloned();
    let judge =
        judge.ok_or_else(|| CliError::refused("no judge is registered", "clover judge list"))?;
    let experiment = bench.record.experiment.clone();
    let (records, sample, seed) = drawn(bench, &judge)?;
    let pepper = Zeroizing::new(bench.home.vault(ctx)?.pepper()?);
    let frame = Frame::new(judge.clone(), known(&bench.ledger, &judge)?, *pepper);
    let mut texts = Texts::new(ctx, &bench.home, &bench.ledger)?;
    let mut port = port(ctx, &judge, words)?;
    let (mut mismatches, mut conflicts) = (0_u64, Vec::new());
    for (done, key) in sample.iter().enumerate() {
        let record = &records[key];
        let name = Named {
            policy: record.policy.clone(),
            item: record.item.clone(),
            draw: record.draw,
        };
        let found = texts_of(&bench.ledger, &mut texts, &experiment, &judge.judge, &name)?;
        let found = found.ok_or_else(|| {
            let message = format!(
                "the texts of {} are not at hand, so it cannot be scored again",
                record.item
            );
            CliError::not_found(
                message,
                format!(
                    "clover judge rescore-check --judge {} --rows PATH",
                    judge.judge
                ),
            )
        })?;
        let row = row_of(record, found);
        let reading = frame.read(&row);
        let reading =
            reading.ok_or_else(|| CliError::not_found("a row without texts", "clover doctor"))?;
        let base = reading.score(&row, port.as_mut());
        let base = base
            .map_err(|error| judge_rows::stopped(&format!("{}: {error}", row.item), 0, &error))?;
        mismatches += u64::from(base != record.b_micro || reading.evidence != record.evidence);
        if base != record.b_micro {
            conflicts.push((record.clone(), base));
        }
        ctx.progress("rows scored again")
            .at(done as u64 + 1, sample.len() as u64);
    }
    drop(texts);
    let conflicts = conflicting(bench, &experiment, &judge.judge, &conflicts)?;
    let leaves = sample.iter().map(|key| key.as_bytes().as_slice());
    let said = ScoreReplayed {
        judge: judge.judge.clone(),
        keys: Count::new(sample.len() as u64).unwrap_or_default(),
        keys_root: Root(run::root(leaves)),
        mismatches: Count::new(mismatches).unwrap_or_default(),
        seed: Count::new(seed).unwrap_or_default(),
    };
    let mut payloads: Vec<Payload> = conflicts.into_iter().map(Payload::from).collect();
    payloads.push(said.into());
    let appended = bench.say(ctx, payloads)?;
    let (text, data) = told(&judge, sample.len(), mismatches)?;
    Ok((text, data, appended))
}

/// Conflicts with recorded scores, as events.
fn conflicting(
    bench: &Bench,
    experiment: &ExperimentId,
    judge: &JudgeId,
    found: &[(Record, Micro)],
) -> Result<Vec<ScoreConflict>, CliError> {
    let mut conflicts = Vec::new();
    for (record, other) in found {
        let mut conflict = ScoreConflict {
            draw: record.draw,
            item: record.item.clone(),
            judge: judge.clone(),
            policy: record.policy.clone(),
            recorded: crate::event::id::EventId(Digest::sha256(b"")),
            recorded_micro: record.b_micro,
            score_micro: *other,
        };
        let like = Payload::from(ScoreRecorded {
            draw: record.draw,
            item: record.item.clone(),
            judge: judge.clone(),
            policy: record.policy.clone(),
            prompt: None,
            response: None,
            score_micro: record.b_micro,
        });
        let key = like.natural_key(Some(experiment));
        let seq = key
            .map(|key| bench.ledger.giver(&key))
            .transpose()?
            .flatten();
        let read = seq
            .map(|seq| bench.ledger.entry(seq))
            .transpose()?
            .flatten();
        if let Some(read) = read {
            conflict.recorded = read.event.id;
            conflicts.push(conflict);
        }
    }
    Ok(conflicts)
}
