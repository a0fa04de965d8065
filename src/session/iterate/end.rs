//! Acceptance and the end.

use clover_event::id::AccountId;
use clover_event::id::EventId;
use clover_event::id::PatchId;
use clover_event::id::Text;
use clover_event::payload::iteration::IterationClosed;
use clover_event::payload::iteration::IterationOutcome;
use clover_event::payload::predicate::CriterionSplit;
use clover_event::payload::predicate::PatchAccepted;
use clover_event::payload::rubric::RejectStage;
use clover_ground::digest::Digest;
use clover_ledger::AppendedEvent;
use clover_ledger::rulebooks::Question;
use clover_projection::budgets::Account;
use clover_projection::decisions;
use clover_workflow::iterate::outcome;

use crate::append;
use crate::charges;
use crate::charges::Payer;
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
    let known = |hash: &Digest| {
        let mut accepted = bench.record.accepted.iter();
        accepted.any(|of| of.said.candidate == *hash)
    };
    let due = order.iter().enumerate().filter(|(_, hash)| !known(hash));
    let due = due.filter_map(|(at, hash)| outcome::acceptance(&bench.record, at, *hash));
    let due: Vec<PatchAccepted> = due.collect();
    let payer = payer(bench, ports, &due)?;
    let (mut patches, mut appended) = (Vec::new(), Vec::new());
    for mut said in due {
        said.charge = charged(bench, payer.as_ref(), &said, &mut appended)?;
        patches.push(said.clone());
        appended.extend(bench.say(ports, vec![said.into()])?);
    }
    Ok(Acceptance { appended, patches })
}

/// What a charge says it is for, so that an acceptance that was cut goes on under the charge that was made.
fn purpose(said: &PatchAccepted) -> String {
    format!("patch {} of {}", said.patch, said.iteration)
}

/// Who pays for patches that are about to be accepted and are not paid for: `None` where nobody has to.
fn payer(
    bench: &Bench,
    ports: &mut dyn Ports,
    due: &[PatchAccepted],
) -> Result<Option<Payer>, SessionError> {
    let (state, now) = (bench.ledger.state(), append::now(&bench.ledger));
    if !state.asks(Question::ChargedPatches) {
        return Ok(None);
    }
    let account = paying(bench);
    let id = account.as_ref().map(|(id, _)| id);
    let unpaid =
        |said: &&PatchAccepted| charges::unspent(state, id, (&purpose(said), now)).is_none();
    let amount = due.iter().filter(unpaid).count() as u64;
    let of = (amount, "patches");
    if state.asks(Question::PatchAccount) {
        return Payer::of(ports, &bench.ledger, account, of);
    }
    Payer::find(ports, &bench.ledger, charges::PATCH, of)
}

/// The account that pays for the iteration's patches, where the rulebook in force holds it to one.
fn paying(bench: &Bench) -> Option<(AccountId, Account)> {
    let state = bench.ledger.state();
    let asks = state.asks(Question::PatchAccount);
    let found = decisions::patch_payer(state, &bench.id).filter(|_| asks);
    found.map(|(id, account)| (id.clone(), account.clone()))
}

/// The charge of a patch: one that was made for it before, else a new one.
fn charged(
    bench: &mut Bench,
    payer: Option<&Payer>,
    said: &PatchAccepted,
    appended: &mut Vec<AppendedEvent>,
) -> Result<Option<EventId>, SessionError> {
    let (state, purpose) = (bench.ledger.state(), purpose(said));
    if !state.asks(Question::ChargedPatches) {
        return Ok(None);
    }
    let account = paying(bench);
    let id = account.as_ref().map(|(id, _)| id);
    let made = charges::unspent(state, id, (&purpose, append::now(&bench.ledger)));
    let (None, Some(payer)) = (made, payer) else {
        return Ok(made);
    };
    let paid = payer.pay_for(&mut bench.ledger, 1, &purpose)?;
    appended.extend(&paid);
    Ok(paid.first().map(|of| of.id))
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
        let stopped = early.or_else(|| bench.stopped(one.candidate, CriterionSplit::Confirm));
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
