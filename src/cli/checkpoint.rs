//! `clover checkpoint`: show signed heads, pin one, set two against each other.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::prove;
use crate::cli::verify;
use crate::ground::digest::Digest;
use crate::ground::note;
use crate::ground::note::Checkpoint;
use crate::ground::note::Comparison;
use crate::ground::note::SignedCheckpoint;
use crate::ledger::Ledger;
use crate::view::View;
use crate::view::checkpoint as view;
use crate::view::checkpoint::Head;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Print the newest signed checkpoint, or the kept one of a size
    #[command(after_help = "Example:\n  clover checkpoint show > checkpoint")]
    Show(CheckpointShowArgs),
    /// Move the pin to the newest checkpoint
    #[command(after_help = "Example:\n  clover checkpoint pin")]
    Pin(PinArgs),
    /// Say whether two checkpoints agree, follow each other, or prove a fork
    #[command(after_help = "Example:\n  clover checkpoint compare pin yesterday.checkpoint")]
    Compare(CheckpointCompareArgs),
    /// Print a consistency proof: the hashes that show one size to be a prefix of another
    #[command(after_help = "Example:\n  clover checkpoint consistency 100 250 > proof")]
    Consistency(ConsistencyArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckpointShowArgs {
    /// Entries under it; default the newest
    pub size: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PinArgs {
    /// Take the ledger here though another one lay at its path before
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckpointCompareArgs {
    /// A checkpoint file, `head` or `pin`
    pub a: String,
    /// Another
    pub b: String,
    /// Hashes that prove the smaller to be a prefix of the larger; default from the ledger at hand
    #[arg(long, value_name = "FILE")]
    pub proof: Option<PathBuf>,
    /// The log key; default that of the ledger at hand
    #[arg(long, value_name = "VKEY")]
    pub log_key: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ConsistencyArgs {
    /// The smaller size
    pub first: u64,
    /// The larger size
    pub second: u64,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Show(args) => show(ctx, args.size),
        Verb::Pin(args) => pin(ctx, args.yes),
        Verb::Compare(args) => compare(ctx, &args),
        Verb::Consistency(args) => consistency(ctx, &args),
    }
}

fn show(ctx: &mut Ctx<'_>, size: Option<u64>) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let checkpoint = match size {
        None => ledger.head_checkpoint()?,
        Some(size) => ledger.checkpoint_at(size)?.ok_or_else(|| {
            let message = format!("no checkpoint of {size} entries was kept");
            CliError::not_found(message, "clover checkpoint show")
        })?,
    };
    Ok(view::show(&checkpoint))
}

fn pin(ctx: &mut Ctx<'_>, yes: bool) -> Result<View, CliError> {
    let home = home::find(ctx)?;
    let options = |ctx: &mut Ctx<'_>| Ok(home::options(ctx, None, true));
    let ledger = home::open_asking(ctx, &home, options, yes)??;
    ledger.advance_pin()?;
    let Some(pin) = ledger.pin() else {
        let message = "there is no place for a pin";
        return Err(CliError::not_found(
            message,
            "export XDG_STATE_HOME=~/.local/state",
        ));
    };
    let path = pin.path().display().to_string();
    Ok(view::pinned(&ledger.head_checkpoint()?, path))
}

/// A checkpoint by file, or `head` or `pin` of the ledger at hand.
fn named(ctx: &mut Ctx<'_>, name: &str) -> Result<SignedCheckpoint, CliError> {
    match name {
        "head" => Ok(home::open_to_read(ctx)?.1.head_checkpoint()?),
        "pin" => {
            let (_, ledger) = home::open_to_read(ctx)?;
            let missing = || CliError::not_found("there is no pin", "clover checkpoint pin");
            let pin = ledger.pin().ok_or_else(missing)?;
            let pinned = pin.load().map_err(|error| {
                CliError::integrity("pin", error.to_string(), "clover verify --no-pin")
            })?;
            pinned.ok_or_else(missing)
        }
        path => verify::checkpoint(ctx, Path::new(path)),
    }
}

fn compare(ctx: &mut Ctx<'_>, args: &CheckpointCompareArgs) -> Result<View, CliError> {
    let (a, b) = (named(ctx, &args.a)?, named(ctx, &args.b)?);
    let keys = prove::log_keys(ctx, args.log_key.as_deref())?;
    for (name, checkpoint) in [(&args.a, &a), (&args.b, &b)] {
        checkpoint.verify(&keys).map_err(|error| {
            CliError::integrity(
                "forged",
                format!("{name}: {error}"),
                "clover checkpoint show",
            )
        })?;
    }
    let (one, other) = (a.checkpoint(), b.checkpoint());
    match note::compare(one, other) {
        Comparison::Agree => Ok(view::agree(one)),
        Comparison::DifferentOrigins => {
            let message = format!(
                "{} and {} are different logs and say nothing about each other",
                one.origin, other.origin
            );
            Err(CliError::usage(message, "clover checkpoint show"))
        }
        Comparison::Fork => Err(fork(args, one, other)),
        Comparison::Order { older, newer } => {
            let Some(proof) = proof(ctx, args, older.size, newer.size)? else {
                return Ok(view::order(older, newer, false));
            };
            if newer.extends(older, &proof) {
                return Ok(view::order(older, newer, true));
            }
            if args.proof.is_none() {
                return Err(fork(args, older, newer));
            }
            let message = "the proof does not lead from one checkpoint to the other";
            Err(CliError::integrity(
                "tampered",
                message,
                "clover checkpoint consistency A B",
            ))
        }
    }
}

fn fork(args: &CheckpointCompareArgs, one: &Checkpoint, other: &Checkpoint) -> CliError {
    let (one, other) = (Head::from(one), Head::from(other));
    let message = format!(
        "the log key signed two histories: {} says {one}; {} says {other}; keep both files, they are the proof",
        args.a, args.b
    );
    CliError::integrity("forked", message, "clover verify")
}

/// The hashes between two sizes: from the file given, else from the ledger at hand when it reaches so far.
fn proof(
    ctx: &mut Ctx<'_>,
    args: &CheckpointCompareArgs,
    first: u64,
    second: u64,
) -> Result<Option<Vec<Digest>>, CliError> {
    if let Some(path) = &args.proof {
        let bytes = ctx.read(path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let hashes = text
            .lines()
            .map(Digest::from_base64)
            .collect::<Option<Vec<_>>>();
        return hashes.map(Some).ok_or_else(|| {
            let message = format!("{}: expected a root in base64 on each line", path.display());
            CliError::input(message, "clover checkpoint consistency A B")
        });
    }
    match home::open_to_read(ctx) {
        Ok((_, ledger)) if ledger.size() >= second => Ok(Some(between(&ledger, first, second)?)),
        _ => Ok(None),
    }
}

fn between(ledger: &Ledger, first: u64, second: u64) -> Result<Vec<Digest>, CliError> {
    Ok(ledger.prove_consistency(first, second)?)
}

fn consistency(ctx: &mut Ctx<'_>, args: &ConsistencyArgs) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    if args.first == 0 || args.first > args.second || args.second > ledger.size() {
        let message = format!(
            "expected 1 <= FIRST <= SECOND <= {}, found {} and {}",
            ledger.size(),
            args.first,
            args.second
        );
        return Err(CliError::usage(message, "clover checkpoint show"));
    }
    let hashes = between(&ledger, args.first, args.second)?;
    Ok(view::consistency(&hashes))
}
