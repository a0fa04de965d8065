//! The end of the story: a protocol and its bridge, a waiver by two keys, a release of labels, and a judge who
//! contradicts itself.

use clover::event::Payload;
use clover::event::payload::Role;
use clover::event::payload::assumption::Assessment;
use clover::event::payload::assumption::Assumption;
use clover::event::payload::assumption::AssumptionCountersigned;
use clover::event::payload::assumption::AssumptionWaived;
use clover::event::payload::assumption::BridgeAssessed;
use clover::event::payload::assumption::BridgeKind;
use clover::event::payload::assumption::SdpVersionRegistered;
use clover::event::payload::assumption::Target;
use clover::event::payload::experiment::ExperimentRegistered;
use clover::event::payload::judge::ScoreConflict;
use clover::ground::digest::Digest;
use clover::ground::time::Timestamp;
use clover::ledger::Command;
use clover::num::Finite;

use super::intake::micro;
use super::*;

/// The experiment whose judge contradicts itself.
pub const DOUBT: &str = "doubt";

fn within(experiment: &str, payload: impl Into<Payload>) -> Command {
    Command::new(payload, Some(experiment.parse().unwrap()))
}

pub(super) fn tell(teller: &mut Teller) {
    let add = |teller: &mut Teller, name, who, holder, role| {
        teller.say(ADA, name, key_added(&signer(who), holder, true, &[role]));
    };
    add(teller, "key-stella", STELLA, "Stella", Role::Steward);
    add(teller, "key-petra", PETRA, "Petra", Role::Approver);
    add(teller, "key-paul", PAUL, "Paul", Role::Approver);
    bridge(teller);
    let waived = AssumptionWaived {
        code: Assumption::S2,
        expires_at: Timestamp::parse("2026-12-31T00:00:00.000000Z").unwrap(),
        reason: text("there is one environment only"),
    };
    teller.say_all(PETRA, vec![("waived", within(ARENA, waived))]);
    let waiver = teller.id("waived");
    let agreed = AssumptionCountersigned { waiver };
    teller.say_all(PAUL, vec![("waived-by-two", within(ARENA, agreed))]);
    let read = DataRead {
        class: "label".parse().unwrap(),
        outcome: ReadOutcome::Allowed,
        purpose: text("to look for mistakes"),
        reader: signer(LENA).id(),
        role: Some(Role::Labeler),
        rows_root: Some(Root(Digest::sha256(b"rows"))),
    };
    teller.say_all(CLEO, vec![("read-labels", within(ARENA, read))]);
    doubt(teller);
}

fn bridge(teller: &mut Teller) {
    let sdp = SdpVersionRegistered {
        document: Digest::sha256(b"how people label"),
        effective_at: Timestamp::parse("2026-10-01T00:00:00.000000Z").unwrap(),
        sdp_version: "sdp-1".parse().unwrap(),
        target: Target::YStar,
    };
    teller.say(STELLA, "sdp-1", sdp);
    let assessed = |kind, status, estimate: Option<f64>| BridgeAssessed {
        ci_hi: estimate.and_then(|estimate| Finite::new(estimate + 0.125)),
        ci_lo: estimate.and_then(|estimate| Finite::new(estimate - 0.125)),
        document: Digest::sha256(b"what was found"),
        estimate: estimate.and_then(Finite::new),
        expires_at: Timestamp::parse("2027-03-31T00:00:00.000000Z").unwrap(),
        kind,
        sdp_version: "sdp-1".parse().unwrap(),
        status,
    };
    let pte = assessed(BridgeKind::Pte, Assessment::Pass, Some(0.625));
    teller.say(STELLA, "bridge-pte", pte);
    let attested = assessed(BridgeKind::Attestation, Assessment::Warn, None);
    teller.say(STELLA, "bridge-attested", attested);
}

fn doubt(teller: &mut Teller) {
    let registered = ExperimentRegistered {
        judges: None,
        policies: None,
        purpose: text("ask a judge twice"),
        title: text("Doubt"),
    };
    teller.say_all(ADA, vec![("doubt", within(DOUBT, registered))]);
    let scored = within(DOUBT, score("item-a", 0, 500_000));
    teller.say_all(RUNNER_3, vec![("scored-doubt", scored)]);
    let conflict = ScoreConflict {
        draw: count(0),
        item: "item-a".parse().unwrap(),
        judge: "judge-1".parse().unwrap(),
        policy: "base".parse().unwrap(),
        recorded: teller.id("scored-doubt"),
        recorded_micro: micro(500_000),
        score_micro: micro(510_000),
    };
    teller.say_all(RUNNER_3, vec![("conflict", within(DOUBT, conflict))]);
}
