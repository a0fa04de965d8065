//! What sends to the endpoint of the judge of a run.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::endpoint;
use crate::cli::error::CliError;
use crate::cli::synth_model;
use crate::model::dialect;
use crate::projection::sgd::asked_scores;
use crate::session::SessionError;
use crate::session::sgd::JudgeDesk;
use crate::session::sgd::SgdBench;
use crate::workflow::ask::dispatch::DispatchRules;

/// The key of the endpoint of a judge.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct JudgeKeyArgs {
    /// The variable with the key of the judge's endpoint; or --judge-key-file FILE
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "judge_key_file",
        hide = true
    )]
    pub judge_key_env: Option<String>,
    /// The file that holds it, which nobody else may read
    #[arg(long, value_name = "FILE", hide = true)]
    pub judge_key_file: Option<PathBuf>,
    /// Asks of the judge that are open at once, at most
    #[arg(short = 'j', value_name = "N", hide = true)]
    pub open_max: Option<u32>,
}

/// Gives a bench what sends, where its judge is behind HTTP.
pub(super) fn opened(
    ctx: &Ctx<'_>,
    bench: &mut SgdBench,
    (args, help): (&JudgeKeyArgs, &str),
) -> Result<(), CliError> {
    let run = bench.run().map_err(SessionError::from)?;
    let judge = asked_scores::judge_of(bench.ledger.state(), run);
    let Some(asked) = judge.and_then(|judge| judge.asked.as_ref()) else {
        return Ok(());
    };
    let place = synth_model::place(&bench.ledger, &asked.endpoint)?;
    let from = (
        args.judge_key_env.as_deref(),
        args.judge_key_file.as_deref(),
    );
    let key = endpoint::key_of(ctx, &place, from)?;
    bench.judge = Some(JudgeDesk {
        desk: Box::new(endpoint::desk(&place, key, help)?),
        rules: DispatchRules {
            open_max: args.open_max,
            ..DispatchRules::default()
        },
        wire: dialect::wire(place.dialect),
    });
    Ok(())
}
