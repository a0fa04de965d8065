//! Samples whose numbers are computed.
//!
//! The stories say what statistics would be needed, with numbers of nobody's: enough for whatever a rule holds, and not for
//! `clover verify --recompute`. Here a history gets rows, labels and anchors, and each number that the program computes
//! again is what it computes from them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use clover::event::Event;
use clover::event::Kind;
use clover::event::Payload;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::IterationId;
use clover::event::id::SealRecipient;
use clover::event::payload::Role;
use clover::event::payload::gate::DrawnFrom;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::scoring::JudgeRegistered;
use clover::ground::digest::Digest;
use clover::ground::seal::Identity;
use clover::ground::sign::Signer;
use clover::ledger::History;
use clover::ledger::LedgerError;
use clover::num::Count;
use clover::projection::iterations::record::IterationRecord;
use clover::projection::iterations::record::Records;
use clover::projection::orders;
use clover::workflow::estimate::rows::NoCovariates;
use clover::workflow::iterate::course::Course;
use clover::workflow::recompute;
use clover::workflow::recompute::Context;
use clover::workflow::recompute::RecomputeCache;
use clover::workflow::split;
use clover::workflow::split::Apart;
use serde_json::Value;
use serde_json::json;

use super::computed_rows as rows;
use super::computed_rows::Answer;
use super::computed_rows::Faults;
use super::decided;
use super::deployed;
use super::forger;
use super::forger::Item;
use super::forger::Sealing;
use super::forger::World;
use super::iterated;
use super::planned;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::verifiers::Case;

/// Clusters whose labels are shown between two looks.
const LOOK_EVERY: usize = 16;

/// What was said so far, to compute from.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl History for Log {
    fn events(
        &self,
        from: u64,
        to: u64,
        take: &mut dyn FnMut(u64, &Event) -> ControlFlow<()>,
    ) -> Result<(), LedgerError> {
        for (seq, event) in (0..).zip(&self.events) {
            if (from..to).contains(&seq) && take(seq, event).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.blobs.get(digest).cloned())
    }
}

/// Samples that are told with numbers of nobody's, and of which each is given to auditors with rows.
const COMPUTED: &[&str] = &[
    "asked-under-another-protocol-unasked",
    "environment-left-out-unasked",
    "good-calibrated",
    "good-confirm",
    "good-decision",
    "good-deployment",
    "good-evaluated",
    "good-patches-paid",
    "good-peek-judged",
    "good-protocol-replaced",
    "good-release",
    "good-rolled-back-after-conflict",
    "good-sequence",
    "good-tainted-peek-judged",
    "patch-accepted-unpaid-unasked",
    "peek-ended-as-tainted-unasked",
    "peek-from-another-account-unasked",
    "peek-left-unjudged-unasked",
    "sealed-after-opening-unasked",
];

/// Samples under a rulebook that did not ask, where the numbers themselves say what is wrong.
const FOUND_AGAIN: &[&str] = &["environment-left-out-unasked"];

/// Tells samples with rows where they are to be computed again; once in a process.
pub fn mend(samples: &mut [Sample]) {
    static TOLD: OnceLock<BTreeMap<&str, Case>> = OnceLock::new();
    let told = TOLD.get_or_init(|| {
        let known = known();
        let known: Vec<&[u8]> = known.iter().map(Vec::as_slice).collect();
        let of = samples.iter().filter(|sample| COMPUTED.contains(&sample.name));
        let each = of.map(|sample| {
            let lines = sample.case.ledger.split(|byte| *byte == b'\n');
            let lines: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
            println!("telling {}", sample.name);
            let computed = told(&World::of(&lines), &known);
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
        decided::BUNDLE.to_vec(),
        super::released::told(),
        super::valued::MODEL.to_vec(),
        super::valued::ROWS.to_vec(),
    ]
}

/// A history with its blobs.
pub struct Computed {
    pub world: World,
    pub blobs: BTreeMap<String, Vec<u8>>,
}

/// A history that is told anew.
struct Telling<'k> {
    log: Log,
    sealing: Sealing<'k>,
    world: World,
    cache: RecomputeCache,
    /// Words of the story that are others now.
    swapped: BTreeMap<String, String>,
    /// What computations before confirm read, and those on confirm.
    through: [Option<u64>; 2],
    plan: Value,
    judge: Option<JudgeRegistered>,
    scorer: u8,
    answers: Vec<Answer>,
    split: Vec<Payload>,
    /// Whether the story fits calibrators itself, and those that are fitted.
    tells_fits: bool,
    fitted: BTreeMap<Option<Digest>, Digest>,
    iteration: Option<IterationId>,
    /// What comes of asking the judge again, once the iteration is open.
    replayed: Option<Payload>,
    /// Confirm clusters that are still to be shown, in order.
    hidden: Vec<ItemId>,
    made: u64,
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
    let slices = plan["iteration"]["design"]["slices"].as_array_mut().unwrap();
    slices.push(whole);
    plan
}

fn recipient() -> SealRecipient {
    SealRecipient(Identity::from_bytes(&[0xa0; 32]).recipient())
}

fn decoded(body: &Value) -> Event {
    let bytes = clover::ground::canon::to_bytes(body).unwrap();
    let decoded = clover::event::header::decode(&bytes).unwrap();
    decoded.into_event().unwrap()
}

/// Words of one value that another has in their place.
fn differences(old: &Value, new: &Value, found: &mut BTreeMap<String, String>) {
    match (old, new) {
        (Value::String(old), Value::String(new)) if old != new && old.len() >= 40 => {
            found.insert(old.clone(), new.clone());
        }
        (Value::Array(old), Value::Array(new)) => {
            for (old, new) in old.iter().zip(new) {
                differences(old, new, found);
            }
        }
        (Value::Object(old), Value::Object(new)) => {
            for (name, old) in old {
                if let Some(new) = new.get(name).filter(|_| name != "blake3") {
                    differences(old, new, found);
                }
            }
        }
        _ => {}
    }
}

fn swap(value: &mut Value, words: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(new) = words.get(text) {
                text.clone_from(new);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| swap(one, words)),
        Value::Object(all) => all.values_mut().for_each(|one| swap(one, words)),
        _ => {}
    }
}

/// Where an event says what it read.
fn inputs(data: &mut Value) -> Vec<&mut Value> {
    let Value::Object(members) = data else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, member) in members.iter_mut() {
        match (name.as_str(), &member) {
            ("through_seq", Value::Number(_)) => found.push(member),
            ("inputs" | "iteration", Value::Object(_)) => found.extend(inputs(member)),
            _ => {}
        }
    }
    found
}

impl Telling<'_> {
    fn size(&self) -> u64 {
        self.world.items.len() as u64
    }

    /// The next event, as it is.
    fn push(&mut self, item: Item) -> String {
        let bytes = self.sealing.push(&item);
        let decoded = clover::event::header::decode(&bytes).unwrap();
        self.log.events.push(decoded.into_event().unwrap());
        self.world.items.push(item);
        Digest::sha256(&bytes).to_hex()
    }

    /// An event that the story does not tell; its id.
    fn add(&mut self, who: u8, experiment: bool, payload: &Payload) -> String {
        let last = self.world.items.last().unwrap();
        let recorded_at = last.recorded_at;
        self.made += 1;
        let body = json!({
            "at": recorded_at.to_string(), "author": signer(who).id().to_string(), "author_seq": 0,
            "data": serde_json::to_value(payload).unwrap(),
            "experiment": if experiment { EXPERIMENT.into() } else { Value::Null },
            "kind": payload.kind().as_str(), "ledger": ORIGIN, "refs": [],
            "seen": {"root": Digest([0; 32]).to_base64(), "size": self.size()}, "v": payload.kind().version(),
        });
        let was = Digest::labelled("an event of the samples", &self.made.to_be_bytes()).to_hex();
        self.push(Item::new(body, recorded_at, was))
    }

    /// An event of the story, with what is computed of it now.
    fn tell(&mut self, mut item: Item) -> String {
        if !item.bound && item.body["seen"]["size"].is_u64() {
            item.body["seen"]["size"] = self.size().into();
        }
        swap(&mut item.body["data"], &self.swapped);
        let kind = item.body["kind"].as_str().unwrap().parse::<Kind>().unwrap();
        if recompute::ITERATIONS.kinds.contains(&kind) && !item.body["data"]["iteration"].is_null()
        {
            self.compute(kind, &mut item);
        }
        self.push(item)
    }

    fn compute(&mut self, kind: Kind, item: &mut Item) {
        let data = &mut item.body["data"];
        let seen = self.size() - 1;
        let of_confirm = usize::from(data["split"] == "confirm");
        let due = match kind {
            Kind::ConfirmLooked => seen,
            _ if data["inputs"].is_object() || data["iteration"]["inputs"].is_object() => {
                *self.through[of_confirm].get_or_insert(seen)
            }
            _ => seen,
        };
        for through in inputs(data) {
            *through = due.into();
        }
        if kind == Kind::CalibratorFitted {
            let candidate = data["terms"]["iteration"]["candidate"].as_str();
            let candidate = candidate.map(|of| Digest::from_hex(of).unwrap());
            let again = serde_json::to_value(self.fit(candidate)).unwrap();
            differences(&item.body["data"], &again, &mut self.swapped);
            item.body["data"] = again;
            return;
        }
        let event = decoded(&self.sealing.body(item));
        let mut nobody = NoCovariates;
        let mut context = Context::new(&self.log, &mut nobody, &mut self.cache);
        let (found, again) = context.replay(seen + 1, &event).unwrap().unwrap();
        let again = match again {
            Some(again) => serde_json::to_value(&again).unwrap(),
            None => self
                .unrecorded(&item.body["data"])
                .unwrap_or_else(|| panic!("{kind}: {found:?}")),
        };
        let mut again = again;
        let said = &item.body["data"];
        differences(said, &again, &mut self.swapped);
        if said["evidence"]["p6"]["environments"] == json!([]) {
            // This is what the sample is about.
            again["evidence"] = said["evidence"].clone();
            again["verdicts"] = said["verdicts"].clone();
        }
        if kind == Kind::GateEvaluated {
            let verdicts = again["verdicts"]["recommended"].as_str().unwrap();
            if !["pass", "not_checked"].contains(&verdicts) {
                println!("{kind}: {}", again["evidence"]);
            }
        }
        item.body["data"] = again;
    }

    /// Criterion P7 without a battery on record: as it was said, under the terms of the gate before it.
    fn unrecorded(&self, said: &Value) -> Option<Value> {
        let last = self.world.items.last()?;
        let mut gate = last.body["data"].clone();
        if said["gate"] != "p7" || gate["candidate"] != said["candidate"] {
            return None;
        }
        for name in ["evidence", "gate", "verdicts"] {
            gate[name] = said[name].clone();
        }
        Some(gate)
    }

    /// What the iteration computes of its rows.
    fn course(&mut self) -> (IterationRecord, Course) {
        let size = self.size();
        let iteration = self.iteration.as_ref().unwrap();
        let mut records = Records::default();
        let record = records.of(&self.log, iteration, size).unwrap().unwrap();
        let through = *self.through[0].get_or_insert(size - 1);
        let course = Course::through(&self.log, record, through).unwrap();
        (record.clone(), course)
    }

    /// An event before candidates.
    fn before(&mut self, kind: Kind) -> Payload {
        self.course().1.before(&[kind]).remove(0)
    }

    /// The calibrator of the rubric in force, or of a candidate.
    fn fit(&mut self, candidate: Option<Digest>) -> Payload {
        let (record, course) = self.course();
        let (event, blobs): (Payload, _) = match candidate {
            None => {
                let event = course.before(&[Kind::CalibratorFitted]).remove(0);
                (event, course.blobs().to_vec())
            }
            Some(hash) => {
                let patches = record.patches_of(hash).unwrap();
                let of = course.hypothesis(&self.log, &record, &patches).unwrap();
                let fitted = course.fitted(&of).unwrap().unwrap();
                (fitted.event.into(), fitted.blobs.to_vec())
            }
        };
        let blobs = blobs.into_iter();
        let named = blobs.map(|bytes| (Digest::blake3(&bytes), bytes));
        self.log.blobs.extend(named);
        let Payload::CalibratorFitted(said) = &event else {
            unreachable!("a fit");
        };
        self.fitted.insert(candidate, said.calibrator);
        event
    }

    /// Fits a calibrator, where the story fits none.
    fn fit_unless_told(&mut self, candidate: Option<Digest>) {
        if !self.tells_fits && !self.fitted.contains_key(&candidate) {
            let event = self.fit(candidate);
            self.add(BEN, true, &event);
        }
    }

    /// A judge, where the story registers none.
    fn register_judge(&mut self) {
        if self.judge.is_none() {
            let mut said = serde_json::to_value(decided::judge()).unwrap();
            said["judge"] = "judge-1".into();
            said["model"] = "m-1".into();
            self.judge = serde_json::from_value(said.clone()).unwrap();
            let event = planned::payload("judge.registered", &said);
            self.add(self.scorer, true, &event);
        }
    }

    /// Rows with their records, and the split of their prompts.
    fn rows(&mut self) {
        let judge = self.judge.clone().unwrap();
        let anchors = rows::anchors();
        let all: Vec<Answer> = self.answers.iter().chain(&anchors).cloned().collect();
        for answer in &all {
            self.add(self.scorer, true, &answer.score(&judge));
        }
        let ([evidence, replayed], bytes) = rows::recorded(&all, &judge);
        self.log.blobs.insert(Digest::blake3(&bytes), bytes);
        self.add(self.scorer, true, &evidence);
        self.replayed = Some(replayed);
        for event in self.split.clone() {
            self.add(BEN, true, &event);
        }
    }

    /// Open labels of fit and dev, and sealed ones of confirm but for the last if it comes late.
    fn labels(&mut self, late: bool) {
        for design in rows::designs() {
            self.add(LENA, true, &design);
        }
        let (confirm, open): (Vec<Answer>, Vec<Answer>) = self
            .answers
            .clone()
            .into_iter()
            .partition(|of| of.part == Some(SplitPart::Confirm));
        for answer in open {
            self.add(LENA, true, &answer.label());
        }
        let first = confirm.len() - usize::from(late);
        for answer in &confirm[..first] {
            for event in answer.sealed(&recipient()) {
                self.add(CLEO, true, &event);
            }
        }
    }

    fn answer(&self, item: &ItemId) -> Answer {
        let mut all = self.answers.iter();
        all.find(|of| of.item == *item).unwrap().clone()
    }

    /// The order in which a sequential test shows the confirm block, once its candidates are sealed.
    fn draw(&mut self) {
        let confirm = self.answers.iter();
        let confirm = confirm.filter(|of| of.part == Some(SplitPart::Confirm));
        self.hidden = confirm.map(|of| of.item.clone()).collect();
        let beacon = DrawnFrom {
            root: clover::event::id::Root(self.sealing.sealed.root()),
            size: Count::new(self.size()).unwrap(),
        };
        let Some(Payload::SplitsFormed(formed)) = self.split.last() else {
            unreachable!("a split is closed");
        };
        let seed = orders::seed(
            planned::manifest(&self.plan).digest(),
            formed.confirm.root,
            &beacon,
        );
        self.hidden
            .sort_by_cached_key(|item| orders::key(seed, item));
    }

    /// Shows some labels, in order.
    fn show(&mut self, most: usize, charge: &str) {
        let charge = EventId(Digest::from_hex(charge).unwrap());
        let most = most.min(self.hidden.len());
        let shown: Vec<ItemId> = self.hidden.drain(..most).collect();
        for item in shown {
            let event = self.answer(&item).shown(charge);
            self.add(CLEO, true, &event);
        }
    }
}

/// The plan that a story opens its iteration on.
fn story_plan(world: &World) -> Value {
    let opened = &world.items[position(world, "iteration.opened")].body["data"];
    let mut said = world.items.iter().map(|item| &item.body["data"]);
    let is_it = |data: &&Value| data["manifest"].is_object() && data["digest"] == opened["digest"];
    said.find(is_it).expect("a plan of the story")["manifest"].clone()
}

/// A story told with rows, and with the numbers that follow from them.
pub fn told(story: &World, blobs: &[&[u8]]) -> Computed {
    let keys: BTreeMap<String, Signer> = forger::keys();
    let old = story_plan(story);
    let plan = plan_of(&old);
    let sequential = plan["iteration"]["confirm_test"] == "sequential";
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
    let is_scorer = story.items[..opened_at].iter().any(|item| has_role(item, "scorer"));
    let mut telling = Telling {
        log: Log::default(),
        sealing: Sealing::new(&keys),
        world: World::of(&[]),
        cache: RecomputeCache::default(),
        swapped: BTreeMap::new(),
        through: [None; 2],
        plan,
        judge: None,
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
        telling.log.blobs.insert(Digest::blake3(blob), blob.to_vec());
    }
    let [before, after] = [&old, &telling.plan].map(|plan| {
        serde_json::to_value(planned::registered(plan)).unwrap()
    });
    differences(&before, &after, &mut telling.swapped);
    let is_late = |item: &Item| item.body["kind"] == "label.sealed";
    let late = story.items[opened_at..].iter().any(is_late);

    let mut charge = String::new();
    // Where each event of the story stands now.
    let mut places: Vec<u64> = Vec::new();
    for (at, item) in story.items.iter().enumerate() {
        let mut item = item.clone();
        places.push(telling.size());
        let kind = item.body["kind"].as_str().unwrap().to_owned();
        if kind == "iteration.opened" && at > opened_at {
            // No prompts are left that were not split.
            break;
        }
        match kind.as_str() {
            "key.added" if item.body["data"]["holder"] == "Cleo" => {
                item.body["data"]["seal_recipient"] = json!(recipient());
            }
            "experiment.registered" if !story.items.iter().any(|item| has_role(item, "labeler")) => {
                let lena = key_added(&signer(LENA), "Lena", true, &[Role::Labeler]);
                telling.add(ADA, false, &lena.into());
                if !is_scorer {
                    let runa = key_added(&signer(STELLA), "Runa", true, &[Role::Scorer]);
                    telling.add(ADA, false, &runa.into());
                }
            }
            "judge.registered" if telling.judge.is_none() => {
                let said = serde_json::from_value(item.body["data"].clone()).unwrap();
                telling.judge = Some(said);
            }
            "anchor_set.registered" => {
                telling.register_judge();
                item.body["data"] = serde_json::to_value(rows::anchor_set()).unwrap();
            }
            "manifest.registered" if item.body["data"] == before => {
                item.body["data"] = after.clone();
            }
            "splits.listed" => continue,
            "splits.formed" => {
                let new = telling.split.last().cloned().unwrap();
                let new = serde_json::to_value(new).unwrap();
                differences(&item.body["data"], &new, &mut telling.swapped);
                telling.rows();
                continue;
            }
            "label.design_registered" | "label.sealed" | "seal.accepted" if at < opened_at => {
                continue;
            }
            "label.sealed" => {
                let mut all = telling.answers.iter().rev();
                let last = all.find(|of| of.part == Some(SplitPart::Confirm)).unwrap();
                let [sealed, _] = last.sealed(&recipient());
                item.body["data"] = serde_json::to_value(sealed).unwrap();
            }
            "iteration.opened" if at == opened_at => {
                telling.labels(late);
                let quarter = item.body["data"]["quarter"].as_str().unwrap().to_owned();
                let iteration = item.body["data"]["iteration"].as_str().unwrap().to_owned();
                let opened = iterated::opened(&telling.plan, &iteration, &quarter);
                let opened = serde_json::to_value(opened).unwrap();
                differences(&item.body["data"], &opened, &mut telling.swapped);
                item.body["data"] = opened;
                telling.iteration = Some(iteration.parse().unwrap());
            }
            "label.revealed" => {
                let follows = story.items.get(at + 1).map(|of| &of.body["kind"]);
                if follows.is_none_or(|of| of != "label.revealed") {
                    let more = story.items[at..].iter();
                    let looks = more.filter(|of| of.body["kind"] == "confirm.looked").count();
                    let rest = story.items[at..].iter().any(|of| of.body["kind"] == "gate.evaluated");
                    let most = if looks == 0 && rest { usize::MAX } else { LOOK_EVERY };
                    telling.show(most, &charge);
                }
                continue;
            }
            "patch.accepted" => {
                let candidate = item.body["data"]["candidate"].clone();
                let mut gates = telling.world.items.iter().map(|of| &of.body["data"]);
                let p8 = gates.find(|of| of["gate"] == "p8" && of["candidate"] == candidate);
                let improve = p8.unwrap()["evidence"]["p8"]["risk_improve"].clone();
                item.body["data"]["risk_improve"] = improve;
            }
            "review.recorded" => move_to(&mut item.body["data"], &places),
            "prompt.committed" => {
                let old = item.body["data"]["proof"]["index"].as_u64().unwrap();
                let new = places[usize::try_from(old).unwrap()];
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
            "guardrail.checked" => {
                let data = &mut item.body["data"];
                move_to(&mut data["window"], &places);
                let window = ["from_seq", "through_seq"].map(|name| data["window"][name].as_u64());
                let [Some(from), Some(through)] = window else {
                    unreachable!("a window");
                };
                let deployment = data["deployment"].as_str().unwrap();
                let window = (from, through);
                let again =
                    deployed::checked(&telling.plan, deployment, &data["evidence"], window);
                *data = serde_json::to_value(again).unwrap();
            }
            "report.published" => item.body["data"]["through_seq"] = (telling.size() - 1).into(),
            "dev.objective_queried" => {
                for through in inputs(&mut item.body["data"]) {
                    *through = telling.through[0].unwrap().into();
                }
            }
            _ => {}
        }
        if kind == "gate.evaluated" {
            let candidate = item.body["data"]["candidate"].as_str().unwrap();
            telling.fit_unless_told(Some(Digest::from_hex(candidate).unwrap()));
        }
        places[at] = telling.size();
        let id = telling.tell(item);
        match kind.as_str() {
            "iteration.opened" => {
                let replayed = telling.replayed.take().unwrap();
                telling.add(telling.scorer, true, &replayed);
                if !tells(story, "label_process.audited") {
                    let event = telling.before(Kind::LabelProcessAudited);
                    telling.add(BEN, true, &event);
                    telling.fit_unless_told(None);
                }
            }
            "label_process.audited" => telling.fit_unless_told(None),
            "candidates.sealed" => telling.draw(),
            "budget.charged" => charge = id,
            "confirm.unsealed" if !sequential => telling.show(usize::MAX, &charge),
            _ => {}
        }
    }
    let named = |digest: &Digest| {
        let hex = digest.to_hex();
        let mut items = telling.world.items.iter();
        items.any(|item| item.body["data"].to_string().contains(&hex))
    };
    let blobs = telling.log.blobs.iter();
    let blobs = blobs.filter(|(digest, _)| named(digest));
    Computed {
        blobs: blobs
            .map(|(digest, bytes)| (digest.to_hex(), bytes.clone()))
            .collect(),
        world: telling.world,
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

fn has_role(item: &Item, role: &str) -> bool {
    let roles = item.body["data"]["roles"].as_array();
    item.body["kind"] == "key.added" && roles.is_some_and(|all| all.contains(&role.into()))
}

fn position(story: &World, kind: &str) -> usize {
    let mut items = story.items.iter();
    items.position(|item| item.body["kind"] == kind).unwrap()
}
