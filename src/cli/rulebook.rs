//! `clover rulebook`: which rules judge the entries of this ledger, and the newer ones that it may adopt.

use std::fmt::Write as _;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::submit;
use crate::ledger::Ledger;
use crate::ledger::keyring::Keyring;
use crate::ledger::rulebooks;
use crate::ledger::rulebooks::Question;
use crate::ledger::rules::FORMAT;
use crate::session::custody::rulebook as adoption;
use crate::view::View;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// The rulebooks that judge this ledger, and what the newest asks beside
    #[command(after_help = "Example:\n  clover rulebook show")]
    Show,
    /// Let the newest rulebook judge all entries from here on; it cannot be taken back
    #[command(
        after_help = "Entries before this one keep the verdict of their own rulebook.\n\n\
                      Example:\n  clover rulebook adopt --yes"
    )]
    Adopt(AdoptArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AdoptArgs {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Judge it and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Show => show(ctx),
        Verb::Adopt(args) => adopt(ctx, args),
    }
}

/// Questions that the rulebook in force does not ask.
fn unasked(version: u32) -> Vec<Question> {
    let all = Question::ALL.iter().copied();
    all.filter(|question| question.since() > version).collect()
}

fn show(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let keyring = &view.state(&ledger).keyring;
    let in_force = keyring.rulebook();
    let unasked = unasked(in_force);
    let mut text = format!("{}\n", rulebooks::in_words(&keyring.rulebooks));
    let put = "BUG: writing to a string does not fail";
    for question in &unasked {
        writeln!(
            text,
            "rulebook {} asks {}: {}",
            question.since(),
            question.as_str(),
            question.words()
        )
        .expect(put);
    }
    let asks = |question: &Question| {
        json!({"question": question.as_str(), "rulebook": question.since(),
               "rule": question.rule(), "words": question.words()})
    };
    let data = json!({
        "in_force": in_force,
        "newest": rulebooks::NEWEST,
        "rulebooks": keyring.rulebooks,
        "not_asked": unasked.iter().map(asks).collect::<Vec<_>>(),
    });
    let answer = View::untyped(text, data);
    Ok(if in_force < rulebooks::NEWEST && is_written(keyring) {
        answer.with_next("clover rulebook adopt")
    } else {
        answer
    })
}

fn adopt(ctx: &mut Ctx<'_>, args: &AdoptArgs) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let mut ports = ctx.ports().with_consent(args.yes, "clover rulebook adopt");
    let submission = adoption::adopt(&mut ports, &mut ledger, submit::intent(args.dry_run))?;
    Ok(submit::shown(ctx, &ledger, &submission))
}

/// Whether a ledger is of a format that is written to: one that is only read adopts nothing.
fn is_written(keyring: &Keyring) -> bool {
    keyring.format >= FORMAT
}

/// Offers a newer rulebook to whoever is about to append.
pub(super) fn offer(ctx: &mut Ctx<'_>, ledger: &Ledger) {
    let keyring = &ledger.state().keyring;
    let in_force = keyring.rulebook();
    if in_force < rulebooks::NEWEST && is_written(keyring) {
        ctx.note(&format!(
            "rulebook {in_force} judges this ledger; {} asks {} questions more: clover rulebook show",
            rulebooks::NEWEST,
            unasked(in_force).len()
        ));
    }
}
