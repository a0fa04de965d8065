//! Words of rows in a text that leaves for an agent or comes back.
//!
//! A text leaks a protected text if both hold the same six tokens in a row, or the same 24 characters in a row, after
//! [`normal::comparable`], and version 0 of the prompt does not hold them. It leaks a protected id of eight comparable
//! characters or more if it holds the id anywhere.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::normal;

/// Tokens of a window.
pub const TOKENS: usize = 6;
/// Characters of a window.
pub const CHARACTERS: usize = 24;
/// Characters from which an id is looked for inside of texts.
pub const ID_CHARACTERS: usize = 8;
/// Characters from which an id is looked for as a word by itself.
pub const SHORT_ID_CHARACTERS: usize = 3;

/// The factor of the rolling hash, an odd number of 64 bits. Equal hashes are compared by their texts.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Bits of the filter that most windows of clean texts stop at.
const FILTER_BITS: u32 = 18;

/// What leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeakKind {
    /// [`TOKENS`] tokens in a row.
    Tokens,
    /// [`CHARACTERS`] characters in a row.
    Characters,
    /// An id.
    Id,
}

/// Windows of texts by their hash.
#[derive(Clone, Debug, Default)]
struct Windows {
    /// Ascending hashes and the texts of their windows.
    by_hash: BTreeMap<u64, Vec<String>>,
    filter: Vec<u64>,
}

fn filter_place(hash: u64) -> (usize, u64) {
    let bit = hash >> (64 - FILTER_BITS);
    (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
}

impl Windows {
    fn of(windows: impl Iterator<Item = (u64, String)>, known: &BTreeSet<String>) -> Self {
        let mut found = Self {
            by_hash: BTreeMap::new(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
        };
        for (hash, window) in windows {
            if known.contains(&window) {
                continue;
            }
            let (place, bit) = filter_place(hash);
            found.filter[place] |= bit;
            let same = found.by_hash.entry(hash).or_default();
            if !same.contains(&window) {
                same.push(window);
            }
        }
        found
    }

    fn may_hold(&self, hash: u64) -> bool {
        let (place, bit) = filter_place(hash);
        self.filter.get(place).is_some_and(|word| word & bit != 0)
            && self.by_hash.contains_key(&hash)
    }

    fn holds(&self, hash: u64, window: impl FnOnce() -> String) -> bool {
        self.may_hold(hash)
            && self
                .by_hash
                .get(&hash)
                .is_some_and(|same| same.contains(&window()))
    }
}

/// Spreads the bits of a hash over all 64.
fn spread(hash: u64) -> u64 {
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// Hashes of all windows of `width` values, with the place of each.
fn rolled(values: &[u64], width: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
    let top = (0..width).fold(1_u64, |power, _| power.wrapping_mul(FACTOR));
    let mut hash = 0_u64;
    values.iter().enumerate().filter_map(move |(at, value)| {
        hash = hash.wrapping_mul(FACTOR).wrapping_add(value + 1);
        if let Some(before) = at.checked_sub(width) {
            hash = hash.wrapping_sub((values[before] + 1).wrapping_mul(top));
        }
        (at + 1 >= width).then(|| (at + 1 - width, spread(hash)))
    })
}

/// A text in the forms in which windows are cut from it.
struct Cut<'t> {
    chars: Vec<char>,
    tokens: Vec<&'t str>,
}

impl<'t> Cut<'t> {
    fn of(comparable: &'t str) -> Self {
        Self {
            chars: comparable.chars().collect(),
            tokens: normal::tokens(comparable),
        }
    }

    fn char_values(&self) -> Vec<u64> {
        self.chars
            .iter()
            .map(|c| u64::from(u32::from(*c)))
            .collect()
    }

    fn token_values(&self) -> Vec<u64> {
        let value = |token: &&str| {
            token.bytes().fold(0_u64, |hash, byte| {
                hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1)
            }) >> 1
        };
        self.tokens.iter().map(value).collect()
    }

    fn characters(&self, at: usize) -> String {
        self.chars[at..at + CHARACTERS].iter().collect()
    }

    fn words(&self, at: usize) -> String {
        self.tokens[at..at + TOKENS].join(" ")
    }
}

/// Whether a short id would hardly stand in a text by chance.
fn is_telling(id: &str) -> bool {
    id.chars().count() >= SHORT_ID_CHARACTERS
        && id.chars().any(char::is_alphabetic)
        && id.chars().any(char::is_numeric)
}

/// Whether a text holds a word between characters that are no letters or digits.
fn holds_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

/// Texts that are shown to an agent, or that an agent returned, ready to be held against protected ones.
#[derive(Clone, Debug, Default)]
pub struct LeakIndex {
    characters: Windows,
    tokens: Windows,
    shown: Vec<String>,
    known: Vec<String>,
}

impl LeakIndex {
    /// An index of `shown` texts; what `known` texts hold, such as version 0 of the prompt, is no leak.
    pub fn new<'t>(
        shown: impl IntoIterator<Item = &'t str>,
        known: impl IntoIterator<Item = &'t str>,
    ) -> Self {
        let texts =
            |of: Vec<&str>| -> Vec<String> { of.into_iter().map(normal::comparable).collect() };
        let (shown, known) = (
            texts(shown.into_iter().collect()),
            texts(known.into_iter().collect()),
        );
        let (mut known_characters, mut known_tokens) = (BTreeSet::new(), BTreeSet::new());
        for text in &known {
            let cut = Cut::of(text);
            known_characters
                .extend((CHARACTERS..=cut.chars.len()).map(|end| cut.characters(end - CHARACTERS)));
            known_tokens.extend((TOKENS..=cut.tokens.len()).map(|end| cut.words(end - TOKENS)));
        }
        let (mut characters, mut tokens) = (Vec::new(), Vec::new());
        for text in &shown {
            let cut = Cut::of(text);
            let of = cut.char_values();
            characters.extend(rolled(&of, CHARACTERS).map(|(at, hash)| (hash, cut.characters(at))));
            let of = cut.token_values();
            tokens.extend(rolled(&of, TOKENS).map(|(at, hash)| (hash, cut.words(at))));
        }
        Self {
            characters: Windows::of(characters.into_iter(), &known_characters),
            tokens: Windows::of(tokens.into_iter(), &known_tokens),
            shown,
            known,
        }
    }

    /// How the shown texts leak a protected text; `None` where they do not.
    pub fn text(&self, protected: &str) -> Option<LeakKind> {
        let text = normal::comparable(protected);
        let cut = Cut::of(&text);
        let values = cut.char_values();
        let mut windows = rolled(&values, CHARACTERS);
        if windows.any(|(at, hash)| self.characters.holds(hash, || cut.characters(at))) {
            return Some(LeakKind::Characters);
        }
        let values = cut.token_values();
        let mut windows = rolled(&values, TOKENS);
        let leaks = windows.any(|(at, hash)| self.tokens.holds(hash, || cut.words(at)));
        leaks.then_some(LeakKind::Tokens)
    }

    /// Whether the shown texts leak a protected id: they hold it, and no known text does. An id of fewer than eight comparable
    /// characters is looked for as a word by itself, and only where it has three characters or more, a letter and a digit:
    /// shorter ones and plain numbers or words stand in any text.
    pub fn id(&self, protected: &str) -> Option<LeakKind> {
        let id = normal::comparable(protected);
        let holds: &dyn Fn(&str) -> bool = if id.chars().count() >= ID_CHARACTERS {
            &|text| text.contains(&id)
        } else if is_telling(protected) {
            &|text| holds_word(text, &id)
        } else {
            return None;
        };
        if self.known.iter().any(|text| holds(text)) {
            return None;
        }
        let mut shown = self.shown.iter();
        shown.any(|text| holds(text)).then_some(LeakKind::Id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(shown: &[&str], known: &[&str]) -> LeakIndex {
        LeakIndex::new(shown.iter().copied(), known.iter().copied())
    }

    #[test]
    fn six_tokens_are_found_whatever_stands_between_them() {
        let index = index(&["Take two of the small red pills"], &[]);
        assert_eq!(
            index.text("so, take two, of the... SMALL red ones"),
            Some(LeakKind::Tokens)
        );
        assert_eq!(index.text("take two of the small blue pills"), None);
    }

    #[test]
    fn twenty_four_characters_are_found_in_any_dress() {
        let index = index(&["abcdefghijklmnopqrstuvwxyz"], &[]);
        for text in [
            "__abcdefghijklmnopqrstuvwx__",
            "ABCDEFGHIJKLMNOPQRSTUVWX",
            "ab\u{200b}cdefghijklmn\u{ad}opqrstuvwx",
        ] {
            assert_eq!(index.text(text), Some(LeakKind::Characters), "{text}");
        }
        assert_eq!(index.text("__abcdefghijklmnopqrstuvw__"), None);
    }

    #[test]
    fn what_version_0_holds_is_no_leak() {
        let text = "abstain where critical information is missing from the question";
        assert!(index(&[text], &[]).text(text).is_some());
        assert_eq!(index(&[text], &[text]).text(text), None);
        assert_eq!(
            index(&["of prompt-00042 alone"], &[]).id("Prompt-00042"),
            Some(LeakKind::Id)
        );
        assert_eq!(
            index(&["of prompt-00042 alone"], &["prompt-00042"]).id("prompt-00042"),
            None
        );
        let short = index(&["of item-7 alone, and of items 12 or q45x"], &[]);
        assert_eq!(short.id("Item-7"), Some(LeakKind::Id));
        for absent in ["item-8", "q45", "12", "of", "items"] {
            assert_eq!(short.id(absent), None, "{absent}");
        }
    }
}
