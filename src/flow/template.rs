//! Texts with holes: `Task: {{x.text}}`. A hole holds a path and nothing else.

use crate::fault::FaultKind;
use crate::path::Path;
use crate::value::Data;
use crate::value::shortened;

/// A text with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Hole(Path),
}

impl Template {
    /// Reads a template. Spaces within a hole's braces do not count.
    ///
    /// # Errors
    /// [`FaultKind::Expected`] for a hole that is not closed or holds no path.
    pub fn parse(text: &str) -> Result<Self, FaultKind> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let wrong = |found: &str| FaultKind::Expected {
                wanted: "a path between {{ and }}",
                found: shortened(found),
            };
            let (hole, after) = after.split_once("}}").ok_or_else(|| wrong(after))?;
            let path = Path::parse(hole.trim_matches(' ')).ok_or_else(|| wrong(hole))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Hole(path));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Paths of its holes, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(path) => Some(path),
            Piece::Text(_) => None,
        })
    }

    /// The text with its holes filled: text as it is, every other value as canonical JSON. What is put in is never read
    /// as a template again.
    ///
    /// # Errors
    /// The path of the first hole for which `find` has nothing.
    pub fn fill<'a>(
        &self,
        mut find: impl FnMut(&Path) -> Option<std::borrow::Cow<'a, Data>>,
    ) -> Result<String, Path> {
        let mut out = String::with_capacity(self.text.len());
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole(path) => {
                    let found = find(path).ok_or_else(|| path.clone())?;
                    out.push_str(&found.shown());
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn holes_are_filled_once() {
        let template = Template::parse("a {{ x.t }}{{x.n}} {b} }}").unwrap();
        let root = Data::parse(r#"{"t":"{{x.n}}","n":[1.50,"é"]}"#, 100).unwrap();
        let filled = template.fill(|path| path.find(&root).map(Cow::Borrowed));
        assert_eq!(filled.unwrap(), "a {{x.n}}[1.5,\"é\"] {b} }}");
        assert_eq!(template.paths().count(), 2);
        assert_eq!(template.fill(|_| None).unwrap_err().to_string(), "x.t");
        for bad in ["{{", "{{}}", "{{ a b }}", "{{a}", "{{{a}}}", "{{a\n}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
