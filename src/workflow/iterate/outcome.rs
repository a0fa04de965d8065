//! Who is accepted, and how an iteration ends: what its recorded gates call for.

use clover_event::id::EventId;
use clover_event::id::Text;
use clover_event::payload::Verdict;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::rubric::PatchProposed;
use clover_event::payload::rubric::PatchRejected;
use clover_event::payload::rubric::RejectStage;
use clover_ground::digest::Digest;
use clover_num::Count;
use clover_projection::decisions::CONFIRM_CRITERIA;
use clover_projection::decisions::DEV_CRITERIA;
use clover_projection::iterations::record::IterationRecord;

fn text(value: &str) -> Text {
    Text::new(value).expect("BUG: a short sentence")
}

/// The gates of a patch, dev then confirm, each in order.
fn gates_of(record: &IterationRecord, candidate: Digest) -> Vec<EventId> {
    let of = |split, gates: &[Criterion]| -> Vec<EventId> {
        let found = gates
            .iter()
            .filter_map(|&gate| record.gate(candidate, gate, split));
        found.map(|gate| gate.id).collect()
    };
    let mut ids = of(CriterionSplit::Dev, &DEV_CRITERIA);
    ids.extend(of(CriterionSplit::Confirm, &CONFIRM_CRITERIA));
    ids
}

/// The acceptance of a patch, whose place in the order is `at`, from 0; `None` without the patch or its P8.
pub fn acceptance(record: &IterationRecord, at: usize, hash: Digest) -> Option<PatchAccepted> {
    let mut all = record.proposed.iter().map(|patch| &patch.said);
    let patch = all.find(|patch| patch.patch_hash == hash)?;
    let p8 = record.gate(hash, Criterion::P8, CriterionSplit::Confirm)?;
    let Evidence::P8(found) = &p8.said.evidence else {
        return None;
    };
    Some(PatchAccepted {
        candidate: hash,
        charge: None,
        gates: gates_of(record, hash),
        iteration: record.iteration.clone(),
        kappa: patch.length.kappa,
        patch: patch.patch.clone(),
        rank: Count::new(at as u64 + 1).unwrap_or_default(),
        risk_improve: found.risk_improve,
        result_hash: patch.result_hash,
    })
}

/// Why a candidate is not accepted whose sequential test stopped before the end of the block, as gate and words; `None`
/// where gates say so.
pub fn stopped_early(record: &IterationRecord, candidate: Digest) -> Option<(Criterion, String)> {
    let look = record.looks.last().filter(|_| record.saves_labels())?;
    let mut all = look.said.hypotheses.iter();
    let test = all.find(|of| of.candidate == candidate)?.test;
    let words = format!("p8 {} at cluster {}", test.stop.as_str(), test.units);
    Some((Criterion::P8, words))
}

/// Code of a patch whose rows cannot be scored: evidence that it needs was never recorded.
pub const UNSCORED: &str = "evidence_missing";
/// Code of a patch that passed on dev beside a better one of its family.
pub const OF_FAMILY: &str = "family";
/// Code of a patch that passed on confirm where others go first.
pub const AFTER_OTHERS: &str = "composite";

/// The rejection of a patch at a stage, for a gate or one of the codes above, with every gate that did not pass; in a
/// selection gates have no say.
pub fn rejection(
    record: &IterationRecord,
    patch: &PatchProposed,
    (stage, code): (RejectStage, &str),
) -> PatchRejected {
    let stopped = record.gates.iter().filter(|gate| {
        let verdict = gate.said.verdicts.under(gate.said.thresholds.profile);
        gate.said.candidate == patch.patch_hash && verdict != Verdict::Pass
    });
    let stopped = stopped.filter(|_| stage != RejectStage::Selection);
    PatchRejected {
        code: text(code),
        gate_refs: stopped.map(|gate| gate.id).collect(),
        iteration: record.iteration.clone(),
        patch: Some(patch.patch.clone()),
        stage,
        yaml_sha256: Digest::sha256(patch.yaml.as_str().as_bytes()),
    }
}

/// The outcome that the decisions of an iteration call for, and why.
pub fn ending(record: &IterationRecord) -> (IterationOutcome, Text) {
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
