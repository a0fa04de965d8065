//! `clover judge drift`: the anchors scored anew, and whether the judge is still the one that it was.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::estimate;
use crate::cli::intake_files::Scores;
use crate::cli::judge::Common;
use crate::cli::judge_refusals;
use crate::cli::judge_rows;
use crate::cli::judge_rows::Desk;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::AnchorSetId;
use crate::event::id::ManifestId;
use crate::event::payload::Verdict;
use crate::event::payload::drift::Charted;
use crate::event::payload::drift::DriftSide;
use crate::event::payload::drift::DriftTerms;
use crate::event::payload::drift::JudgeDriftChecked;
use crate::event::payload::drift::JudgeVersion;
use crate::event::payload::label::row_of_draw;
use crate::ground::shell;
use crate::ledger::Command;
use crate::ledger::State;
use crate::num::Micro;
use crate::projection::drifts;
use crate::projection::gates::Gates;
use crate::session::judge::ask;
use crate::workflow::deploy::word;
use crate::workflow::drift;
use crate::workflow::drift::DriftError;
use crate::workflow::drift::Heard;
use crate::workflow::drift::Recorded;
use crate::workflow::drift::Which;
use crate::workflow::import::Row;

const HELP: &str = "clover judge drift --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub common: Common,
    /// The anchor set; default the only one of the experiment
    #[arg(long, value_name = "ID")]
    pub anchors: Option<String>,
    /// The rows bring the new scores along, as `judge_score`; no judge is asked
    #[arg(long, conflicts_with_all = ["command", "recorded"])]
    pub scored: bool,
    /// The judge is not the one that was registered any more: record that
    #[arg(long)]
    pub changed: bool,
    /// Show what would be recorded and record nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    if args.common.recorded {
        let message = "--recorded: recorded scores are what new ones are held against";
        return Err(CliError::usage(message, HELP));
    }
    let scores = if args.scored {
        Scores::Given
    } else {
        Scores::Asked
    };
    let mut desk = Desk::reading(ctx, &args.common, scores)?;
    let anchors = anchor_set(&desk, args.anchors.as_deref())?;
    let asked = (!args.scored).then(|| JudgeVersion::from(desk.asked()));
    same_judge(&desk, asked.as_ref(), args.changed)?;
    let terms = terms(desk.ledger.state(), &desk)?;
    let which = Which {
        anchors: &anchors,
        experiment: &desk.experiment,
        judge: &desk.judge,
        through: desk.ledger.size().saturating_sub(1),
    };
    let found = drift::recorded(&desk.ledger, &which).map_err(|error| refused(error, &desk))?;
    let rows = wanted(std::mem::take(&mut desk.rows), &found)?;
    let scores = if args.scored {
        rows.iter().map(|row| row.score).collect()
    } else {
        heard(ctx, &desk, &args.common, rows)?
    };
    let heard = Heard { asked, scores };
    let said = drift::check(&found, heard, terms).map_err(|error| refused(error, &desk))?;
    let gates = stale_after(desk.ledger.state(), &desk, &said);
    let mut answer = Answer::new(
        told(&said, found.earlier.len() + 1, &gates),
        data(&said, &gates),
    );
    let verdict = said.verdicts.whole();
    answer.verdict = word(verdict);
    answer.exit = match verdict {
        Verdict::Fail => Exit::Fail,
        Verdict::Inconclusive | Verdict::NotChecked => Exit::Inconclusive,
        Verdict::Pass => Exit::Done,
    };
    if args.dry_run {
        answer.verdict = "dry_run";
        answer.exit = Exit::Done;
        return Ok(answer);
    }
    let signer = wallet::signer(ctx, desk.ledger.state(), Kind::JudgeDriftChecked)?;
    let command = Command::new(said, Some(desk.experiment.clone()));
    let appended = desk.ledger.append(&[command], &signer)?;
    desk.settle(ctx)?;
    let next = gates
        .first()
        .map_or("clover assume show CJE.D1-R3".to_owned(), |id| {
            format!("clover gate show {id}", id = shell::word(&id))
        });
    Ok(answer.with_events(&appended).with_next(next))
}

/// The named set, else the only one.
fn anchor_set(desk: &Desk, named: Option<&str>) -> Result<AnchorSetId, CliError> {
    use crate::projection::iterations::Iterations;
    if let Some(named) = named {
        return AnchorSetId::new(named)
            .map_err(|error| CliError::usage(format!("--anchors {named:?}: {error}"), HELP));
    }
    let of = &desk.ledger.state().fold::<Iterations>().anchors;
    let sets: Vec<&AnchorSetId> = of
        .get(&desk.experiment)
        .into_iter()
        .flatten()
        .map(|(id, _)| id)
        .collect();
    match sets.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let message = format!("no anchor set is registered in {}", desk.experiment);
            Err(CliError::not_found(
                message,
                "clover iterate anchors --help",
            ))
        }
        several => {
            let names: Vec<_> = several.iter().map(|id| id.as_str()).collect();
            let message = format!("several anchor sets: {}", names.join(", "));
            Err(CliError::usage(
                message,
                "the same command with --anchors ID",
            ))
        }
    }
}

/// Refuses to ask another judge than the registered one unless that is what is to be recorded.
fn same_judge(desk: &Desk, asked: Option<&JudgeVersion>, changed: bool) -> Result<(), CliError> {
    let standing = desk.standing()?;
    let Some((_, seq, registered)) = standing else {
        return Ok(());
    };
    let differs = asked.is_some_and(|asked| JudgeVersion::from(&registered) != *asked);
    if differs && !changed {
        let message = format!(
            "judge: {} is registered at seq {seq} as {}, and this is another judge: its port, model, template, extractor or known data differ",
            desk.judge,
            judge_rows::describe(&registered)
        );
        return Err(CliError::refused(
            message,
            "the same command as it was registered; or with --changed, to record that the judge changed",
        ));
    }
    if changed && !differs {
        let message = "--changed: this is the judge that was registered";
        return Err(CliError::usage(
            message,
            "the same command without --changed",
        ));
    }
    Ok(())
}

/// The numbers that a manifest registers, else the usual ones.
fn terms(state: &State, desk: &Desk) -> Result<DriftTerms, CliError> {
    let found = estimate::planned(
        state,
        &desk.experiment,
        drifts::drift_plan,
        "checks of drift",
    )?;
    Ok(found.map_or_else(
        || DriftTerms {
            manifest: None,
            plan: crate::event::payload::drift::DriftPlan::default(),
        },
        |(digest, plan)| DriftTerms {
            manifest: Some(digest),
            plan,
        },
    ))
}

fn refused(error: DriftError, desk: &Desk) -> CliError {
    let message = format!("drift: {error}");
    match error {
        DriftError::Ledger(error) => error.into(),
        DriftError::NoSet(_) => {
            CliError::not_found(message, "clover log --kind anchor_set.registered")
        }
        DriftError::OtherRows { .. } => {
            let judge = &desk.judge;
            CliError::refused(
                message,
                format!(
                    "clover judge run --judge {judge} --rows PATH",
                    judge = shell::word(&judge)
                ),
            )
        }
        DriftError::Scores { .. } | DriftError::Unfit(_) | DriftError::Sample(_) => {
            CliError::input(message, HELP)
        }
    }
}

/// The rows of the anchors, in their order; others are left alone.
fn wanted(rows: Vec<Row>, found: &Recorded) -> Result<Vec<Row>, CliError> {
    let mut by_id: BTreeMap<String, Row> = BTreeMap::new();
    for row in rows {
        by_id.insert(row_of_draw(&row.policy, &row.item, row.draw), row);
    }
    let missing: Vec<&str> = found
        .rows
        .iter()
        .filter(|row| !by_id.contains_key(&row.id))
        .map(|row| row.id.as_str())
        .collect();
    if let Some(first) = missing.first() {
        let message = format!(
            "--rows: expected all {} anchor rows, {} are missing, first {first}",
            found.rows.len(),
            missing.len()
        );
        return Err(CliError::input(message, HELP));
    }
    let rows = found.rows.iter().filter_map(|row| by_id.remove(&row.id));
    Ok(rows.collect())
}

/// Asks the judge for every row.
fn heard(
    ctx: &Ctx<'_>,
    desk: &Desk,
    common: &Common,
    rows: Vec<Row>,
) -> Result<Vec<Micro>, CliError> {
    let pairs = rows.into_iter().map(|row| {
        let reading = desk.read(&row)?;
        Ok((row, reading))
    });
    let pairs = pairs.collect::<Result<Vec<_>, CliError>>()?;
    let mut judges = desk.judges(ctx, common, pairs.iter().map(|(row, _)| row))?;
    let answers = ask::ask(&mut judges, &pairs);
    let mut scores = Vec::with_capacity(pairs.len());
    for ((row, _), answer) in pairs.iter().zip(answers) {
        let stopped = |error| judge_refusals::stopped(&format!("{}: {error}", row.item), 0, &error);
        scores.push(answer.map_err(stopped)?);
    }
    for judge in &mut judges {
        judge
            .finish()
            .map_err(|error| judge_refusals::stopped(&error.to_string(), 0, &error))?;
    }
    Ok(scores)
}

/// Open gates that a failed check makes stale.
fn stale_after(state: &State, desk: &Desk, said: &JudgeDriftChecked) -> Vec<ManifestId> {
    if said.verdicts.whole() != Verdict::Fail {
        return Vec::new();
    }
    let gates = state.fold::<Gates>().by_id.iter();
    let open = gates.filter(|(_, gate)| {
        let uses = |judge: &crate::event::id::JudgeId| *judge == said.judge;
        gate.decided.is_none()
            && gate.experiment.as_ref() == Some(&desk.experiment)
            && gate
                .sources
                .iter()
                .any(|of| of.judge.as_ref().is_some_and(uses))
    });
    open.map(|(id, _)| id.clone()).collect()
}

fn side(of: &Charted) -> &'static str {
    match of.side {
        DriftSide::Down => "down",
        DriftSide::Up => "up",
    }
}

fn series(name: &str, rows: u64, change: String, of: &Charted) -> Vec<String> {
    let drifts = if of.drifts { "drifts" } else { "in control" };
    vec![
        name.to_owned(),
        ui::thousands(rows),
        change,
        format!("{:.2} {}", of.excursion.value(), side(of)),
        format!("{:.4}", of.p.value()),
        format!("{:.4}", of.p_adjusted.value()),
        drifts.to_owned(),
    ]
}

/// The figures of a check, for people.
fn told(said: &JudgeDriftChecked, checks: usize, gates: &[ManifestId]) -> String {
    let plan = &said.terms.plan;
    let tau = said
        .kendall_tau
        .map_or("none: scores are all alike".to_owned(), |tau| {
            format!("{:.4}", tau.value())
        });
    let p = said
        .p
        .map_or(String::new(), |p| format!(", p of tau 0 {:.3e}", p.value()));
    let version = match (said.unversioned.value(), &said.asked) {
        (0, Some(asked)) => asked.model.as_str().to_owned(),
        (0, None) => "scores were handed over".to_owned(),
        (stray, _) => format!(
            "{} scores do not name the registration",
            ui::thousands(stray)
        ),
    };
    let registered = if said.terms.manifest.is_some() {
        "registered"
    } else {
        "usual"
    };
    let text = ui::pairs(&[
        ("judge", said.judge.to_string()),
        (
            "anchors",
            format!("{}, {} rows, check {checks}", said.anchors, said.rows.rows),
        ),
        (
            "ranks",
            format!(
                "{}: tau-b {tau} (at least {}){p}",
                word(said.verdicts.ranks),
                plan.tau_min_micro
            ),
        ),
        (
            "residuals",
            format!(
                "{}: {} of {} rows drift, {} changed (q {}, deviation {} in control)",
                word(said.verdicts.residuals),
                said.rows.drifting,
                said.rows.rows,
                said.rows.changed,
                plan.q_micro,
                plan.sd_micro
            ),
        ),
        (
            "version",
            format!("{}: {version}", word(said.verdicts.version)),
        ),
        ("thresholds", registered.to_owned()),
    ]);
    text + &told_of_series(said) + &told_of_gates(gates)
}

fn told_of_series(said: &JudgeDriftChecked) -> String {
    let head = ["series", "rows", "change", "excursion", "p", "adjusted", ""];
    let mut rows: Vec<Vec<String>> = said
        .policies
        .iter()
        .map(|of| {
            let change = format!("{:+.4}", of.mean_change.value());
            series(of.policy.as_str(), of.rows.value(), change, &of.charted)
        })
        .collect();
    let worst = said.rows.worst.as_str();
    rows.push(series(worst, 1, "-".to_owned(), &said.rows.worst_charted));
    ui::table(&head, rows)
}

fn told_of_gates(gates: &[ManifestId]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let names: Vec<_> = gates.iter().map(ManifestId::as_str).collect();
    ui::wrapped(&format!(
        "stale from here on: {}. Nothing is observed, looked at or decided there until clover prereg deviation says how the drift is handled.",
        names.join(", ")
    ))
}

fn data(said: &JudgeDriftChecked, gates: &[ManifestId]) -> Value {
    json!({
        "judge": said.judge, "anchors": said.anchors, "rows": said.rows, "policies": said.policies,
        "kendall_tau": said.kendall_tau, "p": said.p, "unversioned": said.unversioned,
        "verdict": word(said.verdicts.whole()), "verdicts": said.verdicts, "terms": said.terms,
        "through_seq": said.through_seq, "stale_gates": gates,
    })
}
