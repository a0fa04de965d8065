//! Two judges held against the same labels, and the plan that said so before.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::payload::label::LabelPurpose;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::manifests::Manifests;
use clover_workflow::judge::agreement;
use clover_workflow::judge::agreement::JudgeAgreement;

use crate::error::SessionError;
use crate::judge::error::JudgingError;

/// How a plan names a comparison among its secondary analyses, before the names of the judges.
pub const NAMED: &str = "judge compare ";

/// Two judges, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The judges, in the order asked for.
    pub judges: [JudgeId; 2],
    /// The numbers.
    pub compared: JudgeAgreement,
    /// The plan that named them before the first label, and how many comparisons it names; `None` where it is exploratory.
    pub plan: Option<(ManifestId, usize)>,
}

/// Compares two judges on the rows that both scored, as the log stood at a state.
///
/// # Errors
/// [`JudgingError::Compared`].
pub fn compare(
    ledger: &Ledger,
    state: &State,
    experiment: &ExperimentId,
    [first, second]: [JudgeId; 2],
) -> Result<Comparison, SessionError> {
    let below = state.size;
    let pair = [&first, &second];
    let compared = agreement::compared(ledger, experiment, pair, below);
    let compared = compared.map_err(|error| JudgingError::Compared {
        first: first.clone(),
        second: second.clone(),
        error: Box::new(error),
    })?;
    let plan = plan(ledger, state, experiment, pair)?;
    Ok(Comparison {
        judges: [first, second],
        compared,
        plan,
    })
}

/// The plan in force that named a comparison before the first label for calibration.
fn plan(
    ledger: &Ledger,
    state: &State,
    experiment: &ExperimentId,
    [first, second]: [&JudgeId; 2],
) -> Result<Option<(ManifestId, usize)>, SessionError> {
    let words = [
        format!("{NAMED}{first} {second}"),
        format!("{NAMED}{second} {first}"),
    ];
    let mut plans = state.fold::<Manifests>().by_id.iter();
    let found = plans.find_map(|(id, record)| {
        let version = record.in_force()?;
        let of = &version.manifest;
        let secondary = of.analysis.as_ref()?.secondary.as_ref()?;
        let is_named = secondary
            .iter()
            .any(|text| words.iter().any(|of| of == text.as_str()));
        let all = secondary
            .iter()
            .filter(|text| text.as_str().starts_with(NAMED));
        (of.experiment == *experiment && is_named).then(|| (id.clone(), all.count(), version.seq))
    });
    let Some((id, count, seq)) = found else {
        return Ok(None);
    };
    let mut is_late = false;
    ledger.entries(0, seq, |read| {
        let is_ours = read.event.header.experiment.as_ref() == Some(experiment);
        is_late |= is_ours
            && matches!(&read.event.payload, Payload::LabelRecorded(label) if label.purpose != LabelPurpose::Audit);
        Ok::<_, SessionError>(())
    })?;
    Ok((!is_late).then_some((id, count)))
}
