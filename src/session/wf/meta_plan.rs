//! What the outer loop would do: the trigger that runs call for, the update that answers it, and the pairs of runs that judge it.

use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::id::TriggerId;
use clover_event::id::UpdateId;
use clover_event::payload::meta::MetaCase;
use clover_event::payload::meta::MetaClass;
use clover_event::payload::meta::MetaPair;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta::MetaTriggered;
use clover_event::payload::meta::MetaUpdated;
use clover_event::payload::repair::WfDocument;
use clover_event::payload::repair::WfExecutor;
use clover_event::payload::repair::WfPart;
use clover_flow::Workflow;
use clover_flow::item::Item;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::charter::Verifier;
use clover_flow::task::TaskSet;
use clover_flow::value::Data;
use clover_ground::digest::Digest;
use clover_ledger::History as _;
use clover_ledger::Ledger;
use clover_ledger::RequiredFact as _;
use clover_num::Micro;
use clover_projection::wf::MetaUpdate;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_projection::wf::count;
use clover_projection::wf::learnt::CASES_MIN;
use clover_workflow::wf::lesson;
use clover_workflow::wf::lesson::Lesson;
use clover_workflow::wf::outer;
use clover_workflow::wf::plan;
use clover_workflow::wf::truth;
use clover_workflow::wf::words;

use crate::error::SessionError;
use crate::wf::RepairError;
use crate::wf::open::RepairRequest;
use crate::wf::open::RequestedExecutor;
use crate::wf::open::SIMULATOR;
use crate::wf::outcomes_of;
use crate::wf::plan_of;

/// What an outer loop is asked for.
#[derive(Clone, Debug)]
pub struct MetaRequest {
    /// Name of the update.
    pub update: UpdateId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The first line of the task set.
    pub context: Data,
    /// Family, rules and weights of the set, and all its items.
    pub set: TaskSet,
    /// Lines of the items, as the simulator reads them, in order.
    pub lines: Vec<String>,
    /// Items of each run, 1 to 50.
    pub items: usize,
    /// Pairs of runs.
    pub pairs: usize,
    /// Least worth of a workflow that is of use, in millionths.
    pub useful: Micro,
    /// Level of each gate, in millionths.
    pub alpha: Micro,
    /// Most that gamma and kappa may fall, in millionths.
    pub margin: Micro,
    /// What salts are made of: 32 bytes that nobody knows.
    pub salt: Digest,
}

/// What the outer loop would say.
#[derive(Clone, Debug)]
pub struct MetaPlan {
    /// What runs call for.
    pub trigger: MetaTriggered,
    /// The update that answers it.
    pub update: MetaUpdated,
}

/// What an update changes, with its digests.
struct Remedy {
    target: MetaTarget,
    document: Data,
    digests: (Digest, Digest),
    why: String,
}

/// An item and what was said of it.
type ItemOutput = (Item, Data);

pub(super) fn wrong(expected: &'static str, found: impl Into<String>) -> RepairError {
    RepairError::Request {
        expected,
        found: found.into(),
    }
}

/// An update by its name.
///
/// # Errors
/// [`RepairError::NoUpdate`].
pub fn update_of<'r>(runs: &'r WfRuns, id: &UpdateId) -> Result<&'r MetaUpdate, RepairError> {
    let found = runs.updates.get(id);
    found.ok_or_else(|| RepairError::NoUpdate(id.clone()))
}

/// Runs whose truth is known, of the context of the request.
fn looked_at<'r>(runs: &'r WfRuns, request: &'r MetaRequest) -> impl Iterator<Item = &'r WfRun> {
    let all = runs.looked_at(&request.experiment);
    all.filter(|run| run.said.context_digest == request.set.context)
}

/// The run whose terms and documents are changed: the newest of the context.
fn base<'r>(runs: &'r WfRuns, request: &'r MetaRequest) -> Result<&'r WfRun, RepairError> {
    let newest = looked_at(runs, request).max_by_key(|run| run.seq);
    newest.ok_or_else(|| {
        wrong(
            "runs of the context of these tasks that were scored",
            "none",
        )
    })
}

/// Items of a run with what is right of each.
fn right_of(ledger: &Ledger, run: &WfRun) -> Result<Vec<Item>, SessionError> {
    let plan = plan_of(ledger, run)?;
    let Some(of) = &run.truth else {
        return Ok(Vec::new());
    };
    let lines = ledger.blob(&of.truth.blake3)?;
    let lines = lines
        .required("what is right of the run")
        .map_err(RepairError::from)?;
    let told = truth::told(plan.set, &lines).map_err(RepairError::from)?;
    Ok(told.items)
}

/// What the candidates of cases said of items, with what each was worth, in millionths.
fn answers(
    ledger: &Ledger,
    request: &MetaRequest,
    cases: &[(&MetaCase, &WfRun)],
) -> Result<Vec<(ItemOutput, u64)>, SessionError> {
    let mut all = Vec::new();
    for (case, run) in cases {
        let plan = plan_of(ledger, run)?;
        let is_it = |id: &Digest| *id == case.candidate;
        let outcomes = outcomes_of((ledger, ledger.size()), run, &plan, &is_it)?;
        let of = outcomes.get(&case.candidate).map_or(&[][..], Vec::as_slice);
        for (item, executions) in right_of(ledger, run)?.into_iter().zip(of) {
            let output = executions.first().and_then(|of| of.output.clone());
            let worth = request.set.utility(&item, output.as_ref());
            if let Some((output, worth)) = output.zip(worth) {
                all.push(((item, output), worth));
            }
        }
    }
    Ok(all)
}

fn read<T>(read: Result<T, clover_flow::Fault>) -> Result<T, RepairError> {
    read.map_err(|fault| wrong("a document", format!("{}: {}", fault.path, fault.kind)))
}

/// What answers a class; `None` where nothing does.
fn proposal(
    (ledger, runs): (&Ledger, &WfRuns),
    request: &MetaRequest,
    (base, class, cases): (&WfRun, MetaClass, &[MetaCase]),
) -> Result<Option<Remedy>, SessionError> {
    let found = cases.iter().filter_map(|case| {
        let run = runs.by_id.get(&case.run)?;
        Some((case, run))
    });
    let found: Vec<(&MetaCase, &WfRun)> = found.collect();
    let shown: Vec<&WfRun> = found.iter().map(|(_, run)| *run).collect();
    let said = &base.said;
    let verifier = || read(Verifier::parse(said.verifier.as_str()));
    let of_verifier = |found: Lesson<Verifier>| Remedy {
        target: MetaTarget::Verifier,
        digests: (said.verifier_digest, found.document.digest()),
        document: found.document.document(),
        why: found.why,
    };
    Ok(match class {
        MetaClass::FalsePositive => {
            let mut right = Vec::new();
            for run in looked_at(runs, request) {
                right.extend(right_of(ledger, run)?);
            }
            let all = answers(ledger, request, &found)?.into_iter();
            let wrong = all.filter(|(_, worth)| *worth < 1_000_000);
            let wrong: Vec<ItemOutput> = wrong.map(|(of, _)| of).collect();
            let rules = &request.set.rules;
            lesson::stricter(&verifier()?, rules, (&right, &wrong)).map(of_verifier)
        }
        MetaClass::FalseNegative => {
            let all = answers(ledger, request, &found)?.into_iter();
            let useful = all.filter(|(_, worth)| *worth == 1_000_000);
            let useful: Vec<ItemOutput> = useful.map(|(of, _)| of).collect();
            lesson::looser(&verifier()?, &useful).map(of_verifier)
        }
        MetaClass::Stagnation => {
            let meta = read(MetaPrompt::parse(said.meta.as_str()))?;
            lesson::narrower(&meta, &shown).map(|found| Remedy {
                target: MetaTarget::Meta,
                digests: (said.meta_digest, found.document.digest()),
                document: found.document.document(),
                why: found.why,
            })
        }
        MetaClass::Slow => {
            let case = lesson::distilled(cases, &shown);
            let of = case.and_then(|case| runs.by_id.get(&case.run)?.candidate(&case.candidate));
            match of.and_then(|of| of.ir.as_ref()) {
                Some(ir) => {
                    let workflow = plan::workflow(ir.as_str()).map_err(RepairError::from)?;
                    Some(Remedy {
                        target: MetaTarget::Library,
                        digests: (said.program_digest, workflow.digest()),
                        document: workflow.document().clone(),
                        why: "The workflow that won, for runs to begin from.".to_owned(),
                    })
                }
                None => None,
            }
        }
    })
}

/// Whether an update may bring a document: it changes something, and none brought it before.
fn is_new(runs: &WfRuns, base: &WfRun, of: &Remedy) -> bool {
    let mut known = runs.updates.values();
    of.digests.0 != of.digests.1
        && !base.said.templates.contains(&of.digests.1)
        && !known.any(|update| update.said.new_digest == of.digests.1)
}

fn name<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<T, RepairError> {
    let parsed = text.parse();
    parsed.map_err(|error: T::Err| wrong("a shorter name of an update", error.to_string()))
}

/// The trigger and the update that the record calls for: of the first class that has enough cases and an answer.
///
/// # Errors
/// [`RepairError::NoLesson`]; [`RepairError::Request`] for items, executors and names that no trial can have.
pub fn plan(ledger: &Ledger, request: &MetaRequest) -> Result<MetaPlan, SessionError> {
    let runs = ledger.state().fold::<WfRuns>();
    let base = base(runs, request)?;
    free_items(runs, request, &|_| false, (request.pairs, "pairs"))?;
    executor(base)?;
    // What was learnt since is not blamed for what runs before it showed.
    let is_alike = |run: &WfRun| {
        let (of, as_is) = (&run.said, &base.said);
        of.context_digest == as_is.context_digest
            && of.program_digest == as_is.program_digest
            && of.templates == as_is.templates
            && of.meta_digest == as_is.meta_digest
            && of.verifier_digest == as_is.verifier_digest
    };
    for class in outer::CLASSES {
        let what = (class, request.useful);
        let cases = outer::cases_among(runs, &request.experiment, what, &is_alike);
        if cases.len() < CASES_MIN {
            continue;
        }
        let found = proposal((ledger, runs), request, (base, class, &cases))?;
        if let Some(found) = found.filter(|of| is_new(runs, base, of)) {
            return Ok(said_of(runs, request, (class, cases), &found)?);
        }
    }
    Err(RepairError::NoLesson(CASES_MIN).into())
}

fn said_of(
    runs: &WfRuns,
    request: &MetaRequest,
    (class, cases): (MetaClass, Vec<MetaCase>),
    found: &Remedy,
) -> Result<MetaPlan, RepairError> {
    let update = &request.update;
    let class_name = class.as_str().replace('_', "-");
    let trigger: TriggerId = name(&format!("{update}-{class_name}"))?;
    let pairs = (1..=request.pairs).map(|at| {
        let arm = |arm: &str| name::<RunId>(&format!("{update}-{at}-{arm}"));
        Ok(MetaPair {
            new: arm("new")?,
            old: arm("old")?,
        })
    });
    Ok(MetaPlan {
        trigger: MetaTriggered {
            cases,
            class,
            looked: count(runs.looked_at(&request.experiment).count() as u64),
            trigger: trigger.clone(),
            useful_micro: request.useful,
        },
        update: MetaUpdated {
            alpha_micro: request.alpha,
            document: words::document(&found.document)?,
            margin_micro: request.margin,
            new_digest: found.digests.1,
            pairs: pairs.collect::<Result<_, RepairError>>()?,
            parent_digest: found.digests.0,
            target: found.target,
            triggers: vec![trigger],
            update: update.clone(),
            useful_micro: request.useful,
            why: words::text(&found.why),
        },
    })
}

/// Items of trials, by place: the first ones of the set that no run has, but for those of the trials themselves. `wanted` is the
/// count of pairs or tasks, with its word.
pub(super) fn free_items(
    runs: &WfRuns,
    request: &MetaRequest,
    is_own: &dyn Fn(&RunId) -> bool,
    (count, word): (usize, &'static str),
) -> Result<Vec<usize>, RepairError> {
    let others = runs.by_id.values().filter(|run| !is_own(&run.said.run));
    let taken = others.flat_map(|run| run.said.items.iter().map(|of| of.input));
    let taken: std::collections::BTreeSet<Digest> = taken.collect();
    let wanted = count.saturating_mul(request.items);
    let all = request.set.items.iter().enumerate();
    let free = all.filter(|(_, item)| !taken.contains(&item.input_digest()));
    let free: Vec<usize> = free.map(|(at, _)| at).take(wanted).collect();
    if free.len() < wanted || wanted == 0 {
        let found = format!(
            "{} free items for {count} {word} of {} items",
            free.len(),
            request.items
        );
        return Err(wrong(
            "items that no run has, other ones for each pair or task",
            found,
        ));
    }
    Ok(free)
}

/// Items of a trial with their lines, as the simulator reads them.
pub(super) fn batch(request: &MetaRequest, places: &[usize]) -> (TaskSet, String) {
    let items = places.iter().map(|at| request.set.items[*at].clone());
    let set = TaskSet {
        items: items.collect(),
        ..request.set.clone()
    };
    let lines = places.iter().map(|at| format!("{}\n", request.lines[*at]));
    (set, lines.collect())
}

/// Refuses other items than those of a run that is open.
pub(super) fn check_batch(open: &WfRun, set: &TaskSet) -> Result<(), RepairError> {
    let inputs = open.said.items.iter().map(|of| of.input);
    if inputs.eq(set.items.iter().map(Item::input_digest)) {
        return Ok(());
    }
    let expected = "the task set and --items with which its first runs were opened";
    Err(wrong(expected, "other items"))
}

/// What answers in the trials: the simulator of the run that is changed.
pub(super) fn executor(base: &WfRun) -> Result<RequestedExecutor, RepairError> {
    let model = base.said.executor_model.as_str();
    let seed = model.strip_prefix(SIMULATOR);
    let seed = seed.and_then(|seed| seed.parse().ok());
    match (base.said.executor, seed) {
        (WfExecutor::Simulator, Some(seed)) => Ok(RequestedExecutor::Simulator(seed)),
        _ => Err(wrong(
            "runs by the simulator: others are not tried by pairs yet",
            model,
        )),
    }
}

fn document<T>(
    of: &WfDocument,
    parse: impl FnOnce(&str) -> Result<T, clover_flow::Fault>,
) -> Result<T, RepairError> {
    read(parse(of.as_str()))
}

/// The runs of an update that are not open yet, in the order of its pairs: each pair has items of its own.
///
/// # Errors
/// [`RepairError::NoUpdate`]; [`RepairError::Request`] where the tasks are not those of the runs that are open.
pub fn arms(ledger: &Ledger, request: &MetaRequest) -> Result<Vec<RepairRequest>, RepairError> {
    let runs = ledger.state().fold::<WfRuns>();
    let update = update_of(runs, &request.update)?;
    let base = base_of(runs, request, update)?;
    let said = &update.said;
    let mut all = Vec::new();
    let is_open = |id: &RunId| runs.by_id.contains_key(id);
    let mut names = said.pairs.iter().flat_map(|of| [&of.new, &of.old]);
    if names.all(is_open) {
        return Ok(all);
    }
    let is_own = |id: &RunId| {
        let mut pairs = said.pairs.iter();
        pairs.any(|of| of.new == *id || of.old == *id)
    };
    let free = free_items(runs, request, &is_own, (said.pairs.len(), "pairs"))?;
    for (pair, places) in said.pairs.iter().zip(free.chunks(request.items)) {
        let (set, lines) = batch(request, places);
        for (run, is_new) in [(&pair.new, true), (&pair.old, false)] {
            if let Some(open) = runs.by_id.get(run) {
                check_batch(open, &set)?;
                continue;
            }
            let set = (set.clone(), lines.clone());
            all.push(arm((base, update), request, (run, is_new), set)?);
        }
    }
    Ok(all)
}

/// The run whose documents an update changes: the newest of those that called for it.
pub(super) fn base_of<'r>(
    runs: &'r WfRuns,
    request: &MetaRequest,
    update: &MetaUpdate,
) -> Result<&'r WfRun, RepairError> {
    let triggers = update.said.triggers.iter();
    let cases = triggers.filter_map(|name| runs.triggers.get(name));
    let cases = cases.flat_map(|of| &of.cases);
    let shown = cases.filter_map(|of| runs.by_id.get(&of.run));
    let shown = shown.filter(|run| run.said.context_digest == request.set.context);
    let newest = shown.max_by_key(|run| run.seq);
    newest.ok_or_else(|| wrong("tasks of the context of its triggers", "another context"))
}

/// One run of a trial: of a pair, or of a cell.
pub(super) fn arm(
    (base, update): (&WfRun, &MetaUpdate),
    request: &MetaRequest,
    (run, is_new): (&RunId, bool),
    (set, lines): (TaskSet, String),
) -> Result<RepairRequest, RepairError> {
    let said = &base.said;
    let brought = |target: MetaTarget, parent: &'_ WfDocument| {
        let is_it = is_new && update.said.target == target;
        if is_it {
            update.said.document.clone()
        } else {
            parent.clone()
        }
    };
    let mut templates = said.templates.clone();
    if is_new && update.said.target == MetaTarget::Library {
        templates.push(update.said.new_digest);
    }
    let program = brought(MetaTarget::Program, &said.program);
    let salt = [request.salt.as_bytes().as_slice(), run.as_str().as_bytes()].concat();
    Ok(RepairRequest {
        run: run.clone(),
        experiment: update.experiment.clone(),
        context: request.context.clone(),
        set,
        lines,
        program: document(&program, Workflow::parse)?,
        templates,
        meta: document(&brought(MetaTarget::Meta, &said.meta), MetaPrompt::parse)?,
        verifier: document(
            &brought(MetaTarget::Verifier, &said.verifier),
            Verifier::parse,
        )?,
        terms: said.terms.clone(),
        cell: said.cell,
        executor: executor(base)?,
        part: WfPart::Validate,
        update: is_new.then(|| update.said.update.clone()),
        salt: Digest::sha256(&salt),
    })
}
