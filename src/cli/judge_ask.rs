//! `clover judge ask`: a model behind HTTP scores rows, as a run on record.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::endpoint;
use crate::cli::endpoint_terms;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::intake_files;
use crate::cli::intake_files::KeptFields;
use crate::cli::intake_files::Scores;
use crate::cli::judge_rows;
use crate::event::id::AccountId;
use crate::event::id::JudgeId;
use crate::event::id::RunId;
use crate::event::payload::endpoint::Dialect;
use crate::event::payload::model_terms::EndpointRegistered;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::model::desk::HttpDesk;
use crate::model::dialect;
use crate::num::Count;
use crate::num::Micro;
use crate::projection::endpoints::Endpoints;
use crate::session::home::Home;
use crate::session::judge::Assignment;
use crate::session::judge::assignment::JudgeSpec;
use crate::session::judge::assignment::Model;
use crate::session::judge::live;
use crate::session::judge::live::AskTerms;
use crate::session::judge::live::LiveTerms;
use crate::session::judge::live_stop;
use crate::session::judge::noise;
use crate::view::View;
use crate::view::judge_ask as views;
use crate::view::judge_noise;
use crate::workflow::ask::dispatch::DispatchRules;
use crate::workflow::ask::judged::AnswerForm;
use crate::workflow::ask::judged::JudgePlan;
use crate::workflow::ask::plan_file;

const HELP: &str = "clover judge ask --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan of the judge, a file in YAML; or the five options below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["judge", "endpoint", "model", "pin", "levels"])]
    pub plan: Option<PathBuf>,
    /// The judge's name
    #[arg(long, value_name = "ID", required_unless_present = "plan")]
    pub judge: Option<String>,
    /// The endpoint, as it is registered
    #[arg(long, value_name = "ID", required_unless_present = "plan")]
    pub endpoint: Option<String>,
    /// The model to ask for
    #[arg(long, value_name = "MODEL", required_unless_present = "plan")]
    pub model: Option<String>,
    /// The model that has to answer, where it names itself otherwise
    #[arg(long, value_name = "MODEL")]
    pub pin: Option<String>,
    /// Its levels, lowest first [else 1,2,3,4,5]
    #[arg(long, value_name = "N,N,...")]
    pub levels: Option<String>,
    /// JSON Lines of prompts and responses; default those of import rows
    #[arg(long, value_name = "PATH")]
    pub rows: Vec<PathBuf>,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose responses; default from file name
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// What the judge is told with every ask; kept on record, public
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// The account that pays
    #[arg(long, value_name = "ID")]
    pub account: Option<String>,
    /// The most that the run may cost, in dollars
    #[arg(long, value_name = "X")]
    pub cap_usd: Option<String>,
    /// Open at once, at most
    #[arg(short = 'j', value_name = "N")]
    pub open_max: Option<u32>,
    /// The variable that holds the key; or --key-file FILE
    #[arg(long, value_name = "NAME", conflicts_with = "key_file")]
    pub key_env: Option<String>,
    /// The file that holds the key, which nobody else may read
    #[arg(long, value_name = "FILE", hide = true)]
    pub key_file: Option<PathBuf>,
    /// Say what it would ask and cost; send and record nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before more than a dollar, or a thousand asks
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct StopArgs {
    /// The run, as `clover status` names it
    pub run: String,
    /// Do not ask before
    #[arg(long)]
    pub yes: bool,
}

/// Ends a run that nobody goes on with.
pub(super) fn stop(ctx: &mut Ctx<'_>, args: &StopArgs) -> Result<View, CliError> {
    let run = RunId::new(args.run.as_str()).map_err(|error| {
        CliError::usage(format!("run {:?}: {error}", args.run), "clover status")
    })?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let again = format!("clover judge stop {}", shell::word(&run));
    let mut ports = ctx.ports().with_consent(args.yes, again);
    let stop = live_stop::stop(&mut ports, &home, &mut ledger, &run)?;
    Ok(views::ended(&stop))
}

/// How the judge is asked: as the file of its plan says, or the options. A seed is asked for where the dialect takes one.
fn plan(ctx: &mut Ctx<'_>, args: &Args, ledger: &Ledger) -> Result<JudgePlan, CliError> {
    let endpoints = ledger.state().fold::<Endpoints>();
    if let Some(path) = &args.plan {
        let plan = plan_file::read(&ctx.read(path)?).map_err(|error| {
            CliError::input(
                format!("{}: {error}", path.display()),
                "schema/ENDPOINTS.md",
            )
        })?;
        let place = endpoint_terms::found(endpoints, &plan.endpoint)?;
        fits_dialect(&plan, place.said.dialect)?;
        return Ok(plan);
    }
    let text = |of: &Option<String>| of.clone().unwrap_or_default();
    let judge = text(&args.judge);
    let judge = JudgeId::new(judge.as_str())
        .map_err(|error| CliError::usage(format!("--judge {judge:?}: {error}"), HELP))?;
    let levels = args.levels.as_deref().map(|levels| {
        let parsed = levels.split(',').map(|level| level.trim().parse());
        parsed.collect::<Result<Vec<i64>, _>>().map_err(|_| {
            let message = format!("--levels {levels:?}: expected whole numbers, such as 1,2,3,4,5");
            CliError::usage(message, HELP)
        })
    });
    let endpoint = endpoint_terms::endpoint_id(&text(&args.endpoint))?;
    let place = endpoint_terms::found(endpoints, &endpoint)?;
    let seeded = dialect::wire(place.said.dialect).has_seed();
    let model = text(&args.model);
    let plan = JudgePlan {
        answer: AnswerForm::Json,
        endpoint,
        judge,
        levels: levels
            .transpose()?
            .unwrap_or_else(|| plan_file::LEVELS_USUAL.to_vec()),
        max_output_tokens: plan_file::OUTPUT_USUAL,
        pin: args.pin.clone().unwrap_or_else(|| model.clone()),
        model,
        noise_sd_max_micro: None,
        reasons: true,
        repeat: None,
        seeded,
        temperature_micro: Some(0),
    };
    plan.check()
        .map_err(|error| CliError::usage(error.to_string(), HELP))?;
    fits_dialect(&plan, place.said.dialect)?;
    Ok(plan)
}

/// Whether a dialect can ask what a plan wants.
fn fits_dialect(plan: &JudgePlan, dialect: Dialect) -> Result<(), CliError> {
    let wire = dialect::wire(dialect);
    if plan.seeded && !wire.has_seed() {
        let message = format!("decoding.seed: {dialect} takes none");
        let next = "the same plan without decoding.seed";
        return Err(CliError::input(message, next));
    }
    if plan.answer == AnswerForm::Logprob && !wire.has_logprobs() {
        let message = format!("answer: {dialect} gives no log-probabilities");
        return Err(CliError::input(message, "the same plan with answer: json"));
    }
    Ok(())
}

/// The most that the run may cost, in millionths of a dollar.
pub(super) fn cap(text: &str) -> Result<Count, CliError> {
    dollars(("--cap-usd", text), HELP)
}

/// Millionths of an option in dollars, above 0 and exact.
pub(super) fn dollars((option, text): (&str, &str), help: &str) -> Result<Count, CliError> {
    let micro = Micro::parse(text).ok().filter(|(_, rounded)| !rounded);
    let micro = micro.and_then(|(micro, _)| u64::try_from(micro.value()).ok());
    let count = micro.filter(|of| *of > 0).and_then(Count::new);
    count.ok_or_else(|| {
        let message = format!("{option} {text:?}: expected dollars above 0, such as 2.50");
        CliError::usage(message, help)
    })
}

/// What is known before anything is asked.
struct AskDesk {
    home: Home,
    ledger: Ledger,
    assignment: Assignment,
    account: Option<AccountId>,
    cap: Option<Count>,
    plan: JudgePlan,
    said: EndpointRegistered,
}

impl AskDesk {
    fn open(ctx: &mut Ctx<'_>, args: &Args) -> Result<Self, CliError> {
        let account = args.account.as_deref().map(|text| {
            AccountId::new(text)
                .map_err(|error| CliError::usage(format!("--account {text:?}: {error}"), HELP))
        });
        let (account, cap) = (
            account.transpose()?,
            args.cap_usd.as_deref().map(cap).transpose()?,
        );
        let prompt = judge_rows::told(ctx, args.prompt.as_deref())?;
        let (home, ledger) = if args.dry_run {
            home::open_to_read(ctx)?
        } else {
            home::open_to_write(ctx)?
        };
        let named = args.experiment.as_deref();
        let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
        let plan = plan(ctx, args, &ledger)?;
        let endpoints = ledger.state().fold::<Endpoints>();
        let said = endpoint_terms::found(endpoints, &plan.endpoint)?
            .said
            .clone();
        let pepper = home.vault(&ctx.ambient())?.pepper()?;
        let policy = args.policy.as_deref();
        let rows = if args.rows.is_empty() {
            judge_rows::held(ctx, (&home, &ledger), &experiment, policy)?
        } else {
            intake_files::rows(
                ctx,
                &pepper,
                &args.rows,
                policy,
                (Scores::Asked, KeptFields::default()),
            )?
        };
        let spec = JudgeSpec {
            judge: plan.judge.clone(),
            model: Model::Endpoint(plan.clone()),
            prompt,
            known: None,
            scale: None,
        };
        let assignment = Assignment::new(experiment, spec, pepper, rows, 1);
        let assignment = assignment.as_registered(&ledger)?;
        Ok(Self {
            home,
            ledger,
            assignment,
            account,
            cap,
            plan,
            said,
        })
    }

    /// How it asks, and who pays.
    fn terms(&self) -> AskTerms<'static> {
        AskTerms {
            account: self.account.clone(),
            cap: self.cap,
            plan: self.plan.clone(),
            sgd: None,
            wire: dialect::wire(self.said.dialect),
        }
    }
}

/// What a run needs to send.
fn live_terms<'a>(of: &AskDesk, args: &Args, desk: &'a mut HttpDesk) -> LiveTerms<'a> {
    LiveTerms {
        asks: of.terms(),
        desk,
        rules: DispatchRules {
            open_max: args.open_max,
            ..DispatchRules::default()
        },
        yes: args.yes,
    }
}

/// What sends to the endpoint of a judge.
fn sender(ctx: &mut Ctx<'_>, of: &AskDesk, args: &Args) -> Result<HttpDesk, CliError> {
    let from = (args.key_env.as_deref(), args.key_file.as_deref());
    let key = endpoint::key_of(ctx, &of.said, from)?;
    endpoint::desk(&of.said, key, HELP)
}

/// Asks again about so many answers that the judge gave.
pub(super) fn again(ctx: &mut Ctx<'_>, args: &Args, answers: u64) -> Result<View, CliError> {
    let mut of = AskDesk::open(ctx, args)?;
    let judge = of.plan.judge.clone();
    let mut desk = sender(ctx, &of, args)?;
    let terms = live_terms(&of, args, &mut desk);
    let ports = ctx.ports();
    let ports = ports.with_consent(args.yes, "the same command with");
    let mut ports = ports.with_interrupts()?;
    let whose = (&of.home, &mut of.ledger);
    let found = noise::run(
        &mut ports,
        whose.0,
        whose.1,
        of.assignment,
        (terms, answers),
    )?;
    Ok(judge_noise::measured(judge, &found))
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let mut of = AskDesk::open(ctx, args)?;
    let judge = of.plan.judge.clone();
    if args.dry_run {
        let asks = of.terms();
        let outlook = live::outlook(&of.home, &of.ledger, of.assignment, &asks)?;
        return Ok(views::foreseen(judge, &asks.plan, &outlook));
    }
    let mut desk = sender(ctx, &of, args)?;
    let terms = live_terms(&of, args, &mut desk);
    let ports = ctx.ports();
    let ports = ports.with_consent(args.yes, "the same command with");
    let mut ports = ports.with_interrupts()?;
    let counts = live::run(&mut ports, &of.home, &mut of.ledger, of.assignment, terms)?;
    Ok(views::asked(judge, &counts))
}
