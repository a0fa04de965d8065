//! `clover plan`: how many scores, labels and probes, from the ledger's own variance and prices.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::Fit;
use crate::cli::simulate::in_range;
use crate::cli::ui;
use crate::event::id::AccountId;
use crate::event::payload::estimated::PlanPurpose;
use crate::event::payload::planning::EvaluationPlan;
use crate::event::payload::planning::PlanRecorded;
use crate::event::payload::planning::Prices;
use crate::num::Finite;
use crate::num::Micro;
use crate::projection::budgets::Budgets;
use crate::report::chart::Chart;
use crate::report::chart::Mark;
use crate::report::chart::Series;
use crate::report::spark;
use crate::session::estimates::Estimation;
use crate::stats::oua::Balance;
use crate::stats::planner;
use crate::stats::planner::Power;
use crate::stats::planner::VarianceModel;
use crate::view::View;
use crate::workflow::estimate::compute::Found;
use crate::workflow::estimate::planning;
use crate::workflow::estimate::planning::Ask;
use crate::workflow::estimate::planning::PlanError;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Scores and labels that detect an effect
    #[command(
        after_help = "Example:\n  clover plan labels 0.02 --score-price 0.01 --label-price 0.16"
    )]
    Labels(Priced),
    /// What a budget shows
    #[command(
        after_help = "Example:\n  clover plan budget 200 --score-price 0.01 --label-price 0.16"
    )]
    Budget(Priced),
    /// Probes with which every audit passes when nothing is wrong
    #[command(after_help = "Example:\n  clover plan audit 0.05")]
    Audit(Plain),
    /// Rows that confirm an improvement of the mean squared error
    #[command(after_help = "Example:\n  clover plan iteration 0.005")]
    Iteration(Plain),
}

#[derive(Debug, clap::Args)]
pub(super) struct Plain {
    /// The effect, the money, the margin or the improvement
    pub asked: String,
    /// Probability of showing it
    #[arg(long, value_name = "P", default_value = "0.8")]
    pub power: String,
    /// Policies that share the labels; default those that are scored
    #[arg(long, value_name = "N")]
    pub policies: Option<u64>,
    #[command(flatten)]
    pub fit: Fit,
}

#[derive(Debug, clap::Args)]
pub(super) struct Priced {
    #[command(flatten)]
    pub plain: Plain,
    /// Price of a judge score, or an account: what it spent over the scores
    #[arg(long, value_name = "PRICE")]
    pub score_price: String,
    /// Price of a label, or an account: what it spent over the labels
    #[arg(long, value_name = "PRICE")]
    pub label_price: String,
    /// Write the detectable effect over scores, by labels
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const HELP: &str = "clover plan labels --help";

fn amount(what: &str, text: &str) -> Result<Micro, CliError> {
    let parsed = Micro::parse(text).ok().filter(|(_, rounded)| !rounded);
    let above = parsed.filter(|(value, _)| value.value() > 0);
    above.map(|(value, _)| value).ok_or_else(|| {
        let message = format!(
            "{what} {text:?}: expected a number above 0 and up to 1000000, of six decimals at most"
        );
        CliError::usage(message, HELP)
    })
}

/// Most policies that share labels.
const POLICIES_MAX: u64 = 1_000;

/// A power that a test of this level can have.
fn power(purpose: PlanPurpose, text: &str, alpha: Micro) -> Result<Micro, CliError> {
    let power = amount("--power", text)?;
    // Of an audit every probe must pass; below even odds there is nothing to plan.
    let least = match purpose {
        PlanPurpose::Audit => Micro::new(500_000).unwrap_or_default(),
        _ => alpha,
    };
    if power > least && power.value() < 1_000_000 {
        return Ok(power);
    }
    let message = format!("--power {text}: expected a number above {least} and below 1");
    Err(CliError::usage(message, HELP))
}

/// A price: a number, or what an account has spent over how many were recorded.
fn price(read: &Estimation, what: &str, text: &str, recorded: usize) -> Result<Micro, CliError> {
    let id = text.parse::<AccountId>().ok();
    let accounts = &read.ledger.state().fold::<Budgets>().accounts;
    let Some(account) = id.and_then(|id| accounts.get(&id)) else {
        return amount(what, text);
    };
    let spent = account
        .spent
        .iter()
        .fold(0_u64, |sum, (_, spent)| sum.saturating_add(*spent));
    let each = i64::try_from(spent.saturating_mul(1_000_000) / recorded.max(1) as u64).ok();
    each.and_then(Micro::new)
        .filter(|each| each.value() > 0)
        .ok_or_else(|| {
            let message =
                format!("{what}: account {text} has spent {spent} on {recorded}: no price");
            CliError::input(message, "clover budget list")
        })
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    let (purpose, plain, priced) = match verb {
        Verb::Labels(args) => (PlanPurpose::Labels, &args.plain, Some(args)),
        Verb::Budget(args) => (PlanPurpose::Budget, &args.plain, Some(args)),
        Verb::Audit(args) => (PlanPurpose::Audit, args, None),
        Verb::Iteration(args) => (PlanPurpose::Iteration, args, None),
    };
    let asked = amount("ASKED", &plain.asked)?;
    if let Some(policies) = plain.policies {
        in_range("--policies", policies, 1..=POLICIES_MAX, HELP)?;
    }
    let mut read = estimate::open(ctx, &plain.fit)?;
    let power = power(purpose, &plain.power, read.terms.alpha_micro)?;
    let found = estimate::found(ctx, &mut read)?;
    let scored = found.analysis.policies.len();
    let prices = match priced {
        None => None,
        Some(args) => {
            let rows = found.analysis.policies.iter().map(|of| of.rows).sum();
            let labels = found
                .analysis
                .calibration
                .as_ref()
                .map_or(0, |of| of.labels);
            Some(Prices {
                label_micro: price(&read, "--label-price", &args.label_price, labels)?,
                score_micro: price(&read, "--score-price", &args.score_price, rows)?,
            })
        }
    };
    let ask = Ask {
        purpose,
        asked,
        power,
        prices,
        policies: plain.policies.unwrap_or(scored as u64),
        sturdy: true,
    };
    let planned = planning::plan(&found, &ask).map_err(|error| unplanned(&error))?;
    let mut text = shown(&found, &planned);
    if prices.is_some() {
        text.push_str(&twins(&contours(&found, &planned)));
    }
    if let Some(path) = priced.and_then(|args| args.plot.as_ref()) {
        let svg = contours(&found, &planned).svg();
        crate::ground::ambient::replace(&ctx.path(path), svg.as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    let data = json!({"plan": serde_json::to_value(&planned).unwrap_or_default()});
    let recorded = if plain.fit.dry_run || ctx.as_of.is_some() {
        None
    } else {
        Some(estimate::append(
            ctx,
            &mut read,
            &found,
            vec![planned.into()],
        )?)
    };
    Ok(estimate::answer(text, data, recorded, "dry_run"))
}

fn unplanned(error: &PlanError) -> CliError {
    match error {
        PlanError::NoVariance(_) => CliError::refused(error.to_string(), "clover estimate"),
        PlanError::NoPrice | PlanError::NoSize(_) | PlanError::Refused(_) => {
            CliError::input(error.to_string(), HELP)
        }
    }
}

fn shown(found: &Found, planned: &PlanRecorded) -> String {
    let (policies, split) = (planned.policies, &planned.split);
    let mut pairs = vec![(
        "learnt from",
        format!(
            "{} labels and {} rows of {} policies: variance {:.4} a score, {:.4} a label{}",
            split.labels,
            ui::thousands(split.rows.value()),
            split.policies.len(),
            split.evaluation.value(),
            split.calibration.value(),
            between(split.calibration_low, split.calibration_high)
        ),
    )];
    if let Some(of) = &planned.evaluation {
        pairs.push((
            "scores",
            format!(
                "{} of each of {policies} policies",
                ui::thousands(of.scores.value())
            ),
        ));
        pairs.push((
            "labels",
            format!(
                "{}, shared by all{}",
                ui::thousands(of.labels.value()),
                needed(of)
            ),
        ));
        pairs.push(("cost", format!("{:.2}", of.cost.value())));
        pairs.push((
            "standard error",
            format!("{:.4} of one value", of.se.value()),
        ));
        pairs.push((
            "detects",
            format!(
                "a difference of {:.4} with power {}{}",
                of.mde.value(),
                planned.power_micro,
                of.mde_high.map_or(String::new(), |high| {
                    format!(
                        "; {:.4} if labels vary as the interval allows",
                        high.value()
                    )
                })
            ),
        ));
        pairs.extend(balance(found, planned).map(|text| ("next money", text)));
    }
    pairs.extend(others(planned));
    ui::pairs(&pairs)
}

/// The 95 % interval of a number, where there is one.
fn between(low: Option<Finite>, high: Option<Finite>) -> String {
    low.zip(high).map_or(String::new(), |(low, high)| {
        format!(" [{:.4}, {:.4}]", low.value(), high.value())
    })
}

/// Labels at the ends of the interval of the calibration variance.
fn needed(of: &EvaluationPlan) -> String {
    of.labels_low
        .zip(of.labels_high)
        .map_or(String::new(), |(low, high)| {
            format!(
                "; {} to {} by the 95 % interval of their variance",
                ui::thousands(low.value()),
                ui::thousands(high.value())
            )
        })
}

/// Words for probes and for rows of an iteration.
fn others(planned: &PlanRecorded) -> Vec<(&'static str, String)> {
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
                planned.asked_micro,
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
        let betting = of.betting_rows.map(|rows| ui::thousands(rows.value()));
        pairs.push((
            "confirm rows",
            format!(
                "{} by betting, {} by t, of one hypothesis",
                betting.unwrap_or_else(|| "more than ten million".to_owned()),
                ui::thousands(of.confirm_rows.value())
            ),
        ));
        pairs.push((
            "green slices",
            format!(
                "{} rows each, in dev and in confirm",
                ui::thousands(of.green_rows.value())
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

/// What the next money buys: labels when their share of the variance exceeds their share of the spend.
fn balance(found: &Found, planned: &PlanRecorded) -> Option<String> {
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
    let (of_score, of_label) = (
        planned.split.evaluation.value(),
        planned.split.calibration.value(),
    );
    let each = planned.split.rows.value() as f64 / planned.split.policies.len().max(1) as f64;
    let (main, oua) = (of_score / each.max(1.0), of_label / labels.max(1) as f64);
    let of_variance = oua / (main + oua);
    let buys = if of_variance > of_spend {
        "labels"
    } else {
        "scores"
    };
    Some(format!(
        "{buys}: labels are {:.0} % of the variance and {:.0} % of the spend so far",
        100.0 * of_variance,
        100.0 * of_spend
    ))
}

/// The same as lines of blocks, one for each number of labels.
fn twins(chart: &Chart) -> String {
    let most = chart.series.iter().flat_map(|of| &of.points);
    let most = most.map(|of| of.1).filter(|of| of.is_finite());
    let most = most.fold(0.0, f64::max);
    let mut text = String::new();
    for series in &chart.series {
        let values: Vec<f64> = series.points.iter().map(|of| of.1).collect();
        let line = spark::line(&values, (0.0, most));
        let end = values.last().copied().unwrap_or(f64::NAN);
        text.push_str(&format!("{:>12}  {line}  {end:.3}\n", series.label));
    }
    text
}

/// Detectable effect over scores, one line for each of several numbers of labels.
fn contours(found: &Found, planned: &PlanRecorded) -> Chart {
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
        title: "Smallest difference that would be detected, by labels".to_owned(),
        x: "scores of each policy".to_owned(),
        y: "difference".to_owned(),
        series: [30.0, 100.0, 300.0, 1_000.0, 3_000.0].map(of).to_vec(),
        log_y: false,
    }
}
