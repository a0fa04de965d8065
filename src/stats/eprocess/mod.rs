//! Anytime-valid gates: evidence by betting that may be looked at whenever one likes.
//!
//! A test of "the mean is at most m" starts with wealth 1 and bets on every observation at odds that are fair if the
//! mean is m. Its wealth is an e-process: under the null the probability that it ever reaches 1/alpha is at most
//! alpha, so a gate may stop at any time, for any reason. What must hold is `E[x_t | past] <= m`: one unit is one
//! observation, the order is random, bets and parameters are fixed before the value is seen.

pub mod asymptotic;
pub mod bettor;
pub mod bounded;
pub mod classical;
pub mod compat;
mod counts;
pub mod design;
pub mod family;
mod finite;
mod gate;
pub mod hedged;
pub mod horizon;
pub mod merge;
mod moments;
pub mod mulberry;
mod sequence;
pub mod simulate;
mod strata;
mod ticks;
mod track;
pub mod verdict;

pub use counts::CELLS;
pub use counts::LEVELS_MAX;
pub use design::Bettor;
pub use design::CarriedWealth;
pub use design::Claim;
pub use design::Design;
pub use design::DesignError;
pub use design::Direction;
pub use design::EvalueThreshold;
pub use design::Futility;
pub use design::GateTerms;
pub use design::Guardrail;
pub use design::Looks;
pub use design::ObservationsNeeded;
pub use design::Population;
pub use design::Side;
pub use gate::Gate;
pub use gate::GateState;
pub use gate::PushError;
pub use gate::Step;
pub use moments::Moments;
pub use strata::Stratum;
pub use verdict::Bounds;
pub use verdict::Evidence;
pub use verdict::Hypothesis;
pub use verdict::Look;
pub use verdict::Verdict;
