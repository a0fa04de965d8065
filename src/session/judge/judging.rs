//! A judge's run over rows: who is asked about what, and when answers go on record.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::scoring::JudgePort;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::Answer;
use clover_workflow::judge::Judge;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::run::RawRecord;
use clover_workflow::judge::run::Reading;

use crate::append;
use crate::charges;
use crate::charges::Meter;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::ask::Asking;
use crate::judge::ask::Heard;
use crate::judge::assignment::Assignment;
use crate::judge::book::Book;
use crate::judge::book::Remark;
use crate::judge::error::JudgingError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Work;

/// Rows that are recorded together, at most.
const BATCH: usize = 1_024;
/// Answers of a program that are recorded together, at most: recording them takes less than the beat between.
const HEARD: usize = 256;
/// Beats for which a run that is asked to stop waits for answers that are on their way: five seconds.
const LAST_BEATS: u32 = 20;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Rows that were scored and are on record now.
    pub scored: usize,
    /// Rows that were on record before.
    pub already: usize,
    /// Rows whose score differs from the one on record, which stands; the difference is recorded.
    pub conflicts: usize,
    /// Rows that the judge declined, with what it said.
    pub declined: Vec<DeclinedRow>,
}

/// A row that a judge declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclinedRow {
    /// Whose response.
    pub policy: PolicyId,
    /// To what.
    pub item: ItemId,
    /// Which draw.
    pub draw: Count,
    /// What the judge said.
    pub reason: String,
}

impl DeclinedRow {
    fn of(row: &ImportRow, reason: &str) -> Self {
        Self {
            policy: row.policy.clone(),
            item: row.item.clone(),
            draw: row.draw,
            reason: reason.to_owned(),
        }
    }
}

/// Rows of one text, of which a judge is asked once.
type Alike = Vec<(ImportRow, Reading)>;

/// The rows of a run by what is to be done.
#[derive(Default)]
struct Sorted {
    /// Rows with a record of their own.
    already: usize,
    /// Rows whose text this judge scored before, under another policy, item or draw: its answer stands for them too.
    answered: Vec<(ImportRow, Reading, Micro)>,
    /// What it is asked.
    asks: Vec<Alike>,
}

impl Sorted {
    /// Rows against the records of their judge. A row is done when it has a record of its own: an answer about the same
    /// text of another policy is no score of this row, and a row without one would be missing from every mean.
    fn of(rows: Vec<(ImportRow, Reading)>, records: Vec<RawRecord>, port: JudgePort) -> Self {
        let mut bases: BTreeMap<Digest, Micro> = BTreeMap::new();
        let mut done: BTreeSet<(Digest, PolicyId, ItemId, Count)> = BTreeSet::new();
        for record in records {
            bases.entry(record.raw_key).or_insert(record.b_micro);
            done.insert((record.raw_key, record.policy, record.item, record.draw));
        }
        // The built-in judge repeats itself, and imported scores are of draws, not of texts.
        let once = port == JudgePort::Command;
        let mut sorted = Self::default();
        let mut alike: BTreeMap<Digest, usize> = BTreeMap::new();
        for (row, reading) in rows {
            let key = reading.raw_key;
            let own = (key, row.policy.clone(), row.item.clone(), row.draw);
            if done.contains(&own) {
                sorted.already += 1;
            } else if let Some(base) = bases.get(&key).filter(|_| once) {
                sorted.answered.push((row, reading, *base));
            } else if let Some(at) = alike.get(&key).filter(|_| once) {
                sorted.asks[*at].push((row, reading));
            } else {
                alike.insert(key, sorted.asks.len());
                sorted.asks.push(vec![(row, reading)]);
            }
        }
        sorted
    }

    fn fresh(&self) -> usize {
        self.answered.len() + self.asks.iter().map(Vec::len).sum::<usize>()
    }
}

/// Scores rows that have no record of this judge yet. Answers of a program go on record as they come, so a run that is cut
/// goes on with what is left. A judge that is not registered is registered first.
///
/// # Errors
/// [`JudgingError`]; rows that were recorded before stand. A missing text or key is found before anything is appended.
pub fn run(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    mut assignment: Assignment,
) -> Result<RunCounts, SessionError> {
    let rows = std::mem::take(&mut assignment.rows).into_iter();
    let rows = rows.map(|row| {
        let reading = assignment.read(&row)?;
        Ok::<_, JudgingError>((row, reading))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    if assignment.registration.port == JudgePort::Builtin
        && let Some((row, _)) = rows.iter().find(|(row, _)| row.is_named())
    {
        let item = row.item.clone();
        return Err(JudgingError::Textless { item }.into());
    }
    let registered = match assignment.standing(ledger)? {
        Some(_) => Some(assignment.registered(ledger)?),
        None => None,
    };
    let port = assignment.registration.port;
    let sorted = Sorted::of(rows, assignment.recorded(ledger)?, port);
    let mut counts = RunCounts {
        already: sorted.already,
        ..RunCounts::default()
    };
    if registered.is_some() && sorted.fresh() == 0 {
        return Ok(counts);
    }
    let scorer = ports.signer(ledger.state(), KeyNeed::runner(Kind::ScoreRecorded))?;
    let registered = match registered {
        Some(id) => id,
        None => assignment.register(ledger, &scorer)?,
    };
    let asked = sorted.asks.iter().flatten().map(|(row, _)| row);
    let judges = assignment.judges(ports, ledger, asked)?;
    let whose = (port, assignment.judge());
    let payer = charges::calls(ports, ledger, whose, sorted.asks.len() as u64)?;
    let mut book = Book {
        home,
        ledger,
        experiment: &assignment.experiment,
        judge: assignment.judge(),
        registered,
        scorer: &scorer,
        meter: Meter::of(payer),
    };
    let all = sorted.fresh() as u64;
    let mut answered = sorted.answered.into_iter();
    loop {
        let batch: Vec<_> = answered.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        counts.take(&mut book, batch, &[])?;
        ports.progress(Work::Judging, counts.done(), all);
    }
    let ended = ask(
        ports,
        &mut book,
        &mut counts,
        (judges, sorted.asks, port),
        all,
    );
    book.ledger.settle()?;
    append::tell_of_pin(ports, book.ledger);
    ended?;
    Ok(counts)
}

impl RunCounts {
    /// Records answered rows, and what was said of rows.
    fn take(
        &mut self,
        book: &mut Book<'_>,
        rows: Vec<(ImportRow, Reading, Micro)>,
        remarks: &[Remark],
    ) -> Result<(), SessionError> {
        let found = book.record(rows, remarks)?;
        self.scored += found.recorded;
        self.conflicts += found.differing;
        Ok(())
    }

    fn done(&self) -> u64 {
        (self.scored + self.conflicts + self.declined.len()) as u64
    }
}

/// Answers that are not on record yet, by their ask.
#[derive(Default)]
struct Waiting {
    answers: BTreeMap<usize, Answer>,
    /// Asks that were settled, in their order.
    next: usize,
    /// Asks without an answer, beyond `next`.
    silent: BTreeSet<usize>,
    /// What was said of rows that were declined.
    remarks: Vec<Remark>,
}

impl Waiting {
    /// Whether the next [`BATCH`] asks are all settled: then the order of the log is that of the rows.
    fn is_whole(&self) -> bool {
        self.answers.len() + self.silent.len() >= BATCH
            && (self.next..self.next + BATCH)
                .all(|at| self.answers.contains_key(&at) || self.silent.contains(&at))
    }

    /// Answers of the next [`BATCH`] asks.
    fn whole(&mut self) -> BTreeMap<usize, Answer> {
        self.next += BATCH;
        let rest = self.answers.split_off(&self.next);
        self.silent = self.silent.split_off(&self.next);
        std::mem::replace(&mut self.answers, rest)
    }

    fn everything(&mut self) -> BTreeMap<usize, Answer> {
        std::mem::take(&mut self.answers)
    }
}

/// Asks judges, and records what they answer. Those of a program are recorded at every beat; those of the built-in judge in
/// whole batches, so that the same rows make the same log.
fn ask(
    ports: &mut dyn Ports,
    book: &mut Book<'_>,
    counts: &mut RunCounts,
    (judges, asks, port): (Vec<Box<dyn Judge + Send>>, Vec<Alike>, JudgePort),
    all: u64,
) -> Result<(), SessionError> {
    let asks = Arc::new(asks);
    let mut asking = Asking::start(judges, &asks);
    let mut waiting = Waiting::default();
    let mut failed: Option<(ItemId, JudgeError)> = None;
    let mut beats = 0;
    while let Some(heard) = asking.hear() {
        book.meter.called(matches!(heard, Heard::Answer(..)));
        let due = match heard {
            Heard::Answer(at, Ok(answer)) => {
                waiting.answers.insert(at, answer);
                if port == JudgePort::Command {
                    (waiting.answers.len() >= HEARD).then(|| waiting.everything())
                } else {
                    waiting.is_whole().then(|| waiting.whole())
                }
            }
            Heard::Answer(at, Err(JudgeError::Declined(reason))) => {
                waiting.silent.insert(at);
                let rows = asks[at].iter();
                let said = rows.clone().map(|(row, _)| Remark::of(row, &reason, true));
                waiting.remarks.extend(said);
                let declined = rows.map(|(row, _)| DeclinedRow::of(row, &reason));
                counts.declined.extend(declined);
                waiting.is_whole().then(|| waiting.whole())
            }
            Heard::Answer(at, Err(error)) => {
                asking.stop();
                failed.get_or_insert_with(|| (asks[at][0].0.item.clone(), error));
                None
            }
            Heard::Beat if ports.is_interrupted() => {
                asking.stop();
                beats += 1;
                if beats > LAST_BEATS {
                    break;
                }
                Some(waiting.everything())
            }
            Heard::Beat if port == JudgePort::Command => Some(waiting.everything()),
            Heard::Beat => None,
        };
        if let Some(due) = due {
            let remarks = std::mem::take(&mut waiting.remarks);
            record(book, counts, &asks, (due, remarks))?;
            ports.progress(Work::Judging, counts.done(), all);
        }
    }
    let remarks = std::mem::take(&mut waiting.remarks);
    record(book, counts, &asks, (waiting.everything(), remarks))?;
    ports.progress(Work::Judging, counts.done(), all);
    let left = all.saturating_sub(counts.done());
    if beats > 0 && left > 0 {
        // A judge may still be at its last ask: nobody waits for it any longer.
        let scored = counts.scored;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        return Err(JudgingError::Interrupted { scored, left }.into());
    }
    let ended = asking.finish();
    match failed {
        Some((item, error)) => Err(JudgingError::stopped_at(item, error, counts.scored).into()),
        None => ended.map_err(|error| JudgingError::stopped_at_end(error, counts.scored).into()),
    }
}

/// Records answers for every row that they are of, and what was said beside them.
fn record(
    book: &mut Book<'_>,
    counts: &mut RunCounts,
    asks: &[Alike],
    (due, mut remarks): (BTreeMap<usize, Answer>, Vec<Remark>),
) -> Result<(), SessionError> {
    book.meter.settle(book.ledger)?;
    let mut rows = Vec::new();
    for (at, answer) in due {
        for (row, reading) in &asks[at] {
            let said = answer.reason.as_deref();
            remarks.extend(said.map(|reason| Remark::of(row, reason, false)));
            rows.push((row.clone(), reading.clone(), answer.score));
        }
    }
    counts.take(book, rows, &remarks)
}
