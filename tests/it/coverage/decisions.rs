//! Levels and power of the confirm test, coverage of transport and pooled intervals, and what pooling gains.

use clover::stats::inference::Interval;
use clover::stats::pooling;
use clover::stats::pooling::Group;
use clover::stats::predicate;
use clover::stats::predicate::Losses;
use clover::stats::sample::Clusters;
use clover::stats::sample::Values;
use clover::stats::transport;
use clover::stats::transport::Probe;
use clover::stats::transport::TransportTerms;

use crate::coverage::World;
use crate::coverage::is_slow;
use crate::coverage::worlds;

/// Level of the confirm test, 0.05 over four families.
const LEVEL: f64 = 0.0125;

impl World {
    fn coin(&mut self, p: f64) -> f64 {
        if self.uniform() < p { 1.0 } else { 0.0 }
    }
}

/// A counted rate.
#[derive(Clone, Copy, Default)]
pub(super) struct Rate {
    hits: u64,
    of: u64,
}

impl Rate {
    pub(super) fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    pub(super) fn value(self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// Its Monte Carlo error if the true rate were `truth`.
    pub(super) fn error_at(self, truth: f64) -> f64 {
        (truth * (1.0 - truth) / self.of as f64).sqrt()
    }

    pub(super) fn row(self, name: &str) {
        let rate = self.value();
        let error = self.error_at(rate.clamp(0.005, 0.995));
        println!("| {name} | {rate:.4} | {error:.4} | {} |", self.of);
    }

    pub(super) fn within(self, name: &str, low: f64, high: f64) {
        self.row(name);
        let rate = self.value();
        assert!(
            rate >= low - 3.0 * self.error_at(low) && rate <= high + 3.0 * self.error_at(high),
            "{name}: {rate} is not in [{low}, {high}]"
        );
    }
}

fn values(values: &[f64]) -> Values<'_> {
    Values::new("values", values).unwrap()
}

/// One row of a world: label, reward before, reward after.
type Row = (f64, f64, f64);

fn losses(rows: &[Row], clusters: &Clusters) -> Losses {
    let column = |pick: fn(&Row) -> f64| rows.iter().map(pick).collect::<Vec<f64>>();
    let (y, r, s) = (
        column(|row| row.0),
        column(|row| row.1),
        column(|row| row.2),
    );
    Losses::new(values(&y), values(&r), values(&s), clusters).unwrap()
}

/// Every reward moves a little, either way; E d = 0 because the label's mean lies half way.
fn dense(world: &mut World, rows: usize) -> Vec<Row> {
    (0..rows)
        .map(|_| {
            let before = 0.2 + 0.6 * world.uniform();
            let after = before + 0.1 * (world.uniform() - 0.5);
            (world.coin(0.5 * (before + after)), before, after)
        })
        .collect()
}

/// A tenth of the rewards moves; E d = 0.
fn sparse(world: &mut World, rows: usize, before: f64, after: f64) -> Vec<Row> {
    (0..rows)
        .map(|_| {
            if world.uniform() < 0.1 {
                (world.coin(0.5 * (before + after)), before, after)
            } else {
                let still = world.uniform();
                (world.coin(still), still, still)
            }
        })
        .collect()
}

/// How often each test rejects in worlds without an effect.
fn levels(name: &str, seed: u8, draw: &dyn Fn(&mut World) -> Vec<Row>) -> [Rate; 3] {
    let replicates = if is_slow() { 999 } else { 199 };
    let (many, few) = (worlds(1500, 20_000), worlds(60, 2_000));
    let mut rates = [Rate::default(); 3];
    for number in 0..many {
        let rows = draw(&mut World::new(seed, number));
        let clusters = Clusters::singletons(rows.len()).unwrap();
        let found = losses(&rows, &clusters);
        rates[0].count(predicate::betting(&found).p <= LEVEL);
        let t = predicate::t_p(&found.mean());
        rates[1].count(t.is_some_and(|p| p <= LEVEL));
        if number < few {
            let mut key = [seed; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            let p = predicate::bootstrap_p(&found, replicates, key).unwrap();
            rates[2].count(p <= LEVEL);
        }
    }
    rates[0].within(&format!("{name}, betting"), 0.0, LEVEL);
    rates[1].row(&format!("{name}, t"));
    rates[2].row(&format!("{name}, bootstrap"));
    rates
}

#[test]
fn betting_holds_its_level_in_every_world() {
    println!("| confirm test at E d = 0, nominal {LEVEL} | rejects | error | worlds |");
    let found = levels("dense, n 120", 1, &|world| dense(world, 120));
    // Spread over all rows, the t test is close to its level too.
    found[1].within("dense, n 120, t", 0.5 * LEVEL, 2.0 * LEVEL);
    levels("sparse symmetric, n 300", 2, &|world| {
        sparse(world, 300, 0.45, 0.55)
    });
    let skewed = levels("sparse skewed, n 120", 3, &|world| {
        sparse(world, 120, 0.20, 0.02)
    });
    // source: CLOVER v1.1, section 5, error control: the t test rejects .26 at n = 120 and .075 at n = 300.
    skewed[1].within("sparse skewed, n 120, t", 0.25, 0.27);
    let skewed = levels("sparse skewed, n 300", 4, &|world| {
        sparse(world, 300, 0.20, 0.02)
    });
    skewed[1].within("sparse skewed, n 300, t", 0.065, 0.085);
}

#[test]
fn betting_holds_its_level_for_clustered_rows() {
    println!("| clusters of 4 with one label, E d = 0 | rejects | error | worlds |");
    let mut rates = [Rate::default(); 2];
    for number in 0..worlds(500, 4_000) {
        let mut world = World::new(5, number);
        let mut rows = Vec::new();
        for _ in 0..60 {
            let label = world.coin(0.45);
            rows.extend([(label, 0.6, 0.3); 4]);
        }
        let clusters = Clusters::of((0..rows.len()).map(|row| row / 4)).unwrap();
        let found = losses(&rows, &clusters);
        rates[0].count(predicate::betting(&found).p <= LEVEL);
        let pooled = losses(&rows, &Clusters::singletons(rows.len()).unwrap());
        rates[1].count(predicate::betting(&pooled).p <= LEVEL);
    }
    rates[0].within("one bet per cluster", 0.0, LEVEL);
    // Taking rows of one cluster for independent breaks the level: why the unit is the cluster.
    rates[1].row("one bet per row");
    assert!(rates[1].value() > 2.0 * LEVEL);
}

#[test]
fn power_is_what_sizing_promises() {
    println!("| R .8 to .6 on 8 % of rows, DMSE -.0031, sd .021 | rejects | error | worlds |");
    for (rows, t_power, betting_power) in [(440, 0.878, 0.586), (609, 0.969, 0.832)] {
        let mut rates = [Rate::default(); 2];
        for number in 0..worlds(300, 4_000) {
            let mut world = World::new(6, number);
            let drawn: Vec<Row> = (0..rows)
                .map(|_| {
                    if world.uniform() < 0.08 {
                        let label = 0.603 + 0.158 * world.normal();
                        (label.clamp(0.0, 1.0), 0.8, 0.6)
                    } else {
                        (0.5, 0.5, 0.5)
                    }
                })
                .collect();
            let found = losses(&drawn, &Clusters::singletons(rows).unwrap());
            let t = predicate::t_p(&found.mean());
            rates[0].count(t.is_some_and(|p| p <= LEVEL));
            rates[1].count(predicate::betting(&found).p <= LEVEL);
        }
        // source: numpy 2.4.6 and scipy 1.17.1, the same world written again, 8,000 times each (error .005).
        for (name, rate, power) in [
            ("t", rates[0], t_power),
            ("betting", rates[1], betting_power),
        ] {
            rate.within(&format!("{name}, n {rows}"), power - 0.015, power + 0.015);
        }
    }
}

/// Coverage of the audit's interval for the mean residual of a calibrator that is off by `bias`.
fn transport_coverage(seed: u8, clusters: usize, size: usize, bias: f64) -> Rate {
    let mut rate = Rate::default();
    for number in 0..worlds(600, 4_000) {
        let mut world = World::new(seed, number);
        let (mut predictions, mut labels, mut of_row) = (Vec::new(), Vec::new(), Vec::new());
        for cluster in 0..clusters {
            let quality = 0.2 + 0.6 * world.uniform();
            // Rows of a cluster share part of their luck.
            let luck = world.coin(quality);
            for _ in 0..size {
                let own = world.coin(quality);
                labels.push(if world.uniform() < 0.3 { luck } else { own });
                predictions.push(quality - bias);
                of_row.push(cluster);
            }
        }
        let of_row = Clusters::of(of_row).unwrap();
        let probe = Probe::new(values(&predictions), values(&labels), &of_row, None).unwrap();
        let audit = transport::audit(&probe, &TransportTerms::new(Some(0.05)), None).unwrap();
        rate.count(audit.narrow.interval.unwrap().contains(bias));
    }
    rate
}

#[test]
fn transport_intervals_cover() {
    println!("| 95 % interval of the mean residual | covers | error | worlds |");
    for (seed, clusters, size, bias) in [
        (10, 100, 1, 0.0),
        (11, 200, 1, 0.05),
        (12, 100, 3, 0.0),
        (13, 60, 2, -0.05),
    ] {
        let rate = transport_coverage(seed, clusters, size, bias);
        rate.within(
            &format!("{clusters} clusters of {size}, bias {bias}"),
            0.93,
            0.97,
        );
    }
}

#[test]
fn pooling_beats_raw_means() {
    println!(
        "| pooled 95 % intervals of 10 slices | covers | error | intervals | squared error, share of raw |"
    );
    // Between-slice deviations, and whether one slice is a lone outlier of 0.25.
    for (seed, between, outlier) in [
        (20, 0.0, false),
        (21, 0.02, false),
        (22, 0.05, false),
        (23, 0.10, false),
        (24, 0.01, true),
    ] {
        let (mut covers, mut raw_covers) = (Vec::new(), Vec::new());
        let (mut pooled_error, mut raw_error) = (0.0, 0.0);
        for number in 0..worlds(300, 2_000) {
            let (groups, truths) = slices(&mut World::new(seed, number), between, outlier);
            let pooled = pooling::partial(&groups).unwrap().unwrap();
            let (mut inside, mut raw_inside) = (0.0, 0.0);
            for ((shrunk, group), truth) in pooled.groups.iter().zip(&groups).zip(&truths) {
                let holds = |interval: Interval| f64::from(interval.contains(*truth));
                inside += holds(shrunk.interval) / 10.0;
                raw_inside += holds(shrunk.raw_interval.unwrap()) / 10.0;
                pooled_error += (shrunk.mean - truth) * (shrunk.mean - truth);
                raw_error += (group.mean() - truth) * (group.mean() - truth);
            }
            covers.push(inside);
            raw_covers.push(raw_inside);
        }
        let name = format!(
            "tau {between}{}",
            if outlier { ", lone outlier" } else { "" }
        );
        let share = pooled_error / raw_error;
        let (mean, error) = mean_and_error(&covers);
        let (raw_mean, raw_mean_error) = mean_and_error(&raw_covers);
        println!("| {name} | {mean:.4} | {error:.4} | {raw_mean:.4} | {share:.3} |");
        // source: CLOVER v1.1, section 3: average coverage .85 to .96; without any spread between slices they can only be wide.
        let high = if between > 0.0 { 0.96 } else { 1.0 };
        assert!(
            mean >= 0.85 - 3.0 * error && mean <= high + 3.0 * error,
            "{name}: {mean}"
        );
        assert!(
            (raw_mean - 0.95).abs() <= 3.0 * raw_mean_error,
            "{name}, raw: {raw_mean}"
        );
        // Worlds drawn from the model gain; a lone outlier drags the others and is dragged itself, which costs.
        let most = if outlier { 1.5 } else { 1.0 };
        assert!(share < most, "{name}: pooling costs {share}");
    }
}

/// Ten slices of 40 to 175 rows with residual deviation 0.2, and their true means.
fn slices(world: &mut World, between: f64, outlier: bool) -> (Vec<Group>, Vec<f64>) {
    let (mut groups, mut truths) = (Vec::new(), Vec::new());
    for slice in 0..10_usize {
        let drawn = between * world.normal();
        let truth = if outlier && slice == 0 { -0.25 } else { drawn };
        let rows = 40 + 15 * slice;
        let residuals: Vec<f64> = (0..rows).map(|_| truth + 0.2 * world.normal()).collect();
        truths.push(truth);
        groups.push(Group::of(values(&residuals)));
    }
    (groups, truths)
}

/// Mean over worlds and its Monte Carlo error; slices of one world are not independent.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let of = values.len() as f64;
    let mean = values.iter().sum::<f64>() / of;
    let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    (mean, (square / (of - 1.0) / of).sqrt())
}
