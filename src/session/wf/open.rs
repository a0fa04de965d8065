//! A run is opened: everything that it is held to is on record before its first execution.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::id::UpdateId;
use clover_event::payload::Role;
use clover_event::payload::meta::MetaTarget;
use clover_event::payload::meta::MetaVerdict;
use clover_event::payload::repair::WF_ITEMS_MAX;
use clover_event::payload::repair::WfCell;
use clover_event::payload::repair::WfDocument;
use clover_event::payload::repair::WfExecutor;
use clover_event::payload::repair::WfItem;
use clover_event::payload::repair::WfOptimizer;
use clover_event::payload::repair::WfPart;
use clover_event::payload::repair::WfRunStarted;
use clover_event::payload::repair::WfStrength;
use clover_event::payload::repair::WfTerms;
use clover_flow::Workflow;
use clover_flow::repair::charter::MetaPrompt;
use clover_flow::repair::charter::Verifier;
use clover_flow::task::TaskSet;
use clover_flow::value::Data;
use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::wf::WfRuns;
use clover_projection::wf::learnt;
use clover_projection::wf::rules;
use clover_workflow::estimate::compute::blob;
use clover_workflow::iterate::steps::BUILD;
use clover_workflow::wf::course;
use clover_workflow::wf::execution::LINES;
use clover_workflow::wf::truth;
use clover_workflow::wf::words;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::Ports;
use crate::wf::RepairError;
use crate::wf::files::RunFiles;
use crate::wf::meta_plan::update_of;
use crate::wf::need;

/// How the model of the simulator is called; its seed follows.
pub const SIMULATOR: &str = "simulator/1 seed ";

/// What answers for the model.
#[derive(Clone, Debug)]
pub enum RequestedExecutor {
    /// The simulator, with a seed; items of the set say what it knows.
    Simulator(u64),
    /// Recorded answers, and what answered them in words.
    Table(String, String),
}

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct RepairRequest {
    /// Its name.
    pub run: RunId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The first line of the task set.
    pub context: Data,
    /// The task set that it adapts to.
    pub set: TaskSet,
    /// Lines of the items, as the simulator reads them.
    pub lines: String,
    /// The first program.
    pub program: Workflow,
    /// Templates of the library.
    pub templates: Vec<Digest>,
    /// Which edits are allowed.
    pub meta: MetaPrompt,
    /// How candidates are judged.
    pub verifier: Verifier,
    /// How it goes.
    pub terms: WfTerms,
    /// Its cell.
    pub cell: WfCell,
    /// What answers for the model.
    pub executor: RequestedExecutor,
    /// What it is for.
    pub part: WfPart,
    /// The update that it tries.
    pub update: Option<UpdateId>,
    /// What the commitment to the truth is salted with.
    pub salt: Digest,
}

fn document(of: &Data) -> Result<WfDocument, SessionError> {
    Ok(words::document(of).map_err(RepairError::from)?)
}

fn items(set: &TaskSet) -> Result<Vec<WfItem>, RepairError> {
    if !(1..=WF_ITEMS_MAX).contains(&set.items.len()) {
        return Err(RepairError::Request {
            expected: "1 to 50 items",
            found: set.items.len().to_string(),
        });
    }
    let items = set.items.iter().map(|item| {
        let id = item.id.parse().map_err(|error| RepairError::Request {
            expected: "an id for each item",
            found: format!("{:?}: {error}", item.id),
        })?;
        let input = item.input_digest();
        Ok(WfItem { id, input })
    });
    items.collect()
}

/// Refuses items that nothing answers, and truths that no score can be made of.
fn check_items(request: &RepairRequest) -> Result<(), RepairError> {
    let items = &request.set.items;
    let simulated = matches!(request.executor, RequestedExecutor::Simulator(_));
    if let Some(item) = items.iter().find(|item| item.model.is_none())
        && simulated
    {
        return Err(RepairError::Request {
            expected: "sim in every item, for the simulator",
            found: format!("item {:?} without it", item.id),
        });
    }
    let silent = items.iter().find(|item| item.truth.is_none());
    if let Some(item) = silent
        && items.iter().any(|item| item.truth.is_some())
    {
        return Err(RepairError::Request {
            expected: "what is right of every item, or of none",
            found: format!("item {:?} without truth", item.id),
        });
    }
    Ok(())
}

/// Has a run begin from what an update brought.
///
/// # Errors
/// [`RepairError::NoUpdate`]; [`RepairError::NotPassed`] for one that is not in force.
pub fn begin_from(
    state: &State,
    id: &UpdateId,
    request: &mut RepairRequest,
) -> Result<(), RepairError> {
    let update = update_of(state.fold::<WfRuns>(), id)?;
    let validated = update.validated.as_ref();
    if validated.is_none_or(|of| of.verdict != MetaVerdict::Pass) {
        return Err(RepairError::NotPassed(id.clone()));
    }
    let text = update.said.document.as_str();
    let wrong = |fault: clover_flow::Fault| RepairError::Request {
        expected: "a document of the update",
        found: format!("{}: {}", fault.path, fault.kind),
    };
    match update.said.target {
        MetaTarget::Verifier => request.verifier = Verifier::parse(text).map_err(wrong)?,
        MetaTarget::Meta => request.meta = MetaPrompt::parse(text).map_err(wrong)?,
        MetaTarget::Program => request.program = Workflow::parse(text).map_err(wrong)?,
        MetaTarget::Library => request.templates.push(update.said.new_digest),
    }
    Ok(())
}

/// A run as it would be opened by these keys: the optimizer's, the verifier's. With it the lines of its inputs.
///
/// # Errors
/// [`RepairError::Taken`], [`RepairError::Request`].
pub fn plan(
    ledger: &Ledger,
    request: &RepairRequest,
    (optimizer_key, verifier_key): (KeyId, KeyId),
) -> Result<(WfRunStarted, Vec<u8>), SessionError> {
    let runs = ledger.state().fold::<WfRuns>();
    if runs.by_id.contains_key(&request.run) {
        return Err(RepairError::Taken(request.run.clone()).into());
    }
    check_items(request)?;
    let lines: String = request
        .set
        .items
        .iter()
        .map(clover_flow::item::Item::input_line)
        .collect();
    let inputs = lines.into_bytes();
    let (executor, executor_model) = match &request.executor {
        RequestedExecutor::Simulator(seed) => (WfExecutor::Simulator, format!("{SIMULATOR}{seed}")),
        RequestedExecutor::Table(_, model) => (WfExecutor::Table, model.clone()),
    };
    let optimizer_model = match request.cell.optimizer {
        WfStrength::Strong => course::TEMPLATES,
        WfStrength::Weak => course::TEMPLATES_WEAK,
    };
    let right = truth::lines(&request.set.items).unwrap_or_default();
    let seed = rules::seed_of(ledger.state(), &request.experiment, &request.run);
    let seed = seed.ok_or_else(|| RepairError::Request {
        expected: "an experiment that is registered",
        found: request.experiment.to_string(),
    })?;
    let mut said = WfRunStarted {
        build: words::text(BUILD),
        cell: request.cell,
        context: document(&request.context)?,
        context_digest: request.set.context,
        executor,
        executor_model: words::text(&executor_model),
        inputs: blob(&inputs, LINES),
        items: items(&request.set)?,
        meta: document(&request.meta.document())?,
        meta_digest: request.meta.digest(),
        optimizer: WfOptimizer::Templates,
        optimizer_key,
        optimizer_model: words::text(optimizer_model),
        part: request.part,
        program: document(request.program.document())?,
        program_digest: request.program.digest(),
        run: request.run.clone(),
        seed,
        templates: request.templates.clone(),
        terms: request.terms.clone(),
        truth: truth::commitment(&request.salt, right.as_bytes()),
        update: request.update.clone(),
        verifier: document(&request.verifier.document())?,
        verifier_digest: request.verifier.digest(),
        verifier_key,
    };
    said.cell.outer = learnt::has_learnt(runs, &said);
    Ok((said, inputs))
}

/// Opens a run. What answers for its model and what is right are kept in private files before anything is said.
///
/// # Errors
/// [`RepairError`]; no key; what the ledger says.
pub fn open(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    request: &RepairRequest,
) -> Result<AppendedEvent, SessionError> {
    let mut key = |kind| ports.signer(ledger.state(), need(kind));
    let optimizer = key(Kind::WfCandidateAdded)?.id();
    let verifier = key(Kind::WfFeedbackGiven)?.id();
    let registrar = key(Kind::WfRunStarted)?;
    let custodians = ledger.state().keyring.live_with(Role::Custodian);
    let custodians: Vec<KeyId> = custodians.map(|(id, _)| *id).collect();
    if let (true, Some(first)) = (
        custodians
            .iter()
            .all(|id| *id == optimizer || *id == verifier),
        custodians.first(),
    ) {
        return Err(RepairError::OneKey(*first).into());
    }
    let (said, inputs) = plan(ledger, request, (optimizer, verifier))?;
    let files = RunFiles::of(home, &said.run, &said.truth);
    files.keep_answers(match &request.executor {
        RequestedExecutor::Simulator(_) => &request.lines,
        RequestedExecutor::Table(lines, _) => lines,
    })?;
    let right = truth::lines(&request.set.items).unwrap_or_default();
    files.keep_truth(&request.salt, &right)?;
    let command = Command::new(said, Some(request.experiment.clone()));
    let appended = append::append_with(ports, ledger, &[command], &registrar, &[inputs])?;
    let first = appended.into_iter().next();
    first.ok_or_else(|| RepairError::NoRun(request.run.clone()).into())
}
