//! What can be wrong with a manifest by itself.

use std::collections::BTreeSet;

use clover_event::payload::drift::DriftChart;
use clover_event::payload::environment::TimeWindow;
use clover_event::payload::manifest::ArmRole;
use clover_event::payload::manifest::ConfirmTest;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::OWNED;
use clover_event::payload::manifest::Population;
use clover_event::payload::manifest::Prediction;
use clover_event::payload::manifest::STRATA_MAX;
use clover_event::payload::manifest::Test;
use clover_event::payload::overlap::OverlapThresholds;
use clover_ledger::Code;

use crate::gates;
use crate::manifests::design;

/// What is wrong, and with which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the field, such as `test.n_max`.
    pub path: String,
    /// What would be accepted.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

/// What a manifest by itself may be asked: nothing is wrong, or this is.
pub type Sound = Result<(), Fault>;

/// The answer that something is wrong, as the last word of a question.
pub(super) fn fault(path: &str, expected: impl Into<String>, found: impl Into<String>) -> Sound {
    Err(Fault {
        path: path.to_owned(),
        expected: expected.into(),
        found: found.into(),
    })
}

const ONE: i64 = 1_000_000;
const MANY: i64 = 9_007_199_254_740_991;
/// A second more than two days is no gap; two days are.
const GAP_SECONDS_MIN: i64 = 48 * 3600;

/// A number of a manifest with the least and the largest value it may have.
type Range = (&'static str, i64, i64, i64);

/// Whether nothing is wrong with a manifest, judged by itself: sections, then ranges, then sizes.
///
/// # Errors
/// The first fault.
pub fn check(manifest: &Manifest) -> Sound {
    check_sections(manifest)?;
    check_ranges(manifest)?;
    check_sizes(manifest)?;
    check_plans(manifest)?;
    check_pairs(manifest)?;
    check_order(manifest)?;
    match &manifest.iteration {
        Some(plan) => design::check(plan),
        // Another template has no iteration.
        None => Ok(()),
    }
}

/// An order: of at least two policies, each once, by labels.
fn check_order(manifest: &Manifest) -> Sound {
    let plan = manifest.estimates.as_ref();
    let Some(order) = plan.and_then(|plan| plan.order.as_ref()) else {
        return Ok(());
    };
    let (path, all) = ("estimates.order.policies", order.policies.len());
    let policies: BTreeSet<_> = order.policies.iter().collect();
    if all < 2 || policies.len() < all {
        let found = format!("{all}, {} of them different", policies.len());
        return fault(path, "at least two policies, each once", found);
    }
    if order.labels.value() == 0 {
        return fault("estimates.order.labels", "at least one label", "0");
    }
    Ok(())
}

/// Pairs of judges: at least one, of two judges each, and each pair once.
fn check_pairs(manifest: &Manifest) -> Sound {
    let Some(plan) = &manifest.compare else {
        return Ok(());
    };
    if plan.pairs.is_empty() {
        return fault("compare.pairs", "at least one pair of judges", "none");
    }
    let mut seen = BTreeSet::new();
    for (at, pair) in plan.pairs.iter().enumerate() {
        let path = format!("compare.pairs[{at}]");
        let (one, other) = (&pair.first, &pair.second);
        if one == other {
            return fault(&path, "two judges", format!("{one} twice"));
        }
        if !seen.insert((one.min(other), one.max(other))) {
            return fault(
                &path,
                "each pair of judges once",
                format!("{one} and {other} again"),
            );
        }
    }
    Ok(())
}

fn check_sections(manifest: &Manifest) -> Sound {
    let template = manifest.template;
    for section in template.needs() {
        if !manifest.has(section) {
            let expected = format!("section {section} for template {}", template.as_str());
            return fault(section, expected, "none");
        }
    }
    for (section, owner) in OWNED {
        if owner != template && manifest.has(section) {
            let found = Code::UnregisteredRule.of(format_args!("section {section}"));
            return fault(
                section,
                format!("no section of template {}", owner.as_str()),
                found,
            );
        }
    }
    Ok(())
}

fn count(value: clover_num::Count) -> i64 {
    i64::try_from(value.value()).unwrap_or(i64::MAX)
}

fn check_ranges(manifest: &Manifest) -> Sound {
    let mut ranges = Vec::new();
    claim_ranges(manifest, &mut ranges);
    test_ranges(manifest, &mut ranges);
    plan_ranges(manifest, &mut ranges);
    iteration_ranges(manifest, &mut ranges);
    diagnostic_ranges(manifest, &mut ranges);
    for (path, value, low, high) in ranges {
        if !(low..=high).contains(&value) {
            return fault(path, format!("{low} to {high}"), value.to_string());
        }
    }
    Ok(())
}

fn claim_ranges(manifest: &Manifest, out: &mut Vec<Range>) {
    if let Some(data) = &manifest.data {
        out.push(("data.exposure_cap", count(data.exposure_cap), 1, MANY));
        if let Some(policy) = &data.label_policy {
            let pi = policy.pi_min_micro.value();
            out.push(("data.label_policy.pi_min_micro", pi, 1, ONE));
        }
        out.push(("data.n_units", count(data.n_units), 1, MANY));
    }
    if let Some(metric) = &manifest.metric {
        out.push(("metric.repeats", count(metric.repeats), 1, MANY));
    }
}

fn test_ranges(manifest: &Manifest, out: &mut Vec<Range>) {
    let Some(test) = &manifest.test else {
        return;
    };
    if let Some(alpha) = test.alpha_kill_micro {
        out.push(("test.alpha_kill_micro", alpha.value(), 1, ONE - 1));
    }
    out.push(("test.alpha_micro", test.alpha_micro.value(), 1, ONE - 1));
    if let Some(beta) = test.beta_futile_micro {
        out.push(("test.beta_futile_micro", beta.value(), 1, ONE - 1));
    }
    if let Some(grid) = test.bettor.grid {
        out.push(("test.bettor.grid", count(grid), 1, 1_000));
    }
    out.push(("test.n_max", count(test.n_max), 1, MANY));
    out.push(("test.n_min", count(test.n_min), 1, MANY));
}

fn plan_ranges(manifest: &Manifest, out: &mut Vec<Range>) {
    if let Some(plan) = &manifest.transport {
        out.push((
            "transport.alpha_micro",
            plan.alpha_micro.value(),
            1,
            ONE - 1,
        ));
        out.push(("transport.clusters_min", count(plan.clusters_min), 2, MANY));
        out.push(("transport.family_size", count(plan.family_size), 1, MANY));
        let labels = count(plan.labels_per_cluster);
        out.push(("transport.labels_per_cluster", labels, 1, MANY));
        let micro = clover_num::Micro::MAX;
        out.push((
            "transport.margin_micro",
            plan.margin_micro.value(),
            1,
            micro,
        ));
        let power = plan.power_micro.value();
        out.push(("transport.power_micro", power, ONE / 2 + 1, ONE - 1));
        if let Some(q) = plan.q_micro {
            out.push(("transport.q_micro", q.value(), 1, ONE / 2));
        }
        let sd = plan.residual_sd_micro.value();
        out.push(("transport.residual_sd_micro", sd, 0, micro));
    }
    if let Some(plan) = &manifest.sgd {
        out.push(("sgd.batch", count(plan.batch), 3, MANY));
        out.push(("sgd.lr_max_micro", plan.lr_max_micro.value(), 1, ONE));
        out.push(("sgd.lr_min_micro", plan.lr_min_micro.value(), 0, ONE));
        out.push(("sgd.repeats", count(plan.repeats), 2, MANY));
        out.push(("sgd.steps", count(plan.steps), 1, MANY));
    }
    if let Some(plan) = &manifest.workflow {
        out.push(("workflow.beam", count(plan.beam), 1, MANY));
        out.push(("workflow.calls_max", count(plan.calls_max), 1, MANY));
        out.push(("workflow.proposals", count(plan.proposals), 1, MANY));
        out.push(("workflow.rounds", count(plan.rounds), 1, MANY));
    }
}

fn iteration_ranges(manifest: &Manifest, out: &mut Vec<Range>) {
    let Some(plan) = &manifest.iteration else {
        return;
    };
    out.push((
        "iteration.alpha_micro",
        plan.alpha_micro.value(),
        1,
        ONE - 1,
    ));
    out.push(("iteration.confirm_rows", count(plan.confirm_rows), 1, MANY));
    let sd = plan.difference_sd_micro.value();
    out.push(("iteration.difference_sd_micro", sd, 1, ONE));
    out.push((
        "iteration.effect_micro",
        plan.effect_micro.value(),
        1,
        2 * ONE,
    ));
    out.push(("iteration.eta_micro", plan.eta_micro.value(), 500, 2_500));
    let gap = count(plan.gap_seconds);
    out.push(("iteration.gap_seconds", gap, GAP_SECONDS_MIN, MANY));
    out.push((
        "iteration.green_sd_micro",
        plan.green_sd_micro.value(),
        1,
        ONE,
    ));
    let most = count(plan.hypotheses_max);
    out.push(("iteration.hypotheses_max", most, 1, 1_000));
    let power = plan.power_micro.value();
    out.push(("iteration.power_micro", power, ONE / 2 + 1, ONE - 1));
    out.push(("iteration.q_micro", plan.q_micro.value(), 1, ONE - 1));
    out.push(("iteration.tau_micro", plan.tau_micro.value(), 0, 2_000));
    if let Some(of) = &plan.sequential {
        let (alpha, beta) = (of.alpha_harm_micro.value(), of.beta_futile_micro.value());
        let path = "iteration.sequential.alpha_harm_micro";
        out.push((path, alpha, 1, ONE - 1));
        out.push(("iteration.sequential.beta_futile_micro", beta, 1, ONE - 1));
        let every = count(of.look_every);
        out.push(("iteration.sequential.look_every", every, 1, MANY));
    }
}

fn diagnostic_ranges(manifest: &Manifest, out: &mut Vec<Range>) {
    let Some(plan) = &manifest.diagnostics else {
        return;
    };
    let micro = clover_num::Micro::MAX;
    if let Some(drift) = &plan.drift {
        let (chart, q) = (drift.chart_micro.value(), drift.q_micro.value());
        let (replicates, tau) = (count(drift.replicates), drift.tau_min_micro.value());
        let lambda = i64::from(drift.chart == DriftChart::Ewma);
        let chart_max = if drift.chart == DriftChart::Ewma {
            ONE
        } else {
            10 * ONE
        };
        out.push(("diagnostics.drift.chart_micro", chart, lambda, chart_max));
        out.push(("diagnostics.drift.q_micro", q, 1, ONE - 1));
        out.push(("diagnostics.drift.replicates", replicates, 99, 100_000));
        let sd = drift.sd_micro.value();
        out.push(("diagnostics.drift.sd_micro", sd, 1, micro));
        out.push(("diagnostics.drift.tau_min_micro", tau, -ONE, ONE));
    }
    if let Some(of) = &plan.overlap {
        overlap_ranges(of, out);
    }
}

fn overlap_ranges(of: &OverlapThresholds, out: &mut Vec<Range>) {
    let micro = clover_num::Micro::MAX;
    // A level that is good is at least the one that is warned of.
    let pairs = [
        (
            "diagnostics.overlap.affinity_good_micro",
            of.affinity_good_micro,
            of.affinity_warn_micro,
        ),
        (
            "diagnostics.overlap.ess_good_micro",
            of.ess_good_micro,
            of.ess_warn_micro,
        ),
        (
            "diagnostics.overlap.hill_good_micro",
            of.hill_good_micro,
            of.hill_warn_micro,
        ),
        (
            "diagnostics.overlap.ttc_good_micro",
            of.ttc_good_micro,
            of.ttc_warn_micro,
        ),
    ];
    out.extend(pairs.map(|(path, good, warn)| (path, good.value(), warn.value().max(0), micro)));
    let alone = [
        (
            "diagnostics.overlap.affinity_warn_micro",
            of.affinity_warn_micro,
        ),
        ("diagnostics.overlap.cv_max_micro", of.cv_max_micro),
        ("diagnostics.overlap.ess_warn_micro", of.ess_warn_micro),
        (
            "diagnostics.overlap.guarded_max_micro",
            of.guarded_max_micro,
        ),
        ("diagnostics.overlap.hill_warn_micro", of.hill_warn_micro),
        (
            "diagnostics.overlap.near_zero_max_micro",
            of.near_zero_max_micro,
        ),
        (
            "diagnostics.overlap.top_mass_max_micro",
            of.top_mass_max_micro,
        ),
        ("diagnostics.overlap.ttc_warn_micro", of.ttc_warn_micro),
    ];
    out.extend(alone.map(|(path, value)| (path, value.value(), 0, micro)));
}

/// Numbers that only make sense together.
fn check_sizes(manifest: &Manifest) -> Sound {
    if let Some(arms) = &manifest.arms {
        let baselines = arms.iter().filter(|arm| arm.role == ArmRole::Baseline);
        let found = (arms.len(), baselines.count());
        let ids: BTreeSet<_> = arms.iter().map(|arm| &arm.id).collect();
        if found.1 != 1 || found.0 < 2 || ids.len() != arms.len() {
            let found = format!("{} arms, {} of them baselines", found.0, found.1);
            return fault(
                "arms",
                "one baseline and at least one candidate, each id once",
                found,
            );
        }
    }
    if let Some(metric) = &manifest.metric
        && metric.scale_lo_micro >= metric.scale_hi_micro
    {
        let expected = format!("more than scale_lo_micro {}", metric.scale_lo_micro.value());
        let found = Code::Scale.of(metric.scale_hi_micro.value());
        return fault("metric.scale_hi_micro", expected, found);
    }
    match &manifest.test {
        Some(test) => check_test(manifest, test),
        // Only a gate has one, and must.
        None => Ok(()),
    }
}

/// Numbers of a test that only make sense with those of other sections.
fn check_test(manifest: &Manifest, test: &Test) -> Sound {
    if let Some(data) = &manifest.data
        && test.n_max > data.n_units
    {
        let expected = format!("at most data.n_units {}", data.n_units);
        return fault("test.n_max", expected, Code::Number.of(test.n_max));
    }
    if let Some(estimand) = &manifest.estimand
        && (estimand.population == Population::Finite) != test.without_replacement
    {
        let (expected, found) = if test.without_replacement {
            (
                "finite, as test.without_replacement is about exactly these units",
                Code::Unit.of("superpopulation"),
            )
        } else {
            (
                "superpopulation, as test.without_replacement is false",
                Code::Unit.of("finite"),
            )
        };
        return fault("estimand.population", expected, found.clone());
    }
    if test.n_min > test.n_max {
        let expected = format!("at most test.n_max {}", test.n_max);
        return fault("test.n_min", expected, Code::Number.of(test.n_min));
    }
    check_looks(test)?;
    check_strata(manifest, test)
}

/// Strata are all the units of a test of exactly these.
fn check_strata(manifest: &Manifest, test: &Test) -> Sound {
    let Some(strata) = &test.control_variate else {
        return Ok(());
    };
    let wrong = |expected: String, found: String| fault("test.control_variate", expected, found);
    if !test.without_replacement {
        let expected =
            "none, as test.without_replacement is false: nobody knows the strata of a population";
        let found = Code::UnregisteredRule.of(format_args!("{} strata", strata.len()));
        return wrong(expected.to_owned(), found);
    }
    if !(1..=STRATA_MAX).contains(&strata.len()) {
        let expected = format!("1 to {STRATA_MAX} strata");
        return wrong(expected, strata.len().to_string());
    }
    let names = strata.iter().map(|one| &one.stratum);
    let mut pairs = names.clone().zip(names.skip(1));
    if let Some((before, after)) = pairs.find(|(before, after)| before >= after) {
        let expected = "strata in order of the bytes of their names, each once".to_owned();
        let found = if before == after {
            format!("{after} twice")
        } else {
            format!("{after} after {before}")
        };
        return wrong(expected, found);
    }
    let (Some(metric), Some(data)) = (&manifest.metric, &manifest.data) else {
        return wrong("sections metric and data".to_owned(), "none".to_owned());
    };
    let most = gates::scale(metric);
    let far = |one: &&Prediction| one.predicted_micro.value().saturating_abs() > most;
    if let Some(one) = strata.iter().find(far) {
        let expected = format!("predicted_micro of at most {most} in magnitude");
        let (found, stratum) = (one.predicted_micro.value(), &one.stratum);
        let found = Code::Scale.of(format_args!("{found} of {stratum}"));
        return wrong(expected, found);
    }
    if let Some(one) = strata.iter().find(|one| one.units.value() == 0) {
        return wrong("units from 1".to_owned(), format!("0 of {}", one.stratum));
    }
    let all = strata.iter().map(|one| one.units.value());
    let all = all.fold(0, u64::saturating_add);
    if all != data.n_units.value() {
        let expected = format!("strata of data.n_units {} together", data.n_units);
        return wrong(expected, Code::Number.of(all));
    }
    Ok(())
}

fn check_looks(test: &Test) -> Sound {
    let Some(at) = &test.look_at else {
        // Looks are where the arbiter takes them.
        return Ok(());
    };
    let ascending = at.windows(2).all(|pair| pair[0] < pair[1]);
    let within = at
        .iter()
        .all(|look| (test.n_min..=test.n_max).contains(look));
    if at.is_empty() || !ascending || !within {
        let expected = format!("looks from {} to {}, ascending", test.n_min, test.n_max);
        return fault(
            "test.look_at",
            expected,
            Code::Number.of(format_args!("{} looks", at.len())),
        );
    }
    Ok(())
}

/// A window ends after it begins, and belongs to a family of windows.
pub(super) fn check_windows(
    path: &str,
    windows: impl Iterator<Item = (bool, Option<TimeWindow>)>,
) -> Sound {
    for (has_family, window) in windows {
        let Some(window) = window else {
            continue;
        };
        if !has_family || window.from >= window.to {
            return fault(
                path,
                "a window with a family, from before its to",
                format!("from {} to {}", window.from, window.to),
            );
        }
    }
    Ok(())
}

fn check_plans(manifest: &Manifest) -> Sound {
    if let Some(plan) = &manifest.iteration {
        let (test, section) = (plan.confirm_test, plan.sequential.is_some());
        if section != (test == ConfirmTest::Sequential) {
            let found = if section { "some" } else { "none" };
            let expected = "looks with confirm_test sequential, and with no other";
            return fault(
                "iteration.sequential",
                expected,
                format!("{found} with confirm_test {}", test.as_str()),
            );
        }
    }
    if let Some(plan) = &manifest.transport {
        let audits = plan.environments.len() as u64;
        let ids: BTreeSet<_> = plan
            .environments
            .iter()
            .map(|audited| (&audited.family, &audited.environment))
            .collect();
        if audits == 0 || ids.len() as u64 != audits {
            let found = format!("{audits} environments");
            return fault(
                "transport.environments",
                "at least one environment, each once",
                found,
            );
        }
        let windows = plan
            .environments
            .iter()
            .map(|of| (of.family.is_some(), of.window));
        check_windows("transport.environments", windows)?;
        let by_policy = plan.environments.iter().filter(|of| of.family.is_none());
        let audits = by_policy.count() as u64;
        if plan.family_size.value() < audits {
            let expected = format!("at least the {audits} audits planned");
            let found = plan.family_size.to_string();
            return fault("transport.family_size", expected, found);
        }
    }
    if let Some(plan) = &manifest.sgd
        && plan.lr_min_micro > plan.lr_max_micro
    {
        let expected = format!("at most sgd.lr_max_micro {}", plan.lr_max_micro.value());
        let found = plan.lr_min_micro.value().to_string();
        return fault("sgd.lr_min_micro", expected, found);
    }
    Ok(())
}
