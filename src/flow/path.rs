//! Dotted paths into values: `draft.lines.0.price`.

use std::fmt;

use crate::value::Data;

/// Most segments of a path.
const SEGMENTS_MAX: usize = 12;
/// Most bytes of a segment.
const SEGMENT_MAX: usize = 64;
/// Most bytes of a name that a workflow gives: an input, a step, what a step writes.
const NAME_MAX: usize = 32;

/// A path: the name of an input or of what a step writes, then names of members or places in lists, from 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<String>);

/// Whether a text is a name that a workflow may give: `[a-z][a-z0-9_]{0,31}`.
pub fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.len() <= NAME_MAX
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.bytes().all(is_letter)
}

impl Path {
    /// Reads a path; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let segments: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_segment =
            |of: &String| !of.is_empty() && of.len() <= SEGMENT_MAX && of.bytes().all(is_letter);
        let fits = segments.len() <= SEGMENTS_MAX && segments.iter().all(is_segment);
        (fits && is_name(&segments[0])).then_some(Self(segments))
    }

    /// The name that it begins with.
    pub fn root(&self) -> &str {
        &self.0[0]
    }

    /// The segments after the first.
    pub fn below(&self) -> &[String] {
        &self.0[1..]
    }

    /// Whether it is `other`, or leads below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// What stands there in a value whose root has been found.
    pub fn find<'a>(&self, root: &'a Data) -> Option<&'a Data> {
        self.below().iter().try_fold(root, |at, segment| match at {
            Data::Object(members) => members.get(segment),
            Data::List(items) => items.get(index(segment)?),
            _ => None,
        })
    }
}

/// A place in a list: digits without a zero before others.
pub(crate) fn index(segment: &str) -> Option<usize> {
    let is_plain = segment == "0" || !segment.starts_with(['0', '+']);
    is_plain.then(|| segment.parse().ok()).flatten()
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_members_and_items() {
        let root = Data::parse(r#"{"lines":[{"price":3},{"0":5}]}"#, 100).unwrap();
        let find = |text: &str| Path::parse(text).unwrap().find(&root).cloned();
        assert_eq!(find("d.lines.0.price").unwrap().to_string(), "3");
        assert_eq!(find("d.lines.1.0").unwrap().to_string(), "5");
        assert_eq!(find("d"), Some(root.clone()));
        for none in ["d.lines.2", "d.lines.00", "d.x", "d.lines.0.price.x"] {
            assert_eq!(find(none), None, "{none}");
        }
        let long = format!("a{}", ".b".repeat(12));
        for bad in ["", ".", "a.", "A.b", "a..b", "a b", "1a", "a.é", &long] {
            assert_eq!(Path::parse(bad), None, "{bad}");
        }
        let (wide, narrow) = (Path::parse("a.b").unwrap(), Path::parse("a.b.c").unwrap());
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        assert!(!Path::parse("a.bc").unwrap().is_within(&wide));
    }
}
