//! `clover blob`: content too large or too private for an event, by its BLAKE3 digest.

use std::path::PathBuf;

use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::access;
use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::error::Exit;
use crate::cli::home;
use crate::cli::submit;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::Kind;
use crate::event::payload::BlobRef;
use crate::event::payload::MediaType;
use crate::event::payload::PrivateRef;
use crate::event::payload::Role;
use crate::event::payload::record::ReadOutcome;
use crate::ground::ambient;
use crate::ground::canon;
use crate::ground::digest::Digest;
use crate::ground::seal;
use crate::ground::seal::SealedBlob;
use crate::ground::seal::SubjectKey;
use crate::ledger::Command;
use crate::ledger::Ledger;
use crate::num::Count;
use crate::session::Home;
use crate::store::StoreError;

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

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<Answer, CliError> {
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

fn reference(bytes: &[u8], media: MediaType) -> BlobRef {
    BlobRef {
        blake3: Digest::blake3(bytes),
        bytes: Count::new(bytes.len() as u64).expect("BUG: no file has 2^53 bytes"),
        media,
    }
}

fn put(ctx: &mut Ctx<'_>, args: &PutArgs) -> Result<Answer, CliError> {
    let media = MediaType::new(args.media.as_str()).ok_or_else(|| {
        let message = format!(
            "--media {:?}: expected a form such as text/plain",
            args.media
        );
        CliError::usage(message, "clover blob put --help")
    })?;
    let content = Zeroizing::new(ctx.read(&args.file)?);
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let (bytes, text) = match &args.subject {
        None => {
            let text = canon::to_bytes(&reference(&content, media));
            (content.to_vec(), text)
        }
        Some(subject) => {
            let (subject, sealed) = seal_for(ctx, &home, subject, &content, args.dry_run)?;
            let private = PrivateRef {
                blob: reference(&sealed.bytes, media),
                commitment: sealed.commitment,
                subject,
            };
            (sealed.bytes, canon::to_bytes(&private))
        }
    };
    let text =
        text.map_err(|error| CliError::input(error.to_string(), "clover blob put --help"))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if !args.dry_run {
        ledger.put_blobs(&[bytes])?;
    }
    let data =
        json!({"reference": serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default()});
    let mut answer = Answer::new(format!("{text}\n"), data);
    answer.verdict = if args.dry_run { "dry_run" } else { "stored" };
    Ok(answer)
}

/// Encrypts content under a subject's key; a new subject's key goes into the vault first.
fn seal_for(
    ctx: &mut Ctx<'_>,
    home: &Home,
    subject: &str,
    content: &[u8],
    dry_run: bool,
) -> Result<(Digest, SealedBlob), CliError> {
    let ambient = ctx.ambient();
    let failed = |error: seal::BlobError| {
        CliError::new(
            Exit::Unexpected,
            "unexpected",
            error.to_string(),
            "clover doctor",
        )
    };
    let (subject, key) = if subject == "new" {
        let subject = Digest(ambient.random()?);
        let key = ambient.with_entropy(SubjectKey::generate)?;
        if !dry_run {
            home.vault(&ctx.ambient())?
                .add_subject(&subject, key.as_bytes())?;
        }
        (subject, key)
    } else {
        let subject = digest("--subject", subject)?;
        (subject, subject_key(ctx, home, &subject)?)
    };
    let sealed = ambient.with_entropy(|entropy| seal::encrypt_blob(&key, content, entropy));
    Ok((subject, sealed.map_err(failed)?))
}

/// A subject's key from the vault.
pub(super) fn subject_key(
    ctx: &Ctx<'_>,
    home: &Home,
    subject: &Digest,
) -> Result<SubjectKey, CliError> {
    let known = match home.known_vault(&ctx.ambient())? {
        Some(vault) => vault.subject_key(subject)?.map(Zeroizing::new),
        None => None,
    };
    let key = known.ok_or_else(|| {
        let message = format!("no key of subject {subject} in the vault: unknown or erased");
        CliError::not_found(message, "clover log --kind subject.erased")
    })?;
    Ok(SubjectKey::from_bytes(&key))
}

/// Puts a read of private content on record before it is shown.
fn record_read(ctx: &mut Ctx<'_>, ledger: &mut Ledger, purpose: &str) -> Result<(), CliError> {
    let signer = wallet::signer(ctx, ledger.state(), Kind::DataRead)?;
    let reader = (signer.id(), Some(Role::Custodian));
    let read = access::read("private", ReadOutcome::Allowed, purpose, reader, None)?;
    let appended = ledger.append(&[Command::new(read, None)], &signer)?;
    submit::warn_of_pin(ctx, ledger);
    ctx.note(&format!("the read is on record at seq {}", appended[0].seq));
    Ok(())
}

fn get(ctx: &mut Ctx<'_>, args: &GetArgs) -> Result<Answer, CliError> {
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
    let stored = ledger
        .store()
        .reader()
        .blob(&wanted)?
        .ok_or_else(|| CliError::not_found(format!("no blob {wanted}"), "clover blob list"))?;
    if Digest::blake3(&stored) != wanted {
        let message = format!("the bytes of blob {wanted} do not match their digest");
        return Err(CliError::integrity("tampered", message, "clover verify"));
    }
    let bytes = match subject {
        None => stored,
        Some(subject) => {
            let key = subject_key(ctx, &home, &subject)?;
            let opened = seal::decrypt_blob(&key, &stored)
                .map_err(|error| CliError::input(error.to_string(), "clover blob get --help"))?;
            record_read(ctx, &mut ledger, &args.purpose)?;
            opened.plaintext.clone()
        }
    };
    let count = bytes.len();
    let text = match &args.out {
        Some(out) => {
            let path = ctx.path(out);
            match subject {
                Some(_) => ambient::replace_private(&path, &bytes, false)?,
                None => ambient::replace(&path, &bytes, false)?,
            }
            format!("{}: {count} bytes\n", path.display())
        }
        None if ctx.globals.json => {
            let message = "--json needs a file for the content";
            return Err(CliError::usage(message, "the same command with -o FILE"));
        }
        None => {
            let write = ctx.stdout().write_all(&bytes);
            write.map_err(|error| CliError::output(&error))?;
            String::new()
        }
    };
    Ok(Answer::new(text, json!({"bytes": count})))
}

fn list(ctx: &mut Ctx<'_>) -> Result<Answer, CliError> {
    let (_, ledger) = home::open_to_read(ctx)?;
    let mut blobs = Vec::new();
    ledger.store().reader().blobs(|digest, bytes| {
        blobs.push((digest, bytes.len() as u64));
        Ok::<_, StoreError>(())
    })?;
    let rows = blobs
        .iter()
        .map(|(digest, bytes)| vec![digest.to_hex(), ui::thousands(*bytes)]);
    let text = ui::table(&["blake3", "bytes"], rows.collect());
    let data: Vec<_> = blobs
        .iter()
        .map(|(digest, bytes)| json!({"blake3": digest.to_hex(), "bytes": bytes}))
        .collect();
    Ok(Answer::new(text, json!({"blobs": data})))
}
