//! Families: tests that share one error rate.

use clover_event::id::FamilyId;
use clover_event::id::Text;
use clover_event::payload::decision::FamilyClosed;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::prereg::FamilyOpened;
use clover_ledger::Ledger;
use clover_num::Count;
use clover_num::Micro;
use clover_workflow::gates::family;

use crate::error::SessionError;
use crate::gate::check;
use crate::gate::error::GateError;
use crate::gate::gate_step::GateStep;
use crate::ports::Ports;

/// What a new family says of itself.
#[derive(Clone, Debug)]
pub struct FamilyTerms {
    /// Its error rate.
    pub alpha_micro: Micro,
    /// Its name.
    pub family: FamilyId,
    /// Most members.
    pub members_max: Count,
    /// Who belongs to it.
    pub membership: Text,
    /// How it keeps its error rate.
    pub method: FamilyMethod,
}

/// The opening of a family, before its first member is registered.
///
/// # Errors
/// What the port says where no key is at hand.
pub fn open(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    terms: FamilyTerms,
) -> Result<GateStep<()>, SessionError> {
    let has_shares = terms.method == FamilyMethod::Elond;
    let opened = FamilyOpened {
        alpha_micro: terms.alpha_micro,
        family: terms.family,
        gamma_micro: has_shares.then(|| family::shares(terms.members_max)),
        members: None,
        members_max: terms.members_max,
        membership: terms.membership,
        method: terms.method,
    };
    GateStep::new(ports, ledger, (opened, None), ())
}

/// The closing of a family: its procedure says which claims hold.
///
/// # Errors
/// [`GateError::NoFamily`].
pub fn close(
    ports: &mut dyn Ports,
    ledger: &Ledger,
    id: &FamilyId,
) -> Result<GateStep<FamilyClosed>, SessionError> {
    check::folded(ports, ledger)?;
    let closed = family::closing(ledger.state(), id);
    let closed = closed.ok_or_else(|| GateError::NoFamily(id.clone()))?;
    GateStep::new(ports, ledger, (closed.clone(), None), closed)
}
