//! Audits of transport: which policies failed one, and which audit stands for or against an estimate; with the rules
//! `calibrator` and `transport`, by which an audit is run once and a failure marks every estimate of its policy.

mod claims;
pub mod obstacles;
pub mod probes;

use std::collections::BTreeMap;

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::DesignId;
use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::audit::TransportStanding;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::Claim;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::ope::OpeEstimated;
use clover_event::payload::overlap::Admissibility;
use clover_ground::canon;
use clover_ground::digest::Digest;
use clover_ledger::Breach;
use clover_ledger::Breaches;
use clover_ledger::Fact;
use clover_ledger::Fold;
use clover_ledger::ProposedEvent;
use clover_ledger::Rule;
use clover_ledger::RuleAnswer;
use clover_ledger::RuleName;
use clover_ledger::State;
use clover_ledger::VerifiedEvent;
use clover_ledger::ensure;
use clover_ledger::fold;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;
use clover_num::Count;
use clover_num::Micro;
use serde::Deserialize;
use serde::Serialize;

use crate::designs::Designs;
use crate::said;

/// Algorithm of an audit whose width reaches as far as the bound of nearly constant labels; asked for from rulebook 18 on.
pub const BOUNDED_AUDIT: &str = "transport/2";

/// Kinds that move it.
pub const READS: &[Kind] = &[
    Kind::CalibratorFitted,
    Kind::LedgerCreated,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitLabels {
    /// Labelled rows.
    pub labels: u64,
    /// The entry of the newest label.
    pub newest: u64,
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

    /// A fit has these labels of the policy. It answers a failure if one of them is newer; where `all` are asked for, if it has
    /// as many more than the fit that failed as the failed audit had prompts.
    fn fitted(&mut self, fit: FitLabels, all: bool) {
        let Some(failed) = self.failed.filter(|failed| failed.seq < fit.newest) else {
            return;
        };
        let labels = fit.labels.saturating_sub(failed.labels);
        if all && labels < failed.prompts {
            return;
        }
        self.failed = None;
        let seq = failed.seq;
        self.answered = Some(AnsweredAudit { labels, seq });
    }

    /// It was audited, by so many prompts and on a fit with so many labels of it. Where `all` are asked for, a pass by as many
    /// prompts answers a failure.
    fn tested(&mut self, newest: Newest, (prompts, labels): (u64, u64), all: bool) {
        match newest.state {
            TransportState::Fail => {
                let before = self.failed.map_or(0, |of| of.prompts);
                self.answered = None;
                self.failed = Some(FailedAudit {
                    labels,
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

/// The audits of one experiment, by judge and policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentAudits {
    /// By judge, then policy.
    pub by_judge: BTreeMap<JudgeId, BTreeMap<PolicyId, PolicyAudits>>,
    /// Each fitted calibrator, by judge.
    pub fits: BTreeMap<JudgeId, BTreeMap<Digest, FitRecord>>,
    /// The first fit on each terms, by judge.
    pub on_terms: BTreeMap<JudgeId, BTreeMap<Digest, u64>>,
}

/// Audits by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audits {
    /// The entry since which a failure is answered by as many new labels as its audit had prompts, if any.
    pub all_since: Option<u64>,
    /// By experiment.
    pub by_experiment: BTreeMap<ExperimentId, ExperimentAudits>,
}

impl Audits {
    /// The audit that stands for or against an estimate.
    pub fn standing(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        policy: &PolicyId,
        calibrator: Option<Digest>,
    ) -> Option<TransportStanding> {
        let of = self.by_experiment.get(experiment)?.by_judge.get(judge)?;
        of.get(policy)?.standing(calibrator)
    }

    /// The margin of the newest audit of a policy, in label units.
    pub fn margin(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        policy: &PolicyId,
    ) -> Option<Micro> {
        let of = self.by_experiment.get(experiment)?.by_judge.get(judge)?;
        Some(of.get(policy)?.newest.as_ref()?.margin_micro)
    }

    /// The audits of a policy under a judge.
    pub fn policy(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        policy: &PolicyId,
    ) -> Option<&PolicyAudits> {
        let of = self.by_experiment.get(experiment)?.by_judge.get(judge)?;
        of.get(policy)
    }

    /// A calibrator that was fitted.
    pub fn fit(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        calibrator: &Digest,
    ) -> Option<&FitRecord> {
        let of = self.by_experiment.get(experiment)?.fits.get(judge)?;
        of.get(calibrator)
    }

    /// The first fit of a judge on such terms.
    pub fn first_on(&self, experiment: &ExperimentId, terms: &EstimateTerms) -> Option<u64> {
        let of = self.by_experiment.get(experiment)?;
        let of = of.on_terms.get(&terms.judge)?;
        of.get(&fit_terms(terms)).copied()
    }

    /// Whether a calibrator was fitted on labels of a policy.
    fn is_labelled(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        policy: &PolicyId,
        calibrator: &Digest,
    ) -> bool {
        let fit = self.fit(experiment, judge, calibrator);
        fit.is_some_and(|fit| fit.labels.contains_key(policy))
    }

    /// Takes in what an event of an experiment says.
    pub fn take(&mut self, experiment: &ExperimentId, seq: u64, payload: &Payload) {
        match payload {
            Payload::CalibratorFitted(fitted) => self.fitted(experiment, seq, fitted),
            Payload::TransportTested(tested) => self.tested(experiment, seq, tested),
            _ => {}
        }
    }

    /// Takes in which rulebook judges from an entry on.
    pub fn adopt(&mut self, seq: u64, payload: &Payload) {
        let version = match payload {
            Payload::LedgerCreated(said) => said.rulebook,
            Payload::RulebookAdopted(said) => Some(said.version),
            _ => return,
        };
        let asks = |of: Count| of.value() >= u64::from(Question::AnsweredFailure.since());
        if version.is_some_and(asks) {
            self.all_since.get_or_insert(seq);
        }
    }

    /// Policies of a judge were calibrated on these labels, at an entry: failures that they answer stand no more.
    pub fn answer(
        &mut self,
        (experiment, seq): (&ExperimentId, u64),
        judge: &JudgeId,
        labels: impl IntoIterator<Item = (PolicyId, FitLabels)>,
    ) {
        let all = self.all_since.is_some_and(|since| since < seq);
        let of = self.by_experiment.get_mut(experiment);
        let Some(policies) = of.and_then(|of| of.by_judge.get_mut(judge)) else {
            return;
        };
        for (policy, labels) in labels {
            if let Some(audited) = policies.get_mut(&policy) {
                audited.fitted(labels, all);
            }
        }
    }

    fn fitted(&mut self, experiment: &ExperimentId, seq: u64, fitted: &CalibratorFitted) {
        let labels = fitted.labels_by_policy.iter().map(|of| {
            let (labels, newest) = (of.labels.value(), of.newest_seq.value());
            (of.policy.clone(), FitLabels { labels, newest })
        });
        let labels: BTreeMap<PolicyId, FitLabels> = labels.collect();
        let judge = &fitted.terms.judge;
        self.answer((experiment, seq), judge, labels.clone());
        if labels.is_empty() {
            return;
        }
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let fits = of.fits.entry(judge.clone()).or_default();
        fits.entry(fitted.calibrator)
            .or_insert(FitRecord { labels, seq });
        let terms = of.on_terms.entry(judge.clone()).or_default();
        terms.entry(fit_terms(&fitted.terms)).or_insert(seq);
    }

    fn tested(&mut self, experiment: &ExperimentId, seq: u64, tested: &TransportTested) {
        let all = self.all_since.is_some_and(|since| since < seq);
        let judge = &tested.terms.judge;
        let fit = self.fit(experiment, judge, &tested.calibrator);
        let labels = fit.and_then(|fit| fit.labels.get(&tested.policy));
        let labels = labels.map_or(0, |of| of.labels);
        let of = self.by_experiment.entry(experiment.clone()).or_default();
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
    let chosen = (&of.covariates, of.fold_seed, of.folds, of.label_scale, of.mode);
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

/// Digest under which a fitted calibrator is known.
fn fitted(experiment: Option<&ExperimentId>, judge: &JudgeId, calibrator: &Digest) -> Digest {
    canon::digest("clover/fitted/v1", &(experiment, judge, calibrator))
}

/// Digest under which it is known that a policy was audited by the probes of a design.
pub fn audited(experiment: &ExperimentId, design: &DesignId, policy: &PolicyId) -> Digest {
    canon::digest("clover/audited/v1", &(experiment, design, policy))
}

/// The rules `calibrator` and `transport`.
#[derive(Clone, Copy, Debug)]
pub struct Transport;

impl Rule for Transport {
    fn check(&self, state: &State, event: &ProposedEvent<'_>, breaches: &mut Vec<Breach>) {
        // Without an experiment the rule `experiment` refuses each of these kinds.
        let Some(experiment) = &event.event.header.experiment else {
            return;
        };
        let terms = match &event.event.payload {
            Payload::CalibratorFitted(said) => Some(&said.terms),
            Payload::ContrastRecorded(said) => Some(&said.terms),
            Payload::CoverageChecked(said) => Some(&said.terms),
            Payload::EstimateRecorded(said) => Some(&said.terms),
            Payload::OpeDiagnosed(said) => Some(&said.terms.estimate),
            Payload::OpeEstimated(said) => Some(&said.terms.estimate),
            Payload::OuaEstimated(said) => Some(&said.terms),
            Payload::PlanRecorded(said) => Some(&said.terms),
            Payload::TransportTested(said) => Some(&said.terms),
            _ => None,
        };
        if let Some(terms) = terms {
            let checked = said::check_terms(state, experiment, terms);
            breaches.take(RuleName::Transport, checked);
        }
        let checked = match &event.event.payload {
            Payload::TransportTested(tested) => check_probes(state, experiment, tested),
            Payload::EstimateRecorded(estimate) => check_estimate(state, experiment, estimate),
            Payload::ContrastRecorded(contrast) => check_contrast(state, experiment, contrast),
            Payload::OpeDiagnosed(said) => claims::check_diagnosed(state, experiment, said),
            Payload::OpeEstimated(estimate) => check_off_policy(state, experiment, estimate),
            _ => return,
        };
        breaches.take(RuleName::Transport, checked);
    }

    fn provides(&self, event: &ProposedEvent<'_>, facts: &mut Vec<Fact>) {
        let experiment = event.event.experiment();
        let mut needs = |judge: &JudgeId, calibrator: &Digest| {
            facts.push(Fact::Needs {
                digest: fitted(experiment, judge, calibrator),
                before: event.seq,
                rule: RuleName::Calibrator,
            });
        };
        match &event.event.payload {
            Payload::CalibratorFitted(fit) => facts.push(Fact::Gives {
                digest: fitted(experiment, &fit.terms.judge, &fit.calibrator),
                once: None,
            }),
            Payload::EstimateRecorded(said) => {
                if let Some(calibrator) = &said.calibrator {
                    needs(&said.terms.judge, calibrator);
                }
            }
            Payload::ContrastRecorded(said) => {
                if let Some(calibrator) = &said.calibrator {
                    needs(&said.terms.judge, calibrator);
                }
            }
            Payload::OuaEstimated(said) => needs(&said.terms.judge, &said.calibrator),
            Payload::CoverageChecked(said) => needs(&said.terms.judge, &said.calibrator),
            Payload::TransportTested(said) => {
                needs(&said.terms.judge, &said.calibrator);
                if let Some(charge) = &said.charge {
                    facts.push(Fact::Needs {
                        digest: charge.0,
                        before: event.seq,
                        rule: RuleName::Refs,
                    });
                }
                if let Some(experiment) = experiment {
                    let digest = audited(experiment, &said.design, &said.policy);
                    facts.push(Fact::Gives { digest, once: None });
                    facts.push(Fact::Forbids {
                        digest,
                        rule: RuleName::Transport,
                    });
                }
            }
            _ => {}
        }
    }
}

/// Probes belong to a registered audit design; sealed ones were opened all together, under a charge.
fn check_probes(state: &State, experiment: &ExperimentId, tested: &TransportTested) -> RuleAnswer {
    let design = state
        .fold::<Designs>()
        .design(experiment, &tested.design)
        .filter(|design| {
            let registered = design.registered.as_ref();
            registered.is_some_and(|of| of.purpose == DesignPurpose::Audit)
        });
    let Some(design) = design else {
        let found = format!("{}, which is none", tested.design);
        return unmet("a registered label design for audit", found);
    };
    ensure!(
        design.sealed <= design.revealed,
        format!(
            "all {} sealed labels of {} open",
            design.sealed, tested.design
        ),
        format!("{} open", design.revealed)
    );
    let has_strata = design
        .registered
        .as_ref()
        .is_some_and(|of| !of.strata.is_empty());
    ensure!(
        !has_strata || tested.state != TransportState::Pass || !state.asks(Question::EvenProbes),
        format!(
            "no pass by {}, which draws by stratum: an audit counts each of its probes alike",
            tested.design
        ),
        "a pass"
    );
    match (design.sealed > 0, tested.charge) {
        (true, None) => unmet("the charge that opened the sealed probes", "none"),
        (false, Some(charge)) => unmet(
            "no charge for probes that were open from the start",
            charge.to_string(),
        ),
        (true, Some(_)) | (false, None) => {
            claims::check_audit(state, tested)?;
            probes::check_timely(state, experiment, tested)?;
            obstacles::check(state, experiment, tested)
        }
    }
}

fn words(standing: Option<TransportStanding>) -> String {
    standing.map_or("no audit".to_owned(), |of| {
        format!("{} at seq {}", of.state, of.seq)
    })
}

/// A difference carries the failed audits that stand against its policies, and tells nothing apart after one.
fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    contrast: &ContrastRecorded,
) -> RuleAnswer {
    let judge = &contrast.terms.judge;
    let audits = state.fold::<Audits>();
    let mut failed = None;
    for (policy, said) in [
        (&contrast.first, contrast.first_transport),
        (&contrast.second, contrast.second_transport),
    ] {
        let standing = audits.standing(experiment, judge, policy, None);
        ensure!(
            said == standing,
            format!(
                "the audit that stands against {policy}: {}",
                words(standing)
            ),
            words(said)
        );
        failed = failed.or(standing.map(|of| (policy, of)));
    }
    if let Some((policy, standing)) = failed {
        ensure!(
            !contrast.told_apart,
            format!(
                "nothing told apart until {policy} is recalibrated with new labels of it: {}",
                words(Some(standing))
            ),
            "told apart"
        );
    }
    claims::check_contrast(state, experiment, contrast)
}

/// An estimate from logged responses carries the failed audit that stands against its policy, and is not to be read.
fn check_off_policy(
    state: &State,
    experiment: &ExperimentId,
    estimate: &OpeEstimated,
) -> RuleAnswer {
    let judge = &estimate.terms.estimate.judge;
    let audits = state.fold::<Audits>();
    let standing = audits.standing(experiment, judge, &estimate.policy, None);
    ensure!(
        estimate.transport == standing,
        format!("the audit that stands against it: {}", words(standing)),
        words(estimate.transport)
    );
    ensure!(
        standing.is_none() || estimate.verdict == Admissibility::Refused,
        format!(
            "verdict refused until {} is recalibrated with new labels of it: {}",
            estimate.policy,
            words(standing)
        ),
        format!("verdict {}", estimate.verdict.as_str())
    );
    Ok(())
}

/// An estimate carries the audit that stands for or against it, and claims no level after a failed one.
fn check_estimate(
    state: &State,
    experiment: &ExperimentId,
    estimate: &EstimateRecorded,
) -> RuleAnswer {
    let standing = state.fold::<Audits>().standing(
        experiment,
        &estimate.terms.judge,
        &estimate.policy,
        estimate.calibrator,
    );
    ensure!(
        estimate.transport == standing,
        format!("the audit that stands: {}", words(standing)),
        words(estimate.transport)
    );
    let failed = standing.is_some_and(|of| of.state == TransportState::Fail);
    ensure!(
        !failed || estimate.claim == Claim::Refused,
        format!(
            "claim refused until {} is recalibrated with new labels of it: {}",
            estimate.policy,
            words(standing)
        ),
        format!("claim {}", estimate.claim)
    );
    claims::check_estimate(state, experiment, estimate)
}
