//! Plots of a gate: wealth after each unit, and the confidence sequence at each look.

use crate::cli::error::CliError;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence::Known;
use crate::workflow::gates::replay;
use crate::workflow::gates::replay::Life;

/// A plot by its name.
pub(super) fn svg(of: Known<'_>, life: &Life, name: &str) -> Result<String, CliError> {
    match name {
        "wealth" => Ok(wealth(of, life).svg()),
        "interval" => Ok(interval(of, life).svg()),
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

/// Log wealth of the claim by units, with the level past which it ends.
fn wealth(of: Known<'_>, life: &Life) -> Chart {
    let path = replay::path(of, life).unwrap_or_default();
    let points: Vec<_> = path.iter().map(|(n, log)| (*n as f64, *log)).collect();
    let last = points.last().map_or(1.0, |(n, _)| *n);
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

/// Ends of the confidence sequence at each look, with the margin of the null.
fn interval(of: Known<'_>, life: &Life) -> Chart {
    let ends = |low: bool| {
        let looks = life.looks.iter().map(|(_, look)| look);
        let end = looks.map(|look| {
            let micro = if low {
                look.cs_lo_micro
            } else {
                look.cs_hi_micro
            };
            (look.n.value() as f64, micro.value() as f64 / 1e6)
        });
        end.collect::<Vec<_>>()
    };
    let last = life
        .looks
        .last()
        .map_or(1.0, |(_, look)| look.n.value() as f64);
    let margin = of.gate.test.null_margin_micro.value() as f64 / 1e6;
    Chart {
        title: "Confidence sequence of the mean effect".to_owned(),
        x: "units observed".to_owned(),
        y: "mean effect".to_owned(),
        series: vec![
            line("highest", ends(false)),
            line("lowest", ends(true)),
            line("null margin", vec![(0.0, margin), (last, margin)]),
        ],
        log_y: false,
    }
}
