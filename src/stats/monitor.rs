//! Control charts over a series of residuals or scores: the tabular cumulative sum and the exponentially weighted moving
//! average (Montgomery, Introduction to Statistical Quality Control, chapter 9).
//!
//! Both compare a series with the target and standard deviation of a state in control, which come from elsewhere:
//! a series that estimates its own target hides its drift. Rows are taken as independent in control; an autocorrelated
//! series signals too often.

use crate::sample::SampleError;
use crate::sample::Values;
use clover_num::math;

/// The state in control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InControl {
    target: f64,
    sd: f64,
}

impl InControl {
    /// Target value and standard deviation of a row, both in the units of the series.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a target that is not finite or a deviation not above 0.
    pub fn new(target: f64, sd: f64) -> Result<Self, SampleError> {
        parameter("target", target.is_finite(), "a finite number")?;
        parameter("sd", sd.is_finite() && sd > 0.0, "a finite number above 0")?;
        Ok(Self { target, sd })
    }

    /// Its level.
    pub fn target(&self) -> f64 {
        self.target
    }
}

fn parameter(name: &'static str, holds: bool, expected: &'static str) -> Result<(), SampleError> {
    if holds {
        return Ok(());
    }
    Err(SampleError::Parameter { name, expected })
}

/// On which side of the target a chart signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartSide {
    /// Above.
    Up,
    /// Below.
    Down,
}

/// The first row on which a chart signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The row, from 0.
    pub row: usize,
    /// Its side; up where both sides signal at once.
    pub side: ChartSide,
    /// Where the run that ended in the signal began: for a cumulative sum its first row above 0, the usual estimate of
    /// when the drift set in; for a moving average the signal itself.
    pub onset: usize,
}

/// A two-sided tabular cumulative sum (Page 1954; Montgomery 9.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cusum {
    state: InControl,
    allowance: f64,
    interval: f64,
}

/// The sums of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct CusumPath {
    /// `C+` by row, in the units of the series, at least 0.
    pub up: Vec<f64>,
    /// `C-` by row, likewise.
    pub down: Vec<f64>,
    /// The decision interval H in those units.
    pub limit: f64,
    /// The first row with a sum above H.
    pub signal: Option<Signal>,
}

impl Cusum {
    /// Allowance `k` >= 0 (half the shift to be found) and decision interval `h` > 0, both in standard deviations;
    /// k = 1/2 and h = 4 or 5 find a shift of one deviation, with about 168 or 465 rows between false alarms.
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn new(state: InControl, k: f64, h: f64) -> Result<Self, SampleError> {
        parameter(
            "k",
            k.is_finite() && k >= 0.0,
            "a finite number of at least 0",
        )?;
        parameter("h", h.is_finite() && h > 0.0, "a finite number above 0")?;
        Ok(Self {
            state,
            allowance: k * state.sd,
            interval: h * state.sd,
        })
    }

    /// `C+ = max(0, x - (target + K) + C+)`, `C- = max(0, (target - K) - x + C-)`, both from 0; a signal is a sum above
    /// H. The sums go on after a signal.
    pub fn follow(&self, series: Values<'_>) -> CusumPath {
        let mut path = CusumPath {
            up: Vec::with_capacity(series.len()),
            down: Vec::with_capacity(series.len()),
            limit: self.interval,
            signal: None,
        };
        let (mut up, mut down) = (0.0_f64, 0.0_f64);
        let (mut up_since, mut down_since) = (0, 0);
        for (row, x) in series.as_slice().iter().enumerate() {
            let away = x - self.state.target;
            up = (up + away - self.allowance).max(0.0);
            down = (down - away - self.allowance).max(0.0);
            if up <= 0.0 {
                up_since = row + 1;
            }
            if down <= 0.0 {
                down_since = row + 1;
            }
            if path.signal.is_none() && up > self.interval {
                path.signal = Some(Signal {
                    row,
                    side: ChartSide::Up,
                    onset: up_since,
                });
            } else if path.signal.is_none() && down > self.interval {
                path.signal = Some(Signal {
                    row,
                    side: ChartSide::Down,
                    onset: down_since,
                });
            }
            path.up.push(up);
            path.down.push(down);
        }
        path
    }
}

/// An exponentially weighted moving average (Roberts 1959; Montgomery 9.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ewma {
    state: InControl,
    lambda: f64,
    reach: f64,
}

/// The averages of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct EwmaPath {
    /// The average by row, in the units of the series.
    pub average: Vec<f64>,
    /// Distance of both limits from the target by row.
    pub half_width: Vec<f64>,
    /// The first row outside its limits.
    pub signal: Option<Signal>,
}

impl Ewma {
    /// Weight `lambda` in (0, 1] of the newest row and width `reach` > 0 of the limits in deviations of the average;
    /// lambda = 0.1 with 2.7, or 0.2 with 2.96, find a shift of one deviation, with about 500 rows between false alarms.
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn new(state: InControl, lambda: f64, reach: f64) -> Result<Self, SampleError> {
        parameter(
            "lambda",
            lambda > 0.0 && lambda <= 1.0,
            "a number above 0 and at most 1",
        )?;
        parameter(
            "reach",
            reach.is_finite() && reach > 0.0,
            "a finite number above 0",
        )?;
        Ok(Self {
            state,
            lambda,
            reach,
        })
    }

    /// `z = lambda x + (1 - lambda) z` from the target; the limits of row i (from 1) are target ±
    /// `reach sd sqrt(lambda / (2 - lambda) (1 - (1 - lambda)^(2 i)))`, exact for every row.
    pub fn follow(&self, series: Values<'_>) -> EwmaPath {
        let mut path = EwmaPath {
            average: Vec::with_capacity(series.len()),
            half_width: Vec::with_capacity(series.len()),
            signal: None,
        };
        let target = self.state.target;
        let limit = self.lambda / (2.0 - self.lambda);
        let mut away = 0.0;
        for (row, x) in series.as_slice().iter().enumerate() {
            away = self.lambda * (x - target) + (1.0 - self.lambda) * away;
            let old = math::pow(1.0 - self.lambda, 2.0 * (row as f64 + 1.0));
            let half_width = self.reach * self.state.sd * (limit * (1.0 - old)).sqrt();
            if path.signal.is_none() && away.abs() > half_width {
                let side = if away > 0.0 {
                    ChartSide::Up
                } else {
                    ChartSide::Down
                };
                path.signal = Some(Signal {
                    row,
                    side,
                    onset: row,
                });
            }
            path.average.push(target + away);
            path.half_width.push(half_width);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // source: Montgomery, Introduction to Statistical Quality Control, table 9.1: 20 rows of N(10, 1), 10 of N(11, 1).
    const SERIES: [f64; 30] = [
        9.45, 7.99, 9.29, 11.66, 12.16, 10.18, 8.04, 11.46, 9.20, 10.34, 9.03, 11.47, 10.51, 9.40,
        10.08, 9.37, 10.62, 10.31, 8.52, 10.84, 10.90, 9.33, 12.29, 11.50, 10.60, 11.08, 10.38,
        11.62, 11.31, 10.52,
    ];

    fn series(x: &[f64]) -> Values<'_> {
        Values::new("series", x).unwrap()
    }

    // source: Montgomery, table 9.2 (K = 0.5, H = 5), recomputed in exact fractions.
    const UP: [(usize, f64); 7] = [
        (0, 0.0),
        (3, 1.16),
        (4, 2.82),
        (5, 2.50),
        (22, 1.79),
        (28, 5.28),
        (29, 5.30),
    ];

    // source: as above.
    const DOWN: [(usize, f64); 4] = [(0, 0.05), (1, 1.56), (2, 1.77), (6, 1.46)];

    // source: Montgomery, example 9.2 (lambda = 0.1, L = 2.7), recomputed in exact fractions.
    const AVERAGE: [(usize, f64); 6] = [
        (0, 9.945),
        (1, 9.7495),
        (2, 9.703_55),
        (3, 9.899_195),
        (27, 10.573_137_171_751_513),
        (28, 10.646_823_454_576_362),
    ];

    // source: as above; the limits 9.73 and 10.27 of the first row, 9.38 and 10.62 in the long run.
    const HALF_WIDTH: [(usize, f64); 3] = [
        (0, 0.27),
        (1, 0.363_247_849_270_99),
        (29, 0.618_865_676_902_578),
    ];

    #[test]
    fn the_cumulative_sum_matches_the_textbook() {
        let state = InControl::new(10.0, 1.0).unwrap();
        let path = Cusum::new(state, 0.5, 5.0).unwrap().follow(series(&SERIES));
        for (row, want) in UP {
            assert!((path.up[row] - want).abs() < 1e-12, "{row}");
        }
        for (row, want) in DOWN {
            assert!((path.down[row] - want).abs() < 1e-12, "{row}");
        }
        let signal = path.signal.unwrap();
        assert_eq!((signal.row, signal.side), (28, ChartSide::Up));
        // Seven rows above 0 up to the signal: the shift is put after row 22 of the book.
        assert_eq!(signal.onset, 22);
    }

    #[test]
    fn the_moving_average_matches_the_textbook() {
        let state = InControl::new(10.0, 1.0).unwrap();
        let path = Ewma::new(state, 0.1, 2.7).unwrap().follow(series(&SERIES));
        for (row, want) in AVERAGE {
            assert!((path.average[row] - want).abs() < 1e-12, "{row}");
        }
        for (row, want) in HALF_WIDTH {
            assert!((path.half_width[row] - want).abs() < 1e-12, "{row}");
        }
        assert_eq!(path.signal.map(|signal| signal.row), Some(28));
    }

    #[test]
    fn parameters_outside_their_ranges_are_refused() {
        assert!(InControl::new(f64::NAN, 1.0).is_err());
        assert!(InControl::new(0.0, 0.0).is_err());
        let state = InControl::new(0.0, 1.0).unwrap();
        assert!(Cusum::new(state, -0.1, 5.0).is_err());
        assert!(Cusum::new(state, 0.5, 0.0).is_err());
        assert!(Ewma::new(state, 0.0, 2.7).is_err());
        assert!(Ewma::new(state, 1.1, 2.7).is_err());
        assert!(Ewma::new(state, 0.1, f64::INFINITY).is_err());
    }

    #[test]
    fn one_row_and_a_series_on_target_do_not_signal() {
        let state = InControl::new(0.3, 0.1).unwrap();
        let path = Cusum::new(state, 0.5, 4.0).unwrap().follow(series(&[0.3]));
        assert_eq!((path.up.len(), path.signal), (1, None));
        let flat = Ewma::new(state, 1.0, 3.0)
            .unwrap()
            .follow(series(&[0.3; 9]));
        assert_eq!(flat.signal, None);
    }

    proptest! {
        #[test]
        fn charts_mirror_and_scale(x in prop::collection::vec(-3.0..3.0_f64, 1..60), scale in 0.1..5.0_f64) {
            let state = InControl::new(0.0, 1.0).unwrap();
            let plain = Cusum::new(state, 0.5, 2.0).unwrap().follow(series(&x));
            let mirrored: Vec<f64> = x.iter().map(|x| -x).collect();
            let other = Cusum::new(state, 0.5, 2.0).unwrap().follow(series(&mirrored));
            prop_assert_eq!(&plain.up, &other.down);
            let scaled: Vec<f64> = x.iter().map(|x| scale * x + 1.0).collect();
            let state = InControl::new(1.0, scale).unwrap();
            let large = Cusum::new(state, 0.5, 2.0).unwrap().follow(series(&scaled));
            for (a, b) in plain.up.iter().zip(&large.up) {
                prop_assert!((scale * a - b).abs() < 1e-11);
            }
            let one = Ewma::new(InControl::new(0.0, 1.0).unwrap(), 1.0, 2.0).unwrap();
            // With lambda = 1 the chart is Shewhart's.
            let first = x.iter().position(|x| x.abs() > 2.0);
            prop_assert_eq!(one.follow(series(&x)).signal.map(|signal| signal.row), first);
        }
    }
}
