//! Samples of endpoints of models and of prices: where texts may go, and what calls cost there.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_undone::sample;

/// What was registered, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    kind: &'static str,
    data: fn() -> Value,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "endpoint-by-plain-http", kind: "endpoint.registered", rule: Some("endpoint"),
           data: || endpoint(|data| data["url"] = "http://models.example.com/v1".into()),
           done: "Rows may go to another machine by plain http, and nobody signed that this is meant." },
    Case { name: "endpoint-named-as-this-machine", kind: "endpoint.registered", rule: Some("endpoint"),
           data: || endpoint(|data| data["url"] = "http://localhost:8080".into()),
           done: "Rows may go to a name by plain http that looks like this machine, and may be another one tomorrow." },
    Case { name: "endpoint-insecure-for-show", kind: "endpoint.registered", rule: Some("endpoint"),
           data: || endpoint(|data| data["insecure"] = true.into()),
           done: "An endpoint behind https is signed as insecure, which would hide the next one that is." },
    Case { name: "endpoint-of-rows-without-terms", kind: "endpoint.registered", rule: Some("endpoint"),
           data: || endpoint(|data| { data.as_object_mut().unwrap().remove("terms"); }),
           done: "Rows may go to a provider, and nobody said what it may do with them." },
    Case { name: "endpoint-of-another-form", kind: "endpoint.registered", rule: Some("schema"),
           data: || endpoint(|data| data["url"] = "https://API.example.com/v1/".into()),
           done: "The base URL of an endpoint is not in its one form, so that two names stand for one place." },
    Case { name: "prices-of-one-model-twice", kind: "price_table.registered", rule: Some("schema"),
           data: || prices(&[("m-1", 250_000), ("m-1", 125_000)]),
           done: "A table has two prices of one model, of which whoever pays may choose." },
    Case { name: "good-endpoint", kind: "endpoint.registered", rule: None,
           data: || endpoint(|_| ()),
           done: "Nothing. An endpoint was registered, with terms for the rows that may go there." },
    Case { name: "good-prices", kind: "price_table.registered", rule: None,
           data: || prices(&[("m-1", 250_000), ("m-2", 125_000)]),
           done: "Nothing. A table of prices was registered." },
];

fn endpoint(change: fn(&mut Value)) -> Value {
    let mut data = json!({
        "auth": "bearer", "classes": ["rows", "synthetic"], "dialect": "openai_chat", "endpoint": "main",
        "free": false, "insecure": false, "provider": "example", "terms": "keeps nothing",
        "url": "https://api.example.com/v1",
    });
    change(&mut data);
    data
}

fn prices(models: &[(&str, u64)]) -> Value {
    let rows = models.iter().map(|(model, input)| {
        json!({
            "cache_read": input, "cache_write": input, "input": input, "mode": "live", "model": model,
            "output": 2_000_000, "provider": "example",
        })
    });
    json!({
        "as_of": "2026-11-01T00:00:00.000000Z", "prices": "2026-11", "rows": rows.collect::<Vec<_>>(),
        "source": "page of the provider",
    })
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut world = World::of(&good().lines);
        let at = world.say(ADA, case.kind, 1, Value::Null, (case.data)());
        sample(
            case.name,
            case.done,
            &world,
            case.rule.map(|rule| (at, rule)),
        )
    });
    told.collect()
}
