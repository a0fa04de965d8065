//! Comma-separated values by RFC 4180: UTF-8, one header, as many fields in every record, quotes only around
//! whole fields. What is not that is refused with its line; nothing is guessed.

use std::collections::BTreeMap;

use clover_ground::once::Once;

use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row::BYTE_ORDER_MARK;
use crate::import::row::FIELDS;
use crate::import::row::FieldError;
use crate::import::row::Fields;
use crate::import::row::Reader;
use crate::import::row::TARGET_LOGPROBS;
use crate::import::row::also;

/// One record: the line it begins on, and its fields.
pub(crate) type CsvRecord = (u64, Vec<String>);
/// A line and what is wrong on it.
pub(crate) type LineFault = (u64, String);

/// Splits a text into records. The library reads more than the RFC allows, so each field is held against the one way to
/// write it.
pub(crate) fn records(text: &str) -> Result<Vec<CsvRecord>, LineFault> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut records = Vec::new();
    let (mut rest, mut line) = (text, 1);
    for record in reader.records() {
        let record = record.map_err(|error| (line, error.to_string()))?;
        // The library passes over empty lines.
        if rest.starts_with(['\r', '\n']) {
            return Err((line, EMPTY.to_owned()));
        }
        let first = line;
        let mut fields = Vec::with_capacity(record.len());
        for (at, field) in record.iter().enumerate() {
            if at > 0 {
                rest = rest.strip_prefix(',').ok_or_else(|| (line, stray(rest)))?;
            }
            rest = written(rest, field).map_err(|what| (line, what))?;
            line += memchr::memchr_iter(b'\n', field.as_bytes()).count() as u64;
            fields.push(field.to_owned());
        }
        if !rest.is_empty() {
            let ended = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n'));
            rest = ended.ok_or_else(|| (first, stray(rest)))?;
            line += 1;
        }
        records.push((first, fields));
    }
    if rest.is_empty() {
        Ok(records)
    } else {
        Err((line, EMPTY.to_owned()))
    }
}

const EMPTY: &str = "expected a record, found an empty line";

fn stray(rest: &str) -> String {
    let found = rest
        .chars()
        .next()
        .map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
    format!("expected a comma or the end of the line after a field, found {found}")
}

/// The text behind a field that is written plainly, or in quotes with those inside doubled.
fn written<'t>(rest: &'t str, field: &str) -> Result<&'t str, String> {
    if rest.starts_with('"') {
        let quoted = format!("\"{}\"", field.replace('"', "\"\""));
        return rest.strip_prefix(&quoted).ok_or_else(|| {
            if quoted.strip_suffix('"') == Some(rest) {
                "expected a closing quote, found the end".to_owned()
            } else {
                "expected a comma or the end of the line after a quote".to_owned()
            }
        });
    }
    if field.contains('"') {
        return Err("expected quotes around the whole field, found one inside".to_owned());
    }
    rest.strip_prefix(field).ok_or_else(|| stray(rest))
}

/// Where each field stands.
struct ColumnIndex<'a> {
    of: &'a BTreeMap<String, usize>,
    targets: &'a [(String, usize)],
    header: &'a [String],
    record: &'a [String],
}

impl Fields for ColumnIndex<'_> {
    fn number(&self, name: &str) -> Result<Option<String>, FieldError> {
        let text = self.text(name)?;
        let bare = text.map(|text| text.trim_matches(' ').to_owned());
        Ok(bare.filter(|text| !text.is_empty()))
    }

    fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        let cell = self.of.get(name).and_then(|at| self.record.get(*at));
        Ok(cell.filter(|cell| !cell.is_empty()).cloned())
    }

    fn word(&self, name: &str) -> Result<Option<String>, FieldError> {
        let own = || self.header.iter().position(|column| column == name);
        let at = self.of.get(name).copied().or_else(own);
        let cell = at.and_then(|at| self.record.get(at));
        Ok(cell.filter(|cell| !cell.is_empty()).cloned())
    }

    fn targets(&self) -> Result<Option<Vec<(String, String)>>, FieldError> {
        let cells = self.targets.iter();
        let cells = cells.filter_map(|(name, at)| Some((name.clone(), self.record.get(*at)?)));
        let named: Vec<_> = cells
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| (name, cell.clone()))
            .collect();
        Ok((!self.targets.is_empty()).then_some(named))
    }
}

/// Reads one file. `map` names the column of a field, as `judge_score=score` or
/// `target_policy_logprobs.clone=lp_clone`; a field that it does not name has the column of its own name.
///
/// # Errors
/// [`ImportError`] at the first line that is not a record.
pub fn rows(
    file: &str,
    bytes: &[u8],
    map: &BTreeMap<String, String>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut reader = Reader::new(file, how);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + memchr::memchr_iter(b'\n', before).count() as u64;
        let what = format!("expected UTF-8, byte {} is not", error.valid_up_to() + 1);
        reader.error(line, None, what)
    })?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            reader.warn(BYTE_ORDER_MARK.to_owned());
            rest
        }
        None => text,
    };
    let records = records(text).map_err(|(line, what)| reader.error(line, None, what))?;
    let mut records = records.into_iter();
    let Some((_, header)) = records.next() else {
        return Err(reader.error(1, None, "expected a header, found nothing".to_owned()));
    };
    let (of, targets) = columns(&header, map, reader.has_other_names())
        .map_err(|(name, what)| reader.error(1, Some(&name), what))?;
    for name in &header {
        reader.name(name);
    }
    let missing = reader.missing(&|field| of.contains_key(field));
    if let Some(first) = missing.first() {
        let what = format!(
            "{NO_COLUMN}{}: the file has {}",
            missing.join(", "),
            header.join(", ")
        );
        return Err(reader.error(1, Some(first), what));
    }
    let mapping = of
        .iter()
        .map(|(name, at)| (name.clone(), header[*at].clone()));
    let logged = targets.iter();
    let logged =
        logged.map(|(name, at)| (format!("{TARGET_LOGPROBS}.{name}"), header[*at].clone()));
    reader.mapping(mapping.chain(logged).collect());
    reader.not_kept(
        (0..header.len())
            .filter(|at| {
                !of.values().any(|taken| taken == at)
                    && !targets.iter().any(|(_, taken)| taken == at)
            })
            .map(|at| header[at].as_str()),
    );
    for (line, record) in records {
        if record.len() != header.len() {
            let (wanted, found) = (header.len(), record.len());
            let what = format!("expected {wanted} fields as in the header, found {found}");
            reader.refuse(reader.error(line, None, what))?;
            continue;
        }
        let fields = ColumnIndex {
            of: &of,
            targets: &targets,
            header: &header,
            record: &record,
        };
        reader.take(line, &fields)?;
    }
    reader.finish()
}

/// The same table with commas between; `None` where it cannot be read with this separator.
pub fn with_commas(bytes: &[u8], separator: char) -> Option<Vec<u8>> {
    let separator = u8::try_from(separator).ok()?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator)
        .from_reader(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in reader.records() {
        writer.write_record(&record.ok()?).ok()?;
    }
    writer.into_inner().ok()
}

/// The name of the column whose cell on a line reads so; `None` where none does, or the file is no such table.
pub fn column_with(bytes: &[u8], (line, cell): (u64, &str)) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let records = records(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?;
    let (_, header) = records.first()?;
    let (_, cells) = records.iter().find(|(at, _)| *at == line)?;
    let at = cells.iter().position(|of| of.trim() == cell.trim())?;
    header.get(at).cloned()
}

/// Records of which the cells are looked at, to tell columns of numbers.
const LOOKED_AT: usize = 1_000;

/// Names of the columns whose cells are numbers, as far as the first thousand records tell; none of a file that is no such
/// table. An empty cell says nothing.
pub fn numbers(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Ok(records) = records(text) else {
        return Vec::new();
    };
    let mut records = records.into_iter().map(|(_, cells)| cells);
    let Some(header) = records.next() else {
        return Vec::new();
    };
    let records: Vec<_> = records.take(LOOKED_AT).collect();
    let is_number = |at: &usize| {
        let cells = records.iter().filter_map(|cells| cells.get(*at));
        let mut said = cells
            .map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty());
        let first = said.next();
        first.is_some_and(|first| {
            std::iter::once(first)
                .chain(said)
                .all(|cell| cell.parse::<f64>().is_ok_and(f64::is_finite))
        })
    };
    (0..header.len())
        .filter(is_number)
        .map(|at| header[at].clone())
        .collect()
}

/// How what is said of missing columns begins; their fields follow, with commas between, up to a colon.
pub const NO_COLUMN: &str = "no column for ";

type ColumnPositions = (BTreeMap<String, usize>, Vec<(String, usize)>);

/// Finds the column of each field.
fn columns(
    header: &[String],
    map: &BTreeMap<String, String>,
    has_other_names: bool,
) -> Result<ColumnPositions, FieldError> {
    let mut once = Once::default();
    for name in header {
        if !once.insert(name) {
            let what = format!("expected each column once, found {name:?} twice");
            return Err((name.clone(), what));
        }
    }
    let place = |name: &str| header.iter().position(|column| column == name);
    let (mut of, mut targets) = (BTreeMap::new(), Vec::new());
    let prefix = format!("{TARGET_LOGPROBS}.");
    for (field, column) in map {
        let at = place(column).ok_or_else(|| {
            let what = format!(
                "expected the column {column:?} that --map names, found {}",
                header.join(", ")
            );
            (field.clone(), what)
        })?;
        match field.strip_prefix(&prefix) {
            Some(policy) => targets.push((policy.to_owned(), at)),
            None => drop(of.insert(field.clone(), at)),
        }
    }
    for field in FIELDS {
        let others: &[&str] = if has_other_names { also(field) } else { &[] };
        let at = place(field).or_else(|| others.iter().find_map(|name| place(name)));
        if let Some(at) = at.filter(|_| !map.contains_key(field)) {
            of.insert(field.to_owned(), at);
        }
    }
    for (at, column) in header.iter().enumerate() {
        if let Some(policy) = column.strip_prefix(&prefix)
            && !map.contains_key(column)
        {
            targets.push((policy.to_owned(), at));
        }
    }
    Ok((of, targets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_those_of_rfc_4180() {
        let read =
            |text| records(text).map(|found| found.into_iter().map(|(_, f)| f).collect::<Vec<_>>());
        assert_eq!(
            read("a,b\r\n\"1,\"\"2\n\",3"),
            Ok(vec![
                vec!["a".to_owned(), "b".to_owned()],
                vec!["1,\"2\n".to_owned(), "3".to_owned()],
            ])
        );
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("a\n"), Ok(vec![vec!["a".to_owned()]]));
        let empty = Ok(vec![vec![String::new(), String::new()]]);
        assert_eq!(read(",\n"), empty);
        assert_eq!(read("\"\",\"\""), empty);
        assert_eq!(records("a\n\"x\ny\"z\n").unwrap_err().0, 2);
        for bad in [
            "\"a",
            "a\"b",
            "\"a\"b",
            "a\rb",
            "a\n\n",
            "\n",
            "a\n\nb",
            "\r\na",
            "a,b\n\n,d",
        ] {
            assert!(records(bad).is_err(), "{bad:?}");
        }
    }
}
