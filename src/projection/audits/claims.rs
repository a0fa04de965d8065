//! What estimates and comparisons may claim, from rulebook 18 on: the part of the rule `transport` that asks for a passed
//! audit or own labels behind each word.

use clover_event::id::ExperimentId;
use clover_event::id::PolicyId;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::estimate::ContrastRecorded;
use clover_event::payload::estimate::EstimateRecorded;
use clover_event::payload::estimate::EstimateTerms;
use clover_event::payload::estimated::Claim;
use clover_event::payload::estimated::IntervalEnds;
use clover_event::payload::estimated::LabelUse;
use clover_event::payload::estimated::Reading;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::label::DesignPurpose;
use clover_event::payload::ope::OpeDiagnosed;
use clover_event::payload::overlap::Admissibility;
use clover_ground::digest::Digest;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::audits::AuditSubject;
use crate::audits::Audits;
use crate::audits::BOUNDED_AUDIT;
use crate::audits::environments;
use crate::designs::Designs;

/// The row of the guide that stands for the policy's own draws.
const DIRECT: &str = "direct";

/// What one claim is about.
struct ClaimSubject<'a> {
    of: AuditSubject<'a>,
    calibrator: Option<Digest>,
}

impl<'a> ClaimSubject<'a> {
    fn new(
        experiment: &'a ExperimentId,
        terms: &'a EstimateTerms,
        policy: &'a PolicyId,
        calibrator: Option<Digest>,
    ) -> Self {
        let of = AuditSubject {
            experiment,
            judge: &terms.judge,
            environment: terms.environment.as_ref(),
            policy,
        };
        Self { of, calibrator }
    }
}

/// A claim stands on what the log holds: a passed audit, own labels in the fit, and no failed audit.
fn check_supported(state: &State, of: &ClaimSubject<'_>, claim: Claim) -> RuleAnswer {
    let audits = state.fold::<Audits>();
    let standing = audits.standing(&of.of, of.calibrator);
    let found = standing.map(|of| of.state);
    let said = |claim: Claim| format!("claim {claim} of {}", of.of.policy);
    ensure!(
        found != Some(TransportState::Fail) || claim == Claim::Refused,
        said(Claim::Refused),
        said(claim)
    );
    ensure!(
        claim != Claim::BorrowedChecked || found == Some(TransportState::Pass),
        format!("a passed audit of {} by this calibrator", of.of.policy),
        said(claim)
    );
    let is_labelled = |calibrator: &Digest| audits.is_labelled(&of.of, calibrator);
    let unlabelled = of.calibrator.is_some_and(|digest| !is_labelled(&digest));
    ensure!(
        claim != Claim::OwnLabels || !unlabelled,
        format!("a calibrator with labels of {}", of.of.policy),
        said(claim)
    );
    Ok(())
}

/// Labels that a design draws by stratum are weighted or correct nothing, and no others are weighted.
fn check_weighted(state: &State, experiment: &ExperimentId, terms: &EstimateTerms) -> RuleAnswer {
    if !state.asks(Question::WeightedLabels) {
        return Ok(());
    }
    let designs = state.fold::<Designs>().by_experiment.get(experiment);
    let mut designs = designs.into_iter().flat_map(|of| of.designs.values());
    let is_stratified = designs.any(|design| {
        let registered = design.registered.as_ref();
        registered.is_some_and(|of| of.purpose == DesignPurpose::Calibrate && !of.strata.is_empty())
    });
    let (expected, is_other) = if is_stratified {
        (
            "labels weighted or targeted, since a design for calibrate has strata",
            terms.labels == LabelUse::Representative,
        )
    } else {
        (
            "labels that are not weighted, since no design for calibrate has strata",
            terms.labels == LabelUse::Weighted,
        )
    };
    ensure!(!is_other, expected, format!("labels {}", terms.labels));
    Ok(())
}

/// A comparison says what each side rests on, and tells apart only what is checked.
pub(super) fn check_contrast(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> RuleAnswer {
    if !state.asks(Question::CheckedClaims) {
        return Ok(());
    }
    check_weighted(state, experiment, &said.terms)?;
    let wanted = "the claims of both sides, and a reading";
    let (Some(first), Some(second), Some(reading)) =
        (said.first_claim, said.second_claim, said.reading)
    else {
        return unmet(wanted, "a comparison without them");
    };
    for (policy, claim) in [(&said.first, first), (&said.second, second)] {
        let asked = ClaimSubject::new(experiment, &said.terms, policy, said.calibrator);
        check_supported(state, &asked, claim)?;
    }
    let is_checked = first.is_checked() && second.is_checked();
    if is_checked == (reading == Reading::Unchecked) {
        let claims = format!("{first} and {second}");
        let expected = if is_checked {
            format!("told apart or not, for {claims}")
        } else {
            format!("reading unchecked, for {claims}")
        };
        return unmet(expected, format!("reading {reading}"));
    }
    ensure!(
        said.told_apart == (reading == Reading::ToldApart),
        format!("told_apart as reading {reading} says"),
        said.told_apart.to_string()
    );
    Ok(())
}

/// An estimate says how far its labels vary, claims what the log supports, and has no interval of width zero.
pub(super) fn check_estimate(
    state: &State,
    experiment: &ExperimentId,
    said: &EstimateRecorded,
) -> RuleAnswer {
    if !state.asks(Question::CheckedClaims) {
        return Ok(());
    }
    let asked = ClaimSubject::new(experiment, &said.terms, &said.policy, said.calibrator);
    check_supported(state, &asked, said.claim)?;
    check_weighted(state, experiment, &said.terms)?;
    said.off_mode
        .required("off_mode: how far its labels vary")?;
    let alone = said.labels_only.as_ref().and_then(|of| of.interval);
    ensure!(
        !said.interval.as_ref().is_some_and(is_flat) && !alone.as_ref().is_some_and(is_flat),
        "an interval with a width, or none",
        "a width of zero"
    );
    Ok(())
}

/// An audit reaches as far as the bound of nearly constant labels, and passes nothing by a width of zero.
pub(super) fn check_audit(state: &State, said: &TransportTested) -> RuleAnswer {
    if !state.asks(Question::CheckedClaims) {
        return Ok(());
    }
    let algorithm = said.algorithm.as_str();
    ensure!(
        algorithm == BOUNDED_AUDIT,
        format!("algorithm {BOUNDED_AUDIT}"),
        algorithm
    );
    let ends = [said.narrow.interval, said.wide.interval];
    ensure!(
        !ends.iter().flatten().any(is_flat),
        "an interval with a width, or none",
        "a width of zero"
    );
    Ok(())
}

fn is_flat(of: &IntervalEnds) -> bool {
    of.low.value() >= of.high.value()
}

/// A diagnosis of logged responses says what may be claimed of the direct level, and refuses one that is withheld.
pub(super) fn check_diagnosed(
    state: &State,
    experiment: &ExperimentId,
    said: &OpeDiagnosed,
) -> RuleAnswer {
    environments::check_whole(&said.terms.estimate)?;
    let has_direct_level = said.draws;
    if !state.asks(Question::CheckedClaims) || !has_direct_level {
        return Ok(());
    }
    let claim = said
        .direct_claim
        .required("direct_claim: what the direct level rests on")?;
    let terms = &said.terms.estimate;
    let audits = state.fold::<Audits>();
    let subject = AuditSubject {
        experiment,
        judge: &terms.judge,
        environment: None,
        policy: &said.policy,
    };
    let failed = audits.standing(&subject, None);
    ensure!(
        failed.is_none() || claim == Claim::Refused,
        format!(
            "direct_claim refused after the failed audit of {}",
            said.policy
        ),
        claim.as_str()
    );
    let verdict = match claim {
        Claim::BorrowedChecked | Claim::OwnLabels => Admissibility::Admissible,
        Claim::BorrowedUnchecked => Admissibility::Warned,
        Claim::Refused | Claim::Uncalibrated => Admissibility::Refused,
    };
    let mut rows = said.guide.iter();
    let direct = rows.find(|row| row.estimator.as_str() == DIRECT);
    let found = direct.map(|row| row.verdict);
    ensure!(
        found == Some(verdict),
        format!("direct {} for claim {claim}", verdict.as_str()),
        found.map_or("none", Admissibility::as_str)
    );
    Ok(())
}
