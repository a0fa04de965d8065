//! Who is accepted, and how an iteration ends: what its recorded gates call for.

use crate::event::id::EventId;
use crate::event::id::Text;
use crate::event::payload::iteration::IterationOutcome;
use crate::event::payload::predicate::Evidence;
use crate::event::payload::predicate::GateId;
use crate::event::payload::predicate::GateSplit;
use crate::event::payload::predicate::PatchAccepted;
use crate::ground::digest::Digest;
use crate::num::Count;
use crate::projection::decisions::CONFIRM_GATES;
use crate::projection::decisions::DEV_GATES;
use crate::workflow::iterate::record::Record;

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: a short sentence")
}

/// The gates of a patch, dev then confirm, each in order.
fn gates_of(record: &Record, candidate: Digest) -> Vec<EventId> {
    let of = |split, gates: &[GateId]| -> Vec<EventId> {
        let found = gates
            .iter()
            .filter_map(|&gate| record.gate(candidate, gate, split));
        found.map(|gate| gate.id).collect()
    };
    let mut ids = of(GateSplit::Dev, &DEV_GATES);
    ids.extend(of(GateSplit::Confirm, &CONFIRM_GATES));
    ids
}

/// The acceptance of a patch, whose place in the order is `at`, from 0; `None` without the patch or its P8.
pub fn acceptance(record: &Record, at: usize, hash: Digest) -> Option<PatchAccepted> {
    let mut all = record.proposed.iter().map(|patch| &patch.said);
    let patch = all.find(|patch| patch.patch_hash == hash)?;
    let p8 = record.gate(hash, GateId::P8, GateSplit::Confirm)?;
    let Evidence::P8(found) = &p8.said.evidence else {
        return None;
    };
    Some(PatchAccepted {
        candidate: hash,
        gates: gates_of(record, hash),
        iteration: record.iteration.clone(),
        kappa: patch.length.kappa,
        patch: patch.patch.clone(),
        rank: Count::new(at as u64 + 1).unwrap_or_default(),
        risk_improve: found.risk_improve,
        result_hash: patch.result_hash,
    })
}

/// The outcome that the decisions of an iteration call for, and why.
pub fn ending(record: &Record) -> (IterationOutcome, Text) {
    if let Some(paused) = &record.paused {
        let labels = paused.said.labels_requested;
        let reason = format!("{labels} more labels are needed");
        return (IterationOutcome::PausedForLabels, text(&reason));
    }
    if record.sealed.is_none() {
        let count = record.proposed.len();
        let reason = format!("none of {count} patches passed on dev; no peek was spent");
        return (IterationOutcome::NoCandidate, text(&reason));
    }
    match record.accepted.len() {
        0 => {
            let reason = "no sealed candidate passed on confirm";
            (IterationOutcome::NoneAccepted, text(reason))
        }
        count => {
            let reason = format!("{count} accepted");
            (IterationOutcome::Accepted, text(&reason))
        }
    }
}
