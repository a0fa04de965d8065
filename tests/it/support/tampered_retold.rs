//! Samples around a patch that changes what the judge is told: whose answers it is judged on, and when they were given.

use clover::event::Kind;
use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::release::PromptCommitted;
use clover::event::payload::scoring::JudgeRegistered;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::projection::decisions::CONFIRM_CRITERIA;
use clover::projection::decisions::DEV_CRITERIA;
use clover::workflow::patches;
use clover::workflow::prompts;
use serde_json::Value;
use serde_json::json;

use super::calibrated;
use super::decided;
use super::decided::IT;
use super::deployed;
use super::forger::World;
use super::iterated;
use super::planned;
use super::planned::payload;
use super::released;
use super::samples::*;
use super::signer;
use super::tampered::Sample;
use super::tampered_chosen::adopt;
use super::tampered_chosen::again;
use super::valued;

/// Answers that the judge gives anew in the story.
const ANSWERS: u64 = 3;

/// A patch that changes what the judge is told, and nothing that is computed.
fn patch() -> Payload {
    let changes = "{abstention.rule: abstain where a dose depends on what was not said}";
    let yaml = iterated::patch("say-when-to-abstain", "abstention", changes);
    iterated::proposed(IT, &yaml)
}

/// The judge of the iteration, which is a program.
fn judge() -> Value {
    json!({
        "decoding": {"temperature_micro": 0}, "evidence_schema": "evidence/1", "extractor": "clover-text/1",
        "judge": "judge-1", "model": "m-1", "port": "command", "prompt_hash": Digest::sha256(b"own").to_hex(),
        "tool_snapshot": Digest::sha256(b"").to_hex(),
    })
}

/// The same judge, told what the patch changes; and what it is told.
fn told() -> (JudgeRegistered, String) {
    let Payload::PatchProposed(said) = patch() else {
        unreachable!("a proposal");
    };
    let base = iterated::rubric();
    let rubric = prompts::patched(&base, &said.diff, base.version()).unwrap();
    let plan = planned::manifest(&iterated::plan(EXPERIMENT, "m-it")).iteration;
    let prompt = prompts::rendered(&rubric, plan.as_ref());
    assert_ne!(prompt.hash, prompts::rendered(&base, plan.as_ref()).hash);
    let own: JudgeRegistered = serde_json::from_value(judge()).unwrap();
    let told = own.told(prompts::reference(&prompt.text), prompt.hash);
    (told.unwrap(), prompt.text)
}

/// What the judge is told.
pub fn told_text() -> Vec<u8> {
    told().1.into_bytes()
}

/// What stands in the commit of the patch.
pub fn patched_text() -> Vec<u8> {
    let Payload::PatchProposed(said) = patch() else {
        unreachable!("a proposal");
    };
    let rubric = prompts::patched(&iterated::rubric(), &said.diff, "1.1").unwrap();
    let topics = released::TOPICS.map(str::to_owned).into();
    clover::rubric::prompt::render(&rubric, &topics).into_bytes()
}

/// One of its answers.
fn answer(number: u64) -> Payload {
    let data = json!({
        "draw": 0, "item": format!("p{number:02}"), "judge": told().0.judge, "policy": "base", "score_micro": 500_000,
    });
    payload("score.recorded", &data)
}

/// Scores under the patch.
fn rescored() -> Payload {
    let (hash, result, _) = decided::patch_of(&patch());
    let mut data = serde_json::to_value(decided::recomputed(hash, result)).unwrap();
    data["judge"] = json!(told().0.judge);
    data["recomputed"] = 0.into();
    data["rescored"] = ANSWERS.into();
    payload("scores.recomputed", &data)
}

/// A calibrator of the patch, fitted on the answers that the judge gave anew.
fn fitted() -> Payload {
    let (hash, result, _) = decided::patch_of(&patch());
    let fitted = calibrated::fitted(8, Some(hash), result);
    let mut data = serde_json::to_value(fitted).unwrap();
    data["terms"]["judge"] = json!(told().0.judge);
    payload("calibrator.fitted", &data)
}

/// The battery of the patch, asked of the judge that was told it.
fn battery() -> Payload {
    let (hash, result, _) = decided::patch_of(&patch());
    let mut data = serde_json::to_value(decided::battery(Some(hash), result, &[])).unwrap();
    data["judge"] = json!(told().0.judge);
    payload("battery.evaluated", &data)
}

/// Keys, plan and fit, up to the patch.
fn before(teller: &mut Teller) {
    for (name, who, holder, role) in [
        ("key-ben", BEN, "Ben", Role::Arbiter),
        ("key-opal", RUNNER, "Opal", Role::Optimizer),
        ("key-cleo", CLEO, "Cleo", Role::Custodian),
        ("key-runa", RUNNER_2, "Runa", Role::Scorer),
        ("key-mal", RUNNER_3, "Mal", Role::Adversary),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    teller.say_in(ADA, "registered", planned::experiment_registered());
    teller.say(ADA, "peeks", iterated::peek_account());
    teller.say_in(ADA, "rubric", iterated::rubric_registered(iterated::RUBRIC));
    teller.say_in(RUNNER_2, "judge", payload("judge.registered", &judge()));
    teller.say_in(ADA, "anchors", iterated::anchors(200));
    let plan = iterated::plan(EXPERIMENT, "m-it");
    teller.say_in(ADA, "m-it", planned::registered(&plan));
    let names = ["split-1", "split-2", "split-3", "split-4"];
    for (name, event) in names.into_iter().zip(decided::split_events()) {
        teller.say_in(BEN, name, event);
    }
    teller.say_in(BEN, "opened", iterated::opened(&plan, IT, "2026Q3"));
    teller.blob(valued::MODEL.to_vec(), "application/json");
    teller.blob(valued::ROWS.to_vec(), "application/x-ndjson");
    let base = iterated::rubric().hash();
    teller.say_in(BEN, "fitted", calibrated::fitted(7, None, base));
    teller.say_in(BEN, "audited", decided::audited());
    teller.say_in(BEN, "classified", decided::classified());
    teller.say_in(RUNNER, "patch", patch());
}

/// The judge is told what the patch changes, answers, and the gates on dev stand on that.
fn judged(teller: &mut Teller) {
    let (told, text) = told();
    teller.blob(text.into_bytes(), "text/plain");
    teller.say_in(RUNNER_2, "told", told);
    for (number, name) in (0..).zip(["answer-0", "answer-1", "answer-2"]) {
        teller.say_in(RUNNER_2, name, answer(number));
    }
    teller.say_in(RUNNER_2, "scores", rescored());
    gated(teller);
}

fn adopted(teller: &mut Teller) {
    let data = json!({ "version": 20 });
    teller.say(ADA, "adopted", payload("rulebook.adopted", &data));
}

/// The story under rulebook 20, up to the gates on dev.
fn story() -> Story {
    let mut teller = Teller::begin();
    before(&mut teller);
    adopted(&mut teller);
    judged(&mut teller);
    teller.finish()
}

/// Tells everything up to the unsealing, under the rulebook that a ledger has which names none.
fn unsealing(teller: &mut Teller) {
    before(teller);
    judged_before(teller);
    let hash = decided::patch_of(&patch()).0;
    teller.say_in(BEN, "sealed", decided::sealed(&[hash]));
    teller.say(CLEO, "charge", decided::charge());
    let (charge, sealing) = (teller.id("charge"), teller.id("sealed"));
    let unsealing = decided::unsealed(&charge.0.to_hex(), &sealing.0.to_hex());
    teller.say_in(CLEO, "unsealed", unsealing);
}

/// Another story: confirm was unsealed, and rulebook 20 judges from there on.
fn unsealed() -> Story {
    let mut teller = Teller::begin();
    unsealing(&mut teller);
    adopted(&mut teller);
    teller.finish()
}

/// The commit of the patch, approved by two people.
fn committed(teller: &mut Teller, gates: &[String]) -> PromptCommitted {
    let subject = teller.id("accepted").0.to_hex();
    let granted = |name| released::granted(name, &subject);
    teller.say_in(PETRA, "yes-petra", granted("Petra Weiss"));
    teller.say_in(PAUL, "yes-paul", granted("Paul Okafor"));
    let approvals = ["yes-petra", "yes-paul"].map(|name| teller.id(name).0.to_hex());
    let parent = teller.id("rubric").0.to_hex();
    let acceptance = (subject.as_str(), teller.at("accepted"));
    let parent = (parent.as_str(), "1.1");
    let commit = released::committed(&patch(), acceptance, parent, gates, &approvals);
    let Payload::PromptCommitted(said) = &commit else {
        unreachable!("a commit");
    };
    let said = (**said).clone();
    teller.say_in(AUDE, "committed", commit);
    said
}

/// A third story: the patch was accepted, committed, and recalibrated on fresh labels for a judge; rulebook 20 judges the
/// activation, which comes last.
fn recalibrated(judge: &str, calibrator: u8) -> Story {
    let mut teller = Teller::begin();
    unsealing(&mut teller);
    for (name, who, holder, role) in [
        ("key-rhea", AUDE, "Rhea", Role::Releaser),
        ("key-petra", PETRA, "Petra", Role::Approver),
        ("key-paul", PAUL, "Paul", Role::Approver),
        ("key-lena", LENA, "Lena", Role::Labeler),
    ] {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    }
    let (hash, plan) = (
        decided::patch_of(&patch()).0,
        iterated::plan(EXPERIMENT, "m-it"),
    );
    for (name, id) in decided::GATES[0][8..].iter().zip(CONFIRM_CRITERIA) {
        let of = (hash, "confirm", id.as_str());
        teller.say_in(BEN, name, calibrated::gate(&plan, of, None));
    }
    let gates: Vec<String> = decided::GATES[0]
        .map(|gate| teller.id(gate).0.to_hex())
        .into();
    teller.say_in(BEN, "accepted", decided::accepted(&patch(), 1, &gates));
    teller.say_in(BEN, "closed", iterated::closed(IT, "accepted"));
    committed(&mut teller, &gates);
    teller.say_in(LENA, "design", deployed::probes());
    let experiment = || Some(EXPERIMENT.parse().unwrap());
    let labels = (0..100).map(|at| ("label", Command::new(deployed::label(at), experiment())));
    teller.say_all(LENA, labels.collect());
    let mut tested = valued::tested(calibrator, "probes", "pass");
    tested["terms"]["judge"] = judge.into();
    let tested = valued::payload(Kind::TransportTested, &tested);
    teller.say_in(BEN, "tested", tested);
    let (id, tested) = (
        teller.id("committed").0.to_hex(),
        teller.id("tested").0.to_hex(),
    );
    let mut recalibrated = serde_json::to_value(deployed::recalibrated(&id, &tested)).unwrap();
    recalibrated["calibrator"] = valued::digest(calibrator);
    recalibrated["judge"] = judge.into();
    let recalibrated = payload("recalibration.completed", &recalibrated);
    teller.say_in(BEN, "recalibrated", recalibrated);
    adopted(&mut teller);
    teller.finish()
}

/// The committed prompt runs, on a judge and a calibrator that fresh labels bore out.
fn activated(judge: &str, calibrator: u8) -> (World, usize) {
    let story = recalibrated(judge, calibrator);
    let mut world = World::of(&story.lines);
    let said = |name: &str| World::of(&story.lines).items[story.at(name)].clone();
    let (commit, recalibrated) = (said("committed"), said("recalibrated"));
    let data = json!({
        "commit": commit.was, "recalibration": recalibrated.was, "rubric_hash": commit.body["data"]["rubric_hash"],
        "versions": {
            "anchors": "anchors-1", "calibrator": valued::digest(calibrator), "judge": judge, "model": "m-1",
            "prompt_hash": commit.body["data"]["prompt_hash"], "rubric_version": "1.1",
            "sdp_version": "v1.0_2025-11-11",
        },
    });
    let at = world.say(AUDE, "deployment.activated", 1, EXPERIMENT.into(), data);
    (world, at)
}

/// As [`judged`], with scores of as many rows as an older rulebook asks for.
fn judged_before(teller: &mut Teller) {
    let (told, text) = told();
    teller.blob(text.into_bytes(), "text/plain");
    teller.say_in(RUNNER_2, "told", told);
    let mut data = serde_json::to_value(rescored()).unwrap();
    data["rescored"] = 2_500.into();
    teller.say_in(RUNNER_2, "scores", payload("scores.recomputed", &data));
    gated(teller);
}

/// The calibrator, the battery and the gates on dev.
fn gated(teller: &mut Teller) {
    teller.say_in(BEN, "fitted-a", fitted());
    teller.say_in(RUNNER_3, "battery", battery());
    let battery = teller.id("battery").0.to_hex();
    let plan = iterated::plan(EXPERIMENT, "m-it");
    let hash = decided::patch_of(&patch()).0;
    for (name, id) in decided::GATES[0].into_iter().zip(DEV_CRITERIA) {
        let of = (hash, "dev", id.as_str());
        teller.say_in(BEN, name, calibrated::gate(&plan, of, Some(&battery)));
    }
}

/// A step of the story told otherwise, after what came before it: its sample.
struct Lie {
    name: &'static str,
    done: &'static str,
    /// The step, and the one before which the history is cut off.
    step: &'static str,
    cut: &'static str,
    rule: &'static str,
    change: fn(&mut Value),
}

fn of_old_answers(data: &mut Value) {
    data.as_object_mut().unwrap().remove("judge");
    data["recomputed"] = 2_950.into();
    data["rescored"] = 0.into();
}

fn of_the_old_judge(data: &mut Value) {
    data["judge"] = "judge-1".into();
}

fn unchanged(_: &mut Value) {}

#[rustfmt::skip]
const LIES: &[Lie] = &[
    Lie { name: "rescored-from-old-answers", step: "scores", cut: "scores", rule: "predicate", change: of_old_answers,
          done: "A patch changes what the judge is told, and its scores were computed from answers that the judge gave before." },
    Lie { name: "rescored-under-the-old-name", step: "scores", cut: "scores", rule: "predicate", change: of_the_old_judge,
          done: "A patch changes what the judge is told, and scores of the judge that was told nothing were handed in as new." },
    Lie { name: "rescored-without-answers", step: "scores", cut: "answer-2", rule: "predicate", change: unchanged,
          done: "A judge was to be asked anew about three rows; two answers are on record, and three rows were scored." },
    Lie { name: "rescored-by-nobody", step: "scores", cut: "told", rule: "predicate", change: unchanged,
          done: "Scores of a judge that was told what a patch changes are named, and no such judge was registered." },
    Lie { name: "retold-judge-of-imports", step: "told", cut: "told", rule: "judge",
          change: |data| data["port"] = "recorded".into(),
          done: "The judge that is told what a patch changes is nobody: its scores are handed in." },
    Lie { name: "retold-judge-of-another-model", step: "told", cut: "told", rule: "judge",
          change: |data| data["model"] = "m-2".into(),
          done: "The judge that is told what a patch changes is another model too." },
    Lie { name: "retold-judge-of-another-name", step: "told", cut: "told", rule: "judge",
          change: |data| data["judge"] = "judge-1+better".into(),
          done: "The judge that is told what a patch changes is not named after what it is told." },
    Lie { name: "retold-judge-of-nobody", step: "told", cut: "told", rule: "judge",
          change: |data| data["of"] = "judge-2".into(),
          done: "A judge is said to be another but for what it is told, and that one was never registered." },
    Lie { name: "fitted-before-the-judge-was-asked", step: "fitted-a", cut: "scores", rule: "predicate", change: unchanged,
          done: "A calibrator of a patch was fitted before the judge had answered to what the patch tells it." },
    Lie { name: "fitted-on-the-old-judge", step: "fitted-a", cut: "fitted-a", rule: "predicate",
          change: |data| data["terms"]["judge"] = "judge-1".into(),
          done: "A calibrator of a patch was fitted on the judge that was told nothing of it." },
    Lie { name: "attacked-under-the-old-judge", step: "battery", cut: "battery", rule: "predicate", change: of_the_old_judge,
          done: "The battery of a patch asked the judge that was told nothing of it." },
    Lie { name: "judged-before-the-judge-was-asked", step: "a-p1", cut: "scores", rule: "predicate",
          change: |data| drop(data.as_object_mut().unwrap().remove("calibrators")),
          done: "A gate of a patch was passed before the judge had answered to what the patch tells it." },
];

/// What rulebook 24 asks of a judge that is told something: of the text that a patch takes the place of, and of answers that a
/// battery keeps.
#[rustfmt::skip]
const LATER: &[Lie] = &[
    Lie { name: "rescored-over-a-prompt-of-its-own", step: "scores", cut: "scores", rule: "predicate", change: unchanged,
          done: "A judge was told a text of its own, and a patch was judged on answers without that text." },
    Lie { name: "battery-of-the-judge-before", step: "battery", cut: "fitted-a", rule: "battery", change: answered_before,
          done: "The battery of a patch keeps answers of the judge that was told nothing of it, and none of the one that was." },
];

fn answered_before(data: &mut Value) {
    let records = json!({"blake3": "6".repeat(64), "bytes": 17, "media": "application/x-ndjson"});
    data["answers"] = json!([{"judge": "judge-1", "records": records, "records_count": 1}]);
}

/// A lie under rulebook 24. Where it is about no text of the judge's own, the judge was told nothing.
fn later(of: &Lie) -> (World, usize) {
    let story = story();
    let mut world = World::of(&story.lines);
    world.items[story.at("adopted")].body["data"]["version"] = 24.into();
    if of.step != "scores" {
        let judge = &mut world.items[story.at("judge")].body["data"];
        judge["prompt_hash"] = Digest::sha256(b"").to_hex().into();
    }
    world.items.truncate(story.at(of.cut));
    let at = again(&mut world, &story, of.step, of.change);
    (world, at)
}

/// A program that was told something, of which only a hash was kept.
fn lost() -> (World, usize) {
    let story = story();
    let mut world = World::of(&story.lines);
    world.items.truncate(story.at("adopted"));
    adopt(&mut world, 24);
    let at = again(&mut world, &story, "judge", |data| {
        data["judge"] = "judge-2".into();
    });
    (world, at)
}

/// Lies that an older rulebook does not ask about.
const UNASKED: &str = "rescored-from-old-answers";

fn lie(lie: &Lie, rulebook: u64) -> (World, usize) {
    let story = story();
    let mut world = World::of(&story.lines);
    world.items[story.at("adopted")].body["data"]["version"] = rulebook.into();
    world.items.truncate(story.at(lie.cut));
    let at = again(&mut world, &story, lie.step, lie.change);
    (world, at)
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let mut rows = vec![Sample::forged(
        "good-judge-asked-anew",
        "Nothing. A patch changes what the judge is told; the judge was told so, and the gates stand on what it answered.",
        &World::of(&story().lines),
        None,
    )];
    for one in LIES {
        let (world, at) = lie(one, 20);
        rows.push(Sample::forged(
            one.name,
            one.done,
            &world,
            Some((at, one.rule)),
        ));
        if one.name == UNASKED {
            let done = "The same under an older rulebook, which did not ask: the verdict says so.";
            let (world, _) = lie(one, 19);
            let name = "rescored-from-old-answers-unasked";
            rows.push(Sample::forged(name, done, &world, None));
        }
    }
    for one in LATER {
        let (world, at) = later(one);
        let first = Some((at, one.rule));
        rows.push(Sample::forged(one.name, one.done, &world, first));
    }
    let (world, at) = lost();
    rows.push(Sample::forged(
        "judge-told-a-text-that-was-lost",
        "A program was registered with the hash of what it is told, and the text was not kept: nobody can ask it again.",
        &world,
        Some((at, "judge")),
    ));
    rows.push(answered_late());
    let name = told().0.judge;
    rows.push(Sample::forged(
        "good-judge-told-runs",
        "Nothing. A patch changed what the judge is told, and what runs is judged by the judge that is told so.",
        &activated(name.as_str(), 8).0,
        None,
    ));
    let (world, at) = activated("judge-1", 7);
    rows.push(Sample::forged(
        "deployed-on-the-judge-told-nothing",
        "A patch changed what the judge is told, and its prompt runs on scores of the judge that was told nothing of it.",
        &world,
        Some((at, "deployment")),
    ));
    rows
}

/// An answer about a row of confirm, given once its labels are open.
fn answered_late() -> Sample {
    let story = unsealed();
    let mut world = World::of(&story.lines);
    let data = serde_json::to_value(answer(0)).unwrap();
    let at = world.say(RUNNER_2, "score.recorded", 1, EXPERIMENT.into(), data);
    Sample::forged(
        "answered-after-unsealing",
        "The judge that a sealed patch was asked of answered about one more row once confirm labels were shown.",
        &world,
        Some((at, "sealing")),
    )
}

/// What the judge is told stands in the rubric that the patch gives.
#[test]
fn the_patch_changes_what_the_judge_is_told_alone() {
    let (told, text) = told();
    assert!(text.contains("Abstention: abstain where a dose"), "{text}");
    assert!(told.judge.as_str().starts_with("judge-1+"), "{told:?}");
    assert_eq!(told.judge.as_str().len(), "judge-1+".len() + 12);
    let Payload::PatchProposed(said) = patch() else {
        unreachable!("a proposal");
    };
    assert_eq!(said.diff.len(), 1);
    assert_eq!(
        patches::rubric_with(&patches::leaves_of(&iterated::rubric())),
        Some(iterated::rubric())
    );
}
