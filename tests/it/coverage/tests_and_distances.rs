//! Levels of tests, error rates of families of tests, coverage of intervals, and run lengths of control charts.

use clover::stats::distance;
use clover::stats::distance::Method;
use clover::stats::monitor::Cusum;
use clover::stats::monitor::InControl;
use clover::stats::multiplicity;
use clover::stats::multiplicity::MultiplicityCorrection;
use clover::stats::multiplicity::PValues;
use clover::stats::rank;
use clover::stats::sample::Clusters;
use clover::stats::sample::Values;
use clover::stats::student;
use clover::stats::student::Alternative;

use crate::coverage::World;
use crate::coverage::worlds;

/// The level of single tests.
const LEVEL: f64 = 0.05;

impl World {
    fn column(&mut self, rows: usize, draw: impl Fn(&mut Self) -> f64) -> Vec<f64> {
        (0..rows).map(|_| draw(self)).collect()
    }
}

/// A mean over worlds with its Monte Carlo error.
#[derive(Default)]
struct Tally {
    sum: f64,
    squares: f64,
    of: f64,
}

impl Tally {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
        self.of += 1.0;
    }

    fn count(&mut self, hit: bool) {
        self.add(if hit { 1.0 } else { 0.0 });
    }

    fn mean(&self) -> f64 {
        self.sum / self.of
    }

    fn error(&self) -> f64 {
        let mean = self.mean();
        ((self.squares / self.of - mean * mean).max(0.0) / self.of).sqrt()
    }

    /// Prints a row and holds the mean to the claim [low, high], widened by three Monte Carlo errors.
    fn within(&self, name: &str, low: f64, high: f64) {
        let (mean, error) = (self.mean(), self.error());
        eprintln!("| {name} | {mean:.4} | {error:.4} | {} |", self.of);
        assert!(
            mean >= low - 3.0 * error && mean <= high + 3.0 * error,
            "{name}: {mean:.4} (Monte Carlo error {error:.4}) is not in [{low}, {high}]"
        );
    }
}

fn values(x: &[f64]) -> Values<'_> {
    Values::new("x", x).unwrap()
}

/// 20 slices of 25 rows, the first 5 with a mean of 0.8 deviations; `shared` is the correlation between slices.
fn family(world: &mut World, shared: f64) -> Vec<f64> {
    let common = world.column(25, World::normal);
    (0..20)
        .map(|slice| {
            let shift = if slice < 5 { 0.8 } else { 0.0 };
            let rows: Vec<f64> = common
                .iter()
                .map(|common| {
                    shift + shared.sqrt() * common + (1.0 - shared).sqrt() * world.normal()
                })
                .collect();
            let estimate = student::one_sample(values(&rows)).unwrap();
            let tested = estimate.test(0.0, Alternative::Greater).unwrap();
            tested.p().unwrap()
        })
        .collect()
}

/// Share of rejections that are false (0 without rejections), and whether any is.
fn false_discoveries(p: &[f64], correction: MultiplicityCorrection, level: f64) -> (f64, bool) {
    let corrected = multiplicity::correct(PValues::new(p).unwrap(), correction, level).unwrap();
    let rejected = |rows: &[bool]| rows.iter().filter(|reject| **reject).count();
    let (all, wrong) = (
        rejected(&corrected.reject),
        rejected(&corrected.reject[5..]),
    );
    (wrong as f64 / all.max(1) as f64, wrong > 0)
}

#[test]
fn benjamini_hochberg_holds_its_false_discovery_rate() {
    let (mut independent, mut dependent) = (Tally::default(), Tally::default());
    let (mut yekutieli, mut holm) = (Tally::default(), Tally::default());
    let mut power = Tally::default();
    for number in 0..worlds(300, 4000) {
        let mut world = World::new(1, number);
        let p = family(&mut world, 0.0);
        independent.add(false_discoveries(&p, MultiplicityCorrection::BenjaminiHochberg, 0.1).0);
        holm.count(false_discoveries(&p, MultiplicityCorrection::Holm, LEVEL).1);
        let family_p = PValues::new(&p).unwrap();
        let corrected =
            multiplicity::correct(family_p, MultiplicityCorrection::BenjaminiHochberg, 0.1)
                .unwrap();
        power.add(
            corrected.reject[..5]
                .iter()
                .filter(|reject| **reject)
                .count() as f64
                / 5.0,
        );
        let p = family(&mut world, 0.5);
        dependent.add(false_discoveries(&p, MultiplicityCorrection::BenjaminiHochberg, 0.1).0);
        yekutieli.add(false_discoveries(&p, MultiplicityCorrection::BenjaminiYekutieli, 0.1).0);
    }
    // Independent tests of exact level: the rate is q times the share of true nulls, 0.1 * 15 / 20.
    independent.within("BH FDR, q 0.10, independent slices", 0.075, 0.075);
    dependent.within("BH FDR, q 0.10, slices correlated 0.5", 0.0, 0.1);
    yekutieli.within("BY FDR, q 0.10, slices correlated 0.5", 0.0, 0.1);
    holm.within("Holm familywise error, 0.05", 0.0, 0.05);
    power.within("BH power, 0.8 deviations, 25 rows", 0.85, 1.0);
}

#[test]
fn tests_of_means_hold_their_level() {
    let (mut plain, mut robust, mut naive) = (Tally::default(), Tally::default(), Tally::default());
    for number in 0..worlds(600, 8000) {
        let mut world = World::new(2, number);
        let reject = |rows: &[f64], clusters: Option<&Clusters>| {
            let estimate = match clusters {
                Some(clusters) => student::cluster_robust(values(rows), clusters, None).unwrap(),
                None => student::one_sample(values(rows)).unwrap(),
            };
            let tested = estimate.test(0.0, Alternative::TwoSided).unwrap();
            tested.p().unwrap() <= LEVEL
        };
        plain.count(reject(&world.column(8, World::normal), None));
        let (mut rows, mut of_row) = (Vec::new(), Vec::new());
        for cluster in 0..40 {
            let common = world.normal();
            for _ in 0..3 + cluster % 5 {
                rows.push(common + world.normal());
                of_row.push(cluster);
            }
        }
        robust.count(reject(&rows, Some(&Clusters::of(of_row).unwrap())));
        naive.count(reject(&rows, None));
    }
    plain.within("t-test level 0.05, 8 normal rows", LEVEL, LEVEL);
    // With few clusters of unequal size the CRV1 variance is a little small.
    robust.within(
        "cluster-robust level 0.05, 40 clusters",
        LEVEL - 0.01,
        LEVEL + 0.02,
    );
    naive.within("row-wise level 0.05, same rows: wrong", 0.15, 1.0);
}

#[test]
fn kolmogorov_smirnov_tests_hold_their_level() {
    let (mut exact, mut asymptotic) = (Tally::default(), Tally::default());
    for number in 0..worlds(400, 4000) {
        let mut world = World::new(3, number);
        let (a, b) = (
            world.column(23, World::uniform),
            world.column(31, World::uniform),
        );
        let counts = distance::ks_counts(values(&a), values(&b));
        let p = |method| counts.test(Alternative::TwoSided, method).p;
        exact.count(p(Method::Exact) <= LEVEL);
        asymptotic.count(p(Method::Asymptotic) <= LEVEL);
    }
    // The statistic is discrete: at these sizes its exact test rejects between 0.04 and 0.05.
    exact.within("KS exact level 0.05, 23 and 31 rows", 0.04, LEVEL);
    asymptotic.within("KS asymptotic level 0.05, same rows", 0.02, LEVEL + 0.01);
}

#[test]
fn rank_drift_holds_its_level_and_finds_a_reversal() {
    let (mut level, mut power) = (Tally::default(), Tally::default());
    for number in 0..worlds(150, 2000) {
        let mut world = World::new(4, number);
        let (mut before, mut same, mut moved, mut groups) = (vec![], vec![], vec![], vec![]);
        for group in 0..6_u32 {
            for _ in 0..15 {
                let row = world.normal();
                let score = |world: &mut World, mean: f64| mean + row + 0.5 * world.normal();
                let mean = 0.15 * f64::from(group);
                before.push(score(&mut world, mean));
                same.push(score(&mut world, mean + 0.4));
                moved.push(score(&mut world, 0.75 - mean));
                groups.push(group);
            }
        }
        let groups = Clusters::of(groups).unwrap();
        let each = Clusters::singletons(before.len()).unwrap();
        let p = |after: &[f64]| {
            rank::rank_drift(values(&before), values(after), &groups, &each, [9; 32], 199)
                .unwrap()
                .unwrap()
                .p
        };
        level.count(p(&same) <= LEVEL);
        power.count(p(&moved) <= LEVEL);
    }
    level.within("rank drift level 0.05, a shift of all", 0.0, LEVEL);
    power.within("rank drift power, ranking reversed", 0.5, 1.0);
}

#[test]
fn cumulative_sums_have_the_run_lengths_of_the_textbook() {
    let chart = Cusum::new(InControl::new(0.0, 1.0).unwrap(), 0.5, 4.0).unwrap();
    // source: Montgomery, Introduction to Statistical Quality Control, table 9.3 (k = 1/2, h = 4).
    for (shift, rows) in [(0.0, 168.0), (0.5, 26.6), (1.0, 8.38), (2.0, 3.34)] {
        let mut length = Tally::default();
        for number in 0..worlds(150, 2000) {
            let mut world = World::new(7, number);
            let series = world.column(2500, |world| shift + world.normal());
            let signal = chart.follow(values(&series)).signal;
            length.add(signal.map_or(2500.0, |signal| signal.row as f64 + 1.0));
        }
        let name = format!("CUSUM run length at a shift of {shift}");
        length.within(&name, rows - 0.01, rows + 0.01);
    }
}
