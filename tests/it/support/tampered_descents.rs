//! Samples of runs that lower the loss of a judge's prompt: who redraws batches, moves rows, makes losses light, chooses the
//! checkpoint, or reads test twice.

use std::sync::LazyLock;

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::payload::Role;
use clover::event::registry::Signers;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::descended;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::signer;
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
    Case { name: "good-descent", rule: None,
           told: |tale| tale.world.items.len() - 1,
           done: "Nothing. A prompt was changed step by step, the steps that made it worse were taken back, and test was read once." },
    Case { name: "descent-to-another-prompt", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.step_committed", 0, |data| data["new_digest"] = data["parent_digest"].clone()),
           done: "A step says that it left another prompt than its patch gives." },
    Case { name: "descent-at-another-rate", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.step_committed", 0, |data| data["lr_micro"] = 990_000.into()),
           done: "A step was taken at another learning rate than the schedule has." },
    Case { name: "descent-through-a-frozen-section", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.patch_rejected", 0);
               tale.said_instead(at, "sgd.scored", 3)
           },
           done: "A proposal that edits a frozen section was scored on val as if it were valid." },
    Case { name: "patch-turned-down-for-nothing", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.patch_approved", 0);
               let violations = json!([{"bound": "400", "found": "401", "rule": "chars"}]);
               let data = json!({"attempt": 1, "run": descended::RUN, "step": 0, "violations": violations});
               tale.said(at, BEN, "sgd.patch_rejected", data)
           },
           done: "A proposal that breaks no rule was rejected as too long." },
    Case { name: "gradient-asked-with-a-row", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.gradient_requested", 0, |data| {
               let mut request: Value = serde_json::from_str(data["request"].as_str().unwrap()).unwrap();
               request["row"] = "p03".into();
               let bytes = clover::ground::canon::to_bytes(&request).unwrap();
               data["request_digest"] = Digest::sha256(&bytes).to_hex().into();
               data["request"] = String::from_utf8(bytes).unwrap().into();
           }),
           done: "The request for a gradient names a row beside its aggregates." },
    Case { name: "agents-that-score", rule: Some("sgd"),
           told: |tale| {
               tale.two_roles();
               let at = tale.changed("sgd.scored", 0, |_| ());
               tale.world.items[at].body["author"] = signer(RUNNER).id().to_string().into();
               at
           },
           done: "The key of a run's agents signed scores of the run." },
    Case { name: "agents-that-score-elsewhere", rule: Some("sgd"),
           told: |tale| {
               tale.two_roles();
               let data = json!({"draw": 0, "item": "p99", "judge": "sim", "policy": "base", "score_micro": 500_000});
               let at = tale.cut("sgd.rows_listed", 0);
               tale.said(at, RUNNER, "score.recorded", data)
           },
           done: "The key of a run's agents recorded a score beside the run." },
    Case { name: "batch-drawn-again", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.batch_drawn", 0, |data| {
               let rows = data["rows"].as_array_mut().unwrap();
               let free = (0..10_u64).find(|place| !rows.contains(&json!(place))).unwrap();
               rows[0] = free.into();
               rows.sort_by_key(Value::as_u64);
           }),
           done: "The batch of a step has another row than its seed draws." },
    Case { name: "rows-changed-after-their-run-was-opened", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.rows_listed", 0, |data| data["rows"][0]["target_micro"] = 555_000.into()),
           done: "A row of train was listed with another target than was committed before the first step." },
    Case { name: "loss-made-light", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.loss_computed", 3, |data| data["loss"]["loss"] = json!(0.01)),
           done: "The loss of val is told lower than the scores give." },
    Case { name: "step-without-its-loss", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.loss_computed", 3);
               tale.said_instead(at, "sgd.step_committed", 0)
           },
           done: "A step was taken before the loss of val was computed." },
    Case { name: "reversion-left-out", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.reverted", 0);
               tale.said_instead(at, "sgd.batch_drawn", 2)
           },
           done: "A run went on from a prompt that made val worse twice, and was not taken back." },
    Case { name: "stop-left-out", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.stop_triggered", 0);
               tale.said_instead(at, "sgd.batch_drawn", 1)
           },
           done: "A run went on after its rank correlation fell, and no stop was triggered." },
    Case { name: "checkpoint-of-choice", rule: Some("sgd"),
           told: |tale| {
               let other = tale.data("sgd.step_committed", 0)["new_digest"].clone();
               let at = tale.changed("sgd.checkpoint_selected", 0, |data| data["best"] = 1.into());
               tale.world.items[at].body["data"]["prompt_digest"] = other;
               at
           },
           done: "Another prompt than the one with the lowest loss of val was chosen." },
    Case { name: "test-scored-before-its-checkpoint", rule: Some("sgd"),
           told: |tale| {
               let at = tale.cut("sgd.checkpoint_selected", 0);
               tale.said_test(at)
           },
           done: "Rows of test were scored before the checkpoint was chosen." },
    Case { name: "test-made-light", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.test_read", 0, |data| data["chosen"]["loss"] = json!(0.01)),
           done: "The loss of test is told lower than the scores give." },
    Case { name: "test-read-by-a-second-run", rule: Some("sgd"),
           told: |tale| {
               tale.world = World::of(&SECOND.lines);
               let at = tale.world.items.len();
               tale.said_test(at)
           },
           done: "A second run read the rows of test that the first had read." },
    Case { name: "second-run-on-other-rows", rule: Some("sgd"),
           told: |tale| {
               tale.world = World::of(&SECOND.lines);
               tale.changed("sgd.opened", 1, |data| {
                   let test = data["splits"]["test"].clone();
                   data["splits"]["test"] = data["splits"]["confirm"].clone();
                   data["splits"]["confirm"] = test;
               })
           },
           done: "A second run took as rows of test those that the first kept for confirm." },
    Case { name: "run-on-some-of-its-labels", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.opened", 0, |data| data["through_seq"] = (data["through_seq"].as_u64().unwrap() - 3).into()),
           done: "A run was opened on the labels up to an entry of choice, and newer ones stood there." },
    Case { name: "run-under-a-seed-of-choice", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.opened", 0, |data| data["seed"] = data["prompt_digest"].clone()),
           done: "A run was opened under another seed than its experiment and its name give." },
    Case { name: "patch-of-a-program-that-names-a-call", rule: Some("sgd"),
           told: |tale| tale.changed("sgd.patch_proposed", 0, |data| data["call"] = data["parent_digest"].clone()),
           done: "A program of this machine wrote a patch, and it names a call of a model." },
    Case { name: "gradient-by-a-model-off-the-record", rule: Some("sgd"),
           told: |tale| {
               tale.by_model(&["aggregates"]);
               tale.gradient(None)
           },
           done: "A model is said to have given a gradient, and no call of it is on record." },
    Case { name: "gradient-of-other-words-than-its-call", rule: Some("sgd"),
           told: |tale| {
               tale.by_model(&["aggregates"]);
               let call = tale.called(|data| data["text"]["blake3"] = data["shown"].clone());
               tale.gradient(Some(call))
           },
           done: "A gradient is on record that is not the text of its call." },
    Case { name: "gradient-asked-about-something-else", rule: Some("run"),
           told: |tale| {
               tale.by_model(&["aggregates"]);
               tale.called(|data| data["shown"] = data["ask"].clone())
           },
           done: "A model was asked for a gradient about something else than the request that was looked through." },
    Case { name: "gradient-asked-where-only-rows-may-go", rule: Some("endpoint"),
           told: |tale| {
               tale.by_model(&["rows"]);
               tale.place("sgd.opened", 0)
           },
           done: "A model was to write gradients at an endpoint that is registered for rows alone." },
    Case { name: "descent-under-the-name-of-another-model", rule: Some("sgd"),
           told: |tale| {
               tale.by_model(&["aggregates"]);
               tale.changed("sgd.opened", 0, |data| data["model"] = "m-9 at here".into())
           },
           done: "A run says as its model another one than it pins." },
    Case { name: "good-gradient-by-a-model", rule: None,
           told: |tale| {
               tale.by_model(&["aggregates"]);
               let call = tale.called(|_| ());
               tale.gradient(Some(call))
           },
           done: "Nothing. A model behind HTTP was asked for a gradient, and its text is on record as it was said." },
];

/// Who says what of a run.
pub(super) fn author(payload: &Payload) -> u8 {
    if descended::is_theirs(payload) {
        return RUNNER;
    }
    match payload.kind().signers() {
        Signers::Role(Role::Arbiter) => BEN,
        Signers::Role(Role::Scorer) => RUNNER_2,
        Signers::Role(Role::Labeler) => LENA,
        Signers::Role(Role::Custodian) => CLEO,
        Signers::Role(Role::Approver) => PETRA,
        _ => ADA,
    }
}

/// A run from its opening to its end, or to where test is due.
pub(super) fn told(teller: &mut Teller, (run, steps): (&str, u64), is_whole: bool) {
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let said = descended::opened(teller.ledger(), &of, (run, RUNNER, steps));
    teller.say_in(ADA, "opened", said);
    while let Some(payload) = descended::next(teller.ledger(), (&of, run)) {
        let is_test = matches!(&payload, Payload::SgdScored(said) if said.part.as_str() == "test");
        if is_test && !is_whole {
            return;
        }
        teller.say_in(author(&payload), payload.kind().as_str(), payload);
    }
}

pub(super) fn begun(rulebook: u32) -> Teller {
    begun_with(rulebook, |_| descended::before().remove(0))
}

/// The same with another judge, and what stands before it.
pub(super) fn begun_with(rulebook: u32, judge: impl FnOnce(&mut Teller) -> Payload) -> Teller {
    let mut teller = Teller::begin_under(rulebook);
    // Before the keys: the seed of everything that is drawn hangs on it.
    teller.say_in(ADA, "registered", planned::experiment_registered());
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-lena", LENA, "Lena", Role::Labeler),
        ("key-petra", PETRA, "Petra", Role::Approver),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let judge = judge(&mut teller);
    for payload in std::iter::once(judge).chain(descended::before().into_iter().skip(1)) {
        teller.say_in(author(&payload), payload.kind().as_str(), payload);
    }
    teller
}

/// One run, whole.
static FIRST: LazyLock<Story> = LazyLock::new(|| {
    let mut teller = begun(clover::ledger::rulebooks::UNNAMED);
    told(&mut teller, (descended::RUN, 3), true);
    teller.finish()
});

/// That run, and a second one up to where its test is due.
static SECOND: LazyLock<Story> = LazyLock::new(|| {
    let mut teller = begun(clover::ledger::rulebooks::UNNAMED);
    told(&mut teller, (descended::RUN, 3), true);
    told(&mut teller, ("descent-2", 1), false);
    teller.finish()
});

/// What the first event of a kind says in the honest history.
fn honest(kind: &str) -> Value {
    let whole = Tale {
        world: World::of(&FIRST.lines),
    };
    whole.data(kind, 0)
}

/// A ledger with a run.
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

    /// Ends the history before an event.
    fn cut(&mut self, kind: &str, nth: usize) -> usize {
        let at = self.place(kind, nth);
        self.world.items.truncate(at);
        at
    }

    /// Ends the history with an event that says something else.
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

    /// Says what the honest history says later.
    fn said_instead(&mut self, at: usize, kind: &str, nth: usize) -> usize {
        let whole = Tale {
            world: World::of(&FIRST.lines),
        };
        let data = whole.data(kind, nth);
        let who = if kind == "sgd.scored" { RUNNER_2 } else { BEN };
        self.said(at, who, kind, data)
    }

    /// Scores test as the run that goes on.
    fn said_test(&mut self, at: usize) -> usize {
        let whole = Tale {
            world: World::of(&FIRST.lines),
        };
        let all = whole.world.items.iter().map(|item| &item.body);
        let mut of = all.filter(|body| body["data"]["part"] == "test");
        let mut data = of.next().unwrap()["data"].clone();
        let mut opened = self.world.items.iter().rev();
        let opened = opened.find(|item| item.body["kind"] == "sgd.opened");
        let opened = &opened.unwrap().body["data"];
        data["run"] = opened["run"].clone();
        data["step"] = opened["terms"]["steps"].clone();
        self.said(at, RUNNER_2, "sgd.scored", data)
    }

    /// A model behind HTTP writes gradients, at an endpoint of these classes; the history ends where the first is due.
    fn by_model(&mut self, classes: &[&str]) {
        self.cut("sgd.gradient_returned", 0);
        let mut place = json!({
            "auth": "none", "classes": classes, "dialect": "openai_chat", "endpoint": "here", "free": true,
            "insecure": false, "provider": "example", "url": "http://127.0.0.1:8080",
        });
        if classes.contains(&"rows") {
            place["terms"] = "keeps nothing".into();
        }
        let world = &mut self.world;
        world.say(ADA, "endpoint.registered", 1, Value::Null, place);
        let at = self.place("sgd.opened", 0);
        self.world.items[at..].rotate_right(1);
        // It stands at the time of what stood there.
        self.world.items[at].recorded_at = self.world.items[at + 1].recorded_at;
        for of in ["at", "seen"] {
            self.world.items[at].body[of] = self.world.items[at + 1].body[of].clone();
        }
        let data = &mut self.world.items[at + 1].body["data"];
        data["agents"] = "endpoint".into();
        data["model"] = "m-1 at here".into();
        data["asked"] = json!({
            "endpoint": "here", "form": "descend/1", "max_output_tokens": 4_096, "model": "m-1", "pin": "m-1",
            "seeded": true,
        });
    }

    /// The model gave the gradient of the honest history.
    fn called(&mut self, change: impl FnOnce(&mut Value)) -> usize {
        let shown = self.data("sgd.gradient_requested", 0)["request_digest"].clone();
        let text = honest("sgd.gradient_returned")["gradient"].clone();
        let bytes = text.as_str().unwrap().as_bytes();
        let text = json!({"blake3": Digest::blake3(bytes).to_hex(), "bytes": bytes.len(), "media": "application/json"});
        let mut data = json!({
            "ask": Digest::sha256(b"ask").to_hex(), "attempts": [{"class": "ok", "ms": 9, "status": 200}],
            "bound_usd_micro": 0, "build": "clover 0.1.0", "cost_usd_micro": 0, "model_returned": "m-1", "nth": 0,
            "outcome": "answered", "place": 0, "purpose": "descend", "response": text, "run": descended::RUN,
            "shown": shown, "text": text, "usage": "absent",
        });
        change(&mut data);
        let world = &mut self.world;
        world.say(RUNNER, "model_call.recorded", 1, EXPERIMENT.into(), data)
    }

    /// The gradient of the honest history, by a call where it names one.
    fn gradient(&mut self, call: Option<usize>) -> usize {
        let id = call.map(|at| self.world.items[at].was.clone());
        let mut data = honest("sgd.gradient_returned");
        if let Some(id) = &id {
            data["call"] = id.clone().into();
        }
        let world = &mut self.world;
        let at = world.say(RUNNER, "sgd.gradient_returned", 1, EXPERIMENT.into(), data);
        if let Some(id) = id {
            self.world.items[at].body["refs"] = json!([id]);
        }
        at
    }

    /// The agents' key scores too.
    fn two_roles(&mut self) {
        for item in &mut self.world.items {
            if item.body["data"]["holder"] == "Opal" {
                item.body["data"]["roles"] = json!(["optimizer", "scorer"]);
            }
        }
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale {
            world: World::of(&FIRST.lines),
        };
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
