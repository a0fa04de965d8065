//! Samples whose numbers are computed.
//!
//! The stories say what statistics would be needed, with numbers of nobody's: enough for whatever a rule holds, and not for
//! `clover verify --recompute`. Here a history gets rows, labels and anchors, and each number that the program computes
//! again is what it computes from them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clover::event::Kind;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::scoring::JudgeRegistered;
use clover::ground::digest::Digest;
use clover::ground::sign::Signer;
use clover::num::Count;
use clover::workflow::recompute::RecomputeCache;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::computed_rows as rows;
use super::computed_rows::Faults;
use super::computed_telling::Log;
use super::computed_telling::Reteller;
use super::computed_telling::differences;
use super::computed_telling::label_output;
use super::computed_telling::recipient;
use super::decided;
use super::deployed;
use super::forger;
use super::forger::Item;
use super::forger::Sealer;
use super::forger::World;
use super::iterated;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_picked;
use super::verifiers::Case;

/// Clusters whose labels are shown between two looks.
const LOOK_EVERY: usize = 16;

/// Samples that are told with numbers of nobody's, and of which each is given to auditors with rows.
pub const COMPUTED: &[&str] = &[
    "asked-under-another-protocol-unasked",
    "confirm-row-without-score-unasked",
    "confirm-scored-after-unsealing-unasked",
    "environment-left-out-unasked",
    "good-calibrated",
    "good-confirm",
    "good-confirm-scored-before",
    "good-decision",
    "good-deployment",
    "good-evaluated",
    "good-generator",
    "good-judge-asked-anew",
    "good-judge-told-runs",
    "good-patch-paid-from-the-first-account",
    "good-patches-paid",
    "good-peek-judged",
    "good-protocol-replaced",
    "good-release",
    "good-report",
    "good-rolled-back-after-conflict",
    "good-sealed-after-an-auditor-became-an-optimizer",
    "good-sealed-after-an-auditor-read",
    "good-sequence",
    "good-synthesis",
    "good-synthesis-by-a-model",
    "good-tainted-peek-judged",
    "patch-accepted-unpaid-unasked",
    "patch-paid-from-a-second-account-unasked",
    "peek-ended-as-tainted-unasked",
    "peek-from-another-account-unasked",
    "peek-left-unjudged-unasked",
    "rescored-from-old-answers-unasked",
    "sealed-after-a-retired-optimizer-read-unasked",
    "sealed-after-opening-unasked",
];

/// A sample whose report is not the one that its rulebook asks for: who writes it again finds that.
pub const HIDES: &str = "report-hides-what-p6-found";

/// Where that report first differs from the one that is written again.
pub const DIFFERING: &str = "assumptions_digest";

/// Samples under a rulebook that did not ask, where the numbers themselves say what is wrong.
const FOUND_AGAIN: &[&str] = &[
    "environment-left-out-unasked",
    "judges-compared-by-tainted-labels-unasked",
    "rescored-from-old-answers-unasked",
];

/// Tells samples with rows where they are to be computed again; once in a process.
pub fn mend(samples: &mut [Sample]) {
    static TOLD: OnceLock<BTreeMap<&str, Case>> = OnceLock::new();
    let told = TOLD.get_or_init(|| {
        let known = known();
        let known: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
        let of = samples.iter();
        let of = of.filter(|sample| COMPUTED.contains(&sample.name) || sample.name == HIDES);
        let each = of.map(|sample| {
            let lines = sample.case.ledger.split(|byte| *byte == b'\n');
            let lines: Vec<Vec<u8>> = lines
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            let mut computed = told(&World::of(&lines), &known);
            if sample.name == HIDES {
                computed.report_as(&told(&tampered_picked::reported(20), &known));
            }
            let forged = Sample::forged(sample.name, sample.done, &computed.world, sample.first);
            let case = Case {
                blobs: Some(computed.blobs),
                ..forged.case
            };
            (sample.name, case)
        });
        each.collect()
    });
    for sample in samples {
        if let Some(case) = told.get(sample.name) {
            sample.case = case.clone();
        }
    }
}

/// What is found in a sample that holds once its numbers are computed again.
pub fn found_again(name: &str) -> Option<&'static str> {
    FOUND_AGAIN.contains(&name).then_some("recompute")
}

/// Blobs that the stories name.
fn known() -> Vec<Vec<u8>> {
    vec![
        super::released::told(),
        super::tampered_synths::answer(),
        super::tampered_retold::told_text(),
        super::tampered_retold::patched_text(),
        super::valued::MODEL.to_vec(),
        super::valued::ROWS.to_vec(),
    ]
}

/// A history with its blobs.
pub struct ComputedWorld {
    pub world: World,
    pub blobs: BTreeMap<String, Vec<u8>>,
}

impl ComputedWorld {
    /// Publishes the report that another history ends with.
    fn report_as(&mut self, other: &Self) {
        let data = |of: &Self| of.world.items.last().unwrap().body["data"].clone();
        let (own, given) = (data(self), data(other));
        let name = |data: &Value| data["bundle"]["blake3"].as_str().unwrap().to_owned();
        self.blobs.remove(&name(&own));
        let (name, item) = (name(&given), self.world.items.last_mut().unwrap());
        self.blobs.insert(name.clone(), other.blobs[&name].clone());
        item.body["data"] = given;
    }
}

/// The plan of a story, with sizes and bounds that few rows can meet.
fn plan_of(story: &Value) -> Value {
    let mut plan = story.clone();
    let sequential = plan["iteration"]["confirm_test"] == "sequential";
    let terms = json!({
        "confirm_rows": if sequential { 48 } else { 72 }, "confirm_test": if sequential { "sequential" } else { "t" },
        "dev_rows": 48, "difference_sd_micro": 50_000, "effect_micro": 50_000, "fit_rows": if sequential { 40 } else { 56 },
        "ks_max_micro": 1_000_000, "slice_rows_min": 4, "w1_max_micro": 500_000,
    });
    for (name, value) in terms.as_object().unwrap() {
        plan["iteration"][name] = value.clone();
    }
    if sequential {
        plan["iteration"]["sequential"]["look_every"] = LOOK_EVERY.into();
    }
    let cell = |slice: &str, stakes: u64, from: u64, below: u64| {
        json!({
            "conditions": [{"at_least_micro": from, "below_micro": below, "field": "tokens"}],
            "must_not_regress": stakes > 500_000, "slice": slice, "stakes_micro": stakes,
        })
    };
    plan["iteration"]["design"]["slices"][0]["cells"] = json!([
        cell("short", 300_000, 0, 200_000_000),
        cell("long", 600_000, 200_000_000, 400_000_000),
    ]);
    let whole = json!({"cells": [cell("all", 300_000, 0, 900_000_000)], "family": "whole"});
    let slices = plan["iteration"]["design"]["slices"]
        .as_array_mut()
        .unwrap();
    slices.push(whole);
    plan
}

/// The plan that a story opens its iteration on.
fn story_plan(world: &World) -> Value {
    let opened = &world.items[position(world, "iteration.opened")].body["data"];
    let mut said = world.items.iter().map(|item| &item.body["data"]);
    let is_it = |data: &&Value| data["manifest"].is_object() && data["digest"] == opened["digest"];
    said.find(is_it).expect("a plan of the story")["manifest"].clone()
}

/// A story told with rows, and with the numbers that follow from them.
pub fn told(story: &World, blobs: &[&[u8]]) -> ComputedWorld {
    let keys: BTreeMap<String, Signer> = forger::keys();
    let old = story_plan(story);
    let plan = plan_of(&old);
    let is_of_both = |item: &Item| item.body["data"]["patch"] == "len-cite-guard-003";
    let faults = if story.items.iter().any(is_of_both) {
        Faults::Both
    } else {
        Faults::Length
    };
    let seed = 7;
    let (answers, parts) = rows::answers(faults, seed);
    let split = split::events(
        &"split-1".parse().unwrap(),
        Count::new(seed).unwrap(),
        Apart::Hashed,
        &parts,
    );
    let opened_at = position(story, "iteration.opened");
    let is_scorer = story.items[..opened_at]
        .iter()
        .any(|item| has_role(item, "scorer"));
    let is_labeler = story.items[..opened_at]
        .iter()
        .any(|item| has_role(item, "labeler"));
    let mut telling = Reteller {
        log: Log::default(),
        sealing: Sealer::new(&keys),
        world: World::of(&[]),
        cache: RecomputeCache::default(),
        swapped: BTreeMap::new(),
        through: [None; 2],
        plan,
        judge: None,
        told: None,
        scorer: if is_scorer { RUNNER_2 } else { STELLA },
        answers,
        split,
        tells_fits: story.items.iter().any(is_fit),
        fitted: BTreeMap::new(),
        iteration: None,
        replayed: None,
        hidden: Vec::new(),
        made: 0,
    };
    for blob in blobs {
        telling
            .log
            .blobs
            .insert(Digest::blake3(blob), blob.to_vec());
    }
    let registered =
        [&old, &telling.plan].map(|plan| serde_json::to_value(planned::registered(plan)).unwrap());
    differences(&registered[0], &registered[1], &mut telling.swapped);
    let is_late = |item: &Item| item.body["kind"] == "label.sealed";
    let mut tale = Tale {
        story,
        opened_at,
        registered,
        is_labeler,
        is_late: story.items[opened_at..].iter().any(is_late),
        is_scorer,
        charge: String::new(),
        places: Vec::new(),
    };
    for (at, item) in story.items.iter().enumerate() {
        tale.places.push(telling.size());
        if item.body["kind"] == "iteration.opened" && at > opened_at {
            // No prompts are left that were not split.
            break;
        }
        let Some(item) = tale.changed(&mut telling, at, item.clone()) else {
            continue;
        };
        tale.places[at] = telling.size();
        let kind = item.body["kind"].as_str().unwrap().to_owned();
        let was = item.was.clone();
        let id = telling.tell(item);
        telling.swapped.insert(was, id.clone());
        tale.followed(&mut telling, &kind, id);
    }
    let named = |digest: &Digest| {
        let hex = digest.to_hex();
        let mut items = telling.world.items.iter();
        items.any(|item| item.body["data"].to_string().contains(&hex))
    };
    let blobs = telling.log.blobs.iter();
    let blobs = blobs.filter(|(digest, _)| named(digest));
    ComputedWorld {
        blobs: blobs
            .map(|(digest, bytes)| (digest.to_hex(), bytes.clone()))
            .collect(),
        world: telling.world,
    }
}

/// A story that is told anew.
struct Tale<'a> {
    story: &'a World,
    /// Where its iteration opens.
    opened_at: usize,
    /// Its plan as it registers it, and as it is registered now.
    registered: [Value; 2],
    /// Whether somebody labels, seals late and scores in it.
    is_labeler: bool,
    is_late: bool,
    is_scorer: bool,
    /// The newest charge.
    charge: String,
    /// Where each of its events stands now.
    places: Vec<u64>,
}

impl Tale<'_> {
    /// An event of the story with what is otherwise in it now, after what has to come before it; `None` where it is left out.
    fn changed(&self, telling: &mut Reteller<'_>, at: usize, mut item: Item) -> Option<Item> {
        let kind = item.body["kind"].as_str().unwrap().to_owned();
        match kind.as_str() {
            "key.added" if item.body["data"]["holder"] == "Cleo" => {
                item.body["data"]["seal_recipient"] = json!(recipient());
            }
            "experiment.registered" if !self.is_labeler => {
                let lena = key_added(&signer(LENA), "Lena", true, &[Role::Labeler]);
                telling.add(ADA, false, &lena.into());
                if !self.is_scorer {
                    let runa = key_added(&signer(STELLA), "Runa", true, &[Role::Scorer]);
                    telling.add(ADA, false, &runa.into());
                }
            }
            // She was there before.
            "key.added" if !self.is_labeler && has_role(&item, "labeler") => return None,
            "score.recorded" if is_of_told(&item, telling.told.as_ref()) => return None,
            "judge.registered" if telling.judge.is_none() => {
                let said = serde_json::from_value(item.body["data"].clone()).unwrap();
                telling.judge = Some(said);
            }
            "anchor_set.registered" => {
                telling.register_judge();
                item.body["data"] = serde_json::to_value(rows::anchor_set()).unwrap();
            }
            "manifest.registered" if item.body["data"] == self.registered[0] => {
                item.body["data"] = self.registered[1].clone();
            }
            "splits.listed" => return None,
            "splits.formed" => {
                let new = telling.split.last().cloned().unwrap();
                let new = serde_json::to_value(new).unwrap();
                differences(&item.body["data"], &new, &mut telling.swapped);
                telling.rows();
                return None;
            }
            "label.design_registered" | "label.sealed" | "seal.accepted" if at < self.opened_at => {
                return None;
            }
            "label.sealed" => {
                let mut all = telling.answers.iter().rev();
                let last = all.find(|of| of.part == Some(SplitPart::Confirm)).unwrap();
                let [sealed, _] = last.sealed(&recipient());
                item.body["data"] = serde_json::to_value(sealed).unwrap();
            }
            "iteration.opened" if at == self.opened_at => {
                telling.labels(self.is_late);
                let quarter = item.body["data"]["quarter"].as_str().unwrap().to_owned();
                let iteration = item.body["data"]["iteration"].as_str().unwrap().to_owned();
                let opened = iterated::opened(&telling.plan, &iteration, &quarter);
                let opened = serde_json::to_value(opened).unwrap();
                differences(&item.body["data"], &opened, &mut telling.swapped);
                item.body["data"] = opened;
                telling.iteration = Some(iteration.parse().unwrap());
            }
            "label.revealed" => {
                let follows = self.story.items.get(at + 1).map(|of| &of.body["kind"]);
                if follows.is_none_or(|of| of != "label.revealed") {
                    let more = self.story.items[at..].iter();
                    let looks = more
                        .filter(|of| of.body["kind"] == "confirm.looked")
                        .count();
                    let rest = self.story.items[at..]
                        .iter()
                        .any(|of| of.body["kind"] == "gate.evaluated");
                    let most = if looks == 0 && rest {
                        usize::MAX
                    } else {
                        LOOK_EVERY
                    };
                    telling.show(most, &self.charge);
                }
                return None;
            }
            "patch.accepted" => {
                let candidate = item.body["data"]["candidate"].clone();
                let mut gates = telling.world.items.iter().map(|of| &of.body["data"]);
                let p8 = gates.find(|of| of["gate"] == "p8" && of["candidate"] == candidate);
                let improve = p8.unwrap()["evidence"]["p8"]["risk_improve"].clone();
                item.body["data"]["risk_improve"] = improve;
            }
            "review.recorded" => move_to(&mut item.body["data"], &self.places),
            "prompt.committed" => {
                let old = item.body["data"]["proof"]["index"].as_u64().unwrap();
                let new = self.places[usize::try_from(old).unwrap()];
                item.body["data"]["proof"] = json!({"index": new, "size": new + 1});
            }
            "deployment.activated" if !telling.tells_fits => {
                let of = if item.body["data"]["previous"].is_string() {
                    telling.fitted.iter().find(|(of, _)| of.is_some())
                } else {
                    telling.fitted.get_key_value(&None)
                };
                item.body["data"]["versions"]["calibrator"] = json!(of.unwrap().1);
            }
            "generator.run_opened" => {
                item.body["data"]["calibrator"] = json!(telling.fitted[&None]);
            }
            "generator.objective_queried" => telling.outputs("ab-1"),
            "label.design_registered" if item.body["data"]["design"] == "ab-2" => {
                telling.outputs("ab-2");
            }
            "label.recorded" => label_output(&mut item.body["data"]),
            "guardrail.checked" => {
                let data = &mut item.body["data"];
                move_to(&mut data["window"], &self.places);
                let window = ["from_seq", "through_seq"].map(|name| data["window"][name].as_u64());
                let [Some(from), Some(through)] = window else {
                    unreachable!("a window");
                };
                let deployment = data["deployment"].as_str().unwrap();
                let window = (from, through);
                let again = deployed::checked(&telling.plan, deployment, &data["evidence"], window);
                *data = serde_json::to_value(again).unwrap();
            }
            "report.published" => {
                let report = telling.report();
                item.body["data"] = serde_json::to_value(report).unwrap();
            }
            "dev.objective_queried" => {
                let data = &mut item.body["data"];
                let is_it = |of: &Payload| json!(decided::patch_of(of).0) == data["candidate"];
                let patch = decided::patches().into_iter().find(is_it);
                let Some(Payload::PatchProposed(patch)) = patch else {
                    unreachable!("a patch of the story");
                };
                telling.ask(&patch, data);
            }
            _ => {}
        }
        if kind == "gate.evaluated" {
            let candidate = item.body["data"]["candidate"].as_str().unwrap();
            telling.fit_unless_told(Some(Digest::from_hex(candidate).unwrap()));
        }
        Some(item)
    }

    /// What comes right after an event.
    fn followed(&mut self, telling: &mut Reteller<'_>, kind: &str, id: String) {
        match kind {
            "judge.registered" if telling.last_judge().is_some_and(|of| of.of.is_some()) => {
                telling.told = telling.last_judge();
                telling.answer_anew(false);
            }
            "iteration.opened" => {
                let replayed = telling.replayed.take().unwrap();
                telling.add(telling.scorer, true, &replayed);
                if !tells(self.story, "label_process.audited") {
                    let event = telling.before(Kind::LabelProcessAudited);
                    telling.add(BEN, true, &event);
                    telling.fit_unless_told(None);
                }
            }
            "label_process.audited" => telling.fit_unless_told(None),
            "candidates.sealed" => {
                telling.draw();
                telling.answer_anew(true);
            }
            "budget.charged" => self.charge = id,
            "confirm.unsealed" if !telling.is_sequential() => {
                telling.show(usize::MAX, &self.charge);
            }
            _ => {}
        }
    }
}

/// Entries that an event names by their places.
fn move_to(data: &mut Value, places: &[u64]) {
    for name in ["from_seq", "through_seq"] {
        let old = usize::try_from(data[name].as_u64().unwrap()).unwrap();
        data[name] = places[old].into();
    }
}

fn tells(story: &World, kind: &str) -> bool {
    story.items.iter().any(|item| item.body["kind"] == kind)
}

/// A calibrator of an iteration.
fn is_fit(item: &Item) -> bool {
    item.body["kind"] == "calibrator.fitted" && item.body["data"]["iteration"].is_object()
}

fn is_of_told(item: &Item, told: Option<&JudgeRegistered>) -> bool {
    let said = &item.body["data"]["judge"];
    told.is_some_and(|of| *said == *of.judge.as_str())
}

fn has_role(item: &Item, role: &str) -> bool {
    let roles = item.body["data"]["roles"].as_array();
    item.body["kind"] == "key.added" && roles.is_some_and(|all| all.contains(&role.into()))
}

fn position(story: &World, kind: &str) -> usize {
    let mut items = story.items.iter();
    items.position(|item| item.body["kind"] == kind).unwrap()
}
