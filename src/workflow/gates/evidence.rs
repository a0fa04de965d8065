//! What a gate's observations are worth: computed from the integers that its fold keeps, at a look and again by the
//! rule that judges it.

use std::collections::BTreeMap;

use clover_event::id::ManifestId;
use clover_event::payload::decision::LogWealth;
use clover_event::payload::decision::Standing;
use clover_event::payload::manifest::Manifest;
use clover_ledger::State;
use clover_num::Finite;
use clover_num::Probability;
use clover_projection::gates;
use clover_projection::gates::Gate;
use clover_projection::gates::Gates;
use clover_projection::manifests::Family;
use clover_projection::manifests::ManifestRecord;
use clover_projection::manifests::Manifests;
use clover_stats::eprocess;
use clover_stats::eprocess::Hypothesis;
use clover_stats::eprocess::Looks;
use clover_stats::eprocess::Verdict;

use crate::gates::design;
use crate::gates::design::Untestable;

/// Log wealth is recorded within this magnitude; what a finite set makes impossible stands as it.
pub const LOG_MAX: f64 = 1e9;

/// What a look finds.
#[derive(Clone, Debug, PartialEq)]
pub struct LookEvidence {
    /// Ends of the confidence sequence, in millionths of the improvement.
    pub cs: (i64, i64),
    /// Wealth of each guardrail.
    pub guardrails: Vec<Finite>,
    /// Evidence for the claim; 0 for a measurement.
    pub log_e: Finite,
    /// Wealth of each test.
    pub log_wealth: LogWealth,
    /// Always-valid p value.
    pub p: Probability,
    /// Where the gate stands.
    pub standing: Standing,
}

/// A gate with its manifest and family.
#[derive(Clone, Copy, Debug)]
pub struct GateContext<'a> {
    /// The family.
    pub family: Option<&'a Family>,
    /// The gate.
    pub gate: &'a Gate,
    /// Its manifest.
    pub record: &'a ManifestRecord,
}

/// Finds an opened gate.
pub fn known<'a>(state: &'a State, id: &ManifestId) -> Option<GateContext<'a>> {
    let gate = state.fold::<Gates>().by_id.get(id)?;
    let manifests = state.fold::<Manifests>();
    let record = manifests.by_id.get(id)?;
    Some(GateContext {
        family: family_of(manifests, record),
        gate,
        record,
    })
}

/// The family of a manifest.
pub fn family_of<'a>(manifests: &'a Manifests, record: &ManifestRecord) -> Option<&'a Family> {
    family_named(manifests, &record.versions.first()?.manifest)
}

/// The family that a manifest names, where it was opened.
pub fn family_named<'a>(manifests: &'a Manifests, manifest: &Manifest) -> Option<&'a Family> {
    let of = manifest.multiplicity.as_ref()?;
    manifests.families.get(&of.family)
}

/// A log wealth as it is recorded.
pub fn recorded(log: f64) -> Finite {
    let within = log.clamp(-LOG_MAX, LOG_MAX);
    Finite::new(within).unwrap_or_default()
}

/// The running test of a gate whose verdicts fall at these looks, with everything observed so far and no look at it.
///
/// Differences are taken with their counts where the order does not matter, and in order where it does.
///
/// # Errors
/// [`Untestable`].
pub fn running(
    of: GateContext<'_>,
    looks: Looks,
    sequence: bool,
) -> Result<eprocess::Gate, Untestable> {
    let version = of.record.in_force();
    let manifest = &version
        .ok_or_else(|| Untestable {
            expected: "a version in force".to_owned(),
            found: "none".to_owned(),
        })?
        .manifest;
    let carried = of.gate.carried.as_ref();
    let design = design::of(manifest, &of.gate.test, of.family, carried, looks)?;
    let mut running = if sequence {
        eprocess::Gate::open(design)
    } else {
        eprocess::Gate::verdicts_only(design)
    };
    let ordered = of.gate.is_ordered();
    let streams = of.gate.streams.iter().map(|stream| {
        if ordered {
            stream.sequence.iter().map(|delta| (*delta, 1)).collect()
        } else {
            stream.levels.clone()
        }
    });
    let within = within(of.gate, manifest);
    running
        .recall(&streams.collect::<Vec<_>>(), &within, &of.gate.strata)
        .map_err(|error| Untestable {
            expected: "observations within the registered terms".to_owned(),
            found: error.to_string(),
        })?;
    Ok(running)
}

/// The differences of the main metric with how much more each improvement may be, where draws of some units are missing; else
/// empty.
fn within(gate: &Gate, manifest: &Manifest) -> Vec<(i64, i64, u64)> {
    let (Some(metric), Some(stream)) = (&manifest.metric, gate.streams.first()) else {
        return Vec::new();
    };
    if gate.absent.is_empty() {
        return Vec::new();
    }
    if gate.is_ordered() {
        let absent: BTreeMap<u64, u64> = gate.absent.iter().map(|(t, _, n)| (*t, *n)).collect();
        let slack = |t: u64| absent.get(&t).map_or(0, |n| gates::slack(metric, *n));
        let deltas = (1..).zip(&stream.sequence);
        return deltas.map(|(t, delta)| (*delta, slack(t), 1)).collect();
    }
    let levels = stream.levels.iter().map(|(delta, n)| ((*delta, 0), *n));
    let mut counts: BTreeMap<(i64, i64), u64> = levels.collect();
    for (_, delta, absent) in &gate.absent {
        let stands = counts.entry((*delta, 0)).or_default();
        *stands = stands.saturating_sub(1);
        *counts
            .entry((*delta, gates::slack(metric, *absent)))
            .or_default() += 1;
    }
    let counts = counts.into_iter().filter(|(_, n)| *n > 0);
    counts
        .map(|((delta, slack), n)| (delta, slack, n))
        .collect()
}

/// What a look at the gate finds now.
///
/// # Errors
/// [`Untestable`].
pub fn found(of: GateContext<'_>) -> Result<LookEvidence, Untestable> {
    let mut running = running(of, Looks::At(vec![of.gate.n.max(1)]), true)?;
    if of.gate.n > 0 {
        running.settle();
    }
    let looked = running.look();
    let before = of.gate.look.as_ref();
    let part = |part| looked.part(part).map(|one| recorded(one.ln_wealth));
    let guardrails = (0..looked.parts.len())
        .map_while(|at| part(Hypothesis::Guardrail(at)))
        .collect();
    let claim = looked.claim.unwrap_or(eprocess::Evidence {
        ln_wealth: 0.0,
        ln_peak: 0.0,
    });
    let now = Probability::new(claim.p_value()).unwrap_or_default();
    let p = match before {
        Some(before) if before.p.value() < now.value() => before.p,
        _ => now,
    };
    let cs = looked
        .interval
        .map_or((0, 0), |bounds| (bounds.low, bounds.high));
    let cs = before.map_or(cs, |before| {
        (cs.0.max(before.cs_lo), cs.1.min(before.cs_hi))
    });
    Ok(LookEvidence {
        cs,
        guardrails,
        log_e: recorded(claim.ln_wealth),
        log_wealth: LogWealth {
            claim: part(Hypothesis::Claim),
            futile: part(Hypothesis::Futile),
            kill: part(Hypothesis::Kill),
            second: part(Hypothesis::Second),
        },
        p,
        standing: standing(looked.verdict, looked.leading),
    })
}

/// Where a gate stands by a verdict.
pub fn standing(verdict: Verdict, leading: bool) -> Standing {
    match verdict {
        Verdict::Promote => Standing::Promote,
        Verdict::NonInferior => Standing::Noninferior,
        Verdict::Different => Standing::Different,
        Verdict::Equivalent => Standing::Equivalent,
        Verdict::Kill => Standing::Kill,
        Verdict::Futile => Standing::Futile,
        Verdict::Undecided => Standing::UndecidedAtNMax,
        Verdict::Continue if leading => Standing::Leading,
        Verdict::Continue => Standing::Continue,
    }
}
