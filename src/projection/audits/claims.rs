//! What estimates and comparisons may claim, from rulebook 18 on: the part of the rule `transport` that asks for a passed
//! audit or own labels behind each word.

use crate::event::id::ExperimentId;
use crate::event::id::JudgeId;
use crate::event::id::PolicyId;
use crate::event::payload::estimate::ContrastRecorded;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::Claim;
use crate::event::payload::estimated::IntervalEnds;
use crate::event::payload::estimated::Reading;
use crate::event::payload::estimated::TransportState;
use crate::event::payload::ope::OpeDiagnosed;
use crate::event::payload::overlap::Admissibility;
use crate::ground::digest::Digest;
use crate::ledger::Judged;
use crate::ledger::State;
use crate::ledger::no;
use crate::ledger::rulebooks::Question;
use crate::projection::audits::Audits;

/// The row of the guide that stands for the policy's own draws.
const DIRECT: &str = "direct";

/// What one claim is about.
struct Asked<'a> {
    experiment: &'a ExperimentId,
    judge: &'a JudgeId,
    policy: &'a PolicyId,
    calibrator: Option<Digest>,
}

/// A claim stands on what the log holds: a passed audit, own labels in the fit, and no failed audit.
fn supported(state: &State, of: &Asked<'_>, claim: Claim) -> Judged {
    let audits = state.fold::<Audits>();
    let standing = audits.standing(of.experiment, of.judge, of.policy, of.calibrator);
    let found = standing.map(|of| of.state);
    let said = |claim: Claim| format!("claim {claim} of {}", of.policy);
    if found == Some(TransportState::Fail) && claim != Claim::Refused {
        return no(said(Claim::Refused), said(claim));
    }
    if claim == Claim::BorrowedChecked && found != Some(TransportState::Pass) {
        let expected = format!("a passed audit of {} by this calibrator", of.policy);
        return no(expected, said(claim));
    }
    let is_labelled =
        |calibrator: &Digest| audits.is_labelled(of.experiment, of.judge, of.policy, calibrator);
    let unlabelled = of.calibrator.is_some_and(|digest| !is_labelled(&digest));
    if claim == Claim::OwnLabels && unlabelled {
        let expected = format!("a calibrator with labels of {}", of.policy);
        return no(expected, said(claim));
    }
    None
}

/// A comparison says what each side rests on, and tells apart only what is checked.
pub(super) fn contrast(
    state: &State,
    experiment: &ExperimentId,
    said: &ContrastRecorded,
) -> Judged {
    if !state.asks(Question::CheckedClaims) {
        return None;
    }
    let wanted = "the claims of both sides, and a reading";
    let (Some(first), Some(second), Some(reading)) =
        (said.first_claim, said.second_claim, said.reading)
    else {
        return no(wanted, "a comparison without them");
    };
    for (policy, claim) in [(&said.first, first), (&said.second, second)] {
        let asked = Asked {
            experiment,
            judge: &said.terms.judge,
            policy,
            calibrator: said.calibrator,
        };
        if let Some(breach) = supported(state, &asked, claim) {
            return Some(breach);
        }
    }
    let is_checked = first.is_checked() && second.is_checked();
    if is_checked == (reading == Reading::Unchecked) {
        let claims = format!("{first} and {second}");
        let expected = if is_checked {
            format!("told apart or not, for {claims}")
        } else {
            format!("reading unchecked, for {claims}")
        };
        return no(expected, format!("reading {reading}"));
    }
    if said.told_apart != (reading == Reading::ToldApart) {
        let expected = format!("told_apart as reading {reading} says");
        return no(expected, said.told_apart.to_string());
    }
    None
}

/// An estimate says how far its labels vary, claims what the log supports, and has no interval of width zero.
pub(super) fn estimate(
    state: &State,
    experiment: &ExperimentId,
    said: &EstimateRecorded,
) -> Judged {
    if !state.asks(Question::CheckedClaims) {
        return None;
    }
    let asked = Asked {
        experiment,
        judge: &said.terms.judge,
        policy: &said.policy,
        calibrator: said.calibrator,
    };
    if let Some(breach) = supported(state, &asked, said.claim) {
        return Some(breach);
    }
    if said.off_mode.is_none() {
        return no("off_mode: how far its labels vary", "none");
    }
    let is_flat = |of: &IntervalEnds| of.low.value() >= of.high.value();
    let alone = said.labels_only.as_ref().and_then(|of| of.interval);
    if said.interval.as_ref().is_some_and(is_flat) || alone.as_ref().is_some_and(is_flat) {
        return no("an interval with a width, or none", "a width of zero");
    }
    None
}

/// A diagnosis of logged responses says what may be claimed of the direct level, and refuses one that is withheld.
pub(super) fn diagnosed(state: &State, experiment: &ExperimentId, said: &OpeDiagnosed) -> Judged {
    if !state.asks(Question::CheckedClaims) || !said.draws {
        return None;
    }
    let Some(claim) = said.direct_claim else {
        return no("direct_claim: what the direct level rests on", "none");
    };
    let terms = &said.terms.estimate;
    let audits = state.fold::<Audits>();
    let failed = audits.standing(experiment, &terms.judge, &said.policy, None);
    if failed.is_some() && claim != Claim::Refused {
        let expected = format!(
            "direct_claim refused after the failed audit of {}",
            said.policy
        );
        return no(expected, claim.as_str());
    }
    let verdict = match claim {
        Claim::BorrowedChecked | Claim::OwnLabels => Admissibility::Admissible,
        Claim::BorrowedUnchecked => Admissibility::Warned,
        Claim::Refused | Claim::Uncalibrated => Admissibility::Refused,
    };
    let mut rows = said.guide.iter();
    let direct = rows.find(|row| row.estimator.as_str() == DIRECT);
    let found = direct.map(|row| row.verdict);
    if found != Some(verdict) {
        let expected = format!("direct {} for claim {claim}", verdict.as_str());
        return no(expected, found.map_or("none", Admissibility::as_str));
    }
    None
}
