//! Transport audit: is the mean residual of a calibrator on held-out labels within a declared margin?
//!
//! `r = y - prediction`, `delta = sum w r / sum w` with its cluster-robust variance V; df = max(floor(effective
//! clusters) - 1, 1); the interval is at level 1 - alpha / family size. The *narrow* width knows V alone (the
//! peer's); the *wide* one adds the calibrator's jackknife variance and decides the state. Sources: `cje-eval`
//! 0.9.3 `audit_transportability`; the CJE paper, appendix D.6.

use crate::crv1;
use crate::distribution;
use crate::inference;
use crate::inference::Interval;
use crate::quantile::Edges;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::Weights;
use crate::sample::align;
use clover_num::math;

/// Kish-effective clusters below which nothing passes.
pub const EFFECTIVE_CLUSTERS_MIN: f64 = 20.0;
/// Effective clusters that rounding may have taken away: 80 equal weights of 0.1 are 80 clusters.
const ROUNDING: f64 = 1e-9;
/// Bins of the display.
pub const BINS: usize = 10;

/// Labelled rows that the calibrator did not see.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    predictions: Values<'a>,
    labels: Values<'a>,
    clusters: &'a Clusters,
    weights: Option<Weights<'a>>,
}

impl<'a> Probe<'a> {
    /// Predictions and labels of the same rows, their clusters and analysis weights (none: 1 each).
    ///
    /// # Errors
    /// [`SampleError::Misaligned`]; [`SampleError::Parameter`] for a weight of 0.
    pub fn new(
        predictions: Values<'a>,
        labels: Values<'a>,
        clusters: &'a Clusters,
        weights: Option<Weights<'a>>,
    ) -> Result<Self, SampleError> {
        align("labels", labels.len(), predictions.len())?;
        align("clusters", clusters.of_row().len(), predictions.len())?;
        if let Some(weights) = weights {
            align("weights", weights.as_slice().len(), predictions.len())?;
            if weights.as_slice().iter().any(|&weight| weight <= 0.0) {
                return Err(SampleError::Parameter {
                    name: "weights",
                    expected: "weights above 0",
                });
            }
        }
        Ok(Self {
            predictions,
            labels,
            clusters,
            weights,
        })
    }

    fn residuals(&self) -> Vec<f64> {
        let pairs = self
            .labels
            .as_slice()
            .iter()
            .zip(self.predictions.as_slice());
        pairs
            .map(|(label, prediction)| label - prediction)
            .collect()
    }
}

/// A calibrator's jackknife variance of the mean prediction on the probe, and its degrees of freedom (folds - 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jackknife {
    /// Variance, at least 0.
    pub variance: f64,
    /// Degrees of freedom, at least 1.
    pub df: f64,
}

/// How an audit is graded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportTerms {
    /// Largest acceptable absolute mean residual, in label units; `None` grades nothing.
    pub margin: Option<f64>,
    /// Error rate of the whole family, in (0, 0.5).
    pub alpha: f64,
    /// Audits that one decision rests on, at least 1.
    pub family_size: usize,
    /// Kish-effective clusters below which nothing passes, at least 2.
    pub effective_clusters_min: f64,
    /// What bounds the mean label where nearly all labels are one value.
    pub mean_label: MeanLabel,
}

/// What is known of the mean label of a probe beside its sample variance, which says nothing where all labels are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanLabel {
    /// Labels vary enough, or the caller asks for the peer's width.
    Varies,
    /// Labels are nearly constant; their mean lies here, at level 1 - alpha / family size.
    Within(Interval),
    /// Labels are equal on a scale that nobody declared: nothing bounds their mean.
    Unbounded,
}

impl TransportTerms {
    /// One audit at 5 % and the usual floor.
    pub fn new(margin: Option<f64>) -> Self {
        Self {
            margin,
            alpha: 0.05,
            family_size: 1,
            effective_clusters_min: EFFECTIVE_CLUSTERS_MIN,
            mean_label: MeanLabel::Varies,
        }
    }

    /// Error rate of one audit of the family.
    pub fn level(&self) -> f64 {
        self.alpha / self.family_size as f64
    }

    fn check(&self) -> Result<(), SampleError> {
        let refuse = |name, expected| Err(SampleError::Parameter { name, expected });
        if !(self.alpha > 0.0 && self.alpha < 0.5) {
            return refuse("alpha", "a number in (0, 0.5)");
        }
        if self.family_size == 0 {
            return refuse("family size", "at least 1");
        }
        if self.margin.is_some_and(|m| !m.is_finite() || m <= 0.0) {
            return refuse("margin", "a finite number above 0");
        }
        if !self.effective_clusters_min.is_finite() || self.effective_clusters_min < 2.0 {
            return refuse("effective clusters", "a finite floor of at least 2");
        }
        Ok(())
    }
}

/// The state of a transport claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditState {
    /// The interval lies within the margin.
    Pass,
    /// The interval lies wholly beyond the margin.
    Fail,
    /// Neither.
    Inconclusive(Doubt),
    /// No margin was declared.
    NotGraded,
    /// No probe was drawn.
    NotChecked,
}

/// Why an audit is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Too few effective clusters.
    FewClusters,
    /// The interval crosses the margin.
    CrossesMargin,
    /// All labels are equal, on a scale that nobody declared.
    EqualLabels,
}

/// An interval for the mean residual and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    /// Standard error; `None` for one cluster.
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the critical value.
    pub df: f64,
    /// Half the interval; `None` for one cluster, like all that follows.
    pub half_width: Option<f64>,
    /// The interval at level 1 - alpha / family size.
    pub interval: Option<Interval>,
    /// Smallest margin under which it would pass.
    pub min_margin_for_pass: Option<f64>,
    /// Bias that the audit would detect with probability 0.80, `(t + z_.80) SE`.
    pub detectable_bias: Option<f64>,
    /// Two-sided p that the mean residual is 0, unadjusted; `None` without spread.
    pub zero_null_p: Option<f64>,
    /// The state that this width gives.
    pub state: AuditState,
}

/// Mean residual in a bin of the predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualBin {
    /// Rows.
    pub rows: usize,
    /// Unweighted mean residual; `None` without rows.
    pub mean: Option<f64>,
}

/// A transport audit.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportAudit {
    /// The state, decided by the wide width.
    pub state: AuditState,
    /// Weighted mean residual.
    pub mean: f64,
    /// Rows.
    pub rows: usize,
    /// Clusters.
    pub clusters: usize,
    /// Kish-effective clusters.
    pub effective_clusters: f64,
    /// With the sampling variance of the residuals alone.
    pub narrow: Width,
    /// With the calibrator's variance too; equal to the narrow one if it was not given.
    pub wide: Width,
}

/// Audits a probe.
///
/// The wide width uses the smaller of the narrow df and the Welch-Satterthwaite df of both variances, so it is never
/// the narrower one. Where labels are nearly constant, both reach as far as the bound of their mean does too: residuals
/// that are all equal pass and fail nothing by a width of zero.
///
/// # Errors
/// [`SampleError::Parameter`] for terms or a jackknife variance outside their ranges.
pub fn audit(
    probe: &Probe<'_>,
    terms: &TransportTerms,
    jackknife: Option<Jackknife>,
) -> Result<TransportAudit, SampleError> {
    terms.check()?;
    if jackknife.is_some_and(|j| !(j.variance >= 0.0 && j.variance.is_finite() && j.df >= 1.0)) {
        return Err(SampleError::Parameter {
            name: "jackknife",
            expected: "a finite variance of at least 0 on at least 1 degree of freedom",
        });
    }
    let residuals = probe.residuals();
    let weights = probe.weights.map(Weights::as_slice);
    let mean = crv1::mean(&residuals, probe.clusters, weights);
    let df = ((mean.effective_clusters + ROUNDING).floor() - 1.0).max(1.0);
    let error = mean.standard_error();
    let narrow = width(&mean, error, df, terms);
    let wide = match (jackknife, error) {
        (Some(jackknife), Some(error)) => {
            let variance = error * error;
            let welch = inference::welch(variance, df, jackknife.variance, jackknife.df);
            let both = variance + jackknife.variance;
            width(&mean, Some(both.sqrt()), df.min(welch), terms)
        }
        _ => narrow,
    };
    let predicted = || crv1::mean(probe.predictions.as_slice(), probe.clusters, weights).mean;
    let bounded = |width: Width, own: f64| match terms.mean_label {
        MeanLabel::Varies => width,
        MeanLabel::Unbounded => unbounded(width, terms),
        MeanLabel::Within(bound) => {
            let predicted = predicted();
            let reach = Interval {
                low: bound.low - predicted - own,
                high: bound.high - predicted + own,
            };
            widened(width, reach, mean.effective_clusters, terms)
        }
    };
    let own = jackknife.map_or(0.0, |own| {
        distribution::t_quantile(1.0 - 0.5 * terms.level(), own.df) * own.variance.sqrt()
    });
    let (narrow, wide) = (bounded(narrow, 0.0), bounded(wide, own));
    Ok(TransportAudit {
        state: wide.state,
        mean: mean.mean,
        rows: mean.rows,
        clusters: mean.clusters,
        effective_clusters: mean.effective_clusters,
        narrow,
        wide,
    })
}

/// A width that reaches as far as `reach` too. Without an interval, that of few clusters, it stays as it is.
fn widened(of: Width, reach: Interval, effective_clusters: f64, terms: &TransportTerms) -> Width {
    let Some(plain) = of.interval else {
        return of;
    };
    let interval = plain.hull(reach);
    Width {
        half_width: Some(0.5 * interval.width()),
        interval: Some(interval),
        min_margin_for_pass: Some(interval.low.abs().max(interval.high.abs())),
        detectable_bias: None,
        zero_null_p: None,
        state: state(Some(interval), effective_clusters, terms),
        ..of
    }
}

/// A width of labels whose mean nothing bounds: no interval, and no pass.
fn unbounded(of: Width, terms: &TransportTerms) -> Width {
    let state = match terms.margin {
        None => AuditState::NotGraded,
        Some(_) => AuditState::Inconclusive(Doubt::EqualLabels),
    };
    Width {
        half_width: None,
        interval: None,
        min_margin_for_pass: None,
        detectable_bias: None,
        zero_null_p: None,
        state,
        ..of
    }
}

fn width(mean: &crv1::ClusteredMean, error: Option<f64>, df: f64, terms: &TransportTerms) -> Width {
    let critical = distribution::t_quantile(1.0 - 0.5 * terms.level(), df);
    let half_width = error.map(|error| critical * error);
    let interval = half_width.map(|half| Interval::around(mean.mean, half));
    let moved = error.filter(|error| *error > 0.0);
    Width {
        standard_error: error,
        df,
        half_width,
        interval,
        min_margin_for_pass: interval.map(|at| at.low.abs().max(at.high.abs())),
        detectable_bias: error
            .map(|error| (critical + distribution::normal_quantile(0.80)) * error),
        zero_null_p: moved.map(|error| distribution::t_two_sided(mean.mean / error, df)),
        state: state(interval, mean.effective_clusters, terms),
    }
}

fn state(
    interval: Option<Interval>,
    effective_clusters: f64,
    terms: &TransportTerms,
) -> AuditState {
    let Some(margin) = terms.margin else {
        return AuditState::NotGraded;
    };
    let Some(Interval { low, high }) = interval else {
        return AuditState::Inconclusive(Doubt::FewClusters);
    };
    // An interval wholly beyond the margin is evidence even from few clusters; few clusters only withhold a pass.
    if low > margin || high < -margin {
        return AuditState::Fail;
    }
    if effective_clusters + ROUNDING < terms.effective_clusters_min {
        return AuditState::Inconclusive(Doubt::FewClusters);
    }
    if low >= -margin && high <= margin {
        return AuditState::Pass;
    }
    AuditState::Inconclusive(Doubt::CrossesMargin)
}

/// Mean residuals in quantile bins of `scores`, lowest first, for display; ties merge bins.
///
/// # Errors
/// [`SampleError::Misaligned`].
pub fn bins(
    probe: &Probe<'_>,
    scores: Values<'_>,
    bins: usize,
) -> Result<Vec<ResidualBin>, SampleError> {
    align("scores", scores.len(), probe.predictions.len())?;
    let residuals = probe.residuals();
    let found = |rows: &Vec<usize>| {
        let of_bin: Vec<f64> = rows.iter().map(|&row| residuals[row]).collect();
        ResidualBin {
            rows: rows.len(),
            mean: (!rows.is_empty()).then(|| math::mean(&of_bin)),
        }
    };
    let edges = Edges::equal_frequency(scores, bins)?;
    Ok(edges.rows(scores).iter().map(found).collect())
}

/// Share of bins with at least three rows.
pub fn occupancy(bins: &[ResidualBin]) -> f64 {
    let filled = bins.iter().filter(|bin| bin.rows >= 3).count();
    filled as f64 / bins.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn audited(
        residuals: &[f64],
        terms: &TransportTerms,
        jackknife: Option<Jackknife>,
    ) -> TransportAudit {
        let predictions = vec![0.0; residuals.len()];
        let clusters = Clusters::singletons(residuals.len()).unwrap();
        let probe = Probe::new(
            Values::new("prediction", &predictions).unwrap(),
            Values::new("y", residuals).unwrap(),
            &clusters,
            None,
        );
        audit(&probe.unwrap(), terms, jackknife).unwrap()
    }

    /// Ninety labels of 1 beside predictions of .98 pass by the peer's width of zero. One label in ninety could be 0 and a
    /// sample like this one still come about, so that the mean residual may reach from -.02 to .02 and below.
    #[test]
    fn labels_that_are_all_equal_pass_by_their_bound_alone() {
        let predictions = vec![0.98; 90];
        let labels = vec![1.0; 90];
        let clusters = Clusters::singletons(90).unwrap();
        let probe = Probe::new(
            Values::new("prediction", &predictions).unwrap(),
            Values::new("y", &labels).unwrap(),
            &clusters,
            None,
        )
        .unwrap();
        let peers = TransportTerms::new(Some(0.03));
        let found = audit(&probe, &peers, None).unwrap();
        assert_eq!(found.state, AuditState::Pass);
        assert!(found.wide.interval.unwrap().width() < 1e-12);
        // Clopper and Pearson, 0 of 90 at 95 %: 1 - .025^(1/90) = .04016 (their formula, by hand).
        let bound = Interval {
            low: 1.0 - 0.040_158,
            high: 1.0,
        };
        let bounded = |margin: f64| TransportTerms {
            mean_label: MeanLabel::Within(bound),
            ..TransportTerms::new(Some(margin))
        };
        let found = audit(&probe, &bounded(0.019), None).unwrap();
        assert_eq!(found.state, AuditState::Inconclusive(Doubt::CrossesMargin));
        assert_eq!(
            found.narrow.state,
            AuditState::Inconclusive(Doubt::CrossesMargin)
        );
        let reach = found.wide.interval.unwrap();
        assert!((reach.low + 0.020_158).abs() < 1e-9 && (reach.high - 0.02).abs() < 1e-9);
        let found = audit(&probe, &bounded(0.03), None).unwrap();
        assert_eq!(found.state, AuditState::Pass);
        let own = Jackknife {
            variance: 0.0004,
            df: 4.0,
        };
        let found = audit(&probe, &bounded(0.03), Some(own)).unwrap();
        assert_eq!(found.state, AuditState::Inconclusive(Doubt::CrossesMargin));
        let unknown = TransportTerms {
            mean_label: MeanLabel::Unbounded,
            ..peers
        };
        let found = audit(&probe, &unknown, None).unwrap();
        assert_eq!(found.state, AuditState::Inconclusive(Doubt::EqualLabels));
        assert_eq!(found.wide.interval, None);
    }

    #[test]
    fn one_cluster_never_passes() {
        let found = audited(&[0.001], &TransportTerms::new(Some(0.05)), None);
        assert_eq!(found.state, AuditState::Inconclusive(Doubt::FewClusters));
        assert_eq!(found.wide.interval, None);
        let ungraded = audited(&[0.001], &TransportTerms::new(None), None);
        assert_eq!(ungraded.state, AuditState::NotGraded);
    }

    #[test]
    fn few_clusters_can_fail_but_not_pass() {
        let terms = TransportTerms::new(Some(0.05));
        let far: Vec<f64> = (0..10).map(|i| 0.5 + 0.001 * f64::from(i)).collect();
        assert_eq!(audited(&far, &terms, None).state, AuditState::Fail);
        let near: Vec<f64> = (0..10).map(|i| 0.001 * f64::from(i)).collect();
        let doubt = AuditState::Inconclusive(Doubt::FewClusters);
        assert_eq!(audited(&near, &terms, None).state, doubt);
    }

    #[test]
    fn the_wide_width_decides() {
        let terms = TransportTerms::new(Some(0.05));
        let residuals: Vec<f64> = (0..100).map(|i| 0.1 * f64::from(i % 5) - 0.2).collect();
        let jackknife = Jackknife {
            variance: 0.03 * 0.03,
            df: 4.0,
        };
        let found = audited(&residuals, &terms, Some(jackknife));
        assert_eq!(found.narrow.state, AuditState::Pass);
        assert_eq!(found.state, AuditState::Inconclusive(Doubt::CrossesMargin));
        assert!(found.wide.half_width > found.narrow.half_width);
        for variance in [0.0, 1e-12, 1e-6, 1e-4, 1.0] {
            let found = audited(&residuals, &terms, Some(Jackknife { variance, df: 4.0 }));
            assert!(found.wide.half_width >= found.narrow.half_width);
        }
    }

    #[test]
    fn rounding_takes_no_cluster_away() {
        let residuals: Vec<f64> = (0..80).map(|i| 0.1 * f64::from(i % 5) - 0.2).collect();
        let clusters = Clusters::singletons(80).unwrap();
        for weight in [0.1, 0.3, 0.7, 1e-3] {
            let (predictions, weights) = (vec![0.0; 80], vec![weight; 80]);
            let probe = Probe::new(
                Values::new("prediction", &predictions).unwrap(),
                Values::new("y", &residuals).unwrap(),
                &clusters,
                Some(Weights::new("w", &weights, 80).unwrap()),
            );
            let found = audit(&probe.unwrap(), &TransportTerms::new(Some(0.05)), None).unwrap();
            assert!((found.narrow.df - 79.0).abs() <= 0.0);
        }
    }

    #[test]
    fn residuals_without_spread_have_no_p() {
        let found = audited(&[0.1; 40], &TransportTerms::new(Some(0.05)), None);
        assert_eq!(found.narrow.zero_null_p, None);
        assert_eq!(found.state, AuditState::Fail);
    }

    #[test]
    fn terms_outside_their_ranges_are_refused() {
        let predictions = [0.0, 0.1];
        let values = Values::new("y", &predictions).unwrap();
        let clusters = Clusters::singletons(2).unwrap();
        let probe = Probe::new(values, values, &clusters, None).unwrap();
        let mut terms = TransportTerms::new(Some(0.05));
        terms.alpha = f64::NAN;
        assert!(audit(&probe, &terms, None).is_err());
        let terms = TransportTerms::new(Some(-0.05));
        assert!(audit(&probe, &terms, None).is_err());
        let terms = TransportTerms::new(Some(0.05));
        let bad = Jackknife {
            variance: f64::NAN,
            df: 4.0,
        };
        assert!(audit(&probe, &terms, Some(bad)).is_err());
        let weights = [0.0, 1.0];
        let weights = Weights::new("w", &weights, 2).unwrap();
        assert!(Probe::new(values, values, &clusters, Some(weights)).is_err());
        assert!(bins(&probe, values, 0).is_err());
    }

    proptest! {
        #[test]
        fn order_and_a_common_shift_do_not_matter(
            rows in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64, 0_u8..30, 0.1..3.0_f64), 2..80),
            shift in -2.0..2.0_f64,
        ) {
            let run = |rows: &Vec<(f64, f64, u8, f64)>, shift: f64| {
                let predictions: Vec<f64> = rows.iter().map(|row| row.0 + shift).collect();
                let labels: Vec<f64> = rows.iter().map(|row| row.1 + shift).collect();
                let weights: Vec<f64> = rows.iter().map(|row| row.3).collect();
                let clusters = Clusters::of(rows.iter().map(|row| row.2)).unwrap();
                let probe = Probe::new(
                    Values::new("prediction", &predictions).unwrap(),
                    Values::new("y", &labels).unwrap(),
                    &clusters,
                    Some(Weights::new("w", &weights, rows.len()).unwrap()),
                );
                audit(&probe.unwrap(), &TransportTerms::new(Some(0.2)), None).unwrap()
            };
            let mut turned = rows.clone();
            turned.reverse();
            let (a, b) = (run(&rows, 0.0), run(&turned, shift));
            prop_assert!((a.mean - b.mean).abs() < 1e-12);
            prop_assert_eq!(a.clusters, b.clusters);
            if let (Some(a), Some(b)) = (a.narrow.half_width, b.narrow.half_width) {
                prop_assert!((a - b).abs() < 1e-9 * (1.0 + a));
            }
        }
    }
}
