//! One metric's observations and the wealth of its tests.

use crate::eprocess::bettor::Logs;
use crate::eprocess::bettor::ln_factors;
use crate::eprocess::counts::Levels;
use crate::eprocess::counts::Seat;
use crate::eprocess::design::Bettor;
use crate::eprocess::design::Design;
use crate::eprocess::design::Looks;
use crate::eprocess::design::MILLION;
use crate::eprocess::finite::FiniteWealth;
use crate::eprocess::moments::Moments;
use crate::eprocess::strata::Offsets;
use crate::eprocess::ticks::Metric;
use crate::eprocess::ticks::Null;
use clover_num::math;

/// Bound on what the order of a compensated sum of 10^9 terms of at most 21 in magnitude changes, generously.
pub(super) const ABOUT: f64 = 1e-5;

/// Wealth against one null.
#[derive(Clone, Debug, PartialEq)]
enum Wealth {
    /// Grid-Kelly: logarithms of factors by slot of the levels, what came beyond the levels, in its order, and where
    /// every observation is a look the sums of all in their order, which say cheaply where the wealth about is.
    Mixture {
        null: Null,
        table: Vec<f64>,
        beyond: Logs,
        running: Option<Logs>,
    },
    /// Adaptive bets, in the order of the observations.
    Adaptive {
        null: Null,
        bets: Bets,
        moments: Moments,
        ln_wealth: f64,
    },
    /// Grid-Kelly without replacement.
    Remaining(FiniteWealth),
}

/// How the next bet is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bets {
    Agrapa { max_bet: f64 },
    Plugin { share: f64, ln_2_over_alpha: f64 },
}

/// A metric's observations and wealth.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Track {
    metric: Metric,
    fractions: usize,
    n: u64,
    sum: i128,
    levels: Levels,
    wealth: Vec<Wealth>,
    row: Vec<f64>,
}

impl Track {
    /// Before the first observation; strata are predicted of the main metric alone.
    pub(super) fn new(
        design: &Design,
        metric: Metric,
        nulls: impl Iterator<Item = Null>,
        has_strata: bool,
    ) -> Self {
        let fractions = design.fractions();
        Self {
            metric,
            fractions,
            n: 0,
            sum: 0,
            levels: Levels::new(metric.span()),
            wealth: nulls.map(|null| wealth(design, null, has_strata)).collect(),
            row: vec![0.0; fractions],
        }
    }

    /// The tick of a unit's sum; `None` beyond the scale.
    pub(super) fn tick(&self, sum: i64) -> Option<i64> {
        self.metric.tick(sum)
    }

    /// The tick of a unit whose improvement may be more by `slack`: the most that it may be.
    pub(super) fn tick_within(&self, sum: i64, slack: i64) -> Option<i64> {
        let tick = self.tick(sum)?.saturating_add(slack.max(0));
        Some(tick.min(self.metric.span()))
    }

    /// The bound on a unit's sum.
    pub(super) fn bound(&self) -> i64 {
        self.metric.half()
    }

    /// Takes a value of a stratum; of a design without strata, 0.
    pub(super) fn push(&mut self, tick: i64, stratum: usize) {
        self.n += 1;
        self.sum += i128::from(tick);
        let seat = self.levels.push(tick);
        for wealth in &mut self.wealth {
            wealth.push((tick, stratum), seat, &mut self.row);
        }
    }

    /// As many pushes of one tick of no stratum: in one step where the order of the observations does not matter.
    pub(super) fn push_times(&mut self, tick: i64, times: u64) {
        let counted = |wealth: &Wealth| matches!(wealth, Wealth::Mixture { .. });
        let counted = self.wealth.iter().all(counted);
        for left in (0..times).rev() {
            self.push(tick, 0);
            if !counted {
                continue;
            }
            let Some(slot) = self.levels.again(tick, left) else {
                continue;
            };
            self.n += left;
            self.sum += i128::from(tick) * i128::from(left);
            for wealth in &mut self.wealth {
                wealth.again(slot, left, self.fractions);
            }
            return;
        }
    }

    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// Sum of the ticks.
    pub(super) fn sum(&self) -> i128 {
        self.sum
    }

    pub(super) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Log wealth of each test.
    pub(super) fn ln_wealth(&self) -> impl Iterator<Item = f64> + '_ {
        self.wealth
            .iter()
            .map(|wealth| wealth.ln_wealth(&self.levels, self.fractions))
    }

    /// Log wealth of each test within [`ABOUT`] of its magnitude, for looks at every observation without a pass over the
    /// levels.
    pub(super) fn about(&self) -> impl Iterator<Item = f64> + '_ {
        self.wealth.iter().map(|wealth| match wealth {
            Wealth::Mixture {
                running: Some(running),
                ..
            } => running.ln_wealth(),
            other => other.ln_wealth(&self.levels, self.fractions),
        })
    }

    /// What the wealth holds beside counts: numbers that depend on the order of the observations.
    pub(super) fn ordered(&self) -> Vec<f64> {
        let mut all = Vec::new();
        for wealth in &self.wealth {
            match wealth {
                Wealth::Mixture { beyond, .. } if self.levels.cells().next().is_some() => {
                    all.extend(beyond.values());
                }
                Wealth::Mixture { .. } => {}
                Wealth::Adaptive {
                    moments, ln_wealth, ..
                } => all.extend([moments.sum, moments.squares, *ln_wealth]),
                Wealth::Remaining(remaining) => all.extend(remaining.ordered()),
            }
        }
        all
    }
}

fn wealth(design: &Design, null: Null, has_strata: bool) -> Wealth {
    let fractions = design.fractions();
    let part = |millionths: u32| f64::from(millionths) / f64::from(MILLION);
    let adaptive = |bets| Wealth::Adaptive {
        null,
        bets,
        moments: Moments::default(),
        ln_wealth: 0.0,
    };
    match (design.terms().bettor, design.units()) {
        (Bettor::GridKelly { .. }, None) => Wealth::Mixture {
            null,
            table: Vec::new(),
            beyond: Logs::zero(fractions),
            running: (design.terms().looks == Looks::Every).then(|| Logs::zero(fractions)),
        },
        (Bettor::Agrapa { max_bet }, _) => adaptive(Bets::Agrapa {
            max_bet: part(max_bet),
        }),
        (Bettor::Plugin { share }, _) => adaptive(Bets::Plugin {
            share: part(share),
            ln_2_over_alpha: math::ln(2.0 / design.alpha()),
        }),
        (Bettor::GridKelly { .. }, Some(units)) => {
            let offsets = if has_strata {
                design.offsets(null.side)
            } else {
                Offsets::none()
            };
            Wealth::Remaining(FiniteWealth::new(null, units, offsets, fractions))
        }
    }
}

impl Wealth {
    fn push(&mut self, (tick, stratum): (i64, usize), seat: Seat, row: &mut [f64]) {
        match self {
            Self::Mixture {
                null,
                table,
                beyond,
                running,
            } => {
                if let Seat::Known(slot) = seat {
                    if let Some(running) = running {
                        running.add(1.0, &table[slot * row.len()..][..row.len()]);
                    }
                    return;
                }
                let value = i128::from(null.oriented(tick));
                ln_factors(value, i128::from(null.stake()), row);
                if let Some(running) = running {
                    running.add(1.0, row);
                }
                if seat == Seat::New {
                    table.extend_from_slice(row);
                } else {
                    beyond.add(1.0, row);
                }
            }
            Self::Adaptive {
                null,
                bets,
                moments,
                ln_wealth,
            } => {
                let span = null.span as f64;
                let x = null.oriented(tick) as f64 / span;
                let mean = null.stake() as f64 / span;
                let bet = bets.next(moments, mean);
                *ln_wealth += math::ln_1p(bet * (x - mean));
                moments.push(x);
            }
            Self::Remaining(remaining) => remaining.push(tick, stratum),
        }
    }

    /// Takes a known value as many times more; it is counted elsewhere.
    fn again(&mut self, slot: usize, times: u64, fractions: usize) {
        if let Self::Mixture {
            table,
            running: Some(running),
            ..
        } = self
        {
            running.add(times as f64, &table[slot * fractions..][..fractions]);
        }
    }

    fn ln_wealth(&self, levels: &Levels, fractions: usize) -> f64 {
        match self {
            Self::Mixture { table, beyond, .. } => {
                let mut logs = Logs::zero(fractions);
                for (slot, count) in levels.slots() {
                    logs.add(count as f64, &table[slot * fractions..][..fractions]);
                }
                logs.add(1.0, &beyond.values());
                logs.ln_wealth()
            }
            Self::Adaptive { ln_wealth, .. } => *ln_wealth,
            Self::Remaining(remaining) => remaining.ln_wealth(),
        }
    }
}

impl Bets {
    /// The bet on the next observation, at least 0.
    fn next(self, moments: &Moments, mean: f64) -> f64 {
        match self {
            Self::Agrapa { max_bet } => moments.agrapa(mean).max(0.0).min(max_bet),
            Self::Plugin {
                share,
                ln_2_over_alpha,
            } => moments.plugin(ln_2_over_alpha).min(share / mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::eprocess::design::Bettor;
    use crate::eprocess::design::Design;
    use crate::eprocess::design::Direction;
    use crate::eprocess::design::GateTerms;
    use crate::eprocess::design::Guardrail;
    use crate::eprocess::design::Looks;
    use crate::eprocess::design::Population;
    use crate::eprocess::gate::Gate;
    use crate::eprocess::verdict::Verdict;

    const UNIT: i64 = 1_000_000;

    fn gate(change: &dyn Fn(&mut GateTerms)) -> Gate {
        let mut terms = GateTerms::new(UNIT, 400);
        change(&mut terms);
        Gate::open(Design::new(terms).unwrap())
    }

    #[test]
    fn what_was_observed_before_is_recalled_without_a_look() {
        // Of the sorts of design: the order matters, it does not, and a guardrail stands beside.
        let finite = Population::Finite { units: 80 };
        let rail = Guardrail {
            direction: Direction::Increase,
            margin: UNIT / 10,
            scale: UNIT,
        };
        let changes: [&dyn Fn(&mut GateTerms); 4] = [
            &|_| {},
            &|terms| (terms.max_n, terms.population) = (80, finite),
            &|terms| terms.bettor = Bettor::Plugin { share: 500_000 },
            &|terms| terms.guardrails = vec![rail],
        ];
        let deltas: Vec<i64> = (0..60).map(|at| (at * 37 % 5 - 2) * 100_000).collect();
        for (at, change) in changes.into_iter().enumerate() {
            let rails = usize::from(at == 3);
            let last = |terms: &mut GateTerms| {
                change(terms);
                terms.looks = Looks::At(vec![60]);
            };
            let mut pushed = gate(&last);
            for delta in &deltas {
                pushed.push_all(*delta, &[-*delta][..rails]).unwrap();
            }
            let of = |sign: i64| deltas.iter().map(|delta| (sign * delta, 1)).collect();
            let mut counted = vec![of(1), of(-1)];
            if at % 3 == 0 {
                let times = |level: i64| deltas.iter().filter(|one| **one == level).count() as u64;
                let levels = (-2..=2).map(|level| level * 100_000);
                let levels: Vec<_> = levels.map(|level| (level, times(level))).collect();
                counted = vec![
                    levels.clone(),
                    levels.iter().map(|(of, n)| (-of, *n)).collect(),
                ];
            }
            counted.truncate(1 + rails);
            let mut recalled = gate(&last);
            recalled.recall(&counted, &[], &[]).unwrap();
            assert_eq!(recalled.verdict(), Verdict::Continue);
            assert!(
                recalled
                    .look()
                    .parts
                    .iter()
                    .all(|(_, part)| part.ln_peak <= 0.0)
            );
            recalled.settle();
            assert_eq!(recalled.state(), pushed.state());
        }
        // A run that would have decided is no verdict, and the next look is.
        let mut past = gate(&|_| ());
        past.recall(&[vec![(UNIT, 50)]], &[], &[]).unwrap();
        let step = past.push(UNIT).unwrap();
        assert_eq!((step.n, step.verdict), (51, Verdict::Promote));
        let mut gate = gate(&|terms| terms.max_n = 8);
        let refused = |streams: &[Vec<(i64, u64)>]| gate.clone().recall(streams, &[], &[]).is_err();
        assert!(refused(&[]) && refused(&[vec![(0, 9)]]) && refused(&[vec![(2 * UNIT, 1)]]));
        assert!(
            refused(&[vec![(0, 1)], vec![(0, 1)]])
                && gate.recall(&[vec![(0, 8)]], &[], &[]).is_ok()
        );
    }
}
