//! Governed steps: what is computed from recorded facts, by rule, without files, terminal or SQL.

pub mod analyze;
pub mod ask;
pub mod battery;
pub mod bundle;
pub mod dead;
pub mod deploy;
pub mod drift;
pub mod environments;
pub mod estimate;
pub mod gates;
pub mod generator;
pub mod guardrails;
pub mod import;
pub mod iterate;
pub mod judge;
pub mod live;
pub mod ope;
pub mod patches;
pub mod peer_manifest;
pub mod predicate;
pub mod prereg;
pub mod prompt_judges;
pub mod prompts;
pub mod recompute;
pub mod sgd;
pub mod simulate;
pub mod split;
pub mod synth;
mod tolerance;
pub mod wf;

use clover_ledger::Rulebook;

/// As [`RULEBOOK`], and what iterations computed is computed again from their rows: the rulebook of the command line.
pub static GOVERNED: Rulebook = Rulebook {
    again: &[
        recompute::AGAIN,
        recompute::ITERATIONS,
        recompute::LIVE,
        // What computes again from rows goes here.
    ],
    ..RULES
};

/// What needs recorded facts only, the rules that compute again what an arbiter said from its own statistics, and
/// estimates computed again from the entries before them.
const RULES: Rulebook = Rulebook {
    recompute: &[
        &patches::Documents,
        &synth::rule::AnswerRule,
        &prompts::Commits,
        &prompt_judges::PromptJudges,
        &deploy::DeploymentRules,
        &generator::GeneratorRule,
        &gates::GateRecomputation,
        &iterate::VerdictRecomputation,
        &sgd::rule::SgdRecomputation,
        &wf::rule::RepairRecomputation,
        // The next rule that recomputes goes here.
    ],
    again: &[recompute::AGAIN],
    ..clover_projection::RULEBOOK
};

/// Everything that judges and folds from recorded facts: what is said of an iteration need not come from rows.
pub static RULEBOOK: Rulebook = RULES;
