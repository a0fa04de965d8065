//! Opening sealed labels: one charge, one reader on record, and the labels at once or in parts.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::AccountId;
use clover_event::id::Base64Bytes;
use clover_event::id::ClassId;
use clover_event::id::DesignId;
use clover_event::id::EventId;
use clover_event::id::ExperimentId;
use clover_event::id::RowId;
use clover_event::id::Text;
use clover_event::payload::Role;
use clover_event::payload::budget::BudgetCharged;
use clover_event::payload::label::LabelRevealed;
use clover_event::payload::record::DataRead;
use clover_event::payload::record::ReadOutcome;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::Identity;
use clover_ground::seal::LabelOpening;
use clover_ground::sign::Signer;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::assumptions::Assumptions;
use clover_projection::budgets::Account;
use clover_projection::budgets::Budgets;
use clover_projection::budgets::Purpose;
use clover_projection::decisions::block::Blocks;
use clover_projection::decisions::sequence::Sequences;
use clover_projection::designs::Designs;
use clover_projection::splits::members_root;

use crate::append;
use crate::confirm::ConfirmError;
use crate::confirm::SealedRow;
use crate::confirm::identity;
use crate::confirm::period;
use crate::confirm::rows;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Notice;
use crate::ports::Ports;
use crate::ports::Question;
use crate::ports::Seat;

/// A peek at the sealed labels of a design.
#[derive(Clone, Debug)]
pub struct Peek {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The design whose labels are opened.
    pub design: DesignId,
    /// The account that pays; its name is looked up before it is parsed.
    pub account: String,
    /// What for.
    pub purpose: String,
    /// Whose keys open and pay.
    pub seat: Seat,
}

/// What is said between the charge and the first label: by the custodian, of the charge. Without it the labels themselves
/// come next, so that they can be judged before a peek is charged.
pub type ChargeNotice<'b> =
    Option<&'b mut dyn FnMut(&mut Ledger, EventId, &Signer) -> Result<(), SessionError>>;

/// Labels that were revealed.
#[derive(Clone, Debug)]
pub struct RevealedLabels {
    /// Labels that were open before.
    pub already: usize,
    /// The charge that paid for them; `None` where none was left to open.
    pub charge: Option<EventId>,
    /// Rows with their labels, in the order of their entries.
    pub labels: Vec<(RowId, Micro)>,
}

/// Charges a peek and reveals what waits in a design.
///
/// # Errors
/// [`ConfirmError`]; nothing is paid for what could not be opened.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    peek: &Peek,
    between: ChargeNotice<'_>,
) -> Result<RevealedLabels, SessionError> {
    match begin(ports, ledger, peek, between)? {
        Begun::AllOpen(already) => Ok(RevealedLabels {
            already,
            charge: None,
            labels: Vec::new(),
        }),
        Begun::Paid(opening) => Ok(RevealedLabels {
            already: opening.already,
            charge: Some(opening.charge),
            labels: opening.reveal_in(ports, ledger, &|_| Some(0))?,
        }),
    }
}

/// A design whose sealed labels are paid for.
pub struct PaidDesign {
    already: usize,
    charge: EventId,
    known: Vec<Identity>,
    experiment: ExperimentId,
    design: DesignId,
    signer: Arc<Signer>,
    waiting: Vec<SealedRow>,
}

impl std::fmt::Debug for PaidDesign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opening({} of {})", self.design, self.experiment)
    }
}

/// How an opening began.
#[derive(Debug)]
pub enum Begun {
    /// No label waits: so many were open before.
    AllOpen(usize),
    /// A peek is charged.
    Paid(Box<PaidDesign>),
}

/// How many labels of a design are open, and those that wait, each of which the custodian accepted.
fn waiting(
    ledger: &Ledger,
    (experiment, design): (&ExperimentId, &DesignId),
) -> Result<(usize, Vec<SealedRow>), SessionError> {
    let mut rows = rows(ledger, experiment, design)?;
    let blocks = &ledger.state().fold::<Blocks>().by_experiment;
    let block = blocks
        .get(experiment)
        .filter(|of| of.designs.contains(design));
    if let Some(since) = block.and_then(|block| block.since) {
        // Labels of an older block judge nothing any more: they stay closed.
        rows.retain(|row| row.seq > since);
    }
    let (opened, waiting): (Vec<SealedRow>, Vec<SealedRow>) =
        rows.into_iter().partition(|row| row.is_revealed);
    if let Some(row) = waiting.iter().find(|row| !row.is_accepted) {
        let (design, row) = (design.clone(), row.label.row.clone());
        return Err(ConfirmError::NotAccepted { design, row }.into());
    }
    Ok((opened.len(), waiting))
}

/// Whether what waits in a design can be opened and paid for: what a dry run asks, which pays nothing.
///
/// # Errors
/// [`ConfirmError`], as [`open`] would say it of labels that are not accepted, and of the account.
pub fn foresee(ledger: &Ledger, peek: &Peek) -> Result<(), SessionError> {
    let (_, waiting) = waiting(ledger, (&peek.experiment, &peek.design))?;
    let newest = waiting.iter().map(|row| row.seq).max();
    if let Some(newest) = newest
        && paid(ledger, peek, newest)?.is_none()
    {
        account(ledger, &peek.account)?;
    }
    Ok(())
}

/// Checks that what waits in a design can be opened, and charges a peek for it.
///
/// # Errors
/// [`ConfirmError`]; nothing is paid for what could not be opened.
pub fn begin(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    peek: &Peek,
    between: ChargeNotice<'_>,
) -> Result<Begun, SessionError> {
    let Peek {
        design, experiment, ..
    } = peek;
    let (already, waiting) = waiting(ledger, (experiment, design))?;
    if waiting.is_empty() {
        return Ok(Begun::AllOpen(already));
    }
    let assumptions = ledger.state().fold::<Assumptions>();
    if let Some(since) = assumptions.contradicted(ledger.state(), experiment) {
        let experiment = experiment.clone();
        return Err(ConfirmError::Blocked { experiment, since }.into());
    }
    let need = KeyNeed::of(peek.seat, Kind::LabelRevealed);
    let signer = ports.signer(ledger.state(), need)?;
    let mut known = Vec::new();
    for row in &waiting {
        // Nothing is paid for what could not be opened.
        identity(ports, ledger, &row.label, &mut known)?;
    }
    if let (None, Some(row)) = (&between, waiting.first()) {
        may_be_revealed(ledger, peek, row, &signer)?;
    }
    let newest = waiting.iter().map(|row| row.seq).max().unwrap_or(0);
    let charge = match paid(ledger, peek, newest)? {
        Some(charge) => charge,
        None => charge(ports, ledger, peek, waiting.len())?,
    };
    // From here on the peek is on record, under a signed checkpoint.
    if let Some(between) = between {
        between(ledger, charge, &signer)?;
    }
    Ok(Begun::Paid(Box::new(PaidDesign {
        already,
        charge,
        known,
        experiment: experiment.clone(),
        design: design.clone(),
        signer,
        waiting,
    })))
}

/// Whether labels of a design may be shown now, all at once, by the rules that look at the state alone.
fn may_be_revealed(
    ledger: &Ledger,
    peek: &Peek,
    row: &SealedRow,
    signer: &Signer,
) -> Result<(), SessionError> {
    let Peek {
        design, experiment, ..
    } = peek;
    let sequences = ledger.state().fold::<Sequences>();
    if let Some(id) = sequences.shows_in_order(experiment, design) {
        let (design, iteration) = (design.clone(), id.clone());
        return Err(ConfirmError::InOrder { design, iteration }.into());
    }
    // Only what the file alone can tell, the charge and the opening, is not known yet; a value is one of the declared scale.
    let scale = ledger.state().fold::<Designs>().scale(experiment);
    let like = LabelRevealed {
        charge: EventId(Digest::sha256(b"")),
        design: design.clone(),
        row: row.label.row.clone(),
        salt: Base64Bytes([0; 32]),
        value_micro: scale.map_or(Micro::default(), |scale| scale.low_micro),
    };
    let like = Command::new(like, Some(experiment.clone()));
    append::permitted(ledger, &like, signer)
}

/// What a charge says it is for, so that a run that was cut goes on under the peek it paid.
fn purpose(peek: &Peek) -> Result<Text, ConfirmError> {
    let text = format!(
        "unseal {} of {}: {}",
        peek.design, peek.experiment, peek.purpose
    );
    Text::new(text).ok_or(ConfirmError::PurposeTooLong)
}

/// Whether a charge is for sealed labels of an experiment, by the words that [`purpose`] gives it.
pub fn is_charge_of(purpose: &str, experiment: &ExperimentId) -> bool {
    let design = purpose.strip_prefix("unseal ");
    let design = design.and_then(|rest| rest.split_once(" of "));
    design.is_some_and(|(_, rest)| rest.starts_with(&format!("{experiment}: ")))
}

/// A charge for this very opening, made when everything that waits was sealed: a run that was cut goes on under it.
fn paid(ledger: &Ledger, peek: &Peek, newest: u64) -> Result<Option<EventId>, SessionError> {
    let wanted = purpose(peek)?;
    let mut found = None;
    ledger.entries::<SessionError>(0, ledger.size(), |read| {
        if let Payload::BudgetCharged(charged) = &read.event.payload
            && charged.purpose == wanted
            && charged.account.as_str() == peek.account
            && read.stored.seq > newest
        {
            found = Some(read.event.id);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The account, with a peek left in it.
fn account<'l>(
    ledger: &'l Ledger,
    name: &str,
) -> Result<(&'l AccountId, &'l Account), ConfirmError> {
    let now = append::now(ledger);
    let accounts = &ledger.state().fold::<Budgets>().accounts;
    let found = accounts.iter().find(|(id, _)| id.as_str() == name);
    let (id, account) = found.ok_or_else(|| ConfirmError::NoAccount(name.to_owned()))?;
    if account.purpose() != Purpose::Peeks {
        return Err(ConfirmError::NotPeeks {
            account: name.to_owned(),
            unit: account.unit.to_string(),
        });
    }
    if account.left(now) == 0 {
        return Err(ConfirmError::Overdraft {
            spent: account.spent(now),
            amount: account.amount,
            unit: account.unit.to_string(),
            period: period(account, now),
        });
    }
    Ok((id, account))
}

/// Asks, charges one peek, and ends in a checkpoint that covers it.
fn charge(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    of: &Peek,
    labels: usize,
) -> Result<EventId, SessionError> {
    let now = append::now(ledger);
    let (id, account) = account(ledger, &of.account)?;
    let (peek, amount) = (account.spent(now) + 1, account.amount);
    let (unit, spenders) = (account.unit.to_string(), account.spenders.clone());
    let period = period(account, now);
    let payload = BudgetCharged {
        account: id.clone(),
        amount: Count::new(1).expect("BUG: one is a count"),
        purpose: purpose(of)?,
    };
    let need = KeyNeed::charge(of.seat, Some(&spenders));
    let signer = ports.signer(ledger.state(), need)?;
    let live = &ledger.state().keyring;
    let signed_by = live.live().find(|(key, _)| **key == signer.id());
    let signed_by = signed_by.map(|(_, record)| record.holder.to_string());
    ports.ask(&Question::Peek {
        account: id.to_string(),
        signed_by,
        design: of.design.to_string(),
        labels,
        unit: unit.clone(),
        peek,
        amount,
        period: period.clone(),
        purpose: of.purpose.clone(),
    })?;
    let appended = ledger.append(&[Command::new(payload, None)], &signer)?;
    ports.notice(Notice::PeekCharged {
        unit,
        peek,
        amount,
        period,
        seq: appended[0].seq,
    });
    Ok(appended[0].id)
}

impl PaidDesign {
    /// Decrypts and reveals rows in one batch: those with a place, in order of their places.
    ///
    /// # Errors
    /// [`ConfirmError::Envelope`]; then none of them was revealed.
    pub fn reveal_in(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        place: &dyn Fn(&RowId) -> Option<usize>,
    ) -> Result<Vec<(RowId, Micro)>, SessionError> {
        let placed = self.waiting.iter();
        let placed = placed.filter_map(|row| Some((place(&row.label.row)?, row)));
        let mut placed: Vec<(usize, &SealedRow)> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        let rows: Vec<&SealedRow> = placed.into_iter().map(|(_, row)| row).collect();
        self.reveal(ports, ledger, &rows)
    }

    /// A row's label, if its envelope opens to its commitment.
    fn opened(&self, origin: &str, row: &SealedRow) -> Result<([u8; 32], Micro), ConfirmError> {
        let label = &row.label;
        let plain = seal::decrypt(&label.envelope.0, &self.known);
        let plain = zeroize::Zeroizing::new(plain.map_err(|error| row.broken(&error))?);
        let opening = LabelOpening::from_bytes(&plain).filter(|opening| {
            opening.commitment(origin, self.design.as_str(), label.row.as_str()) == label.commitment
        });
        let opened =
            opening.and_then(|opening| Some((opening.salt, Micro::new(opening.value_micro)?)));
        opened.ok_or_else(|| {
            row.broken(&"it does not open to its commitment: report it, never seal it again")
        })
    }

    fn reveal(
        &self,
        ports: &mut dyn Ports,
        ledger: &mut Ledger,
        waiting: &[&SealedRow],
    ) -> Result<Vec<(RowId, Micro)>, SessionError> {
        let origin = ledger.state().keyring.origin.clone();
        let (mut commands, mut labels) = (Vec::new(), Vec::new());
        for row in waiting {
            let (salt, value_micro) = self.opened(&origin, row)?;
            labels.push((row.label.row.clone(), value_micro));
            let payload = LabelRevealed {
                charge: self.charge,
                design: self.design.clone(),
                row: row.label.row.clone(),
                salt: Base64Bytes(salt),
                value_micro,
            };
            commands.push(Command::new(payload, Some(self.experiment.clone())));
        }
        let now = append::now(ledger);
        let late = waiting.iter().filter(|row| row.label.reveal_by < now);
        let late = late.count();
        // Who opens the labels reads them: that is on record as any other read.
        let mut rows: Vec<_> = waiting.iter().map(|row| row.label.row.as_str()).collect();
        rows.sort_unstable();
        let read = DataRead {
            class: ClassId::new("label").expect("BUG: a literal"),
            outcome: ReadOutcome::Allowed,
            purpose: Text::new("unsealed").expect("BUG: a literal"),
            reader: self.signer.id(),
            role: Some(Role::Custodian),
            rows_root: Some(members_root(rows)),
        };
        commands.push(Command::new(read, Some(self.experiment.clone())));
        ledger.append(&commands, &self.signer)?;
        ledger.settle()?;
        append::tell_of_pin(ports, ledger);
        if late > 0 {
            ports.notice(Notice::RevealedLate(late));
        }
        Ok(labels)
    }
}
