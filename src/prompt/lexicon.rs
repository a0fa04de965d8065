//! The modal lexicon: how strongly a sentence binds whoever reads it, in English and Chinese, as data with a digest.

use std::sync::LazyLock;

use clover_ground::digest::Digest;

use crate::normal;

/// The lexicon `modal/1` as text.
pub const MODAL: &str = include_str!("modal.txt");
/// The strongest level: always, never, only.
pub const LEVEL_MAX: u8 = 4;
/// The level from which a sentence is a hard rule: must, shall, required.
pub const LEVEL_HARD: u8 = 3;

/// Why a text is no lexicon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected a level from 0 to 4, or !, then a term")]
pub struct LexiconFault {
    /// Line, from 1.
    pub line: usize,
}

/// What a term says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Level(u8),
    Consequence,
}

/// Terms with their levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexicon {
    digest: Digest,
    /// Comparable terms, the longest first.
    levels: Vec<(String, u8)>,
    consequences: Vec<String>,
}

/// A comparable text without the spaces around equals signs.
fn tight(text: &str) -> String {
    text.replace(" =", "=").replace("= ", "=")
}

/// Whether a term stands at a place of a text as a whole word: an apostrophe belongs to a word where letters stand on
/// both sides of it. A term that begins or ends with no letter or digit of ASCII has no word there to be part of.
fn stands_at(text: &str, at: usize, term: &str) -> bool {
    fn is_part(mut outwards: impl Iterator<Item = char>) -> bool {
        match outwards.next() {
            Some('\'') => outwards.next().is_some_and(|c| c.is_ascii_alphanumeric()),
            next => next.is_some_and(|c| c.is_ascii_alphanumeric()),
        }
    }
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let before = term.starts_with(is_word) && is_part(text[..at].chars().rev());
    let after = term.ends_with(is_word) && is_part(text[at + term.len()..].chars());
    !before && !after
}

impl Lexicon {
    /// Reads a lexicon: lines of a level or `!`, a space and a term; lines that begin with `#` are remarks.
    ///
    /// # Errors
    /// [`LexiconFault`] at the first line that is neither.
    pub fn parse(text: &str) -> Result<Self, LexiconFault> {
        let (mut levels, mut consequences) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let (meaning, term) = entry(line).ok_or(LexiconFault { line: at + 1 })?;
            match meaning {
                Meaning::Level(level) => levels.push((term, level)),
                Meaning::Consequence => consequences.push(term),
            }
        }
        levels.sort_by(|a, b| b.0.chars().count().cmp(&a.0.chars().count()).then(a.cmp(b)));
        Ok(Self {
            digest: Digest::sha256(text.as_bytes()),
            levels,
            consequences,
        })
    }

    /// The lexicon of this version, `modal/1`.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Lexicon> = LazyLock::new(|| {
            Lexicon::parse(MODAL).expect("BUG: the built-in lexicon is well formed")
        });
        &BUILT_IN
    }

    /// SHA-256 of its text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The level of a sentence, 0 to 4: that of its strongest term, 0 without any.
    pub fn level(&self, sentence: &str) -> u8 {
        let plain = normal::plain(&sentence.replace('\u{2019}', "'"));
        let text = normal::comparable(&plain);
        let (mut at, mut level) = (0, 0);
        while let Some(c) = text[at..].chars().next() {
            let found = self.levels.iter().find(|(term, _)| {
                text[at..].starts_with(term.as_str()) && stands_at(&text, at, term)
            });
            at += match found {
                Some((term, of)) => {
                    level = level.max(*of);
                    term.len()
                }
                None => c.len_utf8(),
            };
        }
        level
    }

    /// Whether a sentence names a consequence in numbers, such as a cap of the score.
    pub fn is_consequence(&self, sentence: &str) -> bool {
        let text = tight(&normal::comparable(sentence));
        self.consequences.iter().any(|term| {
            let mut places = text.match_indices(term.as_str());
            places.any(|(at, _)| stands_at(&text, at, term))
        })
    }
}

fn entry(line: &str) -> Option<(Meaning, String)> {
    let (mark, term) = line.split_once(' ')?;
    let meaning = match mark {
        "!" => Meaning::Consequence,
        _ => Meaning::Level(mark.parse().ok().filter(|level| *level <= LEVEL_MAX)?),
    };
    let term = normal::comparable(term);
    let term = if meaning == Meaning::Consequence {
        tight(&term)
    } else {
        term
    };
    (!term.is_empty()).then_some((meaning, term))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_level_of_its_strongest_term() {
        let level = |text| Lexicon::built_in().level(text);
        for (text, expected) in [
            ("Judge the content.", 0),
            ("A judge can look at dates.", 1),
            ("You should prefer short answers, and may skip lists.", 2),
            ("You MUST NOT reward length.", 3),
            ("Length is never a merit.", 4),
            ("It cannot count.", 3),
            ("It can’t count.", 3),
            ("The cannery mayor onlyx", 0),
            ("You mu\u{455}t do so", 3),
            // What a reader passes over hides no term.
            ("A list must\u{b2} get 0.", 3),
            ("Always\u{aa} favour short.", 4),
            ("Never\u{b9} reward lists.", 4),
            ("Al**way**s check.", 4),
            ("A rule m\u{332}u\u{332}s\u{332}t\u{332} bind.", 3),
            ("You must\u{2460} do so", 3),
            ("You 'must' do so", 3),
            ("必须核对。", 3),
            ("不得加分。", 3),
            ("可以加分。", 1),
            ("响应的长度", 0),
            ("响应应该简短", 2),
            ("绝不加分", 4),
            ("under no circumstances", 4),
            ("need\nto", 3),
        ] {
            assert_eq!(level(text), expected, "{text}");
        }
    }

    #[test]
    fn consequences_in_numbers_are_found() {
        let is = |text| Lexicon::built_in().is_consequence(text);
        for text in [
            "Cap it.",
            "at most 3",
            "score = 0",
            "Score=0",
            "SCORE =  0",
            "一票否决",
            "不超过三分",
            "Reject it",
        ] {
            assert!(is(text), "{text}");
        }
        for text in ["Capital letters.", "the scores", "Judge the content."] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn a_line_that_is_no_entry_is_named() {
        assert_eq!(
            Lexicon::parse("# a\n5 must\n"),
            Err(LexiconFault { line: 2 })
        );
        assert_eq!(Lexicon::parse("1 \n"), Err(LexiconFault { line: 1 }));
    }
}
