//! A plan held against its data: what is short, the pause that waits, and what would do.

use serde::Serialize;

use crate::event::payload::diagnosis::IterationPausedForLabels;
use crate::event::payload::intake::SplitPart;
use crate::view::View;
use crate::view::iterate::number;
use crate::view::text::thousands;
use crate::workflow::iterate::course::Course;
use crate::workflow::iterate::reach;
use crate::workflow::iterate::reach::Pause;

/// Rows of a part, planned and there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartSize {
    /// `fit`, `dev` or `confirm`.
    pub part: &'static str,
    /// Rows that the plan says.
    pub planned: u64,
    /// Scored rows that are there.
    pub there: u64,
}

/// The pause that the fit window lets expect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExpectedPause {
    /// Whether the iteration would pause.
    pub pauses: bool,
    /// The calibrator's share of the variance, from 0 to 1.
    pub share: f64,
    /// The share with a label on every row of the fit part.
    pub share_at_best: f64,
    /// The gain in sight.
    pub gain: f64,
    /// The gain that would do.
    pub eta: f64,
    /// Labelled rows of the fit part.
    pub labelled: u64,
}

impl From<Pause> for ExpectedPause {
    fn from(of: Pause) -> Self {
        Self {
            pauses: of.is_due(),
            share: of.share,
            share_at_best: of.share_at_best(),
            gain: of.gain,
            eta: of.eta,
            labelled: of.labelled,
        }
    }
}

/// A plan held against its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reach {
    /// Whether the data can never reach what the plan asks.
    pub out_of_reach: bool,
    /// Fit, dev and confirm.
    pub parts: Vec<PartSize>,
    /// What is short, in words.
    pub lacks: Vec<String>,
    /// The pause that the fit window lets expect; `null` where too few labels are there to tell.
    pub pause: Option<ExpectedPause>,
}

impl From<&reach::Reach> for Reach {
    fn from(of: &reach::Reach) -> Self {
        let parts = of.parts.iter().map(|of| PartSize {
            part: of.part.as_str(),
            planned: of.planned,
            there: of.there,
        });
        Self {
            out_of_reach: of.is_out_of_reach(),
            parts: parts.collect(),
            lacks: lacks(of),
            pause: of.pause.map(ExpectedPause::from),
        }
    }
}

/// What the data of a plan lack for good, each with the way out.
pub fn lacks(of: &reach::Reach) -> Vec<String> {
    let mut lacks: Vec<String> = Vec::new();
    let short = of.parts.iter().filter(|of| of.is_short());
    let short: Vec<String> = short
        .map(|of| {
            let (there, planned) = (thousands(of.there), thousands(of.planned));
            format!("{} has {there} rows of {planned} planned", of.part.as_str())
        })
        .collect();
    if !short.is_empty() {
        lacks.push(short.join(", "));
    }
    for fault in &of.faults {
        let (path, expected, found) = (&fault.path, &fault.expected, &fault.found);
        lacks.push(format!(
            "with the rows that are there, {path}: expected {expected}, found {found}"
        ));
    }
    lacks.extend(
        of.unmet
            .iter()
            .map(|unmet| format!("cannot be met: {unmet}")),
    );
    if let Some(pause) = of.pause.filter(|_| of.pauses_for_good()) {
        lacks.push(format!(
            "by its fit labels it is likely to pause for labels: {}",
            never(&pause)
        ));
    }
    if !lacks.is_empty() {
        let way = "a plan of what is there: clover prereg new --template iteration --from-data; or take in more rows, and \
                   split again";
        lacks.push(way.to_owned());
    }
    lacks
}

/// That no label of these rows lifts a pause, and what would.
fn never(of: &Pause) -> String {
    format!(
        "with a label on each of its {} fit rows the calibrator would still cause {} of the variance (0.3), and more rows of \
         the same kind change neither; what would: a gain of {} in sight, by slices in which the judge is off by more, or \
         scores that say more of the labels",
        thousands(of.rows),
        number(round(of.share_at_best())),
        number(of.eta)
    )
}

fn round(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

/// Adds to the view of an opening what its data hold of its plan.
pub(super) fn opened(view: &mut View, of: &Result<reach::Reach, String>) {
    let of = match of {
        Ok(of) => of,
        Err(why) => {
            view.sentence(format!("its sizes were not held against data yet: {why}"));
            return;
        }
    };
    for lack in lacks(of) {
        view.sentence(format!("out of reach: {lack}"));
    }
    if let Some(pause) = of.pause.filter(Pause::rests_on_gain) {
        view.sentence(format!(
            "it goes on only while dev shows a gain of {} in sight: the fit window shows {}, and labels alone do not carry it",
            number(pause.eta),
            number(pause.gain)
        ));
    }
    let Some(pause) = of.pause.filter(|of| of.is_due() && of.is_curable()) else {
        return;
    };
    view.sentence(format!(
        "it may pause for labels: the calibrator causes {} of the variance (0.3) by the fit window, and {} is in sight; {} \
         more labels of its {} fit rows would do",
        number(round(pause.share)),
        number(pause.gain),
        thousands(pause.labels_missing()),
        thousands(pause.rows)
    ));
}

/// What a pause rests on, and whether these data can ever lift it.
pub(super) fn paused(said: &IterationPausedForLabels, course: &Course) -> String {
    let parts = &course.loaded.table.data().parts;
    let rows = parts.iter().filter(|of| **of == Some(SplitPart::Fit));
    let of = Pause {
        share: said.share.value(),
        gain: said.gain.value(),
        eta: course.ground.thresholds.eta_micro.value() as f64 / 1e6,
        labelled: course.ground.baseline.rows.len() as u64,
        rows: rows.count() as u64,
    };
    let rests = format!(
        "paused: the calibrator causes {} of the variance (0.3) and {} is in sight",
        number(said.share.value()),
        number(said.gain.value())
    );
    if of.is_curable() {
        return format!(
            "{rests}; {} more labels would do, and {} of the {} fit rows have none",
            thousands(said.labels_requested.value()),
            thousands(of.rows.saturating_sub(of.labelled)),
            thousands(of.rows)
        );
    }
    format!("{rests}. These rows cannot lift it: {}", never(&of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::iterate::reach::PartSize as Size;

    #[test]
    fn what_lacks_is_told_with_its_numbers_and_a_way_out() {
        let size = |part, planned, there| Size {
            part,
            planned,
            there,
        };
        let pause = Pause {
            share: 0.6,
            gain: 0.0002,
            eta: 0.001,
            labelled: 497,
            rows: 497,
        };
        let mut of = reach::Reach {
            parts: [
                size(SplitPart::Fit, 4_000, 497),
                size(SplitPart::Dev, 247, 247),
                size(SplitPart::Confirm, 3_000, 256),
            ],
            faults: Vec::new(),
            unmet: Vec::new(),
            pause: Some(pause),
        };
        let words = lacks(&of).join("\n");
        for part in [
            "fit has 497 rows of 4,000 planned, confirm has 256 rows of 3,000 planned",
            "by its fit labels it is likely to pause for labels: with a label on each of its 497 fit rows",
            "would still cause 0.6 of the variance",
            "a gain of 0.001 in sight",
            "clover prereg new --template iteration --from-data",
        ] {
            assert!(words.contains(part), "{part}\n{words}");
        }
        of.parts[0].planned = 500;
        of.parts[2].planned = 250;
        of.pause = None;
        assert!(lacks(&of).is_empty());
        assert!(!of.is_out_of_reach());
    }
}
