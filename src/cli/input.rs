//! Reading what a person or a program wrote: typed payloads from JSON, with errors that name the file, the
//! line, the column and the field.

use std::borrow::Cow;
use std::ffi::OsString;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::error::CliError;
use crate::event::Kind;
use crate::event::Payload;
use crate::event::id::EventId;
use crate::event::id::ExperimentId;
use crate::event::registry;
use crate::event::registry::PayloadError;
use crate::ground::time::Timestamp;
use crate::ledger::Command;

/// What is wrong with a JSON text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1; 0 when nobody knows.
    pub column: usize,
    /// The field, as in `data.item`; empty for the whole.
    pub field: String,
    /// What was expected and found.
    pub message: String,
}

impl Fault {
    /// As an error about `source`; `first_line` is the line of the file on which the text begins.
    pub(super) fn into_error(self, source: &str, first_line: u64, next: &str) -> CliError {
        let line = first_line + self.line as u64 - 1;
        let column = match self.column {
            0 => String::new(),
            column => format!(":{column}"),
        };
        let field = match self.field.as_str() {
            "" => String::new(),
            field => format!("{field}: "),
        };
        let mut error = CliError::input(
            format!("{source}:{line}{column}: {field}{}", self.message),
            next,
        );
        error.data = serde_json::json!({
            "file": source, "line": line, "column": self.column, "field": self.field,
        });
        error
    }
}

/// One line of a bulk file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkLine<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default)]
    experiment: Option<ExperimentId>,
    #[serde(default)]
    refs: Vec<EventId>,
    #[serde(default)]
    at: Option<Timestamp>,
}

/// Reads one line `{"kind":…,"data":{…},"experiment":…,"refs":[…],"at":…}`.
pub(super) fn command(text: &[u8]) -> Result<Command, Fault> {
    let text = std::str::from_utf8(text).map_err(|error| Fault {
        line: 1,
        column: error.valid_up_to() + 1,
        field: String::new(),
        message: "expected UTF-8".to_owned(),
    })?;
    let line: BulkLine<'_> =
        serde_json::from_str(text).map_err(|error| fault(text, 0, &error.to_string()))?;
    let data = line.data.get();
    let start = data.as_ptr() as usize - text.as_ptr() as usize;
    let of_kind = |message| Fault {
        line: 1,
        column: 0,
        field: "kind".to_owned(),
        message,
    };
    let kind = kind(&line.kind).map_err(of_kind)?;
    if kind == Kind::SubjectErased {
        let next = "clover erase SUBJECT --basis TEXT";
        return Err(of_kind(format!("{ERASED}: {next}")));
    }
    let payload = decode(kind, data).map_err(|message| within(text, start, &message))?;
    Ok(Command {
        payload,
        experiment: line.experiment,
        refs: line.refs,
        at: line.at,
    })
}

/// Reads one closed JSON document.
pub(super) fn document<T: serde::de::DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    let text = std::str::from_utf8(text).map_err(|error| Fault {
        line: 1,
        column: error.valid_up_to() + 1,
        field: String::new(),
        message: "expected UTF-8".to_owned(),
    })?;
    serde_json::from_str(text).map_err(|error| fault(text, 0, &error.to_string()))
}

/// Reads the data of one event of a known kind.
pub(super) fn payload(kind: Kind, text: &[u8]) -> Result<Payload, Fault> {
    let text = std::str::from_utf8(text).map_err(|error| Fault {
        line: 1,
        column: error.valid_up_to() + 1,
        field: String::new(),
        message: "expected UTF-8".to_owned(),
    })?;
    decode(kind, text).map_err(|message| fault(text, 0, &message))
}

/// A kind by its text.
pub(super) fn kind(text: &str) -> Result<Kind, String> {
    text.parse().map_err(|_| {
        let near = Kind::ALL.iter().map(|kind| kind.as_str());
        let noun = text.split('.').next().unwrap_or_default();
        let near: Vec<_> = near
            .filter(|known| !noun.is_empty() && known.starts_with(noun))
            .collect();
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(" such as {}", near.join(", ")),
        };
        format!("expected a kind of the registry{near}, found {text:?}")
    })
}

/// Why nobody writes the event of an erasure by hand.
pub(super) const ERASED: &str = "subject.erased alone leaves the key of the texts, and they stay readable; clover erase destroys it too";

/// How a type begins to say that a text is no time.
const NO_TIME: &str = "expected a UTC time such as ";

/// A payload; a time may stand as a day or without decimals, as in plans.
fn decode(kind: Kind, data: &str) -> Result<Payload, String> {
    let mut data = Cow::Borrowed(data);
    loop {
        // Each turn writes one time in the one form that is signed, and none twice.
        let error = match registry::decode(kind.as_str(), kind.version(), &data) {
            Ok((payload, _)) => return Ok(payload),
            Err(PayloadError::Schema { error, .. }) => error,
            Err(error @ PayloadError::Kind { .. }) => return Err(error.to_string()),
        };
        match in_full(&data, &error) {
            Some(restated) => data = Cow::Owned(restated),
            None => {
                return Err(error.replacen(
                    NO_TIME,
                    "expected a UTC time such as 2026-11-20 or ",
                    1,
                ));
            }
        }
    }
}

/// The data with the time that was refused written to the microsecond; `None` where what was refused is no time.
fn in_full(data: &str, error: &str) -> Option<String> {
    let (message, line, column) = place(error);
    let found = message.strip_prefix(NO_TIME)?.rsplit_once("found ")?.1;
    let text: String = serde_json::from_str(found).ok()?;
    let time = Timestamp::parse_written(&text).filter(|_| Timestamp::parse(&text).is_none())?;
    let before: usize = data
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = (before + column + 1).min(data.len());
    let start = data.get(..end)?.rfind(found)?;
    let (head, tail) = (&data[..start], &data[start + found.len()..]);
    Some(format!("{head}\"{time}\"{tail}"))
}

/// Splits the parser's ` at line L column C` off a message.
fn place(message: &str) -> (&str, usize, usize) {
    let parts = || {
        let (text, place) = message.rsplit_once(" at line ")?;
        let (line, column) = place.split_once(" column ")?;
        Some((text, line.parse().ok()?, column.parse().ok()?))
    };
    parts().unwrap_or((message, 1, 0))
}

fn fault(text: &str, start: usize, message: &str) -> Fault {
    let (message, line, column) = place(message);
    let before: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let offset = start + before + column.saturating_sub(1);
    Fault {
        line,
        column,
        field: field_at(text, offset),
        message: message.to_owned(),
    }
}

/// A fault in a part of a line that begins at byte `start`.
fn within(text: &str, start: usize, message: &str) -> Fault {
    let (message, line, column) = place(message);
    let part = &text[start..];
    let before: usize = part
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let offset = start + before + column.saturating_sub(1);
    let last_break = text[..offset.min(text.len())]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    Fault {
        line: text[..last_break].matches('\n').count() + 1,
        column: if column == 0 {
            0
        } else {
            offset - last_break + 1
        },
        field: field_at(text, offset),
        message: message.to_owned(),
    }
}

/// The path of the member whose key or value byte `offset` belongs to; empty outside of any.
fn field_at(text: &str, offset: usize) -> String {
    // For each open object its current key, for each open array nothing.
    let mut path: Vec<Option<String>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() && at <= offset {
        match bytes[at] {
            b'{' | b'[' => path.push(None),
            b'}' | b']' if at < offset => {
                path.pop();
            }
            b',' if at < offset => {
                if let Some(key) = path.last_mut() {
                    *key = None;
                }
            }
            b'"' => {
                let start = at + 1;
                at = string_end(bytes, start);
                let rest = text.get(at + 1..).unwrap_or_default().trim_start();
                if rest.starts_with(':')
                    && let (Some(key), Some(name)) = (path.last_mut(), text.get(start..at))
                {
                    *key = Some(name.to_owned());
                }
            }
            _ => {}
        }
        at += 1;
    }
    let names: Vec<_> = path.into_iter().flatten().collect();
    names.join(".")
}

/// The closing quote of a string that begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// `help VERB` and `version`, as other programs have them, in the form of options: `VERB --help` and `--version`.
pub(super) fn as_options(mut args: Vec<OsString>) -> Vec<OsString> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            args.remove(1);
            args.push("--help".into());
        }
        Some("version") => args[1] = "--version".into(),
        _ => {}
    }
    args
}

/// A number below 0 after an option is its value, which the message then names, and no option of its own.
pub(super) fn with_negatives(command: clap::Command) -> clap::Command {
    let named = command.mut_args(|arg| {
        let takes = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes)
    });
    named.mut_subcommands(with_negatives)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> (usize, usize, String, String) {
        let fault = command(text.as_bytes()).unwrap_err();
        (fault.line, fault.column, fault.field, fault.message)
    }

    #[test]
    fn a_day_stands_for_the_time_at_which_it_begins() {
        let hex = "0".repeat(64);
        // A text beside it that reads the same stays as it is, before and after.
        let before = |day: &str| {
            format!(
                r#"{{"document":"{hex}","sdp_version":"2026-01-01","effective_at":"{day}","target":"Y"}}"#
            )
        };
        let after = |day: &str| {
            format!(
                r#"{{"document":"{hex}","effective_at":"{day}","sdp_version":"2026-01-01","target":"Y"}}"#
            )
        };
        let of = |text: String| payload(Kind::SdpVersionRegistered, text.as_bytes());
        let full = of(before("2026-01-01T00:00:00.000000Z")).unwrap();
        for day in ["2026-01-01", "2026-01-01T00:00:00Z"] {
            assert_eq!(of(before(day)).unwrap(), full);
            assert_eq!(of(after(day)).unwrap(), full);
        }
        let wrong = of(before("tomorrow")).unwrap_err();
        let said = "expected a UTC time such as 2026-11-20 or 2026-";
        assert!(wrong.message.contains(said), "{}", wrong.message);
    }

    #[test]
    fn faults_name_the_field() {
        let (line, _, field, message) = fails(r#"{"kind":"note.recorded","data":{"text":7}}"#);
        assert_eq!((line, field.as_str()), (1, "data.text"));
        assert!(message.contains("expected a string"), "{message}");
        let (_, _, field, _) =
            fails(r#"{"kind":"note.recorded","data":{"text":"a"},"at":"today"}"#);
        assert_eq!(field, "at");
        let (_, column, field, _) = fails(r#"{"kind":"note.recorded","data":{"text":"a""#);
        assert_eq!(field, "data.text");
        assert!(column > 0);
        let (_, _, field, message) = fails(r#"{"kind":"note.taken","data":{}}"#);
        assert_eq!(field, "kind");
        assert!(message.contains("note.recorded"), "{message}");
        let (_, _, _, message) =
            fails(r#"{"kind":"note.recorded","data":{"text":"a","text":"b"}}"#);
        assert!(message.contains("duplicate field `text`"), "{message}");
        let (_, _, field, message) = fails(
            r#"{"kind":"score.recorded","data":{"draw":9007199254740992,"item":"i","judge":"j","policy":"p","score_micro":1}}"#,
        );
        assert_eq!(field, "data.draw");
        assert!(message.contains("9007199254740991"), "{message}");
    }

    #[test]
    fn a_line_reads_as_a_command() {
        let text = r#"{"at":"2026-11-20T10:00:00.000000Z","data":{"text":"a"},"experiment":"e","kind":"note.recorded","refs":[]}"#;
        let command = command(text.as_bytes()).unwrap();
        assert_eq!(command.experiment.unwrap().as_str(), "e");
        assert!(command.at.is_some());
    }
}
