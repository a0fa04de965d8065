//! How far logged rows can answer for a target: concentration, tails, shared scores, coverage of what is typical.
//!
//! Each diagnostic is a number with a range; what it admits is decided in [`offpolicy`](crate::weights).
//! Sources: the CJE paper, section 2 and appendices D.1 and D.3; `cje-eval` 0.3.0; Hill 1975.

mod affinity;
mod concentration;
mod correction;
mod coverage;
mod tail;

pub use affinity::bhattacharyya;
pub use affinity::bhattacharyya_weighted;
pub use affinity::hellinger_distance;
pub use affinity::hellinger_of_weights;
pub use concentration::Concentration;
pub use concentration::Ess;
pub use concentration::Subgroup;
pub use concentration::ccdf;
pub use concentration::concentration;
pub use concentration::ess;
pub use concentration::subgroups;
pub use concentration::top_mass;
pub use correction::Orthogonality;
pub use correction::RobustSplit;
pub use correction::orthogonality;
pub use correction::split;
pub use coverage::Coverage;
pub use coverage::SurprisalThreshold;
pub use coverage::TYPICAL_MASS;
pub use coverage::coverage;
pub use tail::HillBand;
pub use tail::Tail;
pub use tail::hill;
pub use tail::hill_at;
pub use tail::hill_band;
pub use tail::hill_stable;
