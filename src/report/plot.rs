//! Tables as drawings; the table stays beside each.

use clover_projection::bundle::Cell;
use clover_projection::bundle::Plot;
use clover_projection::bundle::Table;
use clover_projection::bundle::TableRow;

use crate::chart::Chart;
use crate::chart::Mark;
use crate::chart::Series;
use crate::forest::Forest;
use crate::forest::ForestRow;
use crate::points;
use crate::shown;
use crate::tree;

/// A drawing of a table, if there is anything to draw.
pub(super) fn svg(table: &Table, plot: Plot) -> Option<String> {
    match plot {
        Plot::Forest {
            label,
            estimate,
            interval,
            reference,
            axis,
            before,
        } => {
            let digits = shown::digits(&table.rows, estimate);
            let stood = |row: &TableRow| row.cells.get(before?)?.as_number();
            let rows = table.rows.iter().filter_map(|row| {
                let drawn = forest_row(row, label, (estimate, digits), interval)?;
                Some((drawn, stood(row)))
            });
            let (rows, before): (Vec<ForestRow>, Vec<Option<f64>>) = rows.unzip();
            if rows.is_empty() {
                return None;
            }
            let (low, high) = Forest::spanning(&rows);
            let stood = || before.iter().flatten().copied();
            let (low, high) = (stood().fold(low, f64::min), stood().fold(high, f64::max));
            let (low, high) = match reference {
                Some(at) => (low.min(at), high.max(at)),
                None => (low, high),
            };
            let range = Forest::round(low, high);
            let forest = Forest {
                title: shown::words(&table.title),
                axis: axis.to_owned(),
                range,
                reference,
                rows,
            };
            Some(forest.svg_over(&before))
        }
        Plot::Reliability {
            series,
            x,
            y,
            weight,
        } => reliability(table, series, (x, y), weight),
        Plot::Points { .. } => points::svg(table, plot),
        Plot::Tree { .. } => tree::svg(table, plot),
        Plot::Matrix { .. } => None,
    }
}

fn forest_row(
    row: &TableRow,
    label: (usize, usize),
    (estimate, digits): (usize, usize),
    interval: Option<usize>,
) -> Option<ForestRow> {
    let value = row.cells.get(estimate)?.as_number()?;
    let word = |at: usize| row.cells.get(at).map_or(String::new(), shown::alone);
    let name = if label.0 == label.1 {
        word(label.0)
    } else {
        format!("{} / {}", word(label.0), word(label.1))
    };
    let ends = interval.and_then(|at| match row.cells.get(at) {
        Some(Cell::Interval(low, high)) => Some((low.value(), high.value())),
        _ => None,
    });
    Some(ForestRow {
        label: name,
        estimate: value,
        interval: ends,
        hollow: false,
        note: shown::number(value, digits),
    })
}

fn reliability(
    table: &Table,
    series: usize,
    (x, y): (usize, usize),
    weight: usize,
) -> Option<String> {
    let mut all: Vec<Series> = Vec::new();
    let number = |row: &TableRow, at: usize| row.cells.get(at).and_then(Cell::as_number);
    for row in &table.rows {
        let (Some(across), Some(up)) = (number(row, x), number(row, y)) else {
            continue;
        };
        let name = row.cells.get(series).map_or(String::new(), shown::alone);
        let known = all.iter().position(|of| of.label == name);
        let place = known.unwrap_or(all.len());
        if place == all.len() {
            all.push(Series {
                label: name,
                mark: Mark::Dot,
                points: Vec::new(),
                weights: Vec::new(),
            });
        }
        all[place].points.push((across, up));
        all[place].weights.push(number(row, weight).unwrap_or(1.0));
    }
    if all.is_empty() {
        return None;
    }
    let diagonal = Series {
        label: "equal".to_owned(),
        mark: Mark::Line,
        points: vec![(0.0, 0.0), (1.0, 1.0)],
        weights: Vec::new(),
    };
    all.insert(0, diagonal);
    let chart = Chart {
        title: shown::words(&table.title),
        x: table.columns.get(x)?.head.to_owned(),
        y: table.columns.get(y)?.head.to_owned(),
        series: all,
        log_y: false,
    };
    Some(chart.svg())
}
