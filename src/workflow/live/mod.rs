//! What runs, as it was accepted: its rubric, the iteration that judged it, and the calibrator that was evaluated there,
//! fitted again from the same rows. Guardrails, recalibrations and generators read later rows through it.

pub mod guardrails;
pub mod recalibration;

use clover_event::id::EventId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::payload::deployment::RecalibrationMode;
use clover_ground::digest::Digest;
use clover_ground::shell;
use clover_ledger::History;
use clover_projection::deployments::rollouts::Rollouts;
use clover_projection::iterations::record::IterationRecord;
use clover_projection::iterations::record::Records;
use clover_rubric::Rubric;

use crate::iterate;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::compute::rows::pick;
use crate::iterate::course::Course;
use crate::iterate::course::CourseError;
use crate::iterate::rows::Answers;
use crate::iterate::rows::IterationRowsError;
use crate::patches;
use crate::prompts;

fn missing(what: impl Into<String>, next: impl Into<String>) -> CourseError {
    CourseError::Rows(IterationRowsError::Missing {
        what: what.into(),
        next: next.into(),
    })
}

/// A version with its calibrator.
#[derive(Debug)]
pub struct FrozenVersion {
    /// What was committed.
    pub commit: EventId,
    /// The iteration that judged it, with its rows.
    pub course: Course,
    /// Digest of the calibrator, as events name it.
    pub digest: Digest,
    /// The judge that it was judged by: that of the iteration, or the one that was told what the version changes.
    pub judge: JudgeId,
    /// The calibrator that was evaluated: fitted on the iteration's fit rows, scored under this rubric.
    pub fitted: CalibratorFit,
    /// What the log says of the iteration.
    pub record: IterationRecord,
    /// Least and largest score of a row that the calibrator was fitted on.
    pub range: (f64, f64),
    /// The rubric.
    pub rubric: Rubric,
    /// Rows of the iteration scored under it.
    pub scored: RubricScores,
}

/// Least and largest of some scores.
fn range(scores: &[f64]) -> (f64, f64) {
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

/// The rubric of a version.
pub fn rubric(rollouts: &Rollouts, commit: EventId) -> Option<Rubric> {
    patches::rubric_with(rollouts.leaves(commit)?)
}

/// What the judge answered who was told what a version changes; `None` where it changes nothing that a judge is told, or
/// nobody was asked anew.
fn answers(
    history: &dyn History,
    (course, record): (&Course, &IterationRecord),
    rubric: &Rubric,
) -> Result<Option<Answers>, CourseError> {
    let told = |rubric| prompts::rendered(rubric, Some(&course.loaded.plan)).hash;
    let prompt = told(rubric);
    if prompt == told(&course.loaded.rubric) {
        return Ok(None);
    }
    let mut recomputed = record.recomputed.iter();
    let found = recomputed.find_map(|of| {
        let mut judges = record.judges.iter();
        let judge = judges.find(|judge| Some(&judge.judge) == of.said.judge.as_ref())?;
        (judge.prompt_hash == prompt).then_some((judge, of.seq))
    });
    let Some((judge, seq)) = found else {
        return Ok(None);
    };
    let last = record.unsealed.as_ref().map_or(seq, |of| of.seq.max(seq));
    let answers = Answers::through(history, &record.experiment, judge, last)?;
    Ok(Some(answers))
}

/// A version with the calibrator under which it was judged, from the log below a position.
///
/// # Errors
/// [`CourseError`].
pub fn frozen(
    history: &dyn History,
    rollouts: &Rollouts,
    commit: EventId,
    below: u64,
) -> Result<FrozenVersion, CourseError> {
    judged(
        history,
        rollouts,
        (commit, rollouts.iteration(commit)),
        below,
    )
}

/// The same as an iteration judged it.
fn judged(
    history: &dyn History,
    rollouts: &Rollouts,
    (commit, iteration): (EventId, Option<&IterationId>),
    below: u64,
) -> Result<FrozenVersion, CourseError> {
    let (Some(rubric), Some(iteration)) = (rubric(rollouts, commit), iteration) else {
        let what = "an iteration that judged what runs";
        return Err(missing(what, "clover iterate open --help"));
    };
    let mut records = Records::default();
    let record = records.of(history, iteration, below)?.cloned();
    let through = record.as_ref().and_then(IterationRecord::through);
    let (Some(record), Some(through)) = (record, through) else {
        let what = format!("the calibrator of iteration {iteration}, which was not fitted yet");
        return Err(missing(
            what,
            format!("clover iterate fit {}", shell::word(iteration)),
        ));
    };
    let course = Course::through(history, &record, through)?;
    let answers = answers(history, (&course, &record), &rubric)?;
    let (fitted, scored) = if course.loaded.rubric.hash() == rubric.hash() {
        let scored = course.loaded.table.data().scored.clone();
        (course.ground.baseline.clone(), scored)
    } else {
        let of = (rubric.hash(), 0);
        let candidate = course
            .loaded
            .candidate(of, &rubric.rules(), answers.as_ref());
        let candidate = candidate.map_err(|missing| CourseError::Candidate(missing.to_string()))?;
        let fitted = course.ground.fitted(&course.loaded.table, &candidate)?;
        (fitted, candidate.scored)
    };
    Ok(FrozenVersion {
        commit,
        judge: answers.map_or_else(|| course.loaded.judge.clone(), |of| of.judge),
        course,
        digest: iterate::calibrator(&fitted),
        range: range(&pick(&scored.scores, &fitted.rows)),
        fitted,
        record,
        rubric,
        scored,
    })
}

/// What a deployment runs: its version with the calibrator that was evaluated, or fitted anew by its recalibration.
///
/// # Errors
/// [`CourseError`].
pub fn running(
    history: &dyn History,
    rollouts: &Rollouts,
    deployment: EventId,
    below: u64,
) -> Result<FrozenVersion, CourseError> {
    let Some(deployment) = rollouts.deployment(deployment) else {
        return Err(missing("the deployment", "clover deploy status"));
    };
    let commit = deployment.said.commit;
    let iteration = rollouts.iteration_by(commit, deployment.said.versions.calibrator);
    let mut frozen = judged(history, rollouts, (commit, iteration), below)?;
    let named = deployment.said.recalibration;
    let said = named.and_then(|id| rollouts.recalibration(id));
    let anew = said.and_then(|of| Some((of, of.said.computed.as_ref()?)));
    if let Some((of, computed)) = anew
        && computed.mode == RecalibrationMode::Refitted
    {
        let experiment = &frozen.record.experiment;
        let ask = recalibration::RecalibrationQuery {
            design: &of.said.design,
            experiment,
            judge: &of.said.judge,
            refit: true,
            through: computed.inputs.through_seq.value(),
        };
        let found = recalibration::fresh(history, &frozen, &ask)?;
        frozen.digest = iterate::calibrator(&found.fitted);
        let scores = &found.table.data().scored.scores;
        frozen.range = range(&pick(scores, &found.fitted.rows));
        frozen.fitted = found.fitted.on(&frozen.course.loaded.table, &frozen.scored);
    }
    let runs = deployment.said.versions.calibrator;
    if runs != frozen.digest {
        let digest = frozen.digest;
        let what = format!(
            "calibrator {runs} runs, and {digest} is the one that was evaluated: live rewards would not be its own"
        );
        return Err(missing(what, "clover deploy activate --help"));
    }
    Ok(frozen)
}
