//! `clover use EXPERIMENT`: the experiment that commands are about where none is named; and the judge.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::ground::shell;
use crate::ledger::State;
use crate::projection::audits::probes::Probes;
use crate::projection::experiments::Experiments;
use crate::session::Home;
use crate::session::sgd::promote;
use crate::view::View;
use crate::view::experiment;
use crate::view::experiment::Source;

/// The variable that names the experiment of a shell.
pub(super) const VARIABLE: &str = "CLOVER_EXPERIMENT";

/// What its help shows after the options.
pub(super) const EXAMPLE: &str = "CLOVER_EXPERIMENT of a shell wins over it, and --experiment of a command over both.\n\nExample:\n  clover use arena";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment; without it, show which one it is
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    /// Name none for this ledger any more
    #[arg(long, conflicts_with = "experiment")]
    pub clear: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (home, ledger) = home::open_to_read(ctx)?;
    let state = ledger.state();
    if args.clear {
        home.forget_experiment()?;
    }
    if let Some(text) = &args.experiment {
        let id = record::experiment_id(text)?;
        check(state, &id, "the command")?;
        home.remember_experiment(&id)?;
    }
    let found = named(ctx, &home)?;
    let shadowed = found
        .as_ref()
        .is_some_and(|(_, source)| *source == Source::Variable);
    if shadowed && (args.clear || args.experiment.is_some()) {
        ctx.warn(format!("{VARIABLE} is set in this shell and wins"));
    }
    let found = match found {
        Some((text, source)) => {
            let id = record::experiment_id(&text).map_err(|error| error.with_next(UNSET))?;
            Some((id, source))
        }
        None => only(state).ok().map(|id| (id, Source::OnlyOne)),
    };
    Ok(experiment::current(state, found))
}

const UNSET: &str = "clover use --clear";

/// The experiment that a command is about: the one that it names, that the shell names, that `clover use` named, or
/// the only one that is open.
pub(super) fn experiment(
    ctx: &mut Ctx<'_>,
    home: &Home,
    state: &State,
    option: Option<&str>,
) -> Result<ExperimentId, CliError> {
    if let Some(text) = option {
        return record::experiment_id(text);
    }
    let Some((text, source)) = named(ctx, home)? else {
        return only(state);
    };
    let place = match source {
        Source::Variable => VARIABLE,
        Source::Folder | Source::OnlyOne => "clover use",
    };
    let id = record::experiment_id(&text).map_err(|error| error.with_next(UNSET))?;
    check(state, &id, place)?;
    if open(state).nth(1).is_some() {
        ctx.note(&format!("experiment {id}, by {place}"));
    }
    Ok(id)
}

/// What the shell or the ledger's folder names.
fn named(ctx: &Ctx<'_>, home: &Home) -> Result<Option<(String, Source)>, CliError> {
    let variable = ctx.variable(VARIABLE).filter(|text| !text.is_empty());
    if let Some(text) = variable {
        return Ok(Some((text.to_owned(), Source::Variable)));
    }
    let remembered = home.remembered_experiment()?;
    Ok(remembered.map(|text| (text, Source::Folder)))
}

fn open(state: &State) -> impl Iterator<Item = &ExperimentId> {
    let all = state.fold::<Experiments>().by_id.iter();
    all.filter(|(_, of)| of.closed_seq.is_none())
        .map(|(id, _)| id)
}

/// The only experiment that is open.
fn only(state: &State) -> Result<ExperimentId, CliError> {
    let all: Vec<_> = open(state)
        .filter(|id| !promote::is_of_gate(state, id))
        .collect();
    match all.as_slice() {
        [id] => Ok((*id).clone()),
        [] => Err(CliError::not_found(
            "no open experiment",
            "clover experiment register ID --title TITLE --purpose PURPOSE",
        )),
        [first, ..] => {
            let message = format!("several experiments are open: {}", list(&all));
            let first = shell::word(first);
            Err(CliError::usage(
                message,
                format!("clover use {first}, or the same command with --experiment {first}"),
            ))
        }
    }
}

fn list(all: &[&ExperimentId]) -> String {
    let names: Vec<_> = all.iter().map(|id| id.as_str()).collect();
    names.join(", ")
}

/// Refuses an experiment that is not there; `place` says where it was named. A closed one can still be read.
pub(super) fn check(state: &State, id: &ExperimentId, place: &str) -> Result<(), CliError> {
    if state.fold::<Experiments>().by_id.contains_key(id) {
        return Ok(());
    }
    let all: Vec<_> = open(state).collect();
    let those = if all.is_empty() {
        "none is open".to_owned()
    } else {
        format!("open: {}", list(&all))
    };
    let message = format!("{place} names {id}: no such experiment; {those}");
    Err(CliError::not_found(message, "clover experiment list"))
}

/// The judge of imported scores where nobody names one.
pub(super) const USUAL_JUDGE: &str = "judge";

/// The judge whose scores are read where nobody names one: the only one that scored rows of the experiment, else the usual.
pub(super) fn only_judge(
    state: &State,
    experiment: &ExperimentId,
) -> Result<Option<JudgeId>, CliError> {
    let probes = state.fold::<Probes>().by_experiment.get(experiment);
    let scored = probes.into_iter().flat_map(|of| of.scores.values());
    let judges: BTreeSet<&JudgeId> = scored.flat_map(BTreeMap::keys).collect();
    let is_usual = |judge: &&&JudgeId| judge.as_str() == USUAL_JUDGE;
    match judges.len() {
        0 => Ok(None),
        1 => Ok(judges.first().map(|judge| (*judge).clone())),
        _ if judges.iter().any(|judge| is_usual(&judge)) => Ok(None),
        _ => {
            let names: Vec<_> = judges.iter().map(|judge| judge.as_str()).collect();
            let message = format!(
                "{experiment} has scores of several judges: {}",
                names.join(", ")
            );
            Err(CliError::usage(message, "the same command with --judge ID"))
        }
    }
}
