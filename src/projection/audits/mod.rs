//! Audits of transport: which policies failed one, and which audit stands for or against an estimate.

mod claims;
pub mod environments;
pub mod probes;
mod prompts;
pub mod rules;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::FamilyId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::environment::EnvironmentScope;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimated::TransportState;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::audits::environments::EnvironmentRecord;
use crate::audits::environments::Environments;

/// Algorithm of an audit whose width reaches as far as the bound of nearly constant labels; asked for from rulebook 18 on.
pub const BOUNDED_AUDIT: &str = "transport/2";

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::EnvironmentsTested,
    Kind::RegimeSelected,
    Kind::TransportTested,
];

/// The newest audit of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Newest {
    /// The calibrator that it audited.
    pub calibrator: Digest,
    /// The margin within which calibration had to transfer, in label units; 0 where none was declared.
    pub margin_micro: Micro,
    /// Its entry.
    pub seq: u64,
    /// What it found.
    pub state: TransportState,
}

/// Audits of one policy under one judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyAudits {
    /// The audit that failed and was not answered by new labels of the policy in a fit.
    pub failed_seq: Option<u64>,
    /// The newest.
    pub newest: Option<Newest>,
}

impl PolicyAudits {
    /// The audit that stands for or against an estimate by this calibrator: a failure whatever the calibrator, else the
    /// newest audit of this very one.
    pub fn standing(&self, calibrator: Option<Digest>) -> Option<TransportStanding> {
        let stands = |seq: u64, state: TransportState| {
            let seq = Count::new(seq)?;
            Some(TransportStanding { seq, state })
        };
        if let Some(seq) = self.failed_seq {
            return stands(seq, TransportState::Fail);
        }
        let newest = self.newest.as_ref();
        let same = newest.filter(|of| Some(of.calibrator) == calibrator)?;
        // A failure that was answered stands no more.
        if same.state == TransportState::Fail {
            return None;
        }
        stands(same.seq, same.state)
    }
}

/// Audits and fits over the same rows: all of an experiment, or those of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeAudits {
    /// By judge, then policy.
    pub by_judge: BTreeMap<JudgeId, BTreeMap<PolicyId, PolicyAudits>>,
    /// Policies with labels in each fitted calibrator, by judge.
    pub labelled: BTreeMap<JudgeId, BTreeMap<Digest, BTreeSet<PolicyId>>>,
    /// Labels of each fitted calibrator, by judge.
    pub labels: BTreeMap<JudgeId, BTreeMap<Digest, u64>>,
}

/// The audits of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentAudits {
    /// Environments that were tested, by judge.
    pub environments: Environments,
    /// Families that were tested, by design.
    pub families: BTreeMap<DesignId, BTreeSet<FamilyId>>,
    /// Over the rows of an environment, by its key; over all rows under none.
    pub scopes: BTreeMap<String, ScopeAudits>,
}

/// The key of a scope; empty for all rows.
fn scope_key(environment: Option<&EnvironmentScope>) -> String {
    environment.map_or_else(String::new, EnvironmentScope::key)
}

/// What an audit is about.
#[derive(Clone, Copy, Debug)]
pub struct AuditSubject<'a> {
    /// The experiment.
    pub experiment: &'a ExperimentId,
    /// Whose scores.
    pub judge: &'a JudgeId,
    /// The environment whose rows alone are read; `None` for all rows.
    pub environment: Option<&'a EnvironmentScope>,
    /// The policy.
    pub policy: &'a PolicyId,
}

/// Audits by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Audits {
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentAudits>,
}

impl Audits {
    fn scope(
        &self,
        experiment: &ExperimentId,
        environment: Option<&EnvironmentScope>,
    ) -> Option<&ScopeAudits> {
        let of = self.by_experiment.get(experiment)?;
        of.scopes.get(&scope_key(environment))
    }

    fn of_policy(&self, of: &AuditSubject<'_>) -> Option<&PolicyAudits> {
        let scope = self.scope(of.experiment, of.environment)?;
        scope.by_judge.get(of.judge)?.get(of.policy)
    }

    /// The audit that stands for or against an estimate: of its policy, or the failed test of an environment that its rows
    /// are in and that withholds its level.
    pub fn standing(
        &self,
        of: &AuditSubject<'_>,
        calibrator: Option<Digest>,
    ) -> Option<TransportStanding> {
        let own = self.of_policy(of);
        let own = own.and_then(|own| own.standing(calibrator));
        if own.is_some_and(|own| own.state == TransportState::Fail) {
            return own;
        }
        let experiment = self.by_experiment.get(of.experiment);
        let records = experiment.and_then(|all| all.environments.get(of.judge));
        match of.environment {
            None => environments::withholding(records, None).or(own),
            Some(scope) => {
                let record = records.and_then(|all| all.get(&scope.key()));
                let inside = environments::inside(record, calibrator, own);
                environments::withholding(records, Some(scope)).or(inside)
            }
        }
    }

    /// Whether the probes of a design tested a family of environments.
    pub fn has_family(
        &self,
        experiment: &ExperimentId,
        design: &DesignId,
        family: &FamilyId,
    ) -> bool {
        let of = self.by_experiment.get(experiment);
        let tested = of.and_then(|of| of.families.get(design));
        tested.is_some_and(|families| families.contains(family))
    }

    /// What tests found of an environment.
    pub fn environment(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        scope: &EnvironmentScope,
    ) -> Option<&EnvironmentRecord> {
        let of = self.by_experiment.get(experiment)?;
        of.environments.get(judge)?.get(&scope.key())
    }

    /// Every environment of an experiment that was tested under a judge, in the order of their keys.
    pub fn environments(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
    ) -> impl Iterator<Item = &EnvironmentRecord> {
        let of = self.by_experiment.get(experiment);
        let of = of.and_then(|of| of.environments.get(judge));
        of.into_iter().flat_map(BTreeMap::values)
    }

    /// Labels that a calibrator was fitted on, of an environment alone.
    pub fn local_labels(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        scope: &EnvironmentScope,
        calibrator: &Digest,
    ) -> Option<u64> {
        let of = self.scope(experiment, Some(scope))?;
        of.labels.get(judge)?.get(calibrator).copied()
    }

    /// The margin of the newest audit of a policy, in label units.
    pub fn margin(&self, of: &AuditSubject<'_>) -> Option<Micro> {
        Some(self.of_policy(of)?.newest.as_ref()?.margin_micro)
    }

    /// Whether a calibrator was fitted on labels of a policy.
    fn is_labelled(&self, of: &AuditSubject<'_>, calibrator: &Digest) -> bool {
        let scope = self.scope(of.experiment, of.environment);
        let fits = scope.and_then(|scope| scope.labelled.get(of.judge));
        let policies = fits.and_then(|fits| fits.get(calibrator));
        policies.is_some_and(|policies| policies.contains(of.policy))
    }

    /// Takes in what an event of an experiment says.
    pub fn take(&mut self, experiment: &ExperimentId, seq: u64, payload: &Payload) {
        match payload {
            Payload::CalibratorFitted(fitted) => self.fitted(experiment, fitted),
            Payload::EnvironmentsTested(said) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                let families = of.families.entry(said.design.clone()).or_default();
                families.insert(said.family.clone());
                environments::tested(&mut of.environments, seq, said);
            }
            Payload::RegimeSelected(said) => {
                let of = self.by_experiment.entry(experiment.clone()).or_default();
                environments::selected(&mut of.environments, seq, said);
            }
            Payload::TransportTested(tested) => self.tested(experiment, seq, tested),
            _ => {}
        }
    }

    /// Policies of a judge were recalibrated on labels as new as these: failures before them are answered.
    pub fn answer(
        &mut self,
        experiment: &ExperimentId,
        (judge, environment): (&JudgeId, Option<&EnvironmentScope>),
        newest: impl IntoIterator<Item = (PolicyId, u64)>,
    ) {
        let of = self.by_experiment.get_mut(experiment);
        let of = of.and_then(|of| of.scopes.get_mut(&scope_key(environment)));
        let Some(policies) = of.and_then(|of| of.by_judge.get_mut(judge)) else {
            return;
        };
        for (policy, newest) in newest {
            if let Some(audited) = policies.get_mut(&policy)
                && audited.failed_seq < Some(newest)
            {
                audited.failed_seq = None;
            }
        }
    }

    fn fitted(&mut self, experiment: &ExperimentId, fitted: &CalibratorFitted) {
        let labels = fitted.labels_by_policy.iter();
        let newest = labels.map(|of| (of.policy.clone(), of.newest_seq.value()));
        let (judge, environment) = (&fitted.terms.judge, fitted.terms.environment.as_ref());
        self.answer(experiment, (judge, environment), newest);
        if fitted.labels_by_policy.is_empty() {
            return;
        }
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let of = of.scopes.entry(scope_key(environment)).or_default();
        let counts = of.labels.entry(judge.clone()).or_default();
        counts.insert(fitted.calibrator, fitted.labels.value());
        let fits = of.labelled.entry(judge.clone()).or_default();
        let policies = fitted.labels_by_policy.iter().map(|of| of.policy.clone());
        fits.entry(fitted.calibrator).or_default().extend(policies);
    }

    fn tested(&mut self, experiment: &ExperimentId, seq: u64, tested: &TransportTested) {
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let key = scope_key(tested.terms.environment.as_ref());
        let of = of.scopes.entry(key).or_default();
        let of = of.by_judge.entry(tested.terms.judge.clone()).or_default();
        let audited = of.entry(tested.policy.clone()).or_default();
        audited.newest = Some(Newest {
            calibrator: tested.calibrator,
            margin_micro: tested.audit.margin_micro.unwrap_or_default(),
            seq,
            state: tested.state,
        });
        if tested.state == TransportState::Fail {
            audited.failed_seq = Some(seq);
        }
    }
}

impl Fold for Audits {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        if let Some(id) = &event.header.experiment {
            self.take(id, seq, &event.payload);
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        fold::snapshot_of(self)
    }

    fn restore(&mut self, bytes: &[u8]) -> bool {
        fold::restore_from(self, bytes)
    }
}
