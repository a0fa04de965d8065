//! Deltas as integers: ticks of a metric, null means in ticks, and the tests that terms ask for.

use crate::eprocess::design::Claim;
use crate::eprocess::design::Direction;
use crate::eprocess::design::GateTerms;
use crate::eprocess::design::Side;

/// A null mean in ticks: an observation is an integer in [0, `span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Null {
    pub(super) side: Side,
    /// In (0, span).
    pub(super) mean: i64,
    pub(super) span: i64,
}

impl Null {
    /// A value as the test sees it: large is against H0.
    pub(super) fn oriented(self, tick: i64) -> i64 {
        match self.side {
            Side::Upper => tick,
            Side::Lower => self.span - tick,
        }
    }

    /// The value that is most against H0.
    pub(super) fn best(self) -> i64 {
        match self.side {
            Side::Upper => self.span,
            Side::Lower => 0,
        }
    }

    /// The null mean as the test sees it.
    pub(super) fn stake(self) -> i64 {
        self.oriented(self.mean)
    }
}

/// What a test is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Claim,
    Second,
    Kill,
    Futile,
}

impl Role {
    /// Whether it speaks against the candidate whatever is claimed.
    pub(super) fn is_against(self) -> bool {
        matches!(self, Self::Kill | Self::Futile)
    }
}

/// One betting test of a gate's main metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Test {
    pub(super) role: Role,
    pub(super) null: Null,
    pub(super) carried: f64,
}

/// A metric: how its deltas become ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) direction: Direction,
    pub(super) scale: i64,
    pub(super) repeats: i64,
}

impl Metric {
    /// R S, the bound on a sum.
    pub(super) fn half(self) -> i64 {
        self.scale * self.repeats
    }

    /// 2 R S.
    pub(super) fn span(self) -> i64 {
        2 * self.half()
    }

    /// The tick of a unit's sum; `None` beyond the scale.
    pub(super) fn tick(self, sum: i64) -> Option<i64> {
        if sum.unsigned_abs() > self.half().unsigned_abs() {
            return None;
        }
        let improvement = match self.direction {
            Direction::Increase => sum,
            Direction::Decrease => -sum,
        };
        Some(improvement + self.half())
    }

    /// The null with this margin.
    pub(super) fn null(self, side: Side, margin: i64) -> Null {
        Null {
            side,
            mean: self.repeats * (self.scale + margin),
            span: self.span(),
        }
    }
}

/// The tests of a gate's main metric.
pub(super) fn tests(terms: &GateTerms, metric: Metric) -> Vec<Test> {
    let (upper, lower) = (Side::Upper, Side::Lower);
    let mut tests = Vec::new();
    let mut test = |role, side, margin, carried| {
        tests.push(Test {
            role,
            null: metric.null(side, margin),
            carried,
        });
    };
    let carried = terms.carried;
    match terms.claim {
        Claim::Superior { margin } => test(Role::Claim, upper, margin, carried.claim),
        Claim::NonInferior { margin } => test(Role::Claim, upper, -margin, carried.claim),
        Claim::Equivalent { margin } => {
            test(Role::Claim, upper, -margin, carried.claim);
            test(Role::Second, lower, margin, carried.second);
        }
        Claim::Different { margin } => {
            test(Role::Claim, upper, margin, carried.claim);
            test(Role::Second, lower, margin, carried.second);
        }
        Claim::Harmful => test(Role::Claim, lower, 0, carried.claim),
        Claim::Measure => {}
    }
    if terms.alpha_kill.is_some() {
        test(Role::Kill, lower, 0, carried.kill);
    }
    if let Some(futile) = terms.futile {
        test(Role::Futile, lower, futile.effect, carried.futile);
    }
    tests
}
