//! `clover key`: keys of the ledger and their files.

use std::path::Path;
use std::path::PathBuf;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::init;
use crate::cli::key_request;
use crate::cli::submit;
use crate::cli::wallet;
use crate::event::id::Text;
use crate::ground::ambient;
use crate::ground::shell;
use crate::ground::sign::KeyId;
use crate::num::Count;
use crate::session::keys::addition;
use crate::session::keys::addition::KeyTerms;
use crate::session::keys::ending;
use crate::session::keys::files::KeyFiles;
use crate::session::keys::rotation;
use crate::view::View;
use crate::view::key;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Make a key and add it to the ledger; --key names the owner key
    #[command(
        after_help = "Example:\n  clover key new scorer --role scorer --holder judge-bot --machine"
    )]
    New(KeyNewArgs),
    /// Make a key here and ask for it to be added: its private half stays where it is
    #[command(
        after_help = "Example:\n  clover key request --for ledger.example/lab --roles scorer --holder Bea -o bea.request\n  clover key request --key Bea --for ledger.example/lab --roles scorer --holder Bea -o bea.request"
    )]
    Request(key_request::RequestArgs),
    /// Add a key that was asked for; --key names the owner key
    #[command(after_help = "Example:\n  clover key admit bea.request --roles scorer")]
    Admit(key_request::AdmitArgs),
    /// Keys of the ledger
    #[command(after_help = "Example:\n  clover key list")]
    List,
    /// One key
    #[command(after_help = "Example:\n  clover key show scorer")]
    Show(KeyShowArgs),
    /// Print a public key, or the log's verifier key
    #[command(after_help = "Example:\n  clover key export --log > log.vkey")]
    Export(ExportArgs),
    /// End a key: it signs nothing more
    #[command(after_help = "Example:\n  clover key retire scorer --reason 'replaced' --yes")]
    Retire(RetireArgs),
    /// Declare a key compromised: its events are tainted from an entry on
    #[command(
        after_help = "Example:\n  clover key compromise scorer --since-seq 40 --reason 'leaked'"
    )]
    Compromise(CompromiseArgs),
    /// Change the key that signs checkpoints
    #[command(after_help = "Example:\n  clover key rotate-log --reason 'yearly'")]
    RotateLog(RotateArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyNewArgs {
    /// Name of the key file
    pub name: String,
    /// Roles, separated by commas
    #[arg(long, value_name = "ROLES")]
    pub role: String,
    /// Who holds it; default the name
    #[arg(long, value_name = "NAME")]
    pub holder: Option<String>,
    /// A machine holds it, not a person
    #[arg(long)]
    pub machine: bool,
    /// Also make an age identity, to which labels can be sealed; default for custodians
    #[arg(long)]
    pub seal: bool,
    /// Encrypt the key file with the passphrase in this file
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// Print the canonical unsigned body; write and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyShowArgs {
    /// A key file's name, a key id or its beginning, or a holder
    pub key: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// A key file's name, a key id or its beginning, or a holder
    #[arg(required_unless_present = "log")]
    pub key: Option<String>,
    /// The log's verifier key, for `verify --log-key`
    #[arg(long)]
    pub log: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RetireArgs {
    /// A key file's name, a key id or its beginning, or a holder
    pub name: String,
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CompromiseArgs {
    #[command(flatten)]
    pub end: RetireArgs,
    /// First entry from which its events are not to be relied on
    #[arg(long, value_name = "SEQ")]
    pub since_seq: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct RotateArgs {
    /// Why
    #[arg(long)]
    pub reason: String,
    /// Print the canonical unsigned body and append nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) fn run(ctx: &mut Ctx<'_>, verb: Verb) -> Result<View, CliError> {
    match verb {
        Verb::New(args) => new(ctx, &args),
        Verb::Request(args) => key_request::request(ctx, &args),
        Verb::Admit(args) => key_request::admit(ctx, &args),
        Verb::List => list(ctx),
        Verb::Show(args) => show(ctx, &args.key),
        Verb::Export(args) => export(ctx, &args),
        Verb::Retire(args) => end(ctx, &args, None),
        Verb::Compromise(args) => end(ctx, &args.end, Some(args.since_seq)),
        Verb::RotateLog(args) => rotate(ctx, &args),
    }
}

/// Free text of an event.
pub(super) fn text(what: &str, text: &str) -> Result<Text, CliError> {
    Text::new(text).ok_or_else(|| {
        let message = format!("--{what}: expected at most 4000 bytes without control characters");
        CliError::usage(message, "clover --help")
    })
}

fn new(ctx: &mut Ctx<'_>, args: &KeyNewArgs) -> Result<View, CliError> {
    wallet::check_name(&args.name)?;
    let roles = init::roles(&args.role)?;
    let holder = init::holder(args.holder.as_deref().unwrap_or(&args.name))?;
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let keys = &ledger.state().keyring.keys;
    let path = wallet::free(ctx, &args.name, |id| !keys.contains_key(&id))?;
    let terms = KeyTerms {
        holder,
        roles,
        human: !args.machine,
        seals: args.seal,
    };
    let drawn = addition::draw(&mut ctx.ports(), &ledger, terms)?;
    if args.dry_run {
        let submission = drawn.rehearse(&mut ctx.ports(), &mut ledger)?;
        return Ok(submit::shown(ctx, &ledger, &submission));
    }
    let passphrase = key_passphrase(ctx, args.new_passphrase_file.as_deref())?;
    let files = KeyFiles {
        path: &path,
        passphrase: passphrase.as_ref().map(|text| text.as_str()),
    };
    let submission = drawn.add(&mut ctx.ports(), &mut ledger, files)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(key::made(answer, &drawn.id(), path.display().to_string()))
}

/// The passphrase of a new key, when one is wanted.
pub(super) fn key_passphrase(
    ctx: &mut Ctx<'_>,
    file: Option<&Path>,
) -> Result<Option<zeroize::Zeroizing<String>>, CliError> {
    let text = match file {
        Some(path) => {
            let bytes = zeroize::Zeroizing::new(ambient::read_secret(&ctx.path(path))?);
            let text = String::from_utf8_lossy(&bytes);
            Some(text.trim_end_matches(['\n', '\r']).to_owned())
        }
        None => ctx.ask_passphrase("passphrase of the new key (empty for none): "),
    };
    Ok(text
        .filter(|text| !text.is_empty())
        .map(zeroize::Zeroizing::new))
}

fn list(ctx: &mut Ctx<'_>) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let files = wallet::files(ctx)?;
    let name = |id: &KeyId| {
        let file = files.iter().find(|file| file.id == *id);
        file.map_or(String::new(), |file| file.name.clone())
    };
    Ok(key::list(at.state(&ledger), name))
}

fn show(ctx: &mut Ctx<'_>, named: &str) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let id = wallet::resolve(ctx, state, named)?;
    Ok(key::show(&id, &state.keyring.keys[&id]))
}

fn export(ctx: &mut Ctx<'_>, args: &ExportArgs) -> Result<View, CliError> {
    let (_, ledger, at) = home::view(ctx)?;
    let state = at.state(&ledger);
    let Some(named) = args.key.as_deref().filter(|_| !args.log) else {
        return Ok(key::log_key(state));
    };
    let id = wallet::resolve(ctx, state, named)?;
    Ok(key::export(&id, &state.keyring.keys[&id]))
}

fn end(ctx: &mut Ctx<'_>, args: &RetireArgs, since: Option<u64>) -> Result<View, CliError> {
    let (_, mut ledger) = home::open_to_write(ctx)?;
    let id = wallet::resolve(ctx, ledger.state(), &args.name)?;
    let reason = text("reason", &args.reason)?;
    let beyond = || CliError::usage("--since-seq is beyond 2^53", "clover log");
    let since = since.map(|seq| Count::new(seq).ok_or_else(beyond));
    let since = since.transpose()?;
    let (verb, flag) = match since {
        None => ("retire", String::new()),
        Some(since) => ("compromise", format!(" --since-seq {since}")),
    };
    let again = format!(
        "clover key {verb} {}{flag} --reason {}",
        shell::word(&args.name),
        shell::quoted(&args.reason)
    );
    let intent = submit::intent(args.dry_run);
    let mut ports = ctx.ports().with_consent(args.yes, again);
    let submission = ending::end(&mut ports, &mut ledger, (id, since), reason, intent)?;
    Ok(submit::shown(ctx, &ledger, &submission))
}

fn rotate(ctx: &mut Ctx<'_>, args: &RotateArgs) -> Result<View, CliError> {
    let (home, mut ledger) = home::open_to_write(ctx)?;
    let reason = text("reason", &args.reason)?;
    let intent = submit::intent(args.dry_run);
    let submission = rotation::rotate(&mut ctx.ports(), &home, &mut ledger, reason, intent)?;
    let answer = submit::shown(ctx, &ledger, &submission);
    Ok(if submission.is_appended() {
        key::rotated(answer, ledger.state())
    } else {
        answer
    })
}
