//! `clover regime`: environments in which a calibrator failed, and how rewards may be used in them.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::FitArgs;
use crate::cli::key;
use crate::cli::submit;
use crate::event::payload::environment::EnvironmentRegime;
use crate::session::SessionError;
use crate::session::regimes;
use crate::session::regimes::RegimeChoice;
use crate::view::View;
use crate::view::regime;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Environments that were tested, their regimes, and the regime that the order of CLOVER proposes
    #[command(after_help = "Example:\n  clover regime list")]
    List(RegimeScope),
    /// Select a regime for an environment that failed
    #[command(
        after_help = "1: nothing is claimed of it from rewards. 2: a calibrator that was fitted on its labels alone, at\n\
                      least 200 (clover estimate --environment FAMILY=NAME fits it). 3: one calibrator everywhere,\n\
                      once a later test passed. A level stays withheld until an audit of its own passes.\n\n\
                      Example:\n  clover regime select domain=law --regime 2 --reason 'no patch is in sight'"
    )]
    Select(RegimeSelectArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct RegimeScope {
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Whose scores [default: the only judge that scored, else judge]
    #[arg(long, value_name = "ID")]
    pub judge: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RegimeSelectArgs {
    /// The environment
    #[arg(value_name = "FAMILY=NAME")]
    pub environment: String,
    /// 1, 2 or 3
    #[arg(long, value_name = "N", value_parser = regime)]
    pub regime: EnvironmentRegime,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The local calibrator of regime 2 [else the newest of the environment]
    #[arg(long, value_name = "SEQ|ID|DIGEST")]
    pub calibrator: Option<String>,
    #[command(flatten)]
    pub of: RegimeScope,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn regime(text: &str) -> Result<EnvironmentRegime, String> {
    let all = [
        EnvironmentRegime::LabelsAlone,
        EnvironmentRegime::Local,
        EnvironmentRegime::Global,
    ];
    let found = all.into_iter().find(|regime| regime.as_str() == text);
    found.ok_or_else(|| "expected 1, 2 or 3".to_owned())
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::List(of) => {
            let mut read = estimate::open(ctx, &fit(of, true))?;
            let found = regimes::proposals(&mut read, ctx.as_of)?;
            Ok(regime::list(&found))
        }
        Verb::Select(args) => select(ctx, args),
    }
}

fn fit(of: &RegimeScope, dry_run: bool) -> FitArgs {
    FitArgs {
        experiment: of.experiment.clone(),
        judge: of.judge.clone(),
        covariate: Vec::new(),
        environment: None,
        mode: "auto".to_owned(),
        scale: None,
        dry_run,
    }
}

fn select(ctx: &mut Ctx<'_>, args: &RegimeSelectArgs) -> Result<View, CliError> {
    let mut read = estimate::open(ctx, &fit(&args.of, args.dry_run))?;
    let scope = regimes::scope(read.ledger.state(), &read.experiment, &args.environment);
    let choice = RegimeChoice {
        scope: scope.map_err(SessionError::from)?,
        regime: args.regime,
        reason: key::text("reason", &args.reason)?,
        calibrator: args.calibrator.clone(),
    };
    let intent = submit::intent(args.dry_run);
    let submission = regimes::select(&mut ctx.ports(), &mut read, choice, intent)?;
    let mut view = submit::shown(ctx, &read.ledger, &submission);
    view.next = vec!["clover regime list".to_owned()];
    Ok(view)
}
