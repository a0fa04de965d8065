//! Short runs that repair a workflow, with everything that a run may say: edits that make candidates and one that makes a
//! known one, a pass, a pair of edits, what candidates are worth; and the outer loop over runs that pass and are of no use.

use clover::event::Payload;
use clover::event::id::ExperimentId;
use clover::event::id::RunId;
use clover::event::payload::BlobRef;
use clover::event::payload::MediaType;
use clover::event::payload::Role;
use clover::event::payload::meta_plan::MetaClaim;
use clover::event::payload::repair::WfEdits;
use clover::event::payload::repair::WfStrength;
use clover::event::payload::repair_feedback::EditPairRecorded;
use clover::event::payload::repair_feedback::UtilityRecorded;
use clover::event::payload::repair_feedback::WfFeedbackGiven;
use clover::event::payload::repair_feedback::WfPairArm;
use clover::flow::Bounds;
use clover::flow::RunOutcome;
use clover::flow::Workflow;
use clover::flow::executor::Executor;
use clover::flow::executor::simulator::SimulatedModel;
use clover::flow::executor::simulator::Strength;
use clover::flow::executor::table::Table;
use clover::flow::item::Item;
use clover::flow::repair::charter::MetaPrompt;
use clover::flow::repair::charter::Verifier;
use clover::flow::repair::edit::Edit;
use clover::flow::repair::edit::Operator;
use clover::flow::repair::edit::PromptPart;
use clover::flow::repair::feedback::Feedback;
use clover::flow::task::TaskSet;
use clover::ground::digest::Digest;
use clover::ledger::Command;
use clover::ledger::Ledger;
use clover::projection::wf::WfRun;
use clover::projection::wf::WfRuns;
use clover::projection::wf::cells::PlanPlace;
use clover::projection::wf::count;
use clover::projection::wf::due::WfDue;
use clover::projection::wf::rules::control_draw;
use clover::projection::wf::rules::seed_of;
use clover::workflow::wf::cells;
use clover::workflow::wf::course;
use clover::workflow::wf::execution;
use clover::workflow::wf::execution::ExecutionPlace;
use clover::workflow::wf::execution::LINES;
use clover::workflow::wf::measure;
use clover::workflow::wf::plan::RepairPlan;
use clover::workflow::wf::truth;
use clover::workflow::wf::verifier;
use clover::workflow::wf::words;
use serde_json::Value;
use serde_json::json;

use super::TestLedger;
use super::key_added;
use super::planned;
use super::signer;

/// The run.
pub const RUN: &str = "repair-1";
/// The update of the verifier.
pub const UPDATE: &str = "stricter-1";
/// The plan over it.
pub const PLAN: &str = "cells-1";
/// Bytes of the keys that propose and that judge.
pub const KEYS: (u8, u8) = (63, 64);

const CONTEXT: &str = r#"{"family":"own","rules":[{"check":{"op":"regex","path":"y.date","pattern":"^\\d\\d\\.\\d\\d\\.\\d{4}$"},"id":"date","text":"Write the date as DD.MM.YYYY.","weight":2},{"check":{"op":"regex","path":"y.ref","pattern":"^R"},"id":"ref","text":"ref begins with R."}],"task_set":"wf-tasks/1"}"#;
const PROGRAM: &str = r#"{"ir":"wf/1","inputs":["x"],"steps":[
    {"id":"first","kind":"llm","prompt":{"user":"Read the date: {{x.text}}"},"reads":["x.text"],"writes":"first",
     "out":{"as":"json","schema":{"type":"object","properties":{"date":{"type":"string"}}}}},
    {"id":"second","kind":"llm","prompt":{"user":"Read the ref: {{x.text}}"},"reads":["x.text"],"writes":"second",
     "out":{"as":"json","schema":{"type":"object","properties":{"ref":{"type":"string"}}}}},
    {"id":"both","kind":"map","fn":"merge","args":{"paths":["first","second"]},"writes":"y"}],"return":"y"}"#;
const ITEM: &str = r#"{"id":"a","input":{"x":{"text":"ref 17 of 2026-11-27"}},"truth":{"date":"27.11.2026","ref":"R17"},"sim":{"answer":{"date":"27.11.2026","ref":"R17"},"slips":[
    {"id":"date","p":1,"fault":"ignore_rule","path":"date","value":"2026-11-27","until":"DD.MM.YYYY"},
    {"id":"ref","p":1,"fault":"ignore_rule","path":"ref","value":"17","until":"begins with R"}]}}"#;

/// A task set with its first program.
pub struct Tasks {
    context: String,
    set: TaskSet,
    program: Workflow,
}

impl Tasks {
    /// Dates and refs, which the first program writes as it likes.
    pub fn own() -> Self {
        Self::of(CONTEXT, PROGRAM, ITEM)
    }

    /// An item whose answer keeps every rule, for there is none, and is wrong.
    pub fn hollow(at: usize) -> Self {
        let context = r#"{"family":"hollow","rules":[],"task_set":"wf-tasks/1"}"#;
        let program = hollow_program(1);
        let item = format!(r#"{{"id":"h{at}","input":{{"x":{at}}},"truth":{{"a":2}}}}"#);
        Self::of(context, &program, &item)
    }

    fn of(context: &str, program: &str, item: &str) -> Self {
        let item = item.replace('\n', " ");
        let set = TaskSet::parse(&format!("{context}\n{item}\n")).unwrap();
        let program = Workflow::parse(program).unwrap();
        Self {
            context: TaskSet::head_document(context).unwrap().canonical(),
            set,
            program,
        }
    }

    fn inputs(&self) -> Vec<u8> {
        let lines: String = self.set.items.iter().map(Item::input_line).collect();
        lines.into_bytes()
    }

    fn truths(&self) -> Vec<u8> {
        truth::lines(&self.set.items).unwrap().into_bytes()
    }
}

/// A workflow that says the same of everything.
pub fn hollow_program(value: u64) -> String {
    format!(
        r#"{{"ir":"wf/1","inputs":["x"],"steps":[{{"id":"y","kind":"map","fn":"const","args":{{"value":{{"a":{value}}}}},"writes":"y"}}],"return":"y"}}"#
    )
}

/// What the update of the verifier brings.
pub fn stricter() -> Verifier {
    let text = r#"{"verifier":"wf-verifier/1","cost_reference":2000,"critic_weight":0,"filter":"crashes","held_share":1000000,"rules":[{"id":"two","text":"a is 2.","check":{"op":"eq","a":{"path":"y.a"},"b":{"const":2}}}]}"#;
    Verifier::parse(text).unwrap()
}

fn blob(bytes: &[u8], media: &str) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: count(bytes.len() as u64),
        media: MediaType::new(media).unwrap(),
    }
}

fn salt() -> Digest {
    Digest::sha256(b"salt")
}

/// What opens a run, with the lines of its inputs. `update` is the update that it tries.
pub fn opened(
    ledger: &Ledger,
    of: &ExperimentId,
    run: (&str, &Tasks),
    how: ((u8, u8), &str, Option<&str>),
) -> (Payload, Vec<Vec<u8>>) {
    let (said, inputs) = opening(ledger, of, run, how);
    (planned::payload("wf.run_started", &said), vec![inputs])
}

fn opening(
    ledger: &Ledger,
    of: &ExperimentId,
    (run, tasks): (&str, &Tasks),
    (keys, part, update): ((u8, u8), &str, Option<&str>),
) -> (Value, Vec<u8>) {
    let name: RunId = run.parse().unwrap();
    let (meta, verifier) = (
        MetaPrompt::default(),
        match update {
            Some(_) => stricter(),
            None => Verifier::default(),
        },
    );
    let items = tasks.set.items.iter();
    let items = items.map(|item| json!({"id": item.id, "input": item.input_digest()}));
    let inputs = tasks.inputs();
    let mut said = json!({
        "build": "clover 0.1.0",
        "cell": {"edits": "structure", "executor": "weak", "optimizer": "strong", "outer": update.is_some()},
        "context": tasks.context, "context_digest": tasks.set.context, "executor": "simulator",
        "executor_model": "simulator/1 seed 7", "inputs": blob(&inputs, LINES), "items": items.collect::<Vec<_>>(),
        "meta": meta.document().canonical(), "meta_digest": meta.digest(), "optimizer": "templates",
        "optimizer_key": signer(keys.0).id(), "optimizer_model": course::TEMPLATES, "part": part,
        "program": tasks.program.document().canonical(), "program_digest": tasks.program.digest(), "run": run,
        "seed": seed_of(ledger.state(), of, &name).unwrap(), "templates": [],
        "terms": {
            "beam": 2, "budget": {"calls": 100, "tokens": 100_000, "usd_micro": 0},
            "edits": {"ast_nodes": 12, "new_llm_calls": 1, "prompt_chars": 400, "steps_touched": 2},
            "iterations": 3, "least_gain_micro": 1_000, "proposals": 2, "reruns": 1, "stagnation": 3,
            "theta_micro": 900_000,
        },
        "truth": truth::commitment(&salt(), &tasks.truths()),
        "verifier": verifier.document().canonical(), "verifier_digest": verifier.digest(),
        "verifier_key": signer(keys.1).id(),
    });
    if let Some(update) = update {
        said["update"] = update.into();
    }
    (said, inputs)
}

/// What opens a run of a plan, of one turn.
fn opened_in_cell(
    ledger: &Ledger,
    of: &ExperimentId,
    (place, run, tasks): (PlanPlace, &str, &Tasks),
    keys: (u8, u8),
) -> (Payload, Vec<Vec<u8>>) {
    let wanted = place.wanted();
    let update = wanted.outer.then_some(UPDATE);
    let (mut said, inputs) = opening(ledger, of, (run, tasks), (keys, "validate", update));
    said["cell"] = serde_json::to_value(wanted).unwrap();
    if wanted.edits == WfEdits::Prompt {
        let meta = MetaPrompt {
            operators: vec![Operator::EditPrompt],
            rules: Vec::new(),
        };
        said["meta"] = meta.document().canonical().into();
        said["meta_digest"] = meta.digest().to_hex().into();
    }
    if wanted.optimizer == WfStrength::Weak {
        said["optimizer_model"] = course::TEMPLATES_WEAK.into();
    }
    said["terms"]["iterations"] = 1.into();
    said["terms"]["reruns"] = 0.into();
    (planned::payload("wf.run_started", &said), vec![inputs])
}

fn outcome(workflow: &Workflow, item: &Item, rerun: usize) -> RunOutcome {
    let mut table = Table::default();
    let mut model = item
        .model
        .as_ref()
        .map(|model| SimulatedModel::new(7, Strength::Weak, &item.id, model));
    let executor: &mut dyn Executor = match &mut model {
        Some(model) => model,
        None => &mut table,
    };
    clover::flow::run(workflow, &item.inputs, executor, Bounds::default(), rerun).unwrap()
}

fn executed(run: &WfRun, tasks: &Tasks, place: ExecutionPlace) -> (Vec<Payload>, Vec<Vec<u8>>) {
    let workflow = course::workflow(run, &place.candidate).unwrap();
    let item = &tasks.set.items[usize::try_from(place.item).unwrap()];
    let mut table = Table::default();
    let mut model = item
        .model
        .as_ref()
        .map(|model| SimulatedModel::new(7, Strength::Weak, &item.id, model));
    let executor: &mut dyn Executor = match &mut model {
        Some(model) => model,
        None => &mut table,
    };
    let said = execution::execute(run, place, (&workflow, item), executor);
    let said = said.unwrap().unwrap();
    let called = said.called.into_iter().map(Payload::from);
    let executed = said.executed.into_iter().map(Payload::from);
    let blobs = (!said.answers.is_empty()).then_some(said.answers);
    (
        called.chain(executed).collect(),
        blobs.into_iter().collect(),
    )
}

fn outcomes(run: &WfRun, tasks: &Tasks, candidate: Digest) -> Vec<Vec<RunOutcome>> {
    let workflow = course::workflow(run, &candidate).unwrap();
    let reruns = usize::try_from(run.said.terms.reruns.value()).unwrap();
    let items = tasks.set.items.iter();
    let of = |item| {
        (0..=reruns)
            .map(|at| outcome(&workflow, item, at))
            .collect()
    };
    items.map(of).collect()
}

fn plan(run: &WfRun, tasks: &Tasks) -> RepairPlan {
    RepairPlan::with_items(&run.said, &tasks.inputs()).unwrap()
}

/// An edit of the prompt of a step.
fn told(step: &str, text: &str) -> Edit {
    Edit::EditPrompt {
        step: step.to_owned(),
        part: PromptPart::User,
        find: None,
        text: text.to_owned(),
    }
}

/// The first step is edited, as its blame says, and the other one by the same words.
fn pair(run: &WfRun, tasks: &Tasks) -> EditPairRecorded {
    let (plan, parent) = (plan(run, tasks), run.said.program_digest);
    let eligible = vec![words::text("second")];
    let draw = control_draw(run.said.seed, parent, 0, eligible.len());
    let arm = |step: &str| {
        let edit = told(step, "Write the date as DD.MM.YYYY.");
        let made = course::made(run, &plan, parent, &edit).unwrap().unwrap();
        WfPairArm {
            candidate: made.candidate,
            edit: made.edit,
            ir: made.ir,
            locality: made.locality,
            patch: made.patch,
            step: words::text(step),
        }
    };
    EditPairRecorded {
        control: arm("second"),
        draw: count(draw),
        eligible,
        number: count(0),
        operator: words::operator(told("first", "").operator()),
        parent,
        propensity_micro: words::micro(1_000_000),
        run: run.said.run.clone(),
        targeted: arm("first"),
    }
}

fn worth(run: &WfRun, tasks: &Tasks, candidate: Digest) -> (Payload, Vec<Vec<u8>>) {
    let lines = tasks.truths();
    let said = UtilityRecorded {
        candidate,
        run: run.said.run.clone(),
        salt: salt(),
        scorer: words::text(truth::SCORER),
        truth: blob(&lines, LINES),
        utilities_micro: truth::worth(&tasks.set, &outcomes(run, tasks, candidate)),
    };
    (said.into(), vec![lines])
}

/// What is said next of a run, with its blobs; `None` where everything was.
pub fn next(ledger: &Ledger, name: &str, tasks: &Tasks) -> Option<(Vec<Payload>, Vec<Vec<u8>>)> {
    let state = ledger.state();
    let run = &state.fold::<WfRuns>().by_id[&name.parse::<RunId>().unwrap()];
    let one = |payload: Payload| Some((vec![payload], Vec::new()));
    match run.due() {
        WfDue::Execution {
            candidate,
            item,
            rerun,
        } => {
            let place = ExecutionPlace {
                candidate,
                item,
                rerun,
            };
            Some(executed(run, tasks, place))
        }
        WfDue::Feedback(candidate) | WfDue::Score(candidate) => {
            let (plan, outcomes) = (plan(run, tasks), outcomes(run, tasks, candidate));
            let workflow = course::workflow(run, &candidate).unwrap();
            let found = verifier::judged(&plan, &workflow, &outcomes, &[]);
            let whose = (&run.said.run, run.said.verifier_digest);
            one(if matches!(run.due(), WfDue::Feedback(_)) {
                verifier::given(whose, candidate, &plan, &found, (&outcomes, &[])).into()
            } else {
                let theta = run.said.terms.theta_micro;
                verifier::scored(&run.said.run, candidate, &found, theta).into()
            })
        }
        WfDue::Prune => one(course::pruned(run).into()),
        WfDue::Proposals => one(course::proposal(run, &plan(run, tasks)).unwrap()),
        WfDue::Stop(reason) => one(run.stopping(reason).into()),
        WfDue::Worth if name == RUN && run.pairs.is_empty() => one(pair(run, tasks).into()),
        WfDue::Worth => {
            let next = run.unworthed().first().copied()?;
            let (payload, blobs) = worth(run, tasks, next);
            Some((vec![payload], blobs))
        }
    }
}

/// Runs that call for updates.
pub const SHOWN: usize = 5;

fn case(ledger: &Ledger, run: &str) -> Value {
    let run = &ledger.state().fold::<WfRuns>().by_id[&run.parse::<RunId>().unwrap()];
    json!({"candidate": run.said.program_digest, "run": run.said.run})
}

/// What the outer loop says of the runs before it: a trigger, an update of the verifier, one of the library, a template.
pub fn learnt(ledger: &Ledger) -> Vec<Payload> {
    let cases: Vec<Value> = (0..SHOWN)
        .map(|at| case(ledger, &format!("hollow-{at}")))
        .collect();
    let template = Workflow::parse(&hollow_program(2)).unwrap();
    let looked = ledger.state().fold::<WfRuns>().by_id.values();
    let looked = looked.filter(|run| run.is_known()).count();
    let trigger = json!({
        "cases": cases, "class": "false_positive", "looked": looked, "trigger": "passes-in-vain", "useful_micro": 900_000,
    });
    let update = |name: &str, target: &str, document: String, digests: (Digest, Digest)| {
        json!({
            "alpha_micro": 50_000, "document": document, "margin_micro": 100_000, "new_digest": digests.0,
            "pairs": [{"new": format!("{name}-new"), "old": format!("{name}-old")}], "parent_digest": digests.1,
            "target": target, "triggers": ["passes-in-vain"], "update": name, "useful_micro": 900_000,
            "why": "It passes whatever is said.",
        })
    };
    let verifier = stricter();
    let digests = (verifier.digest(), Verifier::default().digest());
    let first = Workflow::parse(&hollow_program(1)).unwrap().digest();
    vec![
        planned::payload("meta.triggered", &trigger),
        planned::payload(
            "meta.updated",
            &update(UPDATE, "verifier", verifier.document().canonical(), digests),
        ),
        planned::payload(
            "meta.updated",
            &update(
                "template-1",
                "library",
                template.document().canonical(),
                (template.digest(), first),
            ),
        ),
        planned::payload(
            "lib.template_added",
            &json!({
                "applies_to": "hollow", "distilled_from": [cases[0]], "ir": template.document().canonical(),
                "template_digest": template.digest(), "update": "template-1",
            }),
        ),
    ]
}

/// How the update of the verifier was validated.
pub fn validated(ledger: &Ledger) -> Payload {
    let runs = ledger.state().fold::<WfRuns>();
    let update = &runs.updates[&UPDATE.parse().unwrap()].said;
    measure::validated(runs, update).unwrap().into()
}

/// Whoever keeps a ledger and says payloads with their blobs.
pub trait Speaker {
    /// The ledger as it stands.
    fn ledger(&self) -> &Ledger;
    /// Says payloads of one author.
    fn say(&mut self, payloads: Vec<Payload>, blobs: Vec<Vec<u8>>);
}

/// One run from its opening to what its candidates are worth.
pub fn tell_run(
    speaker: &mut dyn Speaker,
    of: &ExperimentId,
    (run, tasks): (&str, &Tasks),
    how: ((u8, u8), &str, Option<&str>),
) {
    let (payload, blobs) = opened(speaker.ledger(), of, (run, tasks), how);
    speaker.say(vec![payload], blobs);
    tell_steps(speaker, (run, tasks), how.1);
}

/// The steps of a run that is open.
fn tell_steps(speaker: &mut dyn Speaker, (run, tasks): (&str, &Tasks), part: &str) {
    while let Some((payloads, blobs)) = next(speaker.ledger(), run, tasks) {
        // Nothing of a pair is worth anything before its other run has ended.
        let is_worth = matches!(payloads[0], Payload::UtilityRecorded(_));
        if is_worth && part == "validate" {
            return;
        }
        speaker.say(payloads, blobs);
    }
}

/// Runs that pass in vain, and what they call for.
fn tell_called_for(speaker: &mut dyn Speaker, of: &ExperimentId, keys: (u8, u8)) {
    for at in 0..SHOWN {
        let run = format!("hollow-{at}");
        tell_run(
            speaker,
            of,
            (&run, &Tasks::hollow(at)),
            (keys, "train", None),
        );
    }
    for payload in learnt(speaker.ledger()) {
        speaker.say(vec![payload], Vec::new());
    }
}

/// A plan over the update of the verifier: all runs of its tasks, and what becomes of its claims.
fn tell_cells(speaker: &mut dyn Speaker, of: &ExperimentId, (keys, tasks): ((u8, u8), u64)) {
    let said = json!({
        "alpha_micro": 50_000, "claims": MetaClaim::ALL, "plan": PLAN, "tasks": tasks, "update": UPDATE,
        "useful_micro": 900_000,
    });
    speaker.say(vec![planned::payload("meta.planned", &said)], Vec::new());
    let plan = |ledger: &Ledger| {
        let runs = ledger.state().fold::<WfRuns>();
        runs.plans[&PLAN.parse().unwrap()].clone()
    };
    let all = plan(speaker.ledger());
    let all: Vec<(PlanPlace, String)> = all.runs().map(|(at, run)| (at, run.to_string())).collect();
    let items = |place: PlanPlace| Tasks::hollow(200 + usize::try_from(place.task).unwrap());
    for (place, run) in &all {
        let what = (*place, run.as_str(), &items(*place));
        let (payload, blobs) = opened_in_cell(speaker.ledger(), of, what, keys);
        speaker.say(vec![payload], blobs);
    }
    for (place, run) in &all {
        tell_steps(speaker, (run, &items(*place)), "validate");
    }
    for (place, run) in &all {
        let tasks = items(*place);
        while let Some((payloads, blobs)) = next(speaker.ledger(), run, &tasks) {
            speaker.say(payloads, blobs);
        }
    }
    let runs = speaker.ledger().state().fold::<WfRuns>();
    let said = cells::concluded(runs, &plan(speaker.ledger())).unwrap();
    speaker.say(vec![said.into()], Vec::new());
}

/// Runs that call for an update, and a plan of two tasks over it.
pub fn tell_crossed(speaker: &mut dyn Speaker, of: &ExperimentId, keys: (u8, u8)) {
    tell_called_for(speaker, of, keys);
    tell_cells(speaker, of, (keys, 2));
}

/// The outer loop: runs that pass in vain, what they call for, and the pair that judges it.
pub fn tell_learning(speaker: &mut dyn Speaker, of: &ExperimentId, keys: (u8, u8)) {
    tell_called_for(speaker, of, keys);
    let tasks = Tasks::hollow(90);
    let (new, old) = (format!("{UPDATE}-new"), format!("{UPDATE}-old"));
    for (run, update) in [(&new, Some(UPDATE)), (&old, None)] {
        let how = (keys, "validate", update);
        let (payload, blobs) = opened(speaker.ledger(), of, (run, &tasks), how);
        speaker.say(vec![payload], blobs);
    }
    for run in [&new, &old] {
        tell_steps(speaker, (run, &tasks), "validate");
    }
    for run in [&new, &old] {
        while let Some((payloads, blobs)) = next(speaker.ledger(), run, &tasks) {
            speaker.say(payloads, blobs);
        }
    }
    let said = validated(speaker.ledger());
    speaker.say(vec![said], Vec::new());
}

struct Tester<'t> {
    test: &'t mut TestLedger,
    of: ExperimentId,
}

impl Speaker for Tester<'_> {
    fn ledger(&self) -> &Ledger {
        &self.test.ledger
    }

    fn say(&mut self, payloads: Vec<Payload>, blobs: Vec<Vec<u8>>) {
        let by = match &payloads[0] {
            Payload::WfCandidateAdded(_) => KEYS.0,
            Payload::WfFeedbackGiven(_) => KEYS.1,
            _ => 1,
        };
        let commands = payloads.into_iter();
        let commands: Vec<_> = commands
            .map(|payload| Command::new(payload, Some(self.of.clone())))
            .collect();
        let ledger = &mut self.test.ledger;
        ledger
            .append_with_blobs(&commands, &signer(by), &blobs)
            .unwrap();
    }
}

/// The keys that propose and judge join.
fn joined<'t>(test: &'t mut TestLedger, of: &ExperimentId) -> Tester<'t> {
    for (byte, role) in [(KEYS.0, Role::Optimizer), (KEYS.1, Role::Verifier)] {
        let added = key_added(&signer(byte), "Edda", &[role]);
        test.append(&[Command::new(added, None)]).unwrap();
    }
    Tester {
        test,
        of: of.clone(),
    }
}

/// Goes on until feedback on a first candidate is due; the feedback after a critic that finds nothing good, and the same with
/// every flag said to be kept, with parts, score and digest that follow from that.
pub fn criticised(test: &mut TestLedger, experiment: &str) -> (WfFeedbackGiven, WfFeedbackGiven) {
    let of: ExperimentId = experiment.parse().unwrap();
    let mut speaker = joined(test, &of);
    let tasks = Tasks::own();
    let (payload, blobs) = opened(speaker.ledger(), &of, (RUN, &tasks), (KEYS, "deploy", None));
    speaker.say(vec![payload], blobs);
    loop {
        let run = &speaker.ledger().state().fold::<WfRuns>().by_id[&RUN.parse::<RunId>().unwrap()];
        let WfDue::Feedback(candidate) = run.due() else {
            let (payloads, blobs) = next(speaker.ledger(), RUN, &tasks).unwrap();
            speaker.say(payloads, blobs);
            continue;
        };
        let (plan, outcomes) = (plan(run, &tasks), outcomes(run, &tasks, candidate));
        let workflow = course::workflow(run, &candidate).unwrap();
        let critic = vec![words::micro(0); outcomes.len()];
        let mut found = verifier::judged(&plan, &workflow, &outcomes, &critic);
        let whose = (&run.said.run, run.said.verifier_digest);
        let said = |found: &Feedback| {
            verifier::given(whose, candidate, &plan, found, (&outcomes, &critic))
        };
        let honest = said(&found);
        for flag in &mut found.flags {
            (flag.held, flag.ok) = (flag.items, true);
        }
        found.parts.satisfied = 1_000_000;
        found.score = Some(found.parts.score(0));
        let mut kind = said(&found);
        for flag in &mut kind.flags {
            flag.kept = words::text(&"1".repeat(outcomes.len()));
        }
        return (honest, kind);
    }
}

/// Tells a run and the outer loop in an experiment that is registered; the keys that propose and judge join before.
pub fn tell(test: &mut TestLedger, experiment: &str) {
    let of: ExperimentId = experiment.parse().unwrap();
    let mut speaker = joined(test, &of);
    tell_run(
        &mut speaker,
        &of,
        (RUN, &Tasks::own()),
        (KEYS, "deploy", None),
    );
    tell_learning(&mut speaker, &of, KEYS);
    tell_cells(&mut speaker, &of, (KEYS, 1));
}
