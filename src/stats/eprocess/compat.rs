//! The gate of `agent-eval` 0.170.0, bit for bit: raw products, a threshold that equality reaches.
//!
//! For comparison and as a named alternative; native gates bet with logarithms and round outward. Its snapshots are
//! accepted only with the deltas that they claim to sum up: a state is what replaying gives, never what a caller says.

use crate::eprocess::design::Direction;
use crate::eprocess::moments::Moments;
use crate::sample::SampleError;
use crate::sample::open_unit;

/// The peer's default bound on bets.
pub const MAX_BET: f64 = 0.5;

fn parameter(name: &'static str, expected: &'static str) -> SampleError {
    SampleError::Parameter { name, expected }
}

/// Wealth against "the mean is at most `null_mean`", as a raw product.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    alpha: f64,
    max_bet: f64,
    null_mean: f64,
    wealth: f64,
    moments: Moments,
    decided_at: Option<u64>,
}

impl Process {
    /// A process before its first observation; all in (0, 1) but `max_bet` in (0, 1 / `null_mean`).
    ///
    /// # Errors
    /// [`SampleError::Parameter`].
    pub fn new(alpha: f64, max_bet: f64, null_mean: f64) -> Result<Self, SampleError> {
        open_unit("alpha", alpha)?;
        open_unit("null mean", null_mean)?;
        if !(max_bet > 0.0 && max_bet < 1.0 / null_mean) {
            return Err(parameter("max_bet", "above 0 and below 1 / null mean"));
        }
        Ok(Self {
            alpha,
            max_bet,
            null_mean,
            wealth: 1.0,
            moments: Moments::default(),
            decided_at: None,
        })
    }

    /// Bets on x in [0, 1] and returns the bet.
    ///
    /// `lambda = min(max_bet, max(0, e / (var + e^2)))`, `wealth *= 1 + lambda (x - m0)`.
    ///
    /// # Errors
    /// [`SampleError::OutOfRange`]; the process stays as it was.
    pub fn push(&mut self, x: f64) -> Result<f64, SampleError> {
        crate::sample::unit("x", &[x])?;
        let bet = self.moments.agrapa(self.null_mean).max(0.0);
        let bet = bet.min(self.max_bet);
        self.wealth *= 1.0 + bet * (x - self.null_mean);
        self.moments.push(x);
        if self.decided_at.is_none() && self.wealth >= self.threshold() {
            self.decided_at = Some(self.moments.n);
        }
        Ok(bet)
    }

    /// `1 / alpha`.
    pub fn threshold(&self) -> f64 {
        1.0 / self.alpha
    }

    /// The wealth now, infinite after enough gains.
    pub fn wealth(&self) -> f64 {
        self.wealth
    }

    /// The observations' running sums.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The null mean.
    pub fn null_mean(&self) -> f64 {
        self.null_mean
    }

    /// Observations when the wealth first reached the threshold; it stays whatever comes.
    pub fn decided_at(&self) -> Option<u64> {
        self.decided_at
    }
}

/// Registration that binds a paired gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Registration {
    /// Level.
    pub alpha: f64,
    /// Which deltas are good.
    pub direction: Direction,
    /// Least effect, in the metric's units.
    pub min_effect: f64,
    /// Observations.
    pub max_n: u64,
}

/// Options of a paired gate; what a registration binds may be repeated, not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairedGateOptions {
    /// Level, .05 if nothing says otherwise.
    pub alpha: Option<f64>,
    /// Bound on bets, .5.
    pub max_bet: Option<f64>,
    /// Observations before which nothing is decided, 5.
    pub min_n: Option<u64>,
    /// Observations; needed here or in the registration.
    pub max_n: Option<u64>,
    /// Bound on deltas, 1.
    pub scale: Option<f64>,
    /// The registration.
    pub registration: Option<Registration>,
}

/// What a paired gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// More may come.
    Continue,
    /// Promoted, for good.
    Promote,
    /// The budget is spent.
    Undecided,
}

impl Decision {
    /// The peer's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Promote => "promote",
            Self::Undecided => "undecided-at-maxN",
        }
    }
}

/// A stream of paired deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedGate {
    process: Process,
    sign: f64,
    scale: f64,
    min_n: u64,
    max_n: u64,
    decision: Decision,
}

impl PairedGate {
    /// `x = (d / s + 1) / 2`, null mean `1/2 + min_effect / (2 s)`.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for illegal or missing options, and for those that contradict the registration.
    pub fn new(options: &PairedGateOptions) -> Result<Self, SampleError> {
        let bound = options.registration;
        let differs = |option: Option<f64>, registered: Option<f64>| {
            let pair = option.zip(registered);
            pair.is_some_and(|(option, registered)| (option - registered).abs() > 0.0)
        };
        if differs(options.alpha, bound.map(|bound| bound.alpha)) {
            return Err(parameter("alpha", "the registered level"));
        }
        let registered = bound.map(|bound| bound.max_n);
        if options
            .max_n
            .zip(registered)
            .is_some_and(|(option, registered)| option != registered)
        {
            return Err(parameter("max_n", "the registered observations"));
        }
        let max_n = options.max_n.or(registered);
        let max_n = max_n.ok_or(parameter("max_n", "a number, here or in the registration"))?;
        let min_n = options.min_n.unwrap_or(5);
        if !(1..=max_n).contains(&min_n) {
            return Err(parameter("min_n", "between 1 and max_n"));
        }
        let scale = options.scale.unwrap_or(1.0);
        let min_effect = bound.map_or(0.0, |bound| bound.min_effect);
        if !(scale > 0.0 && scale.is_finite() && (0.0..scale).contains(&min_effect)) {
            return Err(parameter("scale", "above 0 and above the least effect"));
        }
        let alpha = options.alpha.or(bound.map(|bound| bound.alpha));
        let process = Process::new(
            alpha.unwrap_or(0.05),
            options.max_bet.unwrap_or(MAX_BET),
            0.5 + min_effect / (2.0 * scale),
        )?;
        let direction = bound.map_or(Direction::Increase, |bound| bound.direction);
        Ok(Self {
            process,
            sign: match direction {
                Direction::Increase => 1.0,
                Direction::Decrease => -1.0,
            },
            scale,
            min_n,
            max_n,
            decision: Decision::Continue,
        })
    }

    /// Observes a delta. As in the peer, a promoted gate goes on past its budget.
    ///
    /// # Errors
    /// [`SampleError`] beyond the scale, or once the budget is spent.
    pub fn push(&mut self, delta: f64) -> Result<Decision, SampleError> {
        if self.decision == Decision::Undecided {
            return Err(parameter("delta", "none after the registered observations"));
        }
        if delta.is_nan() || delta.abs() > self.scale {
            return Err(parameter("delta", "at most the scale in magnitude"));
        }
        #[expect(
            clippy::manual_midpoint,
            reason = "the order of operations of the peer"
        )]
        let x = (self.sign * delta / self.scale + 1.0) / 2.0;
        self.process.push(x)?;
        let n = self.process.moments.n;
        if self.decision == Decision::Continue {
            if n >= self.min_n && self.process.wealth >= self.process.threshold() {
                self.decision = Decision::Promote;
            } else if n >= self.max_n {
                self.decision = Decision::Undecided;
            }
        }
        Ok(self.decision)
    }

    /// The wealth process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The decision so far.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Observations before which nothing is decided.
    pub fn min_n(&self) -> u64 {
        self.min_n
    }

    /// What the peer would write down.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            alpha: self.process.alpha,
            decided_at: self.process.decided_at,
            decision: self.decision,
            max_bet: self.process.max_bet,
            n: self.process.moments.n,
            null_mean: self.process.null_mean,
            squares: self.process.moments.squares,
            sum: self.process.moments.sum,
            wealth: self.process.wealth,
        }
    }

    /// Goes on from a snapshot, which must be what the deltas give.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a snapshot that differs in any number from a replay.
    pub fn resume(
        options: &PairedGateOptions,
        snapshot: &Snapshot,
        deltas: &[f64],
    ) -> Result<Self, SampleError> {
        let mut gate = Self::new(options)?;
        for delta in deltas {
            gate.push(*delta)?;
        }
        if gate.snapshot() == *snapshot {
            return Ok(gate);
        }
        Err(parameter("snapshot", "what replaying its deltas gives"))
    }
}

/// A paired gate's state, as the peer writes it down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Level.
    pub alpha: f64,
    /// Observations when the wealth first reached the threshold.
    pub decided_at: Option<u64>,
    /// The decision.
    pub decision: Decision,
    /// Bound on bets.
    pub max_bet: f64,
    /// Observations.
    pub n: u64,
    /// Null mean.
    pub null_mean: f64,
    /// Sum of squared distances.
    pub squares: f64,
    /// Sum of observations.
    pub sum: f64,
    /// The wealth.
    pub wealth: f64,
}
