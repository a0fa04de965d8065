//! Samples of runs of optimizers that see only cards: what one is shown, what it returns, and what comes of it.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::ground::digest::Digest;
use serde_json::Value;
use serde_json::json;

use super::decided;
use super::forger::World;
use super::iterated;
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
    Case { name: "optimizer-without-cards", rule: Some("synth"),
           told: |tale| { tale.without_cards(); tale.opened(|_| ()) },
           done: "An optimizer was run in an iteration that has no cards yet." },
    Case { name: "optimizers-side-by-side", rule: Some("synth"),
           told: |tale| { tale.opened(|_| ()); tale.opened(|data| data["run"] = "it-3-2".into()) },
           done: "A second run of an optimizer was opened beside one that is open." },
    Case { name: "optimizer-with-more-dev-calls-than-the-plan", rule: Some("synth"),
           told: |tale| tale.opened(|data| data["dev_calls"] = 101.into()),
           done: "A run was opened with more dev calls than the plan has." },
    Case { name: "optimizer-shown-what-was-not-released", rule: Some("synth"),
           told: |tale| {
               tale.opened(|_| ());
               for class in ["card.public", "rubric", "schema"] { tale.read(class); }
               tale.asked(0, |_| ())
           },
           done: "A view was handed over, and its receipts were not released on record." },
    Case { name: "optimizer-shown-once-released-for-another-round", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.returned(0, &[CONCISE], |_| ());
               tale.asked(1, |_| ())
           },
           done: "A second view was handed over on the releases of the first." },
    Case { name: "optimizer-shown-what-was-never-published", rule: Some("synth"),
           told: |tale| {
               tale.opened(|_| ());
               tale.released();
               tale.asked(0, |data| data["inputs"][0] = digest("rows").into())
           },
           done: "A view holds something that is no card, no receipt, no rubric and no grammar." },
    Case { name: "optimizer-asked-beyond-its-rounds", rule: Some("synth"),
           told: |tale| {
               tale.opened(|data| data["rounds"] = 1.into());
               tale.released();
               tale.asked(0, |_| ());
               tale.returned(0, &[CONCISE], |_| ());
               tale.released();
               tale.asked(1, |_| ())
           },
           done: "An optimizer was asked once more than its run has rounds." },
    Case { name: "optimizer-answers-what-nobody-asked", rule: Some("synth"),
           told: |tale| { tale.opened(|_| ()); tale.returned(0, &[CONCISE], |_| ()) },
           done: "An answer is on record, and no view that it answers." },
    Case { name: "answer-of-another-key", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               let at = tale.returned(0, &[CONCISE], |_| ());
               tale.world.items[at].body["author"] = signer(STRANGER).id().to_string().into();
               at
           },
           done: "Another key than that of the run signed its answer." },
    Case { name: "candidate-passed-off-as-a-patch", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.returned(0, &[CONCISE], |data| {
                   let yaml = data["candidates"][0]["yaml"].as_str().unwrap().replace("length_bias_cap\n", "abstention\n");
                   data["candidates"][0]["yaml"] = yaml.into();
               })
           },
           done: "A candidate of another family than its leaves is on record as a patch that passed every check." },
    Case { name: "candidate-turned-down-for-nothing", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.returned(0, &[CONCISE], |data| {
                   data["candidates"][0].as_object_mut().unwrap().remove("patch_hash");
                   data["candidates"][0]["code"] = "frozen".into();
               })
           },
           done: "A candidate that passes every check is on record as one that touches what is frozen." },
    Case { name: "candidate-under-another-hash", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.returned(0, &[CONCISE], |data| data["candidates"][0]["patch_hash"] = digest("another").into())
           },
           done: "A candidate is on record under the hash of another edit." },
    Case { name: "candidates-beyond-k", rule: Some("synth"),
           told: |tale| {
               tale.opened(|data| data["k"] = 1.into());
               tale.released();
               tale.asked(0, |_| ());
               tale.returned(0, &[CONCISE, CITES], |_| ())
           },
           done: "An answer has more candidates than its run reads, and all of them were read." },
    Case { name: "dev-call-of-what-nobody-returned", rule: Some("synth"),
           told: |tale| { tale.begun(); tale.returned(0, &[CONCISE], |_| ()); tale.call(CITES) },
           done: "While a run was open, the dev objective was asked about a patch that it did not return." },
    Case { name: "dev-calls-beyond-the-run", rule: Some("synth"),
           told: |tale| {
               tale.opened(|data| data["dev_calls"] = 1.into());
               tale.released();
               tale.asked(0, |_| ());
               tale.returned(0, &[CONCISE, CITES], |_| ());
               tale.call(CONCISE);
               tale.call(CITES)
           },
           done: "The dev objective was asked once more than the run may." },
    Case { name: "proposed-what-no-run-returned", rule: Some("synth"),
           told: |tale| { tale.tried(); tale.proposed(CITES, |_| ()) },
           done: "A patch names a run that did not return it." },
    Case { name: "proposed-what-did-not-pass", rule: Some("synth"),
           told: |tale| { tale.begun(); tale.returned(0, &[CONCISE], |_| ()); tale.proposed(CONCISE, |_| ()) },
           done: "A patch of a run was proposed, and the dev objective never said that it passes." },
    Case { name: "proposed-two-of-a-family", rule: Some("synth"),
           told: |tale| {
               tale.begun();
               tale.returned(0, &[CONCISE, CAP], |_| ());
               tale.call(CONCISE);
               tale.call(CAP);
               tale.proposed(CONCISE, |_| ());
               tale.proposed(CAP, |_| ())
           },
           done: "Two patches of one family were proposed from one run." },
    Case { name: "proposed-by-a-program-without-its-run", rule: Some("synth"),
           told: |tale| {
               tale.tried();
               tale.proposed(CONCISE, |data| { data.as_object_mut().unwrap().remove("run"); })
           },
           done: "The key of an optimizer in a run proposed a patch as a program, and names no run." },
    Case { name: "run-that-hides-its-dev-calls", rule: Some("synth"),
           told: |tale| {
               tale.tried();
               tale.proposed(CONCISE, |_| ());
               tale.stopped(|data| data["dev_calls"] = 0.into())
           },
           done: "The end of a run says that the dev objective was never asked." },
    Case { name: "run-that-hides-its-patch", rule: Some("synth"),
           told: |tale| {
               tale.tried();
               tale.proposed(CONCISE, |_| ());
               tale.stopped(|data| data["proposed"] = json!([]))
           },
           done: "The end of a run leaves out the patch that came of it." },
    Case { name: "optimizer-that-scores", rule: Some("synth"),
           told: |tale| {
               tale.two_roles();
               tale.opened(|data| data["key"] = signer(STRANGER).id().to_string().into());
               tale.scored()
           },
           done: "The key of an optimizer in a run recorded a score." },
    Case { name: "optimizer-that-scored-before", rule: Some("synth"),
           told: |tale| {
               tale.two_roles();
               tale.scored();
               tale.opened(|data| data["key"] = signer(STRANGER).id().to_string().into())
           },
           done: "A run was opened for a key that had recorded a score." },
    Case { name: "good-synthesis", rule: None,
           told: |tale| {
               tale.tried();
               tale.proposed(CONCISE, |_| ());
               tale.stopped(|_| ())
           },
           done: "Nothing. An optimizer saw cards, returned a patch, was told what it is worth on dev, and it was proposed." },
];

/// Which patch: two of the story, and another of the family of the first.
pub const CONCISE: usize = 0;
pub const CITES: usize = 1;
const CAP: usize = 2;

fn digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_hex()
}

fn patch(which: usize) -> Value {
    let said = if which == CAP {
        let changes = "{guards.length_bias_cap.max_raw_score: 0.4}";
        iterated::proposed(
            decided::IT,
            &iterated::patch("cap-3", "length_bias_cap", changes),
        )
    } else {
        let both = decided::patches();
        let is_concise = |of: &Payload| matches!(of, Payload::PatchProposed(of) if of.patch.as_str() == "concise-3");
        let place = both.iter().position(is_concise).unwrap();
        both[if which == CONCISE { place } else { 1 - place }].clone()
    };
    serde_json::to_value(said).unwrap()
}

/// The answer of the good sample, byte for byte.
pub fn answer() -> Vec<u8> {
    json!({"candidates": [{"yaml": patch(CONCISE)["yaml"]}]})
        .to_string()
        .into_bytes()
}

/// A ledger with an iteration whose cards are published.
pub struct Tale {
    pub world: World,
}

impl Tale {
    pub fn new() -> Self {
        let story = decided::story();
        let world = World::of(&story.lines[..=story.at("card")]);
        let mut tale = Self { world };
        let other = key_added(&signer(STRANGER), "Sam", true, &[Role::Optimizer]);
        let other = serde_json::to_value(other).unwrap();
        tale.world.say(ADA, "key.added", 2, Value::Null, other);
        tale
    }

    fn without_cards(&mut self) {
        let mut items = self.world.items.iter();
        let at = items.position(|item| item.body["kind"] == "card.published");
        self.world.remove(at.unwrap());
    }

    pub fn say(&mut self, who: u8, kind: &str, data: Value) -> usize {
        self.world.say(who, kind, 1, EXPERIMENT.into(), data)
    }

    /// The other key scores too.
    fn two_roles(&mut self) {
        for item in &mut self.world.items {
            if item.body["data"]["holder"] == "Sam" {
                item.body["data"]["roles"] = json!(["optimizer", "scorer"]);
            }
        }
    }

    fn scored(&mut self) -> usize {
        let judge = serde_json::to_value(decided::judge()).unwrap()["judge"].clone();
        let data = json!({"draw": 7, "item": "item-new", "judge": judge, "policy": "base", "score_micro": 500_000});
        self.say(STRANGER, "score.recorded", data)
    }

    pub fn opened(&mut self, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "build": "clover 0.1.0", "dev_calls": 10, "iteration": decided::IT, "k": 4,
            "key": signer(RUNNER).id(), "model": "optimizer.py", "optimizer": "command", "rounds": 1, "run": "it-3-1",
        });
        change(&mut data);
        self.say(ADA, "synth.opened", data)
    }

    fn read(&mut self, class: &str) -> usize {
        let data = json!({
            "class": class, "outcome": "allowed", "purpose": "synth it-3-1", "reader": signer(RUNNER).id(),
            "role": "optimizer",
        });
        self.say(CLEO, "data.read", data)
    }

    fn released(&mut self) {
        for class in ["card.public", "dev_receipt", "rubric", "schema"] {
            self.read(class);
        }
    }

    fn asked(&mut self, round: u64, change: fn(&mut Value)) -> usize {
        let card = serde_json::to_value(decided::card()).unwrap();
        let grammars = ["clover-patch/1", "clover-rubric/1", "evidence/1"].map(digest);
        let mut inputs = vec![
            card["public_digest"].as_str().unwrap().to_owned(),
            iterated::rubric().hash().to_hex(),
        ];
        inputs.extend(grammars);
        let mut data = json!({
            "build": "clover 0.1.0", "inputs": inputs, "iteration": decided::IT,
            "leak_test": {"ids": 9, "texts": 18, "unreadable": 0}, "round": round, "run": "it-3-1",
            "through_seq": self.world.items.len() - 1, "view_digest": digest("view"),
            "view": {"blake3": digest("a view"), "bytes": 9, "media": "application/json"},
        });
        change(&mut data);
        self.say(BEN, "synth.asked", data)
    }

    /// A view was handed over in a run that is open.
    pub fn shown(&mut self) {
        self.released();
        self.asked(0, |_| ());
    }

    pub fn begun(&mut self) {
        self.opened(|data| data["rounds"] = 2.into());
        self.released();
        self.asked(0, |_| ());
    }

    pub fn returned(&mut self, round: u64, which: &[usize], change: fn(&mut Value)) -> usize {
        let candidates = which.iter().map(|which| {
            let patch = patch(*which);
            json!({"patch_hash": patch["patch_hash"], "yaml": patch["yaml"]})
        });
        let candidates: Vec<Value> = candidates.collect();
        let bytes = answer();
        let mut data = json!({
            "answer": {"blake3": Digest::blake3(&bytes).to_hex(), "bytes": bytes.len(), "media": "application/json"},
            "candidates": candidates, "iteration": decided::IT, "round": round, "run": "it-3-1", "state": "read",
        });
        change(&mut data);
        self.say(RUNNER, "synth.returned", data)
    }

    pub fn call(&mut self, which: usize) -> usize {
        let hash = Digest::from_hex(patch(which)["patch_hash"].as_str().unwrap()).unwrap();
        let said = decided::asked(hash, signer(RUNNER).id());
        self.say(
            BEN,
            "dev.objective_queried",
            serde_json::to_value(said).unwrap(),
        )
    }

    /// One round, whose patch passes on dev.
    pub fn tried(&mut self) {
        self.opened(|_| ());
        self.released();
        self.asked(0, |_| ());
        self.returned(0, &[CONCISE], |_| ());
        self.call(CONCISE);
    }

    pub fn proposed(&mut self, which: usize, change: fn(&mut Value)) -> usize {
        let mut data = patch(which);
        data["author_kind"] = "llm".into();
        data["model"] = "optimizer.py".into();
        data["prompt_digest"] = digest("view").into();
        data["run"] = "it-3-1".into();
        change(&mut data);
        self.say(RUNNER, "patch.proposed", data)
    }

    pub fn stopped(&mut self, change: fn(&mut Value)) -> usize {
        let mut data = json!({
            "dev_calls": 1, "iteration": decided::IT, "proposed": ["concise-3"], "reason": "rounds", "rounds": 1,
            "run": "it-3-1",
        });
        change(&mut data);
        self.say(BEN, "synth.stopped", data)
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
