//! Anchors of a judge as the log says them: the set, the judge's scores, and every earlier check of them.

use clover_event::Event;
use clover_event::Payload;
use clover_event::id::AnchorSetId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::Root;
use clover_event::payload::iteration::AnchorSetRegistered;
use clover_event::payload::judge::ScoreRecorded;
use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::History;
use clover_ledger::LedgerError;
use clover_num::Micro;

use crate::reader::LogReader;
use crate::reader::LogStatement;
use crate::reader::Model;

/// What the log says of one anchor set and one judge.
#[derive(Debug, Default)]
pub struct AnchorLog {
    /// The set.
    pub set: Option<LogStatement<AnchorSetRegistered>>,
    /// The judge, if it was registered.
    pub registered: Option<LogStatement<JudgeRegistered>>,
    /// Scores of the judge.
    pub scores: Vec<LogStatement<ScoreRecorded>>,
    /// Scores of each earlier check, with the root of their rows.
    pub earlier: Vec<(Root, Vec<Micro>)>,
    /// Scores since the registration that do not name it.
    pub unversioned: u64,
}

/// The same while it is read.
struct AnchorReader<'a> {
    of: (&'a AnchorSetId, &'a JudgeId),
    log: AnchorLog,
}

impl Model for AnchorReader<'_> {
    fn take(&mut self, seq: u64, event: &Event) {
        let ((anchors, judge), log) = (self.of, &mut self.log);
        match &event.payload {
            Payload::AnchorSetRegistered(said) if said.anchors == *anchors && log.set.is_none() => {
                log.set = LogStatement::of(seq, event);
            }
            Payload::JudgeRegistered(said) if said.judge == *judge && log.registered.is_none() => {
                log.registered = LogStatement::of(seq, event);
            }
            Payload::JudgeDriftChecked(said)
                if said.judge == *judge && said.anchors == *anchors =>
            {
                let of = (said.anchor_rows_root, said.scores_micro.clone());
                log.earlier.push(of);
            }
            Payload::ScoreRecorded(said) if said.judge == *judge => {
                let named = log.registered.as_ref().is_none_or(|of| {
                    of.said.port == JudgePort::Recorded || event.header.refs.contains(&of.id)
                });
                log.unversioned += u64::from(!named);
                log.scores.extend(LogStatement::of(seq, event));
            }
            _ => {}
        }
    }
}

impl AnchorLog {
    /// Reads the entries of an experiment through a position, inclusive.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn through(
        history: &dyn History,
        experiment: &ExperimentId,
        of: (&AnchorSetId, &JudgeId),
        last: u64,
    ) -> Result<Self, LedgerError> {
        let log = Self::default();
        let entries = LogReader::through(history, last).of(experiment);
        Ok(entries.into_model(AnchorReader { of, log })?.log)
    }
}
