//! How a use case ends without its outcome: one closed enum, a family's own enum inside it.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;

use clover_event::header::BodyError;
use clover_ground::ambient::AmbientError;
use clover_ground::seal::AgeError;
use clover_ledger::Breach;
use clover_ledger::LedgerError;
use clover_store::StoreError;
use clover_workflow::import::kept::Unread;
use clover_workflow::iterate::course::CourseError;
use clover_workflow::iterate::rows::IterationRowsError;

use crate::backup::BackupError;
use crate::confirm::ConfirmError;
use crate::custody::CustodyError;
use crate::deploy::DeployError;
use crate::estimates::EstimateError;
use crate::founding::FoundingError;
use crate::gate::GateError;
use crate::intake::error::IntakeError;
use crate::iterate::IterationError;
use crate::judge::error::JudgingError;
use crate::keys::KeyError;
use crate::label::LabelError;
use crate::outbox::OutboxError;
use crate::prereg::PreregError;
use crate::regimes::RegimeError;
use crate::restore::RestoreError;
use crate::sgd::SgdError;
use crate::shared::SharedError;
use crate::split::SplittingError;
use crate::waivers::WaiverError;
use crate::wf::RepairError;

/// Why a use case did not do what it was asked. What was appended before it stands.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Clock, entropy or a file failed.
    #[error(transparent)]
    Ambient(#[from] AmbientError),
    /// Nothing was restored from a backup.
    #[error(transparent)]
    Backup(Box<BackupError>),
    /// An event cannot be written as a body.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A rule says no, before anything was appended.
    #[error("{0}")]
    Breach(Box<Breach>),
    /// Sealed labels were not accepted or opened.
    #[error(transparent)]
    Confirm(Box<ConfirmError>),
    /// An iteration's rows or candidates cannot be computed with.
    #[error(transparent)]
    Course(#[from] CourseError),
    /// No ledger is made.
    #[error(transparent)]
    Founding(#[from] FoundingError),
    /// A step of a gate was not done.
    #[error(transparent)]
    Gate(Box<GateError>),
    /// Nothing was estimated.
    #[error(transparent)]
    Estimate(Box<EstimateError>),
    /// Rows were not taken in.
    #[error(transparent)]
    Intake(Box<IntakeError>),
    /// A judge's work stopped.
    #[error(transparent)]
    Judging(Box<JudgingError>),
    /// A step of an iteration was not done.
    #[error(transparent)]
    Iteration(Box<IterationError>),
    /// A label was not sealed, accepted or opened.
    #[error(transparent)]
    Label(Box<LabelError>),
    /// Private content, reads, erasure or the rulebook.
    #[error(transparent)]
    Custody(#[from] CustodyError),
    /// What runs.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// A step of a repair was not done.
    #[error(transparent)]
    Repair(Box<RepairError>),
    /// A step of a run that lowers the loss of a prompt was not done.
    #[error(transparent)]
    Sgd(Box<SgdError>),
    /// Keys and their files.
    #[error(transparent)]
    Keys(Box<KeyError>),
    /// The ledger failed or refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No identity at hand opens what is sealed to this recipient.
    #[error("no identity for {0} at hand")]
    NoIdentity(String),
    /// The judge is a program that was not given.
    #[error("judge {0} is a program: say how it is started")]
    NoJudge(String),
    /// No key at hand may sign.
    #[error("no key at hand for {0}")]
    NoKey(String),
    /// A file of signed events cannot be taken.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// What the caller's port says: no key, no consent, no judge.
    #[error(transparent)]
    Port(PortError),
    /// No regime was selected.
    #[error(transparent)]
    Regime(#[from] RegimeError),
    /// No ledger is made from an export.
    #[error(transparent)]
    Restore(Box<RestoreError>),
    /// No split is formed.
    #[error(transparent)]
    Split(#[from] SplittingError),
    /// Plans that bind.
    #[error(transparent)]
    Prereg(#[from] PreregError),
    /// Nothing could be sealed or opened.
    #[error(transparent)]
    Seal(#[from] AgeError),
    /// A shared folder is not published in.
    #[error(transparent)]
    Shared(#[from] SharedError),
    /// A ledger file or vault failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rows that the ledger names are not there, or not as recorded.
    #[error(transparent)]
    Unread(#[from] Unread),
    /// A signed event was not appended, and its file stays.
    #[error(transparent)]
    Unsent(Box<Self>),
    /// Nothing was waived.
    #[error(transparent)]
    Waiver(#[from] WaiverError),
}

impl SessionError {
    /// Whether the ledger would say the same of the same events later.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Body(_)
                | Self::Breach(_)
                | Self::Ledger(
                    LedgerError::Body { .. }
                        | LedgerError::ClockAhead { .. }
                        | LedgerError::OldFormat { .. }
                        | LedgerError::Refused { .. }
                )
        )
    }

    /// Whether a disk, a database or the system failed, so that nobody can tell what stands.
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Ambient(error) | Self::Ledger(LedgerError::Ambient(error)) => match error {
                AmbientError::Io { source, .. } => source.kind() != ErrorKind::StorageFull,
                AmbientError::Entropy(_) => true,
                _ => false,
            },
            Self::Store(error) | Self::Ledger(LedgerError::Store(error)) => matches!(
                error,
                StoreError::Io(_) | StoreError::Sqlite(_) | StoreError::ReadOnly
            ),
            Self::Seal(_) => true,
            _ => false,
        }
    }
}

/// A family's own enum is kept in a box, so that a result stays small.
macro_rules! families {
    ($($variant:ident: $error:ty,)+) => {$(
        impl From<$error> for SessionError {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        }
    )+};
}

families! {
    Backup: BackupError,
    Confirm: ConfirmError,
    Estimate: EstimateError,
    Gate: GateError,
    Intake: IntakeError,
    Iteration: IterationError,
    Judging: JudgingError,
    Keys: KeyError,
    Label: LabelError,
    Repair: RepairError,
    Restore: RestoreError,
    Sgd: SgdError,
}

impl From<IterationRowsError> for SessionError {
    fn from(error: IterationRowsError) -> Self {
        Self::Course(error.into())
    }
}

impl From<Breach> for SessionError {
    fn from(breach: Breach) -> Self {
        Self::Breach(Box::new(breach))
    }
}

impl From<PortError> for SessionError {
    fn from(error: PortError) -> Self {
        match error.0.downcast::<Self>() {
            Ok(known) => *known,
            Err(other) => Self::Port(PortError(other)),
        }
    }
}

/// What a port says when it cannot give what it is asked for: the caller's own error, handed back as it is.
pub struct PortError(Box<dyn Error + Send + Sync>);

impl PortError {
    /// Wraps the caller's error.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// The caller's error again.
    ///
    /// # Errors
    /// Itself, when it is another type's.
    pub fn into<E: Error + 'static>(self) -> Result<E, Self> {
        self.0.downcast().map(|error| *error).map_err(Self)
    }
}

impl fmt::Debug for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
