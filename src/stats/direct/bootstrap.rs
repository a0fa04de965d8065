//! The cluster bootstrap with exponential weights: every replicate refits the calibrator and re-estimates.

use rayon::prelude::*;

use crate::calibrator::Problem;
use crate::direct::Options;
use crate::direct::Table;
use crate::direct::point;
use crate::direct::point::Predictions;
use crate::draws::Draws;
use crate::inference;
use crate::inference::Interval;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;

/// Most replicates of a bootstrap: the estimates of each are held in memory.
pub const REPLICATES_MAX: usize = 1_000_000;

/// Weights of the clusters of each replicate.
pub trait ClusterWeights: Send + Sync {
    /// Replicates.
    fn replicates(&self) -> usize;
    /// One weight above 0 per cluster.
    fn weights(&self, replicate: usize, clusters: usize) -> Vec<f64>;
}

/// Independent standard exponential weights, -ln(1 - u) with u from 53 bits of `ChaCha20`, one stream a replicate.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    /// The seed, a leaf of the labelled seed tree.
    pub seed: [u8; 32],
    /// Replicates.
    pub replicates: usize,
}

impl ClusterWeights for Exponential {
    fn replicates(&self) -> usize {
        self.replicates
    }

    fn weights(&self, replicate: usize, clusters: usize) -> Vec<f64> {
        let mut draws = Draws::of(self.seed, replicate);
        (0..clusters).map(|_| draws.exponential()).collect()
    }
}

/// What the replicates came to, on the unit scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// Estimates by replicate, then policy.
    pub replicates: Vec<Vec<f64>>,
    /// Standard deviation of each policy's replicates (ddof 1).
    pub se: Vec<f64>,
    /// Percentile interval of each policy.
    pub intervals: Vec<Interval>,
}

impl Bootstrap {
    /// Difference of two policies: standard error, percentile interval, and
    /// p = min(1, 2 min(1 + #{d <= 0}, 1 + #{d >= 0}) / (B + 1)).
    ///
    /// # Errors
    /// [`Unfit::InsufficientData`] below 100 replicates.
    pub fn contrast(
        &self,
        first: usize,
        second: usize,
        alpha: f64,
    ) -> Result<(f64, Interval, f64), Unfit> {
        InsufficientData::unless("replicates", self.replicates.len(), 100)?;
        let differences: Vec<f64> = self
            .replicates
            .iter()
            .map(|estimates| estimates[first] - estimates[second])
            .collect();
        let below = 1 + differences.iter().filter(|d| **d <= 0.0).count();
        let above = 1 + differences.iter().filter(|d| **d >= 0.0).count();
        let p = 2.0 * below.min(above) as f64 / (differences.len() + 1) as f64;
        let se = inference::standard_deviation(&differences)?;
        let interval = Interval::percentile(&differences, alpha)?;
        Ok((se, interval, p.min(1.0)))
    }
}

/// Runs every replicate: clusters are weighted, the calibrator is refitted with the weights of its labelled rows'
/// clusters (its mode chosen anew if it was automatic), and each policy is estimated with weighted means.
///
/// `label_clusters` is the cluster of each labelled row of the problem; numbers below the table's prompts are its
/// prompts, those above are clusters of calibration rows that share no prompt with it, `clusters` in all. Replicates
/// run on all cores and give the same bits on any number of them. Source: `cje-eval` 0.9.3 cluster
/// bootstrap, CJE paper, section on uncertainty.
///
/// # Errors
/// [`SampleError`] for cluster numbers of `clusters` or more, a misaligned column, or more than [`REPLICATES_MAX`]
/// replicates; [`Unfit::InsufficientData`] below two replicates.
pub fn bootstrap(
    table: &Table,
    problem: &Problem<'_>,
    label_clusters: &[u32],
    clusters: usize,
    weights: &dyn ClusterWeights,
    options: &Options,
) -> Result<Bootstrap, Unfit> {
    let inside = |&cluster: &u32| (cluster as usize) < clusters;
    if label_clusters.len() != problem.labelled().len()
        || clusters < table.prompts()
        || !label_clusters.iter().all(inside)
    {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "label clusters",
            expected: "one cluster number, below their count, for each labelled row",
        }));
    }
    InsufficientData::unless("replicates", weights.replicates(), 2)?;
    if weights.replicates() > REPLICATES_MAX {
        return Err(Unfit::Invalid(SampleError::Parameter {
            name: "replicates",
            expected: "at most 1000000",
        }));
    }
    let replicates: Vec<Vec<f64>> = (0..weights.replicates())
        .into_par_iter()
        .map(|replicate| {
            let drawn = weights.weights(replicate, clusters);
            one(table, problem, label_clusters, &drawn, options)
        })
        .collect();
    let mut se = Vec::with_capacity(table.policies());
    let mut intervals = Vec::with_capacity(table.policies());
    for policy in 0..table.policies() {
        let values: Vec<f64> = replicates.iter().map(|row| row[policy]).collect();
        se.push(inference::standard_deviation(&values)?);
        intervals.push(Interval::percentile(&values, options.alpha)?);
    }
    Ok(Bootstrap {
        replicates,
        se,
        intervals,
    })
}

/// One replicate's estimates.
fn one(
    table: &Table,
    problem: &Problem<'_>,
    label_clusters: &[u32],
    drawn: &[f64],
    options: &Options,
) -> Vec<f64> {
    let of = |cluster: &u32| drawn[*cluster as usize];
    let label_weights: Vec<f64> = label_clusters.iter().map(of).collect();
    let row_weights: Vec<f64> = table.prompts.of_row().iter().map(of).collect();
    let fit = problem.fit(Some(&label_weights));
    let at_point = problem.at_points(&fit.full);
    let predictions = Predictions {
        at_point: &at_point,
        out_of_fold: Some(&fit.out_of_fold),
        raw: false,
    };
    (0..table.policies())
        .map(|policy| {
            point::estimate(table, policy, predictions, Some(&row_weights), options).estimate
        })
        .collect()
}
