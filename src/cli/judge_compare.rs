//! `clover judge compare`: two judges on the same labelled rows.

use std::collections::BTreeSet;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::ledger::State;
use crate::session::judge::agreement;
use crate::session::judge::agreement::Comparison;
use crate::view::View;
use crate::view::estimate::doubts::ClaimBasis;
use crate::view::judge_compare as view;

const HELP: &str = "clover judge compare --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// One judge; what a patch tells a judge makes another, such as llm+4beb3438dadf
    #[arg(value_name = "JUDGE")]
    pub first: String,
    /// The other
    #[arg(value_name = "JUDGE")]
    pub second: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Record it as exploratory; one that a plan named is recorded anyway
    #[arg(long, conflicts_with = "dry_run")]
    pub exploratory: bool,
    /// Compute and show, record nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn judge(text: &str) -> Result<JudgeId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("judge {text:?}: {error}"), HELP))
}

/// A key whose entries it rests on, and assumptions about the label and either judge that fail, a sentence each.
fn failing(state: &State, experiment: &ExperimentId, of: &Comparison) -> Vec<String> {
    let of_judge = |judge| ClaimBasis::of(state, experiment, judge);
    let both = [of_judge(&of.said.first), of_judge(&of.said.second)];
    let all = both.iter().flat_map(ClaimBasis::failing);
    let tainted = of.tainted.map(|key| {
        format!("It rests on labels or scores of key {key} from its compromise on: label and score in a new experiment, under live keys.")
    });
    all.cloned()
        .chain(tainted)
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect()
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let judges = [judge(&args.first)?, judge(&args.second)?];
    if judges[0] == judges[1] {
        let message = format!("judge {} is compared with itself", judges[0]);
        return Err(CliError::usage(message, HELP));
    }
    if ctx.as_of.is_some() || args.dry_run {
        let (home, ledger, at) = home::view(ctx)?;
        let state = at.state(&ledger);
        let experiment = current::experiment(ctx, &home, state, args.experiment.as_deref())?;
        let found = agreement::compare(&ledger, state, &experiment, judges)?;
        let failing = failing(state, &experiment, &found);
        return Ok(view::shown(&found, &failing));
    }
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let mut found = agreement::compare(&ledger, ledger.state(), &experiment, judges)?;
    if found.tainted.is_some() && found.seq.is_none() {
        ctx.note("not recorded: it rests on entries of a compromised key");
    } else if found.said.plan.is_some() || args.exploratory {
        agreement::record(&mut ctx.ports(), &mut ledger, &experiment, &mut found)?;
    } else if found.seq.is_none() {
        ctx.note("not recorded: no plan stands behind it; --exploratory records it as exploratory");
    }
    let failing = failing(ledger.state(), &experiment, &found);
    Ok(view::shown(&found, &failing))
}
