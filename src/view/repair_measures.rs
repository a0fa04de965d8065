//! How far scores without ground truth can be believed: the measures of repairs, each with its interval over runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::id::ExperimentId;
use crate::event::payload::meta::MetaClass;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::wf::WfRuns;
use crate::projection::wf::learnt::CASES_MIN;
use crate::stats::concordance::RunMeasure;
use crate::stats::inference::Interval;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::wf::measures::MeasureTerms;
use crate::workflow::wf::measures::PairedShare;
use crate::workflow::wf::measures::RepairMeasures;
use crate::workflow::wf::measures::RunShare;
use crate::workflow::wf::outer;

/// A mean over runs with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairMean {
    /// The mean; `null` where no run says anything of it.
    pub mean: Option<Finite>,
    /// Lower end of the interval; `null` below two runs.
    pub low: Option<Finite>,
    /// Upper end.
    pub high: Option<Finite>,
    /// Runs that say something of it.
    pub runs: u64,
}

/// A share of runs with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairShare {
    /// Runs that show it.
    pub count: u64,
    /// Runs.
    pub of: u64,
    /// Lower end of Clopper and Pearson's interval.
    pub low: Option<Finite>,
    /// Upper end.
    pub high: Option<Finite>,
}

/// What repairs gain in success, of runs that stand against themselves before the repair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairSuccessGain {
    /// Runs whose winner is of use and whose first program was not.
    pub gained: u64,
    /// Runs whose first program was of use and whose winner is not.
    pub lost: u64,
    /// Success under budget less the share whose first program was of use; `null` without runs.
    pub difference: Option<Finite>,
    /// Lower end of its interval, which holds however both shares hang together.
    pub low: Option<Finite>,
    /// Upper end.
    pub high: Option<Finite>,
}

/// What the edits of one operator came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairOperator {
    /// Edits that made a candidate.
    pub added: u64,
    /// Edits that were rejected.
    pub rejected: u64,
    /// Candidates that gained enough.
    pub gained: u64,
    /// Mean gain in utility; `null` where none is known.
    pub gain: Option<Finite>,
}

/// Runs that spent at most so many calls and succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairBudgetPoint {
    /// Calls.
    pub calls: u64,
    /// Share of all runs.
    pub share: Finite,
}

/// The measures of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairMeasured {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The runs.
    pub runs: Vec<String>,
    /// Runs that ended and are not scored: nothing here is of them.
    pub unscored: u64,
    /// Least utility of a workflow that is of use.
    pub useful: Finite,
    /// Level of the intervals.
    pub level: Finite,
    /// Whether scores put candidates in the order of their utility; 1/2 is chance.
    pub gamma: RepairMean,
    /// The same with crashes below every score.
    pub gamma_all: RepairMean,
    /// Utility that is lost by taking the best score.
    pub regret: RepairMean,
    /// Probability that one proposal gains enough.
    pub kappa_1: RepairMean,
    /// Probability that one of three proposals gains enough.
    pub kappa_3: RepairMean,
    /// Whether blame points to the step that is worth an edit; 1/2 is chance.
    pub beta: RepairMean,
    /// What a targeted edit gains over a drawn one.
    pub effect: RepairMean,
    /// Utility of the winner less that of the first program.
    pub gain: RepairMean,
    /// Success under budget over the first program, run by run.
    pub success_gain: RepairSuccessGain,
    /// Runs whose winner is of use.
    pub success: RepairShare,
    /// Runs whose first program was of use.
    pub before: RepairShare,
    /// Runs that passed.
    pub passed: RepairShare,
    /// Runs that passed with a winner of no use.
    pub false_positive: RepairShare,
    /// Runs that did not pass though a candidate is of use.
    pub false_negative: RepairShare,
    /// Calls over all runs for each success; `null` without one.
    pub calls_per_success: Option<Finite>,
    /// Turns over all runs for each success.
    pub turns_per_success: Option<Finite>,
    /// Tokens over all runs for each success.
    pub tokens_per_success: Option<Finite>,
    /// Median of the turns of runs that succeeded.
    pub turns_median: Option<Finite>,
    /// Success against calls.
    pub curve: Vec<RepairBudgetPoint>,
    /// By operator.
    pub operators: BTreeMap<String, RepairOperator>,
}

/// Runs that show what a class of triggers says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairTrigger {
    /// The class: `false_positive`, `false_negative`, `stagnation` or `slow`.
    pub class: &'static str,
    /// Runs that show it.
    pub runs: u64,
    /// Runs from which on it is a trigger.
    pub least: u64,
    /// What an update that answers it changes: `verifier`, `meta` or `library`.
    pub target: &'static str,
}

/// The measures of runs, and what the runs call for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairFindings {
    /// The measures.
    #[serde(flatten)]
    pub measured: RepairMeasured,
    /// By class; empty where one family alone was asked of, since triggers are of the whole experiment.
    pub triggers: Vec<RepairTrigger>,
}

/// What the runs of an experiment show of each class of triggers.
fn triggers(runs: &WfRuns, experiment: &ExperimentId, useful: f64) -> Vec<RepairTrigger> {
    let (useful, _) =
        Micro::parse(&useful.to_string()).expect("BUG: a share from 0 to 1 is a decimal number");
    let of = |class| RepairTrigger {
        class: MetaClass::as_str(class),
        runs: outer::cases(runs, experiment, (class, useful)).len() as u64,
        least: CASES_MIN as u64,
        target: outer::target_of(class).as_str(),
    };
    outer::CLASSES.into_iter().map(of).collect()
}

/// The table of triggers, and what those that are due call for.
fn called_for(view: &mut View, triggers: &[RepairTrigger]) {
    if triggers.is_empty() {
        return;
    }
    let rows = triggers.iter().map(|of| {
        let due = if of.runs >= of.least { "yes" } else { "no" };
        vec![
            of.class.replace('_', " "),
            of.runs.to_string(),
            of.least.to_string(),
            due.to_owned(),
            of.target.to_owned(),
        ]
    });
    view.gap();
    view.table(
        &["trigger", "runs", "from", "due", "an update changes"],
        rows,
    );
}

fn finite(of: f64) -> Option<Finite> {
    Finite::new(of)
}

fn mean(of: &RunMeasure) -> RepairMean {
    let end = |end: fn(&Interval) -> f64| of.interval.as_ref().and_then(|of| finite(end(of)));
    RepairMean {
        mean: of.mean.and_then(finite),
        low: end(|of| of.low),
        high: end(|of| of.high),
        runs: of.runs.iter().flatten().count() as u64,
    }
}

/// A mean of probabilities with its interval. Student's interval may leave 0 to 1; no probability does, so its ends are cut there.
fn probability(of: &RunMeasure) -> RepairMean {
    let within = |end: Finite| finite(end.value().clamp(0.0, 1.0));
    let uncut = mean(of);
    RepairMean {
        low: uncut.low.and_then(within),
        high: uncut.high.and_then(within),
        ..uncut
    }
}

fn share(of: &RunShare) -> RepairShare {
    RepairShare {
        count: of.count,
        of: of.of,
        low: of.interval.and_then(|of| finite(of.low)),
        high: of.interval.and_then(|of| finite(of.high)),
    }
}

fn success_gain(of: &PairedShare) -> RepairSuccessGain {
    let difference = (of.gained as f64 - of.lost as f64) / of.of as f64;
    RepairSuccessGain {
        gained: of.gained,
        lost: of.lost,
        difference: (of.of > 0).then_some(difference).and_then(finite),
        low: of.interval.and_then(|of| finite(of.low)),
        high: of.interval.and_then(|of| finite(of.high)),
    }
}

fn curve(found: &RepairMeasures) -> Vec<RepairBudgetPoint> {
    let (mut won, mut points) = (0_u64, Vec::new());
    let all = found.calls.len().max(1) as f64;
    for (calls, succeeds) in &found.calls {
        won += u64::from(*succeeds);
        if *succeeds {
            points.push(RepairBudgetPoint {
                calls: *calls,
                share: finite(won as f64 / all).unwrap_or_default(),
            });
        }
    }
    points
}

/// The measures in facts.
pub(super) fn facts(
    experiment: &ExperimentId,
    (found, unscored): (&RepairMeasures, u64),
    terms: MeasureTerms,
) -> RepairMeasured {
    let per = found.per_success;
    let operators = found.operators.iter().map(|(operator, of)| {
        let gain = (of.judged > 0).then(|| of.gain / of.judged as f64);
        let record = RepairOperator {
            added: of.added,
            rejected: of.rejected,
            gained: of.gained,
            gain: gain.and_then(finite),
        };
        (operator.as_str().to_owned(), record)
    });
    RepairMeasured {
        experiment: experiment.clone(),
        runs: found.runs.clone(),
        unscored,
        useful: finite(terms.useful).unwrap_or_default(),
        level: finite(terms.level).unwrap_or_default(),
        gamma: probability(&found.alignment.gamma),
        gamma_all: probability(&found.alignment.gamma_all),
        regret: mean(&found.alignment.regret),
        kappa_1: probability(&found.kappa_one),
        kappa_3: probability(&found.kappa_three),
        beta: probability(&found.blame.beta),
        effect: mean(&found.blame.effect),
        gain: mean(&found.gain),
        success_gain: success_gain(&found.success_gain),
        success: share(&found.success),
        before: share(&found.before),
        passed: share(&found.passed),
        false_positive: share(&found.false_positive),
        false_negative: share(&found.false_negative),
        calls_per_success: per.and_then(|of| finite(of.calls)),
        turns_per_success: per.and_then(|of| finite(of.turns)),
        tokens_per_success: per.and_then(|of| finite(of.tokens)),
        turns_median: found.turns_median.and_then(finite),
        curve: curve(found),
        operators: operators.collect(),
    }
}

fn shown(of: Option<Finite>) -> String {
    of.map_or_else(String::new, |of| format!("{:.3}", of.value()))
}

fn mean_row(name: &str, of: &RepairMean, means: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        shown(of.mean),
        shown(of.low),
        shown(of.high),
        of.runs.to_string(),
        means.to_owned(),
    ]
}

fn gain_row(facts: &RepairMeasured) -> Vec<String> {
    let of = &facts.success_gain;
    vec![
        "gain in success".to_owned(),
        shown(of.difference),
        shown(of.low),
        shown(of.high),
        facts.success.of.to_string(),
        "runs of use, winner less first program".to_owned(),
    ]
}

fn share_row(name: &str, of: &RepairShare) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{} of {}", of.count, of.of),
        shown(of.low),
        shown(of.high),
    ]
}

/// The measures of runs; `unscored` runs ended and are not among them. With all runs also what they call for.
pub fn measured(
    experiment: &ExperimentId,
    (found, unscored): (&RepairMeasures, u64),
    (terms, runs): (MeasureTerms, Option<&WfRuns>),
) -> View {
    let triggers = runs.map(|runs| triggers(runs, experiment, terms.useful));
    let all = RepairFindings {
        measured: facts(experiment, (found, unscored), terms),
        triggers: triggers.unwrap_or_default(),
    };
    let mut view = View::of(&all);
    let facts = all.measured;
    if facts.runs.is_empty() {
        view.exit = Exit::Inconclusive;
        view.verdict = "inconclusive";
        view.answer(format!(
            "No repair of {experiment} was scored by what is right: nothing can be measured."
        ));
        left_out(&mut view, unscored);
        return view.with_next("clover repair score RUN");
    }
    view.answer(format!(
        "Of {} runs, {} end with a workflow of use; the first program was of use in {}.",
        facts.runs.len(),
        facts.success.count,
        facts.before.count
    ));
    left_out(&mut view, unscored);
    view.table(
        &["measure", "mean", "low", "high", "runs", "what it says"],
        [
            mean_row(
                "gamma",
                &facts.gamma,
                "scores in the order of worth; 1/2 is chance",
            ),
            mean_row(
                "gamma, with crashes",
                &facts.gamma_all,
                "a crash is below every score",
            ),
            mean_row("regret", &facts.regret, "worth lost by the best score"),
            mean_row("kappa of 1", &facts.kappa_1, "one proposal gains"),
            mean_row("kappa of 3", &facts.kappa_3, "one of three proposals gains"),
            mean_row(
                "beta",
                &facts.beta,
                "blame against a drawn step; 1/2 is chance",
            ),
            mean_row(
                "effect",
                &facts.effect,
                "gain of a blamed edit over a drawn one",
            ),
            mean_row("gain", &facts.gain, "winner less first program"),
            gain_row(&facts),
        ],
    );
    view.gap();
    view.table(
        &["share of runs", "count", "low", "high"],
        [
            share_row("success under budget", &facts.success),
            share_row("first program of use", &facts.before),
            share_row("passed", &facts.passed),
            share_row("passed and of no use", &facts.false_positive),
            share_row("of use and not passed", &facts.false_negative),
        ],
    );
    spent(&mut view, &facts);
    called_for(&mut view, &all.triggers);
    view
}

/// Runs that a share of runs is not of.
fn left_out(view: &mut View, unscored: u64) {
    if unscored > 0 {
        view.line(format!(
            "Runs that ended and are not scored: {unscored}. Nothing here is of them."
        ));
    }
}

/// What a success costs over all runs, and what came of each operator.
fn spent(view: &mut View, facts: &RepairMeasured) {
    if let Some(calls) = facts.calls_per_success {
        view.gap();
        view.line(format!(
            "for each success, over all runs: {:.1} calls, {} turns, {} tokens",
            calls.value(),
            shown(facts.turns_per_success),
            shown(facts.tokens_per_success)
        ));
    }
    let rows = facts.operators.iter().map(|(name, of)| {
        vec![
            name.clone(),
            of.added.to_string(),
            of.rejected.to_string(),
            of.gained.to_string(),
            shown(of.gain),
        ]
    });
    view.gap();
    view.table(
        &["operator", "added", "rejected", "gained", "mean gain"],
        rows,
    );
}
