//! The confidence sequence: at every registered look, the means that grid-Kelly does not reject at alpha.
//!
//! `l_t = max(l_(t-1), inf{m : L_up(m) < ln(2/alpha)})`, `u_t = min(u_(t-1), sup{m : L_down(m) < ln(2/alpha)})`. The
//! wealth is monotone in m, so each end is bisected, down to whole millionths of the effect, and kept on the rejected
//! side. All intervals cover the mean at once with probability 1 - alpha.
//! Source: Waudby-Smith and Ramdas 2024, theorem 1 with a mixture for the bets.

use crate::eprocess::bettor;
use crate::eprocess::bettor::Logs;
use crate::eprocess::design::Design;
use crate::eprocess::design::Side;
use crate::eprocess::finite::FiniteWealth;
use crate::eprocess::strata::Offsets;
use crate::eprocess::ticks::Metric;
use crate::eprocess::ticks::Null;
use crate::eprocess::track::Track;
use crate::eprocess::verdict::Bounds;
use clover_num::math;

/// The interval so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sequence {
    metric: Metric,
    fractions: usize,
    ln_threshold: f64,
    units: Option<u64>,
    /// Ticks in their order, of a finite set only: there the wealth depends on it.
    drawn: Vec<i64>,
    /// Their strata, where the design has some.
    strata: Vec<usize>,
    /// Of an upper and of a lower test.
    offsets: [Offsets; 2],
    bounds: Bounds,
}

impl Sequence {
    pub(super) fn new(design: &Design) -> Self {
        let scale = design.terms().scale;
        Self {
            metric: design.metric(),
            fractions: design.fractions(),
            ln_threshold: math::ln(2.0 / design.alpha()),
            units: design.units(),
            drawn: Vec::new(),
            strata: Vec::new(),
            offsets: [Side::Upper, Side::Lower].map(|side| design.offsets(side)),
            bounds: Bounds {
                low: -scale,
                high: scale,
            },
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Ticks in their order, of a finite set.
    pub(super) fn drawn(&self) -> &[i64] {
        &self.drawn
    }

    /// Their strata, in the same order.
    pub(super) fn strata(&self) -> &[usize] {
        &self.strata
    }

    pub(super) fn push(&mut self, tick: i64, stratum: Option<usize>) {
        if self.units.is_some() {
            self.drawn.push(tick);
            self.strata.extend(stratum);
        }
    }

    /// Intersects with the interval of a look.
    pub(super) fn look(&mut self, track: &Track) {
        let scale = self.metric.scale;
        let mut low = self.bounds.low;
        // Invariant of the bisection: `low` is the old end or rejected, `not` is taken as not rejected.
        if low + 1 < scale && self.rejects(track, Side::Upper, low + 1) {
            let mut not = scale;
            low += 1;
            while not - low > 1 {
                let middle = low + (not - low) / 2;
                if self.rejects(track, Side::Upper, middle) {
                    low = middle;
                } else {
                    not = middle;
                }
            }
        }
        let mut high = self.bounds.high;
        if high - 1 > -scale && self.rejects(track, Side::Lower, high - 1) {
            let mut not = -scale;
            high -= 1;
            while high - not > 1 {
                let middle = high - (high - not) / 2;
                if self.rejects(track, Side::Lower, middle) {
                    high = middle;
                } else {
                    not = middle;
                }
            }
        }
        if let Some(units) = self.units {
            let (least, most) = logical(self.metric, track, units);
            (low, high) = (low.max(least), high.min(most));
        }
        self.bounds = Bounds { low, high };
    }

    /// Whether the wealth against the null with this margin is past 2/alpha for certain.
    fn rejects(&self, track: &Track, side: Side, margin: i64) -> bool {
        let null = self.metric.null(side, margin);
        let ln_wealth = match self.units {
            Some(units) => {
                let [upper, lower] = &self.offsets;
                let offsets = match side {
                    Side::Upper => upper,
                    Side::Lower => lower,
                };
                let mut remaining = FiniteWealth::new(null, units, offsets.clone(), self.fractions);
                let strata = self.strata.iter().copied().chain(std::iter::repeat(0));
                for (tick, stratum) in self.drawn.iter().zip(strata) {
                    remaining.push(*tick, stratum);
                }
                remaining.ln_wealth()
            }
            None => self.counted(track, null),
        };
        bettor::is_past(track.n(), self.fractions, ln_wealth, self.ln_threshold)
    }

    /// Log wealth from counts; a cell counts at its end that is nearest to H0.
    fn counted(&self, track: &Track, null: Null) -> f64 {
        let mut logs = Logs::zero(self.fractions);
        let mut row = vec![0.0; self.fractions];
        let stake = i128::from(null.stake());
        let mut add = |tick: i64, count: u64| {
            bettor::ln_factors(i128::from(null.oriented(tick)), stake, &mut row);
            logs.add(count as f64, &row);
        };
        for (tick, count) in track.levels().counts() {
            add(tick, count);
        }
        for (least, most, count) in track.levels().cells() {
            let tick = match null.side {
                Side::Upper => least,
                Side::Lower => most,
            };
            add(tick, count);
        }
        logs.ln_wealth()
    }
}

/// What the units drawn leave possible: `S / N <= mean <= 1 - (n - S) / N`, in millionths, rounded outward.
fn logical(metric: Metric, track: &Track, units: u64) -> (i64, i64) {
    let (units, n) = (i128::from(units), i128::from(track.n()));
    let (scale, repeats) = (i128::from(metric.scale), i128::from(metric.repeats));
    let per = units * repeats;
    let centre = units * repeats * scale;
    let least = (track.sum() - centre).div_euclid(per);
    let most = track.sum() + i128::from(metric.span()) * (units - n) - centre;
    let most = -(-most).div_euclid(per);
    let narrow = |value: i128| i64::try_from(value).expect("BUG: a mean lies within its scale");
    (narrow(least), narrow(most))
}
