//! `clover prove`: offline proofs that an entry is in the log, written and checked.

use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::show;
use crate::cli::verify;
use crate::ground::ambient;
use crate::ground::merkle;
use crate::ground::note::ProofFile;
use crate::ground::note::VerifierKey;
use crate::view::Exit;
use crate::view::View;
use crate::view::entry;
use crate::view::entry::ProofChecked;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Position or event id of the entry to prove
    #[arg(required_unless_present = "check", conflicts_with = "check")]
    pub entry: Option<String>,
    /// Where the proof goes; default standard output
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Prove it under the kept checkpoint of this size instead of the newest
    #[arg(long, value_name = "SIZE")]
    pub size: Option<u64>,
    /// Check this proof
    #[arg(long, value_name = "FILE", requires = "line")]
    pub check: Option<PathBuf>,
    /// The entry line that the proof is about (`show SEQ --line`)
    #[arg(long, value_name = "FILE|-")]
    pub line: Option<PathBuf>,
    /// The log key; default that of the ledger at hand
    #[arg(long, value_name = "VKEY")]
    pub log_key: Option<String>,
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    match (&args.check, &args.line) {
        (Some(proof), Some(line)) => check(ctx, args, proof, line),
        _ => prove(ctx, args),
    }
}

fn prove(ctx: &mut Ctx<'_>, args: &Args) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let entry = args.entry.as_deref().unwrap_or_default();
    let read = show::find(ctx, &ledger, entry)?;
    let checkpoint = match args.size {
        None => ledger.head_checkpoint()?,
        Some(size) => ledger.checkpoint_at(size)?.ok_or_else(|| {
            let message = format!("no checkpoint of {size} entries was kept");
            CliError::not_found(message, "clover checkpoint show")
        })?,
    };
    let size = checkpoint.checkpoint().size;
    if read.stored.seq >= size {
        let message = format!(
            "entry {} is not under a checkpoint of {size} entries",
            read.stored.seq
        );
        return Err(CliError::usage(message, "clover checkpoint show"));
    }
    let proof = ledger.prove(read.stored.seq, checkpoint)?;
    let file = match &args.out {
        None => None,
        Some(out) => {
            let path = ctx.path(out);
            ambient::replace(&path, &proof.encode(), false)?;
            Some(path.display().to_string())
        }
    };
    Ok(entry::proven(&read, &proof, file))
}

/// Keys that a checkpoint may be signed with: the one given, else those of the ledger at hand.
pub(super) fn log_keys(
    ctx: &mut Ctx<'_>,
    given: Option<&str>,
) -> Result<Vec<VerifierKey>, CliError> {
    if let Some(text) = given {
        return Ok(vec![verify::log_key(text)?]);
    }
    match home::open_to_read(ctx) {
        Ok((_, ledger)) => {
            ctx.note("the log key is that of the ledger at hand");
            let keys = &ledger.state().keyring.log_keys;
            Ok(keys.iter().map(|(_, key)| key.key().clone()).collect())
        }
        Err(error) if error.exit == Exit::NotFound => {
            let message = "a signature is worth what its key is: name the log key";
            Err(CliError::usage(
                message,
                "the same command with --log-key VKEY",
            ))
        }
        Err(error) => Err(error),
    }
}

fn check(
    ctx: &mut Ctx<'_>,
    args: &Args,
    proof: &std::path::Path,
    line: &std::path::Path,
) -> Result<View, CliError> {
    let bytes = ctx.read(proof)?;
    let parsed = ProofFile::parse(&bytes).map_err(|error| {
        let message = format!("{} is no proof file: {error}", proof.display());
        CliError::input(message, "clover prove SEQ -o FILE")
    })?;
    let mut line = ctx.read(line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    let keys = log_keys(ctx, args.log_key.as_deref())?;
    let leaf = merkle::leaf_hash(&line);
    let facts = ProofChecked {
        index: parsed.index(),
        size: parsed.checkpoint().checkpoint().size,
        leaf: leaf.to_hex(),
    };
    if let Err(error) = parsed.verify(&leaf, &keys) {
        let message = format!("the proof does not hold: {error}");
        let mut failed = CliError::integrity("tampered", message, "clover verify");
        failed.data = View::of(&facts).facts().clone();
        return Err(failed);
    }
    Ok(entry::proof_holds(&parsed, &facts))
}
