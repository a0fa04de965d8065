//! Files of other tools: bytes to rows plus warnings, without anything of theirs being run or written to a disk.
//!
//! [`Tool`] lists the tools, a line each. A reader of a tool finds its records and gives each as a [`ToolRecord`]; numbers,
//! names and scales are then those of any import, by [`row`](crate::import::row). What a record says beside its score goes
//! into [`RowRemark`]s, and what nobody reads is counted in a warning.

mod archive;
mod chosen;
mod evals;
mod gather;
mod inspect;
mod json;
mod langfuse;
mod otel;
mod promptfoo;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::payload::intake::ImportFormat;
use clover_num::Count;

use crate::import::How;
use crate::import::ImportError;
use crate::import::ImportRows;
use crate::import::form::FileForm;

pub use archive::MEMBER_MAX;
pub use archive::MEMBERS_MAX;
pub use json::DEPTH_MAX;
pub use otel::NAMES as OTEL_NAMES;

/// A tool whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Inspect: logs as archives and as JSON.
    Inspect,
    /// promptfoo: results as JSON, in three shapes.
    Promptfoo,
    /// Langfuse: scores as pages of its API, JSON, JSON Lines and CSV.
    Langfuse,
    /// OpenAI evals: records as JSON Lines.
    OpenaiEvals,
    /// OpenTelemetry: log files as OTLP/JSON.
    Otel,
}

impl Tool {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::Inspect,
        Self::Promptfoo,
        Self::Langfuse,
        Self::OpenaiEvals,
        Self::Otel,
    ];

    /// The verb of `clover import` that reads it.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::Promptfoo => "promptfoo",
            Self::Langfuse => "langfuse",
            Self::OpenaiEvals => "openai-evals",
            Self::Otel => "otel",
        }
    }

    /// What `data.ingested` calls its files.
    pub fn format(self) -> ImportFormat {
        match self {
            Self::Inspect => ImportFormat::Inspect,
            Self::Promptfoo => ImportFormat::Promptfoo,
            Self::Langfuse => ImportFormat::Langfuse,
            Self::OpenaiEvals => ImportFormat::OpenaiEvals,
            Self::Otel => ImportFormat::Otel,
        }
    }

    /// The tool whose file this is; `None` for a file of no tool.
    pub fn of(form: FileForm) -> Option<Self> {
        match form {
            FileForm::Inspect | FileForm::InspectArchive => Some(Self::Inspect),
            FileForm::Promptfoo => Some(Self::Promptfoo),
            FileForm::Langfuse | FileForm::LangfuseTable => Some(Self::Langfuse),
            FileForm::OpenaiEvals => Some(Self::OpenaiEvals),
            FileForm::Otel => Some(Self::Otel),
            _ => None,
        }
    }
}

/// Which records of Langfuse are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenAs {
    /// Scores of a judge.
    Judge,
    /// Labels of people.
    Label,
}

/// What of a file is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolTerms<'a> {
    /// The score, where records have several; by default the only one.
    pub score: Option<&'a str>,
    /// The member of a score that is a map or a list.
    pub member: Option<&'a str>,
    /// As what records of Langfuse are taken; by default as their sources say.
    pub taken_as: Option<TakenAs>,
    /// Whether texts are left out, so that little of an archive is read.
    pub scores_only: bool,
}

/// What a person made of a score after it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowEdit {
    /// Who.
    pub author: String,
    /// Why.
    pub reason: Option<String>,
    /// When, as it is written.
    pub at: Option<String>,
    /// The other value, as it is written.
    pub value: String,
}

/// What a file says of a row beside its score, or instead of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRemark {
    /// Whose output it was.
    pub policy: PolicyId,
    /// What was judged.
    pub item: ItemId,
    /// Which draw.
    pub draw: Count,
    /// Whether there is no score.
    pub declined: bool,
    /// Why.
    pub reason: Option<String>,
    /// Edits of the score, in order.
    pub edits: Vec<RowEdit>,
}

/// Reads one file of a tool.
///
/// # Errors
/// [`ImportError`] with what was expected and found, and where.
pub fn rows(
    tool: Tool,
    (file, bytes): (&str, &[u8]),
    terms: ToolTerms<'_>,
    how: How<'_>,
) -> Result<ImportRows, ImportError> {
    match tool {
        Tool::Inspect => inspect::rows((file, bytes), terms, how),
        Tool::Promptfoo => promptfoo::rows((file, bytes), terms, how),
        Tool::Langfuse => langfuse::rows((file, bytes), terms, how),
        Tool::OpenaiEvals => evals::rows((file, bytes), terms, how),
        Tool::Otel => otel::rows((file, bytes), terms, how),
    }
}
