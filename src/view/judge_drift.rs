//! How a check of drift is shown: whether a judge is still the one that it was.

use serde::Serialize;

use crate::event::id::AnchorSetId;
use crate::event::id::JudgeId;
use crate::event::id::ManifestId;
use crate::event::payload::Verdict;
use crate::event::payload::drift::DriftSide;
use crate::event::payload::drift::DriftTerms;
use crate::event::payload::drift::DriftVerdicts;
use crate::event::payload::drift::JudgeDriftChecked;
use crate::event::payload::drift::PolicyDrift;
use crate::event::payload::drift::ResidualChart;
use crate::event::payload::drift::RowsDrift;
use crate::ground::shell;
use crate::ledger::AppendedEvent;
use crate::num::Count;
use crate::num::Finite;
use crate::num::Probability;
use crate::report::shown;
use crate::session::judge::drift::DriftCheck;
use crate::view::Exit;
use crate::view::View;
use crate::view::text::thousands;
use crate::workflow::deploy::word;

/// A check of drift.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriftFacts {
    /// The judge.
    pub judge: JudgeId,
    /// The anchors that were scored again.
    pub anchors: AnchorSetId,
    /// Single rows.
    pub rows: RowsDrift,
    /// Both anchor policies, by name.
    pub policies: Vec<PolicyDrift>,
    /// Tau-b of recorded and new scores, from -1 to 1; `null` where either are all alike.
    pub kendall_tau: Option<Finite>,
    /// Two-sided p of tau 0.
    pub p: Option<Probability>,
    /// Scores of this judge since its registration that do not name it.
    pub unversioned: Count,
    /// The verdict of the whole.
    pub verdict: Verdict,
    /// Verdicts by what was looked at.
    pub verdicts: DriftVerdicts,
    /// How it was judged.
    pub terms: DriftTerms,
    /// The last entry that was read.
    pub through_seq: Count,
    /// Open gates that it makes stale.
    pub stale_gates: Vec<ManifestId>,
}

/// What was found, before it is on record.
pub fn shown(found: &DriftCheck) -> View {
    let said = &found.said;
    let verdict = said.verdicts.whole();
    let mut view = View::of(&DriftFacts {
        judge: said.judge.clone(),
        anchors: said.anchors.clone(),
        rows: said.rows.clone(),
        policies: said.policies.clone(),
        kendall_tau: said.kendall_tau,
        p: said.p,
        unversioned: said.unversioned,
        verdict,
        verdicts: said.verdicts,
        terms: said.terms,
        through_seq: said.through_seq,
        stale_gates: found.stale_gates.clone(),
    });
    figures(&mut view, found);
    all_series(&mut view, said);
    stale(&mut view, &found.stale_gates);
    view.exit = match verdict {
        Verdict::Fail => Exit::Fail,
        Verdict::Inconclusive | Verdict::NotChecked => Exit::Inconclusive,
        Verdict::Pass => Exit::Done,
    };
    view.with_verdict(word(verdict))
}

/// The same once it is on record.
pub fn recorded(view: View, appended: &[AppendedEvent], stale_gates: &[ManifestId]) -> View {
    let next = stale_gates
        .first()
        .map_or("clover assume show CJE.D1-R3".to_owned(), |id| {
            format!("clover gate show {id}", id = shell::word(&id))
        });
    view.with_events(appended).with_next(next)
}

fn side(of: &ResidualChart) -> &'static str {
    match of.side {
        DriftSide::Down => "down",
        DriftSide::Up => "up",
    }
}

fn series(name: &str, rows: u64, change: String, of: &ResidualChart) -> Vec<String> {
    let drifts = if of.drifts { "drifts" } else { "in control" };
    vec![
        name.to_owned(),
        thousands(rows),
        change,
        format!("{:.2} {}", of.excursion.value(), side(of)),
        format!("{:.4}", of.p.value()),
        format!("{:.4}", of.p_adjusted.value()),
        drifts.to_owned(),
    ]
}

/// The figures of a check, for people.
fn figures(view: &mut View, found: &DriftCheck) {
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
        (stray, _) => format!("{} scores do not name the registration", thousands(stray)),
    };
    let registered = if said.terms.manifest.is_some() {
        "registered"
    } else {
        "usual"
    };
    view.pairs([
        ("judge", said.judge.to_string()),
        (
            "anchors",
            format!("{}, {} rows, check {checks}", said.anchors, said.rows.rows),
        ),
        (
            "ranks",
            format!(
                "{}: tau-b {tau} (at least {}){p}",
                shown::word(said.verdicts.ranks),
                plan.tau_min_micro
            ),
        ),
        (
            "residuals",
            format!(
                "{}: {} of {} rows drift, {} changed (q {}, deviation {} in control)",
                shown::word(said.verdicts.residuals),
                said.rows.drifting,
                said.rows.rows,
                said.rows.changed,
                plan.q_micro,
                plan.sd_micro
            ),
        ),
        (
            "version",
            format!("{}: {version}", shown::word(said.verdicts.version)),
        ),
        ("thresholds", registered.to_owned()),
    ]);
}

fn all_series(view: &mut View, said: &JudgeDriftChecked) {
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
    view.table(&head, rows);
}

fn stale(view: &mut View, gates: &[ManifestId]) {
    if gates.is_empty() {
        return;
    }
    let names: Vec<_> = gates.iter().map(ManifestId::as_str).collect();
    view.sentence(format!(
        "stale from here on: {}. Nothing is observed, looked at or decided there until clover prereg deviation says how the drift is handled.",
        names.join(", ")
    ));
}
