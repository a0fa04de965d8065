//! Samples of answers of a judge behind HTTP that were asked for again.

use clover::projection::runs::noise;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::tampered::Sample;
use super::tampered_runs;
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
    Case { name: "noise-of-chosen-answers", rule: Some("noise"),
           told: |tale| { tale.calls.pop(); tale.opened("run-2", 1, 30) },
           done: "A judge was to be asked again, and one of its answers was left out of those that may be drawn." },
    Case { name: "noise-that-was-not-liked", rule: Some("noise"),
           told: |tale| {
               tale.opened("run-2", 1, 31);
               tale.closed("run-2", 31);
               tale.opened("run-3", 2, 31)
           },
           done: "A judge was asked again, nobody said what came of it, and it was asked again anew." },
    Case { name: "second-answer-without-its-first", rule: Some("noise"),
           told: |tale| {
               tale.opened("run-2", 1, 31);
               let at = tale.again("run-2", 0, 750_000);
               tale.world().items[at].body["data"].as_object_mut().unwrap().remove("first");
               at
           },
           done: "A judge was asked again, and an answer does not say which one it repeats." },
    Case { name: "first-score-said-otherwise", rule: Some("noise"),
           told: |tale| {
               tale.opened("run-2", 1, 31);
               let at = tale.again("run-2", 0, 500_000);
               tale.world().items[at].body["data"]["first"]["score_micro"] = 500_000.into();
               at
           },
           done: "A judge was asked again and wavered, and its first score is said to be the second." },
    Case { name: "answer-asked-for-again-twice", rule: Some("noise"),
           told: |tale| {
               tale.opened("run-2", 1, 31);
               tale.again("run-2", 0, 500_000);
               let at = tale.again("run-2", 1, 750_000);
               let first = tale.calls[0];
               let texts = tale.world().items[first].body["data"]["texts"].clone();
               let id = tale.world().items[first].was.clone();
               let data = &mut tale.world().items[at].body["data"];
               data["first"] = json!({"call": id, "score_micro": 750_000, "seq": first});
               data["texts"] = texts;
               at
           },
           done: "A judge was asked again about one row until its answer was the first one, and both count." },
    Case { name: "noise-made-light", rule: Some("noise"),
           told: |tale| {
               let at = tale.measured();
               tale.world().items[at].body["data"]["figures"]["sd_micro"] = 1.into();
               at
           },
           done: "A judge was asked again and wavered, and its noise is said to be less." },
    Case { name: "good-noise", rule: None,
           told: Tale::measured,
           done: "Nothing. A judge was asked again about all that it had answered, and its noise is on record." },
];

/// A judge that answered 31 asks, one in each of as many entries.
struct Tale {
    tale: tampered_runs::Tale,
    calls: Vec<usize>,
}

impl Tale {
    fn new() -> Self {
        let mut tale = tampered_runs::Tale::new();
        tale.is_apart = true;
        let account = tale.world.items.iter_mut();
        for item in account {
            let data = &mut item.body["data"];
            if data["account"] == "judges" && data["unit"] == "usd_micro" {
                data["amount"] = 1_000_000.into();
            }
        }
        tale.opened("run-1", |data| {
            data["asks"] = 31.into();
            data["cap_usd_micro"] = 100_000.into();
        });
        tale.held("run-1/0/0", 31_000, 31);
        let calls: Vec<usize> = (1..=31)
            .map(|ask| tale.call(ask, "answered", |_| ()))
            .collect();
        for call in &calls {
            let at = tale.score(*call, |_| ());
            tale.world.items[at].body["data"]["draw"] = (*call).into();
        }
        tale.settled("run-1/0/0", 31 * 390, 0);
        tale.closed("completed", &[("answered", 31)], 31 * 390, 0);
        Self { tale, calls }
    }

    fn world(&mut self) -> &mut World {
        &mut self.tale.world
    }

    /// A run that asks for all answers again, and what it holds.
    fn opened(&mut self, run: &str, number: u64, asks: u64) -> usize {
        let at = self.tale.opened("run-2", |_| ());
        let seqs: Vec<u64> = self.calls.iter().map(|call| *call as u64).collect();
        let root = serde_json::to_value(noise::frame_root(&seqs)).unwrap();
        let data = &mut self.world().items[at].body["data"];
        data["run"] = run.into();
        data["asks"] = asks.into();
        data["asks_root"] = root;
        data["cap_usd_micro"] = 100_000.into();
        data["rescore"] = json!({"number": number, "of": seqs.len()});
        let hold = format!("{run}/0/0");
        let held = self.tale.held(&hold, 31_000, asks);
        self.world().items[held].body["data"]["run"] = run.into();
        at
    }

    fn again(&mut self, run: &str, which: usize, score: i64) -> usize {
        let first = self.calls[which];
        let at = self.tale.call(1, "answered", |_| ());
        let id = self.world().items[first].was.clone();
        let texts = self.world().items[first].body["data"]["texts"].clone();
        let ask = u8::try_from(100 + which).unwrap();
        let data = &mut self.world().items[at].body["data"];
        data["ask"] = clover::ground::digest::Digest([ask; 32]).to_hex().into();
        data["first"] = json!({"call": id, "score_micro": 750_000, "seq": first});
        data["hold"] = format!("{run}/0/0").into();
        data["run"] = run.into();
        data["score_micro"] = score.into();
        data["texts"] = texts;
        at
    }

    fn closed(&mut self, run: &str, left: u64) {
        let calls = 31 - left;
        let settled = self.tale.settled(&format!("{run}/0/0"), calls * 390, 0);
        self.world().items[settled].body["data"]["run"] = run.into();
        let of = [("answered", calls)];
        let of = if calls == 0 { &of[..0] } else { &of[..] };
        let end = if left == 0 { "completed" } else { "stopped" };
        let closed = self.tale.closed(end, of, calls * 390, left);
        self.world().items[closed].body["data"]["run"] = run.into();
    }

    fn measured(&mut self) -> usize {
        self.opened("run-2", 1, 31);
        for which in 0..31 {
            self.again("run-2", which, if which == 0 { 500_000 } else { 750_000 });
        }
        self.closed("run-2", 0);
        // 31 differences, of which one is -.25: sum of squares about the mean (30 / 31) .0625.
        let figures: Value = json!({
            "answered": 31, "asked": 31, "differing": 1, "missed": 0, "sd_micro": 31_751,
            "shift_half_micro": 16_470, "shift_micro": -8_065,
        });
        let data = json!({
            "figures": figures, "judge": "live-1", "pooled": figures, "run": "run-2", "verdict": "fail",
        });
        self.tale.inside("noise.measured", data)
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale::new();
        let at = (case.told)(&mut tale);
        let told = case.rule.map(|rule| (at, rule));
        sample(case.name, case.done, &tale.tale.world, told)
    });
    told.collect()
}
