//! Samples of runs of optimizers that ask a model behind HTTP: what was sent, answered, kept and paid.

use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_synths;
use super::tampered_synths::CITES;
use super::tampered_synths::CONCISE;
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
    Case { name: "optimizer-asked-where-only-rows-may-go", rule: Some("endpoint"),
           told: |tale| { tale.endpoint(&["rows"]); tale.opened(|_| ()) },
           done: "A model was to write patches at an endpoint that is registered for rows alone." },
    Case { name: "optimizer-asked-by-prices-of-nobody", rule: Some("price"),
           told: |tale| { tale.endpoint(&["aggregates"]); tale.opened(|data| data["asked"]["prices"] = "2025-01".into()) },
           done: "A run of a model names prices that nobody registered." },
    Case { name: "optimizer-under-the-name-of-another-model", rule: Some("synth"),
           told: |tale| { tale.endpoint(&["aggregates"]); tale.opened(|data| data["model"] = "m-9 at main".into()) },
           done: "A run says as its model another one than it pins." },
    Case { name: "optimizer-asked-off-the-record", rule: Some("synth"),
           told: |tale| { tale.begun(); tale.returned(None, CONCISE) },
           done: "A model is said to have answered, and no call of it is on record." },
    Case { name: "optimizer-asked-twice-for-the-better-answer", rule: Some("ask"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "answered", |_| ());
               tale.settled(0, 390);
               tale.called(1, "answered", |data| data["hold"] = "it-3-1/0".into())
           },
           done: "A model answered, and was asked the same again." },
    Case { name: "optimizer-asked-twice-under-another-key", rule: Some("ask"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "refused", |_| ());
               tale.settled(0, 390);
               tale.called(0, "answered", |data| data["ask"] = digest("another ask").into())
           },
           done: "A model declined, and was asked about the same view under another key." },
    Case { name: "optimizer-held-for-after-its-answer", rule: Some("hold"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "answered", |_| ());
               tale.settled(0, 390);
               tale.held(1, 3_000)
           },
           done: "A model answered a round, and money was held to ask it about that round again." },
    Case { name: "optimizer-asked-about-another-view", rule: Some("run"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "answered", |data| data["shown"] = digest("rows").into())
           },
           done: "A model was asked about something else than the view that was looked through." },
    Case { name: "optimizer-asked-by-another-key", rule: Some("run"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               let at = tale.called(0, "answered", |_| ());
               tale.of.world.items[at].body["author"] = signer(STRANGER).id().to_string().into();
               at
           },
           done: "Another key than that of the run signed a call." },
    Case { name: "optimizer-answered-by-another-model", rule: Some("ask"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "answered", |data| data["model_returned"] = "m-9".into())
           },
           done: "Another model than is pinned answered, and its answer counts." },
    Case { name: "optimizer-asked-without-a-hold", rule: Some("hold"),
           told: |tale| { tale.begun(); tale.called(0, "answered", |_| ()) },
           done: "A model was asked, and nothing was held for it." },
    Case { name: "optimizer-held-for-less-than-its-bound", rule: Some("hold"),
           told: |tale| { tale.begun(); tale.held(0, 10); tale.called(0, "answered", |_| ()) },
           done: "A hundredth of what an ask may cost was held for it." },
    Case { name: "optimizer-call-for-half-its-price", rule: Some("price"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.called(0, "answered", |data| data["cost_usd_micro"] = 195.into())
           },
           done: "A call costs half of what its tokens and the prices give." },
    Case { name: "optimizer-hold-settled-as-if-nothing-was-sent", rule: Some("hold"),
           told: |tale| { tale.begun(); tale.held(0, 3_000); tale.settled(0, 0) },
           done: "A hold that has no call was given back, as if nothing had been sent under it." },
    Case { name: "optimizer-held-beyond-the-cap", rule: Some("hold"),
           told: |tale| { tale.begun(); tale.held(0, 60_000) },
           done: "More was held for a model than the cap of its run has." },
    Case { name: "optimizer-answer-of-other-words", rule: Some("synth"),
           told: |tale| {
               tale.answered();
               tale.returned_as(Some(0), CITES, |data| data["answer"]["blake3"] = digest("other words").into())
           },
           done: "An answer is on record that is not the text of its call." },
    Case { name: "optimizer-answer-of-a-call-that-was-refused", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               let call = tale.called(0, "refused", |_| ());
               tale.settled(0, 390);
               tale.returned(Some(call), CONCISE)
           },
           done: "A model declined, and its answer is on record with a patch." },
    Case { name: "program-that-names-a-call", rule: Some("synth"),
           told: |tale| {
               tale.of.begun();
               tale.of.returned(0, &[CONCISE], |data| data["call"] = digest("a call").into())
           },
           done: "A program of this machine answered, and its answer names a call of a model." },
    Case { name: "optimizer-ended-beside-a-hold", rule: Some("hold"),
           told: |tale| {
               tale.begun();
               tale.held(0, 3_000);
               tale.of.stopped(|data| {
                   data["dev_calls"] = 0.into();
                   data["proposed"] = json!([]);
                   data["reason"] = "person".into();
                   data["rounds"] = 0.into();
               })
           },
           done: "A run ended while money was held for it." },
    Case { name: "good-synthesis-by-a-model", rule: None,
           told: |tale| {
               tale.begun();
               tale.held(0, 1_000);
               tale.called(0, "lost", |data| {
                   for name in ["model_returned", "response", "text", "tokens"] { data.as_object_mut().unwrap().remove(name); }
                   data["attempts"] = json!([]);
                   data["cost_usd_micro"] = 1_000.into();
                   data["usage"] = "absent".into();
               });
               tale.settled(0, 1_000);
               tale.held(1, 1_000);
               let call = tale.called(1, "answered", |data| data["hold"] = "it-3-1/1".into());
               tale.settled(1, 390);
               tale.returned(Some(call), CONCISE);
               tale.of.call(CONCISE);
               tale.of.proposed(CONCISE, |data| data["model"] = "m-1 at main".into());
               tale.of.stopped(|data| data["reason"] = "person".into())
           },
           done: "Nothing. A model was asked; its first answer was lost and paid for, its second is a patch that was proposed." },
];

fn digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_hex()
}

/// A run that asks a model.
struct Tale {
    of: tampered_synths::Tale,
}

impl Tale {
    fn new() -> Self {
        let of = tampered_synths::Tale::new();
        Self { of }
    }

    fn endpoint(&mut self, classes: &[&str]) {
        let place = json!({
            "auth": "bearer", "classes": classes, "dialect": "openai_chat", "endpoint": "main", "free": false,
            "insecure": false, "provider": "example", "terms": "keeps nothing", "url": "https://api.example.com/v1",
        });
        let row = json!({
            "cache_read": 25_000, "cache_write": 250_000, "input": 250_000, "mode": "live", "model": "m-1",
            "output": 2_000_000, "provider": "example",
        });
        let prices = json!({
            "as_of": "2026-03-01T00:00:00.000000Z", "prices": "2026-03", "rows": [row], "source": "page of the provider",
        });
        let account = json!({
            "account": "optimizers", "amount": 100_000, "period": "once", "purpose": "models that write patches",
            "spenders": ["optimizer"], "unit": "usd_micro",
        });
        let world = &mut self.of.world;
        for (kind, data) in [
            ("endpoint.registered", place),
            ("price_table.registered", prices),
            ("budget.opened", account),
        ] {
            world.say(ADA, kind, 1, Value::Null, data);
        }
    }

    fn opened(&mut self, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "asked": {
                "account": "optimizers", "cap_usd_micro": 50_000, "endpoint": "main", "form": "propose/1",
                "max_output_tokens": 4_096, "model": "m-1", "pin": "m-1", "prices": "2026-03", "seeded": true,
            },
            "build": "clover 0.1.0", "dev_calls": 10, "iteration": decided::IT, "k": 4, "key": signer(RUNNER).id(),
            "model": "m-1 at main", "optimizer": "endpoint", "rounds": 2, "run": "it-3-1",
        });
        change(&mut data);
        self.of.say(ADA, "synth.opened", data)
    }

    /// A view was handed over.
    fn begun(&mut self) {
        self.endpoint(&["aggregates"]);
        self.opened(|_| ());
        self.of.shown();
    }

    /// A view was handed over and answered.
    fn answered(&mut self) {
        self.begun();
        self.held(0, 3_000);
        self.called(0, "answered", |_| ());
        self.settled(0, 390);
    }

    fn held(&mut self, n: u64, amount: u64) -> usize {
        let data = json!({
            "account": "optimizers", "amount": amount, "asks": 1, "hold": format!("it-3-1/{n}"), "run": "it-3-1",
        });
        let world = &mut self.of.world;
        world.say(RUNNER, "budget.reserved", 1, Value::Null, data)
    }

    fn settled(&mut self, n: u64, amount: u64) -> usize {
        let unknown = if amount == 1_000 { amount } else { 0 };
        let data = json!({
            "amount": amount, "hold": format!("it-3-1/{n}"), "overrun": false, "run": "it-3-1", "unknown": unknown,
        });
        let world = &mut self.of.world;
        world.say(RUNNER, "budget.settled", 1, Value::Null, data)
    }

    fn called(&mut self, nth: u64, outcome: &str, change: fn(&mut Value)) -> usize {
        let bytes = tampered_synths::answer();
        let text = json!({"blake3": Digest::blake3(&bytes).to_hex(), "bytes": bytes.len(), "media": "application/json"});
        let mut data = json!({
            "ask": digest("ask"), "attempts": [{"class": "ok", "ms": 9, "status": 200}], "bound_usd_micro": 1_000,
            "build": "clover 0.1.0", "cost_usd_micro": 390, "hold": "it-3-1/0", "model_returned": "m-1", "nth": nth,
            "outcome": outcome, "place": 0, "purpose": "propose", "run": "it-3-1", "shown": digest("view"),
            "response": text, "text": text,
            "tokens": {"cache_read": 1_024, "cache_write": 0, "input": 686, "output": 96, "reasoning": 0}, "usage": "ok",
        });
        if outcome != "answered" {
            data.as_object_mut().unwrap().remove("text");
        }
        change(&mut data);
        self.of.say(RUNNER, "model_call.recorded", data)
    }

    fn returned(&mut self, call: Option<usize>, which: usize) -> usize {
        self.returned_as(call.map(|_| 0), which, |_| ())
    }

    /// An answer that names the last call, where it names one.
    fn returned_as(&mut self, call: Option<usize>, which: usize, change: fn(&mut Value)) -> usize {
        let items = &self.of.world.items;
        let last = items
            .iter()
            .rposition(|item| item.body["kind"] == "model_call.recorded");
        let named = last
            .filter(|_| call.is_some())
            .map(|at| items[at].was.clone());
        let at = self.of.returned(0, &[which], change);
        if let Some(id) = named {
            let body = &mut self.of.world.items[at].body;
            body["data"]["call"] = id.clone().into();
            body["refs"] = json!([id]);
        }
        at
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale::new();
        let at = (case.told)(&mut tale);
        let first = case.rule.map(|rule| (at, rule));
        sample(case.name, case.done, &tale.of.world, first)
    });
    told.collect()
}
