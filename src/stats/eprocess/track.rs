//! One metric's observations and the wealth of its tests.

use crate::num::math;
use crate::stats::eprocess::bettor::Logs;
use crate::stats::eprocess::bettor::ln_factors;
use crate::stats::eprocess::counts::Levels;
use crate::stats::eprocess::counts::Seat;
use crate::stats::eprocess::design::Bettor;
use crate::stats::eprocess::design::Design;
use crate::stats::eprocess::design::Looks;
use crate::stats::eprocess::design::MILLION;
use crate::stats::eprocess::finite::Remaining;
use crate::stats::eprocess::moments::Moments;
use crate::stats::eprocess::ticks::Metric;
use crate::stats::eprocess::ticks::Null;

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
    Remaining(Remaining),
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
    pub(super) fn new(design: &Design, metric: Metric, nulls: impl Iterator<Item = Null>) -> Self {
        let fractions = design.fractions();
        Self {
            metric,
            fractions,
            n: 0,
            sum: 0,
            levels: Levels::new(metric.span()),
            wealth: nulls.map(|null| wealth(design, null)).collect(),
            row: vec![0.0; fractions],
        }
    }

    /// The tick of a unit's sum; `None` beyond the scale.
    pub(super) fn tick(&self, sum: i64) -> Option<i64> {
        self.metric.tick(sum)
    }

    /// The bound on a unit's sum.
    pub(super) fn bound(&self) -> i64 {
        self.metric.half()
    }

    pub(super) fn push(&mut self, tick: i64) {
        self.n += 1;
        self.sum += i128::from(tick);
        let seat = self.levels.push(tick);
        for wealth in &mut self.wealth {
            wealth.push(tick, seat, &mut self.row);
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

fn wealth(design: &Design, null: Null) -> Wealth {
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
            Wealth::Remaining(Remaining::new(null, units, fractions))
        }
    }
}

impl Wealth {
    fn push(&mut self, tick: i64, seat: Seat, row: &mut [f64]) {
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
            Self::Remaining(remaining) => remaining.push(tick),
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
