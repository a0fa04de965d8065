//! Guardrails of what runs, from live rows: outputs that were scored and labels that were given since.
//!
//! The calibrator is the one that was evaluated when the running version was accepted; live rewards are held against its
//! rewards of the iteration's logs. The deployment before is scored from the same raw answers, which is how the change of
//! the squared error is measured while only one of them runs. Source: CLOVER v1.1, section 9.3.

use std::collections::BTreeMap;

use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::payload::battery::BatteryEvaluated;
use clover_event::payload::deployment::AbstentionShares;
use clover_event::payload::deployment::DeploymentActivated;
use clover_event::payload::deployment::GreenBound;
use clover_event::payload::deployment::LiveEvidence;
use clover_event::payload::deployment::OutOfRange;
use clover_event::payload::deployment::Window;
use clover_event::payload::drift::JudgeDriftChecked;
use clover_event::payload::intake::SplitPart;
use clover_event::payload::predicate::Anchors;
use clover_event::payload::predicate::Blast;
use clover_event::payload::predicate::RowsRead;
use clover_event::payload::predicate::Thresholds;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Count;
use clover_num::Finite;
use clover_num::Probability;
use clover_projection::batteries::EXPLOIT_MICRO;
use clover_projection::deployments::rollouts::Rollouts;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;
use clover_rubric::Rubric;
use clover_stats::distance;
use clover_stats::distribution;
use clover_stats::predicate::Losses;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::guardrails::LABELS_MIN;
use crate::iterate::compute::evidence;
use crate::iterate::compute::evidence::RewardComparison;
use crate::iterate::compute::fit::CalibratorFit;
use crate::iterate::compute::rows::RubricScores;
use crate::iterate::compute::rows::pick;
use crate::iterate::compute::transport;
use crate::iterate::course::CourseError;
use crate::iterate::rows::Later;
use crate::iterate::rows::LaterQuery;
use crate::iterate::rows::later;
use crate::iterate::steps;
use crate::live;
use crate::live::FrozenVersion;
use crate::live::missing;

/// Level of the one-sided bounds of green slices.
const LEVEL: f64 = 0.95;

fn count(value: usize) -> Count {
    Count::new(value as u64).unwrap_or_default()
}

fn finite(value: f64) -> Result<Finite, SampleError> {
    Finite::new(value).ok_or(SampleError::Parameter {
        name: "values",
        expected: "sums and squares within the range of a double",
    })
}

/// What runs, and what ran before it.
#[derive(Debug)]
pub struct DeploymentPair {
    /// The deployment.
    pub deployment: LogStatement<DeploymentActivated>,
    /// What runs.
    pub running: FrozenVersion,
    /// What ran before: its rubric and calibrator.
    before: Option<(Rubric, CalibratorFit)>,
}

impl DeploymentPair {
    /// A deployment with the calibrators of both, from the log below a position.
    ///
    /// # Errors
    /// [`CourseError`].
    pub fn of(
        history: &dyn History,
        rollouts: &Rollouts,
        deployment: EventId,
        below: u64,
    ) -> Result<Self, CourseError> {
        let Some(deployment) = rollouts.deployment(deployment).cloned() else {
            return Err(missing("the deployment", "clover deploy status"));
        };
        let running = live::running(history, rollouts, deployment.id, below)?;
        let previous = deployment.said.previous;
        let previous = previous.and_then(|id| rollouts.deployment(id));
        let before = match previous.map(|of| (of.id, of.said.commit)) {
            None => None,
            Some((id, commit)) => {
                let same = rollouts.iteration(commit) == Some(&running.record.iteration);
                let rubric = live::rubric(rollouts, commit);
                let base = &running.course.loaded.rubric;
                match rubric {
                    Some(rubric) if same && rubric.hash() == base.hash() => {
                        Some((rubric, running.course.ground.baseline.clone()))
                    }
                    _ => {
                        let frozen = live::running(history, rollouts, id, below)?;
                        Some((frozen.rubric, frozen.fitted))
                    }
                }
            }
        };
        Ok(Self {
            deployment,
            running,
            before,
        })
    }
}

/// Live rows with both rewards of each.
struct LiveRows {
    later: Later,
    running: (CalibratorFit, RubricScores),
    before: Option<CalibratorFit>,
}

fn rows(
    history: &dyn History,
    watched: &DeploymentPair,
    experiment: &ExperimentId,
    window: Window,
) -> Result<Option<LiveRows>, CourseError> {
    let (from, through) = (window.from_seq.value(), window.through_seq.value());
    let live = move |seq: u64| seq >= from;
    let running = &watched.running;
    // Scored under what ran before, as rows of an iteration are scored under the rubric that it starts from.
    let rubric = watched.before.as_ref().map_or(&running.rubric, |of| &of.0);
    let after = LaterQuery {
        experiment,
        iteration: &running.record.iteration,
        judge: &watched.deployment.said.versions.judge,
        labels: &move |_: &DesignId, seq: u64| live(seq),
        rows: &move |_: &PolicyId, seq: u64| live(seq),
        rubric,
        through,
        with_anchors: false,
    };
    let Some(later) = later(history, &after)? else {
        return Ok(None);
    };
    let table = &later.table;
    let scored = if rubric.hash() == running.rubric.hash() {
        table.data().scored.clone()
    } else {
        let scored = later.under(&running.rubric);
        scored.map_err(|missing| CourseError::Candidate(missing.to_string()))?
    };
    let before = watched.before.as_ref();
    let before = before.map(|(_, fitted)| fitted.on(table, &table.data().scored));
    let running = (running.fitted.on(table, &scored), scored);
    Ok(Some(LiveRows {
        later,
        running,
        before,
    }))
}

/// What live rows of a window show, and which rows that were; without a row only what needs none.
///
/// # Errors
/// [`CourseError`].
pub fn shown(
    history: &dyn History,
    watched: &DeploymentPair,
    experiment: &ExperimentId,
    held: &Thresholds,
    window: Window,
) -> Result<(LiveEvidence, RowsRead), CourseError> {
    let reopened = reopened(history, watched, experiment, window)?;
    let anchors = anchors(history, watched, experiment, window)?;
    let Some(rows) = rows(history, watched, experiment, window)? else {
        let evidence = LiveEvidence {
            anchors,
            out_of_range: Some(OutOfRange {
                outside: Count::default(),
                rows: Count::default(),
            }),
            reopened,
            rows: Some(Count::default()),
            ..LiveEvidence::default()
        };
        return Ok((evidence, nothing(window)));
    };
    let table = &rows.later.table;
    let labels = rows.later.labelled().len();
    let (greens, thin) = greens(watched, &rows, held)?;
    let (fitted, scored) = &rows.running;
    let environments = if labels == 0 || table.data().environments.is_empty() {
        None
    } else {
        let level = held.q_micro.value() as f64 / 1e6;
        let base = rows.before.as_ref().unwrap_or(fitted);
        let candidate = (fitted, scored);
        Some(transport::transport(
            table,
            base,
            candidate,
            SplitPart::Dev,
            level,
        )?)
    };
    let evidence = LiveEvidence {
        abstention: Some(AbstentionShares {
            accepted: share(
                &watched.running.scored,
                watched.running.course.loaded.table.logs(),
            )?,
            live: share(scored, table.logs())?,
        }),
        anchors,
        environments,
        greens,
        labels: count(labels),
        out_of_range: Some(outside(watched, scored)),
        reopened,
        rows: Some(count(table.len())),
        shift: Some(shift(watched, fitted)?),
        thin,
    };
    Ok((evidence, steps::inputs(table, window.through_seq)))
}

fn nothing(window: Window) -> RowsRead {
    RowsRead {
        digest: clover_ground::digest::Digest::sha256(b""),
        rows: Count::default(),
        through_seq: window.through_seq,
    }
}

fn share(scored: &RubricScores, rows: &[usize]) -> Result<Probability, Unfit> {
    let of = rows.iter().filter(|row| scored.abstains[**row]).count();
    let share = Probability::new(of as f64 / rows.len().max(1) as f64);
    share.ok_or_else(|| {
        SampleError::Parameter {
            name: "abstains",
            expected: "a share from 0 to 1",
        }
        .into()
    })
}

/// Live scores outside of those that labelled rows had when the calibrator was fitted.
fn outside(watched: &DeploymentPair, scored: &RubricScores) -> OutOfRange {
    let running = &watched.running;
    let (least, most) = running.range;
    let beyond = scored.scores.iter().filter(|s| **s < least || **s > most);
    OutOfRange {
        outside: count(beyond.count()),
        rows: count(scored.scores.len()),
    }
}

/// Live rewards against those of the iteration's logs, as two samples.
fn shift(watched: &DeploymentPair, fitted: &CalibratorFit) -> Result<Blast, Unfit> {
    let running = &watched.running;
    let accepted = pick(&running.fitted.rewards, running.course.loaded.table.logs());
    let accepted = Values::new("accepted rewards", &accepted)?;
    let live = Values::new("live rewards", &fitted.rewards)?;
    let found = distance::ks_counts(live, accepted);
    let whole = |value: i128| u64::try_from(value).ok().and_then(Count::new);
    let of = SampleError::Parameter {
        name: "live rows",
        expected: "fewer rows, whose common multiple is below 2^53",
    };
    Ok(Blast {
        ks_count: whole(found.count()).ok_or_else(|| of.clone())?,
        rows: whole(found.scale()).ok_or(of)?,
        w1: finite(distance::wasserstein(live, accepted))?,
    })
}

/// The least that each green slice lost against what ran before, and how many had too few labels of their own; nothing where
/// nothing ran before.
fn greens(
    watched: &DeploymentPair,
    rows: &LiveRows,
    held: &Thresholds,
) -> Result<(Option<Vec<GreenBound>>, Option<Count>), Unfit> {
    let Some(before) = &rows.before else {
        return Ok((None, None));
    };
    let (fitted, scored) = &rows.running;
    let compared = RewardComparison {
        table: &rows.later.table,
        before: &before.rewards,
        after: &fitted.rewards,
        abstains: &scored.abstains,
        classified: &watched.running.course.ground.classified,
        thresholds: held,
    };
    let least = usize::try_from(LABELS_MIN).unwrap_or(usize::MAX);
    let (mut bounds, mut thin) = (Vec::new(), 0);
    for (slice, losses) in compared.green_losses(SplitPart::Dev, least)? {
        let lower = losses.as_ref().and_then(lower);
        let Some(lower) = lower else {
            thin += 1;
            continue;
        };
        let family = &rows.later.table.data().slices[slice.family];
        bounds.push(GreenBound {
            family: family.id.clone(),
            lower: finite(lower)?,
            must_not_regress: slice.must_not_regress,
            slice: slice.name(&rows.later.table),
        });
    }
    Ok((Some(bounds), Some(count(thin))))
}

/// One-sided 95 % lower bound of the mean difference; `None` for one prompt.
fn lower(losses: &Losses) -> Option<f64> {
    let mean = losses.mean();
    let error = mean.standard_error()?;
    Some(mean.mean - distribution::t_quantile(LEVEL, mean.df()) * error)
}

/// Exploits that were closed before the window and pay again by a battery of the running rubric in it; `None` where none was
/// measured.
fn reopened(
    history: &dyn History,
    watched: &DeploymentPair,
    experiment: &ExperimentId,
    window: Window,
) -> Result<Option<Count>, LedgerError> {
    let (from, through) = (window.from_seq.value(), window.through_seq.value());
    let rubric = watched.running.rubric.hash();
    let mut closed: BTreeMap<u64, bool> = BTreeMap::new();
    let mut again: Option<BTreeMap<u64, bool>> = None;
    let entries = LogReader::through(history, through).of(experiment);
    let batteries = entries.all::<BatteryEvaluated>(|said| said.candidate.is_none())?;
    for LogStatement { seq, said, .. } in batteries {
        let live = seq >= from && said.rubric_hash == rubric;
        for found in &said.exploits {
            let (number, pays) = (
                found.exploit.value(),
                found.uplift_micro.value() > EXPLOIT_MICRO,
            );
            if live {
                again.get_or_insert_default().insert(number, pays);
            } else if seq < from {
                closed.insert(number, !pays);
            }
        }
        if live {
            again.get_or_insert_default();
        }
    }
    let reopened = |again: BTreeMap<u64, bool>| {
        let pays = again.into_iter().filter(|(_, pays)| *pays);
        pays.filter(|(number, _)| closed.get(number) == Some(&true))
            .count()
    };
    Ok(again.map(|again| count(reopened(again))))
}

/// How far mean rewards of anchors moved since, by the newest drift check of the deployment's judge in the window; `None`
/// where there is none, or it scored other anchors than those of the iteration.
fn anchors(
    history: &dyn History,
    watched: &DeploymentPair,
    experiment: &ExperimentId,
    window: Window,
) -> Result<Option<Anchors>, CourseError> {
    let (from, through) = (window.from_seq.value(), window.through_seq.value());
    let running = &watched.running;
    let loaded = &running.course.loaded;
    let named = loaded
        .plan
        .design
        .as_ref()
        .and_then(|design| design.anchors.clone());
    let entries = LogReader::through(history, through).since(from);
    let mut checks = entries.of(experiment).all::<JudgeDriftChecked>(|said| {
        let is_judge = said.judge == watched.deployment.said.versions.judge;
        is_judge && Some(&said.anchors) == named.as_ref()
    })?;
    let Some(newest) = checks.pop() else {
        return Ok(None);
    };
    let scores = newest.said.scores_micro;
    let rules = running.rubric.rules();
    let was = loaded.anchors_under(&rules, None);
    let is = loaded.anchors_under(&rules, Some(&scores));
    let (Some(was), Some(is)) = (was, is) else {
        return Ok(None);
    };
    let mut anchors = Vec::new();
    let pairs = loaded.table.data().anchors.iter().zip(was.iter().zip(&is));
    for (anchor, (was, is)) in pairs {
        let (was, is) = (
            running.fitted.anchors(anchor, was),
            running.fitted.anchors(anchor, is),
        );
        let moved = evidence::anchor_drift(&anchor.policy, &was, &is).map_err(Unfit::from)?;
        anchors.push(moved);
    }
    Ok((!anchors.is_empty()).then_some(Anchors { anchors }))
}
