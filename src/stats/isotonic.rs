//! Isotonic regression by pool-adjacent-violators, with weights, ties and bounds.
//!
//! Two readings of the same blocks: `peer-1` keeps a block's ends as knots and is linear between blocks
//! (scikit-learn's, on which `cje-eval` stands); `centroid-1` is linear between block centroids and constant
//! outside, then shifted so that the mean prediction is the mean label (CLOVER v1.1, section 2).

use crate::stats::sample::SampleError;
use crate::stats::sample::Values;
use crate::stats::sample::Weights;

/// Values of x closer than this to the first of their run are one point.
const SAME_X: f64 = 1e-15;

/// Whether the fit may not fall or may not rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Nondecreasing in x.
    Increasing,
    /// Nonincreasing in x.
    Decreasing,
}

/// Bounds that the fit is clipped to after pooling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Lower bound, if any.
    pub low: Option<f64>,
    /// Upper bound, if any.
    pub high: Option<f64>,
}

impl Bounds {
    /// Probabilities and scores: 0 to 1.
    pub const UNIT: Self = Self {
        low: Some(0.0),
        high: Some(1.0),
    };

    fn clip(self, y: f64) -> f64 {
        let y = self.low.map_or(y, |low| y.max(low));
        self.high.map_or(y, |high| y.min(high))
    }
}

/// A monotone function: linear between knots, constant outside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Curve {
    /// A curve from knots that were kept elsewhere: x strictly increasing, as many y.
    ///
    /// # Errors
    /// [`SampleError`] without knots, for knots that are not finite, or for x out of order.
    pub fn from_knots(x: Vec<f64>, y: Vec<f64>) -> Result<Self, SampleError> {
        Values::new("knots x", &x)?;
        Values::aligned("knots y", &y, x.len())?;
        if x.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(SampleError::Parameter {
                name: "knots x",
                expected: "strictly increasing values",
            });
        }
        Ok(Self { x, y })
    }

    /// Knots, x strictly increasing.
    pub fn knots(&self) -> (&[f64], &[f64]) {
        (&self.x, &self.y)
    }

    /// The value at x, which must not be NaN.
    pub fn at(&self, x: f64) -> f64 {
        let above = self.x.partition_point(|&knot| knot < x);
        let last = self.x.len() - 1;
        if above > last {
            return self.y[last];
        }
        if above == 0 || self.x[above] <= x {
            return self.y[above];
        }
        let (left, right) = (self.x[above - 1], self.x[above]);
        let slope = (self.y[above] - self.y[above - 1]) / (right - left);
        slope * (x - left) + self.y[above - 1]
    }

    /// Least and largest value.
    pub fn range(&self) -> (f64, f64) {
        let (first, last) = (self.y[0], self.y[self.y.len() - 1]);
        (first.min(last), first.max(last))
    }

    /// The curve raised by a constant.
    fn shifted(mut self, by: f64) -> Self {
        for y in &mut self.y {
            *y += by;
        }
        self
    }
}

/// Everything that isotonic regression needs to know of the rows at one x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Where they stand.
    pub(crate) x: f64,
    /// Their weight.
    pub(crate) weight: f64,
    /// The sum of weight times y.
    pub(crate) total: f64,
}

/// A run of points with one fitted value.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: usize,
    last: usize,
    weight: f64,
    total: f64,
    mean: f64,
}

/// Merges points closer than [`SAME_X`] to the first of their run. Points must be in order of x.
fn merged(points: &[Point]) -> Vec<Point> {
    let mut distinct: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        match distinct.last_mut() {
            Some(last) if point.x - last.x < SAME_X => {
                last.weight += point.weight;
                last.total += point.total;
            }
            _ => distinct.push(*point),
        }
    }
    distinct
}

/// Pools adjacent violators; equal neighbours pool too.
fn pool(points: &[Point]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::with_capacity(points.len());
    for (at, point) in points.iter().enumerate() {
        let mut block = Block {
            first: at,
            last: at,
            weight: point.weight,
            total: point.total,
            mean: point.total / point.weight,
        };
        while let Some(previous) = blocks.last() {
            if previous.mean < block.mean {
                break;
            }
            block.first = previous.first;
            block.weight += previous.weight;
            block.total += previous.total;
            block.mean = block.total / block.weight;
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks
}

/// `peer-1`: a knot at each end of each block of distinct clipped value. Points in order of x, with some weight.
pub(crate) fn curve(points: &[Point], bounds: Bounds) -> Curve {
    let points = merged(points);
    let blocks = pool(&points);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut open: Option<(f64, f64, f64)> = None;
    let mut close = |run: (f64, f64, f64)| {
        let (from, to, value) = run;
        x.push(from);
        y.push(value);
        if to > from {
            x.push(to);
            y.push(value);
        }
    };
    for block in &blocks {
        let (from, to) = (points[block.first].x, points[block.last].x);
        let value = bounds.clip(block.mean);
        open = match open {
            // Blocks that a bound made equal are one run.
            Some((start, _, same)) if same >= value => Some((start, to, same)),
            Some(run) => {
                close(run);
                Some((from, to, value))
            }
            None => Some((from, to, value)),
        };
    }
    if let Some(run) = open {
        close(run);
    }
    Curve { x, y }
}

/// `centroid-1`: knots at block centroids, shifted so that the weighted mean prediction over the points is the
/// weighted mean label. Predictions are to be clipped to the scale afterwards. Points in order of x.
pub(crate) fn centroid_curve(points: &[Point]) -> Curve {
    let points = merged(points);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for block in pool(&points) {
        let within = &points[block.first..=block.last];
        let moment: f64 = within.iter().map(|point| point.weight * point.x).sum();
        x.push(moment / block.weight);
        y.push(block.mean);
    }
    let curve = Curve { x, y };
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    let labels: f64 = points.iter().map(|point| point.total).sum();
    let predicted: f64 = points
        .iter()
        .map(|point| point.weight * curve.at(point.x))
        .sum();
    curve.shifted((labels - predicted) / weight)
}

/// Weighted isotonic regression of y on x: the monotone function that minimises `sum w (y - f(x))^2`, clipped to
/// `bounds`, linear between its blocks and constant outside the data.
///
/// Rows of weight 0 are dropped; rows closer in x than 1e-15 are merged; the result does not depend on the order of
/// the rows. O(n log n). Source: scikit-learn 1.9 `IsotonicRegression(out_of_bounds="clip")`, as `cje-eval` 0.9.3 uses it.
///
/// # Errors
/// [`SampleError`] for columns that are not finite, aligned and non-empty, or without weight.
pub fn fit(
    x: Values<'_>,
    y: Values<'_>,
    weights: Option<Weights<'_>>,
    bounds: Bounds,
    direction: Direction,
) -> Result<Curve, SampleError> {
    let y = Values::aligned("y", y.as_slice(), x.len())?;
    if let Some(weights) = weights {
        Weights::new("weights", weights.as_slice(), x.len())?;
    }
    let sign = match direction {
        Direction::Increasing => 1.0,
        Direction::Decreasing => -1.0,
    };
    let bounds = match direction {
        Direction::Increasing => bounds,
        Direction::Decreasing => Bounds {
            low: bounds.high.map(|high| -high),
            high: bounds.low.map(|low| -low),
        },
    };
    let points = sorted(x.as_slice(), y.as_slice(), weights, sign);
    let mut curve = curve(&points, bounds);
    if direction == Direction::Decreasing {
        for y in &mut curve.y {
            *y = -*y;
        }
    }
    Ok(curve)
}

/// Rows in order of (x, y, weight), those at one x summed.
fn sorted(x: &[f64], y: &[f64], weights: Option<Weights<'_>>, sign: f64) -> Vec<Point> {
    let mut rows: Vec<(f64, f64, f64)> = match weights {
        None => x.iter().zip(y).map(|(&x, &y)| (x, sign * y, 1.0)).collect(),
        Some(weights) => x
            .iter()
            .zip(y)
            .zip(weights.as_slice())
            .filter(|(_, weight)| **weight > 0.0)
            .map(|((&x, &y), &weight)| (x, sign * y, weight))
            .collect(),
    };
    rows.sort_unstable_by(|a, b| {
        let order = a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
        order.then(a.2.total_cmp(&b.2))
    });
    let mut points: Vec<Point> = Vec::with_capacity(rows.len());
    for (x, y, weight) in rows {
        match points.last_mut() {
            Some(last) if last.x >= x => {
                last.weight += weight;
                last.total += weight * y;
            }
            _ => points.push(Point {
                x,
                weight,
                total: weight * y,
            }),
        }
    }
    points
}
