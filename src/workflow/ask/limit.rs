//! How much is sent at once and how fast: buckets of requests and tokens, a gate that a 429 closes, and concurrency that grows
//! until the endpoint says no. Integers only.

use crate::ask::Micros;
use crate::ask::SECOND;

/// What a bucket holds when it is full, in seconds of its rate.
const CAPACITY_SECONDS: u64 = 5;
/// Parts of a bucket in one unit: a rate a minute fills this many a microsecond.
const PARTS: i128 = 60_000_000;
/// Where automatic concurrency begins.
const BEGIN: u32 = 4;
/// The most that automatic concurrency reaches.
const CONCURRENCY_MAX: u32 = 256;
/// Least time between two cuts of concurrency.
const CUT_EVERY: Micros = 15 * SECOND;

/// A bucket that fills at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    per_minute: u64,
    parts: i128,
    at: Micros,
}

impl Bucket {
    fn new(per_minute: u64, now: Micros) -> Self {
        let mut bucket = Self {
            per_minute,
            parts: 0,
            at: now,
        };
        bucket.parts = bucket.capacity();
        bucket
    }

    fn capacity(&self) -> i128 {
        i128::from(self.per_minute) * i128::from(CAPACITY_SECONDS * SECOND)
    }

    fn fill(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.at);
        let filled = i128::from(self.per_minute) * i128::from(passed);
        self.parts = (self.parts + filled).min(self.capacity());
        self.at = self.at.max(now);
    }

    /// When it has `units`, or is full: what is larger than the bucket goes when it is full, and leaves a debt.
    fn ready(&self, units: u64) -> Micros {
        let wanted = (i128::from(units) * PARTS).min(self.capacity());
        let missing = (wanted - self.parts).max(0);
        let rate = i128::from(self.per_minute.max(1));
        let wait = (missing + rate - 1) / rate;
        self.at
            .saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn take(&mut self, units: i128) {
        self.parts = (self.parts - units * PARTS).min(self.capacity());
    }
}

/// Rates that settings give, a minute; none where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<u64>,
    /// Tokens of input.
    pub input: Option<u64>,
    /// Tokens of output.
    pub output: Option<u64>,
    /// Tokens of both.
    pub tokens: Option<u64>,
}

/// What one request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenNeed {
    /// Tokens of input.
    pub input: u64,
    /// Tokens of output.
    pub output: u64,
}

/// How many are open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Concurrency {
    limit: u32,
    max: u32,
    doubles: bool,
    /// Answers of this round, and the most that were open in it.
    round: (u32, u32),
    quiet_until: Micros,
}

/// How many units of a bucket an ask takes.
type UnitCost = fn(TokenNeed) -> u64;

/// The limiter of one endpoint.
#[derive(Clone, Debug)]
pub struct Limiter {
    buckets: Vec<(Bucket, UnitCost)>,
    concurrency: Concurrency,
    open: u32,
    gate: Micros,
}

impl Limiter {
    /// A limiter with the rates of the settings, and at most `max` open at once.
    pub fn new(rates: RateLimits, max: Option<u32>, now: Micros) -> Self {
        let max = max.unwrap_or(CONCURRENCY_MAX).clamp(1, CONCURRENCY_MAX);
        let parts: [(Option<u64>, UnitCost); 4] = [
            (rates.requests, |_| 1),
            (rates.input, |need| need.input),
            (rates.output, |need| need.output),
            (rates.tokens, |need| need.input.saturating_add(need.output)),
        ];
        let buckets = parts.into_iter().filter_map(|(rate, of)| {
            let rate = rate.filter(|rate| *rate > 0)?;
            Some((Bucket::new(rate, now), of))
        });
        Self {
            buckets: buckets.collect(),
            concurrency: Concurrency {
                limit: BEGIN.min(max),
                max,
                doubles: true,
                round: (0, 0),
                quiet_until: 0,
            },
            open: 0,
            gate: 0,
        }
    }

    /// How many may be open at once.
    pub fn limit(&self) -> u32 {
        self.concurrency.limit
    }

    /// How many are open.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// When a request may go; `None` while as many are open as may be.
    pub fn ready(&mut self, need: TokenNeed, now: Micros) -> Option<Micros> {
        if self.open >= self.concurrency.limit {
            return None;
        }
        let mut at = self.gate.max(now);
        for (bucket, of) in &mut self.buckets {
            bucket.fill(now);
            at = at.max(bucket.ready(of(need)));
        }
        Some(at)
    }

    /// A request goes.
    pub fn sent(&mut self, need: TokenNeed, now: Micros) {
        for (bucket, of) in &mut self.buckets {
            bucket.fill(now);
            bucket.take(i128::from(of(need)));
        }
        self.open += 1;
        let (_, most) = &mut self.concurrency.round;
        *most = (*most).max(self.open);
    }

    /// An attempt ended. What it used, where that is known, takes the place of what was reserved.
    pub fn ended(&mut self, need: TokenNeed, used: Option<TokenNeed>) {
        self.open = self.open.saturating_sub(1);
        if let Some(used) = used {
            for (bucket, of) in &mut self.buckets {
                bucket.take(i128::from(of(used)) - i128::from(of(need)));
            }
        }
    }

    /// It ended well: a round of answers that used most of what may be open lets more be open.
    pub fn went_well(&mut self) {
        let of = &mut self.concurrency;
        of.round.0 += 1;
        if of.round.0 < of.limit {
            return;
        }
        let saturated = of.round.1 * 10 >= of.limit * 8;
        of.round = (0, 0);
        if saturated {
            let more = if of.doubles {
                of.limit
            } else {
                (of.limit / 20).max(1)
            };
            of.limit = of.limit.saturating_add(more).min(of.max);
        }
    }

    /// The endpoint says that it is too much: nobody sends before `until`, and fewer are open, at most once in 15 seconds.
    pub fn said_no(&mut self, until: Micros, now: Micros) {
        self.gate = self.gate.max(until);
        let of = &mut self.concurrency;
        of.doubles = false;
        of.round = (0, 0);
        if now >= of.quiet_until {
            of.limit = (of.limit * 7 / 10).max(1);
            of.quiet_until = until.max(now.saturating_add(CUT_EVERY));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: TokenNeed = TokenNeed {
        input: 10,
        output: 5,
    };

    fn of(requests: u64) -> RateLimits {
        RateLimits {
            requests: Some(requests),
            ..RateLimits::default()
        }
    }

    #[test]
    fn a_closed_gate_holds_everybody_back() {
        let mut limiter = Limiter::new(RateLimits::default(), None, 0);
        limiter.sent(ONE, 0);
        limiter.ended(ONE, None);
        limiter.said_no(9 * SECOND, SECOND);
        assert_eq!(limiter.ready(ONE, 2 * SECOND), Some(9 * SECOND));
        assert_eq!(limiter.ready(ONE, 10 * SECOND), Some(10 * SECOND));
    }

    #[test]
    fn concurrency_doubles_until_a_refusal_and_then_grows_by_one() {
        let mut limiter = Limiter::new(RateLimits::default(), None, 0);
        let round = |limiter: &mut Limiter| {
            let limit = limiter.limit();
            (0..limit).for_each(|_| limiter.sent(ONE, 0));
            assert_eq!(limiter.ready(ONE, 0), None, "as many are open as may be");
            for _ in 0..limit {
                limiter.ended(ONE, None);
                limiter.went_well();
            }
        };
        round(&mut limiter);
        assert_eq!(limiter.limit(), 8);
        round(&mut limiter);
        assert_eq!(limiter.limit(), 16);
        limiter.said_no(SECOND, 0);
        limiter.said_no(SECOND, 1);
        assert_eq!(limiter.limit(), 11, "cut once in 15 seconds");
        round(&mut limiter);
        assert_eq!(limiter.limit(), 12);
    }

    #[test]
    fn a_request_larger_than_its_bucket_goes_when_the_bucket_is_full() {
        let rates = RateLimits {
            input: Some(60),
            ..RateLimits::default()
        };
        let mut limiter = Limiter::new(rates, Some(4), 0);
        let large = TokenNeed {
            input: 60,
            output: 0,
        };
        assert_eq!(limiter.ready(large, 0), Some(0));
        limiter.sent(large, 0);
        // A token a second: the debt of 55 and the bucket of 5 take a minute.
        assert_eq!(limiter.ready(large, 0), Some(60 * SECOND));
    }

    proptest! {
        /// However requests come, no minute sees more than the rate and one bucket.
        #[test]
        fn no_window_is_sent_more_than_its_rate(
            rate in 1_u64..600,
            steps in prop::collection::vec(0_u64..3 * SECOND, 1..200),
        ) {
            let mut limiter = Limiter::new(of(rate), Some(256), 0);
            let (mut now, mut sent) = (0, Vec::new());
            for step in steps {
                now += step;
                if let Some(at) = limiter.ready(ONE, now) {
                    now = now.max(at);
                    limiter.sent(ONE, now);
                    sent.push(now);
                    limiter.ended(ONE, None);
                }
            }
            let most = rate + (rate * CAPACITY_SECONDS).div_ceil(60) + 1;
            for (first, from) in sent.iter().enumerate() {
                let within = sent[first..].iter().filter(|at| **at - from < 60 * SECOND);
                prop_assert!(within.count() as u64 <= most);
            }
        }

        #[test]
        fn what_may_be_open_stays_within_its_bounds(
            max in 1_u32..300,
            events in prop::collection::vec((any::<bool>(), 0_u64..20 * SECOND), 0..300),
        ) {
            let mut limiter = Limiter::new(RateLimits::default(), Some(max), 0);
            let mut now = 0;
            for (well, step) in events {
                now += step;
                while limiter.ready(ONE, now).is_some_and(|at| at <= now) {
                    limiter.sent(ONE, now);
                }
                prop_assert!(limiter.open() <= max.min(CONCURRENCY_MAX));
                limiter.ended(ONE, None);
                if well { limiter.went_well() } else { limiter.said_no(now, now) }
                prop_assert!((1..=max.min(CONCURRENCY_MAX)).contains(&limiter.limit()));
            }
        }
    }
}
