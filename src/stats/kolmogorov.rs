//! Laws of the Kolmogorov-Smirnov statistics: one sample exact and asymptotic, two samples exact.

use crate::distribution::ln_beta;
use clover_num::math;

const PI_SQUARED: f64 = std::f64::consts::PI * std::f64::consts::PI;
/// sqrt(2 pi).
const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_7;

/// P(D+ >= d) of the one-sided statistic of `n` independent values, for d in \[0, 1\]: the sum of Birnbaum and Tingey
/// (1951), `d sum_j C(n, j) (d + j/n)^(j-1) (1 - d - j/n)^(n-j)` over j <= n (1 - d). All terms are positive.
pub fn smirnov_sf(d: f64, n: usize) -> f64 {
    if d <= 0.0 {
        return 1.0;
    }
    if d >= 1.0 {
        return 0.0;
    }
    let rows = n as f64;
    let term = |j: usize| {
        let step = j as f64;
        let rest = 1.0 - d - step / rows;
        if rest < 0.0 || (rest <= 0.0 && j < n) {
            return 0.0;
        }
        // ln C(n, j) = -ln(n + 1) - ln B(j + 1, n - j + 1).
        let choose = -math::ln(rows + 1.0) - ln_beta(step + 1.0, rows - step + 1.0);
        let stay = if j < n {
            (rows - step) * math::ln(rest)
        } else {
            0.0
        };
        math::exp(choose + (step - 1.0) * math::ln(d + step / rows) + stay)
    };
    let terms: Vec<f64> = (0..=n).map(term).collect();
    (d * math::sum(&terms)).clamp(0.0, 1.0)
}

/// P(D >= d) of the two-sided statistic of `n` independent values, for d in \[0, 1\]; 1 for no values.
///
/// The choices of Simard and L'Ecuyer (2011): the exact ends of Ruben and Gambino, twice the one-sided tail where the
/// two tails hardly meet, the matrix of Marsaglia, Tsang and Wang (2003) elsewhere, and beyond its reach the series of
/// Pelz and Good (1976).
pub fn kolmogorov_sf(d: f64, n: usize) -> f64 {
    let rows = n as f64;
    let reach = rows * d;
    if d.is_nan() {
        return f64::NAN;
    }
    if n == 0 {
        return 1.0;
    }
    if d >= 1.0 {
        return 0.0;
    }
    if reach <= 0.5 {
        return 1.0;
    }
    if reach <= 1.0 {
        let ln_front = math::ln_gamma(rows + 1.0) - rows * math::ln(rows);
        let below = math::exp(ln_front + rows * math::ln(2.0 * reach - 1.0));
        return (1.0 - below).clamp(0.0, 1.0);
    }
    if reach >= rows - 1.0 {
        return (2.0 * math::pow(1.0 - d, rows)).clamp(0.0, 1.0);
    }
    let square = reach * d;
    let tails_apart = square > if n <= 140 { 4.0 } else { 2.2 };
    if d >= 0.5 || tails_apart {
        return (2.0 * smirnov_sf(d, n)).clamp(0.0, 1.0);
    }
    let below = if n <= 140 || (n <= 100_000 && rows * d * d.sqrt() <= 1.4) {
        durbin_cdf(d, n)
    } else {
        pelz_good_cdf(d, n)
    };
    (1.0 - below).clamp(0.0, 1.0)
}

/// A square matrix times 10^(140 times its exponent).
#[derive(Clone)]
struct ScaledMatrix {
    cells: Vec<f64>,
    size: usize,
    exponent: i32,
}

impl ScaledMatrix {
    fn times(&self, other: &Self) -> Self {
        let size = self.size;
        let mut cells = vec![0.0; size * size];
        for row in 0..size {
            for inner in 0..size {
                let left = self.cells[row * size + inner];
                for column in 0..size {
                    cells[row * size + column] += left * other.cells[inner * size + column];
                }
            }
        }
        let mut product = Self {
            cells,
            size,
            exponent: self.exponent + other.exponent,
        };
        let middle = (size / 2) * size + size / 2;
        if product.cells[middle] > 1e140 {
            for cell in &mut product.cells {
                *cell *= 1e-140;
            }
            product.exponent += 1;
        }
        product
    }
}

/// P(D < d) exactly: n! / n^n times the middle cell of the n-th power of Durbin's matrix.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "n d is positive and small here"
)]
fn durbin_cdf(d: f64, n: usize) -> f64 {
    let reach = n as f64 * d;
    let k = reach.ceil() as usize;
    let h = k as f64 - reach;
    let mut power = durbin_matrix(k, h);
    let mut result: Option<ScaledMatrix> = None;
    let mut left = n;
    while left > 0 {
        if left % 2 == 1 {
            result = Some(match result {
                Some(result) => result.times(&power),
                None => power.clone(),
            });
        }
        left /= 2;
        if left > 0 {
            power = power.times(&power);
        }
    }
    let result = result.expect("BUG: n is at least 1");
    let mut value = result.cells[(k - 1) * result.size + (k - 1)];
    let mut exponent = result.exponent;
    for step in 1..=n {
        value *= step as f64 / n as f64;
        if value < 1e-140 {
            value *= 1e140;
            exponent -= 1;
        }
    }
    for _ in 0..exponent.max(0) {
        value *= 1e140;
    }
    for _ in 0..(-exponent).max(0) {
        value *= 1e-140;
    }
    value
}

/// The (2k - 1)-square matrix H of Marsaglia, Tsang and Wang, for d = (k - h) / n.
fn durbin_matrix(k: usize, h: f64) -> ScaledMatrix {
    let size = 2 * k - 1;
    let mut cells = vec![0.0; size * size];
    let mut h_power = 1.0;
    for at in 0..size {
        // Column 0 from above and the last row from the right lose h^(at + 1).
        h_power *= h;
        for column in 0..=(at + 1).min(size - 1) {
            cells[at * size + column] += 1.0;
        }
        cells[at * size] -= h_power;
        cells[(size - 1) * size + (size - 1 - at)] -= h_power;
    }
    if 2.0 * h > 1.0 {
        cells[(size - 1) * size] += math::pow(2.0 * h - 1.0, size as f64);
    }
    for row in 0..size {
        for column in 0..=row {
            for divisor in 1..=(row + 1 - column) {
                cells[row * size + column] /= divisor as f64;
            }
        }
    }
    ScaledMatrix {
        cells,
        size,
        exponent: 0,
    }
}

/// P(D < d) to order n^(-3/2), with theta functions that converge for small z = d sqrt(n) (Pelz and Good 1976).
fn pelz_good_cdf(d: f64, n: usize) -> f64 {
    let root = (n as f64).sqrt();
    let z = d * root;
    let z2 = z * z;
    let (z4, z6) = (z2 * z2, z2 * z2 * z2);
    let (pi2, pi4) = (PI_SQUARED, PI_SQUARED * PI_SQUARED);
    let pi6 = pi4 * pi2;
    let (mut k0, mut k1, mut k2, mut k3) = (0.0, 0.0, 0.0, 0.0);
    let (mut k2_rest, mut k3_rest) = (0.0, 0.0);
    // Weights fall below exp(-8 pi^2) beyond 8 z: z is at most 1.5 where this series is used.
    for k in (1..=16).rev() {
        let k = f64::from(k);
        let odd = (2.0 * k - 1.0) * (2.0 * k - 1.0);
        let weight = math::exp(-pi2 * odd / (8.0 * z2));
        k0 += weight;
        k1 += weight * (pi2 / 4.0 * odd - z2);
        k2 += weight
            * (6.0 * z6
                + 2.0 * z4
                + (2.0 * z4 - 5.0 * z2) * pi2 / 4.0 * odd
                + pi4 * (1.0 - 2.0 * z2) / 16.0 * odd * odd);
        k3 += weight
            * (-30.0 * z6 - 90.0 * z4 * z4
                + pi2 * (135.0 * z4 - 96.0 * z6) / 4.0 * odd
                + pi4 * (212.0 * z4 - 60.0 * z2) / 16.0 * odd * odd
                + pi6 * (5.0 - 30.0 * z2) / 64.0 * odd * odd * odd);
        let weight = math::exp(-pi2 * k * k / (2.0 * z2));
        k2_rest += weight * k * k;
        k3_rest += weight * k * k * (3.0 * z2 - pi2 * k * k);
    }
    let z3 = z2 * z;
    let k0 = SQRT_TWO_PI * k0 / z;
    let k1 = SQRT_TWO_PI * k1 / (6.0 * z4);
    let k2 = SQRT_TWO_PI * (k2 / (72.0 * z4 * z3) - pi2 * k2_rest / (36.0 * z3));
    let k3 = SQRT_TWO_PI * (k3 / (6480.0 * z4 * z6) + pi2 * k3_rest / (216.0 * z6));
    k0 + (k1 + (k2 + k3 / root) / root) / root
}

/// Chance that a two-sample statistic of `rows_a` and `rows_b` values reaches `steps` / lcm(rows), under equal
/// continuous distributions; `both` for either direction. `steps` >= 1.
///
/// Equal sizes have a product form; otherwise with u(i, j) the share of paths to (i, j) that were outside,
/// u = 1 outside and (i u(i-1, j) + j u(i, j-1)) / (i + j) inside: a recursion of means, in which nothing cancels.
pub fn two_sample_sf(rows_a: usize, rows_b: usize, steps: i128, both: bool) -> f64 {
    if rows_a == rows_b {
        return equal_sizes_sf(rows_a, steps, both);
    }
    let divisor = gcd(rows_a, rows_b);
    // The statistic in steps of 1/lcm after i values of a and j of b is i * per_a - j * per_b.
    let (per_a, per_b) = ((rows_b / divisor) as i128, (rows_a / divisor) as i128);
    let mut outside = vec![1.0; rows_b + 1];
    let mut inside_from = 0;
    for i in 0..=rows_a {
        let ahead = i as i128 * per_a;
        // Inside: i per_a - j per_b < steps, and for both directions also > -steps.
        let low = (ahead - steps).div_euclid(per_b) + 1;
        let first = usize::try_from(low.max(0)).unwrap_or(usize::MAX);
        let last = if both {
            let high = (ahead + steps - 1).div_euclid(per_b);
            usize::try_from(high.max(0))
                .unwrap_or(usize::MAX)
                .min(rows_b)
        } else {
            rows_b
        };
        // Cells that the band has left; those before it never change again.
        for cell in outside.iter_mut().take(first).skip(inside_from) {
            *cell = 1.0;
        }
        inside_from = first;
        for j in first..=last {
            if i + j == 0 {
                outside[0] = 0.0;
                continue;
            }
            let from_a = if i > 0 { outside[j] } else { 0.0 };
            let from_b = if j > 0 { outside[j - 1] } else { 0.0 };
            outside[j] = (i as f64 * from_a + j as f64 * from_b) / (i + j) as f64;
        }
    }
    outside[rows_b].clamp(0.0, 1.0)
}

/// C(2n, n - h) / C(2n, n) for one direction; for both the alternating sum over 2 C(2n, n - k h), by Horner's scheme.
fn equal_sizes_sf(rows: usize, steps: i128, both: bool) -> f64 {
    let Ok(steps) = usize::try_from(steps) else {
        return 1.0;
    };
    if steps > rows {
        return 0.0;
    }
    // Product over j < h of (n - k h - j) / (n + k h + j + 1).
    let factor = |k: usize| {
        let terms = (0..steps).map(|j| {
            let away = k * steps + j;
            if away < rows {
                (rows - away) as f64 / (rows + away + 1) as f64
            } else {
                0.0
            }
        });
        terms.product::<f64>()
    };
    if !both {
        return factor(0).clamp(0.0, 1.0);
    }
    let mut tail = 0.0;
    for k in (0..=rows / steps).rev() {
        tail = factor(k) * (1.0 - tail);
    }
    (2.0 * tail).clamp(0.0, 1.0)
}

/// Greatest common divisor.
pub(super) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, relative: f64) {
        assert!(
            (got - want).abs() <= relative * want.abs(),
            "{got:e} is not {want:e}"
        );
    }

    // source: scipy 1.17.1, stats.kstwo.sf(d, n).
    const KSTWO: [(f64, usize, f64); 25] = [
        (0.3, 1, 1.0),
        (0.7, 1, 0.600_000_000_000_000_1),
        (0.3, 2, 0.98),
        (0.11, 7, 0.999_918_059_129_173_3),
        (0.2, 7, 0.894_391_575_755),
        (0.4, 7, 0.159_606_784_683_252_96),
        (0.6, 7, 0.006_140_397_691_438_094),
        (0.9, 7, 1.999_999_999_999_997e-07),
        (0.08, 30, 0.982_459_733_911_924_4),
        (0.15, 30, 0.464_872_804_009_053_84),
        (0.3, 30, 0.006_852_243_362_913_235),
        (0.45, 30, 4.601_708_366_636_82e-06),
        (0.05, 140, 0.857_648_029_765_611_4),
        (0.1, 140, 0.113_536_572_900_909_46),
        (0.16, 140, 0.001_344_016_324_418_744),
        (0.2, 140, 2.198_156_330_220_022_2e-05),
        (0.03, 424, 0.828_684_302_178_052_1),
        (0.089_4, 424, 0.002_127_879_108_582_479),
        (0.06, 424, 0.090_661_609_018_292_9),
        (0.01, 3000, 0.922_085_502_287_938_6),
        (0.02, 3000, 0.178_898_136_231_889_66),
        (0.035, 3000, 0.001_253_705_519_879_033_8),
        (0.004, 100_000, 0.081_301_489_202_224_69),
        (0.004_5, 200_000, 0.000_605_243_145_360_293_8),
        (0.001, 200_000, 0.988_150_020_885_572_9),
    ];
    // source: scipy 1.17.1, special.smirnov(n, d).
    const SMIRNOV: [(f64, usize, f64); 6] = [
        (0.1, 5, 0.853_59),
        (0.5, 5, 0.056),
        (0.95, 5, 3.125_000_000_000_014e-07),
        (0.05, 200, 0.356_014_942_433_064_3),
        (0.2, 200, 8.658_937_308_654_167e-08),
        (0.02, 5000, 0.018_069_812_937_222_66),
    ];

    #[test]
    fn one_sample_tails_match_the_peer() {
        for (d, n, want) in KSTWO {
            close(kolmogorov_sf(d, n), want, 1e-9);
        }
        for (d, n, want) in SMIRNOV {
            close(smirnov_sf(d, n), want, 1e-11);
        }
    }

    #[test]
    fn methods_meet_where_they_change_over() {
        for n in [20, 60, 140] {
            for square in [0.5_f64, 0.7, 1.0, 2.2, 3.9] {
                let d = (square / n as f64).sqrt();
                let exact = 1.0 - durbin_cdf(d, n);
                // The two tails meet in about e^(-8 n d^2).
                let apart = 2.0 * smirnov_sf(d, n);
                assert!((exact - apart).abs() <= 2.0 * math::exp(-6.0 * square));
            }
        }
        for (d, n) in [(0.05, 400), (0.02, 2000), (0.012, 5000)] {
            close(1.0 - pelz_good_cdf(d, n), 1.0 - durbin_cdf(d, n), 3e-6);
        }
    }

    /// Counts all orders of a's and b's.
    fn counted(rows_a: usize, rows_b: usize, steps: i128, both: bool) -> f64 {
        let divisor = gcd(rows_a, rows_b);
        let (per_a, per_b) = ((rows_b / divisor) as i128, (rows_a / divisor) as i128);
        let all = rows_a + rows_b;
        let (mut orders, mut reached) = (0.0, 0.0);
        for bits in 0_u32..(1 << all) {
            if bits.count_ones() as usize != rows_a {
                continue;
            }
            orders += 1.0;
            let mut at = 0;
            let hit = (0..all).any(|step| {
                at += if bits >> step & 1 == 1 { per_a } else { -per_b };
                at >= steps || both && -at >= steps
            });
            reached += if hit { 1.0 } else { 0.0 };
        }
        reached / orders
    }

    #[test]
    fn two_sample_tails_match_counting() {
        for (rows_a, rows_b) in [(1, 1), (1, 4), (3, 5), (4, 6), (6, 4), (5, 5), (2, 8)] {
            let most = (rows_a * rows_b / gcd(rows_a, rows_b)) as i128;
            for steps in 1..=most {
                for both in [false, true] {
                    let want = counted(rows_a, rows_b, steps, both);
                    close(two_sample_sf(rows_a, rows_b, steps, both), want, 1e-14);
                }
            }
        }
    }
}
