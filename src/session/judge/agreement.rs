//! Two judges held against the same labels, and the plan that said so before.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::scoring::JudgeCompared;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_workflow::judge::agreement;

use crate::error::SessionError;
use crate::judge::error::JudgingError;
use crate::judge::scoring;
use crate::ports::KeyNeed;
use crate::ports::Ports;

/// Two judges, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was found.
    pub said: JudgeCompared,
    /// Where it stands on record; `None` where it does not.
    pub seq: Option<u64>,
    /// Where a comparison that a plan named stands, with other numbers; `None` where none does.
    pub seen: Option<u64>,
}

/// Compares two judges on the rows that both scored, as the log stood at a state. Appends nothing. One that is on record with
/// the same numbers is given as it stands there.
///
/// # Errors
/// [`JudgingError::Compared`].
pub fn compare(
    ledger: &Ledger,
    state: &State,
    experiment: &ExperimentId,
    [first, second]: [JudgeId; 2],
) -> Result<Comparison, SessionError> {
    let earlier = agreement::earlier(ledger, experiment, [&first, &second], state.size)?;
    // In the order that is on record, where one is.
    let first_said = earlier.first().map(|(_, said)| [&said.first, &said.second]);
    let pair = first_said.unwrap_or([&first, &second]);
    let found = agreement::compared(ledger, experiment, pair, state.size);
    let found = found.map_err(|error| JudgingError::Compared {
        first: first.clone(),
        second: second.clone(),
        error: Box::new(error),
    })?;
    let same = earlier.iter().find(|(_, said)| {
        let (plan, through) = (said.plan.clone(), said.through_seq.value());
        found.said(pair, plan, through) == *said
    });
    if let Some((seq, said)) = same {
        return Ok(Comparison {
            said: said.clone(),
            seq: Some(*seq),
            seen: None,
        });
    }
    let plan = agreement::plan(ledger, state, experiment, pair)?;
    let mut seen = earlier.iter().filter(|(_, said)| said.plan.is_some());
    Ok(Comparison {
        said: found.said(pair, plan, state.size.saturating_sub(1)),
        seq: None,
        seen: seen.next().map(|(seq, _)| *seq),
    })
}

/// Puts a comparison on record, unless it is there.
///
/// # Errors
/// A missing key, and what the ledger says; then nothing was appended.
pub fn record(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    found: &mut Comparison,
) -> Result<(), SessionError> {
    if found.seq.is_some() {
        return Ok(());
    }
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::JudgeCompared))?;
    let command = Command::new(found.said.clone(), Some(experiment.clone()));
    let appended = scoring::settled(ports, ledger, &[command], &signer)?;
    found.seq = appended.first().map(|of| of.seq);
    Ok(())
}
