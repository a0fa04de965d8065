//! Which of two scores of the same rows agrees better with their labels.
//!
//! Either score is read through a monotone curve that never saw the row: isotonic regression of labels on scores over the
//! other folds. What a curve leaves is a squared error; errors are paired by row. The mean difference has a CRV1 variance
//! over clusters, and clusters less one degrees of freedom: an interval of it is asymptotic. Source: CJE paper, sections on
//! calibration (cross-fitting) and on uncertainty; CLOVER v1.1, section 4.

use clover_num::math;

use crate::crv1;
use crate::folds;
use crate::inference::Interval;
use crate::isotonic;
use crate::isotonic::ClipBounds;
use crate::isotonic::Monotonicity;
use crate::sample::Clusters;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;

/// How two scores agree with the same labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Rows.
    pub rows: usize,
    /// Clusters of rows.
    pub clusters: usize,
    /// Mean squared error that each score leaves, the first one's first.
    pub errors: [f64; 2],
    /// Error of the first less error of the second: above 0 the second agrees better.
    pub difference: f64,
    /// Its standard error; 0 where every row differs alike.
    pub standard_error: f64,
    /// Degrees of freedom.
    pub df: f64,
}

impl Agreement {
    /// The interval of the difference at level 1 - `alpha`.
    pub fn interval(&self, alpha: f64) -> Interval {
        Interval::student(self.difference, self.standard_error, self.df, alpha)
    }
}

/// What the curve of a score leaves on each row.
fn left(
    scores: Values<'_>,
    labels: Values<'_>,
    of_row: &[usize],
    count: usize,
) -> Result<Vec<f64>, Unfit> {
    let (x, y) = (scores.as_slice(), labels.as_slice());
    let mut left = vec![0.0; x.len()];
    for fold in 0..count {
        let others = |column: &[f64]| -> Vec<f64> {
            let rows = column.iter().zip(of_row);
            let rows = rows.filter(|(_, of)| **of != fold);
            rows.map(|(value, _)| *value).collect()
        };
        let (seen_x, seen_y) = (others(x), others(y));
        let seen = (
            Values::new("scores", &seen_x)?,
            Values::new("labels", &seen_y)?,
        );
        let (bounds, rises) = (ClipBounds::default(), Monotonicity::Increasing);
        let curve = isotonic::fit(seen.0, seen.1, None, bounds, rises)?;
        for row in (0..x.len()).filter(|&row| of_row[row] == fold) {
            let residual = y[row] - curve.at(x[row]);
            left[row] = residual * residual;
        }
    }
    Ok(left)
}

/// Compares two scores; `of_row` puts each row into one of `count` folds, whole clusters together.
///
/// # Errors
/// [`Unfit`] for columns of different lengths, and below two clusters a fold.
pub fn compare(
    [first, second]: [Values<'_>; 2],
    labels: Values<'_>,
    clusters: &Clusters,
    (of_row, count): (&[usize], usize),
) -> Result<Agreement, Unfit> {
    align("second scores", second.len(), first.len())?;
    align("labels", labels.len(), first.len())?;
    align("clusters", clusters.of_row().len(), first.len())?;
    align("folds", of_row.len(), first.len())?;
    folds::check_clusters(count, clusters.count())?;
    let left = [
        left(first, labels, of_row, count)?,
        left(second, labels, of_row, count)?,
    ];
    let pairs = left[0].iter().zip(&left[1]);
    let differences: Vec<f64> = pairs.map(|(first, second)| first - second).collect();
    let found = crv1::mean(&differences, clusters, None);
    Ok(Agreement {
        rows: found.rows,
        clusters: found.clusters,
        errors: left.map(|errors| math::mean(&errors)),
        difference: found.mean,
        standard_error: found.standard_error().unwrap_or(f64::INFINITY),
        df: found.df(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(first: &[f64], second: &[f64], labels: &[f64], folds: &[usize]) -> Agreement {
        let clusters = Clusters::singletons(labels.len()).unwrap();
        let of = |column| Values::new("column", column).unwrap();
        compare([of(first), of(second)], of(labels), &clusters, (folds, 2)).unwrap()
    }

    /// A score that says nothing is read as the mean label of the other fold: 2/3 for one fold, 1/3 for the other. Of its six
    /// squared errors four are 4/9 and two 1/9. The other score is the label itself, and leaves nothing.
    #[test]
    fn a_score_that_says_nothing_leaves_the_variance() {
        let labels = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        let folds = [0, 0, 0, 1, 1, 1];
        let found = compared(&[0.5; 6], &labels, &labels, &folds);
        assert!((found.difference - 1.0 / 3.0).abs() < 1e-12);
        assert!((found.errors[0] - 1.0 / 3.0).abs() < 1e-12);
        assert!(found.errors[1].abs() < 1e-12);
        // V = 6/5 · (4 · (1/9)² + 2 · (2/9)²) / 36
        let variance: f64 = 6.0 / 5.0 * (12.0 / 81.0) / 36.0;
        assert!((found.standard_error - variance.sqrt()).abs() < 1e-12);
        assert!((found.df - 5.0).abs() < 1e-12);
        let back = compared(&labels, &[0.5; 6], &labels, &folds);
        assert!((back.difference + found.difference).abs() < 1e-12);
        let interval = found.interval(0.05);
        assert!(interval.low > 0.0 && interval.contains(found.difference));
    }

    #[test]
    fn a_score_agrees_as_well_as_itself_on_any_scale() {
        let labels = [0.1, 0.7, 0.4, 0.9, 0.2, 0.6, 0.3, 0.8];
        let scores = [0.2, 0.6, 0.5, 0.8, 0.1, 0.4, 0.3, 0.9];
        let stretched = scores.map(|score| 3.0 * score);
        let found = compared(&scores, &stretched, &labels, &[0, 1, 0, 1, 0, 1, 0, 1]);
        assert!(found.difference.abs() < 1e-12 && found.standard_error < 1e-12);
    }

    #[test]
    fn too_few_clusters_give_no_number() {
        let clusters = Clusters::of([1, 1, 1, 2]).unwrap();
        let of = Values::new("column", &[0.1, 0.2, 0.3, 0.4]).unwrap();
        let found = compare([of, of], of, &clusters, (&[0, 0, 0, 1], 2));
        assert!(
            matches!(found, Err(Unfit::InsufficientData(_))),
            "{found:?}"
        );
    }
}
