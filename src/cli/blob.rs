//! `clover blob`: content too large or too private for an event, by its BLAKE3 digest.

use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::key;
use crate::cli::ports;
use crate::cli::submit;
use crate::event::payload::MediaType;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::session::custody::blobs;
use crate::session::custody::blobs::Owner;
use crate::store::StoreError;
use crate::view::View;
use crate::view::blob as view;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Store a file and print the reference to record
    #[command(
        after_help = "Example:\n  clover blob put prompt.txt --media text/plain --subject new"
    )]
    Put(PutArgs),
    /// Read a blob back
    #[command(after_help = "Example:\n  clover blob get 6f0a… -o prompt.txt")]
    Get(GetArgs),
    /// Blobs that are stored
    #[command(after_help = "Example:\n  clover blob list")]
    List,
}

#[derive(Debug, clap::Args)]
pub(super) struct PutArgs {
    /// The content; - for standard input
    pub file: PathBuf,
    /// Its media type
    #[arg(long, value_name = "TYPE", default_value = "application/octet-stream")]
    pub media: String,
    /// Encrypt it under this subject's key; `new` draws a subject
    #[arg(long, value_name = "new|HEX")]
    pub subject: Option<String>,
    /// Print the reference and store nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// BLAKE3 digest of the stored bytes
    pub digest: String,
    /// Where it goes; default standard output
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Decrypt it with this subject's key; the custodian records the read
    #[arg(long, value_name = "HEX")]
    pub subject: Option<String>,
    /// What for
    #[arg(
        long = "for",
        value_name = "TEXT",
        default_value = "read by hand",
        requires = "subject"
    )]
    pub purpose: String,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::Put(args) => put(ctx, &args),
        Verb::Get(args) => get(ctx, &args),
        Verb::List => list(ctx),
    }
}

pub(super) fn digest(what: &str, text: &str) -> Result<Digest, CliError> {
    Digest::from_hex(text).ok_or_else(|| {
        let message = format!("{what} {text:?}: expected 64 lower-case hex digits");
        CliError::usage(message, "clover blob list")
    })
}

fn put(ctx: &mut Ctx<'_>, args: &PutArgs) -> Result<View, CliError> {
    let media = MediaType::new(args.media.as_str()).ok_or_else(|| {
        let message = format!(
            "--media {:?}: expected a form such as text/plain",
            args.media
        );
        CliError::usage(message, "clover blob put --help")
    })?;
    let content = Zeroizing::new(ctx.read(&args.file)?);
    let (home, mut ledger) = home::open_to_write(ctx)?;
    if ledger.is_slate() {
        let message = "a blob goes to the writer with the event that names it";
        let next = "clover sign KIND --data JSON --blob FILE -o EVENT";
        return Err(CliError::refused(message, next));
    }
    let owner = match args.subject.as_deref() {
        None => Owner::Nobody,
        Some("new") => Owner::NewSubject,
        Some(subject) => Owner::Subject(digest("--subject", subject)?),
    };
    let intent = submit::intent(args.dry_run);
    let reference = blobs::put(&home, &mut ledger, (&content, media), owner, intent)?;
    Ok(view::stored(&reference, args.dry_run))
}

fn get(ctx: &mut Ctx<'_>, args: &GetArgs) -> Result<View, CliError> {
    let wanted = digest("digest", &args.digest)?;
    let subject = args
        .subject
        .as_deref()
        .map(|text| digest("--subject", text))
        .transpose()?;
    let (home, mut ledger) = match subject {
        Some(_) => home::open_to_write(ctx)?,
        None => home::open_to_read(ctx)?,
    };
    if ledger.is_slate() {
        return Err(ports::first_on_record());
    }
    let bytes = match subject {
        None => Zeroizing::new(blobs::stored(&ledger, wanted)?),
        Some(subject) => {
            let purpose = key::text("for", &args.purpose)?;
            let of = (wanted, subject);
            blobs::open(&mut ctx.ports(), &home, &mut ledger, of, purpose)?
        }
    };
    let file = match &args.out {
        Some(out) => {
            let path = ctx.path(out);
            match subject {
                Some(_) => ambient::replace_private(&path, &bytes, false)?,
                None => ambient::replace(&path, &bytes, false)?,
            }
            Some(path.display().to_string())
        }
        None if ctx.globals.json => {
            let message = "--json needs a file for the content";
            return Err(CliError::usage(message, "the same command with -o FILE"));
        }
        None => {
            let write = ctx.stdout().write_all(&bytes);
            write.map_err(|error| CliError::output(&error))?;
            None
        }
    };
    Ok(view::read(bytes.len() as u64, file))
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let mut blobs = Vec::new();
    ledger.store().reader().blobs(|digest, bytes| {
        blobs.push((digest, bytes.len() as u64));
        Ok::<_, StoreError>(())
    })?;
    if let Some(seq) = ctx.as_of {
        // Nothing says when one came that no entry names.
        let named = ledger.past().blobs_named(seq + 1)?;
        blobs.retain(|(digest, _)| named.contains(digest));
    }
    Ok(view::list(&blobs))
}
