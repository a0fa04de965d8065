//! An auditor's questions: who signed what, were plans in force before, what was seen and what for, and what holds each
//! decision.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::Role;
use crate::event::registry::Signers as MaySign;
use crate::ground::sign::KeyId;
use crate::ledger::Ledger;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::manifests::ManifestRecord;
use crate::projection::manifests::Manifests;
use crate::projection::reader::LogReader;
use crate::projection::trail;
use crate::projection::trail::Peeks;
use crate::projection::trail::Signatures;
use crate::projection::trail::Signers;
use crate::projection::trail::Timing;
use crate::view::View;
use crate::view::text::thousands;
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
    /// The first row or label of its experiment, kept back or not; `null` where it has none.
    pub first_row_seq: Option<u64>,
    /// `before`: it was in force before that row. `after`: it was not. `unseen`: there is no row yet.
    pub row_timing: String,
    /// The first entry that lets somebody see an outcome of it that was kept back; `null` where none does.
    pub first_look_seq: Option<u64>,
    /// `before`: it was in force by then. `after`: it was not. `unseen`: nothing could be seen yet.
    pub timing: String,
    /// Amendments after that entry.
    pub amended_after: u64,
    /// Deviations that were declared.
    pub deviations: u64,
}

/// Whether each plan was in force before its first row, and before its first outcome.
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
    /// Who holds that key.
    pub reader_holder: Option<String>,
    /// What for, as it was said; `null` where the event asks for no reason.
    pub purpose: Option<String>,
    /// The account that paid for it; `null` where it costs nothing.
    pub account: Option<String>,
    /// The charge to it, which may pay for several peeks.
    pub charge: Option<String>,
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

/// Whether each plan was in force before its first row, and before its first outcome.
///
/// # Errors
/// [`LedgerError`].
pub fn plans(ledger: &Ledger, state: &State) -> Result<View, LedgerError> {
    let plans = timings(state, &read(ledger, state, Signers::default())?);
    let mut view = View::of(&PlansShown {
        plans: plans.clone(),
    });
    plan_table(&mut view, &plans);
    Ok(view.with_next("clover audit peeks"))
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
    let signers = read(ledger, state, Signers::default())?;
    let decisions = decided(&signers);
    let mut view = View::of(&DecisionsShown {
        decisions: decisions.clone(),
    });
    decision_table(&mut view, &decisions);
    if signers.erasures > 0 {
        view.sentence(ERASED);
    }
    Ok(view.with_next("clover replay --all"))
}

pub(super) fn read<M: crate::projection::reader::Model>(
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

pub(super) fn signed(state: &State, signers: &Signers) -> Vec<SignedKind> {
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

pub(super) fn signer_table(view: &mut View, signers: &[SignedKind]) {
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

/// What is said of decisions where a subject was erased.
const ERASED: &str = "A decision that read the texts of an erased subject cannot be computed again: clover replay --all names each.";

pub(super) fn timings(state: &State, signers: &Signers) -> Vec<PlanTiming> {
    let all = state.fold::<Manifests>();
    let first_row = |record: &ManifestRecord| {
        let experiment = record.experiment.as_ref();
        experiment.and_then(|id| signers.first_rows.get(id).copied())
    };
    let plans = all.by_id.iter().map(|(manifest, record)| PlanTiming {
        manifest: manifest.clone(),
        experiment: record.experiment.clone(),
        versions: record.versions.len() as u64,
        first_row_seq: first_row(record),
        row_timing: match (trail::in_force_seq(record), first_row(record)) {
            (_, None) => "unseen",
            (Some(since), Some(row)) if since < row => "before",
            _ => "after",
        }
        .to_owned(),
        in_force_seq: trail::in_force_seq(record),
        first_look_seq: trail::first_seen_seq(all, record),
        timing: match Timing::of(all, record) {
            Timing::Before => "before",
            Timing::After => "after",
            Timing::Unseen => "unseen",
        }
        .to_owned(),
        amended_after: trail::amended_after(all, record),
        deviations: record.deviations.len() as u64,
    });
    plans.collect()
}

pub(super) fn plan_table(view: &mut View, plans: &[PlanTiming]) {
    if plans.is_empty() {
        return view.line("no plan was registered");
    }
    let seq = |seq: Option<u64>| seq.map_or("-".to_owned(), |seq| seq.to_string());
    let yes = |timing: &str, unseen: &str| match timing {
        "before" => "yes".to_owned(),
        "after" => "NO".to_owned(),
        _ => unseen.to_owned(),
    };
    let rows = plans.iter().map(|of| {
        vec![
            of.manifest.to_string(),
            of.versions.to_string(),
            seq(of.in_force_seq),
            seq(of.first_row_seq),
            yes(&of.row_timing, "-"),
            seq(of.first_look_seq),
            yes(&of.timing, "nothing was seen yet"),
            of.amended_after.to_string(),
            of.deviations.to_string(),
        ]
    });
    let head = [
        "plan",
        "versions",
        "in force at seq",
        "first row at seq",
        "in force before it",
        "first outcome seen at seq",
        "in force before that",
        "amended after",
        "deviations",
    ];
    view.table(&head, rows);
    if plans.iter().any(|of| of.row_timing == "after") {
        view.sentence(
            "An outcome is what was kept back: sealed or confirm labels, units of a gate. Rows and open labels that came before a plan could be read by whoever wrote it.",
        );
    }
}

pub(super) fn seen(ledger: &Ledger, state: &State) -> Result<Vec<PeekShown>, LedgerError> {
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
        reader_holder: of.reader.and_then(|key| holder(state, key)),
        purpose: of.purpose,
        account: of.account,
        charge: of.charge.map(|id| id.to_string()),
        given: of.given,
    });
    Ok(peeks.collect())
}

pub(super) fn peek_table(view: &mut View, peeks: &[PeekShown]) {
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
            match (&of.reader, &of.reader_holder) {
                (None, _) => "-".to_owned(),
                (Some(_), Some(holder)) => holder.clone(),
                (Some(key), None) => key.chars().take(8).collect(),
            },
            of.holder.clone().unwrap_or_else(|| "unknown".to_owned()),
            if of.given {
                purpose
            } else {
                format!("refused: {purpose}")
            },
            of.account.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let head = [
        "seq",
        "kind",
        "of",
        "events",
        "reader",
        "signed by",
        "what for",
        "account",
    ];
    view.table(&head, rows);
}

/// Roles whose entries decide something: what is computed, approved, committed or deployed.
const DECIDING: [MaySign; 3] = [
    MaySign::Role(Role::Approver),
    MaySign::Role(Role::Arbiter),
    MaySign::Role(Role::Releaser),
];

pub(super) fn decided(signers: &Signers) -> Vec<DecisionKind> {
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
            Way::Said if DECIDING.contains(&kind.signers()) => {
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

pub(super) fn decision_table(view: &mut View, decisions: &[DecisionKind]) {
    if decisions.is_empty() {
        return view.line("nothing was decided yet");
    }
    let rows = decisions.iter().map(|of| {
        vec![
            of.kind.clone(),
            of.events.to_string(),
            span(of.first_seq, of.last_seq),
            match of.check.as_str() {
                "again" => "by clover replay",
                "rule" => "judged by a rule",
                _ => "no",
            }
            .to_owned(),
            of.basis.clone(),
        ]
    });
    let head = ["kind", "events", "seq", "computed again", "from"];
    view.table(&head, rows);
    view.sentence(
        "This command computed nothing again: clover replay does. A verifier of another maker computes some of these, and says \
         which.",
    );
}
