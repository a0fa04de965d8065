//! The closing of a family: which of its members' claims hold by its registered procedure.

use crate::event::id::FamilyId;
use crate::event::id::ManifestId;
use crate::event::payload::decision::FamilyClosed;
use crate::event::payload::decision::MemberEvidence;
use crate::event::payload::manifest::FamilyMethod;
use crate::ledger::State;
use crate::num::Count;
use crate::num::Micro;
use crate::num::math;
use crate::projection::gates::Gate;
use crate::projection::gates::Gates;
use crate::projection::gates::holds;
use crate::projection::manifests::FAMILY_MAX;
use crate::projection::manifests::Family;
use crate::projection::manifests::Manifests;
use crate::stats::eprocess::family as procedures;
use crate::stats::eprocess::merge::EValues;

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

/// The event that closes a family now; `None` for a family that was never opened.
pub fn closing(state: &State, id: &FamilyId) -> Option<FamilyClosed> {
    let family = state.fold::<Manifests>().families.get(id)?;
    let gates = state.fold::<Gates>();
    let evidence: Vec<_> = family
        .joined
        .iter()
        .map(|(member, _)| MemberEvidence {
            log_e: gates.by_id.get(member).map(Gate::log_e).unwrap_or_default(),
            member: member.clone(),
        })
        .collect();
    Some(FamilyClosed {
        alpha_micro: Micro::new(family.alpha)?,
        rejected: rejected(state, id, &evidence),
        evidence,
        family: id.clone(),
        members_max: Count::new(family.members_max)?,
        method: family.method,
    })
}
