//! Overlapping slice families fitted jointly: a crossed random-effects model by EM-REML.
//!
//! `y_i = mu + sum_j a_{j, g_j(i)} + e_i`, `a_j ~ N(0, T2_j I)`, `e ~ N(0, sigma2 I)`. Henderson's equations
//! `[X'X X'Z; Z'X Z'Z + D]` with `D = diag(sigma2 / T2_j)` give the effects; EM-REML updates
//! `T2_j <- (a_j' a_j + sigma2 tr(C^jj)) / G_j` and `sigma2 <- (y'y - b'X'y - a'Z'y) / (N - 1)`, C being the
//! inverse of the coefficients. Source: CLOVER v1.1, section 3; Henderson 1973.

use ndarray::Array2;

use crate::inference::Interval;
use crate::pooling;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Thin;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use crate::spd;
use clover_num::math;

/// Steps after which the iteration stops unconverged.
const STEPS_MAX: usize = 20_000;
/// Change of every variance, as a share of the variance of y, at which it has converged.
const CONVERGED: f64 = 1e-11;
/// A family variance below this share of the variance of y is taken as this share: D stays finite.
const FLOOR: f64 = 1e-12;

/// The level of one slice: mu plus the slice's effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Rows.
    pub rows: usize,
    /// Best linear unbiased prediction of the effect.
    pub effect: f64,
    /// mu + effect.
    pub mean: f64,
    /// Standard error of that prediction of mu + effect.
    pub standard_error: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// One family.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossedFamily {
    /// Variance between its slices, `T2_j`.
    pub between: f64,
    /// Its slices, by number.
    pub levels: Vec<Level>,
}

/// The joint fit.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossedFit {
    /// Common mean.
    pub mu: f64,
    /// Its standard error.
    pub mu_standard_error: f64,
    /// Variance of a row within its slices, sigma2.
    pub within: f64,
    /// The families in the order given.
    pub families: Vec<CrossedFamily>,
    /// Steps taken.
    pub steps: usize,
    /// Whether every variance stopped changing.
    pub converged: bool,
}

/// The cross products of the model.
struct Equations {
    rows: f64,
    /// X'X, X'Z, Z'Z without D.
    products: Array2<f64>,
    /// X'y, Z'y.
    right: Vec<f64>,
    /// Where each family's slices begin and end.
    blocks: Vec<(usize, usize)>,
    total_square: f64,
}

fn equations(centred: &[f64], families: &[Clusters]) -> Equations {
    let mut blocks = Vec::with_capacity(families.len());
    let mut size = 1;
    for family in families {
        blocks.push((size, size + family.count()));
        size += family.count();
    }
    let mut products = Array2::zeros((size, size));
    let mut right = vec![0.0; size];
    for (row, &value) in centred.iter().enumerate() {
        let columns: Vec<usize> = std::iter::once(0)
            .chain(
                families
                    .iter()
                    .zip(&blocks)
                    .map(|(family, (start, _))| start + family.of_row()[row] as usize),
            )
            .collect();
        for &a in &columns {
            right[a] += value;
            for &b in &columns {
                products[[a, b]] += 1.0;
            }
        }
    }
    Equations {
        rows: centred.len() as f64,
        products,
        right,
        blocks,
        total_square: math::dot(centred, centred),
    }
}

/// Effects and the inverse of the coefficients at given variances.
fn solve(equations: &Equations, within: f64, between: &[f64]) -> Option<(Vec<f64>, Array2<f64>)> {
    let mut matrix = equations.products.clone();
    for (&(start, end), variance) in equations.blocks.iter().zip(between) {
        for at in start..end {
            matrix[[at, at]] += within / variance;
        }
    }
    let factor = spd::factor(&matrix)?;
    Some((factor.solve(&equations.right), factor.inverse()))
}

/// Fits all families jointly. Each family numbers its slices for the rows of `values`.
///
/// # Errors
/// [`Unfit::Invalid`] without families or for misaligned ones; [`Unfit::Thin`] for fewer than 3 rows, or rows
/// that do not vary.
pub fn fit(values: Values<'_>, families: &[Clusters]) -> Result<CrossedFit, Unfit> {
    if families.is_empty() {
        return Err(SampleError::Empty { column: "families" }.into());
    }
    for family in families {
        align("families", family.of_row().len(), values.len())?;
    }
    Thin::unless("rows", values.len(), 3)?;
    let shift = math::mean(values.as_slice());
    let centred: Vec<f64> = values.as_slice().iter().map(|y| y - shift).collect();
    let equations = equations(&centred, families);
    let spread = equations.total_square / (equations.rows - 1.0);
    let varied: Vec<f64> = values.as_slice().iter().map(|y| y * y).collect();
    if spread <= 1e-26 * math::mean(&varied) {
        let of = "distinct values";
        return Err(Thin {
            of,
            found: 1,
            needed: 2,
        }
        .into());
    }
    let mut within = 0.5 * spread;
    let mut between = vec![0.5 * spread / families.len() as f64; families.len()];
    let (mut steps, mut converged) = (0, false);
    while steps < STEPS_MAX && !converged {
        steps += 1;
        let Some((effects, inverse)) = solve(&equations, within, &between) else {
            break;
        };
        let explained = math::dot(&effects, &equations.right);
        let mut change = 0.0_f64;
        for (variance, &(start, end)) in between.iter_mut().zip(&equations.blocks) {
            let (mut square, mut trace) = (0.0, 0.0);
            for at in start..end {
                square += effects[at] * effects[at];
                trace += inverse[[at, at]];
            }
            let next = (square + within * trace) / (end - start) as f64;
            let next = next.max(FLOOR * spread);
            change = change.max((next - *variance).abs());
            *variance = next;
        }
        let next = (equations.total_square - explained) / (equations.rows - 1.0);
        let next = next.max(FLOOR * spread);
        change = change.max((next - within).abs());
        within = next;
        converged = change <= CONVERGED * spread;
    }
    let (effects, inverse) = solve(&equations, within, &between).ok_or(SampleError::Parameter {
        name: "families",
        expected: "equations that can be solved",
    })?;
    Ok(report(
        &equations, families, shift, within, &between, &effects, &inverse, steps, converged,
    ))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one fit")]
fn report(
    equations: &Equations,
    families: &[Clusters],
    shift: f64,
    within: f64,
    between: &[f64],
    effects: &[f64],
    inverse: &Array2<f64>,
    steps: usize,
    converged: bool,
) -> CrossedFit {
    let mu = shift + effects[0];
    let level = |at: usize, rows: usize| {
        let square = inverse[[0, 0]] + inverse[[at, at]] + 2.0 * inverse[[0, at]];
        let standard_error = (within * square.max(0.0)).sqrt();
        let mean = mu + effects[at];
        Level {
            rows,
            effect: effects[at],
            mean,
            standard_error,
            interval: Interval::around(mean, pooling::CRITICAL_95 * standard_error),
        }
    };
    let blocks = families.iter().zip(&equations.blocks).zip(between);
    let families = blocks
        .map(|((family, &(start, end)), &between)| {
            let mut rows = vec![0; family.count()];
            for &number in family.of_row() {
                rows[number as usize] += 1;
            }
            let levels = (start..end).zip(rows).map(|(at, rows)| level(at, rows));
            CrossedFamily {
                between,
                levels: levels.collect(),
            }
        })
        .collect();
    CrossedFit {
        mu,
        mu_standard_error: (within * inverse[[0, 0]]).sqrt(),
        within,
        families,
        steps,
        converged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [u32; 60] = [
        2, 1, 2, 0, 2, 1, 2, 1, 1, 1, 3, 0, 1, 2, 3, 3, 3, 1, 2, 2, 0, 2, 2, 3, 1, 1, 2, 2, 0, 0,
        3, 0, 2, 0, 2, 2, 1, 0, 2, 2, 1, 3, 3, 1, 2, 0, 2, 2, 2, 3, 1, 3, 2, 0, 1, 0, 2, 1, 0, 3,
    ];
    const SECOND: [u32; 60] = [
        0, 0, 0, 2, 1, 1, 1, 0, 1, 0, 1, 0, 2, 2, 1, 1, 0, 2, 0, 1, 2, 2, 2, 0, 2, 0, 2, 0, 0, 2,
        2, 0, 0, 1, 0, 2, 1, 2, 1, 0, 2, 0, 2, 0, 0, 0, 1, 0, 2, 2, 0, 0, 2, 1, 2, 0, 0, 1, 2, 1,
    ];
    // source: rounded sums of slice effects and a linear congruential stream.
    const Y: [f64; 60] = [
        -0.054, -0.115, -0.105, -0.18, -0.144, -0.221, -0.136, 0.237, -0.037, 0.139, -0.023,
        -0.026, 0.219, 0.154, 0.117, 0.105, 0.3, -0.079, 0.07, 0.022, -0.232, -0.007, 0.035, 0.458,
        0.211, 0.264, 0.025, 0.352, 0.054, -0.248, 0.125, 0.129, -0.061, -0.402, -0.063, 0.185,
        -0.115, -0.412, -0.002, 0.069, 0.242, 0.366, 0.206, -0.022, 0.05, -0.066, -0.027, 0.175,
        -0.003, 0.133, 0.345, 0.325, 0.011, -0.263, 0.071, -0.242, 0.057, 0.187, -0.054, 0.175,
    ];

    fn families() -> [Clusters; 2] {
        [
            Clusters::numbered(FIRST.to_vec(), 4).unwrap(),
            Clusters::numbered(SECOND.to_vec(), 3).unwrap(),
        ]
    }

    #[test]
    fn agrees_with_the_likelihood_and_mixed_lm() {
        // source: direct maximisation of the restricted likelihood (numpy 2.4.6, scipy 1.17.1 Nelder-Mead to 1e-12);
        // statsmodels 0.15.0 MixedLM with variance components gives the same to its own 1e-6.
        const A: [f64; 4] = [-0.201_179_58, 0.047_790_07, -0.018_489_64, 0.171_879_14];
        // source: as above; standard errors from the dense inverse of Henderson's equations.
        const ERRORS: [f64; 4] = [0.063_979_379, 0.061_769_081, 0.059_189_720, 0.064_615_407];
        let fitted = fit(Values::new("y", &Y).unwrap(), &families()).unwrap();
        assert!(fitted.converged, "{} steps", fitted.steps);
        let near = |got: f64, want: f64, within: f64| {
            assert!((got - want).abs() <= within, "{got} is not {want}");
        };
        near(fitted.within, 0.016_118_421_7, 2e-9);
        near(fitted.families[0].between, 0.025_324_820_7, 2e-8);
        near(fitted.families[1].between, 0.008_299_617_2, 2e-8);
        near(fitted.mu, 0.027_083_67, 2e-8);
        near(fitted.mu_standard_error, 0.096_926_69, 2e-8);
        for ((level, effect), error) in fitted.families[0].levels.iter().zip(A).zip(ERRORS) {
            near(level.effect, effect, 2e-8);
            near(level.standard_error, error, 2e-8);
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let flat = [0.5; 60];
        let flat = Values::new("y", &flat).unwrap();
        assert!(matches!(fit(flat, &families()), Err(Unfit::Thin(_))));
        let y = Values::new("y", &Y).unwrap();
        assert!(matches!(fit(y, &[]), Err(Unfit::Invalid(_))));
        let short = [Clusters::numbered(vec![0, 1], 2).unwrap()];
        assert!(matches!(fit(y, &short), Err(Unfit::Invalid(_))));
    }

    #[test]
    fn a_slice_without_rows_is_the_common_mean() {
        let families = [Clusters::numbered(FIRST.to_vec(), 5).unwrap()];
        let fitted = fit(Values::new("y", &Y).unwrap(), &families).unwrap();
        let empty = fitted.families[0].levels[4];
        assert_eq!(empty.rows, 0);
        assert!((empty.mean - fitted.mu).abs() < 1e-12);
    }
}
