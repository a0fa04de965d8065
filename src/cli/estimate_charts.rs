//! Charts of an estimate: the calibration curve with its labels, residuals, and where uncertainty comes from.

use std::collections::BTreeMap;

use crate::cli::error::CliError;
use crate::num::math;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Ring;
use crate::report::chart::Series;
use crate::report::chart::sparkline;
use crate::workflow::analyze::dataset::Policy;
use crate::workflow::estimate::compute::Found;

/// Points of the curve.
const STEPS: u32 = 100;

/// A chart by its name.
pub(super) fn svg(found: &Found, name: &str) -> Result<Option<String>, CliError> {
    Ok(match name {
        "forest" => None,
        "calibration" => Some(calibration(found).svg()),
        "residuals" => Some(residuals(found).0.svg()),
        "uncertainty" => Some(uncertainty(found).svg()),
        other => {
            let message =
                format!("--chart {other}: expected forest, calibration, residuals or uncertainty");
            return Err(CliError::usage(message, "clover estimate --help"));
        }
    })
}

/// Labelled rows by score, as recorded: the labels of each atom with their out-of-fold predictions.
fn atoms(found: &Found) -> BTreeMap<i64, Vec<(f64, f64)>> {
    let mut atoms: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
    let Ok(of) = &found.analysis.calibration else {
        return atoms;
    };
    let mut seen = of.calibrator.out_of_fold.iter();
    let scale = found.analysis.label_scale;
    for (policy, source) in found
        .gathered
        .dataset
        .policies
        .iter()
        .zip(&found.gathered.sources)
    {
        for &row in source.labels.keys() {
            let label = policy.labels[row].unwrap_or_default();
            let predicted = seen.next().copied().unwrap_or_default();
            let predicted = scale.map_or(predicted, |scale| scale.level(predicted));
            atoms
                .entry(source.scores[row])
                .or_default()
                .push((label, predicted));
        }
    }
    atoms
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    math::mean(&values.collect::<Vec<f64>>())
}

/// The curve over the scores, and at each score that was labelled a circle as large as its labels are many.
pub(super) fn calibration(found: &Found) -> Chart {
    let atoms = atoms(found);
    let ends = |pick: fn(f64, f64) -> f64, start: f64| {
        let scores = found
            .gathered
            .dataset
            .policies
            .iter()
            .flat_map(|of: &Policy| &of.scores);
        scores.copied().fold(start, pick)
    };
    let (low, high) = (
        ends(f64::min, f64::INFINITY),
        ends(f64::max, f64::NEG_INFINITY),
    );
    let mut points = Vec::new();
    if let (Ok(of), Some(judge), Some(label)) = (
        &found.analysis.calibration,
        found.analysis.judge_scale,
        found.analysis.label_scale,
    ) && found.terms.covariates.is_empty()
    {
        for step in 0..=STEPS {
            let score = low + (high - low) * f64::from(step) / f64::from(STEPS);
            if let Some(unit) = judge.to_unit(score) {
                points.push((score, label.level(of.calibrator.predict(unit, &[]))));
            }
        }
    }
    let counts = atoms.values().map(|of| of.len() as f64);
    Chart {
        title: "Calibration curve with labels at each score".to_owned(),
        x: "judge score".to_owned(),
        y: "label".to_owned(),
        series: vec![
            Series {
                label: "mean label".to_owned(),
                mark: Mark::Dot,
                points: atoms
                    .iter()
                    .map(|(score, of)| (*score as f64 / 1e6, mean(of.iter().map(|pair| pair.0))))
                    .collect(),
                weights: counts.collect(),
            },
            Series {
                label: "calibrated".to_owned(),
                mark: Mark::Line,
                points,
                weights: Vec::new(),
            },
        ],
        log_y: false,
    }
}

/// Mean out-of-fold residual by tenth of the labelled scores, and the labels of each tenth.
pub(super) fn residuals(found: &Found) -> (Chart, Vec<usize>) {
    let atoms = atoms(found);
    let rows: Vec<f64> = atoms
        .values()
        .flatten()
        .map(|(label, predicted)| label - predicted)
        .collect();
    // Rows stand by score: tenths of them, cut where a score ends.
    let (mut bins, mut counts, mut at) = (Vec::new(), Vec::new(), 0);
    let mut current: Vec<f64> = Vec::new();
    for of in atoms.values() {
        current.extend_from_slice(&rows[at..at + of.len()]);
        at += of.len();
        if current.len() * 10 >= rows.len() || at == rows.len() {
            bins.push((bins.len() as f64 + 1.0, math::mean(&current)));
            counts.push(current.len());
            current.clear();
        }
    }
    let chart = Chart {
        title: "Mean residual out of fold, by tenth of labelled scores".to_owned(),
        x: "tenth, lowest scores first; ties merge tenths".to_owned(),
        y: "label less calibrated".to_owned(),
        series: vec![Series {
            label: "mean residual".to_owned(),
            mark: Mark::Bar,
            points: bins,
            weights: Vec::new(),
        }],
        log_y: false,
    };
    (chart, counts)
}

/// Where the variance of policies comes from, together.
pub(super) fn uncertainty(found: &Found) -> Ring {
    let spreads = found.analysis.policies.iter();
    let spreads = spreads.filter(|of| of.support.is_none_or(|support| !support.refuse_level));
    let (mut main, mut oua) = (0.0, 0.0);
    for of in spreads {
        if let Ok(spread) = &of.spread {
            main += spread.sampling;
            oua += of.calibration_variance.unwrap_or(0.0);
        }
    }
    Ring {
        title: "Variance of the values that are not refused".to_owned(),
        parts: vec![
            ("rows and their labels".to_owned(), main),
            ("calibrator".to_owned(), oua),
        ],
    }
}

/// Terminal twins: labels at each score, residuals by tenth, where variance comes from.
pub(super) fn lines(found: &Found) -> Vec<String> {
    let atoms = atoms(found);
    if atoms.is_empty() {
        return Vec::new();
    }
    let counts: Vec<f64> = atoms.values().map(|of| of.len() as f64).collect();
    let means: Vec<f64> = atoms
        .values()
        .map(|of| mean(of.iter().map(|pair| pair.0)))
        .collect();
    let (chart, _) = residuals(found);
    let residuals: Vec<f64> = chart.series[0].points.iter().map(|point| point.1).collect();
    let most = residuals
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let ends = |pick: Option<&i64>| pick.map_or(0.0, |score| *score as f64 / 1e6);
    vec![
        format!(
            "labels {} and mean label {} at scores {} to {}",
            sparkline(&counts),
            sparkline(&means),
            ends(atoms.keys().next()),
            ends(atoms.keys().next_back()),
        ),
        format!(
            "residuals {} by tenth of scores, at most {most:.3} from 0",
            sparkline(&residuals)
        ),
        format!("variance {}", uncertainty(found).text()),
    ]
}
