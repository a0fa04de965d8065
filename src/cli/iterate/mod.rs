//! `clover iterate`: iterations of a rubric, from the manifest that binds them to their end, step by step or as far as
//! they go without a person.

pub(super) mod bench;
mod confirmed;
mod end;
mod gates;
mod ground;
mod open;
pub(super) mod program;
mod refusals;
mod run;
mod score;
mod show;

pub(super) use crate::view::iterate::gates::gate_table;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::run::StepOptions;
use crate::projection::iterations::step::Step;
use crate::view::View;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Two policies whose recorded rows hold the scale
    #[command(
        after_help = "Each policy needs 200 scored rows or more.\n\nExample:\n  clover iterate anchors anchors-1 --low anchor_low --high anchor_high"
    )]
    Anchors(open::AnchorArgs),
    /// Open an iteration; every number comes from its manifest
    #[command(after_help = "Example:\n  clover iterate open it-1 --manifest plan-1 --peeks 3")]
    Open(open::IterateOpenArgs),
    /// Iterations, how far they are, and what was proposed
    #[command(after_help = "Example:\n  clover iterate list")]
    List,
    /// Do all that is due and needs no person
    #[command(
        after_help = "Exit 12: it paused for labels.\n\nExample:\n  clover iterate run it-1 --to cards"
    )]
    Run(run::Args),
    /// Score rows that have no score yet, and a sample again: is the judge deterministic?
    #[command(after_help = "Example:\n  clover iterate score it-1 -- python3 judge.py")]
    Score(score::Args),
    /// Fit the calibrator, and audit how rows came to be labelled
    #[command(after_help = "Example:\n  clover iterate fit it-1")]
    Fit(ground::Args),
    /// Audit residuals by slice and freeze the classification
    #[command(
        after_help = "Exit 12: it paused for labels.\n\nExample:\n  clover iterate audit it-1"
    )]
    Audit(ground::Args),
    /// Publish a card for every slice that is misjudged
    #[command(after_help = "Example:\n  clover iterate cards it-1")]
    Cards(ground::Args),
    /// Propose patches
    #[command(after_help = "Example:\n  clover iterate propose it-1 patch.yaml")]
    Propose(ground::IterateProposeArgs),
    /// Judge every patch by gates P0 to P7 on dev
    #[command(after_help = "Example:\n  clover iterate gate it-1")]
    Gate(gates::Args),
    /// Seal what goes to confirm: one patch a family, and the composite of the two best
    #[command(after_help = "Example:\n  clover iterate seal it-1")]
    Seal(gates::Args),
    /// Open the confirm labels in one charged peek, then gates P4, P6, P8 to P10
    #[command(after_help = "Example:\n  clover iterate confirm it-1 --yes")]
    Confirm(confirmed::Args),
    /// Accept what passed every gate: at most two patches
    #[command(after_help = "Example:\n  clover iterate accept it-1")]
    Accept(end::Args),
    /// End an iteration
    #[command(
        after_help = "Exit 12: it paused for labels.\n\nExample:\n  clover iterate close it-1 --outcome stopped --reason 'the judge is replaced'"
    )]
    Close(end::IterateCloseArgs),
    /// One iteration: inputs, numbers, gates, verdict
    #[command(
        after_help = "Exit 12: it paused for labels.\n\nExample:\n  clover iterate show it-1"
    )]
    Show(show::Args),
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Anchors(args) => open::anchors(ctx, args),
        Verb::Open(args) => open::open(ctx, args),
        Verb::List => open::list(ctx),
        Verb::Run(args) => run::run(ctx, args),
        Verb::Score(args) => score::score(ctx, args),
        Verb::Fit(args) => one(ctx, &args.id, Step::Fit, &StepOptions::default()),
        Verb::Audit(args) => one(ctx, &args.id, Step::Audit, &StepOptions::default()),
        Verb::Cards(args) => ground::cards(ctx, &args.id),
        Verb::Propose(args) => ground::propose(ctx, args),
        Verb::Gate(args) => one(ctx, &args.id, Step::Gate, &asking(&args.program)),
        Verb::Seal(args) => one(ctx, &args.id, Step::Seal, &asking(&args.program)),
        Verb::Confirm(args) => {
            let asked = StepOptions {
                confirm: Some(&args.confirm),
                program: Some(&args.program),
            };
            one(ctx, &args.confirm.id, Step::Confirm, &asked)
        }
        Verb::Accept(args) => one(ctx, &args.id, Step::Accept, &StepOptions::default()),
        Verb::Close(args) => end::close(ctx, args),
        Verb::Show(args) => show::show(ctx, args),
    }
}

/// One step by name.
fn one(ctx: &mut Ctx<'_>, id: &str, step: Step, asked: &StepOptions<'_>) -> Result<View, CliError> {
    let bench = bench::open(ctx, id)?;
    run::step(ctx, bench, step, asked)
}

/// With the judge's program.
fn asking(program: &program::Program) -> StepOptions<'_> {
    StepOptions {
        program: Some(program),
        ..StepOptions::default()
    }
}
