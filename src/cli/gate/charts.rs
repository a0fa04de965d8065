//! Plots of a gate: its wealth and its confidence sequence, by units.

use crate::cli::error::CliError;
use crate::num::Finite;
use crate::projection::gates;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence::Known;
use crate::workflow::gates::replay::Path;

/// A plot by its name.
pub(super) fn svg(of: Known<'_>, path: &Path, name: &str) -> Result<String, CliError> {
    match name {
        "wealth" => Ok(wealth(of, path).svg()),
        "interval" => Ok(interval(of, path).svg()),
        other => {
            let message = format!("--chart {other}: expected wealth or interval");
            Err(CliError::usage(message, "clover gate show --help"))
        }
    }
}

fn line(label: &str, points: Vec<(f64, f64)>) -> Series {
    Series {
        label: label.to_owned(),
        mark: Mark::Line,
        points,
        weights: Vec::new(),
    }
}

/// Log wealth of the claim by units, from what it carried, with the level past which it ends.
fn wealth(of: Known<'_>, path: &Path) -> Chart {
    let carried = of.gate.carried.as_ref().and_then(|carried| carried.claim);
    let start = (0.0, carried.map_or(0.0, Finite::value));
    let points = path.wealth.iter().map(|(n, log)| (*n as f64, *log));
    let points: Vec<_> = std::iter::once(start).chain(points).collect();
    let last = points.last().map_or(1.0, |(n, _)| n.max(1.0));
    let level = design::ln_stop(of.gate.test.alpha_micro.value(), of.family);
    Chart {
        title: "Log wealth of the claim".to_owned(),
        x: "units observed".to_owned(),
        y: "log e-value".to_owned(),
        series: vec![
            line("log e-value", points),
            line("ends past", vec![(0.0, level), (last, level)]),
        ],
        log_y: false,
    }
}

/// Ends of the confidence sequence by units, from the whole scale, with the margin of the null. Between registered looks it is
/// that of the look before.
fn interval(of: Known<'_>, path: &Path) -> Chart {
    let metric = of
        .record
        .in_force()
        .and_then(|one| one.manifest.metric.as_ref());
    let scale = metric.map_or(0.0, |metric| gates::scale(metric) as f64 / 1e6);
    let steps = of.gate.test.look_at.is_some();
    let ends = |start: f64, end: fn(&(u64, i64, i64)) -> i64| {
        let mut points = vec![(0.0, start)];
        for place in &path.interval {
            let (n, now) = (place.0 as f64, end(place) as f64 / 1e6);
            let before = points.last().map_or(start, |(_, before)| *before);
            points.extend(steps.then_some((n, before)));
            points.push((n, now));
        }
        points
    };
    let (high, low) = (ends(scale, |place| place.2), ends(-scale, |place| place.1));
    let last = high.last().map_or(1.0, |(n, _)| n.max(1.0));
    let margin = of.gate.test.null_margin_micro.value() as f64 / 1e6;
    Chart {
        title: "Confidence sequence of the mean effect".to_owned(),
        x: "units observed".to_owned(),
        y: "mean effect".to_owned(),
        series: vec![
            line("highest", high),
            line("lowest", low),
            line("null margin", vec![(0.0, margin), (last, margin)]),
        ],
        log_y: false,
    }
}
