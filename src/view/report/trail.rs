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
use crate::report::document::Chapter;
use crate::report::document::Document;
use crate::report::document::DocumentHead;
use crate::report::document::ReportKind;
use crate::session::chronicle;
use crate::session::chronicle::BULK;
use crate::view::report::course;
use crate::view::report::made::ReportSource;
use crate::view::report::made::counted;
use crate::view::report::made::cut;

/// Characters of what an entry says that a row shows.
const SAID_MAX: usize = 320;
/// Items of a list before they are counted.
const LIST_MAX: usize = 8;
/// Characters of a word without a blank that is a digest or a key.
const CODE: usize = 40;

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
    /// The same in short, what it came to first.
    pub brief: String,
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
    let range = (source.from_seq, source.through_seq);
    chronicle::each(source.ledger, range, |read| {
        if !filter.takes(&read) {
            return;
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
        } else {
            out.push(line(source, &read));
        }
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
        brief: brief(&data),
    }
}

fn roles(roles: &Roles) -> String {
    roles.to_string()
}

/// The data of an event as `name: value`: amounts as decimals, what lies deeper behind the names that lead there, lists of
/// texts joined, longer ones counted.
pub fn decoded(data: &Value) -> String {
    let mut out = Vec::new();
    flatten("", data, &mut out);
    out.join("; ")
}

/// First words of members that a reader looks for: what it is about, and what it came to.
const FIRST: [&str; 16] = [
    "iteration",
    "gate",
    "run",
    "patch",
    "split",
    "verdicts",
    "verdict",
    "outcome",
    "end",
    "state",
    "reason",
    "version",
    "judge",
    "policy",
    "item",
    "design",
];

/// The data of an event in short: what it is about and what it came to first, digests last, each by its first characters.
fn brief(data: &Value) -> String {
    let mut parts = Vec::new();
    flatten("", data, &mut parts);
    let rank = |part: &String| {
        let name = part.split(':').next().unwrap_or_default();
        let first = name.split(' ').next().unwrap_or_default();
        let is_code = part
            .rsplit(' ')
            .next()
            .is_some_and(|word| word.len() >= CODE);
        let place = FIRST.iter().position(|of| *of == first);
        place.unwrap_or(FIRST.len() + usize::from(is_code))
    };
    parts.retain(|part| !part.ends_with(": "));
    parts.sort_by_key(rank);
    short(&parts.join("; "))
}

fn flatten(name: &str, value: &Value, out: &mut Vec<String>) {
    if let Value::Object(fields) = value {
        for (inner, value) in fields {
            let inner = inner.replace('_', " ");
            flatten(format!("{name} {inner}").trim(), value, out);
        }
        return;
    }
    let amount = name.strip_suffix(" micro");
    let amount = amount.zip(value.as_i64().and_then(Micro::new));
    if let Some((name, micro)) = amount {
        return out.push(format!("{name}: {micro}"));
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(all) if all.len() > LIST_MAX || all.iter().any(Value::is_object) => {
            counted(all.len() as u64, "item", "items")
        }
        Value::Array(all) => {
            let texts = all.iter().map(|one| match one {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    out.push(format!("{name}: {text}"));
}

/// What an entry says, in short: digests and keys by their first characters.
fn short(said: &str) -> String {
    let words = said.split(' ').map(|word| {
        let is_long = word.chars().count() >= CODE;
        if is_long && !word.contains(['/', '.']) {
            word.chars().take(12).chain(['…']).collect()
        } else {
            word.to_owned()
        }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    cut(&text, SAID_MAX)
}

/// Lines as a table.
fn table(all: &[TrailLine]) -> Table {
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
    for of in all {
        let place = if of.count == 1 {
            of.seq.to_string()
        } else {
            format!("{} to {}", of.seq, of.last_seq)
        };
        let said = if of.count == 1 {
            of.brief.clone()
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
    table
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
            "Entries are shown as they were signed, values that are withheld now among them: they are no claim."
                .to_owned(),
        ],
        separation: course::policy(source.state).into_iter().collect(),
        since: None,
    };
    let mut out = Document::new(ReportKind::Trail, "Trail", head);
    let table = table(&all);
    let mut part = Chapter::new(
        "trail",
        "Entries in order",
        "Each entry with who signed it, when, and what it says.",
    );
    part.table_or(
        table,
        "no entry of the range is of this kind, key and experiment",
    );
    out.parts.push(part);
    source.finish(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_is_decoded_into_words() {
        let data = json!({
            "score_micro": 850_000, "range": {"low_micro": -1, "high": 2}, "roles": ["arbiter", "owner"], "rows": [{}, {}],
            "human": true,
        });
        let said = decoded(&data);
        let mut parts: Vec<&str> = said.split("; ").collect();
        parts.sort_unstable();
        let expected = [
            "human: true",
            "range high: 2",
            "range low: -0.000001",
            "roles: arbiter, owner",
            "rows: 2 items",
            "score: 0.85",
        ];
        assert_eq!(parts, expected);
        assert_eq!(
            short(&format!("key: {}", "a".repeat(64))),
            "key: aaaaaaaaaaaa…"
        );
    }
}
