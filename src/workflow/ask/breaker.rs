//! A breaker: an endpoint that keeps failing is left alone, and tried again by one request at a time.

use std::collections::VecDeque;

use crate::ask::Micros;
use crate::ask::SECOND;

/// Failures in a row that open it.
const IN_ROW: u32 = 20;
/// Attempts of which half open it.
const OF_LAST: usize = 50;
/// How long those may be back.
const WINDOW: Micros = 60 * SECOND;
/// First rest; it doubles with each failed trial.
const REST_FIRST: Micros = 30 * SECOND;
/// Longest rest.
const REST_MAX: Micros = 600 * SECOND;

/// Whether requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Closed,
    /// Nothing goes before `until`.
    Open {
        until: Micros,
        rest: Micros,
    },
    /// One request is out to see.
    Trying {
        rest: Micros,
    },
}

/// The breaker of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    standing: Standing,
    in_row: u32,
    last: VecDeque<(Micros, bool)>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            standing: Standing::Closed,
            in_row: 0,
            last: VecDeque::new(),
        }
    }
}

impl Breaker {
    /// When a request may go; `None` while one is out to see.
    pub fn ready(&self, now: Micros) -> Option<Micros> {
        match self.standing {
            Standing::Closed => Some(now),
            Standing::Open { until, .. } => Some(until.max(now)),
            Standing::Trying { .. } => None,
        }
    }

    /// A request goes.
    pub fn sent(&mut self) {
        if let Standing::Open { rest, .. } = self.standing {
            self.standing = Standing::Trying { rest };
        }
    }

    /// An attempt ended.
    pub fn ended(&mut self, well: bool, now: Micros) {
        self.last.push_back((now, well));
        while self.last.len() > OF_LAST {
            self.last.pop_front();
        }
        self.in_row = if well { 0 } else { self.in_row + 1 };
        match self.standing {
            Standing::Trying { .. } if well => {
                self.standing = Standing::Closed;
                self.last.clear();
            }
            Standing::Trying { rest } => self.open(rest.saturating_mul(2).min(REST_MAX), now),
            Standing::Closed if self.is_bad(now) => self.open(REST_FIRST, now),
            // An attempt that was on its way when it opened.
            Standing::Closed | Standing::Open { .. } => {}
        }
    }

    /// Opens it, whatever ended: too much is sent again.
    pub fn trip(&mut self, now: Micros) {
        if self.standing == Standing::Closed {
            self.open(REST_FIRST, now);
        }
    }

    fn open(&mut self, rest: Micros, now: Micros) {
        let until = now.saturating_add(rest);
        self.standing = Standing::Open { until, rest };
        self.in_row = 0;
        self.last.clear();
    }

    fn is_bad(&self, now: Micros) -> bool {
        if self.in_row >= IN_ROW {
            return true;
        }
        let since = now.saturating_sub(WINDOW);
        let failed = self.last.iter().filter(|(at, well)| !well && *at >= since);
        self.last.len() == OF_LAST && failed.count() * 2 >= OF_LAST
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn twenty_failures_in_a_row_open_it_and_one_trial_closes_it() {
        let mut breaker = Breaker::default();
        (0..19).for_each(|_| breaker.ended(false, 0));
        assert_eq!(breaker.ready(0), Some(0));
        breaker.ended(false, 0);
        assert_eq!(breaker.ready(0), Some(30 * SECOND));
        breaker.sent();
        assert_eq!(
            breaker.ready(40 * SECOND),
            None,
            "one request is out to see"
        );
        breaker.ended(false, 40 * SECOND);
        assert_eq!(breaker.ready(40 * SECOND), Some(100 * SECOND));
        breaker.sent();
        breaker.ended(true, 101 * SECOND);
        assert_eq!(breaker.ready(101 * SECOND), Some(101 * SECOND));
    }

    #[test]
    fn half_of_the_last_fifty_open_it() {
        let mut breaker = Breaker::default();
        for at in 0..49 {
            breaker.ended(at % 2 == 0, 0);
        }
        assert_eq!(breaker.ready(0), Some(0));
        breaker.ended(false, 0);
        assert_eq!(breaker.ready(0), Some(30 * SECOND));
    }

    proptest! {
        /// It never rests longer than ten minutes, and lets one request through after each rest.
        #[test]
        fn it_always_tries_again(events in prop::collection::vec(any::<bool>(), 1..400)) {
            let (mut breaker, mut now) = (Breaker::default(), 0);
            for well in events {
                let at = breaker.ready(now);
                prop_assert!(at.is_some_and(|at| at <= now + REST_MAX));
                now = at.unwrap_or(now);
                breaker.sent();
                breaker.ended(well, now);
            }
        }
    }
}
