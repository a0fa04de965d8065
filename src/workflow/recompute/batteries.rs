//! What attacks on an iteration's responses earned, computed again where the judge is the program's own and its texts are at
//! hand.

use std::cell::RefCell;

use clover_attack::Chain;
use clover_event::Event;
use clover_event::Payload;
use clover_event::id::IterationId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::History;
use clover_projection::batteries::attacked::AttackedRows;
use clover_rubric::Patch;

use crate::battery::measured::SEEDS_DEFAULT;
use crate::battery::prepared;
use crate::battery::prepared::BatteryPlan;
use crate::battery::prepared::Material;
use crate::battery::prepared::PromptedResponse;
use crate::estimate::rows::NOT_AT_HAND;
use crate::iterate::course::Course;
use crate::iterate::hypothesis::Hypothesis;
use crate::iterate::rows::RowName;
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
    if judge.port != JudgePort::Builtin {
        let what = format!(
            "judge {} is a program, and is asked by `clover battery run` alone",
            judge.judge
        );
        return Err(RecomputeError::Unrecorded(what));
    }
    if !context.covariates.are_at_hand() {
        return Err(RecomputeError::Unrecorded(NOT_AT_HAND.to_owned()));
    }
    let history = context.history;
    let below = AttackedRows::below(history, &record.experiment, &said.judge, seq)?;
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
    measured_again(&said.iteration, course, of, (&material, &known))
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
    iteration: &IterationId,
    course: &Course,
    (of, patches): (Option<&Hypothesis>, &[Patch]),
    (material, known): (&Material, &ProbeEvidence),
) -> Result<Payload, RecomputeError> {
    let patched = of.map(|of| course.patched(of)).transpose()?.transpose();
    let patched = patched.map_err(|missing| RecomputeError::Missing(missing.to_string()))?;
    let prepared = BatteryPlan {
        course,
        iteration,
        known,
        material,
        of: of.zip(patched.as_deref()),
        patches,
    };
    let again = prepared.measured(&prepared.target(), &RefCell::new(Builtin), None);
    let (again, _) = again.map_err(|error| gone(&error.to_string()))?;
    Ok(again.into())
}
