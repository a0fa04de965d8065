//! Everything that is due and needs no person.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench::Bench;
use crate::cli::iterate::bench::next;
use crate::cli::iterate::confirmed;
use crate::cli::iterate::end;
use crate::cli::iterate::gates;
use crate::cli::iterate::ground;
use crate::cli::iterate::program::Program;
use crate::cli::iterate::score;
use crate::cli::ui::Answer;
use crate::ground::shell;
use crate::workflow::iterate::record::Step;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub confirm: confirmed::ConfirmArgs,
    /// The last step that is done
    #[arg(
        long,
        value_name = "STEP",
        help = "The last step: score, fit, audit, cards, gate, seal, confirm, accept, close"
    )]
    pub to: Option<String>,
    #[command(flatten)]
    pub program: Program,
}

fn last(args: &Args) -> Result<Step, CliError> {
    let Some(name) = &args.to else {
        return Ok(Step::Close);
    };
    let named = Step::ALL.into_iter().find(|step| step.as_str() == name);
    named.ok_or_else(|| {
        let words: Vec<&str> = Step::ALL.iter().map(|step| step.as_str()).collect();
        let message = format!("--to {name:?}: expected one of {}", words.join(", "));
        CliError::usage(message, "clover iterate run --help")
    })
}

/// Finds every key that the steps up to the last need, where the look at confirm is among them: a peek is not charged for
/// gates that nobody here may judge.
fn keys(ctx: &Ctx<'_>, bench: &Bench, args: &Args, last: Step) -> Result<(), CliError> {
    let due = bench.due();
    let looks = due.is_some_and(|due| (Step::Gate..=Step::Confirm).contains(&due));
    if !looks || last < Step::Confirm {
        return Ok(());
    }
    let found = confirmed::keys(ctx, bench, &args.confirm);
    found.map(|_| ()).map_err(|error| {
        let is_later = due != Some(Step::Confirm) && error.next.starts_with("clover key new");
        if is_later {
            let id = shell::word(&bench.id);
            return error.with_next(format!("clover iterate run {id} --to seal"));
        }
        error
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let last = last(args)?;
    let mut bench = Bench::open(ctx, &args.confirm.id)?;
    keys(ctx, &bench, args, last)?;
    let (mut text, mut data, mut all) = (String::new(), Vec::new(), Vec::new());
    let mut before = None;
    let mut waits = None;
    while let Some(step) = bench.due().filter(|step| *step <= last) {
        if step == Step::Propose {
            waits = Some("patches, which people or programs write from the cards".to_owned());
            break;
        }
        if step == Step::Seal
            && let Some(what) = gates::waits(&mut bench)?
        {
            waits = Some(what);
            break;
        }
        if before == Some(step) && step != Step::Accept {
            let message = format!("{} is due still after it was done", step.as_str());
            return Err(CliError::refused(message, next(&bench.id, Some(step))));
        }
        before = Some(step);
        let (words, json, appended) = match step {
            Step::Score => score::score_on(ctx, &mut bench, &args.program)?,
            Step::Fit => ground::fit_on(ctx, &mut bench)?,
            Step::Audit => ground::audit_on(ctx, &mut bench)?,
            Step::Cards => ground::cards_on(ctx, &mut bench)?,
            Step::Gate => gates::gate_on(ctx, &mut bench, &args.program)?,
            Step::Seal => gates::seal_on(ctx, &mut bench, &args.program)?,
            Step::Confirm => confirmed::confirm_on(ctx, &mut bench, &args.confirm)?,
            Step::Accept => end::accept_on(ctx, &mut bench)?,
            Step::Close => end::close_on(ctx, &mut bench)?,
            Step::Propose => break,
        };
        text.push_str(&format!("{}\n{words}\n", step.as_str().to_uppercase()));
        data.push(json!({"step": step.as_str(), "data": json}));
        all.extend(appended);
    }
    if let Some(what) = &waits {
        text.push_str(&format!("waits for {what}\n"));
    }
    Ok(bench.answer(text, json!({"steps": data, "waits_for": waits}), &all))
}
