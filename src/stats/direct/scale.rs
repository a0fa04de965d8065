//! Bounded scales, mapped to [0, 1] and back.

use crate::inference::Interval;
use crate::sample::SampleError;

/// How far a value may lie outside its scale, by rounding, and be clipped.
const SLACK: f64 = 1e-9;

/// A bounded scale such as 0 to 100 or 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// 0 to 1.
    pub const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// A declared scale.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless both ends are finite and `high > low`.
    pub fn new(low: f64, high: f64) -> Result<Self, SampleError> {
        if low.is_finite() && high.is_finite() && high > low {
            return Ok(Self { low, high });
        }
        Err(SampleError::Parameter {
            name: "scale",
            expected: "two finite ends, the second above the first",
        })
    }

    /// The scale of values for which none was declared: the unit scale if all lie in it, else their least and
    /// largest. `None` for values that do not differ and lie outside [0, 1]: all of them map to 0.5.
    pub fn observed(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low >= 0.0 && high <= 1.0 || low > high {
            return Some(Self::UNIT);
        }
        (high > low).then_some(Self { low, high })
    }

    /// Lower and upper end.
    pub fn ends(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Upper less lower end.
    pub fn span(self) -> f64 {
        self.high - self.low
    }

    /// A value on [0, 1]; `None` outside the scale by more than rounding.
    pub fn to_unit(self, value: f64) -> Option<f64> {
        if self == Self::UNIT {
            let inside = (-SLACK..=1.0 + SLACK).contains(&value);
            return inside.then(|| value.clamp(0.0, 1.0));
        }
        let unit = (value - self.low) / (self.high - self.low);
        let inside = value >= self.low - SLACK && value <= self.high + SLACK;
        inside.then(|| unit.clamp(0.0, 1.0))
    }

    /// A level on [0, 1] carried back.
    pub fn level(self, unit: f64) -> f64 {
        unit * self.span() + self.low
    }

    /// A difference or standard error carried back.
    pub fn difference(self, unit: f64) -> f64 {
        unit * self.span()
    }

    /// An interval of levels carried back.
    pub fn interval(self, unit: Interval) -> Interval {
        Interval {
            low: self.level(unit.low),
            high: self.level(unit.high),
        }
    }
}
