//! Power of a registered confirm test, and the rows that it needs, under a stated law of the paired loss difference.
//!
//! A plan states the mean of the difference, minus the effect, and its standard deviation; neither says how far the
//! rewards of single rows move, on which the betting test rests. The law taken here is a patch on exact labels that
//! moves few rows, each by as much: the difference is `-g` on a share of rows and 0 elsewhere. Then
//! `g = (sd^2 + effect^2) / effect`, a reward moves by `sqrt(g)`, and no difference exceeds `H = d (2 - d)` of such a
//! movement d, whatever the label. Noise of labels spreads the difference without raising H: the test is then more
//! powerful than is said here. The power is a sum over counts of rows, so nothing is drawn.

use crate::distribution;
use crate::eprocess::bettor;
use crate::eprocess::bettor::FRACTIONS;
use crate::predicate::CONFIRM_CLUSTERS_MIN;
use crate::sample::SampleError;
use crate::sample::open_unit;
use clover_num::math;

/// By how much H of a block exceeds that of the typical movement: the largest of many rows counts. Measured in simulated worlds.
const LARGEST: f64 = 1.03;
/// Rows beyond which no size is searched.
const ROWS_MAX: u64 = 10_000_000;
/// The same of a sequential test, whose power is a sum over every row.
const SEQUENTIAL_ROWS_MAX: u64 = 100_000;
/// Standard deviations of a count beyond which nothing is added up: a mass below 1e-15.
const REACH: f64 = 8.0;

/// The registered confirm test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlannedTest {
    /// Betting on the whole block.
    Betting,
    /// Betting row by row, which may stop as futile at this error rate.
    Sequential {
        /// Bound on the probability to stop as futile although the effect is there.
        beta: f64,
    },
    /// Student's t, or the bootstrap that comes close to it: both need 30 clusters with a row that moved.
    StudentT,
}

/// What a confirm block is planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfirmTerms {
    /// Which test decides.
    pub test: PlannedTest,
    /// The improvement of the mean squared error, above 0.
    pub effect: f64,
    /// Standard deviation of the paired loss difference, above 0.
    pub deviation: f64,
    /// The improvement that is demanded, at least 0.
    pub eta: f64,
    /// Level of the test, in (0, 1).
    pub level: f64,
}

/// The law of the difference: `-gain` with one probability, 1 with another, else 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DifferenceLaw {
    gain: f64,
    gains: f64,
    losses: f64,
    bound: f64,
}

impl DifferenceLaw {
    fn of(terms: &ConfirmTerms) -> Option<Self> {
        let effect = terms.effect;
        let second = terms.deviation * terms.deviation + effect * effect;
        let gain = second / effect;
        if gain <= 1.0 {
            let moved = gain.sqrt();
            return Some(Self {
                gain,
                gains: effect / gain,
                losses: 0.0,
                bound: (LARGEST * moved * (2.0 - moved)).min(1.0),
            });
        }
        // More spread than gains alone can have: some rows lose what others gain.
        (second <= 1.0).then_some(Self {
            gain: 1.0,
            gains: 0.5 * (second + effect),
            losses: 0.5 * (second - effect),
            bound: 1.0,
        })
    }
}

impl ConfirmTerms {
    fn law(&self) -> Result<DifferenceLaw, SampleError> {
        open_unit("level", self.level)?;
        if let PlannedTest::Sequential { beta } = self.test {
            open_unit("beta", beta)?;
        }
        let above = |value: f64| value.is_finite() && value > 0.0;
        let legal = above(self.effect) && above(self.deviation) && self.eta >= 0.0;
        let law = if legal { DifferenceLaw::of(self) } else { None };
        law.ok_or(SampleError::Parameter {
            name: "effect or deviation",
            expected: "a mean and a deviation that differences from -1 to 1 can have",
        })
    }

    /// Probability that the test rejects and the mean difference is at most minus eta, with so many rows, each a cluster
    /// of its own.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a number outside its range, or a mean and a deviation that no difference can have.
    pub fn power(&self, rows: u64) -> Result<f64, SampleError> {
        let law = self.law()?;
        Ok(self.power_under(&law, rows))
    }

    /// The smallest size that has the power, by halving; `None` if none that is searched has it.
    ///
    /// # Errors
    /// As [`Self::power`].
    pub fn rows(&self, power: f64) -> Result<Option<u64>, SampleError> {
        let law = self.law()?;
        open_unit("power", power)?;
        let most = match self.test {
            PlannedTest::Sequential { .. } => SEQUENTIAL_ROWS_MAX,
            PlannedTest::Betting | PlannedTest::StudentT => ROWS_MAX,
        };
        let reaches = |rows| self.power_under(&law, rows) >= power;
        let (mut low, mut high) = (1, 2);
        while !reaches(high) {
            if high >= most {
                return Ok(None);
            }
            (low, high) = (high, (2 * high).min(most));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reaches(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(Some(high))
    }

    fn power_under(&self, law: &DifferenceLaw, rows: u64) -> f64 {
        if rows < 2 {
            return 0.0;
        }
        if let PlannedTest::Sequential { beta } = self.test {
            if law.losses <= 0.0 {
                return self.sequential(law, rows, beta);
            }
            // Crossing at the end is less likely than crossing at any row, and a true effect stops as futile at most so often.
            return (self.at_the_end(law, rows) - beta).max(0.0);
        }
        self.at_the_end(law, rows)
    }

    /// Over the rows that lose, the probability that enough gain.
    fn at_the_end(&self, law: &DifferenceLaw, rows: u64) -> f64 {
        let n = rows as f64;
        let spread = (n * law.losses * (1.0 - law.losses)).sqrt();
        let (from, to) = (
            (n * law.losses - REACH * spread - 1.0).floor().max(0.0),
            (n * law.losses + REACH * spread + 1.0).ceil().min(n),
        );
        let to = if law.losses > 0.0 { to } else { from };
        let gains = law.gains / (1.0 - law.losses);
        let mut parts = Vec::new();
        let mut lost = from;
        while lost <= to {
            let weight = mass(n, law.losses, lost);
            parts.push(weight * at_least(n - lost, gains, self.fewest(law, n, lost)));
            lost += 1.0;
        }
        math::sum(&parts).clamp(0.0, 1.0)
    }

    /// The fewest gains that pass, by halving: more gains never turn a pass. One more than there can be, if none passes.
    fn fewest(&self, law: &DifferenceLaw, n: f64, lost: f64) -> f64 {
        let most = n - lost;
        if !self.passes(law, n, most, lost) {
            return most + 1.0;
        }
        let (mut low, mut high) = (-1.0, most);
        while high - low > 1.0 {
            let middle = (low + 0.5 * (high - low)).floor();
            if self.passes(law, n, middle, lost) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    fn passes(&self, law: &DifferenceLaw, n: f64, gained: f64, lost: f64) -> bool {
        let mean = (lost - gained * law.gain) / n;
        if mean > -self.eta {
            return false;
        }
        match self.test {
            PlannedTest::Betting | PlannedTest::Sequential { .. } => {
                wealth(law, gained, lost) >= -math::ln(self.level)
            }
            PlannedTest::StudentT => {
                let squares = gained * law.gain * law.gain + lost;
                let variance = (squares - n * mean * mean) / (n - 1.0);
                let enough = gained + lost >= CONFIRM_CLUSTERS_MIN as f64;
                if variance <= 0.0 {
                    // Every row gained as much: no block has that by chance, and fewer gains never say more.
                    return enough;
                }
                let t = mean / (variance / n).sqrt();
                enough && distribution::t_cdf(t, n - 1.0) <= self.level
            }
        }
    }

    /// Without losses the wealth only grows, so the test crosses at a certain gain, unless it stopped as futile before:
    /// the law of the gains row by row, of those runs that go on.
    fn sequential(&self, law: &DifferenceLaw, rows: u64, beta: f64) -> f64 {
        let n = rows as f64;
        let crossing = Self { eta: 0.0, ..*self };
        let crosses = crossing.fewest(law, n, 0.0);
        if crosses > n || law.bound <= self.effect {
            return 0.0;
        }
        let needed = (self.eta * n / law.gain).ceil();
        let mut alive = vec![0.0; whole(crosses)];
        alive[0] = 1.0;
        let (mut stopped, mut power, mut at) = (0, Vec::new(), 0.0);
        while at < n {
            at += 1.0;
            let last = alive.len() - 1;
            let crossed = alive[last] * law.gains;
            power.push(crossed * at_least(n - at, law.gains, needed - crosses));
            for gained in (0..=last).rev() {
                let before = if gained > 0 { alive[gained - 1] } else { 0.0 };
                alive[gained] = alive[gained] * (1.0 - law.gains) + before * law.gains;
            }
            while stopped <= last && futile(law, self.effect, at, stopped as f64) >= -math::ln(beta)
            {
                stopped += 1;
            }
            alive[..stopped].fill(0.0);
            if stopped > last {
                break;
            }
        }
        math::sum(&power).clamp(0.0, 1.0)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of rows, at least 1 and at most ten million"
)]
fn whole(count: f64) -> usize {
    count as usize
}

fn mixture(log: impl Fn(f64) -> f64) -> f64 {
    let logs: Vec<f64> = (1..=FRACTIONS)
        .map(|k| log(bettor::fraction(k, FRACTIONS)))
        .collect();
    bettor::log_mean_exp(&logs)
}

/// Log wealth after so many gains and losses of 1.
fn wealth(law: &DifferenceLaw, gained: f64, lost: f64) -> f64 {
    mixture(|f| {
        let lose = if lost > 0.0 {
            lost * math::ln_1p(-f / law.bound)
        } else {
            0.0
        };
        gained * math::ln_1p(f * law.gain / law.bound) + lose
    })
}

/// Log wealth of the bet on futility after so many rows, of which so many gained.
fn futile(law: &DifferenceLaw, effect: f64, rows: f64, gained: f64) -> f64 {
    let stake = law.bound - effect;
    mixture(|f| {
        (rows - gained) * math::ln_1p(f * effect / stake)
            + gained * math::ln_1p(f * (effect - law.gain) / stake)
    })
}

/// Probability of exactly k of n.
fn mass(n: f64, p: f64, k: f64) -> f64 {
    if p <= 0.0 {
        return if k <= 0.0 { 1.0 } else { 0.0 };
    }
    let ways = math::ln_gamma(n + 1.0) - math::ln_gamma(k + 1.0) - math::ln_gamma(n - k + 1.0);
    math::exp(ways + k * math::ln(p) + (n - k) * math::ln_1p(-p))
}

/// Probability of at least k of n.
fn at_least(n: f64, p: f64, k: f64) -> f64 {
    if k <= 0.0 {
        1.0
    } else if k > n {
        0.0
    } else if p >= 1.0 {
        1.0
    } else {
        distribution::beta_cdf(p, k, n - k + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(test: PlannedTest, (effect, deviation, eta): (f64, f64, f64)) -> ConfirmTerms {
        ConfirmTerms {
            test,
            effect,
            deviation,
            eta,
            level: 0.0125,
        }
    }

    #[test]
    fn powers_are_those_of_drawn_blocks() {
        const SEQUENTIAL: PlannedTest = PlannedTest::Sequential { beta: 0.1 };
        // source: numpy 2.4 and scipy 1.17.1: 200,000 drawn blocks of the law, 4,000 for each sequential test.
        type Drawn = (PlannedTest, (f64, f64, f64), u64, f64);
        let want: [Drawn; 11] = [
            (PlannedTest::Betting, (0.0025, 0.02, 0.001), 3000, 0.9975),
            (PlannedTest::Betting, (0.0025, 0.02, 0.001), 2000, 0.6503),
            (PlannedTest::Betting, (0.006, 0.019, 0.001), 560, 0.7302),
            (PlannedTest::Betting, (0.002, 0.1, 0.0005), 40_000, 0.6684),
            (PlannedTest::Betting, (0.0025, 0.02, 0.0022), 3000, 0.7976),
            (PlannedTest::StudentT, (0.0025, 0.02, 0.001), 2500, 0.933),
            (PlannedTest::StudentT, (0.006, 0.019, 0.001), 350, 0.6536),
            (PlannedTest::StudentT, (0.002, 0.1, 0.0005), 20_000, 0.7264),
            (SEQUENTIAL, (0.0025, 0.02, 0.001), 2500, 0.953),
            (SEQUENTIAL, (0.006, 0.019, 0.001), 600, 0.875),
            (SEQUENTIAL, (0.0025, 0.02, 0.0022), 3000, 0.79125),
        ];
        for (test, of, rows, want) in want {
            let got = terms(test, of).power(rows).unwrap();
            let runs: f64 = if test == SEQUENTIAL { 4e3 } else { 2e5 };
            let error = 4.0 * (want * (1.0 - want) / runs + 1e-6).sqrt();
            assert!(
                (got - want).abs() < error,
                "{test:?} {of:?}, {rows}: {got} is not {want}"
            );
        }
    }

    #[test]
    fn a_size_has_the_power_and_one_row_less_has_not() {
        for test in [
            PlannedTest::Betting,
            PlannedTest::StudentT,
            PlannedTest::Sequential { beta: 0.1 },
        ] {
            let of = terms(test, (0.006, 0.019, 0.001));
            let rows = of.rows(0.8).unwrap().unwrap();
            assert!(of.power(rows).unwrap() >= 0.8);
            assert!(of.power(rows - 1).unwrap() < 0.8);
        }
        // The t formula says 105 rows; betting needs five times as many.
        let of = terms(PlannedTest::Betting, (0.006, 0.019, 0.001));
        assert!((500..620).contains(&of.rows(0.8).unwrap().unwrap()));
    }

    #[test]
    fn what_no_difference_can_be_is_refused_and_what_no_size_shows_has_none() {
        let of = |effect, deviation, eta| terms(PlannedTest::Betting, (effect, deviation, eta));
        assert!(of(0.9, 0.9, 0.001).power(100).is_err());
        assert!(of(f64::NAN, 0.02, 0.001).rows(0.8).is_err());
        assert!(of(0.0, 0.02, 0.001).power(100).is_err());
        assert_eq!(of(0.001, 0.02, 0.002).rows(0.8).unwrap(), None);
        assert!(of(0.0025, 0.02, 0.001).power(1).unwrap() <= 0.0);
        // Rewards that cannot improve by the effect: futile at the first row.
        let hopeless = terms(PlannedTest::Sequential { beta: 0.1 }, (0.9999, 0.003, 0.0));
        assert!(hopeless.power(50).unwrap() >= 0.0);
    }
}
