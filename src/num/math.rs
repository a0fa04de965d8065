//! The only door to transcendental functions, and the one order of sums.
//!
//! Platform libraries differ in the last bit; `libm` is compiled in, so the same ledger replays to the
//! same bytes on any machine. Square roots, fused-free sums and divisions are exact by IEEE 754 and need
//! no door.

/// e^x.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// e^x - 1, accurate near 0.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// ln(1 + x), accurate near 0.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// Base-10 power, 10^x.
pub fn exp10(x: f64) -> f64 {
    libm::exp10(x)
}

/// x^y.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Error function.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// Complementary error function, 1 - erf(x), accurate in the upper tail.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Logarithm of the absolute value of the gamma function.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Cosine of an angle in radians.
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Lanes of a sum: values `i`, `i + 4`, `i + 8`, … are added in order, then the lanes pairwise.
const LANES: usize = 4;

/// Sum of `values` in the one fixed order of this crate (four interleaved lanes).
pub fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += value;
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

/// Sum of `a[i] * b[i]` in the order of [`sum`]; the shorter of the two ends it.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let mut lanes = [0.0; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (last_left, last_right) = (left.remainder(), right.remainder());
    for (x, y) in left.zip(right) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(last_left.iter().zip(last_right)) {
        *lane += x * y;
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

/// Arithmetic mean in the order of [`sum`]; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_one_order() {
        let values: Vec<f64> = (0..103).map(|i| 0.1 * f64::from(i)).collect();
        let ones = vec![1.0; values.len()];
        assert_eq!(sum(&values).to_bits(), dot(&values, &ones).to_bits());
        assert!((sum(&values) - 525.3).abs() < 1e-11);
        assert!(mean(&[]).is_nan());
        assert!(sum(&[]).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn functions_match_their_worked_values() {
        // source: NIST DLMF 5.4, 7.1 and the series of e.
        assert!((exp(1.0) - std::f64::consts::E).abs() < 1e-15);
        assert!((ln_gamma(0.5) - 0.572_364_942_924_700_1).abs() < 1e-15);
        assert!((erfc(1.0) - 0.157_299_207_050_285_13).abs() < 1e-16);
        assert!((exp10(-3.0) - 1e-3).abs() < 1e-18);
    }
}
