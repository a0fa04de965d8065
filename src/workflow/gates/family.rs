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
use crate::projection::manifests::Manifests;

/// Rounding that the arithmetic of a procedure may add, as a share.
const SLACK: f64 = 1e-12;

/// Members whose claims hold, in order of registration; `evidence` is every member's.
pub fn rejected(state: &State, id: &FamilyId, evidence: &[MemberEvidence]) -> Vec<ManifestId> {
    let Some(family) = state.fold::<Manifests>().families.get(id) else {
        return Vec::new();
    };
    let gates = state.fold::<Gates>();
    let decided = |member: &ManifestId| {
        let gate = gates.by_id.get(member);
        gate.and_then(|gate| gate.decided)
            .is_some_and(|one| holds(one.outcome))
    };
    let members = evidence.iter().map(|one| one.member.clone());
    let bar = |level: f64| 1.0 / level * (1.0 + SLACK);
    let alpha = family.alpha as f64 / 1e6;
    // Those that never came have evidence 0: the number of hypotheses was fixed before any was tested.
    let most = usize::try_from(family.members_max)
        .unwrap_or(usize::MAX)
        .max(evidence.len());
    let values: Vec<f64> = evidence
        .iter()
        .map(|one| e_value(one.log_e.value()))
        .collect();
    let holds: Vec<bool> = match family.method {
        FamilyMethod::Elond | FamilyMethod::Spend => {
            members.clone().map(|id| decided(&id)).collect()
        }
        FamilyMethod::Ebh => ebh(&values, most, bar(alpha)),
        FamilyMethod::ClosedEbh => closed_ebh(&values, most, bar(alpha)),
        FamilyMethod::ClosedMean => closed_mean(&values, most, bar(alpha)),
    };
    let found = members.zip(holds).filter(|(_, holds)| *holds);
    found.map(|(member, _)| member).collect()
}

fn e_value(log: f64) -> f64 {
    math::exp(log).min(f64::MAX)
}

/// Members by evidence, most first; of equals the earlier member first.
fn ranked(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    order
}

fn top(values: &[f64], count: usize) -> Vec<bool> {
    let mut found = vec![false; values.len()];
    for at in ranked(values).into_iter().take(count) {
        found[at] = true;
    }
    found
}

/// e-BH: the largest k with `k e_(k) / K >= bar`.
fn ebh(values: &[f64], most: usize, bar: f64) -> Vec<bool> {
    let order = ranked(values);
    let holds = |k: &usize| *k as f64 * values[order[k - 1]] / most as f64 >= bar;
    let count = (1..=values.len()).rev().find(holds).unwrap_or(0);
    top(values, count)
}

/// Closed e-BH: the largest r such that for all j of its r and i of the others, the j least inside and the i least
/// outside sum to at least `(i + j) j bar / r`. Those that never came are outside, with evidence 0.
fn closed_ebh(values: &[f64], most: usize, bar: f64) -> Vec<bool> {
    let order = ranked(values);
    let sorted: Vec<f64> = order.iter().map(|at| values[*at]).collect();
    let holds = |r: &usize| {
        let (inside, outside) = sorted.split_at(*r);
        let absent = most - values.len();
        let ascending = |list: &[f64]| list.iter().rev().copied().collect::<Vec<_>>();
        let mut others = vec![0.0; absent];
        others.extend(ascending(outside));
        let (inside, others) = (prefix_sums(&ascending(inside)), prefix_sums(&others));
        (1..=*r).all(|j| {
            (0..others.len())
                .all(|i| inside[j] + others[i] >= (i + j) as f64 * j as f64 * bar / *r as f64)
        })
    };
    let count = (1..=values.len()).rev().find(holds).unwrap_or(0);
    top(values, count)
}

/// Closed testing by means: a member holds when its mean with any number of the least others is at least the bar.
fn closed_mean(values: &[f64], most: usize, bar: f64) -> Vec<bool> {
    let holds = |at: usize| {
        let mut others = vec![0.0; most - values.len()];
        let rest = values.iter().enumerate().filter(|(other, _)| *other != at);
        others.extend(rest.map(|(_, value)| *value));
        others.sort_by(f64::total_cmp);
        let sums = prefix_sums(&others);
        let mut means = (0..sums.len()).map(|j| (values[at] + sums[j]) / (j + 1) as f64);
        means.all(|mean| mean >= bar)
    };
    (0..values.len()).map(holds).collect()
}

/// Sums of the first 0, 1, 2 and so on.
fn prefix_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    let mut total = 0.0;
    for value in values {
        total = (total + value).min(f64::MAX);
        sums.push(total);
    }
    sums
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
