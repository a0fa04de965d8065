//! Calibrators on record, and scores that become calibrated ones.

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::id::IterationId;
use crate::event::id::JudgeId;
use crate::report::spark;
use crate::session::calibrators::Fit;
use crate::session::calibrators::RefittedCalibrator;
use crate::view::View;
use crate::view::text::thousands;
use crate::view::values;
use crate::view::values::Ends;
use crate::view::word;
use crate::workflow::estimate::planning::LABELS_MIN;

/// Points of a curve that is shown.
const POINTS: u32 = 41;

/// A calibrator on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratorRow {
    /// The entry that says it.
    pub seq: u64,
    /// The digest of its curves.
    pub calibrator: String,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Whose scores it calibrates.
    pub judge: JudgeId,
    /// The iteration that fitted it; `null` for a calibrator of estimates.
    pub iteration: Option<IterationId>,
    /// The environment whose rows alone it was fitted on, such as `domain=law`; `null` for all rows.
    pub environment: Option<String>,
    /// What was fitted: `monotone` on the score, or `two_stage` on an index of score and covariates.
    pub selected: String,
    /// Labelled rows that it was fitted on.
    pub labels: u64,
    /// Their distinct prompts.
    pub prompts: u64,
    /// Root mean squared error out of fold, in label units from 0 to 1.
    pub oof_rmse: f64,
    /// Least and largest labelled score, as recorded.
    pub score_range: [f64; 2],
}

/// Every calibrator on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratorList {
    /// In the order of the log.
    pub calibrators: Vec<CalibratorRow>,
}

/// One calibrator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratorShown {
    /// What is on record.
    pub record: CalibratorRow,
    /// Ends of the scale of labels.
    pub label_scale: [f64; 2],
    /// Covariates that it needs beside the score, in their order.
    pub covariates: Vec<String>,
    /// The slope of labels on its predictions out of fold; `null` where predictions are all one value, or too few.
    pub slope: Option<CalibrationSlope>,
    /// Scores with what they become; empty where covariates count too.
    pub curve: Vec<[f64; 2]>,
}

/// How labels rise with predictions: 1 is right; below 1 predictions lie too far apart, above 1 too close together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibrationSlope {
    /// The slope.
    pub value: f64,
    /// Its interval of 95 %.
    pub interval: Ends,
}

/// A score and what it became.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratedScore {
    /// The score, as the judge gave it.
    pub score: f64,
    /// The mean label that the calibrator expects, on the scale of labels.
    pub calibrated: f64,
    /// Whether the score lies beyond every labelled score: no label backs it there.
    pub beyond_labels: bool,
}

/// Scores that were calibrated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratedScores {
    /// The digest of the calibrator.
    pub calibrator: String,
    /// The entry that says it.
    pub seq: u64,
    /// Root mean squared error of one label out of fold, on the scale of labels.
    pub error: f64,
    /// The scores, in their order.
    pub scores: Vec<CalibratedScore>,
}

fn row(fit: &Fit) -> CalibratorRow {
    let said = &fit.said;
    CalibratorRow {
        seq: fit.seq,
        calibrator: said.calibrator.to_hex(),
        experiment: fit.experiment.clone(),
        judge: said.terms.judge.clone(),
        iteration: said.terms.iteration.as_ref().map(|of| of.iteration.clone()),
        environment: said.terms.environment.as_ref().map(ToString::to_string),
        selected: word(&said.selected),
        labels: said.labels.value(),
        prompts: said.clusters.value(),
        oof_rmse: said.oof_rmse.value(),
        score_range: [said.score_range.low.value(), said.score_range.high.value()],
    }
}

/// Every calibrator on record.
pub fn list(fits: &[Fit]) -> View {
    let calibrators: Vec<_> = fits.iter().map(row).collect();
    let rows = calibrators.iter().map(|of| {
        let iteration = of.iteration.as_ref();
        vec![
            of.seq.to_string(),
            of.calibrator.chars().take(12).collect(),
            of.experiment.to_string(),
            of.judge.to_string(),
            iteration.map_or("estimates".to_owned(), ToString::to_string),
            fitted_rows(of),
            of.selected.clone(),
            thousands(of.labels),
            format!("{:.4}", of.oof_rmse),
            range(of.score_range),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let mut view = View::of(&CalibratorList { calibrators });
    if rows.is_empty() {
        view.line("no calibrator was fitted yet");
        return view.with_next("clover estimate");
    }
    let head = [
        "seq",
        "calibrator",
        "experiment",
        "judge",
        "fitted for",
        "rows",
        "model",
        "labels",
        "error, 0 to 1",
        "labelled scores",
    ];
    view.table(&head, rows);
    let newest = fits.last().map(|fit| fit.seq);
    let is_default = |fit: &Fit| {
        let terms = &fit.said.terms;
        terms.iteration.is_none() && terms.environment.is_none()
    };
    match newest.filter(|_| !fits.iter().any(is_default)) {
        Some(seq) => view.with_next(format!("clover calibrate show {seq}")),
        None => view.with_next("clover calibrate show"),
    }
}

/// Which rows it was fitted on, and is for.
fn fitted_rows(of: &CalibratorRow) -> String {
    of.environment.clone().unwrap_or_else(|| "all".to_owned())
}

fn range([low, high]: [f64; 2]) -> String {
    format!("{low} to {high}")
}

/// Whether labels may as well not rise with what is predicted of them.
fn says_nothing(of: CalibrationSlope) -> bool {
    of.interval.0[0] <= 0.0
}

/// A slope, with what it means.
fn slope(of: CalibrationSlope) -> String {
    let Ends([low, high]) = of.interval;
    let meaning = if low <= 0.0 {
        "0 is within: they say nothing of labels"
    } else if high < 1.0 {
        "below 1: its predictions lie too far apart"
    } else if low > 1.0 {
        "above 1: its predictions lie too close together"
    } else {
        "1, where a rise of its predictions is the rise of labels, is within"
    };
    format!(
        "{:.2} {} of labels on predictions, out of fold; {meaning}",
        of.value,
        values::bracket(of.interval, 2),
    )
}

/// One calibrator and its curve.
pub fn show(loaded: &RefittedCalibrator) -> View {
    let covariates: Vec<_> = loaded.covariates().map(str::to_owned).collect();
    let (low, high) = loaded.scores();
    let curve = if covariates.is_empty() {
        let score = |place: u32| low + (high - low) * f64::from(place) / f64::from(POINTS - 1);
        let point = |score: f64| Some([score, loaded.apply(score, &[])?.value]);
        (0..POINTS).map(score).filter_map(point).collect()
    } else {
        Vec::new()
    };
    let labels = loaded.labels();
    let facts = CalibratorShown {
        record: row(&loaded.fit),
        label_scale: [labels.0, labels.1],
        covariates,
        slope: loaded.slope().map(|(value, within)| CalibrationSlope {
            value,
            interval: values::ends(within),
        }),
        curve,
    };
    let mut view = View::of(&facts);
    let record = &facts.record;
    view.pairs([
        ("calibrator", record.calibrator.clone()),
        ("on record", format!("seq {}", record.seq)),
        ("judge", record.judge.to_string()),
        ("rows", fitted_rows(record)),
        ("model", record.selected.clone()),
        (
            "fitted on",
            format!("{} labels of {} prompts", record.labels, record.prompts),
        ),
        ("labelled scores", range(record.score_range)),
        (
            "error",
            format!("{:.4} of one label, out of fold", loaded.error()),
        ),
    ]);
    if loaded.iteration().is_none() {
        view.pairs([("slope", facts.slope.map_or("none".to_owned(), slope))]);
    }
    reads(&mut view, loaded);
    if loaded.iteration().is_none() && facts.slope.is_none_or(says_nothing) {
        view.sentence(
            "Nothing shows that labels rise with these calibrated scores: the judge adds little to the labels.",
        );
    }
    if facts.curve.is_empty() {
        let names = facts.covariates.join(", ");
        view.sentence(format!(
            "It reads {names} beside the score, so no single curve shows it."
        ));
    } else {
        let values: Vec<_> = facts.curve.iter().map(|point| point[1]).collect();
        let line = spark::line(&values, labels);
        view.chart(
            vec![format!(
                "calibrated score  {line}  at scores {low} to {high}, on labels from {} to {}",
                labels.0, labels.1
            )],
            None,
        );
    }
    view.with_next(format!(
        "clover calibrate apply {} --score {low}",
        record.seq
    ))
}

/// Which scores a calibrator of an iteration reads.
fn reads(view: &mut View, loaded: &RefittedCalibrator) {
    if let Some(iteration) = loaded.iteration() {
        view.sentence(format!(
            "It reads scores as iteration {iteration} computes them by its rubric, 0 to 1, and not the judge's own."
        ));
    }
}

/// What scores became; `rows` are shown one by one where they are few.
pub fn applied(loaded: &RefittedCalibrator, scores: Vec<CalibratedScore>) -> View {
    let facts = CalibratedScores {
        calibrator: loaded.fit.said.calibrator.to_hex(),
        seq: loaded.fit.seq,
        error: loaded.error(),
        scores,
    };
    let mut view = View::of(&facts);
    let rows = facts.scores.iter().map(|of| {
        let beyond = if of.beyond_labels {
            "beyond every label"
        } else {
            ""
        };
        vec![
            of.score.to_string(),
            format!("{:.4}", of.calibrated),
            beyond.to_owned(),
        ]
    });
    view.table(&["score", "calibrated", ""], rows);
    let labels = loaded.fit.said.labels.value();
    if loaded.is_thin() {
        view.sentence(format!(
            "Only {labels} labels were fitted, fewer than the {LABELS_MIN} of the smallest plan: a calibrated score is a first guess of the mean label, and its error is not known."
        ));
    } else {
        view.sentence(format!(
            "A calibrated score is the mean label to expect: single labels lie {:.4} around it (root mean square, out of fold).",
            facts.error
        ));
    }
    reads(&mut view, loaded);
    if let Some(scope) = &loaded.fit.said.terms.environment {
        view.sentence(format!(
            "This calibrator was fitted on rows of {scope} alone: what it says of other rows is not known."
        ));
    }
    view.sentence(
        "It has no interval: one score says too little of its own error. clover estimate gives one for the mean of a policy.",
    );
    view
}
