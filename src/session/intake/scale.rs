//! The scale of labels: said once for an experiment, with its first labels, and read by whatever estimates from them.

use clover_event::id::ExperimentId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::label::LabelRecorded;
use clover_event::payload::label::LabelScaleDeclared;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::designs::Designs;
use clover_projection::reader::LogReader;
use clover_projection::reader::LogStatement;

use crate::error::SessionError;
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
