//! How far a claim may be trusted: derived from what was recorded, never stated freely.

use clover_event::payload::Role;
use clover_event::payload::decision::EvidenceClass;
use clover_event::payload::decision::Grade;
use clover_ground::sign::KeyId;
use clover_ground::time::Timestamp;
use clover_ledger::State;
use clover_ledger::names;
use clover_ledger::rulebooks::Question;

use crate::gates::Gate;
use crate::gates::Gates;
use crate::manifests;
use crate::manifests::Deviation;
use crate::manifests::ManifestRecord;
use crate::manifests::ManifestVersion;
use crate::manifests::Manifests;

/// The grade of a gate's claim at a time: `void` where its sealed plan was not revealed by its day, its manifest was
/// superseded, or the key that registered a version was compromised before; `exploratory` after a deviation with an outcome
/// seen, as it was after a look; `asymptotic` by its class, and where a largest difference below the width of the scale is
/// taken on trust; `finite` where it is about exactly its own units; `self_governed` where who fixed its order could know
/// outcomes; `certified_amended` after an amendment in flight, a deviation before any outcome, or where another manifest
/// had drawn an order of the same units before; else `certified`.
/// A gate that continues another rests on what that one observed, and its grade is no better.
pub fn graded(gate: &Gate, record: &ManifestRecord, state: &State, now: Timestamp) -> Grade {
    if record.superseded_by.is_some() {
        return Grade::Void;
    }
    let (gates, manifests) = (state.fold::<Gates>(), state.fold::<Manifests>());
    let mut grade = graded_alone(gate, record, state, now);
    let mut parent = gate.parent.as_ref();
    // A gate continues one that ended before: a chain as long as there are gates is none.
    let mut left = gates.by_id.len();
    while let Some(id) = parent.filter(|_| state.asks(Question::CarriedGrade)) {
        let found = gates.by_id.get(id).zip(manifests.by_id.get(id));
        let Some((gate, record)) = found.filter(|_| left > 0) else {
            return Grade::Void;
        };
        grade = least(grade, graded_alone(gate, record, state, now));
        parent = gate.parent.as_ref();
        left -= 1;
    }
    grade
}

/// The grade of a gate by its own record, whatever it continues and whatever replaced its manifest: what was observed before
/// stands.
fn graded_alone(gate: &Gate, record: &ManifestRecord, state: &State, now: Timestamp) -> Grade {
    let tainted = |key: &KeyId, seq: u64| {
        let end = state.keyring.keys.get(key).and_then(|key| key.end.as_ref());
        end.and_then(|end| end.tainted_since)
            .is_some_and(|since| since <= seq)
    };
    let rests = state.asks(Question::TaintedEvidence)
        && (signers(state, record).any(|(key, seq)| tainted(key, *seq))
            || record.versions.iter().any(|one| {
                let by = one.countersigned_by.zip(one.countersigned_seq);
                by.is_some_and(|(key, seq)| tainted(&key, seq))
            }));
    let void = rests
        || is_late(record, now)
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
    let bound = record.bound();
    let finite = bound.and_then(|of| of.manifest.test.as_ref());
    if state.asks(Question::FiniteClaims) && finite.is_some_and(|test| test.without_replacement) {
        return Grade::Finite;
    }
    if state.asks(Question::KnownOutcomes)
        && bound.is_none_or(|of| knew_outcomes(state, record, of))
    {
        return Grade::SelfGoverned;
    }
    let look = record.first_look.as_ref().map_or(u64::MAX, |look| look.seq);
    let in_flight =
        |one: &ManifestVersion| one.seq > look && one.class.is_some_and(|class| class >= 2);
    let amended = record.versions.iter().any(in_flight) || !record.deviations.is_empty();
    if amended || is_order_known(gate, record, state) {
        return Grade::CertifiedAmended;
    }
    Grade::Certified
}

/// Whether another manifest had drawn an order of the same units before: somebody could know it before this manifest was
/// registered, and from rulebook 23 on could choose among both.
pub fn is_order_known(gate: &Gate, record: &ManifestRecord, state: &State) -> bool {
    let before = record.versions.first().map(|first| first.seq);
    let before = before.filter(|_| state.asks(Question::OneOrder));
    let chosen = Some(gate.opened_seq).filter(|_| state.asks(Question::OneOfOrders));
    let is_redrawn = |before: u64| is_redrawn(state, record, before);
    before.max(chosen).is_some_and(is_redrawn)
}

/// Keys that signed what a gate rests on, each with the last entry.
fn signers<'s>(
    state: &'s State,
    record: &ManifestRecord,
) -> impl Iterator<Item = (&'s KeyId, &'s u64)> + use<'s> {
    let id = record
        .versions
        .first()
        .map(|first| &first.manifest.manifest);
    let rests = id.and_then(|id| state.fold::<Gates>().rests.get(id));
    rests.into_iter().flatten()
}

/// Roles whose keys make outcomes, or what outcomes are of.
const KNOWING: [Role; 5] = [
    Role::Labeler,
    Role::MetaOptimizer,
    Role::Optimizer,
    Role::Registrar,
    Role::Scorer,
];

/// Whether the person whose key fixed the order of a gate could know outcomes of its units: they wrote a version of its
/// manifest, or hold or held a key that scores, labels, registers or optimizes. The order follows from the entry that fixes
/// it, and who writes that entry could write it until the order suits.
fn knew_outcomes(state: &State, record: &ManifestRecord, bound: &ManifestVersion) -> bool {
    let keyring = &state.keyring;
    let person = |key: &KeyId| {
        let key = keyring.keys.get(key)?;
        Some(names::person(keyring, &key.holder))
    };
    let fixed = person(&bound.countersigned_by.unwrap_or(bound.author));
    let wrote = record
        .versions
        .iter()
        .any(|one| person(&one.author) == fixed);
    let mut keys = keyring.keys.iter();
    let knowing = keys.any(|(id, key)| {
        person(id) == fixed && KNOWING.iter().any(|role| key.roles.contains(*role))
    });
    fixed.is_none() || wrote || knowing
}

/// Whether the order of the same units had been drawn for the same candidate by the same metric before an entry: another
/// manifest was countersigned by then. Who registered this one could have known that order, or who opened it chosen among both.
fn is_redrawn(state: &State, record: &ManifestRecord, before: u64) -> bool {
    let Some(first) = record.versions.first() else {
        return false;
    };
    let root =
        |version: &ManifestVersion| version.manifest.data.as_ref().map(|data| data.confirm_root);
    let metric =
        |version: &ManifestVersion| version.manifest.metric.as_ref().map(|of| of.metric.clone());
    // Versions of one manifest have one order: an amendment that draws another is refused.
    let is_other = |one: &ManifestVersion| one.manifest.manifest != first.manifest.manifest;
    let earlier = |one: &ManifestVersion| {
        one.digest != first.digest
            && one.countersigned_seq.is_some_and(|seq| seq < before)
            && root(one).is_some()
            && is_other(one)
            && root(one) == root(first)
            && metric(one) == metric(first)
            && manifests::is_candidate_shared(&one.manifest, &first.manifest)
    };
    let all = state.fold::<Manifests>().by_id.values();
    all.flat_map(|other| &other.versions).any(earlier)
}

/// Whether the test holds only if no difference is beyond a bound that the scale does not give: a unit that breaks it cannot
/// be observed, and a gate may have ended before it came.
fn trusts(record: &ManifestRecord) -> bool {
    let metric = record.in_force().and_then(|of| of.manifest.metric.as_ref());
    metric.is_some_and(|metric| {
        let width = metric.scale_hi_micro.value() - metric.scale_lo_micro.value();
        let most = metric.difference_max_micro;
        most.is_some_and(|most| most.value() < width)
    })
}

/// Whether a sealed plan is past its day without having been revealed by then.
pub fn is_late(record: &ManifestRecord, now: Timestamp) -> bool {
    let sealed = record.plan.as_ref();
    sealed.is_some_and(|plan| plan.revealed_at.unwrap_or(now) > plan.reveal_by)
}

/// The lesser of two grades.
pub fn least(a: Grade, b: Grade) -> Grade {
    let rank = |grade: Grade| match grade {
        Grade::Certified => 0,
        Grade::CertifiedAmended => 1,
        Grade::SelfGoverned => 2,
        Grade::Finite => 3,
        Grade::Asymptotic => 4,
        Grade::Exploratory => 5,
        Grade::Void => 6,
    };
    if rank(a) >= rank(b) { a } else { b }
}
