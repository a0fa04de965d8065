//! The anchors scored anew: whether a judge is still the one that it was.

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::payload::Verdict;
use clover_event::payload::drift::DriftPlan;
use clover_event::payload::drift::DriftTerms;
use clover_event::payload::drift::JudgeDriftChecked;
use clover_event::payload::drift::JudgeVersion;
use clover_event::payload::label::row_of_draw;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Micro;
use clover_projection::drifts;
use clover_projection::gates::Gates;
use clover_projection::iterations::Iterations;
use clover_projection::manifests::Manifests;
use clover_workflow::drift;
use clover_workflow::drift::AnchorHistory;
use clover_workflow::drift::AnchorQuery;
use clover_workflow::drift::DriftError;
use clover_workflow::drift::Heard;
use clover_workflow::import::ImportRow;

use crate::charges;
use crate::error::SessionError;
use crate::judge::assignment::Assignment;
use crate::judge::error::JudgingError;
use crate::judge::scoring;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// Where the new scores come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreOrigin {
    /// The judge is asked.
    Judge,
    /// The rows bring them along.
    Rows,
}

/// What a check of drift is told.
#[derive(Clone, Debug)]
pub struct DriftRequest {
    /// The anchor set; default the only one of the experiment.
    pub anchors: Option<AnchorSetId>,
    /// Whether it is known that the judge is not the one that was registered.
    pub changed: bool,
    /// Where the new scores come from.
    pub scores: ScoreOrigin,
}

/// What a check of drift found. Nothing is on record before [`record`].
#[derive(Clone, Debug)]
pub struct DriftCheck {
    /// The event that says so.
    pub said: JudgeDriftChecked,
    /// Which check of these anchors it is, from 1.
    pub number: usize,
    /// Open gates that it makes stale.
    pub stale_gates: Vec<ManifestId>,
}

/// Scores the anchors anew and compares them with what is on record. Appends nothing.
///
/// # Errors
/// [`JudgingError`].
pub fn check(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    mut assignment: Assignment,
    request: &DriftRequest,
) -> Result<DriftCheck, SessionError> {
    let anchors = anchor_set(ledger.state(), &assignment.experiment, request)?;
    let asked = request.scores == ScoreOrigin::Judge;
    let asked = asked.then(|| JudgeVersion::from(&assignment.registration));
    same_judge(ledger, &assignment, asked.as_ref(), request.changed)?;
    let terms = terms(ledger.state(), &assignment.experiment)?;
    let rows = std::mem::take(&mut assignment.rows);
    let which = AnchorQuery {
        anchors: &anchors,
        experiment: &assignment.experiment,
        judge: assignment.judge(),
        through: ledger.size().saturating_sub(1),
    };
    let stopped = |error| refused(error, assignment.judge());
    let found = drift::recorded(ledger, &which).map_err(stopped)?;
    let rows = anchor_rows(rows, &found)?;
    let scores = match request.scores {
        ScoreOrigin::Rows => rows.iter().map(|row| row.score).collect(),
        ScoreOrigin::Judge => {
            // It is paid once the check goes on record; here only whether it can be.
            let whose = (assignment.registration.port, assignment.judge());
            charges::calls(ports, ledger, whose, rows.len() as u64)?;
            heard(ports, ledger, &assignment, rows)?
        }
    };
    let said = drift::check(&found, Heard { asked, scores }, terms).map_err(stopped)?;
    Ok(DriftCheck {
        stale_gates: stale_after(ledger.state(), &assignment.experiment, &said),
        number: found.earlier.len() + 1,
        said,
    })
}

/// Records a check.
///
/// # Errors
/// No key, or what the ledger says; nothing was appended then.
pub fn record(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    said: JudgeDriftChecked,
) -> Result<Vec<AppendedEvent>, SessionError> {
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::JudgeDriftChecked))?;
    if let Some(asked) = &said.asked {
        let calls = said.rows.rows.value();
        let payer = charges::calls(ports, ledger, (asked.port, &said.judge), calls)?;
        payer.map_or(Ok(()), |payer| payer.pay(ledger, calls))?;
    }
    let command = Command::new(said, Some(experiment.clone()));
    scoring::settled(ports, ledger, &[command], &signer)
}

/// The named set, else the only one.
fn anchor_set(
    state: &State,
    experiment: &ExperimentId,
    request: &DriftRequest,
) -> Result<AnchorSetId, JudgingError> {
    if let Some(named) = &request.anchors {
        return Ok(named.clone());
    }
    let of = &state.fold::<Iterations>().anchors;
    let sets: Vec<&AnchorSetId> = of
        .get(experiment)
        .into_iter()
        .flatten()
        .map(|(id, _)| id)
        .collect();
    match sets.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(JudgingError::NoAnchors(experiment.clone())),
        several => {
            let sets = several.iter().map(|id| (*id).clone()).collect();
            Err(JudgingError::SeveralAnchors(sets))
        }
    }
}

/// Refuses to ask another judge than the registered one unless that is what is to be recorded.
fn same_judge(
    ledger: &Ledger,
    assignment: &Assignment,
    asked: Option<&JudgeVersion>,
    changed: bool,
) -> Result<(), SessionError> {
    let Some(standing) = assignment.standing(ledger)? else {
        return Ok(());
    };
    let differs = asked.is_some_and(|asked| JudgeVersion::from(&standing.judge) != *asked);
    if differs && !changed {
        let error = JudgingError::ChangedJudge {
            asked: Box::new(assignment.registration.clone()),
            registered: Box::new(standing.judge),
            seq: standing.seq,
        };
        return Err(error.into());
    }
    if changed && !differs {
        return Err(JudgingError::SameJudge.into());
    }
    Ok(())
}

/// The numbers that a manifest registers, else the usual ones.
fn terms(state: &State, experiment: &ExperimentId) -> Result<DriftTerms, JudgingError> {
    let manifests = state.fold::<Manifests>();
    if state.asks(Question::FirstThresholds) {
        let registered = drifts::first_drift(manifests, experiment);
        return Ok(DriftTerms {
            manifest: registered.map(|(_, digest, _)| digest),
            plan: registered.map_or_else(DriftPlan::default, |(.., plan)| plan),
        });
    }
    let mut all: Vec<_> = drifts::planned(manifests, experiment, drifts::drift_plan).collect();
    if all.len() > 1 {
        let names = all.iter().map(|(id, ..)| (*id).clone()).collect();
        return Err(JudgingError::SeveralPlans(names));
    }
    let registered = all.pop();
    Ok(DriftTerms {
        manifest: registered.as_ref().map(|(_, digest, _)| *digest),
        plan: registered.map_or_else(DriftPlan::default, |(.., plan)| plan),
    })
}

fn refused(error: DriftError, judge: &JudgeId) -> SessionError {
    match error {
        DriftError::Ledger(error) => error.into(),
        error => {
            let judge = judge.clone();
            JudgingError::Drift { judge, error }.into()
        }
    }
}

/// The rows of the anchors, in their order; others are left alone.
fn anchor_rows(
    rows: Vec<ImportRow>,
    found: &AnchorHistory,
) -> Result<Vec<ImportRow>, JudgingError> {
    let mut by_id: BTreeMap<String, ImportRow> = BTreeMap::new();
    for row in rows {
        by_id.insert(row_of_draw(&row.policy, &row.item, row.draw), row);
    }
    let missing: Vec<&str> = found
        .rows
        .iter()
        .filter(|row| !by_id.contains_key(&row.id))
        .map(|row| row.id.as_str())
        .collect();
    if let Some(first) = missing.first() {
        return Err(JudgingError::MissingAnchors {
            rows: found.rows.len(),
            missing: missing.len(),
            first: (*first).to_owned(),
        });
    }
    let rows = found.rows.iter().filter_map(|row| by_id.remove(&row.id));
    Ok(rows.collect())
}

/// Asks the judge for every row.
fn heard(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    assignment: &Assignment,
    rows: Vec<ImportRow>,
) -> Result<Vec<Micro>, SessionError> {
    let pairs = rows.into_iter().map(|row| {
        let reading = assignment.read(&row)?;
        Ok((row, reading))
    });
    let pairs = pairs.collect::<Result<Vec<_>, JudgingError>>()?;
    let answers = scoring::answers(ports, ledger, assignment, &pairs)?;
    Ok(answers.into_iter().map(|answer| answer.score).collect())
}

/// Open gates that a failed check makes stale.
fn stale_after(
    state: &State,
    experiment: &ExperimentId,
    said: &JudgeDriftChecked,
) -> Vec<ManifestId> {
    if said.verdicts.whole() != Verdict::Fail {
        return Vec::new();
    }
    let gates = state.fold::<Gates>().by_id.iter();
    let open = gates.filter(|(_, gate)| {
        let uses = |judge: &JudgeId| *judge == said.judge;
        gate.decided.is_none()
            && gate.experiment.as_ref() == Some(experiment)
            && gate
                .sources
                .iter()
                .any(|of| of.judge.as_ref().is_some_and(uses))
    });
    open.map(|(id, _)| id.clone()).collect()
}
