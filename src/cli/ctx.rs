//! The composition root: settings resolved once, the world behind them, and the two streams.

use std::io::BufRead;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::Globals;
use crate::cli::error::CliError;
use crate::cli::ui;
use crate::cli::ui::Pace;
use crate::cli::ui::Progress;
use crate::cli::ui::When;
use crate::cli::world::World;
use crate::ground::ambient;
use crate::ground::ambient::Ambient;
use crate::ground::shell;
use crate::session::slate::Slate;
use crate::view::fit;
use crate::view::text::COLUMNS;
use crate::view::text::Screen;

/// Columns of the narrowest terminal that answers are set for.
const COLUMNS_MIN: u16 = 40;

/// What every verb is given.
pub(super) struct Ctx<'w> {
    world: &'w mut World,
    /// Options of every verb.
    pub globals: Globals,
    /// The verb that runs, in the words that were typed.
    pub verb: String,
    /// Answer as of this position instead of the head.
    pub as_of: Option<u64>,
    /// Remarks that go into `--json`.
    pub warnings: Vec<String>,
    /// What is signed here and waits for whoever writes the log.
    pub slate: Option<Slate>,
}

impl<'w> Ctx<'w> {
    pub(super) fn new(world: &'w mut World, globals: Globals) -> Self {
        Self {
            world,
            globals,
            verb: String::new(),
            as_of: None,
            warnings: Vec::new(),
            slate: None,
        }
    }

    /// Clock and entropy.
    pub(super) fn ambient(&self) -> Arc<Ambient> {
        self.world.ambient.clone()
    }

    /// An environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.world.variables.get(name).map(String::as_str)
    }

    /// A path as typed, from the current folder; single dots fall away.
    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.world.folder.join(path).components().collect()
    }

    /// The current folder.
    pub(super) fn folder(&self) -> &Path {
        &self.world.folder
    }

    /// Whether standard input is a terminal.
    pub(super) fn can_ask(&self) -> bool {
        self.world.terminals[0]
    }

    /// Whether answers are coloured.
    pub(super) fn colour(&self) -> bool {
        match self.globals.color {
            When::Always => true,
            When::Never => false,
            When::Auto => self.world.terminals[1] && self.variable("NO_COLOR").is_none(),
        }
    }

    /// What answers are set for.
    pub(super) fn screen(&self) -> Screen {
        match (self.world.terminals[1], self.world.columns) {
            (false, _) => Screen::Pipe,
            (true, None) => Screen::Terminal(COLUMNS),
            (true, Some(columns)) => Screen::Terminal(columns.max(COLUMNS_MIN)),
        }
    }

    /// What follows a word on standard error, broken between words where that is a terminal.
    pub(super) fn fitted(&self, word: &str, text: &str) -> String {
        match self.world.columns.filter(|_| self.world.terminals[2]) {
            None => text.to_owned(),
            Some(columns) => {
                let columns = columns.max(COLUMNS_MIN).into();
                fit::after(word.chars().count() + 2, text, columns)
            }
        }
    }

    /// A line for people, beside the answer.
    pub(super) fn note(&mut self, text: &str) {
        if !self.globals.quiet {
            let text = ui::escape(text);
            // What is pasted stays on one line.
            let text = if text.starts_with("next: ") {
                text.into_owned()
            } else {
                self.fitted("", &text)
            };
            // A note that cannot be shown is not worth failing for.
            writeln!(self.world.stderr, "{text}").ok();
        }
    }

    /// A remark that must not be missed: on standard error, and in `--json`.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        // Quiet hides notes, not warnings.
        let shown = self.fitted("warning", &ui::escape(&text));
        writeln!(self.world.stderr, "warning: {shown}").ok();
        self.warnings.push(text);
    }

    /// Writes a part of the answer at once.
    pub(super) fn out(&mut self, text: &str) -> Result<(), CliError> {
        let write = self.world.stdout.write_all(text.as_bytes());
        write.map_err(|error| CliError::output(&error))
    }

    /// Sends what was written so far.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        let flush = self.world.stdout.flush();
        flush.map_err(|error| CliError::output(&error))
    }

    /// Writes to standard error as it is.
    pub(super) fn err(&mut self, text: &str) {
        // There is nowhere left to complain.
        self.world.stderr.write_all(text.as_bytes()).ok();
        self.world.stderr.flush().ok();
    }

    /// The stream of answers, for bytes that are not text.
    pub(super) fn stdout(&mut self) -> &mut (dyn std::io::Write + Send) {
        self.world.stdout.as_mut()
    }

    /// Shows how far something has come.
    pub(super) fn progress(&mut self, what: &'static str) -> Progress<'_> {
        Progress::new(self.pace(what), self.world.stderr.as_mut())
    }

    /// How far something has come, as this run shows it.
    pub(super) fn pace(&self, what: &'static str) -> Pace {
        let mode = if self.globals.quiet {
            ui::ProgressMode::Never
        } else {
            self.globals.progress
        };
        Pace::new(what, mode, self.world.terminals[2])
    }

    /// The stream of notes and progress.
    pub(super) fn stderr(&mut self) -> &mut (dyn std::io::Write + Send) {
        self.world.stderr.as_mut()
    }

    /// A file, or standard input for `-`.
    pub(super) fn reader(&mut self, path: &Path) -> Result<Box<dyn BufRead + Send>, CliError> {
        if path == Path::new("-") {
            let taken = "standard input was read already";
            let next = "give one of the two as a file";
            let stdin = self.world.stdin.take();
            return stdin.ok_or_else(|| CliError::usage(taken, next));
        }
        Ok(ambient::reader(&self.path(path))?)
    }

    /// The whole of a file, or of standard input for `-`.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, CliError> {
        if path != Path::new("-") {
            return Ok(ambient::read(&self.path(path))?);
        }
        let mut bytes = Vec::new();
        let read = self.reader(path)?.read_to_end(&mut bytes);
        read.map_err(|error| {
            CliError::input(
                format!("cannot read standard input: {error}"),
                "clover --help",
            )
        })?;
        Ok(bytes)
    }

    /// Asks for a passphrase where someone can answer.
    pub(super) fn ask_passphrase(&mut self, prompt: &str) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        (self.world.ask_passphrase)(prompt)
    }

    /// Asks for a line where someone can answer.
    pub(super) fn ask(&mut self, question: &str) -> Result<Option<String>, CliError> {
        if !self.can_ask() {
            return Ok(None);
        }
        self.err(&format!("{} ", ui::escape(question)));
        let mut line = String::new();
        if let Some(stdin) = &mut self.world.stdin {
            let read = stdin.read_line(&mut line);
            read.map_err(|error| CliError::usage(format!("no answer: {error}"), "clover --help"))?;
        }
        Ok(Some(line.trim().to_owned()))
    }

    /// Asks before something that cannot be undone; `--yes` answers for scripts.
    pub(super) fn confirm(
        &mut self,
        question: &str,
        yes: bool,
        again: &str,
    ) -> Result<(), CliError> {
        if yes {
            return Ok(());
        }
        if !self.can_ask() {
            let message = format!("{question}: nobody is there to confirm it");
            return Err(CliError::usage(message, self.with_options(again, "--yes")));
        }
        let prompt = format!("{} [y/N] ", ui::escape(question));
        self.err(&prompt);
        let mut line = String::new();
        if let Some(stdin) = &mut self.world.stdin {
            let read = stdin.read_line(&mut line);
            read.map_err(|error| CliError::usage(format!("no answer: {error}"), again))?;
        }
        if matches!(line.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(CliError::refused(
            "not confirmed; nothing was changed",
            self.with_options(again, ""),
        ))
    }

    /// The same command again with the options that say where and as whom it ran, and with more words: all of them before the
    /// words of a program.
    fn with_options(&self, again: &str, more: &str) -> String {
        let (before, program) = match again.split_once(" -- ") {
            Some((before, program)) => (before, Some(program)),
            None => (again, None),
        };
        let mut next = before.to_owned();
        let ledger = self
            .globals
            .ledger
            .as_ref()
            .map(|path| path.display().to_string());
        for (option, value) in [("--ledger", ledger), ("--key", self.globals.key.clone())] {
            let is_there = before.split(' ').any(|word| word == option);
            if let Some(value) = value.filter(|_| !is_there) {
                next.push_str(&format!(" {option} {}", shell::word(&value)));
            }
        }
        if !more.is_empty() {
            next.push_str(&format!(" {more}"));
        }
        if let Some(program) = program {
            next.push_str(&format!(" -- {program}"));
        }
        next
    }
}
