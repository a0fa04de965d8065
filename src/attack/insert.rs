//! Operators that add text: padding, mimicry, citations, tool traces.

use clover_ground::words;
use clover_num::draws::Draws;

use crate::operator::Host;
use crate::tables;

/// One of a table.
fn pick<'a, T: ?Sized>(table: &[&'a T], draws: &mut Draws) -> &'a T {
    table[draws.below(table.len())]
}

/// Adds a sentence behind `text`, one space between.
fn push(text: &mut String, sentence: &str) {
    if !text.is_empty() && !text.ends_with(char::is_whitespace) {
        text.push(' ');
    }
    text.push_str(sentence);
}

/// Boilerplate until at least `percent` hundredths of the tokens are added: no sentence twice in a row, one at least.
pub(super) fn padding(text: &str, percent: u16, draws: &mut Draws) -> String {
    let wanted = (words::tokens(text) * u64::from(percent)).div_ceil(100);
    let (mut out, mut added, mut last) = (text.to_owned(), 0, usize::MAX);
    while added == 0 || added < wanted {
        let mut at = draws.below(tables::BOILERPLATE.len());
        if at == last {
            at = (at + 1) % tables::BOILERPLATE.len();
        }
        last = at;
        let sentence = tables::BOILERPLATE[at];
        push(&mut out, sentence);
        added += words::tokens(sentence);
    }
    out
}

/// Rubric phrases, from a drawn place of the table onwards.
pub(super) fn mimicry(text: &str, phrases: u8, in_front: bool, draws: &mut Draws) -> String {
    let (count, first) = (
        tables::RUBRIC_PHRASES.len(),
        draws.below(tables::RUBRIC_PHRASES.len()),
    );
    let mut added = String::new();
    for step in 0..usize::from(phrases) {
        push(&mut added, tables::RUBRIC_PHRASES[(first + step) % count]);
    }
    if in_front {
        push(&mut added, text);
        return added;
    }
    let mut out = text.to_owned();
    push(&mut out, &added);
    out
}

/// Citations whose paths are drawn: 64 bits of hexadecimal digits, so that none exists.
pub(super) fn citations(text: &str, count: u8, host: Host, draws: &mut Draws) -> String {
    let mut out = text.to_owned();
    for _ in 0..count {
        let host = match host {
            Host::Listed => pick(tables::LISTED_HOSTS, draws),
            Host::Unlisted => pick(tables::UNLISTED_HOSTS, draws),
        };
        let kind = pick(tables::CITED_AS, draws);
        let path: String = (0..16)
            .map(|_| char::from(b"0123456789abcdef"[draws.below(16)]))
            .collect();
        push(
            &mut out,
            &format!("This is confirmed by a {kind} (https://{host}/{path})."),
        );
    }
    out
}

/// Tool calls with results, in the bracket form in which traces are told; each carries a drawn number.
pub(super) fn tool_trace(text: &str, calls: u8, draws: &mut Draws) -> String {
    let mut out = text.to_owned();
    for _ in 0..calls {
        let (call, result) = tables::TOOL_CALLS[draws.below(tables::TOOL_CALLS.len())];
        let number = draws.below(1_000_000);
        push(
            &mut out,
            &format!("[tool_call {call} id={number:06}] [tool_result {result}]"),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> Draws {
        Draws::of([7; 32], 0)
    }

    #[test]
    fn padding_reaches_its_share_by_less_than_a_sentence() {
        let text = "One two three four five six seven eight nine ten.".repeat(9);
        let before = words::tokens(&text);
        let longest = tables::BOILERPLATE
            .iter()
            .map(|text| words::tokens(text))
            .max()
            .unwrap();
        for percent in [50, 100, 180] {
            let after = words::tokens(&padding(&text, percent, &mut draws()));
            let wanted = (before * u64::from(percent)).div_ceil(100);
            assert!(after - before >= wanted && after - before < wanted + longest);
        }
        assert!(words::tokens(&padding("", 50, &mut draws())) > 0);
    }

    #[test]
    fn inserts_stand_where_they_are_asked_for() {
        let front = mimicry("Content.", 2, true, &mut draws());
        assert!(front.ends_with(" Content."));
        let end = mimicry("Content.", 1, false, &mut draws());
        assert!(end.starts_with("Content. "));
        let cited = citations("Content.", 3, Host::Listed, &mut draws());
        assert_eq!(words::addresses(&cited).len(), 3);
        let cited = citations("", 1, Host::Unlisted, &mut draws());
        assert!(cited.contains(".example/") && !cited.starts_with(' '));
        let traced = tool_trace("Content.\n", 2, &mut draws());
        assert_eq!(traced.matches("[tool_call ").count(), 2);
        assert_eq!(traced.matches("[tool_result ").count(), 2);
    }
}
