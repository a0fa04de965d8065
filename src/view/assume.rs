//! What every claim rests on, with what is known of it, and waivers by two keys.
//!
//! Age, staleness and expiry are by ledger time, so that the same answer is given of an earlier entry.

use serde::Serialize;

use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::payload::assumption::Assumption;
use crate::ground::shell;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::projection::assumptions;
use crate::projection::assumptions::Evidence;
use crate::projection::assumptions::Standing;
use crate::projection::assumptions::Waiver;
use crate::session::waivers::Agreement;
use crate::view::View;
use crate::view::appended;
use crate::view::text::short_time;

/// What a status rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EvidenceRow {
    /// The part of the assumption that it is about.
    pub part: &'static str,
    /// The entry that showed it.
    pub seq: u64,
    /// When that entry was recorded.
    pub at: Timestamp,
    /// Seconds of ledger time since.
    pub age_seconds: i64,
}

/// One part of an assumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartRow {
    /// Its name.
    pub part: &'static str,
    /// What is known of it, as in `status`.
    pub status: &'static str,
    /// The newest entry that showed something of it; `null` where none did.
    pub seq: Option<u64>,
    /// Until when that holds; `null` where it does not end.
    pub expires_at: Option<Timestamp>,
}

/// The agreement of a second key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgreedBy {
    /// The entry that says it.
    pub seq: u64,
    /// The id of the key.
    pub author: String,
}

/// A waiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaiverRow {
    /// The entry that proposed it.
    pub seq: u64,
    /// The id of that entry's event.
    pub id: EventId,
    /// The id of the key that proposed it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The second key; `null` while none agreed.
    pub agreed: Option<AgreedBy>,
}

/// An assumption, as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AssumptionRow {
    /// Its code, such as `CLOVER.J2`.
    pub code: Assumption,
    /// The experiment in which it stands so; `null` where it is about the whole ledger.
    pub experiment: Option<ExperimentId>,
    /// What it says.
    pub statement: &'static str,
    /// `pass`, `untested`, `warn`, `inconclusive`, `stale`, `fail` or `waived`.
    pub status: &'static str,
    /// What that rests on; `null` where nobody looked.
    pub evidence: Option<EvidenceRow>,
    /// When the waiver or the evidence ends; `null` where neither does.
    pub expires_at: Option<Timestamp>,
    /// Its parts.
    pub parts: Vec<PartRow>,
    /// The waiver in force; `null` where none is.
    pub waiver: Option<WaiverRow>,
    /// A waiver that waits for its second key; `null` where none does.
    pub proposed: Option<WaiverRow>,
}

/// Every assumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AssumptionList {
    /// When the newest entry was recorded: ages count to it.
    pub ledger_time: Timestamp,
    /// Those of the whole ledger, then those of each experiment.
    pub assumptions: Vec<AssumptionRow>,
}

/// One assumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AssumptionShown {
    /// Its code, such as `CLOVER.J2`.
    pub code: Assumption,
    /// What it says.
    pub statement: &'static str,
    /// Which claims use it.
    pub used_by: &'static str,
    /// What shows whether it holds.
    pub diagnostic: &'static str,
    /// What to do where it does not.
    pub mitigation: &'static str,
    /// When the newest entry was recorded: ages count to it.
    pub ledger_time: Timestamp,
    /// How it stands, by experiment.
    pub rows: Vec<AssumptionRow>,
}

/// A waiver that two keys agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaiverFacts {
    /// How the assumption stands after it: `waived`, where nothing speaks against it.
    pub status: &'static str,
}

/// Ledger time: that of the newest entry.
pub fn ledger_time(state: &State) -> Timestamp {
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
    at.to_string()[..10].to_owned()
}

fn dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}

/// When the waiver in force ends, else the evidence.
fn until(row: &Standing) -> Option<Timestamp> {
    let waived = row.waiver.as_ref().map(|waiver| waiver.expires_at);
    waived.or(row.evidence.and_then(|(_, evidence)| evidence.expires_at))
}

fn waiver(of: &Waiver) -> WaiverRow {
    let agreed = of.agreed.map(|agreed| AgreedBy {
        seq: agreed.seq,
        author: agreed.author.to_string(),
    });
    WaiverRow {
        seq: of.seq,
        id: of.id,
        author: of.author.to_string(),
        reason: of.reason.clone(),
        expires_at: of.expires_at,
        agreed,
    }
}

fn facts(row: &Standing, now: Timestamp) -> AssumptionRow {
    let evidence = row.evidence.map(|(part, evidence)| EvidenceRow {
        part,
        seq: evidence.seq,
        at: evidence.at,
        age_seconds: seconds(evidence.at, now),
    });
    let parts = row.parts.iter().map(|(part, status, evidence)| PartRow {
        part,
        status: status.as_str(),
        seq: evidence.map(|evidence| evidence.seq),
        expires_at: evidence.and_then(|evidence| evidence.expires_at),
    });
    AssumptionRow {
        code: row.code,
        experiment: row.experiment.clone(),
        statement: assumptions::entry(row.code).statement,
        status: row.status.as_str(),
        evidence,
        expires_at: until(row),
        parts: parts.collect(),
        waiver: row.waiver.as_ref().map(waiver),
        proposed: row.proposed.as_ref().map(waiver),
    }
}

fn table<'a>(view: &mut View, rows: impl Iterator<Item = &'a Standing>, now: Timestamp) {
    let rows = rows.map(|row| {
        let evidence = row.evidence.map(|(_, evidence)| evidence);
        vec![
            row.code.to_string(),
            row.status.as_str().to_owned(),
            dash(evidence, |evidence| evidence.seq.to_string()),
            dash(evidence, |evidence| age(evidence.at, now)),
            dash(until(row), day),
            assumptions::entry(row.code).statement.to_owned(),
        ]
    });
    view.table(&["code", "status", "seq", "age", "until", "says"], rows);
}

fn pending(row: &Standing) -> Option<String> {
    let waiver = row.proposed.as_ref()?;
    let of = of_experiment(row.experiment.as_ref());
    let (seq, code) = (waiver.seq, row.code);
    Some(format!(
        "waiver of {code} at seq {seq} waits for a second key: clover assume waive {code}{of} --countersign"
    ))
}

fn of_experiment(id: Option<&ExperimentId>) -> String {
    id.map_or(String::new(), |id| {
        format!(" --experiment {}", shell::word(id))
    })
}

/// Every assumption of the ledger and of some experiments.
pub fn list(state: &State, experiments: &[ExperimentId]) -> View {
    let now = ledger_time(state);
    let rows = assumptions::rows(state, now, experiments);
    let mut view = View::of(&AssumptionList {
        ledger_time: now,
        assumptions: rows.iter().map(|row| facts(row, now)).collect(),
    });
    view.line(format!("ledger time {}", short_time(now)));
    view.gap();
    let of_ledger = rows.iter().filter(|row| row.experiment.is_none());
    table(&mut view, of_ledger, now);
    for experiment in experiments {
        view.gap();
        view.line(format!("experiment {experiment}"));
        let own = rows.iter();
        let own = own.filter(|row| row.experiment.as_ref() == Some(experiment));
        table(&mut view, own, now);
    }
    if experiments.is_empty() {
        view.gap();
        view.line("no experiment yet; in each, untested until something is found:");
        let codes = Assumption::ALL.into_iter();
        let codes = codes.filter(|code| !code.is_of_ledger());
        let rows = codes.map(|code| assumptions::standing(state, now, code, None));
        let rows: Vec<_> = rows.collect();
        table(&mut view, rows.iter(), now);
    }
    for line in rows.iter().filter_map(pending) {
        view.line(line);
    }
    view
}

/// One assumption: what it says, and how it stands in the ledger or in some experiments.
pub fn show(state: &State, code: Assumption, experiments: &[ExperimentId]) -> View {
    let now = ledger_time(state);
    let mut rows = assumptions::rows(state, now, experiments);
    rows.retain(|row| row.code == code);
    if rows.is_empty() {
        rows.push(assumptions::standing(state, now, code, None));
    }
    let entry = assumptions::entry(code);
    let mut view = View::of(&AssumptionShown {
        code,
        statement: entry.statement,
        used_by: entry.used_by,
        diagnostic: entry.diagnostic,
        mitigation: entry.mitigation,
        ledger_time: now,
        rows: rows.iter().map(|row| facts(row, now)).collect(),
    });
    view.pairs([
        ("assumption", code.to_string()),
        ("says", entry.statement.to_owned()),
        ("used by", entry.used_by.to_owned()),
        ("shown by", entry.diagnostic.to_owned()),
        ("else", entry.mitigation.to_owned()),
    ]);
    for row in &rows {
        one(&mut view, row, now);
    }
    view
}

/// Adds how an assumption stands in one place.
fn one(view: &mut View, row: &Standing, now: Timestamp) {
    let experiment = row.experiment.as_ref();
    let place = experiment.map_or("the ledger", ExperimentId::as_str);
    let mut pairs = vec![
        ("of", place.to_owned()),
        ("status", row.status.as_str().to_owned()),
    ];
    if let Some(waiver) = &row.waiver {
        let second = waiver.agreed.map_or(0, |agreed| agreed.seq);
        let (seq, until) = (waiver.seq, day(waiver.expires_at));
        let reason = &waiver.reason;
        pairs.push((
            "waived",
            format!("at seq {seq} and {second}, until {until}: {reason}"),
        ));
    }
    view.gap();
    view.pairs(pairs);
    let parts = row.parts.iter().map(|(name, status, evidence)| {
        let ends = |evidence: Evidence| evidence.expires_at;
        vec![
            (*name).to_owned(),
            status.as_str().to_owned(),
            dash(*evidence, |evidence| evidence.seq.to_string()),
            dash(*evidence, |evidence| age(evidence.at, now)),
            dash(evidence.and_then(ends), day),
        ]
    });
    view.table(&["part", "status", "seq", "age", "until"], parts);
    if let Some(line) = pending(row) {
        view.line(line);
    }
}

/// Adds to the view of a waiver's proposal that it waits for a second key.
pub fn proposed(mut view: View, code: Assumption, experiment: Option<&ExperimentId>) -> View {
    view.line("it holds once another approver's key agrees");
    let of = of_experiment(experiment);
    view.with_next(format!(
        "clover assume waive {code}{of} --countersign --key KEY"
    ))
}

/// Adds to the view of an agreement how the assumption stands; a dry run stays as it is.
pub fn agreed(view: View, code: Assumption, agreement: &Agreement) -> View {
    if !agreement.submission.is_appended() {
        return view;
    }
    let status = agreement.status.as_str();
    let mut view = appended::and(view, &WaiverFacts { status });
    view.line(format!("{code} {status}"));
    view
}

/// The view of a waiver that both keys signed at once, from those of its proposal and its agreement.
pub fn agreed_at_once(mut view: View, second: View, agreement: &Agreement) -> View {
    let status = agreement.status.as_str();
    view = appended::and(view, &WaiverFacts { status });
    view.blocks.extend(second.blocks);
    view.events.extend(second.events);
    view.checkpoint = second.checkpoint;
    view
}
