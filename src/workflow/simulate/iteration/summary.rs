//! What many simulated iterations come to.

use std::collections::BTreeMap;

use clover_event::payload::predicate::Criterion;
use clover_event::payload::predicate::CriterionSplit;
use clover_num::math;
use clover_stats::inference::Interval;
use serde::Serialize;

use crate::simulate::iteration::IterationResult;

/// Level of the intervals.
const ALPHA: f64 = 0.05;

/// How many of how many, with the 95 % interval of the share (Wilson 1927).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
    /// Their quotient; `None` of none.
    pub share: Option<f64>,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Share {
    /// The share of a count.
    pub fn new(count: u64, of: u64) -> Self {
        let interval = Interval::wilson(count, of, ALPHA);
        Self {
            count,
            of,
            share: (of > 0).then(|| count as f64 / of as f64),
            low: interval.low,
            high: interval.high,
        }
    }
}

/// A gate that did not let runs pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GateBlock {
    /// Which.
    pub gate: Criterion,
    /// Where.
    pub split: CriterionSplit,
    /// How many of the runs that did not pause.
    pub runs: Share,
}

/// What runs came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Of all runs: every gate passed.
    pub accepted: Share,
    /// Of all runs: accepted, and truly no better.
    pub accepted_wrongly: Share,
    /// Gates that blocked, in order; a run may be blocked by several.
    pub blocked: Vec<GateBlock>,
    /// Mean change of the squared error on confirm over the runs that did not pause.
    pub dmse: Option<f64>,
    /// Mean over the runs that did not pause of the standard deviation of a row's change on confirm.
    pub difference_sd: Option<f64>,
    /// Of the runs that did not pause: P8 passed.
    pub p8: Share,
    /// Of the runs that reached confirm: P8 passed, and truly no better.
    pub p8_wrongly: Share,
    /// Of all runs: paused for labels.
    pub paused: Share,
    /// Of all runs: every gate on dev passed.
    pub reached: Share,
    /// Runs.
    pub runs: u64,
    /// Of the runs that reached confirm: accepted, and truly no better.
    pub reached_wrongly: Share,
    /// Under a sequential test, of the runs that reached confirm: the mean share of labels that stay sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<f64>,
    /// Under a sequential test, of the runs that reached confirm: it crossed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossed: Option<Share>,
    /// Mean change of the squared error on fresh rows over the runs that did not pause.
    pub worth: Option<f64>,
}

impl Summary {
    /// Of runs.
    pub fn of(found: &[IterationResult]) -> Self {
        let count = |is: &dyn Fn(&IterationResult) -> bool| {
            found.iter().filter(|run| is(run)).count() as u64
        };
        let runs = found.len() as u64;
        let paused = count(&|run| run.paused);
        let reached = count(&|run| run.reached);
        let is_wrong = |run: &IterationResult| run.worth >= 0.0;
        let wrong = count(&|run| run.accepted && is_wrong(run));
        let p8 = count(&|run| run.reached && run.p8 && is_wrong(run));
        let mean = |of: &dyn Fn(&IterationResult) -> f64| {
            let values: Vec<f64> = found.iter().filter(|run| !run.paused).map(of).collect();
            (!values.is_empty()).then(|| math::mean(&values))
        };
        let deviations: Vec<f64> = found.iter().filter_map(|run| run.difference_sd).collect();
        let seen = found.iter().filter(|run| run.reached);
        let labels: Vec<(f64, bool)> = seen.filter_map(|run| run.labels).collect();
        let left: Vec<f64> = labels.iter().map(|(shown, _)| 1.0 - shown).collect();
        let some = !labels.is_empty();
        let crossed = labels.iter().filter(|(_, crossed)| *crossed).count() as u64;
        let mut blocked = BTreeMap::<(CriterionSplit, Criterion), u64>::new();
        for (gate, split) in found.iter().flat_map(|run| &run.blocked) {
            *blocked.entry((*split, *gate)).or_default() += 1;
        }
        let mut blocked: Vec<GateBlock> = blocked
            .into_iter()
            .map(|((split, gate), count)| GateBlock {
                gate,
                split,
                runs: Share::new(count, runs - paused),
            })
            .collect();
        // Dev comes first.
        blocked.sort_by_key(|one| (one.split == CriterionSplit::Confirm, one.gate));
        Self {
            accepted: Share::new(count(&|run| run.accepted), runs),
            accepted_wrongly: Share::new(wrong, runs),
            blocked,
            dmse: mean(&|run| run.dmse),
            difference_sd: (!deviations.is_empty()).then(|| math::mean(&deviations)),
            p8: Share::new(count(&|run| run.p8), runs - paused),
            p8_wrongly: Share::new(p8, reached),
            paused: Share::new(paused, runs),
            reached: Share::new(reached, runs),
            runs,
            reached_wrongly: Share::new(wrong, reached),
            saved: some.then(|| math::mean(&left)),
            crossed: some.then(|| Share::new(crossed, labels.len() as u64)),
            worth: mean(&|run| run.worth),
        }
    }
}
