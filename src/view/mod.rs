//! What a verb answers, once: facts for machines, and blocks for people. Text, `--json`, Markdown and HTML are
//! renderings of it.
//!
//! A [`View`] holds typed facts (what `--json` prints, with a JSON Schema per verb in `schema/cli/`) and [`Block`]s
//! (what people read). Whoever makes a view words it once; [`text`], [`markdown`] and [`page`] set the same blocks for
//! a terminal, a document and a browser. A view computes no number: it shows what use cases and folds found.
//!
//! Blocks hold text as it is: a rendering escapes it for its reader, but for [`Block::Source`] in a terminal.

pub mod access;
pub mod analysis;
pub mod answer;
pub mod appended;
pub mod approval;
pub mod assume;
pub mod audit;
pub mod audit_summary;
pub mod battery;
pub mod blob;
pub mod budget;
pub mod calibrate;
pub mod campaign;
pub mod cassette;
pub mod checkpoint;
pub mod confirm;
pub mod deploy;
pub mod endpoint;
pub mod entry;
pub mod estimate;
pub mod experiment;
pub mod explained;
pub mod exposure;
pub mod family;
pub mod fit;
pub mod gate;
pub mod generator;
pub mod guide;
pub mod ids;
pub mod intake;
pub mod iterate;
pub mod json;
pub mod judge;
pub mod judge_ask;
pub mod judge_compare;
pub mod judge_drift;
pub mod judge_noise;
pub mod key;
pub mod label;
pub mod ledger_copy;
pub mod manual;
pub mod markdown;
pub mod meta;
pub mod meta_cells;
pub mod model_terms;
pub mod ope;
pub mod page;
pub mod patch;
pub mod plan;
pub mod prereg;
pub mod prompt;
pub mod qualify;
pub mod recalibrate;
pub mod regime;
pub mod repair;
pub mod repair_candidate;
pub mod repair_measures;
pub mod replay;
pub mod report;
pub mod retain;
pub mod rubric;
pub mod rulebook;
pub mod score;
pub mod sgd;
pub mod shapes;
pub mod signed;
pub mod simulate;
pub mod split;
pub mod status;
pub mod surroundings;
pub mod sync;
pub mod synth;
pub mod synth_asked;
mod table;
pub mod taken_in;
pub mod text;
pub mod transport;
pub mod values;
pub mod verify;
pub mod workflow;
pub mod workflow_run;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::ledger::AppendedEvent;

/// The label of where the log stands.
const LOG: &str = "log";
/// Event ids that a view lists; more are counted.
const IDS_MAX: usize = 1_000;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done; a verification passed.
    Done,
    /// An unexpected failure, a file that cannot be written included.
    Unexpected,
    /// The command line itself is wrong.
    Usage,
    /// Tampered, rolled back, forked, forged, damaged.
    Integrity,
    /// What was given to read is not valid.
    Input,
    /// No such ledger, key, entry or file.
    NotFound,
    /// A gate or another check ended against what it judges.
    Fail,
    /// A rule said no.
    Refused,
    /// Inconclusive or not checked: a gate that decided nothing, a check that could not be made.
    Inconclusive,
    /// Locked, full or early: the same command may work later.
    TryLater,
    /// Interrupted; what was recorded so far stands.
    Interrupted,
}

impl Exit {
    /// Every way to end, in order of its code.
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Unexpected,
        Self::Usage,
        Self::Integrity,
        Self::Input,
        Self::NotFound,
        Self::Fail,
        Self::Refused,
        Self::Inconclusive,
        Self::TryLater,
        Self::Interrupted,
    ];

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Integrity => 3,
            Self::Input => 4,
            Self::NotFound => 5,
            Self::Fail => 10,
            Self::Refused => 11,
            Self::Inconclusive => 12,
            Self::TryLater => 75,
            Self::Interrupted => 130,
        }
    }

    /// What it means, for help texts.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unexpected => "unexpected",
            Self::Usage => "usage",
            Self::Integrity => "integrity",
            Self::Input => "bad input",
            Self::NotFound => "not found",
            Self::Fail => "failed",
            Self::Refused => "refused",
            Self::Inconclusive => "undecided",
            Self::TryLater => "try later",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A label, or another text that is mostly written in the source.
pub type Label = Cow<'static, str>;

/// The word by which an enum stands in events and in JSON.
pub fn word<T: Serialize>(of: &T) -> String {
    match serde_json::to_value(of) {
        Ok(Value::String(word)) => word,
        // A variant with fields, or nothing at all, has no word of its own.
        _ => "none".to_owned(),
    }
}

/// A part of what people read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A line that is never broken: a command, a hash, a path.
    Line(String),
    /// What was asked, answered in a sentence or a few: above everything else.
    Answer(String),
    /// A sentence, broken between words where a line ends.
    Sentence(String),
    /// Labels and values; where `broken`, long values are broken between words.
    Facts {
        /// In the order shown.
        pairs: Vec<(Label, String)>,
        /// Whether a long value may be broken.
        broken: bool,
    },
    /// A table: each row has as many cells as the head.
    Table {
        /// Names of the columns.
        head: Vec<Label>,
        /// Cells, row by row.
        rows: Vec<Vec<String>>,
    },
    /// Text in the form of its own language, with its line breaks: a manifest, a body, a script. A terminal gets it byte
    /// for byte, since a proof may be made of it: whoever adds what others wrote escapes it.
    Source(String),
    /// A chart: blocks of a line for a terminal, a drawing for a page.
    Chart {
        /// The chart as lines of text.
        lines: Vec<String>,
        /// The same for terminals of other widths, from the narrowest to the widest; none where there is one form alone.
        fitted: Vec<Vec<String>>,
        /// The chart as SVG, from `report`, which escapes what it shows.
        svg: Option<String>,
    },
    /// A line that begins with a word that says whether all is well.
    Verdict {
        /// The word.
        word: Label,
        /// Whether it is good news.
        good: bool,
        /// What follows it, with its space.
        rest: String,
    },
    /// An empty line, between things that have nothing to do with one another.
    Gap,
}

/// What a verb answers.
#[derive(Clone, Debug)]
pub struct View {
    /// One word.
    pub verdict: &'static str,
    /// How the run ends.
    pub exit: Exit,
    /// Ids of the events it is about.
    pub events: Vec<String>,
    /// The checkpoint after it: size and root.
    pub checkpoint: Option<(u64, String)>,
    /// What people read; empty when it was written already.
    pub blocks: Vec<Block>,
    /// What to type next.
    pub next: Vec<String>,
    facts: Value,
    shape: &'static str,
}

impl View {
    /// A view of typed facts that shows nothing to people yet.
    ///
    /// # Panics
    /// Where facts cannot be written as JSON: a map whose keys are no text, which a test of the verb's schema finds.
    pub fn of<T: Serialize>(facts: &T) -> Self {
        Self {
            verdict: "done",
            exit: Exit::Done,
            events: Vec::new(),
            checkpoint: None,
            blocks: Vec::new(),
            next: Vec::new(),
            facts: serde_json::to_value(facts).expect("BUG: facts of a view are JSON"),
            shape: std::any::type_name::<T>(),
        }
    }

    /// The same view over other facts: for a verb that says more than the step that it took.
    #[must_use]
    pub fn with_facts<T: Serialize>(self, facts: &T) -> Self {
        let Self { facts, shape, .. } = Self::of(facts);
        Self {
            facts,
            shape,
            ..self
        }
    }

    /// The facts as JSON.
    pub fn facts(&self) -> &Value {
        &self.facts
    }

    /// What people read, without colour.
    pub fn text(&self) -> String {
        text::text(self, false, text::Screen::Pipe)
    }

    /// The name of the type of its facts; [`shapes`] says which a verb may answer with.
    pub fn shape(&self) -> &'static str {
        self.shape
    }

    /// Another word for how it ended.
    #[must_use]
    pub fn with_verdict(mut self, verdict: &'static str) -> Self {
        self.verdict = verdict;
        self
    }

    /// A command to type next.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next.push(next.into());
        self
    }

    /// The same of a slate: it is signed and not recorded, and where the log would stand is so on the slate alone.
    #[must_use]
    pub fn on_slate(mut self) -> Self {
        self.verdict = "signed";
        self.checkpoint = None;
        let facts = self.blocks.iter_mut().filter_map(|block| match block {
            Block::Facts { pairs, .. } => Some(pairs),
            _ => None,
        });
        for (label, value) in facts.flatten() {
            if label.as_ref() == LOG {
                value.push_str(" · on this slate: the log has them once its writer syncs");
            }
        }
        self
    }

    /// The events that were appended, by their ids.
    #[must_use]
    pub fn with_events(mut self, appended: &[AppendedEvent]) -> Self {
        let ids = appended.iter().take(IDS_MAX);
        self.events = ids.map(|appended| appended.id.to_string()).collect();
        self
    }

    /// Adds a line that is never broken.
    pub fn line(&mut self, line: impl Into<String>) {
        self.blocks.push(Block::Line(line.into()));
    }

    /// Adds the answer to what was asked, before what it rests on.
    pub fn answer(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Answer(text.into()));
        self.gap();
    }

    /// Adds a sentence.
    pub fn sentence(&mut self, sentence: impl Into<String>) {
        self.blocks.push(Block::Sentence(sentence.into()));
    }

    /// Adds labels and values of which something may be copied: no value is broken.
    pub fn pairs<L: Into<Label>>(&mut self, pairs: impl IntoIterator<Item = (L, String)>) {
        self.facts_block(pairs, false);
    }

    /// Adds labels and values whose long values are broken between words.
    pub fn broken_pairs<L: Into<Label>>(&mut self, pairs: impl IntoIterator<Item = (L, String)>) {
        self.facts_block(pairs, true);
    }

    fn facts_block<L: Into<Label>>(
        &mut self,
        pairs: impl IntoIterator<Item = (L, String)>,
        broken: bool,
    ) {
        let pairs = pairs.into_iter();
        let pairs = pairs.map(|(label, value)| (label.into(), value)).collect();
        self.blocks.push(Block::Facts { pairs, broken });
    }

    /// Adds a table.
    pub fn table<L: Into<Label> + Clone>(
        &mut self,
        head: &[L],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.blocks.push(Block::Table {
            head: head.iter().cloned().map(Into::into).collect(),
            rows: rows.into_iter().collect(),
        });
    }

    /// Adds text in the form of its own language.
    pub fn source(&mut self, source: impl Into<String>) {
        let source = source.into();
        if !source.is_empty() {
            self.blocks.push(Block::Source(source));
        }
    }

    /// Adds a chart.
    pub fn chart(&mut self, lines: Vec<String>, svg: Option<String>) {
        self.blocks.push(Block::Chart {
            lines,
            fitted: Vec::new(),
            svg,
        });
    }

    /// Adds a chart with its forms for terminals of several widths, from the narrowest to the widest.
    pub fn chart_in(&mut self, lines: Vec<String>, fitted: Vec<Vec<String>>, svg: Option<String>) {
        self.blocks.push(Block::Chart { lines, fitted, svg });
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }
}

#[cfg(test)]
mod tests {
    use crate::ground::page;

    use super::Exit;

    #[test]
    fn the_page_lists_every_exit_code() {
        let when = |exit: Exit| match exit {
            Exit::Done => "it did what it was asked; a gate, an audit or a verification passed",
            Exit::Unexpected => {
                "something failed that nobody foresaw, a file that cannot be written included"
            }
            Exit::Usage => "the command line is wrong",
            Exit::Integrity => {
                "something was tampered with, rolled back, forked or damaged, or a number differs when it is computed again"
            }
            Exit::Input => "a file that was given is not valid; its line and field are named",
            Exit::NotFound => "there is no such ledger, key, entry or file",
            Exit::Fail => "a gate or another check ended against what it judges",
            Exit::Refused => "a rule said no: a budget, a role, an order, something stale",
            Exit::Inconclusive => {
                "nothing was decided, or a check could not be made; a plan has no size that does"
            }
            Exit::TryLater => {
                "the same command may work later: somebody else writes, or the network is away"
            }
            Exit::Interrupted => "somebody stopped it; what was recorded so far stands",
        };
        let rows = Exit::ALL.map(|exit| {
            let (code, meaning) = (exit.code(), exit.meaning());
            format!("| {code} | {meaning} | {} |\n", when(exit))
        });
        page::hold(
            "schema/EXITS.md",
            &[("| code | word | when |", rows.concat())],
        );
    }
}
