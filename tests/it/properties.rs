//! What holds of calibrators and bootstraps whatever the data.

use clover::stats::calibrator;
use clover::stats::calibrator::Algorithm;
use clover::stats::calibrator::Calibrator;
use clover::stats::calibrator::CalibratorSettings;
use clover::stats::calibrator::Frame;
use clover::stats::calibrator::IndexParts;
use clover::stats::calibrator::LabelledRows;
use clover::stats::calibrator::Mode;
use clover::stats::calibrator::Model;
use clover::stats::calibrator::Problem;
use clover::stats::direct;
use clover::stats::direct::Bootstrap;
use clover::stats::direct::Exponential;
use clover::stats::direct::Options;
use clover::stats::direct::Row;
use clover::stats::direct::Table;
use clover::stats::isotonic::Curve;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Folds of every world here.
const FOLDS: usize = 5;

fn config(cases: u32) -> Config {
    Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    }
}

/// Labelled rows: score, covariate, label, row `i` in fold `i % 5`.
#[derive(Clone, Debug)]
struct Sample {
    scores: Vec<f64>,
    lengths: Vec<f64>,
    labels: Vec<f64>,
    folds: Vec<usize>,
}

fn sample() -> impl Strategy<Value = Sample> {
    let row = (0..=20_u32, 1..400_u32, 0.0..0.3_f64);
    proptest::collection::vec(row, 40..90).prop_map(|rows| {
        let scores: Vec<f64> = rows.iter().map(|row| f64::from(row.0) / 20.0).collect();
        let labels = rows.iter().zip(&scores);
        Sample {
            labels: labels
                .map(|(row, score)| 0.7 * score * score + row.2)
                .collect(),
            lengths: rows.iter().map(|row| f64::from(row.1)).collect(),
            folds: (0..rows.len()).map(|row| row % FOLDS).collect(),
            scores,
        }
    })
}

fn settings() -> impl Strategy<Value = (CalibratorSettings, bool)> {
    let algorithm = prop_oneof![Just(Algorithm::Peer1), Just(Algorithm::Centroid1)];
    // A fixed mode: the automatic choice looks at all labels.
    let mode = prop_oneof![
        Just((Mode::Monotone, false)),
        Just((Mode::TwoStage, false)),
        Just((Mode::TwoStage, true)),
    ];
    (algorithm, mode).prop_map(|(algorithm, (mode, covariate))| {
        (CalibratorSettings { algorithm, mode }, covariate)
    })
}

fn fit(sample: &Sample, settings: CalibratorSettings, covariate: bool) -> Calibrator {
    let covariates: Vec<&[f64]> = if covariate {
        vec![&sample.lengths]
    } else {
        Vec::new()
    };
    calibrator::fit(
        &sample.scores,
        &sample.labels,
        &covariates,
        &sample.folds,
        FOLDS,
        None,
        settings,
    )
    .unwrap()
}

/// A model from what an event would keep of it.
fn kept(model: &Model) -> Model {
    let curve = |curve: &Curve| {
        let (x, y) = curve.knots();
        Curve::from_knots(x.to_vec(), y.to_vec()).unwrap()
    };
    match model {
        Model::Monotone(isotonic) => Model::Monotone(curve(isotonic)),
        Model::Ranked {
            index,
            ecdf,
            curve: isotonic,
        } => {
            let parts = index.as_ref().map(|index| IndexParts {
                knots: index
                    .splines()
                    .iter()
                    .map(|spline| spline.knots().to_vec())
                    .collect(),
                coefficients: index.coefficients().to_vec(),
                intercept: index.intercept(),
                penalty: index.penalty(),
            });
            let (values, ranks) = ecdf.knots();
            Model::from_parts(parts, (values.to_vec(), ranks.to_vec()), curve(isotonic)).unwrap()
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_fold_model_never_sees_its_fold(
        sample in sample(),
        (settings, covariate) in settings(),
        fold in 0..FOLDS,
        label in 0.0..1.0_f64,
    ) {
        let before = fit(&sample, settings, covariate);
        let mut other = sample.clone();
        for (row, of) in sample.folds.iter().enumerate() {
            if *of == fold {
                other.labels[row] = label;
            }
        }
        let after = fit(&other, settings, covariate);
        prop_assert_eq!(&after.without_fold[fold], &before.without_fold[fold]);
        for (row, of) in sample.folds.iter().enumerate() {
            if *of == fold {
                prop_assert_eq!(after.out_of_fold[row].to_bits(), before.out_of_fold[row].to_bits());
                let x = (sample.scores[row], [sample.lengths[row]]);
                let predicted = before.without_fold[fold].predict(x.0, &x.1);
                prop_assert_eq!(predicted.to_bits(), before.out_of_fold[row].to_bits());
            }
        }
    }

    #[test]
    fn what_is_kept_predicts_the_same_bits(sample in sample(), (settings, covariate) in settings()) {
        let fitted = fit(&sample, settings, covariate);
        for model in fitted.without_fold.iter().chain([&fitted.full]) {
            let again = kept(model);
            prop_assert_eq!(&again, model);
            for step in -5..=45_i32 {
                let (score, length) = (f64::from(step) / 40.0, [f64::from(9 * step + 50)]);
                let (old, new) = (model.predict(score, &length), again.predict(score, &length));
                prop_assert_eq!(old.to_bits(), new.to_bits());
                prop_assert!((0.0..=1.0).contains(&old));
            }
        }
    }

    #[test]
    fn the_order_of_rows_moves_last_bits_only(
        (sample, order) in sample().prop_flat_map(|sample| {
            let order: Vec<usize> = (0..sample.scores.len()).collect();
            (Just(sample), Just(order).prop_shuffle())
        }),
        (settings, covariate) in settings(),
    ) {
        let pick = |values: &[f64]| order.iter().map(|&row| values[row]).collect::<Vec<f64>>();
        let shuffled = Sample {
            scores: pick(&sample.scores),
            lengths: pick(&sample.lengths),
            labels: pick(&sample.labels),
            folds: order.iter().map(|&row| sample.folds[row]).collect(),
        };
        let (first, second) = (fit(&sample, settings, covariate), fit(&shuffled, settings, covariate));
        for (at, &row) in order.iter().enumerate() {
            let gap = (first.out_of_fold[row] - second.out_of_fold[at]).abs();
            prop_assert!(gap < 1e-9, "{gap}");
            let x = (sample.scores[row], [sample.lengths[row]]);
            let gap = (first.predict(x.0, &x.1) - second.predict(x.0, &x.1)).abs();
            prop_assert!(gap < 1e-9, "{gap}");
        }
    }

    #[test]
    fn scores_alone_are_calibrated_monotonically(sample in sample(), algorithm in settings()) {
        let settings = CalibratorSettings { mode: Mode::Monotone, ..algorithm.0 };
        let fitted = fit(&sample, settings, false);
        let mut last = 0.0;
        for step in -10..=110_i32 {
            let value = fitted.predict(f64::from(step) / 100.0, &[]);
            prop_assert!(value >= last);
            last = value;
        }
        if settings.algorithm == Algorithm::Centroid1 {
            // Labels lie in (0, 1), so that little is clipped; before clipping the mean is kept.
            let rows = sample.labels.len() as f64;
            let label = sample.labels.iter().sum::<f64>() / rows;
            let predicted: f64 = sample.scores.iter().map(|&score| fitted.predict(score, &[])).sum();
            prop_assert!((predicted / rows - label).abs() < 1e-3);
        }
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn a_bootstrap_has_the_same_bits_on_any_number_of_threads(
        sample in sample(),
        mode in prop_oneof![Just(Mode::Auto), Just(Mode::TwoStage), Just(Mode::Monotone)],
        seed: [u8; 32],
    ) {
        let settings = CalibratorSettings { algorithm: Algorithm::Peer1, mode };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| replicated(&sample, settings, seed))
        };
        let one = run(1);
        for threads in [1, 2, 3] {
            let again = run(threads);
            let bits = |found: &Bootstrap| -> Vec<u64> {
                found.replicates.iter().flatten().map(|value| value.to_bits()).collect()
            };
            prop_assert_eq!(bits(&one), bits(&again));
            prop_assert_eq!(&one, &again);
        }
    }
}

/// A bootstrap of two policies on the sample's rows as prompts: the first labelled, the second borrowing.
fn replicated(sample: &Sample, settings: CalibratorSettings, seed: [u8; 32]) -> Bootstrap {
    let rows = sample.scores.len();
    // The borrower's scores mirror those of the labelled one.
    let scores: Vec<f64> = sample
        .scores
        .iter()
        .copied()
        .chain(sample.scores.iter().map(|score| 1.0 - score))
        .collect();
    let frame = Frame::new(&[&scores]).unwrap();
    let prompt = |row: usize| u32::try_from(row).unwrap();
    // Every third row has no label, so that residuals correct.
    let labelled: Vec<usize> = (0..rows).filter(|row| row % 3 != 0).collect();
    let first = (0..rows).map(|row| {
        let fit_row = labelled.iter().position(|&of| of == row).map(prompt);
        Row {
            point: frame.of_row()[row],
            prompt: prompt(row),
            label: fit_row.map(|_| sample.labels[row]),
            fit_row,
        }
    });
    let second = (0..rows).map(|row| Row {
        point: frame.of_row()[rows + row],
        prompt: prompt(row),
        label: None,
        fit_row: None,
    });
    let table = Table::new(&[first.collect(), second.collect()], rows).unwrap();
    let labels = LabelledRows::new(
        labelled.iter().map(|&row| frame.of_row()[row]).collect(),
        labelled.iter().map(|&row| sample.labels[row]).collect(),
        (0..labelled.len()).map(|row| row % FOLDS).collect(),
        FOLDS,
    );
    let problem = Problem::new(&frame, labels.unwrap(), settings).unwrap();
    let clusters: Vec<u32> = labelled.iter().map(|&row| prompt(row)).collect();
    let weights = Exponential {
        seed,
        replicates: 20,
    };
    direct::bootstrap(
        &table,
        &problem,
        &clusters,
        rows,
        &weights,
        &Options::default(),
    )
    .unwrap()
}
