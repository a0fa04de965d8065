//! Seals and charges: a reveal opens what was sealed and accepted, after it was paid for. Exact over the whole history,
//! by digests, so that no state grows with the number of labels.

use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::RowId;
use clover_event::payload::label::LabelRevealed;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ground::seal;
use clover_ledger::Fact;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;

use crate::budgets::Budgets;

/// The rules `seal` and `charge`.
#[derive(Clone, Copy, Debug)]
pub struct Seals;

/// Digest under which a sealed commitment is known.
fn sealed(
    experiment: Option<&ExperimentId>,
    design: &DesignId,
    row: &RowId,
    commitment: &Digest,
) -> Digest {
    canon::digest("clover/seal/v1", &(experiment, design, row, commitment))
}

/// Digest under which a sealed envelope is known.
fn envelope(
    experiment: Option<&ExperimentId>,
    design: &DesignId,
    row: &RowId,
    sha256: &Digest,
) -> Digest {
    canon::digest("clover/envelope/v1", &(experiment, design, row, sha256))
}

/// Digest under which a custodian's acceptance of a row's seal is known.
fn acceptance(experiment: Option<&ExperimentId>, design: &DesignId, row: &RowId) -> Digest {
    canon::digest("clover/accepted/v1", &(experiment, design, row))
}

/// Digest under which a charge is known.
pub fn charge(id: &Digest) -> Digest {
    canon::digest("clover/charge/v1", &(id,))
}

fn gives(digest: Digest) -> Fact {
    Fact::Gives { digest, once: None }
}

fn needs(digest: Digest, before: u64, rule: RuleName) -> Fact {
    Fact::Needs {
        digest,
        before,
        rule,
    }
}

impl Rule for Seals {
    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let header = &event.event.header;
        let experiment = header.experiment.as_ref();
        match &event.event.payload {
            Payload::BudgetCharged(_) => facts.push(gives(charge(&event.event.id.0))),
            Payload::LabelSealed(label) => {
                let sha256 = Digest::sha256(&label.envelope.0);
                facts.push(gives(sealed(
                    experiment,
                    &label.design,
                    &label.row,
                    &label.commitment,
                )));
                facts.push(gives(envelope(
                    experiment,
                    &label.design,
                    &label.row,
                    &sha256,
                )));
            }
            Payload::SealAccepted(accepted) => {
                let (design, row) = (&accepted.design, &accepted.row);
                let file = envelope(experiment, design, row, &accepted.envelope_sha256);
                facts.push(needs(file, event.seq, RuleName::Seal));
                facts.push(gives(acceptance(experiment, design, row)));
            }
            Payload::LabelRevealed(revealed) => reveal(event, revealed, facts),
            _ => {}
        }
    }

    fn requires(&self, state: &State, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let Payload::LabelRevealed(revealed) = &event.event.payload else {
            return;
        };
        let Some(paid) = state.fold::<Budgets>().peeks.get(&revealed.charge) else {
            // Nothing stands below seq 0: a charge to another account pays for no peek.
            facts.push(needs(charge(&revealed.charge.0), 0, RuleName::Charge));
            return;
        };
        if state.asks(Question::SealedWhenCharged) {
            // What was sealed after the charge is not what was paid for.
            facts.push(needs(opened(event, revealed), paid.seq, RuleName::Seal));
        }
    }
}

/// Digest under which what a reveal opens was sealed.
fn opened(event: &ProposedEvent<'_>, revealed: &LabelRevealed) -> Digest {
    let header = &event.event.header;
    let (design, row) = (&revealed.design, &revealed.row);
    let (salt, value) = (&revealed.salt.0, revealed.value_micro.value());
    let opened = seal::commitment(&header.ledger, design.as_str(), row.as_str(), salt, value);
    sealed(header.experiment.as_ref(), design, row, &opened)
}

/// A reveal opens what was sealed and accepted before it, and was paid for under the checkpoint it saw.
fn reveal(event: &ProposedEvent<'_>, revealed: &LabelRevealed, facts: &mut Vec<Fact>) {
    let header = &event.event.header;
    let experiment = header.experiment.as_ref();
    let (design, row) = (&revealed.design, &revealed.row);
    let seen = header.seen.map_or(0, |seen| seen.size.value());
    facts.push(needs(revealed.charge.0, event.seq, RuleName::Refs));
    facts.push(needs(opened(event, revealed), event.seq, RuleName::Seal));
    facts.push(needs(
        acceptance(experiment, design, row),
        event.seq,
        RuleName::Seal,
    ));
    facts.push(needs(
        charge(&revealed.charge.0),
        seen.min(event.seq),
        RuleName::Charge,
    ));
}
