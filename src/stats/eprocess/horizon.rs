//! The horizon: how many observations a claim needs if all of them are the best possible.

use crate::eprocess::bettor;
use crate::eprocess::design::Bettor;
use crate::eprocess::design::Claim;
use crate::eprocess::design::Design;
use crate::eprocess::design::DesignError;
use crate::eprocess::design::EvalueThreshold;
use crate::eprocess::design::OBSERVATIONS_MAX;
use crate::eprocess::design::ObservationsNeeded;
use crate::eprocess::strata::Offsets;
use crate::eprocess::ticks::Metric;
use crate::eprocess::ticks::Null;
use crate::eprocess::ticks::Role;
use crate::eprocess::track::Track;

/// Steps after which an adaptive bettor counts as never arriving.
const STEPS_MAX: u64 = 10_000_000;

/// Refuses a design that not even its best observations could carry to 1/alpha within `max_n`.
pub(super) fn check(design: &Design) -> Result<(), DesignError> {
    let terms = design.terms();
    match observations(design, EvalueThreshold::of_level(terms.alpha)) {
        ObservationsNeeded::Observations(n) if n <= terms.max_n => Ok(()),
        needed => Err(DesignError::Horizon {
            max_n: terms.max_n,
            needed,
        }),
    }
}

/// The smallest n, at least `min_n`, after which the claim and its guardrails stand past `threshold` if every
/// observation is the best possible; `min_n` for a measurement.
pub fn observations(design: &Design, threshold: EvalueThreshold) -> ObservationsNeeded {
    let terms = design.terms();
    let ln = threshold.ln();
    let metric = design.metric();
    let claims: Vec<_> = design
        .tests()
        .iter()
        .filter(|test| matches!(test.role, Role::Claim | Role::Second))
        .collect();
    let mut needed = Some(terms.min_n);
    let mut wants = |n: Option<u64>| needed = needed.zip(n).map(|(a, b)| a.max(b));
    // The value that is best for both sides of an equivalence is no effect, as the factors are concave in it. With strata
    // that is another value in each: then each side's own best stands, which asks for less.
    let equivalent = matches!(terms.claim, Claim::Equivalent { .. }) && terms.strata.is_empty();
    let best = |metric: Metric, null: Null| {
        if equivalent {
            metric.half()
        } else {
            null.best()
        }
    };
    if let (Claim::Different { .. }, [upper, lower]) = (terms.claim, claims.as_slice()) {
        // Each side's wealth counts half; the other side's, at least 0, is left out.
        let half = std::f64::consts::LN_2;
        let sides = [upper, lower].map(|test| {
            let bar = ln + half - test.carried;
            let offsets = design.offsets(test.null.side);
            let best = test.null.best();
            crossing((design, &offsets), metric, test.null, best, bar)
        });
        wants(sides.into_iter().flatten().min());
    } else {
        for test in claims {
            let tick = best(metric, test.null);
            let bar = ln - test.carried;
            let offsets = design.offsets(test.null.side);
            wants(crossing((design, &offsets), metric, test.null, tick, bar));
        }
    }
    for (metric, null) in design.guardrails() {
        let none = Offsets::none();
        wants(crossing((design, &none), metric, null, null.best(), ln));
    }
    needed.map_or(
        ObservationsNeeded::TooMany,
        ObservationsNeeded::Observations,
    )
}

/// The smallest n after which a constant stream stands past a log threshold, its strata in the best order: an offset that
/// comes earlier multiplies a stake that is larger for those after it, so those of the largest come first.
fn crossing(
    (design, offsets): (&Design, &Offsets),
    metric: Metric,
    null: Null,
    tick: i64,
    bar: f64,
) -> Option<u64> {
    let fractions = design.fractions();
    if matches!(design.terms().bettor, Bettor::GridKelly { .. }) && design.units().is_none() {
        let mut row = vec![0.0; fractions];
        let value = i128::from(null.oriented(tick));
        bettor::ln_factors(value, i128::from(null.stake()), &mut row);
        let past = |n: u64| {
            let logs: Vec<f64> = row.iter().map(|one| n as f64 * one).collect();
            bettor::is_past(n, fractions, bettor::log_mean_exp(&logs), bar)
        };
        let (mut below, mut above) = (0, 1);
        while !past(above) {
            if above >= OBSERVATIONS_MAX {
                return None;
            }
            (below, above) = (above, 2 * above);
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if past(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        return Some(above);
    }
    let order = offsets.descending();
    let has_strata = !order.is_empty();
    let units = |stratum: &usize| usize::try_from(design.terms().strata[*stratum].units);
    let strata = order
        .iter()
        .flat_map(|at| std::iter::repeat_n(*at, units(at).unwrap_or(usize::MAX)));
    let mut strata = strata.chain(std::iter::repeat(0));
    let mut track = Track::new(design, metric, std::iter::once(null), has_strata);
    for n in 1..=design.units().unwrap_or(STEPS_MAX) {
        track.push(tick, strata.next().unwrap_or(0));
        let ln_wealth = track.ln_wealth().next().unwrap_or(0.0);
        if bettor::is_past(n, fractions, ln_wealth, bar) {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eprocess::design::GateTerms;
    use crate::eprocess::design::Population;

    fn needed(change: impl FnOnce(&mut GateTerms)) -> Result<ObservationsNeeded, DesignError> {
        let mut terms = GateTerms::new(1_000_000, 400);
        change(&mut terms);
        let design = Design::new(terms)?;
        Ok(observations(&design, EvalueThreshold::of_level(50_000)))
    }

    #[test]
    fn the_best_stream_says_what_a_design_needs() {
        // source: by hand, the mean over k of (1 + k/21)^n is 30.3 at n = 7; agent-eval 0.170.0 decides at n = 15.
        assert_eq!(needed(|_| ()), Ok(ObservationsNeeded::Observations(7)));
        let capped = |terms: &mut GateTerms| terms.bettor = Bettor::Agrapa { max_bet: 500_000 };
        assert_eq!(needed(capped), Ok(ObservationsNeeded::Observations(15)));
        let short = needed(|terms| terms.max_n = 6).unwrap_err();
        assert_eq!(
            short.to_string(),
            "max_n 6: the best observations need 7 to show the claim"
        );
        let measured = needed(|terms| terms.claim = Claim::Measure);
        assert_eq!(measured, Ok(ObservationsNeeded::Observations(5)));
        let set = |terms: &mut GateTerms| {
            (terms.max_n, terms.population) = (20, Population::Finite { units: 20 });
        };
        assert_eq!(needed(set), Ok(ObservationsNeeded::Observations(6)));
        // A margin of one millionth below the scale is never shown.
        let close = |terms: &mut GateTerms| terms.claim = Claim::Superior { margin: 999_999 };
        assert!(needed(close).is_err());
        // Wealth that was carried counts.
        let carried = |terms: &mut GateTerms| terms.carried.claim = 2.9;
        assert_eq!(needed(carried), Ok(ObservationsNeeded::Observations(5)));
    }

    #[test]
    fn equivalence_and_difference_have_their_own_best() {
        let different = |terms: &mut GateTerms| terms.claim = Claim::Different { margin: 0 };
        assert_eq!(needed(different), Ok(ObservationsNeeded::Observations(8)));
        let equivalent =
            |terms: &mut GateTerms| terms.claim = Claim::Equivalent { margin: 500_000 };
        let found = needed(equivalent).unwrap();
        // x = 1/2 against m = 1/4: returns of 1, as x = 1 against m = 1/2.
        assert_eq!(found, ObservationsNeeded::Observations(7));
    }
}
