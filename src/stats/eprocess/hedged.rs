//! Hedged capital and the other sequences of the peers `confseq` 0.0.11 and `ville` 0.1.0, in doubles.
//!
//! For comparison with published numbers; native gates bet by grid-Kelly. All take values in [0, 1] in their order.
//! Source: Waudby-Smith and Ramdas 2024, theorems 1 to 3.

use crate::eprocess::bettor;
use crate::eprocess::moments::Moments;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::unit;
use clover_num::math;

/// Steps of a bisection on [0, 1].
const STEPS: usize = 50;

/// Values in [0, 1], in their order.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a>(&'a [f64]);

impl<'a> Stream<'a> {
    /// Checks values.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn new(values: Values<'a>) -> Result<Self, SampleError> {
        unit("x", values.as_slice())?;
        Ok(Self(values.as_slice()))
    }

    /// The moments before each value.
    fn before(self) -> Vec<Moments> {
        let mut moments = Moments::default();
        let mut all = Vec::with_capacity(self.0.len());
        for x in self.0 {
            all.push(moments);
            moments.push(*x);
        }
        all
    }

    /// Predictable plug-in bets `sqrt(2 ln(k/alpha) / (var_(t-1) t ln(1 + t)))`.
    pub fn plugin_bets(self, k_over_alpha: f64) -> Vec<f64> {
        let ln = math::ln(k_over_alpha);
        self.before()
            .iter()
            .map(|before| before.plugin(ln))
            .collect()
    }

    /// Approximate growth rate adaptive bets against the mean m, within `[-c/(1-m), c/m]`.
    pub fn agrapa_bets(self, mean: f64, c: f64) -> Vec<f64> {
        let bet = |before: &Moments| before.agrapa(mean).max(-c / (1.0 - mean)).min(c / mean);
        self.before().iter().map(bet).collect()
    }

    /// Lower-bound-on-wealth bets `g / (M |g| + v + g^2)`, g = mu_(t-1) - m, M = m for g above 0 and 1 - m else, v the
    /// mean square from m with t + 1 for its count; not truncated.
    pub fn lower_bound_bets(self, mean: f64) -> Vec<f64> {
        let mut squares = 0.0;
        let mut bets = Vec::with_capacity(self.0.len());
        for (before, x) in self.before().iter().zip(self.0) {
            let g = before.mean() - mean;
            let side = if g > 0.0 { mean } else { 1.0 - mean };
            let known = if before.n == 0 { 0.25 } else { squares };
            let v = known / (before.n as f64 + 2.0);
            bets.push(g / (side * g.abs() + v + g * g));
            squares += (x - mean) * (x - mean);
        }
        bets
    }

    /// Log wealth after each value of betting `bet (x - mean)`.
    pub fn ln_wealth(self, bets: &[f64], mean: f64) -> Vec<f64> {
        let steps = self
            .0
            .iter()
            .zip(bets)
            .map(|(x, bet)| (bet * (x - mean)).max(-1.0));
        let mut ln = 0.0;
        steps
            .map(|step| {
                ln += math::ln_1p(step);
                ln
            })
            .collect()
    }

    /// Log capital of both sides after each value: bets `min(lambda, c/m)` upward and `min(lambda, c/(1-m))` downward.
    ///
    /// In a finite set of `units` the mean of what is left takes the place of m; once no such set exists, the wealth of
    /// the side whose null that breaks is infinite. Downward means are those of 1 - x.
    pub fn capital(self, lambda: &[f64], mean: f64, c: f64, units: Option<u64>) -> Capital {
        let mut sum = 0.0;
        let (mut up, mut down) = (0.0, 0.0);
        let mut capital = Capital::default();
        for (at, (x, lambda)) in self.0.iter().zip(lambda).enumerate() {
            let m = units.map_or(mean, |units| {
                (units as f64 * mean - sum) / (units as f64 - at as f64)
            });
            sum += x;
            up += side(*x, m, *lambda, c);
            down += side(1.0 - x, 1.0 - m, *lambda, c);
            capital.nulls.push(m);
            capital.up.push(up);
            capital.down.push(down);
        }
        capital
    }

    /// Time-uniform interval of the means whose hedged capital stays below 1/alpha, at every value.
    ///
    /// `max(K+ / 2, K- / 2)` with plug-in bets at `ln(2/alpha)`; in a finite set within the logical bounds.
    pub fn hedged(self, alpha: f64, c: f64, units: Option<u64>) -> Vec<(f64, f64)> {
        let lambda = self.plugin_bets(2.0 / alpha);
        let bar = math::ln(2.0 / alpha);
        let up = |m: f64| self.capital(&lambda, m, c, units).up;
        let down = |m: f64| self.capital(&lambda, m, c, units).down;
        let mut found = self.invert(bar, &up, &down);
        if let Some(units) = units {
            for (bounds, logical) in found.iter_mut().zip(self.logical(units)) {
                *bounds = (bounds.0.max(logical.0), bounds.1.min(logical.1));
            }
        }
        found
    }

    /// Lower ends from K+ alone, with plug-in bets and threshold at `1/alpha`.
    pub fn lower(self, alpha: f64, c: f64) -> Vec<f64> {
        let lambda = self.plugin_bets(1.0 / alpha);
        let up = |m: f64| self.capital(&lambda, m, c, None).up;
        let none = |_: f64| vec![f64::NEG_INFINITY; self.0.len()];
        let found = self.invert(math::ln(1.0 / alpha), &up, &none);
        found.into_iter().map(|(low, _)| low).collect()
    }

    /// The same interval with a mixture of `fractions` on each side, half the wealth on either.
    pub fn mixture(self, alpha: f64, fractions: usize) -> Vec<(f64, f64)> {
        let up = |m: f64| self.grid(m, fractions);
        let mirrored: Vec<f64> = self.0.iter().map(|x| 1.0 - x).collect();
        let down = |m: f64| Stream(&mirrored).grid(1.0 - m, fractions);
        self.invert(math::ln(2.0 / alpha), &up, &down)
    }

    /// Log wealth of the mixture after each value.
    pub fn grid(self, mean: f64, fractions: usize) -> Vec<f64> {
        let mut logs = vec![0.0; fractions];
        let step = |x: &f64| {
            for (log, k) in logs.iter_mut().zip(1..) {
                *log += math::ln_1p(bettor::fraction(k, fractions) * (x / mean - 1.0));
            }
            bettor::log_mean_exp(&logs)
        };
        self.0.iter().map(step).collect()
    }

    /// `S_t / N <= mean <= 1 - (t - S_t) / N`.
    pub fn logical(self, units: u64) -> Vec<(f64, f64)> {
        let (mut sum, mut t, units) = (0.0, 0.0, units as f64);
        let step = |x: &f64| {
            sum += x;
            t += 1.0;
            (sum / units, 1.0 - (t - sum) / units)
        };
        self.0.iter().map(step).collect()
    }

    /// Ends of the running intersection of `{m : up(m) < bar, down(m) < bar}`, bisected at every value.
    ///
    /// Capital at several values is one pass, so the ends of all are bisected together where they differ.
    fn invert(
        self,
        bar: f64,
        up: &dyn Fn(f64) -> Vec<f64>,
        down: &dyn Fn(f64) -> Vec<f64>,
    ) -> Vec<(f64, f64)> {
        let mut found = Vec::with_capacity(self.0.len());
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for at in 0..self.0.len() {
            let rejects = |side: &dyn Fn(f64) -> Vec<f64>, m: f64| side(m)[at] >= bar;
            low = low.max(end(low, 1.0, &|m| rejects(up, m)));
            high = high.min(end(high, 0.0, &|m| rejects(down, m)));
            found.push((low, high));
        }
        found
    }

    /// Empirical Bernstein sequence: centre `sum(l x) / sum(l)`, half-width
    /// `(ln(k/alpha) + sum((x - mu_(t-1))^2 psi(l))) / sum(l)`, `psi(l) = -ln(1 - l) - l`, bets at most .5; running
    /// intersection within [0, 1].
    pub fn empirical_bernstein(self, alpha: f64, kind: Bernstein) -> Vec<(f64, f64)> {
        let k = match kind {
            Bernstein::TwoSided => 2.0,
            Bernstein::Lower => 1.0,
        };
        let ln = math::ln(k / alpha);
        let (mut weights, mut weighted, mut spread) = (0.0, 0.0, 0.0);
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        let mut found = Vec::with_capacity(self.0.len());
        for (before, x) in self.before().iter().zip(self.0) {
            let bet = before.plugin(ln).min(0.5);
            let centre = match kind {
                Bernstein::TwoSided => before.mean(),
                // This peer's mean has no prior here.
                Bernstein::Lower if before.n == 0 => 0.0,
                Bernstein::Lower => before.sum / before.n as f64,
            };
            weights += bet;
            weighted += bet * x;
            spread += (x - centre) * (x - centre) * (-math::ln_1p(-bet) - bet);
            let (middle, half) = (weighted / weights, (ln + spread) / weights);
            low = low.max(middle - half);
            high = high.min(middle + half);
            found.push((low, high));
        }
        found
    }
}

/// Which empirical Bernstein sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bernstein {
    /// As in `ville`.
    TwoSided,
    /// The lower one of `confseq`; its upper ends mean nothing.
    Lower,
}

/// Log capital of both sides after each value.
#[derive(Clone, Debug, Default)]
pub struct Capital {
    /// The null means.
    pub nulls: Vec<f64>,
    /// Against "at most".
    pub up: Vec<f64>,
    /// Against "at least".
    pub down: Vec<f64>,
}

/// Log factor of one side: `1 + min(lambda, c/m) (x - m)`; without bound once m is below 0 or exceeded at 0.
fn side(x: f64, m: f64, lambda: f64, c: f64) -> f64 {
    if m < 0.0 || m <= 0.0 && x > 0.0 {
        return f64::INFINITY;
    }
    if m <= 0.0 {
        return 0.0;
    }
    math::ln_1p((lambda.min(c / m) * (x - m)).max(-1.0))
}

/// Moves from `from`, rejected or an end, towards `to` as far as is rejected.
fn end(from: f64, to: f64, rejects: &dyn Fn(f64) -> bool) -> f64 {
    let (mut rejected, mut not) = (from, to);
    let near = from + (to - from) * 1e-12;
    if !rejects(near) {
        return from;
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(rejected, not);
        if rejects(middle) {
            rejected = middle;
        } else {
            not = middle;
        }
    }
    rejected
}
