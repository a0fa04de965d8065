//! What each policy is worth by the iteration's own calibrators: plug-in means over its logs, with the calibrator's
//! variance in the interval.

use std::collections::BTreeMap;

use clover_event::id::PolicyId;
use clover_event::payload::report::ReportPart;
use clover_ledger::State;
use clover_ledger::rulebooks::Question;
use clover_num::math;
use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Section;
use clover_projection::bundle::Table;
use clover_stats::boundary;
use clover_stats::direct::Scale;
use clover_stats::inference;
use clover_stats::inference::Interval;
use clover_stats::oua;
use clover_stats::oua::Share;
use clover_stats::sample::Unfit;
use clover_stats::sample::Values;

use crate::bundle::measured::BundleMeasurement;
use crate::bundle::measured::CalibratedRubric;
use crate::bundle::measured::PartRows;
use crate::bundle::measured::count;
use crate::bundle::measured::interval;
use crate::bundle::measured::number;
use crate::estimate::terms;
use crate::iterate::compute::rows::pick;
use crate::iterate::compute::uncertainty;

/// Level of the intervals.
const ALPHA: f64 = 0.05;

/// Values of every policy under every rubric: on the scale of labels from rulebook 24 on, and as shares of it before.
pub(super) fn values(measured: &BundleMeasurement, state: &State) -> Section {
    let mut part = Section::new(ReportPart::Values, "");
    let side = &measured.dev;
    let declared = side.loaded.label_scale;
    let declared = declared.filter(|_| state.asks(Question::ReportedWorth));
    let scale = declared.and_then(|(ends, _)| terms::scale(ends));
    let scale = scale.unwrap_or(Scale::UNIT);
    let mut of: BTreeMap<&PolicyId, Vec<usize>> = BTreeMap::new();
    for &row in side.table().logs() {
        of.entry(&side.loaded.names[row].policy)
            .or_default()
            .push(row);
    }
    let mut table = Table::new(
        "direct",
        "Direct values over the iteration's logs: mean calibrated rewards, not corrected by labels",
        &[
            ("rubric", "rubric"),
            ("policy", "policy"),
            ("value", "value"),
            ("interval", "95 % interval"),
            ("se", "standard error"),
            ("share", "calibrator's share"),
            ("rows", "rows"),
            ("labels", "own labels in fit"),
            ("level", "level"),
        ],
    );
    for judge in side.judges() {
        for (policy, rows) in &of {
            let name = format!("{policy} under {}", judge.name);
            match row(side, judge, (policy, rows), scale) {
                Ok(cells) => table.row_of(judge.events.clone(), cells),
                Err(error) => part.lacks(format!("the value of {name}"), error.to_string()),
            }
        }
    }
    table.plot = Some(Plot::Forest {
        label: (0, 1),
        estimate: 2,
        interval: Some(3),
        reference: None,
        axis: "mean calibrated reward, in label units, with its 95 % interval",
        before: None,
    });
    part.table(table);
    for (name, why) in &measured.left_out {
        part.lacks(format!("values under {name}"), why.as_str());
    }
    part
}

fn row(
    side: &PartRows,
    judge: &CalibratedRubric,
    (policy, rows): (&PolicyId, &[usize]),
    scale: Scale,
) -> Result<Vec<Cell>, Unfit> {
    let table = side.table();
    let rewards = pick(&judge.fitted.rewards, rows);
    let clusters = table.clusters(rows)?;
    let share = Share {
        rows: rows.len(),
        main: oua::main_variance(Values::new("rewards", &rewards)?, &clusters)?,
        oua: uncertainty::variance_on(table, &judge.fitted, &judge.scored, rows)?,
    };
    let value = math::mean(&rewards);
    let se = (share.main + share.oua).sqrt();
    let (units, folds) = (clusters.count() as f64, judge.fitted.folds as f64);
    let df = inference::welch(share.main, units - 1.0, share.oua, folds - 1.0);
    let scores = pick(&judge.scored.scores, rows);
    let labelled = pick(&judge.scored.scores, &judge.fitted.rows);
    let support = boundary::support(
        Values::new("scores", &scores)?,
        Values::new("labelled scores", &labelled)?,
    );
    let own = judge.fitted.rows.iter();
    let own = own.filter(|row| side.loaded.names[**row].policy == *policy);
    let shown = |cell: Cell| {
        if support.refuse_level {
            Cell::Absent
        } else {
            cell
        }
    };
    Ok(vec![
        Cell::text(judge.name.as_str()),
        Cell::text(policy.as_str()),
        shown(Cell::number(scale.level(value))),
        shown(interval(Some(
            scale.interval(Interval::student(value, se, df, ALPHA)),
        ))),
        shown(Cell::number(scale.difference(se))),
        number(share.share()),
        count(rows.len()),
        count(own.count()),
        Cell::text(if support.refuse_level {
            "withheld: scores where labels are missing"
        } else {
            "labels lie where scores are"
        }),
    ])
}
