//! Steps before candidates: cards, proposals.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::iterate::bench;
use crate::cli::iterate::run;
use crate::cli::iterate::run::StepOptions;
use crate::cli::patch;
use crate::cli::submit;
use crate::projection::iterations::step::Step;
use crate::view::View;
use crate::view::iterate::steps;
use crate::view::patch as view;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The iteration
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct IterateProposeArgs {
    /// The iteration
    pub id: String,
    /// Patches, YAML
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What they were written from, by digest; may repeat
    #[arg(long = "input", value_name = "DIGEST")]
    pub inputs: Vec<String>,
    /// The model that wrote them; a person did when absent
    #[arg(long, requires = "prompt_digest")]
    pub model: Option<String>,
    /// SHA-256 of the prompt that the model had
    #[arg(long, value_name = "DIGEST", requires = "model")]
    pub prompt_digest: Option<String>,
}

pub(super) fn cards(ctx: &mut Ctx<'_>, id: &str) -> Result<View, CliError> {
    let bench = bench::open(ctx, id)?;
    if bench.due() == Some(Step::Propose) && bench.record.cards_due() == 0 {
        return Ok(steps::cards(&bench));
    }
    run::step(ctx, bench, Step::Cards, &StepOptions::default())
}

pub(super) fn propose(ctx: &mut Ctx<'_>, args: &IterateProposeArgs) -> Result<View, CliError> {
    let mut all = Vec::with_capacity(args.files.len());
    for file in &args.files {
        let one = patch::PatchProposeArgs {
            file: file.clone(),
            iteration: args.id.clone(),
            inputs: args.inputs.clone(),
            model: args.model.clone(),
            prompt_digest: args.prompt_digest.clone(),
            dry_run: false,
        };
        let (ledger, proposal) = patch::put_forward(ctx, &one)?;
        let view = submit::shown(ctx, &ledger, &proposal.submission);
        all.push(view::proposed(view, &proposal));
    }
    Ok(steps::proposed(&args.id, all))
}
