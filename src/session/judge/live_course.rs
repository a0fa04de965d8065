//! How a run goes: a hold, what is sent under it, what came back on record with the next hold, until nothing is left.

use std::collections::BTreeSet;

use clover_event::calls::CallOutcome;
use clover_event::id::RunId;
use clover_event::payload::model_runs::RunEnd;
use clover_ground::seed::SeedTree;
use clover_ground::time::Timestamp;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;
use clover_workflow::ask::dispatch::StopReason;
use clover_workflow::ask::sending::AskRequest;
use clover_workflow::ask::sending::Sending;
use clover_workflow::ask::sending::SendingTurn;

use crate::error::SessionError;
use crate::judge::error::JudgingError;
use crate::judge::live::LiveAsk;
use crate::judge::live::LiveCounts;
use crate::judge::live::LiveTerms;
use crate::judge::live_record::HoldRoom;
use crate::judge::live_record::ReadCall;
use crate::judge::live_record::Recorder;
use crate::judge::live_record::RunBatch;
use crate::ports::Ports;
use crate::ports::Work;

/// Asks that one hold covers for each that may be open at once.
const HELD_EACH: usize = 8;
/// Asks that one hold covers, at least and at most.
const HELD: (usize, usize) = (128, 512);
/// How many are taken to be open at once where nobody says so.
const OPEN_USUAL: u32 = 64;
/// How long an answer waits for others before it goes on record, in microseconds.
const TOGETHER: i64 = 500_000;
/// How long answers that are on their way are waited for when somebody asks to stop, in turns.
const LAST_BEATS: u32 = 300;

/// A run with what it asks.
#[derive(Clone, Copy)]
pub(super) struct AskedRun<'a> {
    pub run: &'a RunId,
    /// How often it went on.
    pub epoch: u64,
    pub asks: &'a [LiveAsk],
    pub requests: &'a [AskRequest],
    pub pepper: &'a [u8; 32],
}

/// Asks that are under way.
struct Course<'a> {
    of: AskedRun<'a>,
    sending: Sending<'a>,
    /// The first ask that is in no hold yet.
    next: usize,
    /// Asks of the hold that came to nothing yet.
    open: BTreeSet<usize>,
    /// Calls that are not on record yet.
    ended: Vec<ReadCall>,
    /// Since when the oldest of them waits.
    since: Option<Timestamp>,
    /// Asks that one hold covers, at most.
    window: usize,
    /// Whether nothing more fits into the account or the cap.
    is_capped: bool,
}

/// What follows what goes on record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunNext {
    /// The next hold, where anything is left.
    Hold,
    /// The end of the run.
    End(RunEnd),
}

/// What is settled and held in one transaction.
#[derive(Clone, Copy, Default)]
struct MoneyMove {
    /// What the open hold is charged, and the part that nobody knows to be spent; none where it stays open.
    settle: Option<(u64, u64)>,
    /// How many of the next asks are held for.
    more: usize,
    /// How many asks the next hold covers, and what it holds.
    hold: Option<(u64, u64)>,
    /// Whether asks that are open have no room to be sent again.
    is_full: bool,
}

impl Course<'_> {
    fn bound(&self, at: usize) -> u64 {
        self.of.asks.get(at).map_or(0, |of| of.bound.value())
    }

    /// Asks that were in no hold yet.
    fn unheld(&self) -> usize {
        self.of.asks.len() - self.next
    }

    /// How many of the next asks a hold covers beside those that are open, and what it holds; as many as there is fair room for and one
    /// at least where it fits, and all of them where nothing costs anything.
    fn window(&self, room: Option<HoldRoom>) -> (usize, u64) {
        let left = self.unheld();
        let Some(room) = room else {
            return (left, 0);
        };
        let open = self.open.iter().map(|at| self.bound(*at));
        let mut amount = open.fold(0, u64::saturating_add);
        let most = left.min(self.window.saturating_sub(self.open.len()));
        for more in 0..most {
            let sum = amount.saturating_add(self.bound(self.next + more));
            let is_first = more == 0 && self.open.is_empty();
            if sum > room.most || (sum > room.fair && !is_first) {
                return (more, amount);
            }
            amount = sum;
        }
        (most, amount)
    }

    /// What attempts of open asks that may have been billed come to.
    fn unknown(&self) -> u64 {
        let attempts = self.sending.maybe_billed();
        let open = attempts.iter().filter_map(|(place, maybe)| {
            let at = usize::try_from(*place).ok()?;
            let is_open = self.open.contains(&at);
            is_open.then(|| self.bound(at).saturating_mul(*maybe))
        });
        open.fold(0, u64::saturating_add)
    }

    /// Whether nothing is left to send.
    fn is_over(&self) -> bool {
        self.open.is_empty() && (self.next == self.of.asks.len() || self.is_capped)
    }

    /// What is settled and held as calls go on record.
    fn money(
        &self,
        recorder: &Recorder<'_>,
        (standing, calls): (&ModelRun, &[ReadCall]),
        next: RunNext,
    ) -> MoneyMove {
        let cost = calls.iter().map(|of| of.cost.value());
        let cost = cost.fold(standing.unpaid(), u64::saturating_add);
        let unknown = self.unknown();
        let amount = cost.saturating_add(unknown);
        let amount = amount.saturating_sub(standing.ahead());
        let mut found = MoneyMove {
            settle: standing
                .hold
                .as_ref()
                .map(|_| (amount, unknown.min(amount))),
            ..MoneyMove::default()
        };
        if next != RunNext::Hold {
            return found;
        }
        let room = recorder.room(standing, amount);
        let (more, held) = self.window(room);
        if room.is_some_and(|room| held > room.most) {
            // The open hold covers what is on its way; what waits to be sent again has no room.
            found.settle = None;
            found.is_full = true;
            return found;
        }
        let covered = (self.open.len() + more) as u64;
        found.more = more;
        found.hold = (covered > 0 && room.is_some()).then_some((covered, held.max(1)));
        found
    }

    /// Records calls that ended, settles what was held for them, and holds for what follows: all of it together.
    fn record(
        &mut self,
        recorder: &mut Recorder<'_>,
        next: RunNext,
        counts: &mut LiveCounts,
    ) -> Result<(), SessionError> {
        let mut calls = std::mem::take(&mut self.ended);
        self.since = None;
        calls.sort_by_key(|of| of.at);
        recorder.keep_bodies(&mut calls)?;
        for call in &calls {
            counts.hear(call);
            self.open.remove(&call.at);
        }
        let (found, done) = loop {
            recorder.ledger.refresh()?;
            let size = recorder.ledger.size();
            let standing = self.standing(recorder)?;
            let found = self.money(recorder, (&standing, &calls), next);
            let batch = RunBatch {
                standing: &standing,
                calls: &calls,
                settle: found.settle,
                hold: found.hold,
                end: match next {
                    RunNext::End(end) => Some(end),
                    RunNext::Hold => None,
                },
            };
            match recorder.record(self.of.asks, &batch) {
                Ok(done) => break (found, done),
                // Others appended meanwhile, and perhaps took from the account.
                Err(error) => recorder.moved(size, error)?,
            }
        };
        counts.scored += done.scored;
        counts.missed += done.missed;
        if found.is_full {
            self.sending.stop(StopReason::Capped);
            return Ok(());
        }
        // Where the hold covers as many as it may, more follow when some of them ended.
        let has_none = self.open.is_empty() && found.more == 0;
        self.is_capped = next == RunNext::Hold && has_none && self.unheld() > 0;
        let places = self.next..self.next + found.more;
        self.next = places.end;
        self.open.extend(places.clone());
        self.sending.held();
        for place in places {
            self.sending.add(place as u64);
        }
        Ok(())
    }

    /// The run as it stands, where it is still this process's.
    fn standing(&self, recorder: &Recorder<'_>) -> Result<ModelRun, SessionError> {
        let runs = recorder.ledger.state().fold::<ModelRuns>();
        let standing = runs.by_id.get(self.of.run);
        let standing = standing.filter(|of| of.end.is_none() && of.epoch == self.of.epoch);
        let taken = || JudgingError::TakenOver(self.of.run.clone());
        Ok(standing.ok_or_else(taken)?.clone())
    }

    /// Hears until nothing is left to send; why it stopped before.
    fn heard(
        &mut self,
        ports: &mut dyn Ports,
        recorder: &mut Recorder<'_>,
        counts: &mut LiveCounts,
    ) -> Result<Option<StopReason>, SessionError> {
        let ambient = recorder.ledger.ambient().clone();
        let all = self.of.asks.len();
        let mut last = 0;
        while !self.is_over() {
            let now = ambient.now();
            let due = match self.sending.next(now) {
                SendingTurn::Ended(call) => {
                    let call = recorder.read(self.of.asks, self.of.pepper, *call);
                    if call.outcome == CallOutcome::Mismatched {
                        self.sending.stop(StopReason::Mismatched);
                    }
                    self.ended.push(call);
                    self.since.get_or_insert(now);
                    2 * self.ended.len() >= self.window
                }
                SendingTurn::Beat => false,
                SendingTurn::Done | SendingTurn::Hold => true,
                SendingTurn::Stopped(reason) => return Ok(Some(reason)),
            };
            let waits = self
                .since
                .is_some_and(|since| now.micros() - since.micros() >= TOGETHER);
            if due || waits {
                self.record(recorder, RunNext::Hold, counts)?;
                let left = self.open.len() + self.unheld();
                ports.progress(Work::Judging, (all - left) as u64, all as u64);
            }
            if ports.is_interrupted() {
                self.sending.stop(StopReason::Interrupted);
                last += 1;
                if last > LAST_BEATS {
                    return Ok(Some(StopReason::Interrupted));
                }
            }
        }
        Ok(None)
    }
}

/// Asks, records what comes back, and ends the run where nothing is left to do.
pub(super) fn asked(
    ports: &mut dyn Ports,
    recorder: &mut Recorder<'_>,
    of: AskedRun<'_>,
    terms: &mut LiveTerms<'_>,
    counts: &mut LiveCounts,
) -> Result<(), SessionError> {
    let random = recorder.ledger.ambient().random::<8>()?;
    let jitter = SeedTree::of_number(u64::from_be_bytes(random));
    let open_max = terms.rules.open_max.unwrap_or(OPEN_USUAL);
    let open_max = usize::try_from(open_max).unwrap_or(usize::MAX);
    let rules = (terms.rules, jitter);
    let mut course = Course {
        of,
        sending: Sending::held_back(terms.desk, terms.asks.wire, of.requests, rules),
        next: 0,
        open: BTreeSet::new(),
        ended: Vec::new(),
        since: None,
        window: open_max.saturating_mul(HELD_EACH).clamp(HELD.0, HELD.1),
        is_capped: false,
    };
    course.record(recorder, RunNext::Hold, counts)?;
    let stopped = course.heard(ports, recorder, counts)?;
    let (late, _) = course.sending.leave();
    let late = late.into_iter();
    let late = late.map(|call| recorder.read(of.asks, of.pepper, call));
    course.ended.extend(late);
    let end = match stopped {
        Some(StopReason::Capped) => RunEnd::Capped,
        Some(_) => RunEnd::Stopped,
        None if course.next == of.asks.len() => RunEnd::Completed,
        None => RunEnd::Capped,
    };
    counts.stopped = stopped;
    course.record(recorder, RunNext::End(end), counts)
}
