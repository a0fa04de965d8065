//! The closing of a family: which of its members' claims hold by its registered procedure.

use clover_event::id::FamilyId;
use clover_event::id::ManifestId;
use clover_event::payload::decision::FamilyClosed;
use clover_event::payload::decision::MemberEvidence;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::HypothesisKind;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_num::Count;
use clover_num::Micro;
use clover_num::math;
use clover_projection::gates::Gates;
use clover_projection::gates::evidence;
use clover_projection::gates::holds;
use clover_projection::manifests::FAMILY_MAX;
use clover_projection::manifests::Family;
use clover_projection::manifests::ManifestRecord;
use clover_projection::manifests::ManifestVersion;
use clover_projection::manifests::Manifests;
use clover_stats::eprocess::bettor;
use clover_stats::eprocess::design::EvalueThreshold;
use clover_stats::eprocess::family as procedures;
use clover_stats::eprocess::merge;
use clover_stats::eprocess::merge::EValues;
use serde::Serialize;

/// Members whose claims hold, in order of registration; `evidence` is every member's.
///
/// Those that never came count with evidence 0: the number of hypotheses was fixed before any was tested.
pub fn rejected(state: &State, id: &FamilyId, evidence: &[MemberEvidence]) -> Vec<ManifestId> {
    let Some(family) = state.fold::<Manifests>().families.get(id) else {
        return Vec::new();
    };
    let gates = state.fold::<Gates>();
    let decided = |one: &MemberEvidence| {
        let gate = gates.by_id.get(&one.member);
        let decided = gate.and_then(|gate| gate.decided);
        decided.is_some_and(|one| holds(one.outcome))
    };
    let holds: Vec<bool> = match family.method {
        FamilyMethod::Elond | FamilyMethod::Spend => evidence.iter().map(decided).collect(),
        FamilyMethod::ClosedEbh | FamilyMethod::ClosedMean | FamilyMethod::Ebh => {
            together(family, evidence).unwrap_or_default()
        }
    };
    let found = evidence.iter().zip(holds).filter(|(_, holds)| *holds);
    found.map(|(one, _)| one.member.clone()).collect()
}

/// The procedures that judge all members at once; `None` where their terms are none.
fn together(family: &Family, evidence: &[MemberEvidence]) -> Option<Vec<bool>> {
    if family.members_max > FAMILY_MAX {
        return None;
    }
    let most = usize::try_from(family.members_max)
        .ok()?
        .max(evidence.len());
    let values = evidence
        .iter()
        .map(|one| math::exp(one.log_e.value()).min(f64::MAX));
    let mut values: Vec<f64> = values.collect();
    values.resize(most, 0.0);
    let values = EValues::new(&values).ok()?;
    let alpha = family.alpha as f64 / 1e6;
    match family.method {
        FamilyMethod::Ebh => procedures::ebh(values, alpha).ok(),
        FamilyMethod::ClosedEbh => procedures::closed_ebh(values, alpha).ok(),
        _ => {
            let adjusted = procedures::closed_mean(values).into_iter();
            Some(adjusted.map(|one| one >= 1.0 / alpha).collect())
        }
    }
}

/// What members of a family that test one hypothesis on one pair of arms say of it together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HypothesisEvidence {
    /// The hypothesis.
    pub h0_digest: Digest,
    /// Logarithm of their mean e-value over all the family may have: those of other hypotheses, and those to come, count 1.
    pub log_e: f64,
    /// In order of registration.
    pub members: Vec<ManifestId>,
    /// `min(1, 1 / e)`.
    pub p: f64,
}

/// Each hypothesis that several members test. Weights are those of the family's places, fixed when it was opened, so that
/// nobody chooses which of its gates are merged, and when no more come. It decides nothing. Source: Vovk and Wang 2021.
pub fn merged(state: &State, id: &FamilyId) -> Vec<HypothesisEvidence> {
    let manifests = state.fold::<Manifests>();
    let Some(family) = manifests.families.get(id) else {
        return Vec::new();
    };
    let gates = state.fold::<Gates>();
    let mut found: Vec<(&ManifestVersion, HypothesisEvidence, Vec<f64>)> = Vec::new();
    for (member, _) in &family.joined {
        let version = manifests
            .by_id
            .get(member)
            .and_then(ManifestRecord::in_force);
        // What one finite set of units is like says nothing of another's.
        let merges = |version: &&ManifestVersion| {
            let test = version.manifest.test.as_ref();
            test.is_some_and(|test| !test.without_replacement)
        };
        let Some(version) = version.filter(merges) else {
            continue;
        };
        let log_e = evidence(gates.by_id.get(member), manifests.by_id.get(member));
        let same = |(other, _, _): &&mut (&ManifestVersion, HypothesisEvidence, Vec<f64>)| {
            other.h0_digest == version.h0_digest && other.manifest.arms == version.manifest.arms
        };
        if let Some((_, merged, values)) = found.iter_mut().find(same) {
            merged.members.push(member.clone());
            values.push(log_e.value());
            continue;
        }
        let merged = HypothesisEvidence {
            h0_digest: version.h0_digest,
            log_e: 0.0,
            members: vec![member.clone()],
            p: 1.0,
        };
        found.push((version, merged, vec![log_e.value()]));
    }
    let several = found.into_iter().filter(|(_, _, values)| values.len() > 1);
    let merged = several.map(|(_, merged, values)| {
        let log_e = merge::ln_mean(&values, family.members_max);
        HypothesisEvidence {
            log_e,
            p: math::exp(-log_e).min(1.0),
            ..merged
        }
    });
    merged.collect()
}

/// What the generations of an optimisation loop say together: one gate after the other, each on units of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loop {
    /// Whether log e is past 1/alpha of the family for certain: the loop has found an improvement.
    pub found: bool,
    /// Logarithm of the product of their e-values, against "no candidate of these is better".
    pub log_e: f64,
    /// Those that count, in order of registration.
    pub members: Vec<ManifestId>,
    /// `min(1, 1 / e)`.
    pub p: f64,
}

/// The evidence of a loop, of a family by e-LOND; `None` of another, and before a gate of it is opened.
///
/// A member counts where its gate claims that its candidate is better than the baseline, of more than its own finite units
/// and without wealth from before, and where no other member was registered between it and its opening. Whoever was
/// registered afterwards may not take units of an order that was listed before (rule `order`), so no two of these share a
/// unit and each wealth is an e-value given all that came before it; and whether one counts is known before its first
/// unit. It decides nothing: which candidates may be promoted is e-LOND's to say.
pub fn loop_of(state: &State, id: &FamilyId) -> Option<Loop> {
    let manifests = state.fold::<Manifests>();
    let family = manifests.families.get(id)?;
    if family.method != FamilyMethod::Elond {
        return None;
    }
    let gates = state.fold::<Gates>();
    let members = family.joined.iter().filter_map(|(member, _)| {
        let record = manifests.by_id.get(member)?;
        Some((member, record, record.versions.first()?.seq))
    });
    let members: Vec<(&ManifestId, &ManifestRecord, u64)> = members.collect();
    let counts = |(member, record, since): &(&ManifestId, &ManifestRecord, u64)| {
        let gate = gates.by_id.get(*member)?;
        let manifest = &record.bound()?.manifest;
        let test = manifest.test.as_ref()?;
        let alone = !test.without_replacement && test.continuation_of.is_none();
        let between = |seq: u64| *since < seq && seq < gate.opened_seq;
        let fresh = !members.iter().any(|(_, _, other)| between(*other));
        let better = manifest.hypothesis.kind == HypothesisKind::Promote;
        let log_e = evidence(Some(gate), Some(record));
        (alone && fresh && better).then(|| ((*member).clone(), gate.n, log_e.value()))
    };
    let counted: Vec<_> = members.iter().filter_map(counts).collect();
    if counted.is_empty() {
        return None;
    }
    let logs: Vec<f64> = counted.iter().map(|(_, _, log_e)| *log_e).collect();
    let (log_e, n) = (math::sum(&logs), counted.iter().map(|(_, n, _)| n).sum());
    let bar = EvalueThreshold::of_level(u32::try_from(family.alpha).ok()?).ln();
    Some(Loop {
        found: bettor::is_past(n, bettor::FRACTIONS_MAX, log_e, bar),
        log_e,
        members: counted.into_iter().map(|(member, _, _)| member).collect(),
        p: math::exp(-log_e).min(1.0),
    })
}

/// Shares of members by e-LOND: 1 / (t (t + 1)) in millionths, rounded down, as far as they are at least one.
pub fn shares(members: Count) -> Vec<Micro> {
    let share = |t: u64| Micro::new(i64::try_from(1_000_000 / (t * (t + 1))).unwrap_or(0));
    (1..=members.value().min(999)).filter_map(share).collect()
}

/// The event that closes a family now; `None` for a family that was never opened.
pub fn closing(state: &State, id: &FamilyId) -> Option<FamilyClosed> {
    let manifests = state.fold::<Manifests>();
    let family = manifests.families.get(id)?;
    let gates = state.fold::<Gates>();
    let all: Vec<_> = family
        .joined
        .iter()
        .map(|(member, _)| MemberEvidence {
            log_e: evidence(gates.by_id.get(member), manifests.by_id.get(member)),
            member: member.clone(),
        })
        .collect();
    Some(FamilyClosed {
        alpha_micro: Micro::new(family.alpha)?,
        rejected: rejected(state, id, &all),
        evidence: all,
        family: id.clone(),
        members_max: Count::new(family.members_max)?,
        method: family.method,
    })
}
