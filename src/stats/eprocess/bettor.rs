//! Grid-Kelly: a uniform mixture of constant bets, and the logarithm of its wealth.
//!
//! For H0 "the mean is at most m" and values x in [0, 1], the fractions are `f_k = k / (K + 1)`, k = 1..K, and
//! `W = (1/K) sum_k prod_t (1 + f_k (x_t / m - 1))`. Each factor is above 0 and has mean at most 1 under H0 whatever
//! the past, so `P(some W_t >= 1/alpha) <= alpha` (Ville). W depends on which values came, not on their order. No
//! bet can ruin the mixture, so nothing is truncated. Source: Cover 1991; Waudby-Smith and Ramdas 2024.

use clover_num::math;

/// Fractions of the mixture, unless a design says otherwise.
pub const FRACTIONS: usize = 20;
/// Largest number of fractions.
pub const FRACTIONS_MAX: usize = 100;
/// Unit roundoff of a double.
const ROUNDOFF: f64 = 1.0 / (1_u64 << 53) as f64;

/// `f_k = k / (K + 1)`, k = 1..K.
pub fn fraction(k: usize, fractions: usize) -> f64 {
    k as f64 / (fractions as f64 + 1.0)
}

/// `ln((1/K) sum_k exp(l_k))`, without overflow; minus infinity for no logarithms.
pub fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs
        .iter()
        .fold(f64::NEG_INFINITY, |top, log| top.max(*log));
    if top.is_infinite() {
        return top;
    }
    let shares: Vec<f64> = logs.iter().map(|log| math::exp(log - top)).collect();
    top + math::ln(math::sum(&shares) / logs.len() as f64)
}

/// Logarithm of the wealth after bets with returns `e_t >= -1` whose mean is at most 0 under H0:
/// `ln((1/K) sum_k prod_t (1 + f_k e_t))`.
pub fn ln_wealth(returns: &[f64], fractions: usize) -> f64 {
    let logs: Vec<f64> = (1..=fractions)
        .map(|k| {
            let fraction = fraction(k, fractions);
            let terms: Vec<f64> = returns
                .iter()
                .map(|one| math::ln_1p(fraction * one))
                .collect();
            math::sum(&terms)
        })
        .collect();
    log_mean_exp(&logs)
}

/// Writes `ln(1 + f_k (gain / stake - 1))` for k = 1..K; `gain >= 0` and `stake > 0` are exact.
///
/// The return is one division of exact integers, and a factor below one half is formed without cancellation, so the
/// error of a term is at most about 2.5 units of roundoff and one in the last place of the logarithm.
pub(super) fn ln_factors(gain: i128, stake: i128, out: &mut [f64]) {
    let (of, stake_f) = (out.len() as f64 + 1.0, stake as f64);
    let (excess, ratio) = ((gain - stake) as f64 / stake_f, gain as f64 / stake_f);
    let mut k = 0.0;
    for slot in out {
        k += 1.0;
        let gained = k * excess / of;
        *slot = if gained > -0.5 {
            math::ln_1p(gained)
        } else {
            math::ln(((of - k) + k * ratio) / of)
        };
    }
}

/// What rounding may have added to a log wealth L of n observations: `4 (n + K) 2^-53 (1 + |L|)`.
///
/// A native decision subtracts it, so that no promotion hangs on rounding.
pub fn slack(n: u64, fractions: usize, ln_wealth: f64) -> f64 {
    if ln_wealth.is_infinite() {
        return 0.0;
    }
    4.0 * (n as f64 + fractions as f64) * ROUNDOFF * (1.0 + ln_wealth.abs())
}

/// Whether a log wealth is past a threshold for certain, rounding included.
pub fn is_past(n: u64, fractions: usize, ln_wealth: f64, ln_threshold: f64) -> bool {
    ln_wealth - slack(n, fractions, ln_wealth) >= ln_threshold
}

/// Sums of K columns, each with what rounding lost carried beside it (two-sum), in the order of [`Self::add`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Logs {
    sums: Vec<f64>,
    lost: Vec<f64>,
}

impl Logs {
    pub(super) fn zero(fractions: usize) -> Self {
        Self {
            sums: vec![0.0; fractions],
            lost: vec![0.0; fractions],
        }
    }

    /// Adds `times` of a row.
    pub(super) fn add(&mut self, times: f64, row: &[f64]) {
        for ((sum, lost), one) in self.sums.iter_mut().zip(&mut self.lost).zip(row) {
            let term = times * one;
            let total = *sum + term;
            let part = total - *sum;
            *lost += (*sum - (total - part)) + (term - part);
            *sum = total;
        }
    }

    /// The sums.
    pub(super) fn values(&self) -> Vec<f64> {
        let pairs = self.sums.iter().zip(&self.lost);
        pairs.map(|(sum, lost)| sum + lost).collect()
    }

    /// Logarithm of the mixture's wealth.
    pub(super) fn ln_wealth(&self) -> f64 {
        log_mean_exp(&self.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_is_the_mean_of_its_products() {
        // source: by hand; x = 1, 0, 1 at m = 1/2 has returns 1, -1, 1 and products (1 + f)^2 (1 - f).
        let mut wealth = 0.0;
        for k in 1..=20 {
            let f = f64::from(k) / 21.0;
            wealth += (1.0 + f) * (1.0 + f) * (1.0 - f) / 20.0;
        }
        let found = ln_wealth(&[1.0, -1.0, 1.0], FRACTIONS);
        assert!((found - math::ln(wealth)).abs() < 1e-15);
        let mut logs = Logs::zero(FRACTIONS);
        let mut row = vec![0.0; FRACTIONS];
        for (gain, times) in [(2, 2.0), (0, 1.0)] {
            ln_factors(gain, 1, &mut row);
            logs.add(times, &row);
        }
        assert!((logs.ln_wealth() - found).abs() < 1e-15);
    }

    #[test]
    fn a_bet_at_the_mean_changes_nothing() {
        let mut row = vec![1.0; FRACTIONS];
        ln_factors(700_000, 700_000, &mut row);
        assert!(row.iter().all(|one| one.abs() <= 0.0));
        assert!(log_mean_exp(&row).abs() <= 0.0);
        assert!(log_mean_exp(&[]).is_infinite());
    }
}
