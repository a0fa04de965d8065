//! The exact code length of a patch: tokens that change, new guards, edits to abstention (CLOVER v1.1,
//! section 4).
//!
//! A leaf's tokens are those of its value as decimal, `true` or `false`, or text without quotes, split as
//! `[A-Za-z]+|[0-9]+|[^A-Za-z0-9\s]`; a list has the tokens of all its elements. Key names are split the
//! same way.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::leaf::Value;

/// Most code length, and most added tokens, of a patch.
pub const KAPPA_MAX: u64 = 150;
/// Most leaves that a patch may add.
pub const NEW_FIELDS_MAX: u64 = 2;

/// Code length of a change from one set of leaves to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// Edits to abstention: each trigger, and the rule.
    pub abstention_edits: u64,
    /// Guard leaves that did not exist before.
    pub new_guards: u64,
    /// Leaves that did not exist before.
    pub new_fields: u64,
    /// Tokens that come, with those of new key names.
    pub tokens_added: u64,
    /// Tokens that go.
    pub tokens_removed: u64,
}

impl Length {
    /// The code length: tokens that come and go, new guards, edits to abstention.
    pub fn kappa(&self) -> u64 {
        self.tokens_added + self.tokens_removed + self.new_guards + self.abstention_edits
    }
}

type Leaves = BTreeMap<String, Value>;

/// Code length of going from `before` to `after`.
pub fn length(before: &Leaves, after: &Leaves) -> Length {
    let mut length = Length::default();
    for (path, new) in after {
        let old = before.get(path);
        if old == Some(new) {
            continue;
        }
        if old.is_none() {
            length.new_fields += 1;
            length.new_guards += u64::from(path.starts_with("guards."));
        }
        let (new_bag, old_bag) = (bag(Some(new)), bag(old));
        length.tokens_added += surplus(&new_bag, &old_bag);
        length.tokens_removed += surplus(&old_bag, &new_bag);
        if path.starts_with("abstention.") {
            length.abstention_edits += edits(old, new);
        }
    }
    for key in branches(after).difference(&branches(before)) {
        let name = key.rsplit('.').next().unwrap_or_default();
        length.tokens_added += tokens(name).len() as u64;
    }
    length
}

/// Every key of a rubric by its path: leaves, and what stands above them.
fn branches(leaves: &Leaves) -> BTreeSet<&str> {
    let mut keys = BTreeSet::new();
    for path in leaves.keys() {
        keys.insert(path.as_str());
        keys.extend(path.match_indices('.').map(|(at, _)| &path[..at]));
    }
    keys
}

/// Elements of an abstention leaf that come or go.
fn edits(old: Option<&Value>, new: &Value) -> u64 {
    match (old, new) {
        (Some(Value::List(old)), Value::List(new)) => old.symmetric_difference(new).count() as u64,
        (None, Value::List(new)) => new.len() as u64,
        _ => 1,
    }
}

/// The tokens of a text.
pub fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_ascii_alphabetic() => 1,
        c if c.is_ascii_digit() => 2,
        c if c.is_whitespace() => 0,
        _ => 3,
    };
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let runs_on = chars
            .peek()
            .is_some_and(|(_, next)| class(*next) == class(c));
        if class(c) == 0 {
            start = end;
        } else if class(c) == 3 || !runs_on {
            found.push(&text[start..end]);
            start = end;
        }
    }
    found
}

/// How often each token stands in a value.
fn bag(value: Option<&Value>) -> BTreeMap<String, u64> {
    let texts: Vec<String> = match value {
        None => Vec::new(),
        Some(Value::List(items)) => items.iter().cloned().collect(),
        Some(Value::Text(text)) => vec![text.clone()],
        Some(other) => vec![other.to_string()],
    };
    let mut bag = BTreeMap::new();
    for token in texts.iter().flat_map(|text| tokens(text)) {
        *bag.entry(token.to_owned()).or_insert(0) += 1;
    }
    bag
}

fn surplus(of: &BTreeMap<String, u64>, over: &BTreeMap<String, u64>) -> u64 {
    let more = |(token, count): (&String, &u64)| {
        count.saturating_sub(over.get(token).copied().unwrap_or(0))
    };
    of.iter().map(more).sum()
}

#[cfg(test)]
mod tests {
    use clover_num::Micro;

    use super::*;

    #[test]
    fn texts_split_into_words_numbers_and_signs() {
        assert_eq!(tokens("bmj.com"), ["bmj", ".", "com"]);
        assert_eq!(
            tokens(" if  x2->'no' "),
            ["if", "x", "2", "-", ">", "'", "no", "'"]
        );
        assert_eq!(tokens("naïve 0.35"), ["na", "ï", "ve", "0", ".", "35"]);
        assert_eq!(tokens("…!!"), ["…", "!", "!"]);
        assert!(tokens(" \t").is_empty());
    }

    fn leaves(of: &[(&str, Value)]) -> Leaves {
        let owned = |(path, value): &(&str, Value)| ((*path).to_owned(), value.clone());
        of.iter().map(owned).collect()
    }

    fn list(of: &[&str]) -> Value {
        Value::List(of.iter().map(|item| (*item).to_owned()).collect())
    }

    /// (kappa, added, removed, new fields)
    fn of(before: &[(&str, Value)], after: &[(&str, Value)]) -> (u64, u64, u64, u64) {
        let all = length(&leaves(before), &leaves(after));
        (
            all.kappa(),
            all.tokens_added,
            all.tokens_removed,
            all.new_fields,
        )
    }

    #[test]
    fn the_vectors_of_the_paper_hold() {
        // source: CLOVER v1.1, section 4: appended host, changed penalty, new key.
        let share = |micro| Value::Share(Micro::new(micro).unwrap());
        let hosts = "obligations.factual_adequacy.verification.allowed_domains";
        assert_eq!(
            of(
                &[(hosts, list(&["nih.gov"]))],
                &[(hosts, list(&["nih.gov", "bmj.com"]))]
            ),
            (3, 3, 0, 0)
        );
        let penalty = "obligations.factual_adequacy.verification.mismatch_penalty";
        assert_eq!(
            of(&[(penalty, share(350_000))], &[(penalty, share(400_000))]),
            (2, 1, 1, 0)
        );
        let beside = ("obligations.reasoning_quality.required", Value::Flag(true));
        let new = (
            "obligations.reasoning_quality.requires_counter_position",
            Value::Flag(true),
        );
        assert_eq!(
            of(std::slice::from_ref(&beside), &[beside.clone(), new]),
            (6, 6, 0, 1)
        );
    }

    #[test]
    fn new_guards_and_abstention_edits_count() {
        let share = Value::Share(Micro::new(500_000).unwrap());
        let cap = [
            ("guards.length_bias_cap.if_tokens_gt", Value::Count(500)),
            ("guards.length_bias_cap.max_raw_score", share),
        ];
        // guards; length _ bias _ cap; if _ tokens _ gt; max _ raw _ score; 500; 0 . 5: 20 tokens; 2 guards.
        assert_eq!(of(&[], &cap), (22, 20, 0, 2));
        let triggers = "abstention.triggers";
        let all = length(
            &leaves(&[(triggers, list(&["legal advice", "dosing"]))]),
            &leaves(&[(triggers, list(&["legal advice", "tax"]))]),
        );
        assert_eq!(
            (all.abstention_edits, all.tokens_added, all.tokens_removed),
            (2, 1, 1)
        );
        assert_eq!(all.kappa(), 4);
    }
}
