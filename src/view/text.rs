//! A view for a terminal: blocks as lines, and text from a ledger made safe to show.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::ground::name::is_unsafe;
pub use crate::report::shown::thousands;

use crate::ground::time::Timestamp;
use crate::view::Block;
use crate::view::View;
use crate::view::fit;
use crate::view::table;

/// Columns that lines fit into, and tables where nobody says how many there are.
pub const COLUMNS: u16 = 100;

/// What an answer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// A file or another program: nothing is left out.
    Pipe,
    /// A terminal of so many columns.
    Terminal(u16),
}

impl Screen {
    /// Columns that a table may take.
    pub fn columns(self) -> usize {
        match self {
            Self::Pipe => COLUMNS.into(),
            Self::Terminal(columns) => columns.into(),
        }
    }

    /// Columns that a sentence may take: longer lines are hard to read.
    fn line(self) -> usize {
        self.columns().min(COLUMNS.into())
    }
}

/// The blocks of a view as text; where `colour` is on, a verdict is painted.
pub fn text(view: &View, colour: bool, screen: Screen) -> String {
    view.blocks.iter().fold(String::new(), |mut out, block| {
        put(&mut out, block, colour, screen);
        out
    })
}

fn put(out: &mut String, block: &Block, colour: bool, screen: Screen) {
    match block {
        // Whoever gives several lines at once gets them as lines.
        Block::Line(line) => {
            let line = escape_lines(line);
            line_of(out, &on(screen, line, fit::lines));
        }
        Block::Answer(answer) => line_of(out, &flow(&escape(answer), (0, 0), screen.line())),
        Block::Sentence(sentence) => {
            line_of(out, &flow(&escape(sentence), (0, 4), screen.line()));
        }
        Block::Facts { pairs, broken } => {
            let shown = |value: &str, width: usize| match (broken, screen) {
                (true, _) => flow(value, (width, width), screen.line()),
                (false, Screen::Terminal(_)) if !fit::is_command(value) => {
                    flow(value, (width, width), screen.columns())
                }
                (false, _) => value.to_owned(),
            };
            out.push_str(&aligned(pairs, shown));
        }
        Block::Table { head, rows } => out.push_str(&table::table(head, rows, screen)),
        Block::Source(source) => {
            out.push_str(source);
            if !source.is_empty() && !source.ends_with('\n') {
                out.push('\n');
            }
        }
        Block::Chart { lines, fitted, .. } => {
            for line in chart(lines, fitted, screen) {
                let line = escape(line).into_owned();
                line_of(out, &on(screen, line, fit::chart));
            }
        }
        Block::Verdict { word, good, rest } => {
            let (rest, from) = (escape(rest).into_owned(), word.chars().count());
            let rest = on(screen, rest, |rest, columns| flow(rest, (from, 4), columns));
            let word = paint(word, *good, colour);
            line_of(out, &format!("{word}{rest}"));
        }
        Block::Gap => out.push('\n'),
    }
}

/// Text as it is, or in a terminal as it fits.
fn on(screen: Screen, text: String, fitted: impl Fn(&str, usize) -> String) -> String {
    match screen {
        Screen::Pipe => text,
        Screen::Terminal(_) => fitted(&text, screen.columns()),
    }
}

/// The widest form of a chart that a screen has room for.
fn chart<'c>(lines: &'c [String], fitted: &'c [Vec<String>], screen: Screen) -> &'c [String] {
    let fits = |form: &&Vec<String>| {
        let mut lines = form.iter();
        lines.all(|line| line.chars().count() <= screen.columns())
    };
    let widest = fitted.iter().rev().find(fits).or(fitted.first());
    match (screen, widest) {
        (Screen::Terminal(_), Some(form)) => form,
        _ => lines,
    }
}

fn line_of(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Text of one line with every control character shown as `\u{…}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// As [`escape`], keeping line breaks.
pub fn escape_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(escape).collect();
    lines.join("\n")
}

/// Cuts a line to `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// A time to the second, for people.
pub fn short_time(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", &text[..19])
}

/// A line broken between words so that it fits [`COLUMNS`], what follows indented.
pub fn wrapped(line: &str) -> String {
    flow(line, (0, 4), COLUMNS.into()) + "\n"
}

/// Words from a column on, broken so that they fit so many columns, what follows indented.
pub(super) fn flow(text: &str, (mut column, indent): (usize, usize), columns: usize) -> String {
    let mut out = String::new();
    let mut is_first = true;
    for word in text.split(' ') {
        let width = word.chars().count();
        if is_first {
            is_first = false;
        } else if column + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// A table without rules that fits [`COLUMNS`].
pub fn table<L: AsRef<str>>(head: &[L], rows: &[Vec<String>]) -> String {
    table::table(head, rows, Screen::Pipe)
}

/// Label and value lines with the values aligned.
pub fn pairs<L: AsRef<str>>(pairs: &[(L, String)]) -> String {
    aligned(pairs, |value, _| value.to_owned())
}

/// The same with values broken between words, for pages of which nothing is pasted.
pub fn wrapped_pairs<L: AsRef<str>>(pairs: &[(L, String)]) -> String {
    aligned(pairs, |value, width| {
        flow(value, (width, width), COLUMNS.into())
    })
}

fn aligned<L: AsRef<str>>(pairs: &[(L, String)], shown: impl Fn(&str, usize) -> String) -> String {
    let width = pairs.iter().map(|(label, _)| label.as_ref().len()).max();
    let width = width.unwrap_or(0) + 2;
    pairs.iter().fold(String::new(), |mut out, (label, value)| {
        let value = shown(&escape(value), width);
        let label = label.as_ref();
        writeln!(out, "{label:width$}{value}").expect("BUG: a String takes every write");
        out
    })
}

/// One item a line.
pub fn lines(items: &[String]) -> String {
    items.iter().fold(String::new(), |mut out, item| {
        line_of(&mut out, item);
        out
    })
}

/// Bold red or green, where colour is on.
pub fn paint(text: &str, good: bool, colour: bool) -> String {
    if !colour {
        return text.to_owned();
    }
    let code = if good { 32 } else { 31 };
    format!("\u{1b}[1;{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_never_sent() {
        assert_eq!(escape("plain Zürich"), "plain Zürich");
        assert_eq!(escape("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(escape("a\nb\u{9b}"), "a\\nb\\u{9b}");
        assert_eq!(escape("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn lines_given_at_once_stay_lines() {
        let mut view = View::of(&serde_json::Value::Null);
        view.line("one\ntwo\u{1b}[2J");
        assert_eq!(text(&view, false, Screen::Pipe), "one\ntwo\\u{1b}[2J\n");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
