//! `clover judge drift`: the anchors scored anew, and whether the judge is still the one that it was.

use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::intake_files::Scores;
use crate::cli::judge::Common;
use crate::cli::judge_rows::Desk;
use crate::cli::ui;
use crate::event::id::AnchorSetId;
use crate::event::id::ManifestId;
use crate::event::payload::Verdict;
use crate::event::payload::drift::Charted;
use crate::event::payload::drift::DriftSide;
use crate::event::payload::drift::JudgeDriftChecked;
use crate::ground::shell;
use crate::session::judge::drift;
use crate::session::judge::drift::DriftCheck;
use crate::session::judge::drift::DriftRequest;
use crate::session::judge::drift::ScoreOrigin;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::deploy::word;

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

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    if args.common.recorded {
        let message = "--recorded: recorded scores are what new ones are held against";
        return Err(CliError::usage(message, HELP));
    }
    let (scores, origin) = if args.scored {
        (Scores::Given, ScoreOrigin::Rows)
    } else {
        (Scores::Asked, ScoreOrigin::Judge)
    };
    let mut desk = Desk::open(ctx, &args.common, scores)?;
    let named = args.anchors.as_deref().map(|named| {
        AnchorSetId::new(named)
            .map_err(|error| CliError::usage(format!("--anchors {named:?}: {error}"), HELP))
    });
    let request = DriftRequest {
        anchors: named.transpose()?,
        changed: args.changed,
        scores: origin,
    };
    let experiment = desk.assignment.experiment.clone();
    let mut ports = ctx.ports().with_program(&desk.program);
    let found = drift::check(&mut ports, &desk.ledger, desk.assignment, &request)?;
    let mut answer = View::untyped(told(&found), data(&found));
    let verdict = found.said.verdicts.whole();
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
    let appended = drift::record(&mut ports, &mut desk.ledger, &experiment, found.said)?;
    let next = found
        .stale_gates
        .first()
        .map_or("clover assume show CJE.D1-R3".to_owned(), |id| {
            format!("clover gate show {id}", id = shell::word(&id))
        });
    Ok(answer.with_events(&appended).with_next(next))
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
fn told(found: &DriftCheck) -> String {
    let (said, checks) = (&found.said, found.number);
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
    text + &told_of_series(said) + &told_of_gates(&found.stale_gates)
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

fn data(found: &DriftCheck) -> Value {
    let (said, gates) = (&found.said, &found.stale_gates);
    json!({
        "judge": said.judge, "anchors": said.anchors, "rows": said.rows, "policies": said.policies,
        "kendall_tau": said.kendall_tau, "p": said.p, "unversioned": said.unversioned,
        "verdict": word(said.verdicts.whole()), "verdicts": said.verdicts, "terms": said.terms,
        "through_seq": said.through_seq, "stale_gates": gates,
    })
}
