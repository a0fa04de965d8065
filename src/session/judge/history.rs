//! What each registered judge did, as the entries say.

use clover_event::Payload;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::Ledger;

use crate::error::SessionError;

/// A judge's registration and what it did since.
#[derive(Clone, Debug)]
pub struct JudgeHistory {
    /// The experiment.
    pub experiment: Option<ExperimentId>,
    /// The judge.
    pub registered: JudgeRegistered,
    /// Where its registration stands.
    pub seq: u64,
    /// Rows on record.
    pub records: u64,
    /// The newest re-score: rows, and how many of them differed.
    pub replayed: Option<(u64, u64)>,
}

/// Every judge that is registered before `end`, in order.
///
/// # Errors
/// When the ledger cannot be read.
pub fn judges(ledger: &Ledger, end: u64) -> Result<Vec<JudgeHistory>, SessionError> {
    let mut judges: Vec<JudgeHistory> = Vec::new();
    ledger.entries(0, end, |read| {
        let experiment = read.event.header.experiment;
        match read.event.payload {
            Payload::JudgeRegistered(registered) => judges.push(JudgeHistory {
                experiment,
                registered: *registered,
                seq: read.stored.seq,
                records: 0,
                replayed: None,
            }),
            Payload::EvidenceRecorded(said) => {
                if let Some(of) = find(&mut judges, experiment.as_ref(), &said.judge) {
                    of.records += said.records_count.value();
                }
            }
            Payload::ScoreReplayed(said) => {
                if let Some(of) = find(&mut judges, experiment.as_ref(), &said.judge) {
                    of.replayed = Some((said.keys.value(), said.mismatches.value()));
                }
            }
            _ => {}
        }
        Ok::<_, SessionError>(())
    })?;
    Ok(judges)
}

fn find<'j>(
    judges: &'j mut [JudgeHistory],
    experiment: Option<&ExperimentId>,
    judge: &JudgeId,
) -> Option<&'j mut JudgeHistory> {
    let mut all = judges.iter_mut();
    all.find(|of| of.experiment.as_ref() == experiment && of.registered.judge == *judge)
}
