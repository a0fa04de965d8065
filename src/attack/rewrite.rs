//! Operators that turn what stands: fact flips, contradictions, tones of authority.

use std::ops::Range;

use crate::operator::Flip;
use crate::tables;
use clover_ground::words::{self, Word};
use clover_num::draws::Draws;

/// A place and what is to stand there.
type Change = (Range<usize>, String);

/// Writes changes, in order and apart, into a text.
fn changed(text: &str, changes: impl IntoIterator<Item = Change>) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, new) in changes {
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// `new` in the case of `old`: capitals throughout, a capital in front, or as the table has it.
fn cased(old: &str, new: &str) -> String {
    let mut letters = old.chars().filter(|c| c.is_alphabetic());
    let (first, second) = (letters.next(), letters.next());
    let upper = |c: Option<char>| c.is_some_and(char::is_uppercase);
    if upper(first) && upper(second) {
        return new.to_uppercase();
    }
    if upper(first) {
        let mut chars = new.chars();
        return chars
            .next()
            .map(|c| c.to_uppercase().chain(chars).collect())
            .unwrap_or_default();
    }
    new.to_owned()
}

/// Replaces every hedge, and claims a credential unless one is claimed.
pub(super) fn authority_tone(text: &str, credential: bool, draws: &mut Draws) -> String {
    let mut changes = Vec::new();
    words::each_spoken(text, |word, folded| {
        if let Ok(at) = tables::HEDGES.binary_search_by_key(&folded, |(hedge, _)| hedge) {
            changes.push((
                word.start..word.end(),
                cased(word.text, tables::HEDGES[at].1),
            ));
        }
    });
    let out = changed(text, changes);
    let claimed = tables::CREDENTIALS
        .iter()
        .any(|claim| out.starts_with(claim));
    if !credential || claimed {
        return out;
    }
    let claim = tables::CREDENTIALS[draws.below(tables::CREDENTIALS.len())];
    format!("{claim} {out}")
}

/// Every place where a copula could be negated or freed of its negation.
fn negations(text: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    // The last copula, which is freed when `not` follows it and negated otherwise.
    let mut open: Option<usize> = None;
    words::each_spoken(text, |word, folded| {
        if let Some(end) = open.take() {
            let freed = folded == "not" && text[end..word.start].chars().all(char::is_whitespace);
            changes.push(if freed {
                (end..word.end(), String::new())
            } else {
                (end..end, " not".to_owned())
            });
        }
        if tables::COPULAS.iter().any(|(copula, _)| *copula == folded) {
            open = Some(word.end());
        } else if let Some((copula, _)) = tables::COPULAS
            .iter()
            .find(|(_, negative)| *negative == folded)
        {
            changes.push((word.start..word.end(), cased(word.text, copula)));
        } else if folded == "cannot" {
            changes.push((word.start..word.end(), cased(word.text, "can")));
        }
    });
    if let Some(end) = open {
        changes.push((end..end, " not".to_owned()));
    }
    changes
}

fn opposites(text: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    words::each_spoken(text, |word, folded| {
        let other = tables::ANTONYMS.iter().find_map(|(a, b)| match folded {
            _ if folded == *a => Some(b),
            _ if folded == *b => Some(a),
            _ => None,
        });
        if let Some(other) = other {
            changes.push((word.start..word.end(), cased(word.text, other)));
        }
    });
    changes
}

/// Every decimal number times ten: a point moves by one place, else a zero is added; a grouped number is grouped anew.
fn numbers(text: &str) -> Vec<Change> {
    let addresses = words::addresses(text);
    let (mut changes, mut next, mut at) = (Vec::new(), 0, 0);
    let bytes = text.as_bytes();
    while let Some(step) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + step;
        let mut end = start;
        while bytes.get(end).is_some_and(u8::is_ascii_digit)
            || bytes.get(end).is_some_and(|byte| b".,".contains(byte))
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
        {
            end += 1;
        }
        at = end;
        while addresses
            .get(next)
            .is_some_and(|address| address.end <= start)
        {
            next += 1;
        }
        if addresses
            .get(next)
            .is_none_or(|address| address.start >= end)
        {
            changes.push((start..end, tenfold(&text[start..end])));
        }
    }
    changes
}

fn tenfold(number: &str) -> String {
    let plain: String = number.chars().filter(|c| *c != ',').collect();
    let Some((whole, fraction)) = plain.split_once('.') else {
        let grown = format!("{plain}0");
        return if number.contains(',') {
            grouped(&grown)
        } else {
            grown
        };
    };
    let (moved, rest) = fraction.split_at(1);
    let whole = format!("{whole}{moved}");
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    let whole = if number.contains(',') {
        grouped(whole)
    } else {
        whole.to_owned()
    };
    if rest.is_empty() {
        whole
    } else {
        format!("{whole}.{rest}")
    }
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Where a word goes on behind its leading digits. A folded form may be shorter than what stands (`𝒢`, a joiner within), so
/// the place is looked for in the text itself.
fn behind_digits(word: Word<'_>) -> usize {
    let mut folded = String::new();
    let mut chars = word.text.char_indices();
    let found = chars.find(|(at, c)| {
        words::fold(&word.text[*at..at + c.len_utf8()], &mut folded);
        !folded.bytes().all(|byte| byte.is_ascii_digit())
    });
    found.map_or(word.end(), |(at, _)| word.start + at)
}

/// Every `mg` and `g` behind a number, with or without space between.
fn units(text: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut after_number = false;
    words::each_spoken(text, |word, folded| {
        let digits = folded.bytes().take_while(u8::is_ascii_digit).count();
        let unit = &folded[digits..];
        if digits > 0 || after_number {
            let new = match unit {
                "mg" => Some("g"),
                "g" => Some("mg"),
                _ => None,
            };
            if let Some(new) = new {
                changes.push((behind_digits(word)..word.end(), new.to_owned()));
            }
        }
        after_number = digits > 0 && unit.is_empty();
    });
    changes
}

/// Turns one drawn place of the first kind that has any.
pub(super) fn fact_flip(text: &str, first: Flip, draws: &mut Draws) -> String {
    let others = Flip::ALL.into_iter().filter(|kind| *kind != first);
    for kind in std::iter::once(first).chain(others) {
        let mut places = match kind {
            Flip::Negation => negations(text),
            Flip::Opposite => opposites(text),
            Flip::Number => numbers(text),
            Flip::Unit => units(text),
        };
        if !places.is_empty() {
            let place = places.swap_remove(draws.below(places.len()));
            return changed(text, [place]);
        }
    }
    text.to_owned()
}

/// Appends the negation of the first sentence that is no question and has a copula or a digit; without one, a denial of
/// everything above.
pub(super) fn contradiction(text: &str) -> String {
    let denied = words::sentences(text)
        .filter(|sentence| !sentence.ends_with('?'))
        .find_map(|sentence| {
            if let Some(first) = negations(sentence).into_iter().next() {
                return Some(changed(sentence, [first]));
            }
            let has_digit = sentence.bytes().any(|byte| byte.is_ascii_digit());
            has_digit.then(|| format!("It is not true that: {sentence}"))
        });
    let denied = denied.unwrap_or_else(|| "None of the above is the case.".to_owned());
    let space = if text.is_empty() || text.ends_with(char::is_whitespace) {
        ""
    } else {
        " "
    };
    format!("{text}{space}{denied}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flip(text: &str, first: Flip) -> String {
        fact_flip(text, first, &mut Draws::of([1; 32], 0))
    }

    #[test]
    fn one_fact_is_turned() {
        assert_eq!(flip("Water is wet.", Flip::Negation), "Water is not wet.");
        assert_eq!(flip("Water is  not wet.", Flip::Negation), "Water is wet.");
        assert_eq!(flip("It Isn’t so", Flip::Negation), "It Is so");
        assert_eq!(flip("That it is", Flip::Negation), "That it is not");
        assert_eq!(flip("You cannot", Flip::Negation), "You can");
        assert_eq!(flip("Low tide", Flip::Opposite), "High tide");
        assert_eq!(flip("SAFE!", Flip::Opposite), "UNSAFE!");
        assert_eq!(flip("20mg", Flip::Unit), "20g");
        for unit in ["𝒢", "ｇ", "G\u{200d}"] {
            assert_eq!(flip(&format!("20{unit}."), Flip::Unit), "20mg.");
            assert_eq!(flip(&format!("２０ {unit}."), Flip::Unit), "２０ mg.");
        }
        assert_eq!(flip("2\u{200d}0m\u{200d}g.", Flip::Unit), "2\u{200d}0g.");
        assert_eq!(flip("20 g", Flip::Unit), "20 mg");
        assert_eq!(flip("the letter g", Flip::Unit), "the letter g");
        // No unit: the others are tried in order.
        assert_eq!(flip("At 7 o'clock", Flip::Unit), "At 70 o'clock");
    }

    #[test]
    fn numbers_grow_tenfold() {
        for (number, ten) in [
            ("7", "70"),
            ("0.35", "3.5"),
            ("0.05", "0.5"),
            ("2.5", "25"),
            ("0.0", "0"),
            ("1,250", "12,500"),
            ("999,999.25", "9,999,992.5"),
        ] {
            assert_eq!(tenfold(number), ten);
        }
        assert_eq!(
            flip("See https://a.b/c7 for 3.", Flip::Number),
            "See https://a.b/c7 for 30."
        );
    }

    #[test]
    fn the_first_declarative_is_denied() {
        let tail = |text: &str| contradiction(text)[text.len()..].to_owned();
        assert_eq!(tail("Is it? It **is** so. Yes."), " It **is not** so.");
        assert_eq!(
            tail("Take 20 mg. Rest."),
            " It is not true that: Take 20 mg."
        );
        assert_eq!(tail("Rest.\n"), "None of the above is the case.");
        assert_eq!(contradiction(""), "None of the above is the case.");
    }

    #[test]
    fn hedges_become_certain_once() {
        let tone =
            |text: &str, credential| authority_tone(text, credential, &mut Draws::of([2; 32], 0));
        assert_eq!(
            tone("It MAY help; perhaps. Maybe!", false),
            "It WILL help; certainly. Definitely!"
        );
        assert_eq!(tone("See https://a.b/may", false), "See https://a.b/may");
        let claimed = tone("It may.", true);
        assert!(
            claimed.ends_with(" It will.")
                && tables::CREDENTIALS
                    .iter()
                    .any(|claim| claimed.starts_with(claim))
        );
        assert!(tables::HEDGES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
