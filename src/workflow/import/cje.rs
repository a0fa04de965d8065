//! JSON Lines of judge-scored responses, one file per policy or with `target_policy`: the shape that `cje-eval`
//! reads and writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::analyze::read::Record;
use crate::analyze::read::record;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;
use crate::import::row::BYTE_ORDER_MARK;
use crate::import::row::FIELDS;
use crate::import::row::FieldError;
use crate::import::row::Fields;
use crate::import::row::Reader;
use crate::import::row::TARGET_LOGPROBS;
use crate::import::row::short;

/// A record with its metadata, whose members count where the record has none of the name.
struct CjeRecord<'a> {
    record: Record<'a>,
    metadata: Option<Record<'a>>,
    /// Whether other names of fields count.
    also: bool,
}

impl<'a> CjeRecord<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let others: &[&str] = if self.also { row::also(name) } else { &[] };
        let inner = |name: &str| self.metadata.as_ref()?.get(name);
        let here = |name: &str| self.record.get(name).or_else(|| inner(name));
        here(name).or_else(|| others.iter().find_map(|name| here(name)))
    }

    /// Names of its members, those of its metadata too.
    fn names(&self) -> impl Iterator<Item = &str> {
        let inner = self.metadata.iter().flat_map(|of| &of.0);
        let all = self.record.0.iter().chain(inner);
        all.map(|(name, _)| name.as_ref())
    }
}

fn wrong(name: &str, expected: &str, raw: &RawValue) -> FieldError {
    let what = format!("expected {expected}, found {}", short(raw.get()));
    (name.to_owned(), what)
}

impl Fields for CjeRecord<'_> {
    fn number(&self, name: &str) -> Result<Option<String>, FieldError> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        let starts = raw
            .get()
            .starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if starts {
            Ok(Some(raw.get().to_owned()))
        } else {
            Err(wrong(name, "a number", raw))
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        let is_count = raw.get().bytes().all(|byte| byte.is_ascii_digit());
        if name == row::PROMPT_ID && is_count {
            return Ok(Some(raw.get().to_owned()));
        }
        let text = serde_json::from_str(raw.get()).map_err(|_| wrong(name, "a text", raw))?;
        Ok(Some(text))
    }

    fn word(&self, name: &str) -> Result<Option<String>, FieldError> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        match raw.get().as_bytes().first() {
            Some(b'"') => self.text(name),
            Some(b'{' | b'[') | None => Err(wrong(name, "a text, a number or a flag", raw)),
            Some(_) => Ok(Some(raw.get().to_owned())),
        }
    }

    fn targets(&self) -> Result<Option<Vec<(String, String)>>, FieldError> {
        let Some(raw) = self.get(TARGET_LOGPROBS) else {
            return Ok(None);
        };
        let members: Record<'_> = serde_json::from_str(raw.get())
            .map_err(|_| wrong(TARGET_LOGPROBS, "an object of numbers, each name once", raw))?;
        let members = members.0.into_iter();
        let named = members.map(|(name, raw)| (name.into_owned(), raw.get().to_owned()));
        Ok(Some(named.collect()))
    }
}

/// Reads one file.
///
/// # Errors
/// [`ImportError`] at the first line that is not a record.
pub fn rows(file: &str, bytes: &[u8], how: How<'_>) -> Result<ImportRows, ImportError> {
    mapped(file, bytes, &BTreeMap::new(), how)
}

/// Reads one file whose members have other names: `map` has the member of each field.
///
/// # Errors
/// [`ImportError`] at the first line that is not a record, or that has a field under both of its names; and for a member that
/// no record has.
pub fn mapped(
    file: &str,
    bytes: &[u8],
    map: &BTreeMap<String, String>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    let mut reader = Reader::new(file, how);
    let mut unseen: BTreeSet<&str> = map.values().map(String::as_str).collect();
    let mapping = FIELDS.map(|name| (name.to_owned(), name.to_owned()));
    let mut mapping = BTreeMap::from(mapping);
    let mut there = [false; FIELDS.len()];
    let bytes = match bytes.strip_prefix("\u{feff}".as_bytes()) {
        Some(rest) => {
            reader.warn(BYTE_ORDER_MARK.to_owned());
            rest
        }
        None => bytes,
    };
    for (line, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let members = match members(&reader, (line, bytes), map, &mut unseen) {
            Ok(Some(members)) => members,
            Ok(None) => continue,
            Err(error) => {
                reader.refuse(error)?;
                continue;
            }
        };
        for name in members.names() {
            reader.name(name);
        }
        for (there, name) in there.iter_mut().zip(FIELDS) {
            *there = *there || members.get(name).is_some();
        }
        reader.take(line, &members)?;
    }
    if let Some(member) = unseen.first() {
        let what = format!("expected a member {member}, as --map says: no record has it");
        return Err(reader.error(1, None, what));
    }
    for (there, name) in there.iter().zip(FIELDS) {
        if !there {
            mapping.remove(name);
        }
    }
    mapping.extend(map.clone());
    reader.mapping(mapping);
    reader.finish()
}

/// The members of a line under the names of their fields; `None` for an empty one.
fn members<'b>(
    reader: &Reader<'_>,
    (line, bytes): (u64, &'b [u8]),
    map: &BTreeMap<String, String>,
    unseen: &mut BTreeSet<&str>,
) -> Result<Option<CjeRecord<'b>>, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let what = format!("expected UTF-8, byte {} is not", error.valid_up_to() + 1);
        reader.error(line, None, what)
    })?;
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut record = record(text).map_err(|what| reader.error(line, None, what))?;
    for (field, member) in map {
        let mut names = record.0.iter_mut().map(|(name, _)| name);
        let Some(name) = names.find(|name| name.as_ref() == member) else {
            continue;
        };
        unseen.remove(member.as_str());
        *name = Cow::Owned(field.clone());
        if record.0.iter().filter(|(name, _)| name == field).count() > 1 {
            let what = format!("expected one of {field} and {member}, found both");
            return Err(reader.error(line, Some(field), what));
        }
    }
    let metadata = reader.metadata(line, &record)?;
    Ok(Some(CjeRecord {
        record,
        metadata,
        also: reader.has_other_names(),
    }))
}
