//! How far a claim may be trusted: derived from what was recorded, never stated freely.

use crate::event::payload::decision::EvidenceClass;
use crate::event::payload::decision::Grade;
use crate::ground::time::Timestamp;
use crate::ledger::State;
use crate::ledger::rulebooks::Question;
use crate::projection::gates::Gate;
use crate::projection::manifests;
use crate::projection::manifests::Deviation;
use crate::projection::manifests::Manifests;
use crate::projection::manifests::Record;
use crate::projection::manifests::Version;

/// The grade of a gate's claim at a time: `void` where its sealed plan was not revealed by its day, its manifest was
/// superseded, or the key that registered a version was compromised before; `exploratory` after a deviation with an outcome
/// seen, as it was after a look; `asymptotic` by its class, and where a largest difference below the width of the scale is
/// taken on trust; `certified_amended` after an amendment in flight, a deviation before any outcome, or where another manifest
/// had drawn an order of the same units before; else `certified`.
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
    let looked = gate.first_look_seq.unwrap_or(u64::MAX);
    let seen = |one: &Deviation| one.outcome_seen || one.seq > looked;
    if record.deviations.iter().any(seen) {
        return Grade::Exploratory;
    }
    if gate
        .decided
        .is_some_and(|one| one.class == EvidenceClass::Asymptotic)
        || trusts(record)
    {
        return Grade::Asymptotic;
    }
    let look = record.first_look.as_ref().map_or(u64::MAX, |look| look.seq);
    let in_flight = |one: &Version| one.seq > look && one.class.is_some_and(|class| class >= 2);
    let amended = record.versions.iter().any(in_flight) || !record.deviations.is_empty();
    if amended || state.asks(Question::OneOrder) && is_redrawn(state, record) {
        return Grade::CertifiedAmended;
    }
    Grade::Certified
}

/// Whether the order of the same units had been drawn for the same candidate by the same metric: another manifest was
/// countersigned before this one was registered, so that who registered it could have known that order.
fn is_redrawn(state: &State, record: &Record) -> bool {
    let Some(first) = record.versions.first() else {
        return false;
    };
    let root = |version: &Version| version.manifest.data.as_ref().map(|data| data.confirm_root);
    let metric = |version: &Version| version.manifest.metric.as_ref().map(|of| of.metric.clone());
    let earlier = |one: &Version| {
        one.digest != first.digest
            && one.countersigned_seq.is_some_and(|seq| seq < first.seq)
            && root(one).is_some()
            && root(one) == root(first)
            && metric(one) == metric(first)
            && manifests::is_candidate_shared(&one.manifest, &first.manifest)
    };
    let all = state.fold::<Manifests>().by_id.values();
    all.flat_map(|other| &other.versions).any(earlier)
}

/// Whether the test holds only if no difference is beyond a bound that the scale does not give: a unit that breaks it cannot
/// be observed, and a gate may have ended before it came.
fn trusts(record: &Record) -> bool {
    let metric = record.in_force().and_then(|of| of.manifest.metric.as_ref());
    metric.is_some_and(|metric| {
        let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
        let most = metric.difference_max_micro;
        most.is_some_and(|most| most.value() < width)
    })
}

/// Whether a sealed plan is past its day without having been revealed by then.
pub fn is_late(record: &Record, now: Timestamp) -> bool {
    let sealed = record.plan.as_ref();
    sealed.is_some_and(|plan| plan.revealed_at.unwrap_or(now) > plan.reveal_by)
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
