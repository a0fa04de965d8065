//! The one reading of test, under prompt 0 and the checkpoint.

use clover_event::Kind;
use clover_event::payload::sgd::SgdPart;
use clover_event::payload::sgd::SgdSplit;
use clover_event::payload::sgd::SgdTestRead;
use clover_event::payload::sgd_steps::SgdEnd;
use clover_projection::sgd::due::SgdDue;
use clover_workflow::sgd::course::SgdCourse;

use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::sgd::SgdBench;
use crate::sgd::SgdError;
use crate::sgd::running;
use crate::sgd::running::SgdRunning;

/// Scores test under both prompts, says what it is worth, and ends the run. Given again where it was read.
///
/// # Errors
/// [`SgdError::NotDue`] before the checkpoint; no key; what the ledger says.
pub fn read(bench: &mut SgdBench, ports: &mut dyn Ports) -> Result<SgdTestRead, SessionError> {
    if let Some(said) = &bench.run()?.test_read {
        let said = said.clone();
        if bench.run()?.end.is_none() {
            running::ended(bench, ports, SgdEnd::Completed)?;
        }
        return Ok(said);
    }
    match bench.run()?.due() {
        Some(SgdDue::Test) => {}
        Some(due) => {
            let run = bench.id.clone();
            return Err(SgdError::NotDue { run, due }.into());
        }
        None => return Err(SgdError::Ended(bench.id.clone()).into()),
    }
    // Whoever may not say what test is worth does not see it scored.
    let need = KeyNeed::runner(Kind::SgdTestRead);
    ports.check(bench.ledger.state(), &[need])?;
    let course = SgdCourse::of(bench.run()?).map_err(SgdError::from)?;
    let both = [
        course.prompt0().clone(),
        course.chosen().map_err(SgdError::from)?,
    ];
    let mut running = SgdRunning::new(bench)?;
    for prompt in both {
        running.test_under(ports, &prompt)?;
    }
    let course = SgdCourse::of(bench.run()?).map_err(SgdError::from)?;
    let said = course.test_read().map_err(SgdError::from)?;
    bench.say(ports, said.clone())?;
    running::ended(bench, ports, SgdEnd::Completed)?;
    Ok(said)
}

impl SgdRunning<'_> {
    fn test_under(
        &mut self,
        ports: &mut dyn Ports,
        prompt: &clover_prompt::JudgePrompt,
    ) -> Result<(), SessionError> {
        let digest = prompt.digest();
        loop {
            let run = self.run()?;
            let scored = run.test.get(&digest).map_or(0, Vec::len);
            if scored >= run.count(SgdSplit::Test) {
                return Ok(());
            }
            self.scored_under(ports, SgdPart::Test, prompt)?;
        }
    }
}
