//! Read models of governance: what recorded facts add up to, and the rules that read them.
//!
//! One file per read model, each with its fold or row model and the rules that need it. Nothing here
//! computes a statistic; rules that recompute belong to `workflow`.

pub mod access;
pub mod asked;
pub mod assumptions;
pub mod audits;
pub mod batteries;
pub mod beacons;
pub mod budgets;
pub mod bundle;
pub mod decisions;
pub mod deployments;
pub mod designs;
pub mod drifts;
pub mod endpoints;
pub mod experiments;
pub mod gates;
pub mod generators;
pub mod iterations;
pub mod judges;
mod label_once;
mod label_scales;
pub mod looks;
pub mod manifests;
pub mod newest;
pub mod orders;
pub mod reader;
pub mod releases;
pub mod reports;
pub mod rows;
pub mod rubrics;
pub mod runs;
pub mod said;
pub mod seals;
pub mod sgd;
pub mod splits;
pub mod synths;
pub mod tainted;
pub mod tallies;
pub mod timely;
pub mod trail;
pub mod wf;

use clover_event::Kind;
use clover_ledger::FoldEntry;
use clover_ledger::Rulebook;
use clover_ledger::State;

/// Folds, row models and rules that need recorded facts only. `workflow::RULEBOOK` adds the rules that
/// recompute; that one opens and verifies ledgers.
pub const RULEBOOK: Rulebook = Rulebook {
    version: 34,
    newest_since: 34,
    folds: FOLDS,
    row_models: &[
        &rows::LabelRows,
        &rows::RevealRows,
        &rows::ScoreRows,
        &rows::SealRows,
    ],
    rules: &[
        &experiments::OpenExperiment,
        &budgets::Balance,
        &seals::Seals,
        &designs::Purposes,
        &splits::SplitRule,
        &designs::ScoreOnce,
        &manifests::Prereg,
        &access::Gateway,
        &assumptions::Bridge,
        &audits::rules::Transport,
        &drifts::DriftRules,
        &iterations::IterationRule,
        &judges::JudgeRule,
        &orders::OrderRule,
        &gates::GateRules,
        &decisions::Predicate,
        &decisions::SealingRules,
        &releases::ApprovalRule,
        &endpoints::EndpointRule,
        &runs::rules::RunRules,
        &asked::rules::AskedRules,
        &synths::rules::SynthRule,
        &sgd::rules::SgdRule,
        &wf::rules::RepairRule,
        &batteries::BatteryRule,
        &reports::ReportRule,
    ],
    recompute: &[],
    again: &[],
    unfinished: deployments::unfinished,
    notes,
};

/// What `verify` says of the state at the end.
fn notes(state: &State, notes: &mut Vec<String>) {
    access::notes(state, notes);
    deployments::notes(state, notes);
}

/// One line per fold.
const FOLDS: &[FoldEntry] = &[
    FoldEntry {
        name: "access",
        reads: access::READS,
        make: || Box::<access::Access>::default(),
    },
    FoldEntry {
        name: "asked",
        reads: asked::READS,
        make: || Box::<asked::AskedRuns>::default(),
    },
    FoldEntry {
        name: "assumptions",
        reads: assumptions::READS,
        make: || Box::<assumptions::Assumptions>::default(),
    },
    FoldEntry {
        name: "audits",
        reads: audits::READS,
        make: || Box::<audits::Audits>::default(),
    },
    FoldEntry {
        name: "batteries",
        reads: batteries::READS,
        make: || Box::<batteries::Batteries>::default(),
    },
    FoldEntry {
        name: "beacons",
        reads: beacons::READS,
        make: || Box::<beacons::Beacons>::default(),
    },
    FoldEntry {
        name: "blocks",
        reads: decisions::block::READS,
        make: || Box::<decisions::block::Blocks>::default(),
    },
    FoldEntry {
        name: "budgets",
        reads: budgets::READS,
        make: || Box::<budgets::Budgets>::default(),
    },
    FoldEntry {
        name: "decisions",
        reads: decisions::READS,
        make: || Box::<decisions::AllDecisions>::default(),
    },
    FoldEntry {
        name: "deployments",
        reads: deployments::READS,
        make: || Box::<deployments::Deployments>::default(),
    },
    FoldEntry {
        name: "designs",
        reads: designs::READS,
        make: || Box::<designs::Designs>::default(),
    },
    FoldEntry {
        name: "drifts",
        reads: drifts::READS,
        make: || Box::<drifts::Drifts>::default(),
    },
    FoldEntry {
        name: "endpoints",
        reads: endpoints::READS,
        make: || Box::<endpoints::Endpoints>::default(),
    },
    FoldEntry {
        name: "experiments",
        reads: experiments::READS,
        make: || Box::<experiments::Experiments>::default(),
    },
    FoldEntry {
        name: "gates",
        reads: gates::READS,
        make: || Box::<gates::Gates>::default(),
    },
    FoldEntry {
        name: "generators",
        reads: generators::READS,
        make: || Box::<generators::Generators>::default(),
    },
    FoldEntry {
        name: "iterations",
        reads: iterations::READS,
        make: || Box::<iterations::Iterations>::default(),
    },
    FoldEntry {
        name: "judges",
        reads: judges::READS,
        make: || Box::<judges::Judges>::default(),
    },
    FoldEntry {
        name: "looks",
        reads: looks::READS,
        make: || Box::<looks::OrderLooks>::default(),
    },
    FoldEntry {
        name: "manifests",
        reads: manifests::READS,
        make: || Box::<manifests::Manifests>::default(),
    },
    FoldEntry {
        name: "newest",
        reads: newest::READS,
        make: || Box::<newest::NewestEntries>::default(),
    },
    FoldEntry {
        name: "orders",
        reads: orders::READS,
        make: || Box::<orders::Orders>::default(),
    },
    FoldEntry {
        name: "probes",
        reads: audits::probes::READS,
        make: || Box::<audits::probes::Probes>::default(),
    },
    FoldEntry {
        name: "releases",
        reads: releases::READS,
        make: || Box::<releases::Releases>::default(),
    },
    FoldEntry {
        name: "rubrics",
        reads: rubrics::READS,
        make: || Box::<rubrics::Rubrics>::default(),
    },
    FoldEntry {
        name: "runs",
        reads: runs::READS,
        make: || Box::<runs::ModelRuns>::default(),
    },
    FoldEntry {
        name: "said",
        reads: said::READS,
        make: || Box::<said::SaidFields>::default(),
    },
    FoldEntry {
        name: "sequences",
        reads: decisions::sequence::READS,
        make: || Box::<decisions::sequence::Sequences>::default(),
    },
    FoldEntry {
        name: "sgd",
        reads: sgd::READS,
        make: || Box::<sgd::SgdRuns>::default(),
    },
    FoldEntry {
        name: "splits",
        reads: splits::READS,
        make: || Box::<splits::Splits>::default(),
    },
    FoldEntry {
        name: "synths",
        reads: synths::READS,
        make: || Box::<synths::Synths>::default(),
    },
    FoldEntry {
        name: "tallies",
        reads: tallies::READS,
        make: || Box::<tallies::Tallies>::default(),
    },
    FoldEntry {
        name: "timely",
        reads: timely::READS,
        make: || Box::<timely::TimelyRows>::default(),
    },
    FoldEntry {
        name: "wf",
        reads: wf::READS,
        make: || Box::<wf::WfRuns>::default(),
    },
    // The next fold goes here.
];

/// Kinds that custody alone reads (log keys, rulebooks), and those that are kept for people and proofs
/// and move no read model.
pub const LEDGER_ONLY: &[Kind] = &[
    Kind::AuditAttested,
    Kind::EvidenceRecorded,
    Kind::LogKeyRotated,
    Kind::NoteRecorded,
    Kind::OpeEstimated,
    Kind::PlanRecorded,
    Kind::QualificationRecorded,
    Kind::ReportPublished,
    Kind::RetentionSet,
    Kind::SubjectErased,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_reader() {
        // A fold of every kind reads headers; it is nobody's reader.
        let folds = RULEBOOK.folds.iter();
        let folds = folds.filter(|fold| fold.reads.len() < Kind::ALL.len());
        let folds = folds.flat_map(|fold| fold.reads);
        let models = RULEBOOK.row_models.iter().flat_map(|model| model.reads());
        let read: BTreeSet<_> = folds.chain(models).copied().collect();
        for kind in Kind::ALL {
            let (is_read, is_listed) = (read.contains(kind), LEDGER_ONLY.contains(kind));
            assert!(
                is_read || is_listed,
                "{kind} is read by no fold or row model; add it to READS or LEDGER_ONLY"
            );
            assert!(
                !(is_read && is_listed),
                "{kind} is read and stands in LEDGER_ONLY too"
            );
        }
    }
}
