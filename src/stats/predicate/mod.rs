//! The acceptance predicate's statistics: what gates P1 to P10 compare, never whether a patch is accepted.
//!
//! A patch turns the baseline reward R into R'. On labelled rows `d_i = (Y_i - R'_i)^2 - (Y_i - R_i)^2`, negative when
//! better; `DMSE` is its mean. Source: CLOVER v1.1, sections 4 to 6.

mod confirm;
mod gaming;
mod green;
mod losses;
mod sequential;
mod shift;

pub use confirm::BOOTSTRAP_REPLICATES;
pub use confirm::BettingTest;
pub use confirm::CONFIRM_CLUSTERS_MIN;
pub use confirm::Confirm;
pub use confirm::ConfirmOutcome;
pub use confirm::ConfirmTest;
pub use confirm::Replication;
pub use confirm::betting;
pub use confirm::bootstrap_p;
pub use confirm::confirm;
pub use confirm::replication;
pub use confirm::t_p;
pub use gaming::Exploit;
pub use gaming::Operator;
pub use gaming::Regression;
pub use gaming::SEEDS_MIN;
pub use gaming::exploits;
pub use gaming::operators;
pub use gaming::regression;
pub use gaming::worst_chain;
pub use green::GREEN_ROWS_MIN;
pub use green::Green;
pub use green::GreenNumbers;
pub use green::GreenOutcome;
pub use green::GreenRule;
pub use green::green;
pub use green::not_worse_p;
pub use green::risk_improve;
pub use green::untouched;
pub use losses::Losses;
pub use losses::MOVED;
pub use losses::bound;
pub use sequential::Sequential;
pub use sequential::SequentialTerms;
pub use sequential::SequentialVerdict;
pub use shift::Ece;
pub use shift::Shift;
pub use shift::ece_pair;
pub use shift::shift;
