//! `clover price`: what calls of models cost, as a registrar signs it.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::submit;
use crate::event::id::PriceTableId;
use crate::event::payload::model_terms::PriceTableRegistered;
use crate::ground::time::Timestamp;
use crate::projection::endpoints::Endpoints;
use crate::session::endpoints;
use crate::view::View;
use crate::view::model_terms as views;
use crate::workflow::ask::prices;

const HELP: &str = "clover price import --help";
const LIST: &str = "clover price list";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Register a table of prices from CSV, in dollars for a million tokens
    #[command(
        override_usage = "clover price import <FILE> --name <ID> --as-of <TIME> --source <TEXT> [--dry-run]",
        after_help = "Columns: provider,model,mode,input,output,cache_read,cache_write. The mode is live or batch.\n\
                      An empty cache_read or cache_write costs what input costs. Nothing is rounded.\n\n\
                      Example:\n  clover price import prices.csv --name 2026-11 --as-of 2026-11-01 --source 'page of the provider'"
    )]
    Import(PriceImportArgs),
    /// Tables of prices
    #[command(after_help = "Example:\n  clover price list")]
    List,
    /// One table, price by price
    #[command(after_help = "Example:\n  clover price show 2026-11")]
    Show(PriceShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct PriceImportArgs {
    /// The table, in CSV
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The table's name
    #[arg(long, value_name = "ID")]
    pub name: String,
    /// When these prices held: a day, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub as_of: String,
    /// Where they were found
    #[arg(long, value_name = "TEXT")]
    pub source: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PriceShowArgs {
    /// The table
    pub name: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: &Verb) -> Result<View, CliError> {
    match verb {
        Verb::Import(args) => import(ctx, args),
        Verb::List => {
            let (_, ledger, at) = home::view(ctx)?;
            Ok(views::price_tables(at.state(&ledger).fold::<Endpoints>()))
        }
        Verb::Show(args) => show(ctx, args),
    }
}

fn table_id(text: &str) -> Result<PriceTableId, CliError> {
    text.parse()
        .map_err(|error| CliError::usage(format!("prices {text:?}: {error}"), LIST))
}

fn import(ctx: &mut Ctx<'_>, args: &PriceImportArgs) -> Result<View, CliError> {
    let as_of = Timestamp::parse_written(&args.as_of).ok_or_else(|| {
        let message = format!(
            "--as-of {:?}: expected a day such as 2026-11-01, or RFC 3339",
            args.as_of
        );
        CliError::usage(message, HELP)
    })?;
    let wrong = |what: String| CliError::input(format!("{}: {what}", args.file.display()), HELP);
    let text = String::from_utf8(ctx.read(&args.file)?)
        .map_err(|_| wrong("expected a text in UTF-8".to_owned()))?;
    let prices = PriceTableRegistered {
        as_of,
        prices: table_id(&args.name)?,
        rows: prices::parse(&text).map_err(|error| wrong(error.to_string()))?,
        source: key::text("source", &args.source)?,
    };
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let intent = submit::intent(args.dry_run);
    let id = prices.prices.clone();
    let submission = endpoints::price(&mut ctx.ports(), &mut ledger, prices, intent)?;
    let view = submit::shown(ctx, &ledger, &submission);
    Ok(view.with_next(views::table_command(&id)))
}

fn show(ctx: &mut Ctx<'_>, args: &PriceShowArgs) -> Result<View, CliError> {
    let id = table_id(&args.name)?;
    let (_, ledger, at) = home::view(ctx)?;
    let table = at.state(&ledger).fold::<Endpoints>().prices.get(&id);
    let missing = || CliError::not_found(format!("no table of prices {id}"), LIST);
    Ok(views::price_table(table.ok_or_else(missing)?))
}
