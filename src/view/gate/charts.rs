//! Plots of a gate: its wealth and its confidence sequence, by units.

use crate::num::Finite;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::workflow::gates::design;
use crate::workflow::gates::evidence::GateContext;
use crate::workflow::gates::evidence::LOG_MAX;
use crate::workflow::gates::replay::Life;
use crate::workflow::gates::replay::Path;

fn series(label: &str, mark: Mark, points: Vec<(f64, f64)>) -> Series {
    Series {
        label: label.to_owned(),
        mark,
        points,
        weights: Vec::new(),
    }
}

/// Log wealth of the claim by units, from what it carried, with the level past which it ends.
pub(super) fn wealth(of: GateContext<'_>, path: &Path) -> Chart {
    let carried = of.gate.carried.as_ref().and_then(|carried| carried.claim);
    let start = (0.0, carried.map_or(0.0, Finite::value));
    let level = design::ln_stop(of.gate.test.alpha_micro.value(), of.family);
    // What is impossible under the null is drawn a little above the level, not at 10^9.
    let shown = |log: f64| if log < LOG_MAX { log } else { 1.1 * level };
    let points = path.wealth.iter().map(|(n, log)| (*n as f64, shown(*log)));
    let points: Vec<_> = std::iter::once(start).chain(points).collect();
    let last = points.last().map_or(1.0, |(n, _)| n.max(1.0));
    Chart {
        title: "Log wealth of the claim".to_owned(),
        x: "units observed".to_owned(),
        y: "log e-value".to_owned(),
        series: vec![
            series("log e-value", Mark::Line, points),
            series("ends past", Mark::Rule, vec![(0.0, level), (last, level)]),
        ],
        log_y: false,
    }
}

/// Ends of the confidence sequence by units, with the recorded looks and the margin of the null. Between registered looks it is
/// that of the look before.
pub(super) fn interval(of: GateContext<'_>, (life, path): (&Life, &Path)) -> Chart {
    let steps = of.gate.test.look_at.is_some();
    let last = (life.observed.len() as f64).max(1.0);
    let ends = |end: fn(&(u64, i64, i64)) -> i64| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for place in &path.interval {
            let (n, now) = (place.0 as f64, end(place) as f64 / 1e6);
            let before = points.last().map(|(_, before)| (n, *before));
            points.extend(before.filter(|_| steps));
            points.push((n, now));
        }
        let now = points.last().map(|(_, now)| (last, *now));
        points.extend(now.filter(|_| steps));
        points
    };
    let looked = life.looks.iter().flat_map(|(_, look)| {
        let n = look.n.value() as f64;
        [look.cs_lo_micro, look.cs_hi_micro].map(|end| (n, end.value() as f64 / 1e6))
    });
    let margin = of.gate.test.null_margin_micro.value() as f64 / 1e6;
    Chart {
        title: "Confidence sequence of the mean effect".to_owned(),
        x: "units observed".to_owned(),
        y: "mean effect".to_owned(),
        series: vec![
            series("highest", Mark::Line, ends(|place| place.2)),
            series("lowest", Mark::Line, ends(|place| place.1)),
            series("recorded look", Mark::Point, looked.collect()),
            series(
                "null margin",
                Mark::Rule,
                vec![(0.0, margin), (last, margin)],
            ),
        ],
        log_y: false,
    }
}
