//! `clover endpoint`: what a model behind HTTP can do, and a double of an endpoint to try it with.

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::cassette;
use crate::cli::ctx::Ctx;
use crate::cli::endpoint_terms;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ports;
use crate::event::id::EndpointId;
use crate::event::id::Text;
use crate::event::payload::endpoint::AuthForm;
use crate::event::payload::endpoint::BaseUrl;
use crate::event::payload::endpoint::Dialect;
use crate::event::payload::model_terms::EndpointRegistered;
use crate::ground::ambient;
use crate::ground::secret::Secret;
use crate::ground::seed::SeedTree;
use crate::ground::shell;
use crate::model::client::Connection;
use crate::model::client::Timeouts;
use crate::model::desk::HttpDesk;
use crate::model::dialect;
use crate::model::simulate::BilledCall;
use crate::model::simulate::Double;
use crate::model::simulate::DoubleOptions;
use crate::model::simulate::Script;
use crate::model::simulate::SimulatedJudge;
use crate::num::Micro;
use crate::projection::endpoints::Endpoints;
use crate::view::View;
use crate::view::endpoint as views;
use crate::view::model_terms as terms;
use crate::workflow::ask::Micros;
use crate::workflow::ask::SECOND;
use crate::workflow::ask::dispatch::DispatchRules;
use crate::workflow::ask::probe;

/// How often a double looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
const PROBE_HELP: &str = "clover endpoint probe --help";
const SIMULATE_HELP: &str = "clover endpoint simulate --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Register an endpoint: where it is, and which texts may be sent there
    #[command(
        override_usage = "clover endpoint add <ID> --url <URL> --provider <TEXT> --texts <CLASS> [OPTIONS]",
        after_help = "Example:\n  clover endpoint add sim --url http://127.0.0.1:8080 --provider here --texts rows --terms 'never leaves' --free"
    )]
    Add(endpoint_terms::EndpointAddArgs),
    /// Endpoints that are registered
    #[command(after_help = "Example:\n  clover endpoint list")]
    List,
    /// One endpoint, with the variable that its key comes from
    #[command(after_help = "Example:\n  clover endpoint show sim")]
    Show(endpoint_terms::EndpointShowArgs),
    /// Ask a model on this machine what it can do: at most 12 asks of made-up texts
    #[command(
        override_usage = "clover endpoint probe <ID> --model <MODEL> [OPTIONS]\n       clover endpoint probe --url <URL> --model <MODEL> [OPTIONS]",
        after_help = "Example:\n  clover endpoint probe --url http://127.0.0.1:11434/v1 --model llama3"
    )]
    Probe(ProbeArgs),
    /// Serve a double of an endpoint here: seeded answers and scripted faults, no key, no money
    #[command(after_help = "Example:\n  clover endpoint simulate --listen 127.0.0.1:8080 --seed 7")]
    Simulate(EndpointSimulateArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ProbeArgs {
    /// A registered endpoint on this machine
    #[arg(
        value_name = "ID",
        required_unless_present = "url",
        conflicts_with_all = ["url", "dialect"]
    )]
    pub endpoint: Option<String>,
    /// The base URL, on 127.0.0.0/8 or `[::1]`
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The model to ask for
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// The form of requests and answers
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "openai_chat",
        help = "openai_chat, openai_responses, anthropic or gemini"
    )]
    pub dialect: Dialect,
    /// The variable of the environment that holds the key
    #[arg(long, value_name = "NAME", conflicts_with = "key_file")]
    pub key_env: Option<String>,
    /// The file that holds the key, which nobody else may read
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct EndpointSimulateArgs {
    /// Where it listens: an address of this machine alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The seed of its answers
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Judge each row by a merit of its own, with a noise of this standard deviation, such as .05 of the scale
    #[arg(long, value_name = "SHARE", conflicts_with = "cassette")]
    pub noise: Option<String>,
    /// Faults, one rule of JSON a line: schema/ENDPOINTS.md
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Answer from a cassette and from nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    pub cassette: Option<PathBuf>,
    /// Where it writes what it billed, a line a request, when it ends
    #[arg(long, value_name = "FILE")]
    pub billed: Option<PathBuf>,
    /// End after so many requests; without it, when it is interrupted
    #[arg(long, value_name = "N")]
    pub calls: Option<usize>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Add(args) => endpoint_terms::add(ctx, args),
        Verb::List => endpoint_terms::list(ctx),
        Verb::Show(args) => endpoint_terms::show(ctx, &args),
        Verb::Probe(args) => probed(ctx, &args),
        Verb::Simulate(args) => simulate(ctx, &args),
    }
}

/// Where the options of a probe say that the key is.
fn named(args: &ProbeArgs) -> (Option<&str>, Option<&Path>) {
    (args.key_env.as_deref(), args.key_file.as_deref())
}

/// Where a probe asks.
struct ProbedPlace {
    name: EndpointId,
    url: BaseUrl,
    dialect: Dialect,
    auth: AuthForm,
    key: Option<Secret>,
}

impl ProbedPlace {
    /// The place that the command line names: a registered endpoint, or a URL.
    fn of(ctx: &mut Ctx<'_>, args: &ProbeArgs) -> Result<Self, CliError> {
        if let Some(id) = &args.endpoint {
            let id = endpoint_terms::endpoint_id(id)?;
            let (_, ledger, at) = home::view(ctx)?;
            let endpoints = at.state(&ledger).fold::<Endpoints>();
            return Self::registered(ctx, &endpoint_terms::found(endpoints, &id)?.said, args);
        }
        let url = args.url.as_deref().unwrap_or_default();
        let key = key(ctx, named(args))?;
        Ok(Self {
            name: EndpointId::new("probed")
                .map_err(|error| CliError::usage(error.to_string(), PROBE_HELP))?,
            url: endpoint_terms::base_url(url, PROBE_HELP)?,
            dialect: args.dialect,
            auth: match key {
                Some(_) => dialect::usual_auth(args.dialect),
                None => AuthForm::None,
            },
            key,
        })
    }

    /// A registered endpoint; its key comes from its variable, where no option names another place.
    fn registered(
        ctx: &Ctx<'_>,
        said: &EndpointRegistered,
        args: &ProbeArgs,
    ) -> Result<Self, CliError> {
        let only = said.model.as_ref().map(Text::as_str);
        if let Some(only) = only.filter(|only| *only != args.model) {
            let message = format!(
                "{} is registered for the model {only} alone, not for {}",
                said.endpoint, args.model
            );
            return Err(CliError::refused(
                message,
                terms::show_command(&said.endpoint),
            ));
        }
        let key = key_of(ctx, said, named(args))?;
        Ok(Self {
            name: said.endpoint.clone(),
            url: said.url.clone(),
            dialect: said.dialect,
            auth: said.auth,
            key,
        })
    }
}

/// A key that an option names; none where none does.
fn key(
    ctx: &Ctx<'_>,
    (variable, file): (Option<&str>, Option<&Path>),
) -> Result<Option<Secret>, CliError> {
    let text = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(name), _) => {
            let missing = || {
                let message = format!("--key-env {name}: the variable is not set");
                CliError::input(message, format!("export {name}=…"))
            };
            ctx.variable(name).ok_or_else(missing)?.to_owned()
        }
        (None, Some(path)) => {
            let bytes = ambient::read_secret(&ctx.path(path))?;
            let wrong = |_| {
                let message = format!("--key-file {}: it is no text", path.display());
                CliError::input(message, PROBE_HELP)
            };
            String::from_utf8(bytes).map_err(wrong)?
        }
    };
    Ok(Some(Secret::new(text.trim().to_owned())))
}

/// The key of a registered endpoint: from where an option says, else from its own variable; none where it takes none.
pub(super) fn key_of(
    ctx: &Ctx<'_>,
    said: &EndpointRegistered,
    named: (Option<&str>, Option<&Path>),
) -> Result<Option<Secret>, CliError> {
    let usual = terms::key_variable(&said.endpoint);
    match key(ctx, named)? {
        None if said.auth != AuthForm::None => {
            let missing = || {
                let message = format!("the key of {}: {usual} is not set", said.endpoint);
                CliError::input(message, format!("export {usual}=…"))
            };
            let text = ctx.variable(&usual).ok_or_else(missing)?;
            Ok(Some(Secret::new(text.trim().to_owned())))
        }
        key => Ok(key),
    }
}

/// The desk of a registered endpoint.
pub(super) fn desk(
    said: &EndpointRegistered,
    key: Option<Secret>,
    help: &str,
) -> Result<HttpDesk, CliError> {
    let connection = Connection {
        auth: said.auth,
        key,
        proxy: None,
        timeouts: Timeouts::default(),
        url: said.url.clone(),
        headers: dialect::headers(said.dialect),
    };
    let opened = HttpDesk::open(&connection);
    opened.map_err(|error| CliError::input(error.to_string(), help))
}

/// How long a probe waits for the first byte of an answer: somebody sits in front of it.
const PROBE_ANSWER: Duration = Duration::from_secs(30);
/// How often a probe sends an ask, at most.
const PROBE_ATTEMPTS: u32 = 3;
/// How long a probe bears failures, and what the endpoint asks it to wait.
const PROBE_PATIENCE: Micros = 60 * SECOND;

fn probed(ctx: &mut Ctx<'_>, args: &ProbeArgs) -> Result<View, CliError> {
    let place = ProbedPlace::of(ctx, args)?;
    if !place.url.is_loopback() {
        let message = format!(
            "{} is not on this machine: what a provider answers may cost money, and calls are not on record yet",
            place.url
        );
        return Err(CliError::refused(message, SIMULATE_HELP));
    }
    let form = place.dialect;
    let connection = Connection {
        auth: place.auth,
        key: place.key,
        proxy: None,
        timeouts: Timeouts {
            first_byte: PROBE_ANSWER,
            ..Timeouts::default()
        },
        url: place.url.clone(),
        headers: dialect::headers(form),
    };
    let opened = HttpDesk::open(&connection);
    let mut desk = opened.map_err(|error| CliError::input(error.to_string(), PROBE_HELP))?;
    let ambient = ctx.ambient();
    let seed = ambient.random::<8>()?;
    let jitter = SeedTree::of_number(u64::from_be_bytes(seed));
    let stops = ports::interrupts()?;
    let mut progress = ctx.progress("asks");
    let rules = DispatchRules {
        attempts_max: PROBE_ATTEMPTS,
        patience: PROBE_PATIENCE,
        ..DispatchRules::default()
    };
    let findings = probe::probe(
        (&mut desk, dialect::wire(form)),
        (&place.name, &args.model),
        (rules, jitter),
        &|| ambient.now(),
        &mut |done, all| {
            progress.at(done, all);
            !stops.came()
        },
    );
    Ok(views::probed((&place.url, form, &args.model), &findings))
}

/// How the double judges.
fn judge(args: &EndpointSimulateArgs) -> Result<Option<SimulatedJudge>, CliError> {
    let Some(text) = &args.noise else {
        return Ok(None);
    };
    let share = Micro::parse(text).ok().map(|(share, _)| share.value());
    let share = share.filter(|share| (0..=1_000_000).contains(share));
    let share = share.and_then(|share| u32::try_from(share).ok());
    let noise_sd_micro = share.ok_or_else(|| {
        let message = format!("--noise {text:?}: expected a share from 0 to 1, such as .05");
        CliError::usage(message, SIMULATE_HELP)
    })?;
    Ok(Some(SimulatedJudge {
        noise_sd_micro,
        ..SimulatedJudge::default()
    }))
}

fn simulate(ctx: &mut Ctx<'_>, args: &EndpointSimulateArgs) -> Result<View, CliError> {
    let script = match &args.script {
        None => Script::default(),
        Some(path) => {
            let bytes = ctx.read(path)?;
            let text = String::from_utf8_lossy(&bytes);
            Script::parse(&text).map_err(|error| {
                CliError::input(format!("{}: {error}", path.display()), SIMULATE_HELP)
            })?
        }
    };
    let tape = match &args.cassette {
        None => None,
        Some(path) => Some(Arc::new(cassette::tape(ctx, path)?)),
    };
    let options = DoubleOptions {
        judge: judge(args)?,
        listen: Some(args.listen),
        seed: args.seed,
        script,
        tape: tape.clone(),
        key: None,
    };
    let started = Double::start(options);
    let double = started.map_err(|error| {
        let message = format!("--listen {}: {error}", args.listen);
        CliError::usage(message, SIMULATE_HELP)
    })?;
    let url = format!("http://{}", double.address());
    ctx.note(&format!("listening on {url}"));
    ctx.note(&format!(
        "next: clover endpoint probe --url {url} --model m-1"
    ));
    let stops = ports::interrupts()?;
    let missed = || tape.as_ref().and_then(|tape| tape.missed());
    let is_done = |double: &Double| {
        let calls = args.calls;
        calls.is_some_and(|calls| double.billed().len() >= calls) || missed().is_some()
    };
    while !stops.came() && !is_done(&double) {
        ambient::sleep(LOOK);
    }
    let billed = double.ended();
    let file = match &args.billed {
        None => None,
        Some(path) => {
            let lines = billed
                .iter()
                .map(|call| serde_json::json!(call).to_string() + "\n");
            let text: String = lines.collect();
            ambient::replace(&ctx.path(path), text.as_bytes(), false)?;
            Some(path.display().to_string())
        }
    };
    if let Some(what) = missed() {
        let file = args.cassette.as_ref().map(|of| of.display().to_string());
        let next = format!(
            "clover cassette check {}",
            shell::word(&file.unwrap_or_default())
        );
        return Err(CliError::integrity("differs", what, next));
    }
    let sum = |of: fn(&BilledCall) -> u64| billed.iter().map(of).fold(0, u64::saturating_add);
    let tokens = (sum(|call| call.input), sum(|call| call.output));
    let sums = (billed.len() as u64, tokens.0, tokens.1);
    Ok(views::double_ended(url, sums, file))
}
