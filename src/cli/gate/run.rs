//! `clover gate observe`, `look`, `decide` and `continue`.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::ObserveArgs;
use crate::cli::gate::OneArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::submit;
use crate::session::gate;
use crate::session::gate::Observer;
use crate::session::gate::check::known;
use crate::session::gate::observe::Extent;
use crate::session::gate::outcomes::OutcomeFile;
use crate::view::View;
use crate::view::gate::command;
use crate::view::gate::steps;

pub(super) fn observe(ctx: &mut Ctx<'_>, args: &ObserveArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    if !args.all && args.through.is_none() {
        let message = "how many units: --all, or --through N";
        return Err(CliError::usage(message, "clover gate observe --help"));
    }
    let extent = Extent {
        missing: args.missing,
        through: args.through,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let observer = Observer::of(&ledger, &id)?;
    let from = args.from.as_deref().map(|file| {
        let bytes = ctx.read(file)?;
        Ok::<_, CliError>(OutcomeFile::read(file.display().to_string(), &bytes)?)
    });
    let from = from.transpose()?;
    let ports = &mut ctx.ports().with_scorer(args.scorer.as_ref());
    if args.dry_run {
        let rehearsed = observer.rehearse(ports, &ledger, (extent, from.as_ref()))?;
        return Ok(match from {
            Some(_) => submit::judged(ctx, &rehearsed),
            None => submit::story(ctx, &rehearsed),
        });
    }
    let found = observer.observe(ports, &mut ledger, (extent, from.as_ref()))?;
    let gate = known(ledger.state(), &id)?.gate;
    Ok(steps::observed(
        &ledger,
        (&id, gate),
        &found,
        from.is_some(),
    ))
}

pub(super) fn look(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::look(&mut ctx.ports(), &ledger, &id)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    Ok(steps::looked(answer, (&id, gate)))
}

pub(super) fn decide(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::decide(&mut ctx.ports(), &ledger, &id)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    let ends = submission.terms.outcome;
    Ok(steps::decided(answer, (&id, gate), ends))
}

pub(super) fn proceed(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::proceed(&mut ctx.ports(), &ledger, &id)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    Ok(answer.with_next(command("exposure open", &id)))
}
