//! Isotonic regression by pool-adjacent-violators, with weights, ties and bounds.
//!
//! Two readings of the same blocks: `peer-1` keeps a block's ends as knots and is linear between blocks
//! (scikit-learn's, on which `cje-eval` stands); `centroid-1` is linear between block centroids and constant
//! outside, then shifted so that the mean prediction is the mean label (CLOVER v1.1, section 2).

use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;

/// Values of x closer than this to the first of their run are one point.
const SAME_X: f64 = 1e-15;

/// Whether the fit may not fall or may not rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monotonicity {
    /// Nondecreasing in x.
    Increasing,
    /// Nonincreasing in x.
    Decreasing,
}

/// Bounds that the fit is clipped to after pooling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClipBounds {
    /// Lower bound, if any.
    pub low: Option<f64>,
    /// Upper bound, if any.
    pub high: Option<f64>,
}

impl ClipBounds {
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
    /// Index of its first point; it ends where the next block begins.
    first: usize,
    /// Where its first and its last point stand.
    from: f64,
    to: f64,
    weight: f64,
    total: f64,
    mean: f64,
}

/// Adds each point to the first of its run while `same` says that it belongs to it.
fn joined(
    mut points: impl Iterator<Item = Point>,
    same: impl Fn(&Point, &Point) -> bool,
) -> impl Iterator<Item = Point> {
    let mut open = points.next();
    std::iter::from_fn(move || {
        let mut run = open.take()?;
        for point in points.by_ref() {
            if !same(&run, &point) {
                open = Some(point);
                break;
            }
            run.weight += point.weight;
            run.total += point.total;
        }
        Some(run)
    })
}

/// Merges points closer than [`SAME_X`] to the first of their run. Points must be in order of x.
fn merged(points: impl Iterator<Item = Point>) -> impl Iterator<Item = Point> {
    joined(points, |first, point| point.x - first.x < SAME_X)
}

/// Pools adjacent violators; equal neighbours pool too.
fn pool(points: impl Iterator<Item = Point>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (at, point) in points.enumerate() {
        let mut block = Block {
            first: at,
            from: point.x,
            to: point.x,
            weight: point.weight,
            total: point.total,
            mean: point.total / point.weight,
        };
        while let Some(previous) = blocks.last() {
            if previous.mean < block.mean {
                break;
            }
            block.first = previous.first;
            block.from = previous.from;
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
pub(crate) fn curve(points: &[Point], bounds: ClipBounds) -> Curve {
    through(points.iter().copied(), bounds)
}

/// As [`curve`], of points as they come.
fn through(points: impl Iterator<Item = Point>, bounds: ClipBounds) -> Curve {
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
    for block in pool(merged(points)) {
        let (from, to) = (block.from, block.to);
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
    let points: Vec<Point> = merged(points.iter().copied()).collect();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let blocks = pool(points.iter().copied());
    let ends = blocks.iter().skip(1).map(|block| block.first);
    for (block, end) in blocks.iter().zip(ends.chain([points.len()])) {
        let within = &points[block.first..end];
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
    bounds: ClipBounds,
    direction: Monotonicity,
) -> Result<Curve, SampleError> {
    let y = Values::aligned("y", y.as_slice(), x.len())?;
    if let Some(weights) = weights {
        Weights::new("weights", weights.as_slice(), x.len())?;
    }
    let sign = match direction {
        Monotonicity::Increasing => 1.0,
        Monotonicity::Decreasing => -1.0,
    };
    let bounds = match direction {
        Monotonicity::Increasing => bounds,
        Monotonicity::Decreasing => ClipBounds {
            low: bounds.high.map(|high| -high),
            high: bounds.low.map(|low| -low),
        },
    };
    let mut curve = fitted(x.as_slice(), y.as_slice(), weights, sign, bounds);
    if direction == Monotonicity::Decreasing {
        for y in &mut curve.y {
            *y = -*y;
        }
    }
    Ok(curve)
}

/// The curve through rows in order of (x, y, weight), those at one x summed.
fn fitted(
    x: &[f64],
    y: &[f64],
    weights: Option<Weights<'_>>,
    sign: f64,
    bounds: ClipBounds,
) -> Curve {
    let xy = x.iter().zip(y).map(|(&x, &y)| (ordered(x), sign * y));
    match weights {
        None => {
            let mut rows: Vec<(u64, f64)> = xy.collect();
            through(summed(&mut rows, |row| (row.0, row.1, 1.0)), bounds)
        }
        Some(weights) => {
            let mut rows: Vec<(u64, f64, f64)> = xy
                .zip(weights.as_slice())
                .filter(|(_, weight)| **weight > 0.0)
                .map(|((x, y), &weight)| (x, y, weight))
                .collect();
            through(summed(&mut rows, |row| *row), bounds)
        }
    }
}

/// A key whose order as an integer is that of `f64::total_cmp`.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The number of a key.
fn number(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 {
        key & !(1 << 63)
    } else {
        !key
    })
}

/// Sorts rows by key and sums those at one x; within a key in order of (y, weight), so that the order in which rows
/// came leaves no trace.
fn summed<R: Copy>(
    rows: &mut [R],
    parts: impl Fn(&R) -> (u64, f64, f64),
) -> impl Iterator<Item = Point> {
    rows.sort_unstable_by_key(|row| parts(row).0);
    for run in rows.chunk_by_mut(|a, b| parts(a).0 == parts(b).0) {
        if run.len() > 1 {
            run.sort_unstable_by(|a, b| {
                let ((_, y, w), (_, other, v)) = (parts(a), parts(b));
                y.total_cmp(&other).then(w.total_cmp(&v))
            });
        }
    }
    let points = rows.iter().map(move |row| {
        let (key, y, weight) = parts(row);
        Point {
            x: number(key),
            weight,
            total: weight * y,
        }
    });
    // Zeros of either sign are one x.
    joined(points, |first, point| first.x >= point.x)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// x, y, weight.
    type Rows = Vec<(f64, f64, f64)>;

    /// Up to twelve rows on a grid that ties often; a weight may be 0, not all are.
    fn rows() -> impl Strategy<Value = Rows> {
        let row = (0..8_u32, -20..=20_i32, 0..5_u32)
            .prop_map(|(x, y, w)| (f64::from(x) / 8.0, f64::from(y) / 7.0, f64::from(w) / 2.0));
        let weighty = |rows: &Rows| rows.iter().any(|row| row.2 > 0.0);
        proptest::collection::vec(row, 1..13).prop_filter("some weight", weighty)
    }

    fn fitted(rows: &[(f64, f64, f64)], bounds: ClipBounds, direction: Monotonicity) -> Curve {
        let x: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let y: Vec<f64> = rows.iter().map(|row| row.1).collect();
        let w: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let weights = Weights::new("w", &w, rows.len()).unwrap();
        let (x, y) = (Values::new("x", &x).unwrap(), Values::new("y", &y).unwrap());
        fit(x, y, Some(weights), bounds, direction).unwrap()
    }

    fn rising(rows: &[(f64, f64, f64)]) -> Curve {
        fitted(rows, ClipBounds::default(), Monotonicity::Increasing)
    }

    fn bits(curve: &Curve) -> (Vec<u64>, Vec<u64>) {
        let (x, y) = curve.knots();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
        (bits(x), bits(y))
    }

    /// Distinct x in order with weight and mean y, put together in another way than the code under test.
    fn grouped(rows: &[(f64, f64, f64)]) -> Rows {
        let mut x: Vec<f64> = rows
            .iter()
            .filter(|row| row.2 > 0.0)
            .map(|row| row.0)
            .collect();
        x.sort_by(f64::total_cmp);
        x.dedup();
        x.into_iter()
            .map(|x| {
                let at = || rows.iter().filter(|row| row.0.to_bits() == x.to_bits());
                let weight: f64 = at().map(|row| row.2).sum();
                (
                    x,
                    at().map(|row| row.1 * row.2).sum::<f64>() / weight,
                    weight,
                )
            })
            .collect()
    }

    /// min sum w (f - y)^2 / 2 subject to f rising, by Hildreth's coordinate ascent on the dual.
    fn quadratic_programme(groups: &[(f64, f64, f64)]) -> Vec<f64> {
        let mut f: Vec<f64> = groups.iter().map(|group| group.1).collect();
        let mut dual = vec![0.0; groups.len()];
        for _ in 0..20_000 {
            let mut moved = 0.0_f64;
            for i in 1..f.len() {
                let (below, above) = (1.0 / groups[i - 1].2, 1.0 / groups[i].2);
                let step = ((f[i - 1] - f[i]) / (below + above)).max(-dual[i]);
                dual[i] += step;
                f[i - 1] -= step * below;
                f[i] += step * above;
                moved = moved.max(step.abs());
            }
            if moved < 1e-14 {
                break;
            }
        }
        f
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn it_is_the_solution_of_the_quadratic_programme(rows in rows()) {
            let curve = rising(&rows);
            let groups = grouped(&rows);
            for (group, best) in groups.iter().zip(quadratic_programme(&groups)) {
                let gap = (curve.at(group.0) - best).abs();
                prop_assert!(gap < 1e-9, "{} at {}: {gap}", best, group.0);
            }
        }

        /// Stationarity, dual feasibility, complementary slackness: together they are optimality.
        #[test]
        fn it_meets_the_conditions_of_optimality(rows in rows()) {
            let curve = rising(&rows);
            let groups = grouped(&rows);
            let mut dual = 0.0;
            for (at, &(x, y, weight)) in groups.iter().enumerate() {
                let here = curve.at(x);
                dual += weight * (y - here);
                let Some(next) = groups.get(at + 1).map(|next| curve.at(next.0)) else {
                    break;
                };
                prop_assert!(next >= here);
                prop_assert!(dual > -1e-12, "{dual}");
                prop_assert!(next <= here || dual < 1e-12, "{dual} where it rises");
            }
            prop_assert!(dual.abs() < 1e-12, "{dual}");
        }

        /// The max-min formula of Barlow and others (1972), which pools nothing.
        #[test]
        fn it_is_the_greatest_least_mean(rows in rows()) {
            let curve = rising(&rows);
            let groups = grouped(&rows);
            let mean = |part: &[(f64, f64, f64)]| {
                let weight: f64 = part.iter().map(|group| group.2).sum();
                part.iter().map(|group| group.1 * group.2).sum::<f64>() / weight
            };
            for at in 0..groups.len() {
                let least = |from: usize| {
                    (at..groups.len())
                        .map(|to| mean(&groups[from..=to]))
                        .fold(f64::INFINITY, f64::min)
                };
                let value = (0..=at).map(least).fold(f64::NEG_INFINITY, f64::max);
                prop_assert!((curve.at(groups[at].0) - value).abs() < 1e-12);
            }
        }

        #[test]
        fn the_mean_is_kept_and_a_second_fit_changes_nothing(rows in rows()) {
            let curve = rising(&rows);
            let mean = |value: &dyn Fn(&(f64, f64, f64)) -> f64| {
                rows.iter().map(|row| row.2 * value(row)).sum::<f64>()
            };
            let gap = (mean(&|row| row.1) - mean(&|row| curve.at(row.0))).abs();
            prop_assert!(gap < 1e-12, "{gap}");
            let again: Rows = rows.iter().map(|row| (row.0, curve.at(row.0), row.2)).collect();
            let again = rising(&again);
            for row in rows.iter().filter(|row| row.2 > 0.0) {
                prop_assert!((again.at(row.0) - curve.at(row.0)).abs() < 1e-14);
            }
        }

        #[test]
        fn the_order_of_rows_does_not_matter(
            (rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        ) {
            prop_assert_eq!(bits(&rising(&rows)), bits(&rising(&shuffled)));
        }

        #[test]
        fn rows_without_weight_are_not_there(rows in rows()) {
            let some: Rows = rows.iter().copied().filter(|row| row.2 > 0.0).collect();
            prop_assert_eq!(bits(&rising(&rows)), bits(&rising(&some)));
        }

        #[test]
        fn it_follows_affine_maps_of_y_and_increasing_maps_of_x(
            rows in rows(),
            scale in 0.01..50.0_f64,
            shift in -30.0..30.0_f64,
        ) {
            let curve = rising(&rows);
            let moved: Rows = rows.iter().map(|row| (row.0, scale * row.1 + shift, row.2)).collect();
            let moved = rising(&moved);
            for row in rows.iter().filter(|row| row.2 > 0.0) {
                let expected = scale * curve.at(row.0) + shift;
                prop_assert!((moved.at(row.0) - expected).abs() < 1e-12 * (1.0 + expected.abs() + scale));
            }
            // Cubes of eighths are exact: x moves and no y does.
            let map = |x: f64| (x + 1.0) * (x + 1.0) * (x + 1.0);
            let bent: Rows = rows.iter().map(|row| (map(row.0), row.1, row.2)).collect();
            let bent = rising(&bent);
            let x: Vec<u64> = curve.knots().0.iter().map(|&x| map(x).to_bits()).collect();
            prop_assert_eq!(bits(&bent), (x, bits(&curve).1));
        }

        #[test]
        fn a_falling_fit_is_a_rising_one_turned_over(rows in rows()) {
            let bounds = ClipBounds { low: Some(-1.0), high: Some(2.0) };
            let turned = ClipBounds { low: Some(-2.0), high: Some(1.0) };
            let falling = fitted(&rows, bounds, Monotonicity::Decreasing);
            let over: Rows = rows.iter().map(|row| (row.0, -row.1, row.2)).collect();
            let rising = fitted(&over, turned, Monotonicity::Increasing);
            for (f, r) in falling.knots().1.iter().zip(rising.knots().1) {
                prop_assert!((f + r).abs() < 1e-300);
            }
            let free = fitted(&rows, ClipBounds::default(), Monotonicity::Decreasing);
            for row in rows.iter().filter(|row| row.2 > 0.0) {
                prop_assert!((falling.at(row.0) - free.at(row.0).clamp(-1.0, 2.0)).abs() < 1e-15);
            }
        }

        #[test]
        fn centroids_keep_the_mean_and_are_flat_outside(rows in rows()) {
            let points: Vec<Point> = grouped(&rows)
                .into_iter()
                .map(|(x, y, weight)| Point { x, weight, total: weight * y })
                .collect();
            let curve = centroid_curve(&points);
            let labels: f64 = points.iter().map(|point| point.total).sum();
            let predicted: f64 = points.iter().map(|point| point.weight * curve.at(point.x)).sum();
            prop_assert!((labels - predicted).abs() < 1e-12);
            let (x, y) = curve.knots();
            prop_assert!(x.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(y.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(curve.at(x[0] - 5.0).to_bits(), y[0].to_bits());
            prop_assert_eq!(curve.at(x[x.len() - 1] + 5.0).to_bits(), y[y.len() - 1].to_bits());
            prop_assert!(x[0] >= points[0].x && x[x.len() - 1] <= points[points.len() - 1].x + 1e-15);
        }
    }

    #[test]
    fn centroids_by_hand() {
        let points = [(0.0, 0.2), (1.0, 0.8), (3.0, 0.5)].map(|(x, y)| Point {
            x,
            weight: 1.0,
            total: y,
        });
        let curve = centroid_curve(&points);
        // Blocks {0} of mean 0.2 and {1, 3} of mean 0.65 at centroid 2. Between (0, 0.2) and (2, 0.65) the line has
        // slope 0.225: predictions 0.2, 0.425, 0.65, mean 0.425. The mean label is 0.5: all rise by 0.075.
        for (x, y) in [
            (-9.0, 0.275),
            (0.0, 0.275),
            (1.0, 0.5),
            (2.0, 0.725),
            (3.0, 0.725),
            (9.0, 0.725),
        ] {
            assert!((curve.at(x) - y).abs() < 1e-15, "{x}: {}", curve.at(x));
        }
    }

    #[test]
    fn centroids_with_weights_by_hand() {
        let points =
            [(0.0, 1.0, 3.0), (2.0, 0.0, 1.0), (4.0, 2.0, 2.0)].map(|(x, y, weight)| Point {
                x,
                weight,
                total: weight * y,
            });
        let curve = centroid_curve(&points);
        // {0, 2}: mean 3/4, centroid 2/4 = 0.5; {4}: mean 2. Slope (2 - 0.75) / 3.5 = 5/14. Predictions 0.75, then
        // 0.75 + 1.5 x 5/14 = 9/7, then 2: total 2.25 + 9/7 + 4. Labels total 7: all move by (0.75 - 9/7) / 6 = -5/56.
        for (x, y) in [(0.0, 0.75), (0.5, 0.75), (2.0, 9.0 / 7.0), (4.0, 2.0)] {
            assert!(
                (curve.at(x) - (y - 5.0 / 56.0)).abs() < 1e-15,
                "{x}: {}",
                curve.at(x)
            );
        }
    }

    #[test]
    fn blocks_by_hand() {
        let rows = [
            (1.0, 1.0, 1.0),
            (2.0, 3.0, 1.0),
            (3.0, 2.0, 3.0),
            (4.0, 4.0, 1.0),
            (4.0, 2.0, 1.0),
        ];
        // 1; then 3 and 2 with weight 3 pool to 9/4; at x = 4 the mean is 3.
        let curve = rising(&rows);
        assert_eq!(
            curve.knots(),
            (&[1.0, 2.0, 3.0, 4.0][..], &[1.0, 2.25, 2.25, 3.0][..])
        );
        assert!((curve.at(1.5) - 1.625).abs() < 1e-15);
        let unit = fitted(
            &rows,
            ClipBounds {
                low: None,
                high: Some(2.5),
            },
            Monotonicity::Increasing,
        );
        assert!((unit.at(4.0) - 2.5).abs() < 1e-15);
    }
}
