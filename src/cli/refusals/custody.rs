//! Refusals about private content, reads, erasure and the rulebook.

use crate::cli::error::CliError;
use crate::ground::shell;
use crate::session::custody::CustodyError;
use crate::session::custody::release::Class;
use crate::view::Exit;

impl From<CustodyError> for CliError {
    fn from(error: CustodyError) -> Self {
        let message = error.to_string();
        match error {
            CustodyError::Adopted(_) => Self::refused(message, "clover rulebook show"),
            CustodyError::Barred { .. } => Self::refused(message, "clover access list"),
            CustodyError::Canon(_) => {
                Self::integrity("damaged", message, "clover verify --recompute")
            }
            CustodyError::CardDiffers { seq, .. } => {
                Self::refused(message, format!("clover replay {seq}"))
            }
            CustodyError::DamagedRows { .. } => {
                Self::integrity("damaged", message, "clover verify")
            }
            CustodyError::Empty { class, .. } => Self::not_found(
                message,
                match class {
                    Class::Card | Class::FullCard => "clover iterate cards ID",
                    Class::Label => "clover import cje PATH --labels",
                    Class::Row => "clover import cje PATH",
                },
            ),
            CustodyError::Encryption(_) => {
                Self::new(Exit::Unexpected, "unexpected", message, "clover doctor")
            }
            CustodyError::KeyRemains(error) => error.into(),
            CustodyError::KeyStands { subject, basis, .. } => Self::refused(
                message,
                format!(
                    "clover erase {} --basis {} --yes",
                    shell::word(&subject),
                    shell::quoted(basis.as_str())
                ),
            ),
            CustodyError::NotErased { .. } => {
                Self::refused(message, "clover log --kind subject.erased")
            }
            CustodyError::NoBlob(_) | CustodyError::Unknown(_) => {
                Self::not_found(message, "clover blob list")
            }
            CustodyError::NoIteration(_) => Self::not_found(message, "clover iterate list"),
            CustodyError::NoKey(_) => Self::not_found(message, "clover log --kind subject.erased"),
            CustodyError::NotOfCards(class) => Self::usage(
                format!("--iteration is of cards, and {class} is of an experiment"),
                "clover access release --help",
            ),
            CustodyError::Opening(_) => Self::input(message, "clover blob get --help"),
            CustodyError::OtherExperiment { .. } => Self::refused(message, "clover iterate list"),
            CustodyError::Reference(_) => Self::input(message, "clover blob put --help"),
            CustodyError::Tampered(_) => Self::integrity("tampered", message, "clover verify"),
        }
    }
}
