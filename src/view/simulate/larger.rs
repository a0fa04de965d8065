//! What stops a true fix at the sizes of a plan, and the sizes at which it is accepted.

use crate::event::payload::predicate::Criterion;
use crate::view::View;
use crate::workflow::simulate::iteration::Design;
use crate::workflow::simulate::iteration::GateBlock;
use crate::workflow::simulate::iteration::Summary;

/// Criteria that are named beside each larger size: those that block most.
const SHOWN: usize = 2;
/// Share of runs from which a criterion counts as one that cannot be met at these sizes.
const NEVER: f64 = 0.5;

/// A larger size, and what came of it.
#[derive(Clone, Debug)]
pub struct Larger {
    /// Rows of fit, dev and confirm.
    pub sizes: [usize; 3],
    /// What runs of a true fix came to.
    pub found: Summary,
}

/// Whether a true fix is accepted too rarely for certain, so that larger sizes are worth trying.
pub fn is_short(of: &Summary, power: f64) -> bool {
    of.accepted.high < power
}

/// Why rows that are too few keep a gate from passing a true fix.
fn why(gate: Criterion) -> &'static str {
    match gate {
        Criterion::P1 => "the improvement on dev is within its noise of eta",
        Criterion::P2 => "the calibration error of few rows is mostly chance",
        Criterion::P3 | Criterion::P9 => {
            "cells below 40 rows are inconclusive, small ones show little"
        }
        Criterion::P4 => "the shift over few rows varies around its cap",
        Criterion::P5 => "calibrators of few rows move the anchors by chance",
        Criterion::P6 => "domains below 40 rows are inconclusive, small ones show little",
        Criterion::P8 => "too few rows move for its test at alpha over the hypotheses",
        Criterion::P10 => "the calibrator of few labels causes too much of the variance",
        Criterion::P0 | Criterion::P7 => "it is not simulated",
    }
}

fn named(one: &GateBlock) -> String {
    format!("{} on {}", one.gate, one.split.as_str())
}

fn sizes(of: [usize; 3]) -> String {
    of.map(|size| size.to_string()).join("/")
}

/// Says which criteria cannot be met, and how many labels a true fix needs.
pub(super) fn say(
    view: &mut View,
    design: &Design,
    (fix, power): (&Summary, f64),
    larger: &[Larger],
) {
    if !is_short(fix, power) {
        return;
    }
    view.gap();
    view.line(format!(
        "a true fix is accepted less often than {power} at {} labels:",
        design.sizes.iter().sum::<usize>()
    ));
    let stops = |one: &&GateBlock| one.runs.share.is_some_and(|share| share >= NEVER);
    for one in fix.blocked.iter().filter(stops) {
        view.line(format!("  {} cannot be met: {}", named(one), why(one.gate)));
    }
    let rows = larger.iter().map(|of| {
        let mut blocks: Vec<&GateBlock> = of.found.blocked.iter().collect();
        blocks.sort_by_key(|one| std::cmp::Reverse(one.runs.count));
        let blocks = blocks.into_iter().take(SHOWN);
        let blocks =
            blocks.map(|one| format!("{} {:.2}", named(one), one.runs.share.unwrap_or(0.0)));
        let accepted = &of.found.accepted;
        vec![
            sizes(of.sizes),
            of.sizes.iter().sum::<usize>().to_string(),
            format!(
                "{:.2} [{:.2}, {:.2}]",
                accepted.share.unwrap_or(0.0),
                accepted.low,
                accepted.high
            ),
            blocks.collect::<Vec<_>>().join(", "),
        ]
    });
    let head = ["fit/dev/confirm", "labels", "accepted", "blocked by"];
    view.table(&head, rows);
    let enough = larger
        .last()
        .filter(|of| of.found.accepted.share.is_some_and(|share| share >= power));
    view.line(match enough {
        Some(of) => format!(
            "labels that a true fix needs here: {} ({})",
            of.sizes.iter().sum::<usize>(),
            sizes(of.sizes)
        ),
        None => "labels that a true fix needs here: more than were tried, or no number of them"
            .to_owned(),
    });
}
