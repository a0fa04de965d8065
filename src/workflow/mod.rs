//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod battery;
pub mod bundle;
pub mod campaign;
pub mod dead;
pub mod deploy;
pub mod drift;
pub mod estimate;
pub mod gates;
pub mod guardrails;
pub mod import;
pub mod iterate;
pub mod judge;
pub mod ope;
pub mod patches;
pub mod peer_manifest;
pub mod predicate;
pub mod prereg;
pub mod prompts;
pub mod qualify;
pub mod recompute;
pub mod simulate;
pub mod split;

use crate::ledger::Rulebook;
use crate::projection;

/// As [`RULEBOOK`], and what is computed again from rows as it is appended: the rulebook of the command line.
pub static GOVERNED: Rulebook = Rulebook {
    recounts: &[&recompute::Iterations],
    ..RULES
};

/// What needs recorded facts only, and the rules that compute again what an arbiter said from its own statistics.
const RULES: Rulebook = Rulebook {
    recompute: &[
        &patches::Documents,
        &prompts::Commits,
        &deploy::Deploying,
        &gates::Recomputed,
        &iterate::Recomputed,
        // The next rule that recomputes goes here.
    ],
    again: &[
        recompute::AGAIN,
        // What computes again from rows goes here.
    ],
    ..projection::RULEBOOK
};

/// Everything that judges and folds. Ledgers are verified with it.
pub static RULEBOOK: Rulebook = RULES;
