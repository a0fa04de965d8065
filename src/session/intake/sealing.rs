//! Labels that would be sealed: what is asked before, and those that nobody named.

use std::collections::BTreeSet;

use clover_event::id::ItemId;
use clover_event::id::PolicyId;
use clover_event::id::RowId;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::label::draw_of_row;
use clover_ledger::Ledger;
use clover_projection::designs::Designs;
use clover_projection::splits::Splits;
use clover_projection::splits::in_confirm;
use clover_workflow::import::plan::LabelIntake;
use clover_workflow::import::plan::Presence;

use crate::confirm::clusters_waiting;
use crate::error::SessionError;
use crate::intake::IntakeRequest;
use crate::intake::held;
use crate::ports::Ports;
use crate::ports::Question;

/// Rows of labels that would be sealed.
fn fresh<'l>(labels: impl Iterator<Item = &'l LabelIntake>) -> Vec<&'l RowId> {
    let rows = labels.filter_map(|label| match label {
        LabelIntake::Sealed(Presence::New, row) => Some(row),
        _ => None,
    });
    rows.collect()
}

/// Whether the design of sealed labels holds probes for audits.
fn is_audit(ledger: &Ledger, request: &IntakeRequest) -> bool {
    let designs = ledger.state().fold::<Designs>();
    let registered = request
        .ask
        .seal
        .as_ref()
        .and_then(|design| designs.registered(&request.ask.experiment, design));
    registered.is_some_and(|of| of.purpose == DesignPurpose::Audit)
}

/// Asks before labels are sealed.
pub(super) fn ask<'l>(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    request: &IntakeRequest,
    labels: impl Iterator<Item = &'l LabelIntake>,
) -> Result<(), SessionError> {
    let rows = fresh(labels);
    let (Some(design), false) = (&request.ask.seal, rows.is_empty()) else {
        return Ok(());
    };
    let draws = rows.iter().filter_map(|row| draw_of_row(row));
    let mut probed: BTreeSet<PolicyId> = draws.map(|(policy, ..)| policy).collect();
    let mut unprobed = Vec::new();
    if is_audit(ledger, request) {
        let experiment = &request.ask.experiment;
        probed.extend(clusters_waiting(ledger, experiment, design)?.into_keys());
        let scored = held::draws(ledger, experiment)?.into_keys();
        let scored: BTreeSet<PolicyId> = scored.map(|(policy, ..)| policy).collect();
        unprobed = scored.difference(&probed).cloned().collect();
    }
    ports.ask(&Question::Seal {
        design: design.clone(),
        labels: rows.len(),
        policies: probed.len() + unprobed.len(),
        unprobed,
    })?;
    Ok(())
}

/// Labels that would be sealed though no confirm part has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideConfirm {
    /// The first of them.
    pub first: ItemId,
    /// How many.
    pub labels: usize,
    /// How many would be sealed in all.
    pub all: usize,
}

/// Labels outside confirm that would be sealed where nobody said what becomes of those: sealed, they fit no calibrator. Probes
/// for audits are none of these, and where nothing is split nobody can tell.
///
/// # Errors
/// When the ledger cannot be read.
pub fn outside<'l>(
    ledger: &Ledger,
    request: &IntakeRequest,
    labels: impl Iterator<Item = &'l LabelIntake>,
) -> Result<Option<OutsideConfirm>, SessionError> {
    let experiment = &request.ask.experiment;
    let splits = ledger.state().fold::<Splits>();
    let of = splits.by_experiment.get(experiment);
    let is_split = of.is_some_and(|of| !of.formed.is_empty());
    if !is_split || request.ask.opens || is_audit(ledger, request) {
        return Ok(None);
    }
    let rows = fresh(labels);
    let (mut first, mut labels) = (None, 0);
    for row in &rows {
        let Some((_, item, _)) = draw_of_row(row) else {
            continue;
        };
        let confirm = ledger.giver(&in_confirm(Some(experiment), &item))?;
        if confirm.is_none() {
            labels += 1;
            first.get_or_insert(item);
        }
    }
    Ok(first.map(|first| OutsideConfirm {
        first,
        labels,
        all: rows.len(),
    }))
}
