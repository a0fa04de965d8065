//! The page that an auditor begins with: the verdict, and five answers in words.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::payload::Verdict;
use crate::event::payload::custody::Separation;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::ledger::verify::Report;
use crate::projection::trail::Signers;
use crate::view::Exit;
use crate::view::View;
use crate::view::audit::DecisionKind;
use crate::view::audit::PeekShown;
use crate::view::audit::PlanTiming;
use crate::view::audit::SignedKind;
use crate::view::audit::decided;
use crate::view::audit::decision_table;
use crate::view::audit::peek_table;
use crate::view::audit::plan_table;
use crate::view::audit::read;
use crate::view::audit::seen;
use crate::view::audit::signed;
use crate::view::audit::signer_table;
use crate::view::audit::timings;
use crate::view::text::thousands;
use crate::view::verify;

/// The verdict and the answers on one page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditSummary {
    /// The verdict of `clover verify`; `null` where the log is read as of an earlier entry.
    pub line: Option<String>,
    /// Entries that were read.
    pub entries: u64,
    /// The root of their tree.
    pub root: String,
    /// Who signed what.
    pub signers: Vec<SignedKind>,
    /// Whether each plan was in force before.
    pub plans: Vec<PlanTiming>,
    /// Every peek.
    pub peeks: Vec<PeekShown>,
    /// What holds each kind of decision.
    pub decisions: Vec<DecisionKind>,
    /// What nobody may read out of it.
    pub not_claimed: Vec<String>,
}

/// The verdict and five answers on one page; with `full`, each key, plan, peek and kind of decision after it. `report` is what
/// a verification of the whole log found, where there was one.
///
/// # Errors
/// [`LedgerError`].
pub fn summary(
    ledger: &Ledger,
    state: &State,
    (report, full): (Option<&Report>, bool),
) -> Result<View, LedgerError> {
    let read = read(ledger, state, Signers::default())?;
    let mut facts = AuditSummary {
        line: report.map(Report::verdict_line),
        entries: state.size,
        root: ledger.root_at(state.size)?.to_base64(),
        signers: signed(state, &read),
        plans: timings(state, &read),
        peeks: seen(ledger, state)?,
        decisions: decided(&read),
        not_claimed: Vec::new(),
    };
    facts.not_claimed = not_claimed(state, &facts, report);
    let mut view = View::of(&facts);
    match report {
        Some(report) => verify::verdict(&mut view, report),
        None => view.sentence("Not verified: this is the log as of an earlier entry. `clover verify` judges the whole."),
    }
    view.gap();
    view.broken_pairs([
        ("ledger", state.keyring.origin.clone()),
        ("entries", thousands(facts.entries)),
        ("signed", holders_in_words(&facts.signers)),
        ("plans", plans_in_words(&facts.plans)),
        ("peeks", peeks_in_words(&facts.peeks)),
        ("decisions", decisions_in_words(&facts.decisions)),
        ("not claimed", facts.not_claimed.join("; ")),
    ]);
    if full {
        in_full(&mut view, &facts);
    }
    if report.is_some_and(|of| of.verdict != Verdict::Pass) {
        view.verdict = "tampered";
        view.exit = Exit::Integrity;
        return Ok(view.with_next("clover verify"));
    }
    let next = if full {
        "clover replay --all"
    } else {
        "clover audit summary --full"
    };
    Ok(view.with_next(next))
}

/// Every row behind the page.
fn in_full(view: &mut View, facts: &AuditSummary) {
    view.gap();
    view.line("Who signed what, in which role");
    signer_table(view, &facts.signers);
    view.gap();
    view.line("Was each plan in force before its first row, and before its first outcome?");
    plan_table(view, &facts.plans);
    view.gap();
    view.line("Every peek, and what for");
    peek_table(view, &facts.peeks);
    view.gap();
    view.line("Which decisions can be computed again");
    decision_table(view, &facts.decisions);
}

/// Names, the first few of them.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

fn counted(count: u64, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", thousands(count))
}

/// Who signed how much, and in which roles.
fn holders_in_words(signers: &[SignedKind]) -> String {
    let mut by_holder: BTreeMap<&str, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for of in signers {
        let holder = of.holder.as_deref().unwrap_or("unknown");
        let (events, roles) = by_holder.entry(holder).or_default();
        *events += of.events;
        roles.insert(&of.role);
    }
    let each = by_holder.iter().map(|(holder, (events, roles))| {
        let roles: Vec<_> = roles.iter().copied().collect();
        let events = counted(*events, "event", "events");
        format!("{holder} {events} as {}", roles.join(", "))
    });
    let each: Vec<_> = each.collect();
    each.join("; ")
}

/// How many plans were in force before an outcome of theirs could be seen, and which were not.
fn plans_in_words(plans: &[PlanTiming]) -> String {
    if plans.is_empty() {
        return "none was registered".to_owned();
    }
    let with = |timing: &str| plans.iter().filter(|of| of.timing == timing).count() as u64;
    let after: Vec<_> = plans
        .iter()
        .filter(|of| of.timing == "after")
        .map(|of| of.manifest.to_string())
        .collect();
    let before_rows = plans.iter().filter(|of| of.row_timing == "before").count();
    let mut text = format!(
        "{}: {before_rows} in force before the first row, {} before the first outcome, {} with nothing seen yet",
        counted(plans.len() as u64, "plan", "plans"),
        with("before"),
        with("unseen")
    );
    if !after.is_empty() {
        text.push_str(&format!(", NOT in force before it: {}", few(&after)));
    }
    let amended = plans.iter().map(|of| of.amended_after).sum();
    let deviations = plans.iter().map(|of| of.deviations).sum();
    text.push_str(&format!(
        "; {} after it, {}",
        counted(amended, "amendment", "amendments"),
        counted(deviations, "deviation", "deviations")
    ));
    text
}

/// How often somebody saw outcomes that were kept back, by kind.
fn peeks_in_words(peeks: &[PeekShown]) -> String {
    if peeks.is_empty() {
        return "nobody saw an outcome that was kept back".to_owned();
    }
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for of in peeks.iter().filter(|of| of.given) {
        *by_kind.entry(&of.kind).or_default() += 1;
    }
    let kinds: Vec<_> = by_kind
        .iter()
        .map(|(kind, of)| format!("{of} {kind}"))
        .collect();
    let refused = peeks.iter().filter(|of| !of.given).count();
    // One charge may open labels of several policies, at several places of the log; accounts count charges.
    let charges: BTreeSet<&String> = peeks.iter().filter_map(|of| of.charge.as_ref()).collect();
    let mut text = format!(
        "{} (what accounts count), by which outcomes were seen {}: {}",
        counted(charges.len() as u64, "charge", "charges"),
        counted((peeks.len() - refused) as u64, "time", "times"),
        few(&kinds)
    );
    if refused > 0 {
        text.push_str(&format!("; {refused} refused"));
    }
    text
}

/// How many decisions can be computed again, are judged by a rule, or are taken as they were said.
fn decisions_in_words(decisions: &[DecisionKind]) -> String {
    if decisions.is_empty() {
        return "nothing was decided yet".to_owned();
    }
    let of = |check: &str| -> (u64, Vec<String>) {
        let kinds = decisions.iter().filter(|of| of.check == check);
        let events = kinds.clone().map(|of| of.events).sum();
        (events, kinds.map(|of| of.kind.clone()).collect())
    };
    let ((again, _), (rule, _), (said, kinds)) = (of("again"), of("rule"), of("said"));
    let mut text = format!(
        "{} of kinds that can be computed again (`clover replay --all` does, and names each that cannot; this page did not), {} judged by rules",
        thousands(again),
        thousands(rule)
    );
    if said > 0 {
        text.push_str(&format!(
            ", {} taken as said: {}",
            thousands(said),
            few(&kinds)
        ));
    }
    text
}

/// What nobody may read out of the page.
fn not_claimed(state: &State, facts: &AuditSummary, report: Option<&Report>) -> Vec<String> {
    let mut all = vec![
        "that what was recorded is true or complete".to_owned(),
        "what anybody saw in private".to_owned(),
    ];
    if facts.decisions.iter().any(|of| of.check == "again") {
        all.push("that decisions follow from what was recorded".to_owned());
    }
    if state.keyring.separation() == Some(Separation::Solo) {
        all.push("that roles were kept apart: one person may hold all (solo)".to_owned());
    }
    let open = report
        .map(|of| of.not_checked.as_slice())
        .unwrap_or_default();
    let open = open.iter().map(String::as_str);
    let open: Vec<_> = open.filter(|what| *what != "recompute").collect();
    if !open.is_empty() {
        all.push(format!("NOT CHECKED: {}", open.join(", ")));
    }
    all
}
