//! Transport across environments (policy, time window, domain, cohort) and the regime that follows.
//!
//! For environment e: `t_e = mean eps_e / SE_e`, `SE_e^2 = CRV1 + Var_OUA`; two-sided p, Benjamini-Hochberg within
//! the family. Source: CLOVER v1.1, section 7; the CJE paper, appendix D.6.

use crate::crv1;
use crate::distribution;
use crate::inference::Interval;
use crate::multiplicity;
use crate::multiplicity::MultiplicityCorrection;
use crate::sample::Clusters;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;
use crate::sample::open_unit;

/// Rows below which an environment is inconclusive.
pub const ROWS_MIN: usize = 40;
/// Standard errors that a bias must exceed to be seen with probability 0.80 at 5 %.
pub const DETECTABLE: f64 = 2.8;
/// Detectable bias above which an environment is inconclusive.
pub const DETECTABLE_MAX: f64 = 0.05;
/// Labels that a local calibrator needs.
pub const LOCAL_LABELS_MIN: usize = 200;
/// Standardised mean difference at which failing environments share a hint.
pub const HINT_SMD: f64 = 0.2;

/// One environment's labelled rows.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// Residuals, label less calibrated reward.
    pub residuals: Values<'a>,
    /// Clusters of the same rows.
    pub clusters: &'a Clusters,
    /// Calibration variance of the mean reward on these rows, at least 0.
    pub calibration_variance: f64,
}

/// What a test of an environment comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentVerdict {
    /// Rejected.
    Fail,
    /// Too few rows, or a bias of 0.05 could hide.
    Inconclusive,
    /// Neither.
    Pass,
}

/// The test of one environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvironmentFinding {
    /// Rows.
    pub rows: usize,
    /// Clusters.
    pub clusters: usize,
    /// Mean residual.
    pub mean: f64,
    /// Standard error with the calibration variance; `None` for one cluster.
    pub standard_error: Option<f64>,
    /// 95 % interval, t with clusters - 1 df.
    pub interval: Option<Interval>,
    /// Two-sided p; `None` for one cluster or without spread.
    pub p: Option<f64>,
    /// p adjusted within the family; what has no p counts as 1.
    pub p_adjusted: f64,
    /// 2.8 SE.
    pub detectable_bias: Option<f64>,
    /// The verdict.
    pub verdict: EnvironmentVerdict,
}

/// Tests every environment of one family at `level` (0.10) under a correction.
///
/// # Errors
/// [`SampleError`] for no environments, misaligned clusters, a variance or level outside its range.
pub fn test(
    family: &[Environment<'_>],
    correction: MultiplicityCorrection,
    level: f64,
) -> Result<Vec<EnvironmentFinding>, SampleError> {
    if family.is_empty() {
        return Err(SampleError::Empty { column: "family" });
    }
    open_unit("level", level)?;
    let mut findings = Vec::with_capacity(family.len());
    for environment in family {
        findings.push(raw(environment)?);
    }
    let p: Vec<f64> = findings
        .iter()
        .map(|found| found.p.unwrap_or(1.0))
        .collect();
    let adjusted = multiplicity::adjusted(&p, correction)?;
    for (finding, p_adjusted) in findings.iter_mut().zip(adjusted) {
        finding.p_adjusted = p_adjusted;
        let p_adjusted = finding.p.map(|_| p_adjusted);
        finding.verdict = verdict(finding.rows, p_adjusted, finding.detectable_bias, level);
    }
    Ok(findings)
}

fn raw(environment: &Environment<'_>) -> Result<EnvironmentFinding, SampleError> {
    let rows = environment.residuals.len();
    align("clusters", environment.clusters.of_row().len(), rows)?;
    let extra = environment.calibration_variance;
    if !extra.is_finite() || extra < 0.0 {
        return Err(SampleError::Parameter {
            name: "calibration variance",
            expected: "a finite number of at least 0",
        });
    }
    let found = crv1::mean(environment.residuals.as_slice(), environment.clusters, None);
    let standard_error = found
        .standard_error()
        .map(|error| (error * error + extra).sqrt());
    let moved = standard_error.filter(|error| *error > 0.0);
    Ok(EnvironmentFinding {
        rows,
        clusters: found.clusters,
        mean: found.mean,
        standard_error,
        interval: standard_error
            .map(|error| Interval::student(found.mean, error, found.df(), 0.05)),
        p: moved.map(|error| distribution::t_two_sided(found.mean / error, found.df())),
        p_adjusted: 1.0,
        detectable_bias: standard_error.map(|error| DETECTABLE * error),
        verdict: EnvironmentVerdict::Inconclusive,
    })
}

/// The verdict of one environment: rejected, or with too few rows or too coarse an error to see a bias of 0.05, or
/// neither. What has no p is never rejected and never passes.
pub fn verdict(
    rows: usize,
    p_adjusted: Option<f64>,
    detectable_bias: Option<f64>,
    level: f64,
) -> EnvironmentVerdict {
    let Some(p_adjusted) = p_adjusted else {
        return EnvironmentVerdict::Inconclusive;
    };
    if p_adjusted <= level {
        return EnvironmentVerdict::Fail;
    }
    let seen = detectable_bias.is_some_and(|bias| bias <= DETECTABLE_MAX);
    if rows >= ROWS_MIN && seen && p_adjusted > level {
        return EnvironmentVerdict::Pass;
    }
    EnvironmentVerdict::Inconclusive
}

/// How rewards may be used in an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// 3: one calibrator everywhere.
    Global,
    /// A patch of the rubric is tried first: the failing environments share a hint that a legal path addresses.
    GlobalPatchAttempt,
    /// 2: a calibrator fitted and read only inside the environment.
    Local,
    /// 1: no claim from rewards; labels directly.
    None,
}

/// The regime of one environment.
///
/// `shared_hint` is the standardised mean difference of a hint that all failing environments share and a legal path
/// addresses, if any; `patch_tried` whether such a patch was already tried and re-tested. An inconclusive
/// environment keeps the global regime: only a failure selects another.
pub fn regime(
    verdict: EnvironmentVerdict,
    shared_hint: Option<f64>,
    patch_tried: bool,
    labels: usize,
) -> Regime {
    if verdict != EnvironmentVerdict::Fail {
        return Regime::Global;
    }
    if !patch_tried && shared_hint.is_some_and(|smd| smd.abs() >= HINT_SMD) {
        return Regime::GlobalPatchAttempt;
    }
    if labels >= LOCAL_LABELS_MIN {
        return Regime::Local;
    }
    Regime::None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(rows: usize, mean: f64, sd: f64) -> Vec<f64> {
        (0..rows)
            .map(|row| mean + if row % 2 == 0 { sd } else { -sd })
            .collect()
    }

    #[test]
    fn a_pass_needs_rows_and_precision() {
        let columns = [
            spread(127, 0.0, 0.2),
            spread(120, 0.0, 0.2),
            spread(38, 0.0, 0.01),
            spread(200, 0.1, 0.2),
        ];
        let clusters: Vec<Clusters> = columns
            .iter()
            .map(|column| Clusters::singletons(column.len()).unwrap())
            .collect();
        let family: Vec<Environment<'_>> = columns
            .iter()
            .zip(&clusters)
            .map(|(column, clusters)| Environment {
                residuals: Values::new("eps", column).unwrap(),
                clusters,
                calibration_variance: 0.0,
            })
            .collect();
        let found = test(&family, MultiplicityCorrection::BenjaminiHochberg, 0.10).unwrap();
        let verdicts: Vec<EnvironmentVerdict> =
            found.iter().map(|finding| finding.verdict).collect();
        // A pass needs SE <= .05 / 2.8 = .0179; here SE = .2 / sqrt(n - 1).
        let want = [
            EnvironmentVerdict::Pass,
            EnvironmentVerdict::Inconclusive,
            EnvironmentVerdict::Inconclusive,
            EnvironmentVerdict::Fail,
        ];
        assert_eq!(verdicts, want);
        assert!(test(&[], MultiplicityCorrection::Holm, 0.10).is_err());
        assert!(test(&family, MultiplicityCorrection::Holm, f64::NAN).is_err());
    }

    #[test]
    fn what_has_no_error_does_not_pass() {
        let flat = [0.0; 60];
        let clusters = Clusters::singletons(60).unwrap();
        let one = Clusters::of((0..60).map(|_| 0)).unwrap();
        for clusters in [&clusters, &one] {
            let family = [Environment {
                residuals: Values::new("eps", &flat).unwrap(),
                clusters,
                calibration_variance: 0.0,
            }];
            let found = test(&family, MultiplicityCorrection::Bonferroni, 0.10).unwrap();
            assert_eq!(found[0].verdict, EnvironmentVerdict::Inconclusive);
            assert_eq!(found[0].p, None);
        }
    }

    #[test]
    fn regimes_follow_failures_in_order() {
        assert_eq!(
            regime(EnvironmentVerdict::Pass, Some(0.9), false, 500),
            Regime::Global
        );
        assert_eq!(
            regime(EnvironmentVerdict::Inconclusive, None, false, 0),
            Regime::Global
        );
        let attempt = regime(EnvironmentVerdict::Fail, Some(-0.2), false, 500);
        assert_eq!(attempt, Regime::GlobalPatchAttempt);
        assert_eq!(
            regime(EnvironmentVerdict::Fail, Some(0.5), true, 200),
            Regime::Local
        );
        assert_eq!(
            regime(EnvironmentVerdict::Fail, Some(0.1), false, 199),
            Regime::None
        );
        assert_eq!(
            regime(EnvironmentVerdict::Fail, Some(f64::NAN), false, 199),
            Regime::None
        );
    }
}
