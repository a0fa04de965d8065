//! The report of an experiment: all of it, with denominators, so that what was begun and never reported is seen.

use std::collections::BTreeSet;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::DesignId;
use crate::event::id::ExperimentId;
use crate::event::id::ManifestId;
use crate::event::payload::estimated::TransportState;
use crate::event::payload::label::DesignPurpose;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::designs::Designs;
use crate::projection::experiments::Experiments;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::report::shown;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::session::confirm;
use crate::view::gate::page::Page;
use crate::view::gate::verdict;
use crate::view::report::compared;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::environments;
use crate::view::report::estimate;
use crate::view::report::gate_steps;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::made::period;
use crate::view::report::model_runs;
use crate::view::report::picked::PickedTable;
use crate::view::report::values;
use crate::view::report::values::AnsweredValues;
use crate::view::word;

/// Gates as they were decided.
pub(super) const GATES: PickedTable = PickedTable {
    key: "gates",
    title: "Gates that were decided",
    kinds: &[Kind::GateDecided],
    columns: &[
        ("gate", "gate", "gate"),
        ("outcome", "outcome", "outcome"),
        ("n", "n", "units"),
        ("log_e", "log_e", "log of evidence"),
        ("class", "class", "test"),
        ("day", "day", "decided on"),
    ],
    plot: None,
};
/// Iterations as they ended.
const ITERATIONS: PickedTable = PickedTable {
    key: "iterations",
    title: "Iterations that ended",
    kinds: &[Kind::IterationClosed],
    columns: &[
        ("iteration", "iteration", "iteration"),
        ("outcome", "outcome", "outcome"),
        ("reason", "reason", "reason"),
        ("day", "day", "ended on"),
    ],
    plot: None,
};
/// The column of the reason among them.
const REASON: usize = 2;
/// What was published.
const REPORTS: PickedTable = PickedTable {
    key: "reports",
    title: "Reports that were published",
    kinds: &[Kind::ReportPublished],
    columns: &[
        ("iteration", "iteration", "iteration"),
        ("bundle_hash", "bundle", "bundle"),
        ("day", "day", "published on"),
    ],
    plot: None,
};

/// What was begun and how it ended, for one kind of thing.
pub(super) struct Tally {
    pub what: &'static str,
    pub begun: Vec<u64>,
    pub ended: u64,
    pub says: String,
}

/// The report of an experiment. `said` is what `clover estimate` says of the values that are on record.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    experiment: &ExperimentId,
    (chronicle, said): (&Chronicle, &[AnsweredValues]),
) -> Result<Document, LedgerError> {
    let all = tallies(chronicle, source.state, experiment);
    let begun: usize = all.iter().map(|of| of.begun.len()).sum();
    let open: u64 = all
        .iter()
        .map(|of| (of.begun.len() as u64).saturating_sub(of.ended))
        .sum();
    let known = source.state.fold::<Experiments>().by_id.get(experiment);
    let closed = known.and_then(|of| of.closed_seq);
    let standing = closed.map_or_else(
        || format!("Experiment {experiment} is open."),
        |seq| format!("Experiment {experiment} was closed at seq {seq}."),
    );
    let ends = match (begun, open) {
        (0, _) => "Nothing was begun in it.".to_owned(),
        (all, 0) => format!(
            "All that was begun in it has an end on record: {}.",
            counted(all as u64, "item", "items")
        ),
        (all, open) => format!(
            "{open} of {} that were begun in it have no end on record.",
            counted(all as u64, "item", "items")
        ),
    };
    let head = DocumentHead {
        answer: format!("{standing} {ends}"),
        people: None,
        period: period(chronicle),
        rest: values::answers(said).into_iter().chain(gate_answers(source, chronicle)).chain([
            "This report counts what was begun beside what was reported: successes alone would mislead.".to_owned(),
            "Each row counts entries of the log, those that failed or were withdrawn too.".to_owned(),
            "Nothing is claimed of work that was never recorded in this ledger.".to_owned(),
        ]).collect(),
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Experiment, experiment.as_str(), head);
    let signed = course::acts(chronicle);
    out.signatures = course::signed_lines(&signed.iter().collect::<Vec<_>>(), source.state);
    if let Some(of) = known {
        let title = Cell::text(of.title.clone());
        out.facts
            .push(fact(vec![of.registered_seq], "title", "Title", title));
    }
    let acts = acts(chronicle);
    let (since, people): (Vec<&Act<'_>>, Vec<&Act<'_>>) = acts.iter().partition(|act| act.is_since);
    let table = |key, title, of: &[&Act<'_>]| course::table(key, title, of, source.state);
    out.head.since = Some(table("since", "Guardrails, drift, rollbacks", &since));
    out.parts = parts(chronicle, &all, said);
    let mut changes = Chapter::new(
        "changes",
        "Who did what",
        "Each step: of plans and gates, of calibration and audits, of patches from an opening to a deployment.",
    );
    changes.table_or(
        table("acts", "Acts in their order", &people),
        "no step is on record",
    );
    let mut plans = Chapter::new(
        "recorded",
        "What was recorded",
        "Entries by kind, the bulk too.",
    );
    plans.table_or(kinds(chronicle), "nothing is on record");
    out.appendices = vec![changes, plans];
    source.finish(out)
}

fn parts(chronicle: &Chronicle, all: &[Tally], said: &[AnsweredValues]) -> Vec<Chapter> {
    let mut denominators = Chapter::new(
        "denominators",
        "What was begun, and what came of it",
        "What was registered against what was reported: a gap is something that was begun and has no end on record.",
    );
    let columns = [
        ("what", "what"),
        ("open", "without an end"),
        ("begun", "begun"),
        ("ended", "ended"),
        ("says", "how"),
    ];
    let mut table = Table::new("denominators", "Begun and ended", &columns);
    for of in all {
        let begun = of.begun.len() as u64;
        let cells = vec![
            Cell::text(of.what),
            Cell::count(begun.saturating_sub(of.ended)),
            Cell::count(begun),
            Cell::count(of.ended),
            Cell::text(of.says.clone()),
        ];
        table.row_of(of.begun.clone(), cells);
    }
    denominators.table_or(table, "nothing was begun");
    let part = |key, title: &str, about: &str| Chapter::new(key, title, about);
    let mut gates = part("gates", "Gates", "Sequential tests of candidates.");
    gates.table_or(GATES.of(chronicle, |_| true), "no gate was decided");
    let mut iterations = part(
        "iterations",
        "Iterations",
        "Rounds of patches to the rubric.",
    );
    let mut ended = ITERATIONS.of(chronicle, |_| true);
    for row in &mut ended.rows {
        if let Some(Cell::Text(reason)) = row.cells.get_mut(REASON) {
            *reason = shown::reason(reason);
        }
    }
    iterations.table_or(ended, "no iteration ended");
    iterations.table_or(REPORTS.of(chronicle, |_| true), "no report was published");
    let mut worth = part(
        "values",
        "Values and audits",
        "What was estimated, as clover estimate shows it now, and whether it transfers.",
    );
    worth.table_or(
        values::audits(chronicle),
        "no audit of transport is on record",
    );
    estimate::newest(&mut worth, said);
    let mut parts = vec![denominators, gates, iterations, worth];
    let is_compared = all.iter().any(|of| of.what == compared::WHAT);
    parts.extend(compared::chapter(chronicle, is_compared));
    parts.extend(environments::chapter(chronicle));
    parts
}

/// Every step that a report tells of, in the order of the log: those of patches, of gates, of values.
fn acts(chronicle: &Chronicle) -> Vec<Act<'_>> {
    let mut all = course::acts(chronicle);
    let others = gate_steps::steps(chronicle).into_iter();
    for act in others.chain(estimate::acts(chronicle)) {
        if all.iter().all(|known| known.entry.seq != act.entry.seq) {
            all.push(act);
        }
    }
    all.sort_by_key(|act| act.entry.seq);
    all
}

/// What each gate that was decided found, and what may be claimed of it.
fn gate_answers(source: &ReportSource<'_>, chronicle: &Chronicle) -> Vec<String> {
    let decided = distinct(chronicle, |payload| match payload {
        Payload::GateDecided(said) => Some(said.gate.to_string()),
        _ => None,
    });
    let claims = verdict::graded_claims(source.state);
    let own = claims.filter(|(id, _)| decided.iter().any(|(name, _)| name == id.as_str()));
    let found = |id: &ManifestId| {
        let page = Page::read(source.ledger, source.state, id).ok()?;
        Some(page.checked_facts().ok()?.answer.text)
    };
    own.map(|(id, said)| {
        let words = found(id)
            .unwrap_or_else(|| format!("what it found cannot be read again. {}", said.words));
        format!("Gate {id}: {words}")
    })
    .collect()
}

/// Entries for which `key` gives a name, once a name.
fn distinct<'c>(
    chronicle: &'c Chronicle,
    key: impl Fn(&'c Payload) -> Option<String>,
) -> Vec<(String, &'c ChronicleEntry)> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for entry in &chronicle.entries {
        if let Some(name) = key(&entry.event.payload)
            && seen.insert(name.clone())
        {
            out.push((name, entry));
        }
    }
    out
}

fn seqs_of(found: &[(String, &ChronicleEntry)]) -> Vec<u64> {
    found.iter().map(|(_, entry)| entry.seq).collect()
}

fn tallies(chronicle: &Chronicle, state: &State, experiment: &ExperimentId) -> Vec<Tally> {
    let runs = [
        model_runs::judges(chronicle),
        model_runs::optimizers(chronicle),
    ];
    let mut all = vec![
        gates(chronicle),
        iterations(chronicle),
        candidates(chronicle),
        sealed(chronicle),
        confirm(chronicle),
        designs(chronicle, state, experiment),
        probes(chronicle, state, experiment),
        charges(chronicle, experiment),
        audits(chronicle),
    ];
    let seldom = [
        compared::tally(chronicle, state, experiment),
        environments::tally(chronicle),
    ];
    all.extend(seldom.into_iter().filter(|of| !of.begun.is_empty()));
    // Without a model of its own an experiment has nothing to say of them.
    all.extend(runs.into_iter().filter(|of| !of.begun.is_empty()));
    all
}

/// Designs of labels, of which those without a label are open.
fn designs(chronicle: &Chronicle, state: &State, experiment: &ExperimentId) -> Tally {
    let known = state.fold::<Designs>().by_experiment.get(experiment);
    let of = |name: &DesignId| known.and_then(|known| known.designs.get(name));
    let registered = distinct(chronicle, |payload| match payload {
        Payload::LabelDesignRegistered(said) => Some(said.design.to_string()),
        _ => None,
    });
    let mut tally = Tally {
        what: "label designs",
        begun: seqs_of(&registered),
        ended: 0,
        says: String::new(),
    };
    let (mut open, mut sealed, mut revealed) = (0, 0, 0);
    for (name, _) in &registered {
        let name: Option<DesignId> = name.parse().ok();
        if let Some(design) = name.as_ref().and_then(of) {
            open += design.open;
            sealed += design.sealed;
            revealed += design.revealed;
            tally.ended += u64::from(design.open + design.sealed > 0);
        }
    }
    tally.says = format!(
        "{}, {}, {revealed} of them revealed",
        counted(open, "open label", "open labels"),
        counted(sealed, "sealed label", "sealed labels"),
    );
    tally
}

/// Designs for audits: labels that were sealed, or revealed, and no audit reads.
fn probes(chronicle: &Chronicle, state: &State, experiment: &ExperimentId) -> Tally {
    let registered = distinct(chronicle, |payload| match payload {
        Payload::LabelDesignRegistered(said) if said.purpose == DesignPurpose::Audit => {
            Some(said.design.to_string())
        }
        _ => None,
    });
    let audited = distinct(chronicle, |payload| match payload {
        Payload::TransportTested(said) => Some(said.design.to_string()),
        Payload::EnvironmentsTested(said) => Some(said.design.to_string()),
        _ => None,
    });
    let audited: BTreeSet<&String> = audited.iter().map(|(name, _)| name).collect();
    let known = state.fold::<Designs>().by_experiment.get(experiment);
    let left = registered
        .iter()
        .filter(|(name, _)| !audited.contains(name));
    let (mut waiting, mut seen) = (0, 0);
    for (name, _) in left.clone() {
        let name: Option<DesignId> = name.parse().ok();
        let design = name.and_then(|name| known?.designs.get(&name));
        let Some(design) = design else { continue };
        let is_seen = design.open + design.revealed > 0;
        seen += u64::from(is_seen);
        waiting += u64::from(!is_seen && design.sealed > 0);
    }
    Tally {
        what: "designs for audits",
        begun: seqs_of(&registered),
        ended: (registered.len() - left.count()) as u64,
        says: format!(
            "{seen} with labels that could be seen and no audit, {waiting} sealed and not opened"
        ),
    }
}

/// Charges for sealed labels, of which those that no entry names paid for nothing.
fn charges(chronicle: &Chronicle, experiment: &ExperimentId) -> Tally {
    let entries = chronicle.of(Kind::BudgetCharged).filter(|entry| {
        let named = match &entry.event.payload {
            Payload::BudgetCharged(said) => said.purpose.as_str(),
            _ => "",
        };
        entry.event.experiment() == Some(experiment)
            || chronicle.charged.contains_key(&entry.event.id)
            || confirm::is_charge_of(named, experiment)
    });
    let charges: Vec<&ChronicleEntry> = entries.collect();
    let used = charges
        .iter()
        .filter(|entry| chronicle.charged.contains_key(&entry.event.id));
    let used = used.count() as u64;
    Tally {
        what: "charges for sealed labels",
        begun: charges.iter().map(|entry| entry.seq).collect(),
        ended: used,
        says: format!(
            "{} that paid for labels",
            counted(used, "charge", "charges")
        ),
    }
}

fn gates(chronicle: &Chronicle) -> Tally {
    let planned = distinct(chronicle, |payload| match payload {
        Payload::ManifestRegistered(said) if said.manifest.test.is_some() => {
            Some(said.manifest.manifest.to_string())
        }
        _ => None,
    });
    let names: BTreeSet<_> = planned.iter().map(|(name, _)| name.clone()).collect();
    let decided = distinct(chronicle, |payload| match payload {
        Payload::GateDecided(said) => Some(said.gate.to_string()),
        _ => None,
    });
    let ended = decided.iter().filter(|(name, _)| names.contains(name));
    Tally {
        what: "planned gates",
        begun: seqs_of(&planned),
        ended: ended.count() as u64,
        says: format!(
            "{} opened, {}, {} decided, {}",
            chronicle.count(Kind::GateOpened),
            counted(chronicle.count(Kind::GateLooked), "look", "looks"),
            chronicle.count(Kind::GateDecided),
            counted(
                chronicle.count(Kind::PromotionIssued),
                "promotion",
                "promotions"
            )
        ),
    }
}

fn iterations(chronicle: &Chronicle) -> Tally {
    let opened = distinct(chronicle, |payload| match payload {
        Payload::IterationOpened(said) => Some(said.iteration.to_string()),
        _ => None,
    });
    let reported = distinct(chronicle, |payload| match payload {
        Payload::ReportPublished(said) => Some(said.iteration.to_string()),
        _ => None,
    });
    Tally {
        what: "iterations",
        begun: seqs_of(&opened),
        ended: chronicle.count(Kind::IterationClosed),
        says: format!(
            "{} paused for labels, {} with a published report",
            chronicle.count(Kind::IterationPausedForLabels),
            reported.len()
        ),
    }
}

fn candidates(chronicle: &Chronicle) -> Tally {
    let proposed = distinct(chronicle, |payload| match payload {
        Payload::PatchProposed(said) => Some(said.patch.to_string()),
        _ => None,
    });
    let put = distinct(chronicle, |payload| match payload {
        Payload::GateEvaluated(said) => Some(format!("{} {}", said.iteration, said.candidate)),
        _ => None,
    });
    let ends = distinct(chronicle, |payload| match payload {
        Payload::PatchAccepted(said) => Some(said.patch.to_string()),
        Payload::PatchRejected(said) => said.patch.as_ref().map(ToString::to_string),
        Payload::PatchWithdrawn(said) => Some(said.patch.to_string()),
        _ => None,
    });
    let names: BTreeSet<_> = proposed.iter().map(|(name, _)| name.clone()).collect();
    let ended = ends.iter().filter(|(name, _)| names.contains(name)).count();
    Tally {
        what: "proposed patches",
        begun: seqs_of(&proposed),
        ended: ended as u64,
        says: format!(
            "{} put to criteria, {} accepted, {}, {} withdrawn",
            counted(put.len() as u64, "candidate", "candidates"),
            chronicle.count(Kind::PatchAccepted),
            counted(
                chronicle.count(Kind::PatchRejected),
                "rejection",
                "rejections"
            ),
            chronicle.count(Kind::PatchWithdrawn)
        ),
    }
}

fn sealed(chronicle: &Chronicle) -> Tally {
    let sealed = distinct(chronicle, |payload| match payload {
        Payload::PlanSealed(said) => Some(said.manifest.to_string()),
        _ => None,
    });
    Tally {
        what: "sealed plans",
        begun: seqs_of(&sealed),
        ended: chronicle.count(Kind::PlanRevealed),
        says: format!("{} revealed", chronicle.count(Kind::PlanRevealed)),
    }
}

fn confirm(chronicle: &Chronicle) -> Tally {
    let sealed = distinct(chronicle, |payload| match payload {
        Payload::CandidatesSealed(said) => Some(said.iteration.to_string()),
        _ => None,
    });
    Tally {
        what: "sealed sets of candidates",
        begun: seqs_of(&sealed),
        ended: chronicle.count(Kind::ConfirmUnsealed),
        says: format!(
            "confirm labels opened {}",
            times(chronicle.count(Kind::ConfirmUnsealed))
        ),
    }
}

fn audits(chronicle: &Chronicle) -> Tally {
    let all: Vec<_> = chronicle.of(Kind::TransportTested).collect();
    let states = all.iter().filter_map(|entry| match &entry.event.payload {
        Payload::TransportTested(said) => Some(said.state),
        _ => None,
    });
    let states: Vec<_> = states.collect();
    let says = [
        TransportState::Pass,
        TransportState::Fail,
        TransportState::Inconclusive,
        TransportState::NotChecked,
        TransportState::NotGraded,
    ]
    .into_iter()
    .filter_map(|state| {
        let count = states.iter().filter(|of| **of == state).count();
        (count > 0).then(|| format!("{count} {}", word(&state).replace('_', " ")))
    });
    Tally {
        what: "audits of transport",
        begun: all.iter().map(|entry| entry.seq).collect(),
        ended: all.len() as u64,
        says: says.collect::<Vec<_>>().join(", "),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    }
}

/// How often each kind stands in a range.
pub(super) fn kinds(chronicle: &Chronicle) -> Table {
    let columns = [
        ("kind", "kind"),
        ("count", "entries"),
        ("first", "first"),
        ("last", "last"),
    ];
    let mut table = Table::new("kinds", "Entries by kind", &columns);
    for (kind, of) in &chronicle.tallies {
        let cells = vec![
            Cell::text(kind.as_str()),
            Cell::count(of.count),
            Cell::count(of.first_seq),
            Cell::count(of.last_seq),
        ];
        table.row_of(vec![of.first_seq, of.last_seq], cells);
    }
    table
}
