//! What a run that is open may still ask and pay, before the next step is paid for.

use clover_event::payload::sgd::SgdSplit;
use clover_ledger::Ledger;
use clover_projection::asked::AskedRuns;
use clover_projection::sgd::SgdRun;

use crate::error::SessionError;
use crate::sgd::open;
use crate::sgd::open::SgdAgentCost;

/// What is left of a run, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SgdAhead {
    /// Steps; the one that is going counts in full.
    pub steps: u64,
    /// Scores that the judge is asked for, test twice among them.
    pub asks: u64,
    /// Asks of a model that writes gradients and patches; 0 where no model behind HTTP does.
    pub agent_asks: u64,
    /// What these cost, and what is left to pay them; `None` where nothing costs anything.
    pub cost: Option<SgdAgentCost>,
}

/// Scores that the judge of a run is asked for yet, at most.
pub(super) fn judge_asks(run: &SgdRun) -> u64 {
    left_of(run).1
}

/// Scores of confirm that the judge of a run is asked for before its gate decides, at most: of each row under prompt 0 and under
/// the checkpoint, but for those that are there.
pub fn confirm_asks(run: &SgdRun) -> u64 {
    let chosen = run.checkpoint.as_ref().map(|of| of.prompt_digest);
    let prompts = chosen.into_iter().chain([run.said.prompt_digest]);
    let rows = run.count(SgdSplit::Confirm);
    let left =
        prompts.map(|digest| rows.saturating_sub(run.confirm.get(&digest).map_or(0, Vec::len)));
    left.sum::<usize>() as u64 * run.said.terms.repeats.value()
}

/// Steps and scores that are left of a run, at most.
fn left_of(run: &SgdRun) -> (u64, u64) {
    let terms = &run.said.terms;
    let is_over = run.end.is_some();
    let left = run.last_step().saturating_sub(run.taken());
    let steps = match (is_over || run.checkpoint.is_some(), run.going()) {
        (true, _) => 0,
        (false, None) => left,
        (false, Some(_)) => left.max(1),
    };
    let rows = |split: SgdSplit| run.count(split) as u64;
    let part = |is_due: bool, rows: u64| if is_due { rows } else { 0 };
    let first = part(!is_over && run.base_loss.is_none(), rows(SgdSplit::Train))
        + part(!is_over && run.val_loss.is_none(), rows(SgdSplit::Val));
    let test = part(
        !is_over && run.test_read.is_none(),
        2 * rows(SgdSplit::Test),
    );
    let each = terms.batch.value() + rows(SgdSplit::Val);
    let asks = (first + steps * each + test) * terms.repeats.value();
    (steps, asks)
}

/// What is left of a run: nothing of a part that is scored, no step once its checkpoint is chosen, and nothing once it ended.
/// A run that looks for its end takes the further steps that its constants allow.
///
/// # Errors
/// What prices and accounts lack.
pub fn ahead(ledger: &Ledger, run: &SgdRun) -> Result<SgdAhead, SessionError> {
    let (steps, asks) = left_of(run);
    let asked = run.said.asked.as_ref();
    let agent_asks = asked.map_or(0, |_| steps * open::STEP_ASKS);
    let mut cost = open::agent_cost(ledger, asked, agent_asks)?;
    let calls = ledger.state().fold::<AskedRuns>();
    if let (Some(cost), Some(of)) = (&mut cost, calls.by_id.get(&run.said.run)) {
        // What the run has paid is gone from its cap.
        cost.cap = cost.cap.map(|cap| cap.saturating_sub(of.settled));
    }
    Ok(SgdAhead {
        steps,
        asks,
        agent_asks,
        cost,
    })
}
