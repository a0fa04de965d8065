//! The battery under a rubric: stored responses are edited, read and judged anew, and what came of it goes on record.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::attack::Chain;
use crate::attack::Operator;
use crate::attack::battery::Scored;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::failed;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::program::Watched;
use crate::cli::iterate::score;
use crate::cli::texts::Texts;
use crate::event::Payload;
use crate::event::id::IterationId;
use crate::event::payload::Role;
use crate::event::payload::battery::BatteryEvaluated;
use crate::event::payload::predicate::Gaming;
use crate::ledger::Appended;
use crate::num::Micro;
use crate::projection::batteries::Batteries;
use crate::rubric::Patch;
use crate::rubric::engine::Rules;
use crate::rubric::evidence::Evidence;
use crate::rubric::extract::recorded::Facts;
use crate::rubric::extract::recorded::Traces;
use crate::workflow::battery::Scorer;
use crate::workflow::battery::Seed;
use crate::workflow::battery::measured;
use crate::workflow::battery::measured::KnownExploit;
use crate::workflow::battery::measured::SEEDS_DEFAULT;
use crate::workflow::battery::measured::SliceSeeds;
use crate::workflow::battery::measured::Target;
use crate::workflow::iterate::calibrator;
use crate::workflow::iterate::compute::fit::Fitted;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::CourseError;
use crate::workflow::iterate::course::Hypothesis;
use crate::workflow::iterate::rows::Named;
use crate::workflow::judge::run::Known;

/// A battery on record.
pub(in crate::cli) struct Attacked {
    /// What it says.
    pub said: BatteryEvaluated,
    /// What was appended for it; nothing when it stood there before.
    pub appended: Vec<Appended>,
}

/// The uplift that a patch's own bound allows an operator.
fn bound(patches: &[Patch], operator: Operator) -> Option<f64> {
    let name = operator.as_str();
    let bounds = patches.iter().flat_map(|patch| &patch.attacks);
    let mine = bounds.filter(|bound| {
        let attack = bound.attack.as_str();
        attack == name || (attack == "length_padding" && name == "padding")
    });
    mine.map(|bound| bound.uplift.value() as f64 / 1e6)
        .reduce(f64::min)
}

/// The documents of a hypothesis.
fn patches(bench: &Bench, of: &Hypothesis) -> Vec<Patch> {
    let proposed = bench.record.proposed.iter();
    let mine = proposed.filter(|patch| of.patches.contains(&patch.said.patch_hash));
    mine.filter_map(|patch| Patch::parse(patch.said.yaml.as_str().as_bytes()).ok())
        .collect()
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

/// A response with its prompt.
pub(super) struct Answer {
    pub(super) name: Named,
    pub(super) prompt: String,
    pub(super) response: String,
}

impl Answer {
    pub(super) fn seed<'a>(&'a self, traces: Option<&'a BTreeMap<String, Traces>>) -> Seed<'a> {
        static NONE: Traces = Traces::none();
        Seed {
            item: &self.name.item,
            policy: &self.name.policy,
            draw: self.name.draw,
            prompt: &self.prompt,
            response: &self.response,
            traces: traces.map(|of| of.get(self.name.item.as_str()).unwrap_or(&NONE)),
        }
    }
}

/// An exploit with its answer, where that is at hand.
type Exploit = (u64, Chain, Option<Answer>);

/// Answers that are attacked, with their rows, and known exploits.
struct Material {
    answers: Vec<Answer>,
    exploits: Vec<Exploit>,
    rows: Vec<usize>,
}

fn material(ctx: &Ctx<'_>, bench: &Bench, course: &Course) -> Result<Material, CliError> {
    let ledger = &bench.ledger;
    let mut texts = Texts::new(ctx, &bench.home, ledger)?;
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

/// The slices of the plan with the seeds in them, by number; what lies in no cell is `other`.
fn slices(course: &Course, rows: &[usize]) -> Vec<SliceSeeds> {
    let mut all = Vec::new();
    for family in &course.loaded.table.data().slices {
        for place in 0..=family.slices.len() {
            let of = |row: usize| family.of_row[row].unwrap_or(family.slices.len());
            let numbers = (0..rows.len()).filter(|&number| of(rows[number]) == place);
            let other = || "other".parse().expect("BUG: a name");
            all.push(SliceSeeds {
                family: family.id.clone(),
                seeds: numbers.collect(),
                slice: family.slices.get(place).cloned().unwrap_or_else(other),
            });
        }
    }
    all
}

/// A rubric and its calibrator, with the judge.
pub(super) struct Under<'a> {
    pub(super) course: &'a Course,
    pub(super) facts: Option<&'a Facts>,
    pub(super) fitted: &'a Fitted,
    pub(super) judge: &'a RefCell<Watched>,
    pub(super) known: &'a Known,
    pub(super) rules: &'a Rules,
}

impl Under<'_> {
    pub(super) fn score(&self, seed: &Seed<'_>, text: &str) -> Option<Scored> {
        let calibrated = |score: Micro, evidence: &Evidence| {
            let covariates = self.course.loaded.covariates_of(evidence);
            let score = score.value() as f64 / 1e6;
            self.fitted.calibrator.predict(score, &covariates)
        };
        let mut judge = self.judge.borrow_mut();
        let mut scorer = Scorer {
            judge: &mut *judge,
            citations: self.known.citations.as_ref(),
            facts: self.facts,
            rules: self.rules,
            calibrated: &calibrated,
        };
        scorer.score(seed, text)
    }
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
    let facts = known.facts.as_ref();
    let facts = facts.map(|facts| Facts::of(facts.iter().map(String::as_str)));
    let material = material(ctx, bench, course)?;
    let patched = of.map(|of| {
        let patched = course.patched(of).map_err(failed)?;
        patched.map_err(|missing| failed(CourseError::Candidate(missing.to_string())))
    });
    let patched = patched.transpose()?;
    let judge = RefCell::new(Watched::open(ctx, registered, program)?);
    let base = course.loaded.rubric.rules();
    let mended = of.map(|of| of.rubric.rules());
    let under = |rules, fitted| Under {
        course,
        facts: facts.as_ref(),
        fitted,
        judge: &judge,
        known: &known,
        rules,
    };
    let before = under(&base, &course.ground.baseline);
    let now = match (&mended, &patched) {
        (Some(rules), Some(patched)) => under(rules, &patched.fitted),
        _ => under(&base, &course.ground.baseline),
    };
    let iteration = bench.id.clone();
    let patches = of.map(|of| patches(bench, of)).unwrap_or_default();
    let target = target(
        (&iteration, course, of),
        &material,
        &known,
        &patches,
        now.fitted,
    );
    let mut before_score = |seed: &Seed<'_>, text: &str| before.score(seed, text);
    let mut now_score = |seed: &Seed<'_>, text: &str| now.score(seed, text);
    let both: Option<&mut measured::Score<'_>> = match of {
        Some(_) => Some(&mut before_score),
        None => None,
    };
    let measured = measured::measure(&target, &mut now_score, both);
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

/// What is attacked, with what.
fn target<'a>(
    (iteration, course, of): (&'a IterationId, &'a Course, Option<&Hypothesis>),
    material: &'a Material,
    known: &'a Known,
    patches: &[Patch],
    fitted: &Fitted,
) -> Target<'a> {
    let traces = known.traces.as_ref();
    let tighter = Operator::ALL.into_iter();
    let tighter = tighter.filter_map(|operator| Some((operator, bound(patches, operator)?)));
    let exploits = material.exploits.iter();
    let exploits = exploits.map(|(number, chain, answer)| KnownExploit {
        chain: chain.clone(),
        number: *number,
        seed: answer.as_ref().map(|answer| answer.seed(traces)),
    });
    let rubric = of.map_or(&course.loaded.rubric, |of| &of.rubric);
    Target {
        calibrator: calibrator(fitted),
        candidate: of.map(|of| of.hash),
        iteration,
        judge: &course.loaded.judge,
        known: exploits.collect(),
        rubric_hash: rubric.hash(),
        seeds: material.answers.iter().map(|of| of.seed(traces)).collect(),
        slices: match of {
            Some(_) => Vec::new(),
            None => slices(course, &material.rows),
        },
        tighter: tighter.collect(),
        tries: crate::attack::search::TRIES_DEFAULT,
    }
}
