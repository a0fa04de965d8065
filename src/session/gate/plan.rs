//! What the ledger says of the plan of a gate that is not written yet: its family, and the error rate that is left there.

use clover_event::id::FamilyId;
use clover_event::id::ManifestId;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Template;
use clover_ledger::State;
use clover_num::Micro;
use clover_projection::manifests::Family;
use clover_projection::manifests::Manifests;

use crate::gate::error::GateError;

/// The place of a new gate in its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyShare {
    /// Error rate of the gate.
    pub alpha: Micro,
    /// The family.
    pub family: FamilyId,
    /// Error rate of the family.
    pub family_alpha: Micro,
    /// What the family has left.
    pub left: Micro,
    /// Members that may still join.
    pub members_left: u64,
    /// How the family keeps its error rate.
    pub method: FamilyMethod,
}

/// What the plan of a gate would take from its family, where nothing is left then for members that may still join. A family
/// that gives shares by itself, or whose last place this is, is none of these.
pub fn whole_alpha(state: &State, manifest: &Manifest) -> Option<FamilyShare> {
    let manifests = state.fold::<Manifests>();
    let id = &manifest.multiplicity.as_ref()?.family;
    let (family, alpha) = (manifests.families.get(id)?, manifest.alpha()?);
    let is_gate = manifest.template == Template::Gate;
    let is_member = manifests.by_id.contains_key(&manifest.manifest);
    let members_left = family
        .members_max
        .saturating_sub(family.joined.len() as u64);
    let left = family.alpha_of(state, None);
    let takes_all = family.method == FamilyMethod::Spend && alpha >= left && members_left > 1;
    if !is_gate || is_member || !takes_all {
        return None;
    }
    Some(FamilyShare {
        alpha: Micro::new(alpha)?,
        family: id.clone(),
        family_alpha: Micro::new(family.alpha)?,
        left: Micro::new(left)?,
        members_left,
        method: family.method,
    })
}

/// The share of a gate that joins now: where alpha is spent, an equal part of what is left for the members that may still
/// come; else what the method gives to the next member. Without a name, the only family that is open.
///
/// # Errors
/// [`GateError::Planned`], [`GateError::NoFamily`], [`GateError::NoOpenFamily`], [`GateError::SeveralFamilies`] and [`GateError::FamilySpent`].
pub fn family_share(
    state: &State,
    gate: &ManifestId,
    named: Option<&FamilyId>,
) -> Result<FamilyShare, GateError> {
    let manifests = state.fold::<Manifests>();
    if manifests.by_id.contains_key(gate) {
        return Err(GateError::Planned(gate.clone()));
    }
    let families = &manifests.families;
    let open = || families.iter().filter(|(_, of)| of.closed_seq.is_none());
    let (id, family) = if let Some(id) = named {
        let known = families.get(id);
        (id, known.ok_or_else(|| GateError::NoFamily(id.clone()))?)
    } else {
        let mut all = open();
        let first = all.next().ok_or(GateError::NoOpenFamily)?;
        if all.next().is_some() {
            let names = open().map(|(id, _)| id.clone()).collect();
            return Err(GateError::SeveralFamilies(names));
        }
        first
    };
    let members_left = family
        .members_max
        .saturating_sub(family.joined.len() as u64);
    let left = family.alpha_of(state, None);
    let alpha = share(family, left, members_left);
    let has_place = alpha > 0 && members_left > 0 && family.closed_seq.is_none();
    let micros = [alpha, family.alpha, left].map(Micro::new);
    let ([Some(alpha), Some(family_alpha), Some(left)], true) = (micros, has_place) else {
        return Err(GateError::FamilySpent(id.clone()));
    };
    Ok(FamilyShare {
        alpha,
        family: id.clone(),
        family_alpha,
        left,
        members_left,
        method: family.method,
    })
}

fn share(family: &Family, left: i64, members_left: u64) -> i64 {
    match family.method {
        FamilyMethod::Spend => {
            let members = i64::try_from(members_left.max(1)).unwrap_or(i64::MAX);
            left / members
        }
        _ => left,
    }
}
