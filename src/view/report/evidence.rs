//! Evidence for a framework: each requirement with the entries that support it, or the reason why it is not covered.

use std::collections::BTreeMap;

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::ledger::LedgerError;
use crate::ledger::State;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::holder;
use crate::session::expiry;
use crate::session::expiry::LogsFloor;
use crate::view::report::course;
use crate::view::report::course::Act;
use crate::view::report::experiment;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;
use crate::view::report::made::period;
use crate::view::report::registers;
use crate::view::report::requirements;
use crate::view::report::requirements::Requirement;
use crate::view::report::samples;
use crate::view::report::samples::SampleTerms;

/// What is said of a requirement that has entries.
const EVIDENCE: &str = "evidence";
/// What is said of one that has entries of some of its kinds.
const IN_PART: &str = "evidence, in part";
/// Days of ten years, of which three may be leap years.
const TEN_YEARS: u64 = 3_652;
/// What is said of one that has none.
const NOT_COVERED: &str = "NOT COVERED";

/// The report of the evidence for a framework; `terms` say how samples are drawn, where it has any.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    kind: ReportKind,
    (experiment, terms): (Option<&ExperimentId>, &SampleTerms),
) -> Result<Document, LedgerError> {
    let chronicle = source.chronicle(experiment)?;
    let all: Vec<&Requirement> = requirements::of(kind).collect();
    let (with, without): (Vec<&Requirement>, Vec<&Requirement>) =
        all.iter().partition(|of| has_entries(&chronicle, of));
    let head = DocumentHead {
        answer: answer(&all, with.len(), without.len()),
        people: None,
        period: period(&chronicle),
        rest: vec![
            "This report lists the entries that support each requirement. People judge whether it is met, with the rule itself at hand."
                .to_owned(),
            "Evidence for a requirement does not show that all of it is met.".to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let title = experiment.map_or_else(|| "Whole ledger".to_owned(), ToString::to_string);
    let mut out = Document::new(kind, title, head);
    out.facts.push(fact(
        Vec::new(),
        "requirements",
        "Requirements",
        Cell::count(all.len() as u64),
    ));
    let short = Shortfalls::of(source, &all)?;
    out.parts.push(overview(&chronicle, &all, &short));
    // What a change is about was often said before the range.
    let from_seq = 0;
    let whole = ReportSource {
        from_seq,
        ..*source
    }
    .chronicle(experiment)?;
    let acts = course::acts(&whole);
    let in_range = |act: &&Act<'_>| act.entry.seq >= source.from_seq;
    let recent: Vec<&Act<'_>> = acts.iter().filter(in_range).collect();
    out.signatures = course::signed_lines(&recent, source.state);
    let read = (experiment, &chronicle, &whole);
    out.parts.extend(registers::of(source, kind, read)?);
    out.appendices = registers::behind(kind, &chronicle);
    if kind == ReportKind::Soc2 {
        let (part, behind) = samples::chapters(source, kind, (experiment, terms))?;
        out.parts.push(part);
        out.appendices.push(behind);
    }
    out.appendices
        .extend(all.iter().map(|of| chapter(&chronicle, of, &short)));
    out.appendices
        .extend(behind(source.state, &chronicle, (&acts, &recent)));
    source.finish(out)
}

/// For how many requirements there is evidence, and for how many there is none.
fn answer(all: &[&Requirement], with: usize, without: usize) -> String {
    let all = counted(all.len() as u64, "requirement", "requirements");
    match without {
        0 => format!("Of {all} this ledger has some evidence for each."),
        1 => format!(
            "Of {all} this ledger has some evidence for {with}; 1 is not covered, with the reason."
        ),
        n => format!(
            "Of {all} this ledger has some evidence for {with}; {n} are not covered, each with the reason."
        ),
    }
}

pub(super) fn has_entries(chronicle: &Chronicle, of: &Requirement) -> bool {
    of.kinds.iter().any(|kind| chronicle.count(*kind) > 0)
}

/// What each requirement lacks, whatever entries of its kinds there are.
struct Shortfalls {
    by_code: BTreeMap<&'static str, String>,
}

impl Shortfalls {
    /// What no entry shows of each, and retention that is set shorter than the text asks.
    fn of(source: &ReportSource<'_>, all: &[&Requirement]) -> Result<Self, LedgerError> {
        let (classes, logs) = expiry::retained(source.ledger, source.state)?;
        let longest = classes.iter().map(|of| of.days).max().unwrap_or_default();
        let mut by_code = BTreeMap::new();
        for of in all {
            let kept = match (of.report, of.code) {
                (ReportKind::AnnexIv, "Art. 18") if longest < TEN_YEARS => Some(format!(
                    "ten years: the longest class is kept for {}",
                    counted(longest, "day", "days")
                )),
                (ReportKind::AnnexIv, "Art. 19(1), 26(6)") => match logs {
                    LogsFloor::Kept => None,
                    LogsFloor::Below(days, _) => Some(format!(
                        "six months: class logs is kept for {}",
                        counted(days, "day", "days")
                    )),
                    LogsFloor::Unsaid => {
                        Some("six months: nobody said how long class logs is kept".to_owned())
                    }
                },
                _ => None,
            };
            let own = (!of.lacks.is_empty()).then(|| of.lacks.to_owned());
            let both: Vec<String> = kept.into_iter().chain(own).collect();
            if !both.is_empty() {
                by_code.insert(of.code, both.join("; "));
            }
        }
        Ok(Self { by_code })
    }

    fn get(&self, of: &Requirement) -> Option<&String> {
        self.by_code.get(of.code)
    }
}

fn why_not(of: &Requirement) -> String {
    if of.kinds.is_empty() {
        return of.says.to_owned();
    }
    let kinds = of.kinds.iter().map(|kind| kind.as_str());
    let kinds: Vec<_> = kinds.collect();
    format!("the range has no entry of {}", kinds.join(", "))
}

/// Which kinds of a requirement stand on record, with how many entries, and which do not.
fn on_record(chronicle: &Chronicle, of: &Requirement) -> String {
    let (there, lacking): (Vec<&Kind>, Vec<&Kind>) = of
        .kinds
        .iter()
        .partition(|kind| chronicle.count(**kind) > 0);
    let counts = there
        .iter()
        .map(|kind| format!("{kind} {}", chronicle.count(**kind)));
    let mut text = counts.collect::<Vec<_>>().join(", ");
    if !lacking.is_empty() {
        let names: Vec<_> = lacking.iter().map(|kind| kind.as_str()).collect();
        text.push_str(&format!("; none of {}", names.join(", ")));
    }
    text
}

/// Every requirement at a glance.
fn overview(chronicle: &Chronicle, all: &[&Requirement], short: &Shortfalls) -> Chapter {
    let mut part = Chapter::new(
        "requirements",
        "Requirements",
        "Each requirement, as we read the rule, with the entries that support it. The appendices list all of them.",
    );
    let columns = [
        ("code", "requirement"),
        ("covered", "covered"),
        ("entries", "entries"),
        ("asks", "asks, in short"),
        ("shows", "on record"),
    ];
    let mut table = Table::new("requirements", "Requirements at a glance", &columns);
    for of in all {
        let entries: u64 = of.kinds.iter().map(|kind| chronicle.count(*kind)).sum();
        let lacks = short.get(of);
        let is_whole = lacks.is_none() && of.kinds.iter().all(|kind| chronicle.count(*kind) > 0);
        let covered = match (entries > 0, is_whole) {
            (true, true) => EVIDENCE,
            (true, false) => IN_PART,
            (false, _) => NOT_COVERED,
        };
        let mut shows = if entries > 0 {
            on_record(chronicle, of)
        } else {
            why_not(of)
        };
        if let Some(lacks) = lacks.filter(|_| entries > 0) {
            shows.push_str(&format!("; not covered: {lacks}"));
        }
        let newest = of
            .kinds
            .iter()
            .filter_map(|kind| chronicle.tallies.get(kind));
        let cells = vec![
            Cell::text(of.code),
            Cell::text(covered),
            Cell::count(entries),
            Cell::text(of.asks),
            Cell::text(shows),
        ];
        table.row_of(newest.map(|of| of.last_seq).collect(), cells);
    }
    part.table_or(table, "no requirement is known of this framework");
    part
}

/// One requirement with all of its entries.
fn chapter(chronicle: &Chronicle, of: &Requirement, short: &Shortfalls) -> Chapter {
    let mut part = Chapter::new(key(of), format!("{}: {}", of.code, of.asks), "");
    if !has_entries(chronicle, of) {
        part.lacks(of.code, why_not(of));
        return part;
    }
    part.about = format!(
        "Entries of these kinds, where they are on record, show: {}",
        of.says
    );
    let columns = [
        ("kind", "kind"),
        ("count", "entries"),
        ("first", "first"),
        ("last", "last"),
    ];
    let mut table = Table::new("entries", format!("Entries for {}", of.code), &columns);
    let mut lacking = Vec::new();
    for kind in of.kinds {
        let Some(tally) = chronicle.tallies.get(kind) else {
            lacking.push(kind.as_str());
            continue;
        };
        let mut events: Vec<u64> = chronicle.of(*kind).map(|entry| entry.seq).collect();
        if events.is_empty() {
            events = vec![tally.first_seq, tally.last_seq];
        }
        let cells = vec![
            Cell::text(kind.as_str()),
            Cell::count(tally.count),
            Cell::count(tally.first_seq),
            Cell::count(tally.last_seq),
        ];
        table.row_of(events, cells);
    }
    part.table_or(table, "");
    if !lacking.is_empty() {
        let what = lacking.join(", ");
        part.lacks(what, "the range has no entry of these kinds");
    }
    if let Some(lacks) = short.get(of) {
        part.lacks(lacks.as_str(), "no entry of the log shows it");
    }
    part
}

/// The key of a requirement's chapter: its place among all.
fn key(of: &Requirement) -> &'static str {
    const KEYS: [&str; 32] = [
        "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
        "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27",
        "r28", "r29", "r30", "r31", "r32",
    ];
    let at = requirements::of(of.report).position(|other| other.code == of.code);
    at.and_then(|at| KEYS.get(at)).copied().unwrap_or("r0")
}

/// What every framework asks for beside: signatures, people, changes, the population of entries.
fn behind(
    state: &State,
    chronicle: &Chronicle,
    (acts, recent): (&[Act<'_>], &[&Act<'_>]),
) -> Vec<Chapter> {
    let mut signed = Chapter::new(
        "signatures",
        "Signatures of people",
        "Printed name, date, time and meaning, as each person signed them, and the holder of the key.",
    );
    let all: Vec<&Act<'_>> = acts.iter().collect();
    let mut table = course::signatures(&all, state);
    let range = chronicle.from_seq..=chronicle.through_seq;
    table
        .rows
        .retain(|row| row.events.iter().all(|seq| range.contains(seq)));
    signed.table_or(table, "no person approved or refused anything in the range");
    let mut people = Chapter::new(
        "people-and-keys",
        "People and keys",
        "Which roles each key holds at the end of the range, and whether it still may sign.",
    );
    let columns = [
        ("holder", "holder"),
        ("standing", "standing"),
        ("roles", "roles"),
        ("human", "a person"),
        ("key", "key"),
    ];
    let mut table = Table::new("keys", "Keys", &columns);
    for (id, of) in &state.keyring.keys {
        let standing = if of.end.is_some() { "ended" } else { "live" };
        let cells = vec![
            Cell::text(holder(state, id)),
            Cell::text(standing),
            Cell::text(of.roles.to_string()),
            Cell::Flag(of.human),
            Cell::text(id.to_string()),
        ];
        table.row(of.added_seq, cells);
    }
    people.table_or(table, "no key is on record");
    let mut changes = Chapter::new(
        "changes",
        "Changes in the range",
        "Each step from an opening to a deployment, and what came of it: the population to draw samples from.",
    );
    let table = course::table(
        "acts",
        &counted(recent.len() as u64, "act", "acts"),
        recent,
        state,
    );
    changes.table_or(table, "no change is on record in the range");
    let mut population = Chapter::new(
        "population",
        "Population",
        "Entries by kind, so that a sample has a denominator.",
    );
    population.table_or(experiment::kinds(chronicle), "the range has no entry");
    vec![signed, people, changes, population]
}
