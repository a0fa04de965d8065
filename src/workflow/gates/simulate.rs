//! What a registered design does to streams of known effect: how often it says what, and after how many units.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng as _;
use rand_core::SeedableRng as _;
use rayon::prelude::*;

use crate::stats::eprocess::Design;
use crate::stats::eprocess::Gate;
use crate::stats::eprocess::Outcome;

/// How differences are made: about the effect, within the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// None in nine of ten units about the effect, else all or nothing.
    Sparse,
    /// All or nothing.
    TwoPoint,
    /// Uniform, as wide as the scale allows about the effect, at most six tenths of it to each side.
    Uniform,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 3] = [Self::Sparse, Self::TwoPoint, Self::Uniform];

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sparse => "sparse",
            Self::TwoPoint => "two-point",
            Self::Uniform => "uniform",
        }
    }

    /// A difference with mean `effect`, in millionths; `scale` bounds it.
    fn draw(self, rng: &mut ChaCha20Rng, effect: f64, scale: f64) -> f64 {
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let two_point = |u: f64| {
            let up = f64::midpoint(1.0, effect / scale);
            if u < up { scale } else { -scale }
        };
        match self {
            Self::TwoPoint => two_point(uniform()),
            Self::Sparse => {
                let rare = uniform() < 0.1;
                let all = two_point(uniform());
                if rare { all } else { effect }
            }
            Self::Uniform => {
                let half = (0.6 * scale).min(scale - effect.abs());
                effect + half * (2.0 * uniform() - 1.0)
            }
        }
    }
}

/// What became of simulated gates.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Share whose claim was shown.
    pub shown: f64,
    /// Share that ended by harm or futility.
    pub ended: f64,
    /// Nearest-rank median of the units after which the claim was shown; `None` where fewer than half showed it.
    pub median: Option<u64>,
    /// Nearest-rank ninth decile of the same.
    pub p90: Option<u64>,
    /// Mean number of units observed.
    pub mean_units: f64,
}

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Mean improvement of a unit, in millionths.
    pub effect: i64,
    /// Seed; each stream has a generator of its own.
    pub seed: [u8; 32],
    /// How differences are made.
    pub shape: Shape,
    /// How many gates.
    pub streams: usize,
}

/// Runs gates of one design, the same on any number of threads.
pub fn run(design: &Design, plan: Plan) -> Simulated {
    let ends: Vec<(Outcome, u64)> = (0..plan.streams)
        .into_par_iter()
        .map(|stream| one(design, plan, stream))
        .collect();
    let mut shown: Vec<u64> = ends
        .iter()
        .filter(|(outcome, _)| *outcome == Outcome::Ship)
        .map(|(_, n)| *n)
        .collect();
    shown.sort_unstable();
    let all = ends.len().max(1) as f64;
    let most = design.terms().max_n;
    let ended = ends
        .iter()
        .filter(|(outcome, n)| *outcome == Outcome::Hold && *n < most)
        .count();
    let units: u64 = ends.iter().map(|(_, n)| *n).sum();
    // Nearest rank among all streams; those that never showed the claim stand last.
    let rank = |tenths: usize| {
        let place = (tenths * ends.len()).div_ceil(10);
        shown.get(place.saturating_sub(1)).copied()
    };
    Simulated {
        shown: shown.len() as f64 / all,
        ended: ended as f64 / all,
        median: rank(5),
        p90: rank(9),
        mean_units: units as f64 / all,
    }
}

fn one(design: &Design, plan: Plan, stream: usize) -> (Outcome, u64) {
    let mut rng = ChaCha20Rng::from_seed(plan.seed);
    rng.set_stream(stream as u64);
    let terms = design.terms();
    let (scale, repeats) = (terms.scale as f64, i64::from(terms.repeats));
    let sign = match terms.direction {
        crate::stats::eprocess::Direction::Increase => 1,
        crate::stats::eprocess::Direction::Decrease => -1,
    };
    let mut gate = Gate::verdicts_only(design.clone());
    let guardrails: Vec<i64> = terms.guardrails.iter().map(|_| 0).collect();
    for _ in 0..terms.max_n {
        let delta = plan.shape.draw(&mut rng, plan.effect as f64, scale);
        let delta = whole(delta.round().clamp(-scale, scale));
        // A unit's repeats agree: what is between units is what counts. Guardrails see no effect.
        let Ok(step) = gate.push_all(sign * delta * repeats, &guardrails) else {
            break;
        };
        if step.verdict.is_terminal() {
            break;
        }
    }
    (gate.verdict().outcome(), gate.n())
}

/// A difference within the scale, at most 10^12 in magnitude, as the whole number that it is.
#[expect(clippy::cast_possible_truncation, reason = "a scale is at most 10^12")]
fn whole(value: f64) -> i64 {
    value as i64
}
