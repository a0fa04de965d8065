//! Rows of a judge behind HTTP against what is on record: which have a score, which were asked about, and which are to be asked.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Payload;
use clover_event::calls::CallOutcome;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::payload::model_runs::CallOf;
use clover_event::payload::model_runs::CallRecorded;
use clover_ground::digest::Digest;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::runs;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_projection::timely::TimelyRows;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::WireForm;
use clover_workflow::ask::fence::FencedRow;
use clover_workflow::ask::judged::JudgePlan;
use clover_workflow::ask::judged::SERIES;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::import::ImportRow;
use clover_workflow::judge::run::RawRecord;
use clover_workflow::judge::run::Reading;

use crate::error::SessionError;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;
use crate::judge::live::LiveAsk;
use crate::tariff::Tariff;

/// A row with what was found in it.
pub(super) type ReadRow = (ImportRow, Reading);

/// Rows of an assignment by what is to be done.
#[derive(Default)]
pub(super) struct LiveRows {
    /// Rows that have a score.
    pub already: u64,
    /// Rows whose text was scored before: with their score and its call.
    pub answered: Vec<(ImportRow, Reading, Micro, CallOf)>,
    /// Rows whose text was asked about before and came to nothing: with that call.
    pub missed: Vec<(ImportRow, CallOf, CallOutcome)>,
    /// Rows that were missed before, and of which nobody asks now.
    pub missed_before: u64,
    /// Keys of the asks of the run that is open, in the order of their rows.
    pub keys: Vec<Digest>,
    /// Asks in the order of their rows, with the request of each.
    pub asks: Vec<LiveAsk>,
    /// Their requests.
    pub requests: Vec<AskRequest>,
}

impl LiveRows {
    /// Whether nothing is to be recorded or asked.
    pub(super) fn is_done(&self) -> bool {
        self.asks.is_empty() && self.answered.is_empty() && self.missed.is_empty()
    }

    /// Rows to be asked about that come late: a label of their policy can be read already.
    pub(super) fn late(&self, ledger: &Ledger, experiment: &ExperimentId) -> u64 {
        let rows = ledger.state().fold::<TimelyRows>();
        let of = rows.by_experiment.get(experiment);
        let asked = self.asks.iter().flat_map(|ask| &ask.rows);
        let late = asked.filter(|(row, _)| of.is_some_and(|of| of.is_late_now(&row.policy)));
        late.count() as u64
    }
}

/// The last call of an ask.
pub(super) struct LastCall {
    pub id: EventId,
    pub seq: u64,
    experiment: Option<ExperimentId>,
    pub said: Box<CallRecorded>,
}

/// What is known where rows are sorted.
pub(super) struct RowSorter<'a> {
    pub ledger: &'a Ledger,
    pub assignment: &'a Assignment,
    pub plan: &'a JudgePlan,
    pub wire: &'a dyn WireForm,
    pub tariff: Option<&'a Tariff>,
    pub pepper: &'a [u8; 32],
    /// What the judge is told.
    pub told: &'a str,
    /// The run of the judge that is open.
    pub open: Option<&'a ModelRun>,
}

impl RowSorter<'_> {
    /// Sorts rows. One ask stands for all rows of its texts.
    pub(super) fn sorted(&self, rows: Vec<ReadRow>) -> Result<LiveRows, SessionError> {
        let records = self.assignment.recorded(self.ledger)?;
        let (mut first, mut done) = (BTreeMap::new(), BTreeSet::new());
        for of in &records {
            first.entry(of.raw_key).or_insert(of);
            done.insert((of.raw_key, of.policy.clone(), of.item.clone(), of.draw));
        }
        let places = records.iter();
        let places = places.map(|of| (of.policy.clone(), of.item.clone(), of.draw));
        let places: BTreeSet<_> = places.collect();
        let mut found = LiveRows::default();
        let (mut alike, mut seen) = (BTreeMap::new(), BTreeSet::new());
        for (row, reading) in rows {
            let key = reading.raw_key;
            let own = (key, row.policy.clone(), row.item.clone(), row.draw);
            let is_new = seen.insert(key);
            let scored = first.get(&key);
            if let (Some(open), Some(_), true) = (self.open, scored, is_new) {
                let ask = self.ask(&row, &reading)?;
                let last = self.last_call(&ask.keyed(self.pepper))?;
                if last.is_some_and(|last| last.said.run == open.said.run) {
                    found.keys.push(ask.keyed(self.pepper));
                }
            }
            if done.contains(&own) {
                found.already += 1;
            } else if places.contains(&(row.policy.clone(), row.item.clone(), row.draw)) {
                return Err(JudgingError::OtherText {
                    item: row.item,
                    line: row.line,
                }
                .into());
            } else if let Some(record) = scored {
                let call = self.call_of(record)?;
                let score = record.b_micro;
                found.answered.push((row, reading, score, call));
            } else if let Some(at) = alike.get(&key) {
                let ask: &mut LiveAsk = &mut found.asks[*at];
                ask.rows.push((row, reading));
            } else if self.unscored((row, reading), is_new, &mut found)? {
                alike.insert(key, found.asks.len() - 1);
            }
        }
        Ok(found)
    }

    /// What is asked about a row.
    fn ask(&self, row: &ImportRow, reading: &Reading) -> Result<ModelAsk, SessionError> {
        self.ask_in(SERIES, row, reading)
    }

    /// What is asked about a row in a series.
    pub(super) fn ask_in(
        &self,
        series: &str,
        row: &ImportRow,
        reading: &Reading,
    ) -> Result<ModelAsk, SessionError> {
        let texts = reading.texts();
        let said = (
            row.prompt.as_deref().unwrap_or_default(),
            row.response.as_deref().unwrap_or_default(),
        );
        let fenced = FencedRow::new(self.pepper, (&texts.x_hash, &texts.a_hash), said);
        if fenced.is_overlong() {
            return Err(JudgingError::Overlong { line: row.line }.into());
        }
        Ok(self.plan.ask_in(series, self.told, &fenced))
    }

    /// Takes in a row whose text has no score; whether it is to be asked about.
    fn unscored(
        &self,
        (row, reading): ReadRow,
        is_new: bool,
        found: &mut LiveRows,
    ) -> Result<bool, SessionError> {
        let ask = self.ask(&row, &reading)?;
        let (key, texts) = (ask.keyed(self.pepper), reading.texts());
        let last = self.last_call(&key)?;
        if let Some(other) = last.as_ref().filter(|last| !self.is_own(last)) {
            return Err(Self::elsewhere(other, row.line).into());
        }
        let open = self.open.map(|of| &of.said.run);
        let nth = self.next_call(last.as_ref());
        if last.is_none() && self.is_missed(&row) {
            // Another text would get the answer that the first one came to without.
            return Err(JudgingError::OtherText {
                item: row.item,
                line: row.line,
            }
            .into());
        }
        let is_of_open = match (&last, open) {
            (Some(last), Some(open)) => last.said.run == *open || nth.is_some(),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if is_of_open && is_new {
            found.keys.push(key);
        }
        if let (Some(last), None) = (&last, nth) {
            self.came_to_nothing((row, &reading), last, found)?;
            return Ok(false);
        }
        let request = AskRequest::of(self.wire, ask);
        let bound = self.tariff.map_or_else(Count::default, |of| {
            of.row
                .bound(request.body.len(), self.plan.max_output_tokens)
        });
        found.asks.push(LiveAsk {
            first: None,
            key,
            nth: nth.unwrap_or_default(),
            rows: vec![(row, reading)],
            texts,
            bound,
        });
        found.requests.push(request);
        Ok(true)
    }

    /// Whether a row was missed before, whatever its text was.
    fn is_missed(&self, row: &ImportRow) -> bool {
        let place = (row.policy.as_str(), row.item.as_str(), row.draw);
        let (experiment, judge) = (&self.assignment.experiment, self.assignment.judge());
        let place = runs::row_key(experiment, judge, place);
        let runs = self.ledger.state().fold::<ModelRuns>();
        runs.missed.contains_key(&place)
    }

    /// Whether a call is of this judge: an ask is of one judge, whatever it came to.
    pub(super) fn is_own(&self, last: &LastCall) -> bool {
        let experiment = &self.assignment.experiment;
        last.experiment.as_ref() == Some(experiment) && last.said.judge == *self.assignment.judge()
    }

    fn elsewhere(last: &LastCall, line: u64) -> JudgingError {
        JudgingError::AskedElsewhere {
            experiment: last.experiment.clone(),
            judge: last.said.judge.clone(),
            line,
        }
    }

    /// Takes in a row whose ask came to nothing for good, or until the next run.
    fn came_to_nothing(
        &self,
        (row, reading): (ImportRow, &Reading),
        last: &LastCall,
        found: &mut LiveRows,
    ) -> Result<(), SessionError> {
        if last.said.outcome == CallOutcome::Answered {
            return Err(Self::elsewhere(last, row.line).into());
        }
        if self.is_missed(&row) {
            found.missed_before += 1;
            return Ok(());
        }
        let call = CallOf {
            call: last.id,
            texts: reading.texts(),
        };
        found.missed.push((row, call, last.said.outcome));
        Ok(())
    }

    /// The number of the next call of an ask; `None` where it is not asked again now.
    fn next_call(&self, last: Option<&LastCall>) -> Option<u64> {
        let Some(last) = last else {
            return Some(0);
        };
        let runs = self.ledger.state().fold::<ModelRuns>();
        let is_lost = last.said.outcome == CallOutcome::Lost;
        let is_due =
            runs::is_asked_again(last.said.outcome) && (is_lost || !runs.is_open(&last.said.run));
        is_due.then(|| last.said.nth.value() + 1)
    }

    /// The last call of an ask.
    pub(super) fn last_call(&self, key: &Digest) -> Result<Option<LastCall>, SessionError> {
        let mut last = None;
        let mut nth = 0;
        while let Some(count) = Count::new(nth) {
            let key = clover_event::registry::call_key(key, count);
            let Some(seq) = self.ledger.giver(&key)? else {
                break;
            };
            last = Some(seq);
            nth += 1;
        }
        let Some(seq) = last else {
            return Ok(None);
        };
        let read = self.ledger.entry(seq)?.map(|read| read.event);
        Ok(read.and_then(|event| match event.payload {
            Payload::CallRecorded(said) => Some(LastCall {
                id: event.id,
                seq,
                experiment: event.header.experiment,
                said,
            }),
            _ => None,
        }))
    }

    /// The call that a recorded score stands on.
    fn call_of(&self, record: &RawRecord) -> Result<CallOf, SessionError> {
        let (experiment, judge) = (&self.assignment.experiment, self.assignment.judge());
        let lost = || JudgingError::NoCall {
            item: record.item.clone(),
            judge: judge.clone(),
        };
        let key = clover_event::registry::score_key(
            experiment.as_str(),
            judge.as_str(),
            record.policy.as_str(),
            (record.item.as_str(), record.draw),
        );
        let seq = self.ledger.giver(&key)?.ok_or_else(lost)?;
        let read = self.ledger.entry(seq)?;
        match read.map(|read| read.event.payload) {
            Some(Payload::ScoreRecorded(said)) => Ok(said.call.ok_or_else(lost)?),
            _ => Err(lost().into()),
        }
    }
}
