//! Gates on dev, and what is sealed for confirm.

use clover_event::Payload;
use clover_event::id::PatchId;
use clover_event::payload::Role;
use clover_event::payload::predicate::CandidatesSealed;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::RejectStage;
use clover_ground::digest::Digest;
use clover_ledger::AppendedEvent;
use clover_projection::decisions::check_reviewed;
use clover_workflow::iterate::course::Course;
use clover_workflow::iterate::hypothesis::Hypothesis;
use clover_workflow::iterate::outcome;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::IterationError;
use crate::iterate::attack;
use crate::iterate::rescore;
use crate::iterate::rescore::PatchRescore;
use crate::ports::Ports;

/// What the gates on dev did.
#[derive(Clone, Debug)]
pub struct GatedOnDev {
    /// Entries that were appended.
    pub appended: Vec<AppendedEvent>,
    /// Every patch that stood, in order.
    pub patches: Vec<GatedPatch>,
}

/// A patch and the gates on dev.
#[derive(Clone, Debug)]
pub struct GatedPatch {
    /// The patch.
    pub patch: PatchId,
    /// Its hash.
    pub candidate: Digest,
    /// What was asked of the judge that is told what the patch changes; nothing where it changes no such thing.
    pub rescored: Option<PatchRescore>,
    /// Why it is rejected, if it is.
    pub rejected: Option<String>,
}

/// Evaluates every patch that stands and was not judged, and rejects what a gate stops.
///
/// # Errors
/// [`SessionError`]; what was appended before stands, and the step goes on from there.
pub fn gate(bench: &mut Bench, ports: &mut dyn Ports) -> Result<GatedOnDev, SessionError> {
    let course = bench.take_course()?;
    let standing: Vec<PatchProposed> = bench.record.standing().into_iter().cloned().collect();
    let (mut patches, mut appended) = (Vec::new(), Vec::new());
    for patch in &standing {
        let of = course.hypothesis(&bench.ledger, &bench.record, &[patch])?;
        let (mut lack, mut rescored) = (None, None);
        if !bench.record.is_judged(of.hash, CriterionSplit::Dev) {
            let found = evaluate(bench, ports, &course, of.clone())?;
            appended.extend(found.appended);
            (lack, rescored) = (found.lack, found.rescored);
        }
        let mut rejected = None;
        if let Some((code, words)) = bench.stopped(of.hash, CriterionSplit::Dev) {
            let code = if lack.is_some() {
                outcome::UNSCORED.to_owned()
            } else {
                code
            };
            appended.extend(reject(bench, ports, patch, RejectStage::Dev, &code)?);
            rejected = Some(lack.unwrap_or(words));
        }
        patches.push(GatedPatch {
            patch: patch.patch.clone(),
            candidate: of.hash,
            rescored,
            rejected,
        });
    }
    bench.put_back(course);
    Ok(GatedOnDev { appended, patches })
}

/// Says that a patch is rejected.
pub(super) fn reject(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    patch: &PatchProposed,
    stage: RejectStage,
    code: &str,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let said = outcome::rejection(&bench.record, patch, (stage, code));
    bench.say(ports, vec![said.into()])
}

/// Records the scores under a hypothesis, where a scorer's key is at hand and nothing was fitted on them yet.
fn scores(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    of: &Hypothesis,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let mut known = bench.record.recomputed.iter();
    let is_late = bench.record.fitted_of(Some(of.hash)).is_some()
        || known.any(|one| one.said.candidate == of.hash);
    if is_late || !of.valid || !ports.holds(bench.ledger.state(), Role::Scorer)? {
        return Ok(Vec::new());
    }
    match course.recomputed(of)? {
        Ok(said) => bench.say(ports, vec![said.into()]),
        // Gate p0 says so.
        Err(_) => Ok(Vec::new()),
    }
}

/// What judging a hypothesis on dev did.
struct DevEvaluation {
    /// Entries that were appended.
    appended: Vec<AppendedEvent>,
    /// Why its rows cannot be scored, if so.
    lack: Option<String>,
    /// What was asked of a judge for it.
    rescored: Option<PatchRescore>,
}

/// Computes and records the gates of a hypothesis on dev, once a judge that it tells something else was asked anew.
fn evaluate(
    bench: &mut Bench,
    ports: &mut dyn Ports,
    course: &Course,
    of: Hypothesis,
) -> Result<DevEvaluation, SessionError> {
    let (of, rescored) = rescore::before_gates(bench, ports, course, of)?;
    let of = &of;
    let mut appended = rescored
        .as_ref()
        .map_or_else(Vec::new, |of| of.appended.clone());
    appended.extend(scores(bench, ports, course, of)?);
    let is_unasked = of.prompt.is_some() && of.answers.is_none();
    if is_unasked && bench.record.fitted_of(Some(of.hash)).is_none() {
        // Gate p0 says so, and nothing is measured.
        let (gates, _) = course.on_dev(&bench.record, of, None)?;
        appended.extend(bench.say(ports, gates.into_iter().map(Payload::from).collect())?);
        return Ok(DevEvaluation {
            appended,
            lack: None,
            rescored,
        });
    }
    if bench.record.fitted_of(Some(of.hash)).is_none()
        && let Ok(fitted) = course.fitted(of)?
    {
        let event = vec![fitted.event.into()];
        appended.extend(bench.say_with(ports, event, &fitted.blobs)?);
    }
    let (attacked, unrecorded) = attack::of_candidate(bench, ports, course, of)?;
    appended.extend(attacked);
    let (gates, lack) = course.on_dev(&bench.record, of, unrecorded)?;
    let gates: Vec<Payload> = gates.into_iter().map(Payload::from).collect();
    appended.extend(bench.say(ports, gates)?);
    Ok(DevEvaluation {
        appended,
        lack: lack.map(|lack| lack.to_string()),
        rescored,
    })
}

/// What reviews the patches that would be sealed still lack, in words; `None` where nothing lacks.
///
/// # Errors
/// [`SessionError::Course`].
pub fn waits_for_review(bench: &mut Bench) -> Result<Option<String>, SessionError> {
    let standing = bench.record.standing();
    let hashes: Vec<_> = standing.iter().map(|patch| patch.patch_hash).collect();
    if check_reviewed(bench.ledger.state(), &bench.id, &hashes).is_ok() {
        return Ok(None);
    }
    let course = bench.take_course()?;
    let standing = bench.record.standing();
    let chosen = course.of_families(&bench.ledger, &bench.record, &standing)?;
    let hashes: Vec<_> = chosen.iter().map(|(patch, _)| patch.patch_hash).collect();
    bench.put_back(course);
    let lacking = check_reviewed(bench.ledger.state(), &bench.id, &hashes).err();
    Ok(lacking.map(|unmet| unmet.expected))
}

/// What was sealed.
#[derive(Clone, Debug)]
pub struct SealedCandidates {
    /// Entries that were appended.
    pub appended: Vec<AppendedEvent>,
    /// Patches that another of their family is better than.
    pub not_chosen: Vec<PatchId>,
    /// The composite of the two best, where it was judged.
    pub composite: Option<Digest>,
    /// The event.
    pub said: CandidatesSealed,
    /// The alpha that the hypotheses share, 0 to 1.
    pub alpha: f64,
}

/// Chooses one patch a family, judges the composite of the two best, and seals what passed.
///
/// # Errors
/// [`IterationError::Unreviewed`]; what was appended before another error stands, and the step goes on from there.
pub fn seal(bench: &mut Bench, ports: &mut dyn Ports) -> Result<SealedCandidates, SessionError> {
    if let Some(run) = bench.record.open_synth() {
        // What it still returns could not be proposed, and that its best was is held at its end.
        return Err(IterationError::OpenRun(run.opened.said.run.clone()).into());
    }
    let course = bench.take_course()?;
    let standing: Vec<PatchProposed> = bench.record.standing().into_iter().cloned().collect();
    let passed: Vec<&PatchProposed> = standing.iter().collect();
    let chosen = course.of_families(&bench.ledger, &bench.record, &passed)?;
    let hashes: Vec<_> = chosen.iter().map(|(patch, _)| patch.patch_hash).collect();
    if let Err(unmet) = check_reviewed(bench.ledger.state(), &bench.id, &hashes) {
        return Err(IterationError::Unreviewed(unmet.to_string()).into());
    }
    let (mut appended, mut not_chosen) = (Vec::new(), Vec::new());
    for patch in standing
        .iter()
        .filter(|of| !hashes.contains(&of.patch_hash))
    {
        let (stage, code) = (RejectStage::Selection, outcome::OF_FAMILY);
        appended.extend(reject(bench, ports, patch, stage, code)?);
        not_chosen.push(patch.patch.clone());
    }
    let mut hypotheses = Vec::new();
    for (patch, _) in &chosen {
        hypotheses.push(course.hypothesis(&bench.ledger, &bench.record, &[*patch])?);
    }
    let mut composite = None;
    if let [(first, _), (second, _), ..] = chosen[..] {
        let of = course.hypothesis(&bench.ledger, &bench.record, &[first, second])?;
        if !bench.record.is_judged(of.hash, CriterionSplit::Dev) {
            appended.extend(evaluate(bench, ports, &course, of.clone())?.appended);
        }
        composite = Some(of.hash);
        if bench.stopped(of.hash, CriterionSplit::Dev).is_none() {
            hypotheses.push(of);
        }
    }
    let said = course.sealing(&hypotheses.iter().collect::<Vec<_>>());
    let alpha = course.ground.thresholds.alpha_micro.value() as f64 / 1e6;
    appended.extend(bench.say(ports, vec![said.clone().into()])?);
    bench.put_back(course);
    Ok(SealedCandidates {
        appended,
        not_chosen,
        composite,
        said,
        alpha,
    })
}
