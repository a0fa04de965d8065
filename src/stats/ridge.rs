//! Weighted ridge regression with an intercept, its penalty chosen by exact leave-one-out error.
//!
//! Penalties 10^-3 to 10^3 in 13 steps; the smallest with the least error wins (`cje-eval` 0.9.3). With rows of weight
//! w, centred columns `a_i = sqrt(w_i)(x_i - mean x)` and `H = (A'A + penalty I)^-1`, the left-out error of row i is
//! `sqrt(w_i)(y_i - fit_i) / (1 - w_i h_i - w_i / sum w)`, where `h_i = (x_i - mean x)' H (x_i - mean x)`.

use ndarray::Array2;

use crate::spd;
use clover_num::math;

/// Penalties tried.
const PENALTIES: usize = 13;

/// Rows of a design that may repeat: each row of data names one of few distinct rows of columns.
#[derive(Debug)]
pub(crate) struct DesignRows<'a> {
    /// The nonzero columns of each distinct row, in order: (column, value).
    pub(crate) distinct: &'a [Vec<(usize, f64)>],
    /// Which distinct row each row of data has.
    pub(crate) of_row: &'a [u32],
    /// Its label.
    pub(crate) label: &'a [f64],
    /// Its weight, above 0.
    pub(crate) weight: &'a [f64],
    /// Columns in all.
    pub(crate) columns: usize,
}

/// A fitted ridge regression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ridge {
    /// Penalty that won.
    pub(crate) penalty: f64,
    /// One coefficient per column.
    pub(crate) coefficients: Vec<f64>,
    /// Intercept, unpenalised.
    pub(crate) intercept: f64,
}

/// Sums over the distinct rows that every penalty shares.
struct RidgeSums {
    /// Total weight.
    weight: f64,
    /// Weighted mean of each column.
    mean: Vec<f64>,
    /// Weighted mean label.
    label: f64,
    /// A'A, lower triangle.
    gram: Array2<f64>,
    /// A'y.
    moment: Vec<f64>,
    /// Weight of each distinct row; 0 where no row of data has it.
    of_distinct: Vec<f64>,
}

/// Fits; the rows must not be empty.
pub(crate) fn fit(rows: &DesignRows<'_>) -> Ridge {
    let moments = moments(rows);
    let mut best: Option<(f64, Ridge)> = None;
    for step in 0..PENALTIES {
        let penalty = math::exp10(-3.0 + 6.0 * step as f64 / (PENALTIES - 1) as f64);
        let inverse = spd::penalised(&moments.gram, penalty).inverse();
        let coefficients = multiply(&inverse, &moments.moment);
        let intercept = moments.label - math::dot(&moments.mean, &coefficients);
        let error = left_out(rows, &moments, &inverse, &coefficients, intercept);
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            let ridge = Ridge {
                penalty,
                coefficients,
                intercept,
            };
            best = Some((error, ridge));
        }
    }
    best.map_or_else(
        || Ridge {
            penalty: 0.0,
            coefficients: vec![0.0; rows.columns],
            intercept: moments.label,
        },
        |(_, ridge)| ridge,
    )
}

fn moments(rows: &DesignRows<'_>) -> RidgeSums {
    let columns = rows.columns;
    let mut of_distinct = vec![0.0; rows.distinct.len()];
    let mut labels = vec![0.0; rows.distinct.len()];
    for ((&at, &label), &weight) in rows.of_row.iter().zip(rows.label).zip(rows.weight) {
        of_distinct[at as usize] += weight;
        labels[at as usize] += weight * label;
    }
    let weight: f64 = of_distinct.iter().sum();
    let label = labels.iter().sum::<f64>() / weight;
    let mut mean = vec![0.0; columns];
    let mut gram = Array2::zeros((columns, columns));
    let mut moment = vec![0.0; columns];
    for (at, row) in rows.distinct.iter().enumerate() {
        let mass = of_distinct[at];
        if mass <= 0.0 {
            continue;
        }
        let above = labels[at] - mass * label;
        for (place, &(i, x)) in row.iter().enumerate() {
            mean[i] += mass * x;
            moment[i] += above * x;
            let mut line = gram.row_mut(i);
            for &(j, z) in &row[..=place] {
                line[j] += mass * x * z;
            }
        }
    }
    for value in &mut mean {
        *value /= weight;
    }
    for i in 0..columns {
        for j in 0..=i {
            gram[[i, j]] -= weight * mean[i] * mean[j];
        }
    }
    RidgeSums {
        weight,
        mean,
        label,
        gram,
        moment,
        of_distinct,
    }
}

/// Sum of squared left-out errors.
fn left_out(
    rows: &DesignRows<'_>,
    moments: &RidgeSums,
    inverse: &Array2<f64>,
    coefficients: &[f64],
    intercept: f64,
) -> f64 {
    let shift = multiply(inverse, &moments.mean);
    let constant = math::dot(&shift, &moments.mean) + 1.0 / moments.weight;
    let mut fitted = vec![(0.0, 0.0); rows.distinct.len()];
    for (at, row) in rows.distinct.iter().enumerate() {
        if moments.of_distinct[at] <= 0.0 {
            continue;
        }
        let (mut fit, mut leverage) = (intercept, constant);
        for (place, &(i, x)) in row.iter().enumerate() {
            fit += x * coefficients[i];
            let line = inverse.row(i);
            let mut cross = 0.5 * x * line[i] - shift[i];
            for &(j, z) in &row[..place] {
                cross += z * line[j];
            }
            leverage += 2.0 * x * cross;
        }
        fitted[at] = (fit, leverage);
    }
    let mut total = 0.0;
    for ((&at, &label), &weight) in rows.of_row.iter().zip(rows.label).zip(rows.weight) {
        let (fit, leverage) = fitted[at as usize];
        let error = (label - fit) / (1.0 - weight * leverage);
        total += weight * error * error;
    }
    total
}

/// Matrix, in standard layout, times vector.
fn multiply(matrix: &Array2<f64>, vector: &[f64]) -> Vec<f64> {
    let rows = matrix.rows().into_iter();
    let row = |row: ndarray::ArrayView1<'_, f64>| {
        let row = row.to_slice().expect("BUG: rows lie in one piece");
        math::dot(row, vector)
    };
    rows.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves each row out in turn and refits: what the closed form must equal.
    #[test]
    fn the_chosen_penalty_is_that_of_refitting_without_each_row() {
        let distinct: Vec<Vec<(usize, f64)>> = (0..12)
            .map(|i| {
                let x = f64::from(i) / 11.0;
                vec![(0, x), (1, x * x - 0.3), (2, 1.0 / (1.0 + x))]
            })
            .collect();
        let of_row: Vec<u32> = (0..12).chain(0..6).collect();
        let label: Vec<f64> = (0..18_u32)
            .map(|i| f64::from(i * 7 % 5) / 5.0 + 0.1 * f64::from(i))
            .collect();
        let weight: Vec<f64> = (0..18_u32).map(|i| 0.5 + f64::from(i % 3)).collect();
        let rows = |keep: &dyn Fn(usize) -> bool| -> (Vec<u32>, Vec<f64>, Vec<f64>) {
            let kept: Vec<usize> = (0..18).filter(|&i| keep(i)).collect();
            (
                kept.iter().map(|&i| of_row[i]).collect(),
                kept.iter().map(|&i| label[i]).collect(),
                kept.iter().map(|&i| weight[i]).collect(),
            )
        };
        let fit_at = |penalty: f64, keep: &dyn Fn(usize) -> bool| {
            let (of_row, label, weight) = rows(keep);
            let rows = DesignRows {
                distinct: &distinct,
                of_row: &of_row,
                label: &label,
                weight: &weight,
                columns: 3,
            };
            let moments = moments(&rows);
            let inverse = spd::penalised(&moments.gram, penalty).inverse();
            let coefficients = multiply(&inverse, &moments.moment);
            let intercept = moments.label - math::dot(&moments.mean, &coefficients);
            let error = left_out(&rows, &moments, &inverse, &coefficients, intercept);
            (coefficients, intercept, error)
        };
        for penalty in [1e-3, 0.1, 10.0] {
            let (_, _, closed) = fit_at(penalty, &|_| true);
            let refitted: f64 = (0..18)
                .map(|left| {
                    let (coefficients, intercept, _) = fit_at(penalty, &|i| i != left);
                    let row = &distinct[of_row[left] as usize];
                    let fit: f64 = row.iter().map(|&(i, x)| x * coefficients[i]).sum();
                    let error = label[left] - fit - intercept;
                    weight[left] * error * error
                })
                .sum();
            assert!(
                (closed - refitted).abs() < 1e-9 * refitted,
                "{penalty}: {closed} {refitted}"
            );
        }
    }
}
