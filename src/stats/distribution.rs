//! Distribution functions and quantiles, to about 1e-14 relative, with real-valued degrees of freedom.

use clover_num::math;

/// Largest number of terms of a continued fraction or series; far above what converges.
const TERMS_MAX: usize = 100_000;
/// Where a continued fraction or series has converged.
const CONVERGED: f64 = 1e-16;
/// ln(2 pi) / 2.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// Standard normal distribution function, P(Z <= x).
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * math::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Standard normal upper tail, P(Z > x), accurate far out.
pub fn normal_sf(x: f64) -> f64 {
    normal_cdf(-x)
}

/// Standard normal density at x.
pub fn normal_pdf(x: f64) -> f64 {
    math::exp(-0.5 * x * x - HALF_LN_TWO_PI)
}

/// Standard normal quantile for p in (0, 1); infinite at the ends, NaN outside.
///
/// A rational start (Acklam) and two Halley steps on [`normal_cdf`].
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let mut x = normal_quantile_start(p);
    for _ in 0..2 {
        let step = (normal_cdf(x) - p) / normal_pdf(x);
        x -= step / (1.0 + 0.5 * x * step);
    }
    x
}

/// Relative error below 1.2e-9 for p in (0, 0.5].
fn normal_quantile_start(p: f64) -> f64 {
    // source: P. J. Acklam, an algorithm for computing the inverse normal cumulative distribution function.
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    // source: as above.
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    // source: as above.
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    // source: as above.
    const D: [f64; 4] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    if p < 0.024_25 {
        let q = (-2.0 * math::ln(p)).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    }
}

/// ln Gamma(x) less its leading Stirling terms, for x >= 10.
fn stirling_rest(x: f64) -> f64 {
    // source: NIST DLMF 5.11.1.
    const TERMS: [f64; 7] = [
        1.0 / 156.0,
        -691.0 / 360_360.0,
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0,
    ];
    let (r, r2) = (1.0 / x, 1.0 / (x * x));
    r * TERMS.iter().fold(0.0, |sum, term| sum * r2 + term)
}

/// ln B(a, b) for a, b > 0, without the cancellation of three large log-gammas.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large < 10.0 {
        return math::ln_gamma(a) + math::ln_gamma(b) - math::ln_gamma(a + b);
    }
    // ln Gamma(large + small) - ln Gamma(large) by Stirling, exactly differenced.
    let both = large + small;
    let rise = (large - 0.5) * math::ln_1p(small / large) + small * math::ln(both) - small
        + stirling_rest(both)
        - stirling_rest(large);
    math::ln_gamma(small) - rise
}

/// Regularised incomplete beta function `I_x(a, b)` and its complement, for a, b > 0, x in [0, 1] and `y` = 1 - x.
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if y <= 0.0 {
        return (1.0, 0.0);
    }
    if (a + b) * y < b {
        let (upper, lower) = incomplete_beta_fraction(b, a, y, x);
        return (lower, upper);
    }
    incomplete_beta_fraction(a, b, x, y)
}

/// The side where x is at most the mean, by the contracted continued fraction of Didonato and Morris (1992,
/// equation 9), whose terms are written with y so that nothing cancels when x is close to 1.
fn incomplete_beta_fraction(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    let ln_x = if x < 0.5 {
        math::ln(x)
    } else {
        math::ln_1p(-y)
    };
    let ln_y = if y < 0.5 {
        math::ln(y)
    } else {
        math::ln_1p(-x)
    };
    let front = math::exp(a * ln_x + b * ln_y - ln_beta(a, b));
    let lambda = (a + b) * y - b;
    let guard = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let beta = |n: f64| {
        // The first term has none of these, also where a is 1 and the divisor 0.
        let drift = if n > 0.0 {
            n + n * (b - n) * x / (a + 2.0 * n - 1.0)
        } else {
            0.0
        };
        drift + (a + n) / (a + 2.0 * n + 1.0) * (1.0 + lambda + n * (1.0 + y))
    };
    let mut denominator = guard(beta(0.0));
    let mut c = denominator;
    let mut d = 0.0;
    for term in 1..TERMS_MAX {
        let n = term as f64;
        let step = a + 2.0 * n - 1.0;
        let alpha = (a + n - 1.0) * (a + b + n - 1.0) * n * (b - n) * x * x / (step * step);
        let next = beta(n);
        d = 1.0 / guard(next + alpha * d);
        c = guard(next + alpha / c);
        let change = c * d;
        denominator *= change;
        if (change - 1.0).abs() <= CONVERGED {
            break;
        }
    }
    let value = (front / denominator).clamp(0.0, 1.0);
    (value, 1.0 - value)
}

/// Student's t upper tail, P(T > t), for real `df` > 0.
pub fn t_sf(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    if df.is_infinite() {
        return normal_sf(t);
    }
    let square = t * t;
    let (x, y) = (df / (df + square), square / (df + square));
    let (tail, _) = incomplete_beta(0.5 * df, 0.5, x, y);
    if t > 0.0 {
        0.5 * tail
    } else {
        1.0 - 0.5 * tail
    }
}

/// Student's t distribution function, P(T <= t), for real `df` > 0.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    t_sf(-t, df)
}

/// Two-sided p of a t statistic, P(|T| >= |t|).
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    (2.0 * t_sf(t.abs(), df)).min(1.0)
}

/// Density of Student's t.
fn t_pdf(t: f64, df: f64) -> f64 {
    let kernel = -0.5 * (df + 1.0) * math::ln_1p(t * t / df);
    math::exp(kernel - ln_beta(0.5 * df, 0.5)) / df.sqrt()
}

/// Quantile of Student's t: the t with P(T <= t) = p, for p in (0, 1) and real `df` > 0.
///
/// Newton steps on the tail, kept inside a bracket by bisection.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if df.is_infinite() {
        return normal_quantile(p);
    }
    if p < 0.5 {
        return -t_quantile_upper(p, df);
    }
    if p > 0.5 {
        return t_quantile_upper(1.0 - p, df);
    }
    0.0
}

/// The t > 0 with P(T > t) = tail, for tail in (0, 0.5).
fn t_quantile_upper(tail: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0_f64.max(-normal_quantile(tail)));
    while t_sf(high, df) > tail && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    let mut t = -normal_quantile(tail);
    if !(low..=high).contains(&t) {
        t = 0.5 * (low + high);
    }
    for _ in 0..200 {
        let over = t_sf(t, df) - tail;
        if over > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let mut next = t + over / t_pdf(t, df);
        if !(next > low && next < high) {
            next = 0.5 * (low + high);
        }
        if (next - t).abs() <= 1e-15 * t.abs() {
            return next;
        }
        t = next;
    }
    t
}

/// F distribution upper tail, P(F > f), for real degrees of freedom.
pub fn f_sf(f: f64, df_numerator: f64, df_denominator: f64) -> f64 {
    if f.is_nan() || f <= 0.0 {
        return if f <= 0.0 { 1.0 } else { f64::NAN };
    }
    let scaled = df_numerator * f;
    let whole = df_denominator + scaled;
    let (tail, _) = incomplete_beta(
        0.5 * df_denominator,
        0.5 * df_numerator,
        df_denominator / whole,
        scaled / whole,
    );
    tail
}

/// Beta distribution function, P(B <= x), for shapes a, b > 0.
pub fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    incomplete_beta(a, b, x.clamp(0.0, 1.0), (1.0 - x).clamp(0.0, 1.0)).0
}

/// The x in [0, 1] with P(B <= x) = p, for shapes a, b > 0 and p in (0, 1), by halving.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let x = 0.5 * (low + high);
        if x <= low || x >= high {
            break;
        }
        if beta_cdf(x, a, b) < p {
            low = x;
        } else {
            high = x;
        }
    }
    0.5 * (low + high)
}

/// Chi-squared distribution function and upper tail, (P(X <= x), P(X > x)), for real `df` > 0.
pub fn chi_squared(x: f64, df: f64) -> (f64, f64) {
    gamma_tails(0.5 * df, 0.5 * x)
}

/// Regularised incomplete gamma functions (P(a, x), Q(a, x)): series below a + 1, continued fraction above.
pub fn gamma_tails(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    let front = gamma_front(a, x);
    if x < a + 1.0 {
        let (mut term, mut total, mut step) = (1.0 / a, 1.0 / a, a);
        for _ in 0..TERMS_MAX {
            step += 1.0;
            term *= x / step;
            total += term;
            if term <= total * CONVERGED {
                break;
            }
        }
        let lower = (front * total).min(1.0);
        return (lower, 1.0 - lower);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for term in 1..TERMS_MAX {
        let m = term as f64;
        let numerator = -m * (m - a);
        b += 2.0;
        let guard = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
        d = 1.0 / guard(numerator * d + b);
        c = guard(b + numerator / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() <= CONVERGED {
            break;
        }
    }
    let upper = (front * fraction).min(1.0);
    (1.0 - upper, upper)
}

/// x^a e^-x / Gamma(a).
fn gamma_front(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return math::exp(a * math::ln(x) - x - math::ln_gamma(a));
    }
    // With x = a (1 + u): a ln x - x - ln Gamma(a) = a (ln(1 + u) - u) + ln(a / 2 pi) / 2 - rest.
    let u = (x - a) / a;
    let kernel = a * (math::ln_1p(u) - u);
    math::exp(kernel + 0.5 * math::ln(a) - HALF_LN_TWO_PI - stirling_rest(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, relative: f64) {
        assert!(
            (got - want).abs() <= relative * want.abs(),
            "{got} is not {want}"
        );
    }

    /// Another hand's distributions. Its own error is about 1e-10 in the body, more in far tails, where the references of
    /// this file are from arithmetic of 30 digits.
    #[test]
    fn an_independent_library_agrees() {
        use statrs::distribution::Beta;
        use statrs::distribution::ChiSquared;
        use statrs::distribution::ContinuousCDF as _;
        use statrs::distribution::FisherSnedecor;
        use statrs::distribution::Normal;
        use statrs::distribution::StudentsT;
        let normal = Normal::new(0.0, 1.0).unwrap();
        for step in -30..=30 {
            let x = f64::from(step) * 0.1;
            close(normal_cdf(x), normal.cdf(x), 1e-9);
            for df in [1.0, 2.5, 4.0, 19.0, 250.0] {
                let t = StudentsT::new(0.0, 1.0, df).unwrap();
                close(t_cdf(x, df), t.cdf(x), 1e-9);
            }
        }
        for percent in 1..100 {
            let p = f64::from(percent) * 0.01;
            for (a, b) in [(1.0, 100.0), (0.5, 0.5), (8.0, 93.0), (300.0, 20.0)] {
                let beta = Beta::new(a, b).unwrap();
                close(beta_cdf(p, a, b), beta.cdf(p), 1e-8);
                close(beta.cdf(beta_quantile(p, a, b)), p, 1e-8);
            }
            for df in [1.0, 3.0, 40.0] {
                let x = 0.4 * f64::from(percent);
                let chi = ChiSquared::new(df).unwrap();
                close(chi_squared(x, df).0, chi.cdf(x), 1e-8);
                close(chi_squared(x, df).1, chi.sf(x), 1e-6);
                let f = FisherSnedecor::new(df, 12.0).unwrap();
                close(f_sf(p, df, 12.0), f.sf(p), 1e-8);
            }
        }
    }

    #[test]
    fn tails_match_the_references() {
        // source: mpmath 1.3 at 30 digits (regularised incomplete beta and gamma functions).
        close(
            t_sf(2.776_445_105_197_793_4, 4.0),
            0.025_000_000_000_000_025,
            2e-15,
        );
        close(t_quantile(0.975, 4.0), 2.776_445_105_197_794_4, 4e-15);
        close(t_quantile(0.975, 1.0), 12.706_204_736_174_705, 1e-14);
        close(t_quantile(0.975, 1e6), 1.959_966_356_814_107, 4e-15);
        close(t_sf(1.7, 479.0), 0.044_890_043_336_605_08, 1e-14);
        // Two degrees of freedom: P(T > t) = 1/2 - t / (2 sqrt(2 + t^2)), at t = 5 and sqrt 2.
        close(t_sf(5.0, 2.0), 0.5 - 2.5 / 27.0_f64.sqrt(), 1e-14);
        close(t_sf(2.0_f64.sqrt(), 2.0), 0.5 - 0.125_f64.sqrt(), 1e-14);
        close(
            f_sf(3.0, 7.0, 2.0),
            1.0 - beta_cdf(21.0 / 23.0, 3.5, 1.0),
            1e-14,
        );
        close(normal_quantile(0.975), 1.959_963_984_540_054, 4e-16);
        close(normal_quantile(1e-10), -6.361_340_902_404_056, 1e-15);
        close(normal_sf(10.0), 7.619_853_024_160_527e-24, 1e-13);
        close(f_sf(3.0, 4.0, 20.0), 0.043_200_998_334_214_09, 1e-13);
        close(chi_squared(3.841_458_820_694_124, 1.0).1, 0.05, 1e-13);
        close(chi_squared(100.0, 50.0).1, 3.454_931_382_984_864e-5, 1e-13);
    }

    #[test]
    fn quantiles_undo_tails() {
        for df in [0.7, 1.0, 2.5, 4.0, 17.3, 479.0, 12_345.6] {
            for p in [1e-9, 0.001, 0.025, 0.3, 0.6, 0.975, 0.9999] {
                close(t_cdf(t_quantile(p, df), df), p, 1e-12);
            }
        }
        for p in [1e-300, 1e-9, 0.02425, 0.2, 0.7, 0.999_999] {
            close(normal_cdf(normal_quantile(p)), p, 1e-13);
        }
    }

    #[test]
    fn tails_sum_to_one() {
        for (a, x) in [(0.5, 0.1), (3.0, 9.0), (40.0, 35.0), (4000.0, 4100.0)] {
            let (lower, upper) = gamma_tails(a, x);
            close(lower + upper, 1.0, 1e-15);
        }
    }
}
