//! The schedule of learning rates: a linear warm-up, then a cosine down to the least.

use clover_num::Micro;
use clover_num::math;
use serde::Deserialize;
use serde::Serialize;

/// Most steps of a schedule.
pub const STEPS_MAX: u32 = 10_000;

/// What a schedule is made of; registered before step 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The rate at the end of the warm-up, above 0 and at most 1, in millionths.
    pub lr_max: Micro,
    /// The rate at the end, above 0 and at most `lr_max`, in millionths.
    pub lr_min: Micro,
    /// Steps, above `warmup` and at most 10,000.
    pub steps: u32,
    /// The rate from which sections may be added, removed and moved, in millionths.
    pub tau: Micro,
    /// Steps of the warm-up.
    pub warmup: u32,
}

/// Why numbers are no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub struct ScheduleFault {
    /// The field.
    pub field: &'static str,
    /// What it must be.
    pub expected: &'static str,
}

impl Default for Schedule {
    /// 40 steps, 4 of them warm-up, from 1 down to 0.05, sections from 0.5 on.
    fn default() -> Self {
        Self {
            lr_max: micro(1_000_000),
            lr_min: micro(50_000),
            steps: 40,
            tau: micro(500_000),
            warmup: 4,
        }
    }
}

impl Schedule {
    /// Whether the numbers are a schedule.
    ///
    /// # Errors
    /// [`ScheduleFault`] with the field that is out of its range.
    pub fn check(&self) -> Result<(), ScheduleFault> {
        let fault = |field, expected| Err(ScheduleFault { field, expected });
        if self.lr_max.value() <= 0 || self.lr_max > micro(1_000_000) {
            return fault("lr_max", "a rate above 0, at most 1");
        }
        if self.lr_min.value() <= 0 || self.lr_min > self.lr_max {
            return fault("lr_min", "a rate above 0, at most lr_max");
        }
        if self.steps <= self.warmup || self.steps > STEPS_MAX {
            return fault("steps", "more steps than warmup, at most 10000");
        }
        if self.tau.value() < 0 {
            return fault("tau", "a rate of at least 0");
        }
        Ok(())
    }

    /// The learning rate of a step, counted from 0, to the nearest millionth: `lr_max (t + 1) / warmup` in the warm-up, then
    /// `lr_min + (lr_max - lr_min) / 2 (1 + cos(pi (t - warmup) / (steps - warmup)))`; `lr_min` from the last step on.
    pub fn lr(&self, step: u32) -> Micro {
        let (most, least) = (self.lr_max.value(), self.lr_min.value());
        if step < self.warmup {
            let (part, whole) = (i64::from(step) + 1, i64::from(self.warmup));
            // Half up, in integers.
            return micro((2 * most * part + whole) / (2 * whole));
        }
        if step >= self.steps {
            return self.lr_min;
        }
        let angle = std::f64::consts::PI * f64::from(step - self.warmup)
            / f64::from(self.steps - self.warmup);
        let above = (most - least) as f64 / 2.0 * (1.0 + math::cos(angle));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a rate is at most a million millionths"
        )]
        let above = (above + 0.5).floor() as i64;
        micro(least + above)
    }
}

/// Millionths of a rate.
fn micro(millionths: i64) -> Micro {
    Micro::new(millionths).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_and_fall() {
        let schedule = Schedule::default();
        assert_eq!(schedule.check(), Ok(()));
        let rates: Vec<i64> = [0, 1, 2, 3, 4, 22, 39, 40, 99]
            .map(|step| schedule.lr(step).value())
            .into();
        // source: the formula by python's decimal, to the nearest millionth.
        assert_eq!(
            rates,
            [
                250_000, 500_000, 750_000, 1_000_000, 1_000_000, 525_000, 51_808, 50_000, 50_000
            ]
        );
        let bad = Schedule {
            steps: 4,
            ..Schedule::default()
        };
        assert_eq!(bad.check().unwrap_err().field, "steps");
    }
}
