//! A strict reader of JSON that keeps the line and column of every value and member.
//!
//! Numbers are read from their text ([`Number`]), members that stand twice are refused, and nesting ends at
//! [`DEPTH_MAX`].

use crate::fault::Fault;
use crate::fault::FaultKind;
use crate::fault::TextPosition;
use crate::number::Number;
use crate::value::Data;

/// Most nested lists and objects.
pub const DEPTH_MAX: usize = 32;

/// A value of a document, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where its first character stands.
    pub at: TextPosition,
    /// What it is.
    pub is: NodeKind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, and whether decimals were rounded away.
    Number(Number, bool),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order of its text.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Where its name stands.
    pub at: TextPosition,
    /// Its name.
    pub name: String,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The value without places.
    pub fn into_data(self) -> Data {
        match self.is {
            NodeKind::Null => Data::Null,
            NodeKind::Bool(value) => Data::Bool(value),
            NodeKind::Number(value, _) => Data::Number(value),
            NodeKind::Text(value) => Data::Text(value),
            NodeKind::List(items) => Data::List(items.into_iter().map(Self::into_data).collect()),
            NodeKind::Object(members) => Data::Object(
                members
                    .into_iter()
                    .map(|member| (member.name, member.node.into_data()))
                    .collect(),
            ),
        }
    }

    /// What it is, for people.
    pub(crate) fn noun(&self) -> String {
        match &self.is {
            NodeKind::Null => "null".to_owned(),
            NodeKind::Bool(value) => value.to_string(),
            NodeKind::Number(value, _) => value.to_string(),
            NodeKind::Text(text) => crate::value::quoted(text),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Object(_) => "an object".to_owned(),
        }
    }
}

/// Reads one JSON value.
///
/// # Errors
/// [`Fault`] at the first character that is refused.
pub fn parse(text: &str, bytes_max: usize) -> Result<Node, Fault> {
    let mut scanner = Scanner {
        text,
        rest: text,
        counted: 0,
        at: TextPosition { line: 1, column: 1 },
        depth: 0,
    };
    if text.len() > bytes_max {
        return Err(scanner.fault(FaultKind::TooMany {
            what: "bytes",
            most: bytes_max,
            found: text.len(),
        }));
    }
    let node = scanner.value()?;
    scanner.skip_space();
    if scanner.rest.is_empty() {
        Ok(node)
    } else {
        Err(scanner.expected("the end of the document"))
    }
}

struct Scanner<'a> {
    text: &'a str,
    rest: &'a str,
    /// How many bytes `at` has counted.
    counted: usize,
    at: TextPosition,
    depth: usize,
}

impl Scanner<'_> {
    /// Where the next character stands.
    fn here(&mut self) -> TextPosition {
        let read = self.text.len() - self.rest.len();
        for letter in self.text[self.counted..read].chars() {
            if letter == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
        self.counted = read;
        self.at
    }

    fn fault(&mut self, kind: FaultKind) -> Fault {
        Fault {
            at: self.here(),
            path: String::new(),
            kind,
        }
    }

    fn expected(&mut self, wanted: &'static str) -> Fault {
        let found = match self.rest.chars().next() {
            Some(letter) => crate::value::quoted(&letter.to_string()),
            None => "the end of the text".to_owned(),
        };
        self.fault(FaultKind::Expected { wanted, found })
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes one character, if it comes next.
    fn takes(&mut self, letter: char) -> bool {
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Result<Node, Fault> {
        self.skip_space();
        let at = self.here();
        let is = match self.rest.bytes().next() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => NodeKind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, is })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<NodeKind, Fault>,
    ) -> Result<NodeKind, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(self.fault(FaultKind::TooMany {
                what: "nested lists and objects",
                most: DEPTH_MAX,
                found: DEPTH_MAX + 1,
            }));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn word(&mut self) -> Result<NodeKind, Fault> {
        for (word, is) in [
            ("null", NodeKind::Null),
            ("true", NodeKind::Bool(true)),
            ("false", NodeKind::Bool(false)),
        ] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(is);
            }
        }
        Err(self.expected("a JSON value"))
    }

    fn number(&mut self) -> Result<NodeKind, Fault> {
        let is_part = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
        let end = self.rest.find(|letter| !is_part(letter));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let Some((number, rounded)) = Number::parse(text) else {
            let found = text.chars().take(40).collect();
            let wanted = "a number: whole up to 2^53 - 1, or decimal below 10^9";
            return Err(self.fault(FaultKind::Expected { wanted, found }));
        };
        self.rest = rest;
        Ok(NodeKind::Number(number, rounded))
    }

    fn list(&mut self) -> Result<NodeKind, Fault> {
        self.takes('[');
        let mut items = Vec::new();
        self.skip_space();
        if self.takes(']') {
            return Ok(NodeKind::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.takes(']') {
                return Ok(NodeKind::List(items));
            }
            if !self.takes(',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn object(&mut self) -> Result<NodeKind, Fault> {
        self.takes('{');
        let mut members: Vec<Member> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        self.skip_space();
        if self.takes('}') {
            return Ok(NodeKind::Object(members));
        }
        loop {
            self.skip_space();
            if !self.rest.starts_with('"') {
                return Err(self.expected("a name in quotes"));
            }
            let at = self.here();
            let name = self.string()?;
            if !names.insert(name.clone()) {
                return Err(Fault {
                    at,
                    path: String::new(),
                    kind: FaultKind::Twice(name),
                });
            }
            self.skip_space();
            if !self.takes(':') {
                return Err(self.expected("':'"));
            }
            let node = self.value()?;
            members.push(Member { at, name, node });
            self.skip_space();
            if self.takes('}') {
                return Ok(NodeKind::Object(members));
            }
            if !self.takes(',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.takes('"');
        let mut text = String::new();
        loop {
            let is_plain = |letter: char| letter >= ' ' && letter != '"' && letter != '\\';
            let end = self.rest.find(|letter| !is_plain(letter));
            let (plain, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            text.push_str(plain);
            self.rest = rest;
            if self.takes('"') {
                return Ok(text);
            }
            if !self.takes('\\') {
                return Err(self.expected("the rest of a string"));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let wanted = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX";
        let letter = match self.rest.chars().next() {
            Some(letter @ ('"' | '\\' | '/')) => letter,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.takes('u');
                return self.unicode();
            }
            _ => return Err(self.expected(wanted)),
        };
        self.rest = &self.rest[1..];
        Ok(letter)
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.rest.get(..4).unwrap_or_default();
        let is_hex = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(code) = is_hex
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
        else {
            return Err(self.expected("four hex digits"));
        };
        self.rest = &self.rest[4..];
        Ok(code)
    }

    fn unicode(&mut self) -> Result<char, Fault> {
        let high = self.hex()?;
        if let Some(letter) = char::from_u32(high) {
            return Ok(letter);
        }
        if high < 0xDC00 && self.takes('\\') && self.takes('u') {
            let low = self.hex()?;
            if (0xDC00..0xE000).contains(&low) {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                if let Some(letter) = char::from_u32(code) {
                    return Ok(letter);
                }
            }
        }
        Err(self.expected("the second half of a surrogate pair"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_serde_reads() {
        let texts = [
            r#" {"a":[1,-2.5,true,false,null,"x\u00e9\ud83d\ude00\n\/"],"b":{}} "#,
            "[]",
            "\"\"",
            "[[[1e2]]]",
        ];
        for text in texts {
            let ours = parse(text, 1000).unwrap().into_data();
            let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
            let theirs = clover_ground::canon::to_bytes(&theirs).unwrap();
            assert_eq!(ours.canonical().as_bytes(), theirs, "{text}");
        }
    }

    #[test]
    fn a_fault_names_its_line_and_column() {
        let cases = [
            ("{\n \"a\": 1,\n \"a\": 2}", (3, 2)),
            ("{\"é\": tru}", (1, 7)),
            ("[1 2]", (1, 4)),
            ("[1,]", (1, 4)),
            ("\"\\ud800x\"", (1, 8)),
            ("\"a\nb\"", (1, 3)),
            ("", (1, 1)),
            ("{} x", (1, 4)),
            ("[1e99]", (1, 2)),
        ];
        for (text, (line, column)) in cases {
            let fault = parse(text, 1000).unwrap_err();
            assert_eq!(fault.at, TextPosition { line, column }, "{text}: {fault}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err() || !text.is_empty());
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(
            parse(&deep, 1 << 20).unwrap_err().kind,
            FaultKind::TooMany {
                most: DEPTH_MAX,
                ..
            }
        ));
        assert!(parse("[1]", 2).is_err());
    }
}
