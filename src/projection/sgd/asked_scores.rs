//! The question `asked_scores`: a run whose judge is behind HTTP scores nothing but what calls on record answered.

use clover_event::payload::scoring::JudgePort;
use clover_event::payload::scoring::JudgeRegistered;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;

use super::SgdRun;
use crate::judges::Judges;

/// The judge of a run as it was registered, where it is asked behind HTTP.
pub fn judge_of<'a>(state: &'a State, run: &SgdRun) -> Option<&'a JudgeRegistered> {
    let judges = state.fold::<Judges>().of(&run.experiment)?;
    let judge = &judges.judges.get(&run.said.judge)?.said;
    (judge.port == JudgePort::Endpoint).then_some(judge)
}

/// Scores of a run whose judge is behind HTTP stand on calls.
pub(super) fn check(state: &State, run: &SgdRun) -> RuleAnswer {
    let is_asked = judge_of(state, run).is_some();
    let expected = "scores that calls on record gave";
    ensure!(!is_asked, expected, "none of a judge behind HTTP");
    Ok(())
}
