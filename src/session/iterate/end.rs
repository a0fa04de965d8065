//! Acceptance and the end.

use clover_event::id::PatchId;
use clover_event::id::Text;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::predicate::GateSplit;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::rubric::RejectStage;
use clover_ledger::AppendedEvent;
use clover_workflow::iterate::outcome;

use crate::error::SessionError;
use crate::iterate::Bench;
use crate::iterate::gates;
use crate::ports::Ports;

/// What was accepted.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// Entries that were appended.
    pub appended: Vec<AppendedEvent>,
    /// The patches, in order of their ranks.
    pub patches: Vec<PatchAccepted>,
}

/// Accepts what passed every gate, in order.
///
/// # Errors
/// [`SessionError`]; what was accepted before stands.
pub fn accept(bench: &mut Bench, ports: &mut dyn Ports) -> Result<Acceptance, SessionError> {
    let order = bench.acceptable();
    let (mut patches, mut appended) = (Vec::new(), Vec::new());
    for (at, hash) in order.iter().enumerate() {
        let mut known = bench.record.accepted.iter();
        if known.any(|of| of.said.candidate == *hash) {
            continue;
        }
        let Some(said) = outcome::acceptance(&bench.record, at, *hash) else {
            continue;
        };
        patches.push(said.clone());
        appended.extend(bench.say(ports, vec![said.into()])?);
    }
    Ok(Acceptance { appended, patches })
}

/// How an iteration ended.
#[derive(Clone, Debug)]
pub struct IterationEnd {
    /// Entries that were appended.
    pub appended: Vec<AppendedEvent>,
    /// Patches that were judged on confirm and are not accepted, and why.
    pub not_accepted: Vec<(PatchId, String)>,
    /// How it ended.
    pub outcome: IterationOutcome,
    /// Why.
    pub reason: Text,
}

/// Rejects what was sealed, judged on confirm, and not accepted.
fn reject_rest(
    bench: &mut Bench,
    ports: &mut dyn Ports,
) -> Result<Vec<(PatchId, String)>, SessionError> {
    let sealed = bench.record.sealed.clone();
    let mut rejected = Vec::new();
    for one in sealed.iter().flat_map(|sealed| &sealed.said.hypotheses) {
        let standing = bench.record.standing();
        let mut standing = standing.into_iter();
        let patch = standing.find(|patch| patch.patch_hash == one.candidate);
        let mut accepted = bench.record.accepted.iter();
        let is_accepted = accepted.any(|of| of.said.candidate == one.candidate);
        let Some(patch) = patch.cloned().filter(|_| !is_accepted) else {
            continue;
        };
        if bench.record.unsealed.is_none() {
            continue;
        }
        let early = outcome::stopped_early(&bench.record, one.candidate);
        let early = early.map(|(gate, words)| (gate.to_string(), words));
        let stopped = early.or_else(|| bench.stopped(one.candidate, GateSplit::Confirm));
        let (stage, code, words) = match stopped {
            Some((code, words)) => (RejectStage::Confirm, code, words),
            None => (
                RejectStage::Selection,
                outcome::AFTER_OTHERS.to_owned(),
                "others go first".to_owned(),
            ),
        };
        gates::reject(bench, ports, &patch, stage, &code)?;
        rejected.push((patch.patch, words));
    }
    Ok(rejected)
}

/// Ends an iteration as its decisions say.
///
/// # Errors
/// [`SessionError`]; rejections that were appended before stand.
pub fn close(bench: &mut Bench, ports: &mut dyn Ports) -> Result<IterationEnd, SessionError> {
    let not_accepted = reject_rest(bench, ports)?;
    let (outcome, reason) = outcome::ending(&bench.record);
    let said = IterationClosed {
        iteration: bench.id.clone(),
        outcome,
        reason: reason.clone(),
    };
    let appended = bench.say(ports, vec![said.into()])?;
    Ok(IterationEnd {
        appended,
        not_accepted,
        outcome,
        reason,
    })
}
