//! Going on: evidence that carries from one gate to the next.

use crate::stats::eprocess::design::Carried;
use crate::stats::eprocess::design::Claim;
use crate::stats::eprocess::design::Design;
use crate::stats::eprocess::gate::Gate;
use crate::stats::eprocess::verdict::Part;

/// Why a gate cannot continue another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// The hypotheses are not the same.
    #[error("{0} differs: only a gate of the same hypotheses continues another")]
    Differs(&'static str),
    /// A finite set cannot satisfy the hypothesis any more, or guardrails would need their own wealth carried.
    #[error("nothing to carry: {0}")]
    Nothing(&'static str),
}

/// The log wealth that a gate of the same hypotheses on new units may start from.
///
/// W of the parent times W of the child is an e-process, even if the child is begun because of what the parent showed. So
/// "undecided" can be extended; a choice among several children cannot, so all links are declared.
///
/// # Errors
/// [`ContinueError`] unless scale, repeats, direction, claim, futility and population are those of the parent.
pub fn carried(parent: &Gate, child: &Design) -> Result<Carried, ContinueError> {
    let (old, new) = (parent.design().terms(), child.terms());
    let same = [
        (old.scale == new.scale, "scale"),
        (old.repeats == new.repeats, "repeats"),
        (old.direction == new.direction, "direction"),
        (old.claim == new.claim, "claim"),
        (old.population == new.population, "population"),
        (
            old.futile.map(|one| one.effect) == new.futile.map(|one| one.effect),
            "designed effect",
        ),
        (old.guardrails == new.guardrails, "guardrails"),
    ];
    if let Some((_, name)) = same.iter().find(|(same, _)| !same) {
        return Err(ContinueError::Differs(name));
    }
    if !old.guardrails.is_empty() {
        return Err(ContinueError::Nothing("a gate with guardrails"));
    }
    if parent.design().units().is_some() {
        return Err(ContinueError::Nothing("a finite set has no other units"));
    }
    if old.claim == Claim::Measure && new.alpha_kill.is_none() && new.futile.is_none() {
        return Err(ContinueError::Nothing("a measurement"));
    }
    let look = parent.look();
    let of = |part| look.part(part).map_or(0.0, |evidence| evidence.ln_wealth);
    Ok(Carried {
        claim: of(Part::Claim),
        second: of(Part::Second),
        kill: of(Part::Kill),
        futile: of(Part::Futile),
    })
}
