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
    /// A finite set has no other units, and a measurement without further tests has no wealth.
    #[error("nothing to carry: {0}")]
    Nothing(&'static str),
}

/// The log wealth that a gate of the same hypotheses on new units may start from.
///
/// W of the parent times W of the child is an e-process, even if the child is begun because of what the parent showed. So
/// "undecided" can be extended; a choice among several children cannot, so all links are declared. Guardrails begin anew
/// on the new units: each is a test of its own, and what it had shown before is given up, never used twice.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::eprocess::design::Guardrail;
    use crate::stats::eprocess::design::Terms;
    use crate::stats::eprocess::verdict::Verdict;

    #[test]
    fn guardrails_begin_anew_on_the_new_units() {
        let mut terms = Terms::new(1_000_000, 12);
        terms.guardrails = vec![Guardrail {
            direction: terms.direction,
            margin: 200_000,
            scale: 1_000_000,
        }];
        let mut parent = Gate::open(Design::new(terms.clone()).unwrap());
        for _ in 0..12 {
            parent.push_all(300_000, &[0]).unwrap();
        }
        assert_eq!(parent.verdict(), Verdict::Undecided);
        let mut longer = terms;
        longer.max_n = 200;
        longer.carried = carried(&parent, &Design::new(longer.clone()).unwrap()).unwrap();
        assert!(longer.carried.claim > 0.0);
        let mut child = Gate::open(Design::new(longer.clone()).unwrap());
        let guardrail = |gate: &Gate| {
            let look = gate.look();
            look.part(Part::Guardrail(0)).unwrap().ln_wealth
        };
        child.push_all(300_000, &[0]).unwrap();
        // One unit of difference 0 is all that its guardrail has seen.
        longer.carried = Carried::default();
        let mut fresh = Gate::open(Design::new(longer).unwrap());
        fresh.push_all(300_000, &[0]).unwrap();
        assert!((guardrail(&child) - guardrail(&fresh)).abs() < 1e-15);
        while child.push_all(300_000, &[0]).unwrap().verdict == Verdict::Continue {}
        assert_eq!(child.verdict(), Verdict::Promote);
    }

    #[test]
    fn an_undecided_gate_goes_on_where_it_stood() {
        let terms = Terms::new(1_000_000, 12);
        let mut parent = Gate::open(Design::new(terms.clone()).unwrap());
        for _ in 0..12 {
            parent.push(300_000).unwrap();
        }
        assert_eq!(parent.verdict(), Verdict::Undecided);
        let mut longer = terms.clone();
        longer.max_n = 40;
        let design = Design::new(longer.clone()).unwrap();
        longer.carried = carried(&parent, &design).unwrap();
        let mut child = Gate::open(Design::new(longer).unwrap());
        let ln = |gate: &Gate| gate.look().claim.unwrap().ln_wealth;
        assert!((ln(&child) - ln(&parent)).abs() < 1e-15 && ln(&child) > 0.0);
        while child.push(300_000).unwrap().verdict == Verdict::Continue {}
        assert_eq!(child.verdict(), Verdict::Promote);
        let mut other = terms;
        other.claim = Claim::Superior { margin: 1 };
        let refused = carried(&parent, &Design::new(other).unwrap()).unwrap_err();
        assert_eq!(refused, ContinueError::Differs("claim"));
    }
}
