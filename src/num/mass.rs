//! Masses of log-probabilities by whole numbers alone, so that every program that verifies gets the same.

/// The mass of certainty: masses are whole multiples of 10^-18.
pub const MASS_WHOLE: u128 = 1_000_000_000_000_000_000;
/// The least log-probability that has a mass, in millionths of a nat.
pub const LOGPROB_LEAST: i64 = -100_000_000;

/// e^-1 in units of 10^-18, rounded down.
const INVERSE_E: u128 = 367_879_441_171_442_321;
/// Millionths of a whole.
const MILLION: u128 = 1_000_000;

/// e^(logprob / 10^6) in units of 10^-18, for a log-probability in millionths of a nat from -10^8 to 0; `None` outside.
///
/// With l = q 10^6 + r: the alternating series of e^(-r/10^6), each term rounded down, then q times a product with e^-1, each
/// rounded down. The error is below 2 10^-16. `schema/ENDPOINTS.md` has the steps.
pub fn mass(logprob_micro: i64) -> Option<u128> {
    if !(LOGPROB_LEAST..=0).contains(&logprob_micro) {
        return None;
    }
    let below = u128::from(logprob_micro.unsigned_abs());
    let (whole, rest) = (below / MILLION, below % MILLION);
    let (mut added, mut taken) = (0, 0);
    let (mut term, mut k) = (MASS_WHOLE, 0);
    while term > 0 {
        if k % 2 == 0 {
            added += term;
        } else {
            taken += term;
        }
        k += 1;
        term = term * rest / (k * MILLION);
    }
    let mut out = added - taken;
    for _ in 0..whole {
        out = out * INVERSE_E / MASS_WHOLE;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// source: Python's `decimal`, `Decimal(l).scaleb(-6).exp()` at 40 digits.
    #[test]
    fn masses_are_those_of_the_exponential_function() {
        for (logprob, expected) in [
            (0, MASS_WHOLE),
            (-1, 999_999_000_000_499_999),
            (-356_675, 699_999_960_757_113_765),
            (-1_000_000, 367_879_441_171_442_321),
            (-2_302_585, 100_000_009_299_405_000),
            (-29_999_999, 93_576),
        ] {
            let found = mass(logprob).unwrap();
            assert!(found.abs_diff(expected) < 200, "{logprob}: {found}");
        }
        assert_eq!((mass(1), mass(-100_000_001)), (None, None));
        assert_eq!(mass(-100_000_000), Some(0));
    }

    #[test]
    fn a_likelier_token_has_no_smaller_mass() {
        let masses = (0..2_000).map(|step| mass(-7_919 * step).unwrap());
        let masses: Vec<_> = masses.collect();
        assert!(masses.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
