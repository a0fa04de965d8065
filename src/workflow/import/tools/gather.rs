//! Records of a file on their way to rows: what each brings, what it says beside, and what nobody reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_num::Count;
use serde_json::value::RawValue;

use super::RowEdit;
use super::RowRemark;
use super::json;
use super::json::JsonFault;
use super::json::Node;
use super::json::NodeFault;
use super::json::Object;
use crate::import::Brings;
use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::row;
use crate::import::row::BYTE_ORDER_MARK;
use crate::import::row::FieldError;
use crate::import::row::Fields;
use crate::import::row::Reader;

/// Names of members that nobody reads, of which so many are named.
const UNREAD_SHOWN: usize = 12;
/// Most bytes of a file that is text.
const FILE_MAX: usize = 1 << 30;

/// One record of a file, by the names of the fields of any import.
#[derive(Default)]
pub(super) struct ToolRecord {
    /// Its line, from 1; in an archive its number.
    pub line: u64,
    /// The path to it.
    pub place: String,
    values: BTreeMap<&'static str, String>,
    beside: BTreeMap<String, Result<String, String>>,
}

impl ToolRecord {
    pub(super) fn new(line: u64, place: &str) -> Self {
        Self {
            line,
            place: place.to_owned(),
            ..Self::default()
        }
    }

    /// Puts the value of a field.
    pub(super) fn put(&mut self, field: &'static str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into() {
            self.values.insert(field, value);
        }
    }

    /// Puts what may be kept beside the row; what was put first under a name stands.
    pub(super) fn beside(&mut self, name: &str, node: &Node<'_>) {
        if name == row::SAMPLED_AT && node.is_text() {
            self.put(row::SAMPLED_AT, node.text().ok());
        }
        let word = if node.is_object() || node.is_list() {
            Err(node.fault("a text, a number or a flag").1)
        } else {
            Ok(node.as_written())
        };
        self.beside.entry(name.to_owned()).or_insert(word);
    }

    /// Puts a word beside the row.
    pub(super) fn word_beside(&mut self, name: &str, word: Option<String>) {
        if let Some(word) = word {
            self.beside.insert(name.to_owned(), Ok(word));
        }
    }

    /// Puts each member of an object beside the row.
    pub(super) fn all_beside(&mut self, object: &Object<'_>) {
        for (name, node) in object.members() {
            self.beside(name, &node);
        }
    }
}

impl Fields for ToolRecord {
    fn number(&self, name: &str) -> Result<Option<String>, FieldError> {
        self.text(name)
    }

    fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        Ok(self.values.get(name).cloned())
    }

    fn word(&self, name: &str) -> Result<Option<String>, FieldError> {
        if let Some(value) = self.values.get(name) {
            return Ok(Some(value.clone()));
        }
        let word = self.beside.get(name).cloned();
        word.transpose().map_err(|what| (name.to_owned(), what))
    }

    fn targets(&self) -> Result<Option<Vec<(String, String)>>, FieldError> {
        Ok(None)
    }

    fn place(&self) -> Option<&str> {
        Some(self.place.as_str()).filter(|place| !place.is_empty())
    }
}

/// What a record says of its score.
#[derive(Default)]
pub(super) struct Beside {
    pub reason: Option<String>,
    pub edits: Vec<RowEdit>,
}

/// What is said beside a score, or why there is none.
pub(super) type ToolOutcome = Result<Beside, Option<String>>;

/// Rows as they are gathered.
pub(super) struct Gatherer<'a> {
    /// How the file is read.
    pub how: How<'a>,
    file: String,
    reader: Reader<'a>,
    remarks: Vec<RowRemark>,
    unread: BTreeMap<String, u64>,
    unanswered: u64,
    failed: u64,
    /// Whether the file holds labels that no row has.
    pub holds_labels: bool,
}

impl<'a> Gatherer<'a> {
    pub(super) fn new(file: &str, how: How<'a>) -> Self {
        Self {
            how,
            file: file.to_owned(),
            reader: Reader::new(file, how),
            remarks: Vec::new(),
            unread: BTreeMap::new(),
            unanswered: 0,
            failed: 0,
            holds_labels: false,
        }
    }

    /// The text of a file, without a mark of the order of its bytes.
    pub(super) fn text<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b str, ImportError> {
        if bytes.len() > FILE_MAX {
            let what = format!("expected at most {FILE_MAX} bytes, found {}", bytes.len());
            return Err(self.reader.error(0, None, what));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = 1 + memchr::memchr_iter(b'\n', before).count() as u64;
            let what = format!("expected UTF-8, byte {} is not", error.valid_up_to() + 1);
            self.reader.error(line, None, what)
        })?;
        Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => {
                self.reader.warn(BYTE_ORDER_MARK.to_owned());
                rest
            }
            None => text,
        })
    }

    /// A text that was held against the bounds of JSON.
    pub(super) fn checked<'t>(
        &self,
        text: &'t str,
        may_be_none: impl Fn(&str) -> bool,
    ) -> Result<Cow<'t, str>, ImportError> {
        json::checked(text, may_be_none).map_err(|fault| self.json(fault))
    }

    /// A file of JSON documents: its text, and each of them.
    pub(super) fn documents<'b>(
        &mut self,
        bytes: &'b [u8],
    ) -> Result<(&'b str, Vec<&'b RawValue>), ImportError> {
        let text = self.text(bytes)?;
        self.checked(text, |_| false)?;
        let documents = json::documents(text).map_err(|fault| self.json(fault))?;
        Ok((text, documents))
    }

    /// A fault of a text, as an error.
    pub(super) fn json(&self, fault: JsonFault) -> ImportError {
        let path = Some(fault.path.as_str()).filter(|path| !path.is_empty());
        self.reader.error(fault.line, path, fault.what)
    }

    /// An error of the file as a whole.
    pub(super) fn whole(&self, (path, what): NodeFault) -> ImportError {
        let path = Some(path.as_str()).filter(|path| !path.is_empty());
        self.reader.error(0, path, what)
    }

    /// Notes what is wrong with a record.
    pub(super) fn refuse(&mut self, line: u64, (path, what): NodeFault) -> Result<(), ImportError> {
        let error = self.reader.error(line, Some(&path), what);
        self.reader.refuse(error)
    }

    pub(super) fn warn(&mut self, text: String) {
        self.reader.warn(text);
    }

    /// Notes members of an object that nobody reads.
    pub(super) fn leave(&mut self, object: &Object<'_>, prefix: &str, read: &[&str]) {
        let left = object.members().map(|(name, _)| name);
        for name in left.filter(|name| !read.contains(name)) {
            *self.unread.entry(format!("{prefix}{name}")).or_default() += 1;
        }
    }

    fn named(&mut self, record: &ToolRecord) {
        for name in record.beside.keys() {
            self.reader.name(name);
        }
    }

    /// Takes a record with its score.
    pub(super) fn take(&mut self, record: &ToolRecord, beside: Beside) -> Result<(), ImportError> {
        self.named(record);
        let Some((policy, item, draw)) = self.reader.take_row(record.line, record)? else {
            return Ok(());
        };
        // Where texts are taken in for another judge, nothing is said of the scores that this one gave.
        if self.how.brings == Brings::Texts {
            return Ok(());
        }
        let reason = beside.reason.filter(|reason| !reason.is_empty());
        if reason.is_some() || !beside.edits.is_empty() {
            self.remarks.push(RowRemark {
                policy,
                item,
                draw,
                declined: false,
                reason,
                edits: beside.edits,
            });
        }
        Ok(())
    }

    /// Declines a record that has a score beside an error: what failed was not judged.
    pub(super) fn failed(&mut self, record: &ToolRecord, error: String) -> Result<(), ImportError> {
        self.failed += u64::from(self.how.brings == Brings::Scores);
        self.decline(record, Some(error))
    }

    /// Takes a record that has no score, and says why.
    pub(super) fn decline(
        &mut self,
        record: &ToolRecord,
        reason: Option<String>,
    ) -> Result<(), ImportError> {
        if self.how.brings == Brings::Texts {
            if record.values.contains_key(row::RESPONSE) {
                return self.take(record, Beside::default());
            }
            self.unanswered += 1;
            return Ok(());
        }
        self.named(record);
        let Some((policy, item, draw)) = self.reader.take_name(record.line, record)? else {
            return Ok(());
        };
        self.remarks.push(RowRemark {
            policy,
            item,
            draw,
            declined: true,
            reason,
            edits: Vec::new(),
        });
        Ok(())
    }

    fn warn_of_remarks(&mut self) {
        if self.unanswered > 0 {
            let count = self.unanswered;
            self.reader
                .warn(format!("{count} rows have no response and are left out"));
        }
        if self.failed > 0 {
            let count = self.failed;
            self.reader.warn(format!(
                "failed: {count} rows have an error beside a score: they are declined, and the score is left out"
            ));
        }
        let declined = self.remarks.iter().filter(|of| of.declined);
        let first: Option<(PolicyId, ItemId, Count)> = declined
            .clone()
            .map(|of| (of.policy.clone(), of.item.clone(), of.draw))
            .next();
        if let Some((policy, item, draw)) = first {
            let count = declined.count();
            self.reader.warn(format!(
                "declined: {count} rows have no score, first draw {draw} of {item} by {policy}; none of them counts as 0, and why is kept as a private note"
            ));
        }
        let edited = self
            .remarks
            .iter()
            .filter(|of| !of.edits.is_empty())
            .count();
        if edited > 0 {
            self.reader.warn(format!(
                "edited: {edited} scores were changed by people after they were given; the first value is recorded, and the edits are kept as a private note"
            ));
        }
    }

    /// Ends the file. `mapping` says where each field came from.
    pub(super) fn finish(mut self, mapping: &[(&str, &str)]) -> Result<ImportRows, ImportError> {
        let pairs = mapping.iter();
        let pairs = pairs.map(|(field, from)| ((*field).to_owned(), (*from).to_owned()));
        self.reader.mapping(pairs.collect());
        self.warn_of_remarks();
        if !self.unread.is_empty() {
            let mut all: Vec<_> = self.unread.iter().collect();
            all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            let shown = all.iter().take(UNREAD_SHOWN);
            let shown: Vec<_> = shown.map(|(name, of)| format!("{name} ({of})")).collect();
            let more = all.len().saturating_sub(UNREAD_SHOWN);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let kept = match self.how.brings {
                Brings::Scores => "the file itself is kept with its rows",
                Brings::Labels => "no file of labels is kept",
                Brings::Texts => "the texts are kept, and not the file",
            };
            let shown = shown.join(", ");
            self.reader.warn(format!("not read: {shown}{more}; {kept}"));
        }
        if self.reader.is_empty() && !self.remarks.is_empty() {
            let what = format!(
                "expected at least one score, found none: {} rows have none",
                self.remarks.len()
            );
            let error = ImportError::new(&self.file, 0, None, what);
            return Err(self.reader.ended(error));
        }
        let mut rows = self.reader.finish()?;
        rows.remarks = self.remarks;
        rows.holds_labels = self.holds_labels;
        Ok(rows)
    }
}
