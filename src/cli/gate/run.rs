//! `clover gate observe`, `look`, `decide` and `continue`.

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::gate::ObserveArgs;
use crate::cli::gate::OneArgs;
use crate::cli::gate::gate_id;
use crate::cli::gate::known;
use crate::cli::gate::not_stale;
use crate::cli::gate::not_waiting;
use crate::cli::gate::outcome_of;
use crate::cli::gate::outcomes;
use crate::cli::gate::words;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::ui::Progress;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ManifestId;
use crate::event::payload::decision::Outcome;
use crate::ground::ambient::Stopwatch;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Finite;
use crate::projection::gates;
use crate::projection::gates::Gate;
use crate::projection::gates::Look;
use crate::projection::manifests::Manifests;
use crate::workflow::gates::design::Untestable;
use crate::workflow::gates::evidence::Known;
use crate::workflow::gates::hold;
use crate::workflow::gates::hold::Unheld;
use crate::workflow::gates::observe;
use crate::workflow::gates::observe::Ask;
use crate::workflow::gates::observe::Course;
use crate::workflow::gates::observe::Next;
use crate::workflow::gates::observe::ObserveError;
use crate::workflow::gates::observe::Stop;
use crate::workflow::gates::replay;
use crate::workflow::gates::replay::Life;
use crate::workflow::gates::replay::Order;
use crate::workflow::gates::steps;

fn untestable(id: &ManifestId, wrong: &Untestable) -> CliError {
    let message = format!(
        "gate {id}: expected {}, found {}",
        wrong.expected, wrong.found
    );
    CliError::refused(
        message,
        format!("clover gate show {id}", id = shell::word(&id)),
    )
}

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
pub(super) fn looked(answer: &mut Answer, gate: &Gate, look: &Look) {
    let (word, exit) = outcome_of(gate);
    answer.text.push_str(&ui::pairs(&[
        ("units", look.n.to_string()),
        (
            "log e-value",
            format!("{:.4}{}", look.log_e.value(), weakest(gate, look)),
        ),
        ("p, always valid", format!("{:.6}", look.p.value())),
        ("mean effect", effect(look.cs_lo, look.cs_hi)),
        ("standing", words(look.standing).to_owned()),
        ("outcome", word.to_owned()),
    ]));
    answer.exit = exit;
    answer.verdict = word;
    answer.data["look"] = json!(look);
    answer.data["outcome"] = word.into();
}

/// An interval in millionths as decimal numbers.
pub(super) fn effect(lo: i64, hi: i64) -> String {
    if lo > hi {
        return "none fits all looks".to_owned();
    }
    let real = |micro: i64| micro as f64 / 1e6;
    format!("{:+.6} to {:+.6}", real(lo), real(hi))
}

pub(super) fn observe(ctx: &mut Ctx<'_>, args: &ObserveArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let through = match (args.all, args.through) {
        (true, _) => u64::MAX,
        (false, Some(through)) => through,
        (false, None) => {
            let message = "how many units: --all, or --through N";
            return Err(CliError::usage(message, "clover gate observe --help"));
        }
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let order = order_of(&ledger, &id)?;
    not_stale(ledger.state(), &id)?;
    not_waiting(ledger.state(), &id)?;
    let from = args.from.as_deref().map(|file| {
        let file = (file, args.scorer.as_ref());
        outcomes::read(ctx, &ledger, &id, &order.units, file)
    });
    let from = from.transpose()?;
    let is_replayed = args.dry_run || from.is_some();
    if is_replayed {
        replayed(&ledger, &id)?;
    }
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateObserved)?;
    if args.dry_run {
        let ask = (&order, args.missing, through);
        return match from {
            Some(scores) => scores.show(ctx, &mut ledger),
            None => rehearse(ctx, &ledger, (&id, &signer), ask),
        };
    }
    let recorded = from.map_or(Ok(0), |scores| scores.record(&mut ledger))?;
    let since = Stopwatch::start();
    let ask = Ask {
        listed: &order.listed,
        missing: args.missing,
        order: &order.units,
        part: observe::PART,
        strata: &order.strata,
        through,
    };
    let mut progress = ctx.progress("units observed");
    let (stop, observed) = advance(
        &mut ledger,
        &id,
        (&signer, &mut progress),
        (ask, is_replayed),
    )?;
    drop(progress);
    ledger.settle()?;
    submit::warn_of_pin(ctx, &ledger);
    let seconds = since.seconds();
    let mut answer = Answer::new("", json!({"gate": id.as_str()}));
    answer.verdict = if observed > 0 { "appended" } else { "done" };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    let gate = known(ledger.state(), &id)?.gate;
    if args.from.is_some() {
        answer.line(&format!("{recorded} scores recorded"));
        answer.data["recorded"] = recorded.into();
    }
    answer.line(&format!("{observed} units observed, {} in all", gate.n));
    answer.data["observed"] = observed.into();
    answer.data["n"] = gate.n.into();
    answer.data["per_second"] = (observed as f64 / seconds.max(1e-9)).round().into();
    if let (Stop::Unfit(unit, why), 0) = (&stop, observed) {
        let message = format!("gate {id}: unit {unit} cannot be observed: {why}");
        let next = format!("clover gate show {}", shell::word(&id));
        return Err(CliError::refused(message, next));
    }
    Ok(stands(answer, (&id, gate), &stop))
}

/// Adds to an answer about new observations why there are no more, how the gate stands, and what to do next.
fn stands(mut answer: Answer, (id, gate): (&ManifestId, &Gate), stop: &Stop) -> Answer {
    if let Stop::Missing(unit) = stop {
        answer.line(&format!(
            "unit {unit} has not all its scores yet: record them, then observe on"
        ));
        answer.line("  with --missing each draw without one counts as the worst for the candidate, for good");
        answer.data["missing"] = unit.as_str().into();
    }
    if let Stop::Unfit(unit, why) = stop {
        answer.text.push_str(&ui::wrapped(&ui::escape(&format!(
            "unit {unit} cannot be observed: {why}"
        ))));
        answer.data["unfit"] = json!({"unit": unit, "why": why});
    }
    let on = format!("clover gate observe {id} --all", id = shell::word(&id));
    let ended = gate.is_terminal();
    let next = match &gate.look {
        // What was decided counts, also where nothing is left to observe.
        _ if gate.decided.is_some() => {
            (answer.verdict, answer.exit) = outcome_of(gate);
            format!("clover gate show {id}", id = shell::word(&id))
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
            format!("clover gate decide {id}", id = shell::word(&id))
        }
        _ => {
            // Units wait for a look: nothing is decided that one may ship by.
            (answer.verdict, answer.exit) = ("need_more_work", Exit::Inconclusive);
            format!("clover gate look {id}", id = shell::word(&id))
        }
    };
    answer.with_next(next)
}

/// Observes part by part, with a look where one is due; answers with why it ended and how many were observed. Before
/// anything is recorded, the gate is replayed unless it was: while the first values are read, where they are many.
fn advance(
    ledger: &mut Ledger,
    id: &ManifestId,
    (signer, progress): (&Signer, &mut Progress<'_>),
    (ask, mut is_replayed): (Ask<'_>, bool),
) -> Result<(Stop, u64), CliError> {
    let mut observed = 0_u64;
    loop {
        let gate = known(ledger.state(), id)?;
        let course = Course::new(gate, ask);
        let overlaps = course.as_ref().is_ok_and(Course::is_long);
        if !is_replayed && !overlaps {
            replayed(ledger, id)?;
        }
        let mut course = course.map_err(|wrong| untestable(id, &wrong))?;
        let mut run = Run {
            end: gate.record.units.min(ask.through),
            id,
            n: 0,
            progress: &mut *progress,
            signer,
            stop: Stop::Asked,
        };
        if overlaps {
            let reading = ledger.reading()?;
            observe::ahead(course, reading, |mut parts| {
                if !is_replayed {
                    replayed(ledger, id)?;
                }
                parts.try_for_each(|next| run.take(ledger, next))
            })?;
        } else {
            let next = course.next(ask.part, |since, keys| ledger.measured(since, keys));
            run.take(ledger, next)?;
        }
        is_replayed = true;
        observed += run.n;
        if run.stop == Stop::Look {
            record_look(ledger, signer, id)?;
        }
        let gate = known(ledger.state(), id)?.gate;
        let more = run.stop == Stop::Look && run.n > 0 && !gate.is_terminal();
        if !more || gate.n >= ask.through {
            return Ok((run.stop, observed));
        }
    }
}

/// Observations up to a look, as they are recorded.
struct Run<'a, 'w> {
    end: u64,
    id: &'a ManifestId,
    n: u64,
    progress: &'a mut Progress<'w>,
    signer: &'a Signer,
    stop: Stop,
}

impl Run<'_, '_> {
    fn take(
        &mut self,
        ledger: &mut Ledger,
        next: Result<Next, ObserveError>,
    ) -> Result<(), CliError> {
        let next = next.map_err(|error| unobserved(self.id, error))?;
        self.n += next.observed.len() as u64;
        self.stop = next.stop;
        if next.observed.is_empty() {
            return Ok(());
        }
        let record = ledger.state().fold::<Manifests>().by_id.get(self.id);
        let experiment = record.and_then(|record| record.experiment.clone());
        let command = |said| Command::new(said, experiment.clone());
        let commands: Vec<_> = next.observed.into_iter().map(command).collect();
        ledger.append_read(commands, self.signer, next.values)?;
        let done = known(ledger.state(), self.id)?.gate.n;
        self.progress.at(done, self.end);
        Ok(())
    }
}

fn unobserved(id: &ManifestId, error: ObserveError) -> CliError {
    match error {
        ObserveError::Ledger(error) => error.into(),
        ObserveError::Untestable(wrong) => untestable(id, &wrong),
    }
}

/// Prints the observations that would be appended, up to the first look.
fn rehearse(
    ctx: &mut Ctx<'_>,
    ledger: &Ledger,
    (id, signer): (&ManifestId, &Signer),
    (order, missing, through): (&Order, bool, u64),
) -> Result<Answer, CliError> {
    let gate = known(ledger.state(), id)?;
    let ask = Ask {
        listed: &order.listed,
        missing,
        order: &order.units,
        part: observe::PART,
        strata: &order.strata,
        through,
    };
    let mut course = Course::new(gate, ask).map_err(|wrong| untestable(id, &wrong))?;
    let next = course.next(ask.part, |since, keys| ledger.measured(since, keys));
    let next = next.map_err(|error| unobserved(id, error))?;
    let experiment = gate.gate.experiment.clone();
    let command = |said| Command::new(said, experiment.clone());
    let commands: Vec<_> = next.observed.into_iter().map(command).collect();
    submit::rehearse_story(ctx, ledger, &commands, signer)
}

fn order_of(ledger: &Ledger, id: &ManifestId) -> Result<Order, CliError> {
    let gate = known(ledger.state(), id)?;
    let bound = gate.record.bound();
    let Some(bound) = bound else {
        return Ok(Order::default());
    };
    let order = replay::order(ledger, bound, gate.gate.opened_seq)?;
    Ok(order)
}

fn record_look(ledger: &mut Ledger, signer: &Signer, id: &ManifestId) -> Result<(), CliError> {
    let gate = known(ledger.state(), id)?;
    let experiment = gate.gate.experiment.clone();
    let look = steps::look(gate).map_err(|wrong| untestable(id, &wrong))?;
    ledger.append(&[Command::new(look, experiment)], signer)?;
    Ok(())
}

/// The state that a snapshot gave must be that of the log; otherwise the ledger is opened without it.
fn replayed(ledger: &Ledger, id: &ManifestId) -> Result<Life, CliError> {
    let gate = known(ledger.state(), id)?;
    let life = replay::read(ledger, id, gate, ledger.size())?;
    match differs(gate, &life) {
        None => Ok(life),
        Some(what) => Err(unlike(id, &what)),
    }
}

/// What a snapshot says of a gate otherwise than the log.
pub(super) fn differs(of: Known<'_>, life: &Life) -> Option<String> {
    let (n, state) = (of.gate.n, of.gate.state_digest);
    if !life.is_plan {
        return Some("a plan or a family that the log does not register so".to_owned());
    }
    if life.gate.as_ref() == Some(of.gate) {
        return None;
    }
    let (logged, digest) = (life.observed.len(), life.state_digest);
    Some(if digest == state {
        format!("{n} units with state {state} as the log has, and else another gate")
    } else {
        format!("{n} units with state {state}, and the log {logged} with {digest}")
    })
}

pub(super) fn unlike(id: &ManifestId, what: &str) -> CliError {
    let message = format!("gate {id}: the snapshot has {what}");
    CliError::integrity("snapshot", message, "clover verify")
}

/// What a gate ends by must be in the log: every fold, the order, the strata and the values, each read from its entries.
fn held(ctx: &mut Ctx<'_>, ledger: &Ledger, id: &ManifestId, life: &Life) -> Result<(), CliError> {
    let size = ledger.size();
    let mut progress = ctx.progress("entries read again");
    ledger.check_state(|done| progress.at(done, 2 * size))?;
    let gate = known(ledger.state(), id)?;
    let told = |seq| progress.at(size + seq, 2 * size);
    let Some(unheld) = hold::hold(ledger, gate, life, told)? else {
        return Ok(());
    };
    let Unheld {
        expected,
        found,
        seq,
    } = unheld;
    let message =
        format!("gate {id}: the observation at seq {seq}: expected {expected}, found {found}");
    Err(CliError::integrity("observation", message, "clover verify"))
}

pub(super) fn look(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    replayed(&ledger, &id)?;
    not_stale(ledger.state(), &id)?;
    let gate = known(ledger.state(), &id)?;
    if gate.gate.is_terminal() {
        let message = format!("gate {id} has ended (E_AFTER_TERMINAL)");
        let next = format!("clover gate show {}", shell::word(&id));
        return Err(CliError::refused(message, next));
    }
    let experiment = gate.gate.experiment.clone();
    let look = steps::look(gate).map_err(|wrong| untestable(&id, &wrong))?;
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateLooked)?;
    let command = Command::new(look, experiment);
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    if let Some(look) = &gate.look {
        looked(&mut answer, gate, look);
    }
    let ended = known(ledger.state(), &id)?.gate.is_terminal();
    let verb = if ended { "decide" } else { "show" };
    Ok(answer.with_next(format!("clover gate {verb} {id}", id = shell::word(&id))))
}

pub(super) fn decide(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let life = replayed(&ledger, &id)?;
    let gate = known(ledger.state(), &id)?;
    let experiment = gate.gate.experiment.clone();
    let has_lapsed = gates::is_late(gate.record, ledger.ambient().now());
    let Some(decided) = steps::decide(gate, has_lapsed) else {
        let standing = gate.gate.look.as_ref().filter(|look| look.n == gate.gate.n);
        let message = match standing {
            Some(look) => format!("gate {id}: {}", words(look.standing)),
            None => format!("gate {id} has no look after its {} units", gate.gate.n),
        };
        let next = format!("clover gate look {id}", id = shell::word(&id));
        let (exit, word) = (Exit::Inconclusive, "need_more_work");
        return Err(CliError::new(exit, word, message, next));
    };
    held(ctx, &ledger, &id, &life)?;
    let ends = decided.outcome;
    if !matches!(ends, Outcome::Superseded | Outcome::Void) {
        not_stale(ledger.state(), &id)?;
    }
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateDecided)?;
    let command = Command::new(decided, experiment);
    let mut answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    if args.dry_run {
        return Ok(answer);
    }
    let gate = known(ledger.state(), &id)?.gate;
    if let Some(look) = &gate.look {
        looked(&mut answer, gate, look);
    }
    if matches!(ends, Outcome::Superseded | Outcome::Void) {
        (answer.verdict, answer.exit) = ("hold", Exit::Inconclusive);
    }
    answer.line(&format!("decided: {ends:?}"));
    Ok(answer.with_next(format!("clover gate show {id}", id = shell::word(&id))))
}

pub(super) fn proceed(ctx: &mut Ctx<'_>, args: &OneArgs) -> Result<Answer, CliError> {
    let id = gate_id(&args.id)?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let gate = known(ledger.state(), &id)?;
    let experiment = gate.gate.experiment.clone();
    let Some(continued) = steps::proceed(ledger.state(), gate) else {
        let message = format!("{id} names no gate that ended undecided in test.continuation_of");
        return Err(CliError::refused(
            message,
            format!("clover prereg show {id}", id = shell::word(&id)),
        ));
    };
    let signer = wallet::signer(ctx, ledger.state(), Kind::GateContinued)?;
    let command = Command::new(continued, experiment);
    let answer = submit::append(ctx, &mut ledger, &[command], &signer, args.dry_run)?;
    Ok(answer.with_next(format!("clover exposure open {id}", id = shell::word(&id))))
}
