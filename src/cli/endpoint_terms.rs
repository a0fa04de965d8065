//! `clover endpoint add|list|show`: endpoints of models as a registrar signs them.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::event::id::EndpointId;
use crate::event::payload::endpoint::AuthForm;
use crate::event::payload::endpoint::BaseUrl;
use crate::event::payload::endpoint::Dialect;
use crate::event::payload::model_terms::EndpointRegistered;
use crate::event::payload::model_terms::TextClass;
use crate::model::dialect;
use crate::projection::endpoints::EndpointRecord;
use crate::projection::endpoints::Endpoints;
use crate::session::endpoints;
use crate::view::View;
use crate::view::model_terms as views;

const HELP: &str = "clover endpoint add --help";
const LIST: &str = "clover endpoint list";

#[derive(Debug, clap::Args)]
pub(super) struct EndpointAddArgs {
    /// Its name
    pub id: String,
    /// The base URL, such as <https://api.example.com/v1>
    #[arg(
        long,
        value_name = "URL",
        help = "The base URL, such as https://api.example.com/v1"
    )]
    pub url: String,
    /// Whoever runs it, as prices name it
    #[arg(long, value_name = "TEXT")]
    pub provider: String,
    /// A class of texts that may be sent there; may repeat
    #[arg(
        long = "texts",
        value_name = "CLASS",
        help = "Texts that may go there: rows, aggregates or synthetic; may repeat"
    )]
    pub classes: Vec<TextClass>,
    /// What the provider may do with texts; needed for rows
    #[arg(long, value_name = "TEXT")]
    pub terms: Option<String>,
    /// The form of requests and answers
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "openai_chat",
        help = "openai_chat, openai_responses, anthropic or gemini"
    )]
    pub dialect: Dialect,
    /// How the key is sent
    #[arg(
        long,
        value_name = "FORM",
        help = "How the key is sent: bearer, api_key, x_api_key, x_goog_api_key or none"
    )]
    pub auth: Option<AuthForm>,
    /// The only model that may be asked there
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Calls cost nothing: no prices are needed
    #[arg(long)]
    pub free: bool,
    /// Allow plain http to another machine; reports repeat it
    #[arg(long)]
    pub insecure: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct EndpointShowArgs {
    /// The endpoint
    pub id: String,
}

/// A base URL, as it is typed.
pub(super) fn base_url(text: &str, help: &str) -> Result<BaseUrl, CliError> {
    BaseUrl::new(text.trim_end_matches('/')).ok_or_else(|| {
        let message = format!(
            "--url {text:?}: expected http:// or https://, a host in lower case and a path, such as http://127.0.0.1:8080/v1"
        );
        CliError::usage(message, help)
    })
}

pub(super) fn endpoint_id(text: &str) -> Result<EndpointId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("endpoint {text:?}: {error}"), LIST))
}

/// A registered endpoint by its name.
pub(super) fn found<'a>(
    of: &'a Endpoints,
    id: &EndpointId,
) -> Result<&'a EndpointRecord, CliError> {
    of.by_id
        .get(id)
        .ok_or_else(|| CliError::not_found(format!("no endpoint {id}"), LIST))
}

pub(super) fn add(ctx: &mut Ctx<'_>, args: EndpointAddArgs) -> Result<View, CliError> {
    let mut classes = args.classes;
    classes.sort_unstable();
    classes.dedup();
    if classes.is_empty() {
        let message = "--texts is missing: expected rows, aggregates or synthetic";
        return Err(CliError::usage(message, HELP));
    }
    let optional = |what: &str, text: Option<String>| {
        let text = text.map(|text| key::text(what, &text));
        text.transpose()
    };
    let endpoint = EndpointRegistered {
        auth: args
            .auth
            .unwrap_or_else(|| dialect::usual_auth(args.dialect)),
        classes,
        dialect: args.dialect,
        endpoint: endpoint_id(&args.id)?,
        free: args.free,
        insecure: args.insecure,
        model: optional("model", args.model)?,
        provider: key::text("provider", &args.provider)?,
        terms: optional("terms", args.terms)?,
        url: base_url(&args.url, HELP)?,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let id = endpoint.endpoint.clone();
    let submission = endpoints::register(&mut ctx.ports(), &mut ledger, endpoint, intent)?;
    let view = submit::shown(ctx, &ledger, &submission);
    Ok(view.with_next(views::show_command(&id)))
}

pub(super) fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    Ok(views::endpoints(at.state(&ledger).fold::<Endpoints>()))
}

pub(super) fn show(ctx: &mut Ctx<'_>, args: &EndpointShowArgs) -> Result<View, CliError> {
    let id = endpoint_id(&args.id)?;
    let (_, ledger, at) = home::view(ctx)?;
    let endpoints = at.state(&ledger).fold::<Endpoints>();
    Ok(views::endpoint(found(endpoints, &id)?))
}
