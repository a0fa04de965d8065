//! A calibrator against fresh labels, before what changed a hard rule or the judge's model may run: the one that was
//! evaluated is verified, or it is fitted anew. Source: CLOVER v1.1, section 9.3.

use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::Text;
use clover_event::payload::deployment::RecalibrationInputs;
use clover_event::payload::deployment::RecalibrationMode;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::Anchors;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::Thresholds;
use clover_ground::digest::Digest;
use clover_ledger::History;
use clover_num::Count;
use clover_projection::deployments::rollouts::Rollouts;
use clover_stats::sample::InsufficientData;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;

use crate::iterate;
use crate::iterate::compute::IterationRows;
use crate::iterate::compute::Table;
use crate::iterate::compute::evidence;
use crate::iterate::compute::fit;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::transport;
use crate::iterate::compute::transport::Group;
use crate::iterate::course::CourseError;
use crate::iterate::rows::LaterQuery;
use crate::iterate::rows::later;
use crate::iterate::steps;
use crate::iterate::steps::BUILD;
use crate::live;
use crate::live::FrozenVersion;
use crate::live::missing;

/// Fresh labels that a recalibration takes.
pub const LABELS_MIN: usize = 100;

/// Which labels, of whose scores, and what is done with them.
#[derive(Clone, Copy, Debug)]
pub struct RecalibrationQuery<'a> {
    /// The design of the fresh labels.
    pub design: &'a DesignId,
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Whose scores.
    pub judge: &'a JudgeId,
    /// Whether the calibrator is fitted anew.
    pub refit: bool,
    /// The last entry that is read.
    pub through: u64,
}

/// Fresh rows with their calibrator.
#[derive(Debug)]
pub struct Fresh {
    /// The calibrator: as it was evaluated, or fitted on these rows.
    pub fitted: CalibratorFit,
    /// Labelled rows.
    pub labelled: Vec<usize>,
    /// The rows: in the part `fit` where it was fitted on them, else in `dev`.
    pub table: Table,
}

/// What a recalibration found.
#[derive(Clone, Debug, PartialEq)]
pub struct RecalibrationResult {
    /// How far the anchors moved, against what ran before.
    pub anchors: Anchors,
    /// Digest of the calibrator.
    pub calibrator: Digest,
    /// What it was computed from.
    pub computed: RecalibrationInputs,
    /// Fresh labels.
    pub labels: Count,
}

/// Fresh rows of a version, under the calibrator that was evaluated or one that is fitted on them.
///
/// # Errors
/// [`CourseError`].
pub fn fresh(
    history: &dyn History,
    frozen: &FrozenVersion,
    ask: &RecalibrationQuery<'_>,
) -> Result<Fresh, CourseError> {
    // What the iteration read is not fresh, whatever its design.
    let used = frozen.record.through().unwrap_or(u64::MAX);
    let after = LaterQuery {
        experiment: ask.experiment,
        iteration: &frozen.record.iteration,
        judge: ask.judge,
        labels: &|of: &DesignId, seq| of == ask.design && seq > used,
        rows: &|_: &PolicyId, _| true,
        rubric: &frozen.rubric,
        through: ask.through,
        with_anchors: true,
    };
    let Some(later) = later(history, &after)? else {
        let what = format!("no score of judge {}", ask.judge);
        return Err(missing(what, "clover judge run --judge ID --rows PATH"));
    };
    let labelled = later.labelled();
    InsufficientData::unless("fresh labels", labelled.len(), LABELS_MIN).map_err(Unfit::from)?;
    let scored = &later.table.data().scored;
    if !ask.refit {
        let fitted = frozen.fitted.on(&later.table, scored);
        return Ok(Fresh {
            fitted,
            labelled,
            table: later.table,
        });
    }
    let rows = later.table.len();
    let table = Table::new(IterationRows {
        parts: vec![Some(SplitPart::Fit); rows],
        ..later.table.data().clone()
    });
    let table = table.map_err(Unfit::from)?;
    let fitted = fit::fit(&table, scored, frozen.course.ground.settings)?;
    Ok(Fresh {
        fitted,
        labelled,
        table,
    })
}

/// Holds the calibrator of a version against fresh labels.
///
/// # Errors
/// [`CourseError`].
pub fn recalibrate(
    history: &dyn History,
    rollouts: &Rollouts,
    (commit, below): (EventId, u64),
    ask: &RecalibrationQuery<'_>,
    held: &Thresholds,
) -> Result<RecalibrationResult, CourseError> {
    let frozen = live::frozen(history, rollouts, commit, below)?;
    let fresh = fresh(history, &frozen, ask)?;
    let calibrator = if ask.refit {
        iterate::calibrator(&fresh.fitted)
    } else {
        frozen.digest
    };
    Ok(RecalibrationResult {
        anchors: anchors(&frozen, &fresh).map_err(Unfit::from)?,
        calibrator,
        computed: computed(&fresh, ask, held)?,
        labels: Count::new(fresh.labelled.len() as u64).unwrap_or_default(),
    })
}

fn computed(
    fresh: &Fresh,
    ask: &RecalibrationQuery<'_>,
    held: &Thresholds,
) -> Result<RecalibrationInputs, Unfit> {
    let through = Count::new(ask.through).unwrap_or_default();
    Ok(RecalibrationInputs {
        build: Text::new(BUILD).expect("BUG: short plain words"),
        inputs: steps::inputs(&fresh.table, through),
        mode: if ask.refit {
            RecalibrationMode::Refitted
        } else {
            RecalibrationMode::Verified
        },
        thresholds: held.clone(),
        transport: residuals(fresh, held)?,
    })
}

/// Residuals of all fresh labels, then those of each registered environment.
fn residuals(fresh: &Fresh, held: &Thresholds) -> Result<EnvironmentTests, Unfit> {
    let level = held.q_micro.value() as f64 / 1e6;
    let scored = &fresh.table.data().scored;
    let word = "BUG: a short word";
    let all = Group {
        environment: "all".parse().expect(word),
        required: true,
        rows: &fresh.labelled,
    };
    let family = "fresh-labels".parse().expect(word);
    let of = (&fresh.fitted, scored);
    let mut environments = transport::groups(&fresh.table, of, &family, &[all], level)?;
    let part = fresh.table.data().parts.first().copied().flatten();
    let part = part.unwrap_or(SplitPart::Dev);
    let each = transport::transport(&fresh.table, &fresh.fitted, of, part, level)?;
    environments.extend(each.environments);
    Ok(EnvironmentTests {
        environments,
        none_claimed: None,
    })
}

/// How far mean rewards of anchors move against what the iteration started from; those that are not at hand are left out.
fn anchors(frozen: &FrozenVersion, fresh: &Fresh) -> Result<Anchors, SampleError> {
    let mut anchors = Vec::new();
    for before in &frozen.course.loaded.table.data().anchors {
        let mut now = fresh.table.data().anchors.iter();
        let Some(now) = now.find(|of| of.policy == before.policy) else {
            continue;
        };
        let was = frozen
            .course
            .ground
            .baseline
            .anchors(before, &before.scored);
        let is = fresh.fitted.anchors(now, &now.scored);
        if was.len() == is.len() && !was.is_empty() {
            anchors.push(evidence::anchor_drift(&before.policy, &was, &is)?);
        }
    }
    Ok(Anchors { anchors })
}
