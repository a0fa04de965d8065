//! Scoring: rows that the judge has not scored yet, and a sample of recorded rows anew, both from the texts that the ledger
//! keeps.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::payload::judge::ScoreConflict;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_event::payload::scoring::ScoreReplayed;
use clover_ground::digest::Digest;
use clover_ledger::AppendedEvent;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::import::ImportRow;
use clover_workflow::iterate::rows;
use clover_workflow::iterate::rows::JudgeRecords;
use clover_workflow::iterate::rows::RowName;
use clover_workflow::judge::Judge;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::run;
use clover_workflow::judge::run::Frame;
use clover_workflow::judge::run::RawRecord;
use zeroize::Zeroizing;

use crate::append;
use crate::charges;
use crate::charges::Meter;
use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::judge::Book;
use crate::judge::BookBasis;
use crate::judge::JudgingError;
use crate::judge::judging;
use crate::judge::judging::Alike;
use crate::judge::judging::RunCounts;
use crate::judge::registration;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Work;
use crate::texts::Texts;

/// What scoring did.
#[derive(Clone, Debug)]
pub struct ScoringResult {
    /// Entries that were appended for the sample.
    pub appended: Vec<AppendedEvent>,
    /// The judge.
    pub judge: JudgeId,
    /// Rows that were scored for the first time.
    pub recorded: usize,
    /// Rows whose texts are not at hand.
    pub silent: usize,
    /// Rows that were scored again.
    pub sampled: usize,
    /// Rows that came out differently.
    pub mismatches: u64,
}

/// Prompt and response of a row; `None` where they were not taken in or their key is not here.
///
/// # Errors
/// What reading the log gives.
pub fn texts_of(
    ledger: &Ledger,
    texts: &mut Texts<'_>,
    experiment: &ExperimentId,
    judge: &JudgeId,
    name: &RowName,
) -> Result<Option<(String, String)>, SessionError> {
    let like = like(judge, name, Micro::default());
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

/// A score under the natural key of a row's.
fn like(judge: &JudgeId, name: &RowName, score_micro: Micro) -> Payload {
    Payload::from(ScoreRecorded {
        call: None,
        draw: name.draw,
        item: name.item.clone(),
        judge: judge.clone(),
        policy: name.policy.clone(),
        prompt: None,
        response: None,
        score_micro,
    })
}

/// A row as a judge reads it.
fn row_of(name: &RowName, score: Micro, texts: (String, String)) -> ImportRow {
    let draw = (name.policy.clone(), name.item.clone(), name.draw);
    let row = ImportRow::of_texts(draw, texts);
    ImportRow { score, ..row }
}

/// What the judge did and did not, by now.
pub(super) fn asked(bench: &Bench, judge: &JudgeRegistered) -> Result<JudgeRecords, SessionError> {
    let of = (&bench.record.experiment, &bench.id);
    Ok(rows::asked(
        &bench.ledger,
        of,
        &judge.judge,
        bench.ledger.size(),
    )?)
}

/// A sample of a judge's records, and its seed, which is another for each judge of an iteration.
fn drawn(
    bench: &Bench,
    judge: &JudgeRegistered,
    of: &JudgeRecords,
) -> Result<(Vec<Digest>, u64), IterationError> {
    let keys: Vec<Digest> = of.records.keys().copied().collect();
    let purpose = match &judge.of {
        None => "rescore".to_owned(),
        Some(_) => format!("rescore/{}", judge.judge),
    };
    let seed = rows::number(&bench.record.opened.said.params, &bench.id, &purpose);
    let sample = run::sample(&keys, seed).ok_or(IterationError::TooFewRecords(keys.len()))?;
    Ok((sample, seed))
}

/// What came of rows that the judge had not scored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingScores {
    /// Rows that have a record now.
    pub recorded: usize,
    /// Rows whose answer differs from a score that was recorded before.
    pub differing: usize,
    /// Rows whose texts are not at hand.
    pub silent: usize,
}

/// Rows as a judge reads them, each an ask of its own, and how many have no texts at hand.
fn asks_of(
    bench: &Bench,
    (judge, frame): (&JudgeRegistered, &Frame),
    unscored: &[(Vec<JudgeId>, RowName)],
) -> Result<(Vec<Alike>, usize), SessionError> {
    let experiment = &bench.record.experiment;
    let mut texts = Texts::new(&bench.home, &bench.ledger)?;
    let (mut asks, mut silent): (Vec<Alike>, usize) = (Vec::with_capacity(unscored.len()), 0);
    let mut alike: BTreeMap<Digest, usize> = BTreeMap::new();
    for (scorers, name) in unscored {
        let mut texts_found = None;
        for by in scorers {
            if texts_found.is_none() {
                texts_found = texts_of(&bench.ledger, &mut texts, experiment, by, name)?;
            }
        }
        let row = texts_found.map(|of| row_of(name, Micro::default(), of));
        let reading = row.as_ref().and_then(|row| frame.read(row));
        let Some((row, reading)) = row.zip(reading) else {
            silent += 1;
            continue;
        };
        let key = reading.raw_key;
        // A program is asked once about a text.
        if let Some(at) = alike.get(&key).filter(|_| judge.port == JudgePort::Command) {
            asks[*at].push((row, reading));
        } else {
            alike.insert(key, asks.len());
            asks.push(vec![(row, reading)]);
        }
    }
    Ok((asks, silent))
}

/// Asks the judge about rows that it has not scored. Its answers go on record as they come, and a signal to stop is heeded: a
/// run that is cut goes on with what is left.
pub(super) fn score_missing(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    (judge, frame): (&JudgeRegistered, &Frame),
    unscored: &[(Vec<JudgeId>, RowName)],
) -> Result<MissingScores, SessionError> {
    if unscored.is_empty() {
        return Ok(MissingScores::default());
    }
    let experiment = bench.record.experiment.clone();
    let standing = registration::standing(&bench.ledger, &experiment, &judge.judge)?;
    let registered = standing.ok_or(IterationError::NoJudge)?.id;
    let scorer = ports.signer(bench.ledger.state(), KeyNeed::scorer(Kind::ScoreRecorded))?;
    let (asks, silent) = asks_of(bench, (judge, frame), unscored)?;
    let calls = asks.len() as u64;
    let payer = charges::calls(ports, &bench.ledger, (judge.port, &judge.judge), calls)?;
    let port = registration::opened(ports, &bench.ledger, judge)?;
    let mut book = Book {
        home: &bench.home,
        ledger: &mut bench.ledger,
        experiment: &experiment,
        judge: &judge.judge,
        basis: BookBasis::Registered(registered),
        scorer: &scorer,
        meter: Meter::of(payer),
    };
    let all = asks.iter().map(Vec::len).sum::<usize>() as u64;
    let mut counts = RunCounts::default();
    ports.heed(true)?;
    let of = (vec![port], asks, judge.port);
    let ended = judging::ask(ports, &mut book, &mut counts, of, all);
    ports.heed(false)?;
    bench.ledger.settle()?;
    append::tell_of_pin(ports, &bench.ledger);
    ended?;
    if let Some(row) = counts.declined.first() {
        let error = JudgeError::Declined(row.reason.clone());
        return Err(JudgingError::stopped_at(&row.item, error, counts.scored).into());
    }
    bench.again()?;
    Ok(MissingScores {
        recorded: counts.scored,
        differing: counts.conflicts,
        silent,
    })
}

/// Scores what is missing; then draws a sample of records, scores it again, and records what differs.
///
/// # Errors
/// [`IterationError::Conflicts`] and [`IterationError::Unstable`] after what differs is on record; rows that were recorded
/// before another error stand.
pub fn score(bench: &mut Bench, ports: &mut dyn Ports) -> Result<ScoringResult, SessionError> {
    let judge = bench.record.judge().cloned();
    let judge = judge.ok_or(IterationError::NoJudge)?;
    let pepper = bench.home.vault(bench.ledger.ambient())?.pepper()?;
    let pepper = Zeroizing::new(pepper);
    let frame = Frame::new(
        judge.clone(),
        registration::known(&bench.ledger, &judge)?,
        *pepper,
    );
    let mut of = asked(bench, &judge)?;
    let by = (&judge, &frame);
    let scored = score_missing(bench, ports, by, &of.unscored)?;
    if scored.differing > 0 {
        return Err(IterationError::Conflicts(scored.differing).into());
    }
    if scored.recorded > 0 {
        of = asked(bench, &judge)?;
    }
    let again = repeat(bench, ports, by, &of)?;
    let (sampled, mismatches) = (again.sampled, again.mismatches);
    if mismatches > 0 {
        return Err(IterationError::Unstable {
            mismatches,
            sampled,
        }
        .into());
    }
    Ok(ScoringResult {
        appended: again.appended,
        judge: judge.judge,
        recorded: scored.recorded,
        silent: scored.silent,
        sampled,
        mismatches,
    })
}

/// A sample that was scored again.
pub(super) struct RepeatedSample {
    /// Entries that say so.
    pub appended: Vec<AppendedEvent>,
    /// Rows that were scored again.
    pub sampled: usize,
    /// Rows that came out differently.
    pub mismatches: u64,
}

/// Draws a sample of a judge's records, scores it again, and records what differs.
pub(super) fn repeat(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    by: (&JudgeRegistered, &Frame),
    of: &JudgeRecords,
) -> Result<RepeatedSample, SessionError> {
    let judge = by.0;
    let mut port = registration::opened(ports, &bench.ledger, judge)?;
    let (sample, seed) = drawn(bench, judge, of)?;
    let calls = sample.len() as u64;
    let payer = charges::calls(ports, &bench.ledger, (judge.port, &judge.judge), calls)?;
    if let Some(payer) = payer {
        payer.pay(&mut bench.ledger, calls)?;
    }
    let (mismatches, conflicts) = rescored(bench, ports, by, port.as_mut(), (of, &sample))?;
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
    let appended = bench.say(ports, payloads)?;
    Ok(RepeatedSample {
        appended,
        sampled: sample.len(),
        mismatches,
    })
}

/// Scores a sample of records again: how many differ, and the scores that do.
fn rescored(
    bench: &Bench,
    ports: &mut dyn Ports,
    (judge, frame): (&JudgeRegistered, &Frame),
    port: &mut dyn Judge,
    (of, sample): (&JudgeRecords, &[Digest]),
) -> Result<(u64, Vec<ScoreConflict>), SessionError> {
    let experiment = &bench.record.experiment;
    let mut texts = Texts::new(&bench.home, &bench.ledger)?;
    let (mut mismatches, mut conflicts) = (0_u64, Vec::new());
    for (done, key) in sample.iter().enumerate() {
        let record = &of.records[key];
        let name = RowName {
            policy: record.policy.clone(),
            item: record.item.clone(),
            draw: record.draw,
        };
        let found = texts_of(&bench.ledger, &mut texts, experiment, &judge.judge, &name)?;
        let found = found.ok_or_else(|| IterationError::TextsGone {
            item: record.item.to_string(),
            judge: judge.judge.clone(),
        })?;
        let row = row_of(&name, record.b_micro, found);
        let reading = frame.read(&row).ok_or(IterationError::NoTexts)?;
        let answer = reading.answer(&row, &mut *port);
        let answer = answer.map_err(|error| JudgingError::stopped_at(&row.item, error, 0))?;
        let (base, reading) = (answer.score, reading.with(&answer));
        mismatches += u64::from(base != record.b_micro || reading.evidence != record.evidence);
        if base != record.b_micro {
            conflicts.push((record.clone(), base));
        }
        ports.progress(Work::JudgingAgain, done as u64 + 1, sample.len() as u64);
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
    found: &[(RawRecord, Micro)],
) -> Result<Vec<ScoreConflict>, SessionError> {
    let mut conflicts = Vec::new();
    for (record, other) in found {
        let name = RowName {
            policy: record.policy.clone(),
            item: record.item.clone(),
            draw: record.draw,
        };
        let key = like(judge, &name, record.b_micro).natural_key(Some(experiment));
        let seq = key.map(|key| bench.ledger.giver(&key)).transpose()?;
        let read = seq.flatten().map(|seq| bench.ledger.entry(seq));
        if let Some(read) = read.transpose()?.flatten() {
            conflicts.push(ScoreConflict {
                draw: record.draw,
                item: record.item.clone(),
                judge: judge.clone(),
                policy: record.policy.clone(),
                recorded: read.event.id,
                recorded_micro: record.b_micro,
                score_micro: *other,
            });
        }
    }
    Ok(conflicts)
}
