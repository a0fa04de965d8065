//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod import;
pub mod patches;
pub mod prereg;
pub mod qualify;
pub mod split;

use crate::ledger::Rulebook;
use crate::projection;

/// Every fold, row model and rule: those of recorded facts, and those that need more than facts to judge.
pub static RULEBOOK: Rulebook = Rulebook {
    above: &[&patches::Documents],
    ..projection::RULEBOOK
};
