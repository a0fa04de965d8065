//! How far a claim may be trusted: derived from what was recorded, never stated freely.

use crate::event::payload::decision::EvidenceClass;
use crate::event::payload::decision::Grade;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::projection::gates::Gate;
use crate::projection::manifests::Record;

/// The grade of a gate's claim at a time: `void` where its sealed plan was not revealed by its day, its manifest was
/// superseded, or a key that acted on it was compromised before; `exploratory` after a deviation with an outcome
/// seen; `asymptotic` by its class; `certified_amended` after an amendment in flight or a deviation before any
/// outcome; else `certified`.
pub fn graded(gate: &Gate, record: &Record, state: &State, now: Timestamp) -> Grade {
    let tainted = |key: &crate::ground::sign::KeyId, seq: u64| {
        let end = state.keyring.keys.get(key).and_then(|key| key.end.as_ref());
        end.and_then(|end| end.tainted_since)
            .is_some_and(|since| since <= seq)
    };
    let void = is_late(record, now)
        || record.superseded_by.is_some()
        || record
            .versions
            .iter()
            .any(|one| tainted(&one.author, one.seq));
    if void {
        return Grade::Void;
    }
    if record.deviations.iter().any(|one| one.outcome_seen) {
        return Grade::Exploratory;
    }
    if gate
        .decided
        .is_some_and(|one| one.class == EvidenceClass::Asymptotic)
    {
        return Grade::Asymptotic;
    }
    let look = record.first_look.as_ref().map_or(u64::MAX, |look| look.seq);
    let in_flight = |one: &crate::projection::manifests::Version| {
        one.seq > look && one.class.is_some_and(|class| class >= 2)
    };
    if record.versions.iter().any(in_flight) || !record.deviations.is_empty() {
        return Grade::CertifiedAmended;
    }
    Grade::Certified
}

/// Whether a sealed plan is past its day without having been revealed.
pub fn is_late(record: &Record, now: Timestamp) -> bool {
    let sealed = record.plan.as_ref();
    sealed.is_some_and(|plan| plan.revealed_seq.is_none() && now > plan.reveal_by)
}

/// The lesser of two grades.
pub fn least(a: Grade, b: Grade) -> Grade {
    let rank = |grade: Grade| match grade {
        Grade::Certified => 0,
        Grade::CertifiedAmended => 1,
        Grade::Asymptotic => 2,
        Grade::Exploratory => 3,
        Grade::Void => 4,
    };
    if rank(a) >= rank(b) { a } else { b }
}
