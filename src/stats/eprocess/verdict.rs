//! What a gate says, and the order in which it may say it.

use crate::eprocess::design::Claim;
use clover_num::math;

/// A gate's verdict. All but [`Verdict::Continue`] are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Superior by more than the margin.
    Promote,
    /// Not worse by the margin.
    NonInferior,
    /// Within the margin on both sides.
    Equivalent,
    /// Not the effect in question.
    Different,
    /// Worse than the baseline.
    Kill,
    /// The designed effect is not there.
    Futile,
    /// The maximum was reached without any of the others. Not evidence of no effect.
    Undecided,
    /// More observations may come.
    Continue,
}

impl Verdict {
    /// Whether nothing more may come.
    pub fn is_terminal(self) -> bool {
        self != Self::Continue
    }

    /// What a claim comes to once it is shown; `None` for a measurement.
    pub fn of(claim: Claim) -> Option<Self> {
        match claim {
            Claim::Superior { .. } => Some(Self::Promote),
            Claim::NonInferior { .. } => Some(Self::NonInferior),
            Claim::Equivalent { .. } => Some(Self::Equivalent),
            Claim::Different { .. } => Some(Self::Different),
            Claim::Harmful => Some(Self::Kill),
            Claim::Measure => None,
        }
    }
}

/// Which hypothesis evidence is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hypothesis {
    /// The claim's, the first of two for equivalence and difference: the mean is at most the null.
    Claim,
    /// The claim's second: the mean is at least the null.
    Second,
    /// The mean effect is at least 0: what a candidate that harms leaves.
    Kill,
    /// The mean effect is at least the designed one.
    Futile,
    /// A guardrail, numbered as registered: its metric became worse by its margin.
    Guardrail(usize),
}

/// Evidence against a hypothesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Logarithm L of the wealth now; infinite if a finite set cannot satisfy the hypothesis.
    pub ln_wealth: f64,
    /// `max(0, L at all registered looks so far)`.
    pub ln_peak: f64,
}

impl Evidence {
    /// The e-value `exp(L)`, at most the largest double: what merges with others.
    pub fn e_value(&self) -> f64 {
        math::exp(self.ln_wealth).min(f64::MAX)
    }

    /// The always-valid p-value `min(1, exp(-max L))`.
    pub fn p_value(&self) -> f64 {
        math::exp(-self.ln_peak).min(1.0)
    }
}

/// A closed interval of mean effects, as improvements in millionths of the metric, rounded outward.
///
/// `low` above `high` means that no mean explains the stream, an event of probability at most alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lower end.
    pub low: i64,
    /// Upper end.
    pub high: i64,
}

/// All that a gate shows after some observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Observations.
    pub n: u64,
    /// Evidence for the claim as a whole: the least of what it and its guardrails need, the mean of both sides for a
    /// difference. `None` for a measurement. This e-value is the one that enters a family.
    pub claim: Option<Evidence>,
    /// Evidence against each hypothesis, in the order of [`Hypothesis`].
    pub parts: Vec<(Hypothesis, Evidence)>,
    /// Time-uniform confidence interval of the mean effect, the intersection of those of all registered looks;
    /// `None` if the gate does not keep it.
    pub interval: Option<Bounds>,
    /// The verdict; it falls at registered looks only.
    pub verdict: Verdict,
    /// The claim is past 1/alpha, but not past the e-value that its family lets it stop at.
    pub leading: bool,
}

impl Look {
    /// The evidence against one hypothesis.
    pub fn part(&self, part: Hypothesis) -> Option<Evidence> {
        let found = self.parts.iter().find(|(known, _)| *known == part);
        found.map(|(_, evidence)| *evidence)
    }
}
