//! Promised sizes against simulated truth: the confirm test of an iteration, the whole predicate under the template's
//! sizes, and audits of calibrators from few labels. `schema/SIMULATION.md` has the numbers of 1,000 runs.

use clover::stats::planner;
use clover::stats::planner::AuditScenario;
use clover::stats::planner::CalibratorError;
use clover::stats::planner::ConfirmTerms;
use clover::stats::planner::PlannedTest;
use clover::workflow::simulate::Fault;
use clover::workflow::simulate::Setting;
use clover::workflow::simulate::iteration::Design;
use clover::workflow::simulate::iteration::Proposal;
use clover::workflow::simulate::iteration::Simulation;
use clover::workflow::simulate::iteration::Summary;

use crate::coverage::World;
use crate::coverage::is_slow;
use crate::coverage::worlds;

/// Exact binomial interval: whether a promise of `p` is within `slack` of what `count` of `of` runs allow at 99.9 %.
fn agrees(promise: f64, count: u64, of: u64, slack: f64) -> bool {
    let (k, n) = (count as f64, of as f64);
    let quantile = |p: f64, a: f64, b: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if clover::stats::distribution::beta_cdf(middle, a, b) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    };
    let low = if count == 0 {
        0.0
    } else {
        quantile(0.0005, k, n - k + 1.0)
    };
    let high = if count == of {
        1.0
    } else {
        quantile(0.9995, k + 1.0, n - k)
    };
    println!("promised {promise:.3}, measured {count} of {of} [{low:.3}, {high:.3}]");
    low - slack <= promise && promise <= high + slack
}

fn simulated(sizes: [usize; 3], runs: u64) -> Summary {
    let setting = Setting {
        fault: Fault::Citations,
        slices: 4,
        ..Setting::default()
    };
    let design = Design::standard(sizes);
    let simulation = Simulation::new(design, Proposal::Fix, setting, 1_000, 31).unwrap();
    Summary::of(&simulation.runs(0, runs).unwrap())
}

fn confirm_terms(found: &Summary) -> ConfirmTerms {
    ConfirmTerms {
        test: PlannedTest::Betting,
        effect: -found.dmse.unwrap(),
        deviation: found.difference_sd.unwrap(),
        eta: 0.001,
        level: 0.05 / 4.0,
    }
}

/// Claim: with the effect and the deviation that a true fix has, P8 passes as often as the size promises.
#[test]
fn the_confirm_test_passes_as_often_as_its_size_promises() {
    let sizes: &[usize] = if is_slow() {
        &[155, 238, 560, 640]
    } else {
        &[155, 560]
    };
    for &rows in sizes {
        let found = simulated([1500, 750, rows], worlds(4, 1_000));
        let terms = confirm_terms(&found);
        let promise = terms.power(rows as u64).unwrap();
        let slack = if is_slow() { 0.05 } else { 0.2 };
        let (count, of) = (found.p8.count, found.p8.of);
        assert!(agrees(promise, count, of, slack), "{rows} rows");
        // A size for a power of .8 is not the 155 rows of the t formula.
        let needed = terms.rows(0.8).unwrap().unwrap();
        assert!((350..900).contains(&needed), "{needed}");
    }
}

/// Claim: under the template's sizes the whole predicate accepts a true fix with at least the power that it plans for.
#[test]
fn the_template_accepts_a_true_fix_with_its_power() {
    // source: 1,000 simulated iterations: mean and deviation of a confirm row's change.
    let of = ConfirmTerms {
        test: PlannedTest::Betting,
        effect: 0.0061,
        deviation: 0.0193,
        eta: 0.001,
        level: 0.05 / 4.0,
    };
    assert!(of.power(3000).unwrap() > 0.99);
    if is_slow() {
        let found = simulated([4000, 3000, 3000], 1_000);
        let promise = confirm_terms(&found).power(3000).unwrap();
        assert!(found.accepted.low >= 0.8);
        assert!(agrees(promise, found.p8.count, found.p8.of, 0.05));
        // What the page says of the whole predicate.
        assert!(agrees(0.946, found.accepted.count, found.accepted.of, 0.02));
    }
}

/// Claim: an audit of a calibrator with an error of its own passes as often as its size promises.
#[test]
fn an_audit_passes_as_often_as_its_size_promises() {
    use clover::stats::sample::Clusters;
    use clover::stats::sample::Values;
    use clover::stats::transport;
    // Calibration errors of none, .006 and .01 against a margin of .05, residuals of .2: the last is of about 400 labels.
    for (at, error) in [0.0, 0.006, 0.01].into_iter().enumerate() {
        let scenario = AuditScenario {
            residual_sd: 0.2,
            margin: 0.05,
            bias: 0.0,
            available: None,
            labels_per_cluster: 1.0,
        };
        let of = CalibratorError {
            width: error * error,
            df: 4.0,
            bias: error * error,
        };
        let terms = (0.05, 0.8);
        let planned = planner::plan_calibrated_audit(&scenario, terms, (20, 100_000), &of).unwrap();
        let (clusters, promise) = planned.unwrap();
        let rows = usize::try_from(clusters).unwrap();
        let runs = worlds(200, 2_000);
        let mut world = World::new(11, at as u64);
        let mut normal = || world.normal();
        let mut passes = 0;
        for _ in 0..runs {
            let bias = error * normal();
            let labels: Vec<f64> = (0..rows).map(|_| 0.5 + bias + 0.2 * normal()).collect();
            let predictions = vec![0.5; rows];
            let clusters = Clusters::singletons(rows).unwrap();
            let values = |values| Values::new("values", values).unwrap();
            let probe =
                transport::Probe::new(values(&predictions), values(&labels), &clusters, None);
            let jackknife = (error > 0.0).then_some(transport::Jackknife {
                variance: error * error,
                df: 4.0,
            });
            let terms = transport::TransportTerms::new(Some(0.05));
            let found = transport::audit(&probe.unwrap(), &terms, jackknife).unwrap();
            passes += u64::from(found.state == transport::AuditState::Pass);
        }
        assert!(
            agrees(promise, passes, runs, 0.01),
            "error {error}: {clusters} probes"
        );
    }
}
