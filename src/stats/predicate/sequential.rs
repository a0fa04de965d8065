//! Gate P8, sequential: the confirm test by betting, unit by unit in the order of the beacon.

use crate::eprocess::bettor;
use crate::eprocess::bettor::FRACTIONS;
use crate::eprocess::bounded::BoundedWealth;
use crate::sample::SampleError;
use crate::sample::open_unit;
use clover_num::math;

/// By how much a mean of differences may exceed their bound in the last places of doubles.
const SLACK: f64 = 1e-12;

/// What a confirm test is held to, registered before any label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequentialTerms {
    /// Hypotheses M among which alpha is divided.
    pub hypotheses: usize,
    /// Error rate of all of them together.
    pub alpha: f64,
    /// The improvement of DMSE that the block is planned for, above 0: a smaller one is futile.
    pub effect: f64,
    /// Bound on the probability to stop as futile although DMSE is at most minus the effect.
    pub beta: f64,
    /// Bound on the probability to stop as harmful although DMSE is at most 0.
    pub harm: f64,
}

impl SequentialTerms {
    fn checked(&self) -> Result<(), SampleError> {
        open_unit("alpha", self.alpha)?;
        open_unit("beta", self.beta)?;
        open_unit("harm", self.harm)?;
        if self.hypotheses == 0 || !(self.effect.is_finite() && self.effect > 0.0) {
            return Err(SampleError::Parameter {
                name: "hypotheses or effect",
                expected: "at least 1 hypothesis and an effect above 0",
            });
        }
        Ok(())
    }
}

/// What ends a sequential confirm test; the threshold on DMSE and the other gates are judged on the whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequentialVerdict {
    /// More units may come.
    Continue,
    /// The evidence crossed.
    Crossed,
    /// The improvement that was planned for is not there.
    Futile,
    /// The candidate is worse.
    Harmful,
}

/// The test of one hypothesis of M: `W_t = (1/K) sum_k prod_(i <= t) (1 - f_k d_i / H_j)` crosses at `M / alpha`.
///
/// `H_j` bounds every difference whatever the labels, so it is known before any of them; differences come in beacon order,
/// one for each unit. Two more tests may end it, each by a bet of its own, and neither counts towards alpha: futility, on
/// H0 DMSE <= -effect at 1 / beta, and harm, on H0 DMSE <= 0 at 1 / harm. A candidate whose rewards could not improve by
/// the effect under any labels is futile at the first unit. Source: CLOVER v1.1, section 5; Waudby-Smith and Ramdas 2024.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    bound: f64,
    gain: f64,
    claim: Option<BoundedWealth>,
    futile: Option<BoundedWealth>,
    harm: Option<BoundedWealth>,
    bars: [f64; 3],
    n: u64,
    ln_peak: f64,
    verdict: SequentialVerdict,
}

impl Sequential {
    /// The test before its first unit: `bound` is `H_j`, `gain` the largest improvement that any labels could give (`H`
    /// of the two rewards exchanged), both at least 0.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a number outside its range.
    pub fn new(bound: f64, gain: f64, terms: &SequentialTerms) -> Result<Self, SampleError> {
        terms.checked()?;
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        if !(sound(bound) && sound(gain)) {
            return Err(SampleError::Parameter {
                name: "bound or gain",
                expected: "finite and at least 0",
            });
        }
        let bet = |null: f64, low: f64| {
            (low < null)
                .then(|| BoundedWealth::new(null, low, FRACTIONS))
                .transpose()
        };
        Ok(Self {
            bound,
            gain,
            // Without a reward that moved every difference is 0, and so is the bound.
            claim: bet(0.0, -bound)?,
            futile: bet(-terms.effect, -gain)?,
            harm: bet(0.0, -gain)?,
            bars: [
                math::ln(terms.hypotheses as f64 / terms.alpha),
                -math::ln(terms.harm),
                -math::ln(terms.beta),
            ],
            n: 0,
            ln_peak: 0.0,
            verdict: SequentialVerdict::Continue,
        })
    }

    /// Takes the difference `(Y - R')^2 - (Y - R)^2` of the next unit; after a verdict it counts for nothing.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] outside the bounds, or for NaN; the test stays as it was.
    pub fn push(&mut self, difference: f64) -> Result<SequentialVerdict, SampleError> {
        let within = -self.gain - SLACK <= difference && difference <= self.bound + SLACK;
        if !within {
            return Err(SampleError::Parameter {
                name: "difference",
                expected: "from minus the gain to the bound",
            });
        }
        if self.verdict != SequentialVerdict::Continue {
            return Ok(self.verdict);
        }
        let difference = difference.clamp(-self.gain, self.bound);
        if let Some(claim) = &mut self.claim {
            claim.push(-difference)?;
        }
        for stop in [&mut self.futile, &mut self.harm].into_iter().flatten() {
            stop.push(difference)?;
        }
        self.n += 1;
        self.ln_peak = self.ln_peak.max(self.ln_wealth());
        let past = |bet: &Option<BoundedWealth>, bar: f64| {
            let ln = bet.as_ref().map(BoundedWealth::ln_wealth);
            ln.is_some_and(|ln| bettor::is_past(self.n, FRACTIONS, ln, bar))
        };
        let [cross, harm, futile] = self.bars;
        self.verdict = if past(&self.claim, cross) {
            SequentialVerdict::Crossed
        } else if past(&self.harm, harm) {
            SequentialVerdict::Harmful
        } else if self.futile.is_none() || past(&self.futile, futile) {
            SequentialVerdict::Futile
        } else {
            SequentialVerdict::Continue
        };
        Ok(self.verdict)
    }

    /// Units that were bet on.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Log wealth.
    pub fn ln_wealth(&self) -> f64 {
        self.claim.as_ref().map_or(0.0, BoundedWealth::ln_wealth)
    }

    /// The largest log wealth so far, at least 0.
    pub fn ln_peak(&self) -> f64 {
        self.ln_peak
    }

    /// The always-valid p: `min(1, 1 / max W)`.
    pub fn p(&self) -> f64 {
        math::exp(-self.ln_peak).min(1.0)
    }

    /// The verdict so far.
    pub fn verdict(&self) -> SequentialVerdict {
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    const TERMS: SequentialTerms = SequentialTerms {
        hypotheses: 1,
        alpha: 0.05,
        effect: 0.1,
        beta: 0.1,
        harm: 0.05,
    };

    fn run(terms: &SequentialTerms, most: u64, difference: f64) -> (SequentialVerdict, u64) {
        let mut test = Sequential::new(0.5, 0.5, terms).unwrap();
        while test.verdict() == SequentialVerdict::Continue && test.n() < most {
            test.push(difference).unwrap();
        }
        (test.verdict(), test.n())
    }

    #[test]
    fn units_cross_at_the_hypotheses_over_alpha() {
        let many = SequentialTerms {
            hypotheses: 10,
            ..TERMS
        };
        // source: by hand, the mean over k of (1 + k/21)^n is 30.3 at n = 7, 170.8 at 10, 309.3 at 11.
        assert_eq!(run(&TERMS, 99, -0.5), (SequentialVerdict::Crossed, 7));
        assert_eq!(run(&many, 99, -0.5), (SequentialVerdict::Crossed, 11));
        let mut test = Sequential::new(0.5, 0.5, &TERMS).unwrap();
        assert!(
            test.push(0.6).is_err() && test.push(-0.6).is_err() && test.push(f64::NAN).is_err()
        );
        assert_eq!((test.n(), test.verdict()), (0, SequentialVerdict::Continue));
        assert!(Sequential::new(-1.0, 0.0, &TERMS).is_err());
        assert!(Sequential::new(0.5, f64::NAN, &TERMS).is_err());
        let no_effect = SequentialTerms {
            effect: 0.0,
            ..TERMS
        };
        assert!(Sequential::new(0.5, 0.5, &no_effect).is_err());
    }

    #[test]
    fn the_wealth_is_the_mean_of_the_products_at_every_unit() {
        let differences = [-0.3, 0.1, -0.5, 0.0, 0.25, -0.4];
        let mut test = Sequential::new(0.5, 0.5, &TERMS).unwrap();
        let mut products = [1.0_f64; 20];
        let mut peak = 1.0_f64;
        for difference in differences {
            test.push(difference).unwrap();
            // source: the formula of the page, in plain products: 1 - f_k d / H, f_k = k / 21, H = 0.5.
            for (product, k) in products.iter_mut().zip(1..) {
                *product *= 1.0 - f64::from(k) / 21.0 * difference / 0.5;
            }
            let wealth = products.iter().sum::<f64>() / 20.0;
            peak = peak.max(wealth);
            assert!((test.ln_wealth() - math::ln(wealth)).abs() < 1e-13);
            assert!((test.p() - 1.0 / peak).abs() < 1e-13);
        }
        assert_eq!(test.verdict(), SequentialVerdict::Continue);
    }

    #[test]
    fn what_cannot_or_does_not_improve_is_futile_and_what_harms_is_harmful() {
        let (verdict, n) = run(&TERMS, 1000, 0.0);
        assert!(verdict == SequentialVerdict::Futile && n < 40);
        // Harm of the bound stops by whichever bar it passes first, and never as a crossing.
        let strict = SequentialTerms {
            beta: 1e-9,
            ..TERMS
        };
        let (verdict, n) = run(&strict, 1000, 0.5);
        assert!(verdict == SequentialVerdict::Harmful && n < 12);
        let mut still = Sequential::new(0.0, 0.0, &TERMS).unwrap();
        assert_eq!(still.push(0.0), Ok(SequentialVerdict::Futile));
        assert!((still.p() - 1.0).abs() <= 0.0);
        let mut small = Sequential::new(0.05, 0.05, &TERMS).unwrap();
        assert_eq!(small.push(-0.05), Ok(SequentialVerdict::Futile));
    }

    /// Two-point differences: `-low` with the chance that gives the mean, else `high`.
    fn rates(mean: f64, terms: &SequentialTerms, runs: usize) -> ([f64; 4], f64) {
        let (low, high) = (-0.3, 0.36);
        let chance = (high - mean) / (high - low);
        let (mut counts, mut units) = ([0_u32; 4], 0);
        for at in 0..runs {
            let mut draws = Draws::of([7; 32], at);
            let mut test = Sequential::new(0.36, 0.36, terms).unwrap();
            while test.verdict() == SequentialVerdict::Continue && test.n() < 400 {
                let is_low = (draws.below(1_000_000) as f64) < chance * 1e6;
                test.push(if is_low { low } else { high }).unwrap();
            }
            counts[test.verdict() as usize] += 1;
            units += test.n();
        }
        let share = |count: u32| f64::from(count) / runs as f64;
        (counts.map(share), units as f64 / runs as f64)
    }

    #[test]
    fn the_level_holds_and_stops_save_units() {
        let terms = SequentialTerms {
            hypotheses: 4,
            effect: 0.06,
            ..TERMS
        };
        let [_, crossed, futile, harmful] = [0, 1, 2, 3];
        // At DMSE 0 the claim crosses with at most .0125, harm with at most .05; 2,000 runs have a standard error of .0025.
        let (null, units) = rates(0.0, &terms, 2_000);
        assert!(null[crossed] <= 0.0125 + 3.0 * 0.0025, "{null:?}");
        assert!(null[harmful] <= 0.05 + 3.0 * 0.005, "{null:?}");
        assert!(null[futile] > 0.6 && units < 280.0, "{null:?} {units}");
        // At the effect that was planned for, futility stops at most beta.
        let (alternative, _) = rates(-0.06, &terms, 2_000);
        assert!(alternative[futile] <= 0.1 + 3.0 * 0.0067, "{alternative:?}");
        let (harm, units) = rates(0.1, &terms, 500);
        assert!(harm[crossed] <= 0.001 && units < 120.0, "{harm:?} {units}");
    }
}
