//! `clover synth run --endpoint`: a model behind HTTP writes candidates.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::endpoint;
use crate::cli::endpoint_terms;
use crate::cli::error::CliError;
use crate::cli::judge_ask;
use crate::cli::key;
use crate::event::id::AccountId;
use crate::event::id::EndpointId;
use crate::event::id::Text;
use crate::event::payload::model_calls::OUTPUT_MAX;
use crate::event::payload::model_terms::EndpointRegistered;
use crate::ledger::Ledger;
use crate::model::desk::HttpDesk;
use crate::model::dialect;
use crate::num::Count;
use crate::projection::endpoints::Endpoints;
use crate::session::asking::ModelTerms;

const HELP: &str = "clover synth run --help";
/// Most tokens of an answer where nobody says.
pub(super) const OUTPUT_USUAL: u64 = 4_096;

/// Which model is asked, and who pays.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ModelArgs {
    /// A model behind HTTP, in place of --optimizer: the endpoint
    #[arg(
        long,
        value_name = "ID",
        requires = "model",
        conflicts_with = "optimizer"
    )]
    pub endpoint: Option<String>,
    /// The model to ask for
    #[arg(long, value_name = "MODEL", requires = "endpoint")]
    pub model: Option<String>,
    /// The model that has to answer, where it names itself otherwise
    #[arg(long, value_name = "MODEL", requires = "endpoint", hide = true)]
    pub pin: Option<String>,
    /// The account that pays
    #[arg(long, value_name = "ID", requires = "endpoint")]
    pub account: Option<String>,
    /// The most that the run may cost, in dollars
    #[arg(long, value_name = "X", requires = "endpoint", hide = true)]
    pub cap_usd: Option<String>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", requires = "endpoint", default_value_t = OUTPUT_USUAL, hide = true)]
    pub output_max: u64,
    /// The variable that holds the key; or --key-file FILE
    #[arg(long, value_name = "NAME", conflicts_with = "key_file", hide = true)]
    pub key_env: Option<String>,
    /// The file that holds the key, which nobody else may read
    #[arg(long, value_name = "FILE", hide = true)]
    pub key_file: Option<PathBuf>,
    /// Say what it would send and cost; send and record nothing
    #[arg(long, requires = "endpoint")]
    pub dry_run: bool,
    /// Do not ask before more than a dollar
    #[arg(long, requires = "endpoint", hide = true)]
    pub yes: bool,
}

/// The registered endpoint of a run.
pub(super) fn place(ledger: &Ledger, id: &EndpointId) -> Result<EndpointRegistered, CliError> {
    let endpoints = ledger.state().fold::<Endpoints>();
    Ok(endpoint_terms::found(endpoints, id)?.said.clone())
}

/// What the options say; none where no endpoint is named.
pub(super) fn terms(args: &ModelArgs, ledger: &Ledger) -> Result<Option<ModelTerms>, CliError> {
    let Some(name) = &args.endpoint else {
        return Ok(None);
    };
    let endpoint = endpoint_terms::endpoint_id(name)?;
    let seeded = dialect::wire(place(ledger, &endpoint)?.dialect).has_seed();
    let account = args.account.as_deref().map(|text| {
        AccountId::new(text)
            .map_err(|error| CliError::usage(format!("--account {text:?}: {error}"), HELP))
    });
    let cap = args.cap_usd.as_deref().map(judge_ask::cap).transpose()?;
    let output = Count::new(args.output_max).filter(|of| (1..=OUTPUT_MAX).contains(&of.value()));
    let max_output_tokens = output.ok_or_else(|| {
        let message = format!(
            "--output-max {}: expected 1 to {OUTPUT_MAX}",
            args.output_max
        );
        CliError::usage(message, HELP)
    })?;
    let model = key::text("model", args.model.as_deref().unwrap_or_default())?;
    let pin = args.pin.as_deref().map(|pin| key::text("pin", pin));
    Ok(Some(ModelTerms {
        account: account.transpose()?,
        cap,
        endpoint,
        max_output_tokens,
        pin: pin.transpose()?.unwrap_or_else(|| model.clone()),
        model,
        seeded,
    }))
}

/// What writes candidates, in words: the model that has to answer, and where.
pub(super) fn name(terms: &ModelTerms) -> Result<Text, CliError> {
    let words = format!("{} at {}", terms.pin.as_str(), terms.endpoint);
    key::text("model", &words)
}

/// What sends to the endpoint.
pub(super) fn desk(
    ctx: &Ctx<'_>,
    said: &EndpointRegistered,
    args: &ModelArgs,
) -> Result<HttpDesk, CliError> {
    let from = (args.key_env.as_deref(), args.key_file.as_deref());
    let key = endpoint::key_of(ctx, said, from)?;
    endpoint::desk(said, key, HELP)
}
