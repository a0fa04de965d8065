//! What a comparison of judges may say: numbers that fit each other, and a plan that named it before the first label.

use clover_event::id::ExperimentId;
use clover_event::id::JudgeId;
use clover_event::payload::estimated::ScaleEnds;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::scoring::JudgeCompared;
use clover_event::payload::scoring::NamedComparison;
use clover_ledger::RequiredFact;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;

use crate::designs::Designs;
use crate::judges::Judges;
use crate::manifests::Manifests;
use crate::tainted;
use crate::timely::TimelyRows;

/// How a plan names a comparison among its secondary analyses, before the names of the judges.
pub const NAMED: &str = "judge compare ";
/// How far a difference may be from that of two errors, by rounding, as a share of the larger error.
const ROUNDING: f64 = 1e-9;

/// Checks one comparison.
pub(super) fn check(
    state: &State,
    seq: u64,
    experiment: &ExperimentId,
    said: &JudgeCompared,
) -> RuleAnswer {
    let (first, second) = (&said.first, &said.second);
    ensure!(first != second, "two judges", format!("{first} twice"));
    let of = state.fold::<Judges>().of(experiment);
    for judge in [first, second] {
        let is_scorer = of.is_some_and(|of| of.scorers.contains_key(judge));
        ensure!(is_scorer, format!("scores of {judge}"), "none");
    }
    let through = said.through_seq.value();
    ensure!(
        through < seq,
        format!("entries below {seq}"),
        format!("entries through {through}")
    );
    ensure!(
        (1..=said.rows.value()).contains(&said.items.value()),
        format!("1 to {} items, as there are rows", said.rows),
        said.items.to_string()
    );
    let is_asked = state.asks(Question::DoubtedJudges);
    if is_asked {
        check_doubts(state, experiment, said)?;
    }
    tainted::check_judges(state, experiment, said)?;
    check_numbers(said, if is_asked { movable(said) } else { 0.0 })?;
    match &said.plan {
        None => Ok(()),
        Some(plan) => check_plan(state, experiment, said, plan),
    }
}

/// What stands against a claim is what the record has: how many rows were scored late, and at least as much as they and the
/// missing ones could move the difference.
fn check_doubts(state: &State, experiment: &ExperimentId, said: &JudgeCompared) -> RuleAnswer {
    let doubts = said.doubts.as_ref();
    let doubts = doubts.required("doubts: what late and missing scores could change")?;
    let rows = state.fold::<TimelyRows>().by_experiment.get(experiment);
    let late = rows.map_or(0, |of| of.late_beside_labels([&said.first, &said.second]));
    ensure!(
        doubts.late.value() == late,
        format!("{late} late rows, which a judge scored once labels could be read"),
        doubts.late.to_string()
    );
    let missing = doubts
        .unscored
        .value()
        .saturating_add(said.unpaired.value());
    let scale = state.fold::<Designs>().scale(experiment);
    let least = worst_of_rows((late, missing), said.rows.value(), width(scale));
    ensure!(
        doubts.worst.value() >= least * (1.0 - ROUNDING),
        format!("worst {least}, by {late} late rows and {missing} without a score of both"),
        doubts.worst.to_string()
    );
    Ok(())
}

/// By how much late and missing scores could move the difference of a planned comparison: without bound, where somebody chose
/// which rows are labelled. Of one that no plan named nobody may claim anything.
fn movable(said: &JudgeCompared) -> f64 {
    let doubts = said.doubts.as_ref().filter(|_| said.plan.is_some());
    doubts.map_or(0.0, |of| match of.chosen.value() {
        0 => of.worst.value(),
        _ => f64::INFINITY,
    })
}

/// The width of the scale of labels: from 0 to 1 where none is declared.
pub fn width(scale: Option<ScaleEnds>) -> f64 {
    scale.map_or(1.0, |of| {
        (of.high_micro.value() - of.low_micro.value()) as f64 / 1e6
    })
}

/// By how much a difference of squared errors could move, as a mean over the rows that were counted: a late row may have been
/// counted with the best error and deserve the worst, a missing one may have the worst. Labels span `span`.
pub fn worst_of_rows((late, missing): (u64, u64), rows: u64, span: f64) -> f64 {
    let moved = late.saturating_mul(2).saturating_add(missing);
    span * span * moved as f64 / rows.max(1) as f64
}

/// The difference is that of the errors, lies within its interval, and names the better judge where that holds no zero.
fn check_numbers(said: &JudgeCompared, worst: f64) -> RuleAnswer {
    let (one, other) = (said.first_error.value(), said.second_error.value());
    let (low, high, difference) = (said.low.value(), said.high.value(), said.difference.value());
    ensure!(one >= 0.0 && other >= 0.0, "errors of at least 0", "others");
    let apart = (difference - (one - other)).abs();
    ensure!(
        apart <= ROUNDING * one.max(other),
        "the error of the first less that of the second",
        said.difference.to_string()
    );
    ensure!(
        low <= difference && difference <= high,
        "a difference within its interval",
        said.difference.to_string()
    );
    let better = if low - worst > 0.0 {
        Some(&said.second)
    } else if high + worst < 0.0 {
        Some(&said.first)
    } else {
        None
    };
    let word = |of: Option<&JudgeId>| of.map_or("none".to_owned(), ToString::to_string);
    ensure!(
        said.better.as_ref() == better,
        format!("better {}, as the interval says", word(better)),
        word(said.better.as_ref())
    );
    Ok(())
}

/// The plan is in force, named this comparison before the first label for calibration, and none of these judges that a plan
/// named is on record.
fn check_plan(
    state: &State,
    experiment: &ExperimentId,
    said: &JudgeCompared,
    plan: &NamedComparison,
) -> RuleAnswer {
    let (first, second) = (&said.first, &said.second);
    let record = state.fold::<Manifests>().by_id.get(&plan.manifest);
    let version = record.and_then(|record| record.in_force());
    let version = version.filter(|version| version.manifest.experiment == *experiment);
    let version = version.required("a plan of this experiment that is in force")?;
    let all = named(&version.manifest);
    let count = all.len() as u64;
    ensure!(
        names(&all, [first, second]),
        format!("{NAMED}{first} {second} among its secondary analyses, or in its section compare"),
        "none"
    );
    ensure!(
        plan.comparisons.value() == count,
        format!("{count} comparisons, as it names"),
        plan.comparisons.to_string()
    );
    let labelled = state.fold::<Designs>().by_experiment.get(experiment);
    if let Some(label) = labelled.and_then(|of| of.calibrated_since) {
        // A plan that waited for its custodian named nothing until then.
        let since = version.since().unwrap_or(version.seq);
        ensure!(
            since < label,
            format!("a plan from before the first label for calibration, at seq {label}"),
            format!("one in force since seq {since}")
        );
    }
    let of = state.fold::<Judges>().of(experiment);
    let seen = of.is_some_and(|of| of.compared.contains(&pair(first, second)));
    ensure!(
        !seen,
        "no plan: a comparison of these judges that a plan named was seen before",
        plan.manifest.to_string()
    );
    Ok(())
}

/// The comparisons that a plan names, each as the names of two judges with a space between: those of its section `compare`, then
/// those among its secondary analyses.
pub fn named(manifest: &Manifest) -> Vec<String> {
    let pairs = manifest.compare.iter().flat_map(|plan| &plan.pairs);
    let pairs = pairs.map(|pair| format!("{} {}", pair.first, pair.second));
    let secondary = manifest.analysis.iter();
    let secondary = secondary.flat_map(|of| of.secondary.iter().flatten());
    let texts = secondary.filter_map(|text| text.as_str().strip_prefix(NAMED));
    pairs.chain(texts.map(str::to_owned)).collect()
}

/// Whether a comparison is among those that a plan names, whichever judge is named first.
pub fn names(all: &[String], [first, second]: [&JudgeId; 2]) -> bool {
    let pairs = [format!("{first} {second}"), format!("{second} {first}")];
    all.iter().any(|of| pairs.contains(of))
}

/// Two judges, whichever is named first.
pub(super) fn pair(first: &JudgeId, second: &JudgeId) -> String {
    let (one, other) = if first <= second {
        (first, second)
    } else {
        (second, first)
    };
    format!("{one} {other}")
}
