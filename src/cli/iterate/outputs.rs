//! The battery on outputs of a policy under a judge that is frozen: what attacks on them earn, on no record of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::attack::search::TRIES_DEFAULT;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::program::Watched;
use crate::cli::iterate::score;
use crate::event::id::ExperimentId;
use crate::event::payload::predicate::Gaming;
use crate::ledger::Ledger;
use crate::rubric::extract::recorded::Facts;
use crate::session::Home;
use crate::session::texts::Texts;
use crate::workflow::battery::Seed;
use crate::workflow::battery::measured;
use crate::workflow::battery::measured::SEEDS_DEFAULT;
use crate::workflow::battery::measured::Target;
use crate::workflow::battery::prepared::Answer;
use crate::workflow::battery::prepared::Under;
use crate::workflow::iterate::rows::Named;
use crate::workflow::live::Frozen;

/// What attacks on outputs earn under a frozen judge; `None` where the judge cannot be asked anew, or no text is at hand.
pub(in crate::cli) fn gaming(
    ctx: &mut Ctx<'_>,
    (home, ledger): (&Home, &Ledger),
    experiment: &ExperimentId,
    (frozen, outputs): (&Frozen, &[Named]),
    program: &Program,
) -> Result<Option<Gaming>, CliError> {
    let course = &frozen.course;
    let registered = course.loaded.registered.as_ref();
    let Some(registered) = registered.filter(|_| course.loaded.is_callable()) else {
        return Ok(None);
    };
    let mut texts = Texts::new(home, ledger)?;
    let mut answers = Vec::new();
    for name in outputs.iter().take(SEEDS_DEFAULT) {
        let judge = &course.loaded.judge;
        let found = score::texts_of(ledger, &mut texts, experiment, judge, name)?;
        answers.extend(found.map(|(prompt, response)| Answer {
            name: name.clone(),
            prompt,
            response,
        }));
    }
    if answers.is_empty() {
        return Ok(None);
    }
    ctx.progress("outputs attacked").at(0, 1);
    let known = score::known(ledger, registered)?;
    let facts = known.facts.as_ref();
    let facts = facts.map(|facts| Facts::of(facts.iter().map(String::as_str)));
    let judge = RefCell::new(Watched::open(ctx, registered, program)?);
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
    let target = Target {
        calibrator: frozen.digest,
        candidate: None,
        iteration: &frozen.record.iteration,
        judge: &course.loaded.judge,
        known: Vec::new(),
        rubric_hash: frozen.rubric.hash(),
        seeds: answers.iter().map(|of| of.seed(traces)).collect(),
        slices: Vec::new(),
        tighter: BTreeMap::new(),
        tries: TRIES_DEFAULT,
    };
    let mut score = |seed: &Seed<'_>, text: &str| under.score(seed, text);
    let measured = measured::measure(&target, &mut score, None);
    judge.borrow().answered("the battery")?;
    let (said, _) =
        measured.map_err(|error| CliError::refused(error.to_string(), "clover battery --help"))?;
    Ok(Some(said.gaming()))
}
