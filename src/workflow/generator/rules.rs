//! The rule `generator`: a run freezes what runs, asks no more than it registered, is validated once on labels that
//! are younger than it, and is rolled back unless everything passed. `schema/GENERATOR.md` says what it asks.

use std::fmt::Display;

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RunId;
use clover_event::payload::Verdict;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::generator::ArmsCompared;
use clover_event::payload::generator::GeneratorObjectiveQueried;
use clover_event::payload::generator::GeneratorRolledBack;
use clover_event::payload::generator::GeneratorRunOpened;
use clover_event::payload::generator::GeneratorValidated;
use clover_event::payload::generator::GeneratorVerdicts;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::Gaming;
use clover_event::payload::predicate::Thresholds;
use clover_ground::time::Timestamp;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::unmet;
use clover_num::Finite;
use clover_projection::assumptions::Assumptions;
use clover_projection::deployments::Deployment;
use clover_projection::deployments::Deployments;
use clover_projection::designs::Designs;
use clover_projection::generators::GeneratorRun;
use clover_projection::generators::Generators;
use clover_projection::generators::RunState;
use clover_projection::releases::STAKES_MICRO;
use clover_projection::rubrics::Rubrics;

use crate::deploy::word;
use crate::guardrails;
use crate::guardrails::LABELS_MIN;
use crate::predicate;
use crate::predicate::pass_if;
use crate::predicate::worst;
use crate::prompts;

/// Most questions of a run.
pub const STEPS_MAX: u64 = 10_000;

fn check_same(name: &str, wanted: &dyn Display, found: &dyn Display) -> RuleAnswer {
    let (wanted, found) = (wanted.to_string(), found.to_string());
    ensure!(wanted == found, format!("{name} {wanted}"), found);
    Ok(())
}

/// The rule `generator`.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorRule;

impl Rule for GeneratorRule {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let asked = GeneratorContext {
            state,
            experiment,
            now: event.recorded_at,
        };
        let checked = match &event.event.payload {
            Payload::GeneratorRunOpened(said) => asked.check_opened(said),
            Payload::GeneratorObjectiveQueried(said) => asked.check_queried(said),
            Payload::GeneratorValidated(said) => asked.check_validated(said),
            Payload::GeneratorRolledBack(said) => asked.check_rolled_back(said),
            _ => return,
        };
        breaches.take(RuleName::Generator, checked);
    }
}

struct GeneratorContext<'a> {
    state: &'a State,
    experiment: &'a ExperimentId,
    now: Timestamp,
}

impl<'a> GeneratorContext<'a> {
    fn runs(&self) -> &'a [GeneratorRun] {
        self.state.fold::<Generators>().of(self.experiment)
    }

    fn running(&self) -> Option<&'a Deployment> {
        let of = self.state.fold::<Deployments>().of(self.experiment);
        of.and_then(|of| of.running())
    }

    fn check_opened(&self, said: &GeneratorRunOpened) -> RuleAnswer {
        let Some(running) = self.running().filter(|of| of.id == said.deployment) else {
            let expected = format!("the running deployment of {}", self.experiment);
            return unmet(expected, said.deployment.to_string());
        };
        check_same("rubric_hash", &running.rubric_hash, &said.rubric_hash)?;
        check_same("calibrator", &running.versions.calibrator, &said.calibrator)?;
        check_same("frozen", &said.calibrator, &said.frozen)?;
        self.check_protocol(running)?;
        Self::check_terms(said)?;
        for run in self.runs() {
            let state = run.state();
            ensure!(
                matches!(state, RunState::Validated | RunState::RolledBack),
                "every run before to be validated or rolled back",
                format!("{}, {} since seq {}", run.run, state.as_str(), run.seq)
            );
        }
        Ok(())
    }

    /// A new protocol voids the calibrator that was frozen.
    fn check_protocol(&self, running: &Deployment) -> RuleAnswer {
        let assumptions = self.state.fold::<Assumptions>();
        let Some(force) = assumptions.sdp_in_force(self.now) else {
            // No protocol is in force, and so none voids it.
            return Ok(());
        };
        let runs = &running.versions.sdp_version;
        check_same("a deployment by protocol", &force.version, runs)
    }

    fn check_terms(said: &GeneratorRunOpened) -> RuleAnswer {
        ensure!(
            said.new != said.old,
            "two policies",
            format!("{} twice", said.new)
        );
        let steps = said.steps.value();
        ensure!(
            (1..=STEPS_MAX).contains(&steps),
            format!("1 to {STEPS_MAX} steps"),
            steps.to_string()
        );
        let stakes = said.stakes_micro;
        ensure!(
            (0..=1_000_000).contains(&stakes.value()),
            "stakes from 0 to 1",
            stakes.to_string()
        );
        Ok(())
    }

    /// A run of the experiment.
    fn run(&self, run: &RunId) -> Result<&'a GeneratorRun, Unmet> {
        let of = self.runs().iter().find(|of| of.run == *run);
        of.ok_or_else(|| Unmet {
            expected: format!("a generator.run_opened of {}", self.experiment),
            found: run.to_string(),
        })
    }

    /// A run that is open, under the deployment that it froze.
    fn open(&self, run: &RunId) -> Result<&'a GeneratorRun, Unmet> {
        let of = self.run(run)?;
        if of.state() != RunState::Open {
            return Err(Unmet {
                expected: "a run that is open".to_owned(),
                found: format!("{run}, {}", of.state().as_str()),
            });
        }
        let running = self.running();
        let Some(running) = running.filter(|now| now.id == of.deployment) else {
            return Err(Unmet {
                expected: format!("the frozen deployment, {}, to run", of.deployment),
                found: running.map_or("none".to_owned(), |now| now.id.to_string()),
            });
        };
        self.check_protocol(running)?;
        Ok(of)
    }

    fn check_queried(&self, said: &GeneratorObjectiveQueried) -> RuleAnswer {
        let run = self.open(&said.run)?;
        ensure!(
            run.used < run.steps,
            format!("a step left of {}", run.run),
            format!("{} of {} asked", run.used, run.steps)
        );
        ensure!(
            said.policy != run.old,
            "outputs of another policy than the old",
            run.old.to_string()
        );
        check_same("step", &(run.used + 1), &said.step)?;
        check_same("frozen", &run.frozen, &said.frozen)
    }

    /// The design is for audits, and younger than the run.
    fn check_fresh(&self, run: &GeneratorRun, design: &DesignId, labels: u64) -> RuleAnswer {
        let of = self.state.fold::<Designs>().design(self.experiment, design);
        let fresh = of.filter(|of| {
            let known = of.registered.as_ref();
            known.is_some_and(|of| of.seq > run.seq && of.purpose == DesignPurpose::Audit)
        });
        let given = fresh.map_or(0, |of| of.open + of.revealed);
        ensure!(
            given >= labels,
            format!(
                "{labels} open labels of {design}, for audits and registered after seq {}",
                run.seq
            ),
            given.to_string()
        );
        Ok(())
    }

    fn check_validated(&self, said: &GeneratorValidated) -> RuleAnswer {
        let run = self.open(&said.run)?;
        let thresholds = thresholds(self.state, self.experiment, run.deployment)
            .required("a rubric with the plan of an iteration")?;
        ensure!(
            said.thresholds == thresholds,
            "the thresholds of the plan",
            "others"
        );
        let labels = said.compared.new.rows.value() + said.compared.old.rows.value();
        let verdicts = verdicts(
            &said.compared,
            &said.transport,
            said.battery.as_ref(),
            &thresholds,
        );
        let overall = overall(self.state, self.experiment, self.now, run, verdicts);
        check_same("frozen", &run.frozen, &said.frozen)?;
        check_same("steps", &run.used, &said.steps)?;
        self.check_fresh(run, &said.design, labels)?;
        for ((name, wanted), (_, found)) in verdicts.each().into_iter().zip(said.verdicts.each()) {
            check_same(name, &word(wanted), &word(found))?;
        }
        check_same("verdict", &word(overall), &word(said.verdict))
    }

    fn check_rolled_back(&self, said: &GeneratorRolledBack) -> RuleAnswer {
        let run = self.run(&said.run)?;
        let shown = |id: Option<EventId>| id.map_or("none".to_owned(), |id| id.to_string());
        let validation = run.validated.map(|of| of.id);
        check_same("restored", &run.old, &said.restored)?;
        check_same("validation", &shown(validation), &shown(said.validation))
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
    transport: &EnvironmentTests,
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
    run: &GeneratorRun,
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
