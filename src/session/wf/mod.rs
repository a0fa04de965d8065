//! Runs that repair a workflow without ground truth: opened with everything they are held to, gone through until they end,
//! and only then scored by what is right. Everything is on record before the next step, so a run that was cut goes on.

pub mod crossed;
pub mod error;
pub mod files;
mod many;
pub mod meta;
pub mod meta_plan;
pub mod open;
pub mod pair;
pub mod running;
pub mod score;

use std::collections::BTreeMap;
use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::RunId;
use clover_event::payload::Role;
use clover_event::payload::repair::WfExecuted;
use clover_event::registry::Signers;
use clover_flow::RunOutcome;
use clover_ground::digest::Digest;
use clover_ground::sign::Signer;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::History as _;
use clover_ledger::Ledger;
use clover_ledger::RequiredFact as _;
use clover_ledger::State;
use clover_projection::reader::LogReader;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_workflow::wf::course;
use clover_workflow::wf::execution;
use clover_workflow::wf::plan::RepairPlan;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Seat;

pub use error::RepairError;

/// One run on the table.
pub struct RepairBench {
    /// The ledger's folder.
    pub home: Home,
    /// The ledger.
    pub ledger: Ledger,
    /// The run.
    pub id: RunId,
    plan: RepairPlan,
    signers: BTreeMap<Kind, Arc<Signer>>,
    /// Of many runs: steps that are done, and all of them. Their progress takes the place of its own.
    whole: Option<(u64, u64)>,
    /// Of each candidate, of each item, its executions.
    outcomes: BTreeMap<Digest, Vec<Vec<RunOutcome>>>,
}

impl std::fmt::Debug for RepairBench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RepairBench({})", self.id)
    }
}

/// A run by its name.
///
/// # Errors
/// [`RepairError::NoRun`].
pub fn found<'a>(state: &'a State, id: &RunId) -> Result<&'a WfRun, RepairError> {
    let run = state.fold::<WfRuns>().by_id.get(id);
    run.ok_or_else(|| RepairError::NoRun(id.clone()))
}

/// Whose key signs an event of a run.
pub(crate) fn need(kind: Kind) -> KeyNeed<'static> {
    match kind.signers() {
        Signers::Role(Role::Optimizer) => KeyNeed::of(Seat::Optimizer, kind),
        Signers::Role(Role::Custodian) => KeyNeed::of(Seat::Custodian, kind),
        _ => KeyNeed::by_kind(kind),
    }
}

/// What a run is held to, with the items that its ledger stores.
///
/// # Errors
/// [`RepairError::Course`] where a document of it is none, and when the ledger cannot be read.
pub fn plan_of(ledger: &Ledger, run: &WfRun) -> Result<RepairPlan, SessionError> {
    let inputs = ledger.blob(&run.said.inputs.blake3)?;
    let inputs = inputs
        .required("the items of the run")
        .map_err(RepairError::from)?;
    let plan = RepairPlan::with_items(&run.said, &inputs);
    Ok(plan.map_err(RepairError::from)?)
}

/// What executions of a run came to among the first `size` entries, by candidate, then by item, from the answers on record.
///
/// # Errors
/// [`RepairError::Course`] where an answer is missing, and when the log cannot be read.
pub fn outcomes_of(
    (ledger, size): (&Ledger, u64),
    run: &WfRun,
    plan: &RepairPlan,
    wanted: &dyn Fn(&Digest) -> bool,
) -> Result<BTreeMap<Digest, Vec<Vec<RunOutcome>>>, SessionError> {
    let id = &run.said.run;
    let entries = LogReader::below(ledger, size).of(&run.experiment);
    let all = entries.all::<WfExecuted>(|of| of.run == *id && wanted(&of.candidate))?;
    let mut found: BTreeMap<Digest, Vec<Vec<RunOutcome>>> = BTreeMap::new();
    for executed in all {
        let said = executed.said;
        let answers = match &said.answers {
            Some(of) => ledger.blob(&of.blake3)?,
            None => Some(Vec::new()),
        };
        let answers = answers.required("answers that the ledger stores");
        let answers = answers.map_err(RepairError::from)?;
        let at = usize::try_from(said.item.value()).unwrap_or(usize::MAX);
        let item = plan.set.items.get(at).required("an item of the run");
        let item = item.map_err(RepairError::from)?;
        let workflow = course::workflow(run, &said.candidate).map_err(RepairError::from)?;
        let outcome = execution::again((&workflow, item), said.rerun.value(), &answers);
        let of = found.entry(said.candidate).or_default();
        of.resize(of.len().max(at + 1), Vec::new());
        of[at].push(outcome.map_err(RepairError::from)?);
    }
    Ok(found)
}

impl RepairBench {
    /// A run of an open ledger.
    ///
    /// # Errors
    /// [`RepairError::NoRun`]; a plan that cannot be read.
    pub fn new(home: Home, ledger: Ledger, id: RunId) -> Result<Self, SessionError> {
        let plan = plan_of(&ledger, found(ledger.state(), &id)?)?;
        Ok(Self {
            home,
            ledger,
            id,
            plan,
            signers: BTreeMap::new(),
            whole: None,
            outcomes: BTreeMap::new(),
        })
    }

    /// As one of many runs, of which so many steps of all are done.
    #[must_use]
    pub(crate) fn among(mut self, whole: (u64, u64)) -> Self {
        self.whole = Some(whole);
        self
    }

    /// The run as it stands.
    ///
    /// # Errors
    /// [`RepairError::NoRun`].
    pub fn run(&self) -> Result<&WfRun, RepairError> {
        found(self.ledger.state(), &self.id)
    }

    /// The run as the log has it, once it has ended.
    ///
    /// # Errors
    /// [`RepairError::NoRun`]; [`RepairError::NotDue`] before its end.
    fn ended(&self) -> Result<&WfRun, RepairError> {
        let run = self.run()?;
        if run.end.is_some() {
            return Ok(run);
        }
        Err(RepairError::NotDue {
            run: self.id.clone(),
            due: run.due(),
        })
    }

    /// What it is held to.
    pub fn plan(&self) -> &RepairPlan {
        &self.plan
    }

    /// Says something of the run, by whoever may, with the blobs that it names: all of it stands, or nothing.
    ///
    /// # Errors
    /// No key, or what the ledger says; nothing was appended then.
    pub(crate) fn say(
        &mut self,
        ports: &mut dyn Ports,
        payloads: Vec<Payload>,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<AppendedEvent>, SessionError> {
        let Some(first) = payloads.first() else {
            return Ok(Vec::new());
        };
        let kind = first.kind();
        let experiment = self.run()?.experiment.clone();
        let signer = if let Some(signer) = self.signers.get(&kind) {
            Arc::clone(signer)
        } else {
            let signer = ports.signer(self.ledger.state(), need(kind))?;
            self.signers.insert(kind, Arc::clone(&signer));
            signer
        };
        let commands = payloads.into_iter();
        let commands = commands.map(|payload| Command::new(payload, Some(experiment.clone())));
        let commands: Vec<Command> = commands.collect();
        append::append_with(ports, &mut self.ledger, &commands, &signer, blobs)
    }

    /// What executions of a candidate came to, by item.
    ///
    /// # Errors
    /// As [`outcomes_of`].
    pub(crate) fn outcomes(&mut self, id: &Digest) -> Result<&[Vec<RunOutcome>], SessionError> {
        let run = self.run()?;
        let all = run.candidate(id).map_or(0, |of| of.executions.len());
        let here = self.outcomes.get(id);
        let here = here.map_or(0, |of| of.iter().map(Vec::len).sum());
        if here < all {
            let read = outcomes_of((&self.ledger, self.ledger.size()), run, &self.plan, &|of| {
                of == id
            })?;
            self.outcomes.extend(read);
        }
        Ok(self.outcomes.get(id).map_or(&[][..], Vec::as_slice))
    }
}
