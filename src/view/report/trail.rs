//! The trail: entries in their order, decoded, filtered, with neighbours of a bulk kind on one line.

use serde_json::Value;

use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::payload::Roles;
use crate::ground::sign::KeyId;
use crate::ledger::LedgerError;
use crate::ledger::read::LogEntry;
use crate::num::Micro;
use crate::projection::bundle::Cell;
use crate::projection::bundle::Table;
use crate::projection::chronicle;
use crate::projection::chronicle::BULK;
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::view::report::course;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;

/// Characters of what an entry says that a row shows.
const SAID_MAX: usize = 320;

/// What narrows a trail.
#[derive(Clone, Debug, Default)]
pub struct TrailFilter {
    /// Only this kind.
    pub kind: Option<Kind>,
    /// Only this key.
    pub author: Option<KeyId>,
    /// Only this experiment.
    pub experiment: Option<ExperimentId>,
}

impl TrailFilter {
    fn takes(&self, read: &LogEntry) -> bool {
        let header = &read.event.header;
        self.kind.is_none_or(|kind| kind == read.event.kind())
            && self.author.is_none_or(|author| author == header.author)
            && (self.experiment.is_none() || self.experiment == header.experiment)
    }

    fn words(&self) -> String {
        let kind = self.kind.map(|kind| format!("kind {kind}"));
        let author = self.author.map(|author| format!("key {author}"));
        let experiment = self
            .experiment
            .as_ref()
            .map(|id| format!("experiment {id}"));
        let all: Vec<_> = [kind, author, experiment].into_iter().flatten().collect();
        if all.is_empty() {
            "Every entry of the range is in it.".to_owned()
        } else {
            format!("Only entries of {} are in it.", all.join(", "))
        }
    }
}

/// One line of a trail: an entry, or neighbours of a bulk kind by one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailLine {
    /// The first entry.
    pub seq: u64,
    /// The last entry: the first where it is one.
    pub last_seq: u64,
    /// Entries.
    pub count: u64,
    /// When the ledger took the first.
    pub recorded_at: String,
    /// Their kind.
    pub kind: Kind,
    /// The experiment; empty where they name none.
    pub experiment: String,
    /// The holder of the key.
    pub holder: String,
    /// The key.
    pub author: KeyId,
    /// Roles that the key has at the end of the range.
    pub roles: String,
    /// The id of the first, in hex.
    pub id: String,
    /// The hash of the leaf of the first, in hex.
    pub leaf: String,
    /// What it says, decoded.
    pub said: String,
}

/// Lines of a trail; where `together`, neighbours of a bulk kind share one.
///
/// # Errors
/// [`LedgerError`].
pub fn lines(
    source: &ReportSource<'_>,
    filter: &TrailFilter,
    together: bool,
) -> Result<Vec<TrailLine>, LedgerError> {
    let mut out: Vec<TrailLine> = Vec::new();
    let below = source.through_seq.saturating_add(1);
    let ledger = source.ledger;
    ledger.entries::<LedgerError>(source.from_seq, below, |read| {
        if !filter.takes(&read) {
            return Ok(());
        }
        let (kind, author) = (read.event.kind(), read.event.header.author);
        if let Some(last) = out.last_mut()
            && together
            && BULK.contains(&kind)
            && (last.kind, last.author) == (kind, author)
            && last.last_seq + 1 == read.stored.seq
        {
            last.last_seq = read.stored.seq;
            last.count += 1;
            return Ok(());
        }
        out.push(line(source, &read));
        Ok(())
    })?;
    Ok(out)
}

fn line(source: &ReportSource<'_>, read: &LogEntry) -> TrailLine {
    let author = read.event.header.author;
    let key = source.state.keyring.keys.get(&author);
    let experiment = read.event.header.experiment.as_ref();
    let data = serde_json::to_value(&read.event.payload).unwrap_or_default();
    TrailLine {
        seq: read.stored.seq,
        last_seq: read.stored.seq,
        count: 1,
        recorded_at: read.stored.recorded_at.to_string(),
        kind: read.event.kind(),
        experiment: experiment.map_or_else(String::new, ToString::to_string),
        holder: chronicle::holder(source.state, &author),
        author,
        roles: key.map_or_else(String::new, |key| roles(&key.roles)),
        id: read.event.id.to_string(),
        leaf: chronicle::leaf(read).to_hex(),
        said: decoded(&data),
    }
}

fn roles(roles: &Roles) -> String {
    roles.to_string()
}

/// The data of an event as `name: value`, amounts as decimals, what lies deeper as JSON.
pub fn decoded(data: &Value) -> String {
    let Some(fields) = data.as_object() else {
        return data.to_string();
    };
    let fields = fields.iter().map(|(name, value)| {
        let (name, micro) = match name.strip_suffix("_micro") {
            Some(name) => (name, value.as_i64().and_then(Micro::new)),
            None => (name.as_str(), None),
        };
        let value = match (micro, value) {
            (Some(micro), _) => format!("{micro}"),
            (None, Value::String(text)) => text.clone(),
            (None, other) => other.to_string(),
        };
        format!("{}: {value}", name.replace('_', " "))
    });
    fields.collect::<Vec<_>>().join("; ")
}

/// The trail of a range.
///
/// # Errors
/// [`LedgerError`].
pub fn document(source: &ReportSource<'_>, filter: &TrailFilter) -> Result<Document, LedgerError> {
    let all = lines(source, filter, filter.kind.is_none())?;
    let entries: u64 = all.iter().map(|of| of.count).sum();
    let span = match (all.first(), all.last()) {
        (Some(first), Some(last)) => {
            let day = |at: &str| at.chars().take("2026-11-20".len()).collect::<String>();
            format!(
                "From {} to {}.",
                day(&first.recorded_at),
                day(&last.recorded_at)
            )
        }
        _ => "Nothing was recorded.".to_owned(),
    };
    let head = DocumentHead {
        answer: format!(
            "{} from {} to {}, in the order in which the ledger took them.",
            counted(entries, "entry", "entries"),
            source.from_seq,
            source.through_seq
        ),
        people: None,
        period: span,
        rest: vec![
            filter.words(),
            "Neighbours of a kind that comes by thousands share a line; --kind lists each."
                .to_owned(),
            "Corrections are entries of their own: none hides an earlier one.".to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Trail, "Trail", head);
    let columns = [
        ("seq", "entry"),
        ("kind", "kind"),
        ("at", "recorded (UTC)"),
        ("by", "by"),
        ("roles", "roles"),
        ("experiment", "experiment"),
        ("said", "says"),
    ];
    let mut table = Table::new("trail", "Entries in order", &columns);
    for of in &all {
        let place = if of.count == 1 {
            of.seq.to_string()
        } else {
            format!("{} to {}", of.seq, of.last_seq)
        };
        let said = if of.count == 1 {
            of.said.chars().take(SAID_MAX).collect()
        } else {
            counted(of.count, "entry", "entries")
        };
        let at: String = of
            .recorded_at
            .chars()
            .take("2026-11-20T10:02:03".len())
            .collect();
        let experiment = Some(of.experiment.clone()).filter(|id| !id.is_empty());
        let cells = vec![
            Cell::text(place),
            Cell::text(of.kind.as_str()),
            Cell::text(at.replace('T', " ")),
            Cell::text(of.holder.clone()),
            Cell::text(of.roles.clone()),
            Cell::maybe(experiment, Cell::text),
            Cell::text(said),
        ];
        let events = [of.seq, of.last_seq];
        table.row_of(events.to_vec(), cells);
    }
    let mut part = Chapter::new(
        "trail",
        "Entries",
        "Each entry with who signed it, when, and what it says.",
    );
    part.table_or(
        table,
        "no entry of the range is of this kind, key and experiment",
    );
    out.parts.push(part);
    source.finish(out)
}
