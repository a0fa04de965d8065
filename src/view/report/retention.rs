//! What is kept and for how long, what was erased and on which basis, and what is due.

use std::collections::BTreeMap;

use crate::event::Kind;
use crate::event::Payload;
use crate::event::payload::custody::RetentionSet;
use crate::ground::time::Timestamp;
use crate::ledger::LedgerError;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle::Chronicle;
use crate::session::chronicle::ChronicleEntry;
use crate::session::chronicle::holder;
use crate::session::expiry as dated;
use crate::view::report::course;
use crate::view::report::experiment;
use crate::view::report::expiry;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::period;
use crate::view::report::picked::day;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The report of retention.
///
/// # Errors
/// [`LedgerError`].
pub fn document(source: &ReportSource<'_>) -> Result<Document, LedgerError> {
    let chronicle = source.chronicle(None)?;
    let set = chronicle.count(Kind::RetentionSet);
    let erased = chronicle.count(Kind::SubjectErased);
    let head = DocumentHead {
        answer: format!(
            "{} {}.",
            match set {
                0 => "No retention period has been set.".to_owned(),
                set => format!("{} on record.", counted(set, "retention period is", "retention periods are")),
            },
            match erased {
                0 => "No subject was erased".to_owned(),
                erased => counted(erased, "subject was erased", "subjects were erased"),
            },
        ),
        people: None,
        period: period(&chronicle),
        rest: vec![
            "This report says what is kept for how long, what was erased, on which basis, and what is due.".to_owned(),
            "Erasing destroys the key of a subject's texts in this ledger; entries, digests and numbers stay.".to_owned(),
            "Nothing is claimed of copies, backups and exports outside of this ledger.".to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Retention, "Whole ledger", head);
    out.parts = vec![
        kept(&chronicle, source),
        erasures(&chronicle, source),
        dates(source)?,
        standing(&chronicle),
    ];
    source.finish(out)
}

/// The newest word of each class.
fn newest(chronicle: &Chronicle) -> BTreeMap<String, (&ChronicleEntry, &RetentionSet)> {
    let entries = chronicle.of(Kind::RetentionSet);
    let said = entries.filter_map(|entry| {
        let said: &RetentionSet = entry.event.payload.said()?;
        Some((said.class.to_string(), (entry, said)))
    });
    said.collect()
}

fn kept(chronicle: &Chronicle, source: &ReportSource<'_>) -> Chapter {
    let mut part = Chapter::new(
        "kept",
        "What is kept, and until when",
        "How long each class is kept, as it was set last. The first entry of a class is due so many days after it was recorded.",
    );
    let columns = [
        ("class", "class"),
        ("standing", "due"),
        ("days", "days"),
        ("basis", "basis"),
        ("by", "by"),
        ("day", "set on"),
    ];
    let mut table = Table::new("classes", "Classes", &columns);
    let now = source.state.keyring.recorded_at;
    let first = chronicle.period.map(|(first, _)| first);
    for (class, (entry, said)) in newest(chronicle) {
        let days = i64::try_from(said.days.value()).unwrap_or(i64::MAX);
        let cells = vec![
            Cell::text(class),
            Cell::text(due(first, now, days)),
            Cell::Count(said.days),
            Cell::text(said.basis.as_str()),
            Cell::text(holder(source.state, &entry.event.header.author)),
            Cell::text(day(entry)),
        ];
        table.row(entry.seq, cells);
    }
    part.table_or(
        table,
        "nobody said how long a class is kept: clover retain set says it",
    );
    part
}

/// Whether the oldest entry of the range is past its days.
fn due(first: Option<Timestamp>, now: Option<Timestamp>, days: i64) -> &'static str {
    let past = first.zip(now).is_some_and(|(first, now)| {
        now.micros().saturating_sub(first.micros()) > days.saturating_mul(DAY)
    });
    if past { "DUE" } else { "not yet" }
}

fn erasures(chronicle: &Chronicle, source: &ReportSource<'_>) -> Chapter {
    let mut part = Chapter::new(
        "erased",
        "What was erased",
        "Subjects whose texts cannot be read any more. Decisions that read them stand; clover replay names the inputs that it cannot read.",
    );
    let columns = [
        ("subject", "subject"),
        ("basis", "basis"),
        ("by", "by"),
        ("day", "erased on"),
    ];
    let mut table = Table::new("erased", "Erased subjects", &columns);
    for entry in chronicle.of(Kind::SubjectErased) {
        if let Payload::SubjectErased(said) = &entry.event.payload {
            let cells = vec![
                Cell::Digest(said.subject),
                Cell::text(said.basis.as_str()),
                Cell::text(holder(source.state, &entry.event.header.author)),
                Cell::text(day(entry)),
            ];
            table.row(entry.seq, cells);
        }
    }
    part.table_or(table, "nobody was erased in the range");
    part
}

/// What expires when, as of the last entry that is read.
fn dates(source: &ReportSource<'_>) -> Result<Chapter, LedgerError> {
    let mut part = Chapter::new(
        "dates",
        "What expires when",
        "Everything with a date at the end of the range, the earliest first; clover report expiry compares it with today.",
    );
    let Some(now) = source.state.keyring.recorded_at else {
        return Ok(part);
    };
    let list = dated::list(source.ledger, source.state, now)?;
    let listed: Vec<_> = list.things.iter().collect();
    part.table_or(
        expiry::table(&listed, now),
        "nothing in the range has a date",
    );
    expiry::lacking(&mut part, list.logs);
    Ok(part)
}

fn standing(chronicle: &Chronicle) -> Chapter {
    let mut part = Chapter::new(
        "entries-kept",
        "Entries that stand",
        "The log is append-only: entries are not deleted, and an erasure is one more of them.",
    );
    part.table_or(experiment::kinds(chronicle), "the range has no entry");
    part
}
