//! The keys of an import, looked for before anything is appended.

use std::sync::Arc;

use clover_event::Kind;
use clover_event::id::SealRecipient;
use clover_event::payload::Role;
use clover_ground::sign::KeyId;
use clover_ground::sign::Signer;
use clover_ledger::State;
use clover_workflow::import::plan::ImportPlan;

use crate::error::SessionError;
use crate::intake::counts::Counts;
use crate::intake::error::IntakeError;
use crate::ports::KeyNeed;
use crate::ports::Keys;

/// Keys that sign, looked for before anything is appended.
#[derive(Debug)]
pub struct Signers {
    scorer: Option<Arc<Signer>>,
    labeler: Option<Arc<Signer>>,
    custodian: Option<Arc<Signer>>,
    recipient: Option<SealRecipient>,
}

/// Whether a plan seals anything to a custodian: labels, or a new file whose labels stay closed.
pub fn seals(plans: &[ImportPlan]) -> bool {
    plans.iter().any(|plan| {
        let closed = plan.ingested.is_none() && plan.stays_closed();
        closed || Counts::of(plan).sealed.new > 0
    })
}

impl Signers {
    /// The keys that the new events of plans need, and the recipient of what they seal.
    ///
    /// # Errors
    /// What the port says where a key lacks; [`IntakeError`] where nobody, or more than one, could open what is sealed.
    pub fn find(
        keys: &mut dyn Keys,
        state: &State,
        to: Option<&KeyId>,
        (plans, declares): (&[ImportPlan], bool),
    ) -> Result<Self, SessionError> {
        let counts: Vec<_> = plans.iter().map(Counts::of).collect();
        let total = Counts::sum(&counts);
        let mut key = |kind: Kind, needed: bool| {
            needed
                .then(|| keys.signer(state, KeyNeed::by_kind(kind)))
                .transpose()
        };
        let scored = total.files.new + total.scores.new + total.logprobs.new > 0;
        // A scale of labels stands before the first of them, open or sealed.
        let labelled = total.labels.new > 0 || declares && total.sealed.new > 0;
        Ok(Self {
            scorer: key(Kind::ScoreRecorded, scored)?,
            labeler: key(Kind::LabelRecorded, labelled)?,
            custodian: key(Kind::LabelSealed, total.sealed.new > 0)?,
            recipient: seals(plans).then(|| recipient(state, to)).transpose()?,
        })
    }

    /// The keys that new labels need which come without scores, and the recipient of those that are sealed.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn of_labels(
        keys: &mut dyn Keys,
        state: &State,
        to: Option<&KeyId>,
        (counts, declares): (&Counts, bool),
    ) -> Result<Self, SessionError> {
        let mut key = |kind: Kind, needed: bool| {
            needed
                .then(|| keys.signer(state, KeyNeed::runner(kind)))
                .transpose()
        };
        let seals = counts.sealed.new > 0;
        Ok(Self {
            scorer: None,
            labeler: key(Kind::LabelRecorded, counts.labels.new > 0 || declares)?,
            custodian: key(Kind::LabelSealed, seals)?,
            recipient: seals.then(|| recipient(state, to)).transpose()?,
        })
    }

    /// The key that signs scores and files, where there are new ones.
    pub fn scorer(&self) -> Option<&Signer> {
        self.scorer.as_deref()
    }

    /// The key that signs open labels, where there are new ones.
    pub fn labeler(&self) -> Option<&Signer> {
        self.labeler.as_deref()
    }

    /// The key that signs seals, where there are new ones.
    pub fn custodian(&self) -> Option<&Signer> {
        self.custodian.as_deref()
    }

    /// To whom labels and files are sealed, where some are.
    pub fn recipient(&self) -> Option<&SealRecipient> {
        self.recipient.as_ref()
    }
}

/// The recipient that a key's holder opens with.
///
/// # Errors
/// [`IntakeError::NoRecipient`].
pub fn recipient_of(state: &State, key: &KeyId) -> Result<SealRecipient, IntakeError> {
    let record = state.keyring.keys.get(key);
    let recipient = record.and_then(|record| record.seal_recipient.clone());
    recipient.ok_or(IntakeError::NoRecipient(*key))
}

/// The recipient of seals: of the named key, else of the one live custodian that has any.
fn recipient(state: &State, to: Option<&KeyId>) -> Result<SealRecipient, IntakeError> {
    if let Some(named) = to {
        return recipient_of(state, named);
    }
    let live = state.keyring.live();
    let custodians = live.filter(|(_, record)| record.roles.contains(Role::Custodian));
    let found: Vec<_> = custodians
        .filter_map(|(_, record)| record.seal_recipient.as_ref())
        .collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(IntakeError::NoCustodian),
        _ => Err(IntakeError::SeveralCustodians),
    }
}
