//! The battery under a candidate: stored responses are edited, read and judged anew.

use std::collections::BTreeMap;

use crate::attack::Operator;
use crate::attack::search;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::score;
use crate::cli::texts::Texts;
use crate::event::payload::predicate::AttackUplift;
use crate::event::payload::predicate::Gaming;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Micro;
use crate::rubric::Patch;
use crate::rubric::evidence::Evidence;
use crate::rubric::extract::recorded::Facts;
use crate::rubric::extract::recorded::Traces;
use crate::workflow::battery;
use crate::workflow::battery::Evaluated;
use crate::workflow::battery::Scorer;
use crate::workflow::battery::Seed;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::course::Hypothesis;

/// Responses that are attacked: each attack needs 50 that it changes.
const SEEDS: usize = 120;
/// Tries of the search.
const TRIES: u32 = 150;

/// Nobody looked.
fn unchecked() -> Gaming {
    Gaming {
        attacks: Vec::new(),
        regressions: Count::default(),
        searched: None,
    }
}

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
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

/// Rows that are attacked, with their texts.
fn responses(
    ctx: &Ctx<'_>,
    bench: &Bench,
    course: &Course,
) -> Result<Vec<(usize, String, String)>, CliError> {
    let mut texts = Texts::new(ctx, &bench.home, &bench.ledger)?;
    let (experiment, judge) = (&bench.record.experiment, &course.loaded.judge);
    let mut attacked = Vec::new();
    for row in course.attacked(SEEDS) {
        let name = &course.loaded.names[row];
        let found = score::texts_of(&bench.ledger, &mut texts, experiment, judge, name)?;
        attacked.extend(found.map(|(prompt, response)| (row, prompt, response)));
    }
    if attacked.is_empty() {
        let message = "the battery has no text to attack: prompts and responses were not taken in, or their keys are not here";
        return Err(CliError::not_found(message, "clover doctor"));
    }
    Ok(attacked)
}

/// What the battery and the search find of a hypothesis; nothing where the judge cannot be asked anew.
pub(super) fn gaming(
    ctx: &mut Ctx<'_>,
    bench: &Bench,
    course: &Course,
    of: &Hypothesis,
    command: &[String],
) -> Result<Gaming, CliError> {
    let Some(registered) = course.loaded.registered.as_ref() else {
        return Ok(unchecked());
    };
    let Ok(candidate) = course.candidate(of) else {
        return Ok(unchecked());
    };
    if !course.loaded.is_callable() {
        return Ok(unchecked());
    }
    let known = score::known(&bench.ledger, registered)?;
    let facts = known.facts.as_ref();
    let facts = facts.map(|facts| Facts::of(facts.iter().map(String::as_str)));
    let attacked = responses(ctx, bench, course)?;
    let no_traces = Traces::default();
    let none = BTreeMap::new();
    let by_item = known.traces.as_ref();
    let seeds: Vec<Seed<'_>> = attacked
        .iter()
        .map(|(row, prompt, response)| {
            let name = &course.loaded.names[*row];
            let traces = by_item.unwrap_or(&none).get(name.item.as_str());
            Seed {
                item: &name.item,
                policy: &name.policy,
                draw: name.draw,
                prompt,
                response,
                traces: by_item.map(|_| traces.unwrap_or(&no_traces)),
            }
        })
        .collect();
    let fitted = course.ground.fitted(&course.loaded.table, &candidate);
    let fitted =
        fitted.map_err(|error| CliError::refused(error.to_string(), "clover iterate list"))?;
    let rules = of.rubric.rules();
    let calibrated = |score: Micro, evidence: &Evidence| {
        let covariates = course.loaded.covariates_of(evidence);
        fitted
            .calibrator
            .predict(score.value() as f64 / 1e6, &covariates)
    };
    let mut judge = score::port(ctx, registered, command)?;
    let mut scorer = Scorer {
        judge: judge.as_mut(),
        citations: known.citations.as_ref(),
        facts: facts.as_ref(),
        rules: &rules,
        calibrated: &calibrated,
    };
    let run = battery::run(&seeds, &mut scorer);
    let patches = patches(bench, of);
    let found = battery::evaluate(&run, &|operator| bound(&patches, operator));
    let responses: Vec<&str> = seeds.iter().map(|seed| seed.response).collect();
    let seed = search::seed(bench.id.as_str(), &of.hash);
    let searched = search::run(&responses, TRIES, seed, |at, text| {
        scorer.score(&seeds[at], text)
    });
    let complete = run.unscored == 0;
    let searched = searched.filter(|found| found.unscored == 0 && complete);
    let worst = searched.map(|found| found.worst().map_or(0.0, |worst| worst.mean));
    let searched = worst.and_then(Finite::new);
    Ok(Gaming {
        attacks: uplifts(&found, &patches),
        regressions: Count::default(),
        searched,
    })
}

/// Attacks with their uplifts, as an event says them.
fn uplifts(found: &[Evaluated], patches: &[Patch]) -> Vec<AttackUplift> {
    let said = |one: &Evaluated| {
        let numbers = one.found.as_ref()?;
        Some(AttackUplift {
            attack: one.operator.as_str().parse().ok()?,
            mean: Finite::new(numbers.mean)?,
            mean_absolute: Finite::new(numbers.mean_absolute)?,
            seeds: count(numbers.seeds),
            tighter_max: bound(patches, one.operator).and_then(Finite::new),
        })
    };
    found.iter().filter_map(said).collect()
}

/// The documents of a hypothesis.
fn patches(bench: &Bench, of: &Hypothesis) -> Vec<Patch> {
    let proposed = bench.record.proposed.iter();
    let mine = proposed.filter(|patch| of.patches.contains(&patch.said.patch_hash));
    mine.filter_map(|patch| Patch::parse(patch.said.yaml.as_str().as_bytes()).ok())
        .collect()
}
