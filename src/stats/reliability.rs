//! Reliability of predictions of labels: calibration error by bins, the Brier split, reliability curves, calibration
//! lines, and drift of anchors.

use crate::crv1::SplitVariance;
use crate::inference::Interval;
use crate::quantile::Edges;
use crate::quantile::rows_by_bin;
use crate::sample::Clusters;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::Values;
use crate::sample::align;
use crate::sample::constant;
use crate::sample::differences;
use crate::sample::finite;
use crate::sample::open_unit;
use crate::sample::some_bins;
use crate::sample::unit;
use crate::student::Alternative;
use crate::student::MeanEstimate;
use crate::student::cluster_robust;
use clover_num::math;

/// A bin with rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Which bin, from 0.
    pub bin: usize,
    /// Rows in it, at least 1.
    pub rows: usize,
    /// Mean prediction.
    pub prediction: f64,
    /// Mean label.
    pub label: f64,
}

impl Bin {
    /// |mean prediction - mean label|.
    pub fn gap(&self) -> f64 {
        (self.prediction - self.label).abs()
    }
}

/// Calibration error over bins.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationError {
    /// Expected calibration error, the sum over bins of rows / n * gap.
    pub ece: f64,
    /// The largest gap.
    pub mce: f64,
    /// The bins with rows, ascending; report their number, for ties merge bins.
    pub bins: Vec<Bin>,
}

fn picked(values: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&row| values[row]).collect()
}

fn bin_means(predictions: &[f64], labels: &[f64], bin: usize, rows: &[usize]) -> Option<Bin> {
    (!rows.is_empty()).then(|| Bin {
        bin,
        rows: rows.len(),
        prediction: math::mean(&picked(predictions, rows)),
        label: math::mean(&picked(labels, rows)),
    })
}

/// Calibration error of predictions on given edges: the baseline's own, or others' on the baseline's for CLOVER's
/// difference of errors (CLOVER v1.1, gate P2).
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn calibration_error(
    edges: &Edges,
    predictions: Values<'_>,
    labels: Values<'_>,
) -> Result<CalibrationError, SampleError> {
    align("labels", labels.len(), predictions.len())?;
    let total = predictions.len() as f64;
    let rows = edges.rows(predictions);
    let (predictions, labels) = (predictions.as_slice(), labels.as_slice());
    let bins: Vec<Bin> = rows
        .iter()
        .enumerate()
        .filter_map(|(bin, rows)| bin_means(predictions, labels, bin, rows))
        .collect();
    let terms: Vec<f64> = bins
        .iter()
        .map(|bin| bin.rows as f64 / total * bin.gap())
        .collect();
    Ok(CalibrationError {
        ece: math::sum(&terms),
        mce: bins.iter().fold(0.0, |most, bin| bin.gap().max(most)),
        bins,
    })
}

/// Calibration error on bins of equal width over [0, 1], with Murphy's (1973) split of the Brier score.
///
/// With f the share of rows in a bin, bin means p of predictions and y of labels, and the mean label m: reliability = sum f (p - y)^2,
/// resolution = sum f (y - m)^2, uncertainty = m (1 - m). The Brier score is their sum, resolution subtracted, where
/// labels are 0 or 1 and predictions constant within bins.
#[derive(Clone, Debug, PartialEq)]
pub struct EqualWidth {
    /// Expected calibration error, sum of f |p - y|.
    pub ece: f64,
    /// The largest gap, where an empty bin predicts its midpoint and has the label 0, as in `cje-eval` 0.2.5.
    pub mce_with_empty: f64,
    /// Mean squared error.
    pub brier: f64,
    /// How far bins are from their labels; small is good.
    pub reliability: f64,
    /// How far bins differ in their labels; large is good.
    pub resolution: f64,
    /// What a forecast of the mean label would score, for labels 0 or 1.
    pub uncertainty: f64,
    /// The bins, `None` without rows.
    pub bins: Vec<Option<Bin>>,
}

impl EqualWidth {
    /// Midpoint of a bin.
    pub fn midpoint(&self, bin: usize) -> f64 {
        let edge = |at: usize| width_edge(at, self.bins.len());
        0.5 * (edge(bin) + edge(bin + 1))
    }
}

/// The peer's edges, `numpy.linspace(0, 1, bins + 1)`, to the last bit: predictions may lie on them.
fn width_edge(at: usize, bins: usize) -> f64 {
    if at == bins {
        return 1.0;
    }
    at as f64 * (1.0 / bins as f64)
}

/// Equal-width calibration error and Brier split of predictions and labels in [0, 1].
///
/// # Errors
/// [`SampleError::Misaligned`], [`SampleError::OutOfRange`], [`SampleError::Parameter`] for no bins.
pub fn equal_width(
    predictions: Values<'_>,
    labels: Values<'_>,
    bins: usize,
) -> Result<EqualWidth, SampleError> {
    some_bins(bins)?;
    let brier = mean_squared_error(predictions, labels)?;
    unit("predictions", predictions.as_slice())?;
    unit("labels", labels.as_slice())?;
    let total = predictions.len() as f64;
    let (predictions, labels) = (predictions.as_slice(), labels.as_slice());
    let inner: Vec<f64> = (1..bins).map(|at| width_edge(at, bins)).collect();
    let of_row = predictions
        .iter()
        .map(|prediction| inner.partition_point(|edge| edge <= prediction));
    let found: Vec<Option<Bin>> = rows_by_bin(bins, of_row)
        .iter()
        .enumerate()
        .map(|(bin, rows)| bin_means(predictions, labels, bin, rows))
        .collect();
    let base = math::mean(labels);
    let over = |term: &dyn Fn(&Bin) -> f64| {
        let terms: Vec<f64> = found
            .iter()
            .flatten()
            .map(|bin| bin.rows as f64 / total * term(bin))
            .collect();
        math::sum(&terms)
    };
    let mut split = EqualWidth {
        ece: over(&Bin::gap),
        mce_with_empty: 0.0,
        brier,
        reliability: over(&|bin| bin.gap() * bin.gap()),
        resolution: over(&|bin| (bin.label - base) * (bin.label - base)),
        uncertainty: base * (1.0 - base),
        bins: Vec::new(),
    };
    split.bins = found;
    split.mce_with_empty = (0..bins).fold(0.0, |most: f64, at| {
        let gap = split.bins[at].map_or_else(|| split.midpoint(at), |bin| bin.gap());
        most.max(gap)
    });
    Ok(split)
}

/// Mean of (prediction - label)^2.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn mean_squared_error(predictions: Values<'_>, labels: Values<'_>) -> Result<f64, SampleError> {
    align("labels", labels.len(), predictions.len())?;
    let squares: Vec<f64> = predictions
        .as_slice()
        .iter()
        .zip(labels.as_slice())
        .map(|(prediction, label)| (prediction - label) * (prediction - label))
        .collect();
    Ok(math::mean(&squares))
}

/// Root of [`mean_squared_error`], in the units of the labels.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn root_mean_squared_error(
    predictions: Values<'_>,
    labels: Values<'_>,
) -> Result<f64, SampleError> {
    Ok(mean_squared_error(predictions, labels)?.sqrt())
}

/// A point of a reliability curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The bin and its means.
    pub bin: Bin,
    /// Cluster-robust t interval of the mean label, not clipped to the scale; `None` with one cluster or labels that do
    /// not vary, which say nothing of their error.
    pub interval: Option<Interval>,
}

/// Mean label against mean prediction by bins, with an interval of confidence `level` in (0, 1) each.
///
/// # Errors
/// [`SampleError::Misaligned`], [`SampleError::Parameter`].
pub fn reliability_curve(
    edges: &Edges,
    predictions: Values<'_>,
    labels: Values<'_>,
    clusters: &Clusters,
    level: f64,
) -> Result<Vec<CurvePoint>, SampleError> {
    align("labels", labels.len(), predictions.len())?;
    align("clusters", clusters.of_row().len(), predictions.len())?;
    open_unit("level", level)?;
    let members = edges.rows(predictions);
    let (predictions, labels) = (predictions.as_slice(), labels.as_slice());
    let mut points = Vec::new();
    for (at, rows) in members.iter().enumerate() {
        let Some(bin) = bin_means(predictions, labels, at, rows) else {
            continue;
        };
        let labels = picked(labels, rows);
        let estimate = cluster_robust(
            Values::new("labels", &labels)?,
            &clusters.select(rows)?,
            None,
        );
        let interval = match estimate {
            Ok(estimate) if estimate.variance > 0.0 => {
                Some(estimate.interval(level, Alternative::TwoSided)?)
            }
            Ok(_) | Err(Unfit::InsufficientData(_)) => None,
            Err(Unfit::Invalid(error)) => return Err(error),
        };
        points.push(CurvePoint { bin, interval });
    }
    Ok(points)
}

/// The least-squares line of labels on predictions: slope 1 and intercept 0 for perfect calibration.
///
/// Both estimates are [`MeanEstimate`]s, to be tested against those values and given intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationLine {
    /// Below 1 where predictions are too extreme.
    pub slope: MeanEstimate,
    /// Label at a prediction of 0.
    pub intercept: MeanEstimate,
}

/// Fits the calibration line with cluster-robust (CRV1) variances: C / (C - 1) * (n - 1) / (n - 2) times the sum over
/// clusters of squared influence totals, on C - 1 degrees of freedom (`statsmodels` `cov_type="cluster"`).
///
/// `None` where all predictions are equal.
///
/// # Errors
/// [`SampleError::Misaligned`], [`SampleError::Parameter`] where squares overflow; [`InsufficientData`] below three rows or two
/// clusters.
pub fn calibration_line(
    predictions: Values<'_>,
    labels: Values<'_>,
    clusters: &Clusters,
) -> Result<Option<CalibrationLine>, Unfit> {
    let rows = predictions.len();
    align("labels", labels.len(), rows)?;
    align("clusters", clusters.of_row().len(), rows)?;
    InsufficientData::unless("rows", rows, 3)?;
    let clusters = clusters.present()?;
    let units = clusters.count();
    InsufficientData::unless("clusters", units, 2)?;
    let (x, y) = (predictions.as_slice(), labels.as_slice());
    if constant(x) {
        return Ok(None);
    }
    let (mean_x, mean_y) = (math::mean(x), math::mean(y));
    let away: Vec<f64> = x.iter().map(|x| x - mean_x).collect();
    let above: Vec<f64> = y.iter().map(|y| y - mean_y).collect();
    let spread = math::dot(&away, &away);
    let slope = math::dot(&away, &above) / spread;
    let residual = |row: usize| above[row] - slope * away[row];
    let of_slope = |row: usize| away[row] * residual(row) / spread;
    let of_intercept = |row: usize| residual(row) / rows as f64 - mean_x * of_slope(row);
    let inflation = (rows as f64 - 1.0) / (rows as f64 - 2.0);
    let estimate = |value: f64, influence: &dyn Fn(usize) -> f64| {
        let influences: Vec<f64> = (0..rows).map(influence).collect();
        let totals = clusters.totals(&influences).into_iter();
        let totals: Vec<(f64, bool)> = totals.map(|total| (total, false)).collect();
        let variance = SplitVariance::of_totals(&totals, 1.0).map_or(0.0, |split| split.total());
        Ok::<_, SampleError>(MeanEstimate {
            mean: finite(value)?,
            variance: finite(inflation * variance)?,
            df: units as f64 - 1.0,
            units,
        })
    };
    Ok(Some(CalibrationLine {
        slope: estimate(slope, &of_slope)?,
        intercept: estimate(mean_y - slope * mean_x, &of_intercept)?,
    }))
}

/// Drift of a frozen set of anchor rows, |mean(after - before)| (CLOVER v1.1, section 4).
///
/// # Errors
/// [`SampleError::Misaligned`], or [`SampleError::NotFinite`] where a difference overflows.
pub fn anchor_drift(before: Values<'_>, after: Values<'_>) -> Result<f64, SampleError> {
    let moves = differences(after, before)?;
    Ok(math::mean(Values::new("differences", &moves)?.as_slice()).abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(x: &[f64]) -> Values<'_> {
        Values::new("x", x).unwrap()
    }

    #[test]
    fn the_brier_split_adds_up_for_constant_bins() {
        let predictions = [0.1, 0.1, 0.3, 0.3, 0.3, 1.0, 0.55, 0.55];
        let labels = [0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0];
        let split = equal_width(values(&predictions), values(&labels), 10).unwrap();
        let sum = split.reliability - split.resolution + split.uncertainty;
        assert!((split.brier - sum).abs() < 1e-15);
        assert!(split.bins[9].is_some_and(|bin| bin.rows == 1));
        assert!(equal_width(values(&[1.5]), values(&[1.0]), 10).is_err());
        assert!(equal_width(values(&[0.5]), values(&[-1.0]), 10).is_err());
    }

    #[test]
    fn a_line_is_undefined_on_equal_predictions_and_thin_on_one_cluster() {
        let labels = [0.0, 1.0, 1.0];
        let each = Clusters::singletons(3).unwrap();
        let flat = calibration_line(values(&[0.4; 3]), values(&labels), &each).unwrap();
        assert!(flat.is_none());
        let one = Clusters::of([1, 1, 1]).unwrap();
        let x = [0.1, 0.2, 0.4];
        assert!(calibration_line(values(&x), values(&labels), &one).is_err());
    }

    #[test]
    fn the_line_matches_the_peer() {
        // source: statsmodels 0.15.0, OLS(y, add_constant(x)).fit(cov_type="cluster", cov_kwds={"groups": g}), of
        // x = i / 20 + (7 i % 5) / 50, y = (3 i % 11) / 20 + x / 2, g = i % 6 for i = 0..19.
        let (slope, slope_se, intercept, intercept_se) = (
            0.587_139_947_628_746,
            0.145_326_685_268_133_28,
            0.197_622_926_971_195_9,
            0.077_440_310_494_442_25,
        );
        let x: Vec<f64> = (0..20)
            .map(|i| f64::from(i) / 20.0 + f64::from(7 * i % 5) / 50.0)
            .collect();
        let y: Vec<f64> = (0..20)
            .zip(&x)
            .map(|(i, x)| f64::from(3 * i % 11) / 20.0 + x / 2.0)
            .collect();
        let clusters = Clusters::of((0..20).map(|i| i % 6)).unwrap();
        let line = calibration_line(values(&x), values(&y), &clusters).unwrap();
        let line = line.unwrap();
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} {want}");
        close(line.slope.mean, slope);
        close(line.slope.se(), slope_se);
        close(line.intercept.mean, intercept);
        close(line.intercept.se(), intercept_se);
    }

    #[test]
    fn curves_have_intervals_where_labels_vary() {
        let x = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9];
        let y = [0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
        let edges = Edges::equal_frequency(values(&x), 2).unwrap();
        let each = Clusters::singletons(8).unwrap();
        let curve = reliability_curve(&edges, values(&x), values(&y), &each, 0.95).unwrap();
        let rows: usize = curve.iter().map(|point| point.bin.rows).sum();
        assert_eq!(rows, 8);
        assert!(curve[0].interval.is_some() && curve.last().unwrap().interval.is_none());
        assert!(reliability_curve(&edges, values(&x), values(&y), &each, 0.0).is_err());
    }

    proptest! {
        #[test]
        fn errors_are_blind_to_row_order_and_bounded(
            rows in prop::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64), 1..60), bins in 1_usize..12, turn in 0_usize..60,
        ) {
            let error = |rows: &[(f64, f64)]| {
                let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
                let edges = Edges::equal_frequency(values(&x), bins).unwrap();
                calibration_error(&edges, values(&x), values(&y)).unwrap()
            };
            let mut turned = rows.clone();
            turned.rotate_left(turn % rows.len());
            let (one, other) = (error(&rows), error(&turned));
            prop_assert!((one.ece - other.ece).abs() < 1e-13);
            prop_assert!(one.ece <= one.mce + 1e-15 && one.mce <= 1.0);
            prop_assert_eq!(one.bins.iter().map(|bin| bin.rows).sum::<usize>(), rows.len());
        }
    }
}
