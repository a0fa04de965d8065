//! `clover key request` and `clover key admit`: a key that is made where its holder is, and admitted where the owner is.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::init;
use crate::cli::input;
use crate::cli::key;
use crate::cli::submit;
use crate::cli::wallet;
use crate::event::id::SealRecipient;
use crate::event::payload::Role;
use crate::ground::ambient;
use crate::ground::note::Origin;
use crate::ground::shell;
use crate::session::keys::addition::KeyTerms;
use crate::session::keys::files;
use crate::session::keys::files::KeyFiles;
use crate::session::keys::request;
use crate::session::keys::request::SignedRequest;
use crate::view::View;
use crate::view::appended;
use crate::view::key as view;

#[derive(Debug, clap::Args)]
pub(super) struct RequestArgs {
    /// Roles to ask for, separated by commas
    #[arg(long, alias = "role", value_name = "ROLES")]
    pub roles: String,
    /// Who will hold the key
    #[arg(long, value_name = "NAME")]
    pub holder: String,
    /// The request, a new file; it holds nothing secret
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Origin of the ledger, as its owner reads it in `clover status`; default the ledger here
    #[arg(long = "for", value_name = "ORIGIN")]
    pub origin: Option<String>,
    /// Name of the key file; default the holder's name with - for blanks
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A machine will hold it, not a person
    #[arg(long)]
    pub machine: bool,
    /// Also make an age identity, to which labels can be sealed; default for custodians
    #[arg(long)]
    pub seal: bool,
    /// Encrypt the key file with the passphrase in this file
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct AdmitArgs {
    /// The file that `clover key request` wrote, or - for standard input
    pub file: PathBuf,
    /// Grant only these of the roles asked for
    #[arg(long, alias = "role", value_name = "ROLES")]
    pub roles: Option<String>,
    /// Do not ask: the fingerprint was compared
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Makes a key here and writes the request for it.
pub(super) fn request(ctx: &mut Ctx<'_>, args: &RequestArgs) -> Result<View, CliError> {
    let holder = init::holder(&args.holder)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args.holder.replace(' ', "-"),
    };
    wallet::check_name(&name).map_err(|mut error| {
        error.message = format!("--name: {}", error.message);
        error.with_next("clover key request --help")
    })?;
    let path = wallet::folder(ctx)?.join(format!("{name}.pem"));
    let out = ctx.path(&args.out);
    let existing = ctx.globals.key.clone();
    let exists = |file: &Path, next: String| {
        let message = format!("{} exists already", file.display());
        CliError::refused(message, next)
    };
    if ambient::exists(&out)? {
        return Err(exists(
            &out,
            "the same command with another --out FILE".to_owned(),
        ));
    }
    let terms = KeyTerms {
        holder,
        roles: init::roles(&args.roles)?,
        human: !args.machine,
        seals: args.seal,
    };
    if let Some(key) = existing {
        return of_key(ctx, &key, terms, (args.origin.as_deref(), &out));
    }
    if ambient::exists(&path)? {
        let next = format!(
            "the same command with --key {name} to ask for the key that you have, or with another --name"
        );
        return Err(exists(&path, next));
    }
    let ledger = ledger(ctx, args.origin.as_deref())?;
    let passphrase = key::key_passphrase(ctx, args.new_passphrase_file.as_deref())?;
    let key_files = KeyFiles {
        path: &path,
        passphrase: passphrase.as_ref().map(|text| text.as_str()),
    };
    let made = request::make(&ctx.ambient(), ledger, terms, key_files)?;
    if let Err(error) = made.write(&out) {
        files::discard(&path);
        return Err(error.into());
    }
    Ok(view::requested(&made.request, &path, &out))
}

/// The request for a key that is in the key folder already, which signs it.
fn of_key(
    ctx: &mut Ctx<'_>,
    key: &str,
    terms: KeyTerms,
    (origin, out): (Option<&str>, &Path),
) -> Result<View, CliError> {
    let path = wallet::locate(ctx, key)?;
    let signer = wallet::read(ctx, &path)?;
    let seals = terms.seals || terms.roles.contains(Role::Custodian);
    let identity = path.with_extension("age");
    let recipient = if !seals {
        None
    } else if ambient::exists(&identity)? {
        Some(SealRecipient(
            wallet::read_identity(ctx, &identity)?.recipient(),
        ))
    } else {
        let message = format!(
            "the key {} has no age identity beside it: nobody can seal labels to it",
            path.display()
        );
        let next = "the same command with another --name and without --key, for a new key";
        return Err(CliError::refused(message, next));
    };
    let ledger = ledger(ctx, origin)?;
    let made = request::of_key(&ctx.ambient(), ledger, terms, &signer, recipient);
    made.write(out)?;
    Ok(view::requested(&made.request, &path, out))
}

/// The ledger that a key is asked for.
fn ledger(ctx: &mut Ctx<'_>, named: Option<&str>) -> Result<Origin, CliError> {
    let Some(text) = named else {
        let Ok((_, ledger)) = home::open_to_read(ctx) else {
            let message = "no ledger is here to ask for: name it";
            let next = "the same command with --for ORIGIN; the owner reads it in clover status";
            return Err(CliError::usage(message, next));
        };
        let origin = &ledger.state().keyring.origin;
        return Ok(Origin::parse(origin).expect("BUG: an open ledger has an origin"));
    };
    Origin::parse(text).map_err(|error| {
        CliError::usage(
            format!("--for {text:?}: {error}"),
            "clover key request --help",
        )
    })
}

/// Reads a request; a wrong field is named with its line.
fn read(ctx: &mut Ctx<'_>, file: &Path) -> Result<SignedRequest, CliError> {
    let bytes = ctx.read(file)?;
    let source = file.display().to_string();
    let next = "clover key request --help";
    input::document(&bytes).map_err(|fault| fault.into_error(&source, 1, next))
}

/// Adds the key of a request, once the owner knows whose it is.
pub(super) fn admit(ctx: &mut Ctx<'_>, args: &AdmitArgs) -> Result<View, CliError> {
    let asked = read(ctx, &args.file)?;
    let source = args.file.display().to_string();
    let narrowed = args.roles.as_deref().map(init::roles).transpose()?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let judged = request::judge(&ledger, &asked, narrowed);
    let admission = judged.map_err(|error| CliError::from(error).at(&source))?;
    let shown = view::asked(&admission);
    // Who asks for what is read before anything is answered.
    ctx.err(&crate::view::text::text(&shown, false, ctx.screen()));
    let roles = args.roles.as_ref();
    let roles = roles.map_or(String::new(), |of| format!(" --roles {}", shell::word(of)));
    let again = format!(
        "clover key admit {}{roles}",
        shell::word(&args.file.display())
    );
    let intent = submit::intent(args.dry_run);
    let mut ports = ctx.ports().with_consent(args.yes, again);
    let submission = request::admit(&mut ports, &mut ledger, admission, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    let facts = view::admitted_facts(&asked.request, &ledger);
    let answer = appended::and(answer, &facts);
    if submission.is_appended() {
        return Ok(answer.with_next("clover key list"));
    }
    Ok(answer)
}
