//! The events of a gate's life, made from what is recorded: units and their order, the opening, observations, looks,
//! decisions, continuations.

use std::collections::BTreeMap;
use std::ops::Range;

use clover_event::Payload;
use clover_event::SeenCheckpoint;
use clover_event::id::DesignId;
use clover_event::id::ItemId;
use clover_event::id::ManifestId;
use clover_event::id::Root;
use clover_event::id::StratumId;
use clover_event::payload::decision::EvidenceClass;
use clover_event::payload::decision::GateContinued;
use clover_event::payload::decision::GateDecided;
use clover_event::payload::decision::GateEstimated;
use clover_event::payload::decision::GateLooked;
use clover_event::payload::decision::Grade;
use clover_event::payload::decision::Outcome;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::gate::DrawnFrom;
use clover_event::payload::gate::GateOpened;
use clover_event::payload::gate::GateSource;
use clover_event::payload::gate::OrderDrawn;
use clover_event::payload::gate::OrderListed;
use clover_event::payload::gate::Reading;
use clover_event::payload::gate::UnitsListed;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::Metric;
use clover_ground::merkle::Frontier;
use clover_ground::time::Timestamp;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::Count;
use clover_num::Micro;
use clover_projection::gates;
use clover_projection::manifests::ManifestVersion;
use clover_projection::manifests::Manifests;
use clover_projection::orders;
use clover_projection::splits::cluster_leaf;

use crate::gates::design::Untestable;
use crate::gates::evidence;
use crate::gates::evidence::GateContext;

/// Bytes of unit names in one event: half of what a body holds.
const LISTED_BYTES: usize = 16_000;

/// The units of a confirm set, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// The stratum of each unit, where they have some.
    pub strata: Option<Vec<StratumId>>,
    /// In order.
    pub units: Vec<ItemId>,
}

impl Confirm {
    /// Its Merkle root.
    pub fn root(&self) -> Root {
        let Some(strata) = &self.strata else {
            return root(&self.units);
        };
        let mut tree = Frontier::new();
        for (unit, stratum) in self.units.iter().zip(strata) {
            tree.push(orders::stratum_leaf(unit, stratum));
        }
        Root(tree.root())
    }

    /// How many units each stratum has.
    pub fn counts(&self) -> BTreeMap<&StratumId, u64> {
        let mut counts = BTreeMap::new();
        for stratum in self.strata.iter().flatten() {
            *counts.entry(stratum).or_default() += 1;
        }
        counts
    }
}

/// Merkle root of units in their given order.
pub fn root(units: &[ItemId]) -> Root {
    let mut tree = Frontier::new();
    for unit in units {
        tree.push(cluster_leaf(unit));
    }
    Root(tree.root())
}

fn count(value: usize) -> Count {
    Count::new(value as u64).expect("BUG: nobody holds 2^53 units")
}

/// Bytes that a name takes in an event: each of its quotes and backslashes takes two, and its own quotes and a comma three.
fn bytes_of(name: &str) -> usize {
    2 * name.len() + 3
}

/// Places of units in parts that one event each can hold, where each unit takes so many bytes.
fn parts(units: usize, bytes_at: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let (mut found, mut from, mut bytes) = (Vec::new(), 0, 0);
    for at in 0..units {
        bytes += bytes_at(at);
        if bytes > LISTED_BYTES || at + 1 == units {
            found.push(from..at + 1);
            (from, bytes) = (at + 1, 0);
        }
    }
    found
}

/// The events that list units by name.
pub fn list_units(confirm: &Confirm) -> Vec<Payload> {
    let confirm_root = confirm.root();
    let strata = confirm.strata.as_deref();
    let bytes_at = |at: usize| {
        let stratum = strata.map_or(0, |strata| bytes_of(strata[at].as_str()));
        bytes_of(confirm.units[at].as_str()) + stratum
    };
    let parts = parts(confirm.units.len(), bytes_at).into_iter();
    let listed = parts.map(|part| UnitsListed {
        confirm_root,
        first: count(part.start),
        strata: strata.map(|strata| strata[part.clone()].to_vec()),
        units: confirm.units[part].to_vec(),
    });
    listed.map(Payload::from).collect()
}

/// The events that draw the order of a version's units; `None` without confirm data.
pub fn draw(bound: &ManifestVersion, beacon: DrawnFrom, units: &[ItemId]) -> Option<Vec<Payload>> {
    let data = bound.manifest.data.as_ref()?;
    let seed = orders::seed(bound.digest, data.confirm_root, &beacon);
    let mut ordered = units.to_vec();
    ordered.sort_by_cached_key(|unit| orders::key(seed, unit));
    let parts = parts(ordered.len(), |at| bytes_of(ordered[at].as_str())).into_iter();
    let listed = parts.map(|part| OrderListed {
        digest: bound.digest,
        first: count(part.start),
        units: ordered[part].to_vec(),
    });
    let mut events: Vec<Payload> = listed.map(Payload::from).collect();
    events.push(
        OrderDrawn {
            beacon,
            confirm_root: data.confirm_root,
            digest: bound.digest,
            n_units: count(units.len()),
            permutation_root: root(&ordered),
            seed,
        }
        .into(),
    );
    Some(events)
}

/// The event that opens the gate of a version in force; `None` for a manifest that is no gate's.
pub fn open(version: &ManifestVersion, sources: Vec<GateSource>) -> Option<GateOpened> {
    Some(GateOpened {
        digest: version.digest,
        gate: version.manifest.manifest.clone(),
        sources,
        test: version.manifest.test.clone()?,
    })
}

/// A reading from the values of each draw in both arms; `None` stands for a draw that is missing.
pub fn reading(
    metric: &Metric,
    baseline: &[Option<Micro>],
    candidate: &[Option<Micro>],
) -> Option<Reading> {
    let values = |draws: &[Option<Micro>], role| {
        let stands = gates::missing_value(metric, role);
        let values: Vec<_> = draws.iter().map(|draw| draw.unwrap_or(stands)).collect();
        let missing = draws.iter().enumerate().filter(|(_, draw)| draw.is_none());
        let missing: Vec<_> = missing.map(|(at, _)| count(at)).collect();
        (values, (!missing.is_empty()).then_some(missing))
    };
    let (baseline, baseline_missing) = values(baseline, ArmRole::Baseline);
    let (candidate, candidate_missing) = values(candidate, ArmRole::Candidate);
    let sum = |values: &[Micro]| values.iter().map(|value| value.value()).sum::<i64>();
    let has_missing = baseline_missing.is_some() || candidate_missing.is_some();
    let delta = gates::delta(metric, [sum(&baseline), sum(&candidate)], has_missing);
    Some(Reading {
        baseline,
        baseline_missing,
        candidate,
        candidate_missing,
        delta_micro: Micro::new(delta)?,
    })
}

/// What a look at the gate says now.
///
/// # Errors
/// [`Untestable`].
pub fn look(of: GateContext<'_>) -> Result<GateLooked, Untestable> {
    let found = evidence::found(of)?;
    let none = |name: &str| Untestable {
        expected: name.to_owned(),
        found: "none".to_owned(),
    };
    let version = of
        .record
        .in_force()
        .ok_or_else(|| none("a version in force"))?;
    let test = version
        .manifest
        .test
        .as_ref()
        .ok_or_else(|| none("section test"))?;
    let micro = |value: i64| Micro::new(value).ok_or_else(|| none("bounds within the scale"));
    Ok(GateLooked {
        alpha_micro: test.alpha_micro,
        bettor: of.gate.test.bettor.clone(),
        cs_hi_micro: micro(found.cs.1)?,
        cs_lo_micro: micro(found.cs.0)?,
        digest: version.digest,
        gate: version.manifest.manifest.clone(),
        guardrails: (!found.guardrails.is_empty()).then_some(found.guardrails),
        log_e: found.log_e,
        log_wealth: found.log_wealth,
        n: Count::new(of.gate.n).ok_or_else(|| none("a number of units"))?,
        p: found.p,
        standing: found.standing,
        state_digest: of.gate.state_digest,
    })
}

/// How the gate ends: because its manifest was superseded, because its sealed plan has lapsed, whatever its looks found, or
/// by its last look; `None` while it goes on.
pub fn decide(of: GateContext<'_>, has_lapsed: bool) -> Option<GateDecided> {
    let look = of.gate.look.as_ref().filter(|look| look.n == of.gate.n);
    let outcome = match &of.record.superseded_by {
        Some(_) => Outcome::Superseded,
        None if has_lapsed => Outcome::Void,
        None => gates::outcome_of(look?.standing)?,
    };
    Some(GateDecided {
        class: EvidenceClass::Exact,
        digest: of.record.in_force()?.digest,
        gate: of.record.in_force()?.manifest.manifest.clone(),
        log_e: of.gate.log_e(),
        n: Count::new(of.gate.n)?,
        outcome,
    })
}

/// What labels of a design shall say beside a decided gate, of its first `n` units: everything that is registered and drawn.
/// `None` before the decision, and where the manifest says not how units are drawn for labels.
pub fn estimated(
    state: &State,
    of: GateContext<'_>,
    (design, n): (DesignId, u64),
    (seen, now): (SeenCheckpoint, Timestamp),
) -> Option<GateEstimated> {
    let version = of.record.in_force()?;
    let manifest = &version.manifest;
    let (beacon, seed) = gates::estimated::drawn(state, of.gate, of.record, Some(seen))?;
    Some(GateEstimated {
        alpha_micro: manifest.test.as_ref()?.alpha_micro,
        beacon,
        class: EvidenceClass::Asymptotic,
        cs_hi_micro: Micro::default(),
        cs_lo_micro: Micro::default(),
        design,
        digest: version.digest,
        gate: manifest.manifest.clone(),
        grade: gates::estimated::graded(of.gate, of.record, state, now),
        labels: Count::default(),
        n: Count::new(n)?,
        pi_micro: manifest.data.as_ref()?.label_policy.as_ref()?.pi_min_micro,
        seed,
        shows: false,
    })
}

/// The event by which an opened gate goes on from the one that its manifest names; `None` where it names none.
pub fn proceed(state: &State, of: GateContext<'_>) -> Option<GateContinued> {
    let version = of.record.in_force()?;
    let digest = version.manifest.test.as_ref()?.continuation_of?;
    let (parent, _) = state.fold::<Manifests>().of_digest(digest)?;
    let parent: ManifestId = parent.clone();
    let from = evidence::known(state, &parent)?;
    Some(GateContinued {
        carried: from.gate.look.as_ref()?.log_wealth,
        gate: version.manifest.manifest.clone(),
        h0_digest: version.h0_digest,
        parent,
    })
}

/// The promotion of the first gate's candidate on these gates, in order and each once, with the least of their grades at a
/// time; `None` where one of them is not open, or the first has no candidate. Whether their claims hold is the rule's to say.
pub fn promote(state: &State, ids: &[ManifestId], now: Timestamp) -> Option<PromotionIssued> {
    let mut gates = ids.to_vec();
    gates.sort();
    gates.dedup();
    let mut grade = Grade::Certified;
    for id in &gates {
        let of = evidence::known(state, id)?;
        grade = gates::least(grade, gates::graded(of.gate, of.record, state, now));
    }
    let first = evidence::known(state, gates.first()?)?;
    let mut arms = first.record.in_force()?.manifest.arms.iter().flatten();
    let candidate = arms.find(|arm| arm.role == ArmRole::Candidate)?;
    let tests = state.asks(Question::OneFamily);
    Some(PromotionIssued {
        candidate_digest: candidate.artifact_digest,
        expires_at: None,
        gates,
        grade,
        tests: tests.then(|| count(gates::tests_of(state, candidate.artifact_digest).len())),
    })
}
