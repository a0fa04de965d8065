//! Differences between policies: paired by prompt, the calibrator's shared error cancelling.

use crate::crv1::SplitVariance;
use crate::direct::DfMethod;
use crate::direct::Options;
use crate::direct::PolicyEstimate;
use crate::direct::Route;
use crate::direct::Table;
use crate::direct::analytic::Spread;
use crate::direct::strata::ByStratum;
use crate::distribution;
use crate::inference;
use crate::inference::Interval;

/// What a difference is paired on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The same prompts on both sides.
    Paired,
    /// Some prompts shared.
    PartialOverlap,
    /// No prompt shared.
    Disjoint,
    /// Independence was asked for.
    IndependentRequested,
}

impl Basis {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paired => "prompt_cluster_paired",
            Self::PartialOverlap => "prompt_cluster_partial_overlap",
            Self::Disjoint => "prompt_cluster_disjoint",
            Self::IndependentRequested => "independent_requested",
        }
    }
}

/// A difference of two policies' values, on the unit scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The first policy.
    pub first: usize,
    /// The second.
    pub second: usize,
    /// First less second.
    pub difference: f64,
    /// Its standard error.
    pub se: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Where they come from.
    pub df_method: DfMethod,
    /// Two-sided p of no difference.
    pub p: f64,
    /// The t interval.
    pub interval: Interval,
    /// What it is paired on.
    pub basis: Basis,
    /// Prompts shared.
    pub shared_prompts: usize,
}

/// Sampling part of a difference.
struct Sampling {
    /// Inflated variance and its degrees of freedom.
    variance: f64,
    df: f64,
    /// Before inflation.
    plain: f64,
    plain_df: f64,
    basis: Basis,
    shared: usize,
    /// Whether degrees of freedom are those of strata.
    by_stratum: bool,
}

/// Every pair of policies, in order; a pair without an interval on either side is left out.
///
/// The sampling variance is CRV1 over the union of prompts of the difference of contributions; a policy with a
/// labelled-cluster rule lends it its inflation and degrees of freedom, the more cautious of the two; the
/// calibration variance is the jackknife of the difference (`cje-eval` 0.9.3 policy comparisons).
pub fn contrasts(table: &Table, estimates: &[PolicyEstimate], options: &Options) -> Vec<Contrast> {
    let mut found = Vec::new();
    for first in 0..estimates.len() {
        for second in first + 1..estimates.len() {
            found.extend(contrast(table, estimates, first, second, options));
        }
    }
    found
}

fn contrast(
    table: &Table,
    estimates: &[PolicyEstimate],
    first: usize,
    second: usize,
    options: &Options,
) -> Option<Contrast> {
    let (a, b) = (&estimates[first], &estimates[second]);
    let (spread_a, spread_b) = (a.spread.as_ref().ok()?, b.spread.as_ref().ok()?);
    let sampling = if options.paired {
        paired(table, [(first, a), (second, b)], options)
    } else {
        independent([(a, spread_a), (b, spread_b)], options)
    }?;
    let both_measured =
        a.point.route == Route::DirectOracle && b.point.route == Route::DirectOracle;
    let calibration = if both_measured || a.jackknife.len() != b.jackknife.len() {
        0.0
    } else {
        let difference: Vec<f64> = a
            .jackknife
            .iter()
            .zip(&b.jackknife)
            .map(|(a, b)| a - b)
            .collect();
        inference::jackknife_variance(&difference).unwrap_or(0.0)
    };
    let fold_df = a.jackknife.len() as f64 - 1.0;
    let labelled = [a, b]
        .iter()
        .any(|estimate| estimate.labelled_rule(options).is_some());
    let welch = inference::welch(sampling.variance, sampling.df, calibration, fold_df);
    let (df, df_method) = if labelled {
        let plain = inference::welch(sampling.plain, sampling.plain_df, calibration, fold_df);
        (
            sampling.df.min(welch).min(plain),
            DfMethod::LabelledClusters,
        )
    } else if sampling.by_stratum {
        (sampling.df.min(welch), DfMethod::Strata)
    } else if calibration > 0.0 {
        (welch, DfMethod::WelchSatterthwaite)
    } else {
        (welch, DfMethod::Cluster)
    };
    let se = (sampling.variance + calibration).sqrt();
    if se.is_nan() || se <= 0.0 {
        return None;
    }
    let difference = a.point.estimate - b.point.estimate;
    Some(Contrast {
        first,
        second,
        difference,
        se,
        df,
        df_method,
        p: distribution::t_two_sided(difference / se, df),
        interval: Interval::student(difference, se, df, options.alpha),
        basis: sampling.basis,
        shared_prompts: sampling.shared,
    })
}

/// Differences of prompt contributions over the union of prompts.
fn paired(
    table: &Table,
    sides: [(usize, &PolicyEstimate); 2],
    options: &Options,
) -> Option<Sampling> {
    let prompts = table.prompts();
    let mut difference = vec![0.0; prompts];
    let mut present = vec![[false; 2]; prompts];
    let mut labelled = vec![false; prompts];
    let mut rule: Option<(f64, f64)> = None;
    for (side, &(policy, estimate)) in sides.iter().enumerate() {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let rows = estimate.influence.len() as f64;
        let fitted = estimate.labelled_rule(options);
        let labels = &table.labels[table.policies[policy].clone()];
        for ((&prompt, value), label) in table
            .prompts_of(policy)
            .iter()
            .zip(&estimate.influence)
            .zip(labels)
        {
            let prompt = prompt as usize;
            difference[prompt] += sign * value / rows;
            present[prompt][side] = true;
            labelled[prompt] |= fitted.is_some() && label.is_some();
        }
        if let (Some(fitted), Some(split)) = (fitted, estimate.split) {
            let df = split.labelled_clusters as f64 - fitted as f64;
            let inflation = split.labelled_clusters as f64 / df;
            rule = Some(rule.map_or((inflation, df), |(most, least)| {
                (most.max(inflation), least.min(df))
            }));
        }
    }
    let union: Vec<usize> = (0..prompts)
        .filter(|&prompt| present[prompt] != [false; 2])
        .collect();
    let totals: Vec<(f64, bool)> = union
        .iter()
        .map(|&prompt| (difference[prompt], labelled[prompt]))
        .collect();
    let split = SplitVariance::of_totals(&totals, 1.0)?;
    let plain_df = split.clusters as f64 - 1.0;
    let (inflation, mut df) = rule.unwrap_or((1.0, plain_df));
    let signed = [1.0, -1.0].into_iter().zip(&sides);
    let strata: Vec<_> = signed
        .filter_map(|(sign, (policy, estimate))| {
            let drawn = estimate.drawn.as_ref()?;
            Some((sign, drawn, table.prompts_of(*policy)))
        })
        .collect();
    if !strata.is_empty() {
        df = df.min(ByStratum::new(&strata, split.total(), split.clusters).df());
    }
    let shared = present.iter().filter(|sides| **sides == [true; 2]).count();
    let basis = match shared {
        shared if shared == union.len() => Basis::Paired,
        0 => Basis::Disjoint,
        _ => Basis::PartialOverlap,
    };
    Some(Sampling {
        variance: inflation * split.labelled + split.unlabelled,
        df,
        plain: split.total(),
        plain_df,
        basis,
        shared,
        by_stratum: !strata.is_empty(),
    })
}

/// The two sampling variances added.
fn independent(sides: [(&PolicyEstimate, &Spread); 2], options: &Options) -> Option<Sampling> {
    let (mut variance, mut plain) = (0.0, 0.0);
    let (mut df, mut plain_df) = (f64::INFINITY, f64::INFINITY);
    for (estimate, spread) in sides {
        let split = estimate.split?;
        let clusters = split.clusters as f64 - 1.0;
        variance += spread.sampling;
        plain += split.total();
        plain_df = plain_df.min(clusters);
        df = df.min(match estimate.labelled_rule(options) {
            Some(fitted) => split.labelled_clusters as f64 - fitted as f64,
            None if estimate.drawn.is_some() => spread.df,
            None => clusters,
        });
    }
    Some(Sampling {
        variance,
        df,
        plain,
        plain_df,
        basis: Basis::IndependentRequested,
        shared: 0,
        by_stratum: sides.iter().any(|(of, _)| of.drawn.is_some()),
    })
}
