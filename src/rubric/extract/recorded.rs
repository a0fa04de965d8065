//! What was recorded beforehand and the text cannot tell: sources, tool calls, facts.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_ground::words;
use serde::Deserialize;
use serde::Serialize;

use crate::extract::host;
use crate::extract::sentence::Statement;

/// What is known of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Whether it was found.
    #[serde(default)]
    pub resolved: Option<bool>,
    /// Whether it supports what it is cited for.
    #[serde(default)]
    pub supports: Option<bool>,
}

/// What is known of sources, by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Citations {
    /// Whether a source that is not listed is known not to resolve. Otherwise nothing is known of it.
    pub complete: bool,
    /// By address in the form of [`Citations::key`].
    pub known: BTreeMap<String, Check>,
}

impl Citations {
    /// The form in which addresses are compared: host as [`host`] has it, then path and query as they stand; scheme, user,
    /// port, fragment and a slash at the end do not count.
    pub fn key(address: &str) -> String {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let path = rest
            .find(['/', '\\', '?', '#'])
            .map_or("", |at| &rest[at..]);
        let path = path.split('#').next().unwrap_or_default();
        let path = path.strip_suffix('/').unwrap_or(path);
        format!("{}{path}", host(address))
    }

    /// What is known of an address.
    pub fn check(&self, address: &str) -> Check {
        let unlisted = Check {
            resolved: self.complete.then_some(false),
            supports: None,
        };
        self.known
            .get(&Self::key(address))
            .copied()
            .unwrap_or(unlisted)
    }
}

/// Tool calls that were made, as the text between the marks of a claimed call; space does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Traces(BTreeSet<String>);

impl Traces {
    /// No calls.
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Of these calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a str>) -> Self {
        Self(calls.into_iter().map(plain).collect())
    }

    /// Whether a call was made.
    pub fn has(&self, call: &str) -> bool {
        self.0.contains(&plain(call))
    }
}

fn plain(call: &str) -> String {
    call.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Statements that are known to be true. A sentence that has their words, but other numbers, units (mg, g) or sign, is false;
/// what is worded otherwise is not recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, BTreeSet<String>>);

impl Facts {
    /// Of these statements.
    pub fn of<'a>(statements: impl IntoIterator<Item = &'a str>) -> Self {
        let mut facts = Self::default();
        for statement in statements {
            let (frame, form) = read(statement);
            facts.0.entry(frame).or_default().insert(form);
        }
        facts
    }

    /// Whether a sentence contradicts what is known; `None` when nothing is known of it.
    pub fn contradicts(&self, sentence: &str) -> Option<bool> {
        let (frame, form) = read(sentence);
        self.0.get(&frame).map(|forms| !forms.contains(&form))
    }
}

/// A sentence with its numbers and units left open, and with them.
fn read(sentence: &str) -> (String, String) {
    let mut statement = Statement::default();
    words::each_spoken(sentence, |_, folded| {
        let digits = folded.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = folded.split_at(digits);
        if digits > 0 && matches!(unit, "mg" | "g") {
            statement.push(number);
            statement.push(unit);
        } else {
            statement.push(folded);
        }
    });
    statement.finish();
    let mut frame = String::with_capacity(statement.key.len());
    for word in statement.key.split_terminator(' ') {
        let open = match word {
            "mg" | "g" => "@ ",
            _ if word.bytes().all(|byte| byte.is_ascii_digit()) => "# ",
            _ => {
                frame.push_str(word);
                frame.push(' ');
                continue;
            }
        };
        // 2.5 is two words and one number.
        if open == "@ " || !frame.ends_with("# ") {
            frame.push_str(open);
        }
    }
    let sign = if statement.denies { "-" } else { "+" };
    (frame, format!("{sign}{}", statement.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_compared_by_host_and_path() {
        let check = Check {
            resolved: Some(true),
            supports: None,
        };
        let known = Citations {
            complete: true,
            known: [("www.who.int/a/b".to_owned(), check)].into(),
        };
        for same in [
            "https://www.who.int/a/b",
            "http://WWW.WHO.INT:80/a/b/#c",
            "www.who.int/a/b",
        ] {
            assert_eq!(known.check(same), check, "{same}");
        }
        for other in [
            "https://who.int/a/b",
            "https://www.who.int/a/B",
            "https://www.who.int@x.example/a/b",
        ] {
            assert_eq!(known.check(other).resolved, Some(false), "{other}");
        }
        let open = Citations::default();
        assert_eq!(open.check("https://x.example"), Check::default());
    }

    #[test]
    fn facts_find_other_numbers_units_and_signs() {
        let facts = Facts::of(["The usual dose is 20 mg daily.", "It costs 2.5 units."]);
        for (sentence, expected) in [
            ("The usual **dose** is 20mg daily", Some(false)),
            ("The usual dose is 200 mg daily.", Some(true)),
            ("The usual dose is 20 g daily.", Some(true)),
            ("The usual dose isn't 20 mg daily.", Some(true)),
            (
                "It is not true that: The usual dose is 20 mg daily.",
                Some(true),
            ),
            ("It costs 25 units.", Some(true)),
            ("A usual dose is 20 mg daily.", None),
        ] {
            assert_eq!(facts.contradicts(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn calls_match_whatever_their_spacing() {
        let made = Traces::of(["search q=1"]);
        assert!(made.has("  search\n q=1 ") && !made.has("search q=2"));
    }
}
