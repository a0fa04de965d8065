//! Audits of transport: which policies failed one, and which audit stands for or against an estimate.

mod claims;
pub mod environments;
pub mod obstacles;
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
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::TransportState;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Fold;
use clover_ledger::VerifiedEvent;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
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
    Kind::LedgerCreated,
    Kind::RegimeSelected,
    Kind::RulebookAdopted,
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

/// An audit that failed and stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedAudit {
    /// Labelled rows of the policy in the fit that failed.
    pub labels: u64,
    /// Prompts of the policy with a label in that fit.
    #[serde(default)]
    pub labelled: u64,
    /// Its distinct prompts, or those of a failure before it that stood beside it and had more.
    pub prompts: u64,
    /// Its entry.
    pub seq: u64,
}

/// A failed audit that a fit answered, and that no audit passed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnsweredAudit {
    /// Labelled rows of the policy in that fit which the failed one had not.
    pub labels: u64,
    /// The entry of the failed audit.
    pub seq: u64,
}

/// Labels of one policy in a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitLabels {
    /// Labelled rows.
    pub labels: u64,
    /// The entry of the newest label.
    pub newest: u64,
    /// Distinct prompts among them; `None` of a fit by an older program.
    #[serde(default)]
    pub prompts: Option<u64>,
}

impl FitLabels {
    /// Prompts with a label: at most as many as there are labels.
    fn at_most(&self) -> u64 {
        self.prompts.unwrap_or(self.labels)
    }
}

/// What answers a failed audit, as the rulebook in force asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AnswerKind {
    /// One newer label.
    #[default]
    One,
    /// As many new labels as it had prompts.
    Labels,
    /// Labels of as many new prompts.
    Prompts,
}

/// A fit as audits ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitRecord {
    /// Its labels by policy.
    pub labels: BTreeMap<PolicyId, FitLabels>,
    /// Its entry.
    pub seq: u64,
}

impl FitRecord {
    /// The entry of its newest label.
    pub fn newest(&self) -> Option<u64> {
        self.labels.values().map(|of| of.newest).max()
    }
}

/// Audits of one policy under one judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyAudits {
    /// The audit that failed and was answered by a fit alone.
    pub answered: Option<AnsweredAudit>,
    /// The audit that failed and was not answered.
    pub failed: Option<FailedAudit>,
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
        if let Some(failed) = self.failed {
            return stands(failed.seq, TransportState::Fail);
        }
        let newest = self.newest.as_ref();
        let same = newest.filter(|of| Some(of.calibrator) == calibrator)?;
        // A failure that was answered stands no more.
        if same.state == TransportState::Fail {
            return None;
        }
        stands(same.seq, same.state)
    }

    /// A fit has these labels of the policy. It answers a failure if one of them is newer; where more is asked for, if it has
    /// as many more labels, or prompts with one, than the fit that failed as the failed audit had prompts.
    fn fitted(&mut self, fit: FitLabels, asked: AnswerKind) {
        let Some(failed) = self.failed.filter(|failed| failed.seq < fit.newest) else {
            return;
        };
        let labels = match asked {
            AnswerKind::Prompts => fit.prompts.unwrap_or(0).saturating_sub(failed.labelled),
            AnswerKind::Labels | AnswerKind::One => fit.labels.saturating_sub(failed.labels),
        };
        if asked > AnswerKind::One && labels < failed.prompts {
            return;
        }
        self.failed = None;
        let seq = failed.seq;
        self.answered = Some(AnsweredAudit { labels, seq });
    }

    /// It was audited, by so many prompts and on a fit with so many labels of it. Where `all` are asked for, a pass by as many
    /// prompts answers a failure.
    fn tested(&mut self, newest: Newest, (prompts, fit): (u64, FitLabels), all: bool) {
        match newest.state {
            TransportState::Fail => {
                let before = self.failed.map_or(0, |of| of.prompts);
                self.answered = None;
                self.failed = Some(FailedAudit {
                    labelled: fit.at_most(),
                    labels: fit.labels,
                    prompts: prompts.max(before),
                    seq: newest.seq,
                });
            }
            TransportState::Pass => {
                self.answered = None;
                self.failed = self.failed.filter(|of| !all || prompts < of.prompts);
            }
            _ => {}
        }
        self.newest = Some(newest);
    }
}

/// Audits and fits over the same rows: all of an experiment, or those of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeAudits {
    /// By judge, then policy.
    pub by_judge: BTreeMap<JudgeId, BTreeMap<PolicyId, PolicyAudits>>,
    /// Each fitted calibrator, by judge.
    pub fits: BTreeMap<JudgeId, BTreeMap<Digest, FitRecord>>,
    /// Labels of each fitted calibrator, by judge.
    pub labels: BTreeMap<JudgeId, BTreeMap<Digest, u64>>,
    /// The first fit on each terms, by judge.
    pub on_terms: BTreeMap<JudgeId, BTreeMap<Digest, u64>>,
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

/// The entries since which a failed audit is answered by as many labels, or prompts with one, as it had prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswersSince {
    /// By labels.
    pub labels: Option<u64>,
    /// By prompts.
    pub prompts: Option<u64>,
}

impl AnswersSince {
    /// What answers at an entry.
    pub fn at(&self, seq: u64) -> AnswerKind {
        if self.prompts.is_some_and(|since| since < seq) {
            AnswerKind::Prompts
        } else if self.labels.is_some_and(|since| since < seq) {
            AnswerKind::Labels
        } else {
            AnswerKind::One
        }
    }
}

/// Audits by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audits {
    /// Since which entries what answers a failed audit.
    pub answers: AnswersSince,
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

    /// The audits of a policy.
    pub fn of_policy(&self, of: &AuditSubject<'_>) -> Option<&PolicyAudits> {
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
        let fit = self.fit(of.experiment, (of.judge, of.environment), calibrator);
        fit.is_some_and(|fit| fit.labels.contains_key(of.policy))
    }

    /// A calibrator that was fitted.
    pub fn fit(
        &self,
        experiment: &ExperimentId,
        (judge, environment): (&JudgeId, Option<&EnvironmentScope>),
        calibrator: &Digest,
    ) -> Option<&FitRecord> {
        let scope = self.scope(experiment, environment)?;
        scope.fits.get(judge)?.get(calibrator)
    }

    /// The first fit of a judge on such terms.
    pub fn first_on(&self, experiment: &ExperimentId, terms: &EstimateTerms) -> Option<u64> {
        let scope = self.scope(experiment, terms.environment.as_ref())?;
        let of = scope.on_terms.get(&terms.judge)?;
        of.get(&fit_terms(terms)).copied()
    }

    /// Takes in which rulebook judges from an entry on.
    pub fn adopt(&mut self, seq: u64, payload: &Payload) {
        let version = match payload {
            Payload::LedgerCreated(said) => said.rulebook,
            Payload::RulebookAdopted(said) => Some(said.version),
            _ => return,
        };
        let asks = |question: Question| {
            version.is_some_and(|of| of.value() >= u64::from(question.since()))
        };
        if asks(Question::AnsweredFailure) {
            self.answers.labels.get_or_insert(seq);
        }
        if asks(Question::AnsweredPrompts) {
            self.answers.prompts.get_or_insert(seq);
        }
    }

    /// Takes in what an event of an experiment says.
    pub fn take(&mut self, experiment: &ExperimentId, seq: u64, payload: &Payload) {
        match payload {
            Payload::CalibratorFitted(fitted) => self.fitted(experiment, seq, fitted),
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

    /// Policies of a judge were calibrated on these labels, at an entry: failures that they answer stand no more.
    pub fn answer(
        &mut self,
        (experiment, seq): (&ExperimentId, u64),
        (judge, environment): (&JudgeId, Option<&EnvironmentScope>),
        labels: impl IntoIterator<Item = (PolicyId, FitLabels)>,
    ) {
        let asked = self.answers.at(seq);
        let of = self.by_experiment.get_mut(experiment);
        let of = of.and_then(|of| of.scopes.get_mut(&scope_key(environment)));
        let Some(policies) = of.and_then(|of| of.by_judge.get_mut(judge)) else {
            return;
        };
        for (policy, labels) in labels {
            if let Some(audited) = policies.get_mut(&policy) {
                audited.fitted(labels, asked);
            }
        }
    }

    fn fitted(&mut self, experiment: &ExperimentId, seq: u64, fitted: &CalibratorFitted) {
        let labels = fitted.labels_by_policy.iter().map(|of| {
            let fit = FitLabels {
                labels: of.labels.value(),
                newest: of.newest_seq.value(),
                prompts: of.prompts.map(Count::value),
            };
            (of.policy.clone(), fit)
        });
        let labels: BTreeMap<PolicyId, FitLabels> = labels.collect();
        let (judge, environment) = (&fitted.terms.judge, fitted.terms.environment.as_ref());
        self.answer((experiment, seq), (judge, environment), labels.clone());
        if labels.is_empty() {
            return;
        }
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let of = of.scopes.entry(scope_key(environment)).or_default();
        let counts = of.labels.entry(judge.clone()).or_default();
        counts.insert(fitted.calibrator, fitted.labels.value());
        let fits = of.fits.entry(judge.clone()).or_default();
        fits.entry(fitted.calibrator)
            .or_insert(FitRecord { labels, seq });
        let terms = of.on_terms.entry(judge.clone()).or_default();
        terms.entry(fit_terms(&fitted.terms)).or_insert(seq);
    }

    fn tested(&mut self, experiment: &ExperimentId, seq: u64, tested: &TransportTested) {
        let all = self.answers.at(seq) > AnswerKind::One;
        let (judge, environment) = (&tested.terms.judge, tested.terms.environment.as_ref());
        let fit = self.fit(experiment, (judge, environment), &tested.calibrator);
        let labels = fit.and_then(|fit| fit.labels.get(&tested.policy));
        let labels = labels.copied().unwrap_or_default();
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let of = of.scopes.entry(scope_key(environment)).or_default();
        let of = of.by_judge.entry(judge.clone()).or_default();
        let audited = of.entry(tested.policy.clone()).or_default();
        let newest = Newest {
            calibrator: tested.calibrator,
            margin_micro: tested.audit.margin_micro.unwrap_or_default(),
            seq,
            state: tested.state,
        };
        audited.tested(newest, (tested.clusters.value(), labels), all);
    }
}

/// What of its terms a fit may be chosen by.
fn fit_terms(of: &EstimateTerms) -> Digest {
    let chosen = (
        &of.covariates,
        of.fold_seed,
        of.folds,
        of.label_scale,
        of.mode,
    );
    canon::digest("clover/fit-terms/v1", &chosen)
}

impl Fold for Audits {
    fn apply(&mut self, event: &VerifiedEvent<'_>) {
        let (seq, event) = (event.seq(), event.event());
        self.adopt(seq, &event.payload);
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
