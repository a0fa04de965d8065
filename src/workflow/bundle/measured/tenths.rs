//! Residuals by tenth of the reward: where on the scale a rubric gives too much or too little.

use clover_event::payload::report::ReportPart;
use clover_num::math;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_stats::quantile::Edges;
use clover_stats::residuals;
use clover_stats::sample::SampleError;
use clover_stats::sample::Values;

use crate::bundle::measured::BundleMeasurement;
use crate::bundle::measured::CalibratedRubric;
use crate::bundle::measured::PartRows;
use crate::bundle::measured::count;
use crate::bundle::measured::interval;
use crate::iterate::compute::rows::pick;

const TENTHS: usize = 10;

/// A table for each rubric and side; tenths are those of the rewards in force, so that all speak of the same rows.
pub(super) fn residuals(measured: &BundleMeasurement) -> Section {
    let mut part = Section::new(ReportPart::Residuals, "");
    for side in measured.sides() {
        for judge in side.judges() {
            match table(side, judge) {
                Ok(table) => part.table(table),
                Err(error) => part.lacks(
                    format!("residuals by tenth, {}, on {}", judge.name, side.word()),
                    error.to_string(),
                ),
            }
        }
    }
    measured.lacks(&mut part, "residuals by tenth");
    part
}

fn table(side: &PartRows, judge: &CalibratedRubric) -> Result<Table, SampleError> {
    let is_in_force = std::ptr::eq(judge, &raw const side.in_force);
    let mut table = Table::new(
        "tenths",
        format!(
            "Residuals by tenth of the reward in force, {}, on {}",
            judge.name,
            side.word()
        ),
        &[
            ("rubric", "rubric"),
            ("tenth", "tenth"),
            ("rows", "labelled rows"),
            ("reward", "reward in force"),
            ("before", "in force"),
            ("mean", "mean residual"),
            ("interval", "95 % interval"),
        ],
    );
    let rows = side.labelled();
    let before = side.in_force.fitted.residuals(side.table(), &rows);
    let after = judge.fitted.residuals(side.table(), &rows);
    let rewards = pick(&side.in_force.fitted.rewards, &rows);
    let clusters = side.table().clusters(&rows)?;
    let rewards = Values::new("rewards", &rewards)?;
    let groups = Edges::equal_frequency(rewards, TENTHS)?.rows(rewards);
    for (tenth, group) in (1..).zip(groups.iter().filter(|group| !group.is_empty())) {
        let mine = pick(&after, group);
        let found = residuals::raw(Values::new("residuals", &mine)?, &clusters.select(group)?)?;
        let old = (!is_in_force).then(|| math::mean(&pick(&before, group)));
        table.row_of(
            judge.events.clone(),
            vec![
                Cell::text(judge.name.as_str()),
                Cell::count(tenth),
                count(group.len()),
                Cell::number(math::mean(&pick(rewards.as_slice(), group))),
                super::number(old),
                Cell::number(found.mean),
                interval(found.interval),
            ],
        );
    }
    table.plot = Some(Plot::Points {
        x: (3, "calibrated reward in force, 0 to 1"),
        y: "label less reward",
        line: None,
        dots: (5, Some(6), "mean residual, 95 %; larger: more labels"),
        hollow: (!is_in_force).then_some((4, "in force")),
        weight: 2,
        reference: Some(0.0),
    });
    if is_in_force {
        table.columns.remove(4);
        for row in &mut table.rows {
            row.cells.remove(4);
        }
        table.plot = Some(Plot::Points {
            x: (3, "calibrated reward, 0 to 1"),
            y: "label less reward",
            line: None,
            dots: (4, Some(5), "mean residual, 95 %; larger: more labels"),
            hollow: None,
            weight: 2,
            reference: Some(0.0),
        });
    }
    Ok(table)
}
