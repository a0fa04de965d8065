//! `clover gate observe`, `look`, `decide` and `continue`.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::gate::ObserveArgs;
use crate::cli::gate::OneArgs;
use crate::cli::gate::gate_id;
use crate::cli::gate::outcome_of;
use crate::cli::gate::refusals;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::ManifestId;
use crate::event::payload::decision::Outcome;
use crate::ledger::Ledger;
use crate::num::Finite;
use crate::projection::gates::Gate;
use crate::projection::gates::Look;
use crate::session::gate;
use crate::session::gate::Observer;
use crate::session::gate::check;
use crate::session::gate::check::known;
use crate::session::gate::observe::Extent;
use crate::session::gate::observe::Observations;
use crate::session::gate::outcomes::OutcomeFile;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::gates::observe::Stop;

/// Where a gate has guardrails: what each part of the least says, by name.
pub(super) fn weakest(gate: &Gate, look: &Look) -> String {
    if look.guardrails.is_empty() {
        return String::new();
    }
    let claim = gate
        .sources
        .first()
        .map(|source| &source.metric)
        .into_iter();
    let claim = claim.zip(look.log_wealth.claim.map(Finite::value));
    let names = gate.sources.iter().skip(1).map(|source| &source.metric);
    let guardrails = look.guardrails.iter().map(|log_e| log_e.value());
    let parts = claim.chain(names.zip(guardrails));
    let parts = parts.map(|(name, log_e)| format!("{name} {log_e:.4}"));
    let parts: Vec<_> = parts.collect();
    format!(", the least of {}", parts.join(", "))
}

/// What the last look found, in words and numbers.
pub(super) fn looked(answer: &mut View, gate: &Gate, look: &Look) {
    let (word, exit) = outcome_of(gate);
    answer.source(ui::pairs(&[
        ("units", look.n.to_string()),
        (
            "log e-value",
            format!("{:.4}{}", look.log_e.value(), weakest(gate, look)),
        ),
        ("p, always valid", format!("{:.6}", look.p.value())),
        ("mean effect", effect(look.cs_lo, look.cs_hi)),
        ("standing", check::meaning(look.standing).to_owned()),
        ("outcome", word.to_owned()),
    ]));
    answer.exit = exit;
    answer.verdict = word;
    answer.facts_mut()["look"] = json!(look);
    answer.facts_mut()["outcome"] = word.into();
}

/// An interval in millionths as decimal numbers.
pub(super) fn effect(lo: i64, hi: i64) -> String {
    if lo > hi {
        return "none fits all looks".to_owned();
    }
    let real = |micro: i64| micro as f64 / 1e6;
    format!("{:+.6} to {:+.6}", real(lo), real(hi))
}

pub(super) fn observe(ctx: &mut Ctx<'_>, args: &ObserveArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    if !args.all && args.through.is_none() {
        let message = "how many units: --all, or --through N";
        return Err(CliError::usage(message, "clover gate observe --help"));
    }
    let extent = Extent {
        missing: args.missing,
        through: args.through,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let observer = Observer::of(&ledger, &id)?;
    let from = args.from.as_deref().map(|file| {
        let bytes = ctx.read(file)?;
        Ok::<_, CliError>(OutcomeFile::read(file.display().to_string(), &bytes)?)
    });
    let from = from.transpose()?;
    let ports = &mut ctx.ports().with_scorer(args.scorer.as_ref());
    if args.dry_run {
        let rehearsed = observer.rehearse(ports, &ledger, (extent, from.as_ref()))?;
        return Ok(match from {
            Some(_) => submit::judged(ctx, &rehearsed),
            None => submit::story(ctx, &rehearsed),
        });
    }
    let found = observer.observe(ports, &mut ledger, (extent, from.as_ref()))?;
    observations(&ledger, &id, &found, from.is_some())
}

/// What was observed, and of outcomes of a file what was recorded before.
fn observations(
    ledger: &Ledger,
    id: &ManifestId,
    found: &Observations,
    is_from_file: bool,
) -> Result<View, CliError> {
    let (observed, recorded) = (found.observed, found.recorded);
    let mut answer = View::untyped("", json!({"gate": id.as_str()}));
    answer.verdict = if observed > 0 { "appended" } else { "done" };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    let gate = known(ledger.state(), id)?.gate;
    if is_from_file {
        answer.line(format!("{recorded} scores recorded"));
        answer.facts_mut()["recorded"] = recorded.into();
    }
    answer.line(format!("{observed} units observed, {} in all", gate.n));
    answer.facts_mut()["observed"] = observed.into();
    answer.facts_mut()["n"] = gate.n.into();
    answer.facts_mut()["per_second"] = found.per_second().into();
    Ok(stands(answer, (id, gate), &found.stop))
}

/// Adds to an answer about new observations why there are no more, how the gate stands, and what to do next.
fn stands(mut answer: View, (id, gate): (&ManifestId, &Gate), stop: &Stop) -> View {
    if let Stop::Missing(unit) = stop {
        answer.line(format!(
            "unit {unit} has not all its scores yet: record them, then observe on"
        ));
        answer.line("  with --missing each draw without one counts as the worst for the candidate, for good");
        answer.facts_mut()["missing"] = unit.as_str().into();
    }
    if let Stop::Unfit(unit, why) = stop {
        answer.source(ui::wrapped(&ui::escape(&format!(
            "unit {unit} cannot be observed: {why}"
        ))));
        answer.facts_mut()["unfit"] = json!({"unit": unit, "why": why});
    }
    let on = refusals::observe(id);
    let ended = gate.is_terminal();
    let next = match &gate.look {
        // What was decided counts, also where nothing is left to observe.
        _ if gate.decided.is_some() => {
            (answer.verdict, answer.exit) = outcome_of(gate);
            refusals::of("gate show", id)
        }
        Some(look) if look.n == gate.n && !ended && matches!(stop, Stop::Missing(_)) => {
            looked(&mut answer, gate, look);
            on
        }
        None if gate.n == 0 => {
            (answer.verdict, answer.exit) = outcome_of(gate);
            on
        }
        Some(look) if look.n == gate.n => {
            looked(&mut answer, gate, look);
            refusals::of("gate decide", id)
        }
        _ => {
            // Units wait for a look: nothing is decided that one may ship by.
            (answer.verdict, answer.exit) = ("need_more_work", Exit::Inconclusive);
            refusals::of("gate look", id)
        }
    };
    answer.with_next(next)
}

pub(super) fn look(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::look(&mut ctx.ports(), &ledger, &id)?;
    let mut answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    if let Some(look) = &gate.look {
        looked(&mut answer, gate, look);
    }
    let verb = if gate.is_terminal() {
        "gate decide"
    } else {
        "gate show"
    };
    Ok(answer.with_next(refusals::of(verb, &id)))
}

pub(super) fn decide(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::decide(&mut ctx.ports(), &ledger, &id)?;
    let mut answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    if let Some(look) = &gate.look {
        looked(&mut answer, gate, look);
    }
    let ends = submission.terms.outcome;
    if matches!(ends, Outcome::Superseded | Outcome::Void) {
        (answer.verdict, answer.exit) = ("hold", Exit::Inconclusive);
    }
    answer.line(format!("decided: {ends:?}"));
    Ok(answer.with_next(refusals::of("gate show", &id)))
}

pub(super) fn proceed(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<View, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let submission = gate::proceed(&mut ctx.ports(), &ledger, &id)?;
    let answer = submit::gate_step(ctx, &mut ledger, &submission, args.dry_run)?;
    Ok(answer.with_next(refusals::of("exposure open", &id)))
}
