//! Classes of errors, and what may be told of them: rounded aggregates, without small cells.

use clover_num::math;

use super::rows::ScoredRows;
use crate::quantile;

/// Most rows of a class.
pub const CLASS_ROWS_MAX: usize = 8;
/// Cells with fewer rows are suppressed.
pub const CELL_MIN: usize = 5;
/// Least size of an error of classes A and B; errors below it are neither too high nor too low.
const ERROR_MIN: f64 = 0.15;
/// Fifths of the human scale.
const FIFTHS: usize = 5;

/// Readable rows by class, by their place among readable rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorClasses {
    /// A: judged too high, the largest errors first.
    pub over: Vec<usize>,
    /// B: judged too low, the largest errors first.
    pub under: Vec<usize>,
    /// C: judged right, the smallest errors first.
    pub aligned: Vec<usize>,
}

impl ErrorClasses {
    /// Of a batch. An error r is one of A or B from `max(0.15, Q.8 of |r|, 2 sqrt(v / R))` on, with the scores of its row
    /// for R; a class has at most `min(8, rows / 3)` rows. Equal errors go in the order of rows.
    pub fn of(rows: &ScoredRows) -> Self {
        let residuals = rows.residuals();
        let sizes: Vec<f64> = residuals.iter().map(|of| of.abs()).collect();
        let edge = quantile::type_7(&quantile::ascending(&sizes), 0.8);
        let most = CLASS_ROWS_MAX.min(rows.len() / 3);
        let large = |row: &usize| {
            let of = rows.scores[*row];
            let noise = 2.0 * (of.variance / f64::from(of.count)).sqrt();
            sizes[*row] >= ERROR_MIN.max(edge).max(noise)
        };
        let ordered = |keep: &dyn Fn(&usize) -> bool, key: &dyn Fn(usize) -> f64| {
            let mut found: Vec<usize> = (0..rows.len()).filter(keep).collect();
            found.sort_by(|a, b| key(*a).total_cmp(&key(*b)));
            found.truncate(most);
            found
        };
        Self {
            over: ordered(&|row| residuals[*row] > 0.0 && large(row), &|row| {
                -sizes[row]
            }),
            under: ordered(&|row| residuals[*row] < 0.0 && large(row), &|row| {
                -sizes[row]
            }),
            aligned: ordered(&|_| true, &|row| sizes[row]),
        }
    }
}

/// What may be told of a class, in hundredths; `None` where it has fewer than five rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateClass {
    /// Rows.
    pub count: u32,
    /// Mean error.
    pub mean_r: i32,
    /// Standard deviation of errors (n - 1).
    pub sd_r: i32,
    /// Quantiles 0, 1/4, 1/2, 3/4 and 1 of errors (type 7).
    pub quantiles: [i32; 5],
    /// Mean variance of repeats.
    pub selfvar: i32,
}

/// What may be told of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregates {
    /// Classes A, B and C.
    pub classes: [Option<AggregateClass>; 3],
    /// Rows by fifth of the human scale, each by whether the judge was too high, too low or neither (within 0.15); `None`
    /// below five.
    pub table: [[Option<u32>; 3]; FIFTHS],
}

/// A number in hundredths, half away from zero.
pub(crate) fn hundredths(value: f64) -> i32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a float keeps within the range"
    )]
    let rounded = (value * 100.0).round() as i32;
    rounded
}

fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn class_of(rows: &ScoredRows, residuals: &[f64], of: &[usize]) -> Option<AggregateClass> {
    if of.len() < CELL_MIN {
        return None;
    }
    let errors: Vec<f64> = of.iter().map(|row| residuals[*row]).collect();
    let mean = math::mean(&errors);
    let squares: Vec<f64> = errors
        .iter()
        .map(|error| (error - mean) * (error - mean))
        .collect();
    let variances: Vec<f64> = of.iter().map(|row| rows.scores[*row].variance).collect();
    let sorted = quantile::ascending(&errors);
    let quantile = |p| hundredths(quantile::type_7(&sorted, p));
    Some(AggregateClass {
        count: count(errors.len()),
        mean_r: hundredths(mean),
        sd_r: hundredths((math::sum(&squares) / (errors.len() as f64 - 1.0)).sqrt()),
        quantiles: [0.0, 0.25, 0.5, 0.75, 1.0].map(quantile),
        selfvar: hundredths(math::mean(&variances)),
    })
}

impl Aggregates {
    /// Of a batch and its classes.
    pub fn of(rows: &ScoredRows, classes: &ErrorClasses) -> Self {
        let residuals = rows.residuals();
        let mut counts = [[0_usize; 3]; FIFTHS];
        for (residual, target) in residuals.iter().zip(&rows.targets) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a target lies in [0, 1]"
            )]
            let fifth = ((target * FIFTHS as f64) as usize).min(FIFTHS - 1);
            let side = match residual {
                r if *r >= ERROR_MIN => 0,
                r if *r <= -ERROR_MIN => 1,
                _ => 2,
            };
            counts[fifth][side] += 1;
        }
        let lists = [&classes.over, &classes.under, &classes.aligned];
        Self {
            classes: lists.map(|of| class_of(rows, &residuals, of)),
            table: counts.map(|row| row.map(|cell| (cell >= CELL_MIN).then(|| count(cell)))),
        }
    }

    /// A number as it may be told, in hundredths, half away from zero.
    pub fn rounded(value: f64) -> i32 {
        hundredths(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(f64, f64)]) -> ScoredRows {
        let targets: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let scores: Vec<[f64; 1]> = pairs.iter().map(|pair| [pair.0]).collect();
        ScoredRows::new(&targets, scores.iter().map(<[f64; 1]>::as_slice), 1).unwrap()
    }

    #[test]
    fn classes_are_the_largest_and_smallest_errors() {
        let mut pairs: Vec<(f64, f64)> = (0..30)
            .map(|at| (0.5, 0.5 - 0.001 * f64::from(at)))
            .collect();
        pairs.extend([(0.9, 0.1), (0.8, 0.1), (0.1, 0.9)]);
        let rows = rows(&pairs);
        let classes = ErrorClasses::of(&rows);
        assert_eq!(
            (classes.over.as_slice(), classes.under.as_slice()),
            ([30, 31].as_slice(), [32].as_slice())
        );
        assert_eq!(classes.aligned, [0, 1, 2, 3, 4, 5, 6, 7]);
        let told = Aggregates::of(&rows, &classes);
        // Fewer than five rows are not told of.
        assert_eq!((told.classes[0], told.classes[1]), (None, None));
        assert_eq!(told.classes[2].map(|of| of.count), Some(8));
        assert_eq!(told.table[2], [None, None, Some(30)]);
        assert_eq!(told.table[0], [None, None, None]);
    }

    #[test]
    fn noise_is_no_error() {
        // The one large error has repeats that differ as much.
        let targets = [0.5; 9];
        let mut scores = vec![vec![0.5, 0.5]; 8];
        scores.push(vec![1.0, 0.4]);
        let rows = ScoredRows::new(&targets, scores.iter().map(Vec::as_slice), 2).unwrap();
        assert_eq!(ErrorClasses::of(&rows).over, Vec::<usize>::new());
    }
}
