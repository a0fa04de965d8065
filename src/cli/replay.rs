//! `clover replay`: what was decided, computed again from its recorded inputs, and compared.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::cassette;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::explained;
use crate::cli::home;
use crate::cli::record;
use crate::event::id::RunId;
use crate::ground::ambient;
use crate::ledger::Ledger;
use crate::ledger::read::LogEntry;
use crate::model::dialect;
use crate::projection::runs::ModelRuns;
use crate::projection::sgd::SgdRuns;
use crate::session::Home;
use crate::session::error::SessionError;
use crate::session::judge::JudgingError;
use crate::session::judge::run_replay;
use crate::session::judge::tape::RunBasis;
use crate::session::texts::Texts;
use crate::view::View;
use crate::view::replay;
use crate::view::replay::ReplayedEvent;
use crate::workflow::recompute;
use crate::workflow::recompute::Context;
use crate::workflow::recompute::Elsewhere;
use crate::workflow::recompute::RecomputeCache;
use crate::workflow::sgd::replay as descent;

/// What stands below its options.
pub(super) const HELP: &str = "What an arbiter said is computed again from the entries before it: the same to the bit by the same\n\
build, within 1e-9 by another. `clover schema` lists kind by kind who computes what again;\n\
schema/REPLAY.md says from what. Exit 0: all the same. 3: something differs. 12, NOT CHECKED:\n\
nothing differs, and something cannot be computed again, because an input was erased or is\n\
not here, or nobody recorded it. What a person decided counts for neither.\n\
A run, of a judge behind HTTP or of a judge's prompt: every event of it that follows from others.\n\n\
Example:\n  clover replay 4127 --explain\n  clover replay run-7 --cassette run-7.jsonl";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A position, an event id, or a run
    #[arg(value_name = "SEQ|ID|RUN", required_unless_present = "all")]
    pub event: Option<String>,
    /// What the run was asked and answered; without it, the vault says so
    #[arg(long, value_name = "FILE", requires = "event")]
    pub cassette: Option<PathBuf>,
    /// Everything that can be computed again
    #[arg(long, conflicts_with = "event")]
    pub all: bool,
    /// Show inputs, numbers, gates and verdict of each, and every number that differs
    #[arg(long)]
    pub explain: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    if let Some(run) = named_descent(&ledger, args) {
        return of_descent(&ledger, &run);
    }
    if let Some(run) = named_run(&ledger, args)? {
        return of_run(ctx, (&home, &ledger), &run, args.cassette.as_deref());
    }
    let one = match &args.event {
        Some(named) => Some(named_event(&ledger, named)?),
        None => None,
    };
    let mut texts = Texts::new(&home, &ledger)?;
    let mut shared = RecomputeCache::default();
    let mut context = Context::new(&ledger, &mut texts, &mut shared).over(&ledger);
    let mut replayed = Vec::new();
    let (reads, elsewhere) = match one {
        Some(read) => (vec![read], Vec::new()),
        None => decided(&ledger)?,
    };
    let mut progress = ctx.progress("decisions");
    for (done, read) in reads.iter().enumerate() {
        let kind = read.event.kind();
        let Some((outcome, again)) = context.replay(read.stored.seq, &read.event)? else {
            let why = recompute::elsewhere(kind).map_or_else(
                || format!("{kind} is taken as it was said: no other entries give it"),
                |of| format!("{kind} {}: rule {} of clover verify", of.why, of.rule),
            );
            return Err(CliError::usage(why, "clover replay --all"));
        };
        let again = again.filter(|_| args.explain);
        let page = again.map(|again| explained::explained(&ledger, again));
        replayed.push(ReplayedEvent {
            seq: read.stored.seq,
            kind,
            outcome,
            page: page.transpose()?,
        });
        progress.at(done as u64 + 1, reads.len() as u64);
    }
    drop(progress);
    Ok(replay::view(&replayed, &elsewhere, args.explain))
}

/// The run that is named, where one is: with a cassette nothing else can be.
fn named_run(ledger: &Ledger, args: &Args) -> Result<Option<RunId>, CliError> {
    let named = args.event.as_deref().unwrap_or_default();
    if args.cassette.is_some() {
        return cassette::run_id(named).map(Some);
    }
    let runs = ledger.state().fold::<ModelRuns>();
    let run = RunId::new(named).ok();
    Ok(run.filter(|run| runs.by_id.contains_key(run)))
}

/// The run of a judge's prompt that is named.
fn named_descent(ledger: &Ledger, args: &Args) -> Option<RunId> {
    let run = RunId::new(args.event.as_deref().unwrap_or_default()).ok()?;
    let runs = ledger.state().fold::<SgdRuns>();
    (args.cassette.is_none() && runs.by_id.contains_key(&run)).then_some(run)
}

/// Every event of a run of a judge's prompt that follows from those before it.
fn of_descent(ledger: &Ledger, run: &RunId) -> Result<View, CliError> {
    let replayed = descent::replayed((ledger, ledger.size()), run)?;
    let replayed = replayed.into_iter().map(|of| ReplayedEvent {
        seq: of.seq,
        kind: of.kind,
        outcome: of.outcome,
        page: None,
    });
    Ok(replay::view(&replayed.collect::<Vec<_>>(), &[], false))
}

/// Every event of a run of a judge behind HTTP.
fn of_run(
    ctx: &Ctx<'_>,
    (home, ledger): (&Home, &Ledger),
    run: &RunId,
    file: Option<&Path>,
) -> Result<View, CliError> {
    let basis = RunBasis::of(ledger, run)?;
    let reader = file
        .map(|file| ambient::reader(&ctx.path(file)))
        .transpose()?;
    let wire = dialect::wire(basis.dialect);
    let again = run_replay::replayed(home, ledger, &basis, wire, reader);
    let again = again.map_err(|error| match (error, file) {
        (SessionError::Judging(error), Some(file))
            if matches!(*error, JudgingError::Cassette(_)) =>
        {
            let message = format!("{}: {error}", file.display());
            CliError::input(message, "clover cassette export --help")
        }
        (error, _) => error.into(),
    })?;
    Ok(replay::run_view(run, &again))
}

fn named_event(ledger: &Ledger, named: &str) -> Result<LogEntry, CliError> {
    let seq = match named.parse::<u64>() {
        Ok(seq) => Some(seq),
        Err(_) => ledger.find(record::event_id(named)?)?,
    };
    let read = match seq {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    read.ok_or_else(|| CliError::not_found(format!("no event {named}"), "clover log"))
}

/// Kinds without a recipe, with how many events of each there are.
type Others = Vec<(Elsewhere, u64)>;

/// Every event with a recipe, and what an arbiter said that has none.
fn decided(ledger: &Ledger) -> Result<(Vec<LogEntry>, Others), CliError> {
    let (mut reads, mut others) = (Vec::new(), Others::new());
    ledger.entries::<CliError>(0, ledger.size(), |read| {
        let kind = read.event.kind();
        if recompute::recipe(kind).is_some() {
            reads.push(read);
        } else if let Some(of) = recompute::elsewhere(kind) {
            match others.iter_mut().find(|(known, _)| known.kind == kind) {
                Some((_, count)) => *count += 1,
                None => others.push((of, 1)),
            }
        }
        Ok(())
    })?;
    Ok((reads, others))
}
