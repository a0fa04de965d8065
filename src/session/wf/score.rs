//! What candidates are worth: what is right is opened after a run has ended, and not before.

use clover_event::Payload;
use clover_event::payload::repair_feedback::UtilityRecorded;
use clover_workflow::estimate::compute::blob;
use clover_workflow::wf::execution::LINES;
use clover_workflow::wf::truth;
use clover_workflow::wf::words;

use crate::error::SessionError;
use crate::ports::Ports;
use crate::wf::RepairBench;
use crate::wf::RepairError;
use crate::wf::files::RunFiles;
use crate::wf::outcomes_of;

impl RepairBench {
    /// Says what each candidate is worth, by its custodian; how many were not said before.
    ///
    /// # Errors
    /// [`RepairError::NotDue`] before the run has ended; [`RepairError::NoTruth`]; no key; what the ledger says.
    pub fn worth(&mut self, ports: &mut dyn Ports) -> Result<usize, SessionError> {
        let run = self.ended()?;
        let wanted = run.unworthed();
        if wanted.is_empty() {
            return Ok(0);
        }
        let (salt, lines) = RunFiles::of(&self.home, &self.id, &run.said.truth).truth()?;
        if lines.is_empty() {
            return Err(RepairError::NoTruth(self.id.clone()).into());
        }
        let set = truth::told(self.plan().set.clone(), &lines).map_err(RepairError::from)?;
        let outcomes = outcomes_of(
            (&self.ledger, self.ledger.size()),
            run,
            self.plan(),
            &|id| wanted.contains(id),
        )?;
        let mut said: Vec<Payload> = Vec::new();
        for candidate in &wanted {
            let of = outcomes.get(candidate).map_or(&[][..], Vec::as_slice);
            said.push(
                UtilityRecorded {
                    candidate: *candidate,
                    run: self.id.clone(),
                    salt,
                    scorer: words::text(truth::SCORER),
                    truth: blob(&lines, LINES),
                    utilities_micro: truth::worth(&set, of),
                }
                .into(),
            );
        }
        self.say(ports, said, &[lines])?;
        Ok(wanted.len())
    }
}
