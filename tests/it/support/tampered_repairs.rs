//! Samples of runs that repair a workflow: who makes edits small, scores high or costs light, reads what is right too early,
//! leaves candidates out, draws again, or lets an update take effect that nobody validated.

use std::sync::LazyLock;

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::payload::Role;
use clover::event::registry::Signers;
use clover::ground::canon;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::ledger::Ledger;
use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::planned;
use super::repaired;
use super::repaired::Speaker;
use super::repaired::Tasks;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_chosen;
use super::tampered_undone::sample;

/// What was done, by its rule: `None` where nothing is found.
struct Case {
    name: &'static str,
    done: &'static str,
    story: &'static LazyLock<Story>,
    told: fn(&mut Tale) -> usize,
    rule: Option<&'static str>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "good-repair", rule: None, story: &RUN,
           told: |tale| tale.world.items.len() - 1,
           done: "Nothing. A workflow was repaired without knowing what is right, and what its candidates are worth was read after the end." },
    Case { name: "good-repairs-learnt-from", rule: None, story: &LEARNT,
           told: |tale| tale.world.items.len() - 1,
           done: "Nothing. Workflows passed and were of no use, a stricter verifier was tried on other tasks, and did not take effect." },
    Case { name: "repair-update-tried-before-all-runs-are-opened", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.tried_early(Some(29)),
           done: "A run of an update is executed while the items of the other one can still be chosen." },
    Case { name: "repair-update-tried-before-all-runs-are-opened-unasked", rule: None, story: &LEARNT,
           told: |tale| tale.tried_early(None),
           done: "The same under an older rulebook, which did not ask: the verdict says so." },
    Case { name: "repair-under-a-seed-of-choice", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.run_started", 0, |data| data["seed"] = data["truth"].clone()),
           done: "A run was opened under another seed than its experiment and its name give." },
    Case { name: "repair-by-an-endpoint-that-no-rule-reads", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.run_started", 0, |data| data["executor"] = "endpoint".into()),
           done: "A model behind HTTP answers in a run, and no rule holds its calls against what it answered." },
    Case { name: "repair-optimizer-under-another-name", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.run_started", 0, |data| data["cell"]["optimizer"] = "weak".into()),
           done: "A run says that the weak optimizer proposes, and names the strong one." },
    Case { name: "repair-judged-by-what-is-right", rule: Some("repair"), story: &RUN,
           told: |tale| {
               let at = tale.cut("wf.feedback_given", 1);
               tale.said_instead(at, CLEO, "utility.recorded", 0)
           },
           done: "What is right was read while a candidate still waited for its feedback." },
    Case { name: "repair-truth-read-by-its-optimizer", rule: Some("repair"), story: &RUN,
           told: |tale| {
               tale.two_roles();
               let at = tale.cut("utility.recorded", 0);
               tale.said_instead(at, RUNNER, "utility.recorded", 0)
           },
           done: "The key that proposes edits read what is right." },
    Case { name: "repair-edit-made-small", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.candidate_added", 0, |data| data["locality"]["prompt_chars"] = 1.into()),
           done: "A candidate says that its edit touches one character." },
    Case { name: "repair-candidate-beyond-its-edit", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.candidate_added", 0, |data| {
               let ir = data["ir"].as_str().unwrap().replace("Read the ref", "Read any ref");
               let digest = Digest::labelled("clover/wf-ir/v1", ir.as_bytes());
               data["candidate"] = digest.to_hex().into();
               data["ir"] = ir.into();
           }),
           done: "A candidate has another change besides the one that its edit makes." },
    Case { name: "repair-edit-called-a-split", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.candidate_added", 0, |data| {
               let edit = r#"{"args":{"second":["date"],"step":"first"},"operator":"split_step"}"#;
               data["operator"] = "split_step".into();
               data["edit"] = edit.into();
               data["locality"] = json!({"ast_nodes": 3, "new_llm_calls": 1, "prompt_chars": 0, "steps_touched": 2});
           }),
           done: "An edit of a prompt calls itself a split, of which no characters are counted." },
    Case { name: "repair-feedback-made-kind", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.feedback_given", 0, |data| {
               data["flags"][0]["kept"] = "1".into();
               data["flags"][0]["ok"] = true.into();
           }),
           done: "Feedback says that an output keeps a rule, and its parts and its digest say otherwise." },
    Case { name: "repair-score-made-high", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.scored", 0, |data| data["score_micro"] = 950_000.into()),
           done: "A candidate has a higher score than its feedback gives." },
    Case { name: "repair-best-dropped", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.pruned", 1, |data| {
               let first = data["kept"][0].take();
               data["kept"][0] = data["dropped"][0].take();
               data["dropped"][0] = first;
           }),
           done: "A turn drops the best candidate and keeps the worst." },
    Case { name: "repair-candidate-left-out", rule: Some("repair"), story: &RUN,
           told: |tale| {
               let at = tale.cut("wf.scored", 2);
               tale.said_instead(at, BEN, "wf.pruned", 1)
           },
           done: "A turn was ended before a candidate of it had its score." },
    Case { name: "repair-cost-made-light", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.executed", 0, |data| data["cost"]["tokens_in"] = 1.into()),
           done: "An execution says that it cost less than its calls." },
    Case { name: "repair-call-beyond-its-budget", rule: Some("repair"), story: &RUN,
           told: |tale| {
               let started = tale.place("wf.run_started", 0);
               tale.world.items[started].body["data"]["terms"]["budget"]["calls"] = 3.into();
               tale.changed("wf.called", 3, |_| ())
           },
           done: "A model was called after the calls of the run were spent." },
    Case { name: "repair-trace-of-another-execution", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.executed", 1, |data| data["trace_digest"] = data["candidate"].clone()),
           done: "An execution names the digest of another trace than its own." },
    Case { name: "repair-call-that-no-trace-has", rule: Some("repair"), story: &RUN,
           told: |tale| {
               let at = tale.place("wf.called", 1);
               tale.world.items[at].body["data"]["request"] = tale.data("wf.called", 0)["request"].clone();
               tale.changed("wf.executed", 0, |_| ())
           },
           done: "A call stands on record that the trace of its execution does not have." },
    Case { name: "repair-control-of-choice", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("edit_pair.recorded", 0, |data| data["propensity_micro"] = 500_000.into()),
           done: "The control of a pair is said to be one of two, and was the only one." },
    Case { name: "repair-verifier-changed-on-the-way", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.feedback_given", 1, |data| data["verifier_digest"] = data["evidence"].clone()),
           done: "Feedback was given by another verifier than the one that the run was opened with." },
    Case { name: "repair-ended-as-stagnant", rule: Some("repair"), story: &RUN,
           told: |tale| tale.changed("wf.stopped", 0, |data| data["reason"] = "stagnation".into()),
           done: "A run whose candidate passes is said to have ended by stagnation." },
    Case { name: "repair-equal-outputs-of-unequal-worth", rule: Some("repair"), story: &RUN,
           told: |tale| {
               let first = tale.worths_of_equal_outputs();
               tale.changed("utility.recorded", first, |data| data["utilities_micro"][0] = 333_333.into())
           },
           done: "Two candidates gave the same output, and are said to be worth something else." },
    Case { name: "repair-trigger-that-runs-do-not-show", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.changed("meta.triggered", 0, |data| data["class"] = "stagnation".into()),
           done: "Runs that passed are said to have stopped rising." },
    Case { name: "repair-trigger-where-nothing-is-of-use", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.changed("meta.triggered", 0, |data| data["useful_micro"] = 1_000_001.into()),
           done: "A trigger asks for a worth above one, so that every run that passed is said to be of no use." },
    Case { name: "repair-update-by-another-measure", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.changed("meta.updated", 0, |data| data["useful_micro"] = 1.into()),
           done: "An update will be judged by another worth than its trigger was." },
    Case { name: "repair-update-said-to-pass", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.changed("meta.validated", 0, |data| {
               data["verdict"] = "pass".into();
               for gate in ["gamma", "kappa", "success"] {
                   data[gate]["reached"] = true.into();
               }
           }),
           done: "An update is said to have passed its gates, which its pair does not give." },
    Case { name: "repair-update-tried-against-another-model", rule: Some("repair"), story: &LEARNT,
           told: |tale| {
               let old = tale.place("wf.run_started", repaired::SHOWN + 1);
               tale.world.items[old].body["data"]["executor_model"] = "simulator/1 seed 8".into();
               tale.changed("meta.validated", 0, |_| ())
           },
           done: "The run without an update was answered by another model than the run with it." },
    Case { name: "repair-update-tried-against-a-run-cut-short", rule: Some("repair"), story: &LEARNT,
           told: |tale| {
               let old = tale.place("wf.stopped", repaired::SHOWN + 1);
               tale.world.items[old].body["data"]["reason"] = "person".into();
               tale.changed("meta.validated", 0, |_| ())
           },
           done: "A person ended the run without an update, and the validation takes it for a run that failed." },
    Case { name: "repair-update-tried-on-its-own-tasks", rule: Some("repair"), story: &LEARNT,
           told: |tale| {
               let items = tale.data("wf.run_started", 0)["items"].clone();
               let inputs = tale.data("wf.run_started", 0)["inputs"].clone();
               tale.changed("wf.run_started", repaired::SHOWN, |data| {
                   data["items"] = items;
                   data["inputs"] = inputs;
               })
           },
           done: "An update is tried on a task that it was made from." },
    Case { name: "repair-from-a-template-that-no-library-has", rule: Some("repair"), story: &LEARNT,
           told: |tale| tale.changed("wf.run_started", repaired::SHOWN, |data| {
               data["templates"] = json!([data["verifier_digest"]]);
           }),
           done: "A run on which a verifier is tried takes that verifier for a template to begin from." },
    Case { name: "repair-by-an-update-that-failed", rule: Some("repair"), story: &LEARNT,
           told: |tale| {
               let mut data = tale.data("wf.run_started", repaired::SHOWN);
               data.as_object_mut().unwrap().remove("update");
               data["part"] = "deploy".into();
               data["run"] = "later".into();
               data["items"][0]["input"] = data["truth"].clone();
               data["seed"] = seed_of(&tale.world, "later").to_hex().into();
               let at = tale.world.items.len();
               tale.said(at, ADA, "wf.run_started", data)
           },
           done: "A run begins with a verifier that did not pass its validation." },
    Case { name: "good-repairs-in-sixteen-cells", rule: None, story: &CROSSED,
           told: |tale| tale.world.items.len() - 1,
           done: "Nothing. The same tasks were repaired in sixteen cells, as a plan said before, and no claim holds." },
    Case { name: "repair-cell-left-out", rule: Some("repair"), story: &CROSSED,
           told: |tale| {
               let at = tale.cut("utility.recorded", repaired::SHOWN + 31);
               tale.said_instead(at, BEN, "meta.concluded", 0)
           },
           done: "A plan is concluded before the truth of its last run is known." },
    Case { name: "repair-cell-of-choice", rule: Some("repair"), story: &CROSSED,
           told: |tale| tale.changed("wf.run_started", repaired::SHOWN + 1, |data| {
               data["cell"]["executor"] = "strong".into();
           }),
           done: "A run of a plan has a stronger executor than its cell." },
    Case { name: "repair-cells-on-the-tasks-of-others", rule: Some("repair"), story: &CROSSED,
           told: |tale| {
               let first = tale.data("wf.run_started", repaired::SHOWN);
               tale.changed("wf.run_started", repaired::SHOWN + 16, |data| {
                   data["items"] = first["items"].clone();
                   data["inputs"] = first["inputs"].clone();
               })
           },
           done: "One task of a plan is counted as two." },
    Case { name: "repair-cells-under-other-terms", rule: Some("repair"), story: &CROSSED,
           told: |tale| tale.changed("wf.run_started", repaired::SHOWN + 9, |data| {
               data["terms"]["beam"] = 4.into();
           }),
           done: "A run of a plan keeps more candidates than the runs that it stands against." },
    Case { name: "repair-cells-opened-out-of-order", rule: Some("repair"), story: &CROSSED,
           told: |tale| {
               let at = tale.cut("wf.run_started", repaired::SHOWN + 2);
               tale.said_instead(at, ADA, "wf.run_started", repaired::SHOWN + 3)
           },
           done: "A cell of a plan is passed over." },
    Case { name: "repair-cells-executed-before-all-are-opened", rule: Some("repair"), story: &CROSSED,
           told: |tale| {
               let at = tale.cut("wf.run_started", repaired::SHOWN + 31);
               tale.said_instead(at, RUNNER_2, "wf.executed", repaired::SHOWN * 2)
           },
           done: "A run of a plan is executed while the items of the last one can still be chosen." },
    Case { name: "repair-plan-over-runs-that-stand", rule: Some("repair"), story: &CROSSED,
           told: |tale| {
               let mut late = tale.data("wf.run_started", 0);
               late["run"] = "late-t1-c1".into();
               late["items"][0]["input"] = late["truth"].clone();
               late["seed"] = seed_of(&tale.world, "late-t1-c1").to_hex().into();
               let at = tale.cut("meta.planned", 0);
               tale.said(at, ADA, "wf.run_started", late);
               let mut plan = tale.data("meta.planned", 0);
               plan["plan"] = "late".into();
               tale.said(at + 1, ADA, "meta.planned", plan)
           },
           done: "A plan names a run that was opened before it." },
    Case { name: "repair-plan-of-one-claim", rule: Some("repair"), story: &CROSSED,
           told: |tale| tale.changed("meta.planned", 0, |data| {
               data["claims"][1] = data["claims"][0].clone();
           }),
           done: "A plan names one claim twice, and leaves another out of the family." },
    Case { name: "repair-claim-made-to-hold", rule: Some("repair"), story: &CROSSED,
           told: |tale| tale.changed("meta.concluded", 0, |data| {
               data["claims"][2]["gate"]["log_wealth"] = 9.into();
               data["claims"][2]["gate"]["reached"] = true.into();
               data["claims"][2]["log_closed"] = 8.into();
               data["claims"][2]["holds"] = true.into();
           }),
           done: "A claim of a plan is said to hold, and its runs give another number." },
];

/// The seed of a run in the experiment of a story.
fn seed_of(world: &World, run: &str) -> Digest {
    let mut all = world.items.iter();
    let registered = all.find(|item| item.body["kind"] == "experiment.registered");
    let body = canon::to_bytes(&registered.unwrap().body).unwrap();
    let mut bytes = b"clover/wf/seed/v1\0".to_vec();
    bytes.extend_from_slice(Digest::sha256(&body).as_bytes());
    bytes.extend_from_slice(run.as_bytes());
    Digest::sha256(&bytes)
}

/// Who says what of a run.
fn author(payload: &Payload) -> u8 {
    match payload.kind().signers() {
        Signers::Role(Role::Optimizer) => RUNNER,
        Signers::Role(Role::Verifier) => RUNNER_3,
        Signers::Role(Role::Arbiter) => BEN,
        Signers::Role(Role::Scorer) => RUNNER_2,
        Signers::Role(Role::Custodian) => CLEO,
        Signers::Role(Role::MetaOptimizer) => PETRA,
        _ => ADA,
    }
}

struct Narrator(Teller);

impl Speaker for Narrator {
    fn ledger(&self) -> &Ledger {
        self.0.ledger()
    }

    fn say(&mut self, payloads: Vec<Payload>, blobs: Vec<Vec<u8>>) {
        for bytes in blobs {
            self.0.blob(bytes, "application/jsonl");
        }
        for payload in payloads {
            let of: ExperimentId = EXPERIMENT.parse().unwrap();
            let (who, kind) = (author(&payload), payload.kind().as_str());
            self.0
                .say_all(who, vec![(kind, Command::new(payload, Some(of)))]);
        }
    }
}

fn begun() -> Narrator {
    let mut teller = Teller::begin();
    // Before the keys: the seed of everything that is drawn hangs on it.
    teller.say_in(ADA, "registered", planned::experiment_registered());
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-vera", RUNNER_3, "Vera", Role::Verifier),
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-petra", PETRA, "Petra", Role::MetaOptimizer),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    Narrator(teller)
}

/// One run, whole.
static RUN: LazyLock<Story> = LazyLock::new(|| {
    let mut narrator = begun();
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    let how = ((RUNNER, RUNNER_3), "deploy", None);
    repaired::tell_run(&mut narrator, &of, (repaired::RUN, &Tasks::own()), how);
    narrator.0.finish()
});

/// Runs that pass in vain, and what the outer loop makes of them.
static LEARNT: LazyLock<Story> = LazyLock::new(|| {
    let mut narrator = begun();
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    repaired::tell_learning(&mut narrator, &of, (RUNNER, RUNNER_3));
    narrator.0.finish()
});

/// Runs that pass in vain, and a plan of sixteen cells over the update that they call for.
static CROSSED: LazyLock<Story> = LazyLock::new(|| {
    let mut narrator = begun();
    let of: ExperimentId = EXPERIMENT.parse().unwrap();
    repaired::tell_crossed(&mut narrator, &of, (RUNNER, RUNNER_3));
    narrator.0.finish()
});

/// A ledger with runs.
struct Tale {
    world: World,
    whole: World,
}

impl Tale {
    fn place_in(world: &World, kind: &str, nth: usize) -> usize {
        let all = world.items.iter().enumerate();
        let mut of = all.filter(|(_, item)| item.body["kind"] == kind);
        of.nth(nth).unwrap().0
    }

    fn place(&self, kind: &str, nth: usize) -> usize {
        Self::place_in(&self.world, kind, nth)
    }

    fn data(&self, kind: &str, nth: usize) -> Value {
        let at = Self::place_in(&self.whole, kind, nth);
        self.whole.items[at].body["data"].clone()
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

    /// The first run of an update is executed before the second is opened, under a rulebook that is adopted first.
    fn tried_early(&mut self, rulebook: Option<u64>) -> usize {
        let opened = self.place("wf.run_started", repaired::SHOWN + 1);
        let mut later = self.world.items[opened..].iter();
        let executed = later
            .find(|item| item.body["kind"] == "wf.executed")
            .unwrap();
        let executed = executed.body["data"].clone();
        self.world.items.truncate(opened);
        if let Some(version) = rulebook {
            tampered_chosen::adopt(&mut self.world, version);
        }
        let at = self.world.items.len();
        self.said(at, RUNNER_2, "wf.executed", executed)
    }

    /// Says what the honest history says later.
    fn said_instead(&mut self, at: usize, who: u8, kind: &str, nth: usize) -> usize {
        let data = self.data(kind, nth);
        self.said(at, who, kind, data)
    }

    /// The second of two worths of the same output.
    fn worths_of_equal_outputs(&self) -> usize {
        let items = &self.whole.items;
        let of = |kind: &'static str| {
            let all = items.iter().filter(move |item| item.body["kind"] == kind);
            all.map(|item| item.body["data"].clone())
                .collect::<Vec<_>>()
        };
        let executed = of("wf.executed");
        let output = |candidate: &Value| {
            let mut all = executed.iter();
            let first = all.find(|data| data["candidate"] == *candidate && data["rerun"] == 0);
            first.unwrap()["output"].clone()
        };
        let outputs = of("utility.recorded");
        let outputs: Vec<Value> = outputs
            .iter()
            .map(|data| output(&data["candidate"]))
            .collect();
        let mut all = outputs.iter().enumerate();
        let (at, _) = all
            .find(|(at, output)| outputs[..*at].contains(output))
            .unwrap();
        at
    }

    /// The optimizer's key may read what is right too.
    fn two_roles(&mut self) {
        for item in &mut self.world.items {
            if item.body["data"]["holder"] == "Opal" {
                item.body["data"]["roles"] = json!(["custodian", "optimizer"]);
            }
        }
    }
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let told = CASES.iter().map(|case| {
        let mut tale = Tale {
            world: World::of(&case.story.lines),
            whole: World::of(&case.story.lines),
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
