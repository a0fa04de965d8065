//! What a run ends with: one enum of exit codes, and one error that has a word, a message and a way on.
//!
//! Lower floors say what is wrong; only here is decided how it is worded, which code it exits with, and
//! which command a person would type next.

use serde_json::Value;
use serde_json::json;

use crate::cli::iterate::bench;
use crate::cli::refusals::reader_words::plain;
use crate::export::ExportError;
use crate::export::bundle::BundleError;
use crate::export::source::SourceError;
use crate::ground::ambient::AmbientError;
use crate::ground::shell;
use crate::ledger::Breach;
use crate::ledger::LedgerError;
use crate::ledger::RuleName;
use crate::ledger::error::Divergence;
use crate::ledger::verify::VerifyError;
use crate::session::SessionError;
use crate::session::error::PortError;
use crate::session::outbox::OutboxError;
use crate::store::StoreError;
use crate::view::Exit;
use crate::workflow::import::kept::Unread;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(super) struct CliError {
    /// The code it exits with.
    pub exit: Exit,
    /// One word for machines.
    pub word: &'static str,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// The command to type next.
    pub next: String,
    /// Particulars for `--json`.
    pub data: Value,
    /// Standard output was closed by its reader: end quietly.
    pub closed: bool,
}

impl CliError {
    pub(super) fn new(
        exit: Exit,
        word: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            word,
            message: plain(&message.into()),
            next: next.into(),
            data: Value::Null,
            closed: false,
        }
    }

    pub(super) fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message, next)
    }

    pub(super) fn input(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Input, "input", message, next)
    }

    pub(super) fn not_found(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, "not_found", message, next)
    }

    pub(super) fn refused(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Refused, "refused", message, next)
    }

    pub(super) fn integrity(
        word: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::new(Exit::Integrity, word, message, next)
    }

    /// The same with another way on.
    pub(super) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// The same with a prefix that says where.
    pub(super) fn at(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// A failure to write an answer.
    pub(super) fn output(error: &std::io::Error) -> Self {
        let mut failed = Self::new(
            Exit::Unexpected,
            "unexpected",
            format!("cannot write the answer: {error}"),
            "clover doctor",
        );
        failed.closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        failed
    }
}

impl From<AmbientError> for CliError {
    fn from(error: AmbientError) -> Self {
        let message = error.to_string();
        match error {
            AmbientError::NotFound(path) => {
                Self::not_found(message, format!("ls -l {}", parent(&path)))
            }
            AmbientError::Exists(path) => {
                Self::refused(message, format!("ls -l {}", shell::word(&path.display())))
            }
            AmbientError::TooOpen { path, .. } => Self::refused(
                message,
                format!("chmod 600 {}", shell::word(&path.display())),
            ),
            AmbientError::NotAFile { path, .. } => {
                Self::input(message, format!("ls -ld {}", shell::word(&path.display())))
            }
            AmbientError::Locked { .. } => {
                Self::new(Exit::TryLater, "locked", message, "the same command again")
            }
            AmbientError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Self::new(Exit::TryLater, "disk_full", message, "df -h")
            }
            AmbientError::Io { path, source, .. } => {
                let word = match source.kind() {
                    std::io::ErrorKind::PermissionDenied
                    | std::io::ErrorKind::ReadOnlyFilesystem => "read_only",
                    _ => "unexpected",
                };
                let next = format!("ls -l {}", parent(&path));
                Self::new(Exit::Unexpected, word, message, next)
            }
            AmbientError::Entropy(_) => {
                Self::new(Exit::Unexpected, "unexpected", message, "clover doctor")
            }
        }
    }
}

fn parent(path: &std::path::Path) -> String {
    match path.parent() {
        Some(parent) if parent != std::path::Path::new("") => shell::word(&parent.display()),
        _ => ".".to_owned(),
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let (exit, word, next) = match &error {
            StoreError::Busy | StoreError::HeadMoved { .. } => (
                Exit::TryLater,
                "locked",
                "the same command again, or with --busy-timeout 600",
            ),
            StoreError::Corrupt(_) | StoreError::Damaged(_) => {
                (Exit::Integrity, "damaged", "clover verify")
            }
            StoreError::Exists(_) => (Exit::Refused, "refused", "clover status"),
            StoreError::Full => (Exit::TryLater, "disk_full", "df -h"),
            StoreError::Io(_) | StoreError::Sqlite(_) => {
                (Exit::Unexpected, "unexpected", "clover doctor")
            }
            StoreError::Journal(path) => {
                let next = format!("mv {0} {0}.aside", shell::word(&path.display()));
                return Self::integrity("stray_journal", message, next);
            }
            StoreError::NotALedger { .. } => {
                (Exit::Input, "not_a_ledger", "clover status --ledger DIR")
            }
            StoreError::NotFound(_) => (Exit::NotFound, "not_found", "clover init"),
            StoreError::ReadOnly => (Exit::Unexpected, "read_only", "clover doctor"),
            StoreError::Version { .. } => (Exit::Input, "version", "clover --version"),
        };
        Self::new(exit, word, message, next)
    }
}

impl From<Divergence> for CliError {
    fn from(divergence: Divergence) -> Self {
        let (word, message) = match &divergence {
            Divergence::RolledBack { pinned, found } => (
                "rolled_back",
                format!(
                    "this log has {found} entries where {pinned} were seen before: an older copy was put back, or entries were cut off"
                ),
            ),
            Divergence::Forked {
                size,
                pinned,
                found,
            } => (
                "forked",
                format!(
                    "at {size} entries the pinned root is {pinned}, this log has {found}: two histories under one name"
                ),
            ),
            Divergence::Replaced { known, found } => {
                let message = format!(
                    "the ledger at this path was {known}, and this file is {found}: another ledger was put in its place"
                );
                return Self::integrity("replaced", message, "clover checkpoint pin --yes");
            }
            Divergence::ForeignKey { size } => (
                "forged",
                format!(
                    "the pinned checkpoint of {size} entries is not signed by a log key of this ledger: another ledger under the same name"
                ),
            ),
        };
        Self::integrity(word, message, "clover verify")
    }
}

impl From<Unread> for CliError {
    fn from(error: Unread) -> Self {
        let message = error.to_string();
        match error {
            Unread::Absent { .. } => Self::not_found(message, "clover doctor"),
            Unread::Damaged { .. } => Self::integrity("damaged", message, "clover verify"),
        }
    }
}

impl From<LedgerError> for CliError {
    fn from(error: LedgerError) -> Self {
        let message = error.to_string();
        match error {
            LedgerError::Ambient(error) => error.into(),
            LedgerError::Body { source, .. } => {
                Self::input(source.to_string(), "clover blob put FILE")
            }
            LedgerError::ClockAhead { .. } => Self::new(
                Exit::Refused,
                "clock_ahead",
                message,
                "date -u; when the clock is right and the ledger rested: the same command with --clock-ahead",
            ),
            LedgerError::ClockBehind { .. } => {
                Self::new(Exit::TryLater, "clock_behind", message, "date -u")
            }
            LedgerError::Diverged(divergence) => divergence.into(),
            LedgerError::Integrity { .. } => Self::integrity("damaged", message, "clover verify"),
            LedgerError::LogKey(_) => Self::integrity("log_key", message, "clover doctor"),
            LedgerError::OldFormat { .. } => {
                Self::new(Exit::Refused, "old_format", message, "clover init DIR")
            }
            LedgerError::Refused {
                breach, in_the_way, ..
            } => refusal(&breach, in_the_way),
            LedgerError::Store(error) => error.into(),
        }
    }
}

/// The command that a rule itself names, as in `a recalibration (clover deploy recalibrate)`.
fn named(expected: &str) -> Option<&str> {
    let (_, rest) = expected.split_once("(clover ")?;
    let (verb, _) = rest.split_once(')')?;
    let start = expected.len() - rest.len() - "clover ".len();
    expected.get(start..start + "clover ".len() + verb.len())
}

/// A rule's refusal with the command that shows what stands in the way.
pub(super) fn refusal(breach: &Breach, in_the_way: Option<u64>) -> CliError {
    let next = match (in_the_way, named(&breach.expected)) {
        (Some(seq), _) => format!("clover show {seq}"),
        (None, Some(verb)) => verb.to_owned(),
        (None, None) => breach.rule.next().to_owned(),
    };
    let exit = match breach.rule {
        RuleName::Signature => Exit::Integrity,
        RuleName::BodyFormat | RuleName::Kind | RuleName::Keyid | RuleName::Schema => Exit::Input,
        _ => Exit::Refused,
    };
    let word = match exit {
        Exit::Integrity => "tampered",
        Exit::Input => "input",
        _ => "refused",
    };
    let mut error = CliError::new(exit, word, breach.to_string(), next);
    error.data = json!({
        "rule": breach.rule,
        "expected": breach.expected,
        "found": breach.found,
        "in_the_way": in_the_way,
    });
    error
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        match error {
            SessionError::Ambient(error) => error.into(),
            SessionError::Backup(error) => (*error).into(),
            SessionError::Body(_) => Self::input(message, "clover blob put FILE"),
            SessionError::Breach(breach) => refusal(&breach, None),
            SessionError::Confirm(error) => (*error).into(),
            SessionError::Course(error) => bench::failed(error),
            SessionError::Custody(error) => error.into(),
            SessionError::Deploy(error) => error.into(),
            SessionError::Estimate(error) => (*error).into(),
            SessionError::Founding(error) => error.into(),
            SessionError::Gate(error) => (*error).into(),
            SessionError::Repair(error) => (*error).into(),
            SessionError::Sgd(error) => (*error).into(),
            SessionError::Intake(error) => (*error).into(),
            SessionError::Iteration(error) => (*error).into(),
            SessionError::Judging(error) => (*error).into(),
            SessionError::Keys(error) => (*error).into(),
            SessionError::Label(error) => (*error).into(),
            SessionError::Ledger(error) => error.into(),
            SessionError::NoIdentity(_) => {
                Self::not_found(message, "the same command with --identity FILE")
            }
            SessionError::NoJudge(_) => Self::usage(message, "the same command with -- COMMAND"),
            SessionError::NoKey(_) => Self::not_found(message, "clover key list"),
            SessionError::Outbox(OutboxError::Given { .. }) => {
                Self::refused(message, "clover sign --help")
            }
            SessionError::Outbox(_) => Self::input(message, "clover submit --help"),
            SessionError::Port(error) => error.into::<Self>().unwrap_or_else(|error| {
                Self::new(
                    Exit::Unexpected,
                    "unexpected",
                    error.to_string(),
                    "clover doctor",
                )
            }),
            SessionError::Prereg(error) => error.into(),
            SessionError::Restore(error) => (*error).into(),
            SessionError::Seal(_) => {
                Self::new(Exit::Unexpected, "unexpected", message, "clover doctor")
            }
            SessionError::Shared(error) => error.into(),
            SessionError::Split(error) => error.into(),
            SessionError::Store(error) => error.into(),
            SessionError::Unread(error) => error.into(),
            SessionError::Unsent(error) => (*error).into(),
            SessionError::Regime(error) => error.into(),
            SessionError::Waiver(error) => error.into(),
        }
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<CliError> for PortError {
    fn from(error: CliError) -> Self {
        Self::new(error)
    }
}

impl From<VerifyError> for CliError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Ambient(error) => error.into(),
            VerifyError::Read(message) => Self::input(message, "clover verify --help"),
            VerifyError::Store(error) => error.into(),
        }
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Ambient(error) => error.into(),
            ExportError::Ledger(error) => error.into(),
            ExportError::Output(error) => Self::output(&error),
            ExportError::Archive(error) => Self::output(&std::io::Error::other(error)),
            ExportError::Stream(_) | ExportError::Occupied(_) => {
                Self::usage(error.to_string(), "clover export --help")
            }
        }
    }
}

impl From<BundleError> for CliError {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Ambient(error) => error.into(),
            BundleError::Archive { ref path, .. } | BundleError::Form { ref path, .. } => {
                let again = "If it was cut or changed on its way, its maker can send it again, with its SHA-256";
                let next = format!("sha256sum {}", shell::word(&path.display()));
                Self::input(format!("{error}. {again}"), next)
            }
            other @ BundleError::File { .. } => {
                Self::input(other.to_string(), "clover export bundle -o FILE")
            }
        }
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        let message = error.to_string();
        match error {
            SourceError::Ambient(error) => error.into(),
            SourceError::Line { .. } | SourceError::Read { .. } => {
                Self::input(message, "clover import ledger --help")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ascending() {
        assert!(
            Exit::ALL
                .windows(2)
                .all(|pair| pair[0].code() < pair[1].code())
        );
    }
}
