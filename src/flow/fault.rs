//! What is wrong with a document, and where.

use std::fmt;

/// Where something stands in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// Something else was to stand there.
    #[error("expected {wanted}, found {found}")]
    Expected {
        /// What was to stand there.
        wanted: &'static str,
        /// What stands there.
        found: String,
    },
    /// Too much of something.
    #[error("expected at most {most} {what}, found {found}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// Most of it.
        most: usize,
        /// How much there is.
        found: usize,
    },
    /// A member that the language does not have.
    #[error("expected one of {}", .0.join(", "))]
    UnknownMember(&'static [&'static str]),
    /// A member that must be there is not.
    #[error("the member {0:?} is missing")]
    MissingMember(&'static str),
    /// The same name twice.
    #[error("the name {0:?} stands twice")]
    Twice(String),
    /// A path of which nothing is written before.
    #[error("no input and no earlier step writes {0:?}")]
    NotWritten(String),
    /// A template names what its step does not read.
    #[error("the template names {0:?}, which is not below one of reads")]
    NotRead(String),
    /// No earlier step has this id, or none that may be meant.
    #[error("no earlier llm step has the id {0:?}")]
    NoStep(String),
    /// No earlier check sets this flag.
    #[error("no earlier check sets the flag {0:?}")]
    NoFlag(String),
    /// A pattern that is no regular expression, or too large a one.
    #[error("the pattern is refused: {0}")]
    Pattern(String),
    /// An edit that names what is not there.
    #[error("nothing stands at {0:?}")]
    NothingThere(String),
}

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where; the start of the document where nothing nearer is known.
    pub at: TextPosition,
    /// The path from the root, as in `steps[2].prompt.user`; empty for the root.
    pub path: String,
    /// Why.
    pub kind: FaultKind,
}

impl FaultKind {
    /// What was wanted, without a word of what stands in the text.
    fn unquoted(&self) -> String {
        match self {
            Self::Expected { wanted, .. } => format!("expected {wanted}"),
            Self::TooMany { what, most, .. } => format!("expected at most {most} {what}"),
            Self::UnknownMember(_) | Self::MissingMember(_) => self.to_string(),
            Self::Twice(_) => "a name stands twice".to_owned(),
            Self::NotWritten(_) | Self::NotRead(_) | Self::NoStep(_) | Self::NoFlag(_) => {
                "a name that stands for nothing".to_owned()
            }
            Self::Pattern(_) => "the pattern is refused".to_owned(),
            Self::NothingThere(_) => "nothing stands there".to_owned(),
        }
    }
}

impl Fault {
    /// Its line and column and what was wanted there, for texts of others: no letter of the text, no name, no number of it.
    pub fn unquoted(&self) -> String {
        let TextPosition { line, column } = self.at;
        format!("{line}:{column}: {}", self.kind.unquoted())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextPosition { line, column } = self.at;
        let gap = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}{gap}{}: {}", self.path, self.kind)
    }
}

impl std::error::Error for Fault {}
