//! How wide the interval of a value is read: by the margin of the audit that it rests on, within the scale of labels.

use crate::event::id::ExperimentId;
use crate::event::payload::audit::TransportStanding;
use crate::event::payload::estimate::EstimateRecorded;
use crate::event::payload::estimated::IntervalEnds;
use crate::num::Finite;
use crate::num::Micro;
use crate::view::estimate::ends;
use crate::view::values::Ends;
use crate::workflow::estimate::compute::Found;

/// The interval that people read: where a value rests on a passed audit, that leaves its margin open; and where labels have a
/// declared scale, none reaches beyond it.
pub(super) fn decisive(
    (found, experiment): (&Found, &ExperimentId),
    policy: usize,
    row: &EstimateRecorded,
) -> Option<Ends> {
    let margin = found.margin(experiment, policy, row.claim);
    let wider = |end: Finite, by: f64| Finite::new(end.value() + by).unwrap_or(end);
    let of = row.interval?;
    let of = IntervalEnds {
        high: wider(of.high, margin),
        low: wider(of.low, -margin),
    };
    Some(ends(on_scale(row, of)))
}

/// An interval without what lies beyond the declared scale of labels, where there is one.
pub(super) fn on_scale(row: &EstimateRecorded, of: IntervalEnds) -> IntervalEnds {
    let Some(scale) = row.terms.label_scale else {
        return of;
    };
    let unit = |micro: Micro| micro.value() as f64 / 1e6;
    let (low, high) = (unit(scale.low_micro), unit(scale.high_micro));
    let within = |value: Finite| Finite::new(value.value().clamp(low, high)).unwrap_or(value);
    IntervalEnds {
        high: within(of.high),
        low: within(of.low),
    }
}

/// A value beside the failed audit that stands against it.
pub(super) fn noted(value: String, failed: Option<TransportStanding>) -> String {
    match failed {
        Some(_) => format!("{value} transport FAIL"),
        None => value,
    }
}
