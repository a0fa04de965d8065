//! What an endpoint can do, asked of it: a parameter that is taken is not yet followed, so each is tried.
//!
//! At most 12 asks, all of texts that stand here. What each finds is said in [`EndpointAbilities`].

use clover_event::calls::CallOutcome;
use clover_event::id::EndpointId;
use clover_event::payload::endpoint::Ability;
use clover_ground::seed::SeedTree;
use clover_ground::time::Timestamp;
use clover_num::math;

use crate::ask::AnswerFormat;
use crate::ask::AskDecoding;
use crate::ask::Desk;
use crate::ask::Message;
use crate::ask::ModelAsk;
use crate::ask::Speaker;
use crate::ask::WireForm;
use crate::ask::dispatch::DispatchRules;
use crate::ask::dispatch::StopReason;
use crate::ask::reading::ReplyReading;
use crate::ask::reading::ReplyToken;
use crate::ask::sending::AskRequest;
use crate::ask::sending::EndedCall;
use crate::ask::sending::Sending;
use crate::ask::sending::SendingTurn;

/// Draws that are compared with one another.
const DRAWS: usize = 3;
/// Most tokens of an answer of several words.
const WORDS_LIMIT: u64 = 64;
/// Most tokens of the answer that is to be cut.
const CUT_LIMIT: u64 = 3;
/// How much more than 1 masses may add up to, for their roundings.
const MASS_SLACK: f64 = 1e-4;
/// One nat in millionths.
const NAT: f64 = 1e6;

/// What an ask of the probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Plain,
    Schema,
    Logprobs,
    Seeded,
    Unseeded,
    Cold,
    Cut,
}

/// What an endpoint was found to do with each thing that a plan can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointAbilities {
    /// It says how much of its input came from a cache.
    pub cache_usage: Ability,
    /// The answer keeps to a JSON Schema, against what the text asks for.
    pub json_schema: Ability,
    /// It gives log-probabilities of tokens, finite, whose masses add up to at most 1.
    pub logprobs: Ability,
    /// The limit of output tokens is kept.
    pub output_limit: Ability,
    /// Draws with the same seed agree, where draws without one do not.
    pub seed: Ability,
    /// It takes a temperature of 0.
    pub temperature: Ability,
    /// It says how many tokens were used, and the sums fit.
    pub usage: Ability,
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFindings {
    /// What it can do.
    pub abilities: EndpointAbilities,
    /// Every ask, by its place, with what it came to.
    pub calls: Vec<(ModelAsk, EndedCall)>,
    /// Fingerprints of the system behind it, in order, each once.
    pub fingerprints: Vec<String>,
    /// Asks that were never sent.
    pub left: u64,
    /// Models that answered, in order, each once.
    pub models: Vec<String>,
    /// Why it stopped before its end.
    pub stopped: Option<StopReason>,
}

fn asks(wire: &dyn WireForm, (endpoint, model): (&EndpointId, &str)) -> Vec<(Aim, ModelAsk)> {
    let words = "Write six words that name trees, separated by spaces, and nothing else.";
    let against = "Answer with the single word red, as plain text without any JSON.";
    let decoding = |limit, temperature, seed| AskDecoding {
        max_output_tokens: limit,
        seed,
        temperature_micro: temperature,
    };
    let ask = |aim: Aim, text: &str, format: AnswerFormat, decoding, repeat| {
        let message = Message {
            role: Speaker::User,
            text: text.to_owned(),
        };
        let to = (endpoint.clone(), model.to_owned());
        let said = (vec![message], format);
        let mut ask = ModelAsk::new(to, said, decoding, "check-0".to_owned());
        ask.repeat = repeat;
        (aim, ask)
    };
    let choices = ["blue", "green"].map(str::to_owned).to_vec();
    let plain = decoding(WORDS_LIMIT, None, None);
    let warm = Some(1_000_000);
    let mut all = vec![
        ask(Aim::Plain, words, AnswerFormat::Text, plain, 0),
        ask(
            Aim::Schema,
            against,
            AnswerFormat::Choice { choices },
            plain,
            0,
        ),
        ask(
            Aim::Cold,
            words,
            AnswerFormat::Text,
            decoding(WORDS_LIMIT, Some(0), None),
            0,
        ),
        ask(
            Aim::Cut,
            words,
            AnswerFormat::Text,
            decoding(CUT_LIMIT, None, None),
            0,
        ),
    ];
    if wire.has_logprobs() {
        all.push(ask(Aim::Logprobs, words, AnswerFormat::Logprobs, plain, 0));
    }
    if wire.has_seed() {
        for repeat in (0..).take(DRAWS) {
            let seeded = decoding(WORDS_LIMIT, warm, Some(7));
            all.push(ask(Aim::Seeded, words, AnswerFormat::Text, seeded, repeat));
            let free = decoding(WORDS_LIMIT, warm, None);
            all.push(ask(Aim::Unseeded, words, AnswerFormat::Text, free, repeat));
        }
    }
    all
}

/// Asks an endpoint what it can do. `goes_on` is asked now and then; `clock` is read for dates in headers.
pub fn probe(
    (desk, wire): (&mut dyn Desk, &dyn WireForm),
    to: (&EndpointId, &str),
    (rules, jitter): (DispatchRules, SeedTree),
    clock: &dyn Fn() -> Timestamp,
    goes_on: &mut dyn FnMut(u64, u64) -> bool,
) -> ProbeFindings {
    let aims = asks(wire, to);
    let requests = aims
        .iter()
        .map(|(_, ask)| AskRequest::of(wire, ask.clone()));
    let requests: Vec<_> = requests.collect();
    let all = requests.len() as u64;
    let mut sending = Sending::new(desk, wire, &requests, (rules, jitter));
    let (mut ended, mut stopped, mut left) = (Vec::new(), None, 0);
    loop {
        if !goes_on(ended.len() as u64, all) {
            sending.stop(StopReason::Interrupted);
        }
        match sending.next(clock()) {
            SendingTurn::Beat => {}
            SendingTurn::Ended(of) => ended.push(*of),
            // Nothing is paid for here: what was perhaps billed may be sent again.
            SendingTurn::Hold => sending.held(),
            SendingTurn::Done => break,
            SendingTurn::Stopped(reason) => {
                stopped = Some(reason);
                let rest = sending.leave();
                ended.extend(rest.0);
                left = rest.1;
                break;
            }
        }
    }
    ended.sort_by_key(|of| of.place);
    let calls = ended.into_iter().filter_map(|of| {
        let (aim, ask) = aims.get(usize::try_from(of.place).ok()?)?;
        Some((*aim, ask.clone(), of))
    });
    findings(wire, calls.collect(), (stopped, left))
}

fn findings(
    wire: &dyn WireForm,
    calls: Vec<(Aim, ModelAsk, EndedCall)>,
    (stopped, left): (Option<StopReason>, u64),
) -> ProbeFindings {
    let of = |aim: Aim| -> Vec<&EndedCall> {
        let mine = calls.iter().filter(|(of, ..)| *of == aim);
        mine.map(|(.., ended)| ended).collect()
    };
    let readings: Vec<&ReplyReading> = calls
        .iter()
        .filter_map(|(.., ended)| ended.reading.as_ref())
        .collect();
    let sorted = |texts: Vec<Option<&String>>| {
        let mut found: Vec<String> = texts.into_iter().flatten().cloned().collect();
        found.sort();
        found.dedup();
        found
    };
    let models = sorted(readings.iter().map(|of| of.model.as_ref()).collect());
    let fingerprints = readings.iter().map(|of| of.fingerprint.as_ref());
    let fingerprints = sorted(fingerprints.collect());
    let every = |holds: &dyn Fn(&ReplyReading) -> bool| {
        if readings.is_empty() {
            Ability::Untested
        } else if readings.iter().all(|of| holds(of)) {
            Ability::Yes
        } else {
            Ability::No
        }
    };
    let abilities = EndpointAbilities {
        cache_usage: every(&|of| of.says_cache),
        json_schema: one(&of(Aim::Schema), &|ended| {
            ended.outcome == CallOutcome::Answered
        }),
        logprobs: if wire.has_logprobs() {
            one(&of(Aim::Logprobs), &|ended| {
                ended.reading.as_ref().is_some_and(has_masses)
            })
        } else {
            Ability::No
        },
        output_limit: one(&of(Aim::Cut), &|ended| {
            let tokens = ended.reading.as_ref().and_then(|of| of.tokens);
            // Hidden reasoning counts; a server may end one token late.
            tokens.is_some_and(|of| of.output.value() <= CUT_LIMIT + 1)
        }),
        seed: if wire.has_seed() {
            seed(&of(Aim::Seeded), &of(Aim::Unseeded))
        } else {
            Ability::No
        },
        temperature: one(&of(Aim::Cold), &|_| true),
        usage: every(&|of| of.tokens.is_some() && of.tokens_fit),
    };
    ProbeFindings {
        abilities,
        calls: calls.into_iter().map(|(_, ask, of)| (ask, of)).collect(),
        fingerprints,
        left,
        models,
        stopped,
    }
}

/// What one ask shows: `no` where it was not taken, `ignored` where the answer does not follow it.
fn one(ended: &[&EndedCall], follows: &dyn Fn(&EndedCall) -> bool) -> Ability {
    let Some(ended) = ended.first() else {
        return Ability::Untested;
    };
    match ended.outcome {
        CallOutcome::Rejected => Ability::No,
        CallOutcome::Answered | CallOutcome::Truncated | CallOutcome::Unparsed => {
            if follows(ended) {
                Ability::Yes
            } else {
                Ability::Ignored
            }
        }
        _ => Ability::Untested,
    }
}

/// Whether every token has finite masses that add up to at most 1.
fn has_masses(of: &ReplyReading) -> bool {
    let is_whole = |token: &ReplyToken| {
        let masses = &token.masses;
        let each = masses.iter().map(|mass| {
            let nats = mass.logprob_micro.map(|micro| micro as f64 / NAT);
            nats.map(math::exp)
        });
        let sum: Option<f64> = each.sum();
        !masses.is_empty() && sum.is_some_and(|sum| sum <= 1.0 + MASS_SLACK)
    };
    !of.tokens_said.is_empty() && of.tokens_said.iter().all(is_whole)
}

/// What draws show: nothing is told where draws without a seed agree too.
fn seed(seeded: &[&EndedCall], free: &[&EndedCall]) -> Ability {
    let texts = |all: &[&EndedCall]| -> Option<Vec<String>> {
        let read = all.iter().map(|of| Some(of.reading.as_ref()?.text.clone()));
        read.collect()
    };
    if seeded.iter().any(|of| of.outcome == CallOutcome::Rejected) {
        return Ability::No;
    }
    let (Some(seeded), Some(free)) = (texts(seeded), texts(free)) else {
        return Ability::Untested;
    };
    let agree = |texts: &[String]| texts.windows(2).all(|pair| pair[0] == pair[1]);
    match (agree(&seeded), agree(&free)) {
        _ if seeded.len() < DRAWS || free.len() < DRAWS => Ability::Untested,
        (false, _) => Ability::Ignored,
        (true, false) => Ability::Yes,
        (true, true) => Ability::Untested,
    }
}
