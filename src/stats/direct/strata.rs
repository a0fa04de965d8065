//! Labels that were drawn with known unequal probabilities: rows that shared one are a stratum.
//!
//! A labelled row of stratum h stands for `N_h / n_h` rows: the weight 1 / pi of Horvitz and Thompson, normalised within
//! the stratum (Hajek's separate ratio). It is AIPW with known probabilities whose prediction has an intercept by stratum:
//! theta = mean(f + `c_h`) with `c_h` the mean residual of the labels of h. So the calibrator itself stays unweighted.
//! Normalised, it holds for draws of each row by itself, for draws of a fixed number, and for labels that came back from
//! one stratum less often than from another. The value is that of the policy, not of these rows, so nothing is taken off for
//! a finite sample. Sources: Horvitz and Thompson 1952; Hajek 1964; CJE paper, C.14; Cochran, Sampling Techniques, 5.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clover_num::math;

use crate::crv1;
use crate::crv1::SplitVariance;
use crate::direct::PolicyEstimate;
use crate::direct::Table;
use crate::direct::rare;
use crate::distribution;
use crate::inference::Interval;
use crate::sample::Clusters;
use crate::sample::SampleError;

/// Labelled prompts below which a stratum says too little of how its labels vary.
pub const CLUSTERS_MIN: usize = 5;

/// The strata of a table.
#[derive(Clone, Debug)]
pub(crate) struct Strata {
    /// Of each row.
    of_row: Vec<u32>,
    /// By policy, then stratum.
    by_policy: Vec<BTreeMap<u32, Count>>,
}

/// What one policy has of one stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    rows: usize,
    labels: usize,
    /// Prompts with a label.
    clusters: usize,
}

impl Count {
    /// All rows are labelled: nothing was drawn.
    fn is_whole(self) -> bool {
        self.labels == self.rows
    }

    fn is_thin(self) -> bool {
        !self.is_whole() && self.clusters < CLUSTERS_MIN
    }

    /// Degrees of freedom of the variance within the stratum; at least 4 where it was drawn from and is not thin.
    fn df(self) -> f64 {
        self.clusters as f64 - 1.0
    }

    /// How much a deviation from the mean of the stratum's labels grows, since that mean was fitted on them.
    fn inflation(self) -> f64 {
        if self.is_whole() {
            1.0
        } else {
            (self.clusters as f64 / self.df()).sqrt()
        }
    }
}

impl Strata {
    pub(crate) fn new(table: &Table, of_row: Vec<u32>) -> Self {
        let counts = table.policies.iter().map(|rows| {
            let mut counts: BTreeMap<u32, (Count, BTreeSet<u32>)> = BTreeMap::new();
            for row in rows.clone() {
                let (count, prompts) = counts.entry(of_row[row]).or_default();
                count.rows += 1;
                if table.labels[row].is_some() {
                    count.labels += 1;
                    prompts.insert(table.prompts.of_row()[row]);
                }
            }
            let counted = counts.into_iter().map(|(stratum, (count, prompts))| {
                let clusters = prompts.len();
                (stratum, Count { clusters, ..count })
            });
            counted.collect()
        });
        Self {
            by_policy: counts.collect(),
            of_row,
        }
    }

    /// Whether every stratum of a policy has labels enough.
    fn bears(&self, policy: usize) -> bool {
        let mut counts = self.by_policy[policy].values();
        counts.all(|count| !count.is_thin())
    }
}

/// Sums of one stratum.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    mass: f64,
    labelled: f64,
    residual: f64,
}

/// Mean residual of each stratum of a policy, with the stratum's share of the rows' mass. `None` where a stratum has too few
/// labels, or nobody said how labels were drawn.
fn intercepts(
    table: &Table,
    policy: usize,
    weights: Option<&[f64]>,
    residual: &dyn Fn(usize, f64) -> f64,
) -> Option<BTreeMap<u32, (f64, f64)>> {
    let strata = table.strata.as_ref()?;
    if !strata.bears(policy) {
        return None;
    }
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    let mut mass = 0.0;
    for row in table.policies[policy].clone() {
        let weight = weights.map_or(1.0, |weights| weights[row]);
        let of = sums.entry(strata.of_row[row]).or_default();
        mass += weight;
        of.mass += weight;
        if let Some(label) = table.labels[row] {
            of.labelled += weight;
            of.residual += weight * residual(row, label);
        }
    }
    let means = sums.into_iter();
    Some(
        means
            .map(|(stratum, of)| (stratum, (of.residual / of.labelled, of.mass / mass)))
            .collect(),
    )
}

/// What residuals of labelled rows add to the mean prediction.
pub(crate) fn correction(
    table: &Table,
    policy: usize,
    weights: Option<&[f64]>,
    residual: &dyn Fn(usize, f64) -> f64,
) -> Option<f64> {
    let means = intercepts(table, policy, weights, residual)?;
    Some(means.values().map(|(mean, share)| mean * share).sum())
}

/// What labels of a policy add to its row contributions.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// By row: mean residual of its stratum.
    intercepts: Vec<f64>,
    /// By row: 0 without a label, else its residual beyond that mean, weighted and inflated.
    deviations: Vec<f64>,
    /// By row: its stratum, where it was drawn from.
    strata: Vec<Option<u32>>,
    /// Degrees of freedom of each stratum that was drawn from.
    df: BTreeMap<u32, f64>,
}

impl Drawn {
    /// `None` as for the correction.
    pub(crate) fn new(
        table: &Table,
        policy: usize,
        residual: &dyn Fn(usize, f64) -> f64,
    ) -> Option<Self> {
        let means = intercepts(table, policy, None, residual)?;
        let strata = table.strata.as_ref()?;
        let counts = &strata.by_policy[policy];
        let mut found = Self {
            intercepts: Vec::new(),
            deviations: Vec::new(),
            strata: Vec::new(),
            df: BTreeMap::new(),
        };
        for row in table.policies[policy].clone() {
            let stratum = strata.of_row[row];
            let (count, (mean, _)) = (counts[&stratum], means[&stratum]);
            let weight = count.rows as f64 / count.labels as f64 * count.inflation();
            let beyond = |label: f64| weight * (residual(row, label) - mean);
            found.intercepts.push(mean);
            found.deviations.push(table.labels[row].map_or(0.0, beyond));
            found.strata.push((!count.is_whole()).then_some(stratum));
            if !count.is_whole() {
                found.df.insert(stratum, count.df());
            }
        }
        Some(found)
    }

    /// Contribution of a row of the policy, beside its prediction.
    pub(crate) fn contribution(&self, row: usize) -> f64 {
        self.intercepts[row] + self.deviations[row]
    }
}

/// A sampling variance by stratum.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ByStratum {
    total: f64,
    clusters: usize,
    /// Part of the labels of each stratum that was drawn from, and its degrees of freedom.
    parts: BTreeMap<u32, (f64, f64)>,
}

impl ByStratum {
    /// Of the labels of each side with its sign, its prompts and its rows, and of the variance in all.
    pub(crate) fn new(sides: &[(f64, &Drawn, &[u32])], total: f64, clusters: usize) -> Self {
        let mut by_prompt: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut df: BTreeMap<u32, f64> = BTreeMap::new();
        for (sign, drawn, prompts) in sides {
            let scale = sign / prompts.len() as f64;
            let rows = drawn.strata.iter().zip(&drawn.deviations).zip(*prompts);
            for ((stratum, deviation), prompt) in rows {
                if let Some(stratum) = stratum {
                    *by_prompt.entry((*stratum, *prompt)).or_default() += scale * deviation;
                }
            }
            for (stratum, own) in &drawn.df {
                let least = df.entry(*stratum).or_insert(*own);
                *least = least.min(*own);
            }
        }
        let mut parts: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for ((stratum, _), sum) in by_prompt {
            let part = parts.entry(stratum).or_insert((0.0, df[&stratum]));
            part.0 += sum * sum;
        }
        Self {
            total,
            clusters,
            parts,
        }
    }

    /// What is not from the draw of labels.
    fn rest(&self) -> f64 {
        let drawn: f64 = self.parts.values().map(|(part, _)| part).sum();
        (self.total - drawn).max(0.0)
    }

    /// By Welch and Satterthwaite over the strata, at least 1 and no more than prompts less one.
    pub(crate) fn df(&self) -> f64 {
        let most = self.clusters as f64 - 1.0;
        let rest = self.rest();
        let parts = self.parts.values().map(|(part, df)| part * part / df);
        let df = self.total * self.total / (parts.sum::<f64>() + rest * rest / most);
        // Without variance there is nothing to divide.
        if df.is_nan() {
            1.0
        } else {
            df.clamp(1.0, most.max(1.0))
        }
    }
}

/// An interval by stratum where the labels of one hardly vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The interval.
    pub interval: Interval,
    /// Whether all labels of some stratum are equal, so that only the ends of the scale bound it.
    pub has_equal: bool,
}

/// Reach of an interval on both sides of its value, squared: where few labels of a stratum are off its most common one,
/// Wilson's interval of their share tells how far its mean may lie (MOVER, Zou and Donner 2008); elsewhere Student's t.
fn bounded(
    table: &Table,
    policy: usize,
    (estimate, by_stratum): (f64, &ByStratum),
    (others, others_df): (f64, f64),
    alpha: f64,
) -> Option<Bounded> {
    let strata = table.strata.as_ref()?;
    let rows = table.policies[policy].clone();
    let size = rows.len() as f64;
    let t = |df: f64| distribution::t_quantile(1.0 - 0.5 * alpha, df);
    let squared = |variance: f64, df: f64| variance * t(df) * t(df);
    let rest = squared(by_stratum.rest() + others, others_df);
    let (mut below, mut above) = (rest, rest);
    let (mut is_rare, mut has_equal) = (false, false);
    for (&stratum, &(part, df)) in &by_stratum.parts {
        let of = |row: &usize| strata.of_row[*row] == stratum;
        let labels: Vec<(f64, u32)> = rows
            .clone()
            .filter(of)
            .filter_map(|row| Some((table.labels[row]?, table.prompts.of_row()[row])))
            .collect();
        let Some(found) = rare::in_stratum(&labels, alpha) else {
            below += squared(part, df);
            above += squared(part, df);
            continue;
        };
        is_rare = true;
        has_equal |= found.off_mode == 0;
        let values: Vec<f64> = labels.iter().map(|(label, _)| *label).collect();
        let (mean, share) = (
            math::mean(&values),
            strata.by_policy[policy][&stratum].rows as f64 / size,
        );
        let (low, high) = (
            share * (mean - found.bound.low).max(0.0),
            share * (found.bound.high - mean).max(0.0),
        );
        below += low * low;
        above += high * high;
    }
    is_rare.then(|| Bounded {
        interval: Interval {
            low: estimate - below.sqrt(),
            high: estimate + above.sqrt(),
        },
        has_equal,
    })
}

impl PolicyEstimate {
    /// The sampling variance by stratum; `None` unless strata correct it.
    pub(crate) fn by_stratum(&self, prompts: &[u32]) -> Option<ByStratum> {
        let (drawn, split) = (self.drawn.as_ref()?, self.split?);
        let sides = [(1.0, drawn, prompts)];
        Some(ByStratum::new(&sides, split.total(), split.clusters))
    }

    /// The interval where labels of a stratum hardly vary; `None` where they do in each, or where there is no interval.
    pub fn bounded(&self, table: &Table, policy: usize, alpha: f64) -> Option<Bounded> {
        let spread = self.spread.as_ref().ok()?;
        let found = self.by_stratum(table.prompts_of(policy))?;
        let value = (self.point.estimate, &found);
        bounded(table, policy, value, (spread.calibration, spread.df), alpha)
    }
}

/// What labels alone say, each standing for the rows of its stratum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// Their mean.
    pub mean: f64,
    /// Its t interval; `None` for one prompt.
    pub interval: Option<Interval>,
    /// The interval where labels of a stratum hardly vary.
    pub bounded: Option<Bounded>,
}

/// The mean of a policy's labels by stratum. `None` without labels, where a stratum has too few of them, or where nobody
/// said how they were drawn.
///
/// # Errors
/// [`SampleError`] for prompts that are not those of the table.
pub fn alone(table: &Table, policy: usize, alpha: f64) -> Result<Option<Alone>, SampleError> {
    let label = |_: usize, label: f64| label;
    let rows = table.policies[policy].clone();
    let both = (
        Drawn::new(table, policy, &label),
        correction(table, policy, None, &label),
    );
    let (Some(drawn), Some(mean)) = both else {
        return Ok(None);
    };
    let influence: Vec<f64> = (0..rows.len())
        .map(|row| drawn.contribution(row) - mean)
        .collect();
    let prompts = table.prompts_of(policy);
    let clusters = Clusters::numbered(prompts.to_vec(), table.prompts())?;
    let split = crv1::variance(&influence, &clusters, &vec![false; rows.len()]);
    let Ok(split) = split else {
        let (interval, bounded) = (None, None);
        return Ok(Some(Alone {
            mean,
            interval,
            bounded,
        }));
    };
    let total = SplitVariance::total(&split);
    let by_stratum = ByStratum::new(&[(1.0, &drawn, prompts)], total, split.clusters);
    let df = by_stratum.df();
    Ok(Some(Alone {
        mean,
        interval: Some(Interval::student(mean, total.sqrt(), df, alpha)),
        bounded: bounded(table, policy, (mean, &by_stratum), (0.0, df), alpha),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct::Row;

    /// One policy: of each stratum its number, its rows, and the labels of the first of them.
    fn table(strata: &[(u32, usize, &[f64])]) -> Table {
        let (mut rows, mut of_row) = (Vec::new(), Vec::new());
        for (stratum, size, labels) in strata {
            for place in 0..*size {
                rows.push(Row {
                    point: 0,
                    prompt: u32::try_from(rows.len()).unwrap(),
                    label: labels.get(place).copied(),
                    fit_row: None,
                });
                of_row.push(*stratum);
            }
        }
        let prompts = rows.len();
        Table::new(&[rows], prompts)
            .unwrap()
            .with_strata(of_row)
            .unwrap()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    // source: labels made up for the formula; what it gives has its source where it is asked.
    const FEW: [f64; 6] = [0.1, 0.3, 0.2, 0.4, 0.5, 0.3];
    const MANY: [f64; 8] = [0.6, 0.9, 0.8, 0.7, 0.5, 1.0, 0.75, 0.65];

    #[test]
    fn labels_alone_are_those_of_double_sampling_for_stratification() {
        let table = table(&[(250_000, 24, &FEW), (500_000, 16, &MANY)]);
        let found = alone(&table, 0, 0.05).unwrap().unwrap();
        // source: numpy 2.4.6 and scipy 1.17.1, of Cochran, Sampling Techniques, 12.2: mean sum W y, variance
        // sum W^2 s^2 / n + sum W (y - mean)^2 / N, the second and what N / (N - 1) adds with 39 degrees of freedom.
        close(found.mean, 0.475);
        let interval = found.interval.unwrap();
        close(interval.low, 0.362_894_534_424_199_1);
        close(interval.high, 0.587_105_465_575_801);
        assert_eq!(found.bounded, None);
        // Without weights: the mean of all 14 labels.
        let plain: f64 = FEW.iter().chain(&MANY).sum::<f64>() / 14.0;
        assert!((plain - 0.475).abs() > 0.07, "{plain}");
    }

    #[test]
    fn a_stratum_of_rare_labels_reaches_as_far_as_their_share_may() {
        let mut rare = [0.0; 30];
        rare[0] = 1.0;
        let mut even = [0.0; 40];
        even[..18].fill(1.0);
        let table = table(&[(100_000, 300, &rare), (400_000, 100, &even)]);
        let found = alone(&table, 0, 0.05).unwrap().unwrap();
        close(found.mean, 0.1375);
        // source: scipy 1.17.1, binomtest(1, 30).proportion_ci(method="wilson"), and t quantiles of the other parts.
        let bounded = found.bounded.unwrap();
        close(bounded.interval.low, 0.088_709_086_722_166_15);
        close(bounded.interval.high, 0.246_875_842_579_441_84);
        assert!(!bounded.has_equal);
    }

    #[test]
    fn a_stratum_with_too_few_labels_bears_nothing() {
        let thin = table(&[(250_000, 24, &FEW[..4]), (500_000, 16, &MANY)]);
        assert_eq!(alone(&thin, 0, 0.05), Ok(None));
        // Fewer rows than that, all labelled: nothing was drawn.
        let whole = table(&[(1_000_000, 3, &FEW[..3]), (500_000, 16, &MANY)]);
        let found = alone(&whole, 0, 0.05).unwrap().unwrap();
        // By hand: (3 x .2 + 16 x .7375) / 19.
        close(found.mean, 12.4 / 19.0);
    }

    /// A census of every stratum leaves what prompts differ by: s^2 / n of all labels.
    #[test]
    fn a_census_has_the_variance_of_its_labels() {
        let table = table(&[(1_000_000, 6, &FEW), (999_999, 8, &MANY)]);
        let found = alone(&table, 0, 0.05).unwrap().unwrap();
        let all: Vec<f64> = FEW.iter().chain(&MANY).copied().collect();
        let mean = math::mean(&all);
        close(found.mean, mean);
        let squares: f64 = all.iter().map(|of| (of - mean) * (of - mean)).sum();
        let error = (squares / 13.0 / 14.0).sqrt();
        let reach = distribution::t_quantile(0.975, 13.0) * error;
        close(found.interval.unwrap().width(), 2.0 * reach);
    }
}
