//! Strata of a finite set as a control variate: what was expected of each stratum leaves the differences.
//!
//! With predictions b fixed beforehand, H0 "the values x of the N units sum to at most N m" is H0 "the x - R b sum to at
//! most N m - R sum b". The test bets on the second, whose values spread less where predictions come true: in ticks on
//! `x + o`, `o = R (max b - b)` in an upper test and `o = R (b - min b)` of the mirrored values in a lower one, all at
//! least 0, against `N m + sum o`. Every factor has conditional mean at most 1 under H0 whatever was predicted, as the
//! sum over all N units is known exactly. Of a superpopulation it is not: the shares of its strata are unknown.
//! Source: Waudby-Smith and Ramdas 2020 for the test without replacement.

use crate::eprocess::design::Side;

/// A stratum of a finite set, as it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// Mean improvement that is expected of its units, in millionths of the metric, at most the scale in magnitude.
    pub predicted: i64,
    /// How many units it has, at least 1.
    pub units: u64,
}

/// What is added to the values of each stratum in a test of one side, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offsets {
    of: Vec<i64>,
    /// Of all units together.
    total: i128,
}

impl Offsets {
    pub(super) fn new(strata: &[Stratum], repeats: i64, side: Side) -> Self {
        let predicted = || strata.iter().map(|one| one.predicted);
        let (least, most) = (
            predicted().min().unwrap_or(0),
            predicted().max().unwrap_or(0),
        );
        let offset = |predicted: i64| match side {
            Side::Upper => repeats * (most - predicted),
            Side::Lower => repeats * (predicted - least),
        };
        let of: Vec<i64> = predicted().map(offset).collect();
        let totals = of.iter().zip(strata);
        let total = totals.map(|(offset, one)| i128::from(*offset) * i128::from(one.units));
        Self {
            total: total.sum(),
            of,
        }
    }

    /// No strata: nothing is added.
    pub(super) fn none() -> Self {
        Self {
            of: Vec::new(),
            total: 0,
        }
    }

    /// What is added to a value of a stratum.
    pub(super) fn of(&self, stratum: usize) -> i64 {
        self.of.get(stratum).copied().unwrap_or(0)
    }

    /// What is added to the values of all units together.
    pub(super) fn total(&self) -> i128 {
        self.total
    }

    /// Strata from the largest offset to the least.
    pub(super) fn descending(&self) -> Vec<usize> {
        let mut strata: Vec<usize> = (0..self.of.len()).collect();
        strata.sort_by_key(|at| std::cmp::Reverse(self.of[*at]));
        strata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;
    use crate::eprocess::design::Claim;
    use crate::eprocess::design::Design;
    use crate::eprocess::design::Direction;
    use crate::eprocess::design::GateTerms;
    use crate::eprocess::design::Guardrail;
    use crate::eprocess::design::Population;
    use crate::eprocess::gate::Gate;
    use crate::eprocess::gate::PushError;
    use crate::eprocess::verdict::Hypothesis;
    use crate::eprocess::verdict::Verdict;
    use clover_num::math;

    const UNIT: i64 = 1_000_000;

    fn design(units: u64, strata: &[(i64, u64)], change: impl FnOnce(&mut GateTerms)) -> Design {
        let mut terms = GateTerms::new(UNIT, units);
        terms.population = Population::Finite { units };
        let strata = strata.iter();
        let strata = strata.map(|(predicted, units)| Stratum {
            predicted: *predicted,
            units: *units,
        });
        terms.strata = strata.collect();
        change(&mut terms);
        Design::new(terms).unwrap()
    }

    /// Each order of some units, with their strata.
    fn orders(units: &[(i64, usize)]) -> Vec<Vec<(i64, usize)>> {
        if units.is_empty() {
            return vec![Vec::new()];
        }
        let first = |at: usize| {
            let mut left = units.to_vec();
            let one = left.remove(at);
            let rest = orders(&left).into_iter();
            rest.map(move |rest| [vec![one], rest].concat())
        };
        (0..units.len()).flat_map(first).collect()
    }

    #[test]
    fn wealth_is_fair_over_all_orders_whatever_was_predicted() {
        // Seven units whose mean is exactly the null of both tests, in three strata; predictions good, absurd and turned round.
        let units = [
            (900_000, 0),
            (600_000, 0),
            (100_000, 1),
            (-200_000, 1),
            (-700_000, 2),
            (-600_000, 2),
            (-100_000, 2),
        ];
        let all = orders(&units);
        assert_eq!(all.len(), 5_040);
        for predicted in [
            [700_000, 0, -500_000],
            [-1_000_000, 1_000_000, 1_000_000],
            [-700_000, 0, 500_000],
            [0, 1, 0],
        ] {
            let strata: Vec<_> = predicted.into_iter().zip([2, 2, 3]).collect();
            let design = design(7, &strata, |terms| {
                terms.claim = Claim::Different { margin: 0 };
                (terms.alpha, terms.min_n) = (400_000, 7);
                terms.stop = crate::eprocess::EvalueThreshold::of_level(400_000);
            });
            let mut wealth = [[0.0; 2]; 7];
            for order in &all {
                let mut gate = Gate::verdicts_only(design.clone());
                for (at, (delta, stratum)) in order.iter().enumerate() {
                    gate.push_in(Some(*stratum), *delta, &[]).unwrap();
                    let look = gate.look();
                    for (sum, part) in wealth[at]
                        .iter_mut()
                        .zip([Hypothesis::Claim, Hypothesis::Second])
                    {
                        *sum += math::exp(look.part(part).unwrap().ln_wealth) / 5_040.0;
                    }
                }
            }
            // At most 1 in the mean; exactly 1 while the null is met with equality and every stake is above 0.
            let [first, .., last] = wealth;
            for mean in first {
                assert!((mean - 1.0).abs() < 1e-12, "{predicted:?} {wealth:?}");
            }
            assert!(last.iter().all(|mean| *mean <= 1.0 + 1e-12), "{wealth:?}");
        }
    }

    #[test]
    fn equal_predictions_change_nothing_and_good_ones_decide_sooner() {
        // Two strata that differ by more than units do within them, about a small mean.
        let mut units = Vec::new();
        for at in 0..200_i64 {
            let spread = (at % 5 - 2) * 100_000;
            let (mean, stratum) = if at % 2 == 0 {
                (440_000, 0)
            } else {
                (-360_000, 1)
            };
            units.push((mean + spread, stratum));
        }
        let stop = |design: &Design, run: usize| {
            let (mut draws, mut left) = (Draws::of([5; 32], run), units.clone());
            let mut gate = Gate::verdicts_only(design.clone());
            while !gate.verdict().is_terminal() {
                let (delta, stratum) = left.swap_remove(draws.below(left.len()));
                let stratum = (!design.terms().strata.is_empty()).then_some(stratum);
                gate.push_in(stratum, delta, &[]).unwrap();
            }
            assert_eq!(gate.verdict(), Verdict::Promote);
            gate.n()
        };
        let median = |design: &Design| {
            let mut stops: Vec<u64> = (0..101).map(|run| stop(design, run)).collect();
            stops.sort_unstable();
            stops[50]
        };
        let none = median(&design(200, &[], |_| ()));
        let equal = design(200, &[(40_000, 100), (40_000, 100)], |_| ());
        assert_eq!(median(&equal), none);
        let good = median(&design(200, &[(440_000, 100), (-360_000, 100)], |_| ()));
        assert!(4 * good < 3 * none, "{good} instead of {none}");
        let turned = median(&design(200, &[(-360_000, 100), (440_000, 100)], |_| ()));
        assert!(turned > none, "{turned} and {none}");
    }

    #[test]
    fn a_smaller_value_mirrors_and_guardrails_stay_as_they_are() {
        let rail = Guardrail {
            direction: Direction::Increase,
            margin: 200_000,
            scale: UNIT,
        };
        let strata = [(400_000, 20), (-100_000, 20)];
        let with = |strata: &[(i64, u64)], claim, direction| {
            Gate::open(design(40, strata, |terms| {
                (terms.claim, terms.direction) = (claim, direction);
                (terms.repeats, terms.guardrails) = (2, vec![rail]);
            }))
        };
        let upper = Claim::Different { margin: 0 };
        let mirrored = [(-400_000, 20), (100_000, 20)];
        let mut gate = with(&strata, upper, Direction::Increase);
        let mut mirror = with(&mirrored, upper, Direction::Increase);
        let mut turned = with(&strata, upper, Direction::Decrease);
        let mut plain = with(&[], upper, Direction::Increase);
        for (at, stratum) in (0..12_i64).zip([0, 1].into_iter().cycle()) {
            let delta = (at * 37 % 9 - 3) * 100_000;
            gate.push_in(Some(stratum), delta, &[delta]).unwrap();
            mirror.push_in(Some(stratum), -delta, &[delta]).unwrap();
            turned.push_in(Some(stratum), -delta, &[-delta]).unwrap();
            plain.push_all(delta, &[delta]).unwrap();
        }
        let ln = |gate: &Gate, part| gate.look().part(part).unwrap().ln_wealth;
        assert!((ln(&gate, Hypothesis::Claim) - ln(&mirror, Hypothesis::Second)).abs() < 1e-15);
        assert!((ln(&gate, Hypothesis::Claim) - ln(&turned, Hypothesis::Claim)).abs() < 1e-15);
        let rail = Hypothesis::Guardrail(0);
        assert!((ln(&gate, rail) - ln(&plain, rail)).abs() < 1e-15);
        let (here, there) = (
            gate.look().interval.unwrap(),
            mirror.look().interval.unwrap(),
        );
        assert_eq!((here.low, here.high), (-there.high, -there.low));
    }

    #[test]
    fn strata_are_all_the_units_and_no_more_of_each_come_than_there_are() {
        let mut terms = GateTerms::new(UNIT, 20);
        let strata = |units: u64, predicted: i64| vec![Stratum { predicted, units }; 2];
        terms.strata = strata(10, 0);
        assert!(Design::new(terms.clone()).is_err(), "a superpopulation");
        terms.population = Population::Finite { units: 20 };
        assert!(Design::new(terms.clone()).is_ok());
        for wrong in [strata(9, 0), strata(10, UNIT + 1), strata(u64::MAX, 0)] {
            terms.strata = wrong;
            assert!(Design::new(terms.clone()).is_err());
        }
        let mut gate = Gate::open(design(20, &[(100_000, 2), (0, 18)], |_| ()));
        assert!(gate.push(0).is_err() && gate.push_in(Some(2), 0, &[]).is_err());
        for _ in 0..2 {
            gate.push_in(Some(0), 0, &[]).unwrap();
        }
        let before = gate.clone();
        let refused = gate.push_in(Some(0), 0, &[]).unwrap_err();
        assert!(matches!(refused, PushError::Stratum { found: Some(0), .. }));
        assert_eq!(gate, before);
        assert!(
            Gate::open(design(20, &[], |_| ()))
                .push_in(Some(0), 0, &[])
                .is_err()
        );
        // What was observed before is recalled with its strata, and not without.
        let mut again = Gate::open(gate.design().clone());
        assert!(again.clone().recall(&[vec![(0, 2)]], &[], &[0, 0]).is_err());
        assert!(
            again
                .clone()
                .recall(&[vec![(0, 1), (0, 1)]], &[], &[])
                .is_err()
        );
        again.recall(&[vec![(0, 1), (0, 1)]], &[], &[0, 0]).unwrap();
        again.settle();
        assert_eq!(again.state().strata, gate.state().strata);
        assert_eq!(again.look(), gate.look());
    }
}
