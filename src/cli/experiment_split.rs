//! `clover experiment split`: clusters into fit, dev and confirm, closed before any confirm label.

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::num::Count;
use crate::session::split as session;
use crate::session::split::SplitRequest;
use crate::session::split::SplittingError;
use crate::view::View;
use crate::view::split as views;
use crate::workflow::split;
use crate::workflow::split::Apart;
use crate::workflow::split::SplitError;

const HELP: &str = "clover experiment split --help";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment
    pub id: String,
    /// Name of the split
    #[arg(long, value_name = "ID", default_value = "split-1")]
    pub split: String,
    /// Seed of the hash that puts clusters into parts
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// Confirm is a quarter of the clusters, by hash: not separated in time
    #[arg(long, conflicts_with_all = ["t1", "t2", "gap_hours"])]
    pub hashed: bool,
    /// End of fit and dev; confirm begins a gap later
    #[arg(long, value_name = "TIME", requires = "t2")]
    pub t1: Option<String>,
    /// End of confirm
    #[arg(long, value_name = "TIME", requires = "t1")]
    pub t2: Option<String>,
    /// Gap in hours, at least 48
    #[arg(long, value_name = "H", default_value_t = 72)]
    pub gap_hours: u64,
    /// Show counts and roots; append nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl From<SplittingError> for CliError {
    fn from(error: SplittingError) -> Self {
        let message = error.to_string();
        match error {
            SplittingError::Clusters(SplitError::Empty(_, Some(times))) => {
                let next = times.days.map_or_else(
                    || "the same command with --hashed: no gap fits between these times".to_owned(),
                    |(t1, t2)| {
                        let (t1, t2) = (split::day_of(t1), split::day_of(t2));
                        format!("the same command with --t1 {t1} --t2 {t2}")
                    },
                );
                Self::refused(message, next)
            }
            SplittingError::Clusters(SplitError::NoTime(_)) => {
                Self::refused(message, "the same command with --hashed")
            }
            SplittingError::Clusters(_) => Self::refused(message, HELP),
            SplittingError::NoRows(_) => Self::not_found(
                message,
                "clover import rows PATH, clover import cje PATH, or clover judge run --rows PATH",
            ),
        }
    }
}

fn request(args: &Args) -> Result<SplitRequest, CliError> {
    let experiment = record::experiment_id(&args.id)?;
    let split = args
        .split
        .parse()
        .map_err(|error| CliError::usage(format!("--split {:?}: {error}", args.split), HELP))?;
    let seed = Count::new(args.seed)
        .ok_or_else(|| CliError::usage("--seed: expected at most 2^53 - 1", HELP))?;
    let apart = match (args.hashed, &args.t1, &args.t2) {
        (true, ..) => Apart::Hashed,
        (false, Some(t1), Some(t2)) => Apart::Time {
            t1: record::time(t1)?,
            t2: record::time(t2)?,
            gap_seconds: args.gap_hours.saturating_mul(3_600),
        },
        _ => {
            let message = "how confirm is kept apart: --t1 TIME --t2 TIME, or --hashed";
            return Err(CliError::usage(message, HELP));
        }
    };
    Ok(SplitRequest {
        experiment,
        split,
        seed,
        apart,
    })
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let request = request(args)?;
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let fresh = session::scored(&home, &ledger, &request)?;
    let plan = if fresh.rows.is_empty() {
        session::plan(&ledger, &request)?
    } else {
        session::plan_of(&ledger, &fresh, &request)?
    };
    let view = views::planned(&request.split, &plan.parts, request.apart);
    if args.dry_run {
        return Ok(view);
    }
    let rows = fresh.rows.len();
    if rows > 0 {
        let of = (&request.experiment, fresh);
        session::take_in(&mut ctx.ports(), &home, &mut ledger, of)?;
        ctx.note(&format!(
            "took in {rows} rows that were scored and never taken in: a split is of rows that were"
        ));
    }
    let appended = session::form(&mut ctx.ports(), &mut ledger, plan)?;
    Ok(views::formed(view, &ledger, &appended))
}
