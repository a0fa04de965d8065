//! Which kinds say what of which assumptions: one line a kind.

use clover_event::Kind;
use clover_event::Payload;
use clover_event::id::JudgeId;
use clover_event::id::PolicyId;
use clover_event::payload::Verdict;
use clover_event::payload::assumption::Assessment;
use clover_event::payload::assumption::Assumption;
use clover_event::payload::assumption::BridgeAssessed;
use clover_event::payload::assumption::BridgeKind;
use clover_event::payload::audit::CoverageChecked;
use clover_event::payload::audit::OuaEstimated;
use clover_event::payload::audit::TransportTested;
use clover_event::payload::deployment::GuardrailChecked;
use clover_event::payload::environment::EnvironmentsTested;
use clover_event::payload::estimate::CalibratorFitted;
use clover_event::payload::estimated::CalibratorKind;
use clover_event::payload::estimated::CalibratorMode;
use clover_event::payload::estimated::TransportState;
use clover_event::payload::intake::SplitSeparation;
use clover_event::payload::overlap::OverlapGrade;
use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::EnvironmentTests;
use clover_event::payload::predicate::Evidence;
use clover_event::payload::predicate::GateEvaluated;
use clover_event::payload::predicate::LossMean;
use clover_event::payload::rubric::LeafChange;
use clover_event::payload::rubric::LeafValue;
use clover_event::payload::scoring::ScoreReplayed;
use clover_ground::time::Timestamp;
use clover_num::Finite;

use crate::assumptions::ExperimentAssumptions;
use crate::assumptions::Status;
use crate::batteries;

/// Share of the variance from which an iteration may pause for labels.
const PAUSE_SHARE: f64 = 0.30;
/// How much larger the error out of fold may be than that of the other calibrator.
const RMSE_SLACK: f64 = 1.01;
/// Labels in a tenth of the scores, and in the lowest and highest.
const TENTH_MIN: u64 = 5;
const OUTER_MIN: u64 = 10;
/// Share of scores outside the labelled ones.
const OUT_OF_RANGE_MAX: f64 = 0.05;

/// About what a finding is, where several are looked at beside each other and the worst counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FindingSubject {
    /// The logs of an iteration.
    Iteration,
    /// What runs.
    Live,
    /// A policy, or the judge whose scores an estimate calibrates.
    Named(String),
}

impl FindingSubject {
    /// The name in the fold. No id is empty or holds a space.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Iteration => "",
            Self::Live => "what runs",
            Self::Named(name) => name,
        }
    }
}

/// What an event says of one part of one assumption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The assumption.
    pub code: Assumption,
    /// Until when it holds.
    pub expires_at: Option<Timestamp>,
    /// About what it is, from rulebook 21 on; `None` where the newest finding counts, whatever it is about.
    pub of: Option<FindingSubject>,
    /// The part, as the catalogue names it.
    pub part: &'static str,
    /// What it shows.
    pub status: Status,
}

/// Kinds that move the fold: those of the lines below, and those that it handles itself.
pub const READS: &[Kind] = &[
    Kind::AssumptionCountersigned,
    Kind::AssumptionWaived,
    Kind::BatteryEvaluated,
    Kind::BridgeAssessed,
    Kind::CalibratorFitted,
    Kind::CoverageChecked,
    Kind::EnvironmentsTested,
    Kind::GateEvaluated,
    Kind::GuardrailChecked,
    Kind::JudgeDriftChecked,
    Kind::JudgeRunOpened,
    Kind::LabelDesignRegistered,
    Kind::LabelProcessAudited,
    Kind::LabelRecorded,
    Kind::LabelSealed,
    Kind::NoiseMeasured,
    Kind::OpeDiagnosed,
    Kind::OuaEstimated,
    Kind::PatchProposed,
    Kind::PrenticeChecked,
    Kind::ScoreConflict,
    Kind::ScoreReplayed,
    Kind::SdpVersionRegistered,
    Kind::SplitsFormed,
    Kind::TransportTested,
];

fn says(code: Assumption, part: &'static str, status: Status) -> Update {
    Update {
        code,
        expires_at: None,
        of: None,
        part,
        status,
    }
}

/// Says it of one of several. Before rulebook 21 only iterations said it, and the newest of them counted.
fn says_of(of: FindingSubject, mut update: Update, say: &mut dyn FnMut(Update)) {
    if of == FindingSubject::Iteration {
        say(update.clone());
    }
    update.of = Some(of);
    say(update);
}

/// About which policy it is; an iteration looks at all its logs together.
fn of_policy(policy: Option<&PolicyId>) -> FindingSubject {
    policy.map_or(FindingSubject::Iteration, |policy| {
        FindingSubject::Named(policy.to_string())
    })
}

/// What the loss of a patch that adds to obligations says of them all.
fn obliged(found: &GateEvaluated, of: Option<&ExperimentAssumptions>, say: &mut dyn FnMut(Update)) {
    let obliges = |of: &&ExperimentAssumptions| of.obliging.contains(&found.candidate.to_hex());
    if let (Some(of), Evidence::P1(loss)) = (of.filter(obliges), &found.evidence) {
        let status = improving(with_one_more(of.obligations, loss));
        say(says(Assumption::CloverJ1, "obligations", status));
    }
}

fn bridged(found: &BridgeAssessed) -> Update {
    let code = match found.kind {
        BridgeKind::Attestation => Assumption::A1A3,
        BridgeKind::Construct | BridgeKind::Pte | BridgeKind::Stability => Assumption::A0,
    };
    Update {
        expires_at: Some(found.expires_at),
        ..says(code, found.kind.as_str(), assessed(found.status))
    }
}

/// Gives what a payload says, given what is known of its experiment. The next kind's line goes here.
pub(super) fn found(
    payload: &Payload,
    of: Option<&ExperimentAssumptions>,
    say: &mut dyn FnMut(Update),
) {
    use Assumption::CjeJ1;
    use Assumption::CloverJ2;
    use Assumption::H1;
    use Assumption::L1;
    match payload {
        // Of the rubric in force; what a candidate's battery says is said of the candidate, by P7.
        Payload::BatteryEvaluated(found) if found.candidate.is_none() => {
            let verdict = batteries::verdict(found);
            say(says(Assumption::Adv, "battery", judged(verdict)));
        }
        Payload::BridgeAssessed(found) => {
            say(bridged(found));
        }
        Payload::CalibratorFitted(found) => calibrated(found, say),
        Payload::CoverageChecked(found) => covered(found, say),
        Payload::EnvironmentsTested(found) => in_environments(found, say),
        Payload::GateEvaluated(found) => {
            obliged(found, of, say);
            gate(found, say);
        }
        Payload::LabelProcessAudited(found) => {
            for code in [L1, CjeJ1] {
                say(says(code, "balance", judged(found.verdict)));
            }
        }
        Payload::GuardrailChecked(found) => live(found, say),
        Payload::OuaEstimated(found) => {
            let update = says(Assumption::Oua, "share", counted(found));
            says_of(of_policy(found.policy.as_ref()), update, say);
        }
        Payload::TransportTested(found) => audited(found, say),
        Payload::OpeDiagnosed(found) => {
            say(says(Assumption::Ope, "overlap", graded(found.overlap)));
            say(says(Assumption::CjeD1R3, "tails", graded(found.tail)));
        }
        Payload::JudgeDriftChecked(found) => {
            let verdict = found.verdicts.whole();
            say(says(Assumption::CjeD1R3, "drift", judged(verdict)));
        }
        Payload::PrenticeChecked(found) => {
            say(says(Assumption::S1, "prentice", judged(found.verdict)));
        }
        Payload::LabelDesignRegistered(_) => {
            for code in [L1, CjeJ1] {
                say(says(code, "design", Status::Pass));
            }
        }
        Payload::LabelRecorded(_) | Payload::LabelSealed(_)
            if !of.is_some_and(|of| of.is_governed) =>
        {
            for code in [L1, CjeJ1] {
                say(says(code, "design", Status::Fail));
            }
        }
        Payload::ScoreConflict(_) => say(says(CloverJ2, "conflict", Status::Fail)),
        // Until it is measured nobody knows what was not liked.
        Payload::JudgeRunOpened(said) if said.rescore.is_some() => {
            say(of_judge(&said.judge, Status::Fail));
        }
        Payload::NoiseMeasured(found) => say(of_judge(&found.judge, judged(found.verdict))),
        Payload::ScoreReplayed(found) => say(says(CloverJ2, "replay", repeated(found))),
        Payload::SplitsFormed(formed) => say(says(H1, "separation", separated(formed.separation))),
        _ => {}
    }
}

/// What asking a judge again says of it.
fn of_judge(judge: &JudgeId, status: Status) -> Update {
    Update {
        of: Some(FindingSubject::Named(judge.to_string())),
        ..says(Assumption::CloverJ2, "replay", status)
    }
}

/// Whether every score came out again.
fn repeated(found: &ScoreReplayed) -> Status {
    if found.mismatches.value() == 0 {
        Status::Pass
    } else {
        Status::Fail
    }
}

fn separated(how: SplitSeparation) -> Status {
    match how {
        SplitSeparation::Hashed => Status::Warn,
        SplitSeparation::Time => Status::Pass,
    }
}

/// Whether a patch adds to what an answer is held to: it changes an obligation, and switches none off.
pub(super) fn adds_obligation(diff: &[LeafChange]) -> bool {
    let mut paths = diff.iter().map(|change| change.path.as_str());
    let off = |change: &LeafChange| matches!(change.value, LeafValue::Flag(false));
    paths.any(|path| path.starts_with("obligations.")) && !diff.iter().any(off)
}

/// Patches that lowered the squared error, and all, with one more.
pub(super) fn with_one_more((improved, all): (u64, u64), loss: &LossMean) -> (u64, u64) {
    (improved + u64::from(loss.mean.value() < 0.0), all + 1)
}

/// What patches that add to obligations say: all of them lower the squared error, some do, or none.
fn improving((improved, all): (u64, u64)) -> Status {
    match improved {
        0 => Status::Fail,
        _ if improved == all => Status::Pass,
        _ => Status::Warn,
    }
}

/// Whether labels are monotone in the scores of the rubric in force: the calibrator in use predicts them out of fold no
/// worse than the other would, up to one percent.
fn calibrated(found: &CalibratorFitted, say: &mut dyn FnMut(Update)) {
    let says = |status| says(Assumption::CjeJ2M, "calibrator", status);
    let Some(of) = &found.iteration else {
        let judge = FindingSubject::Named(found.terms.judge.to_string());
        return says_of(judge, says(chosen(found)), say);
    };
    let (Some(monotone), Some(two_stage)) = (of.oof_rmse_monotone, of.oof_rmse_two_stage) else {
        return;
    };
    let other = match found.selected {
        CalibratorKind::Monotone => two_stage,
        CalibratorKind::TwoStage => monotone,
    };
    let status = if found.oof_rmse.value() <= RMSE_SLACK * other.value() {
        Status::Pass
    } else {
        Status::Warn
    };
    says_of(FindingSubject::Iteration, says(status), say);
}

/// What the calibrator of an estimate says: errors out of fold chose it among both, or nothing compared it with the other,
/// since its mode was asked for or covariates enter it.
fn chosen(found: &CalibratorFitted) -> Status {
    let is_chosen = found.terms.mode == CalibratorMode::Auto && found.terms.covariates.is_empty();
    if is_chosen {
        Status::Pass
    } else {
        Status::Inconclusive
    }
}

/// The newest audit of a policy. One without a margin is not graded, and decides nothing.
fn audited(found: &TransportTested, say: &mut dyn FnMut(Update)) {
    let status = match found.state {
        TransportState::Fail => Status::Fail,
        TransportState::Inconclusive | TransportState::NotGraded => Status::Inconclusive,
        TransportState::NotChecked => Status::Untested,
        TransportState::Pass => Status::Pass,
    };
    let of = FindingSubject::Named(found.policy.to_string());
    say(Update {
        of: Some(of),
        ..says(Assumption::CjeT1, "residuals", status)
    });
}

/// What residuals by environment say, from rulebook 21 on: environments that must pass do, and no other fails. Without an
/// environment nobody looked.
fn by_environment(
    found: &EnvironmentTests,
    verdict: Verdict,
    of: FindingSubject,
    say: &mut dyn FnMut(Update),
) {
    if found.environments.is_empty() {
        return;
    }
    say(Update {
        of: Some(of),
        ..says(Assumption::S2, "transport", judged(verdict))
    });
}

/// The newest test of each environment. One that no claim needs and that decides nothing says nothing.
fn in_environments(found: &EnvironmentsTested, say: &mut dyn FnMut(Update)) {
    for outcome in &found.environments {
        let decides = matches!(outcome.verdict, Verdict::Fail | Verdict::Pass);
        if decides || outcome.required {
            say(Update {
                of: Some(FindingSubject::Named(outcome.scope.to_string())),
                ..says(Assumption::S2, "transport", judged(outcome.verdict))
            });
        }
    }
}

fn live(found: &GuardrailChecked, say: &mut dyn FnMut(Update)) {
    if let Some(transported) = &found.evidence.environments {
        by_environment(
            transported,
            found.verdicts.environments,
            FindingSubject::Live,
            say,
        );
    }
}

/// Whether the calibrator causes less of the variance than pauses an iteration.
fn counted(found: &OuaEstimated) -> Status {
    match found.share.map(Finite::value) {
        Some(share) if share >= PAUSE_SHARE => Status::Warn,
        Some(_) => Status::Pass,
        None => Status::Inconclusive,
    }
}

/// Five labels in each tenth of the scores and ten in the outer ones, under five percent out of range; a level that may
/// not be claimed.
fn covered(found: &CoverageChecked, say: &mut dyn FnMut(Update)) {
    let counts = &found.decile_counts;
    let last = counts.len().saturating_sub(1);
    let enough = counts.iter().enumerate().all(|(tenth, labels)| {
        let is_outer = tenth == 0 || tenth == last;
        labels.value() >= if is_outer { OUTER_MIN } else { TENTH_MIN }
    });
    let covers = enough && found.out_of_range.value() < OUT_OF_RANGE_MAX;
    let holds = |holds: bool| if holds { Status::Pass } else { Status::Fail };
    let claims = holds(!found.refuse_level);
    let updates = [(Assumption::L2, holds(covers)), (Assumption::Sup, claims)];
    for (code, status) in updates {
        let of = of_policy(found.policy.as_ref());
        says_of(of, says(code, "coverage", status), say);
    }
}

fn judged(verdict: Verdict) -> Status {
    match verdict {
        Verdict::Fail => Status::Fail,
        Verdict::Inconclusive => Status::Inconclusive,
        Verdict::NotChecked => Status::Untested,
        Verdict::Pass => Status::Pass,
    }
}

/// A patch that moves too much, does not repeat on confirm, or whose gain the calibrator's uncertainty drowns, says so
/// of the assumption.
fn gate(found: &GateEvaluated, say: &mut dyn FnMut(Update)) {
    let verdict = found.verdicts.under(found.thresholds.profile);
    let status = judged(verdict);
    if let Evidence::P6(transported) = &found.evidence {
        by_environment(transported, verdict, FindingSubject::Iteration, say);
    }
    match found.gate {
        Criterion::P5 => say(says(Assumption::Blast, "anchors", status)),
        Criterion::P4 => say(says(Assumption::Blast, "shift", status)),
        Criterion::P8 => say(says(Assumption::H1, "replication", status)),
        Criterion::P10 => says_of(
            FindingSubject::Iteration,
            says(Assumption::Oua, "share", status),
            say,
        ),
        _ => {}
    }
}

fn graded(grade: OverlapGrade) -> Status {
    match grade {
        OverlapGrade::Good => Status::Pass,
        OverlapGrade::Unknown => Status::Inconclusive,
        OverlapGrade::Warn => Status::Warn,
        OverlapGrade::Critical => Status::Fail,
    }
}

fn assessed(status: Assessment) -> Status {
    match status {
        Assessment::Fail => Status::Fail,
        Assessment::Inconclusive => Status::Inconclusive,
        Assessment::Pass => Status::Pass,
        Assessment::Warn => Status::Warn,
    }
}

#[cfg(test)]
mod tests {
    use clover_event::payload::rubric::ChangeOp;
    use clover_num::Count;

    use super::*;

    fn change(path: &str, value: LeafValue) -> LeafChange {
        LeafChange {
            op: ChangeOp::Set,
            path: path.to_owned(),
            value,
        }
    }

    #[test]
    fn patches_that_add_to_obligations_are_counted_by_the_sign_of_their_change() {
        let adds = change("obligations.usefulness.required", LeafValue::Flag(true));
        let off = change("obligations.usefulness.required", LeafValue::Flag(false));
        let guard = change("guards.tool_trace_consistency", LeafValue::Flag(true));
        assert!(adds_obligation(&[guard.clone(), adds.clone()]));
        assert!(!adds_obligation(&[guard]));
        assert!(!adds_obligation(&[adds, off]));
        let loss = |mean: f64| LossMean {
            clusters: Count::default(),
            mean: Finite::new(mean).unwrap(),
            rows: Count::default(),
            standard_error: None,
        };
        let one = with_one_more((0, 0), &loss(-0.001));
        let two = with_one_more(one, &loss(0.0));
        assert_eq!((one, two), ((1, 1), (1, 2)));
        assert_eq!(improving(one), Status::Pass);
        assert_eq!(improving(two), Status::Warn);
        assert_eq!(improving(with_one_more((0, 0), &loss(0.002))), Status::Fail);
    }
}
