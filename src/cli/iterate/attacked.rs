//! The battery under a rubric: stored responses are edited, read and judged anew, and what came of it goes on record.

use std::cell::RefCell;

use crate::attack::Chain;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::program::Watched;
use crate::cli::iterate::score;
use crate::event::Payload;
use crate::event::payload::Role;
use crate::event::payload::battery::BatteryEvaluated;
use crate::event::payload::predicate::Gaming;
use crate::ledger::Appended;
use crate::projection::batteries::Batteries;
use crate::session::texts::Texts;
use crate::workflow::battery::measured;
use crate::workflow::battery::measured::SEEDS_DEFAULT;
use crate::workflow::battery::prepared;
use crate::workflow::battery::prepared::Answer;
use crate::workflow::battery::prepared::Material;
use crate::workflow::battery::prepared::Prepared;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::course::Hypothesis;
use crate::workflow::iterate::rows::Named;

/// A battery on record.
pub(in crate::cli) struct Attacked {
    /// What it says.
    pub said: BatteryEvaluated,
    /// What was appended for it; nothing when it stood there before.
    pub appended: Vec<Appended>,
}

/// Runs the battery of a hypothesis if it was not yet, and records it where the ledger has an adversary: what P7 says comes
/// from there. What nobody could record is given back. Nothing is run where the judge cannot be asked anew.
pub(super) fn battery(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    course: &Course,
    of: &Hypothesis,
    program: &Program,
) -> Result<(Vec<Appended>, Option<Gaming>), CliError> {
    if !course.loaded.is_callable() || course.patched(of).map_err(failed)?.is_err() {
        return Ok((Vec::new(), None));
    }
    let keyring = &bench.ledger.state().keyring;
    let has_adversary = keyring.live_with(Role::Adversary).next().is_some();
    let ran = attack(ctx, bench, course, (Some(of), has_adversary), program)?;
    let unrecorded = (!has_adversary).then(|| ran.said.gaming());
    Ok((ran.appended, unrecorded))
}

fn material(bench: &Bench, course: &Course) -> Result<Material, CliError> {
    let ledger = &bench.ledger;
    let mut texts = Texts::new(&bench.home, ledger)?;
    let experiment = &bench.record.experiment;
    let mut answer = |name: Named| -> Result<Option<Answer>, CliError> {
        let judge = &course.loaded.judge;
        let found = score::texts_of(ledger, &mut texts, experiment, judge, &name)?;
        Ok(found.map(|(prompt, response)| Answer {
            name,
            prompt,
            response,
        }))
    };
    let (mut answers, mut rows) = (Vec::new(), Vec::new());
    for row in course.attacked(SEEDS_DEFAULT) {
        if let Some(found) = answer(course.loaded.names[row].clone())? {
            answers.push(found);
            rows.push(row);
        }
    }
    if answers.is_empty() {
        let message = "the battery has no text to attack: prompts and responses were not taken in, or their keys are not here";
        return Err(CliError::new(
            Exit::NotFound,
            "not found",
            message,
            "clover doctor",
        ));
    }
    let known = ledger.state().fold::<Batteries>().exploits(experiment);
    let mut exploits = Vec::new();
    for (number, exploit) in (0..).zip(known) {
        let read = ledger.entry(exploit.seq)?;
        if let Some(Payload::ExploitDiscovered(said)) = read.map(|read| read.event.payload)
            && let Ok(chain) = said.chain.as_str().parse::<Chain>()
        {
            let name = Named {
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
pub(in crate::cli) fn attack(
    ctx: &mut Ctx<'_>,
    bench: &mut Bench,
    course: &Course,
    (of, is_recorded): (Option<&Hypothesis>, bool),
    program: &Program,
) -> Result<Attacked, CliError> {
    let known = of.and_then(|of| bench.record.battery_of(of.hash));
    if let Some(said) = known.map(|of| of.said.clone()) {
        let appended = Vec::new();
        return Ok(Attacked { said, appended });
    }
    let registered = course.loaded.registered.as_ref();
    let Some(registered) = registered.filter(|_| course.loaded.is_callable()) else {
        let message = "the battery asks the judge about edited answers, and these scores were imported: nobody can be asked";
        return Err(CliError::refused(message, "clover assume waive --help"));
    };
    ctx.progress("answers attacked").at(0, 1);
    let known = score::known(&bench.ledger, registered)?;
    let material = material(bench, course)?;
    let patched = of
        .map(|of| course.patched(of).map_err(failed))
        .transpose()?;
    let patched = patched.transpose();
    let patched = patched.map_err(|missing| failed(CourseError::Candidate(missing.to_string())))?;
    let patches = of.map(|of| prepared::patches(&bench.record, of));
    let iteration = bench.id.clone();
    let prepared = Prepared {
        course,
        iteration: &iteration,
        known: &known,
        material: &material,
        of: of.zip(patched.as_deref()),
        patches: patches.as_deref().unwrap_or_default(),
    };
    let judge = RefCell::new(Watched::open(ctx, registered, program)?);
    let target = prepared.target();
    let measured = prepared.measured(&target, &judge);
    judge.borrow().answered("the battery")?;
    let (said, found) =
        measured.map_err(|error| CliError::refused(error.to_string(), "clover iterate list"))?;
    if !is_recorded {
        let appended = Vec::new();
        return Ok(Attacked { said, appended });
    }
    let mut appended = bench.say(ctx, vec![said.clone().into()])?;
    if let Some(battery) = appended.first().map(|of| of.id) {
        let exploits = found.iter();
        let exploits = exploits.map(|of| measured::discovery(&target, battery, of).into());
        let exploits: Vec<Payload> = exploits.collect();
        appended.extend(bench.say(ctx, exploits)?);
    }
    Ok(Attacked { said, appended })
}
