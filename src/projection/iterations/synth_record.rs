//! What the log says of one run of an optimizer.

use clover_event::Event;
use clover_event::Payload;
use clover_event::payload::synth_runs::SynthAsked;
use clover_event::payload::synth_runs::SynthOpened;
use clover_event::payload::synth_runs::SynthReturned;
use clover_event::payload::synth_runs::SynthStopped;

use crate::reader::LogStatement;

/// Everything that was said of one run of an optimizer.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthRecord {
    /// Its opening.
    pub opened: LogStatement<SynthOpened>,
    /// Views that were handed over, by round.
    pub asked: Vec<LogStatement<SynthAsked>>,
    /// Answers, by round.
    pub returned: Vec<LogStatement<SynthReturned>>,
    /// Its end.
    pub stopped: Option<LogStatement<SynthStopped>>,
}

impl SynthRecord {
    pub(super) fn begun(opened: LogStatement<SynthOpened>) -> Self {
        Self {
            opened,
            asked: Vec::new(),
            returned: Vec::new(),
            stopped: None,
        }
    }

    /// Takes an event of its iteration's experiment in, if it is of this run.
    pub(super) fn take(&mut self, seq: u64, event: &Event) {
        let run = &self.opened.said.run;
        match &event.payload {
            Payload::SynthAsked(said) if said.run == *run => {
                self.asked.extend(LogStatement::of(seq, event));
            }
            Payload::SynthReturned(said) if said.run == *run => {
                self.returned.extend(LogStatement::of(seq, event));
            }
            Payload::SynthStopped(said) if said.run == *run && self.stopped.is_none() => {
                self.stopped = LogStatement::of(seq, event);
            }
            _ => {}
        }
    }
}
