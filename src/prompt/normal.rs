//! Normal form of texts, and the form in which texts are compared.
//!
//! Both rest on the characters of Unicode 13.0, as `ground::name` has them, and on tables that a page can print. So
//! another program finds the same sentences and the same tokens.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clover_ground::name;
use unicode_normalization::UnicodeNormalization as _;

/// Why a text may not stand in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// A control character that is neither tab nor line feed, or a separator of lines or paragraphs.
    #[error("a control character, {}", .0.escape_unicode())]
    Control(char),
    /// A character that nobody sees. Joiners and selectors of emoji are taken.
    #[error("an invisible character, {}", .0.escape_unicode())]
    Invisible(char),
    /// A character that Unicode 13.0 does not assign.
    #[error("a character that Unicode 13.0 does not know, {}", .0.escape_unicode())]
    Unassigned(char),
    /// Another form than [`normal_form`] writes.
    #[error(
        "not in normal form: NFC, line feeds, no blanks at the end of a line, no empty line at an end"
    )]
    Form,
}

/// NFC, line feeds, no blanks at the end of a line, no empty line at the start or at the end.
pub fn normal_form(text: &str) -> String {
    let text: String = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .nfc()
        .collect();
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches(name::is_blank))
        .collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The first character of a text that no prompt may hold.
pub fn fault_of(text: &str) -> Option<TextFault> {
    text.chars().find_map(|c| match c {
        '\u{2028}' | '\u{2029}' => Some(TextFault::Control(c)),
        '\t' | '\n' | '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => None,
        _ if c.is_control() => Some(TextFault::Control(c)),
        _ if name::is_ignorable(c) => Some(TextFault::Invisible(c)),
        _ if !name::is_assigned(c) => Some(TextFault::Unassigned(c)),
        _ => None,
    })
}

/// Whether a text may stand in a prompt as it is.
///
/// # Errors
/// [`TextFault`] saying why not.
pub fn check(text: &str) -> Result<(), TextFault> {
    match fault_of(text) {
        Some(fault) => Err(fault),
        None if normal_form(text) == text => Ok(()),
        None => Err(TextFault::Form),
    }
}

/// Unicode scalars of a text.
pub fn scalars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The letter of ASCII that a letter looks like, by `ground::name::ALIKE`.
fn alike(c: char) -> char {
    static ALIKE: LazyLock<BTreeMap<char, char>> = LazyLock::new(|| {
        let groups = name::ALIKE.iter();
        groups
            .flat_map(|(letter, others)| others.chars().map(|other| (other, *letter)))
            .collect()
    });
    ALIKE.get(&c).copied().unwrap_or(c)
}

/// A text as it is compared: invisible characters dropped, NFKC, letter case folded, letters that look alike as one,
/// each run of blanks and control characters one space, none at the ends.
pub fn comparable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    let mut push = |c: char, out: &mut String| {
        if name::is_blank(c) || c.is_control() {
            gap = true;
            return;
        }
        if std::mem::take(&mut gap) && !out.is_empty() {
            out.push(' ');
        }
        out.push(c);
    };
    if text.is_ascii() {
        for c in text.chars() {
            let c = match c {
                '0' => 'o',
                '1' => 'l',
                _ => c.to_ascii_lowercase(),
            };
            push(c, &mut out);
        }
        return out;
    }
    let seen = |c: &char| !name::is_ignorable(*c);
    let folded: String = text
        .chars()
        .filter(seen)
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    for c in folded.nfkc().filter(seen) {
        push(alike(c), &mut out);
    }
    out
}

/// A text without what a reader passes over inside words: marks of emphasis and marks that combine with a letter go; raised,
/// small and circled signs end a word.
pub fn plain(text: &str) -> String {
    let is_digits = |c: char| {
        let mut same = std::iter::once(c).nfkc().peekable();
        !c.is_ascii() && same.peek().is_some() && same.all(|c| c.is_ascii_digit())
    };
    let seen = text.chars().filter_map(|c| match c {
        '*' | '_' | '`' | '~' | '\u{300}'..='\u{36f}' => None,
        '\u{aa}' | '\u{ba}' | '\u{2120}' | '\u{2122}' => Some(' '),
        _ if is_digits(c) => Some(' '),
        _ => Some(c),
    });
    seen.collect()
}

/// Whether a line looks like the heading of a section, or like a comment that says what a section is.
pub fn poses(line: &str) -> bool {
    line.trim_start_matches([' ', '\t']).starts_with('#') || line.contains("<!--")
}

/// Characters that stand between tokens of a comparable text.
fn is_between(c: char) -> bool {
    match c {
        _ if c.is_ascii() => !c.is_ascii_alphanumeric(),
        '\u{a1}'..='\u{a9}'
        | '\u{ab}'..='\u{b4}'
        | '\u{b6}'..='\u{b9}'
        | '\u{bb}'..='\u{bf}'
        | '\u{d7}'
        | '\u{f7}'
        | '\u{2010}'..='\u{205e}'
        | '\u{2190}'..='\u{2bff}'
        | '\u{3000}'..='\u{3004}'
        | '\u{3008}'..='\u{3020}'
        | '\u{30fb}' => true,
        _ => name::is_blank(c),
    }
}

/// Scripts without spaces between words, where each character is a token.
fn is_alone(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Tokens of a comparable text in order: runs of letters and digits; ideographs and syllables one by one.
pub fn tokens(comparable: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in comparable.char_indices() {
        let (between, alone) = (is_between(c), is_alone(c));
        if between || alone {
            if let Some(start) = start.take() {
                found.push(&comparable[start..at]);
            }
            if alone {
                found.push(&comparable[at..at + c.len_utf8()]);
            }
        } else {
            start.get_or_insert(at);
        }
    }
    if let Some(start) = start {
        found.push(&comparable[start..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form_is_its_own() {
        let text = "\n\nA\u{308} b \t\r\n\r\nc\u{3000}\n\n";
        assert_eq!(normal_form(text), "Ä b\n\nc");
        assert_eq!(check("Ä b\n\nc"), Ok(()));
        assert_eq!(check(" a"), Ok(()));
        assert_eq!(check("a "), Err(TextFault::Form));
        assert_eq!(check("A\u{308}"), Err(TextFault::Form));
        assert_eq!(check("a\u{200b}"), Err(TextFault::Invisible('\u{200b}')));
        assert_eq!(check("a\u{85}b"), Err(TextFault::Control('\u{85}')));
        assert_eq!(check("a\u{378}"), Err(TextFault::Unassigned('\u{378}')));
        assert_eq!(check("\u{26a0}\u{fe0f}"), Ok(()));
    }

    #[test]
    fn texts_that_look_alike_compare_equal() {
        for text in [
            "MUST  not",
            "mu\u{200b}st\nnot",
            "ｍｕｓｔ not",
            "mu\u{455}t n\u{43e}t",
            " must\u{a0}not ",
        ] {
            assert_eq!(comparable(text), "must not", "{text:?}");
        }
        assert_eq!(comparable("STRASSE"), comparable("straße"));
        assert_eq!(comparable("10"), "lo");
        assert_eq!(comparable(""), "");
    }

    #[test]
    fn tokens_are_words_and_ideographs() {
        assert_eq!(
            tokens("don't give 2.5 不得x y"),
            ["don", "t", "give", "2", "5", "不", "得", "x", "y"]
        );
        assert_eq!(tokens(" —… "), Vec::<&str>::new());
    }
}
