//! Two judges held against the same labels, and the plan that said so before.

use clover_event::Kind;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::scoring::JudgeCompared;
use clover_ground::sign::KeyId;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::State;
use clover_projection::tainted;
use clover_stats::inference::Interval;
use clover_workflow::judge::agreement;
use clover_workflow::judge::agreement::AgreementDoubts;

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
    /// What stands against a claim, by the rows and labels themselves.
    pub doubts: AgreementDoubts,
    /// Where it stands on record; `None` where it does not.
    pub seq: Option<u64>,
    /// Where a comparison that a plan named stands, with other numbers; `None` where none does.
    pub seen: Option<u64>,
    /// The key whose labels or scores it rests on from its compromise on: nothing is claimed by it.
    pub tainted: Option<KeyId>,
}

impl Comparison {
    /// The judge that agrees better by the interval, whatever stands against a claim.
    pub fn by_interval(&self) -> Option<&JudgeId> {
        let ends = (self.said.low.value(), self.said.high.value());
        self.judge(agreement::better(ends))
    }

    /// The judge that agrees better whatever late and missing scores are.
    pub fn settled(&self) -> Option<&JudgeId> {
        let (low, high) = (self.said.low.value(), self.said.high.value());
        self.judge(self.doubts.better(Interval { low, high }))
    }

    fn judge(&self, at: Option<usize>) -> Option<&JudgeId> {
        at.map(|at| [&self.said.first, &self.said.second][at])
    }
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
    let found = agreement::compared((ledger, state.size), state, experiment, pair);
    let found = found.map_err(|error| JudgingError::Compared {
        first: first.clone(),
        second: second.clone(),
        error: Box::new(error),
    })?;
    let same = earlier.iter().find(|(_, said)| {
        let (plan, through) = (said.plan.clone(), said.through_seq.value());
        found.said(pair, plan, through) == *said
    });
    let tainted = tainted::compared(state, experiment, pair);
    if let Some((seq, said)) = same {
        return Ok(Comparison {
            tainted,
            said: said.clone(),
            doubts: found.doubts.clone(),
            seq: Some(*seq),
            seen: None,
        });
    }
    let plan = agreement::plan((ledger, state.size), state, experiment, pair)?;
    let mut seen = earlier.iter().filter(|(_, said)| said.plan.is_some());
    let mut said = found.said(pair, plan, state.size.saturating_sub(1));
    // Nothing of it is recorded, and no better judge is named.
    said.better = said.better.filter(|_| tainted.is_none());
    Ok(Comparison {
        tainted,
        said,
        doubts: found.doubts.clone(),
        seq: None,
        seen: seen.next().map(|(seq, _)| *seq),
    })
}

/// Puts a comparison on record, unless it is there or rests on entries of a compromised key.
///
/// # Errors
/// A missing key, and what the ledger says; then nothing was appended.
pub fn record(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    found: &mut Comparison,
) -> Result<(), SessionError> {
    if found.seq.is_some() || found.tainted.is_some() {
        return Ok(());
    }
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::JudgeCompared))?;
    let command = Command::new(found.said.clone(), Some(experiment.clone()));
    let appended = scoring::settled(ports, ledger, &[command], &signer)?;
    found.seq = appended.first().map(|of| of.seq);
    Ok(())
}
