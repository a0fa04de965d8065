//! Drift of judges: the newest checks, and the rules `thresholds` and `drift`, by which diagnostics are judged by the
//! numbers that a manifest registered, and a judge that failed a check makes its open gates stale.

pub mod anchors;
pub mod environments;
mod first;
pub mod usual;

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::ManifestId;
use clover_event::payload::Verdict;
use clover_event::payload::audit::AuditTerms;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::decision::Outcome;
use clover_event::payload::drift::DriftPlan;
use clover_event::payload::drift::JudgeDriftChecked;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::gate::GateSource;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::ope::OpeTerms;
use clover_event::payload::overlap::OverlapThresholds;
use clover_event::registry;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::RequiredFact;
use clover_ledger::Rule;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::designs::Designs;
pub use crate::drifts::first::AuditPlan;
pub use crate::drifts::first::audit_plan;
use crate::drifts::first::check_first;
pub use crate::drifts::first::first_drift;
pub use crate::drifts::first::first_overlap;
pub use crate::drifts::first::first_planned;
use crate::gates::Gate;
use crate::gates::Gates;
use crate::manifests::ManifestRecord;
use crate::manifests::Manifests;
use crate::manifests::estimated;

/// Kinds that move it.
pub const READS: &[Kind] = &[Kind::JudgeDriftChecked];
/// Level of a family of environments whose plan says no other, in millionths (CLOVER v1.1, section 8).
pub const USUAL_Q: i64 = 100_000;
/// The part of a manifest that a deviation names when it says how the drift of a judge is handled.
pub const JUDGE_PATH: &str = "metric.judge_digest";

/// Checks of one judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftChecks {
    /// The entry of the newest check that failed.
    pub failed_seq: Option<u64>,
    /// The entry of the newest check.
    pub newest_seq: u64,
    /// What the newest says.
    pub verdict: Verdict,
}

/// Checks by experiment and judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Drifts {
    /// By experiment, then judge.
    pub by_experiment: BTreeMap<ExperimentId, BTreeMap<JudgeId, DriftChecks>>,
}

impl Drifts {
    /// Checks of a judge.
    pub fn of(&self, experiment: &ExperimentId, judge: &JudgeId) -> Option<&DriftChecks> {
        self.by_experiment.get(experiment)?.get(judge)
    }
}

impl Fold for Drifts {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        let (Payload::JudgeDriftChecked(said), Some(id)) =
            (&event.payload, &event.header.experiment)
        else {
            return;
        };
        let of = self.by_experiment.entry(id.clone()).or_default();
        let verdict = said.verdicts.whole();
        let failed = (verdict == Verdict::Fail).then_some(seq);
        let before = of.get(&said.judge).and_then(|checked| checked.failed_seq);
        let checked = DriftChecks {
            failed_seq: failed.or(before),
            newest_seq: seq,
            verdict,
        };
        of.insert(said.judge.clone(), checked);
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}

/// Why a gate is stale: a judge of it, and the check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The failed check.
    pub check_seq: u64,
    /// The judge.
    pub judge: JudgeId,
}

/// Whether a deviation that was recorded after an entry, and known of after it, says how drift is handled.
fn is_handled(record: &ManifestRecord, seq: u64) -> bool {
    record
        .deviations
        .iter()
        .any(|of| of.rule_path == JUDGE_PATH && of.seq > seq && of.known_at_seq > seq)
}

/// Whether a gate with these sources is stale. `opened` is the entry that opened it: of an open gate every failed check
/// since counts, whatever a later one says; of a gate that is to be opened, the newest.
pub fn stale(
    state: &State,
    experiment: &ExperimentId,
    record: &ManifestRecord,
    sources: &[GateSource],
    opened: Option<u64>,
) -> Option<Stale> {
    let drifts = state.fold::<Drifts>();
    sources.iter().find_map(|source| {
        // A source without a judge, or of a judge that was never checked or never failed, makes nothing stale.
        let judge = source.judge.as_ref()?;
        let checked = drifts.of(experiment, judge)?;
        let check_seq = checked.failed_seq?;
        let counts = match opened {
            Some(opened) => check_seq > opened,
            None => checked.verdict == Verdict::Fail,
        };
        (counts && !is_handled(record, check_seq)).then(|| Stale {
            check_seq,
            judge: judge.clone(),
        })
    })
}

/// Whether an opened gate is stale; one that nobody opened is not.
pub fn stale_gate(state: &State, gate: &ManifestId) -> Option<Stale> {
    let of = state.fold::<Gates>().by_id.get(gate)?;
    found_stale(state, gate, of).ok().flatten()
}

/// Whether an opened gate is stale, by its manifest and experiment.
fn found_stale(state: &State, gate: &ManifestId, of: &Gate) -> Result<Option<Stale>, Unmet> {
    let record = state.fold::<Manifests>().by_id.get(gate);
    let record = record.required(&format!("the manifest of the opened gate {gate}"))?;
    let experiment = of.experiment.as_ref();
    let experiment = experiment.required(&format!("the experiment of the opened gate {gate}"))?;
    let opened = Some(of.opened_seq);
    Ok(stale(state, experiment, record, &of.sources, opened))
}

/// The rules `thresholds` and `drift`.
#[derive(Clone, Copy, Debug)]
pub struct DriftRules;

impl Rule for DriftRules {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let payload = &event.event.payload;
        breaches.take(
            RuleName::Thresholds,
            check_graded(state, experiment, payload),
        );
        breaches.take(RuleName::Drift, check_drift(state, experiment, payload));
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        if let (Payload::JudgeDriftChecked(said), Some(experiment)) =
            (&event.event.payload, &event.event.header.experiment)
        {
            let fields = [said.anchors.as_str()];
            facts.push(Fact::Needs {
                digest: registry::natural_key_of(Kind::AnchorSetRegistered, experiment, &fields),
                before: event.seq,
                rule: RuleName::Drift,
            });
        }
    }
}

fn check_drift(
    state: &State,
    experiment: &ExperimentId,
    payload: &Payload,
) -> clover_ledger::RuleAnswer {
    match payload {
        Payload::JudgeDriftChecked(said) => check_follows(said),
        Payload::GateOpened(said) => {
            // A gate without a manifest is refused by the rule `gate`.
            let Some(record) = state.fold::<Manifests>().by_id.get(&said.gate) else {
                return Ok(());
            };
            let stale = stale(state, experiment, record, &said.sources, None);
            check_fresh(&said.gate, stale)
        }
        Payload::GateObserved(said) => check_criterion(state, &said.gate),
        Payload::GateLooked(said) => check_criterion(state, &said.gate),
        Payload::GateDecided(said) => {
            let claims_nothing = matches!(said.outcome, Outcome::Superseded | Outcome::Void);
            if claims_nothing {
                return Ok(());
            }
            check_criterion(state, &said.gate)
        }
        _ => Ok(()),
    }
}

fn check_criterion(state: &State, gate: &ManifestId) -> clover_ledger::RuleAnswer {
    // An act on a gate that nobody opened is refused by the rule `gate`.
    let Some(of) = state.fold::<Gates>().by_id.get(gate) else {
        return Ok(());
    };
    check_fresh(gate, found_stale(state, gate, of)?)
}

/// A stale gate waits for a deviation.
fn check_fresh(gate: &ManifestId, stale: Option<Stale>) -> clover_ledger::RuleAnswer {
    let Some(Stale { check_seq, judge }) = stale else {
        return Ok(());
    };
    unmet(
        format!(
            "a manifest.deviated of {gate} on {JUDGE_PATH}, known after seq {check_seq}, that says how the drift is handled"
        ),
        format!(
            "none: judge {judge} failed its drift check at seq {check_seq}, and the gate is stale"
        ),
    )
}

/// Verdicts follow from the figures beside them, and every row has its score.
fn check_follows(said: &JudgeDriftChecked) -> clover_ledger::RuleAnswer {
    let rows = said.scores_micro.len() as u64;
    let by_policy = said.policies.iter().map(|of| of.rows.value());
    let by_policy = by_policy.fold(0_u64, u64::saturating_add);
    ensure!(
        (said.rows.rows.value(), by_policy) == (rows, rows),
        format!("figures of all {rows} scores"),
        format!("{} rows, {by_policy} by policy", said.rows.rows)
    );
    let least = said.terms.plan.tau_min_micro.value() as f64 / 1e6;
    let ranks = match said.kendall_tau {
        None => Verdict::Inconclusive,
        Some(tau) if tau.value() < least => Verdict::Fail,
        Some(_) => Verdict::Pass,
    };
    let drifts = said.policies.iter().any(|of| of.charted.drifts) || said.rows.drifting.value() > 0;
    let residuals = if drifts { Verdict::Fail } else { Verdict::Pass };
    let stray = said.unversioned.value() > 0;
    let version = match said.asked {
        _ if stray => Verdict::Fail,
        None => Verdict::NotChecked,
        Some(_) => said.verdicts.version,
    };
    let pairs = [
        ("ranks", ranks, said.verdicts.ranks),
        ("residuals", residuals, said.verdicts.residuals),
        ("version", version, said.verdicts.version),
    ];
    for (name, due, found) in pairs {
        ensure!(
            due == found,
            format!("{name} {}", canon::word(&due)),
            canon::word(&found)
        );
    }
    Ok(())
}

/// Diagnostics are judged by the numbers that a manifest of the experiment registers, else by the usual ones; estimates and
/// comparisons are computed as it says.
fn check_graded(
    state: &State,
    experiment: &ExperimentId,
    payload: &Payload,
) -> clover_ledger::RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let table_9 = Some(OverlapThresholds::default());
    if state.asks(Question::FirstThresholds) {
        let overlap = |terms: &OpeTerms| {
            let plan = first_overlap(manifests, experiment);
            check_first(
                plan,
                &OverlapThresholds::default(),
                (terms.thresholds, terms.manifest),
            )
        };
        match payload {
            Payload::JudgeDriftChecked(said) => {
                let plan = first_drift(manifests, experiment);
                let found = (said.terms.plan, said.terms.manifest);
                return check_first(plan, &DriftPlan::default(), found);
            }
            Payload::OpeDiagnosed(said) => return overlap(&said.terms),
            Payload::OpeEstimated(said) => return overlap(&said.terms),
            _ => {}
        }
    }
    match payload {
        Payload::JudgeDriftChecked(said) => {
            let usual = Some(DriftPlan::default());
            let found = (said.terms.plan, said.terms.manifest);
            check_registered(manifests, experiment, drift_plan, usual, found)
        }
        Payload::OpeDiagnosed(said) => {
            let found = (said.terms.thresholds, said.terms.manifest);
            check_registered(manifests, experiment, overlap_plan, table_9, found)
        }
        Payload::OpeEstimated(said) => {
            let found = (said.terms.thresholds, said.terms.manifest);
            check_registered(manifests, experiment, overlap_plan, table_9, found)
        }
        Payload::EnvironmentsTested(said) => environments::check(state, experiment, said),
        Payload::TransportTested(said) => check_audit(state, experiment, said),
        Payload::EstimateRecorded(said) => estimated::check_weight(state, experiment, &said.terms),
        Payload::ContrastRecorded(said) => estimated::check_contrast(state, experiment, said),
        _ => Ok(()),
    }
}

/// An audit is graded by the plan that was in force first, before a probe of its design was open. One that came later plans
/// none of it; where there is none, the usual numbers hold.
fn check_audit(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
) -> clover_ledger::RuleAnswer {
    if state.asks(Question::FirstPlan) {
        return check_first_plan(state, experiment, said);
    }
    let manifests = state.fold::<Manifests>();
    let opened = probe_opened(state, experiment, &said.design);
    let is_early = |id: &ManifestId| {
        let record = manifests.by_id.get(id);
        record.is_some_and(|record| record.plans_audits_before(opened))
    };
    let named = said.audit.manifest.and_then(|of| manifests.of_digest(of));
    if let (Some((id, _)), Some(opened)) = (named, opened) {
        ensure!(
            is_early(id),
            format!(
                "a plan of audits in force before the first probe of {} was open, at seq {opened}",
                said.design
            ),
            format!("{id}, in force later")
        );
    }
    let planned = |of: &Manifest| audit(of).filter(|_| is_early(&of.manifest));
    let found = (numbers(&said.audit), said.audit.manifest);
    check_registered(manifests, experiment, planned, None, found)
}

fn check_first_plan(
    state: &State,
    experiment: &ExperimentId,
    said: &TransportTested,
) -> clover_ledger::RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let opened = probe_opened(state, experiment, &said.design);
    let opened = opened.required("a label of the design that is open")?;
    match audit_plan(manifests, experiment, opened) {
        AuditPlan::Graded(version) => {
            let id = &version.manifest.manifest;
            ensure!(
                said.audit.manifest == Some(version.digest),
                format!(
                    "the digest {} of {id}, the plan of audits that was in force first",
                    version.digest
                ),
                said.audit
                    .manifest
                    .map_or("none".to_owned(), |of| of.to_string())
            );
            ensure!(
                audit(&version.manifest) == Some(numbers(&said.audit)),
                format!("the thresholds that {id} registers"),
                "others"
            );
            if let Some(plan) = &version.manifest.transport {
                environments::check_families(state, experiment, said, plan)?;
            }
        }
        AuditPlan::Withdrawn(id) => {
            check_no_plan(said)?;
            ensure!(
                said.state != TransportState::Pass,
                format!("no pass: {id} planned this audit, and was changed after a probe was open"),
                "a pass"
            );
        }
        AuditPlan::Unplanned => {
            check_no_plan(said)?;
            usual::check_usual(state, experiment, said)?;
        }
    }
    Ok(())
}

fn check_no_plan(said: &TransportTested) -> clover_ledger::RuleAnswer {
    let Some(digest) = said.audit.manifest else {
        return Ok(());
    };
    unmet(
        "no manifest: none that is in force planned audits before a probe was open",
        digest.to_string(),
    )
}

/// The entry by which a probe of a design was open, after which no plan counts; `None` where the rulebook in force does not ask.
pub fn probe_opened(state: &State, experiment: &ExperimentId, design: &DesignId) -> Option<u64> {
    let design = state.fold::<Designs>().design(experiment, design);
    let opened = design.and_then(|design| {
        if state.asks(Question::OneProbe) {
            design.opened()
        } else {
            design.first_open_seq
        }
    });
    opened.filter(|_| state.asks(Question::PlannedProbes))
}

/// What an audit is graded by.
type AuditNumbers = (Micro, u64, u64, Option<Micro>);

fn numbers(of: &AuditTerms) -> AuditNumbers {
    (
        of.alpha_micro,
        of.clusters_min.value(),
        of.family_size.value(),
        of.margin_micro,
    )
}

fn audit(of: &Manifest) -> Option<AuditNumbers> {
    let plan = of.transport.as_ref()?;
    Some((
        plan.alpha_micro,
        plan.clusters_min.value(),
        plan.family_size.value(),
        Some(plan.margin_micro),
    ))
}

/// Manifests in force of an experiment that register some numbers, with the digests of their versions.
pub fn planned<'a, T>(
    manifests: &'a Manifests,
    experiment: &'a ExperimentId,
    of: impl Fn(&Manifest) -> Option<T> + 'a,
) -> impl Iterator<Item = (&'a ManifestId, Digest, T)> {
    let in_force = manifests.in_force_of(experiment);
    in_force.filter_map(move |(id, version)| {
        let numbers = of(&version.manifest)?;
        Some((id, version.digest, numbers))
    })
}

/// Numbers that checks of drift are judged by.
pub fn drift_plan(of: &Manifest) -> Option<DriftPlan> {
    of.diagnostics.as_ref()?.drift
}

/// Numbers that gates of overlap are judged by.
pub fn overlap_plan(of: &Manifest) -> Option<OverlapThresholds> {
    of.diagnostics.as_ref()?.overlap
}

/// `usual` is what holds where no manifest registers numbers; `None` lets any.
fn check_registered<T: PartialEq>(
    manifests: &Manifests,
    experiment: &ExperimentId,
    of: impl Fn(&Manifest) -> Option<T>,
    usual: Option<T>,
    (found, manifest): (T, Option<Digest>),
) -> clover_ledger::RuleAnswer {
    let mut planned = planned(manifests, experiment, of);
    let Some(digest) = manifest else {
        if let Some((id, digest, _)) = planned.next() {
            return unmet(
                format!("the thresholds that {id} registers, and its digest {digest}"),
                "those of no manifest",
            );
        }
        ensure!(
            usual.is_none_or(|usual| usual == found),
            "the usual thresholds, where no manifest registers others",
            "others"
        );
        return Ok(());
    };
    let Some((id, _, numbers)) = planned.find(|(_, of, _)| *of == digest) else {
        return unmet(
            "the digest of a manifest version in force that registers the thresholds",
            digest.to_string(),
        );
    };
    ensure!(
        numbers == found,
        format!("the thresholds that {id} registers"),
        "others"
    );
    Ok(())
}
