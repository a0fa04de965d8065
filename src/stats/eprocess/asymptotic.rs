//! The asymptotic class: confidence sequences that hold as observations grow, kept apart from exact verdicts by type.
//!
//! A judge's prediction of every unit and oracle labels of a random sample give the doubly robust pseudo-outcome
//! `psi = f + (A / pi)(Y - f)`, whose mean given the past is that of Y whatever the judge says. An exact bet on it must
//! assume the worst case of `1/pi` and gains nothing, so it is published beside the labels-only gate, never merged with it.
//! Source: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024.

use crate::sample::InsufficientData;
use crate::sample::SampleError;
use crate::sample::Unfit;
use crate::sample::open_unit;
use clover_num::math;

/// Labels before which an asymptotic sequence says nothing.
pub const LABELS_MIN: u64 = 25;

/// A time-uniform interval whose coverage is asymptotic. It has no e-value and cannot end a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymptotic {
    /// Lower end; minus infinity for none.
    pub low: f64,
    /// Upper end; infinity for none.
    pub high: f64,
}

/// How a sequence is tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boundary {
    alpha: f64,
    rho_squared: f64,
}

impl Boundary {
    /// Tightest after about `target` observations: `rho^2 = (y - 1) / target` with `y - ln y = 1 - 2 ln alpha`, whose
    /// common approximation is `(-2 ln alpha + ln(-2 ln alpha + 1)) / target`.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] unless alpha lies in (0, 1) and the target is at least 1.
    pub fn new(alpha: f64, target: u64) -> Result<Self, SampleError> {
        open_unit("alpha", alpha)?;
        if target == 0 {
            return Err(SampleError::Parameter {
                name: "target",
                expected: "at least 1 observation",
            });
        }
        let level = 1.0 - 2.0 * math::ln(alpha);
        let mut y = level;
        // y -> level + ln y contracts by 1/y; y is above 1.
        for _ in 0..200 {
            y = level + math::ln(y);
        }
        Ok(Self {
            alpha,
            rho_squared: (y - 1.0) / target as f64,
        })
    }

    /// Tuned by rho itself, above 0: valid whatever it is, if it was fixed beforehand.
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn with_rho(alpha: f64, rho: f64) -> Result<Self, SampleError> {
        open_unit("alpha", alpha)?;
        if !(rho > 0.0 && rho.is_finite()) {
            return Err(SampleError::Parameter {
                name: "rho",
                expected: "a finite number above 0",
            });
        }
        Ok(Self {
            alpha,
            rho_squared: rho * rho,
        })
    }

    /// rho.
    pub fn rho(&self) -> f64 {
        self.rho_squared.sqrt()
    }

    /// `sqrt(2 (t r^2 + 1) / (t^2 r^2) ln(sqrt(t r^2 + 1) / alpha))`, in standard deviations.
    pub fn two_sided(&self, n: u64) -> f64 {
        let t = n as f64;
        let spread = t * self.rho_squared + 1.0;
        let ln = math::ln(spread.sqrt() / self.alpha);
        (2.0 * spread / (t * t * self.rho_squared) * ln).sqrt()
    }
}

/// Running mean and variance (n - 1) of a stream (Welford).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningMoments {
    n: u64,
    mean: f64,
    squares: f64,
}

impl RunningMoments {
    /// The next finite value.
    ///
    /// # Errors
    /// [`SampleError::NotFinite`].
    pub fn push(&mut self, value: f64) -> Result<(), SampleError> {
        if !value.is_finite() {
            let row = usize::try_from(self.n).unwrap_or(usize::MAX);
            return Err(SampleError::NotFinite {
                column: "value",
                row,
            });
        }
        self.n += 1;
        let before = value - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (value - self.mean);
        Ok(())
    }

    /// Values so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The interval after at least `burn_in` values.
    ///
    /// # Errors
    /// [`InsufficientData`] before that, or for one value.
    pub fn interval(
        &self,
        boundary: &Boundary,
        burn_in: u64,
    ) -> Result<Asymptotic, InsufficientData> {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        InsufficientData::unless("observations", count(self.n), count(burn_in.max(2)))?;
        let deviation = (self.squares / (self.n as f64 - 1.0)).sqrt();
        let half = deviation * boundary.two_sided(self.n);
        Ok(Asymptotic {
            low: self.mean - half,
            high: self.mean + half,
        })
    }
}

/// A stream of doubly robust pseudo-outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoublyRobust {
    least: f64,
    running: RunningMoments,
    labels: u64,
    low: f64,
    high: f64,
    boundary: Boundary,
}

impl DoublyRobust {
    /// Labelling probabilities are at least `least`, in (0, 1].
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn new(boundary: Boundary, least: f64) -> Result<Self, SampleError> {
        if !(least > 0.0 && least <= 1.0) {
            return Err(SampleError::Parameter {
                name: "pi_min",
                expected: "above 0 and at most 1",
            });
        }
        Ok(Self {
            least,
            running: RunningMoments::default(),
            labels: 0,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            boundary,
        })
    }

    /// The next unit: prediction and labelling probability, both fixed before the label was drawn, and the label if it was.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn push(&mut self, predicted: f64, pi: f64, label: Option<f64>) -> Result<(), SampleError> {
        if !(self.least..=1.0).contains(&pi) {
            return Err(SampleError::Parameter {
                name: "pi",
                expected: "between pi_min and 1",
            });
        }
        let correction = label.map_or(0.0, |label| (label - predicted) / pi);
        self.running.push(predicted + correction)?;
        self.labels += u64::from(label.is_some());
        Ok(())
    }

    /// The interval, intersected with those of earlier calls, after at least `burn_in` labels and [`LABELS_MIN`].
    ///
    /// # Errors
    /// [`Unfit::InsufficientData`] before that.
    pub fn interval(&mut self, burn_in: u64) -> Result<Asymptotic, Unfit> {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        InsufficientData::unless("labels", count(self.labels), count(burn_in.max(LABELS_MIN)))?;
        let found = self.running.interval(&self.boundary, 2)?;
        (self.low, self.high) = (self.low.max(found.low), self.high.min(found.high));
        Ok(Asymptotic {
            low: self.low,
            high: self.high,
        })
    }
}
