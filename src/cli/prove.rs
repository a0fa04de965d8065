//! `clover prove`: offline proofs that an entry is in the log, written and checked.

use std::path::PathBuf;

use serde_json::json;

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
    let (size, root) = (checkpoint.checkpoint().size, checkpoint.checkpoint().root);
    if read.stored.seq >= size {
        let message = format!(
            "entry {} is not under a checkpoint of {size} entries",
            read.stored.seq
        );
        return Err(CliError::usage(message, "clover checkpoint show"));
    }
    let proof = ledger.prove(read.stored.seq, checkpoint)?;
    let data = json!({
        "seq": read.stored.seq, "size": size, "hashes": proof.hashes().len(),
        "proof": proof.to_string(),
    });
    let text = match &args.out {
        None => proof.to_string(),
        Some(out) => {
            let path = ctx.path(out);
            ambient::replace(&path, &proof.encode(), false)?;
            format!(
                "{}: entry {} under {size} entries, {} hashes\n",
                path.display(),
                read.stored.seq,
                proof.hashes().len()
            )
        }
    };
    let mut answer = View::untyped(text, data);
    answer.verdict = "proven";
    answer.events = vec![read.event.id.to_string()];
    answer.checkpoint = Some((size, root.to_base64()));
    Ok(answer)
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
    let (index, checkpoint) = (parsed.index(), parsed.checkpoint().checkpoint());
    let data = json!({"index": index, "size": checkpoint.size, "leaf": leaf.to_hex()});
    match parsed.verify(&leaf, &keys) {
        Ok(_) => {
            let root = checkpoint.root.to_base64();
            let text = format!(
                "PROVEN  entry {index} of {} · {} · root {root}\n",
                checkpoint.origin, checkpoint.size
            );
            let mut answer = View::untyped(text, data);
            answer.verdict = "proven";
            answer.checkpoint = Some((checkpoint.size, root));
            Ok(answer)
        }
        Err(error) => {
            let mut failed = CliError::integrity(
                "tampered",
                format!("the proof does not hold: {error}"),
                "clover verify",
            );
            failed.data = data;
            Err(failed)
        }
    }
}
