//! Answers, tables, colour, progress, and text from a ledger made safe for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use comfy_table::ContentArrangement;
use comfy_table::Table;
use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;
use serde_json::Value;
use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::ground::ambient::Stopwatch;
use crate::ledger::Appended;

/// Columns that tables and lines fit into.
pub(super) const COLUMNS: u16 = 100;
/// Event ids that an answer lists; more are counted.
const IDS_MAX: usize = 1_000;

/// What a verb answers.
#[derive(Debug)]
pub(super) struct Answer {
    /// One word.
    pub verdict: &'static str,
    /// How the run ends.
    pub exit: Exit,
    /// Ids of the events it is about.
    pub events: Vec<String>,
    /// The checkpoint after it: size and root.
    pub checkpoint: Option<(u64, String)>,
    /// Particulars.
    pub data: Value,
    /// What to type next.
    pub next: Vec<String>,
    /// The same for people; empty when it was written already.
    pub text: String,
}

impl Answer {
    pub(super) fn new(text: impl Into<String>, data: Value) -> Self {
        Self {
            verdict: "done",
            exit: Exit::Done,
            events: Vec::new(),
            checkpoint: None,
            data,
            next: Vec::new(),
            text: text.into(),
        }
    }

    /// Adds a line for people.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub(super) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next.push(next.into());
        self
    }

    pub(super) fn with_events(mut self, appended: &[Appended]) -> Self {
        let ids = appended.iter().take(IDS_MAX);
        self.events = ids.map(|appended| appended.id.to_string()).collect();
        self
    }

    /// The one object of `--json`.
    pub(super) fn to_json(&self, warnings: &[String]) -> String {
        let checkpoint = self
            .checkpoint
            .as_ref()
            .map(|(size, root)| json!({"size": size, "root": root}));
        object(
            self.exit,
            self.verdict,
            &self.events,
            checkpoint.as_ref(),
            &self.data,
            warnings,
            &self.next,
        )
    }
}

/// The `--json` object of an error.
pub(super) fn error_json(error: &CliError, warnings: &[String]) -> String {
    let data = match &error.data {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("message".to_owned(), error.message.clone().into());
            Value::Object(fields)
        }
        _ => json!({"message": error.message}),
    };
    let next = [error.next.clone()];
    object(error.exit, error.word, &[], None, &data, warnings, &next)
}

fn object(
    exit: Exit,
    verdict: &str,
    events: &[String],
    checkpoint: Option<&Value>,
    data: &Value,
    warnings: &[String],
    next: &[String],
) -> String {
    let text = format!(
        "{{\"ok\":{},\"verdict\":{},\"exit\":{},\"events\":{},\"checkpoint\":{},\"data\":{data},\"warnings\":{},\"next\":{}}}\n",
        exit == Exit::Done,
        json!(verdict),
        exit.code(),
        json!(events),
        json!(checkpoint),
        json!(warnings),
        json!(next),
    );
    escape_json(&text)
}

/// Characters that may move a cursor or reorder what a reader sees, or that nobody sees.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Text of one line with every control character shown as `\u{…}`.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
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
pub(super) fn escape_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(escape).collect();
    lines.join("\n")
}

/// JSON whose strings hold no raw control character that JSON itself allows.
pub(super) fn escape_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_unsafe(c) {
            // Everything unsafe beyond ASCII lies in the basic plane: one \u escape.
            write!(out, "\\u{:04x}", u32::from(c)).expect("BUG: a String takes every write");
        } else {
            out.push(c);
        }
    }
    out
}

/// Cuts a line to `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// A line broken between words so that it fits [`COLUMNS`], what follows indented.
pub(super) fn wrapped(line: &str) -> String {
    flow(line, 0, 4) + "\n"
}

/// Words from a column on, broken so that they fit [`COLUMNS`], what follows indented.
fn flow(text: &str, mut column: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut is_first = true;
    for word in text.split(' ') {
        let width = word.chars().count();
        if is_first {
            is_first = false;
        } else if column + 1 + width > usize::from(COLUMNS) {
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
pub(super) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(COLUMNS);
    table.set_header(head.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| escape(cell).into_owned()));
    }
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end().strip_prefix(' ').unwrap_or(&line));
        out.push('\n');
    }
    out
}

/// Label and value lines with the values aligned.
pub(super) fn pairs(pairs: &[(&str, String)]) -> String {
    aligned(pairs, |value, _| value.to_owned())
}

/// The same with values broken between words, for pages of which nothing is pasted.
pub(super) fn wrapped_pairs(pairs: &[(&str, String)]) -> String {
    aligned(pairs, |value, width| flow(value, width, width))
}

fn aligned(pairs: &[(&str, String)], shown: impl Fn(&str, usize) -> String) -> String {
    let width = pairs.iter().map(|(label, _)| label.len()).max();
    let width = width.unwrap_or(0) + 2;
    pairs.iter().fold(String::new(), |mut out, (label, value)| {
        let value = shown(&escape(value), width);
        writeln!(out, "{label:width$}{value}").expect("BUG: a String takes every write");
        out
    })
}

/// One item a line.
pub(super) fn lines(items: &[String]) -> String {
    items.iter().fold(String::new(), |mut out, item| {
        out.push_str(item);
        out.push('\n');
        out
    })
}

/// An integer with thousands separated.
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// When colour is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ProgressMode {
    /// A bar on a terminal, lines elsewhere.
    #[default]
    Auto,
    /// Not at all.
    Never,
    /// One line per tenth.
    Plain,
}

/// Bold red or green, where colour is on.
pub(super) fn paint(text: &str, good: bool, colour: bool) -> String {
    if !colour {
        return text.to_owned();
    }
    let code = if good { 32 } else { 31 };
    format!("\u{1b}[1;{code}m{text}\u{1b}[0m")
}

/// How far something has come, from one second on.
pub(super) struct Pace {
    bar: Option<ProgressBar>,
    is_plain: bool,
    what: &'static str,
    since: Stopwatch,
    tenth: u64,
    /// When the last line was written.
    said: f64,
}

/// Seconds after which a line is due though no tenth is done.
const SILENT: f64 = 10.0;

impl Pace {
    pub(super) fn new(what: &'static str, mode: ProgressMode, terminal: bool) -> Self {
        let bar = (mode == ProgressMode::Auto && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            let style =
                ProgressStyle::with_template("{msg} {human_pos}/{human_len} [{bar:40}] {eta}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar
        });
        Self {
            is_plain: mode != ProgressMode::Never && bar.is_none(),
            bar,
            what,
            since: Stopwatch::start(),
            tenth: 0,
            said: 0.0,
        }
    }

    /// `done` of `all`; `all` is 0 where nobody knows it. Lines go to `stderr`.
    pub(super) fn at(&mut self, done: u64, all: u64, stderr: &mut dyn std::io::Write) {
        if self.bar.is_none() && !self.is_plain || self.since.seconds() < 1.0 {
            return;
        }
        if let Some(bar) = &self.bar {
            if bar.is_hidden() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            if all > 0 {
                bar.set_length(all);
            }
            bar.set_position(done);
        }
        let tenth = match all {
            0 => done / 100_000,
            all => done.saturating_mul(10) / all,
        };
        let now = self.since.seconds();
        if self.is_plain && (tenth > self.tenth || now - self.said >= SILENT) {
            (self.tenth, self.said) = (tenth, now);
            let of = match all {
                0 => String::new(),
                all => format!(" of {}", thousands(all)),
            };
            // Progress that cannot be shown is not worth failing for.
            writeln!(stderr, "{}: {}{of}", self.what, thousands(done)).ok();
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A pace with the stream that its lines go to.
pub(super) struct Progress<'w> {
    pace: Pace,
    stderr: &'w mut (dyn std::io::Write + Send),
}

impl<'w> Progress<'w> {
    pub(super) fn new(pace: Pace, stderr: &'w mut (dyn std::io::Write + Send)) -> Self {
        Self { pace, stderr }
    }

    /// `done` of `all`; `all` is 0 where nobody knows it.
    pub(super) fn at(&mut self, done: u64, all: u64) {
        self.pace.at(done, all, self.stderr);
    }
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
        assert_eq!(escape_json("\"\u{9b}\"\n"), "\"\\u009b\"\n");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
