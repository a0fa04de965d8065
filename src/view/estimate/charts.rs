//! Charts of an estimate: the calibration curve with its labels, residuals by score and by slice, and where
//! uncertainty comes from.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::FieldId;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::IntervalMethod;
use crate::num::math;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Ring;
use crate::report::chart::Series;
use crate::report::chart::sparkline;
use crate::report::forest::Forest;
use crate::report::forest::ForestRow;
use crate::view::values;
use crate::view::values::Ends;
use crate::view::values::ends;
use crate::workflow::analyze::dataset::Policy;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::slices;
use crate::workflow::estimate::slices::Sliced;

/// Points of the curve.
const STEPS: u32 = 100;

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// The calibration curve with its labels.
    Calibration,
    /// The values.
    Forest,
    /// Residuals by tenth of the scores.
    Residuals,
    /// Residuals by policy, or by a field that an import kept.
    Slices(FieldId),
    /// Where uncertainty comes from.
    Uncertainty,
}

impl Asked {
    /// The field that rows are parted by.
    pub fn field(&self) -> Option<&FieldId> {
        match self {
            Self::Slices(field) => Some(field),
            _ => None,
        }
    }
}

/// A chart of its own; the forest and the slices are drawn from what is shown.
pub fn svg(found: &Found, asked: &Asked) -> Option<String> {
    match asked {
        Asked::Forest | Asked::Slices(_) => None,
        Asked::Calibration => Some(calibration(found).svg()),
        Asked::Residuals => Some(residuals(found).0.svg()),
        Asked::Uncertainty => Some(uncertainty(found).svg()),
    }
}

/// Mean residuals by slice with their intervals; hollow where fewer than 40 labels stand behind one, which then has its
/// partially pooled interval.
pub fn slices(of: &Sliced) -> Forest {
    let rows = of.names.iter().zip(&of.audit.slices);
    let rows = rows.filter_map(|(name, slice)| {
        let pooled = slice.pooled.map(|of| (of.mean, Some(of.interval)));
        let (mean, interval) = match slice.raw {
            Some(raw) => (raw.mean, raw.interval),
            None => pooled?,
        };
        let mark = match slice.raw {
            Some(raw) if raw.rejected => " *",
            Some(_) => "",
            None => " pooled",
        };
        Some(ForestRow {
            label: name.clone(),
            estimate: mean,
            interval: interval.map(|of| (of.low, of.high)),
            hollow: slice.raw.is_none(),
            note: format!("{mean:+.3} of {}{mark}", slice.rows),
        })
    });
    let rows: Vec<ForestRow> = rows.collect();
    let (low, high) = Forest::spanning(&rows);
    let title = "Mean residual out of fold by";
    Forest {
        title: format!("{title} {}; * not 0 by p (BH) of 0.10", of.field),
        axis: "label less calibrated, with 95 % intervals".to_owned(),
        range: Forest::round(low.min(0.0), high.max(0.0)),
        reference: Some(0.0),
        rows,
    }
}

/// Residuals by slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlicesFacts {
    /// What the rows are parted by.
    pub field: FieldId,
    /// The slices, `other` last.
    pub slices: Vec<SliceFacts>,
}

/// One slice. Residuals are label less calibrated value, in label units.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SliceFacts {
    /// Its word.
    pub slice: String,
    /// Labelled rows.
    pub labels: u64,
    /// Their prompts.
    pub prompts: u64,
    /// Share of all rows that lie in it, from 0 to 1.
    pub exposure: f64,
    /// Mean residual; `null` below 40 labels.
    pub mean: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<Ends>,
    /// p that it is 0 within the family of slices (Benjamini-Hochberg), from 0 to 1.
    pub p_adjusted: Option<f64>,
    /// Whether it is held not to be 0.
    pub rejected: Option<bool>,
    /// The mean residual, partially pooled with the other slices.
    pub pooled: Option<PooledFacts>,
}

/// A mean that other slices have a share in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PooledFacts {
    /// The mean.
    pub mean: f64,
    /// Its 95 % interval.
    pub interval: Ends,
}

pub(super) fn slices_facts(of: &Sliced) -> SlicesFacts {
    let slices = of.names.iter().zip(&of.audit.slices);
    let slices = slices.map(|(name, slice)| SliceFacts {
        slice: name.clone(),
        labels: slice.rows as u64,
        prompts: slice.clusters as u64,
        exposure: slice.exposure,
        mean: slice.raw.map(|of| of.mean),
        interval: slice.raw.and_then(|of| of.interval).map(ends),
        p_adjusted: slice.raw.map(|of| of.p_adjusted),
        rejected: slice.raw.map(|of| of.rejected),
        pooled: slice.pooled.map(|of| PooledFacts {
            mean: of.mean,
            interval: ends(of.interval),
        }),
    });
    SlicesFacts {
        field: of.field.clone(),
        slices: slices.collect(),
    }
}

/// Labelled rows by score, as recorded: the labels of each atom with their out-of-fold predictions.
fn atoms(found: &Found) -> BTreeMap<i64, Vec<(f64, f64)>> {
    let mut atoms: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
    for of in slices::residuals(found) {
        let pairs = atoms.entry(of.score_micro).or_default();
        pairs.push((of.label, of.predicted));
    }
    atoms
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    math::mean(&values.collect::<Vec<f64>>())
}

/// The curve over the scores, and at each score that was labelled a circle as large as its labels are many.
fn calibration(found: &Found) -> Chart {
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
fn residuals(found: &Found) -> (Chart, Vec<usize>) {
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
fn uncertainty(found: &Found) -> Ring {
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

/// What an exact bound does to an interval, or why there is none.
pub(super) fn unvaried(row: &EstimateRecorded, is_widened: bool) -> Option<String> {
    if let Some(why) = &row.no_interval {
        return Some(format!("{}  no interval: {}", row.policy, why.as_str()));
    }
    let off_mode = row.off_mode.unwrap_or_default();
    let is_bounded = row.interval_method == IntervalMethod::Bounded;
    is_bounded.then(|| values::bounded(row.policy.as_str(), off_mode, is_widened))
}

/// Blocks of a series at most.
const BLOCKS: usize = 24;

/// Terminal twins: labels at each score, residuals by tenth, where variance comes from.
pub(super) fn lines(found: &Found) -> Vec<String> {
    let atoms = atoms(found);
    if atoms.is_empty() {
        return Vec::new();
    }
    // Of continuous scores each stretch has a block, as many labels as there are.
    let all: Vec<&Vec<(f64, f64)>> = atoms.values().collect();
    let stretch = all.len().div_ceil(BLOCKS);
    let stretches = all.chunks(stretch);
    let (counts, means): (Vec<f64>, Vec<f64>) = stretches
        .map(|of| {
            let labels: Vec<f64> = of
                .iter()
                .flat_map(|at| at.iter().map(|pair| pair.0))
                .collect();
            (labels.len() as f64, math::mean(&labels))
        })
        .unzip();
    let (chart, _) = residuals(found);
    let residuals: Vec<f64> = chart.series[0].points.iter().map(|point| point.1).collect();
    let most = residuals
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let ends = |pick: Option<&i64>| pick.map_or(0.0, |score| *score as f64 / 1e6);
    vec![
        format!(
            "number of labels {} and their mean {} at scores {} to {}",
            sparkline(&counts),
            sparkline(&means),
            ends(atoms.keys().next()),
            ends(atoms.keys().next_back()),
        ),
        format!(
            "mean residual {} by tenth of scores, least first, at most {most:.3} from 0",
            sparkline(&residuals)
        ),
        format!("variance {}", uncertainty(found).text()),
    ]
}
