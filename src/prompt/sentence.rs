//! Sentences of a section, and which sentence of a new text is which of the old.

use std::collections::BTreeSet;

use crate::normal;

/// Sentences in order, without the blanks around them. Each line ends one. Within a line a full stop, question or
/// exclamation mark ends one when a blank or nothing follows it and what closes it; an ideographic one ends one anywhere.
pub fn sentences(text: &str) -> Vec<&str> {
    text.split('\n').flat_map(of_line).collect()
}

fn of_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let wide = matches!(c, '。' | '！' | '？' | '｡');
        if !wide && !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((at, c)) = chars.next_if(|(_, c)| is_closing(*c)) {
            end = at + c.len_utf8();
        }
        let next = chars.peek().map(|(_, c)| *c);
        if wide || next.is_none_or(|c| c == ' ' || c == '\t' || c == '\u{3000}') {
            found.push(&line[start..end]);
            start = end;
        }
    }
    found.push(&line[start..]);
    let trimmed = found
        .into_iter()
        .map(|of| of.trim_matches([' ', '\t', '\u{3000}']));
    trimmed.filter(|of| !of.is_empty()).collect()
}

/// What may stand after the mark that ends a sentence.
fn is_closing(c: char) -> bool {
    matches!(
        c,
        '.' | '!'
            | '?'
            | '。'
            | '！'
            | '？'
            | '｡'
            | '"'
            | '\''
            | ')'
            | ']'
            | '}'
            | '*'
            | '_'
            | '`'
            | '”'
            | '’'
            | '»'
            | '）'
            | '】'
            | '」'
            | '』'
            | '》'
    )
}

/// A sentence of the old text, a sentence of the new one, or the two that are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentencePair {
    /// Place among the old sentences, from 0; `None` where it is new.
    pub old: Option<usize>,
    /// Place among the new sentences, from 0; `None` where it is gone.
    pub new: Option<usize>,
}

/// Whether two sets of tokens share at least three fifths of all in either; two empty ones do.
fn is_alike(a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> bool {
    let shared = a.intersection(b).count();
    5 * shared >= 3 * (a.len() + b.len() - shared)
}

/// Pairs of sentences in order: as many as can be paired without crossing (longest common subsequence) where their sets
/// of tokens have a Jaccard index of at least 0.6; among those, with the most pairs that are equal. Of several ways the
/// one that pairs the first old sentence earliest.
pub fn align(old: &[&str], new: &[&str]) -> Vec<SentencePair> {
    let texts =
        |of: &[&str]| -> Vec<String> { of.iter().map(|text| normal::comparable(text)).collect() };
    let (old_texts, new_texts) = (texts(old), texts(new));
    let (old_sets, new_sets) = (sets(&old_texts), sets(&new_texts));
    let (rows, columns) = (old.len(), new.len());
    let width = columns + 1;
    // What the best pairing of the sentences from (i, j) on is worth.
    let mut best = vec![0_u64; (rows + 1) * width];
    let mut worth = vec![0_u64; rows * columns];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let mut most = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            if is_alike(&old_sets[i], &new_sets[j]) {
                worth[i * columns + j] = PAIR + u64::from(old[i] == new[j]);
                most = most.max(worth[i * columns + j] + best[(i + 1) * width + j + 1]);
            }
            best[i * width + j] = most;
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::with_capacity(rows.max(columns));
    while i < rows || j < columns {
        let paired = i < rows && j < columns && worth[i * columns + j] > 0;
        if paired && best[i * width + j] == worth[i * columns + j] + best[(i + 1) * width + j + 1] {
            found.push(SentencePair {
                old: Some(i),
                new: Some(j),
            });
            (i, j) = (i + 1, j + 1);
        } else if i < rows && (j == columns || best[(i + 1) * width + j] >= best[i * width + j + 1])
        {
            found.push(SentencePair {
                old: Some(i),
                new: None,
            });
            i += 1;
        } else {
            found.push(SentencePair {
                old: None,
                new: Some(j),
            });
            j += 1;
        }
    }
    found
}

fn sets(texts: &[String]) -> Vec<BTreeSet<&str>> {
    texts
        .iter()
        .map(|text| normal::tokens(text).into_iter().collect())
        .collect()
}

/// What a pair is worth beside an equal one's 1.
const PAIR: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_stops_end_sentences() {
        let list = |text| sentences(text);
        assert_eq!(
            list("One is 2.5. Two! (Three?) four"),
            ["One is 2.5.", "Two!", "(Three?)", "four"]
        );
        assert_eq!(list("- a\n- b\n\n"), ["- a", "- b"]);
        assert_eq!(list("一。二！”三"), ["一。", "二！”", "三"]);
        assert_eq!(list(" "), Vec::<&str>::new());
    }

    fn pairs(old: &[&str], new: &[&str]) -> Vec<(Option<usize>, Option<usize>)> {
        align(old, new)
            .into_iter()
            .map(|of| (of.old, of.new))
            .collect()
    }

    #[test]
    fn alike_sentences_are_one() {
        let (a, b) = (
            "Judge the content alone.",
            "You must judge the content alone.",
        );
        assert_eq!(pairs(&[a], &[b]), [(Some(0), Some(0))]);
        // An equal sentence is itself, not its neighbour that is alike.
        assert_eq!(pairs(&[a], &[b, a]), [(None, Some(0)), (Some(0), Some(1))]);
        assert_eq!(
            pairs(&["x y z"], &["p q"]),
            [(Some(0), None), (None, Some(0))]
        );
        assert_eq!(pairs(&[], &["p"]), [(None, Some(0))]);
        // Three of five tokens are enough, two of four are not.
        assert_eq!(pairs(&["a b c d"], &["a b c e"]), [(Some(0), Some(0))]);
        assert_eq!(
            pairs(&["a b c"], &["a b d"]),
            [(Some(0), None), (None, Some(0))]
        );
    }
}
