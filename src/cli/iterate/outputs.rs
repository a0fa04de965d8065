//! The battery on outputs of a policy under a judge that is frozen.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::program::Program;
use crate::event::id::ExperimentId;
use crate::event::payload::predicate::Gaming;
use crate::ledger::Ledger;
use crate::session::Home;
use crate::session::iterate::attack;
use crate::workflow::iterate::rows::Named;
use crate::workflow::live::Frozen;

/// What attacks on outputs earn under a frozen judge; `None` where the judge cannot be asked anew, or no text is at hand.
pub(in crate::cli) fn gaming(
    ctx: &mut Ctx<'_>,
    of: (&Home, &Ledger),
    experiment: &ExperimentId,
    on: (&Frozen, &[Named]),
    program: &Program,
) -> Result<Option<Gaming>, CliError> {
    let ports = &mut ctx.ports().with_program(program);
    Ok(attack::of_outputs(ports, of, experiment, on)?)
}
