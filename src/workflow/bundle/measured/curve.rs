//! How far calibrated rewards lie from labels, and the curve that takes scores to rewards.

use clover_event::payload::report::ReportPart;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::math;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_stats::predicate;
use clover_stats::quantile::Edges;
use clover_stats::reliability;
use clover_stats::residuals;
use clover_stats::sample::SampleError;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;
use clover_stats::student::Alternative;

use crate::bundle::measured::BundleMeasurement;
use crate::bundle::measured::CalibratedRubric;
use crate::bundle::measured::PartRows;
use crate::bundle::measured::count;
use crate::bundle::measured::interval;
use crate::bundle::measured::number;
use crate::iterate::compute::rows::pick;

/// Bins of the calibration error.
const BINS: usize = 10;
/// Level of the intervals of slopes.
const LEVEL: f64 = 0.95;
/// Distinct scores up to which each is a point of the curve; above it, tenths are.
const ATOMS: usize = 20;

/// Errors before and after, slopes from rulebook 22 on, and a curve for each rubric.
pub(super) fn calibration(measured: &BundleMeasurement, state: &State) -> Section {
    let mut part = Section::new(ReportPart::Calibration, "");
    match errors(measured) {
        Ok(table) => part.table(table),
        Err(error) => part.lacks("root mean squared errors", error.to_string()),
    }
    if state.asks(Question::ReportedSlope) {
        match slopes(measured) {
            Ok(table) => part.table(table),
            Err(error) => part.lacks("calibration slopes", error.to_string()),
        }
    }
    for judge in measured.dev.judges() {
        match curve(&measured.dev, judge) {
            Ok(table) => part.table(table),
            Err(error) => part.lacks(format!("the curve of {}", judge.name), error.to_string()),
        }
    }
    measured.lacks(&mut part, "errors");
    part
}

fn errors(measured: &BundleMeasurement) -> Result<Table, SampleError> {
    let mut table = Table::new(
        "errors",
        "Errors of calibrated rewards; calibration errors on ten bins of the rewards in force",
        &[
            ("rubric", "rubric"),
            ("rows_of", "on"),
            ("rows", "labelled rows"),
            ("rmse", "RMSE"),
            ("ece", "ECE"),
            ("reward", "mean reward"),
            ("label", "mean label"),
        ],
    );
    let dev = &measured.dev;
    let fitted = &dev.in_force.fitted;
    let labels = dev.table().labels(&fitted.rows);
    for judge in dev.judges() {
        let rewards = (&fitted.out_of_fold[..], &judge.fitted.out_of_fold[..]);
        error_row(&mut table, judge, "fit, out of fold", &labels, rewards)?;
    }
    for side in measured.sides() {
        let rows = side.labelled();
        let labels = side.table().labels(&rows);
        let before = pick(&side.in_force.fitted.rewards, &rows);
        for judge in side.judges() {
            let after = pick(&judge.fitted.rewards, &rows);
            error_row(&mut table, judge, side.word(), &labels, (&before, &after))?;
        }
    }
    Ok(table)
}

fn error_row(
    table: &mut Table,
    judge: &CalibratedRubric,
    on: &str,
    labels: &[f64],
    (before, after): (&[f64], &[f64]),
) -> Result<(), SampleError> {
    let values = Values::new("labels", labels)?;
    let before = Values::new("rewards in force", before)?;
    let rewards = Values::new("rewards", after)?;
    let ece = predicate::ece_pair(values, before, rewards, BINS)?;
    table.row_of(
        judge.events.clone(),
        vec![
            Cell::text(judge.name.as_str()),
            Cell::text(on),
            count(labels.len()),
            Cell::number(reliability::root_mean_squared_error(rewards, values)?),
            Cell::number(ece.patched),
            Cell::number(math::mean(after)),
            Cell::number(math::mean(labels)),
        ],
    );
    Ok(())
}

/// Least-squares lines of labels on calibrated rewards, out of fold and on rows that no calibrator saw.
fn slopes(measured: &BundleMeasurement) -> Result<Table, SampleError> {
    let mut table = Table::new(
        "slopes",
        "Calibration slopes: of labels on calibrated rewards. 1 is right; below 1 rewards lie too far apart, above 1 too close",
        &[
            ("rubric", "rubric"),
            ("rows_of", "on"),
            ("rows", "labelled rows"),
            ("slope", "slope"),
            ("slope_interval", "95 % interval"),
        ],
    );
    let dev = &measured.dev;
    for judge in dev.judges() {
        let of = (&judge.fitted.rows[..], &judge.fitted.out_of_fold[..]);
        slope_row(&mut table, judge, "fit, out of fold", dev, of)?;
    }
    for side in measured.sides() {
        let rows = side.labelled();
        for judge in side.judges() {
            let rewards = pick(&judge.fitted.rewards, &rows);
            slope_row(&mut table, judge, side.word(), side, (&rows, &rewards))?;
        }
    }
    Ok(table)
}

fn slope_row(
    table: &mut Table,
    judge: &CalibratedRubric,
    on: &str,
    side: &PartRows,
    (rows, rewards): (&[usize], &[f64]),
) -> Result<(), SampleError> {
    let labels = side.table().labels(rows);
    let line = reliability::calibration_line(
        Values::new("rewards", rewards)?,
        Values::new("labels", &labels)?,
        &side.table().clusters(rows)?,
    );
    let slope = match line {
        Ok(line) => line.map(|line| line.slope),
        Err(Unfit::InsufficientData(_)) => None,
        Err(Unfit::Invalid(error)) => return Err(error),
    };
    let within = slope.map(|slope| slope.interval(LEVEL, Alternative::TwoSided));
    table.row_of(
        judge.events.clone(),
        vec![
            Cell::text(judge.name.as_str()),
            Cell::text(on),
            count(labels.len()),
            number(slope.map(|slope| slope.mean)),
            interval(within.transpose()?),
        ],
    );
    Ok(())
}

/// Rows by their score: one group for each where there are few, tenths else.
fn groups(scores: Values<'_>) -> Result<Vec<Vec<usize>>, SampleError> {
    let mut distinct = scores.as_slice().to_vec();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    if distinct.len() > ATOMS {
        return Ok(Edges::equal_frequency(scores, BINS)?.rows(scores));
    }
    let mut groups = vec![Vec::new(); distinct.len()];
    for (row, score) in scores.as_slice().iter().enumerate() {
        let at = distinct.partition_point(|of| of.total_cmp(score).is_lt());
        groups[at].push(row);
    }
    Ok(groups)
}

/// The curve of a rubric over labelled rows of dev, which its calibrator never saw.
fn curve(side: &PartRows, judge: &CalibratedRubric) -> Result<Table, SampleError> {
    let mut table = Table::new(
        "curve",
        format!(
            "Calibration curve, {}, with labels of {}",
            judge.name,
            side.word()
        ),
        &[
            ("rubric", "rubric"),
            ("scores", "scores"),
            ("score", "mean score"),
            ("reward", "calibrated reward"),
            ("label", "mean label"),
            ("label_interval", "95 % interval"),
            ("labels", "labels"),
        ],
    );
    let rows = side.labelled();
    let labels = side.table().labels(&rows);
    let scores = pick(&judge.scored.scores, &rows);
    let rewards = pick(&judge.fitted.rewards, &rows);
    let clusters = side.table().clusters(&rows)?;
    for group in groups(Values::new("scores", &scores)?)? {
        let (Some(first), Some(_)) = (group.first(), group.last()) else {
            continue;
        };
        let of = pick(&scores, &group);
        let range = of
            .iter()
            .fold((scores[*first], scores[*first]), |(low, high), score| {
                (low.min(*score), high.max(*score))
            });
        let mine = pick(&labels, &group);
        let found = residuals::raw(Values::new("labels", &mine)?, &clusters.select(&group)?)?;
        let ends = clover_stats::inference::Interval {
            low: range.0,
            high: range.1,
        };
        table.row_of(
            judge.events.clone(),
            vec![
                Cell::text(judge.name.as_str()),
                interval(Some(ends)),
                Cell::number(math::mean(&of)),
                Cell::number(math::mean(&pick(&rewards, &group))),
                Cell::number(found.mean),
                interval(found.interval),
                count(group.len()),
            ],
        );
    }
    table.plot = Some(Plot::Points {
        x: (2, "judge score under this rubric, 0 to 1"),
        y: "label, 0 to 1",
        line: Some((3, "calibrated reward")),
        dots: (4, Some(5), "mean label, 95 %; larger: more labels"),
        hollow: None,
        weight: 6,
        reference: None,
    });
    Ok(table)
}
