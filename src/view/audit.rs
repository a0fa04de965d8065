//! An auditor's questions: who signed what, were plans in force before, what was seen and what for, and what holds each
//! decision.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::Role;
use crate::event::payload::Verdict;
use crate::event::payload::custody::Separation;
use crate::event::registry::Signers as MaySign;
use crate::ground::sign::KeyId;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::ledger::verify::Report;
use crate::projection::manifests::Manifests;
use crate::projection::reader::LogReader;
use crate::projection::trail;
use crate::projection::trail::Peeks;
use crate::projection::trail::Signatures;
use crate::projection::trail::Signers;
use crate::projection::trail::Timing;
use crate::view::Exit;
use crate::view::View;
use crate::view::text::thousands;
use crate::view::verify;
use crate::workflow::recompute::Way;
use crate::workflow::recompute::way;

/// Events of one kind that one key signed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedKind {
    /// The id of the key.
    pub key: String,
    /// Who holds it; `null` where no key of the ledger has this id.
    pub holder: Option<String>,
    /// The role that the kind asks for: `any` where every live key may sign it, `spender` where the account says which.
    pub role: String,
    /// The kind.
    pub kind: String,
    /// How many events.
    pub events: u64,
    /// Position of the first.
    pub first_seq: u64,
    /// Position of the last.
    pub last_seq: u64,
}

/// Who signed what, in which role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignersShown {
    /// One entry for each key and kind.
    pub signers: Vec<SignedKind>,
}

/// When a plan came into force.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanTiming {
    /// Its manifest.
    pub manifest: ManifestId,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// Versions that were registered.
    pub versions: u64,
    /// The entry from which its first version is in force; `null` while it waits for its countersignature.
    pub in_force_seq: Option<u64>,
    /// The first entry that lets somebody see an outcome of it; `null` where none does.
    pub first_look_seq: Option<u64>,
    /// `before`: it was in force by then. `after`: it was not. `unseen`: nothing could be seen yet.
    pub timing: String,
    /// Amendments after that entry.
    pub amended_after: u64,
    /// Deviations that were declared.
    pub deviations: u64,
}

/// Whether each plan was in force before its first outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlansShown {
    /// One entry for each manifest.
    pub plans: Vec<PlanTiming>,
}

/// Outcomes that somebody could see.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeekShown {
    /// The kind of its events.
    pub kind: String,
    /// How many events: neighbours by one key, of one thing and one charge, are one peek.
    pub events: u64,
    /// Position of the first.
    pub first_seq: u64,
    /// Position of the last.
    pub last_seq: u64,
    /// Whose outcomes: an iteration, a gate, a label design, a class of data.
    pub of: String,
    /// The id of the key that signed it.
    pub by: String,
    /// Who holds that key.
    pub holder: Option<String>,
    /// The key that was given them, where it is another.
    pub reader: Option<String>,
    /// What for, as it was said; `null` where the event asks for no reason.
    pub purpose: Option<String>,
    /// The account that paid for it; `null` where it costs nothing.
    pub account: Option<String>,
    /// Whether they were given: a refused read is on record too.
    pub given: bool,
}

/// Every peek and what for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeeksShown {
    /// In the order of the log.
    pub peeks: Vec<PeekShown>,
}

/// Decisions of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisionKind {
    /// The kind.
    pub kind: String,
    /// How many.
    pub events: u64,
    /// Position of the first.
    pub first_seq: u64,
    /// Position of the last.
    pub last_seq: u64,
    /// `again`: `clover replay` computes it again. `rule`: `clover verify` judges it. `said`: it is taken as it was said.
    pub check: String,
    /// From what it is computed, or which rule judges it and why.
    pub basis: String,
}

/// Which decisions are computed again, and which are not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisionsShown {
    /// One entry for each kind of decision in the log.
    pub decisions: Vec<DecisionKind>,
}

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

/// Who signed what, in which role.
///
/// # Errors
/// [`LedgerError`].
pub fn signers(ledger: &Ledger, state: &State) -> Result<View, LedgerError> {
    let signers = signed(state, &read(ledger, state, Signers::default())?);
    let mut view = View::of(&SignersShown {
        signers: signers.clone(),
    });
    signer_table(&mut view, &signers);
    Ok(view.with_next("clover audit plans"))
}

/// Whether each plan was in force before its first outcome.
pub fn plans(state: &State) -> View {
    let plans = timings(state);
    let mut view = View::of(&PlansShown {
        plans: plans.clone(),
    });
    plan_table(&mut view, &plans);
    view.with_next("clover audit peeks")
}

/// Every peek and what for.
///
/// # Errors
/// [`LedgerError`].
pub fn peeks(ledger: &Ledger, state: &State) -> Result<View, LedgerError> {
    let peeks = seen(ledger, state)?;
    let mut view = View::of(&PeeksShown {
        peeks: peeks.clone(),
    });
    peek_table(&mut view, &peeks);
    Ok(view.with_next("clover audit decisions"))
}

/// Which decisions are computed again, and which are not.
///
/// # Errors
/// [`LedgerError`].
pub fn decisions(ledger: &Ledger, state: &State) -> Result<View, LedgerError> {
    let decisions = decided(&read(ledger, state, Signers::default())?);
    let mut view = View::of(&DecisionsShown {
        decisions: decisions.clone(),
    });
    decision_table(&mut view, &decisions);
    Ok(view.with_next("clover replay --all"))
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
        plans: timings(state),
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
    let next = if full { "clover replay --all" } else { "clover audit summary --full" };
    Ok(view.with_next(next))
}

/// Every row behind the page.
fn in_full(view: &mut View, facts: &AuditSummary) {
    view.gap();
    view.line("Who signed what, in which role");
    signer_table(view, &facts.signers);
    view.gap();
    view.line("Was each plan in force before its first outcome");
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
    let mut text = format!(
        "{}: {} in force before the first outcome, {} with nothing seen yet",
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
    let kinds: Vec<_> = by_kind.iter().map(|(kind, of)| format!("{of} {kind}")).collect();
    let refused = peeks.iter().filter(|of| !of.given).count();
    let charged = peeks.iter().filter(|of| of.account.is_some()).count();
    let mut text = format!("{}: {}", peeks.len() - refused, few(&kinds));
    text.push_str(&format!("; {charged} charged to an account"));
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
        "{} can be computed again (`clover replay --all` does; this page did not), {} judged by rules",
        thousands(again),
        thousands(rule)
    );
    if said > 0 {
        text.push_str(&format!(", {} taken as said: {}", thousands(said), few(&kinds)));
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
    let open = report.map(|of| of.not_checked.as_slice()).unwrap_or_default();
    if !open.is_empty() {
        all.push(format!("what was not checked: {}", open.join(", ")));
    }
    all
}

fn read<M: crate::projection::reader::Model>(
    ledger: &Ledger,
    state: &State,
    model: M,
) -> Result<M, LedgerError> {
    LogReader::below(ledger, state.size).into_model(model)
}

fn holder(state: &State, key: KeyId) -> Option<String> {
    let record = state.keyring.keys.get(&key);
    record.map(|record| record.holder.to_string())
}

fn role(kind: Kind) -> String {
    match kind.signers() {
        MaySign::Any => "any".to_owned(),
        MaySign::Genesis => Role::Owner.to_string(),
        MaySign::Role(role) => role.to_string(),
        MaySign::Spenders => "spender".to_owned(),
    }
}

fn signed(state: &State, signers: &Signers) -> Vec<SignedKind> {
    let all = signers.by_key.iter();
    let all = all.map(|((key, kind), of)| SignedKind {
        key: key.to_string(),
        holder: holder(state, *key),
        role: role(*kind),
        kind: kind.to_string(),
        events: of.events,
        first_seq: of.first_seq,
        last_seq: of.last_seq,
    });
    all.collect()
}

fn signer_table(view: &mut View, signers: &[SignedKind]) {
    let rows = signers.iter().map(|of| {
        vec![
            of.holder.clone().unwrap_or_else(|| "unknown".to_owned()),
            of.key.chars().take(8).collect(),
            of.role.clone(),
            of.kind.clone(),
            thousands(of.events),
            span(of.first_seq, of.last_seq),
        ]
    });
    let head = ["holder", "key", "role", "kind", "events", "seq"];
    view.table(&head, rows);
}

fn span(first: u64, last: u64) -> String {
    if first == last {
        return first.to_string();
    }
    format!("{first} to {last}")
}

fn timings(state: &State) -> Vec<PlanTiming> {
    let manifests = state.fold::<Manifests>().by_id.iter();
    let plans = manifests.map(|(manifest, record)| PlanTiming {
        manifest: manifest.clone(),
        experiment: record.experiment.clone(),
        versions: record.versions.len() as u64,
        in_force_seq: trail::in_force_seq(record),
        first_look_seq: trail::first_seen_seq(record),
        timing: match Timing::of(record) {
            Timing::Before => "before",
            Timing::After => "after",
            Timing::Unseen => "unseen",
        }
        .to_owned(),
        amended_after: trail::amended_after(record),
        deviations: record.deviations.len() as u64,
    });
    plans.collect()
}

fn plan_table(view: &mut View, plans: &[PlanTiming]) {
    if plans.is_empty() {
        return view.line("no plan was registered");
    }
    let seq = |seq: Option<u64>| seq.map_or("-".to_owned(), |seq| seq.to_string());
    let rows = plans.iter().map(|of| {
        vec![
            of.manifest.to_string(),
            of.versions.to_string(),
            seq(of.in_force_seq),
            seq(of.first_look_seq),
            match of.timing.as_str() {
                "before" => "yes",
                "after" => "NO",
                _ => "nothing was seen yet",
            }
            .to_owned(),
            of.amended_after.to_string(),
            of.deviations.to_string(),
        ]
    });
    let head = [
        "plan",
        "versions",
        "in force at seq",
        "first outcome at seq",
        "in force before",
        "amended after",
        "deviations",
    ];
    view.table(&head, rows);
}

fn seen(ledger: &Ledger, state: &State) -> Result<Vec<PeekShown>, LedgerError> {
    let peeks = read(ledger, state, Peeks::new(state.fold::<Manifests>()))?;
    let peeks = peeks.all.into_iter().map(|of| PeekShown {
        kind: of.kind.to_string(),
        events: of.seen.events,
        first_seq: of.seen.first_seq,
        last_seq: of.seen.last_seq,
        of: of.of,
        by: of.by.to_string(),
        holder: holder(state, of.by),
        reader: of.reader.map(|key| key.to_string()),
        purpose: of.purpose,
        account: of.account,
        given: of.given,
    });
    Ok(peeks.collect())
}

fn peek_table(view: &mut View, peeks: &[PeekShown]) {
    if peeks.is_empty() {
        return view.line("nobody saw an outcome that was kept back");
    }
    let rows = peeks.iter().map(|of| {
        let purpose = of.purpose.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            span(of.first_seq, of.last_seq),
            of.kind.clone(),
            of.of.clone(),
            of.events.to_string(),
            of.holder.clone().unwrap_or_else(|| "unknown".to_owned()),
            if of.given {
                purpose
            } else {
                format!("refused: {purpose}")
            },
            of.account.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let head = ["seq", "kind", "of", "events", "by", "what for", "account"];
    view.table(&head, rows);
}

fn decided(signers: &Signers) -> Vec<DecisionKind> {
    let mut by_kind: BTreeMap<Kind, Signatures> = BTreeMap::new();
    for ((_, kind), of) in &signers.by_key {
        let all = by_kind
            .entry(*kind)
            .or_insert(Signatures { events: 0, ..*of });
        all.events += of.events;
        all.first_seq = all.first_seq.min(of.first_seq);
        all.last_seq = all.last_seq.max(of.last_seq);
    }
    let decisions = by_kind.into_iter().filter_map(|(kind, of)| {
        let (check, basis) = match way(kind) {
            Way::Again(recipe) => ("again", recipe.from.to_owned()),
            Way::Held(at) => ("rule", format!("rule {}: {}", at.rule, at.why)),
            Way::Said if kind.signers() == MaySign::Role(Role::Arbiter) => {
                ("said", "no other entries give it".to_owned())
            }
            Way::Said => return None,
        };
        Some(DecisionKind {
            kind: kind.to_string(),
            events: of.events,
            first_seq: of.first_seq,
            last_seq: of.last_seq,
            check: check.to_owned(),
            basis,
        })
    });
    decisions.collect()
}

fn decision_table(view: &mut View, decisions: &[DecisionKind]) {
    if decisions.is_empty() {
        return view.line("nothing was decided yet");
    }
    let rows = decisions.iter().map(|of| {
        vec![
            of.kind.clone(),
            of.events.to_string(),
            span(of.first_seq, of.last_seq),
            match of.check.as_str() {
                "again" => "yes",
                "rule" => "judged by a rule",
                _ => "no",
            }
            .to_owned(),
            of.basis.clone(),
        ]
    });
    let head = ["kind", "events", "seq", "computed again", "from"];
    view.table(&head, rows);
}
