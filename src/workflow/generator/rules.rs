//! The rule `generator`: a run freezes what runs, asks no more than it registered, is validated once on labels that
//! are younger than it, and is rolled back unless everything passed. `schema/GENERATOR.md` says what it asks.

use std::fmt::Display;

use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::id::RunId;
use crate::event::payload::Verdict;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::generator::ArmsCompared;
use crate::event::payload::generator::GeneratorObjectiveQueried;
use crate::event::payload::generator::GeneratorRolledBack;
use crate::event::payload::generator::GeneratorRunOpened;
use crate::event::payload::generator::GeneratorValidated;
use crate::event::payload::generator::GeneratorVerdicts;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::Gaming;
use crate::event::payload::predicate::Thresholds;
use crate::event::payload::predicate::Transported;
use crate::ground::time::Timestamp;
use crate::ledger::Breach;
use crate::ledger::Candidate;
use crate::ledger::Judged;
use crate::ledger::Rule;
use crate::ledger::RuleName;
use crate::ledger::State;
use crate::ledger::no;
use crate::num::Finite;
use crate::projection::assumptions::Assumptions;
use crate::projection::deployments::Deployment;
use crate::projection::deployments::Deployments;
use crate::projection::designs::Designs;
use crate::projection::generators::Generators;
use crate::projection::generators::Run;
use crate::projection::generators::RunState;
use crate::projection::releases::STAKES_MICRO;
use crate::projection::rubrics::Rubrics;
use crate::workflow::deploy::word;
use crate::workflow::guardrails;
use crate::workflow::guardrails::LABELS_MIN;
use crate::workflow::predicate;
use crate::workflow::predicate::pass_if;
use crate::workflow::predicate::worst;
use crate::workflow::prompts;

/// Most questions of a run.
pub const STEPS_MAX: u64 = 10_000;

fn unless(name: &str, wanted: &dyn Display, found: &dyn Display) -> Judged {
    let (wanted, found) = (wanted.to_string(), found.to_string());
    (wanted != found).then(|| (format!("{name} {wanted}"), found))
}

/// The rule `generator`.
#[derive(Clone, Copy, Debug)]
pub struct Generating;

impl Rule for Generating {
    fn judge(&self, state: &State, event: &Candidate<'_>, breaches: &mut Vec<Breach>) {
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let asked = Asked {
            state,
            experiment,
            now: event.recorded_at,
        };
        let found = match &event.event.payload {
            Payload::GeneratorRunOpened(said) => asked.opened(said),
            Payload::GeneratorObjectiveQueried(said) => asked.queried(said),
            Payload::GeneratorValidated(said) => asked.validated(said),
            Payload::GeneratorRolledBack(said) => asked.rolled_back(said),
            _ => None,
        };
        breaches
            .extend(found.map(|(wanted, found)| Breach::new(RuleName::Generator, wanted, found)));
    }
}

struct Asked<'a> {
    state: &'a State,
    experiment: &'a ExperimentId,
    now: Timestamp,
}

impl<'a> Asked<'a> {
    fn runs(&self) -> &'a [Run] {
        self.state.fold::<Generators>().of(self.experiment)
    }

    fn running(&self) -> Option<&'a Deployment> {
        let of = self.state.fold::<Deployments>().of(self.experiment);
        of.and_then(|of| of.running())
    }

    fn opened(&self, said: &GeneratorRunOpened) -> Judged {
        let Some(running) = self.running().filter(|of| of.id == said.deployment) else {
            let expected = format!("the running deployment of {}", self.experiment);
            return no(expected, said.deployment.to_string());
        };
        unless("rubric_hash", &running.rubric_hash, &said.rubric_hash)
            .or_else(|| unless("calibrator", &running.versions.calibrator, &said.calibrator))
            .or_else(|| unless("frozen", &said.calibrator, &said.frozen))
            .or_else(|| self.protocol(running))
            .or_else(|| Self::terms(said))
            .or_else(|| {
                let over = [RunState::Validated, RunState::RolledBack];
                let mut runs = self.runs().iter();
                let one = runs.find(|of| !over.contains(&of.state()))?;
                let found = format!(
                    "{}, {} since seq {}",
                    one.run,
                    one.state().as_str(),
                    one.seq
                );
                no("every run before to be validated or rolled back", found)
            })
    }

    /// A new protocol voids the calibrator that was frozen.
    fn protocol(&self, running: &Deployment) -> Judged {
        let force = self.state.fold::<Assumptions>().sdp_in_force(self.now)?;
        let runs = &running.versions.sdp_version;
        unless("a deployment by protocol", &force.version, runs)
    }

    fn terms(said: &GeneratorRunOpened) -> Judged {
        if said.new == said.old {
            return no("two policies", format!("{} twice", said.new));
        }
        let steps = said.steps.value();
        if !(1..=STEPS_MAX).contains(&steps) {
            return no(format!("1 to {STEPS_MAX} steps"), steps.to_string());
        }
        let stakes = said.stakes_micro;
        (!(0..=1_000_000).contains(&stakes.value()))
            .then(|| ("stakes from 0 to 1".to_owned(), stakes.to_string()))
    }

    /// A run that is open, under the deployment that it froze.
    fn open(&self, run: &RunId) -> Result<&'a Run, (String, String)> {
        let Some(of) = self.runs().iter().find(|of| of.run == *run) else {
            let expected = format!("a generator.run_opened of {}", self.experiment);
            return Err((expected, run.to_string()));
        };
        if of.state() != RunState::Open {
            let found = format!("{run}, {}", of.state().as_str());
            return Err(("a run that is open".to_owned(), found));
        }
        let running = self.running();
        let Some(running) = running.filter(|now| now.id == of.deployment) else {
            let found = running.map_or("none".to_owned(), |now| now.id.to_string());
            return Err((
                format!("the frozen deployment, {}, to run", of.deployment),
                found,
            ));
        };
        self.protocol(running).map_or(Ok(of), Err)
    }

    fn queried(&self, said: &GeneratorObjectiveQueried) -> Judged {
        let run = match self.open(&said.run) {
            Ok(run) => run,
            Err(found) => return Some(found),
        };
        if run.used >= run.steps {
            let found = format!("{} of {} asked", run.used, run.steps);
            return no(format!("a step left of {}", run.run), found);
        }
        if said.policy == run.old {
            return no(
                "outputs of another policy than the old",
                run.old.to_string(),
            );
        }
        unless("step", &(run.used + 1), &said.step)
            .or_else(|| unless("frozen", &run.frozen, &said.frozen))
    }

    /// The design is for audits, and younger than the run.
    fn fresh(&self, run: &Run, design: &DesignId, labels: u64) -> Judged {
        let of = self.state.fold::<Designs>().design(self.experiment, design);
        let fresh = of.filter(|of| {
            let known = of.registered.as_ref();
            known.is_some_and(|of| of.seq > run.seq && of.purpose == DesignPurpose::Audit)
        });
        let given = fresh.map_or(0, |of| of.open + of.revealed);
        (given < labels).then(|| {
            let expected = format!(
                "{labels} open labels of {design}, for audits and registered after seq {}",
                run.seq
            );
            (expected, given.to_string())
        })
    }

    fn validated(&self, said: &GeneratorValidated) -> Judged {
        let run = match self.open(&said.run) {
            Ok(run) => run,
            Err(found) => return Some(found),
        };
        let Some(thresholds) = thresholds(self.state, self.experiment, run.deployment) else {
            return no("a rubric with the plan of an iteration", "none");
        };
        if said.thresholds != thresholds {
            return no("the thresholds of the plan", "others");
        }
        let labels = said.compared.new.rows.value() + said.compared.old.rows.value();
        let verdicts = verdicts(
            &said.compared,
            &said.transport,
            said.battery.as_ref(),
            &thresholds,
        );
        let overall = overall(self.state, self.experiment, self.now, run, verdicts);
        let pairs = verdicts.each().into_iter().zip(said.verdicts.each());
        unless("frozen", &run.frozen, &said.frozen)
            .or_else(|| unless("steps", &run.used, &said.steps))
            .or_else(|| self.fresh(run, &said.design, labels))
            .or_else(|| {
                pairs.into_iter().find_map(|((name, wanted), (_, found))| {
                    unless(name, &word(wanted), &word(found))
                })
            })
            .or_else(|| unless("verdict", &word(overall), &word(said.verdict)))
    }

    fn rolled_back(&self, said: &GeneratorRolledBack) -> Judged {
        let Some(run) = self.runs().iter().find(|of| of.run == said.run) else {
            let expected = format!("a generator.run_opened of {}", self.experiment);
            return no(expected, said.run.to_string());
        };
        let shown = |id: Option<EventId>| id.map_or("none".to_owned(), |id| id.to_string());
        let validation = run.validated.map(|of| of.id);
        unless("restored", &run.old, &said.restored)
            .or_else(|| unless("validation", &shown(validation), &shown(said.validation)))
    }
}

/// What the checks of a run are held to: the numbers that guardrails of its deployment are held to.
pub fn thresholds(
    state: &State,
    experiment: &ExperimentId,
    deployment: EventId,
) -> Option<Thresholds> {
    let of = state.fold::<Deployments>().of(experiment)?;
    let commit = of.deployment(deployment)?.commit;
    let registered = state.fold::<Rubrics>().of_id(experiment, commit)?;
    let plan = prompts::plan_told(state, experiment, registered)?;
    Some(guardrails::thresholds(plan))
}

/// What each check says: a gain whose lower bound is above 0 on 40 labels of each policy, transport as gate P6, and
/// the battery as gate P7.
pub fn verdicts(
    compared: &ArmsCompared,
    transport: &Transported,
    battery: Option<&Gaming>,
    held: &Thresholds,
) -> GeneratorVerdicts {
    let gate = |evidence| predicate::verdicts(&evidence, held).recommended;
    let enough = [compared.new, compared.old];
    let enough = enough.iter().all(|arm| arm.rows.value() >= LABELS_MIN);
    let gain = match compared.lower.map(Finite::value) {
        Some(lower) if enough => pass_if(lower > 0.0),
        _ => Verdict::Inconclusive,
    };
    GeneratorVerdicts {
        battery: battery.map_or(Verdict::NotChecked, |of| gate(Evidence::P7(of.clone()))),
        gain,
        transport: gate(Evidence::P6(transport.clone())),
    }
}

/// What all of it comes to: the worst. A battery that nobody could run counts only under a waiver of ADV that is in
/// force, and never at stakes of 0.7 or more.
pub fn overall(
    state: &State,
    experiment: &ExperimentId,
    now: Timestamp,
    run: &Run,
    said: GeneratorVerdicts,
) -> Verdict {
    let row = state
        .fold::<Assumptions>()
        .row(Assumption::Adv, Some(experiment));
    let granted = row.and_then(|row| row.granted.as_ref());
    let waived = granted.is_some_and(|of| of.agreed.is_some() && now < of.expires_at);
    let battery = match said.battery {
        Verdict::NotChecked if waived && run.stakes < STAKES_MICRO => Verdict::Pass,
        other => other,
    };
    worst([battery, said.gain, said.transport])
}
