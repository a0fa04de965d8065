//! A history that is told anew, event by event, with what is computed of the events before.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clover::event::Event;
use clover::event::Kind;
use clover::event::Payload;
use clover::event::id::EventId;
use clover::event::id::ItemId;
use clover::event::id::IterationId;
use clover::event::id::SealRecipient;
use clover::event::payload::gate::DrawnFrom;
use clover::event::payload::generator::GeneratorValidated;
use clover::event::payload::intake::SplitPart;
use clover::event::payload::rubric::PatchProposed;
use clover::event::payload::scoring::JudgeRegistered;
use clover::ground::digest::Digest;
use clover::ground::seal::Identity;
use clover::ledger::History;
use clover::ledger::LedgerError;
use clover::num::Count;
use clover::projection::iterations::record::IterationRecord;
use clover::projection::iterations::record::Records;
use clover::projection::orders;
use clover::workflow::estimate::rows::NoCovariates;
use clover::workflow::generator;
use clover::workflow::guardrails;
use clover::workflow::iterate::course::Course;
use clover::workflow::patches::Bench;
use clover::workflow::recompute;
use clover::workflow::recompute::Context;
use clover::workflow::recompute::RecomputeCache;
use clover::workflow::synth::view;
use serde_json::Value;
use serde_json::json;

use super::computed_reports;
use super::computed_rows as rows;
use super::computed_rows::Answer;
use super::decided;
use super::forger;
use super::forger::Item;
use super::forger::Sealer;
use super::forger::World;
use super::planned;
use super::samples::*;
use super::signer;

/// What was said so far, to compute from.
#[derive(Default)]
pub struct Log {
    events: Vec<Event>,
    pub blobs: BTreeMap<Digest, Vec<u8>>,
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

/// A history that is told anew.
pub struct Reteller<'k> {
    pub log: Log,
    pub sealing: Sealer<'k>,
    pub world: World,
    pub cache: RecomputeCache,
    /// Words of the story that are others now.
    pub swapped: BTreeMap<String, String>,
    /// What computations before confirm read, and those on confirm.
    pub through: [Option<u64>; 2],
    pub plan: Value,
    pub judge: Option<JudgeRegistered>,
    /// The judge that is told what a patch changes.
    pub told: Option<JudgeRegistered>,
    pub scorer: u8,
    pub answers: Vec<Answer>,
    pub split: Vec<Payload>,
    /// Whether the story fits calibrators itself, and those that are fitted.
    pub tells_fits: bool,
    pub fitted: BTreeMap<Option<Digest>, Digest>,
    pub iteration: Option<IterationId>,
    /// What comes of asking the judge again, once the iteration is open.
    pub replayed: Option<Payload>,
    /// Confirm clusters that are still to be shown, in order.
    pub hidden: Vec<ItemId>,
    pub made: u64,
}

pub fn recipient() -> SealRecipient {
    SealRecipient(Identity::from_bytes(&[0xa0; 32]).recipient())
}

fn decoded(body: &Value) -> Event {
    let bytes = clover::ground::canon::to_bytes(body).unwrap();
    let decoded = clover::event::header::decode(&bytes).unwrap();
    decoded.into_event().unwrap()
}

/// Words of one value that another has in their place.
pub fn differences(old: &Value, new: &Value, found: &mut BTreeMap<String, String>) {
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

/// What an event of a history says, computed from the events before it.
pub fn recomputed(world: &World, at: usize) -> Value {
    let keys = forger::keys();
    let sealing = Sealer::new(&keys);
    let mut log = Log::default();
    for item in &world.items[..at] {
        log.events.push(decoded(&sealing.body(item)));
    }
    let event = decoded(&sealing.body(&world.items[at]));
    let (mut nobody, mut cache) = (NoCovariates, RecomputeCache::default());
    let mut context = Context::new(&log, &mut nobody, &mut cache);
    let (found, again) = context.replay(at as u64, &event).unwrap().unwrap();
    let again = again.unwrap_or_else(|| panic!("{at}: {found:?}"));
    serde_json::to_value(&again).unwrap()
}

impl Reteller<'_> {
    pub fn size(&self) -> u64 {
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
    pub fn add(&mut self, who: u8, experiment: bool, payload: &Payload) -> String {
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
    pub fn tell(&mut self, mut item: Item) -> String {
        if !item.bound && item.body["seen"]["size"].is_u64() {
            item.body["seen"]["size"] = self.size().into();
        }
        swap(&mut item.body["data"], &self.swapped);
        let kind = item.body["kind"].as_str().unwrap().parse::<Kind>().unwrap();
        let is_in = !item.body["data"]["iteration"].is_null();
        let is_live = kind.as_str().starts_with("generator.");
        if is_live && recompute::LIVE.kinds.contains(&kind)
            || is_in && recompute::ITERATIONS.kinds.contains(&kind)
        {
            self.compute(kind, &mut item);
        }
        if kind == Kind::GeneratorValidated {
            judge_again(&mut item.body["data"], &self.plan);
        }
        self.push(item)
    }

    fn compute(&mut self, kind: Kind, item: &mut Item) {
        let data = &mut item.body["data"];
        let seen = self.size() - 1;
        let of_confirm = usize::from(data["split"] == "confirm");
        let due = match kind {
            Kind::ConfirmLooked | Kind::GeneratorObjectiveQueried | Kind::GeneratorValidated => {
                seen
            }
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
        let mut again = match again {
            Some(again) => serde_json::to_value(&again).unwrap(),
            // Nothing follows from what this sample says it read.
            None if kind == Kind::ScoresRecomputed => item.body["data"].clone(),
            None => self
                .unrecorded(&item.body["data"])
                .unwrap_or_else(|| panic!("{kind}: {found:?}")),
        };
        let said = &item.body["data"];
        differences(said, &again, &mut self.swapped);
        if said["evidence"]["p6"]["environments"] == json!([]) {
            // This is what the sample is about.
            again["evidence"] = said["evidence"].clone();
            again["verdicts"] = said["verdicts"].clone();
        }
        if kind == Kind::GateEvaluated {
            let verdict = again["verdicts"]["recommended"].as_str().unwrap();
            assert_eq!(verdict, "pass", "{again:#}");
        }
        if kind == Kind::SynthAsked {
            let bytes = self.view(&again);
            self.log.blobs.insert(Digest::blake3(&bytes), bytes);
        }
        item.body["data"] = again;
    }

    /// The view that an optimizer was shown.
    fn view(&self, asked: &Value) -> Vec<u8> {
        let mut records = Records::default();
        let iteration = self.iteration.as_ref().unwrap();
        let record = records.of(&self.log, iteration, self.size());
        let record = record.unwrap().unwrap();
        let bench = Bench::recorded(record, BTreeSet::new()).unwrap();
        let through = asked["through_seq"].as_u64().unwrap();
        let shown = view::of(record, &bench, record.synths.last().unwrap(), through);
        shown.unwrap().bytes()
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

    /// What the dev objective answers of a patch: its risk on dev, where it passes every gate.
    pub fn ask(&mut self, patch: &PatchProposed, data: &mut Value) {
        let (record, course) = self.course();
        let of = course.hypothesis(&self.log, &record, &[patch]).unwrap();
        let first = course.before(&[Kind::LabelProcessAudited]).remove(0);
        data["inputs"] = json!(first.inputs().unwrap());
        data["risk_improve"] = json!(course.risk_improve(&of).unwrap());
    }

    /// An event before candidates.
    pub fn before(&mut self, kind: Kind) -> Payload {
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
    pub fn fit_unless_told(&mut self, candidate: Option<Digest>) {
        if !self.tells_fits && !self.fitted.contains_key(&candidate) {
            let event = self.fit(candidate);
            self.add(BEN, true, &event);
        }
    }

    /// A judge, where the story registers none.
    pub fn register_judge(&mut self) {
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
    pub fn rows(&mut self) {
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

    /// Outputs of a generator, scored.
    pub fn outputs(&mut self, design: &str) {
        let judge = self.judge.clone().unwrap();
        let outputs = rows::outputs(design);
        for output in &outputs {
            self.add(self.scorer, true, &output.score(&judge));
        }
        let ([evidence, _], bytes) = rows::recorded(&outputs, &judge);
        self.log.blobs.insert(Digest::blake3(&bytes), bytes);
        self.add(self.scorer, true, &evidence);
    }

    /// The report of what was told so far.
    pub fn report(&mut self) -> Payload {
        let sealed = &self.sealing.sealed;
        let (lines, checkpoint) = (forger::file(&sealed.lines), sealed.checkpoint(&[LOG]));
        let iteration = self.iteration.as_ref().unwrap();
        let (report, bytes) =
            computed_reports::report(&lines, &checkpoint, &self.log.blobs, iteration);
        self.log.blobs.insert(Digest::blake3(&bytes), bytes);
        report
    }

    /// Whether the confirm block is shown look by look.
    pub fn is_sequential(&self) -> bool {
        self.plan["iteration"]["confirm_test"] == "sequential"
    }

    /// The judge that was registered last.
    pub fn last_judge(&self) -> Option<JudgeRegistered> {
        let last = &self.world.items.last()?.body["data"];
        serde_json::from_value(last.clone()).ok()
    }

    /// What the judge that is told what a patch changes answers: about the rows of confirm, or about all others.
    pub fn answer_anew(&mut self, confirm: bool) {
        let Some(told) = self.told.clone() else {
            return;
        };
        let anchors = rows::anchors();
        let all = self.answers.iter().chain(&anchors);
        let all = all.filter(|of| (of.part == Some(SplitPart::Confirm)) == confirm);
        let all: Vec<Answer> = all.map(Answer::told).collect();
        for answer in &all {
            self.add(self.scorer, true, &answer.score(&told));
        }
        let ([evidence, replayed], bytes) = rows::recorded(&all, &told);
        self.log.blobs.insert(Digest::blake3(&bytes), bytes);
        self.add(self.scorer, true, &evidence);
        if !confirm {
            self.add(self.scorer, true, &replayed);
        }
    }

    /// Open labels of fit and dev, and sealed ones of confirm but for the last if it comes late.
    pub fn labels(&mut self, late: bool) {
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
    pub fn draw(&mut self) {
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
    pub fn show(&mut self, most: usize, charge: &str) {
        let charge = EventId(Digest::from_hex(charge).unwrap());
        let most = most.min(self.hidden.len());
        let shown: Vec<ItemId> = self.hidden.drain(..most).collect();
        for item in shown {
            let event = self.answer(&item).shown(charge);
            self.add(CLEO, true, &event);
        }
    }
}

/// What people say of an output.
pub fn label_output(data: &mut Value) {
    let design = data["design"].as_str().unwrap();
    let mut outputs = rows::outputs(design).into_iter();
    let is_it = |of: &Answer| of.policy == data["policy"] && *of.item.as_str() == data["item"];
    if let Some(output) = outputs.find(is_it) {
        data["value_micro"] = output.label.into();
    }
}

/// The verdicts that a validation of a generator has under a plan.
fn judge_again(data: &mut Value, plan: &Value) {
    let plan = planned::manifest(plan).iteration.unwrap();
    let held = guardrails::thresholds(&plan);
    data["thresholds"] = serde_json::to_value(&held).unwrap();
    let said: GeneratorValidated = serde_json::from_value(data.clone()).unwrap();
    let verdicts = generator::verdicts(
        &said.compared,
        &said.transport,
        said.battery.as_ref(),
        &held,
    );
    data["verdicts"] = json!(verdicts);
    let said: Vec<&Value> = data["verdicts"].as_object().unwrap().values().collect();
    let is = |verdict: &str| said.iter().any(|of| **of == *verdict);
    data["verdict"] = match (is("fail"), is("inconclusive")) {
        (true, _) => "fail".into(),
        (_, true) => "inconclusive".into(),
        _ => "pass".into(),
    };
}
