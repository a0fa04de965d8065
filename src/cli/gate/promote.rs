//! `clover gate promote` and `revoke`: what a release may rest on.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::PromoteArgs;
use crate::cli::gate::RevokeArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::key;
use crate::cli::record;
use crate::cli::submit;
use crate::session::gate::promote;
use crate::view::View;
use crate::view::gate::command;
use crate::view::gate::steps;

pub(super) fn promote(ctx: &mut Ctx<'_>, args: &PromoteArgs) -> Result<View, CliError> {
    let ids: Vec<_> = args
        .ids
        .iter()
        .map(|id| gate_id(id))
        .collect::<Result<_, _>>()?;
    let expires = args.expires.as_deref().map(record::time).transpose()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let gates = (&ids[0], &ids[1..]);
    let submission = promote::promote(&mut ctx.ports(), &ledger, gates, expires)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    Ok(steps::promoted(answer, &ids[0], &submission.terms))
}

pub(super) fn revoke(ctx: &mut Ctx<'_>, args: &RevokeArgs) -> Result<View, CliError> {
    let reason = key::text("reason", &args.reason)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = promote::revoke(&mut ctx.ports(), &ledger, (args.seq, reason))?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    let gate = submission.terms.as_ref();
    let next = gate.map(|gate| command("gate show", gate));
    Ok(answer.with_next(next.unwrap_or("clover gate list".to_owned())))
}
