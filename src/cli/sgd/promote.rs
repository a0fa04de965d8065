//! `clover sgd promote`: the plan of a run's gate, then the gate itself, then the promotion.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::iterate::program::Program;
use crate::cli::sgd::bench;
use crate::cli::sgd::judge;
use crate::cli::sgd::run_id;
use crate::event::id::FamilyId;
use crate::event::id::ManifestId;
use crate::event::payload::decision::Outcome;
use crate::export::file_name;
use crate::ground::ambient;
use crate::ground::ambient::AmbientError;
use crate::ground::shell;
use crate::model::dialect;
use crate::num::Micro;
use crate::projection::manifests::Manifests;
use crate::session::SessionError;
use crate::session::sgd::SgdBench;
use crate::session::sgd::ahead;
use crate::session::sgd::found;
use crate::session::sgd::promote;
use crate::session::sgd::promote::PromotionDue;
use crate::session::sgd::scoring;
use crate::view::View;
use crate::view::sgd::promotion as views;

const HELP: &str = "clover sgd promote --help";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SgdPromoteArgs {
    /// The run
    pub run: String,
    /// Where the plan of its gate is written; default RUN-gate.yaml
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The family whose error rate the gate spends; default one of its own
    #[arg(long, value_name = "ID")]
    pub family: Option<String>,
    /// Error rate of a family of its own
    #[arg(
        long,
        value_name = "A",
        default_value = "0.05",
        conflicts_with = "family"
    )]
    pub alpha: String,
    /// Say what scores of confirm cost at most; ask and record nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before confirm is scored
    #[arg(long)]
    pub yes: bool,
    /// The custodian's key; default the only one at hand
    #[arg(long, value_name = "KEY")]
    pub custodian: Option<String>,
    #[command(flatten)]
    pub judge_key: judge::JudgeKeyArgs,
    #[command(flatten)]
    pub program: Program,
}

/// What the gate still asks of the judge, and what that costs.
fn outlook(ctx: &mut Ctx<'_>, name: &str) -> Result<View, CliError> {
    let id = run_id(name)?;
    let (home, ledger) = home::open_to_read(ctx)?;
    let run = found(ledger.state(), &id).map_err(SessionError::from)?;
    promote::due(ledger.state(), run).map_err(SessionError::from)?;
    let cost = scoring::confirm_ahead_of((&home, &ledger), run, &dialect::wire)?;
    Ok(views::ahead(run, ahead::confirm_asks(run), cost.as_ref()))
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &SgdPromoteArgs) -> Result<View, CliError> {
    if args.dry_run {
        return outlook(ctx, &args.run);
    }
    let mut bench = bench(ctx, &args.run)?;
    judge::opened(ctx, &mut bench, (&args.judge_key, HELP))?;
    let run = bench.run().map_err(SessionError::from)?.clone();
    let due = promote::due(bench.ledger.state(), &run).map_err(SessionError::from)?;
    match due {
        PromotionDue::Plan => plan(ctx, args, &mut bench),
        PromotionDue::Countersignature(id) => {
            warn_of_plan(ctx, &bench, &id);
            Ok(views::unsigned(bench.ledger.state(), &run, &id))
        }
        PromotionDue::Decision(id) => {
            warn_of_plan(ctx, &bench, &id);
            decide(ctx, args, &mut bench, &id)
        }
        PromotionDue::Promotion(id, outcome) => promotion(ctx, &mut bench, &id, outcome),
    }
}

fn alpha(text: &str) -> Result<Micro, CliError> {
    let wrong = || {
        let message =
            format!("--alpha {text}: expected a number above 0 and below 1, such as 0.05");
        CliError::usage(message, HELP)
    };
    match Micro::parse(text) {
        Ok((alpha, false)) if (1..1_000_000).contains(&alpha.value()) => Ok(alpha),
        _ => Err(wrong()),
    }
}

/// Warns of an error rate with which a promotion says little.
fn warn_of(ctx: &mut Ctx<'_>, alpha: i64) {
    if let Some(words) = views::high_rate(alpha) {
        ctx.warn(words);
    }
}

/// The same of a plan that stands.
fn warn_of_plan(ctx: &mut Ctx<'_>, bench: &SgdBench, id: &ManifestId) {
    let record = bench.ledger.state().fold::<Manifests>().by_id.get(id);
    let newest = record.and_then(|record| record.versions.last());
    if let Some(alpha) = newest.and_then(|version| version.manifest.alpha()) {
        warn_of(ctx, alpha);
    }
}

fn plan(ctx: &mut Ctx<'_>, args: &SgdPromoteArgs, bench: &mut SgdBench) -> Result<View, CliError> {
    let family = args.family.as_deref().map(|id| {
        let found = id.parse::<FamilyId>();
        found.map_err(|error| CliError::usage(format!("--family {id:?}: {error}"), HELP))
    });
    let (family, alpha) = (family.transpose()?, alpha(&args.alpha)?);
    let default = || PathBuf::from(format!("{}-gate.yaml", file_name::encode(&args.run)));
    let file = args.plan.clone().unwrap_or_else(default);
    let run = bench.run().map_err(SessionError::from)?.clone();
    let path = ctx.path(&file);
    let prepared = promote::is_prepared(bench.ledger.state(), &run, family.as_ref());
    // A plan is written once its gate is prepared: a file that is there before is another's, and nothing is appended.
    if !prepared.map_err(SessionError::from)? && ambient::is_taken(&path) {
        return Err(AmbientError::Exists(path).into());
    }
    let ports = &mut ctx.ports();
    let plan = promote::plan(ports, &mut bench.ledger, &run, (family, alpha))?;
    warn_of(ctx, plan.share.alpha.value());
    let text = views::plan_text(&plan);
    // The same plan may be asked for again; one that a person changed is not overwritten.
    let stands = ctx.read(&file).is_ok_and(|bytes| bytes == text.as_bytes());
    if !stands {
        ambient::write_new(&path, text.as_bytes(), 0o644)?;
    }
    Ok(views::drafted(bench.ledger.state(), &run, &plan, &file))
}

fn decide(
    ctx: &mut Ctx<'_>,
    args: &SgdPromoteArgs,
    bench: &mut SgdBench,
    id: &ManifestId,
) -> Result<View, CliError> {
    let run = bench.run().map_err(SessionError::from)?.clone();
    promote::check_plan(bench.ledger.state(), &run, id).map_err(SessionError::from)?;
    if run.confirm.is_empty() {
        let place = (&bench.home, &bench.ledger);
        let cost = scoring::confirm_ahead_of(place, &run, &dialect::wire)?;
        let question = views::question(&run, ahead::confirm_asks(&run), cost.as_ref());
        let mut again = format!("clover sgd promote {}", shell::word(&args.run));
        if !args.program.command.is_empty() {
            let words: Vec<_> = args.program.command.iter().map(shell::word).collect();
            again += &format!(" -- {}", words.join(" "));
        }
        ctx.confirm(&question, args.yes, &again)?;
    }
    // Whoever agreed to the scores was told what they cost.
    let is_agreed = args.yes || run.confirm.is_empty();
    let ports = &mut ctx
        .ports()
        .with_consent(is_agreed, "the same command with")
        .with_program(&args.program)
        .with_custodian(args.custodian.as_ref())
        .with_interrupts()?;
    let Some(end) = promote::decide(bench, ports, id)? else {
        return Ok(views::cut(bench.ledger.state(), &run, id));
    };
    promotion(ctx, bench, id, end.outcome)
}

fn promotion(
    ctx: &mut Ctx<'_>,
    bench: &mut SgdBench,
    id: &ManifestId,
    outcome: Outcome,
) -> Result<View, CliError> {
    let run = bench.run().map_err(SessionError::from)?.clone();
    if outcome != Outcome::Promote {
        return Ok(views::held(bench.ledger.state(), &run, id));
    }
    let ports = &mut ctx.ports();
    let step = promote::promote(ports, &bench.ledger, &run, (id, &[]))?;
    promote::issued(ports, &mut bench.ledger, &step)?;
    Ok(views::promoted(bench.ledger.state(), &run, id, &step.terms))
}
