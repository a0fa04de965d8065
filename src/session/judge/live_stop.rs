//! A run of a judge behind HTTP that nobody goes on with: what is held for it is charged as a whole, and it ends.

use clover_event::Kind;
use clover_event::id::RunId;
use clover_event::payload::model_runs::JudgeRunClosed;
use clover_event::payload::model_runs::RunEnd;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::runs::ModelRun;
use clover_projection::runs::ModelRuns;

use crate::append;
use crate::error::SessionError;
use crate::home::Home;
use crate::judge::error::JudgingError;
use crate::judge::live;
use crate::judge::live::count;
use crate::judge::live_record::Recorder;
use crate::ports::KeyNeed;
use crate::ports::Ports;
use crate::ports::Question;

/// What the end of a run comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStop {
    /// Asks that were held for and came to nothing on record: nobody knows whether they were sent.
    pub held_asks: u64,
    /// Asks without a call, those included.
    pub left: u64,
    /// The run.
    pub run: RunId,
    /// What it is charged in all, in millionths of a dollar.
    pub settled: u64,
    /// The part of it that nobody knows to be spent.
    pub unknown: u64,
}

/// The run of a name, while it is open.
fn open(ledger: &Ledger, run: &RunId) -> Result<ModelRun, SessionError> {
    let runs = ledger.state().fold::<ModelRuns>();
    let of = runs.by_id.get(run);
    let of = of.ok_or_else(|| JudgingError::NoRun(run.clone()))?;
    if of.end.is_some() {
        return Err(JudgingError::RunEnded(run.clone()).into());
    }
    Ok(of.clone())
}

/// Charges the open hold as a whole, since nobody knows what was sent under it, and ends the run.
fn ended(of: &ModelRun) -> (RunStop, Vec<Command>) {
    let mut commands = Vec::new();
    let mut settled = of.settled;
    let (mut unknown, mut held_asks) = (0, 0);
    if let Some(hold) = &of.hold {
        let amount = hold.amount.max(of.unpaid());
        unknown = amount - of.unpaid();
        held_asks = hold.asks_left;
        settled = settled.saturating_add(amount);
        commands.push(Recorder::settlement(
            (&of.said.run, hold),
            (amount, unknown),
        ));
    }
    let said = JudgeRunClosed {
        by_outcome: of.outcomes(),
        cost_usd_micro: count(of.cost),
        end: RunEnd::Stopped,
        left: count(of.left()),
        run: of.said.run.clone(),
        settled_usd_micro: count(settled),
    };
    commands.push(Command::new(said, Some(of.experiment.clone())));
    let stop = RunStop {
        held_asks,
        left: of.left(),
        run: of.said.run.clone(),
        settled,
        unknown,
    };
    (stop, commands)
}

/// Ends a run that is open, without its rows: no process may be asking for its judge.
///
/// # Errors
/// [`JudgingError::NoRun`], [`JudgingError::RunEnded`], [`JudgingError::Busy`], a missing key, a no, and what the rules say.
pub fn stop(
    ports: &mut dyn Ports,
    home: &Home,
    ledger: &mut Ledger,
    run: &RunId,
) -> Result<RunStop, SessionError> {
    let of = open(ledger, run)?;
    let _alone = live::alone(home, &of.experiment, &of.said.judge)?;
    ledger.refresh()?;
    let of = open(ledger, run)?;
    let (stop, commands) = ended(&of);
    let scorer = ports.signer(ledger.state(), KeyNeed::scorer(Kind::JudgeRunClosed))?;
    for command in &commands {
        if matches!(command.payload.kind(), Kind::BudgetSettled) {
            append::permitted(ledger, command, &scorer)?;
        }
    }
    ports.ask(&Question::StopRun {
        run: run.clone(),
        account: of.said.account.as_ref().map(ToString::to_string),
        held_asks: stop.held_asks,
        unknown: stop.unknown,
    })?;
    append::append(ports, ledger, &commands, &scorer)?;
    Ok(stop)
}
