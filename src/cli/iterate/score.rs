//! Scoring: rows that the judge has not scored yet, and a sample of recorded rows anew, both from the texts that the ledger
//! keeps.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::ground::Done;
use crate::cli::iterate::program;
use crate::cli::iterate::program::Program;
use crate::cli::judge_refusals;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::Root;
use crate::event::payload::judge::ScoreConflict;
use crate::event::payload::judge::ScoreRecorded;
use crate::event::payload::scoring::JudgeRegistered;
use crate::event::payload::scoring::ScoreReplayed;
use crate::ground::digest::Digest;
use crate::ground::shell;
use crate::ledger::History;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::num::Micro;
use crate::session::judge::Book;
use crate::session::judge::registration;
use crate::session::texts::Texts;
use crate::workflow::import::Row;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::record::Step;
use crate::workflow::iterate::rows;
use crate::workflow::iterate::rows::Asked;
use crate::workflow::iterate::rows::Named;
use crate::workflow::judge::Judge;
use crate::workflow::judge::run;
use crate::workflow::judge::run::Frame;
use crate::workflow::judge::run::Known;
use crate::workflow::judge::run::Record;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
    #[command(flatten)]
    pub program: Program,
}

/// Rows that are judged and recorded together.
const BATCH: usize = 256;

pub(super) fn score(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let mut bench = Bench::open(ctx, &args.id)?;
    if !bench.record.is_callable() && bench.record.closed.is_none() {
        let (text, data) = unasked();
        return Ok(bench.answer(text, data, &[]));
    }
    bench.only(Step::Score)?;
    let (text, data, appended) = score_on(ctx, &mut bench, &args.program)?;
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
    Ok(texts.opened(prompt).ok().zip(texts.opened(response).ok()))
}

/// A row as a judge reads it.
fn row_of(name: &Named, score: Micro, (prompt, response): (String, String)) -> Row {
    Row {
        line: 0,
        item: name.item.clone(),
        policy: name.policy.clone(),
        draw: name.draw,
        score,
        label: None,
        prompt: Some(prompt),
        response: Some(response),
        sampled_at: None,
        logprobs: None,
        fields: BTreeMap::new(),
    }
}

/// What the judge did and did not, by now.
fn asked(bench: &Bench, judge: &JudgeRegistered) -> Result<Asked, CliError> {
    let of = (&bench.record.experiment, &bench.id);
    let found = rows::asked(&bench.ledger, of, &judge.judge, bench.ledger.size());
    found.map_err(|error| failed(CourseError::Rows(error)))
}

/// A sample of a judge's records, and its seed.
fn drawn(bench: &Bench, of: &Asked) -> Result<(Vec<Digest>, u64), CliError> {
    let keys: Vec<Digest> = of.records.keys().copied().collect();
    let seed = rows::number(&bench.record.opened.said.params, &bench.id, "rescore");
    let sample = run::sample(&keys, seed).ok_or_else(|| {
        let message = format!(
            "expected at least 30 rows with a record, found {}",
            keys.len()
        );
        CliError::refused(message, "clover judge run --judge ID --rows PATH")
    })?;
    Ok((sample, seed))
}

/// What came of rows that the judge had not scored.
#[derive(Clone, Copy, Debug, Default)]
struct Scored {
    /// Rows that have a record now.
    recorded: usize,
    /// Rows whose answer differs from a score that was recorded before.
    differing: usize,
    /// Rows whose texts are not at hand.
    silent: usize,
}

/// Asks the judge about rows that it has not scored, and records its answers batch by batch: a run that is cut goes on
/// with what is left.
fn score_missing(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    (judge, frame): (&JudgeRegistered, &Frame),
    port: &mut dyn Judge,
    unscored: &[(Vec<JudgeId>, Named)],
) -> Result<Scored, CliError> {
    let mut found = Scored::default();
    if unscored.is_empty() {
        return Ok(found);
    }
    let experiment = bench.record.experiment.clone();
    let next = "clover judge list";
    let standing = registration::standing(&bench.ledger, &experiment, &judge.judge)?;
    let registered = standing.ok_or_else(|| CliError::refused("no judge is registered", next))?;
    let signer = wallet::signer(ctx, bench.ledger.state(), Kind::ScoreRecorded)?;
    for batch in unscored.chunks(BATCH) {
        let mut good = Vec::with_capacity(batch.len());
        let mut texts = Texts::new(&bench.home, &bench.ledger)?;
        let mut stopped = None;
        for (scorers, name) in batch {
            let mut told = None;
            for by in scorers {
                if told.is_none() {
                    told = texts_of(&bench.ledger, &mut texts, &experiment, by, name)?;
                }
            }
            let row = told.map(|told| row_of(name, Micro::default(), told));
            let reading = row.as_ref().and_then(|row| frame.read(row));
            let Some((row, reading)) = row.zip(reading) else {
                found.silent += 1;
                continue;
            };
            match reading.score(&row, &mut *port) {
                Ok(base) => good.push((row, reading, base)),
                Err(error) => {
                    stopped = Some((name.item.clone(), error));
                    break;
                }
            }
        }
        drop(texts);
        let mut book = Book {
            home: &bench.home,
            ledger: &mut bench.ledger,
            experiment: &experiment,
            judge: &judge.judge,
            registered: registered.id,
            scorer: &signer,
        };
        let counts = book.record(good)?;
        bench.ledger.settle()?;
        found.recorded += counts.recorded;
        found.differing += counts.differing;
        if let Some((item, error)) = stopped {
            let message = format!("{item}: {error}");
            return Err(judge_refusals::stopped(&message, found.recorded, &error));
        }
        let done = (found.recorded + found.silent) as u64;
        ctx.progress("rows judged").at(done, unscored.len() as u64);
    }
    submit::warn_of_pin(ctx, &bench.ledger);
    bench.again()?;
    Ok(found)
}

/// What a re-score found; that something differs is on record, and refused.
fn told(
    judge: &JudgeRegistered,
    scored: Scored,
    (sampled, mismatches): (usize, u64),
) -> Result<(String, Value), CliError> {
    let mut rows = vec![("judge", judge.judge.to_string())];
    if scored.recorded > 0 {
        rows.push(("rows scored first", ui::thousands(scored.recorded as u64)));
    }
    if scored.silent > 0 {
        rows.push(("rows without texts", ui::thousands(scored.silent as u64)));
    }
    rows.push(("scored again", ui::thousands(sampled as u64)));
    rows.push(("mismatches", mismatches.to_string()));
    let text = ui::pairs(&rows);
    let data = json!({
        "judge": judge.judge.as_str(), "keys": sampled, "mismatches": mismatches, "scored": scored.recorded,
        "without_texts": scored.silent,
    });
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

/// Scores what is missing; then draws a sample of records, scores it again, and records what differs.
pub(super) fn score_on(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    program: &Program,
) -> Result<Done, CliError> {
    let judge = bench.record.judge().cloned();
    let judge =
        judge.ok_or_else(|| CliError::refused("no judge is registered", "clover judge list"))?;
    let pepper = Zeroizing::new(bench.home.vault(&ctx.ambient())?.pepper()?);
    let frame = Frame::new(judge.clone(), known(&bench.ledger, &judge)?, *pepper);
    let mut port = program::port(ctx, &judge, program)?;
    let mut of = asked(bench, &judge)?;
    let by = (&judge, &frame);
    let scored = score_missing(ctx, bench, by, port.as_mut(), &of.unscored)?;
    if scored.differing > 0 {
        let message = format!(
            "score_once: {} scores differ from what is recorded; each is on record as score.conflict, and the first stands",
            scored.differing
        );
        let next = "clover log --kind score.conflict";
        return Err(CliError::refused(message, next));
    }
    if scored.recorded > 0 {
        of = asked(bench, &judge)?;
    }
    let (sample, seed) = drawn(bench, &of)?;
    let of = (&of, sample.as_slice());
    let (mismatches, conflicts) = rescored(ctx, bench, by, port.as_mut(), of)?;
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
    let (text, data) = told(&judge, scored, (sample.len(), mismatches))?;
    Ok((text, data, appended))
}

/// Scores a sample of records again: how many differ, and the scores that do.
fn rescored(
    ctx: &mut Ctx<'_>,
    bench: &Bench,
    (judge, frame): (&JudgeRegistered, &Frame),
    port: &mut dyn Judge,
    (of, sample): (&Asked, &[Digest]),
) -> Result<(u64, Vec<ScoreConflict>), CliError> {
    let experiment = &bench.record.experiment;
    let mut texts = Texts::new(&bench.home, &bench.ledger)?;
    let (mut mismatches, mut conflicts) = (0_u64, Vec::new());
    for (done, key) in sample.iter().enumerate() {
        let record = &of.records[key];
        let name = Named {
            policy: record.policy.clone(),
            item: record.item.clone(),
            draw: record.draw,
        };
        let found = texts_of(&bench.ledger, &mut texts, experiment, &judge.judge, &name)?;
        let found = found.ok_or_else(|| {
            let message = format!(
                "the texts of {} are not at hand, so it cannot be scored again",
                record.item
            );
            CliError::not_found(
                message,
                format!(
                    "clover judge rescore-check --judge {} --rows PATH",
                    shell::word(&judge.judge)
                ),
            )
        })?;
        let row = row_of(&name, record.b_micro, found);
        let reading = frame.read(&row);
        let reading =
            reading.ok_or_else(|| CliError::not_found("a row without texts", "clover doctor"))?;
        let base = reading.score(&row, &mut *port);
        let base = base.map_err(|error| {
            judge_refusals::stopped(&format!("{}: {error}", row.item), 0, &error)
        })?;
        mismatches += u64::from(base != record.b_micro || reading.evidence != record.evidence);
        if base != record.b_micro {
            conflicts.push((record.clone(), base));
        }
        ctx.progress("rows scored again")
            .at(done as u64 + 1, sample.len() as u64);
    }
    drop(texts);
    let conflicts = conflicting(bench, experiment, &judge.judge, &conflicts)?;
    Ok((mismatches, conflicts))
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
