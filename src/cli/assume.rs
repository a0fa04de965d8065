//! `clover assume`: what every claim rests on, with what is known of it, and waivers by two keys.
//!
//! Age, staleness and expiry are by ledger time, so that the same answer is given of an earlier entry.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::log;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui;
use crate::event::id::ExperimentId;
use crate::event::payload::assumption::Assumption;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::Ledger;
use crate::ledger::State;
use crate::projection::assumptions;
use crate::projection::assumptions::Standing;
use crate::projection::assumptions::Status;
use crate::projection::assumptions::Waiver;
use crate::projection::experiments::Experiments;
use crate::session::SessionError;
use crate::session::waivers;
use crate::session::waivers::Agreement;
use crate::session::waivers::WaiverError;
use crate::session::waivers::WaiverTerms;
use crate::view::View;

const LIST: &str = "clover assume list";
/// Columns left for a statement.
const STATEMENT_LEN: usize = 44;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Every assumption with its status, evidence, age and expiry
    #[command(after_help = "Example:\n  clover assume list --experiment arena")]
    List(ListArgs),
    /// One assumption: what it says, its parts, its waivers
    #[command(after_help = "Example:\n  clover assume show CLOVER.J2 --experiment arena")]
    Show(ShowArgs),
    /// Propose a waiver, or agree to one as the second key
    #[command(
        override_usage = "clover assume waive CODE --reason TEXT --until TIME [--second KEY]\n       clover assume waive CODE --countersign",
        after_help = "Example:\n  clover assume waive S2 --experiment arena --reason 'one environment only' \\\n    --until 2027-01-31T00:00:00.000000Z --second bea"
    )]
    Waive(WaiveArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// One experiment; all when absent
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Its code
    pub code: String,
    /// One experiment; all when absent
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WaiveArgs {
    /// Its code
    pub code: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", required_unless_present = "countersign")]
    pub reason: Option<String>,
    /// When the waiver ends
    #[arg(long, value_name = "TIME", required_unless_present = "countersign")]
    pub until: Option<String>,
    /// A second approver's key, to agree at once
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "countersign")]
    pub second: Option<String>,
    /// Agree to the waiver that waits
    #[arg(long, conflicts_with_all = ["reason", "until"])]
    pub countersign: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::List(args) => list(ctx, args.experiment.as_deref()),
        Verb::Show(args) => show(ctx, &args),
        Verb::Waive(args) => waive(ctx, &args),
    }
}

fn code(text: &str) -> Result<Assumption, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("code {text:?}: {error}"), LIST))
}

/// The named experiment, or all that are registered.
fn experiments(state: &State, named: Option<&str>) -> Result<Vec<ExperimentId>, CliError> {
    let all = &state.fold::<Experiments>().by_id;
    let Some(named) = named else {
        return Ok(all.keys().cloned().collect());
    };
    let id = record::experiment_id(named)?;
    if all.contains_key(&id) {
        return Ok(vec![id]);
    }
    let message = format!("no experiment {id}");
    Err(CliError::not_found(message, "clover experiment list"))
}

/// Ledger time: that of the newest entry.
fn ledger_time(state: &State) -> Timestamp {
    state.keyring.recorded_at.unwrap_or(Timestamp::EPOCH)
}

/// How long ago, in the largest unit that fits.
fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = seconds(at, now);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn seconds(at: Timestamp, now: Timestamp) -> i64 {
    (now.micros() - at.micros()).max(0) / 1_000_000
}

fn day(at: Timestamp) -> String {
    log::short_time(at)[..10].to_owned()
}

fn until(row: &Standing) -> Option<Timestamp> {
    let waived = row.waiver.as_ref().map(|waiver| waiver.expires_at);
    waived.or(row.evidence.and_then(|(_, evidence)| evidence.expires_at))
}

fn line(row: &Standing, now: Timestamp) -> Vec<String> {
    let evidence = row.evidence.map(|(_, evidence)| evidence);
    let dash = || "-".to_owned();
    let statement = assumptions::entry(row.code).statement;
    vec![
        row.code.to_string(),
        row.status.as_str().to_owned(),
        evidence.map_or_else(dash, |evidence| evidence.seq.to_string()),
        evidence.map_or_else(dash, |evidence| age(evidence.at, now)),
        until(row).map_or_else(dash, day),
        ui::cut(statement, STATEMENT_LEN),
    ]
}

const HEAD: [&str; 6] = ["code", "status", "seq", "age", "until", "says"];

fn table<'a>(rows: impl Iterator<Item = &'a Standing>, now: Timestamp) -> String {
    ui::table(&HEAD, rows.map(|row| line(row, now)).collect())
}

fn list(ctx: &mut Ctx<'_>, named: Option<&str>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = ledger_time(state);
    let experiments = experiments(state, named)?;
    let rows = assumptions::rows(state, now, &experiments);
    let mut text = format!("ledger time {}\n\n", log::short_time(now));
    text.push_str(&table(
        rows.iter().filter(|row| row.experiment.is_none()),
        now,
    ));
    for experiment in &experiments {
        text.push_str(&format!(
            "\nexperiment {}\n",
            ui::escape(experiment.as_str())
        ));
        let own = rows
            .iter()
            .filter(|row| row.experiment.as_ref() == Some(experiment));
        text.push_str(&table(own, now));
    }
    if experiments.is_empty() {
        text.push_str("\nno experiment yet; in each, untested until something is found:\n");
        let codes = Assumption::ALL
            .into_iter()
            .filter(|code| !code.is_of_ledger());
        let rows: Vec<_> = codes
            .map(|code| assumptions::standing(state, now, code, None))
            .collect();
        text.push_str(&table(rows.iter(), now));
    }
    for row in rows.iter().filter(|row| row.proposed.is_some()) {
        text.push_str(&format!("{}\n", pending(row)));
    }
    let data: Vec<_> = rows.iter().map(|row| to_json(row, now)).collect();
    let data = json!({"ledger_time": now.to_string(), "assumptions": data});
    Ok(View::untyped(text, data))
}

fn pending(row: &Standing) -> String {
    let of = row.experiment.as_ref();
    let of = of.map_or(String::new(), |id| {
        format!(" --experiment {}", ui::escape(&shell::word(id)))
    });
    let seq = row.proposed.as_ref().map_or(0, |waiver| waiver.seq);
    let code = row.code;
    format!(
        "waiver of {code} at seq {seq} waits for a second key: clover assume waive {code}{of} --countersign"
    )
}

fn waiver_json(waiver: &Waiver) -> Value {
    json!({
        "seq": waiver.seq, "id": waiver.id.to_string(), "author": waiver.author.to_string(),
        "reason": waiver.reason, "expires_at": waiver.expires_at.to_string(),
        "agreed": waiver.agreed.map(|agreed| json!({"seq": agreed.seq, "author": agreed.author.to_string()})),
    })
}

fn to_json(row: &Standing, now: Timestamp) -> Value {
    let entry = assumptions::entry(row.code);
    let evidence = row.evidence.map(|(part, evidence)| {
        json!({
            "part": part, "seq": evidence.seq, "at": evidence.at.to_string(),
            "age_seconds": seconds(evidence.at, now),
        })
    });
    let parts = row.parts.iter().map(|(name, status, evidence)| {
        json!({
            "part": name, "status": status.as_str(), "seq": evidence.map(|evidence| evidence.seq),
            "expires_at": evidence.and_then(|evidence| evidence.expires_at).map(|at| at.to_string()),
        })
    });
    json!({
        "code": row.code.as_str(), "experiment": row.experiment.as_ref().map(ExperimentId::as_str),
        "statement": entry.statement, "status": row.status.as_str(), "evidence": evidence,
        "expires_at": until(row).map(|at| at.to_string()), "parts": parts.collect::<Vec<_>>(),
        "waiver": row.waiver.as_ref().map(waiver_json), "proposed": row.proposed.as_ref().map(waiver_json),
    })
}

fn show(ctx: &mut Ctx<'_>, args: &ShowArgs) -> Result<View, CliError> {
    let code = code(&args.code)?;
    let (_, ledger, view) = home::view(ctx)?;
    let state = view.state(&ledger);
    let now = ledger_time(state);
    let all = experiments(state, args.experiment.as_deref())?;
    let mut rows: Vec<_> = assumptions::rows(state, now, &all);
    rows.retain(|row| row.code == code);
    if rows.is_empty() {
        rows.push(assumptions::standing(state, now, code, None));
    }
    let entry = assumptions::entry(code);
    let mut text = ui::pairs(&[
        ("assumption", code.to_string()),
        ("says", entry.statement.to_owned()),
        ("used by", entry.used_by.to_owned()),
        ("shown by", entry.diagnostic.to_owned()),
        ("else", entry.mitigation.to_owned()),
    ]);
    for row in &rows {
        text.push_str(&one(row, now));
    }
    let data: Vec<_> = rows.iter().map(|row| to_json(row, now)).collect();
    let data = json!({
        "code": code.as_str(), "statement": entry.statement, "used_by": entry.used_by,
        "diagnostic": entry.diagnostic, "mitigation": entry.mitigation, "ledger_time": now.to_string(),
        "rows": data,
    });
    Ok(View::untyped(text, data))
}

fn one(row: &Standing, now: Timestamp) -> String {
    let place = row
        .experiment
        .as_ref()
        .map_or("the ledger", ExperimentId::as_str);
    let mut pairs = vec![
        ("of", place.to_owned()),
        ("status", row.status.as_str().to_owned()),
    ];
    if let Some(waiver) = &row.waiver {
        let second = waiver.agreed.map_or(0, |agreed| agreed.seq);
        let text = format!(
            "at seq {} and {second}, until {}: {}",
            waiver.seq,
            day(waiver.expires_at),
            waiver.reason
        );
        pairs.push(("waived", text));
    }
    let mut text = format!("\n{}", ui::pairs(&pairs));
    let parts = row.parts.iter().map(|(name, status, evidence)| {
        let dash = || "-".to_owned();
        vec![
            (*name).to_owned(),
            status.as_str().to_owned(),
            evidence.map_or_else(dash, |evidence| evidence.seq.to_string()),
            evidence.map_or_else(dash, |evidence| age(evidence.at, now)),
            evidence
                .and_then(|evidence| evidence.expires_at)
                .map_or_else(dash, day),
        ]
    });
    text.push_str(&ui::table(
        &["part", "status", "seq", "age", "until"],
        parts.collect(),
    ));
    if row.proposed.is_some() {
        text.push_str(&format!("{}\n", pending(row)));
    }
    text
}

fn waive(ctx: &mut Ctx<'_>, args: &WaiveArgs) -> Result<View, CliError> {
    let code = code(&args.code)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let experiment = match (code.is_of_ledger(), args.experiment.as_deref()) {
        (true, None) => None,
        (true, Some(_)) => {
            let message = format!("{code} is about the whole ledger: leave --experiment out");
            return Err(CliError::usage(message, LIST));
        }
        (false, named) => Some(current::experiment(ctx, &home, ledger.state(), named)?),
    };
    if args.countersign {
        let intent = submit::intent(args.dry_run);
        let of = (code, experiment.as_ref());
        let agreement = waivers::agree(&mut ctx.ports(), &mut ledger, of, intent)?;
        return Ok(agreed(ctx, &ledger, code, &agreement));
    }
    let (reason, until) = (args.reason.as_deref(), args.until.as_deref());
    let terms = WaiverTerms {
        code,
        experiment: experiment.clone(),
        expires_at: record::time(until.unwrap_or_default())?,
        reason: key::text("reason", reason.unwrap_or_default())?,
    };
    let second = args.second.as_ref();
    let intent = submit::intent(args.dry_run);
    let mut ports = ctx.ports().with_second(second);
    let done = waivers::propose(&mut ports, &mut ledger, terms, second.is_some(), intent);
    let (submission, agreement) = done.map_err(|error| match (error, second) {
        (SessionError::Waiver(error @ WaiverError::SameKey), Some(second)) => {
            CliError::from(error).at(&format!("--second {second}"))
        }
        (error, _) => error.into(),
    })?;
    let mut answer = submit::shown(ctx, &ledger, &submission);
    if args.dry_run {
        return Ok(answer);
    }
    if let Some(agreement) = agreement {
        let second = agreed(ctx, &ledger, code, &agreement);
        answer.facts_mut()["status"] = second.facts()["status"].clone();
        answer.blocks.extend(second.blocks);
        answer.events.extend(second.events);
        answer.checkpoint = second.checkpoint;
        return Ok(answer);
    }
    answer.line("it holds once another approver's key agrees");
    let of = experiment.map_or(String::new(), |id| {
        format!(" --experiment {}", shell::word(&id))
    });
    Ok(answer.with_next(format!(
        "clover assume waive {code}{of} --countersign --key KEY"
    )))
}

fn agreed(ctx: &mut Ctx<'_>, ledger: &Ledger, code: Assumption, agreement: &Agreement) -> View {
    let mut answer = submit::shown(ctx, ledger, &agreement.submission);
    if agreement.submission.is_appended() {
        let status = agreement.status.as_str();
        answer.line(format!("{code} {status}"));
        answer.facts_mut()["status"] = status.into();
    }
    answer
}

/// Assumptions that fail, with their experiment, for `status`.
pub(super) fn failing(state: &State) -> Vec<Standing> {
    let all: Vec<_> = state.fold::<Experiments>().by_id.keys().cloned().collect();
    let mut rows = assumptions::rows(state, ledger_time(state), &all);
    rows.retain(|row| row.status == Status::Fail);
    rows
}
