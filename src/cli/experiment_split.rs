//! `clover experiment split`: clusters into fit, dev and confirm, closed before any confirm label.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::record;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::id::ExperimentId;
use crate::event::id::ItemId;
use crate::event::payload::intake::SplitPart;
use crate::ground::time::Timestamp;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::workflow::import::kept::KeptError;
use crate::workflow::split;
use crate::workflow::split::Apart;

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

/// Every cluster of an experiment's ingested rows.
fn clusters(
    ledger: &Ledger,
    experiment: &ExperimentId,
) -> Result<BTreeMap<ItemId, Option<Timestamp>>, CliError> {
    let clusters = split::clusters(ledger, experiment, ledger.size());
    let clusters = clusters.map_err(|error| match error {
        KeptError::Ledger(error) => CliError::from(error),
        KeptError::Unread(error) => error.into(),
    })?;
    if clusters.is_empty() {
        let message = format!("no ingested rows in {experiment}");
        return Err(CliError::not_found(message, "clover import cje PATH"));
    }
    Ok(clusters)
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let experiment = record::experiment_id(&args.id)?;
    let name = args
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
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let clusters = clusters(&ledger, &experiment)?;
    let parts = split::parts(&clusters, args.seed, apart)
        .map_err(|error| CliError::refused(format!("split: {error}"), HELP))?;
    let events = split::events(&name, seed, apart, &parts);
    let count = |part: SplitPart| parts.members[&part].len();
    let gap = match apart {
        Apart::Hashed => "not_checked: confirm not time-separated, EXPLORATORY".to_owned(),
        Apart::Time { gap_seconds, .. } => format!("{} h", gap_seconds / 3_600),
    };
    let root = |part: SplitPart| split::root(&parts.members[&part]).root.0.to_base64();
    let line = |part: SplitPart| format!("{} clusters · root {}", count(part), root(part));
    let mut text = ui::pairs(&[
        ("split", args.split.clone()),
        ("fit", line(SplitPart::Fit)),
        ("dev", line(SplitPart::Dev)),
        ("confirm", line(SplitPart::Confirm)),
        ("left out", parts.left_out.to_string()),
        ("gap", gap),
    ]);
    let mut data = json!({
        "split": args.split, "left_out": parts.left_out, "gap_checked": apart != Apart::Hashed,
    });
    for part in SplitPart::ALL {
        data[part.as_str()] = json!({"count": count(part), "root": root(part)});
    }
    if args.dry_run {
        let mut answer = Answer::new(text, data);
        answer.verdict = "dry_run";
        return Ok(answer);
    }
    let signer = wallet::signer(ctx, ledger.state(), Kind::SplitsFormed)?;
    let commands: Vec<_> = events
        .into_iter()
        .map(|event| Command::new(event, Some(experiment.clone())))
        .collect();
    let appended = ledger.append(&commands, &signer)?;
    ledger.settle()?;
    submit::warn_of_pin(ctx, &ledger);
    let already = appended.iter().all(|one| one.already);
    text.push_str(if already { "recorded already\n" } else { "" });
    let mut answer = Answer::new(text, data);
    answer.verdict = if already {
        "already_recorded"
    } else {
        "appended"
    };
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    Ok(answer)
}
