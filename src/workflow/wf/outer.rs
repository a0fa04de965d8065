//! The outer loop's first half: what runs whose truth is known call for, from the record alone.

use clover_event::id::ExperimentId;
use clover_event::payload::meta::CASES_MAX;
use clover_event::payload::meta::MetaCase;
use clover_event::payload::meta::MetaClass;
use clover_event::payload::meta::MetaTarget;
use clover_num::Micro;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;

/// Classes in the order in which an outer loop asks for them: what misleads a score comes before what is slow.
pub const CLASSES: [MetaClass; 4] = [
    MetaClass::FalsePositive,
    MetaClass::FalseNegative,
    MetaClass::Stagnation,
    MetaClass::Slow,
];

/// What an update changes that answers a class of triggers.
pub fn target_of(class: MetaClass) -> MetaTarget {
    match class {
        MetaClass::FalsePositive | MetaClass::FalseNegative => MetaTarget::Verifier,
        MetaClass::Stagnation => MetaTarget::Meta,
        MetaClass::Slow => MetaTarget::Library,
    }
}

/// What the runs of an experiment show of a class: all cases, one a run, in the order of the runs' names. `useful` is the least
/// worth of a workflow that is of use, in millionths. None is left out, so that nobody chooses among them; beyond
/// [`CASES_MAX`] the first ones by name stand for all.
pub fn cases(
    runs: &WfRuns,
    experiment: &ExperimentId,
    (class, useful): (MetaClass, Micro),
) -> Vec<MetaCase> {
    cases_among(runs, experiment, (class, useful), &|_| true)
}

/// As [`cases`], of those runs alone that began from what is asked for.
pub fn cases_among(
    runs: &WfRuns,
    experiment: &ExperimentId,
    (class, useful): (MetaClass, Micro),
    is_asked: &dyn Fn(&WfRun) -> bool,
) -> Vec<MetaCase> {
    let all = runs.looked_at(experiment).filter(|run| is_asked(run));
    let all = all.filter_map(|run| runs.case_of(run, (class, useful)));
    all.take(CASES_MAX).collect()
}
