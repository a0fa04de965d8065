//! Sealed labels as a whole: accepted by their custodian, and opened under one charged peek.

mod opening;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::ItemId;
use clover_event::id::IterationId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::id::RowId;
use clover_event::payload::budget::Period;
use clover_event::payload::label::LabelSealed;
use clover_event::payload::label::SealAccepted;
use clover_event::payload::label::draw_of_row;
use clover_event::registry;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ground::seal::Identity;
use clover_ground::time::Timestamp;
use clover_ledger::Command;
use clover_ledger::Ledger;
use clover_projection::assumptions::Contradiction;
use clover_projection::budgets::Account;
use clover_projection::decisions::block::Blocks;
use clover_projection::judges::score_key;

use crate::append;
use crate::error::SessionError;
use crate::ports::KeyNeed;
use crate::ports::Ports;

pub use opening::Begun;
pub use opening::ChargeNotice;
pub use opening::PaidDesign;
pub use opening::Peek;
pub use opening::RevealedLabels;
pub use opening::begin;
pub use opening::foresee;
pub use opening::is_charge_of;
pub use opening::open;

/// Why sealed labels were not accepted or opened.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// The two-key rule of judges failed.
    #[error(
        "blocked: CLOVER.J2 fails in {experiment} since the {kind} at seq {seq}; no peek was charged",
        kind = .since.witness.kind(),
        seq = .since.seq
    )]
    Blocked {
        /// The experiment.
        experiment: ExperimentId,
        /// What says so.
        since: Contradiction,
    },
    /// An envelope does not open to what was sealed.
    #[error("the envelope of row {row}: {found}")]
    Envelope {
        /// The row.
        row: RowId,
        /// The entry of the sealed label.
        seq: u64,
        /// What is wrong.
        found: String,
    },
    /// Labels are shown in an order that an iteration draws.
    #[error(
        "sealing: labels of {design} are shown in the order that iteration {iteration} draws; no peek was charged"
    )]
    InOrder {
        /// The design.
        design: DesignId,
        /// The iteration.
        iteration: IterationId,
    },
    /// There is no such account.
    #[error("account: no account {0}: a peek is charged before a label is opened")]
    NoAccount(String),
    /// No label is sealed in the design.
    #[error("no sealed label of design {design} in {experiment}")]
    NoLabels {
        /// The design.
        design: DesignId,
        /// The experiment.
        experiment: ExperimentId,
    },
    /// A sealed label was not accepted by the custodian.
    #[error("seal: row {row} has no seal.accepted")]
    NotAccepted {
        /// The design.
        design: DesignId,
        /// The row.
        row: RowId,
    },
    /// The account counts something else.
    #[error(
        "charge: {account} counts in {unit}; a label is opened by a charge to an account whose unit is peek"
    )]
    NotPeeks {
        /// The account.
        account: String,
        /// What it counts.
        unit: String,
    },
    /// The account is spent.
    #[error("overdraft: {spent} of {amount} {unit} spent in {period}")]
    Overdraft {
        /// What was spent.
        spent: u64,
        /// What the account has in a period.
        amount: u64,
        /// What it counts.
        unit: String,
        /// The period.
        period: String,
    },
    /// The purpose does not fit into an event.
    #[error("--for: too long")]
    PurposeTooLong,
}

/// A sealed label of a design.
struct SealedRow {
    seq: u64,
    label: LabelSealed,
    is_accepted: bool,
    is_revealed: bool,
}

impl SealedRow {
    fn broken(&self, found: &dyn std::fmt::Display) -> ConfirmError {
        ConfirmError::Envelope {
            row: self.label.row.clone(),
            seq: self.seq,
            found: found.to_string(),
        }
    }
}

/// How many clusters wait in a design, by policy; rows of another form than a draw's belong to none.
///
/// # Errors
/// When the log cannot be read.
pub fn clusters_waiting(
    ledger: &Ledger,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<BTreeMap<PolicyId, u64>, SessionError> {
    let rows = sealed(ledger, experiment, design)?;
    let waiting = rows.iter().filter(|row| !row.is_revealed);
    let draws = waiting.filter_map(|row| draw_of_row(&row.label.row));
    let clusters: BTreeSet<(PolicyId, ItemId)> =
        draws.map(|(policy, item, _)| (policy, item)).collect();
    let mut counts = BTreeMap::new();
    for (policy, _) in clusters {
        *counts.entry(policy).or_default() += 1;
    }
    Ok(counts)
}

/// How many sealed labels of the confirm block of an experiment there are, and of how many no score is on record; a row's score is
/// known under the digest that `score` gives.
///
/// # Errors
/// When the log cannot be read.
pub fn without_score(
    ledger: &Ledger,
    experiment: &ExperimentId,
    score: &dyn Fn(&RowId) -> Option<Digest>,
) -> Result<(usize, usize), SessionError> {
    let blocks = &ledger.state().fold::<Blocks>().by_experiment;
    let (mut all, mut without) = (0, 0);
    let Some(block) = blocks.get(experiment) else {
        return Ok((0, 0));
    };
    for design in &block.designs {
        let mut rows = sealed(ledger, experiment, design)?;
        rows.retain(|row| block.since.is_none_or(|since| row.seq > since));
        all += rows.len();
        without += unscored(ledger, &rows, score)?;
    }
    Ok((all, without))
}

fn unscored(
    ledger: &Ledger,
    rows: &[SealedRow],
    score: &dyn Fn(&RowId) -> Option<Digest>,
) -> Result<usize, SessionError> {
    let mut without = 0;
    for row in rows {
        let scored = match score(&row.label.row) {
            Some(digest) => ledger.giver(&digest)?.is_some(),
            None => false,
        };
        without += usize::from(!scored);
    }
    Ok(without)
}

/// The same of the labels of one design that wait to be opened.
///
/// # Errors
/// When the log cannot be read.
pub fn waiting_without_score(
    ledger: &Ledger,
    (experiment, design): (&ExperimentId, &DesignId),
    judge: &JudgeId,
) -> Result<(usize, usize), SessionError> {
    let mut rows = sealed(ledger, experiment, design)?;
    rows.retain(|row| !row.is_revealed);
    let without = unscored(ledger, &rows, &|row| score_key(experiment, judge, row))?;
    Ok((rows.len(), without))
}

/// The sealed labels of one design, in the order of their entries; at least one.
fn rows(
    ledger: &Ledger,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<Vec<SealedRow>, SessionError> {
    let rows = sealed(ledger, experiment, design)?;
    if rows.is_empty() {
        let (design, experiment) = (design.clone(), experiment.clone());
        return Err(ConfirmError::NoLabels { design, experiment }.into());
    }
    Ok(rows)
}

/// The sealed labels of one design, in the order of their entries.
fn sealed(
    ledger: &Ledger,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<Vec<SealedRow>, SessionError> {
    let mut found = Vec::new();
    ledger.entries::<SessionError>(0, ledger.size(), |read| {
        let header = &read.event.header;
        if let Payload::LabelSealed(label) = &read.event.payload
            && header.experiment.as_ref() == Some(experiment)
            && label.design == *design
        {
            found.push((read.stored.seq, label.clone()));
        }
        Ok(())
    })?;
    let given = |kind: Kind, label: &LabelSealed| {
        let fields = [design.as_str(), label.row.as_str()];
        ledger.giver(&registry::natural_key_of(kind, experiment, &fields))
    };
    let mut rows = Vec::with_capacity(found.len());
    for (seq, label) in found {
        rows.push(SealedRow {
            seq,
            is_accepted: given(Kind::SealAccepted, &label)?.is_some(),
            is_revealed: given(Kind::LabelRevealed, &label)?.is_some(),
            label: *label,
        });
    }
    Ok(rows)
}

/// The identity for a row's envelope; the last one found serves again.
fn identity<'i>(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    label: &LabelSealed,
    known: &'i mut Vec<Identity>,
) -> Result<&'i Identity, SessionError> {
    let fits = |identity: &Identity| identity.recipient() == label.recipient.0;
    let at = if let Some(at) = known.iter().position(fits) {
        at
    } else {
        known.push(ports.identity(ledger.state(), &label.recipient.0)?);
        known.len() - 1
    };
    Ok(&known[at])
}

/// What an acceptance did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptanceCounts {
    /// Labels that were accepted now.
    pub new: usize,
    /// Labels that were accepted before.
    pub already: usize,
}

/// Accepts, as the custodian, every sealed label of a design that the custodian's identity can open.
///
/// # Errors
/// [`ConfirmError::NoLabels`] and [`ConfirmError::Envelope`]; then nothing was appended.
pub fn accept(
    ports: &mut dyn Ports,
    ledger: &mut Ledger,
    experiment: &ExperimentId,
    design: &DesignId,
) -> Result<AcceptanceCounts, SessionError> {
    let rows = rows(ledger, experiment, design)?;
    let signer = ports.signer(ledger.state(), KeyNeed::runner(Kind::SealAccepted))?;
    let (mut commands, mut known) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| !row.is_accepted) {
        let identity = identity(ports, ledger, &row.label, &mut known)?;
        let file = &row.label.envelope.0;
        seal::check_header(file, std::slice::from_ref(identity))
            .map_err(|error| row.broken(&error))?;
        let payload = SealAccepted {
            design: design.clone(),
            envelope_sha256: Digest::sha256(file),
            row: row.label.row.clone(),
        };
        commands.push(Command::new(payload, Some(experiment.clone())));
    }
    ledger.append(&commands, &signer)?;
    ledger.settle()?;
    append::tell_of_pin(ports, ledger);
    let (new, already) = (commands.len(), rows.len() - commands.len());
    Ok(AcceptanceCounts { new, already })
}

/// The period that an account counts now, in words.
fn period(account: &Account, now: Timestamp) -> String {
    match account.period {
        Period::Once => "all".to_owned(),
        Period::Quarter => now.quarter().to_string(),
    }
}

/// A sealed label that waits to be revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedLabel {
    /// Its experiment; empty where its event names none.
    pub experiment: String,
    /// Its design.
    pub design: String,
    /// When it is to be revealed at the latest.
    pub reveal_by: Timestamp,
}

/// What is sealed and not revealed below a position, by experiment, design and row.
///
/// # Errors
/// What reading the log gives.
pub fn waiting(ledger: &Ledger, size: u64) -> Result<Vec<SealedLabel>, SessionError> {
    let mut waiting = BTreeMap::new();
    ledger.entries::<SessionError>(0, size, |read| {
        let experiment = read.event.header.experiment.as_ref();
        let experiment = experiment.map_or_else(String::new, ToString::to_string);
        match &read.event.payload {
            Payload::LabelSealed(label) => {
                let key = (experiment, label.design.to_string(), label.row.to_string());
                waiting.insert(key, label.reveal_by);
            }
            Payload::LabelRevealed(label) => {
                let key = (experiment, label.design.to_string(), label.row.to_string());
                waiting.remove(&key);
            }
            _ => {}
        }
        Ok(())
    })?;
    let rows = waiting.into_iter();
    Ok(rows
        .map(|((experiment, design, _), reveal_by)| SealedLabel {
            experiment,
            design,
            reveal_by,
        })
        .collect())
}
