//! The checkpoint of a run is held against prompt 0 on the clusters that the run kept for confirm, and promoted where the gate
//! says so. A person signs the plan of the gate; everything else follows from the record, and the same call goes on.

use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::id::PolicyId;
use clover_event::id::Root;
use clover_event::id::Text;
use clover_event::payload::decision::Outcome;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::experiment::ExperimentRegistered;
use clover_event::payload::gate::GateSource;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd_steps::SgdEnd;
use clover_ground::digest::Digest;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::gates::Gates;
use clover_projection::manifests::Manifests;
use clover_projection::sgd::SgdRun;
use clover_projection::sgd::SgdRuns;
use clover_projection::sgd::due::SgdDue;
use clover_projection::sgd::gate;
use clover_workflow::gates::steps::Confirm;
use clover_workflow::sgd::course::SgdCourse;

use crate::append;
use crate::error::SessionError;
use crate::gate::GateSetup;
use crate::gate::Observer;
use crate::gate::check;
use crate::gate::exposure;
use crate::gate::family;
use crate::gate::family::FamilyTerms;
use crate::gate::gate_step::GateStep;
use crate::gate::observe::Extent;
use crate::gate::open::UnitFile;
use crate::gate::plan;
use crate::gate::plan::FamilyShare;
use crate::gate::promote;
use crate::gate::steps;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Work;
use crate::sgd::SgdBench;
use crate::sgd::SgdError;
use crate::sgd::running::SgdRunning;

/// Units between two looks.
const LOOK_EVERY: u64 = 5;

/// What is due on the way to a promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromotionDue {
    /// No plan names the metric of the run.
    Plan,
    /// A plan stands that is not in force: its custodian has not countersigned it.
    Countersignature(ManifestId),
    /// The gate is opened, scored and decided.
    Decision(ManifestId),
    /// The gate was decided.
    Promotion(ManifestId, Outcome),
}

/// The plan of the gate of a run, as it is to be signed.
#[derive(Clone, Debug)]
pub struct PromotionPlan {
    /// Prompt 0.
    pub baseline: Digest,
    /// The checkpoint.
    pub candidate: Digest,
    /// What is claimed, in words.
    pub claim: String,
    /// The experiment of the gate: nobody scored in it.
    pub experiment: ExperimentId,
    /// Its name.
    pub gate: ManifestId,
    /// What stands for the judge.
    pub metric: Digest,
    /// Its place in its family.
    pub share: FamilyShare,
    /// Root over the clusters of confirm, and how many there are.
    pub units: (Root, u64),
}

/// How a gate of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEnd {
    /// Units that were observed.
    pub observed: u64,
    /// What it decided.
    pub outcome: Outcome,
}

fn checked(run: &SgdRun) -> Result<Digest, SgdError> {
    let name = run.said.run.clone();
    let (Some(chosen), Some(_), Some(SgdEnd::Completed)) =
        (&run.checkpoint, &run.test_read, run.end)
    else {
        if run.end == Some(SgdEnd::Person) {
            return Err(SgdError::Stopped(name));
        }
        let due = run.due().unwrap_or(SgdDue::Test);
        return Err(SgdError::NotDue { run: name, due });
    };
    if chosen.prompt_digest == run.said.prompt_digest {
        return Err(SgdError::Unchanged(name));
    }
    Ok(chosen.prompt_digest)
}

/// What is due on the way to a promotion of the checkpoint of a run.
///
/// # Errors
/// [`SgdError::NotDue`] before test was read, [`SgdError::Stopped`] where it never will be, [`SgdError::Unchanged`] where
/// prompt 0 is the checkpoint.
pub fn due(state: &State, run: &SgdRun) -> Result<PromotionDue, SgdError> {
    checked(run)?;
    let Some((id, record)) = gate::plan_of(state, run) else {
        return Ok(PromotionDue::Plan);
    };
    let id = id.clone();
    if record.in_force().is_none() {
        return Ok(PromotionDue::Countersignature(id));
    }
    let decided = state.fold::<Gates>().by_id.get(&id);
    let decided = decided.and_then(|gate| gate.decided.as_ref());
    Ok(match decided {
        Some(decided) => PromotionDue::Promotion(id, decided.outcome),
        None => PromotionDue::Decision(id),
    })
}

/// Holds the plan of a run's gate to what its promotion will ask, before any of confirm is scored.
///
/// # Errors
/// [`SgdError::VainPlan`] with the fields that stand in the way.
pub fn check_plan(state: &State, run: &SgdRun, id: &ManifestId) -> Result<(), SgdError> {
    let record = state.fold::<Manifests>().by_id.get(id);
    let version = record.and_then(|record| record.in_force());
    let Some(version) = version.filter(|_| run.confirm.is_empty()) else {
        return Ok(());
    };
    faultless(state, run, &version.manifest)
}

/// Holds a plan to the same before it is signed, where it names the metric of a run. A plan that its custodian countersigned
/// can no longer change what it tests.
///
/// # Errors
/// As [`check_plan`].
pub fn check_signed(state: &State, manifest: &Manifest) -> Result<(), SgdError> {
    gate::run_of_plan(state, manifest).map_or(Ok(()), |run| faultless(state, run, manifest))
}

fn faultless(state: &State, run: &SgdRun, manifest: &Manifest) -> Result<(), SgdError> {
    let gate = &manifest.manifest;
    match gate::plan_fault(state, run, (gate, manifest)) {
        None => Ok(()),
        Some((fields, unmet)) => Err(SgdError::VainPlan {
            fields,
            gate: gate.clone(),
            unmet: Box::new(unmet),
        }),
    }
}

/// Names of experiment, family and gate of a run's promotion, which hang on its own.
fn names(run: &SgdRun) -> Result<(ExperimentId, FamilyId, ManifestId), SgdError> {
    let name = &run.said.run;
    let long = || SgdError::LongName(name.clone());
    let confirm = format!("{name}-confirm");
    Ok((
        confirm.parse().map_err(|_| long())?,
        confirm.parse().map_err(|_| long())?,
        format!("{name}-gate").parse().map_err(|_| long())?,
    ))
}

/// Whether an experiment holds nothing but the gate of a run: nobody scores in it by hand.
pub fn is_of_gate(state: &State, experiment: &ExperimentId) -> bool {
    let mut runs = state.fold::<SgdRuns>().by_id.values();
    runs.any(|run| names(run).is_ok_and(|(of, ..)| of == *experiment))
}

fn text(words: &str) -> Text {
    Text::new(words).expect("BUG: a few words and an id are a text")
}

/// Whether [`plan`] appends nothing: what it registers and opens is there.
///
/// # Errors
/// [`SgdError::LongName`].
pub fn is_prepared(
    state: &State,
    run: &SgdRun,
    named: Option<&FamilyId>,
) -> Result<bool, SgdError> {
    let (experiment, own, _) = names(run)?;
    let is_registered = state
        .fold::<SgdRuns>()
        .experiments
        .contains_key(&experiment);
    let families = &state.fold::<Manifests>().families;
    Ok(is_registered && (named.is_some() || families.contains_key(&own)))
}

/// Prepares the gate of a run: its experiment is registered, and where no family is named one of its own is opened that may
/// err at a rate of `alpha`; then the plan can be signed.
///
/// # Errors
/// As [`due`]; no key; what the ledger and the family say.
pub fn plan(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    run: &SgdRun,
    (named, alpha): (Option<FamilyId>, Micro),
) -> Result<PromotionPlan, SessionError> {
    let candidate = checked(run)?;
    let (experiment, own, id) = names(run)?;
    let name = &run.said.run;
    let metric = gate::metric_digest(run);
    let metric = metric.ok_or_else(|| SgdError::NoRun(name.clone()))?;
    let state = ledger.state();
    if !state
        .fold::<SgdRuns>()
        .experiments
        .contains_key(&experiment)
    {
        let said = ExperimentRegistered {
            judges: None,
            policies: None,
            purpose: text(&format!(
                "Hold the checkpoint of run {name} against prompt 0"
            )),
            title: text(&format!("Confirm of run {name}")),
        };
        let command = Command::new(said, Some(experiment.clone()));
        let need = KeyNeed::runner(command.payload.kind());
        let signer = ports.signer(ledger.state(), need)?;
        append::append(ports, ledger, &[command], &signer)?;
    }
    let families = &ledger.state().fold::<Manifests>().families;
    if named.is_none() && !families.contains_key(&own) {
        let terms = FamilyTerms {
            alpha_micro: alpha,
            family: own.clone(),
            members_max: Count::new(1).unwrap_or_default(),
            membership: text(&format!("the gate of run {name}")),
            method: FamilyMethod::Spend,
        };
        family::open(ports, ledger, terms)?.append(ports, ledger)?;
    }
    let family = named.unwrap_or(own);
    let share = plan::family_share(ledger.state(), &id, Some(&family))?;
    Ok(PromotionPlan {
        baseline: run.said.prompt_digest,
        candidate,
        claim: format!(
            "The checkpoint of run {name} agrees more with the labels of confirm than prompt 0"
        ),
        experiment,
        gate: id,
        metric,
        share,
        units: (
            gate::confirm_root(run),
            gate::confirm_units(run).len() as u64,
        ),
    })
}

/// Opens the gate of a run where it is not, scores confirm under both prompts, observes the clusters in their order with looks
/// between, and decides. `None` where somebody asked to stop: the same call goes on.
///
/// # Errors
/// [`SgdError`]; no key; what the gate and the ledger say. What was said stands.
pub fn decide(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    id: &ManifestId,
) -> Result<Option<GateEnd>, SessionError> {
    ports.heed(true)?;
    let ended = decided(bench, ports, id);
    ports.heed(false)?;
    ended
}

fn decided(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    id: &ManifestId,
) -> Result<Option<GateEnd>, SessionError> {
    opened(bench, ports, id)?;
    let both = {
        let course = SgdCourse::of(bench.run()?).map_err(SgdError::from)?;
        let chosen = course.chosen().map_err(SgdError::from)?;
        [course.prompt0().clone(), chosen]
    };
    let rows = bench.run()?.count(SgdSplit::Confirm);
    for (at, prompt) in both.iter().enumerate() {
        let digest = prompt.digest();
        loop {
            let run = bench.run()?;
            let scored = run.confirm.get(&digest).map_or(0, Vec::len);
            if scored >= rows {
                break;
            }
            if ports.is_interrupted() {
                return Ok(None);
            }
            let done = (at * rows + scored) as u64;
            ports.progress(Work::Descending, done, 2 * rows as u64);
            SgdRunning::new(bench)?.scored_under(ports, SgdPart::Confirm, prompt)?;
        }
    }
    recorded(bench, ports, id)?;
    observed(bench, ports, id)
}

/// Opens the gate and exposes its units, each where it is not yet.
fn opened(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    id: &ManifestId,
) -> Result<(), SessionError> {
    let run = bench.run()?;
    check_plan(bench.ledger.state(), run, id)?;
    let units: Vec<_> = gate::confirm_units(run).into_iter().cloned().collect();
    let n = units.len() as u64;
    let is_open = bench.ledger.state().fold::<Gates>().by_id.contains_key(id);
    if !is_open {
        let file = UnitFile {
            confirm: Confirm {
                strata: None,
                units,
            },
            file: format!("confirm of {}", bench.id),
        };
        let setup = GateSetup::of(bench.ledger.state(), id, &file)?;
        let metric = setup.manifest().metric.as_ref();
        let metric = metric.map(|of| of.metric.clone());
        let metric = metric.ok_or_else(|| SgdError::NoRun(bench.id.clone()))?;
        let source = GateSource {
            design: None,
            judge: Some(judge()),
            metric,
        };
        setup.open(ports, &mut bench.ledger, vec![source])?;
    }
    let records = &bench.ledger.state().fold::<Manifests>().by_id;
    let exposed = records.get(id).map_or(0, |record| record.units);
    if exposed < n {
        let step = exposure::open(ports, &bench.ledger, (id, None))?;
        step.append(ports, &mut bench.ledger)?;
    }
    Ok(())
}

/// Whose values a gate of a run reads: they are computed, and nobody is asked.
fn judge() -> JudgeId {
    gate::METRIC.parse().expect("BUG: a word is an id")
}

/// Records what each unit is worth under each arm, where it does not stand.
fn recorded(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    id: &ManifestId,
) -> Result<(), SessionError> {
    let run = bench.run()?;
    let of = check::known(bench.ledger.state(), id)?;
    let experiment = of.gate.experiment.clone();
    let manifest = of.record.bound().map(|bound| &bound.manifest);
    let arms = manifest.into_iter().flat_map(|of| of.arms.iter().flatten());
    let judge = of.gate.sources.iter().find_map(|of| of.judge.clone());
    let judge = judge.ok_or_else(|| SgdError::NoRun(bench.id.clone()))?;
    let mut commands = Vec::new();
    for arm in arms {
        let policy = arm.id.as_str().parse::<PolicyId>();
        let policy = policy.map_err(|_| SgdError::NoRun(bench.id.clone()))?;
        for unit in gate::confirm_units(run) {
            let value = gate::agreement(run, arm.artifact_digest, unit);
            let score_micro = value.ok_or_else(|| SgdError::OtherArms(id.clone()))?;
            let said = ScoreRecorded {
                call: None,
                draw: Count::default(),
                item: unit.clone(),
                judge: judge.clone(),
                policy: policy.clone(),
                prompt: None,
                response: None,
                score_micro,
            };
            commands.push(Command::new(said, experiment.clone()));
        }
    }
    let need = KeyNeed::scorer(clover_event::Kind::ScoreRecorded);
    let signer = ports.signer(bench.ledger.state(), need)?;
    append::append(ports, &mut bench.ledger, &commands, &signer)?;
    Ok(())
}

/// Observes units in their order, looks every few of them until something is shown, and decides.
fn observed(
    bench: &mut SgdBench,
    ports: &mut dyn Ports,
    id: &ManifestId,
) -> Result<Option<GateEnd>, SessionError> {
    loop {
        let gate = check::known(bench.ledger.state(), id)?;
        let (n, units) = (gate.gate.n, gate.record.units);
        if gate.gate.is_terminal() {
            break;
        }
        let looked = gate.gate.look.as_ref().is_some_and(|look| look.n == n);
        if looked && n >= units {
            break;
        }
        if n < units {
            let extent = Extent {
                missing: false,
                through: Some((n / LOOK_EVERY + 1).saturating_mul(LOOK_EVERY).min(units)),
            };
            let observer = Observer::of(&bench.ledger, id)?;
            observer.observe(ports, &mut bench.ledger, (extent, None))?;
        }
        let gate = check::known(bench.ledger.state(), id)?.gate;
        let looked = gate.look.as_ref().is_some_and(|look| look.n == gate.n);
        if !looked && !gate.is_terminal() {
            let look = steps::look(ports, &bench.ledger, id)?;
            look.append(ports, &mut bench.ledger)?;
        }
        if ports.is_interrupted() {
            return Ok(None);
        }
    }
    let step = steps::decide(ports, &bench.ledger, id)?;
    step.append(ports, &mut bench.ledger)?;
    let observed = check::known(bench.ledger.state(), id)?.gate.n;
    Ok(Some(GateEnd {
        observed,
        outcome: step.terms.outcome,
    }))
}

/// The promotion of the checkpoint of a run on decided gates.
///
/// # Errors
/// As [`due`], and what the gates say.
pub fn promote(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    run: &SgdRun,
    (first, others): (&ManifestId, &[ManifestId]),
) -> Result<GateStep<PromotionIssued>, SessionError> {
    checked(run)?;
    promote::promote(ports, ledger, (first, others), None)
}

/// Appends a promotion.
///
/// # Errors
/// What the ledger says; nothing was appended then.
pub fn issued(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    step: &GateStep<PromotionIssued>,
) -> Result<Vec<AppendedEvent>, SessionError> {
    step.append(ports, ledger)
}
