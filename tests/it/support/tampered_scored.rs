//! Samples of runs whose judge is behind HTTP: who scores off the record, before rows are due, under another prompt, or beside the
//! run that pays.

use std::sync::LazyLock;

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::id::JudgeId;
use clover::event::payload::sgd::SgdRow;
use clover::event::payload::sgd::SgdScored;
use clover::event::payload::sgd::SgdScoring;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::num::Micro;
use clover::projection::judges::Judges;
use clover::projection::sgd::SgdRuns;
use clover::projection::sgd::asked_scores;
use clover::prompt::JudgePrompt;
use clover::workflow::sgd::asked;
use clover::workflow::sgd::course::SgdCourse;
use serde_json::Value;
use serde_json::json;

use super::descended;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::tampered::Sample;
use super::tampered_descents::author;
use super::tampered_descents::begun_with;
use super::tampered_undone::sample;

/// Most that a call may cost, and what it costs, where calls are paid; in millionths of a dollar.
const BOUND: u64 = 1_000;
const COST: u64 = 390;

/// What was done, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    told: fn(&mut Tale) -> usize,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "good-descent-asked", rule: None,
           told: |tale| tale.world.items.len() - 1,
           done: "Nothing. The judge of a run was asked behind HTTP, told each prompt, and each score is what a call answered." },
    Case { name: "descent-scored-beside-its-calls", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.scored", 1, |data| data["scores"][0][0] = 999_999.into()),
           done: "A run whose judge is behind HTTP has a score that no call gave." },
    Case { name: "descent-with-a-made-up-miss", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.scored", 0, |data| {
               data["scores"][0].as_array_mut().unwrap().remove(1);
               data["missed"] = json!([{"repeat": 1, "row": 0}]);
           }),
           done: "A score that a call gave was left out as one that could not be read." },
    Case { name: "descent-scored-before-its-calls", rule: Some("sgd"),
           told: |tale| {
               let data = tale.data("sgd.scored", 0);
               let at = tale.cut("judge_run.opened", 1);
               tale.said(at, RUNNER_2, "sgd.scored", data)
           },
           done: "Rows were scored before the second repeat was asked." },
    Case { name: "descent-scored-while-its-judge-is-asked", rule: Some("sgd"),
           told: |tale| {
               let data = tale.data("sgd.scored", 0);
               let at = tale.cut("judge_run.closed", 1);
               tale.said(at, RUNNER_2, "sgd.scored", data)
           },
           done: "Rows were scored while a run of judges for them was open." },
    Case { name: "test-asked-before-its-checkpoint", rule: Some("sgd"),
           told: |tale| tale.changed("judge_run.opened", 0, |data| data["sgd"]["part"] = "test".into()),
           done: "A judge was to be asked about rows of test before the checkpoint was chosen." },
    Case { name: "test-row-asked-among-those-of-train", rule: Some("sgd"),
           told: |tale| {
               let test = tale.listed("test");
               tale.changed("score.recorded", 0, |data| data["item"] = test)
           },
           done: "A row of test was scored in a run of judges about train." },
    Case { name: "judge-told-another-prompt-than-is-due", rule: Some("sgd"),
           told: |tale| {
               let at = tale.place("judge.registered", 1);
               let hash = Digest::sha256(b"Be kind.").to_hex();
               let name = format!("sim+{}", &hash[..12]);
               let data = &mut tale.world.items[at].body["data"];
               data["judge"] = name.as_str().into();
               data["prompt_hash"] = hash.into();
               tale.changed("judge_run.opened", 0, |data| data["judge"] = name.into())
           },
           done: "The judge was told another text than the prompt under which rows were due." },
    Case { name: "told-judge-asked-beside-its-run", rule: Some("sgd"),
           told: |tale| tale.changed("judge_run.opened", 0, |data| {
               data.as_object_mut().unwrap().remove("sgd");
           }),
           done: "A judge that is told the prompt of a run was asked for no run." },
    Case { name: "told-judge-asked-at-another-cap", rule: Some("sgd"),
           told: |tale| {
               let at = tale.place("sgd.opened", 0);
               tale.world.items[at].body["data"]["scoring"]["cap_usd_micro"] = 5.into();
               tale.changed("judge_run.opened", 0, |_| ())
           },
           done: "A run of judges has another cap than the run that it scores for has left." },
    Case { name: "good-descent-paid", rule: None,
           told: |tale| { tale.world = World::of(&PAID.lines); tale.world.items.len() - 1 },
           done: "Nothing. Each run of judges of a run was charged to the account that the run named when it was opened." },
    Case { name: "told-judge-asked-from-another-account", rule: Some("sgd"),
           told: |tale| {
               tale.world = World::of(&PAID.lines);
               tale.changed("judge_run.opened", 0, |data| data["account"] = "others".into())
           },
           done: "A run of judges is charged to another account than the run that it scores for has named." },
    Case { name: "told-judge-held-for-from-another-account", rule: Some("hold"),
           told: |tale| {
               tale.world = World::of(&PAID.lines);
               tale.changed("budget.reserved", 0, |data| data["account"] = "others".into())
           },
           done: "Scores of a run were held for in another account than its run of judges has named." },
    Case { name: "test-asked-by-a-second-run", rule: Some("sgd"),
           told: |tale| { tale.world = World::of(&SECOND.lines); tale.asks_test("descent-2") },
           done: "A judge was to be asked for a second run about the rows of test that the first had read." },
    Case { name: "test-asked-after-it-was-read", rule: Some("sgd"),
           told: |tale| tale.asks_test(descended::RUN),
           done: "A judge was to be asked about test once more after a run had read it." },
    Case { name: "told-judge-asked-once-more", rule: Some("sgd"),
           told: |tale| {
               let (at, data) = (tale.place("judge.registered", 2), tale.data("judge.registered", 2));
               let name = data["judge"].as_str().unwrap().replace(".1", ".2");
               let of = &mut tale.world.items[at].body["data"];
               of["judge"] = name.as_str().into();
               of["repeat"] = 2.into();
               tale.changed("judge_run.opened", 1, |data| data["judge"] = name.into())
           },
           done: "A judge was asked a third time in a run of two repeats." },
    Case { name: "descent-that-says-not-who-pays", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.opened", 0, |data| {
               data.as_object_mut().unwrap().remove("scoring");
           }),
           done: "A run whose judge is behind HTTP does not say who pays for scores." },
    Case { name: "repeat-of-a-judge-of-its-own", rule: Some("judge"),
           told: |tale| tale.changed("judge.registered", 0, |data| data["repeat"] = 1.into()),
           done: "A judge that is told no prompt of a run is registered as a repeat." },
];

/// What the judge of a run is asked before rows are scored: one that is told the prompt, repeat by repeat.
fn ask(teller: &mut Teller, said: &SgdScored) {
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let (prompt, names, rows) = {
        let state = teller.ledger().state();
        let run = &state.fold::<SgdRuns>().by_id[&said.run];
        let course = SgdCourse::of(run).unwrap();
        let prompt = asked::prompt_of(&course, said.part, said.prompt_digest).unwrap();
        let (_, rows) = asked_scores::unscored(run, said.part, said.prompt_digest);
        let rows: Vec<SgdRow> = rows.into_iter().cloned().collect();
        let names = asked::judges_of(run, &prompt).unwrap();
        (prompt, names, rows)
    };
    for (repeat, name) in names.iter().enumerate() {
        let known = {
            let runs = teller.ledger().state().fold::<SgdRuns>();
            runs.told.get(&of).and_then(|all| all.get(name)).cloned()
        };
        if known.is_none() {
            register(teller, &of, (&prompt, repeat as u64));
        }
        let known = known.unwrap_or_default();
        let due = rows.iter().zip(&said.scores);
        let due: Vec<_> = due
            .filter(|(row, _)| known.of(row).score.is_none())
            .map(|(row, scores)| (row.clone(), scores[repeat]))
            .collect();
        if !due.is_empty() {
            answer(teller, (name, said), &due);
        }
    }
}

fn register(teller: &mut Teller, of: &ExperimentId, (prompt, repeat): (&JudgePrompt, u64)) {
    let text = prompt.render();
    let blob = teller.blob(text.clone().into_bytes(), "text/plain");
    let judges = teller.ledger().state().fold::<Judges>().of(of).unwrap();
    let root = judges.judges[&"sim".parse::<JudgeId>().unwrap()]
        .said
        .clone();
    let told = root.asked_again(blob, Digest::sha256(text.as_bytes()), repeat);
    teller.say_in(RUNNER_2, "judge.registered", told.unwrap());
}

/// A run of judges about rows, each of which is answered by one call; paid where its run names an account.
fn answer(teller: &mut Teller, (judge, said): (&JudgeId, &SgdScored), rows: &[(SgdRow, Micro)]) {
    let run = format!("run-{}", teller.ledger().size());
    let runs = teller.ledger().state().fold::<SgdRuns>();
    let account = runs.by_id[&said.run].said.scoring.clone().unwrap().account;
    let mut opened = json!({
        "asks": rows.len(), "asks_root": Digest([5; 32]).to_base64(), "build": "clover 0.1.0", "endpoint": "here",
        "judge": judge, "run": run,
        "sgd": {"part": said.part, "prompt_digest": said.prompt_digest, "run": said.run},
    });
    if account.is_some() {
        opened["account"] = json!(account);
        opened["prices"] = "2026-11".into();
    }
    teller.say_in(
        RUNNER_2,
        "opened",
        planned::payload("judge_run.opened", &opened),
    );
    let hold = format!("{run}/0/0");
    if account.is_some() {
        let amount = BOUND * rows.len() as u64;
        let held = json!({"account": account, "amount": amount, "asks": rows.len(), "hold": hold, "run": run});
        teller.say(RUNNER_2, "held", planned::payload("budget.reserved", &held));
    }
    for (row, score) in rows {
        let key = |what: &str| Digest::sha256(format!("{what} {judge} {}", row.item).as_bytes());
        let texts = json!({"a_hash": key("a"), "x_hash": key("x")});
        let mut call = json!({
            "ask": key("ask"), "attempts": [{"class": "ok", "ms": 9, "status": 200}], "bound_usd_micro": 0,
            "cost_usd_micro": 0, "epoch": 0, "judge": judge, "model_returned": "m-1", "nth": 0, "outcome": "answered",
            "run": run, "score_micro": score, "texts": texts, "usage": "absent",
        });
        if account.is_some() {
            call["bound_usd_micro"] = BOUND.into();
            call["cost_usd_micro"] = COST.into();
            call["hold"] = hold.as_str().into();
            call["tokens"] = json!({"cache_read": 1_024, "cache_write": 0, "input": 686, "output": 96, "reasoning": 0});
            call["usage"] = "ok".into();
        }
        teller.say_in(RUNNER_2, "call", planned::payload("call.recorded", &call));
        let call = teller.id("call");
        let score = json!({
            "call": {"call": call, "texts": texts}, "draw": row.draw, "item": row.item, "judge": judge,
            "policy": row.policy, "score_micro": score,
        });
        let of = Some(EXPERIMENT.parse().unwrap());
        let mut command = Command::new(planned::payload("score.recorded", &score), of);
        command.refs = vec![call];
        teller.say_all(RUNNER_2, vec![("score", command)]);
    }
    let cost = if account.is_some() { COST } else { 0 } * rows.len() as u64;
    if account.is_some() {
        let settled =
            json!({"amount": cost, "hold": hold, "overrun": false, "run": run, "unknown": 0});
        teller.say(
            RUNNER_2,
            "settled",
            planned::payload("budget.settled", &settled),
        );
    }
    let closed = json!({
        "by_outcome": [{"calls": rows.len(), "outcome": "answered"}], "cost_usd_micro": cost, "end": "completed",
        "left": 0, "run": run, "settled_usd_micro": cost,
    });
    teller.say_in(
        RUNNER_2,
        "closed",
        planned::payload("judge_run.closed", &closed),
    );
}

/// The judge of the run, behind HTTP.
fn judge(teller: &mut Teller) -> Payload {
    let plan = teller.blob(b"{}".to_vec(), "application/json");
    let judge = json!({
        "asked": {"endpoint": "here", "pin": "m-1", "plan": plan, "plan_digest": Digest::sha256(b"plan")},
        "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "extract/1",
        "judge": "sim", "model": "m-1", "port": "endpoint", "prompt_hash": Digest::sha256(b""),
        "tool_snapshot": Digest::sha256(b""),
    });
    planned::payload("judge.registered", &judge)
}

/// A ledger with a judge behind HTTP, at an endpoint that is free or has prices; two accounts are open.
fn begun(is_free: bool) -> Teller {
    begun_with(clover::ledger::rulebooks::NEWEST, |teller| {
        let place = json!({
            "auth": "none", "classes": ["rows"], "dialect": "openai_chat", "endpoint": "here", "free": is_free,
            "insecure": false, "provider": "example", "terms": "keeps nothing", "url": "http://127.0.0.1:8080",
        });
        teller.say(
            ADA,
            "endpoint",
            planned::payload("endpoint.registered", &place),
        );
        if !is_free {
            let row = json!({
                "cache_read": 25_000, "cache_write": 250_000, "input": 250_000, "mode": "live", "model": "m-1",
                "output": 2_000_000, "provider": "example",
            });
            let prices = json!({
                "as_of": "2026-09-01T00:00:00.000000Z", "prices": "2026-11", "rows": [row], "source": "a page",
            });
            teller.say(
                ADA,
                "prices",
                planned::payload("price_table.registered", &prices),
            );
            for name in ["judges", "others"] {
                let account = json!({
                    "account": name, "amount": 1_000_000, "period": "once", "purpose": "judges",
                    "spenders": ["scorer"], "unit": "usd_micro",
                });
                teller.say(ADA, "account", planned::payload("budget.opened", &account));
            }
        }
        judge(teller)
    })
}

/// A run of so many steps, to its end or to before the first event that `until` names.
fn descend(
    teller: &mut Teller,
    (run, steps, account): (&str, u64, Option<&str>),
    until: fn(&Payload) -> bool,
) {
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let said = descended::opened(teller.ledger(), &of, (run, RUNNER, steps));
    let Payload::SgdOpened(mut said) = said else {
        unreachable!("what opens a run");
    };
    said.scoring = Some(SgdScoring {
        account: account.map(|name| name.parse().unwrap()),
        cap_usd_micro: None,
    });
    teller.say_in(ADA, "sgd", *said);
    while let Some(payload) = descended::next(teller.ledger(), (&of, run)) {
        if until(&payload) {
            return;
        }
        if let Payload::SgdScored(said) = &payload {
            ask(teller, said);
        }
        teller.say_in(author(&payload), payload.kind().as_str(), payload);
    }
}

/// A run, whole.
static STORY: LazyLock<Story> = LazyLock::new(|| {
    let mut teller = begun(true);
    descend(&mut teller, (descended::RUN, 2, None), |_| false);
    teller.finish()
});

/// That run, and a second one up to where its test is due.
static SECOND: LazyLock<Story> = LazyLock::new(|| {
    let mut teller = begun(true);
    descend(&mut teller, (descended::RUN, 2, None), |_| false);
    let is_test =
        |of: &Payload| matches!(of, Payload::SgdScored(said) if said.part.as_str() == "test");
    descend(&mut teller, ("descent-2", 1, None), is_test);
    teller.finish()
});

/// A run whose scores are paid, up to the first loss.
static PAID: LazyLock<Story> = LazyLock::new(|| {
    let mut teller = begun(false);
    let is_loss = |of: &Payload| matches!(of, Payload::SgdLossComputed(_));
    let run = (descended::RUN, 2, Some("judges"));
    descend(&mut teller, run, is_loss);
    teller.finish()
});

/// A ledger with a run whose judge is asked.
struct Tale {
    world: World,
}

impl Tale {
    fn place(&self, kind: &str, nth: usize) -> usize {
        let all = self.world.items.iter().enumerate();
        let mut of = all.filter(|(_, item)| item.body["kind"] == kind);
        of.nth(nth).unwrap().0
    }

    fn data(&self, kind: &str, nth: usize) -> Value {
        self.world.items[self.place(kind, nth)].body["data"].clone()
    }

    fn cut(&mut self, kind: &str, nth: usize) -> usize {
        let at = self.place(kind, nth);
        self.world.items.truncate(at);
        at
    }

    fn changed(&mut self, kind: &str, nth: usize, change: impl FnOnce(&mut Value)) -> usize {
        let at = self.place(kind, nth);
        self.world.items.truncate(at + 1);
        change(&mut self.world.items[at].body["data"]);
        at
    }

    fn said(&mut self, at: usize, who: u8, kind: &str, data: Value) -> usize {
        let said = self.world.say(who, kind, 1, EXPERIMENT.into(), data);
        assert_eq!(said, at);
        at
    }

    /// Opens a run of judges about test, as a run of the history did.
    fn asks_test(&mut self, run: &str) -> usize {
        let all = self.world.items.iter().map(|item| &item.body);
        let mut tests = all
            .filter(|of| of["kind"] == "judge_run.opened" && of["data"]["sgd"]["part"] == "test");
        let mut data = tests.next_back().unwrap()["data"].clone();
        data["run"] = "run-once-more".into();
        data["sgd"]["run"] = run.into();
        let at = self.world.items.len();
        self.said(at, RUNNER_2, "judge_run.opened", data)
    }

    /// The first item of a part.
    fn listed(&self, split: &str) -> Value {
        let mut all = self.world.items.iter().map(|item| &item.body);
        let of = all.find(|of| of["kind"] == "sgd.rows_listed" && of["data"]["split"] == split);
        of.unwrap()["data"]["rows"][0]["item"].clone()
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale {
            world: World::of(&STORY.lines),
        };
        let at = (case.told)(&mut tale);
        let found = case.rule.map(|rule| (at, rule));
        sample(case.name, case.done, &tale.world, found)
    });
    told.collect()
}
