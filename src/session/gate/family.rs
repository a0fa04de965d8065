//! Families: tests that share one error rate.

use crate::event::id::FamilyId;
use crate::event::id::Text;
use crate::event::payload::decision::FamilyClosed;
use crate::event::payload::manifest::FamilyMethod;
use crate::event::payload::prereg::FamilyOpened;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::num::Micro;
use crate::session::error::SessionError;
use crate::session::gate::check;
use crate::session::gate::error::GateError;
use crate::session::gate::gate_step::GateStep;
use crate::session::ports::Ports;
use crate::workflow::gates::family;

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
