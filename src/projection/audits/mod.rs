//! Audits of transport: which policies failed one, and which audit stands for or against an estimate; with the rules
//! `calibrator` and `transport`, by which an audit is run once and a failure marks every estimate of its policy.

mod claims;
pub mod probes;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

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
pub const READS: &[Kind] = &[Kind::CalibratorFitted, Kind::TransportTested];

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

/// The audits of one experiment, by judge and policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentAudits {
    /// By judge, then policy.
    pub by_judge: BTreeMap<JudgeId, BTreeMap<PolicyId, PolicyAudits>>,
    /// Policies with labels in each fitted calibrator, by judge.
    pub labelled: BTreeMap<JudgeId, BTreeMap<Digest, BTreeSet<PolicyId>>>,
}

/// Audits by experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Audits {
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

    /// Whether a calibrator was fitted on labels of a policy.
    fn is_labelled(
        &self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        policy: &PolicyId,
        calibrator: &Digest,
    ) -> bool {
        let of = self.by_experiment.get(experiment);
        let fits = of.and_then(|of| of.labelled.get(judge));
        let policies = fits.and_then(|fits| fits.get(calibrator));
        policies.is_some_and(|policies| policies.contains(policy))
    }

    /// Takes in what an event of an experiment says.
    pub fn take(&mut self, experiment: &ExperimentId, seq: u64, payload: &Payload) {
        match payload {
            Payload::CalibratorFitted(fitted) => self.fitted(experiment, fitted),
            Payload::TransportTested(tested) => self.tested(experiment, seq, tested),
            _ => {}
        }
    }

    /// Policies of a judge were recalibrated on labels as new as these: failures before them are answered.
    pub fn answer(
        &mut self,
        experiment: &ExperimentId,
        judge: &JudgeId,
        newest: impl IntoIterator<Item = (PolicyId, u64)>,
    ) {
        let of = self.by_experiment.get_mut(experiment);
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
        self.answer(experiment, &fitted.terms.judge, newest);
        if fitted.labels_by_policy.is_empty() {
            return;
        }
        let of = self.by_experiment.entry(experiment.clone()).or_default();
        let fits = of.labelled.entry(fitted.terms.judge.clone()).or_default();
        let policies = fitted.labels_by_policy.iter().map(|of| of.policy.clone());
        fits.entry(fitted.calibrator).or_default().extend(policies);
    }

    fn tested(&mut self, experiment: &ExperimentId, seq: u64, tested: &TransportTested) {
        let of = self.by_experiment.entry(experiment.clone()).or_default();
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
            probes::check_timely(state, experiment, tested)
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
