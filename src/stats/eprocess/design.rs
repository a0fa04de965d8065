//! What a gate may do, fixed before its first observation.
//!
//! An observation of a unit (a cluster) is the sum of its R repeats' paired deltas, candidate minus baseline, each in
//! integer millionths of the metric. With scale S (a bound on every delta) the observation is x = (sum + R S) / (2 R S)
//! in [0, 1], and a margin v of the mean effect is the mean m(v) = 1/2 + v / (2 S). Both are held as integers, so
//! sums, levels and comparisons with a null are exact.

use crate::eprocess::bettor::FRACTIONS;
use crate::eprocess::bettor::FRACTIONS_MAX;
use crate::eprocess::horizon;
use crate::eprocess::strata::Offsets;
use crate::eprocess::strata::Stratum;
use crate::eprocess::ticks;
use crate::eprocess::ticks::Metric;
use crate::eprocess::ticks::Null;
use crate::eprocess::ticks::Test;
use clover_num::math;

/// A millionth's inverse: levels and bets are given in millionths.
pub const MILLION: u32 = 1_000_000;
/// Largest scale, in millionths: a million.
pub const SCALE_MAX: i64 = 1_000_000_000_000;
/// Most repeats of a unit.
pub const REPEATS_MAX: u32 = 1000;
/// Most observations of a gate.
pub const OBSERVATIONS_MAX: u64 = 1_000_000_000;
/// Most units of a finite set.
pub const UNITS_MAX: u64 = 1_000_000;
/// Most guardrails.
pub const GUARDRAILS_MAX: usize = 16;
/// Most registered looks.
pub const LOOKS_MAX: usize = 10_000;

/// Which deltas are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Larger is better.
    Increase,
    /// Smaller is better: deltas change their sign on the way in, so that effects and margins are improvements.
    Decrease,
}

/// Which way a null hypothesis is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// H0: the mean is at most the null; wealth grows with large values.
    Upper,
    /// H0: the mean is at least the null; wealth grows with small values.
    Lower,
}

/// What is to be shown; margins are improvements in millionths of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The mean effect is above the margin.
    Superior {
        /// Least effect of interest, usually 0.
        margin: i64,
    },
    /// The mean effect is above minus the margin.
    NonInferior {
        /// Above 0.
        margin: i64,
    },
    /// The mean effect lies between minus the margin and the margin (two one-sided tests).
    Equivalent {
        /// Above 0.
        margin: i64,
    },
    /// The mean effect is not the margin: half the wealth bets on each side.
    Different {
        /// The effect in question, usually 0.
        margin: i64,
    },
    /// The mean effect is below 0.
    Harmful,
    /// Nothing: the confidence sequence is the result.
    Measure,
}

/// Stopping because a designed effect is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Futility {
    /// Bound on the probability to stop although the effect is at least `effect`, in millionths.
    pub beta: u32,
    /// The designed effect, in millionths of the metric.
    pub effect: i64,
}

/// Another metric of the same units, which must not become worse by its margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guardrail {
    /// Which deltas are good.
    pub direction: Direction,
    /// Worsening that is tolerated, in millionths, above 0.
    pub margin: i64,
    /// Bound on its deltas, in millionths.
    pub scale: i64,
}

/// When a verdict may fall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looks {
    /// After every observation.
    Every,
    /// After these numbers of observations, ascending, and after the last.
    At(Vec<u64>),
}

/// How wealth is bet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bettor {
    /// A mixture of constant fractions.
    GridKelly {
        /// How many, 1 to 100.
        fractions: usize,
    },
    /// Approximate growth rate adaptive bets, `lambda` in [0, `max_bet`]; source: agent-eval 0.170.0.
    Agrapa {
        /// Largest bet, in millionths, below the inverse of every oriented null mean.
        max_bet: u32,
    },
    /// Predictable plug-in bets `min(sqrt(2 ln(2/alpha) / (var t ln(1+t))), c/m)`; source: Waudby-Smith and Ramdas 2024.
    Plugin {
        /// c, in millionths, in (0, 1).
        share: u32,
    },
}

/// What the mean effect is the mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// What the units were sampled from.
    Superpopulation,
    /// Exactly so many units, drawn in random order without replacement.
    Finite {
        /// How many.
        units: u64,
    },
}

/// Log wealth that a continuation starts from, by test; all 0 for a gate of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CarriedWealth {
    /// Of the claim; for equivalence of its bound from below, for a difference of its upper side.
    pub claim: f64,
    /// Of the claim's second test, if it has one.
    pub second: f64,
    /// Of harm.
    pub kill: f64,
    /// Of futility.
    pub futile: f64,
}

/// An e-value that must be reached, as a ratio of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalueThreshold {
    /// Numerator.
    pub numerator: u64,
    /// Denominator, above 0.
    pub denominator: u64,
}

impl EvalueThreshold {
    /// `1 / level`, with the level in millionths.
    pub fn of_level(level: u32) -> Self {
        Self {
            numerator: u64::from(MILLION),
            denominator: u64::from(level),
        }
    }

    /// Its value.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Its natural logarithm.
    pub fn ln(self) -> f64 {
        math::ln(self.value())
    }
}

/// The registered terms of a gate, unchecked.
#[derive(Clone, Debug, PartialEq)]
pub struct GateTerms {
    /// Bound S on every delta, in millionths.
    pub scale: i64,
    /// Repeats R of every unit; an observation is their sum.
    pub repeats: u32,
    /// Which deltas are good.
    pub direction: Direction,
    /// What is to be shown.
    pub claim: Claim,
    /// Level of the claim and of the guardrails, in millionths; the confidence sequence has 1 - alpha.
    pub alpha: u32,
    /// Level of the test for harm, in millionths; `None` for no such test.
    pub alpha_kill: Option<u32>,
    /// Stopping for futility.
    pub futile: Option<Futility>,
    /// Metrics that must not become worse; all must pass (intersection-union, no level is split).
    pub guardrails: Vec<Guardrail>,
    /// Observations before which no verdict falls.
    pub min_n: u64,
    /// Observations after which nothing more is taken.
    pub max_n: u64,
    /// When a verdict may fall.
    pub looks: Looks,
    /// How wealth is bet.
    pub bettor: Bettor,
    /// What the mean is of.
    pub population: Population,
    /// Strata of a finite set with what is expected of them, as a control variate; none for no such thing.
    pub strata: Vec<Stratum>,
    /// Wealth of the gate that this one continues.
    pub carried: CarriedWealth,
    /// e-value at which the claim ends the gate; at least `1 / alpha`, more in a family that is closed together.
    pub stop: EvalueThreshold,
}

impl GateTerms {
    /// A superiority gate at alpha .05 with grid-Kelly, a verdict after every observation from the fifth on, and no
    /// other test.
    pub fn new(scale: i64, max_n: u64) -> Self {
        Self {
            scale,
            repeats: 1,
            direction: Direction::Increase,
            claim: Claim::Superior { margin: 0 },
            alpha: 50_000,
            alpha_kill: None,
            futile: None,
            guardrails: Vec::new(),
            min_n: 5,
            max_n,
            looks: Looks::Every,
            bettor: Bettor::GridKelly {
                fractions: FRACTIONS,
            },
            population: Population::Superpopulation,
            strata: Vec::new(),
            carried: CarriedWealth::default(),
            stop: EvalueThreshold::of_level(50_000),
        }
    }

    /// The same at another level, which also is where the claim stops.
    #[must_use]
    pub fn at_level(mut self, alpha: u32) -> Self {
        self.alpha = alpha;
        self.stop = EvalueThreshold::of_level(alpha);
        self
    }
}

/// Why terms are not a design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// A term outside its range.
    #[error("{name}: expected {expected}")]
    Term {
        /// The term.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// Not even the best observations could show the claim.
    #[error("max_n {max_n}: the best observations need {needed} to show the claim")]
    Horizon {
        /// The registered maximum.
        max_n: u64,
        /// Observations that the claim needs at best.
        needed: ObservationsNeeded,
    },
}

/// Observations that a claim needs at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationsNeeded {
    /// So many.
    Observations(u64),
    /// More than any gate may take.
    TooMany,
}

impl std::fmt::Display for ObservationsNeeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Observations(n) => n.fmt(f),
            Self::TooMany => f.write_str("too many"),
        }
    }
}

/// Terms that hold together.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    terms: GateTerms,
    metric: Metric,
    tests: Vec<Test>,
}

fn term(holds: bool, name: &'static str, expected: &'static str) -> Result<(), DesignError> {
    if holds {
        return Ok(());
    }
    Err(DesignError::Term { name, expected })
}

fn level(name: &'static str, level: u32) -> Result<(), DesignError> {
    let expected = "between 1 and 999999 millionths";
    term(level > 0 && level < MILLION, name, expected)
}

impl Design {
    /// Checks terms, the horizon last: a gate that could never show its claim is not opened.
    ///
    /// # Errors
    /// [`DesignError`].
    pub fn new(terms: GateTerms) -> Result<Self, DesignError> {
        check_numbers(&terms)?;
        check_claims(&terms)?;
        let metric = Metric {
            direction: terms.direction,
            scale: terms.scale,
            repeats: i64::from(terms.repeats),
        };
        let tests = ticks::tests(&terms, metric);
        check_bettor(&terms, &tests)?;
        let design = Self {
            terms,
            metric,
            tests,
        };
        horizon::check(&design)?;
        Ok(design)
    }

    /// What was registered.
    pub fn terms(&self) -> &GateTerms {
        &self.terms
    }

    /// Whether a verdict may fall after `n` observations.
    pub fn is_look(&self, n: u64) -> bool {
        n == self.terms.max_n
            || match &self.terms.looks {
                Looks::Every => n > 0,
                Looks::At(looks) => looks.binary_search(&n).is_ok(),
            }
    }

    /// Fractions of the mixture; those of the confidence sequence too, which is grid-Kelly whatever the bettor.
    pub fn fractions(&self) -> usize {
        match self.terms.bettor {
            Bettor::GridKelly { fractions } => fractions,
            Bettor::Agrapa { .. } | Bettor::Plugin { .. } => FRACTIONS,
        }
    }

    /// Units of a finite set.
    pub fn units(&self) -> Option<u64> {
        match self.terms.population {
            Population::Superpopulation => None,
            Population::Finite { units } => Some(units),
        }
    }

    /// alpha as a double.
    pub fn alpha(&self) -> f64 {
        f64::from(self.terms.alpha) / f64::from(MILLION)
    }

    /// What strata add to the main metric's values in a test of one side.
    pub(super) fn offsets(&self, side: Side) -> Offsets {
        Offsets::new(&self.terms.strata, self.metric.repeats, side)
    }

    pub(super) fn metric(&self) -> Metric {
        self.metric
    }

    pub(super) fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Each guardrail's metric and null.
    pub(super) fn guardrails(&self) -> impl Iterator<Item = (Metric, Null)> + '_ {
        self.terms.guardrails.iter().map(|one| {
            let metric = Metric {
                direction: one.direction,
                scale: one.scale,
                repeats: self.metric.repeats,
            };
            (metric, metric.null(Side::Upper, -one.margin))
        })
    }
}

fn check_numbers(terms: &GateTerms) -> Result<(), DesignError> {
    let scales = "between 1 and 10^12 millionths";
    term((1..=SCALE_MAX).contains(&terms.scale), "scale", scales)?;
    term(
        (1..=REPEATS_MAX).contains(&terms.repeats),
        "repeats",
        "between 1 and 1000",
    )?;
    let most = terms.scale.saturating_mul(i64::from(terms.repeats));
    term(
        most <= SCALE_MAX,
        "scale",
        "at most 10^12 millionths in all repeats together",
    )?;
    term(
        (1..=OBSERVATIONS_MAX).contains(&terms.max_n),
        "max_n",
        "between 1 and 10^9",
    )?;
    term(
        (1..=terms.max_n).contains(&terms.min_n),
        "min_n",
        "between 1 and max_n",
    )?;
    if let Looks::At(looks) = &terms.looks {
        let ascending = looks.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = looks.iter().all(|n| (1..=terms.max_n).contains(n));
        term(
            !looks.is_empty() && looks.len() <= LOOKS_MAX && ascending && inside,
            "looks",
            "1 to 10000 ascending counts of at most max_n",
        )?;
    }
    if let Population::Finite { units } = terms.population {
        term(
            terms.max_n <= units && units <= UNITS_MAX,
            "units",
            "at least max_n and at most 10^6",
        )?;
    }
    check_strata(terms)?;
    let carried = [
        terms.carried.claim,
        terms.carried.second,
        terms.carried.kill,
        terms.carried.futile,
    ];
    term(
        carried.iter().all(|ln| ln.is_finite() && ln.abs() <= 1e9),
        "carried",
        "finite log wealth of at most 10^9 in magnitude",
    )
}

fn check_strata(terms: &GateTerms) -> Result<(), DesignError> {
    let strata = &terms.strata;
    if strata.is_empty() {
        return Ok(());
    }
    let all = strata.iter().map(|one| one.units);
    let all = all.fold(0, u64::saturating_add);
    let good = terms.population == (Population::Finite { units: all })
        && strata
            .iter()
            .all(|one| one.units > 0 && one.predicted.unsigned_abs() <= terms.scale.unsigned_abs());
    term(
        good,
        "control_variate",
        "strata that together are exactly the units, with predictions within the scale",
    )
}

fn check_claims(terms: &GateTerms) -> Result<(), DesignError> {
    level("alpha", terms.alpha)?;
    if let Some(alpha) = terms.alpha_kill {
        level("alpha_kill", alpha)?;
    }
    let inside = |margin: i64, scale: i64| margin > -scale && margin < scale;
    let (margin, positive) = match terms.claim {
        Claim::Superior { margin } | Claim::Different { margin } => (margin, false),
        Claim::NonInferior { margin } | Claim::Equivalent { margin } => (margin, true),
        Claim::Harmful | Claim::Measure => (0, false),
    };
    term(
        inside(margin, terms.scale) && (!positive || margin > 0),
        "margin",
        "within the scale, and above 0 for non-inferiority and equivalence",
    )?;
    if let Some(futile) = terms.futile {
        level("beta", futile.beta)?;
        // What shows that an effect is small says nothing against harm, and for sameness rather than against it.
        let null = match terms.claim {
            Claim::Superior { margin } => Some(margin),
            Claim::NonInferior { margin } => Some(-margin),
            Claim::Measure => Some(0),
            Claim::Different { .. } | Claim::Equivalent { .. } | Claim::Harmful => None,
        };
        term(
            inside(futile.effect, terms.scale) && null.is_some_and(|null| futile.effect > null),
            "designed effect",
            "above what the null hypothesis allows and within the scale, to promote, for noninferiority or to measure",
        )?;
    }
    term(
        terms.guardrails.len() <= GUARDRAILS_MAX,
        "guardrails",
        "at most 16",
    )?;
    for one in &terms.guardrails {
        let scale = (1..=SCALE_MAX).contains(&one.scale);
        term(
            scale && one.margin > 0 && one.margin < one.scale,
            "guardrail",
            "a margin above 0 and below its scale",
        )?;
    }
    let stop = terms.stop;
    // stop >= 1 / alpha, in integers.
    let reached = u128::from(stop.numerator) * u128::from(terms.alpha)
        >= u128::from(stop.denominator) * u128::from(MILLION);
    term(
        stop.denominator > 0 && reached,
        "stop_e",
        "an e-value of at least 1 / alpha",
    )
}

fn check_bettor(terms: &GateTerms, tests: &[Test]) -> Result<(), DesignError> {
    let million = i128::from(MILLION);
    let finite = terms.population != Population::Superpopulation;
    match terms.bettor {
        Bettor::GridKelly { fractions } => {
            let inside = (1..=FRACTIONS_MAX).contains(&fractions);
            term(inside, "fractions", "between 1 and 100")
        }
        Bettor::Agrapa { .. } | Bettor::Plugin { .. } if finite => {
            term(false, "bettor", "grid-Kelly for a finite set")
        }
        Bettor::Agrapa { max_bet } => {
            // max_bet < 1 / m for every oriented null m = stake / span.
            let below = tests.iter().all(|test| {
                i128::from(max_bet) * i128::from(test.null.stake())
                    < million * i128::from(test.null.span)
            });
            let expected = "above 0 and below the inverse of every null mean";
            term(max_bet > 0 && below, "max_bet", expected)
        }
        Bettor::Plugin { share } => term(
            share > 0 && share < MILLION,
            "share",
            "between 1 and 999999 millionths",
        ),
    }
}
