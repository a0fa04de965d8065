//! Regular expressions in time linear in the text.
//!
//! The language is that of the crate `regex-lite`: no look-around, no back references; classes such as `\d` and `\w`
//! and letters without case are of ASCII, so that a match never depends on the tables of a Unicode version.

use std::fmt;

use regex_lite::Regex;
use regex_lite::RegexBuilder;

use crate::fault::FaultKind;

/// Most characters of a pattern.
const PATTERN_MAX: usize = 200;
/// Most bytes of a compiled pattern: it bounds the work for each character of a text.
const COMPILED_MAX: usize = 16 * 1024;
/// Bytes of a compiled pattern whose size is told apart: a larger one is twice as large, and so on.
const COMPILED_STEP: usize = 512;
/// Units of work for each byte of a text, by a pattern of the smallest size. A match visits each place of the pattern at
/// each byte at most once, so the work grows with both.
const COST_STEP: u64 = 16;
/// Most nested groups.
const NEST_MAX: u32 = 12;

/// A regular expression.
#[derive(Clone)]
pub struct Pattern {
    regex: Regex,
    cost: u64,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`FaultKind::Pattern`] for what is no pattern, or too large a one.
    pub fn new(text: &str) -> Result<Self, FaultKind> {
        let found = text.chars().count();
        if found > PATTERN_MAX {
            return Err(FaultKind::TooMany {
                what: "characters of a pattern",
                most: PATTERN_MAX,
                found,
            });
        }
        let built = |bytes: usize| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(bytes).nest_limit(NEST_MAX).build()
        };
        let (mut bytes, mut cost) = (COMPILED_STEP, COST_STEP);
        loop {
            match built(bytes) {
                Ok(regex) => return Ok(Self { regex, cost }),
                Err(error) if bytes >= COMPILED_MAX => {
                    return Err(FaultKind::Pattern(error.to_string()));
                }
                Err(_) => (bytes, cost) = (bytes * 2, cost * 2),
            }
        }
    }

    /// Units of work for each byte of a text that is looked at: they grow with the size of the pattern.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether it matches somewhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What a group of its first match in a text holds; group 0 is all of it.
    pub fn group<'a>(&self, text: &'a str, group: usize) -> Option<&'a str> {
        Some(self.regex.captures(text)?.get(group)?.as_str())
    }

    /// Groups, the whole match included.
    pub fn groups(&self) -> usize {
        self.regex.captures_len()
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_patterns_are_refused_and_hostile_ones_end() {
        for bad in [
            "(",
            "a{100000}",
            "(a{100}){100}",
            r"(a)\1",
            "(?=a)",
            &"a".repeat(201),
        ] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
        let hostile = Pattern::new("(a+)+$").unwrap();
        assert!(!hostile.is_match(&format!("{}b", "a".repeat(20_000))));
        let total = Pattern::new(r"EUR (\d+)").unwrap();
        assert_eq!(total.group("in EUR 12 all", 1), Some("12"));
        assert_eq!((total.groups(), total.group("USD", 1)), (2, None));
        let dear = Pattern::new("(a{30}b?){8}").unwrap();
        assert!(dear.cost() >= 8 * total.cost(), "{}", dear.cost());
    }
}
