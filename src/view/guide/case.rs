//! What a person answers: what they want to know, what they have, how many judges there are, and who works on it.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;

use crate::ground::shell;
use crate::view::word;

/// What a person wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum GuideAim {
    /// Which model is best.
    Best,
    /// A calibrated value of each model.
    Value,
    /// A rubric under which the judge errs less.
    Rubric,
    /// Whether a candidate may replace what runs.
    Gate,
}

/// What a person has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum GuideData {
    /// Scores of a judge.
    Scores,
    /// Labels by people.
    Labels,
    /// Prompts and responses.
    Texts,
}

/// How many judges score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum JudgeCount {
    /// One.
    One,
    /// Two or more.
    Several,
}

/// Who works on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Company {
    /// One person, who holds all roles.
    Alone,
    /// Several, each with keys of their own.
    Colleagues,
}

impl GuideAim {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Best, Self::Value, Self::Rubric, Self::Gate];

    /// In words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Best => "which model is best",
            Self::Value => "a calibrated value of each model",
            Self::Rubric => "a rubric under which the judge errs less",
            Self::Gate => "whether a candidate may replace what runs",
        }
    }
}

impl GuideData {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Scores, Self::Labels, Self::Texts];
}

impl JudgeCount {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::One, Self::Several];
}

impl Company {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Alone, Self::Colleagues];
}

/// One of these by its word.
fn by_word<T: Serialize + Copy>(all: &[T], text: &str) -> Result<T, String> {
    let found = all.iter().find(|of| word(*of) == text.trim());
    found.copied().ok_or_else(|| {
        let words: Vec<_> = all.iter().map(word).collect();
        format!("expected {}, found {text:?}", words.join(", "))
    })
}

impl FromStr for GuideAim {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        by_word(&Self::ALL, text)
    }
}

impl FromStr for GuideData {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        by_word(&Self::ALL, text)
    }
}

impl FromStr for JudgeCount {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        by_word(&Self::ALL, text)
    }
}

impl FromStr for Company {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        by_word(&Self::ALL, text)
    }
}

/// A file as it is taken in: its verb, with what the file itself says of its columns and its scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideFile {
    /// What is typed before, where another program makes the rows.
    pub before: String,
    /// The verb of `import`.
    pub verb: String,
    /// The file, as a word of a shell.
    pub file: String,
    /// `--map` where its columns have other names, and options of its verb.
    pub columns: String,
    /// `--scale` where its values need one.
    pub scale: String,
    /// Where the prompt of a line stands; none where that cannot be told.
    pub prompt: Option<PromptPlace>,
}

/// Where the prompt of a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPlace {
    /// In this column, counted from 1, of values between commas of which none is in quotes.
    Column(usize),
    /// In this column, counted from 1, of values between commas of which some are in quotes.
    Quoted(usize),
    /// In the member of this name.
    Member(String),
}

impl GuideFile {
    /// A file that nobody has looked into.
    pub fn unread(verb: &str, file: &str) -> Self {
        Self {
            before: String::new(),
            verb: verb.to_owned(),
            file: shell::word(file),
            columns: String::new(),
            scale: String::new(),
            prompt: None,
        }
    }

    /// Whether labels may stand beside its scores.
    pub fn may_hold_labels(&self) -> bool {
        matches!(self.verb.as_str(), "cje" | "csv" | "logged")
    }

    /// The command that takes it in, with more options.
    pub fn command(&self, more: &str) -> String {
        let Self {
            before,
            verb,
            file,
            columns,
            scale,
            prompt: _,
        } = self;
        format!("{before}clover import {verb} {file}{columns}{more}{scale}")
    }
}

/// Labels of a file, and how many rows the policies have that it labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledShare {
    /// Labels.
    pub labels: usize,
    /// Rows of the policies that have labels.
    pub rows: usize,
}

/// Names that stand in the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideNames {
    /// The experiment.
    pub experiment: String,
    /// Judges that scored in it already.
    pub judges: Vec<String>,
    /// Who holds the keys.
    pub holder: String,
    /// The judge's program, a line of a shell.
    pub judge: String,
    /// Files or folders of scores, one for each judge.
    pub scores: Vec<GuideFile>,
    /// A file of labels; none where they stand beside the scores.
    pub labels: Option<GuideFile>,
    /// Files of rows that were drawn at random over all policies and labelled; none where they are to be held out of the labels.
    pub probes: Option<GuideFile>,
    /// A folder of prompts and responses.
    pub texts: GuideFile,
    /// How many rows have a label, in a file of labels or beside the scores, where both could be read.
    pub share: Option<LabelledShare>,
    /// How many rows are labelled for the test, where both could be read.
    pub probed: Option<LabelledShare>,
    /// Options that split the rows, where their files tell whether they have times.
    pub apart: Option<String>,
    /// Files that steps write and that stand here already.
    pub written: BTreeSet<&'static str>,
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideCase {
    /// What they want to know.
    pub want: GuideAim,
    /// What they have.
    pub have: BTreeSet<GuideData>,
    /// How many judges score.
    pub judges: JudgeCount,
    /// Who works on it.
    pub company: Company,
    /// Names that stand in the commands.
    pub names: GuideNames,
}
