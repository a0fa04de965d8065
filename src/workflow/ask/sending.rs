//! Asks that are sent through a desk until each has come to something: what a desk hears, read and classed.

use clover_event::calls::AttemptClass;
use clover_event::calls::CallAttempt;
use clover_event::calls::CallOutcome;
use clover_ground::seed::SeedTree;
use clover_ground::time::Timestamp;
use clover_num::Count;

use crate::ask::BrokenCause;
use crate::ask::Desk;
use crate::ask::DeskAnswer;
use crate::ask::Micros;
use crate::ask::ModelAsk;
use crate::ask::Ready;
use crate::ask::Reply;
use crate::ask::WireForm;
use crate::ask::dispatch::AttemptEnd;
use crate::ask::dispatch::Dispatch;
use crate::ask::dispatch::DispatchRules;
use crate::ask::dispatch::Fate;
use crate::ask::dispatch::Step;
use crate::ask::dispatch::StopReason;
use crate::ask::limit::TokenNeed;
use crate::ask::reading;
use crate::ask::reading::ReplyReading;
use crate::ask::reading::StopCause;
use crate::ask::retry;

/// How long a wait goes on before the caller may look around.
const BEAT: Micros = 100_000;
/// Bytes that a token is taken to have before an answer says it.
const TOKEN_BYTES: usize = 3;

/// An ask with the request that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskRequest {
    /// The ask.
    pub ask: ModelAsk,
    /// What is added to the endpoint's URL.
    pub path: String,
    /// The body.
    pub body: Vec<u8>,
}

impl AskRequest {
    /// The request of an ask.
    pub fn of(wire: &dyn WireForm, ask: ModelAsk) -> Self {
        let (path, body) = wire.request(&ask);
        Self { ask, path, body }
    }

    fn need(&self) -> TokenNeed {
        let bytes = self.body.len() / TOKEN_BYTES;
        TokenNeed {
            input: u64::try_from(bytes).unwrap_or(u64::MAX),
            output: self.ask.decoding.max_output_tokens,
        }
    }
}

/// An ask that came to something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedCall {
    /// Its place.
    pub place: u64,
    /// Every attempt.
    pub attempts: Vec<CallAttempt>,
    /// What it came to.
    pub outcome: CallOutcome,
    /// What is wrong, without secrets.
    pub detail: Option<String>,
    /// What the answer says.
    pub reading: Option<ReplyReading>,
    /// The body of the answer; none where it holds a secret.
    pub body: Option<Vec<u8>>,
    /// The provider's name of the request.
    pub provider_request: Option<String>,
}

/// What is heard of asks that are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendingTurn {
    /// Some time went by.
    Beat,
    /// Every ask came to something.
    Done,
    /// An ask came to something.
    Ended(Box<EndedCall>),
    /// Asks wait for the next hold.
    Hold,
    /// Nothing more is sent.
    Stopped(StopReason),
}

/// What an attempt came to, read and classed.
struct HeardReply {
    end: AttemptEnd,
    complaint: Option<String>,
    is_good: bool,
    leaks: bool,
    named: Option<String>,
    read: Option<ReplyReading>,
}

/// Asks that are sent.
pub struct Sending<'a> {
    desk: &'a mut dyn Desk,
    dispatch: Dispatch,
    draws: u64,
    jitter: SeedTree,
    requests: &'a [AskRequest],
    said: Vec<Option<String>>,
    wire: &'a dyn WireForm,
}

impl<'a> Sending<'a> {
    /// Asks that are about to be sent, all of them held for.
    pub fn new(
        desk: &'a mut dyn Desk,
        wire: &'a dyn WireForm,
        requests: &'a [AskRequest],
        (rules, jitter): (DispatchRules, SeedTree),
    ) -> Self {
        let mut all = Self::held_back(desk, wire, requests, (rules, jitter));
        for place in 0..requests.len() as u64 {
            all.add(place);
        }
        all
    }

    /// Asks of which none is sent before [`Sending::add`] names it.
    pub fn held_back(
        desk: &'a mut dyn Desk,
        wire: &'a dyn WireForm,
        requests: &'a [AskRequest],
        (rules, jitter): (DispatchRules, SeedTree),
    ) -> Self {
        Self {
            dispatch: Dispatch::new(rules, desk.now()),
            desk,
            draws: 0,
            jitter,
            requests,
            said: vec![None; requests.len()],
            wire,
        }
    }

    /// An ask may be sent.
    pub fn add(&mut self, place: u64) {
        if let Some(request) = self.request(place) {
            self.dispatch.add(place, request.need());
        }
    }

    /// Attempts that may have been billed, of asks that came to nothing yet, by their places.
    pub fn maybe_billed(&self) -> Vec<(u64, u64)> {
        self.dispatch.maybe_billed()
    }

    /// A new hold covers what waits.
    pub fn held(&mut self) {
        self.dispatch.held();
    }

    /// Sends nothing more.
    pub fn stop(&mut self, reason: StopReason) {
        self.dispatch.stop(reason);
    }

    /// What is heard next; `at` is the time of the clock, for dates in headers.
    pub fn next(&mut self, at: Timestamp) -> SendingTurn {
        loop {
            let now = self.desk.now();
            let wait = match self.dispatch.step(now) {
                Step::Send(place) if self.offer(place) => {
                    self.dispatch.sent(place, now);
                    continue;
                }
                Step::Send(_) | Step::Hear => BEAT,
                Step::Wait(until) => (until - now).min(BEAT),
                Step::Hold => return SendingTurn::Hold,
                Step::Done => return SendingTurn::Done,
                Step::Stopped(reason) => return SendingTurn::Stopped(reason),
            };
            let Some(answered) = self.desk.next(wait) else {
                return SendingTurn::Beat;
            };
            if let Some(ended) = self.ended(answered, at) {
                return SendingTurn::Ended(Box::new(ended));
            }
        }
    }

    fn request(&self, place: u64) -> Option<&'a AskRequest> {
        self.requests.get(usize::try_from(place).ok()?)
    }

    fn offer(&mut self, place: u64) -> bool {
        let Some(request) = self.request(place) else {
            return false;
        };
        let ready = Ready {
            place,
            path: request.path.clone(),
            body: request.body.clone(),
        };
        self.desk.offer(ready).is_ok()
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        let seed = self.jitter.child(&self.draws.to_string()).seed();
        let [a, b, c, d, e, f, g, h, ..] = seed;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// An attempt ended: the ask, where that is all of it.
    fn ended(&mut self, answered: DeskAnswer, at: Timestamp) -> Option<EndedCall> {
        let place = answered.place;
        let slot = usize::try_from(place).ok()?;
        let request = self.requests.get(slot)?;
        let heard = self.heard(&answered, at);
        if heard.complaint.is_some() {
            self.said[slot].clone_from(&heard.complaint);
        }
        let (fate, attempts) = self.dispatch.ended(place, heard.end, self.desk.now());
        let (outcome, detail) = match (fate, &heard.read) {
            (Fate::Again, _) => return None,
            _ if heard.leaks => (CallOutcome::Unparsed, Some("secret".to_owned())),
            (Fate::Ended(outcome), _) => {
                let oversize = heard.end.attempt.class == AttemptClass::Oversize;
                let oversize = oversize.then(|| "oversize".to_owned());
                (outcome, oversize.or_else(|| self.said[slot].take()))
            }
            (Fate::Answered, Some(read)) => {
                let (outcome, detail) = reading::outcome_of(read, &request.ask.format);
                (outcome, detail.map(str::to_owned))
            }
            (Fate::Answered, None) => (CallOutcome::Unparsed, Some("json".to_owned())),
        };
        let body = match answered.reply {
            Reply::Http { body, .. } if heard.is_good && !heard.leaks => Some(body),
            _ => None,
        };
        Some(EndedCall {
            place,
            attempts,
            outcome,
            detail,
            reading: heard.read.filter(|_| !heard.leaks),
            body,
            provider_request: heard.named,
        })
    }

    /// What an attempt came to, read and classed.
    fn heard(&mut self, answered: &DeskAnswer, at: Timestamp) -> HeardReply {
        let (status, headers, body) = match &answered.reply {
            Reply::Http {
                status,
                headers,
                body,
            } => (Some(*status), headers.as_slice(), Some(body)),
            Reply::Broken { status, .. } => (*status, &[][..], None),
        };
        let untrusted = match &answered.reply {
            Reply::Broken {
                cause: BrokenCause::Untrusted,
                ..
            } => Some("the certificate is not trusted".to_owned()),
            _ => None,
        };
        let is_good = status.is_some_and(|of| (200..300).contains(&of));
        let read = body
            .filter(|_| is_good)
            .and_then(|body| self.wire.read(body));
        // What failed inside of a good answer is no answer.
        let has_failed = read
            .as_ref()
            .is_some_and(|read| read.stop == StopCause::Failed);
        let read = read.filter(|_| !has_failed);
        let complaint = body.filter(|_| read.is_none());
        let complaint = complaint.map(|body| self.desk.masked(&self.wire.complaint(body)));
        let used = read.as_ref().and_then(|read| read.tokens.as_ref());
        let sum = |parts: [Count; 3]| {
            let values = parts.iter().map(|part| part.value());
            values.fold(0, u64::saturating_add)
        };
        let named = retry::header(headers, "x-request-id");
        let named = named.or_else(|| retry::header(headers, "request-id"));
        HeardReply {
            end: AttemptEnd {
                attempt: CallAttempt {
                    class: if has_failed {
                        AttemptClass::Failed
                    } else {
                        retry::class_of(&answered.reply, read.is_some())
                    },
                    ms: Count::new(answered.took / 1_000).unwrap_or_default(),
                    status: status.and_then(|of| Count::new(u64::from(of))),
                },
                asked_wait: retry::asked_wait(headers, at),
                out_of_quota: complaint.as_deref().is_some_and(retry::is_out_of_quota),
                used: used.map(|of| TokenNeed {
                    input: sum([of.input, of.cache_write, of.cache_read]),
                    output: of.output.value(),
                }),
                draw: self.draw(),
            },
            is_good,
            leaks: is_good && body.is_some_and(|body| self.desk.holds_secret(body)),
            named: named.map(|text| self.desk.masked(text)),
            complaint: complaint.or(untrusted),
            read,
        }
    }

    /// What a stopped run leaves: asks that were attempted are exhausted, and those still out are late. How many were never
    /// sent stands beside them.
    pub fn leave(&mut self) -> (Vec<EndedCall>, u64) {
        let out: Vec<_> = self.dispatch.open().collect();
        let late = out.into_iter().filter_map(|place| {
            let attempts = self.dispatch.give_up(place, Count::default())?;
            Some((place, attempts))
        });
        let late: Vec<_> = late.collect();
        let (tried, left) = self.dispatch.leave();
        let all = late.into_iter().chain(tried);
        let ended = all.map(|(place, attempts)| {
            let at = usize::try_from(place).unwrap_or(usize::MAX);
            EndedCall {
                place,
                attempts,
                outcome: CallOutcome::Exhausted,
                detail: self.said.get_mut(at).and_then(Option::take),
                reading: None,
                body: None,
                provider_request: None,
            }
        });
        (ended.collect(), left)
    }
}
