//! JSON that others wrote: bounded in depth, each member once, no number that is none, and places for messages.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::analyze::read::Record;
use crate::import::row::short;

/// Deepest nesting that is read.
pub const DEPTH_MAX: usize = 120;

/// What is wrong with a text, and where: its line from 1, the path to it, and what was expected and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonFault {
    pub line: u64,
    pub path: String,
    pub what: String,
}

/// Where a scan of a text stands: a member of an object, or an element of a list.
enum Level<'t> {
    Member(&'t str, bool),
    Element(usize),
}

fn path_of(levels: &[Level<'_>]) -> String {
    let mut path = String::new();
    for level in levels {
        match level {
            Level::Member(name, _) if path.is_empty() => path.push_str(name),
            Level::Member(name, _) => path.push_str(&format!(".{name}")),
            Level::Element(at) => path.push_str(&format!("[{at}]")),
        }
    }
    path
}

/// The end of a string whose opening quote stands before `at`: the place of its closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// Numbers that JSON has not, as Python writes them.
const CONSTANTS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// A text without numbers that are none: `null` stands for a NaN where `may_be_none` says so of its path.
///
/// # Errors
/// [`JsonFault`] at any other of them, and where lists and objects are nested too deep.
pub(super) fn checked<'t>(
    text: &'t str,
    may_be_none: impl Fn(&str) -> bool,
) -> Result<Cow<'t, str>, JsonFault> {
    let bytes = text.as_bytes();
    let fault = |at: usize, path: String, what: String| JsonFault {
        line: 1 + memchr::memchr_iter(b'\n', &bytes[..at.min(bytes.len())]).count() as u64,
        path,
        what,
    };
    let mut levels: Vec<Level<'t>> = Vec::new();
    let (mut at, mut copied, mut changed) = (0, 0, String::new());
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                if levels.len() == DEPTH_MAX {
                    let what = format!("expected at most {DEPTH_MAX} levels, found more");
                    let path: String = path_of(&levels).chars().take(60).collect();
                    return Err(fault(at, format!("{path}…"), what));
                }
                let is_object = bytes[at] == b'{';
                levels.push(if is_object {
                    Level::Member("", true)
                } else {
                    Level::Element(0)
                });
            }
            b'}' | b']' => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(Level::Member(_, is_key)) => *is_key = true,
                Some(Level::Element(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let end = string_end(bytes, at + 1);
                if let Some(Level::Member(name, is_key)) = levels.last_mut()
                    && *is_key
                {
                    *name = text.get(at + 1..end).unwrap_or_default();
                    *is_key = false;
                }
                at = end;
            }
            b'N' | b'I' | b'-' => {
                let word = CONSTANTS
                    .into_iter()
                    .find(|word| bytes[at..].starts_with(word.as_bytes()));
                if let Some(word) = word {
                    let path = path_of(&levels);
                    if word != "NaN" || !may_be_none(&path) {
                        let what = format!("expected a number, found {word}, which JSON has not");
                        return Err(fault(at, path, what));
                    }
                    changed.push_str(&text[copied..at]);
                    changed.push_str("null");
                    copied = at + word.len();
                    at = copied - 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    changed.push_str(&text[copied..]);
    Ok(Cow::Owned(changed))
}

/// A value with the path to it.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub raw: &'a RawValue,
    pub path: String,
}

/// An object of a file.
pub(super) struct Object<'a> {
    pub record: Record<'a>,
    pub path: String,
}

/// What was expected of a node.
pub(super) type NodeFault = (String, String);

impl<'a> Node<'a> {
    pub(super) fn new(raw: &'a RawValue, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { raw, path }
    }

    /// What was expected here, and what is found.
    pub(super) fn fault(&self, expected: &str) -> NodeFault {
        let what = format!("expected {expected}, found {}", short(self.raw.get()));
        (self.path.clone(), what)
    }

    /// The first character of the value, by which its type is known.
    fn first(&self) -> u8 {
        self.raw.get().bytes().next().unwrap_or(b' ')
    }

    pub(super) fn is_object(&self) -> bool {
        self.first() == b'{'
    }

    pub(super) fn is_list(&self) -> bool {
        self.first() == b'['
    }

    pub(super) fn is_text(&self) -> bool {
        self.first() == b'"'
    }

    pub(super) fn object(&self) -> Result<Object<'a>, NodeFault> {
        let wrong = |error: serde_json::Error| {
            let what = format!("expected an object with each member once: {error}");
            (self.path.clone(), what)
        };
        Ok(Object {
            record: serde_json::from_str(self.raw.get()).map_err(wrong)?,
            path: self.path.clone(),
        })
    }

    pub(super) fn list(&self) -> Result<Vec<Self>, NodeFault> {
        let all: Vec<&'a RawValue> =
            serde_json::from_str(self.raw.get()).map_err(|_| self.fault("a list"))?;
        let all = all.into_iter().enumerate();
        Ok(all
            .map(|(at, raw)| Self::new(raw, format!("{}[{at}]", self.path)))
            .collect())
    }

    pub(super) fn text(&self) -> Result<String, NodeFault> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.fault("a text"))
    }

    /// A text as it is, and any other value as it is written.
    pub(super) fn as_written(&self) -> String {
        self.text().unwrap_or_else(|_| self.raw.get().to_owned())
    }

    /// A text, or a number as it is written.
    pub(super) fn name(&self) -> Result<String, NodeFault> {
        let is_number = self.first() == b'-' || self.first().is_ascii_digit();
        if is_number {
            return Ok(self.raw.get().to_owned());
        }
        self.text().map_err(|_| self.fault("a text or a number"))
    }

    /// A number as it is written, and a flag as 1 or 0.
    pub(super) fn number(&self) -> Result<String, NodeFault> {
        match self.raw.get() {
            "true" => Ok("1".to_owned()),
            "false" => Ok("0".to_owned()),
            text if self.first() == b'-' || self.first().is_ascii_digit() => Ok(text.to_owned()),
            _ => Err(self.fault("a number")),
        }
    }
}

impl<'a> Object<'a> {
    /// A member that is there and not `null`.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let raw = self.record.get(name)?;
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Some(Node::new(raw, path))
    }

    /// A member that has to be there.
    pub(super) fn needs(&self, name: &str, expected: &str) -> Result<Node<'a>, NodeFault> {
        self.get(name).ok_or_else(|| {
            let there: Vec<_> = self.names().take(12).collect();
            let what = format!(
                "expected {name}, {expected}, found none; there are {}",
                there.join(", ")
            );
            (self.path.clone(), what)
        })
    }

    /// The text of a member; `None` where it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, NodeFault> {
        let text = self.get(name).map(|node| node.text()).transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// Names of its members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.record.0.iter().map(|(name, _)| name.as_ref())
    }

    /// Its members, `null` left out.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        let there = self.record.0.iter().filter(|(_, raw)| raw.get() != "null");
        there.map(|(name, raw)| {
            let path = format!("{}.{name}", self.path);
            (name.as_ref(), Node::new(raw, path))
        })
    }
}

/// Lines of values in the text that they were read from.
pub(super) struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: u64,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let (at, line) = (0, 1);
        Self { text, at, line }
    }

    /// The line on which a value begins.
    pub(super) fn line(&mut self, raw: &RawValue) -> u64 {
        let base = self.text.as_ptr() as usize;
        let place = (raw.get().as_ptr() as usize).wrapping_sub(base);
        if place > self.text.len() {
            return self.line;
        }
        if place < self.at {
            (self.at, self.line) = (0, 1);
        }
        let between = &self.text.as_bytes()[self.at..place];
        self.line += memchr::memchr_iter(b'\n', between).count() as u64;
        self.at = place;
        self.line
    }
}

/// The values of a text one after the other: one document, one a line, or documents that were joined.
///
/// # Errors
/// [`JsonFault`] at the first that is none.
pub(super) fn documents(text: &str) -> Result<Vec<&RawValue>, JsonFault> {
    let mut all = Vec::new();
    let mut found = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    loop {
        match found.next() {
            None => return Ok(all),
            Some(Ok(raw)) => all.push(raw),
            Some(Err(error)) => {
                return Err(JsonFault {
                    line: error.line() as u64,
                    path: String::new(),
                    what: format!("expected JSON: {error}"),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_is_named_by_its_path() {
        let text = "{\"a\":\"NaN\",\n\"samples\":[{\"x\":1},{\"scores\":{\"j\":{\"value\":NaN}}}]}";
        let fault = checked(text, |_| false).unwrap_err();
        assert_eq!(
            (fault.line, fault.path.as_str()),
            (2, "samples[1].scores.j.value")
        );
        let mended = checked(text, |path| path.split('.').next_back() == Some("value")).unwrap();
        assert_eq!(mended, text.replace(":NaN", ":null"));
        for constant in ["Infinity", "-Infinity"] {
            let text = format!("[{constant}]");
            assert_eq!(checked(&text, |_| true).unwrap_err().path, "[0]");
        }
        // Within a text they are text, escaped quotes and all.
        let text = r#"{"a":"\"NaN","b":["-Infinity"]}"#;
        assert_eq!(checked(text, |_| false).unwrap(), text);
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        checked(&nested(DEPTH_MAX), |_| false).unwrap();
        let fault = checked(&nested(DEPTH_MAX + 1), |_| false).unwrap_err();
        assert!(fault.what.contains("at most 120 levels"), "{}", fault.what);
        checked(&nested(1_000_000), |_| false).unwrap_err();
    }

    #[test]
    fn joined_documents_are_read_with_their_lines() {
        let text = "{\"a\":1}{\"b\":\n2}\n\n[3]";
        let all = documents(text).unwrap();
        assert_eq!(all.len(), 3);
        let mut lines = Lines::of(text);
        let found: Vec<_> = all.iter().map(|raw| lines.line(raw)).collect();
        assert_eq!(found, [1, 1, 4]);
        assert_eq!(lines.line(all[0]), 1);
    }
}
