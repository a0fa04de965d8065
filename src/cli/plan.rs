//! `clover plan`: how many scores, labels and probes, from the ledger's own variance and prices.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::estimate;
use crate::cli::estimate::FitArgs;
use crate::cli::simulate::in_range;
use crate::event::id::AccountId;
use crate::event::payload::estimated::PlanPurpose;
use crate::event::payload::planning::Prices;
use crate::num::Micro;
use crate::projection::budgets::Budgets;
use crate::projection::drifts;
use crate::session::estimates::Estimation;
use crate::view::Exit;
use crate::view::View;
use crate::view::plan as plans;
use crate::view::transport::margin_words;
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
    Labels(PriceArgs),
    /// What a budget shows
    #[command(
        after_help = "Example:\n  clover plan budget 200 --score-price 0.01 --label-price 0.16"
    )]
    Budget(PriceArgs),
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
    pub fit: FitArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct PriceArgs {
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
    if purpose == PlanPurpose::Audit {
        wide(ctx, &read, &found, asked);
    }
    let ask = Ask {
        purpose,
        asked,
        power,
        prices,
        policies: plain.policies.unwrap_or(scored as u64),
        sturdy: true,
        each: true,
    };
    let planned = planning::plan(&found, &ask).map_err(|error| unplanned(&error))?;
    if let Some(path) = priced.and_then(|args| args.plot.as_ref()) {
        let svg = plans::contours(&found, &planned).svg();
        crate::ground::ambient::replace(&ctx.path(path), svg.as_bytes(), false)?;
        ctx.note(&format!("wrote {}", path.display()));
    }
    let recorded = if plain.fit.dry_run || ctx.as_of.is_some() {
        None
    } else {
        Some(estimate::append(
            ctx,
            &mut read,
            &found,
            vec![planned.clone().into()],
        )?)
    };
    let view = plans::show(&found, planned, recorded);
    Ok(match ctx.as_of {
        Some(_) => view.with_verdict(estimate::unrecorded(ctx, &found)),
        None => view,
    })
}

/// Says of a margin that is wider than the usual one what it takes.
fn wide(ctx: &mut Ctx<'_>, read: &Estimation, found: &Found, asked: Micro) {
    let (state, named) = (read.ledger.state(), read.terms.label_scale);
    let usual = drifts::usual::usual_margin(state, &read.experiment, named);
    if asked.value() <= usual {
        return;
    }
    let usual = Micro::new(usual).unwrap_or_default();
    let usual = margin_words(usual, found.analysis.output_scale.ends());
    ctx.warn(format!(
        "margin {asked} is above the usual {usual}: it takes a plan that is signed before the probes are open: clover prereg new \
         --template transport -o audits.yaml"
    ));
}

fn unplanned(error: &PlanError) -> CliError {
    match error {
        PlanError::NoVariance(_) => CliError::refused(error.to_string(), "clover estimate"),
        PlanError::NoPrice | PlanError::Refused(_) => CliError::input(error.to_string(), HELP),
        // What was asked is well formed, and nothing can be planned for it yet.
        PlanError::NoSize(_) => {
            CliError::new(Exit::Inconclusive, "undecided", error.to_string(), HELP)
        }
    }
}
