//! Recorded answers by the digest of their request.
//!
//! JSON Lines: `{"item":"a-1","request":"<64 hex digits>","nth":0,"text":"…"}`, or `"error":"timeout"`, or
//! `"error":"failed: why"` in place of `text`; `nth` counts how often the same request was asked before of the item, and
//! `usage` may say what the call cost. A line without `item` answers any item: its `nth` counts over the whole run.

use std::collections::BTreeMap;

use clover_ground::digest::Digest;

use crate::decode::Fields;
use crate::decode::Spot;
use crate::executor::Executor;
use crate::executor::ExecutorFault;
use crate::executor::StepAnswer;
use crate::executor::StepAsk;
use crate::executor::Usage;
use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::number::Number;
use crate::syntax;
use crate::value::Data;

/// Most bytes of a line.
pub const LINE_MAX: usize = 1 << 20;
/// How the error of an endpoint begins.
const FAILED: &str = "failed: ";

/// Recorded answers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    answers: BTreeMap<AnswerPlace, StepAnswer>,
    asked: AskCounts,
}

/// The item of an answer, or none; its request; how often the same was asked before.
type AnswerPlace = (Option<String>, Digest, usize);

/// How often each request was asked, of the item at hand and of all.
#[derive(Clone, Debug, Default)]
struct AskCounts {
    item: Option<String>,
    of_item: BTreeMap<Digest, usize>,
    of_all: BTreeMap<Digest, usize>,
}

impl AskCounts {
    fn begin(&mut self, item: &str) {
        self.item = Some(item.to_owned());
        self.of_item.clear();
    }

    /// Counts an ask; gives how often it was asked before, of the item and of all.
    fn next(&mut self, digest: Digest) -> (usize, usize) {
        let count = |counts: &mut BTreeMap<Digest, usize>| {
            let asked = counts.entry(digest).or_default();
            *asked += 1;
            *asked - 1
        };
        (count(&mut self.of_item), count(&mut self.of_all))
    }
}

impl Table {
    /// Adds a line.
    ///
    /// # Errors
    /// [`Fault`] at what is no answer, or where the same answer stands twice. Lines are counted from 1 within it.
    pub fn add_line(&mut self, line: &str) -> Result<(), Fault> {
        let node = syntax::parse(line, LINE_MAX)?;
        let spot = Spot::root(&node);
        let fields = spot.fields(&["item", "request", "nth", "text", "error", "usage"])?;
        let item = fields.get("item").map(|spot| spot.text(200)).transpose()?;
        let request = fields.need("request")?;
        let digest = Digest::from_hex(request.text(64)?);
        let digest = digest.ok_or_else(|| request.expected("64 lower-case hex digits"))?;
        let nth = fields.get("nth");
        let nth = nth.map_or(Ok(0), |spot| spot.count(0, 1_000_000, "a count"))?;
        let usage = usage(&fields)?;
        let answer = match (fields.get("text"), fields.get("error")) {
            (Some(text), None) => StepAnswer::Text(any_text(&text)?, usage),
            (None, Some(error)) => match error.text(1_000)? {
                "timeout" => StepAnswer::Timeout(usage),
                text => match text.strip_prefix(FAILED) {
                    Some(why) => StepAnswer::Failed(why.to_owned(), usage),
                    None => return Err(error.expected("timeout, or failed: and why")),
                },
            },
            (None, None) => return Err(spot.fault(FaultKind::MissingMember("text"))),
            (Some(text), Some(_)) => return Err(text.expected("text or error, not both")),
        };
        let nth = usize::try_from(nth).unwrap_or(usize::MAX);
        let key = (item.map(str::to_owned), digest, nth);
        match self.answers.insert(key, answer) {
            None => Ok(()),
            Some(_) => Err(spot.fault(FaultKind::Twice(digest.to_hex()))),
        }
    }

    /// Goes on with an item.
    pub fn begin(&mut self, item: &str) {
        self.asked.begin(item);
    }

    /// How many answers it holds.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

fn any_text(spot: &Spot<'_>) -> Result<String, Fault> {
    match spot.data()? {
        Data::Text(text) => Ok(text),
        _ => Err(spot.expected("a text")),
    }
}

fn usage(fields: &Fields<'_>) -> Result<Usage, Fault> {
    let Some(spot) = fields.get("usage") else {
        return Ok(Usage {
            calls: 1,
            ..Usage::default()
        });
    };
    let of = spot.fields(&["calls", "ms", "tokens_in", "tokens_out", "usd_micro"])?;
    let count = |name: &str| match of.get(name) {
        None => Ok(0),
        Some(spot) => spot.count(0, clover_num::INTEGER_MAX, "a count"),
    };
    Ok(Usage {
        calls: 1,
        ms: count("ms")?,
        tokens_in: count("tokens_in")?,
        tokens_out: count("tokens_out")?,
        usd_micro: count("usd_micro")?,
    })
}

/// An answer as a line of a table, without a line break; of an item, where one was asked about.
pub fn to_line(item: Option<&str>, (digest, nth): (Digest, usize), answer: &StepAnswer) -> String {
    let number = |count: u64| Data::Number(Number::of_count(usize::try_from(count).unwrap_or(0)));
    let (name, text, usage) = match answer {
        StepAnswer::Text(text, usage) => ("text", text.clone(), usage),
        StepAnswer::Timeout(usage) => ("error", "timeout".to_owned(), usage),
        StepAnswer::Failed(why, usage) => ("error", format!("{FAILED}{why}"), usage),
    };
    let usage = Data::object([
        ("ms", number(usage.ms)),
        ("tokens_in", number(usage.tokens_in)),
        ("tokens_out", number(usage.tokens_out)),
        ("usd_micro", number(usage.usd_micro)),
    ]);
    let mut line = Data::object([
        ("request", Data::text(digest.to_hex())),
        ("nth", Data::Number(Number::of_count(nth))),
        (name, Data::Text(text)),
        ("usage", usage),
    ]);
    if let (Some(item), Data::Object(members)) = (item, &mut line) {
        members.insert("item".to_owned(), Data::text(item.to_owned()));
    }
    line.canonical()
}

impl Executor for Table {
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        let (of_item, of_all) = self.asked.next(ask.digest);
        let own = (self.asked.item.clone(), ask.digest, of_item);
        let any = (None, ask.digest, of_all);
        let answer = self.answers.get(&own).or_else(|| self.answers.get(&any));
        answer.cloned().ok_or_else(|| ExecutorFault::NotRecorded {
            step: ask.step.to_owned(),
            digest: ask.digest,
            nth: of_item,
        })
    }
}

/// What executors answered, as lines of a table.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    asked: AskCounts,
    /// Lines, in the order of the asks.
    pub lines: Vec<String>,
}

impl Recording {
    /// Goes on with an item.
    pub fn begin(&mut self, item: &str) {
        self.asked.begin(item);
    }
}

/// An executor that keeps what another answers.
pub struct Recorder<'a> {
    inner: &'a mut dyn Executor,
    recording: &'a mut Recording,
}

impl<'a> Recorder<'a> {
    /// Adds what this one answers to what others did.
    pub fn new(inner: &'a mut dyn Executor, recording: &'a mut Recording) -> Self {
        Self { inner, recording }
    }
}

impl Executor for Recorder<'_> {
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        let answer = self.inner.ask(ask)?;
        let recording = &mut *self.recording;
        let (nth, _) = recording.asked.next(ask.digest);
        let item = recording.asked.item.as_deref();
        let line = to_line(item, (ask.digest, nth), &answer);
        recording.lines.push(line);
        Ok(answer)
    }
}
