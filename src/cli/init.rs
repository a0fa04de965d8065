//! `clover init`: a new ledger with its log key and its owner.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::ctx::Ctx;
use crate::cli::error::CliError;
use crate::cli::home;
use crate::cli::ui;
use crate::cli::ui::Answer;
use crate::cli::wallet;
use crate::event::id::EventId;
use crate::event::id::HolderId;
use crate::event::id::IdError;
use crate::event::payload::Role;
use crate::event::payload::Roles;
use crate::event::payload::custody::Separation;
use crate::ground::ambient;
use crate::ground::digest::Digest;
use crate::ground::keyfile;
use crate::ground::name;
use crate::ground::note::Origin;
use crate::ground::shell;
use crate::ground::sign::Signer;
use crate::ledger::CreateLedger;
use crate::ledger::Ledger;
use crate::ledger::LedgerOptions;
use crate::ledger::error::Divergence;
use crate::ledger::pin::Pin;
use crate::ledger::rulebooks;
use crate::session::Home;
use crate::session::keys::files;
use crate::session::keys::files::KeyFiles;
use crate::store::CreateOptions;
use crate::store::Store;
use crate::store::StoreError;
use crate::workflow::GOVERNED;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the new ledger
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Name of the log; default clover.local/FOLDER-RANDOM
    #[arg(long, value_name = "NAME")]
    pub origin: Option<String>,
    /// How strictly roles are kept apart
    #[arg(long, default_value = "solo", value_parser = ["solo", "strict"], value_name = "HOW")]
    pub separation: String,
    /// The rulebook that judges it: an older one for older programs
    #[arg(long, value_name = "N", default_value_t = rulebooks::NEWEST,
          value_parser = clap::value_parser!(u32).range(i64::from(rulebooks::UNNAMED)..=i64::from(rulebooks::NEWEST)))]
    pub rulebook: u32,
    /// Who holds the owner key
    #[arg(long, value_name = "NAME", default_value = "owner")]
    pub holder: String,
    /// Roles of the owner key, separated by commas, or `all`
    #[arg(long, value_name = "ROLES", default_value = "owner")]
    pub roles: String,
    /// The owner key: a file or a name among your keys, made when it is not there
    #[arg(long, value_name = "FILE|NAME", default_value = "owner")]
    pub owner_key: String,
    /// The owner key is held by a machine
    #[arg(long)]
    pub machine: bool,
}

/// Roles from `a,b,c` or `all`.
pub(super) fn roles(text: &str) -> Result<Roles, CliError> {
    if text == "all" {
        return Ok(Roles::new(Role::ALL).expect("BUG: there are roles"));
    }
    let roles: Result<Vec<Role>, String> =
        text.split(',').map(|role| role.trim().parse()).collect();
    let wrong = |error: String| {
        let message = format!("roles {text:?}: {error}");
        CliError::usage(message, "clover key new NAME --role scorer,labeler")
    };
    let roles = roles.map_err(wrong)?;
    Roles::new(roles).ok_or_else(|| wrong("expected at least one".to_owned()))
}

pub(super) fn holder(text: &str) -> Result<HolderId, CliError> {
    let wrong =
        |why: String| CliError::usage(format!("holder {text:?}: {why}"), "clover key new --help");
    let holder: HolderId = text
        .parse()
        .map_err(|error: IdError| wrong(error.to_string()))?;
    let fault = name::fault(text).or_else(|| {
        let newer = name::unassigned(text)?;
        Some(format!(
            "a character that Unicode 13.0 does not know, {}",
            newer.escape_unicode()
        ))
    });
    match fault {
        None => Ok(holder),
        Some(fault) => Err(wrong(format!(
            "expected visible characters and single spaces between words, found {fault}"
        ))),
    }
}

pub(super) fn run(ctx: &mut Ctx<'_>, args: &Args) -> Result<Answer, CliError> {
    let folder = ctx.path(&args.dir);
    let home = Home::new(folder.join(crate::session::home::FOLDER));
    let is_unfinished = is_unfinished(ctx, &home)?;
    if ambient::exists(home.folder())? && !is_unfinished {
        let message = format!("{} exists already", home.database().display());
        return Err(CliError::refused(message, "clover status"));
    }
    let origin = origin(ctx, &folder, args.origin.as_deref())?;
    let roles = roles(&args.roles)?;
    if !roles.contains(Role::Owner) {
        let message = "the first key must hold role owner";
        return Err(CliError::usage(
            message,
            format!("clover init --roles owner,{}", shell::word(&args.roles)),
        ));
    }
    let holder = holder(&args.holder)?;
    let path = wallet::locate(ctx, &args.owner_key)?;
    let (owner, is_new) = owner(ctx, &path)?;
    let log_key = files::draw(&ctx.ambient())?;
    let create = CreateLedger {
        origin: origin.clone(),
        holder,
        human: !args.machine,
        roles,
        separation: match args.separation.as_str() {
            "strict" => Separation::Strict,
            _ => Separation::Solo,
        },
        rulebook: args.rulebook,
        owner: &owner,
        layout: CreateOptions::default(),
    };
    if let Err(error) = create_in(ctx, &home, create, log_key, is_unfinished) {
        if is_new {
            files::discard(&path);
        }
        return Err(error);
    }
    let options = home::options(ctx, None, true);
    let ledger = Ledger::open(home.database(), ctx.ambient(), &GOVERNED, options)?;
    // Whoever made it knows which ledger it is.
    let vouched = || {
        ledger
            .pin()
            .map_or(Ok(()), |pin| pin.vouch().map_err(|error| error.to_string()))
    };
    let pinned = ledger.advance_pin().map_err(|error| error.to_string());
    if let Err(error) = pinned.and_then(|()| vouched()) {
        ctx.warn(format!(
            "the ledger stands, and its pin is missing: {error}; next: clover checkpoint pin"
        ));
    }
    Ok(answer(&home, &ledger, &path, &owner))
}

/// The owner key, and whether it was made just now.
fn owner(ctx: &mut Ctx<'_>, path: &Path) -> Result<(Signer, bool), CliError> {
    if ambient::exists(path)? {
        ctx.note(&format!("the owner key is {}", path.display()));
        let owner = wallet::read(ctx, path)?;
        wallet::complete(ctx, path, &owner)?;
        return Ok((owner, false));
    }
    let owner = files::draw(&ctx.ambient())?;
    let passphrase = match new_passphrase(ctx)? {
        Some(text) if !text.is_empty() => Some(text),
        _ => None,
    };
    let owner_files = KeyFiles {
        path,
        passphrase: passphrase.as_ref().map(|text| text.as_str()),
    };
    owner_files.write(&ctx.ambient(), &owner)?;
    Ok((owner, true))
}

/// A passphrase for a new key: from a file or the environment; a person may leave it empty.
pub(super) fn new_passphrase(
    ctx: &mut Ctx<'_>,
) -> Result<Option<zeroize::Zeroizing<String>>, CliError> {
    wallet::passphrase(ctx, "passphrase of the new key (empty for none): ")
}

fn origin(ctx: &Ctx<'_>, folder: &Path, given: Option<&str>) -> Result<Origin, CliError> {
    let parse = |text: &str| {
        Origin::parse(text).map_err(|error| {
            let next = "clover init --origin ledger.example/experiment-1";
            CliError::usage(format!("origin {text:?}: {error}"), next)
        })
    };
    if let Some(text) = given {
        return parse(text);
    }
    let random = Digest::blake3(&ctx.ambient().random::<16>()?).to_hex();
    let name = folder
        .components()
        .next_back()
        .and_then(|part| part.as_os_str().to_str());
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let name: String = name
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .map(|c| c.to_ascii_lowercase())
        .take(40)
        .collect();
    let name = if name.is_empty() { "ledger" } else { &name };
    parse(&format!("clover.local/{name}-{}", &random[..32]))
}

/// Whether a folder holds no more than the beginning of a ledger: what an `init` of an earlier program left when it was
/// stopped. Nothing was ever appended there.
fn is_unfinished(ctx: &Ctx<'_>, home: &Home) -> Result<bool, CliError> {
    if !ambient::is_dir(home.folder()) {
        return Ok(false);
    }
    if !ambient::exists(home.database())? {
        return Ok(!ambient::exists(&home.vault_path())?);
    }
    if ambient::irregular(home.database()).is_some() {
        return Ok(false);
    }
    if ambient::size(home.database())? == 0 {
        return Ok(true);
    }
    match Store::open(home.database(), home::store_options(ctx, true)) {
        Ok(store) => Ok(store.reader().entry_count()? == 0),
        Err(StoreError::Version { found: 0, .. }) => Ok(true),
        // Something else stands there.
        Err(_) => Ok(false),
    }
}

/// A pin says that a log of this origin was seen before: another cannot begin under its name.
fn unpinned(ctx: &Ctx<'_>, origin: &Origin) -> Result<(), CliError> {
    let Some(pins) = home::pins(ctx) else {
        return Ok(());
    };
    let pinned = Pin::new(&pins, origin.as_str()).load();
    let pinned =
        pinned.map_err(|error| CliError::integrity("pin", error.to_string(), "clover doctor"))?;
    match pinned.map(|pinned| pinned.checkpoint().size) {
        Some(pinned) => Err(Divergence::RolledBack { pinned, found: 0 }.into()),
        None => Ok(()),
    }
}

/// Makes log key and database in a folder of their own, which gets its name when all of it stands: whoever stops this
/// halfway leaves nothing under that name.
fn create_in(
    ctx: &mut Ctx<'_>,
    home: &Home,
    create: CreateLedger<'_>,
    log_key: Signer,
    is_unfinished: bool,
) -> Result<(), CliError> {
    unpinned(ctx, &create.origin)?;
    let stage = Home::new(ambient::unfinished(home.folder()));
    clear(home)?;
    let done = staged(ctx, &stage, create, log_key).and_then(|()| {
        // An empty folder is taken over by the rename itself.
        if is_unfinished && !ambient::list(home.folder())?.is_empty() {
            let aside = aside(home)?;
            ambient::rename(home.folder(), &aside)?;
            ctx.note(&format!(
                "an unfinished ledger stood there; it is now {}",
                aside.display()
            ));
        }
        Ok(ambient::rename(stage.folder(), home.folder())?)
    });
    if done.is_err() {
        // What was never made need not be removed.
        ambient::remove_tree(stage.folder()).ok();
    }
    done
}

/// Removes what an `init` that was stopped left beside a ledger's folder.
fn clear(home: &Home) -> Result<(), CliError> {
    let Some(parent) = home.folder().parent() else {
        return Ok(());
    };
    for path in ambient::list(parent)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let process = name
            .and_then(|name| {
                name.strip_prefix(crate::session::home::FOLDER)?
                    .strip_prefix('.')
            })
            .and_then(|name| name.strip_suffix(ambient::UNFINISHED));
        if process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit())) {
            ambient::remove_tree(&path)?;
        }
    }
    Ok(())
}

/// A name that is free, for what is put aside: nothing that may hold a key is removed.
fn aside(home: &Home) -> Result<PathBuf, CliError> {
    let mut number = 1_u32;
    loop {
        let name = format!("{}.unfinished-{number}", crate::session::home::FOLDER);
        let path = home.folder().with_file_name(name);
        if !ambient::exists(&path)? {
            return Ok(path);
        }
        number += 1;
    }
}

fn staged(
    ctx: &mut Ctx<'_>,
    stage: &Home,
    create: CreateLedger<'_>,
    log_key: Signer,
) -> Result<(), CliError> {
    ambient::create_private_dirs(stage.folder())?;
    let text = ctx
        .ambient()
        .with_entropy(|entropy| keyfile::write_private(log_key.key(), None, entropy))
        .map_err(|error| CliError::input(error.to_string(), "clover doctor"))?;
    ambient::write_new(&stage.log_key(), text.as_bytes(), 0o600)?;
    let options = LedgerOptions {
        store: home::store_options(ctx, false),
        log_key: Some(log_key),
        pins: None,
    };
    // Closed before its folder gets its name: SQLite keeps the names of its files.
    drop(Ledger::create(
        stage.database(),
        create,
        ctx.ambient(),
        &GOVERNED,
        options,
    )?);
    Ok(())
}

fn answer(home: &Home, ledger: &Ledger, owner_path: &Path, owner: &Signer) -> Answer {
    let keyring = &ledger.state().keyring;
    let log_key = keyring
        .log_key()
        .map(ToString::to_string)
        .unwrap_or_default();
    let separation = keyring
        .separation()
        .map(|separation| separation.to_string());
    let separation = separation.unwrap_or_default();
    let pin = ledger.pin().map(|pin| pin.path().display().to_string());
    let text = ui::pairs(&[
        ("ledger", home.folder().display().to_string()),
        ("origin", keyring.origin.clone()),
        ("log key", log_key.clone()),
        ("owner", format!("{} {}", owner_path.display(), owner.id())),
        ("roles", format!("{separation} separation")),
        ("pin", pin.clone().unwrap_or_else(|| "none".to_owned())),
    ]);
    let data = json!({
        "folder": home.folder().display().to_string(),
        "origin": keyring.origin,
        "log_key": log_key,
        "owner": {"file": owner_path.display().to_string(), "key_id": owner.id().to_string()},
        "separation": separation,
        "pin": pin,
    });
    let mut answer = Answer::new(text, data)
        .with_next("clover key new NAME --role scorer")
        .with_next("clover status");
    answer.verdict = "created";
    if let Ok(Some(first)) = ledger.entry(0) {
        let EventId(id) = first.event.id;
        answer.events = vec![id.to_string()];
    }
    answer.checkpoint = Some((ledger.size(), ledger.root().to_base64()));
    answer
}
