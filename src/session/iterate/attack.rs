//! The battery under a rubric: stored responses are edited, read and judged anew, and what came of it goes on record.

use std::cell::RefCell;
use std::collections::BTreeMap;

use clover_attack::Chain;
use clover_attack::search::TRIES_DEFAULT;
use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::payload::Role;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::predicate::Gaming;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::AppendedEvent;
use clover_ledger::Ledger;
use clover_num::Micro;
use clover_projection::batteries::Batteries;
use clover_rubric::Patch;
use clover_rubric::extract::recorded::Facts;
use clover_workflow::battery::Seed;
use clover_workflow::battery::measured;
use clover_workflow::battery::measured::AttackTarget;
use clover_workflow::battery::measured::SEEDS_DEFAULT;
use clover_workflow::battery::prepared;
use clover_workflow::battery::prepared::BatteryPlan;
use clover_workflow::battery::prepared::Material;
use clover_workflow::battery::prepared::PromptedResponse;
use clover_workflow::battery::prepared::Under;
use clover_workflow::import;
use clover_workflow::iterate::course::Course;
use clover_workflow::iterate::course::CourseError;
use clover_workflow::iterate::hypothesis::Hypothesis;
use clover_workflow::iterate::rows::RowName;
use clover_workflow::judge::Judge;
use clover_workflow::judge::JudgeError;
use clover_workflow::judge::JudgeQuery;
use clover_workflow::live::FrozenVersion;

use crate::charges;
use crate::charges::Payer;
use crate::error::SessionError;
use crate::home::Home;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::score;
use crate::judge::JudgingError;
use crate::judge::registration;
use crate::ports::Ports;
use crate::ports::Work;
use crate::texts::Texts;

/// A battery on record.
#[derive(Clone, Debug)]
pub struct Attack {
    /// What it says.
    pub said: BatteryEvaluated,
    /// What was appended for it; nothing when it stood there before.
    pub appended: Vec<AppendedEvent>,
}

/// A judge that is asked no more once it failed: what it did not answer is not to be taken for what cannot be scored.
struct GuardedJudge {
    judge: Box<dyn Judge + Send>,
    failed: Option<JudgeError>,
    calls: u64,
    /// Who pays for its calls, and how many are left to it.
    payer: Option<(Payer, u64)>,
}

impl Judge for GuardedJudge {
    fn score(&mut self, ask: &JudgeQuery<'_>) -> Result<Micro, JudgeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self
            .payer
            .as_ref()
            .is_some_and(|(_, left)| self.calls >= *left)
        {
            let spent = JudgeError::Ended("no judge_call is left to pay for it".to_owned());
            self.failed = Some(spent.clone());
            return Err(spent);
        }
        self.calls += 1;
        let answer = self.judge.score(ask);
        if let Err(error) = &answer
            && !matches!(error, JudgeError::Declined(_))
        {
            self.failed = Some(error.clone());
        }
        answer
    }
}

impl GuardedJudge {
    fn open(
        ports: &mut dyn Ports,
        ledger: &Ledger,
        judge: &JudgeRegistered,
    ) -> Result<RefCell<Self>, SessionError> {
        let port = registration::opened(ports, ledger, judge)?;
        // How many calls a search takes nobody knows before: one has to be left.
        let payer = charges::calls(ports, ledger, (judge.port, &judge.judge), 1)?;
        Ok(RefCell::new(Self {
            judge: port,
            failed: None,
            calls: 0,
            payer: payer.map(|payer| {
                let left = payer.left(ledger);
                (payer, left)
            }),
        }))
    }

    /// Charges the calls that were made, whatever came of them.
    fn settle(&mut self, ledger: &mut Ledger) -> Result<(), SessionError> {
        let calls = std::mem::take(&mut self.calls);
        match &self.payer {
            Some((payer, _)) => payer.pay(ledger, calls),
            None => Ok(()),
        }
    }

    /// Refuses to go on where it failed; what it was asked for is not on record.
    fn answered(&self) -> Result<(), JudgingError> {
        match self.failed.clone() {
            None => Ok(()),
            Some(error) => Err(JudgingError::Unanswered {
                what: "the battery".to_owned(),
                error,
            }),
        }
    }
}

/// Runs the battery of a hypothesis if it was not yet, and records it where the ledger has an adversary: what P7 says comes
/// from there. What nobody could record is given back. Nothing is run where the judge cannot be asked anew.
pub(super) fn of_candidate(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    of: &Hypothesis,
) -> Result<(Vec<AppendedEvent>, Option<Gaming>), SessionError> {
    if !course.loaded.is_callable() || course.patched(of)?.is_err() {
        return Ok((Vec::new(), None));
    }
    let keyring = &bench.ledger.state().keyring;
    let has_adversary = keyring.live_with(Role::Adversary).next().is_some();
    let ran = match run(bench, ports, course, (Some(of), None, has_adversary)) {
        // Nobody can look for what edited texts would earn: P7 says so.
        Err(SessionError::Iteration(error)) if matches!(*error, IterationError::BatteryNamed) => {
            return Ok((Vec::new(), None));
        }
        ran => ran?,
    };
    let unrecorded = (!has_adversary).then(|| ran.said.gaming());
    Ok((ran.appended, unrecorded))
}

/// What attacks on a patch earn that nobody proposed yet: the battery runs for it, and is not recorded. `None` where the judge
/// cannot be asked anew, or its program is not at hand: then nobody looked.
///
/// # Errors
/// [`IterationError`]; calls that were made are charged all the same.
pub fn of_unproposed(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    (of, document): (&Hypothesis, &Patch),
) -> Result<Option<Gaming>, SessionError> {
    if !course.loaded.is_callable() || course.patched(of)?.is_err() {
        return Ok(None);
    }
    let documents = Some(std::slice::from_ref(document));
    match run(bench, ports, course, (Some(of), documents, false)) {
        Err(SessionError::Iteration(error)) if matches!(*error, IterationError::BatteryNamed) => {
            Ok(None)
        }
        ran => Ok(Some(ran?.said.gaming())),
    }
}

/// Runs and records the battery of a patch by name, or of the rubric that the iteration starts from.
///
/// # Errors
/// [`IterationError`]; nothing of a battery is recorded unless its whole was measured.
pub fn attack(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    patch: Option<&str>,
) -> Result<Attack, SessionError> {
    let course = bench.take_course()?;
    let of = match patch {
        None => None,
        Some(name) => {
            let mut proposed = bench.record.proposed.iter().map(|of| &of.said);
            let said = proposed.find(|of| of.patch.as_str() == name);
            let said = said.ok_or_else(|| IterationError::UnknownPatch {
                iteration: bench.id.clone(),
                patch: name.to_owned(),
            })?;
            Some(course.hypothesis(&bench.ledger, &bench.record, &[said])?)
        }
    };
    let attack = run(bench, ports, &course, (of.as_ref(), None, true))?;
    bench.put_back(course);
    Ok(attack)
}

/// Whether no text stands there, but the name of a row whose texts are kept elsewhere.
fn is_named(of: &PromptedResponse) -> bool {
    let RowName { policy, item, draw } = &of.name;
    import::is_named((policy, item, *draw), &of.response)
}

fn material(bench: &Bench, course: &Course) -> Result<Material, SessionError> {
    let ledger = &bench.ledger;
    let mut texts = Texts::new(&bench.home, ledger)?;
    let experiment = &bench.record.experiment;
    let mut answer = |name: RowName| -> Result<Option<PromptedResponse>, SessionError> {
        let judge = &course.loaded.judge;
        let found = score::texts_of(ledger, &mut texts, experiment, judge, &name)?;
        Ok(found.map(|(prompt, response)| PromptedResponse {
            name,
            prompt,
            response,
        }))
    };
    let (mut answers, mut rows) = (Vec::new(), Vec::new());
    let mut named = false;
    for row in course.attacked(SEEDS_DEFAULT) {
        let Some(found) = answer(course.loaded.names[row].clone())? else {
            continue;
        };
        if is_named(&found) {
            named = true;
            continue;
        }
        answers.push(found);
        rows.push(row);
    }
    if answers.is_empty() && named {
        return Err(IterationError::BatteryNamed.into());
    }
    if answers.is_empty() {
        return Err(IterationError::BatteryTexts.into());
    }
    let known = ledger.state().fold::<Batteries>().exploits(experiment);
    let mut exploits = Vec::new();
    for (number, exploit) in (0..).zip(known) {
        let read = ledger.entry(exploit.seq)?;
        if let Some(Payload::ExploitDiscovered(said)) = read.map(|read| read.event.payload)
            && let Ok(chain) = said.chain.as_str().parse::<Chain>()
        {
            let name = RowName {
                policy: said.policy,
                item: said.item,
                draw: said.draw,
            };
            exploits.push((number, chain, answer(name)?));
        }
    }
    Ok(Material {
        answers,
        exploits,
        rows,
    })
}

/// The battery of a hypothesis, or of the rubric that the iteration starts from: one that a candidate has already, else run
/// and, where `is_recorded`, recorded with the exploits that it found.
fn run(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    (of, documents, is_recorded): (Option<&Hypothesis>, Option<&[Patch]>, bool),
) -> Result<Attack, SessionError> {
    let known = of.and_then(|of| bench.record.battery_of(of.hash));
    if let Some(said) = known.map(|of| of.said.clone()) {
        let appended = Vec::new();
        return Ok(Attack { said, appended });
    }
    let registered = course.loaded.registered.as_ref();
    let registered = registered.filter(|_| course.loaded.is_callable());
    let registered = registered.ok_or(IterationError::BatteryUnasked)?;
    ports.progress(Work::Attack, 0, 1);
    let known = score::known(&bench.ledger, registered)?;
    let material = material(bench, course)?;
    let patched = of.map(|of| course.patched(of)).transpose()?;
    let patched = patched.transpose();
    let patched = patched.map_err(|missing| CourseError::Candidate(missing.to_string()))?;
    let proposed = of.map(|of| prepared::patches(&bench.record, of));
    let patches = documents.or(proposed.as_deref()).unwrap_or_default();
    let iteration = bench.id.clone();
    let prepared = BatteryPlan {
        course,
        iteration: &iteration,
        known: &known,
        material: &material,
        of: of.zip(patched.as_deref()),
        patches,
    };
    let judge = GuardedJudge::open(ports, &bench.ledger, registered)?;
    let anew = anew(bench, ports, of)?;
    let target = prepared.target();
    let told = anew.as_ref().map(|of| of as &RefCell<dyn Judge>);
    let measured = prepared.measured(&target, &judge, told);
    judge.borrow_mut().settle(&mut bench.ledger)?;
    if let Some(anew) = &anew {
        anew.borrow_mut().settle(&mut bench.ledger)?;
    }
    judge.borrow().answered()?;
    anew.map_or(Ok(()), |of| of.borrow().answered())?;
    let (said, found) = measured.map_err(|error| IterationError::Battery(error.to_string()))?;
    if !is_recorded {
        let appended = Vec::new();
        return Ok(Attack { said, appended });
    }
    let mut appended = bench.say(ports, vec![said.clone().into()])?;
    if let Some(battery) = appended.first().map(|of| of.id) {
        let exploits = found.iter();
        let exploits = exploits.map(|of| measured::discovery(&target, battery, of).into());
        let exploits: Vec<Payload> = exploits.collect();
        appended.extend(bench.say(ports, exploits)?);
    }
    Ok(Attack { said, appended })
}

/// The judge that was told what a hypothesis changes, ready to be asked.
fn anew(
    bench: &Bench,
    ports: &mut dyn Ports,
    of: Option<&Hypothesis>,
) -> Result<Option<RefCell<GuardedJudge>>, SessionError> {
    let answers = of.and_then(|of| of.answers.as_ref());
    let mut judges = bench.record.judges.iter();
    let judge = answers.and_then(|of| judges.find(|judge| judge.judge == of.judge));
    let judge = judge.map(|judge| GuardedJudge::open(ports, &bench.ledger, judge));
    judge.transpose()
}

/// What attacks on outputs of a policy earn under a judge that is frozen, on no record of its own; `None` where the judge
/// cannot be asked anew, or no text is at hand.
///
/// # Errors
/// [`IterationError`].
pub fn of_outputs(
    ports: &mut dyn Ports,
    (home, ledger): (&Home, &mut Ledger),
    experiment: &ExperimentId,
    (frozen, outputs): (&FrozenVersion, &[RowName]),
) -> Result<Option<Gaming>, SessionError> {
    let course = &frozen.course;
    let mut judges = frozen.record.judges.iter();
    let registered = judges.find(|judge| judge.judge == frozen.judge);
    let Some(registered) = registered.filter(|_| course.loaded.is_callable()) else {
        return Ok(None);
    };
    let mut texts = Texts::new(home, ledger)?;
    let mut answers = Vec::new();
    for name in outputs.iter().take(SEEDS_DEFAULT) {
        let found = score::texts_of(ledger, &mut texts, experiment, &frozen.judge, name)?;
        answers.extend(found.map(|(prompt, response)| PromptedResponse {
            name: name.clone(),
            prompt,
            response,
        }));
    }
    if answers.is_empty() {
        return Ok(None);
    }
    ports.progress(Work::Attack, 0, 1);
    let known = score::known(ledger, registered)?;
    let facts = known.facts.as_ref();
    let facts = facts.map(|facts| Facts::of(facts.iter().map(String::as_str)));
    let judge = GuardedJudge::open(ports, ledger, registered)?;
    let rules = frozen.rubric.rules();
    let under = Under {
        course,
        facts: facts.as_ref(),
        fitted: &frozen.fitted,
        judge: &judge,
        known: &known,
        rules: &rules,
    };
    let traces = known.traces.as_ref();
    let target = AttackTarget {
        calibrator: frozen.digest,
        candidate: None,
        iteration: &frozen.record.iteration,
        judge: &frozen.judge,
        known: Vec::new(),
        rubric_hash: frozen.rubric.hash(),
        seeds: answers.iter().map(|of| of.seed(traces)).collect(),
        slices: Vec::new(),
        tighter: BTreeMap::new(),
        tries: TRIES_DEFAULT,
    };
    let mut score = |seed: &Seed<'_>, text: &str| under.score(seed, text);
    let measured = measured::measure(&target, &mut score, None);
    judge.borrow_mut().settle(ledger)?;
    judge.borrow().answered()?;
    let (said, _) = measured.map_err(|error| IterationError::Battery(error.to_string()))?;
    Ok(Some(said.gaming()))
}
