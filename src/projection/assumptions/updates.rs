//! Which kinds say what of which assumptions: one line a kind.

use crate::event::Kind;
use crate::event::Payload;
use crate::event::payload::Verdict;
use crate::event::payload::assumption::Assessed;
use crate::event::payload::assumption::Assumption;
use crate::event::payload::assumption::BridgeKind;
use crate::event::payload::intake::Separation;
use crate::event::payload::overlap::OverlapGrade;
use crate::event::payload::predicate::GateEvaluated;
use crate::event::payload::predicate::GateId;
use crate::ground::time::Timestamp;
use crate::projection::assumptions::OfExperiment;
use crate::projection::assumptions::Status;
use crate::projection::batteries;

/// What an event says of one part of one assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The assumption.
    pub code: Assumption,
    /// Until when it holds.
    pub expires_at: Option<Timestamp>,
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
    Kind::GateEvaluated,
    Kind::JudgeDriftChecked,
    Kind::LabelDesignRegistered,
    Kind::LabelProcessAudited,
    Kind::LabelRecorded,
    Kind::LabelSealed,
    Kind::OpeDiagnosed,
    Kind::PrenticeChecked,
    Kind::ScoreConflict,
    Kind::ScoreReplayed,
    Kind::SdpVersionRegistered,
    Kind::SplitsFormed,
];

fn says(code: Assumption, part: &'static str, status: Status) -> Update {
    Update {
        code,
        expires_at: None,
        part,
        status,
    }
}

/// Gives what a payload says, given what is known of its experiment. The next kind's line goes here.
pub(super) fn found(payload: &Payload, of: Option<&OfExperiment>, say: &mut dyn FnMut(Update)) {
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
            let code = match found.kind {
                BridgeKind::Attestation => Assumption::A1A3,
                BridgeKind::Construct | BridgeKind::Pte | BridgeKind::Stability => Assumption::A0,
            };
            say(Update {
                expires_at: Some(found.expires_at),
                ..says(code, found.kind.as_str(), assessed(found.status))
            });
        }
        Payload::GateEvaluated(found) => gate(found, say),
        Payload::LabelProcessAudited(found) => {
            for code in [L1, CjeJ1] {
                say(says(code, "balance", judged(found.verdict)));
            }
        }
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
        Payload::ScoreReplayed(replayed) => {
            let status = if replayed.mismatches.value() == 0 {
                Status::Pass
            } else {
                Status::Fail
            };
            say(says(CloverJ2, "replay", status));
        }
        Payload::SplitsFormed(formed) => {
            let status = match formed.separation {
                Separation::Hashed => Status::Warn,
                Separation::Time => Status::Pass,
            };
            say(says(H1, "separation", status));
        }
        _ => {}
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
    let status = judged(found.verdicts.under(found.thresholds.profile));
    match found.gate {
        GateId::P5 => say(says(Assumption::Blast, "anchors", status)),
        GateId::P4 => say(says(Assumption::Blast, "shift", status)),
        GateId::P8 => say(says(Assumption::H1, "replication", status)),
        GateId::P10 => say(says(Assumption::Oua, "share", status)),
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

fn assessed(status: Assessed) -> Status {
    match status {
        Assessed::Fail => Status::Fail,
        Assessed::Inconclusive => Status::Inconclusive,
        Assessed::Pass => Status::Pass,
        Assessed::Warn => Status::Warn,
    }
}
