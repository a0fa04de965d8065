//! Values that workflows read and write: JSON whose numbers are exact decimals.

use std::collections::BTreeMap;
use std::fmt;

use clover_ground::canon;
use clover_ground::digest::Digest;
use serde::Serialize;
use serde::Serializer;

use crate::number::Number;
use crate::syntax;

/// Domain of a value's digest.
const VALUE_LABEL: &str = "clover/wf-value/v1";

/// A JSON value with exact numbers; members of an object stand in the order of their names' bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// `null`
    #[default]
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Data>),
    /// An object.
    Object(BTreeMap<String, Data>),
}

impl Data {
    /// Reads JSON of at most so many bytes. Decimals beyond the sixth are rounded, halves to even.
    ///
    /// # Errors
    /// [`Fault`](crate::Fault) at the first character that is refused.
    pub fn parse(text: &str, bytes_max: usize) -> Result<Self, crate::Fault> {
        Ok(syntax::parse(text, bytes_max)?.into_data())
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An object of members.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        let members = members.into_iter();
        Self::Object(members.map(|(name, of)| (name.to_owned(), of)).collect())
    }

    /// Canonical JSON (RFC 8785).
    ///
    /// # Panics
    /// Never: its numbers are in range and its names differ.
    pub fn canonical(&self) -> String {
        let bytes = canon::to_bytes(self).expect("BUG: exact numbers have a canonical form");
        String::from_utf8(bytes).expect("BUG: JSON is UTF-8")
    }

    /// SHA-256 of `clover/wf-value/v1`, a zero byte and its canonical form.
    pub fn digest(&self) -> Digest {
        canon::digest(VALUE_LABEL, self)
    }

    /// What stands at a member's name.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// As text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As a number.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// As a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// What a template puts in its place: text as it is, everything else in canonical form.
    pub fn shown(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_str().into(),
            other => other.canonical().into(),
        }
    }

    /// Values within it, itself included.
    pub fn nodes(&self) -> usize {
        1 + match self {
            Self::List(items) => items.iter().map(Self::nodes).sum(),
            Self::Object(members) => members.values().map(Self::nodes).sum(),
            _ => 0,
        }
    }

    /// Bytes that it takes, about: of its texts and names, and 16 for each value.
    pub fn weight(&self) -> usize {
        16 + match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(Self::weight).sum(),
            Self::Object(members) => members
                .iter()
                .map(|(name, of)| name.len() + of.weight())
                .sum(),
            _ => 0,
        }
    }

    /// What it is, as JSON Schema names types.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// JSON with two spaces a level. Members keep the order of their names, but for those of `order`, which come first
    /// and in that order; what fits in `width` columns stands on one line.
    pub fn pretty(&self, order: &[&str], width: usize) -> String {
        let mut out = String::new();
        self.write_pretty(&mut out, order, width, 0);
        out.push('\n');
        out
    }

    fn write_pretty(&self, out: &mut String, order: &[&str], width: usize, indent: usize) {
        let column = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
        let line = self.on_one_line(order);
        if column + line.chars().count() < width {
            out.push_str(&line);
            return;
        }
        let gap = " ".repeat(indent + 2);
        let close = " ".repeat(indent);
        match self {
            Self::List(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "[\n" } else { ",\n" });
                    out.push_str(&gap);
                    item.write_pretty(out, order, width, indent + 2);
                }
                out.push_str(&format!("\n{close}]"));
            }
            Self::Object(members) if !members.is_empty() => {
                for (at, (name, of)) in ordered(members, order).into_iter().enumerate() {
                    out.push_str(if at == 0 { "{\n" } else { ",\n" });
                    out.push_str(&format!("{gap}{}: ", quoted(name)));
                    of.write_pretty(out, order, width, indent + 2);
                }
                out.push_str(&format!("\n{close}}}"));
            }
            _ => out.push_str(&line),
        }
    }

    fn on_one_line(&self, order: &[&str]) -> String {
        match self {
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| item.on_one_line(order)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Object(members) => {
                let members = ordered(members, order).into_iter();
                let members: Vec<_> = members
                    .map(|(name, of)| format!("{}: {}", quoted(name), of.on_one_line(order)))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
            other => other.canonical(),
        }
    }
}

/// Members in the order of print.
fn ordered<'a>(members: &'a BTreeMap<String, Data>, order: &[&str]) -> Vec<(&'a String, &'a Data)> {
    let mut all: Vec<_> = members.iter().collect();
    let rank = |name: &str| order.iter().position(|of| *of == name);
    all.sort_by_key(|(name, _)| (rank(name).unwrap_or(order.len()), *name));
    all
}

/// A text in quotes, as JSON writes it, cut after 60 characters.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => quoted(&format!("{}…", &text[..end])),
        None => quoted(text),
    }
}

/// A text as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    Data::text(text).canonical()
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Data {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Number> for Data {
    fn from(value: Number) -> Self {
        Self::Number(value)
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => value.serialize(serializer),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members),
        }
    }
}
