//! How many scores, labels and probes, from the ledger's own variance and prices.

use serde::Deserialize;
use serde::Serialize;

use crate::event::payload::planning::EvaluationPlan;
use crate::event::payload::planning::PlanRecorded;
use crate::num::Finite;
use crate::num::Micro;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::stats::oua::Balance;
use crate::stats::planner;
use crate::stats::planner::Power;
use crate::stats::planner::VarianceModel;
use crate::view::View;
use crate::view::appended::Stands;
use crate::view::text::thousands;
use crate::view::transport::margin_words;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::planning;
use crate::workflow::estimate::planning::AtHand;

/// A plan, and where it stands on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanFacts {
    /// The plan.
    pub plan: PlanRecorded,
    /// Where its event stands; absent where nothing was to be appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Stands>,
}

/// A plan from what was found, and by the view of its append where it stands; without one it was a dry run.
///
/// # Panics
/// Where `recorded` is no view of an append, which the first test of the verb finds.
pub fn show(found: &Found, planned: PlanRecorded, recorded: Option<View>) -> View {
    let stands = recorded
        .as_ref()
        .map(|view| Stands::deserialize(view.facts()).expect("BUG: this is a view of an append"));
    let facts = PlanFacts {
        plan: planned,
        recorded: stands,
    };
    let mut view = View::of(&facts).with_verdict("dry_run");
    let planned = &facts.plan;
    view.pairs(pairs(found, planned));
    if planned.prices.is_some() {
        let chart = contours(found, planned);
        view.chart(twins(&chart), Some(chart.svg()));
    }
    if let Some(recorded) = recorded {
        (view.verdict, view.events) = (recorded.verdict, recorded.events);
        view.checkpoint = recorded.checkpoint;
    }
    if let Some(stands) = &facts.recorded
        && let Some(last) = stands.seqs.iter().max()
    {
        let new = stands.appended;
        view.gap();
        view.line(format!("recorded {new} new, the last at seq {last}"));
    }
    view
}

fn pairs(found: &Found, planned: &PlanRecorded) -> Vec<(&'static str, String)> {
    let split = &planned.split;
    let scale = found.analysis.output_scale;
    let ((low, high), span) = (scale.ends(), scale.span());
    let mut pairs = vec![(
        "units",
        format!(
            "effects, errors and deviations on the labels' scale, {low} to {high}; money in that of the prices"
        ),
    )];
    // Variances are of a scale from 0 to 1; deviations are shown on that of the labels, as everything else.
    let deviation = |variance: f64| span * variance.max(0.0).sqrt();
    pairs.push((
        "learnt from",
        format!(
            "{} labels and {} scores of {} policies: a mean of n scores deviates by {:.4} / sqrt(n), and by {:.4}{} / sqrt(m) \
             more for m labels",
            thousands(split.labels.value()),
            thousands(split.rows.value()),
            split.policies.len(),
            deviation(split.evaluation.value()),
            deviation(split.calibration.value()),
            between(split.calibration_low, split.calibration_high, &deviation)
        ),
    ));
    if let Some(of) = &planned.evaluation {
        pairs.extend(evaluation(found, planned, of));
    }
    pairs.extend(others(found, planned));
    pairs
}

/// The evaluation that is planned: its sizes, its cost, and what it detects.
fn evaluation(
    found: &Found,
    planned: &PlanRecorded,
    of: &EvaluationPlan,
) -> Vec<(&'static str, String)> {
    let policies = planned.policies;
    let mut pairs = Vec::new();
    pairs.push((
        "scores",
        format!(
            "{} of each of {policies} policies, {} in all",
            thousands(of.scores.value()),
            thousands(of.scores.value().saturating_mul(policies.value()))
        ),
    ));
    pairs.push((
        "labels",
        format!(
            "{}{}",
            of.labels_each.map_or_else(
                || format!("{}, shared by all", thousands(of.labels.value())),
                |each| {
                    let (each, all) = (thousands(each.value()), thousands(of.labels.value()));
                    format!("{each} of each of {policies} policies, {all} in all")
                }
            ),
            needed(of)
        ),
    ));
    let prices = planned.prices.map_or(String::new(), |prices| {
        let (score, label) = (prices.score_micro, prices.label_micro);
        format!(": {score} a score, {label} a label")
    });
    pairs.push(("cost", format!("{:.2}{prices}", of.cost.value())));
    pairs.push((
        "standard error",
        format!("{:.4} of one policy's mean", of.se.value()),
    ));
    pairs.push((
        "detects",
        format!(
            "a difference of {:.4} between the means of two policies with power {}{}",
            // Up, so that what is said is detected.
            (of.mde.value() * 1e4).ceil() / 1e4,
            planned.power_micro,
            of.mde_high.map_or(String::new(), |high| {
                format!(
                    "; {:.4} if labels vary as the interval allows",
                    high.value()
                )
            })
        ),
    ));
    pairs.push((
        "to claim it",
        "labels of a policy correct that policy alone: those of one check no other, unless an audit passes (clover plan audit)"
            .to_owned(),
    ));
    if let Ok(of) = planning::at_hand(found, planned) {
        pairs.push(("at hand", more_labels(planned, &of)));
        pairs.extend(balance(found, planned, &of).map(|text| ("next money", text)));
    }
    pairs
}

/// The 95 % interval of a deviation, where there is one.
fn between(low: Option<Finite>, high: Option<Finite>, deviation: &impl Fn(f64) -> f64) -> String {
    low.zip(high).map_or(String::new(), |(low, high)| {
        let (low, high) = (deviation(low.value()), deviation(high.value()));
        format!(" [{low:.4}, {high:.4}]")
    })
}

/// Labels at the ends of the interval of the calibration variance.
fn needed(of: &EvaluationPlan) -> String {
    of.labels_low
        .zip(of.labels_high)
        .map_or(String::new(), |(low, high)| {
            format!(
                "; {} to {} by the 95 % interval of their variance",
                thousands(low.value()),
                thousands(high.value())
            )
        })
}

/// Words for probes and for rows of an iteration.
fn others(found: &Found, planned: &PlanRecorded) -> Vec<(&'static str, String)> {
    let policies = planned.policies;
    let mut pairs = Vec::new();
    if let Some(of) = &planned.audit {
        pairs.push((
            "probes",
            format!("{} of each of {policies} policies", of.clusters),
        ));
        pairs.push((
            "passes",
            format!(
                "each with probability {:.3} at margin {} when nothing is wrong, residuals deviating by {:.3}",
                of.pass_probability.value(),
                margin_words(planned.asked_micro, found.analysis.output_scale.ends()),
                of.residual_sd.value()
            ),
        ));
        if let Some((bias, width)) = of.calibration_sd.zip(of.width_se) {
            pairs.push((
                "calibrator",
                format!(
                    "from its labels alone off by {:.4}, and {:.4} more in the error of the audit",
                    bias.value(),
                    width.value()
                ),
            ));
        }
    }
    if let Some(of) = &planned.iteration {
        let betting = of.betting_rows.map(|rows| thousands(rows.value()));
        pairs.push((
            "confirm rows",
            format!(
                "{} by betting, {} by t, of one hypothesis",
                betting.unwrap_or_else(|| "more than ten million".to_owned()),
                thousands(of.confirm_rows.value())
            ),
        ));
        pairs.push((
            "green slices",
            format!(
                "{} rows each, in dev and in confirm",
                thousands(of.green_rows.value())
            ),
        ));
        pairs.push((
            "assumed",
            format!(
                "a deviation of {:.4} of the paired loss difference",
                of.difference_sd.value()
            ),
        ));
    }
    pairs
}

/// What is at hand detects, and how many more labels the effect takes beside these scores.
fn more_labels(planned: &PlanRecorded, of: &AtHand) -> String {
    let each = planned
        .evaluation
        .is_some_and(|of| of.labels_each.is_some());
    let whose = if each { " of each" } else { "" };
    let (scores, labels) = (thousands(of.scores), thousands(of.labels));
    let now = format!(
        "{scores} scores and {labels} labels of each policy detect {:.4}",
        (of.detects * 1e4).ceil() / 1e4
    );
    let effect = of.effect;
    match of.more {
        Some(0) => format!("{now}: no more labels are needed for {effect:.4}"),
        Some(more) => format!(
            "{now}; {} more labels{whose} detect {effect:.4} beside these scores",
            thousands(more)
        ),
        None => format!(
            "{now}; no number of labels detects {effect:.4} beside so few scores: score more rows first"
        ),
    }
}

/// What the next money buys: labels when their share of the variance exceeds their share of the spend.
fn balance(found: &Found, planned: &PlanRecorded, of: &AtHand) -> Option<String> {
    let prices = planned.prices?;
    let labels = usize::try_from(planned.split.labels.value()).ok()?;
    let rows = found.analysis.policies.iter().map(|of| of.rows).sum();
    let unit = |price: Micro| price.value() as f64 / 1e6;
    let spend = Balance {
        scores: rows,
        labels,
        score_cost: unit(prices.score_micro),
        label_cost: unit(prices.label_micro),
    };
    let of_spend = spend.label_spend().ok()?;
    let buys = if of.label_share > of_spend {
        "labels"
    } else {
        "scores"
    };
    Some(format!(
        "{buys}: labels bring {:.0} % of the variance of one policy's mean, and took {:.0} % of the spend so far",
        100.0 * of.label_share,
        100.0 * of_spend
    ))
}

/// The same as lines of blocks, one for each number of labels.
fn twins(chart: &Chart) -> Vec<String> {
    let most = chart.series.iter().flat_map(|of| &of.points);
    let most = most.map(|of| of.1).filter(|of| of.is_finite());
    let most = most.fold(0.0, f64::max);
    let lines = chart.series.iter().map(|series| {
        let values: Vec<f64> = series.points.iter().map(|of| of.1).collect();
        let line = spark::line(&values, (0.0, most));
        let end = values.last().copied().unwrap_or(f64::NAN);
        format!("{:>12}  {line}  {end:.3}", series.label)
    });
    let title = format!("{}, at 100 to 4,000 {}", chart.title, chart.x);
    std::iter::once(title).chain(lines).collect()
}

/// Detectable effect over scores, one line for each of several numbers of labels.
pub fn contours(found: &Found, planned: &PlanRecorded) -> Chart {
    let split = &planned.split;
    let model = VarianceModel::new(split.evaluation.value(), split.calibration.value()).ok();
    let unit = |value: Micro| value.value() as f64 / 1e6;
    let power = Power::new(unit(planned.power_micro), unit(planned.terms.alpha_micro)).ok();
    let span = found.analysis.output_scale.span();
    let of = |labels: f64| {
        let at = |scores: f64| {
            let effect = model.zip(power).map_or(f64::NAN, |(model, power)| {
                span * planner::mde(model.variance(scores, labels).sqrt(), power)
            });
            (scores, effect)
        };
        Series {
            label: format!("{labels} labels"),
            mark: Mark::Line,
            points: (1..=40).map(|step| at(100.0 * f64::from(step))).collect(),
            weights: Vec::new(),
        }
    };
    Chart {
        title: if planned
            .evaluation
            .is_some_and(|of| of.labels_each.is_some())
        {
            "Smallest difference that would be detected, by labels of each policy"
        } else {
            "Smallest difference that would be detected, by labels"
        }
        .to_owned(),
        x: "scores of each policy".to_owned(),
        y: "difference".to_owned(),
        series: [30.0, 100.0, 300.0, 1_000.0, 3_000.0].map(of).to_vec(),
        log_y: false,
    }
}
