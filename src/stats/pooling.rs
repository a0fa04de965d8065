//! Partial pooling of group means: normal empirical Bayes by REML, its named alternatives, and James-Stein.
//!
//! Groups g = 1..G with `n_g` rows, mean `y_g` and standard deviation `s_g`; `y_g | theta_g ~ N(theta_g, v_g)`,
//! `theta_g ~ N(mu, tau2)`. With W = 1/(v + tau2), mu = sum W y / sum W and `B_g = v_g/(v_g + tau2)`, the shrunk
//! mean is `B_g mu + (1 - B_g) y_g` and its variance `(1 - B_g) v_g + B_g^2 / sum W`. The intervals ignore what
//! is not known of tau2, so the raw interval stands beside each. Source: CLOVER v1.1, section 3;
//! `DerSimonian` and Laird 1986; Paule and Mandel 1982; James and Stein 1961, positive part.

use crate::inference;
use crate::inference::Interval;
use crate::sample::SampleError;
use crate::sample::Values;
use clover_num::math;

/// Normal critical value of the 95 % intervals.
pub const CRITICAL_95: f64 = 1.959_964;
/// Prior degrees of freedom of a moderated variance.
const PRIOR_DF: f64 = 4.0;
/// Steps after which the fixed point counts as failed.
const STEPS_MAX: usize = 500;
/// Change of tau2 at which the fixed point has converged.
const CONVERGED: f64 = 1e-12;
/// Squared deviation, as a share of the largest squared value, that rounding alone can leave.
const NO_SPREAD: f64 = 1e-26;
/// Groups below which James-Stein does not shrink.
const JAMES_STEIN_GROUPS: usize = 4;

/// A group by its rows, mean and standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    rows: usize,
    mean: f64,
    sd: f64,
}

impl Group {
    /// The group of some values; the deviation (ddof 1) of a single one is 0 and carries no weight.
    pub fn of(values: Values<'_>) -> Self {
        let (rows, mean) = (values.len(), math::mean(values.as_slice()));
        let values = values.as_slice();
        let largest = values.iter().fold(0.0_f64, |most, x| most.max(x * x));
        // What is left of equal values after rounding is no spread.
        let flat = values
            .iter()
            .all(|x| (x - mean) * (x - mean) <= NO_SPREAD * largest);
        let sd = if flat {
            0.0
        } else {
            inference::standard_deviation(values).unwrap_or(0.0)
        };
        Self { rows, mean, sd }
    }

    /// A group known by its summary.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] without rows, for numbers that are not finite or a negative deviation.
    pub fn summary(rows: usize, mean: f64, sd: f64) -> Result<Self, SampleError> {
        if rows == 0 || !mean.is_finite() || !sd.is_finite() || sd < 0.0 {
            return Err(SampleError::Parameter {
                name: "group",
                expected: "rows, a finite mean and a standard deviation of at least 0",
            });
        }
        Ok(Self { rows, mean, sd })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation, ddof 1.
    pub fn sd(&self) -> f64 {
        self.sd
    }

    /// Student's 95 % interval of the group alone; `None` for a single row.
    pub fn raw_interval(&self) -> Option<Interval> {
        let df = self.rows as f64 - 1.0;
        (self.rows >= 2).then(|| {
            let se = self.sd / (self.rows as f64).sqrt();
            Interval::student(self.mean, se, df, 0.05)
        })
    }
}

/// How the sampling variance of a group's mean is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarianceRule {
    /// `[(n_g - 1) s_g^2 + 4 s0^2] / (n_g + 3) / n_g`: each group's own, with four prior degrees of freedom.
    Moderated,
    /// `s0^2 / n_g`: one variance for all.
    Pooled,
}

/// How tau2 is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tau2Estimator {
    /// Restricted maximum likelihood by fixed point from the DerSimonian-Laird start.
    Reml,
    /// Method of moments.
    DerSimonianLaird,
    /// The tau2 at which the generalised Q is G - 1.
    PauleMandel,
}

/// What became of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iteration {
    /// Closed form.
    None,
    /// Converged after so many steps.
    Converged(usize),
    /// Did not converge; the start stands.
    KeptStart,
}

/// A group's shrunk mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrunk {
    /// Sampling variance of the group's mean, `v_g`.
    pub variance: f64,
    /// Weight of the common mean, `B_g` in [0, 1].
    pub weight: f64,
    /// Shrunk mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Student's 95 % interval of the group alone.
    pub raw_interval: Option<Interval>,
}

impl Shrunk {
    fn new(group: &Group, variance: f64, weight: f64, mean: f64, error_square: f64) -> Self {
        let standard_error = error_square.max(0.0).sqrt();
        Self {
            variance,
            weight,
            mean,
            standard_error,
            interval: Interval::around(mean, CRITICAL_95 * standard_error),
            raw_interval: group.raw_interval(),
        }
    }
}

/// Heterogeneity of the groups before any pooling.
#[derive(Clone, Debug, PartialEq)]
pub struct Heterogeneity {
    /// Within-group variance over all groups, `s0^2`.
    pub within: f64,
    /// Sampling variance of each mean.
    pub variances: Vec<f64>,
    /// Mean weighted by 1/v.
    pub mean: f64,
    /// Cochran's Q about that mean.
    pub q: f64,
}

/// What pooling found.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolingFit {
    /// The groups before pooling.
    pub spread: Heterogeneity,
    /// Variance between groups.
    pub between: f64,
    /// Mean of the groups' distribution.
    pub mu: f64,
    /// How the iteration ended.
    pub iteration: Iteration,
    /// The groups in the order given.
    pub groups: Vec<Shrunk>,
}

/// What James-Stein shrinking found.
#[derive(Clone, Debug, PartialEq)]
pub struct JamesStein {
    /// The groups before shrinking.
    pub spread: Heterogeneity,
    /// Share of each deviation from the weighted mean that is kept, in [0, 1].
    pub factor: f64,
    /// The groups in the order given; the standard errors are the raw ones.
    pub groups: Vec<Shrunk>,
}

/// The groups before any pooling; `None` if no group has two rows or no row differs from its group's mean.
///
/// # Errors
/// [`SampleError::Empty`] without groups.
pub fn spread(groups: &[Group], rule: VarianceRule) -> Result<Option<Heterogeneity>, SampleError> {
    if groups.is_empty() {
        return Err(SampleError::Empty { column: "groups" });
    }
    let df: Vec<f64> = groups.iter().map(|g| g.rows as f64 - 1.0).collect();
    let squares: Vec<f64> = groups.iter().map(|g| g.sd * g.sd).collect();
    let within = math::dot(&df, &squares) / math::sum(&df);
    // Without degrees of freedom it is NaN.
    if within.is_nan() || within <= 0.0 {
        return Ok(None);
    }
    let variances: Vec<f64> = groups
        .iter()
        .zip(df.iter().zip(&squares))
        .map(|(group, (df, square))| {
            let variance = match rule {
                VarianceRule::Pooled => within,
                VarianceRule::Moderated => (df * square + PRIOR_DF * within) / (df + PRIOR_DF),
            };
            variance / group.rows as f64
        })
        .collect();
    let (mean, q, _) = weighted(groups, &variances, 0.0);
    Ok(Some(Heterogeneity {
        within,
        variances,
        mean,
        q,
    }))
}

/// Mean weighted by W = 1/(v + tau2), the weighted squares about it, and sum W.
fn weighted(groups: &[Group], variances: &[f64], between: f64) -> (f64, f64, f64) {
    let weights: Vec<f64> = variances.iter().map(|v| 1.0 / (v + between)).collect();
    let means: Vec<f64> = groups.iter().map(|group| group.mean).collect();
    let total = math::sum(&weights);
    let mean = math::dot(&weights, &means) / total;
    let squares: Vec<f64> = means.iter().map(|y| (y - mean) * (y - mean)).collect();
    (mean, math::dot(&weights, &squares), total)
}

/// Partial pooling as CLOVER does it: moderated variances and REML.
///
/// One group is its own common mean: with tau2 = 0, B = 1, and mean and standard error are the group's. `None` as in
/// [`spread`].
///
/// # Errors
/// [`SampleError::Empty`] without groups.
pub fn partial(groups: &[Group]) -> Result<Option<PoolingFit>, SampleError> {
    pool(groups, VarianceRule::Moderated, Tau2Estimator::Reml)
}

/// Partial pooling under a variance rule and an estimator of tau2; `None` as in [`spread`].
///
/// # Errors
/// [`SampleError::Empty`] without groups.
pub fn pool(
    groups: &[Group],
    rule: VarianceRule,
    estimator: Tau2Estimator,
) -> Result<Option<PoolingFit>, SampleError> {
    let Some(spread) = spread(groups, rule)? else {
        return Ok(None);
    };
    if let [only] = groups {
        let variance = spread.variances[0];
        return Ok(Some(PoolingFit {
            between: 0.0,
            mu: only.mean,
            iteration: Iteration::None,
            groups: vec![Shrunk::new(only, variance, 1.0, only.mean, variance)],
            spread,
        }));
    }
    let start = dersimonian_laird(&spread);
    let (between, iteration) = match estimator {
        Tau2Estimator::DerSimonianLaird => (start, Iteration::None),
        Tau2Estimator::PauleMandel => (paule_mandel(groups, &spread), Iteration::None),
        Tau2Estimator::Reml => match reml(groups, &spread.variances, start) {
            Some((between, steps)) => (between, Iteration::Converged(steps)),
            None => (start, Iteration::KeptStart),
        },
    };
    let (mu, _, total) = weighted(groups, &spread.variances, between);
    let shrunk = groups.iter().zip(&spread.variances).map(|(group, &v)| {
        let weight = v / (v + between);
        let mean = weight * mu + (1.0 - weight) * group.mean;
        let square = (1.0 - weight) * v + weight * weight / total;
        Shrunk::new(group, v, weight, mean, square)
    });
    let groups = shrunk.collect();
    Ok(Some(PoolingFit {
        spread,
        between,
        mu,
        iteration,
        groups,
    }))
}

/// max(0, (Q - (G - 1)) / (sum w - sum w^2 / sum w)).
fn dersimonian_laird(spread: &Heterogeneity) -> f64 {
    let weights: Vec<f64> = spread.variances.iter().map(|v| 1.0 / v).collect();
    let total = math::sum(&weights);
    let scale = total - math::dot(&weights, &weights) / total;
    let excess = spread.q - (weights.len() as f64 - 1.0);
    (excess / scale).max(0.0)
}

/// tau2 <- max(0, sum W^2 ((y - mu)^2 - v) / sum W^2 + 1 / sum W), with the steps taken.
fn reml(groups: &[Group], variances: &[f64], start: f64) -> Option<(f64, usize)> {
    let mut between = start;
    for step in 1..=STEPS_MAX {
        let (mu, _, total) = weighted(groups, variances, between);
        let (mut above, mut below) = (0.0, 0.0);
        for (group, v) in groups.iter().zip(variances) {
            let square = 1.0 / ((v + between) * (v + between));
            above += square * ((group.mean - mu) * (group.mean - mu) - v);
            below += square;
        }
        let next = (above / below + 1.0 / total).max(0.0);
        if !next.is_finite() {
            return None;
        }
        if (next - between).abs() < CONVERGED {
            return Some((next, step));
        }
        between = next;
    }
    None
}

/// The root of the falling Q(tau2) = G - 1, by bisection to the last bit; 0 if Q(0) is not above it.
fn paule_mandel(groups: &[Group], spread: &Heterogeneity) -> f64 {
    let df = groups.len() as f64 - 1.0;
    if spread.q <= df {
        return 0.0;
    }
    let excess = |between: f64| weighted(groups, &spread.variances, between).1 > df;
    let mut high = dersimonian_laird(spread).max(f64::MIN_POSITIVE);
    while excess(high) && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if excess(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Positive-part James-Stein toward the weighted mean: factor max(0, 1 - (G - 3)/Q) from 4 groups on, else 1.
///
/// `None` as in [`spread`].
///
/// # Errors
/// [`SampleError::Empty`] without groups.
pub fn james_stein(
    groups: &[Group],
    rule: VarianceRule,
) -> Result<Option<JamesStein>, SampleError> {
    let Some(spread) = spread(groups, rule)? else {
        return Ok(None);
    };
    let factor = if groups.len() < JAMES_STEIN_GROUPS {
        1.0
    } else if spread.q <= 0.0 {
        0.0
    } else {
        (1.0 - (groups.len() as f64 - 3.0) / spread.q).max(0.0)
    };
    let shrunk = groups.iter().zip(&spread.variances).map(|(group, &v)| {
        let mean = spread.mean + factor * (group.mean - spread.mean);
        Shrunk::new(group, v, 1.0 - factor, mean, v)
    });
    let groups = shrunk.collect();
    Ok(Some(JamesStein {
        spread,
        factor,
        groups,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn appendix() -> Vec<Group> {
        // source: CLOVER v1.1 engineering specification, Appendix C, pooling.
        let rows: [(usize, f64, f64); 8] = [
            (60, -0.120, 0.22),
            (80, -0.045, 0.20),
            (150, 0.010, 0.18),
            (120, 0.025, 0.19),
            (90, -0.015, 0.21),
            (200, 0.000, 0.17),
            (45, 0.060, 0.24),
            (75, -0.030, 0.20),
        ];
        rows.iter()
            .map(|&(n, mean, sd)| Group::summary(n, mean, sd).unwrap())
            .collect()
    }

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} is not {want}");
    }

    #[test]
    fn the_appendix_is_reproduced() {
        // source: CLOVER v1.1 engineering specification, Appendix C, pooling (printed digits).
        const SHRUNK: [f64; 8] = [
            -0.087_145, -0.038_172, 0.007_396, 0.019_352, -0.014_761, -0.001_053, 0.029_550,
            -0.026_283,
        ];
        let groups = appendix();
        let pooled = partial(&groups).unwrap().unwrap();
        near(pooled.spread.within, 0.037_326_970, 5e-10);
        near(pooled.spread.q, 28.766_440, 5e-7);
        near(dersimonian_laird(&pooled.spread), 0.001_163_15, 5e-9);
        near(pooled.between, 0.001_772_47, 5e-9);
        near(pooled.mu, -0.013_890, 5e-7);
        for (got, want) in pooled.groups.iter().zip(SHRUNK) {
            near(got.mean, want, 5e-7);
        }
        near(pooled.groups[0].standard_error, 0.023_997, 5e-7);
        near(pooled.groups[0].interval.low, -0.1342, 5e-5);
        near(pooled.groups[0].interval.high, -0.0401, 5e-5);
        assert!(matches!(pooled.iteration, Iteration::Converged(_)));
        let stein = james_stein(&groups, VarianceRule::Moderated)
            .unwrap()
            .unwrap();
        near(stein.factor, 0.826_186, 5e-7);
        near(stein.groups[0].mean, -0.100_293, 5e-7);
    }

    #[test]
    fn one_group_is_its_own_mean_and_no_variance_is_said() {
        let one = [Group::summary(50, 0.2, 0.1).unwrap()];
        let pooled = partial(&one).unwrap().unwrap();
        near(pooled.groups[0].mean, 0.2, 0.0);
        near(pooled.groups[0].weight, 1.0, 0.0);
        // s / sqrt(n).
        near(
            pooled.groups[0].standard_error,
            0.014_142_135_623_730_95,
            1e-15,
        );
        let flat = [
            Group::summary(5, 0.2, 0.0).unwrap(),
            Group::summary(1, 0.3, 0.0).unwrap(),
        ];
        assert_eq!(partial(&flat).unwrap(), None);
        assert_eq!(james_stein(&flat, VarianceRule::Pooled).unwrap(), None);
        let single = [Group::summary(1, 0.3, 0.0).unwrap()];
        assert_eq!(partial(&single).unwrap(), None);
        assert!(matches!(partial(&[]), Err(SampleError::Empty { .. })));
        assert!(Group::summary(0, 0.0, 1.0).is_err());
        assert!(Group::summary(3, f64::NAN, 1.0).is_err());
        assert_eq!(single[0].raw_interval(), None);
    }

    #[test]
    fn equal_groups_collapse_to_their_mean() {
        let groups = [Group::summary(50, 0.1, 0.2).unwrap(); 5];
        let pooled = partial(&groups).unwrap().unwrap();
        near(pooled.between, 0.0, 0.0);
        for group in &pooled.groups {
            near(group.weight, 1.0, 0.0);
            near(group.mean, 0.1, 1e-15);
            // sqrt(1 / sum W).
            near(group.standard_error, (0.04_f64 / 250.0).sqrt(), 1e-15);
        }
        let stein = james_stein(&groups, VarianceRule::Moderated).unwrap();
        near(stein.unwrap().factor, 0.0, 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn shrinking_moves_with_the_units(
            raw in prop::collection::vec((2_usize..80, -1.0..1.0_f64, 0.05..0.5_f64), 2..9),
            shift in -3.0..3.0_f64,
            scale in 0.1..10.0_f64,
        ) {
            let group = |&(n, mean, sd): &(usize, f64, f64)| Group::summary(n, mean, sd).unwrap();
            let moved = |&(n, mean, sd): &(usize, f64, f64)| {
                Group::summary(n, shift + scale * mean, scale * sd).unwrap()
            };
            let plain: Vec<Group> = raw.iter().map(group).collect();
            let other: Vec<Group> = raw.iter().map(moved).collect();
            for estimator in [Tau2Estimator::DerSimonianLaird, Tau2Estimator::PauleMandel] {
                let a = pool(&plain, VarianceRule::Moderated, estimator).unwrap().unwrap();
                let b = pool(&other, VarianceRule::Moderated, estimator).unwrap().unwrap();
                for (a, b) in a.groups.iter().zip(&b.groups) {
                    prop_assert!((shift + scale * a.mean - b.mean).abs() < 1e-9 * scale.max(1.0));
                    prop_assert!((scale * a.standard_error - b.standard_error).abs() < 1e-9 * scale);
                }
            }
            let pooled = partial(&plain).unwrap().unwrap();
            for (group, shrunk) in plain.iter().zip(&pooled.groups) {
                let (low, high) = (group.mean().min(pooled.mu), group.mean().max(pooled.mu));
                prop_assert!(low - 1e-12 <= shrunk.mean && shrunk.mean <= high + 1e-12);
                prop_assert!((0.0..=1.0).contains(&shrunk.weight));
            }
        }
    }
}
