//! A strict reader of YAML: what people write, as JSON with the line and column of every node.
//!
//! One UTF-8 document of at most [`SIZE_MAX`] bytes under the core schema of YAML 1.2: `yes`, `no`, `on` and
//! `off` are strings. Refused, with their place: tags, anchors, aliases, merge keys, duplicate keys, keys that
//! are no strings, NaN and infinities, integers beyond 2^53 - 1, and nesting beyond [`DEPTH_MAX`].
//!
//! ```
//! let plan = clover_ground::yaml::Document::parse(b"alpha: 0x10\nask: yes\n").unwrap();
//! let value: std::collections::BTreeMap<String, serde_json::Value> = plan.decode().unwrap();
//! assert_eq!((&value["alpha"], &value["ask"]), (&16.into(), &"yes".into()));
//! assert_eq!(plan.place("ask").unwrap().line, 2);
//! ```

use std::collections::BTreeSet;
use std::fmt;

use clover_num::INTEGER_MAX;
use saphyr_parser::Event;
use saphyr_parser::Marker;
use saphyr_parser::Parser;
use saphyr_parser::ScalarStyle;
use serde::de::DeserializeOwned;

/// Most bytes of a document.
pub const SIZE_MAX: usize = 1 << 20;
/// Most nested mappings and sequences.
pub const DEPTH_MAX: usize = 64;

/// Where a node stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Path from the root, such as `arms[0].role`; empty for the root.
    pub path: String,
}

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// Where.
    pub place: NodePosition,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodePosition { line, column, path } = &self.place;
        let gap = if path.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}{gap}{path}: {}", self.message)
    }
}

impl std::error::Error for YamlError {}

/// A document that was read.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) json: String,
    /// The node of each line of `json`.
    pub(crate) places: Vec<NodePosition>,
    /// A plain scalar as it was written, by its line of `json`; empty for all else.
    pub(crate) texts: Vec<String>,
}

impl Document {
    /// Reads one document.
    ///
    /// # Errors
    /// [`YamlError`] with the first place that is refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, YamlError> {
        if bytes.len() > SIZE_MAX {
            let message = format!("expected at most {SIZE_MAX} bytes, found {}", bytes.len());
            return Err(refuse(1, 1, "", message));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let start = before
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
            refuse(line, column, "", "expected UTF-8".to_owned())
        })?;
        let mut reader = Reader::default();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let at = error.marker();
                refuse(
                    at.line().max(1),
                    at.col() + 1,
                    &reader.path(),
                    grammar_words(error.info()).to_owned(),
                )
            })?;
            reader.take(&event, span.start)?;
        }
        Ok(Self {
            json: reader.json,
            places: reader.places,
            texts: reader.texts,
        })
    }

    /// The document as JSON, one token a line.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Where the node at `path` stands.
    pub fn place(&self, path: &str) -> Option<&NodePosition> {
        // The value's place, which follows its key's.
        let found = |place: &&NodePosition| place.path == path;
        let key = self.places.iter().position(|place| place.path == path)?;
        self.places[key..].iter().take(2).rfind(found)
    }

    /// Where the keys stand that have no value, or `null`, in order.
    pub fn blanks(&self) -> impl Iterator<Item = &NodePosition> {
        let lines = self.json.lines().enumerate().skip(1);
        let blank = lines.filter(|(_, line)| *line == "null");
        blank.map(|(at, _)| &self.places[at - 1])
    }

    /// The document as a value of a type.
    ///
    /// # Errors
    /// [`YamlError`] at the node that the type refuses.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, YamlError> {
        let mut json = serde_json::Deserializer::from_str(&self.json);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            self.refused(&path, error.inner())
        })
    }

    fn refused(&self, path: &str, error: &serde_json::Error) -> YamlError {
        let text = error.to_string();
        let message = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        let line = error.line().clamp(1, self.places.len().max(1)) - 1;
        let mut place = self.places.get(line).cloned().unwrap_or_default();
        // What a type says of a value that it has read is placed where the next token begins.
        if path != "."
            && !is_within(&place.path, path)
            && let Some(at) = self.place(path)
        {
            place = at.clone();
        }
        let missing = message.strip_prefix("missing field `");
        if let Some(field) = missing.and_then(|rest| rest.split('`').next()) {
            place.path = member(&place.path, field);
        }
        YamlError {
            place,
            message: message.to_owned(),
        }
    }
}

/// What the grammar expected, by words that occur in what the parser says: the first that does.
const GRAMMAR: &[(&str, &str)] = &[
    (
        "tab",
        "expected spaces, found a tab: YAML takes no tab for indentation",
    ),
    (
        "found unexpected end of stream",
        "expected the closing quote of this text, found the end of the file",
    ),
    (
        "found unexpected document indicator",
        "expected the closing quote of this text, found the end of the document",
    ),
    (
        "escape",
        "expected an escape that YAML knows; a text with a backslash stands in single quotes",
    ),
    (
        "hexadecimal",
        "expected an escape that YAML knows; a text with a backslash stands in single quotes",
    ),
    (
        "after double-quoted scalar",
        "expected nothing more after the closing quote",
    ),
    (
        "indent",
        "expected this line to begin at the same column as its neighbours",
    ),
    (
        "did not find expected key",
        "expected NAME: VALUE at the same column as the names above it",
    ),
    (
        "block sequence",
        "expected an item of a list (- VALUE) on a line of its own, below the name of the list",
    ),
    ("'-' must be followed", "expected a space after -"),
    (
        "block scalar",
        "expected the text of a block (| or >) on the lines below it, indented",
    ),
    (
        "plain scalar cannot start",
        "expected a value; a text that begins with - and a bracket stands in quotes",
    ),
    (
        "mapping",
        "expected NAME: VALUE on a line of its own; a text with a colon in it stands in quotes",
    ),
    (
        "':'",
        "expected NAME: VALUE; a text with a colon in it stands in quotes",
    ),
    (
        "simple key",
        "expected NAME: VALUE; a text with a colon in it stands in quotes",
    ),
    (
        "bracket",
        "expected a bracket or brace for each that was opened, and none more",
    ),
    (
        "node content",
        "expected a value; a text that begins with a mark such as @, %, ] or } stands in quotes",
    ),
    (
        "next token",
        "expected a value; a text that begins with a mark such as @ or % stands in quotes",
    ),
    (
        "unexpected character",
        "expected a value; a text that begins with a mark such as @ or % stands in quotes",
    ),
    (
        "anchor",
        "expected no anchor (a word that begins with &) and no alias (*); such a text stands in quotes",
    ),
    (
        "tag",
        "expected no tag (a word that begins with !); such a text stands in quotes",
    ),
    (
        "directive",
        "expected no directive (a line that begins with %)",
    ),
    (
        "handle",
        "expected no tag (a word that begins with !); such a text stands in quotes",
    ),
    (
        "byte order mark",
        "expected no byte order mark inside the text",
    ),
    ("unprintable", "expected no control character"),
    (
        "document",
        "expected one document, found more after its end",
    ),
    ("recursion", "expected fewer levels within one another"),
    ("comment", "expected a value, found a comment within a text"),
    ("whitespace", "expected a space here"),
    ("eof", "expected more, found the end of the file"),
    ("unexpected end", "expected more, found the end of the file"),
];

/// What the parser says of a text, in words for whoever wrote it.
fn grammar_words(said: &str) -> &'static str {
    let found = GRAMMAR.iter().find(|(part, _)| said.contains(part));
    found.map_or("expected YAML, found what is none", |(_, words)| words)
}

/// Whether one path is another or leads below it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

pub(crate) fn refuse(line: usize, column: usize, path: &str, message: String) -> YamlError {
    let path = path.to_owned();
    YamlError {
        place: NodePosition { line, column, path },
        message,
    }
}

fn member(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// A collection that is open.
#[derive(Debug)]
enum Open {
    /// Its start, keys so far, and the key whose value is awaited.
    Mapping(NodePosition, BTreeSet<String>, Option<String>),
    /// Its start and the number of items so far.
    Sequence(NodePosition, usize),
}

#[derive(Debug, Default)]
struct Reader {
    documents: usize,
    json: String,
    open: Vec<Open>,
    places: Vec<NodePosition>,
    texts: Vec<String>,
}

impl Reader {
    /// Path of the node that comes next.
    fn path(&self) -> String {
        match self.open.last() {
            None => String::new(),
            Some(Open::Mapping(start, _, key)) => key
                .as_ref()
                .map_or_else(|| start.path.clone(), |key| member(&start.path, key)),
            Some(Open::Sequence(start, items)) => format!("{}[{items}]", start.path),
        }
    }

    fn here(&self, at: Marker) -> NodePosition {
        NodePosition {
            line: at.line().max(1),
            column: at.col() + 1,
            path: self.path(),
        }
    }

    fn refuse<T>(&self, at: Marker, message: impl Into<String>) -> Result<T, YamlError> {
        Err(YamlError {
            place: self.here(at),
            message: message.into(),
        })
    }

    fn take(&mut self, event: &Event<'_>, at: Marker) -> Result<(), YamlError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return self.refuse(at, "expected one document, found another");
                }
                Ok(())
            }
            Event::Alias(_) => self.refuse(at, "expected no alias"),
            Event::Scalar(_, _, anchor, tag) if *anchor != 0 || tag.is_some() => {
                self.refuse(at, "expected no anchor and no tag")
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag)
                if *anchor != 0 || tag.is_some() =>
            {
                self.refuse(at, "expected no anchor and no tag")
            }
            Event::Scalar(text, style, ..) => self.scalar(text, *style, at),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let mapping = matches!(event, Event::MappingStart(..));
                self.begin(mapping, at)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (start, close) = match self.open.pop() {
                    Some(Open::Mapping(start, ..)) => (start, "}"),
                    Some(Open::Sequence(start, _)) => (start, "]"),
                    None => return Ok(()),
                };
                self.line(close, start);
                self.next();
                Ok(())
            }
        }
    }

    fn begin(&mut self, mapping: bool, at: Marker) -> Result<(), YamlError> {
        if let Some(Open::Mapping(_, _, None)) = self.open.last() {
            return self.refuse(at, "expected a string as key");
        }
        if self.open.len() == DEPTH_MAX {
            return self.refuse(at, format!("expected at most {DEPTH_MAX} nested levels"));
        }
        let place = self.here(at);
        let open = if mapping { "{" } else { "[" };
        self.value(open, place.clone());
        self.open.push(if mapping {
            Open::Mapping(place, BTreeSet::new(), None)
        } else {
            Open::Sequence(place, 0)
        });
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: Marker) -> Result<(), YamlError> {
        let json = match style {
            ScalarStyle::Plain => match plain(text) {
                Ok(json) => json,
                Err(message) => return self.refuse(at, message),
            },
            _ => quote(text),
        };
        if !matches!(self.open.last(), Some(Open::Mapping(_, _, None))) {
            let place = self.here(at);
            self.value(&json, place);
            if style == ScalarStyle::Plain
                && let Some(last) = self.texts.last_mut()
            {
                text.clone_into(last);
            }
            self.next();
            return Ok(());
        }
        if !json.starts_with('"') {
            return self.refuse(at, format!("expected a string as key, found {json}"));
        }
        if text == "<<" && style == ScalarStyle::Plain {
            return self.refuse(at, "expected no merge key");
        }
        let mut place = self.here(at);
        if let Some(Open::Mapping(_, keys, key)) = self.open.last_mut() {
            let first = keys.is_empty();
            *key = Some(text.to_owned());
            if !keys.insert(text.to_owned()) {
                return self.refuse(at, "expected each key once");
            }
            place.path = self.path();
            let comma = if first { "" } else { "," };
            self.line(&format!("{comma}{json}:"), place);
        }
        Ok(())
    }

    /// Writes the start of a value.
    fn value(&mut self, json: &str, place: NodePosition) {
        let item = matches!(self.open.last(), Some(Open::Sequence(_, items)) if *items > 0);
        if item {
            self.line(&format!(",{json}"), place);
        } else {
            self.line(json, place);
        }
    }

    fn line(&mut self, json: &str, place: NodePosition) {
        self.json.push_str(json);
        self.json.push('\n');
        self.places.push(place);
        self.texts.push(String::new());
    }

    /// After a value: the next item, or the next key.
    fn next(&mut self) {
        match self.open.last_mut() {
            Some(Open::Mapping(_, _, key)) => *key = None,
            Some(Open::Sequence(_, items)) => *items += 1,
            None => {}
        }
    }
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("BUG: a string is JSON")
}

/// JSON of a plain scalar under the core schema.
fn plain(text: &str) -> Result<String, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok("null".to_owned()),
        "true" | "True" | "TRUE" => return Ok("true".to_owned()),
        "false" | "False" | "FALSE" => return Ok("false".to_owned()),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if [".inf", ".Inf", ".INF"].contains(&unsigned) || [".nan", ".NaN", ".NAN"].contains(&text) {
        return Err(format!("expected a finite number, found {text}"));
    }
    let digits = |text: &str, radix| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    let (magnitude, radix) = match text.split_at_checked(2) {
        Some(("0o", rest)) if digits(rest, 8) => (rest, 8),
        Some(("0x", rest)) if digits(rest, 16) => (rest, 16),
        _ if digits(unsigned, 10) => (unsigned, 10),
        _ => return Ok(float(text, unsigned)?.unwrap_or_else(|| quote(text))),
    };
    match u64::from_str_radix(magnitude, radix) {
        Ok(0) => Ok("0".to_owned()),
        Ok(value) if value <= INTEGER_MAX => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            Ok(format!("{sign}{value}"))
        }
        _ => Err(format!(
            "expected an integer within ±{INTEGER_MAX}, found {text}"
        )),
    }
}

/// JSON of `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`; `None` for another text.
fn float(text: &str, unsigned: &str) -> Result<Option<String>, String> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let number = digits(whole)
        && digits(fraction)
        && (!whole.is_empty() || !fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    if !number {
        return Ok(None);
    }
    let value: f64 = match text.parse() {
        Ok(value) => value,
        Err(_) => return Ok(None),
    };
    if !value.is_finite() {
        return Err(format!("expected a finite number, found {text}"));
    }
    Ok(serde_json::to_string(&value).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        Document::parse(text.as_bytes())
            .and_then(|document| document.decode())
            .unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn fails(text: &str) -> String {
        Document::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_core_schema_holds() {
        let text = "a: yes\nb: on\nc: 'true'\nd: true\ne: ~\nf:\ng: 0x1F\nh: 0o17\ni: -7\nj: 1e3\nk: .5\n\
                    l: 1_000\nm: 2026-11-20\nn: [1, two, {o: p}]\nq: |\n  two\n  lines\nr: +12\ns: 1.\n";
        let expected = json!({
            "a": "yes", "b": "on", "c": "true", "d": true, "e": null, "f": null, "g": 31, "h": 15, "i": -7,
            "j": 1000.0, "k": 0.5, "l": "1_000", "m": "2026-11-20", "n": [1, "two", {"o": "p"}],
            "q": "two\nlines\n", "r": 12, "s": 1.0,
        });
        assert_eq!(read(text), expected);
        assert_eq!(read("# nothing but a comment\n---\n[]\n...\n"), json!([]));
        assert_eq!(read("-0"), json!(0));
    }

    /// What somebody is told of a text that is no YAML: what was expected, never where the parser was.
    #[test]
    fn the_grammar_is_said_in_plain_words() {
        for (text, word) in [
            ("a: [1\n", "expected"),
            ("a: @b\n", "stands in quotes"),
            ("a: %b\n", "stands in quotes"),
            ("a: b: c\n", "with a colon"),
            ("a: 'b\n", "closing quote"),
            ("a: \"b\n", "closing quote"),
            ("a: \"b\" c\n", "expected"),
            ("a: \"\\q\"\n", "single quotes"),
            ("a: \"C:\\users\"\n", "single quotes"),
            ("a:\n\tb: 1\n", "tab"),
            ("a:\n  b: 1\n c: 2\n", "same column"),
            ("a: 1\n- b\n", "expected"),
            ("a: }\n", "expected"),
            ("rubric:\n  - ]\n", "expected"),
            ("a: |0\n  b\n", "expected"),
            ("%YAML 9\n", "expected"),
            ("a: !<x\n", "expected"),
            ("a: &\n", "expected"),
        ] {
            let said = Document::parse(text.as_bytes()).unwrap_err().message;
            assert!(
                said.starts_with("expected") && said.contains(word),
                "{text:?}: {said}"
            );
        }
    }

    #[test]
    fn what_is_refused_is_refused_with_its_place() {
        for (text, place, word) in [
            ("a: 1\nb: &x 2\n", "2:", "anchor"),
            ("a: 1\nb: *x\n", "2:", ""),
            ("a: !!int 1\n", "1:", "tag"),
            ("a: ! b\n", "1:", "tag"),
            ("a: 1\n<<: {b: 2}\n", "2:1", "merge"),
            ("a: 1\nb:\n  c: 1\n  c: 2\n", "4:3: b.c:", "once"),
            ("1: a\n", "1:1", "string as key"),
            ("true: a\n", "1:1", "string as key"),
            ("? [a]\n: b\n", "1:", "string as key"),
            ("a: [1, .nan]\n", "1:8: a[1]:", "finite"),
            ("a: -.inf\n", "1:4: a:", "finite"),
            ("a: 1e999\n", "1:4: a:", "finite"),
            ("a: 9007199254740992\n", "1:4: a:", "9007199254740991"),
            ("a: 99999999999999999999999\n", "1:4: a:", "integer"),
            ("a: 1\n---\nb: 2\n", "2:", "one document"),
            ("a: [1\n", "", ""),
            ("a: 'b\n", "", ""),
            ("a: b: c\n", "1:", ""),
        ] {
            let error = fails(text);
            assert!(
                error.starts_with(place) && error.contains(word),
                "{text:?}: {error}"
            );
        }
        assert!(fails(&"[".repeat(DEPTH_MAX + 1)).contains("nested"));
        assert!(Document::parse(&vec![b' '; SIZE_MAX + 1]).is_err());
        let error = Document::parse(b"a: 1\nb: \xff").unwrap_err();
        assert_eq!((error.place.line, error.place.column), (2, 4));
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Plan {
        name: String,
        arms: Vec<Arm>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Arm {
        size: u32,
        mark: Option<Mark>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(try_from = "u8")]
    struct Mark;

    impl TryFrom<u8> for Mark {
        type Error = String;

        fn try_from(value: u8) -> Result<Self, String> {
            (value < 7)
                .then_some(Self)
                .ok_or(format!("{value} is no mark"))
        }
    }

    #[test]
    fn a_typed_error_names_the_field() {
        for (text, expected) in [
            ("name: 7\narms: []\n", "1:7: name: "),
            ("name: a\n", "1:1: arms: missing field `arms`"),
            (
                "name: a\narms:\n  - size: 1\n  - size: x\n",
                "4:11: arms[1].size: ",
            ),
            (
                "name: a\narms:\n  - size: 1\n    sise: 2\n",
                "4:5: arms[0].sise: unknown field",
            ),
            (
                "name: a\narms:\n  - {}\n",
                "3:5: arms[0].size: missing field",
            ),
            ("name: a\narms: {}\n", "2:7: arms: "),
            (
                "name: a\narms:\n  - mark: 9\n    size: 1\n",
                "3:11: arms[0].mark: 9 is no mark",
            ),
            (
                "name: a\narms:\n  - size: 1\n    mark: 9\n",
                "4:11: arms[0].mark: 9 is no mark",
            ),
        ] {
            let error = Document::parse(text.as_bytes())
                .unwrap()
                .decode::<Plan>()
                .unwrap_err();
            assert!(error.to_string().starts_with(expected), "{text:?}: {error}");
        }
    }
}
