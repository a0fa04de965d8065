//! Samples of runs of judges behind HTTP: what is held, asked, answered and paid.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_undone::sample;

/// What was done, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    told: fn(&mut Tale) -> usize,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "judge-at-no-endpoint", rule: Some("source"),
           told: |tale| tale.registered("elsewhere"),
           done: "A judge behind HTTP was registered at an endpoint that nobody registered." },
    Case { name: "second-run-of-a-judge", rule: Some("run"),
           told: |tale| { tale.opened("run-1", |_| ()); tale.opened("run-2", |_| ()) },
           done: "A second run of a judge was opened beside one that is open: of two answers somebody could choose." },
    Case { name: "run-without-prices", rule: Some("price"),
           told: |tale| tale.opened("run-1", |data| { data.as_object_mut().unwrap().remove("prices"); }),
           done: "A run was opened where calls cost something, and nobody signed what." },
    Case { name: "held-beyond-the-cap", rule: Some("hold"),
           told: |tale| { tale.opened("run-1", |_| ()); tale.held("run-1/0/0", 10_001, 3) },
           done: "More was held than the run may cost." },
    Case { name: "call-that-nobody-held-for", rule: Some("hold"),
           told: |tale| { tale.opened("run-1", |_| ()); tale.call(1, "answered", |_| ()) },
           done: "A model was asked before money was held for it." },
    Case { name: "calls-of-an-older-epoch", rule: Some("run"),
           told: |tale| {
               tale.begun();
               tale.resumed();
               tale.held("run-1/1/0", 3_000, 3);
               tale.call(1, "answered", |data| {
                   data["hold"] = "run-1/1/0".into();
                   data["nth"] = 1.into();
               })
           },
           done: "A process that was taken for dead recorded a call after its run had gone on without it." },
    Case { name: "asked-until-it-fits", rule: Some("ask"),
           told: |tale| { tale.begun(); tale.call(1, "answered", |_| ()); tale.call(1, "answered", |data| data["nth"] = 1.into()) },
           done: "An ask that was answered was asked again, and the second answer went on record too." },
    Case { name: "answered-by-another-model", rule: Some("ask"),
           told: |tale| { tale.begun(); tale.call(1, "answered", |data| data["model_returned"] = "m-2".into()) },
           done: "Another model answered than is pinned, and its answer counts." },
    Case { name: "score-beside-its-masses", rule: Some("ask"),
           told: |tale| { tale.weighed(); tale.begun(); tale.call(1, "answered", |data| masses(data, 750_000)) },
           done: "A judge's levels are weighed, and the score of an answer is the level that it said, not their mean." },
    Case { name: "score-of-half-a-distribution", rule: Some("ask"),
           told: |tale| {
               tale.weighed();
               tale.begun();
               tale.call(1, "answered", |data| {
                   masses(data, 750_000);
                   data["masses"] = json!([{"level": 3, "logprob_micro": -693_147}]);
               })
           },
           done: "Levels have half of the probability in an answer, and it has a score all the same." },
    Case { name: "masses-left-out", rule: Some("ask"),
           told: |tale| { tale.weighed(); tale.begun(); tale.call(1, "answered", |_| ()) },
           done: "A judge's levels are weighed, and an answer has a score without what each level weighs." },
    Case { name: "call-for-half-its-price", rule: Some("price"),
           told: |tale| { tale.begun(); tale.call(1, "answered", |data| data["cost_usd_micro"] = 195.into()) },
           done: "A call is on record at half of what its tokens and the table give." },
    Case { name: "maybe-billed-and-not-charged", rule: Some("price"),
           told: |tale| {
               tale.begun();
               tale.call(1, "answered", |data| {
                   data["attempts"] = json!([{"class": "cut", "ms": 9, "status": 200}, {"class": "ok", "ms": 9, "status": 200}]);
               })
           },
           done: "An attempt was cut after it was sent, and what the provider may have billed for it was not charged." },
    Case { name: "settled-below-its-calls", rule: Some("hold"),
           told: |tale| { tale.begun(); tale.call(1, "answered", |_| ()); tale.settled("run-1/0/0", 389, 0) },
           done: "A hold was charged less than its calls cost." },
    Case { name: "score-that-nobody-gave", rule: Some("source"),
           told: |tale| { tale.begun(); let call = tale.call(1, "answered", |_| ()); tale.score(call, |data| data["score_micro"] = 1_000_000.into()) },
           done: "A row has another score than the call gave that it names." },
    Case { name: "score-of-another-answer", rule: Some("source"),
           told: |tale| {
               tale.begun();
               let call = tale.call(1, "answered", |_| ());
               tale.score(call, |data| data["call"]["texts"]["a_hash"] = digest(9))
           },
           done: "A row has the score that a call gave about another response." },
    Case { name: "score-without-its-call", rule: Some("source"),
           told: |tale| {
               tale.begun();
               let call = tale.call(1, "answered", |_| ());
               tale.score(call, |data| { data.as_object_mut().unwrap().remove("call"); })
           },
           done: "A row has a score of a judge behind HTTP, and names no call that gave it." },
    Case { name: "score-of-an-ask-that-came-to-nothing", rule: Some("source"),
           told: |tale| { tale.begun(); let call = tale.call(1, "unparsed", |_| ()); tale.score(call, |_| ()) },
           done: "An answer could not be read, and its row has a score all the same." },
    Case { name: "resumed-as-if-nothing-was-sent", rule: Some("run"),
           told: |tale| {
               tale.begun();
               tale.settled("run-1/0/0", 0, 0);
               tale.say("judge_run.resumed", json!({"epoch": 1, "run": "run-1"}))
           },
           done: "A run was cut and went on, and no ask that it had held for is on record as lost, or paid for." },
    Case { name: "lost-and-not-charged", rule: Some("price"),
           told: |tale| { tale.begun(); tale.call(1, "lost", |data| data["cost_usd_micro"] = 0.into()) },
           done: "Nobody knows whether an ask was sent before a run was cut, and it costs nothing." },
    Case { name: "asked-again-at-once", rule: Some("ask"),
           told: |tale| {
               tale.begun();
               let call = tale.call(1, "exhausted", |_| ());
               tale.missed(call);
               tale.call(1, "answered", |data| data["nth"] = 1.into())
           },
           done: "An ask that came to nothing was asked again in the same run, which counts it once." },
    Case { name: "prices-of-last-year", rule: Some("price"),
           told: |tale| {
               tale.prices("2026-12", 500_000);
               tale.opened("run-1", |_| ())
           },
           done: "Prices rose, and a run was opened by the table that was in force before." },
    Case { name: "row-left-out", rule: Some("run"),
           told: |tale| {
               tale.begun();
               let call = tale.call(1, "answered", |_| ());
               tale.score(call, |_| ());
               tale.call(2, "unparsed", |_| ());
               tale.settled("run-1/0/0", 780, 0);
               tale.closed("stopped", &[("answered", 1), ("unparsed", 1)], 780, 1)
           },
           done: "An ask came to no answer, and its row is neither scored nor missed." },
    Case { name: "misses-left-out", rule: Some("run"),
           told: |tale| {
               tale.begun();
               let call = tale.call(1, "answered", |_| ());
               tale.score(call, |_| ());
               let call = tale.call(2, "unparsed", |_| ());
               tale.missed(call);
               tale.settled("run-1/0/0", 780, 0);
               tale.closed("stopped", &[("answered", 1)], 780, 1)
           },
           done: "A run ended, and its end does not say that an ask came to no answer." },
    Case { name: "good-run", rule: None,
           told: |tale| {
               tale.begun();
               let first = tale.call(1, "answered", |_| ());
               tale.score(first, |_| ());
               let second = tale.call(2, "unparsed", |_| ());
               tale.missed(second);
               let third = tale.call(3, "exhausted", |_| ());
               tale.missed(third);
               tale.settled("run-1/0/0", 780, 0);
               tale.closed("completed", &[("answered", 1), ("exhausted", 1), ("unparsed", 1)], 780, 0)
           },
           done: "Nothing. A judge behind HTTP asked about three rows, of which one has a score, and its end says what each ask came to." },
    Case { name: "good-run-of-a-mean", rule: None,
           told: |tale| {
               tale.weighed();
               tale.begun();
               let first = tale.call(1, "answered", |data| masses(data, 762_500));
               tale.score(first, |data| data["score_micro"] = 762_500.into());
               let second = tale.call(2, "uncovered", |data| {
                   masses(data, 0);
                   let members = data.as_object_mut().unwrap();
                   members.remove("score_micro");
                   members.insert("masses".to_owned(), json!([{"level": 3, "logprob_micro": -693_147}]));
               });
               tale.missed(second)
           },
           done: "Nothing. A judge's levels are weighed: one answer has their mean as its score, and one, of which they have half the probability, has none." },
    Case { name: "good-run-resumed", rule: None,
           told: |tale| {
               tale.begun();
               tale.resumed();
               tale.held("run-1/1/0", 3_000, 3);
               let call = tale.call(1, "answered", |data| {
                   data["hold"] = "run-1/1/0".into();
                   data["epoch"] = 1.into();
                   data["nth"] = 1.into();
               });
               tale.score(call, |_| ());
               tale.settled("run-1/1/0", 390, 0)
           },
           done: "Nothing. A run was cut, its three asks are on record as lost and paid for, and it went on." },
];

/// An experiment of its own, in which nothing was said before.
const EXP: &str = "live";

fn digest(byte: u8) -> Value {
    clover::ground::digest::Digest([byte; 32]).to_hex().into()
}

/// Masses of a mean of .7625, and a score.
fn masses(data: &mut Value, score: i64) {
    let all = [
        (2, -2_302_585),
        (3, -356_675),
        (3, -2_995_732),
        (4, -1_897_120),
    ];
    let all = all.map(|(level, logprob)| json!({"level": level, "logprob_micro": logprob}));
    data["masses"] = json!(all);
    data["score_micro"] = score.into();
}

/// A ledger in which a judge behind HTTP may be asked.
pub struct Tale {
    pub world: World,
    judge: usize,
    /// Whether each ask is about a response of its own.
    pub is_apart: bool,
}

impl Tale {
    pub fn new() -> Self {
        let mut world = World::of(&good().lines);
        let about = json!({"purpose": "models behind HTTP", "title": "Live"});
        world.say(ADA, "experiment.registered", 1, EXP.into(), about);
        let endpoint = json!({
            "auth": "bearer", "classes": ["rows"], "dialect": "openai_chat", "endpoint": "main", "free": false,
            "insecure": false, "provider": "example", "terms": "keeps nothing", "url": "https://api.example.com/v1",
        });
        world.say(ADA, "endpoint.registered", 1, Value::Null, endpoint);
        let account = json!({
            "account": "judges", "amount": 20_000, "period": "once", "purpose": "judges", "spenders": ["scorer"],
            "unit": "usd_micro",
        });
        world.say(ADA, "budget.opened", 1, Value::Null, account);
        let mut tale = Self {
            world,
            judge: 0,
            is_apart: false,
        };
        tale.prices("2026-11", 250_000);
        tale.judge = tale.registered("main");
        tale
    }

    /// The judge's score is the mean of its five levels.
    fn weighed(&mut self) {
        self.world.items[self.judge].body["data"]["asked"]["weighed_levels"] = 5.into();
    }

    fn prices(&mut self, name: &str, input: u64) {
        let row = json!({
            "cache_read": 25_000, "cache_write": 250_000, "input": input, "mode": "live", "model": "m-1-2026",
            "output": 2_000_000, "provider": "example",
        });
        let prices = json!({
            "as_of": "2026-11-01T00:00:00.000000Z", "prices": name, "rows": [row], "source": "a page",
        });
        self.world
            .say(ADA, "price_table.registered", 1, Value::Null, prices);
    }

    /// What it held for is lost, and it goes on.
    pub fn resumed(&mut self) {
        for ask in 1..=3 {
            self.call(ask, "lost", |_| ());
        }
        self.settled("run-1/0/0", 3_000, 3_000);
        self.say("judge_run.resumed", json!({"epoch": 1, "run": "run-1"}));
    }

    pub fn inside(&mut self, kind: &str, data: Value) -> usize {
        self.world.say(RUNNER_3, kind, 1, EXP.into(), data)
    }

    fn say(&mut self, kind: &str, data: Value) -> usize {
        let experiment = if kind.starts_with("judge_run") {
            Value::from(EXP)
        } else {
            Value::Null
        };
        self.world.say(RUNNER_3, kind, 1, experiment, data)
    }

    fn registered(&mut self, endpoint: &str) -> usize {
        let name = if endpoint == "main" {
            "live-1"
        } else {
            "live-2"
        };
        let nothing = clover::ground::digest::Digest::sha256(b"").to_hex();
        let data = json!({
            "asked": {
                "endpoint": endpoint, "pin": "m-1-2026", "plan_digest": digest(3),
                "plan": {"blake3": digest(4), "bytes": 9, "media": "application/json"},
            },
            "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "clover-text/1",
            "judge": name, "model": "m-1", "port": "endpoint", "prompt_hash": nothing, "tool_snapshot": nothing,
        });
        self.inside("judge.registered", data)
    }

    pub fn opened(&mut self, run: &str, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "account": "judges", "asks": 3, "asks_root": clover::ground::digest::Digest([5; 32]).to_base64(),
            "build": "clover 0.1.0", "cap_usd_micro": 10_000, "endpoint": "main", "judge": "live-1",
            "prices": "2026-11", "run": run,
        });
        change(&mut data);
        self.say("judge_run.opened", data)
    }

    pub fn held(&mut self, hold: &str, amount: u64, asks: u64) -> usize {
        let data = json!({"account": "judges", "amount": amount, "asks": asks, "hold": hold, "run": "run-1"});
        self.say("budget.reserved", data)
    }

    pub fn begun(&mut self) {
        self.opened("run-1", |_| ());
        self.held("run-1/0/0", 3_000, 3);
    }

    pub fn settled(&mut self, hold: &str, amount: u64, unknown: u64) -> usize {
        let data = json!({"amount": amount, "hold": hold, "overrun": false, "run": "run-1", "unknown": unknown});
        self.say("budget.settled", data)
    }

    pub fn closed(&mut self, end: &str, calls: &[(&str, u64)], cost: u64, left: u64) -> usize {
        let calls = calls
            .iter()
            .map(|(outcome, calls)| json!({"calls": calls, "outcome": outcome}));
        let data = json!({
            "by_outcome": calls.collect::<Vec<_>>(), "cost_usd_micro": cost, "end": end, "left": left, "run": "run-1",
            "settled_usd_micro": cost,
        });
        self.say("judge_run.closed", data)
    }

    /// A call of the ask of this number: 390 millionths, where its model was heard.
    pub fn call(&mut self, ask: u8, outcome: &str, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "ask": digest(ask), "attempts": [{"class": "ok", "ms": 900, "status": 200}], "bound_usd_micro": 1_000,
            "cost_usd_micro": 390, "epoch": 0, "hold": "run-1/0/0", "judge": "live-1", "model_returned": "m-1-2026",
            "nth": 0, "outcome": outcome, "run": "run-1", "texts": {"a_hash": digest(6), "x_hash": digest(7)},
            "tokens": {"cache_read": 1_024, "cache_write": 0, "input": 686, "output": 96, "reasoning": 0}, "usage": "ok",
        });
        let members = data.as_object_mut().unwrap();
        match outcome {
            "answered" => {
                members.insert("score_micro".to_owned(), 750_000.into());
            }
            "exhausted" | "lost" => {
                let is_lost = outcome == "lost";
                let limited = json!([{"class": "limited", "ms": 9, "status": 429}]);
                let attempts = if is_lost { json!([]) } else { limited };
                let cost = if is_lost { 1_000 } else { 0 };
                members.insert("attempts".to_owned(), attempts);
                members.insert("cost_usd_micro".to_owned(), cost.into());
                members.insert("usage".to_owned(), "absent".into());
                members.remove("tokens");
                members.remove("model_returned");
            }
            _ => {}
        }
        if self.is_apart {
            data["texts"]["a_hash"] = digest(60 + ask);
        }
        change(&mut data);
        self.inside("call.recorded", data)
    }

    /// The call, with the texts that it was about.
    fn of(&self, call: usize) -> Value {
        let item = &self.world.items[call];
        json!({"call": item.was, "texts": item.body["data"]["texts"]})
    }

    fn naming(&mut self, at: usize, call: usize) -> usize {
        let refs = [self.judge, call].map(|at| self.world.items[at].was.clone());
        self.world.items[at].body["refs"] = json!(refs);
        at
    }

    pub fn score(&mut self, call: usize, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "call": self.of(call), "draw": 7, "item": "item-a", "judge": "live-1", "policy": "base",
            "score_micro": 750_000,
        });
        change(&mut data);
        let at = self.inside("score.recorded", data);
        self.naming(at, call)
    }

    pub fn missed(&mut self, call: usize) -> usize {
        let data = json!({
            "call": self.of(call), "draw": call, "item": "item-a", "judge": "live-1", "nth": 0, "policy": "base",
            "reason": self.world.items[call].body["data"]["outcome"],
        });
        let at = self.inside("score.missed", data);
        self.naming(at, call)
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale::new();
        let at = (case.told)(&mut tale);
        sample(
            case.name,
            case.done,
            &tale.world,
            case.rule.map(|rule| (at, rule)),
        )
    });
    told.collect()
}
