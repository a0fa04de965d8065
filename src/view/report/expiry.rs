//! What expires when: everything with a date, the earliest first, so that what is overdue stands on top.

use crate::ground::time::Timestamp;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::expiry::DatedThing;
use crate::session::expiry::ExpiryList;
use crate::session::expiry::LOGS;
use crate::session::expiry::LOGS_DAYS_MIN;
use crate::session::expiry::LogsFloor;
use crate::view::report::course;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::fact;

/// The time that a list is held against, and the time before which it lists.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryScope {
    /// Only what is before it.
    pub before: Option<Timestamp>,
    /// What is past it is overdue.
    pub now: Timestamp,
}

impl ExpiryScope {
    /// What is listed.
    pub fn of<'l>(&self, list: &'l ExpiryList) -> Vec<&'l DatedThing> {
        let before = self.before;
        let things = list.things.iter();
        let listed = things.filter(|of| before.is_none_or(|before| of.at < before));
        listed.collect()
    }
}

/// A thing with a date in the words of a row: date, standing, kind, name, experiment, basis, what holds then.
pub fn words(of: &DatedThing, now: Timestamp) -> [String; 7] {
    let experiment = of.experiment.as_ref();
    [
        of.at.to_string(),
        standing(of, now).to_owned(),
        of.kind.as_str().to_owned(),
        of.name.clone(),
        experiment.map_or_else(String::new, ToString::to_string),
        of.basis.clone(),
        of.kind.then().to_owned(),
    ]
}

/// The columns of [`words`].
pub const COLUMNS: [(&str, &str); 7] = [
    ("date", "date"),
    ("standing", "standing"),
    ("kind", "what"),
    ("name", "name"),
    ("experiment", "experiment"),
    ("basis", "basis"),
    ("then", "once it has passed"),
];

/// Whether it is past its date.
fn standing(of: &DatedThing, now: Timestamp) -> &'static str {
    if of.is_overdue(now) {
        "OVERDUE"
    } else {
        "to come"
    }
}

/// The list of what expires when.
///
/// # Errors
/// [`LedgerError`].
pub fn document(
    source: &ReportSource<'_>,
    list: &ExpiryList,
    scope: ExpiryScope,
) -> Result<Document, LedgerError> {
    let listed = scope.of(list);
    let now = scope.now;
    // What is listed may be a part: the answer is about everything on record.
    let overdue = list.overdue(now).count() as u64;
    let all = list.things.len() as u64;
    let next = list.things.iter().find(|of| !of.is_overdue(now));
    let next = next.map_or_else(
        || "No later date is on record.".to_owned(),
        |of| {
            format!(
                "The next is {}: {} {}.",
                day(of.at),
                of.kind.as_str(),
                of.name
            )
        },
    );
    let before = scope.before.map_or_else(
        || "Everything with a date is listed.".to_owned(),
        |before| {
            format!(
                "Only what is before {} is listed: {} of {all}.",
                day(before),
                listed.len()
            )
        },
    );
    let head = DocumentHead {
        answer: if all == 0 {
            format!("Nothing on record has a date, so nothing is overdue on {}.", day(now))
        } else {
            format!(
                "{} a date; of these {} overdue on {}. {next}",
                counted(all, "thing on record has", "things on record have"),
                counted(overdue, "is", "are"),
                day(now),
            )
        },
        people: None,
        period: format!(
            "As of {} UTC, entries 0 to {}.",
            minute(now),
            source.through_seq
        ),
        rest: vec![
            "This report says what expires when, what is overdue, and what holds once a date has passed.".to_owned(),
            before,
            "A date is one that an entry names, or that of the oldest entry of a class plus the days for which the class is kept."
                .to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Expiry, "Whole ledger", head);
    out.facts
        .push(fact(Vec::new(), "overdue", "Overdue", Cell::count(overdue)));
    out.parts = vec![dates(&listed, list, now)];
    source.finish(out)
}

fn minute(at: Timestamp) -> String {
    let at: String = at
        .to_string()
        .chars()
        .take("2026-11-20T10:02".len())
        .collect();
    at.replace('T', " ")
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take("2026-11-20".len()).collect()
}

/// The dates, and what has none.
fn dates(listed: &[&DatedThing], list: &ExpiryList, now: Timestamp) -> Chapter {
    let mut part = Chapter::new(
        "dates",
        "What expires when",
        "The earliest date first. OVERDUE: the date has passed, and nothing on record ended it.",
    );
    part.table_or(table(listed, now), "nothing in the range has a date");
    lacking(&mut part, list.logs);
    part.lacks(
        "keys",
        "a key does not expire: it may sign until it is retired or compromised",
    );
    part.lacks(
        "approvals",
        "an approval does not expire: it holds for the one prompt that it names",
    );
    part
}

/// The dates as a table.
pub(super) fn table(listed: &[&DatedThing], now: Timestamp) -> Table {
    let mut table = Table::new("dates", "Dates", &COLUMNS);
    for of in listed {
        let mut cells = vec![Cell::text(day(of.at))];
        let words = words(of, now);
        cells.extend(words.into_iter().skip(1).map(Cell::text));
        table.row_of(of.events.clone(), cells);
    }
    table
}

/// What is said of logs where their floor is not kept.
pub(super) fn lacking(part: &mut Chapter, logs: LogsFloor) {
    let what = format!("class {LOGS}");
    match logs {
        LogsFloor::Kept => {}
        LogsFloor::Below(days, seq) => part.lacks(
            what,
            format!(
                "entry {seq} says {}, and six months are {LOGS_DAYS_MIN}: Art. 19 and 26 of the AI Act ask for at least that, \
                 unless other law says otherwise",
                counted(days, "day", "days")
            ),
        ),
        LogsFloor::Unsaid => part.lacks(
            what,
            format!(
                "nobody said how long logs are kept; their floor is six months, {LOGS_DAYS_MIN} days (Art. 19 and 26 of the AI Act)"
            ),
        ),
    }
}
