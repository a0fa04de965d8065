//! Sizes for policy values and for accepting a patch (CLOVER v1.1, sections 4, 5 and 8).

use crate::distribution;
use crate::sample::SampleError;

fn refuse<T>(name: &'static str, expected: &'static str) -> Result<T, SampleError> {
    Err(SampleError::Parameter { name, expected })
}

fn above_zero(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn probability(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// Rows and labels, real-valued, for a standard error of a policy value: `n = sigma2_main / ((1 - share) SE^2)`,
/// `m = coverage n`. Share and coverage together fix `sigma2_cal / sigma2_main`, which must be checked, not assumed.
///
/// # Errors
/// [`SampleError::Parameter`] for a number outside its range.
pub fn value_sizes(
    standard_error: f64,
    share: f64,
    main_variance: f64,
    coverage: f64,
) -> Result<(f64, f64), SampleError> {
    let shares = (0.0..1.0).contains(&share) && coverage > 0.0 && coverage <= 1.0;
    if !above_zero(standard_error) || !above_zero(main_variance) || !shares {
        return refuse(
            "sizes",
            "SE and variance above 0, share in [0, 1), coverage in (0, 1]",
        );
    }
    let rows = main_variance / ((1.0 - share) * standard_error * standard_error);
    Ok((rows, coverage * rows))
}

/// Confirm rows for the t test to reject with a power: `((z_{1-level} + z_power) sd / |DMSE|)^2`, rounded up.
///
/// # Errors
/// [`SampleError::Parameter`] for a number outside its range.
pub fn confirm_rows(
    deviation: f64,
    improvement: f64,
    level: f64,
    power: f64,
) -> Result<f64, SampleError> {
    if !above_zero(deviation)
        || !above_zero(improvement)
        || !probability(level)
        || !probability(power)
    {
        return refuse(
            "confirm",
            "sd and improvement above 0, level and power in (0, 1)",
        );
    }
    let z = distribution::normal_quantile(1.0 - level) + distribution::normal_quantile(power);
    let root = z.max(0.0) * deviation / improvement;
    Ok((root * root).ceil())
}

/// Confirm rows for DMSE to clear -eta with a power, `(z_power sd / (|DMSE| - eta))^2`, rounded up; `None` if the
/// improvement does not exceed eta, where no size reaches a power above one half.
///
/// # Errors
/// [`SampleError::Parameter`] for a number outside its range.
pub fn confirm_rows_beyond_eta(
    deviation: f64,
    improvement: f64,
    eta: f64,
    power: f64,
) -> Result<Option<f64>, SampleError> {
    let legal = above_zero(deviation) && above_zero(improvement) && eta >= 0.0 && eta.is_finite();
    if !legal || !probability(power) {
        return refuse(
            "confirm",
            "sd and improvement above 0, eta >= 0, power in (0, 1)",
        );
    }
    if improvement <= eta {
        return Ok(None);
    }
    let z = distribution::normal_quantile(power).max(0.0);
    let root = z * deviation / (improvement - eta);
    Ok(Some((root * root).ceil()))
}

/// Rows of each of `slices` green slices for all to pass with a probability when none is harmed:
/// `((z_{1-level} + z_{power^(1/slices)}) sd / tau)^2`, rounded up; on each of dev and confirm.
///
/// # Errors
/// [`SampleError::Parameter`] for a number outside its range.
pub fn green_rows(
    deviation: f64,
    tolerance: f64,
    level: f64,
    power: f64,
    slices: u32,
) -> Result<f64, SampleError> {
    let legal = above_zero(deviation) && above_zero(tolerance) && slices > 0;
    if !legal || !probability(level) || !probability(power) {
        return refuse(
            "green",
            "sd and tolerance above 0, some slice, level and power in (0, 1)",
        );
    }
    let each = clover_num::math::pow(power, 1.0 / f64::from(slices));
    let z = distribution::normal_quantile(1.0 - level) + distribution::normal_quantile(each);
    let root = z.max(0.0) * deviation / tolerance;
    Ok((root * root).ceil())
}

/// Absolute mean residual that a slice of weight w must have for its perfect repair to earn eta: `sqrt(eta / w)`.
///
/// # Errors
/// [`SampleError::Parameter`] for a number outside its range.
pub fn mean_gain_needed(eta: f64, weight: f64) -> Result<f64, SampleError> {
    if !(above_zero(eta) && weight > 0.0 && weight <= 1.0) {
        return refuse("gain", "eta above 0, a weight in (0, 1]");
    }
    Ok((eta / weight).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sized_as_the_table_says() {
        // source: CLOVER v1.1, section 8, worked sizing: share 0.2, coverage 0.2: (SE, sigma2_main, n, m).
        const TABLE: [(f64, f64, f64, f64); 12] = [
            (0.0100, 0.04, 500.0, 100.0),
            (0.0100, 0.0625, 781.0, 156.0),
            (0.0100, 0.09, 1125.0, 225.0),
            (0.0100, 0.25, 3125.0, 625.0),
            (0.0125, 0.04, 320.0, 64.0),
            (0.0125, 0.0625, 500.0, 100.0),
            (0.0125, 0.09, 720.0, 144.0),
            (0.0125, 0.25, 2000.0, 400.0),
            (0.0200, 0.04, 125.0, 25.0),
            (0.0200, 0.0625, 195.0, 39.0),
            (0.0200, 0.09, 281.0, 56.0),
            (0.0200, 0.25, 781.0, 156.0),
        ];
        for (error, variance, n, m) in TABLE {
            let (rows, labels) = value_sizes(error, 0.2, variance, 0.2).unwrap();
            assert!(
                (rows - n).abs() <= 0.5 && (labels - m).abs() <= 0.5,
                "{rows}, {labels}"
            );
        }
        assert!(value_sizes(0.0, 0.2, 0.25, 0.2).is_err());
        assert!(value_sizes(0.01, 1.0, 0.25, 0.2).is_err());
    }

    #[test]
    fn confirm_blocks_are_sized_as_the_text_says() {
        // source: CLOVER v1.1, section 5, sizes recomputed: alpha / M = 0.0125, power 0.80: (sd, DMSE, n).
        const TABLE: [(f64, f64, f64); 4] = [
            (0.02, 0.0025, 609.0),
            (0.02, 0.001, 3803.0),
            (0.01, 0.0025, 153.0),
            (0.01, 0.001, 951.0),
        ];
        for (sd, gain, n) in TABLE {
            let rows = confirm_rows(sd, gain, 0.0125, 0.8).unwrap();
            assert!((rows - n).abs() < 0.5, "{rows} is not {n}");
        }
        assert_eq!(confirm_rows_beyond_eta(0.02, 0.001, 0.001, 0.8), Ok(None));
        // (0.8416 * 0.02 / 0.0015)^2 = 125.9.
        assert_eq!(
            confirm_rows_beyond_eta(0.02, 0.0025, 0.001, 0.8),
            Ok(Some(126.0))
        );
        assert!(confirm_rows(0.02, f64::NAN, 0.0125, 0.8).is_err());
    }

    #[test]
    fn green_slices_are_sized_as_the_text_says() {
        // source: CLOVER v1.1, section 5, sizes recomputed: tau 0.0015, q 0.10, 80 % that all pass: (sd, slices, n).
        const TABLE: [(f64, u32, f64); 8] = [
            (0.004, 1, 33.0),
            (0.004, 4, 60.0),
            (0.004, 8, 73.0),
            (0.004, 11, 80.0),
            (0.01, 1, 201.0),
            (0.01, 4, 371.0),
            (0.01, 8, 456.0),
            (0.01, 11, 494.0),
        ];
        for (sd, slices, n) in TABLE {
            let rows = green_rows(sd, 0.0015, 0.10, 0.8, slices).unwrap();
            assert!((rows - n).abs() < 0.5, "{rows} is not {n}");
        }
        assert!(green_rows(0.01, 0.0015, 0.10, 0.8, 0).is_err());
    }

    #[test]
    fn small_slices_need_large_faults() {
        // source: CLOVER v1.1, section 5, sizes recomputed: eta = 0.001: (w, |e|).
        const TABLE: [(f64, f64); 4] = [
            (1.0 / 12.0, 0.110),
            (0.1, 0.100),
            (0.2, 0.071),
            (0.5, 0.045),
        ];
        for (weight, fault) in TABLE {
            assert!((mean_gain_needed(0.001, weight).unwrap() - fault).abs() < 5e-4);
        }
        assert!(mean_gain_needed(0.001, 0.0).is_err());
    }
}
