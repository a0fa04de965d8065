//! The confirm test, H0: E d >= 0 against E d < 0, by betting, by t and by bootstrap.

use rayon::prelude::*;

use crate::crv1::ClusteredMean;
use crate::distribution;
use crate::draws::Draws;
use crate::eprocess::bettor;
use crate::eprocess::bettor::FRACTIONS;
use crate::predicate::losses::Losses;
use crate::sample::InsufficientData;
use crate::sample::SampleError;
use clover_num::math;

/// Replicates of the bootstrap.
pub const BOOTSTRAP_REPLICATES: usize = 2000;
/// Clusters with a moved row below which an asymptotic test says nothing.
pub const CONFIRM_CLUSTERS_MIN: usize = 30;
/// H1: z above which a confirm result did not replicate dev.
const REPLICATION_Z: f64 = 1.645;
/// H1: share of the dev improvement below which a confirm result did not replicate it.
const REPLICATION_SHRINK: f64 = 0.5;

/// The exact test by betting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BettingTest {
    /// Units that were bet on: clusters.
    pub units: usize,
    /// Logarithm of the wealth.
    pub ln_wealth: f64,
    /// `min(1, 1 / wealth)`.
    pub p: f64,
}

/// Exact p by a grid-Kelly mixture: `W = (1/K) sum_k prod_i (1 - f_k d_i / H)`, `f_k = k / (K + 1)`, K = 20.
///
/// The units are clusters, each by the mean of its rows. Every factor has mean at most 1 under H0 and is above 0, so
/// P(1/W <= alpha) <= alpha in every world. W depends on the values, not on their order. Source: Cover 1991; Waudby-Smith and Ramdas 2024.
pub fn betting(losses: &Losses) -> BettingTest {
    let units = losses.cluster_means();
    let bound = losses.bound();
    if bound <= 0.0 {
        // No reward moved, so every difference is 0.
        return BettingTest {
            units: units.len(),
            ln_wealth: 0.0,
            p: 1.0,
        };
    }
    let returns: Vec<f64> = units.iter().map(|d| -(d / bound)).collect();
    let ln_wealth = bettor::ln_wealth(&returns, FRACTIONS);
    BettingTest {
        units: units.len(),
        ln_wealth,
        p: math::exp(-ln_wealth).min(1.0),
    }
}

/// p by Student's t: P(T <= DMSE / SE) with clusters - 1 df; `None` for one cluster or without spread.
pub fn t_p(mean: &ClusteredMean) -> Option<f64> {
    Some(distribution::t_cdf(mean.t(0.0)?, mean.df()))
}

/// p by a centred paired cluster bootstrap: whole clusters are drawn with replacement, and
/// `p = (1 + #{DMSE*_b - DMSE <= DMSE}) / (B + 1)`.
///
/// # Errors
/// [`InsufficientData`] for one cluster, or without replicates.
pub fn bootstrap_p(
    losses: &Losses,
    replicates: usize,
    seed: [u8; 32],
) -> Result<f64, InsufficientData> {
    InsufficientData::unless("replicates", replicates, 1)?;
    let clusters = losses.clusters();
    let rows = clusters.totals(&vec![1.0; losses.differences().len()]);
    let totals = clusters.totals(losses.differences());
    let units: Vec<(f64, f64)> = totals
        .into_iter()
        .zip(rows)
        .filter(|(_, rows)| *rows > 0.0)
        .collect();
    InsufficientData::unless("clusters", units.len(), 2)?;
    let mean = losses.mean().mean;
    let below = |replicate: usize| {
        let mut draws = Draws::of(seed, replicate);
        let (mut total, mut weight) = (0.0, 0.0);
        for _ in 0..units.len() {
            let at = draws.below(units.len());
            total += units[at].0;
            weight += units[at].1;
        }
        usize::from(total / weight - mean <= mean)
    };
    let count: usize = (0..replicates).into_par_iter().map(below).sum();
    Ok((1.0 + count as f64) / (replicates as f64 + 1.0))
}

/// The registered test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmTest {
    /// Exact, in every world.
    Betting,
    /// Asymptotic.
    StudentT,
    /// Asymptotic.
    Bootstrap,
}

impl ConfirmTest {
    /// Whether its level holds only for many moved clusters; reports say so.
    pub fn is_asymptotic(self) -> bool {
        self != Self::Betting
    }
}

/// Statistics of a confirm block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confirm {
    /// DMSE.
    pub mean: ClusteredMean,
    /// Largest difference that any labels could give.
    pub bound: f64,
    /// The exact test.
    pub betting: BettingTest,
    /// p by t; `None` for one cluster or without spread.
    pub t_p: Option<f64>,
    /// p by bootstrap; `None` for one cluster.
    pub bootstrap_p: Option<f64>,
    /// Clusters with a reward that moved by at least 0.005.
    pub moved_clusters: usize,
}

/// What a confirm test comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmOutcome {
    /// DMSE <= -eta and p <= level.
    Pass,
    /// One of them does not hold.
    Fail,
    /// The registered test has no p, or too few clusters moved for an asymptotic one.
    Inconclusive,
}

/// All three tests of a confirm block.
pub fn confirm(losses: &Losses, replicates: usize, seed: [u8; 32]) -> Confirm {
    let mean = losses.mean();
    Confirm {
        mean,
        bound: losses.bound(),
        betting: betting(losses),
        t_p: t_p(&mean),
        bootstrap_p: bootstrap_p(losses, replicates, seed).ok(),
        moved_clusters: losses.moved_clusters(),
    }
}

impl Confirm {
    /// p of a test.
    pub fn p(&self, test: ConfirmTest) -> Option<f64> {
        match test {
            ConfirmTest::Betting => Some(self.betting.p),
            ConfirmTest::StudentT => self.t_p,
            ConfirmTest::Bootstrap => self.bootstrap_p,
        }
    }

    /// Gate P8: DMSE <= -eta and p <= `level` (alpha divided by the hypotheses) under the registered test.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless eta is at least 0 and the level lies in (0, 1).
    pub fn decide(
        &self,
        test: ConfirmTest,
        eta: f64,
        level: f64,
    ) -> Result<ConfirmOutcome, SampleError> {
        if !(eta >= 0.0 && level > 0.0 && level < 1.0) {
            return Err(SampleError::Parameter {
                name: "eta or level",
                expected: "eta of at least 0 and a level in (0, 1)",
            });
        }
        if test.is_asymptotic() && self.moved_clusters < CONFIRM_CLUSTERS_MIN {
            return Ok(ConfirmOutcome::Inconclusive);
        }
        let Some(p) = self.p(test) else {
            return Ok(ConfirmOutcome::Inconclusive);
        };
        if self.mean.mean <= -eta && p <= level {
            return Ok(ConfirmOutcome::Pass);
        }
        Ok(ConfirmOutcome::Fail)
    }
}

/// H1: how a confirm result compares with dev.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replication {
    /// `(DMSE_conf - DMSE_dev) / sqrt(SE_conf^2 + SE_dev^2)`; `None` without either error.
    pub z: Option<f64>,
    /// `DMSE_conf / DMSE_dev`; `None` if dev did not improve.
    pub shrink: Option<f64>,
    /// z above 1.645, shrink below 0.5, or neither has a value.
    pub warns: bool,
}

/// Compares the improvement on confirm with that on dev.
pub fn replication(dev: &ClusteredMean, conf: &ClusteredMean) -> Replication {
    let z = match (dev.standard_error(), conf.standard_error()) {
        (Some(dev_error), Some(conf_error)) => {
            let error = (dev_error * dev_error + conf_error * conf_error).sqrt();
            (error > 0.0).then(|| (conf.mean - dev.mean) / error)
        }
        _ => None,
    };
    let shrink = (dev.mean < 0.0).then(|| conf.mean / dev.mean);
    let far = z.is_some_and(|z| z > REPLICATION_Z);
    let small = shrink.is_some_and(|shrink| shrink < REPLICATION_SHRINK);
    Replication {
        z,
        shrink,
        warns: far || small || (z.is_none() && shrink.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::crv1::SplitVariance;
    use crate::sample::Clusters;
    use crate::sample::Values;

    fn losses(y: &[f64], r: &[f64], s: &[f64], clusters: &Clusters) -> Losses {
        let values = |values| Values::new("values", values).unwrap();
        Losses::new(values(y), values(r), values(s), clusters).unwrap()
    }

    #[test]
    fn the_wealth_is_the_mean_of_the_products() {
        // source: by hand; H = .36 at Y = 0 from R .8 to .2 is negative, so H = .8^2 - .2^2 at Y = 1.
        let (y, r, s) = ([0.0, 1.0, 0.5], [0.8, 0.8, 0.8], [0.2, 0.2, 0.2]);
        let found = losses(&y, &r, &s, &Clusters::singletons(3).unwrap());
        assert!((found.bound() - 0.6).abs() < 1e-15);
        let mut wealth = 0.0;
        for k in 1..=20 {
            let f = f64::from(k) / 21.0;
            // d = -.6, .6, 0, in units of H: -1, 1, 0.
            wealth += (1.0 + f) * (1.0 - f) / 20.0;
        }
        let bet = betting(&found);
        assert!((math::exp(bet.ln_wealth) - wealth).abs() < 1e-14);
        assert!((bet.p - 1.0).abs() < 1e-15, "p is at most 1");
    }

    #[test]
    fn perfect_data_are_convincing() {
        let (y, r, s) = ([0.0; 20], [0.5; 20], [0.0; 20]);
        let found = losses(&y, &r, &s, &Clusters::singletons(20).unwrap());
        // H = 1 - .25 at Y = 1, d = -.25: twenty steps of 1 + f / 3.
        let wealth: f64 = (1..=20)
            .map(|k| {
                let step = 1.0 + f64::from(k) / 21.0 / 3.0;
                (0..20).fold(1.0, |product, _| product * step) / 20.0
            })
            .sum();
        assert!((betting(&found).p * wealth - 1.0).abs() < 1e-12);
        assert_eq!(found.moved_clusters(), 20);
        // Without spread there is no t; the exact test still speaks.
        assert_eq!(t_p(&found.mean()), None);
        let all = confirm(&found, 50, [7; 32]);
        let decide = |test| all.decide(test, 0.001, 0.0125).unwrap();
        assert_eq!(decide(ConfirmTest::StudentT), ConfirmOutcome::Inconclusive);
        assert!(all.decide(ConfirmTest::Betting, f64::NAN, 0.0125).is_err());
    }

    #[test]
    fn nothing_moved_is_no_evidence() {
        let (y, r) = ([0.2, 0.9, 0.4], [0.3, 0.6, 0.5]);
        let found = losses(&y, &r, &r, &Clusters::singletons(3).unwrap());
        let all = confirm(&found, 99, [1; 32]);
        assert!((all.betting.p - 1.0).abs() < 1e-15);
        assert_eq!(all.bootstrap_p, Some(1.0));
        assert_eq!(all.t_p, None);
        assert_eq!(all.moved_clusters, 0);
        let decide = |test| all.decide(test, 0.0, 0.05).unwrap();
        assert_eq!(decide(ConfirmTest::Betting), ConfirmOutcome::Fail);
        assert_eq!(decide(ConfirmTest::Bootstrap), ConfirmOutcome::Inconclusive);
    }

    #[test]
    fn labels_outside_the_unit_interval_are_refused() {
        let values = |values| Values::new("values", values).unwrap();
        let clusters = Clusters::singletons(2).unwrap();
        let (y, r) = ([0.5, 1.5], [0.5, 0.5]);
        let found = Losses::new(values(&y), values(&r), values(&r), &clusters);
        assert!(matches!(found, Err(SampleError::OutOfRange { row: 1, .. })));
    }

    #[test]
    fn the_bootstrap_is_the_same_on_any_number_of_threads() {
        let y: Vec<f64> = (0..60).map(|i| f64::from(i * 17 % 60) / 60.0).collect();
        let r: Vec<f64> = y.iter().map(|y| 0.5 * y + 0.2).collect();
        let s: Vec<f64> = y.iter().map(|y| 0.4 * y + 0.3).collect();
        let clusters = Clusters::of((0..60).map(|i| i / 3)).unwrap();
        let found = losses(&y, &r, &s, &clusters);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap()
                .install(|| bootstrap_p(&found, 500, [3; 32]).unwrap())
        };
        assert_eq!(run(1).to_bits(), run(2).to_bits());
        let one = Clusters::of((0..60).map(|_| 0)).unwrap();
        assert!(bootstrap_p(&losses(&y, &r, &s, &one), 500, [3; 32]).is_err());
    }

    #[test]
    fn replication_warns_of_shrinkage() {
        let mean = |mean: f64, error: f64| ClusteredMean {
            rows: 100,
            clusters: 100,
            mean,
            variance: Some(SplitVariance {
                labelled: 0.0,
                unlabelled: error * error,
                labelled_clusters: 0,
                clusters: 100,
            }),
            effective_clusters: 100.0,
        };
        let good = replication(&mean(-0.003, 0.001), &mean(-0.002, 0.001));
        assert!(!good.warns);
        let far = replication(&mean(-0.003, 0.0003), &mean(-0.0018, 0.0003));
        assert!((far.z.unwrap() - 0.0012 / (0.0003 * 2.0_f64.sqrt())).abs() < 1e-12);
        assert!(far.warns);
        assert!(replication(&mean(-0.003, 0.001), &mean(-0.001, 0.001)).warns);
        assert_eq!(
            replication(&mean(0.001, 0.001), &mean(0.0, 0.001)).shrink,
            None
        );
    }

    proptest! {
        #[test]
        fn no_difference_exceeds_the_bound_and_order_does_not_matter(
            rows in prop::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64, 0.0..=1.0_f64), 2..60),
        ) {
            let column = |pick: fn(&(f64, f64, f64)) -> f64| rows.iter().map(pick).collect::<Vec<_>>();
            let (y, r, s) = (column(|row| row.0), column(|row| row.1), column(|row| row.2));
            let clusters = Clusters::singletons(rows.len()).unwrap();
            let found = losses(&y, &r, &s, &clusters);
            for d in found.differences() {
                prop_assert!(*d <= found.bound() + 1e-15);
            }
            let turned = |values: &Vec<f64>| values.iter().rev().copied().collect::<Vec<_>>();
            let back = losses(&turned(&y), &turned(&r), &turned(&s), &clusters);
            let (a, b) = (betting(&found), betting(&back));
            prop_assert!((a.ln_wealth - b.ln_wealth).abs() < 1e-9);
            prop_assert!(a.p > 0.0 && a.p <= 1.0);
        }
    }
}
