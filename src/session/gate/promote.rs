//! Promotions: what a release may rest on, and taking one back.

use clover_event::id::ManifestId;
use clover_event::id::Text;
use clover_event::payload::decision::PromotionIssued;
use clover_event::payload::decision::PromotionRevoked;
use clover_ground::time::Timestamp;
use clover_ledger::Ledger;
use clover_projection::gates::Gates;
use clover_projection::gates::Promotion;
use clover_workflow::gates::steps;

use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::gate_step::GateStep;
use crate::ports::Ports;

/// The promotion of a candidate on decided gates, `first` and `others`, with the grade that follows from how they ran.
///
/// # Errors
/// [`GateError::NotOpen`], [`GateError::NoCandidate`] and [`GateError::Revoked`].
pub fn promote(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    (first, others): (&ManifestId, &[ManifestId]),
    expires: Option<Timestamp>,
) -> Result<GateStep<PromotionIssued>, SessionError> {
    check::folded(ports, ledger)?;
    let ids: Vec<_> = std::iter::once(first).chain(others).cloned().collect();
    for id in &ids {
        check::known(ledger.state(), id)?;
    }
    let now = ledger.ambient().now();
    let issued = steps::promote(ledger.state(), &ids, now);
    let mut issued = issued.ok_or_else(|| GateError::NoCandidate(first.clone()))?;
    let mut all = ledger.state().fold::<Gates>().promotions.iter();
    let same = |one: &&Promotion| one.gates == issued.gates;
    if let Some(seq) = all.find(same).and_then(|one| one.revoked_seq) {
        let gate = first.clone();
        return Err(GateError::Revoked { gate, seq }.into());
    }
    issued.expires_at = expires;
    GateStep::new(ports, ledger, (issued.clone(), None), issued)
}

/// The end of the promotion at an entry; answers with the first of its gates.
///
/// # Errors
/// [`GateError::NoPromotion`].
pub fn revoke(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    (seq, reason): (u64, Text),
) -> Result<GateStep<Option<ManifestId>>, SessionError> {
    let mut all = ledger.state().fold::<Gates>().promotions.iter();
    let found = all.find(|one| one.seq == seq);
    let found = found.ok_or(GateError::NoPromotion(seq))?;
    let gate = found.gates.first().cloned();
    let revoked = PromotionRevoked {
        promotion: found.id,
        reason,
    };
    GateStep::new(ports, ledger, (revoked, None), gate)
}
