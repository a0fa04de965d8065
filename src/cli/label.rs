//! `clover label design`: which rows will be labelled, for what, with what probability.

use crate::cli::ctx::Ctx;
use crate::cli::current;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::event::id::IdError;
use crate::event::payload::label::DesignPurpose;
use crate::event::payload::label::LabelDesignRegistered;
use crate::event::payload::label::Stratum;
use crate::ledger::Command;
use crate::ledger::rulebooks::Question;
use crate::num::Micro;
use crate::view::View;
use crate::view::label as views;

const HELP: &str = "clover label design new --help";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Label designs
    #[command(subcommand)]
    Design(DesignVerb),
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum DesignVerb {
    /// Register a design before its first label
    #[command(
        after_help = "Example:\n  clover label design new probes --purpose audit --probability 0.05 --protocol sdp-1"
    )]
    New(LabelNewArgs),
    /// Designs with their labels
    #[command(after_help = "Example:\n  clover label design list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelNewArgs {
    /// Its id
    pub id: String,
    /// What its labels are for
    #[arg(long, value_name = "WHAT", value_parser = ["audit", "calibrate", "confirm"])]
    pub purpose: String,
    /// Probability that a row is labelled
    #[arg(long, value_name = "P")]
    pub probability: String,
    /// Another probability for a stratum; may repeat; not for audits
    #[arg(long = "stratum", value_name = "NAME=P")]
    pub strata: Vec<String>,
    /// By which protocol people label, with its version
    #[arg(long, value_name = "ID", default_value = "unversioned")]
    pub protocol: String,
    /// The experiment; default the one that is open
    #[arg(long, value_name = "ID")]
    pub experiment: Option<String>,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    let Verb::Design(verb) = verb;
    match verb {
        DesignVerb::New(args) => new(ctx, &args),
        DesignVerb::List => list(ctx),
    }
}

/// A probability above 0, exact to the millionth.
fn probability(what: &str, text: &str) -> Result<Micro, CliError> {
    let parsed = Micro::parse(text).ok().filter(|(_, rounded)| !rounded);
    let fit = parsed.filter(|(value, _)| (1..=1_000_000).contains(&value.value()));
    fit.map(|(value, _)| value).ok_or_else(|| {
        let message = format!("{what} {text:?}: expected a number from 0.000001 to 1 with at most six decimals, such as 0.3");
        CliError::usage(message, HELP)
    })
}

fn new(ctx: &mut Ctx<'_>, args: &LabelNewArgs) -> Result<View, CliError> {
    let wrong = |what: &str, text: &str, error: IdError| {
        CliError::usage(format!("{what} {text:?}: {error}"), HELP)
    };
    let mut strata = Vec::with_capacity(args.strata.len());
    for pair in &args.strata {
        let Some((name, text)) = pair.split_once('=') else {
            let message = format!("--stratum {pair:?}: expected NAME=P");
            return Err(CliError::usage(message, HELP));
        };
        strata.push(Stratum {
            inclusion_micro: probability("--stratum", text)?,
            stratum: name
                .parse()
                .map_err(|error| wrong("--stratum", name, error))?,
        });
    }
    strata.sort_by(|a, b| a.stratum.cmp(&b.stratum));
    let payload = LabelDesignRegistered {
        design: args
            .id
            .parse()
            .map_err(|error| wrong("design", &args.id, error))?,
        inclusion_micro: probability("--probability", &args.probability)?,
        protocol: args
            .protocol
            .parse()
            .map_err(|error| wrong("--protocol", &args.protocol, error))?,
        purpose: match args.purpose.as_str() {
            "audit" => DesignPurpose::Audit,
            "calibrate" => DesignPurpose::Calibrate,
            _ => DesignPurpose::Confirm,
        },
        strata: Some(strata).filter(|strata| !strata.is_empty()),
    };
    let (home, ledger) = home::open_to_read(ctx)?;
    let named = args.experiment.as_deref();
    let experiment = current::experiment(ctx, &home, ledger.state(), named)?;
    let is_uneven = payload.purpose == DesignPurpose::Audit && payload.strata.is_some();
    if is_uneven && ledger.state().asks(Question::EvenProbes) {
        return Err(CliError::refused(
            "a design for audits has no strata: an audit counts each of its probes alike",
            "the same command without --stratum",
        ));
    }
    drop(ledger);
    record::one(ctx, Command::new(payload, Some(experiment)), args.dry_run)
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, view) = home::view(ctx)?;
    Ok(views::list(view.state(&ledger)))
}
