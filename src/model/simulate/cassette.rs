//! A double that answers from a cassette and from nothing else.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use clover_event::calls::AttemptClass;
use clover_event::payload::endpoint::Dialect;
use clover_ground::digest::Digest;
use clover_workflow::ask::ModelAsk;
use clover_workflow::ask::cassette;
use clover_workflow::ask::cassette::CassetteCall;
use serde_json::Value;

use crate::dialect;

/// What a double does with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TapedStep {
    /// It answers.
    Answer {
        body: Vec<u8>,
        request: Option<String>,
        status: u16,
    },
    /// It breaks the connection off.
    Cut,
    /// It answers with a status and an error.
    Status(u16),
}

/// An ask with what came of it, attempt by attempt.
#[derive(Clone, Debug)]
struct TapedAsk {
    ask: ModelAsk,
    steps: Vec<TapedStep>,
}

/// An ask in one dialect.
#[derive(Debug)]
struct TapedRequest {
    at: usize,
    body: Value,
    path: String,
}

/// Requests of a dialect by the digests of their bodies.
type TapedForm = BTreeMap<Digest, Vec<TapedRequest>>;

/// What a double may be asked, and what it was asked that is not there.
#[derive(Debug, Default)]
pub struct Tape {
    asks: Vec<TapedAsk>,
    forms: Mutex<BTreeMap<Dialect, TapedForm>>,
    missed: Mutex<Option<String>>,
    served: Mutex<BTreeMap<usize, usize>>,
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of a call, attempt by attempt: its answer stands at the last.
fn steps(call: &CassetteCall) -> Vec<TapedStep> {
    let last = call.attempts.len().saturating_sub(1);
    let mut steps = Vec::new();
    for (at, attempt) in call.attempts.iter().enumerate() {
        let status = attempt.status.and_then(|of| u16::try_from(of.value()).ok());
        let body = call.body.as_ref().filter(|_| at == last);
        steps.extend(match (attempt.class, body, status) {
            // Nothing arrived; or an answer that was not kept, which cannot be given again.
            (AttemptClass::Unreachable, ..) | (AttemptClass::Ok, None, _) => None,
            (AttemptClass::Cut | AttemptClass::Late | AttemptClass::Oversize, ..) => {
                Some(TapedStep::Cut)
            }
            (_, Some(body), status) => Some(TapedStep::Answer {
                body: body.clone(),
                request: call.provider_request.clone(),
                status: status.unwrap_or(200),
            }),
            (AttemptClass::Foreign, None, status) => Some(TapedStep::Answer {
                body: b"<html>".to_vec(),
                request: None,
                status: status.unwrap_or(200),
            }),
            (_, None, status) => Some(status.map_or(TapedStep::Cut, TapedStep::Status)),
        });
    }
    steps
}

impl Tape {
    /// From calls in the order of a cassette.
    pub fn new(calls: impl IntoIterator<Item = CassetteCall>) -> Self {
        let mut asks: Vec<TapedAsk> = Vec::new();
        for call in calls {
            let more = steps(&call);
            match asks.last_mut() {
                Some(last) if last.ask == call.ask => last.steps.extend(more),
                _ => asks.push(TapedAsk {
                    ask: call.ask,
                    steps: more,
                }),
            }
        }
        Self {
            asks,
            ..Self::default()
        }
    }

    /// How many asks it has.
    pub fn asks(&self) -> usize {
        self.asks.len()
    }

    /// What is wrong with the first request that is not on it, in words.
    pub fn missed(&self) -> Option<String> {
        locked(&self.missed).clone()
    }

    /// What is done with a request.
    ///
    /// # Errors
    /// What is not on it, in words.
    pub(super) fn step(
        &self,
        dialect: Dialect,
        (path, body): (&str, &[u8]),
    ) -> Result<TapedStep, String> {
        let found = self.find(dialect, (path, body));
        let step = found.and_then(|at| {
            let ask = &self.asks[at];
            let mut served = locked(&self.served);
            let turn = served.entry(at).or_default();
            // What was asked to its end is answered as it was last.
            let step = ask.steps.get(*turn).or(ask.steps.last());
            *turn += 1;
            step.cloned().ok_or_else(|| {
                let key = ask.ask.plain_key();
                format!("the ask {key} stands on the cassette without an answer")
            })
        });
        if let Err(what) = &step {
            locked(&self.missed).get_or_insert(what.clone());
        }
        step
    }

    fn find(&self, dialect: Dialect, (path, body): (&str, &[u8])) -> Result<usize, String> {
        let mut forms = locked(&self.forms);
        let form = forms.entry(dialect).or_insert_with(|| self.form(dialect));
        let alike = form.get(&Digest::sha256(body)).into_iter().flatten();
        let mut exact = alike.filter(|of| path.ends_with(&of.path));
        if let Some(of) = exact.next() {
            return Ok(of.at);
        }
        let asked = serde_json::from_slice(body).unwrap_or(Value::Null);
        Err(nearest(form, path, &asked, |at| {
            self.asks[at].ask.plain_key()
        }))
    }

    /// Its asks as requests of a dialect.
    fn form(&self, dialect: Dialect) -> TapedForm {
        let wire = dialect::wire(dialect);
        let mut form = TapedForm::new();
        for (at, of) in self.asks.iter().enumerate() {
            let (path, bytes) = wire.request(&of.ask);
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            let request = TapedRequest { at, body, path };
            form.entry(Digest::sha256(&bytes))
                .or_default()
                .push(request);
        }
        form
    }
}

/// The member in which a request differs from the nearest one: that with the fewest members that differ.
fn nearest(form: &TapedForm, path: &str, asked: &Value, key: impl Fn(usize) -> Digest) -> String {
    let all = form.values().flatten();
    let apart = all.map(|of| {
        let (mut count, mut member) = cassette::difference(asked, &of.body);
        if !path.ends_with(&of.path) {
            count += 1;
            member.get_or_insert("the path".to_owned());
        }
        (count, of.at, member)
    });
    match apart.min_by_key(|(count, at, _)| (*count, *at)) {
        None => "the cassette is empty".to_owned(),
        Some((count, at, member)) => {
            let member = member.unwrap_or_else(|| "the order of its members".to_owned());
            let more = match count {
                0 | 1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let key = key(at);
            format!("an ask is not on the cassette: {member}{more} differs from the nearest, {key}")
        }
    }
}
