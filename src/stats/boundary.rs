//! Support of the calibrator: how much of a target lies where nobody labelled, and what may then be said.
//!
//! Sources: the CJE paper, appendix D.2 and D.7; `cje-eval` 0.9.3 `boundary_card`.

use crate::inference::Interval;
use crate::quantile;
use crate::sample::SampleError;
use crate::sample::Values;
use crate::sample::align;

/// Out-of-range mass from which a level is refused.
pub const OUT_OF_RANGE_MAX: f64 = 0.05;
/// Saturated mass from which the card cautions.
pub const SATURATION_MAX: f64 = 0.20;
/// Slope below which a calibrator is flat at an end.
pub const FLAT_BELOW: f64 = 0.05;
/// Share of the reward range next to an end that counts as saturated.
const BAND: f64 = 0.05;
/// Mass of the target in a tail from which the tail needs labels.
const TAIL_MASS: f64 = 0.05;
/// Out-of-range mass that no scarcity of labels excuses.
const OUT_OF_RANGE_CEILING: f64 = 0.20;

/// The peer's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No material extrapolation.
    Ok,
    /// Rewards concentrate at the ends of the labelled range.
    Caution,
    /// No level may be claimed.
    RefuseLevel,
}

impl Status {
    /// The peer's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Caution => "CAUTION",
            Self::RefuseLevel => "REFUSE-LEVEL",
        }
    }
}

/// The peer's boundary card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Card {
    /// Its verdict.
    pub status: Status,
    /// Share of the target's scores below the labelled ones.
    pub below: f64,
    /// Share of the target's scores above the labelled ones.
    pub above: f64,
    /// Both.
    pub out_of_range: f64,
    /// Share of rewards within 5 % of the range from either end of it.
    pub saturation: f64,
    /// Width of the identified interval of the mean; `None` if nothing is out of range.
    pub partial_id_width: Option<f64>,
}

/// Checks the support of a target: scores `target`, rewards `rewards`, labelled scores `labelled`, and the range
/// of the calibrator's rewards on labelled rows (in the label's unit interval).
///
/// # Errors
/// [`SampleError::Parameter`] unless `low <= high` are finite.
pub fn card(
    target: Values<'_>,
    labelled: Values<'_>,
    rewards: Values<'_>,
    low: f64,
    high: f64,
) -> Result<Card, SampleError> {
    range(low, high)?;
    let (first, last) = ends(labelled);
    let share = |values: Values<'_>, inside: &dyn Fn(f64) -> bool| {
        let count = values.as_slice().iter().filter(|&&value| inside(value));
        count.count() as f64 / values.len() as f64
    };
    let below = share(target, &|score| score < first);
    let above = share(target, &|score| score > last);
    let out_of_range = below + above;
    let margin = BAND * (high - low);
    let saturation = share(rewards, &|reward| {
        reward <= low + margin || reward >= high - margin
    });
    let status = if out_of_range >= OUT_OF_RANGE_MAX {
        Status::RefuseLevel
    } else if saturation >= SATURATION_MAX {
        Status::Caution
    } else {
        Status::Ok
    };
    Ok(Card {
        status,
        below,
        above,
        out_of_range,
        saturation,
        partial_id_width: (out_of_range > 0.0).then_some(below * low + above * (1.0 - high)),
    })
}

fn range(low: f64, high: f64) -> Result<(), SampleError> {
    if low.is_finite() && high.is_finite() && low <= high {
        return Ok(());
    }
    Err(SampleError::Parameter {
        name: "reward range",
        expected: "two finite ends in order",
    })
}

fn ends(values: Values<'_>) -> (f64, f64) {
    let fold = |best: f64, pick: fn(f64, f64) -> f64| {
        values.as_slice().iter().fold(best, |a, &b| pick(a, b))
    };
    (
        fold(f64::INFINITY, f64::min),
        fold(f64::NEG_INFINITY, f64::max),
    )
}

/// Slope of a calibrator over the lowest and the highest decile of labelled scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slopes {
    /// `(f(q.10) - f(min)) / (q.10 - min)`; `None` if the decile has no width.
    pub low: Option<f64>,
    /// `(f(max) - f(q.90)) / (max - q.90)`; `None` if the decile has no width.
    pub high: Option<f64>,
}

impl Slopes {
    /// Whether the calibrator is flat at the low and at the high end: |slope| below 0.05, or no width.
    pub fn flat(&self) -> (bool, bool) {
        let flat = |slope: Option<f64>| slope.is_none_or(|slope| slope.abs() < FLAT_BELOW);
        (flat(self.low), flat(self.high))
    }
}

/// Scores at which [`slopes`] needs the calibrator: minimum, q.10, q.90 and maximum of the labelled scores.
pub fn slope_points(labelled: Values<'_>) -> [f64; 4] {
    let sorted = quantile::ascending(labelled.as_slice());
    [
        sorted[0],
        quantile::type_7(&sorted, 0.1),
        quantile::type_7(&sorted, 0.9),
        sorted[sorted.len() - 1],
    ]
}

/// Slopes at the ends, from the calibrator's finite values at [`slope_points`].
pub fn slopes(points: [f64; 4], values: [f64; 4]) -> Slopes {
    let slope = |from: usize, to: usize| {
        let width = points[to] - points[from];
        let slope = (values[to] - values[from]) / width;
        (width > 0.0 && slope.is_finite()).then_some(slope)
    };
    Slopes {
        low: slope(0, 1),
        high: slope(2, 3),
    }
}

/// Labels and target mass in one tail of the labelled scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCoverage {
    /// Where it begins: q.10 or q.90 of the labelled scores, type 7.
    pub edge: f64,
    /// Labelled scores strictly beyond the edge.
    pub labels: usize,
    /// Share of the target strictly beyond the edge.
    pub mass: f64,
    /// Whether the mass is at least 0.05 and `(labels + 1) / (m + 2) < mass / 3`.
    pub starved: bool,
}

/// Whether a level may be claimed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    /// Out-of-range mass of the target.
    pub out_of_range: f64,
    /// Whether that mass is more than the scarcity of labels explains.
    pub range_exceeded: bool,
    /// The tail below q.10.
    pub low: TailCoverage,
    /// The tail above q.90.
    pub high: TailCoverage,
    /// REFUSE-LEVEL: the range exceeded, or a starved tail.
    pub refuse_level: bool,
}

/// Whether a region with `labels` of `m` labelled scores lacks labels for a share `mass` of the target: the mass is at
/// least 0.05, and the labels' smoothed share, `ends` being the ends of the range it lies at, is below a third of it.
fn starved(mass: f64, labels: usize, m: usize, ends: f64) -> bool {
    let smoothed = (labels as f64 + ends) / (m as f64 + 2.0);
    mass >= TAIL_MASS && smoothed < mass / 3.0
}

/// The rule for REFUSE-LEVEL: a tail where the target has mass and labels are scarce, or out-of-range mass of at least
/// 5 %. One stray label at an extreme clears a range, not a count.
///
/// Beyond the range there is no label, and m labels of the target's own law leave about 2 / (m + 1) of it outside: 5 %
/// out of range is no evidence from few labels. The same count rule decides it: refused where the mass beyond one end
/// exceeds 3 / (m + 2), or beyond both 6 / (m + 2), from 58 and 118 labels on at 5 % sharp; 20 % is refused always.
pub fn support(target: Values<'_>, labelled: Values<'_>) -> Support {
    let sorted = quantile::ascending(labelled.as_slice());
    let m = labelled.len();
    let share = |beyond: &dyn Fn(f64) -> bool| {
        let count = target.as_slice().iter().filter(|&&score| beyond(score));
        count.count() as f64 / target.len() as f64
    };
    let tail = |edge: f64, beyond: fn(f64, f64) -> bool| {
        let labels = sorted.iter().filter(|&&score| beyond(score, edge)).count();
        let mass = share(&|score| beyond(score, edge));
        TailCoverage {
            edge,
            labels,
            mass,
            starved: starved(mass, labels, m, 1.0),
        }
    };
    let low = tail(quantile::type_7(&sorted, 0.1), |score, edge| score < edge);
    let high = tail(quantile::type_7(&sorted, 0.9), |score, edge| score > edge);
    let (first, last) = (sorted[0], sorted[m - 1]);
    let (below, above) = (share(&|score| score < first), share(&|score| score > last));
    let out_of_range = below + above;
    let range_exceeded = starved(below, 0, m, 1.0)
        || starved(above, 0, m, 1.0)
        || starved(out_of_range, 0, m, 2.0)
        || out_of_range >= OUT_OF_RANGE_CEILING;
    Support {
        out_of_range,
        range_exceeded,
        low,
        high,
        refuse_level: range_exceeded || low.starved || high.starved,
    }
}

/// Partial-identification bounds: what monotonicity alone says of the mean reward. Rows in range keep `rewards`; below it the reward lies in
/// [0, `low`], above it in [`high`, 1], `low` and `high` being the ends of the labelled rewards.
///
/// # Errors
/// [`SampleError::Misaligned`]; [`SampleError::Parameter`] unless 0 <= low <= high <= 1.
pub fn bounds(
    target: Values<'_>,
    rewards: Values<'_>,
    labelled: Values<'_>,
    low: f64,
    high: f64,
) -> Result<Interval, SampleError> {
    align("rewards", rewards.len(), target.len())?;
    range(low, high)?;
    if low < 0.0 || high > 1.0 {
        return Err(SampleError::Parameter {
            name: "reward range",
            expected: "ends in [0, 1]",
        });
    }
    let (first, last) = ends(labelled);
    let (mut lower, mut upper) = (0.0, 0.0);
    for (&score, &reward) in target.as_slice().iter().zip(rewards.as_slice()) {
        let (least, most) = if score < first {
            (0.0, low)
        } else if score > last {
            (high, 1.0)
        } else {
            (reward, reward)
        };
        lower += least;
        upper += most;
    }
    let rows = target.len() as f64;
    Ok(Interval {
        low: lower / rows,
        high: upper / rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> Values<'_> {
        Values::new("values", values).unwrap()
    }

    #[test]
    fn one_stray_label_does_not_clear_a_tail() {
        let mut labelled: Vec<f64> = (0..200).map(|i| 0.5 + f64::from(i) / 400.0).collect();
        labelled[0] = 0.0;
        // 30 % of the target lies far below all labels but one.
        let target: Vec<f64> = (0..100).map(|i| if i < 30 { 0.1 } else { 0.7 }).collect();
        let found = support(values(&target), values(&labelled));
        assert!(found.out_of_range.abs() < 1e-15);
        assert!((found.low.mass - 0.3).abs() < 1e-15);
        // A tenth of the labels lies in the tail: 0.104 is not below 0.3 / 3.
        assert!(!found.low.starved);
        let target: Vec<f64> = (0..100).map(|i| if i < 40 { 0.1 } else { 0.7 }).collect();
        assert!(support(values(&target), values(&labelled)).refuse_level);
        let same = support(values(&labelled), values(&labelled));
        assert!(!same.refuse_level);
    }

    #[test]
    fn what_few_labels_leave_outside_is_no_evidence() {
        let spread =
            |m: usize| -> Vec<f64> { (0..m).map(|i| 0.1 + 0.8 * i as f64 / m as f64).collect() };
        let target = |beyond: usize| -> Vec<f64> {
            (0..100)
                .map(|i| if i < beyond { 0.95 } else { 0.5 })
                .collect()
        };
        let exceeded = |m: usize, beyond: usize| {
            support(values(&target(beyond)), values(&spread(m))).range_exceeded
        };
        // By hand: 3 / 26 of the target from 24 labels, 5 % from 58, 20 % from any.
        assert!(!exceeded(24, 11) && exceeded(24, 12));
        assert!(!exceeded(57, 5) && exceeded(59, 5) && !exceeded(480, 4));
        assert!(exceeded(4, 20) && !exceeded(4, 19));
    }

    #[test]
    fn bounds_are_as_wide_as_the_card_says() {
        let labelled = [0.3, 0.5, 0.8];
        let target = [0.1, 0.2, 0.4, 0.9];
        let rewards = [0.25, 0.25, 0.5, 0.7];
        let card = card(
            values(&target),
            values(&labelled),
            values(&rewards),
            0.25,
            0.7,
        )
        .unwrap();
        let bounds = bounds(
            values(&target),
            values(&rewards),
            values(&labelled),
            0.25,
            0.7,
        )
        .unwrap();
        let width = card.partial_id_width.unwrap();
        assert!((bounds.width() - width).abs() < 1e-15);
        assert_eq!(card.status, Status::RefuseLevel);
        assert!(
            super::card(
                values(&target),
                values(&labelled),
                values(&rewards),
                0.7,
                0.2
            )
            .is_err()
        );
    }

    #[test]
    fn slopes_need_width() {
        let labelled: Vec<f64> = (0..=10).map(|i| f64::from(i) / 10.0).collect();
        let points = slope_points(values(&labelled));
        assert!((points[1] - 0.1).abs() < 1e-15 && (points[2] - 0.9).abs() < 1e-15);
        let found = slopes(points, [0.0, 0.002, 0.5, 0.9]);
        assert!((found.low.unwrap() - 0.02).abs() < 1e-15);
        assert_eq!(found.flat(), (true, false));
        let tied = slopes([0.5; 4], [0.1; 4]);
        assert_eq!(tied.low, None);
        assert_eq!(tied.flat(), (true, true));
    }
}
