//! Appending what verbs want said, or showing with `--dry-run` what would be appended.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::event::Kind;
use crate::ground::sign::Signer;
use crate::ledger::AppendedEvent;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::session::append;
use crate::session::append::Intent;
use crate::session::append::Rehearsal;
use crate::session::append::Submission;
use crate::session::append::next_author_seq;
use crate::session::gate::GateStep;
use crate::view::View;
use crate::view::appended::bodies;
use crate::view::appended::stands;

const DRY: &str = "dry run: nothing was appended; rules that need the whole history were not asked";

/// Appends commands by one key as one batch, or shows them.
pub(super) fn append(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    commands: &[Command],
    signer: &Signer,
    dry_run: bool,
) -> Result<View, CliError> {
    if dry_run {
        return rehearse(ctx, ledger, commands, signer);
    }
    let appended = append::append(&mut ctx.ports(), ledger, commands, signer)?;
    Ok(answer(ledger, commands, &appended))
}

/// What is asked before a step that cannot be undone.
pub(super) struct StepConsent<'a> {
    /// What would be done.
    pub question: &'a str,
    /// Whether `--yes` answers it.
    pub yes: bool,
    /// The command that does it again.
    pub again: &'a str,
}

/// Asks before commands that cannot be undone. What the rules refuse is not asked about: the append says why.
pub(super) fn ask(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
    of: &StepConsent<'_>,
) -> Result<(), CliError> {
    let first = next_author_seq(ledger, signer);
    if append::rehearse(ledger, commands, signer, (first, commands.len())).is_err() {
        return Ok(());
    }
    ctx.confirm(of.question, of.yes, of.again)
}

/// Appends what a step of a gate says that cannot be undone, once somebody agrees.
pub(super) fn asked_gate_step<T>(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    step: &GateStep<T>,
    dry_run: bool,
    of: &StepConsent<'_>,
) -> Result<View, CliError> {
    if !dry_run && step.rehearse(ledger).is_ok() {
        ctx.confirm(of.question, of.yes, of.again)?;
    }
    gate_step(ctx, ledger, step, dry_run)
}

/// What `--dry-run` asks for.
pub(super) fn intent(dry_run: bool) -> Intent {
    if dry_run {
        Intent::Rehearse
    } else {
        Intent::Append
    }
}

/// The answer to a submission: where its events stand, or the bodies that they would have.
pub(super) fn shown(ctx: &mut Ctx<'_>, ledger: &Ledger, submission: &Submission) -> View {
    match submission {
        Submission::Appended { kinds, appended } => stands(ledger, kinds, appended),
        Submission::Rehearsed(rehearsed) => judged(ctx, rehearsed),
    }
}

/// The answer after an append.
pub(super) fn answer(ledger: &Ledger, commands: &[Command], appended: &[AppendedEvent]) -> View {
    let kinds: Vec<_> = commands.iter().map(|of| of.payload.kind()).collect();
    stands(ledger, &kinds, appended)
}

/// The answer after an append of events of one kind.
pub(super) fn answer_of(ledger: &Ledger, kind: Kind, appended: &[AppendedEvent]) -> View {
    stands(ledger, &vec![kind; appended.len()], appended)
}

/// Appends what a step of a gate says, or shows it.
pub(super) fn gate_step<T>(
    ctx: &mut Ctx<'_>,
    ledger: &mut Ledger,
    step: &GateStep<T>,
    dry_run: bool,
) -> Result<View, CliError> {
    if dry_run {
        return Ok(judged(ctx, &step.rehearse(ledger)?));
    }
    let appended = step.append(&mut ctx.ports(), ledger)?;
    let command = std::slice::from_ref(step.command());
    Ok(answer(ledger, command, &appended))
}

/// Prints the canonical unsigned bodies, judged by the rules that need no more than the state at the head.
fn rehearse(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    commands: &[Command],
    signer: &Signer,
) -> Result<View, CliError> {
    let first = next_author_seq(ledger, signer);
    let rehearsed = append::rehearse(ledger, commands, signer, (first, commands.len()))?;
    Ok(judged(ctx, &rehearsed))
}

/// Bodies of a dry run, each of which was judged.
pub(super) fn judged(ctx: &mut Ctx<'_>, rehearsed: &[Rehearsal]) -> View {
    ctx.note(DRY);
    bodies(rehearsed)
}

/// Bodies of a dry run of events that build on one another: the first alone was judged.
pub(super) fn story(ctx: &mut Ctx<'_>, rehearsed: &[Rehearsal]) -> View {
    ctx.note(
        "dry run: nothing was appended; of events that build on one another the first was judged",
    );
    bodies(rehearsed)
}
