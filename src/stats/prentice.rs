//! Prentice-style check: once the calibrated reward is known, does anything else predict the residual?
//!
//! Ordinary least squares of eps on [1, R, R^2, terms]; heteroscedasticity-consistent HC3 covariance
//! `(X'X)^-1 X' diag(e^2 / (1 - h)^2) X (X'X)^-1`; Wald F on all terms but the intercept and R. Sources: Prentice
//! 1989; `MacKinnon` and White 1985; CLOVER v1.1, appendix A.

use ndarray::Array2;
use ndarray::ArrayView1;
use ndarray::Axis;

use crate::distribution;
use crate::inference;
use crate::sample::InsufficientData;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::spd;
use clover_num::math;

/// p below which the check fails.
pub const LEVEL: f64 = 0.05;
/// A column whose part outside the columns before it is below this share of it adds nothing.
const COLLINEAR: f64 = 1e-8;
/// Error, as a share of the largest residual, that rounding alone can leave of an exact fit.
const EXACT: f64 = 1e-12;
/// Leverage from which a row is fitted exactly and HC3 has no value.
const LEVERAGE_MAX: f64 = 1.0 - 1e-10;

/// A tested term.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Which: 0 is R^2, then the terms in the order given from 1.
    pub number: usize,
    /// Coefficient.
    pub coefficient: f64,
    /// HC3 standard error.
    pub standard_error: f64,
    /// |coefficient| sd(term) / sd(eps).
    pub standardised: f64,
}

/// The check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Wald F.
    pub f: f64,
    /// Terms tested.
    pub df_terms: usize,
    /// Rows less fitted columns.
    pub df_rows: usize,
    /// P(F > f).
    pub p: f64,
    /// Whether p < 0.05.
    pub fails: bool,
    /// The terms tested.
    pub terms: Vec<Term>,
    /// Terms (numbered as in [`Term`]) that are linear combinations of columns before them.
    pub dropped: Vec<usize>,
    /// The term of the largest standardised coefficient: the evidence that is missing most.
    pub largest: usize,
}

/// An orthonormal basis of the columns kept, and the triangle that turns it back.
struct OrthonormalBasis {
    columns: Vec<Vec<f64>>,
    /// R, row by row over the kept columns, upper triangular.
    triangle: Vec<Vec<f64>>,
    kept: Vec<usize>,
}

/// Gram-Schmidt with one re-orthogonalisation; a column that adds nothing is left out.
fn basis(design: &[Vec<f64>]) -> OrthonormalBasis {
    let mut found = OrthonormalBasis {
        columns: Vec::new(),
        triangle: Vec::new(),
        kept: Vec::new(),
    };
    for (number, column) in design.iter().enumerate() {
        let norm = math::dot(column, column).sqrt();
        let mut rest = column.clone();
        let mut onto = vec![0.0; found.columns.len()];
        for _ in 0..2 {
            for (share, unit) in onto.iter_mut().zip(&found.columns) {
                let part = math::dot(unit, &rest);
                *share += part;
                for (value, along) in rest.iter_mut().zip(unit) {
                    *value -= part * along;
                }
            }
        }
        let left = math::dot(&rest, &rest).sqrt();
        // At most, so that a column of zeros is left out too.
        if left <= COLLINEAR * norm {
            continue;
        }
        for value in &mut rest {
            *value /= left;
        }
        onto.push(left);
        found.columns.push(rest);
        found.triangle.push(onto);
        found.kept.push(number);
    }
    found
}

impl OrthonormalBasis {
    /// R^-1 b; `triangle[j]` holds column j of R.
    fn back_substitute(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for column in (0..x.len()).rev() {
            x[column] /= self.triangle[column][column];
            for row in 0..column {
                x[row] -= self.triangle[column][row] * x[column];
            }
        }
        x
    }
}

/// Checks residuals against rewards and further terms (log tokens, dummies of domain, difficulty, length, policy).
///
/// # Errors
/// [`Unfit::Invalid`] for misaligned columns; [`Unfit::InsufficientData`] if no tested term is left, there are not more rows than
/// columns, a single row decides a coefficient, or the residuals do not vary beyond the fit.
pub fn check(
    residuals: Values<'_>,
    rewards: Values<'_>,
    terms: &[Values<'_>],
) -> Result<Check, Unfit> {
    let rows = residuals.len();
    let rewards = Values::aligned("rewards", rewards.as_slice(), rows)?.as_slice();
    let mut design = vec![
        vec![1.0; rows],
        rewards.to_vec(),
        rewards.iter().map(|reward| reward * reward).collect(),
    ];
    for term in terms {
        design.push(
            Values::aligned("terms", term.as_slice(), rows)?
                .as_slice()
                .to_vec(),
        );
    }
    let basis = basis(&design);
    let kept = basis.kept.len();
    let tested: Vec<usize> = (0..kept).filter(|&at| basis.kept[at] >= 2).collect();
    InsufficientData::unless("terms", tested.len(), 1)?;
    InsufficientData::unless("rows", rows, kept + 1)?;
    let (coefficients, covariance) = hc3(residuals, &basis)?;
    let block = covariance.select(Axis(0), &tested).select(Axis(1), &tested);
    let chosen: Vec<f64> = tested.iter().map(|&at| coefficients[at]).collect();
    let factor = scaled_factor(&block).ok_or(thin_spread())?;
    let f = factor.wald(&chosen) / tested.len() as f64;
    let p = distribution::f_sf(f, tested.len() as f64, (rows - kept) as f64);
    if !f.is_finite() || p.is_nan() {
        return Err(thin_spread().into());
    }
    let spread = inference::standard_deviation(residuals.as_slice())?;
    let mut terms = Vec::with_capacity(tested.len());
    for &at in &tested {
        let deviation = inference::standard_deviation(&design[basis.kept[at]])?;
        terms.push(Term {
            number: basis.kept[at] - 2,
            coefficient: coefficients[at],
            standard_error: covariance[[at, at]].max(0.0).sqrt(),
            standardised: coefficients[at].abs() * deviation / spread,
        });
    }
    let largest = terms
        .iter()
        .reduce(|best, term| {
            if term.standardised > best.standardised {
                term
            } else {
                best
            }
        })
        .map_or(0, |term| term.number);
    let dropped = (2..design.len()).filter(|number| !basis.kept.contains(number));
    Ok(Check {
        f,
        df_terms: tested.len(),
        df_rows: rows - kept,
        p,
        fails: p < LEVEL,
        dropped: dropped.map(|number| number - 2).collect(),
        terms,
        largest,
    })
}

fn thin_spread() -> InsufficientData {
    InsufficientData {
        of: "rows that vary beyond the fit",
        found: 0,
        needed: 1,
    }
}

/// Coefficients of the kept columns and their HC3 covariance.
fn hc3(
    residuals: Values<'_>,
    basis: &OrthonormalBasis,
) -> Result<(Vec<f64>, Array2<f64>), InsufficientData> {
    let y = residuals.as_slice();
    let kept = basis.columns.len();
    let largest = y.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let mut varies = false;
    let projected: Vec<f64> = basis
        .columns
        .iter()
        .map(|unit| math::dot(unit, y))
        .collect();
    let mut middle = Array2::zeros((kept, kept));
    for (row, value) in y.iter().enumerate() {
        let units: Vec<f64> = basis.columns.iter().map(|unit| unit[row]).collect();
        let leverage = math::dot(&units, &units);
        if leverage > LEVERAGE_MAX {
            return Err(InsufficientData {
                of: "rows behind a term",
                found: 1,
                needed: 2,
            });
        }
        let error = (value - math::dot(&units, &projected)) / (1.0 - leverage);
        varies |= error.abs() > EXACT * largest;
        for a in 0..kept {
            for b in 0..kept {
                middle[[a, b]] += units[a] * units[b] * error * error;
            }
        }
    }
    if !varies {
        return Err(thin_spread());
    }
    // R^-1 M R^-T: solve once from the left, then from the right.
    let solved = |matrix: &Array2<f64>| {
        let mut solved = Array2::zeros((kept, kept));
        for (column, mut row) in matrix.columns().into_iter().zip(solved.rows_mut()) {
            let of = basis.back_substitute(&column.to_vec());
            row.assign(&ArrayView1::from(&of));
        }
        solved
    };
    let covariance = solved(&solved(&middle));
    Ok((basis.back_substitute(&projected), covariance))
}

/// A factor of a covariance scaled to unit diagonal, so that the units of the terms do not matter.
struct ScaledFactor {
    scales: Vec<f64>,
    factor: spd::Factor,
}

fn scaled_factor(block: &Array2<f64>) -> Option<ScaledFactor> {
    let scales: Vec<f64> = block.diag().iter().map(|of| of.sqrt()).collect();
    if scales.iter().any(|scale| scale.is_nan() || *scale <= 0.0) {
        return None;
    }
    let unit = Array2::from_shape_fn(block.dim(), |(row, column)| {
        block[[row, column]] / (scales[row] * scales[column])
    });
    let factor = spd::factor(&unit)?;
    Some(ScaledFactor { scales, factor })
}

impl ScaledFactor {
    /// b' V^-1 b.
    fn wald(&self, coefficients: &[f64]) -> f64 {
        let z: Vec<f64> = coefficients
            .iter()
            .zip(&self.scales)
            .map(|(coefficient, scale)| coefficient / scale)
            .collect();
        math::dot(&z, &self.factor.solve(&z))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // source: rounded parts of a linear congruential stream.
    const R: [f64; 50] = [
        0.273, 0.151, 0.286, 0.563, 0.455, 0.577, 0.653, 0.418, 0.354, 0.734, 0.824, 0.102, 0.374,
        0.889, 0.751, 0.232, 0.393, 0.067, 0.803, 0.981, 0.051, 0.058, 0.778, 0.674, 0.437, 0.347,
        0.178, 0.977, 0.293, 0.182, 0.606, 0.649, 0.314, 0.495, 0.615, 0.317, 0.635, 0.907, 0.87,
        0.259, 0.119, 0.521, 0.942, 0.644, 0.507, 0.735, 0.608, 0.211, 0.065, 0.778,
    ];
    // source: as above.
    const Z: [f64; 50] = [
        2.917, 2.569, 2.329, 0.626, 0.816, 0.263, 2.147, 0.226, 2.111, 2.471, 1.997, 2.906, 0.339,
        1.511, 1.77, 2.039, 2.684, 2.926, 0.141, 2.061, 2.835, 0.397, 0.427, 0.554, 0.032, 2.3,
        0.329, 2.633, 0.838, 1.825, 0.358, 0.772, 1.652, 0.053, 1.206, 1.735, 2.516, 0.91, 0.865,
        0.774, 2.233, 0.385, 0.751, 2.728, 1.327, 2.941, 1.636, 2.214, 1.886, 0.506,
    ];
    // source: as above.
    const D: [f64; 50] = [
        0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0,
        1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0,
        0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0,
    ];
    // source: as above, plus 0.06 for each row of D.
    const EPS: [f64; 50] = [
        -0.127, -0.124, 0.065, 0.038, 0.047, -0.225, -0.102, 0.135, -0.047, -0.093, -0.061, 0.036,
        -0.084, -0.101, 0.098, -0.001, 0.059, 0.01, 0.128, -0.033, -0.078, 0.003, 0.078, -0.1,
        0.062, -0.093, 0.057, 0.002, -0.089, -0.049, -0.107, -0.061, 0.05, 0.046, 0.101, 0.049,
        -0.234, 0.053, 0.209, -0.134, -0.101, 0.095, 0.151, 0.039, 0.049, -0.124, 0.061, 0.04,
        0.019, -0.069,
    ];

    fn values(values: &[f64]) -> Values<'_> {
        Values::new("values", values).unwrap()
    }

    #[test]
    fn agrees_with_ols_hc3() {
        // source: statsmodels 0.15.0, OLS(...).fit(cov_type="HC3", use_t=True).f_test on R^2, z, d.
        const COEFFICIENTS: [f64; 3] = [0.138_755_54, -0.021_887_89, 0.098_281_27];
        // source: as above.
        const ERRORS: [f64; 3] = [0.173_962_28, 0.014_148_09, 0.025_428_48];
        let found = check(values(&EPS), values(&R), &[values(&Z), values(&D)]).unwrap();
        assert!(
            (found.f - 10.423_236_461_273_389).abs() < 1e-9,
            "{}",
            found.f
        );
        assert!((found.p / 2.507_101_398_452_179_4e-5 - 1.0).abs() < 1e-9);
        assert_eq!((found.df_terms, found.df_rows), (3, 45));
        for ((term, coefficient), error) in found.terms.iter().zip(COEFFICIENTS).zip(ERRORS) {
            assert!((term.coefficient - coefficient).abs() < 1e-8);
            assert!((term.standard_error - error).abs() < 1e-8);
        }
        assert!(found.fails);
        assert_eq!(found.largest, 2);
    }

    #[test]
    fn terms_that_add_nothing_are_dropped() {
        let rest: Vec<f64> = D.iter().map(|d| 1.0 - d).collect();
        let zeros = [0.0; 50];
        let terms = [values(&Z), values(&D), values(&rest), values(&zeros)];
        let found = check(values(&EPS), values(&R), &terms).unwrap();
        assert_eq!(found.dropped, [3, 4]);
        assert_eq!(found.df_terms, 3);
        assert!((found.f - 10.423_236_461_273_389).abs() < 1e-9);
    }

    #[test]
    fn units_of_a_term_do_not_matter() {
        let scaled: Vec<f64> = Z.iter().map(|z| 1e6 * z - 3e5).collect();
        let a = check(values(&EPS), values(&R), &[values(&Z), values(&D)]).unwrap();
        let b = check(values(&EPS), values(&R), &[values(&scaled), values(&D)]).unwrap();
        assert!((a.f / b.f - 1.0).abs() < 1e-8);
    }

    #[test]
    fn what_has_no_f_is_thin() {
        let flat = [0.5; 50];
        let binary: Vec<f64> = D.to_vec();
        // R^2 = R when R is a dummy, and nothing else is asked.
        assert!(matches!(
            check(values(&EPS), values(&binary), &[]),
            Err(Unfit::InsufficientData(_))
        ));
        assert!(matches!(
            check(values(&flat), values(&R), &[]),
            Err(Unfit::InsufficientData(_))
        ));
        let mut lone = [0.0; 50];
        lone[7] = 1.0;
        let found = check(values(&EPS), values(&R), &[values(&lone)]);
        assert!(matches!(found, Err(Unfit::InsufficientData(_))));
        let few = check(values(&EPS[..3]), values(&R[..3]), &[]);
        assert!(matches!(few, Err(Unfit::InsufficientData(_))));
        let short = check(values(&EPS), values(&R[..9]), &[]);
        assert!(matches!(short, Err(Unfit::Invalid(_))));
    }
}
