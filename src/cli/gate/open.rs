//! `clover gate open`: units, order and opening, each where it does not stand yet.

use clover_ledger::Code;
use std::path::Path;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::GateOpenArgs;
use crate::cli::gate::RootArgs;
use crate::cli::gate::gate_id;
use crate::cli::home;
use crate::cli::submit;
use crate::event::Kind;
use crate::event::id::ItemId;
use crate::event::id::MetricId;
use crate::event::id::StratumId;
use crate::event::payload::gate::GateSource;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::STRATA_MAX;
use crate::session::gate::GateSetup;
use crate::session::gate::open::UnitFile;
use crate::session::gate::outcomes::OutcomeFile;
use crate::view::View;
use crate::view::gate;
use crate::workflow::gates::steps::Confirm;

const HELP: &str = "clover gate open --help";

pub(super) fn run(ctx: &mut Ctx<'_>, args: &GateOpenArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let units = units(ctx, &args.units)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let n = units.confirm.units.len();
    let setup = GateSetup::of(ledger.state(), &id, &units)?;
    let sources = sources(args, setup.manifest())?;
    if let Some(file) = &args.from {
        let bytes = ctx.read(file)?;
        let from = OutcomeFile::read(file.display().to_string(), &bytes)?;
        let without = setup.check_outcomes(&sources, &from)?;
        if let Some(first) = without.first() {
            ctx.warn(format!(
                "{}: {} of {n} units have no outcome of the main metric, first {first}",
                from.file,
                without.len()
            ));
        }
    }
    let ports = &mut ctx.ports().with_custodian(args.custodian.as_ref());
    if args.dry_run {
        let rehearsed = setup.rehearse(ports, &ledger, sources)?;
        return Ok(submit::story(ctx, &rehearsed));
    }
    let opening = setup.open(ports, &mut ledger, sources)?;
    let answer = submit::answer_of(&ledger, Kind::GateOpened, &opening.appended);
    Ok(gate::open::opened(answer, &id, &opening, n))
}

pub(super) fn root(ctx: &mut Ctx<'_>, args: &RootArgs) -> Result<View, CliError> {
    Ok(gate::open::root(&units(ctx, &args.units)?.confirm))
}

/// Units, ascending: a name on each line, or a name, a tab and a stratum on each.
pub(super) fn units(ctx: &mut Ctx<'_>, file: &Path) -> Result<UnitFile, CliError> {
    let shown = file.display().to_string();
    let bytes = ctx.read(file)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::input(format!("{shown}: not UTF-8"), HELP))?;
    // The mark with which some editors begin a file is no part of a name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut units: Vec<(ItemId, u64, Option<StratumId>)> = Vec::new();
    for (at, line) in (1_u64..).zip(text.lines()) {
        let wrong =
            |what: String| CliError::input(format!("{shown}: line {at}: unit: {what}"), HELP);
        let (unit, stratum) = match line.split_once('\t') {
            Some((unit, stratum)) => (unit, Some(stratum)),
            None => (line, None),
        };
        // A blank that nobody sees makes another unit, which has no scores.
        for (what, name) in [("unit", Some(unit)), ("stratum", stratum)] {
            if name.is_some_and(|name| name.trim() != name) {
                let message = format!(
                    "{shown}: line {at}: {what}: expected no blanks around it, found {:?}",
                    name.unwrap_or_default()
                );
                return Err(CliError::input(message, HELP));
            }
        }
        let unit = unit.parse().map_err(|error| wrong(format!("{error}")))?;
        let stratum = stratum.map(str::parse).transpose();
        let stratum = stratum.map_err(|error| {
            let message = format!("{shown}: line {at}: stratum, after the tab: {error}");
            CliError::input(message, HELP)
        })?;
        if units
            .first()
            .is_some_and(|(_, _, first)| first.is_some() != stratum.is_some())
        {
            let found = if stratum.is_some() { "one" } else { "none" };
            let message = format!(
                "{shown}: line {at}: expected a stratum after a tab on every line or on none, found {found}"
            );
            return Err(CliError::input(message, HELP));
        }
        units.push((unit, at, stratum));
    }
    units.sort();
    let mut pairs = units.iter().zip(units.iter().skip(1));
    if let Some(((twice, first, _), (_, again, _))) = pairs.find(|((a, ..), (b, ..))| a == b) {
        let message = Code::DuplicateUnit.of(format_args!(
            "{shown}: line {again}: unit {twice} stands on line {first} too"
        ));
        return Err(CliError::input(message, HELP));
    }
    if units.is_empty() {
        return Err(CliError::input(format!("{shown}: no units"), HELP));
    }
    let (units, strata): (_, Vec<_>) = units
        .into_iter()
        .map(|(unit, _, stratum)| (unit, stratum))
        .unzip();
    let strata: Option<Vec<_>> = strata.into_iter().collect();
    let confirm = Confirm { strata, units };
    let strata = confirm.counts().len();
    if strata > STRATA_MAX {
        let message = format!("{shown}: {strata} strata, expected at most {STRATA_MAX}");
        return Err(CliError::input(message, HELP));
    }
    Ok(UnitFile {
        file: shown,
        confirm,
    })
}

fn sources(args: &GateOpenArgs, manifest: &Manifest) -> Result<Vec<GateSource>, CliError> {
    let Some(metric) = &manifest.metric else {
        return Ok(Vec::new());
    };
    let guardrails = metric.guardrails.iter().flatten().map(|one| &one.metric);
    let names = std::iter::once(&metric.metric).chain(guardrails);
    for (option, words) in [("--judge", &args.judge), ("--design", &args.design)] {
        let metrics = words.iter().map(|word| {
            let named = word.split_once('=').map(|(metric, _)| metric);
            named.unwrap_or(metric.metric.as_str())
        });
        let metrics: Vec<&str> = metrics.collect();
        let known = |of: &str| names.clone().any(|name| name.as_str() == of);
        if let Some(other) = metrics.iter().find(|of| !known(of)) {
            let message = format!("{option} {other}=…: the manifest has no metric {other}");
            return Err(CliError::usage(message, HELP));
        }
        let mut at = metrics.iter().enumerate();
        if let Some((_, twice)) = at.find(|(at, of)| metrics[..*at].contains(of)) {
            let message = format!("{option}: metric {twice} is named twice");
            return Err(CliError::usage(message, HELP));
        }
    }
    names
        .map(|name| source(args, &metric.metric, name))
        .collect()
}

/// Where the values of a metric come from; a word without `=` is the main metric's.
fn source(args: &GateOpenArgs, main: &MetricId, name: &MetricId) -> Result<GateSource, CliError> {
    let of = |words: &[String]| -> Option<String> {
        let mut words = words.iter().map(|word| match word.split_once('=') {
            Some((metric, value)) => (metric.to_owned(), value.to_owned()),
            None => (main.to_string(), word.clone()),
        });
        words
            .find(|(metric, _)| metric == name.as_str())
            .map(|(_, value)| value)
    };
    let wrong = |what: String| CliError::usage(what, HELP);
    let (judge, design) = (of(&args.judge), of(&args.design));
    if judge.is_some() == design.is_some() {
        let message =
            format!("metric {name}: --judge {name}=JUDGE or --design {name}=DESIGN, one of them");
        return Err(wrong(message));
    }
    let judge = judge.map(|judge| judge.parse()).transpose();
    let design = design.map(|design| design.parse()).transpose();
    Ok(GateSource {
        design: design.map_err(|error| wrong(format!("--design: {error}")))?,
        judge: judge.map_err(|error| wrong(format!("--judge: {error}")))?,
        metric: name.clone(),
    })
}
