//! How far scores without ground truth can be believed, over runs whose truth was opened: gamma, kappa, beta, success under
//! budget, confusion of pass against truth, and what a success costs. The unit is a run.

use std::collections::BTreeMap;

use clover_event::id::ExperimentId;
use clover_event::payload::repair::WfEnd;
use clover_event::payload::repair::WfOperator;
use clover_flow::task::TaskSet;
use clover_ground::digest::Digest;
use clover_ledger::State;
use clover_projection::wf::WfRun;
use clover_projection::wf::WfRuns;
use clover_stats::concordance;
use clover_stats::concordance::Alignment;
use clover_stats::concordance::BlameAccuracy;
use clover_stats::concordance::EditPair;
use clover_stats::concordance::RunMeasure;
use clover_stats::inference::Interval;
use clover_stats::sample::SampleError;

use crate::wf::measure;

/// What is measured how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasureTerms {
    /// Least utility of a workflow that is of use, 0 to 1.
    pub useful: f64,
    /// Utilities within it of one another are no pair.
    pub epsilon: f64,
    /// Least gain of a proposal that counts.
    pub least_gain: f64,
    /// Level of the intervals, in (0, 1).
    pub level: f64,
}

/// A share of runs with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunShare {
    /// Runs that show it.
    pub count: u64,
    /// Runs.
    pub of: u64,
    /// Clopper and Pearson's interval; `None` without runs.
    pub interval: Option<Interval>,
}

/// Runs in pairs with themselves: of use with the winner, and with the first program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedShare {
    /// Runs of which the winner alone is of use.
    pub gained: u64,
    /// Runs of which the first program alone is.
    pub lost: u64,
    /// Runs.
    pub of: u64,
    /// Interval of the difference of both shares; `None` without runs.
    pub interval: Option<Interval>,
}

/// What the edits of one operator came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperatorRecord {
    /// Edits that made a candidate.
    pub added: u64,
    /// Edits that were rejected.
    pub rejected: u64,
    /// Candidates with a known utility.
    pub judged: u64,
    /// Those that gained enough.
    pub gained: u64,
    /// Sum of their gains in utility.
    pub gain: f64,
}

/// Total over all runs for each success, those that did not succeed included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSuccess {
    /// Turns.
    pub turns: f64,
    /// Calls.
    pub calls: f64,
    /// Tokens.
    pub tokens: f64,
}

/// What is measured of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairMeasures {
    /// Runs, by name.
    pub runs: Vec<String>,
    /// Whether scores put candidates in the order of their utility.
    pub alignment: Alignment,
    /// Probability that one proposal gains enough.
    pub kappa_one: RunMeasure,
    /// Probability that one of three proposals gains enough.
    pub kappa_three: RunMeasure,
    /// Whether blame points to the step that is worth an edit.
    pub blame: BlameAccuracy,
    /// Runs whose winner is of use: success under budget.
    pub success: RunShare,
    /// Runs whose first program was of use.
    pub before: RunShare,
    /// Success under budget less the share whose first program was of use.
    pub success_gain: PairedShare,
    /// Utility of the winner less that of the first program.
    pub gain: RunMeasure,
    /// Runs that ended with a pass.
    pub passed: RunShare,
    /// Runs that passed and whose winner is of no use.
    pub false_positive: RunShare,
    /// Runs that did not pass though a candidate is of use.
    pub false_negative: RunShare,
    /// What a success costs; `None` without one.
    pub per_success: Option<PerSuccess>,
    /// Median of the turns of the runs that succeeded.
    pub turns_median: Option<f64>,
    /// Calls of the runs, those that succeeded with `true`, in order of their calls.
    pub calls: Vec<(u64, bool)>,
    /// By operator.
    pub operators: BTreeMap<WfOperator, OperatorRecord>,
}

/// Utility of a candidate, 0 to 1: the mean over items.
fn utility(run: &WfRun, id: &Digest) -> Option<f64> {
    Some(run.worth(id)? as f64 / 1e6)
}

/// The family of a run's tasks.
pub fn family(run: &WfRun) -> String {
    let set = TaskSet::head(run.said.context.as_str());
    set.map_or_else(|_| String::new(), |set| set.family)
}

/// Runs of an experiment that ended; of one family, where it is named.
fn ended<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    of_family: Option<&str>,
) -> impl Iterator<Item = &'a WfRun> {
    let all = state.fold::<WfRuns>().by_id.values();
    let all = all.filter(|run| run.experiment == *experiment && run.end.is_some());
    all.filter(move |run| of_family.is_none_or(|name| family(run) == name))
}

/// Runs of an experiment that ended and whose candidates have their worth, those that failed included; of one family, where it
/// is named.
pub fn scored<'a>(
    state: &'a State,
    experiment: &ExperimentId,
    of_family: Option<&str>,
) -> Vec<&'a WfRun> {
    let all = ended(state, experiment, of_family);
    all.filter(|run| run.is_known()).collect()
}

/// How many runs ended and still have candidates without their worth; of one family, where it is named.
pub fn unscored(state: &State, experiment: &ExperimentId, of_family: Option<&str>) -> u64 {
    let all = ended(state, experiment, of_family);
    all.filter(|run| !run.is_known()).count() as u64
}

fn pairs(run: &WfRun) -> Vec<EditPair> {
    let all = run.pairs.iter().filter_map(|of| {
        let worth = |id: &Digest| utility(run, id);
        let parent = worth(&of.parent)?;
        Some(EditPair {
            targeted: worth(&of.targeted.candidate)? - parent,
            control: worth(&of.control.candidate)? - parent,
        })
    });
    all.collect()
}

fn share(runs: &[&WfRun], level: f64, shows: impl Fn(&WfRun) -> bool) -> RunShare {
    let count = runs.iter().filter(|run| shows(run)).count() as u64;
    let of = runs.len() as u64;
    let interval = Interval::clopper_pearson(count, of, 1.0 - level);
    RunShare {
        count,
        of,
        interval: (of > 0).then_some(interval),
    }
}

/// `shows` says of a run whether it has it after, and before.
fn paired(runs: &[&WfRun], level: f64, shows: impl Fn(&WfRun) -> (bool, bool)) -> PairedShare {
    let count = |wanted: (bool, bool)| {
        let all = runs.iter().map(|run| shows(run));
        all.filter(|found| *found == wanted).count() as u64
    };
    let (gained, lost) = (count((true, false)), count((false, true)));
    let of = runs.len() as u64;
    let interval = Interval::paired_difference(gained, lost, of, 1.0 - level);
    PairedShare {
        gained,
        lost,
        of,
        interval: (of > 0).then_some(interval),
    }
}

fn worth_of_winner(run: &WfRun) -> Option<f64> {
    utility(run, &run.end.as_ref()?.winner?)
}

fn first(run: &WfRun) -> Option<f64> {
    utility(run, &run.said.program_digest)
}

fn passed(run: &WfRun) -> bool {
    run.end
        .as_ref()
        .is_some_and(|end| end.reason == WfEnd::Pass)
}

fn operators(runs: &[&WfRun], least_gain: f64) -> BTreeMap<WfOperator, OperatorRecord> {
    let mut found: BTreeMap<WfOperator, OperatorRecord> = BTreeMap::new();
    for run in runs {
        for of in &run.rejected {
            found.entry(of.operator).or_default().rejected += 1;
        }
        for (id, of) in run.candidates.iter().filter(|(_, of)| of.iteration > 1) {
            let Some(operator) = of.operator else {
                continue;
            };
            let record = found.entry(operator).or_default();
            record.added += 1;
            let parent = of.parent.and_then(|id| run.worth(&id));
            if let Some((own, parent)) = run.worth(id).zip(parent) {
                let gain = (own - parent) as f64;
                record.judged += 1;
                record.gained += u64::from(gain >= measure::whole(least_gain));
                record.gain += gain / 1e6;
            }
        }
    }
    found
}

fn median(mut of: Vec<u64>) -> Option<f64> {
    of.sort_unstable();
    let (low, high) = (of.len().checked_sub(1)? / 2, of.len() / 2);
    Some((of[low] + of[high]) as f64 / 2.0)
}

/// Measures runs.
///
/// # Errors
/// [`SampleError`] for terms that are none.
pub fn of(runs: &[&WfRun], terms: MeasureTerms) -> Result<RepairMeasures, SampleError> {
    let MeasureTerms {
        useful,
        epsilon,
        least_gain,
        level,
    } = terms;
    let all_groups: Vec<_> = runs.iter().map(|run| measure::groups(run)).collect();
    let all_expansions: Vec<_> = runs.iter().map(|run| measure::expansions(run)).collect();
    let all_pairs: Vec<_> = runs.iter().map(|run| pairs(run)).collect();
    let kappa =
        |k| concordance::proposal_quality(&all_expansions, k, measure::whole(least_gain), level);
    let is_of_use = |worth: Option<f64>| worth.is_some_and(|worth| worth >= useful);
    let succeeds = |run: &WfRun| is_of_use(worth_of_winner(run));
    let gains = runs
        .iter()
        .map(|run| Some(worth_of_winner(run)? - first(run)?));
    let won: Vec<&&WfRun> = runs.iter().filter(|run| succeeds(run)).collect();
    let total = |of: &dyn Fn(&WfRun) -> u64| {
        let sum = runs.iter().map(|run| of(run)).fold(0, u64::saturating_add);
        sum as f64 / won.len() as f64
    };
    let per_success = (!won.is_empty()).then(|| PerSuccess {
        turns: total(&|run| run.turns.len() as u64),
        calls: total(&|run| run.spent.calls.value()),
        tokens: total(&|run| run.spent.tokens()),
    });
    let mut calls: Vec<(u64, bool)> = runs
        .iter()
        .map(|run| (run.spent.calls.value(), succeeds(run)))
        .collect();
    calls.sort_unstable();
    let turns = won.iter().map(|run| run.turns.len() as u64).collect();
    Ok(RepairMeasures {
        runs: runs.iter().map(|run| run.said.run.to_string()).collect(),
        alignment: concordance::alignment(&all_groups, epsilon, level)?,
        kappa_one: kappa(1)?,
        kappa_three: kappa(3)?,
        blame: concordance::blame_accuracy(&all_pairs, level)?,
        success: share(runs, level, succeeds),
        before: share(runs, level, |run| is_of_use(first(run))),
        success_gain: paired(runs, level, |run| (succeeds(run), is_of_use(first(run)))),
        gain: RunMeasure::over(gains.collect(), level)?,
        passed: share(runs, level, passed),
        false_positive: share(runs, level, |run| passed(run) && !succeeds(run)),
        false_negative: share(runs, level, |run| {
            let any = run.candidates.keys().any(|id| is_of_use(utility(run, id)));
            any && !passed(run)
        }),
        per_success,
        turns_median: median(turns),
        calls,
        operators: operators(runs, least_gain),
    })
}
