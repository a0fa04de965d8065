//! Edits in pairs, after a run has ended and before anybody reads what is right.

use clover_workflow::wf::pairs;

use crate::error::SessionError;
use crate::ports::Ports;
use crate::wf::RepairBench;
use crate::wf::RepairError;
use crate::wf::running::RepairPause;

impl RepairBench {
    /// Records at most so many further pairs of edits, and executes both sides of each; a side that was cut before goes on first.
    ///
    /// # Errors
    /// [`RepairError::NotDue`] before the run has ended; [`RepairError::Opened`] once what is right was read;
    /// [`RepairError::NoPair`] where there is none at all; no key; what the ledger says.
    pub fn pair(&mut self, ports: &mut dyn Ports, most: u64) -> Result<RepairPause, SessionError> {
        let run = self.ended()?;
        if run.truth.is_some() {
            return Err(RepairError::Opened(self.id.clone()).into());
        }
        let mut pause = self.go(ports)?;
        for _ in 0..most {
            if pause == RepairPause::Cut {
                break;
            }
            let found = pairs::next(self.run()?, self.plan()).map_err(RepairError::from)?;
            let Some(said) = found else {
                break;
            };
            self.say(ports, vec![said.into()], &[])?;
            pause = self.go(ports)?;
        }
        if self.run()?.pairs.is_empty() && pause == RepairPause::Ended {
            return Err(RepairError::NoPair(self.id.clone()).into());
        }
        Ok(pause)
    }
}
