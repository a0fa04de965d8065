//! One label under seal: committed to and encrypted to a custodian, accepted, and opened after its peek was charged.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::Base64Bytes;
use clover_event::id::Base64Text;
use clover_event::id::ClassId;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RowId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::label::LabelSealed;
use clover_event::payload::label::SealAccepted;
use clover_event::payload::record::DataRead;
use clover_event::payload::record::ReadOutcome;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::AgeError;
use clover_ground::seal::LabelOpening;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signer;
use clover_ground::time::Timestamp;
use clover_ledger::AppendedEvent;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_ledger::rulebooks::Question;
use clover_num::Micro;
use clover_projection::splits::members_root;
use zeroize::Zeroizing;

use crate::append;
use crate::error::SessionError;
use crate::intake::signers;
use crate::ports::KeyNeed;
use crate::ports::Keys;
use crate::ports::Ports;

/// Why a label was not sealed, accepted or opened.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// The charge is another event.
    #[error("the charge is a {0}, not a budget.charged")]
    ChargeKind(Kind),
    /// What is in the envelope is not what was committed to.
    #[error("the envelope does not open to its commitment: report it, never seal it again")]
    Commitment,
    /// The envelope cannot be made, or does not open.
    #[error(transparent)]
    Envelope(AgeError),
    /// The charge is not in the ledger.
    #[error(
        "the charge is no event of this ledger: a label is opened only after its peek was charged"
    )]
    NoCharge,
    /// No such label is sealed.
    #[error("no sealed label of row {row} in design {design} of {experiment}")]
    NotSealed {
        /// The experiment.
        experiment: ExperimentId,
        /// The design.
        design: DesignId,
        /// The row.
        row: RowId,
    },
    /// What was committed to is no label.
    #[error("the label is out of range")]
    Range,
    /// The label was sealed after the charge.
    #[error(
        "row {row} was sealed at seq {sealed}, after the charge at seq {charged}: a charge opens what was sealed when it was charged"
    )]
    SealedLater {
        /// The row.
        row: RowId,
        /// The entry of the sealed label.
        sealed: u64,
        /// The entry of the charge.
        charged: u64,
    },
}

/// Which label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelKey {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The label design.
    pub design: DesignId,
    /// The row of the design.
    pub row: RowId,
}

/// An event about a label that is not appended yet, with the key that signs it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The event.
    pub command: Command,
    /// The key.
    pub signer: Arc<Signer>,
}

/// The seal of a label to a custodian, to be appended.
///
/// # Errors
/// No key, [`IntakeError::NoRecipient`](crate::intake::IntakeError) or [`LabelError::Envelope`].
pub fn seal_label(
    keys: &mut dyn Keys,
    ledger: &Ledger,
    place: LabelKey,
    value: Micro,
    (custodian, reveal_by): (&KeyId, Timestamp),
) -> Result<Statement, SessionError> {
    let signer = keys.signer(ledger.state(), KeyNeed::runner(Kind::LabelSealed))?;
    let recipient = signers::recipient_of(ledger.state(), custodian)?;
    let ambient = ledger.ambient();
    let opening = ambient.with_entropy(|entropy| LabelOpening::draw(value.value(), entropy))?;
    let envelope = ambient
        .with_entropy(|entropy| {
            seal::encrypt(opening.to_bytes().as_slice(), &[recipient.0], entropy)
        })
        .map_err(LabelError::Envelope)?;
    let origin = &ledger.state().keyring.origin;
    let payload = LabelSealed {
        commitment: opening.commitment(origin, place.design.as_str(), place.row.as_str()),
        design: place.design,
        envelope: Base64Text(envelope),
        recipient,
        reveal_by,
        row: place.row,
    };
    let command = Command::new(payload, Some(place.experiment));
    Ok(Statement { command, signer })
}

/// The recorded seal of a row.
/// A sealed label, with its entry.
fn sealed(ledger: &Ledger, place: &LabelKey) -> Result<(u64, LabelSealed), SessionError> {
    let fields = [place.design.as_str(), place.row.as_str()];
    let key = registry::natural_key_of(Kind::LabelSealed, &place.experiment, &fields);
    let read = match ledger.giver(&key)? {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    if let Some((seq, Payload::LabelSealed(sealed))) =
        read.map(|read| (read.stored.seq, read.event.payload))
    {
        return Ok((seq, *sealed));
    }
    let error = LabelError::NotSealed {
        experiment: place.experiment.clone(),
        design: place.design.clone(),
        row: place.row.clone(),
    };
    Err(error.into())
}

/// The custodian's statement that an envelope opens under the identity at hand, to be appended.
///
/// # Errors
/// No key or identity, [`LabelError::NotSealed`] or [`LabelError::Envelope`].
pub fn accept(
    keys: &mut dyn Keys,
    ledger: &Ledger,
    place: LabelKey,
) -> Result<Statement, SessionError> {
    let signer = keys.signer(ledger.state(), KeyNeed::runner(Kind::SealAccepted))?;
    let (_, sealed) = sealed(ledger, &place)?;
    let identity = keys.identity(ledger.state(), &sealed.recipient.0)?;
    seal::check_header(&sealed.envelope.0, &[identity]).map_err(LabelError::Envelope)?;
    let payload = SealAccepted {
        design: place.design,
        envelope_sha256: Digest::sha256(&sealed.envelope.0),
        row: place.row,
    };
    let command = Command::new(payload, Some(place.experiment));
    Ok(Statement { command, signer })
}

/// A sealed label whose peek was charged, not opened yet.
#[derive(Debug)]
pub struct PaidPeek {
    place: LabelKey,
    charge: EventId,
    sealed: LabelSealed,
    signer: Arc<Signer>,
}

/// A label that was opened.
#[derive(Clone, Debug)]
pub struct Reveal {
    /// The label.
    pub value: Micro,
    /// What was appended: the label and the read of it.
    pub commands: Vec<Command>,
    /// Where they stand.
    pub appended: Vec<AppendedEvent>,
}

/// A label that may be opened: it is sealed, and its peek was charged.
///
/// # Errors
/// No key, or [`LabelError`].
pub fn peek(
    keys: &mut dyn Keys,
    ledger: &Ledger,
    place: LabelKey,
    charge: EventId,
) -> Result<PaidPeek, SessionError> {
    let signer = keys.signer(ledger.state(), KeyNeed::runner(Kind::LabelRevealed))?;
    let (seq, sealed) = sealed(ledger, &place)?;
    let charged = check_charge(ledger, charge)?;
    if seq >= charged && ledger.state().asks(Question::SealedWhenCharged) {
        let row = place.row.clone();
        let sealed = seq;
        return Err(LabelError::SealedLater {
            row,
            sealed,
            charged,
        }
        .into());
    }
    Ok(PaidPeek {
        place,
        charge,
        sealed,
        signer,
    })
}

/// The entry of a charge. One that is not a recorded `budget.charged` under the newest checkpoint is refused.
fn check_charge(ledger: &Ledger, charge: EventId) -> Result<u64, SessionError> {
    let seq = ledger.find(charge)?.filter(|seq| *seq < ledger.size());
    let read = match seq {
        Some(seq) => ledger.entry(seq)?,
        None => None,
    };
    match read.map(|read| (read.stored.seq, read.event.kind())) {
        Some((seq, Kind::BudgetCharged)) => Ok(seq),
        Some((_, kind)) => Err(LabelError::ChargeKind(kind).into()),
        None => Err(LabelError::NoCharge.into()),
    }
}

impl PaidPeek {
    /// Opens the label, and appends it with the read of it.
    ///
    /// # Errors
    /// No identity, or [`LabelError`]; nothing was appended then.
    ///
    /// # Panics
    /// Never: the names in it are literals.
    pub fn reveal(
        self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
    ) -> Result<Reveal, SessionError> {
        let identity = ports.identity(ledger.state(), &self.sealed.recipient.0)?;
        let plain = seal::decrypt(&self.sealed.envelope.0, &[identity]);
        let plain = Zeroizing::new(plain.map_err(LabelError::Envelope)?);
        let origin = &ledger.state().keyring.origin;
        let (design, row) = (self.place.design.as_str(), self.place.row.as_str());
        let opening = LabelOpening::from_bytes(&plain)
            .filter(|of| of.commitment(origin, design, row) == self.sealed.commitment)
            .ok_or(LabelError::Commitment)?;
        let value = Micro::new(opening.value_micro).ok_or(LabelError::Range)?;
        // Who opens a label reads it: that is on record as any other read.
        let read = DataRead {
            class: ClassId::new("label").expect("BUG: a literal"),
            outcome: ReadOutcome::Allowed,
            purpose: Text::new("unsealed").expect("BUG: a literal"),
            reader: self.signer.id(),
            role: Some(Role::Custodian),
            rows_root: Some(members_root([row])),
        };
        let label = LabelRevealed {
            charge: self.charge,
            design: self.place.design,
            row: self.place.row,
            salt: Base64Bytes(opening.salt),
            value_micro: value,
        };
        let experiment = Some(self.place.experiment);
        let commands = vec![
            Command::new(label, experiment.clone()),
            Command::new(read, experiment),
        ];
        let appended = append::append(ports, ledger, &commands, &self.signer)?;
        Ok(Reveal {
            value,
            commands,
            appended,
        })
    }
}
