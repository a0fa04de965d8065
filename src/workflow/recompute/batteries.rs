//! What attacks on an iteration's responses earned, computed again where texts are at hand, and the judge is the built-in one or
//! a program whose answers are kept.

use std::cell::RefCell;

use clover_attack::Chain;
use clover_event::Event;
use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::History;
use clover_projection::batteries::attacked::AttackedRows;
use clover_rubric::Patch;

use crate::battery::answers::ReplayedAnswers;
use crate::battery::measured::SEEDS_DEFAULT;
use crate::battery::prepared;
use crate::battery::prepared::BatteryPlan;
use crate::battery::prepared::Material;
use crate::battery::prepared::PromptedResponse;
use crate::estimate::rows::NOT_AT_HAND;
use crate::iterate::course::Course;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows::RowName;
use crate::judge::Judge;
use crate::judge::builtin::Builtin;
use crate::judge::run::ProbeEvidence;
use crate::recompute::Context;
use crate::recompute::RecomputeError;
use crate::recompute::iterations::gone;
use crate::recompute::iterations::patches_of;
use crate::recompute::said_in;

/// What a judge knew, from the blob that its registration names.
fn known(history: &dyn History, judge: &JudgeRegistered) -> Result<ProbeEvidence, RecomputeError> {
    let Some(blob) = &judge.known else {
        return Ok(ProbeEvidence::default());
    };
    let absent =
        || RecomputeError::Absent(format!("what judge {} knew is not at hand", judge.judge));
    let bytes = history.blob(&blob.blake3)?.ok_or_else(absent)?;
    serde_json::from_slice(&bytes).map_err(|error| gone(&error.to_string()))
}

/// Prompt and response of a row. Whoever attacked it had both: without them, nothing can be computed.
fn answer(
    context: &mut Context<'_>,
    below: &AttackedRows,
    name: RowName,
) -> Result<PromptedResponse, RecomputeError> {
    let unread = |what: &str| RecomputeError::Unrecorded(format!("{}: {what}", name.item));
    let score = below.score(&name.policy, &name.item, name.draw);
    let texts = score.and_then(|score| Some((score.prompt.as_ref()?, score.response.as_ref()?)));
    let (prompt, response) = texts.ok_or_else(|| unread("its texts were not taken in"))?;
    let prompt = context.covariates.text(prompt).map_err(|e| unread(&e))?;
    let response = context.covariates.text(response).map_err(|e| unread(&e))?;
    Ok(PromptedResponse {
        name,
        prompt,
        response,
    })
}

/// The battery of the rubric in force, or of a candidate.
pub(super) fn evaluated(
    context: &mut Context<'_>,
    seq: u64,
    event: &Event,
) -> Result<Payload, RecomputeError> {
    let said: &BatteryEvaluated = said_in(event)?;
    let record = context.record(&said.iteration, seq)?;
    let judge = record.judges.iter().find(|judge| judge.judge == said.judge);
    let judge = judge.ok_or_else(|| gone("its judge was not registered before it"))?;
    if judge.port != JudgePort::Builtin && said.answers.is_empty() {
        let what = format!(
            "judge {} is a program, and its answers were not kept",
            judge.judge
        );
        return Err(RecomputeError::Unrecorded(what));
    }
    if !context.covariates.are_at_hand() {
        return Err(RecomputeError::Unrecorded(NOT_AT_HAND.to_owned()));
    }
    let history = context.history;
    let below = AttackedRows::below(history, &record.experiment, judge.root(), seq)?;
    let seen = event
        .header
        .seen
        .as_ref()
        .map_or(0, |seen| seen.size.value());
    let through = record.through().unwrap_or_else(|| seen.saturating_sub(1));
    let names: Vec<(usize, RowName)> = {
        let course = &context.kept(&record, through)?.course;
        let rows = course.attacked(SEEDS_DEFAULT).into_iter();
        rows.map(|row| (row, course.loaded.names[row].clone()))
            .collect()
    };
    let material = gathered(context, &below, names)?;
    let known = known(history, judge)?;
    let course = &context.kept(&record, through)?.course;
    let of = match said.candidate {
        None => None,
        Some(hash) => Some(course.hypothesis(history, &record, &patches_of(&record, hash)?)?),
    };
    let patches = of.as_ref().map(|of| prepared::patches(&record, of));
    let patches = patches.unwrap_or_default();
    let of = (of.as_ref(), patches.as_slice());
    let again = measured_again(history, said, (course, judge), of, (&material, &known))?;
    Ok(again.into())
}

/// A program that answers what it answered; nothing where it was not asked.
fn asked(
    history: &dyn History,
    said: &BatteryEvaluated,
    judge: &JudgeId,
) -> Result<RefCell<ReplayedAnswers>, RecomputeError> {
    let mut all = said.answers.iter();
    let Some(kept) = all.find(|of| of.judge == *judge) else {
        return Ok(RefCell::default());
    };
    let absent = || gone(&format!("the blob of what {judge} answered is not at hand"));
    let bytes = history.blob(&kept.records.blake3)?.ok_or_else(absent)?;
    let answers = ReplayedAnswers::of(&bytes).map_err(|error| gone(&error))?;
    Ok(RefCell::new(answers))
}

/// Responses that are attacked, and known exploits with theirs.
fn gathered(
    context: &mut Context<'_>,
    below: &AttackedRows,
    names: Vec<(usize, RowName)>,
) -> Result<Material, RecomputeError> {
    let mut material = Material {
        answers: Vec::with_capacity(names.len()),
        exploits: Vec::with_capacity(below.exploits.len()),
        rows: Vec::with_capacity(names.len()),
    };
    for (row, name) in names {
        material.answers.push(answer(context, below, name)?);
        material.rows.push(row);
    }
    for (number, exploit) in (0..).zip(&below.exploits) {
        let Ok(chain) = exploit.chain.as_str().parse::<Chain>() else {
            continue;
        };
        let name = RowName {
            policy: exploit.policy.clone(),
            item: exploit.item.clone(),
            draw: exploit.draw,
        };
        let found = answer(context, below, name)?;
        material.exploits.push((number, chain, Some(found)));
    }
    Ok(material)
}

/// Attacks and scores anew, under the rubric in force or a hypothesis with its documents.
fn measured_again(
    history: &dyn History,
    said: &BatteryEvaluated,
    (course, judge): (&Course, &JudgeRegistered),
    (of, patches): (Option<&Hypothesis>, &[Patch]),
    (material, known): (&Material, &ProbeEvidence),
) -> Result<BatteryEvaluated, RecomputeError> {
    let patched = of.map(|of| course.patched(of)).transpose()?.transpose();
    let patched = patched.map_err(|missing| RecomputeError::Missing(missing.to_string()))?;
    let prepared = BatteryPlan {
        course,
        iteration: &said.iteration,
        known,
        material,
        of: of.zip(patched.as_deref()),
        patches,
    };
    let target = prepared.target();
    let again = if judge.port == JudgePort::Builtin {
        prepared.measured(&target, &RefCell::new(Builtin), None)
    } else {
        // The judge of the iteration measures known exploits, and one that is told what a candidate changes all the rest.
        let own = asked(history, said, &course.loaded.judge)?;
        let is_other = judge.judge != course.loaded.judge;
        let told = is_other.then(|| asked(history, said, &judge.judge));
        let told = told.transpose()?;
        let anew = told.as_ref().map(|of| of as &RefCell<dyn Judge>);
        let again = prepared.measured(&target, &own, anew);
        let is_spent = own.borrow().is_spent() && told.is_none_or(|of| of.borrow().is_spent());
        if !is_spent {
            return Err(gone(
                "the battery asks more, or less, than answers are kept",
            ));
        }
        again
    };
    let (mut again, _) = again.map_err(|error| gone(&error.to_string()))?;
    again.answers.clone_from(&said.answers);
    Ok(again)
}
