//! Scales: that of labels is said once for an experiment, with its first labels, and that of scores once for a judge, with
//! its first ones. Both are read by whatever estimates from them.

use clover_event::id::ExperimentId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::judge::ScoreScaleDeclared;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::LabelScaleDeclared;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Micro;
use clover_projection::designs::Designs;
use clover_projection::designs::ExperimentDesigns;
use clover_projection::judges::Judges;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;

use clover_workflow::import::plan::ImportPlan;
use clover_workflow::import::plan::Presence;

use crate::error::SessionError;
use crate::intake::InputFile;
use crate::intake::IntakeRequest;
use crate::intake::error::IntakeError;

/// The scale on which labels of an import are read: the declared one, else the one that the import says.
///
/// # Errors
/// [`IntakeError::OtherScale`] where the two differ.
pub fn agreed(
    state: &State,
    experiment: &ExperimentId,
    said: Option<ScaleEnds>,
) -> Result<Option<ScaleEnds>, IntakeError> {
    let declared = state.fold::<Designs>().scale(experiment);
    match (declared, said) {
        (Some(declared), Some(said)) if declared != said => Err(IntakeError::OtherScale {
            declared,
            experiment: experiment.clone(),
            said,
        }),
        _ => Ok(declared.or(said)),
    }
}

/// The declaration that an import brings: none where it says no scale, or the ledger holds one.
///
/// # Errors
/// [`IntakeError::OtherScale`] and [`IntakeError::OffScale`], and when the log cannot be read.
pub fn declaration(
    ledger: &Ledger,
    request: &IntakeRequest,
) -> Result<Option<Command>, SessionError> {
    let experiment = &request.ask.experiment;
    let state = ledger.state();
    agreed(state, experiment, request.label_scale)?;
    let declared = state.fold::<Designs>().scale(experiment);
    let Some(said) = request.label_scale.filter(|_| declared.is_none()) else {
        return Ok(None);
    };
    let of = state.fold::<Designs>().by_experiment.get(experiment);
    if let Some(seq) = of.and_then(ExperimentDesigns::sealed_since)
        && state.asks(Question::LabelsOnScale)
    {
        return Err(IntakeError::LateScale { said, seq }.into());
    }
    let entries = LogReader::below(ledger, ledger.size()).of(experiment);
    let off = |label: &LabelRecorded| {
        label.value_micro < said.low_micro || label.value_micro > said.high_micro
    };
    if let Some(LogStatement { seq, said: of, .. }) = entries.all::<LabelRecorded>(off)?.first() {
        let value = of.value_micro;
        return Err(IntakeError::OffScale {
            said,
            seq: *seq,
            value,
        }
        .into());
    }
    let said = LabelScaleDeclared {
        high_micro: said.high_micro,
        low_micro: said.low_micro,
    };
    Ok(Some(Command::new(said, Some(experiment.clone()))))
}

/// 0 to 1.
fn unit() -> ScaleEnds {
    ScaleEnds {
        high_micro: Micro::new(1_000_000).expect("BUG: one is a number"),
        low_micro: Micro::default(),
    }
}

/// The declaration of the scale of scores that an import brings: none where scores go from 0 to 1, the ledger holds it, or
/// nothing is new.
///
/// # Errors
/// [`IntakeError::OtherScoreScale`] where the judge has scores on another scale.
pub fn of_scores(
    ledger: &Ledger,
    request: &IntakeRequest,
    (files, plans): (&[InputFile], &[ImportPlan]),
) -> Result<Option<Command>, IntakeError> {
    let state = ledger.state();
    let pairs = files.iter().zip(plans);
    let new = pairs.filter_map(|(file, plan)| {
        let mut rows = file.rows.rows.iter().zip(&plan.rows);
        let (row, _) = rows.find(|(_, of)| of.score == Presence::New)?;
        Some((&file.rows.file, row.line))
    });
    let Some((file, line)) = new.into_iter().next() else {
        return Ok(None);
    };
    if !state.asks(Question::ScoresOnScale) {
        return Ok(None);
    }
    let (experiment, judge) = (&request.ask.experiment, &request.ask.judge);
    let said = request.score_scale.unwrap_or_else(unit);
    let of = state.fold::<Judges>().of(experiment);
    let range = of.and_then(|of| of.scorers.get(judge));
    let is_unit = |of: &ScaleEnds| unit().holds(of.low_micro) && unit().holds(of.high_micro);
    // Who scored beyond 0 to 1 before anybody declared a scale has one of an older rulebook, or of a gate.
    let (known, agrees) = match (of.and_then(|of| of.scales.get(judge)), range) {
        (Some(known), _) => (*known, *known == said),
        (None, Some(range)) if is_unit(range) => (unit(), said == unit()),
        (None, Some(range)) => {
            let holds = said.holds(range.low_micro) && said.holds(range.high_micro);
            (*range, holds)
        }
        (None, None) if said != unit() => {
            let said = ScoreScaleDeclared {
                high_micro: said.high_micro,
                judge: judge.clone(),
                low_micro: said.low_micro,
            };
            return Ok(Some(Command::new(said, Some(experiment.clone()))));
        }
        (None, None) => return Ok(None),
    };
    if agrees {
        return Ok(None);
    }
    Err(IntakeError::OtherScoreScale {
        file: file.clone(),
        line,
        judge: judge.clone(),
        known,
        said,
    })
}
