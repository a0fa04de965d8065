//! Exit code, word and next command of a label that was not sealed, accepted or opened.

use crate::cli::error::CliError;
use crate::session::label::LabelError;

const CHARGE: &str =
    "clover record budget.charged --data '{\"account\":\"ACCOUNT\",\"amount\":1,\"for\":\"WHY\"}'";
const SEALED: &str = "clover log --kind label.sealed";

impl From<LabelError> for CliError {
    fn from(error: LabelError) -> Self {
        let message = error.to_string();
        match error {
            LabelError::ChargeKind(kind) => Self::refused(
                format!("--charge is a {kind}, not a budget.charged"),
                CHARGE,
            ),
            LabelError::Commitment | LabelError::Envelope(_) => {
                Self::integrity("seal_broken", message, SEALED)
            }
            LabelError::NoCharge => Self::refused(
                "--charge is no event of this ledger: a label is opened only after its peek was charged",
                CHARGE,
            ),
            LabelError::SealedLater { .. } => Self::refused(message, CHARGE),
            LabelError::NotSealed { .. } => Self::not_found(message, SEALED),
            LabelError::Range => Self::integrity("seal_broken", message, "clover verify"),
        }
    }
}
