//! Which ask is sent when, and what becomes of it: a state that is moved by what happened, and says what is next.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use clover_event::calls::ATTEMPTS_MAX;
use clover_event::calls::AttemptClass;
use clover_event::calls::CallAttempt;
use clover_event::calls::CallOutcome;
use clover_num::Count;

use crate::ask::Micros;
use crate::ask::SECOND;
use crate::ask::breaker::Breaker;
use crate::ask::limit::Limiter;
use crate::ask::limit::RateLimits;
use crate::ask::limit::TokenNeed;
use crate::ask::retry;

/// Attempts of one ask, at most, where settings say nothing else.
const ATTEMPTS_USUAL: u32 = 6;
/// How long a wait may be, where settings say nothing else.
const PATIENCE_USUAL: Micros = 900 * SECOND;
/// Attempts over which the share of repeated ones is counted.
const RETRY_WINDOW: usize = 200;
/// Answers that are no JSON, in a row, that stop a run.
const FOREIGN_MAX: u32 = 3;
/// Asks that the endpoint rejects, in a row, that stop a run which never had an answer.
const REJECTED_MAX: u32 = 3;
/// Attempts that reached nobody, in a row, that stop a run which never had an answer.
const UNREACHED_MAX: u32 = 8;

/// How a run sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchRules {
    /// Attempts of one ask, at most.
    pub attempts_max: u32,
    /// Open at once, at most; automatic without it.
    pub open_max: Option<u32>,
    /// How long a wait may be before the run stops.
    pub patience: Micros,
    /// Rates.
    pub rates: RateLimits,
}

impl Default for DispatchRules {
    fn default() -> Self {
        Self {
            attempts_max: ATTEMPTS_USUAL,
            open_max: None,
            patience: PATIENCE_USUAL,
            rates: RateLimits::default(),
        }
    }
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The key was refused.
    Denied,
    /// Answers that are no JSON, in a row.
    Foreign,
    /// Somebody asked to stop.
    Interrupted,
    /// The account or the cap has no room for what has to be sent again.
    Capped,
    /// Another model answered than is pinned.
    Mismatched,
    /// The endpoint asks to wait longer than patience lasts.
    Patience {
        /// How long.
        wait: Micros,
    },
    /// The endpoint fails for longer than patience lasts.
    Outage {
        /// How long.
        lasted: Micros,
    },
    /// The quota is used up.
    Quota,
    /// The URL is wrong.
    Redirected,
    /// The endpoint rejects every ask, and never answered one.
    Rejected,
    /// Nobody answers at the URL, and nobody ever did.
    Unreachable,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this ask.
    Send(u64),
    /// Hear what ends, or wait until then.
    Wait(Micros),
    /// Hear what ends: nothing can be sent before.
    Hear,
    /// Asks wait for the next hold.
    Hold,
    /// Nothing is open and nothing waits.
    Done,
    /// Nothing more is sent.
    Stopped(StopReason),
}

/// What became of an ask by an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is sent again.
    Again,
    /// It has an answer, which says what it came to.
    Answered,
    /// It came to this.
    Ended(CallOutcome),
}

/// What is known of an attempt that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// How it ended.
    pub attempt: CallAttempt,
    /// How long the endpoint asks to wait.
    pub asked_wait: Option<Micros>,
    /// Whether it says that the quota is used up.
    pub out_of_quota: bool,
    /// Tokens that it used, where it says so.
    pub used: Option<TokenNeed>,
    /// A number that is uniform over its range.
    pub draw: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AskState {
    attempts: Vec<CallAttempt>,
    due: Micros,
    need: TokenNeed,
    waits_for_hold: bool,
}

/// Asks of a run that are sent or wait to be.
#[derive(Clone, Debug)]
pub struct Dispatch {
    rules: DispatchRules,
    limiter: Limiter,
    breaker: Breaker,
    waiting: BTreeMap<u64, AskState>,
    open: BTreeMap<u64, AskState>,
    recent: VecDeque<bool>,
    foreign: u32,
    unreached: u32,
    rejected: u32,
    was_answered: bool,
    was_reached: bool,
    fails_since: Option<Micros>,
    stopped: Option<StopReason>,
}

impl Dispatch {
    /// Nothing to send yet.
    pub fn new(rules: DispatchRules, now: Micros) -> Self {
        Self {
            limiter: Limiter::new(rules.rates, rules.open_max, now),
            rules,
            breaker: Breaker::default(),
            waiting: BTreeMap::new(),
            open: BTreeMap::new(),
            recent: VecDeque::new(),
            foreign: 0,
            unreached: 0,
            rejected: 0,
            was_answered: false,
            was_reached: false,
            fails_since: None,
            stopped: None,
        }
    }

    /// Takes an ask, by its place.
    pub fn add(&mut self, place: u64, need: TokenNeed) {
        let asked = AskState {
            attempts: Vec::new(),
            due: 0,
            need,
            waits_for_hold: false,
        };
        self.waiting.insert(place, asked);
    }

    /// A new hold covers what waits: asks that were perhaps billed may be sent again.
    pub fn held(&mut self) {
        for asked in self.waiting.values_mut() {
            asked.waits_for_hold = false;
        }
    }

    /// Stops: nothing more is sent.
    pub fn stop(&mut self, reason: StopReason) {
        self.stopped.get_or_insert(reason);
    }

    /// What is to be done next.
    pub fn step(&mut self, now: Micros) -> Step {
        if let Some(reason) = self.stopped {
            let is_open = !self.open.is_empty();
            return if is_open {
                Step::Hear
            } else {
                Step::Stopped(reason)
            };
        }
        let free = self.waiting.iter().filter(|(_, of)| !of.waits_for_hold);
        let next = free.min_by_key(|(place, of)| (of.due.max(now), **place));
        let Some((&place, asked)) = next else {
            return match (self.open.is_empty(), self.waiting.is_empty()) {
                (false, _) => Step::Hear,
                (true, false) => Step::Hold,
                (true, true) => Step::Done,
            };
        };
        let (due, need) = (asked.due, asked.need);
        let Some(rested) = self.breaker.ready(now) else {
            return Step::Hear;
        };
        let Some(at) = self.limiter.ready(need, now) else {
            return Step::Hear;
        };
        let at = at.max(due).max(rested);
        if at <= now {
            return Step::Send(place);
        }
        let wait = at - now;
        if wait > self.rules.patience {
            self.stop(StopReason::Patience { wait });
            return self.step(now);
        }
        Step::Wait(at)
    }

    /// An ask was given to the desk.
    pub fn sent(&mut self, place: u64, now: Micros) {
        if let Some(asked) = self.waiting.remove(&place) {
            self.limiter.sent(asked.need, now);
            self.breaker.sent();
            self.recent.push_back(!asked.attempts.is_empty());
            if self.recent.len() > RETRY_WINDOW {
                self.recent.pop_front();
            }
            self.open.insert(place, asked);
        }
    }

    /// An attempt ended. The attempts so far are kept with the ask, or given with its fate.
    pub fn ended(&mut self, place: u64, end: AttemptEnd, now: Micros) -> (Fate, Vec<CallAttempt>) {
        let Some(mut asked) = self.open.remove(&place) else {
            return (Fate::Ended(CallOutcome::Lost), vec![end.attempt]);
        };
        let class = end.attempt.class;
        asked.attempts.push(end.attempt);
        self.limiter.ended(asked.need, end.used);
        self.foreign = if class == AttemptClass::Foreign {
            self.foreign + 1
        } else {
            0
        };
        let well = matches!(class, AttemptClass::Ok | AttemptClass::Rejected);
        self.reached(class, well, now);
        // A 429 closes the gate; it is no failure of the endpoint.
        if class != AttemptClass::Limited {
            self.breaker.ended(well, now);
        }
        if well {
            self.limiter.went_well();
        }
        match class {
            AttemptClass::Ok => {
                self.was_answered = true;
                return (Fate::Answered, asked.attempts);
            }
            AttemptClass::Rejected => {
                self.rejected += 1;
                if !self.was_answered && self.rejected >= REJECTED_MAX {
                    self.stop(StopReason::Rejected);
                }
                return (Fate::Ended(CallOutcome::Rejected), asked.attempts);
            }
            AttemptClass::Oversize => {
                return (Fate::Ended(CallOutcome::Unparsed), asked.attempts);
            }
            AttemptClass::Denied => self.stop(StopReason::Denied),
            AttemptClass::Redirected => self.stop(StopReason::Redirected),
            AttemptClass::Limited if end.out_of_quota => self.stop(StopReason::Quota),
            AttemptClass::Foreign if self.foreign >= FOREIGN_MAX => {
                self.stop(StopReason::Foreign);
            }
            _ => {}
        }
        self.again(place, asked, end, now)
    }

    /// Counts what reached nobody and how long nothing went well, and stops what waits in vain.
    fn reached(&mut self, class: AttemptClass, well: bool, now: Micros) {
        if class == AttemptClass::Unreachable {
            self.unreached += 1;
        } else {
            self.unreached = 0;
            self.was_reached = true;
        }
        if !self.was_reached && self.unreached >= UNREACHED_MAX {
            self.stop(StopReason::Unreachable);
        }
        // Being limited is no failure: the endpoint says how long to wait.
        if well || class == AttemptClass::Limited {
            self.fails_since = None;
            return;
        }
        let lasted = now.saturating_sub(*self.fails_since.get_or_insert(now));
        if lasted > self.rules.patience {
            self.stop(StopReason::Outage { lasted });
        }
    }

    fn again(
        &mut self,
        place: u64,
        mut asked: AskState,
        end: AttemptEnd,
        now: Micros,
    ) -> (Fate, Vec<CallAttempt>) {
        let class = end.attempt.class;
        let failed = u32::try_from(asked.attempts.len()).unwrap_or(u32::MAX);
        let own = retry::backoff(failed, end.draw);
        let due = now.saturating_add(own.saturating_add(end.asked_wait.unwrap_or(0)));
        if matches!(class, AttemptClass::Limited | AttemptClass::Overloaded) {
            self.limiter.said_no(due, now);
        }
        let used_up = failed >= self.rules.attempts_max || asked.attempts.len() >= ATTEMPTS_MAX;
        if self.stopped.is_some() || used_up {
            return (Fate::Ended(CallOutcome::Exhausted), asked.attempts);
        }
        let repeated = self.recent.iter().filter(|again| **again).count();
        if self.recent.len() == RETRY_WINDOW && repeated * 5 > RETRY_WINDOW {
            self.breaker.trip(now);
        }
        asked.due = due;
        asked.waits_for_hold = class.is_maybe_billed();
        self.waiting.insert(place, asked);
        (Fate::Again, Vec::new())
    }

    /// What a stopped run leaves: asks that were attempted, with their attempts, and how many were never sent.
    pub fn leave(&mut self) -> (Vec<(u64, Vec<CallAttempt>)>, u64) {
        let all = std::mem::take(&mut self.waiting);
        let (tried, fresh): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, of)| !of.attempts.is_empty());
        let tried = tried.into_iter().map(|(place, of)| (place, of.attempts));
        (tried.collect(), fresh.len() as u64)
    }

    /// Attempts that may have been billed, of asks that came to nothing yet, by their places.
    pub fn maybe_billed(&self) -> Vec<(u64, u64)> {
        let all = self.waiting.iter().chain(&self.open);
        let maybe = all.map(|(place, of)| {
            let maybe = of.attempts.iter().filter(|of| of.class.is_maybe_billed());
            (*place, maybe.count() as u64)
        });
        maybe.filter(|(_, maybe)| *maybe > 0).collect()
    }

    /// Asks that are sent and not heard of.
    pub fn open(&self) -> impl Iterator<Item = u64> {
        self.open.keys().copied()
    }

    /// Ends an ask that is sent and not heard of, as late.
    pub fn give_up(&mut self, place: u64, ms: Count) -> Option<Vec<CallAttempt>> {
        let mut asked = self.open.remove(&place)?;
        asked.attempts.push(CallAttempt {
            class: AttemptClass::Late,
            ms,
            status: None,
        });
        Some(asked.attempts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NEED: TokenNeed = TokenNeed {
        input: 10,
        output: 10,
    };

    fn end(class: AttemptClass, asked_wait: Option<Micros>) -> AttemptEnd {
        AttemptEnd {
            attempt: CallAttempt {
                class,
                ms: Count::default(),
                status: None,
            },
            asked_wait,
            out_of_quota: false,
            used: None,
            draw: u64::MAX / 2,
        }
    }

    fn with(asks: u64) -> Dispatch {
        let mut dispatch = Dispatch::new(DispatchRules::default(), 0);
        (0..asks).for_each(|place| dispatch.add(place, NEED));
        dispatch
    }

    #[test]
    fn a_limited_ask_is_sent_again_after_the_wait_and_nobody_before() {
        let mut dispatch = with(2);
        assert_eq!(dispatch.step(0), Step::Send(0));
        dispatch.sent(0, 0);
        let (fate, _) = dispatch.ended(0, end(AttemptClass::Limited, Some(5 * SECOND)), 0);
        assert_eq!(fate, Fate::Again);
        // Half of the first backoff of half a second, and the wait.
        assert_eq!(dispatch.step(0), Step::Wait(5 * SECOND + SECOND / 4 - 1));
    }

    #[test]
    fn an_ask_that_was_perhaps_billed_waits_for_the_next_hold() {
        let mut dispatch = with(1);
        dispatch.sent(0, 0);
        dispatch.ended(0, end(AttemptClass::Cut, None), 0);
        assert_eq!(dispatch.step(90 * SECOND), Step::Hold);
        dispatch.held();
        assert_eq!(dispatch.step(90 * SECOND), Step::Send(0));
    }

    #[test]
    fn a_refused_key_stops_the_run_and_says_what_is_left() {
        let mut dispatch = with(3);
        dispatch.sent(0, 0);
        let (fate, attempts) = dispatch.ended(0, end(AttemptClass::Denied, None), 0);
        assert_eq!(fate, Fate::Ended(CallOutcome::Exhausted));
        assert_eq!(attempts.len(), 1);
        assert_eq!(dispatch.step(0), Step::Stopped(StopReason::Denied));
        assert_eq!(dispatch.leave(), (Vec::new(), 2));
    }

    #[test]
    fn an_endpoint_that_rejects_every_ask_stops_the_run() {
        let mut dispatch = with(5);
        for place in 0..3 {
            assert_eq!(dispatch.step(0), Step::Send(place));
            dispatch.sent(place, 0);
            let (fate, _) = dispatch.ended(place, end(AttemptClass::Rejected, None), 0);
            assert_eq!(fate, Fate::Ended(CallOutcome::Rejected));
        }
        assert_eq!(dispatch.step(0), Step::Stopped(StopReason::Rejected));
        assert_eq!(dispatch.leave(), (Vec::new(), 2));
        // Where one was answered, a row that is rejected is that row's fault.
        let mut dispatch = with(5);
        for place in 0..5 {
            dispatch.sent(place, 0);
            let class = if place == 0 {
                AttemptClass::Ok
            } else {
                AttemptClass::Rejected
            };
            dispatch.ended(place, end(class, None), 0);
        }
        assert_eq!(dispatch.step(0), Step::Done);
    }

    #[test]
    fn an_overloaded_endpoint_is_sent_less_at_once() {
        let mut dispatch = with(8);
        let before = dispatch.limiter.limit();
        dispatch.sent(0, 0);
        dispatch.ended(0, end(AttemptClass::Overloaded, None), 0);
        assert!(dispatch.limiter.limit() < before);
    }

    #[test]
    fn a_wait_beyond_patience_stops_the_run() {
        let mut dispatch = with(1);
        dispatch.sent(0, 0);
        dispatch.ended(0, end(AttemptClass::Limited, Some(86_400 * SECOND)), 0);
        assert!(matches!(
            dispatch.step(0),
            Step::Stopped(StopReason::Patience { .. })
        ));
    }

    /// Sends the only ask that waits, as soon as it may go, and ends its attempt; gives when.
    fn attempt(dispatch: &mut Dispatch, class: AttemptClass, mut now: Micros) -> Micros {
        loop {
            match dispatch.step(now) {
                Step::Wait(at) => now = at,
                Step::Send(place) => {
                    dispatch.sent(place, now);
                    dispatch.ended(place, end(class, None), now);
                    return now;
                }
                other => panic!("{other:?} at {now}"),
            }
        }
    }

    #[test]
    fn an_address_that_nobody_answers_at_stops_the_run() {
        let mut dispatch = with(2);
        let mut now = 0;
        for _ in 0..8 {
            now = attempt(&mut dispatch, AttemptClass::Unreachable, now);
        }
        let stopped = Step::Stopped(StopReason::Unreachable);
        assert_eq!(dispatch.step(now), stopped);
        assert!(now < 60 * SECOND, "{now}");
        // Where somebody answered once, it is an outage, and waited for.
        let mut dispatch = with(4);
        now = attempt(&mut dispatch, AttemptClass::Ok, 0);
        for _ in 0..8 {
            now = attempt(&mut dispatch, AttemptClass::Unreachable, now);
        }
        assert!(matches!(dispatch.step(now), Step::Wait(_) | Step::Send(_)));
    }

    #[test]
    fn an_outage_beyond_patience_stops_the_run() {
        let mut dispatch = with(2);
        attempt(&mut dispatch, AttemptClass::Overloaded, 0);
        attempt(&mut dispatch, AttemptClass::Overloaded, 901 * SECOND);
        let lasted = 901 * SECOND;
        let stopped = Step::Stopped(StopReason::Outage { lasted });
        assert_eq!(dispatch.step(lasted), stopped);
    }

    fn class() -> impl Strategy<Value = AttemptClass> {
        prop::sample::select(AttemptClass::ALL)
    }

    proptest! {
        /// Whatever happens, every ask ends exactly once, after at most its attempts, or is left unsent by a stop.
        #[test]
        fn every_ask_ends_once(asks in 1_u64..20, ends in prop::collection::vec((class(), any::<u64>()), 200)) {
            let mut dispatch = with(asks);
            let (mut now, mut ended, mut ends) = (0, BTreeMap::new(), ends.into_iter().cycle());
            for _ in 0..10_000 {
                match dispatch.step(now) {
                    Step::Send(place) => dispatch.sent(place, now),
                    Step::Wait(at) => { prop_assert!(at > now); now = at; }
                    Step::Hold => dispatch.held(),
                    Step::Hear => {
                        let place = dispatch.open().next().unwrap();
                        let (class, draw) = ends.next().unwrap();
                        let (fate, attempts) = dispatch.ended(place, AttemptEnd { draw, ..end(class, None) }, now);
                        if fate != Fate::Again {
                            prop_assert!((1..=6).contains(&attempts.len()));
                            prop_assert!(ended.insert(place, fate).is_none());
                        }
                    }
                    Step::Done => break,
                    Step::Stopped(_) => {
                        let (tried, left) = dispatch.leave();
                        prop_assert_eq!(ended.len() as u64 + tried.len() as u64 + left, asks);
                        return Ok(());
                    }
                }
            }
            prop_assert_eq!(dispatch.step(now), Step::Done);
            prop_assert_eq!(ended.len() as u64, asks);
        }
    }
}
