//! Style stripping: what a reader would not miss goes, the words stay.

use clover_ground::words;

use crate::tables;

/// Text without emphasis marks, without headings, quotes, bullets, numbering and rules at the start of lines, without
/// politeness, and with single spaces. A second time changes nothing.
pub(super) fn strip(text: &str) -> String {
    let plain = unmarked(text);
    let mut kept: Vec<&str> = Vec::new();
    // Folded words of `kept`, by which phrases are found at its end.
    let mut folded: Vec<String> = Vec::new();
    for line in plain.lines() {
        let words = line.split_whitespace().skip_while(|word| is_marker(word));
        for word in words {
            let mut bare = String::new();
            words::fold(word.trim_matches(|c: char| !c.is_alphanumeric()), &mut bare);
            folded.push(bare);
            kept.push(word);
            forget_politeness(&mut kept, &mut folded);
        }
    }
    // What stood behind politeness at the start may be a marker.
    let start = kept.iter().take_while(|word| is_marker(word)).count();
    kept[start..].join(" ")
}

/// Drops a polite phrase at the end of the words.
fn forget_politeness(kept: &mut Vec<&str>, folded: &mut Vec<String>) {
    let phrase = tables::POLITENESS.iter().find(|phrase| {
        folded.len() >= phrase.len()
            && folded[folded.len() - phrase.len()..]
                .iter()
                .eq(phrase.iter())
    });
    if let Some(phrase) = phrase {
        let keep = kept.len() - phrase.len();
        kept.truncate(keep);
        folded.truncate(keep);
    }
}

/// Without asterisks, backticks and tildes, and without underscores that join no word.
fn unmarked(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '`' | '~'))
        .collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('_') {
        out.push_str(&rest[..at]);
        let run = rest[at..].bytes().take_while(|byte| *byte == b'_').count();
        let after = rest[at + run..].chars().next();
        let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if joins(out.chars().next_back()) && joins(after) {
            out.push_str(&rest[at..at + run]);
        }
        rest = &rest[at + run..];
    }
    out.push_str(rest);
    out
}

/// Whether a word at the start of a line is markup: a heading, a quote, a bullet, a number, a rule.
fn is_marker(word: &str) -> bool {
    let all = |signs: &[char]| word.chars().all(|c| signs.contains(&c));
    let numbered = || {
        let digits = word.trim_end_matches(['.', ')']);
        digits.len() < word.len()
            && (1..=3).contains(&digits.len())
            && digits.bytes().all(|c| c.is_ascii_digit())
    };
    all(&['#']) || all(&['>']) || all(&['-', '+', '=', '|', ':', '•', '–', '—']) || numbered()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes_and_words_stay() {
        let text = "# Title\r\n\r\n> - 1. **Bold** and _soft_ snake_case `code`\n|---|\nGreat question! Please *do*.\n\nThanks!";
        assert_eq!(strip(text), "Title Bold and soft snake_case code do.");
        assert_eq!(strip("A - b > c # d 1. e"), "A - b > c # d 1. e");
        assert_eq!(strip("please please # thank thank you you x"), "x");
        assert_eq!(strip("مرحبا  👩\u{200d}🔬\u{a0}!"), "مرحبا 👩\u{200d}🔬 !");
        assert_eq!(strip(" \n"), "");
    }
}
