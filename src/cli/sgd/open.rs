//! `clover sgd plan` and `clover sgd open`.

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program::Program;
use crate::cli::judge_ask::dollars;
use crate::cli::key;
use crate::cli::sgd::agents;
use crate::cli::sgd::run_id;
use crate::cli::synth_model;
use crate::cli::synth_model::ModelArgs;
use crate::cli::synth_model::OUTPUT_USUAL;
use crate::event::Kind;
use crate::event::id::AccountId;
use crate::event::id::ExperimentId;
use crate::event::payload::sgd::SgdAgents;
use crate::event::payload::sgd::SgdDistance;
use crate::event::payload::sgd::SgdRanking;
use crate::event::payload::sgd::SgdScoring;
use crate::event::payload::sgd::SgdTarget;
use crate::event::payload::sgd::SgdTerms;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ledger::Ledger;
use crate::model::dialect;
use crate::num::Count;
use crate::num::Micro;
use crate::prompt::JudgePrompt;
use crate::session::SessionError;
use crate::session::judge::JudgingError;
use crate::session::ports::KeyNeed;
use crate::session::ports::Keys;
use crate::session::ports::Seat;
use crate::session::sgd::found;
use crate::session::sgd::open;
use crate::session::sgd::open::SgdRequest;
use crate::view::View;
use crate::view::sgd as views;
use crate::view::sgd::planned;
use crate::view::sgd::prompts;
use crate::workflow::ask::judged::JudgePlan;
use crate::workflow::ask::plan_file;
use crate::workflow::sgd::agents::AGGREGATE;

const HELP: &str = "clover sgd open --help";
/// Steps of warm-up where nobody says.
const WARMUP: u64 = 4;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OpenArgs {
    /// Name of the run
    pub run: String,
    /// The experiment; default the one in use
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// The judge whose prompt it is
    #[arg(long, value_name = "JUDGE")]
    pub judge: String,
    /// Prompt 0: Markdown whose headings are sections, YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub prompt: std::path::PathBuf,
    /// The judge is the simulated one of this program, for trials
    #[arg(long)]
    pub simulated: bool,
    /// The judge is the simulated one that nothing improves
    #[arg(long, conflicts_with = "simulated", hide = true)]
    pub simulated_null: bool,
    /// A program that writes gradients and patches; default aggregate/1
    #[arg(long, value_name = "COMMAND", conflicts_with = "endpoint")]
    pub agents: Option<String>,
    #[command(flatten)]
    pub asks: AgentsModelArgs,
    #[command(flatten)]
    pub scoring: ScoringArgs,
    /// Most steps, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub steps: u64,
    /// Scores of each row, 1 to 9
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeats: u64,
    /// A constant, such as warmup=2 (schema/SGD.md); may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The agents' key; default the only one at hand
    #[arg(long, value_name = "KEY")]
    pub optimizer_key: Option<String>,
}

/// How a judge behind HTTP is asked that is not registered yet, and who pays for scores.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct ScoringArgs {
    /// How a judge behind HTTP is asked (schema/ENDPOINTS.md)
    #[arg(
        id = "judge_plan",
        long = "judge-plan",
        value_name = "FILE",
        conflicts_with = "simulated"
    )]
    pub plan: Option<std::path::PathBuf>,
    /// The account that pays for its scores
    #[arg(
        id = "judge_account",
        long = "judge-account",
        value_name = "ID",
        hide = true
    )]
    pub account: Option<String>,
    /// The most that its scores may cost, in dollars
    #[arg(
        id = "judge_cap_usd",
        long = "judge-cap-usd",
        value_name = "X",
        hide = true
    )]
    pub cap_usd: Option<String>,
}

impl ScoringArgs {
    fn plan(&self, ctx: &mut Ctx<'_>) -> Result<Option<JudgePlan>, CliError> {
        let Some(path) = &self.plan else {
            return Ok(None);
        };
        let plan = plan_file::read(&ctx.read(path)?).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            CliError::input(message, "schema/ENDPOINTS.md")
        })?;
        Ok(Some(plan))
    }

    fn scoring(&self) -> Result<SgdScoring, CliError> {
        let account = self.account.as_deref().map(|text| {
            AccountId::new(text).map_err(|error| {
                CliError::usage(format!("--judge-account {text:?}: {error}"), HELP)
            })
        });
        let cap = self.cap_usd.as_deref();
        let cap = cap.map(|text| dollars(("--judge-cap-usd", text), HELP));
        Ok(SgdScoring {
            account: account.transpose()?,
            cap_usd_micro: cap.transpose()?,
        })
    }
}

/// Which model writes gradients and patches, and who pays.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct AgentsModelArgs {
    /// A model behind HTTP, in place of --agents: the endpoint
    #[arg(long, value_name = "ID", requires = "model")]
    pub endpoint: Option<String>,
    /// The model to ask for
    #[arg(long, value_name = "MODEL", requires = "endpoint")]
    pub model: Option<String>,
    /// The model that has to answer, where it names itself otherwise
    #[arg(long, value_name = "MODEL", requires = "endpoint", hide = true)]
    pub pin: Option<String>,
    /// The account that pays
    #[arg(long, value_name = "ID", requires = "endpoint", hide = true)]
    pub account: Option<String>,
    /// The most that the run may cost, in dollars
    #[arg(long, value_name = "X", requires = "endpoint", hide = true)]
    pub cap_usd: Option<String>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", requires = "endpoint", default_value_t = OUTPUT_USUAL, hide = true)]
    pub output_max: u64,
}

impl AgentsModelArgs {
    fn as_model(&self) -> ModelArgs {
        ModelArgs {
            endpoint: self.endpoint.clone(),
            model: self.model.clone(),
            pin: self.pin.clone(),
            account: self.account.clone(),
            cap_usd: self.cap_usd.clone(),
            output_max: self.output_max,
            ..ModelArgs::default()
        }
    }
}

fn count(value: u64) -> Count {
    Count::new(value).unwrap_or_default()
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap_or_default()
}

fn terms(args: &OpenArgs) -> Result<SgdTerms, CliError> {
    let mut terms = SgdTerms {
        alpha_micro: micro(1_000_000),
        batch: count(24),
        beta_micro: micro(500_000),
        distance: SgdDistance::Mae,
        eta_micro: micro(100_000),
        extra: count(3),
        gamma_micro: micro(1_000_000),
        lr_max_micro: micro(1_000_000),
        lr_min_micro: micro(50_000),
        ranking: SgdRanking::Logistic,
        repeats: count(args.repeats),
        reverts: true,
        steps: count(args.steps),
        target: SgdTarget::Mean,
        tau_micro: micro(500_000),
        warmup: count(WARMUP.min(args.steps.saturating_sub(1))),
        zeta_micro: micro(2_000_000),
    };
    for text in &args.set {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let said = set(&mut terms, name, value);
        said.map_err(|expected| {
            CliError::usage(format!("--set {text:?}: expected {expected}"), HELP)
        })?;
    }
    Ok(terms)
}

/// Sets a constant by its name; what was expected where it is none.
fn set(terms: &mut SgdTerms, name: &str, value: &str) -> Result<(), String> {
    let whole = || {
        let found = value.parse::<u64>().ok().and_then(Count::new);
        found.ok_or_else(|| "a whole number".to_owned())
    };
    match name {
        "batch" => terms.batch = whole()?,
        "distance" => terms.distance = value.parse()?,
        "extra" => terms.extra = whole()?,
        "ranking" => terms.ranking = value.parse()?,
        "reverts" => {
            let found = value.parse::<bool>();
            terms.reverts = found.map_err(|_| "true or false".to_owned())?;
        }
        "target" => terms.target = value.parse()?,
        "warmup" => terms.warmup = whole()?,
        _ => {
            let all = "batch, distance, extra, ranking, reverts, target or warmup";
            return Err(all.to_owned());
        }
    }
    Ok(())
}

fn request(
    ctx: &mut Ctx<'_>,
    (args, ledger): (&OpenArgs, &Ledger),
    experiment: ExperimentId,
) -> Result<SgdRequest, CliError> {
    let path = ctx.path(&args.prompt);
    let bytes = ambient::read(&path)?;
    let wrong = |error: String| {
        let message = format!("{}: {error}", args.prompt.display());
        CliError::usage(message, HELP)
    };
    let name = args
        .prompt
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let prompt = JudgePrompt::from_file(&name, &bytes);
    let prompt = prompt.map_err(|error| wrong(error.to_string()))?;
    let program = agents::program(ctx, args.agents.as_deref(), &Program::default())?;
    let asks = synth_model::terms(&args.asks.as_model(), ledger)?;
    if prompt.sections().iter().all(|section| !section.is_open()) {
        let said = prompts::none_open(&name);
        if program.is_none() && asks.is_none() {
            // What scores cost would be spent on nothing.
            return Err(wrong(said));
        }
        ctx.warn(said);
    }
    let (agents, model) = match (program, &asks) {
        (Some(program), _) => (SgdAgents::Command, program.model),
        (None, Some(asks)) => (SgdAgents::Endpoint, synth_model::name(asks)?),
        (None, None) => (SgdAgents::Aggregate, key::text("agents", AGGREGATE)?),
    };
    let judge = args.judge.parse();
    let judge = judge
        .map_err(|error| CliError::usage(format!("--judge {:?}: {error}", args.judge), HELP))?;
    let simulated = match (args.simulated, args.simulated_null) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    };
    Ok(SgdRequest {
        run: run_id(&args.run)?,
        experiment,
        judge,
        simulated,
        judge_plan: args.scoring.plan(ctx)?,
        scoring: args.scoring.scoring()?,
        prompt,
        agents,
        asks,
        model,
        terms: terms(args)?,
    })
}

/// What stands in the way of a run. The account that lacks is that of its scores, where that of its agents is not asked for.
fn hindered(asks: &AgentsModelArgs, error: SessionError) -> CliError {
    let is_scores = asks.endpoint.is_none() || asks.account.is_some();
    match &error {
        SessionError::Judging(of) if is_scores && matches!(**of, JudgingError::NoAccount) => {
            CliError::usage(
                format!("scores: {of}"),
                "the same command with --judge-account ID",
            )
        }
        _ => error.into(),
    }
}

pub(super) fn plan(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let request = request(ctx, (args, &ledger), experiment)?;
    let need = KeyNeed::of(Seat::Optimizer, Kind::SgdPatchProposed);
    let ports = &mut ctx.ports().with_optimizer(args.optimizer_key.as_ref());
    let key = ports.signer(ledger.state(), need);
    let key = key.map_err(SessionError::from)?.id();
    let plan = open::plan(&ledger, &request, key).map_err(|error| hindered(&args.asks, error))?;
    let cost = plan.agent_cost(&ledger)?;
    let of = (&request, &plan);
    let scores = open::judge_cost((&home, &ledger), of, &dialect::wire)
        .map_err(|error| hindered(&args.asks, error))?;
    let costs = (cost.as_ref(), scores.as_ref());
    Ok(planned::planned(
        ledger.state(),
        &plan,
        &request.experiment,
        costs,
    ))
}

pub(super) fn open(ctx: &mut Ctx<'_>, args: &OpenArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let request = request(ctx, (args, &ledger), experiment)?;
    let ports = &mut ctx.ports().with_optimizer(args.optimizer_key.as_ref());
    let appended =
        open::open(ports, &mut ledger, &request).map_err(|error| hindered(&args.asks, error))?;
    let run = found(ledger.state(), &request.run);
    let run = run.map_err(SessionError::from)?;
    let mut view = views::run(ledger.state(), run).with_events(&[appended]);
    view.next = vec![format!("clover sgd run {}", shell::word(&request.run))];
    Ok(view)
}
