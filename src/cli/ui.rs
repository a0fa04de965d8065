//! Colour, progress, and the `--json` object of an error.

use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;
use serde_json::Value;
use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::ground::ambient::Stopwatch;
use crate::view::json;
use crate::view::json::Envelope;

pub(super) use crate::view::text::cut;
pub(super) use crate::view::text::escape;
pub(super) use crate::view::text::escape_lines;
pub(super) use crate::view::text::lines;
pub(super) use crate::view::text::paint;
pub(super) use crate::view::text::thousands;

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
    let envelope = Envelope {
        exit: error.exit,
        verdict: error.word,
        events: &[],
        checkpoint: None,
        warnings,
        next: &next,
    };
    json::object(envelope, &data)
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

/// How an answer is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// Lines and tables for a terminal.
    #[default]
    Text,
    /// A document.
    Markdown,
    /// One page: no script, nothing from outside.
    Html,
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

/// Says what went wrong, and what to do.
pub(super) fn tell(ctx: &mut Ctx<'_>, error: &CliError) {
    if ctx.globals.json {
        let text = error_json(error, &ctx.warnings);
        // The failure itself is reported by the exit code when nobody can be told.
        ctx.out(&text).ok();
        ctx.flush().ok();
    }
    let message = ctx.fitted(error.word, &escape_lines(&error.message));
    let word = paint(error.word, false, ctx.colour());
    let next = escape(&error.next);
    ctx.err(&format!("{word}: {message}\nnext: {next}\n"));
}
